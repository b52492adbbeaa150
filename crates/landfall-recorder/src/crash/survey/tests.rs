//! Surveys of small recordings, held against all states there are, made in the plainest way.

use std::collections::{HashMap, HashSet};

use proptest::prelude::{
    Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::{CrashState, Survey};
use crate::crash::composition::position;
use crate::crash::oracle::{durable, image_of, overtaken, put, sector_writes};
use crate::crash::{Choice, Layout, Model, StateName, Stretch, Walker, epochs};
use crate::fixtures::RecordingBuilder;
use crate::{AtomicUnit, Recording};

/// Each image, and the latest position at which the disk could have held it.
type Images = HashMap<Vec<u8>, usize>;

fn stretch(bytes: std::ops::Range<u64>, file: &str) -> Stretch {
    Stretch {
        bytes,
        from: 0,
        file: file.to_owned(),
    }
}

fn survey(recording: &Recording, model: Model, limit: usize) -> Survey {
    Survey::of(recording, model, 7, limit).unwrap()
}

/// The images of a survey, each made from the name of its state.
fn made(recording: &Recording, survey: &Survey) -> Images {
    let mut walker = Walker::new(recording).unwrap();
    let mut images = Images::new();
    let mut identities = HashSet::new();
    for state in &survey.states {
        let name: StateName = state.name.to_string().parse().unwrap();
        let composition = walker.composition(&name).unwrap();
        let CrashState {
            position,
            image,
            omitted,
            ..
        } = *state;
        assert_eq!(
            (composition.position, composition.image, composition.omitted),
            (position, image, omitted),
            "{name}"
        );
        let disk = image_of(recording, name.cut, &composition.pieces);
        assert!(images.insert(disk, position).is_none(), "{name} is double");
        assert!(identities.insert(image), "{name} looks like another");
    }
    images
}

/// The images of a model, by trying every subset and every prefix of all that was written.
fn possible(recording: &Recording, model: Model) -> Images {
    let unit = recording.atomic_unit().bytes() / 512;
    let mut images = Images::new();
    for epoch in epochs(recording).unwrap() {
        let base = durable(recording, epoch.cut);
        let sectors = sector_writes(recording, epoch.cut);
        let writes: Vec<_> = sectors
            .chunk_by(|a, b| (a.write, a.sector / unit) == (b.write, b.sector / unit))
            .collect();
        let subsets: Vec<(u64, usize)> = match model {
            Model::Flushed => vec![(0, epoch.events.end)],
            Model::Subset => (0..1 << writes.len())
                .map(|bits| (bits, epoch.events.end))
                .collect(),
            Model::Prefix => (0..=writes.len())
                // What came before a write that is durable is there.
                .filter(|&arrived| {
                    let mut missing = writes[arrived..].iter();
                    missing.all(|write| write[0].write >= overtaken(recording, &epoch))
                })
                .map(|arrived| {
                    // The write that is under way, or comes next.
                    let next = writes
                        .get(arrived)
                        .map_or(epoch.writes.len(), |w| w[0].write);
                    let first = Choice::First {
                        writes: next as u32,
                        sectors: 0,
                    };
                    ((1 << arrived) - 1, position(&epoch, first))
                })
                .collect(),
        };
        for (bits, position) in subsets {
            let mut disk = base.clone();
            for (number, write) in writes.iter().enumerate() {
                if bits >> number & 1 == 1 {
                    for sector in *write {
                        put(&mut disk, sector.sector * 512, &sector.bytes);
                    }
                }
            }
            let latest = images.entry(disk).or_default();
            *latest = position.max(*latest);
        }
    }
    images
}

/// What happens to a device of four sectors.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    /// A flush; which of the last three writes are in flight, as bits.
    Flush(u8),
    /// Which of the last three writes are durable by themselves, as bits.
    Forced(u8),
    /// A mark, and what changes nothing.
    Nothing,
}

/// What the device holds at first, and what happens to it: with few contents, so that much is equal.
type Story = (Vec<u8>, Vec<Step>);

