//! Configuration of a server: its disks, its portals and their users.

use std::net::SocketAddr;

/// A disk that initiators see: a target of its own with the one logical unit 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// `iqn...`, by which initiators log in.
    pub target: String,
    /// Number of the volume at the [`crate::Blocks`].
    pub volume: u16,
    pub bytes: u64,
    /// The same on every path, and of no other disk.
    pub serial: String,
    /// At most 16 letters; INQUIRY says it.
    pub product: String,
}

/// Name and secret that one side of a login proves that it knows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    pub name: String,
    pub secret: Vec<u8>,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Who may log in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Secret that initiators prove by CHAP; none: they need not.
    pub chap: Option<Secret>,
    /// Secret that the target proves to initiators that ask.
    pub mutual: Option<Secret>,
    /// Names of initiators; empty for any.
    pub initiators: Vec<String>,
}

impl Access {
    pub(crate) fn allows(&self, initiator: &str) -> bool {
        self.initiators.is_empty() || self.initiators.iter().any(|allowed| allowed == initiator)
    }
}

/// Configuration of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub disks: Vec<Disk>,
    /// Where initiators connect.
    pub portals: Vec<SocketAddr>,
    /// The address of a whole group: it answers discovery, and sends each login to a portal.
    pub group: Option<SocketAddr>,
    pub access: Access,
}
