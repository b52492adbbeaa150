//! What differs between two runs besides time.

use std::collections::BTreeSet;

use crate::amplify::AmplifyResults;
use crate::configuration::Measurements;
use crate::dump_vs_log::DumpVsLogResults;
use crate::rename::RenameResults;
use crate::stream::{self, StreamResults};
use crate::sync::{Operations, SyncResults};
use crate::{Findings, Found, Results};
use landfall_os::humanize::bytes_text;
use landfall_results::Series;

/// What else differs, so that a ratio is not blamed on the wrong thing.
pub(super) fn circumstances(a: &Results, b: &Results) -> Vec<String> {
    let storage = |results: &Results| {
        let storage = results.filesystem.storage();
        let devices: Vec<&str> = storage
            .devices
            .iter()
            .map(|device| device.name.as_str())
            .collect();
        format!("{} on {}", storage.kind, devices.join(", "))
    };
    let place = |results: &Results| match results.site.text() {
        Some(site) => format!("{site} in {}", results.directory),
        None => results.directory.clone(),
    };
    let models = |results: &Results| {
        let devices = results.filesystem.storage().devices.iter();
        let models = devices.map(|device| device.model.as_deref().unwrap_or("not known"));
        models.collect::<Vec<_>>().join(", ")
    };
    let options = |results: &Results| results.filesystem.storage().options.join(",");
    let syncing_trials = of_both::<SyncResults>(a, b, |sync| match sync.operations {
        Operations::ByTime => format!("{} seconds", sync.seconds_per_trial),
        Operations::Exactly(number) => format!("{number} operations"),
    });
    let settled = of_both::<SyncResults>(a, b, |sync| match sync.settle_seconds {
        Some(seconds) => format!("waited {seconds} seconds"),
        None => "synced".to_owned(),
    });
    let saving_trials =
        of_both::<DumpVsLogResults>(a, b, |saved| format!("{} seconds", saved.log_seconds));
    let renaming_trials = of_both::<RenameResults>(a, b, |renamed| {
        format!("{} seconds", renamed.seconds_per_trial)
    });
    let size = |results: &Results| {
        let devices = &results.filesystem.storage().devices;
        bytes_text(devices.iter().map(|device| device.size_bytes).sum())
    };
    // Of a run without the experiment nothing can differ.
    let both = a.first::<StreamResults>().is_some() && b.first::<StreamResults>().is_some();
    let stream = |results: &'_ Results, say: fn(&stream::StreamResults) -> String| {
        results
            .first::<StreamResults>()
            .filter(|_| both)
            .map_or(String::new(), say)
    };
    let data = |results: &Results| {
        stream(results, |stream| match stream.data {
            stream::Data::Incompressible => "incompressible".to_owned(),
            stream::Data::Zeros => "zeros".to_owned(),
        })
    };
    let is_saved =
        a.first::<DumpVsLogResults>().is_some() && b.first::<DumpVsLogResults>().is_some();
    let updates = |results: &Results| {
        let saved = results.first::<DumpVsLogResults>().filter(|_| is_saved);
        saved.map_or(String::new(), |saved| {
            format!(
                "{} of {} a second",
                saved.updates_per_second,
                bytes_text(saved.record_bytes)
            )
        })
    };
    let dirty = |results: &Results| {
        stream(results, |stream| {
            let limits = stream.dirty_limits.as_ref();
            // Rounded: it follows the memory that happens to be available.
            limits.map_or("not known".to_owned(), |l| bytes_text(l.throttle_bytes))
        })
    };
    let pairs = [
        ("landfall's version", a.version.clone(), b.version.clone()),
        ("the kernel", a.host.kernel.clone(), b.host.kernel.clone()),
        (
            "the number of processors",
            a.host.cpus.to_string(),
            b.host.cpus.to_string(),
        ),
        ("the place", place(a), place(b)),
        ("the filesystem", storage(a), storage(b)),
        ("the model of the disk", models(a), models(b)),
        ("mount options", options(a), options(b)),
        ("the size of the disk", size(a), size(b)),
        ("the data of large states", data(a), data(b)),
        ("the kernel's limit of dirty data", dirty(a), dirty(b)),
        ("the updates that are logged", updates(a), updates(b)),
    ];
    let of_experiments = [
        ("the length of trials", syncing_trials),
        ("how zeros settled", settled),
        ("the length of trials of dump-vs-log", saving_trials),
        ("the length of trials of rename", renaming_trials),
    ];
    let of_experiments = of_experiments
        .into_iter()
        .filter_map(|(what, both)| both.map(|(a, b)| (what, a, b)));
    pairs
        .into_iter()
        .chain(of_experiments)
        .map(|(what, a, b)| (what.to_owned(), a, b))
        .chain(databases(a, b))
        .filter(|(_, a, b)| a != b)
        .map(|(what, a, b)| format!("{what}: {a} in A, {b} in B"))
        .collect()
}

/// What is to be said of an experiment in either run, if both have it.
fn of_both<T: Findings>(
    a: &Results,
    b: &Results,
    say: fn(&T) -> String,
) -> Option<(String, String)> {
    Some((say(a.first::<T>()?), say(b.first::<T>()?)))
}

