//! LinkBench: the load of a social graph's database, of nodes with links between them.
//!
//! Ours, from the facts of the original's default configuration: its tables, mix of requests,
//! distributions and payloads. `docs/reference/workloads.md` says where it differs, and why.
//!
//! - [`graph`], [`access`], [`payload`]: what there is and how often it is wanted, all from one seed;
//! - [`request`]: what a client asks next; [`load`]: what there is before;
//! - [`store`]: what it is asked of, in SQL ([`sql`]) or as ordered keys ([`keys`]).

mod access;
mod graph;
mod keys;
mod load;
mod payload;
mod request;
mod sql;
mod store;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use self::keys::{KeyStore, Shared};
use self::request::{Draw, NAMES, NODE_TYPE, READS, Request, Source};
use self::sql::SqlStore;
use self::store::{Store, ask};
use super::loading::{self, Load};
use super::sql::{Inserter, transaction};
use super::{Client, Reads, Workload, random_of};
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{Batch, DatabaseError, Dialect, Interface, KeyValue, Running, Session, Sql, Value};
use landfall_os::Stop;

pub(super) static KIND: Kind<dyn Workload, Reads> = Kind {
    listed: Reads(READS),
    description: Description {
        name: "linkbench",
        about: "LinkBench: a social graph's nodes and links, two thirds of the requests read",
        passes_on: None,
        settings: &[
            Setting {
                name: "ids",
                default: Some("50000"),
                about: "nodes that are loaded; a million are about 1 GB",
                always_shown: true,
            },
            Setting {
                name: "compression",
                default: Some("no"),
                about: "whether InnoDB compresses pages of links and counts to half: yes or no",
                always_shown: false,
            },
            Setting {
                name: "seed",
                default: Some("1"),
                about: "what everything that is loaded is drawn from",
                always_shown: false,
            },
        ],
    },
    make,
};

