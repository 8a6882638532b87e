//! Why a command failed, as SCSI says it (SPC-4, 4.5).

/// Sense data: key, code, and where it is known a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sense {
    pub(crate) key: u8,
    /// Additional sense code and its qualifier.
    pub(crate) code: u16,
    pub(crate) information: Option<u32>,
}

impl Sense {
    pub(crate) const fn new(key: u8, code: u16) -> Self {
        Self { key, code, information: None }
    }

    /// The 18 bytes of fixed format.
    pub(crate) fn bytes(&self) -> [u8; 18] {
        let mut bytes = [0; 18];
        bytes[0] = 0x70;
        bytes[2] = self.key;
        if let Some(information) = self.information {
            bytes[0] |= 0x80;
            bytes[3..7].copy_from_slice(&information.to_be_bytes());
        }
        bytes[7] = 10;
        bytes[12..14].copy_from_slice(&self.code.to_be_bytes());
        bytes
    }

    /// The sense of an error of the store, as a number of the system's.
    pub(crate) fn of_store(number: i32, is_write: bool) -> Self {
        match number {
            libc::ENOSPC | libc::EDQUOT => NO_SPACE,
            libc::ENODEV | libc::ESHUTDOWN | libc::ENXIO => NOT_READY,
            libc::EROFS | libc::EPERM | libc::EACCES => WRITE_PROTECTED,
            libc::EILSEQ => MISCOMPARED,
            _ if is_write => WRITE_ERROR,
            _ => READ_ERROR,
        }
    }
}

pub(crate) const NOTHING: Sense = Sense::new(0x0, 0x0000);
pub(crate) const NOT_READY: Sense = Sense::new(0x2, 0x0400);
pub(crate) const WRITE_ERROR: Sense = Sense::new(0x3, 0x0c00);
pub(crate) const READ_ERROR: Sense = Sense::new(0x3, 0x1100);
pub(crate) const UNKNOWN_COMMAND: Sense = Sense::new(0x5, 0x2000);
pub(crate) const OUT_OF_RANGE: Sense = Sense::new(0x5, 0x2100);
pub(crate) const INVALID_FIELD: Sense = Sense::new(0x5, 0x2400);
pub(crate) const NO_UNIT: Sense = Sense::new(0x5, 0x2500);
pub(crate) const LIST_LENGTH: Sense = Sense::new(0x5, 0x1a00);
pub(crate) const INVALID_PARAMETER: Sense = Sense::new(0x5, 0x2600);
pub(crate) const INVALID_RELEASE: Sense = Sense::new(0x5, 0x2604);
pub(crate) const WRITE_PROTECTED: Sense = Sense::new(0x7, 0x2700);
pub(crate) const NO_SPACE: Sense = Sense::new(0x7, 0x2707);
pub(crate) const TOO_MANY_TARGETS: Sense = Sense::new(0x5, 0x2606);
pub(crate) const UNKNOWN_TARGET: Sense = Sense::new(0x5, 0x2607);
pub(crate) const TOO_MANY_SEGMENTS: Sense = Sense::new(0x5, 0x2608);
pub(crate) const UNKNOWN_SEGMENT: Sense = Sense::new(0x5, 0x2609);
pub(crate) const COPY_ABORTED: Sense = Sense::new(0xa, 0x0000);
pub(crate) const UNREACHABLE_TARGET: Sense = Sense::new(0xa, 0x0804);
/// A disk of a copy failed.
pub(crate) const COPY_FAILED: Sense = Sense::new(0xa, 0x0d01);
pub(crate) const MISCOMPARED: Sense = Sense::new(0xe, 0x1d00);
/// Data did not come as the initiator had said.
pub(crate) const DATA_LOST: Sense = Sense::new(0xb, 0x4b00);

pub(crate) const MEDIUM_CHANGED: Sense = Sense::new(0x6, 0x2800);
pub(crate) const POWERED_ON: Sense = Sense::new(0x6, 0x2900);
pub(crate) const UNIT_RESET: Sense = Sense::new(0x6, 0x2903);
pub(crate) const CAPACITY_CHANGED: Sense = Sense::new(0x6, 0x2a09);
pub(crate) const RESERVATIONS_PREEMPTED: Sense = Sense::new(0x6, 0x2a03);
pub(crate) const RESERVATIONS_RELEASED: Sense = Sense::new(0x6, 0x2a04);
pub(crate) const REGISTRATIONS_PREEMPTED: Sense = Sense::new(0x6, 0x2a05);
