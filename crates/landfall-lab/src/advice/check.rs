//! What a configuration that is there risks, and what it leaves unused.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judge::AN_HOUR;
use super::result::{Advice, Basis, Choice, Gain, Proof, Quantity, Recommendation, Setting};
use super::summary_text::{evidence, losses};
use crate::config_file::{ConfigFile, version_of};
use crate::rules::{self, System, UNSET, Value, is_same};

/// What was found of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Whose configuration it is.
    pub system: System,
    /// The file.
    pub file: PathBuf,
    /// Settings that risk acknowledged data.
    pub risks: Vec<Finding>,
    /// Settings of which another value is better here, and as safe.
    pub unused: Vec<Finding>,
    /// Settings that bear on durability, with values of which no rule knows what they do.
    pub not_known: Vec<Finding>,
    /// How many settings were looked at.
    pub looked_at: usize,
    /// How many of them it sets.
    pub set: usize,
    /// Sections for another server, or for one version of it, in which something is set that rules look at.
    pub passed_over: Vec<String>,
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
    /// one gives, unless that is the safe one.
    pub gain: Option<Gain>,
    /// What power cuts did to that value.
    pub proof: Option<Proof>,
    /// Both in words, or what else was seen here of what is unused; empty if nothing is known.
    pub evidence: String,
    /// Why it is not to be changed on a server that has data, and how it is; empty if it may be.
    pub by_hand: String,
    /// The official document's title.
    pub document: String,
    /// Where that is.
    pub address: String,
}

impl Check {
    /// How many settings risk data, of how many that were looked at.
    pub fn summary(&self) -> String {
        format!(
            "{} of {} settings {} data ({}; {} set in {})",
            self.risks.len(),
            self.looked_at,
            if self.risks.len() == 1 {
                "risks"
            } else {
                "risk"
            },
            self.system.name(),
            self.set,
            self.file.display()
        )
    }

    /// Everything that was found, the weightiest first, in words.
    pub fn findings(&self) -> impl Iterator<Item = (Concern, &Finding, String)> {
        let of = |concern: Concern| {
            let file = self.file.display().to_string();
            let system = self.system;
            move |finding| {
                (
                    concern,
                    finding,
                    Finding::sentence(finding, concern, system, &file),
                )
            }
        };
        self.risks
            .iter()
            .map(of(Concern::Risk))
            .chain(self.unused.iter().map(of(Concern::Unused)))
            .chain(self.not_known.iter().map(of(Concern::NotKnown)))
    }

    /// What was not read, in words.
    pub fn passed_over(&self) -> impl Iterator<Item = String> {
        let file = self.file.display();
        let sections = self.passed_over.iter();
        sections.map(move |name| match version_of(name) {
            Some(version) => {
                format!(
                    "{file}: [{name}] is for version {version} only; it counts where it risks more"
                )
            }
            None => format!("{file}: [{name}] is for another server; it was not checked"),
        })
    }
}

/// What there is to say of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// It risks acknowledged data.
    Risk,
    /// Another value is better here, and as safe.
    Unused,
    /// No rule knows its value.
    NotKnown,
}

impl Finding {
    /// In one line, as compilers have them: where, what is wrong, what was seen here, and what to set.
    fn sentence(&self, concern: Concern, system: System, file: &str) -> String {
        let at = self.at.as_deref().unwrap_or(file);
        let unset = if self.at.is_none() {
            " (the default)"
        } else {
            ""
        };
        let set = format!("{at}: {}={}{unset}", self.setting, self.value);
        let mut line = match concern {
            Concern::Risk => format!("{set} risks {}{}", self.risk, self.seen(system)),
            Concern::Unused => format!("{set} {}: {}", self.shortcoming(), self.evidence),
            Concern::NotKnown => format!("{set} is a value that no rule knows"),
        };
        match self.better.as_deref() {
            _ if !self.by_hand.is_empty() => line += &format!(". {}", self.by_hand),
            Some(UNSET) => line += "; leave it unset",
            Some(better) => line += &format!("; set {better}"),
            None if concern == Concern::Risk => line += "; every other value lost data here too",
            None => {}
        }
        line
    }

    /// In what another value is better.
    fn shortcoming(&self) -> &'static str {
        match self.gain.as_ref().map(|gain| gain.of) {
            Some(Quantity::Rate) => "could be faster",
            Some(Quantity::Bytes) => "writes more than it must",
            None => "does not fit this disk",
        }
    }

    /// What power cuts did to a value that is a risk.
    fn seen(&self, system: System) -> String {
        match &self.proof {
            None => ", by its documentation".to_owned(),
            Some(proof) if !proof.is_evidence() => {
                format!(", by its documentation; it was {}", losses(system, proof))
            }
            Some(proof) if proof.losing == 0 => {
                format!(", by its documentation; it {} here", losses(system, proof))
            }
            Some(proof) => format!(": {}", losses(system, proof)),
        }
    }
}

