//! What keeps a leaf whole that is overwritten at its home while the power goes, and how one is chosen by measuring.
//!
//! A choice is kept in the log, and then in the root. It says what the next checkpoint does; what recovery needs it finds by
//! itself, whatever the choice is by then.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::bytes::{Cursor, put_number};
use super::data_file::is_full;
use super::options::HOME_BYTES;
use crate::Error;
use crate::environment::{Buffer, Durability, Environment, File, Storage};

/// What is done so that a power cut takes no leaf that is written again, in keyspaces whose leaves have
/// [homes](crate::KeyspaceOptions::in_place). In all others leaves are written elsewhere each time, and nothing need be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protection {
    /// It is written elsewhere, and the old one stays until a durable checkpoint leads to the new one.
    #[default]
    Shadow,
    /// It is written twice: first a copy, many of them by one write and one flush, then at home.
    Doublewrite,
    /// When it is first written after a checkpoint, all of it goes into the log, compressed. Then it is written at home, any number
    /// of times until the next checkpoint.
    Image,
    /// It is written at home by writes that the filesystem promises not to tear (`RWF_ATOMIC`, Linux 6.11). Refused where it promises none.
    Atomic,
    /// Nothing. **It is not safe**: a power cut in the middle of a checkpoint can lose every key of a leaf. It is here to be
    /// compared with, and for devices that are known to tear nothing.
    None,
    /// The cheapest of the safe ones on this disk, by a trial of about a quarter of a second. It is made once: the store remembers
    /// what came of it, and tries again only where that cannot be done any more. A store never has this one;
    /// [`Store::protection`](crate::Store::protection) tells what it has.
    Auto,
}

impl Protection {
    /// Those that a store can have.
    pub const ALL: [Protection; 5] = [
        Protection::Shadow,
        Protection::Doublewrite,
        Protection::Image,
        Protection::Atomic,
        Protection::None,
    ];

    /// The name, such as `doublewrite`.
    pub fn name(self) -> &'static str {
        match self {
            Protection::Shadow => "shadow",
            Protection::Doublewrite => "doublewrite",
            Protection::Image => "image",
            Protection::Atomic => "atomic",
            Protection::None => "none",
            Protection::Auto => "auto",
        }
    }

    /// As it is kept.
    fn code(self) -> u64 {
        match self {
            Protection::Shadow => 0,
            Protection::Doublewrite => 1,
            Protection::Image => 2,
            Protection::Atomic => 3,
            Protection::None => 4,
            Protection::Auto => 5,
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How long one page took with each protection, when one was chosen by measuring: the middle of several rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtectionCosts {
    /// Written elsewhere.
    pub shadow: Duration,
    /// Written twice.
    pub doublewrite: Duration,
    /// Half of it into the log first, as if each page were written once between two checkpoints.
    pub image: Duration,
    /// Written by a write that is not torn; `None`: the filesystem promises none.
    pub atomic: Option<Duration>,
}

/// Which protection a store has, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtectionChoice {
    /// What it has: never [`Protection::Auto`].
    pub protection: Protection,
    /// What was measured when it was chosen; `None`: it was asked for, or is the default.
    pub measured: Option<ProtectionCosts>,
}

impl fmt::Display for ProtectionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(costs) = self.measured else {
            return write!(f, "{}", self.protection);
        };
        let name = self.protection;
        write!(f, "{name}, the cheapest here: by page")?;
        let each = [
            ("shadow", Some(costs.shadow)),
            ("doublewrite", Some(costs.doublewrite)),
            ("image", Some(costs.image)),
            ("atomic", costs.atomic),
        ];
        for (index, (name, time)) in each.into_iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            match time {
                Some(time) => write!(f, "{separator} {name} {:.1} µs", time.as_secs_f64() * 1e6)?,
                None => write!(f, "{separator} {name} not promised")?,
            }
        }
        Ok(())
    }
}

