//! The rows of the initial database (clause 4.3.3), any of them from the seed, its table and its key alone.

use assay_loading::{ByScale, Chunk};
use assay_sql::{RowSink, Rows, Table};

use super::nurand::{self, C_LAST_LOAD, write_last_name};
use crate::random::Random;

pub(super) const ITEMS: u32 = 100_000;
pub(super) const DISTRICTS: u32 = 10;
pub(super) const CUSTOMERS: u32 = 3000;
/// Orders from here on are not delivered yet.
pub(super) const FIRST_NEW_ORDER: u32 = 2101;
const PARTS: u32 = 10;
/// Mean number of lines of an order, 5 to 15.
const LINES_MEAN: u64 = 10;

/// 2025-01-01T00:00:00 in microseconds since 2000-01-01, PostgreSQL's epoch: the date of everything that is there at first, so that
/// the same seed gives the same bytes.
pub(super) const LOADED_AT_US: i64 = 9132 * 86_400_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TpccTable {
    Item,
    Warehouse,
    District,
    Stock,
    Customer,
    History,
    Orders,
    NewOrder,
    OrderLine,
}

impl TpccTable {
    pub(super) const ALL: [Self; 9] = [
        Self::Item,
        Self::Warehouse,
        Self::District,
        Self::Stock,
        Self::Customer,
        Self::History,
        Self::Orders,
        Self::NewOrder,
        Self::OrderLine,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Warehouse => "warehouse",
            Self::District => "district",
            Self::Stock => "stock",
            Self::Customer => "customer",
            Self::History => "history",
            Self::Orders => "orders",
            Self::NewOrder => "new_order",
            Self::OrderLine => "order_line",
        }
    }

    /// Columns in the order in which rows have them.
    pub(super) fn columns(self) -> &'static str {
        match self {
            Self::Item => "i_id, i_im_id, i_name, i_price, i_data",
            Self::Warehouse => "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd",
            Self::District => {
                "d_id, d_w_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, d_next_o_id"
            }
            Self::Stock => {
                "s_i_id, s_w_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, \
                 s_dist_08, s_dist_09, s_dist_10, s_ytd, s_order_cnt, s_remote_cnt, s_data"
            }
            Self::Customer => {
                "c_id, c_d_id, c_w_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
                 c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data"
            }
            Self::History => "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data",
            Self::Orders => "o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local",
            Self::NewOrder => "no_o_id, no_d_id, no_w_id",
            Self::OrderLine => {
                "ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info"
            }
        }
    }

    /// Rows of a database of so many warehouses; of order lines the number to be expected.
    pub(super) fn row_count(self, warehouses: u32) -> u64 {
        let warehouses = u64::from(warehouses);
        let districts = warehouses * u64::from(DISTRICTS);
        let customers = districts * u64::from(CUSTOMERS);
        match self {
            Self::Item => u64::from(ITEMS),
            Self::Warehouse => warehouses,
            Self::District => districts,
            Self::Stock => warehouses * u64::from(ITEMS),
            Self::Customer | Self::History | Self::Orders => customers,
            Self::NewOrder => districts * u64::from(CUSTOMERS + 1 - FIRST_NEW_ORDER),
            Self::OrderLine => customers * LINES_MEAN,
        }
    }
}

/// Kind of a chunk: the tables that it fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ChunkKind {
    Items,
    Warehouse,
    Stock,
    Customers,
    Orders,
}

impl ChunkKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Items => "items",
            Self::Warehouse => "warehouse",
            Self::Stock => "stock",
            Self::Customers => "customers",
            Self::Orders => "orders",
        }
    }

    pub(super) fn tables(self) -> &'static [TpccTable] {
        match self {
            Self::Items => &[TpccTable::Item],
            Self::Warehouse => &[TpccTable::Warehouse, TpccTable::District],
            Self::Stock => &[TpccTable::Stock],
            Self::Customers => &[TpccTable::Customer, TpccTable::History],
            Self::Orders => &[TpccTable::Orders, TpccTable::NewOrder, TpccTable::OrderLine],
        }
    }
}

/// A chunk of the load: `warehouse` is 0 for items, `part` counts from 1 and is the district where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LoadChunk {
    pub(super) kind: ChunkKind,
    pub(super) warehouse: u32,
    pub(super) part: u32,
}

impl LoadChunk {
    /// The first and the last key of a table's rows in it.
    fn keys(self, table: TpccTable) -> (u32, u32) {
        let each = ITEMS / PARTS;
        match table {
            TpccTable::Item | TpccTable::Stock => (each * (self.part - 1) + 1, each * self.part),
            TpccTable::Warehouse => (1, 1),
            TpccTable::District => (1, DISTRICTS),
            TpccTable::Customer | TpccTable::History | TpccTable::Orders | TpccTable::OrderLine => (1, CUSTOMERS),
            TpccTable::NewOrder => (FIRST_NEW_ORDER, CUSTOMERS),
        }
    }
}

impl Chunk for LoadChunk {
    const UNIT_COLUMN: &'static str = "w_id";

