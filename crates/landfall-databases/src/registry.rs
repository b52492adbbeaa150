//! What is made by its name and settings, and the list of what can be: apart from what it lists, so that a thing knows
//! what a list wants of it, and not the list.

use crate::setting::{Chosen, Description, SettingError};

/// How one of the things of a list comes about.
pub struct Kind<T: ?Sized + 'static, L: 'static = ()> {
    /// What it is, and what can be set of it.
    pub description: Description,
    /// Makes it with what was set.
    pub make: fn(&Chosen) -> Result<Box<T>, SettingError>,
    /// What else the list says of it.
    pub listed: L,
}

/// A list of things that are made by name.
pub struct Registry<T: ?Sized + 'static, L: 'static = ()> {
    /// What each of them is: `database`.
    pub noun: &'static str,
    /// In the order in which they are listed.
    pub kinds: &'static [&'static Kind<T, L>],
    /// Whether some are left out of this build.
    pub is_partial: bool,
}

impl<T: ?Sized, L> Registry<T, L> {
    /// What each is, and what can be set of it.
    pub fn descriptions(&self) -> impl Iterator<Item = &'static Description> + use<T, L> {
        self.kinds.iter().map(|kind| &kind.description)
    }

    /// Makes the one of that name with these settings; those that are not named have their defaults.
    pub fn named(&self, name: &str, settings: &[(String, String)]) -> Result<Box<T>, SettingError> {
        let Some(kind) = self.kinds.iter().find(|kind| kind.description.name == name) else {
            let names: Vec<&str> = self.descriptions().map(|known| known.name).collect();
            let left_out = if self.is_partial {
                " (others are left out of this build: build with the default features)"
            } else {
                ""
            };
            return Err(SettingError(format!(
                "no {} is called '{name}'; there are: {}{left_out}",
                self.noun,
                names.join(", ")
            )));
        };
        (kind.make)(&Chosen::new(&kind.description, settings)?)
    }

    /// Settings that are never looked at: those that take what makes no sense of anything. For tests, of which one is
    /// enough for all that is listed; `required` is a value for what must be set.
    pub fn unread_settings(&self, required: &str) -> Vec<String> {
        let mut unread = Vec::new();
        for description in self.descriptions() {
            for setting in description.settings {
                let others = description
                    .settings
                    .iter()
                    .filter(|other| other.default.is_none() && other.name != setting.name);
                let mut set: Vec<(String, String)> = others
                    .map(|other| (other.name.to_owned(), required.to_owned()))
                    .collect();
                set.push((setting.name.to_owned(), "\u{1}'".to_owned()));
                let named = format!("{} {}=", description.name, setting.name);
                match self.named(description.name, &set) {
                    Err(error) if error.0.starts_with(&named) => {}
                    _ => unread.push(named),
                }
            }
        }
        unread
    }
}
