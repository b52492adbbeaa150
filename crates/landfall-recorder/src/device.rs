//! What is behind a block device that the kernel is served.

use crate::answer::{Answer, Due};
use crate::fault::Refusal;

/// The largest request in bytes; larger ones are split by the kernel.
pub(crate) const LARGEST_REQUEST: u32 = 1 << 20;

/// What became of a write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// When it is answered.
    pub due: Due,
    /// What [`Device::answering`] is told of it; `None`: nothing.
    pub event: Option<u64>,
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
    fn write(&self, offset: u64, bytes: &[u8], access: Access) -> Result<Written, Refusal>;
    /// A write is about to be answered: a flush that arrives later counts it in.
    fn answering(&self, event: u64);
    /// Makes durable what was written.
    fn flush(&self) -> Result<Due, Refusal>;
    /// Takes a client's mark. The client waits until `answer` is dropped.
    fn mark(&self, bytes: &[u8], answer: Answer);
}
