//! Does what one shard is to do: runs the program once for each task, and keeps one document of all of them.
//!
//! The program is this one, as a user would run it: what a shard does can be done by hand. Nothing is kept before all tasks
//! have ended: a shard that is killed has left nothing, and is run again. What cannot be sent then is kept here (`unsent`).
//!
//! Threads: the caller's, which waits for one program after the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use landfall_lab::{Found, Results};
use landfall_os::{PrivateDirectory, Stop};
use landfall_results::proof::{Outcome as ProofOutcome, Shard};

use crate::Error;
use crate::content::{CampaignId, Digest};
use crate::document::{Outcome, ShardDocument};
use crate::plan::{Plan, Share, Task};
use crate::program::{Ended, own_directory, run_program};
use crate::store::ResultStore;
use crate::unsent::{self, recording_file, write_whole};

/// Exit codes with which results were written: measured, not proven, lost, too noisy.
const WITH_RESULTS: [i32; 4] = [0, 1, 3, 5];

/// A shard that is to be run.
pub struct ShardRun<'a> {
    /// Where results are kept.
    pub store: &'a ResultStore,
    /// What the campaign is to do.
    pub plan: &'a Plan,
    /// Which of its shards.
    pub shard: Shard,
    /// The program: landfall.
    pub program: &'a Path,
    /// Where recordings are kept, and what is written meanwhile.
    pub work: &'a Path,
    /// Set by Ctrl-C.
    pub stop: &'a Stop,
}

impl ShardRun<'_> {
    /// Runs it, and keeps its document. `say` hears what is begun.
    pub fn run(&self, say: &mut dyn FnMut(&str)) -> Result<ShardDocument, Error> {
        self.plan.check(self.shard)?;
        if self.plan.version != env!("CARGO_PKG_VERSION") {
            return Err(Error::Usage(format!(
                "the campaign was planned by landfall {}, and this is {}: run all of a campaign with one version",
                self.plan.version,
                env!("CARGO_PKG_VERSION")
            )));
        }
        own_directory(self.work)?;
        // Not after hours of work.
        self.store.begin_shard(&self.plan.id(), self.shard)?;
        for task in &self.plan.tasks {
            if let Share::States { recording } = &task.share {
                fetch(self.store, &self.plan.id(), *recording, self.work)?;
            }
        }
        let begin = Instant::now();
        let started = jiff::Timestamp::now().to_string();
        let id = self.plan.id();
        let mut document = ShardDocument::new(id.clone(), self.shard, started);
        for (number, task) in (1_usize..).zip(&self.plan.tasks) {
            say(&format!(
                "task {number} of {}: {}",
                self.plan.tasks.len(),
                task.command
            ));
            match self.task(&id, task, say) {
                Ok(outcome) => document.outcomes.push(outcome),
                Err(error) => {
                    // No document will tell of them. What went wrong before counts more than that they cannot be removed.
                    let _ = unsent::forget_recordings(self.work, &document);
                    return Err(error);
                }
            }
        }
        document.seconds = begin.elapsed().as_secs_f64();
        match unsent::keep(self.work, &document) {
            Ok(path) => unsent::send(self.store, self.work, Some(&path), &document)?,
            // Where it cannot be kept it is sent all the same.
            Err(error) => {
                say(&format!("{error}: if it cannot be sent it is lost"));
                unsent::send(self.store, self.work, None, &document)?;
            }
        }
        Ok(document)
    }

    fn task(
        &self,
        id: &CampaignId,
        task: &Task,
        say: &mut dyn FnMut(&str),
    ) -> Result<Outcome, Error> {
        // Others may run in the same directory, even the same shard.
        let private = PrivateDirectory::create_in(self.work)
            .map_err(Error::io("make a directory in", self.work))?;
        let own = |name: &str| private.path().join(name);
        let (results, recording) = (own("results.json"), own("recording"));
        let mut words = task.words.clone();
        // Of a path that begins with a hyphen a word of its own would be an option.
        let mut add = |option: &str, value: String| words.push(format!("{option}={value}"));
        add("--json", results.display().to_string());
        match &task.share {
            Share::States { recording } => {
                let path = fetch(self.store, id, *recording, self.work)?;
                add("--recording", path.display().to_string());
                add("--shard", self.shard.to_string());
            }
            Share::Recordings { seed } => {
                add("--keep-recording", recording.display().to_string());
                let seed = seed.wrapping_add(u64::from(self.shard.index()) - 1);
                add("--seed", seed.to_string());
            }
            Share::Machines => {}
        }
        words.extend(["--no-report".to_owned(), "--quiet".to_owned()]);
        let Ended { code, complaint } = run_program(self.program, &words, self.stop)?;
        let failed = |why: String| Outcome::Failed { code, why };
        if !code.is_some_and(|code| WITH_RESULTS.contains(&code)) {
            return Ok(failed(complaint));
        }
        let found = match fs::read_to_string(&results) {
            Ok(text) => Results::from_json(&text),
            Err(_) => return Ok(failed(complaint)),
        };
        let mut found = match found {
            Ok(found) => Box::new(found),
            Err(error) => return Ok(failed(format!("what it wrote {error}"))),
        };
        let has_lost = found
            .proofs()
            .any(|proof| proof.outcome() == ProofOutcome::LostSomething);
        let is_own = matches!(task.share, Share::Recordings { .. });
        let kept = (is_own && has_lost).then(|| self.keep_recording(&recording));
        let recording = match kept {
            Some(Ok((digest, fetched))) => {
                // Where it is fetched to, and not where it was made.
                let (made, fetched) = (recording.display(), fetched);
                let (made, fetched) = (made.to_string(), fetched.display().to_string());
                for experiment in &mut found.experiments {
                    if let Found::Prove(proof) = experiment
                        && let Some(shortest) = &mut proof.shortest
                    {
                        shortest.command = shortest.command.replace(&made, &fetched);
                    }
                }
                Some(digest)
            }
            // What was lost was lost, whether it can be shown again or not.
            Some(Err(error)) => {
                say(&format!("its recording is not kept: {error}"));
                None
            }
            None => None,
        };
        Ok(Outcome::Done {
            results: found,
            recording,
        })
    }
}

impl ShardRun<'_> {
    /// Keeps a recording of its own until it is sent, by its content. Its name, and where it is.
    fn keep_recording(&self, made: &Path) -> Result<(Digest, PathBuf), Error> {
        let bytes = fs::read(made).map_err(Error::io("read", made))?;
        let digest = Digest::of(&bytes);
        let kept = recording_file(self.work, digest);
        write_whole(self.work, &kept, &bytes)?;
        Ok((digest, kept))
    }
}

/// The recording of this name in `work`, fetched if it is not there.
pub fn fetch(
    store: &ResultStore,
    id: &CampaignId,
    digest: Digest,
    work: &Path,
) -> Result<PathBuf, Error> {
    let path = recording_file(work, digest);
    // One that was cut off by a full disk or a kill is fetched again.
    let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
    let is_there = is_file && fs::read(&path).is_ok_and(|bytes| Digest::of(&bytes) == digest);
    if !is_there {
        own_directory(work)?;
        write_whole(work, &path, &store.recording(id, digest)?)?;
    }
    Ok(path)
}
