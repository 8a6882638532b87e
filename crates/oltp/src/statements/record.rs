//! Statements as the sorted file has them.

use std::io::{self, Read};

use super::log::entry::Way;

/// Says that a text stands in the record itself.
const INLINE: u32 = u32::MAX;
/// No record is longer: a log's record is bounded, and its parameters are part of it.
const RECORD_MAX_BYTES: usize = 256 << 20;

/// Where a statement's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text<'a> {
    /// Among the texts that many statements share.
    Shared(u32),
    Own(&'a str),
}

/// A statement to be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) start_ns: i64,
    pub(super) duration_ns: Option<u64>,
    pub(super) fingerprint: u32,
    pub(super) counted: u8,
    pub(super) way: Way,
    pub(super) code: Option<&'a str>,
    pub(super) text: Text<'a>,
    /// Parameters as they are encoded.
    parameters: &'a [u8],
    parameters_count: u16,
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Reads the fields of a record in their order.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = u32::from_le_bytes(self.array()?);
        std::str::from_utf8(self.take(length as usize)?).ok()
    }
}

/// Fields of a statement that [`write`] writes beside its text and parameters.
pub(super) struct Facts<'a> {
    pub(super) start_ns: i64,
    pub(super) duration_ns: Option<u64>,
    pub(super) fingerprint: u32,
    pub(super) counted: u8,
    pub(super) way: Way,
    pub(super) code: Option<&'a str>,
}

pub(super) fn write(out: &mut Vec<u8>, facts: &Facts<'_>, text: Text<'_>, parameters: &[Option<String>]) {
    out.extend_from_slice(&facts.start_ns.to_le_bytes());
    out.extend_from_slice(&facts.duration_ns.unwrap_or(u64::MAX).to_le_bytes());
    out.extend_from_slice(&facts.fingerprint.to_le_bytes());
    out.push(facts.counted);
    out.push(match facts.way {
        Way::Simple => 0,
        Way::Extended => 1,
        Way::Prepared => 2,
    });
    put_text(out, facts.code.unwrap_or(""));
    match text {
        Text::Shared(number) => out.extend_from_slice(&number.to_le_bytes()),
        Text::Own(text) => {
            out.extend_from_slice(&INLINE.to_le_bytes());
            put_text(out, text);
        }
    }
    out.extend_from_slice(&(parameters.len() as u16).to_le_bytes());
    for parameter in parameters {
        match parameter {
            Some(value) => {
                out.push(1);
                put_text(out, value);
            }
            None => out.push(0),
        }
    }
}

impl<'a> Record<'a> {
    /// Reads a record; `None` where it is damaged.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes);
        let start_ns = i64::from_le_bytes(cursor.array()?);
        let duration_ns = Some(u64::from_le_bytes(cursor.array()?)).filter(|ns| *ns != u64::MAX);
        let fingerprint = u32::from_le_bytes(cursor.array()?);
        let [counted, way] = cursor.array()?;
        let code = Some(cursor.text()?).filter(|code| !code.is_empty());
        let text = match u32::from_le_bytes(cursor.array()?) {
            INLINE => Text::Own(cursor.text()?),
            number => Text::Shared(number),
        };
        let parameters_count = u16::from_le_bytes(cursor.array()?);
        let way = match way {
            0 => Way::Simple,
            1 => Way::Extended,
            _ => Way::Prepared,
        };
        Some(Self {
            start_ns,
            duration_ns,
            fingerprint,
            counted,
            way,
            code,
            text,
            parameters: cursor.0,
            parameters_count,
        })
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut cursor = Cursor(self.parameters);
        (0..self.parameters_count).map_while(move |_| match cursor.array()? {
            [0] => Some(None),
            _ => Some(Some(cursor.text()?.as_bytes())),
        })
    }
}

/// Reads the next record with its length from a file; false at its end.
pub(super) fn read_next(file: &mut impl Read, record: &mut Vec<u8>) -> io::Result<bool> {
    let mut length = [0; 4];
    match file.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > RECORD_MAX_BYTES {
        return Err(io::Error::other("the sorted log is damaged"));
    }
    record.resize(length, 0);
    file.read_exact(record)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let facts = Facts {
            start_ns: -5,
            duration_ns: Some(7),
            fingerprint: 3,
            counted: 1,
            way: Way::Prepared,
            code: Some("23505"),
        };
        let parameters = [Some("a'b".to_owned()), None, Some(String::new())];
        for text in [Text::Shared(9), Text::Own("select ü")] {
            let mut bytes = Vec::new();
            write(&mut bytes, &facts, text, &parameters);
            let record = Record::read(&bytes).unwrap();
            assert_eq!((record.start_ns, record.duration_ns, record.fingerprint), (-5, Some(7), 3));
            assert_eq!((record.code, record.text, record.way), (Some("23505"), text, Way::Prepared));
            let found: Vec<_> = record.parameters().collect();
            assert_eq!(found, [Some(&b"a'b"[..]), None, Some(b"")]);
            for cut in 0..bytes.len() {
                let _ = Record::read(&bytes[..cut]).map(|record| record.parameters().count());
            }
        }
    }
}
