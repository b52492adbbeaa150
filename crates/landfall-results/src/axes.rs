//! What a trial is made with: values on typed axes, and the one name that is made from them.
//!
//! Whoever looks for a series compares axes. [`Axes::key`] is for people and for comparing runs; it is never taken
//! apart.

use std::collections::BTreeMap;

use landfall_os::humanize::{bytes_text, size_name};
use landfall_os::{Allocation, StreamMethod, SyncMethod};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::saving::Saving;

/// Whether several threads write one file or a file each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Files {
    /// One file; threads take turns at its next position.
    Shared,
    /// Every thread has its own file.
    Each,
}

/// Where in the file writes land, relative to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// One after the other, as in a log.
    Sequential,
    /// On page boundaries, a page apart, so that no two writes share a page.
    Spaced,
    /// As spaced, but starting 512 bytes into a page: the first and last page are written in part.
    Unaligned,
}

/// Whether the file's pages are in the page cache when the trial begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// They are, if the method uses the page cache at all.
    Warm,
    /// They are not: they are evicted before the trial, and no page is written twice in it.
    Cold,
}

impl Files {
    /// Both.
    pub const ALL: [Files; 2] = [Files::Shared, Files::Each];

    /// As it stands in keys and on command lines.
    pub fn key(self) -> &'static str {
        match self {
            Files::Shared => "shared",
            Files::Each => "each",
        }
    }

    /// As it stands beside a number of threads.
    fn name(self) -> &'static str {
        match self {
            Files::Shared => "one file",
            Files::Each => "a file each",
        }
    }

    /// What it is, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Files::Shared => "All threads write one file, each at its next position.",
            Files::Each => "Every thread writes a file of its own.",
        }
    }
}

impl Placement {
    /// What it is, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Placement::Sequential => "Writes follow one another, as in a log.",
            Placement::Spaced => {
                "Writes begin on page boundaries, a page apart: no two share a page."
            }
            Placement::Unaligned => {
                "Writes begin 512 bytes into a page, a page apart: they fill their first and last page in part."
            }
        }
    }
}

impl CacheState {
    /// What it is, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            CacheState::Warm => "The file's pages are in the page cache.",
            CacheState::Cold => {
                "The file's pages were evicted from the page cache, so a page that is written in part is read first."
            }
        }
    }
}

/// A name that a table or a chart uses, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// As it stands there.
    pub name: String,
    /// In a sentence or two.
    pub meaning: String,
}

/// What the bytes of a state look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Data {
    /// Pseudo-random: nothing can make less of it.
    #[default]
    Incompressible,
    /// Zeros, which a filesystem or a device may leave out.
    Zeros,
}

/// What is varied together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// How the space was allocated.
    Allocation,
    /// How bytes are handed over or made durable.
    Method,
    /// Bytes in a write, or of a state.
    Size,
    /// Threads, and whether they have a file each.
    Threads,
    /// Which pages are written, and whether they are cached.
    Pages,
    /// Bytes handed over by one call.
    Chunk,
}

impl Axis {
    /// Its name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Allocation => "allocation",
            Axis::Method => "method",
            Axis::Size => "size",
            Axis::Threads => "threads",
            Axis::Pages => "pages",
            Axis::Chunk => "chunk",
        }
    }
}

/// The axes of a trial; one that means nothing for its experiment is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Axes {
    /// How the space was allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    /// How the write was made durable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_method: Option<SyncMethod>,
    /// How the bytes were handed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_method: Option<StreamMethod>,
    /// Bytes in a write, or of a state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Bytes handed over by one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u64>,
    /// What the bytes look like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// Threads that wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// One file or a file each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Files>,
    /// Where writes landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// What the page cache held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheState>,
    /// How a state was kept durable, or read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saving: Option<Saving>,
    /// The site, by its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The part of the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// What tells a case from others on the same site with as many clients: `mariadb sync_binlog=1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The settings of the database that the plan varies and its name is made of, in that order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub varied: Vec<(String, String)>,
    /// Percent of what a store's leaves take that changes may take on disk, where that is varied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<u8>,
    /// Settings that were tried on top of the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<String>,
    /// Name of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// All settings with which it ran.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The workload, with its settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Clients that asked at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Threads that took CPU time meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<u32>,
}

impl Axes {
    /// Bytes handed over by one call, unless chosen.
    pub const USUAL_CHUNK: u64 = 1 << 20;

