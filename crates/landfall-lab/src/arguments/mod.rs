//! What experiments are asked for on a command line; the program adds what to print and write.
//!
//! The arguments of an experiment stand in its folder. Here is what they share: where to measure, and how values are
//! read. All of it needs the feature `command-line`.

mod site;
mod sites;

use std::path::PathBuf;

use crate::config_file;
use crate::rules::System;
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

/// A setting and its value.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a setting is written KEY=VALUE".into()),
    }
}

/// What can be advised on.
pub fn system(text: &str) -> Result<System, String> {
    let known = System::ALL.into_iter().find(|system| system.key() == text);
    known.ok_or_else(|| {
        let names = System::ALL.map(System::key).join(", ");
        format!("there is no advice on '{text}'; there is on: {names}")
    })
}

/// A configuration file that was named, and whose it may be: at least one system's.
#[derive(Clone, Debug)]
pub struct NamedConfig {
    /// The systems, the likeliest first.
    pub systems: Vec<System>,
    /// The file.
    pub path: PathBuf,
}

/// A configuration file, by its name or with its system before it: `postgres=FILE`.
pub fn config(text: &str) -> Result<NamedConfig, String> {
    if let Some((name, path)) = text.split_once('=')
        && let Ok(system) = system(name)
    {
        return Ok(NamedConfig {
            systems: vec![system],
            path: path.into(),
        });
    }
    let path = PathBuf::from(text);
    let systems = config_file::systems_of(&path);
    if !systems.is_empty() {
        Ok(NamedConfig { systems, path })
    } else {
        Err(format!(
            "whose configuration it is cannot be told by its name; write mariadb={text}, say"
        ))
    }
}

/// The arguments in a line, as a command of its own reads them.
#[cfg(test)]
pub(crate) fn parsed<A: ExperimentArguments>(line: &str) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("experiment").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(line.split_whitespace())?)
}
