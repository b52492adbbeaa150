//! What the subject finds of what it wrote, and of what somebody else did to it.

use std::os::unix::fs::FileExt;

use super::super::fixtures::*;
use super::*;

const RECORD: usize = 8192;

#[test]
fn every_strategy_keeps_what_it_wrote() {
    for method in SyncMethod::all() {
        let others = format!("method={method} allocation=overwrite records=20");
        runs_and_finds_all("files", &others);
    }
    for allocation in Allocation::ALL {
        runs_and_finds_all("files", &format!("allocation={allocation} records=20"));
        if allocation != Allocation::Append {
            let mapped = format!("allocation={allocation} method=msync records=20");
            runs_and_finds_all("files", &mapped);
        }
    }
}

#[test]
fn threads_keep_what_they_wrote() {
    for files in ["shared", "each"] {
        for method in SyncMethod::all() {
            let threads = format!("threads=4 files={files} method={method} allocation=overwrite");
            runs_and_finds_all("files", &threads);
        }
        for allocation in Allocation::ALL {
            let threads = format!("threads=4 files={files} allocation={allocation} records=20");
            runs_and_finds_all("files", &threads);
        }
    }
    let joined = "threads=4 acknowledge=joined";
    runs_and_finds_all("files", joined);
}

#[test]
fn acknowledging_early_changes_nothing_without_a_crash() {
    for method in SyncMethod::all() {
        let settings = format!("method={method} allocation=sparse acknowledge=early");
        runs_and_finds_all("files", &settings);
    }
}

/// Looks at the file whenever something is acknowledged.
struct Looking<'a>(Counting, &'a Path, Vec<u64>);

impl AckSink for Looking<'_> {
    fn send(&mut self) -> Option<u64> {
        self.0.send()
    }

    fn acknowledge(&mut self, transaction: u64) {
        self.0.acknowledge(transaction);
        self.2.push(fs::metadata(self.1).unwrap().len());
    }
}

#[test]
fn early_is_before_the_call_that_syncs() {
    let lengths = |settings: &str| {
        let subject = subject("files", settings);
        let directory = directory();
        let path = directory.path().join(FILE);
        subject.prepare(directory.path(), &Stop::default()).unwrap();
        let mut sink = Looking(Counting::new(3), &path, Vec::new());
        subject
            .run(directory.path(), &mut sink, &Stop::default())
            .unwrap();
        sink.2
    };
    assert_eq!(lengths("method=o_dsync"), [8192, 16384, 24576]);
    assert_eq!(
        lengths("method=o_dsync acknowledge=early"),
        [0, 8192, 16384]
    );
    // Written, but not synced yet.
    assert_eq!(lengths("acknowledge=early"), [8192, 16384, 24576]);
}

#[test]
fn a_full_file_ends_the_run() {
    let subject = subject("files", "records=5");
    let directory = directory();
    let mut sink = Counting::new(20);
    subject.prepare(directory.path(), &Stop::default()).unwrap();
    subject
        .run(directory.path(), &mut sink, &Stop::default())
        .unwrap();
    assert_eq!((sink.sent, sink.acknowledged.len()), (5, 5));
}

/// What is found after `harm` was done to 20 records.
fn found_after(settings: &str, harm: impl FnOnce(&File)) -> Recovered {
    let subject = subject("files", settings);
    let directory = run(subject.as_ref(), 20).unwrap();
    let path = directory.path().join(FILE);
    harm(&File::options().read(true).write(true).open(path).unwrap());
    check(subject.as_ref(), directory.path())
}

#[test]
fn a_file_cut_short_has_lost_its_end() {
    let found = found_after("", |file| file.set_len(18 * 8192 + 4096).unwrap());
    let expected = Recovered {
        partial: set(&[19]),
        ..all_whole(18)
    };
    assert_eq!(found, expected);
}

#[test]
fn a_hole_is_a_record_that_is_gone() {
    let zeros = [0; RECORD];
    let found = found_after("", |file| file.write_all_at(&zeros, 4 * 8192).unwrap());
    assert!(!found.whole.contains(&5) && found.partial.is_empty());
    let half = [0; RECORD / 2];
    let found = found_after("", |file| file.write_all_at(&half, 4 * 8192).unwrap());
    assert_eq!(found.partial, set(&[5]));
}

