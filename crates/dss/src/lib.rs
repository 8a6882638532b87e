//! Data sets of decision-support workloads, a folder each.

mod tpch;

use assay_loading::Registered;

pub use tpch::{RefreshFunction, RefreshKeys, tpch_answer, tpch_refresh_keys};

/// The data sets of this crate. A new one is a folder beside `tpch/` and an entry here.
pub const DATASETS: [Registered; 1] = [Registered::of::<tpch::Tpch>()];
