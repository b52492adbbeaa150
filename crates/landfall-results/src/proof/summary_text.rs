//! What a proof came to, in words: the terminal, the report and a failing test say the same.

use landfall_os::humanize::bytes_text;

use super::counted::{be, counted, states, whole};
use super::timeline_text::{missing, timeline};
use super::{
    Exercised, Hazard, Outcome, ProofResults, SECTOR, Violation, ViolationCount, cluster_text,
};

/// The subject without its settings.
pub fn short_subject(proof: &ProofResults) -> &str {
    &proof.subject.name
}

/// The subject with its settings, and with what else went wrong.
pub fn full_subject(proof: &ProofResults) -> String {
    let mut subject = proof.subject.to_string();
    for fault in &proof.faults {
        subject.push_str(&format!(", fault {fault}"));
    }
    subject
}

/// The verdict without its numbers: `lost nothing`.
pub fn short_verdict(proof: &ProofResults) -> &'static str {
    match proof.outcome() {
        Outcome::LostNothing => "lost nothing",
        Outcome::NotProven => "is not proven",
        Outcome::LostSomething if proof.losing_states == 0 => "broke a promise",
        Outcome::LostSomething if proof.only_last => "lost the last acknowledged transaction",
        Outcome::LostSomething => "lost acknowledged transactions",
    }
}

/// What the subject did, as what follows its name: `lost nothing in 1,234 crash states`.
pub fn verdict(proof: &ProofResults) -> String {
    let checked = match proof.shard {
        Some(shard) => format!("{} of shard {shard}", states(proof.coverage.checked)),
        None => states(proof.coverage.checked),
    };
    match proof.outcome() {
        Outcome::LostNothing => format!("lost nothing in {checked}"),
        Outcome::NotProven => format!("is not proven: {}", why_not_proven(proof)),
        Outcome::LostSomething if proof.losing_states == 0 => {
            let worst = proof.violations.first();
            let words = worst.map_or("no more is known", |worst| worst.violation.words());
            let failing = whole(proof.failing_states);
            format!("broke a promise in {failing} of {checked}: {words}")
        }
        Outcome::LostSomething => {
            let what = match (proof.only_last, proof.worst_lost) {
                (true, _) => "the last acknowledged transaction, and only that".to_owned(),
                (false, 1) => "one acknowledged transaction".to_owned(),
                (false, most) => format!("up to {} acknowledged transactions", whole(most)),
            };
            format!(
                "lost {what}, in {} of {checked}",
                whole(proof.losing_states)
            )
        }
    }
}

/// The verdict with what it says nothing of: `lost nothing in 400 crash states; no page was torn while it was written over,
/// so full_page_writes was not tried`.
pub fn full_verdict(proof: &ProofResults) -> String {
    match untried(proof) {
        Some(untried) if proof.outcome() == Outcome::LostNothing => {
            format!("{}; {untried}", verdict(proof))
        }
        _ => verdict(proof),
    }
}

/// The most important of what no crash state tried, with the settings that a proof therefore says nothing of.
pub fn untried(proof: &ProofResults) -> Option<String> {
    let guarded = |one: &&Exercised| !one.protected_by.is_empty();
    proof.exercised.iter().filter(guarded).find_map(|one| {
        let were = be(one.protected_by.len() as u64);
        let settings = one.protected_by.join(" and ");
        Some(format!("{}, so {settings} {were} not tried", one.gap()?))
    })
}

/// What happened that the subject must be protected from, and in how many states; nothing where nothing is known.
pub fn exercised(proof: &ProofResults) -> Option<String> {
    let said = |one: &Exercised| {
        let [single, many] = one.what.counted();
        if one.happened == Some(0) {
            return Some(format!("no {single}"));
        }
        let torn = if one.what == Hazard::PageTorn {
            "torn in "
        } else {
            ""
        };
        let states = one
            .states
            .map(|count| format!(" ({torn}{})", states(count)));
        let states = states.unwrap_or_default();
        Some(format!("{}{states}", counted(one.happened?, single, many)))
    };
    let happened: Vec<String> = proof.exercised.iter().filter_map(said).collect();
    (!happened.is_empty()).then(|| format!("Exercised: {}.", happened.join("; ")))
}

/// Why a proof that is not proven is not.
pub fn why_not_proven(proof: &ProofResults) -> String {
    match &proof.unchecked {
        Some(unchecked) => format!(
            "{} of {} could not be checked: {}",
            whole(unchecked.states),
            states(proof.coverage.checked.saturating_add(unchecked.states)),
            unchecked.reason
        ),
        None if proof.workload.acknowledged == 0 => "no transaction was acknowledged".to_owned(),
        None => "no crash state was checked".to_owned(),
    }
}

