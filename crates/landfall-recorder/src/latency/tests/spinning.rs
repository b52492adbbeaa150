//! What disks that spin are known for.

use super::*;

const REVOLUTION: Duration = Duration::from_nanos(8_333_333);

#[test]
fn without_a_cache_the_same_sector_comes_round_120_times_a_second() {
    let mut disk = Host::new("hdd-7200,cache=off", TIB);
    disk.write(64 * MIB, 4096);
    for _ in 0..100 {
        assert_eq!(disk.write(64 * MIB, 4096), REVOLUTION);
    }
    // What the host does in between does not matter, as long as it is less than a revolution.
    disk.now += Duration::from_millis(3);
    assert_eq!(
        disk.write(64 * MIB, 4096),
        REVOLUTION - Duration::from_millis(3)
    );
}

#[test]
fn a_volatile_cache_that_is_flushed_after_each_write_does_not_help() {
    let mut disk = Host::new("hdd-7200", TIB);
    disk.write(0, 4096);
    disk.flush();
    let before = disk.now;
    for _ in 0..100 {
        assert!(disk.write(0, 4096) < Duration::from_micros(100));
        disk.flush();
    }
    assert_eq!(disk.now - before, 100 * REVOLUTION);
}

#[test]
fn a_log_loses_nearly_a_revolution_per_commit() {
    for profile in ["hdd-7200,cache=off", "hdd-7200"] {
        let mut disk = Host::new(profile, TIB);
        disk.write(0, 4096);
        disk.flush();
        let before = disk.now;
        for block in 1..=100 {
            // The host thinks, and the sector it wants next has passed.
            disk.now += Duration::from_micros(100);
            disk.write(block * 4096, 4096);
            disk.flush();
        }
        let each = (disk.now - before) / 100;
        assert!(
            each > REVOLUTION && each < REVOLUTION.mul_f64(1.05),
            "{each:?}"
        );
    }
}

#[test]
fn large_sequential_writes_go_at_the_rate_of_the_platter() {
    for (profile, rate) in [("hdd-7200", 115e6), ("hdd-15k-bbwc,cache-size=1M", 125e6)] {
        let mut disk = Host::new(profile, TIB);
        for mib in 0..512 {
            disk.write(mib * MIB, MIB);
        }
        disk.flush();
        let share = 512.0 * MIB as f64 / disk.seconds() / rate;
        assert!((0.97..1.01).contains(&share), "{profile}: {share}");
    }
    // Without a cache as well, as long as the next request is there in time.
    let mut disk = Host::new("hdd-7200,cache=off", TIB);
    let writes = (0..512).map(|mib| Request::Write {
        offset: mib * MIB,
        len: MIB,
    });
    disk.now = writes.map(|write| disk.send(write)).last().unwrap();
    let share = 512.0 * MIB as f64 / disk.seconds() / 115e6;
    assert!((0.97..1.01).contains(&share), "{share}");
}

#[test]
fn a_cache_takes_bursts_at_the_speed_of_its_interface() {
    let mut disk = Host::new("hdd-7200", TIB);
    for mib in 0..24 {
        disk.write(mib * MIB, MIB);
    }
    let rate = 24.0 * MIB as f64 / disk.seconds();
    assert!((290e6..300e6).contains(&rate), "{rate}");
    // 24 MiB at 115 MB/s, of which some were written in the meantime.
    let flush = disk.flush().as_secs_f64();
    assert!((0.10..0.17).contains(&flush), "{flush}");
}

#[test]
fn random_operations_seek_and_wait_for_half_a_revolution() {
    for (profile, range) in [
        ("hdd-7200,cache=off", 70.0..90.0),
        ("hdd-15k-bbwc,cache=off", 160.0..190.0),
    ] {
        let mut disk = Host::new(profile, TIB);
        for offset in anywhere(TIB, 2_000) {
            disk.write(offset, 4096);
        }
        let rate = 2_000.0 / disk.seconds();
        assert!(range.contains(&rate), "{profile} writes: {rate}");
        let mut disk = Host::new(profile, TIB);
        for offset in anywhere(TIB, 2_000) {
            disk.read(offset, 4096);
        }
        let rate = 2_000.0 / disk.seconds();
        assert!(range.contains(&rate), "{profile} reads: {rate}");
    }
}

#[test]
fn a_small_part_of_a_large_disk_needs_only_short_seeks() {
    let rate = |profile: &str| {
        let mut disk = Host::new(profile, GIB);
        for offset in anywhere(GIB, 1_000) {
            disk.write(offset, 4096);
        }
        1_000.0 / disk.seconds()
    };
    let (whole, part) = (
        rate("hdd-7200,cache=off"),
        rate("hdd-7200,cache=off,capacity=1T"),
    );
    assert!((70.0..90.0).contains(&whole), "{whole}");
    assert!((140.0..200.0).contains(&part), "{part}");
}

