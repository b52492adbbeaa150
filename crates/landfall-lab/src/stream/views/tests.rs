//! Reports of `stream`: whole, hostile, bare, and beside another experiment.

use landfall_os::Medium;
use landfall_results::Metric;

use crate::report::tests::{HOSTILE, body, page, strategies, sync_of};
use crate::stream::fixtures::{standard_results, stream_results, unmeasured};
use crate::stream::{self, StreamResults};
use crate::sync::fixtures::results;
use crate::{Found, Notice, Results, Weight};

/// A document of `stream` alone.
fn saved(stream: StreamResults) -> Results {
    let mut document = results(Vec::new());
    document.experiments = vec![stream.into()];
    document
}

fn stream_of(results: &mut Results) -> &mut StreamResults {
    match results.experiments.last_mut() {
        Some(Found::Stream(stream)) => stream,
        other => panic!("not stream: {other:?}"),
    }
}

/// The charts of a page, in order.
fn charts(html: &str) -> Vec<&str> {
    let elements = body(html).split("class=\"chart\" id=\"").skip(1);
    elements.filter_map(|rest| rest.split('"').next()).collect()
}

const SAVED: [&str; 6] = [
    "stream-size",
    "stream-method",
    "stream-allocation",
    "stream-chunk",
    "stream-cost-method",
    "stream-cost-allocation",
];

/// What is known of the device.
const DEVICE: [Metric; 4] = [
    Metric::DeviceWrittenMib,
    Metric::DeviceReadMib,
    Metric::DeviceWriteRequests,
    Metric::DeviceFlushes,
];

#[test]
fn a_standard_run_of_stream_has_every_chart_with_its_table() {
    let html = page(&saved(standard_results()));
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert_eq!(charts(&html), SAVED);
    assert_eq!(body(&html).matches("<summary>Data: ").count(), 6);
    assert!(!body(&html).contains("data-expected=\"0\""));
    assert!(html.contains("<h1>What saving a large state costs</h1>"));
    for words in [
        "The quickest save of 512 MiB is durable after 1.02 s (95% interval",
        "The program waits least with ",
        "The wall of write (append) is between 512 MiB and 1.0 GiB",
        "The dashed line stands at the dirty limit of 600 MiB.",
        "Left out for want of space, memory or time: 4.0 GiB.",
        "20,000 MB/s for making the bytes alone",
        "write-zeroes/write/512M",
    ] {
        assert!(body(&html).contains(words), "{words}");
    }
}

#[test]
fn two_experiments_have_a_part_each() {
    let mut both = results(strategies(|_| true));
    both.experiments.push(standard_results().into());
    let html = page(&both);
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert_eq!(charts(&html).len(), 11 + SAVED.len());
    let at = |text: &str| {
        body(&html)
            .find(text)
            .unwrap_or_else(|| panic!("no {text}"))
    };
    let order = [
        "<h1>What it costs to make data durable</h1>",
        "none as safe is clearly faster.",
        "id=\"front\"",
        "<h2 class=\"part\" id=\"change\">What to change</h2>",
        "<h2 class=\"part\" id=\"part-1\">What a durable write costs</h2>",
        "<h3 class=\"chapter\">Durable writes per second</h3>",
        "<h4 class=\"title\">By allocation (fdatasync",
        "<h2 class=\"part\" id=\"part-2\">What saving a large state costs</h2>",
        "The quickest save of 512 MiB is durable",
        "<h3 class=\"chapter\">MB per second by size</h3>",
        "<h2>The disk and filesystem underneath</h2>",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])));
    // One of them may have measured nothing.
    sync_of(&mut both).series = strategies(|_| false);
    let html = page(&both);
    assert!(!html.contains("Nothing was measured") && !html.contains("No durable write"));
    assert_eq!(charts(&html), SAVED);
}

#[test]
fn what_a_document_of_stream_says_is_only_text() {
    let mut hostile = saved(standard_results());
    let stream = stream_of(&mut hostile);
    for series in &mut stream.series {
        series.key.push_str(HOSTILE);
        if !series.is_measured() {
            series.unsupported = Some(HOSTILE.to_owned());
        }
    }
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
    for series in &mut stream_of(&mut memory).series {
        series.summary.retain(|metric, _| !DEVICE.contains(metric));
    }
    let html = page(&memory);
    assert!(html.contains("where nothing is durable"));
    assert!(html.contains("The quickest save of 512 MiB is handed over and synced"));
    for words in [
        "512 MiB is durable",
        "until durable",
        "until the bytes are durable",
    ] {
        let begin = body(&html)
            .split("The disk and filesystem underneath")
            .next();
        assert!(!begin.unwrap_or_default().contains(words), "{words}");
    }
    let danger = Notice::new("x", Weight::Danger, "no");
    let mut doubtful = saved(standard_results());
    doubtful.notices = vec![danger];
    assert!(page(&doubtful).contains("The quickest save of 512 MiB is meant to be durable"));
}

#[test]
fn a_stream_of_which_parts_are_missing_shows_the_rest() {
    let mut bare = stream_results();
    bare.walls.clear();
    bare.dirty_limits = None;
    bare.ceilings.clear();
    bare.sizes_left_out.clear();
    for series in &mut bare.series {
        series.trials.truncate(1);
        series.summary.retain(|metric, _| !DEVICE.contains(metric));
        series.summary.remove(&Metric::PeakResidentMib);
    }
    let html = page(&saved(bare.clone()));
    assert_eq!(
        charts(&html),
        ["stream-size", "stream-method", "stream-cost-method"]
    );
    assert!(html.contains("A mark is a single measurement."));
    assert!(html.contains("One round cannot say how far chance moved it"));
    assert!(html.contains("No wall was found"));
    assert!(!html.contains("dirty limit") || !body(&html).contains("dirty limit of"));
    // Nothing at all, and nothing that can be carried out.
    let plan = stream::Plan::short();
    let refused = plan.strategies(&plan.sizes()).0.into_iter().map(unmeasured);
    for series in [Vec::new(), refused.collect()] {
        let refused = !series.is_empty();
        let html = page(&saved(StreamResults {
            series,
            ..bare.clone()
        }));
        assert!(html.contains("Nothing was measured"));
        assert!(charts(&html).is_empty());
        assert_eq!(html.contains("not supported here"), refused);
    }
}
