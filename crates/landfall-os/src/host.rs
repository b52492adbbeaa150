//! The machine.

use std::fs;

use procfs::{Current, Meminfo};

/// The machine that a measurement ran on.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
pub struct Host {
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Processor architecture.
    pub architecture: String,
    /// Processor model, where the kernel tells.
    pub cpu: Option<String>,
    /// Processors that this process may use.
    pub cpus: usize,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// The hypervisor, if the machine is virtual and says so.
    pub hypervisor: Option<String>,
}

impl Host {
    /// Describes this machine.
    pub fn this() -> Host {
        let uname = rustix::system::uname();
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Host {
            kernel: uname.release().to_string_lossy().into_owned(),
            architecture: uname.machine().to_string_lossy().into_owned(),
            cpu: field(&cpuinfo, "model name"),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: Meminfo::current().map_or(0, |memory| memory.mem_total),
            hypervisor: hypervisor(&cpuinfo),
        }
    }
}

fn field(cpuinfo: &str, name: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn hypervisor(cpuinfo: &str) -> Option<String> {
    let flagged = field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let named = ["/sys/class/dmi/id/sys_vendor", "/sys/hypervisor/type"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .map(|text| text.trim().to_owned())
        .find(|text| !text.is_empty());
    flagged.then(|| named.unwrap_or_else(|| "present, without a name".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_memory() {
        let host = Host::this();
        assert!(!host.kernel.is_empty() && host.cpus > 0 && host.memory_bytes > 0);
    }

    #[test]
    fn a_hypervisor_is_told_by_its_flag() {
        assert_eq!(hypervisor("flags\t\t: fpu vme\n"), None);
        assert!(hypervisor("flags\t\t: fpu hypervisor\n").is_some());
    }
}
