//! Which leaves stay in memory: those that were asked for since the hand of a clock last went by.
//!
//! A leaf is kept by its page, so finding it again costs no search. The clock knows the pages of all that are kept, and
//! forgets leaves when they take more than they may. A page that is gone has given its memory back by itself.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::extents::Space;
use super::leaf::Leaf;
use super::tree::Page;
use crate::environment::Environment;

pub(crate) struct Cache<E: Environment> {
    clock: E::Mutex<Clock<E>>,
}

struct Clock<E: Environment> {
    pages: Vec<Weak<Page<E>>>,
    hand: usize,
}

impl<E: Environment> Cache<E> {
    pub fn new() -> Cache<E> {
        Cache {
            clock: E::mutex(Clock {
                pages: Vec::new(),
                hand: 0,
            }),
        }
    }

    /// Keeps a leaf that was read.
    pub fn keep(&self, page: &Arc<Page<E>>, leaf: Arc<Leaf>) {
        let mut clock = E::lock(&self.clock);
        page.keep(Some(leaf));
        clock.pages.push(Arc::downgrade(page));
        // Pages that are gone are looked for whenever there are twice as many.
        if clock.pages.len() > 64 && clock.pages.len().is_power_of_two() {
            clock.pages.retain(|page| page.strong_count() > 0);
        }
    }

    /// Forgets leaves until all take no more than `most` bytes.
    pub fn fit(&self, space: &Space<E>, most: usize) {
        let is_too_much = || space.cached.load(Ordering::Relaxed) > most;
        if !is_too_much() {
            return;
        }
        // Pages that are let go of with the lock held would be waited for by nobody else, but for long.
        let mut gone = Vec::new();
        let mut clock = E::lock(&self.clock);
        while is_too_much() && !clock.pages.is_empty() {
            let hand = clock.hand % clock.pages.len();
            clock.hand = hand + 1;
            let Some(page) = clock.pages[hand].upgrade() else {
                clock.pages.swap_remove(hand);
                continue;
            };
            if !page.is_used.swap(false, Ordering::Relaxed) {
                page.keep(None);
                clock.pages.swap_remove(hand);
            }
            gone.push(page);
        }
        drop(clock);
    }
}
