//! What workloads ask of a database with tables.

use super::DatabaseError;

/// Which SQL is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MariaDB's and MySQL's; the storage engine of new tables is the database's default.
    MariaDb,
    /// PostgreSQL's.
    Postgres,
    /// SQLite's.
    Sqlite,
}

/// A value handed to a statement, or got from one. Tables have integers of 64 bits and bytes only:
/// `BIGINT`, and `VARBINARY` or `BLOB` in MariaDB, `BYTEA` in PostgreSQL; text columns give bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Null,
    /// A number.
    Integer(i64),
    /// Bytes, or the bytes of a text.
    Bytes(Vec<u8>),
}

impl Value {
    /// The number; `None` if it is none.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The bytes; none if it has none.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
}

/// A row of a result.
pub type Row = Vec<Value>;

/// A prepared statement of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub(super) usize);

/// A connection to a database with tables. Outside a transaction each statement is one.
pub trait Sql: Send {
    /// The dialect.
    fn dialect(&self) -> Dialect;

    /// Runs statements without parameters, separated by semicolons: definitions, `BEGIN`, `COMMIT`.
    fn run(&mut self, sql: &str) -> Result<(), DatabaseError>;

    /// Prepares one statement, whose parameters are written `?` (and numbered `$1` by whoever needs
    /// it so); prepared once, it serves as long as the session.
    fn prepare(&mut self, sql: &str) -> Result<Statement, DatabaseError>;

    /// Runs a statement; returns how many rows it changed, as the database counts them.
    fn execute(&mut self, statement: Statement, parameters: &[Value])
    -> Result<u64, DatabaseError>;

    /// Runs a query.
    fn query(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<Vec<Row>, DatabaseError>;

    /// The id that the last insert of this session was given, by `AUTO_INCREMENT` or what the dialect
    /// has instead; workloads for PostgreSQL use `RETURNING`.
    fn last_id(&mut self) -> Result<i64, DatabaseError>;
}
