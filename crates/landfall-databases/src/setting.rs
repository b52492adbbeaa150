//! What can be set of a subject or a database, and what somebody set.

use std::fmt::Display;
use std::str::FromStr;

use landfall_os::humanize::parse_size;

/// Bytes of a sector: the least that any disk writes.
const SECTOR: usize = 512;

/// What cannot be set as it was: one sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(pub String);

/// A subject, for help.
#[derive(Debug)]
pub struct Description {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// What can be set of it.
    pub settings: &'static [Setting],
    /// Whether any other setting is handed to the subject as it stands.
    pub passes_on: Option<PassedOn>,
}

/// Settings that are handed to a subject as they stand.
#[derive(Clone, Copy, Debug)]
pub struct PassedOn {
    /// What each is: `a server variable`.
    pub what: &'static str,
    /// The one way to write a name of which the subject takes several: by it rules and proofs know the setting.
    pub spelling: fn(&str) -> String,
}

impl PassedOn {
    /// Settings whose names have one spelling.
    pub(crate) const fn of(what: &'static str) -> PassedOn {
        PassedOn {
            what,
            spelling: str::to_owned,
        }
    }

    /// Settings in whose names capitals make no difference.
    pub(crate) const fn in_any_case(what: &'static str) -> PassedOn {
        PassedOn {
            what,
            spelling: str::to_lowercase,
        }
    }
}

/// One thing that can be set of a subject.
#[derive(Debug)]
pub struct Setting {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its value if it is not set; `None`: it must be.
    pub default: Option<&'static str>,
    /// What it is and which values it has.
    pub about: &'static str,
    /// Whether the subject is always named with it, or only where it is not the default.
    pub always_shown: bool,
}

impl Description {
    fn is_known(&self, key: &str) -> bool {
        self.settings.iter().any(|known| known.name == key)
    }
}

/// Every setting of a subject with its value.
#[derive(Clone, Debug)]
pub struct Chosen {
    subject: &'static str,
    values: Vec<(&'static Setting, String)>,
    passed_on: Vec<(String, String)>,
}

impl Chosen {
    /// Puts what was set in place of the defaults.
    pub fn new(
        subject: &'static Description,
        set: &[(String, String)],
    ) -> Result<Chosen, SettingError> {
        let name = subject.name;
        let spell = |(key, value): &(String, String)| {
            let spelling = subject.passes_on.filter(|_| !subject.is_known(key));
            let key = spelling.map_or_else(|| key.clone(), |passed_on| (passed_on.spelling)(key));
            (key, value.clone())
        };
        let set: Vec<(String, String)> = set.iter().map(spell).collect();
        for (index, (key, _)) in set.iter().enumerate() {
            if subject.passes_on.is_none() && !subject.is_known(key) {
                let known: Vec<&str> = subject.settings.iter().map(|known| known.name).collect();
                return Err(SettingError(format!(
                    "{name} has no setting '{key}'; it has: {}",
                    known.join(", ")
                )));
            }
            if set[..index].iter().any(|(before, _)| before == key) {
                return Err(SettingError(format!("{name} {key} is set twice")));
            }
        }
        let value = |setting: &'static Setting| {
            let given = set.iter().find(|(key, _)| key == setting.name);
            let value = given.map(|(_, value)| value.as_str()).or(setting.default);
            let missing =
                || SettingError(format!("{name} needs {}: {}", setting.name, setting.about));
            Ok((setting, value.ok_or_else(missing)?.to_owned()))
        };
        let values = subject.settings.iter().map(value);
        Ok(Chosen {
            subject: name,
            values: values.collect::<Result<_, SettingError>>()?,
            passed_on: set
                .iter()
                .filter(|(key, _)| !subject.is_known(key))
                .cloned()
                .collect(),
        })
    }

    /// What is handed on as it stands, in the order in which it was set.
    pub fn passed_on(&self) -> &[(String, String)] {
        &self.passed_on
    }

