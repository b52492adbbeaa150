//! What power cuts did to a value: in proofs of the system in which nothing else loses anything, and of such writes
//! to a plain file.

use super::{Evidence, alike, option_of};
use crate::advice::result::{Basis, Proof};
use crate::advice::subject;
use crate::rules::{self, Choice, Rule, System, is_same};
use crate::sync::safety::way;
use crate::sync::{SyncResults, find};
use crate::torn::{TornProof, TornResults};
use landfall_results::FilesystemSpec;
use landfall_results::proof::{
    Exercised, Hazard, Outcome, ProofResults, SubjectName, Violation, has_tried,
};

/// What would happen by chance no oftener than this is no chance.
const CHANCE: f64 = 0.05;
/// The model of crash states in which any write may be missing that was not flushed.
const EVERY_KIND: &str = "subset";
/// Bytes that any disk writes whole or not at all.
const SECTOR: u64 = 512;

impl Evidence<'_> {
    /// What power cuts did to the system with the rule's setting at this value, and no other that loses
    /// anything; or to one that works alike.
    pub fn proof(&self, rule: &Rule, choice: &Choice, value: &str) -> Option<Proof> {
        let direct = self.system_proof(rule, value);
        let alike = || {
            let (other, _) = alike(rule, choice)?;
            let proof = self.system_proof(other, value)?;
            Some(Proof {
                basis: Basis::Alike,
                ..proof
            })
        };
        direct.or_else(alike).or_else(|| {
            // What was lost counts, whether the newest run measured it or not.
            let all = &self.results.first::<SyncResults>()?.series;
            let series = find(all, &choice.write?)?;
            let proof = series.proof.as_ref()?;
            let counts = series.is_measured() || proof.losing > 0;
            (proof.not_proven.is_none() && proof.states > 0 && counts).then(|| Proof {
                subject: way(series),
                filesystem_spec: proof.filesystem_spec.clone(),
                states: proof.states,
                losing: proof.losing,
                basis: Basis::Writes,
                untried: None,
            })
        })
    }

    fn system_proof(&self, rule: &Rule, value: &str) -> Option<Proof> {
        let promised = self.untorn_bytes(rule.system).max(SECTOR);
        // What rests on a promise of the device is tried on a disk that keeps it.
        let least = rule.untorn().unwrap_or(0);
        let sound = |proof: &&ProofResults| {
            proof.faults.is_empty()
                // What three of them kept together says nothing of one; of a broker, whose rules are on clusters, it does.
                && (proof.cluster.is_some() == (rule.system == System::Nats))
                && (least..=promised).contains(&proof.atomic_bytes)
                && proof.outcome() != Outcome::NotProven
                // A part that lost nothing says nothing of the rest; nor do states in which no write is missing, or one alone.
                && (is_whole(proof) || lost(rule, proof) > 0)
        };
        let proofs = self.results.proofs().filter(sound);
        let proofs =
            proofs.filter(|proof| speaks_of(rule, value, &proof.subject, &proof.filesystem_spec));
        let of_proofs = proofs.map(|proof| Found {
            subject: &proof.subject,
            proof: Proof {
                subject: proof.subject.to_string(),
                filesystem_spec: proof.filesystem_spec.clone(),
                states: proof.coverage.checked,
                losing: lost(rule, proof),
                basis: Basis::System,
                untried: untried(rule, &proof.exercised),
            },
        });
        let torn = self
            .results
            .all::<TornResults>()
            .flat_map(|torn| &torn.proofs);
        let torn = torn.filter(|proof| proof.not_proven.is_none() && proof.states > 0);
        let torn = torn.filter(|_| least == 0);
        let lost_of = |proof: &TornProof| proof.losing.max(proof.damaged).max(proof.wrong);
        let torn = torn.filter(|proof| proof.model == EVERY_KIND || lost_of(proof) > 0);
        let of_torn = torn
            .filter(|proof| speaks_of(rule, value, &proof.subject, &proof.filesystem_spec))
            .map(|proof| Found {
                subject: &proof.subject,
                proof: Proof {
                    subject: proof.subject.to_string(),
                    filesystem_spec: proof.filesystem_spec.clone(),
                    states: proof.states,
                    losing: lost_of(proof),
                    basis: Basis::System,
                    untried: untried(rule, &proof.exercised),
                },
            });
        let mut all: Vec<Found<'_>> = of_proofs.chain(of_torn).collect();
        // A proof on another filesystem says nothing of this one; and what was lost on one that is mounted as this one
        // is not excused by another way to mount it.
        let closeness = |one: &Found<'_>| self.closeness(rule, &one.proof.filesystem_spec);
        all.retain(|one| closeness(one).0);
        let nearest = all.iter().map(closeness).max();
        all.retain(|one| Some(closeness(one)) == nearest);
        if nearest.is_some_and(|(_, is_mounted_alike)| !is_mounted_alike) {
            all.iter_mut()
                .for_each(|one| one.proof.basis = Basis::Alike);
        }
        // What did not meet what the setting protects from says something only where nothing else does.
        if all.iter().any(|one| one.proof.is_evidence()) {
            all.retain(|one| one.proof.is_evidence());
        }
        let losing: Vec<(Tested, f64)> = all
            .iter()
            .filter(|one| one.proof.losing > 0)
            .map(|one| {
                let share = one.proof.losing as f64 / one.proof.states as f64;
                (tested(rule.system, one), share)
            })
            .collect();
        // What lost something once is not made safe by having lost nothing another time. But where it lost nothing
        // with another setting beside it, that one was to blame, unless that may well be chance.
        let is_safe = |one: &Found<'_>| {
            let own = tested(rule.system, one);
            losing.iter().all(|(other, share)| {
                let by_chance = (1.0 - share).powf(one.proof.states as f64);
                own != *other && by_chance < CHANCE
            })
        };
        all.into_iter()
            .map(|one| (is_safe(&one), one.proof))
            .max_by_key(|(is_safe, proof)| (*is_safe, proof.losing > 0, proof.states))
            .map(|(_, proof)| proof)
    }
}

