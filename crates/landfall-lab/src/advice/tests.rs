//! Every rule against recorded results: that it speaks where it should, what it then says, and that it is silent
//! where it should be.

use std::collections::{BTreeMap, BTreeSet};

use super::fixtures::recorded;
use super::*;
use crate::Found;
use crate::advice::check::check;
use crate::advice::fragment::fragment;
use crate::amplify::AmplifyResults;
use crate::config_file::ConfigFile;
use crate::rules::{Promise, Value};
use crate::sync::SyncResults;
use landfall_results::metric::Figures;
use landfall_results::proof::Hazard;
use landfall_results::proof::fixtures::exercised;
use landfall_results::{KindOfRequest, Metric, Series};

fn advice_on(name: &str) -> Advice {
    advise(&recorded(name), "landfall-report", None)
}

/// A rule, a recording in which it speaks with the value that it then advises, and one in which it does not.
struct Case {
    rule: &'static str,
    speaks_in: &'static str,
    advises: &'static str,
    silent_in: &'static str,
}

const fn case(
    rule: &'static str,
    speaks_in: &'static str,
    advises: &'static str,
    silent_in: &'static str,
) -> Case {
    Case {
        rule,
        speaks_in,
        advises,
        silent_in,
    }
}

#[rustfmt::skip]
static CASES: &[Case] = &[
    case("mariadb-log-at-commit", "disk", "1", "unmeasured"),
    case("mariadb-sync-binlog", "disk", "1", "unmeasured"),
    case("mariadb-commit-wait", "disk", "0", "spinning"),
    case("mariadb-doublewrite", "disk", "ON", "untorn"),
    case("mariadb-doublewrite-untorn", "untorn", "ON", "disk"),
    case("mariadb-flush-method", "disk", "O_DIRECT", "unmeasured"),
    case("mariadb-log-write-through", "ext4", "OFF", "unmeasured"),
    case("mariadb-flush-neighbors", "disk", "1", "ext4"),
    case("mariadb-io-capacity", "spinning", "-", "disk"),
    case("mariadb-redo-size", "disk", "96M", "ext4"),
    case("mariadb-dirty-pages", "disk", "90", "ext4"),
    case("mariadb-page-size", "disk", "4K", "ext4"),
    case("mysql-log-at-commit", "disk", "1", "unmeasured"),
    case("mysql-sync-binlog", "ext4", "1", "unmeasured"),
    case("mysql-doublewrite", "disk", "ON", "untorn"),
    case("mysql-doublewrite-untorn", "untorn", "ON", "disk"),
    case("mysql-flush-method", "disk", "-", "unmeasured"),
    case("mysql-use-fdatasync", "disk", "-", "unmeasured"),
    case("mysql-io-capacity", "spinning", "-", "disk"),
    case("mysql-redo-size", "disk", "100M", "ext4"),
    case("mysql-dirty-pages", "disk", "90", "ext4"),
    case("mysql-page-size", "disk", "4K", "ext4"),
    case("myrocks-log-at-commit", "disk", "1", "unmeasured"),
    // Its log and the binary log parted in some state, whatever was set.
    case("myrocks-sync-binlog", "disk", "-", "unmeasured"),
    case("myrocks-wal-recovery-mode", "disk", "2", "ext4"),
    case("postgres-fsync", "disk", "on", "unmeasured"),
    case("postgres-synchronous-commit", "disk", "on", "unmeasured"),
    case("postgres-wal-sync-method", "disk", "-", "unmeasured"),
    case("postgres-wal-recycle", "disk", "on", "btrfs"),
    case("postgres-wal-init-zero", "disk", "on", "btrfs"),
    case("postgres-wal-recycle-copy-on-write", "btrfs", "-", "ext4"),
    case("postgres-wal-init-zero-copy-on-write", "btrfs", "-", "ext4"),
    case("postgres-commit-delay", "disk", "-", "spinning"),
    case("postgres-full-page-writes", "disk", "on", "ext4"),
    case("postgres-max-wal-size", "disk", "-", "ext4"),
    case("sqlite-journal-mode", "disk", "wal", "ext4"),
    case("sqlite-synchronous", "disk", "full", "unmeasured"),
    case("rocksdb-sync", "disk", "yes", "unmeasured"),
    case("rocksdb-recycle-log", "disk", "4", "unmeasured"),
    case("redis-appendonly", "disk", "yes", "unmeasured"),
    case("redis-appendfsync", "disk", "always", "unmeasured"),
    case("redis-no-appendfsync-on-rewrite", "disk", "no", "unmeasured"),
    case("etcd-fsync", "disk", "false", "unmeasured"),
    case("etcd-slow-disk", "spinning", "a faster disk", "disk"),
    case("kafka-flush-messages", "disk", "unset", "unmeasured"),
    case("nats-sync-interval", "disk", "always", "unmeasured"),
    case("landfall-log", "ext4", "Options::default()", "unmeasured"),
    case("landfall-state", "disk", "Policy::EveryCommit", "unmeasured"),
    case("landfall-store-policy", "disk", "every-commit", "unmeasured"),
    case("landfall-store-protection", "disk", "shadow", "ext4"),
    case("landfall-store-protection-untorn", "untorn", "shadow", "disk"),
    case("mount-barrier", "ext4", "1", "btrfs"),
    case("mount-data", "disk", "ordered", "xfs"),
    case("mount-fast-commit", "disk", "off", "xfs"),
    case("mount-journal", "no-journal", "on", "disk"),
    case("mount-nobarrier-btrfs", "btrfs", "off", "ext4"),
    case("mount-nodatacow", "btrfs", "off", "ext4"),
];

