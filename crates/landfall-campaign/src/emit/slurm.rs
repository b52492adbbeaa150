//! Slurm: a job array, a task for each shard, and the same file once more for the report.
//!
//! One file serves both, so that what a site must change (partition, time, account) is changed in one place: shards are counted from
//! 1, and task 0 is the report.

use super::Job;
use super::quote::shell;

pub fn emit(job: &Job) -> String {
    let credentials = if job.is_in_object_store() {
        "\
# Credentials of the object store: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, and AWS_ENDPOINT_URL for a store
# that is not Amazon's. sbatch hands on the environment in which it is called. Where a site forbids that, keep them in a file
# that only you can read, on a filesystem that all nodes have:
# set -a; . \"$HOME/.landfall-credentials\"; set +a
"
    } else {
        "\
# The directory is one that all nodes share, under this path.
"
    };
    format!(
        "\
#!/bin/sh
# {title}: a task of a Slurm array for each, and a report after them.
#
#   shards=$(sbatch --parsable campaign.sbatch)
#   sbatch --dependency=afterany:\"$shards\" --array=0 campaign.sbatch
#
# The second job waits until every task has ended, however it did; its log has the verdict, and names shards that are missing.
# A task that fails with 3 has lost something, which is a result. For one that failed otherwise, such as the third:
#
#   sbatch --array=3 campaign.sbatch
#
# Running a shard again changes nothing.
#
#SBATCH --job-name={label}
# More than 1,000 shards take a larger MaxArraySize in slurm.conf. 1-{shards}%8 would run at most eight at a time.
#SBATCH --array=1-{shards}
#SBATCH --output=%x-%A_%a.log
#SBATCH --nodes=1
#SBATCH --ntasks=1
# Alone on the node: what others write would be measured too. A campaign of proofs alone can do without.
#SBATCH --exclusive
# For a shard, not for the campaign. A minute before, landfall is told to stop, and removes what it has made.
#SBATCH --time=08:00:00
#SBATCH --signal=B:TERM@60
# A task whose node fails begins again on another one.
#SBATCH --requeue
# Nodes with the disks that are to be measured, by a feature that the site has given them:
##SBATCH --constraint=nvme

campaign={location}

{credentials}
# Proofs need root. Without it landfall runs them inside User-mode Linux, if the node has that (package user-mode-linux).
# Where users may become root, write `sudo --preserve-env` before each landfall below.
if [ \"$SLURM_ARRAY_TASK_ID\" -gt 0 ]; then
  exec {program} campaign run \"$campaign\" --shard \"$SLURM_ARRAY_TASK_ID/{shards}\"
fi

{program} campaign merge \"$campaign\"
verdict=$?
{program} campaign report \"$campaign\"
exit \"$verdict\"
",
        title = job.title(),
        label = job.label(),
        shards = job.shards,
        location = shell(&job.location()),
        program = shell(&job.program),
    )
}
