//! What the terminal and the report say of the results in the same words.

use landfall_os::{Allocation, DirtyLimits, StreamCall, StreamMethod};

use super::{Ceiling, Data, StreamResults, Wall};
use crate::numbers::{Print, interval, short, thousands, two};
use crate::stats::{Estimate, FEWEST_ROUNDS};
use landfall_os::humanize::bytes_text;
use landfall_results::{Axes, Metric, Series};

const MIB: f64 = 1048576.0;
/// Tries in memory that differ by more than this factor did not all find memory ready.
const SLOW_MEMORY: f64 = 2.0;

/// Where the hand-over of a method collapses, and how far that is from the kernel's limit.
pub fn wall(wall: &Wall, limits: Option<&DirtyLimits>) -> String {
    let mut text = format!(
        "The wall of {} ({}) is between {} and {}: hand-over falls from {} MB/s to {}.",
        wall.method,
        wall.allocation,
        bytes_text(wall.size_before),
        bytes_text(wall.size_after),
        with_interval(&wall.before_mb_per_s),
        with_interval(&wall.after_mb_per_s),
    );
    if let Some(at) = &wall.at_mib {
        text.push_str(&format!(
            " Of the larger one the pace breaks after {}.",
            bytes_text((at.median.max(0.0) * MIB) as u64)
        ));
    }
    text.push_str(&match (wall.share_of_limit, limits) {
        (Some(share), Some(limits)) => format!(
            " When it had been handed over, dirty data stood at {} times the {} at which the kernel begins to slow writers down: {}.",
            two(share),
            bytes_text(limits.throttle_bytes),
            if wall.is_at_limit(limits) { "that limit makes the wall" } else { "something else makes the wall" }
        ),
        _ => " The kernel does not tell at how much dirty data it slows writers down."
            .to_owned(),
    });
    text
}

/// The same in one sentence.
pub fn wall_in_short(wall: &Wall, limits: Option<&DirtyLimits>) -> String {
    let who = match limits {
        Some(limits) if wall.is_at_limit(limits) => "the kernel slows writes",
        _ => "writes slow",
    };
    format!(
        "Above {} unsynced, {who} from {} to {} MB/s.",
        bytes_text(wall.size_before),
        thousands(wall.before_mb_per_s.median),
        thousands(wall.after_mb_per_s.median),
    )
}

/// The walls of all methods; or that there is none, where several sizes were measured.
pub fn walls(stream: &StreamResults) -> Vec<String> {
    if !stream.walls.is_empty() {
        let limits = stream.dirty_limits.as_ref();
        return stream
            .walls
            .iter()
            .map(|found| wall(found, limits))
            .collect();
    }
    let sizes = || {
        let measured = stream.series.iter().filter(|one| one.is_measured());
        measured.filter_map(|one| one.axes.size)
    };
    let (Some(least), Some(most)) = (sizes().min(), sizes().max()) else {
        return Vec::new();
    };
    if least == most {
        return Vec::new();
    }
    if (stream.rounds as usize) < FEWEST_ROUNDS {
        return vec![format!(
            "Whether there is a wall cannot be told from fewer than {FEWEST_ROUNDS} rounds."
        )];
    }
    let limit = match &stream.dirty_limits {
        Some(limits) => format!(
            "; the kernel slows writers down from {} of dirty data on",
            bytes_text(limits.throttle_bytes)
        ),
        None => String::new(),
    };
    vec![format!(
        "No wall was found: between {} and {} no hand-over is shown to collapse{limit}.",
        bytes_text(least),
        bytes_text(most)
    )]
}

/// What must be known of the bytes; nothing where nothing can make less of them.
pub fn data(data: Data) -> Option<&'static str> {
    match data {
        Data::Incompressible => None,
        Data::Zeros => {
            Some("The state is all zeros, which a filesystem or a device may leave out.")
        }
    }
}

/// What the measuring loop reaches without a disk, in the chunks that most strategies use; nothing
/// where that was not measured. What a hand-over to the disk exceeded is no ceiling, and is not named.
pub fn ceilings(stream: &StreamResults) -> Option<String> {
    let ceilings: Vec<&Ceiling> = stream
        .ceilings
        .iter()
        .filter(|ceiling| !is_exceeded(ceiling, &stream.series))
        .collect();
    let uses = |chunk: u64| ceilings.iter().filter(|other| other.chunk == chunk).count();
    let usual = ceilings.iter().map(|c| c.chunk).max_by_key(|c| uses(*c))?;
    let reached: Vec<String> = ceilings
        .iter()
        .filter(|ceiling| ceiling.chunk == usual)
        .map(|ceiling| {
            let rate = thousands(ceiling.mb_per_s);
            // Said where it matters: memory that is slow to be had.
            let slowest = if ceiling.slowest_mb_per_s * SLOW_MEMORY < ceiling.mb_per_s {
                format!(" ({} at the slowest)", thousands(ceiling.slowest_mb_per_s))
            } else {
                String::new()
            };
            match ceiling.method {
                None => format!("{rate} MB/s for making the bytes alone"),
                Some(method) => format!("{rate} with {method}{slowest}"),
            }
        })
        .collect();
    Some(format!(
        "What the measuring loop reaches without a disk, into files in main memory, in chunks of {}: {}.",
        bytes_text(usual),
        reached.join(", ")
    ))
}

/// Seconds, or milliseconds where those are few.
pub fn seconds_text(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 0.9995 => format!("{} s", short(seconds)),
        seconds if seconds >= 0.00995 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{} ms", two(seconds * 1e3)),
    }
}

