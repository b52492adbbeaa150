//! Advice in words, the same in the terminal, the report and configuration files.

use super::result::{Advice, Basis, Choice, Gain, Proof, Quantity, Setting};
use crate::numbers::{NOTHING, interval, short, thousands};
use crate::stats::Estimate;

/// Settings that a sentence names.
const MOST_NAMED: usize = 3;

/// What a value gives: `1.85 (1.48–2.03)`; nothing if that was not measured.
pub fn gain_text(gain: Option<&Gain>) -> String {
    let Some(gain) = gain else {
        return NOTHING.to_owned();
    };
    let times = match gain.of {
        Quantity::Rate => gain.times,
        // As people think of bytes: how many are left.
        Quantity::Bytes => Estimate {
            median: 1.0 / gain.times.median,
            low: 1.0 / gain.times.high,
            high: 1.0 / gain.times.low,
        },
    };
    let spread = if gain.is_certain {
        interval(&times, short)
    } else {
        "?".to_owned()
    };
    let unit = match gain.of {
        Quantity::Rate => "",
        Quantity::Bytes => " bytes",
    };
    // Its share of the disk is not all that a commit is made of.
    let bound = if gain.basis != Basis::Writes || times.median < 1.0 {
        ""
    } else {
        "≤ "
    };
    format!("{bound}{} ({spread}){unit}", short(times.median))
}

/// In how many crash states something was lost: `6 of 29`; nothing if that was not tried.
pub fn proof_text(proof: Option<&Proof>) -> String {
    match proof {
        None => NOTHING.to_owned(),
        Some(proof) => {
            let mark = proof.basis.mark();
            format!(
                "{} of {}{mark}",
                thousands(proof.losing as f64),
                thousands(proof.states as f64)
            )
        }
    }
}

/// A value with what goes with it: `4, binlog_commit_wait_usec=120`.
pub fn choice_text(choice: &Choice) -> String {
    let mut text = choice.value.clone();
    for (setting, value) in &choice.with {
        text += &format!(", {setting}={value}");
    }
    text
}

/// All that is known of a value, in one line: what it gives, what it risks, what was lost.
pub fn evidence(setting: &Setting, choice: &Choice) -> String {
    let mut parts = Vec::new();
    let reference = setting.choices.first();
    if let Some(gain) = &choice.gain {
        let against = reference.map_or("", |first| first.value.as_str());
        let of = match gain.of {
            Quantity::Rate => "times as fast as",
            Quantity::Bytes => "written by",
        };
        let mut text = format!("{} {of} {against}", gain_text(Some(gain)));
        text += match gain.basis {
            Basis::System => ", measured: ",
            Basis::Alike => ", as measured in what works alike: ",
            Basis::Writes => ", as such writes to a file are: ",
        };
        text += &gain.measured;
        parts.push(text);
    }
    if let Some(proof) = &choice.proof {
        let states = thousands(proof.states as f64);
        let lost = match proof.losing {
            0 => format!("lost nothing in {states} crash states"),
            losing => format!(
                "lost something in {} of {states} crash states",
                thousands(losing as f64)
            ),
        };
        let of = match proof.basis {
            Basis::System => "",
            Basis::Alike => "what works alike ",
            Basis::Writes => "such writes to a file ",
        };
        parts.push(format!(
            "{of}{lost} ({}, {})",
            proof.subject, proof.filesystem_spec
        ));
    }
    parts.join("; ")
}

/// What the marks of figures and proofs mean, as far as there are any; empty if there are none.
pub fn marks(advice: &Advice) -> String {
    let choices = advice.settings.iter().flat_map(|setting| &setting.choices);
    let known: Vec<Basis> = choices
        .flat_map(|choice| {
            let gain = choice.gain.as_ref().map(|gain| gain.basis);
            [gain, choice.proof.as_ref().map(|proof| proof.basis)]
        })
        .flatten()
        .collect();
    let there = [Basis::Writes, Basis::Alike].into_iter();
    let there = there.filter(|basis| known.contains(basis));
    let marks: Vec<String> = there
        .map(|basis| format!("{} {}.", basis.mark(), basis.meaning()))
        .collect();
    marks.join(" ")
}

/// What all of it comes to, in one sentence; nothing where there is no advice.
pub fn sentence(advice: &Advice) -> Option<String> {
    // What must not be changed on a server that has data is no headline.
    let changes: Vec<&Setting> = advice
        .settings
        .iter()
        .filter(|setting| setting.is_change() && setting.by_hand.is_empty())
        .collect();
    let best = changes
        .iter()
        .filter_map(|setting| {
            let gain = setting.advised()?.gain.as_ref()?;
            (gain.basis == Basis::System && gain.is_certain && gain.of == Quantity::Rate)
                .then_some((*setting, gain))
        })
        .max_by(|a, b| a.1.times.low.total_cmp(&b.1.times.low));
    if advice.settings.is_empty() {
        return None;
    }
    Some(match (best, changes.as_slice()) {
        (Some((setting, gain)), _) => format!(
            "The setting with most to gain: {}={} in {}, {} times as fast here ({}).",
            setting.setting,
            setting.value.as_deref().unwrap_or_default(),
            setting.system.name(),
            gain_text(Some(gain)),
            gain.measured
        ),
        (None, []) => {
            "Of all settings that were looked at, what is usual is right here.".to_owned()
        }
        (None, some) => {
            // What is the same in several systems is said once.
            let mut named: Vec<(String, Vec<&str>)> = Vec::new();
            for setting in some {
                let value = setting.value.as_deref().unwrap_or_default();
                let text = format!("{}={value}", setting.setting);
                let system = setting.system.name();
                match named.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, systems)) => systems.push(system),
                    None => named.push((text, vec![system])),
                }
            }
            let more = match named.len().saturating_sub(MOST_NAMED) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let named: Vec<String> = named
                .iter()
                .take(MOST_NAMED)
                .map(|(text, systems)| format!("{text} in {}", systems.join(" and ")))
                .collect();
            format!(
                "What should be other than usual: {}{more}.",
                named.join(", ")
            )
        }
    })
}
