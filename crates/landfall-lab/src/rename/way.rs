//! How a file is replaced.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use landfall_results::Axes;

/// How a file is replaced, and what is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The file is truncated, written again, and synced.
    Truncate,
    /// A new file is renamed over it; nothing is synced.
    Rename,
    /// A new file is renamed over it, and the directory is synced.
    RenameDirectory,
    /// A new file is synced and renamed over it.
    FileRename,
    /// A new file is synced and renamed over it, and the directory is synced.
    FileRenameDirectory,
}

impl Way {
    /// All of them, the most careful last.
    pub const ALL: [Way; 5] = [
        Way::Truncate,
        Way::Rename,
        Way::RenameDirectory,
        Way::FileRename,
        Way::FileRenameDirectory,
    ];

    /// Its name on the command line and in documents.
    pub fn name(self) -> &'static str {
        match self {
            Way::Truncate => "truncate+fdatasync",
            Way::Rename => "rename",
            Way::RenameDirectory => "rename+directory",
            Way::FileRename => "fdatasync+rename",
            Way::FileRenameDirectory => "fdatasync+rename+directory",
        }
    }

    fn is_rename(self) -> bool {
        self != Way::Truncate
    }

    fn syncs_file(self) -> bool {
        !matches!(self, Way::Rename | Way::RenameDirectory)
    }

    fn syncs_directory(self) -> bool {
        matches!(self, Way::RenameDirectory | Way::FileRenameDirectory)
    }

    /// Whether what was acknowledged is meant to survive a power cut.
    pub fn is_durable(self) -> bool {
        matches!(self, Way::Truncate | Way::FileRenameDirectory)
    }

    /// The settings of the subject `replace` that are the same in a proof.
    pub(super) fn settings(self) -> Vec<(String, String)> {
        let idiom = if self.is_rename() {
            "rename"
        } else {
            "overwrite"
        };
        let file = if self.syncs_file() {
            "fdatasync"
        } else {
            "none"
        };
        let directory = if self.syncs_directory() { "yes" } else { "no" };
        [
            ("idiom", idiom),
            ("file-sync", file),
            ("directory-sync", directory),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// What it is called in results: the case, and what it is made of.
    pub(super) fn axes(self, site: String, size: u64) -> Axes {
        Axes {
            site: Some(site),
            case: Some(self.name().to_owned()),
            varied: self.settings(),
            size: Some(size),
            ..Axes::default()
        }
    }
}

impl std::str::FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Way, String> {
        let known = Way::ALL.into_iter().find(|way| way.name() == text);
        known.ok_or_else(|| {
            let names = Way::ALL.map(Way::name).join(", ");
            format!("there is no way '{text}'; there are: {names}")
        })
    }
}

/// A file that is replaced, in an open directory.
pub(super) struct Replaced<'a> {
    pub path: &'a Path,
    /// The name of the new file before it is renamed.
    pub new: &'a Path,
    pub directory: &'a File,
}

impl Replaced<'_> {
    /// Gives it this content.
    pub fn replace(&self, way: Way, content: &[u8]) -> io::Result<()> {
        let path = if way.is_rename() { self.new } else { self.path };
        let mut file = File::create(path)?;
        file.write_all(content)?;
        if way.syncs_file() {
            file.sync_data()?;
        }
        drop(file);
        if way.is_rename() {
            fs::rename(self.new, self.path)?;
        }
        if way.syncs_directory() {
            self.directory.sync_all()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_leaves_the_new_content_and_nothing_else() {
        for way in Way::ALL {
            let directory = tempfile::tempdir().unwrap();
            let (path, new) = (directory.path().join("file"), directory.path().join("new"));
            let replaced = Replaced {
                path: &path,
                new: &new,
                directory: &File::open(directory.path()).unwrap(),
            };
            for content in [&b"the old one, which is longer"[..], b"the new one"] {
                replaced.replace(way, content).unwrap();
                assert_eq!(fs::read(&path).unwrap(), content);
            }
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
            assert_eq!(way.name().parse(), Ok(way));
        }
    }
}
