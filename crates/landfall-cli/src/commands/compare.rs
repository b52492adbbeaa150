//! `landfall compare`: two results documents side by side.
//!
//! Which two may be left to the report's history: both, the last measurement and the same one before it; or the second.

use std::path::Path;

use landfall_lab::Results;
use landfall_lab::compare::compare;

use crate::args::Compare;
use crate::commands::history::{Kept, last_two, newest_like};
use crate::commands::print_bytes;
use crate::exit::{Code, Failure};
use crate::terminal::{remark, table};

pub fn run(arguments: &Compare) -> Result<Code, Failure> {
    let named = |path: &Path| -> Result<Kept, Failure> {
        let results = read(path)?;
        let path = path.to_owned();
        Ok(Kept { path, results })
    };
    let (a, b) = match (&arguments.a, &arguments.b) {
        (Some(a), Some(b)) => (named(a)?, named(b)?),
        (Some(a), None) => {
            let a = named(a)?;
            let b = newest_like(&arguments.report, &a.path, &a.results)?;
            (a, b)
        }
        (None, _) => last_two(&arguments.report)?,
    };
    if arguments.b.is_none() {
        remark(&format!(
            "A is {}, B is {}",
            a.path.display(),
            b.path.display()
        ));
    }
    let comparison = compare(&a.results, &b.results).map_err(|reason| {
        let (a, b) = (a.path.display(), b.path.display());
        Failure::new(
            Code::Usage,
            format!("{a} and {b} cannot be compared: {reason}"),
        )
    })?;
    let text = if arguments.json {
        serde_json::to_string_pretty(&comparison)
            .map(|text| text + "\n")
            .map_err(|error| Failure::new(Code::Failed, format!("cannot make JSON: {error}")))?
    } else {
        table::text(&table::comparison(&comparison))
    };
    print_bytes(text.as_bytes())
}

/// The results document in a file.
pub fn read(path: &Path) -> Result<Results, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(
            Code::Usage,
            format!("cannot read {}: {error}", path.display()),
        )
    })?;
    Results::from_json(&text)
        .map_err(|error| Failure::new(Code::Usage, format!("{} {error}", path.display())))
}
