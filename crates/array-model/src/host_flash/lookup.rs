//! Reads: the cache that holds the data, and the time of the read.

use std::ops::Range;

use assay_load::Op;

use super::{
    model::{HostFlashModel, Io, Placed},
    pool::mixed,
    stages::MESSAGE_BYTES,
};
use crate::events::Event;

/// Accesses after which caches and log are as the workload leaves them; the rest of their contents is filled in.
const WARM_ACCESSES: u64 = 1 << 20;

/// Level at which a read found its last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Memory,
    Flash,
    /// Flash of another host.
    Remote(u32),
    Node,
}

impl HostFlashModel {
    /// Lets the caches and the log be what an access leaves, without time passing.
    pub fn warm(&mut self, op: Op, volume: u16, offset_bytes: u64, length_bytes: u32) {
        let Placed { host, bytes, .. } = self.volumes[usize::from(volume)];
        let (first, lines) = self.lines_of(volume, offset_bytes, u64::from(length_bytes).min(bytes - offset_bytes));
        for line in first..first + lines {
            self.memory.add(host, line);
            self.flash.add(host, line);
        }
        if op == Op::Write {
            self.log.write(self.unit(first));
        }
        self.warmed += 1;
    }

    /// Whether warming with such accesses changes nothing any more.
    pub fn is_warm(&self) -> bool {
        self.warmed >= WARM_ACCESSES
    }

    /// Fills free room of caches with these regions of volumes, evenly.
    pub fn fill(&mut self, regions: &[(u16, Range<u64>)]) {
        for host in 0..self.hosts.len() as u32 {
            let own = regions.iter().filter(|(volume, _)| self.volumes[usize::from(*volume)].host == host);
            let mut ranges: Vec<Range<u64>> = own
                .map(|(volume, region)| {
                    let (first, lines) = self.lines_of(*volume, region.start, region.end - region.start);
                    first..first + lines
                })
                .collect();
            ranges.sort_unstable_by_key(|range| range.start);
            ranges.dedup_by(|later, earlier| {
                let joins = later.start <= earlier.end;
                if joins {
                    earlier.end = earlier.end.max(later.end);
                }
                joins
            });
            self.flash.fill(host, &ranges);
            self.memory.fill(host, &ranges);
        }
    }

    /// Takes over caches and log of another array with the same [`HostFlashPlan::warmth`].
    pub fn take_caches(&mut self, warm: &Self) {
        self.memory = warm.memory.clone();
        self.flash = warm.flash.clone();
        self.log = warm.log.clone();
    }

    pub(super) fn lines_of(&self, volume: u16, offset_bytes: u64, bytes: u64) -> (u64, u64) {
        let first = offset_bytes >> self.line_shift;
        let last = (offset_bytes + bytes.max(1) - 1) >> self.line_shift;
        (self.volumes[usize::from(volume)].first + first, last - first + 1)
    }

    fn volume_of(&self, line: u64) -> Placed {
        let after = self.by_line.partition_point(|volume| self.volumes[usize::from(*volume)].first <= line);
        self.volumes[usize::from(self.by_line[after - 1])]
    }

    pub(super) fn host_of(&self, line: u64) -> u32 {
        self.volume_of(line).host
    }

    pub(super) fn unit(&self, line: u64) -> u64 {
        line * self.log.units() / self.lines
    }

    /// The first line of a unit.
    pub(super) fn first_line(&self, unit: u64) -> u64 {
        (unit * self.lines).div_ceil(self.log.units())
    }

    /// Level of the last of `lines` lines of a volume.
    #[inline]
    fn level(&self, volume: u16, host: u32, first: u64, lines: u64) -> Level {
        let (mut level, mut remote) = (Level::Memory, None);
        for line in first..first + lines {
            let own = if self.memory.contains(line) {
                Level::Memory
            } else if self.flash.contains(line) {
                Level::Flash
            } else {
                self.elsewhere(volume, host, line)
            };
            if let Level::Remote(other) = own {
                remote = Some(other);
            }
            level = level.max(own);
        }
        match (level, remote) {
            (Level::Remote(_), Some(other)) => Level::Remote(other),
            _ => level,
        }
    }

    /// Where a block is found that its host does not hold under its own name: the same content may lie in the volume before.
    fn elsewhere(&self, volume: u16, host: u32, line: u64) -> Level {
        let count = self.volumes.len();
        let place = line - self.volumes[usize::from(volume)].first;
        if self.storage.duplicates == 0 || count == 1 || mixed(place) >> 32 >= self.storage.duplicates {
            return Level::Node;
        }
        let twin = self.volumes[(usize::from(volume) + count - 1) % count];
        if place >= twin.lines || !self.flash.contains(twin.first + place) {
            Level::Node
        } else if twin.host == host {
            Level::Flash
        } else {
            Level::Remote(twin.host)
        }
    }

    pub(super) fn read(&mut self, at_ns: u64, volume: u16, mut io: Io) {
        let level = self.level(volume, io.host, io.first, io.lines);
        let compressed = io.bytes * 1000 / self.storage.compression;
        let host = &mut self.hosts[io.host as usize];
        let served_ns = host.cores.serve(at_ns, self.costs.host_per_io_ns);
        host.reads += 1;
        let end_ns = match level {
            Level::Memory => {
                host.memory_hits += 1;
                (io.first..io.first + io.lines).for_each(|line| self.memory.touch(line));
                host.reading.pass(served_ns, io.bytes) + self.costs.memory_ns
            }
            Level::Flash => {
                host.flash_hits += 1;
                for line in io.first..io.first + io.lines {
                    self.flash.touch(line);
                    self.memory.add(io.host, line);
                }
                let there_ns = host.flash.read(served_ns, compressed);
                host.reading.pass(there_ns, io.bytes)
            }
            Level::Remote(other) => {
                host.remote_hits += 1;
                let asked_ns = host.network_out.pass(served_ns, MESSAGE_BYTES) + self.costs.one_way_ns;
                let other = &mut self.hosts[other as usize];
                let found_ns = other.cores.serve(asked_ns, self.costs.host_per_io_ns);
                let sent_ns = other.flash.read(found_ns, compressed);
                let sent_ns = other.network_out.pass(sent_ns, compressed + MESSAGE_BYTES) + self.costs.one_way_ns;
                let host = &mut self.hosts[io.host as usize];
                let there_ns = host.network_in.pass(sent_ns, compressed + MESSAGE_BYTES);
                io.fetched = true;
                host.reading.pass(there_ns, io.bytes)
            }
            Level::Node => {
                io.fetched = true;
                let asked_ns = host.network_out.pass(served_ns, MESSAGE_BYTES) + self.costs.one_way_ns;
                let number = self.begin_io(io);
                self.time.events.set(asked_ns, Event::Arrived(number));
                return;
            }
        };
        let number = self.begin_io(io);
        self.time.events.set(end_ns, Event::Answered(number));
    }
}
