//! Every cluster there is.

use crate::cluster::{Cluster, ListedCluster};
use crate::registry::{Kind, Registry};
use crate::setting::Description;
use crate::{Presence, SettingError};

#[rustfmt::skip]
static KINDS: &[&Kind<dyn Cluster, ListedCluster>] = &[
    #[cfg(feature = "servers")]
    &crate::etcd::cluster::KIND,
    #[cfg(feature = "servers")]
    &crate::mariadb::cluster::KIND,
    #[cfg(feature = "servers")]
    &crate::postgres::cluster::KIND,
    #[cfg(feature = "servers")]
    &crate::redis::cluster::KIND,
    #[cfg(feature = "servers")]
    &crate::nats::KIND,
    #[cfg(feature = "servers")]
    &crate::kafka::KIND,
    #[cfg(feature = "servers")]
    &crate::zookeeper::KIND,
];

static CLUSTERS: Registry<dyn Cluster, ListedCluster> = Registry {
    noun: "cluster",
    kinds: KINDS,
    is_partial: !cfg!(feature = "default"),
};

/// Every cluster with its settings, what it is called in a sentence, and where it is.
pub fn list() -> impl Iterator<Item = (&'static Description, &'static str, Presence)> {
    KINDS.iter().map(|kind| {
        let ListedCluster { title, presence } = kind.listed;
        (&kind.description, title, presence())
    })
}

/// What every cluster is and what can be set of it, without asking where it is, which takes a while.
pub fn descriptions() -> impl Iterator<Item = &'static Description> {
    CLUSTERS.descriptions()
}

/// The cluster of that name with these settings; those that are not named have their defaults. Whether it is on this machine
/// shows when it is created.
pub fn named(name: &str, settings: &[(String, String)]) -> Result<Box<dyn Cluster>, SettingError> {
    CLUSTERS.named(name, settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cluster_is_made_with_its_defaults() {
        for (description, title, _) in list() {
            let cluster = named(description.name, &[]).unwrap();
            assert_eq!(cluster.chosen().subject(), description.name);
            assert!(!title.is_empty());
        }
    }

    #[test]
    fn every_setting_is_read() {
        assert!(CLUSTERS.unread_settings("").is_empty());
    }
}
