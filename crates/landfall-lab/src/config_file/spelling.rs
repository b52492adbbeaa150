//! How each server spells its settings, line by line.

/// A line that brings in other files.
pub(super) enum Include {
    File(String),
    IfThere(String),
    /// All files of a directory whose names begin and end so.
    Directory {
        path: String,
        begin: String,
        end: String,
    },
}

pub(super) fn unquoted(value: &str) -> String {
    let value = value.trim();
    for quote in ['\'', '"'] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|rest| rest.split_once(quote));
        if let Some((inner, _)) = inner {
            return inner.to_owned();
        }
    }
    value.to_owned()
}

/// The line without a comment that follows its value. An apostrophe within a word begins no quote.
pub(super) fn uncommented(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '\'') if line[..at].ends_with(char::is_alphanumeric) => {}
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '#') => return line[..at].trim_end(),
            _ => {}
        }
    }
    line
}

pub(super) fn all_in(path: &str, begin: &str, end: &str) -> Include {
    Include::Directory {
        path: path.to_owned(),
        begin: begin.to_owned(),
        end: end.to_owned(),
    }
}

pub(super) fn postgres_include(line: &str) -> Option<Include> {
    let line = uncommented(line);
    let (word, rest) = line.split_once(|c: char| c.is_whitespace() || c == '=')?;
    let path = unquoted(rest.trim_start_matches([' ', '\t', '=']));
    match word.to_ascii_lowercase().as_str() {
        "include" => Some(Include::File(path)),
        "include_if_exists" => Some(Include::IfThere(path)),
        "include_dir" => Some(all_in(&path, "", ".conf")),
        _ => None,
    }
}

pub(super) fn postgres(line: &str) -> Option<(String, String)> {
    let line = uncommented(line);
    let (name, rest) = line.split_once(|c: char| c.is_whitespace() || c == '=')?;
    let value = unquoted(rest.trim_start_matches([' ', '\t', '=']));
    Some((name.to_ascii_lowercase(), value))
}

pub(super) fn redis_include(line: &str) -> Option<Include> {
    let (word, path) = line.split_once(char::is_whitespace)?;
    if !word.eq_ignore_ascii_case("include") {
        return None;
    }
    let path = unquoted(path);
    let (directory, name) = path.rsplit_once('/').unwrap_or((".", &path));
    Some(match name.split_once('*') {
        // One star in a name is what people write.
        Some((begin, end)) => all_in(directory, begin, end),
        None => Include::File(path),
    })
}

pub(super) fn redis(line: &str) -> Option<(String, String)> {
    if line.starts_with('#') {
        return None;
    }
    let (name, value) = line.split_once(char::is_whitespace)?;
    Some((name.to_ascii_lowercase(), unquoted(value)))
}

/// `name=value`, `name: value` or `name value`.
pub(super) fn property(line: &str) -> Option<(String, String)> {
    if line.starts_with(['#', '!', ';']) {
        return None;
    }
    let end = line.find(|c: char| c.is_whitespace() || matches!(c, '=' | ':'))?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    Some((name.to_owned(), value.trim().to_owned()))
}

/// `name: value`, `name = value` or `name value`, several in a line, in blocks or not.
pub(super) fn nats(line: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let ends = |c: char| c.is_whitespace() || matches!(c, ':' | '=');
        let (name, value) = part.split_once(ends)?;
        let value = value.trim().trim_start_matches([':', '=']);
        // As JSON has it, and by its other name.
        let name = match unquoted(name).to_ascii_lowercase() {
            name if name == "sync" => "sync_interval".to_owned(),
            name => name,
        };
        Some((name, unquoted(value)))
    };
    nats_parts(line).filter_map(pair).collect()
}

/// `include FILE`, in a block or not.
pub(super) fn nats_include(line: &str) -> Option<Include> {
    let path = nats_parts(line).find_map(|part| {
        let (word, path) = part.split_once(char::is_whitespace)?;
        (word == "include").then(|| unquoted(path))
    })?;
    Some(Include::File(path))
}

