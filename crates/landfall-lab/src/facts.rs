//! What a machine, a filesystem and a device are, and what each of that means for durable writes.

use landfall_os::{BlockDevice, DeviceKind, Filesystem, Host, Medium, WriteCache};
use landfall_results::Fact;

use crate::{Notice, Results, Weight};
use landfall_os::humanize::bytes_text;

/// A filesystem with less than this share free is called nearly full.
const NEARLY_FULL: f64 = 0.1;

/// Where data goes, in short: `ext4 on vda1 (virtio)`.
pub fn place(filesystem: &Filesystem) -> String {
    let storage = filesystem.storage();
    let devices: Vec<String> = storage
        .devices
        .iter()
        .map(|device| match (&device.kind, &device.virtual_driver) {
            (DeviceKind::Recorder, _) => "a recorder".to_owned(),
            (_, Some(driver)) => format!("{} ({driver})", device.name),
            (_, None) => device.name.clone(),
        })
        .collect();
    let kind = if may_lose_new_files(filesystem) {
        format!("{} without a journal", storage.kind)
    } else {
        storage.kind.clone()
    };
    if devices.is_empty() {
        kind
    } else {
        format!("{kind} on {}", devices.join(", "))
    }
}

/// All facts about a machine and a filesystem, from the top down.
pub fn facts(host: &Host, filesystem: &Filesystem) -> Vec<Fact> {
    let mut list = List {
        subject: "host".into(),
        facts: Vec::new(),
    };
    of_host(&mut list, host);
    of_filesystem(&mut list, filesystem);
    let mut devices = Vec::new();
    for device in &filesystem.storage().devices {
        collect(device, &mut devices);
    }
    for device in devices {
        of_device(&mut list, device);
    }
    list.facts
}

struct List {
    subject: String,
    facts: Vec<Fact>,
}

impl List {
    fn add(&mut self, name: &str, value: impl Into<String>, meaning: impl Into<String>) {
        self.facts.push(Fact {
            subject: self.subject.clone(),
            name: name.to_owned(),
            value: value.into(),
            meaning: meaning.into(),
        });
    }
}

/// A device and those below it, each once.
fn collect<'a>(device: &'a BlockDevice, into: &mut Vec<&'a BlockDevice>) {
    if !into.iter().any(|known| known.number == device.number) {
        into.push(device);
    }
    for below in &device.below {
        collect(below, into);
    }
}

fn of_host(list: &mut List, host: &Host) {
    list.add(
        "kernel",
        format!("Linux {} on {}", host.kernel, host.architecture),
        "",
    );
    let cpu = host.cpu.as_deref().unwrap_or("processor not named");
    list.add("processors", format!("{} × {cpu}", host.cpus), "");
    list.add("memory", bytes_text(host.memory_bytes), "");
    match &host.hypervisor {
        Some(hypervisor) => list.add(
            "hypervisor",
            hypervisor.as_str(),
            "A flush is an order to the hypervisor. Whether the medium gets it, only a witness on another host can know.",
        ),
        None => list.add("hypervisor", "none seen", ""),
    }
}

