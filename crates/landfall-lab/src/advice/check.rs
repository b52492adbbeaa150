//! What a configuration that is there risks, and what it leaves unused.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::configuration::Configuration;
use super::result::{Advice, Choice, Gain, Proof, Stance};
use super::rule::{System, Value, is_same};
use super::rules;

/// What was found of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Whose configuration it is.
    pub system: System,
    /// The file.
    pub file: PathBuf,
    /// Settings that risk acknowledged data.
    pub risks: Vec<Finding>,
    /// Settings that would be faster, and as safe.
    pub unused: Vec<Finding>,
    /// Settings that bear on durability, with values of which no rule knows what they do.
    pub not_known: Vec<Finding>,
    /// How many settings were looked at.
    pub looked_at: usize,
}

/// One setting of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The setting.
    pub setting: String,
    /// Its value.
    pub value: String,
    /// File and line; absent where nobody set it.
    pub at: Option<String>,
    /// The value that it should have; absent where that is not known.
    pub better: Option<String>,
    /// What may be lost or damaged; empty if nothing.
    pub risk: String,
    /// What its own value gives against the safe one, where that was measured: of what is unused, what the better
    /// one gives.
    pub gain: Option<Gain>,
    /// What power cuts did to its value.
    pub proof: Option<Proof>,
    /// The official document's title.
    pub document: String,
    /// Where that is.
    pub address: String,
}

/// Holds a configuration against the table of rules, and against what is advised here.
pub fn check(
    system: System,
    file: PathBuf,
    configuration: &Configuration,
    advice: &Advice,
) -> Check {
    let mut check = Check {
        system,
        file,
        risks: Vec::new(),
        unused: Vec::new(),
        not_known: Vec::new(),
        looked_at: 0,
    };
    let value_of = |setting: &str| -> String {
        let usual = || {
            let rule = rules::of(system).find(|rule| rule.setting == setting);
            rule.map_or("", |rule| rule.default).to_owned()
        };
        configuration
            .get(setting)
            .map_or_else(usual, |set| set.value.clone())
    };
    let mut seen: Vec<&str> = Vec::new();
    for rule in rules::of(system) {
        // Of several rules on one setting, that which spoke here.
        let advised = advice
            .of(system)
            .find(|setting| setting.setting == rule.setting);
        let speaks = advised.is_none_or(|setting| setting.rule == rule.id);
        if seen.contains(&rule.setting) || !speaks {
            continue;
        }
        if let Some((other, value)) = rule.idle_with
            && is_idle(
                system,
                configuration.get(other).map(|set| set.value.as_str()),
                value,
                other,
            )
        {
            continue;
        }
        seen.push(rule.setting);
        check.looked_at += 1;
        let value = value_of(rule.setting);
        let set = configuration.get(rule.setting);
        let known = advised.and_then(|setting| {
            let mut choices = setting.choices.iter();
            choices.find(|choice| is_same(&choice.value, &value))
        });
        let by_document = rule.choice(&value).map(|choice| choice.promise);
        let finding = |better: Option<&str>, risk: &str, choice: Option<&Choice>| Finding {
            setting: rule.setting.to_owned(),
            value: value.clone(),
            at: set.map(|set| format!("{}:{}", set.file.display(), set.line)),
            better: better.map(str::to_owned),
            risk: risk.to_owned(),
            gain: choice.and_then(|choice| choice.gain.clone()),
            proof: choice.and_then(|choice| choice.proof.clone()),
            document: rule.source.title.to_owned(),
            address: rule.source.address.to_owned(),
        };
        let lost_here = known.is_some_and(|choice| choice.stance == Stance::Unsafe);
        let better = advised.and_then(|setting| setting.value.as_deref());
        let all = rules::of(system);
        let values: Vec<(&str, String)> = all
            .map(|one| (one.setting, value_of(one.setting)))
            .collect();
        let get = |name: &str| {
            let found = values.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_str())
        };
        let is_safe = rule.is_safe(&value, get);
        let is_unsafe = by_document.is_some_and(|promise| promise.is_unsafe());
        if let (true, None) = (rule.is_about_durability(), by_document) {
            check.not_known.push(finding(better, "", None));
        } else if !is_safe || (lost_here && !is_unsafe) {
            let risk = by_document.map_or("", |promise| promise.risk());
            let risk = match risk {
                "" => "what was acknowledged: it lost some here, whatever its document says",
                risk => risk,
            };
            let reference = match rule.reference().value {
                Value::Fixed(value) => Some(value),
                _ => None,
            };
            check.risks.push(finding(better.or(reference), risk, known));
        } else if let (Some(better), Some(setting), Some(_)) = (better, advised, known)
            && !is_same(better, &value)
        {
            check
                .unused
                .push(finding(Some(better), "", setting.advised()));
        }
    }
    check
}

/// Whether another setting has the value with which a rule's means nothing. Nobody names a file for the binary log
/// who does not want one.
fn is_idle(system: System, set: Option<&str>, value: &str, other: &str) -> bool {
    let usual = match (system, other) {
        (System::Mysql, "log_bin") => "ON",
        (_, "log_bin") => "OFF",
        _ => "no",
    };
    is_same(set.unwrap_or(usual), value)
}
