//! Mistakes that the engine can be told to make, so that it is seen whether tests catch them: those of the simulator, one
//! in each world, and with the feature `mistakes` those of programs, one in each process.

#[cfg(feature = "mistakes")]
use std::sync::atomic::{AtomicUsize, Ordering};

/// The mistake that this process makes, by its place in [`Fault::all`] from 1 on; 0: none.
#[cfg(feature = "mistakes")]
static PLANTED: AtomicUsize = AtomicUsize::new(0);

/// From now on the engine makes the mistake of this name in this process, and no other; `None`: none. Whether there is
/// such a mistake.
#[cfg(feature = "mistakes")]
pub fn plant(name: Option<&str>) -> bool {
    let place = match name {
        None => Some(0),
        Some(name) => Fault::all()
            .position(|fault| format!("{fault:?}") == name)
            .map(|place| place + 1),
    };
    if let Some(place) = place {
        PLANTED.store(place, Ordering::Relaxed);
    }
    place.is_some()
}

/// The names of the mistakes of a log that a power cut, a failure or a crash shows.
#[cfg(feature = "mistakes")]
pub fn log_mistakes() -> Vec<String> {
    Fault::LOG.map(|fault| format!("{fault:?}")).to_vec()
}

/// Whether this process makes this mistake.
#[cfg(feature = "mistakes")]
pub(crate) fn is_planted(fault: Fault) -> bool {
    let place = Fault::all().position(|other| other == fault);
    place.map(|place| place + 1) == Some(PLANTED.load(Ordering::Relaxed))
}

