//! Recorded results for tests, and facts of them that are changed: what no machine at hand has.

use landfall_os::Filesystem;

use crate::{Found, Results};

/// A recording by its name, of those in `recorded/`; what each is of stands in `recorded/README.md`.
pub(crate) fn recorded(name: &str) -> Results {
    let text = match name {
        "disk" => include_str!("../../recorded/disk.json"),
        "ext4" => include_str!("../../recorded/ext4.json"),
        "btrfs" => include_str!("../../recorded/btrfs.json"),
        "spinning" => include_str!("../../recorded/spinning.json"),
        "memory" => include_str!("../../recorded/memory.json"),
        "no-barrier" => include_str!("../../recorded/no-barrier.json"),
        // The disk, if it promised that pages of 16 KiB are written whole.
        "untorn" => {
            fn promise(filesystem: &mut Filesystem) {
                filesystem.atomic_write_bytes = 16 << 10;
                for device in &mut filesystem.devices {
                    device.atomic_write_bytes = 16 << 10;
                }
                if let Some(upper) = &mut filesystem.upper {
                    promise(upper);
                }
            }
            let mut results = recorded("disk");
            promise(&mut results.filesystem);
            return results;
        }
        // The disk, whose filesystem has no journal, which was not noted then, with what that does to MariaDB.
        "no-journal" => {
            let mut results = recorded("disk");
            results.filesystem.journal = Some(false);
            let without = include_str!("../../recorded/no-journal.json");
            let without = Results::from_json(without).unwrap();
            results.experiments.extend(without.experiments);
            return results;
        }
        // The disk, of which nothing is known but how it takes a large state.
        "unmeasured" => {
            let mut results = recorded("disk");
            let is_stream = |one: &Found| matches!(one, Found::Stream(_));
            results.experiments.retain(is_stream);
            return results;
        }
        // The disk with another filesystem on it, of which only writes are known.
        "xfs" => {
            let mut results = recorded("ext4");
            results.filesystem.kind = "xfs".to_owned();
            return results;
        }
        other => panic!("nothing is recorded as {other}"),
    };
    Results::from_json(text).unwrap()
}
