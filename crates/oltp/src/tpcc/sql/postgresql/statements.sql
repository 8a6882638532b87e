-- UPDATE ... RETURNING saves a statement for the district and for each stock row. Every statement of a transaction at READ
-- COMMITTED has a snapshot of its own, so that only rows that follow from nothing locked need FOR UPDATE.

-- name: new_order.district
UPDATE district SET d_next_o_id = d_next_o_id + 1
WHERE d_w_id = $1 AND d_id = $2
RETURNING d_next_o_id - 1 AS o_id, d_tax

-- name: new_order.district_next

-- name: new_order.order
INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
VALUES ($1, $2, $3, $4, now() AT TIME ZONE 'UTC', NULL, $5, $6)

-- name: new_order.stock
-- The planner turns a VALUES list of one row into constants: a lookup by the key, no join.
UPDATE stock
SET s_quantity = s_quantity - line.quantity + CASE WHEN s_quantity >= line.quantity + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + line.quantity,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + line.remote
FROM (VALUES ($1::int, $2::int, $3::int, $4::int, $5::int)) AS line (quantity, remote, d_id, i_id, w_id)
WHERE s_i_id = line.i_id AND s_w_id = line.w_id
RETURNING
    CASE line.d_id
        WHEN 1 THEN s_dist_01
        WHEN 2 THEN s_dist_02
        WHEN 3 THEN s_dist_03
        WHEN 4 THEN s_dist_04
        WHEN 5 THEN s_dist_05
        WHEN 6 THEN s_dist_06
        WHEN 7 THEN s_dist_07
        WHEN 8 THEN s_dist_08
        WHEN 9 THEN s_dist_09
        WHEN 10 THEN s_dist_10
    END AS s_dist,
    s_quantity,
    s_data

-- name: new_order.stock_read

-- name: new_order.stock_update

-- name: payment.customer_data
SELECT c_data FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3

-- name: payment.history
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
VALUES ($1, $2, $3, $4, $5, now() AT TIME ZONE 'UTC', $6, $7)

-- name: delivery.customer_of
SELECT o_c_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3

-- name: delivery.lines_update
UPDATE order_line SET ol_delivery_d = now() AT TIME ZONE 'UTC' WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3

-- name: delivery.amount
SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3

-- name: call.new_order
-- Customer, then three arrays of equal length: items, supplying warehouses, quantities.
SELECT order_id, total_cents FROM assay_new_order($1, $2, $3, $4, $5, $6)

-- name: call.payment
SELECT customer_id, balance FROM assay_payment($1, $2, $3, $4, $5, $6, $7)

-- name: call.order_status
SELECT customer_id, order_id, line_count FROM assay_order_status($1, $2, $3, $4)

-- name: call.delivery
SELECT assay_delivery($1, $2)

-- name: call.stock_level
SELECT assay_stock_level($1, $2, $3)
