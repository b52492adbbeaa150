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
    /// Of a directory, everything counts that earlier runs found of it and that lies in the report's
    /// directory. If its durable writes were not measured yet, they are, by the standard plan; and proven,
    /// where root allows.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub path: Vec<PathBuf>,

    /// Only on these: mariadb, mysql, myrocks, postgres, sqlite, rocksdb, redis, etcd, kafka, landfall, mount.
    #[arg(long = "for", value_delimiter = ',', value_name = "NAME,…")]
    pub systems: Vec<System>,

    /// Say what this disk can carry of a workload, how long flash lasts, and what to change, as in
    /// commits=5000,size=1K,clients=16,per-day=100G.
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<Target>,

    /// The drive whose wear is reckoned, by numbers: over-provisioning=28%,size=480GB,tbw=2PB; see
    /// docs/explanation/wear-model.md.
    #[arg(long, value_name = "DRIVE", requires = "workload")]
    pub drive: Option<Drive>,

    /// Read a configuration, and say what it risks and what it leaves unused; may be given more than once.
    /// Whose it is is told by its name, by what it says, or before it: postgres=FILE. An option file that may be
    /// MariaDB's or MySQL's is checked as both.
    #[arg(long, value_name = "[NAME=]CONFIG", value_hint = ValueHint::FilePath)]
    pub check: Vec<NamedConfig>,

    /// Write the advice as a part of a configuration, with the evidence as comments: mariadb.cnf,
    /// postgresql.conf, redis.conf; may be given more than once. Whose it is is told by its name, or before it:
    /// postgres=FILE.
    #[arg(long, value_name = "[NAME=]FILE", value_parser = config_of_one, value_hint = ValueHint::FilePath)]
    pub write: Vec<(System, PathBuf)>,

    /// Print every command that gets what is missing, and not only the first of each.
    #[arg(long)]
    pub missing: bool,

    /// Write the advice as JSON to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Directory for the report (index.html) and the results documents, also those of earlier runs
    /// [default: landfall-report; of documents that are named no report is written unless it is].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub report: Option<PathBuf>,
}
