//! The spec of a filesystem like one that is there.

use landfall_os::Filesystem;

use super::{FilesystemSpec, Kind};

/// Mount options that bear on what survives a power cut, or on how it is written; a name that ends in
/// `=` stands for all its values. The others (quotas, ownership, …) make no difference to that.
const TELLING: [&str; 27] = [
    "async_commit",
    "auto_da_alloc",
    "barrier",
    "barrier=",
    "commit=",
    "compress=",
    "compress-force=",
    "data=",
    "data_err=",
    "delalloc",
    "dioread_lock",
    "dioread_nolock",
    "dirsync",
    "flushoncommit",
    "journal_async_commit",
    "journal_checksum",
    "nobarrier",
    "noauto_da_alloc",
    "nodatacow",
    "nodatasum",
    "nodelalloc",
    "nojournal_checksum",
    "noload",
    "notreelog",
    "sync",
    "wsync",
    "norecovery",
];

/// The feature of ext4 that is taken off where there is to be no journal.
pub const NO_JOURNAL: &str = "^has_journal";

/// A spec for a filesystem of the same type and with the same options as this one, as far as
/// they bear on durability; or why there is none.
pub fn like(filesystem: &Filesystem) -> Result<FilesystemSpec, String> {
    let storage = filesystem.storage();
    let kind: Kind = storage.kind.parse().map_err(|_| {
        format!(
            "no filesystem like {} can be made; ext2, ext3, ext4, xfs and btrfs can",
            storage.kind
        )
    })?;
    if storage.devices.len() != 1 {
        return Err(format!(
            "a filesystem on {} devices cannot be made",
            storage.devices.len()
        ));
    }
    let options = storage.options.iter().filter(|option| matters(option));
    let mut spec = FilesystemSpec {
        mount_options: options.cloned().collect::<Vec<_>>().join(","),
        ..FilesystemSpec::plain(kind)
    };
    if kind == Kind::Ext4 && storage.journal == Some(false) {
        spec.mkfs_options = vec!["-O".into(), NO_JOURNAL.into()];
    }
    Ok(spec)
}

/// Whether a mount option bears on what survives a power cut, or on how it is written.
pub fn matters(option: &str) -> bool {
    TELLING
        .iter()
        .any(|telling| match telling.strip_suffix('=') {
            Some(name) => option.split_once('=').is_some_and(|(own, _)| own == name),
            None => option == *telling,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_bears_on_durability_is_copied() {
        for option in [
            "data=journal",
            "nobarrier",
            "barrier=0",
            "commit=30",
            "sync",
        ] {
            assert!(matters(option), "{option}");
        }
        for option in [
            "rw",
            "relatime",
            "errors=remount-ro",
            "data",
            "seclabel",
            "usrquota",
        ] {
            assert!(!matters(option), "{option}");
        }
    }
}
