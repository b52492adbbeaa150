//! Single durable puts, and batches of them.
//!
//! A put sets one key to a value of random bytes; a batch sets several, all in one transaction or one
//! atomic batch. Keys are drawn from those that loading made, uniformly or some much more often than others;
//! or each is new, and every client has an ascending sequence of its own, as numbered records would.
//!
//! A batch is sorted by key, so that two clients never wait for each other in a circle.

use std::ops::RangeInclusive;

use fastrand::Rng;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};

use super::loading::{Load, load};
use super::permutation::Permutation;
use super::sql::{Inserter, bytes_type, or_update, transaction};
use super::{Client, Reads, Updates, Workload, random_of};
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{Batch, DatabaseError, Interface, KeyValue, Running, Session, Sql, Statement, Value};
use landfall_os::Stop;

/// Keys that a loader puts in one transaction.
const CHUNK: u64 = 1024;
/// Exponents that are taken: with larger ones a batch of different keys is hardly ever complete.
const EXPONENTS: RangeInclusive<f64> = 0.0..=1.5;
/// Which keys are updated most often is the same for all clients and runs.
const SCATTER: u64 = 1;
/// What a value has besides random bytes: something that compresses away.
const FILLER: u8 = b' ';

pub(super) static KIND: Kind<dyn Workload, Reads> = Kind {
    listed: Reads(&[]),
    description: Description {
        name: "puts",
        about: "durable puts of a key, one at a time or in batches",
        passes_on: None,
        settings: &[
            Setting {
                name: "size",
                default: Some("100"),
                about: "bytes of a value",
                always_shown: true,
            },
            Setting {
                name: "batch",
                default: Some("1"),
                about: "puts in a transaction",
                always_shown: true,
            },
            Setting {
                name: "keys",
                default: Some("10000"),
                about: "distinct keys, which loading makes; 0: every put has a new one",
                always_shown: false,
            },
            Setting {
                name: "zipf",
                default: Some("0"),
                about: "exponent of the Zipf distribution of keys, 0 to 1.5; 0: all equally often",
                always_shown: false,
            },
            Setting {
                name: "random",
                default: Some("100"),
                about: "percent of a value that is random; the rest is spaces",
                always_shown: false,
            },
        ],
    },
    make,
};

struct Puts {
    name: String,
    size: usize,
    batch: usize,
    keys: u64,
    zipf: f64,
    /// Of a value's bytes.
    random: usize,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Workload>, SettingError> {
    let keys = chosen.number("keys", 0, 1 << 40)?;
    let batch = chosen.number("batch", 1, 1 << 16)?;
    if keys != 0 && keys < batch {
        return Err(chosen.wrong("keys", "there are fewer than a batch has"));
    }
    let zipf: f64 = chosen.parse("zipf")?;
    if !EXPONENTS.contains(&zipf) {
        return Err(chosen.wrong("zipf", "it is from 0 to 1.5"));
    }
    if zipf > 0.0 && keys == 0 {
        return Err(chosen.wrong("zipf", "keys that are always new have none"));
    }
    // Those of a batch are all different, and the least frequent would be waited for.
    if zipf > 0.0 && keys < 16 * batch {
        return Err(chosen.wrong("zipf", "it takes 16 times as many keys as a batch has"));
    }
    let size = chosen.size("size", 0, 16 << 20)? as usize;
    let random = chosen.number("random", 0, 100)? as usize;
    Ok(Box::new(Puts {
        name: chosen.name(),
        size,
        batch: batch as usize,
        keys,
        zipf,
        random: (size * random).div_ceil(100),
    }))
}

impl Puts {
    fn value(&self, random: &mut Rng) -> Vec<u8> {
        let mut value = vec![FILLER; self.size];
        random.fill(&mut value[..self.random]);
        value
    }

    fn draw(&self, number: u32, seed: u64) -> Draw {
        let mut random = random_of(number, seed);
        Draw {
            keys: self.keys,
            batch: self.batch,
            // Beside other clients, and those of earlier runs; positive as a signed number.
            next: u64::from(random.u32(..) >> 1) << 32,
            value: vec![FILLER; self.size],
            random_bytes: self.random,
            skew: Skew::new(self, u64::from(number).rotate_left(32) ^ seed),
            random,
        }
    }
}

impl Workload for Puts {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn suits(&self, _: Interface) -> Result<(), String> {
        Ok(())
    }

    fn updates(&self) -> Option<Updates> {
        let rows = self.batch as u64;
        (self.keys > 0).then_some(Updates {
            rows,
            bytes: rows * (size_of::<u64>() + self.size) as u64,
            is_uniform: self.zipf == 0.0,
        })
    }

    fn requests(&self) -> &'static [&'static str] {
        &["put"]
    }

