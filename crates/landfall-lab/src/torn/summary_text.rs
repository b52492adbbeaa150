//! What the terminal and the report say of the results in the same words.

use landfall_results::{Metric, Series};

use super::sections::{conditions, disk_text, disks, sections, stores};
use super::{Pair, Plan, Protection, StoreProtection, TornProof, TornResults, base};
use crate::configuration::certain_ratio;
use crate::numbers::{interval, two};
use crate::stats::Estimate;

/// What the experiment found, in a few sentences.
pub fn sentences(results: &TornResults) -> Vec<String> {
    let mut sentences = Vec::new();
    let pairs = conditions(results);
    sentences.extend(published(results, &pairs));
    sentences.extend(without(&pairs));
    sentences.extend(freedom(results));
    sentences.extend(postgres(results));
    sentences.extend(store(results));
    sentences.extend(safety(&results.proofs));
    sentences
}

fn times(estimate: &Estimate) -> String {
    format!(
        "{} times (95% interval {})",
        two(estimate.median),
        interval(estimate, two)
    )
}

/// Rate of the cure over the usual protection.
fn gain(pair: &Pair<'_>) -> Option<Estimate> {
    certain_ratio(pair.cure, pair.usual)
}

fn published(results: &TornResults, pairs: &[Pair<'_>]) -> Option<String> {
    let gain = gain(pairs.first()?)?;
    let disk = base(results)?;
    let published = if disk == Plan::PUBLISHED {
        "; 1.55 times was published of such a disk"
    } else {
        ""
    };
    Some(format!(
        "On {}, data=journal without the doublewrite buffer reaches {} the rate of ext4 with it{published}.",
        disk_text(disk),
        times(&gain)
    ))
}

/// What ends the gain, what turns it round, and what does not.
fn without(pairs: &[Pair<'_>]) -> Option<String> {
    let (first, others) = pairs.split_first()?;
    gain(first).filter(|gain| gain.low > 1.0)?;
    let those = |fits: fn(&Estimate) -> bool| -> Vec<String> {
        let some = others.iter().filter_map(|pair| Some((pair, gain(pair)?)));
        some.filter(|(_, gain)| fits(gain))
            .map(|(pair, gain)| format!("{} ({})", pair.label, two(gain.median)))
            .collect()
    };
    let slower = those(|gain| gain.high < 1.0);
    let equal = those(|gain| gain.low <= 1.0 && 1.0 <= gain.high);
    let faster = those(|gain| gain.low > 1.0);
    let part = |words: &str, some: Vec<String>| {
        (!some.is_empty()).then(|| format!("{words}: {}", some.join(", ")))
    };
    let parts: Vec<String> = [
        part("it is slower", slower),
        part("no difference is shown", equal),
        part("it is still faster", faster),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("With one condition changed, {}.", parts.join("; ")))
}

fn freedom(results: &TornResults) -> Option<String> {
    let sides = disks(results);
    let parts: Vec<String> = sides
        .iter()
        .filter_map(|sides| {
            let doublewrite = sides.series(Protection::Doublewrite)?;
            let free = certain_ratio(sides.series(Protection::Nobody)?, doublewrite)?;
            Some(format!("{} on {}", times(&free), disk_text(sides.disk)))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "Without any protection ext4 reaches {} the rate that it has with the doublewrite buffer.",
            parts.join(", ")
        )
    })
}

fn postgres(results: &TornResults) -> Option<String> {
    let found = sections(results);
    let kib = |one: &Series| one.median(Metric::Kib);
    let parts: Vec<String> = found
        .iter()
        .filter_map(|section| {
            Some(format!(
                "{} on {}, with {:.1} KiB written per transaction instead of {:.1}",
                times(&certain_ratio(section.off, section.on)?),
                disk_text(section.disk),
                kib(section.off)?,
                kib(section.on)?
            ))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "PostgreSQL with full_page_writes=off, and checkpoints all the time, reaches {}.",
            parts.join("; ")
        )
    })
}

/// What doublewrite costs in an engine in which nothing else differs, and what else protects.
fn store(results: &TornResults) -> Option<String> {
    let on = |sides: &super::Sides<'_, StoreProtection>| {
        let usual = StoreProtection::Doublewrite;
        let doublewrite = sides.series(usual)?;
        let others = StoreProtection::ALL.into_iter();
        let others = others.filter(|protection| *protection != usual);
        let others = others.filter_map(|protection| {
            let over = certain_ratio(sides.series(protection)?, doublewrite)?;
            Some(format!("{} {}", protection.text(), two(over.median)))
        });
        let others: Vec<String> = others.collect();
        let disk = disk_text(sides.disk);
        (!others.is_empty()).then(|| format!("{} on {disk}", others.join(", ")))
    };
    let parts: Vec<String> = stores(results).iter().filter_map(on).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "In Landfall's own store, with nothing else different, the rate over that of doublewrite is: {}.",
            parts.join("; ")
        )
    })
}

