//! Texts of logins and discovery: `key=value`, each ended by a zero (RFC 7143, 6.1).

/// Bytes of keys and values that a login may bring; RFC 7143 asks for at least 8 KiB of a key's value.
pub(crate) const TEXT_MOST_BYTES: usize = 64 << 10;

/// Keys and values, in the order in which they came.
///
/// Gives None if a part has no `=`, a key is longer than 63 bytes, or something is no UTF-8.
pub(crate) fn pairs(bytes: &[u8]) -> Option<Vec<(&str, &str)>> {
    let parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    parts.map(|part| std::str::from_utf8(part).ok()?.split_once('=').filter(|(key, _)| key.len() <= 63)).collect()
}

/// Appends a key and its value.
pub(crate) fn put(texts: &mut Vec<u8>, key: &str, value: &str) {
    texts.extend_from_slice(key.as_bytes());
    texts.push(b'=');
    texts.extend_from_slice(value.as_bytes());
    texts.push(0);
}

/// A number as texts write it: decimal, or hexadecimal after `0x`.
pub(crate) fn number(value: &str) -> Option<u32> {
    match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

/// Bytes that a text writes in hexadecimal digits, at most `most`.
pub(crate) fn from_hex(value: &str, most: usize) -> Option<Vec<u8>> {
    let digits = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X"))?;
    if digits.len() > 2 * most || !digits.is_ascii() {
        return None;
    }
    let even = if digits.len().is_multiple_of(2) { digits.to_owned() } else { format!("0{digits}") };
    (0..even.len()).step_by(2).map(|at| u8::from_str_radix(&even[at..at + 2], 16).ok()).collect()
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_were_put() {
        let mut texts = Vec::new();
        put(&mut texts, "InitiatorName", "iqn.1993-08.org.debian:01:x=y");
        put(&mut texts, "AuthMethod", "CHAP,None");
        let wanted = vec![("InitiatorName", "iqn.1993-08.org.debian:01:x=y"), ("AuthMethod", "CHAP,None")];
        assert_eq!(pairs(&texts), Some(wanted));
    }

    #[test]
    fn parts_that_are_no_pairs_are_refused() {
        assert_eq!(pairs(b"InitiatorName\0"), None);
        assert_eq!(pairs(&[b'a', b'=', 0xff, 0]), None);
        assert_eq!(pairs(format!("{}=1", "k".repeat(64)).as_bytes()), None);
        assert_eq!(pairs(b"\0\0"), Some(vec![]));
    }

    #[test]
    fn numbers_and_bytes_are_read_in_both_of_their_forms() {
        assert_eq!((number("65536"), number("0x10"), number("-1"), number("")), (Some(65536), Some(16), None, None));
        assert_eq!(from_hex("0xabc", 4), Some(vec![0x0a, 0xbc]));
        assert_eq!(from_hex(&to_hex(&[0, 255]), 2), Some(vec![0, 255]));
        assert_eq!((from_hex("0xabcdef", 2), from_hex("abcd", 2), from_hex("0xzz", 2)), (None, None, None));
    }
}
