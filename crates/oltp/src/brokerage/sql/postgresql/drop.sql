-- Functions, where base drops procedures.

-- name: assay_customer_position
DROP FUNCTION IF EXISTS assay_customer_position

-- name: assay_trade_order
DROP FUNCTION IF EXISTS assay_trade_order

-- name: assay_trade_result
DROP FUNCTION IF EXISTS assay_trade_result

-- name: assay_trades
DROP FUNCTION IF EXISTS assay_trades

-- name: assay_trade_holdings
DROP FUNCTION IF EXISTS assay_trade_holdings

-- name: assay_market_feed
DROP FUNCTION IF EXISTS assay_market_feed
