//! States of a volume after a crash, for Python.

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use assay_crash::{
    Base, Contents, Course, CrashError, Kind, Log, Mask, Minimiser, Name, Plan, Promises, ServedVolume, View, read_log,
};
use pyo3::prelude::*;

use crate::{errors::raise, loading::locked};

/// Number of the request, its time, offset and length in bytes, and how many bytes of it a state lacks.
type LostWrite = (usize, u64, u64, u64, u64);
/// Name of a state, number of its contents, and how much clients had been told.
type PlannedState = (String, String, usize);

/// A volume served as a file: set up, recorded, and shown in states after a crash.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct CrashVolume(Mutex<ServedVolume>);

#[pymethods]
impl CrashVolume {
    /// Serves the file `base` as the file `volume` in an empty folder; the file is made if it is not there.
    #[new]
    #[pyo3(signature = (folder, base, *, volume_bytes))]
    fn new(folder: PathBuf, base: PathBuf, volume_bytes: u64) -> PyResult<Self> {
        let view = View::new(&base, volume_bytes).map_err(to_python)?;
        Ok(Self(Mutex::new(ServedVolume::new(&folder, view).map_err(to_python)?)))
    }

    /// Path of the file.
    #[getter]
    fn path(&self) -> PathBuf {
        locked(&self.0).path().to_owned()
    }

    /// Records further requests into a new log, and leaves the base unchanged.
    fn record(&self, log: PathBuf) -> PyResult<()> {
        locked(&self.0).view().record(&log).map_err(to_python)
    }

    /// Marks in the log that a client was told something.
    fn mark(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        py.detach(|| locked(&self.0).view().mark(text))
            .map_err(|error| raise("IoFailed", format!("log of writes: {error}")))
    }

    /// Ends the log; its length in bytes.
    fn finish(&self) -> PyResult<u64> {
        locked(&self.0).view().finish().map_err(|error| raise("IoFailed", format!("log of writes: {error}")))
    }

    /// Shows the volume in a state; what was written since another was shown is forgotten.
    fn show(&self, py: Python<'_>, states: &CrashStates, name: &str) -> PyResult<()> {
        py.detach(|| {
            let name = name.parse()?;
            let mut course = locked(&states.course);
            let (pieces, chosen) = course.state(&name)?;
            let image = course.image(&pieces, &chosen);
            locked(&self.0).view().show(course.log(), image);
            Ok(())
        })
        .map_err(to_python)
    }

    /// Takes the file away.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| locked(&self.0).close()).map_err(|error| raise("IoFailed", format!("served volume: {error}")))
    }
}

/// The states of a log that promises of storage, as JSON text, allow.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct CrashStates {
    course: Mutex<Course>,
}

#[pymethods]
impl CrashStates {
    /// The states of a recorded log over its base.
    #[new]
    fn new(py: Python<'_>, log: PathBuf, base: PathBuf, promises_json: &str) -> PyResult<Self> {
        let promises: Promises =
            serde_json::from_str(promises_json).map_err(|error| raise("UsageError", format!("promises: {error}")))?;
        let course = py.detach(|| opened(&log, &base, promises)).map_err(to_python)?;
        Ok(Self { course: Mutex::new(course) })
    }

    /// Chooses up to `most` states, and says what they cover.
    fn plan(
        &self,
        py: Python<'_>,
        seed: u64,
        most: usize,
    ) -> PyResult<(Vec<PlannedState>, BTreeMap<&'static str, usize>)> {
        let plan = py.detach(|| Plan::new(&mut locked(&self.course), seed, most)).map_err(to_python)?;
        let states = plan
            .states
            .into_iter()
            .map(|state| (state.name.to_string(), format!("{:032x}", state.number), state.marks));
        let coverage = BTreeMap::from([
            ("points", plan.coverage.points),
            ("points_tried", plan.coverage.points_tried),
            ("points_exhausted", plan.coverage.points_exhausted),
            ("pieces_max", plan.coverage.pieces_max),
            ("considered", plan.coverage.considered),
            ("equivalent", plan.coverage.equivalent),
        ]);
        Ok((states.collect(), coverage))
    }