    fn load(&self, running: &dyn Running, clients: u32, stop: &Stop) -> Result<(), DatabaseError> {
        if let Session::Sql(mut sql) = running.session()? {
            let bytes = bytes_type(sql.dialect(), self.size as u64);
            sql.run(&format!(
                "CREATE TABLE puts (k BIGINT PRIMARY KEY, v {bytes} NOT NULL)"
            ))?;
        }
        let what = Load {
            running,
            loaders: clients,
            numbers: 0..self.keys,
            chunk: CHUNK,
            stop,
        };
        let open = |session| Ok((session, Inserter::new("puts", &["k", "v"])));
        load(&what, open, |(session, inserter), chunk| {
            let mut random = Rng::with_seed(chunk.start);
            match session {
                Session::Sql(sql) => {
                    let row = |key| {
                        let value = self.value(&mut random);
                        [Value::Integer(key as i64), Value::Bytes(value)]
                    };
                    let rows: Vec<Value> = chunk.flat_map(row).collect();
                    transaction(sql.as_mut(), |sql| inserter.insert(sql, &rows))
                }
                Session::Keys(keys) => {
                    let mut batch = Batch::default();
                    for key in chunk {
                        batch.put(key.to_be_bytes(), self.value(&mut random));
                    }
                    keys.commit(&batch)
                }
            }
        })
    }

    fn client(
        &self,
        session: Session,
        number: u32,
        seed: u64,
    ) -> Result<Box<dyn Client>, DatabaseError> {
        let draw = self.draw(number, seed);
        Ok(match session {
            Session::Sql(mut sql) => Box::new(SqlClient {
                put: prepare(sql.as_mut())?,
                sql,
                draw,
            }),
            Session::Keys(keys) => Box::new(KeyClient { keys, draw }),
        })
    }
}

fn prepare(sql: &mut dyn Sql) -> Result<Statement, DatabaseError> {
    let or_update = or_update(sql.dialect(), "k", &["v"]);
    sql.prepare(&format!(
        "INSERT INTO puts (k, v) VALUES (?, ?) {or_update}"
    ))
}

/// What one client puts next.
struct Draw {
    keys: u64,
    batch: usize,
    /// The next new key.
    next: u64,
    value: Vec<u8>,
    /// Of a value, its first.
    random_bytes: usize,
    skew: Option<Skew>,
    random: Rng,
}

/// Some keys are drawn much more often than others, which are not their neighbours.
struct Skew {
    ranks: Zipf<f64>,
    scattered: Permutation,
    keys: u64,
    random: SmallRng,
}

impl Skew {
    /// That of a workload which has one.
    fn new(puts: &Puts, seed: u64) -> Option<Skew> {
        let ranks = Zipf::new(puts.keys as f64, puts.zipf).ok();
        ranks.filter(|_| puts.zipf > 0.0).map(|ranks| Skew {
            ranks,
            scattered: Permutation::new(puts.keys, SCATTER),
            keys: puts.keys,
            random: SmallRng::seed_from_u64(seed),
        })
    }

    fn key(&mut self) -> u64 {
        let rank = (self.ranks.sample(&mut self.random) as u64).clamp(1, self.keys) - 1;
        self.scattered.at(rank)
    }
}

impl Draw {
    /// The keys of a batch, ascending, each once.
    fn keys(&mut self) -> Vec<u64> {
        if self.keys == 0 {
            let first = self.next;
            self.next += self.batch as u64;
            return (first..self.next).collect();
        }
        let mut keys = Vec::with_capacity(self.batch);
        while keys.len() < self.batch {
            let missing = self.batch - keys.len();
            keys.extend((0..missing).map(|_| match &mut self.skew {
                Some(skew) => skew.key(),
                None => self.random.u64(..self.keys),
            }));
            keys.sort_unstable();
            keys.dedup();
        }
        keys
    }

    fn value(&mut self) -> &[u8] {
        self.random.fill(&mut self.value[..self.random_bytes]);
        &self.value
    }
}

struct SqlClient {
    sql: Box<dyn Sql>,
    put: Statement,
    draw: Draw,
}

impl Client for SqlClient {
    fn request(&mut self) -> Result<usize, DatabaseError> {
        let SqlClient { sql, put, draw } = self;
        let keys = draw.keys();
        let mut put = |sql: &mut dyn Sql, key: u64| {
            let values = [
                Value::Integer(key as i64),
                Value::Bytes(draw.value().to_vec()),
            ];
            sql.execute(*put, &values).map(drop)
        };
        match keys[..] {
            [key] => put(sql.as_mut(), key)?,
            _ => transaction(sql.as_mut(), |sql| {
                keys.iter().try_for_each(|&key| put(sql, key))
            })?,
        }
        Ok(0)
    }
}

struct KeyClient {
    keys: Box<dyn KeyValue>,
    draw: Draw,
}

