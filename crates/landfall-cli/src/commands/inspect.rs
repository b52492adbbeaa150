//! `landfall inspect`: what a directory stands on.

use landfall_lab::canonical_directory;
use landfall_lab::facts::{facts, notices};
use landfall_os::{Filesystem, Host};
use landfall_results::witness::Witnessed;

use crate::args::Inspect;
use crate::commands::print_bytes;
use crate::commands::witness::evidence;
use crate::exit::{Code, Failure};
use crate::terminal::table;

pub fn run(arguments: &Inspect) -> Result<Code, Failure> {
    let directory = canonical_directory(&arguments.dir)?;
    let filesystem = Filesystem::of(&directory).map_err(|error| {
        let text = format!(
            "cannot find out what {} stands on: {error}",
            directory.display()
        );
        Failure::new(Code::Failed, text)
    })?;
    let facts = facts(&Host::this(), &filesystem);
    let mut notices = notices(&filesystem);
    notices.push(match &arguments.witness {
        Some(document) => evidence(document, &directory)?.notice(),
        None => Witnessed::absent(),
    });
    let text = if arguments.json {
        let document = serde_json::json!({
            "directory": directory,
            "facts": facts,
            "notices": notices,
        });
        format!("{document:#}\n")
    } else {
        table::inspection(&directory.display().to_string(), &facts, &notices)
    };
    print_bytes(text.as_bytes())
}
