//! Power cuts of a cluster: mistakes are caught, names mean the same each time, and no acknowledgement comes before its flush.
//!
//! Where no recorded filesystem can be made a test is skipped, which `LANDFALL_NO_SKIP` makes a failure.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use landfall_prove::cluster::{
    self, ClusterCase, ClusterPlan, ClusterStateName, Cuts, prove_cluster,
};
use landfall_prove::scratch_fs::{
    BackingDevice, FilesystemSpec, Kind, ScratchFilesystem, require_recorder,
};
use landfall_prove::{Error, Offer, Silent, Stop};
use landfall_recorder::{CommonOrder, EventKind, Options, SiteRecording};
use landfall_results::proof::{Happening, Moment, Outcome, ProofResults, VictimCuts, Violation};

fn is_skipped() -> bool {
    match require_recorder(&std::env::temp_dir(), Offer::Flushes) {
        Ok(()) => false,
        Err(why) => {
            assert!(std::env::var_os("LANDFALL_NO_SKIP").is_none(), "{why}");
            eprintln!("skipped: {why}");
            true
        }
    }
}

fn proven(plan: &ClusterPlan) -> ProofResults {
    prove_cluster(plan, &Stop::default(), &mut Silent)
        .unwrap()
        .results
}

fn log(mistake: &str, filesystem: &str) -> ClusterPlan {
    let settings = [("mistake".to_owned(), mistake.to_owned())];
    let subject = cluster::named("replicated-log", &settings, 3).unwrap();
    ClusterPlan::new(subject, 3, filesystem.parse().unwrap())
}

#[test]
fn what_is_right_loses_nothing_and_each_mistake_is_caught() {
    if is_skipped() {
        return;
    }
    // A leader syncs, and one follower of two, if it does; who does not elect by the log finds less than there is.
    let holders = [Some(2), Some(1), None, None];
    for (case, holders) in ClusterCase::all().zip(holders) {
        let plan = case.plan(None).unwrap();
        let mut found = proven(&plan);
        found.expected = Some(case.expected);
        let seen = (found.failing_states, &found.unchecked, &found.violations);
        assert_eq!(found.is_as_expected(), Some(true), "{case:?}: {seen:?}");
        assert_eq!(found.unchecked, None);
        let cluster = found.cluster.unwrap();
        let sum = |count: fn(&VictimCuts) -> u64| cluster.by_victims.iter().map(count).sum::<u64>();
        assert_eq!(sum(|cuts| cuts.losing), found.losing_states);
        assert_eq!(sum(|cuts| cuts.failing), found.failing_states);
        assert_eq!(sum(|cuts| cuts.checked), found.coverage.checked);
        if let Some(holders) = holders {
            let held = cluster.held.iter();
            let held: Vec<usize> = held
                .map(|record| {
                    record
                        .nodes
                        .iter()
                        .filter(|held| **held == Some(true))
                        .count()
                })
                .collect();
            assert_eq!(held, [holders; 5], "{case:?}: {:?}", cluster.held);
        }
        let victims: Vec<u64> = cluster.by_victims.iter().map(|cuts| cuts.victims).collect();
        assert_eq!((cluster.nodes, victims), (3, vec![1, 2, 3]));
    }
}

#[test]
fn a_name_means_the_same_each_time() {
    if is_skipped() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let recording = directory.path().join("recording");
    let mut plan = log("unsynced", "xfs");
    plan.states = 60;
    plan.keep_recording = Some(recording.clone());
    let first = proven(&plan);
    assert_eq!(first.outcome(), Outcome::LostSomething);
    plan.keep_recording = None;
    plan.recorded = Some(recording.clone());
    let again = proven(&plan);
    let verdict = |found: &ProofResults| {
        let shortest = found
            .shortest
            .as_ref()
            .map(|state| (state.name.clone(), state.details.clone()));
        (found.violations.clone(), found.cluster.clone(), shortest)
    };
    assert_eq!(verdict(&first), verdict(&again));
    let shortest = first.shortest.unwrap();
    plan.only = Some(shortest.name.parse().unwrap());
    for _ in 0..3 {
        let alone = proven(&plan);
        assert_eq!(alone.coverage.checked, 1);
        assert_eq!(alone.violations[0].violation, Violation::Lost);
        assert_eq!(alone.shortest.unwrap().details, shortest.details);
    }
    // Another one's recording.
    let mut other = log("none", "xfs");
    other.recorded = Some(recording);
    let refused = prove_cluster(&other, &Stop::default(), &mut Silent).unwrap_err();
    assert!(
        matches!(&refused, Error::Usage(why) if why.contains("--nodes 3")),
        "{refused}"
    );
    // States that it has not.
    for name in [
        "1:99999999:none,none,none:together",
        "1:9:kept,none,none:together",
    ] {
        plan.only = Some(name.parse().unwrap());
        let found = proven(&plan);
        assert_eq!(found.outcome(), Outcome::NotProven, "{name}");
    }
    // And that it cannot have.
    for name in ["1:9:none,none:together", "1:9:none,none,none:late3"] {
        plan.only = Some(name.parse().unwrap());
        let refused = prove_cluster(&plan, &Stop::default(), &mut Silent).unwrap_err();
        assert!(matches!(refused, Error::Usage(_)), "{name}: {refused}");
    }
}

