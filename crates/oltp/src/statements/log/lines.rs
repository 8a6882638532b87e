//! Lines and records of logs, of bounded length.

use std::io::{self, BufRead, Read};

/// The longest line or record that is kept.
pub(super) const RECORD_MAX_BYTES: usize = 16 << 20;
/// A damaged record longer than this is skipped whole; a shorter one is read anew from its second line on.
const DAMAGED_MAX_BYTES: usize = 64 << 10;
const READ_BYTES: usize = 64 << 10;

/// Lines without their ends; the rest of one that is too long is dropped.
pub(super) struct Lines<R> {
    file: R,
    line: Vec<u8>,
    read_bytes: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(file: R) -> Self {
        Self { file, line: Vec::new(), read_bytes: 0 }
    }

    /// Bytes read since the last call.
    pub(super) fn take_read(&mut self) -> u64 {
        std::mem::take(&mut self.read_bytes)
    }

    /// The next line, and whether all of it is there.
    pub(super) fn next(&mut self) -> io::Result<Option<(&[u8], bool)>> {
        self.line.clear();
        let mut limited = (&mut self.file).take(RECORD_MAX_BYTES as u64 + 1);
        let count = limited.read_until(b'\n', &mut self.line)?;
        self.read_bytes += count as u64;
        if count == 0 {
            return Ok(None);
        }
        let is_whole = self.line.ends_with(b"\n") || count <= RECORD_MAX_BYTES;
        if !is_whole {
            self.read_bytes += self.skip_line()?;
        }
        while self.line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.pop();
        }
        Ok(Some((&self.line, is_whole)))
    }

    fn skip_line(&mut self) -> io::Result<u64> {
        let mut skipped = 0;
        loop {
            let held = self.file.fill_buf()?;
            let end = held.iter().position(|byte| *byte == b'\n');
            let (count, is_over) = end.map_or((held.len(), held.is_empty()), |place| (place + 1, true));
            self.file.consume(count);
            skipped += count as u64;
            if is_over {
                return Ok(skipped);
            }
        }
    }
}

/// Records of comma-separated values, whose fields may hold line ends in quotes.
pub(super) struct Records<R> {
    file: R,
    held: Vec<u8>,
    /// Where the next record begins.
    start: usize,
    is_over: bool,
    read_bytes: u64,
    fields: Fields,
}

/// The fields of a record, without quotes.
#[derive(Default)]
pub(super) struct Fields {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Fields {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field; empty where there is none.
    pub(super) fn get(&self, place: usize) -> &[u8] {
        let Some(end) = self.ends.get(place) else { return b"" };
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.text[start..*end]
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

impl<R: Read> Records<R> {
    pub(super) fn new(file: R) -> Self {
        Self { file, held: Vec::new(), start: 0, is_over: false, read_bytes: 0, fields: Fields::default() }
    }

    pub(super) fn take_read(&mut self) -> u64 {
        std::mem::take(&mut self.read_bytes)
    }

    /// Reads more; false at the end of the file.
    fn more(&mut self) -> io::Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        self.held.drain(..self.start);
        self.start = 0;
        let before = self.held.len();
        self.held.resize(before + READ_BYTES.max(before), 0);
        let count = self.file.read(&mut self.held[before..])?;
        self.held.truncate(before + count);
        self.read_bytes += count as u64;
        self.is_over = count == 0;
        Ok(count > 0)
    }

    /// The length of the next record with its line end, if it is held.
    fn length(&self, scanned: &mut (usize, bool)) -> Option<usize> {
        let held = &self.held[self.start..];
        let (mut at, mut is_quoted) = *scanned;
        while at < held.len() {
            match held[at] {
                b'"' => is_quoted = !is_quoted,
                b'\n' if !is_quoted => return Some(at + 1),
                _ => (),
            }
            at += 1;
        }
        *scanned = (at, is_quoted);
        None
    }

    /// The next record, if it has that many fields; else its beginning.
    pub(super) fn next(
        &mut self,
        fields: std::ops::RangeInclusive<usize>,
    ) -> io::Result<Option<Result<&Fields, Vec<u8>>>> {
        let mut scanned = (0, false);
        let length = loop {
            if let Some(length) = self.length(&mut scanned) {
                break length;
            }
            if self.held.len() - self.start > RECORD_MAX_BYTES || !self.more()? {
                break self.held.len() - self.start;
            }
        };
        if length == 0 {
            return Ok(None);
        }
        let record = &self.held[self.start..self.start + length];
        if length <= RECORD_MAX_BYTES {
            split(record, &mut self.fields);
        } else {
            self.fields.clear();
        }
        if fields.contains(&self.fields.len()) {
            self.start += length;
            return Ok(Some(Ok(&self.fields)));
        }
        let first_line = record.iter().position(|byte| *byte == b'\n').map_or(length, |place| place + 1);
        let beginning = record[..first_line.min(500)].to_vec();
        self.start += if length > DAMAGED_MAX_BYTES { length } else { first_line };
        Ok(Some(Err(beginning)))
    }
}

/// Cuts a record into its fields.
fn split(record: &[u8], fields: &mut Fields) {
    fields.clear();
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    let record = record.strip_suffix(b"\r").unwrap_or(record);
    let (mut at, mut is_quoted) = (0, false);
    while at < record.len() {
        match record[at] {
            b'"' if is_quoted && record.get(at + 1) == Some(&b'"') => {
                fields.text.push(b'"');
                at += 1;
            }
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => fields.ends.push(fields.text.len()),
            byte => fields.text.push(byte),
        }
        at += 1;
    }
    fields.ends.push(fields.text.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_hold_line_ends_and_quotes_and_a_damaged_one_costs_its_line() {
        let text = b"broken \"\"\n1,\"a\nb \"\"c\"\"\",3\n\n4,,6\n7,8,9";
        let mut records = Records::new(&text[..]);
        let mut found = Vec::new();
        while let Some(record) = records.next(3..=3).unwrap() {
            found.push(record.map(|fields| (0..3).map(|place| fields.get(place).to_vec()).collect::<Vec<_>>()).ok());
        }
        let whole: Vec<_> = found.iter().flatten().map(|fields| fields.join(&b'|')).collect();
        assert_eq!(whole, [&b"1|a\nb \"c\"|3"[..], b"4||6", b"7|8|9"]);
        assert_eq!(found.iter().filter(|one| one.is_none()).count(), 2);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut() {
        let mut text = vec![b'x'; RECORD_MAX_BYTES + 10];
        text.extend_from_slice(b"\nnext\r\n");
        let mut lines = Lines::new(&text[..]);
        assert!(!lines.next().unwrap().unwrap().1);
        assert_eq!(lines.next().unwrap(), Some((&b"next"[..], true)));
        assert_eq!(lines.next().unwrap(), None);
    }
}