#[test]
fn what_was_there_before_is_no_record() {
    let mut old = [0; RECORD];
    content::fill(&mut old, 0, 4);
    let found = found_after("allocation=overwrite", |file| {
        file.write_all_at(&old[..512], 4 * 8192).unwrap();
        file.write_all_at(&[0; 512], 19 * 8192).unwrap();
    });
    assert_eq!(found.partial, set(&[5, 20]));
    assert!(found.invented.is_empty() && found.whole.len() == 18);
}

#[test]
fn what_nobody_wrote_is_invented() {
    let found = found_after("", |file| file.write_all_at(&[7; 1024], 512).unwrap());
    assert_eq!(
        found.invented,
        ["2 of 16 sectors of slot 0 hold what nobody wrote there"]
    );
    assert_eq!(found.partial, set(&[1]));
    // A record in another one's slot, and one beyond the last.
    let mut record = [0; RECORD];
    content::fill(&mut record, 9, 2);
    let found = found_after("", |file| file.write_all_at(&record, 2 * 8192).unwrap());
    assert!(found.invented[0].starts_with("16 of 16 sectors of slot 2"));
    assert!(!found.whole.contains(&3));
    content::fill(&mut record, 21, 20);
    let found = found_after("records=20", |file| {
        file.write_all_at(&record, 20 * 8192).unwrap();
    });
    assert!(found.invented[0].starts_with("16 of 16 sectors of slot 20"));
}

#[test]
fn a_record_that_was_never_sent_is_found() {
    let mut record = [0; RECORD];
    content::fill(&mut record, 30, 29);
    let found = found_after("", |file| file.write_all_at(&record, 29 * 8192).unwrap());
    // The prover knows that it was not sent.
    assert!(found.whole.contains(&30) && found.invented.is_empty());
}

#[test]
fn files_of_several_threads_are_told_apart() {
    let subject = subject("files", "threads=2 files=each records=4");
    let directory = run(subject.as_ref(), 4).unwrap();
    let [one, other] = ["records-1", "records-2"].map(|name| directory.path().join(name));
    let lengths = [&one, &other].map(|path| fs::metadata(path).unwrap().len());
    assert_eq!(lengths.iter().sum::<u64>(), 4 * RECORD as u64);
    // The first record of each, of transactions of their own.
    let mut record = [0; RECORD];
    content::fill(&mut record, 7, 0);
    fs::write(&one, record).unwrap();
    content::fill(&mut record, 9, 4);
    fs::write(&other, record).unwrap();
    let found = check(subject.as_ref(), directory.path());
    assert!(found.whole == set(&[7, 9]) && found.invented.is_empty());
    // One that is there twice, and one that is of the other file.
    content::fill(&mut record, 7, 4);
    fs::write(&other, record).unwrap();
    let found = check(subject.as_ref(), directory.path());
    assert_eq!(
        found.invented,
        ["16 of 16 sectors of slot 0 of file 2 hold what nobody wrote there"]
    );
    fs::copy(&one, &other).unwrap();
    let found = check(subject.as_ref(), directory.path());
    assert!(found.whole == set(&[7]) && found.invented.len() == 1);
    fs::remove_file(&one).unwrap();
    let found = check(subject.as_ref(), directory.path());
    assert_eq!(found, Recovered::damaged("the file is missing"));
}

#[test]
fn threads_end_when_every_file_is_full() {
    for (settings, room) in [("threads=3", 5), ("threads=3 files=each", 15)] {
        let subject = subject("files", &format!("{settings} records=5"));
        let directory = directory();
        let mut sink = Counting::new(20);
        let stop = Stop::default();
        subject.prepare(directory.path(), &stop).unwrap();
        subject.run(directory.path(), &mut sink, &stop).unwrap();
        assert_eq!((sink.sent, sink.acknowledged.len()), (room, room as usize));
    }
}

#[test]
fn a_missing_file_is_damage() {
    let subject = subject("files", "");
    let found = check(subject.as_ref(), directory().path());
    assert_eq!(found, Recovered::damaged("the file is missing"));
}

#[test]
fn what_cannot_be_is_refused() {
    assert_eq!(
        refusal("files", &[("method", "msync")]),
        "files method=msync allocation=append size=8K: a mapping cannot make a file grow"
    );
    for files in ["shared", "each"] {
        let alone = [("acknowledge", "joined"), ("files", files)];
        assert!(refusal("files", &alone).ends_with(": no other thread syncs the same file"));
    }
    assert!(refusal("files", &[("method", "sync")]).contains("there are: fdatasync, "));
    assert!(refusal("files", &[("size", "700")]).contains("a multiple of 512"));
    assert!(refusal("files", &[("records", "0")]).contains("from 1 to 131072"));
}
