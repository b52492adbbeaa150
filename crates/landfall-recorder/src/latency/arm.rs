//! The mechanics of a disk: one arm over a platter that turns.
//!
//! The platter is one spiral of sectors with the same number in each revolution (a *track*). Where it
//! stands follows from the clock alone: at time 0 the first sector of every track is under the head. So a
//! transfer crosses from one track to the next without losing time, as a real disk does whose tracks are
//! skewed by just that much, and a sector that was just missed comes back one revolution later.

use super::SECTOR;

/// The share of the stroke up to which a seek takes as long as the root of its distance. The arm speeds
/// up and slows down again without ever reaching its top speed; beyond, it travels at that speed.
const ROOT_UNTIL: f64 = 1.0 / 3.0;

/// Where the arm is, and when it is free. Times are nanoseconds since the platter began to turn.
#[derive(Debug)]
pub(super) struct Arm {
    /// Time of one revolution.
    rotation: u64,
    /// Sectors that pass in one revolution.
    per_track: u64,
    /// Tracks between the ends of the stroke.
    stroke: u64,
    shortest_seek: u64,
    longest_seek: u64,
    /// The sector after the last one that it passed.
    pub at: u64,
    /// When it is done with what it was asked to do.
    pub free: u64,
}

/// What an arm is made from: times in nanoseconds, `transfer` in bytes per second, `sectors` on the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mechanics {
    pub rotation: u64,
    pub transfer: u64,
    pub shortest_seek: u64,
    pub longest_seek: u64,
    pub sectors: u64,
}

impl Arm {
    /// An arm at the first sector.
    pub fn new(mechanics: Mechanics) -> Arm {
        let track = u128::from(mechanics.transfer) * u128::from(mechanics.rotation) / 1_000_000_000;
        let per_track = u64::try_from(track / u128::from(SECTOR)).unwrap_or(u64::MAX);
        let per_track = per_track.max(1);
        Arm {
            rotation: mechanics.rotation.max(1),
            per_track,
            stroke: mechanics.sectors.div_ceil(per_track).saturating_sub(1),
            shortest_seek: mechanics.shortest_seek,
            longest_seek: mechanics.longest_seek,
            at: 0,
            free: 0,
        }
    }

    /// Sectors that pass in one revolution.
    pub fn per_track(&self) -> u64 {
        self.per_track
    }

    /// Time of one revolution.
    pub fn rotation(&self) -> u64 {
        self.rotation
    }

    /// Reads or writes the sectors from `start` up to `end`, as soon as the arm is free but not before
    /// `from`; when that is done. A free arm has nothing else to do, so it is free then.
    pub fn pass(&mut self, from: u64, start: u64, end: u64) -> u64 {
        let arrived = from.max(self.free) + self.seek(start);
        let phase = self.turned(start % self.per_track);
        let wait = (phase + self.rotation - arrived % self.rotation) % self.rotation;
        self.free = arrived + wait + self.passing(start, end);
        self.at = end;
        self.free
    }

    /// The time in which the sectors from `start` up to `end` pass under the head.
    pub fn passing(&self, start: u64, end: u64) -> u64 {
        // From the phases of both ends, so that the next sector begins exactly where this one ends.
        let first = start % self.per_track;
        self.turned(first + end.saturating_sub(start)) - self.turned(first)
    }

