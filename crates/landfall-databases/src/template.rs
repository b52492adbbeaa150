//! Empty data directories, made once and copied.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use landfall_os::PrivateDirectory;

use super::DatabaseError;
use landfall_os::Stop;
use landfall_os::{copy_directory, sync_filesystem};

/// Empty data directories, each made when it is first asked for; removed when dropped. To make one takes
/// a server seconds, to copy it a fraction of one.
pub struct Templates {
    directory: PathBuf,
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    private: Option<PrivateDirectory>,
    by_key: HashMap<String, PathBuf>,
}

impl Templates {
    /// Templates that will be kept in a private directory in `directory`.
    pub fn new(directory: &Path) -> Templates {
        Templates {
            directory: directory.to_owned(),
            made: Mutex::default(),
        }
    }

    /// Copies the template of that key, which `make` makes in an empty directory if there is none yet,
    /// to `target`, an empty directory that is there. Others wait meanwhile.
    pub(super) fn copy(
        &self,
        key: &str,
        target: &Path,
        stop: &Stop,
        make: impl FnOnce(&Path) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let failed = |error: io::Error| {
            let directory = self.directory.display();
            DatabaseError::Refused(format!("cannot keep a template in {directory}: {error}"))
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let template = match made.by_key.get(key) {
            Some(template) => template.clone(),
            None => {
                if made.private.is_none() {
                    let private = PrivateDirectory::create_in(&self.directory).map_err(failed)?;
                    made.private = Some(private);
                }
                let number = made.by_key.len();
                let private = made.private.as_ref().map(PrivateDirectory::path);
                let template = private.unwrap_or(&self.directory).join(number.to_string());
                fs::create_dir(&template).map_err(failed)?;
                make(&template).inspect_err(|_| {
                    let _ = fs::remove_dir_all(&template);
                })?;
                made.by_key.insert(key.to_owned(), template.clone());
                template
            }
        };
        let copied = copy_directory(&template, target, stop);
        // It stands for one that was installed long before.
        let durable = copied.and_then(|_| sync_filesystem(&File::open(target)?));
        durable.map_err(|error| {
            let target = target.display();
            DatabaseError::Refused(match error.kind() {
                io::ErrorKind::Interrupted => return DatabaseError::Stopped,
                io::ErrorKind::StorageFull => format!(
                    "an empty database does not fit into {target}: free some space, or make the filesystem larger with size="
                ),
                _ => format!("cannot copy an empty database to {target}: {error}"),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_made_once_and_copied_each_time() {
        let outside = tempfile::tempdir().unwrap();
        let templates = Templates::new(outside.path());
        let mut times = 0;
        for name in ["a", "b"] {
            let target = outside.path().join(name);
            fs::create_dir(&target).unwrap();
            templates
                .copy("key", &target, &Stop::default(), |template| {
                    times += 1;
                    fs::create_dir(template.join("inner")).unwrap();
                    fs::write(template.join("inner/file"), "text").unwrap();
                    Ok(())
                })
                .unwrap();
            let copied = fs::read_to_string(target.join("inner/file")).unwrap();
            assert_eq!(copied, "text");
        }
        assert_eq!(times, 1);
        drop(templates);
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 2);
    }

    #[test]
    fn one_that_could_not_be_made_is_made_again() {
        let outside = tempfile::tempdir().unwrap();
        let templates = Templates::new(outside.path());
        let target = outside.path().join("a");
        fs::create_dir(&target).unwrap();
        let failed = DatabaseError::Failed("no".into());
        let refused = templates.copy("key", &target, &Stop::default(), |_| Err(failed.clone()));
        assert_eq!(refused, Err(failed));
        templates
            .copy("key", &target, &Stop::default(), |_| Ok(()))
            .unwrap();
    }
}
