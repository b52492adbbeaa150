//! How the filesystem is made and mounted.

use super::{OVERWRITE, UNSYNCED};
use crate::rules::{Choice, Condition, JOURNAL, Measured, Rule, Source, System};

const KERNEL: Source = Source {
    title: "ext4 General Information, The Linux Kernel documentation",
    address: "https://docs.kernel.org/admin-guide/ext4.html",
};

const BLANK: Rule = Rule {
    system: System::Mount,
    when: &[Condition::Filesystem(&["ext3", "ext4"])],
    source: KERNEL,
    ..Rule::BLANK
};

const BTRFS: Rule = Rule {
    when: &[Condition::Filesystem(&["btrfs"])],
    source: Source {
        title: "Mount options, btrfs documentation",
        address: "https://btrfs.readthedocs.io/en/latest/btrfs-man5.html#mount-options",
    },
    measured_by: Some(Measured::Binlog),
    ..BLANK
};

pub(super) static RULES: [Rule; 6] = [
    Rule {
        id: "mount-barrier",
        setting: "barrier",
        default: "1",
        choices: &[
            Choice::durable("1", Some(OVERWRITE)),
            Choice::damages(
                "0",
                Some(UNSYNCED),
                "the filesystem, and what the cache held",
            ),
        ],
        measured_by: Some(Measured::Binlog),
        note: "Safe only where the disk's cache is protected from power cuts; where it is, and the disk says so, no flushes are sent anyway.",
        ..BLANK
    },
    Rule {
        id: "mount-data",
        when: &[Condition::Filesystem(&["ext3", "ext4"]), Condition::Journal],
        setting: "data",
        default: "ordered",
        choices: &[
            Choice::durable("ordered", Some(OVERWRITE)),
            Choice::durable("journal", None),
            Choice::durable("writeback", None),
        ],
        measured_by: Some(Measured::Binlog),
        note: "journal writes all data twice and takes O_DIRECT away, and does not keep a database's pages whole (InnoDB without doublewrite was damaged on it). With writeback files may show old data after a power cut where nobody synced.",
        ..BLANK
    },
    Rule {
        id: "mount-fast-commit",
        setting: "mkfs fast_commit",
        default: "off",
        choices: &[
            Choice::durable("off", Some(OVERWRITE)),
            Choice::damages("fast_commit", None, "the filesystem"),
        ],
        when: &[Condition::Filesystem(&["ext4"]), Condition::Journal],
        source: Source {
            title: "Journal (jbd2), The Linux Kernel documentation",
            address: "https://docs.kernel.org/filesystems/ext4/journal.html",
        },
        note: "It would make appending cheaper. On Linux 6.18 it could not be mounted after a power cut at the wrong moment; what was found is in docs/findings/ext4-fast-commit.md.",
        ..BLANK
    },
    Rule {
        id: "mount-nobarrier-btrfs",
        setting: "nobarrier",
        default: "off",
        choices: &[
            Choice::durable("off", Some(OVERWRITE)),
            Choice::damages("on", Some(UNSYNCED), "the filesystem"),
        ],
        note: "Safe only where the disk's cache is protected from power cuts; where it is, and the disk says so, no flushes are sent anyway.",
        ..BTRFS
    },
    Rule {
        id: "mount-nodatacow",
        setting: "nodatacow",
        default: "off",
        choices: &[Choice::durable("off", None), Choice::durable("on", None)],
        note: "Of files that are made afterwards, on all of the filesystem and not one subvolume; chattr +C on a directory does the same for files made in it. They then have no checksums and are not compressed, and a block that is being overwritten in a power cut may be torn, as on filesystems that overwrite in place: for databases that mend torn pages themselves.",
        ..BTRFS
    },
    Rule {
        id: "mount-journal",
        setting: JOURNAL,
        choices: &[
            Choice::durable("on", None),
            Choice::damages(
                "off",
                None,
                "the filesystem, with files that were made or renamed",
            ),
        ],
        when: &[Condition::Filesystem(&["ext4"]), Condition::NoJournal],
        source: Source {
            title: "ext4(5), e2fsprogs manual",
            address: "https://man7.org/linux/man-pages/man5/ext4.5.html",
        },
        note: "tune2fs -O has_journal gives one to a filesystem that is not mounted. What was proven of settings here was so on filesystems that have one; what is lost without is in docs/findings/ext4-without-journal.md.",
        ..BLANK
    },
];
