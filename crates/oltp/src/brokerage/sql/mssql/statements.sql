-- Tried on Babelfish, a TDS server; not verified on SQL Server. What differs from base: TOP for LIMIT, and locks of reads that a change
-- follows. Calls of procedures run within a transaction of the caller's.

-- name: customer_position.accounts
SELECT TOP (10) ca_id, ca_bal, coalesce(sum(hs_qty * lt_price), 0) AS assets
FROM customer_account
LEFT JOIN holding_summary ON hs_ca_id = ca_id
LEFT JOIN last_trade ON lt_s_symb = hs_s_symb
WHERE ca_c_id = $1
GROUP BY ca_id, ca_bal
ORDER BY assets, ca_id

-- name: customer_position.history
SELECT TOP (30) t_id, t_s_symb, t_qty, st_name, th_dts
FROM (SELECT TOP (10) t_id AS id FROM trade WHERE t_ca_id = $1 ORDER BY t_dts DESC, t_id DESC) AS latest
JOIN trade ON t_id = id
JOIN trade_history ON th_t_id = t_id
JOIN status_type ON st_id = th_st_id
ORDER BY th_dts DESC, t_id DESC

-- name: market_feed.requests
SELECT tr_t_id, tr_tt_id, tr_qty, tr_bid_price, tr_b_id
FROM trade_request WITH (UPDLOCK)
WHERE tr_s_symb = $1
    AND ((tr_tt_id = 'TSL' AND tr_bid_price >= $2) OR (tr_tt_id = 'TLS' AND tr_bid_price <= $3)
        OR (tr_tt_id = 'TLB' AND tr_bid_price >= $4))
ORDER BY tr_t_id

-- name: security_detail.competitors
SELECT TOP (3) co_name, in_name
FROM security
JOIN company_competitor ON cp_co_id = s_co_id
JOIN company ON co_id = cp_comp_co_id
JOIN industry ON in_id = cp_in_id
WHERE s_symb = $1
ORDER BY co_id

-- name: security_detail.quarters
SELECT TOP (20) fi_year, fi_qtr, fi_qtr_start_date, fi_revenue, fi_net_earn, fi_basic_eps, fi_dilut_eps, fi_margin, fi_inventory, fi_assets,
    fi_liability, fi_out_basic, fi_out_dilut
FROM security
JOIN financial ON fi_co_id = s_co_id
WHERE s_symb = $1
ORDER BY fi_year, fi_qtr

-- name: security_detail.days
SELECT TOP (20) dm_date, dm_close, dm_high, dm_low, dm_vol
FROM daily_market
WHERE dm_s_symb = $1 AND dm_date >= $2
ORDER BY dm_date

-- name: security_detail.news
SELECT TOP (2) ni_headline, ni_summary, ni_dts, ni_source, ni_author
FROM security
JOIN news_xref ON nx_co_id = s_co_id
JOIN news_item ON ni_id = nx_ni_id
WHERE s_symb = $1
ORDER BY ni_id

-- name: security_detail.news_items
SELECT TOP (2) ni_item, ni_dts, ni_source, ni_author
FROM security
JOIN news_xref ON nx_co_id = s_co_id
JOIN news_item ON ni_id = nx_ni_id
WHERE s_symb = $1
ORDER BY ni_id

-- name: trades.of_account
SELECT TOP (20) t_id, t_is_cash FROM trade WHERE t_ca_id = $1 AND t_dts >= $2 AND t_dts <= $3 AND t_st_id = 'CMPT' ORDER BY t_dts, t_id

-- name: trades.of_security
SELECT TOP (20) t_id, t_is_cash FROM trade WHERE t_s_symb = $1 AND t_dts >= $2 AND t_dts <= $3 AND t_st_id = 'CMPT' ORDER BY t_dts, t_id

-- name: trade_lookup.first
SELECT TOP (1) t_id FROM trade WHERE t_ca_id = $1 AND t_dts >= $2 ORDER BY t_dts, t_id

-- name: trade_lookup.holdings
SELECT TOP (20) hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty
FROM holding_history
WHERE hh_h_t_id IN (SELECT hh_h_t_id FROM holding_history WHERE hh_t_id = $1)
ORDER BY hh_h_t_id, hh_t_id

-- name: trade_result.trade
SELECT t_ca_id, t_tt_id, t_s_symb, t_qty, t_chrg, t_lifo, t_is_cash, t_st_id
FROM trade WITH (UPDLOCK)
WHERE t_id = $1

-- name: trade_result.account
SELECT ca_b_id, ca_c_id, ca_tax_st FROM customer_account WITH (UPDLOCK) WHERE ca_id = $1

-- name: trade_result.lots
SELECT h_t_id, h_qty, h_price FROM holding WITH (UPDLOCK) WHERE h_ca_id = $1 AND h_s_symb = $2 ORDER BY h_dts, h_t_id

-- name: trade_status.trades
SELECT TOP (50) t_id, t_dts, st_name, tt_name, t_s_symb, t_qty, t_exec_name, t_chrg, s_name, ex_name
FROM trade
JOIN status_type ON st_id = t_st_id
JOIN trade_type ON tt_id = t_tt_id
JOIN security ON s_symb = t_s_symb
JOIN exchange ON ex_id = s_ex_id
WHERE t_ca_id = $1
ORDER BY t_dts DESC, t_id DESC

-- name: call.customer_position
EXECUTE assay_customer_position $1, $2, $3

-- name: call.trade_order
EXECUTE assay_trade_order $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17

-- name: call.trade_result
EXECUTE assay_trade_result $1, $2, $3, $4

-- name: call.trades
EXECUTE assay_trades $1, $2, $3, $4, $5, $6

-- name: call.trade_holdings
EXECUTE assay_trade_holdings $1, $2

-- name: call.market_feed
EXECUTE assay_market_feed $1, $2, $3, $4
