//! The tables in the order in which they are loaded, and how many rows they have (clause 4.2.5).

/// Lines of an order, 1 to 7, on average.
const LINES_MEAN: u64 = 4;
const SUPPLIERS_OF_PART: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TpchTable {
    Region,
    Nation,
    Supplier,
    Customer,
    Part,
    PartSupp,
    Orders,
    LineItem,
}

impl TpchTable {
    pub(super) const ALL: [Self; 8] = [
        Self::Region,
        Self::Nation,
        Self::Supplier,
        Self::Customer,
        Self::Part,
        Self::PartSupp,
        Self::Orders,
        Self::LineItem,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nation => "nation",
            Self::Supplier => "supplier",
            Self::Customer => "customer",
            Self::Part => "part",
            Self::PartSupp => "partsupp",
            Self::Orders => "orders",
            Self::LineItem => "lineitem",
        }
    }

    /// Columns in the order in which rows have them.
    pub(super) fn columns(self) -> &'static str {
        match self {
            Self::Region => "r_regionkey, r_name, r_comment",
            Self::Nation => "n_nationkey, n_name, n_regionkey, n_comment",
            Self::Supplier => "s_suppkey, s_name, s_address, s_nationkey, s_phone, s_acctbal, s_comment",
            Self::Customer => "c_custkey, c_name, c_address, c_nationkey, c_phone, c_acctbal, c_mktsegment, c_comment",
            Self::Part => "p_partkey, p_name, p_mfgr, p_brand, p_type, p_size, p_container, p_retailprice, p_comment",
            Self::PartSupp => "ps_partkey, ps_suppkey, ps_availqty, ps_supplycost, ps_comment",
            Self::Orders => {
                "o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, o_shippriority, \
                 o_comment"
            }
            Self::LineItem => {
                "l_orderkey, l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, \
                 l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment"
            }
        }
    }

    /// Keys by which its rows are made, of so many thousandths of the scale: a part has several suppliers, an order several lines.
    pub(super) fn key_count(self, thousandths: u32) -> u64 {
        let of_thousandth = match self {
            Self::Region => return 5,
            Self::Nation => return 25,
            Self::Supplier => 10,
            Self::Customer => 150,
            Self::Part | Self::PartSupp => 200,
            Self::Orders | Self::LineItem => 1500,
        };
        of_thousandth * u64::from(thousandths)
    }

    /// Rows of `keys` keys; of lines the expected number.
    pub(super) fn rows_of(self, keys: u64) -> u64 {
        match self {
            Self::PartSupp => keys * SUPPLIERS_OF_PART,
            Self::LineItem => keys * LINES_MEAN,
            _ => keys,
        }
    }

    /// Rows of a database; of lines as many as are to be expected.
    pub(super) fn row_count(self, thousandths: u32) -> u64 {
        self.rows_of(self.key_count(thousandths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_rows_of_the_specification() {
        let counts = TpchTable::ALL.map(|table| table.row_count(1000));
        assert_eq!(counts, [5, 25, 10_000, 150_000, 200_000, 800_000, 1_500_000, 6_000_000]);
    }
}
