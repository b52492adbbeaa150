//! What devices are known for, in virtual time: nothing here depends on how fast this machine is.

mod solid;
mod spinning;

use super::*;
use proptest::prelude::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// A device and a host that does one thing at a time.
struct Host {
    latency: Latency,
    now: Duration,
}

impl Host {
    fn new(profile: &str, size: u64) -> Host {
        let profile: Profile = profile.parse().unwrap();
        Host {
            latency: Latency::new(&profile, size),
            now: Duration::ZERO,
        }
    }

    /// Gives a request and goes on at once; when it is done.
    fn send(&mut self, request: Request) -> Duration {
        self.latency.finish(self.now, request)
    }

    /// Gives a request and waits for it; how long that took.
    fn wait(&mut self, request: Request) -> Duration {
        let done = self.send(request);
        assert!(done >= self.now);
        done - std::mem::replace(&mut self.now, done)
    }

    fn write(&mut self, offset: u64, len: u64) -> Duration {
        self.wait(Request::Write { offset, len })
    }

    fn read(&mut self, offset: u64, len: u64) -> Duration {
        self.wait(Request::Read { offset, len })
    }

    fn flush(&mut self) -> Duration {
        self.wait(Request::Flush)
    }

    fn seconds(&self) -> f64 {
        self.now.as_secs_f64()
    }
}

/// Offsets of 4 KiB blocks all over a device, always the same.
fn anywhere(size: u64, count: usize) -> impl Iterator<Item = u64> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..count).map(move |_| random.u64(0..size / 4096) * 4096)
}

#[test]
fn what_is_not_on_the_device_takes_no_longer() {
    let mut disk = Host::new("hdd-7200,cache=off", GIB);
    assert!(disk.write(u64::MAX - 5, u64::MAX) < Duration::from_millis(40));
    assert!(disk.read(0, u64::MAX) < Duration::from_secs(12));
}

fn request() -> impl Strategy<Value = Request> {
    (0..3, 0..16 * MIB / 512, 0..2_048u64).prop_map(|(kind, sector, sectors)| {
        let (offset, len) = (sector * 512, sectors * 512);
        match kind {
            0 => Request::Read { offset, len },
            1 => Request::Write { offset, len },
            _ => Request::Flush,
        }
    })
}

proptest! {
    #[test]
    fn nothing_is_done_before_it_comes_and_the_same_is_always_done_at_the_same_time(
        device in 0..Profile::named().len() + 4,
        requests in prop::collection::vec((request(), 0..20_000u64), 1..200),
    ) {
        let name = match Profile::named().get(device) {
            Some((name, _)) => name,
            None => [
                "hdd-7200,cache=off",
                "hdd-7200,queue=2,cache-size=64K",
                "hdd-15k-bbwc,queue=3,cache-size=128K",
                "nvme,queue=1,iops=1000",
            ][device - Profile::named().len()],
        };
        let profile: Profile = name.parse().unwrap();
        let mut one = Latency::new(&profile, 16 * MIB);
        let mut other = Latency::new(&profile, 16 * MIB);
        let mut now = Duration::ZERO;
        let mut written = Duration::ZERO;
        for (request, pause) in requests {
            now += Duration::from_micros(pause);
            let done = one.finish(now, request);
            prop_assert!(done >= now);
            prop_assert_eq!(done, other.finish(now, request));
            match request {
                Request::Write { .. } => written = written.max(done),
                // What a volatile cache was given before is durable after it.
                Request::Flush if name.starts_with("hdd-7200") => prop_assert!(done >= written),
                _ => {}
            }
        }
    }
}