fn stories() -> impl Strategy<Value = Story> {
    let fills = prop::collection::vec(0_u8..3, 1..4);
    let step = prop_oneof![
        4 => (0_u64..4, fills).prop_map(|(first, mut fills)| {
            fills.truncate(4 - first as usize);
            Step::Write(first, fills)
        }),
        1 => Just(Step::Flush(0)),
        1 => (0_u8..8).prop_map(Step::Flush),
        1 => (1_u8..8).prop_map(Step::Forced),
        1 => Just(Step::Nothing),
    ];
    (
        prop::collection::vec(0_u8..3, 4),
        prop::collection::vec(step, 0..10),
    )
}

/// Of a device of four sectors: each alone, two, or all at once.
fn units() -> impl Strategy<Value = AtomicUnit> {
    (0_u64..3).prop_map(|power| AtomicUnit::try_from(512 << power).unwrap())
}

/// Those of the last three whose bits are set.
fn chosen(writes: &[u64], bits: u8) -> Vec<u64> {
    let last = writes[writes.len().saturating_sub(3)..].iter().enumerate();
    last.filter(|(place, _)| bits >> place & 1 == 1)
        .map(|(_, &event)| event)
        .collect()
}

fn record((base, steps): &Story) -> Recording {
    let base: Vec<u8> = base.iter().flat_map(|&fill| [fill; 512]).collect();
    let mut builder = RecordingBuilder::new(2048).base(0, base);
    let mut sectors = 0;
    let mut writes: Vec<u64> = Vec::new();
    for step in steps {
        if let Step::Write(_, fills) = step {
            // No more in an epoch than can be tried one by one.
            sectors += fills.len();
            if sectors > 10 {
                sectors = fills.len();
                builder = builder.flush();
            }
        }
        builder = match step {
            Step::Write(first, fills) => {
                writes.push(builder.len());
                builder.sectors(*first, fills)
            }
            Step::Flush(bits) => builder.flush_but(&chosen(&writes, *bits)),
            Step::Forced(bits) => builder.forced(&chosen(&writes, *bits)),
            Step::Nothing => builder.lying_flush().refused().mark(b"m"),
        };
    }
    builder.build()
}

proptest! {
    #[test]
    fn without_a_limit_every_state_is_found_at_its_latest_moment(
        story in stories(), unit in units()
    ) {
        let recording = record(&story).with_atomic_unit(unit);
        for model in [Model::Flushed, Model::Prefix, Model::Subset] {
            let survey = survey(&recording, model, usize::MAX);
            let expected = possible(&recording, model);
            let images = made(&recording, &survey);
            prop_assert!(images == expected, "{model}");
            prop_assert_eq!(survey.coverage.sampled, 0);
            prop_assert_eq!(survey.coverage.surveyed, survey.coverage.epochs);
            if model == Model::Subset {
                prop_assert_eq!(survey.coverage.changed_sectors, survey.coverage.epochs);
                prop_assert_eq!(survey.coverage.whole_writes, survey.coverage.epochs);
            }
        }
    }

    #[test]
    fn a_limit_is_kept_and_everything_within_it_is_a_state_of_the_model(
        story in stories(), unit in units(), limit in 0_usize..40, seed in any::<u64>()
    ) {
        let recording = record(&story).with_atomic_unit(unit);
        for model in [Model::Flushed, Model::Prefix, Model::Subset] {
            let survey = Survey::of(&recording, model, seed, limit).unwrap();
            prop_assert!(survey.states.len() <= limit);
            prop_assert!(survey.states.is_sorted_by_key(|state| state.name));
            let expected = possible(&recording, model);
            for image in made(&recording, &survey).keys() {
                prop_assert!(expected.contains_key(image), "{model}");
            }
            for state in survey.states.iter().take(3) {
                let only = Survey::only(&recording, state.name).unwrap();
                prop_assert_eq!(only.states, [*state]);
            }
            prop_assert_eq!(survey.coverage.surveyed, limit.min(survey.coverage.epochs));
            prop_assert_eq!(Survey::of(&recording, model, seed, limit).unwrap(), survey);
        }
    }

    #[test]
    fn those_that_stand_for_many_come_first_and_change_nothing_else(
        story in stories(), unit in units(), limit in 0_usize..40, seed in any::<u64>()
    ) {
        let recording = record(&story).with_atomic_unit(unit);
        let layout = Layout::new([stretch(0..1024, "data")]);
        let survey = |limit| Survey::representative(&recording, &layout, seed, limit).unwrap();
        let expected = possible(&recording, Model::Subset);
        prop_assert_eq!(made(&recording, &survey(usize::MAX)), expected.clone());
        let few = survey(limit);
        let by_epochs = Survey::of(&recording, Model::Subset, seed, limit).unwrap();
        prop_assert!(few.states.len() >= by_epochs.states.len());
        prop_assert!(few.states.len() <= limit);
        for image in made(&recording, &few).keys() {
            prop_assert!(expected.contains_key(image));
        }
        prop_assert_eq!(survey(limit), few);
    }

    #[test]
    fn what_a_disk_that_writes_in_order_leaves_every_disk_may_leave(
        story in stories(), unit in units()
    ) {
        let recording = record(&story).with_atomic_unit(unit);
        let images = |model| made(&recording, &survey(&recording, model, usize::MAX));
        let (flushed, prefix, subset) =
            (images(Model::Flushed), images(Model::Prefix), images(Model::Subset));
        prop_assert!(flushed.keys().all(|image| subset.contains_key(image)));
        prop_assert!(prefix.keys().all(|image| subset.contains_key(image)));
    }

    #[test]
    fn what_is_said_to_be_covered_is_covered(story in stories(), limit in 1_usize..60) {
        let recording = record(&story);
        let survey = survey(&recording, Model::Subset, limit);
        let images = made(&recording, &survey);
        let (mut whole_writes, mut changed_sectors) = (0, 0);
        for epoch in epochs(&recording).unwrap() {
            let base = durable(&recording, epoch.cut);
            let writes = sector_writes(&recording, epoch.cut);
            let is_in = |arrived: &dyn Fn(usize) -> bool| {
                let mut disk = base.clone();
                for (number, write) in writes.iter().enumerate() {
                    if arrived(number) {
                        put(&mut disk, write.sector * 512, &write.bytes);
                    }
                }
                images.contains_key(&disk)
            };
            let all_sectors = (0..1_u64 << writes.len()).all(|bits| is_in(&|n| bits >> n & 1 == 1));
            let all_writes = (0..1_u64 << epoch.writes.len())
                .all(|bits| is_in(&|n| bits >> writes[n].write & 1 == 1));
            changed_sectors += usize::from(all_sectors);
            whole_writes += usize::from(all_writes);
        }
        // What chance has completed need not be noticed.
        prop_assert!(survey.coverage.changed_sectors <= changed_sectors);
        prop_assert!(survey.coverage.whole_writes <= whole_writes);
    }
}

