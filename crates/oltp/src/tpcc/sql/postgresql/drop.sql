-- PostgreSQL's are functions.

-- name: assay_new_order
DROP FUNCTION IF EXISTS assay_new_order

-- name: assay_payment
DROP FUNCTION IF EXISTS assay_payment

-- name: assay_order_status
DROP FUNCTION IF EXISTS assay_order_status

-- name: assay_delivery
DROP FUNCTION IF EXISTS assay_delivery

-- name: assay_stock_level
DROP FUNCTION IF EXISTS assay_stock_level
