//! A client that puts rows, each durable by itself, into a database of either kind.

use landfall_lab::database::{
    Batch, DatabaseError, Dialect, KeyValue, Session, Sql, Statement, Value,
};

/// The number of the client that makes the table.
pub const LOADER: u64 = 99;
const PAYLOAD: usize = 300;

pub struct Client {
    pub number: u64,
    session: Tables,
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

fn payload(key: u64) -> Vec<u8> {
    key.to_be_bytes().repeat(PAYLOAD / 8)
}

impl Client {
    /// Makes the table and fills it.
    pub fn load(session: Session, rows: u64) -> Client {
        let session = match session {
            Session::Sql(mut sql) => {
                let (bytes, begin) = match sql.dialect() {
                    Dialect::MariaDb => ("VARBINARY(400)", "START TRANSACTION"),
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
        Client { number, session }
    }

    /// Puts a row; when this returns it is there for good.
    pub fn put(&mut self, row: u64) -> Result<(), DatabaseError> {
        let key = key(self.number, row);
        match &mut self.session {
            Tables::Sql { sql, insert, .. } => {
                let values = [Value::Integer(key as i64), Value::Bytes(payload(key))];
                let changed = sql.execute(*insert, &values)?;
                assert_eq!(changed, 1);
                Ok(())
            }
            Tables::Keys(keys) => {
                let mut batch = Batch::default();
                batch.put(key.to_be_bytes(), payload(key));
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
        found.is_some_and(|found| found == payload(key))
    }
}
