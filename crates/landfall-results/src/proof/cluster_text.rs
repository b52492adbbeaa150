//! What power cuts did to a cluster, in words.

use super::counted::{states, whole};
use super::{ClusterCuts, HeldRecord, ProofResults, VictimCuts};

/// Which power failures a cluster survived: a sentence for each number of nodes that lost power; and on how many nodes records were
/// durable when they were acknowledged. Nothing of what is no cluster.
pub fn sentences(proof: &ProofResults) -> Vec<String> {
    let Some(cluster) = &proof.cluster else {
        return Vec::new();
    };
    let survived = cluster
        .by_victims
        .iter()
        .map(|cuts| of_victims(cluster, cuts));
    survived.chain(of_held(cluster)).collect()
}

fn of_victims(cluster: &ClusterCuts, cuts: &VictimCuts) -> String {
    let nodes = cluster.nodes;
    let who = match (cuts.victims == nodes, cluster.rolling) {
        (true, false) => format!("All {nodes} nodes lost power"),
        (true, true) => format!("All {nodes} nodes lost power one after the other"),
        _ => {
            let victims = cuts.victims;
            format!("{victims} of {nodes} nodes lost power while the others' programs were killed")
        }
    };
    let lost = format!(
        "{} of {} lost something acknowledged",
        whole(cuts.losing),
        states(cuts.checked)
    );
    match cuts.unavailable {
        0 => format!("{who}: {lost}."),
        some => format!(
            "{who}: {lost}, and in {} the cluster did not come back.",
            whole(some)
        ),
    }
}

fn of_held(cluster: &ClusterCuts) -> Option<String> {
    let count = |record: &HeldRecord, is: Option<bool>| -> u64 {
        record.nodes.iter().filter(|held| **held == is).count() as u64
    };
    let held = &cluster.held;
    let known: Vec<u64> = held
        .iter()
        .map(|record| count(record, Some(true)))
        .collect();
    let (least, most) = (known.iter().min()?, known.iter().max()?);
    let nodes = cluster.nodes;
    let unknown: u64 = held.iter().map(|record| count(record, None)).sum();
    if unknown == nodes.saturating_mul(held.len() as u64) {
        return Some(
            "On how many nodes a record was durable when it was acknowledged cannot be told: with one \
             node's disk alone the cluster does not come back."
                .to_owned(),
        );
    }
    let on = match (unknown, least, most) {
        (0, 0, 0) => "on none".to_owned(),
        (0, 0, most) => format!("on none to {most}"),
        (0, least, most) if least < most => format!("on {least} to {most}"),
        (0, least, _) => format!("on {least}"),
        (_, 0, _) => "on some or none".to_owned(),
        (_, least, _) => format!("on at least {least}"),
    };
    let looked = match known.len() {
        1 => "one record was looked at".to_owned(),
        some => format!("{} records were looked at", whole(some as u64)),
    };
    let unknown = match unknown {
        0 => "",
        _ => "; of some nodes it cannot be told",
    };
    Some(format!(
        "When it was acknowledged, a record was durable {on} of {nodes} nodes ({looked}{unknown})."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::fixtures::proof;

    fn of(cluster: ClusterCuts) -> Vec<String> {
        let mut proof = proof();
        proof.cluster = Some(cluster);
        sentences(&proof)
    }

    fn cuts(rolling: bool, held: &[&[Option<bool>]]) -> ClusterCuts {
        let held = held.iter().zip(1..).map(|(nodes, transaction)| HeldRecord {
            transaction,
            nodes: nodes.to_vec(),
        });
        ClusterCuts {
            nodes: 3,
            rolling,
            by_victims: Vec::new(),
            held: held.collect(),
        }
    }

    #[test]
    fn who_lost_power_and_what_was_lost_is_said() {
        let mut some = cuts(false, &[]);
        (some.of(1).checked, some.of(3).checked) = (1, 1_200);
        (some.of(3).losing, some.of(3).unavailable) = (7, 2);
        assert_eq!(
            of(some),
            [
                "1 of 3 nodes lost power while the others' programs were killed: 0 of 1 crash state lost something acknowledged.",
                "All 3 nodes lost power: 7 of 1,200 crash states lost something acknowledged, and in 2 the cluster did not come back.",
            ]
        );
        let mut rolling = cuts(true, &[]);
        rolling.of(3).checked = 2;
        assert!(of(rolling)[0].starts_with("All 3 nodes lost power one after the other: 0 of 2"));
    }

    #[test]
    fn on_how_many_nodes_records_were_durable_is_said() {
        let held = |records: &[&[Option<bool>]]| of(cuts(false, records)).pop().unwrap();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(
            held(&[&[yes, no, yes], &[yes, yes, no]]),
            "When it was acknowledged, a record was durable on 2 of 3 nodes (2 records were looked at)."
        );
        assert!(held(&[&[no, no, no]]).contains("durable on none of 3 nodes (one record"));
        assert!(held(&[&[no, no, no], &[yes, yes, yes]]).contains("on none to 3 of 3"));
        assert!(held(&[&[yes, None, no], &[yes, yes, None]]).contains(
            "on at least 1 of 3 nodes (2 records were looked at; of some nodes it cannot"
        ));
        assert!(held(&[&[no, None, no]]).contains("on some or none of 3 nodes"));
        assert!(held(&[&[None, None, None]]).starts_with("On how many nodes"));
        assert_eq!(of(cuts(false, &[])), [""; 0]);
    }
}
