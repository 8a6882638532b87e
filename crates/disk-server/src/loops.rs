//! Event loops, a thread each, and the addresses where they accept connections.

use std::{
    net::{SocketAddr, TcpListener},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tokio::{
    net::TcpStream,
    sync::{Notify, mpsc},
};

use crate::Budget;

/// Memory that I/Os of all connections may hold.
const MEMORY_MOST_BYTES: u64 = 512 << 20;
/// Connections at once, where this process may have as many descriptors.
const CONNECTIONS_MOST: usize = 1024;
/// Descriptors that stay for all the rest of the process.
const DESCRIPTORS_KEPT: usize = 256;
/// Connections beyond, which are told that there are too many; more are closed without a word.
const REFUSED_MOST: usize = 64;
/// Time in which the last answers leave when the loops stop.
const LAST_ANSWERS: Duration = Duration::from_millis(20);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen at {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// An address that is listened at, before connections are accepted there.
#[derive(Debug)]
pub struct Listener(TcpListener, SocketAddr);

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub fn bind(address: SocketAddr) -> Result<Self, StartError> {
        let failed = |error| StartError::Listen { address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let own = listener.local_addr().map_err(failed)?;
        Ok(Self(listener, own))
    }

    /// Where it really listens: a plan may leave the port to the system.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.1
    }
}

/// Speaks a protocol with clients.
pub trait Front: Send + Sync + 'static {
    /// The address at which a client came, as the front knows it.
    type Door: Clone + Send + 'static;

    /// Whether connections are taken at an address.
    fn is_open(&self, _door: &Self::Door) -> bool {
        true
    }

    /// Serves a connection until it ends; one of too many is only told so.
    fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        door: Self::Door,
        is_too_many: bool,
    ) -> impl Future<Output = ()> + 'static;
}

type Task = Pin<Box<dyn Future<Output = ()>>>;
/// Makes a task in the thread that runs it.
type Job = Box<dyn FnOnce() -> Task + Send>;

/// Connections that there are.
struct Connections {
    there: AtomicUsize,
    most: usize,
}

/// The place of a connection under the bound.
struct Place(Arc<Connections>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.there.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connections {
    /// Counts a connection, and says whether it is one too many; None where it is to be closed without a word.
    fn take(self: &Arc<Self>) -> Option<(Place, bool)> {
        let there = self.there.load(Ordering::Relaxed);
        if there >= self.most + REFUSED_MOST {
            return None;
        }
        self.there.fetch_add(1, Ordering::Relaxed);
        Some((Place(Arc::clone(self)), there >= self.most))
    }
}

/// Event loops, which all protocols share.
pub struct Loops {
    /// Memory that I/Os of all connections hold.
    pub budget: Arc<Budget>,
    connections: Arc<Connections>,
    accepts: mpsc::UnboundedSender<Job>,
    serves: Arc<[mpsc::UnboundedSender<Job>]>,
    stops: Vec<Arc<Notify>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Loops {
    /// Starts threads that serve, and one that accepts. Each calls `begins` first.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(threads: usize, begins: impl Fn() + Clone + Send + 'static) -> Result<Arc<Self>, StartError> {
        let (mut stops, mut started, mut serves) = (Vec::new(), Vec::new(), Vec::new());
        let mut spawn = |name: String| {
            let (give, jobs) = mpsc::unbounded_channel();
            let (stop, begins) = (Arc::new(Notify::new()), begins.clone());
            stops.push(Arc::clone(&stop));
            let run = move || {
                begins();
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.expect("a runtime needs but an event queue");
                tokio::task::LocalSet::new().block_on(&runtime, work(jobs, stop));
            };
            let thread = std::thread::Builder::new().name(name).spawn(run).map_err(StartError::Thread)?;
            started.push(thread);
            Ok(give)
        };
        for number in 0..threads.max(1) {
            serves.push(spawn(format!("assay-disks-{number}"))?);
        }
        let accepts = spawn("assay-accept".into())?;
        Ok(Arc::new(Self {
            budget: Budget::new(MEMORY_MOST_BYTES),
            connections: Arc::new(Connections { there: AtomicUsize::new(0), most: connections_most() }),
            accepts,
            serves: serves.into(),
            stops,
            threads: Mutex::new(started),
        }))
    }

    /// Most connections at once.
    #[must_use]
    pub fn connections_most(&self) -> usize {
        self.connections.most
    }

    /// Accepts connections for a front, and gives them to the threads in turn.
    pub fn listen<F: Front>(&self, listener: Listener, front: Arc<F>, door: F::Door) {
        let (connections, serves) = (Arc::clone(&self.connections), Arc::clone(&self.serves));
        let job: Job = Box::new(move || Box::pin(accept(listener, front, door, connections, serves)));
        let _ = self.accepts.send(job);
    }

    /// Ends all connections and the threads.
    pub fn stop(&self) {
        self.stops.iter().for_each(|stop| stop.notify_one());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// A thread's work: runs the tasks that it is given until it is stopped.
async fn work(mut jobs: mpsc::UnboundedReceiver<Job>, stop: Arc<Notify>) {
    loop {
        tokio::select! {
            () = stop.notified() => break,
            Some(job) = jobs.recv() => drop(tokio::task::spawn_local(job())),
        }
    }
    tokio::time::sleep(LAST_ANSWERS).await;
}

/// Accepts connections at an address.
async fn accept<F: Front>(
    Listener(listener, _): Listener,
    front: Arc<F>,
    door: F::Door,
    connections: Arc<Connections>,
    serves: Arc<[mpsc::UnboundedSender<Job>]>,
) {
    // Several addresses do not give their first connections to the same thread.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: those that end give some back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(stream) = stream.into_std() else { continue };
        if !front.is_open(&door) {
            continue;
        }
        let Some((place, is_too_many)) = connections.take() else { continue };
        let (front, door) = (Arc::clone(&front), door.clone());
        let job: Job = Box::new(move || {
            Box::pin(async move {
                let _place = place;
                if let Ok(stream) = TcpStream::from_std(stream) {
                    front.serve(stream, door, is_too_many).await;
                }
            })
        });
        let _ = serves[NEXT.fetch_add(1, Ordering::Relaxed) % serves.len()].send(job);
    }
}

/// Raises the bound of this process on descriptors as far as it may; gives the connections that it leaves room for.
fn connections_most() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let wanted = (CONNECTIONS_MOST + REFUSED_MOST + DESCRIPTORS_KEPT) as libc::rlim_t;
    // SAFETY: the structure is this function's own.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return CONNECTIONS_MOST;
    }
    if limit.rlim_cur < wanted {
        limit.rlim_cur = wanted.min(limit.rlim_max);
        // SAFETY: the structure is this function's own.
        let _ = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
    let there = usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX);
    there.saturating_sub(REFUSED_MOST + DESCRIPTORS_KEPT).clamp(1, CONNECTIONS_MOST)
}
