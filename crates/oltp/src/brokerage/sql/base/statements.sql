-- The transactions as single statements, in the SQL that MariaDB, MySQL and PostgreSQL understand. Times come from the market's
-- clock, keys of trades from the generator. Parameters that are calculated with are cast: MariaDB would count with their texts as
-- with floating point.

-- name: isolate.read_committed
SET TRANSACTION ISOLATION LEVEL READ COMMITTED

-- name: isolate.repeatable_read
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ

-- name: isolate.serializable
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE

-- name: broker_volume.volumes
-- Forty names of brokers; where fewer are asked for, the last one is repeated.
SELECT b_name, sum(tr_qty * tr_bid_price) AS volume
FROM trade_request
JOIN broker ON b_id = tr_b_id
JOIN security ON s_symb = tr_s_symb
JOIN company ON co_id = s_co_id
JOIN industry ON in_id = co_in_id
JOIN sector ON sc_id = in_sc_id
WHERE sc_name = $1 AND b_name IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41)
GROUP BY b_name
ORDER BY volume DESC

-- name: customer_position.by_tax_id
SELECT c_id FROM customer WHERE c_tax_id = $1

-- name: customer_position.customer
SELECT c_st_id, c_l_name, c_f_name, c_m_name, c_gndr, c_tier, c_dob, c_ad_id, c_ctry_1, c_area_1, c_local_1, c_ext_1, c_ctry_2,
    c_area_2, c_local_2, c_ext_2, c_ctry_3, c_area_3, c_local_3, c_ext_3, c_email_1, c_email_2
FROM customer
WHERE c_id = $1

-- name: customer_position.accounts
SELECT ca_id, ca_bal, coalesce(sum(hs_qty * lt_price), 0) AS assets
FROM customer_account
LEFT JOIN holding_summary ON hs_ca_id = ca_id
LEFT JOIN last_trade ON lt_s_symb = hs_s_symb
WHERE ca_c_id = $1
GROUP BY ca_id, ca_bal
ORDER BY assets, ca_id
LIMIT 10

-- name: customer_position.history
SELECT t_id, t_s_symb, t_qty, st_name, th_dts
FROM (SELECT t_id AS id FROM trade WHERE t_ca_id = $1 ORDER BY t_dts DESC, t_id DESC LIMIT 10) AS latest
JOIN trade ON t_id = id
JOIN trade_history ON th_t_id = t_id
JOIN status_type ON st_id = th_st_id
ORDER BY th_dts DESC, t_id DESC
LIMIT 30

-- name: market_feed.last_trade
UPDATE last_trade SET lt_price = $1, lt_vol = lt_vol + CAST($2 AS DECIMAL(12, 0)), lt_dts = $3 WHERE lt_s_symb = $4

-- name: market_feed.requests
SELECT tr_t_id, tr_tt_id, tr_qty, tr_bid_price, tr_b_id
FROM trade_request
WHERE tr_s_symb = $1
    AND ((tr_tt_id = 'TSL' AND tr_bid_price >= $2) OR (tr_tt_id = 'TLS' AND tr_bid_price <= $3)
        OR (tr_tt_id = 'TLB' AND tr_bid_price >= $4))
ORDER BY tr_t_id
FOR UPDATE

-- name: market_feed.trade
UPDATE trade SET t_dts = $1, t_st_id = 'SBMT' WHERE t_id = $2

-- name: market_feed.request_delete
DELETE FROM trade_request WHERE tr_t_id = $1

-- name: market_watch.list
SELECT coalesce(sum(s_num_out * dm_close), 0), coalesce(sum(s_num_out * lt_price), 0)
FROM watch_list
JOIN watch_item ON wi_wl_id = wl_id
JOIN security ON s_symb = wi_s_symb
JOIN last_trade ON lt_s_symb = s_symb
JOIN daily_market ON dm_s_symb = s_symb AND dm_date = $1
WHERE wl_c_id = $2

