use super::{
    fees::TAX_RATES,
    ids::{EXCHANGES, Size, trades_of_group},
    plan::Shape,
};

pub(crate) const INDUSTRIES: u32 = 102;
pub(crate) const SECTORS: u32 = 12;
pub(crate) const ZIP_CODES: u32 = 14_741;
/// Days of the daily figures of securities: five years of 261.
pub(crate) const MARKET_DAYS: u32 = 1305;
pub(crate) const QUARTERS: u32 = 20;
pub(crate) const COMPETITORS: u32 = 3;

macro_rules! tables {
    ($($variant:ident = $name:literal, $columns:literal;)*) => {
        /// The tables in the order in which they are loaded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum BrokerageTable { $($variant),* }

        impl BrokerageTable {
            pub(crate) const ALL: [Self; 33] = [$(Self::$variant),*];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Columns in the order in which rows have them.
            pub(crate) fn columns(self) -> &'static str {
                match self { $(Self::$variant => $columns),* }
            }
        }
    };
}

tables! {
    StatusType = "status_type", "st_id, st_name";
    TradeType = "trade_type", "tt_id, tt_name, tt_is_sell, tt_is_mrkt";
    Sector = "sector", "sc_id, sc_name";
    Industry = "industry", "in_id, in_name, in_sc_id";
    Exchange = "exchange", "ex_id, ex_name, ex_num_symb, ex_open, ex_close, ex_desc, ex_ad_id";
    Charge = "charge", "ch_tt_id, ch_c_tier, ch_chrg";
    CommissionRate = "commission_rate", "cr_c_tier, cr_tt_id, cr_ex_id, cr_from_qty, cr_to_qty, cr_rate";
    Taxrate = "taxrate", "tx_id, tx_name, tx_rate";
    ZipCode = "zip_code", "zc_code, zc_town, zc_div";
    Address = "address", "ad_id, ad_line1, ad_line2, ad_zc_code, ad_ctry";
    Company = "company", "co_id, co_st_id, co_name, co_in_id, co_sp_rate, co_ceo, co_ad_id, co_desc, co_open_date";
    CompanyCompetitor = "company_competitor", "cp_co_id, cp_comp_co_id, cp_in_id";
    Financial = "financial", "fi_co_id, fi_year, fi_qtr, fi_qtr_start_date, fi_revenue, fi_net_earn, fi_basic_eps, fi_dilut_eps, fi_margin, fi_inventory, fi_assets, fi_liability, fi_out_basic, fi_out_dilut";
    Security = "security", "s_symb, s_issue, s_st_id, s_name, s_ex_id, s_co_id, s_num_out, s_start_date, s_exch_date, s_pe, s_52wk_high, s_52wk_high_date, s_52wk_low, s_52wk_low_date, s_dividend, s_yield";
    LastTrade = "last_trade", "lt_s_symb, lt_dts, lt_price, lt_open_price, lt_vol";
    NewsItem = "news_item", "ni_id, ni_headline, ni_summary, ni_item, ni_dts, ni_source, ni_author";
    NewsXref = "news_xref", "nx_ni_id, nx_co_id";
    DailyMarket = "daily_market", "dm_date, dm_s_symb, dm_close, dm_high, dm_low, dm_vol";
    Customer = "customer", "c_id, c_tax_id, c_st_id, c_l_name, c_f_name, c_m_name, c_gndr, c_tier, c_dob, c_ad_id, c_ctry_1, c_area_1, c_local_1, c_ext_1, c_ctry_2, c_area_2, c_local_2, c_ext_2, c_ctry_3, c_area_3, c_local_3, c_ext_3, c_email_1, c_email_2";
    CustomerTaxrate = "customer_taxrate", "cx_tx_id, cx_c_id";
    CustomerAccount = "customer_account", "ca_id, ca_b_id, ca_c_id, ca_name, ca_tax_st, ca_bal";
    AccountPermission = "account_permission", "ap_ca_id, ap_acl, ap_tax_id, ap_l_name, ap_f_name";
    WatchList = "watch_list", "wl_id, wl_c_id";
    WatchItem = "watch_item", "wi_wl_id, wi_s_symb";
    Broker = "broker", "b_id, b_st_id, b_name, b_num_trades, b_comm_total";
    Trade = "trade", "t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name, t_trade_price, t_chrg, t_comm, t_tax, t_lifo";
    TradeHistory = "trade_history", "th_t_id, th_dts, th_st_id";
    Settlement = "settlement", "se_t_id, se_cash_type, se_cash_due_date, se_amt";
    CashTransaction = "cash_transaction", "ct_t_id, ct_dts, ct_amt, ct_name";
    HoldingHistory = "holding_history", "hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty";
    Holding = "holding", "h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty";
    HoldingSummary = "holding_summary", "hs_ca_id, hs_s_symb, hs_qty";
    TradeRequest = "trade_request", "tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id";
}

impl BrokerageTable {
    /// Rows of a database; of drawn rows the expected number.
    pub(crate) fn row_count(self, size: Size, shape: Shape) -> u64 {
        let customers = u64::from(size.customers);
        let accounts = customers * 5;
        let companies = u64::from(size.companies());
        let securities = u64::from(size.securities());
        let trades = u64::from(trades_of_group(shape.days)) * u64::from(size.groups());
        let of_trades = |hundredths: u64| trades * hundredths / 100;
        match self {
            Self::StatusType | Self::TradeType => 5,
            Self::Sector => SECTORS.into(),
            Self::Industry => INDUSTRIES.into(),
            Self::Exchange => EXCHANGES.into(),
            Self::Charge => 15,
            Self::CommissionRate => 240,
            Self::Taxrate => TAX_RATES.into(),
            Self::ZipCode => ZIP_CODES.into(),
            Self::Address => customers + companies + u64::from(EXCHANGES),
            Self::Company => companies,
            Self::CompanyCompetitor => companies * u64::from(COMPETITORS),
            Self::Financial => companies * u64::from(QUARTERS),
            Self::Security | Self::LastTrade => securities,
            Self::NewsItem | Self::NewsXref => companies * 2,
            Self::DailyMarket => securities * u64::from(MARKET_DAYS),
            Self::Customer | Self::WatchList => customers,
            Self::CustomerTaxrate => customers * 2,
            Self::CustomerAccount => accounts,
            Self::AccountPermission => accounts * 142 / 100,
            // 50 to 150 of each customer, each security once.
            Self::WatchItem => customers * (50..=150_u64).map(|wanted| wanted.min(securities)).sum::<u64>() / 101,
            Self::Broker => u64::from(size.blocks()),
            Self::Trade | Self::Settlement => trades,
            Self::TradeHistory => of_trades(240),
            Self::CashTransaction => of_trades(92),
            Self::HoldingHistory => of_trades(134),
            // An account trades ten securities. Half of the trades are sales, so that the number of lots grows with the root of the
            // number of trades; measured with 1 to 100 days.
            Self::Holding => (accounts * 10 * trades).isqrt() * 95 / 100,
            Self::HoldingSummary => {
                let positions = (accounts * 10) as f64;
                (positions * (1.0 - (-0.75 * trades as f64 / positions).exp())) as u64
            }
            Self::TradeRequest => 0,
        }
    }
}
