//! Job files: what a scheduler needs to run a campaign's shards, each on one machine, and its report after them.
//!
//! They are texts for people: commented, short, without anything that a scheduler has not by itself. Each runs
//! `landfall campaign run RESULTS/ID --shard I/N`, with I from the scheduler's own variable, and once all shards have ended,
//! however they did, `landfall campaign merge` and `landfall campaign report`. No file contains a secret: each
//! says how its scheduler hands one over.
//!
//! Invariants: whatever characters a [`Job`] has, a file is valid, and hands them to the program as they are
//! (`quote` has the rules); equal jobs give equal files.

mod ansible;
mod github;
mod kubernetes;
mod quote;
mod sh;
mod slurm;

use std::fmt;
use std::str::FromStr;

/// What a job file is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What the campaign is called: letters, digits, `-`, `_` and `.`, at least one of them. Anything else is shown as `-`.
    pub name: String,
    /// Into how many shards it is cut; at least one.
    pub shards: u32,
    /// Where results go: `s3://bucket/prefix`, or the absolute path of a directory that all machines share.
    pub results: String,
    /// The campaign's name by its content: 16 hexadecimal digits.
    pub campaign: String,
    /// The program, as a machine finds it: `landfall`, or a path.
    pub program: String,
}

/// What can run the shards of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// A job array.
    Slurm,
    /// An Indexed Job.
    Kubernetes,
    /// A workflow with a matrix.
    Github,
    /// A playbook.
    Ansible,
    /// Plain commands for a shell.
    Sh,
}

impl Scheduler {
    /// All of them.
    pub const ALL: [Scheduler; 5] = [
        Scheduler::Slurm,
        Scheduler::Kubernetes,
        Scheduler::Github,
        Scheduler::Ansible,
        Scheduler::Sh,
    ];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Slurm => "slurm",
            Scheduler::Kubernetes => "kubernetes",
            Scheduler::Github => "github",
            Scheduler::Ansible => "ansible",
            Scheduler::Sh => "sh",
        }
    }

    /// What its job file is called in the comments of that file.
    pub fn file_name(self) -> &'static str {
        match self {
            Scheduler::Slurm => "campaign.sbatch",
            Scheduler::Kubernetes => "campaign.yaml",
            Scheduler::Github => ".github/workflows/campaign.yml",
            Scheduler::Ansible => "campaign.yml",
            Scheduler::Sh => "campaign.sh",
        }
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No scheduler has this name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no scheduler '{0}': there are slurm, kubernetes, github, ansible and sh")]
pub struct UnknownScheduler(String);

impl FromStr for Scheduler {
    type Err = UnknownScheduler;

    fn from_str(name: &str) -> Result<Scheduler, UnknownScheduler> {
        let known = Scheduler::ALL.into_iter().find(|one| one.name() == name);
        known.ok_or_else(|| UnknownScheduler(name.to_owned()))
    }
}

/// The job file of `job` for this scheduler.
pub fn emit(scheduler: Scheduler, job: &Job) -> String {
    match scheduler {
        Scheduler::Slurm => slurm::emit(job),
        Scheduler::Kubernetes => kubernetes::emit(job),
        Scheduler::Github => github::emit(job),
        Scheduler::Ansible => ansible::emit(job),
        Scheduler::Sh => sh::emit(job),
    }
}

impl Job {
    /// Where the campaign is: below this is all that it is and has found.
    fn location(&self) -> String {
        format!("{}/{}", self.results.trim_end_matches('/'), self.campaign)
    }

    /// The name with nothing in it that means something to a scheduler, a shell or YAML.
    fn label(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        self.name
            .chars()
            .map(|c| if plain(c) { c } else { '-' })
            .collect()
    }

    /// What the first line of every file says.
    fn title(&self) -> String {
        let shards = if self.shards == 1 { "shard" } else { "shards" };
        format!("Campaign {} in {} {shards}", self.label(), self.shards)
    }

    /// Whether results go to an object store, which takes credentials, and not into a directory.
    fn is_in_object_store(&self) -> bool {
        self.results.contains("://")
    }
}
