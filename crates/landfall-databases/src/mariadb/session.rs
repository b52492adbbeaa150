//! A client of MariaDB: prepared statements over the binary protocol.

use mysql::consts::ColumnType;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, QueryResult};

use crate::server::Watch;
use crate::{DatabaseError, Dialect, Row, Sql, Statement, Value};

/// Errors after which the transaction was rolled back and can be tried again: a deadlock, a lock that was
/// not got in time, a row that somebody else has changed since.
const CONFLICTS: [u16; 3] = [1213, 1205, 1020];
/// Errors that say that there is no space: a full disk, a full table, a log that could not be written.
const NO_SPACE: [u16; 3] = [1021, 1114, 1026];

pub(super) struct Session {
    connection: Conn,
    statements: Vec<mysql::Statement>,
    last_id: i64,
    watch: Watch,
}

impl Session {
    pub fn new(connection: Conn, watch: Watch) -> Session {
        Session {
            connection,
            statements: Vec::new(),
            last_id: 0,
            watch,
        }
    }

    /// Sends a statement with its parameters, and hands its result to `read`, which also gets the id that
    /// it gave to a row, if it did.
    fn send<T>(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        read: impl FnOnce(&mut Outcome<'_>) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let prepared = &self.statements[statement.0];
        let parameters = parameters.iter().map(to_server).collect::<Vec<_>>();
        let parameters = if parameters.is_empty() {
            Params::Empty
        } else {
            Params::Positional(parameters)
        };
        let sent = self.connection.exec_iter(prepared, parameters);
        let outcome = sent.map_err(failed).and_then(|mut result| {
            if let Some(id) = result.last_insert_id().filter(|&id| id > 0) {
                self.last_id = id as i64;
            }
            read(&mut result)
        });
        outcome.map_err(|error| self.explain(error))
    }

    /// The error of a statement, after which nothing of its transaction is left: not every engine rolls
    /// back more than the statement each time.
    fn explain(&mut self, error: DatabaseError) -> DatabaseError {
        if matches!(error, DatabaseError::Conflict(_))
            && let Err(error) = run(&mut self.connection, "ROLLBACK")
        {
            return self.watch.explain(error);
        }
        self.watch.explain(error)
    }
}

type Outcome<'a> = QueryResult<'a, 'a, 'a, mysql::Binary>;

impl Sql for Session {
    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        run(&mut self.connection, sql).map_err(|error| self.explain(error))
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, DatabaseError> {
        let prepared = self.connection.prep(sql).map_err(failed);
        let prepared = prepared.map_err(|error| self.watch.explain(error))?;
        self.statements.push(prepared);
        Ok(Statement(self.statements.len() - 1))
    }

    fn execute(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<u64, DatabaseError> {
        self.send(statement, parameters, |result| {
            let changed = result.affected_rows();
            for row in result {
                row.map_err(failed)?;
            }
            Ok(changed)
        })
    }

    fn query(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<Vec<Row>, DatabaseError> {
        self.send(statement, parameters, |result| {
            result
                .map(|row| from_server(row.map_err(failed)?))
                .collect()
        })
    }

    fn last_id(&mut self) -> Result<i64, DatabaseError> {
        Ok(self.last_id)
    }
}

/// Runs statements, and hears of the error of each of them.
pub(super) fn run(connection: &mut Conn, sql: &str) -> Result<(), DatabaseError> {
    let mut results = connection.query_iter(sql).map_err(failed)?;
    while let Some(rows) = results.iter() {
        for row in rows {
            row.map_err(failed)?;
        }
    }
    Ok(())
}

/// What the server or the connection says, as our error.
pub(super) fn failed(error: mysql::Error) -> DatabaseError {
    let mysql::Error::MySqlError(error) = error else {
        return DatabaseError::Failed(format!("the connection to MariaDB failed: {error}"));
    };
    let text = format!("MariaDB says: {} (error {})", error.message, error.code);
    // The operating system's 28 is a full disk, whatever the server was doing.
    let is_full = error.message.contains("Errcode: 28") || error.message.contains("error 28");
    if CONFLICTS.contains(&error.code) {
        DatabaseError::Conflict(text)
    } else if is_full || NO_SPACE.contains(&error.code) {
        DatabaseError::no_space(text)
    } else {
        DatabaseError::Failed(text)
    }
}

fn to_server(value: &Value) -> mysql::Value {
    match value {
        Value::Null => mysql::Value::NULL,
        Value::Integer(number) => mysql::Value::Int(*number),
        Value::Bytes(bytes) => mysql::Value::Bytes(bytes.clone()),
    }
}

fn from_server(row: mysql::Row) -> Result<Row, DatabaseError> {
    let columns = row.columns();
    let values = row.unwrap_raw().into_iter().zip(columns.iter());
    values
        .map(|(value, column)| {
            let is_decimal = column.column_type() == ColumnType::MYSQL_TYPE_NEWDECIMAL;
            let integer = |number: Option<i64>| number.map(Value::Integer);
            match value.unwrap_or(mysql::Value::NULL) {
                mysql::Value::NULL => Some(Value::Null),
                mysql::Value::Int(number) => integer(Some(number)),
                mysql::Value::UInt(number) => integer(i64::try_from(number).ok()),
                // What SUM gives.
                mysql::Value::Bytes(text) if is_decimal => {
                    integer(std::str::from_utf8(&text).ok().and_then(|t| t.parse().ok()))
                }
                mysql::Value::Bytes(bytes) => Some(Value::Bytes(bytes)),
                _ => None,
            }
            .ok_or_else(|| {
                let name = column.name_str();
                DatabaseError::Failed(format!(
                    "column {name} of the result is neither a whole number of 64 bits nor bytes"
                ))
            })
        })
        .collect()
}
