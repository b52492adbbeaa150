//! When the witness has the power cut, by commands of the operator's: IPMI, a switched socket, a relay.
//!
//! Each cut is armed with a random number of acknowledgements. When they have come the power is cut, stays off for a
//! while, and is restored. The next is armed when all that was hit has been checked.
//!
//! **A cut that was none.** A machine that goes on writing after its power was restored never lost it, and neither did one
//! that is checked without having started anew: a wrong socket. Then the cut is taken back, and the witness ends, since it
//! would count cuts that nobody made.

use std::ops::RangeInclusive;
use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use landfall_os::{Process, Stop};

use crate::Error;

/// How often it is looked whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// How the power is cut.
#[derive(Clone, Debug)]
pub struct Cutting {
    /// A shell command that cuts it.
    pub cut_with: String,
    /// One that restores it; `None` if the first does both.
    pub restore_with: Option<String>,
    /// How many acknowledgements there are before a cut.
    pub after: RangeInclusive<u64>,
    /// How many cuts.
    pub cuts: u64,
    /// How long the power is off.
    pub off: Duration,
    /// What the numbers are drawn from.
    pub seed: u64,
}

#[derive(Debug)]
enum Stage {
    /// Waits for what was hit to be checked.
    Waiting,
    /// Cuts after so many acknowledgements.
    Armed(u64),
    Cutting,
    /// Cut and restored.
    Restored,
    /// The power was not cut.
    NotCut,
}

/// Counts acknowledgements, and cuts.
#[derive(Debug)]
pub(crate) struct Cutter {
    cutting: Cutting,
    stage: Mutex<Stage>,
    changed: Condvar,
}

/// What the cutter asks of the witness.
pub(crate) trait Hit {
    /// Runs whose writers are connected now.
    type Runs;
    fn writing(&self) -> Self::Runs;
    /// Remembers that their power was cut.
    fn was_cut(&self, runs: Self::Runs) -> Result<(), Error>;
    /// Whether something that was cut is still to be checked.
    fn is_unchecked(&self) -> bool;
    fn tell(&self, what: &str);
}

impl Cutter {
    pub fn new(cutting: Cutting) -> Cutter {
        Cutter {
            cutting,
            stage: Mutex::new(Stage::Waiting),
            changed: Condvar::new(),
        }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a write that was acknowledged. Of a run that `was_cut` returns why it cannot have been.
    pub fn acknowledged(&self, was_cut: bool) -> Result<(), String> {
        let mut stage = self.stage();
        match &mut *stage {
            Stage::Armed(left) if *left > 1 => *left -= 1,
            Stage::Armed(_) => *stage = Stage::Cutting,
            // It waits with a run that was cut if the cut was of a witness before this one.
            Stage::Restored | Stage::Waiting if was_cut => {
                *stage = Stage::NotCut;
                self.changed.notify_all();
                return Err("its power was to be cut, and it still writes".to_owned());
            }
            Stage::Waiting | Stage::Cutting | Stage::Restored | Stage::NotCut => return Ok(()),
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Has a check counted, which says besides whether a run's power was to be cut and its machine had not started anew: that is
    /// known before the next cut can begin, or the last one count.
    pub fn checked<T, E>(&self, count: impl FnOnce() -> Result<(T, bool), E>) -> Result<T, E> {
        let mut stage = self.stage();
        let (counted, was_none) = count()?;
        if was_none {
            *stage = Stage::NotCut;
            self.changed.notify_all();
        }
        Ok(counted)
    }

    /// Goes on, unless it is known that the last cut was none.
    fn go_on(&self, to: Stage) {
        let mut stage = self.stage();
        if !matches!(*stage, Stage::NotCut) {
            *stage = to;
        }
    }

    /// Cuts as often as was asked for, and waits for the last check.
    pub fn run(&self, hit: &impl Hit, stop: &Stop) -> Result<(), Error> {
        let mut random = Rng::with_seed(self.cutting.seed);
        for number in 1..=self.cutting.cuts {
            self.wait(stop, |_| !hit.is_unchecked())?;
            let after = random.u64(self.cutting.after.clone());
            self.go_on(Stage::Armed(after.max(1)));
            self.wait(stop, |stage| matches!(stage, Stage::Cutting))?;
            hit.tell(&format!(
                "cut {number} of {}: after {after} writes",
                self.cutting.cuts
            ));
            let runs = hit.writing();
            let cut = hook("cut", &self.cutting.cut_with, number, stop);
            let cut = cut.and_then(|()| hit.was_cut(runs));
            if cut.is_ok() {
                self.pause(stop);
            }
            let restored = match &self.cutting.restore_with {
                // Also when it is to stop, or when the command failed, which may have cut it all the same: a machine is not left
                // without power.
                Some(restore) => hook("restore", restore, number, &Stop::default()),
                None => Ok(()),
            };
            cut.and(restored)?;
            self.restored();
            self.wait(stop, |_| !hit.is_unchecked())?;
            self.go_on(Stage::Waiting);
        }
        let stage = self.stage();
        require_cut(&stage)
    }

    /// The power is back, unless it is known by now that it never was away.
    fn restored(&self) {
        let mut stage = self.stage();
        if matches!(*stage, Stage::Cutting) {
            *stage = Stage::Restored;
        }
    }

    fn wait(&self, stop: &Stop, mut is_there: impl FnMut(&Stage) -> bool) -> Result<(), Error> {
        let mut stage = self.stage();
        loop {
            require_cut(&stage)?;
            if stop.is_requested() {
                return Err(Error::Stopped);
            }
            if is_there(&stage) {
                return Ok(());
            }
            let waited = self.changed.wait_timeout(stage, LOOK);
            stage = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits while the power is off.
    fn pause(&self, stop: &Stop) {
        let end = Instant::now() + self.cutting.off;
        while !stop.is_requested() && Instant::now() < end {
            std::thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
        }
    }
}

fn require_cut(stage: &Stage) -> Result<(), Error> {
    if !matches!(stage, Stage::NotCut) {
        return Ok(());
    }
    let text = "the command that cuts the power ran, and the machine went on writing, or did not start anew before it was checked: that was no cut, and is not counted; look at which socket or machine it names, and check a disk with a supply of its own with --cut=disk";
    Err(Error::Hook(text.to_owned()))
}

/// Runs a command of the operator's to its end.
fn hook(purpose: &str, command: &str, number: u64, stop: &Stop) -> Result<(), Error> {
    let failed =
        |why: String| Error::Hook(format!("the command to {purpose} the power failed: {why}"));
    let mut shell = Command::new("/bin/sh");
    shell.env_remove("LANDFALL_WITNESS_TOKEN");
    shell
        .args(["-c", command])
        .env("LANDFALL_CUT", number.to_string());
    let mut process = Process::start(&mut shell).map_err(|error| failed(error.to_string()))?;
    loop {
        let ended = process
            .wait(LOOK)
            .map_err(|error| failed(error.to_string()))?;
        if let Some(status) = ended {
            if status.success() {
                return Ok(());
            }
            let said = process.last_words().map(|words| format!(", {words}"));
            return Err(failed(format!("{status}{}", said.unwrap_or_default())));
        }
        if stop.is_requested() {
            return Err(Error::Stopped);
        }
    }
}

#[cfg(test)]
mod tests;
