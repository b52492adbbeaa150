//! What is advised, as data.

mod brief;

pub use brief::advice;

use landfall_os::humanize::bytes_text;
use landfall_results::view::{
    Advised, AdvisedChoice, AdvisedGroup, AdvisedSetting, Cell, CheckedFile, CheckedSetting,
    Column, Lacking, Reference, References, Row, Table, Tone, Workload,
};

use crate::advice::check::{Check, Concern};
use crate::advice::{
    Advice, Capacity, Choice, Lack, Missing, Recommendation, Setting, System, Verdict, choice_text,
    gain_text, marks, proof_text, sentence,
};
use crate::numbers::two;

/// Everything that is advised.
pub(super) fn advised(advice: &Advice) -> Advised {
    let mut documents = References::default();
    let groups = System::ALL.into_iter().map(|system| AdvisedGroup {
        name: system.name().to_owned(),
        settings: advice
            .of(system)
            .map(|one| setting(one, &mut documents))
            .collect(),
    });
    let groups = groups.filter(|group| !group.settings.is_empty()).collect();
    Advised {
        refused: advice.refused.clone(),
        sentence: sentence(advice),
        introduction: format!(
            "The fastest that lost nothing, as far as it was measured and proven here. What it gives is how many times as fast it is as the usual safe value, with its 95% interval; what it lost is the crash states in which something was missing or damaged, of those that were tried. What is unsafe is never advised, whatever it gives. {}",
            marks(advice)
        ),
        groups,
        beneath: Vec::new(),
        documents,
        missing: advice.missing.iter().map(lacking).collect(),
        workload: advice.capacity.as_ref().map(workload),
        files: advice.checks.iter().map(file).collect(),
    }
}

fn setting(setting: &Setting, documents: &mut References) -> AdvisedSetting {
    let name = &setting.setting;
    let heading = match &setting.value {
        None => format!("{name}: no value was seen to lose nothing"),
        Some(value) if setting.is_default => format!("{name} = {value}, as it is unless set"),
        Some(value) => format!("{name} = {value}"),
    };
    let tone = if setting.is_change() {
        Tone::Good
    } else {
        Tone::Plain
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
    let mark = gain.map_or("", |gain| gain.basis.mark());
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
        Lack::Measurement => "what it gives",
        Lack::Proof => "what it loses",
    };
    Lacking {
        text: format!(
            "{}: {} ({what})",
            missing.system.name(),
            missing.settings.join(", ")
        ),
        command: missing.command.clone(),
    }
}

fn workload(capacity: &Capacity) -> Workload {
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
        "How long the flash lasts, by how values are written",
        "What writes",
        columns.map(Column::text).into(),
    )
    .with_rows(rows);
    table.note(format!("A drive with {}.", capacity.drive));
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
    CheckedFile {
        name: format!("{} ({})", check.file.display(), check.system.name()),
        findings: findings.collect(),
        passed_over: check.passed_over().collect(),
        summary: check.summary(),
    }
}
