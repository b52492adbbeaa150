//! What experiments are asked for on a command line; the program adds what to print and write.
//!
//! The arguments of an experiment stand in its folder. Here is what they share: where to measure, and how values are
//! read. All of it needs the feature `command-line`.

mod site;
mod sites;

use std::path::PathBuf;

use landfall_os::humanize::parse_size;

use crate::{Error, Experiment, SiteSpec};

pub use site::SiteArguments;
pub use sites::SitesArguments;

/// The arguments of one experiment.
pub trait ExperimentArguments: clap::Args {
    /// What they ask for; the error says what makes no sense.
    fn request(self) -> Result<Request, Error>;
}

/// What is asked for: an experiment, and where.
pub struct Request {
    /// The directory, or the one whose disk holds what is made.
    pub dir: PathBuf,
    /// Whether that directory or a filesystem that is made in it is measured.
    pub site: SiteSpec,
    /// The plan.
    pub plan: Box<dyn Experiment>,
}

/// A time, in seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("a time is from 0.001 to 86400 seconds".into()),
    }
}

/// Bytes of a state.
pub fn state_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size if (4096..=1 << 44).contains(&size) => Ok(size),
        _ => Err("a state has from 4K to 16384G".into()),
    }
}

/// A help text that says of each name what it means, one a line.
pub(crate) fn names(heading: &str, named: impl IntoIterator<Item = (String, String)>) -> String {
    let lines = named
        .into_iter()
        .map(|(name, meaning)| format!("\n- {name}: {meaning}"));
    format!("{heading}{}", lines.collect::<String>())
}

/// A setting and its value.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a setting is written KEY=VALUE".into()),
    }
}

/// The arguments in a line, as a command of its own reads them.
#[cfg(test)]
pub(crate) fn parsed<A: ExperimentArguments>(line: &str) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("experiment").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(line.split_whitespace())?)
}
