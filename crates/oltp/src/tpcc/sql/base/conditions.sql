-- The consistency conditions of clause 3.3.2, each one row: how many were checked, how many break it, one of these as text.
--
-- Every condition compares two or three tables. Each table is aggregated to the key that is compared, the parts are stacked
-- with UNION ALL and aggregated again: a full join that every database knows, whose missing sides are sums of nothing, 0.
-- Counters of rows per side tell a partner that is missing from one that is zero. Sums of counts are decimals, because
-- SQL Server's sum of integers is an integer.

-- name: condition.1
-- title: w_ytd = sum(d_ytd) of its districts
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ' (rows ', warehouses, '): w_ytd ', w_ytd,
        ', sum(d_ytd) ', d_ytd) END)
FROM (
    SELECT w_id, warehouses, w_ytd, d_ytd, CASE WHEN warehouses = 1 AND w_ytd = d_ytd THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, sum(warehouses) AS warehouses, sum(w_ytd) AS w_ytd, sum(d_ytd) AS d_ytd
        FROM (
            SELECT w_id, 1 AS warehouses, w_ytd, 0 AS d_ytd FROM warehouse
            UNION ALL
            SELECT d_w_id, 0, 0, d_ytd FROM district
        ) AS part
        GROUP BY w_id
    ) AS joined
) AS judged

-- name: condition.2
-- title: d_next_o_id - 1 = max(o_id) = max(no_o_id), the latter where the district has new orders
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ', district ', d_id, ' (rows ', districts, '): d_next_o_id ', next_o_id,
        ', max(o_id) ', o_id, ', max(no_o_id) ', no_o_id) END)
FROM (
    SELECT w_id, d_id, districts, next_o_id, o_id, no_o_id,
        CASE WHEN districts = 1 AND next_o_id - 1 = o_id AND (new_orders = 0 OR no_o_id = o_id) THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, d_id, sum(districts) AS districts, sum(next_o_id) AS next_o_id, sum(o_id) AS o_id,
            sum(new_orders) AS new_orders, sum(no_o_id) AS no_o_id
        FROM (
            SELECT d_w_id AS w_id, d_id, 1 AS districts, d_next_o_id AS next_o_id, 0 AS o_id, 0 AS new_orders, 0 AS no_o_id
            FROM district
            UNION ALL
            SELECT o_w_id, o_d_id, 0, 0, max(o_id), 0, 0 FROM orders GROUP BY o_w_id, o_d_id
            UNION ALL
            SELECT no_w_id, no_d_id, 0, 0, 0, 1, max(no_o_id) FROM new_order GROUP BY no_w_id, no_d_id
        ) AS part
        GROUP BY w_id, d_id
    ) AS joined
) AS judged

-- name: condition.3
-- title: max(no_o_id) - min(no_o_id) + 1 = count of the district's new orders
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ', district ', d_id, ' (rows ', districts, '): no_o_id ', first_o_id,
        ' to ', last_o_id, ', rows ', new_orders) END)
FROM (
    SELECT w_id, d_id, districts, new_orders, first_o_id, last_o_id,
        CASE WHEN districts = 1 AND (new_orders = 0 OR last_o_id - first_o_id + 1 = new_orders) THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, d_id, sum(districts) AS districts, sum(new_orders) AS new_orders, sum(first_o_id) AS first_o_id,
            sum(last_o_id) AS last_o_id
        FROM (
            SELECT d_w_id AS w_id, d_id, 1 AS districts, 0 AS new_orders, 0 AS first_o_id, 0 AS last_o_id FROM district
            UNION ALL
            SELECT no_w_id, no_d_id, 0, count(*), min(no_o_id), max(no_o_id) FROM new_order GROUP BY no_w_id, no_d_id
        ) AS part
        GROUP BY w_id, d_id
    ) AS joined
) AS judged

-- name: condition.4
-- title: sum(o_ol_cnt) = count of the district's order lines
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ', district ', d_id, ' (rows ', districts, '): sum(o_ol_cnt) ', ol_cnt,
        ', order lines ', line_count) END)
FROM (
    SELECT w_id, d_id, districts, ol_cnt, line_count,
        CASE WHEN districts = 1 AND ol_cnt = line_count THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, d_id, sum(districts) AS districts, sum(ol_cnt) AS ol_cnt, sum(line_count) AS line_count
        FROM (
            SELECT d_w_id AS w_id, d_id, 1 AS districts, 0 AS ol_cnt, 0 AS line_count FROM district
            UNION ALL
            SELECT o_w_id, o_d_id, 0, sum(o_ol_cnt), 0 FROM orders GROUP BY o_w_id, o_d_id
            UNION ALL
            SELECT ol_w_id, ol_d_id, 0, 0, count(*) FROM order_line GROUP BY ol_w_id, ol_d_id
        ) AS part
        GROUP BY w_id, d_id
    ) AS joined
) AS judged

