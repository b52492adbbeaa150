//! Disks by what they have in common, with the median of each figure over them.

use std::collections::BTreeMap;

use landfall_results::stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::disk::{Disk, Identity};
use super::robust;

/// By what disks are grouped.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The disk's model.
    Model,
    /// Model and firmware.
    Firmware,
    /// The filesystem.
    Filesystem,
    /// The kernel.
    Kernel,
}

/// Disks that have something in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// By what they are grouped.
    pub by: By,
    /// What they have in common.
    pub name: String,
    /// How many there are.
    pub disks: usize,
    /// Each figure over them.
    pub figures: Vec<GroupFigure>,
}

/// A figure over a group: the median of the disks' medians, with its 95% interval by order statistics; with fewer than six disks
/// that runs from the least to the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupFigure {
    /// Index into the fleet's figures.
    pub figure: usize,
    /// Disks that have it.
    pub disks: usize,
    /// The median over them.
    #[serde(flatten)]
    pub estimate: Estimate,
}

impl By {
    /// All of them.
    pub const ALL: [By; 4] = [By::Model, By::Firmware, By::Filesystem, By::Kernel];

    /// What it is called, as the heading of a table.
    pub fn name(self) -> &'static str {
        match self {
            By::Model => "Model",
            By::Firmware => "Firmware",
            By::Filesystem => "Filesystem",
            By::Kernel => "Kernel",
        }
    }

    fn of(self, identity: &Identity) -> Option<String> {
        match self {
            By::Model => Some(identity.model.clone()),
            By::Firmware => {
                let firmware = identity.firmware.as_ref()?;
                Some(format!("{}, {firmware}", identity.model))
            }
            By::Filesystem => Some(identity.filesystem.clone()),
            By::Kernel => Some(identity.kernel.clone()),
        }
    }
}

impl Group {
    /// A figure, if any of the disks has it.
    pub fn get(&self, figure: usize) -> Option<&GroupFigure> {
        self.figures.iter().find(|one| one.figure == figure)
    }
}

/// All groups, in the order of their names.
pub(super) fn groups(disks: &[Disk]) -> Vec<Group> {
    let mut members: BTreeMap<(By, String), Vec<&Disk>> = BTreeMap::new();
    for disk in disks {
        for by in By::ALL {
            if let Some(name) = by.of(&disk.identity) {
                members.entry((by, name)).or_default().push(disk);
            }
        }
    }
    let groups = members.into_iter().map(|((by, name), disks)| {
        let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for measured in disks.iter().flat_map(|disk| &disk.figures) {
            let of_figure = values.entry(measured.figure).or_default();
            of_figure.push(measured.estimate.median);
        }
        let figures = values.into_iter().filter_map(|(figure, values)| {
            Some(GroupFigure {
                figure,
                disks: values.len(),
                estimate: robust::estimate(&values)?,
            })
        });
        Group {
            by,
            name,
            disks: disks.len(),
            figures: figures.collect(),
        }
    });
    groups.collect()
}
