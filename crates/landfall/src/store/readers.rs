//! Pages that are read by several threads at a time, as each by itself waits for the disk alone.
//!
//! A piece of a range needs a block of each run of its group, and a leaf, whatever they have: those that are not in memory are read
//! together. Who merges reads leaves ahead in the same way.
//!
//! Threads: readers, which are started when something is first read together, and end with the store. Whoever asks reads as well,
//! and alone if they are busy or could not be started. They only read: memory that they took and others gave back would stay with their share of the
//! allocator.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::runs::Run;
use super::shared::Shared;
use super::tree::Page;
use crate::Error;
use crate::environment::{Buffer, Environment};

/// Pages that are read at the same time, besides the one that whoever asks reads.
pub(super) const READERS: usize = if cfg!(test) { 1 } else { 7 };

impl<E: Environment> Shared<E> {
    /// The bytes of pages, or why each of them cannot be read.
    pub(super) fn read_together(
        self: &Arc<Self>,
        pages: &[Arc<Page<E>>],
    ) -> Result<Vec<Result<Buffer, Error>>, Error> {
        if pages.len() > 1 {
            self.start_readers();
        }
        let room = |page: &Arc<Page<E>>| E::mutex(Ok(self.room_for(page.pointer)));
        let all: Arc<Vec<_>> = Arc::new(pages.iter().map(room).collect());
        let pointers: Vec<_> = pages.iter().map(|page| page.pointer).collect();
        let (store, theirs) = (self.clone(), all.clone());
        let read = move |index: usize| {
            let mut place = E::lock(&theirs[index]);
            if let Ok(bytes) = place.as_mut()
                && let Err(error) = store.read_bytes(pointers[index], bytes)
            {
                *place = Err(error);
            }
            Ok(())
        };
        self.readers
            .together(&self.environment, pages.len(), read)?;
        let taken = || Err(Error::broken("what was read is taken twice"));
        let take = |place: &_| std::mem::replace(&mut *E::lock(place), taken());
        Ok(all.iter().map(take).collect())
    }

    /// Reads those pages that a piece of a range begins with, from one end on, and that are not in memory. What cannot be read is not
    /// said: whoever needs it reads it once more.
    pub(super) fn read_first(
        self: &Arc<Self>,
        runs: &[Arc<Run<E>>],
        leaf: Option<&Arc<Page<E>>>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        backwards: bool,
    ) -> Result<(), Error> {
        let mut pages = Vec::with_capacity(runs.len() + 1);
        for run in runs {
            pages.extend(run.index(&**self)?.first_of(range, backwards).cloned());
        }
        pages.extend(leaf.cloned());
        pages.retain(|page| page.cached().is_none());
        if pages.len() < 2 {
            return Ok(());
        }
        for (page, bytes) in pages.iter().zip(self.read_together(&pages)?) {
            let Ok(read) = bytes.and_then(|bytes| self.leaf_of(page, &bytes)) else {
                continue;
            };
            if leaf.is_some_and(|leaf| Arc::ptr_eq(leaf, page)) {
                self.keep_leaf(page, read);
            } else {
                self.keep_block(page, read);
            }
            // Others that are kept next do not drive it out.
            page.is_used.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn start_readers(self: &Arc<Self>) {
        if self.has_readers.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut work = E::lock(&self.work);
        let start = |_| {
            let own = self.clone();
            let started = self
                .environment
                .spawn("landfall-readers", move || own.readers.work());
            // Without them it takes longer.
            started.ok()
        };
        if !work.is_closing {
            work.threads.extend((0..READERS).map_while(start));
        }
    }
}
