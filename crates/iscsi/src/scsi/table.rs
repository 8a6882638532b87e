//! The commands that a disk here knows, and which bits of theirs it looks at (SPC-4, SBC-3).

/// A command: its operation code, its service action if it has one, the bits of its bytes that are looked at.
pub(crate) struct Known {
    pub(crate) code: u8,
    pub(crate) action: Option<u16>,
    pub(crate) usage: &'static [u8],
}

const fn known(code: u8, action: Option<u16>, usage: &'static [u8]) -> Known {
    Known { code, action, usage }
}

const SIX: &[u8] = &[0xff, 0, 0, 0, 0, 0x07];
const READ_6: &[u8] = &[0xff, 0x1f, 0xff, 0xff, 0xff, 0x07];
const ALLOCATED_6: &[u8] = &[0xff, 0, 0, 0xff, 0xff, 0x07];
const TEN: &[u8] = &[0xff, 0xfa, 0xff, 0xff, 0xff, 0xff, 0x3f, 0xff, 0xff, 0x07];
const TWELVE: &[u8] = &[0xff, 0xfa, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0x07];
const SIXTEEN: &[u8] =
    &[0xff, 0xfa, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0x07];
const SERVICE_16: &[u8] =
    &[0xff, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x07];
const SERVICE_12: &[u8] = &[0xff, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x07];
const COPY: &[u8] = &[0xff, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x07];
const COPY_RESULTS: &[u8] = &[0xff, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x07];
const RESERVE_IN: &[u8] = &[0xff, 0x1f, 0, 0, 0, 0, 0, 0xff, 0xff, 0x07];
const RESERVE_OUT: &[u8] = &[0xff, 0x1f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x07];

pub(crate) const COMMANDS: &[Known] = &[
    known(0x00, None, SIX),
    known(0x03, None, &[0xff, 0x01, 0, 0, 0xff, 0x07]),
    known(0x08, None, READ_6),
    known(0x0a, None, READ_6),
    known(0x12, None, &[0xff, 0x01, 0xff, 0xff, 0xff, 0x07]),
    known(0x15, None, &[0xff, 0x11, 0, 0, 0xff, 0x07]),
    known(0x16, None, SIX),
    known(0x17, None, SIX),
    known(0x1a, None, &[0xff, 0x08, 0xff, 0xff, 0xff, 0x07]),
    known(0x1b, None, &[0xff, 0x01, 0, 0x0f, 0xf7, 0x07]),
    known(0x1e, None, ALLOCATED_6),
    known(0x25, None, &[0xff, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x01, 0x07]),
    known(0x28, None, TEN),
    known(0x2a, None, TEN),
    known(0x2e, None, TEN),
    known(0x2f, None, TEN),
    known(0x34, None, TEN),
    known(0x35, None, TEN),
    known(0x37, None, &[0xff, 0, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0x07]),
    known(0x41, None, TEN),
    known(0x42, None, &[0xff, 0x01, 0, 0, 0, 0, 0x3f, 0xff, 0xff, 0x07]),
    known(0x55, None, &[0xff, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0x07]),
    known(0x5a, None, &[0xff, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0x07]),
    known(0x5e, Some(0x00), RESERVE_IN),
    known(0x5e, Some(0x01), RESERVE_IN),
    known(0x5e, Some(0x02), RESERVE_IN),
    known(0x5e, Some(0x03), RESERVE_IN),
    known(0x5f, Some(0x00), RESERVE_OUT),
    known(0x5f, Some(0x01), RESERVE_OUT),
    known(0x5f, Some(0x02), RESERVE_OUT),
    known(0x5f, Some(0x03), RESERVE_OUT),
    known(0x5f, Some(0x04), RESERVE_OUT),
    known(0x5f, Some(0x05), RESERVE_OUT),
    known(0x5f, Some(0x06), RESERVE_OUT),
    known(0x83, Some(0x00), COPY),
    known(0x84, Some(0x00), COPY_RESULTS),
    known(0x84, Some(0x03), COPY_RESULTS),
    known(0x88, None, SIXTEEN),
    known(0x89, None, SIXTEEN),
    known(0x8a, None, SIXTEEN),
    known(0x8b, None, SIXTEEN),
    known(0x8e, None, SIXTEEN),
    known(0x8f, None, SIXTEEN),
    known(0x90, None, SIXTEEN),
    known(0x91, None, SIXTEEN),
    known(0x93, None, SIXTEEN),
    known(0x9e, Some(0x10), SERVICE_16),
    known(0x9e, Some(0x12), SERVICE_16),
    known(0xa0, None, &[0xff, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x07]),
    known(0xa3, Some(0x0a), SERVICE_12),
    known(0xa3, Some(0x0c), SERVICE_12),
    known(0xa8, None, TWELVE),
    known(0xaa, None, TWELVE),
    known(0xae, None, TWELVE),
    known(0xaf, None, TWELVE),
    known(0xb7, None, &[0xff, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x07]),
];

