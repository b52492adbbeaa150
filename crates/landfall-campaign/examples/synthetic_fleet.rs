//! A made-up fleet with planted outliers, as the report shows it:
//! `cargo run -p landfall-campaign --features fixtures --example synthetic_fleet -- PAGE.html [MACHINES]`.

use std::error::Error;

use landfall_campaign::fleet::report::{Missing, Proofs, Report, page, screen};
use landfall_campaign::fleet::synthetic::{Recipe, results};
use landfall_campaign::fleet::{Fleet, Member};
use landfall_lab::Results;
use landfall_results::view::{Cell, Column, Row, Table, Tone};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("name the page to be written")?;
    let machines: usize = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let documents = fleet(machines);
    let members: Vec<Member<'_>> = documents
        .iter()
        .map(|(machine, results)| Member { machine, results })
        .collect();
    let fleet = Fleet::of(&members);
    let columns = ["states tried", "lost"].map(Column::new).into();
    let rows = [
        Row::of("sqlite, synchronous=FULL", ["240,000", "0"]),
        Row::of("etcd", ["120,000", "0"]),
    ];
    let proofs = Proofs {
        verdict: Cell::toned(Tone::Good, "360,000 crash states tried, nothing was lost."),
        sentences: Vec::new(),
        table: Table::new("States tried and lost", "Subject", columns).with_rows(rows),
    };
    let missing = Missing {
        shards: vec!["shard 17: no document".to_owned()],
        ..Missing::default()
    };
    let report = Report {
        name: "synthetic",
        fleet: &fleet,
        proofs: Some(&proofs),
        missing: &missing,
        when: None,
        command: "landfall campaign report synthetic",
        document: "fleet.json",
    };
    print!("{}", landfall_report::text::text(&screen(&report)));
    std::fs::write(path, landfall_report::html::render(&page(&report))?)?;
    Ok(())
}

/// Machines of four models; of one model a newer firmware is slower. Four are outliers, and one has a suspicious flush.
fn fleet(machines: usize) -> Vec<(String, Results)> {
    let mut random = fastrand::Rng::with_seed(1);
    let models = [
        Recipe::NVME,
        Recipe {
            model: "Micron 7450",
            firmware: "E2MU200",
            filesystem: "xfs",
            flush_us: 40.0,
            ..Recipe::NVME
        },
        Recipe {
            model: "Seagate ST8000NM0055",
            firmware: "SN04",
            write_us: 400.0,
            flush_us: 7_800.0,
            ..Recipe::NVME
        },
        Recipe {
            model: "Intel SSDSC2KB960G8",
            firmware: "XCV10132",
            kernel: "6.1.0",
            write_us: 60.0,
            flush_us: 210.0,
            ..Recipe::NVME
        },
    ];
    let documents = (0..machines).map(|number| {
        let mut recipe = match number % 10 {
            0..=4 => models[0].clone(),
            5..=6 => models[1].clone(),
            7 => models[2].clone(),
            _ => models[3].clone(),
        };
        if number % 10 == 3 || number % 10 == 4 {
            recipe.firmware = "EDA5802Q";
            recipe.flush_us *= 1.5;
        }
        match number {
            17 | 61 => recipe.flush_us *= 2.6,
            42 => recipe.tail *= 4.0,
            50 => recipe.flush_us = 1.0,
            _ => {}
        }
        (format!("web-{number:03}"), results(&recipe, &mut random))
    });
    documents.collect()
}
