//! What workloads on tables have in common: transactions, the words that differ between dialects, and
//! inserting many rows at once.

use crate::{DatabaseError, Dialect, Sql, Statement, Value};

/// Rows that one statement inserts, at most. More make it hardly faster, and SQLite takes no more than
/// 32,766 values at once.
const ROWS: usize = 256;

/// Does `body` in a transaction; after an error nothing of it was done.
pub fn transaction<T>(
    sql: &mut dyn Sql,
    body: impl FnOnce(&mut dyn Sql) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    sql.run(match sql.dialect() {
        // Whoever writes says so first: to be told of a conflict in the middle would help nobody.
        Dialect::Sqlite => "BEGIN IMMEDIATE",
        Dialect::MariaDb | Dialect::Postgres => "BEGIN",
    })?;
    let done = body(sql).and_then(|value| sql.run("COMMIT").map(|()| value));
    if done.is_err() {
        // Where there is no transaction any more this fails, and what is really broken shows again.
        let _ = sql.run("ROLLBACK");
    }
    done
}

/// The type of a column of at most so many bytes.
pub fn bytes_type(dialect: Dialect, most: u64) -> String {
    match dialect {
        // A row holds no more than 65,535 bytes beside its blobs.
        Dialect::MariaDb if most <= 16 << 10 => format!("VARBINARY({most})"),
        Dialect::MariaDb => "LONGBLOB".to_owned(),
        Dialect::Postgres => "BYTEA".to_owned(),
        Dialect::Sqlite => "BLOB".to_owned(),
    }
}

/// What follows an `INSERT` into a table with primary key `key` so that a row that is already there gets
/// the new values of `columns`.
pub(super) fn or_update(dialect: Dialect, key: &str, columns: &[&str]) -> String {
    let set = |new: fn(&str) -> String| {
        let set = columns
            .iter()
            .map(|column| format!("{column} = {}", new(column)));
        set.collect::<Vec<_>>().join(", ")
    };
    match dialect {
        Dialect::MariaDb => {
            let set = set(|column| format!("VALUES({column})"));
            format!("ON DUPLICATE KEY UPDATE {set}")
        }
        Dialect::Postgres | Dialect::Sqlite => {
            let set = set(|column| format!("excluded.{column}"));
            format!("ON CONFLICT ({key}) DO UPDATE SET {set}")
        }
    }
}

/// Inserts rows into a table, many with one statement.
pub struct Inserter {
    /// `INSERT INTO t (a, b) VALUES`.
    insert: String,
    columns: usize,
    /// Statements for 1, 2, 4, … rows, as they were needed.
    statements: Vec<Option<Statement>>,
}

impl Inserter {
    /// For rows of these columns.
    pub fn new(table: &str, columns: &[&str]) -> Inserter {
        Inserter {
            insert: format!("INSERT INTO {table} ({}) VALUES", columns.join(", ")),
            columns: columns.len(),
            statements: vec![None; ROWS.ilog2() as usize + 1],
        }
    }

    /// Inserts rows, whose values follow each other.
    pub fn insert(&mut self, sql: &mut dyn Sql, mut values: &[Value]) -> Result<(), DatabaseError> {
        while !values.is_empty() {
            let power = (values.len() / self.columns).clamp(1, ROWS).ilog2();
            let rows = 1 << power;
            let statement = match self.statements[power as usize] {
                Some(statement) => statement,
                None => {
                    let row = format!("({})", vec!["?"; self.columns].join(", "));
                    let text = format!("{} {}", self.insert, vec![row; rows].join(", "));
                    let statement = sql.prepare(&text)?;
                    self.statements[power as usize] = Some(statement);
                    statement
                }
            };
            let (now, later) = values.split_at(values.len().min(rows * self.columns));
            sql.execute(statement, now)?;
            values = later;
        }
        Ok(())
    }
}
