//! What one state of a cluster is, and what it is called.

use std::fmt;
use std::str::FromStr;

use landfall_recorder::crash::Choice;

/// In which order the nodes are started after the power has come back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Boot {
    /// All at once.
    Together,
    /// These last, when the others have served a client: a smallest majority.
    Late(Vec<usize>),
}

impl Boot {
    /// All that are tried of a cluster of so many nodes: all at once, and each smallest majority first.
    pub fn all(nodes: usize) -> Vec<Boot> {
        let late = nodes - (nodes / 2 + 1);
        let sets = (0..1_u32 << nodes).filter(|set| set.count_ones() as usize == late);
        let members = |set: u32| (0..nodes).filter(|node| set >> node & 1 == 1).collect();
        let late = sets
            .filter(|set| *set != 0)
            .map(|set| Boot::Late(members(set)));
        std::iter::once(Boot::Together).chain(late).collect()
    }

    /// Those that come late.
    pub fn late(&self) -> &[usize] {
        match self {
            Boot::Together => &[],
            Boot::Late(nodes) => nodes,
        }
    }

    /// Those of so many nodes that are started first.
    pub fn first(&self, nodes: usize) -> Vec<usize> {
        (0..nodes)
            .filter(|node| !self.late().contains(node))
            .collect()
    }
}

/// What became of a node's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// It is as it was when the recording began, whenever the others' power went: what they have, it cannot have.
    Begun,
    /// Its power stayed on, and its program was killed like all others: everything that was written is there.
    Kept,
    /// Its power went: of what was not flushed this is there.
    Cut(Choice),
}

/// The name of a crash state of a cluster, `seed:moment:fates:boot`: with it and the recording the state can be made again.
///
/// Written `7:120:none,upto3,r5:together`, or `7:480:kept,none,kept:late0` where node 0 is started last. A fate is `kept`, or
/// `begun` where the disk is as it was when the recording began, or what is there of what a disk had not flushed, in the words of [`Choice`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterStateName {
    /// What the draws were made from.
    pub seed: u64,
    /// Events of all nodes before the power went.
    pub moment: usize,
    /// What became of each node's disk.
    pub fates: Vec<Fate>,
    /// How the nodes are started again.
    pub boot: Boot,
}

impl ClusterStateName {
    /// How many nodes' power went.
    pub fn victims(&self) -> usize {
        self.fates
            .iter()
            .filter(|fate| **fate != Fate::Kept)
            .count()
    }

    /// Complains of a name that no cluster of so many nodes can have.
    pub(super) fn require_nodes(&self, nodes: usize) -> Result<(), String> {
        let named = self.fates.len();
        if named != nodes {
            return Err(format!(
                "{self} is a state of {named} nodes, and the cluster has {nodes}"
            ));
        }
        if let Some(node) = self.boot.late().iter().find(|node| **node >= nodes) {
            let last = nodes - 1;
            return Err(format!(
                "{self}: there is no node {node}, the last is {last}"
            ));
        }
        if self.boot.first(nodes).is_empty() {
            return Err(format!(
                "{self}: all nodes come late, and none is there first"
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Boot::Together => f.write_str("together"),
            Boot::Late(nodes) => {
                f.write_str("late")?;
                nodes.iter().try_for_each(|node| write!(f, "{node}"))
            }
        }
    }
}

impl FromStr for Boot {
    type Err = ();

    fn from_str(text: &str) -> Result<Boot, ()> {
        if text == "together" {
            return Ok(Boot::Together);
        }
        // There are no more than ten nodes.
        let late = text.strip_prefix("late").ok_or(())?;
        let digits = late
            .chars()
            .map(|digit| digit.to_digit(10).map(|node| node as usize));
        let nodes: Vec<usize> = digits.collect::<Option<_>>().ok_or(())?;
        if nodes.is_empty() || !nodes.is_sorted_by(|a, b| a < b) {
            return Err(());
        }
        Ok(Boot::Late(nodes))
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Begun => f.write_str("begun"),
            Fate::Kept => f.write_str("kept"),
            Fate::Cut(choice) => choice.fmt(f),
        }
    }
}

impl fmt::Display for ClusterStateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fates: Vec<String> = self.fates.iter().map(Fate::to_string).collect();
        let fates = fates.join(",");
        write!(f, "{}:{}:{fates}:{}", self.seed, self.moment, self.boot)
    }
}

impl FromStr for ClusterStateName {
    type Err = String;

    fn from_str(text: &str) -> Result<ClusterStateName, String> {
        let parse = || {
            let mut parts = text.split(':');
            let seed = parts.next()?.parse().ok()?;
            let moment = parts.next()?.parse().ok()?;
            let fate = |text: &str| match text {
                "begun" => Some(Fate::Begun),
                "kept" => Some(Fate::Kept),
                text => text.parse().ok().map(Fate::Cut),
            };
            let fates = parts.next()?.split(',').map(fate).collect::<Option<_>>()?;
            let boot = parts.next()?.parse().ok()?;
            parts.next().is_none().then_some(ClusterStateName {
                seed,
                moment,
                fates,
                boot,
            })
        };
        parse().ok_or_else(|| {
            format!(
                "'{text}' is no crash state of a cluster; one is called 7:120:none,upto3,r5:together, say"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in [
            "7:120:none,upto3,r5:together",
            "1:0:kept,none,kept:late0",
            "1:99:first2+1,s2a0,kept,none,w3:late04",
            "1:99:none,begun,begun:late2",
        ] {
            assert_eq!(name.parse::<ClusterStateName>().unwrap().to_string(), name);
        }
        for wrong in [
            "",
            "7:12:none",
            "7:120:none,,none:together",
            "7:120:none,none:late",
            "7:120:none,none:late10",
            "7:120:none,none:together:",
            "7:x:none,none:together",
        ] {
            assert!(wrong.parse::<ClusterStateName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_has_a_fate_for_each_node_and_somebody_starts_first() {
        let complaint = |name: &str| {
            let name: ClusterStateName = name.parse().unwrap();
            name.require_nodes(3).err().unwrap_or_default()
        };
        assert_eq!(complaint("1:2:none,kept,begun:late2"), "");
        for (name, why) in [
            (
                "1:2:none,none:together",
                "is a state of 2 nodes, and the cluster has 3",
            ),
            (
                "1:2:none,none,none:late3",
                "there is no node 3, the last is 2",
            ),
            ("1:2:none,none,none:late012", "none is there first"),
        ] {
            assert!(complaint(name).ends_with(why), "{}", complaint(name));
        }
    }

    #[test]
    fn each_smallest_majority_is_started_first() {
        let text =
            |nodes| -> Vec<String> { Boot::all(nodes).iter().map(Boot::to_string).collect() };
        assert_eq!(text(2), ["together"]);
        assert_eq!(text(3), ["together", "late0", "late1", "late2"]);
        assert_eq!(Boot::all(5).len(), 11);
        assert_eq!(Boot::all(4).len(), 5);
        assert_eq!(Boot::Late(vec![1]).first(3), [0, 2]);
    }
}
