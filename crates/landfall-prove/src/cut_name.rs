//! The names of states that one power cut has left, or a second one during the recovery from the first.

use std::fmt;
use std::str::FromStr;

use landfall_recorder::crash::StateName;

/// The name of a state after one power cut, `7:12:s2a0`, or after a second one while filesystem and subject recovered
/// from that, `7:12:s2a0/7:3:none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutName {
    /// What the first left.
    pub first: StateName,
    /// What the second left of what recovery had written.
    pub second: Option<StateName>,
}

impl From<StateName> for CutName {
    fn from(first: StateName) -> CutName {
        let second = None;
        CutName { first, second }
    }
}

impl fmt::Display for CutName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CutName { first, second } = self;
        match second {
            Some(second) => write!(f, "{first}/{second}"),
            None => first.fmt(f),
        }
    }
}

impl FromStr for CutName {
    type Err = String;

    fn from_str(text: &str) -> Result<CutName, String> {
        Ok(match text.split_once('/') {
            Some((first, second)) => CutName {
                first: first.parse()?,
                second: Some(second.parse()?),
            },
            None => text.parse::<StateName>()?.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in ["7:12:s2a0", "7:12:s2a0/7:3:none", "1:2:upto4+3/1:0:w1f"] {
            assert_eq!(name.parse::<CutName>().unwrap().to_string(), name);
        }
        for wrong in [
            "",
            "7:12",
            "7:12:none/",
            "/7:12:none",
            "1:2:none/1:2:none/1:2:none",
        ] {
            assert!(wrong.parse::<CutName>().is_err(), "{wrong}");
        }
    }
}