    type Shape = ByScale;
    type Rows = TpccRows;

    fn all(warehouses: u32, _shape: ByScale) -> impl Iterator<Item = Self> {
        let of = |kind, warehouse, parts| (1..=parts).map(move |part| Self { kind, warehouse, part });
        of(ChunkKind::Items, 0, PARTS).chain((1..=warehouses).flat_map(move |warehouse| {
            of(ChunkKind::Warehouse, warehouse, 1)
                .chain(of(ChunkKind::Stock, warehouse, PARTS))
                .chain(of(ChunkKind::Customers, warehouse, DISTRICTS))
                .chain(of(ChunkKind::Orders, warehouse, DISTRICTS))
        }))
    }

    fn key(self) -> (&'static str, u32, u32) {
        (self.kind.name(), self.warehouse, self.part)
    }

    fn row_count(self) -> u64 {
        let of = |table: &TpccTable| {
            let (first, last) = self.keys(*table);
            u64::from(last + 1 - first) * if *table == TpccTable::OrderLine { LINES_MEAN } else { 1 }
        };
        self.kind.tables().iter().map(of).sum()
    }

    fn tables(self, seed: u64) -> impl Iterator<Item = (Table, TpccRows)> + Send + 'static {
        let tables = self.kind.tables().iter();
        tables.map(move |table| {
            (Table { name: table.name(), columns: table.columns() }, TpccRows::of(seed, *table, self))
        })
    }
}

/// Rows of one table of a chunk, one after the other.
pub(crate) struct TpccRows {
    seed: u64,
    table: TpccTable,
    chunk: LoadChunk,
    next: u32,
    last: u32,
    /// Of orders: whose each is.
    customers: Vec<u32>,
    scratch: Vec<u8>,
}

impl TpccRows {
    pub(super) fn of(seed: u64, table: TpccTable, chunk: LoadChunk) -> Self {
        let (first, last) = chunk.keys(table);
        let customers = if table == TpccTable::Orders { permutation(seed, chunk) } else { Vec::new() };
        Self { seed, table, chunk, next: first, last, customers, scratch: Vec::with_capacity(512) }
    }
}

impl Rows for TpccRows {
    /// Writes the rows of the next key: one, or all lines of an order; how many they are, `None` at the end.
    fn write_next(&mut self, sink: &mut impl RowSink) -> Option<u64> {
        if self.next > self.last {
            return None;
        }
        let key = self.next;
        self.next += 1;
        let place = u64::from(self.chunk.warehouse) << 32 | u64::from(self.chunk.part) << 24 | u64::from(key);
        // Orders and their lines draw from one stream, so that both know how many lines there are.
        let kind = if self.table == TpccTable::OrderLine { TpccTable::Orders } else { self.table };
        let mut random = Random::of(self.seed, kind as u64, place);
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        let mut row = Row { sink, random: &mut random, text: &mut text };
        let (warehouse, district) = (self.chunk.warehouse, self.chunk.part);
        let count = match self.table {
            TpccTable::Item => row.item(key),
            TpccTable::Warehouse => row.warehouse(warehouse),
            TpccTable::District => row.district(warehouse, key),
            TpccTable::Stock => row.stock(warehouse, key),
            TpccTable::Customer => row.customer(warehouse, district, key),
            TpccTable::History => row.history(warehouse, district, key),
            TpccTable::Orders => row.order(warehouse, district, key, self.customers[key as usize - 1]),
            TpccTable::NewOrder => row.new_order(warehouse, district, key),
            TpccTable::OrderLine => row.order_lines(warehouse, district, key),
        };
        self.scratch = text;
        Some(count)
    }
}

/// Customers of a district in random order: each has one order.
fn permutation(seed: u64, chunk: LoadChunk) -> Vec<u32> {
    let mut random = Random::of(seed, 100, u64::from(chunk.warehouse) << 8 | u64::from(chunk.part));
    let mut customers: Vec<u32> = (1..=CUSTOMERS).collect();
    for place in (1..CUSTOMERS).rev() {
        customers.swap(place as usize, random.between(0, place) as usize);
    }
    customers
}

struct Row<'a, S> {
    sink: &'a mut S,
    random: &'a mut Random,
    text: &'a mut Vec<u8>,
}

