//! Several results documents of one machine as one: what is advised rests on all of them.

use landfall_os::{Filesystem, Host};
use landfall_results::Series;

use crate::scratch_fs::like;
use crate::sync::SyncResults;
use crate::{Error, Findings, Found, Results, SiteKind, Weight, facts};

/// One document of several, the newest first in what they have of the same kind; all of them must be of one
/// machine. Proofs are kept together: what lost something once is not made safe by another run. Of the other
/// experiments the newest that measured something counts for `sync` and `stream`, with what was proven of its series before;
/// of databases all are kept, each once.
///
/// `None` of nothing.
pub fn merge(mut documents: Vec<Results>) -> Result<Option<Results>, Error> {
    documents.sort_by(|a, b| b.started.cmp(&a.started));
    // What measured nothing judges no claim.
    let experiments = documents.iter_mut().flat_map(|one| &mut one.experiments);
    for empty in experiments.filter(|one| one.is_empty()) {
        if let Some(findings) = empty.findings_mut() {
            findings.claims_mut().clear();
        }
    }
    // What a directory stands on is told by what was measured in it, not by what was made in it, nor by what a
    // proof made.
    let likely = |one: &Results| {
        let is_itself = one.site.kind == SiteKind::Directory;
        (
            !one.has_only_proofs(),
            one.has_measured::<SyncResults>(),
            is_itself,
        )
    };
    let mut first = 0;
    for (index, document) in documents.iter().enumerate() {
        if likely(document) > likely(&documents[first]) {
            first = index;
        }
    }
    if documents.is_empty() {
        return Ok(None);
    }
    let mut all = documents.remove(first);
    for document in documents {
        if !is_same_machine(&all.host, &document.host) {
            return Err(Error::Usage(format!(
                "the documents are of two machines: {} and {}; give those of one",
                machine(&all),
                machine(&document)
            )));
        }
        // What was measured in another place, or on a filesystem that was made, says nothing of this one; and what
        // was proven is of no place. Experiments on databases have sites of their own, on the same disk.
        let is_of_place = document.directory == all.directory;
        let is_on_disk = is_of_place
            && (document.site.kind != all.site.kind
                || is_same_storage(&document.filesystem, &all.filesystem));
        let is_of_site = !document.has_only_proofs() && document.site == all.site;
        let is_here = is_on_disk && is_of_site;
        let is_later = document.started > all.started;
        let is_newer = is_of_place && is_of_site && is_later;
        let is_mounted_alike = like(&document.filesystem) == like(&all.filesystem);
        let mut is_added = false;
        for notice in document.notices {
            let is_known = all.notices.iter().any(|known| known == &notice);
            // What went wrong in an older run says nothing of a newer one.
            let is_of_run = [Results::FAILED, Results::NOT_MEASURED, Results::LEFT_BEHIND]
                .contains(&notice.code.as_str());
            // That the directory was unsafe once is not for ever; that it has become so counts.
            let counts = if notice.weight < Weight::Danger {
                is_here && (is_later || !is_of_run)
            } else {
                is_newer
            };
            if !is_known && counts {
                all.notices.push(notice);
            }
        }
        for mut experiment in document.experiments {
            let is_proof = experiment.proof().is_some();
            // Databases have sites of their own.
            let is_single = experiment
                .findings()
                .is_some_and(|all| all.measurements().is_none());
            if (is_single && !is_here) || !(is_proof || is_on_disk) {
                continue;
            }
            let is_there = all.experiments.iter().any(|known| {
                if is_single {
                    known.name() == experiment.name()
                        && (!known.is_empty() || experiment.is_empty())
                } else {
                    is_same(known, &experiment)
                }
            });
            if is_there && is_single && is_mounted_alike {
                let mut known = all.experiments.iter_mut();
                if let Some(known) = known.find(|known| known.name() == experiment.name()) {
                    keep_proofs(known, &experiment);
                }
            }
            if !is_there {
                // One that measured nothing gives way.
                let is_kept = |known: &Found| !is_single || known.name() != experiment.name();
                all.experiments.retain(is_kept);
                // Each claim is judged once, by the newest run.
                let judged: Vec<String> = all.claims().map(|claim| claim.id.clone()).collect();
                if let Some(findings) = experiment.findings_mut() {
                    findings
                        .claims_mut()
                        .retain(|claim| !judged.contains(&claim.id));
                }
                all.experiments.push(experiment);
                is_added = true;
            }
        }
        if is_added {
            all.seconds += document.seconds;
        }
    }
    all.notices
        .sort_by_key(|notice| std::cmp::Reverse(notice.weight));
    Ok(Some(all))
}

