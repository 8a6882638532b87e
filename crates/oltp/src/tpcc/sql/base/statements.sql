-- The transactions as single statements, in the SQL that MariaDB, MySQL and mostly PostgreSQL understand.
--
-- No update is lost at any isolation level: what is written is either relative to the row or was computed from a row that
-- this transaction has locked. InnoDB's plain reads see the snapshot of the transaction's first read, its locking reads see
-- the newest row; a value that follows from a locked row is therefore read with FOR UPDATE as well.

-- name: new_order.warehouse
SELECT w_tax FROM warehouse WHERE w_id = $1

-- name: new_order.customer
SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3

-- name: new_order.district
SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = $1 AND d_id = $2 FOR UPDATE

-- name: new_order.district_next
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2

-- name: new_order.item
SELECT i_price, i_name, i_data FROM item WHERE i_id = $1

-- name: new_order.order
INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
VALUES ($1, $2, $3, $4, utc_timestamp(), NULL, $5, $6)

-- name: new_order.new_order
INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)

-- name: new_order.stock_read
SELECT s_quantity,
    CASE $1
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
    s_data
FROM stock
WHERE s_i_id = $2 AND s_w_id = $3
FOR UPDATE

-- name: new_order.stock_update
UPDATE stock
SET s_quantity = $1,
    s_ytd = s_ytd + CAST($2 AS SIGNED),
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + CAST($3 AS SIGNED)
WHERE s_i_id = $4 AND s_w_id = $5

-- name: new_order.order_line
INSERT INTO order_line
    (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8, $9)

-- name: payment.warehouse
SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = $1

-- name: payment.district
SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = $1 AND d_id = $2

-- name: payment.by_name
SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first

-- name: payment.customer
SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim,
    c_discount, c_balance
FROM customer
WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3
FOR UPDATE

-- name: payment.customer_data
SELECT c_data FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 FOR UPDATE

-- name: payment.customer_update
UPDATE customer
SET c_balance = c_balance - CAST($1 AS DECIMAL(12, 2)),
    c_ytd_payment = c_ytd_payment + CAST($2 AS DECIMAL(12, 2)),
    c_payment_cnt = c_payment_cnt + 1
WHERE c_w_id = $3 AND c_d_id = $4 AND c_id = $5

-- name: payment.customer_update_bad
UPDATE customer
SET c_balance = c_balance - CAST($1 AS DECIMAL(12, 2)),
    c_ytd_payment = c_ytd_payment + CAST($2 AS DECIMAL(12, 2)),
    c_payment_cnt = c_payment_cnt + 1,
    c_data = $3
WHERE c_w_id = $4 AND c_d_id = $5 AND c_id = $6

-- name: payment.district_update
UPDATE district SET d_ytd = d_ytd + CAST($1 AS DECIMAL(12, 2)) WHERE d_w_id = $2 AND d_id = $3

-- name: payment.warehouse_update
UPDATE warehouse SET w_ytd = w_ytd + CAST($1 AS DECIMAL(12, 2)) WHERE w_id = $2

-- name: payment.history
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
VALUES ($1, $2, $3, $4, $5, utc_timestamp(), $6, $7)

-- name: order_status.by_name
SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first

-- name: order_status.customer
SELECT c_first, c_middle, c_last, c_balance FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3

-- name: order_status.last_order
SELECT o_id, o_entry_d, o_carrier_id
FROM orders
WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3
ORDER BY o_id DESC
LIMIT 1

-- name: order_status.lines
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
FROM order_line
WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3

-- name: delivery.oldest
SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE

-- name: delivery.delete
DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3

-- name: delivery.customer_of
SELECT o_c_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 FOR UPDATE

-- name: delivery.order_update
UPDATE orders SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4

-- name: delivery.lines_update
UPDATE order_line SET ol_delivery_d = utc_timestamp() WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3

-- name: delivery.amount
SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 FOR UPDATE

-- name: delivery.customer_update
UPDATE customer
SET c_balance = c_balance + CAST($1 AS DECIMAL(12, 2)),
    c_delivery_cnt = c_delivery_cnt + 1
WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4

-- name: stock_level.district
SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2

-- name: stock_level.count
SELECT count(DISTINCT s_i_id)
FROM order_line
JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3 AND ol_o_id >= $4 - 20 AND s_quantity < $5

-- name: call.new_order
CALL assay_new_order($1, $2, $3, $4)

-- name: call.payment
CALL assay_payment($1, $2, $3, $4, $5, $6, $7)

-- name: call.order_status
CALL assay_order_status($1, $2, $3, $4)

-- name: call.delivery
CALL assay_delivery($1, $2)

-- name: call.stock_level
CALL assay_stock_level($1, $2, $3)
