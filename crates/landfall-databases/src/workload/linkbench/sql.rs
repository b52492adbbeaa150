//! LinkBench on tables, of the names and columns of the original.
//!
//! A change of a link and its count is one explicit transaction, which locks the link first and then its
//! count, always in this order. Everything else is one statement by itself.

use super::request::{LIST_LIMIT, Link, LinkKey, NODE_TYPE, Node, Start};
use super::store::Store;
use crate::workload::sql::{bytes_type, transaction};
use crate::{DatabaseError, Dialect, Row, Sql, Statement, Value};

/// The columns of a link, in this order wherever there are all of them.
pub(super) const LINK: [&str; 7] = [
    "id1",
    "id2",
    "link_type",
    "visibility",
    "data",
    "time",
    "version",
];
pub(super) const COUNT: [&str; 5] = ["id", "link_type", "count", "time", "version"];
pub(super) const NODE: [&str; 5] = ["id", "type", "version", "time", "data"];

/// The definitions of the tables; `compressed` is what MariaDB is told of those that are to be.
pub(super) fn tables(dialect: Dialect, compressed: &str) -> Vec<String> {
    let data = bytes_type(dialect, 255);
    let node_data = bytes_type(dialect, 1 << 20);
    let (small, four, unsigned) = match dialect {
        Dialect::MariaDb => ("TINYINT", "INT", " UNSIGNED"),
        Dialect::Postgres => ("SMALLINT", "BIGINT", ""),
        Dialect::Sqlite => ("INTEGER", "INTEGER", ""),
    };
    // The order of InnoDB's tables is that of their primary key.
    let ordered = match dialect {
        Dialect::Sqlite => " WITHOUT ROWID",
        _ => compressed,
    };
    let id = match dialect {
        Dialect::MariaDb => "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
        Dialect::Postgres => "BIGSERIAL PRIMARY KEY",
        Dialect::Sqlite => "INTEGER PRIMARY KEY",
    };
    let link = format!(
        "CREATE TABLE linktable (id1 BIGINT NOT NULL, id2 BIGINT NOT NULL, link_type BIGINT NOT NULL,
         visibility {small} NOT NULL, data {data} NOT NULL, time BIGINT NOT NULL,
         version {four}{unsigned} NOT NULL, PRIMARY KEY (link_type, id1, id2)){ordered}"
    );
    let index = "CREATE INDEX id1_type ON linktable
         (id1, link_type, visibility, time, id2, version, data)";
    let count = format!(
        "CREATE TABLE counttable (id BIGINT NOT NULL, link_type BIGINT NOT NULL,
         count {four}{unsigned} NOT NULL, time BIGINT NOT NULL, version BIGINT NOT NULL,
         PRIMARY KEY (id, link_type)){ordered}"
    );
    let node = format!(
        "CREATE TABLE nodetable (id {id}, type {four}{unsigned} NOT NULL, version BIGINT NOT NULL,
         time {four}{unsigned} NOT NULL, data {node_data} NOT NULL)"
    );
    vec![link, index.to_owned(), count, node]
}

pub(super) fn link_row(link: &Link) -> [Value; 7] {
    [
        number(link.key.id1),
        number(link.key.id2),
        number(link.key.kind),
        Value::Integer(i64::from(link.is_visible)),
        Value::Bytes(link.data.clone()),
        number(link.time),
        Value::Integer(i64::from(link.version)),
    ]
}

pub(super) fn number(number: u64) -> Value {
    Value::Integer(number as i64)
}

/// What there was of a link before it was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    Hidden,
    Visible,
}

pub(super) struct SqlStore {
    sql: Box<dyn Sql>,
    insert_link: Statement,
    find_link: Statement,
    update_link: Statement,
    hide_link: Statement,
    count_one: Statement,
    discount_one: Statement,
    count_links: Statement,
    /// By how many links are got, less one.
    get_links: Vec<Option<Statement>>,
    list_links: Statement,
    get_node: Statement,
    add_node: Statement,
    update_node: Statement,
    delete_node: Statement,
}

