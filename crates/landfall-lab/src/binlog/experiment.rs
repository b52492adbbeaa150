//! The run, and what is done where no filesystem can be made.

use super::{BinlogResults, Plan, claims};
use crate::{Error, Notice, Progress, Site, Stop, Weight, configuration};

/// Runs `plan` in the directory of `site`; returns what was found and what must be known about it.
pub fn run(
    site: &Site,
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<(BinlogResults, Vec<Notice>), Error> {
    let mut measure =
        |plan: &Plan| configuration::run(site, &plan.configurations(), "binlog", stop, progress);
    let (measurements, notices) = match measure(plan) {
        Err(Error::Refused(reason)) if !plan.sites_are_chosen() => {
            let (measurements, mut notices) = measure(&plan.in_directory())?;
            notices.push(Notice::new(
                "directory-only",
                Weight::Warning,
                format!("Only the directory was measured, because no filesystem could be made ({reason}): with root, and room for its images, this experiment compares ext2, ext3, ext4, xfs, btrfs and main memory."),
            ));
            (measurements, notices)
        }
        measured => measured?,
    };
    let results = BinlogResults {
        plan: plan.kind,
        rows: plan.rows,
        claims: claims::judge(&measurements),
        measurements,
    };
    Ok((results, notices))
}
