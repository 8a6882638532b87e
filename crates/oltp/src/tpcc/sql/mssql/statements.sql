-- Not verified on SQL Server.
--
-- Whole numbers arrive as int, all other parameters as nvarchar; beside decimals and varchar these are cast, since a comparison
-- would otherwise turn the column into nvarchar and pass over its index. Where a later write depends on a row that was read, the
-- read takes an update lock, which holds under row versioning as well.

-- name: new_order.district
UPDATE district SET d_next_o_id = d_next_o_id + 1
OUTPUT inserted.d_next_o_id - 1 AS o_id, inserted.d_tax
WHERE d_w_id = $1 AND d_id = $2

-- name: new_order.district_next

-- name: new_order.order
INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
VALUES ($1, $2, $3, $4, sysutcdatetime(), NULL, $5, $6)

-- name: new_order.stock
-- Not all servers that speak T-SQL have CASE in OUTPUT, or a table twice in an UPDATE.
UPDATE stock
SET s_quantity = s_quantity - line.quantity + CASE WHEN s_quantity >= line.quantity + 10 THEN 0 ELSE 91 END,
    s_ytd = s_ytd + line.quantity,
    s_order_cnt = s_order_cnt + 1,
    s_remote_cnt = s_remote_cnt + line.remote
OUTPUT
    substring(concat(inserted.s_dist_01, inserted.s_dist_02, inserted.s_dist_03, inserted.s_dist_04, inserted.s_dist_05,
        inserted.s_dist_06, inserted.s_dist_07, inserted.s_dist_08, inserted.s_dist_09, inserted.s_dist_10),
        24 * line.d_id - 23, 24) AS s_dist,
    inserted.s_quantity,
    inserted.s_data
FROM (VALUES (CAST($1 AS int), CAST($2 AS int), CAST($3 AS int), CAST($4 AS int), CAST($5 AS int)))
    AS line (quantity, remote, d_id, i_id, w_id)
WHERE s_i_id = line.i_id AND s_w_id = line.w_id

-- name: new_order.stock_read

-- name: new_order.stock_update

-- name: new_order.order_line
INSERT INTO order_line
    (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, CAST($8 AS decimal(12, 2)), $9)

-- name: payment.by_name
SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = CAST($3 AS varchar(16)) ORDER BY c_first

-- name: payment.customer
SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim,
    c_discount, c_balance
FROM customer WITH (UPDLOCK, ROWLOCK)
WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3

-- name: payment.customer_data
SELECT c_data FROM customer WITH (UPDLOCK, ROWLOCK) WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3

-- name: payment.customer_update_bad
UPDATE customer
SET c_balance = c_balance - CAST($1 AS decimal(12, 2)),
    c_ytd_payment = c_ytd_payment + CAST($2 AS decimal(12, 2)),
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CAST($3 AS varchar(500))
WHERE c_w_id = $4 AND c_d_id = $5 AND c_id = $6

-- name: payment.history
INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
VALUES ($1, $2, $3, $4, $5, sysutcdatetime(), CAST($6 AS decimal(12, 2)), $7)

-- name: order_status.by_name
SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = CAST($3 AS varchar(16)) ORDER BY c_first

-- name: order_status.last_order
SELECT TOP (1) o_id, o_entry_d, o_carrier_id
FROM orders
WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3
ORDER BY o_id DESC

-- name: delivery.oldest
SELECT TOP (1) no_o_id
FROM new_order WITH (UPDLOCK, ROWLOCK)
WHERE no_w_id = $1 AND no_d_id = $2
ORDER BY no_o_id

-- name: delivery.customer_of
SELECT o_c_id FROM orders WITH (UPDLOCK, ROWLOCK) WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3

-- name: delivery.lines_update
UPDATE order_line SET ol_delivery_d = sysutcdatetime() WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3

-- name: delivery.amount
SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3

-- name: stock_level.count
SELECT count(DISTINCT s_i_id)
FROM order_line
JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3 AND ol_o_id >= CAST($4 AS int) - 20 AND s_quantity < $5

-- name: call.new_order
EXECUTE assay_new_order $1, $2, $3, $4

-- name: call.payment
EXECUTE assay_payment $1, $2, $3, $4, $5, $6, $7

-- name: call.order_status
EXECUTE assay_order_status $1, $2, $3, $4

-- name: call.delivery
EXECUTE assay_delivery $1, $2

-- name: call.stock_level
EXECUTE assay_stock_level $1, $2, $3
