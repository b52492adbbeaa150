//! Which thread runs next: any, or any but one that a busy machine leaves waiting for long.
//!
//! With the first alone, what takes one thread many steps hardly ever comes between two steps of another.

use fastrand::Rng;
use shuttle::scheduler::{RandomScheduler, Schedule, Scheduler, Task, TaskId};

/// Threads that may have to wait: the first ones.
const THREADS: usize = 6;

/// One thread after the other waits for a while.
#[derive(Debug)]
struct Unfair {
    rng: Rng,
    waiting: usize,
    steps: u32,
    has_begun: bool,
}

/// One that a number decides: if it is even, nobody is left waiting.
pub(super) fn scheduler(seed: u64) -> Box<dyn Scheduler + Send> {
    if seed.is_multiple_of(2) {
        return Box::new(RandomScheduler::new_from_seed(seed, 1));
    }
    Box::new(Unfair {
        rng: Rng::with_seed(seed),
        waiting: 0,
        steps: 0,
        has_begun: false,
    })
}

impl Scheduler for Unfair {
    fn new_execution(&mut self) -> Option<Schedule> {
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        (!has_begun).then(|| Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], _: Option<TaskId>, _: bool) -> Option<TaskId> {
        if self.steps == 0 {
            self.steps = self.rng.u32(10..400);
            self.waiting = self.rng.usize(0..THREADS);
        }
        self.steps -= 1;
        let ids = || runnable.iter().map(|task| task.id());
        let others = || ids().filter(|id| usize::from(*id) != self.waiting);
        match others().count() {
            // Whoever else there is waits for it.
            0 => ids().next(),
            count => {
                let chosen = self.rng.usize(0..count);
                ids()
                    .filter(|id| usize::from(*id) != self.waiting)
                    .nth(chosen)
            }
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.rng.u64(..)
    }
}
