//! A log as a replay needs it: the statements of each session one after the other in a file without a name, and a list of the sessions
//! by the time at which they connect. What memory holds of it grows with sessions, not with statements.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use assay_loading::DatabaseError;
use serde::{Deserialize, Serialize};

use super::{
    kinds::COUNTED,
    known::{Known, Texts},
    lex::Dialect,
    log::{
        HEAD_BYTES,
        entry::{Account, Logged, News, Takes},
        open,
        reader::LogReader,
    },
    record::{Facts, Record, Text, read_next, write},
    sketch::Sketch,
    sort::{Part, Sorter, unnamed_file},
};

const SESSIONS_MAX: usize = 4_000_000;
/// A session that the log does not see connecting connects so long before its first statement.
const CONNECTS_BEFORE_NS: i64 = 100_000_000;
/// Says that a piece is the beginning of a session.
const BEGINS: u8 = 0;
const STATEMENT: u8 = 1;

const BEGINNING: &str = "START TRANSACTION READ ONLY";
const OTHER_DATABASE: &str = "statements in other databases (name one with --from-database)";

/// How a log is read.
#[derive(Debug, Clone, Deserialize)]
pub struct LogOptions {
    /// Whether statements that write are kept.
    pub writes: bool,
    #[serde(default)]
    pub prefix: Option<String>,
    /// The database whose sessions are kept; that of the most statements unless given.
    #[serde(default)]
    pub database: Option<String>,
    /// Folder of the file without a name.
    pub folder: PathBuf,
}

/// A session of the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub(super) connects_ns: i64,
    first_ns: i64,
    last_ns: i64,
    offset: u64,
    end: u64,
    pub(super) count: u64,
    database: u32,
}

/// Contents of a log in figures, for people and plans.
#[derive(Debug, Clone, Serialize)]
pub struct Survey {
    pub formats: Vec<&'static str>,
    pub dialect: &'static str,
    pub read_bytes: u64,
    /// Statements by database, of all that could be replayed.
    pub databases: BTreeMap<String, u64>,
    pub database: String,
    pub sessions: u64,
    /// Sessions at the same time, at most.
    pub sessions_most: u64,
    pub statements: u64,
    pub by_kind: BTreeMap<&'static str, u64>,
    pub with_parameters: u64,
    pub failed: u64,
    /// Statements without a response time.
    pub untimed: u64,
    pub fingerprints: usize,
    /// On the log's own clock.
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Whether the log tells times to the second alone.
    pub by_second: bool,
    /// Statements that began before the one before them, by more than a second.
    pub clock_back: u64,
    pub recorded_mean_ns: Option<f64>,
    pub recorded_p50_ns: Option<f64>,
    pub recorded_p95_ns: Option<f64>,
    pub recorded_p99_ns: Option<f64>,
    pub left_out: BTreeMap<&'static str, u64>,
    pub not_understood: u64,
    pub example: Option<String>,
}

/// Takes statements while logs are read.
struct Intake {
    writes: bool,
    texts: Texts,
    sorter: Sorter,
    account: Account,
    by_kind: [u64; COUNTED.len()],
    with_parameters: u64,
    failed: u64,
    untimed: u64,
    recorded: Sketch,
    is_by_second: bool,
    clock_back: u64,
    latest_ns: i64,
    error: Option<io::Error>,
}

impl Takes for Intake {
    fn take(&mut self, session: u64, news: News) {
        let pushed = match news {
            News::Begins { at_ns, database } => self.sorter.push(session, |out| {
                out.push(BEGINS);
                out.extend_from_slice(&at_ns.to_le_bytes());
                out.extend_from_slice(database.as_bytes());
            }),
            News::Statement(logged) => self.statement(session, logged),
        };
        if let Err(error) = pushed {
            self.error.get_or_insert(error);
        }
    }

    fn left_out(&mut self, reason: &'static str, count: u64) {
        self.account.left_out(reason, count);
    }

    fn not_understood(&mut self, line: &[u8]) {
        self.account.not_understood(line);
    }
}

impl Intake {
    fn new(dialect: Dialect, writes: bool, file: File) -> Self {
        Self {
            writes,
            texts: Texts::new(dialect),
            sorter: Sorter::new(file),
            account: Account::default(),
            by_kind: [0; COUNTED.len()],
            with_parameters: 0,
            failed: 0,
            untimed: 0,
            recorded: Sketch::default(),
            is_by_second: true,
            clock_back: 0,
            latest_ns: i64::MIN,
            error: None,
        }
    }

