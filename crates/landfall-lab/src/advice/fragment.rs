//! Advice as a part of a configuration file, with the evidence as comments.
//!
//! Every setting that bears on durability is written, also with a usual value: what a distribution has set before is
//! then of no account. Others are only where they are to change: somebody may have fitted them to a machine. What
//! is unsafe is named in a comment, never set.

use std::fmt::Write as _;

use super::result::{Advice, Lack, Recommendation, Setting};
use super::summary_text::{choice_text, evidence};
use crate::rules::{self, SafeWith, System};

/// With what every fragment begins, so that it may be replaced by a newer one.
pub const HEAD: &str = "Written by landfall advise";
const WIDTH: usize = 100;

/// The fragment of a system; `None` of one that has no configuration file.
pub fn fragment(advice: &Advice, system: System) -> Option<String> {
    if !system.has_files() {
        return None;
    }
    let comment = match system {
        System::Sqlite => "--",
        _ => "#",
    };
    let mut text = String::new();
    let mut say = |line: &str| remark(&mut text, comment, line);
    say(&format!(
        "{HEAD} {} for {} ({}).",
        advice.version, advice.directory, advice.place
    ));
    if let Some(refused) = &advice.refused {
        say(&format!("No setting is advised: {refused}"));
        return Some(text);
    }
    say("The fastest values that lost nothing here.");
    text.push('\n');
    if system.has_option_files() {
        text.push_str("[mysqld]\n");
    }
    for setting in advice.of(system) {
        one(&mut text, comment, setting, needed(advice, setting));
    }
    let missing: Vec<_> = advice
        .missing
        .iter()
        .filter(|missing| missing.system == system)
        .collect();
    if !missing.is_empty() {
        remark(
            &mut text,
            comment,
            "Not known here; these commands find out:",
        );
        for missing in missing {
            let what = match missing.what {
                Lack::Measurement => "measures",
                Lack::Proof => "proves",
            };
            remark(
                &mut text,
                comment,
                &format!("- {what} {}:", missing.settings.join(", ")),
            );
            // A command is to be copied: it stays on its line.
            let _ = writeln!(text, "{comment}   {}", missing.command);
        }
    }
    Some(text)
}

/// Other settings that the advised value is safe only with, but those that there is advice on too.
fn needed(advice: &Advice, setting: &Setting) -> Vec<&'static SafeWith> {
    let rule = rules::all().find(|rule| rule.id == setting.rule);
    let needs = rule
        .zip(setting.value.as_deref())
        .map(|(rule, value)| rule.needs(value));
    let needs = needs.into_iter().flatten();
    let is_advised = |one: &&SafeWith| {
        let mut advised = advice.of(setting.system);
        advised.any(|other| other.setting == one.setting)
    };
    needs.filter(|one| !is_advised(one)).collect()
}

fn one(text: &mut String, comment: &str, setting: &Setting, needed: Vec<&SafeWith>) {
    if !setting.because.is_empty() {
        remark(text, comment, &format!("Since {}.", setting.because));
    }
    if !setting.note.is_empty() {
        remark(text, comment, &setting.note);
    }
    for choice in &setting.choices {
        let known = evidence(setting, choice);
        let word = match choice.recommendation {
            Recommendation::Use => "advised",
            other => other.name(),
        };
        let risk = match choice.risk.as_str() {
            "" => String::new(),
            risk => format!("; risks {risk}"),
        };
        let known = match known.as_str() {
            "" if setting.is_reference(choice) => "the others are compared with it".to_owned(),
            "" => "not measured or proven here".to_owned(),
            known => known.to_owned(),
        };
        remark(
            text,
            comment,
            &format!("- {} is {word}{risk}: {known}.", choice_text(choice)),
        );
    }
    remark(
        text,
        comment,
        &format!("{}, {}", setting.document, setting.address),
    );
    let rule = rules::all().find(|rule| rule.id == setting.rule);
    let since = rule.map_or("", |rule| rule.since);
    match setting.advised() {
        None => remark(text, comment, "Every value lost data here."),
        Some(choice) => {
            let with = choice
                .with
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            // What is not to be changed on a server that has data is not set because another setting needs it.
            let is_by_hand = |needs: &&&SafeWith| {
                let mut rules = rules::of(setting.system);
                rules.any(|rule| rule.setting == needs.setting && !rule.by_hand.is_empty())
            };
            for needs in needed.iter().filter(is_by_hand) {
                let (name, values) = (needs.setting, needs.one_of.join(", "));
                remark(
                    text,
                    comment,
                    &format!("It needs {name} at one of: {values}."),
                );
            }
            let needed = needed.iter().filter(|needs| !is_by_hand(needs));
            let needed = needed.map(|needs| (needs.setting, needs.one_of[0]));
            let all = [(setting.setting.as_str(), choice.value.as_str())]
                .into_iter()
                .chain(with)
                .chain(needed);
            let by_hand = rule.map_or("", |rule| rule.by_hand);
            if !by_hand.is_empty() {
                remark(text, comment, by_hand);
            }
            let bears = rule.is_some_and(rules::Rule::is_about_durability);
            let is_comment = !by_hand.is_empty() || (setting.is_default && !bears);
            for (name, value) in all {
                let line = line(setting.system, name, value, since, rule);
                if is_comment && !line.starts_with(comment) {
                    let _ = write!(text, "{comment} ");
                }
                text.push_str(&line);
            }
        }
    }
    text.push('\n');
}

/// The setting as the system reads it; a comment where it is none of the file's.
fn line(
    system: System,
    name: &str,
    value: &str,
    since: &str,
    rule: Option<&rules::Rule>,
) -> String {
    // What the table says in words is nothing that a server reads.
    let is_words = value.contains(' ');
    match system {
        _ if is_words => format!("# {name}: {value}\n"),
        _ if system.has_option_files() && !since.is_empty() => {
            // An older server passes over it.
            format!("loose_{name} = {value}\n")
        }
        System::Mariadb | System::Mysql | System::Myrocks => format!("{name} = {value}\n"),
        System::Postgres => format!("{name} = '{value}'\n"),
        System::Redis => format!("{name} {value}\n"),
        System::Etcd | System::Nats => format!("{name}: {value}\n"),
        System::Sqlite => format!("PRAGMA {name} = {value};\n"),
        // Not set is what is advised.
        System::Kafka if rule.is_some_and(|rule| rules::is_same(rule.default, value)) => {
            format!("# {name} is not set\n")
        }
        System::Kafka | System::Rocksdb => format!("{name}={value}\n"),
        System::Landfall | System::LandfallStore | System::Mount => String::new(),
    }
}

/// A remark, on lines of a width that people read.
fn remark(text: &mut String, comment: &str, remark: &str) {
    let mut line = String::new();
    for word in remark.split_whitespace() {
        if !line.is_empty() && comment.len() + 1 + line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(text, "{comment} {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(text, "{comment} {line}");
}
