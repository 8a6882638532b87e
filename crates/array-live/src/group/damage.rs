//! Faults of an array that neither the model nor the store knows.

use std::collections::BTreeMap;

use assay_array_model::Lost;

use crate::stall::Stall;

/// Progress of a fault.
pub(crate) struct Damage {
    pub(crate) rebuild_depth: u32,
    pub(crate) failover_ns: u64,
    /// Whether rows that the model has rebuilt are not written yet.
    pub(crate) is_behind: bool,
    /// Members whose rebuild failed.
    pub(crate) stalls: BTreeMap<u32, Stall>,
    pub(crate) slowed: Vec<(String, u32)>,
    pub(crate) paths: Option<Lost>,
}

impl Damage {
    pub(crate) fn new(rebuild_depth: u32, failover_ns: u64) -> Self {
        Self { rebuild_depth, failover_ns, is_behind: false, stalls: BTreeMap::new(), slowed: Vec::new(), paths: None }
    }
}
