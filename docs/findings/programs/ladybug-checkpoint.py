"""Writer and checker for LadybugDB: `w DIR ACK` commits two nodes at a time; `c DIR` looks for both."""
import os, sys, ladybug

mode, directory = sys.argv[1:3]
database = ladybug.Database(directory + "/db", buffer_pool_size=64 << 20, max_db_size=1 << 30, checkpoint_threshold=20000)
run = ladybug.Connection(database).execute

def value(number):
    return "%06d." % number * (20 + number * 37 % 100)

if mode == "prepare":
    run("CREATE NODE TABLE T(k STRING PRIMARY KEY, v STRING)")
    run("CHECKPOINT")
    os.sync()
elif mode == "w":
    ack = os.open(sys.argv[3], os.O_WRONLY)
    number = 0
    while True:
        number += 1
        os.write(ack, b"send %d\n" % number)
        run("BEGIN TRANSACTION")
        for half in "ab":
            run("CREATE (:T {k: $k, v: $v})", {"k": half + str(number), "v": value(number)})
        run("COMMIT")
        os.write(ack, b"ack %d\n" % number)
elif mode == "c":
    for number in range(1, 120):
        found = []
        for half in "ab":
            rows = run("MATCH (t:T {k: $k}) RETURN t.v", {"k": half + str(number)})
            if rows.has_next():
                found.append(rows.get_next()[0])
        if any(v != value(number) for v in found):
            print("damage value of %d is wrong: %r" % (number, found[0][:20]))
        elif found:
            print(number if len(found) == 2 else "partial %d" % number)
sys.stdout.flush()
os._exit(0)