-- name: condition.5
-- title: an order has no carrier exactly if it is a new order
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ', district ', d_id, ', order ', o_id, ' (rows ', order_count,
        '): without carrier ', open_count, ', new orders ', new_orders) END)
FROM (
    SELECT w_id, d_id, o_id, order_count, open_count, new_orders,
        CASE WHEN order_count = 1 AND open_count = new_orders THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, d_id, o_id, sum(order_count) AS order_count, sum(open_count) AS open_count, sum(new_orders) AS new_orders
        FROM (
            SELECT o_w_id AS w_id, o_d_id AS d_id, o_id, 1 AS order_count,
                CASE WHEN o_carrier_id IS NULL THEN 1 ELSE 0 END AS open_count, 0 AS new_orders
            FROM orders
            UNION ALL
            SELECT no_w_id, no_d_id, no_o_id, 0, 0, 1 FROM new_order
        ) AS part
        GROUP BY w_id, d_id, o_id
    ) AS joined
) AS judged

-- name: condition.6
-- title: o_ol_cnt = count of the order's lines
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ', district ', d_id, ', order ', o_id, ' (rows ', order_count,
        '): o_ol_cnt ', ol_cnt, ', lines ', line_count) END)
FROM (
    SELECT w_id, d_id, o_id, order_count, ol_cnt, line_count,
        CASE WHEN order_count = 1 AND ol_cnt = line_count THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, d_id, o_id, sum(order_count) AS order_count, sum(ol_cnt) AS ol_cnt, sum(line_count) AS line_count
        FROM (
            SELECT o_w_id AS w_id, o_d_id AS d_id, o_id, 1 AS order_count, o_ol_cnt AS ol_cnt, 0 AS line_count FROM orders
            UNION ALL
            SELECT ol_w_id, ol_d_id, ol_o_id, 0, 0, count(*) FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id
        ) AS part
        GROUP BY w_id, d_id, o_id
    ) AS joined
) AS judged

-- name: condition.7
-- title: a line has no delivery date exactly if its order has no carrier
SELECT coalesce(sum(line_count), 0), coalesce(sum(bad), 0),
    min(CASE WHEN bad > 0 THEN concat('warehouse ', w_id, ', district ', d_id, ', order ', o_id, ' (rows ', order_count,
        '): without carrier ', open_count, ', lines ', line_count, ', without date ', open_lines) END)
FROM (
    SELECT w_id, d_id, o_id, order_count, open_count, line_count, open_lines,
        CASE
            WHEN order_count <> 1 THEN line_count
            WHEN open_count = 1 THEN line_count - open_lines
            ELSE open_lines
        END AS bad
    FROM (
        SELECT w_id, d_id, o_id, sum(order_count) AS order_count, sum(open_count) AS open_count,
            sum(line_count) AS line_count, sum(open_lines) AS open_lines
        FROM (
            SELECT o_w_id AS w_id, o_d_id AS d_id, o_id, 1 AS order_count,
                CASE WHEN o_carrier_id IS NULL THEN 1 ELSE 0 END AS open_count,
                CAST(0 AS decimal(18, 0)) AS line_count, CAST(0 AS decimal(18, 0)) AS open_lines
            FROM orders
            UNION ALL
            SELECT ol_w_id, ol_d_id, ol_o_id, 0, 0, count(*), sum(CASE WHEN ol_delivery_d IS NULL THEN 1 ELSE 0 END)
            FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id
        ) AS part
        GROUP BY w_id, d_id, o_id
    ) AS joined
) AS judged

-- name: condition.8
-- title: w_ytd = sum(h_amount) of its history
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ' (rows ', warehouses, '): w_ytd ', w_ytd,
        ', sum(h_amount) ', amount) END)
FROM (
    SELECT w_id, warehouses, w_ytd, amount, CASE WHEN warehouses = 1 AND w_ytd = amount THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, sum(warehouses) AS warehouses, sum(w_ytd) AS w_ytd, sum(amount) AS amount
        FROM (
            SELECT w_id, 1 AS warehouses, w_ytd, 0 AS amount FROM warehouse
            UNION ALL
            SELECT h_w_id, 0, 0, sum(h_amount) FROM history GROUP BY h_w_id
        ) AS part
        GROUP BY w_id
    ) AS joined
) AS judged

