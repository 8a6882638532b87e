-- The statements do not differ from base, which is written for MariaDB and MySQL. Calls of procedures, within a transaction of the
-- caller's:

-- name: call.customer_position
CALL assay_customer_position($1, $2, $3)

-- name: call.trade_order
CALL assay_trade_order($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)

-- name: call.trade_result
CALL assay_trade_result($1, $2, $3, $4)

-- name: call.trades
CALL assay_trades($1, $2, $3, $4, $5, $6)

-- name: call.trade_holdings
CALL assay_trade_holdings($1, $2)

-- name: call.market_feed
CALL assay_market_feed($1, $2, $3, $4)
