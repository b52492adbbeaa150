//! The names of crash states.

use std::fmt;
use std::str::FromStr;

/// Which crash states are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Only what was flushed is there: one state for each flush.
    Flushed,
    /// The disk writes in order, and has no volatile cache: everything up to some sector is there, and nothing after it. A
    /// write that it has answered is never lost.
    Prefix,
    /// The disk writes in any order: any of the sectors written since the last flush are there.
    Subset,
}

/// Which of the writes after the last flush before the cut are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// None of them.
    None,
    /// The first `writes` of them, and the first `sectors` sectors of the one after.
    First {
        /// Whole writes.
        writes: u32,
        /// Sectors of the next write.
        sectors: u32,
    },
    /// The writes whose bit is set, whole; the lowest bit is the first write. Only in epochs of at most
    /// 64 writes.
    Writes(u64),
    /// As [`First`](Choice::First), of a disk that writes in any order: it held back all the others until the
    /// epoch ended.
    Upto {
        /// Whole writes.
        writes: u32,
        /// Sectors of the next write.
        sectors: u32,
    },
    /// One write alone, whole; the first is number 0.
    Only(u32),
    /// Of all writes only the first sectors of one.
    OnlyFirst {
        /// Which write; the first is number 0.
        write: u32,
        /// How many of its sectors; at least one, and not all.
        sectors: u32,
    },
    /// All writes but one; the first is number 0.
    Without(u32),
    /// All writes, but of one only its first sectors.
    WithoutRest {
        /// Which write; the first is number 0.
        write: u32,
        /// How many of its sectors; at least one, and not all.
        sectors: u32,
    },
    /// The *changed* sectors whose bit is set, in order of the writes and of the sectors in them. A
    /// sector of a write is changed unless it is equal to what was durable there and to everything that
    /// was written there before in the same epoch: then it makes no difference. Only in epochs of at
    /// most 64 changed sectors.
    Sectors(u64),
    /// The n-th that was drawn from the seed.
    Drawn(u32),
}

/// The short name of a crash state, `seed:cut:choice`: with it and the recording the state can be made
/// again.
///
/// Written `7:12:none`, `7:12:first4`, `7:12:first4+3` (and three sectors), `7:12:upto4+3`, `7:12:w1f` (bits in
/// hexadecimal), `7:12:only2`, `7:12:only2+3` (only three sectors of it), `7:12:without2`, `7:12:without2+3` (but for
/// three sectors of it), `7:12:s2a0`, `7:12:r5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateName {
    /// What the draws were made from.
    pub seed: u64,
    /// The epoch in which the power is cut: how many flushes were done before.
    pub cut: u32,
    /// What is there of the writes since.
    pub choice: Choice,
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Model::Flushed => "flushed",
            Model::Prefix => "prefix",
            Model::Subset => "subset",
        })
    }
}

impl FromStr for Model {
    type Err = String;

    fn from_str(name: &str) -> Result<Model, String> {
        [Model::Flushed, Model::Prefix, Model::Subset]
            .into_iter()
            .find(|model| model.to_string() == name)
            .ok_or_else(|| {
                format!("no model is called '{name}'; there are: flushed, prefix, subset")
            })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::None => f.write_str("none"),
            Choice::First { writes, sectors: 0 } => write!(f, "first{writes}"),
            Choice::First { writes, sectors } => write!(f, "first{writes}+{sectors}"),
            Choice::Upto { writes, sectors: 0 } => write!(f, "upto{writes}"),
            Choice::Upto { writes, sectors } => write!(f, "upto{writes}+{sectors}"),
            Choice::Writes(bits) => write!(f, "w{bits:x}"),
            Choice::Only(number) => write!(f, "only{number}"),
            Choice::OnlyFirst { write, sectors } => write!(f, "only{write}+{sectors}"),
            Choice::Without(number) => write!(f, "without{number}"),
            Choice::WithoutRest { write, sectors } => write!(f, "without{write}+{sectors}"),
            Choice::Sectors(bits) => write!(f, "s{bits:x}"),
            Choice::Drawn(number) => write!(f, "r{number}"),
        }
    }
}

impl FromStr for Choice {
    type Err = ();

    fn from_str(text: &str) -> Result<Choice, ()> {
        let number = |text: &str| text.parse::<u32>().map_err(drop);
        let bits = |text: &str| u64::from_str_radix(text, 16).map_err(drop);
        if text == "none" {
            return Ok(Choice::None);
        }
        // A number, and how many sectors more.
        let parts = |text: &str| match text.split_once('+') {
            Some((first, more)) => Ok((number(first)?, Some(number(more)?))),
            None => Ok((number(text)?, None)),
        };
        if let Some(first) = text.strip_prefix("first") {
            let (writes, sectors) = parts(first)?;
            let sectors = sectors.unwrap_or(0);
            return Ok(Choice::First { writes, sectors });
        }
        if let Some(first) = text.strip_prefix("upto") {
            let (writes, sectors) = parts(first)?;
            let sectors = sectors.unwrap_or(0);
            return Ok(Choice::Upto { writes, sectors });
        }
        if let Some(only) = text.strip_prefix("only") {
            return Ok(match parts(only)? {
                (number, None) => Choice::Only(number),
                (write, Some(sectors)) => Choice::OnlyFirst { write, sectors },
            });
        }
        // Before the bits of writes, which begin with the same letter.
        if let Some(without) = text.strip_prefix("without") {
            return Ok(match parts(without)? {
                (number, None) => Choice::Without(number),
                (write, Some(sectors)) => Choice::WithoutRest { write, sectors },
            });
        }
        match text.split_at_checked(1) {
            Some(("w", text)) => Ok(Choice::Writes(bits(text)?)),
            Some(("s", text)) => Ok(Choice::Sectors(bits(text)?)),
            Some(("r", text)) => Ok(Choice::Drawn(number(text)?)),
            _ => Err(()),
        }
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.seed, self.cut, self.choice)
    }
}

impl FromStr for StateName {
    type Err = String;

    fn from_str(text: &str) -> Result<StateName, String> {
        let wrong = || format!("'{text}' is no crash state; one is called 7:12:s2a0, say");
        let mut parts = text.split(':');
        let (Some(seed), Some(cut), Some(choice), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        Ok(StateName {
            seed: seed.parse().map_err(|_| wrong())?,
            cut: cut.parse().map_err(|_| wrong())?,
            choice: choice.parse().map_err(|()| wrong())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in [
            "7:12:none",
            "0:0:first4",
            "1:2:first4+3",
            "18446744073709551615:4294967295:w1f",
            "1:2:upto4",
            "1:2:upto4+3",
            "1:2:only0",
            "1:2:only0+1",
            "1:2:without12",
            "1:2:without12+7",
            "1:2:s2a0",
            "1:2:r5",
        ] {
            assert_eq!(name.parse::<StateName>().unwrap().to_string(), name);
        }
        for wrong in [
            "",
            "1",
            "1:2",
            "1:2:x3",
            "1:2:w",
            "1:2:none:",
            "-1:2:none",
            "1:2:wg",
            "1:2:without",
            "1:2:without+1",
            "1:2:only1+",
            "1:2:upto1+2+3",
        ] {
            assert!(wrong.parse::<StateName>().is_err(), "{wrong}");
        }
    }
}
