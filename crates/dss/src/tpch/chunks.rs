//! Chunks: rows that are loaded in one transaction.

use assay_loading::{ByScale, Chunk};
use assay_sql::Table;

use super::{
    refresh::{self, RefreshFunction},
    rows::TpchRows,
    span::Span,
    tables::TpchTable,
};

/// Kind of a chunk: the tables that it fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkKind {
    Fixed,
    Supplier,
    Customer,
    Part,
    Orders,
    /// A set of refresh function 1. No part of a load.
    Refresh,
}

impl ChunkKind {
    const LOADED: [Self; 5] = [Self::Fixed, Self::Supplier, Self::Customer, Self::Part, Self::Orders];

    fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Supplier => "supplier",
            Self::Customer => "customer",
            Self::Part => "part",
            Self::Orders => "orders",
            Self::Refresh => "rf1",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        Self::LOADED.into_iter().chain([Self::Refresh]).find(|kind| kind.name() == name)
    }

    fn tables(self) -> &'static [TpchTable] {
        match self {
            Self::Fixed => &[TpchTable::Region, TpchTable::Nation],
            Self::Supplier => &[TpchTable::Supplier],
            Self::Customer => &[TpchTable::Customer],
            Self::Part => &[TpchTable::Part, TpchTable::PartSupp],
            Self::Orders | Self::Refresh => &[TpchTable::Orders, TpchTable::LineItem],
        }
    }

    /// Chunks of a database: of about 100,000 rows, which servers load in less than a second.
    fn parts(self, thousandths: u32) -> u32 {
        let keys_of_chunk = match self {
            Self::Fixed | Self::Refresh => return 1,
            Self::Supplier | Self::Customer => 50_000,
            Self::Part | Self::Orders => 25_000,
        };
        // The largest scale has six million chunks.
        self.tables()[0].key_count(thousandths).div_ceil(keys_of_chunk) as u32
    }
}

/// A chunk of a database: `part` counts from 1, and so do sets; what belongs to no set has set 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TpchChunk {
    thousandths: u32,
    kind: ChunkKind,
    set: u32,
    part: u32,
}

impl TpchChunk {
    /// The keys of its tables.
    fn span(self) -> Span {
        match self.kind {
            ChunkKind::Refresh => refresh::span(self.set, self.thousandths),
            kind => Span::of(kind.tables()[0].key_count(self.thousandths), self.part, kind.parts(self.thousandths)),
        }
    }

    /// The sequence of its order keys.
    fn sequence(self) -> u32 {
        match self.kind {
            ChunkKind::Refresh => refresh::sequence(self.set - 1, RefreshFunction::Insert),
            _ => 0,
        }
    }
}

impl Chunk for TpchChunk {
    const UNIT_COLUMN: &'static str = "unit";

    type Shape = ByScale;
    type Rows = TpchRows;

    fn all(thousandths: u32, _shape: ByScale) -> impl Iterator<Item = Self> {
        ChunkKind::LOADED.into_iter().flat_map(move |kind| {
            (1..=kind.parts(thousandths)).map(move |part| Self { thousandths, kind, set: 0, part })
        })
    }

    fn of_key(thousandths: u32, _shape: ByScale, kind: &str, set: u32, part: u32) -> Option<Self> {
        let kind = ChunkKind::of_name(kind)?;
        let is_there = (1..=kind.parts(thousandths)).contains(&part) && (set > 0) == (kind == ChunkKind::Refresh);
        is_there.then_some(Self { thousandths, kind, set, part })
    }

    fn key(self) -> (&'static str, u32, u32) {
        (self.kind.name(), self.set, self.part)
    }

    fn row_count(self) -> u64 {
        let tables = self.kind.tables().iter();
        match self.kind {
            ChunkKind::Fixed => tables.map(|table| table.row_count(self.thousandths)).sum(),
            _ => tables.map(|table| table.rows_of(self.span().count)).sum(),
        }
    }

    /// The rows of a scale are always the same: no seed changes them.
    fn tables(self, _seed: u64) -> impl Iterator<Item = (Table, TpchRows)> + Send + 'static {
        let (span, sequence) = (self.span(), self.sequence());
        self.kind.tables().iter().map(move |table| {
            let rows = TpchRows::of(*table, self.thousandths, span, sequence);
            (Table { name: table.name(), columns: table.columns() }, rows)
        })
    }
}