fn of_filesystem(list: &mut List, filesystem: &Filesystem) {
    list.subject = "filesystem".into();
    let place = format!(
        "{} on {}",
        filesystem.kind,
        filesystem.mount_point.display()
    );
    list.add("type", place, medium_meaning(filesystem.medium));
    if let Some(upper) = &filesystem.upper {
        list.add(
            "overlay",
            format!(
                "upper layer is {} on {}",
                upper.kind,
                upper.mount_point.display()
            ),
            "What is written goes to the upper layer; the facts below are that layer's.",
        );
    }
    let storage = filesystem.storage();
    list.add(
        "options",
        storage.options.join(", "),
        option_meaning(storage),
    );
    list.add(
        "copy-on-write",
        if storage.copy_on_write { "yes" } else { "no" },
        match (storage.copy_on_write, storage.medium) {
            (true, _) => {
                "An overwrite goes to a new place and updates metadata, so preallocating and overwriting gain little over appending."
            }
            (false, Medium::Device) => {
                "Overwriting written blocks changes no metadata: the cheapest durable write there is."
            }
            (false, _) => "",
        },
    );
    if let Some(compression) = &storage.compression {
        list.add(
            "compression",
            compression.as_str(),
            "Bytes at the device depend on the data; zeros may never reach it.",
        );
    }
    match &storage.direct_io {
        Some(direct) => list.add(
            "direct I/O",
            format!("aligned to {} bytes", direct.offset_bytes),
            "The smallest direct write; a log padded to it writes no more than it must.",
        ),
        None => list.add(
            "direct I/O",
            "not stated",
            "It may be refused, or silently buffered.",
        ),
    }
    list.add(
        "untorn writes",
        match filesystem.atomic_write_bytes {
            0 => "not promised".to_owned(),
            bytes => format!("up to {}", bytes_text(bytes)),
        },
        match filesystem.atomic_write_bytes {
            0 => "A power cut may leave a page half old, half new: databases need their protection against that.",
            _ => "Written with RWF_ATOMIC, a page of that size is all old or all new after a power cut.",
        },
    );
    let space = storage.space;
    list.add(
        "free space",
        format!(
            "{} of {}",
            bytes_text(space.available_bytes),
            bytes_text(space.total_bytes)
        ),
        if is_nearly_full(filesystem) {
            "Nearly full: allocation is slower and more scattered."
        } else {
            ""
        },
    );
}

fn medium_meaning(medium: Medium) -> &'static str {
    match medium {
        Medium::Device => "",
        Medium::Memory => {
            "In main memory: nothing written here survives a power cut, however it is synced."
        }
        Medium::Network => "On another machine: what a sync promises is up to that server.",
        Medium::Passthrough => {
            "Handed to another program or to the host: what a sync promises is up to that."
        }
        Medium::Unknown => {
            "Its devices are not visible here: writes and flushes cannot be counted."
        }
    }
}

/// Mount options that take away what a sync promises.
pub(crate) fn dangerous_option(filesystem: &Filesystem) -> Option<&str> {
    filesystem
        .options
        .iter()
        .find(|option| matches!(option.as_str(), "nobarrier" | "barrier=0" | "sync=disabled"))
        .map(String::as_str)
}

fn option_meaning(filesystem: &Filesystem) -> String {
    if let Some(option) = dangerous_option(filesystem) {
        return format!("{option}: a sync does not flush the disk's cache.");
    }
    match filesystem.option("data") {
        Some("journal") => {
            "data=journal: data is written twice, and direct I/O is silently buffered.".into()
        }
        Some("writeback") => {
            "data=writeback: after a power cut a file may show old contents of its blocks.".into()
        }
        _ => String::new(),
    }
}