fn names(survey: &Survey) -> Vec<String> {
    survey
        .states
        .iter()
        .map(|state| state.name.to_string())
        .collect()
}

#[test]
fn a_write_of_one_unit_is_never_torn_and_one_of_two_only_between_them() {
    let write = || RecordingBuilder::new(16384).sectors(8, &[1; 16]).build();
    let possible = |unit: u64| {
        let recording = write().with_atomic_unit(unit.try_into().unwrap());
        let survey = survey(&recording, Model::Subset, 1 << 20);
        assert_eq!(survey.coverage.possible, survey.states.len() as f64);
        survey.states.len()
    };
    assert_eq!(possible(512), 1 << 16);
    assert_eq!(possible(4096), 4);
    // It straddles two of the large ones.
    assert_eq!(possible(8192), 4);
    assert_eq!(possible(16384), 2);
}

#[test]
fn a_sector_that_is_written_back_has_three_states() {
    let recording = RecordingBuilder::new(4096)
        .base(0, [1; 512])
        .sector(0, 2)
        .sector(0, 3)
        .sector(0, 1)
        .build();
    let survey = survey(&recording, Model::Subset, 100);
    assert_eq!(survey.coverage.possible, 3.0);
    let images = made(&recording, &survey);
    let mut fills: Vec<u8> = images.keys().map(|image| image[0]).collect();
    fills.sort_unstable();
    assert_eq!(fills, [1, 2, 3]);
}

#[test]
fn a_recording_of_nothing_has_one_state() {
    for model in [Model::Flushed, Model::Prefix, Model::Subset] {
        let recording = RecordingBuilder::new(4096).mark(b"a").build();
        let survey = survey(&recording, model, 100);
        assert_eq!(survey.states.len(), 1);
        assert_eq!(survey.states[0].position, 1);
        assert_eq!(survey.coverage.changed_sectors, 1);
    }
}