/// Each is one line that is left out, or done too early, where the crash arguments say why it must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// Commits are written and not made durable.
    SkipFlush,
    /// A commit is acknowledged before it is written.
    AcknowledgeEarly,
    /// A sync leaves out the segment before the last.
    SyncLastSegmentOnly,
    /// A commit does not make durable what was appended before it without one.
    ForgetUnsynced,
    /// The epoch is the one of the last time the log was opened.
    KeepEpoch,
    /// A new epoch is written and not made durable before it is used.
    EpochNotDurable,
    /// The directory is not synced when a segment is made.
    SkipDirectorySync,
    /// The length of a new segment is not made durable.
    SkipSegmentSync,
    /// Segments are taken for new records before it is durable that theirs are not needed.
    ReuseBeforeTruncate,
    /// A block's checksum does not depend on the block before.
    UnchainedChecksum,
    /// A block's checksum does not cover the records.
    HeaderChecksumOnly,
    /// A failed flush is tried again as if nothing had happened.
    RetryFlush,
    /// After a failure commits are still acknowledged.
    NotPoisoned,
    /// Recovery takes a batch for whole of which only a part is there.
    TornBatch,
    /// Recovery continues behind a block that is not valid.
    SkipBadBlock,
    /// Recovery takes a damaged block that was durable for the end.
    CutCorruption,
    /// Zeros are still written to a segment that is already in use.
    ZeroBehindWriter,
    /// What is found when a log is opened is taken for durable.
    TrustWhatIsThere,
    /// A new epoch is written before what was found is durable, which its record then promises.
    EpochBeforeDurable,
    /// The directory is not synced when a log is opened.
    SkipDirectorySyncAtOpen,
    /// The name of a segment is taken for durable although a sync of the directory may have failed.
    TrustNames,
    /// Closing does not commit what was appended.
    CloseWithoutCommit,
    /// A reader gives out what was truncated, and passes over what is gone.
    ReadTruncated,
    /// One copy of the control record is written, and the other left as it was.
    OneControlCopy,
    /// A segment that is missing is taken for the end of the log.
    IgnoreGap,
    /// A segment is entered although there is none behind it.
    EnterLastSegment,
    /// A log may end earlier than its control record says.
    IgnoreControlEnd,
    /// Recovery does not look behind the first block that is not valid.
    NoWindow,
    /// Recovery looks behind the end in the segment of the end only.
    LookInOneSegment,
    /// A group is durable, and nothing on the disk says so until the next one is written.
    NoPromise,
    /// What the headers of segments promise is not looked at.
    IgnoreSegmentPromise,
    /// No space is reserved before a command is applied.
    ReserveNothing,
    /// A command is applied to a part that has one which is not in the log.
    PartStaysUsable,
    /// A snapshot is published before it is durable.
    PublishBeforeSync,
    /// The directory is not synced when a snapshot is published.
    SkipSnapshotDirectorySync,
    /// A snapshot has commands that the log can lose.
    SnapshotAheadOfLog,
    /// The log is truncated before the snapshot is published that makes up for it.
    TruncateBeforePublish,
    /// The first command that is not in a part is asked for when the part can be changed again.
    LateCapture,
    /// The log is truncated up to the newest snapshot, not to the oldest that is kept.
    ForgetOlderSnapshots,
    /// A chunk's checksum is not compared.
    SkipChunkChecksum,
    /// Commands that a part has are applied to it again.
    ApplyTwice,
    /// Pages of the last checkpoint are overwritten before the next one counts.
    FreeBeforeControl,
    /// The log of a store is truncated before the checkpoint counts that makes up for it.
    TruncateBeforeControl,
    /// A checkpoint counts before its pages are durable.
    SkipDataSync,
    /// A checkpoint has commits that the log can lose.
    CheckpointAheadOfLog,
    /// A group's leaves are said to have one commit more than they have.
    WatermarkTooHigh,
    /// A checkpoint is said to need one commit less of the log than it does.
    FirstTooHigh,
    /// A removal goes from a leaf although something older stays that a snapshot needs.
    DropRemoval,
    /// A group is cut, and the root knows only the first part of it.
    SplitWithOldParent,
    /// A group is cut, and of what came in meanwhile behind the cut no part says that it is to be written.
    SplitForgets,
    /// One copy of a store's control record is written, and the other left as it was.
    OneStoreControlCopy,
    /// A store's control file gets its name before it is durable.
    ControlBeforeSync,
    /// The directory is not synced when a store's control file is made.
    SkipStoreDirectorySync,
    /// The control record that is found when a store is opened is taken for durable.
    TrustControl,
    /// The checksum of a page is not compared.
    SkipPageChecksum,
    /// Who looks for a key passes over what a checkpoint is about to write.
    ForgetFrozen,
    /// Versions go that a snapshot needs.
    ForgetSnapshots,
    /// Transactions are committed although others came between.
    NoConflicts,
    /// Each write of a commit is a record of its own.
    RecordPerWrite,
    /// Changes go when a checkpoint fails that was to write them.
    ThawForgets,
    /// Of what was written to a key since a checkpoint, what the log has first counts when a store is opened.
    OldestOfReplay,
    /// A checkpoint knows of keyspaces what the log can lose.
    KeyspacesAheadOfLog,
    /// The list of keyspaces is let go before what is in them is read for the root.
    LetKeyspacesGo,
    /// Bytes that are kept for removals are there for all.
    SpareForAll,
    /// Bytes of the log that are kept for removals are there for all.
    LogForAll,
    /// What is kept of the log for ranges is there for removals of keys too.
    KeptForKeys,
    /// Groups that a checkpoint leaves out are applied again from its beginning on, whatever waits in them.
    ForgetLeftOut,
    /// Who reads a keyspace does not look whether it was removed meanwhile.
    ReadRemoved,
    /// What was removed with a keyspace counts as memory for ever, if a checkpoint failed that was to write it.
    ThawRemoved,
    /// Who reads is asked before what a checkpoint writes is chosen.
    SnapshotsBeforeFreeze,
    /// Leaves are written at home with changes that the log can lose.
    HomeAheadOfLog,
    /// A leaf that is cut is written at the home of what it was.
    HomeOfCutLeaf,
    /// Copies of leaves are not durable when the leaves are written at home.
    CopiesNotDurable,
    /// Copies are written over those of the batch before.
    OneHalfOfCopies,
    /// Copies are relied on before a checkpoint says where they are.
    CopiesBeforeRoot,
    /// Copies are not looked at when a store is opened.
    IgnoreCopies,
    /// Images of leaves are not durable when the leaves are written at home.
    ImageNotDurable,
    /// Of each leaf the log gets one image, whatever it has forgotten since.
    ImageOnce,
    /// Images are not looked at when a store is opened.
    IgnoreImages,
    /// What is to be written whole is written as anything else.
    AtomicInPieces,
    /// A leaf that has more keys than the last checkpoint says is written at its home.
    HomeOfWidened,
    /// Of a group that is cut no part is said to have the keys of one that went.
    CutForgetsWidened,
    /// A group is flushed of which a leaf got empty.
    FlushEmptied,
    /// A helper that comes late goes on with what has failed.
    LateHelper,
    /// A run has no removals.
    RunDropsRemovals,
    /// A run has of each key the newest version alone.
    RunForgetsSnapshots,
    /// A group is said to have a commit more than its new run has.
    RunWatermarkTooHigh,
    /// The root does not lead to the newest run.
    RunNotListed,
    /// Runs that the last checkpoint leads to are free when nobody else has them.
    RunsNotHeld,
    /// Older runs are forgotten when newer ones are written together.
    TierForgetsOlder,
    /// Runs that are written together come behind older ones.
    TierBehindOlder,
    /// A run has the fingerprint of another key for its first one.
    FingerprintOfOther,
    /// Only the newest run of a group is merged into its leaves.
    MergeForgetsRun,
    /// A group that was merged without its runs keeps them.
    MergeKeepsRuns,
    /// Who looks for a key begins with the oldest run.
    OldestRunFirst,
    /// Who goes through keys does not look into runs.
    ScanForgetsRuns,
    /// A range that had nothing is said to have nothing when a key was put into it.
    GapStays,
    /// A group that had nothing is said to have nothing when a key was put into it.
    EmptyStays,
    /// What has nothing now is said to have had nothing before.
    GapForOlder,
    /// A range is said to have nothing though a key came since somebody looked.
    GapUnseen,
    /// Who reads an older state takes a range for empty that got a value since, which is in a leaf or a run.
    GapPastLeaves,
    /// A leaf that is written again is said to lack the keys that it lacked before.
    FilterOfBefore,
    /// Who goes through keys sees what is on the disk of a range that was removed.
    ScanForgetsRanges,
    /// A range is removed of the first group that has keys of it, and not of the others.
    RangeInOneGroup,
    /// A leaf goes of which only a part was removed with a range.
    RangeDropsLeaf,
    /// A leaf goes that was removed with a range, though somebody reads as of before.
    RangeForgetsOlder,
    /// A range is forgotten where what waits is written as a run, also one that comes once that is said.
    RunForgetsRanges,
    /// Ranges that were removed are not removed when the log is read again.
    ReplayForgetsRanges,
    /// The header of a torn block stays, and the next one is written over it.
    KeepTorn,
}

