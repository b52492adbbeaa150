//! Which site is wanted, and which one it was.

use std::fmt;
use std::str::FromStr;

use landfall_recorder::Profile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scratch_fs::FilesystemSpec;
use landfall_os::humanize::bytes_text;

/// What an experiment is to run on.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SiteSpec {
    /// The directory itself.
    #[default]
    Directory,
    /// A filesystem made on an image file in the directory.
    Loop(FilesystemSpec),
    /// A filesystem made in main memory.
    Memory(FilesystemSpec),
    /// A filesystem made on a recorder, with a device's times if a profile is given.
    Recorder(FilesystemSpec, Option<Profile>),
}

impl SiteSpec {
    /// What tells it from other sites of a run: `recorder:ext4 with hdd-7200`.
    pub fn key(&self) -> String {
        match self {
            SiteSpec::Recorder(_, Some(profile)) => format!("{self} with {profile}"),
            _ => self.to_string(),
        }
    }

    /// The same for people: that a filesystem was made on an image goes without saying.
    pub fn label(&self) -> String {
        match self {
            SiteSpec::Loop(filesystem) => filesystem.to_string(),
            _ => self.key(),
        }
    }
}

impl FromStr for SiteSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<SiteSpec, String> {
        match text.split_once(':') {
            Some(("loop", filesystem_spec)) => Ok(SiteSpec::Loop(filesystem_spec.parse()?)),
            Some(("memory", filesystem_spec)) => Ok(SiteSpec::Memory(filesystem_spec.parse()?)),
            Some(("recorder", filesystem_spec)) => {
                Ok(SiteSpec::Recorder(filesystem_spec.parse()?, None))
            }
            None if text == "dir" => Ok(SiteSpec::Directory),
            _ => Err(format!(
                "'{text}' is no site; write dir, loop:SPEC, memory:SPEC or recorder:SPEC, as in recorder:ext4,data=journal"
            )),
        }
    }
}

impl fmt::Display for SiteSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SiteSpec::Directory => f.pad("dir"),
            SiteSpec::Loop(filesystem_spec) => write!(f, "loop:{filesystem_spec}"),
            SiteSpec::Memory(filesystem_spec) => write!(f, "memory:{filesystem_spec}"),
            SiteSpec::Recorder(filesystem_spec, _) => write!(f, "recorder:{filesystem_spec}"),
        }
    }
}

/// What sort of site it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SiteKind {
    /// A directory that was there.
    #[default]
    Directory,
    /// A filesystem made on an image file in the directory.
    Loop,
    /// A filesystem made on a device in main memory.
    Memory,
    /// A filesystem made on a recorder: a device in user space that counts exactly.
    Recorder,
}

/// What an experiment ran on. Two are equal that were made in the same way, whatever is said of what is below.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SiteDescription {
    /// What sort of site it is.
    pub kind: SiteKind,
    /// How the filesystem was made, where one was made: `ext4,data=journal`.
    pub filesystem_spec: Option<FilesystemSpec>,
    /// Size of the device that it was made on, in bytes.
    pub size_bytes: Option<u64>,
    /// Which device's times the recorder took, if any.
    pub latency: Option<String>,
    /// What the directory stands on in which it was made, in short: `ext4 on vda (virtio)`. Of a device in memory, or that counts alone,
    /// nothing is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
}

impl PartialEq for SiteDescription {
    fn eq(&self, other: &SiteDescription) -> bool {
        let made = |one: &SiteDescription| {
            let SiteDescription {
                kind,
                filesystem_spec,
                size_bytes,
                latency,
                // What a disk is called changes, and older documents do not say it.
                below: _,
            } = one.clone();
            (kind, filesystem_spec, size_bytes, latency)
        };
        made(self) == made(other)
    }
}

impl Eq for SiteDescription {}

impl SiteDescription {
    /// What a filesystem was made on, as it is asked for and in words.
    fn backing(&self) -> Option<(&'static str, &'static str)> {
        Some(match self.kind {
            SiteKind::Directory => return None,
            SiteKind::Loop => ("loop", "a loop device"),
            SiteKind::Memory => ("memory", "a device in main memory"),
            SiteKind::Recorder => ("recorder", "a recorder"),
        })
    }

    fn filesystem(&self) -> String {
        let spec = self.filesystem_spec.as_ref().map(FilesystemSpec::to_string);
        spec.unwrap_or_default()
    }

    /// As it is asked for, `loop:ext4`; `None` for a directory.
    pub fn spec(&self) -> Option<String> {
        let (backing, _) = self.backing()?;
        Some(format!("{backing}:{}", self.filesystem()))
    }

    /// In a few words: `ext4 on a loop device of 1.0 GiB`; `None` for a directory, which says enough by its name.
    pub fn text(&self) -> Option<String> {
        let (_, backing) = self.backing()?;
        let mut text = format!("{} on {backing}", self.filesystem());
        if let Some(bytes) = self.size_bytes {
            text += &format!(" of {}", bytes_text(bytes));
        }
        if let Some(latency) = &self.latency {
            text += &format!(" with the times of {latency}");
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_read_back_as_they_are_written() {
        for text in [
            "dir",
            "loop:xfs",
            "memory:ext3,data=writeback",
            "recorder:ext4,size=256M,data=journal,-b 1024",
        ] {
            let spec: SiteSpec = text.parse().unwrap();
            assert_eq!(
                (spec.to_string(), spec.key()),
                (text.to_owned(), text.to_owned())
            );
        }
        for wrong in [
            "",
            "ext4",
            "disk:ext4",
            "recorder",
            "recorder:",
            "memory:",
            "loop:zfs",
        ] {
            let refused = wrong.parse::<SiteSpec>().unwrap_err();
            assert!(refused.contains("is no "), "{wrong}: {refused}");
        }
    }

    #[test]
    fn a_site_is_described_in_a_few_words() {
        assert_eq!(SiteDescription::default().text(), None);
        let below = |below: &str| SiteDescription {
            below: Some(below.into()),
            ..SiteDescription::default()
        };
        assert_eq!(below("ext4 on sda"), below("ext4 on sdb"));
        assert_eq!(below("ext4 on sda"), SiteDescription::default());
        let made = SiteDescription {
            kind: SiteKind::Recorder,
            filesystem_spec: Some("ext4,barrier=0".parse().unwrap()),
            size_bytes: Some(256 << 20),
            latency: Some("hdd-7200".into()),
            below: None,
        };
        assert_eq!(
            made.text().as_deref(),
            Some("ext4,barrier=0 on a recorder of 256 MiB with the times of hdd-7200")
        );
    }
}