#[test]
fn every_rule_speaks_in_one_recording_and_is_silent_in_another() {
    for rule in rules::all() {
        let cases = CASES.iter().filter(|case| case.rule == rule.id);
        // What nobody can try here is said of a configuration that has it, and of nothing else.
        let is_of_files_alone = rule.choices.iter().all(|choice| !choice.is_tried);
        let expected = usize::from(!is_of_files_alone);
        assert_eq!(cases.count(), expected, "{} has one case", rule.id);
    }
    // Many cases are of the same recordings.
    let recordings: BTreeSet<&str> = CASES
        .iter()
        .flat_map(|case| [case.speaks_in, case.silent_in])
        .collect();
    let advice: BTreeMap<&str, Advice> = recordings
        .into_iter()
        .map(|name| (name, advice_on(name)))
        .collect();
    for case in CASES {
        let spoken = &advice[case.speaks_in];
        let said = spoken.settings.iter().find(|said| said.rule == case.rule);
        let said = said.unwrap_or_else(|| panic!("{} is silent in {}", case.rule, case.speaks_in));
        if case.advises != "-" {
            let value = said.value.as_deref();
            assert_eq!(value, Some(case.advises), "{}", case.rule);
        }
        let silent = &advice[case.silent_in];
        let speaks = silent.settings.iter().any(|said| said.rule == case.rule);
        assert!(!speaks, "{} speaks in {}", case.rule, case.silent_in);
    }
}

#[test]
fn every_rule_can_be_held_against_its_document() {
    let mut ids: Vec<&str> = rules::all().map(|rule| rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rules::all().count(), "names are unique");
    for rule in rules::all() {
        assert!(!rule.source.title.is_empty(), "{}", rule.id);
        let own = rule.source.address.starts_with("crates/landfall/docs/");
        assert!(
            own || rule.source.address.starts_with("https://"),
            "{}",
            rule.id
        );
        assert!(rule.choices.len() > 1, "{}", rule.id);
        let reference = rule.reference();
        assert!(!reference.promise.is_unsafe(), "{}", rule.id);
        assert!(matches!(reference.value, Value::Fixed(_)), "{}", rule.id);
        for choice in rule.choices {
            let planned = crate::sync::Plan::standard().strategies;
            let is_planned = choice.write.is_none_or(|write| planned.contains(&write));
            assert!(is_planned, "{}", rule.id);
            let is_replicated = matches!(choice.promise, Promise::Replicated(_));
            let risk = choice.promise.risk();
            assert_eq!(
                risk.is_empty(),
                !choice.promise.is_unsafe() && !is_replicated
            );
        }
    }
}

#[test]
fn what_is_not_durable_gets_no_advice_but_that() {
    for name in ["memory", "no-barrier"] {
        let advice = advice_on(name);
        assert!(advice.refused.is_some(), "{name}");
        assert!(
            advice.settings.is_empty() && advice.missing.is_empty(),
            "{name}"
        );
        let text = fragment(&advice, System::Mariadb).unwrap();
        assert!(text.contains("No setting is advised"), "{text}");
        assert!(text.lines().all(|line| line.starts_with('#')), "{text}");
    }
}

#[test]
fn what_is_unsafe_is_never_advised_whatever_it_gives() {
    for name in ["disk", "ext4", "btrfs", "spinning", "untorn"] {
        for setting in advice_on(name).settings {
            let rule = rules::all().find(|rule| rule.id == setting.rule).unwrap();
            let unsafe_ones = rule
                .choices
                .iter()
                .filter(|choice| choice.promise.is_unsafe());
            for choice in unsafe_ones {
                let Value::Fixed(value) = choice.value else {
                    continue;
                };
                assert_ne!(
                    setting.value.as_deref(),
                    Some(value),
                    "{} in {name}",
                    rule.id
                );
                let known = setting.choices.iter().find(|known| known.value == value);
                assert!(known.is_none_or(|known| known.recommendation == Recommendation::Unsafe));
            }
        }
    }
}

#[test]
fn what_lost_data_here_is_not_advised_whatever_its_document_says() {
    let mut results = recorded("disk");
    let sync = results.experiments.iter_mut().find_map(|one| match one {
        crate::Found::Sync(sync) => Some(sync),
        _ => None,
    });
    for strategy in &mut sync.unwrap().series {
        if let Some(proof) = strategy
            .proof
            .as_mut()
            .filter(|_| strategy.key == "overwrite/fsync/8K")
        {
            proof.losing = 3;
        }
    }
    results
        .experiments
        .retain(|one| !matches!(one, crate::Found::Prove(_)));
    let advice = advise(&results, "r", None);
    let method = advice
        .settings
        .iter()
        .find(|one| one.rule == "postgres-wal-sync-method")
        .unwrap();
    let fsync = method
        .choices
        .iter()
        .find(|one| one.value == "fsync")
        .unwrap();
    assert_eq!(fsync.recommendation, Recommendation::Unsafe);
    assert_ne!(method.value.as_deref(), Some("fsync"));
}