-- name: market_watch.account
SELECT coalesce(sum(s_num_out * dm_close), 0), coalesce(sum(s_num_out * lt_price), 0)
FROM holding_summary
JOIN security ON s_symb = hs_s_symb
JOIN last_trade ON lt_s_symb = s_symb
JOIN daily_market ON dm_s_symb = s_symb AND dm_date = $1
WHERE hs_ca_id = $2

-- name: market_watch.industry
SELECT coalesce(sum(s_num_out * dm_close), 0), coalesce(sum(s_num_out * lt_price), 0)
FROM industry
JOIN company ON co_in_id = in_id
JOIN security ON s_co_id = co_id
JOIN last_trade ON lt_s_symb = s_symb
JOIN daily_market ON dm_s_symb = s_symb AND dm_date = $1
WHERE in_id = $2 AND co_id BETWEEN $3 AND $4

-- name: security_detail.security
SELECT s_name, co_id, co_name, co_sp_rate, co_ceo, co_desc, co_open_date, co_st_id, ca.ad_line1, ca.ad_line2, zca.zc_town, zca.zc_div,
    ca.ad_zc_code, ca.ad_ctry, s_num_out, s_start_date, s_exch_date, s_pe, s_52wk_high, s_52wk_high_date, s_52wk_low,
    s_52wk_low_date, s_dividend, s_yield, zea.zc_div, ea.ad_ctry, ea.ad_line1, ea.ad_line2, zea.zc_town, ea.ad_zc_code, ex_close,
    ex_desc, ex_name, ex_num_symb, ex_open
FROM security
JOIN company ON co_id = s_co_id
JOIN address ca ON ca.ad_id = co_ad_id
JOIN zip_code zca ON zca.zc_code = ca.ad_zc_code
JOIN exchange ON ex_id = s_ex_id
JOIN address ea ON ea.ad_id = ex_ad_id
JOIN zip_code zea ON zea.zc_code = ea.ad_zc_code
WHERE s_symb = $1

-- name: security_detail.competitors
SELECT co_name, in_name
FROM security
JOIN company_competitor ON cp_co_id = s_co_id
JOIN company ON co_id = cp_comp_co_id
JOIN industry ON in_id = cp_in_id
WHERE s_symb = $1
ORDER BY co_id
LIMIT 3

-- name: security_detail.quarters
SELECT fi_year, fi_qtr, fi_qtr_start_date, fi_revenue, fi_net_earn, fi_basic_eps, fi_dilut_eps, fi_margin, fi_inventory, fi_assets,
    fi_liability, fi_out_basic, fi_out_dilut
FROM security
JOIN financial ON fi_co_id = s_co_id
WHERE s_symb = $1
ORDER BY fi_year, fi_qtr
LIMIT 20

-- name: security_detail.days
SELECT dm_date, dm_close, dm_high, dm_low, dm_vol
FROM daily_market
WHERE dm_s_symb = $1 AND dm_date >= $2
ORDER BY dm_date
LIMIT 20

-- name: security_detail.last_trade
SELECT lt_price, lt_open_price, lt_vol FROM last_trade WHERE lt_s_symb = $1

-- name: security_detail.news
SELECT ni_headline, ni_summary, ni_dts, ni_source, ni_author
FROM security
JOIN news_xref ON nx_co_id = s_co_id
JOIN news_item ON ni_id = nx_ni_id
WHERE s_symb = $1
ORDER BY ni_id
LIMIT 2

-- name: security_detail.news_items
SELECT ni_item, ni_dts, ni_source, ni_author
FROM security
JOIN news_xref ON nx_co_id = s_co_id
JOIN news_item ON ni_id = nx_ni_id
WHERE s_symb = $1
ORDER BY ni_id
LIMIT 2

-- name: trades.read
-- Twenty keys; where fewer are asked for, the last one is repeated.
SELECT t_id, t_bid_price, t_exec_name, t_is_cash, tt_is_mrkt, t_trade_price, tt_name, t_s_symb, t_qty, t_dts, t_tt_id
FROM trade
JOIN trade_type ON tt_id = t_tt_id
WHERE t_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
ORDER BY t_id

