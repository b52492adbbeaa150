"""Writer and checker for DuckDB: `w DIR ACK` inserts a row per transaction, with frequent checkpoints; `c DIR` reads."""
import os, sys, duckdb

mode, directory = sys.argv[1:3]
run = duckdb.connect(directory + "/db").execute
run("SET threads = 1")
run("SET checkpoint_threshold = '2KB'")
run("CREATE TABLE IF NOT EXISTS t(n INTEGER, v VARCHAR)")

def value(number):
    return "%06d." % number * 50

if mode == "w":
    ack = os.open(sys.argv[3], os.O_WRONLY)
    number = 0
    while True:
        number += 1
        os.write(ack, b"send %d\n" % number)
        run("INSERT INTO t VALUES (?, ?)", (number, value(number)))
        os.write(ack, b"ack %d\n" % number)
for number, found in run("SELECT n, v FROM t").fetchall():
    print(number if found == value(number) else "damage value %d is wrong" % number)
sys.stdout.flush()
os._exit(0)
