#!/usr/bin/env bash
# Cuts off the last bytes of a MariaDB server's binary log while the server is dead, as a power cut leaves
# a transaction that was under way, starts the server again, and lets a replica read that log. Uses two
# servers of its own in a temporary directory, and a TCP port of 127.0.0.1.
#   mariadb-torn-binlog.sh [BYTES [PORT]]
set -u
bytes=${1:-20} port=${2:-33991}
base=$(mktemp -d)
pids=()
trap 'disown -a; kill -KILL "${pids[@]}" 2>/dev/null; sleep 0.5; rm -rf "$base"' EXIT
user=()
[ "$(id -u)" = 0 ] && user=(--user=root)

mariadb-install-db --no-defaults --datadir="$base/empty" "${user[@]}" \
  --auth-root-authentication-method=normal --skip-test-db >/dev/null 2>&1
cp -r "$base/empty" "$base/master"
cp -r "$base/empty" "$base/replica"

start() { # NAME PORT
  mariadbd --no-defaults --datadir="$base/$1" --socket="$base/$1.socket" "${user[@]}" \
    --bind-address=127.0.0.1 --port="$2" --server-id="$2" --log-bin=binlog --sync-binlog=1 \
    --innodb-flush-log-at-trx-commit=1 >>"$base/$1.log" 2>&1 &
  pids+=($!)
  until mariadb-admin --no-defaults -uroot -S "$base/$1.socket" ping >/dev/null 2>&1; do
    kill -0 "${pids[-1]}" 2>/dev/null || { cat "$base/$1.log"; exit 1; }
    sleep 0.05
  done
}
sql() { mariadb --no-defaults -uroot -S "$base/$1.socket" -N; }

start master "$port"
sql master <<'SQL'
CREATE DATABASE x; CREATE TABLE x.t (n INT PRIMARY KEY, b BLOB) ENGINE=InnoDB;
GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1' IDENTIFIED BY 'replica';
INSERT INTO x.t VALUES (1, 'before');
INSERT INTO x.t VALUES (2, 'the one under way');
SQL
{ kill -KILL "${pids[0]}"; wait "${pids[0]}"; } 2>/dev/null
log=$base/master/binlog.000001
truncate -s $(($(stat -c %s "$log") - bytes)) "$log"
start master "$port"
echo "INSERT INTO x.t VALUES (3, 'after');" | sql master

start replica $((port + 1))
sql replica <<SQL
CHANGE MASTER TO master_host='127.0.0.1', master_port=$port, master_user='replica',
  master_password='replica', master_log_file='binlog.000001', master_log_pos=4;
START SLAVE;
SQL
sleep 3
echo "rows of the master:  $(echo 'SELECT GROUP_CONCAT(n) FROM x.t' | sql master)"
echo "rows of the replica: $(echo 'SELECT GROUP_CONCAT(n) FROM x.t' | sql replica)"
mariadb --no-defaults -uroot -S "$base/replica.socket" -e 'SHOW SLAVE STATUS\G' |
  grep -E 'Slave_IO_Running|Last_IO_Error:'
sql replica <<'SQL'
STOP SLAVE;
CHANGE MASTER TO master_log_file='binlog.000002', master_log_pos=4;
START SLAVE;
SQL
sleep 3
echo "told to go on with the next file: $(echo 'SELECT GROUP_CONCAT(n) FROM x.t' | sql replica)"
