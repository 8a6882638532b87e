use serde::Deserialize;

use super::ledger::Ledger;

/// How users choose the warehouse they work for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Home {
    /// Each keeps one warehouse and draws the district.
    Warehouse,
    /// Each keeps one district, as a terminal of the specification does.
    District,
    /// Each draws the warehouse anew for every transaction.
    All,
}

/// Fields of a plan for this workload alone.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Tpcc {
    /// Items are skewed, and last names are drawn with the constant of a strict run.
    pub(super) nurand_items: bool,
    pub(super) home: Home,
    /// Whether orders that were acknowledged are kept.
    #[serde(default)]
    pub(super) keeps_orders: bool,
    #[serde(skip)]
    pub(super) ledger: Ledger,
}