/// What stands in a line of NATS' configuration, without comments and braces.
fn nats_parts(line: &str) -> impl Iterator<Item = &str> {
    let line = line.split('#').next().unwrap_or_default();
    let parts = without_slashes(line).split(['{', '}', ',', ';']);
    let parts = parts.map(str::trim);
    parts.filter(|part| !part.starts_with("//"))
}

/// The line without a comment that two slashes begin. Addresses have them too, but neither at the beginning of a line nor
/// behind a blank.
fn without_slashes(line: &str) -> &str {
    let mut slashes = line.match_indices("//");
    let comment = slashes.find(|(at, _)| *at == 0 || line[..*at].ends_with(char::is_whitespace));
    comment.map_or(line, |(at, _)| &line[..at])
}

/// The statements of a script for SQLite, without comments, and the line on which each begins.
pub(super) fn sql_statements(script: &str) -> Vec<(usize, String)> {
    /// Where a character stands.
    #[derive(Clone, Copy)]
    enum Within {
        Text,
        Quote(char),
        Comment,
    }
    let mut within = Within::Text;
    let mut all = Vec::new();
    let (mut begin, mut statement) = (1, String::new());
    for (line, text) in (1..).zip(script.lines()) {
        if matches!(within, Within::Text) {
            let text = text.trim_start();
            // A command of the shell is a line, and need not close its quotes.
            if statement.is_empty() && text.starts_with('.') {
                continue;
            }
            // Lists of pragmas, one to a line, are written without semicolons too.
            let word = text.get(.."pragma".len());
            if word.is_some_and(|word| word.eq_ignore_ascii_case("pragma")) {
                all.push((begin, std::mem::take(&mut statement)));
            }
        }
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            let next = characters.peek().copied();
            let mut kept = c;
            match (within, c) {
                (Within::Text, ';') => {
                    all.push((begin, std::mem::take(&mut statement)));
                    continue;
                }
                (Within::Text, '-') if next == Some('-') => break,
                (Within::Text, '/') if next == Some('*') => {
                    characters.next();
                    within = Within::Comment;
                    kept = ' ';
                }
                (Within::Text, '\'' | '"' | '`') => within = Within::Quote(c),
                (Within::Quote(quote), _) if c == quote => within = Within::Text,
                (Within::Comment, '*') if next == Some('/') => {
                    characters.next();
                    within = Within::Text;
                    continue;
                }
                (Within::Comment, _) => continue,
                _ => {}
            }
            if statement.is_empty() {
                if kept.is_whitespace() {
                    continue;
                }
                begin = line;
            }
            statement.push(kept);
        }
        if !statement.is_empty() {
            statement.push('\n');
        }
    }
    all.push((begin, statement));
    all
}

/// `PRAGMA name = value`, `PRAGMA main.name(value)`. What is set for another schema is another database's.
pub(super) fn pragma(statement: &str) -> Option<(String, String)> {
    let lower = statement.trim().to_ascii_lowercase();
    let rest = lower.strip_prefix("pragma")?.trim_start();
    let (name, value) = match rest.split_once('=') {
        Some(pair) => pair,
        None => rest.strip_suffix(')')?.split_once('(')?,
    };
    let name = match name.split_once('.') {
        Some((schema, name)) if unquoted(schema) == "main" => name.trim(),
        Some(_) => return None,
        None => name.trim(),
    };
    let value = unquoted(value);
    // Levels have numbers as well, and the first two are switches.
    let level = match value.as_str() {
        "0" | "no" | "false" => "off",
        "1" | "on" | "yes" | "true" => "normal",
        "2" => "full",
        "3" => "extra",
        named => named,
    };
    let value = match name {
        "synchronous" => level.to_owned(),
        _ => value,
    };
    Some((name.to_owned(), value))
}