-- name: trades.settlements
SELECT se_t_id, se_amt, se_cash_due_date, se_cash_type FROM settlement WHERE se_t_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) ORDER BY se_t_id

-- name: trades.cash
SELECT ct_t_id, ct_amt, ct_dts, ct_name FROM cash_transaction WHERE ct_t_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) ORDER BY ct_t_id

-- name: trades.history
SELECT th_t_id, th_dts, th_st_id FROM trade_history WHERE th_t_id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) ORDER BY th_t_id, th_dts, th_st_id

-- name: trades.of_account
SELECT t_id, t_is_cash FROM trade WHERE t_ca_id = $1 AND t_dts >= $2 AND t_dts <= $3 AND t_st_id = 'CMPT' ORDER BY t_dts, t_id LIMIT 20

-- name: trades.of_security
SELECT t_id, t_is_cash FROM trade WHERE t_s_symb = $1 AND t_dts >= $2 AND t_dts <= $3 AND t_st_id = 'CMPT' ORDER BY t_dts, t_id LIMIT 20

-- name: trade_lookup.first
SELECT t_id FROM trade WHERE t_ca_id = $1 AND t_dts >= $2 ORDER BY t_dts, t_id LIMIT 1

-- name: trade_lookup.holdings
SELECT hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty
FROM holding_history
WHERE hh_h_t_id IN (SELECT hh_h_t_id FROM holding_history WHERE hh_t_id = $1)
ORDER BY hh_h_t_id, hh_t_id
LIMIT 20

-- name: trade_update.executor
UPDATE trade
SET t_exec_name = CASE WHEN t_exec_name LIKE '% X %' THEN replace(t_exec_name, ' X ', ' ') ELSE replace(t_exec_name, ' ', ' X ') END
WHERE t_id = $1

-- name: trade_update.settlement
UPDATE settlement
SET se_cash_type = CASE se_cash_type
    WHEN 'Cash Account' THEN 'Cash'
    WHEN 'Cash' THEN 'Cash Account'
    WHEN 'Margin' THEN 'Margin Account'
    ELSE 'Margin' END
WHERE se_t_id = $1

-- name: trade_update.cash
UPDATE cash_transaction
SET ct_name = CASE WHEN ct_name LIKE '% shares of %' THEN replace(ct_name, ' shares of ', ' Shares of ')
    ELSE replace(ct_name, ' Shares of ', ' shares of ') END
WHERE ct_t_id = $1

-- name: trade_order.account
SELECT ca_name, ca_b_id, ca_c_id, ca_tax_st, c_f_name, c_l_name, c_tier, c_tax_id, b_name
FROM customer_account
JOIN customer ON c_id = ca_c_id
JOIN broker ON b_id = ca_b_id
WHERE ca_id = $1

-- name: trade_order.permission
SELECT ap_acl FROM account_permission WHERE ap_ca_id = $1 AND ap_tax_id = $2 AND ap_l_name = $3 AND ap_f_name = $4

-- name: trade_order.by_symbol
SELECT s_co_id, s_ex_id, s_name, s_symb, co_name FROM security JOIN company ON co_id = s_co_id WHERE s_symb = $1

-- name: trade_order.by_name
SELECT s_co_id, s_ex_id, s_name, s_symb, co_name FROM company JOIN security ON s_co_id = co_id WHERE co_name = $1 AND s_issue = $2

-- name: trade_order.last_trade
SELECT lt_price FROM last_trade WHERE lt_s_symb = $1

-- name: trade_order.type
SELECT tt_is_mrkt, tt_is_sell FROM trade_type WHERE tt_id = $1

-- name: trades.held
SELECT hs_qty FROM holding_summary WHERE hs_ca_id = $1 AND hs_s_symb = $2

