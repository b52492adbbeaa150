//! Reports of hostile, empty and large documents.

use landfall_os::{Allocation, Medium, SyncCall};
use landfall_report::html;
use landfall_results::{Axes, Metric, Series};

use crate::advice::check::check;
use crate::advice::{Advice, Scope, System, advise};
use crate::claim::{Band, ClaimResult, Verdict};
use crate::config_file::ConfigFile;
use crate::sync::fixtures::{
    losing, measured, proven as lost_nothing, results, unmeasured, unproven,
};
use crate::sync::{Plan, Strategy, SyncResults};
use crate::{Found, Notice, Results, Weight};
use landfall_recorder::wear::Drive;

pub(crate) const HOSTILE: &str = "</script><script>alert('&')</script><!--";

/// The standard plan, of which `is_measured` says what was measured.
pub(crate) fn strategies(is_measured: impl Fn(&Series) -> bool) -> Vec<Series> {
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

fn rendered(results: &Results, advice: &Advice) -> String {
    rendered_for(results, advice, &Scope::of(System::ALL))
}

fn rendered_for(results: &Results, advice: &Advice, scope: &Scope) -> String {
    html::render(&super::page(results, advice, scope)).expect("a report")
}

pub(crate) fn page(results: &Results) -> String {
    rendered(results, &advise(results, "landfall-report", None))
}

pub(crate) fn sync_of(results: &mut Results) -> &mut SyncResults {
    match &mut results.experiments[0] {
        Found::Sync(sync) => sync,
        other => panic!("not sync: {other:?}"),
    }
}

/// What comes before the scripts.
pub(crate) fn body(html: &str) -> &str {
    html.split("<script").next().unwrap_or_default()
}

#[test]
fn a_standard_run_has_every_chart_and_is_small() {
    let html = page(&results(strategies(|_| true)));
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert_eq!(body(&html).matches("data-expected=").count(), 11);
    assert_eq!(body(&html).matches("<summary>Data: ").count(), 11);
    assert!(!body(&html).contains("data-expected=\"0\""));
}

#[test]
fn a_run_that_is_too_noisy_is_not_called_free_of_doubt() {
    let quiet = "Nothing was noticed that puts these figures in doubt.";
    let noisy = "The run was too noisy to conclude anything from";
    let said = |rates: &[f64]| {
        let html = page(&results(vec![measured(
            Strategy::BASELINE,
            rates,
            1.0,
            1.0,
        )]));
        [quiet, noisy].map(|words| body(&html).contains(words))
    };
    assert_eq!(said(&[1_000.0; 5]), [true, false]);
    let wild = [100.0, 9_000.0, 200.0, 8_000.0, 1_000.0];
    assert_eq!(said(&wild), [false, true]);
}

/// Documents that were merged have several runs of an experiment.
#[test]
fn every_run_of_an_experiment_has_a_part_and_charts_of_its_own() {
    let results = crate::advice::fixtures::recorded("disk");
    let html = page(&results);
    let body = body(&html);
    let runs = results.all::<crate::binlog::BinlogResults>().count();
    assert!(runs > 1);
    let last = format!("What syncing a growing log costs: run {runs} of {runs}");
    assert!(body.contains(&last));
    let mut ids: Vec<&str> = body
        .split("<div class=\"chart\" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
    for id in ids {
        assert!(html.contains(&format!("\"id\":\"{id}\"")), "{id}");
    }
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
    sync.series[0].key = HOSTILE.to_owned();
    sync.series[1].unsupported = Some(HOSTILE.to_owned());
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
    assert!(body(&html).contains("data-label=\"Published\">no figure</td>"));
}

#[test]
fn only_durable_writes_are_called_fast() {
    let html = page(&results(strategies(|series| {
        let method = series.axes.sync_method;
        method.is_some_and(|method| method.call == SyncCall::None && !method.direct)
            || series.axes == Axes::from(Strategy::BASELINE)
    })));
    assert!(html.contains("The only durable way that was measured: "));
    assert!(html.contains("overwrite with fdatasync, 1,"));
    let html = page(&results(strategies(|series| !series.axes.is_durable())));
    assert!(html.contains("No durable write was measured"));
    assert!(html.contains("Appending and overwriting were not both measured"));
}

#[test]
fn in_memory_nothing_is_called_durable() {
    let mut memory = results(strategies(|_| true));
    memory.filesystem.medium = Medium::Memory;
    let sync = sync_of(&mut memory);
    for strategy in &mut sync.series {
        for metric in [
            Metric::Writes,
            Metric::WriteRequests,
            Metric::Kib,
            Metric::Flushes,
        ] {
            strategy.summary.remove(&metric);
        }
    }
    let html = page(&memory);
    assert!(html.contains("where nothing is durable"));
    assert!(html.contains("Writes per second, none of them durable"));
    assert!(!html.contains("\"durable\":true"));
    assert!(!html.contains("none as safe is clearly faster."));
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
    for strategy in &mut sync.series {
        strategy.trials.truncate(1);
    }
    let html = page(&single);
    assert!(html.contains("One round cannot say how far chance moved it"));
    assert!(html.contains("times as fast (one round)"));
    assert!(html.contains("A dot is a single measurement."));
}

#[test]
fn writes_that_cannot_be_told_from_flushes_are_bounded() {
    let mut bounded = results(strategies(|_| true));
    let sync = sync_of(&mut bounded);
    for strategy in &mut sync.series {
        strategy.summary.remove(&Metric::Writes);
    }
    let html = page(&bounded);
    assert!(html.contains("≤2.00"));
    assert!(html.contains("Overwriting costs at most 2 writes and 1 flush"));
}

/// The standard plan, of which every strategy lost something but the overwriting ones.
fn proven_results() -> Results {
    let mut proven = results(strategies(|_| true));
    for strategy in &mut sync_of(&mut proven).series {
        let bare = std::mem::replace(strategy, unmeasured(Strategy::BASELINE));
        *strategy = match bare.axes.allocation {
            Some(Allocation::Overwrite) if bare.axes.is_durable() => lost_nothing(bare, 812),
            Some(Allocation::Sparse) => unproven(bare),
            _ => losing(bare, 240, 300),
        };
    }
    proven
}

#[test]
fn what_is_fast_and_safe_is_said_and_shown_first() {
    let html = page(&proven_results());
    let first = body(&html).split("<p>").nth(1).unwrap_or_default();
    assert!(
        first.starts_with(
            "Use overwrite with direct+io_uring, 1,540 writes of 8 KiB a second (1,501–1,579): none as safe is clearly faster. It lost nothing in 812 simulated power cuts."
        ),
        "{first}"
    );
    let charts: Vec<&str> = body(&html)
        .split("class=\"chart\" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(charts[..3], ["front", "safety", "safety-others"]);
    assert_eq!(charts.len(), 13);
    for words in [
        "<h1>What a durable write costs, and whether it is safe</h1>",
        "lost in</th>",
        "240/300</td>",
        "it cannot be carried out there",
        "Timed on /data (ext4, mounted rw); the power was cut on a recorder with the same filesystem type (ext4), not on this disk.",
        "<dt>recycled</dt><dd>An old file",
        "overwrite/none/8K, not durable",
    ] {
        assert!(html.contains(words), "{words}");
    }
    assert_eq!(html.matches("\"best\":true").count(), 2);
    assert!(!html.contains("Documented as safe"));
}

#[test]
fn where_a_filesystem_was_timed_and_another_proven_is_said() {
    let filesystem_specs = |filesystem_spec: &str| {
        let mut other = proven_results();
        other.filesystem.options.push("data=journal".to_owned());
        for strategy in &mut sync_of(&mut other).series {
            if let Some(proof) = &mut strategy.proof {
                proof.filesystem_spec = filesystem_spec.parse().unwrap();
            }
        }
        page(&other)
    };
    assert!(
        filesystem_specs("xfs")
            .contains("on a recorder with another filesystem (xfs), not on this disk. What was")
    );
    assert!(
        filesystem_specs("ext4,data=journal").contains("with the same filesystem type and options")
    );
    assert!(
        filesystem_specs("ext4,barrier=0").contains("on a recorder with the same filesystem type")
    );
}

#[test]
fn in_memory_nothing_is_called_the_fastest_that_is_safe() {
    let mut memory = proven_results();
    memory.filesystem.medium = Medium::Memory;
    let html = page(&memory);
    assert!(!html.contains("is clearly faster") && !html.contains("\"best\":true"));
    assert!(html.contains("cannot be told in main memory"));
    assert!(body(&html).contains("id=\"safety\""));
}

#[test]
fn a_run_without_proofs_is_reported_without_them() {
    let html = page(&results(strategies(|_| true)));
    for words in ["lost in", "id=\"safety"] {
        assert!(!body(&html).contains(words), "{words}");
    }
    // The picture is of cost alone, with the command that adds safety.
    assert!(body(&html).contains("id=\"front\""));
    assert!(body(&html).contains("<code>sudo landfall lab sync --prove /data</code>"));
    assert!(
        body(&html).contains("This simulates up to 300 power cuts of each, on scratch disks, in ")
    );
    // Text and picture name the same way.
    let marked: Vec<&str> = html.split("\"best\":true").collect();
    let [before, _] = marked.as_slice() else {
        panic!("{} rows are marked", marked.len() - 1);
    };
    let row = before.rsplit("\"label\":").next().unwrap_or_default();
    assert!(row.starts_with("\"overwrite, direct+io_uring\""), "{row}");
    assert!(body(&html).contains("Use overwrite with direct+io_uring, "));
}

/// Whoever reads no further than the first screen has read the worst.
#[test]
fn the_weightiest_notices_are_said_in_the_verdict_and_the_others_are_counted() {
    let with = |weights: &[Weight]| {
        let mut noticed = results(strategies(|_| true));
        let notices = weights.iter().enumerate();
        let notices = notices.map(|(at, weight)| Notice::new("x", *weight, format!("Text {at}.")));
        noticed.notices = notices.collect();
        let html = page(&noticed);
        let line = html.split("Before you rely on this</a>: ").nth(1)?;
        line.split("</p>").next().map(str::to_owned)
    };
    let (note, warning, danger) = (Weight::Note, Weight::Warning, Weight::Danger);
    let cases: [(&[Weight], Option<&str>); 6] = [
        (&[], None),
        (&[note, note], Some("2 notes.")),
        (&[warning], Some("Text 0.")),
        (
            &[note, warning, warning, warning],
            Some("Text 1. Text 2. Also: x, 1 note."),
        ),
        (&[danger; 4], Some("Text 0. Text 1. Also: x (danger).")),
        (
            &[warning, danger, note],
            Some("Text 1. Text 0. Also: 1 note."),
        ),
    ];
    for (weights, said) in cases {
        assert_eq!(with(weights).as_deref(), said, "{weights:?}");
    }
}

/// What the page shows is what was advised: where documents are, the workload, and the files that were looked at.
#[test]
fn the_page_shows_the_advice_that_it_is_given() {
    let results = crate::advice::fixtures::recorded("disk");
    let target = "commits=200,size=4K,clients=16".parse().expect("a target");
    let mut advice = advise(&results, "elsewhere", Some((&target, &Drive::default())));
    let system = System::Mariadb;
    let file = tempfile::NamedTempFile::with_suffix(".cnf").expect("a file");
    std::fs::write(file.path(), "[mysqld]\ninnodb_flush_log_at_trx_commit=2\n").expect("written");
    let configuration = ConfigFile::read(system, file.path()).expect("a configuration");
    advice.checks = vec![check(system, file.path(), &configuration, &advice)];
    let html = rendered(&results, &advice);
    let body = body(&html);
    assert!(body.contains("elsewhere/") && !body.contains("landfall-report/"));
    for text in [
        &advice.capacity.as_ref().expect("capacity").sentences[0],
        &target.to_string(),
    ] {
        assert!(body.contains(text.as_str()), "{text}");
    }
    assert!(body.contains("innodb_flush_log_at_trx_commit=2 risks"));
    assert!(!page(&results).contains(">Workload"));
}

/// What has no safe value is no default that is right, and is seen at once.
#[test]
fn a_setting_without_a_safe_value_stands_open() {
    let results = crate::advice::fixtures::recorded("disk");
    let mut advice = advise(&results, "landfall-report", None);
    let rule = "mariadb-log-at-commit";
    advice.settings.retain(|setting| setting.rule == rule);
    let shown = |advice: &Advice| body(&rendered(&results, advice)).to_owned();
    assert!(shown(&advice).contains("<h3>Nothing to change</h3>"));
    for setting in &mut advice.settings {
        setting.value = None;
        setting.is_default = false;
    }
    let body = shown(&advice);
    assert!(!body.contains("<h3>Nothing to change</h3>"), "{body}");
    let group = "<details class=\"section\" open>\n<summary><h3>MariaDB</h3> <span class=\"count\">1 setting, 1 without a safe value</span>";
    assert!(body.contains(group), "{body}");
    let said = "No value is safe here of innodb_flush_log_at_trx_commit (MariaDB).";
    assert!(body.contains(said), "{body}");
}

/// What is not installed is there for whoever looks for it, beneath what is.
#[test]
fn advice_on_what_is_not_installed_is_folded() {
    let results = crate::advice::fixtures::recorded("disk");
    let advice = advise(&results, "landfall-report", None);
    let scope = Scope::of([System::Mariadb, System::Mount]);
    let html = rendered_for(&results, &advice, &scope);
    let body = body(&html);
    let folded = body
        .find("<summary>Not installed here: MySQL, ")
        .expect("a fold");
    let at = |text: &str| body.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("What to change here") < at("innodb_doublewrite"));
    assert!(at("innodb_doublewrite") < folded && folded < at("appendfsync"));
    // Nobody is told to run what is not there.
    assert!(!body.contains("prove redis"), "{body}");
    assert!(page(&results).contains("prove redis"));
}
