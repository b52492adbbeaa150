//! A whole fleet, from documents to the report.

use std::collections::BTreeSet;

use landfall_lab::{Notice, Results, Weight};
use landfall_report::text::text_within;
use landfall_results::view::{Cell, Table, Tone};
use proptest::prelude::{Just, ProptestConfig, Strategy as _, prop, prop_assert_eq, proptest};

use super::report::{Missing, Proofs, Report, page, screen};
use super::synthetic::{Recipe, results};
use super::{Factor, Fleet, Kind, Member, Sign};

fn machines(count: usize, seed: u64, of: impl Fn(usize, &mut Recipe)) -> Vec<(String, Results)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let documents = (0..count).map(|number| {
        let mut recipe = Recipe::NVME;
        of(number, &mut recipe);
        (format!("m{number:04}"), results(&recipe, &mut random))
    });
    documents.collect()
}

fn members(documents: &[(String, Results)]) -> Vec<Member<'_>> {
    let members = documents.iter();
    members
        .map(|(machine, results)| Member { machine, results })
        .collect()
}

fn fleet(count: usize, seed: u64, of: impl Fn(usize, &mut Recipe)) -> Fleet {
    Fleet::of(&members(&machines(count, seed, of)))
}

/// What stands on a terminal of so many columns, without colours.
fn on_terminal(report: &Report<'_>, width: u16) -> String {
    let text = text_within(width, &screen(report));
    let mut plain = String::new();
    let mut is_style = false;
    for letter in text.chars() {
        match letter {
            '\u{1b}' => is_style = true,
            'm' if is_style => is_style = false,
            _ if is_style => {}
            letter => plain.push(letter),
        }
    }
    plain
}

fn report<'a>(fleet: &'a Fleet, missing: &'a Missing) -> Report<'a> {
    Report {
        name: "spring",
        fleet,
        proofs: None,
        missing,
        when: Some("26 November 2026, 14:03 UTC, to 27 November 2026, 05:10 UTC"),
        command: "landfall campaign report spring",
        document: "fleet.json",
    }
}

#[test]
fn a_thousand_documents_give_the_ten_disks_that_differ() {
    let planted: BTreeSet<usize> = (0..10).map(|one| one * 97 + 3).collect();
    let fleet = fleet(1_000, 1, |number, recipe| {
        if planted.contains(&number) {
            match number % 3 {
                0 => recipe.flush_us *= 3.0,
                1 => recipe.tail *= 3.0,
                _ => (recipe.write_us, recipe.flush_us) = (7.0, 30.0),
            }
        }
    });
    let found: BTreeSet<usize> = fleet.outliers.iter().map(|one| one.disk).collect();
    let missed: Vec<&usize> = planted.difference(&found).collect();
    let others: Vec<&usize> = found.difference(&planted).collect();
    assert!(
        missed.is_empty() && others.len() <= 1,
        "{missed:?}, {others:?}"
    );
    let kind = |number: usize| {
        let outlier = fleet.outliers.iter().find(|one| one.disk == number);
        outlier.map(|one| one.kind)
    };
    assert_eq!(
        (kind(3), kind(100)),
        (Some(Kind::Slow), Some(Kind::SlowTail))
    );
    assert_eq!(kind(197), Some(Kind::Fast));
    let slow = &fleet.outliers[0].reason;
    assert!(
        slow.contains("times what the other 999 Samsung PM983 on ext4 take (")
            && slow.contains("ops/s, theirs "),
        "{slow}"
    );
    assert_eq!(fleet.rule.unjudged_disks, 0);
}

