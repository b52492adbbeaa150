//! Every workload there is, by name.

use super::Workload;
use crate::Error;
use crate::setting::{Chosen, Description};

/// How a workload comes about.
pub(super) struct Kind {
    pub description: Description,
    pub make: fn(&Chosen) -> Result<Box<dyn Workload>, Error>,
}

static KINDS: [&Kind; 0] = [];

/// Every workload with its settings.
pub fn list() -> impl Iterator<Item = &'static Description> {
    KINDS.iter().map(|kind| &kind.description)
}

/// The workload of that name with these settings; those that are not named have their defaults.
pub fn named(name: &str, settings: &[(String, String)]) -> Result<Box<dyn Workload>, Error> {
    let Some(kind) = KINDS.iter().find(|kind| kind.description.name == name) else {
        let names: Vec<&str> = list().map(|known| known.name).collect();
        return Err(Error::Usage(format!(
            "no workload is called '{name}'; there are: {}",
            names.join(", ")
        )));
    };
    (kind.make)(&Chosen::new(&kind.description, settings)?)
}
