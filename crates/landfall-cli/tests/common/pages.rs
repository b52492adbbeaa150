//! The commands that the repository's pages name: in code blocks, tables and inline code.
//!
//! Shared by the test that has each of them parsed, which is inside the program, and the one that runs what is cheap and safe.

use std::fs;
use std::path::{Path, PathBuf};

/// A command line of ours on a page.
#[derive(Debug)]
pub struct Documented {
    /// The page, from the root of the repository, and the line on it.
    pub place: String,
    /// What follows the program's name, its placeholders filled in.
    pub words: Vec<String>,
    /// Whether it is said to be run as root.
    pub as_root: bool,
    /// Whether it stands in a code block, to be copied, or in a sentence.
    pub in_block: bool,
}

/// What a placeholder stands for; everything else on a page is meant literally.
const PLACEHOLDERS: [(&str, &str); 12] = [
    ("SUBJECT", "sqlite"),
    ("DIR", "."),
    ("NEW", "new"),
    ("FILESYSTEM", "ext4"),
    ("FS", "ext4"),
    ("KEY=VALUE", "journal_mode=delete"),
    ("PROFILE", "hdd-7200"),
    ("MODEL", "subset"),
    ("UNIT", "4K"),
    ("SEED", "1"),
    ("A.json", "before.json"),
    ("B.json", "after.json"),
];

/// The repository, of which this package is a part.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether this is the repository; a package has none of its pages.
pub fn are_here() -> bool {
    repository().join("docs/README.md").exists()
}

/// Every page but the history, each once: a symbolic link is another name of one.
pub fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![repository()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the repository can be read") {
            let entry = entry.expect("the repository can be read");
            let (path, kind) = (entry.path(), entry.file_type().expect("it has a type"));
            let name = entry.file_name();
            if kind.is_dir() {
                let is_built = ["target", ".git", "landfall-report"]
                    .iter()
                    .any(|one| name == *one);
                if !is_built {
                    folders.push(path);
                }
            } else if kind.is_file()
                && name.to_string_lossy().ends_with(".md")
                && name != "CHANGELOG.md"
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Every command line of ours on every page.
pub fn documented_commands() -> Vec<Documented> {
    let mut found = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page is text");
        let name = page
            .strip_prefix(repository())
            .expect("it is in the repository")
            .display()
            .to_string();
        commands_of(&name, &text, &mut found);
    }
    found
}

fn commands_of(page: &str, text: &str, found: &mut Vec<Documented>) {
    let mut prose = String::new();
    let mut fence: Option<&str> = None;
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() {
                None
            } else {
                Some(language)
            };
            prose.push('\n');
            continue;
        }
        let is_code = match fence {
            // What a program printed has commands of its own, as wide as a terminal: only what was typed counts.
            Some("text") => line.starts_with("$ "),
            Some(language) => ["", "sh"].contains(&language),
            None => line.starts_with("    "),
        };
        if !is_code {
            prose.push_str(if fence.is_some() { "" } else { line });
            prose.push('\n');
            continue;
        }
        let mut command = line.trim().to_owned();
        let mut further = 0;
        while command.ends_with('\\') {
            command.pop();
            command.push_str(lines.next().map_or("", |(_, next)| next.trim()));
            further += 1;
        }
        found.extend(documented(page, at + 1, &command, true));
        prose.push_str(&"\n".repeat(1 + further));
    }
    // Inline code may go over the end of a line, and `\|` is a bar inside of a table.
    for (span, line) in inline_code(&prose) {
        let span = span.replace("\\|", "|").replace('\n', " ");
        found.extend(documented(page, line, &span, false));
    }
}

/// Each stretch between single backticks of a paragraph, with the line where it begins.
fn inline_code(prose: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut line = 1;
    for paragraph in prose.split_inclusive("\n\n") {
        for (index, span) in paragraph.split('`').enumerate() {
            if index % 2 == 1 {
                found.push((span, line));
            }
            line += span.matches('\n').count();
        }
    }
    found
}

fn documented(page: &str, line: usize, command: &str, in_block: bool) -> Option<Documented> {
    let place = format!("{page}:{line}");
    let is_ours = command.contains("landfall ") || command.contains("cargo run");
    let words = is_ours.then(|| shlex::split(command))?;
    // A sentence may have an apostrophe where a command would have a quote.
    let mut words = words?.into_iter().peekable();
    let mut as_root = false;
    loop {
        let word = words.peek()?;
        match word.as_str() {
            "sudo" => as_root = true,
            "$" | "-E" => {}
            "landfall" => break,
            "cargo" => {
                // Its own options come before "--", and ours behind it.
                let words: Vec<String> = words.collect();
                let is_run = words.get(1).is_some_and(|word| word == "run");
                let end = words.iter().position(|word| word == "--")?;
                let words = filled_in(&words[end + 1..]);
                return is_run.then_some(Documented {
                    place,
                    words,
                    as_root,
                    in_block,
                });
            }
            variable if variable.contains('=') => {}
            _ => return None,
        }
        words.next();
    }
    words.next();
    Some(Documented {
        place,
        words: filled_in(&words.collect::<Vec<_>>()),
        as_root,
        in_block,
    })
}

/// The words of a command that can be typed: brackets around what may be left out are gone, and so are dots.
fn filled_in(words: &[String]) -> Vec<String> {
    let mut typed: Vec<String> = Vec::new();
    // Where its output goes is the shell's matter.
    for word in words.iter().take_while(|word| *word != ">") {
        let bare = word.trim_start_matches('[').trim_end_matches(['…', ']']);
        let is_first = typed.len() == 1;
        match PLACEHOLDERS.iter().find(|(name, _)| *name == bare) {
            Some((_, value)) => typed.push((*value).to_owned()),
            // Dots where the subject would be stand for any.
            None if bare.is_empty() && is_first && typed[0] == "prove" => {
                typed.push("sqlite".to_owned())
            }
            None if bare.is_empty() || bare == "|" => {}
            None => typed.push(match bare.strip_suffix("=N") {
                Some(name) => format!("{name}=1"),
                None => bare.to_owned(),
            }),
        }
    }
    typed
}
