//! One connection to SQLite.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::super::{DatabaseError, Dialect, Row, Sql, Statement, Value};
use super::failed;

/// More statements than any workload prepares: SQLite forgets the oldest beyond it, and prepares it
/// again.
const STATEMENTS: usize = 256;

pub(super) struct SqliteSession {
    connection: Connection,
    /// What was prepared, by number; the connection keeps the statements by their text.
    prepared: Vec<String>,
}

impl SqliteSession {
    pub fn new(connection: Connection) -> SqliteSession {
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        SqliteSession {
            connection,
            prepared: Vec::new(),
        }
    }

    fn sql(&self, statement: Statement) -> Result<&str, DatabaseError> {
        let sql = self.prepared.get(statement.0);
        sql.map(String::as_str).ok_or_else(|| {
            DatabaseError::Failed("a statement of another session was run".to_owned())
        })
    }
}

/// A parameter, lent to SQLite.
struct Parameter<'a>(&'a Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn from_sqlite(value: ValueRef<'_>) -> Result<Value, DatabaseError> {
    match value {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) => Ok(Value::Integer(number)),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(Value::Bytes(bytes.to_vec())),
        ValueRef::Real(number) => Err(DatabaseError::Failed(format!(
            "a column holds {number}, which is no integer"
        ))),
    }
}

impl Sql for SqliteSession {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        let ran = self.connection.execute_batch(sql);
        ran.map_err(|error| failed(sql, &error))
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, DatabaseError> {
        let prepared = self.connection.prepare_cached(sql);
        prepared
            .map(drop)
            .map_err(|error| failed(&format!("cannot prepare {sql}"), &error))?;
        self.prepared.push(sql.to_owned());
        Ok(Statement(self.prepared.len() - 1))
    }

    fn execute(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<u64, DatabaseError> {
        let sql = self.sql(statement)?;
        let failed = |error| failed(sql, &error);
        let mut prepared = self.connection.prepare_cached(sql).map_err(failed)?;
        let parameters = params_from_iter(parameters.iter().map(Parameter));
        let changed = prepared.execute(parameters).map_err(failed)?;
        Ok(changed as u64)
    }

    fn query(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<Vec<Row>, DatabaseError> {
        let sql = self.sql(statement)?;
        let failed = |error| failed(sql, &error);
        let mut prepared = self.connection.prepare_cached(sql).map_err(failed)?;
        let columns = prepared.column_count();
        let parameters = params_from_iter(parameters.iter().map(Parameter));
        let mut rows = prepared.query(parameters).map_err(failed)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let values = (0..columns).map(|column| {
                let value = row.get_ref(column);
                from_sqlite(value.map_err(failed)?)
            });
            found.push(values.collect::<Result<Row, DatabaseError>>()?);
        }
        Ok(found)
    }

    fn last_id(&mut self) -> Result<i64, DatabaseError> {
        Ok(self.connection.last_insert_rowid())
    }
}