#[test]
fn a_slower_firmware_is_told_and_makes_no_disk_an_outlier() {
    let fleet = fleet(60, 2, |number, recipe| {
        if number % 3 == 0 {
            (recipe.firmware, recipe.kernel) = ("EDA5802Q", "6.14.2");
            recipe.flush_us *= 1.6;
        }
    });
    assert!(
        fleet.outliers.is_empty() && fleet.apart.is_empty(),
        "{:?}",
        fleet.outliers
    );
    let told: Vec<_> = fleet
        .differences
        .iter()
        .map(|one| (one.factor, one.value.as_str(), one.disks))
        .collect();
    assert_eq!(
        told,
        [
            (Factor::Firmware, "EDA5802Q", 20),
            (Factor::Kernel, "6.14.2", 20)
        ]
    );
    let firmware = &fleet.differences[0];
    assert!(firmware.slowness.low > 1.1 && firmware.slowness.low < 1.5);
    assert_eq!(
        firmware.or_else.as_deref(),
        Some("6.14.2"),
        "{}",
        firmware.reason
    );
}

#[test]
fn too_many_to_be_outliers_are_a_group() {
    let fleet = fleet(60, 3, |number, recipe| {
        if number % 5 == 0 {
            recipe.flush_us *= 3.0;
        }
    });
    assert!(fleet.outliers.is_empty(), "{:?}", fleet.outliers);
    assert_eq!(fleet.apart.len(), 1);
    assert!(fleet.apart[0].slower && fleet.apart[0].disks.len() == 12);
    assert!(
        fleet.apart[0]
            .reason
            .starts_with("12 of 60 Samsung PM983 on ext4 are a group")
    );
}

#[test]
fn a_flush_that_costs_nothing_is_suspicious_and_not_said_to_lie() {
    let fleet = fleet(20, 4, |number, recipe| {
        if number == 7 {
            recipe.flush_us = 0.2;
        }
    });
    let [only] = fleet.suspicions.as_slice() else {
        panic!("{:?}", fleet.suspicions);
    };
    assert_eq!(
        (only.label.as_str(), only.sign),
        ("m0007", Sign::CostsNothing)
    );
    let text = on_terminal(&report(&fleet, &Missing::default()), 100);
    assert!(text.contains("1 disk has a suspicious flush."), "{text}");
    assert!(
        text.contains("landfall witness") && !text.contains(" lie"),
        "{text}"
    );
}

#[test]
fn a_flush_much_quicker_than_those_of_its_model_is_suspicious() {
    let fleet = fleet(20, 5, |number, recipe| {
        if number == 7 {
            recipe.flush_us = 15.0;
        }
    });
    let signs: Vec<_> = fleet
        .suspicions
        .iter()
        .map(|one| (one.disk, one.sign))
        .collect();
    assert_eq!(signs, [(7, Sign::QuickerThanPeers)]);
}

#[test]
fn a_disk_among_too_few_of_its_model_is_compared_with_all() {
    let model = |number: usize, recipe: &mut Recipe| {
        if number < 2 {
            recipe.model = "Seagate ST8000NM0055";
            recipe.flush_us = 7_800.0;
        }
    };
    let with_others = fleet(20, 6, model);
    assert_eq!(with_others.outliers.len(), 2);
    let reason = &with_others.outliers[0].reason;
    assert!(
        reason.contains("the other 19 disks of the fleet take"),
        "{reason}"
    );
    let alone = fleet(5, 6, |_, _| {});
    assert_eq!((alone.rule.judged, alone.rule.unjudged_disks), (0, 5));
    assert!(
        on_terminal(&report(&alone, &Missing::default()), 80)
            .contains("No disk could be compared with others")
    );
}

#[test]
fn a_machine_with_two_disks_has_two_names() {
    let mut documents = machines(2, 7, |_, _| {});
    documents[1].0 = documents[0].0.clone();
    documents[1].1.directory = "/srv/other".to_owned();
    let fleet = Fleet::of(&members(&documents));
    let labels: Vec<&str> = fleet.disks.iter().map(|one| one.label.as_str()).collect();
    assert_eq!(labels, ["m0000:/srv/data", "m0000:/srv/other"]);
    assert_eq!((fleet.machines.len(), fleet.documents), (1, 2));
}

