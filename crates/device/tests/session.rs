//! Sessions on real files, and on devices made for the purpose where the tests run as root.

mod scratch;

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use assay_device::{Backend, DeviceError, NullOptions, Session, SessionPlan, Status, VolumeKind, VolumePlan};
use assay_load::{Access, Activity, BlockShare, GroupKey, IoTally, Load, Region, Skew, Sync, Tally};
use scratch::{Scratch, ends};

const BLOCK_BYTES: u32 = 4096;
const FILE_BYTES: u64 = 4 << 20;
const MS: u64 = 1_000_000;

fn file(path: &Path) -> VolumePlan {
    VolumePlan {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        volume: VolumeKind::File { path: path.to_owned(), held: None },
        sector_bytes: 512,
    }
}

fn null(options: NullOptions) -> VolumePlan {
    VolumePlan { name: "null".into(), volume: VolumeKind::Null { options }, sector_bytes: 512 }
}

fn activity(name: &str, volumes: &[usize], read_share: f64) -> Activity {
    Activity {
        name: name.into(),
        role: name.into(),
        volumes: volumes.to_vec(),
        workers: 1,
        access: Access {
            blocks: vec![BlockShare { bytes: BLOCK_BYTES, weight: 1.0 }],
            read_share,
            random_share: 1.0,
            skew: Skew::Uniform,
            region: Region { start_bytes: 0, end_bytes: FILE_BYTES },
            align_bytes: u64::from(BLOCK_BYTES),
            streams: 1,
            stride_bytes: None,
            duplicate_share: 0.0,
        },
        load: Load::Closed { queue_depth: 4 },
        direct: false,
        sync: Sync::None,
        sync_every: 1,
        compressible_share: 0.0,
        limit_bytes: None,
    }
}

fn plan(backend: Backend, volumes: Vec<VolumePlan>, activities: Vec<Activity>) -> SessionPlan {
    SessionPlan { volumes, activities, backend, seed: 1, interval_ns: 20 * MS, io_timeout_ns: 20_000 * MS }
}

/// The back ends this machine lets the tests use.
fn backends() -> Vec<Backend> {
    let uring = assay_device::UringQueue::available().is_ok();
    [Backend::Threads].into_iter().chain(uring.then_some(Backend::IoUring)).collect()
}