    fn statement(&mut self, session: u64, logged: Logged) -> io::Result<()> {
        let found = self.texts.facts(&logged.text, logged.way);
        let refused = if self.writes { None } else { found.kind.writes };
        if let Some(reason) = found.kind.never.or(refused) {
            self.account.left_out(reason, 1);
            return Ok(());
        }
        let is_changed = found.kind.begins_writing && !self.writes;
        let text = match found.shared {
            _ if is_changed => Text::Own(BEGINNING),
            Some(number) => Text::Shared(number),
            None => Text::Own(&logged.text),
        };
        let known = &mut self.texts.fingerprints[found.fingerprint as usize];
        known.count += 1;
        known.recorded_ns += logged.duration_ns.unwrap_or(0) as f64;
        let end_ns = logged.start_ns.saturating_add(logged.duration_ns.unwrap_or(0) as i64);
        self.clock_back += u64::from(end_ns < self.latest_ns.saturating_sub(1_000_000_000));
        self.latest_ns = self.latest_ns.max(end_ns);
        self.is_by_second &= end_ns % 1_000_000_000 == 0 || logged.start_ns % 1_000_000_000 == 0;
        match logged.duration_ns {
            Some(duration_ns) => self.recorded.record(duration_ns),
            None => self.untimed += 1,
        }
        self.by_kind[usize::from(found.kind.counted)] += 1;
        self.with_parameters += u64::from(!logged.parameters.is_empty());
        self.failed += u64::from(logged.code.is_some());
        let facts = Facts {
            start_ns: logged.start_ns,
            duration_ns: logged.duration_ns,
            fingerprint: found.fingerprint,
            counted: found.kind.counted,
            way: logged.way,
            code: logged.code.as_deref(),
        };
        self.sorter.push(session, |out| {
            out.push(STATEMENT);
            write(out, &facts, text, &logged.parameters);
        })
    }
}

/// A log that is being read.
pub struct LogIntake {
    options: LogOptions,
    intake: Option<Intake>,
    dialect: Option<Dialect>,
    formats: Vec<&'static str>,
    current: Option<(PathBuf, Box<dyn LogReader>)>,
    read_bytes: u64,
}

fn refuse(path: &Path, why: impl std::fmt::Display) -> DatabaseError {
    DatabaseError::InvalidPlan(format!("{}: {why}", path.display()))
}

fn failed(error: io::Error) -> DatabaseError {
    DatabaseError::Other(format!("the log cannot be sorted in a temporary file: {error}"))
}

impl LogIntake {
    pub fn new(options: LogOptions) -> Self {
        Self { options, intake: None, dialect: None, formats: Vec::new(), current: None, read_bytes: 0 }
    }

