//! PostgreSQL's csvlog: 23 columns before version 13, 24 in it, 26 since 14 (PostgreSQL's manual, "Using CSV-Format Log Output").

use std::io::{self, BufRead};

use super::{
    entry::Takes,
    lines::Records,
    postgresql::{Assembler, Message, session_key},
    reader::LogReader,
    times,
};

const COLUMNS: std::ops::RangeInclusive<usize> = 23..=30;

pub(super) struct CsvLog<R> {
    records: Records<R>,
    assembler: Assembler,
}

impl<R: BufRead> CsvLog<R> {
    pub(super) fn new(file: R) -> Self {
        Self { records: Records::new(file), assembler: Assembler::default() }
    }
}

/// Whether a line looks like one of these logs: a time with its zone, and a comma behind it.
pub(super) fn recognises(line: &[u8]) -> bool {
    let Some((_, length)) = times::timestamp(line) else { return false };
    let rest = &line[length..];
    let zone = rest.iter().position(|byte| *byte == b',').unwrap_or(usize::MAX);
    (1..=40).contains(&zone) && !rest[..zone].contains(&b'[')
}

impl<R: BufRead + Send> LogReader for CsvLog<R> {
    fn read_some(&mut self, bytes: u64, takes: &mut dyn Takes) -> io::Result<bool> {
        let mut left = bytes as i64;
        while left > 0 {
            let record = match self.records.next(COLUMNS)? {
                None => {
                    self.assembler.end(takes);
                    return Ok(false);
                }
                Some(Err(line)) => {
                    takes.not_understood(&line);
                    left -= self.records.take_read() as i64;
                    continue;
                }
                Some(Ok(record)) => record,
            };
            let text = |place| String::from_utf8_lossy(record.get(place));
            if let Some((at_ns, _)) = times::timestamp(record.get(0)) {
                let columns = [2, 11, 12, 13, 14, 19, 23].map(text);
                let [database, severity, code, message, detail, statement, backend] = &columns;
                let message = Message {
                    at_ns,
                    session: session_key(&[record.get(5)]),
                    began_ns: times::timestamp(record.get(8)).map(|found| found.0),
                    database,
                    backend,
                    severity,
                    code,
                    text: message,
                    detail,
                    statement,
                };
                self.assembler.message(&message, takes);
            } else {
                takes.not_understood(record.get(0));
            }
            left -= self.records.take_read() as i64;
        }
        Ok(true)
    }
}
