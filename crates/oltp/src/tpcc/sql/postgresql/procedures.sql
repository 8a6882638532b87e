-- One transaction per call, without BEGIN and COMMIT around it. Several rows are handled by one statement, without dynamic
-- SQL and without exception blocks, which would begin a subtransaction each time.

-- name: assay_new_order
-- The lines arrive in the order of (supplying warehouse, item), in which their stock rows are locked. An UPDATE changes a row
-- once, even if two lines name the same item: lines that are left over get another round. What is left when a round
-- finds nothing names an item that does not exist; by then all other work has been done, and the exception undoes it.
CREATE OR REPLACE FUNCTION assay_new_order(
    in_w_id int, in_d_id int, in_c_id int, in_items int[], in_supply_w_ids int[], in_quantities int[],
    OUT order_id int, OUT total_cents bigint
) LANGUAGE plpgsql AS $$
DECLARE
    line_count constant int := cardinality(in_items);
    entered constant timestamp := now() AT TIME ZONE 'UTC';
    warehouse_tax numeric;
    district_tax numeric;
    discount numeric;
    customer_last varchar;
    customer_credit varchar;
    done int[] := '{}'; -- numbers of the lines
    round_done int[];
    amount numeric := 0;
    round_amount numeric;
BEGIN
    SELECT w_tax INTO warehouse_tax FROM warehouse WHERE w_id = in_w_id;
    SELECT c_discount, c_last, c_credit INTO discount, customer_last, customer_credit
    FROM customer WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = in_c_id;
    UPDATE district SET d_next_o_id = d_next_o_id + 1
    WHERE d_w_id = in_w_id AND d_id = in_d_id
    RETURNING d_next_o_id - 1, d_tax INTO order_id, district_tax;
    IF order_id IS NULL OR discount IS NULL THEN
        RAISE EXCEPTION 'no customer % in district % of warehouse %', in_c_id, in_d_id, in_w_id USING ERRCODE = 'P0002';
    END IF;

    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    VALUES (order_id, in_d_id, in_w_id, in_c_id, entered, NULL, line_count,
        CASE WHEN in_w_id = ALL (in_supply_w_ids) THEN 1 ELSE 0 END);
    INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (order_id, in_d_id, in_w_id);

    WHILE cardinality(done) < line_count LOOP
        WITH taken AS (
            UPDATE stock
            SET s_quantity = s_quantity - line.quantity + CASE WHEN s_quantity >= line.quantity + 10 THEN 0 ELSE 91 END,
                s_ytd = s_ytd + line.quantity,
                s_order_cnt = s_order_cnt + 1,
                s_remote_cnt = s_remote_cnt + CASE WHEN line.w_id = in_w_id THEN 0 ELSE 1 END
            FROM unnest(in_items, in_supply_w_ids, in_quantities) WITH ORDINALITY AS line (i_id, w_id, quantity, number)
            JOIN item ON item.i_id = line.i_id
            WHERE s_w_id = line.w_id AND s_i_id = line.i_id AND line.number <> ALL (done)
            RETURNING line.number, line.i_id, line.w_id, line.quantity, line.quantity * i_price AS amount,
                CASE in_d_id
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
                END AS dist_info
        ), added AS (
            INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity,
                ol_amount, ol_dist_info)
            SELECT order_id, in_d_id, in_w_id, taken.number, taken.i_id, taken.w_id, NULL, taken.quantity, taken.amount,
                taken.dist_info
            FROM taken
            RETURNING ol_number, ol_amount
        )
        SELECT array_agg(ol_number), sum(ol_amount) INTO round_done, round_amount FROM added;
        IF round_done IS NULL THEN
            RAISE EXCEPTION 'an item of the order does not exist' USING ERRCODE = 'AS001';
        END IF;
        done := done || round_done;
        amount := amount + round_amount;
    END LOOP;

    total_cents := round(amount * (1 - discount) * (1 + warehouse_tax + district_tax) * 100);
END
$$

-- name: assay_payment
-- Rows are locked from the least to the most wanted: the warehouse is held shortest.
CREATE OR REPLACE FUNCTION assay_payment(
    in_w_id int, in_d_id int, in_c_w_id int, in_c_d_id int, in_c_id int, in_last varchar, in_amount numeric,
    OUT customer_id int, OUT balance numeric
) LANGUAGE plpgsql AS $$
DECLARE
    namesakes int[];
    district_name varchar;
    warehouse_name varchar;