impl ProtectionChoice {
    /// One that was asked for.
    pub(crate) fn asked(protection: Protection) -> ProtectionChoice {
        ProtectionChoice {
            protection,
            measured: None,
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_number(out, self.protection.code());
        put_number(out, self.measured.is_some().into());
        if let Some(costs) = self.measured {
            let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            for time in [costs.shadow, costs.doublewrite, costs.image] {
                put_number(out, nanos(time));
            }
            put_number(out, costs.atomic.is_some().into());
            put_number(out, costs.atomic.map_or(0, nanos));
        }
    }

    pub(super) fn take(cursor: &mut Cursor<'_>) -> Option<ProtectionChoice> {
        let code = cursor.number()?;
        let protection = Protection::ALL
            .into_iter()
            .find(|protection| protection.code() == code)?;
        let measured = match cursor.number()? {
            0 => None,
            1 => {
                let mut time = || cursor.number().map(Duration::from_nanos);
                let (shadow, doublewrite, image) = (time()?, time()?, time()?);
                let is_there = cursor.number().filter(|flag| *flag < 2)? == 1;
                let atomic = Duration::from_nanos(cursor.number()?);
                Some(ProtectionCosts {
                    shadow,
                    doublewrite,
                    image,
                    atomic: is_there.then_some(atomic),
                })
            }
            _ => return None,
        };
        Some(ProtectionChoice {
            protection,
            measured,
        })
    }
}

/// Refuses atomic writes where the filesystem does not promise them, for leaves of so many bytes or for all.
pub(super) fn require_atomic<E: Environment>(
    environment: &E,
    bytes: Option<u32>,
) -> Result<(), Error> {
    let promised = environment.storage().atomic_writes();
    let promised = promised.map_err(Error::io("ask the filesystem for atomic writes"))?;
    let is_promised = bytes.map_or(*promised.end() > 0, |bytes| promised.contains(&bytes));
    if is_promised {
        return Ok(());
    }
    let what = match *promised.end() {
        0 => "promises no atomic writes".to_owned(),
        most => format!(
            "promises atomic writes of {} to {most} bytes, and a leaf here has {}",
            promised.start(),
            bytes.unwrap_or(0)
        ),
    };
    Err(Error::Options(format!(
        "protection `atomic`: the filesystem {what}; use `doublewrite`, `image` or `shadow`"
    )))
}

/// Whether writes of these sizes are not torn, whatever homes a keyspace may ask for.
pub(super) fn promises_all_homes(promised: &RangeInclusive<u32>) -> bool {
    promised.contains(HOME_BYTES.start()) && promised.contains(HOME_BYTES.end())
}

/// The file in which protections are tried.
const TRIAL: &str = "landfall-trial";
/// Bytes of a page, and pages of a round.
const PAGE: usize = if cfg!(test) { 4 << 10 } else { 16 << 10 };
const PAGES: usize = if cfg!(test) { 2 } else { 32 };
/// Pages of the file: homes in its first half, what is written elsewhere behind.
const FILE_PAGES: usize = 8 * PAGES;
/// After so long no further round is begun.
const ENOUGH: Duration = Duration::from_millis(250);
const MOST_ROUNDS: usize = 5;

/// Measures what each protection costs in this directory, and chooses the cheapest that is safe.
pub(super) fn measure<E: Environment>(environment: &E) -> Result<ProtectionChoice, Error> {
    let storage = environment.storage();
    let remove = || match storage.remove(TRIAL) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    let measured = remove().and_then(|()| rounds(environment));
    let removed = remove();
    let costs = measured.map_err(|error| {
        if is_full(&error) {
            let bytes = (FILE_PAGES * PAGE) as u64;
            Error::NoSpace { bytes }
        } else {
            Error::io("try the protections of a store")(error)
        }
    })?;
    removed.map_err(Error::io("remove the file of a trial"))?;
    let mut each = vec![
        (Protection::Shadow, costs.shadow),
        (Protection::Doublewrite, costs.doublewrite),
        (Protection::Image, costs.image),
    ];
    each.extend(costs.atomic.map(|time| (Protection::Atomic, time)));
    let cheapest = each.into_iter().min_by_key(|(_, time)| *time);
    Ok(ProtectionChoice {
        protection: cheapest.map_or(Protection::Shadow, |(protection, _)| protection),
        measured: Some(costs),
    })
}

fn rounds<E: Environment>(environment: &E) -> std::io::Result<ProtectionCosts> {
    let storage = environment.storage();
    let is_atomic = promises_all_homes(&storage.atomic_writes()?);
    let file = storage.create(TRIAL)?;
    file.allocate((FILE_PAGES * PAGE) as u64)?;
    let mut buffer = Buffer::new(PAGES * PAGE);
    // What compresses to nothing may be stored as nothing.
    let mut random = fastrand::Rng::with_seed(1);
    random.fill(buffer.bytes_mut(0..PAGES * PAGE));
    let run = |pages: usize, at: usize| {
        let bytes = buffer.bytes(0..pages * PAGE);
        file.write(bytes, (at * PAGE) as u64, Durability::Later)
    };
    for at in (0..FILE_PAGES).step_by(PAGES) {
        run(PAGES, at)?;
    }
    file.sync()?;
    // All over the first half of the file, none twice.
    let homes = |round: usize| {
        let half = FILE_PAGES / 2;
        (0..PAGES).map(move |index| (index * 37 + round) % half)
    };
    let elsewhere = |round: usize| FILE_PAGES / 2 + round % 4 * PAGES;
    let at_home = |round: usize| -> std::io::Result<()> {
        for home in homes(round) {
            run(1, home)?;
        }
        file.sync()
    };
    let mut times: [Vec<Duration>; 4] = Default::default();
    let begin = environment.now();
    for round in 0..MOST_ROUNDS {
        if round > 0 && environment.now().saturating_sub(begin) > ENOUGH {
            break;
        }
        let mut time = |index: usize, work: &dyn Fn() -> std::io::Result<()>| {
            let begin = environment.now();
            work()?;
            times[index].push(environment.now().saturating_sub(begin));
            Ok::<(), std::io::Error>(())
        };
        time(0, &|| {
            run(PAGES, elsewhere(round))?;
            file.sync()
        })?;
        time(1, &|| {
            run(PAGES, elsewhere(round))?;
            file.sync()?;
            at_home(round)
        })?;
        time(2, &|| {
            run(PAGES / 2, elsewhere(round))?;
            file.sync()?;
            at_home(round)
        })?;
        if is_atomic {
            time(3, &|| {
                for home in homes(round) {
                    file.write_atomic(buffer.bytes(0..PAGE), (home * PAGE) as u64)?;
                }
                file.sync()
            })?;
        }
    }
    let mut middle = |index: usize| {
        let times: &mut Vec<Duration> = &mut times[index];
        times.sort_unstable();
        let middle = times.get(times.len() / 2);
        middle.map(|time| *time / PAGES as u32)
    };
    let atomic = middle(3);
    let mut required = |index| middle(index).unwrap_or(Duration::MAX);
    Ok(ProtectionCosts {
        shadow: required(0),
        doublewrite: required(1),
        image: required(2),
        atomic,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_kept_and_say_why() {
        let costs = ProtectionCosts {
            shadow: Duration::from_nanos(1500),
            doublewrite: Duration::from_micros(3),
            image: Duration::from_micros(2),
            atomic: None,
        };
        let atomic = Some(Duration::from_micros(1));
        let mut choices: Vec<_> = Protection::ALL.map(ProtectionChoice::asked).to_vec();
        for measured in [costs, ProtectionCosts { atomic, ..costs }] {
            choices.push(ProtectionChoice {
                protection: Protection::Shadow,
                measured: Some(measured),
            });
        }
        for choice in &choices {
            let mut out = Vec::new();
            choice.put(&mut out);
            let mut cursor = Cursor::new(&out);
            assert_eq!(ProtectionChoice::take(&mut cursor), Some(*choice));
            assert!(cursor.is_empty());
        }
        let said: Vec<String> = choices.iter().map(ToString::to_string).collect();
        assert_eq!(said[1], "doublewrite");
        assert_eq!(
            said[5],
            "shadow, the cheapest here: by page shadow 1.5 µs, doublewrite 3.0 µs, image 2.0 µs, atomic not promised"
        );
        assert!(said[6].ends_with("atomic 1.0 µs"));
        // What was asked is not what a store has.
        let mut out = Vec::new();
        ProtectionChoice::asked(Protection::Auto).put(&mut out);
        assert_eq!(ProtectionChoice::take(&mut Cursor::new(&out)), None);
    }

    #[test]
    fn the_cheapest_is_chosen_on_this_disk_and_nothing_stays() {
        let directory = tempfile::tempdir().unwrap();
        let machine = crate::environment::machine(directory.path());
        let choice = measure(&machine).unwrap();
        let costs = choice.measured.unwrap();
        let all = [
            Some(costs.shadow),
            Some(costs.doublewrite),
            Some(costs.image),
            costs.atomic,
        ];
        let least = all.into_iter().flatten().min().unwrap();
        let chosen = match choice.protection {
            Protection::Shadow => Some(costs.shadow),
            Protection::Doublewrite => Some(costs.doublewrite),
            Protection::Image => Some(costs.image),
            Protection::Atomic => costs.atomic,
            other => panic!("{other} is not safe"),
        };
        assert_eq!(chosen, Some(least));
        assert_eq!(machine.storage().names().unwrap(), Vec::<String>::new());
    }
}
