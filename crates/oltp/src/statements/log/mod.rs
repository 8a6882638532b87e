//! Logs of statements as servers write them; each format is a file. A reader recognises nothing: [`open`] looks at the beginning.

mod csvlog;
pub(super) mod entry;
mod jsonlog;
mod lines;
mod mysql_general;
mod mysql_slow;
mod postgresql;
mod prefix;
pub(super) mod reader;
mod stderr;
#[cfg(test)]
mod tests;
mod times;

use std::io::BufRead;

use self::{
    csvlog::CsvLog, jsonlog::JsonLog, mysql_general::GeneralLog, mysql_slow::SlowLog, prefix::Prefix,
    reader::LogReader, stderr::StderrLog,
};
use super::lex::Dialect;

/// Bytes of a log that are looked at to recognise it.
pub(super) const HEAD_BYTES: usize = 256 << 10;

/// A log that was recognised.
pub(super) struct Opened<'a> {
    pub(super) format: &'static str,
    pub(super) dialect: Dialect,
    pub(super) reader: Box<dyn LogReader + 'a>,
}

const UNKNOWN: &str = concat!(
    "is no log of statements that is known; accepted: PostgreSQL's csvlog, jsonlog and stderr log with ",
    "log_min_duration_statement=0, the general and the slow log of MySQL and MariaDB"
);

/// Recognises a log by its beginning.
///
/// # Errors
/// Why it is none, as the rest of a sentence.
pub(super) fn open<'a>(
    head: &[u8],
    file: impl BufRead + Send + 'a,
    prefix: Option<&str>,
) -> Result<Opened<'a>, String> {
    if head.starts_with(&[0x1f, 0x8b]) || head.starts_with(b"\x28\xb5\x2f\xfd") {
        return Err("is compressed; unpack it first".into());
    }
    let text = String::from_utf8_lossy(head);
    let (postgresql, mysql) = (Dialect::Postgresql, Dialect::Mysql);
    if let Some(template) = prefix {
        let prefix = Prefix::new(template)?;
        if !text.lines().any(|line| prefix.read(line).is_some()) {
            return Err(format!("no line begins with --prefix {template:?} and a severity"));
        }
        let reader = Box::new(StderrLog::new(file, prefix));
        return Ok(Opened { format: "stderr", dialect: postgresql, reader });
    }
    let mut lines = text.lines();
    if lines.clone().any(|line| line.starts_with('{') && line.contains("\"error_severity\"")) {
        return Ok(Opened { format: "jsonlog", dialect: postgresql, reader: Box::new(JsonLog::new(file)) });
    }
    if lines.clone().any(|line| csvlog::recognises(line.as_bytes())) {
        return Ok(Opened { format: "csvlog", dialect: postgresql, reader: Box::new(CsvLog::new(file)) });
    }
    if lines.clone().any(mysql_slow::recognises) {
        return Ok(Opened { format: "slow log", dialect: mysql, reader: Box::new(SlowLog::new(file)) });
    }
    if let Some(prefix) = Prefix::found(&text) {
        return Ok(Opened { format: "stderr", dialect: postgresql, reader: Box::new(StderrLog::new(file, prefix)) });
    }
    if lines.any(mysql_general::recognises) {
        return Ok(Opened { format: "general log", dialect: mysql, reader: Box::new(GeneralLog::new(file)) });
    }
    let has_messages = ["LOG:  ", "ERROR:  ", "FATAL:  "].iter().any(|word| text.contains(word));
    Err(if has_messages {
        "has a log_line_prefix that is not known; give it with --prefix".into()
    } else {
        UNKNOWN.into()
    })
}
