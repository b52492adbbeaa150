//! An ordinary user for servers that refuse to be root's.
//!
//! What such a server shall use is handed over to it, and private directories of ours above that are
//! opened so far that it can pass. What is not ours stays as it is: if it is closed, that is said.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use landfall_os::PrivateDirectory;

use super::DatabaseError;

/// Who nobody is, where no list of users says so.
const NOBODY: u32 = 65534;

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    name: String,
    id: u32,
    group: u32,
}

impl User {
    /// Who a server is run as: the first of these users that there is, or nobody; `None` where we are
    /// not root, so that it can only be run as who we are.
    pub fn instead_of_root(names: &[&str]) -> Option<User> {
        rustix::process::geteuid().is_root().then(|| {
            let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
            let mut names = names.iter().chain(&["nobody"]);
            names
                .find_map(|name| find(&users, name))
                .unwrap_or_else(|| User {
                    name: "nobody".into(),
                    id: NOBODY,
                    group: NOBODY,
                })
        })
    }

    /// Has a command run as this user.
    pub fn run(&self, command: &mut Command) {
        // Where everybody may be: some programs look where they are.
        command.uid(self.id).gid(self.group).current_dir("/");
    }

    /// Makes `directory` and everything in it this user's.
    pub fn hand_over(&self, directory: &Path) -> Result<(), DatabaseError> {
        self.own(directory).map_err(|error| {
            let (directory, name) = (directory.display(), &self.name);
            DatabaseError::Refused(format!("cannot give {directory} to {name}: {error}"))
        })
    }

    fn own(&self, path: &Path) -> io::Result<()> {
        lchown(path, Some(self.id), Some(self.group))?;
        if path.symlink_metadata()?.is_dir() {
            for entry in fs::read_dir(path)? {
                self.own(&entry?.path())?;
            }
        }
        Ok(())
    }

    /// Lets this user come to `directory`, which is given in full.
    pub fn let_in(&self, directory: &Path) -> Result<(), DatabaseError> {
        for above in directory.ancestors().skip(1) {
            let failed = |error| {
                let above = above.display();
                DatabaseError::Refused(format!("cannot open the way through {above}: {error}"))
            };
            let metadata = above.metadata().map_err(failed)?;
            if self.may_pass(&metadata) {
                continue;
            }
            if !PrivateDirectory::is_named_like_one(above) {
                let (above, name) = (above.display(), &self.name);
                return Err(DatabaseError::Refused(format!(
                    "this server does not run as root, and {name}, as whom it would, may not enter {above}: name a directory that everybody may enter"
                )));
            }
            let open = Permissions::from_mode(metadata.mode() & 0o7777 | 0o011);
            fs::set_permissions(above, open).map_err(failed)?;
        }
        Ok(())
    }

    /// Whether this user may pass a directory; lists of further rights are not looked at.
    fn may_pass(&self, directory: &Metadata) -> bool {
        let bit = if directory.uid() == self.id {
            0o100
        } else if directory.gid() == self.group {
            0o010
        } else {
            0o001
        };
        directory.mode() & bit != 0
    }
}

/// The user of that name in a list as in passwd(5).
fn find(users: &str, name: &str) -> Option<User> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        let (id, group) = (fields.nth(1)?, fields.next()?);
        Some(User {
            name: name.to_owned(),
            id: id.parse().ok()?,
            group: group.parse().ok()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn a_user_is_found_by_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104:,,,:/var:/bin/bash\n";
        let found = find(users, "postgres").unwrap();
        assert_eq!((found.id, found.group), (101, 104));
        assert_eq!(find(users, "post"), None);
        assert_eq!(find("postgres:x", "postgres"), None);
    }

    #[test]
    fn only_directories_of_ours_are_opened() {
        let stranger = User {
            name: "stranger".into(),
            id: 4_000_000_000,
            group: 4_000_000_000,
        };
        let outside = tempfile::tempdir().unwrap();
        fs::set_permissions(outside.path(), Permissions::from_mode(0o700)).unwrap();
        let private = PrivateDirectory::create_in(outside.path()).unwrap();
        let data = private.path().join("data");
        fs::create_dir(&data).unwrap();
        let refused = stranger.let_in(&data).err().unwrap().to_string();
        let closed = outside.path().display().to_string();
        assert!(
            refused.contains(&format!("may not enter {closed}:")),
            "{refused}"
        );
        fs::set_permissions(outside.path(), Permissions::from_mode(0o711)).unwrap();
        stranger.let_in(&data).unwrap();
        assert_eq!((mode(private.path()), mode(outside.path())), (0o711, 0o711));
    }
}
