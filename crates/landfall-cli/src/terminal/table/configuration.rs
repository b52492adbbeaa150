//! Configurations of experiments on databases.

use landfall_lab::configuration::Measurements;
use landfall_lab::numbers::{NOTHING, interval, thousands};
use landfall_os::humanize::{bytes_text, duration_text};
use landfall_results::{Metric, Series};

use super::layout::{at_least, or_nothing, plain_table, with_notes, wrapped};

/// Columns that a name gets, if it needs them.
const LONGEST_NAME: usize = 30;

/// A row for each configuration; those of one name stand below it. `request` is what a request is here.
pub(super) fn configurations(rows: &[&Series], request: &str) -> String {
    let per_second = format!("{request}\nper s");
    let varied = varied(rows);
    let named = |one: &Series| one.axes.varied_text(varied);
    let mut table = plain_table();
    let header = vec![
        varied.unwrap_or_default(),
        &per_second,
        "95%\ninterval",
        "p50\nµs",
        "p99\nµs",
        "CPU\nµs",
        "\nwrites",
        "\nKiB",
        "\nflushes",
    ];
    let columns = header.len();
    table.set_header(header);
    let mut notes = Vec::new();
    let mut widest = varied.map_or(0, |varied| varied.chars().count());
    let mut last = String::new();
    for one in rows {
        let clients = clients(one.axes.clients.unwrap_or(1));
        if let Some(reason) = &one.unsupported {
            let trials = one.trials.len();
            let but = match trials {
                0 => String::new(),
                some => format!(" (after {some} rounds)"),
            };
            notes.push(format!("{}, {clients}: {reason}{but}", named(one)));
        }
        if !one.is_measured() {
            continue;
        }
        let name = named(one);
        widest = widest.max(name.chars().count());
        if last != name {
            table.add_row(vec![&name]);
            last = name;
        }
        table.add_row(row(format!("  {clients}"), one));
    }
    notes.dedup();
    // Names are not broken, unless they are so long that figures would be.
    at_least(&mut table, 0, widest.clamp(14, LONGEST_NAME) as u16 + 1);
    with_notes(table, columns, notes)
}

/// The setting that all of them vary first, if there is one.
fn varied<'a>(rows: &[&'a Series]) -> Option<&'a str> {
    let mut first = rows.iter().map(|one| one.axes.varied.first());
    let (key, _) = first.next()??;
    let is_same = |other: Option<&(String, String)>| other.is_some_and(|(other, _)| other == key);
    first.all(is_same).then_some(key.as_str())
}

/// A number of clients in words.
pub(super) fn clients(clients: u32) -> String {
    match clients {
        1 => "1 client".to_owned(),
        some => format!("{some} clients"),
    }
}

fn row(label: String, one: &Series) -> Vec<String> {
    let rate = one.estimate(Metric::RequestsPerSecond);
    vec![
        label,
        one.text(Metric::RequestsPerSecond),
        or_nothing(rate.map(|rate| interval(&rate, thousands))),
        one.text(Metric::P50Us),
        one.text(Metric::P99Us),
        one.text(Metric::ServerCpuUs),
        one.writes_text(),
        one.text(Metric::Kib),
        one.text(Metric::Flushes),
    ]
}

/// Two figures side by side.
pub(super) fn from_to(one: String, other: String) -> String {
    if one == NOTHING && other == NOTHING {
        one
    } else {
        format!("{one}→{other}")
    }
}

/// What preparations cost, since no figure of a trial holds it.
pub(super) fn preparation(all: &Measurements) -> String {
    let mut costs = Vec::new();
    let made = all.sites.iter().filter(|site| site.preparation.bytes > 0);
    let (sites, bytes, seconds) = made.fold((0, 0, 0.0), |(sites, bytes, seconds), site| {
        let made = site.preparation;
        (sites + 1, bytes + made.bytes, seconds + made.seconds)
    });
    if sites > 0 {
        costs.push(format!(
            "{sites} images of {} in {seconds:.0} s",
            bytes_text(bytes)
        ));
    }
    for load in &all.loads {
        costs.push(format!(
            "{} {} loaded with {} in {}",
            load.database,
            load.version
                .as_deref()
                .unwrap_or("of a version it does not tell"),
            bytes_text(load.bytes),
            duration_text(load.seconds)
        ));
    }
    let of = |metric| all.series.iter().flat_map(move |one| one.values(metric));
    let copies = of(Metric::PreparationBytes).filter(|bytes| *bytes > 0.0);
    let starts = copies.count();
    let seconds: f64 = of(Metric::PreparationSeconds).sum();
    if starts > 0 {
        costs.push(format!(
            "{starts} starts of a copy, with warm-ups, in {}",
            duration_text(seconds)
        ));
    }
    if costs.is_empty() {
        return String::new();
    }
    let text = format!(
        "Preparation, in none of these figures: {}.",
        costs.join("; ")
    );
    format!("\n{}", wrapped(1, &text))
}
