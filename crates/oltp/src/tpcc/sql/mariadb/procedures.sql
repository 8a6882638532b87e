-- For MariaDB and MySQL, which has no CREATE OR REPLACE PROCEDURE: each is dropped first. A procedure is one transaction; any
-- error undoes it and goes on to the client. What is read and written, and with which locks, is as in statements.sql.

-- name: drop.assay_new_order
DROP PROCEDURE IF EXISTS assay_new_order

-- name: assay_new_order
-- Lines are JSON, [[item, supplying warehouse, quantity], ...], in the order of (warehouse, item) in which stock rows are locked.
-- An item that does not exist is reported after all other work has been done, which is then undone.
CREATE PROCEDURE assay_new_order(in_w_id int, in_d_id int, in_c_id int, in_lines text)
MODIFIES SQL DATA
BEGIN
    DECLARE line_count int DEFAULT json_length(in_lines);
    DECLARE line_number int DEFAULT 0;
    DECLARE unknown_count int DEFAULT 0;
    DECLARE local_count int;
    DECLARE order_id int;
    DECLARE line_i_id int;
    DECLARE line_w_id int;
    DECLARE line_quantity int;
    DECLARE stock_quantity int;
    DECLARE price decimal(12, 2);
    DECLARE line_amount decimal(12, 2);
    DECLARE amount decimal(14, 2) DEFAULT 0;
    DECLARE warehouse_tax decimal(4, 4);
    DECLARE district_tax decimal(4, 4);
    DECLARE discount decimal(4, 4);
    DECLARE customer_last varchar(16);
    DECLARE customer_credit char(2);
    DECLARE item_name varchar(24);
    DECLARE item_data varchar(50);
    DECLARE stock_data varchar(50);
    DECLARE dist_info char(24);
    DECLARE order_lines CURSOR FOR
        SELECT l.i_id, l.w_id, l.quantity
        FROM json_table(in_lines, '$[*]' COLUMNS (
            number FOR ORDINALITY, i_id int PATH '$[0]', w_id int PATH '$[1]', quantity int PATH '$[2]')) AS l
        ORDER BY l.number;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    SELECT w_tax INTO warehouse_tax FROM warehouse WHERE w_id = in_w_id;
    SELECT c_discount, c_last, c_credit INTO discount, customer_last, customer_credit
    FROM customer WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = in_c_id;
    SELECT d_next_o_id, d_tax INTO order_id, district_tax
    FROM district WHERE d_w_id = in_w_id AND d_id = in_d_id FOR UPDATE;
    IF order_id IS NULL OR discount IS NULL THEN
        SIGNAL SQLSTATE '45002' SET MESSAGE_TEXT = 'the customer of the order does not exist';
    END IF;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = in_w_id AND d_id = in_d_id;

    SELECT count(*) INTO local_count
    FROM json_table(in_lines, '$[*]' COLUMNS (w_id int PATH '$[1]')) AS l WHERE l.w_id = in_w_id;
    INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
    VALUES (order_id, in_d_id, in_w_id, in_c_id, utc_timestamp(), NULL, line_count, local_count = line_count);
    INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (order_id, in_d_id, in_w_id);

    OPEN order_lines;
    WHILE line_number < line_count DO
        FETCH order_lines INTO line_i_id, line_w_id, line_quantity;
        SET line_number = line_number + 1;
        SET price = NULL; -- a SELECT without a row leaves its variables as they are
        SELECT i_price, i_name, i_data INTO price, item_name, item_data FROM item WHERE i_id = line_i_id;
        IF price IS NULL THEN
            SET unknown_count = unknown_count + 1;
        ELSE
            SELECT s_quantity,
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
                END,
                s_data
            INTO stock_quantity, dist_info, stock_data
            FROM stock WHERE s_i_id = line_i_id AND s_w_id = line_w_id FOR UPDATE;
            UPDATE stock
            SET s_quantity = stock_quantity - line_quantity + IF(stock_quantity >= line_quantity + 10, 0, 91),
                s_ytd = s_ytd + line_quantity,
                s_order_cnt = s_order_cnt + 1,
                s_remote_cnt = s_remote_cnt + IF(line_w_id = in_w_id, 0, 1)
            WHERE s_i_id = line_i_id AND s_w_id = line_w_id;
            SET line_amount = line_quantity * price;
            SET amount = amount + line_amount;
            INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity,
                ol_amount, ol_dist_info)
            VALUES (order_id, in_d_id, in_w_id, line_number, line_i_id, line_w_id, NULL, line_quantity, line_amount, dist_info);
        END IF;
    END WHILE;
    CLOSE order_lines;

    IF unknown_count > 0 THEN
        SIGNAL SQLSTATE '45001' SET MESSAGE_TEXT = 'an item of the order does not exist';
    END IF;
    COMMIT;
    SELECT order_id,
        CAST(round(amount * (1 - discount) * (1 + warehouse_tax + district_tax) * 100) AS SIGNED) AS total_cents;