#[test]
fn an_image_that_two_epochs_have_is_tried_in_the_later_one() {
    let recording = RecordingBuilder::new(4096)
        .sector(0, 1)
        .flush()
        .mark(b"acknowledged")
        .flush()
        .flush()
        .mark(b"later")
        .build();
    let survey = survey(&recording, Model::Subset, 100);
    assert_eq!(names(&survey), ["7:0:none", "7:3:none"]);
    assert_eq!(survey.states[1].position, 6);
    // Everything of the first epoch, and nothing of the two that follow.
    assert_eq!(survey.coverage.duplicates, 3);
}

#[test]
fn a_lying_flush_keeps_what_came_before_it_in_doubt() {
    let write = |builder: RecordingBuilder| builder.sector(0, 1).lying_flush().sector(1, 1).flush();
    let recording = write(RecordingBuilder::new(4096)).build();
    let survey = survey(&recording, Model::Subset, 100);
    assert_eq!(survey.coverage.epochs, 2);
    assert_eq!(
        names(&survey),
        ["7:0:none", "7:0:without0", "7:0:without1", "7:1:none"]
    );
    assert_eq!(survey.states[0].position, 3);
}

/// `epochs` epochs of `writes` writes of eight sectors each; all sectors differ.
fn large(epochs: u64, writes: u64) -> Recording {
    let mut builder = RecordingBuilder::new(epochs * writes * 4096);
    let mut random = fastrand::Rng::with_seed(1);
    for epoch in 0..epochs {
        for write in 0..writes {
            let block: Vec<u8> = std::iter::repeat_with(|| random.u8(..))
                .take(4096)
                .collect();
            builder = builder.write((epoch * writes + write) * 4096, block);
        }
        builder = builder.flush();
    }
    builder.build()
}

#[test]
fn seeds_differ_in_what_they_draw_and_a_seed_does_not() {
    let recording = large(3, 20);
    let survey = |seed| Survey::of(&recording, Model::Subset, seed, 1000).unwrap();
    let (one, same, other) = (survey(1), survey(1), survey(2));
    assert_eq!(one, same);
    let images =
        |survey: &Survey| -> HashSet<_> { survey.states.iter().map(|s| s.image).collect() };
    let both = images(&one).intersection(&images(&other)).count();
    // None, all and for each write two, of three epochs; all of one is none of the next.
    let extremes = 3 * 42 - 2;
    // Chance now and then picks the same two writes of twenty.
    assert!((extremes..extremes + 20).contains(&both), "{both}");
    assert!(
        (990..=1000).contains(&one.states.len()),
        "{:?}",
        one.coverage
    );
    assert_eq!(one.coverage.sampled, one.states.len() - extremes);
}

#[test]
fn small_epochs_are_tried_whole_and_large_ones_share_what_is_left() {
    let mut builder = RecordingBuilder::new(1 << 20);
    for epoch in 0..10_u64 {
        builder = builder
            .sectors(epoch * 20, &[1, 2, 3])
            .sector(epoch * 20 + 10, 4)
            .flush();
    }
    for sector in 0..100 {
        builder = builder.sectors(300 + sector * 2, &[1, 2]);
    }
    let recording = builder.build();
    let survey = survey(&recording, Model::Subset, 1000);
    let coverage = survey.coverage;
    assert_eq!(
        (
            coverage.epochs,
            coverage.changed_sectors,
            coverage.whole_writes
        ),
        (11, 10, 10)
    );
    let in_last = survey
        .states
        .iter()
        .filter(|state| state.name.cut == 10)
        .count();
    // Its share of new states, and the one in which nothing of it arrived: all of the epoch before.
    assert_eq!(in_last, 1000 - 160 + 1);
    assert_eq!(coverage.sampled, in_last - 202);
    assert_eq!(coverage.possible, 160.0 + 200_f64.exp2());
}

#[test]
fn a_limit_below_the_number_of_epochs_takes_some_of_them_with_both_ends() {
    let recording = large(50, 2);
    for model in [Model::Flushed, Model::Prefix, Model::Subset] {
        let survey = survey(&recording, model, 10);
        assert!(
            survey.states.len() <= 10 && survey.states.len() >= 8,
            "{model}"
        );
        assert_eq!((survey.coverage.epochs, survey.coverage.surveyed), (51, 10));
        // The last epoch is empty: its one state is what was flushed in the end.
        assert_eq!(survey.states.last().map(|state| state.name.cut), Some(50));
        assert!(survey.states[0].name.cut <= 1, "{model}");
    }
}

