//! A client of PostgreSQL: prepared statements over the binary protocol.

use std::error::Error;

use postgres::error::SqlState;
use postgres::types::{FromSql, ToSql, Type};
use postgres::{Client, Row as PostgresRow};

use crate::server::Watch;
use crate::{DatabaseError, Dialect, Row, Sql, Statement, Value};

/// Errors after which a transaction can be tried again: a deadlock, a serialisation failure, a lock that
/// was not got in time; and a key that is there. Of two transactions that replace a row, the second waits for
/// the first, then finds nothing to delete, and then a new row where it wanted to put its own.
const CONFLICTS: [SqlState; 4] = [
    SqlState::T_R_DEADLOCK_DETECTED,
    SqlState::T_R_SERIALIZATION_FAILURE,
    SqlState::LOCK_NOT_AVAILABLE,
    SqlState::UNIQUE_VIOLATION,
];

pub(super) struct Session {
    connection: Client,
    statements: Vec<postgres::Statement>,
    watch: Watch,
}

impl Session {
    pub fn new(connection: Client, watch: Watch) -> Session {
        Session {
            connection,
            statements: Vec::new(),
            watch,
        }
    }

    /// The error of a statement, after which nothing of its transaction is left: the server only remembers
    /// that it failed, until it is told to forget it.
    fn explain(&mut self, error: postgres::Error) -> DatabaseError {
        let error = failed(error);
        if matches!(error, DatabaseError::Conflict(_)) {
            // Outside a transaction it is a warning that nobody hears.
            if let Err(error) = self.connection.batch_execute("ROLLBACK") {
                return self.watch.explain(failed(error));
            }
        }
        self.watch.explain(error)
    }

    /// Sends a statement with its parameters as the server wants them.
    fn send<T>(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        send: impl FnOnce(
            &mut Client,
            &postgres::Statement,
            &[&(dyn ToSql + Sync)],
        ) -> Result<T, postgres::Error>,
    ) -> Result<T, DatabaseError> {
        let prepared = &self.statements[statement.0];
        let owned: Vec<Box<dyn ToSql + Sync>> = parameters
            .iter()
            .zip(prepared.params())
            .map(|(value, kind)| to_server(value, kind))
            .collect::<Result<_, _>>()?;
        let borrowed: Vec<&(dyn ToSql + Sync)> = owned.iter().map(|one| &**one).collect();
        let wanted = prepared.params().len();
        if parameters.len() != wanted {
            let given = parameters.len();
            return Err(DatabaseError::Failed(format!(
                "a statement has {wanted} parameters and was given {given}"
            )));
        }
        send(&mut self.connection, prepared, &borrowed).map_err(|error| self.explain(error))
    }
}

impl Sql for Session {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        let ran = self.connection.batch_execute(sql);
        ran.map_err(|error| self.explain(error))
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, DatabaseError> {
        let prepared = self.connection.prepare(&numbered(sql));
        let prepared = prepared.map_err(|error| self.explain(error))?;
        self.statements.push(prepared);
        Ok(Statement(self.statements.len() - 1))
    }

