use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use assay_loading::{ByScale, Chunk, Dataset};
use assay_sql::{RowSink, Rows};
use proptest::prelude::*;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use super::{
    RefreshFunction, Tpch,
    chunks::TpchChunk,
    refresh::{SETS, tpch_refresh_keys},
    rows::{TpchRows, scale_factor},
    span::Span,
    tables::TpchTable,
    tpch_answer,
};

/// Rows as lines of the specification's files, without the last bar.
#[derive(Default)]
struct LineSink {
    lines: Vec<String>,
    line: String,
}

impl LineSink {
    fn put(&mut self, value: impl Display) {
        let bar = if self.line.is_empty() { "" } else { "|" };
        self.line.push_str(&format!("{bar}{value}"));
    }
}

impl RowSink for LineSink {
    fn begin_row(&mut self) {}
    fn int(&mut self, value: i64) {
        self.put(value);
    }
    fn decimal(&mut self, digits: i64, scale: u8) {
        assert_eq!(scale, 2);
        let sign = if digits < 0 { "-" } else { "" };
        self.put(format!("{sign}{}.{:02}", digits.abs() / 100, digits.abs() % 100));
    }
    fn text(&mut self, text: &[u8]) {
        self.put(str::from_utf8(text).unwrap());
    }
    fn date(&mut self, days: i32) {
        self.put(date_of(days));
    }
    fn time(&mut self, _: Option<i64>) {
        unreachable!("no table has times");
    }
    fn null(&mut self) {
        unreachable!("no column may be null");
    }
    fn end_row(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
    }
}