-- name: trade_order.lots
SELECT h_qty, h_price FROM holding WHERE h_ca_id = $1 AND h_s_symb = $2 ORDER BY h_dts, h_t_id

-- name: trade_order.tax_rate
SELECT coalesce(sum(tx_rate), 0) FROM taxrate JOIN customer_taxrate ON cx_tx_id = tx_id WHERE cx_c_id = $1

-- name: trade_order.commission
SELECT cr_rate FROM commission_rate WHERE cr_c_tier = $1 AND cr_tt_id = $2 AND cr_ex_id = $3 AND cr_from_qty <= $4 AND cr_to_qty >= $5

-- name: trade_order.charge
SELECT ch_chrg FROM charge WHERE ch_c_tier = $1 AND ch_tt_id = $2

-- name: trade_order.assets
SELECT ca_bal, coalesce(sum(hs_qty * lt_price), 0)
FROM customer_account
LEFT JOIN holding_summary ON hs_ca_id = ca_id
LEFT JOIN last_trade ON lt_s_symb = hs_s_symb
WHERE ca_id = $1
GROUP BY ca_bal

-- name: trade_order.trade
INSERT INTO trade
    (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name, t_trade_price, t_chrg, t_comm, t_tax,
    t_lifo)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, $11, $12, 0, $13)

-- name: trades.step
INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES ($1, $2, $3)

-- name: trade_order.request
INSERT INTO trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id) VALUES ($1, $2, $3, $4, $5, $6)

-- name: trade_result.trade
SELECT t_ca_id, t_tt_id, t_s_symb, t_qty, t_chrg, t_lifo, t_is_cash, t_st_id
FROM trade
WHERE t_id = $1
FOR UPDATE

-- name: trade_result.account
-- The account's row is locked first: results of one account come one after the other.
SELECT ca_b_id, ca_c_id, ca_tax_st FROM customer_account WHERE ca_id = $1 FOR UPDATE

-- name: trade_result.customer
SELECT c_tier FROM customer WHERE c_id = $1

-- name: trade_result.security
SELECT s_ex_id, s_name FROM security WHERE s_symb = $1

-- name: trade_result.lots
SELECT h_t_id, h_qty, h_price FROM holding WHERE h_ca_id = $1 AND h_s_symb = $2 ORDER BY h_dts, h_t_id FOR UPDATE

-- name: trade_result.summary_insert
INSERT INTO holding_summary (hs_ca_id, hs_s_symb, hs_qty) VALUES ($1, $2, $3)

-- name: trade_result.summary_update
UPDATE holding_summary SET hs_qty = $1 WHERE hs_ca_id = $2 AND hs_s_symb = $3

-- name: trade_result.summary_delete
DELETE FROM holding_summary WHERE hs_ca_id = $1 AND hs_s_symb = $2

-- name: trade_result.lot_insert
INSERT INTO holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty) VALUES ($1, $2, $3, $4, $5, $6)

-- name: trade_result.lot_update
UPDATE holding SET h_qty = $1 WHERE h_t_id = $2

-- name: trade_result.lot_delete
DELETE FROM holding WHERE h_t_id = $1

-- name: trade_result.change
INSERT INTO holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty) VALUES ($1, $2, $3, $4)

-- name: trade_result.done
UPDATE trade SET t_comm = $1, t_dts = $2, t_st_id = 'CMPT', t_trade_price = $3, t_tax = $4 WHERE t_id = $5

-- name: trade_result.broker
UPDATE broker SET b_comm_total = b_comm_total + CAST($1 AS DECIMAL(12, 2)), b_num_trades = b_num_trades + 1 WHERE b_id = $2

-- name: trade_result.settlement
INSERT INTO settlement (se_t_id, se_cash_type, se_cash_due_date, se_amt) VALUES ($1, $2, $3, $4)

-- name: trade_result.balance
UPDATE customer_account SET ca_bal = ca_bal + CAST($1 AS DECIMAL(14, 2)) WHERE ca_id = $2

