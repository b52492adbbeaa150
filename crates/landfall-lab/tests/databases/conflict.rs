//! Two clients that get into each other's way: one of them is told, and can begin anew.

use std::sync::Barrier;
use std::thread;

use landfall_databases::{DatabaseError, Dialect, Session, Sql, Value};

use crate::{alone, create, durable, left, servers, start};

/// Changes a row and then another one, when somebody else has changed that one and wants the first.
fn change(sql: &mut dyn Sql, rows: [i64; 2], meet: &Barrier) -> Result<(), DatabaseError> {
    let change = sql.prepare("UPDATE things SET value = value + 1 WHERE id = ?")?;
    sql.run("BEGIN")?;
    sql.execute(change, &[Value::Integer(rows[0])])?;
    meet.wait();
    sql.execute(change, &[Value::Integer(rows[1])])?;
    sql.run("COMMIT")
}

fn sql(session: Session) -> Option<Box<dyn Sql>> {
    match session {
        Session::Sql(sql) => Some(sql),
        Session::Keys(_) => None,
    }
}

#[test]
fn of_two_that_wait_for_each_other_one_is_told_to_begin_anew() {
    let _alone = alone();
    for name in servers() {
        let directory = tempfile::tempdir().unwrap();
        let database = durable(name);
        create(&*database, directory.path());
        let running = start(&*database, directory.path());
        let Some(mut first) = sql(running.session().unwrap()) else {
            continue;
        };
        first
            .run("CREATE TABLE things (id BIGINT PRIMARY KEY, value BIGINT NOT NULL)")
            .unwrap();
        first
            .run("INSERT INTO things VALUES (1, 0), (2, 0)")
            .unwrap();
        let mut second = sql(running.session().unwrap()).unwrap();
        let meet = Barrier::new(2);
        let outcomes = thread::scope(|scope| {
            let one = scope.spawn(|| change(&mut *first, [1, 2], &meet));
            let other = scope.spawn(|| change(&mut *second, [2, 1], &meet));
            [one.join().unwrap(), other.join().unwrap()]
        });
        let conflicts = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Err(DatabaseError::Conflict(_))));
        assert_eq!(conflicts.count(), 1, "{name}: {outcomes:?}");
        assert!(outcomes.contains(&Ok(())), "{name}: {outcomes:?}");
        // Nothing of it was done, and nothing has to be done before it is tried again.
        let again = match outcomes[0] {
            Ok(()) => &mut second,
            Err(_) => &mut first,
        };
        change(&mut **again, [1, 2], &Barrier::new(1)).unwrap();
        let query = again
            .prepare("SELECT value, (SELECT SUM(value) FROM things) FROM things ORDER BY id")
            .unwrap();
        let row = vec![Value::Integer(2), Value::Integer(4)];
        assert_eq!(again.query(query, &[]).unwrap(), [row.clone(), row]);
        assert_ne!(again.dialect(), Dialect::Sqlite);
        drop((first, second));
        running.stop().unwrap();
        left::assert_nothing(directory.path());
    }
}
