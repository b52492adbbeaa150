//! Reports of what experiment `torn` finds.

use crate::report::tests::{HOSTILE, body, page};
use crate::sync::fixtures::results;
use crate::torn::TornResults;
use crate::torn::fixtures::torn_results;

fn document(torn: TornResults) -> crate::Results {
    let mut document = results(Vec::new());
    document.experiments = vec![torn.into()];
    document
}

#[test]
fn every_disk_and_condition_is_drawn_and_every_proof_is_told() {
    let html = page(&document(torn_results()));
    let body = body(&html);
    assert!(body.contains("id=\"torn-conditions\""));
    assert!(body.contains("data-expected=\"9\""), "conditions");
    for disk in 0..4 {
        assert!(body.contains(&format!("id=\"torn-disk-{disk}\"")));
    }
    assert!(body.contains("id=\"torn-postgres-1-cost\""));
    assert!(body.contains("id=\"torn-landfall-2-cost\""));
    assert!(body.contains("Landfall&#39;s store") || body.contains("Landfall's store"));
    assert!(body.contains("3 of 200") && body.contains("MariaDB does not start"));
    assert!(body.contains("does not put data at risk"));
    assert!(!body.contains("data-expected=\"0\""));
}

#[test]
fn what_is_missing_is_no_hole() {
    let mut torn = torn_results();
    torn.proofs.clear();
    torn.claims.clear();
    torn.measurements.series.truncate(4);
    let html = page(&document(torn.clone()));
    assert!(!body(&html).contains("Which of them protect"));
    assert!(!body(&html).contains("torn-postgres"));
    assert!(!body(&html).contains("torn-landfall"));
    torn.measurements.series.clear();
    assert!(body(&page(&document(torn))).contains("Nothing was measured"));
}

#[test]
fn what_a_server_says_is_only_text() {
    let mut torn = torn_results();
    torn.proofs[1].said = Some(HOSTILE.to_owned());
    torn.proofs[0].not_proven = Some(HOSTILE.to_owned());
    torn.measurements.series[0].unsupported = Some(HOSTILE.to_owned());
    torn.measurements.series[0].summary.clear();
    assert!(!page(&document(torn)).contains(HOSTILE));
}