/// The promises that were broken, each with an example; none if the verdict says it all.
pub fn violations(proof: &ProofResults) -> Vec<String> {
    let is_loss = |one: &ViolationCount| one.violation == Violation::Lost;
    if proof.violations.iter().all(is_loss) {
        return Vec::new();
    }
    let sentence = |one: &ViolationCount| {
        format!(
            "{} of {}: {}, as in {}: {}.",
            whole(one.states),
            states(proof.coverage.checked),
            one.violation.words(),
            one.example,
            one.detail
        )
    };
    proof.violations.iter().map(sentence).collect()
}

/// What was recorded.
pub fn workload(proof: &ProofResults) -> String {
    let workload = &proof.workload;
    let ended = match &workload.ended {
        Some(reason) => format!(" The subject ended early: {reason}."),
        None => String::new(),
    };
    let spilled = match workload.spilled_bytes {
        0 => String::new(),
        bytes => format!(
            " {} of the recording did not fit into memory and went to disk.",
            bytes_text(bytes)
        ),
    };
    format!(
        "{} of {} were acknowledged; {} of {} and {} reached the device.{spilled}{ended}",
        whole(workload.acknowledged),
        counted(workload.sent, "transaction", "transactions"),
        counted(workload.writes, "write", "writes"),
        bytes_text(workload.written_bytes),
        counted(workload.flushes, "flush", "flushes"),
    )
}

/// How much of what could have happened was tried.
pub fn coverage(proof: &ProofResults) -> String {
    let coverage = &proof.coverage;
    let mut text = format!(
        "{} of model {} {} checked",
        counted(
            coverage.checked,
            "distinct crash state",
            "distinct crash states"
        ),
        proof.model,
        be(coverage.checked),
    );
    if coverage.equal > 0 {
        let (more, were) = (whole(coverage.equal), be(coverage.equal));
        text.push_str(&format!(" ({more} more {were} equal to one of them)"));
    }
    if coverage.equal_files > 0 {
        let (files, had) = (
            whole(coverage.equal_files),
            "had recovered the same files as another",
        );
        text.push_str(&format!("; {files} of them {had}"));
    }
    if let Some(second) = &coverage.second_cuts {
        text.push_str(&format!(
            "; {} of them {} left by a second power cut, in {} that made {} and {}",
            whole(second.checked),
            be(second.checked),
            counted(second.recoveries, "recovery", "recoveries"),
            counted(second.writes, "write", "writes"),
            counted(second.flushes, "flush", "flushes"),
        ));
        if second.torn_superblocks > 0 {
            let torn = whole(second.torn_superblocks);
            text.push_str(&format!(
                " ({torn} with a torn superblock {} left out)",
                be(second.torn_superblocks)
            ));
        }
    }
    if let Some(unchecked) = &proof.unchecked {
        text.push_str(&format!(
            "; {} could not be: {}",
            whole(unchecked.states),
            unchecked.reason
        ));
    }
    match proof.untried_states() {
        0 => {}
        left => {
            return format!(
                "{text}; {} planned ones were not tried: the time was up.",
                whole(left)
            );
        }
    }
    format!("{text}. {}", epochs(proof))
}

fn epochs(proof: &ProofResults) -> String {
    let coverage = &proof.coverage;
    let epochs = counted(coverage.epochs, "epoch", "epochs");
    if proof.cluster.is_some() {
        return format!(
            "The power was cut at {} of the nodes' common order.",
            counted(coverage.surveyed, "moment", "moments")
        );
    }
    // Whatever the model, each epoch has one state at least.
    if coverage.possible <= 1.0 && coverage.epochs > 1 {
        return format!("The recording has {epochs}; one state was chosen by its name.");
    }
    let Some((writes, sectors)) = proof.exhausted() else {
        return format!("They are a part of the states of {epochs}.");
    };
    if proof.model != "subset" {
        return format!("The power was cut in {epochs}.");
    }
    let sampled = match coverage.epochs.saturating_sub(writes.max(sectors)) {
        0 => String::new(),
        left => format!("; {} {} sampled", whole(left), be(left)),
    };
    match (writes, sectors) {
        (0, 0) if coverage.epochs == 1 => "The only epoch was not tried exhaustively.".to_owned(),
        (0, 0) => format!("None of {epochs} was tried exhaustively."),
        _ => format!(
            "Of {epochs}, {} {} tried in every subset of the writes, and {} in every subset of the changed {parts}{sampled}.",
            whole(writes),
            be(writes),
            whole(sectors),
            parts = if proof.atomic_bytes == SECTOR {
                "sectors"
            } else {
                "units"
            },
        ),
    }
}

