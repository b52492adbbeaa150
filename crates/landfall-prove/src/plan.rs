//! What a proof tries.

use std::path::PathBuf;
use std::time::Duration;

use landfall_recorder::crash::{Model, StateName};
use landfall_recorder::{AtomicUnit, Fault};

use crate::check_process::CheckIn;
use crate::scratch_fs::FilesystemSpec;
use crate::subject::Subject;

/// What a proof tries.
pub struct Plan {
    /// What is proven.
    pub subject: Box<dyn Subject>,
    /// Where its crash states are checked, if it is linked in.
    pub check_in: CheckIn,
    /// The filesystem that it runs on.
    pub filesystem: FilesystemSpec,
    /// Where the recording's spill and the mount points go.
    pub directory: PathBuf,
    /// Transactions that the subject may send.
    pub transactions: u64,
    /// Which crash states are tried.
    pub model: Model,
    /// What the disk writes whole or not at all.
    pub atomic: AtomicUnit,
    /// Most states that are tried.
    pub states: usize,
    /// How long states are tried at most.
    pub most_time: Option<Duration>,
    /// What random choices are made from.
    pub seed: u64,
    /// What goes wrong with the device besides losing power.
    pub faults: Vec<Fault>,
    /// Whether write-back is injected: dirty pages are forced out between transactions.
    pub writeback: bool,
    /// Workers; `None`: as many as there are processors.
    pub workers: Option<usize>,
    /// Only this state is tried.
    pub only: Option<StateName>,
    /// A recording to try, instead of making one.
    pub recorded: Option<PathBuf>,
    /// The command line that tries one of its states again, without the state's name.
    pub again: String,
    /// Where the recording is kept.
    pub keep_recording: Option<PathBuf>,
    /// Where the image of the shortest failing state is kept; of the only state, whatever became of it.
    pub keep_image: Option<PathBuf>,
}

impl Plan {
    /// Transactions sent unless said otherwise.
    pub const TRANSACTIONS: u64 = 100;
    /// States tried unless said otherwise.
    pub const STATES: usize = 2000;

    /// A proof of the subject of this name, with these settings, on `filesystem`. Its crash states are checked in a
    /// process of their own if this program [can be one](crate::check_process::init).
    #[cfg(feature = "subjects")]
    pub fn named(
        name: &str,
        settings: &[(String, String)],
        filesystem: FilesystemSpec,
    ) -> Result<Plan, crate::Error> {
        let subject = crate::subjects::named(name, settings)?;
        Ok(Plan {
            check_in: CheckIn::for_named(name, settings),
            ..Plan::new(subject, filesystem)
        })
    }

    /// A proof of `subject` on `filesystem`, with everything else as usual.
    pub fn new(subject: Box<dyn Subject>, filesystem: FilesystemSpec) -> Plan {
        Plan {
            subject,
            check_in: CheckIn::ThisProcess,
            filesystem,
            directory: std::env::temp_dir(),
            transactions: Plan::TRANSACTIONS,
            model: Model::Subset,
            atomic: AtomicUnit::default(),
            states: Plan::STATES,
            most_time: None,
            seed: 1,
            faults: Vec::new(),
            writeback: false,
            workers: None,
            only: None,
            recorded: None,
            again: String::new(),
            keep_recording: None,
            keep_image: None,
        }
    }
}
