//! Every workload there is, by name.

use super::{Workload, linkbench, oltp, puts};
use crate::SettingError;
use crate::setting::{Chosen, Description};

/// How a workload comes about.
pub(super) struct Kind {
    pub description: Description,
    pub make: fn(&Chosen) -> Result<Box<dyn Workload>, SettingError>,
}

static KINDS: &[&Kind] = &[
    &puts::KIND,
    &oltp::UPDATE_INDEX,
    &oltp::UPDATE_NON_INDEX,
    &oltp::INSERT,
    &oltp::READ_WRITE,
    &oltp::WRITE_ONLY,
    &linkbench::KIND,
];

/// Every workload with its settings.
pub fn list() -> impl Iterator<Item = &'static Description> {
    KINDS.iter().map(|kind| &kind.description)
}

/// The workload of that name with these settings; those that are not named have their defaults.
pub fn named(name: &str, settings: &[(String, String)]) -> Result<Box<dyn Workload>, SettingError> {
    let Some(kind) = KINDS.iter().find(|kind| kind.description.name == name) else {
        let names: Vec<&str> = list().map(|known| known.name).collect();
        return Err(SettingError(format!(
            "no workload is called '{name}'; there are: {}",
            names.join(", ")
        )));
    };
    (kind.make)(&Chosen::new(&kind.description, settings)?)
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
        }
    }

    #[test]
    fn every_setting_is_read() {
        for description in list() {
            for setting in description.settings {
                let set = [(setting.name.to_owned(), "\u{1}'".to_owned())];
                let error = named(description.name, &set).err().map(|e| e.to_string());
                let expected = format!("{} {}=", description.name, setting.name);
                assert!(
                    error.is_some_and(|error| error.starts_with(&expected)),
                    "{expected}"
                );
            }
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = named("work", &[]).err().unwrap().to_string();
        assert!(error.starts_with("no workload is called 'work'; there are: "));
    }
}
