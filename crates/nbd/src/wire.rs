//! Numbers and units of the protocol. All numbers go with the highest byte first.

pub(crate) const GREETING: u64 = 0x4e42_444d_4147_4943;
pub(crate) const OPTION: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const SIMPLE_REPLY: u32 = 0x6744_6698;
const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// The server knows more than one option, and can leave out the zeroes at the end of a negotiation.
pub(crate) const HANDSHAKE_FLAGS: u16 = FIXED_NEWSTYLE | NO_ZEROES;
pub(crate) const FIXED_NEWSTYLE: u16 = 1;
pub(crate) const NO_ZEROES: u16 = 1 << 1;
pub(crate) const REQUEST_BYTES: usize = 28;
/// Bytes of one read or write.
pub(crate) const PAYLOAD_MOST_BYTES: u32 = 32 << 20;
pub(crate) const PREFERRED_BYTES: u32 = 4096;

pub(crate) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
}

pub(crate) mod reply {
    pub(crate) const DONE: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const UNSUPPORTED: u32 = (1 << 31) + 1;
    pub(crate) const INVALID: u32 = (1 << 31) + 3;
    pub(crate) const UNKNOWN: u32 = (1 << 31) + 6;
}

pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Abilities of an export.
pub(crate) mod can {
    /// Flags, flushes, FUA, trims, zeroes; a flush on one connection holds for all.
    pub(crate) const ALWAYS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8;
    /// A structured reply to a read is never in several parts.
    pub(crate) const WHOLE_READS: u16 = 1 << 7;
}

pub(crate) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISCONNECT: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const WRITE_ZEROES: u16 = 6;
}

pub(crate) mod flag {
    pub(crate) const DURABLE: u16 = 1;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const WHOLE: u16 = 1 << 2;
}

/// Errors that the protocol knows.
pub(crate) mod error {
    pub(crate) const PERMISSION: u32 = 1;
    pub(crate) const IO: u32 = 5;
    pub(crate) const INVALID: u32 = 22;
    pub(crate) const NO_SPACE: u32 = 28;
    pub(crate) const SHUTDOWN: u32 = 108;

    /// The protocol's number for one of the system's.
    pub(crate) fn of_store(number: i32) -> u32 {
        match number {
            libc::EPERM | libc::EACCES | libc::EROFS => PERMISSION,
            libc::ENOSPC | libc::EDQUOT | libc::EFBIG => NO_SPACE,
            libc::EINVAL => INVALID,
            libc::ESHUTDOWN | libc::ENODEV | libc::ENXIO => SHUTDOWN,
            _ => IO,
        }
    }
}

/// A number at a place of a unit that is long enough.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

/// Header of an option: its number and the bytes of its data; None if it does not begin as one.
pub(crate) fn option_of(header: &[u8; 16]) -> Option<(u32, u32)> {
    (u64_at(header, 0) == OPTION).then(|| (u32_at(header, 8), u32_at(header, 12)))
}

/// A reply to an option.
pub(crate) fn option_reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_REPLY.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Asks for a name and for facts about it: the data of INFO and GO.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) infos: Vec<u16>,
}

impl<'a> Asked<'a> {
    /// None if the data are not as long as they say.
    pub(crate) fn of(data: &'a [u8]) -> Option<Self> {
        let (length, rest) = data.split_first_chunk::<4>()?;
        let (name, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let (count, rest) = rest.split_first_chunk::<2>()?;
        let is_whole = rest.len() == 2 * usize::from(u16::from_be_bytes(*count));
        is_whole.then(|| Self { name, infos: rest.chunks_exact(2).map(|info| u16_at(info, 0)).collect() })
    }
}

/// A request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) flags: u16,
    pub(crate) command: u16,
    /// Chosen by the client; the reply carries it.
    pub(crate) cookie: u64,
    pub(crate) at_bytes: u64,
    pub(crate) bytes: u32,
}