#[test]
fn a_large_recording_is_surveyed() {
    let recording = large(40, 50);
    let limits = [
        (Model::Flushed, 41),
        (Model::Prefix, 10_000),
        (Model::Subset, 20_000),
    ];
    for (model, limit) in limits {
        let survey = survey(&recording, model, limit);
        assert!(
            survey.states.len() <= limit && survey.states.len() * 100 >= limit * 99,
            "{model}"
        );
        assert_eq!(survey.coverage.surveyed, 41);
    }
}

#[test]
fn an_epoch_of_too_many_writes_for_its_share_is_tried_at_some_of_its_extremes_and_torn() {
    let recording = large(1, 1000);
    let survey = survey(&recording, Model::Subset, 100);
    assert_eq!((survey.states.len(), survey.coverage.sampled), (100, 99));
    let drawn = |state: &&CrashState| matches!(state.name.choice, Choice::Drawn(_));
    let drawn = survey.states.iter().filter(drawn).count();
    assert!((40..=60).contains(&drawn), "{drawn}");
    let survey = Survey::of(&recording, Model::Prefix, 7, 100).unwrap();
    assert_eq!((survey.states.len(), survey.coverage.sampled), (100, 99));
}

/// A log that grows by 100 synced writes of two pages, and once, in the midst of it, two durable pages that are overwritten.
fn a_log_and_one_overwrite() -> Recording {
    let page = |fill: u8| vec![fill; 8192];
    let mut builder = RecordingBuilder::new(4 << 20).base(0, page(9));
    for number in 0..100_u64 {
        if number == 40 {
            builder = builder.write(0, page(8)).flush();
        }
        let at = 65_536 + number * 8192;
        builder = builder.write(at, page(1)).flush().mark(b"ack");
    }
    builder.build()
}

#[test]
fn a_durable_page_that_is_torn_once_in_a_long_recording_is_among_the_first() {
    let recording = a_log_and_one_overwrite();
    let layout = Layout::new([stretch(0..8192, "data"), stretch(65_536..1 << 20, "log")]);
    for seed in 0..10 {
        let survey = Survey::representative(&recording, &layout, seed, 200).unwrap();
        let is_torn = |state: &CrashState| {
            let torn = matches!(state.name.choice, Choice::Upto { sectors, .. } if sectors > 0);
            torn && state.name.cut == 40
        };
        let place = survey.states.iter().position(is_torn);
        assert!(place.is_some_and(|place| place < 16), "{place:?}");
        // By epochs it has to wait for its turn, and is torn by chance only.
        let survey = Survey::of(&recording, Model::Subset, seed, 200).unwrap();
        let place = survey.states.iter().position(|state| state.name.cut == 40);
        assert!(place.is_some_and(|place| place > 40), "{place:?}");
    }
}

/// A log that grows by 100 synced writes of two pages while 20 files have their only page overwritten; where they lie, and
/// where the log begins.
fn a_log_and_many_files() -> (Recording, Layout, u64) {
    const FILES: u64 = 20;
    let page = |fill: u8| vec![fill; 8192];
    let mut builder = RecordingBuilder::new(4 << 20);
    for file in 0..FILES {
        builder = builder.base(file * 8192, page(9));
    }
    let log = FILES * 8192;
    for number in 0..100 {
        if number < FILES {
            builder = builder.write(number * 8192, page(8)).flush();
        }
        let at = log + number * 8192;
        builder = builder.write(at, page(1)).flush().mark(b"ack");
    }
    let name = |file: u64| char::from(b'a' + file as u8).to_string();
    let files = (0..FILES).map(|file| stretch(file * 8192..(file + 1) * 8192, &name(file)));
    let layout = Layout::new(files.chain([stretch(log..1 << 20, "log")]));
    (builder.build(), layout, log)
}

