//! The report, opened by a real browser that has no network.
//!
//! The page counts the marks that it drew; the number that it should have drawn was counted from the
//! results, before any script saw them. Without a browser the test says so and is skipped.

mod common;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::pages::{are_here, repository};
use serde_json::{Value, json};

const LARGEST: u64 = 1_000_000;
const CHARTS: [&str; 11] = [
    "front",
    "rate-allocation",
    "rate-method",
    "rate-size",
    "rate-threads",
    "rate-pages",
    "latency-allocation",
    "latency-method",
    "cost-allocation",
    "cost-method",
    "cost-pages",
];

/// Charts of experiment `stream`, where one axis after the other is varied.
const STREAM_CHARTS: [&str; 3] = ["stream-size", "stream-method", "stream-cost-method"];
const STREAM: &str = "stream --size 1M,2M,4M --method write,mmap,direct+write,paced --rounds 5";

/// Charts of experiment `dump-vs-log`.
const DUMP_CHARTS: [&str; 3] = ["break-even-seconds", "break-even-bytes", "saving-cost"];
const DUMP: &str = "dump-vs-log --state 1M --updates 200 --seconds 0.1 --rounds 5";

/// Charts of experiment `binlog`, of MariaDB alone.
const BINLOG_CHARTS: [&str; 3] = ["binlog-rate-1", "binlog-flushes-1", "binlog-kib-1"];
const BINLOG: &str = "binlog --database mariadb --fs ext4,size=512M --on memory:ext2,size=512M \
     --clients 1,2 --rows 1000 --rounds 2 --seconds 0.1";

/// Charts of experiment `amplify` where a store is measured along its knob.
const CURVE_CHARTS: [&str; 1] = ["amplify-curve"];
const CURVE: &str = "amplify --part curve --database landfall-store,sqlite --on dir --ids 1000 --clients 1 --pool 6M \
     --seconds 0.1 --most-seconds 0.2";

/// The browser that $CHROMIUM names, or one of the usual names.
fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["chromium", "chromium-browser", "google-chrome"];
    named.or_else(|| {
        std::env::split_paths(&path)
            .flat_map(|directory| usual.map(|name| directory.join(name)))
            .find(|candidate| candidate.is_file())
    })
}

/// A page as the browser left it, and what it had to say.
struct Opened {
    dom: String,
    complaints: Vec<String>,
}

fn open(browser: &Path, page: &Path, width: u32) -> Opened {
    let profile = tempfile::tempdir().expect("a directory for the profile");
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            // A page that frames another one looks into it.
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={width},900"))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {said}", output.status);
    Opened {
        dom: String::from_utf8_lossy(&output.stdout).into_owned(),
        complaints: said
            .lines()
            .filter(|line| line.contains("CONSOLE"))
            .map(str::to_owned)
            .collect(),
    }
}

/// Frames a page at the size of a window and says where things are in it. A browser's own window cannot be as narrow as
/// a phone.
const FRAME: &str = r##"<!DOCTYPE html>
<style>html, body { margin: 0 } iframe { border: 0 }</style>
<iframe id="frame" width="WIDTH" height="HEIGHT" src="PAGE"></iframe>
<pre id="found"></pre>
<script>
const frame = document.getElementById("frame");
const look = () => {
  const page = frame.contentDocument;
  const root = page.documentElement;
  if (root.dataset.report === "pending") {
    setTimeout(look, 50);
    return;
  }
  const box = (element) => {
    const { top, bottom } = element?.getBoundingClientRect() ?? {};
    return { top, bottom };
  };
  const folds = [...page.querySelectorAll("details")];
  const found = {
    report: root.dataset.report,
    overhang: root.dataset.overhang,
    verdict: box(page.querySelector("#verdict")),
    chart: box(page.querySelector("#front svg, #timeline svg")),
    mark: [...page.querySelectorAll(".counted > *")].map(box).sort((one, other) => one.top - other.top)[0],
    open: folds.filter((fold) => fold.open).map((fold) => fold.id),
    target: box(page.querySelector(":target")),
  };
  folds.forEach((fold) => { fold.open = true; });
  found.excess = root.scrollWidth - root.clientWidth;
  document.getElementById("found").textContent = JSON.stringify(found);
};
frame.addEventListener("load", look);
</script>
"##;

