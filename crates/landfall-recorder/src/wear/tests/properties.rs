//! What holds for any writes to any drive.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Pages of the device.
const PAGES: u64 = 300;

fn drive() -> impl Strategy<Value = Drive> {
    (any::<bool>(), 10..=99u32, 2..40u32).prop_map(|(fifo, utilisation, block)| {
        let collector = if fifo { "fifo" } else { "greedy" };
        let text = format!("collector={collector},utilisation={utilisation}%,block={block}");
        text.parse().unwrap()
    })
}

/// Offset and length in sectors, some of it not on the device.
fn writes() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let long = (0..PAGES * 8 + 40, 0..400u64);
    let short = (0..PAGES).prop_map(|page| (page * 8, 8));
    prop::collection::vec(prop_oneof![1 => long, 9 => short], 1..800)
}

proptest! {
    #[test]
    fn no_page_is_lost_or_in_two_places(drive in drive(), writes in writes()) {
        let mut flash = Flash::new(&drive, PAGES * PAGE).unwrap();
        let mut in_use = BTreeSet::new();
        for (number, (sector, sectors)) in writes.into_iter().enumerate() {
            flash.write(sector * 512, sectors * 512);
            let end = (sector + sectors).min(PAGES * 8);
            if sectors > 0 && sector < end {
                in_use.extend(sector / 8..=(end - 1) / 8);
            }
            prop_assert_eq!(flash.pages_in_use(), in_use.len() as u64);
            if number % 50 == 0 {
                flash.check();
            }
        }
        flash.check();
        let counts = flash.counts();
        prop_assert!(counts.host_bytes <= counts.host_pages * PAGE);
        prop_assert_eq!(counts.nand_bytes, (counts.host_pages + counts.copied_pages) * PAGE);
    }

    #[test]
    fn overwriting_everything_in_order_copies_next_to_nothing(drive in drive(), pages in 1..9u64) {
        let size = 4096 * PAGE;
        // With less to spare than two blocks there is none that holds nothing valid when one is needed.
        let spare = 4096.0 / drive.utilisation() - 4096.0;
        prop_assume!(spare >= f64::from(2 * drive.block()));
        let mut flash = Flash::new(&drive, size).unwrap();
        let mut pass = || {
            let before = flash.counts();
            for offset in (0..size).step_by((pages * PAGE) as usize) {
                flash.write(offset, pages * PAGE);
            }
            flash.counts() - before
        };
        // At the lowest utilisation so many fit before anything is erased.
        for _ in 0..11 {
            pass();
        }
        let counts = pass();
        prop_assert_eq!(counts.host_bytes, size);
        let amplification = counts.nand_bytes as f64 / size as f64;
        prop_assert!((1.0..1.01).contains(&amplification), "{}", amplification);
        let erased = counts.erased_blocks * u64::from(drive.block());
        prop_assert!(erased.abs_diff(4096) <= 2 * u64::from(drive.block()));
    }

    #[test]
    fn what_is_reckoned_is_what_the_flash_did(drive in drive(), writes in writes()) {
        let mut log = Writes::new(PAGES * PAGE).unwrap();
        for (sector, sectors) in writes {
            log.push(sector * 512, sectors * 512);
        }
        prop_assume!(!log.is_empty());
        let wear = Wear::of_writes(&log, &drive).unwrap();
        prop_assert_eq!(wear.host_bytes, log.bytes());
        prop_assert!(wear.nand_bytes >= wear.page_bytes && wear.page_bytes >= wear.host_bytes);
        let product = wear.rounding() * wear.copying();
        prop_assert!((product - wear.amplification).abs() < 1e-9 * product);
        prop_assert!(wear.rewrites >= 1.0);
        prop_assert!(wear.blocks * u64::from(drive.block()) > wear.pages_in_use);
    }
}
