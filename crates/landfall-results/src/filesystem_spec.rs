//! How a filesystem is made and mounted, as one text.
//!
//! `ext4`, `ext4,data=journal,barrier=0`, `ext4,size=256M,-O fast_commit,-b 1024`: the kind, then parts
//! after commas. `size=` and `rotational` are ours; a part that begins with `-` holds options of `mkfs`; everything else is
//! a mount option. A comma inside a part is written `\,`, a backslash `\\`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use landfall_os::humanize::{bytes_text, parse_size, size_name};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;
/// Sizes of devices, in bytes.
const SIZES: std::ops::RangeInclusive<u64> = 16 * MIB..=64 << 30;
/// A device for an experiment is no smaller: on one of less than 1 GiB `mkfs.ext4` makes a journal that is
/// full after some hundred commits, and making room in it would be a part of what is measured.
const USUAL: u64 = 1 << 30;
/// A device is a whole number of these.
const BLOCK: u64 = 4096;

/// A filesystem that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The one without a journal.
    Ext2,
    /// ext2 with a journal.
    Ext3,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Ext2, Kind::Ext3, Kind::Ext4, Kind::Xfs, Kind::Btrfs];

    /// As `mkfs` and `mount` call it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ext2 => "ext2",
            Kind::Ext3 => "ext3",
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
        }
    }

    /// Bytes of the smallest device that is sensible: what a proof needs, whose every crash state is a
    /// copy. `mkfs.xfs` takes no less than 300 MiB, `mkfs.btrfs` no less than 109.
    pub fn small(self) -> u64 {
        match self {
            Kind::Ext2 | Kind::Ext3 | Kind::Ext4 => 64 * MIB,
            Kind::Xfs => 304 * MIB,
            Kind::Btrfs => 128 * MIB,
        }
    }

    /// Bytes of a device whose filesystem has at least `needed` bytes free: more, for its own structures
    /// and what it keeps in reserve. On btrfs an overwritten extent stays until the last of it is
    /// overwritten, so that everything may be there twice.
    fn with_room_for(self, needed: u64) -> u64 {
        let (quarters, more) = match self {
            Kind::Ext2 | Kind::Ext3 | Kind::Ext4 => (5, 96 * MIB),
            Kind::Xfs => (5, 128 * MIB),
            Kind::Btrfs => (9, 512 * MIB),
        };
        (needed / 4).saturating_mul(quarters).saturating_add(more)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        let known = Kind::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| {
            format!(
                "'{text}' is no filesystem that can be made; name ext2, ext3, ext4, xfs or btrfs"
            )
        })
    }
}

/// How a filesystem is made and mounted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct FilesystemSpec {
    /// Which filesystem.
    pub kind: Kind,
    /// Options of mount(8), comma-separated.
    pub mount_options: String,
    /// Options of `mkfs`, word by word.
    pub mkfs_options: Vec<String>,
    /// Bytes of the device, where the spec tells.
    pub size: Option<u64>,
    /// Whether the device says that it rotates, as it does anyhow with the times of a disk that does.
    pub is_rotational: bool,
}

impl FilesystemSpec {
    /// A filesystem as `mkfs` and `mount` make it unless told otherwise.
    pub fn plain(kind: Kind) -> FilesystemSpec {
        FilesystemSpec {
            kind,
            mount_options: String::new(),
            mkfs_options: Vec::new(),
            size: None,
            is_rotational: false,
        }
    }

    /// The same with options of mount(8), comma-separated.
    pub fn mounted(self, options: &str) -> FilesystemSpec {
        FilesystemSpec {
            mount_options: options.to_owned(),
            ..self
        }
    }

    /// Bytes of the device where something small will do, as for a proof.
    pub fn small_size(&self) -> u64 {
        self.size.unwrap_or_else(|| self.kind.small())
    }

    /// The same, with `needed` bytes free.
    pub fn small_size_for(&self, needed: u64) -> u64 {
        let size = match needed {
            0 => self.kind.small(),
            _ => self.kind.with_room_for(needed).next_multiple_of(MIB),
        };
        self.size.unwrap_or(size.max(self.kind.small()))
    }

    /// Bytes of a device with `needed` bytes free, 1 GiB at least, unless the spec tells its size;
    /// refused with a reason beyond 64 GiB.
    pub fn size_for(&self, needed: u64) -> Result<u64, String> {
        if let Some(size) = self.size {
            return Ok(size);
        }
        let size = self.kind.with_room_for(needed).max(USUAL);
        if size > *SIZES.end() {
            return Err(format!(
                "this plan needs {} and a filesystem is made with at most {}: measure less, or measure in a directory",
                bytes_text(needed),
                bytes_text(*SIZES.end())
            ));
        }
        Ok(size.next_multiple_of(MIB))
    }
}

impl fmt::Display for FilesystemSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(size) = self.size {
            write!(f, ",size={}", size_name(size))?;
        }
        if self.is_rotational {
            f.write_str(",rotational")?;
        }
        for option in self.mount_options.split(',').filter(|one| !one.is_empty()) {
            write!(f, ",{}", escaped(option))?;
        }
        for word in &self.mkfs_options {
            let separator = if word.starts_with('-') { ',' } else { ' ' };
            write!(f, "{separator}{}", escaped(word))?;
        }
        Ok(())
    }
}

