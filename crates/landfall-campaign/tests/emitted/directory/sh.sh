#!/bin/sh
# Campaign nightly-fleet in 4 shards, as plain commands.
#
# The lines between are independent: run each on any machine, in any order, at the same time or one after the other.
# Running one again changes nothing, so run again what failed. Proofs need root, or User-mode Linux without it.
# Measurements want a machine with nothing else to do.
#
# Results go into one directory that all machines share, under the same path.


landfall campaign run '/srv/landfall results/0123456789abcdef' --shard 1/4
landfall campaign run '/srv/landfall results/0123456789abcdef' --shard 2/4
landfall campaign run '/srv/landfall results/0123456789abcdef' --shard 3/4
landfall campaign run '/srv/landfall results/0123456789abcdef' --shard 4/4

# After all of them. What is missing is said; the verdict is the exit code of the last.
landfall campaign report '/srv/landfall results/0123456789abcdef'
landfall campaign merge '/srv/landfall results/0123456789abcdef'
