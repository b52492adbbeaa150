//! `landfall lab --list`: a plan with its expected time and bytes, without touching the disk.

use std::fmt::Write as _;

use landfall_lab::{Plan, configuration, stream, sync};
use landfall_os::humanize::{bytes_text, duration_text};

/// Durable writes per second that are reckoned with.
const NOMINAL_RATE: f64 = 5_000.0;
/// Bytes per second that a large state becomes durable at, for the same purpose.
const NOMINAL_BYTES: f64 = 500e6;

/// The strategies of each experiment, and what they take.
pub fn list(plans: &[Plan]) -> String {
    let mut text = String::new();
    for (index, plan) in plans.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match plan {
            Plan::Sync(plan) => of_sync(&mut text, plan),
            Plan::Stream(plan) => of_stream(&mut text, plan),
            Plan::Binlog(plan) => of_configurations(&mut text, &plan.configurations()),
            Plan::Torn(plan) => of_configurations(&mut text, &plan.configurations()),
            Plan::Amplify(plan) => of_configurations(&mut text, &plan.configurations()),
        }
    }
    text
}

fn of_sync(text: &mut String, plan: &sync::Plan) {
    for strategy in &plan.strategies {
        let operations = plan.operations_of(strategy, NOMINAL_RATE);
        let _ = writeln!(text, "{:<48} {operations:>8} operations", strategy.key());
    }
    for excluded in &plan.excluded {
        left_out(text, &excluded.strategy.key(), &excluded.reason);
    }
    let (seconds, bytes) = plan.expected(NOMINAL_RATE);
    let _ = writeln!(
        text,
        "\n{} strategies in {} rounds: about {} and {} written, at {NOMINAL_RATE} durable writes a second.",
        plan.strategies.len(),
        plan.rounds,
        duration_text(seconds),
        bytes_text(bytes),
    );
}

fn of_stream(text: &mut String, plan: &stream::Plan) {
    let sizes = plan.sizes_within(u64::MAX, NOMINAL_BYTES);
    let (strategies, excluded) = plan.strategies(&sizes);
    for strategy in &strategies {
        let _ = writeln!(
            text,
            "{:<48} {:>8}",
            strategy.key(),
            bytes_text(strategy.size)
        );
    }
    for excluded in &excluded {
        left_out(text, &excluded.strategy.key(), &excluded.reason);
    }
    let bytes = plan.written_bytes(&sizes);
    let mut seconds = bytes as f64 / NOMINAL_BYTES;
    let mut total = bytes;
    if let Some(saving) = &plan.saving {
        let _ = writeln!(
            text,
            "{:<48} {:>8} in records of {}, {} updates a second",
            "dump against log",
            bytes_text(saving.state_bytes),
            bytes_text(saving.record_bytes),
            saving.updates_per_second
        );
        total = total.saturating_add(saving.written_bytes());
        seconds += saving.expected().as_secs_f64() + saving.written_bytes() as f64 / NOMINAL_BYTES;
    }
    let strategies = match strategies.len() {
        0 => String::new(),
        count => format!("{count} strategies in "),
    };
    let _ = writeln!(
        text,
        "\n{strategies}{} rounds: about {} and {} written, at {} MB durable a second; sizes for which there is no room are left out.",
        plan.rounds,
        duration_text(seconds),
        bytes_text(total),
        NOMINAL_BYTES / 1e6,
    );
}

/// The configurations of an experiment on databases: those that differ in their clients only in one line.
fn of_configurations(text: &mut String, plan: &configuration::Plan) {
    let configurations = &plan.configurations;
    let same = |a: &configuration::Configuration, b: &configuration::Configuration| {
        (&a.site, &a.name) == (&b.site, &b.name)
    };
    for group in configurations.chunk_by(same) {
        let Some(first) = group.first() else {
            continue;
        };
        let clients: Vec<String> = group.iter().map(|one| one.clients.to_string()).collect();
        let key = format!("{}/{}", first.site.key(), first.name);
        let _ = writeln!(text, "{key:<70} {:>8} clients", clients.join(", "));
    }
    let _ = writeln!(
        text,
        "\n{} configurations on {} sites in {} rounds: about {}; {} must be free, and about {} are written.",
        configurations.len(),
        plan.sites().len(),
        plan.rounds,
        duration_text(plan.expected().as_secs_f64()),
        bytes_text(plan.required_bytes()),
        bytes_text(plan.written_bytes()),
    );
}

fn left_out(text: &mut String, key: &str, reason: &str) {
    let _ = writeln!(text, "{key:<48} left out: {reason}");
}