impl SqlStore {
    pub fn new(mut sql: Box<dyn Sql>) -> Result<SqlStore, DatabaseError> {
        let dialect = sql.dialect();
        let columns = LINK.join(", ");
        let insert = format!("INSERT INTO linktable ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)");
        let lock = match dialect {
            // A transaction that writes has locked everything.
            Dialect::Sqlite => "",
            _ => " FOR UPDATE",
        };
        let index = match dialect {
            // As the original: else it may take the primary key, and sort.
            Dialect::MariaDb => " FORCE INDEX (id1_type)",
            _ => "",
        };
        let this = "id1 = ? AND id2 = ? AND link_type = ?";
        let counted = match dialect {
            Dialect::MariaDb => {
                "ON DUPLICATE KEY UPDATE count = count + 1, time = VALUES(time), version = version + 1"
            }
            _ => {
                "ON CONFLICT (id, link_type) DO UPDATE SET count = counttable.count + 1,
                 time = excluded.time, version = counttable.version + 1"
            }
        };
        let mut prepare = |text: &str| sql.prepare(text);
        Ok(SqlStore {
            insert_link: prepare(&match dialect {
                // Locks what it finds for changing, and says whether it was hidden.
                Dialect::MariaDb => {
                    format!("{insert} ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)")
                }
                _ => format!("{insert} ON CONFLICT DO NOTHING"),
            })?,
            find_link: prepare(&format!(
                "SELECT visibility FROM linktable WHERE {this}{lock}"
            ))?,
            update_link: prepare(&format!(
                "UPDATE linktable SET visibility = 1, data = ?, time = ?, version = ? WHERE {this}"
            ))?,
            hide_link: prepare(&format!("UPDATE linktable SET visibility = 0 WHERE {this}"))?,
            count_one: prepare(&format!(
                "INSERT INTO counttable (id, link_type, count, time, version)
                 VALUES (?, ?, 1, ?, 0) {counted}"
            ))?,
            discount_one: prepare(
                "UPDATE counttable SET count = CASE WHEN count > 0 THEN count - 1 ELSE 0 END,
                 time = ?, version = version + 1 WHERE id = ? AND link_type = ?",
            )?,
            count_links: prepare("SELECT count FROM counttable WHERE id = ? AND link_type = ?")?,
            get_links: Vec::new(),
            list_links: prepare(&format!(
                "SELECT {columns} FROM linktable{index} WHERE id1 = ? AND link_type = ?
                 AND visibility = 1 AND time <= ? ORDER BY time DESC LIMIT {LIST_LIMIT} OFFSET ?"
            ))?,
            get_node: prepare("SELECT version, time, data FROM nodetable WHERE id = ?")?,
            add_node: prepare(&format!(
                "INSERT INTO nodetable (type, version, time, data) VALUES ({NODE_TYPE}, ?, ?, ?)"
            ))?,
            update_node: prepare(
                "UPDATE nodetable SET version = ?, time = ?, data = ? WHERE id = ?",
            )?,
            delete_node: prepare("DELETE FROM nodetable WHERE id = ?")?,
            sql,
        })
    }
}

impl SqlStore {
    fn get_links_statement(&mut self, ids: usize) -> Result<Statement, DatabaseError> {
        if self.get_links.len() < ids {
            self.get_links.resize(ids, None);
        }
        if let Some(statement) = self.get_links[ids - 1] {
            return Ok(statement);
        }
        let columns = LINK.join(", ");
        let parameters = vec!["?"; ids].join(", ");
        let statement = self.sql.prepare(&format!(
            "SELECT {columns} FROM linktable WHERE id1 = ? AND link_type = ? AND id2 IN ({parameters})"
        ))?;
        self.get_links[ids - 1] = Some(statement);
        Ok(statement)
    }
}

fn this(key: LinkKey) -> [Value; 3] {
    [number(key.id1), number(key.id2), number(key.kind)]
}

impl Store for SqlStore {
    fn put_link(&mut self, link: &Link) -> Result<bool, DatabaseError> {
        let (insert, find, update) = (self.insert_link, self.find_link, self.update_link);
        let count = self.count_one;
        let before = transaction(self.sql.as_mut(), |sql| {
            let inserted = sql.execute(insert, &link_row(link))?;
            let before = match (sql.dialect(), inserted) {
                (Dialect::MariaDb, 0) => Before::Visible,
                // A row that it changed counts twice.
                (Dialect::MariaDb, 2) => Before::Hidden,
                (_, 0) => visibility(&sql.query(find, &this(link.key))?)?,
                _ => Before::Nothing,
            };
            if before != Before::Nothing {
                let [id1, id2, kind] = this(link.key);
                let version = Value::Integer(i64::from(link.version));
                let data = Value::Bytes(link.data.clone());
                sql.execute(update, &[data, number(link.time), version, id1, id2, kind])?;
            }
            if before != Before::Visible {
                let time = number(link.time);
                sql.execute(count, &[number(link.key.id1), number(link.key.kind), time])?;
            }
            Ok(before)
        })?;
        Ok(before != Before::Nothing)
    }

