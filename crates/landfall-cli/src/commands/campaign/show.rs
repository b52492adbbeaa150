//! What a campaign came to, on the terminal: the verdicts first, then what is missing, each with the command that mends it.

use std::fmt::Write as _;

use landfall_campaign::{Campaign, Location, Proof};
use landfall_os::humanize::quoted;
use landfall_results::numbers::thousands;
use landfall_results::proof::{Outcome, Shard, summary_text};

/// Shards that are named one by one.
const NAMED: usize = 8;

pub fn text(campaign: &Campaign, location: &Location) -> String {
    let place = quoted(&location.to_string());
    let mut text = format!(
        "Campaign {} ({}): {}.\n",
        campaign.id,
        campaign.name,
        verdict(campaign)
    );
    for proof in &campaign.proofs {
        text.push('\n');
        text.push_str(&proof_text(campaign, proof, &place));
    }
    if !campaign.measured.is_empty() {
        let machines: std::collections::BTreeSet<&str> = campaign
            .measured
            .iter()
            .map(|one| one.machine.as_str())
            .collect();
        let _ = writeln!(
            text,
            "\n  Measured on {}: landfall campaign report {place}",
            counted(machines.len(), "machine", "machines")
        );
    }
    missing(campaign, location, &mut text);
    let _ = writeln!(
        text,
        "\n  Machines were busy with it for {} all together.",
        duration(campaign.machine_seconds)
    );
    text
}

/// In one clause, what it came to.
fn verdict(campaign: &Campaign) -> String {
    let found = campaign.shards as usize - campaign.missing.len();
    let of = match (found, campaign.shards as usize) {
        (1, 1) => "its one shard".to_owned(),
        (found, all) if found == all => format!("all {}", counted(found, "shard", "shards")),
        (found, all) => format!("{found} of {all} shards"),
    };
    if campaign.proofs.is_empty() {
        return format!("measured by {of}");
    }
    match campaign.outcome() {
        Outcome::LostSomething => format!("something was lost, as {of} found"),
        Outcome::LostNothing => format!("nothing was lost, as {of} found"),
        Outcome::NotProven => format!("not proven yet, by {of}"),
    }
}

fn proof_text(campaign: &Campaign, proof: &Proof, place: &str) -> String {
    let mut text = format!("  {}\n", proof.command);
    let Some(results) = &proof.results else {
        text.push_str("    No shard has done its part.\n");
        return text;
    };
    let subject = summary_text::full_subject(results);
    let _ = writeln!(
        text,
        "    {subject} {} on {}.",
        summary_text::full_verdict(results),
        results.filesystem_spec
    );
    if proof.shards < campaign.shards {
        let _ = writeln!(
            text,
            "    That is what {} of {} shards found: the others may find more.",
            proof.shards, campaign.shards
        );
    }
    for sentence in summary_text::violations(results) {
        let _ = writeln!(text, "    {sentence}");
    }
    if let Some(shortest) = &results.shortest {
        if let Some(recording) = proof.recording {
            let _ = writeln!(
                text,
                "    To see it again, fetch the recording:\n      landfall campaign fetch {place} {recording}"
            );
        }
        let _ = writeln!(
            text,
            "    and try its shortest state:\n      {}",
            plain(&shortest.command)
        );
    }
    text
}

fn missing(campaign: &Campaign, location: &Location, text: &mut String) {
    if !campaign.missing.is_empty() {
        let count = counted(campaign.missing.len(), "shard is", "shards are");
        let _ = writeln!(text, "\n  {count} missing:");
        for shard in campaign.missing.iter().take(NAMED) {
            let _ = writeln!(text, "    {}", again(location, *shard));
        }
        rest(campaign.missing.len(), text);
    }
    if !campaign.failed.is_empty() {
        let count = counted(campaign.failed.len(), "task", "tasks");
        let _ = writeln!(text, "\n  {count} could not be done:");
        for failed in campaign.failed.iter().take(NAMED) {
            let _ = writeln!(
                text,
                "    shard {} on {}: {}: {}\n      {}",
                failed.shard,
                plain(&failed.machine),
                failed.command,
                plain(&failed.why),
                again(location, failed.shard)
            );
        }
        rest(campaign.failed.len(), text);
    }
    if !campaign.unreadable.is_empty() {
        let _ = writeln!(text, "\n  Not read among the shards' documents:");
        for one in campaign.unreadable.iter().take(NAMED) {
            let _ = writeln!(text, "    {}", plain(one));
        }
        rest(campaign.unreadable.len(), text);
    }
    if !campaign.disagreeing.is_empty() {
        let shards: Vec<String> = campaign.disagreeing.iter().map(Shard::to_string).collect();
        let _ = writeln!(
            text,
            "\n  Run more than once, not with the same verdict, so that which lost most counts: shard {}.",
            shards.join(", ")
        );
    }
}

fn rest(count: usize, text: &mut String) {
    if count > NAMED {
        let _ = writeln!(
            text,
            "    and {} more; --json names them all",
            count - NAMED
        );
    }
}

/// A text that came from elsewhere, with nothing in it that moves a terminal's cursor.
pub fn plain(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.collect()
}

/// The command that runs a shard again.
pub fn again(location: &Location, shard: Shard) -> String {
    let place = quoted(&location.to_string());
    format!("landfall campaign run {place} --shard {shard}")
}

fn counted(count: usize, one: &str, many: &str) -> String {
    let word = if count == 1 { one } else { many };
    format!("{} {word}", thousands(count as f64))
}

fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}