impl Fault {
    /// All of them; what is shown in two ways is there twice.
    #[cfg(feature = "mistakes")]
    fn all() -> impl Iterator<Item = Fault> {
        let logs = Fault::LOG.into_iter().chain(Fault::DAMAGE);
        let logs = logs.chain(Fault::ALIKE);
        let stores = Fault::STORE
            .into_iter()
            .chain(Fault::NO_SPACE)
            .chain(Fault::REMOVED_MEANWHILE)
            .chain(Fault::HOMES)
            .chain(Fault::LATE)
            .chain(Fault::CUT_AND_WIDENED)
            .chain(Fault::RUNS);
        logs.chain(Fault::STATE).chain(stores)
    }

    /// Those of a log that a power cut, a failure or a crash shows.
    pub const LOG: [Fault; 23] = [
        Fault::SkipFlush,
        Fault::AcknowledgeEarly,
        Fault::SyncLastSegmentOnly,
        Fault::ForgetUnsynced,
        Fault::KeepEpoch,
        Fault::EpochNotDurable,
        Fault::SkipDirectorySync,
        Fault::SkipSegmentSync,
        Fault::ReuseBeforeTruncate,
        Fault::UnchainedChecksum,
        Fault::HeaderChecksumOnly,
        Fault::RetryFlush,
        Fault::NotPoisoned,
        Fault::TornBatch,
        Fault::SkipBadBlock,
        Fault::CutCorruption,
        Fault::ZeroBehindWriter,
        Fault::TrustWhatIsThere,
        Fault::EpochBeforeDurable,
        Fault::SkipDirectorySyncAtOpen,
        Fault::CloseWithoutCommit,
        Fault::ReadTruncated,
        Fault::NoPromise,
    ];
    /// Those of a log that damage shows.
    pub const DAMAGE: [Fault; 8] = [
        Fault::CutCorruption,
        Fault::OneControlCopy,
        Fault::IgnoreGap,
        Fault::EnterLastSegment,
        Fault::IgnoreControlEnd,
        Fault::NoWindow,
        Fault::LookInOneSegment,
        Fault::IgnoreSegmentPromise,
    ];
    /// Those of a state.
    pub const STATE: [Fault; 10] = [
        Fault::ReserveNothing,
        Fault::PartStaysUsable,
        Fault::PublishBeforeSync,
        Fault::SkipSnapshotDirectorySync,
        Fault::SnapshotAheadOfLog,
        Fault::TruncateBeforePublish,
        Fault::LateCapture,
        Fault::ForgetOlderSnapshots,
        Fault::SkipChunkChecksum,
        Fault::ApplyTwice,
    ];
    /// Those of a store.
    pub const STORE: [Fault; 35] = [
        Fault::FreeBeforeControl,
        Fault::TruncateBeforeControl,
        Fault::SkipDataSync,
        Fault::CheckpointAheadOfLog,
        Fault::WatermarkTooHigh,
        Fault::FirstTooHigh,
        Fault::DropRemoval,
        Fault::SplitWithOldParent,
        Fault::SplitForgets,
        Fault::OneStoreControlCopy,
        Fault::ControlBeforeSync,
        Fault::SkipStoreDirectorySync,
        Fault::TrustControl,
        Fault::SkipPageChecksum,
        Fault::ForgetFrozen,
        Fault::ForgetSnapshots,
        Fault::NoConflicts,
        Fault::RecordPerWrite,
        Fault::ThawForgets,
        Fault::OldestOfReplay,
        Fault::KeyspacesAheadOfLog,
        Fault::ReadRemoved,
        Fault::ThawRemoved,
        Fault::SnapshotsBeforeFreeze,
        Fault::GapStays,
        Fault::EmptyStays,
        Fault::GapForOlder,
        Fault::GapUnseen,
        Fault::GapPastLeaves,
        Fault::FilterOfBefore,
        Fault::ScanForgetsRanges,
        Fault::RangeInOneGroup,
        Fault::RangeDropsLeaf,
        Fault::RangeForgetsOlder,
        Fault::ReplayForgetsRanges,
    ];
    /// Those of a store that finds no space.
    pub const NO_SPACE: [Fault; 4] = [
        Fault::SpareForAll,
        Fault::LogForAll,
        Fault::KeptForKeys,
        Fault::ForgetLeftOut,
    ];
    /// Those of a store of which a keyspace is removed while a checkpoint is made.
    pub const REMOVED_MEANWHILE: [Fault; 1] = [Fault::LetKeyspacesGo];
    /// Those of a store whose leaves are written at home.
    pub const HOMES: [Fault; 12] = [
        Fault::HomeAheadOfLog,
        Fault::HomeOfCutLeaf,
        Fault::CopiesNotDurable,
        Fault::OneHalfOfCopies,
        Fault::CopiesBeforeRoot,
        Fault::IgnoreCopies,
        Fault::ImageNotDurable,
        Fault::ImageOnce,
        Fault::IgnoreImages,
        Fault::AtomicInPieces,
        Fault::HomeOfWidened,
        Fault::FlushEmptied,
    ];
    /// Those of a log whose records are alike.
    pub const ALIKE: [Fault; 1] = [Fault::KeepTorn];
    /// Those of a store whose checkpoint fails while a helper is late.
    pub const LATE: [Fault; 1] = [Fault::LateHelper];
    /// Those of a store of whose groups one is cut and the one behind it goes.
    pub const CUT_AND_WIDENED: [Fault; 1] = [Fault::CutForgetsWidened];
    /// Those of a store whose groups have runs.
    pub const RUNS: [Fault; 13] = [
        Fault::RunForgetsRanges,
        Fault::RunDropsRemovals,
        Fault::RunForgetsSnapshots,
        Fault::RunWatermarkTooHigh,
        Fault::RunNotListed,
        Fault::RunsNotHeld,
        Fault::TierForgetsOlder,
        Fault::TierBehindOlder,
        Fault::FingerprintOfOther,
        Fault::MergeForgetsRun,
        Fault::MergeKeepsRuns,
        Fault::OldestRunFirst,
        Fault::ScanForgetsRuns,
    ];
}
