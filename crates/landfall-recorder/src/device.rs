//! What is behind a block device that the kernel is served.

use crate::answer::{Answer, Due};
use crate::fault::Refusal;

/// The largest request in bytes; larger ones are split by the kernel.
pub(crate) const LARGEST_REQUEST: u32 = 1 << 20;

/// A request that was done, and is to be answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    /// When it is answered.
    pub due: Due,
    /// What [`Device::answering`] is told of it; `None`: nothing.
    pub request: Option<Answered>,
}

/// A request that is about to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The write of this event.
    Write(u64),
    /// The flush of this number.
    Flush(u64),
}

/// Whether a write is to be on the medium when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// In the device's cache will do.
    Cached,
    /// Force unit access (FUA): this write, and no other.
    Forced,
}

/// What is behind a block device.
pub(crate) trait Device: Send + Sync + 'static {
    /// Its size in bytes.
    fn size(&self) -> u64;
    /// Fills `into` from `offset`.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<Due, Refusal>;
    /// Writes the bytes at `offset`.
    fn write(&self, offset: u64, bytes: &[u8], access: Access) -> Result<Done, Refusal>;
    /// A request is about to be answered. A flush that arrives later counts a write in; what a flush counts in is durable.
    fn answering(&self, request: Answered);
    /// Makes durable what was written.
    fn flush(&self) -> Result<Done, Refusal>;
    /// Takes a client's mark. The client waits until `answer` is dropped.
    fn mark(&self, bytes: &[u8], answer: Answer);
}
