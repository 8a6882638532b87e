-- Tried on Babelfish, a TDS server; not verified on SQL Server. Clustered primary keys; texts compare by bytes, so that their order is the same in every database.
-- Truths are 0 and 1.

-- name: assay_schema
CREATE TABLE assay_schema (
    k varchar(32) NOT NULL,
    v varchar(255) NOT NULL,
    CONSTRAINT assay_schema_pkey PRIMARY KEY CLUSTERED (k)
)

-- name: assay_chunk
CREATE TABLE assay_chunk (
    kind varchar(16) NOT NULL,
    unit int NOT NULL,
    part int NOT NULL,
    row_count bigint NOT NULL,
    CONSTRAINT assay_chunk_pkey PRIMARY KEY CLUSTERED (kind, unit, part)
)

-- name: status_type
CREATE TABLE status_type (
    st_id char(4) COLLATE Latin1_General_BIN2 NOT NULL,
    st_name varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT status_type_pkey PRIMARY KEY CLUSTERED (st_id)
)

-- name: trade_type
CREATE TABLE trade_type (
    tt_id char(3) COLLATE Latin1_General_BIN2 NOT NULL,
    tt_name varchar(12) COLLATE Latin1_General_BIN2 NOT NULL,
    tt_is_sell smallint NOT NULL,
    tt_is_mrkt smallint NOT NULL,
    CONSTRAINT trade_type_pkey PRIMARY KEY CLUSTERED (tt_id)
)

-- name: sector
CREATE TABLE sector (
    sc_id char(2) COLLATE Latin1_General_BIN2 NOT NULL,
    sc_name varchar(30) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT sector_pkey PRIMARY KEY CLUSTERED (sc_id)
)

-- name: industry
CREATE TABLE industry (
    in_id char(2) COLLATE Latin1_General_BIN2 NOT NULL,
    in_name varchar(50) COLLATE Latin1_General_BIN2 NOT NULL,
    in_sc_id char(2) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT industry_pkey PRIMARY KEY CLUSTERED (in_id)
)

-- name: exchange
CREATE TABLE exchange (
    ex_id varchar(6) COLLATE Latin1_General_BIN2 NOT NULL,
    ex_name varchar(100) COLLATE Latin1_General_BIN2 NOT NULL,
    ex_num_symb int NOT NULL,
    ex_open int NOT NULL,
    ex_close int NOT NULL,
    ex_desc varchar(150) COLLATE Latin1_General_BIN2 NOT NULL,
    ex_ad_id bigint NOT NULL,
    CONSTRAINT exchange_pkey PRIMARY KEY CLUSTERED (ex_id)
)

-- name: charge
CREATE TABLE charge (
    ch_tt_id char(3) COLLATE Latin1_General_BIN2 NOT NULL,
    ch_c_tier smallint NOT NULL,
    ch_chrg decimal(10, 2) NOT NULL,
    CONSTRAINT charge_check_1 CHECK (ch_chrg > 0),
    CONSTRAINT charge_check_2 CHECK (ch_c_tier IN (1, 2, 3)),
    CONSTRAINT charge_pkey PRIMARY KEY CLUSTERED (ch_tt_id, ch_c_tier)
)

-- name: commission_rate
CREATE TABLE commission_rate (
    cr_c_tier smallint NOT NULL,
    cr_tt_id char(3) COLLATE Latin1_General_BIN2 NOT NULL,
    cr_ex_id varchar(6) COLLATE Latin1_General_BIN2 NOT NULL,
    cr_from_qty int NOT NULL,
    cr_to_qty int NOT NULL,
    cr_rate decimal(5, 2) NOT NULL,
    CONSTRAINT commission_rate_check_1 CHECK (cr_to_qty > cr_from_qty),
    CONSTRAINT commission_rate_check_2 CHECK (cr_rate >= 0),
    CONSTRAINT commission_rate_pkey PRIMARY KEY CLUSTERED (cr_c_tier, cr_tt_id, cr_ex_id, cr_from_qty)
)

-- name: taxrate
CREATE TABLE taxrate (
    tx_id varchar(4) COLLATE Latin1_General_BIN2 NOT NULL,
    tx_name varchar(50) COLLATE Latin1_General_BIN2 NOT NULL,
    tx_rate decimal(6, 5) NOT NULL,
    CONSTRAINT taxrate_check_1 CHECK (tx_rate >= 0),
    CONSTRAINT taxrate_pkey PRIMARY KEY CLUSTERED (tx_id)
)

-- name: zip_code
CREATE TABLE zip_code (
    zc_code varchar(12) COLLATE Latin1_General_BIN2 NOT NULL,
    zc_town varchar(80) COLLATE Latin1_General_BIN2 NOT NULL,
    zc_div varchar(80) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT zip_code_pkey PRIMARY KEY CLUSTERED (zc_code)
)

