//! The TPC-H-like data set: eight tables of a wholesale business, byte for byte those of the specification's generator, from crate
//! `tpchgen`; and the rows that its refresh functions insert.

mod chunks;
mod refresh;
mod rows;
mod span;
mod tables;

use assay_loading::{ByScale, Dataset, Scale};
use tpchgen::q_and_a::QueryAndAnswer;

pub use self::refresh::{RefreshFunction, RefreshKeys, tpch_refresh_keys};
use self::{chunks::TpchChunk, tables::TpchTable};

pub(crate) enum Tpch {}

impl Dataset for Tpch {
    const KIND: &'static str = "tpch";
    const SCALE: Scale =
        Scale { one: "thousandth of the scale", many: "thousandths of the scale", step: 1, max: 100_000_000 };

    type Shape = ByScale;
    type Chunk = TpchChunk;

    fn row_counts(thousandths: u32, _shape: ByScale) -> Vec<(&'static str, u64)> {
        TpchTable::ALL.iter().map(|table| (table.name(), table.row_count(thousandths))).collect()
    }
}

/// The published answer to a query, 1 to 22, at scale 1 with the parameters of the specification's validation.
pub fn tpch_answer(query: i32) -> Option<String> {
    Some(QueryAndAnswer::new(query, 1.0).ok()?.answer().into())
}

#[cfg(test)]
mod tests;