END

-- name: drop.assay_payment
DROP PROCEDURE IF EXISTS assay_payment

-- name: assay_payment
-- Rows are locked from the least to the most wanted: the warehouse is held shortest.
CREATE PROCEDURE assay_payment(in_w_id int, in_d_id int, in_c_w_id int, in_c_d_id int, in_c_id int,
    in_last varchar(16) CHARACTER SET latin1 COLLATE latin1_bin, in_amount decimal(12, 2))
MODIFIES SQL DATA
BEGIN
    DECLARE customer_id int DEFAULT in_c_id;
    DECLARE namesake_count int;
    DECLARE middle int;
    DECLARE balance decimal(12, 2);
    DECLARE credit char(2) CHARACTER SET latin1 COLLATE latin1_bin;
    DECLARE warehouse_name varchar(10) CHARACTER SET latin1 COLLATE latin1_bin;
    DECLARE district_name varchar(10) CHARACTER SET latin1 COLLATE latin1_bin;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    SELECT w_name INTO warehouse_name FROM warehouse WHERE w_id = in_w_id;
    SELECT d_name INTO district_name FROM district WHERE d_w_id = in_w_id AND d_id = in_d_id;
    IF in_c_id = 0 THEN
        SELECT count(*) INTO namesake_count
        FROM customer WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = in_last;
        IF namesake_count > 0 THEN
            SET middle = (namesake_count + 1) DIV 2 - 1;
            SELECT c_id INTO customer_id
            FROM customer WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = in_last
            ORDER BY c_first LIMIT 1 OFFSET middle;
        END IF;
    END IF;

    SELECT c_balance, c_credit INTO balance, credit
    FROM customer WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = customer_id FOR UPDATE;
    IF balance IS NULL OR district_name IS NULL THEN
        SIGNAL SQLSTATE '45002' SET MESSAGE_TEXT = 'the customer of the payment does not exist';
    END IF;
    SET balance = balance - in_amount;
    IF credit = 'BC' THEN
        UPDATE customer
        SET c_balance = balance,
            c_ytd_payment = c_ytd_payment + in_amount,
            c_payment_cnt = c_payment_cnt + 1,
            c_data = left(concat_ws(' ', c_id, c_d_id, c_w_id, in_d_id, in_w_id, in_amount, c_data), 500)
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = customer_id;
    ELSE
        UPDATE customer
        SET c_balance = balance,
            c_ytd_payment = c_ytd_payment + in_amount,
            c_payment_cnt = c_payment_cnt + 1
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = customer_id;
    END IF;
    UPDATE district SET d_ytd = d_ytd + in_amount WHERE d_w_id = in_w_id AND d_id = in_d_id;
    UPDATE warehouse SET w_ytd = w_ytd + in_amount WHERE w_id = in_w_id;
    INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (customer_id, in_c_d_id, in_c_w_id, in_d_id, in_w_id, utc_timestamp(), in_amount,
        concat(warehouse_name, '    ', district_name));
    COMMIT;
    SELECT customer_id, balance;
END

-- name: drop.assay_order_status
DROP PROCEDURE IF EXISTS assay_order_status

-- name: assay_order_status
CREATE PROCEDURE assay_order_status(in_w_id int, in_d_id int, in_c_id int,
    in_last varchar(16) CHARACTER SET latin1 COLLATE latin1_bin)
