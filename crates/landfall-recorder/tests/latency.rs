//! A device with a profile on a real kernel. Times have lower bounds only: this machine may be as slow as
//! it likes. What a profile takes exactly is tested in virtual time.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use landfall_recorder::{Options, Recorder};

/// Writes and flushes 20 times, which takes at least `each` every time; says why it cannot be done here,
/// which `LANDFALL_NO_SKIP` makes a failure.
fn twenty_flushes(profile: &str, each: Duration) {
    let options = Options {
        latency: Some(profile.parse().unwrap()),
        ..Options::new(16 << 20)
    };
    let recorder = match Recorder::start(&options) {
        Ok(recorder) => recorder,
        Err(error) if std::env::var_os("LANDFALL_NO_SKIP").is_none() => {
            println!("skipped: no recorder can be made here: {error}");
            return;
        }
        Err(error) => panic!("no recorder can be made here: {error}"),
    };
    let device = OpenOptions::new()
        .write(true)
        .open(recorder.device().path())
        .unwrap();
    let before = recorder.counts();
    let begin = Instant::now();
    for block in 0..20 {
        if block == 10 {
            // Begins another clock, which must not be the device's.
            recorder.record().unwrap();
        }
        device.write_all_at(&[7; 4096], block * 4096).unwrap();
        device.sync_all().unwrap();
    }
    let took = begin.elapsed();
    assert_eq!((recorder.counts() - before).flushes, 20);
    assert!(took >= each * 20, "{profile}: {took:?}");
    println!("{profile}: {took:?} for 20 writes and flushes");
}

#[test]
fn a_flush_takes_at_least_its_time() {
    twenty_flushes("flush=5ms", Duration::from_millis(5));
}

#[test]
fn a_disk_that_spins_takes_at_least_nineteen_revolutions() {
    // Each time but the first the next block has just passed.
    twenty_flushes("hdd-7200", Duration::from_millis(7));
}

#[test]
fn a_volume_behind_a_network_takes_at_least_its_latency() {
    twenty_flushes("cloud-volume", Duration::from_micros(700));
}