    /// The name, unique in an experiment and stable across runs: `overwrite/fdatasync/8K/16-threads-each`,
    /// `append/write/512M/chunk-64K`.
    ///
    /// What goes without saying is not in it.
    pub fn key(&self) -> String {
        let threads = self.threads.filter(|threads| *threads > 1);
        let files = self.files.unwrap_or(Files::Shared).key();
        let threads = threads.map(|threads| format!("{threads}-threads-{files}"));
        let placement = match self.placement {
            Some(Placement::Spaced) => Some("spaced"),
            Some(Placement::Unaligned) => Some("unaligned"),
            Some(Placement::Sequential) | None => None,
        };
        let cold = self.cache == Some(CacheState::Cold);
        let chunk = self.chunk.filter(|_| !self.has_usual_chunk());
        let zeros = self.data == Some(Data::Zeros);
        let clients = self.clients.map(|clients| match clients {
            1 => "1 client".to_owned(),
            clients => format!("{clients} clients"),
        });
        let parts = [
            self.site.clone(),
            self.name(),
            self.allocation.map(|allocation| allocation.to_string()),
            self.sync_method.map(|method| method.to_string()),
            self.stream_method.map(|method| method.to_string()),
            self.saving.map(|saving| saving.name().to_owned()),
            self.size.map(size_name),
            threads,
            placement.map(str::to_owned),
            cold.then(|| "cold".to_owned()),
            chunk.map(|chunk| format!("chunk-{}", size_name(chunk))),
            zeros.then(|| "zeros".to_owned()),
            clients,
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    }

    /// The case with what was tried on top of it, as people read it.
    pub fn name(&self) -> Option<String> {
        let case = self.case.as_ref()?;
        Some(match &self.tried {
            None => case.clone(),
            Some(tried) => format!("{case} with {tried}"),
        })
    }

    /// The settings by which its name differs from others of the same database, under the name of a setting that
    /// need not be said again; all of its name, where no setting is varied.
    pub fn varied_text(&self, heading: Option<&str>) -> String {
        let mut words: Vec<String> = Vec::new();
        for (place, (key, value)) in self.varied.iter().enumerate() {
            let is_said = place == 0 && heading == Some(key);
            words.push(if is_said {
                value.clone()
            } else {
                format!("{key}={value}")
            });
        }
        if words.is_empty() {
            return self.name().unwrap_or_default();
        }
        words.extend(self.tried.iter().map(|tried| format!("with {tried}")));
        words.join(" ")
    }

    /// Whether it is handed over in the chunks that are used unless others are chosen.
    pub fn has_usual_chunk(&self) -> bool {
        let size = self.size.unwrap_or(u64::MAX);
        self.chunk
            .is_none_or(|chunk| chunk == Axes::USUAL_CHUNK.min(size))
    }

    /// The value on an axis, as people read it; empty where it means nothing.
    pub fn text(&self, axis: Axis) -> String {
        let text = match axis {
            Axis::Allocation => self.allocation.map(|allocation| allocation.to_string()),
            Axis::Method => match (self.sync_method, self.stream_method) {
                (Some(method), _) => Some(method.to_string()),
                (None, method) => method.map(|method| method.to_string()),
            },
            Axis::Size => self.size.map(bytes_text),
            Axis::Chunk => self.chunk.map(bytes_text),
            Axis::Threads => self.threads.map(|threads| match (threads, self.files) {
                (1, _) => "1 thread".to_owned(),
                (threads, files) => {
                    format!("{threads}, {}", files.unwrap_or(Files::Shared).name())
                }
            }),
            Axis::Pages => self.placement.map(|placement| {
                let placement = match placement {
                    Placement::Sequential => "sequential",
                    Placement::Spaced => "aligned, apart",
                    Placement::Unaligned => "unaligned, apart",
                };
                let is_cold = self.cache == Some(CacheState::Cold);
                format!("{placement}, {}", if is_cold { "cold" } else { "warm" })
            }),
        };
        text.unwrap_or_default()
    }

    /// The value on an axis and what it means, where its name does not say it.
    pub fn term(&self, axis: Axis) -> Option<Term> {
        let mut name = self.text(axis);
        let meaning = match axis {
            Axis::Allocation => self.allocation?.meaning().to_owned(),
            Axis::Method => match self.sync_method {
                Some(method) => method.meaning(),
                None => self.stream_method?.meaning(),
            },
            Axis::Pages => format!("{} {}", self.placement?.meaning(), self.cache?.meaning()),
            Axis::Threads => {
                let files = self.files.filter(|_| self.threads > Some(1))?;
                name = files.name().to_owned();
                files.meaning().to_owned()
            }
            Axis::Size | Axis::Chunk => return None,
        };
        Some(Term { name, meaning })
    }

    /// Where the value belongs on an axis of numbers; 0 on others.
    pub fn position(&self, axis: Axis) -> u64 {
        match axis {
            Axis::Size => self.size.unwrap_or(0),
            Axis::Chunk => self.chunk.unwrap_or(0),
            Axis::Threads => self.threads.map_or(0, u64::from),
            Axis::Allocation | Axis::Method | Axis::Pages => 0,
        }
    }

    /// The same without its value on an axis: what series that are compared along it have in common.
    pub fn without(&self, axis: Axis) -> Axes {
        let mut rest = self.clone();
        match axis {
            Axis::Allocation => rest.allocation = None,
            Axis::Method => (rest.sync_method, rest.stream_method) = (None, None),
            Axis::Chunk => rest.chunk = None,
            Axis::Size => rest.size = None,
            Axis::Threads => (rest.threads, rest.files) = (None, None),
            Axis::Pages => (rest.placement, rest.cache) = (None, None),
        }
        rest
    }

    /// Whether a write that returned is meant to survive a power cut.
    pub fn is_durable(&self) -> bool {
        self.sync_method.is_none_or(SyncMethod::is_durable)
    }
}
