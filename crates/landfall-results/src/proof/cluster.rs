//! What power cuts did to a cluster, by how many of its nodes they hit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Power cuts of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterCuts {
    /// Nodes of the cluster.
    pub nodes: u64,
    /// Whether they lost power one after the other, while those that were left went on.
    #[serde(default)]
    pub rolling: bool,
    /// What became of the states, by how many nodes lost power at once, the fewest first.
    pub by_victims: Vec<VictimCuts>,
    /// Who held some of the records durably when they were acknowledged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldRecord>,
}

/// Which nodes held a record durably at the moment of its acknowledgement: that node's disk alone, with nothing that it had not
/// flushed, is enough to find it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldRecord {
    /// The transaction.
    pub transaction: u64,
    /// Of each node, whether it held it; null: that cannot be told, since the cluster did not come back.
    pub nodes: Vec<Option<bool>>,
}

/// Power cuts that so many nodes of a cluster had at once, while the others' programs were killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VictimCuts {
    /// Nodes that lost power.
    pub victims: u64,
    /// States that were checked.
    pub checked: u64,
    /// States in which something acknowledged was not there.
    pub losing: u64,
    /// States in which the cluster did not come back, so that it is not known what it has.
    pub unavailable: u64,
    /// States in which any promise was broken.
    pub failing: u64,
}

impl ClusterCuts {
    /// The cuts of several recordings of one cluster together.
    pub(super) fn added(mut self, other: &ClusterCuts) -> ClusterCuts {
        for cuts in &other.by_victims {
            let of = self.of(cuts.victims);
            of.checked = of.checked.saturating_add(cuts.checked);
            of.losing = of.losing.saturating_add(cuts.losing);
            of.unavailable = of.unavailable.saturating_add(cuts.unavailable);
            of.failing = of.failing.saturating_add(cuts.failing);
        }
        self.held.extend(other.held.iter().cloned());
        self
    }

    /// The cuts that so many nodes had, none of which are counted if it has none.
    pub fn of(&mut self, victims: u64) -> &mut VictimCuts {
        let at = self.by_victims.partition_point(|of| of.victims < victims);
        if self
            .by_victims
            .get(at)
            .is_none_or(|of| of.victims != victims)
        {
            let none = VictimCuts::default();
            self.by_victims.insert(at, VictimCuts { victims, ..none });
        }
        &mut self.by_victims[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_of_as_many_nodes_are_added_and_others_stand_between() {
        let cuts = |victims: &[(u64, u64)]| {
            let mut cuts = ClusterCuts {
                nodes: 3,
                rolling: false,
                by_victims: Vec::new(),
                held: Vec::new(),
            };
            for &(victims, losing) in victims {
                cuts.of(victims).losing += losing;
            }
            cuts
        };
        let sum = cuts(&[(3, 4), (1, 1)]).added(&cuts(&[(2, 9), (3, u64::MAX)]));
        assert_eq!(sum, cuts(&[(1, 1), (2, 9), (3, u64::MAX)]));
    }
}
