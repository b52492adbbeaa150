//! What the witness knows: of each stream the last run, and of each disk its power cuts.
//!
//! It is a durable state of the engine's: a command is in its log, and the log on the disk, before anybody is told. A
//! restart applies the same commands again, so nothing here looks at a clock or draws a number: both come with the command.
//!
//! **Invariants.** The writes of a run are acknowledged one after the other, from 1, without a gap. Of each block but
//! that of the write in flight the last acknowledgement is kept. A run that was checked takes no more writes, and counts
//! once. A run that a power cut may have hit is checked before another begins on its stream. A cut counts once, however
//! many streams of its disk it has hit.

use std::collections::{BTreeMap, VecDeque};

use landfall::SerdeState;
use landfall_os::DiskIdentity;
use landfall_results::witness::{Cut, Outcome, Tally, Uncounted, Verdict, Witnessed};
use serde::{Deserialize, Serialize};

use crate::block::Run;
use crate::check::{hexadecimal, time_text};
use crate::message::{Acknowledgement, Begin, Declared, Promises, Report};

/// Streams that are the most: each takes up to 2 MiB of memory.
pub(crate) const MOST_STREAMS: usize = 64;

/// What the names begin with by which earlier versions knew disks.
const BY_NUMBERS: &str = "disk ";

/// All that the witness knows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    streams: BTreeMap<String, Stream>,
    /// By what the disks below are known by, or by the stream where they say nothing of themselves. What an earlier version has
    /// counted is there by the serial numbers alone, until a stream of these disks is begun or checked.
    disks: BTreeMap<String, Tally>,
}

/// One target, and its last run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stream {
    begin: Begin,
    begun: u64,
    run: Run,
    acknowledged: u64,
    /// Those of the last writes, as many as are promised.
    last: VecDeque<Acknowledgement>,
    has_ended: bool,
    since: Since,
    /// When the witness's command had cut the power.
    cut: Option<u64>,
    /// What was found last, be it of the run before.
    verdict: Option<Verdict>,
    /// Whether this run was checked after a cut that is known of, and counts no more.
    is_closed: bool,
}

/// What happened since the last write of a run: what comes then may be no cut, or none that it alone has seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Since {
    /// Its connection was closed in good order.
    is_gone: bool,
    /// The witness has started anew.
    was_away: bool,
    hit: Option<Hit>,
}

/// A cut of a disk that was counted when one of its streams was checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Hit {
    /// The how manyth of the disk.
    cut: u64,
    /// The start of the machine in which the stream wrote that was checked.
    boot: String,
    /// Whether it has counted as a loss.
    has_lost: bool,
}

/// What changes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    Begin {
        begin: Begin,
        run: Run,
        at: u64,
    },
    Acknowledge {
        stream: String,
        run: Run,
        write: u64,
        at: u64,
        checksum: u32,
    },
    End {
        stream: String,
        run: Run,
    },
    /// The witness's command has cut the power.
    Cut {
        stream: String,
        run: Run,
        at: u64,
    },
    /// It had not: the machine went on writing.
    NotCut {
        stream: String,
        run: Run,
    },
    Report {
        report: Report,
        at: u64,
    },
    /// The writer's connection was closed in good order, and it had not said that it ends.
    Gone {
        stream: String,
        run: Run,
    },
    /// The witness has started anew: what it could have heard meanwhile it has not.
    Away,
}

/// What came of it.
pub(crate) enum Applied {
    Done,
    Counted(Box<Witnessed>),
    /// Nothing was changed, and why.
    Refused(String),
}

impl SerdeState for Ledger {
    type Command = Command;
    type Output = Applied;

    fn apply(&mut self, command: Command) -> Applied {
        if let Some(complaint) = self.complaint(&command) {
            return Applied::Refused(complaint);
        }
        if matches!(command, Command::Begin { .. } | Command::Report { .. }) {
            self.tell_disks_apart();
        }
        match command {
            Command::Begin { begin, run, at } => {
                let name = begin.stream.clone();
                // A block of an earlier run is told by when that began, whatever has become of the clock.
                let begun = self.streams.values().map(|stream| stream.begun);
                let at = begun.max().map_or(at, |newest| at.max(newest + 1));
                let before = self.streams.remove(&name);
                let verdict = before.and_then(|stream| stream.verdict);
                self.streams
                    .insert(name, Stream::new(begin, run, at, verdict));
            }
            Command::Acknowledge {
                stream,
                write,
                at,
                checksum,
                ..
            } => {
                if let Some(stream) = self.streams.get_mut(&stream) {
                    stream.acknowledge(write, at, checksum);
                }
            }
            Command::End { stream, .. } => {
                if let Some(stream) = self.streams.get_mut(&stream) {
                    stream.has_ended = true;
                }
            }
            Command::Cut { stream, at, .. } => {
                if let Some(stream) = self.streams.get_mut(&stream) {
                    stream.cut = Some(at);
                }
            }
            Command::NotCut { stream, .. } => {
                if let Some(stream) = self.streams.get_mut(&stream) {
                    stream.cut = None;
                }
            }
            Command::Report { report, at } => return self.report(&report, at),
            Command::Gone { stream, .. } => {
                if let Some(stream) = self.streams.get_mut(&stream) {
                    stream.since.is_gone = true;
                }
            }
            Command::Away => {
                for stream in self.streams.values_mut() {
                    stream.since.was_away = true;
                }
            }
        }
        Applied::Done
    }
}

