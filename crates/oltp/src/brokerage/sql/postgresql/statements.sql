-- The statements do not differ from base. Calls of functions, within a transaction of the caller's:

-- name: call.customer_position
SELECT assay_customer_position($1, $2, $3)

-- name: call.trade_order
SELECT assay_trade_order($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)

-- name: call.trade_result
SELECT assay_trade_result($1, $2, $3, $4)

-- name: call.trades
SELECT assay_trades($1, $2, $3, $4, $5, $6)

-- name: call.trade_holdings
SELECT assay_trade_holdings($1, $2)

-- name: call.market_feed
SELECT trade_id, quantity, broker_id FROM assay_market_feed($1, $2, $3, $4)
