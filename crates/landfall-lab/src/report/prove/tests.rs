//! Reports of proofs: one or several, whole, failing, unproven and hostile.

use crate::report::tests::{HOSTILE, body, page, strategies};
use crate::sync::fixtures::results;
use crate::{Found, Results};
use landfall_results::proof::fixtures::{failing, proof};
use landfall_results::proof::{Expectation, ProofResults, Unchecked};

/// A document with these proofs alone.
fn proven(proofs: Vec<ProofResults>) -> Results {
    let mut document = results(Vec::new());
    document.directory = "/tmp/of-no-concern".to_owned();
    document.experiments = experiments(proofs).collect();
    document
}

fn experiments(proofs: Vec<ProofResults>) -> impl Iterator<Item = Found> {
    proofs
        .into_iter()
        .map(|proof| Found::Prove(Box::new(proof)))
}

fn expected(proof: ProofResults, expected: Expectation) -> ProofResults {
    ProofResults {
        expected: Some(expected),
        ..proof
    }
}

/// The charts of a page, in order.
fn charts(html: &str) -> Vec<&str> {
    let elements = body(html).split("class=\"chart\" id=\"").skip(1);
    elements.filter_map(|rest| rest.split('"').next()).collect()
}

#[track_caller]
fn assert_says(html: &str, all: &[&str]) {
    for words in all {
        assert!(html.contains(words), "{words}");
    }
}

#[test]
fn a_proof_that_lost_nothing_says_so_first() {
    let html = page(&proven(vec![proof()]));
    assert_says(
        &html,
        &[
            "</span> sqlite on ext4 lost nothing</h1>",
            "<p>sqlite journal_mode=wal synchronous=full on ext4 lost nothing in 1,234 crash states.</p>",
            "ext4 on a recorded device of 64 MiB",
            "The filesystem that was made",
            "40 were tried in every subset of the writes",
            "In model subset a disk with a volatile cache",
        ],
    );
    assert!(charts(&html).is_empty());
    for words in [
        "Published claims",
        "/tmp/of-no-concern",
        "The disk and filesystem underneath",
        "Promises that were broken",
        "Nothing was measured",
        "these figures",
    ] {
        assert!(!body(&html).contains(words), "{words}");
    }
}

#[test]
fn a_proof_that_lost_something_shows_where_and_how_to_see_it_again() {
    let html = page(&proven(vec![failing()]));
    assert_says(
        &html,
        &[
            "</span> sqlite on ext4 lost acknowledged transactions</h1>",
            "lost up to 3 acknowledged transactions, in 40 of 300 crash states.",
            "In the failing state that lacks least, transaction 7, the last one acknowledged, is not there. Of the 3 writes since the last flush 1 is missing and 1 is torn.",
            "<pre><code>landfall prove sqlite --state 1:2:s2a0</code></pre>",
            "Acknowledged transactions were lost",
            "data-label=\"Crash states\">40 of 300</td>",
            "3 of 8 sectors missing",
            "class=\"why\" colspan=\"3\">power cut</td>",
        ],
    );
    assert_eq!(charts(&html), ["timeline"]);
    assert!(body(&html).contains("data-expected=\"12\""));
}

#[test]
fn what_is_not_proven_is_not_called_safe() {
    let mut unproven = proof();
    unproven.unchecked = Some(Unchecked {
        states: 6,
        reason: "it hung".into(),
    });
    let html = page(&proven(vec![unproven]));
    assert_says(
        &html,
        &[
            "</span> sqlite on ext4 is not proven</h1>",
            "6 of 1,240 crash states could not be checked: it hung.",
            "class=\"doubt\" aria-hidden=\"true\">?",
        ],
    );
    assert!(!body(&html).contains("lost nothing"));
}

#[test]
fn several_proofs_are_a_table_and_the_unexpected_ones_are_drawn() {
    let as_expected = page(&proven(vec![
        expected(proof(), Expectation::LosesNothing),
        expected(failing(), Expectation::Loses),
        expected(failing(), Expectation::Loses),
    ]));
    assert_says(
        &as_expected,
        &[
            "All 3 proofs came out as expected</h1>",
            "Of what is known to be safe 1 lost nothing; of what is known to lose data 2 were caught.",
            "How a planted fault shows",
            "1,834 crash states were checked in all.",
        ],
    );
    assert_eq!(charts(&as_expected), ["timeline-1"]);
    let unexpected = page(&proven(vec![
        expected(proof(), Expectation::Loses),
        expected(failing(), Expectation::LosesNothing),
        expected(failing(), Expectation::LosesNothing),
        expected(failing(), Expectation::Loses),
    ]));
    assert_says(
        &unexpected,
        &[
            "3 of 4 proofs did not come out as expected</h1>",
            "Where promises were broken",
            "✕ NO",
        ],
    );
    assert_eq!(charts(&unexpected), ["timeline-1", "timeline-2"]);
    let asked = page(&proven(vec![proof(), failing()]));
    assert_says(&asked, &["1 of 2 subjects broke a promise</h1>"]);
    assert!(!body(&asked).contains("As expected"));
}

#[test]
fn many_failures_do_not_make_a_page_that_no_browser_likes() {
    let wrong = || expected(failing(), Expectation::LosesNothing);
    let html = page(&proven((0..100).map(|_| wrong()).collect()));
    assert_eq!(charts(&html).len(), 12);
    assert!(html.contains("The first 12 of 100"));
}

#[test]
fn what_a_subject_calls_itself_is_only_text() {
    let mut hostile = failing();
    hostile.subject = HOSTILE.into();
    hostile.violations[0].detail = HOSTILE.to_owned();
    if let Some(shortest) = &mut hostile.shortest {
        shortest.command = HOSTILE.to_owned();
        shortest.details = vec![HOSTILE.to_owned()];
    }
    let html = page(&proven(vec![hostile]));
    let plain = page(&proven(vec![failing()]));
    for sign in ["<script", "</script", "<!--"] {
        let (here, there) = (html.matches(sign).count(), plain.matches(sign).count());
        assert_eq!(here, there, "{sign}");
    }
}

#[test]
fn proofs_stand_beside_other_experiments() {
    let mut both = results(strategies(|_| true));
    both.experiments.extend(experiments(vec![failing()]));
    let html = page(&both);
    assert_says(
        &html,
        &[
            "<h2 class=\"part\" id=\"part-2\">What a power cut leaves</h2>",
            "<h2>The disk and filesystem underneath</h2>",
            "none as safe is clearly faster.",
            "lost up to 3 acknowledged transactions",
        ],
    );
    assert!(charts(&html).contains(&"timeline"));
}