/// Polls until this many ticks are complete or the session has ended or failed.
fn poll_until(session: &mut Session, ticks: u64) -> Status {
    loop {
        let status = session.poll();
        if status != Status::Running || session.collector().complete_ticks() >= ticks {
            return status;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn is_root() -> bool {
    // SAFETY: the call has no arguments and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("skipped: only root can mount and set up loop devices");
    }
    root
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let done = Command::new(program).args(arguments).output();
    let success = done.as_ref().is_ok_and(|output| output.status.success());
    if !success {
        eprintln!("skipped: {program} {arguments:?} does not work here: {done:?}");
    }
    success
}

// Several at once.

#[test]
fn several_roles_on_several_volumes_are_counted_apart() {
    for backend in backends() {
        ends(move || {
            let scratch = Scratch::new();
            let paths: Vec<PathBuf> = ["data0", "data1", "log"].map(|name| scratch.file(name, FILE_BYTES)).into();
            let mut log = activity("log", &[2], 0.0);
            log.access.random_share = 0.0;
            log.load = Load::Closed { queue_depth: 1 };
            log.sync = Sync::Fdatasync;
            let mut tempdb = activity("tempdb", &[1], 0.0);
            tempdb.load = Load::Open { rate: 2000.0, poisson: true, queue_depth: 8 };
            let data = Activity { workers: 2, ..activity("data", &[0, 1], 1.0) };
            let volumes = paths.iter().map(|path| file(path)).collect();
            let mut session = Session::start(&plan(backend, volumes, vec![data, log, tempdb])).unwrap();
            assert_eq!(session.workers_count(), 6);
            // However busy the storage is, all six have done something then.
            let mut ticks = 10;
            while poll_until(&mut session, ticks) == Status::Running
                && session
                    .collector()
                    .totals(0, ticks)
                    .values()
                    .any(|of| of.read.latency.is_empty() && of.write.latency.is_empty())
            {
                ticks += 1;
            }
            assert!(matches!(session.finish(Duration::from_secs(60)), Status::Ended { .. }));
            let expected = if backend == Backend::Threads { "threads" } else { "io_uring" };
            assert_eq!(session.engine().backend, expected);

            let mut totals = session.collector().totals(0, u64::MAX);
            let mut of = |activity, volume| totals.remove(&GroupKey { activity, volume }).unwrap();
            for data in [of(0, 0), of(0, 1)] {
                assert!(data.read.latency.count() > 0);
                assert_eq!(data.read.bytes, data.read.latency.count() * u64::from(BLOCK_BYTES));
                assert_eq!(data.write.latency.count() + data.service.count(), 0);
            }
            let log = of(1, 2);
            assert!(log.flush.latency.count().abs_diff(log.write.latency.count()) <= 1);
            assert!(log.write.latency.count() > 0);
            // A write ends with its flush. At the end one of both may be counted alone.
            if log.write.latency.count() == log.flush.latency.count() {
                assert!(log.write.latency.min_ns() >= log.flush.latency.min_ns());
            }
            let tempdb = of(2, 1);
            assert_eq!(tempdb.service.count(), tempdb.write.latency.count());
            assert_eq!(tempdb.read.latency.count(), 0);
            assert!(totals.is_empty());
        });
    }
}

#[test]
fn laying_out_fills_the_file_and_ends_by_itself() {
    for backend in backends() {
        ends(move || {
            let scratch = Scratch::new();
            let path = scratch.file("data", FILE_BYTES);
            let mut layout = activity("layout", &[0], 0.0);
            layout.access.random_share = 0.0;
            layout.limit_bytes = Some(FILE_BYTES);
            layout.sync = Sync::Fsync;
            layout.sync_every = 1 << 30;
            let mut session = Session::start(&plan(backend, vec![file(&path)], vec![layout])).unwrap();
            let status = poll_until(&mut session, u64::MAX);
            assert_eq!(status, Status::Ended { unfinished_count: 0, oldest_unfinished_ns: 0 });
            let mut written = session.collector().totals(0, u64::MAX).into_values().next().unwrap_or_default();
            session.collector().drained().values().for_each(|interval| written.merge(interval));
            assert_eq!(written.write.bytes, FILE_BYTES);
            let content = fs::read(&path).unwrap();
            assert!(content.chunks(BLOCK_BYTES as usize).all(|block| block.iter().any(|byte| *byte != 0)));
        });
    }
}

#[test]
fn nobody_is_called_silent_by_one_who_did_not_listen() {
    ends(|| {
        let mut quick = plan(Backend::Auto, vec![null(NullOptions::default())], vec![activity("null", &[0], 1.0)]);
        quick.volumes[0].volume = VolumeKind::Null { options: NullOptions { latency_ns: MS, ..Default::default() } };
        quick.io_timeout_ns = 100 * MS;
        let mut session = Session::start(&quick).unwrap();
        assert_eq!(poll_until(&mut session, 2), Status::Running);
        // Longer than the time-out and the watch's margin together, and than the ticks there is room for.
        thread::sleep(Duration::from_millis(4500));
        assert_eq!(session.poll(), Status::Running);
        assert!(matches!(session.finish(Duration::from_secs(60)), Status::Ended { .. }));
    });
}

// What cannot be.

/// Threads of this process whose name begins with this; the kernel keeps 15 characters.
fn threads_named(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|found| found.trim_end() == name).count()
}

#[test]
fn a_missing_file_stops_the_others_from_starting() {
    for backend in backends() {
        let scratch = Scratch::new();
        let there = scratch.file("there", FILE_BYTES);
        let missing = scratch.path("missing");
        let asked = activity("orphan", &[0, 1], 0.5);
        let refused = Session::start(&plan(backend, vec![file(&there), file(&missing)], vec![asked])).err().unwrap();
        assert!(matches!(refused, DeviceError::Open { .. }));
        assert!(refused.to_string().contains("missing: cannot be opened"), "{refused}");
        // A thread names itself once it runs: one look without any proves nothing.
        let mut looks_without = 0;
        for _ in 0..1000 {
            looks_without = if threads_named("assay-orphan") == 0 { looks_without + 1 } else { 0 };
            if looks_without == 50 {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(looks_without, 50);
    }
}

#[test]
fn direct_io_that_is_refused_is_said_so() {
    let asked = Activity { direct: true, ..activity("direct", &[0], 1.0) };
    let refused =
        Session::start(&plan(Backend::Auto, vec![file(Path::new("/proc/version"))], vec![asked])).err().unwrap();
    assert!(matches!(refused, DeviceError::NotSupported { .. }));
    assert!(refused.to_string().contains("--buffered"), "{refused}");
}

#[test]
fn plans_that_cannot_be_carried_out_are_refused() {
    type Change = fn(&mut SessionPlan);
    let cases: [(&str, Change); 14] = [
        ("interval_ns", |plan| plan.interval_ns = 0),
        ("interval_ns", |plan| plan.interval_ns = u64::MAX),
        ("io_timeout_ns", |plan| plan.io_timeout_ns = 0),
        ("volumes", |plan| plan.activities[0].volumes = vec![1]),
        ("workers", |plan| plan.activities.clear()),
        ("workers", |plan| plan.activities[0].workers = 0),
        ("workers", |plan| plan.activities[0].workers = u32::MAX),
        ("queue_depth", |plan| plan.activities[0].load = Load::Closed { queue_depth: 0 }),
        ("queue_depth", |plan| plan.activities[0].load = Load::Closed { queue_depth: u32::MAX }),
        ("rate", |plan| plan.activities[0].load = Load::Open { rate: f64::NAN, poisson: true, queue_depth: 1 }),
        ("rate", |plan| plan.activities[0].load = Load::Open { rate: 0.0, poisson: false, queue_depth: 1 }),
        ("region", |plan| plan.activities[0].access.region.end_bytes = u64::MAX),
        ("sync_every", |plan| plan.activities[0].sync_every = 0),
        ("servers", |plan| {
            plan.volumes = vec![null(NullOptions { servers: u32::MAX, ..NullOptions::default() })];
        }),
    ];
    for (field, change) in cases {
        let mut asked = plan(Backend::Auto, vec![null(NullOptions::default())], vec![activity("bad", &[0], 1.0)]);
        change(&mut asked);
        let refused = Session::start(&asked).err().unwrap();
        assert!(matches!(refused, DeviceError::Load(_)), "{refused}");
        assert!(refused.to_string().starts_with(field), "{refused}");
    }
}

#[test]
fn reading_beyond_the_end_is_counted_as_short() {
    for backend in backends() {
        ends(move || {
            let scratch = Scratch::new();
            let path = scratch.file("small", FILE_BYTES / 2);
            let mut session =
                Session::start(&plan(backend, vec![file(&path)], vec![activity("short", &[0], 1.0)])).unwrap();
            poll_until(&mut session, 3);
            assert!(matches!(session.finish(Duration::from_secs(60)), Status::Ended { .. }));
            let counted = sum(&mut session);
            assert!(counted.errors.short > 0 && counted.read.latency.count() > 0);
            assert_eq!(counted.errors.count(), counted.errors.short);
        });
    }
}

fn sum(session: &mut Session) -> IoTally {
    let mut sum = IoTally::default();
    session.collector().totals(0, u64::MAX).values().for_each(|interval| sum.merge(interval));
    session.collector().drained().values().for_each(|interval| sum.merge(interval));
    sum
}

// As root: file systems and devices made for the purpose.

/// A mounted file system, thawed and unmounted at the end whatever happens.
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        let point = self.0.to_string_lossy().into_owned();
        let quietly = |program: &str, arguments: &[&str]| {
            let _ = Command::new(program).args(arguments).output();
        };
        quietly("fsfreeze", &["-u", &point]);
        // Lazily: what does not answer in time may still hold files.
        quietly("umount", &["-l", &point]);
    }
}

fn mount(scratch: &Scratch, arguments: &[&str]) -> Option<Mount> {
    let point = scratch.path("mounted");
    fs::create_dir(&point).unwrap();
    let mut all = arguments.to_vec();
    let text = point.to_string_lossy().into_owned();
    all.push(&text);
    succeeds("mount", &all).then_some(Mount(point))
}

fn image(scratch: &Scratch) -> String {
    scratch.file("image", 32 << 20).to_string_lossy().into_owned()
}

#[test]
fn a_full_file_system_is_counted() {
    for backend in backends() {
        let scratch = Scratch::new();
        if !is_root() {
            return;
        }
        let Some(mounted) = mount(&scratch, &["-t", "tmpfs", "-o", "size=1m", "tmpfs"]) else { return };
        let path = mounted.0.join("data");
        fs::File::create(&path).unwrap().set_len(FILE_BYTES).unwrap();
        ends(move || {
            let mut session =
                Session::start(&plan(backend, vec![file(&path)], vec![activity("full", &[0], 0.0)])).unwrap();
            poll_until(&mut session, 5);
            assert!(matches!(session.finish(Duration::from_secs(60)), Status::Ended { .. }));
            let counted = sum(&mut session);
            assert!(counted.errors.no_space > 0);
            assert_eq!(counted.errors.count(), counted.errors.no_space);
            assert!(counted.write.latency.count() > 0, "what had room was written");
        });
    }
}

#[test]
fn a_device_that_stops_answering_ends_the_session_and_blocks_nobody() {
    for backend in backends() {
        let scratch = Scratch::new();
        let image = image(&scratch);
        if !is_root() || !succeeds("mkfs.ext4", &["-q", &image]) {
            return;
        }
        let Some(mounted) = mount(&scratch, &["-o", "loop", &image]) else { return };
        let path = mounted.0.join("data");
        fs::write(&path, vec![1; FILE_BYTES as usize]).unwrap();
        let point = mounted.0.to_string_lossy().into_owned();
        ends(move || {
            let io_timeout_ns = 500 * MS;
            let asked = Activity { direct: true, ..activity("frozen", &[0], 0.0) };
            let mut session =
                Session::start(&SessionPlan { io_timeout_ns, ..plan(backend, vec![file(&path)], vec![asked]) })
                    .unwrap();
            assert_eq!(poll_until(&mut session, 3), Status::Running);
            if !succeeds("fsfreeze", &["-f", &point]) {
                return;
            }
            let frozen_ns = session.now_ns();
            let status = poll_until(&mut session, u64::MAX);
            let noticed_ns = session.now_ns() - frozen_ns;
            let Status::NotAnswering(message) = status else { panic!("{status:?}") };
            assert!(message.contains("outstanding"), "{message}");
            assert!(noticed_ns < io_timeout_ns + 3_000 * MS, "noticed after {noticed_ns} ns");
            // Neither the end nor the figures wait for the device, which is still frozen.
            let asked_at = Instant::now();
            assert!(matches!(session.finish(Duration::from_secs(60)), Status::NotAnswering(_)));
            assert!(sum(&mut session).write.latency.count() > 0);
            drop(session);
            assert!(asked_at.elapsed() < Duration::from_secs(30), "waited for the device");
        });
        drop(mounted);
    }
}

/// A loop device, detached at the end.
struct LoopDevice(String);

impl LoopDevice {
    fn new(image: &str) -> Option<Self> {
        let made = Command::new("losetup").args(["--find", "--show", image]).output().ok()?;
        let name = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        if name.is_empty() {
            eprintln!("skipped: no loop device to be had");
            return None;
        }
        Some(Self(name))
    }

    fn open_exclusively(&self) -> std::io::Result<fs::File> {
        OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&self.0)
    }

    /// As `open_exclusively`, once the kernel has let go of the files of rings that were closed, which it does by itself.
    fn open_once_free(&self) -> std::io::Result<fs::File> {
        for _ in 0..1000 {
            match self.open_exclusively() {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => thread::sleep(Duration::from_millis(10)),
                other => return other,
            }
        }
        self.open_exclusively()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).output();
    }
}

