//! What is advised, setting by setting; what a disk carries; what a configuration risks.

use std::fmt::Write as _;

use anstyle::Style;
use comfy_table::{ColumnConstraint, Width};
use landfall_lab::advice::check::{Check, Concern};
use landfall_lab::advice::{
    Advice, Carried, Lack, Missing, Setting, Stance, System, Verdict, choice_text, gain_text,
    marks, proof_text, sentence,
};
use landfall_lab::numbers::two;
use landfall_os::humanize::bytes_text;

use landfall_report::style::{BAD, DOUBT, FAINT, GOOD, STRONG, styled};
use landfall_report::text::{lines, plain_table, table, wrapped};
use landfall_results::view::{Column, Row, Table};

/// Everything that is advised; with what else must be known of each setting as `details`, and with `all`
/// commands that get what is missing.
pub fn advice(advice: &Advice, details: bool, all: bool) -> String {
    let mut text = wrapped(0, &format!("{}: {}", advice.directory, advice.place));
    if let Some(refused) = &advice.refused {
        let _ = writeln!(text, "\n{}", styled(BAD, "No setting is advised here."));
        text.push_str(&wrapped(0, refused));
    }
    let mut documents: Vec<(&str, &str)> = Vec::new();
    for system in System::ALL {
        let settings: Vec<&Setting> = advice.of(system).collect();
        if settings.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{}", styled(STRONG, system.name()));
        for setting in settings {
            text.push_str(&one(setting, details, &mut documents));
        }
    }
    if !documents.is_empty() {
        text.push_str(&legend(advice));
        let _ = writeln!(text, "\n{}", styled(STRONG, "Documents"));
        for (number, (title, address)) in documents.iter().enumerate() {
            let _ = writeln!(text, " [{}] {title}", number + 1);
            if details {
                let _ = writeln!(text, "     {}", styled(FAINT, address));
            }
        }
    }
    if let Some(sentence) = sentence(advice) {
        let _ = write!(text, "\n{}", wrapped(0, &sentence));
    }
    if let Some(target) = &advice.carried {
        text.push_str(&carried(target));
    }
    for check in &advice.checks {
        text.push_str(&checked(check));
    }
    text.push_str(&missing(&advice.missing, all));
    text
}

fn one<'a>(setting: &'a Setting, details: bool, documents: &mut Vec<(&'a str, &'a str)>) -> String {
    let document = (setting.document.as_str(), setting.address.as_str());
    let known = documents.iter().position(|known| *known == document);
    let number = known.unwrap_or_else(|| {
        documents.push(document);
        documents.len() - 1
    });
    let heading = match &setting.value {
        None => format!("{}: no value was seen to lose nothing", setting.setting),
        Some(value) if setting.is_default => {
            format!("{} = {value}, as it is unless set", setting.setting)
        }
        Some(value) => format!("{} = {value}", setting.setting),
    };
    let style = if setting.is_change() {
        GOOD
    } else {
        Style::new()
    };
    let mut text = format!(" {} [{}]\n", styled(style, &heading), number + 1);
    if !setting.because.is_empty() {
        let because = format!("{}.", setting.because);
        let _ = writeln!(text, "{}", styled(FAINT, wrapped(3, &because).trim_end()));
    }
    let mut table = plain_table();
    for choice in &setting.choices {
        let style = match choice.stance {
            Stance::Use => GOOD,
            Stance::Unsafe => BAD,
            Stance::NoGain => Style::new(),
            Stance::NotShown => DOUBT,
        };
        let gain = choice.gain.as_ref();
        let mark = gain.map_or("", |gain| gain.basis.mark());
        table.add_row(vec![
            format!("  {}", choice_text(choice).replace(", ", "\n\u{a0}\u{a0}")),
            styled(style, choice.stance.name()),
            format!("{}{mark}", gain_text(gain)),
            proof_text(choice.proof.as_ref()),
            choice.risk.clone(),
        ]);
    }
    for (column, width) in table.column_iter_mut().zip([28, 10, 25, 13, 24]) {
        column.set_padding((1, 0));
        // The same under every setting.
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
    }
    text.push_str(&lines(&table));
    let notes = [&setting.note, &setting.by_hand];
    for note in notes.into_iter().filter(|note| details && !note.is_empty()) {
        let _ = writeln!(text, "{}", styled(FAINT, wrapped(3, note).trim_end()));
    }
    text
}

