//! Results as tables of at most 100 columns.

mod advice;
mod amplify;
mod binlog;
mod claims;
mod comparison;
mod configuration;
mod inspection;
mod layout;
mod notices;
mod proof;
mod saving;
mod stream;
mod subjects;
mod sync;
mod timeline;
mod torn;

use std::fmt::Write as _;

use landfall_lab::facts::place;
use landfall_lab::{Results, Weight};
use landfall_os::humanize::duration_text;

pub use advice::advice;
pub use comparison::comparison;
pub use inspection::inspection;
use layout::wrapped;
use notices::{notices_lines, notices_table};
pub use subjects::{settings, subjects};

use super::style::{STRONG, styled};

/// Everything that a run found.
pub fn results(results: &Results) -> String {
    let mut text = header(results);
    // What makes every figure worthless is said before the first one, and again below.
    for notice in results
        .notices
        .iter()
        .filter(|notice| notice.weight == Weight::Danger)
    {
        let _ = writeln!(
            text,
            "{}",
            notices_lines(std::slice::from_ref(notice)).trim_end()
        );
    }
    if let Some(sync) = results.sync() {
        text.push_str(&sync::tables(results, sync));
    }
    if let Some(stream) = results.stream() {
        text.push_str(&stream::tables(stream));
    }
    for binlog in results.binlog() {
        text.push_str(&binlog::tables(binlog));
    }
    for torn in results.torn() {
        text.push_str(&torn::tables(torn));
    }
    for amplify in results.amplify() {
        text.push_str(&amplify::tables(amplify));
    }
    text.push_str(&proof::proofs(&results.proofs().collect::<Vec<_>>()));
    if results.claims().next().is_some() {
        let _ = write!(
            text,
            "\n{}\n{}",
            styled(STRONG, "Published claims, here and today"),
            claims::claims(results.claims())
        );
    }
    text.push_str(&notices_table(&results.notices));
    text
}

fn header(results: &Results) -> String {
    if results.has_only_proofs() {
        return proof::header(results);
    }
    let place = place(&results.filesystem);
    let site = match results.site.text() {
        Some(made) => format!("{made}, made in {}", results.directory),
        None => results.directory.clone(),
    };
    let mut text = format!("{site}: {place}, Linux {}", results.host.kernel);
    let rounds = |rounds: u32| match rounds {
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    let experiments = results.experiments.iter();
    let done: Vec<(&str, String)> = experiments
        .filter_map(|one| Some((one.name(), rounds(one.rounds()?))))
        .collect();
    let done = match done.as_slice() {
        [] => None,
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => {
            Some(first.clone())
        }
        several => {
            let each = several
                .iter()
                .map(|(name, rounds)| format!("{rounds} of {name}"));
            Some(each.collect::<Vec<_>>().join(" and "))
        }
    };
    if let Some(done) = done {
        let _ = write!(text, "; {done} in {}", duration_text(results.seconds));
    }
    wrapped(0, &text)
}