/// Holds a configuration against the table of rules, and against what is advised here. Which version will read it is not
/// known: what is set for one version alone counts where it risks more.
pub fn check(system: System, file: &Path, configuration: &ConfigFile, advice: &Advice) -> Check {
    let mut all = check_one(system, file, configuration, advice);
    let has = |known: &[Finding], setting: &str| known.iter().any(|one| one.setting == setting);
    for version in configuration.versions() {
        let one = check_one(system, file, &configuration.for_version(version), advice);
        for risk in one.risks {
            if !has(&all.risks, &risk.setting) {
                all.risks.push(risk);
            }
        }
        for finding in one.not_known {
            if !has(&all.not_known, &finding.setting) {
                all.not_known.push(finding);
            }
        }
        all.looked_at = all.looked_at.max(one.looked_at);
        all.set = all.set.max(one.set);
    }
    let Check {
        risks,
        unused,
        not_known,
        ..
    } = &mut all;
    unused.retain(|finding| !has(risks, &finding.setting));
    not_known.retain(|finding| !has(risks, &finding.setting));
    all
}

/// The same, of a configuration that one server reads as a whole.
fn check_one(system: System, file: &Path, configuration: &ConfigFile, advice: &Advice) -> Check {
    let mut check = Check {
        system,
        file: file.to_owned(),
        risks: Vec::new(),
        unused: Vec::new(),
        not_known: Vec::new(),
        looked_at: 0,
        set: 0,
        passed_over: configuration.passed_over.clone(),
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
        let set = configuration.get(rule.setting);
        if rule.in_code && set.is_none() {
            continue;
        }
        seen.push(rule.setting);
        check.looked_at += 1;
        check.set += usize::from(set.is_some());
        let value = value_of(rule.setting);
        let known = advised.and_then(|setting| {
            let mut choices = setting.choices.iter();
            choices.find(|choice| is_same(&choice.value, &value))
        });
        let by_document = rule.choice(&value).map(|choice| choice.promise);
        let finding = |better: Option<&str>, risk: &str, choice: Option<&Choice>| Finding {
            setting: rule.setting.to_owned(),
            value: value.clone(),
            at: set.map(|set| format!("{}:{}", set.file.display(), set.line)),
            better: better
                .filter(|better| !is_same(better, &value))
                .map(str::to_owned),
            risk: risk.to_owned(),
            gain: choice.and_then(|choice| choice.gain.clone()),
            proof: choice.and_then(|choice| choice.proof.clone()),
            evidence: advised
                .zip(choice)
                .map_or_else(String::new, |(setting, choice)| evidence(setting, choice)),
            by_hand: rule.by_hand.to_owned(),
            document: rule.source.title.to_owned(),
            address: rule.source.address.to_owned(),
        };
        let lost_here = known.is_some_and(|choice| choice.recommendation == Recommendation::Unsafe);
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
        let lacking = rule.lacking(&value, get);
        let is_unsafe = by_document.is_some_and(|promise| promise.is_unsafe());
        if let (true, None) = (rule.is_about_durability(), by_document) {
            check.not_known.push(finding(better, "", None));
        } else if !is_safe || (lost_here && !is_unsafe) {
            let risk = match by_document.map_or("", |promise| promise.risk()) {
                "" => match lacking {
                    Some(needs) => {
                        let (other, with) = (needs.setting, needs.one_of[0]);
                        format!("data, since it needs {other}={with}")
                    }
                    None => "data, whatever its documentation says".to_owned(),
                },
                risk => risk.to_owned(),
            };
            // What is advised may be that very value, with the other setting as it has to be; or lack one too.
            let better = better
                .filter(|better| !is_same(better, &value) && rule.lacking(better, get).is_none());
            let reference = match rule.reference().value {
                Value::Fixed(value) => Some(value),
                _ => None,
            };
            check
                .risks
                .push(finding(better.or(reference), &risk, known));
        } else if let (Some(better), Some(setting), Some(known)) = (better, advised, known)
            && !is_same(better, &value)
            && better != AN_HOUR
            && rule.by_hand.is_empty()
            && rule.lacking(better, get).is_none()
            && let Some(best) = setting.advised()
            && is_better(setting, best, known)
        {
            // What lost something may have done so without what makes it safe here.
            let known = Choice {
                proof: None,
                ..known.clone()
            };
            let shown = if setting.is_reference(best) {
                &known
            } else {
                best
            };
            let mut unused = finding(Some(better), "", Some(shown));
            if unused.evidence.is_empty() {
                unused.evidence.clone_from(&setting.because);
            }
            // What writes to a plain file did shows nothing of the system, nor do power cuts of such writes.
            let gain = unused.gain.as_ref();
            let is_of_writes = gain.is_some_and(|gain| gain.basis == Basis::Writes);
            if !is_of_writes && !unused.evidence.is_empty() {
                check.unused.push(unused);
            }
        }
    }
    check
}

/// Whether a value is better than another beyond doubt, or fits what was seen here, as the other does not.
fn is_better(setting: &Setting, best: &Choice, known: &Choice) -> bool {
    let times = |choice: &Choice| match &choice.gain {
        Some(gain) => gain.is_certain.then_some((gain.times.low, gain.times.high)),
        None => setting.is_reference(choice).then_some((1.0, 1.0)),
    };
    let fits = best.gain.is_none() && best.proof.is_none() && !setting.is_reference(best);
    match (times(best), times(known)) {
        _ if fits => true,
        (Some((low, _)), Some((_, high))) => low > high,
        _ => false,
    }
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
