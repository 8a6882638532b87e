//! Blocks that lie at other places from now on.

/// Bytes of a member's address space that lie at another place from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    pub at_bytes: u64,
    /// In the address space as the geometry spreads it over disks.
    pub place_bytes: u64,
    pub bytes: u64,
}

/// Adds a block that moved, to the last move if it continues it.
pub(super) fn note(followed: &mut Vec<Moved>, at_bytes: u64, place_bytes: u64, bytes: u64) {
    match followed.last_mut() {
        Some(last) if last.at_bytes + last.bytes == at_bytes && last.place_bytes + last.bytes == place_bytes => {
            last.bytes += bytes;
        }
        _ => followed.push(Moved { at_bytes, place_bytes, bytes }),
    }
}
