//! Plain commands: for a few machines, or as the words from which a job for any other scheduler is written.

use super::Job;
use super::quote::shell;

pub fn emit(job: &Job) -> String {
    let program = shell(&job.program);
    let location = shell(&job.location());
    let shards = job.shards;
    let credentials = if job.is_in_object_store() {
        "\
#
# Credentials come from the environment, on every machine: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION,
# and AWS_ENDPOINT_URL for a store that is not Amazon's.
"
    } else {
        "\
#
# Results go into one directory that all machines share, under the same path.
"
    };
    let lines: String = (1..=shards)
        .map(|shard| format!("{program} campaign run {location} --shard {shard}/{shards}\n"))
        .collect();
    format!(
        "\
#!/bin/sh
# {title}, as plain commands.
#
# The lines between are independent: run each on any machine, in any order, at the same time or one after the other.
# Running one again changes nothing, so run again what failed. Proofs need root, or User-mode Linux without it.
# Measurements want a machine with nothing else to do.
{credentials}

{lines}
# After all of them. What is missing is said; the verdict is the exit code of the last.
{program} campaign report {location}
{program} campaign merge {location}
",
        title = job.title(),
    )
}
