//! Loading: chunks of rows, each in one transaction with its entry in `assay_chunk`, on several connections at once.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use assay_device::thread_cpu_ns;
use assay_sql::{
    AnyDriver, BEGIN, Batch, COMMIT, Cause, DbError, Driver, Isolation, Results, Setup, StatementId, TRANSACTION_NAMES,
    session_sections, statements_of,
};
use tokio::{task::LocalSet, time::sleep};

use crate::{
    dataset::{Chunk, Dataset, chunk},
    error::DatabaseError,
    panics::{Alive, OnPanic},
    plan::{LoadPlan, LoadedDatabase},
};

const RECONNECT_PAUSE: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadState {
    Running,
    Done,
    Stopped,
    Failed,
}

/// How a load stands.
#[derive(Debug, Clone)]
pub struct LoadStatus {
    pub state: LoadState,
    pub error: Option<DatabaseError>,
    pub rows: u64,
    pub bytes: u64,
    /// Rows that there will be; where they are drawn, as many as are to be expected.
    pub rows_total: u64,
    pub chunks_done: u64,
    pub chunks_total: u64,
    /// Chunks that were there already.
    pub chunks_skipped: u64,
    pub elapsed_ns: u64,
    pub cpu_ns: u64,
    pub reconnects: u64,
}

/// Chunks still to be loaded, each with its database.
type Waiting<C> = Arc<Mutex<VecDeque<(usize, C)>>>;

struct Shared {
    plan: LoadPlan,
    stop: AtomicBool,
    /// Whether each database was connected to once.
    reached: Vec<AtomicBool>,
    rows: AtomicU64,
    bytes: AtomicU64,
    chunks_done: AtomicU64,
    reconnects: AtomicU64,
    cpu_ns: AtomicU64,
    failure: Mutex<Option<DatabaseError>>,
}

/// A load in progress. Dropping it stops it after the chunks that are under way.
pub struct Load {
    shared: Arc<Shared>,
    began: Instant,
    ended: Option<Instant>,
    alive: Arc<AtomicU32>,
    _threads: Vec<JoinHandle<()>>,
    rows_total: u64,
    chunks_total: u64,
    chunks_skipped: u64,
}

impl Load {
    /// Starts loading into tables that are there.
    ///
    /// # Errors
    /// [`DatabaseError::InvalidPlan`] when the plan is impossible, [`DatabaseError::Other`] when threads cannot be started.
    pub(crate) fn start<D: Dataset>(plan: LoadPlan, shape: D::Shape) -> Result<Self, DatabaseError> {
        plan.validate::<D>()?;
        let mut waiting = Vec::new();
        let (mut rows_total, mut chunks_total) = (0, 0);
        for (database, loaded) in plan.databases.iter().enumerate() {
            let done: BTreeSet<_> =
                loaded.done.iter().map(|(kind, unit, part)| (kind.as_str(), *unit, *part)).collect();
            for (place, chunk) in chunks_of::<D>(loaded, shape)?.into_iter().enumerate() {
                chunks_total += 1;
                rows_total += chunk.row_count();
                if !done.contains(&chunk.key()) {
                    waiting.push((place, database, chunk));
                }
            }
        }
        // Databases take turns, so that all are loaded at the same pace.
        waiting.sort_unstable_by_key(|(place, database, _)| (*place, *database));
        let chunks_skipped = chunks_total - waiting.len() as u64;
        let waiting = waiting.into_iter().map(|(_, database, chunk)| (database, chunk)).collect();
        let waiting: Waiting<D::Chunk> = Arc::new(Mutex::new(waiting));
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let threads = plan.threads.unwrap_or(cores).min(plan.connections).max(1);
        let connections = plan.connections;
        let shared = Arc::new(Shared {
            reached: plan.databases.iter().map(|_| AtomicBool::new(false)).collect(),
            plan,
            stop: AtomicBool::new(false),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            chunks_done: AtomicU64::new(0),
            reconnects: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            failure: Mutex::new(None),
        });
        let alive = Arc::new(AtomicU32::new(threads));
        let mut handles = Vec::new();
        for number in 0..threads {
            let (stopping, shared, alive) = (shared.clone(), shared.clone(), alive.clone());
            let waiting = waiting.clone();
            let own = connections / threads + u32::from(number < connections % threads);
            let work = move || {
                let _alive = Alive(alive);
                let _guard = OnPanic(|error| shared.fail(error));
                load_thread(&shared, &waiting, own);
                shared.cpu_ns.fetch_add(thread_cpu_ns(), Ordering::Relaxed);
            };
            let spawned = thread::Builder::new().name(format!("assay-load-{number}")).spawn(work);
            handles.push(spawned.map_err(|error| {
                stopping.stop.store(true, Ordering::Relaxed);
                DatabaseError::Other(format!("no thread: {error}"))
            })?);
        }
        let began = Instant::now();
        Ok(Self { shared, began, ended: None, alive, _threads: handles, rows_total, chunks_total, chunks_skipped })
    }