-- name: condition.9
-- title: d_ytd = sum(h_amount) of its history
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ', district ', d_id, ' (rows ', districts, '): d_ytd ', d_ytd,
        ', sum(h_amount) ', amount) END)
FROM (
    SELECT w_id, d_id, districts, d_ytd, amount, CASE WHEN districts = 1 AND d_ytd = amount THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, d_id, sum(districts) AS districts, sum(d_ytd) AS d_ytd, sum(amount) AS amount
        FROM (
            SELECT d_w_id AS w_id, d_id, 1 AS districts, d_ytd, 0 AS amount FROM district
            UNION ALL
            SELECT h_w_id, h_d_id, 0, 0, sum(h_amount) FROM history GROUP BY h_w_id, h_d_id
        ) AS part
        GROUP BY w_id, d_id
    ) AS joined
) AS judged

-- name: condition.10
-- title: c_balance = sum(ol_amount) of the customer's delivered lines - sum(h_amount) of its payments
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ', district ', d_id, ', customer ', c_id, ' (rows ', customers,
        '): c_balance ', balance, ', delivered ', delivered, ', paid ', paid) END)
FROM (
    SELECT w_id, d_id, c_id, customers, balance, delivered, paid,
        CASE WHEN customers = 1 AND balance = delivered - paid THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, d_id, c_id, sum(customers) AS customers, sum(balance) AS balance, sum(delivered) AS delivered,
            sum(paid) AS paid
        FROM (
            SELECT c_w_id AS w_id, c_d_id AS d_id, c_id, 1 AS customers, c_balance AS balance, 0 AS delivered, 0 AS paid
            FROM customer
            UNION ALL
            SELECT o_w_id, o_d_id, o_c_id, 0, 0, coalesce(sum(CASE WHEN ol_delivery_d IS NOT NULL THEN ol_amount END), 0), 0
            FROM orders
            LEFT JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
            GROUP BY o_w_id, o_d_id, o_c_id
            UNION ALL
            SELECT h_c_w_id, h_c_d_id, h_c_id, 0, 0, 0, sum(h_amount) FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id
        ) AS part
        GROUP BY w_id, d_id, c_id
    ) AS joined
) AS judged

-- name: condition.11
-- title: count of the district's orders - count of its new orders = 2100 (after loading only)
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ', district ', d_id, ' (rows ', districts, '): orders ', order_count,
        ', new orders ', new_orders) END)
FROM (
    SELECT w_id, d_id, districts, order_count, new_orders,
        CASE WHEN districts = 1 AND order_count - new_orders = 2100 THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, d_id, sum(districts) AS districts, sum(order_count) AS order_count, sum(new_orders) AS new_orders
        FROM (
            SELECT d_w_id AS w_id, d_id, 1 AS districts, 0 AS order_count, 0 AS new_orders FROM district
            UNION ALL
            SELECT o_w_id, o_d_id, 0, count(*), 0 FROM orders GROUP BY o_w_id, o_d_id
            UNION ALL
            SELECT no_w_id, no_d_id, 0, 0, count(*) FROM new_order GROUP BY no_w_id, no_d_id
        ) AS part
        GROUP BY w_id, d_id
    ) AS joined
) AS judged

-- name: condition.12
-- title: c_balance + c_ytd_payment = sum(ol_amount) of the customer's delivered lines
SELECT count(*), coalesce(sum(bad), 0),
    min(CASE WHEN bad = 1 THEN concat('warehouse ', w_id, ', district ', d_id, ', customer ', c_id, ' (rows ', customers,
        '): c_balance + c_ytd_payment ', credited, ', delivered ', delivered) END)
FROM (
    SELECT w_id, d_id, c_id, customers, credited, delivered,
        CASE WHEN customers = 1 AND credited = delivered THEN 0 ELSE 1 END AS bad
    FROM (
        SELECT w_id, d_id, c_id, sum(customers) AS customers, sum(credited) AS credited, sum(delivered) AS delivered
        FROM (
            SELECT c_w_id AS w_id, c_d_id AS d_id, c_id, 1 AS customers, c_balance + c_ytd_payment AS credited, 0 AS delivered
            FROM customer
            UNION ALL
            SELECT o_w_id, o_d_id, o_c_id, 0, 0, coalesce(sum(CASE WHEN ol_delivery_d IS NOT NULL THEN ol_amount END), 0)
            FROM orders
            LEFT JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
            GROUP BY o_w_id, o_d_id, o_c_id
        ) AS part
        GROUP BY w_id, d_id, c_id
    ) AS joined
) AS judged
