-- Foreign keys, made after all indexes, one after the other. A section has the name of its constraint, so that a load that was cut
-- short can leave out what the catalogue already has.

-- name: customer_account_ca_b_id_fkey
ALTER TABLE customer_account ADD CONSTRAINT customer_account_ca_b_id_fkey FOREIGN KEY (ca_b_id) REFERENCES broker (b_id)

-- name: customer_account_ca_c_id_fkey
ALTER TABLE customer_account ADD CONSTRAINT customer_account_ca_c_id_fkey FOREIGN KEY (ca_c_id) REFERENCES customer (c_id)

-- name: account_permission_ap_ca_id_fkey
ALTER TABLE account_permission ADD CONSTRAINT account_permission_ap_ca_id_fkey FOREIGN KEY (ap_ca_id) REFERENCES customer_account (ca_id)

-- name: customer_c_st_id_fkey
ALTER TABLE customer ADD CONSTRAINT customer_c_st_id_fkey FOREIGN KEY (c_st_id) REFERENCES status_type (st_id)

-- name: customer_c_ad_id_fkey
ALTER TABLE customer ADD CONSTRAINT customer_c_ad_id_fkey FOREIGN KEY (c_ad_id) REFERENCES address (ad_id)

-- name: customer_taxrate_cx_tx_id_fkey
ALTER TABLE customer_taxrate ADD CONSTRAINT customer_taxrate_cx_tx_id_fkey FOREIGN KEY (cx_tx_id) REFERENCES taxrate (tx_id)

-- name: customer_taxrate_cx_c_id_fkey
ALTER TABLE customer_taxrate ADD CONSTRAINT customer_taxrate_cx_c_id_fkey FOREIGN KEY (cx_c_id) REFERENCES customer (c_id)

-- name: holding_h_t_id_fkey
ALTER TABLE holding ADD CONSTRAINT holding_h_t_id_fkey FOREIGN KEY (h_t_id) REFERENCES trade (t_id)

-- name: holding_h_s_symb_fkey
ALTER TABLE holding ADD CONSTRAINT holding_h_s_symb_fkey FOREIGN KEY (h_ca_id, h_s_symb) REFERENCES holding_summary (hs_ca_id, hs_s_symb)

-- name: holding_history_hh_h_t_id_fkey
ALTER TABLE holding_history ADD CONSTRAINT holding_history_hh_h_t_id_fkey FOREIGN KEY (hh_h_t_id) REFERENCES trade (t_id)

-- name: holding_history_hh_t_id_fkey
ALTER TABLE holding_history ADD CONSTRAINT holding_history_hh_t_id_fkey FOREIGN KEY (hh_t_id) REFERENCES trade (t_id)

-- name: holding_summary_hs_ca_id_fkey
ALTER TABLE holding_summary ADD CONSTRAINT holding_summary_hs_ca_id_fkey FOREIGN KEY (hs_ca_id) REFERENCES customer_account (ca_id)

-- name: holding_summary_hs_s_symb_fkey
ALTER TABLE holding_summary ADD CONSTRAINT holding_summary_hs_s_symb_fkey FOREIGN KEY (hs_s_symb) REFERENCES security (s_symb)

-- name: watch_item_wi_wl_id_fkey
ALTER TABLE watch_item ADD CONSTRAINT watch_item_wi_wl_id_fkey FOREIGN KEY (wi_wl_id) REFERENCES watch_list (wl_id)

-- name: watch_item_wi_s_symb_fkey
ALTER TABLE watch_item ADD CONSTRAINT watch_item_wi_s_symb_fkey FOREIGN KEY (wi_s_symb) REFERENCES security (s_symb)

-- name: watch_list_wl_c_id_fkey
ALTER TABLE watch_list ADD CONSTRAINT watch_list_wl_c_id_fkey FOREIGN KEY (wl_c_id) REFERENCES customer (c_id)

-- name: broker_b_st_id_fkey
ALTER TABLE broker ADD CONSTRAINT broker_b_st_id_fkey FOREIGN KEY (b_st_id) REFERENCES status_type (st_id)

-- name: cash_transaction_ct_t_id_fkey
ALTER TABLE cash_transaction ADD CONSTRAINT cash_transaction_ct_t_id_fkey FOREIGN KEY (ct_t_id) REFERENCES trade (t_id)

-- name: charge_ch_tt_id_fkey
ALTER TABLE charge ADD CONSTRAINT charge_ch_tt_id_fkey FOREIGN KEY (ch_tt_id) REFERENCES trade_type (tt_id)

-- name: commission_rate_cr_tt_id_fkey
ALTER TABLE commission_rate ADD CONSTRAINT commission_rate_cr_tt_id_fkey FOREIGN KEY (cr_tt_id) REFERENCES trade_type (tt_id)

-- name: commission_rate_cr_ex_id_fkey
ALTER TABLE commission_rate ADD CONSTRAINT commission_rate_cr_ex_id_fkey FOREIGN KEY (cr_ex_id) REFERENCES exchange (ex_id)

-- name: settlement_se_t_id_fkey
ALTER TABLE settlement ADD CONSTRAINT settlement_se_t_id_fkey FOREIGN KEY (se_t_id) REFERENCES trade (t_id)

-- name: trade_t_st_id_fkey
ALTER TABLE trade ADD CONSTRAINT trade_t_st_id_fkey FOREIGN KEY (t_st_id) REFERENCES status_type (st_id)

-- name: trade_t_tt_id_fkey
ALTER TABLE trade ADD CONSTRAINT trade_t_tt_id_fkey FOREIGN KEY (t_tt_id) REFERENCES trade_type (tt_id)

