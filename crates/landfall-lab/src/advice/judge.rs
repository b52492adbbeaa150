//! From a rule and what is known here to advice: the fastest value that lost nothing.
//!
//! - What may lose acknowledged data by its document, or lost it here, is unsafe, however lucky or fast.
//! - What is meant to be durable is advised in place of the reference only if it is faster here beyond doubt
//!   and lost nothing here.
//! - What has no say in durability needs no proof, only a gain beyond doubt.
//! - Without evidence nothing is said of a setting, but how to get it.

use std::collections::BTreeMap;

use super::commands::Commands;
use super::evidence::{Evidence, Holds};
use super::result::{Basis, Choice, Lack, Missing, Proof, Recommendation, Setting};
use crate::rules::{self, Promise, Rule, System, Value};

/// Nobody changes a setting for less, and an interval of few rounds is too narrow.
const LEAST_GAIN: f64 = 1.05;

/// A value that takes a target to be a number.
pub(super) const AN_HOUR: &str = "an hour of writes";

/// What a rule comes to.
pub(super) struct Judged {
    /// Absent where the rule does not apply, or nothing is known.
    pub setting: Option<Setting>,
    pub missing: Vec<Missing>,
}

/// Holds a rule against the evidence.
pub(super) fn judge(rule: &Rule, evidence: &Evidence<'_>, commands: &Commands<'_>) -> Judged {
    let mut because = Vec::new();
    for condition in rule.when {
        match evidence.holds(rule.system, *condition) {
            Holds::Yes(why) if why.is_empty() => {}
            Holds::Yes(why) => because.push(why),
            Holds::No => return Judged::silent(),
            Holds::Unknown => {
                return Judged {
                    setting: None,
                    missing: vec![lack(rule, Lack::Measurement, commands.writes())],
                };
            }
        }
    }
    let mut missing = Vec::new();
    let mut choices: Vec<(&rules::Choice, Choice)> = Vec::new();
    for choice in rule.choices {
        let Some(known) = known(rule, choice, evidence) else {
            continue;
        };
        let is_measured = |known: &Choice| {
            let gain = known.gain.as_ref();
            gain.is_some_and(|gain| gain.basis == Basis::System && gain.is_certain)
        };
        let is_proven = |known: &Choice| {
            let proof = known.proof.as_ref();
            // Where there is no journal a setting is proven on a filesystem that has one.
            let has_none = evidence.has_no_journal() && rule.as_in.is_empty();
            proof.is_some_and(|proof| {
                let is_of_it = proof.basis == Basis::System;
                proof.is_evidence() && (is_of_it || (has_none && proof.basis == Basis::Alike))
            })
        };
        let can_be = evidence.can_be_measured(rule);
        if choice.is_tried && can_be && !choices.is_empty() && !is_measured(&known) {
            let command = commands.measure(rule, &known);
            missing.extend(command.map(|command| lack(rule, Lack::Measurement, command)));
        }
        if choice.is_tried && choice.promise.is_about_durability() && !is_proven(&known) {
            let command = commands.prove(rule, &known.value, choices.is_empty());
            missing.extend(command.map(|command| lack(rule, Lack::Proof, command)));
        }
        choices.push((choice, known));
    }
    // What nothing here speaks of is left out; one value alone is no choice.
    let has_evidence = |(choice, known): &(&rules::Choice, Choice)| {
        let fits = choice.promise == Promise::Fits && !rule.when.is_empty();
        known.gain.is_some() || known.proof.is_some() || fits
    };
    let mut index = 0;
    choices.retain(|choice| {
        index += 1;
        index == 1 || has_evidence(choice)
    });
    if choices.len() < 2 {
        return Judged {
            setting: None,
            missing,
        };
    }
    let best = best(&choices);
    let mut choices: Vec<Choice> = choices.into_iter().map(|(_, known)| known).collect();
    if let Some(best) = best {
        choices[best].recommendation = Recommendation::Use;
    }
    let value = best.map(|best| choices[best].value.clone());
    Judged {
        setting: Some(Setting {
            rule: rule.id.to_owned(),
            system: rule.system,
            setting: rule.setting.to_owned(),
            is_default: value
                .as_ref()
                .is_some_and(|value| rules::is_same(value, rule.default)),
            value,
            because: because.join("; "),
            choices,
            note: rule.note.to_owned(),
            by_hand: rule.by_hand.to_owned(),
            document: rule.source.title.to_owned(),
            address: rule.source.address.to_owned(),
        }),
        missing,
    }
}

impl Judged {
    fn silent() -> Judged {
        Judged {
            setting: None,
            missing: Vec::new(),
        }
    }
}

