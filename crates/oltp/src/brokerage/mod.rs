//! The TPC-E-like workload, derived and not comparable: 33 tables of a brokerage, its customers' orders, and the market that answers
//! them.

mod fees;
mod holdings;
mod ids;
mod market;
mod people;
mod plan;
mod rows;
mod tables;
mod trades;
mod words;

use assay_loading::{Dataset, Scale, TableCount};
use assay_sql::{Kind, Layers, Section, layers};

use self::{
    ids::{BLOCK, Size},
    plan::Shape,
    rows::BrokerageChunk,
    tables::BrokerageTable,
};

const FILES: [(&str, Layers); 8] = [
    ("schema", layers!("sql", "schema")),
    ("indexes", layers!("sql", "indexes")),
    ("foreign_keys", layers!("sql", "foreign_keys")),
    ("statements", layers!("sql", "statements")),
    ("procedures", layers!("sql", "procedures")),
    ("conditions", layers!("sql", "conditions")),
    ("references", layers!("sql", "references")),
    ("drop", layers!("sql", "drop")),
];

pub(crate) enum Brokerage {}

impl Dataset for Brokerage {
    const KIND: &'static str = "brokerage";
    /// A broker for each hundred customers; the most are some terabytes.
    const SCALE: Scale = Scale { one: "customer", many: "customers", step: BLOCK, max: 10_000_000 };

    type Shape = Shape;
    type Chunk = BrokerageChunk;

    fn row_counts(customers: u32, shape: Shape) -> Vec<TableCount> {
        let size = Size { customers };
        BrokerageTable::ALL.iter().map(|table| (table.name(), table.row_count(size, shape))).collect()
    }
}
