//! What the terminal and the report say of the results in the same words.

use landfall_results::{Metric, Series};

use super::{BinlogResults, Section, Sides, Tried, sections, tried};
use crate::configuration::certain_ratio;
use crate::numbers::two;
use crate::stats::Estimate;

/// Flushes per transaction that differ by less are called equal.
const SAME_FLUSHES: f64 = 0.15;

/// What the experiment found, in a few sentences.
pub fn sentences(results: &BinlogResults) -> Vec<String> {
    let sections: Vec<Section<'_>> = sections(results)
        .into_iter()
        .filter(|section| section.flush_log == 1)
        .collect();
    let one = sections.iter().find(|section| section.clients == 1);
    let mut sentences = Vec::new();
    sentences.extend(one.and_then(left));
    sentences.extend(second_client(&sections));
    // Counts are the same in each round: few are enough.
    sentences.extend(one.and_then(flushes));
    sentences.extend(grouped(&sections));
    sentences.extend(no_barrier(&sections));
    sentences.extend(tried(results).iter().filter_map(said_of));
    sentences
}

/// What settings that were tried do.
fn said_of(tried: &Tried<'_>) -> Option<String> {
    let ratio = tried.ratio?;
    let axes = &tried.with.axes;
    let (clients, verb) = match axes.clients? {
        1 => ("one client".to_owned(), "reaches"),
        some => (format!("{some} clients"), "reach"),
    };
    let what = match () {
        () if certain_ratio(tried.with, tried.without).is_none() => "on too few rounds to tell",
        () if ratio.low > 1.0 => "faster",
        () if ratio.high < 1.0 => "slower",
        () => "no difference shown",
    };
    Some(format!(
        "With {}, {clients} on {} {verb} {} times the rate without (95% interval {} to {}): {what}.",
        tried.settings,
        axes.site.as_deref()?,
        two(ratio.median),
        two(ratio.low),
        two(ratio.high)
    ))
}

/// Rows that were measured on filesystems that flush; without barriers there is nothing to pay for.
fn honest<'s, 'a>(section: &'s Section<'a>) -> impl Iterator<Item = &'s Sides<'a>> {
    let rows = section.rows.iter();
    rows.filter(|row| row.has_barrier && row.left.is_some())
}

/// How much of its rate one client keeps.
fn left(section: &Section<'_>) -> Option<String> {
    let mut rows: Vec<(&str, Estimate)> = honest(section)
        .filter_map(|row| Some((row.label.as_str(), certain_ratio(row.with, row.without)?)))
        .collect();
    rows.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let (least, most) = (rows.first()?, rows.last()?);
    let percent = |share: Estimate| {
        let [median, low, high] = [share.median, share.low, share.high].map(|one| one * 100.0);
        format!("{median:.0}% (95% interval {low:.0} to {high:.0})")
    };
    Some(match rows.len() {
        1 => format!(
            "Syncing the binary log with each transaction leaves one client {} of its rate on {}.",
            percent(least.1),
            least.0
        ),
        _ => format!(
            "Syncing the binary log with each transaction leaves one client {} of its rate on {}, and {} on {}.",
            percent(least.1),
            least.0,
            percent(most.1),
            most.0
        ),
    })
}

fn flushes_of(one: &Series) -> Option<f64> {
    one.median(Metric::Flushes)
}

/// What it costs in flushes, by filesystem.
fn flushes(section: &Section<'_>) -> Option<String> {
    let mut groups: Vec<(f64, f64, Vec<&str>)> = Vec::new();
    for row in honest(section) {
        let (Some(without), Some(with)) = (flushes_of(row.without), flushes_of(row.with)) else {
            continue;
        };
        let same = |group: &&mut (f64, f64, Vec<&str>)| {
            (group.0 - without).abs() < SAME_FLUSHES && (group.1 - with).abs() < SAME_FLUSHES
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.2.push(&row.label),
            None => groups.push((without, with, vec![&row.label])),
        }
    }
    let parts: Vec<String> = groups
        .iter()
        .map(|(without, with, labels)| {
            format!(
                "from {} to {} on {}",
                two(*without),
                two(*with),
                labels.join(", ")
            )
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "Per transaction of one client it takes the flushes {}: InnoDB's log was preallocated, and the binary log grows.",
            parts.join("; ")
        )
    })
}

