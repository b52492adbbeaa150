#!/bin/sh
# Campaign nightly-fleet in 4 shards, as plain commands.
#
# The lines between are independent: run each on any machine, in any order, at the same time or one after the other.
# Running one again changes nothing, so run again what failed. Proofs need root, or User-mode Linux without it.
# Measurements want a machine with nothing else to do.
#
# Credentials come from the environment, on every machine: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION,
# and AWS_ENDPOINT_URL for a store that is not Amazon's.


landfall campaign run s3://fleet/landfall/0123456789abcdef --shard 1/4
landfall campaign run s3://fleet/landfall/0123456789abcdef --shard 2/4
landfall campaign run s3://fleet/landfall/0123456789abcdef --shard 3/4
landfall campaign run s3://fleet/landfall/0123456789abcdef --shard 4/4

# After all of them. What is missing is said; the verdict is the exit code of the last.
landfall campaign report s3://fleet/landfall/0123456789abcdef
landfall campaign merge s3://fleet/landfall/0123456789abcdef
