//! Advice in words, the same in the terminal, the report and configuration files.

use super::change::Change;
use super::result::{Advice, Basis, Choice, Gain, Proof, Quantity, Setting};
use super::scope::Scope;
use crate::numbers::{NOTHING, interval, short, thousands};
use crate::rules::System;

/// Settings that a sentence names.
const MOST_NAMED: usize = 4;
/// What stands where a system itself was not measured.
pub const NOT_MEASURED: &str = "not measured here";

/// What a value gives: `1.85 (1.48–2.03)`; that of writes to a plain file is no gain of a system, which does other things
/// besides.
pub fn gain_text(gain: Option<&Gain>) -> String {
    let Some(gain) = gain else {
        return NOTHING.to_owned();
    };
    if gain.basis == Basis::Writes {
        return NOT_MEASURED.to_owned();
    }
    let times = match gain.of {
        Quantity::Rate => Some(gain.times),
        // As people think of bytes: how many are left.
        Quantity::Bytes => gain.times.inverse(),
    };
    // Of nothing there is no share.
    let Some(times) = times else {
        return "cannot be told".to_owned();
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
    format!("{} ({spread}){unit}", short(times.median))
}

/// In how many crash states something was lost: `6 of 29`; nothing if that was not tried.
pub fn proof_text(proof: Option<&Proof>) -> String {
    match proof {
        None => NOTHING.to_owned(),
        Some(proof) if !proof.is_evidence() => "not tried".to_owned(),
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

/// All that is known of a value, in one line: what it gives, and what was lost.
pub fn evidence(setting: &Setting, choice: &Choice) -> String {
    let measured = choice.gain.as_ref().and_then(|gain| speed(setting, gain));
    let proven = choice.proof.as_ref();
    let proven = proven.map(|proof| losses(setting.system, proof));
    let parts: Vec<String> = measured.into_iter().chain(proven).collect();
    parts.join("; ")
}

/// What a value gives against the one that all are held against; nothing where the system itself was not measured.
fn speed(setting: &Setting, gain: &Gain) -> Option<String> {
    let against = setting.choices.first()?.value.as_str();
    let times = gain_text(Some(gain));
    let text = match gain.of {
        Quantity::Rate => format!("{times} times as fast as {against}"),
        Quantity::Bytes => format!("writes {times} for each byte of {against}"),
    };
    let like = match gain.basis {
        Basis::System => "",
        Basis::Alike => "in a system that works alike: ",
        Basis::Writes => return None,
    };
    Some(format!("{text} ({like}{})", gain.measured))
}

/// What power cuts did to a system: `lost in 6 of 29 power cuts`.
pub fn losses(system: System, proof: &Proof) -> String {
    let cuts = thousands(proof.states as f64);
    let lost = match (proof.losing, proof.untried) {
        (0, Some(what)) => format!("not tried: in {cuts} power cuts {}", what.unmet()),
        (0, None) => format!("lost nothing in {cuts} power cuts"),
        (losing, _) => format!("lost in {} of {cuts} power cuts", thousands(losing as f64)),
    };
    let of = match proof.basis {
        Basis::System => String::new(),
        // Landfall does not run MySQL.
        Basis::Alike if system == System::Mysql => {
            format!(" of MariaDB on {}", proof.filesystem_spec)
        }
        Basis::Alike => format!(" on {}", proof.filesystem_spec),
        Basis::Writes => " of plain writes of this kind".to_owned(),
    };
    lost + &of
}

/// What the marks of these figures and proofs mean, as far as there are any; empty if there are none.
pub fn marks<'a>(choices: impl IntoIterator<Item = &'a Choice>) -> String {
    let known: Vec<Basis> = choices
        .into_iter()
        .flat_map(|choice| {
            // What is only of writes is not shown as a gain.
            let gain = choice.gain.as_ref().map(|gain| gain.basis);
            let gain = gain.filter(|basis| *basis != Basis::Writes);
            [gain, choice.proof.as_ref().map(|proof| proof.basis)]
        })
        .flatten()
        .collect();
    legend(&known)
}

/// What the marks of proofs and figures of this kind mean; empty if they have none.
pub fn legend(known: &[Basis]) -> String {
    let there = [Basis::Writes, Basis::Alike].into_iter();
    let there = there.filter(|basis| known.contains(basis));
    let marks: Vec<String> = there
        .map(|basis| format!("{} {}.", basis.mark(), basis.meaning()))
        .collect();
    marks.join(" ")
}

/// What all of it comes to for these systems, what is not safe first; nothing where there is no advice.
pub fn sentence(advice: &Advice, scope: &Scope) -> Option<String> {
    if !advice.settings.iter().any(|one| scope.has(one.system)) {
        return None;
    }
    let changes = advice.changes(scope);
    let (unsafe_ones, others): (Vec<&Change<'_>>, Vec<&Change<'_>>) =
        changes.iter().partition(|change| change.to.is_none());
    let (headlines, by_hand): (Vec<&Change<'_>>, Vec<&Change<'_>>) = others
        .into_iter()
        .partition(|change| change.is_about_safety() || change.setting.by_hand.is_empty());
    let mut said = Vec::new();
    if !unsafe_ones.is_empty() {
        said.push(format!("No value is safe here of {}.", named(&unsafe_ones)));
    }
    if !headlines.is_empty() {
        said.push(format!(
            "Where you run these, change the defaults: {}.",
            named(&headlines)
        ));
    }
    // What is only faster, and must not be changed on a server that has data, is no headline beside others.
    if said.is_empty() && !by_hand.is_empty() {
        said.push(format!(
            "On a new server change the defaults: {}.",
            named(&by_hand)
        ));
    }
    if said.is_empty() {
        said.push("All defaults that were looked at are right for this disk.".to_owned());
    }
    Some(said.join(" "))
}

/// The first of these changes, each with its systems, and how many more there are.
fn named(changes: &[&Change<'_>]) -> String {
    // What is the same in several systems is said once.
    let mut named: Vec<(String, Vec<&str>)> = Vec::new();
    for change in changes {
        let text = match change.to {
            Some(value) => format!("{}={value}", change.setting.setting),
            None => change.setting.setting.clone(),
        };
        let system = change.setting.system.name();
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
        .map(|(text, systems)| format!("{text} ({})", systems.join(", ")))
        .collect();
    named.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::{advise, fixtures::recorded};

    #[test]
    fn a_setting_without_a_safe_value_is_not_called_right() {
        let mut advice = advise(&recorded("disk"), "landfall-report", None);
        let rules = ["mariadb-log-at-commit", "mariadb-page-size"];
        let keep = |advice: &mut Advice, rule: &str| {
            advice.settings.retain(|setting| setting.rule == rule);
            assert_eq!(advice.settings.len(), 1, "{rule}");
        };
        let scope = Scope::named(&[System::Mariadb]);
        let said = |advice: &Advice| sentence(advice, &scope).unwrap_or_default();
        let mut pages = advice.clone();
        keep(&mut pages, rules[1]);
        assert_eq!(
            said(&pages),
            "On a new server change the defaults: innodb_page_size=4K (MariaDB)."
        );
        keep(&mut advice, rules[0]);
        assert_eq!(
            said(&advice),
            "All defaults that were looked at are right for this disk."
        );
        advice.settings[0].value = None;
        advice.settings[0].is_default = false;
        advice.settings.extend(pages.settings);
        assert_eq!(
            said(&advice),
            "No value is safe here of innodb_flush_log_at_trx_commit (MariaDB)."
        );
    }
}