#[test]
fn what_happened_before_a_loss_is_shown() {
    if is_skipped() {
        return;
    }
    let mut plan = log("unsynced", "ext4");
    plan.states = 60;
    plan.transactions = 6;
    let shortest = proven(&plan).shortest.unwrap();
    let name: ClusterStateName = shortest.name.parse().unwrap();
    let timeline = &shortest.timeline;
    assert!(timeline.is_sorted_by_key(|moment| moment.after_cut));
    let before: Vec<&Moment> = timeline.iter().filter(|one| !one.after_cut).collect();
    let after = timeline.len() - before.len();
    assert!(after > 0, "{name}: {timeline:#?}");
    // Marks are the client's, of no node; all else is of one.
    let is_of_client = |moment: &Moment| {
        matches!(
            moment.what,
            Happening::Send { .. } | Happening::Acknowledge { .. }
        )
    };
    for moment in timeline {
        assert_eq!(moment.node.is_none(), is_of_client(moment), "{moment:?}");
        assert!(moment.node.is_none_or(|node| node < 3));
    }
    let acknowledged = before
        .iter()
        .any(|moment| matches!(moment.what, Happening::Acknowledge { .. }));
    assert!(acknowledged, "{timeline:#?}");
    // What comes later cannot be missing.
    let missing =
        |moment: &Moment| matches!(moment.what, Happening::Write { missing, .. } if missing > 0);
    assert!(
        !timeline
            .iter()
            .any(|moment| moment.after_cut && missing(moment))
    );
}

#[test]
fn who_keeps_power_keeps_what_was_never_synced() {
    if is_skipped() {
        return;
    }
    // Without a single sync all three lose; one alone loses nothing that two others have.
    let mut plan = log("unsynced", "ext4");
    plan.cuts = Cuts::Some;
    plan.states = 200;
    let found = proven(&plan);
    let by_victims = found.cluster.unwrap().by_victims;
    let victims: Vec<u64> = by_victims.iter().map(|cuts| cuts.victims).collect();
    assert_eq!(victims, [1, 2]);
    assert!(by_victims.iter().all(|cuts| cuts.checked > 0));
    // Two that lost theirs are a majority, if the third comes later: what it kept is of no use.
    assert!(by_victims[1].losing > 0);
}

#[test]
fn nodes_may_end_one_after_the_other() {
    if is_skipped() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let rolling = |mistake: &str, seed: u64| {
        let mut plan = log(mistake, "ext4");
        plan.cuts = Cuts::Rolling;
        plan.states = 200;
        plan.seed = seed;
        plan
    };
    // Each may be the first.
    for seed in 0..3 {
        let found = proven(&rolling("none", seed));
        assert_eq!(
            found.outcome(),
            Outcome::LostNothing,
            "{:?}",
            found.violations
        );
        let cluster = found.cluster.unwrap();
        assert!(cluster.rolling);
        assert_eq!(cluster.by_victims.len(), 1);
        assert_eq!(
            (cluster.by_victims[0].victims, found.workload.acknowledged),
            (3, 40)
        );
    }
    let mut caught = rolling("unsynced", 0);
    caught.keep_recording = Some(directory.path().join("recording"));
    let found = proven(&caught);
    assert_eq!(found.outcome(), Outcome::LostSomething);
    let shortest = found.shortest.unwrap();
    // What the recording says of who ended when is all that is needed.
    let mut again = log("unsynced", "ext4");
    again.recorded = caught.keep_recording.take();
    again.only = Some(shortest.name.parse().unwrap());
    let alone = proven(&again);
    assert_eq!(alone.shortest.unwrap().details, shortest.details);
    // But not to plan others.
    again.only = None;
    let refused = prove_cluster(&again, &Stop::default(), &mut Silent).unwrap_err();
    assert!(refused.to_string().contains("--cuts rolling"), "{refused}");
}

/// Syncs a file on one device and then marks it on another, so many times; the mark must come after the flush in their common
/// order.
fn inversions(pairs: usize) -> usize {
    let order = CommonOrder::default();
    let spec = FilesystemSpec::plain(Kind::Ext4);
    let make = || {
        let options = Options {
            order: Some(order.clone()),
            ..Options::new(spec.small_size())
        };
        let backing = BackingDevice::recorder(&options, 0).unwrap();
        ScratchFilesystem::make(&spec, backing, &Stop::default()).unwrap()
    };
    let made = [make(), make()];
    let recorders = [0, 1].map(|node: usize| made[node].recorder().unwrap());
    for recorder in recorders {
        recorder.record().unwrap();
    }
    let file = File::create(made[0].directory().join("file")).unwrap();
    let mut mark = File::options()
        .write(true)
        .open(recorders[1].mark_path())
        .unwrap();
    for pair in 0..pairs as u64 {
        file.write_all_at(&pair.to_le_bytes(), 0).unwrap();
        file.sync_all().unwrap();
        mark.write_all(b"ack 1\n").unwrap();
    }
    drop((file, mark));
    let site = SiteRecording::finish(&order, &recorders).unwrap();
    for one in made {
        one.close().unwrap();
    }
    // Each mark has a flush of its own before it.
    let (mut flushed, mut inversions, mut marks) = (0, 0, 0);
    for (device, event) in site.in_order() {
        match site.devices()[device].events()[event].kind {
            EventKind::Flush { .. } if device == 0 => flushed += 1,
            EventKind::Mark(_) => {
                marks += 1;
                inversions += usize::from(flushed < marks);
            }
            _ => {}
        }
    }
    assert_eq!(marks, pairs);
    inversions
}

#[test]
fn no_acknowledgement_comes_before_the_flush_that_it_waited_for() {
    if is_skipped() {
        return;
    }
    let pairs = std::env::var("LANDFALL_PAIRS").map_or(2000, |pairs| pairs.parse().unwrap());
    assert_eq!(inversions(pairs), 0);
}
