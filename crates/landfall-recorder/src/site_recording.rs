//! What happened to several devices, in one order.

use std::io;

use crate::recording::Recording;
use crate::{CommonOrder, EventKind, Recorder};

/// The recordings of several devices, and the [order](CommonOrder) of all their events.
#[derive(Debug)]
pub struct SiteRecording {
    devices: Vec<Recording>,
    /// Whose each event is.
    order: Vec<u8>,
    note: String,
}

impl SiteRecording {
    /// Ends the recording of these devices, which are all that share `order`, in the order in which they were started with
    /// it.
    pub fn finish(order: &CommonOrder, recorders: &[&Recorder]) -> io::Result<SiteRecording> {
        let devices = recorders.iter().map(|recorder| recorder.finish());
        let devices = devices.collect::<io::Result<Vec<Recording>>>()?;
        SiteRecording::new(devices, order.events())
    }

    /// Fails with [`InvalidData`](io::ErrorKind::InvalidData) if the order is not that of the devices' events.
    pub(crate) fn new(devices: Vec<Recording>, order: Vec<u8>) -> io::Result<SiteRecording> {
        let mut counts = vec![0; devices.len()];
        for &device in &order {
            let count = counts.get_mut(usize::from(device));
            *count.ok_or(io::ErrorKind::InvalidData)? += 1;
        }
        let events = devices.iter().map(|device| device.events().len());
        if !events.eq(counts) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(SiteRecording {
            devices,
            order,
            note: String::new(),
        })
    }

    /// The recording with a note of its maker's, which is saved with it.
    pub fn with_note(self, note: impl Into<String>) -> SiteRecording {
        SiteRecording {
            note: note.into(),
            ..self
        }
    }

    /// The note of the recording's maker.
    pub fn note(&self) -> &str {
        &self.note
    }

    /// What happened to each device.
    pub fn devices(&self) -> &[Recording] {
        &self.devices
    }

    /// How many events there are, of all devices.
    pub fn events(&self) -> usize {
        self.order.len()
    }

    /// Whose each event is.
    pub(crate) fn order(&self) -> &[u8] {
        &self.order
    }

    /// How many events each device has among the first `events` of all.
    pub fn cut(&self, events: usize) -> Vec<usize> {
        let mut cut = vec![0; self.devices.len()];
        for &device in &self.order[..events] {
            cut[usize::from(device)] += 1;
        }
        cut
    }

    /// Each event in the common order: which device's it is, and its place among that device's events.
    pub fn in_order(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut next = vec![0; self.devices.len()];
        self.order.iter().map(move |&device| {
            let device = usize::from(device);
            next[device] += 1;
            (device, next[device] - 1)
        })
    }

    /// The marks of all devices, each with how many events there were before it.
    pub fn marks(&self) -> io::Result<Vec<(usize, Vec<u8>)>> {
        let mut marks = Vec::new();
        for (place, (device, event)) in self.in_order().enumerate() {
            let recording = &self.devices[device];
            if let EventKind::Mark(bytes) = recording.events()[event].kind {
                marks.push((place, recording.bytes(bytes)?));
            }
        }
        Ok(marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::RecordingBuilder;

    fn devices() -> Vec<Recording> {
        let one = RecordingBuilder::new(4096).mark(b"a").sector(0, 1).flush();
        let other = RecordingBuilder::new(4096).sector(1, 1).mark(b"b");
        vec![one.build(), other.build()]
    }

    #[test]
    fn every_beginning_of_the_order_cuts_each_device_somewhere() {
        let site = SiteRecording::new(devices(), vec![0, 1, 0, 0, 1]).unwrap();
        let cuts: Vec<Vec<usize>> = (0..=5).map(|events| site.cut(events)).collect();
        assert_eq!(cuts, [[0, 0], [1, 0], [1, 1], [2, 1], [3, 1], [3, 2]]);
        let all: Vec<(usize, usize)> = site.in_order().collect();
        assert_eq!(all, [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1)]);
        let marks = site.marks().unwrap();
        assert_eq!(marks, [(0, b"a".to_vec()), (4, b"b".to_vec())]);
    }

    #[test]
    fn an_order_of_other_events_is_refused() {
        for order in [
            vec![],
            vec![0, 0, 1, 1],
            vec![0, 0, 0, 1, 2],
            vec![0, 0, 0, 0, 1, 1],
        ] {
            let refused = SiteRecording::new(devices(), order).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        }
    }
}
