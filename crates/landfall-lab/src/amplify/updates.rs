//! Rows that are updated at random: the load for which the buffer of Landfall's store is made, and for which it has a formula.
//!
//! The store stands at every position of its knob, and beside it every database that is linked in, InnoDB and MyRocks, each with
//! as much memory. All update the same rows in the same order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::catalogue::{self, BUFFERS, Entry, Part};
use super::plan::Plan;
use crate::configuration::Settings;

pub(super) const WORKLOAD: &str = "puts";
/// Rows for each id of the plan: data is then some fifteen times as large as the pool, before it is compressed.
const PER_ID: u64 = 20;
/// Bytes of a row, of which 8 are the key.
const ROW: u64 = 116;
const KEY: u64 = 8;
/// Of a value, what does not compress away.
const RANDOM_PERCENT: u64 = 50;
/// Rows of a request: so many that the log is no large part of what is written.
const BATCH: u64 = 100;
const EXPONENT: f64 = 0.99;
/// Segments of a log that are as large as the pool, and bytes of one by default.
const SEGMENTS: u64 = 16;
const SEGMENT: u64 = 16 << 20;
/// Bytes that a database takes for a row when it was loaded, and what updates add, at the most.
const LOADED: u64 = 400;
const ADDED: u64 = 400;

/// What was updated at random.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Updates {
    /// Rows that there are.
    pub rows: u64,
    /// Bytes of one, with its key.
    pub row_bytes: u64,
    /// Rows that a request updates.
    pub of_request: u64,
    /// Exponent of the Zipf distribution by which some are updated more often, where they are.
    pub exponent: f64,
}

impl Updates {
    /// What `plan` updates, if it has such a part.
    pub(super) fn of(plan: &Plan) -> Option<Updates> {
        let has = plan.parts.iter().any(|part| part.is_of_updates());
        has.then(|| Updates {
            rows: plan.ids.saturating_mul(PER_ID),
            row_bytes: ROW,
            of_request: BATCH,
            exponent: EXPONENT,
        })
    }

    /// Bytes of a database that is loaded with them.
    pub(super) fn loaded_bytes(&self) -> u64 {
        self.rows.saturating_mul(LOADED)
    }

    /// Bytes that a trial may add to it.
    pub(super) fn added_bytes(&self) -> u64 {
        self.rows.saturating_mul(ADDED)
    }
}

/// Settings of the workload.
pub(super) fn settings(plan: &Plan, part: Part) -> Settings {
    let mut all = vec![
        ("keys", plan.ids.saturating_mul(PER_ID).to_string()),
        ("size", (ROW - KEY).to_string()),
        ("batch", BATCH.to_string()),
        ("random", RANDOM_PERCENT.to_string()),
    ];
    if part == Part::CurveZipf {
        all.push(("zipf", EXPONENT.to_string()));
    }
    catalogue::settings(&all)
}

/// Bytes of a segment of the store's log. By default a few segments are as large as all data of this plan, and would be most of
/// the space that is measured.
fn segment_bytes(plan: &Plan) -> u64 {
    (plan.pool_bytes() / SEGMENTS)
        .next_power_of_two()
        .min(SEGMENT)
}

/// The store along its knob, then what stands beside it.
pub(super) fn entries(plan: &Plan, part: Part) -> Vec<Entry> {
    let load = if part == Part::CurveZipf {
        "zipf"
    } else {
        "uniform"
    };
    let named = |name: &str, entry: Entry| Entry {
        part,
        name: format!("{load} {name}"),
        ..entry
    };
    let store = BUFFERS.map(|percent| {
        let mut entry = catalogue::buffer(plan, percent);
        let segment = ("segment", segment_bytes(plan).to_string());
        entry.loaded_with.extend(catalogue::settings(&[segment]));
        named(&format!("buffer {percent}%"), entry)
    });
    let servers = [
        catalogue::innodb(plan, 16, false),
        catalogue::myrocks(plan, "zstd"),
    ];
    let linked_in = catalogue::linked_in(plan).filter(|one| one.database != store[0].database);
    let beside = servers.into_iter().chain(linked_in);
    let beside: Vec<Entry> = beside
        .map(|entry| named(&entry.name.clone(), entry))
        .collect();
    store.into_iter().chain(beside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_many_times_the_memory() {
        let plan = Plan {
            parts: vec![Part::Curve],
            ..Plan::standard()
        };
        let updates = Updates::of(&plan).unwrap();
        let times = updates.rows * updates.row_bytes / plan.pool_bytes();
        assert!((10..40).contains(&times), "{times}");
        assert_eq!(Updates::of(&Plan::standard()), None);
    }

    #[test]
    fn the_store_has_every_position_and_all_others_stand_beside_it() {
        let plan = Plan::standard();
        for (part, load) in [(Part::Curve, "uniform"), (Part::CurveZipf, "zipf")] {
            let all = entries(&plan, part);
            let (store, beside) = all.split_at(BUFFERS.len());
            let positions: Vec<_> = store.iter().filter_map(|one| one.buffer).collect();
            assert_eq!(positions, BUFFERS);
            assert!(store.iter().all(|one| one.database == "landfall-store"));
            assert!(beside.iter().all(|one| one.buffer.is_none()));
            let names: Vec<_> = beside.iter().map(|one| one.database).collect();
            assert!(!names.contains(&"landfall-store"));
            for name in ["mariadb", "myrocks", "sqlite", "redb"] {
                assert!(names.contains(&name), "{names:?}");
            }
            assert!(all.iter().all(|one| one.name.starts_with(load)));
        }
    }

    #[test]
    fn skewed_updates_are_of_the_same_rows() {
        let plan = Plan::standard();
        let uniform = settings(&plan, Part::Curve);
        let skewed = settings(&plan, Part::CurveZipf);
        assert_eq!(skewed[..uniform.len()], uniform);
        assert_eq!(skewed.last().unwrap().1, "0.99");
        for set in [uniform, skewed] {
            let workload = landfall_databases::workload::named(WORKLOAD, &set).unwrap();
            let updates = workload.updates().unwrap();
            assert_eq!((updates.rows, updates.bytes), (BATCH, BATCH * ROW));
        }
    }
}
