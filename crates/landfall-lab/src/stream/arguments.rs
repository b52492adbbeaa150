//! Experiment `stream` on the command line.

use clap::{Args, ValueEnum};
use landfall_os::humanize::parse_size;
use landfall_os::{Allocation, StreamMethod};

use super::{Data, Plan, Selection};
use crate::Error;
use crate::arguments::{ExperimentArguments, Request, SiteArguments, names, state_size};

/// What experiment `stream` is asked for.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    site: SiteArguments,

    #[command(flatten)]
    options: Options,
}

impl ExperimentArguments for Arguments {
    fn request(self) -> Result<Request, Error> {
        Ok(Request {
            site: self.site.spec()?,
            dir: self.site.dir,
            plan: Box::new(self.options.plan()),
        })
    }
}

#[derive(Args)]
#[command(next_help_heading = "What to measure")]
struct Options {
    /// How the state is handed over: write, paced, mmap, mmap-populate, io_uring, direct+write,
    /// direct+io_uring.
    #[arg(long, long_help = methods(), value_delimiter = ',', value_name = "NAME,…")]
    method: Vec<StreamMethod>,

    /// Bytes of the state [default: 128M, 256M, 512M, 1G, 2G, 4G, as far as there is room].
    #[arg(long, value_delimiter = ',', value_name = "SIZE,…", value_parser = state_size)]
    size: Vec<u64>,

    /// How the file comes by its space: append (an empty file), sparse (ftruncate), unwritten (fallocate), zero-filled,
    /// zero-filled-settled, overwrite (an existing file), write-zeroes.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    allocation: Vec<Allocation>,

    /// Bytes handed over by one call [default: 1M].
    #[arg(long, value_delimiter = ',', value_name = "SIZE,…", value_parser = chunk_size)]
    chunk: Vec<u64>,

    /// What the bytes are.
    #[arg(long, value_name = "WHAT", default_value = "incompressible")]
    data: DataArgument,

    /// Rounds: how often everything is measured.
    #[arg(long, value_name = "N", default_value_t = Plan::ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum DataArgument {
    /// Pseudo-random.
    Incompressible,
    /// Zeros, which a filesystem or a device may leave out.
    Zeros,
}

impl Options {
    /// The plan that these arguments ask for.
    fn plan(&self) -> Plan {
        let plan = Plan::chosen(Selection {
            allocations: self.allocation.clone(),
            methods: self.method.clone(),
            sizes: self.size.clone(),
            chunks: self.chunk.clone(),
        });
        Plan {
            data: match self.data {
                DataArgument::Incompressible => Data::Incompressible,
                DataArgument::Zeros => Data::Zeros,
            },
            rounds: self.rounds,
            ..plan
        }
    }
}

fn methods() -> String {
    let all = StreamMethod::all().into_iter();
    let named = all.map(|method| (method.to_string(), method.meaning()));
    names("How the state is handed over:", named)
}

fn chunk_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size if (512..=64 << 20).contains(&size) => Ok(size),
        _ => Err("a chunk has from 512 bytes to 64 MiB".into()),
    }
}
