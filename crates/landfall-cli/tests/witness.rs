//! Proves the witness on disks whose power is really taken away: one that lies about its flushes is caught each time, and an honest
//! one never accused; and that the witness itself forgets nothing, invents nothing, and hears no stranger.
//!
//! A disk is a recorder; the cut is the end of its recording. What a power cut could have left of it, drawn at random from
//! all that this disk may lose, is then served by another device, which is checked in its place.
//!
//! Each test runs in a network namespace of its own. They need root, FUSE, loop devices, unshare and ip; where one is
//! missing they say so and pass.

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{Ended, comes_true, is_root, landfall, run, scratch, skip};
use landfall_os::{LoopDevice, Mount, isolate_mounts};
use landfall_recorder::crash::{Choice, CrashDisk, StateName, Walker};
use landfall_recorder::{EventKind, Fault, Options, Recorder, Recording};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const HOST: &str = "127.0.0.1";
/// Cuts of a disk that lies, and of one that does not.
const CUTS: u32 = 20;
/// Bytes of a disk.
const SIZE: u64 = 4 << 20;
/// Ways to write that are meant to be durable.
const METHODS: [&str; 5] = [
    "fdatasync",
    "direct+o_dsync",
    "fsync",
    "direct+fdatasync",
    "o_sync",
];
/// Set where a test runs in its namespace.
const INSIDE: &str = "LANDFALL_TEST_IN_NAMESPACE";

/// Runs `body`, the whole of the test `name`, in a network namespace in which there is nothing but this.
fn alone(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    if !is_root() {
        return skip("a network namespace needs root");
    }
    let own = std::env::current_exe().expect("a test is a program");
    let mut command = Command::new("unshare");
    command.args([
        "--net",
        "sh",
        "-c",
        "ip link set lo up && exec \"$@\"",
        "sh",
    ]);
    command.arg(own).args(["--exact", name, "--nocapture"]);
    match command.env(INSIDE, "1").output() {
        Ok(output) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
            print!("{stdout}");
            assert!(output.status.success(), "{stdout}\n{stderr}");
            assert!(stdout.contains("1 passed"), "{stdout}");
        }
        Err(error) => skip(&format!("unshare: {error}")),
    }
}

/// The exit code of a check, and what its document says of the one disk.
type Checked = (Option<i32>, Value);

/// A witness, and a place for everything.
struct Scene {
    dir: TempDir,
    witness: Option<Child>,
}

