//! The settings that are advised, as the page shows them.

use landfall_os::humanize::bytes_text;
use landfall_results::view::{Column, Row as TableRow, Table};

use super::page::Verdict;
use crate::advice::check::{Check, Concern, Finding};
use crate::advice::{
    Advice, Carried, Choice, Lack, Missing, Setting, Stance, System, Verdict as Carries,
    choice_text, gain_text, marks, proof_text,
};
use crate::numbers::two;

/// Everything that is advised.
pub(super) struct Advised<'a> {
    /// Why nothing is.
    pub refused: Option<&'a str>,
    pub groups: Vec<Group<'a>>,
    /// What they rest on, each once.
    pub documents: Vec<Document<'a>>,
    pub missing: Vec<Unknown<'a>>,
    /// What the marks of figures mean.
    pub marks: String,
    /// What the disk makes of a workload, if one was named.
    pub workload: Option<Workload<'a>>,
    /// Configuration files that were looked at.
    pub files: Vec<File<'a>>,
}

/// Whether the disk carries a workload.
pub(super) struct Workload<'a> {
    pub name: String,
    pub verdict: Verdict,
    /// The verdict itself.
    pub answer: &'a str,
    pub reasons: &'a [String],
    pub changes: &'a [String],
    /// How long the flash lasts, where that can be reckoned.
    pub flash: Option<Table>,
}

/// What a configuration file risks, and leaves unused.
pub(super) struct File<'a> {
    pub name: String,
    pub findings: Vec<Found<'a>>,
    pub passed_over: Vec<String>,
    pub summary: Option<String>,
}

/// One setting of a file.
pub(super) struct Found<'a> {
    pub verdict: Verdict,
    pub text: String,
    pub address: &'a str,
}

impl<'a> Found<'a> {
    fn of((concern, finding, text): (Concern, &'a Finding, String)) -> Found<'a> {
        Found {
            verdict: match concern {
                Concern::Risk => Verdict::Bad,
                Concern::Unused | Concern::NotKnown => Verdict::Doubt,
            },
            text,
            address: &finding.address,
        }
    }
}

/// The settings of one system.
pub(super) struct Group<'a> {
    pub name: &'static str,
    pub rows: Vec<Row<'a>>,
}

/// One value of a setting.
pub(super) struct Row<'a> {
    pub text: String,
    /// What must be known of the setting; of its first value only.
    pub notes: Vec<&'a str>,
    pub document: usize,
    pub class: &'static str,
    pub sign: &'static str,
    pub stance: &'static str,
    pub gain: String,
    pub proof: String,
    pub risk: &'a str,
    /// Whether it is the first of its setting.
    pub is_first: bool,
}

/// An official document, numbered from 1.
pub(super) struct Document<'a> {
    pub number: usize,
    pub title: &'a str,
    /// Absent of one that is part of the program.
    pub address: Option<&'a str>,
}

/// What is not known, and the command that gets it.
pub(super) struct Unknown<'a> {
    pub text: String,
    pub command: &'a str,
}

/// The page's share of advice.
pub(super) fn advised(advice: &Advice) -> Advised<'_> {
    let mut documents: Vec<Document<'_>> = Vec::new();
    let mut groups = Vec::new();
    for system in System::ALL {
        let mut rows = Vec::new();
        for setting in advice.of(system) {
            let document = number(&mut documents, setting);
            // What is advised stands first.
            let mut choices: Vec<&Choice> = setting.choices.iter().collect();
            choices.sort_by_key(|choice| choice.stance != Stance::Use);
            for (index, choice) in choices.into_iter().enumerate() {
                rows.push(row(setting, choice, document, index == 0));
            }
        }
        if !rows.is_empty() {
            groups.push(Group {
                name: system.name(),
                rows,
            });
        }
    }
    Advised {
        refused: advice.refused.as_deref(),
        marks: marks(advice),
        groups,
        documents,
        missing: advice.missing.iter().map(unknown).collect(),
        workload: advice.carried.as_ref().map(workload),
        files: advice.checks.iter().map(file).collect(),
    }
}

fn workload(carried: &Carried) -> Workload<'_> {
    let (answer, reasons) = match carried.sentences.split_first() {
        Some((answer, reasons)) => (answer.as_str(), reasons),
        None => ("", carried.sentences.as_slice()),
    };
    let rows = carried.flash.iter().map(|flash| {
        let per_day = bytes_text(flash.device_per_day as u64);
        let cells = vec![flash.years_text(), per_day, two(flash.amplification)];
        TableRow::of(flash.what.clone(), cells)
    });
    let columns = ["Years", "At the device, a day", "× in flash"];
    let mut flash = Table::new(
        "How long the flash lasts, by how values are written",
        "What writes",
        columns.map(Column::text).into(),
    )
    .with_rows(rows);
    flash.note(format!("A drive with {}.", carried.drive));
    Workload {
        name: carried.target.to_string(),
        verdict: match carried.verdict {
            Carries::Carries | Carries::Together => Verdict::Good,
            Carries::CannotCarry => Verdict::Bad,
            Carries::CannotBeTold | Carries::NotKnown => Verdict::Doubt,
        },
        answer,
        reasons,
        changes: &carried.changes,
        flash: (!carried.flash.is_empty()).then_some(flash),
    }
}

fn file(check: &Check) -> File<'_> {
    File {
        name: format!("{} ({})", check.file.display(), check.system.name()),
        findings: check.findings().map(Found::of).collect(),
        passed_over: check.passed_over().collect(),
        summary: check.summary(),
    }
}

fn number<'a>(documents: &mut Vec<Document<'a>>, setting: &'a Setting) -> usize {
    let known = documents
        .iter()
        .find(|known| known.title == setting.document && known.at() == setting.address);
    if let Some(known) = known {
        return known.number;
    }
    let number = documents.len() + 1;
    documents.push(Document {
        number,
        title: &setting.document,
        address: Some(setting.address.as_str()).filter(|address| address.starts_with("https://")),
    });
    number
}

impl Document<'_> {
    fn at(&self) -> &str {
        self.address.unwrap_or_default()
    }
}

fn row<'a>(setting: &'a Setting, choice: &'a Choice, document: usize, is_first: bool) -> Row<'a> {
    let (class, sign) = match choice.stance {
        Stance::Use => ("holds", "✓"),
        Stance::Unsafe => ("fails", "✕"),
        Stance::NotShown => ("doubt", "?"),
        Stance::NoGain => ("", "–"),
    };
    let notes = [&setting.because, &setting.note, &setting.by_hand];
    let gain = choice.gain.as_ref();
    let mark = gain.map_or("", |gain| gain.basis.mark());
    Row {
        text: format!("{} = {}", setting.setting, choice_text(choice)),
        notes: notes
            .into_iter()
            .map(String::as_str)
            .filter(|note| is_first && !note.is_empty())
            .collect(),
        document,
        class,
        sign,
        stance: choice.stance.name(),
        gain: format!("{}{mark}", gain_text(gain)),
        proof: proof_text(choice.proof.as_ref()),
        risk: &choice.risk,
        is_first,
    }
}

fn unknown(missing: &Missing) -> Unknown<'_> {
    let what = match missing.what {
        Lack::Measurement => "what it gives",
        Lack::Proof => "what it loses",
    };
    Unknown {
        text: format!(
            "{}: {} ({what})",
            missing.system.name(),
            missing.settings.join(", ")
        ),
        command: &missing.command,
    }
}
