//! Transactions on a database with tables.

use super::Commit;
use crate::transactions::shape::{ENTRIES, Entry, Remains, Shape, Slot};
use landfall_databases::workload::sql::{Inserter, bytes_type, transaction as in_transaction};
use landfall_databases::{DatabaseError, Dialect, Sql, Statement, Value};

/// Creates the tables, with every slot as no transaction has left it yet.
pub(super) fn create(sql: &mut dyn Sql, shape: &Shape, clients: u32) -> Result<(), DatabaseError> {
    let bytes = bytes_type(sql.dialect(), shape.size as u64);
    sql.run(&format!(
        "CREATE TABLE entries (n BIGINT NOT NULL, number BIGINT NOT NULL, client BIGINT NOT NULL,
             bytes {bytes} NOT NULL, PRIMARY KEY (n, number));
         CREATE TABLE slots (client BIGINT NOT NULL, number BIGINT NOT NULL, n BIGINT NOT NULL,
             bytes {bytes} NOT NULL, PRIMARY KEY (client, number))"
    ))?;
    if keeps_numbers(sql.dialect()) {
        sql.run("CREATE TABLE log_of_numbers (n BIGINT PRIMARY KEY)")?;
    }
    let mut inserter = Inserter::new("slots", &["client", "number", "n", "bytes"]);
    in_transaction(sql, |sql| {
        for client in 0..clients {
            let row = |number| {
                [
                    Value::Integer(client.into()),
                    integer(number),
                    integer(0),
                    Value::Bytes(shape.slot(0, number)),
                ]
            };
            let rows: Vec<Value> = (0..shape.rows).flat_map(row).collect();
            inserter.insert(sql, &rows)?;
        }
        Ok(())
    })
}

/// Whether transactions put their numbers into a table of their own besides.
fn keeps_numbers(dialect: Dialect) -> bool {
    dialect == Dialect::MariaDb
}

/// Reads everything.
pub(super) fn read(sql: &mut dyn Sql) -> Result<Remains, DatabaseError> {
    let numbers = if keeps_numbers(sql.dialect()) {
        let numbers = sql.prepare("SELECT n FROM log_of_numbers")?;
        let numbers = sql.query(numbers, &[])?;
        Some(numbers.iter().map(|row| natural(&row[0])).collect())
    } else {
        None
    };
    let entries = sql.prepare("SELECT n, number, client, bytes FROM entries")?;
    let entries = sql.query(entries, &[])?;
    let slots = sql.prepare("SELECT n, number, client, bytes FROM slots")?;
    let slots = sql.query(slots, &[])?;
    Ok(Remains {
        entries: entries
            .iter()
            .map(|row| Entry {
                transaction: natural(&row[0]),
                number: natural(&row[1]),
                client: natural(&row[2]),
                bytes: row[3].bytes().to_vec(),
            })
            .collect(),
        slots: slots
            .iter()
            .map(|row| Slot {
                transaction: natural(&row[0]),
                number: natural(&row[1]),
                client: natural(&row[2]),
                bytes: row[3].bytes().to_vec(),
            })
            .collect(),
        numbers,
        ..Remains::default()
    })
}

/// What is no natural number is none of ours.
fn natural(value: &Value) -> u64 {
    let number = value
        .integer()
        .and_then(|number| u64::try_from(number).ok());
    number.unwrap_or(u64::MAX >> 24)
}

fn integer(number: u64) -> Value {
    Value::Integer(number as i64)
}

/// One client.
pub(super) struct Client {
    sql: Box<dyn Sql>,
    number: u32,
    insert: Statement,
    update: Statement,
}

impl Client {
    pub fn new(mut sql: Box<dyn Sql>, number: u32) -> Result<Client, DatabaseError> {
        let insert = "INSERT INTO entries (n, number, client, bytes) VALUES (?, ?, ?, ?)";
        let update = "UPDATE slots SET n = ?, bytes = ? WHERE client = ? AND number = ?";
        Ok(Client {
            insert: sql.prepare(insert)?,
            update: sql.prepare(update)?,
            sql,
            number,
        })
    }
}

impl Commit for Client {
    fn commit(&mut self, shape: &Shape, transaction: u64) -> Result<(), DatabaseError> {
        let client = || Value::Integer(self.number.into());
        in_transaction(self.sql.as_mut(), |sql| {
            if keeps_numbers(sql.dialect()) {
                // As a text, so that it can be read in the binary log whatever that is written as.
                sql.run(&format!(
                    "INSERT INTO log_of_numbers (n) VALUES ({transaction})"
                ))?;
            }
            for number in 0..ENTRIES {
                let bytes = Value::Bytes(shape.entry(transaction, number));
                let values = [integer(transaction), integer(number), client(), bytes];
                sql.execute(self.insert, &values)?;
            }
            for slot in shape.slots(transaction) {
                let bytes = Value::Bytes(shape.slot(transaction, slot));
                let values = [integer(transaction), bytes, client(), integer(slot)];
                let changed = sql.execute(self.update, &values)?;
                if changed != 1 {
                    return Err(DatabaseError::Failed(format!(
                        "slot {slot} is there {changed} times"
                    )));
                }
            }
            Ok(())
        })
    }
}
