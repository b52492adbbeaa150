//! Configurations of experiments on databases.

use landfall_lab::configuration::{ConfigurationResult, Measurements, Summary};
use landfall_lab::numbers::{interval, short, thousands, two, writes};
use landfall_lab::{bytes_text, duration_text};

use super::layout::{at_least, or_nothing, plain_table, with_notes, wrapped};

/// A row for each configuration; those of one name stand below it. `request` is what a request is here.
pub(super) fn configurations(rows: &[&ConfigurationResult], request: &str) -> String {
    let per_second = format!("{request}\nper s");
    let mut table = plain_table();
    let header = vec![
        "",
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
    let mut named = "";
    for one in rows {
        let clients = clients(one.clients);
        if let Some(reason) = &one.unsupported {
            let trials = one.trials.len();
            let but = match trials {
                0 => String::new(),
                some => format!(" (after {some} rounds)"),
            };
            notes.push(format!("{}, {clients}: {reason}{but}", settings(&one.name)));
        }
        let Some(summary) = &one.summary else {
            continue;
        };
        if named != one.name {
            named = &one.name;
            table.add_row(vec![settings(named)]);
        }
        table.add_row(row(format!("  {clients}"), summary));
    }
    notes.dedup();
    at_least(&mut table, 0, 14);
    with_notes(table, columns, notes)
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
        or_nothing(device.as_ref().map(writes)),
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
