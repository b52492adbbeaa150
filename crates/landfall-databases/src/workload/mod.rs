//! What clients ask of a database, over and over.
//!
//! A [`Workload`] says what tables or keys there are, fills them, and makes [`Client`]s; each client
//! belongs to one thread and sends one request after the other. [`named`] makes one from its name and
//! settings.
//!
//! What a request does is the same for every database; only how it is said differs.

pub mod clients;
#[cfg(test)]
mod fixtures;
mod linkbench;
mod list;
mod loading;
mod oltp;
mod permutation;
mod puts;
pub mod sql;

pub use list::{list, named, reads};

use crate::{DatabaseError, Interface, Running, Session};
use landfall_os::Stop;

/// What clients ask of a database.
pub trait Workload: Send + Sync {
    /// What it is, with its settings: `linkbench ids=50000`.
    fn name(&self) -> String;

    /// Whether a database of this interface can be asked it, and if not why.
    fn suits(&self, interface: Interface) -> Result<(), String>;

    /// What each request updates, where it does nothing else and all do it alike.
    fn updates(&self) -> Option<Updates> {
        None
    }

    /// The kinds of requests, by name; [`Client::request`] gives an index into it.
    fn requests(&self) -> &'static [&'static str];

    /// Makes the tables and fills them, with so many clients at once.
    fn load(&self, running: &dyn Running, clients: u32, stop: &Stop) -> Result<(), DatabaseError>;

    /// Client `number` of those that run at the same time, over a session to a database that was loaded.
    /// What it asks is drawn from `seed`.
    fn client(
        &self,
        session: Session,
        number: u32,
        seed: u64,
    ) -> Result<Box<dyn Client>, DatabaseError>;
}

/// What a request updates, of rows that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updates {
    /// Rows, each another one.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Whether all rows are updated equally often.
    pub is_uniform: bool,
}

/// What the list says of a workload besides: the kinds of its requests that only read.
pub(crate) struct Reads(pub &'static [&'static str]);

/// One client of a workload.
pub trait Client: Send {
    /// Sends the next request and waits for its end; returns its kind. After
    /// [`DatabaseError::Conflict`] nothing of it was done, and the next call may be another request.
    fn request(&mut self) -> Result<usize, DatabaseError>;
}

/// What client `number` of a run draws from.
fn random_of(number: u32, seed: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed ^ u64::from(number).rotate_left(32))
}
