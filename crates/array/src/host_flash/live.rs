//! What may happen to such an array while it runs: disks are lost, come back and become slow, pieces of containers are restored
//! on others, and containers are reclaimed; for those who keep real bytes.

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

    /// So many pieces are to be restored from now on, a few at a time in each data node: each is computed from as many
    /// others as there are pieces of data, and written.
    pub fn restore(&mut self, pieces: u64, depth: u32) {
        self.pool.restore(self.now_ns, pieces, depth, &mut self.events);
    }

    /// Pieces that are to be restored or are being so.
    pub fn restoring(&self) -> u64 {
        self.pool.restoring()
    }

    /// Pieces that have been restored since this was asked last.
    pub fn take_restored(&mut self) -> u64 {
        std::mem::take(&mut self.pool.restored)
    }

    /// Containers of so many bytes are read to be cleaned, and what is live of them is written.
    pub fn reclaim(&mut self, read_bytes: u64, live_bytes: u64) {
        self.pool.clean(self.now_ns, read_bytes, live_bytes, &mut self.events);
    }
}
