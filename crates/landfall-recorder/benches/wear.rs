//! What the wear model makes of loads that are known, and how fast it is: the tables of
//! `docs/results/wear-model.md`.
//!
//! `cargo bench -p landfall-recorder --bench wear`; needs no root and takes a minute. Target: 100 million
//! written pages in well under a minute.

use std::error::Error;
use std::time::Instant;

use landfall_recorder::wear::{Drive, Flash, Wear, Writes};

const PAGE: u64 = 4096;
/// Pages in use: 256 MiB.
const PAGES: u32 = 1 << 16;
/// Written before it is counted, and counted, in times the pages in use.
const TIMES: u32 = 8;

const UTILISATIONS: [f64; 4] = [0.70, 0.80, 0.90, 0.95];

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` says --bench, `cargo test --benches` does not.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    uniform()?;
    blocks()?;
    lengths()?;
    jedec()?;
    speed()
}

fn drive(collector: &str, utilisation: f64, block: u32) -> Result<Drive, String> {
    let percent = utilisation * 100.0;
    format!("collector={collector},utilisation={percent}%,block={block}").parse()
}

/// The amplification of a load once it has gone on for long; `next` says where each write goes.
fn steady(
    drive: &Drive,
    pages: u32,
    mut next: impl FnMut() -> (u64, u64),
) -> Result<f64, Box<dyn Error>> {
    let size = u64::from(pages) * PAGE;
    let mut flash = Flash::new(drive, size)?;
    flash.write(0, size);
    let mut write = |flash: &mut Flash| {
        let before = flash.counts();
        while (flash.counts() - before).host_pages < u64::from(TIMES * pages) {
            let (offset, len) = next();
            flash.write(offset, len);
        }
        flash.counts() - before
    };
    write(&mut flash);
    let counts = write(&mut flash);
    Ok(counts.nand_bytes as f64 / counts.host_bytes as f64)
}

fn anywhere(seed: u64, pages: u32) -> impl FnMut() -> (u64, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    move || (u64::from(random.u32(0..pages)) * PAGE, PAGE)
}

fn uniform() -> Result<(), Box<dyn Error>> {
    println!("Uniform random pages, {PAGES} in use, 64 pages a block");
    println!("  utilisation   fifo greedy");
    for utilisation in UTILISATIONS {
        print!("  {utilisation:11.2}");
        for collector in ["fifo", "greedy"] {
            let drive = drive(collector, utilisation, 64)?;
            print!(" {:6.3}", steady(&drive, PAGES, anywhere(7, PAGES))?);
        }
        println!();
    }
    Ok(())
}

fn blocks() -> Result<(), Box<dyn Error>> {
    const PAGES: u32 = 1 << 18;
    println!("The same by pages of a block, utilisation 0.90, {PAGES} in use");
    println!("   block   fifo greedy");
    for block in [16, 32, 64, 128, 256, 1024] {
        print!("  {block:6}");
        for collector in ["fifo", "greedy"] {
            let drive = drive(collector, 0.9, block)?;
            print!(" {:6.3}", steady(&drive, PAGES, anywhere(7, PAGES))?);
        }
        println!();
    }
    Ok(())
}

fn lengths() -> Result<(), Box<dyn Error>> {
    println!("A recording of uniform random pages played over and over, utilisation 0.90");
    println!("  rewrites   fifo greedy passes");
    for tenths in [1, 5, 10, 20, 40, 80, 160, 320, 640] {
        let mut writes = Writes::new(u64::from(PAGES) * PAGE)?;
        writes.hold(0, u64::from(PAGES) * PAGE);
        let mut next = anywhere(7, PAGES);
        for _ in 0..PAGES / 10 * tenths {
            let (offset, len) = next();
            writes.push(offset, len);
        }
        let fifo = Wear::of_writes(&writes, &drive("fifo", 0.9, 64)?)?;
        let greedy = Wear::of_writes(&writes, &drive("greedy", 0.9, 64)?)?;
        println!(
            "  {:8.2} {:6.3} {:6.3} {:6}{}",
            fifo.rewrites,
            fifo.amplification,
            greedy.amplification,
            greedy.passes,
            if fifo.steady && greedy.steady {
                ""
            } else {
                " not steady"
            },
        );
    }
    Ok(())
}

/// The enterprise load that drives are rated by (JESD219): half of the writes in 5% of the drive, 30% in
/// the next 15%; sizes by their share. Those of 4 KiB and more are aligned to that, smaller ones to
/// sectors.
fn jedec() -> Result<(), Box<dyn Error>> {
    const SECTORS: [(u32, u64); 12] = [
        (4, 1),
        (1, 2),
        (1, 3),
        (1, 4),
        (1, 5),
        (1, 6),
        (1, 7),
        (67, 8),
        (10, 16),
        (7, 32),
        (3, 64),
        (3, 128),
    ];
    println!("The enterprise load of JESD219, in bytes programmed per byte written");
    println!("  over-provisioning   fifo greedy");
    for percent in [7, 28] {
        print!("  {percent:16}%");
        for collector in ["fifo", "greedy"] {
            let drive: Drive =
                format!("collector={collector},over-provisioning={percent}%").parse()?;
            let mut random = fastrand::Rng::with_seed(7);
            let next = || {
                let mut share = random.u32(0..100);
                let (_, sectors) = *SECTORS
                    .iter()
                    .find(|(part, _)| {
                        let found = share < *part;
                        share = share.saturating_sub(*part);
                        found
                    })
                    .unwrap_or(&SECTORS[7]);
                let part = |share: u32| u64::from(PAGES * 8 / 100 * share);
                let sector = match random.u32(0..10) {
                    0..5 => random.u64(0..part(5)),
                    5..8 => random.u64(part(5)..part(20)),
                    _ => random.u64(part(20)..part(100)),
                };
                let sector = if sectors < 8 { sector } else { sector / 8 * 8 };
                (sector * 512, sectors * 512)
            };
            print!(" {:6.3}", steady(&drive, PAGES, next)?);
        }
        println!();
    }
    Ok(())
}

fn speed() -> Result<(), Box<dyn Error>> {
    println!("100 million uniform random pages, utilisation 0.90");
    println!("  collector   in use      s  million host pages/s  programmed/s");
    for (collector, pages) in [
        ("fifo", 1 << 16),
        ("greedy", 1 << 16),
        ("fifo", 1 << 22),
        ("greedy", 1 << 22),
    ] {
        let mut flash = Flash::new(&drive(collector, 0.9, 64)?, u64::from(pages) * PAGE)?;
        flash.write(0, u64::from(pages) * PAGE);
        let before = flash.counts();
        let mut next = anywhere(7, pages);
        let begin = Instant::now();
        for _ in 0..100_000_000 {
            let (offset, len) = next();
            flash.write(offset, len);
        }
        let seconds = begin.elapsed().as_secs_f64();
        let counts = flash.counts() - before;
        println!(
            "  {collector:9} {:4} MiB {seconds:6.1} {:21.1} {:13.1}",
            (u64::from(pages) * PAGE) >> 20,
            counts.host_pages as f64 / seconds / 1e6,
            counts.nand_bytes as f64 / PAGE as f64 / seconds / 1e6,
        );
    }
    Ok(())
}
