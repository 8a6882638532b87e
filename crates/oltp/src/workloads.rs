//! The workloads there are. A new one is a folder beside `tpcc/` and an entry here.

use assay_sql::{Kind, Section};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    error::OltpError,
    load::OltpLoad,
    run::OltpRun,
    tpcc::Tpcc,
    workload::{Workload, all_sections},
};

const WORKLOADS: [Registered; 1] = [Registered::of::<Tpcc>()];

/// A workload as those use it who do not know which it is. Plans are JSON text.
#[derive(Debug, Clone, Copy)]
pub struct Registered {
    pub kind: &'static str,
    /// Starts users at work.
    pub start_run: fn(&str) -> Result<OltpRun, OltpError>,
    /// Starts loading into tables that are there.
    pub start_load: fn(&str) -> Result<OltpLoad, OltpError>,
    /// The statements of a file of SQL in a dialect, in order; `None` for unknown files.
    pub sections: fn(Kind, &str) -> Option<Vec<Section>>,
    /// Rows of each table of a database of a scale; where they are drawn, as many as are to be expected.
    pub row_counts: fn(u32) -> Vec<(&'static str, u64)>,
}

impl Registered {
    const fn of<W: Workload>() -> Self {
        Self {
            kind: W::KIND,
            start_run: |plan| OltpRun::start::<W>(parse(plan)?, parse(plan)?),
            start_load: |plan| OltpLoad::start::<W>(parse(plan)?),
            sections: all_sections::<W>,
            row_counts: W::row_counts,
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
/// [`OltpError::InvalidPlan`] when there is no such workload or no plan.
pub fn workload_of(plan: &str) -> Result<Registered, OltpError> {
    #[derive(Deserialize)]
    struct Named {
        workload: Option<String>,
    }
    let Named { workload: named } = parse(plan)?;
    let Some(kind) = named else { return Ok(WORKLOADS[0]) };
    workload(&kind).ok_or_else(|| OltpError::InvalidPlan(format!("workload {kind:?}: accepted: {}", kinds())))
}

fn kinds() -> String {
    WORKLOADS.map(|known| known.kind).join(", ")
}

/// A plan from its text. What does not fit is named by its place, never by its value: that may be a password.
fn parse<T: DeserializeOwned>(plan: &str) -> Result<T, OltpError> {
    serde_json::from_str(plan).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        OltpError::InvalidPlan(format!("plan of transactions: not understood at {place}"))
    })
}
