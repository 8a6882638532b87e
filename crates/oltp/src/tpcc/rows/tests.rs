use std::collections::{BTreeMap, BTreeSet};

use assay_loading::ByScale;

use super::*;
use crate::text_rows::{TextRow, text_rows};

fn rows_of(seed: u64, table: TpccTable, chunk: LoadChunk) -> Vec<TextRow> {
    text_rows(TpccRows::of(seed, table, chunk))
}

fn chunk(kind: ChunkKind, warehouse: u32, part: u32) -> LoadChunk {
    LoadChunk { kind, warehouse, part }
}

#[test]
fn every_table_has_the_rows_of_the_specification() {
    let mut counts: BTreeMap<TpccTable, u64> = BTreeMap::new();
    let mut keys: BTreeMap<TpccTable, BTreeSet<Vec<Option<String>>>> = BTreeMap::new();
    for chunk in LoadChunk::all(1, ByScale {}) {
        for table in chunk.kind.tables() {
            let rows = rows_of(3, *table, chunk);
            assert!(rows.iter().all(|row| row.len() == table.columns().split(',').count()), "{table:?}");
            *counts.entry(*table).or_default() += rows.len() as u64;
            let width = match table {
                TpccTable::Item | TpccTable::Warehouse => 1,
                TpccTable::District | TpccTable::Stock => 2,
                TpccTable::OrderLine => 4,
                _ => 3,
            };
            keys.entry(*table).or_default().extend(rows.into_iter().map(|row| row[..width].to_vec()));
        }
    }
    for table in TpccTable::ALL {
        let expected = table.row_count(1);
        if table == TpccTable::OrderLine {
            let near = counts[&table].abs_diff(expected) < 3000; // Standard deviation of the sum: 548.
            assert!(near, "{}", counts[&table]);
        } else {
            assert_eq!(counts[&table], expected, "{table:?}");
        }
        assert_eq!(keys[&table].len() as u64, counts[&table], "{table:?}: a key is there twice");
    }
}

#[test]
fn orders_and_their_lines_agree() {
    let chunk = chunk(ChunkKind::Orders, 2, 4);
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows_of(9, TpccTable::OrderLine, chunk) {
        *lines.entry(row[0].clone().unwrap()).or_default() += 1;
        let delivered = row[0].as_ref().unwrap().parse::<u32>().unwrap() < FIRST_NEW_ORDER;
        assert_eq!(row[6].is_some(), delivered);
        assert_eq!(row[8].as_deref() == Some("0e-2"), delivered);
    }
    let mut customers = BTreeSet::new();
    for row in rows_of(9, TpccTable::Orders, chunk) {
        assert_eq!(row[6].as_ref().unwrap().parse::<u64>().unwrap(), lines[row[0].as_ref().unwrap()]);
        customers.insert(row[3].clone());
    }
    assert_eq!(customers.len(), 3000, "every customer has one order");
}

#[test]
fn a_row_does_not_depend_on_the_rows_before_it() {
    let whole = rows_of(5, TpccTable::Stock, chunk(ChunkKind::Stock, 3, 7));
    let mut tail = TpccRows::of(5, TpccTable::Stock, chunk(ChunkKind::Stock, 3, 7));
    tail.next = 69_990;
    let tail = text_rows(tail);
    assert_eq!(tail, whole[whole.len() - tail.len()..]);
    assert_ne!(rows_of(6, TpccTable::Stock, chunk(ChunkKind::Stock, 3, 7)), whole, "another seed, other rows");
    assert_ne!(rows_of(5, TpccTable::Stock, chunk(ChunkKind::Stock, 4, 7))[0][2..], whole[0][2..]);
}

#[test]
fn one_in_ten_customers_has_bad_credit_and_the_first_thousand_have_every_name() {
    let rows = rows_of(1, TpccTable::Customer, chunk(ChunkKind::Customers, 1, 1));
    let bad = rows.iter().filter(|row| row[13].as_deref() == Some("BC")).count();
    assert!((200..400).contains(&bad), "{bad}");
    let names: BTreeSet<_> = rows[..1000].iter().map(|row| row[5].clone()).collect();
    assert_eq!(names.len(), 1000);
}

#[test]
fn chunks_are_told_apart_by_their_keys() {
    let keys: BTreeSet<_> = LoadChunk::all(7, ByScale {}).map(Chunk::key).collect();
    assert_eq!(keys.len(), 10 + 7 * (1 + 10 + 10 + 10));
}
