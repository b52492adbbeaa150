//! A store wherever it is, on this machine or in a test's simulator, and what is asked of all of it at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::restart;
use super::runs::expected::Rows;
use super::shared::Shared;
use super::{ExpectedWrites, StoreCounters, StoreOptions, StoreRestart, StoreVerification};
use super::{tree, verify};
use crate::Error;
use crate::environment::Environment;

/// A store wherever it is: on this machine, or in a test's simulator. Dropped, it is closed.
pub(crate) struct Handle<E: Environment> {
    pub shared: Arc<Shared<E>>,
    pub restart: StoreRestart,
}

impl<E: Environment> Handle<E> {
    pub fn open(environment: &E, options: StoreOptions) -> Result<Handle<E>, Error> {
        let (shared, restart) = restart::open(environment, options)?;
        Ok(Handle { shared, restart })
    }

    pub fn verify(&self) -> StoreVerification {
        let keyspaces = E::share(&self.shared.keyspaces);
        let all: Vec<_> = keyspaces.all.values().cloned().collect();
        drop(keyspaces);
        let data = self.shared.data.get();
        let read = &mut |page: &tree::Page<E>| self.shared.read_leaf(page);
        let mut found = verify::verify(&all, data, &*self.shared, read);
        if found.damage.is_empty() {
            return found;
        }
        let _no_checkpoint = E::lock(&self.shared.checkpoints);
        for damaged in std::mem::take(&mut found.damage) {
            let keyspace = all.iter().find(|one| one.name == damaged.keyspace);
            match keyspace.filter(|keyspace| keyspace.options.in_place) {
                Some(keyspace) => match verify::verify_again(keyspace, &damaged, data, read) {
                    Ok(entries) => found.entries += entries,
                    Err(damaged) => found.damage.push(*damaged),
                },
                None => found.damage.push(damaged),
            }
        }
        found
    }

    pub fn expected_writes(&self) -> Option<ExpectedWrites> {
        let shared = &self.shared;
        let rows = Rows::of(&shared.all_keyspaces(), |page| shared.read_leaf(page))?;
        rows.expected(shared.most_changes(), shared.buffer_percent())
    }

    pub fn keyspaces(&self) -> Vec<String> {
        let keyspaces = E::share(&self.shared.keyspaces);
        let names = keyspaces.all.values();
        names.map(|keyspace| keyspace.name.clone()).collect()
    }

    pub fn counters(&self) -> StoreCounters {
        let shared = &self.shared;
        let tally = E::lock(&shared.tally).clone();
        let buffered = shared.buffered();
        StoreCounters {
            log: shared.log.shared.counters(),
            commits: shared.commits.load(Ordering::Relaxed),
            logical_bytes: shared.logical_bytes.load(Ordering::Relaxed),
            checkpoints: tally.checkpoints,
            flushes: tally.flushes,
            failed_checkpoints: tally.failed_checkpoints,
            leaves: tally.written.leaves,
            runs: tally.written.runs,
            merges: tally.written.merges,
            leaf_bytes: tally.written.leaf_bytes,
            merge_bytes: tally.written.merge_bytes,
            run_bytes: tally.written.run_bytes,
            tier_bytes: tally.written.tier_bytes,
            home_bytes: tally.written.home_bytes,
            doublewrite_bytes: tally.written.doublewrite_bytes,
            image_bytes: tally.written.image_bytes,
            group_bytes: tally.written.group_bytes,
            root_bytes: tally.written.root_bytes,
            control_bytes: tally.written.control_bytes,
            waiting_bytes: shared.changes.load(Ordering::Relaxed) as u64,
            cached_bytes: shared.space.cached.load(Ordering::Relaxed) as u64,
            filter_bytes: shared.space.filters.load(Ordering::Relaxed) as u64,
            index_bytes: shared.space.index.load(Ordering::Relaxed) as u64,
            tree_bytes: buffered.leaf_bytes,
            buffered_bytes: buffered.run_bytes,
            file_bytes: shared.space.end(),
            free_bytes: shared.space.free_bytes(),
        }
    }
}

impl<E: Environment> Drop for Handle<E> {
    fn drop(&mut self) {
        if let Err(error) = self.shared.close() {
            tracing::error!(%error, "what was committed to the store could not be made durable");
        }
    }
}