#[test]
fn a_block_device_is_claimed_until_the_workers_have_ended() {
    for backend in backends() {
        let scratch = Scratch::new();
        let image = image(&scratch);
        if !is_root() {
            return;
        }
        let Some(device) = LoopDevice::new(&image) else { return };
        ends(move || {
            let volumes = || vec![file(Path::new(&device.0))];
            // Several workers and activities share the session's one claim.
            let asked = || {
                vec![
                    Activity { workers: 2, direct: true, ..activity("device", &[0], 0.5) },
                    Activity { direct: true, ..activity("other", &[0], 0.0) },
                ]
            };
            for _ in 0..3 {
                let mut session = Session::start(&plan(backend, volumes(), asked())).unwrap();
                assert_eq!(poll_until(&mut session, 2), Status::Running);
                let busy = device.open_exclusively().unwrap_err();
                assert_eq!(busy.raw_os_error(), Some(libc::EBUSY));
                assert!(matches!(session.finish(Duration::from_secs(60)), Status::Ended { .. }));
                device.open_once_free().expect("no queue claims it any more");
            }
            // Claimed by another, it is refused and stays as it is.
            let mut before = vec![0; 4096];
            let other = device.open_once_free().unwrap();
            other.read_exact_at(&mut before, 0).unwrap();
            let refused = Session::start(&plan(backend, volumes(), asked())).err().unwrap();
            assert!(matches!(refused, DeviceError::Open { .. }), "{refused}");
            let mut after = vec![0; 4096];
            other.read_exact_at(&mut after, 0).unwrap();
            assert_eq!(before, after);
        });
    }
}