    fn hide_link(&mut self, key: LinkKey, time: u64) -> Result<bool, DatabaseError> {
        let (find, hide, discount) = (self.find_link, self.hide_link, self.discount_one);
        transaction(self.sql.as_mut(), |sql| {
            let before = visibility(&sql.query(find, &this(key))?)?;
            if before == Before::Visible {
                sql.execute(hide, &this(key))?;
                let values = [number(time), number(key.id1), number(key.kind)];
                sql.execute(discount, &values)?;
            }
            Ok(before == Before::Visible)
        })
    }

    fn count_links(&mut self, id1: u64, kind: u64) -> Result<u64, DatabaseError> {
        let rows = self
            .sql
            .query(self.count_links, &[number(id1), number(kind)])?;
        rows.first().map_or(Ok(0), |row| integer(row, 0))
    }

    fn get_links(&mut self, id1: u64, kind: u64, id2s: &[u64]) -> Result<Vec<Link>, DatabaseError> {
        if id2s.is_empty() {
            return Ok(Vec::new());
        }
        let statement = self.get_links_statement(id2s.len())?;
        let ids = [id1, kind].into_iter().chain(id2s.iter().copied());
        let values: Vec<Value> = ids.map(number).collect();
        let rows = self.sql.query(statement, &values)?;
        rows.into_iter().map(link).collect()
    }

    fn list_links(&mut self, id1: u64, kind: u64, from: Start) -> Result<Vec<Link>, DatabaseError> {
        let (latest, skipped) = from.place();
        let values = [id1, kind, latest, skipped].map(number);
        let rows = self.sql.query(self.list_links, &values)?;
        rows.into_iter().map(link).collect()
    }

    fn get_node(&mut self, id: u64) -> Result<Option<Node>, DatabaseError> {
        let mut rows = self.sql.query(self.get_node, &[number(id)])?;
        let Some(mut row) = rows.pop() else {
            return Ok(None);
        };
        Ok(Some(Node {
            version: integer(&row, 0)?,
            time: integer(&row, 1)? as u32,
            data: bytes(&mut row, 2)?,
        }))
    }

    fn add_node(&mut self, node: &Node) -> Result<u64, DatabaseError> {
        let values = [
            number(node.version),
            number(u64::from(node.time)),
            Value::Bytes(node.data.clone()),
        ];
        self.sql.execute(self.add_node, &values)?;
        Ok(self.sql.last_id()? as u64)
    }

    fn update_node(&mut self, id: u64, node: &Node) -> Result<bool, DatabaseError> {
        let values = [
            number(node.version),
            number(u64::from(node.time)),
            Value::Bytes(node.data.clone()),
            number(id),
        ];
        Ok(self.sql.execute(self.update_node, &values)? > 0)
    }

    fn delete_node(&mut self, id: u64) -> Result<bool, DatabaseError> {
        Ok(self.sql.execute(self.delete_node, &[number(id)])? > 0)
    }
}

fn visibility(rows: &[Row]) -> Result<Before, DatabaseError> {
    Ok(match rows.first() {
        None => Before::Nothing,
        Some(row) if integer(row, 0)? == 0 => Before::Hidden,
        Some(_) => Before::Visible,
    })
}

fn link(mut row: Row) -> Result<Link, DatabaseError> {
    Ok(Link {
        key: LinkKey {
            id1: integer(&row, 0)?,
            id2: integer(&row, 1)?,
            kind: integer(&row, 2)?,
        },
        is_visible: integer(&row, 3)? != 0,
        data: bytes(&mut row, 4)?,
        time: integer(&row, 5)?,
        version: integer(&row, 6)? as u32,
    })
}

fn integer(row: &Row, column: usize) -> Result<u64, DatabaseError> {
    let integer = row.get(column).and_then(Value::integer);
    let integer = integer.and_then(|integer| u64::try_from(integer).ok());
    integer.ok_or_else(|| misread(column))
}

fn bytes(row: &mut Row, column: usize) -> Result<Vec<u8>, DatabaseError> {
    match row.get_mut(column) {
        Some(Value::Bytes(bytes)) => Ok(std::mem::take(bytes)),
        _ => Err(misread(column)),
    }
}

fn misread(column: usize) -> DatabaseError {
    DatabaseError::Failed(format!(
        "column {column} of a row is not what was put there"
    ))
}