impl Ledger {
    /// Why a command would be refused; nothing is changed by asking, and nothing that is refused needs to be logged.
    pub fn complaint(&self, command: &Command) -> Option<String> {
        match command {
            Command::Begin { begin, .. } => self.complaint_of_begin(begin),
            Command::Acknowledge {
                stream,
                run,
                write,
                checksum,
                ..
            } => {
                let stream = match self.of_run(stream, run) {
                    Ok(stream) => stream,
                    Err(complaint) => return Some(complaint),
                };
                stream.complaint_of_write(*write, *checksum)
            }
            Command::End { stream, run }
            // Also of a run that has ended meanwhile: what it lost, it lost by this. If nothing is missing it does not count.
            | Command::Cut { stream, run, .. }
            | Command::NotCut { stream, run }
            | Command::Gone { stream, run } => self.of_run(stream, run).err(),
            Command::Away => None,
            Command::Report { report, .. } => {
                let own = || self.of_run(&report.stream, &report.run).err();
                report.complaint().or_else(own)
            }
        }
    }

    fn complaint_of_begin(&self, begin: &Begin) -> Option<String> {
        begin.complaint().or_else(|| {
            let Some(stream) = self.streams.get(&begin.stream) else {
                return (self.streams.len() >= MOST_STREAMS)
                    .then(|| format!("it has {MOST_STREAMS} streams, and takes no more"));
            };
            stream.may_have_lost(&begin.boot).then(|| {
                "the power may have been cut since the last run here: check it before writing anew, with 'landfall witness check', or --check".to_owned()
            })
        })
    }

    /// The stream, if this is the run that it is in.
    pub fn of_run(&self, stream: &str, run: &Run) -> Result<&Stream, String> {
        match self.streams.get(stream) {
            Some(found) if found.run == *run && !found.is_closed => Ok(found),
            Some(found) if found.run == *run => {
                Err("this run was checked, and has ended with that".to_owned())
            }
            _ => Err("another run has begun on this stream".to_owned()),
        }
    }

    pub fn stream(&self, name: &str) -> Option<&Stream> {
        self.streams.get(name)
    }

    /// Runs that the witness's own command has cut, and that are not checked yet.
    pub fn is_any_cut_unchecked(&self) -> bool {
        let mut streams = self.streams.values();
        streams.any(|stream| stream.cut.is_some() && !stream.is_closed)
    }

    /// Whether a writer may have stopped while nobody listened.
    pub fn is_any_under_way(&self) -> bool {
        let mut streams = self.streams.values();
        streams.any(|stream| !stream.has_ended && !stream.is_closed && !stream.since.was_away)
    }

    /// How many streams there are, and `most` of them, from the how manyth on.
    pub fn status(&self, from: usize, most: usize) -> (usize, Vec<Witnessed>) {
        let some = self.streams.values().skip(from).take(most);
        (
            self.streams.len(),
            some.map(|stream| self.witnessed(stream)).collect(),
        )
    }

    fn witnessed(&self, stream: &Stream) -> Witnessed {
        Witnessed {
            stream: stream.begin.stream.clone(),
            target: stream.begin.target.clone(),
            strategy: stream.begin.strategy,
            tally: self.tally(stream),
            verdict: stream.verdict.clone(),
        }
    }

    /// Gives each disk what an earlier version has counted for all of its serial number: which of them it was is not known.
    fn tell_disks_apart(&mut self) {
        let by_serial_numbers = self.disks.keys().filter(|key| key.starts_with(BY_NUMBERS));
        let by_serial_numbers: Vec<String> = by_serial_numbers.cloned().collect();
        for before in by_serial_numbers {
            let is_one =
                |stream: &&Stream| stream.disk_by_serial_numbers().as_ref() == Some(&before);
            let disks = self.streams.values().filter(is_one).map(Stream::disk);
            let disks: Vec<String> = disks.collect();
            if disks.is_empty() {
                continue;
            }
            let tally = self.disks.remove(&before).unwrap_or_default();
            for disk in disks {
                self.disks.entry(disk).or_insert(tally);
            }
        }
    }

