//! `landfall compare`: two results documents side by side.

use std::path::Path;

use landfall_lab::Results;
use landfall_lab::compare::compare;

use crate::args::Compare;
use crate::commands::print_bytes;
use crate::exit::{Code, Failure};
use crate::terminal::table;

pub fn run(arguments: &Compare) -> Result<Code, Failure> {
    let a = read(&arguments.a)?;
    let b = read(&arguments.b)?;
    let comparison = compare(&a, &b).map_err(|reason| {
        let (a, b) = (arguments.a.display(), arguments.b.display());
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
