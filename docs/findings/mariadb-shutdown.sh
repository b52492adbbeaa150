#!/usr/bin/env bash
# Kills a MariaDB server with a binary log at some moment of its orderly shutdown, starts it again, and
# counts how often it does not start. Uses a server of its own in a temporary directory.
#   mariadb-shutdown.sh [TRIES] [OPTION OF mariadbd…]
set -u
tries=${1:-40}
shift || true
base=$(mktemp -d)
pid=
trap '[ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null; wait; rm -rf "$base"' EXIT
as=(--no-defaults --datadir="$base/data" --socket="$base/socket" --skip-networking)
[ "$(id -u)" = 0 ] && as+=(--user=root)

mariadb-install-db "${as[@]/$base\/data/$base/empty}" --auth-root-authentication-method=normal \
  --skip-test-db >/dev/null 2>&1

start() {
  mariadbd "${as[@]}" --log-bin=binlog --sync-binlog=1 --innodb-flush-log-at-trx-commit=1 "$@" \
    >"$base/log" 2>&1 &
  pid=$!
  until mariadb-admin --no-defaults -uroot -S "$base/socket" ping >/dev/null 2>&1; do
    kill -0 "$pid" 2>/dev/null || return 1
    sleep 0.02
  done
}
sql() { mariadb --no-defaults -uroot -S "$base/socket" -N; }
rows() { { echo 'CREATE DATABASE x; USE x; CREATE TABLE t (n INT PRIMARY KEY) ENGINE=InnoDB;'
  for n in $(seq 20); do echo "INSERT INTO t VALUES ($n);"; done; }; }

refused=0 whole=0
for _ in $(seq "$tries"); do
  rm -rf "$base/data"
  cp -r "$base/empty" "$base/data"
  start "$@" || { cat "$base/log"; exit 1; }
  rows | sql
  kill -TERM "$pid"
  sleep "0.0$(printf %02d $((RANDOM % 60)))"
  kill -KILL "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
  if ! start "$@"; then
    refused=$((refused + 1))
    grep -q 'prepared transactions!' "$base/log" || cat "$base/log"
    # As the message says; the server ends when it has done so.
    mariadbd "${as[@]}" --log-bin=binlog --tc-heuristic-recover=COMMIT >"$base/log" 2>&1
    start "$@" || { cat "$base/log"; continue; }
    [ "$(echo 'SELECT COUNT(*) FROM x.t' | sql)" = 20 ] && whole=$((whole + 1))
  fi
  kill -KILL "$pid"
  wait "$pid" 2>/dev/null
  pid=
done
echo "$refused of $tries did not start again; with --tc-heuristic-recover=COMMIT $whole of these had all rows"