#[test]
fn a_proof_speaks_of_its_own_setting_only() {
    let advice = advice_on("disk");
    let of = |rule: &str, value: &str| {
        let setting = advice.settings.iter().find(|one| one.rule == rule).unwrap();
        let choice = setting
            .choices
            .iter()
            .find(|one| one.value == value)
            .unwrap();
        choice.proof.clone().unwrap()
    };
    // With sync_binlog=0 something was lost, and not because of the redo log.
    let proof = of("mariadb-log-at-commit", "1");
    assert!(
        proof.basis == Basis::System && proof.losing == 0,
        "{proof:?}"
    );
    assert!(of("mariadb-sync-binlog", "0").losing > 0);
    assert_eq!(of("mariadb-sync-binlog", "0").basis, Basis::System);
    assert_eq!(of("mariadb-sync-binlog", "1").losing, 0);
    assert!(of("mariadb-log-at-commit", "2").losing > 0);
    assert!(of("sqlite-journal-mode", "delete").losing > 0);
    assert!(of("redis-appendfsync", "everysec").losing > 0);
    assert!(of("etcd-fsync", "true").losing > 0);
    assert_eq!(of("etcd-fsync", "true").basis, Basis::System);
    assert_eq!(of("etcd-fsync", "false").losing, 0);
    // What a mount option lost says nothing of a setting.
    assert!(of("mount-barrier", "0").losing > 0);
}

/// Each setting's choice of a value, as it is advised on these results.
fn proof_of(results: &Results, rule: &str, value: &str) -> Option<super::result::Proof> {
    let advice = advise(results, "landfall-report", None);
    let setting = advice.settings.iter().find(|one| one.rule == rule).unwrap();
    let mut choices = setting.choices.iter();
    choices
        .find(|one| one.value == value)
        .unwrap()
        .proof
        .clone()
}

#[test]
fn what_lost_nothing_without_a_missing_write_is_no_evidence() {
    let with = |change: fn(&mut landfall_results::proof::ProofResults)| {
        let mut results = recorded("disk");
        for one in &mut results.experiments {
            if let Found::Prove(proof) = one {
                change(proof);
            }
        }
        // They speak of it too.
        let is_other = |one: &Found| !matches!(one, Found::Torn(_));
        results.experiments.retain(is_other);
        results
    };
    let is_proven = |results: &Results| {
        let proof = proof_of(results, "mariadb-log-at-commit", "1");
        proof.is_some_and(|proof| proof.basis == Basis::System && proof.losing == 0)
    };
    assert!(is_proven(&with(|_| {})));
    let prefix = with(|proof| proof.model = "prefix".to_owned());
    let single = with(|proof| proof.coverage.planned = 1);
    for results in [prefix, single] {
        assert!(!is_proven(&results));
        // What was lost was lost.
        let proof = proof_of(&results, "mariadb-sync-binlog", "0").unwrap();
        assert!(proof.basis == Basis::System && proof.losing > 0);
    }
}

#[test]
fn what_a_protection_of_pages_lost_is_a_loss_though_no_page_is_damaged() {
    let mut results = recorded("disk");
    results
        .experiments
        .retain(|one| !matches!(one, Found::Prove(_)));
    let mut torn = crate::torn::fixtures::torn_results();
    for proof in &mut torn.proofs {
        (proof.damaged, proof.wrong, proof.losing) = (0, 0, 7);
    }
    results.experiments.push(Found::Torn(Box::new(torn)));
    let proof = proof_of(&results, "mariadb-doublewrite", "ON").unwrap();
    assert!(
        proof.basis == Basis::System && proof.losing == 7,
        "{proof:?}"
    );
}

#[test]
fn a_loss_is_not_excused_by_another_way_to_mount() {
    let mut results = recorded("disk");
    results.experiments.retain(|one| {
        matches!(one, crate::Found::Prove(proof) if proof.subject == "postgres".into())
            || matches!(one, crate::Found::Sync(_))
    });
    let mut proofs = results.experiments.iter().filter_map(|one| match one {
        crate::Found::Prove(proof) => Some(proof.clone()),
        _ => None,
    });
    let sound = proofs.next().unwrap();
    assert_eq!(sound.failing_states, 0);
    let mut elsewhere = sound.clone();
    elsewhere.filesystem_spec = "ext4,data=journal".parse().unwrap();
    let mut losing = sound.clone();
    (losing.failing_states, losing.losing_states) = (3, 3);
    results
        .experiments
        .retain(|one| matches!(one, crate::Found::Sync(_)));
    for proof in [losing, elsewhere] {
        results.experiments.push(crate::Found::Prove(proof));
    }
    let advice = advise(&results, "r", None);
    let fsync = advice
        .settings
        .iter()
        .find(|one| one.rule == "postgres-fsync");
    assert_eq!(fsync.unwrap().value, None, "{fsync:?}");
}

