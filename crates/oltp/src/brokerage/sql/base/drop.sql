-- Tables go before those that they refer to. The bookkeeping goes last: what a drop that was cut short leaves behind is still
-- known as Assay's own.

-- name: assay_customer_position
DROP PROCEDURE IF EXISTS assay_customer_position

-- name: assay_trade_order
DROP PROCEDURE IF EXISTS assay_trade_order

-- name: assay_trade_result
DROP PROCEDURE IF EXISTS assay_trade_result

-- name: assay_trades
DROP PROCEDURE IF EXISTS assay_trades

-- name: assay_trade_holdings
DROP PROCEDURE IF EXISTS assay_trade_holdings

-- name: assay_market_feed
DROP PROCEDURE IF EXISTS assay_market_feed

-- name: charge
DROP TABLE IF EXISTS charge

-- name: commission_rate
DROP TABLE IF EXISTS commission_rate

-- name: company_competitor
DROP TABLE IF EXISTS company_competitor

-- name: financial
DROP TABLE IF EXISTS financial

-- name: last_trade
DROP TABLE IF EXISTS last_trade

-- name: news_xref
DROP TABLE IF EXISTS news_xref

-- name: daily_market
DROP TABLE IF EXISTS daily_market

-- name: customer_taxrate
DROP TABLE IF EXISTS customer_taxrate

-- name: account_permission
DROP TABLE IF EXISTS account_permission

-- name: watch_item
DROP TABLE IF EXISTS watch_item

-- name: trade_history
DROP TABLE IF EXISTS trade_history

-- name: settlement
DROP TABLE IF EXISTS settlement

-- name: cash_transaction
DROP TABLE IF EXISTS cash_transaction

-- name: holding_history
DROP TABLE IF EXISTS holding_history

-- name: holding
DROP TABLE IF EXISTS holding

-- name: trade_request
DROP TABLE IF EXISTS trade_request

-- name: taxrate
DROP TABLE IF EXISTS taxrate

-- name: news_item
DROP TABLE IF EXISTS news_item

-- name: watch_list
DROP TABLE IF EXISTS watch_list

-- name: trade
DROP TABLE IF EXISTS trade

-- name: holding_summary
DROP TABLE IF EXISTS holding_summary

-- name: trade_type
DROP TABLE IF EXISTS trade_type

-- name: security
DROP TABLE IF EXISTS security

-- name: customer_account
DROP TABLE IF EXISTS customer_account

-- name: exchange
DROP TABLE IF EXISTS exchange

-- name: company
DROP TABLE IF EXISTS company

-- name: customer
DROP TABLE IF EXISTS customer

-- name: broker
DROP TABLE IF EXISTS broker

-- name: status_type
DROP TABLE IF EXISTS status_type

-- name: industry
DROP TABLE IF EXISTS industry

-- name: address
DROP TABLE IF EXISTS address

-- name: sector
DROP TABLE IF EXISTS sector

-- name: zip_code
DROP TABLE IF EXISTS zip_code

-- name: assay_chunk
DROP TABLE IF EXISTS assay_chunk

-- name: assay_schema
DROP TABLE IF EXISTS assay_schema