    /// What the disk of a stream has come to so far.
    fn tally(&self, stream: &Stream) -> Tally {
        let known = self.disks.get(&stream.disk());
        let known = known.or_else(|| self.disks.get(&stream.disk_by_serial_numbers()?));
        known.copied().unwrap_or_default()
    }

    fn report(&mut self, report: &Report, at: u64) -> Applied {
        let Some(stream) = self.streams.get_mut(&report.stream) else {
            return Applied::Refused("there is no such stream".to_owned());
        };
        let cut = stream.cut_known(&report.boot, report.declared);
        if cut == Cut::None {
            // The machine has not started anew: what a command cut was something else.
            stream.cut = None;
        }
        let outcome = Outcome::of(cut, report.promised, report.lost, report.foreign);
        let uncounted = stream.uncounted(outcome, cut, report.declared);
        let has_lost = stream.since.hit.as_ref().is_some_and(|hit| hit.has_lost);
        let disk = stream.disk();
        let tally = self.disks.entry(disk.clone()).or_default();
        // Somebody says now what was not known of the cut when it was checked before.
        if stream.own_verdict().is_some_and(|before| {
            before.outcome == Outcome::Suspicious && before.uncounted.is_none()
        }) {
            tally.suspicious = tally.suspicious.saturating_sub(1);
        }
        let is_counted = tally.count(outcome, uncounted, has_lost);
        let cuts = tally.cuts;
        debug_assert!(tally.losing <= cuts);
        stream.verdict = Some(Verdict {
            outcome,
            cut,
            writer_had_ended: stream.has_ended,
            is_counted,
            uncounted,
            run: hexadecimal(&stream.run),
            checked: time_text(at),
            acknowledged: stream.acknowledged,
            last_acknowledged: stream.last.back().map(|last| time_text(last.at)),
            promised: report.promised,
            lost: report.lost,
            losses: report.losses.clone(),
        });
        stream.is_closed = outcome == Outcome::Changed
            || (outcome != Outcome::NothingPromised
                && matches!(cut, Cut::Commanded | Cut::Declared));
        let hit = Hit {
            cut: cuts,
            boot: stream.begin.boot.clone(),
            has_lost: outcome == Outcome::Lost,
        };
        let of_cut = stream.since.hit.as_ref().map(|hit| hit.cut);
        let shows_loss = hit.has_lost && uncounted == Some(Uncounted::CountedBefore);
        for one in self.streams.values_mut().filter(|one| one.disk() == disk) {
            if is_counted {
                one.mark(&hit);
            } else if shows_loss
                && let Some(mark) = one.since.hit.as_mut().filter(|hit| Some(hit.cut) == of_cut)
            {
                mark.has_lost = true;
            }
        }
        let witnessed = self
            .streams
            .get(&report.stream)
            .map(|stream| self.witnessed(stream));
        witnessed.map_or(Applied::Done, |one| Applied::Counted(Box::new(one)))
    }
}

impl Stream {
    fn new(begin: Begin, run: Run, begun: u64, verdict: Option<Verdict>) -> Stream {
        Stream {
            begin,
            begun,
            run,
            acknowledged: 0,
            last: VecDeque::new(),
            has_ended: false,
            since: Since::default(),
            cut: None,
            verdict,
            is_closed: false,
        }
    }

    pub fn run(&self) -> Run {
        self.run
    }

