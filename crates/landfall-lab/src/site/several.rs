//! Several sites for one run: the directory itself, and filesystems that are made in it.
//!
//! What cannot be made is a site that says why, and never the end of a run, unless there is no other.

use std::time::Instant;

use landfall_os::Filesystem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Site, SiteDescription, SiteKind, SiteSpec};
use crate::{Error, Preparation, Stop};

/// One site of a run, as it stands in the results document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteResult {
    /// Its name, as it is asked for: `dir`, `loop:ext3,data=journal`.
    pub key: String,
    /// The same for people, without what goes without saying: `ext3,data=journal`.
    pub label: String,
    /// What sort of site it is.
    pub description: SiteDescription,
    /// What it stands on; absent when it could not be made.
    pub filesystem: Option<Filesystem>,
    /// Why it could not be made.
    pub refused: Option<String>,
    /// Making it, which no trial is charged with.
    pub preparation: Preparation,
}

/// The sites of a run.
pub(crate) struct Sites<'a> {
    directory: &'a Site,
    places: Vec<Place>,
}

struct Place {
    spec: SiteSpec,
    /// The site if it was made; the directory is not ours to close.
    made: Option<Site>,
    result: SiteResult,
}

impl<'a> Sites<'a> {
    /// None yet; those that are made stand in this directory.
    pub fn of(directory: &'a Site) -> Sites<'a> {
        Sites {
            directory,
            places: Vec::new(),
        }
    }

    /// Makes the sites, each with this many bytes free; `progress` hears which. Refused where none can be had.
    pub fn make(
        &mut self,
        specs: &[&SiteSpec],
        needed: u64,
        stop: &Stop,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let mut first_refusal = None;
        for spec in specs {
            progress(&format!("making {}", spec.key()));
            let begin = Instant::now();
            let made = match spec {
                SiteSpec::Directory => Ok(None),
                spec => Site::make(spec, self.directory.directory(), needed, stop).map(Some),
            };
            if stop.is_requested() {
                return Err(Error::Stopped);
            }
            let seconds = begin.elapsed().as_secs_f64();
            let result = match &made {
                Ok(made) => {
                    let site = made.as_ref().unwrap_or(self.directory);
                    SiteResult {
                        key: spec.key(),
                        label: spec.label(),
                        description: site.description().clone(),
                        filesystem: Some(site.filesystem().clone()),
                        refused: None,
                        preparation: Preparation {
                            seconds,
                            bytes: image_bytes(site.description()),
                        },
                    }
                }
                Err(Error::Stopped) => return Err(Error::Stopped),
                Err(error) => {
                    let text = error.to_string();
                    first_refusal.get_or_insert(text.clone());
                    SiteResult {
                        key: spec.key(),
                        label: spec.label(),
                        description: SiteDescription::default(),
                        filesystem: None,
                        refused: Some(text),
                        preparation: Preparation::default(),
                    }
                }
            };
            self.places.push(Place {
                spec: (*spec).clone(),
                made: made.ok().flatten(),
                result,
            });
        }
        let mut places = self.places.iter();
        match first_refusal {
            Some(text) if places.all(|place| place.result.refused.is_some()) => {
                Err(Error::Refused(text))
            }
            _ => Ok(()),
        }
    }

    fn place(&self, spec: &SiteSpec) -> Option<&Place> {
        self.places.iter().find(|place| place.spec == *spec)
    }

    /// Why this site is not there, if it could not be made.
    pub fn refusal(&self, spec: &SiteSpec) -> Option<&str> {
        self.place(spec)?.result.refused.as_deref()
    }

    /// A site, unless it could not be made.
    pub fn get(&self, spec: &SiteSpec) -> Option<&Site> {
        let place = self.place(spec)?;
        let is_there = place.result.refused.is_none();
        is_there.then(|| place.made.as_ref().unwrap_or(self.directory))
    }

    /// Makes a site anew, empty; where that fails nothing more is measured on it, and never on the directory instead.
    pub fn renew(&mut self, spec: &SiteSpec, needed: u64, stop: &Stop) -> Result<(), Error> {
        let directory = self.directory.directory();
        let Some(place) = self.places.iter_mut().find(|place| place.spec == *spec) else {
            return Ok(());
        };
        let closed = place.made.take().map_or(Ok(()), Site::close);
        match closed.and_then(|()| Site::make(spec, directory, needed, stop)) {
            Ok(made) => {
                place.made = Some(made);
                Ok(())
            }
            Err(error) => {
                place.result.refused = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// Removes what was made; what is known of each site, and whether all could be removed.
    pub fn close(self) -> (Vec<SiteResult>, Result<(), Error>) {
        let mut closed = Ok(());
        let mut results = Vec::new();
        for place in self.places {
            results.push(place.result);
            if let Some(site) = place.made {
                closed = closed.and(site.close());
            }
        }
        (results, closed)
    }
}

/// Bytes written to make a site, where that is an image.
fn image_bytes(site: &SiteDescription) -> u64 {
    match site.kind {
        SiteKind::Loop => site.size_bytes.unwrap_or(0),
        SiteKind::Directory | SiteKind::Memory | SiteKind::Recorder => 0,
    }
}
