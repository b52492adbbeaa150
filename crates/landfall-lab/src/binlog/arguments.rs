//! Experiment `binlog` on the command line.

use std::path::Path;

use clap::{Args, ValueHint};

use super::{Plan, Selection};
use crate::arguments::{ExperimentArguments, Request, SitesArguments, seconds, setting};
use crate::config_file::{ConfigFile, NamedConfig};
use crate::rules::{self, System};
use crate::{Error, SiteSpec};

/// What experiment `binlog` is asked for.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    sites: SitesArguments,

    #[command(flatten)]
    options: Options,
}

impl ExperimentArguments for Arguments {
    fn request(self) -> Result<Request, Error> {
        let plan = self.options.plan(self.sites.specs()?)?;
        Ok(Request {
            // It makes its sites itself, in the directory.
            site: SiteSpec::Directory,
            dir: self.sites.dir,
            plan: Box::new(plan),
        })
    }
}

#[derive(Args)]
#[command(next_help_heading = "What to measure")]
struct Options {
    /// Measure every value of innodb_flush_log_at_trx_commit and more sites.
    #[arg(long)]
    full: bool,

    /// Databases: mariadb, postgres, redis, etcd, sqlite.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    database: Vec<String>,

    /// Try this setting of the one database that is named, against what is durable without it; may be given
    /// more than once, and all are tried together.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,

    /// Try the settings of this configuration, as landfall advise --write makes it, together; of those that
    /// landfall advise knows and every version has. Whose it is is told by its name, or before it: postgres=FILE.
    #[arg(long, value_name = "[NAME=]FILE", value_hint = ValueHint::FilePath)]
    config: Option<NamedConfig>,

    /// Clients that ask at the same time [default: 1, 2, 16; of PostgreSQL and etcd 1, 16, of Redis 1, 50].
    #[arg(long, visible_alias = "threads", value_delimiter = ',', value_name = "N,…", value_parser = clap::value_parser!(u32).range(1..=64))]
    clients: Vec<u32>,

    /// Rows of the table.
    #[arg(long, value_name = "N", default_value_t = Plan::ROWS, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    rows: u64,

    /// Rounds: how often each configuration is measured.
    #[arg(long, value_name = "N", default_value_t = Plan::ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Seconds that a trial is measured for, after a warm-up.
    #[arg(long, value_name = "S", default_value_t = Plan::SECONDS, value_parser = seconds)]
    seconds: f64,
}

impl Options {
    /// The plan that these arguments ask for, on these sites if there are any.
    fn plan(&self, sites: Vec<SiteSpec>) -> Result<Plan, Error> {
        let mut databases = self.database.clone();
        let mut tried = self.settings.clone();
        if let Some(file) = &self.config {
            // MariaDB's, if it may be: MySQL is not run.
            let system = file.systems[0];
            if system == System::Mysql {
                let path = file.path.display();
                let text = format!(
                    "{path} is MySQL's, which is not run here; mariadb={path} tries its settings in MariaDB"
                );
                return Err(Error::Usage(text));
            }
            let known = configured(system, &file.path)?;
            let is_set = |key: &str| self.settings.iter().any(|(set, _)| set == key);
            tried.extend(known.into_iter().filter(|(key, _)| !is_set(key)));
            if databases.is_empty() {
                databases.push(system.key().to_owned());
            }
        }
        let selection = Selection {
            sites,
            databases,
            clients: self.clients.clone(),
            tried,
        };
        Ok(Plan {
            rows: self.rows,
            rounds: self.rounds,
            seconds: self.seconds,
            ..Plan::chosen(selection, self.full)?
        })
    }
}

/// The settings in a configuration that there are rules about, but for those that only some versions have; where there
/// is none there is nothing to try.
fn configured(system: System, path: &Path) -> Result<Vec<(String, String)>, Error> {
    let configuration = ConfigFile::read(system, path)?;
    let names = rules::names(system);
    let known: Vec<(String, String)> = names
        .into_iter()
        .filter_map(|name| {
            // What this server may not know is no setting of it.
            let set = configuration.get(name).filter(|set| !set.is_loose)?;
            Some((name.to_owned(), set.value.clone()))
        })
        .collect();
    if !known.is_empty() {
        Ok(known)
    } else {
        Err(Error::Usage(format!(
            "{} sets nothing that landfall advise knows",
            path.display()
        )))
    }
}
