//! Where results are kept: a directory that all machines share, or a bucket of an object store that speaks S3.
//!
//! Everything in it is immutable and called by its content. It is created or found to be there, never written over: two
//! machines that put the same at once put one thing, and a machine that dies leaves all of a document or nothing of it.
//!
//! ```text
//! CAMPAIGN/plan.json
//! CAMPAIGN/recordings/DIGEST
//! CAMPAIGN/shards/000003/begun
//! CAMPAIGN/shards/000003/DIGEST.json
//! ```
//!
//! Threads: none but its caller's. Each call waits until the store has answered, or somebody stops it.

use std::fmt;
use std::path::{Path as FilePath, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use landfall_os::Stop;
use landfall_results::proof::Shard;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::runtime::Runtime;

use crate::Error;
use crate::content::{CampaignId, Digest};
use crate::document::ShardDocument;
use crate::plan::Plan;

/// In objects that say nothing but that they are there.
const BEGUN: &[u8] = b"landfall campaign\n";
/// No document of a shard has more bytes.
pub(crate) const LARGEST_DOCUMENT: u64 = 1 << 30;

/// How often it is looked whether to stop waiting for an answer.
const GLANCE: Duration = Duration::from_millis(100);

/// Where results are kept.
pub struct ResultStore {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The directory, if it is one.
    directory: Option<PathBuf>,
    /// As the user calls it.
    place: String,
    runtime: Runtime,
    stop: Stop,
}

impl fmt::Debug for ResultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResultStore").field(&self.place).finish()
    }
}

/// What lies among the shards' documents.
#[derive(Debug, Default)]
pub struct Found {
    /// What can be read.
    pub documents: Vec<(Digest, ShardDocument)>,
    /// What cannot, with the reason.
    pub unreadable: Vec<String>,
}

/// A campaign in a place: `PLACE/ID`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Where results are kept.
    pub place: String,
    /// The campaign.
    pub campaign: CampaignId,
}

impl std::str::FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Location, String> {
        let (place, id) = text
            .trim_end_matches('/')
            .rsplit_once('/')
            .ok_or("it is written RESULTS/CAMPAIGN, as `landfall campaign plan` says it")?;
        let place = if place.is_empty() { "/" } else { place };
        Ok(Location {
            place: place.to_owned(),
            campaign: id.parse()?,
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.place.trim_end_matches('/'), self.campaign)
    }
}