-- name: address
CREATE TABLE address (
    ad_id bigint NOT NULL,
    ad_line1 varchar(80) COLLATE Latin1_General_BIN2 NOT NULL,
    ad_line2 varchar(80) COLLATE Latin1_General_BIN2 NOT NULL,
    ad_zc_code varchar(12) COLLATE Latin1_General_BIN2 NOT NULL,
    ad_ctry varchar(80) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT address_pkey PRIMARY KEY CLUSTERED (ad_id)
)

-- name: company
CREATE TABLE company (
    co_id bigint NOT NULL,
    co_st_id char(4) COLLATE Latin1_General_BIN2 NOT NULL,
    co_name varchar(60) COLLATE Latin1_General_BIN2 NOT NULL,
    co_in_id char(2) COLLATE Latin1_General_BIN2 NOT NULL,
    co_sp_rate varchar(4) COLLATE Latin1_General_BIN2 NOT NULL,
    co_ceo varchar(46) COLLATE Latin1_General_BIN2 NOT NULL,
    co_ad_id bigint NOT NULL,
    co_desc varchar(150) COLLATE Latin1_General_BIN2 NOT NULL,
    co_open_date date NOT NULL,
    CONSTRAINT company_pkey PRIMARY KEY CLUSTERED (co_id)
)

-- name: company_competitor
CREATE TABLE company_competitor (
    cp_co_id bigint NOT NULL,
    cp_comp_co_id bigint NOT NULL,
    cp_in_id char(2) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT company_competitor_pkey PRIMARY KEY CLUSTERED (cp_co_id, cp_comp_co_id, cp_in_id)
)

-- name: financial
CREATE TABLE financial (
    fi_co_id bigint NOT NULL,
    fi_year int NOT NULL,
    fi_qtr smallint NOT NULL,
    fi_qtr_start_date date NOT NULL,
    fi_revenue decimal(15, 2) NOT NULL,
    fi_net_earn decimal(15, 2) NOT NULL,
    fi_basic_eps decimal(10, 2) NOT NULL,
    fi_dilut_eps decimal(10, 2) NOT NULL,
    fi_margin decimal(10, 2) NOT NULL,
    fi_inventory decimal(15, 2) NOT NULL,
    fi_assets decimal(15, 2) NOT NULL,
    fi_liability decimal(15, 2) NOT NULL,
    fi_out_basic bigint NOT NULL,
    fi_out_dilut bigint NOT NULL,
    CONSTRAINT financial_pkey PRIMARY KEY CLUSTERED (fi_co_id, fi_year, fi_qtr)
)

-- name: security
CREATE TABLE security (
    s_symb varchar(15) COLLATE Latin1_General_BIN2 NOT NULL,
    s_issue varchar(6) COLLATE Latin1_General_BIN2 NOT NULL,
    s_st_id char(4) COLLATE Latin1_General_BIN2 NOT NULL,
    s_name varchar(70) COLLATE Latin1_General_BIN2 NOT NULL,
    s_ex_id varchar(6) COLLATE Latin1_General_BIN2 NOT NULL,
    s_co_id bigint NOT NULL,
    s_num_out bigint NOT NULL,
    s_start_date date NOT NULL,
    s_exch_date date NOT NULL,
    s_pe decimal(10, 2) NOT NULL,
    s_52wk_high decimal(8, 2) NOT NULL,
    s_52wk_high_date date NOT NULL,
    s_52wk_low decimal(8, 2) NOT NULL,
    s_52wk_low_date date NOT NULL,
    s_dividend decimal(10, 2) NOT NULL,
    s_yield decimal(5, 2) NOT NULL,
    CONSTRAINT security_pkey PRIMARY KEY CLUSTERED (s_symb)
)

-- name: last_trade
CREATE TABLE last_trade (
    lt_s_symb varchar(15) COLLATE Latin1_General_BIN2 NOT NULL,
    lt_dts datetime2 NOT NULL,
    lt_price decimal(8, 2) NOT NULL,
    lt_open_price decimal(8, 2) NOT NULL,
    lt_vol bigint NOT NULL,
    CONSTRAINT last_trade_pkey PRIMARY KEY CLUSTERED (lt_s_symb)
)

-- name: news_item
CREATE TABLE news_item (
    ni_id bigint NOT NULL,
    ni_headline varchar(80) COLLATE Latin1_General_BIN2 NOT NULL,
    ni_summary varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
    ni_item varchar(max) NOT NULL,
    ni_dts datetime2 NOT NULL,
    ni_source varchar(30) COLLATE Latin1_General_BIN2 NOT NULL,
    ni_author varchar(30) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT news_item_pkey PRIMARY KEY CLUSTERED (ni_id)
)

