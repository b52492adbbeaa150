//! A part of a proof's crash states, so that several machines can try them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One part of so many, written `3/16`: of what is planned the third of every sixteen.
///
/// Always `1 <= index <= of`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "Unchecked")]
#[schemars(!try_from)]
pub struct Shard {
    /// Which: the first is 1.
    index: u32,
    /// Of how many.
    of: u32,
}

/// As it is read, before it is known to be one.
#[derive(Deserialize)]
struct Unchecked {
    index: u32,
    of: u32,
}

impl TryFrom<Unchecked> for Shard {
    type Error = String;

    fn try_from(read: Unchecked) -> Result<Shard, String> {
        Shard::new(read.index, read.of)
    }
}

impl Shard {
    /// All of it.
    pub const WHOLE: Shard = Shard { index: 1, of: 1 };
    /// Most shards that a whole is cut into.
    pub const MOST: u32 = 100_000;

    /// The part `index` of `of`, from 1; says why there is no such part.
    pub fn new(index: u32, of: u32) -> Result<Shard, String> {
        if of == 0 || of > Shard::MOST {
            return Err(format!("there are 1 to {} shards", Shard::MOST));
        }
        if index == 0 || index > of {
            return Err(format!("of {of} shards the first is 1 and the last {of}"));
        }
        Ok(Shard { index, of })
    }

    /// All parts of a whole that is cut into `of`, at least 1.
    pub fn all(of: u32) -> impl Iterator<Item = Shard> {
        (1..=of).map(move |index| Shard { index, of })
    }

    /// Which it is: the first is 1.
    pub fn index(self) -> u32 {
        self.index
    }

    /// How many there are.
    pub fn of(self) -> u32 {
        self.of
    }

    /// What of the whole is its part.
    pub fn part<T: Copy>(self, whole: &[T]) -> Vec<T> {
        let first = self.index as usize - 1;
        let part = whole.iter().skip(first).step_by(self.of as usize);
        part.copied().collect()
    }

    /// How many of `count` things are its part.
    pub fn share(self, count: usize) -> usize {
        let of = self.of as usize;
        count / of + usize::from(self.index as usize <= count % of)
    }

    /// The place in the whole of what has this place in its part; the first of each is 1.
    pub fn place_in_whole(self, place: u64) -> u64 {
        (place - 1) * u64::from(self.of) + u64::from(self.index)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| {
            let number = |text: &str| text.parse::<u32>().ok();
            Some((number(index)?, number(of)?))
        });
        let (index, of) =
            numbers.ok_or("it is written I/N, as 3/16: the third of sixteen shards")?;
        Shard::new(index, of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_whole_and_no_part_is_in_two() {
        for count in [0, 1, 2, 5, 16, 17, 100] {
            let whole: Vec<usize> = (1..=count).collect();
            for of in [1, 2, 3, 16, 101] {
                let mut all = Vec::new();
                for shard in Shard::all(of) {
                    let part = shard.part(&whole);
                    assert_eq!(part.len(), shard.share(count), "{shard} of {count}");
                    for (place, of_whole) in (1..).zip(&part) {
                        assert_eq!(shard.place_in_whole(place), *of_whole as u64);
                    }
                    all.extend(part);
                }
                all.sort_unstable();
                assert_eq!(all, whole);
            }
        }
    }

    #[test]
    fn a_shard_is_read_back_and_what_is_none_is_refused() {
        let shard: Shard = "3/16".parse().unwrap();
        assert_eq!(shard.to_string(), "3/16");
        let json = serde_json::to_string(&shard).unwrap();
        assert_eq!(json, r#"{"index":3,"of":16}"#);
        assert_eq!(serde_json::from_str::<Shard>(&json).unwrap(), shard);
        for wrong in ["", "3", "/", "0/4", "5/4", "1/0", "a/b", "-1/4", "1/100001"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
        assert!(serde_json::from_str::<Shard>(r#"{"index":0,"of":1}"#).is_err());
    }
}