fn of_device(list: &mut List, device: &BlockDevice) {
    list.subject = device.name.clone();
    let size = bytes_text(device.size_bytes);
    let (kind, meaning) = match &device.kind {
        DeviceKind::Disk => (format!("disk of {size}"), String::new()),
        DeviceKind::Partition => (format!("partition of {size}"), String::new()),
        DeviceKind::Loop { backing_file } => (
            format!("loop device of {size} on {}", backing_file.display()),
            "A flush is an fsync of that file: it costs what the filesystem below makes of it."
                .into(),
        ),
        DeviceKind::Recorder => (
            format!("recorder of {size}"),
            "A block device that this program serves: writes, bytes and flushes are counted as they arrive, and nothing of it is kept."
                .into(),
        ),
        DeviceKind::Mapper => (format!("device-mapper volume of {size}"), String::new()),
        DeviceKind::Raid => (
            format!("software RAID of {size}"),
            "A write goes to several disks; writes and flushes are summed over them.".into(),
        ),
        DeviceKind::Memory => (
            format!("{size} of main memory"),
            "Nothing here survives a power cut.".into(),
        ),
    };
    list.add("kind", kind, meaning);
    if !device.below.is_empty() {
        let below: Vec<&str> = device
            .below
            .iter()
            .map(|below| below.name.as_str())
            .collect();
        list.add("stands on", below.join(", "), "");
        if device.kind == DeviceKind::Partition {
            return;
        }
    }
    if let Some(model) = &device.model {
        list.add("model", model.as_str(), "");
    }
    if let Some(firmware) = &device.firmware {
        list.add("firmware", firmware.as_str(), "");
    }
    if let Some(driver) = &device.virtual_driver {
        list.add(
            "virtual",
            driver.as_str(),
            "A virtual disk: a host may acknowledge a flush from its own cache, and timing does not show it.",
        );
    }
    match device.write_cache {
        Some(WriteCache::Volatile) => list.add(
            "write cache",
            "volatile",
            "Writes are safe only after a flush; the kernel sends one for every sync.",
        ),
        Some(WriteCache::NoneOrProtected) => list.add(
            "write cache",
            "none, or protected",
            "The device promises that completed writes are safe, so the kernel sends no flushes at all.",
        ),
        None => {}
    }
    match device.fua {
        Some(true) => list.add(
            "FUA",
            "yes",
            "A journal commit or a synchronous direct write needs one flush less.",
        ),
        Some(false) => list.add(
            "FUA",
            "no",
            "A write that must be on the medium costs a flush of its own.",
        ),
        None => {}
    }
    list.add(
        "blocks",
        format!(
            "{} bytes logical, {} physical",
            device.logical_block_bytes, device.physical_block_bytes
        ),
        if device.physical_block_bytes > device.logical_block_bytes {
            "Writes smaller than a physical block may cost the device a read and a rewrite."
        } else {
            ""
        },
    );
    if device.rotational && device.kind == DeviceKind::Disk {
        let meaning = match &device.virtual_driver {
            Some(_) => "So it says; virtual disks often do without cause. Believe the measurement.",
            None => "Each flush waits for the platter.",
        };
        list.add("rotational", "yes", meaning);
    }
    if let Some(scheduler) = &device.scheduler {
        list.add("scheduler", scheduler.as_str(), "");
    }
}

fn is_nearly_full(filesystem: &Filesystem) -> bool {
    let space = filesystem.storage().space;
    space.total_bytes > 0 && (space.available_bytes as f64) < NEARLY_FULL * space.total_bytes as f64
}

/// The disks below a filesystem whose writes are counted.
fn disks(storage: &Filesystem) -> Vec<&BlockDevice> {
    let devices = storage.devices.iter();
    devices.flat_map(BlockDevice::counted_on).collect()
}

/// A virtual disk below a filesystem, with its driver: a host decides what a flush is.
pub(crate) fn virtual_disk(storage: &Filesystem) -> Option<(&BlockDevice, &str)> {
    disks(storage)
        .into_iter()
        .find_map(|disk| Some((disk, disk.virtual_driver.as_deref()?)))
}

/// A disk in main memory below a filesystem.
fn memory_disk(storage: &Filesystem) -> Option<&BlockDevice> {
    let mut disks = disks(storage).into_iter();
    disks.find(|disk| disk.kind == DeviceKind::Memory)
}

/// Whether everything written to a filesystem is lost with the power: it is in main memory, or a disk below it is.
pub(crate) fn is_in_memory(filesystem: &Filesystem) -> bool {
    let storage = filesystem.storage();
    storage.medium == Medium::Memory || memory_disk(storage).is_some()
}

/// Whether a power cut may take new, grown and renamed files, synced or not: nothing brings their names and sizes back.
pub(crate) fn may_lose_new_files(filesystem: &Filesystem) -> bool {
    let storage = filesystem.storage();
    storage.journal == Some(false) && matches!(storage.kind.as_str(), "ext2" | "ext4")
}