/// What three servers kept or lost together says nothing of one; NATS' rule is on three.
#[test]
fn a_cluster_s_proof_is_evidence_for_rules_on_clusters_alone() {
    let proof_of = |subject: landfall_results::proof::SubjectName,
                    system: System,
                    rule: &str,
                    value: &str| {
        let mut results = recorded("disk");
        let mut proofs = results.experiments.iter().filter_map(|one| match one {
            crate::Found::Prove(proof) if proof.subject == "postgres".into() => Some(proof.clone()),
            _ => None,
        });
        let mut proof = proofs.next().unwrap();
        proof.subject = subject;
        proof.cluster = Some(landfall_results::proof::ClusterCuts {
            nodes: 3,
            rolling: false,
            by_victims: Vec::new(),
            held: Vec::new(),
        });
        results
            .experiments
            .retain(|one| matches!(one, crate::Found::Sync(_)));
        results.experiments.push(crate::Found::Prove(proof));
        let advice = advise(&results, "r", None);
        let mut settings = advice.of(system);
        let setting = settings.find(|one| one.rule == rule).unwrap();
        let choice = setting.choices.iter().find(|one| one.value == value);
        // A strategy that writes alike may stand in.
        let proof = choice.unwrap().proof.as_ref();
        proof.is_some_and(|proof| proof.subject.contains("nodes=3"))
    };
    let named = |name: &str, set: &[(&str, &str)]| landfall_results::proof::SubjectName {
        name: name.to_owned(),
        settings: set
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    };
    let three = ("nodes", "3");
    let postgres = named("postgres", &[three, ("fsync", "on")]);
    let found = proof_of(postgres, System::Postgres, "postgres-fsync", "on");
    assert!(!found);
    for (proven, spoken_of, is_evidence) in [
        ("always", "always", true),
        ("always", "2m", false),
        ("2m", "2m", true),
    ] {
        let nats = named("nats", &[three, ("sync_interval", proven)]);
        let found = proof_of(nats, System::Nats, "nats-sync-interval", spoken_of);
        assert_eq!(found, is_evidence, "{proven} {spoken_of}");
    }
}

/// A losing proof's share says how many states without a loss would be no chance.
#[test]
fn a_loss_is_not_excused_by_few_states() {
    let of = |states: u64| {
        let mut results = recorded("disk");
        let is_of_it =
            |proof: &landfall_results::proof::ProofResults| proof.subject == "postgres".into();
        let mut proofs: Vec<_> = results
            .proofs()
            .filter(|one| is_of_it(one))
            .cloned()
            .collect();
        let mut losing = proofs.pop().unwrap();
        let mut beside = losing.clone();
        losing.coverage.checked = 200;
        (losing.failing_states, losing.losing_states) = (10, 10);
        beside.subject = "postgres wal_sync_method=fsync".to_owned().into();
        beside.coverage.checked = states;
        results
            .experiments
            .retain(|one| matches!(one, crate::Found::Sync(_)));
        for proof in [losing, beside] {
            results
                .experiments
                .push(crate::Found::Prove(Box::new(proof)));
        }
        let advice = advise(&results, "r", None);
        let mut settings = advice.of(System::Postgres);
        settings
            .find(|one| one.rule == "postgres-fsync")
            .unwrap()
            .value
            .clone()
    };
    assert_eq!(of(10), None);
    assert_eq!(of(100).as_deref(), Some("on"));
}

#[test]
fn a_filesystem_without_a_journal_is_proven_as_one() {
    let mut results = recorded("disk");
    results.filesystem.journal = Some(false);
    let advice = advise(&results, "r", None);
    let is_there = |rule: &str| advice.settings.iter().any(|one| one.rule == rule);
    assert!(!is_there("mount-data") && !is_there("mount-fast-commit"));
    let binlog = advice.of(System::Mariadb).nth(1).unwrap();
    let proof = binlog.choices[0].proof.as_ref().unwrap();
    assert_eq!(
        (proof.filesystem_spec.to_string().as_str(), proof.basis),
        ("ext4", Basis::Alike)
    );
    let mut commands = advice.missing.iter().map(|one| one.command.as_str());
    let of_journal = "sudo landfall prove mariadb --fs 'ext4,-O ^has_journal' --set sync_binlog=1 ";
    assert!(commands.any(|command| command.starts_with(of_journal)));
    let advice = advice_on("no-journal");
    let of = |rule: &str| advice.settings.iter().find(|one| one.rule == rule).unwrap();
    let journal = &of("mount-journal").choices[1];
    assert!(
        journal.recommendation == Recommendation::Unsafe
            && journal.proof.as_ref().unwrap().losing > 0
    );
    // What is lost without a journal is laid to no setting.
    assert_eq!(of("mariadb-sync-binlog").value.as_deref(), Some("1"));
}

/// What is marked so is not the system's own.
#[test]
fn what_mariadb_did_stands_in_for_mysql() {
    let advice = advice_on("disk");
    let setting = advice
        .of(System::Mysql)
        .find(|one| one.rule == "mysql-sync-binlog")
        .unwrap();
    let proof = setting.choices[1].proof.as_ref().unwrap();
    assert_eq!(proof.subject, "mariadb sync_binlog=0");
    assert!(proof.basis == Basis::Alike && proof.losing > 0);
    assert!(setting.is_default, "unlike MariaDB's");
    assert!(advice.missing.iter().all(|one| one.system != System::Mysql));
}

