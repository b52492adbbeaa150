//! What a writer and a witness say to each other, as postcard in frames of a [channel](crate::channel).
//!
//! A writer asks and waits for the answer. Nothing is sent that was not asked for.

use std::time::Duration;

use landfall_results::witness::{Cut, Loss, Strategy, Target, Verdict, Witnessed};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::block::Run;
use crate::channel::{Channel, MOST_FRAME};

/// Characters of a stream's name that are the most.
pub(crate) const MOST_NAME: usize = 512;
/// Acknowledgements in one answer: they fit into a frame, whatever they are.
pub(crate) const PAGE: usize = 2048;
/// Losses that the witness keeps of a check.
pub(crate) const KEPT_LOSSES: usize = 8;
/// Streams in one answer.
pub(crate) const STREAMS_AT_ONCE: usize = 4;
/// Bytes of what a target is, as postcard, that are the most.
pub(crate) const MOST_TARGET: usize = 4096;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// A writer begins a run on a stream.
    Begin(Begin),
    /// The writer of a run is there again: its connection, or the witness, had gone.
    Resume { stream: String, run: Run },
    /// The disk says that this write is durable.
    Acknowledge { write: u64, checksum: u32 },
    /// The writer ends, and writes no more.
    End,
    /// What was promised of a stream?
    Ask { stream: String, boot: String },
    /// The acknowledgements of a run, from this write on.
    Page { stream: String, run: Run, from: u64 },
    /// What a check found.
    Report(Report),
    /// What is known of streams, from the how manyth on?
    Status { from: u64 },
}

/// A new run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub stream: String,
    pub target: Target,
    pub strategy: Strategy,
    /// The start of the machine.
    pub boot: String,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub stream: String,
    pub run: Run,
    /// The start of the machine.
    pub boot: String,
    /// Whose power the operator says was cut.
    pub declared: Option<Declared>,
    pub promised: u64,
    pub lost: u64,
    pub foreign: u64,
    /// The first of the losses.
    pub losses: Vec<Loss>,
}

/// Whose power an operator says was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Declared {
    /// That of the whole machine: it must have started anew since.
    Machine,
    /// That of the disk alone, which has a supply of its own.
    Disk,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Response {
    Begun {
        run: Run,
        /// When, by the witness's clock, in microseconds since 1970.
        begun: u64,
    },
    /// So many writes were acknowledged.
    Resumed {
        acknowledged: u64,
    },
    /// It is durable that this was.
    Acknowledged {
        write: u64,
    },
    Ended,
    /// Nothing was ever written to this stream.
    Unknown,
    Promised(Promises),
    Page(Vec<Acknowledgement>),
    Counted(Witnessed),
    Streams {
        all: u64,
        some: Vec<Witnessed>,
    },
    /// Why it does not.
    Refused(String),
}

/// What was promised of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Promises {
    pub run: Run,
    pub begun: u64,
    pub target: Target,
    pub strategy: Strategy,
    pub acknowledged: u64,
    /// What was found before, if this run was checked and counts no more.
    pub checked: Option<Verdict>,
    /// What is known of a cut so far.
    pub cut: Cut,
}

/// That a write was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Acknowledgement {
    /// When, by the witness's clock, in microseconds since 1970.
    pub at: u64,
    pub checksum: u32,
}

/// Sends a message.
pub(crate) fn send(channel: &mut Channel, message: &impl Serialize) -> Result<(), Error> {
    let bytes =
        postcard::to_stdvec(message).map_err(|_| Error::Forged("a message cannot be made"))?;
    channel.send(&bytes)
}

/// Waits for a message; `None` if the other side has closed the connection.
pub(crate) fn receive<M: DeserializeOwned>(
    channel: &mut Channel,
    idle: Duration,
) -> Result<Option<M>, Error> {
    let Some(frame) = channel.receive(idle)? else {
        return Ok(None);
    };
    parse(&frame).map(Some)
}

/// The message in a frame, and nothing behind it.
pub(crate) fn parse<M: DeserializeOwned>(frame: &[u8]) -> Result<M, Error> {
    debug_assert!(frame.len() <= MOST_FRAME);
    match postcard::take_from_bytes(frame) {
        Ok((message, [])) => Ok(message),
        _ => Err(Error::Forged("a frame holds no message")),
    }
}

impl Begin {
    /// Why it is no run that a witness can keep.
    pub fn complaint(&self) -> Option<String> {
        let Strategy {
            block_bytes,
            blocks,
            ..
        } = self.strategy;
        complaint(block_bytes, blocks).or_else(|| {
            let target = postcard::to_stdvec(&self.target).map_or(usize::MAX, |bytes| bytes.len());
            let is_long = self.stream.len() > MOST_NAME || self.boot.len() > MOST_NAME;
            (is_long || self.stream.is_empty() || target > MOST_TARGET).then(|| {
                "the names of the stream and of its disks are too long, or there are none"
                    .to_owned()
            })
        })
    }
}

/// Why blocks of this size, and so many, cannot be written.
pub(crate) fn complaint(block_bytes: u32, blocks: u32) -> Option<String> {
    use crate::block::{MOST_BYTES, UNIT};
    use crate::schedule::{FEWEST_BLOCKS, MOST_BLOCKS};
    if !block_bytes.is_multiple_of(UNIT) || !(UNIT..=MOST_BYTES).contains(&block_bytes) {
        return Some(format!(
            "a block has {block_bytes} bytes: it must be a multiple of {UNIT}, and at most {MOST_BYTES}"
        ));
    }
    if !(FEWEST_BLOCKS..=MOST_BLOCKS).contains(&blocks) {
        return Some(format!(
            "there are {blocks} blocks: there must be {FEWEST_BLOCKS} to {MOST_BLOCKS}"
        ));
    }
    None
}

impl Report {
    /// Why it is none that a witness can keep.
    pub fn complaint(&self) -> Option<String> {
        let texts = self.losses.iter().map(|loss| loss.acknowledged.len());
        let is_wrong = self.losses.len() > KEPT_LOSSES
            || texts.max().unwrap_or(0) > MOST_NAME
            || self.lost.saturating_add(self.foreign) > self.promised;
        is_wrong.then(|| "the report of the check contradicts itself".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whoever has the token, and whatever he sends: it is a message or it is none.
        #[test]
        fn any_bytes_are_a_message_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse::<Request>(&bytes);
            let _ = parse::<Response>(&bytes);
        }

        #[test]
        fn a_message_with_something_behind_it_is_none(write: u64, checksum: u32, more in 1..9usize) {
            let request = Request::Acknowledge { write, checksum };
            let mut bytes = postcard::to_stdvec(&request).unwrap();
            prop_assert_eq!(parse::<Request>(&bytes).unwrap(), request);
            bytes.resize(bytes.len() + more, 0);
            prop_assert!(parse::<Request>(&bytes).is_err());
        }
    }

    #[test]
    fn a_page_and_an_answer_of_streams_fit_into_a_frame() {
        let most = Acknowledgement {
            at: u64::MAX,
            checksum: u32::MAX,
        };
        let page = postcard::to_stdvec(&Response::Page(vec![most; PAGE])).unwrap();
        assert!(page.len() <= MOST_FRAME, "{}", page.len());
        // A loss, and the rest of a verdict, of the longest.
        let witnessed = MOST_NAME + MOST_TARGET + (KEPT_LOSSES + 1) * (MOST_NAME + 100) + 1000;
        assert!(STREAMS_AT_ONCE * witnessed <= MOST_FRAME, "{witnessed}");
    }
}
