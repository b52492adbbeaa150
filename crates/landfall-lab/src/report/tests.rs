//! Reports of hostile, empty and large documents.

use landfall_os::Medium;

use super::render;
use crate::claim::{Band, ClaimResult, Verdict};
use crate::stream::fixtures::{standard_results, stream_results, unmeasured as unmeasured_save};
use crate::stream::{self, StreamResults};
use crate::sync::fixtures::{measured, results, unmeasured};
use crate::sync::{Plan, StrategyResult, SyncResults};
use crate::{Experiment, Notice, Results, Weight};

const HOSTILE: &str = "</script><script>alert('&')</script><!--";

/// The standard plan, of which `is_measured` says what was measured.
fn strategies(is_measured: impl Fn(&StrategyResult) -> bool) -> Vec<StrategyResult> {
    let strategies = Plan::standard().strategies;
    let count = strategies.len() as f64;
    let result = |(index, strategy)| {
        let unmeasured = unmeasured(strategy);
        if !is_measured(&unmeasured) {
            return unmeasured;
        }
        let rate = 1_000.0 + 1_000.0 * index as f64 / count;
        let rates: Vec<f64> = (0..10)
            .map(|round| rate * (0.95 + 0.01 * f64::from(round)))
            .collect();
        measured(strategy, &rates, 1.0, 1.0)
    };
    strategies.into_iter().enumerate().map(result).collect()
}

fn page(results: &Results) -> String {
    render(results).expect("a report")
}

fn sync_of(results: &mut Results) -> &mut SyncResults {
    match &mut results.experiments[0] {
        Experiment::Sync(sync) => sync,
        other => panic!("not sync: {other:?}"),
    }
}

/// What comes before the scripts.
fn body(html: &str) -> &str {
    html.split("<script").next().unwrap_or_default()
}

#[test]
fn a_standard_run_has_every_chart_and_is_small() {
    let html = page(&results(strategies(|_| true)));
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert_eq!(body(&html).matches("data-expected=").count(), 10);
    assert_eq!(body(&html).matches("<summary>Data</summary>").count(), 10);
    assert!(!body(&html).contains("data-expected=\"0\""));
}

#[test]
fn what_the_machine_calls_itself_is_only_text() {
    let mut hostile = results(strategies(|_| true));
    hostile.directory = HOSTILE.to_owned();
    hostile.command = HOSTILE.to_owned();
    hostile.started = HOSTILE.to_owned();
    hostile.host.kernel = HOSTILE.to_owned();
    hostile.filesystem.kind = HOSTILE.to_owned();
    hostile.notices = vec![Notice::new("x", Weight::Danger, HOSTILE)];
    let sync = sync_of(&mut hostile);
    sync.strategies[0].allocation = HOSTILE.to_owned();
    sync.strategies[1].unsupported = Some(HOSTILE.to_owned());
    sync.claims = vec![ClaimResult {
        id: "x".to_owned(),
        statement: HOSTILE.to_owned(),
        quantity: HOSTILE.to_owned(),
        published: None,
        source: format!("{HOSTILE} javascript:alert(1) https://example.org/\"><b>"),
        band: Band::at_least(1.0),
        today: None,
        verdict: Verdict::CannotBeTold,
        why: HOSTILE.to_owned(),
    }];
    let plain = page(&results(strategies(|_| true)));
    let html = page(&hostile);
    for sign in ["<script", "</script", "<b>", "<!--"] {
        let (here, there) = (html.matches(sign).count(), plain.matches(sign).count());
        assert_eq!(here, there, "{sign}");
    }
    assert!(!html.contains("href=\"javascript"));
}

#[test]
fn the_libraries_cannot_end_the_element_that_they_stand_in() {
    for library in [
        include_str!("vendor/d3.min.js"),
        include_str!("vendor/plot.umd.min.js"),
        super::page::SCRIPT,
    ] {
        assert!(!library.contains("</script") && !library.contains("<!--"));
    }
    assert!(!super::page::STYLE.contains("</style"));
}

#[test]
fn only_durable_writes_are_called_cheap() {
    let html = page(&results(strategies(|strategy| {
        strategy.method == "none" || strategy.key == "overwrite/fdatasync/8K"
    })));
    assert!(html.contains("The cheapest durable write of 8 KiB here:"));
    assert!(html.contains("by overwrite with fdatasync; nothing else of its kind was measured"));
    let html = page(&results(strategies(|strategy| !strategy.durable)));
    assert!(html.contains("No durable write was measured"));
    assert!(html.contains("Appending and overwriting were not both measured"));
}