#[test]
fn what_is_missing_has_a_command_and_what_is_known_has_none() {
    let advice = advice_on("ext4");
    let commands: Vec<&str> = advice
        .missing
        .iter()
        .map(|one| one.command.as_str())
        .collect();
    assert!(commands.iter().any(|command| {
        command.starts_with("sudo landfall prove mariadb --fs ext4 --set sync_binlog=1 ")
    }));
    assert!(
        commands
            .iter()
            .any(|command| command.contains("lab binlog /srv/data --on dir --database postgres"))
    );
    let unmeasured = advice_on("unmeasured");
    assert!(unmeasured.missing.iter().any(|one| {
        one.command
            .starts_with("sudo landfall lab sync /srv/data --prove")
    }));
    let disk = advise(&torn(System::Mariadb, 3), "landfall-report", None);
    assert!(
        !disk
            .missing
            .iter()
            .any(|one| one.command.ends_with("landfall-report/prove-mariadb.json"))
    );
}

/// Where leaves are written elsewhere each time no protection is tried.
#[test]
fn a_protection_of_leaves_is_measured_and_proven_in_place() {
    let advice = advice_on("ext4");
    let commands = |what: Lack| {
        let store = advice.missing.iter();
        let store = store.filter(move |one| one.system == System::LandfallStore);
        let store = store.filter(move |one| one.what == what);
        store.map(|one| (one.settings.join(","), one.command.as_str()))
    };
    let json = |name: &str| format!("--no-report --json landfall-report/{name}.json");
    let measured: Vec<_> = commands(Lack::Measurement).collect();
    let torn = format!(
        "sudo landfall lab torn /srv/data --part landfall --latency none {}",
        json("torn-landfall")
    );
    assert_eq!(measured, [("protection".to_owned(), torn.as_str())]);
    let prove = |set: &str, name: &str| {
        let json = json(name);
        format!("sudo landfall prove landfall-store --fs ext4 --set in-place=yes{set} {json}")
    };
    let proven: Vec<_> = commands(Lack::Proof).collect();
    for (settings, set, name) in [
        ("policy,protection", "", "prove-landfall-store"),
        (
            "protection",
            " --set protection=none",
            "prove-landfall-store-protection-none",
        ),
    ] {
        let command = prove(set, name);
        let is_there = proven.contains(&(settings.to_owned(), command.as_str()));
        assert!(is_there, "{command} in {proven:#?}");
    }
    let mut all = proven.iter();
    assert!(all.all(|(_, command)| command.contains(" --set in-place=yes ")));
}

/// `lab torn` makes plain ext4, whatever the directory is on: advice on another filesystem would never hear of it.
#[test]
fn what_says_nothing_of_a_filesystem_is_not_asked_for() {
    let is_asked_for = |name: &str| {
        let mut missing = advice_on(name).missing.into_iter();
        missing.any(|one| one.command.contains(" lab torn "))
    };
    assert!(is_asked_for("ext4"));
    assert!(!is_asked_for("xfs") && !is_asked_for("no-journal"));
}

/// The disk, whose proofs of one system tore pages in so many states; nobody knows of the others.
fn torn(system: System, states: u64) -> Results {
    let mut results = recorded("disk");
    for one in &mut results.experiments {
        if let Found::Prove(proof) = one
            && proof.subject.name == system.key()
        {
            proof.exercised = vec![exercised(Hazard::PageTorn, 300, states, &[])];
        }
    }
    results
}

#[test]
fn a_proof_that_tore_no_page_says_nothing_of_what_protects_pages() {
    let of = |results: &Results, system: System, rule: &str| {
        let advice = advise(results, "landfall-report", None);
        let known = advice.settings.iter().find(|one| one.rule == rule).unwrap();
        let proof = known.choices[0].proof.clone().unwrap();
        let file = format!("landfall-report/prove-{}.json", system.key());
        let is_missing = advice.missing.iter().any(|one| {
            one.what == Lack::Proof
                && one.settings.contains(&known.setting)
                && one.command.ends_with(&file)
        });
        (summary_text::losses(system, &proof), is_missing)
    };
    for (system, rule) in [
        (System::Postgres, "postgres-full-page-writes"),
        (System::Mariadb, "mariadb-doublewrite"),
    ] {
        for unknown in [recorded("disk"), torn(system, 0)] {
            let (said, is_missing) = of(&unknown, system, rule);
            assert!(said.starts_with("not tried: in "), "{said}");
            assert!(
                said.ends_with("no page was torn while it was written over"),
                "{said}"
            );
            assert!(is_missing);
        }
        let (said, is_missing) = of(&torn(system, 3), system, rule);
        assert!(said.starts_with("lost nothing in "), "{said}");
        assert!(!is_missing);
    }
    // What was lost was lost, whatever was tried.
    let mut losing = recorded("disk");
    for one in &mut losing.experiments {
        if let Found::Prove(proof) = one
            && proof.subject == "postgres".into()
        {
            (proof.failing_states, proof.losing_states) = (3, 3);
        }
    }
    let (said, _) = of(&losing, System::Postgres, "postgres-full-page-writes");
    assert!(said.starts_with("lost in 3 of "), "{said}");
}

