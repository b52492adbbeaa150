//! What devices without moving parts are known for, and flushes that take a fixed time.

use super::*;

#[test]
fn a_flush_takes_what_it_is_said_to_take() {
    let mut device = Host::new("flush=1ms", GIB);
    let millisecond = Duration::from_millis(1);
    for block in 0..10 {
        assert_eq!(device.write(block * 4096, 4096), Duration::ZERO);
        assert_eq!(device.read(block * 4096, 4096), Duration::ZERO);
        assert_eq!(device.flush(), millisecond);
    }
    // One at a time.
    let flushes = [1, 2, 3].map(|_| device.send(Request::Flush) - device.now);
    assert_eq!(flushes, [millisecond, 2 * millisecond, 3 * millisecond]);
    let mut disk = Host::new("hdd-7200,flush=1ms", GIB);
    assert_eq!(disk.flush(), millisecond);
}

#[test]
fn a_consumer_ssd_is_held_up_by_flushes_and_one_with_protection_is_not() {
    let rate = |profile: &str| {
        let mut device = Host::new(profile, GIB);
        for block in 0..1_000 {
            device.write(block * 4096, 4096);
            device.flush();
        }
        1_000.0 / device.seconds()
    };
    let consumer = rate("ssd-consumer");
    assert!((550.0..600.0).contains(&consumer), "{consumer}");
    let protected = rate("nvme");
    assert!((20_000.0..25_000.0).contains(&protected), "{protected}");
}

#[test]
fn channels_work_side_by_side() {
    let mut device = Host::new("nvme,transfer=unlimited,queue=4", GIB);
    let read = |block: u64| Request::Read {
        offset: block * 4096,
        len: 4096,
    };
    let done: Vec<u128> = (0..9)
        .map(|block| device.send(read(block)).as_micros())
        .collect();
    assert_eq!(done, [80, 80, 80, 80, 160, 160, 160, 160, 240]);
    // As many as the data sheet says that it does at once.
    let mut device = Host::new("nvme", GIB);
    device.now = (0..100_000)
        .map(|block| device.send(read(block)))
        .last()
        .unwrap();
    let rate = 100_000.0 / device.seconds();
    assert!((430_000.0..460_000.0).contains(&rate), "{rate}");
}

#[test]
fn bandwidth_is_shared() {
    for (profile, rate) in [
        ("nvme", 2e9),
        ("ssd-consumer", 520e6),
        ("cloud-volume", 131e6),
    ] {
        let mut device = Host::new(profile, GIB);
        device.now = (0..1_000)
            .map(|mib| {
                let (offset, len) = (mib * MIB, MIB);
                device.send(Request::Write { offset, len })
            })
            .last()
            .unwrap();
        let share = 1_000.0 * MIB as f64 / device.seconds() / rate;
        assert!((0.99..=1.0).contains(&share), "{profile}: {share}");
    }
}

#[test]
fn a_cloud_volume_keeps_to_its_operations_whatever_is_flushed() {
    let rate = |flushes: bool| {
        let mut device = Host::new("cloud-volume", GIB);
        let mut last = Duration::ZERO;
        for offset in anywhere(GIB, 9_000) {
            last = device.send(Request::Write { offset, len: 4096 });
            if flushes {
                assert_eq!(device.flush(), Duration::ZERO);
            }
        }
        9_000.0 / last.as_secs_f64()
    };
    assert!((2_990.0..3_001.0).contains(&rate(false)));
    assert_eq!(rate(true), rate(false));
    // One at a time waits for the network each time.
    let mut device = Host::new("cloud-volume", GIB);
    let each = device.write(0, 4096);
    assert!(each > Duration::from_micros(700) && each < Duration::from_micros(750));
}

#[test]
fn a_flush_waits_for_the_writes_before_it() {
    let mut device = Host::new("write=3ms,flush=1ms", GIB);
    let (offset, len) = (0, 4096);
    device.send(Request::Write { offset, len });
    device.now += Duration::from_millis(1);
    assert_eq!(device.flush(), Duration::from_millis(3));
    // What comes after it does not wait for it.
    let flushed = device.send(Request::Flush);
    assert!(device.send(Request::Read { offset, len }) < flushed);
}