    /// The time in which so many sectors pass, counted from the beginning of a track.
    fn turned(&self, sectors: u64) -> u64 {
        let time = u128::from(sectors) * u128::from(self.rotation) / u128::from(self.per_track);
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// The time to get to the track of `sector`: none within a track, the shortest to the next one, the
    /// longest from end to end, and between them as Ruemmler and Wilkes found it (An introduction to
    /// disk drive modeling, IEEE Computer 27(3), 1994): first with the root of the distance, then
    /// linearly. The average over random pairs is the shortest and 0.47 of what lies between.
    fn seek(&self, sector: u64) -> u64 {
        // What follows the last sector is there without a seek, on whichever track it lies.
        let distance = (sector / self.per_track).abs_diff(self.at / self.per_track);
        if distance == 0 {
            return 0;
        }
        let way = (distance - 1) as f64 / self.stroke.saturating_sub(1).max(1) as f64;
        let between = self.longest_seek.saturating_sub(self.shortest_seek) as f64;
        self.shortest_seek + (between * share(way.min(1.0))) as u64
    }
}

/// The share of the time between the shortest and the longest seek that a share of the stroke takes: two
/// pieces that meet with the same slope, from 0 at 0 to 1 at 1.
fn share(way: f64) -> f64 {
    let root = ROOT_UNTIL.sqrt();
    let scale = 2.0 / (root + 1.0 / root);
    if way <= ROOT_UNTIL {
        scale * way.sqrt()
    } else {
        scale * (root / 2.0 + way / (2.0 * root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 sectors a track, 1,001 tracks; a sector passes in 100 µs.
    fn arm() -> Arm {
        Arm::new(Mechanics {
            rotation: 10_000_000,
            transfer: 5_120_000,
            shortest_seek: 1_000_000,
            longest_seek: 19_000_000,
            sectors: 100_100,
        })
    }

    #[test]
    fn seeks_grow_from_the_next_track_to_the_whole_stroke() {
        let arm = arm();
        assert_eq!((arm.per_track(), arm.stroke), (100, 1_000));
        assert_eq!(arm.seek(99), 0);
        assert_eq!(arm.seek(100), 1_000_000);
        assert_eq!(arm.seek(100_000), 19_000_000);
        let seeks: Vec<u64> = (0..=1_000).map(|track| arm.seek(track * 100)).collect();
        assert!(seeks.is_sorted());
        // A third of the stroke takes half of the time, so short seeks dominate.
        assert!((9_900_000..10_100_000).contains(&seeks[334]));
        // No jump where the pieces meet.
        let steps = seeks[2..].windows(2).map(|pair| pair[1] - pair[0]);
        assert!(steps.max() < Some(300_000));
    }

    #[test]
    fn the_average_seek_is_what_is_said() {
        let between: f64 = (0..1_000)
            .map(|step| (f64::from(step) + 0.5) / 1_000.0)
            .map(|way| share(way) * 2.0 * (1.0 - way) / 1_000.0)
            .sum();
        assert!((between - 0.474).abs() < 0.001, "{between}");
    }

    #[test]
    fn a_sector_is_where_the_clock_says() {
        let mut arm = arm();
        // Sector 50 is half a revolution away at time 0, and passes in 100 µs.
        assert_eq!(arm.pass(0, 50, 51), 5_100_000);
        // The same again: one revolution later.
        assert_eq!(arm.pass(0, 50, 51), 15_100_000);
        // The next one: at once if asked for in time, else a revolution later.
        assert_eq!(arm.pass(0, 51, 52), 15_200_000);
        assert_eq!(arm.pass(15_200_001, 52, 53), 25_300_000);
    }

    #[test]
    fn a_transfer_crosses_tracks_without_losing_time() {
        let mut arm = arm();
        assert_eq!(arm.pass(0, 0, 1_000), 100_000_000);
        assert_eq!(arm.pass(0, 1_000, 1_001), 100_100_000);
        // Odd lengths add up exactly: nothing is lost to rounding.
        let mut arm = Arm::new(Mechanics {
            rotation: 8_333_333,
            transfer: 115_000_000,
            shortest_seek: 1_000_000,
            longest_seek: 18_000_000,
            sectors: 2_000_000,
        });
        let mut sector = 0;
        for len in [1, 7, 1_871, 3_000, 13, 4_096, 255].repeat(20) {
            let from = arm.free;
            arm.pass(from, sector, sector + len);
            sector += len;
        }
        assert_eq!(arm.free, arm.passing(0, sector));
    }
}