#[test]
fn a_value_is_not_advised_for_what_was_not_tried() {
    let advised = |states: u64| {
        let mut results = recorded("untorn");
        let of_it = results
            .proofs()
            .find(|one| one.subject.name == "mariadb" && one.failing_states == 0);
        let mut proof = of_it.unwrap().clone();
        proof.subject = "mariadb innodb_doublewrite=OFF".to_owned().into();
        proof.atomic_bytes = 16 << 10;
        proof.exercised = vec![exercised(Hazard::PageOverwritten, 300, states, &[])];
        let found = Found::Prove(Box::new(proof));
        results.experiments.push(found);
        let advice = advise(&results, "r", None);
        let known = advice
            .settings
            .iter()
            .find(|one| one.rule == "mariadb-doublewrite-untorn");
        let off = known.and_then(|known| known.choices.iter().find(|one| one.value == "OFF"));
        off.and_then(|off| off.proof.clone())
            .map(|proof| proof.is_evidence())
    };
    assert_eq!(advised(0), Some(false));
    assert_eq!(advised(40), Some(true));
}

/// Without the doublewrite buffer the device's promise holds only for pages that are written past the page cache.
#[test]
fn the_doublewrite_buffer_is_off_only_with_direct_writes() {
    let advice = advice_on("untorn");
    let risks = |text: &str| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("my.cnf");
        std::fs::write(&path, text).unwrap();
        let read = ConfigFile::read(System::Mariadb, &path).unwrap();
        let found = check(System::Mariadb, &path, &read, &advice);
        let sentences: Vec<String> = found.findings().map(|(.., sentence)| sentence).collect();
        (found.risks.len(), sentences.join("\n"))
    };
    let off = "[mysqld]\ninnodb_doublewrite=OFF\ninnodb_flush_method=";
    assert_eq!(risks(&format!("{off}O_DIRECT\n")).0, 0);
    let (count, said) = risks(&format!("{off}fsync\n"));
    assert_eq!(count, 1, "{said}");
    let needed = "innodb_doublewrite=OFF risks data, since it needs innodb_flush_method=O_DIRECT";
    assert!(said.contains(needed) && said.contains("; set ON"), "{said}");
    // Nor for pages that are larger than it.
    let (count, said) = risks(&format!("{off}O_DIRECT\ninnodb_page_size=64K\n"));
    assert_eq!(count, 1, "{said}");
    assert!(
        said.contains("since it needs innodb_page_size=16K"),
        "{said}"
    );
    for (size, is_safe) in [("16384", true), ("4k", true), ("32768", false)] {
        let found = risks(&format!("{off}O_DIRECT\ninnodb_page_size={size}\n"));
        assert_eq!(found.0 == 0, is_safe, "{size}: {}", found.1);
    }

    let rule = "mariadb-doublewrite-untorn";
    let written = |method: Option<&str>| {
        let mut advice = advice.clone();
        let is_method =
            |one: &Setting| one.system == System::Mariadb && one.setting == "innodb_flush_method";
        advice.settings.retain(|one| !is_method(one));
        let settings = advice.settings.iter_mut();
        let doublewrite = settings.into_iter().find(|one| one.rule == rule).unwrap();
        for choice in &mut doublewrite.choices {
            choice.recommendation = match choice.value.as_str() {
                "OFF" => Recommendation::Use,
                _ => Recommendation::NoGain,
            };
        }
        doublewrite.value = Some("OFF".to_owned());
        doublewrite.is_default = false;
        let other = method.map(|method| {
            let mut other = doublewrite.clone();
            other.rule = "mariadb-flush-method".to_owned();
            other.setting = "innodb_flush_method".to_owned();
            other.value = Some(method.to_owned());
            for choice in &mut other.choices {
                if choice.recommendation == Recommendation::Use {
                    choice.value = method.to_owned();
                }
            }
            other
        });
        advice.settings.extend(other);
        judge::withdraw_lacking(&mut advice.settings);
        let text = fragment(&advice, System::Mariadb).unwrap();
        let names = [
            "innodb_doublewrite",
            "innodb_flush_method",
            "innodb_page_size",
        ];
        let is_of = |line: &&str| names.iter().any(|name| line.starts_with(name));
        let lines: Vec<String> = text.lines().filter(is_of).map(str::to_owned).collect();
        lines
    };
    let direct = "innodb_flush_method = O_DIRECT";
    assert_eq!(written(None), ["innodb_doublewrite = OFF", direct]);
    assert_eq!(
        written(Some("O_DIRECT")),
        ["innodb_doublewrite = OFF", direct]
    );
    assert_eq!(
        written(Some("fsync")),
        ["innodb_doublewrite = ON", "innodb_flush_method = fsync"]
    );
}

