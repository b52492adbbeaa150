//! Every workload there is.

use super::{Reads, Workload, linkbench, oltp, puts};
use crate::SettingError;
use crate::registry::Registry;
use crate::setting::Description;

static WORKLOADS: Registry<dyn Workload, Reads> = Registry {
    noun: "workload",
    kinds: &[
        &puts::KIND,
        &oltp::UPDATE_INDEX,
        &oltp::UPDATE_NON_INDEX,
        &oltp::INSERT,
        &oltp::READ_WRITE,
        &oltp::WRITE_ONLY,
        &linkbench::KIND,
    ],
    is_partial: false,
};

/// Every workload with its settings.
pub fn list() -> impl Iterator<Item = &'static Description> {
    WORKLOADS.descriptions()
}

/// The workload of that name with these settings; those that are not named have their defaults.
pub fn named(name: &str, settings: &[(String, String)]) -> Result<Box<dyn Workload>, SettingError> {
    WORKLOADS.named(name, settings)
}

/// Which kinds of requests of the workload of that name only read; `None`: there is no such workload.
pub fn reads(name: &str) -> Option<&'static [&'static str]> {
    let mut kinds = WORKLOADS.kinds.iter();
    let kind = kinds.find(|kind| kind.description.name == name)?;
    Some(kind.listed.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_made_with_its_defaults() {
        for description in list() {
            let workload = named(description.name, &[]).unwrap();
            assert!(workload.name().starts_with(description.name));
            assert!(!workload.requests().is_empty());
            let mut reads = reads(description.name).unwrap().iter();
            assert!(reads.all(|kind| workload.requests().contains(kind)));
        }
    }

    #[test]
    fn every_setting_is_read() {
        assert!(WORKLOADS.unread_settings("").is_empty());
    }
}
