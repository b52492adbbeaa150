//! `landfall witness`: a disk before another host's eyes.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use landfall_lab::Stop;
use landfall_os::humanize::size_name;
use landfall_report::text::plain_lines;
use landfall_results::witness::{
    Cut, Outcome, Strategy, Target, Verdict, WitnessDocument, Witnessed,
};
use landfall_witness::{
    Checked, Client, Cutting, Error, Place, ServeOptions, Server, Token, WriteOptions, check,
    status, write,
};

use crate::args::{
    TokenArguments, Witness, WitnessCheck, WitnessCommand, WitnessServe, WitnessStatus,
    WitnessTarget, WitnessWrite,
};
use crate::commands::documents::{check_files, is_stdout, write_named};
use crate::commands::{self, first_failure, print_bytes};
use crate::exit::{Code, Failure};
use crate::terminal::{remark, stop_on_signals};

/// The environment variable of the token.
const TOKEN: &str = "LANDFALL_WITNESS_TOKEN";
/// Losses that are printed.
const SHOWN: usize = 10;

pub fn run(arguments: Witness, quiet: bool) -> Result<Code, Failure> {
    match arguments.command {
        WitnessCommand::Serve(serve) => run_serve(&serve, quiet),
        WitnessCommand::Write(write) => run_write(&write, quiet),
        WitnessCommand::Check(check) => run_check(&check),
        WitnessCommand::Status(status) => run_status(&status),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::Usage(_) => Code::Usage,
            Error::Refused(_) => Code::Refused,
            Error::Stopped => Code::Stopped,
            _ => Code::Failed,
        };
        Failure::new(code, error.to_string())
    }
}

fn token(arguments: &TokenArguments) -> Result<Token, Failure> {
    if let Some(path) = &arguments.token_file {
        return Ok(Token::read(path)?);
    }
    let Some(text) = std::env::var_os(TOKEN) else {
        let text = format!("name the file of the token with --token-file, or set {TOKEN}");
        return Err(Failure::new(Code::Usage, text));
    };
    let Some(text) = text.to_str() else {
        let text = format!("{TOKEN} is not text in UTF-8; make a token as the documentation does");
        return Err(Failure::new(Code::Usage, text));
    };
    Ok(Token::parse(text)?)
}

fn run_serve(arguments: &WitnessServe, quiet: bool) -> Result<Code, Failure> {
    let token = token(&arguments.token)?;
    let stop = Stop::default();
    stop_on_signals(&stop)?;
    let of_now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    };
    let cutting = arguments.cut_with.as_ref().map(|cut_with| Cutting {
        cut_with: cut_with.clone(),
        restore_with: arguments.restore_with.clone(),
        after: arguments.after.0..=arguments.after.1,
        cuts: arguments.cuts.unwrap_or(1),
        off: Duration::from_secs_f64(arguments.off),
        seed: arguments.seed.unwrap_or_else(of_now),
    });
    let is_cutting = cutting.is_some();
    let options = ServeOptions {
        cutting,
        tell: Box::new(move |what| {
            if !quiet {
                remark(what);
            }
        }),
        ..ServeOptions::default()
    };
    let server = Server::bind(&arguments.listen, &arguments.dir, &token, options)?;
    print_bytes(format!("listening on {}\n", server.address()).as_bytes())?;
    let ran = server.run(&stop);
    let known = server.status();
    let has_lost = is_cutting && server.has_seen_loss();
    let ended = ran.and(server.close());
    if let Err(error) = ended {
        let failure = Failure::from(error);
        // What was lost before was lost, whatever became of the next cut.
        let is_loss = has_lost && failure.code == Code::Failed;
        let code = if is_loss { Code::Lost } else { failure.code };
        return Err(Failure { code, ..failure });
    }
    if stop.is_requested() {
        return Ok(Code::Stopped);
    }
    // It ended by itself: all cuts were made.
    let printed = print_bytes(status_text(&known).as_bytes()).map(drop);
    let code = if has_lost { Code::Lost } else { Code::Measured };
    commands::ended(code, printed)
}

/// Where it is, and a connection to the witness.
fn reach(arguments: &WitnessTarget) -> Result<(Place, Token), Failure> {
    let token = token(&arguments.token)?;
    let place = Place::find(&arguments.target, arguments.name.as_deref())?;
    Ok((place, token))
}