-- name: news_xref
CREATE TABLE news_xref (
    nx_ni_id bigint NOT NULL,
    nx_co_id bigint NOT NULL,
    CONSTRAINT news_xref_pkey PRIMARY KEY CLUSTERED (nx_ni_id, nx_co_id)
)

-- name: daily_market
CREATE TABLE daily_market (
    dm_date date NOT NULL,
    dm_s_symb varchar(15) COLLATE Latin1_General_BIN2 NOT NULL,
    dm_close decimal(8, 2) NOT NULL,
    dm_high decimal(8, 2) NOT NULL,
    dm_low decimal(8, 2) NOT NULL,
    dm_vol bigint NOT NULL,
    CONSTRAINT daily_market_pkey PRIMARY KEY CLUSTERED (dm_date, dm_s_symb)
)

-- name: customer
CREATE TABLE customer (
    c_id bigint NOT NULL,
    c_tax_id varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    c_st_id char(4) COLLATE Latin1_General_BIN2 NOT NULL,
    c_l_name varchar(25) COLLATE Latin1_General_BIN2 NOT NULL,
    c_f_name varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    c_m_name char(1) COLLATE Latin1_General_BIN2 NOT NULL,
    c_gndr char(1) COLLATE Latin1_General_BIN2 NOT NULL,
    c_tier smallint NOT NULL,
    c_dob date NOT NULL,
    c_ad_id bigint NOT NULL,
    c_ctry_1 varchar(3) COLLATE Latin1_General_BIN2 NOT NULL,
    c_area_1 varchar(3) COLLATE Latin1_General_BIN2 NOT NULL,
    c_local_1 varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    c_ext_1 varchar(5) COLLATE Latin1_General_BIN2 NOT NULL,
    c_ctry_2 varchar(3) COLLATE Latin1_General_BIN2 NOT NULL,
    c_area_2 varchar(3) COLLATE Latin1_General_BIN2 NOT NULL,
    c_local_2 varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    c_ext_2 varchar(5) COLLATE Latin1_General_BIN2 NOT NULL,
    c_ctry_3 varchar(3) COLLATE Latin1_General_BIN2 NOT NULL,
    c_area_3 varchar(3) COLLATE Latin1_General_BIN2 NOT NULL,
    c_local_3 varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    c_ext_3 varchar(5) COLLATE Latin1_General_BIN2 NOT NULL,
    c_email_1 varchar(50) COLLATE Latin1_General_BIN2 NOT NULL,
    c_email_2 varchar(50) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT customer_check_1 CHECK (c_tier IN (1, 2, 3)),
    CONSTRAINT customer_pkey PRIMARY KEY CLUSTERED (c_id)
)

-- name: customer_taxrate
CREATE TABLE customer_taxrate (
    cx_tx_id varchar(4) COLLATE Latin1_General_BIN2 NOT NULL,
    cx_c_id bigint NOT NULL,
    CONSTRAINT customer_taxrate_pkey PRIMARY KEY CLUSTERED (cx_tx_id, cx_c_id)
)

-- name: customer_account
CREATE TABLE customer_account (
    ca_id bigint NOT NULL,
    ca_b_id bigint NOT NULL,
    ca_c_id bigint NOT NULL,
    ca_name varchar(50) COLLATE Latin1_General_BIN2 NOT NULL,
    ca_tax_st smallint NOT NULL,
    ca_bal decimal(14, 2) NOT NULL,
    CONSTRAINT customer_account_check_1 CHECK (ca_tax_st IN (0, 1, 2)),
    CONSTRAINT customer_account_pkey PRIMARY KEY CLUSTERED (ca_id)
)

-- name: account_permission
CREATE TABLE account_permission (
    ap_ca_id bigint NOT NULL,
    ap_acl char(4) COLLATE Latin1_General_BIN2 NOT NULL,
    ap_tax_id varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    ap_l_name varchar(25) COLLATE Latin1_General_BIN2 NOT NULL,
    ap_f_name varchar(20) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT account_permission_pkey PRIMARY KEY CLUSTERED (ap_ca_id, ap_tax_id)
)

-- name: watch_list
CREATE TABLE watch_list (
    wl_id bigint NOT NULL,
    wl_c_id bigint NOT NULL,
    CONSTRAINT watch_list_pkey PRIMARY KEY CLUSTERED (wl_id)
)

-- name: watch_item
CREATE TABLE watch_item (
    wi_wl_id bigint NOT NULL,
    wi_s_symb varchar(15) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT watch_item_pkey PRIMARY KEY CLUSTERED (wi_wl_id, wi_s_symb)
)

