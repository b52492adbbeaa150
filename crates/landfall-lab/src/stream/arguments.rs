//! Experiment `stream` on the command line.

use clap::{Args, ValueEnum};
use landfall_os::humanize::parse_size;
use landfall_os::{Allocation, StreamMethod};

use super::{Data, Plan, Selection, saving};
use crate::Error;
use crate::arguments::{ExperimentArguments, Request, SiteArguments, seconds};

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
            plan: Box::new(self.options.plan()?),
        })
    }
}

#[derive(Args)]
#[command(next_help_heading = "What to measure")]
struct Options {
    /// Measure only one of the two parts [default: both].
    #[arg(long, value_name = "PART")]
    part: Option<Part>,

    /// How the state is handed over: write, paced, mmap, mmap-populate, io_uring, direct+write,
    /// direct+io_uring.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    method: Vec<StreamMethod>,

    /// Bytes of the state [default: 128M, 256M, 512M, 1G, 2G, 4G, as far as there is room].
    #[arg(long, value_delimiter = ',', value_name = "SIZE,…", value_parser = state_size)]
    size: Vec<u64>,

    /// Allocations: append (an empty file), sparse (ftruncate), unwritten (fallocate), zero-filled,
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

    /// Dump against log: bytes of the state [default: 512M, as far as there is room].
    #[arg(long, value_name = "SIZE", value_parser = state_size)]
    state: Option<u64>,

    /// Dump against log: bytes of a record [default: 256].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    record: Option<u64>,

    /// Dump against log: updates that come in per second [default: 1000].
    #[arg(long, value_name = "N", value_parser = updates)]
    updates: Option<f64>,

    /// Dump against log: seconds for which each policy logs [default: 3].
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// States handed over and synced, by size, method, allocation and chunk.
    Sizes,
    /// Dumping a state against logging its changes.
    Saving,
}

#[derive(Clone, Copy, ValueEnum)]
enum DataArgument {
    /// Pseudo-random.
    Incompressible,
    /// Zeros, which a filesystem or a device may leave out.
    Zeros,
}

impl Options {
    /// An option that says something about the part that is not measured, if there is one.
    fn idle_option(&self) -> Option<&'static str> {
        let of_sizes = [
            (!self.method.is_empty(), "--method"),
            (!self.size.is_empty(), "--size"),
            (!self.allocation.is_empty(), "--allocation"),
            (!self.chunk.is_empty(), "--chunk"),
            (matches!(self.data, DataArgument::Zeros), "--data"),
        ];
        let of_saving = [
            (self.state.is_some(), "--state"),
            (self.record.is_some(), "--record"),
            (self.updates.is_some(), "--updates"),
            (self.seconds.is_some(), "--seconds"),
        ];
        let idle: &[(bool, &'static str)] = match self.part {
            None => &[],
            Some(Part::Sizes) => &of_saving,
            Some(Part::Saving) => &of_sizes,
        };
        idle.iter().find(|(given, _)| *given).map(|(_, name)| *name)
    }

    /// The plan that these arguments ask for.
    fn plan(&self) -> Result<Plan, Error> {
        if let (Some(option), Some(part)) = (self.idle_option(), self.part) {
            let part = match part {
                Part::Sizes => "sizes",
                Part::Saving => "saving",
            };
            let text = format!("{option} means nothing with --part {part}; leave out one of them");
            return Err(Error::Usage(text));
        }
        let plan = Plan::chosen(Selection {
            allocations: self.allocation.clone(),
            methods: self.method.clone(),
            sizes: self.size.clone(),
            chunks: self.chunk.clone(),
        });
        let usual = saving::Plan::standard();
        let saving = saving::Plan {
            state_bytes: self.state.unwrap_or(usual.state_bytes),
            state_is_chosen: self.state.is_some(),
            record_bytes: self.record.unwrap_or(usual.record_bytes),
            updates_per_second: self.updates.unwrap_or(usual.updates_per_second),
            log_seconds: self.seconds.unwrap_or(usual.log_seconds),
            rounds: self.rounds,
        };
        let plan = Plan {
            sweep: self.part != Some(Part::Saving),
            data: match self.data {
                DataArgument::Incompressible => Data::Incompressible,
                DataArgument::Zeros => Data::Zeros,
            },
            rounds: self.rounds,
            saving: (self.part != Some(Part::Sizes)).then_some(saving),
            ..plan
        };
        if let Some(saving) = &plan.saving {
            saving.check()?;
        }
        Ok(plan)
    }
}

fn state_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size if (4096..=1 << 44).contains(&size) => Ok(size),
        _ => Err("a state has from 4K to 16384G".into()),
    }
}

fn chunk_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size if (512..=64 << 20).contains(&size) => Ok(size),
        _ => Err("a chunk has from 512 bytes to 64 MiB".into()),
    }
}

fn updates(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(updates) if (0.1..=1e7).contains(&updates) => Ok(updates),
        _ => Err("updates come in from 0.1 to 10000000 times a second".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    fn plan(line: &str) -> Result<Plan, Error> {
        parsed::<Arguments>(line).unwrap().options.plan()
    }

    #[test]
    fn a_state_that_is_named_is_chosen() {
        let plan = plan("--size 8M --method write --state 2M --updates 50 /tmp").unwrap();
        assert_eq!(plan.sizes(), [8 << 20]);
        let saving = plan.saving.unwrap();
        assert_eq!(
            (saving.state_bytes, saving.updates_per_second),
            (2 << 20, 50.0)
        );
        assert!(saving.state_is_chosen);
    }

    #[test]
    fn a_part_can_be_left_out_and_its_options_with_it() {
        let parts = |line: &str| plan(line).map(|plan| (plan.sweep, plan.saving.is_some()));
        assert_eq!(parts("/tmp").unwrap(), (true, true));
        assert_eq!(parts("--part sizes /tmp").unwrap(), (true, false));
        assert_eq!(parts("--part saving /tmp").unwrap(), (false, true));
        let refused = parts("--part saving --method write /tmp")
            .unwrap_err()
            .to_string();
        assert!(refused.contains("--method"), "{refused}");
    }
}
