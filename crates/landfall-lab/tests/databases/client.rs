//! A client that puts rows, each durable by itself, into a database of either kind.

use landfall_databases::{Batch, DatabaseError, Dialect, KeyValue, Session, Sql, Statement, Value};

/// The number of the client that makes the table.
pub const LOADER: u64 = 99;
/// Bytes of a row, unless told otherwise.
const SIZE: usize = 304;

pub struct Client {
    pub number: u64,
    session: Tables,
    size: usize,
}

enum Tables {
    Sql {
        sql: Box<dyn Sql>,
        insert: Statement,
        select: Statement,
    },
    Keys(Box<dyn KeyValue>),
}

/// The key of a row, which no other client has.
fn key(client: u64, row: u64) -> u64 {
    row * 100 + client
}

/// Bytes that follow from the key and cannot be compressed.
fn payload(key: u64, size: usize) -> Vec<u8> {
    let mut state = key;
    let words = (0..size / 8).flat_map(|_| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (word ^ (word >> 27)).to_le_bytes()
    });
    words.collect()
}

impl Client {
    /// Makes the table and fills it.
    pub fn load(session: Session, rows: u64) -> Client {
        let session = match session {
            Session::Sql(mut sql) => {
                let (bytes, begin) = match sql.dialect() {
                    Dialect::MariaDb => ("MEDIUMBLOB", "START TRANSACTION"),
                    Dialect::Postgres => ("BYTEA", "BEGIN"),
                    Dialect::Sqlite => ("BLOB", "BEGIN"),
                };
                sql.run(&format!(
                    "CREATE TABLE things (id BIGINT PRIMARY KEY, payload {bytes}); {begin}"
                ))
                .unwrap();
                Session::Sql(sql)
            }
            keys => keys,
        };
        let mut client = Client::new(LOADER, session);
        for row in 1..=rows {
            client.put(row).unwrap();
        }
        if let Tables::Sql { sql, .. } = &mut client.session {
            sql.run("COMMIT").unwrap();
        }
        client
    }

    pub fn new(number: u64, session: Session) -> Client {
        let session = match session {
            Session::Sql(mut sql) => {
                let insert = sql
                    .prepare("INSERT INTO things (id, payload) VALUES (?, ?)")
                    .unwrap();
                let select = sql
                    .prepare("SELECT payload FROM things WHERE id = ?")
                    .unwrap();
                Tables::Sql {
                    sql,
                    insert,
                    select,
                }
            }
            Session::Keys(keys) => Tables::Keys(keys),
        };
        Client {
            number,
            session,
            size: SIZE,
        }
    }

    /// The same with rows of so many bytes.
    pub fn sized(self, size: usize) -> Client {
        Client { size, ..self }
    }

    /// Puts a row; when this returns it is there for good.
    pub fn put(&mut self, row: u64) -> Result<(), DatabaseError> {
        let key = key(self.number, row);
        match &mut self.session {
            Tables::Sql { sql, insert, .. } => {
                let values = [
                    Value::Integer(key as i64),
                    Value::Bytes(payload(key, self.size)),
                ];
                let changed = sql.execute(*insert, &values)?;
                assert_eq!(changed, 1);
                Ok(())
            }
            Tables::Keys(keys) => {
                let mut batch = Batch::default();
                batch.put(key.to_be_bytes(), payload(key, self.size));
                keys.commit(&batch)
            }
        }
    }

    /// Whether a row is there, whole.
    pub fn has(&mut self, client: u64, row: u64) -> bool {
        let key = key(client, row);
        let found = match &mut self.session {
            Tables::Sql { sql, select, .. } => {
                let rows = sql.query(*select, &[Value::Integer(key as i64)]).unwrap();
                rows.first().map(|row| row[0].bytes().to_vec())
            }
            Tables::Keys(keys) => keys.get(&key.to_be_bytes()).unwrap(),
        };
        found.is_some_and(|found| found == payload(key, self.size))
    }
}