    /// Opens the next log; gives its format.
    ///
    /// # Errors
    /// [`DatabaseError::InvalidPlan`] when it cannot be read or is none.
    pub fn open(&mut self, path: &Path) -> Result<&'static str, DatabaseError> {
        let unreadable = |error: io::Error| refuse(path, format!("cannot be read: {error}"));
        let mut file = File::open(path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(refuse(path, "is no file"));
        }
        let mut head = Vec::new();
        (&mut file).take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(unreadable)?;
        if head.is_empty() {
            return Err(refuse(path, "is empty"));
        }
        let whole = BufReader::with_capacity(1 << 20, io::Cursor::new(head.clone()).chain(file));
        let opened = open(&head, whole, self.options.prefix.as_deref()).map_err(|why| refuse(path, why))?;
        if self.dialect.is_some_and(|dialect| dialect != opened.dialect) {
            return Err(refuse(path, "is the log of another kind of server than the one before"));
        }
        if self.intake.is_none() {
            let file = unnamed_file(&self.options.folder).map_err(failed)?;
            self.intake = Some(Intake::new(opened.dialect, self.options.writes, file));
        }
        self.dialect = Some(opened.dialect);
        if !self.formats.contains(&opened.format) {
            self.formats.push(opened.format);
        }
        self.current = Some((path.to_owned(), opened.reader));
        Ok(opened.format)
    }

    /// Reads about as many bytes of the log that was opened last; false at its end.
    ///
    /// # Errors
    /// [`DatabaseError`] when the log cannot be read or sorted.
    pub fn read_some(&mut self, bytes: u64) -> Result<bool, DatabaseError> {
        let (Some((path, reader)), Some(intake)) = (&mut self.current, &mut self.intake) else { return Ok(false) };
        let goes_on =
            reader.read_some(bytes, intake).map_err(|error| refuse(path, format!("cannot be read: {error}")))?;
        if let Some(error) = intake.error.take() {
            return Err(failed(error));
        }
        self.read_bytes += bytes;
        if !goes_on {
            self.current = None;
        }
        Ok(goes_on)
    }

    /// Sorts the statements read so far by sessions.
    ///
    /// # Errors
    /// [`DatabaseError::InvalidPlan`] when there is nothing to replay.
    pub fn finish(self) -> Result<StoredLog, DatabaseError> {
        let (Some(intake), Some(dialect)) = (self.intake, self.dialect) else {
            return Err(DatabaseError::InvalidPlan("no log was opened".into()));
        };
        let file = unnamed_file(&self.options.folder).map_err(failed)?;
        let Intake { sorter, texts, account, by_kind, recorded, .. } = intake;
        let mut sessions = Sessions::new(&file);
        sorter.merge(|key, piece| sessions.take(key, piece)).map_err(failed)?;
        let (mut sessions, names) = sessions.end().map_err(failed)?;
        if sessions.is_empty() {
            return Err(DatabaseError::InvalidPlan(nothing_words(&account)));
        }
        let counts = by_database(&sessions, &names);
        let most = counts.iter().max_by_key(|(_, count)| **count).map(|(name, _)| name.clone()).unwrap_or_default();
        let database = self.options.database.unwrap_or(most);
        let number = names.iter().position(|name| *name == database).ok_or_else(|| {
            let known = names.join(", ");
            DatabaseError::InvalidPlan(format!("--from-database {database}: the log has none; it has: {known}"))
        })?;
        let mut left_out = account.left_out;
        let others: u64 = counts.iter().filter(|(name, _)| **name != database).map(|(_, count)| *count).sum();
        if others > 0 {
            left_out.insert(OTHER_DATABASE, others);
        }
        sessions.retain(|session| session.database as usize == number);
        sessions.sort_by_key(|session| (session.connects_ns, session.offset));
        let begin_ns = sessions.iter().map(|session| session.first_ns).min().unwrap_or(0);
        let end_ns = sessions.iter().map(|session| session.last_ns).max().unwrap_or(0);
        let survey = Survey {
            formats: self.formats,
            dialect: if dialect == Dialect::Postgresql { "postgresql" } else { "mysql" },
            read_bytes: self.read_bytes,
            databases: counts,
            database,
            sessions: sessions.len() as u64,
            sessions_most: most_at_once(&sessions),
            statements: sessions.iter().map(|session| session.count).sum(),
            by_kind: COUNTED.into_iter().zip(by_kind).collect(),
            with_parameters: intake.with_parameters,
            failed: intake.failed,
            untimed: intake.untimed,
            fingerprints: texts.fingerprints.iter().filter(|known| known.count > 0).count(),
            begin_ns,
            end_ns,
            by_second: intake.is_by_second,
            clock_back: intake.clock_back,
            recorded_mean_ns: recorded.mean_ns(),
            recorded_p50_ns: recorded.quantile_ns(0.5),
            recorded_p95_ns: recorded.quantile_ns(0.95),
            recorded_p99_ns: recorded.quantile_ns(0.99),
            left_out,
            not_understood: account.not_understood,
            example: account.example,
        };
        Ok(StoredLog { survey, dialect, file, sessions, texts: texts.shared, fingerprints: texts.fingerprints })
    }
}

/// Why there is nothing to replay.
fn nothing_words(account: &Account) -> String {
    let left: Vec<_> = account.left_out.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let left = if left.is_empty() { String::new() } else { format!("; left out: {}", left.join(", ")) };
    format!(
        "the log holds no statement to replay{left}; PostgreSQL logs them with log_min_duration_statement=0, MariaDB with \
         general_log or slow_query_log and long_query_time=0"
    )
}

fn by_database(sessions: &[Session], names: &[String]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for session in sessions {
        *counts.entry(names[session.database as usize].clone()).or_default() += session.count;
    }
    counts
}

/// Sessions at the same time, at most.
fn most_at_once(sessions: &[Session]) -> u64 {
    let mut ends: Vec<i64> = sessions.iter().map(|session| session.last_ns).collect();
    ends.sort_unstable();
    let (mut ended, mut most) = (0, 0);
    for (begun, session) in sessions.iter().enumerate() {
        while ended < ends.len() && ends[ended] < session.connects_ns {
            ended += 1;
        }
        most = most.max(begun + 1 - ended.min(begun));
    }
    most as u64
}

