//! With what a disk is compared: first with those of its model and filesystem, and of its firmware or kernel where those matter.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::difference::{Difference, Factor};
use super::disk::{Disk, Identity};

/// With fewer disks nothing can be said of one among them.
pub const FEWEST_PEERS: usize = 8;

/// What disks that are compared have in common; nothing where all disks of the fleet are.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Peers {
    /// The model.
    pub model: Option<String>,
    /// The filesystem.
    pub filesystem: Option<String>,
    /// The firmware, where its model's differ.
    pub firmware: Option<String>,
    /// The kernel, where they differ by it.
    pub kernel: Option<String>,
}

impl Peers {
    /// What they are, after a number of them: `Samsung PM983 on ext4`.
    pub fn text(&self) -> String {
        let Some(model) = &self.model else {
            return "disks of the fleet".to_owned();
        };
        let mut text = model.clone();
        if let Some(filesystem) = &self.filesystem {
            text += &format!(" on {filesystem}");
        }
        if let Some(firmware) = &self.firmware {
            text += &format!(" with firmware {firmware}");
        }
        if let Some(kernel) = &self.kernel {
            text += &format!(" under Linux {kernel}");
        }
        text
    }
}

/// Disks that are judged, and those that they are judged by, as indices.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// What those that they are judged by have in common.
    pub peers: Peers,
    /// Those that are judged; they are among the others.
    pub judged: Vec<usize>,
    /// Those that they are judged by.
    pub by: Vec<usize>,
}

/// Every disk in one class; none where the whole fleet is too small.
pub(super) fn classes(disks: &[Disk], differences: &[Difference]) -> Vec<Class> {
    let narrow = |disk: &Disk| narrowest(&disk.identity, differences);
    let wide = |disk: &Disk| of_model(&disk.identity);
    let mut classes = Vec::new();
    let mut rest: BTreeSet<usize> = (0..disks.len()).collect();
    for level in [&narrow as &dyn Fn(&Disk) -> Peers, &wide] {
        let (mut all, mut left): (BTreeMap<Peers, Vec<usize>>, BTreeSet<usize>) =
            Default::default();
        for (index, disk) in disks.iter().enumerate() {
            all.entry(level(disk)).or_default().push(index);
        }
        for (peers, by) in all {
            let judged = by.iter().copied().filter(|one| rest.contains(one));
            let judged: Vec<usize> = judged.collect();
            if by.len() < FEWEST_PEERS {
                left.extend(judged);
            } else if !judged.is_empty() {
                classes.push(Class { peers, judged, by });
            }
        }
        rest = left;
    }
    if disks.len() >= FEWEST_PEERS && !rest.is_empty() {
        classes.push(Class {
            peers: Peers::default(),
            judged: rest.into_iter().collect(),
            by: (0..disks.len()).collect(),
        });
    }
    classes
}

/// Those of the same model and filesystem.
pub(super) fn of_model(identity: &Identity) -> Peers {
    Peers {
        model: Some(identity.model.clone()),
        filesystem: Some(identity.filesystem.clone()),
        ..Peers::default()
    }
}

/// Those among them that have the same firmware and kernel, where one of these makes a difference.
fn narrowest(identity: &Identity, differences: &[Difference]) -> Peers {
    let mut peers = of_model(identity);
    let of_these = differences
        .iter()
        .filter(|one| one.model == identity.model && one.filesystem == identity.filesystem);
    for difference in of_these {
        match difference.factor {
            Factor::Firmware => peers.firmware = identity.firmware.clone(),
            Factor::Kernel => peers.kernel = Some(identity.kernel.clone()),
        }
    }
    peers
}
