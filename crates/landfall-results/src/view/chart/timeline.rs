//! What was said, written and flushed around a power cut, in order.
//!
//! Every event has a place of its own on the axis, and the cut has one among them: bursts of writes
//! overlap in time, but never in order.

use serde::Serialize;

/// What happened around a power cut.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// Names of the lanes, from the top down.
    pub lanes: Vec<String>,
    /// The lane of flushes.
    pub flushes: usize,
    /// In order.
    pub events: Vec<Event>,
    /// The place of the cut among the events.
    pub cut: usize,
    /// The place of the first event since the last flush before the cut.
    pub since: usize,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Its place.
    pub at: usize,
    /// Index into the lanes.
    pub lane: usize,
    /// What kind of event it is.
    pub kind: EventKind,
    /// Which part of a write arrived, from 0 to 1; 1 of everything else.
    pub arrived: f64,
    /// Whether it came after the cut.
    pub after: bool,
    /// What is written beside it, if there is room.
    pub label: String,
    /// What it is, in a few words.
    pub words: String,
    /// The same with its time.
    pub title: String,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A transaction began.
    Send,
    /// A transaction was said to be durable.
    Acknowledge,
    /// The device was given bytes.
    Write,
    /// The device was asked to make them durable.
    Flush,
    /// It said that it had, and had not.
    LyingFlush,
    /// It refused a request.
    Refused,
}

impl Timeline {
    /// Marks of a complete drawing: the events and the cut.
    pub fn marks(&self) -> usize {
        self.events.len() + 1
    }
}
