//! What to change: settings whose usual value is not the one that is advised, with what that gives and what it mends.

use super::result::{Advice, Basis, Gain, Proof, Quantity, Setting};
use super::scope::Scope;
use crate::rules::{self, Rule, System, is_same};

/// A setting to be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    /// What is known of the setting.
    pub setting: &'a Setting,
    /// Its value where nobody sets it.
    pub from: &'static str,
    /// The value that is advised; absent where each of them lost something.
    pub to: Option<&'a str>,
    /// How many times as fast that is; absent where the system itself was not measured, with enough rounds.
    pub gain: Option<Gain>,
    /// What the usual value may lose; empty if nothing.
    pub risk: &'a str,
    /// What power cuts did to the usual value.
    pub proof: Option<&'a Proof>,
}

impl Setting {
    /// The rule that it comes from.
    fn rule(&self) -> Option<&'static Rule> {
        rules::all().find(|rule| rule.id == self.rule)
    }

    /// What is to be changed of it, if its usual value is not what is advised.
    pub fn change(&self) -> Option<Change<'_>> {
        if self.is_default {
            return None;
        }
        let from = self.rule()?.default;
        let usual = self
            .choices
            .iter()
            .find(|choice| is_same(&choice.value, from));
        Some(Change {
            setting: self,
            from,
            to: self.value.as_deref(),
            gain: self.gain_over(from),
            risk: usual.map_or("", |usual| usual.risk.as_str()),
            proof: usual.and_then(|usual| usual.proof.as_ref()),
        })
    }

    /// What the advised value gives against the usual one, if one of them is what all are held against.
    fn gain_over(&self, usual: &str) -> Option<Gain> {
        let first = self.choices.first()?;
        let advised = self.advised()?;
        let of_system = |gain: &Gain| gain.is_certain && gain.basis != Basis::Writes;
        let gain = if is_same(&first.value, usual) {
            advised.gain.clone()
        } else if is_same(&first.value, &advised.value) {
            let usual = self
                .choices
                .iter()
                .find(|choice| is_same(&choice.value, usual));
            let gain = usual?.gain.clone()?;
            let times = gain.times.inverse()?;
            Some(Gain { times, ..gain })
        } else {
            None
        };
        gain.filter(of_system)
    }
}

impl Change<'_> {
    /// Whether it mends something: the usual value may lose data, or did.
    pub fn is_about_safety(&self) -> bool {
        !self.risk.is_empty() || self.proof.is_some_and(|proof| proof.losing > 0)
    }
}

impl Advice {
    /// What to change of these systems: first what may lose data, then what is faster, and last what is faster and cannot be changed
    /// on a server that has data.
    pub fn changes(&self, scope: &Scope) -> Vec<Change<'_>> {
        let settings = self
            .settings
            .iter()
            .filter(|setting| scope.has(setting.system));
        let mut changes: Vec<Change<'_>> = settings.filter_map(Setting::change).collect();
        changes.sort_by_key(|change| {
            let is_about_safety = change.is_about_safety();
            (
                !is_about_safety,
                !is_about_safety && !change.setting.by_hand.is_empty(),
            )
        });
        changes
    }

    /// The settings of a system whose usual value is the advised one; first those that bear on durability.
    pub fn right(&self, system: System) -> Vec<&Setting> {
        let mut right: Vec<&Setting> = self
            .of(system)
            .filter(|setting| setting.is_default)
            .collect();
        let bears = |setting: &&Setting| setting.rule().is_some_and(Rule::is_about_durability);
        right.sort_by_key(|setting| !bears(setting));
        right
    }
}

impl Gain {
    /// Whether it is of bytes that reach the device, and not of speed.
    pub fn is_of_bytes(&self) -> bool {
        self.of == Quantity::Bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::{advise, fixtures::recorded};

    #[test]
    fn a_change_says_what_it_mends_and_what_it_costs() {
        let advice = advise(&recorded("disk"), "landfall-report", None);
        let scope = Scope::named(&[System::Mariadb, System::Sqlite]);
        let changes = advice.changes(&scope);
        let of = |setting: &str| {
            let mut changes = changes.iter();
            changes
                .find(|change| change.setting.setting == setting)
                .unwrap()
        };
        let binlog = of("sync_binlog");
        assert_eq!((binlog.from, binlog.to), ("0", Some("1")));
        assert!(binlog.proof.unwrap().losing > 0 && !binlog.risk.is_empty());
        // What is given up by the safe value is the inverse of what the other one gave.
        let times = &binlog.gain.as_ref().unwrap().times;
        assert!(times.low < times.median && times.median < 1.0, "{times:?}");
        assert_eq!(of("journal_mode").from, "delete");
        // A page size cannot be changed, so it comes last.
        let last = changes.last().unwrap();
        assert_eq!(last.setting.setting, "innodb_page_size");
        assert!(last.gain.as_ref().unwrap().is_of_bytes());
        let right = advice.right(System::Mariadb);
        assert_eq!(right[0].setting, "innodb_flush_log_at_trx_commit");
        assert!(right.iter().all(|setting| setting.change().is_none()));
    }

    /// Writes to a plain file bound what a disk can make of a setting; no database was measured.
    #[test]
    fn writes_to_a_file_are_no_gain_of_a_database() {
        let advice = advise(&recorded("ext4"), "landfall-report", None);
        let changes = advice.changes(&Scope::of(System::ALL));
        let is_of_writes = |change: &Change<'_>| {
            let mut choices = change.setting.choices.iter();
            choices.any(|choice| {
                let gain = choice.gain.as_ref();
                gain.is_some_and(|gain| gain.basis == Basis::Writes)
            })
        };
        let of_writes: Vec<_> = changes.iter().filter(|one| is_of_writes(one)).collect();
        assert!(!of_writes.is_empty());
        assert!(of_writes.iter().all(|change| change.gain.is_none()));
    }
}