/// What a window of this size shows of a page at first, opened at an anchor such as `#notices`, or at its top.
fn shown(browser: &Path, page: &Path, (width, height): (u32, u32), anchor: &str) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    let frame = directory.path().join("frame.html");
    let html = FRAME
        .replace("WIDTH", &width.to_string())
        .replace("HEIGHT", &height.to_string())
        .replace("PAGE", &format!("file://{}{anchor}", page.display()));
    fs::write(&frame, html).expect("the frame is written");
    let opened = open(browser, &frame, 1400);
    let found = opened.dom.split("<pre id=\"found\">").nth(1);
    let found = found.and_then(|rest| rest.split("</pre>").next());
    serde_json::from_str(found.unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {:?}", opened.complaints))
}

const DESKTOP: (u32, u32) = (1280, 800);
const PHONE: (u32, u32) = (390, 844);

/// The verdict and the picture are on the first screen, of a phone at least where the picture begins, and nothing is
/// wider than the window, even when every fold is open.
fn check_first_screen(browser: &Path, page: &Path) {
    for size in [DESKTOP, PHONE] {
        let found = shown(browser, page, size, "");
        let at = |what: &str, side: &str| {
            let number = found[what][side].as_f64();
            number.unwrap_or_else(|| panic!("no {what}: {found}"))
        };
        assert_eq!(found["report"], "drawn", "{size:?}: {found}");
        assert_eq!(found["excess"], 0, "{size:?}: {found}");
        assert_eq!(found["overhang"], "0", "{size:?}: {found}");
        assert_eq!(found["open"], json!([]), "{size:?}: {found}");
        let height = f64::from(size.1);
        assert!(at("verdict", "top") >= 0.0, "{size:?}: {found}");
        assert!(
            at("verdict", "bottom") <= at("chart", "top"),
            "{size:?}: {found}"
        );
        let last = if size == DESKTOP { "chart" } else { "mark" };
        assert!(at(last, "bottom") <= height, "{size:?}: {found}");
    }
}

/// The value of an attribute in the text of a start tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    Some(rest.split_once('"')?.0)
}

/// The start tags of a document that have an attribute.
fn tags_with<'a>(dom: &'a str, name: &str) -> Vec<&'a str> {
    // The libraries end every document; no element that matters comes after them.
    let body = dom.split("<script>").next().unwrap_or_default();
    body.split('<')
        .filter_map(|piece| piece.split('>').next())
        .filter(|tag| attribute(tag, name).is_some())
        .collect()
}

/// What is wrong with an opened report that must have `charts`; empty if nothing is.
fn faults(opened: &Opened, charts: &[&str]) -> String {
    let mut faults = String::new();
    for complaint in &opened.complaints {
        let _ = writeln!(faults, "the browser complains: {complaint}");
    }
    let roots = tags_with(&opened.dom, "data-report");
    let of_root = |name| roots.first().and_then(|tag| attribute(tag, name));
    if of_root("data-report") != Some("drawn") {
        let _ = writeln!(faults, "the page is not drawn: {roots:?}");
    } else if of_root("data-excess") != Some("0") {
        let _ = writeln!(faults, "the page is too wide: {roots:?}");
    } else if of_root("data-overhang") != Some("0") {
        let _ = writeln!(faults, "a text sticks out of its chart: {roots:?}");
    }
    let found = tags_with(&opened.dom, "data-expected");
    for chart in charts {
        let Some(tag) = found.iter().find(|tag| attribute(tag, "id") == Some(chart)) else {
            let _ = writeln!(faults, "there is no chart {chart}");
            continue;
        };
        let count = |name| attribute(tag, name).and_then(|text| text.parse::<u32>().ok());
        let (expected, drawn) = (count("data-expected"), count("data-drawn"));
        if expected.is_none_or(|expected| expected == 0) || drawn != expected {
            let _ = writeln!(faults, "{chart} has {drawn:?} marks of {expected:?}");
        }
    }
    if found.len() != charts.len() {
        let _ = writeln!(faults, "{} charts instead of {}", found.len(), charts.len());
    }
    let tables = opened
        .dom
        .split("<figure>")
        .skip(1)
        .filter(|figure| {
            let figure = figure.split("</figure>").next().unwrap_or_default();
            ["<details", "<caption>", "scope=\"row\"", "<td"]
                .iter()
                .all(|part| figure.contains(part))
        })
        .count();
    if tables != charts.len() {
        let _ = writeln!(faults, "{tables} data tables for {} charts", charts.len());
    }
    faults
}

