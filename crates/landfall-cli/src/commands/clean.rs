//! `landfall clean`: removes what killed runs left.

use landfall_lab::clean::clean;

use crate::args::Clean;
use crate::commands::print_bytes;
use crate::exit::{Code, Failure};

pub fn run(arguments: Clean) -> Result<Code, Failure> {
    let mut directories = arguments.dir;
    if directories.is_empty() {
        directories = vec![".".into(), std::env::temp_dir()];
    }
    let cleaned = clean(&directories, arguments.dry_run)?;
    let did = if arguments.dry_run {
        "would remove"
    } else {
        "removed"
    };
    let mut text = String::new();
    for what in &cleaned.removed {
        text += &format!("{did} {what}\n");
    }
    if cleaned.removed.is_empty() && cleaned.left.is_empty() {
        text += "nothing was left\n";
    }
    print_bytes(text.as_bytes())?;
    match cleaned.left.as_slice() {
        [] => Ok(Code::Measured),
        left => Err(Failure::new(Code::Failed, left.join("; "))),
    }
}