    pub fn poll(&mut self) -> LoadStatus {
        let is_over = self.alive.load(Ordering::Acquire) == 0;
        if is_over {
            self.ended.get_or_insert_with(Instant::now);
        }
        let shared = &self.shared;
        let error = shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let chunks_done = shared.chunks_done.load(Ordering::Relaxed);
        let state = match (&error, is_over) {
            (Some(_), _) => LoadState::Failed,
            (None, false) => LoadState::Running,
            (None, true) if chunks_done + self.chunks_skipped == self.chunks_total => LoadState::Done,
            (None, true) => LoadState::Stopped,
        };
        LoadStatus {
            state,
            error,
            rows: shared.rows.load(Ordering::Relaxed),
            bytes: shared.bytes.load(Ordering::Relaxed),
            rows_total: self.rows_total,
            chunks_done,
            chunks_total: self.chunks_total,
            chunks_skipped: self.chunks_skipped,
            elapsed_ns: (self.ended.unwrap_or_else(Instant::now) - self.began).as_nanos() as u64,
            cpu_ns: shared.cpu_ns.load(Ordering::Relaxed),
            reconnects: shared.reconnects.load(Ordering::Relaxed),
        }
    }

    /// Begins no more chunks.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Stops and waits for the chunks that are under way, so long at most.
    pub fn finish(&mut self, within: Duration) -> LoadStatus {
        self.stop();
        let deadline = Instant::now() + within;
        while self.alive.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        self.poll()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The chunks that a plan wants in a database, in the order in which they are loaded.
fn chunks_of<D: Dataset>(loaded: &LoadedDatabase, shape: D::Shape) -> Result<Vec<D::Chunk>, DatabaseError> {
    let Some(named) = &loaded.chunks else { return Ok(D::Chunk::all(loaded.scale, shape).collect()) };
    named.iter().map(|key| chunk::<D>(loaded.scale, shape, key)).collect()
}

fn load_thread<C: Chunk>(shared: &Arc<Shared>, waiting: &Waiting<C>, connections: u32) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return shared.fail(DatabaseError::Other(format!("no runtime: {error}"))),
    };
    let tasks = LocalSet::new();
    let loaders: Vec<_> = (0..connections)
        .map(|_| {
            let loader =
                Loader { shared: shared.clone(), waiting: waiting.clone(), drivers: BTreeMap::new(), lost_at: None };
            let failing = shared.clone();
            tasks.spawn_local(async move {
                let _guard = OnPanic(|error| failing.fail(error));
                loader.run().await;
            })
        })
        .collect();
    tasks.block_on(&runtime, async {
        for loader in loaders {
            let _ = loader.await;
        }
    });
}

