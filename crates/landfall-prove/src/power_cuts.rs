//! Power cuts in a store's own `#[test]`.
//!
//! What came of it is one of three: it is as the test says, it is not, or this machine cannot tell. Without root, or
//! without FUSE and loop devices, the test runs itself inside User-mode Linux; where that is not installed it is
//! skipped, and says why on standard error, past the test harness, which shows nothing of a test that passes.
//!
//! Threads: the proof has one of its own, as its mounts are private to it and to those that it starts. Nothing is left
//! behind however the test ends: mounts and devices go with the process, and directories of tests that were killed are
//! removed by the next one.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::thread;

use landfall_os::abandoned_in;
use landfall_os::humanize::quoted;
use landfall_recorder::{Fault, Offer};
use landfall_results::proof::{Outcome, ProofResults, summary_text};

use crate::check_process::{Call, CheckIn, serve_test};
use crate::scratch_fs::{FilesystemSpec, Kind};
use crate::uml::{self, Guest};
use crate::{Error, Plan, Silent, Stop, Subject, prove};

/// Makes a test that would be skipped fail.
const NO_SKIP: &str = "LANDFALL_NO_SKIP";
/// The only crash state to try, by its name.
const STATE: &str = "LANDFALL_STATE";
/// A file that keeps what is recorded, and is tried instead of a new recording once it is there: the name of a state
/// holds for one recording.
const RECORDING: &str = "LANDFALL_RECORDING";
/// Inside User-mode Linux: the one call of the test that proves something there.
const CALL: &str = "LANDFALL_CALL";
/// How a test ends inside User-mode Linux that was not as it says, or was skipped.
const FAILED: i32 = 1;
const SKIPPED: i32 = 77;

/// Cuts the power while a subject runs, as a test does: by default 100 transactions on ext4, and 2,000 crash states.
///
/// ```no_run
/// # use std::path::Path;
/// # use landfall_prove::{AckSink, Recovered, Stop, Subject, SubjectError, SubjectName};
/// # struct MyStore;
/// # impl Subject for MyStore {
/// #     fn name(&self) -> SubjectName { "mine".into() }
/// #     fn prepare(&self, _: &Path, _: &Stop) -> Result<(), SubjectError> { Ok(()) }
/// #     fn run(&self, _: &Path, _: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> { Ok(()) }
/// #     fn check(&self, _: &Path, _: &Stop) -> Result<Recovered, SubjectError> { Ok(Recovered::default()) }
/// # }
/// use landfall_prove::PowerCuts;
///
/// #[test]
/// fn a_power_cut_loses_nothing() {
///     PowerCuts::on(MyStore).transactions(40).states(500).lose_nothing();
/// }
/// ```
#[must_use = "nothing is tried before it is said what power cuts lose"]
pub struct PowerCuts {
    plan: Plan,
    is_in_this_process: bool,
}

/// What came of it, in words.
enum Verdict {
    /// What the test says.
    AsSaid(String),
    /// Something else.
    Otherwise(String),
    /// This machine cannot tell.
    Unknown(String),
}

impl PowerCuts {
    /// Power cuts while `subject` runs.
    pub fn on(subject: impl Subject + 'static) -> PowerCuts {
        let ext4 = FilesystemSpec::plain(Kind::Ext4);
        PowerCuts::from(Plan::new(Box::new(subject), ext4))
    }

    /// Transactions that the subject may send.
    pub fn transactions(mut self, transactions: u64) -> PowerCuts {
        self.plan.transactions = transactions;
        self
    }

    /// Crash states that are tried at most.
    pub fn states(mut self, states: usize) -> PowerCuts {
        self.plan.states = states;
        self
    }

    /// Cuts the power a second time, while filesystem and subject recover from the first cut, and tries this many of the
    /// states that this leaves at most; none, unless it is called.
    pub fn second_cuts(mut self, states: usize) -> PowerCuts {
        self.plan.second_cuts = states;
        self
    }

    /// What random choices are made from.
    pub fn seed(mut self, seed: u64) -> PowerCuts {
        self.plan.seed = seed;
        self
    }

