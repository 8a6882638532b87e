//! Coming events: a heap of moments; events of the same moment come in the order in which they were set.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Something that happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A command has come over its path.
    Arrived(u32),
    /// The controller is done with a command's arrival.
    Admitted(u32),
    /// The host has the answer to a command.
    Answered(u32),
    /// A disk of the group ends the command in a slot.
    DiskEnds { disk: u16, slot: u16 },
    /// A port or controller is lost, the hosts notice its loss, or another takes over its ports.
    Path(PathEvent),
    /// A piece that moves has come to the member that joined; or its controller is done with that.
    Moves { slot: u16, admitted: bool },
    /// The rebuild of the member with this disk may begin its next row.
    Rebuilds { disk: u16 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathEvent {
    Lost,
    TimedOut,
    TakenOver,
}

/// A time, the order of setting, and the event, in one number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<u128>>,
    set: u32,
}

const KIND_BITS: u32 = 3;

impl Events {
    #[inline]
    pub(crate) fn set(&mut self, at_ns: u64, event: Event) {
        let packed = match event {
            Event::Admitted(command) => command << KIND_BITS,
            Event::Answered(command) => command << KIND_BITS | 1,
            Event::Arrived(command) => command << KIND_BITS | 3,
            Event::Path(step) => (step as u32) << KIND_BITS | 4,
            Event::Moves { slot, admitted } => (u32::from(slot) << 1 | u32::from(admitted)) << KIND_BITS | 5,
            Event::Rebuilds { disk } => u32::from(disk) << KIND_BITS | 6,
            Event::DiskEnds { disk, slot } => u32::from(disk) << 16 | u32::from(slot) << KIND_BITS | 2,
        };
        self.set = self.set.wrapping_add(1);
        self.heap.push(Reverse(u128::from(at_ns) << 64 | u128::from(self.set) << 32 | u128::from(packed)));
    }

    #[inline]
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(packed)| (packed >> 64) as u64)
    }

    /// Takes the next event if it is not after `to_ns`.
    #[inline]
    pub(crate) fn take(&mut self, to_ns: u64) -> Option<(u64, Event)> {
        let at_ns = self.next_ns()?;
        if at_ns > to_ns {
            return None;
        }
        let Reverse(packed) = self.heap.pop()?;
        let packed = packed as u32;
        let event = match packed & ((1 << KIND_BITS) - 1) {
            0 => Event::Admitted(packed >> KIND_BITS),
            1 => Event::Answered(packed >> KIND_BITS),
            3 => Event::Arrived(packed >> KIND_BITS),
            4 => Event::Path(match packed >> KIND_BITS {
                0 => PathEvent::Lost,
                1 => PathEvent::TimedOut,
                _ => PathEvent::TakenOver,
            }),
            5 => {
                let packed = packed >> KIND_BITS;
                Event::Moves { slot: (packed >> 1) as u16, admitted: packed & 1 == 1 }
            }
            6 => Event::Rebuilds { disk: (packed >> KIND_BITS) as u16 },
            _ => Event::DiskEnds { disk: (packed >> 16) as u16, slot: (packed as u16) >> KIND_BITS },
        };
        Some((at_ns, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_then_of_setting() {
        let mut events = Events::default();
        let order = [Event::DiskEnds { disk: 700, slot: 31 }, Event::Admitted(5), Event::Answered(1 << 20)];
        events.set(20, order[2]);
        events.set(10, order[0]);
        events.set(10, order[1]);
        assert_eq!(events.take(9), None);
        let taken: Vec<_> = std::iter::from_fn(|| events.take(20)).collect();
        assert_eq!(taken, [(10, order[0]), (10, order[1]), (20, order[2])]);
    }
}
