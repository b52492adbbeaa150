use landfall_os::{DiskIdentity, SyncMethod};
use landfall_results::witness::{Order, Strategy, Target};

use super::*;

const RUN: Run = [1; 16];

fn begin(stream: &str, boot: &str) -> Begin {
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
