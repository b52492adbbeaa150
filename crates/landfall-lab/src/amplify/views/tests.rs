//! Reports of what experiment `amplify` finds.

use landfall_results::Metric;

use crate::amplify::AmplifyResults;
use crate::amplify::fixtures::{measured, results, updated};
use crate::report::tests::{HOSTILE, body, page};

fn document(amplify: AmplifyResults) -> crate::Results {
    let mut document = crate::sync::fixtures::results(Vec::new());
    document.experiments = vec![amplify.into()];
    document
}

fn found() -> AmplifyResults {
    let mut missing = measured("rocksdb", 1.0, 50);
    missing.unsupported = Some("rocksdb is not installed".into());
    missing.trials.clear();
    missing.summarize();
    results(vec![
        measured("innodb 16k", 48.0, 150),
        measured("innodb 8k", 24.0, 150),
        measured("myrocks zstd", 3.5, 70),
        measured("landfall 16k doublewrite", 40.0, 130),
        measured("landfall buffer 0%", 12.0, 80),
        measured("landfall buffer 11%", 5.0, 85),
        updated("uniform buffer 0%", 16.0, 15.0),
        updated("uniform buffer 11%", 4.0, 3.9),
        updated("uniform sqlite", 40.0, None),
        updated("zipf buffer 11%", 1.2, None),
        measured("sqlite", 9.0, 120),
        missing,
        measured("innodb in pool", 9.0, 150),
    ])
}

#[test]
fn every_part_has_its_figures_with_bytes_and_flash_beside_each_other() {
    let html = page(&document(found()));
    let body = body(&html);
    for (id, marks) in [
        ("amplify-pages", 9),
        ("amplify-landfall", 9),
        // The knob with two positions of four figures, and InnoDB and MyRocks beside it.
        ("amplify-buffer", 16),
        ("amplify-curve", 13),
        // One position is no curve.
        ("amplify-curve-zipf", 3),
        ("amplify-databases", 9),
        ("amplify-knobs", 3),
        ("amplify-size-pages", 6),
        ("amplify-size-landfall", 6),
        ("amplify-size-buffer", 8),
        ("amplify-size-databases", 6),
    ] {
        let at = body.find(&format!("id=\"{id}\"")).expect(id);
        let figure = &body[at..];
        assert!(
            figure.find(&format!("data-expected=\"{marks}\"")).is_some(),
            "{id}"
        );
    }
    for without in ["knobs", "curve", "curve-zipf"] {
        assert!(!body.contains(&format!("id=\"amplify-size-{without}\"")));
    }
    assert!(body.contains("rocksdb is not installed"));
    assert!(body.contains("stands for the published TokuDB"));
    assert!(body.contains("KiB of flash"));
}

#[test]
fn without_a_recorder_there_is_no_flash_in_it() {
    let mut amplify = found();
    for one in &mut amplify.measurements.series {
        for trial in &mut one.trials {
            trial.figures.set(Metric::NandKib, None);
        }
        one.summarize();
    }
    let html = page(&document(amplify.clone()));
    assert!(!body(&html).contains("NAND KiB are what"));
    assert!(!body(&html).contains("data-expected=\"0\""));
    amplify.measurements.series.clear();
    let html = page(&document(amplify));
    assert!(body(&html).contains("Nothing was measured"));
}

#[test]
fn what_a_server_says_is_only_text() {
    let mut amplify = found();
    for one in &mut amplify.measurements.series {
        one.unsupported = Some(HOSTILE.to_owned());
        one.axes.workload = Some(HOSTILE.to_owned());
    }
    let html = page(&document(amplify));
    assert!(!html.contains(HOSTILE));
}