/// The same with its interval, if chance was seen to move it: `65 (61–72) ms`.
pub fn seconds_with_interval(seconds: &Estimate) -> String {
    let text = seconds_text(seconds.median);
    if seconds.low >= seconds.high {
        return text;
    }
    let print: Print = match seconds.median {
        median if median >= 0.9995 => short,
        median if median >= 0.00995 => |seconds| format!("{:.0}", seconds * 1e3),
        _ => |seconds| two(seconds * 1e3),
    };
    let (median, unit) = text.split_at(text.find(' ').unwrap_or(text.len()));
    format!("{median} ({}){unit}", interval(seconds, print))
}

/// How a state is saved, in words: `write(2) into a new file`.
pub fn way(axes: &Axes) -> String {
    let method = axes.stream_method.map_or_else(String::new, method_words);
    let allocation = match axes.allocation {
        Some(Allocation::Append) => "into a new file",
        Some(Allocation::Overwrite) => "over an old file",
        Some(Allocation::ZeroFilled) => "over zeros just written",
        Some(Allocation::ZeroFilledSettled) => "over synced zeros",
        Some(Allocation::Unwritten) => "into fallocated space",
        Some(Allocation::Sparse) => "into a sparse file",
        Some(Allocation::WriteZeroes) => "over zeros made by fallocate",
        Some(Allocation::Recycled) => "over a recycled file",
        Some(Allocation::Step { mib }) => return format!("{method}, preallocated by {mib} MiB"),
        None => return method,
    };
    format!("{method} {allocation}")
}

fn method_words(method: StreamMethod) -> String {
    let call = match method.call {
        StreamCall::Write => "write(2)",
        StreamCall::Paced => "paced write(2)",
        StreamCall::Mmap => "mmap",
        StreamCall::MmapPopulate => "populated mmap",
        StreamCall::IoUring => "io_uring",
    };
    if method.direct {
        format!("O_DIRECT {call}")
    } else {
        call.to_owned()
    }
}

/// Whether something was handed over faster than without a disk: memory was slower to be had when the ceiling was
/// measured.
fn is_exceeded(ceiling: &Ceiling, series: &[Series]) -> bool {
    let is_below = |one: &&Series| {
        one.axes.chunk == Some(ceiling.chunk)
            && ceiling
                .method
                .is_none_or(|method| one.axes.stream_method == Some(method))
    };
    let mut rates = series
        .iter()
        .filter(is_below)
        .filter_map(|one| one.median(Metric::HandOverMbPerS));
    rates.any(|rate| rate > ceiling.mb_per_s)
}

fn with_interval(estimate: &Estimate) -> String {
    let median = thousands(estimate.median);
    if estimate.low < estimate.high {
        format!("{median} ({})", interval(estimate, thousands))
    } else {
        median
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::fixtures::stream_results;

    #[test]
    fn times_read_well() {
        let texts = [12.345, 1.0, 0.12345, 0.001234].map(seconds_text);
        assert_eq!(texts, ["12.3 s", "1.00 s", "123 ms", "1.23 ms"]);
        let estimate = |median: f64, low, high| Estimate { median, low, high };
        let spread = estimate(0.0651, 0.0614, 0.072);
        assert_eq!(seconds_with_interval(&spread), "65 (61–72) ms");
        assert_eq!(
            seconds_with_interval(&estimate(1.5, 0.98, 2.0)),
            "1.50 (0.98–2.00) s"
        );
        assert_eq!(seconds_with_interval(&estimate(1.5, 1.5, 1.5)), "1.50 s");
    }

    #[test]
    fn a_wall_is_held_against_the_kernels_limit() {
        let mut stream = stream_results();
        let text = walls(&stream).join(" ");
        assert!(text.starts_with(
            "The wall of write (append) is between 512 MiB and 1.0 GiB: hand-over falls from 1,300 (1,170–1,430) MB/s"
        ));
        assert!(text.contains("breaks after 610 MiB."));
        assert!(text.contains("at 1.02 times the 600 MiB"));
        assert!(text.ends_with("that limit makes the wall."));
        // All of a state that is smaller than the limit may be dirty: the limit has no part in that.
        let limit = stream.walls[0].size_after * 3 / 2;
        let larger = stream.dirty_limits.map(|limits| DirtyLimits {
            throttle_bytes: limit,
            ..limits
        });
        stream.walls[0].share_of_limit = Some(2.0 / 3.0);
        let text = wall(&stream.walls[0], larger.as_ref());
        assert!(text.ends_with("something else makes the wall."), "{text}");
        stream.walls[0].share_of_limit = Some(0.2);
        assert!(walls(&stream)[0].ends_with("something else makes the wall."));
        stream.dirty_limits = None;
        assert!(walls(&stream)[0].contains("The kernel does not tell"));
        stream.walls.clear();
        assert!(walls(&stream)[0].contains("between 128 MiB and 1.0 GiB no hand-over"));
        stream.rounds = 4;
        assert!(walls(&stream)[0].contains("fewer than 5 rounds"));
        stream.series.truncate(1);
        assert!(walls(&stream).is_empty());
    }

    #[test]
    fn ceilings_are_named_after_what_reaches_them() {
        let mut stream = stream_results();
        let text = ceilings(&stream).unwrap();
        assert!(text.contains("in chunks of 1 MiB"));
        assert!(text.ends_with("20,000 MB/s for making the bytes alone, 4,000 with write."));
        stream.ceilings[1].slowest_mb_per_s = 400.0;
        let text = ceilings(&stream).unwrap();
        assert!(
            text.ends_with("4,000 with write (400 at the slowest)."),
            "{text}"
        );
        // What the disk exceeded bounds nothing.
        stream.ceilings[1].mb_per_s = 10.0;
        let text = ceilings(&stream).unwrap();
        assert!(
            text.ends_with("20,000 MB/s for making the bytes alone."),
            "{text}"
        );
        stream.ceilings.clear();
        assert_eq!(ceilings(&stream), None);
    }
}