impl<S: RowSink> Row<'_, S> {
    fn text(&mut self, low: u32, high: u32) {
        self.text.clear();
        self.random.text(low, high, self.text);
        self.sink.text(self.text);
    }

    fn zip(&mut self) {
        self.text.clear();
        self.random.digits(4, self.text);
        self.text.extend_from_slice(b"11111");
        self.sink.text(self.text);
    }

    /// Streets, city, state, zip.
    fn address(&mut self) {
        self.text(10, 20);
        self.text(10, 20);
        self.text(10, 20);
        self.text(2, 2);
        self.zip();
    }

    /// Text of which one in ten has ORIGINAL in it.
    fn data(&mut self) {
        self.text.clear();
        self.random.text(26, 50, self.text);
        if self.random.percent(10) {
            let at = self.random.between(0, self.text.len() as u32 - 8) as usize;
            self.text[at..at + 8].copy_from_slice(b"ORIGINAL");
        }
        self.sink.text(self.text);
    }

    fn item(&mut self, id: u32) -> u64 {
        self.sink.begin_row();
        self.sink.int(id.into());
        let image = self.random.between(1, 10_000);
        self.sink.int(image.into());
        self.text(14, 24);
        let price = self.random.between(100, 10_000);
        self.sink.decimal(price.into(), 2);
        self.data();
        self.sink.end_row();
        1
    }

    fn warehouse(&mut self, id: u32) -> u64 {
        self.sink.begin_row();
        self.sink.int(id.into());
        self.text(6, 10);
        self.address();
        let tax = self.random.between(0, 2000);
        self.sink.decimal(tax.into(), 4);
        self.sink.decimal(30_000_000, 2);
        self.sink.end_row();
        1
    }

    fn district(&mut self, warehouse: u32, id: u32) -> u64 {
        self.sink.begin_row();
        self.sink.int(id.into());
        self.sink.int(warehouse.into());
        self.text(6, 10);
        self.address();
        let tax = self.random.between(0, 2000);
        self.sink.decimal(tax.into(), 4);
        self.sink.decimal(3_000_000, 2);
        self.sink.int(i64::from(CUSTOMERS) + 1);
        self.sink.end_row();
        1
    }

    fn stock(&mut self, warehouse: u32, item: u32) -> u64 {
        self.sink.begin_row();
        self.sink.int(item.into());
        self.sink.int(warehouse.into());
        let quantity = self.random.between(10, 100);
        self.sink.int(quantity.into());
        for _ in 0..DISTRICTS {
            self.text(24, 24);
        }
        for _ in 0..3 {
            self.sink.int(0);
        }
        self.data();
        self.sink.end_row();
        1
    }

    fn customer(&mut self, warehouse: u32, district: u32, id: u32) -> u64 {
        self.sink.begin_row();
        self.sink.int(id.into());
        self.sink.int(district.into());
        self.sink.int(warehouse.into());
        self.text(8, 16);
        self.sink.text(b"OE");
        // Every name is there once before names repeat.
        let name = if id <= 1000 { id - 1 } else { nurand::last_name(self.random, C_LAST_LOAD) };
        self.text.clear();
        write_last_name(name, self.text);
        self.sink.text(self.text);
        self.address();
        self.text.clear();
        self.random.digits(16, self.text);
        self.sink.text(self.text);
        self.sink.time(Some(LOADED_AT_US));
        let credit: &[u8] = if self.random.percent(10) { b"BC" } else { b"GC" };
        self.sink.text(credit);
        self.sink.decimal(5_000_000, 2);
        let discount = self.random.between(0, 5000);
        self.sink.decimal(discount.into(), 4);
        self.sink.decimal(-1000, 2);
        self.sink.decimal(1000, 2);
        self.sink.int(1);
        self.sink.int(0);
        self.text(300, 500);
        self.sink.end_row();
        1
    }

    fn history(&mut self, warehouse: u32, district: u32, customer: u32) -> u64 {
        self.sink.begin_row();
        for value in [customer, district, warehouse, district, warehouse] {
            self.sink.int(value.into());
        }
        self.sink.time(Some(LOADED_AT_US));
        self.sink.decimal(1000, 2);
        self.text(12, 24);
        self.sink.end_row();
        1
    }

    fn order(&mut self, warehouse: u32, district: u32, id: u32, customer: u32) -> u64 {
        let lines = self.random.between(5, 15);
        self.sink.begin_row();
        for value in [id, district, warehouse, customer] {
            self.sink.int(value.into());
        }
        self.sink.time(Some(LOADED_AT_US));
        if id < FIRST_NEW_ORDER {
            let carrier = self.random.between(1, 10);
            self.sink.int(carrier.into());
        } else {
            self.sink.null();
        }
        self.sink.int(lines.into());
        self.sink.int(1);
        self.sink.end_row();
        1
    }

    fn new_order(&mut self, warehouse: u32, district: u32, order: u32) -> u64 {
        self.sink.begin_row();
        for value in [order, district, warehouse] {
            self.sink.int(value.into());
        }
        self.sink.end_row();
        1
    }

    fn order_lines(&mut self, warehouse: u32, district: u32, order: u32) -> u64 {
        let lines = self.random.between(5, 15);
        let delivered = order < FIRST_NEW_ORDER;
        for number in 1..=lines {
            self.sink.begin_row();
            let item = self.random.between(1, ITEMS);
            for value in [order, district, warehouse, number, item, warehouse] {
                self.sink.int(value.into());
            }
            self.sink.time(delivered.then_some(LOADED_AT_US));
            self.sink.int(5);
            let amount = self.random.between(1, 999_999);
            self.sink.decimal(if delivered { 0 } else { amount.into() }, 2);
            self.text(24, 24);
            self.sink.end_row();
        }
        lines.into()
    }
}

#[cfg(test)]
mod tests;
