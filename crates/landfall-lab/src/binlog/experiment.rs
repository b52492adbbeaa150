//! The run, and what is done where no filesystem can be made.

use std::time::Duration;

use super::{BinlogResults, Plan, claims};
use crate::{Error, Experiment, Found, Notice, Progress, Site, Stop, Weight, configuration};

impl Experiment for Plan {
    fn name(&self) -> &'static str {
        "binlog"
    }

    fn trials(&self) -> usize {
        self.configurations().trials()
    }

    fn expected(&self) -> Duration {
        self.configurations().expected()
    }

    fn required_bytes(&self) -> u64 {
        self.configurations().required_bytes()
    }

    fn listing(&self) -> String {
        self.configurations().listing()
    }

    fn run(
        &self,
        site: &Site,
        stop: &Stop,
        progress: &mut dyn Progress,
    ) -> Result<(Found, Vec<Notice>), Error> {
        let mut measure = |plan: &Plan| {
            configuration::run(site, &plan.configurations(), "binlog", stop, progress)
        };
        let (measurements, notices) = match measure(self) {
            Err(Error::Refused(reason)) if !self.sites_are_chosen() => {
                let (measurements, mut notices) = measure(&self.in_directory())?;
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
            plan: self.kind,
            rows: self.rows,
            claims: claims::judge(&measurements),
            measurements,
        };
        Ok((results.into(), notices))
    }
}