#[test]
fn in_memory_nothing_is_called_durable() {
    let mut memory = results(strategies(|_| true));
    memory.filesystem.medium = Medium::Memory;
    let sync = sync_of(&mut memory);
    for strategy in &mut sync.strategies {
        if let Some(summary) = &mut strategy.summary {
            summary.device = None;
        }
    }
    let html = page(&memory);
    assert!(html.contains("where nothing is durable"));
    assert!(html.contains("Writes per second, none of them durable"));
    assert!(!html.contains("\"durable\":true"));
    assert!(!html.contains("The cheapest durable write"));
    assert!(html.contains("writes and flushes could not be counted"));
    assert!(!body(&html).contains("id=\"cost-"));
}

#[test]
fn a_document_without_measurements_says_so() {
    let mut empty = results(Vec::new());
    assert!(page(&empty).contains("Nothing was measured"));
    empty.experiments.clear();
    assert!(page(&empty).contains("Nothing was measured"));
    let html = page(&results(strategies(|_| false)));
    assert!(html.contains("Nothing was measured"));
    assert!(html.contains("Not measured here"));
    assert!(!body(&html).contains("data-expected="));
}

#[test]
fn one_round_claims_no_interval() {
    let mut single = results(strategies(|_| true));
    let sync = sync_of(&mut single);
    for strategy in &mut sync.strategies {
        strategy.trials.truncate(1);
    }
    let html = page(&single);
    assert!(html.contains("one round cannot say how far chance moved it"));
    assert!(html.contains("times as fast (one round)"));
    assert!(html.contains("A dot is a single measurement."));
}

#[test]
fn writes_that_cannot_be_told_from_flushes_are_bounded() {
    let mut bounded = results(strategies(|_| true));
    let sync = sync_of(&mut bounded);
    for strategy in &mut sync.strategies {
        if let Some(device) = strategy.summary.as_mut().and_then(|s| s.device.as_mut()) {
            device.writes = None;
        }
    }
    let html = page(&bounded);
    assert!(html.contains("≤2.00"));
    assert!(html.contains("Overwriting costs at most 2 writes and 1 flush"));
}

/// A document of `stream` alone.
fn saved(stream: StreamResults) -> Results {
    let mut document = results(Vec::new());
    document.experiments = vec![Experiment::Stream(stream)];
    document
}

fn stream_of(results: &mut Results) -> &mut StreamResults {
    match results.experiments.last_mut() {
        Some(Experiment::Stream(stream)) => stream,
        other => panic!("not stream: {other:?}"),
    }
}

/// The charts of a page, in order.
fn charts(html: &str) -> Vec<&str> {
    let elements = body(html).split("class=\"chart\" id=\"").skip(1);
    elements.filter_map(|rest| rest.split('"').next()).collect()
}

const SAVED: [&str; 9] = [
    "stream-size",
    "stream-method",
    "stream-allocation",
    "stream-chunk",
    "stream-cost-method",
    "stream-cost-allocation",
    "break-even-seconds",
    "break-even-bytes",
    "saving-cost",
];

#[test]
fn a_standard_run_of_stream_has_every_chart_with_its_table() {
    let html = page(&saved(standard_results()));
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert_eq!(charts(&html), SAVED);
    assert_eq!(body(&html).matches("<summary>Data</summary>").count(), 9);
    assert!(!body(&html).contains("data-expected=\"0\""));
    assert!(html.contains("<h1>What saving a large state costs</h1>"));
    for words in [
        "A state of 512 MiB is durable 1.02 s after the save begins at the earliest (95% interval",
        "The shortest hand-over is",
        "The wall of write (append) is between 512 MiB and 1.0 GiB",
        "Dumping 128 MiB takes the program less time than logging",
        "The dashed line stands at the dirty limit of 600 MiB.",
        "Left out for want of space, memory or time: 4.0 GiB.",
        "20,000 MB/s for making the bytes alone",
        "write-zeroes/write/512M",
        "every-second: up to a second of updates",
    ] {
        assert!(body(&html).contains(words), "{words}");
    }
}

