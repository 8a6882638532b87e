-- Referential integrity, each reference one row as in conditions.sql: how many rows refer, how many to nothing, one of these.

-- name: customer_account_ca_b_id_fkey
-- title: customer_account.ca_b_id is a row of broker
SELECT count(*), coalesce(sum(CASE WHEN b.b_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.b_id IS NULL THEN concat('ca_b_id ', a.ca_b_id) END)
FROM customer_account AS a LEFT JOIN broker AS b ON b.b_id = a.ca_b_id

-- name: customer_account_ca_c_id_fkey
-- title: customer_account.ca_c_id is a row of customer
SELECT count(*), coalesce(sum(CASE WHEN b.c_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.c_id IS NULL THEN concat('ca_c_id ', a.ca_c_id) END)
FROM customer_account AS a LEFT JOIN customer AS b ON b.c_id = a.ca_c_id

-- name: account_permission_ap_ca_id_fkey
-- title: account_permission.ap_ca_id is a row of customer_account
SELECT count(*), coalesce(sum(CASE WHEN b.ca_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.ca_id IS NULL THEN concat('ap_ca_id ', a.ap_ca_id) END)
FROM account_permission AS a LEFT JOIN customer_account AS b ON b.ca_id = a.ap_ca_id

-- name: customer_c_st_id_fkey
-- title: customer.c_st_id is a row of status_type
SELECT count(*), coalesce(sum(CASE WHEN b.st_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.st_id IS NULL THEN concat('c_st_id ', a.c_st_id) END)
FROM customer AS a LEFT JOIN status_type AS b ON b.st_id = a.c_st_id

-- name: customer_c_ad_id_fkey
-- title: customer.c_ad_id is a row of address
SELECT count(*), coalesce(sum(CASE WHEN b.ad_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.ad_id IS NULL THEN concat('c_ad_id ', a.c_ad_id) END)
FROM customer AS a LEFT JOIN address AS b ON b.ad_id = a.c_ad_id

-- name: customer_taxrate_cx_tx_id_fkey
-- title: customer_taxrate.cx_tx_id is a row of taxrate
SELECT count(*), coalesce(sum(CASE WHEN b.tx_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.tx_id IS NULL THEN concat('cx_tx_id ', a.cx_tx_id) END)
FROM customer_taxrate AS a LEFT JOIN taxrate AS b ON b.tx_id = a.cx_tx_id

-- name: customer_taxrate_cx_c_id_fkey
-- title: customer_taxrate.cx_c_id is a row of customer
SELECT count(*), coalesce(sum(CASE WHEN b.c_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.c_id IS NULL THEN concat('cx_c_id ', a.cx_c_id) END)
FROM customer_taxrate AS a LEFT JOIN customer AS b ON b.c_id = a.cx_c_id

-- name: holding_h_t_id_fkey
-- title: holding.h_t_id is a row of trade
SELECT count(*), coalesce(sum(CASE WHEN b.t_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.t_id IS NULL THEN concat('h_t_id ', a.h_t_id) END)
FROM holding AS a LEFT JOIN trade AS b ON b.t_id = a.h_t_id

-- name: holding_h_s_symb_fkey
-- title: holding.h_ca_id, h_s_symb is a row of holding_summary
SELECT count(*), coalesce(sum(CASE WHEN b.hs_ca_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.hs_ca_id IS NULL THEN concat('h_ca_id, h_s_symb ', a.h_ca_id, ' ', a.h_s_symb) END)
FROM holding AS a LEFT JOIN holding_summary AS b ON b.hs_ca_id = a.h_ca_id AND b.hs_s_symb = a.h_s_symb

-- name: holding_history_hh_h_t_id_fkey
-- title: holding_history.hh_h_t_id is a row of trade
SELECT count(*), coalesce(sum(CASE WHEN b.t_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.t_id IS NULL THEN concat('hh_h_t_id ', a.hh_h_t_id) END)
FROM holding_history AS a LEFT JOIN trade AS b ON b.t_id = a.hh_h_t_id

-- name: holding_history_hh_t_id_fkey
-- title: holding_history.hh_t_id is a row of trade
SELECT count(*), coalesce(sum(CASE WHEN b.t_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.t_id IS NULL THEN concat('hh_t_id ', a.hh_t_id) END)
FROM holding_history AS a LEFT JOIN trade AS b ON b.t_id = a.hh_t_id

-- name: holding_summary_hs_ca_id_fkey
-- title: holding_summary.hs_ca_id is a row of customer_account
SELECT count(*), coalesce(sum(CASE WHEN b.ca_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.ca_id IS NULL THEN concat('hs_ca_id ', a.hs_ca_id) END)
FROM holding_summary AS a LEFT JOIN customer_account AS b ON b.ca_id = a.hs_ca_id

-- name: holding_summary_hs_s_symb_fkey
-- title: holding_summary.hs_s_symb is a row of security
SELECT count(*), coalesce(sum(CASE WHEN b.s_symb IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.s_symb IS NULL THEN concat('hs_s_symb ', a.hs_s_symb) END)
FROM holding_summary AS a LEFT JOIN security AS b ON b.s_symb = a.hs_s_symb

-- name: watch_item_wi_wl_id_fkey
-- title: watch_item.wi_wl_id is a row of watch_list
SELECT count(*), coalesce(sum(CASE WHEN b.wl_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.wl_id IS NULL THEN concat('wi_wl_id ', a.wi_wl_id) END)
FROM watch_item AS a LEFT JOIN watch_list AS b ON b.wl_id = a.wi_wl_id

-- name: watch_item_wi_s_symb_fkey
-- title: watch_item.wi_s_symb is a row of security
SELECT count(*), coalesce(sum(CASE WHEN b.s_symb IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.s_symb IS NULL THEN concat('wi_s_symb ', a.wi_s_symb) END)
FROM watch_item AS a LEFT JOIN security AS b ON b.s_symb = a.wi_s_symb

-- name: watch_list_wl_c_id_fkey
-- title: watch_list.wl_c_id is a row of customer
SELECT count(*), coalesce(sum(CASE WHEN b.c_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.c_id IS NULL THEN concat('wl_c_id ', a.wl_c_id) END)
FROM watch_list AS a LEFT JOIN customer AS b ON b.c_id = a.wl_c_id

-- name: broker_b_st_id_fkey
-- title: broker.b_st_id is a row of status_type
SELECT count(*), coalesce(sum(CASE WHEN b.st_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.st_id IS NULL THEN concat('b_st_id ', a.b_st_id) END)
FROM broker AS a LEFT JOIN status_type AS b ON b.st_id = a.b_st_id

-- name: cash_transaction_ct_t_id_fkey
-- title: cash_transaction.ct_t_id is a row of trade
SELECT count(*), coalesce(sum(CASE WHEN b.t_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.t_id IS NULL THEN concat('ct_t_id ', a.ct_t_id) END)
FROM cash_transaction AS a LEFT JOIN trade AS b ON b.t_id = a.ct_t_id

-- name: charge_ch_tt_id_fkey
-- title: charge.ch_tt_id is a row of trade_type
SELECT count(*), coalesce(sum(CASE WHEN b.tt_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.tt_id IS NULL THEN concat('ch_tt_id ', a.ch_tt_id) END)
FROM charge AS a LEFT JOIN trade_type AS b ON b.tt_id = a.ch_tt_id

-- name: commission_rate_cr_tt_id_fkey
-- title: commission_rate.cr_tt_id is a row of trade_type
SELECT count(*), coalesce(sum(CASE WHEN b.tt_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.tt_id IS NULL THEN concat('cr_tt_id ', a.cr_tt_id) END)
FROM commission_rate AS a LEFT JOIN trade_type AS b ON b.tt_id = a.cr_tt_id

-- name: commission_rate_cr_ex_id_fkey
-- title: commission_rate.cr_ex_id is a row of exchange
SELECT count(*), coalesce(sum(CASE WHEN b.ex_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.ex_id IS NULL THEN concat('cr_ex_id ', a.cr_ex_id) END)
FROM commission_rate AS a LEFT JOIN exchange AS b ON b.ex_id = a.cr_ex_id

-- name: settlement_se_t_id_fkey
-- title: settlement.se_t_id is a row of trade
SELECT count(*), coalesce(sum(CASE WHEN b.t_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.t_id IS NULL THEN concat('se_t_id ', a.se_t_id) END)
FROM settlement AS a LEFT JOIN trade AS b ON b.t_id = a.se_t_id

-- name: trade_t_st_id_fkey
-- title: trade.t_st_id is a row of status_type
SELECT count(*), coalesce(sum(CASE WHEN b.st_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.st_id IS NULL THEN concat('t_st_id ', a.t_st_id) END)
FROM trade AS a LEFT JOIN status_type AS b ON b.st_id = a.t_st_id

-- name: trade_t_tt_id_fkey
-- title: trade.t_tt_id is a row of trade_type
SELECT count(*), coalesce(sum(CASE WHEN b.tt_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.tt_id IS NULL THEN concat('t_tt_id ', a.t_tt_id) END)
FROM trade AS a LEFT JOIN trade_type AS b ON b.tt_id = a.t_tt_id

-- name: trade_t_s_symb_fkey
-- title: trade.t_s_symb is a row of security
SELECT count(*), coalesce(sum(CASE WHEN b.s_symb IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.s_symb IS NULL THEN concat('t_s_symb ', a.t_s_symb) END)
FROM trade AS a LEFT JOIN security AS b ON b.s_symb = a.t_s_symb

-- name: trade_t_ca_id_fkey
-- title: trade.t_ca_id is a row of customer_account
SELECT count(*), coalesce(sum(CASE WHEN b.ca_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.ca_id IS NULL THEN concat('t_ca_id ', a.t_ca_id) END)
FROM trade AS a LEFT JOIN customer_account AS b ON b.ca_id = a.t_ca_id

-- name: trade_history_th_t_id_fkey
-- title: trade_history.th_t_id is a row of trade
SELECT count(*), coalesce(sum(CASE WHEN b.t_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.t_id IS NULL THEN concat('th_t_id ', a.th_t_id) END)
FROM trade_history AS a LEFT JOIN trade AS b ON b.t_id = a.th_t_id

-- name: trade_history_th_st_id_fkey
-- title: trade_history.th_st_id is a row of status_type
SELECT count(*), coalesce(sum(CASE WHEN b.st_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.st_id IS NULL THEN concat('th_st_id ', a.th_st_id) END)
FROM trade_history AS a LEFT JOIN status_type AS b ON b.st_id = a.th_st_id

-- name: trade_request_tr_t_id_fkey
-- title: trade_request.tr_t_id is a row of trade
SELECT count(*), coalesce(sum(CASE WHEN b.t_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.t_id IS NULL THEN concat('tr_t_id ', a.tr_t_id) END)
FROM trade_request AS a LEFT JOIN trade AS b ON b.t_id = a.tr_t_id

-- name: trade_request_tr_tt_id_fkey
-- title: trade_request.tr_tt_id is a row of trade_type
SELECT count(*), coalesce(sum(CASE WHEN b.tt_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.tt_id IS NULL THEN concat('tr_tt_id ', a.tr_tt_id) END)
FROM trade_request AS a LEFT JOIN trade_type AS b ON b.tt_id = a.tr_tt_id

-- name: trade_request_tr_s_symb_fkey
-- title: trade_request.tr_s_symb is a row of security
SELECT count(*), coalesce(sum(CASE WHEN b.s_symb IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.s_symb IS NULL THEN concat('tr_s_symb ', a.tr_s_symb) END)
FROM trade_request AS a LEFT JOIN security AS b ON b.s_symb = a.tr_s_symb

-- name: trade_request_tr_b_id_fkey
-- title: trade_request.tr_b_id is a row of broker
SELECT count(*), coalesce(sum(CASE WHEN b.b_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.b_id IS NULL THEN concat('tr_b_id ', a.tr_b_id) END)
FROM trade_request AS a LEFT JOIN broker AS b ON b.b_id = a.tr_b_id

-- name: company_co_st_id_fkey
-- title: company.co_st_id is a row of status_type
SELECT count(*), coalesce(sum(CASE WHEN b.st_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.st_id IS NULL THEN concat('co_st_id ', a.co_st_id) END)
FROM company AS a LEFT JOIN status_type AS b ON b.st_id = a.co_st_id

-- name: company_co_in_id_fkey
-- title: company.co_in_id is a row of industry
SELECT count(*), coalesce(sum(CASE WHEN b.in_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.in_id IS NULL THEN concat('co_in_id ', a.co_in_id) END)
FROM company AS a LEFT JOIN industry AS b ON b.in_id = a.co_in_id

-- name: company_co_ad_id_fkey
-- title: company.co_ad_id is a row of address
SELECT count(*), coalesce(sum(CASE WHEN b.ad_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.ad_id IS NULL THEN concat('co_ad_id ', a.co_ad_id) END)
FROM company AS a LEFT JOIN address AS b ON b.ad_id = a.co_ad_id

-- name: company_competitor_cp_co_id_fkey
-- title: company_competitor.cp_co_id is a row of company
SELECT count(*), coalesce(sum(CASE WHEN b.co_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.co_id IS NULL THEN concat('cp_co_id ', a.cp_co_id) END)
FROM company_competitor AS a LEFT JOIN company AS b ON b.co_id = a.cp_co_id

-- name: company_competitor_cp_comp_co_id_fkey
-- title: company_competitor.cp_comp_co_id is a row of company
SELECT count(*), coalesce(sum(CASE WHEN b.co_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.co_id IS NULL THEN concat('cp_comp_co_id ', a.cp_comp_co_id) END)
FROM company_competitor AS a LEFT JOIN company AS b ON b.co_id = a.cp_comp_co_id

-- name: company_competitor_cp_in_id_fkey
-- title: company_competitor.cp_in_id is a row of industry
SELECT count(*), coalesce(sum(CASE WHEN b.in_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.in_id IS NULL THEN concat('cp_in_id ', a.cp_in_id) END)
FROM company_competitor AS a LEFT JOIN industry AS b ON b.in_id = a.cp_in_id

-- name: daily_market_dm_s_symb_fkey
-- title: daily_market.dm_s_symb is a row of security
SELECT count(*), coalesce(sum(CASE WHEN b.s_symb IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.s_symb IS NULL THEN concat('dm_s_symb ', a.dm_s_symb) END)
FROM daily_market AS a LEFT JOIN security AS b ON b.s_symb = a.dm_s_symb

-- name: exchange_ex_ad_id_fkey
-- title: exchange.ex_ad_id is a row of address
SELECT count(*), coalesce(sum(CASE WHEN b.ad_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.ad_id IS NULL THEN concat('ex_ad_id ', a.ex_ad_id) END)
FROM exchange AS a LEFT JOIN address AS b ON b.ad_id = a.ex_ad_id

-- name: financial_fi_co_id_fkey
-- title: financial.fi_co_id is a row of company
SELECT count(*), coalesce(sum(CASE WHEN b.co_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.co_id IS NULL THEN concat('fi_co_id ', a.fi_co_id) END)
FROM financial AS a LEFT JOIN company AS b ON b.co_id = a.fi_co_id

-- name: industry_in_sc_id_fkey
-- title: industry.in_sc_id is a row of sector
SELECT count(*), coalesce(sum(CASE WHEN b.sc_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.sc_id IS NULL THEN concat('in_sc_id ', a.in_sc_id) END)
FROM industry AS a LEFT JOIN sector AS b ON b.sc_id = a.in_sc_id

-- name: last_trade_lt_s_symb_fkey
-- title: last_trade.lt_s_symb is a row of security
SELECT count(*), coalesce(sum(CASE WHEN b.s_symb IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.s_symb IS NULL THEN concat('lt_s_symb ', a.lt_s_symb) END)
FROM last_trade AS a LEFT JOIN security AS b ON b.s_symb = a.lt_s_symb

-- name: news_xref_nx_ni_id_fkey
-- title: news_xref.nx_ni_id is a row of news_item
SELECT count(*), coalesce(sum(CASE WHEN b.ni_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.ni_id IS NULL THEN concat('nx_ni_id ', a.nx_ni_id) END)
FROM news_xref AS a LEFT JOIN news_item AS b ON b.ni_id = a.nx_ni_id

-- name: news_xref_nx_co_id_fkey
-- title: news_xref.nx_co_id is a row of company
SELECT count(*), coalesce(sum(CASE WHEN b.co_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.co_id IS NULL THEN concat('nx_co_id ', a.nx_co_id) END)
FROM news_xref AS a LEFT JOIN company AS b ON b.co_id = a.nx_co_id

-- name: security_s_st_id_fkey
-- title: security.s_st_id is a row of status_type
SELECT count(*), coalesce(sum(CASE WHEN b.st_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.st_id IS NULL THEN concat('s_st_id ', a.s_st_id) END)
FROM security AS a LEFT JOIN status_type AS b ON b.st_id = a.s_st_id

-- name: security_s_ex_id_fkey
-- title: security.s_ex_id is a row of exchange
SELECT count(*), coalesce(sum(CASE WHEN b.ex_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.ex_id IS NULL THEN concat('s_ex_id ', a.s_ex_id) END)
FROM security AS a LEFT JOIN exchange AS b ON b.ex_id = a.s_ex_id

-- name: security_s_co_id_fkey
-- title: security.s_co_id is a row of company
SELECT count(*), coalesce(sum(CASE WHEN b.co_id IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.co_id IS NULL THEN concat('s_co_id ', a.s_co_id) END)
FROM security AS a LEFT JOIN company AS b ON b.co_id = a.s_co_id

-- name: address_ad_zc_code_fkey
-- title: address.ad_zc_code is a row of zip_code
SELECT count(*), coalesce(sum(CASE WHEN b.zc_code IS NULL THEN 1 ELSE 0 END), 0),
    min(CASE WHEN b.zc_code IS NULL THEN concat('ad_zc_code ', a.ad_zc_code) END)
FROM address AS a LEFT JOIN zip_code AS b ON b.zc_code = a.ad_zc_code
