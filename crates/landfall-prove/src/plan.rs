//! What a proof tries.

use std::path::PathBuf;
use std::time::Duration;

use landfall_recorder::crash::{Model, Order};
use landfall_recorder::{AtomicUnit, Fault, Offer};
use landfall_results::proof::{Shard, Violation};

use crate::CutName;
use crate::check_process::CheckIn;
use crate::scratch_fs::FilesystemSpec;
use crate::subject::Subject;

/// How many states of one power cut are enough; the shortest failing state is looked for among all only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enough {
    /// All that are planned.
    #[default]
    All,
    /// Those up to the first that fails.
    FirstFailing,
    /// Those up to the first in which this promise is broken.
    FirstWith(Violation),
}

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
    /// In which order they are tried; states of disks that write in any order alone have one but that of the recording.
    pub order: Order,
    /// What the disk writes whole or not at all.
    pub atomic: AtomicUnit,
    /// Most states that are tried.
    pub states: usize,
    /// Which of them are enough.
    pub enough: Enough,
    /// How long states are tried at most.
    pub most_time: Option<Duration>,
    /// What random choices are made from.
    pub seed: u64,
    /// What the disk offers the kernel besides writes and flushes.
    pub offer: Offer,
    /// How long the recorded disk holds a write or a flush back unanswered. A flush makes durable what was answered when it arrived,
    /// once it is answered itself: the longer, the more of a program's races between a write and a flush are recorded.
    pub hold: Duration,
    /// What goes wrong with the device besides losing power.
    pub faults: Vec<Fault>,
    /// Whether the power is cut while the subject is created too. Until it has acknowledged something, all that is left of
    /// it may be damaged.
    pub creation: bool,
    /// Whether write-back is injected: dirty pages are forced out between transactions.
    pub writeback: bool,
    /// Workers; `None`: as many as there are processors.
    pub workers: Option<usize>,
    /// Whether the subject checks every state, also those whose files are equal after recovery.
    pub check_all: bool,
    /// Most states of a second power cut, during the recovery from the first, that are tried; 0: none.
    pub second_cuts: usize,
    /// The part of the states that is tried, if other machines try the rest; `None`: all of them.
    pub shard: Option<Shard>,
    /// Only this state is tried.
    pub only: Option<CutName>,
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
    /// How long a write or a flush is held back unless said otherwise: long enough for another thread's flush, or acknowledgement, to come.
    pub const HOLD: Duration = Duration::from_micros(200);

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
            order: Order::default(),
            atomic: AtomicUnit::default(),
            states: Plan::STATES,
            enough: Enough::All,
            most_time: None,
            seed: 1,
            offer: Offer::default(),
            hold: Self::HOLD,
            faults: Vec::new(),
            creation: false,
            writeback: false,
            workers: None,
            check_all: false,
            second_cuts: 0,
            shard: None,
            only: None,
            recorded: None,
            again: String::new(),
            keep_recording: None,
            keep_image: None,
        }
    }
}