/// Takes over what another run proved of the same series, unless this one did so and lost no less. What it lost counts also of a series
/// that this one did not measure.
fn keep_proofs(known: &mut Found, other: &Found) {
    let series = match known {
        Found::Sync(sync) => &mut sync.series,
        Found::Rename(rename) => &mut rename.series,
        _ => return,
    };
    // Whether it lost something, if it was proven.
    let lost = |one: &Series| one.proven().map(|proof| proof.losing > 0);
    for other in other.series() {
        let has_lost = lost(other) == Some(true);
        match series.iter_mut().find(|one| one.key == other.key) {
            Some(one) if lost(other) > lost(one) && (one.is_measured() || has_lost) => {
                one.proof = other.proof.clone();
            }
            Some(_) => {}
            None if has_lost => {
                // With those of its site.
                let last = series
                    .iter()
                    .rposition(|one| one.axes.site == other.axes.site);
                let place = last.map_or(series.len(), |last| last + 1);
                let left_out = Series {
                    proof: other.proof.clone(),
                    unsupported: Some("the newest run left it out".to_owned()),
                    ..Series::new(other.axes.clone())
                };
                series.insert(place, left_out);
            }
            None => {}
        }
    }
}

/// Whether both filesystems keep their data in the same place, however they are mounted.
pub fn is_same_storage(a: &Filesystem, b: &Filesystem) -> bool {
    let [a, b] = [a, b].map(Filesystem::storage);
    (&a.kind, &a.source) == (&b.kind, &b.source)
}

/// Adds what must be known of the filesystem as it is mounted now: it may have been mounted otherwise since it was
/// measured.
pub fn heed_mount(results: &mut Results, now: &Filesystem) {
    for notice in facts::notices(now) {
        let mut known = results.notices.iter();
        if !known.any(|known| known.code == notice.code) {
            results.notices.push(notice);
        }
    }
    results
        .notices
        .sort_by_key(|notice| std::cmp::Reverse(notice.weight));
}

/// Whether both are one and the same run's; claims may have been left out of one of them.
fn is_same(a: &Found, b: &Found) -> bool {
    let [of_a, of_b] = [a, b].map(|one| one.findings().and_then(Findings::measurements));
    match (of_a, of_b) {
        (Some(of_a), Some(of_b)) => a.name() == b.name() && of_a == of_b,
        _ => a == b,
    }
}

/// Whether both are the same machine, as far as can be told: two that are alike cannot be. Its kernel may have
/// changed, and with it the memory that is left.
pub fn is_same_machine(a: &Host, b: &Host) -> bool {
    let of = |host: &Host| {
        let host = host.clone();
        (host.architecture, host.cpu, host.cpus, host.hypervisor)
    };
    let less = a.memory_bytes.min(b.memory_bytes);
    let more = a.memory_bytes.max(b.memory_bytes);
    of(a) == of(b) && less >= more / 20 * 19
}

