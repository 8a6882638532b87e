//! The workloads there are. A new one is a folder beside `tpcc/` and an entry here.

use assay_loading::{DatabaseError, Registered as RegisteredDataset, named_by, parse};
use assay_sql::{Kind, Section};

use crate::{
    brokerage::Brokerage,
    run::OltpRun,
    script::Scripts,
    serial::{SerialCount, run_serial},
    tpcc::Tpcc,
    workload::{Workload, all_sections},
};

const WORKLOADS: [Registered; 3] =
    [Registered::of::<Tpcc>(), Registered::of::<Brokerage>(), Registered::of::<Scripts>()];

/// The data sets of the workloads that have one.
pub const DATASETS: [RegisteredDataset; 2] = [RegisteredDataset::of::<Tpcc>(), RegisteredDataset::of::<Brokerage>()];

/// A registered workload, for callers of any workload. Plans are JSON text.
#[derive(Debug, Clone, Copy)]
pub struct Registered {
    pub kind: &'static str,
    /// Starts users at work.
    pub start_run: fn(&str) -> Result<OltpRun, DatabaseError>,
    /// Runs one user for a number of steps of a number of nanoseconds each, on a clock of numbers.
    pub run_serial: fn(&str, u64, u64) -> Result<Vec<SerialCount>, DatabaseError>,
    /// The statements of a file of SQL in a dialect, in order; `None` for unknown files.
    pub sections: fn(Kind, &str) -> Option<Vec<Section>>,
}

impl Registered {
    const fn of<W: Workload>() -> Self {
        Self {
            kind: W::KIND,
            start_run: |plan| OltpRun::start::<W>(parse(plan)?, parse(plan)?),
            run_serial: |plan, steps, step_ns| run_serial::<W>(&parse(plan)?, parse(plan)?, steps, step_ns),
            sections: all_sections::<W>,
        }
    }
}

/// A workload by its kind.
pub fn workload(kind: &str) -> Option<Registered> {
    WORKLOADS.into_iter().find(|known| known.kind == kind)
}

/// The workload of a plan: the one it names, else the first.
///
/// # Errors
/// [`DatabaseError::InvalidPlan`] when there is no such workload or no plan.
pub fn workload_of(plan: &str) -> Result<Registered, DatabaseError> {
    named_by(plan, &WORKLOADS, |known| known.kind)
}
