use std::path::{Path, PathBuf};

use assay_loading::DatabaseError;

use super::{
    LogIntake, LogOptions, StoredLog,
    record::{Record, Text},
};

fn options(writes: bool) -> LogOptions {
    LogOptions { writes, prefix: None, database: None, folder: std::env::temp_dir() }
}

/// A log in a file of its own, which goes when the test ends.
struct LogFile(PathBuf);

impl LogFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("assay-log-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn read(options: LogOptions, path: &Path) -> Result<StoredLog, DatabaseError> {
    let mut intake = LogIntake::new(options);
    intake.open(path)?;
    while intake.read_some(1000)? {}
    intake.finish()
}

fn line(ms: u32, process: u32, database: &str, text: &str) -> String {
    let (second, ms) = (ms / 1000, ms % 1000);
    format!(
        "2026-11-27 10:00:{second:02}.{ms:03} UTC [{process}] u@{database} LOG:  duration: 1.000 ms  statement: {text}\n"
    )
}

fn texts(log: &StoredLog, session: usize) -> Vec<String> {
    let mut statements = log.statements(&log.sessions[session], 64);
    let mut found = Vec::new();
    while let Some(bytes) = statements.next().unwrap() {
        found.push(match Record::read(bytes).unwrap().text {
            Text::Own(text) => text.to_owned(),
            Text::Shared(number) => log.texts[number as usize].to_string(),
        });
    }
    found
}

#[test]
fn statements_lie_by_session_in_their_order() {
    let long = format!("SELECT '{}'", "x".repeat(100));
    let text = [
        line(100, 7, "shop", "BEGIN READ WRITE"),
        line(110, 8, "shop", &long),
        line(120, 7, "shop", "INSERT INTO t VALUES (1)"),
        line(130, 7, "shop", "COMMIT"),
        line(2130, 9, "shop", "SELECT 1"),
        line(2140, 10, "other", "SELECT 1"),
        line(2150, 8, "shop", "COPY t FROM STDIN"),
    ]
    .concat();
    let file = LogFile::new("order", &text);
    let log = read(options(false), &file.0).unwrap();
    assert_eq!((log.survey.sessions, log.survey.statements, log.survey.sessions_most), (3, 4, 2));
    assert_eq!(texts(&log, 0), ["START TRANSACTION READ ONLY", "COMMIT"]);
    assert_eq!(texts(&log, 1), [long]);
    assert_eq!(texts(&log, 2), ["SELECT 1"]);
    assert_eq!(log.survey.left_out.values().copied().collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(log.survey.end_ns - log.survey.begin_ns, 2_031_000_000);
    let log = read(options(true), &file.0).unwrap();
    assert_eq!(texts(&log, 0), ["BEGIN READ WRITE", "INSERT INTO t VALUES (1)", "COMMIT"]);
    let log = read(LogOptions { database: Some("other".into()), ..options(true) }, &file.0).unwrap();
    assert_eq!(log.survey.sessions, 1);
}

#[test]
fn what_cannot_be_replayed_is_refused_in_one_line() {
    let nothing = LogFile::new("nothing", &line(1, 7, "shop", "COPY t FROM STDIN"));
    let refused = |options, path: &Path| read(options, path).err().unwrap().to_string();
    assert!(refused(options(true), &nothing.0).contains("no statement to replay; left out: 1 COPY"));
    let some = LogFile::new("some", &line(1, 7, "shop", "SELECT 1"));
    let elsewhere = LogOptions { database: Some("x".into()), ..options(true) };
    assert!(refused(elsewhere, &some.0).contains("--from-database x: the log has none"));
    assert!(refused(options(true), Path::new("/nowhere/log")).contains("cannot be read"));
    assert!(refused(options(true), &std::env::temp_dir()).contains("is no file"));
    let empty = LogFile::new("empty", "");
    assert!(refused(options(true), &empty.0).contains("is empty"));
}