/// However many kinds of files are overwritten, which are more dangerous and rarer.
#[test]
fn a_torn_append_to_a_log_is_among_the_first() {
    let (recording, layout, log) = a_log_and_many_files();
    let survey = Survey::representative(&recording, &layout, 7, 200).unwrap();
    let mut walker = Walker::new(&recording).unwrap();
    let place = survey.states.iter().position(|state| {
        walker.go_to(state.name.cut as usize).unwrap();
        let is_of_log = walker.write(0).is_some_and(|(offset, _)| offset >= log);
        is_of_log && matches!(state.name.choice, Choice::Upto { sectors, .. } if sectors > 0)
    });
    assert!(place.is_some_and(|place| place < 24), "{place:?}");
}

#[test]
fn lists_that_differ_in_nothing_that_is_counted_have_different_digests() {
    let (recording, layout, _) = a_log_and_many_files();
    let survey = |layout: &Layout| Survey::representative(&recording, layout, 7, 200).unwrap();
    let (told, untold) = (survey(&layout), survey(&Layout::default()));
    assert_eq!(told.states.len(), untold.states.len());
    assert_eq!(told.coverage, untold.coverage);
    assert_ne!(told.digest(), untold.digest());
    assert_eq!(told.digest(), survey(&layout).digest());
    let mut turned = told.clone();
    turned.states.swap(0, 1);
    assert_ne!(turned.digest(), told.digest());
}

#[test]
fn passes_through_the_recording_go_forward() {
    let survey = Survey::representative(&a_log_and_one_overwrite(), &Layout::default(), 7, 300);
    let cuts: Vec<u32> = survey
        .unwrap()
        .states
        .iter()
        .map(|state| state.name.cut)
        .collect();
    let backward = cuts.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(backward < 8, "{backward} times back among {}", cuts.len());
}

#[test]
fn a_disk_that_writes_in_order_has_what_came_before_a_write_that_is_durable_by_itself() {
    let recording = RecordingBuilder::new(4096)
        .sector(0, 1)
        .mark(b"ack")
        .sector(1, 1)
        .forced(&[2])
        .mark(b"b")
        .build();
    let lacks_the_first = |model| {
        let images = made(&recording, &survey(&recording, model, usize::MAX));
        images.keys().any(|disk| disk[512] == 1 && disk[0] == 0)
    };
    assert!(!lacks_the_first(Model::Prefix));
    assert!(lacks_the_first(Model::Subset));
    // Nor is it made by its name.
    let name = "7:1:first0".parse().unwrap();
    let error = Survey::only(&recording, name).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
}

/// A write is in flight while another thread flushes, and acknowledged after that flush.
#[test]
fn a_write_in_flight_is_lost_after_the_flush_and_before_the_next() {
    let with = |in_flight: &[u64]| {
        RecordingBuilder::new(2048)
            .sector(0, 1)
            .sector(1, 1)
            .flush_but(in_flight)
            .mark(b"ack")
            .sector(2, 1)
            .flush()
            .build()
    };
    let loses_what_was_acknowledged = |recording: &Recording, model| {
        let images = made(recording, &survey(recording, model, usize::MAX));
        let is_lost = |(disk, position): (&Vec<u8>, &usize)| disk[0] == 0 && *position > 3;
        images.iter().any(is_lost)
    };
    // A disk that writes in order has it once it is answered.
    for model in [Model::Flushed, Model::Subset] {
        assert!(loses_what_was_acknowledged(&with(&[0]), model), "{model}");
        // Had it been answered, it would be durable; so are both from the next flush on.
        assert!(!loses_what_was_acknowledged(&with(&[1]), model), "{model}");
        assert!(!loses_what_was_acknowledged(&with(&[]), model), "{model}");
        let last = with(&[0]);
        let end = survey(&last, model, usize::MAX)
            .states
            .into_iter()
            .filter(|state| state.name.cut == 2);
        assert!(end.count() <= 1, "{model}");
    }
}

/// It was answered, and acknowledged, before the flush was that did not count it in.
#[test]
fn a_disk_that_writes_in_order_has_what_was_answered_during_a_flush() {
    let recording = RecordingBuilder::new(2048)
        .sector(0, 1)
        .mark(b"ack")
        .flush_but(&[0])
        .build();
    let lost = |model| {
        let images = made(&recording, &survey(&recording, model, usize::MAX));
        let images = images.into_iter().filter(|(disk, _)| disk[0] == 0);
        images.map(|(_, position)| position).max()
    };
    assert_eq!(lost(Model::Prefix), Some(0));
    assert!(lost(Model::Subset) > Some(1));
}