fn machine(results: &Results) -> String {
    let cpu = results.host.cpu.as_deref().unwrap_or("a processor");
    format!("{} × {cpu} ({})", results.host.cpus, results.directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Notice;
    use crate::advice::fixtures::recorded;
    use crate::stream::StreamResults;
    use crate::sync::Strategy;
    use crate::sync::fixtures::{losing, measured, proven, results, unmeasured, unproven};
    use crate::torn::TornResults;
    use landfall_results::proof::fixtures::{failing, proof as sound};
    use landfall_results::proof::{ClusterCuts, ProofResults, Violation};

    fn of(started: &str, rate: f64) -> Results {
        Results {
            started: started.to_owned(),
            ..results(vec![measured(Strategy::BASELINE, &[rate; 5], 1.0, 1.0)])
        }
    }

    fn proof(started: &str, experiment: Found) -> Results {
        Results {
            started: started.to_owned(),
            experiments: vec![experiment],
            ..of(started, 1.0)
        }
    }

    #[test]
    fn the_newest_measurement_counts_and_every_proof_does() {
        let old = of("2026-01-01T00:00:00Z", 100.0);
        let new = of("2026-02-01T00:00:00Z", 200.0);
        let (kept, lost) = (
            Found::Prove(Box::new(sound())),
            Found::Prove(Box::new(failing())),
        );
        let documents = vec![
            old,
            proof("2026-03-01T00:00:00Z", kept.clone()),
            new.clone(),
            proof("2026-03-02T00:00:00Z", lost.clone()),
            proof("2026-03-03T00:00:00Z", kept.clone()),
        ];
        let all = merge(documents).unwrap().unwrap();
        assert_eq!(all.first::<SyncResults>(), new.first::<SyncResults>());
        assert_eq!(all.proofs().count(), 2, "each once");
        assert!(merge(Vec::new()).unwrap().is_none());
    }

    /// A plain run, or a lucky one, is no reason to forget what was lost.
    #[test]
    fn what_was_proven_of_a_series_is_kept_until_it_is_proven_again() {
        let series = || measured(Strategy::BASELINE, &[100.0; 5], 1.0, 1.0);
        let of = |month: u32, series: Series| Results {
            started: format!("2026-{month:02}-01T00:00:00Z"),
            ..results(vec![series])
        };
        let lost = || losing(series(), 7, 300);
        for (old, new, is_again, expected) in [
            (lost(), series(), false, Some(7)),
            (lost(), unproven(series()), false, Some(7)),
            (lost(), proven(series(), 300), false, Some(7)),
            (lost(), losing(series(), 2, 300), true, Some(2)),
            (proven(series(), 300), series(), false, Some(0)),
            (proven(series(), 300), lost(), true, Some(7)),
            (unproven(series()), series(), true, None),
        ] {
            let (old, new) = (of(1, old), of(2, new));
            assert_eq!(new.replaces(&old), is_again);
            let all = merge(vec![old, new]).unwrap().unwrap();
            let sync = all.first::<SyncResults>().unwrap();
            let kept = sync.series[0].proven().map(|proof| proof.losing);
            assert_eq!(kept, expected);
        }
        // What was lost counts also where the newest run left it out; what was not does not.
        let other = || {
            let o_dsync = Strategy {
                method: landfall_os::SyncMethod::direct(landfall_os::SyncCall::ODsync),
                ..Strategy::BASELINE
            };
            measured(o_dsync, &[100.0; 5], 1.0, 1.0)
        };
        for (old, expected) in [(lost(), Some(7)), (proven(series(), 300), None)] {
            let mut new = of(2, other());
            new.site.below = Some("ext4 on sdb".to_owned());
            let all = merge(vec![of(1, old), new]).unwrap().unwrap();
            let sync = all.first::<SyncResults>().unwrap();
            assert_eq!(sync.series[0].key, other().key);
            let left_out = sync.series.get(1);
            let kept = left_out.and_then(Series::proven);
            assert_eq!(kept.map(|proof| proof.losing), expected);
            assert!(left_out.is_none_or(|one| !one.is_measured()));
        }
        // Nothing was proven of a filesystem that is mounted otherwise.
        let [mut old, mut new] = [of(1, lost()), of(2, series())];
        old.filesystem = recorded("disk").filesystem;
        new.filesystem = old.filesystem.clone();
        new.filesystem.options.push("data=journal".to_owned());
        let all = merge(vec![old, new]).unwrap().unwrap();
        let sync = all.first::<SyncResults>().unwrap();
        assert!(sync.series[0].proof.is_none());
    }

    /// As on a system that supports none of the strategies that it was asked for.
    fn empty(started: &str) -> Results {
        Results {
            started: started.to_owned(),
            ..results(vec![unmeasured(Strategy::BASELINE)])
        }
    }

    #[test]
    fn a_run_that_measured_nothing_hides_no_earlier_one() {
        let old = of("2026-01-01T00:00:00Z", 100.0);
        let new = empty("2026-02-01T00:00:00Z");
        assert!(new.is_empty() && !new.has_measured::<SyncResults>());
        assert!(!new.replaces(&old) && old.replaces(&new) && new.replaces(&new));
        let newest = of("2026-03-01T00:00:00Z", 200.0);
        for (documents, expected) in [
            (vec![new.clone(), old.clone()], &old),
            (vec![newest.clone(), new.clone(), old.clone()], &newest),
        ] {
            let all = merge(documents).unwrap().unwrap();
            let found: Vec<&SyncResults> = all.all().collect();
            assert_eq!(found, [expected.first::<SyncResults>().unwrap()]);
        }
        // Nor does what measured something else.
        let stream = crate::stream::fixtures::stream_results();
        let mut without = stream.clone();
        without.series.iter_mut().for_each(|one| one.trials.clear());
        let mut part = newest.clone();
        part.experiments.push(without.into());
        let mut whole = old.clone();
        whole.experiments.push(stream.clone().into());
        let all = merge(vec![part, whole]).unwrap().unwrap();
        let found: Vec<&StreamResults> = all.all().collect();
        assert_eq!(found, [&stream]);
        let only = merge(vec![new.clone(), empty("2026-01-01T00:00:00Z")]);
        let only = only.unwrap().unwrap();
        assert_eq!(only.first::<SyncResults>(), new.first::<SyncResults>());
        assert_eq!(only.experiments.len(), 1);
    }

    #[test]
    fn what_was_measured_elsewhere_says_nothing_of_this_directory() {
        let here = of("2026-01-01T00:00:00Z", 100.0);
        let mut made = of("2026-02-01T00:00:00Z", 200.0);
        made.site.kind = SiteKind::Loop;
        made.notices = vec![Notice::new("no-barrier", Weight::Danger, "mounted so")];
        let all = merge(vec![made, here.clone()]).unwrap().unwrap();
        assert_eq!(
            (all.first::<SyncResults>(), &all.notices),
            (here.first::<SyncResults>(), &here.notices)
        );
    }

    /// What was measured long ago is no reason to overlook that.
    #[test]
    fn a_danger_that_is_newer_than_the_measurement_counts_and_an_older_one_does_not() {
        let measured = of("2026-02-01T00:00:00Z", 100.0);
        let danger = |started: &str| Results {
            notices: vec![Notice::new("no-barrier", Weight::Danger, "mounted so")],
            experiments: vec![Found::Stream(Box::new(
                crate::stream::fixtures::stream_results(),
            ))],
            ..of(started, 1.0)
        };
        let merged = |other: Results| merge(vec![other, measured.clone()]).unwrap().unwrap();
        assert!(merged(danger("2026-03-01T00:00:00Z")).is_in_doubt());
        assert!(!merged(danger("2026-01-01T00:00:00Z")).is_in_doubt());
    }

    #[test]
    fn that_an_older_run_failed_does_not_count() {
        let notice = |code| Notice::new(code, Weight::Warning, "stream was not measured");
        let failed = |started: &str| Results {
            notices: vec![
                notice(Results::FAILED),
                notice(Results::NOT_MEASURED),
                notice(Results::LEFT_BEHIND),
            ],
            experiments: vec![Found::Stream(Box::new(
                crate::stream::fixtures::stream_results(),
            ))],
            ..of(started, 1.0)
        };
        let measured = of("2026-02-01T00:00:00Z", 100.0);
        let merged = |other: Results| merge(vec![other, measured.clone()]).unwrap().unwrap();
        let older = merged(failed("2026-01-01T00:00:00Z"));
        assert_eq!(older.notices, measured.notices);
        assert!(merged(failed("2026-03-01T00:00:00Z")).has_failed());
    }

    #[test]
    fn how_a_directory_is_mounted_now_counts() {
        let mut results = of("2026-02-01T00:00:00Z", 100.0);
        let mut now = results.filesystem.clone();
        heed_mount(&mut results, &now);
        assert!(!results.is_in_doubt());
        now.options.push("barrier=0".to_owned());
        assert!(is_same_storage(&results.filesystem, &now));
        for _ in 0..2 {
            heed_mount(&mut results, &now);
        }
        let dangers = results.notices.iter();
        let dangers = dangers.filter(|notice| notice.code == "no-barrier");
        assert_eq!(dangers.count(), 1);
        let refused = crate::advice::advise(&results, "landfall-report", None).refused;
        assert!(refused.is_some_and(|why| why.contains("barrier=0")));
        now.source = "tmpfs".to_owned();
        assert!(!is_same_storage(&results.filesystem, &now));
    }

    #[test]
    fn documents_of_two_machines_are_refused() {
        let mut other = of("2026-02-01T00:00:00Z", 200.0);
        other.host.cpus += 1;
        let refused = merge(vec![of("2026-01-01T00:00:00Z", 1.0), other]).unwrap_err();
        assert!(refused.to_string().contains("two machines"), "{refused}");
    }
    /// So that it may be written in its place: nothing of it would be lost.
    #[test]
    fn a_document_replaces_what_it_has_done_again() {
        let disk = recorded("disk");
        let part = recorded("unmeasured");
        assert!(disk.replaces(&part) && disk.replaces(&disk));
        assert!(!part.replaces(&disk));
        let mut elsewhere = part.clone();
        elsewhere.directory = "/elsewhere".to_owned();
        assert!(!elsewhere.replaces(&part));
        // Another machine, or disk, in a directory of that name.
        for other in [
            |results: &mut Results| results.host.cpus += 1,
            |results: &mut Results| {
                results.filesystem.source += "x";
                results.filesystem.upper = None;
            },
        ] {
            let mut elsewhere = disk.clone();
            other(&mut elsewhere);
            assert!(!elsewhere.replaces(&part));
        }
        // A proof in fewer states.
        let only_proofs = |results: &Results| {
            let mut results = results.clone();
            let is_proof = |one: &Found| matches!(one, Found::Prove(_));
            results.experiments.retain(is_proof);
            results
        };
        let proofs = only_proofs(&disk);
        let mut fewer = proofs.clone();
        let Some(Found::Prove(proof)) = fewer.experiments.first_mut() else {
            panic!("no proof");
        };
        proof.coverage.checked = 1;
        assert!(proofs.replaces(&fewer) && !fewer.replaces(&proofs));
    }

    /// Two runs of one experiment on different settings, or databases, say nothing of each other.
    #[test]
    fn what_was_measured_of_a_database_is_replaced_by_the_same_alone() {
        let disk = recorded("disk");
        let only = |name: &str| {
            let mut results = disk.clone();
            results.experiments.retain(|one| one.name() == name);
            results.experiments.truncate(1);
            results
        };
        let torn = |change: fn(&mut TornResults)| {
            let mut results = only("torn");
            let found = results.experiments[0].of_mut::<TornResults>();
            change(found.unwrap());
            results
        };
        let whole = only("torn");
        assert!(whole.replaces(&whole));
        let without_series = torn(|found| drop(found.measurements.series.pop()));
        assert!(whole.replaces(&without_series) && !without_series.replaces(&whole));
        let without_proofs = torn(|found| found.proofs.clear());
        assert!(whole.replaces(&without_proofs) && !without_proofs.replaces(&whole));
        let lucky = torn(|found| {
            for proof in &mut found.proofs {
                (proof.damaged, proof.wrong, proof.losing) = (0, 0, 0);
            }
        });
        assert!(whole.replaces(&lucky) && !lucky.replaces(&whole));
        // Of writes to files the newest counts, however many it tried.
        let mut fewer = only("sync");
        let sync = fewer.experiments[0].of_mut::<SyncResults>();
        sync.unwrap().series.pop();
        assert!(fewer.replaces(&only("sync")));
    }

    /// A lucky run is no reason to forget an unlucky one, nor is one that was made in another way.
    #[test]
    fn a_proof_that_lost_something_is_replaced_by_no_luckier_one() {
        let of = |of: ProofResults| proof("", Found::Prove(Box::new(of)));
        let lost = failing();
        let lucky = ProofResults {
            subject: lost.subject.clone(),
            ..sound()
        };
        assert!(!of(lucky.clone()).replaces(&of(lost.clone())));
        assert!(of(lucky.clone()).replaces(&of(lucky.clone())));
        assert!(of(lost.clone()).replaces(&of(lost.clone())));
        let mut otherwise = lost.clone();
        otherwise.violations[0].violation = Violation::Diverged;
        assert!(!of(otherwise).replaces(&of(lost)));
        let kinds: [fn(&mut ProofResults); 8] = [
            |proof| proof.model = "prefix".to_owned(),
            |proof| proof.atomic_bytes = 16 << 10,
            |proof| proof.faults = vec!["bad sectors".to_owned()],
            |proof| proof.creation = true,
            |proof| proof.writeback = true,
            |proof| proof.shard = "1/2".parse().ok(),
            |proof| {
                proof.cluster = Some(ClusterCuts {
                    nodes: 3,
                    rolling: false,
                    by_victims: Vec::new(),
                    held: Vec::new(),
                });
            },
            |proof| proof.workload.acknowledged = 0,
        ];
        for change in kinds {
            let mut other = lucky.clone();
            change(&mut other);
            assert!(!of(other.clone()).replaces(&of(lucky.clone())), "{other:?}");
        }
    }
}
