//! Where to measure, on the command line of experiments that compare filesystems.

use std::path::PathBuf;

use crate::scratch_fs::FilesystemSpec;
use crate::{Error, SiteSpec};
use clap::{Args, ValueHint};
use landfall_recorder::Profile;

/// Which places to compare.
#[derive(Args)]
pub struct SitesArguments {
    /// Directory to measure in: its disk holds the databases, and the images of filesystems that are made.
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Compare these sites and no others; may be given several times: dir for the directory itself,
    /// loop:SPEC for a filesystem made on an image file, memory:SPEC, recorder:SPEC. Options of mount
    /// follow after commas, as do those of mkfs, and size=SIZE: loop:ext4,data=journal,size=2G. Needs root,
    /// but for dir.
    #[arg(long, value_name = "SITE", help_heading = "Where to measure")]
    on: Vec<SiteSpec>,

    /// The same as --on loop:SPEC; may be given several times.
    #[arg(long, value_name = "SPEC", help_heading = "Where to measure")]
    fs: Vec<FilesystemSpec>,

    /// Let recorders take as long as a device of this kind, only with --on recorder:…: hdd-7200,
    /// hdd-15k-bbwc, ssd-consumer, nvme, cloud-volume, or numbers, as in hdd-7200,cache=off or flush=5ms.
    #[arg(long, value_name = "PROFILE", help_heading = "Where to measure")]
    latency: Option<Profile>,
}

impl SitesArguments {
    /// The sites that these arguments name, each once; none for those of the plan.
    pub fn specs(&self) -> Result<Vec<SiteSpec>, Error> {
        let mut sites: Vec<SiteSpec> = Vec::new();
        let mut is_timed = false;
        let images = self.fs.iter().cloned().map(SiteSpec::Loop);
        for site in self.on.iter().cloned().chain(images) {
            let site = match site {
                SiteSpec::Recorder(filesystem_spec, _) => {
                    is_timed = true;
                    SiteSpec::Recorder(filesystem_spec, self.latency.clone())
                }
                other => other,
            };
            if !sites.contains(&site) {
                sites.push(site);
            }
        }
        if self.latency.is_some() && !is_timed {
            Err(Error::Usage(
                "--latency is the recorder's; name a filesystem on one, as in --on recorder:ext4"
                    .into(),
            ))
        } else {
            Ok(sites)
        }
    }
}
