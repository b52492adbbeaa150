//! What a commit of the engine's log costs the device, counted by a recorder.

use std::thread;
use std::time::Duration;

use landfall::{Log, Options};
use landfall_lab::{Site, Stop};
use landfall_os::DeviceCounters;

fn skip(why: &str) {
    assert!(std::env::var_os("LANDFALL_NO_SKIP").is_none(), "{why}");
    println!("skipped: {why}");
}

/// The counters once nobody writes any more.
fn settled(site: &Site) -> DeviceCounters {
    let read = || site.counters().unwrap();
    let mut last = read();
    loop {
        thread::sleep(Duration::from_millis(200));
        let now = read();
        if now.since(&last).write_requests == 0 {
            return now;
        }
        last = now;
    }
}

#[test]
fn a_commit_is_one_write_and_one_flush() {
    const COMMITS: u64 = 500;
    for filesystem in ["ext4", "xfs", "ext3"] {
        let directory = tempfile::tempdir().unwrap();
        let spec = format!("recorder:{filesystem}").parse().unwrap();
        let site = match Site::make(&spec, directory.path(), 128 << 20, &Stop::default()) {
            Ok(site) => site,
            Err(error) => {
                skip(&error.to_string());
                continue;
            }
        };
        let log = Log::open(site.private().join("log"), Options::default()).unwrap();
        log.append_durable(b"the first may cost more").unwrap();
        let before = settled(&site);
        for number in 0..COMMITS {
            log.append_durable(&[number as u8; 200]).unwrap();
        }
        let spent = site.counters().unwrap().since(&before);
        assert_eq!(spent.data_writes, Some(COMMITS), "{filesystem}");
        assert_eq!(spent.flushes, COMMITS, "{filesystem}");
        assert_eq!(spent.write_bytes, COMMITS * 512, "{filesystem}");
        let counters = log.counters();
        assert_eq!(
            (counters.groups, counters.flushes),
            (COMMITS + 1, COMMITS + 1)
        );
        log.close().unwrap();
        site.close().unwrap();
    }
}
