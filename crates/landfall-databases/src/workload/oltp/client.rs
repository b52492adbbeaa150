//! The transactions.

use fastrand::Rng;

use super::draw::{Distribution, digits};
use super::{Oltp, Test};
use crate::workload::Client;
use crate::workload::sql::transaction;
use crate::{DatabaseError, Dialect, Sql, Statement, Value};

/// Rows that a transaction reads by their id.
const POINTS: usize = 10;
/// Rows of a range.
const RANGE: i64 = 100;

/// The queries over a range.
const RANGES: [&str; 4] = [
    "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?",
    "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?",
    "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
    "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
];

pub(super) struct OltpClient {
    sql: Box<dyn Sql>,
    does: Does,
    draw: Draw,
}

/// What a request does, with the statements for it.
enum Does {
    UpdateIndex(Statement),
    UpdateNonIndex(Statement),
    Insert,
    Transaction {
        reads: Option<Reads>,
        writes: Writes,
    },
}

struct Reads {
    point: Statement,
    ranges: [Statement; 4],
}

struct Writes {
    update_index: Statement,
    update_non_index: Statement,
    delete: Statement,
    insert: Statement,
}

struct Draw {
    rows: u64,
    distribution: Distribution,
    random: Rng,
}

impl Draw {
    fn id(&mut self) -> Value {
        Value::Integer(self.distribution.id(&mut self.random, self.rows))
    }

    fn c(&mut self) -> Value {
        Value::Bytes(digits(&mut self.random, 10).into_bytes())
    }

    fn pad(&mut self) -> Value {
        Value::Bytes(digits(&mut self.random, 5).into_bytes())
    }
}

fn prepare_update_index(sql: &mut dyn Sql) -> Result<Statement, DatabaseError> {
    sql.prepare("UPDATE sbtest1 SET k = k + 1 WHERE id = ?")
}

fn prepare_update_non_index(sql: &mut dyn Sql) -> Result<Statement, DatabaseError> {
    sql.prepare("UPDATE sbtest1 SET c = ? WHERE id = ?")
}

impl Reads {
    fn prepare(sql: &mut dyn Sql) -> Result<Reads, DatabaseError> {
        let [plain, sum, ordered, distinct] = RANGES;
        Ok(Reads {
            point: sql.prepare("SELECT c FROM sbtest1 WHERE id = ?")?,
            ranges: [
                sql.prepare(plain)?,
                sql.prepare(sum)?,
                sql.prepare(ordered)?,
                sql.prepare(distinct)?,
            ],
        })
    }

    fn run(&self, sql: &mut dyn Sql, draw: &mut Draw) -> Result<(), DatabaseError> {
        for _ in 0..POINTS {
            sql.query(self.point, &[draw.id()])?;
        }
        for range in self.ranges {
            let first = draw.distribution.id(&mut draw.random, draw.rows);
            let ids = [first, first + RANGE - 1].map(Value::Integer);
            sql.query(range, &ids)?;
        }
        Ok(())
    }
}

impl Writes {
    fn prepare(sql: &mut dyn Sql) -> Result<Writes, DatabaseError> {
        Ok(Writes {
            update_index: prepare_update_index(sql)?,
            update_non_index: prepare_update_non_index(sql)?,
            delete: sql.prepare("DELETE FROM sbtest1 WHERE id = ?")?,
            insert: sql.prepare("INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)")?,
        })
    }

    fn run(&self, sql: &mut dyn Sql, draw: &mut Draw) -> Result<(), DatabaseError> {
        sql.execute(self.update_index, &[draw.id()])?;
        sql.execute(self.update_non_index, &[draw.c(), draw.id()])?;
        let id = draw.id();
        sql.execute(self.delete, std::slice::from_ref(&id))?;
        let row = [id, draw.id(), draw.c(), draw.pad()];
        sql.execute(self.insert, &row).map(drop)
    }
}

impl OltpClient {
    pub fn new(
        workload: &Oltp,
        mut sql: Box<dyn Sql>,
        random: Rng,
    ) -> Result<OltpClient, DatabaseError> {
        let session = sql.as_mut();
        let does = match workload.test {
            Test::UpdateIndex => Does::UpdateIndex(prepare_update_index(session)?),
            Test::UpdateNonIndex => Does::UpdateNonIndex(prepare_update_non_index(session)?),
            Test::Insert => Does::Insert,
            Test::ReadWrite => Does::Transaction {
                reads: Some(Reads::prepare(session)?),
                writes: Writes::prepare(session)?,
            },
            Test::WriteOnly => Does::Transaction {
                reads: None,
                writes: Writes::prepare(session)?,
            },
        };
        Ok(OltpClient {
            sql,
            does,
            draw: Draw {
                rows: workload.rows,
                distribution: workload.distribution,
                random,
            },
        })
    }
}

/// The one statement that is not prepared: the original writes it out each time.
fn insert(dialect: Dialect, draw: &mut Draw) -> String {
    let k = draw.distribution.id(&mut draw.random, draw.rows);
    let (c, pad) = (digits(&mut draw.random, 10), digits(&mut draw.random, 5));
    // The id that makes the database count on.
    let (column, id) = match dialect {
        Dialect::MariaDb => ("id, ", "0, "),
        Dialect::Postgres => ("", ""),
        Dialect::Sqlite => ("id, ", "NULL, "),
    };
    format!("INSERT INTO sbtest1 ({column}k, c, pad) VALUES ({id}{k}, '{c}', '{pad}')")
}

impl Client for OltpClient {
    fn request(&mut self) -> Result<usize, DatabaseError> {
        let OltpClient { sql, does, draw } = self;
        let sql = sql.as_mut();
        match does {
            Does::UpdateIndex(update) => sql.execute(*update, &[draw.id()]).map(drop)?,
            Does::UpdateNonIndex(update) => {
                sql.execute(*update, &[draw.c(), draw.id()]).map(drop)?;
            }
            Does::Insert => sql.run(&insert(sql.dialect(), draw))?,
            Does::Transaction { reads, writes } => transaction(sql, |sql| {
                if let Some(reads) = reads {
                    reads.run(sql, draw)?;
                }
                writes.run(sql, draw)
            })?,
        }
        Ok(0)
    }
}
