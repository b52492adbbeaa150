//! Which disk it is, whatever the kernel calls it today; and which start of which machine.
//!
//! The kernel's names (`sda`) are given anew at each start. A serial number, or a world-wide name, stays.

use std::fs;
use std::path::Path;

use crate::BlockDevice;

/// A disk by what it says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
pub struct DiskIdentity {
    /// Model as the disk or its driver states it.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// World-wide name.
    pub wwid: Option<String>,
    /// Version of the disk's firmware. It may be updated: it is not a part of what the disk is known by.
    pub firmware: Option<String>,
    /// Size in bytes.
    pub size_bytes: u64,
}

impl DiskIdentity {
    /// Of a whole disk, as [`BlockDevice::counted_on`] returns them.
    pub fn of(disk: &BlockDevice) -> DiskIdentity {
        let directory = Path::new("/sys/class/block").join(&disk.name);
        let first = |files: &[&str]| files.iter().find_map(|file| text(&directory.join(file)));
        DiskIdentity {
            model: disk.model.clone(),
            serial: first(&["device/serial", "serial"])
                .or_else(|| scsi_serial(&directory.join("device/vpd_pg80"))),
            wwid: first(&["wwid", "device/wwid"]),
            firmware: first(&["device/firmware_rev", "device/rev", "device/fwrev"]),
            size_bytes: disk.size_bytes,
        }
    }

    /// What tells it from others of its model; `None` if it says nothing of the kind, as virtual disks and loop devices do not.
    /// Disks of two models may have the same.
    pub fn unique(&self) -> Option<&str> {
        self.serial.as_deref().or(self.wwid.as_deref())
    }

    /// All that must be equal of [the same](DiskIdentity::is_same) disk, as a text.
    pub fn identifying_text(&self) -> String {
        let said = |field: &Option<String>| field.clone().unwrap_or_default();
        format!(
            "model {}, serial number {}, world-wide name {}, {} bytes",
            said(&self.model),
            said(&self.serial),
            said(&self.wwid),
            self.size_bytes
        )
    }

    /// Whether both can be the same disk.
    pub fn is_same(&self, other: &DiskIdentity) -> bool {
        (&self.model, &self.serial, &self.wwid, self.size_bytes)
            == (&other.model, &other.serial, &other.wwid, other.size_bytes)
    }
}

/// A SCSI disk's page of its serial number: four bytes of header, and text.
fn scsi_serial(path: &Path) -> Option<String> {
    let page = fs::read(path).ok()?;
    printable(&String::from_utf8_lossy(page.get(4..)?))
}

fn text(path: &Path) -> Option<String> {
    printable(&fs::read_to_string(path).ok()?)
}

/// Without what pads it.
fn printable(text: &str) -> Option<String> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    (!text.is_empty()).then(|| text.to_owned())
}

/// What the kernel made up when it started: another one after each start of the machine.
pub fn boot_id() -> Option<String> {
    text(Path::new("/proc/sys/kernel/random/boot_id"))
}

/// What this installation of a system is known by, of systemd's or D-Bus's making; else the host's name.
pub fn machine_id() -> String {
    let files = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
    let id = files.iter().find_map(|file| text(Path::new(file)));
    id.unwrap_or_else(host_name)
}

/// The host's name; a container's is its own.
pub fn host_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> DiskIdentity {
        DiskIdentity {
            model: Some("A".into()),
            serial: Some("1".into()),
            size_bytes: 4096,
            ..DiskIdentity::default()
        }
    }

    #[test]
    fn a_disk_stays_the_same_with_other_firmware_and_no_other_change() {
        let updated = DiskIdentity {
            firmware: Some("2".into()),
            ..disk()
        };
        assert!(disk().is_same(&updated));
        assert_eq!(disk().identifying_text(), updated.identifying_text());
        for other in [
            DiskIdentity {
                serial: Some("2".into()),
                ..disk()
            },
            DiskIdentity {
                size_bytes: 8192,
                ..disk()
            },
            DiskIdentity {
                model: None,
                ..disk()
            },
        ] {
            assert!(!disk().is_same(&other));
            assert_ne!(disk().identifying_text(), other.identifying_text());
        }
        assert_eq!(disk().unique(), Some("1"));
        assert_eq!(DiskIdentity::default().unique(), None);
    }

    #[test]
    fn padding_is_no_part_of_a_serial_number() {
        assert_eq!(printable("  S1 \0\n").as_deref(), Some("S1"));
        assert_eq!(printable(" \0"), None);
    }

    #[test]
    fn this_machine_has_a_start_and_a_name() {
        assert!(boot_id().is_some() && !machine_id().is_empty());
    }
}