-- name: broker
CREATE TABLE broker (
    b_id bigint NOT NULL,
    b_st_id char(4) COLLATE Latin1_General_BIN2 NOT NULL,
    b_name varchar(49) COLLATE Latin1_General_BIN2 NOT NULL,
    b_num_trades int NOT NULL,
    b_comm_total decimal(16, 2) NOT NULL,
    CONSTRAINT broker_pkey PRIMARY KEY CLUSTERED (b_id)
)

-- name: trade
CREATE TABLE trade (
    t_id bigint NOT NULL,
    t_dts datetime2 NOT NULL,
    t_st_id char(4) COLLATE Latin1_General_BIN2 NOT NULL,
    t_tt_id char(3) COLLATE Latin1_General_BIN2 NOT NULL,
    t_is_cash smallint NOT NULL,
    t_s_symb varchar(15) COLLATE Latin1_General_BIN2 NOT NULL,
    t_qty int NOT NULL,
    t_bid_price decimal(8, 2) NOT NULL,
    t_ca_id bigint NOT NULL,
    t_exec_name varchar(49) COLLATE Latin1_General_BIN2 NOT NULL,
    t_trade_price decimal(8, 2),
    t_chrg decimal(10, 2) NOT NULL,
    t_comm decimal(10, 2) NOT NULL,
    t_tax decimal(10, 2) NOT NULL,
    t_lifo smallint NOT NULL,
    CONSTRAINT trade_check_1 CHECK (t_qty > 0),
    CONSTRAINT trade_check_2 CHECK (t_bid_price > 0),
    CONSTRAINT trade_check_3 CHECK (t_chrg >= 0),
    CONSTRAINT trade_check_4 CHECK (t_comm >= 0),
    CONSTRAINT trade_check_5 CHECK (t_tax >= 0),
    CONSTRAINT trade_pkey PRIMARY KEY CLUSTERED (t_id)
)

-- name: trade_history
CREATE TABLE trade_history (
    th_t_id bigint NOT NULL,
    th_dts datetime2 NOT NULL,
    th_st_id char(4) COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT trade_history_pkey PRIMARY KEY CLUSTERED (th_t_id, th_st_id)
)

-- name: settlement
CREATE TABLE settlement (
    se_t_id bigint NOT NULL,
    se_cash_type varchar(40) COLLATE Latin1_General_BIN2 NOT NULL,
    se_cash_due_date date NOT NULL,
    se_amt decimal(12, 2) NOT NULL,
    CONSTRAINT settlement_pkey PRIMARY KEY CLUSTERED (se_t_id)
)

-- name: cash_transaction
CREATE TABLE cash_transaction (
    ct_t_id bigint NOT NULL,
    ct_dts datetime2 NOT NULL,
    ct_amt decimal(12, 2) NOT NULL,
    ct_name varchar(100) COLLATE Latin1_General_BIN2,
    CONSTRAINT cash_transaction_pkey PRIMARY KEY CLUSTERED (ct_t_id)
)

-- name: holding_history
CREATE TABLE holding_history (
    hh_h_t_id bigint NOT NULL,
    hh_t_id bigint NOT NULL,
    hh_before_qty int NOT NULL,
    hh_after_qty int NOT NULL,
    CONSTRAINT holding_history_pkey PRIMARY KEY CLUSTERED (hh_t_id, hh_h_t_id)
)

-- name: holding
CREATE TABLE holding (
    h_t_id bigint NOT NULL,
    h_ca_id bigint NOT NULL,
    h_s_symb varchar(15) COLLATE Latin1_General_BIN2 NOT NULL,
    h_dts datetime2 NOT NULL,
    h_price decimal(8, 2) NOT NULL,
    h_qty int NOT NULL,
    CONSTRAINT holding_check_1 CHECK (h_price > 0),
    CONSTRAINT holding_pkey PRIMARY KEY CLUSTERED (h_t_id)
)

-- name: holding_summary
CREATE TABLE holding_summary (
    hs_ca_id bigint NOT NULL,
    hs_s_symb varchar(15) COLLATE Latin1_General_BIN2 NOT NULL,
    hs_qty int NOT NULL,
    CONSTRAINT holding_summary_pkey PRIMARY KEY CLUSTERED (hs_ca_id, hs_s_symb)
)

-- name: trade_request
CREATE TABLE trade_request (
    tr_t_id bigint NOT NULL,
    tr_tt_id char(3) COLLATE Latin1_General_BIN2 NOT NULL,
    tr_s_symb varchar(15) COLLATE Latin1_General_BIN2 NOT NULL,
    tr_qty int NOT NULL,
    tr_bid_price decimal(8, 2) NOT NULL,
    tr_b_id bigint NOT NULL,
    CONSTRAINT trade_request_check_1 CHECK (tr_qty > 0),
    CONSTRAINT trade_request_check_2 CHECK (tr_bid_price > 0),
    CONSTRAINT trade_request_pkey PRIMARY KEY CLUSTERED (tr_t_id)
)
