//! A witness's verdict in sentences.

use super::{Found, Loss, Outcome, Tally, Target, Uncounted, Verdict, Witnessed};
use crate::{Notice, Weight};

impl Tally {
    /// Cuts, losses, and the bound that follows.
    pub fn text(&self) -> String {
        let Some(bound) = self.losing_at_most else {
            return "was checked after no power cut yet".to_owned();
        };
        let cuts = plural(self.cuts, "power cut");
        let share = format!(
            "with 95% confidence at most {:.1}% of cuts lose something",
            bound * 100.0
        );
        match self.losing {
            0 => format!("lost nothing in {cuts}; {share}"),
            losing => format!("lost acknowledged writes in {losing} of {cuts}; {share}"),
        }
    }
}

impl Target {
    /// The disks below, by model, serial number and firmware.
    pub fn disks_text(&self) -> String {
        let disks: Vec<String> = self
            .disks
            .iter()
            .map(|disk| {
                let model = disk.model.as_deref().unwrap_or("a disk without a model");
                let serial = disk.unique().unwrap_or("none");
                let firmware = disk.firmware.as_deref();
                let firmware = firmware.map(|one| format!(", firmware {one}"));
                format!(
                    "{model} (serial number {serial}{})",
                    firmware.unwrap_or_default()
                )
            })
            .collect();
        if disks.is_empty() {
            "no disk that can be seen".to_owned()
        } else {
            disks.join(", ")
        }
    }
}

impl Found {
    /// What is there, in words.
    pub fn text(&self) -> String {
        match self {
            Found::Kept => "what was promised".to_owned(),
            Found::Older(write) => format!("write {write}"),
            Found::EarlierRun => "a write of an earlier run".to_owned(),
            Found::Foreign => "a write that the witness never heard of".to_owned(),
            Found::Zeros => "zeros".to_owned(),
            Found::Damaged => "a torn or damaged block".to_owned(),
            Found::Unreadable => "a block that cannot be read".to_owned(),
            Found::Missing => "nothing: the file ends before it, or is gone".to_owned(),
        }
    }
}

impl Loss {
    /// The loss, in a line.
    pub fn text(&self) -> String {
        format!(
            "block {} at byte {}: write {} was promised at {} ({:.3} s before the last), found {}",
            self.block,
            self.offset,
            self.promised,
            self.acknowledged,
            self.seconds_before_last,
            self.found.text()
        )
    }
}

impl Verdict {
    /// What came out, in a sentence.
    pub fn text(&self) -> String {
        let (lost, promised) = (self.lost, plural(self.promised, "promised block"));
        match self.outcome {
            Outcome::Kept => {
                format!("Kept: each of {promised} has what was acknowledged.")
            }
            Outcome::Lost => format!(
                "Lost: {lost} of {promised} do not have what was acknowledged before the power cut."
            ),
            Outcome::Suspicious => format!(
                "Suspicious: {lost} of {promised} do not have what was acknowledged, but no power cut is known of."
            ),
            Outcome::Changed => {
                "Changed: somebody else has written there since; nothing can be said of the disk."
                    .to_owned()
            }
            Outcome::NoCut => format!(
                "Proves nothing: there was no power cut since; each of {promised} has what was acknowledged."
            ),
            Outcome::NothingPromised => {
                "Proves nothing: nothing was acknowledged yet that could be missing.".to_owned()
            }
        }
    }

    /// Whether what was written without a sync, to see whether the cut is one, has survived it: the cut is none.
    pub fn is_vain_control(&self) -> bool {
        self.outcome == Outcome::Kept && self.uncounted == Some(Uncounted::Control)
    }

    /// What is to be known of the cut, if anything is.
    pub fn remark(&self) -> Option<String> {
        let text = match (self.outcome, self.uncounted) {
            (Outcome::Suspicious, _) => {
                "Other causes than the disk: a program that wrote there, a filesystem that was made anew. If the power was cut, say so with --cut."
            }
            (Outcome::NoCut, _) if !self.writer_had_ended => {
                "The machine did not start anew since it wrote, so its power was not cut, whatever a command did. Of a disk with a supply of its own say so with --cut=disk."
            }
            (Outcome::Kept, Some(Uncounted::Restart)) => {
                "The machine started anew, and nobody says that its power was cut: not counted. If it was, say so with --cut."
            }
            (Outcome::Kept, Some(Uncounted::WriterEnded)) => {
                "The writer had ended before the cut, when the disk was idle: not counted."
            }
            (Outcome::Kept, Some(Uncounted::WriterGone)) => {
                "The writer's connection was closed in good order, as a shutdown does it and a power cut cannot: not counted. Cut the power while it writes."
            }
            (Outcome::Kept, Some(Uncounted::WitnessAway)) => {
                "The witness has started anew since the last write, and cannot know whether the machine was shut down meanwhile: not counted."
            }
            (Outcome::Kept, Some(Uncounted::Control)) => {
                "Written without a sync, as a control, and all of it is there: this cut took nothing away, so cuts like it prove nothing. Take the power itself away, while writes are under way."
            }
            (Outcome::Lost, Some(Uncounted::Control)) => {
                "Written without a sync, as a control: not counted for the disk."
            }
            (_, Some(Uncounted::CountedBefore)) => {
                "Another stream of this disk was checked after the same cut: it counts as one."
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}

impl Witnessed {
    /// What is to be known of a disk before a figure measured on it is believed.
    pub fn notice(&self) -> Notice {
        let disks = self.target.disks_text();
        let tally = &self.tally;
        let (weight, said) = match (tally.losing, tally.suspicious, tally.cuts) {
            (1.., _, _) => (
                Weight::Danger,
                format!(
                    "it {}: nothing is durable here, whatever the setting",
                    tally.text()
                ),
            ),
            (0, 1.., _) => (
                Weight::Warning,
                format!(
                    "it {}, and {} found acknowledged writes missing without a known power cut",
                    tally.text(),
                    plural(tally.suspicious, "check")
                ),
            ),
            (0, 0, 0) => (
                Weight::Note,
                "it was checked after no power cut yet, so nothing is known of its flushes"
                    .to_owned(),
            ),
            (0, 0, 1..) => (Weight::Note, format!("it {}", tally.text())),
        };
        Notice::new(
            "witness",
            weight,
            format!("A witness on another host says of {disks}: {said}."),
        )
    }

    /// What is said where there is no witness.
    pub fn absent() -> Notice {
        let text = "Whether this disk keeps its flushes, no software on this host can know: 'landfall witness' on another host does.";
        Notice::new("no-witness", Weight::Note, text)
    }
}

fn plural(count: u64, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}