READS SQL DATA
BEGIN
    DECLARE customer_id int DEFAULT in_c_id;
    DECLARE namesake_count int;
    DECLARE middle int;
    DECLARE customer_balance decimal(12, 2);
    DECLARE order_id int;
    DECLARE entered datetime;
    DECLARE carrier_id int;
    DECLARE line_count bigint;
    DECLARE amount decimal(20, 2);
    DECLARE delivered datetime;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    IF in_c_id = 0 THEN
        SELECT count(*) INTO namesake_count
        FROM customer WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_last;
        IF namesake_count > 0 THEN
            SET middle = (namesake_count + 1) DIV 2 - 1;
            SELECT c_id INTO customer_id
            FROM customer WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_last
            ORDER BY c_first LIMIT 1 OFFSET middle;
        END IF;
    END IF;
    SELECT c_balance INTO customer_balance
    FROM customer WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = customer_id;
    SELECT o_id, o_entry_d, o_carrier_id INTO order_id, entered, carrier_id
    FROM orders WHERE o_w_id = in_w_id AND o_d_id = in_d_id AND o_c_id = customer_id ORDER BY o_id DESC LIMIT 1;
    SELECT count(*), sum(ol_quantity * ol_amount), max(ol_delivery_d) INTO line_count, amount, delivered
    FROM order_line WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id = order_id;
    COMMIT;
    SELECT customer_id, order_id, line_count;
END

-- name: drop.assay_delivery
DROP PROCEDURE IF EXISTS assay_delivery

-- name: assay_delivery
CREATE PROCEDURE assay_delivery(in_w_id int, in_carrier_id int)
MODIFIES SQL DATA
BEGIN
    DECLARE district_id int DEFAULT 1;
    DECLARE order_id int;
    DECLARE customer_id int;
    DECLARE amount decimal(14, 2);
    DECLARE delivered_count int DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    WHILE district_id <= 10 DO
        SET order_id = NULL; -- a SELECT without a row leaves its variables as they are
        SELECT no_o_id INTO order_id
        FROM new_order WHERE no_w_id = in_w_id AND no_d_id = district_id ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        IF order_id IS NOT NULL THEN
            DELETE FROM new_order WHERE no_w_id = in_w_id AND no_d_id = district_id AND no_o_id = order_id;
            SELECT o_c_id INTO customer_id
            FROM orders WHERE o_w_id = in_w_id AND o_d_id = district_id AND o_id = order_id FOR UPDATE;
            UPDATE orders SET o_carrier_id = in_carrier_id
            WHERE o_w_id = in_w_id AND o_d_id = district_id AND o_id = order_id;
            UPDATE order_line SET ol_delivery_d = utc_timestamp()
            WHERE ol_w_id = in_w_id AND ol_d_id = district_id AND ol_o_id = order_id;
            SELECT sum(ol_amount) INTO amount
            FROM order_line WHERE ol_w_id = in_w_id AND ol_d_id = district_id AND ol_o_id = order_id FOR UPDATE;
            UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
            WHERE c_w_id = in_w_id AND c_d_id = district_id AND c_id = customer_id;
            SET delivered_count = delivered_count + 1;
        END IF;
        SET district_id = district_id + 1;
    END WHILE;
    COMMIT;
    SELECT delivered_count;
END

-- name: drop.assay_stock_level
DROP PROCEDURE IF EXISTS assay_stock_level

-- name: assay_stock_level
CREATE PROCEDURE assay_stock_level(in_w_id int, in_d_id int, in_threshold int)
READS SQL DATA
BEGIN
    DECLARE next_order_id int;
    DECLARE item_count bigint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;

    START TRANSACTION;
    SELECT d_next_o_id INTO next_order_id FROM district WHERE d_w_id = in_w_id AND d_id = in_d_id;
    SELECT count(DISTINCT s_i_id) INTO item_count
    FROM order_line
    JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
    WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id < next_order_id AND ol_o_id >= next_order_id - 20
        AND s_quantity < in_threshold;
    COMMIT;
    SELECT item_count;
END
