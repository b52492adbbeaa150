//! What a campaign came to, on the terminal: the verdicts first, then what is missing, each with the command that mends it.

use std::collections::BTreeSet;
use std::path::Path;

use landfall_campaign::{Campaign, Location, OddLoss, Plan, Proof, Task, recording_file};
use landfall_os::humanize::quoted;
use landfall_report::text::plain;
use landfall_results::proof::{Outcome, Shard, summary_text};
use landfall_results::view::Block;

use crate::args::{StateName, WORK};
use crate::commands::{counted, prove};

/// Shards that are named one by one.
const NAMED: usize = 8;
/// Columns of what stands beneath a command.
const BENEATH: u16 = 4;

/// All of it.
pub fn blocks(plan: &Plan, campaign: &Campaign, location: &Location) -> Vec<Block> {
    let mut blocks = Vec::new();
    say(
        &mut blocks,
        0,
        format!(
            "Campaign {} ({}): {}.",
            campaign.id,
            campaign.name,
            verdict(campaign)
        ),
    );
    for (task, proof) in plan.proofs().zip(&campaign.proofs) {
        blocks.push(Block::Heading(proof.command.clone()));
        blocks.extend(Block::prose(BENEATH, sentences(campaign, proof)));
        if let Some([fetch, again]) = commands(task, proof, location) {
            say(
                &mut blocks,
                BENEATH,
                "To see its shortest failing state again:".to_owned(),
            );
            blocks.extend([Block::Command(fetch), Block::Command(again)]);
        }
    }
    if !campaign.measured.is_empty() {
        let machines = campaign.measured.iter().map(|one| one.machine.as_str());
        let machines: BTreeSet<&str> = machines.collect();
        let on = counted(machines.len() as u64, "machine", "machines");
        blocks.push(Block::Heading(format!("Measured on {on}")));
        let place = quoted(&location.to_string());
        blocks.push(Block::Command(format!("landfall campaign report {place}")));
    }
    missing(campaign, location, &mut blocks);
    let busy = duration(campaign.machine_seconds);
    let when = campaign.when().map(|when| format!("Run: {when}."));
    let busy = format!("Machines were busy with it for {busy} all together.");
    blocks.extend(Block::prose(0, when.into_iter().chain([busy])));
    blocks
}

fn say(blocks: &mut Vec<Block>, indent: u16, sentence: String) {
    blocks.extend(Block::prose(indent, [sentence]));
}

/// In one clause, what it came to.
fn verdict(campaign: &Campaign) -> String {
    let found = campaign.shards as usize - campaign.missing.len();
    let of = match (found, campaign.shards as usize) {
        (1, 1) => "its one shard".to_owned(),
        (found, all) if found == all => format!("all {}", counted(found as u64, "shard", "shards")),
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

/// What a proof came to.
pub fn sentences(campaign: &Campaign, proof: &Proof) -> Vec<String> {
    let Some(results) = &proof.results else {
        return vec!["No shard has done its part.".to_owned()];
    };
    let mut sentences = vec![format!(
        "On {}, {} {}.",
        results.filesystem_spec,
        summary_text::full_subject(results),
        summary_text::full_verdict(results)
    )];
    if proof.shards < campaign.shards {
        sentences.push(format!(
            "That is what {} of {} shards found: the others may find more.",
            proof.shards, campaign.shards
        ));
    }
    sentences.extend(summary_text::violations(results));
    sentences.extend(proof.odd_losses.iter().map(odd_loss));
    sentences.iter().map(|sentence| plain(sentence)).collect()
}

fn odd_loss(lost: &OddLoss) -> String {
    format!(
        "Shard {} on {} lost something, or broke another promise, in {}, but of another proof: its {} differs. It is a loss, and not among these.",
        lost.shard,
        lost.machine,
        counted(lost.failing_states, "crash state", "crash states"),
        lost.differs
    )
}

/// What fetches the recording of the shortest failing state, and what tries the state again, if there is one. Both are of
/// the plan's words: who can write where results go shall not have others type what he likes.
pub fn commands(task: &Task, proof: &Proof, location: &Location) -> Option<[String; 2]> {
    let shortest = proof.results.as_ref()?.shortest.as_ref()?;
    let state: StateName = shortest.name.parse().ok()?;
    let recording = proof.recording?;
    let kept = recording_file(Path::new(WORK), recording);
    // As if it had been kept there: it is what is tried then.
    let kept = format!("--keep-recording={}", kept.display());
    let again = prove::again(task.words.iter().cloned().chain([kept]));
    Some([
        format!(
            "landfall campaign fetch {} {recording}",
            quoted(&location.to_string())
        ),
        format!("{again} {}", quoted(&format!("--state={state}"))),
    ])
}

fn missing(campaign: &Campaign, location: &Location, blocks: &mut Vec<Block>) {
    if !campaign.missing.is_empty() {
        let count = counted(campaign.missing.len() as u64, "shard is", "shards are");
        blocks.push(Block::Heading(format!("{count} missing")));
        let named = campaign.missing.iter().take(NAMED);
        blocks.extend(named.map(|shard| Block::Command(again(location, *shard))));
        rest(campaign.missing.len(), blocks);
    }
    if !campaign.failed.is_empty() {
        let count = counted(campaign.failed.len() as u64, "task", "tasks");
        blocks.push(Block::Heading(format!("{count} could not be done")));
        for failed in campaign.failed.iter().take(NAMED) {
            let machine = plain(&failed.machine);
            let why = plain(&failed.why);
            let text = format!(
                "Shard {} on {machine}: {}: {why}",
                failed.shard, failed.command
            );
            say(blocks, BENEATH, text);
            // What does not fit the others looks whole to a shard alone.
            let again = again(location, failed.shard);
            blocks.push(Block::Command(format!("{again} --again")));
        }
        rest(campaign.failed.len(), blocks);
    }
    if !campaign.unreadable.is_empty() {
        blocks.push(Block::Heading(
            "Not read among the shards' documents".to_owned(),
        ));
        let named = campaign.unreadable.iter().take(NAMED);
        blocks.extend(named.map(|one| Block::Address(plain(one))));
        rest(campaign.unreadable.len(), blocks);
    }
    if !campaign.disagreeing.is_empty() {
        let shards: Vec<String> = campaign.disagreeing.iter().map(Shard::to_string).collect();
        let text = format!(
            "Run more than once, not with the same verdict, so that which lost most counts: shard {}.",
            shards.join(", ")
        );
        say(blocks, 0, text);
    }
}

fn rest(count: usize, blocks: &mut Vec<Block>) {
    if count > NAMED {
        let text = format!("and {} more; --json names them all", count - NAMED);
        say(blocks, BENEATH, text);
    }
}

/// The command that runs a shard again.
pub fn again(location: &Location, shard: Shard) -> String {
    let place = quoted(&location.to_string());
    format!("landfall campaign run {place} --shard {shard}")
}

fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}
