//! Verdicts on the published claims.

use super::*;
use crate::amplify::fixtures::{measured, measurements, updated};
use crate::claim::Verdict;

fn verdict_of(results: &[ClaimResult], id: &str) -> (Verdict, String) {
    let found = results.iter().find(|result| result.id == id).unwrap();
    (found.verdict, found.why.clone())
}

#[test]
fn claims_are_judged_by_windows_where_rounds_are_few() {
    let found = measurements(vec![
        measured(PAGES_16, 48.0, 150),
        measured(PAGES_8, 24.0, 152),
        measured(PAGES_4, 5.0, 155),
        measured(NO_DOUBLEWRITE, 24.0, 150),
    ]);
    let results = judge(&found, 100_000);
    assert_eq!(results.len(), 3);
    assert_eq!(
        verdict_of(&results, "half-page-half-bytes").0,
        Verdict::Holds
    );
    let (verdict, why) = verdict_of(&results, "quarter-page-quarter-bytes");
    assert_eq!(verdict, Verdict::DoesNotHold);
    assert_eq!(
        why,
        "24.0 against 5.00 KiB per request, at 1.00 times the requests a second"
    );
    assert_eq!(
        verdict_of(&results, "doublewrite-doubles").0,
        Verdict::Holds
    );
}

#[test]
fn what_is_written_in_one_burst_is_not_judged() {
    let mut burst = measured(PAGES_8, 24.0, 152);
    for window in &mut burst.trials[0].windows[1..] {
        window.bytes = 0;
    }
    let found = measurements(vec![measured(PAGES_16, 48.0, 150), burst]);
    let results = judge(&found, 100_000);
    let told = (Verdict::CannotBeTold, TOO_BURSTY.to_owned());
    assert_eq!(verdict_of(&results, "half-page-half-bytes"), told);
    let text = serde_json::to_string(&results).unwrap();
    let again: Vec<ClaimResult> = serde_json::from_str(&text).unwrap();
    assert_eq!(again, results);
}

#[test]
fn claims_of_pages_are_judged_by_our_engine_too() {
    let found = measurements(vec![
        measured(LANDFALL_16, 40.0, 130),
        measured(LANDFALL_8, 20.0, 130),
        measured(LANDFALL_4, 16.0, 130),
        measured(LANDFALL_16_UNPROTECTED, 21.0, 130),
    ]);
    let results = judge(&found, 100_000);
    let verdicts: Vec<_> = results
        .iter()
        .map(|one| (one.id.as_ref(), one.verdict))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("landfall-half-page-half-bytes", Verdict::Holds),
            ("landfall-quarter-page-quarter-bytes", Verdict::DoesNotHold),
            ("landfall-doublewrite-doubles", Verdict::Holds),
        ]
    );
}

#[test]
fn claims_of_both_kinds_of_trees_are_judged_by_both_ends_of_our_knob() {
    let rounds = |name, kib, megabytes| {
        let mut one = measured(name, kib, megabytes);
        let rounds = 1..=FEWEST_ROUNDS as u32;
        one.trials = rounds
            .map(|round| landfall_results::Trial {
                round,
                ..one.trials[0].clone()
            })
            .collect();
        one.summarize();
        one
    };
    let found = measurements(vec![
        rounds(BUFFER_0, 12.0, 80),
        rounds("landfall buffer 5%", 8.0, 84),
        rounds(BUFFER_11, 6.0, 88),
    ]);
    let results = judge(&found, 100_000);
    assert_eq!(results.len(), 2);
    let (verdict, why) = verdict_of(&results, "landfall-write-optimised-writes-less");
    assert_eq!(verdict, Verdict::Holds, "{why}");
    let (verdict, why) = verdict_of(&results, "landfall-write-optimised-is-half-as-large");
    assert_eq!(verdict, Verdict::DoesNotHold, "{why}");
    assert!(!why.contains("InnoDB"), "{why}");
    let published: Vec<_> = results.iter().filter_map(|one| one.published).collect();
    assert_eq!(published, [2.0, 34.0 / 66.0]);
}

