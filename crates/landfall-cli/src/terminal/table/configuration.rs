//! Configurations of experiments on databases.

use landfall_lab::configuration::DeviceCost;
use landfall_lab::configuration::{ConfigurationResult, Measurements, Summary};
use landfall_lab::numbers::{interval, short, thousands, two};
use landfall_os::humanize::{bytes_text, duration_text};

use super::layout::{at_least, or_nothing, plain_table, with_notes, wrapped};

/// Columns that a name gets, if it needs them.
const LONGEST_NAME: usize = 30;

/// A row for each configuration; those of one name stand below it. `request` is what a request is here.
pub(super) fn configurations(rows: &[&ConfigurationResult], request: &str) -> String {
    let per_second = format!("{request}\nper s");
    let varied = varied(rows);
    let named = |one: &ConfigurationResult| {
        let settings = settings(&one.name);
        let value = settings.strip_prefix(&format!("{varied}="));
        value.unwrap_or(settings).to_owned()
    };
    let mut table = plain_table();
    let header = vec![
        varied,
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
    let mut widest = varied.chars().count();
    let mut last = String::new();
    for one in rows {
        let clients = clients(one.clients);
        if let Some(reason) = &one.unsupported {
            let trials = one.trials.len();
            let but = match trials {
                0 => String::new(),
                some => format!(" (after {some} rounds)"),
            };
            notes.push(format!("{}, {clients}: {reason}{but}", named(one)));
        }
        let Some(summary) = &one.summary else {
            continue;
        };
        let name = named(one);
        widest = widest.max(name.chars().count());
        if last != name {
            table.add_row(vec![&name]);
            last = name;
        }
        table.add_row(row(format!("  {clients}"), summary));
    }
    notes.dedup();
    // Names are not broken, unless they are so long that figures would be.
    at_least(&mut table, 0, widest.clamp(14, LONGEST_NAME) as u16 + 1);
    with_notes(table, columns, notes)
}

/// The setting that all names begin with, if there is one.
fn varied<'a>(rows: &[&'a ConfigurationResult]) -> &'a str {
    let first = |one: &&'a ConfigurationResult| Some(settings(&one.name).split_once('=')?.0);
    let all: Option<Vec<&str>> = rows.iter().map(first).collect();
    match all.as_deref() {
        Some([one, rest @ ..]) if rest.iter().all(|other| other == one) => one,
        _ => "",
    }
}

/// A name without that of its database, which the title has.
fn settings(name: &str) -> &str {
    name.split_once(' ').map_or(name, |(_, settings)| settings)
}

/// A number of clients in words.
pub(super) fn clients(clients: u32) -> String {
    match clients {
        1 => "1 client".to_owned(),
        some => format!("{some} clients"),
    }
}

fn row(label: String, summary: &Summary) -> Vec<String> {
    let device = summary.device;
    vec![
        label,
        thousands(summary.requests_per_second.median),
        interval(&summary.requests_per_second, thousands),
        short(summary.p50_us.median),
        short(summary.p99_us.median),
        short(summary.server_cpu_us.median),
        or_nothing(device.as_ref().map(DeviceCost::writes_text)),
        or_nothing(device.map(|device| short(device.kib))),
        or_nothing(device.map(|device| two(device.flushes))),
    ]
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
    let trials = || all.configurations.iter().flat_map(|one| &one.trials);
    let starts = trials().filter(|trial| trial.preparation.bytes > 0).count();
    let seconds: f64 = trials().map(|trial| trial.preparation.seconds).sum();
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
