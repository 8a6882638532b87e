//! Events in an array with flash in its hosts while it runs: disks are lost, come back and become slow, pieces of
//! containers are restored, and containers are reclaimed. For stores of real bytes.

use super::model::HostFlashModel;

impl HostFlashModel {
    /// A disk is there or not. What lies on lost ones is read from the other pieces of its container. Commands that are under
    /// way end as they would.
    pub fn set_disk(&mut self, disk: u32, is_present: bool) {
        self.pool.present[disk as usize] = is_present;
    }

    /// Commands that a disk begins from now on take so many times as long; 1: as planned.
    pub fn slow_disk(&mut self, disk: u32, times: u32) {
        self.pool.slowed[disk as usize] = times;
    }

    /// No host holds a range of a volume any more.
    pub fn forget(&mut self, volume: u16, offset_bytes: u64, bytes: u64) {
        let host = self.volumes[usize::from(volume)].host;
        let (first, lines) = self.lines_of(volume, offset_bytes, bytes);
        for line in first..first + lines {
            self.memory.drop_line(host, line);
            self.flash.drop_line(host, line);
        }
    }

    /// Restores `pieces` pieces from now on, `depth` at a time in each data node. Each is computed from as many others
    /// as there are pieces of data, and written.
    pub fn restore(&mut self, pieces: u64, depth: u32) {
        self.pool.restore(self.time.now_ns, pieces, depth, &mut self.time.events);
    }

    /// Pieces that are to be restored or are being so.
    pub fn restoring(&self) -> u64 {
        self.pool.restoring()
    }

    /// Pieces that have been restored since this was asked last.
    pub fn take_restored(&mut self) -> u64 {
        std::mem::take(&mut self.pool.restored)
    }

    /// Cleans containers: reads `read_bytes` and writes their live bytes.
    pub fn reclaim(&mut self, read_bytes: u64, live_bytes: u64) {
        self.pool.clean(self.time.now_ns, read_bytes, live_bytes, &mut self.time.events);
    }
}
