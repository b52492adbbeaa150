//! A workload that somebody means to run: `commits=5000,size=1K,clients=16,per-day=100G`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use landfall_os::humanize::{parse_size, size_name};

const DAY: f64 = 24.0 * 3600.0;
const KEYS: &str = "commits, size, clients, per-day";
const MOST_CLIENTS: u32 = 100_000;
const MOST_SIZE: u64 = 1 << 30;
const MOST_COMMITS: f64 = 1e9;

/// What a disk is to carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// Durable commits a second.
    pub commits: f64,
    /// Bytes of a value.
    pub size: u64,
    /// Clients that commit at the same time.
    pub clients: u32,
    /// Bytes that are put a day; without, as if it never paused.
    pub per_day: Option<u64>,
}

impl Target {
    /// Bytes that it puts in a second, on average over a day.
    pub fn bytes_per_second(&self) -> f64 {
        match self.per_day {
            Some(bytes) => bytes as f64 / DAY,
            None => self.commits * self.size as f64,
        }
    }

    /// Commits in a second, on average over a day.
    pub fn mean_commits(&self) -> f64 {
        self.bytes_per_second() / self.size as f64
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let (mut commits, mut size, mut clients, mut per_day) = (None, None, None, None);
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!(
                    "'{part}' is no number of a workload; write commits=5000,size=1K,clients=16,per-day=100G; there are: {KEYS}"
                ));
            };
            let wrong = |what: &str| Err(format!("'{key}={value}': it is {what}"));
            let is_new = match key {
                "commits" => {
                    let number = value.parse::<f64>().ok();
                    match number.filter(|number| *number > 0.0 && *number <= MOST_COMMITS) {
                        Some(number) => commits.replace(number).is_none(),
                        None => return wrong("a number of commits a second, above 0"),
                    }
                }
                "size" => match parse_size(value) {
                    Ok(bytes) if (1..=MOST_SIZE).contains(&bytes) => size.replace(bytes).is_none(),
                    _ => return wrong("the size of a value, from 1 to 1G"),
                },
                "clients" => match value.parse::<u32>() {
                    Ok(number) if (1..=MOST_CLIENTS).contains(&number) => {
                        clients.replace(number).is_none()
                    }
                    _ => return wrong("a number of clients from 1 to 100000"),
                },
                "per-day" => match parse_size(value) {
                    Ok(bytes) if bytes > 0 => per_day.replace(bytes).is_none(),
                    _ => return wrong("the bytes that are put a day, as 100G"),
                },
                _ => return Err(format!("a workload has no '{key}'; it has: {KEYS}")),
            };
            if !is_new {
                return Err(format!("'{key}' is given twice"));
            }
        }
        let missing = |what: &str| format!("a workload needs {what}, as in commits=5000,size=1K");
        let target = Target {
            commits: commits.ok_or_else(|| missing("commits"))?,
            size: size.ok_or_else(|| missing("size"))?,
            clients: clients.unwrap_or(1),
            per_day,
        };
        let most = target.commits * target.size as f64 * DAY;
        match per_day {
            Some(bytes) if bytes as f64 > most * 1.001 => Err(format!(
                "'per-day={}' is more than {} commits of {} a second put in a day",
                size_name(bytes),
                target.commits,
                size_name(target.size)
            )),
            _ => Ok(target),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (commits, size, clients) = (self.commits, size_name(self.size), self.clients);
        write!(f, "commits={commits},size={size},clients={clients}")?;
        match self.per_day {
            Some(bytes) => write!(f, ",per-day={}", size_name(bytes)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_written() {
        for (text, full) in [
            ("commits=5000,size=1K", "commits=5000,size=1K,clients=1"),
            (
                "per-day=10G,clients=16,size=200,commits=2500.5",
                "commits=2500.5,size=200,clients=16,per-day=10G",
            ),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), full);
            assert_eq!(full.parse(), Ok(target));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("", "there are: commits, size"),
            ("commits=0,size=1K", "above 0"),
            ("commits=5000", "needs size"),
            ("size=1K", "needs commits"),
            ("commits=1,size=0", "from 1 to 1G"),
            ("commits=1,commits=2,size=1", "twice"),
            ("commits=1,size=1,threads=4", "has no 'threads'"),
            ("commits=1,size=1K,per-day=1G", "is more than"),
            ("commits=inf,size=1K", "above 0"),
        ] {
            let error = text.parse::<Target>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