/// Bytes of a command by its operation code (SPC-4, 4.2.5.1); none for those of variable length.
pub(crate) fn length(code: u8) -> Option<usize> {
    match code >> 5 {
        0 => Some(6),
        1 | 2 => Some(10),
        4 => Some(16),
        5 => Some(12),
        _ => None,
    }
}

pub(crate) fn is_known(code: u8, action: u16) -> bool {
    COMMANDS.iter().any(|known| known.code == code && known.action.is_none_or(|own| own == action))
}

/// Answers REPORT SUPPORTED OPERATION CODES (SPC-4, 6.35).
///
/// Gives None for an option that asks wrongly.
pub(crate) fn report(cdb: &[u8; 16]) -> Option<Vec<u8>> {
    let has_times = cdb[2] & 0x80 != 0;
    let (code, action) = (cdb[3], u16::from_be_bytes([cdb[4], cdb[5]]));
    let actions = |code: u8| COMMANDS.iter().any(|known| known.code == code && known.action.is_some());
    match cdb[2] & 7 {
        0 => {
            let mut list = vec![0; 4];
            for known in COMMANDS {
                let action = known.action.unwrap_or(0).to_be_bytes();
                let flags = u8::from(known.action.is_some()) | u8::from(has_times) << 1;
                list.extend([known.code, 0, action[0], action[1], 0, flags, 0, known.usage.len() as u8]);
                if has_times {
                    list.extend(times());
                }
            }
            let bytes = (list.len() - 4) as u32;
            list[..4].copy_from_slice(&bytes.to_be_bytes());
            Some(list)
        }
        1 if !actions(code) => Some(one(COMMANDS.iter().find(|known| known.code == code), has_times)),
        2 if actions(code) || COMMANDS.iter().all(|known| known.code != code) => {
            Some(one(COMMANDS.iter().find(|known| known.code == code && known.action == Some(action)), has_times))
        }
        3 => Some(one(
            COMMANDS.iter().find(|known| known.code == code && known.action.unwrap_or(0) == action),
            has_times,
        )),
        _ => None,
    }
}

fn one(found: Option<&Known>, has_times: bool) -> Vec<u8> {
    let Some(known) = found else { return vec![0, 1, 0, 0] };
    let mut bytes = vec![0, 3 | u8::from(has_times) << 7, 0, known.usage.len() as u8];
    bytes.push(known.code);
    let mut usage = known.usage[1..].to_vec();
    if let Some(action) = known.action {
        usage[0] = usage[0] & 0xe0 | action as u8;
    }
    bytes.extend(usage);
    if has_times {
        bytes.extend(times());
    }
    bytes
}

/// A descriptor of times that says none.
fn times() -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[1] = 10;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_as_many_bytes_as_its_code_says() {
        for known in COMMANDS {
            assert_eq!(Some(known.usage.len()), length(known.code), "{:#x}", known.code);
        }
    }

    #[test]
    fn one_command_is_reported_with_its_usage() {
        let mut cdb = [0; 16];
        (cdb[2], cdb[3]) = (1, 0x28);
        let found = report(&cdb).unwrap();
        assert_eq!((found[1], found[3], found[4], found.len()), (3, 10, 0x28, 14));
        cdb[3] = 0xff;
        assert_eq!(report(&cdb), Some(vec![0, 1, 0, 0]));
        // READ CAPACITY (16) has a service action, and must be asked for with it.
        cdb[3] = 0x9e;
        assert_eq!(report(&cdb), None);
    }
}