impl Scene {
    fn new() -> Scene {
        let dir = scratch();
        for (name, text) in [
            ("token", "a token of thirty-two characters"),
            ("other", "another token of some length"),
        ] {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        Scene { dir, witness: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts the witness, and waits until it listens.
    fn serve(&mut self, more: &[&str]) {
        let mut command = landfall();
        command
            .args([
                "witness",
                "serve",
                "state",
                "--listen",
                HOST,
                "--token-file",
                "token",
            ])
            .args(more)
            .current_dir(self.dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut witness = command.spawn().unwrap();
        let mut line = String::new();
        let stdout = witness.stdout.as_mut().unwrap();
        // Of one byte: what comes later is read at its end.
        BufReader::with_capacity(1, stdout)
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, format!("listening on {HOST}:7747\n"));
        self.witness = Some(witness);
    }

    fn end_of_witness(&mut self) -> Ended {
        self.witness
            .take()
            .unwrap()
            .wait_with_output()
            .unwrap()
            .into()
    }

    fn signal_witness(&self, signal: Signal) {
        send(self.witness.as_ref().unwrap(), signal);
    }

    /// Runs `landfall witness` with the token.
    fn run(&self, words: &[&str]) -> Ended {
        run(
            self.dir.path(),
            [&["witness"], words, &["--token-file", "token"]].concat(),
        )
    }

    /// Starts a writer, whose number is in the file `writer`.
    fn write(&self, target: &str, more: &[&str]) -> Child {
        let words = [
            &["witness", "write", target, HOST, "--token-file", "token"],
            more,
        ]
        .concat();
        let writer = landfall()
            .args(words)
            .current_dir(self.dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        fs::write(self.path("new"), format!("{}\n", writer.id())).unwrap();
        fs::rename(self.path("new"), self.path("writer")).unwrap();
        writer
    }

    /// Checks, and returns the exit code and what the document says of the one disk.
    fn check(&self, target: &str, more: &[&str]) -> Checked {
        let words = [&["check", target, HOST, "--json", "-"], more].concat();
        let ended = self.run(&words);
        assert_eq!(ended.stderr, "", "{ended:#?}");
        let document: Value = serde_json::from_str(&ended.stdout).expect("a document");
        let schema = serde_json::from_str(&landfall_results::witness::witness_schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).expect("the schema is one");
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
        (ended.code, document["witnessed"][0].clone())
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(mut witness) = self.witness.take() {
            let _ = witness.kill();
            let _ = witness.wait();
        }
    }
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("our own child can be sent a signal");
}

fn killed(mut child: Child) {
    send(&child, Signal::KILL);
    child.wait().unwrap();
}

/// The operator's command: the writer stands still, whatever it was doing.
const CUT: &str =
    "until [ -s writer ]; do sleep 0.01; done; kill -STOP $(cat writer) && touch cut-$LANDFALL_CUT";

/// Whether the state lacks a write that the disk had said is durable, and that is missed: one that was written over is not, the last
/// may have been in flight, and one more block was perhaps to be written over next, which the disk had not heard of yet.
fn lacks_something(recording: &Recording, walker: &mut Walker<'_>, name: &StateName) -> bool {
    let fates = walker.fates(name).unwrap();
    let mut arrived = BTreeMap::new();
    for fate in &fates {
        if let EventKind::Write { offset, .. } = recording.events()[fate.event].kind {
            arrived.insert(offset, fate.arrived.iter().all(|arrived| *arrived));
        }
    }
    let last = fates.last().map(|fate| recording.events()[fate.event].kind);
    if let Some(EventKind::Write { offset, .. }) = last {
        arrived.remove(&offset);
    }
    arrived.values().filter(|arrived| !**arrived).count() > 1
}

/// What the power cut may have left, drawn by `seed` from all that the disk had not flushed. Of a disk that lies one is drawn
/// in which something is missing: for now and then it is lucky, and then there is nothing to be caught.
fn after_cut(recorder: &Recorder, dir: &Path, seed: u64) -> CrashDisk {
    let recording = recorder.finish().unwrap();
    let mut walker = Walker::new(&recording).unwrap();
    let cut = walker.epochs().len() as u32 - 1;
    let mut names = (0..).map(|number| StateName {
        seed,
        cut,
        choice: Choice::Drawn(number),
    });
    let is_lying = recording
        .events()
        .iter()
        .any(|event| event.kind == EventKind::LyingFlush);
    let name = names.find(|name| !is_lying || lacks_something(&recording, &mut walker, name));
    let name = name.unwrap();
    let composition = walker.composition(&name).unwrap();
    let mut disk = CrashDisk::start(&recording, 64 << 20, dir).unwrap();
    disk.load(&recording, cut, &composition.pieces).unwrap();
    disk
}

fn recorder(dir: &Path, size: u64, faults: &[Fault]) -> Option<Recorder> {
    let options = Options {
        directory: dir.to_owned(),
        ..Options::new(size)
    };
    match Recorder::start(&options) {
        Ok(recorder) => {
            recorder.set_faults(faults.to_vec());
            Some(recorder)
        }
        Err(error) => {
            skip(&format!("no recorder: {error}"));
            None
        }
    }
}

/// Cuts the power of such a disk again and again, at random moments; what each check said, and how the witness ended.
fn cut_again_and_again(faults: &[Fault]) -> Option<(Vec<Checked>, Ended)> {
    isolate_mounts().unwrap();
    let mut scene = Scene::new();
    let cuts = CUTS.to_string();
    let often = [
        "--cuts", &cuts, "--after", "5..90", "--off", "0.1", "--seed", "7",
    ];
    scene.serve(&[&["--cut-with", CUT], &often[..]].concat());
    let mut checked = Vec::new();
    for cut in 1..=CUTS {
        let recorder = recorder(scene.dir.path(), SIZE, faults)?;
        recorder.record().unwrap();
        let device = recorder.device().path().to_str().unwrap().to_owned();
        let method = METHODS[cut as usize % METHODS.len()];
        let how = [
            "--as",
            "disk",
            "--blocks",
            "16",
            "--destroy",
            &device,
            "--method",
            method,
        ];
        let mut writer = scene.write(&device, &how);
        let is_cut = scene.path(&format!("cut-{cut}"));
        let came = comes_true(|| is_cut.exists() || matches!(writer.try_wait(), Ok(Some(_))));
        assert!(
            came && is_cut.exists(),
            "{:#?}",
            Ended::from(writer.wait_with_output().unwrap())
        );
        let disk = after_cut(&recorder, scene.dir.path(), u64::from(cut));
        fs::remove_file(scene.path("writer")).unwrap();
        killed(writer);
        let device = disk.device().path().to_str().unwrap().to_owned();
        // This machine goes on: only the disk has lost its power.
        checked.push(scene.check(&device, &["--as", "disk", "--cut=disk"]));
    }
    Some((checked, scene.end_of_witness()))
}

#[test]
fn a_disk_that_lies_is_caught_in_20_cuts_of_20() {
    alone("a_disk_that_lies_is_caught_in_20_cuts_of_20", || {
        let Some((checked, witness)) = cut_again_and_again(&[Fault::LyingFlush]) else {
            return;
        };
        for (code, one) in &checked {
            let verdict = &one["verdict"];
            assert_eq!(*code, Some(3), "{one:#}");
            assert_eq!(
                (&verdict["outcome"], &verdict["cut"]),
                (&"lost".into(), &"commanded".into())
            );
            assert_eq!(verdict["is_counted"], true);
            let losses = verdict["losses"].as_array().unwrap();
            assert_eq!(losses.len() as u64, verdict["lost"].as_u64().unwrap());
            for loss in losses {
                assert_eq!(
                    loss["offset"].as_u64(),
                    loss["block"].as_u64().map(|block| block * 4096)
                );
                assert!(
                    loss["promised"].as_u64().unwrap() <= verdict["acknowledged"].as_u64().unwrap()
                );
                assert!(loss["seconds_before_last"].as_f64().unwrap() >= 0.0);
            }
        }
        let tally = &checked.last().unwrap().1["tally"];
        assert_eq!(
            (&tally["cuts"], &tally["losing"]),
            (&CUTS.into(), &CUTS.into())
        );
        // It ends by itself after the last check, and says what came out.
        assert_eq!(witness.code, Some(3), "{witness:#?}");
        assert!(
            witness
                .stdout
                .contains("lost acknowledged writes in 20 of 20 power cuts"),
            "{witness:#?}"
        );
    });
}

#[test]
fn an_honest_disk_is_accused_in_0_cuts_of_20() {
    alone("an_honest_disk_is_accused_in_0_cuts_of_20", || {
        let Some((checked, witness)) = cut_again_and_again(&[]) else {
            return;
        };
        for (code, one) in &checked {
            let verdict = &one["verdict"];
            assert_eq!(*code, Some(0), "{one:#}");
            assert_eq!(
                (&verdict["outcome"], &verdict["lost"]),
                (&"kept".into(), &0.into())
            );
            // After so many writes all blocks but one are promised.
            let acknowledged = verdict["acknowledged"].as_u64().unwrap();
            assert_eq!(
                verdict["promised"].as_u64(),
                Some(acknowledged.min(15)),
                "{one:#}"
            );
        }
        let tally = &checked.last().unwrap().1["tally"];
        assert_eq!(
            (&tally["cuts"], &tally["losing"]),
            (&CUTS.into(), &0.into())
        );
        assert_eq!(witness.code, Some(0), "{witness:#?}");
        let said = "lost nothing in 20 power cuts; with 95% confidence at most 13.9% of cuts lose something";
        assert!(witness.stdout.contains(said), "{witness:#?}");
    });
}

/// A file on ext4 on such a disk, which is cut once; what the check says.
fn cut_ext4(faults: &[Fault], cut: &[&str]) -> Option<Checked> {
    isolate_mounts().unwrap();
    let mut scene = Scene::new();
    scene.serve(&[]);
    let point = scene.path("mounted");
    fs::create_dir(&point).unwrap();
    let recorder = recorder(scene.dir.path(), 32 << 20, faults)?;
    let node = recorder.device().path().to_owned();
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-b", "4096"])
        .arg(&node)
        .status();
    if !made.is_ok_and(|made| made.success()) {
        skip("no mkfs.ext4");
        return None;
    }
    let mount = Mount::new(&node, &point, "ext4", "noatime").unwrap();
    File::open(&point).unwrap().sync_all().unwrap();
    recorder.record().unwrap();
    let writer = scene.write("mounted", &["--blocks", "16"]);
    let enough = || {
        let known = scene.run(&["status", HOST, "--json", "-"]);
        let document: Value = serde_json::from_str(&known.stdout).unwrap();
        document["witnessed"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
            && recorder.counts().writes > 60
    };
    assert!(comes_true(enough));
    send(&writer, Signal::STOP);
    let disk = after_cut(&recorder, scene.dir.path(), 3);
    killed(writer);
    mount.unmount().unwrap();
    let again = Mount::new(disk.device().path(), &point, "ext4", "noatime").unwrap();
    let checked = scene.check("mounted", cut);
    again.unmount().unwrap();
    Some(checked)
}

#[test]
fn a_file_on_ext4_is_lost_by_a_disk_that_lies_and_by_no_other() {
    alone(
        "a_file_on_ext4_is_lost_by_a_disk_that_lies_and_by_no_other",
        || {
            let Some((code, one)) = cut_ext4(&[], &["--cut=disk"]) else {
                return;
            };
            assert_eq!(
                (code, &one["verdict"]["outcome"]),
                (Some(0), &"kept".into()),
                "{one:#}"
            );
            assert_eq!(one["target"]["filesystem"]["kind"], "ext4");
            let (code, one) = cut_ext4(&[Fault::LyingFlush], &["--cut=disk"]).unwrap();
            assert_eq!(
                (code, &one["verdict"]["outcome"]),
                (Some(3), &"lost".into()),
                "{one:#}"
            );
            // Without a cut that anybody knows of it is no lie.
            let (code, one) = cut_ext4(&[Fault::LyingFlush], &[]).unwrap();
            assert_eq!(
                (code, &one["verdict"]["outcome"]),
                (Some(3), &"suspicious".into()),
                "{one:#}"
            );
            assert_eq!(one["tally"]["losing"], 0);
        },
    );
}

#[test]
fn a_witness_that_is_killed_forgets_nothing_and_invents_nothing() {
    alone(
        "a_witness_that_is_killed_forgets_nothing_and_invents_nothing",
        || {
            let mut scene = Scene::new();
            scene.serve(&[]);
            fs::create_dir(scene.path("data")).unwrap();
            let mut writer = scene.write("data", &["--blocks", "64", "--patience", "600"]);
            let mut random = fastrand(5);
            for _ in 0..8 {
                std::thread::sleep(std::time::Duration::from_millis(random() % 200));
                scene.signal_witness(Signal::KILL);
                assert_eq!(scene.end_of_witness().code, None);
                scene.serve(&[]);
            }
            assert!(
                matches!(writer.try_wait(), Ok(None)),
                "{:#?}",
                Ended::from(writer.wait_with_output().unwrap())
            );
            // The last one is there, and the writer may be between two tries.
            send(&writer, Signal::INT);
            let ended: Ended = writer.wait_with_output().unwrap().into();
            scene.signal_witness(Signal::KILL);
            scene.end_of_witness();
            scene.serve(&[]);
            let (code, one) = scene.check("data", &[]);
            assert_eq!(
                (code, &one["verdict"]["outcome"]),
                (Some(1), &"no-cut".into()),
                "{one:#}"
            );
            let acknowledged = one["verdict"]["acknowledged"].as_u64().unwrap();
            let said = format!("{acknowledged} writes were acknowledged; the writer has ended\n");
            assert_eq!(
                (ended.code, ended.stdout.as_str()),
                (Some(130), said.as_str()),
                "{ended:#?}"
            );
            assert!(acknowledged > 0);
        },
    );
}

/// Numbers from a seed.
fn fastrand(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

#[test]
fn a_verdict_is_evidence_for_its_own_disk_and_no_other() {
    let name = "a_verdict_is_evidence_for_its_own_disk_and_no_other";
    alone(name, || {
        let mut scene = Scene::new();
        scene.serve(&[]);
        fs::create_dir(scene.path("data")).unwrap();
        let how = ["write", "data", HOST, "--writes", "40", "--blocks", "16"];
        assert_eq!(scene.run(&how).code, Some(0));
        let file = fs::read_dir(scene.path("data")).unwrap().next().unwrap();
        let file = File::options()
            .write(true)
            .open(file.unwrap().path())
            .unwrap();
        let inspect = |more: &[&str]| run(scene.dir.path(), [&["inspect", "data"], more].concat());
        let advise = |more: &[&str]| {
            let words = ["advise", "data", "--check", "my.cnf"];
            run(scene.dir.path(), [&words, more].concat())
        };
        fs::write(scene.path("my.cnf"), "[mysqld]\nsync_binlog=1\n").unwrap();
        let without = inspect(&[]);
        assert!(
            words(&without).contains("no software on this host can know"),
            "{without:#?}"
        );
        // Nothing is known yet, and that is said.
        assert_eq!(scene.check("data", &[]).0, Some(1));
        let known = scene.run(&["status", HOST, "--json", "known.json"]);
        assert_eq!(known.code, Some(0));
        let with = inspect(&["--witness", "known.json"]);
        assert!(words(&with).contains("after no power cut yet"), "{with:#?}");
        // Cut, and lost.
        file.set_len(0).unwrap();
        let check = ["check", "data", HOST, "--cut=disk", "--json", "lost.json"];
        let lost = scene.run(&check);
        assert_eq!(lost.code, Some(3), "{lost:#?}");
        assert!(
            lost.stdout.starts_with("Lost: 15 of 15 promised blocks"),
            "{lost:#?}"
        );
        assert!(
            lost.stdout.contains("and 5 more: --json lists them"),
            "{lost:#?}"
        );
        let with = inspect(&["--witness", "lost.json"]);
        assert_eq!(with.code, Some(0), "{with:#?}");
        assert!(words(&with).contains("in 1 of 1 power cut;"), "{with:#?}");
        let advised = advise(&["--witness", "lost.json"]);
        assert_eq!(advised.code, Some(4), "{advised:#?}");
        assert!(
            words(&advised).contains("nothing is durable here"),
            "{advised:#?}"
        );
        // Checked again it counts once.
        let again = scene.run(&["check", "data", HOST, "--cut=disk"]);
        assert!(again.stdout.contains("and counts once"), "{again:#?}");
        assert!(again.stdout.contains("in 1 of 1 power cut;"), "{again:#?}");
        // Another disk's.
        let text = fs::read_to_string(scene.path("lost.json")).unwrap();
        let mut document: Value = serde_json::from_str(&text).unwrap();
        let target = &mut document["witnessed"][0]["target"];
        target["path"] = "/another".into();
        // In a container there may be none to be seen.
        if let Some(disk) = target["disks"].get_mut(0) {
            disk["serial"] = "another".into();
        }
        fs::write(scene.path("other.json"), document.to_string()).unwrap();
        fs::write(scene.path("none.json"), "{}").unwrap();
        for (file, said) in [
            (
                "other.json",
                "it is of a disk without a model (serial number another)",
            ),
            ("none.json", "it is no verdict of a witness"),
            ("missing.json", "No such file"),
        ] {
            for refused in [inspect(&["--witness", file]), advise(&["--witness", file])] {
                refused.assert_refused(2);
                assert!(
                    refused.stderr.contains(said) || file == "other.json",
                    "{refused:#?}"
                );
            }
        }
    });
}

#[test]
fn a_command_that_cuts_nothing_is_found_out() {
    alone("a_command_that_cuts_nothing_is_found_out", || {
        for (command, said) in [
            ("true", "that was no cut, and is not counted"),
            ("echo no such outlet >&2; exit 3", "no such outlet"),
        ] {
            let mut scene = Scene::new();
            let often = ["--cuts", "1", "--after", "3..9", "--off", "0"];
            scene.serve(&[&["--cut-with", command], &often[..]].concat());
            fs::create_dir(scene.path("data")).unwrap();
            let writer = scene.write("data", &["--patience", "0", "--writes", "2000"]);
            let ended: Ended = writer.wait_with_output().unwrap().into();
            assert_eq!(ended.code, Some(1), "{ended:#?}");
            let witness = scene.end_of_witness();
            assert_eq!(witness.code, Some(1), "{witness:#?}");
            assert!(witness.stderr.contains(said), "{witness:#?}");
            scene.serve(&[]);
            let (code, one) = scene.check("data", &[]);
            let outcome = &one["verdict"]["outcome"];
            assert_eq!((code, outcome), (Some(1), &"no-cut".into()), "{one:#}");
            assert_eq!(one["tally"]["cuts"], 0);
        }
    });
}

#[test]
fn a_command_that_cuts_nothing_counts_not_even_if_the_witness_is_stopped_meanwhile() {
    let name = "a_command_that_cuts_nothing_counts_not_even_if_the_witness_is_stopped_meanwhile";
    alone(name, || {
        let mut scene = Scene::new();
        let often = [
            "--cuts",
            "20",
            "--after",
            "3..9",
            "--off",
            "600",
            "--cut-with",
            "touch cut",
        ];
        scene.serve(&often);
        fs::create_dir(scene.path("data")).unwrap();
        let writer = scene.write("data", &["--patience", "0"]);
        assert!(comes_true(|| scene.path("cut").exists()));
        // The cut is remembered soon after.
        std::thread::sleep(std::time::Duration::from_secs(1));
        scene.signal_witness(Signal::INT);
        scene.end_of_witness();
        let ended: Ended = writer.wait_with_output().unwrap().into();
        assert_eq!(ended.code, Some(1), "{ended:#?}");
        scene.serve(&often);
        let how = ["--check", "--keep-going", "--writes", "1"];
        let again = scene.run(&[&["write", "data", HOST], &how[..]].concat());
        assert!(
            words(&again).contains("Proves nothing: there was no power cut since"),
            "{again:#?}"
        );
        assert!(words(&again).contains("did not start anew"), "{again:#?}");
        assert!(words(&again).contains("no power cut yet"), "{again:#?}");
        let witness = scene.end_of_witness();
        assert_eq!(witness.code, Some(1), "{witness:#?}");
        assert!(
            witness
                .stderr
                .contains("that was no cut, and is not counted"),
            "{witness:#?}"
        );
    });
}

/// What was printed, however its lines were broken.
fn words(ended: &Ended) -> String {
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn strangers_second_writers_and_slow_clients_are_refused_and_keep_nobody_away() {
    let name = "strangers_second_writers_and_slow_clients_are_refused_and_keep_nobody_away";
    alone(name, || {
        let mut scene = Scene::new();
        scene.serve(&[]);
        fs::create_dir(scene.path("data")).unwrap();
        // They say nothing, or one byte, and stay.
        let mut slow: Vec<TcpStream> = (0..20)
            .map(|_| TcpStream::connect((HOST, 7747)).unwrap())
            .collect();
        slow.iter_mut()
            .step_by(2)
            .for_each(|one| one.write_all(b"x").unwrap());
        let mut random = fastrand(9);
        for length in [1, 63, 64, 65, 200, 5000] {
            let mut stranger = TcpStream::connect((HOST, 7747)).unwrap();
            let noise: Vec<u8> = (0..length).map(|_| random() as u8).collect();
            // It may have been refused meanwhile.
            let _ = stranger.write_all(&noise);
            let _ = stranger.shutdown(std::net::Shutdown::Write);
            let _ = stranger.read_to_end(&mut Vec::new());
        }
        let other = ["witness", "status", HOST, "--token-file", "other"];
        let refused = run(scene.dir.path(), other);
        refused.assert_refused(1);
        assert!(
            refused.stderr.contains("it has another token"),
            "{refused:#?}"
        );
        let writer = scene.write("data", &[]);
        assert!(comes_true(|| scene
            .run(&["status", HOST])
            .stdout
            .contains("data")));
        for command in [
            &["write", "data", HOST, "--writes", "5"][..],
            &["check", "data", HOST],
        ] {
            let second = scene.run(command);
            second.assert_refused(1);
            assert!(
                second
                    .stderr
                    .contains("another writer is writing this stream"),
                "{second:#?}"
            );
        }
        send(&writer, Signal::INT);
        let ended: Ended = writer.wait_with_output().unwrap().into();
        assert_eq!(ended.code, Some(130), "{ended:#?}");
        scene.signal_witness(Signal::TERM);
        let witness = scene.end_of_witness();
        assert_eq!(witness.code, Some(130), "{witness:#?}");
        assert!(!witness.stderr.contains("panicked"), "{witness:#?}");
        let gone = scene.run(&["status", HOST]);
        gone.assert_refused(1);
        assert!(
            gone.stderr
                .contains("is 'landfall witness serve' running there?"),
            "{gone:#?}"
        );
    });
}

#[test]
fn a_check_sees_what_the_disk_has_and_not_what_is_cached() {
    alone(
        "a_check_sees_what_the_disk_has_and_not_what_is_cached",
        || {
            let mut scene = Scene::new();
            scene.serve(&[]);
            let image = scene.path("disk");
            File::create(&image).unwrap().set_len(SIZE).unwrap();
            let disk = match LoopDevice::attach(&image) {
                Ok(disk) => disk,
                Err(error) => return skip(&format!("no loop device: {error}")),
            };
            let device = disk.node().path().to_str().unwrap().to_owned();
            let how = [
                "write",
                &device,
                HOST,
                "--destroy",
                &device,
                "--blocks",
                "16",
                "--writes",
                "40",
            ];
            assert_eq!(scene.run(&how).code, Some(0));
            // All of it is in the page cache, and stays there while somebody has the device open.
            let mut held = File::open(&device).unwrap();
            held.read_to_end(&mut Vec::new()).unwrap();
            let below = File::options().write(true).open(&image).unwrap();
            below.write_all_at(&[0; 8 * 4096], 0).unwrap();
            below.sync_all().unwrap();
            let mut cached = [0; 8];
            held.read_exact_at(&mut cached, 0).unwrap();
            assert_eq!(&cached, b"LFWITBLK");
            let (code, one) = scene.check(&device, &["--cut=disk"]);
            assert_eq!(
                (code, &one["verdict"]["outcome"]),
                (Some(3), &"lost".into()),
                "{one:#}"
            );
            assert!(one["verdict"]["lost"].as_u64().unwrap() >= 7);
        },
    );
}

#[test]
fn a_device_is_named_twice_and_in_no_use() {
    alone("a_device_is_named_twice_and_in_no_use", || {
        isolate_mounts().unwrap();
        let mut scene = Scene::new();
        scene.serve(&[]);
        let image = scene.path("disk");
        File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let disk = match LoopDevice::attach(&image) {
            Ok(disk) => disk,
            Err(error) => return skip(&format!("no loop device: {error}")),
        };
        let device = disk.node().path().to_str().unwrap().to_owned();
        let write =
            |more: &[&str]| scene.run(&[&["write", &device, HOST, "--writes", "3"], more].concat());
        for (more, code, said) in [
            (&[][..], 2, "name it twice: --destroy"),
            (&["--destroy", "/dev/null"], 2, "twice alike"),
            (
                &["--destroy", &device, "--blocks", "65536"],
                4,
                "name fewer --blocks",
            ),
        ] {
            let refused = write(more);
            refused.assert_refused(code);
            assert!(refused.stderr.contains(said), "{refused:#?}");
        }
        let made = Command::new("mkfs.ext4").args(["-q", &device]).status();
        if made.is_ok_and(|made| made.success()) {
            let point = scene.path("mounted");
            fs::create_dir(&point).unwrap();
            let mount = Mount::new(Path::new(&device), &point, "ext4", "noatime").unwrap();
            let refused = write(&["--destroy", &device]);
            refused.assert_refused(4);
            assert!(refused.stderr.contains("is in use"), "{refused:#?}");
            mount.unmount().unwrap();
        }
        assert_eq!(
            write(&["--destroy", &device, "--blocks", "16"]).code,
            Some(0)
        );
        // Another disk in its place is not accused.
        drop(disk);
        let other = scene.path("other-disk");
        File::create(&other).unwrap().set_len(16 << 20).unwrap();
        let disk = LoopDevice::attach(&other).unwrap();
        let stream = device.clone();
        let known = scene.run(&["status", HOST, "--json", "-"]);
        let known: Value = serde_json::from_str(&known.stdout).unwrap();
        let name = known["witnessed"][0]["stream"].as_str().unwrap();
        assert!(name.ends_with(&stream), "{name}");
        let other = disk.node().path().to_str().unwrap();
        let refused = scene.run(&["check", other, HOST, "--as", name, "--cut=disk"]);
        refused.assert_refused(4);
        assert!(
            refused.stderr.contains("is not what was written to"),
            "{refused:#?}"
        );
    });
}