#[test]
fn what_a_store_writes_is_held_against_its_own_formula() {
    let judged = |without: f64, with: f64, formula: Option<f64>| {
        let found = measurements(vec![
            updated(UNIFORM_0, without, 15.0),
            updated("uniform buffer 2%", 9.0, 8.0),
            updated(UNIFORM_11, with, formula),
        ]);
        judge(&found, 100_000)
    };
    let results = judged(16.0, 4.0, Some(3.9));
    assert_eq!(results.len(), 3);
    for id in [
        "landfall-buffer-writes-a-third",
        "landfall-writes-as-its-formula-says-at-0",
        "landfall-writes-as-its-formula-says-at-11",
    ] {
        let (verdict, why) = verdict_of(&results, id);
        assert_eq!(verdict, Verdict::Holds, "{id}: {why}");
    }
    let (_, why) = verdict_of(&results, "landfall-writes-as-its-formula-says-at-11");
    assert_eq!(why, "4.00 written for each byte updated, 3.90 by formula");
    let quantity = &results[1].quantity;
    assert!(quantity.contains("by formula of"), "{quantity}");
    // It saves little, and not as was forecast.
    let results = judged(16.0, 8.0, Some(3.9));
    for id in [
        "landfall-buffer-writes-a-third",
        "landfall-writes-as-its-formula-says-at-11",
    ] {
        assert_eq!(verdict_of(&results, id).0, Verdict::DoesNotHold, "{id}");
    }
    let results = judged(16.0, 4.0, None);
    let (verdict, why) = verdict_of(&results, "landfall-writes-as-its-formula-says-at-11");
    assert_eq!(verdict, Verdict::CannotBeTold);
    assert!(why.starts_with("the store has no formula"), "{why}");
}

#[test]
fn the_published_figure_is_that_of_the_nearer_scale() {
    let found = measurements(vec![
        measured(PAGES_16, 48.0, 150),
        measured(PAGES_8_COMPRESSED, 8.0, 100),
        measured(WRITE_OPTIMISED, 4.0, 70),
    ]);
    let published = |ids| {
        let results = judge(&found, ids);
        let mut both = results.iter().filter_map(|result| result.published);
        (both.next().unwrap(), results.len())
    };
    assert_eq!(published(100_000), (2.0, 3));
    assert_eq!(published(1_000_000_000), (1.3, 3));
    let results = judge(&found, 100_000);
    assert_eq!(
        verdict_of(&results, "write-optimised-writes-less").0,
        Verdict::Holds
    );
    // One round is no interval.
    let (verdict, why) = verdict_of(&results, "write-optimised-is-half-as-large");
    assert_eq!(verdict, Verdict::CannotBeTold, "{why}");
    assert!(why.starts_with("1 round gives no interval"), "{why}");
    let (verdict, why) = verdict_of(&results, "one-setting-where-innodb-needs-many");
    assert_eq!(verdict, Verdict::CannotBeTold);
    assert!(why.starts_with("not judged"));
}

#[test]
fn what_keeps_a_claim_from_being_judged_is_said() {
    let mut missing = measured(WRITE_OPTIMISED, 4.0, 70);
    missing.trials.clear();
    missing.summarize();
    missing.unsupported = Some("it is not installed".into());
    let mut unsteady = measured(PAGES_16, 48.0, 150);
    if let Some(steadiness) = &mut unsteady.trials[0].steadiness {
        steadiness.reached = false;
    }
    let found = measurements(vec![
        unsteady,
        measured(PAGES_8, 24.0, 150),
        measured(PAGES_8_COMPRESSED, 8.0, 70),
        missing,
        measured(SMALL_REDO, 12.0, 150),
        measured(NEIGHBOURS, 12.0, 150),
    ]);
    let results = judge(&found, 100_000);
    for (id, says) in [
        ("write-optimised-writes-less", "it is not installed"),
        ("no-neighbours-write-less", "does not rotate"),
    ] {
        let (verdict, why) = verdict_of(&results, id);
        assert_eq!(verdict, Verdict::CannotBeTold);
        assert!(why.contains(says), "{why}");
    }
    let (verdict, why) = verdict_of(&results, "half-page-half-bytes");
    assert_eq!(verdict, Verdict::CannotBeTold);
    assert!(why.starts_with("innodb 16k: not steady after"), "{why}");
}
