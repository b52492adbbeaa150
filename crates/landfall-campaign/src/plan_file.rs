//! The file in which a user says what a campaign is to do.
//!
//! ```toml
//! name = "sqlite-wal-full"
//! shards = 16
//! results = "s3://durability/campaigns"
//!
//! [[run]]
//! command = "landfall prove sqlite --set journal_mode=wal --states 1000000"
//!
//! [[run]]
//! command = "landfall lab sync /srv/db"
//! ```

use serde::Deserialize;

use crate::Error;
use landfall_results::proof::Shard;

/// Longest name.
const LONGEST_NAME: usize = 64;

/// What a user asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFile {
    /// What it is called.
    pub name: String,
    /// Into how many shards it is cut.
    pub shards: u32,
    /// Where results go: a directory, or `s3://bucket/prefix`.
    pub results: String,
    /// What each shard runs.
    pub runs: Vec<Run>,
}

/// One command of which every shard does its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its words, without the program's name.
    pub words: Vec<String>,
    /// Of a proof: whether its shards try parts of the states of one recording, or each makes its own.
    pub recording: RecordingOf,
}

/// What the shards of a proof cut the power in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordingOf {
    /// One recording, which is made when the campaign is planned: each shard tries its part of the states.
    #[default]
    Shared,
    /// A recording of its own, made from a seed of its own: each shard tries all states.
    Own,
}

/// As it stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: String,
    shards: u32,
    results: String,
    #[serde(default)]
    run: Vec<RunText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunText {
    command: String,
    #[serde(default)]
    recording: RecordingOf,
}

impl PlanFile {
    /// Reads the file's text.
    pub fn parse(text: &str) -> Result<PlanFile, Error> {
        let text: Text = toml::from_str(text).map_err(|error| unreadable(text, &error))?;
        if !is_name(&text.name) {
            return Err(Error::Usage(format!(
                "name = '{}': a campaign's name has 1 to {LONGEST_NAME} letters, digits, '-', '_' and '.', and begins with a letter or a digit",
                text.name
            )));
        }
        Shard::new(1, text.shards)
            .map_err(|why| Error::Usage(format!("shards = {}: {why}", text.shards)))?;
        if text.results.is_empty() {
            return Err(Error::Usage(
                "results = '': name a directory that all machines share, or s3://BUCKET/PREFIX"
                    .into(),
            ));
        }
        if text.run.is_empty() {
            return Err(Error::Usage(
                "nothing is to be run: add [[run]] with command = \"landfall prove …\"".into(),
            ));
        }
        let runs = text.run.into_iter().map(run).collect::<Result<_, _>>()?;
        Ok(PlanFile {
            name: text.name,
            shards: text.shards,
            results: text.results,
            runs,
        })
    }
}

/// Why a text is no plan, with the line, in one sentence.
fn unreadable(text: &str, error: &toml::de::Error) -> Error {
    let said = error.message().lines().collect::<Vec<_>>().join(" ");
    Error::Usage(match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {said}", before.matches('\n').count() + 1),
        None => said,
    })
}

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() <= LONGEST_NAME
        && name.bytes().all(is_allowed)
        && name
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
}

fn run(text: RunText) -> Result<Run, Error> {
    let wrong = |why: &str| Error::Usage(format!("command = '{}': {why}", text.command));
    let words = shlex::split(&text.command).ok_or_else(|| wrong("a quote is not closed"))?;
    let mut words = words.into_iter();
    if words.next().as_deref() != Some("landfall") {
        return Err(wrong(
            "it is not a command of landfall's: write it as you would type it",
        ));
    }
    let words: Vec<String> = words.collect();
    if words.iter().any(|word| word == "--" || word.contains('\n')) {
        return Err(wrong(
            "leave out '--' and line ends: options are added behind it",
        ));
    }
    let recording = text.recording;
    match words.first().map(String::as_str) {
        Some("prove") => {}
        Some("lab") if recording == RecordingOf::Shared => {}
        Some("lab") => return Err(wrong("only a proof has a recording")),
        _ => {
            return Err(wrong(
                "only landfall prove and landfall lab can be run by a campaign",
            ));
        }
    }
    Ok(Run { words, recording })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        name = "a.b-c_1"
        shards = 3
        results = "/srv/results"
        [[run]]
        command = "landfall prove command --cmd 'a \"b\" c' --seed 4"
        recording = "own"
        [[run]]
        command = "landfall lab sync /srv/db"
    "#;

    #[test]
    fn commands_are_read_as_a_shell_would() {
        let file = PlanFile::parse(GOOD).unwrap();
        let words = ["prove", "command", "--cmd", "a \"b\" c", "--seed", "4"];
        assert_eq!(file.runs[0].words, words);
        assert_eq!(file.runs[0].recording, RecordingOf::Own);
        assert_eq!(file.runs[1].recording, RecordingOf::Shared);
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_a_sentence() {
        for (right, wrong, why) in [
            ("\"a.b-c_1\"", "\"\"", "a campaign's name has"),
            ("\"a.b-c_1\"", "\"a b\"", "a campaign's name has"),
            ("\"a.b-c_1\"", "\"../x\"", "a campaign's name has"),
            ("shards = 3", "shards = 0", "there are 1 to"),
            ("shards = 3", "shards = -1", "line 3: "),
            ("shards = 3", "shard = 3", "unknown field"),
            ("\"/srv/results\"", "\"\"", "name a directory"),
            ("'a \\\"b\\\" c'", "'a", "a quote is not closed"),
            ("landfall prove", "rm", "is not a command of landfall's"),
            ("landfall prove", "landfall clean", "only landfall prove"),
            (
                "landfall prove",
                "landfall lab",
                "only a proof has a recording",
            ),
            ("\"own\"", "\"none\"", "unknown variant"),
        ] {
            assert!(GOOD.contains(right), "{right}");
            let error = PlanFile::parse(&GOOD.replace(right, wrong)).unwrap_err();
            assert!(error.to_string().contains(why), "{wrong}: {error}");
        }
        let none = &GOOD[..GOOD.find("[[run]]").unwrap()];
        assert!(
            PlanFile::parse(none)
                .unwrap_err()
                .to_string()
                .contains("nothing is to be run")
        );
    }
}