/// Which settings survived torn pages.
fn safety(proofs: &[TornProof]) -> Vec<String> {
    let (whole, broken): (Vec<_>, Vec<_>) = proofs
        .iter()
        .filter(|proof| proof.not_proven.is_none())
        .partition(|proof| proof.is_whole());
    let (untried, whole): (Vec<&TornProof>, Vec<_>) = whole
        .into_iter()
        .partition(|proof| proof.is_untried() == Some(true));
    let counted = |proofs: &[&TornProof]| {
        let parts = proofs
            .iter()
            .map(|proof| format!("{} ({})", text(proof), proof.states));
        parts.collect::<Vec<_>>().join("; ")
    };
    let mut sentences = Vec::new();
    let in_states = |count: fn(&TornProof) -> u64| {
        let parts = broken.iter().filter(|proof| count(proof) > 0).map(|proof| {
            let least = proof.least_text();
            format!(
                "{} in {least}{} of {}",
                text(proof),
                count(proof),
                proof.states
            )
        });
        parts.collect::<Vec<_>>().join("; ")
    };
    let damaged = in_states(|proof| proof.damaged);
    if !damaged.is_empty() {
        sentences.push(format!(
            "The database did not recover from every crash state with torn pages: {damaged}."
        ));
    }
    let wrong = in_states(|proof| proof.wrong);
    if !wrong.is_empty() {
        sentences.push(format!(
            "The database recovered wrong, to a part of a transaction or to what was never written: {wrong}."
        ));
    }
    if !whole.is_empty() {
        sentences.push(format!(
            "It recovered from every crash state that was tried with {}.",
            counted(&whole)
        ));
    }
    if !untried.is_empty() {
        sentences.push(format!(
            "No crash state tore a page while it was written over, so that nothing is shown, with {}.",
            counted(&untried)
        ));
    }
    sentences
}

/// A setting in a few words.
pub fn text(proof: &TornProof) -> String {
    let database = match proof.subject.name.as_str() {
        "postgres" => "PostgreSQL",
        "landfall-store" => "Landfall's store",
        _ => "MariaDB",
    };
    format!("{database} with {}", proof.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torn::catalogue::{Condition, name};
    use crate::torn::fixtures::torn_results;

    #[test]
    fn what_was_found_is_said_in_words() {
        let mut results = torn_results();
        let said = sentences(&results).join(" ");
        for words in [
            "reaches 1.55 times (95% interval 1.55–1.55) the rate of ext4 with it; 1.55 times was published",
            "it is slower: this disk (0.90), each commit synced (0.40); no difference is shown: ssd-consumer (1.00)",
            "it is still faster: hdd-15k-bbwc (1.20)",
            "full_page_writes=off, and checkpoints all the time, reaches 1.29 times",
            "the rate over that of doublewrite is: shadow 2.00, image 0.80, nothing 1.50, data=journal 1.55 on hdd-7200,cache=off; shadow",
            "MariaDB with nothing, O_DIRECT in 3 of 200",
            "Landfall's store with protection=none in 2 of 200",
            "It recovered from every crash state that was tried with MariaDB with doublewrite, O_DIRECT (200)",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        results.proofs[0].exercised[0].states = Some(0);
        let said = sentences(&results).join(" ");
        let shown = "so that nothing is shown, with MariaDB with doublewrite, O_DIRECT (200).";
        assert!(said.contains(shown), "{said}");
        results.proofs.clear();
        for one in &mut results.measurements.series {
            one.trials.truncate(4);
        }
        assert!(sentences(&results).is_empty());
    }

    #[test]
    fn nothing_is_said_of_what_was_given_up() {
        let mut results = torn_results();
        let cure = name(Protection::Journal, Condition::Published);
        let series = results.measurements.series.iter_mut();
        for one in series.filter(|one| one.axes.case.as_ref() == Some(&cure)) {
            one.trials.truncate(1);
            one.unsupported = Some("MariaDB ended".to_owned());
            one.summarize();
        }
        let said = sentences(&results).join(" ");
        assert!(!said.contains("reaches 1.55 times"), "{said}");
        assert!(!said.contains("With one condition changed"), "{said}");
        assert!(
            said.contains("PostgreSQL with full_page_writes=off"),
            "{said}"
        );
    }

    #[test]
    fn what_recovered_wrong_is_told_from_what_did_not_recover() {
        let mut results = torn_results();
        results.proofs.truncate(2);
        (results.proofs[1].damaged, results.proofs[1].wrong) = (0, 3);
        let said = safety(&results.proofs).join(" ");
        let wrong = "The database recovered wrong, to a part of a transaction or to what was never written: MariaDB with nothing, O_DIRECT in 3 of 200.";
        assert!(said.contains(wrong), "{said}");
        assert!(!said.contains("did not recover"), "{said}");
        results.proofs[1].damaged = 2;
        let said = safety(&results.proofs).join(" ");
        assert!(said.contains(wrong), "{said}");
        let damaged = "with torn pages: MariaDB with nothing, O_DIRECT in 2 of 200.";
        assert!(said.contains(damaged), "{said}");
        results.proofs[1].is_least = true;
        let said = safety(&results.proofs).join(" ");
        assert!(said.contains("O_DIRECT in at least 2 of 200."), "{said}");
    }
}