fn run_write(arguments: &WitnessWrite, quiet: bool) -> Result<Code, Failure> {
    let target = &arguments.target;
    let (place, token) = reach(target)?;
    place.confirm(&target.target, arguments.destroy.as_deref())?;
    if target.cut.is_some() && !arguments.check {
        let text = "--cut says something of a check: name --check too";
        return Err(Failure::new(Code::Usage, text));
    }
    let stop = Stop::default();
    stop_on_signals(&stop)?;
    if arguments.check {
        let mut client = Client::connect(&target.host, &token)?;
        let checked = check(&mut client, &place, target.cut.map(Into::into))?;
        let printed = print_bytes(text(&checked).as_bytes()).map(drop);
        match commands::ended(code(&checked), printed)? {
            Code::Lost if arguments.keep_going => {}
            // Nothing shown is no reason not to begin.
            Code::Measured | Code::Failed => {}
            bad => return Ok(bad),
        }
    }
    let options = WriteOptions {
        strategy: Strategy {
            method: arguments.method,
            block_bytes: arguments.size,
            blocks: arguments.blocks,
            order: arguments.order.into(),
        },
        writes: arguments.writes,
        patience: Duration::from_secs(arguments.patience),
    };
    let path = place.path().display();
    // Not before something is written: until then there is only one thing to say, if it cannot be.
    let mut progress = |acknowledged| {
        if acknowledged == 1 && !quiet {
            remark(&format!(
                "writing {path}, until it is stopped or the power is cut"
            ));
        }
    };
    let written = write(&target.host, &token, &place, &options, &stop, &mut progress)?;
    let acknowledged = written.acknowledged;
    print_bytes(
        format!("{acknowledged} writes were acknowledged; the writer has ended\n").as_bytes(),
    )?;
    Ok(if stop.is_requested() {
        Code::Stopped
    } else {
        Code::Measured
    })
}

fn run_check(arguments: &WitnessCheck) -> Result<Code, Failure> {
    let target = &arguments.target;
    check_json(arguments.json.as_deref(), &target.token)?;
    let (place, token) = reach(target)?;
    let mut client = Client::connect(&target.host, &token)?;
    let checked = check(&mut client, &place, target.cut.map(Into::into))?;
    let witnessed = match &checked {
        Checked::NothingWritten => Vec::new(),
        Checked::Found(witnessed) | Checked::Repeated(witnessed) => vec![witnessed.clone()],
    };
    let put = put(&arguments.json, witnessed, &text(&checked));
    commands::ended(code(&checked), put)
}

fn run_status(arguments: &WitnessStatus) -> Result<Code, Failure> {
    check_json(arguments.json.as_deref(), &arguments.token)?;
    let token = token(&arguments.token)?;
    let mut client = Client::connect(&arguments.host, &token)?;
    let known = status(&mut client)?;
    let text = status_text(&known);
    put(&arguments.json, known, &text)?;
    Ok(Code::Measured)
}

fn check_json(json: Option<&Path>, token: &TokenArguments) -> Result<(), Failure> {
    let token = token.token_file.iter();
    let read: Vec<_> = token.map(|path| ("--token-file", path.clone())).collect();
    check_files(&read, [("--json", json)])
}

/// The text, unless standard output has the document; and the document where it was asked for, whatever became of that.
fn put(json: &Option<PathBuf>, witnessed: Vec<Witnessed>, text: &str) -> Result<(), Failure> {
    let document = WitnessDocument::new(witnessed);
    let printed = if is_stdout(json) {
        print_bytes(document.to_json().as_bytes())
    } else {
        print_bytes(text.as_bytes())
    };
    let written = write_named(json, || document.to_json());
    first_failure([printed.map(drop), written])
}

fn code(checked: &Checked) -> Code {
    let verdict = checked.verdict();
    match verdict.map(|verdict| verdict.outcome) {
        Some(Outcome::Kept) if verdict.is_some_and(Verdict::is_vain_control) => Code::Failed,
        Some(Outcome::Kept) => Code::Measured,
        Some(Outcome::Lost | Outcome::Suspicious) => Code::Lost,
        Some(Outcome::Changed) => Code::Refused,
        Some(Outcome::NoCut | Outcome::NothingPromised) | None => Code::Failed,
    }
}

/// What a check came to.
fn text(checked: &Checked) -> String {
    let (witnessed, is_repeated) = match checked {
        Checked::NothingWritten => {
            return "Proves nothing: the witness knows of no write here.\n".to_owned();
        }
        Checked::Found(witnessed) => (witnessed, false),
        Checked::Repeated(witnessed) => (witnessed, true),
    };
    let Some(verdict) = &witnessed.verdict else {
        return String::new();
    };
    let mut lines = vec![verdict.text()];
    if is_repeated {
        let checked = &verdict.checked;
        lines.push(format!(
            "That was found at {checked}, and counts once: write anew before the next cut."
        ));
    }
    let losses = verdict.losses.iter().take(SHOWN);
    lines.extend(losses.map(|loss| format!("  {}", loss.text())));
    let more = verdict.losses.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.push(format!("  and {more} more: --json lists them"));
    }
    lines.extend(verdict.remark());
    lines.extend(of_idle_disk(verdict));
    lines.extend(of_disk(witnessed));
    plain_lines(&lines.join("\n")) + "\n"
}