/// What must be known about a target before a figure measured on it is believed.
pub fn notices(filesystem: &Filesystem) -> Vec<Notice> {
    let storage = filesystem.storage();
    let mut notices = Vec::new();
    let mut add =
        |code: &str, weight: Weight, text: String| notices.push(Notice::new(code, weight, text));
    let kind = &storage.kind;
    match storage.medium {
        Medium::Device => {}
        Medium::Memory => add(
            "memory",
            Weight::Danger,
            format!(
                "This directory is in main memory ({kind}): nothing written here survives a power cut, and the figures say nothing about a disk."
            ),
        ),
        Medium::Network => add(
            "network",
            Weight::Warning,
            format!(
                "This directory is on another machine ({kind}): its server decides what a sync means, and writes and flushes cannot be counted."
            ),
        ),
        Medium::Passthrough => add(
            "passthrough",
            Weight::Warning,
            format!(
                "This directory is served by the host or by another program ({kind}): that decides what a sync means, and writes and flushes cannot be counted."
            ),
        ),
        Medium::Unknown => add(
            "unknown-device",
            Weight::Warning,
            format!(
                "The devices below this directory ({kind}) cannot be seen: writes and flushes cannot be counted."
            ),
        ),
    }
    if filesystem.upper.is_some() {
        add(
            "overlay",
            Weight::Note,
            format!(
                "This directory is on an overlay, as in a container; new files go to the upper layer, {kind} on {}.",
                storage.mount_point.display()
            ),
        );
    }
    if storage.copy_on_write {
        add(
            "copy-on-write",
            Weight::Note,
            format!(
                "{kind} is copy-on-write: an overwrite goes to a new place, so preallocating gains little."
            ),
        );
    }
    if let Some(compression) = &storage.compression {
        add(
            "compression",
            Weight::Note,
            format!(
                "Compression is on ({compression}); the data written here cannot be compressed, zeros can."
            ),
        );
    }
    if let Some(option) = dangerous_option(storage) {
        add(
            "no-barrier",
            Weight::Danger,
            format!(
                "The filesystem is mounted with {option}: a sync does not flush the disk's cache."
            ),
        );
    }
    let no_journal = may_lose_new_files(filesystem).then(|| {
        let text = format!("This {kind} has no journal: a power cut can lose new, grown and renamed files, synced or not.");
        let details = "After a power cut e2fsck may ask a person what to do. tune2fs -O has_journal DEVICE, while it is not mounted, adds one.";
        Notice::new(Results::NO_JOURNAL, Weight::Warning, text).because(details)
    });
    let disks = disks(storage);
    if let Some((disk, driver)) = virtual_disk(storage) {
        add(
            "virtual-disk",
            Weight::Note,
            format!(
                "{} is a virtual disk ({driver}): what is counted is flushes issued and acknowledged; whether the medium has the data, only pulling the plug would show.",
                disk.name
            ),
        );
    }
    if !disks.is_empty()
        && disks
            .iter()
            .all(|disk| disk.write_cache == Some(WriteCache::NoneOrProtected))
    {
        add("no-volatile-cache", Weight::Note,
            "The disk says that it has no volatile cache, so the kernel sends no flushes: durability rests on that word.".into());
    }
    if let Some(disk) = memory_disk(storage) {
        add(
            "memory-disk",
            Weight::Danger,
            format!(
                "{} is a disk in main memory: nothing written here survives a power cut.",
                disk.name
            ),
        );
    }
    if is_nearly_full(filesystem) {
        add(
            "nearly-full",
            Weight::Warning,
            format!(
                "The filesystem is nearly full ({} left): allocation is slower than it usually is.",
                bytes_text(storage.space.available_bytes)
            ),
        );
    }
    notices.extend(no_journal);
    notices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::fixtures::filesystem;

    #[test]
    fn a_missing_journal_is_warned_of_where_there_could_be_one() {
        let warned = |kind: &str, journal: Option<bool>| {
            let mut filesystem = filesystem(kind, Medium::Device);
            filesystem.journal = journal;
            let notices = notices(&filesystem);
            notices
                .iter()
                .any(|notice| notice.code == Results::NO_JOURNAL)
        };
        assert!(warned("ext4", Some(false)) && warned("ext2", Some(false)));
        assert!(!warned("ext4", Some(true)) && !warned("ext4", None));
        assert!(!warned("vfat", Some(false)));
    }
}