    pub fn boot(&self) -> &str {
        &self.begin.boot
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Those of the writes that are promised, from this write on.
    pub fn page(&self, from: u64, most: usize) -> Vec<Acknowledgement> {
        let first = self.acknowledged + 1 - self.last.len() as u64;
        let skip = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        self.last.iter().skip(skip).take(most).copied().collect()
    }

    pub fn promises(&self) -> Promises {
        Promises {
            run: self.run,
            begun: self.begun,
            target: self.begin.target.clone(),
            strategy: self.begin.strategy,
            acknowledged: self.acknowledged,
            checked: self.verdict.clone().filter(|_| self.is_closed),
            cut: self.cut.map_or(Cut::None, |_| Cut::Commanded),
        }
    }

    /// What its cuts are counted under.
    fn disk(&self) -> String {
        let target = &self.begin.target;
        if target.unique().is_none() {
            return format!("stream {}", self.begin.stream);
        }
        let disks = target.disks.iter().map(DiskIdentity::identifying_text);
        let mut disks: Vec<String> = disks.collect();
        disks.sort_unstable();
        format!("disks {}", disks.join("; "))
    }

    /// What they were counted under by earlier versions, for which disks of one serial number were one.
    fn disk_by_serial_numbers(&self) -> Option<String> {
        let name = self.begin.target.unique()?;
        Some(format!("{BY_NUMBERS}{name}"))
    }

    fn acknowledge(&mut self, write: u64, at: u64, checksum: u32) {
        if write == self.acknowledged {
            // Said again: the answer was lost on its way. The writer is there.
            self.since.is_gone = false;
            self.since.was_away = false;
            return;
        }
        self.acknowledged = write;
        self.since = Since::default();
        // A clock that is set back makes no later write an earlier one.
        let at = self.last.back().map_or(at, |last| last.at.max(at));
        self.last.push_back(Acknowledgement { at, checksum });
        if self.last.len() as u64 >= u64::from(self.begin.strategy.blocks) {
            self.last.pop_front();
        }
    }

    fn complaint_of_write(&self, write: u64, checksum: u32) -> Option<String> {
        let is_next = write == self.acknowledged + 1;
        let is_again = write == self.acknowledged
            && self
                .last
                .back()
                .is_some_and(|last| last.checksum == checksum);
        if self.has_ended {
            return Some("this run has ended".to_owned());
        }
        (!is_next && !is_again).then(|| {
            format!(
                "write {write} does not follow the last that it knows of, which is {}",
                self.acknowledged
            )
        })
    }

    /// What was found of this run.
    fn own_verdict(&self) -> Option<&Verdict> {
        let run = hexadecimal(&self.run);
        self.verdict.as_ref().filter(|verdict| verdict.run == run)
    }

    /// Whether a power cut may have hit it that nobody looked at.
    fn may_have_lost(&self, boot: &str) -> bool {
        let is_looked_at = self
            .own_verdict()
            .is_some_and(|one| one.cut == Cut::Restart);
        let is_restarted = boot != self.begin.boot && !self.has_ended && !is_looked_at;
        self.acknowledged > 0 && !self.is_closed && (self.cut.is_some() || is_restarted)
    }

    /// A cut of its disk was counted, by this stream or by another one. Of several marks the first of its own life of the machine
    /// stays, since that is what it was hit by.
    fn mark(&mut self, hit: &Hit) {
        let own = &self.begin.boot;
        let before = self.since.hit.as_ref();
        if before.is_none_or(|before| before.boot != *own && hit.boot == *own) {
            self.since.hit = Some(hit.clone());
        }
    }

    /// Why a check that came to this is no cut of its own.
    fn uncounted(
        &self,
        outcome: Outcome,
        cut: Cut,
        declared: Option<Declared>,
    ) -> Option<Uncounted> {
        // Where a disk alone loses its power, the machine goes on, and closes connections.
        let is_machine = cut == Cut::Declared && declared == Some(Declared::Machine);
        let is_control = !self.begin.strategy.method.is_durable();
        let hit = self.since.hit.as_ref();
        match outcome {
            Outcome::Kept if cut == Cut::Restart => Some(Uncounted::Restart),
            Outcome::Kept if self.has_ended => Some(Uncounted::WriterEnded),
            Outcome::Kept | Outcome::Lost | Outcome::Suspicious if is_control => {
                Some(Uncounted::Control)
            }
            // Also where a command cut the power: it may have switched another socket, and the machine was shut down.
            Outcome::Kept if self.since.was_away => Some(Uncounted::WitnessAway),
            Outcome::Kept if self.since.is_gone && is_machine => Some(Uncounted::WriterGone),
            Outcome::Kept if hit.is_some() => Some(Uncounted::CountedBefore),
            // What was written in another life of the machine may have gone with another cut.
            Outcome::Lost if hit.is_some_and(|hit| hit.boot == self.begin.boot) => {
                Some(Uncounted::CountedBefore)
            }
            _ => None,
        }
    }

    /// What is known of a cut since its last write.
    fn cut_known(&self, boot: &str, declared: Option<Declared>) -> Cut {
        let is_another_start = boot != self.begin.boot;
        match declared {
            Some(Declared::Disk) if self.cut.is_some() => Cut::Commanded,
            Some(Declared::Disk) => Cut::Declared,
            // A command that ended well may have switched a wrong socket: a machine that lost its power starts anew.
            _ if self.cut.is_some() && is_another_start => Cut::Commanded,
            Some(Declared::Machine) if is_another_start => Cut::Declared,
            // A machine that goes down in good order flushes its disks.
            _ if is_another_start && !self.has_ended => Cut::Restart,
            _ => Cut::None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
