//! What can happen in each database that a power cut should meet, and in which of its files it has pages.

use std::num::NonZeroU64;

use landfall_os::humanize::parse_size;

use super::is_off;
use crate::subject::Hazard;

/// What is known of a database.
pub(super) struct Known {
    /// What can happen in it, with the settings that are to protect it then.
    pub hazards: &'static [(Hazard, &'static [&'static str])],
    /// Whether it has pages in a file of this path, in which each number is `#`.
    pub has_pages: fn(&str) -> bool,
    /// Bytes of a page, unless set otherwise.
    pub page: u64,
    /// The setting that says how large a page is, if one does.
    pub page_setting: &'static str,
}

/// What is known of the database of this name with these settings; of one that only appends, nothing.
pub(super) fn of(name: &str, settings: &[(String, String)]) -> Option<&'static Known> {
    let is_set = |(setting, value): &(String, String)| setting == "in-place" && value == "yes";
    if name == "landfall-store" && settings.iter().any(is_set) {
        return Some(&STORE_IN_PLACE);
    }
    KNOWN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, known)| known)
}

/// A setting with which a database has pages where they are not looked for, and why it is refused.
pub(super) fn hidden(name: &str, settings: &[(String, String)]) -> Option<String> {
    let is_hidden =
        |(setting, value): &(String, String)| setting == "innodb_file_per_table" && is_off(value);
    (name == "mariadb" && settings.iter().any(is_hidden)).then(|| {
        "innodb_file_per_table=OFF: in the system tablespace pages that are torn would not be counted; leave it out"
            .to_owned()
    })
}

/// Its copies are pages of the same file, too; to tear one destroys nothing.
static STORE_IN_PLACE: Known = Known {
    hazards: &[
        (Hazard::PageTorn, &["protection"]),
        (Hazard::PageOverwritten, &[]),
        (Hazard::Checkpoint, &[]),
    ],
    has_pages: |file| file == "store/data-#",
    page: 16 << 10,
    page_setting: "leaf",
};

const PAGES: [(Hazard, &[&str]); 2] = [(Hazard::PageTorn, &[]), (Hazard::PageOverwritten, &[])];

static KNOWN: [(&str, Known); 7] = [
    (
        "postgres",
        Known {
            hazards: &[
                (Hazard::PageTorn, &["full_page_writes"]),
                (Hazard::PageOverwritten, &[]),
                (Hazard::Checkpoint, &[]),
            ],
            // Tables and indexes; maps of free space are not protected, and need not be.
            has_pages: |file| file == "base/#/#" || file == "global/#",
            page: 8192,
            page_setting: "",
        },
    ),
    (
        "mariadb",
        Known {
            hazards: &[
                (Hazard::PageTorn, &["innodb_doublewrite"]),
                (Hazard::PageOverwritten, &[]),
                (Hazard::Checkpoint, &[]),
            ],
            // The doublewrite buffer is in the system tablespace: to tear that destroys nothing.
            has_pages: |file| file.ends_with(".ibd"),
            page: 16 << 10,
            page_setting: "innodb_page_size",
        },
    ),
    (
        "redis",
        Known {
            hazards: &[(Hazard::LogRewrite, &[]), (Hazard::Snapshot, &[])],
            has_pages: |_| false,
            page: 4096,
            page_setting: "",
        },
    ),
    (
        "etcd",
        Known {
            hazards: &[
                (Hazard::PageTorn, &[]),
                (Hazard::PageOverwritten, &[]),
                (Hazard::Snapshot, &[]),
                (Hazard::Compaction, &[]),
                (Hazard::Defragmentation, &[]),
            ],
            has_pages: |file| file == "member/snap/db",
            page: 4096,
            page_setting: "",
        },
    ),
    (
        "lmdb",
        Known {
            hazards: &PAGES,
            has_pages: |file| file == "data.mdb",
            page: 4096,
            page_setting: "",
        },
    ),
    (
        "landfall-store",
        Known {
            hazards: &[(Hazard::Checkpoint, &[])],
            // Pages that are needed are never written over.
            has_pages: |_| false,
            page: 4096,
            page_setting: "",
        },
    ),
    (
        "redb",
        Known {
            hazards: &PAGES,
            has_pages: |_| true,
            page: 4096,
            page_setting: "",
        },
    ),
];

impl Known {
    /// Bytes of a page with these settings.
    pub fn page(&self, settings: &[(String, String)]) -> Option<NonZeroU64> {
        let set = settings.iter().rfind(|(name, _)| name == self.page_setting);
        let set = set.and_then(|(_, value)| parse_size(value).ok());
        NonZeroU64::new(set.unwrap_or(self.page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_in_tables_and_not_in_logs() {
        for (name, file, expected) in [
            ("postgres", "base/#/#", true),
            ("postgres", "pg_wal/#", false),
            ("postgres", "base/#/#_fsm", false),
            ("mariadb", "landfall/slots.ibd", true),
            ("mariadb", "ibdata#", false),
            ("etcd", "member/wal/#-#.wal", false),
        ] {
            let known = of(name, &[]).unwrap();
            assert_eq!((known.has_pages)(file), expected, "{name}: {file}");
        }
        assert!(of("fjall", &[]).is_none());
        let in_place = [("in-place".to_owned(), "yes".to_owned())];
        for (settings, expected) in [(&in_place[..], true), (&[], false)] {
            let known = of("landfall-store", settings).unwrap();
            assert_eq!((known.has_pages)("store/data-#"), expected);
        }
    }

    #[test]
    fn tables_without_files_of_their_own_are_refused() {
        let hidden = |name: &str, value: &str| {
            let set = ("innodb_file_per_table".to_owned(), value.to_owned());
            hidden(name, &[set]).is_some()
        };
        assert!(hidden("mariadb", "OFF") && hidden("mariadb", "0"));
        assert!(!hidden("mariadb", "ON") && !hidden("myrocks", "OFF"));
    }

    #[test]
    fn a_page_is_as_large_as_it_was_set_to_be() {
        let known = of("mariadb", &[]).unwrap();
        let page = |settings: &[(String, String)]| known.page(settings).map(NonZeroU64::get);
        assert_eq!(page(&[]), Some(16 << 10));
        let set = ("innodb_page_size".to_owned(), "4K".to_owned());
        assert_eq!(page(&[set]), Some(4096));
    }
}