impl Client for KeyClient {
    fn request(&mut self) -> Result<usize, DatabaseError> {
        let mut batch = Batch::default();
        for key in self.draw.keys() {
            batch.put(key.to_be_bytes(), self.draw.value());
        }
        self.keys.commit(&batch).map(|()| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{loaded, workload};
    use super::*;
    use crate::Value;
    use crate::conformance::{Fixture, sql};

    /// Keys and sizes of values.
    fn rows(fixture: &Fixture) -> Vec<(i64, i64)> {
        let mut session = sql(&*fixture.running);
        let query = session
            .prepare("SELECT k, length(v) FROM puts ORDER BY k")
            .unwrap();
        let rows = session.query(query, &[]).unwrap();
        let numbers = |row: &Vec<Value>| (row[0].integer().unwrap(), row[1].integer().unwrap());
        rows.iter().map(numbers).collect()
    }

    #[test]
    fn loaded_keys_are_overwritten() {
        let (fixture, workload) = loaded("sqlite", "puts", "size=7 batch=3 keys=5000");
        let expected: Vec<_> = (0..5000).map(|key| (key, 7)).collect();
        assert_eq!(rows(&fixture), expected);
        let mut session = sql(&*fixture.running);
        let query = session.prepare("SELECT k, v FROM puts ORDER BY k").unwrap();
        let before = session.query(query, &[]).unwrap();
        let mut client = workload
            .client(fixture.running.session().unwrap(), 0, 1)
            .unwrap();
        assert_eq!(client.request(), Ok(0));
        let after = session.query(query, &[]).unwrap();
        let changed = before.iter().zip(&after).filter(|(old, new)| old != new);
        assert_eq!(changed.count(), 3);
        assert_eq!(rows(&fixture), expected);
    }

    #[test]
    fn new_keys_ascend_beside_those_of_others() {
        let (fixture, workload) = loaded("sqlite", "puts", "keys=0 batch=2");
        for seed in 0..2 {
            for number in 0..2 {
                let session = fixture.running.session().unwrap();
                let mut client = workload.client(session, number, seed).unwrap();
                (0..3).for_each(|_| assert_eq!(client.request(), Ok(0)));
            }
        }
        let rows = rows(&fixture);
        assert_eq!(rows.len(), 2 * 2 * 3 * 2);
        assert!(rows.iter().all(|&(key, len)| key >= 0 && len == 100));
        let sequences = rows.chunk_by(|(one, _), (next, _)| next - one == 1);
        assert_eq!(sequences.count(), 4);
    }

    #[test]
    fn a_skewed_batch_is_of_few_keys_and_each_is_in_it_once() {
        let mut times = std::collections::BTreeMap::new();
        let puts = Puts {
            name: String::new(),
            size: 0,
            batch: 10,
            keys: 1000,
            zipf: 1.0,
            random: 0,
        };
        let mut draw = puts.draw(0, 7);
        for _ in 0..100 {
            let keys = draw.keys();
            assert!(keys.is_sorted_by(|one, next| one < next), "{keys:?}");
            assert_eq!(keys.len(), 10);
            keys.into_iter()
                .for_each(|key| *times.entry(key).or_insert(0) += 1);
        }
        let hottest = *times.values().max().unwrap();
        assert!(hottest > 60 && times.keys().all(|key| *key < 1000));
        // Neighbours of the hottest are as cold as others.
        let at = |place| Permutation::new(1000, SCATTER).at(place);
        assert_eq!(times[&at(0)], hottest);
        assert!(at(0).abs_diff(at(1)) > 1);
    }

    #[test]
    fn a_value_has_as_many_random_bytes_as_it_is_told() {
        let (_, half) = loaded("sqlite", "puts", "size=9 random=50 keys=10");
        assert_eq!(
            half.updates(),
            Some(Updates {
                rows: 1,
                bytes: 17,
                is_uniform: true
            })
        );
        let puts = Puts {
            name: String::new(),
            size: 9,
            batch: 1,
            keys: 0,
            zipf: 0.0,
            random: 5,
        };
        assert_eq!(puts.updates(), None);
        let mut draw = puts.draw(0, 7);
        let values = [draw.value().to_vec(), draw.value().to_vec()];
        assert_ne!(values[0], values[1]);
        assert!(values.iter().all(|value| value[5..] == [FILLER; 4]));
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for (settings, says) in [
            (
                "keys=2 batch=3",
                "puts keys=2: there are fewer than a batch has",
            ),
            ("zipf=5", "puts zipf=5: it is from 0 to 1.5"),
            ("zipf=NaN", "puts zipf=NaN: it is from 0 to 1.5"),
            (
                "zipf=1 keys=0",
                "puts zipf=1: keys that are always new have none",
            ),
            (
                "zipf=1 keys=30 batch=2",
                "puts zipf=1: it takes 16 times as many keys as a batch has",
            ),
        ] {
            let refused = workload("puts", settings).err().unwrap();
            assert_eq!(refused.to_string(), says);
        }
    }
}
