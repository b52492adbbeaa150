//! What `landfall advise` is asked on the command line.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use landfall_lab::advice::Target;
use landfall_lab::config_file::NamedConfig;
use landfall_lab::rules::System;
use landfall_recorder::wear::Drive;

use super::config_of_one;

const EXIT_CODES: &str = "\
Exit codes: 0 advised, 1 failed, 2 wrong command line, 3 a configuration of --check risks acknowledged data, \
4 no advice: what is written here is not durable, or nothing could be measured, 5 measured, but too noisy to \
conclude, 130 stopped by Ctrl-C.";

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct Advise {
    /// Directory to advise on [default: the current one], or results documents of one machine to advise by.
    ///
    /// For a directory, the documents count that earlier runs left in the report's directory. If none measured its
    /// durable writes, this runs the standard plan first, as root with a proof of each strategy.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: Vec<PathBuf>,

    #[arg(long = "for", value_delimiter = ',', value_name = "NAME,…", help = systems())]
    pub systems: Vec<System>,

    /// Say whether this disk carries a workload, what limits it, how long flash lasts, and nothing else, as in
    /// commits=5000,size=1K,clients=16,per-day=100G.
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<Target>,

    /// The drive whose wear is reckoned, by numbers: over-provisioning=28%,size=480GB,tbw=2PB; see
    /// docs/reference/drives.md.
    #[arg(long, value_name = "DRIVE", requires = "workload")]
    pub drive: Option<Drive>,

    /// Print what a configuration risks, a line for each setting, and nothing else; may be given more than once.
    ///
    /// The server is told by the file's name or contents, or named before it: postgres=FILE. An option file that fits
    /// both MariaDB and MySQL is checked for the one that --for names, else for what is installed, else for both. Nothing is
    /// measured for it.
    #[arg(long, value_name = "[NAME=]CONFIG", value_hint = ValueHint::FilePath, conflicts_with = "list")]
    pub check: Vec<NamedConfig>,

    /// Write the advice as a configuration file to be included, with the evidence as comments; may be given more than
    /// once. The server is told by the file's name (mariadb.cnf, postgresql.conf), or named before it: postgres=FILE.
    #[arg(long, value_name = "[NAME=]FILE", value_parser = config_of_one, value_hint = ValueHint::FilePath)]
    pub write: Vec<(System, PathBuf)>,

    /// Print every command that measures or proves what is missing, not only a few.
    #[arg(long)]
    pub missing: bool,

    /// Print all tables instead of the one screen: every value of every setting with its evidence.
    #[arg(long)]
    pub tables: bool,

    /// Print what would be measured and proven first, with its expected time, and run nothing.
    #[arg(long, conflicts_with_all = ["systems", "workload", "write", "missing", "tables", "witness", "json"])]
    pub list: bool,

    /// What a witness found of this disk: a document of 'landfall witness check --json'. If it lost acknowledged writes in a
    /// power cut, no setting is advised.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub witness: Option<PathBuf>,

    /// Write the advice as JSON to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Directory for the report (index.html) and the results documents, also those of earlier runs
    /// [default: landfall-report; of documents that are named no report is written unless it is].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub report: Option<PathBuf>,
}

fn systems() -> String {
    let names = System::ALL.map(System::key).join(", ");
    format!("Only on these, installed or not: {names}")
}
