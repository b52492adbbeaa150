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
                "the filesystem, and what the disk's cache held",
            ),
        ],
        measured_by: Some(Measured::Binlog),
        note: "Safe only if the disk's cache survives a power cut. Linux sends no flushes to a disk that says so.",
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
        note: "journal writes all data twice, disables O_DIRECT, and does not prevent torn pages (InnoDB without doublewrite was damaged on it). With writeback, files that were not synced may show old data after a power cut.",
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
        note: "It makes appending cheaper. On Linux 6.18 some power cuts left a filesystem that does not mount: docs/findings/ext4-fast-commit.md.",
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
        note: "Safe only if the disk's cache survives a power cut. Linux sends no flushes to a disk that says so.",
        ..BTRFS
    },
    Rule {
        id: "mount-nodatacow",
        setting: "nodatacow",
        default: "off",
        choices: &[Choice::durable("off", None), Choice::durable("on", None)],
        note: "It holds for new files, on the whole filesystem; chattr +C does the same for one directory. Such files have no checksums and no compression, and a power cut can tear a block: for databases that repair torn pages themselves.",
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
                "the filesystem, and files that were created or renamed",
            ),
        ],
        when: &[Condition::Filesystem(&["ext4"]), Condition::NoJournal],
        source: Source {
            title: "ext4(5), e2fsprogs manual",
            address: "https://man7.org/linux/man-pages/man5/ext4.5.html",
        },
        note: "tune2fs -O has_journal adds one to an unmounted filesystem. Settings are proven on filesystems that have one; what is lost without one: docs/findings/ext4-without-journal.md.",
        ..BLANK
    },
];