impl Request {
    /// None if the unit does not begin as a request.
    pub(crate) fn of(unit: &[u8; REQUEST_BYTES]) -> Option<Self> {
        (u32_at(unit, 0) == REQUEST).then(|| Self {
            flags: u16_at(unit, 4),
            command: u16_at(unit, 6),
            cookie: u64_at(unit, 8),
            at_bytes: u64_at(unit, 16),
            bytes: u32_at(unit, 24),
        })
    }

    /// Header of a reply; after it, the bytes of a read that did not fail.
    pub(crate) fn replied(&self, failed: Option<u32>, read_bytes: usize, is_structured: bool) -> Vec<u8> {
        const LAST: u16 = 1;
        const NOTHING: u16 = 0;
        const DATA: u16 = 1;
        const ERROR: u16 = (1 << 15) + 1;
        if !is_structured || self.command != command::READ {
            let mut bytes = SIMPLE_REPLY.to_be_bytes().to_vec();
            bytes.extend(failed.unwrap_or(0).to_be_bytes());
            bytes.extend(self.cookie.to_be_bytes());
            return bytes;
        }
        let (kind, length) = match failed {
            Some(_) => (ERROR, 6),
            None if read_bytes == 0 => (NOTHING, 0),
            None => (DATA, 8 + read_bytes as u32),
        };
        let mut bytes = STRUCTURED_REPLY.to_be_bytes().to_vec();
        bytes.extend(LAST.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend(self.cookie.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        match failed {
            // An error has a message, which may be empty.
            Some(failed) => bytes.extend(failed.to_be_bytes().into_iter().chain([0; 2])),
            None if read_bytes > 0 => bytes.extend(self.at_bytes.to_be_bytes()),
            None => {}
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn data_that_are_not_as_long_as_they_say_ask_for_nothing() {
        let data = [&[0, 0, 0, 4][..], b"data", &[0, 2, 0, 3, 0, 1]].concat();
        assert_eq!(Asked::of(&data), Some(Asked { name: b"data", infos: vec![3, 1] }));
        for end in 0..data.len() {
            assert_eq!(Asked::of(&data[..end]), None);
        }
        assert_eq!(Asked::of(&[&data[..], &[0]].concat()), None);
        assert_eq!(Asked::of(&[0xff; 12]), None);
    }

    #[test]
    fn a_read_is_replied_to_as_was_agreed() {
        let mut unit = [0; REQUEST_BYTES];
        unit[..4].copy_from_slice(&REQUEST.to_be_bytes());
        unit[15] = 7;
        unit[22] = 2;
        let request = Request::of(&unit).unwrap();
        assert_eq!((request.cookie, request.at_bytes), (7, 512));
        assert_eq!(request.replied(None, 512, false)[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
        let structured = request.replied(None, 512, true);
        assert_eq!(structured[..8], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1]);
        assert_eq!(structured[16..], [0, 0, 2, 8, 0, 0, 0, 0, 0, 0, 2, 0]);
        assert_eq!(request.replied(Some(error::IO), 0, true)[16..], [0, 0, 0, 6, 0, 0, 0, 5, 0, 0]);
        assert_eq!(request.replied(None, 0, true)[4..8], [0, 1, 0, 0]);
    }

    #[test]
    fn each_failure_of_a_store_has_a_number_that_clients_know() {
        let told = [libc::EIO, libc::EILSEQ, libc::ENOSPC, libc::EDQUOT, libc::EINVAL, libc::ESHUTDOWN, libc::EROFS];
        assert_eq!(told.map(error::of_store), [5, 5, 28, 28, 22, 108, 1]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_none(unit: [u8; REQUEST_BYTES], data: Vec<u8>, header: [u8; 16]) {
            prop_assert_eq!(Request::of(&unit).is_some(), unit[..4] == REQUEST.to_be_bytes());
            prop_assert_eq!(option_of(&header).is_some(), header[..8] == OPTION.to_be_bytes());
            if let Some(asked) = Asked::of(&data) {
                prop_assert_eq!(asked.name.len() + 2 * asked.infos.len() + 6, data.len());
            }
        }
    }
}
