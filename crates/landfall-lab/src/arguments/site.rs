//! Where to measure, on the command line.

use std::path::PathBuf;

use crate::{Error, SiteSpec};
use clap::{Args, ValueHint};
use landfall_recorder::Profile;

/// Where to measure: a directory, or a filesystem that is made in it.
#[derive(Args)]
pub struct SiteArguments {
    /// Directory to measure in; with --on, the one whose disk holds what is made.
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Measure on a filesystem made for the purpose: recorder:ext4 on a device that counts exactly,
    /// loop:xfs on an image file, memory:ext4 in main memory. Options of mount follow after commas, as do those of mkfs, and
    /// size=SIZE, and rotational for a device that says that it is: recorder:ext4,data=journal,-O fast_commit,size=1G. Needs root.
    #[arg(
        long,
        value_name = "SITE",
        default_value = "dir",
        hide_default_value = true,
        help_heading = "Where to measure"
    )]
    on: SiteSpec,

    /// Let the recorder take as long as a device of this kind, only with --on recorder:…: hdd-7200,
    /// hdd-15k-bbwc, ssd-consumer, nvme, cloud-volume, or numbers, as in hdd-7200,cache=off or flush=5ms.
    #[arg(long, value_name = "PROFILE", help_heading = "Where to measure")]
    latency: Option<Profile>,
}

impl SiteArguments {
    /// The site that these arguments ask for.
    pub fn spec(&self) -> Result<SiteSpec, Error> {
        match (&self.on, &self.latency) {
            (SiteSpec::Recorder(filesystem_spec, _), latency) => {
                Ok(SiteSpec::Recorder(filesystem_spec.clone(), latency.clone()))
            }
            (other, None) => Ok(other.clone()),
            (_, Some(_)) => Err(Error::Usage(
                "--latency is the recorder's; name a filesystem on one, as in --on recorder:ext4"
                    .into(),
            )),
        }
    }
}
