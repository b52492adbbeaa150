//! A Slurm of two nodes on this machine: a controller and two daemons, with a `munged` and a key of their own.
//!
//! All of it is in one temporary directory, and talks over ports and a socket of its own; an installed Slurm is not touched. It ends with
//! what is made by [`Slurm::start`], also when a test fails; and with the thread that started it, also when that is killed.

use std::fs::{self, File};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use landfall_os::end_with_this_thread;
use rustix::process::Signal;
use tempfile::TempDir;

use super::{comes_true, is_root, skip};

const PROGRAMS: [&str; 5] = ["slurmctld", "slurmd", "sbatch", "squeue", "munged"];

/// A Slurm that runs.
pub struct Slurm {
    dir: TempDir,
    /// In the order in which they were started.
    daemons: Vec<Child>,
}

impl Slurm {
    /// Nothing, said why, where there is no Slurm.
    pub fn start() -> Option<Slurm> {
        if !is_root() {
            skip("Slurm's daemons and proofs need root");
            return None;
        }
        if let Some(missing) = PROGRAMS.into_iter().find(|name| find(name).is_none()) {
            skip(&format!(
                "{missing} is not installed (Debian: slurmctld slurmd slurm-client munge)"
            ));
            return None;
        }
        // Not below the target directory: a socket's path may have 107 characters.
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let mut slurm = Slurm {
            dir,
            daemons: Vec::new(),
        };
        slurm.authenticate();
        fs::write(slurm.at("slurm.conf"), slurm.configuration()).unwrap();
        for name in ["state", "spool.n1", "spool.n2"] {
            fs::create_dir(slurm.at(name)).unwrap();
        }
        let configuration = slurm.at("slurm.conf").display().to_string();
        slurm.daemon("slurmctld", &["-D", "-f", &configuration]);
        slurm.daemon("slurmd", &["-D", "-N", "n1", "-f", &configuration]);
        slurm.daemon("slurmd", &["-D", "-N", "n2", "-f", &configuration]);
        let idle = || slurm.ask("sinfo", &["--noheader", "--format=%D %t"]) == "2 idle\n";
        assert!(comes_true(idle), "no two nodes: {}", slurm.logs());
        Some(slurm)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `munged` with a key that nobody else knows, and answers at its socket.
    fn authenticate(&mut self) {
        // It refuses a socket that not everybody reaches.
        fs::set_permissions(self.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut key = [0; 128];
        File::open("/dev/urandom")
            .unwrap()
            .read_exact(&mut key)
            .unwrap();
        fs::write(self.at("munge.key"), key).unwrap();
        fs::set_permissions(self.at("munge.key"), fs::Permissions::from_mode(0o600)).unwrap();
        let files = [
            ("--key-file", "munge.key"),
            ("--socket", "munge.socket"),
            ("--pid-file", "munge.pid"),
            ("--log-file", "munge.log"),
            ("--seed-file", "munge.seed"),
        ];
        let files = files.map(|(option, name)| format!("{option}={}", self.at(name).display()));
        let mut words: Vec<&str> = files.iter().map(String::as_str).collect();
        words.push("--foreground");
        self.daemon("munged", &words);
        assert!(
            comes_true(|| self.at("munge.socket").exists()),
            "{}",
            self.logs()
        );
    }

    fn configuration(&self) -> String {
        // All at once, so that they differ.
        let ports = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [controller, first, second] = ports.map(|port| port.local_addr().unwrap().port());
        let name = rustix::system::uname();
        let name = name.nodename().to_str().expect("a host's name is text");
        let host = name.split('.').next().unwrap_or(name);
        let dir = self.dir.path().display();
        format!(
            "\
ClusterName=landfall
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool.%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.%n.log
SlurmdParameters=config_overrides
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=1
PartitionName=all Nodes=n1,n2 Default=YES State=UP
"
        )
    }

    fn daemon(&mut self, program: &str, words: &[&str]) {
        let log = self.at(&format!("{program}.{}.out", self.daemons.len()));
        let log = File::create(log).unwrap();
        let mut command = Command::new(find(program).expect("it was looked for"));
        command.args(words).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        end_with_this_thread(&mut command, Signal::KILL);
        self.daemons.push(command.spawn().expect("it can be run"));
    }

    /// A command for this Slurm.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("SLURM_CONF", self.at("slurm.conf"))
            .stdin(Stdio::null());
        command
    }

    /// What a command prints; its complaints, where it has any.
    fn ask(&self, program: &str, words: &[&str]) -> String {
        let output = self.command(program).args(words).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// Submits a job file in `cwd`; returns its number. What `landfall` it means is the first one in `programs`.
    #[track_caller]
    pub fn submit(&self, cwd: &Path, programs: &Path, words: &[&str]) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        let output = self
            .command("sbatch")
            .arg("--parsable")
            .args(words)
            .current_dir(cwd)
            .env("PATH", format!("{}:{path}", programs.display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?} {}", self.logs());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Waits until no job waits or runs.
    pub fn wait(&self) {
        let done = || self.ask("squeue", &["--noheader"]).is_empty();
        assert!(
            comes_true(done),
            "{} {}",
            self.ask("squeue", &[]),
            self.logs()
        );
    }

    /// On which nodes the tasks of a job ran.
    pub fn nodes(&self, job: &str) -> Vec<String> {
        let said = self.ask("scontrol", &["show", "job", job]);
        let nodes = said
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("NodeList="));
        let mut nodes: Vec<String> = nodes.map(str::to_owned).collect();
        nodes.sort();
        nodes.dedup();
        nodes
    }

    fn logs(&self) -> String {
        self.logs_of(self.dir.path())
    }

    /// What is in the logs of a directory: of ours, or that of a job.
    pub fn logs_of(&self, dir: &Path) -> String {
        let files = fs::read_dir(dir).unwrap();
        let text = files.filter_map(|file| {
            let path = file.ok()?.path();
            let ending = path.extension()?;
            let is_log = ending == "log" || ending == "out";
            is_log.then(|| {
                format!(
                    "{}:\n{}",
                    path.display(),
                    fs::read_to_string(&path).unwrap_or_default()
                )
            })
        });
        text.collect()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // What still runs, of a test that failed, is no child of ours; it is told to stop, and has a while to.
        let _ = self.ask("scancel", &["--user=root"]);
        for _ in 0..200 {
            if self.ask("squeue", &["--noheader"]).is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // The directory goes with them: there is nothing to write.
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Where Debian has daemons, which is not on everybody's path.
    let dirs = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    dirs.map(|dir| dir.join(program))
        .find(|file| file.is_file())
}