#[test]
fn two_experiments_have_a_part_each() {
    let mut both = results(strategies(|_| true));
    both.experiments
        .push(Experiment::Stream(standard_results()));
    let html = page(&both);
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert_eq!(charts(&html).len(), 10 + 9);
    let at = |text: &str| {
        body(&html)
            .find(text)
            .unwrap_or_else(|| panic!("no {text}"))
    };
    let order = [
        "<h1>What it costs to make data durable</h1>",
        "The cheapest durable write of 8 KiB here:",
        "A state of 512 MiB is durable",
        "<h2 class=\"part\">What a durable write costs</h2>",
        "<h3 class=\"chapter\">Durable writes per second</h3>",
        "<h4 class=\"title\">By allocation (fdatasync",
        "<h2 class=\"part\">What saving a large state costs</h2>",
        "<h3 class=\"chapter\">MB per second by size</h3>",
        "<h2>What this directory stands on</h2>",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])));
    // One of them may have measured nothing.
    sync_of(&mut both).strategies = strategies(|_| false);
    let html = page(&both);
    assert!(!html.contains("Nothing was measured") && !html.contains("No durable write"));
    assert_eq!(charts(&html), SAVED);
}

#[test]
fn what_a_document_of_stream_says_is_only_text() {
    let mut hostile = saved(standard_results());
    let stream = stream_of(&mut hostile);
    for strategy in &mut stream.strategies {
        strategy.allocation.push_str(HOSTILE);
        strategy.method.push_str(HOSTILE);
        strategy.key.push_str(HOSTILE);
        if strategy.summary.is_none() {
            strategy.unsupported = Some(HOSTILE.to_owned());
        }
    }
    for wall in &mut stream.walls {
        wall.method.push_str(HOSTILE);
        wall.allocation.push_str(HOSTILE);
    }
    stream.ceilings[1].what = HOSTILE.to_owned();
    let (html, plain) = (page(&hostile), page(&saved(standard_results())));
    for sign in ["<script", "</script", "<!--"] {
        let (here, there) = (html.matches(sign).count(), plain.matches(sign).count());
        assert_eq!(here, there, "{sign}");
    }
    assert!(charts(&html).contains(&"stream-size"));
}

#[test]
fn a_save_in_memory_is_not_called_durable() {
    let mut memory = saved(standard_results());
    memory.filesystem.medium = Medium::Memory;
    for strategy in &mut stream_of(&mut memory).strategies {
        if let Some(summary) = &mut strategy.summary {
            summary.device = None;
        }
    }
    let html = page(&memory);
    assert!(html.contains("where nothing is durable"));
    assert!(html.contains("A state of 512 MiB is handed over and synced"));
    assert!(html.contains("In main memory a power cut takes everything."));
    for words in [
        "512 MiB is durable",
        "dump is durable",
        "until durable",
        "until the bytes are durable",
        "nothing that was accepted",
    ] {
        let begin = body(&html).split("What this directory stands on").next();
        assert!(!begin.unwrap_or_default().contains(words), "{words}");
    }
    let danger = Notice::new("x", Weight::Danger, "no");
    let mut doubtful = saved(standard_results());
    doubtful.notices = vec![danger];
    assert!(page(&doubtful).contains("A state of 512 MiB is meant to be durable"));
}

#[test]
fn a_stream_of_which_parts_are_missing_shows_the_rest() {
    let mut bare = stream_results();
    bare.saving = None;
    bare.walls.clear();
    bare.dirty_limits = None;
    bare.ceilings.clear();
    bare.sizes_left_out.clear();
    for strategy in &mut bare.strategies {
        strategy.trials.truncate(1);
        if let Some(summary) = &mut strategy.summary {
            summary.device = None;
            summary.peak_resident_mib = None;
        }
    }
    let html = page(&saved(bare.clone()));
    assert_eq!(
        charts(&html),
        ["stream-size", "stream-method", "stream-cost-method"]
    );
    assert!(html.contains("A mark is a single measurement."));
    assert!(html.contains("one round cannot say how far chance moved it"));
    assert!(html.contains("No method met a wall"));
    assert!(!html.contains("dirty limit") || !body(&html).contains("dirty limit of"));
    // Only what was asked of saving.
    let only_saving = StreamResults {
        strategies: Vec::new(),
        saving: stream_results().saving,
        ..bare.clone()
    };
    let html = page(&saved(only_saving));
    assert_eq!(charts(&html), SAVED[6..]);
    assert!(!html.contains("Nothing was measured"));
    // Nothing at all, and nothing that can be carried out.
    let plan = stream::Plan::short();
    let refused = plan.strategies(u64::MAX).0.into_iter().map(unmeasured_save);
    for strategies in [Vec::new(), refused.collect()] {
        let refused = !strategies.is_empty();
        let html = page(&saved(StreamResults {
            strategies,
            ..bare.clone()
        }));
        assert!(html.contains("Nothing was measured"));
        assert!(charts(&html).is_empty());
        assert_eq!(html.contains("not supported here"), refused);
    }
}