#[test]
fn the_more_a_cache_may_sort_the_faster_it_is_emptied() {
    let rate = |profile: &str| {
        let mut disk = Host::new(profile, TIB);
        for offset in anywhere(TIB, 1_024) {
            disk.write(offset, 4096);
        }
        disk.flush();
        1_024.0 / disk.seconds()
    };
    let rates = [1, 8, 32, 128, 1024].map(|queue| rate(&format!("hdd-7200,queue={queue}")));
    assert!(rates.is_sorted(), "{rates:?}");
    assert!((70.0..110.0).contains(&rates[0]), "{rates:?}");
    assert!((130.0..240.0).contains(&rates[3]), "{rates:?}");
}

#[test]
fn many_writes_before_a_flush_cost_less_than_a_flush_after_each() {
    let mut one_by_one = Host::new("hdd-7200", TIB);
    let mut together = Host::new("hdd-7200", TIB);
    for offset in anywhere(TIB, 32) {
        one_by_one.write(offset, 4096);
        one_by_one.flush();
        together.write(offset, 4096);
    }
    together.flush();
    assert!(together.now.mul_f64(1.5) < one_by_one.now);
}

#[test]
fn a_battery_takes_bursts_until_the_cache_is_full() {
    let mut disk = Host::new("hdd-15k-bbwc", 64 * GIB);
    // 8 KiB everywhere: far more than the platter keeps up with.
    let mut random = fastrand::Rng::with_seed(11);
    let mut offset = move || random.u64(0..64 * GIB / 8192) * 8192;
    for _ in 0..60_000 {
        assert!(disk.write(offset(), 8192) < Duration::from_micros(100));
        assert_eq!(disk.flush(), Duration::ZERO);
    }
    for _ in 0..10_000 {
        disk.write(offset(), 8192);
    }
    // Now each write has to wait for another one to leave, which takes some half revolution.
    let full = disk.now;
    for _ in 0..2_000 {
        disk.write(offset(), 8192);
    }
    let rate = 2_000.0 / (disk.now - full).as_secs_f64();
    assert!((300.0..900.0).contains(&rate), "{rate}");
    // Rewriting what is there costs nothing, full or not.
    let again = 5 * 8192;
    disk.write(again, 8192);
    disk.write(again, 8192);
    assert!(disk.write(again, 8192) < Duration::from_micros(100));
    // Left alone, it is empty again after a while.
    disk.now += Duration::from_secs(600);
    assert!(disk.write(offset(), 8192) < Duration::from_micros(100));
}

#[test]
fn a_log_on_a_battery_goes_on_without_end() {
    let mut disk = Host::new("hdd-15k-bbwc", 4 * GIB);
    for block in 0..131_072 {
        disk.write(block * 8192, 8192);
        disk.flush();
    }
    let rate = 131_072.0 / disk.seconds();
    assert!((12_000.0..13_500.0).contains(&rate), "{rate}");
}

#[test]
fn reads_wait_for_the_arm_but_not_for_the_whole_cache() {
    let mut disk = Host::new("hdd-7200", TIB);
    for offset in anywhere(TIB, 100) {
        disk.write(offset, 4096);
    }
    let first = disk.read(TIB / 2, 4096);
    assert!(first > Duration::from_millis(1) && first < Duration::from_millis(60));
    // A flush on the other hand keeps everything waiting.
    let flushed = disk.send(Request::Flush);
    assert!(flushed - disk.now > Duration::from_millis(300));
    let (offset, len) = (0, 4096);
    assert!(disk.send(Request::Read { offset, len }) > flushed);
    assert!(disk.send(Request::Write { offset, len }) > flushed);
}

#[test]
fn a_stream_of_reads_is_read_ahead() {
    let mut disk = Host::new("hdd-7200", TIB);
    for block in 0..1_024 {
        disk.read(block * 128 * KIB, 128 * KIB);
        // The next request comes too late for the platter, and in time for the buffer.
        disk.now += Duration::from_micros(50);
    }
    let share = 128.0 * MIB as f64 / disk.seconds() / 115e6;
    assert!((0.95..1.01).contains(&share), "{share}");
    // The buffer is no larger than a track: after a pause the platter sets the pace again.
    disk.now += Duration::from_secs(10);
    let paused = disk.now;
    for block in 1_024..2_048 {
        disk.read(block * 128 * KIB, 128 * KIB);
    }
    let share = 128.0 * MIB as f64 / (disk.now - paused).as_secs_f64() / 115e6;
    assert!((0.95..1.02).contains(&share), "{share}");
}

#[test]
fn what_follows_a_write_was_not_read_ahead() {
    let mut disk = Host::new("hdd-7200,cache=off", TIB);
    disk.read(0, 4096);
    disk.write(4096, 4096);
    disk.now += Duration::from_millis(1);
    assert!(disk.read(8192, 4096) > Duration::from_millis(7));
}

#[test]
fn a_disk_that_is_left_alone_empties_its_cache() {
    let mut disk = Host::new("hdd-7200", TIB);
    for offset in anywhere(TIB, 100) {
        disk.write(offset, 4096);
    }
    disk.now += Duration::from_secs(2);
    // Neither a read nor a flush finds anything in its way.
    assert!(disk.read(TIB / 2, 4096) < Duration::from_millis(27));
    assert_eq!(disk.flush(), Duration::from_micros(50));
}