    /// The filesystem that the subject runs on.
    pub fn filesystem(mut self, filesystem: FilesystemSpec) -> PowerCuts {
        self.plan.filesystem = filesystem;
        self
    }

    /// Cuts the power while the subject is prepared too. Until it has acknowledged something, it may be damaged.
    pub fn creation(mut self) -> PowerCuts {
        self.plan.creation = true;
        self
    }

    /// The disk offers to make single writes durable by themselves (force unit access, FUA), as many do. The kernel must have
    /// network block devices; where it has none the test runs inside User-mode Linux, where that is installed.
    pub fn force_unit_access(mut self) -> PowerCuts {
        self.plan.offer = Offer::ForceUnitAccess;
        self
    }

    /// Forces pages that the subject leaves dirty out to the device, now and then: for a subject that does not sync
    /// everything it writes.
    pub fn writeback(mut self) -> PowerCuts {
        self.plan.writeback = true;
        self
    }

    /// What goes wrong with the device besides losing power; may be called more than once.
    pub fn fault(mut self, fault: Fault) -> PowerCuts {
        self.plan.faults.push(fault);
        self
    }

    /// Checks crash states in the test's own process. Otherwise the test is run a second time, alone, up to these power
    /// cuts, and that process checks: a store that crashes is damaged, and does not end the test.
    pub fn in_this_process(mut self) -> PowerCuts {
        self.is_in_this_process = true;
        self
    }

    /// Fails the test if a promise was broken in any crash state, with the state that lacks least, in words; and if
    /// nothing could be proven.
    #[track_caller]
    pub fn lose_nothing(self) {
        self.tell(Outcome::LostNothing);
    }

    /// Fails the test unless a promise was broken: a planted fault must be caught, or the test beside it shows nothing.
    #[track_caller]
    pub fn lose_something(self) {
        self.tell(Outcome::LostSomething);
    }

    #[track_caller]
    fn tell(self, said: Outcome) {
        // If this is the first process of User-mode Linux; it does not return then.
        uml::init();
        let call = Call::next();
        if serve_test(self.plan.subject.as_ref(), call) {
            return;
        }
        if std::env::var(CALL).is_ok_and(|wanted| wanted != call.name()) {
            return;
        }
        let test = test_name();
        let verdict = match self.prove(said, test.as_deref(), call) {
            Verdict::Unknown(why) if !uml::is_inside() && uml::is_installed() => {
                inside(why, test.as_deref(), call)
            }
            verdict => verdict,
        };
        if uml::is_inside() {
            end_inside(&verdict);
        }
        match verdict {
            Verdict::AsSaid(text) => println!("{text}"),
            Verdict::Otherwise(text) => panic!("{text}"),
            Verdict::Unknown(why) => skip(test.as_deref(), &why),
        }
    }

    /// Proves it in a thread of its own, and holds what came of it against what the test says.
    fn prove(mut self, said: Outcome, test: Option<&str>, call: Call) -> Verdict {
        if let (Some(test), false) = (test, self.is_in_this_process) {
            self.plan.check_in = CheckIn::for_test(test, call);
        }
        if let Ok(name) = std::env::var(STATE) {
            match name.parse() {
                // A debugger is looking at this process.
                Ok(state) => {
                    self.plan.only = Some(state);
                    self.plan.check_in = CheckIn::ThisProcess;
                }
                Err(error) => return Verdict::Otherwise(format!("{STATE}={name}: {error}")),
            }
        }
        let recording = std::env::var_os(RECORDING).map(PathBuf::from);
        if recording.as_ref().is_some_and(|file| file.exists()) {
            self.plan.recorded = recording;
        } else {
            self.plan.keep_recording = recording;
        }
        // What cannot be removed now is removed another time.
        for left in abandoned_in(&self.plan.directory).unwrap_or_default() {
            let _ = fs::remove_dir_all(left);
        }
        let plan = self.plan;
        let thread = thread::Builder::new()
            .name(test.unwrap_or("power cuts").to_owned())
            .spawn(move || prove(&plan, &Stop::default(), &mut Silent));
        let proof = match thread.map(thread::JoinHandle::join) {
            Ok(Ok(proof)) => proof,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(Error::io("cannot start a thread")(error)),
        };
        match proof {
            Ok(proof) if proof.results.outcome() == said => {
                Verdict::AsSaid(summary_text::of(&proof.results))
            }
            Ok(proof) => Verdict::Otherwise(unexpected(&proof.results, test)),
            Err(Error::Refused(why)) => Verdict::Unknown(why),
            Err(error) => Verdict::Otherwise(format!("nothing could be proven: {error}")),
        }
    }
}