/// Writes the statements of sessions while they come, session by session.
struct Sessions<'a> {
    out: io::BufWriter<&'a File>,
    written: u64,
    found: Vec<Session>,
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    current: Option<(u64, Session, bool)>,
}

impl<'a> Sessions<'a> {
    fn new(file: &'a File) -> Self {
        Self {
            out: io::BufWriter::with_capacity(1 << 20, file),
            written: 0,
            found: Vec::new(),
            names: Vec::new(),
            by_name: HashMap::new(),
            current: None,
        }
    }

    fn database(&mut self, name: &str) -> u32 {
        if let Some(number) = self.by_name.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        let number = self.names.len() as u32 - 1;
        self.by_name.insert(name.to_owned(), number);
        number
    }

    fn take(&mut self, key: u64, piece: &[u8]) -> io::Result<()> {
        if self.current.as_ref().is_none_or(|(current, ..)| *current != key) {
            self.next()?;
            let database = self.database("");
            let session = Session {
                connects_ns: i64::MAX,
                first_ns: i64::MAX,
                last_ns: i64::MIN,
                offset: self.written,
                end: self.written,
                count: 0,
                database,
            };
            self.current = Some((key, session, false));
        }
        let Some((what, body)) = piece.split_first() else { return Ok(()) };
        if *what == BEGINS {
            let (at_ns, name) = body.split_at(8.min(body.len()));
            let number = self.database(&String::from_utf8_lossy(name));
            let is_named = !name.is_empty();
            let at_ns = i64::from_le_bytes(at_ns.try_into().unwrap_or_default());
            let Some((_, session, has_database)) = &mut self.current else { return Ok(()) };
            session.connects_ns = session.connects_ns.min(at_ns);
            if is_named && !*has_database {
                (session.database, *has_database) = (number, true);
            }
            return Ok(());
        }
        self.out.write_all(&(body.len() as u32).to_le_bytes())?;
        self.out.write_all(body)?;
        self.written += 4 + body.len() as u64;
        let Some((_, session, _)) = &mut self.current else { return Ok(()) };
        let number =
            |place: usize| body.get(place..place + 8).and_then(|part| part.try_into().ok()).unwrap_or_default();
        let (start_ns, duration_ns) = (i64::from_le_bytes(number(0)), u64::from_le_bytes(number(8)));
        let duration_ns = if duration_ns == u64::MAX { 0 } else { duration_ns as i64 };
        session.count += 1;
        session.first_ns = session.first_ns.min(start_ns);
        session.last_ns = session.last_ns.max(start_ns.saturating_add(duration_ns));
        session.end = self.written;
        Ok(())
    }

    fn next(&mut self) -> io::Result<()> {
        let Some((_, mut session, _)) = self.current.take() else { return Ok(()) };
        if session.count == 0 {
            return Ok(());
        }
        if self.found.len() == SESSIONS_MAX {
            return Err(io::Error::other(format!("the log has more than {SESSIONS_MAX} sessions")));
        }
        session.connects_ns = session.connects_ns.min(session.first_ns.saturating_sub(CONNECTS_BEFORE_NS));
        self.found.push(session);
        Ok(())
    }

    fn end(mut self) -> io::Result<(Vec<Session>, Vec<String>)> {
        self.next()?;
        self.out.flush()?;
        Ok((self.found, self.names))
    }
}

/// A log, ready to be replayed.
pub struct StoredLog {
    pub survey: Survey,
    pub(super) dialect: Dialect,
    file: File,
    /// By the time at which they connect.
    pub(super) sessions: Vec<Session>,
    pub(super) texts: Vec<Arc<str>>,
    pub(super) fingerprints: Vec<Known>,
}

/// Statements of one session, read as they are needed.
pub(super) struct Statements<'a> {
    part: BufReader<Part<'a>>,
    record: Vec<u8>,
}

impl StoredLog {
    /// The statements of a session.
    pub(super) fn statements(&self, session: &Session, buffer_bytes: usize) -> Statements<'_> {
        let part = Part::new(&self.file, session.offset, session.end);
        Statements { part: BufReader::with_capacity(buffer_bytes, part), record: Vec::new() }
    }
}

impl Statements<'_> {
    /// When the statement that was read last began; `None` before the first.
    pub(super) fn last_start_ns(&self) -> Option<i64> {
        Record::read(&self.record).map(|record| record.start_ns)
    }

    /// The next statement, as [`super::record::Record::read`] takes it.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        Ok(read_next(&mut self.part, &mut self.record)?.then_some(&self.record))
    }
}