struct LinkBench {
    name: String,
    ids: u64,
    is_compressed: bool,
    seed: u64,
    source: Arc<Source>,
    shared: Arc<Shared>,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Workload>, SettingError> {
    let ids = chosen.number("ids", 1, 1 << 40)?;
    let seed = chosen.number("seed", 0, u64::MAX)?;
    Ok(Box::new(LinkBench {
        name: chosen.name(),
        ids,
        is_compressed: chosen.whether("compression")?,
        seed,
        source: Arc::new(Source::new(ids, seed)),
        shared: Arc::new(Shared::new(ids)),
    }))
}

impl Workload for LinkBench {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn suits(&self, interface: Interface) -> Result<(), String> {
        match interface {
            Interface::Keys => {
                Err("it lists links in order, and this database's keys have none".to_owned())
            }
            Interface::Sql(Dialect::MariaDb) => Ok(()),
            _ if self.is_compressed => {
                Err("compression=yes is of InnoDB's tables; other databases have settings of their own for it".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn requests(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn load(&self, running: &dyn Running, clients: u32, stop: &Stop) -> Result<(), DatabaseError> {
        let mut first = running.session()?;
        if let Session::Sql(sql) = &mut first {
            let compressed = if self.is_compressed {
                compressed(sql.as_mut())?
            } else {
                String::new()
            };
            for table in sql::tables(sql.dialect(), &compressed) {
                sql.run(&table)?;
            }
        }
        let what = Load {
            running,
            loaders: clients,
            numbers: 1..self.ids + 1,
            chunk: load::CHUNK,
            stop,
        };
        let open = |session| {
            Ok(match session {
                Session::Sql(sql) => Loader::Sql {
                    sql,
                    links: Inserter::new("linktable", &sql::LINK),
                    counts: Inserter::new("counttable", &sql::COUNT),
                    nodes: Inserter::new("nodetable", &sql::NODE),
                },
                Session::Keys(keys) => Loader::Keys(keys),
            })
        };
        loading::load(&what, open, |loader, ids| {
            let loaded = ids.map(|id| self.source.loaded(id, self.seed));
            loader.fill(&self.source, loaded)
        })?;
        match &mut first {
            Session::Sql(sql) => self.finish(sql.as_mut()),
            Session::Keys(_) => Ok(()),
        }
    }

    fn client(
        &self,
        session: Session,
        number: u32,
        seed: u64,
    ) -> Result<Box<dyn Client>, DatabaseError> {
        let store: Box<dyn Store> = match session {
            Session::Sql(sql) => Box::new(SqlStore::new(sql)?),
            Session::Keys(keys) => Box::new(KeyStore::new(keys, Arc::clone(&self.shared))?),
        };
        Ok(Box::new(LinkBenchClient {
            store,
            source: Arc::clone(&self.source),
            draw: Draw::new(random_of(number, seed).u64(..)),
            refused: None,
        }))
    }
}

impl LinkBench {
    /// What is left to do when the tables are full.
    fn finish(&self, sql: &mut dyn Sql) -> Result<(), DatabaseError> {
        if sql.dialect() != Dialect::Postgres {
            return Ok(());
        }
        // Ids were given, of which the sequence knows nothing.
        let set = sql.prepare("SELECT setval('nodetable_id_seq', ?)")?;
        sql.query(set, &[sql::number(self.ids)])?;
        // Else the first to read a row would note that its transaction is over, which dirties every page.
        ["linktable", "counttable", "nodetable"]
            .iter()
            .try_for_each(|table| sql.run(&format!("VACUUM ANALYZE {table}")))
    }
}

/// What MariaDB is told of a table whose pages are to be compressed to half.
fn compressed(sql: &mut dyn Sql) -> Result<String, DatabaseError> {
    let statement = sql.prepare("SELECT @@default_storage_engine, @@innodb_page_size")?;
    let rows = sql.query(statement, &[])?;
    let [engine, page] = rows.first().map(Vec::as_slice).unwrap_or_default() else {
        return Err(DatabaseError::Failed(
            "MariaDB tells no page size".to_owned(),
        ));
    };
    let page = page.integer().unwrap_or_default();
    match engine.bytes() {
        b"InnoDB" if page <= 16 << 10 => Ok(format!(
            " ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE={}",
            page >> 11
        )),
        b"InnoDB" => Err(DatabaseError::Setting(
            "compression=yes: InnoDB compresses pages of 4K, 8K and 16K only".to_owned(),
        )),
        _ => Err(DatabaseError::Setting(
            "compression=yes is of InnoDB's tables; MyRocks compresses by its own settings"
                .to_owned(),
        )),
    }
}

/// One loader's way in.
enum Loader {
    Sql {
        sql: Box<dyn Sql>,
        links: Inserter,
        counts: Inserter,
        nodes: Inserter,
    },
    Keys(Box<dyn KeyValue>),
}

impl Loader {
    /// Puts nodes with their links and counts there: as one transaction, or in batches.
    fn fill(
        &mut self,
        source: &Source,
        loaded: impl Iterator<Item = load::Loaded>,
    ) -> Result<(), DatabaseError> {
        match self {
            Loader::Sql {
                sql,
                links,
                counts,
                nodes,
            } => transaction(sql.as_mut(), |sql| {
                let (mut link_rows, mut count_rows, mut node_rows) = (vec![], vec![], vec![]);
                for loaded in loaded {
                    let id = loaded.id;
                    let node = &loaded.node;
                    node_rows.extend([
                        sql::number(id),
                        sql::number(u64::from(NODE_TYPE)),
                        sql::number(node.version),
                        sql::number(u64::from(node.time)),
                        Value::Bytes(node.data.clone()),
                    ]);
                    for (kind, count) in loaded.counts(source) {
                        let time = u64::from(node.time) * 1000;
                        count_rows.extend([id, kind, count, time, 0].map(sql::number));
                    }
                    for link in loaded.links(source) {
                        link_rows.extend(sql::link_row(&link));
                        if link_rows.len() >= load::BATCH * sql::LINK.len() {
                            links.insert(sql, &link_rows)?;
                            link_rows.clear();
                        }
                    }
                }
                links.insert(sql, &link_rows)?;
                counts.insert(sql, &count_rows)?;
                nodes.insert(sql, &node_rows)
            }),
            Loader::Keys(keys) => {
                let mut batch = Batch::default();
                let mut in_batch = 0;
                for loaded in loaded {
                    let id = loaded.id;
                    keys::put_node(&mut batch, id, &loaded.node);
                    for (kind, count) in loaded.counts(source) {
                        let time = u64::from(loaded.node.time) * 1000;
                        keys::put_count(&mut batch, id, kind, count, time, 0);
                    }
                    for link in loaded.links(source) {
                        keys::put_link(&mut batch, &link);
                        in_batch += 1;
                        if in_batch == load::BATCH {
                            keys.commit(&batch)?;
                            batch.0.clear();
                            in_batch = 0;
                        }
                    }
                }
                keys.commit(&batch)
            }
        }
    }
}

struct LinkBenchClient {
    store: Box<dyn Store>,
    source: Arc<Source>,
    draw: Draw,
    /// A request that met a conflict, and is sent again.
    refused: Option<Request>,
}

impl Client for LinkBenchClient {
    fn request(&mut self) -> Result<usize, DatabaseError> {
        let request = match self.refused.take() {
            Some(request) => request,
            None => self.draw.next(&self.source, now()),
        };
        let kind = request.kind();
        match ask(self.store.as_mut(), &request) {
            Ok(answer) => {
                self.draw.remember(&request, &answer);
                Ok(kind)
            }
            Err(error) => {
                if matches!(error, DatabaseError::Conflict(_)) {
                    self.refused = Some(request);
                }
                Err(error)
            }
        }
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests;