impl ResultStore {
    /// Opens `place`: a directory, or `s3://bucket/prefix`, of which the environment has the credentials (`AWS_…`).
    ///
    /// Nothing is asked of an object store yet.
    pub fn open(place: &str) -> Result<ResultStore, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::Store {
                doing: "begin",
                place: place.to_owned(),
                why: error.to_string(),
            })?;
        let (store, prefix, directory) = match place.split_once("://") {
            Some(("s3", rest)) => {
                let (store, prefix) = s3(place, rest)?;
                (store, prefix, None)
            }
            Some(_) => {
                return Err(Error::Usage(format!(
                    "results cannot go to {place}: name a directory, or s3://BUCKET/PREFIX"
                )));
            }
            None => {
                let path = PathBuf::from(place);
                (directory(place, &path)?, Path::default(), Some(path))
            }
        };
        Ok(ResultStore {
            store,
            prefix,
            directory,
            place: place.to_owned(),
            runtime,
            stop: Stop::default(),
        })
    }

    /// From now on a call that waits for an answer returns [`Error::Stopped`] when this is requested. What it asked for may
    /// be done all the same.
    #[must_use]
    pub fn stopped_by(mut self, stop: &Stop) -> ResultStore {
        self.stop = stop.clone();
        self
    }

    /// Waits for an answer.
    fn answer<F: Future>(&self, asked: F) -> Result<F::Output, Error> {
        self.runtime.block_on(async {
            let mut asked = pin!(asked);
            loop {
                match tokio::time::timeout(GLANCE, &mut asked).await {
                    Ok(answer) => return Ok(answer),
                    Err(_) if self.stop.is_requested() => return Err(Error::Stopped),
                    Err(_) => {}
                }
            }
        })
    }

    /// Finds out, before anything takes long, whether plans can be kept here.
    pub fn try_to_plan(&self) -> Result<(), Error> {
        self.mark(&self.prefix.clone().join("landfall"))
    }

    /// Notes that a shard has begun, which finds out whether its document can be kept before there is one.
    pub fn begin_shard(&self, id: &CampaignId, shard: Shard) -> Result<(), Error> {
        self.mark(&self.shard_path(id, shard).join("begun"))
    }

    /// Keeps a plan.
    pub fn put_plan(&self, plan: &Plan) -> Result<(), Error> {
        let path = self.of(&plan.id()).join("plan.json");
        self.create(&path, plan.to_json().into_bytes())
    }

    /// The plan of a campaign.
    pub fn plan(&self, id: &CampaignId) -> Result<Plan, Error> {
        let missing = || format!("there is no campaign {id} in {}", self.place);
        let bytes = self.get(&self.of(id).join("plan.json"), missing)?;
        Plan::read(id, &bytes)
    }

    /// Keeps a recording, which is called by its content.
    pub fn put_recording(
        &self,
        id: &CampaignId,
        digest: Digest,
        bytes: Vec<u8>,
    ) -> Result<(), Error> {
        let bytes = intact(digest, bytes, "recording")?;
        self.create(&self.recording_path(id, digest), bytes)
    }

    /// A recording.
    pub fn recording(&self, id: &CampaignId, digest: Digest) -> Result<Vec<u8>, Error> {
        let missing = || {
            format!(
                "recording {digest} of campaign {id} is not in {}",
                self.place
            )
        };
        let bytes = self.get(&self.recording_path(id, digest), missing)?;
        intact(digest, bytes, "recording")
    }

    /// Keeps what a shard has done.
    pub fn put_shard(&self, document: &ShardDocument) -> Result<Digest, Error> {
        let bytes = document.to_json().into_bytes();
        let digest = Digest::of(&bytes);
        let name = format!("{digest}.json");
        let path = self
            .shard_path(&document.campaign, document.shard)
            .join(name.as_str());
        self.create(&path, bytes)?;
        Ok(digest)
    }

    /// What a shard has done, in each of its runs that came to an end.
    pub fn shard(&self, id: &CampaignId, shard: Shard) -> Result<Vec<ShardDocument>, Error> {
        let found = self
            .documents(&self.shard_path(id, shard))?
            .documents
            .into_iter();
        let is_it = |one: &ShardDocument| one.campaign == *id && one.shard == shard;
        Ok(found.map(|(_, document)| document).filter(is_it).collect())
    }

    /// What all shards have done.
    pub fn shards(&self, id: &CampaignId) -> Result<Found, Error> {
        self.documents(&self.of(id).join("shards"))
    }

    fn documents(&self, below: &Path) -> Result<Found, Error> {
        let mut found = Found::default();
        for (path, size) in self.list(below)? {
            // What somebody else put there is not ours.
            let digest = path
                .filename()
                .and_then(|name| name.strip_suffix(".json")?.parse().ok());
            let Some(digest) = digest else { continue };
            match self.document(&path, size, digest) {
                Ok(document) => found.documents.push((digest, document)),
                Err(Error::Document(why)) => found.unreadable.push(format!("{path}: {why}")),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn document(&self, path: &Path, size: u64, digest: Digest) -> Result<ShardDocument, Error> {
        if size > LARGEST_DOCUMENT {
            return Err(Error::Document(format!(
                "it has {size} bytes, and no document has more than {LARGEST_DOCUMENT}"
            )));
        }
        let missing = || format!("it has gone from {}", self.place);
        let bytes = intact(digest, self.get(path, missing)?, "document")?;
        ShardDocument::read(digest, &bytes)
    }

    fn of(&self, id: &CampaignId) -> Path {
        self.prefix.clone().join(id.as_str())
    }

    fn recording_path(&self, id: &CampaignId, digest: Digest) -> Path {
        self.of(id).join("recordings").join(digest.to_string())
    }

    fn shard_path(&self, id: &CampaignId, shard: Shard) -> Path {
        let number = format!("{:06}", shard.index());
        self.of(id).join("shards").join(number)
    }

    /// Creates an object, whose name says what is in it: one that is there is the same, or it is damaged, and is not taken for it.
    fn create(&self, path: &Path, bytes: Vec<u8>) -> Result<(), Error> {
        let expected = Digest::of(&bytes);
        if self.put_new(path, bytes)? {
            return Ok(());
        }
        let gone = || format!("{path} has gone from {} meanwhile", self.place);
        let there = self.get(path, gone)?;
        if Digest::of(&there) == expected {
            return Ok(());
        }
        Err(Error::Document(format!(
            "{}/{path} is damaged: remove it",
            self.place.trim_end_matches('/')
        )))
    }

    /// Creates an object that tells nothing but that it is there.
    fn mark(&self, path: &Path) -> Result<(), Error> {
        self.put_new(path, BEGUN.to_vec()).map(|_| ())
    }

    /// Creates an object, unless there is one. Whether it did; where an answer was lost, and the put tried again, it did not.
    fn put_new(&self, path: &Path, bytes: Vec<u8>) -> Result<bool, Error> {
        let options = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(path, PutPayload::from(bytes), options);
        match self.answer(put)? {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.error("write", error)),
        }
    }

    fn get(&self, path: &Path, missing: impl Fn() -> String) -> Result<Vec<u8>, Error> {
        let file = self.directory.as_ref().map(|to| to.join(path.as_ref()));
        // A pipe would be waited for, and a link leads to what is not ours.
        let is_other = |file: &PathBuf| {
            std::fs::symlink_metadata(file).is_ok_and(|found| !found.file_type().is_file())
        };
        if let Some(file) = file.filter(is_other) {
            return Err(Error::Document(format!(
                "{} is no regular file: remove it",
                file.display()
            )));
        }
        let asked = async { self.store.get(path).await?.bytes().await };
        match self.answer(asked)? {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(object_store::Error::NotFound { .. }) => Err(Error::Document(missing())),
            Err(error) => Err(self.error("read", error)),
        }
    }

    /// Everything below, with its size.
    fn list(&self, below: &Path) -> Result<Vec<(Path, u64)>, Error> {
        let listed = self.answer(async {
            let mut found = Vec::new();
            let mut waiting = vec![below.clone()];
            while let Some(path) = waiting.pop() {
                let listed = self.store.list_with_delimiter(Some(&path)).await?;
                found.extend(
                    listed
                        .objects
                        .into_iter()
                        .map(|object| (object.location, object.size)),
                );
                waiting.extend(listed.common_prefixes);
            }
            Ok(found)
        });
        let mut found = listed?.map_err(|error| self.error("list results", error))?;
        found.sort();
        Ok(found)
    }

    fn error(&self, doing: &'static str, error: object_store::Error) -> Error {
        let mut why = innermost(&error);
        if self.place.starts_with("s3://") && std::env::var_os("AWS_ACCESS_KEY_ID").is_none() {
            why +=
                "; AWS_ACCESS_KEY_ID is not set, so this machine's role was asked for credentials";
        }
        Error::Store {
            doing,
            place: self.place.clone(),
            why,
        }
    }
}

/// What was read, if it is what its name says.
fn intact(digest: Digest, bytes: Vec<u8>, what: &str) -> Result<Vec<u8>, Error> {
    if Digest::of(&bytes) == digest {
        Ok(bytes)
    } else {
        Err(Error::Document(format!(
            "{what} {digest} is damaged: its content is not what its name says; remove it, and run that again"
        )))
    }
}

/// The cause of a failure, which its outer layers only repeat, on one line; of a server's page the sentence in it.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let words = cause.to_string();
    let element = |name: &str| {
        let (_, rest) = words.split_once(&format!("<{name}>"))?;
        Some(rest.split_once('<')?.0)
    };
    let said = match (element("Message"), element("Code")) {
        (Some(message), Some(code)) => {
            let message = message.trim_end_matches('.');
            format!("the server says '{message}' ({code})")
        }
        _ => words,
    };
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn directory(place: &str, path: &FilePath) -> Result<Arc<dyn ObjectStore>, Error> {
    if !path.is_dir() {
        return Err(Error::Usage(format!(
            "there is no directory {place}: is what all machines share mounted here?"
        )));
    }
    let store = object_store::local::LocalFileSystem::new_with_prefix(path).map_err(|error| {
        Error::Store {
            doing: "begin",
            place: place.to_owned(),
            why: innermost(&error),
        }
    })?;
    Ok(Arc::new(store.with_fsync(true)))
}

#[cfg(feature = "s3")]
fn s3(place: &str, rest: &str) -> Result<(Arc<dyn ObjectStore>, Path), Error> {
    use object_store::aws::AmazonS3Builder;
    use object_store::{ClientOptions, RetryConfig};

    // One provider of cryptography is compiled in; somebody else may have said so already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let wrong = |why: String| Error::Usage(format!("results cannot go to {place}: {why}"));
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(wrong("it is written s3://BUCKET/PREFIX".into()));
    }
    let prefix =
        Path::parse(prefix.trim_end_matches('/')).map_err(|error| wrong(innermost(&error)))?;
    // An endpoint without encryption must have been named: it is for tests, and for networks of one's own.
    let endpoints = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    let endpoint = endpoints.iter().find_map(|name| std::env::var(name).ok());
    let is_plain = endpoint
        .as_ref()
        .is_some_and(|endpoint| endpoint.starts_with("http://"));
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let options = ClientOptions::new()
        .with_allow_http(is_plain)
        .with_connect_timeout(Duration::from_secs(10))
        .with_timeout(Duration::from_secs(300));
    let retry = RetryConfig {
        max_retries: 5,
        retry_timeout: Duration::from_secs(60),
        ..RetryConfig::default()
    };
    let store = builder
        .with_client_options(options)
        .with_retry(retry)
        .build();
    Ok((
        Arc::new(store.map_err(|error| wrong(innermost(&error)))?),
        prefix,
    ))
}

#[cfg(not(feature = "s3"))]
fn s3(place: &str, _: &str) -> Result<(Arc<dyn ObjectStore>, Path), Error> {
    Err(Error::Usage(format!(
        "results cannot go to {place}: this program was built without the feature s3"
    )))
}