/// A filesystem may promise by itself not to tear what asks for that: InnoDB does not ask.
#[test]
fn a_promise_of_the_filesystem_alone_is_none_for_writes_that_do_not_ask_for_it() {
    let speaks = |results: &Results, rule: &str| {
        let advice = advise(results, "landfall-report", None);
        advice.settings.iter().any(|setting| setting.rule == rule)
    };
    let untorn = recorded("untorn");
    let mut xfs = untorn.clone();
    xfs.filesystem.kind = "xfs".to_owned();
    xfs.filesystem.upper = None;
    let mut without = recorded("untorn");
    fn forget(filesystem: &mut landfall_os::Filesystem) {
        for device in &mut filesystem.devices {
            device.atomic_write_bytes = 0;
        }
        if let Some(upper) = &mut filesystem.upper {
            forget(upper);
        }
    }
    forget(&mut without.filesystem);
    for (results, is_promised) in [(&untorn, true), (&xfs, false), (&without, false)] {
        let evidence = super::evidence::Evidence {
            results,
            hour: None,
        };
        for system in [System::Mariadb, System::Mysql] {
            assert_eq!(evidence.untorn_bytes(system) > 0, is_promised);
        }
        assert_eq!(evidence.untorn_bytes(System::LandfallStore), 16 << 10);
    }
    assert!(speaks(&untorn, "mariadb-doublewrite-untorn"));
    assert!(!speaks(&without, "mariadb-doublewrite-untorn"));
}

/// A server that was told to keep a binary log, and no more, does not sync it: what that loses is no other setting's.
#[test]
fn a_binary_log_is_synced_as_is_usual_unless_something_else_is_said() {
    let value = |text: &str, key: &str| {
        let subject = text.to_owned().into();
        super::subject::value(&subject, key).map(str::to_owned)
    };
    let usual = Some("0".to_owned());
    assert_eq!(value("mariadb binlog=yes", "sync_binlog"), usual);
    assert_eq!(value("myrocks binlog=yes", "sync_binlog"), usual);
    assert_eq!(
        value("mariadb binlog=yes sync_binlog=1", "sync_binlog"),
        Some("1".to_owned())
    );
    assert_eq!(value("mariadb", "sync_binlog"), None);
}

#[test]
fn a_fragment_sets_what_is_advised_and_says_why() {
    let advice = advice_on("disk");
    for (system, line) in [
        (System::Mariadb, "sync_binlog = 1"),
        (System::Mysql, "sync_binlog = 1"),
        (System::Postgres, "full_page_writes = 'on'"),
        (System::Redis, "appendfsync always"),
        (System::Sqlite, "PRAGMA journal_mode = wal;"),
        (System::Etcd, "unsafe-no-fsync: false"),
        (System::Kafka, "# log.flush.interval.messages is not set"),
        (System::Nats, "sync_interval: always"),
        (System::Rocksdb, "sync=yes"),
        (System::Myrocks, "rocksdb_flush_log_at_trx_commit = 1"),
    ] {
        let text = fragment(&advice, system).unwrap();
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
        assert!(text.contains(" power cuts"), "{text}");
        let long = text.lines().find(|line| {
            line.chars().count() > 110 && !line.contains("landfall ") && !line.contains("https://")
        });
        assert_eq!(long, None);
    }
    assert!(fragment(&advice, System::Mount).is_none());
}

/// What is written is read back as it was meant, and found to be right.
#[test]
fn a_fragment_passes_its_own_check() {
    let advice = advice_on("disk");
    let directory = tempfile::tempdir().unwrap();
    for (system, name) in [
        (System::Mariadb, "mariadb.cnf"),
        (System::Mysql, "mysql.cnf"),
        (System::Postgres, "postgresql.conf"),
        (System::Redis, "redis.conf"),
        (System::Sqlite, "sqlite.sql"),
        (System::Etcd, "etcd.yml"),
        (System::Kafka, "server.properties"),
    ] {
        let path = directory.path().join(name);
        std::fs::write(&path, fragment(&advice, system).unwrap()).unwrap();
        let read = ConfigFile::read(system, &path).unwrap();
        let found = check(system, &path, &read, &advice);
        // What is to be set by hand is a comment in it.
        let by_hand = |one: &check::Finding| {
            let mut rules = rules::of(system).filter(|rule| rule.setting == one.setting);
            rules.any(|rule| !rule.by_hand.is_empty())
        };
        assert!(found.risks.iter().all(by_hand), "{name}: {:?}", found.risks);
        assert!(
            found.unused.iter().all(by_hand),
            "{name}: {:?}",
            found.unused
        );
        assert_eq!(found.not_known, [], "{name}");
        assert!(found.looked_at > 0, "{name}");
    }
}

