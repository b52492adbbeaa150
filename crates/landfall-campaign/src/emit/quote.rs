//! Texts inside of other languages: what a job names reaches the program unchanged, and is nothing but text before.
//!
//! A text often passes several readers. It is quoted for the last of them first: a shell's script that is a value in a
//! workflow is quoted for the shell, then [`github`], then [`yaml`].

/// As one word of a POSIX shell.
pub fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,@%:".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// As one scalar of YAML 1.1 or 1.2, in double quotes.
pub fn yaml(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_printable(c) => quoted.push(c),
            c if (c as u32) < 0x100 => quoted.push_str(&format!("\\x{:02X}", c as u32)),
            c if (c as u32) < 0x1_0000 => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push_str(&format!("\\U{:08X}", c as u32)),
        }
    }
    quoted.push('"');
    quoted
}

/// A script as the value of a key in YAML: line by line at this indentation, where all of it can be written so.
pub fn yaml_script(script: &str, indent: usize) -> String {
    let lines: Vec<&str> = script.lines().collect();
    let readable = script.chars().all(|c| is_printable(c) || c == '\n')
        && script.ends_with('\n')
        && lines.iter().all(|line| !line.trim_end().is_empty())
        && lines.first().is_some_and(|line| !line.starts_with(' '));
    if !readable {
        return yaml(script);
    }
    let margin = " ".repeat(indent);
    let lines = lines.iter().map(|line| format!("\n{margin}{line}"));
    format!("|{}", lines.collect::<String>())
}

/// What every reader of YAML takes as it stands, within a line.
fn is_printable(c: char) -> bool {
    let breaks_lines = matches!(c, '\u{2028}' | '\u{2029}');
    let is_no_character = matches!(c, '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}');
    !c.is_control() && !breaks_lines && !is_no_character
}

/// For a value in a workflow of GitHub, which evaluates `${{ … }}` wherever it stands.
pub fn github(text: &str) -> String {
    text.replace("${{", "${{ '${{' }}")
}

/// For a command, an argument or a variable of a Kubernetes container, in which `$(NAME)` is a variable and `$$` a dollar.
pub fn kubernetes(text: &str) -> String {
    let mut quoted = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        quoted.push(c);
        if c == '$' && matches!(rest.peek(), Some('(' | '$')) {
            quoted.push('$');
        }
    }
    quoted
}