/// What the model of a proof lets a disk do.
pub fn model(proof: &ProofResults) -> &'static str {
    match proof.model.as_str() {
        "flushed" => {
            "In model flushed a disk keeps what was flushed, and nothing that was written since."
        }
        "prefix" => {
            "In model prefix a disk without a volatile cache writes in order: what it has answered is there, flushed or not, and of what is under way everything up to some sector. It does not show that a flush is missing."
        }
        "subset" => {
            "In model subset a disk with a volatile cache writes in any order: of the sectors written since the last flush any may be there and any may be missing."
        }
        _ => "",
    }
}

/// What went wrong with the device besides the power, what was done to it, and what it is like if it is
/// like no other; nothing, if nothing.
pub fn circumstances(proof: &ProofResults) -> Option<String> {
    let faults = (!proof.faults.is_empty())
        .then(|| format!("Besides the power cut: {}.", proof.faults.join(", ")));
    let creation = proof.creation.then(|| {
        "The power was cut while the subject was created too; until it had acknowledged something, it might be damaged."
            .to_owned()
    });
    let forced = proof.workload.forced_writes.map(|writes| {
        format!(
            "The disk offered force unit access: {} {} durable when answered, and nothing that was written before.",
            counted(writes, "single write", "single writes"),
            be(writes)
        )
    });
    let writeback = proof.writeback.then(|| {
        "Pages that the subject left dirty were forced out to the device now and then.".to_owned()
    });
    let atomic = (proof.atomic_bytes != SECTOR).then(|| {
        format!(
            "The disk writes {} whole or not at all: one with smaller units tears more.",
            bytes_text(proof.atomic_bytes)
        )
    });
    let texts: Vec<String> = faults
        .into_iter()
        .chain(creation)
        .chain(forced)
        .chain(writeback)
        .chain(atomic)
        .collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// Everything, as a text of several lines: the verdict, what was recorded and tried, and the shortest failing state.
pub fn of(proof: &ProofResults) -> String {
    let mut text = format!(
        "{} on {} {}.\n{}{}\n{}\n",
        full_subject(proof),
        proof.filesystem_spec,
        full_verdict(proof),
        cluster_text::sentences(proof)
            .into_iter()
            .chain(violations(proof))
            .map(|sentence| format!("{sentence}\n"))
            .collect::<String>(),
        workload(proof),
        coverage(proof)
    );
    if let Some(exercised) = exercised(proof) {
        text.push_str(&format!("{exercised}\n"));
    }
    if let Some(circumstances) = circumstances(proof) {
        text.push_str(&format!("{circumstances}\n"));
    }
    if let Some(state) = &proof.shortest {
        text.push_str(&format!(
            "\nThe failing state that lacks least is {}:\n",
            state.name
        ));
        for detail in &state.details {
            text.push_str(&format!("  {detail}\n"));
        }
        if let Some(missing) = missing(state) {
            text.push_str(&format!("{missing}\n"));
        }
        text.push_str(&timeline(state));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Unchecked;
    use crate::proof::fixtures::{exercised as happened, failing, proof};

    #[test]
    fn a_verdict_says_what_was_lost_and_in_how_many_states() {
        assert_eq!(verdict(&proof()), "lost nothing in 1,234 crash states");
        let mut lost = failing();
        assert_eq!(
            verdict(&lost),
            "lost up to 3 acknowledged transactions, in 40 of 300 crash states"
        );
        lost.only_last = true;
        assert!(verdict(&lost).starts_with("lost the last acknowledged transaction, and only"));
        lost.losing_states = 0;
        lost.violations = vec![ViolationCount {
            violation: Violation::HalfApplied,
            states: 40,
            example: "1:2:none".into(),
            detail: "only a part is there of transaction 3".into(),
            place: None,
            crashed: false,
        }];
        assert_eq!(
            verdict(&lost),
            "broke a promise in 40 of 300 crash states: a transaction was half-applied"
        );
    }

    #[test]
    fn a_verdict_names_the_setting_that_no_state_tried() {
        let mut proof = proof();
        assert_eq!(full_verdict(&proof), verdict(&proof));
        assert_eq!(
            exercised(&proof).unwrap(),
            "Exercised: 40 overwritten pages that can be torn (torn in 12 crash states)."
        );
        proof.exercised = vec![
            happened(Hazard::PageTorn, 7, 0, &["full_page_writes"]),
            happened(Hazard::PageOverwritten, 7, 3, &[]),
            happened(Hazard::Checkpoint, 0, 0, &["a", "b"]),
        ];
        assert_eq!(
            full_verdict(&proof),
            "lost nothing in 1,234 crash states; no page was torn while it was written over, so full_page_writes was not tried"
        );
        proof.exercised.remove(0);
        assert!(
            full_verdict(&proof).ends_with("; no checkpoint was made, so a and b were not tried")
        );
        proof.exercised[1].happened = Some(2);
        let said = untried(&proof).unwrap();
        assert!(
            said.starts_with("the power was never cut during a checkpoint"),
            "{said}"
        );
        proof.exercised[0].happened = Some(0);
        assert_eq!(
            exercised(&proof).unwrap(),
            "Exercised: no overwritten page; 2 checkpoints (0 crash states)."
        );
        proof.exercised[0].happened = Some(7);
        // What nobody knows is not said.
        proof.exercised[1].states = None;
        assert_eq!(untried(&proof), None);
        assert_eq!(
            exercised(&proof).unwrap(),
            "Exercised: 7 overwritten pages (3 crash states); 2 checkpoints."
        );
    }

    #[test]
    fn the_whole_text_has_the_failing_state_with_its_cut() {
        assert_eq!(of(&proof()).lines().count(), 4);
        let text = of(&failing());
        let (before, after) = text.split_once("the power is cut\n").unwrap();
        assert!(before.contains("transaction 7, the last one acknowledged, is not there\n"));
        assert!(
            before.contains(" ms  write 4 KiB at byte 9,441,280: missing\n"),
            "{text}"
        );
        assert!(
            before.contains(" ms  write 4 KiB at byte 16,777,216: torn\n"),
            "{text}"
        );
        assert!(before.ends_with("    2.200 ms  transaction 7 acknowledged\n              "));
        assert!(after.starts_with("    2.300 ms  flush\n") && !after.contains("missing"));
    }

    #[test]
    fn what_was_not_checked_is_not_proven() {
        let mut unproven = proof();
        unproven.unchecked = Some(Unchecked {
            states: 6,
            reason: "it hung".into(),
        });
        assert_eq!(
            verdict(&unproven),
            "is not proven: 6 of 1,240 crash states could not be checked: it hung"
        );
        assert!(coverage(&unproven).contains("one of them); 6 could not be: it hung."));
        let mut idle = proof();
        idle.workload.acknowledged = 0;
        assert_eq!(
            verdict(&idle),
            "is not proven: no transaction was acknowledged"
        );
    }

    #[test]
    fn what_model_prefix_does_not_show_is_said() {
        let mut in_order = proof();
        in_order.model = "prefix".to_owned();
        let said = model(&in_order);
        assert!(said.contains("without a volatile cache"), "{said}");
        assert!(
            said.contains("does not show that a flush is missing"),
            "{said}"
        );
    }

    #[test]
    fn coverage_tells_what_was_exhaustive_from_what_was_sampled() {
        assert_eq!(
            coverage(&proof()),
            "1,234 distinct crash states of model subset were checked (7 more were equal to one of them). Of 50 epochs, 40 were tried in every subset of the writes, and 12 in every subset of the changed sectors; 10 were sampled."
        );
        let mut sampled = proof();
        (sampled.coverage.every_write, sampled.coverage.every_sector) = (0, 0);
        assert!(coverage(&sampled).contains("None of 50 epochs was tried exhaustively"));
        let mut part = proof();
        part.shard = "2/4".parse().ok();
        assert!(coverage(&part).ends_with("They are a part of the states of 50 epochs."));
        part.shard = Some(crate::proof::Shard::WHOLE);
        assert_eq!(coverage(&part), coverage(&proof()));
        let mut equal = proof();
        equal.coverage.equal_files = 1_000;
        assert!(coverage(&equal).contains(
            "equal to one of them); 1,000 of them had recovered the same files as another. Of 50"
        ));
        let mut twice = proof();
        twice.coverage.second_cuts = Some(crate::proof::SecondCuts {
            recoveries: 30,
            writes: 1_500,
            flushes: 240,
            planned: 200,
            torn_superblocks: 17,
            checked: 200,
            failing: 0,
        });
        assert!(coverage(&twice).contains(
            "; 200 of them were left by a second power cut, in 30 recoveries that made 1,500 writes and 240 flushes (17 with a torn superblock were left out). Of 50"
        ));
        let mut few = proof();
        few.coverage.surveyed = 1;
        (few.coverage.every_write, few.coverage.every_sector) = (0, 0);
        assert!(coverage(&few).ends_with("None of 50 epochs was tried exhaustively."));
        few.coverage.possible = 1.0;
        assert!(coverage(&few).ends_with("one state was chosen by its name."));
        let mut unfinished = proof();
        unfinished.coverage.planned += 5;
        assert_eq!(
            coverage(&unfinished),
            "1,234 distinct crash states of model subset were checked (7 more were equal to one of them); 5 planned ones were not tried: the time was up."
        );
    }
}
