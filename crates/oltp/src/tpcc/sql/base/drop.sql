-- The bookkeeping goes last: what a drop that was cut short leaves behind is still known as Assay's own.

-- name: assay_new_order
DROP PROCEDURE IF EXISTS assay_new_order

-- name: assay_payment
DROP PROCEDURE IF EXISTS assay_payment

-- name: assay_order_status
DROP PROCEDURE IF EXISTS assay_order_status

-- name: assay_delivery
DROP PROCEDURE IF EXISTS assay_delivery

-- name: assay_stock_level
DROP PROCEDURE IF EXISTS assay_stock_level

-- name: order_line
DROP TABLE IF EXISTS order_line

-- name: new_order
DROP TABLE IF EXISTS new_order

-- name: orders
DROP TABLE IF EXISTS orders

-- name: history
DROP TABLE IF EXISTS history

-- name: stock
DROP TABLE IF EXISTS stock

-- name: customer
DROP TABLE IF EXISTS customer

-- name: item
DROP TABLE IF EXISTS item

-- name: district
DROP TABLE IF EXISTS district

-- name: warehouse
DROP TABLE IF EXISTS warehouse

-- name: assay_chunk
DROP TABLE IF EXISTS assay_chunk

-- name: assay_schema
DROP TABLE IF EXISTS assay_schema
