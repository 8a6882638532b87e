-- What is built after the rows are there. A section has the name of its index, so that a load that was cut short can leave out
-- what the catalogue already has. Sections do not depend on each other.

-- name: account_customer
CREATE INDEX account_customer ON customer_account (ca_c_id)

-- name: account_broker
CREATE INDEX account_broker ON customer_account (ca_b_id)

-- name: customer_tax_id
CREATE INDEX customer_tax_id ON customer (c_tax_id)

-- name: company_name
CREATE INDEX company_name ON company (co_name)

-- name: company_industry
CREATE INDEX company_industry ON company (co_in_id)

-- name: industry_sector
CREATE INDEX industry_sector ON industry (in_sc_id)

-- name: daily_market_security
CREATE INDEX daily_market_security ON daily_market (dm_s_symb, dm_date)

-- name: holding_account
CREATE INDEX holding_account ON holding (h_ca_id, h_s_symb, h_dts)

-- name: holding_history_lot
CREATE INDEX holding_history_lot ON holding_history (hh_h_t_id)

-- name: security_company
CREATE INDEX security_company ON security (s_co_id, s_issue)

-- name: trade_account
CREATE INDEX trade_account ON trade (t_ca_id, t_dts)

-- name: trade_security
CREATE INDEX trade_security ON trade (t_s_symb, t_dts)

-- name: trade_request_broker
CREATE INDEX trade_request_broker ON trade_request (tr_b_id, tr_s_symb)

-- name: trade_request_security
CREATE INDEX trade_request_security ON trade_request (tr_s_symb, tr_tt_id)

-- name: watch_list_customer
CREATE INDEX watch_list_customer ON watch_list (wl_c_id)

-- name: news_xref_company
CREATE INDEX news_xref_company ON news_xref (nx_co_id)

-- name: broker_name
CREATE INDEX broker_name ON broker (b_name)

-- name: sector_name
CREATE INDEX sector_name ON sector (sc_name)

-- name: taxrate_customer
CREATE INDEX taxrate_customer ON customer_taxrate (cx_c_id)
