//! Loads rows of 116 bytes in batches, in the order of their keys and in another, and makes them durable at the end.

use clap::Args;

use super::MEMORY;
use crate::Fallible;
use crate::contest::{Common, count, load, timed};
use crate::place;
use crate::rows::{Keys, Rows};

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Rows to load
    #[arg(long, default_value_t = 5_000_000, value_parser = count::<u64>)]
    rows: u64,
    /// Rows of a commit
    #[arg(long, default_value_t = 100, value_parser = count::<usize>)]
    batch: usize,
}

pub fn run(options: &Options) -> Fallible<()> {
    options.common.compare("load", MEMORY, &|turn| {
        for (name, keys) in [("sorted", Keys::Sorted), ("random", Keys::Random)] {
            let rows = Rows::new(keys, 108);
            turn.directory = turn.parent().join(name);
            let engine = turn.open()?;
            let writes = (0..options.rows).map(|row| rows.write(row, 0));
            let loaded = timed(|| load(&*engine, writes, options.batch))?;
            turn.tell_rate(&format!("{name} load"), options.rows, loaded);
            let settled = timed(|| engine.settle())?;
            turn.tell(
                &format!("{name} load, settling"),
                "s",
                settled.as_secs_f64(),
            );
            drop(engine);
            let data = (options.rows * rows.bytes()) as f64;
            let space = place::size(&turn.directory)? as f64;
            turn.tell(&format!("{name} load, file size / data"), "×", space / data);
        }
        Ok(())
    })
}
