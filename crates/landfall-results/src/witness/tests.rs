use super::*;
use crate::Weight;

fn strategy(method: &str) -> Strategy {
    Strategy {
        method: method.parse().unwrap(),
        block_bytes: 4096,
        blocks: 64,
        order: Order::Sequential,
    }
}

fn target(serial: Option<&str>) -> Target {
    Target {
        path: "/mnt/data".into(),
        filesystem: Some(MountedFilesystem {
            kind: "ext4".into(),
            mount_point: "/mnt/data".into(),
        }),
        device_bytes: 1 << 30,
        disks: vec![DiskIdentity {
            model: Some("M".into()),
            serial: serial.map(str::to_owned),
            size_bytes: 1 << 30,
            ..DiskIdentity::default()
        }],
    }
}

#[test]
fn a_loss_is_the_disks_only_after_a_known_cut() {
    for cut in [Cut::Commanded, Cut::Declared] {
        assert_eq!(Outcome::of(cut, 9, 1, 0), Outcome::Lost);
        assert_eq!(Outcome::of(cut, 9, 0, 0), Outcome::Kept);
    }
    for cut in [Cut::Restart, Cut::None] {
        assert_eq!(Outcome::of(cut, 9, 1, 0), Outcome::Suspicious);
    }
    assert_eq!(Outcome::of(Cut::Restart, 9, 0, 0), Outcome::Kept);
    assert_eq!(Outcome::of(Cut::None, 9, 0, 0), Outcome::NoCut);
    for cut in [Cut::Commanded, Cut::Declared, Cut::Restart, Cut::None] {
        assert_eq!(Outcome::of(cut, 9, 1, 1), Outcome::Changed);
        assert_eq!(Outcome::of(cut, 0, 0, 0), Outcome::NothingPromised);
    }
}

fn verdict(outcome: Outcome, cut: Cut) -> Verdict {
    Verdict {
        outcome,
        cut,
        writer_had_ended: false,
        is_counted: false,
        uncounted: None,
        run: "01".into(),
        checked: "2026-01-01T00:00:00Z".into(),
        acknowledged: 9,
        last_acknowledged: None,
        promised: 9,
        lost: 0,
        losses: Vec::new(),
    }
}

#[test]
fn where_there_was_no_cut_it_is_said_why() {
    let said = verdict(Outcome::NoCut, Cut::None).remark().unwrap();
    assert!(said.contains("did not start anew"), "{said}");
    let ended = Verdict {
        writer_had_ended: true,
        ..verdict(Outcome::NoCut, Cut::None)
    };
    assert_eq!(ended.remark(), None);
}

#[test]
fn what_proves_nothing_does_not_improve_the_bound() {
    let mut tally = Tally::default();
    assert!(tally.count(Outcome::Kept, None, false));
    let one = tally;
    assert_eq!((one.cuts, one.losing), (1, 0));
    for (outcome, uncounted) in [
        (Outcome::Kept, Some(Uncounted::WriterEnded)),
        (Outcome::Kept, Some(Uncounted::WriterGone)),
        (Outcome::Kept, Some(Uncounted::WitnessAway)),
        (Outcome::Kept, Some(Uncounted::Restart)),
        (Outcome::Kept, Some(Uncounted::CountedBefore)),
        (Outcome::NoCut, None),
        (Outcome::Changed, None),
        (Outcome::NothingPromised, None),
        (Outcome::Kept, Some(Uncounted::Control)),
        (Outcome::Lost, Some(Uncounted::Control)),
        (Outcome::Suspicious, Some(Uncounted::Control)),
    ] {
        assert!(!tally.count(outcome, uncounted, false));
        assert_eq!(tally, one);
    }
    assert!(!tally.count(Outcome::Suspicious, None, false));
    assert_eq!((tally.cuts, tally.suspicious), (1, 1));
    // A loss that another stream of the disk shows of the cut that was counted, and a second of the same cut.
    let same = Some(Uncounted::CountedBefore);
    assert!(!tally.count(Outcome::Lost, same, false));
    assert_eq!((tally.cuts, tally.losing), (1, 1));
    assert!(!tally.count(Outcome::Lost, same, true));
    assert_eq!((tally.cuts, tally.losing), (1, 1));
    assert!(tally.count(Outcome::Lost, None, false));
    assert_eq!((tally.cuts, tally.losing), (2, 2));
}

#[test]
fn another_disk_or_filesystem_is_told_from_the_same() {
    let then = target(Some("1"));
    assert_eq!(then.difference(&then), None);
    let other = then.difference(&target(Some("2"))).unwrap();
    assert!(other.contains("serial number 2"), "{other}");
    let unmounted = Target {
        filesystem: Some(MountedFilesystem {
            kind: "ext4".into(),
            mount_point: "/".into(),
        }),
        ..then.clone()
    };
    let said = then.difference(&unmounted).unwrap();
    assert!(said.ends_with("and is ext4 mounted on /"), "{said}");
    assert_eq!(then.unique().as_deref(), Some("1"));
    assert_eq!(target(None).unique(), None);
}

fn witnessed(cuts: u64, losing: u64, suspicious: u64) -> Witnessed {
    Witnessed {
        stream: "disk".into(),
        target: target(Some("1")),
        strategy: strategy("fdatasync"),
        tally: Tally {
            cuts,
            losing,
            suspicious,
            losing_at_most: losing_at_most(losing, cuts),
        },
        verdict: None,
    }
}

#[test]
fn evidence_weighs_as_much_as_was_lost() {
    let kept = witnessed(20, 0, 0).notice();
    assert_eq!(kept.weight, Weight::Note);
    assert!(
        kept.text.contains("lost nothing in 20 power cuts"),
        "{}",
        kept.text
    );
    assert!(kept.text.contains("at most 13.9% of cuts"), "{}", kept.text);
    let lost = witnessed(20, 1, 3).notice();
    assert_eq!(lost.weight, Weight::Danger);
    assert!(lost.text.contains("in 1 of 20 power cuts"), "{}", lost.text);
    assert_eq!(witnessed(20, 0, 1).notice().weight, Weight::Warning);
    assert!(
        witnessed(0, 0, 0)
            .notice()
            .text
            .contains("after no power cut")
    );
}

#[test]
fn a_document_is_read_back_and_another_is_refused() {
    let document = WitnessDocument::new(vec![witnessed(20, 0, 0)]);
    assert_eq!(
        WitnessDocument::parse(&document.to_json()),
        Ok(document.clone())
    );
    let newer = WitnessDocument {
        schema: "landfall-witness/9".into(),
        ..document
    };
    let error = WitnessDocument::parse(&newer.to_json()).unwrap_err();
    assert!(error.contains("landfall-witness/9"), "{error}");
    assert!(WitnessDocument::parse("{}").is_err());
}
