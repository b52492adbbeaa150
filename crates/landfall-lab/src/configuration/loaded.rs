//! Databases that were created and filled once, and are copied for each start.
//!
//! So every trial of a comparison begins with the same bytes, wherever it runs and whatever the trials
//! before it did: what updates in place would otherwise find another layout each time, and what writes
//! logs would owe what its predecessors left. Copying is also sooner done than filling, on a filesystem
//! whose syncs are slow much sooner; and of all databases of a plan a site holds one at a time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{Configuration, Load};
use crate::{Error, Preparation, Site, Stop};
use landfall_databases::{DatabaseError, Presence, SettingError, Templates, workload};
use landfall_os::{copy_directory, directory_bytes};

/// Clients that fill a database at the same time.
const CLIENTS: u32 = 4;

/// A database that was loaded, and stopped in order.
struct Loaded {
    directory: PathBuf,
    load: Load,
}

/// The databases of a run, in a directory of their own.
pub(super) struct Loads<'a> {
    site: &'a Site,
    directory: PathBuf,
    templates: Templates,
    stop: &'a Stop,
    loaded: Vec<(Configuration, Result<Loaded, DatabaseError>)>,
    /// Those that were loaded where they were measured.
    in_place: Vec<(Configuration, Load)>,
}

impl<'a> Loads<'a> {
    /// None yet; they will be kept on `site`, with which they go.
    pub fn new(site: &'a Site, stop: &'a Stop) -> Result<Loads<'a>, Error> {
        let directory = site.open_directory("loaded")?;
        Ok(Loads {
            site,
            templates: Templates::new(&directory),
            directory,
            stop,
            loaded: Vec::new(),
            in_place: Vec::new(),
        })
    }

    /// Loads the database that `configuration` begins with. Why it cannot be had is told by `of`; only a
    /// wish to stop is an error here.
    pub fn load(&mut self, configuration: &Configuration) -> Result<(), Error> {
        let directory = self.directory.join(format!("{}", self.loaded.len()));
        let loaded = fs::create_dir(&directory)
            .map_err(failed("make a directory for a database"))
            .and_then(|()| self.fill(configuration, &directory));
        let loaded = match loaded {
            Ok(load) => Ok(Loaded { directory, load }),
            Err(error) => {
                // What was made before the error would only take space from the others.
                let _ = fs::remove_dir_all(&directory);
                Err(error)
            }
        };
        if self.stop.is_requested() || matches!(loaded, Err(DatabaseError::Stopped)) {
            return Err(Error::Stopped);
        }
        // No trial is to pay for what loading left to be written.
        self.site
            .drain()
            .map_err(Error::io("cannot write out a loaded database"))?;
        self.loaded.push((configuration.clone(), loaded));
        Ok(())
    }

    /// Loads the database that `configuration` begins with where it will be measured, in the empty
    /// `directory`.
    pub fn load_in_place(
        &mut self,
        configuration: &Configuration,
        directory: &Path,
    ) -> Result<Preparation, DatabaseError> {
        let load = self.fill(configuration, directory)?;
        let preparation = Preparation {
            seconds: load.seconds,
            bytes: load.bytes,
        };
        self.in_place
            .retain(|(other, _)| !other.loads_as(configuration));
        self.in_place.push((configuration.clone(), load));
        Ok(preparation)
    }

    /// Loads a database in the empty `directory`, and stops it.
    fn fill(&self, configuration: &Configuration, directory: &Path) -> Result<Load, DatabaseError> {
        let begin = Instant::now();
        let refused = |error: SettingError| DatabaseError::Setting(error.to_string());
        let name = &configuration.database;
        let database =
            landfall_databases::named(name, &configuration.loaded_with).map_err(refused)?;
        let settings = &configuration.workload_settings;
        let workload = workload::named(&configuration.workload, settings).map_err(refused)?;
        workload
            .suits(database.interface())
            .map_err(DatabaseError::Setting)?;
        database.create(directory, &self.templates, self.stop)?;
        let running = database.start(directory, self.stop)?;
        let size = || directory_bytes(directory).map_err(failed("look at a loaded database"));
        let empty_bytes = size()?;
        workload.load(running.as_ref(), CLIENTS, self.stop)?;
        running.drain(self.stop)?;
        // While it runs, as it is looked at later: a server has files that it removes when it ends.
        let bytes = size()?;
        running.stop()?;
        Ok(Load {
            database: name.clone(),
            version: version(name),
            settings: configuration.loaded_with.iter().cloned().collect(),
            workload: workload.name(),
            seconds: begin.elapsed().as_secs_f64(),
            empty_bytes,
            bytes,
        })
    }

    fn of(&self, configuration: &Configuration) -> Result<&Loaded, DatabaseError> {
        let found = self
            .loaded
            .iter()
            .find(|(load, _)| load.loads_as(configuration));
        match found {
            Some((_, loaded)) => loaded.as_ref().map_err(DatabaseError::clone),
            None => Err(DatabaseError::Failed("it was not loaded".into())),
        }
    }

    /// What loading the database of `configuration` took, or why there is none.
    pub fn result(&self, configuration: &Configuration) -> Result<&Load, DatabaseError> {
        let mut in_place = self.in_place.iter();
        match in_place.find(|(load, _)| load.loads_as(configuration)) {
            Some((_, load)) => Ok(load),
            None => self.of(configuration).map(|loaded| &loaded.load),
        }
    }

    /// All that were loaded.
    pub fn results(&self) -> Vec<Load> {
        let loaded = self.loaded.iter().filter_map(|(_, one)| one.as_ref().ok());
        let in_place = self.in_place.iter().map(|(_, load)| load);
        loaded
            .map(|one| &one.load)
            .chain(in_place)
            .cloned()
            .collect()
    }

    /// Copies the database that `configuration` begins with into the empty directory `to`.
    pub fn copy(
        &self,
        configuration: &Configuration,
        to: &Path,
    ) -> Result<Preparation, DatabaseError> {
        let begin = Instant::now();
        let from = &self.of(configuration)?.directory;
        let bytes =
            copy_directory(from, to, self.stop).map_err(failed("copy a loaded database"))?;
        Ok(Preparation {
            seconds: begin.elapsed().as_secs_f64(),
            bytes,
        })
    }
}

impl Drop for Loads<'_> {
    fn drop(&mut self) {
        // Another run on this site begins anew. What stays goes with the site.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The version that the database says it is of.
fn version(name: &str) -> Option<String> {
    let mut all = landfall_databases::list();
    let (_, _, presence) = all.find(|(description, ..)| description.name == name)?;
    match presence {
        Presence::Here { version, .. } => Some(version),
        Presence::Absent { .. } => None,
    }
}

/// Why something could not be done with files.
pub(super) fn failed(doing: &str) -> impl Fn(std::io::Error) -> DatabaseError {
    let doing = doing.to_owned();
    move |error| match error.kind() {
        std::io::ErrorKind::Interrupted => DatabaseError::Stopped,
        std::io::ErrorKind::StorageFull => DatabaseError::Refused(format!(
            "cannot {doing}: the filesystem is full; measure less, or make it larger with size="
        )),
        _ => DatabaseError::Failed(format!("cannot {doing}: {error}")),
    }
}