/// The date `days` days after 2000-01-01, found by counting.
fn date_of(days: i32) -> String {
    let length = |year: i32, month| match month {
        2 if year % 4 == 0 => 29, // as it is from 1901 to 2099
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    // All dates are after 1992-01-01, which is 2,922 days before.
    let (mut left, mut year, mut month) = (days + 2922, 1992, 1);
    while left >= length(year, month) {
        left -= length(year, month);
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    }
    format!("{year}-{month:02}-{:02}", left + 1)
}

fn lines_of(mut rows: TpchRows) -> Vec<String> {
    let mut sink = LineSink::default();
    let mut count = 0;
    while let Some(more) = rows.write_next(&mut sink) {
        count += more;
    }
    assert_eq!(sink.lines.len() as u64, count);
    sink.lines
}

fn part_of(table: TpchTable, thousandths: u32, part: u32, parts: u32) -> Vec<String> {
    let span = Span::of(table.key_count(thousandths), part, parts);
    lines_of(TpchRows::of(table, thousandths, span, 0))
}

fn whole(table: TpchTable, thousandths: u32) -> Vec<String> {
    part_of(table, thousandths, 1, 1)
}

/// Cells by place.
fn cells(line: &str, places: &[usize]) -> Vec<i64> {
    let all: Vec<_> = line.split('|').collect();
    places.iter().map(|place| all[*place].parse().unwrap()).collect()
}

/// The lines of a chunk by table.
fn lines_of_chunk(chunk: TpchChunk) -> Vec<(&'static str, Vec<String>)> {
    chunk.tables(0).map(|(table, rows)| (table.name, lines_of(rows))).collect()
}

/// Rows as the generator itself writes them.
fn written<T: Display>(rows: impl Iterator<Item = T>) -> Vec<String> {
    rows.map(|row| row.to_string().trim_end_matches('|').into()).collect()
}

#[test]
fn chunks_together_have_the_lines_of_the_generator() {
    const THOUSANDTHS: u32 = 10;
    let mut loaded: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for chunk in TpchChunk::all(THOUSANDTHS, ByScale {}) {
        let (kind, set, part) = chunk.key();
        assert_eq!(TpchChunk::of_key(THOUSANDTHS, ByScale {}, kind, set, part), Some(chunk));
        for (table, mut lines) in lines_of_chunk(chunk) {
            loaded.entry(table).or_default().append(&mut lines);
        }
    }
    // The files have quantities as whole numbers.
    let whole_quantity = |line: &String| {
        let mut cells: Vec<_> = line.split('|').collect();
        cells[4] = cells[4].strip_suffix(".00").unwrap();
        cells.join("|")
    };
    let lines = loaded.get_mut("lineitem").unwrap();
    *lines = lines.iter().map(whole_quantity).collect();
    let expected = BTreeMap::from([
        ("region", written(RegionGenerator::default().iter())),
        ("nation", written(NationGenerator::default().iter())),
        ("supplier", written(SupplierGenerator::new(0.01, 1, 1).iter())),
        ("customer", written(CustomerGenerator::new(0.01, 1, 1).iter())),
        ("part", written(PartGenerator::new(0.01, 1, 1).iter())),
        ("partsupp", written(PartSuppGenerator::new(0.01, 1, 1).iter())),
        ("orders", written(OrderGenerator::new(0.01, 1, 1).iter())),
        ("lineitem", written(LineItemGenerator::new(0.01, 1, 1).iter())),
    ]);
    for (table, lines) in expected {
        assert!(loaded[table] == lines, "{table}");
    }
    // Known of the specification's generator at this scale.
    assert_eq!(loaded["lineitem"].len(), 60_175);
    assert_eq!(TpchChunk::all(THOUSANDTHS, ByScale {}).count(), 5);
    assert_eq!(TpchChunk::all(1000, ByScale {}).count(), 1 + 1 + 3 + 8 + 60);
}

#[test]
fn the_first_rows_are_those_of_the_specifications_generator() {
    let first = |table| part_of(table, 1000, 1, 100_000).swap_remove(0);
    assert_eq!(
        first(TpchTable::LineItem),
        "1|155190|7706|1|17.00|21168.23|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|DELIVER IN PERSON|TRUCK|egular courts above the"
    );
    assert_eq!(
        first(TpchTable::Orders),
        "1|36901|O|173665.47|1996-01-02|5-LOW|Clerk#000000951|0|nstructions sleep furiously among "
    );
    let part = part_of(TpchTable::Part, 1000, 1, 100_000);
    assert_eq!(
        part[0],
        "1|goldenrod lavender spring chocolate lace|Manufacturer#1|Brand#13|PROMO BURNISHED COPPER|7|JUMBO PKG|901.00|ly. slyly ironi"
    );
}

#[test]
fn rows_are_as_many_as_said() {
    let counts: BTreeMap<_, _> = Tpch::row_counts(1, ByScale {}).into_iter().collect();
    let mut of_chunks = 0;
    for chunk in TpchChunk::all(1, ByScale {}) {
        of_chunks += chunk.row_count();
        for (table, lines) in lines_of_chunk(chunk) {
            let expected = if table == "lineitem" { 6005 } else { counts[table] };
            assert_eq!(lines.len() as u64, expected, "{table}");
        }
    }
    assert_eq!(of_chunks, counts.values().sum::<u64>());
}

#[test]
fn a_part_has_four_suppliers_and_its_lines_have_no_other_at_any_scale() {
    // Twice the same supplier by the formula at all of these but the last.
    for thousandths in [1, 2, 3, 4, 6, 12, 18, 20] {
        let suppliers = 1..=TpchTable::Supplier.key_count(thousandths) as i64;
        let pairs: Vec<_> = whole(TpchTable::PartSupp, thousandths).iter().map(|line| cells(line, &[0, 1])).collect();
        let distinct: BTreeSet<_> = pairs.iter().cloned().collect();
        assert_eq!(distinct.len(), pairs.len(), "{thousandths}");
        assert!(pairs.iter().all(|pair| suppliers.contains(&pair[1])));
        assert!(whole(TpchTable::LineItem, thousandths).iter().all(|line| distinct.contains(&cells(line, &[1, 2]))));
    }
}

#[test]
fn refresh_keys_are_those_computed_by_hand() {
    let keys = |set, function| {
        let found = tpch_refresh_keys(1000, set, function).unwrap();
        (found.sequence, found.first, found.last)
    };
    // Orders 1 to 1500: 1500 is the fifth of the 188th eight, so 187 * 32 + 4.
    assert_eq!(keys(1, RefreshFunction::Delete), (0, 1, 5988));
    assert_eq!(keys(1, RefreshFunction::Insert), (1, 9, 5996));
    // Orders 1,498,501 to 1,500,000: 187,312 * 32 + 5 and 187,500 * 32, the last key of the data set.
    assert_eq!(keys(1000, RefreshFunction::Delete), (0, 5_993_989, 6_000_000));
    assert_eq!(keys(1001, RefreshFunction::Delete), (1, 9, 5996));
    assert_eq!(keys(1001, RefreshFunction::Insert), (2, 17, 6004));
    assert_eq!(keys(3001, RefreshFunction::Insert), (0, 1, 5988));
    assert_eq!(keys(4001, RefreshFunction::Insert), keys(1, RefreshFunction::Insert));
    assert_eq!(tpch_refresh_keys(1000, 0, RefreshFunction::Insert), None);
    assert_eq!(tpch_refresh_keys(0, 1, RefreshFunction::Insert), None);
}

/// The keys of the orders that a function works on.
fn refreshed(orders: &BTreeSet<i64>, thousandths: u32, set: u32) -> (BTreeSet<i64>, BTreeSet<i64>) {
    let deleted = tpch_refresh_keys(thousandths, set, RefreshFunction::Delete).unwrap();
    let chosen = |key: &&i64| *key / 8 % 4 == i64::from(deleted.sequence);
    let deleted = orders.range(deleted.first..=deleted.last).filter(chosen).copied().collect();
    let inserted = TpchChunk::of_key(thousandths, ByScale {}, "rf1", set, 1).unwrap().tables(0).next().unwrap().1;
    (deleted, lines_of(inserted).iter().map(|line| cells(line, &[0])[0]).collect())
}

#[test]
fn after_all_sets_the_orders_are_those_of_the_load() {
    let loaded: BTreeSet<_> = whole(TpchTable::Orders, 1).iter().map(|line| cells(line, &[0])[0]).collect();
    let mut orders = loaded.clone();
    for set in 1..=4 * SETS {
        let (deleted, inserted) = refreshed(&orders, 1, set);
        assert!(inserted.is_disjoint(&orders), "set {set} inserts keys that are there");
        assert_eq!(inserted.len(), deleted.len(), "set {set}");
        let keys = tpch_refresh_keys(1, set, RefreshFunction::Insert).unwrap();
        assert_eq!((inserted.first(), inserted.last()), (Some(&keys.first), Some(&keys.last)));
        orders.extend(inserted);
        orders.retain(|key| !deleted.contains(key));
        assert_eq!(orders == loaded, set == 4 * SETS, "set {set}");
    }
}

#[test]
fn an_inserted_order_is_that_of_its_index_under_another_key() {
    const THOUSANDTHS: u32 = 20;
    let inserted = lines_of_chunk(TpchChunk::of_key(THOUSANDTHS, ByScale {}, "rf1", 1002, 1).unwrap());
    // The second thirty orders, in the third sequence.
    for (table, lines) in [TpchTable::Orders, TpchTable::LineItem].into_iter().zip(inserted) {
        let of_load = whole(table, THOUSANDTHS).into_iter().filter_map(|line| {
            let (key, rest) = line.split_once('|').unwrap();
            let key: i64 = key.parse().unwrap();
            let index = key / 32 * 8 + key % 8;
            (31..=60).contains(&index).then(|| format!("{}|{rest}", key + 16))
        });
        assert!(lines.1 == of_load.collect::<Vec<_>>(), "{table:?}");
    }
}

#[test]
fn there_are_answers_to_the_queries() {
    assert!(tpch_answer(6).unwrap().contains("123141078.23"));
    assert_eq!((1..=22).filter_map(tpch_answer).count(), 22);
    assert_eq!((tpch_answer(0), tpch_answer(23)), (None, None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_gives_the_same_rows(table in 2_usize..8, thousandths in 1_u32..4, parts in 1_u32..40) {
        // Region and nation, the first two, are never split.
        let table = TpchTable::ALL[table];
        let parts = parts.min(table.key_count(thousandths) as u32);
        let of_parts: Vec<_> = (1..=parts).flat_map(|part| part_of(table, thousandths, part, parts)).collect();
        prop_assert!(of_parts == whole(table, thousandths));
    }

    #[test]
    fn the_generator_counts_as_we_do(thousandths in 1_u32..=100_000_000, parts in 1_u32..5000) {
        let scale = scale_factor(thousandths);
        for part in [1, parts] {
            let of = |table: TpchTable| Span::of(table.key_count(thousandths), part, parts).count as i64;
            let (number, parts) = (part as i32, parts as i32);
            prop_assert_eq!(of(TpchTable::Supplier), SupplierGenerator::calculate_row_count(scale, number, parts));
            prop_assert_eq!(of(TpchTable::Customer), CustomerGenerator::calculate_row_count(scale, number, parts));
            prop_assert_eq!(of(TpchTable::Part), PartGenerator::calculate_row_count(scale, number, parts));
            prop_assert_eq!(of(TpchTable::Orders), OrderGenerator::calculate_row_count(scale, number, parts));
        }
    }
}