impl FromStr for FilesystemSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<FilesystemSpec, String> {
        let mut parts = parts(text).into_iter();
        let kind = parts.next().unwrap_or_default();
        let mut spec = FilesystemSpec::plain(kind.parse()?);
        let mut mount_options = Vec::new();
        for part in parts {
            if part.is_empty() {
                return Err(format!(
                    "'{text}' has nothing between two commas, or behind the last one"
                ));
            }
            if let Some(size) = part.strip_prefix("size=") {
                spec.size = Some(device_size(size)?);
            } else if part == "rotational" {
                spec.is_rotational = true;
            } else if part.starts_with('-') {
                let words = part.split_whitespace().map(str::to_owned);
                spec.mkfs_options.extend(words);
            } else if part.contains([',', ' ']) {
                return Err(format!(
                    "'{part}' is no mount option; options of mkfs begin with a '-'"
                ));
            } else {
                mount_options.push(part);
            }
        }
        spec.mount_options = mount_options.join(",");
        Ok(spec)
    }
}

impl From<FilesystemSpec> for String {
    fn from(spec: FilesystemSpec) -> String {
        spec.to_string()
    }
}

impl TryFrom<String> for FilesystemSpec {
    type Error = String;

    fn try_from(text: String) -> Result<FilesystemSpec, String> {
        text.parse()
    }
}

impl JsonSchema for FilesystemSpec {
    fn schema_name() -> Cow<'static, str> {
        "FilesystemSpec".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "How a filesystem is made and mounted: `ext4,data=journal,size=256M,-O fast_commit`.",
        })
    }
}

/// The parts between commas that no backslash stands before.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, parts.last_mut()) {
            (',', _) => parts.push(String::new()),
            ('\\', Some(part)) => {
                part.push(
                    characters
                        .next_if(|next| [',', '\\'].contains(next))
                        .unwrap_or('\\'),
                );
            }
            (other, Some(part)) => part.push(other),
            (_, None) => {}
        }
    }
    parts
}

fn escaped(part: &str) -> String {
    part.replace('\\', r"\\").replace(',', r"\,")
}

fn device_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size if !SIZES.contains(&size) => Err(format!(
            "size={text} is not from {} to {}",
            bytes_text(*SIZES.start()),
            bytes_text(*SIZES.end())
        )),
        size if !size.is_multiple_of(BLOCK) => {
            Err(format!("size={text} is not a multiple of {BLOCK} bytes"))
        }
        size => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    #[test]
    fn a_spec_is_a_kind_and_options_of_both_programs() {
        let spec: FilesystemSpec =
            r"ext4,size=256M,rotational,data=journal,-O fast_commit,noatime,-E stride=4\,test_fs"
                .parse()
                .unwrap();
        assert_eq!(
            spec,
            FilesystemSpec {
                kind: Kind::Ext4,
                mount_options: "data=journal,noatime".into(),
                mkfs_options: ["-O", "fast_commit", "-E", "stride=4,test_fs"]
                    .map(str::to_owned)
                    .to_vec(),
                size: Some(256 << 20),
                is_rotational: true,
            }
        );
        assert_eq!("xfs".parse(), Ok(FilesystemSpec::plain(Kind::Xfs)));
    }

    #[test]
    fn what_is_no_spec_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "no filesystem"),
            ("zfs", "ext2, ext3, ext4, xfs or btrfs"),
            ("ext4,", "nothing between"),
            ("ext4,size=1M", "16 MiB"),
            ("ext4,size=100000000", "multiple"),
            ("ext4,size=much", "no size"),
            ("ext4,O fast_commit", "begin with a '-'"),
        ] {
            let refused = text.parse::<FilesystemSpec>().unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }

    #[test]
    fn a_device_is_as_large_as_what_is_needed_and_the_filesystem_itself() {
        for kind in Kind::ALL {
            let spec = FilesystemSpec::plain(kind);
            assert_eq!(spec.size_for(0).unwrap() % BLOCK, 0);
            assert!(spec.size_for(1 << 30).unwrap() > 5 << 28);
            assert!(spec.size_for(0).unwrap() >= kind.small());
            assert!(spec.size_for(u64::MAX).is_err());
        }
        let told: FilesystemSpec = "xfs,size=1G".parse().unwrap();
        assert_eq!(told.size_for(u64::MAX).unwrap(), 1 << 30);
        assert_eq!(told.small_size(), 1 << 30);
    }

    proptest! {
        #[test]
        fn a_spec_is_read_back_as_it_was_written(
            kind in prop::sample::select(Kind::ALL.to_vec()),
            options in prop::collection::vec(r"[a-z=0-9\\]{1,8}", 0..4),
            words in prop::collection::vec(r"-[a-zA-Z=0-9\\,]{1,8}( [a-z=0-9\\,]{1,8})?", 0..4),
            blocks in prop::option::of(4096u64..1 << 24),
            is_rotational: bool,
        ) {
            let spec = FilesystemSpec {
                kind,
                mount_options: options.join(","),
                mkfs_options: words.iter().flat_map(|part| part.split(' ')).map(str::to_owned).collect(),
                size: blocks.map(|blocks| blocks * BLOCK),
                is_rotational,
            };
            // An option of mount that looks like ours is ours.
            if !options.iter().any(|option| option.starts_with("size=")) {
                prop_assert_eq!(spec.to_string().parse(), Ok(spec));
            }
        }
    }
}
