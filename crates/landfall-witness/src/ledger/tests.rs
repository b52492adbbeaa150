use std::collections::BTreeSet;

use landfall_os::{DiskIdentity, SyncMethod};
use landfall_results::witness::{Order, Strategy, Target};
use proptest::prelude::{Just, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as _;

use super::*;

const RUN: Run = [1; 16];

pub(crate) fn begin(stream: &str, boot: &str) -> Begin {
    Begin {
        stream: stream.into(),
        target: Target {
            path: "/dev/sda".into(),
            filesystem: None,
            device_bytes: 1 << 20,
            disks: vec![DiskIdentity {
                serial: Some("S1".into()),
                size_bytes: 1 << 20,
                ..DiskIdentity::default()
            }],
        },
        strategy: Strategy {
            method: SyncMethod::FDATASYNC,
            block_bytes: 4096,
            blocks: 4,
            order: Order::Sequential,
        },
        boot: boot.into(),
    }
}

fn report(boot: &str, declared: Option<Declared>, lost: u64) -> Command {
    report_of("s", boot, declared, lost)
}

fn report_of(stream: &str, boot: &str, declared: Option<Declared>, lost: u64) -> Command {
    let report = Report {
        stream: stream.into(),
        run: RUN,
        boot: boot.into(),
        declared,
        promised: 3,
        lost,
        foreign: 0,
        losses: Vec::new(),
    };
    Command::Report { report, at: 99 }
}

fn write(write: u64) -> Command {
    let stream = "s".into();
    Command::Acknowledge {
        stream,
        run: RUN,
        write,
        at: write.wrapping_mul(10),
        checksum: write as u32,
    }
}

fn is_refused(ledger: &mut Ledger, command: Command) -> bool {
    let before = format!("{ledger:?}");
    let is_refused = matches!(ledger.apply(command), Applied::Refused(_));
    // Nothing is changed by what is refused.
    assert!(!is_refused || before == format!("{ledger:?}"));
    is_refused
}

fn with_writes(count: u64) -> Ledger {
    let mut ledger = Ledger::default();
    assert!(!is_refused(
        &mut ledger,
        Command::Begin {
            begin: begin("s", "A"),
            run: RUN,
            at: 5
        }
    ));
    for one in 1..=count {
        assert!(!is_refused(&mut ledger, write(one)));
    }
    ledger
}

fn verdict(ledger: &mut Ledger, command: Command) -> (Outcome, Cut, bool, Tally) {
    let Applied::Counted(witnessed) = ledger.apply(command) else {
        panic!("not counted");
    };
    let verdict = witnessed.verdict.unwrap();
    (
        verdict.outcome,
        verdict.cut,
        verdict.is_counted,
        witnessed.tally,
    )
}

#[test]
fn writes_follow_each_other_and_one_said_twice_is_one() {
    let mut ledger = with_writes(5);
    assert!(!is_refused(&mut ledger, write(5)));
    for wrong in [4, 7, 0, u64::MAX] {
        assert!(is_refused(&mut ledger, write(wrong)), "{wrong}");
    }
    let stream = "s".to_owned();
    let other = Command::Acknowledge {
        stream: stream.clone(),
        run: RUN,
        write: 5,
        at: 1,
        checksum: 9,
    };
    assert!(is_refused(&mut ledger, other));
    let other = Command::Acknowledge {
        stream: stream.clone(),
        run: [2; 16],
        write: 6,
        at: 1,
        checksum: 9,
    };
    assert!(is_refused(&mut ledger, other));
    // Of four blocks one is in flight: three are promised.
    let own = ledger.stream("s").unwrap();
    let times: Vec<u64> = own.page(3, 9).iter().map(|one| one.at).collect();
    assert_eq!(times, [30, 40, 50]);
    assert_eq!(own.page(5, 9).len(), 1);
    assert_eq!(own.page(6, 9).len(), 0);
    assert!(!is_refused(&mut ledger, Command::End { stream, run: RUN }));
    assert!(is_refused(&mut ledger, write(6)));
}

#[test]
fn a_clock_that_is_set_back_makes_no_later_write_an_earlier_one() {
    let mut ledger = with_writes(2);
    let stream = "s".into();
    ledger.apply(Command::Acknowledge {
        stream,
        run: RUN,
        write: 3,
        at: 1,
        checksum: 3,
    });
    assert_eq!(ledger.stream("s").unwrap().page(3, 1)[0].at, 20);
}

/// Or its blocks would be taken for those of somebody who came later.
#[test]
fn a_clock_that_is_set_back_makes_no_later_run_an_earlier_one() {
    let mut ledger = Ledger::default();
    let begun = |ledger: &mut Ledger, stream: &str, run: Run, at: u64| {
        let begin = begin(stream, "boot");
        assert!(matches!(
            ledger.apply(Command::Begin { begin, run, at }),
            Applied::Done
        ));
        ledger.stream(stream).unwrap().promises().begun
    };
    assert_eq!(begun(&mut ledger, "s", [1; 16], 100), 100);
    ledger.apply(Command::End {
        stream: "s".into(),
        run: [1; 16],
    });
    assert_eq!(begun(&mut ledger, "s", [2; 16], 50), 101);
    assert_eq!(begun(&mut ledger, "t", [3; 16], 60), 102);
    assert_eq!(begun(&mut ledger, "u", [4; 16], 1000), 1000);
}

#[test]
fn a_cut_is_one_that_somebody_knows_of() {
    use Declared::{Disk, Machine};
    for (boot, declared, ended, cut) in [
        ("A", None, false, Cut::None),
        // The machine says that it did not start anew.
        ("A", Some(Machine), false, Cut::None),
        ("A", Some(Disk), false, Cut::Declared),
        ("B", None, false, Cut::Restart),
        ("B", None, true, Cut::None),
        ("B", Some(Machine), false, Cut::Declared),
    ] {
        let mut ledger = with_writes(5);
        if ended {
            ledger.apply(Command::End {
                stream: "s".into(),
                run: RUN,
            });
        }
        assert_eq!(
            verdict(&mut ledger, report(boot, declared, 0)).1,
            cut,
            "{boot} {declared:?}"
        );
    }
    let mut ledger = with_writes(5);
    ledger.apply(Command::Cut {
        stream: "s".into(),
        run: RUN,
        at: 9,
    });
    assert!(ledger.is_any_cut_unchecked());
    assert_eq!(verdict(&mut ledger, report("B", None, 1)).1, Cut::Commanded);
    assert!(!ledger.is_any_cut_unchecked());
    let mut ledger = with_writes(5);
    ledger.apply(Command::Cut {
        stream: "s".into(),
        run: RUN,
        at: 9,
    });
    ledger.apply(Command::NotCut {
        stream: "s".into(),
        run: RUN,
    });
    assert_eq!(verdict(&mut ledger, report("A", None, 1)).1, Cut::None);
}

#[test]
fn a_machine_that_did_not_start_anew_was_not_cut_by_a_command() {
    let cut = || {
        let mut ledger = with_writes(5);
        ledger.apply(Command::Cut {
            stream: "s".into(),
            run: RUN,
            at: 9,
        });
        ledger
    };
    for declared in [None, Some(Declared::Machine)] {
        let mut ledger = cut();
        let (outcome, cut, is_counted, tally) = verdict(&mut ledger, report("A", declared, 0));
        assert_eq!((outcome, cut), (Outcome::NoCut, Cut::None));
        assert_eq!((is_counted, tally.cuts), (false, 0));
        // It is no longer taken for cut, and may go on.
        assert!(!ledger.is_any_cut_unchecked());
        assert!(!is_refused(&mut ledger, write(6)));
    }
    // But a disk with a supply of its own, if that is said.
    let mut ledger = cut();
    let (outcome, cut, is_counted, tally) =
        verdict(&mut ledger, report("A", Some(Declared::Disk), 0));
    assert_eq!((outcome, cut), (Outcome::Kept, Cut::Commanded));
    assert_eq!((is_counted, tally.cuts), (true, 1));
}

#[test]
fn a_cut_counts_once_and_closes_the_run() {
    let mut ledger = with_writes(5);
    let (outcome, _, is_counted, tally) =
        verdict(&mut ledger, report("B", Some(Declared::Machine), 2));
    assert_eq!(
        (outcome, is_counted, tally.cuts, tally.losing),
        (Outcome::Lost, true, 1, 1)
    );
    assert!(is_refused(
        &mut ledger,
        report("B", Some(Declared::Machine), 2)
    ));
    assert!(is_refused(&mut ledger, write(6)));
}

#[test]
fn what_was_suspicious_is_a_loss_once_somebody_knows_of_the_cut() {
    let mut ledger = with_writes(5);
    let (outcome, _, _, tally) = verdict(&mut ledger, report("B", None, 2));
    assert_eq!(
        (outcome, tally.cuts, tally.suspicious),
        (Outcome::Suspicious, 0, 1)
    );
    assert_eq!(verdict(&mut ledger, report("B", None, 2)).3.suspicious, 1);
    let (outcome, _, _, tally) = verdict(&mut ledger, report("B", Some(Declared::Machine), 2));
    assert_eq!(
        (outcome, tally.losing, tally.suspicious),
        (Outcome::Lost, 1, 0)
    );
}

#[test]
fn a_control_that_is_checked_again_takes_no_suspicion_off_the_disk() {
    let mut ledger = with_writes(5);
    verdict(&mut ledger, report("B", None, 2));
    let mut control = begin("control", "A");
    control.strategy.method = "none".parse().unwrap();
    ledger.apply(Command::Begin {
        begin: control,
        run: RUN,
        at: 5,
    });
    for _ in 0..2 {
        let again = report_of("control", "B", None, 2);
        let (outcome, _, _, tally) = verdict(&mut ledger, again);
        assert_eq!((outcome, tally.suspicious), (Outcome::Suspicious, 1));
    }
}

/// A run of five writes on another stream of the same disk.
fn also_written(ledger: &mut Ledger, stream: &str, boot: &str) {
    let run = RUN;
    let begin = begin(stream, boot);
    assert!(!is_refused(ledger, Command::Begin { begin, run, at: 5 }));
    for write in 1..=5 {
        let stream = stream.into();
        let one = Command::Acknowledge {
            stream,
            run,
            write,
            at: write,
            checksum: 1,
        };
        assert!(!is_refused(ledger, one));
    }
}

#[test]
fn one_cut_of_two_streams_of_a_disk_is_one() {
    let machine = Some(Declared::Machine);
    for (first, second, losing) in [(0, 0, 0), (0, 2, 1), (2, 0, 1), (2, 2, 1)] {
        let mut ledger = with_writes(5);
        also_written(&mut ledger, "other", "A");
        let (_, _, is_counted, tally) = verdict(&mut ledger, report("B", machine, first));
        assert_eq!((is_counted, tally.cuts), (true, 1));
        let again = report_of("other", "B", machine, second);
        let (_, _, is_counted, tally) = verdict(&mut ledger, again);
        assert_eq!((is_counted, tally.cuts, tally.losing), (false, 1, losing));
        // Another cut, of both: whichever is checked first.
        also_written(&mut ledger, "other", "B");
        also_written(&mut ledger, "s", "B");
        let (_, _, is_counted, tally) = verdict(&mut ledger, report_of("other", "C", machine, 0));
        assert_eq!((is_counted, tally.cuts, tally.losing), (true, 2, losing));
        let (_, _, is_counted, tally) = verdict(&mut ledger, report("C", machine, 0));
        assert_eq!((is_counted, tally.cuts, tally.losing), (false, 2, losing));
    }
}

#[test]
fn a_cut_that_lost_on_two_streams_lost_once_whichever_was_checked_before() {
    let machine = Some(Declared::Machine);
    let mut ledger = with_writes(5);
    also_written(&mut ledger, "two", "A");
    also_written(&mut ledger, "three", "A");
    verdict(&mut ledger, report("B", machine, 0));
    verdict(&mut ledger, report_of("two", "B", machine, 1));
    let (_, _, _, tally) = verdict(&mut ledger, report_of("three", "B", machine, 1));
    assert_eq!((tally.cuts, tally.losing), (1, 1));
}

#[test]
fn a_control_that_lost_what_it_was_to_lose_hides_no_loss_of_the_same_cut() {
    let machine = Some(Declared::Machine);
    let mut ledger = with_writes(5);
    also_written(&mut ledger, "other", "A");
    let mut control = begin("control", "A");
    control.strategy.method = "none".parse().unwrap();
    let run = RUN;
    let begin = Command::Begin {
        begin: control,
        run,
        at: 5,
    };
    assert!(!is_refused(&mut ledger, begin));
    verdict(&mut ledger, report("B", machine, 0));
    let (outcome, _, _, tally) = verdict(&mut ledger, report_of("control", "B", machine, 1));
    assert_eq!((outcome, tally.losing), (Outcome::Lost, 0));
    let (_, _, _, tally) = verdict(&mut ledger, report_of("other", "B", machine, 1));
    assert_eq!((tally.cuts, tally.losing), (1, 1));
}

/// What happens to a disk with streams.
#[derive(Clone, Debug)]
enum Event {
    Write(usize),
    /// The machine loses its power.
    Cut,
    Check {
        stream: usize,
        lost: u64,
        is_declared: bool,
    },
}

fn event() -> impl proptest::strategy::Strategy<Value = Event> {
    prop_oneof![
        3 => (0..3usize).prop_map(Event::Write),
        1 => Just(Event::Cut),
        2 => (0..3usize, 0..2u64, any::<bool>()).prop_map(|(stream, lost, is_declared)| Event::Check {
            stream,
            lost,
            is_declared,
        }),
    ]
}

proptest! {
    /// However streams, cuts and checks mix: no more cuts are counted than there were, and of those that lost all.
    #[test]
    fn no_more_cuts_are_counted_than_there_were(events in prop::collection::vec(event(), 0..60)) {
        let mut ledger = Ledger::default();
        let (mut cuts, mut begun) = (0, 0);
        // Lives of the machine of which something was lost, as somebody says.
        let mut losing = BTreeSet::new();
        // The run, the start of the machine in which it began, and its writes.
        let mut runs: [Option<(Run, u64, u64)>; 3] = [None; 3];
        for event in events {
            match event {
                Event::Cut => cuts += 1,
                Event::Write(number) => {
                    let stream = number.to_string();
                    if runs[number].is_none_or(|(_, boot, _)| boot != cuts) {
                        begun += 1;
                        let (run, boot) = ([begun; 16], cuts.to_string());
                        let begin = begin(&stream, &boot);
                        if is_refused(&mut ledger, Command::Begin { begin, run, at: 5 }) {
                            continue;
                        }
                        runs[number] = Some((run, cuts, 0));
                    }
                    let Some((run, _, writes)) = &mut runs[number] else { continue };
                    *writes += 1;
                    let (run, write) = (*run, *writes);
                    let one = Command::Acknowledge { stream, run, write, at: write, checksum: 1 };
                    if is_refused(&mut ledger, one) {
                        // It was checked: the next is of another run.
                        runs[number] = None;
                    }
                }
                Event::Check { stream, lost, is_declared } => {
                    let Some((run, boot, writes)) = runs[stream] else { continue };
                    let promised = writes.min(3);
                    let report = Report {
                        stream: stream.to_string(),
                        run,
                        boot: cuts.to_string(),
                        declared: is_declared.then_some(Declared::Machine),
                        promised,
                        lost: lost.min(promised),
                        foreign: 0,
                        losses: Vec::new(),
                    };
                    let Applied::Counted(found) = ledger.apply(Command::Report { report, at: 99 }) else {
                        continue;
                    };
                    if found.verdict.is_some_and(|verdict| verdict.outcome == Outcome::Lost) {
                        losing.insert(boot);
                    }
                }
            }
            for known in ledger.status(0, 9).1 {
                prop_assert!(known.tally.cuts <= cuts, "{} of {cuts}", known.tally.cuts);
                prop_assert!(known.tally.losing <= known.tally.cuts);
                prop_assert_eq!(known.tally.losing, losing.len() as u64);
            }
        }
    }
}

#[test]
fn nothing_is_written_over_what_a_cut_may_have_lost() {
    let mut ledger = with_writes(5);
    let again = |boot| Command::Begin {
        begin: begin("s", boot),
        run: [2; 16],
        at: 5,
    };
    assert!(is_refused(&mut ledger, again("B")));
    ledger.apply(Command::Cut {
        stream: "s".into(),
        run: RUN,
        at: 9,
    });
    assert!(is_refused(&mut ledger, again("A")));
    verdict(&mut ledger, report("B", None, 0));
    assert!(!is_refused(&mut ledger, again("B")));
    // The last verdict is known until there is another, and is no verdict of this run.
    let kept = ledger.status(0, 9).1;
    assert_eq!(kept[0].verdict.as_ref().unwrap().outcome, Outcome::Kept);
    assert!(ledger.stream("s").unwrap().promises().checked.is_none());
    // A writer that said that it ends, and a machine that went down after that.
    let mut ledger = with_writes(5);
    ledger.apply(Command::End {
        stream: "s".into(),
        run: RUN,
    });
    assert!(!is_refused(&mut ledger, again("B")));
}

#[test]
fn cuts_are_counted_by_disk() {
    let mut ledger = with_writes(5);
    verdict(&mut ledger, report("B", Some(Declared::Machine), 0));
    ledger.apply(Command::Begin {
        begin: begin("another stream", "B"),
        run: [3; 16],
        at: 5,
    });
    let (all, known) = ledger.status(0, 9);
    assert_eq!(all, 2);
    assert!(known.iter().all(|one| one.tally.cuts == 1));
    // A disk that says nothing of itself is known by its stream alone.
    let mut nameless = begin("third", "B");
    nameless.target.disks[0].serial = None;
    ledger.apply(Command::Begin {
        begin: nameless,
        run: [4; 16],
        at: 5,
    });
    let third = ledger
        .status(0, 9)
        .1
        .into_iter()
        .find(|one| one.stream == "third")
        .unwrap();
    assert_eq!(third.tally.cuts, 0);
}

/// With five writes, and a stream on a disk of the same serial number and another model.
fn with_another_disk() -> Ledger {
    let mut ledger = with_writes(5);
    let mut other = begin("other", "A");
    other.target.disks[0].model = Some("another".into());
    let run = RUN;
    let begin = Command::Begin {
        begin: other,
        run,
        at: 5,
    };
    assert!(!is_refused(&mut ledger, begin));
    ledger
}

#[test]
fn disks_of_one_serial_number_that_differ_otherwise_are_two() {
    let mut ledger = with_another_disk();
    verdict(&mut ledger, report("B", Some(Declared::Machine), 1));
    let known = ledger.status(0, 9).1;
    let counted: Vec<(&str, u64)> = known
        .iter()
        .map(|one| (one.stream.as_str(), one.tally.cuts))
        .collect();
    assert_eq!(counted, [("other", 0), ("s", 1)]);
}

/// It had one count for all disks of a serial number: which of them was cut is not known.
#[test]
fn what_an_earlier_version_has_counted_is_that_of_each_disk_it_knew() {
    let mut ledger = with_another_disk();
    let before = Tally {
        cuts: 7,
        ..Tally::default()
    };
    ledger.disks = [("disk S1".to_owned(), before)].into();
    let cuts = |ledger: &Ledger| -> Vec<u64> {
        let known = ledger.status(0, 9).1;
        known.iter().map(|one| one.tally.cuts).collect()
    };
    assert_eq!(cuts(&ledger), [7, 7]);
    verdict(&mut ledger, report("B", Some(Declared::Machine), 0));
    assert_eq!(cuts(&ledger), [7, 8]);
    assert_eq!(ledger.disks.len(), 2);
}

#[test]
fn a_run_that_has_ended_while_the_power_was_cut_is_still_to_be_checked() {
    let mut ledger = with_writes(5);
    let stream = "s".to_owned();
    let run = RUN;
    assert!(!is_refused(&mut ledger, Command::End { stream, run }));
    let stream = "s".to_owned();
    let cut = Command::Cut { stream, run, at: 9 };
    assert!(!is_refused(&mut ledger, cut));
    assert!(ledger.is_any_cut_unchecked());
}

#[test]
fn there_are_so_many_streams_and_no_more() {
    let mut ledger = Ledger::default();
    for number in 0..MOST_STREAMS {
        let begin = begin(&number.to_string(), "A");
        assert!(!is_refused(
            &mut ledger,
            Command::Begin {
                begin,
                run: RUN,
                at: 5
            }
        ));
    }
    assert!(is_refused(
        &mut ledger,
        Command::Begin {
            begin: begin("more", "A"),
            run: RUN,
            at: 5
        }
    ));
    assert!(!is_refused(
        &mut ledger,
        Command::Begin {
            begin: begin("7", "A"),
            run: RUN,
            at: 5
        }
    ));
    let wrong = |change: fn(&mut Begin)| {
        let mut one = begin("7", "A");
        change(&mut one);
        is_refused(
            &mut Ledger::default(),
            Command::Begin {
                begin: one,
                run: RUN,
                at: 5,
            },
        )
    };
    assert!(wrong(|one| one.strategy.blocks = 1));
    assert!(wrong(|one| one.strategy.blocks = u32::MAX));
    assert!(wrong(|one| one.strategy.block_bytes = 512));
    assert!(wrong(|one| one.strategy.block_bytes = 0));
    assert!(wrong(|one| one.stream = "x".repeat(600)));
    assert!(wrong(|one| one.stream = String::new()));
    assert!(wrong(|one| one.target.path = "x".repeat(5000)));
}
