//! What was found of configurations, as it stands in the results document.

use std::collections::BTreeMap;

use landfall_results::{Metric, Series};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SiteResult;
use crate::stats::{Estimate, FEWEST_ROUNDS};

/// Everything that was found of a plan's configurations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurements {
    /// How often each configuration was measured.
    pub rounds: u32,
    /// Seconds of load before the measured ones; more where it was waited for that the load is steady.
    pub warm_up_seconds: f64,
    /// How long a trial was meant to take, in seconds.
    pub seconds_per_trial: f64,
    /// The sites, in plan order.
    pub sites: Vec<SiteResult>,
    /// The databases that were created and filled, and then copied for each start.
    pub loads: Vec<Load>,
    /// What was measured of each configuration, in plan order.
    pub series: Vec<Series>,
}

impl Measurements {
    /// What was measured of this case on this site with so many clients, with nothing tried on top of it.
    pub fn find(&self, site: &str, case: &str, clients: u32) -> Option<&Series> {
        let sought = (Some(site), Some(case), None, Some(clients));
        self.series.iter().find(|one| {
            let axes = &one.axes;
            let (site, case, tried) = (&axes.site, &axes.case, &axes.tried);
            (
                site.as_deref(),
                case.as_deref(),
                tried.as_deref(),
                axes.clients,
            ) == sought
        })
    }
}

/// The rate of one configuration over that of another, formed round by round; nothing where there are too few rounds for
/// an interval, as of what was given up.
pub(crate) fn certain_ratio(of: &Series, over: &Series) -> Option<Estimate> {
    let pairs = of.pairs(over, Metric::RequestsPerSecond);
    Estimate::of_ratio(&pairs).filter(|_| pairs.len() >= FEWEST_ROUNDS)
}

/// A database that was created and filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// The database.
    pub database: String,
    /// Its version, as it says itself.
    pub version: Option<String>,
    /// The settings that it was created and filled with.
    pub settings: BTreeMap<String, String>,
    /// The workload, with its settings.
    pub workload: String,
    /// Seconds it took.
    pub seconds: f64,
    /// Bytes of its files before anything was put into it.
    pub empty_bytes: u64,
    /// Bytes of its files.
    pub bytes: u64,
}
