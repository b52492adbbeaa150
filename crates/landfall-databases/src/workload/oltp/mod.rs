//! What sysbench 1.0.20 does in its OLTP tests, transaction by transaction.
//!
//! One table, `sbtest1`, of the same definition and content, so that sysbench itself can be run on what
//! was loaded here. It is filled by one loader and indexed afterwards, as the original does it, because
//! pages are less full when several loaders insert between each other's rows.

mod client;
mod draw;

use fastrand::Rng;

use self::client::OltpClient;
use self::draw::{Distribution, digits};
use super::loading::{self, Load};
use super::sql::{Inserter, transaction};
use super::{Client, Reads, Workload, random_of};
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{DatabaseError, Dialect, Interface, Running, Session, Value};
use landfall_os::Stop;

/// Rows that are loaded in one transaction.
const CHUNK: u64 = 8192;

/// Which of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    ReadWrite,
    WriteOnly,
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "rows",
        default: Some("100000"),
        about: "rows of the table",
        always_shown: true,
    },
    Setting {
        name: "distribution",
        default: Some("uniform"),
        about: "which rows are asked for: uniform, or special: mostly the middle hundredth",
        always_shown: false,
    },
];

pub(super) static UPDATE_INDEX: Kind<dyn Workload, Reads> = Kind {
    listed: Reads(&[]),
    description: description(
        "oltp_update_index",
        "as sysbench's: one indexed column of one row is updated",
    ),
    make: |chosen| make(chosen, Test::UpdateIndex),
};

pub(super) static UPDATE_NON_INDEX: Kind<dyn Workload, Reads> = Kind {
    listed: Reads(&[]),
    description: description(
        "oltp_update_non_index",
        "as sysbench's: 120 bytes of one row are updated",
    ),
    make: |chosen| make(chosen, Test::UpdateNonIndex),
};

pub(super) static INSERT: Kind<dyn Workload, Reads> = Kind {
    listed: Reads(&[]),
    description: description("oltp_insert", "as sysbench's: one row is inserted"),
    make: |chosen| make(chosen, Test::Insert),
};

pub(super) static READ_WRITE: Kind<dyn Workload, Reads> = Kind {
    listed: Reads(&[]),
    description: description(
        "oltp_read_write",
        "as sysbench's: transactions of 14 queries and 4 changes",
    ),
    make: |chosen| make(chosen, Test::ReadWrite),
};

pub(super) static WRITE_ONLY: Kind<dyn Workload, Reads> = Kind {
    listed: Reads(&[]),
    description: description(
        "oltp_write_only",
        "as sysbench's: transactions of 4 changes",
    ),
    make: |chosen| make(chosen, Test::WriteOnly),
};

const fn description(name: &'static str, about: &'static str) -> Description {
    Description {
        name,
        about,
        settings: SETTINGS,
        passes_on: None,
    }
}

struct Oltp {
    name: String,
    test: Test,
    rows: u64,
    distribution: Distribution,
}

fn make(chosen: &Chosen, test: Test) -> Result<Box<dyn Workload>, SettingError> {
    let distributions = [
        ("uniform", Distribution::Uniform),
        ("special", Distribution::Special),
    ];
    Ok(Box::new(Oltp {
        name: chosen.name(),
        test,
        // Ids are numbers of 32 bits, and new rows need some.
        rows: chosen.number("rows", 1, 1 << 30)?,
        distribution: chosen.one_of("distribution", &distributions)?,
    }))
}

fn only_sql() -> DatabaseError {
    DatabaseError::Failed("OLTP needs a database with tables".to_owned())
}

impl Workload for Oltp {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn suits(&self, interface: Interface) -> Result<(), String> {
        match interface {
            Interface::Sql(_) => Ok(()),
            Interface::OrderedKeys | Interface::Keys => {
                Err("its transactions are in SQL, and this database has no tables".to_owned())
            }
        }
    }

    fn requests(&self) -> &'static [&'static str] {
        &["transaction"]
    }

    fn load(&self, running: &dyn Running, _: u32, stop: &Stop) -> Result<(), DatabaseError> {
        let Session::Sql(mut sql) = running.session()? else {
            return Err(only_sql());
        };
        sql.run(table(sql.dialect()))?;
        let what = Load {
            running,
            loaders: 1,
            numbers: 1..self.rows + 1,
            chunk: CHUNK,
            stop,
        };
        let open = |session| match session {
            Session::Sql(sql) => Ok((sql, Inserter::new("sbtest1", &["id", "k", "c", "pad"]))),
            Session::Keys(_) => Err(only_sql()),
        };
        loading::load(&what, open, |(sql, inserter), chunk| {
            let mut random = Rng::with_seed(chunk.start);
            let row = |id| {
                [
                    Value::Integer(id as i64),
                    Value::Integer(self.distribution.id(&mut random, self.rows)),
                    Value::Bytes(digits(&mut random, 10).into_bytes()),
                    Value::Bytes(digits(&mut random, 5).into_bytes()),
                ]
            };
            let rows: Vec<Value> = chunk.flat_map(row).collect();
            transaction(sql.as_mut(), |sql| inserter.insert(sql, &rows))
        })?;
        sql.run("CREATE INDEX k_1 ON sbtest1 (k)")?;
        if sql.dialect() == Dialect::Postgres {
            // Ids were given, of which the sequence knows nothing.
            let set = sql.prepare("SELECT setval('sbtest1_id_seq', ?)")?;
            sql.query(set, &[Value::Integer(self.rows as i64)])?;
        }
        Ok(())
    }

    fn client(
        &self,
        session: Session,
        number: u32,
        seed: u64,
    ) -> Result<Box<dyn Client>, DatabaseError> {
        let Session::Sql(sql) = session else {
            return Err(only_sql());
        };
        Ok(Box::new(OltpClient::new(
            self,
            sql,
            random_of(number, seed),
        )?))
    }
}

fn table(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::MariaDb => {
            "CREATE TABLE sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT 0 NOT NULL,
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))"
        }
        Dialect::Postgres => {
            "CREATE TABLE sbtest1 (id SERIAL, k INTEGER DEFAULT 0 NOT NULL,
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))"
        }
        // An INTEGER PRIMARY KEY is the table's own order, and counts up by itself.
        Dialect::Sqlite => {
            "CREATE TABLE sbtest1 (id INTEGER PRIMARY KEY, k INTEGER DEFAULT 0 NOT NULL,
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL)"
        }
    }
}

#[cfg(test)]
mod tests;