#[test]
fn one_screen_has_the_answer_first_and_forty_lines() {
    let mut documents = machines(100, 8, |number, recipe| {
        recipe.model = ["Samsung PM983", "Micron 7450", "Intel P4510"][number % 3];
        if number % 10 == 0 {
            recipe.flush_us *= 4.0;
        }
    });
    for (_, results) in &mut documents[..12] {
        let text =
            "The filesystem is mounted with nobarrier: a sync does not flush the disk's cache.";
        results
            .notices
            .push(Notice::new("no-barrier", Weight::Danger, text));
    }
    let fleet = Fleet::of(&members(&documents));
    let no_document = |shard| format!("shard {shard}: no document");
    let missing = Missing {
        shards: (0..9).map(no_document).collect(),
        tasks: vec!["shard 9 on web-9: a proof needs root".to_owned()],
        unreadable: vec![
            "1.json is damaged".to_owned(),
            "2.json is damaged".to_owned(),
        ],
    };
    let proofs = Proofs {
        verdict: Cell::toned(Tone::Bad, "Of 1,000 crash states 3 lost something."),
        sentences: vec!["sqlite lost nothing in 997 crash states on ext4.".to_owned()],
        table: Table::default(),
    };
    let report = Report {
        proofs: Some(&proofs),
        ..report(&fleet, &missing)
    };
    for width in [80, 100] {
        let text = on_terminal(&report, width);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= 45, "{} lines\n{text}", lines.len());
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() <= usize::from(width)),
            "{text}"
        );
    }
    let text = on_terminal(&report, 100);
    let places = [
        "Of 1,000 crash states",
        "9 shards are missing, 1 task could not be done, 2 documents cannot be read: this",
        "On 12 machines",
    ]
    .map(|one| text.find(one));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?}\n{text}"
    );
    let page = page(&report);
    assert_eq!(page.heading.tone, Tone::Bad);
    let html = landfall_report::html::render(&page).unwrap();
    for part in [
        "Not in this report: shard 0: no document",
        "<code>fleet.json</code>",
        "data-expected=\"100\"",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("results.json"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Neither their order nor copies of documents change anything.
    #[test]
    fn order_and_repetition_change_nothing(order in Just((0..16_usize).collect::<Vec<_>>()).prop_shuffle(), copies in prop::collection::vec(0..16_usize, 0..6)) {
        let mut documents = machines(14, 9, |number, recipe| {
            if number == 5 {
                recipe.flush_us *= 4.0;
            }
        });
        // Two machines were measured twice.
        let again = machines(2, 10, |_, _| {});
        documents.extend(again);
        let all = members(&documents);
        let mut shuffled: Vec<Member<'_>> = order.iter().map(|index| all[*index]).collect();
        shuffled.extend(copies.iter().map(|index| all[*index]));
        let (one, other) = (Fleet::of(&all), Fleet::of(&shuffled));
        prop_assert_eq!(one.outliers.len(), 1);
        prop_assert_eq!(&one, &other);
        prop_assert_eq!(one.to_json(), other.to_json());
    }
}

#[test]
fn a_fleet_is_read_back_as_it_is_written() {
    let fleet = fleet(12, 11, |_, _| {});
    let read: Fleet = serde_json::from_str(&fleet.to_json()).unwrap();
    // The last digit of a number may get lost.
    assert_eq!((read.disks.len(), &read.figures), (12, &fleet.figures));
    assert_eq!(
        (read.rule, read.groups.len()),
        (fleet.rule, fleet.groups.len())
    );
    let empty = Fleet::of(&[]);
    let text = on_terminal(&report(&empty, &Missing::default()), 80);
    assert_eq!(text.trim(), "Campaign spring: 0 machines.");
    assert!(landfall_report::html::render(&page(&report(&empty, &Missing::default()))).is_ok());
}