/// What is known of a choice, and what it would be if it were not the best; `None` where its value cannot
/// be told.
fn known(rule: &Rule, choice: &rules::Choice, evidence: &Evidence<'_>) -> Option<Choice> {
    let reference = rule.reference();
    let is_reference = std::ptr::eq(choice, reference);
    let measured = if is_reference {
        None
    } else {
        evidence.measured(rule, choice)
    };
    let reckoned = || -> BTreeMap<String, String> {
        let with = choice.with.iter();
        with.filter_map(|(setting, value)| Some(((*setting).to_owned(), evidence.value(*value)?)))
            .collect()
    };
    let (value, with, gain) = match (measured, choice.value) {
        // It is there for what somebody has set.
        (_, Value::Above(_) | Value::AnyTime) => return None,
        // More of it is better: how much only a target can tell.
        (Some(tried), Value::HourOfWrites) => {
            let hour = evidence.hour(rule).unwrap_or_else(|| AN_HOUR.to_owned());
            (hour, tried.with, Some(tried.gain))
        }
        (None, Value::HourOfWrites) => (AN_HOUR.to_owned(), reckoned(), None),
        (Some(tried), Value::Fixed(value)) => (value.to_owned(), tried.with, Some(tried.gain)),
        // Of so many of something: what was tried.
        (Some(tried), _) => (tried.value, tried.with, Some(tried.gain)),
        (None, _) => {
            let of_writes = choice
                .write
                .zip(reference.write)
                .filter(|(write, other)| !is_reference && write != other)
                .and_then(|(write, other)| evidence.faster(write, other));
            (evidence.value(choice.value)?, reckoned(), of_writes)
        }
    };
    let proof = if choice.promise.is_about_durability() {
        evidence.proof(rule, choice, &value)
    } else {
        None
    };
    let lost = proof.as_ref().is_some_and(|proof| proof.losing > 0);
    let is_replicated = matches!(choice.promise, Promise::Replicated(_));
    let is_faster = gain
        .as_ref()
        .is_some_and(|gain| gain.is_certain && gain.times.low > LEAST_GAIN);
    let is_proven = proof.as_ref().is_some_and(Proof::is_evidence);
    let needs_proof = choice.promise.is_about_durability() && !is_replicated;
    let recommendation = match &gain {
        _ if choice.promise.is_unsafe() || (lost && !is_replicated) => Recommendation::Unsafe,
        _ if is_reference => Recommendation::NoGain,
        Some(_) if !is_faster || !needs_proof || is_proven => Recommendation::NoGain,
        _ => Recommendation::NotShown,
    };
    Some(Choice {
        value,
        with,
        recommendation,
        gain,
        risk: choice.promise.risk().to_owned(),
        proof,
    })
}

/// The index of the fastest that lost nothing, among those that something is known of; the first one, unless
/// it was seen to lose something.
fn best(choices: &[(&rules::Choice, Choice)]) -> Option<usize> {
    let is_safe = |known: &Choice| known.recommendation != Recommendation::Unsafe;
    let first = choices.first().filter(|(_, first)| is_safe(first));
    // What the first one lost, another is cleared of by as good a proof and by no weaker one.
    let basis = |known: &Choice| {
        let proof = known.proof.as_ref();
        let proof = proof.filter(|proof| proof.is_evidence());
        proof.map(|proof| proof.basis)
    };
    let condemned = match (choices.first(), first) {
        (Some((_, lost)), None) => basis(lost),
        _ => None,
    };
    let is_cleared = |known: &Choice| {
        condemned.is_none_or(|condemned| basis(known).is_some_and(|own| own <= condemned))
    };
    let weight = |(choice, known): &(&rules::Choice, Choice)| match &known.gain {
        _ if choice.promise == Promise::Fits => Some(f64::INFINITY),
        _ if choice.promise.is_about_durability() && basis(known).is_none() => None,
        Some(gain) if gain.is_certain && gain.times.low > LEAST_GAIN => Some(gain.times.median),
        _ if first.is_none() => Some(0.0),
        _ => None,
    };
    choices
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, (_, known))| is_safe(known) && is_cleared(known))
        .filter_map(|(index, choice)| Some((index, weight(choice)?)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(index, _)| index)
        .or(first.map(|_| 0))
}

fn lack(rule: &Rule, what: Lack, command: String) -> Missing {
    Missing {
        system: rule.system,
        settings: vec![rule.setting.to_owned()],
        what,
        command,
    }
}

/// Takes back what is safe only with another setting at a value that is not advised: the first value is advised in its
/// place, unless that lost something.
pub(super) fn withdraw_lacking(settings: &mut [Setting]) {
    let advised: Vec<(System, String, Option<String>)> = settings
        .iter()
        .map(|one| (one.system, one.setting.clone(), one.value.clone()))
        .collect();
    for setting in settings {
        let rule = rules::all().find(|rule| rule.id == setting.rule);
        let needs = rule
            .zip(setting.value.as_deref())
            .map(|(rule, value)| rule.needs(value));
        let is_lacking = needs.into_iter().flatten().any(|needs| {
            advised.iter().any(|(system, name, value)| {
                let is_met = value.as_ref().is_some_and(|value| needs.is_met_by(value));
                *system == setting.system && name == needs.setting && !is_met
            })
        });
        if !is_lacking {
            continue;
        }
        for choice in &mut setting.choices {
            if choice.recommendation == Recommendation::Use {
                choice.recommendation = Recommendation::NotShown;
            }
        }
        let first = setting.choices.first_mut();
        let first = first.filter(|first| first.recommendation != Recommendation::Unsafe);
        setting.value = first.map(|first| {
            first.recommendation = Recommendation::Use;
            first.value.clone()
        });
        setting.is_default = setting
            .value
            .as_deref()
            .zip(rule)
            .is_some_and(|(value, rule)| rules::is_same(value, rule.default));
    }
}

/// Each command once, with all settings that it serves; measurements first.
pub(super) fn gathered(missing: Vec<Missing>) -> Vec<Missing> {
    let mut all: Vec<Missing> = Vec::new();
    for one in missing {
        match all.iter_mut().find(|known| known.command == one.command) {
            Some(known) => {
                for setting in one.settings {
                    if !known.settings.contains(&setting) {
                        known.settings.push(setting);
                    }
                }
            }
            None => all.push(one),
        }
    }
    all.sort_by_key(|one| (one.what, one.system == System::Mount));
    all
}
