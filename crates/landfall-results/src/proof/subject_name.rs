//! What a subject is called: its name, and the settings that tell it from others of that name.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A subject with its settings: in a document, and for people, `mariadb sync_binlog=1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct SubjectName {
    /// The subject.
    pub name: String,
    /// Settings that are not as usual, in the order in which they are shown.
    pub settings: Vec<(String, String)>,
}

impl SubjectName {
    /// The value of a setting, where it is not as usual.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }
}

/// A subject without settings.
impl From<&str> for SubjectName {
    fn from(name: &str) -> SubjectName {
        SubjectName {
            name: name.to_owned(),
            settings: Vec::new(),
        }
    }
}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (key, value) in &self.settings {
            let has_space = value.contains(char::is_whitespace);
            let quote = if has_space { "'" } else { "" };
            write!(f, " {key}={quote}{value}{quote}")?;
        }
        Ok(())
    }
}

/// As it is printed. A text that is not of this form is a name without settings.
impl FromStr for SubjectName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<SubjectName, Infallible> {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        Ok(match settings(rest) {
            Some(settings) => SubjectName {
                name: name.to_owned(),
                settings,
            },
            None => text.into(),
        })
    }
}

/// `a=1 b='two words'`; `None` if it is something else.
fn settings(mut text: &str) -> Option<Vec<(String, String)>> {
    let mut settings = Vec::new();
    while !text.is_empty() {
        let (key, rest) = text.split_once('=')?;
        if key.is_empty() || key.contains(char::is_whitespace) {
            return None;
        }
        // A value in quotes may have quotes in it: it ends where another setting, or nothing, follows.
        let (value, rest) = match rest.strip_prefix('\'') {
            Some(quoted) => match quoted.split_once("' ") {
                Some(split) => split,
                None => (quoted.strip_suffix('\'')?, ""),
            },
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        settings.push((key.to_owned(), value.to_owned()));
        text = rest;
    }
    Some(settings)
}

impl From<String> for SubjectName {
    fn from(text: String) -> SubjectName {
        let Ok(name) = text.parse();
        name
    }
}

impl From<SubjectName> for String {
    fn from(name: SubjectName) -> String {
        name.to_string()
    }
}

impl JsonSchema for SubjectName {
    fn schema_name() -> Cow<'static, str> {
        "SubjectName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A subject with its settings: `mariadb sync_binlog=1`.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_again() {
        for text in [
            "sqlite",
            "mariadb sync_binlog=1 innodb_flush_method=O_DIRECT",
            "command cmd='p {dir} {ack}' check='c {dir}'",
            "files method=none",
        ] {
            let name: SubjectName = text.to_owned().into();
            assert_eq!(name.to_string(), text);
        }
        let command: SubjectName = "command cmd='p {dir}' atomic=no".to_owned().into();
        assert_eq!(command.name, "command");
        assert_eq!(command.get("cmd"), Some("p {dir}"));
        assert_eq!(command.get("atomic"), Some("no"));
        assert_eq!(command.get("check"), None);
    }

    #[test]
    fn a_text_of_another_form_is_a_name() {
        for text in ["my store", "a b=", "", "x y='1", "<b>hostile</b> & more"] {
            let name: SubjectName = text.to_owned().into();
            assert_eq!(name.to_string(), text);
        }
    }
}