    /// Counts of requests in the log, by kind.
    fn counts(&self) -> BTreeMap<&'static str, u64> {
        let course = locked(&self.course);
        let entries = course.log().entries();
        let of = |wanted: fn(Kind) -> bool| entries.iter().filter(|entry| wanted(entry.kind)).count() as u64;
        let written = entries.iter().filter(|entry| matches!(entry.kind, Kind::Write { .. }));
        BTreeMap::from([
            ("writes", of(|kind| matches!(kind, Kind::Write { .. }))),
            ("fua", of(|kind| matches!(kind, Kind::Write { fua: true }))),
            ("flushes", of(|kind| kind == Kind::Flush)),
            ("discards", of(|kind| kind == Kind::Discard)),
            ("marks", of(|kind| kind == Kind::Mark)),
            ("written_bytes", written.map(|entry| entry.length_bytes).sum()),
            ("points", course.points().len() as u64),
        ])
    }

    /// Acknowledgements before a state, in order.
    fn marks(&self, py: Python<'_>, name: &str) -> PyResult<Vec<String>> {
        py.detach(|| {
            let mut course = locked(&self.course);
            let name: Name = name.parse()?;
            course.state(&name)?;
            let event = course.points()[name.point].event;
            course.log().marks(event).map_err(|error| CrashError::Io { what: "log of writes".to_owned(), error })
        })
        .map_err(to_python)
    }

    /// The pieces of outstanding writes that a state lacks, counted from 0.
    fn missing(&self, name: &str) -> PyResult<Vec<usize>> {
        let (_, chosen) = locked(&self.course).state(&name.parse().map_err(to_python)?).map_err(to_python)?;
        Ok((0..chosen.len()).filter(|piece| !chosen[*piece]).collect())
    }

    /// The name of the state at the same crash point that lacks these pieces alone.
    fn lacking(&self, name: &str, pieces: Vec<usize>) -> PyResult<String> {
        let name: Name = name.parse().map_err(to_python)?;
        let name = Name { mask: Mask::missing(&pieces), ..name };
        locked(&self.course).state(&name).map_err(to_python)?;
        Ok(name.to_string())
    }

    /// The writes that a state lacks, whole or in part.
    fn lost(&self, name: &str) -> PyResult<Vec<LostWrite>> {
        let mut course = locked(&self.course);
        let (pieces, chosen) = course.state(&name.parse().map_err(to_python)?).map_err(to_python)?;
        let mut lost: BTreeMap<usize, u64> = BTreeMap::new();
        for (piece, _) in pieces.iter().zip(chosen).filter(|(_, chosen)| !chosen) {
            *lost.entry(piece.request).or_default() +=
                (piece.sectors.end - piece.sectors.start) * assay_crash::SECTOR_BYTES;
        }
        let entries = course.log().entries();
        let told = lost.into_iter().map(|(request, bytes)| {
            let entry = &entries[request];
            (request, entry.at_ns, entry.offset_bytes, entry.length_bytes, bytes)
        });
        Ok(told.collect())
    }
}

/// Looks for the smallest set with which something still fails: it asks, and is told.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct CrashMinimiser(Mutex<Minimiser>);

#[pymethods]
impl CrashMinimiser {
    /// Begins with a set that fails.
    #[new]
    fn new(failing: Vec<usize>) -> Self {
        Self(Mutex::new(Minimiser::new(failing)))
    }

    /// The next set to be tried; None when the set is as small as it can be made.
    fn ask(&self) -> Option<Vec<usize>> {
        locked(&self.0).ask().map(<[usize]>::to_vec)
    }

    /// Says whether the set that was asked for fails.
    fn answer(&self, fails: bool) {
        locked(&self.0).answer(fails);
    }

    /// The smallest set known to fail.
    fn failing(&self) -> Vec<usize> {
        locked(&self.0).failing().to_vec()
    }
}

fn opened(log: &Path, base: &Path, promises: Promises) -> Result<Course, CrashError> {
    let failed = |path: &Path, error| CrashError::Io { what: format!("{}: cannot be read", path.display()), error };
    let log: Arc<Log> = Arc::new(read_log(log)?);
    let below = Base::File(File::open(base).map_err(|error| failed(base, error))?);
    let contents = Contents::new(&log, &below).map_err(|error| failed(base, error))?;
    Course::new(&log, &Arc::new(contents), promises)
}

fn to_python(error: CrashError) -> PyErr {
    let class = match error {
        CrashError::NotALog(_) | CrashError::NotAccepted { .. } | CrashError::NoSuchState(_) => "UsageError",
        CrashError::Io { .. } => "IoFailed",
    };
    raise(class, error.to_string())
}
