//! Mistakes planted in Landfall's own log and store are seen when the power is cut under a real kernel, and not by the simulator
//! alone. They are made by the process, so there is one test.
//!
//! What is left out shows when calls fail, when a log is opened again and again, when threads meet at one moment, or when
//! files are damaged: the simulator does that.

use std::path::Path;

use landfall_prove::scratch_fs::{FilesystemSpec, Kind};
use landfall_prove::{Enough, Plan, PowerCuts};

/// How many states show that it is the mistake that loses something, and not what it is planted in: that this loses nothing in
/// thousands of states is proved elsewhere.
const WITHOUT_MISTAKE: usize = 120;

/// What the log goes through.
#[derive(Clone, Copy)]
struct Circumstances {
    settings: &'static [(&'static str, &'static str)],
    transactions: u64,
}

/// Commits of several appends, of which the first are written without being durable: in each pause, if it is long enough for the
/// thread that writes to get a processor. On a busy machine 4 ms were not, and all that was forgotten was in the commit's own write.
const APPENDED: Circumstances = Circumstances {
    settings: &[("segment", "16K"), ("commit-every", "4"), ("pause", "30")],
    transactions: 160,
};
/// Such that a commit is of several segments. There are so few that ext4's journal does not begin anew: on Linux 6.1 ext4
/// cannot be mounted if the power cut tears a commit block that was in use before.
const LARGE: Circumstances = Circumstances {
    settings: &[
        ("segment", "16K"),
        ("commit-every", "4"),
        ("pause", "2"),
        ("records", "10"),
        ("size", "1000"),
    ],
    transactions: 24,
};

const CAUGHT: [(&str, Circumstances); 5] = [
    ("SkipFlush", APPENDED),
    ("ForgetUnsynced", APPENDED),
    ("HeaderChecksumOnly", LARGE),
    ("SkipBadBlock", APPENDED),
    ("SyncLastSegmentOnly", LARGE),
];

fn cuts(mistake: Option<&str>, circumstances: Circumstances) -> PowerCuts {
    let mistake_name = mistake.unwrap_or("none");
    let mut settings = vec![
        ("clients", "1"),
        ("unwritten", "1"),
        ("mistake", mistake_name),
    ];
    settings.extend(circumstances.settings);
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let settings: Vec<(String, String)> = settings.into_iter().map(owned).collect();
    let ext4 = FilesystemSpec::plain(Kind::Ext4);
    let mut plan = Plan::named("landfall-log", &settings, ext4).expect("the settings are right");
    (plan.transactions, plan.states) = (circumstances.transactions, WITHOUT_MISTAKE);
    if mistake.is_some() {
        plan.enough = Enough::FirstFailing;
        plan.states = 400;
    }
    PowerCuts::from(plan)
}

/// Whether there can be a disk that makes single writes durable. It takes network block devices, of this kernel or else of User-mode Linux,
/// which cannot run on a processor with AMX: that is no fault of who installs what tests need.
fn has_forced_writes() -> bool {
    let processor = std::fs::read_to_string("/proc/cpuinfo").expect("the processor");
    let has = Path::new("/dev/nbd0").exists() || !processor.contains("amx_tile");
    if !has {
        eprintln!("left out: mistakes of the log with force unit access");
    }
    has
}

#[test]
fn a_power_cut_shows_a_mistake_of_the_log() {
    if has_forced_writes() {
        for circumstances in [APPENDED, LARGE] {
            cuts(None, circumstances).force_unit_access().lose_nothing();
        }
        for (mistake, circumstances) in CAUGHT {
            println!("{mistake}");
            cuts(Some(mistake), circumstances)
                .force_unit_access()
                .lose_something();
        }
    }
    // Without it the kernel sends a flush after each write, and that makes durable what was forgotten.
    cuts(Some("ForgetUnsynced"), APPENDED).lose_nothing();
    for mistake in OF_STORE {
        println!("{mistake}");
        of_store(Some(mistake)).lose_something();
    }
    of_store(None).lose_nothing();
    for mistake in OF_RUNS {
        println!("{mistake}");
        buffered(Some(mistake)).lose_something();
    }
    buffered(None).lose_nothing();
    for mistake in OF_RANGES {
        println!("{mistake}");
        with_ranges(Some(mistake)).lose_something();
    }
    with_ranges(None).lose_nothing();
    for (protection, mistakes) in IN_PLACE {
        for mistake in mistakes {
            println!("{protection}: {mistake}");
            in_place(protection, Some(mistake)).lose_something();
        }
        in_place(protection, None).lose_nothing();
    }
}

/// Those of leaves that are written at home, by what protects them.
const IN_PLACE: [(&str, &[&str]); 2] = [
    ("doublewrite", &["CopiesNotDurable", "IgnoreCopies"]),
    ("image", &["ImageOnce", "IgnoreImages"]),
];

/// A store whose leaves are written at home.
fn in_place(protection: &str, mistake: Option<&str>) -> PowerCuts {
    let settings = [
        ("in-place", "yes"),
        ("leaf", "4K"),
        ("memory", "64K"),
        ("segment", "64K"),
        ("changes", "whole-leaves"),
        ("protection", protection),
    ];
    store(&settings, mistake)
}

/// Those of the store that one process and one power cut show.
const OF_STORE: [&str; 5] = [
    "SkipDataSync",
    "TruncateBeforeControl",
    "WatermarkTooHigh",
    "SplitWithOldParent",
    "RecordPerWrite",
];

/// A store with many checkpoints, of many leaves.
fn of_store(mistake: Option<&str>) -> PowerCuts {
    let settings = [("leaf", "256"), ("memory", "8K"), ("segment", "16K")];
    store(&settings, mistake)
}

/// Those of runs: of one, of many written as one, and of merging them.
const OF_RUNS: [&str; 4] = [
    "RunNotListed",
    "RunWatermarkTooHigh",
    "TierForgetsOlder",
    "MergeForgetsRun",
];

/// A store whose groups have runs.
fn buffered(mistake: Option<&str>) -> PowerCuts {
    let settings = [
        ("leaf", "1K"),
        ("memory", "16K"),
        ("segment", "64K"),
        ("buffer", "11"),
        ("rows", "500"),
    ];
    store(&settings, mistake)
}

/// Those of ranges that are removed.
const OF_RANGES: [&str; 2] = ["ReplayForgetsRanges", "RangeDropsLeaf"];

/// A store in which each commit removes ranges.
fn with_ranges(mistake: Option<&str>) -> PowerCuts {
    let settings = [
        ("leaf", "256"),
        ("memory", "16K"),
        ("segment", "64K"),
        ("ranges", "yes"),
    ];
    store(&settings, mistake)
}

fn store(settings: &[(&str, &str)], mistake: Option<&str>) -> PowerCuts {
    let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    let ext4 = FilesystemSpec::plain(Kind::Ext4);
    let mut settings: Vec<(String, String)> = settings.iter().map(owned).collect();
    settings.push(owned(&("mistake", mistake.unwrap_or("none"))));
    let mut plan = Plan::named("landfall-store", &settings, ext4).expect("the settings are right");
    (plan.transactions, plan.states) = (200, WITHOUT_MISTAKE);
    if mistake.is_some() {
        plan.enough = Enough::FirstFailing;
        // On a busy machine others' flushes make durable what a mistake forgot, and few states show it.
        plan.states = 2_000;
    }
    PowerCuts::from(plan)
}
