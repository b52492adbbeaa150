//! Clusters: what several machines lose when their power fails.
//!
//! Each node's files are on a recorder of its own, and all recorders share one [order](landfall_recorder::CommonOrder): a
//! power cut is a moment of that order, and at that moment each disk has kept what was flushed and any of the rest. Nodes that
//! talk are never cut at different moments.
//!
//! - [`ClusterSubject`]: what is proven; `replicated` makes one of a cluster of databases, `command` of any
//!   programs, and `replicated_log` is one of a few lines that can be wrong;
//! - `name`: what one state is, and what it is called;
//! - `record`: runs a cluster on recorded filesystems, and kills it;
//! - `survey`: which states are tried; `worker` makes and checks them, each in a network of its own;
//! - `rolling`: nodes that end one after the other; `replicas`: who held a record when it was acknowledged;
//! - `judge`: what is lost; `shorten`, `timeline`: the failing state that is easiest to understand; `proof`: the whole of it.
//!
//! Threads: one records; then each worker has disks, mount points and a network of its own, so that many clusters listen on
//! the same ports at the same time. Servers end with the thread that started them.

#[cfg(feature = "subjects")]
mod command;
mod judge;
mod name;
mod proof;
mod record;
mod replicas;
#[cfg(feature = "databases")]
mod replicated;
#[cfg(feature = "subjects")]
mod replicated_log;
mod rolling;
mod shorten;
mod survey;
mod timeline;
mod worker;

use std::collections::BTreeSet;
use std::path::PathBuf;

#[cfg(feature = "subjects")]
use landfall_databases::setting::{Chosen, Description};

use crate::subject::{AckSink, Recovered, SubjectError, SubjectName};
use crate::{Promise, Stop};

pub use name::{Boot, ClusterStateName, Fate};
pub use proof::{ClusterPlan, prove_cluster};
#[cfg(feature = "subjects")]
pub use replicated_log::ClusterCase;
pub use rolling::Rolling;
pub use survey::Cuts;

/// Every cluster that can be proven by name, with its settings.
#[cfg(feature = "subjects")]
pub fn list() -> Vec<&'static Description> {
    let mut all: Vec<&Description> = Vec::new();
    #[cfg(feature = "databases")]
    all.extend(landfall_databases::clusters::descriptions());
    all.extend([&replicated_log::DESCRIPTION, &command::DESCRIPTION]);
    all
}

/// The cluster of that name with these settings, of so many nodes.
#[cfg(feature = "subjects")]
pub fn named(
    name: &str,
    settings: &[(String, String)],
    nodes: usize,
) -> Result<Box<dyn ClusterSubject>, crate::Error> {
    if name == replicated_log::DESCRIPTION.name {
        return Ok(Box::new(replicated_log::ReplicatedLog::new(
            settings, nodes,
        )?));
    }
    if name == command::DESCRIPTION.name {
        return Ok(Box::new(command::AnyCluster::new(settings, nodes)?));
    }
    #[cfg(feature = "databases")]
    if landfall_databases::clusters::descriptions().any(|known| known.name == name) {
        return Ok(Box::new(replicated::Replicated::named(
            name, settings, nodes,
        )?));
    }
    let names: Vec<&str> = list().iter().map(|known| known.name).collect();
    Err(crate::Error::Usage(format!(
        "no cluster is called '{name}'; there are: {}",
        names.join(", ")
    )))
}

/// A cluster's name, with how many nodes it has before what was set.
#[cfg(feature = "subjects")]
fn name_of(chosen: &Chosen, nodes: usize) -> SubjectName {
    let mut name = crate::subjects::name_of(chosen);
    name.settings
        .insert(0, ("nodes".to_owned(), nodes.to_string()));
    name
}

/// Fewest and most nodes.
pub const NODES: std::ops::RangeInclusive<usize> = 2..=7;

/// Several programs that keep the same numbered transactions, each in a directory of its own.
///
/// Nothing may be carried over from one call to the other but the directories. Each call is made in a network of its own, in
/// which there is nothing but 127.0.0.1; what it starts has ended when it returns.
pub trait ClusterSubject: Send + Sync {
    /// What it is called, with its settings.
    fn name(&self) -> SubjectName;

    /// What it promises.
    fn promise(&self) -> Promise {
        Promise::STRICT
    }

    /// Bytes that a node may need in its directory, if a small filesystem has not enough; 0: it has.
    fn capacity(&self) -> u64 {
        0
    }

    /// Whether it finds something else in files that differ in their times alone. Unless it says that it does not, only files
    /// with equal times are taken to be equal, of which one check is enough.
    fn reads_times(&self) -> bool {
        true
    }

    /// Whether it can end one node while the others go on, as [`Rolling`] asks for.
    fn ends_one_by_one(&self) -> bool {
        true
    }

    /// Makes in the nodes' empty directories what must be there before the first transaction; they are synced afterwards, and no
    /// power is cut before that.
    fn prepare(&self, directories: &[PathBuf], stop: &Stop) -> Result<(), SubjectError>;

    /// Starts all nodes, and runs transactions 1, 2, 3, … until the sink says that it is enough, or the user asked to stop. Then
    /// it kills them, those that `rolling` says before the others: no node may end in order.
    fn run(
        &self,
        directories: &[PathBuf],
        sink: &mut dyn AckSink,
        rolling: &mut Rolling<'_>,
        stop: &Stop,
    ) -> Result<(), SubjectError>;

    /// Starts the nodes again as `boot` says, and reads everything back.
    fn check(
        &self,
        directories: &[PathBuf],
        boot: &Boot,
        stop: &Stop,
    ) -> Result<Found, SubjectError>;

    /// Whether these nodes alone have a transaction, without the others; `None`: they do not come back.
    ///
    /// Unless it is said otherwise, the others join late, and what is there or was until then counts.
    fn holds(
        &self,
        directories: &[PathBuf],
        first: &[usize],
        transaction: u64,
        stop: &Stop,
    ) -> Result<Option<bool>, SubjectError> {
        let late: Vec<usize> = (0..directories.len())
            .filter(|node| !first.contains(node))
            .collect();
        let boot = if late.is_empty() {
            Boot::Together
        } else {
            Boot::Late(late)
        };
        let found = self.check(directories, &boot, stop)?;
        let has = [&found.recovered.whole, &found.taken]
            .iter()
            .any(|some| some.contains(&transaction));
        Ok(found.is_read().then_some(has))
    }
}

/// What a cluster still has after a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What is there. What was there before a late node joined, and not afterwards, is not.
    pub recovered: Recovered,
    /// What of that was there until a late node joined.
    pub taken: BTreeSet<u64>,
    /// Why it could not be asked: no leader, no answer, no new writes. Nothing is known of what it lost then.
    pub unavailable: Option<String>,
    /// Whether the check failed before it could tell what is there. Nothing is known of what is lost then, either.
    pub unread: bool,
    /// In what its nodes differ for good.
    pub disagreement: Option<String>,
}

impl Found {
    /// Whether what it does not show is gone.
    fn is_read(&self) -> bool {
        self.unavailable.is_none() && !self.unread
    }
}