BEGIN
    customer_id := in_c_id;
    IF in_c_id = 0 THEN
        namesakes := ARRAY(
            SELECT c_id FROM customer WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = in_last ORDER BY c_first);
        customer_id := namesakes[(cardinality(namesakes) + 1) / 2];
    END IF;

    UPDATE customer
    SET c_balance = c_balance - in_amount,
        c_ytd_payment = c_ytd_payment + in_amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE
            WHEN c_credit = 'BC'
            THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, in_d_id, in_w_id, in_amount, c_data), 500)
            ELSE c_data
        END
    WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = customer_id
    RETURNING c_balance INTO balance;
    IF balance IS NULL THEN
        RAISE EXCEPTION 'no customer % "%" in district % of warehouse %', in_c_id, in_last, in_c_d_id, in_c_w_id
            USING ERRCODE = 'P0002';
    END IF;
    UPDATE district SET d_ytd = d_ytd + in_amount WHERE d_w_id = in_w_id AND d_id = in_d_id RETURNING d_name INTO district_name;
    UPDATE warehouse SET w_ytd = w_ytd + in_amount WHERE w_id = in_w_id RETURNING w_name INTO warehouse_name;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (customer_id, in_c_d_id, in_c_w_id, in_d_id, in_w_id, now() AT TIME ZONE 'UTC', in_amount,
        concat(warehouse_name, '    ', district_name));
END
$$

-- name: assay_order_status
CREATE OR REPLACE FUNCTION assay_order_status(
    in_w_id int, in_d_id int, in_c_id int, in_last varchar,
    OUT customer_id int, OUT order_id int, OUT line_count bigint
) LANGUAGE plpgsql STABLE AS $$
DECLARE
    namesakes int[];
    customer_balance numeric;
    entered timestamp;
    carrier_id int;
    amount numeric;
    delivered timestamp;
BEGIN
    customer_id := in_c_id;
    IF in_c_id = 0 THEN
        namesakes := ARRAY(
            SELECT c_id FROM customer WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_last ORDER BY c_first);
        customer_id := namesakes[(cardinality(namesakes) + 1) / 2];
    END IF;

    SELECT c_balance INTO customer_balance
    FROM customer WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = customer_id;
    SELECT o_id, o_entry_d, o_carrier_id INTO order_id, entered, carrier_id
    FROM orders WHERE o_w_id = in_w_id AND o_d_id = in_d_id AND o_c_id = customer_id ORDER BY o_id DESC LIMIT 1;
    -- The sum makes the server read the rows, as the statement does: a count alone would be content with the index.
    SELECT count(*), sum(ol_quantity * ol_amount), max(ol_delivery_d) INTO line_count, amount, delivered
    FROM order_line WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id = order_id;
END
$$

-- name: assay_delivery
-- The oldest order of each district, all in one statement. A delivery that meets another one of the same warehouse waits for the
-- first order both want and then takes the next: they cannot deadlock.
CREATE OR REPLACE FUNCTION assay_delivery(in_w_id int, in_carrier_id int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    delivered constant timestamp := now() AT TIME ZONE 'UTC';
    order_count bigint;
BEGIN
    WITH oldest AS (
        SELECT district_id, first.no_o_id
        FROM generate_series(1, 10) AS district_id
        CROSS JOIN LATERAL (
            SELECT no_o_id FROM new_order
            WHERE no_w_id = in_w_id AND no_d_id = district_id
            ORDER BY no_o_id LIMIT 1 FOR UPDATE
        ) AS first
    ), taken AS (
        DELETE FROM new_order USING oldest
        WHERE new_order.no_w_id = in_w_id AND new_order.no_d_id = oldest.district_id AND new_order.no_o_id = oldest.no_o_id
        RETURNING new_order.no_d_id, new_order.no_o_id
    ), ordered AS (
        UPDATE orders SET o_carrier_id = in_carrier_id FROM taken
        WHERE o_w_id = in_w_id AND o_d_id = taken.no_d_id AND o_id = taken.no_o_id
        RETURNING o_d_id, o_c_id
    ), line AS (
        UPDATE order_line SET ol_delivery_d = delivered FROM taken
        WHERE ol_w_id = in_w_id AND ol_d_id = taken.no_d_id AND ol_o_id = taken.no_o_id
        RETURNING ol_d_id, ol_amount
    ), total AS (
        SELECT ol_d_id, sum(ol_amount) AS amount FROM line GROUP BY ol_d_id
    ), charged AS (
        UPDATE customer SET c_balance = c_balance + total.amount, c_delivery_cnt = c_delivery_cnt + 1
        FROM ordered JOIN total ON total.ol_d_id = ordered.o_d_id
        WHERE c_w_id = in_w_id AND c_d_id = ordered.o_d_id AND c_id = ordered.o_c_id
    )
    SELECT count(*) INTO order_count FROM taken;
    RETURN order_count;
END
$$

-- name: assay_stock_level
CREATE OR REPLACE FUNCTION assay_stock_level(in_w_id int, in_d_id int, in_threshold int)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    next_order_id int;
    item_count bigint;
BEGIN
    SELECT d_next_o_id INTO next_order_id FROM district WHERE d_w_id = in_w_id AND d_id = in_d_id;
    SELECT count(DISTINCT s_i_id) INTO item_count
    FROM order_line
    JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
    WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id < next_order_id AND ol_o_id >= next_order_id - 20
        AND s_quantity < in_threshold;
    RETURN item_count;
END
$$
