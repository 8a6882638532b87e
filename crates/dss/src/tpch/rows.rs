//! The rows of a part of a table, as the generator makes them.

use std::{
    fmt::{self, Write},
    hint::black_box,
};

use assay_sql::{RowSink, Rows};
use tpchgen::{
    dates::TPCHDate,
    decimal::TPCHDecimal,
    generators::{
        Customer, CustomerGenerator, CustomerGeneratorIterator, LineItem, LineItemGenerator, LineItemGeneratorIterator,
        Nation, NationGenerator, NationGeneratorIterator, Order, OrderGenerator, OrderGeneratorIterator, Part,
        PartGenerator, PartGeneratorIterator, PartSupp, PartSuppGenerator, PartSuppGeneratorIterator, Region,
        RegionGenerator, RegionGeneratorIterator, Supplier, SupplierGenerator, SupplierGeneratorIterator,
    },
};

use super::{span::Span, tables::TpchTable};

/// 2000-01-01 in days since 1970-01-01.
const EPOCH_DAYS: i32 = 10_957;
/// Digits of money and shares after the point.
const CENTS: u8 = 2;

/// Rows of one table, one after the other.
pub(crate) struct TpchRows {
    rows: TableRows,
    text: Text,
}

enum TableRows {
    Region(RegionGeneratorIterator<'static>),
    Nation(NationGeneratorIterator<'static>),
    Supplier(SupplierGeneratorIterator<'static>),
    Customer(Ahead<CustomerGeneratorIterator<'static>>),
    Part(Ahead<PartGeneratorIterator<'static>>),
    PartSupp(Ahead<PartSuppGeneratorIterator<'static>>, SuppliersOfPart),
    Orders(Ahead<OrderGeneratorIterator<'static>>, Sequence),
    LineItem(Ahead<LineItemGeneratorIterator<'static>>, Sequence),
}

/// Makes some rows at once and looks at the comments of all of them. A comment is anywhere in 300 MB of text: the processor fetches
/// several at a time, instead of each when it is written.
struct Ahead<I: Iterator> {
    rows: I,
    made: Vec<I::Item>,
    next: usize,
}

impl<I: Iterator<Item: Commented>> Ahead<I> {
    const ROWS: usize = 16;

    fn new(rows: I) -> Self {
        Self { rows, made: Vec::with_capacity(Self::ROWS), next: 0 }
    }

    fn next(&mut self) -> Option<&I::Item> {
        if self.next == self.made.len() {
            self.made.clear();
            self.made.extend(self.rows.by_ref().take(Self::ROWS));
            self.next = 0;
            let comments = self.made.iter().map(|row| row.comment().as_bytes());
            let ends = comments.flat_map(|comment| [comment.first(), comment.last()]).flatten();
            black_box(ends.fold(0, |all, byte| all ^ byte));
        }
        self.next += 1;
        self.made.get(self.next - 1)
    }
}

trait Commented {
    fn comment(&self) -> &str;
}

macro_rules! commented {
    ($($row:ident $comment:ident),+) => {
        $(impl Commented for $row<'_> {
            fn comment(&self) -> &str {
                self.$comment
            }
        })+
    };
}

commented!(Customer c_comment, Part p_comment, PartSupp ps_comment, Order o_comment, LineItem l_comment);

impl TpchRows {
    /// Rows of a part of a table; order keys are in a sequence of their own (see `refresh.rs`).
    pub(super) fn of(table: TpchTable, thousandths: u32, span: Span, sequence: u32) -> Self {
        let scale = scale_factor(thousandths);
        let (part, parts) = (span.part as i32, span.parts as i32);
        let sequence = Sequence(i64::from(sequence) << 3);
        let rows = match table {
            TpchTable::Region => TableRows::Region(RegionGenerator::default().iter()),
            TpchTable::Nation => TableRows::Nation(NationGenerator::default().iter()),
            TpchTable::Supplier => TableRows::Supplier(SupplierGenerator::new(scale, part, parts).iter()),
            TpchTable::Customer => TableRows::Customer(Ahead::new(CustomerGenerator::new(scale, part, parts).iter())),
            TpchTable::Part => TableRows::Part(Ahead::new(PartGenerator::new(scale, part, parts).iter())),
            TpchTable::PartSupp => {
                let suppliers = SuppliersOfPart::of(TpchTable::Supplier.key_count(thousandths));
                TableRows::PartSupp(Ahead::new(PartSuppGenerator::new(scale, part, parts).iter()), suppliers)
            }
            TpchTable::Orders => {
                TableRows::Orders(Ahead::new(OrderGenerator::new(scale, part, parts).iter()), sequence)
            }
            TpchTable::LineItem => {
                TableRows::LineItem(Ahead::new(LineItemGenerator::new(scale, part, parts).iter()), sequence)
            }
        };
        Self { rows, text: Text::default() }
    }
}

impl Rows for TpchRows {
    fn write_next(&mut self, sink: &mut impl RowSink) -> Option<u64> {
        let mut row = Row { sink, text: &mut self.text };
        match &mut self.rows {
            TableRows::Region(rows) => row.region(&rows.next()?),
            TableRows::Nation(rows) => row.nation(&rows.next()?),
            TableRows::Supplier(rows) => row.supplier(&rows.next()?),
            TableRows::Customer(rows) => row.customer(rows.next()?),
            TableRows::Part(rows) => row.part(rows.next()?),
            TableRows::PartSupp(rows, suppliers) => row.part_supplier(rows.next()?, suppliers),
            TableRows::Orders(rows, sequence) => row.order(rows.next()?, *sequence),
            TableRows::LineItem(rows, sequence) => row.line(rows.next()?, *sequence),
        }
        Some(1)
    }
}

/// The scale as the generator takes it. It cuts fractions of rows off: the next number up loses none that a rounding error is short of.
pub(super) fn scale_factor(thousandths: u32) -> f64 {
    (f64::from(thousandths) / 1000.0).next_up()
}

/// Offset of an order key of the data set.
#[derive(Debug, Clone, Copy)]
struct Sequence(i64);

/// Keeps the suppliers of a part apart. At scales below 0.02, which the specification does not have, its formula gives a part the
/// same supplier twice: the second time, the next supplier that the part does not have takes its place.
struct SuppliersOfPart {
    suppliers_count: i64,
    part: i64,
    taken: Vec<i64>,
}

impl SuppliersOfPart {
    fn of(suppliers_count: u64) -> Self {
        Self { suppliers_count: suppliers_count as i64, part: 0, taken: Vec::with_capacity(4) }
    }

    fn take(&mut self, part: i64, mut supplier: i64) -> i64 {
        if part != self.part {
            self.part = part;
            self.taken.clear();
        }
        while self.taken.contains(&supplier) {
            supplier = supplier % self.suppliers_count + 1;
        }
        self.taken.push(supplier);
        supplier
    }
}

/// Memory that texts are written into before they go to a sink.
#[derive(Default)]
struct Text(String);

impl Text {
    fn of(&mut self, value: impl fmt::Display) -> &[u8] {
        self.0.clear();
        write!(self.0, "{value}").expect("writing to memory cannot fail");
        self.0.as_bytes()
    }
}

struct Row<'a, S> {
    sink: &'a mut S,
    text: &'a mut Text,
}

impl<S: RowSink> Row<'_, S> {
    fn display(&mut self, value: impl fmt::Display) {
        self.sink.text(self.text.of(value));
    }

    fn money(&mut self, amount: TPCHDecimal) {
        self.sink.decimal(amount.into_inner(), CENTS);
    }

    fn date(&mut self, date: TPCHDate) {
        self.sink.date(date.to_unix_epoch() - EPOCH_DAYS);
    }

    fn region(&mut self, row: &Region<'_>) {
        self.sink.begin_row();
        self.sink.int(row.r_regionkey);
        self.sink.text(row.r_name.as_bytes());
        self.sink.text(row.r_comment.as_bytes());
        self.sink.end_row();
    }

    fn nation(&mut self, row: &Nation<'_>) {
        self.sink.begin_row();
        self.sink.int(row.n_nationkey);
        self.sink.text(row.n_name.as_bytes());
        self.sink.int(row.n_regionkey);
        self.sink.text(row.n_comment.as_bytes());
        self.sink.end_row();
    }

    fn supplier(&mut self, row: &Supplier) {
        self.sink.begin_row();
        self.sink.int(row.s_suppkey);
        self.display(row.s_name);
        self.display(&row.s_address);
        self.sink.int(row.s_nationkey);
        self.display(&row.s_phone);
        self.money(row.s_acctbal);
        self.sink.text(row.s_comment.as_bytes());
        self.sink.end_row();
    }

    fn customer(&mut self, row: &Customer<'_>) {
        self.sink.begin_row();
        self.sink.int(row.c_custkey);
        self.display(row.c_name);
        self.display(&row.c_address);
        self.sink.int(row.c_nationkey);
        self.display(&row.c_phone);
        self.money(row.c_acctbal);
        self.sink.text(row.c_mktsegment.as_bytes());
        self.sink.text(row.c_comment.as_bytes());
        self.sink.end_row();
    }

    fn part(&mut self, row: &Part<'_>) {
        self.sink.begin_row();
        self.sink.int(row.p_partkey);
        self.display(&row.p_name);
        self.display(row.p_mfgr);
        self.display(row.p_brand);
        self.sink.text(row.p_type.as_bytes());
        self.sink.int(row.p_size.into());
        self.sink.text(row.p_container.as_bytes());
        self.money(row.p_retailprice);
        self.sink.text(row.p_comment.as_bytes());
        self.sink.end_row();
    }

    fn part_supplier(&mut self, row: &PartSupp<'_>, suppliers: &mut SuppliersOfPart) {
        self.sink.begin_row();
        self.sink.int(row.ps_partkey);
        self.sink.int(suppliers.take(row.ps_partkey, row.ps_suppkey));
        self.sink.int(row.ps_availqty.into());
        self.money(row.ps_supplycost);
        self.sink.text(row.ps_comment.as_bytes());
        self.sink.end_row();
    }

    fn order(&mut self, row: &Order<'_>, sequence: Sequence) {
        self.sink.begin_row();
        self.sink.int(row.o_orderkey + sequence.0);
        self.sink.int(row.o_custkey);
        self.sink.text(row.o_orderstatus.as_str().as_bytes());
        self.money(row.o_totalprice);
        self.date(row.o_orderdate);
        self.sink.text(row.o_orderpriority.as_bytes());
        self.display(row.o_clerk);
        self.sink.int(row.o_shippriority.into());
        self.sink.text(row.o_comment.as_bytes());
        self.sink.end_row();
    }

    fn line(&mut self, row: &LineItem<'_>, sequence: Sequence) {
        self.sink.begin_row();
        self.sink.int(row.l_orderkey + sequence.0);
        self.sink.int(row.l_partkey);
        self.sink.int(row.l_suppkey);
        self.sink.int(row.l_linenumber.into());
        self.sink.decimal(row.l_quantity * 100, CENTS);
        self.money(row.l_extendedprice);
        self.money(row.l_discount);
        self.money(row.l_tax);
        self.sink.text(row.l_returnflag.as_bytes());
        self.sink.text(row.l_linestatus.as_bytes());
        self.date(row.l_shipdate);
        self.date(row.l_commitdate);
        self.date(row.l_receiptdate);
        self.sink.text(row.l_shipinstruct.as_bytes());
        self.sink.text(row.l_shipmode.as_bytes());
        self.sink.text(row.l_comment.as_bytes());
        self.sink.end_row();
    }
}