/// How databases were measured by either run, of what both measured: each experiment has its own pairs.
fn databases(a: &Results, b: &Results) -> Vec<(String, String, String)> {
    let mut pairs = Vec::new();
    for of_a in &a.experiments {
        let has_twin = |series: &Series, other: &Found| {
            let mut twins = other.series().iter();
            twins.any(|twin| twin.key == series.key)
        };
        let mut others = b.experiments.iter();
        let Some(of_b) = others.find(|other| {
            let mut all = of_a.series().iter();
            other.name() == of_a.name() && all.any(|one| has_twin(one, other))
        }) else {
            continue;
        };
        let [found_a, found_b] = [of_a, of_b].map(|one| one.findings()?.measurements());
        let (Some(found_a), Some(found_b)) = (found_a, found_b) else {
            continue;
        };
        let mut add = |what: &str, a: String, b: String| {
            pairs.push((format!("{what} of {}", of_a.name()), a, b));
        };
        let length = |all: &Measurements| format!("{} seconds", all.seconds_per_trial);
        add("the length of trials", length(found_a), length(found_b));
        let warm_up = |all: &Measurements| format!("{} seconds", all.warm_up_seconds);
        add("the warm-up", warm_up(found_a), warm_up(found_b));
        if let (Some(a), Some(b)) = (of_a.of::<AmplifyResults>(), of_b.of::<AmplifyResults>()) {
            let pool = |one: &AmplifyResults| bytes_text(one.pool_bytes);
            add("the memory of databases", pool(a), pool(b));
        }
        let loaded = |all: &Measurements| -> BTreeSet<String> {
            all.loads.iter().map(|load| load.database.clone()).collect()
        };
        for database in loaded(found_a).intersection(&loaded(found_b)) {
            let versions = |all: &Measurements| {
                let loads = all.loads.iter().filter(|load| load.database == *database);
                let versions = loads.map(|load| load.version.as_deref().unwrap_or("not known"));
                versions
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            add(
                &format!("the version of {database}"),
                versions(found_a),
                versions(found_b),
            );
        }
        let asked: BTreeSet<(&str, &str)> = found_a
            .series
            .iter()
            .filter_map(|one| {
                let twin = found_b.series.iter().find(|twin| twin.key == one.key)?;
                let workload = one.axes.workload.as_deref();
                workload.zip(twin.axes.workload.as_deref())
            })
            .collect();
        for (a, b) in asked {
            add("the workload", a.to_owned(), b.to_owned());
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlanKind;
    use crate::advice::fixtures::recorded;
    use crate::dump_vs_log::fixtures::dump_vs_log_results;
    use crate::sync::fixtures::sync_results;

    /// Of several runs in one document each experiment is one.
    fn amplify() -> Results {
        let mut results = recorded("disk");
        let mut all = std::mem::take(&mut results.experiments).into_iter();
        let one = all.find(|one| one.of::<AmplifyResults>().is_some());
        results.experiments = one.into_iter().collect();
        results
    }

    #[test]
    fn another_place_is_named() {
        let a = amplify();
        assert!(circumstances(&a, &a).is_empty());
        let mut b = a.clone();
        b.directory = "/elsewhere".to_owned();
        for device in &mut b.filesystem.devices {
            device.model = Some("another".to_owned());
        }
        let said = circumstances(&a, &b);
        for what in ["the place: /srv/data in A, /elsewhere in B", "another in B"] {
            assert!(
                said.iter().any(|one| one.contains(what)),
                "{what}: {said:?}"
            );
        }
        assert_eq!(said.len(), 2, "{said:?}");
    }

    #[test]
    fn another_length_of_trials_is_named_where_both_have_the_experiment() {
        let renamed = |seconds_per_trial: f64| RenameResults {
            plan: PlanKind::Standard,
            rounds: 5,
            seconds_per_trial,
            size: 4096,
            sites: Vec::new(),
            series: Vec::new(),
            claims: Vec::new(),
        };
        let saved = |log_seconds: f64| DumpVsLogResults {
            log_seconds,
            ..dump_vs_log_results()
        };
        let of = |experiments: Vec<Found>| Results {
            experiments,
            ..amplify()
        };
        let a = of(vec![renamed(0.5).into(), saved(2.0).into()]);
        assert!(circumstances(&a, &a).is_empty());
        let b = of(vec![renamed(1.5).into(), saved(4.0).into()]);
        let expected = [
            "the length of trials of dump-vs-log: 2 seconds in A, 4 seconds in B",
            "the length of trials of rename: 0.5 seconds in A, 1.5 seconds in B",
        ];
        assert_eq!(circumstances(&a, &b), expected);
        let alone = of(vec![renamed(1.5).into()]);
        assert_eq!(circumstances(&a, &alone), expected[1..]);
        let synced = |seconds_per_trial: f64| SyncResults {
            seconds_per_trial,
            ..sync_results(Vec::new())
        };
        let a = of(vec![synced(0.25).into()]);
        let b = of(vec![synced(1.0).into()]);
        let expected = ["the length of trials: 0.25 seconds in A, 1 seconds in B"];
        assert_eq!(circumstances(&a, &b), expected);
        assert!(circumstances(&a, &alone).is_empty());
    }

    #[test]
    fn databases_of_another_version_or_load_are_named() {
        let a = amplify();
        let mut b = a.clone();
        for one in &mut b.experiments {
            let Some(amplify) = one.of_mut::<AmplifyResults>() else {
                continue;
            };
            amplify.pool_bytes = 1 << 30;
            let all = &mut amplify.measurements;
            all.seconds_per_trial = 99.0;
            for load in &mut all.loads {
                load.version = Some("12.0".to_owned());
            }
            for series in &mut all.series {
                series.axes.workload = Some("linkbench ids=9".to_owned());
            }
        }
        let said = circumstances(&a, &b);
        for what in [
            "the length of trials of amplify: ",
            "the memory of databases of amplify: ",
            "the version of mariadb of amplify: ",
            "the workload of amplify: linkbench ids=2000 in A, linkbench ids=9 in B",
        ] {
            let named = said.iter().filter(|one| one.starts_with(what));
            assert_eq!(named.count(), 1, "{what}: {said:?}");
        }
    }
}