    fn execute(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<u64, DatabaseError> {
        self.send(statement, parameters, |client, statement, parameters| {
            client.execute(statement, parameters)
        })
    }

    fn query(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<Vec<Row>, DatabaseError> {
        let rows = self.send(statement, parameters, |client, statement, parameters| {
            client.query(statement, parameters)
        })?;
        rows.iter().map(from_server).collect()
    }

    fn last_id(&mut self) -> Result<i64, DatabaseError> {
        let row = self.connection.query_one("SELECT lastval()", &[]);
        let row = row.map_err(|error| self.explain(error))?;
        row.try_get(0).map_err(failed)
    }
}

/// What the server or the connection says, as our error.
pub(super) fn failed(error: postgres::Error) -> DatabaseError {
    let Some(said) = error.as_db_error() else {
        // Its own text only says where, and the one behind it what.
        let source = error.source().map(|source| format!(": {source}"));
        let source = source.unwrap_or_default();
        return DatabaseError::Failed(format!("the connection to PostgreSQL: {error}{source}"));
    };
    let code = said.code().code();
    let text = format!("PostgreSQL says: {} (SQLSTATE {code})", said.message());
    if CONFLICTS.contains(said.code()) {
        DatabaseError::Conflict(text)
    } else if *said.code() == SqlState::DISK_FULL {
        DatabaseError::no_space(text)
    } else {
        DatabaseError::Failed(text)
    }
}

/// The statement with its parameters numbered: `$1` for the first `?` that is in no quotes.
fn numbered(sql: &str) -> String {
    let mut numbered = String::with_capacity(sql.len() + 8);
    let mut quote = None;
    let mut count = 0;
    for c in sql.chars() {
        match (c, quote) {
            ('?', None) => {
                count += 1;
                numbered.push_str(&format!("${count}"));
                continue;
            }
            ('\'' | '"', None) => quote = Some(c),
            // A quote that is doubled ends the text and begins it again.
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        numbered.push(c);
    }
    numbered
}

/// A value in the type of a parameter.
fn to_server(value: &Value, kind: &Type) -> Result<Box<dyn ToSql + Sync>, DatabaseError> {
    let wrong = || {
        DatabaseError::Failed(format!(
            "a parameter of type {kind} does not take {}",
            match value {
                Value::Null => "no value".to_owned(),
                Value::Integer(number) => number.to_string(),
                Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
            }
        ))
    };
    let integer = value.integer();
    let is_null = *value == Value::Null;
    let parameter: Box<dyn ToSql + Sync> = match *kind {
        Type::INT8 if integer.is_some() || is_null => Box::new(integer),
        Type::INT4 if integer.is_some() || is_null => Box::new(narrow::<i32>(integer, wrong)?),
        Type::INT2 if integer.is_some() || is_null => Box::new(narrow::<i16>(integer, wrong)?),
        Type::BYTEA if integer.is_none() => Box::new((!is_null).then(|| value.bytes().to_vec())),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN
            if integer.is_none() =>
        {
            let text = std::str::from_utf8(value.bytes()).map_err(|_| wrong())?;
            Box::new((!is_null).then(|| text.to_owned()))
        }
        _ => return Err(wrong()),
    };
    Ok(parameter)
}

fn narrow<T: TryFrom<i64>>(
    integer: Option<i64>,
    wrong: impl Fn() -> DatabaseError,
) -> Result<Option<T>, DatabaseError> {
    let narrowed = integer.map(T::try_from).transpose();
    narrowed.map_err(|_| wrong())
}

fn from_server(row: &PostgresRow) -> Result<Row, DatabaseError> {
    (0..row.len())
        .map(|column| row.try_get::<_, Got>(column).map(|got| got.0))
        .collect::<Result<_, _>>()
        .map_err(failed)
}

/// A value of a result.
struct Got(Value);

impl<'a> FromSql<'a> for Got {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Got, Box<dyn Error + Sync + Send>> {
        let value = match *kind {
            Type::INT8 => Value::Integer(i64::from_sql(kind, raw)?),
            Type::INT4 => Value::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT2 => Value::Integer(i16::from_sql(kind, raw)?.into()),
            Type::OID => Value::Integer(u32::from_sql(kind, raw)?.into()),
            Type::BOOL => Value::Integer(bool::from_sql(kind, raw)?.into()),
            Type::NUMERIC => Value::Integer(whole(raw).ok_or("it is no whole number of 64 bits")?),
            // Functions that are called for what they do.
            Type::VOID => Value::Null,
            _ => Value::Bytes(raw.to_vec()),
        };
        Ok(Got(value))
    }

    fn from_sql_null(_: &Type) -> Result<Got, Box<dyn Error + Sync + Send>> {
        Ok(Got(Value::Null))
    }

    fn accepts(kind: &Type) -> bool {
        matches!(
            *kind,
            Type::INT8
                | Type::INT4
                | Type::INT2
                | Type::OID
                | Type::BOOL
                | Type::NUMERIC
                | Type::VOID
                | Type::BYTEA
                | Type::TEXT
                | Type::VARCHAR
                | Type::BPCHAR
                | Type::NAME
        )
    }
}

/// A NUMERIC, such as SUM gives, that is a whole number: how many digits of base 10,000, the power of the
/// first, the sign, the places after the point, and the digits, 16 bits each (numeric_send in numeric.c).
fn whole(raw: &[u8]) -> Option<i64> {
    let mut words = raw
        .chunks_exact(2)
        .map(|word| i16::from_be_bytes([word[0], word[1]]));
    let (count, power, sign) = (words.next()?, words.next()?, words.next()?);
    let _places = words.next()?;
    let mut number: i64 = 0;
    let mut digits = words.take(usize::try_from(count).ok()?);
    for _ in 0..=power {
        // Zeros at the end are not sent.
        let digit = digits.next().unwrap_or(0);
        number = number.checked_mul(10_000)?.checked_add(digit.into())?;
    }
    match (sign, digits.next()) {
        (0, None) => Some(number),
        (0x4000, None) => Some(-number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_outside_quotes() {
        assert_eq!(
            numbered("UPDATE t SET a = ?, b = 'it''s ?' WHERE \"c?\" = ?"),
            "UPDATE t SET a = $1, b = 'it''s ?' WHERE \"c?\" = $2"
        );
    }

    #[test]
    fn a_numeric_is_a_number_if_it_is_whole() {
        let numeric = |words: &[i16]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            whole(&bytes)
        };
        assert_eq!(numeric(&[0, 0, 0, 0]), Some(0));
        assert_eq!(numeric(&[2, 1, 0, 0, 12, 3456]), Some(123456));
        assert_eq!(numeric(&[1, 1, 0x4000, 0, 12]), Some(-120000));
        assert_eq!(numeric(&[2, 0, 0, 1, 1, 5000]), None);
        assert_eq!(numeric(&[1, 20, 0, 0, 1]), None);
        assert_eq!(numeric(&[0, 0, -0x4000, 0]), None);
        assert_eq!(whole(&[0]), None);
    }

    #[test]
    fn a_parameter_that_does_not_fit_is_refused() {
        let fits = |value, kind| to_server(&value, &kind).is_ok();
        assert!(fits(Value::Integer(7), Type::INT2));
        assert!(!fits(Value::Integer(1 << 40), Type::INT4));
        assert!(fits(Value::Null, Type::INT4));
        assert!(!fits(Value::Bytes(vec![1]), Type::INT8));
        assert!(!fits(Value::Bytes(vec![0xff]), Type::TEXT));
        assert!(!fits(Value::Integer(1), Type::FLOAT8));
    }
}
