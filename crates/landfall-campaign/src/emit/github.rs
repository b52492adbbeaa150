//! GitHub: a workflow with a matrix of shards, and a job for the report that runs whatever became of them.

use super::Job;
use super::quote::{github, shell, yaml, yaml_script};

/// GitHub makes no more jobs of one matrix.
const LONGEST_MATRIX: u32 = 256;

pub fn emit(job: &Job) -> String {
    let shards = job.shards;
    let jobs = shards.min(LONGEST_MATRIX);
    let store = if job.is_in_object_store() {
        &OBJECT_STORE
    } else {
        &DIRECTORY
    };
    let program = shell(&job.program);
    let run = if jobs == shards {
        format!(
            "sudo --preserve-env {program} campaign run \"$CAMPAIGN\" --shard \"$SHARD/{shards}\" || [ $? = 3 ]\n"
        )
    } else {
        format!(
            "# A matrix has at most {LONGEST_MATRIX} jobs: this one runs every {LONGEST_MATRIX}th shard.\n\
             status=0\n\
             for shard in $(seq \"$SHARD\" {LONGEST_MATRIX} {shards}); do\n\
             \x20 sudo --preserve-env {program} campaign run \"$CAMPAIGN\" --shard \"$shard/{shards}\" || [ $? = 3 ] || status=1\n\
             done\n\
             exit \"$status\"\n"
        )
    };
    let report = format!(
        "verdict=0\n\
         {program} campaign merge \"$CAMPAIGN\" || verdict=$?\n\
         {program} campaign report \"$CAMPAIGN\"\n\
         exit \"$verdict\"\n"
    );
    format!(
        "\
# {title}: a job of a workflow's matrix for each, and a report after them.
#
# Keep it as .github/workflows/campaign.yml, and start it with `gh workflow run campaign.yml` or under Actions. \"Re-run failed
# jobs\" makes up for shards that failed; running one again changes nothing.
{comment}
name: {name}
on: workflow_dispatch

# It reads and writes nothing of the repository.
permissions: {{}}

env:
  CAMPAIGN: {location}

jobs:
  shard:
    name: {job_name}
    # Machines of your own, with the disks that are to be measured: [self-hosted, linux, nvme]. Those of GitHub share theirs
    # with others: good for proofs, not for measurements.
    runs-on: {runs_on}
    timeout-minutes: 360
    strategy:
      # The others go on when one fails.
      fail-fast: false
      matrix:
        shard: {matrix}
    steps:
{here}      # Proofs need root, FUSE and loop devices; credentials come from the environment. 3 says that the shard lost something:
      # that is a result, and the report's to tell.
      - name: Run the shard
        env:
          SHARD: ${{{{ matrix.shard }}}}
{env}        run: {run}
  report:
    name: report
    needs: shard
    # Also when shards failed: it names those that are missing. Its verdict is that of the workflow.
    if: always()
    runs-on: {runs_on}
    timeout-minutes: 30
    steps:
{here}      - name: Merge and report
{env_key}{env}        run: {report}",
        title = job.title(),
        name = yaml(&format!("Campaign {}", job.label())),
        job_name = yaml(&format!("shard ${{{{ matrix.shard }}}} of {shards}")),
        comment = store.comment,
        runs_on = store.runs_on,
        location = yaml(&github(&job.location())),
        matrix = matrix(jobs),
        here = here(&program),
        env = store.env,
        env_key = if store.env.is_empty() { "" } else { "        env:\n" },
        run = yaml_script(&github(&run), 10) + "\n",
        report = yaml_script(&github(&report), 10) + "\n",
    )
}

/// The step that fails where there is no program.
fn here(program: &str) -> String {
    let comment =
        "      # Landfall is to be on the machine: in its image, or installed here, such as by";
    let run = yaml_script(&github(&format!("{program} --version\n")), 10);
    format!(
        "{comment}
      # sudo apt-get install --yes ./landfall.deb
      - name: Landfall is here
        run: {run}
"
    )
}

/// What of a workflow depends on where results go.
struct Store {
    comment: &'static str,
    runs_on: &'static str,
    env: &'static str,
}

const OBJECT_STORE: Store = Store {
    comment: "\
#
# Credentials of the object store are secrets of the repository, and its region is a variable:
#
#   gh secret set AWS_ACCESS_KEY_ID
#   gh secret set AWS_SECRET_ACCESS_KEY
#   gh variable set AWS_REGION
",
    runs_on: "ubuntu-latest",
    env: "          AWS_ACCESS_KEY_ID: ${{ secrets.AWS_ACCESS_KEY_ID }}
          AWS_SECRET_ACCESS_KEY: ${{ secrets.AWS_SECRET_ACCESS_KEY }}
          AWS_REGION: ${{ vars.AWS_REGION }}
          # For a store that is not Amazon's:
          # AWS_ENDPOINT_URL: ${{ vars.AWS_ENDPOINT_URL }}
",
};

const DIRECTORY: Store = Store {
    comment: "\
#
# Results go into a directory that all machines share, which GitHub's own do not.
",
    runs_on: "[self-hosted, linux]",
    env: "",
};

/// The numbers from 1 on, as a list in YAML, folded.
fn matrix(jobs: u32) -> String {
    let numbers: Vec<String> = (1..=jobs).map(|shard| shard.to_string()).collect();
    let lines: Vec<String> = numbers.chunks(20).map(|line| line.join(", ")).collect();
    if lines.len() == 1 {
        return format!("[{}]", lines[0]);
    }
    let margin = "\n          ";
    format!("[{margin}{},\n        ]", lines.join(&format!(",{margin}")))
}