impl Shared {
    fn fail(&self, error: DatabaseError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Loads chunks one after the other, over a connection to each database.
struct Loader<C> {
    shared: Arc<Shared>,
    waiting: Waiting<C>,
    drivers: BTreeMap<usize, AnyDriver>,
    /// Since when no connection is to be had.
    lost_at: Option<Instant>,
}

impl<C: Chunk> Loader<C> {
    fn next(&self) -> Option<(usize, C)> {
        if self.shared.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn give_back(&self, database: usize, chunk: C) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_front((database, chunk));
    }

    async fn run(mut self) {
        while let Some((database, chunk)) = self.next() {
            let connected = match self.drivers.remove(&database) {
                Some(driver) => Some(driver),
                None => self.connect(database).await,
            };
            let Some(mut driver) = connected else {
                self.give_back(database, chunk);
                continue;
            };
            match self.load(&mut driver, chunk).await {
                Ok((rows, bytes)) => {
                    self.lost_at = None;
                    self.shared.rows.fetch_add(rows, Ordering::Relaxed);
                    self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
                    self.shared.chunks_done.fetch_add(1, Ordering::Relaxed);
                    self.drivers.insert(database, driver);
                }
                // The answer to a commit was lost, and the commit was not.
                Err(error) if error.cause == Cause::Duplicate && self.shared.reconnects.load(Ordering::Relaxed) > 0 => {
                    self.shared.chunks_done.fetch_add(1, Ordering::Relaxed);
                    self.drivers.insert(database, driver);
                }
                Err(error) => {
                    self.give_back(database, chunk);
                    self.failed(database, &error).await;
                }
            }
        }
        for driver in self.drivers.into_values() {
            driver.close().await;
        }
    }

    /// The entry goes first: if the chunk is there already, its rows are not sent.
    async fn load(&self, driver: &mut AnyDriver, chunk: C) -> Result<(u64, u64), DbError> {
        run(driver, BEGIN).await?;
        let (column, (kind, unit, part)) = (C::UNIT_COLUMN, chunk.key());
        let entry =
            format!("INSERT INTO assay_chunk (kind, {column}, part, row_count) VALUES ('{kind}', {unit}, {part}, 0)");
        driver.execute(&entry).await?;
        let (mut rows, mut bytes) = (0, 0);
        for (table, of_table) in chunk.tables(self.shared.plan.seed) {
            let (more_rows, more_bytes) = driver.copy(table, of_table).await?;
            rows += more_rows;
            bytes += more_bytes;
        }
        let count = format!(
            "UPDATE assay_chunk SET row_count = {rows} WHERE kind = '{kind}' AND {column} = {unit} AND part = {part}"
        );
        driver.execute(&count).await?;
        run(driver, COMMIT).await?;
        Ok((rows, bytes))
    }

    async fn connect(&mut self, database: usize) -> Option<AnyDriver> {
        let connection = &self.shared.plan.databases[database].connection;
        let statements = statements_of(&TRANSACTION_NAMES, &session_sections(connection.kind), |_| true);
        let setup = Setup {
            isolation: Isolation::Default,
            statements: &statements,
            pipeline: true,
            bulk: true,
            within: Duration::from_secs_f64(self.shared.plan.connect_s),
        };
        match AnyDriver::connect(connection, setup).await {
            Ok(driver) => {
                self.shared.reached[database].store(true, Ordering::Relaxed);
                Some(driver)
            }
            Err(error) if self.shared.reached[database].load(Ordering::Relaxed) => {
                self.failed(database, &error.while_reconnecting()).await;
                None
            }
            Err(error) => {
                // What cannot be reached at the beginning is not waited for.
                self.shared.fail(DatabaseError::Connect(format!("{}: {}", connection.place(), error.text)));
                None
            }
        }
    }

    async fn failed(&mut self, database: usize, error: &DbError) {
        let place = self.shared.plan.databases[database].connection.place();
        let within_s = self.shared.plan.reconnect_s;
        match error.cause {
            Cause::Connection | Cause::Deadlock | Cause::Serialization => {
                self.shared.reconnects.fetch_add(1, Ordering::Relaxed);
                let lost_at = *self.lost_at.get_or_insert_with(Instant::now);
                if lost_at.elapsed().as_secs_f64() > within_s {
                    let text = format!("{place}: went away and did not come back within {within_s} s: {}", error.text);
                    self.shared.fail(DatabaseError::Lost(text));
                }
                sleep(RECONNECT_PAUSE).await;
            }
            Cause::NoSpace => self.shared.fail(DatabaseError::NoSpace(format!("{place}: {}", error.text))),
            Cause::RolledBack | Cause::Duplicate | Cause::System | Cause::Other => {
                self.shared.fail(DatabaseError::Other(format!("{place}: {}", error.text)));
            }
        }
    }
}

/// Runs a statement without parameters as its dialect has it.
async fn run(driver: &mut AnyDriver, statement: StatementId) -> Result<(), DbError> {
    let mut batch = Batch::default();
    batch.add(statement);
    driver.run(&batch, &mut Results::default()).await
}
