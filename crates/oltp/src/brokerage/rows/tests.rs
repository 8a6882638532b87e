use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::brokerage::people::Person;
use crate::text_rows::{TextRow, text_rows};

const SHAPE: Shape = Shape { days: 1, news_bytes: 100 };
const CUSTOMERS: u32 = 200;

type Tables = BTreeMap<&'static str, Vec<TextRow>>;

fn chunk_rows(seed: u64, chunk: BrokerageChunk) -> Tables {
    chunk.tables(seed).map(|(table, rows)| (table.name, text_rows(rows))).collect()
}

fn all_rows() -> Tables {
    let mut tables = Tables::new();
    for chunk in BrokerageChunk::all(CUSTOMERS, SHAPE) {
        for (name, rows) in chunk_rows(3, chunk) {
            tables.entry(name).or_default().extend(rows);
        }
    }
    tables
}

fn column(table: BrokerageTable, name: &str) -> usize {
    table.columns().split(", ").position(|column| column == name).unwrap()
}

fn values(tables: &Tables, table: BrokerageTable, columns: &[&str]) -> Vec<TextRow> {
    let places: Vec<_> = columns.iter().map(|name| column(table, name)).collect();
    let rows = tables.get(table.name()).map(Vec::as_slice).unwrap_or_default();
    rows.iter().map(|row| places.iter().map(|place| row[*place].clone()).collect()).collect()
}

fn number(value: &Option<String>) -> i64 {
    value.as_ref().unwrap().split('e').next().unwrap().parse().unwrap()
}

#[test]
fn every_table_has_as_many_rows_as_it_should() {
    let tables = all_rows();
    let size = Size { customers: CUSTOMERS };
    for table in BrokerageTable::ALL {
        let rows = tables.get(table.name()).map_or(0, Vec::len) as f64;
        let expected = table.row_count(size, SHAPE) as f64;
        let drawn = match table {
            CustomerAccount | AccountPermission | WatchItem => 0.15,
            TradeHistory | CashTransaction => 0.02,
            HoldingHistory => 0.2,
            // With a day behind them accounts hold little of what they trade.
            Holding | HoldingSummary => 0.35,
            _ => 0.0,
        };
        assert!((rows - expected).abs() <= drawn * expected, "{table:?}: {rows} rows, {expected} expected");
        let width = table.columns().split(", ").count();
        assert!(tables.get(table.name()).into_iter().flatten().all(|row| row.len() == width), "{table:?}");
    }
}

#[test]
fn accounts_hold_ten_securities_after_ten_days() {
    let size = Size { customers: 1000 };
    let past = Past::of(3, size, 10, 5);
    let accounts: u32 = (50..60).map(|customer| Person::of(3, customer).accounts).sum();
    let held = past.positions.iter().filter(|position| !position.lots.is_empty()).count() as f64;
    assert!((8.0..11.0).contains(&(held / f64::from(accounts))), "{}", held / f64::from(accounts));
}

#[test]
fn counters_agree_with_what_they_count() {
    let tables = all_rows();
    let accounts: BTreeMap<_, _> = values(&tables, CustomerAccount, &["ca_id", "ca_b_id"])
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    let mut brokers: BTreeMap<Option<String>, (i64, i64)> = BTreeMap::new();
    for row in values(&tables, Trade, &["t_ca_id", "t_comm"]) {
        let counted = brokers.entry(accounts[&row[0]].clone()).or_default();
        *counted = (counted.0 + 1, counted.1 + number(&row[1]));
    }
    let told = values(&tables, Broker, &["b_id", "b_num_trades", "b_comm_total"]);
    let told = told.into_iter().map(|row| (row[0].clone(), (number(&row[1]), number(&row[2]))));
    assert_eq!(told.collect::<BTreeMap<_, _>>(), brokers);
    let mut held: BTreeMap<TextRow, i64> = BTreeMap::new();
    for row in values(&tables, Holding, &["h_ca_id", "h_s_symb", "h_qty"]) {
        *held.entry(row[..2].to_vec()).or_default() += number(&row[2]);
    }
    let told = values(&tables, HoldingSummary, &["hs_ca_id", "hs_s_symb", "hs_qty"]);
    assert_eq!(told.into_iter().map(|row| (row[..2].to_vec(), number(&row[2]))).collect::<BTreeMap<_, _>>(), held);
}

/// References and keys as the tables have them.
fn sections(file: &str) -> Vec<(String, String)> {
    let (_, layers) = super::super::FILES.iter().find(|(name, _)| *name == file).unwrap();
    let dialect = assay_sql::Kind::Postgresql;
    layers.sections(dialect).into_iter().map(|section| (section.name, section.text)).collect()
}

fn listed(text: &str, after: &str) -> Vec<String> {
    let from = text.find(after).unwrap() + after.len();
    let inner = text[from..].trim_start().trim_start_matches('(');
    inner[..inner.find(')').unwrap()].split(", ").map(str::to_owned).collect()
}

fn table_of(name: &str) -> BrokerageTable {
    BrokerageTable::ALL.into_iter().find(|table| table.name() == name).unwrap()
}

#[test]
fn keys_are_each_rows_own_and_references_lead_to_rows() {
    let tables = all_rows();
    let key_of = |table, columns: &[String]| {
        let columns: Vec<_> = columns.iter().map(String::as_str).collect();
        values(&tables, table, &columns)
    };
    for (name, text) in sections("indexes").into_iter().filter(|(name, _)| name.ends_with("_pkey")) {
        let keys = key_of(table_of(name.strip_suffix("_pkey").unwrap()), &listed(&text, "PRIMARY KEY"));
        let count = keys.len();
        assert_eq!(keys.into_iter().collect::<BTreeSet<_>>().len(), count, "{name}: a key is there twice");
    }
    for (name, text) in sections("foreign_keys") {
        let words: Vec<_> = text.split_whitespace().collect();
        let from = key_of(table_of(words[2]), &listed(&text, "FOREIGN KEY"));
        let place = words.iter().position(|word| *word == "REFERENCES").unwrap();
        let target = words[place + 1];
        let to: BTreeSet<_> =
            key_of(table_of(target), &listed(&text, &format!("REFERENCES {target}"))).into_iter().collect();
        let lost = from.iter().find(|key| !to.contains(*key));
        assert!(lost.is_none(), "{name}: {lost:?}");
    }
}

#[test]
fn a_chunk_is_the_same_whatever_was_drawn_before_it() {
    let chunk = BrokerageChunk::of_key(CUSTOMERS, SHAPE, "trades", 2, 4).unwrap();
    let rows = chunk_rows(5, chunk);
    assert_eq!(chunk_rows(5, chunk), rows);
    assert_ne!(chunk_rows(6, chunk), rows, "another seed, other rows");
    let mut tail = chunk.tables(5).next().unwrap().1;
    tail.next = 500;
    assert_eq!(text_rows(tail), rows["trade"][500..]);
}

#[test]
fn chunks_are_told_apart_by_their_keys() {
    let keys: BTreeSet<_> = BrokerageChunk::all(700, SHAPE).map(Chunk::key).collect();
    assert_eq!(keys.len(), 1 + 7 * (5 + 10));
    let rows: u64 = BrokerageChunk::all(700, SHAPE).map(Chunk::row_count).sum();
    let tables: u64 = BrokerageTable::ALL.iter().map(|table| table.row_count(Size { customers: 700 }, SHAPE)).sum();
    assert!(rows.abs_diff(tables) < tables / 100);
}
