//! What an operator of MariaDB's servers does when some of them have been without power.
//!
//! - If no primary was started, the replica with the latest GTID is promoted, once all have applied what they have received.
//! - A primary that comes back where another one leads becomes its replica. What it wrote and no replica acknowledged its own
//!   recovery has taken back, if it was started as one (`init_rpl_role`).
//! - If it has more than that, it is filled anew from its primary, as from a dump; so is a replica that its primary refuses. So
//!   what only it had is gone.

use mysql::Conn;

use super::cluster::{MariadbCluster, change_master, connect, port, records};
use super::running::{first, rows, run};
use crate::DatabaseError;
use crate::cluster::failover::{Operated, Position, Role};

/// What a primary says to a replica to which it cannot send what it asks for.
const CANNOT_SEND: u64 = 1236;

/// An administrator's connection to a node.
pub(super) struct Admin {
    node: usize,
    pub connection: Conn,
}

/// What a server says of its being a replica.
struct Replica {
    primary: u16,
    /// Whether its primary sends.
    is_connected: bool,
    error: u64,
    /// The last that it received.
    received: String,
}

impl Admin {
    fn replica(&mut self) -> Result<Option<Replica>, DatabaseError> {
        let found: Vec<mysql::Row> = rows(&mut self.connection, "SHOW SLAVE STATUS")?;
        let replica = found.first().map(|row| Replica {
            primary: row.get("Master_Port").unwrap_or(0),
            is_connected: row
                .get::<String, _>("Slave_IO_Running")
                .is_some_and(|running| running == "Yes"),
            error: row.get("Last_IO_Errno").unwrap_or(0),
            received: row.get("Gtid_IO_Pos").unwrap_or_default(),
        });
        Ok(replica)
    }

    fn run(&mut self, statements: &[&str]) -> Result<(), DatabaseError> {
        let mut statements = statements.iter();
        statements.try_for_each(|sql| run(&mut self.connection, sql))
    }

    /// Fills it anew with what `leader` has, and has it follow from there on.
    fn refill(&mut self, leader: usize) -> Result<(), DatabaseError> {
        let mut source = connect(leader)?;
        run(&mut source, "START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let (_, file): (String, String) =
            first(&mut source, "SHOW STATUS LIKE 'binlog_snapshot_file'")?;
        let (_, offset): (String, u64) =
            first(&mut source, "SHOW STATUS LIKE 'binlog_snapshot_position'")?;
        let sql = format!("SELECT BINLOG_GTID_POS('{file}', {offset})");
        let position: String = first(&mut source, &sql)?;
        let found = records(&mut source)?;
        let terms: Vec<u64> = rows(&mut source, "SELECT id FROM terms")?;
        run(&mut source, "COMMIT")?;
        self.run(&["STOP SLAVE", "SET sql_log_bin = 0", "BEGIN"])?;
        for (table, ids) in [("records", found.into_iter().collect()), ("terms", terms)] {
            self.run(&[&format!("DELETE FROM {table}")])?;
            let values: Vec<String> = ids.iter().map(|id| format!("({id})")).collect();
            if !values.is_empty() {
                self.run(&[&format!("INSERT INTO {table} VALUES {}", values.join(","))])?;
            }
        }
        self.run(&[
            "COMMIT",
            "SET sql_log_bin = 1",
            "RESET MASTER",
            &format!("SET GLOBAL gtid_slave_pos = '{position}'"),
            &change_master(leader),
            "START SLAVE",
        ])
    }

    /// Whether the last change that it made as a primary is the last that `leader` has of it.
    fn is_known_to(&mut self, leader: usize) -> Result<bool, DatabaseError> {
        let sql = "SELECT @@GLOBAL.gtid_binlog_pos";
        let last: String = first(&mut self.connection, sql)?;
        let sql = format!("SELECT FIND_IN_SET('{last}', @@GLOBAL.gtid_binlog_state) > 0");
        Ok(last.is_empty() || first(&mut connect(leader)?, &sql)?)
    }
}

impl Operated for MariadbCluster {
    type Connection = Admin;

    fn administer(&self, node: usize) -> Result<Admin, DatabaseError> {
        let connection = connect(node)?;
        Ok(Admin { node, connection })
    }

    fn role(&self, admin: &mut Admin) -> Result<(Role, Position), DatabaseError> {
        let replica = admin.replica()?;
        let sql = "SELECT @@GLOBAL.gtid_slave_pos, \
             GREATEST(CAST(SUBSTRING_INDEX(@@GLOBAL.gtid_slave_pos, '-', -1) AS UNSIGNED), \
                 CAST(SUBSTRING_INDEX(@@GLOBAL.gtid_binlog_pos, '-', -1) AS UNSIGNED)), \
             (SELECT COALESCE(MAX(id), 0) FROM terms)";
        let (applied, offset, term): (String, u64, u64) = first(&mut admin.connection, sql)?;
        if let Some(replica) = &replica
            && !replica.is_connected
            && replica.received != applied
        {
            let node = admin.node;
            return Err(DatabaseError::Late(format!(
                "node {node} still applies what it has received"
            )));
        }
        let role = if replica.is_some() {
            Role::Follows
        } else {
            Role::Leads
        };
        let position = Position {
            term,
            offset,
            records: 0,
        };
        Ok((role, position))
    }

    fn promote(&self, admin: &mut Admin) -> Result<(), DatabaseError> {
        admin.run(&[
            "STOP SLAVE",
            "RESET SLAVE ALL",
            // Nobody follows it yet, so that it must not wait for anybody.
            "INSERT INTO terms SELECT COALESCE(MAX(id), 0) + 1 FROM terms",
        ])
    }

    fn follow(&self, admin: &mut Admin, leader: usize) -> Result<(), DatabaseError> {
        match admin.replica()? {
            Some(replica) if replica.primary == port(leader) => {
                if replica.error == CANNOT_SEND {
                    return admin.refill(leader);
                }
                return Ok(());
            }
            Some(_) => admin.run(&["STOP SLAVE"])?,
            None => {
                admin.run(&[
                    "SET GLOBAL rpl_semi_sync_master_enabled = OFF",
                    "SET GLOBAL rpl_semi_sync_slave_enabled = ON",
                ])?;
                if !admin.is_known_to(leader)? {
                    return admin.refill(leader);
                }
                // What it wrote itself it has not received.
                admin.run(&["SET GLOBAL gtid_slave_pos = @@GLOBAL.gtid_binlog_pos"])?;
            }
        }
        admin.run(&[&change_master(leader), "START SLAVE"])
    }
}