#[test]
fn a_target_is_held_against_the_disk_and_its_flash() {
    let results = recorded("disk");
    let drive = Drive::default();
    let capacity = |text: &str| {
        let target = text.parse().unwrap();
        advise(&results, "r", Some((&target, &drive)))
            .capacity
            .unwrap()
    };
    let little = capacity("commits=5,size=1K,clients=4");
    assert_eq!(little.verdict, Verdict::Carries, "{little:?}");
    assert!(little.changes.is_empty(), "{:?}", little.changes);
    let much = capacity("commits=10000000,size=1K,clients=4");
    assert_eq!(much.verdict, Verdict::CannotCarry);
    assert!(much.changes.len() >= 3, "{:?}", much.changes);
    assert!(much.flash.iter().any(|flash| flash.years < 1.0));
    let together = capacity("commits=60000,size=200,clients=64");
    assert_eq!(together.verdict, Verdict::Together, "{together:?}");
    // What 64 KiB cost, the most that was measured, is no bound of a flush for eight times as much.
    let larger = capacity("commits=60000,size=8K,clients=64");
    assert_eq!(larger.verdict, Verdict::CannotBeTold, "{larger:?}");
    let said = larger.sentences.join(" ");
    assert!(
        said.contains("more than 64 KiB were not measured"),
        "{said}"
    );
    let reached = larger.together.unwrap();
    let inside = reached.low < 60_000.0 && 60_000.0 < reached.median;
    assert!(inside && reached.median < reached.high, "{reached:?}");
    // Nor is what clients reach with a flush each.
    let apart = capacity("commits=60000,size=64K,clients=64");
    assert_eq!(apart.verdict, Verdict::CannotBeTold, "{apart:?}");
    let most = capacity("commits=1000000,size=8K,clients=64");
    assert_eq!(most.verdict, Verdict::CannotCarry, "{most:?}");
    // Random pages wear more than a log, and half the bytes a day last twice as long.
    let [log, pages, ..] = little.flash.as_slice() else {
        panic!("{:?}", little.flash)
    };
    let worse = pages.amplification > log.amplification && pages.years < log.years;
    assert!(worse, "{log:?} {pages:?}");
    let half = capacity("commits=5,size=1K,clients=4,per-day=216000K");
    assert!((half.flash[0].years / log.years - 2.0).abs() < 0.01);
    let nobody = advise(&recorded("unmeasured"), "r", Some((&little.target, &drive)));
    assert_eq!(nobody.capacity.unwrap().verdict, Verdict::NotKnown);
}

#[test]
fn few_rounds_decide_nothing() {
    let mut results = recorded("spinning");
    let sync = results.experiments.iter_mut();
    let sync = sync.filter_map(|one| one.of_mut::<SyncResults>());
    for series in sync.flat_map(|one| &mut one.series) {
        series.trials.truncate(1);
        series.summarize();
    }
    let drive = Drive::default();
    for commits in [1, 1_000, 100_000_000] {
        let target: Target = format!("commits={commits},size=1K,clients=16")
            .parse()
            .unwrap();
        let advice = advise(&results, "r", Some((&target, &drive)));
        for rule in ["mariadb-io-capacity", "mysql-io-capacity", "etcd-slow-disk"] {
            assert!(advice.settings.iter().all(|one| one.rule != rule), "{rule}");
        }
        let capacity = advice.capacity.unwrap();
        assert_eq!(capacity.verdict, Verdict::CannotBeTold, "{capacity:?}");
        let said = &capacity.sentences[0];
        assert!(said.contains("in fewer than 5 rounds"), "{said}");
        // Counts are the same in each round.
        assert!(!capacity.flash.is_empty());
    }
}

/// Bytes that a commit of a KiB costs the device by what a database was measured to write, by its name.
fn costs_of_a_commit(results: &Results) -> BTreeMap<String, f64> {
    let target: Target = "commits=1,size=1K".parse().unwrap();
    let advice = advise(results, "r", Some((&target, &Drive::default())));
    let flash = advice.capacity.unwrap().flash.into_iter();
    let each = flash.map(|flash| (flash.what, flash.device_per_day / 86_400.0));
    each.collect()
}

#[test]
fn a_database_wears_flash_by_the_commit_and_not_by_the_request() {
    let mut results = recorded("disk");
    let name = "innodb 16k (linkbench ids=2000)";
    let change = |results: &mut Results, change: fn(&mut Series)| {
        let amplify = results.experiments.iter_mut();
        let amplify = amplify.filter_map(|one| one.of_mut::<AmplifyResults>());
        let mut series = amplify.flat_map(|one| &mut one.measurements.series);
        let one = series.find(|one| one.name() == "innodb 16k").unwrap();
        change(one);
        one.summarize();
        one.median(Metric::Kib).unwrap() * 1024.0
    };
    // Without the kinds of its requests, which were taken out of the recording, nobody knows how many of them wrote.
    assert!(!costs_of_a_commit(&results).contains_key(name));
    let of_request = change(&mut results, |one| {
        for trial in &mut one.trials {
            let kinds = [
                ("get_link_list", 300.0),
                ("add_link", 70.0),
                ("add_node", 30.0),
            ];
            trial.kinds = kinds
                .map(|(name, done)| KindOfRequest {
                    name: name.to_owned(),
                    figures: Figures::default().with(Metric::Requests, done),
                })
                .into();
        }
    });
    let of_commit = costs_of_a_commit(&results)[name];
    assert!((of_commit / of_request - 4.0).abs() < 1e-9, "{of_commit}");
    change(&mut results, |one| {
        one.axes.workload = Some("puts batch=100".to_owned());
        for trial in &mut one.trials {
            trial.figures.set(Metric::WrittenPerByte, 5.0);
        }
    });
    let batches = costs_of_a_commit(&results);
    let of_commit = batches["innodb 16k (puts batch=100)"];
    assert!((of_commit - 5.0 * 1024.0).abs() < 1e-6, "{of_commit}");
}

#[test]
fn the_same_results_give_the_same_advice_in_schema() {
    let advice = advice_on("disk");
    assert_eq!(advice, advice_on("disk"));
    let document: serde_json::Value = serde_json::from_str(&advice.to_json()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&advice_schema()).unwrap();
    assert!(jsonschema::is_valid(&schema, &document));
}