/// Measures a little of everything that `plan` asks for and gives the directory with the report.
fn report(plan: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let output = Command::new(env!("CARGO_BIN_EXE_landfall"))
        .args(["--quiet", "lab"])
        .args(plan.split_whitespace())
        .arg("--report")
        .arg(directory.path().join("report"))
        .arg(directory.path())
        .output()
        .expect("landfall starts");
    assert!(
        directory.path().join("report/index.html").is_file(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    directory
}

#[test]
fn a_report_of_databases_is_complete_too() {
    let Some(browser) = browser() else {
        return common::skip("no Chromium on PATH, and $CHROMIUM names none");
    };
    let mariadb = Command::new("mariadbd").arg("--version").output();
    if !common::is_root() || mariadb.is_err() {
        return common::skip("MariaDB, or root for its filesystems, is not here");
    }
    let directory = report(BINLOG);
    let page = directory.path().join("report/index.html");
    for width in [1280, 500] {
        let found = faults(&open(&browser, &page, width), &BINLOG_CHARTS);
        assert!(found.is_empty(), "at a width of {width}:\n{found}");
    }
}

#[test]
fn a_report_of_stream_is_complete_too() {
    let Some(browser) = browser() else {
        return common::skip("no Chromium on PATH, and $CHROMIUM names none");
    };
    let directory = report(STREAM);
    let page = directory.path().join("report/index.html");
    let html = fs::read_to_string(&page).expect("the page");
    assert!(
        html.len() as u64 <= LARGEST,
        "the page has {} bytes",
        html.len()
    );
    for width in [1280, 500] {
        let found = faults(&open(&browser, &page, width), &STREAM_CHARTS);
        assert!(found.is_empty(), "at a width of {width}:\n{found}");
    }
    let dumped = report(DUMP);
    let dumped = dumped.path().join("report/index.html");
    for width in [1280, 500] {
        let found = faults(&open(&browser, &dumped, width), &DUMP_CHARTS);
        assert!(found.is_empty(), "at a width of {width}:\n{found}");
    }
    let curve = report(CURVE);
    let curve = curve.path().join("report/index.html");
    for width in [1280, 500] {
        let found = faults(&open(&browser, &curve, width), &CURVE_CHARTS);
        assert!(found.is_empty(), "at a width of {width}:\n{found}");
    }
    // A median that is lost must be seen.
    let broken = html.replacen("\"value\":", "\"lost\":", 1);
    assert_ne!(broken, html, "nothing was planted");
    fs::write(directory.path().join("broken.html"), broken).expect("the copy is written");
    let opened = open(&browser, &directory.path().join("broken.html"), 1280);
    let found = faults(&opened, &STREAM_CHARTS);
    assert!(
        found.contains("marks of") || found.contains("not drawn"),
        "unseen: {found}"
    );
}

/// What happened around a power cut: a write that arrived, one that is missing, one that is torn, and
/// one that came too late, with everything else that can happen to a device.
fn timeline() -> Value {
    let write = |offset: u64, missing: u64, after_cut: bool| {
        json!({
            "ms": 1.0, "event": "write", "offset": offset, "bytes": 4096, "sectors": 8,
            "missing": missing, "after_cut": after_cut,
        })
    };
    let other = |event: &str| json!({ "ms": 2.0, "event": event, "after_cut": false });
    let said = |event: &str, transaction: u64| json!({ "ms": 3.0, "event": event, "transaction": transaction, "after_cut": false });
    json!([
        said("send", 1),
        write(9 << 20, 0, false),
        other("flush"),
        said("acknowledge", 1),
        said("send", 2),
        write((9 << 20) + 4096, 8, false),
        write(33 << 20, 3, false),
        other("lying-flush"),
        other("refused"),
        said("acknowledge", 2),
        write(33 << 20, 8, true),
    ])
}

/// A proof in which something was lost.
fn failing_proof(expected: &str) -> Value {
    json!({
        "experiment": "prove", "subject": "files method=fdatasync allocation=append size=8K",
        "promises_atomic": true, "promises_order": true, "filesystem_spec": "ext4,barrier=0",
        "device_bytes": 64 << 20, "model": "subset", "seed": 1, "faults": ["lying-flush"],
        "writeback": true,
        "workload": {
            "sent": 2, "acknowledged": 2, "writes": 4, "written_bytes": 16384, "flushes": 1,
            "spilled_bytes": 0, "ended": null,
        },
        "coverage": {
            "surveyed": 2, "possible": 1_000.0, "sampled": 0,
            "epochs": 2, "every_write": 2, "every_sector": 1, "planned": 300, "equal": 3,
            "checked": 300, "states_per_minute": 6000.0, "workers": 2,
        },
        "violations": [{
            "violation": "lost", "states": 40, "example": "1:1:none",
            "detail": "of 2 acknowledged transactions 2 are not there: 1-2",
        }],
        "failing_states": 40, "losing_states": 40, "worst_lost": 2, "only_last": false,
        "shortest": {
            "name": "1:1:s2a0", "command": "landfall prove files --fs ext4,barrier=0 --state 1:1:s2a0",
            "details": ["transaction 2, the last one acknowledged, is not there"],
            "timeline": timeline(),
        },
        "unchecked": null, "expected": expected,
    })
}

/// The document's report, checked in the browser; gives the names of its charts.
fn check_document(browser: &Path, directory: &Path, document: &Value) -> Vec<String> {
    let results = landfall_lab::Results::from_json(&document.to_string()).expect("a document");
    let advice = landfall_lab::advice::advise(&results, "landfall-report", None);
    let everything = landfall_lab::advice::Scope::of(landfall_lab::rules::System::ALL);
    let page = landfall_lab::report::page(&results, &advice, &everything);
    let html = landfall_report::html::render(&page).expect("a report");
    let page = directory.join("rendered.html");
    fs::write(&page, &html).expect("the page is written");
    let charts: Vec<String> = tags_with(&html, "data-expected")
        .iter()
        .filter_map(|tag| attribute(tag, "id").map(str::to_owned))
        .collect();
    let names: Vec<&str> = charts.iter().map(String::as_str).collect();
    for width in [1280, 500] {
        let found = faults(&open(browser, &page, width), &names);
        assert!(found.is_empty(), "at a width of {width}:\n{found}");
    }
    charts
}

#[test]
fn reports_of_what_power_cuts_leave_are_complete_too() {
    let Some(browser) = browser() else {
        return common::skip("no Chromium on PATH, and $CHROMIUM names none");
    };
    let directory = report(
        "sync --ops 20 --rounds 2 --allocation overwrite,append --sync fdatasync,o_dsync,none",
    );
    let read = |path: &Path| -> Value {
        let text = fs::read_to_string(path).expect("the results");
        serde_json::from_str(&text).expect("a document")
    };
    let measured = read(&directory.path().join("report/results.json"));
    // What is on the first screen depends on how much there is to say, so that of a kept run is looked at.
    let kept = if are_here() {
        read(&repository().join("docs/results/documents/sync-ext4.json"))
    } else {
        measured.clone()
    };

    // Much is to be said of this machine, and the path is long: the picture is on the first screen nevertheless.
    let mut doubted = kept.clone();
    let notices = doubted["notices"].as_array_mut().expect("notices");
    for code in ["run-drift", "busy-machine"] {
        let text = "The machine changed while it was measured, and was busy with something else for most of the time, both by far more than is usual.";
        notices.push(json!({ "code": code, "weight": "warning", "text": text }));
    }
    let where_it_was = &mut doubted["directory"];
    assert!(where_it_was.is_string(), "{where_it_was}");
    *where_it_was = format!("/{}", "a/long/path/".repeat(6)).into();
    check_document(&browser, directory.path(), &doubted);
    check_first_screen(&browser, &directory.path().join("rendered.html"));

    let mut proven = measured.clone();
    let strategies = proven["experiments"][0]["series"].as_array_mut();
    for (index, strategy) in strategies.expect("strategies").iter_mut().enumerate() {
        // Whatever a file of a directory in memory is said to be, the picture is to be drawn.
        let losing = [0, 240, 0][index % 3];
        strategy["proof"] = json!({
            "filesystem_spec": "ext4", "states": 300, "losing": losing, "worst_lost": losing.min(2),
            "not_proven": (index % 3 == 2).then_some("it was stopped"),
        });
    }
    let page = directory.path().join("rendered.html");
    let charts = check_document(&browser, directory.path(), &proven);
    assert_eq!(charts[..2], ["front", "safety"]);

    let mut lost = kept;
    lost["experiments"] = json!([failing_proof("loses-nothing")]);
    let charts = check_document(&browser, directory.path(), &lost);
    assert_eq!(charts, ["timeline"]);
    check_first_screen(&browser, &page);
    lost["experiments"] = json!([failing_proof("loses-nothing"), failing_proof("loses")]);
    let charts = check_document(&browser, directory.path(), &lost);
    assert_eq!(charts, ["timeline-1"]);

    // An event that is lost must be seen.
    let html = fs::read_to_string(&page).expect("the page");
    let broken = html.replacen("\"kind\":\"flush\"", "\"kind\":\"flash\"", 1);
    assert_ne!(broken, html, "nothing was planted");
    fs::write(&page, broken).expect("the copy is written");
    let found = faults(&open(&browser, &page, 1280), &["timeline-1"]);
    assert!(found.contains("marks of"), "unseen: {found}");
}

#[test]
fn an_anchor_opens_the_folds_around_it() {
    let Some(browser) = browser() else {
        return common::skip("no Chromium on PATH, and $CHROMIUM names none");
    };
    let directory =
        report("sync --ops 20 --rounds 2 --allocation overwrite,append --sync fdatasync,none");
    let page = directory.path().join("report/index.html");
    check_first_screen(&browser, &page);
    for (anchor, fold) in [
        ("#claims", "claims"),
        ("#source-1", "claims"),
        ("#foundation", "foundation"),
    ] {
        let found = shown(&browser, &page, PHONE, anchor);
        assert_eq!(found["open"], json!([fold]), "{anchor}: {found}");
        let top = found["target"]["top"].as_f64().expect("a target");
        assert!(
            // It may be scrolled to a fraction of a pixel.
            (-1.0..f64::from(PHONE.1)).contains(&top),
            "{anchor}: {found}"
        );
    }
    // The check must see what it is there for.
    let html = fs::read_to_string(&page).expect("the page");
    let broken = directory.path().join("broken.html");
    let wide = html.replace("<main>", "<main><div style=\"width:600px\">.</div>");
    fs::write(&broken, wide).expect("the copy is written");
    assert_ne!(shown(&browser, &broken, PHONE, "")["excess"], 0);
}

#[test]
fn a_report_is_complete_in_a_browser_without_network() {
    let Some(browser) = browser() else {
        return common::skip("no Chromium on PATH, and $CHROMIUM names none");
    };
    let directory = report("sync --ops 20 --rounds 2");
    let page = directory.path().join("report/index.html");
    let size = fs::metadata(&page).expect("the page").len();
    assert!(size < LARGEST, "the page has {size} bytes");
    let html = fs::read_to_string(&page).expect("the page");
    // Where the device cannot be asked, as on an overlay of disks that are not seen, costs are unknown.
    let results = fs::read_to_string(directory.path().join("report/results.json"));
    let counted = results.expect("the results").contains("\"flushes\"");
    let charts: Vec<&str> = CHARTS
        .into_iter()
        .filter(|chart| counted || !chart.starts_with("cost-"))
        .collect();
    for width in [1280, 500] {
        let found = faults(&open(&browser, &page, width), &charts);
        assert!(found.is_empty(), "at a width of {width}:\n{found}");
    }

    // The check must see what it is there for.
    for (fault, broken, sign) in [
        (
            "a syntax error",
            html.replace("\"use strict\";", "\"use strict"),
            "not drawn",
        ),
        (
            "a function that is missing",
            html.replace("Plot.plot(", "Plot.plough("),
            "not drawn",
        ),
        (
            "a value that is missing",
            html.replacen("\"points\":[[", "\"spots\":[[", 1),
            "not drawn",
        ),
        (
            "a dot that is not drawn",
            html.replacen("\"value\":", "\"lost\":", 1),
            "marks of",
        ),
        (
            "tables that are missing",
            html.replace("<caption>", "<p>"),
            "data tables",
        ),
        (
            "a line that does not break",
            html.replace("<main>", "<main><div style=\"width:3000px\">.</div>"),
            "too wide",
        ),
        (
            "a request to the network",
            html.replace("<main>", "<main><img src=\"https://example.org/x.png\">"),
            "the browser complains",
        ),
    ] {
        assert_ne!(broken, html, "{fault} was not planted");
        let copy = directory.path().join("broken.html");
        fs::write(&copy, broken).expect("the copy is written");
        let found = faults(&open(&browser, &copy, 1280), &charts);
        assert!(found.contains(sign), "{fault} went unseen: {found}");
    }
}
