//! Protocol data units: a header of 48 bytes, further headers, data (RFC 7143, chapter 11).

/// Bytes of a basic header segment.
pub(crate) const HEADER_BYTES: usize = 48;
/// A tag that names no task.
pub(crate) const NO_TAG: u32 = u32::MAX;

/// Operation codes of initiators.
pub(crate) mod ask {
    pub(crate) const NOP: u8 = 0x00;
    pub(crate) const COMMAND: u8 = 0x01;
    pub(crate) const MANAGE: u8 = 0x02;
    pub(crate) const LOGIN: u8 = 0x03;
    pub(crate) const TEXT: u8 = 0x04;
    pub(crate) const DATA: u8 = 0x05;
    pub(crate) const LOGOUT: u8 = 0x06;
}

/// Operation codes of targets.
pub(crate) mod tell {
    pub(crate) const NOP: u8 = 0x20;
    pub(crate) const RESPONSE: u8 = 0x21;
    pub(crate) const MANAGED: u8 = 0x22;
    pub(crate) const LOGIN: u8 = 0x23;
    pub(crate) const TEXT: u8 = 0x24;
    pub(crate) const DATA: u8 = 0x25;
    pub(crate) const LOGOUT: u8 = 0x26;
    pub(crate) const READY: u8 = 0x31;
    pub(crate) const ASYNC: u8 = 0x32;
    pub(crate) const REJECT: u8 = 0x3f;
}

/// Reasons of rejects (RFC 7143, 11.17.1).
pub(crate) mod reject {
    pub(crate) const PROTOCOL_ERROR: u8 = 0x04;
    pub(crate) const NOT_SUPPORTED: u8 = 0x05;
}

pub(crate) const FINAL: u8 = 0x80;
pub(crate) const CONTINUE: u8 = 0x40;
pub(crate) const READ: u8 = 0x40;
pub(crate) const WRITE: u8 = 0x20;

/// A basic header segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header(pub(crate) [u8; HEADER_BYTES]);

impl Header {
    /// Begins an answer of the target; no task has asked for it yet.
    pub(crate) fn new(opcode: u8, flags: u8) -> Self {
        let mut bytes = [0; HEADER_BYTES];
        (bytes[0], bytes[1]) = (opcode, flags);
        Self(bytes).with(16, NO_TAG)
    }

    pub(crate) fn opcode(&self) -> u8 {
        self.0[0] & 0x3f
    }

    /// Whether the command takes no place in the order of commands.
    pub(crate) fn is_immediate(&self) -> bool {
        self.0[0] & 0x40 != 0
    }

    pub(crate) fn flags(&self) -> u8 {
        self.0[1]
    }

    pub(crate) fn is_final(&self) -> bool {
        self.0[1] & FINAL != 0
    }

    /// Bytes of further headers.
    pub(crate) fn more_bytes(&self) -> usize {
        usize::from(self.0[4]) * 4
    }

    /// Bytes of the data segment; the filling of its last word is not counted.
    pub(crate) fn data_bytes(&self) -> usize {
        u32::from_be_bytes([0, self.0[5], self.0[6], self.0[7]]) as usize
    }

    pub(crate) fn lun(&self) -> [u8; 8] {
        self.array(8)
    }

    pub(crate) fn task_tag(&self) -> u32 {
        self.u32(16)
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub(crate) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0[at..at + N].try_into().expect("fields lie within the header")
    }

    pub(crate) fn with(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn with_u16(mut self, at: usize, value: u16) -> Self {
        self.0[at..at + 2].copy_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn with_byte(mut self, at: usize, value: u8) -> Self {
        self.0[at] = value;
        self
    }

    pub(crate) fn with_bytes(mut self, at: usize, value: &[u8]) -> Self {
        self.0[at..at + value.len()].copy_from_slice(value);
        self
    }

    pub(crate) fn with_data_bytes(self, bytes: usize) -> Self {
        let length = (bytes as u32).to_be_bytes();
        self.with_bytes(5, &length[1..])
    }
}

/// Bytes that fill data to a whole word of four.
pub(crate) fn filling(bytes: usize) -> usize {
    bytes.wrapping_neg() & 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_keeps_its_fields_apart() {
        let header = Header::new(tell::DATA, FINAL).with(16, 7).with_data_bytes(0x0102_0304).with_u16(44, 9);
        assert_eq!((header.opcode(), header.flags(), header.task_tag()), (0x25, 0x80, 7));
        assert_eq!((header.data_bytes(), header.more_bytes(), header.u16(44)), (0x02_0304, 0, 9));
    }

    #[test]
    fn data_are_filled_to_words() {
        assert_eq!([0, 1, 2, 3, 4].map(filling), [0, 3, 2, 1, 0]);
    }
}
