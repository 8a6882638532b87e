//! The ways to the volumes of one array together: files always, disks and exports where the plan says so.

use std::{net::SocketAddr, time::Duration};

use crate::{
    ServeError,
    transport::{Transport, fuse::mounted::FuseTransport, iscsi::Disks, nbd::Exports},
};

/// All ways to the volumes.
pub(crate) struct Ways {
    pub(crate) files: FuseTransport,
    pub(crate) disks: Option<Disks>,
    pub(crate) exports: Option<Exports>,
}

impl Transport for Ways {
    fn forget_cached(&self) {
        self.files.forget_cached();
        self.disks.iter().for_each(Transport::forget_cached);
    }

    fn in_use(&self) -> Vec<usize> {
        let mut used = self.files.in_use();
        used.extend(self.disks.iter().flat_map(Transport::in_use));
        used.extend(self.exports.iter().flat_map(Transport::in_use));
        used.sort_unstable();
        used.dedup();
        used
    }

    fn grow(&self, volume: usize, bytes: u64) {
        self.files.grow(volume, bytes);
        self.disks.iter().for_each(|disks| disks.grow(volume, bytes));
        self.exports.iter().for_each(|exports| exports.grow(volume, bytes));
    }

    fn paths(&self) -> usize {
        self.disks.as_ref().map_or(0, Transport::paths)
    }

    fn fail_path(&self) -> Option<String> {
        self.disks.as_ref().and_then(Transport::fail_path)
    }

    fn mend_paths(&self) -> bool {
        self.disks.as_ref().is_some_and(Transport::mend_paths)
    }

    fn fail_member(&self, member: usize) {
        self.disks.iter().for_each(|disks| disks.fail_member(member));
    }

    fn mend_member(&self, member: usize) {
        self.disks.iter().for_each(|disks| disks.mend_member(member));
    }

    fn retire_path(&self, path: usize) -> Option<(String, usize)> {
        self.disks.as_ref().and_then(|disks| disks.retire_path(path))
    }

    fn reserve_portal(&self, address: SocketAddr) -> Result<(), ServeError> {
        match &self.disks {
            Some(disks) => disks.reserve_portal(address),
            None => self.files.reserve_portal(address),
        }
    }

    fn join_portal(&self, member: usize) -> Option<(String, usize)> {
        self.disks.as_ref().and_then(|disks| disks.join_portal(member))
    }

    fn release_portal(&self) {
        self.disks.iter().for_each(Transport::release_portal);
    }

    fn delay_path(&self, path: usize, delay: Duration) -> bool {
        self.disks.as_ref().is_some_and(|disks| disks.delay_path(path, delay))
    }

    fn stop(self: Box<Self>) -> Result<(), ServeError> {
        let Self { files, disks, exports } = *self;
        // Connections end first: what they have under way is refused while all stop.
        let stopped = disks.map_or(Ok(()), |disks| Box::new(disks).stop());
        let stopped = exports.map_or(Ok(()), |exports| Box::new(exports).stop()).and(stopped);
        Box::new(files).stop().and(stopped)
    }
}