-- name: trade_result.cash
INSERT INTO cash_transaction (ct_t_id, ct_dts, ct_amt, ct_name) VALUES ($1, $2, $3, $4)

-- name: trade_status.trades
SELECT t_id, t_dts, st_name, tt_name, t_s_symb, t_qty, t_exec_name, t_chrg, s_name, ex_name
FROM trade
JOIN status_type ON st_id = t_st_id
JOIN trade_type ON tt_id = t_tt_id
JOIN security ON s_symb = t_s_symb
JOIN exchange ON ex_id = s_ex_id
WHERE t_ca_id = $1
ORDER BY t_dts DESC, t_id DESC
LIMIT 50

-- name: trade_status.names
SELECT c_l_name, c_f_name, b_name
FROM customer_account
JOIN customer ON c_id = ca_c_id
JOIN broker ON b_id = ca_b_id
WHERE ca_id = $1

-- name: maintenance.account_permission
UPDATE account_permission SET ap_acl = CASE ap_acl WHEN '0000' THEN '1111' WHEN '1111' THEN '0000' ELSE ap_acl END WHERE ap_ca_id = $1

-- name: maintenance.address
UPDATE address SET ad_line2 = CASE WHEN ad_line2 LIKE 'Apt.%' THEN replace(ad_line2, 'Apt.', 'Floor') ELSE replace(ad_line2, 'Floor', 'Apt.') END WHERE ad_id = $1

-- name: maintenance.company
UPDATE company SET co_sp_rate = CASE co_sp_rate WHEN 'ABA' THEN 'AAA' ELSE 'ABA' END WHERE co_id = $1

-- name: maintenance.customer
UPDATE customer SET c_email_2 = CASE WHEN c_email_2 LIKE '%@post.%' THEN replace(c_email_2, '@post.', '@mail.') ELSE replace(c_email_2, '@mail.', '@post.') END WHERE c_id = $1

-- name: maintenance.customer_taxrate
UPDATE customer_taxrate SET cx_tx_id = CASE cx_tx_id WHEN 'C100' THEN 'C101' WHEN 'C101' THEN 'C102' WHEN 'C102' THEN 'C100' ELSE cx_tx_id END WHERE cx_c_id = $1

-- name: maintenance.daily_market
UPDATE daily_market SET dm_vol = dm_vol + 1 WHERE dm_s_symb = $1 AND dm_date >= '2004-12-01'

-- name: maintenance.exchange
UPDATE exchange SET ex_open = 1800 - ex_open WHERE ex_id = $1

-- name: maintenance.financial
UPDATE financial SET fi_revenue = CASE WHEN fi_qtr_start_date = '2004-01-01' THEN fi_revenue + 1 ELSE fi_revenue END WHERE fi_co_id = $1

-- name: maintenance.news_item
UPDATE news_item SET ni_source = CASE ni_source WHEN 'Corrected' THEN 'Confirmed' ELSE 'Corrected' END WHERE ni_id IN (SELECT nx_ni_id FROM news_xref WHERE nx_co_id = $1)

-- name: maintenance.security
UPDATE security SET s_dividend = s_dividend + CASE WHEN s_dividend > 5 THEN -5 ELSE 5 END WHERE s_symb = $1

-- name: maintenance.taxrate
UPDATE taxrate SET tx_name = CASE WHEN tx_name LIKE 'The %' THEN replace(tx_name, 'The ', '') ELSE concat('The ', tx_name) END WHERE tx_id = $1

-- name: maintenance.watch_item
UPDATE watch_item
SET wi_s_symb = coalesce((SELECT symb FROM (SELECT min(s_symb) AS symb FROM security
    WHERE s_symb NOT IN (SELECT wi_s_symb FROM watch_item WHERE wi_wl_id = $1)) AS fresh), wi_s_symb)
WHERE wi_wl_id = $2 AND wi_s_symb = (SELECT symb FROM (SELECT max(wi_s_symb) AS symb FROM watch_item WHERE wi_wl_id = $3) AS oldest)
