use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;

/// A witness with one writer that is always there.
#[derive(Default)]
struct One {
    /// Cuts that are remembered.
    cuts: AtomicU64,
    /// Of them, those that were checked.
    checked: AtomicU64,
}

impl Hit for One {
    type Runs = ();

    fn writing(&self) {}

    fn was_cut(&self, (): ()) -> Result<(), Error> {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn is_unchecked(&self) -> bool {
        self.cuts.load(Ordering::SeqCst) > self.checked.load(Ordering::SeqCst)
    }

    fn tell(&self, _: &str) {}
}

fn cutter(cut_with: &str, restore_with: Option<String>) -> Cutter {
    Cutter::new(Cutting {
        cut_with: cut_with.to_owned(),
        restore_with,
        after: 1..=1,
        cuts: 1,
        off: Duration::ZERO,
        seed: 1,
    })
}

/// Waits until a stage is there.
fn reach(cutter: &Cutter, mut is_it: impl FnMut(&Stage) -> bool) {
    while !is_it(&cutter.stage()) {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_a_witness_before_has_cut_and_writes_was_no_cut() {
    let cutter = cutter("true", None);
    let hit = One::default();
    hit.cuts.store(1, Ordering::SeqCst);
    thread::scope(|scope| {
        let ran = scope.spawn(|| cutter.run(&hit, &Stop::default()));
        assert!(cutter.acknowledged(false).is_ok());
        assert!(cutter.acknowledged(true).is_err());
        assert!(matches!(ran.join(), Ok(Err(Error::Hook(_)))));
    });
}

#[test]
fn power_comes_back_also_after_a_command_that_failed() {
    let directory = tempfile::tempdir().unwrap();
    let restored = directory.path().join("restored");
    let cutter = cutter("false", Some(format!("touch {}", restored.display())));
    let hit = One::default();
    thread::scope(|scope| {
        let ran = scope.spawn(|| cutter.run(&hit, &Stop::default()));
        reach(&cutter, |stage| matches!(stage, Stage::Armed(_)));
        assert!(cutter.acknowledged(false).is_ok());
        assert!(matches!(ran.join(), Ok(Err(Error::Hook(_)))));
    });
    assert!(restored.exists() && !hit.is_unchecked());
}

#[test]
fn a_machine_that_is_checked_and_did_not_start_anew_was_not_cut() {
    // Also if that comes while it is off.
    for is_early in [false, true] {
        let cutter = Cutter::new(Cutting {
            off: Duration::from_millis(if is_early { 300 } else { 0 }),
            ..cutter("true", None).cutting
        });
        let hit = One::default();
        thread::scope(|scope| {
            let ran = scope.spawn(|| cutter.run(&hit, &Stop::default()));
            reach(&cutter, |stage| matches!(stage, Stage::Armed(_)));
            assert!(cutter.acknowledged(false).is_ok());
            reach(&cutter, |stage| match stage {
                Stage::Cutting => is_early && hit.is_unchecked(),
                stage => matches!(stage, Stage::Restored),
            });
            let counted = cutter.checked(|| {
                hit.checked.store(1, Ordering::SeqCst);
                // Time for the cutter to look, if it could.
                thread::sleep(Duration::from_millis(200));
                Ok::<_, Error>(((), true))
            });
            assert!(counted.is_ok());
            assert!(matches!(ran.join(), Ok(Err(Error::Hook(_)))));
        });
    }
}
