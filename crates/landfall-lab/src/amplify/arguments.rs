//! Experiment `amplify` on the command line.

use clap::{Args, ValueEnum};
use landfall_os::humanize::parse_size;
use landfall_recorder::wear::Drive;

use super::{Part, Plan, Scale, Selection};
use crate::arguments::{ExperimentArguments, Request, SitesArguments, seconds};
use crate::{Error, SiteSpec};

/// What experiment `amplify` is asked for.
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
    /// How large the data is, and how long it is measured: the published sizes take days and terabytes.
    #[arg(long, value_name = "SCALE", default_value = "standard")]
    scale: ScaleArgument,

    /// Parts: pages (InnoDB by page size and compression, MyRocks), landfall (Landfall's own store by page
    /// size and protection), buffer (Landfall's own store by how much of its changes waits on disk), curve (the same
    /// where rows are updated at random, with every other store beside it: draws bytes, flash, reads and space by the
    /// buffer), curve-zipf (that where some rows are updated more often), knobs (settings of InnoDB and PostgreSQL with
    /// data that fits into memory), databases (every other one) [default: pages, landfall, knobs, databases].
    #[arg(long, value_delimiter = ',', value_name = "PART,…")]
    part: Vec<PartArgument>,

    #[arg(long, value_delimiter = ',', value_name = "NAME,…", help = databases())]
    database: Vec<String>,

    /// Only configurations with one of these words in their names, which --list shows.
    #[arg(long, value_delimiter = ',', value_name = "WORD,…")]
    only: Vec<String>,

    /// Ids of nodes [default: those of the scale, 100000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=2_000_000_000))]
    ids: Option<u64>,

    /// Clients that ask at the same time [default: those of the scale, 4].
    #[arg(long, visible_alias = "threads", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    clients: Option<u32>,

    /// Bytes that a database keeps in memory where its data is larger [default: 150 for each id].
    #[arg(long, value_name = "SIZE", value_parser = pool)]
    pool: Option<u64>,

    /// Rounds: how often each configuration is measured.
    #[arg(long, value_name = "N", default_value_t = Plan::ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Seconds that a trial is measured for, once the load is steady [default: those of the scale, 10].
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,

    /// Seconds after which it is measured although the load is not steady [default: those of the scale, 40].
    #[arg(long, value_name = "S", value_parser = seconds)]
    most_seconds: Option<f64>,

    /// The drive whose wear is reckoned, by numbers: over-provisioning=28%,size=480GB,tbw=2PB; see
    /// docs/reference/drives.md.
    #[arg(long, value_name = "DRIVE")]
    drive: Option<Drive>,
}

fn databases() -> String {
    let linked_in: Vec<&str> = landfall_databases::linked_in()
        .map(|database| database.name)
        .collect();
    format!(
        "Databases: mariadb, myrocks, postgres, {} [default: all]",
        linked_in.join(", ")
    )
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum PartArgument {
    /// InnoDB by page size and compression, and MyRocks.
    Pages,
    /// Landfall's own store by page size and protection.
    Landfall,
    /// Landfall's own store by its buffer, from a B-tree to a write-optimised tree. Measured only if named.
    Buffer,
    /// The same where rows are updated at random, beside other stores: draws the curve. Measured only if named.
    Curve,
    /// That where some rows are updated much more often than others. Measured only if named.
    CurveZipf,
    /// Settings, with data that fits into memory.
    Knobs,
    /// Every other database.
    Databases,
}

#[derive(Clone, Copy, ValueEnum)]
enum ScaleArgument {
    /// 100 thousand ids.
    Standard,
    /// 10 million ids, some 7 GB.
    #[value(name = "10M")]
    TenMillion,
    /// 100 million ids, some 66 GB.
    #[value(name = "100M")]
    HundredMillion,
    /// A billion ids, some 670 GB.
    #[value(name = "1B")]
    Billion,
}

impl Options {
    /// The plan that these arguments ask for, on the site if one is named.
    fn plan(&self, sites: Vec<SiteSpec>) -> Result<Plan, Error> {
        let site = match sites.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            _ => {
                let text =
                    "amplify measures on one site: name one with --on, and run it again for others";
                return Err(Error::Usage(text.into()));
            }
        };
        let part = |part: &PartArgument| match part {
            PartArgument::Pages => Part::Pages,
            PartArgument::Landfall => Part::Landfall,
            PartArgument::Buffer => Part::Buffer,
            PartArgument::Curve => Part::Curve,
            PartArgument::CurveZipf => Part::CurveZipf,
            PartArgument::Knobs => Part::Knobs,
            PartArgument::Databases => Part::Databases,
        };
        let plan = Plan::chosen(Selection {
            scale: match self.scale {
                ScaleArgument::Standard => Scale::Standard,
                ScaleArgument::TenMillion => Scale::TenMillion,
                ScaleArgument::HundredMillion => Scale::HundredMillion,
                ScaleArgument::Billion => Scale::Billion,
            },
            site,
            parts: self.part.iter().map(part).collect(),
            databases: self.database.clone(),
            only: self.only.clone(),
            ids: self.ids,
            clients: self.clients,
            pool: self.pool,
            seconds: self.seconds,
            most_seconds: self.most_seconds,
        })?;
        Ok(Plan {
            rounds: self.rounds,
            drive: self.drive.clone().unwrap_or_default(),
            ..plan
        })
    }
}

fn pool(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size if (6 << 20..=1 << 44).contains(&size) => Ok(size),
        _ => Err("a database keeps from 6M to 16384G in memory".into()),
    }
}
