//! What checks have found, by the files that they found it in: equal files are checked by the subject once.
//!
//! What is kept is what was *found*, before it is judged: of two states with equal files more may have been acknowledged
//! before the one than before the other. What breaks a promise is kept once it was found twice: what fails only once says
//! nothing of other states.
//!
//! Threads: all workers share it. Who meets files that another worker is just checking waits for that, since a server
//! takes longer to start than to be waited for; a check that comes to nothing lets the next one try.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::file_identity::FileIdentity;

/// What was found in which files.
#[derive(Debug)]
pub(crate) struct Checks<T> {
    by_files: Mutex<HashMap<FileIdentity, Found<T>>>,
    changed: Condvar,
    equal: AtomicU64,
}

#[derive(Clone, Debug)]
enum Found<T> {
    /// Somebody is looking.
    UnderWay,
    This(T),
}

impl<T> Default for Checks<T> {
    fn default() -> Checks<T> {
        Checks {
            by_files: Mutex::default(),
            changed: Condvar::default(),
            equal: AtomicU64::default(),
        }
    }
}

impl<T: Clone> Checks<T> {
    /// What was found in these files, or is found there now by `check`: that is kept if `is_sure`.
    pub fn once<E>(
        &self,
        files: FileIdentity,
        check: impl FnOnce() -> Result<T, E>,
        is_sure: impl FnOnce(&T) -> bool,
    ) -> Result<T, E> {
        let mut by_files = self.lock();
        loop {
            match by_files.get(&files) {
                Some(Found::This(found)) => {
                    self.equal.fetch_add(1, Ordering::Relaxed);
                    return Ok(found.clone());
                }
                Some(Found::UnderWay) => {
                    by_files = self
                        .changed
                        .wait(by_files)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                None => break,
            }
        }
        by_files.insert(files, Found::UnderWay);
        drop(by_files);
        let mut claim = Claim {
            checks: self,
            files,
            found: None,
        };
        let found = check()?;
        claim.found = is_sure(&found).then(|| found.clone());
        Ok(found)
    }

    /// Keeps what was found in these files, whatever was before.
    pub fn put(&self, files: FileIdentity, found: T) {
        self.lock().insert(files, Found::This(found));
        self.changed.notify_all();
    }

    /// How often something was known already.
    pub fn equal(&self) -> u64 {
        self.equal.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FileIdentity, Found<T>>> {
        self.by_files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to check these files; whoever waits for it goes on when it is dropped, also by a panic.
struct Claim<'a, T: Clone> {
    checks: &'a Checks<T>,
    files: FileIdentity,
    found: Option<T>,
}

impl<T: Clone> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        let mut by_files = self.checks.lock();
        // What somebody has put there meanwhile was found twice, and stays.
        if matches!(by_files.get(&self.files), Some(Found::UnderWay)) {
            match self.found.take() {
                Some(found) => by_files.insert(self.files, Found::This(found)),
                None => by_files.remove(&self.files),
            };
        }
        drop(by_files);
        self.checks.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Barrier;

    use super::*;
    use crate::subject::Recovered;

    fn files(content: &str) -> FileIdentity {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), content).unwrap();
        let path = directory.path().join("file");
        let time = std::time::SystemTime::UNIX_EPOCH;
        for path in [path.as_path(), directory.path()] {
            fs::File::open(path).unwrap().set_modified(time).unwrap();
        }
        FileIdentity::of(directory.path(), true).unwrap()
    }

    fn found(transaction: u64) -> Recovered {
        Recovered {
            whole: [transaction].into(),
            ..Recovered::default()
        }
    }

    #[test]
    fn equal_files_are_checked_once_and_others_by_themselves() {
        let checks = Checks::default();
        let calls = AtomicU64::new(0);
        let check = |content: &str| {
            let check = || Ok::<_, ()>(found(calls.fetch_add(1, Ordering::Relaxed)));
            checks.once(files(content), check, |_| true).unwrap()
        };
        assert_eq!(check("one"), found(0));
        assert_eq!(check("one"), found(0));
        assert_eq!(check("two"), found(1));
        assert_eq!(checks.equal(), 1);
    }

    #[test]
    fn who_meets_a_check_under_way_waits_for_it() {
        let checks = Checks::default();
        let (files, begun) = (files("one"), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let check = || {
                    begun.wait();
                    Ok::<_, ()>(found(7))
                };
                checks.once(files, check, |_| true).unwrap();
            });
            begun.wait();
            let second = checks.once(files, || Err("checked a second time"), |_| true);
            assert_eq!(second, Ok(found(7)));
        });
        assert_eq!(checks.equal(), 1);
    }

    #[test]
    fn a_check_that_came_to_nothing_is_made_again() {
        let checks = Checks::<Recovered>::default();
        let files = files("one");
        let once = |check: fn() -> Result<Recovered, &'static str>| {
            checks.once(files, check, |found| found.damage.is_none())
        };
        assert!(once(|| Err("no memory")).is_err());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = once(|| panic!("a planted one"));
        }));
        assert!(panicked.is_err());
        let damaged = once(|| Ok(Recovered::damaged("it is ill")));
        assert_eq!(damaged, Ok(Recovered::damaged("it is ill")));
        assert_eq!(once(|| Ok(found(3))), Ok(found(3)));
        assert_eq!(checks.equal(), 0);
    }

    #[test]
    fn what_was_found_twice_goes_before_what_was_found_once() {
        let checks = Checks::<Recovered>::default();
        let files = files("one");
        let known = || checks.once(files, || Err("nothing is known"), |_| true);
        checks.put(files, found(1));
        assert_eq!(known(), Ok(found(1)));
        checks.put(files, found(2));
        assert_eq!(known(), Ok(found(2)));
    }

    #[test]
    fn what_was_found_twice_stays_when_a_check_ends_that_was_under_way() {
        for first in [Ok(found(1)), Err("no memory")] {
            for is_sure in [true, false] {
                let checks = Checks::<Recovered>::default();
                let files = files("one");
                let check = || {
                    checks.put(files, found(2));
                    first.clone()
                };
                assert_eq!(checks.once(files, check, |_| is_sure), first);
                let known = checks.once(files, || Err("nothing is known"), |_| true);
                assert_eq!(known, Ok(found(2)));
            }
        }
    }
}