-- name: trade_t_s_symb_fkey
ALTER TABLE trade ADD CONSTRAINT trade_t_s_symb_fkey FOREIGN KEY (t_s_symb) REFERENCES security (s_symb)

-- name: trade_t_ca_id_fkey
ALTER TABLE trade ADD CONSTRAINT trade_t_ca_id_fkey FOREIGN KEY (t_ca_id) REFERENCES customer_account (ca_id)

-- name: trade_history_th_t_id_fkey
ALTER TABLE trade_history ADD CONSTRAINT trade_history_th_t_id_fkey FOREIGN KEY (th_t_id) REFERENCES trade (t_id)

-- name: trade_history_th_st_id_fkey
ALTER TABLE trade_history ADD CONSTRAINT trade_history_th_st_id_fkey FOREIGN KEY (th_st_id) REFERENCES status_type (st_id)

-- name: trade_request_tr_t_id_fkey
ALTER TABLE trade_request ADD CONSTRAINT trade_request_tr_t_id_fkey FOREIGN KEY (tr_t_id) REFERENCES trade (t_id)

-- name: trade_request_tr_tt_id_fkey
ALTER TABLE trade_request ADD CONSTRAINT trade_request_tr_tt_id_fkey FOREIGN KEY (tr_tt_id) REFERENCES trade_type (tt_id)

-- name: trade_request_tr_s_symb_fkey
ALTER TABLE trade_request ADD CONSTRAINT trade_request_tr_s_symb_fkey FOREIGN KEY (tr_s_symb) REFERENCES security (s_symb)

-- name: trade_request_tr_b_id_fkey
ALTER TABLE trade_request ADD CONSTRAINT trade_request_tr_b_id_fkey FOREIGN KEY (tr_b_id) REFERENCES broker (b_id)

-- name: company_co_st_id_fkey
ALTER TABLE company ADD CONSTRAINT company_co_st_id_fkey FOREIGN KEY (co_st_id) REFERENCES status_type (st_id)

-- name: company_co_in_id_fkey
ALTER TABLE company ADD CONSTRAINT company_co_in_id_fkey FOREIGN KEY (co_in_id) REFERENCES industry (in_id)

-- name: company_co_ad_id_fkey
ALTER TABLE company ADD CONSTRAINT company_co_ad_id_fkey FOREIGN KEY (co_ad_id) REFERENCES address (ad_id)

-- name: company_competitor_cp_co_id_fkey
ALTER TABLE company_competitor ADD CONSTRAINT company_competitor_cp_co_id_fkey FOREIGN KEY (cp_co_id) REFERENCES company (co_id)

-- name: company_competitor_cp_comp_co_id_fkey
ALTER TABLE company_competitor ADD CONSTRAINT company_competitor_cp_comp_co_id_fkey FOREIGN KEY (cp_comp_co_id) REFERENCES company (co_id)

-- name: company_competitor_cp_in_id_fkey
ALTER TABLE company_competitor ADD CONSTRAINT company_competitor_cp_in_id_fkey FOREIGN KEY (cp_in_id) REFERENCES industry (in_id)

-- name: daily_market_dm_s_symb_fkey
ALTER TABLE daily_market ADD CONSTRAINT daily_market_dm_s_symb_fkey FOREIGN KEY (dm_s_symb) REFERENCES security (s_symb)

-- name: exchange_ex_ad_id_fkey
ALTER TABLE exchange ADD CONSTRAINT exchange_ex_ad_id_fkey FOREIGN KEY (ex_ad_id) REFERENCES address (ad_id)

-- name: financial_fi_co_id_fkey
ALTER TABLE financial ADD CONSTRAINT financial_fi_co_id_fkey FOREIGN KEY (fi_co_id) REFERENCES company (co_id)

-- name: industry_in_sc_id_fkey
ALTER TABLE industry ADD CONSTRAINT industry_in_sc_id_fkey FOREIGN KEY (in_sc_id) REFERENCES sector (sc_id)

-- name: last_trade_lt_s_symb_fkey
ALTER TABLE last_trade ADD CONSTRAINT last_trade_lt_s_symb_fkey FOREIGN KEY (lt_s_symb) REFERENCES security (s_symb)

-- name: news_xref_nx_ni_id_fkey
ALTER TABLE news_xref ADD CONSTRAINT news_xref_nx_ni_id_fkey FOREIGN KEY (nx_ni_id) REFERENCES news_item (ni_id)

-- name: news_xref_nx_co_id_fkey
ALTER TABLE news_xref ADD CONSTRAINT news_xref_nx_co_id_fkey FOREIGN KEY (nx_co_id) REFERENCES company (co_id)

-- name: security_s_st_id_fkey
ALTER TABLE security ADD CONSTRAINT security_s_st_id_fkey FOREIGN KEY (s_st_id) REFERENCES status_type (st_id)

-- name: security_s_ex_id_fkey
ALTER TABLE security ADD CONSTRAINT security_s_ex_id_fkey FOREIGN KEY (s_ex_id) REFERENCES exchange (ex_id)

-- name: security_s_co_id_fkey
ALTER TABLE security ADD CONSTRAINT security_s_co_id_fkey FOREIGN KEY (s_co_id) REFERENCES company (co_id)

-- name: address_ad_zc_code_fkey
ALTER TABLE address ADD CONSTRAINT address_ad_zc_code_fkey FOREIGN KEY (ad_zc_code) REFERENCES zip_code (zc_code)
