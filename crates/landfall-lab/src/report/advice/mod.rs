//! What is advised, as data: first what to change, then everything that it rests on.
//!
//! - [`answer`]: one screen for a terminal, with what to change on top;
//! - [`check`], [`workload`]: what was asked for by name, and nothing else;
//! - [`tables`]: every setting with its values, for a terminal;
//! - `advised`: the same for a page, which folds what is not installed.

mod answer;
mod tables;

pub use answer::{Detail, answer, check, workload};
pub use tables::tables;

use landfall_os::humanize::bytes_text;
use landfall_results::view::{
    Advised, AdvisedChoice, AdvisedGroup, AdvisedSetting, Cell, CheckedFile, CheckedSetting,
    Column, Lacking, Reference, References, Row, Table, Tone, Workload,
};

use crate::advice::check::{Check, Concern};
use crate::advice::{
    Advice, Basis, Capacity, Choice, Lack, Missing, Recommendation, Scope, Setting, System,
    Verdict, choice_text, gain_text, marks, proof_text, sentence,
};
use crate::numbers::two;

/// Everything that is advised: on what is in scope, and folded beneath it on everything else.
pub(super) fn advised(advice: &Advice, scope: &Scope) -> Advised {
    let mut documents = References::default();
    let (here, elsewhere): (Vec<System>, Vec<System>) = System::ALL
        .into_iter()
        .partition(|system| scope.has(*system));
    let groups = groups(advice, &here, &mut documents);
    let others = self::groups(advice, &elsewhere, &mut documents);
    let shown = advice.settings.iter().filter(|one| scope.has(one.system));
    let missing = advice.missing.iter().filter(|one| scope.serves(one.system));
    Advised {
        refused: advice.refused.clone(),
        sentence: sentence(advice, scope),
        changes: answer::changes(advice, scope).map(|table| Table {
            // The page has the title above it.
            corner: "Setting".into(),
            ..table
        }),
        introduction: format!(
            "{INTRODUCTION} {}",
            marks(shown.flat_map(|one| &one.choices))
        ),
        groups,
        beneath: tables::elsewhere(&others),
        documents,
        missing: missing.map(lacking).collect(),
        workload: advice.capacity.as_ref().map(capacity),
        files: advice.checks.iter().map(file).collect(),
    }
}

/// How tables of settings are to be read.
const INTRODUCTION: &str = "Advised is the fastest value that lost nothing here. Gives: how many times as fast it is as the safe default, with its 95% interval. Lost in: the simulated power cuts after which data was missing or damaged, of those that were tried.";

fn groups(advice: &Advice, systems: &[System], documents: &mut References) -> Vec<AdvisedGroup> {
    let groups = systems.iter().map(|system| AdvisedGroup {
        name: system.name().to_owned(),
        settings: advice
            .of(*system)
            .map(|one| setting(one, documents))
            .collect(),
    });
    groups.filter(|group| !group.settings.is_empty()).collect()
}

fn setting(setting: &Setting, documents: &mut References) -> AdvisedSetting {
    let name = &setting.setting;
    let heading = match &setting.value {
        None => format!("{name}: no value is safe here"),
        Some(value) if setting.is_default => format!("{name} = {value} (default)"),
        Some(value) => format!("{name} = {value}"),
    };
    let tone = match &setting.value {
        None => Tone::Bad,
        Some(_) if setting.is_change() => Tone::Good,
        Some(_) => Tone::Plain,
    };
    let notes = [&setting.note, &setting.by_hand];
    let mut choices: Vec<&Choice> = setting.choices.iter().collect();
    choices.sort_by_key(|choice| choice.recommendation != Recommendation::Use);
    AdvisedSetting {
        name: name.clone(),
        heading: Cell::toned(tone, heading),
        because: setting.because.clone(),
        notes: notes
            .into_iter()
            .filter(|note| !note.is_empty())
            .cloned()
            .collect(),
        document: documents.cite(Reference {
            text: setting.document.clone(),
            address: Some(setting.address.clone()),
        }),
        choices: choices.into_iter().map(choice).collect(),
    }
}

fn choice(choice: &Choice) -> AdvisedChoice {
    let tone = match choice.recommendation {
        Recommendation::Use => Tone::Good,
        Recommendation::Unsafe => Tone::Bad,
        Recommendation::NotShown => Tone::Doubt,
        Recommendation::NoGain => Tone::Plain,
    };
    let gain = choice.gain.as_ref();
    let mark = match gain {
        // Not measured, so there is nothing to mark.
        Some(gain) if gain.basis != Basis::Writes => gain.basis.mark(),
        _ => "",
    };
    AdvisedChoice {
        value: choice_text(choice),
        recommendation: Cell::toned(tone, choice.recommendation.name()),
        gain: format!("{}{mark}", gain_text(gain)),
        proof: proof_text(choice.proof.as_ref()),
        risk: choice.risk.clone(),
    }
}

fn lacking(missing: &Missing) -> Lacking {
    let what = match missing.what {
        Lack::Measurement => "measures",
        Lack::Proof => "proves",
    };
    Lacking {
        text: format!(
            "{what} {}: {}",
            missing.system.name(),
            missing.settings.join(", ")
        ),
        command: missing.command.clone(),
    }
}

fn capacity(capacity: &Capacity) -> Workload {
    let tone = match capacity.verdict {
        Verdict::Carries | Verdict::Together => Tone::Good,
        Verdict::CannotCarry => Tone::Bad,
        Verdict::CannotBeTold | Verdict::NotKnown => Tone::Doubt,
    };
    let mut sentences = capacity.sentences.iter().cloned();
    Workload {
        name: capacity.target.to_string(),
        answer: Cell::toned(tone, sentences.next().unwrap_or_default()),
        reasons: sentences.collect(),
        changes: capacity.changes.clone(),
        flash: flash(capacity),
    }
}

fn flash(capacity: &Capacity) -> Option<Table> {
    let rows = capacity.flash.iter().map(|flash| {
        let per_day = bytes_text(flash.device_per_day as u64);
        let cells = [flash.years_text(), per_day, two(flash.amplification)];
        Row::of(flash.what.clone(), cells)
    });
    let columns = ["Years", "At the device, a day", "× in flash"];
    let mut table = Table::new(
        "How long the flash lasts",
        "What writes",
        columns.map(Column::text).into(),
    )
    .with_rows(rows);
    table.note(format!("The drive: {}.", capacity.drive.replace(',', ", ")));
    (!capacity.flash.is_empty()).then_some(table)
}

fn file(check: &Check) -> CheckedFile {
    let findings = check.findings().map(|(concern, finding, text)| {
        let tone = match concern {
            Concern::Risk => Tone::Bad,
            Concern::Unused | Concern::NotKnown => Tone::Doubt,
        };
        CheckedSetting {
            finding: Cell::toned(tone, text),
            address: finding.address.clone(),
        }
    });
    let tone = if check.risks.is_empty() {
        Tone::Good
    } else {
        Tone::Bad
    };
    CheckedFile {
        name: format!("{} ({})", check.file.display(), check.system.name()),
        findings: findings.collect(),
        passed_over: check.passed_over().collect(),
        summary: Cell::toned(tone, check.summary()),
    }
}