/// Whether it tried every kind of crash state, and not a part of them.
fn is_whole(proof: &ProofResults) -> bool {
    proof.shard.is_none() && proof.model == EVERY_KIND && proof.coverage.planned > 1
}

/// A proof, and what it was of.
struct Found<'a> {
    subject: &'a SubjectName,
    proof: Proof,
}

/// The values of a system's settings, by which proofs are of one thing or of several.
type Tested = Vec<Option<String>>;

/// What a proof was of: each setting that there are rules about, as it was set or is unless set.
fn tested(system: System, found: &Found<'_>) -> Tested {
    let filesystem = &found.proof.filesystem_spec;
    let value = |name: &str| {
        let own = subject::value(found.subject, name);
        let usual = || {
            let rule = rules::of(system).find(|rule| rule.setting == name)?;
            rule.idle_with.is_none().then_some(rule.default)
        };
        own.or_else(usual).map(str::to_ascii_lowercase)
    };
    let names = rules::names(system);
    let settings = names.into_iter().map(value);
    // A mount option counts as a setting does.
    let mounted =
        rules::of_mounting(filesystem.kind.name()).map(|rule| option_of(filesystem, rule.setting));
    settings.chain(mounted).collect()
}

/// What the setting protects from, unless crash states are known to have fallen into it.
fn untried(rule: &Rule, exercised: &[Exercised]) -> Option<Hazard> {
    rule.protects_from
        .filter(|what| has_tried(exercised, *what) != Some(true))
}

/// States in which a proof lost or damaged something that the rule is about. That replicas part from their master is
/// what a binary log's setting is about, and no other.
fn lost(rule: &Rule, proof: &ProofResults) -> u64 {
    if rule.setting == "sync_binlog" {
        return proof.failing_states;
    }
    let others = proof.violations.iter();
    let others = others.filter(|count| count.violation != Violation::Diverged);
    let most = others.map(|count| count.states).max().unwrap_or(0);
    most.max(proof.losing_states)
}

/// Whether a proof of this subject says what the setting loses at this value: its own, and not another's.
fn speaks_of(rule: &Rule, value: &str, subject: &SubjectName, filesystem: &FilesystemSpec) -> bool {
    let get = |key: &str| subject::value(subject, key);
    // Not what another mount option lost.
    let is_plain = rules::of_mounting(filesystem.kind.name())
        .filter(|mount| mount.setting != rule.setting)
        .all(|mount| {
            let own = option_of(filesystem, mount.setting);
            own.is_none_or(|own| mount.is_safe(&own, |_| None))
        });
    if rule.system == System::Mount {
        let is_safe = System::ALL
            .into_iter()
            .find(|system| system.key() == subject.name)
            .is_none_or(|system| rules::are_safe(system, None, get));
        let own = option_of(filesystem, rule.setting);
        return is_safe
            && is_plain
            && subject::is_meant_to_be_durable(subject)
            && own.is_some_and(|own| is_same(&own, value));
    }
    let own = get(rule.setting);
    // What hangs on another setting was not there at all.
    let usual = rule.idle_with.is_none().then_some(rule.default);
    let own = own.or(usual);
    subject::is_of(subject, rule)
        && is_plain
        && own.is_some_and(|own| is_same(own, value))
        && rules::are_safe(rule.system, Some(rule), get)
}
