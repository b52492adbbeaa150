"""Writer and checker for bplustree: `w DIR ACK` inserts, with a checkpoint after every seventh; `c DIR` reads."""
import os, sys
from bplustree import BPlusTree

mode, directory = sys.argv[1:3]
tree = BPlusTree(directory + "/tree", order=20)

def value(number):
    return b"%06d." % number * 14

if mode == "w":
    ack = os.open(sys.argv[3], os.O_WRONLY)
    number = 0
    while True:
        number += 1
        os.write(ack, b"send %d\n" % number)
        tree.insert(number, value(number))
        if number % 7 == 0:
            tree.checkpoint()
        os.write(ack, b"ack %d\n" % number)
for number in range(1, 200):
    found = tree.get(number)
    if found is not None:
        print(number if found == value(number) else "damage value %d is wrong" % number)
sys.stdout.flush()
os._exit(0)