impl From<Plan> for PowerCuts {
    fn from(plan: Plan) -> PowerCuts {
        PowerCuts {
            plan,
            is_in_this_process: false,
        }
    }
}

/// What a proof came to that should have come to something else, and how to see it again.
fn unexpected(proof: &ProofResults, test: Option<&str>) -> String {
    let mut text = summary_text::of(proof);
    let (Some(state), Some(test)) = (&proof.shortest, test) else {
        return text;
    };
    text.push_str(&match std::env::var(RECORDING) {
        Ok(file) => format!(
            "\nThis state alone: {RECORDING}={} {STATE}={} cargo test {test}\n",
            quoted(&file),
            state.name
        ),
        Err(_) => format!(
            "\nTo look closer, keep the recording: {RECORDING}=recording cargo test {test}\n"
        ),
    });
    text
}

/// The name of the test that runs: the harness gives it to the test's thread.
fn test_name() -> Option<String> {
    let thread = thread::current();
    let name = thread.name().filter(|name| *name != "main");
    name.map(str::to_owned)
}

/// Runs the test, alone, inside User-mode Linux, up to this call, since this machine cannot tell, and `why`.
fn inside(why: String, test: Option<&str>, call: Call) -> Verdict {
    let Some(test) = test else {
        return Verdict::Unknown(why);
    };
    let arguments = [test, "--exact", "--include-ignored", "--nocapture"].map(Into::into);
    let guest = Guest {
        arguments: arguments.to_vec(),
        init_arguments: arguments.to_vec(),
        variables: vec![format!("{CALL}={}", call.name()).into()],
        keeps_stderr: true,
    };
    match uml::run(&guest, &Stop::default()) {
        Ok(ended) => match (ended.report, ended.status) {
            (Some(text), 0) => Verdict::AsSaid(text),
            (Some(text), FAILED) => Verdict::Otherwise(text),
            (Some(text), SKIPPED) => Verdict::Unknown(text),
            // It panicked before there was a verdict.
            (_, status) => Verdict::Otherwise(format!(
                "inside User-mode Linux the test ended with {status}:\n{}{}",
                String::from_utf8_lossy(&ended.stdout),
                String::from_utf8_lossy(&ended.stderr)
            )),
        },
        Err(Error::Refused(refused)) => Verdict::Unknown(format!("{why}; and {refused}")),
        Err(error) => Verdict::Otherwise(format!("{why}; and {error}")),
    }
}

/// Inside User-mode Linux, where nothing else runs: hands the verdict out.
fn end_inside(verdict: &Verdict) -> ! {
    let (text, status) = match verdict {
        Verdict::AsSaid(text) => (text, 0),
        Verdict::Otherwise(text) => (text, FAILED),
        Verdict::Unknown(text) => (text, SKIPPED),
    };
    if let Err(error) = uml::report(text) {
        // The outer half shows it, for want of a report.
        eprintln!("cannot report: {error}\n{text}");
    }
    std::process::exit(status);
}

/// Says why the test is skipped; fails it where none may be.
#[track_caller]
fn skip(test: Option<&str>, why: &str) {
    let instead = if uml::is_inside() || uml::is_installed() {
        String::new()
    } else {
        format!("; or install {}", uml::PACKAGE)
    };
    assert!(
        std::env::var_os(NO_SKIP).is_none(),
        "no power was cut, and {NO_SKIP} is set: {why}{instead}"
    );
    let test = test.unwrap_or("power cuts");
    // Not by a macro, whose text the harness keeps to itself. If standard error is gone there is nobody to tell.
    let _ = io::stderr().write_all(format!("skipped {test}: {why}{instead}\n").as_bytes());
}