    /// What it is called.
    pub fn subject(&self) -> &'static str {
        self.subject
    }

    /// The settings that tell it from others, as they are shown: those that are not as usual, and what is handed on.
    pub fn shown(&self) -> Vec<(String, String)> {
        let told = self.values.iter().filter(|(setting, value)| {
            setting.always_shown || Some(value.as_str()) != setting.default
        });
        let told = told.map(|(setting, value)| (setting.name.to_owned(), value.clone()));
        told.chain(self.passed_on.iter().cloned()).collect()
    }

    /// The subject with what tells it from others.
    pub fn name(&self) -> String {
        let mut name = self.subject.to_owned();
        for (key, value) in self.shown() {
            let has_space = value.contains(char::is_whitespace);
            let quote = if has_space { "'" } else { "" };
            name.push_str(&format!(" {key}={quote}{value}{quote}"));
        }
        name
    }

    /// The value of `setting`, which the subject has.
    pub fn text(&self, setting: &str) -> &str {
        let value = self.values.iter().find(|(one, _)| one.name == setting);
        debug_assert!(value.is_some(), "{} has no {setting}", self.subject);
        value.map_or("", |(_, value)| value)
    }

    /// Says of `setting` what is wrong with it.
    pub fn wrong(&self, setting: &str, why: impl Display) -> SettingError {
        let (subject, value) = (self.subject, self.text(setting));
        SettingError(format!("{subject} {setting}={value}: {why}"))
    }

    /// The value of `setting`, as a T.
    pub fn parse<T: FromStr>(&self, setting: &str) -> Result<T, SettingError>
    where
        T::Err: Display,
    {
        let parsed = self.text(setting).parse();
        parsed.map_err(|error| self.wrong(setting, error))
    }

    /// The value of `setting`, which must be a number between two others.
    pub fn number(&self, setting: &str, least: u64, most: u64) -> Result<u64, SettingError> {
        let number = self.text(setting).parse().ok();
        number
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.wrong(setting, format!("it is a number from {least} to {most}")))
    }

    /// The value of `setting`, a size in bytes between two others.
    pub fn size(&self, setting: &str, least: u64, most: u64) -> Result<u64, SettingError> {
        let size = parse_size(self.text(setting)).map_err(|error| self.wrong(setting, error))?;
        if (least..=most).contains(&size) {
            Ok(size)
        } else {
            Err(self.wrong(setting, format!("it is from {least} to {most} bytes")))
        }
    }

    /// The value of `setting`, a size in whole sectors.
    pub fn sectors(&self, setting: &str, most: u64) -> Result<usize, SettingError> {
        let size = self.size(setting, SECTOR as u64, most)? as usize;
        if size.is_multiple_of(SECTOR) {
            Ok(size)
        } else {
            Err(self.wrong(setting, format!("it is a multiple of {SECTOR} bytes")))
        }
    }

    /// The value of `setting`, one of these.
    pub fn one_of<T: Copy>(&self, setting: &str, values: &[(&str, T)]) -> Result<T, SettingError> {
        let value = self.text(setting);
        let found = values.iter().find(|(name, _)| *name == value);
        found.map(|&(_, value)| value).ok_or_else(|| {
            let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
            self.wrong(setting, format!("it is one of: {}", names.join(", ")))
        })
    }

    /// The value of `setting`, `yes` or `no`.
    pub fn whether(&self, setting: &str) -> Result<bool, SettingError> {
        self.one_of(setting, &[("yes", true), ("no", false)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static SUBJECT: Description = Description {
        name: "thing",
        about: "a thing",
        passes_on: None,
        settings: &[
            Setting {
                name: "size",
                default: Some("8K"),
                about: "bytes",
                always_shown: true,
            },
            Setting {
                name: "early",
                default: Some("no"),
                about: "yes or no",
                always_shown: false,
            },
            Setting {
                name: "command",
                default: None,
                about: "what to run",
                always_shown: true,
            },
        ],
    };

    fn chosen(set: &[(&str, &str)]) -> Result<Chosen, SettingError> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        Chosen::new(&SUBJECT, &set.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_not_set_has_its_default() {
        let chosen = chosen(&[("command", "a b")]).unwrap();
        assert_eq!(chosen.sectors("size", 1 << 20).unwrap(), 8192);
        assert!(!chosen.whether("early").unwrap());
        assert_eq!(chosen.name(), "thing size=8K command='a b'");
    }

    #[test]
    fn what_is_not_known_is_passed_on_where_that_is_meant() {
        static SERVER: Description = Description {
            name: "server",
            about: "a server",
            settings: &[],
            passes_on: Some(PassedOn::in_any_case("a server variable")),
        };
        let set = [("sync_binlog".to_owned(), "1".to_owned())];
        let chosen = Chosen::new(&SERVER, &set).unwrap();
        assert_eq!(chosen.passed_on(), set);
        assert_eq!(chosen.name(), "server sync_binlog=1");
        let shouted = [("SYNC_binlog".to_owned(), "1".to_owned())];
        let chosen = Chosen::new(&SERVER, &shouted).unwrap();
        assert_eq!(chosen.name(), "server sync_binlog=1");
        let twice = [set[0].clone(), shouted[0].clone()];
        assert_eq!(
            Chosen::new(&SERVER, &twice).unwrap_err().to_string(),
            "server sync_binlog is set twice"
        );
    }

    #[test]
    fn a_name_has_what_is_not_the_default() {
        let chosen = chosen(&[("early", "yes"), ("command", "a")]).unwrap();
        assert_eq!(chosen.name(), "thing size=8K early=yes command=a");
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        let error = |set: &[(&str, &str)]| chosen(set).unwrap_err().to_string();
        assert_eq!(
            error(&[("sise", "8K")]),
            "thing has no setting 'sise'; it has: size, early, command"
        );
        assert_eq!(
            error(&[("size", "1"), ("size", "1")]),
            "thing size is set twice"
        );
        assert_eq!(error(&[]), "thing needs command: what to run");
    }

    #[test]
    fn wrong_values_say_which_are_right() {
        let chosen = chosen(&[("size", "700"), ("early", "maybe"), ("command", "x")]).unwrap();
        assert_eq!(
            chosen.whether("early").unwrap_err().to_string(),
            "thing early=maybe: it is one of: yes, no"
        );
        assert_eq!(
            chosen.sectors("size", 4096).unwrap_err().to_string(),
            "thing size=700: it is a multiple of 512 bytes"
        );
        assert_eq!(
            chosen.sectors("size", 600).unwrap_err().to_string(),
            "thing size=700: it is from 512 to 600 bytes"
        );
        assert_eq!(
            chosen.number("command", 1, 4).unwrap_err().to_string(),
            "thing command=x: it is a number from 1 to 4"
        );
        assert!(chosen.parse::<u32>("command").is_err());
    }
}