/// Whether a second client makes any of them slower.
fn second_client(sections: &[Section<'_>]) -> Option<String> {
    let at = |clients| sections.iter().find(|section| section.clients == clients);
    let (one, two) = (at(1)?, at(2)?);
    let compared: Vec<(&str, Estimate)> = honest(two)
        .filter_map(|row| {
            let single = one.rows.iter().find(|single| single.label == row.label)?;
            let ratio = certain_ratio(row.with, single.with)?;
            Some((row.label.as_str(), ratio))
        })
        .collect();
    let those = |slower: bool| -> Vec<&str> {
        let fits = |ratio: &Estimate| {
            if slower {
                ratio.high < 1.0
            } else {
                ratio.low > 1.0
            }
        };
        let some = compared.iter().filter(|(_, ratio)| fits(ratio));
        some.map(|(label, _)| *label).collect()
    };
    let (slower, faster) = (those(true), those(false));
    Some(match (slower.as_slice(), faster.as_slice()) {
        _ if compared.is_empty() => return None,
        ([], []) => "Whether a second client makes a filesystem slower, as it did ext3 in 2009, cannot be told here.".to_owned(),
        ([], some) if some.len() == compared.len() => {
            let those = if some.len() < two.rows.len() {
                " that could be compared"
            } else {
                ""
            };
            format!("Two clients are faster than one on every filesystem{those}; in 2009 they were slower on ext3.")
        }
        ([], some) => format!(
            "Two clients are faster than one on {}, and on no filesystem are they shown to be slower, as they were on ext3 in 2009.",
            some.join(", ")
        ),
        (some, _) => format!("Two clients are slower than one on {}.", some.join(", ")),
    })
}

/// What group commit makes of it with the most clients.
fn grouped(sections: &[Section<'_>]) -> Option<String> {
    let most = sections.iter().max_by_key(|section| section.clients)?;
    let one = sections.iter().find(|section| section.clients == 1)?;
    let row = honest(most)
        .find(|row| row.label == "ext4")
        .or(honest(most).next())?;
    let single = one.rows.iter().find(|single| single.label == row.label)?;
    let (all, alone) = (flushes_of(row.with)?, flushes_of(single.with)?);
    (most.clients > 1 && all < alone).then(|| {
        format!(
            "{} clients share their flushes: on {} {} per synced transaction, where one client needs {}.",
            most.clients,
            row.label,
            two(all),
            two(alone)
        )
    })
}

/// What is bought by leaving the flushes out.
fn no_barrier(sections: &[Section<'_>]) -> Option<String> {
    let section = sections.iter().find(|section| section.clients == 1)?;
    let row = section.rows.iter().find(|row| !row.has_barrier)?;
    let flushes = flushes_of(row.with)?;
    Some(format!(
        "{} sends {} flushes per transaction, as was advised for controllers with a battery: on any other disk a power cut then takes what was acknowledged, and the filesystem with it.",
        row.label,
        two(flushes)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binlog::fixtures::{binlog_results, mariadb, of_all};

    #[test]
    fn what_was_found_is_said_in_words() {
        let text = sentences(&binlog_results()).join(" ");
        for words in [
            "leaves one client 38% (95% interval 38 to 38) of its rate on memory:ext3, and 90% (",
            "from 1.00 to 2.00 on ext2; from 1.00 to 3.00 on ext3, ext3,data=writeback",
            "Two clients are slower than one on ext3, ext3,data=writeback, ext3,data=journal, memory:ext3.",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn nothing_is_said_of_what_was_given_up() {
        let mut results = binlog_results();
        let series = results.measurements.series.iter_mut();
        for one in series.filter(|one| one.axes.site.as_deref() == Some("memory:ext3")) {
            one.trials.truncate(1);
            one.unsupported = Some("MariaDB ended".to_owned());
            one.summarize();
        }
        let text = sentences(&results).join(" ");
        for words in [
            "leaves one client 55% (95% interval 55 to 55) of its rate on ext3",
            "Two clients are slower than one on ext3, ext3,data=writeback, ext3,data=journal.",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn without_barriers_nothing_is_safe_and_that_is_said() {
        let mut results = binlog_results();
        results.measurements = of_all(&["loop:ext4,barrier=0"]);
        let text = sentences(&results).join(" ");
        assert!(text.contains("ext4,barrier=0 sends 3.00 flushes"), "{text}");
        assert!(!text.contains("leaves one client"), "{text}");
        results.measurements = of_all(&["dir"]);
        let grouped = mariadb("dir", "1", 16, 9_000.0);
        let zero = mariadb("dir", "0", 16, 9_000.0);
        results.measurements.series.extend([zero, grouped]);
        let text = sentences(&results).join(" ");
        assert!(
            text.contains("Two clients are faster than one on every filesystem;"),
            "{text}"
        );
        let without_barrier = of_all(&["loop:ext4,barrier=0"]);
        results.measurements.sites.extend(without_barrier.sites);
        results.measurements.series.extend(without_barrier.series);
        let text = sentences(&results).join(" ");
        assert!(
            text.contains("on every filesystem that could be compared;"),
            "{text}"
        );
        results.measurements.series.clear();
        assert!(sentences(&results).is_empty());
    }
}