fn legend(advice: &Advice) -> String {
    let mut text = String::from("\n");
    text.push_str(&wrapped(
        0,
        "Of each value: what to make of it; how many times as fast it is as the first, with its 95% interval; in how many crash states something was lost; what it risks by its document. --for NAME says more of one system.",
    ));
    text.push_str(&wrapped(0, &marks(advice)));
    styled(FAINT, text.trim_end()) + "\n"
}

fn missing(missing: &[Missing], all: bool) -> String {
    let mut text = String::new();
    if missing.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "\n{}",
        styled(STRONG, "Not known here, and how to get it")
    );
    let mut hidden = 0;
    for system in System::ALL {
        let mut kinds: Vec<Lack> = Vec::new();
        for one in missing.iter().filter(|one| one.system == system) {
            // The first of a kind serves most settings.
            if !all && kinds.contains(&one.what) {
                hidden += 1;
                continue;
            }
            kinds.push(one.what);
            let what = match one.what {
                Lack::Measurement => "what it gives",
                Lack::Proof => "what it loses",
            };
            let _ = writeln!(
                text,
                " {}: {} ({what})",
                system.name(),
                one.settings.join(", ")
            );
            let _ = writeln!(text, "   {}", styled(FAINT, &one.command));
        }
    }
    if hidden > 0 {
        let _ = writeln!(text, " … and {hidden} more: --missing");
    }
    text
}

fn carried(carried: &Carried) -> String {
    let style = match carried.verdict {
        Verdict::Carries | Verdict::Together => GOOD,
        Verdict::CannotCarry => BAD,
        Verdict::CannotBeTold | Verdict::NotKnown => DOUBT,
    };
    let mut text = format!(
        "\n{}\n",
        styled(STRONG, &format!("Workload {}", carried.target))
    );
    for (index, sentence) in carried.sentences.iter().enumerate() {
        let style = if index == 0 { style } else { Style::new() };
        let _ = writeln!(text, "{}", styled(style, wrapped(1, sentence).trim_end()));
    }
    if !carried.flash.is_empty() {
        let rows = carried.flash.iter().map(|flash| {
            Row::of(
                flash.what.as_str(),
                [
                    format!("{} a day", bytes_text(flash.device_per_day as u64)),
                    two(flash.amplification),
                    flash.years_text(),
                ],
            )
        });
        let columns = ["at the device", "× in flash", "years"];
        let mut flash = Table::new("", "", columns.map(Column::new).into()).with_rows(rows);
        flash.note(format!("Flash of a drive with {}.", carried.drive));
        text.push_str(&table(&flash));
    }
    for change in &carried.changes {
        text.push_str(&wrapped(1, &format!("- {change}")));
    }
    text
}

fn checked(check: &Check) -> String {
    let mut text = format!(
        "\n{}\n",
        styled(
            STRONG,
            &format!("{} ({})", check.file.display(), check.system.name())
        )
    );
    for (concern, finding, sentence) in check.findings() {
        let style = match concern {
            Concern::Risk => BAD,
            Concern::Unused | Concern::NotKnown => DOUBT,
        };
        let _ = writeln!(text, "{}", styled(style, wrapped(1, &sentence).trim_end()));
        let _ = writeln!(text, "   {}", styled(FAINT, &finding.address));
    }
    for sentence in check.passed_over() {
        text.push_str(&styled(DOUBT, &wrapped(1, &sentence)));
    }
    if let Some(summary) = check.summary() {
        let _ = writeln!(text, "{}", styled(GOOD, wrapped(1, &summary).trim_end()));
    }
    text
}