/// What only the operator can know of a cut that counts by his word: whether the disk was written then.
fn of_idle_disk(verdict: &Verdict) -> Option<String> {
    let is_by_word = verdict.cut == Cut::Declared && verdict.outcome == Outcome::Kept;
    let last = verdict.last_acknowledged.as_ref();
    let last = last.filter(|_| is_by_word && verdict.is_counted)?;
    Some(format!(
        "The last write was acknowledged at {last}, by the witness's clock. A cut that came minutes later, as after an outage of the network, hit an idle disk and proves nothing: do not declare such a cut."
    ))
}

fn status_text(known: &[Witnessed]) -> String {
    if known.is_empty() {
        return "The witness knows of no writes yet.\n".to_owned();
    }
    let mut lines = Vec::new();
    for one in known {
        lines.push(one.stream.clone());
        lines.extend(of_disk(one).map(|line| format!("  {line}")));
        let last = one.verdict.as_ref();
        lines.extend(
            last.map(|verdict| format!("  Last check, {}: {}", verdict.checked, verdict.text())),
        );
    }
    plain_lines(&lines.join("\n")) + "\n"
}

fn of_disk(witnessed: &Witnessed) -> [String; 3] {
    let (target, strategy) = (&witnessed.target, &witnessed.strategy);
    let filesystem = target.filesystem.as_ref();
    let filesystem = filesystem.map(|one| format!("{} mounted on {}, ", one.kind, one.mount_point));
    [
        format!(
            "Disk: {}{}",
            filesystem.unwrap_or_default(),
            target.disks_text()
        ),
        format!(
            "Written: {} blocks of {}, by {}",
            strategy.blocks,
            size_name(strategy.block_bytes.into()),
            strategy.method
        ),
        format!("So far it {}.", witnessed.tally.text()),
    ]
}

/// What a witness found of the disk of a directory, in a document that was named.
pub fn evidence(document: &Path, directory: &Path) -> Result<Witnessed, Failure> {
    let name = document.display();
    let wrong = |why: String| Failure::new(Code::Usage, format!("cannot go by {name}: {why}"));
    let text = std::fs::read_to_string(document).map_err(|error| wrong(error.to_string()))?;
    let known = WitnessDocument::parse(&text).map_err(wrong)?;
    let here = Place::find(directory, None)?;
    let others: Vec<String> = known
        .witnessed
        .iter()
        .map(|one| one.target.disks_text())
        .collect();
    // Disks without serial numbers of two machines may be in the same place. What somebody gave a name is known by that.
    let is_elsewhere = |one: &Witnessed| {
        let is_unnamed = one.stream.ends_with(&format!(":{}", one.target.path));
        one.target.unique().is_none() && is_unnamed && one.stream != here.stream()
    };
    let all = known.witnessed.into_iter();
    let alike = all.filter(|one| one.target.is_evidence_for(here.target()));
    let (elsewhere, own): (Vec<_>, Vec<_>) = alike.partition(is_elsewhere);
    if let (Some(other), true) = (elsewhere.first(), own.is_empty()) {
        let stream = &other.stream;
        return Err(wrong(format!(
            "the disk has no serial number, and that is of another machine: {stream}"
        )));
    }
    own.into_iter()
        .next()
        .ok_or_else(|| of_another(&others, here.target(), wrong))
}

fn of_another(others: &[String], here: &Target, wrong: impl Fn(String) -> Failure) -> Failure {
    let others = match others {
        [] => "no disk".to_owned(),
        others => others.join(", "),
    };
    wrong(format!(
        "it is of {others}, and the directory is on {}",
        here.disks_text()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_cut_that_counts_by_the_operators_word_it_is_said_when_the_last_write_was() {
        let verdict = Verdict {
            outcome: Outcome::Kept,
            cut: Cut::Declared,
            writer_had_ended: false,
            is_counted: true,
            uncounted: None,
            run: "01".to_owned(),
            checked: "2026-01-01T09:00:00Z".to_owned(),
            acknowledged: 9,
            last_acknowledged: Some("2026-01-01T08:00:00Z".to_owned()),
            promised: 9,
            lost: 0,
            losses: Vec::new(),
        };
        let said = of_idle_disk(&verdict).unwrap();
        assert!(said.contains("at 2026-01-01T08:00:00Z, by"), "{said}");
        let commanded = Verdict {
            cut: Cut::Commanded,
            ..verdict.clone()
        };
        let uncounted = Verdict {
            is_counted: false,
            ..verdict
        };
        assert!(of_idle_disk(&commanded).is_none() && of_idle_disk(&uncounted).is_none());
    }
}
