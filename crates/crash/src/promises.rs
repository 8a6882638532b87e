//! Guarantees of storage at a crash.

use serde::Deserialize;

use crate::{CrashError, log::SECTOR_BYTES};

/// Which of the writes that are not durable may survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Any of them.
    Any,
    /// The first submitted ones: the volume holds the writes up to a moment.
    Submitted,
}

/// The guarantees of a drive or an array, each of which may be withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promises {
    /// Whether completed writes may be lost until a flush.
    pub volatile_cache: bool,
    /// Which outstanding writes may survive.
    pub order: Order,
    /// Aligned size of which a write's parts survive whole or not at all; none: a write survives as a whole.
    pub atomic_bytes: Option<u64>,
    /// Whether a completed FUA write is durable.
    pub fua: bool,
    /// Whether a completed flush makes earlier writes durable.
    pub flush: bool,
    /// Whether a range reads as zeroes once its discard is durable.
    pub deterministic_discard: bool,
}

impl Default for Promises {
    /// The promises of every drive with a volatile cache, and no more.
    fn default() -> Self {
        Self {
            volatile_cache: true,
            order: Order::Any,
            atomic_bytes: Some(SECTOR_BYTES),
            fua: true,
            flush: true,
            deterministic_discard: true,
        }
    }
}

impl Promises {
    /// Checks the sizes.
    ///
    /// # Errors
    /// The atomic size is no power of two of at least a sector.
    pub fn checked(self) -> Result<Self, CrashError> {
        match self.atomic_bytes {
            Some(bytes) if bytes < SECTOR_BYTES || !bytes.is_power_of_two() => Err(CrashError::NotAccepted {
                what: "atomic size",
                value: bytes.to_string(),
                accepted: "powers of two from 512 bytes on",
            }),
            _ => Ok(self),
        }
    }
}
