-- Primary keys, built in bulk.

-- name: status_type_pkey
ALTER TABLE status_type ADD CONSTRAINT status_type_pkey PRIMARY KEY (st_id)

-- name: trade_type_pkey
ALTER TABLE trade_type ADD CONSTRAINT trade_type_pkey PRIMARY KEY (tt_id)

-- name: sector_pkey
ALTER TABLE sector ADD CONSTRAINT sector_pkey PRIMARY KEY (sc_id)

-- name: industry_pkey
ALTER TABLE industry ADD CONSTRAINT industry_pkey PRIMARY KEY (in_id)

-- name: exchange_pkey
ALTER TABLE exchange ADD CONSTRAINT exchange_pkey PRIMARY KEY (ex_id)

-- name: charge_pkey
ALTER TABLE charge ADD CONSTRAINT charge_pkey PRIMARY KEY (ch_tt_id, ch_c_tier)

-- name: commission_rate_pkey
ALTER TABLE commission_rate ADD CONSTRAINT commission_rate_pkey PRIMARY KEY (cr_c_tier, cr_tt_id, cr_ex_id, cr_from_qty)

-- name: taxrate_pkey
ALTER TABLE taxrate ADD CONSTRAINT taxrate_pkey PRIMARY KEY (tx_id)

-- name: zip_code_pkey
ALTER TABLE zip_code ADD CONSTRAINT zip_code_pkey PRIMARY KEY (zc_code)

-- name: address_pkey
ALTER TABLE address ADD CONSTRAINT address_pkey PRIMARY KEY (ad_id)

-- name: company_pkey
ALTER TABLE company ADD CONSTRAINT company_pkey PRIMARY KEY (co_id)

-- name: company_competitor_pkey
ALTER TABLE company_competitor ADD CONSTRAINT company_competitor_pkey PRIMARY KEY (cp_co_id, cp_comp_co_id, cp_in_id)

-- name: financial_pkey
ALTER TABLE financial ADD CONSTRAINT financial_pkey PRIMARY KEY (fi_co_id, fi_year, fi_qtr)

-- name: security_pkey
ALTER TABLE security ADD CONSTRAINT security_pkey PRIMARY KEY (s_symb)

-- name: last_trade_pkey
ALTER TABLE last_trade ADD CONSTRAINT last_trade_pkey PRIMARY KEY (lt_s_symb)

-- name: news_item_pkey
ALTER TABLE news_item ADD CONSTRAINT news_item_pkey PRIMARY KEY (ni_id)

-- name: news_xref_pkey
ALTER TABLE news_xref ADD CONSTRAINT news_xref_pkey PRIMARY KEY (nx_ni_id, nx_co_id)

-- name: daily_market_pkey
ALTER TABLE daily_market ADD CONSTRAINT daily_market_pkey PRIMARY KEY (dm_date, dm_s_symb)

-- name: customer_pkey
ALTER TABLE customer ADD CONSTRAINT customer_pkey PRIMARY KEY (c_id)

-- name: customer_taxrate_pkey
ALTER TABLE customer_taxrate ADD CONSTRAINT customer_taxrate_pkey PRIMARY KEY (cx_tx_id, cx_c_id)

-- name: customer_account_pkey
ALTER TABLE customer_account ADD CONSTRAINT customer_account_pkey PRIMARY KEY (ca_id)

-- name: account_permission_pkey
ALTER TABLE account_permission ADD CONSTRAINT account_permission_pkey PRIMARY KEY (ap_ca_id, ap_tax_id)

-- name: watch_list_pkey
ALTER TABLE watch_list ADD CONSTRAINT watch_list_pkey PRIMARY KEY (wl_id)

-- name: watch_item_pkey
ALTER TABLE watch_item ADD CONSTRAINT watch_item_pkey PRIMARY KEY (wi_wl_id, wi_s_symb)

-- name: broker_pkey
ALTER TABLE broker ADD CONSTRAINT broker_pkey PRIMARY KEY (b_id)

-- name: trade_pkey
ALTER TABLE trade ADD CONSTRAINT trade_pkey PRIMARY KEY (t_id)

-- name: trade_history_pkey
ALTER TABLE trade_history ADD CONSTRAINT trade_history_pkey PRIMARY KEY (th_t_id, th_st_id)

-- name: settlement_pkey
ALTER TABLE settlement ADD CONSTRAINT settlement_pkey PRIMARY KEY (se_t_id)

-- name: cash_transaction_pkey
ALTER TABLE cash_transaction ADD CONSTRAINT cash_transaction_pkey PRIMARY KEY (ct_t_id)

-- name: holding_history_pkey
ALTER TABLE holding_history ADD CONSTRAINT holding_history_pkey PRIMARY KEY (hh_t_id, hh_h_t_id)

-- name: holding_pkey
ALTER TABLE holding ADD CONSTRAINT holding_pkey PRIMARY KEY (h_t_id)

-- name: holding_summary_pkey
ALTER TABLE holding_summary ADD CONSTRAINT holding_summary_pkey PRIMARY KEY (hs_ca_id, hs_s_symb)

-- name: trade_request_pkey
ALTER TABLE trade_request ADD CONSTRAINT trade_request_pkey PRIMARY KEY (tr_t_id)
