//! The axes of experiment `binlog` on the command line.

use clap::Args;
use landfall_lab::SiteSpec;
use landfall_lab::binlog::{Plan, Selection};

use super::seconds;
use crate::exit::Failure;

#[derive(Args)]
#[command(next_help_heading = "What to measure")]
pub struct BinlogPlan {
    /// Measure every value of innodb_flush_log_at_trx_commit and more sites.
    #[arg(long)]
    full: bool,

    /// Databases: mariadb, postgres, redis.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    database: Vec<String>,

    /// Clients that ask at the same time [default: 1, 2, 16; of PostgreSQL 1, 16, of Redis 1, 50].
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

impl BinlogPlan {
    /// The plan that these arguments ask for, on these sites if there are any.
    pub fn plan(&self, sites: Vec<SiteSpec>) -> Result<Plan, Failure> {
        let selection = Selection {
            sites,
            databases: self.database.clone(),
            clients: self.clients.clone(),
        };
        Ok(Plan {
            rows: self.rows,
            rounds: self.rounds,
            seconds: self.seconds,
            ..Plan::chosen(selection, self.full)?
        })
    }
}
