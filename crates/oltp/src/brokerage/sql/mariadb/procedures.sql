-- The transactions that take several round trips as statements, for MariaDB and MySQL, which has no CREATE OR REPLACE PROCEDURE: each is
-- dropped first. A procedure runs within the transaction of its caller, who has set the isolation level, and reads and writes what
-- statements.sql does, with the same locks. What is only read is not sent back.

-- name: drop.assay_customer_position
DROP PROCEDURE IF EXISTS assay_customer_position

-- name: assay_customer_position
-- By tax number unless it is empty.
CREATE PROCEDURE assay_customer_position(in_customer bigint, in_tax_id varchar(20) CHARACTER SET latin1 COLLATE latin1_bin, in_history int)
READS SQL DATA
BEGIN
    DECLARE customer_id bigint DEFAULT in_customer;
    DECLARE first_account bigint;
    DECLARE read_text varchar(255) CHARACTER SET latin1 COLLATE latin1_bin;
    DECLARE read_count int;
    IF in_tax_id <> '' THEN
        SELECT c_id INTO customer_id FROM customer WHERE c_tax_id = in_tax_id;
    END IF;
    SELECT concat(c_l_name, c_f_name, c_email_1, c_email_2) INTO read_text FROM customer WHERE c_id = customer_id;
    SELECT ca_id INTO first_account
    FROM customer_account
    LEFT JOIN holding_summary ON hs_ca_id = ca_id
    LEFT JOIN last_trade ON lt_s_symb = hs_s_symb
    WHERE ca_c_id = customer_id
    GROUP BY ca_id, ca_bal
    ORDER BY coalesce(sum(hs_qty * lt_price), 0), ca_id
    LIMIT 1;
    IF in_history <> 0 THEN
        SELECT count(*) INTO read_count
        FROM (SELECT t_id AS id FROM trade WHERE t_ca_id = first_account ORDER BY t_dts DESC, t_id DESC LIMIT 10) AS latest
        JOIN trade ON t_id = id
        JOIN trade_history ON th_t_id = t_id
        JOIN status_type ON st_id = th_st_id;
    END IF;
    SELECT first_account;
END

-- name: drop.assay_trade_order
DROP PROCEDURE IF EXISTS assay_trade_order

-- name: assay_trade_order
CREATE PROCEDURE assay_trade_order(
    in_trade bigint, in_account bigint, in_is_owner int, in_tax_id varchar(20) CHARACTER SET latin1 COLLATE latin1_bin,
    in_last varchar(25) CHARACTER SET latin1 COLLATE latin1_bin, in_first varchar(20) CHARACTER SET latin1 COLLATE latin1_bin, in_symbol varchar(15) CHARACTER SET latin1 COLLATE latin1_bin, in_by_name int,
    in_company varchar(60) CHARACTER SET latin1 COLLATE latin1_bin, in_issue varchar(6) CHARACTER SET latin1 COLLATE latin1_bin, in_exchange varchar(6) CHARACTER SET latin1 COLLATE latin1_bin, in_type char(3) CHARACTER SET latin1 COLLATE latin1_bin,
    in_quantity int, in_bid decimal(8, 2), in_is_margin int, in_lifo int, in_time datetime(6))
MODIFIES SQL DATA
BEGIN
    DECLARE broker_id bigint;
    DECLARE customer_id bigint;
    DECLARE tax_status int;
    DECLARE tier int;
    DECLARE is_market int;
    DECLARE rate decimal(5, 2);
    DECLARE charge_amount decimal(10, 2);
    DECLARE found_count int;
    DECLARE read_number decimal(20, 4);
    DECLARE trade_status char(4) CHARACTER SET latin1 COLLATE latin1_bin;
    SELECT ca_b_id, ca_c_id, ca_tax_st, c_tier INTO broker_id, customer_id, tax_status, tier
    FROM customer_account
    JOIN customer ON c_id = ca_c_id
    JOIN broker ON b_id = ca_b_id
    WHERE ca_id = in_account;
    IF broker_id IS NULL THEN
        SIGNAL SQLSTATE '45002' SET MESSAGE_TEXT = 'the account of the order does not exist';
    END IF;
    IF in_is_owner = 0 THEN
        SELECT count(*) INTO found_count FROM account_permission
        WHERE ap_ca_id = in_account AND ap_tax_id = in_tax_id AND ap_l_name = in_last AND ap_f_name = in_first;
        IF found_count = 0 THEN
            SIGNAL SQLSTATE '45002' SET MESSAGE_TEXT = 'the account may not be traded for by who gives the order';
        END IF;
    END IF;
    IF in_by_name <> 0 THEN
        SELECT count(*) INTO found_count
        FROM company JOIN security ON s_co_id = co_id WHERE co_name = in_company AND s_issue = in_issue;
    ELSE
        SELECT count(*) INTO found_count FROM security JOIN company ON co_id = s_co_id WHERE s_symb = in_symbol;
    END IF;
    IF found_count = 0 THEN
        SIGNAL SQLSTATE '45002' SET MESSAGE_TEXT = 'the security of the order does not exist';
    END IF;
    SELECT lt_price INTO read_number FROM last_trade WHERE lt_s_symb = in_symbol;
    SELECT tt_is_mrkt INTO is_market FROM trade_type WHERE tt_id = in_type;
    SELECT sum(hs_qty) INTO read_number FROM holding_summary WHERE hs_ca_id = in_account AND hs_s_symb = in_symbol;
    SELECT sum(h_qty * h_price) INTO read_number FROM holding WHERE h_ca_id = in_account AND h_s_symb = in_symbol;
    IF tax_status <> 0 THEN
        SELECT coalesce(sum(tx_rate), 0) INTO read_number
        FROM taxrate JOIN customer_taxrate ON cx_tx_id = tx_id WHERE cx_c_id = customer_id;
    END IF;
    SELECT cr_rate INTO rate FROM commission_rate
    WHERE cr_c_tier = tier AND cr_tt_id = in_type AND cr_ex_id = in_exchange AND cr_from_qty <= in_quantity
        AND cr_to_qty >= in_quantity;
    SELECT ch_chrg INTO charge_amount FROM charge WHERE ch_c_tier = tier AND ch_tt_id = in_type;
    IF in_is_margin <> 0 THEN
        SELECT coalesce(sum(hs_qty * lt_price), 0) INTO read_number
        FROM customer_account
        LEFT JOIN holding_summary ON hs_ca_id = ca_id
        LEFT JOIN last_trade ON lt_s_symb = hs_s_symb
        WHERE ca_id = in_account;
    END IF;
    SET trade_status = IF(is_market = 1, 'SBMT', 'PNDG');
    INSERT INTO trade
        (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name, t_trade_price, t_chrg,
        t_comm, t_tax, t_lifo)
    VALUES (in_trade, in_time, trade_status, in_type, 1 - in_is_margin, in_symbol, in_quantity, in_bid, in_account,
        concat(in_first, ' ', in_last), NULL, charge_amount, round(in_quantity * in_bid * rate / 100, 2), 0, in_lifo);
    INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES (in_trade, in_time, trade_status);
    IF is_market = 0 THEN
        INSERT INTO trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id)
        VALUES (in_trade, in_type, in_symbol, in_quantity, in_bid, broker_id);
    END IF;
    SELECT broker_id;
END

-- name: drop.assay_trade_result
DROP PROCEDURE IF EXISTS assay_trade_result

-- name: assay_trade_result
CREATE PROCEDURE assay_trade_result(in_trade bigint, in_price decimal(8, 2), in_time datetime(6), in_due date)
MODIFIES SQL DATA
BEGIN
    DECLARE account_id bigint;
    DECLARE kind char(3) CHARACTER SET latin1 COLLATE latin1_bin;
    DECLARE symbol varchar(15) CHARACTER SET latin1 COLLATE latin1_bin;
    DECLARE quantity int;
    DECLARE charge_amount decimal(10, 2);
    DECLARE is_lifo int;
    DECLARE is_cash int;
    DECLARE status_id char(4) CHARACTER SET latin1 COLLATE latin1_bin;
    DECLARE broker_id bigint;
    DECLARE customer_id bigint;
    DECLARE tax_status int;
    DECLARE tier int;
    DECLARE is_sell int;
    DECLARE title varchar(12) CHARACTER SET latin1 COLLATE latin1_bin;
    DECLARE held int;
    DECLARE open_quantity int;
    DECLARE lot_trade bigint;
    DECLARE lot_quantity int;
    DECLARE lot_price decimal(8, 2);
    DECLARE taken int;
    DECLARE after_quantity int;
    DECLARE bought decimal(20, 2) DEFAULT 0;
    DECLARE sold decimal(20, 2) DEFAULT 0;
    DECLARE tax_rate decimal(10, 5);
    DECLARE rate decimal(5, 2);
    DECLARE tax decimal(10, 2) DEFAULT 0;
    DECLARE commission decimal(10, 2);
    DECLARE amount decimal(14, 2);
    DECLARE is_over int DEFAULT 0;
    DECLARE oldest CURSOR FOR SELECT h_t_id, h_qty, h_price FROM holding
        WHERE h_ca_id = account_id AND h_s_symb = symbol ORDER BY h_dts, h_t_id FOR UPDATE;
    DECLARE newest CURSOR FOR SELECT h_t_id, h_qty, h_price FROM holding
        WHERE h_ca_id = account_id AND h_s_symb = symbol ORDER BY h_dts DESC, h_t_id DESC FOR UPDATE;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_over = 1;

    SELECT t_ca_id, t_tt_id, t_s_symb, t_qty, t_chrg, t_lifo, t_is_cash, t_st_id
    INTO account_id, kind, symbol, quantity, charge_amount, is_lifo, is_cash, status_id
    FROM trade WHERE t_id = in_trade FOR UPDATE;
    IF status_id IS NULL OR status_id <> 'SBMT' THEN
        SIGNAL SQLSTATE '45002' SET MESSAGE_TEXT = 'the trade is not at the market';
    END IF;
    SELECT tt_is_sell, tt_name INTO is_sell, title FROM trade_type WHERE tt_id = kind;
    SELECT ca_b_id, ca_c_id, ca_tax_st INTO broker_id, customer_id, tax_status
    FROM customer_account WHERE ca_id = account_id FOR UPDATE;
    SELECT hs_qty INTO held FROM holding_summary WHERE hs_ca_id = account_id AND hs_s_symb = symbol;
    SET open_quantity = IF(is_sell = 1, -quantity, quantity);
    -- Lots refer to the summary: it comes before the first of them and goes after the last.
    IF held IS NULL THEN
        SET held = open_quantity;
        INSERT INTO holding_summary (hs_ca_id, hs_s_symb, hs_qty) VALUES (account_id, symbol, held);
    ELSE
        SET held = held + open_quantity;
        IF held <> 0 THEN
            UPDATE holding_summary SET hs_qty = held WHERE hs_ca_id = account_id AND hs_s_symb = symbol;
        END IF;
    END IF;

    SET is_over = 0;
    IF is_lifo <> 0 THEN OPEN newest; ELSE OPEN oldest; END IF;
    WHILE open_quantity <> 0 AND is_over = 0 DO
        IF is_lifo <> 0 THEN
            FETCH newest INTO lot_trade, lot_quantity, lot_price;
        ELSE
            FETCH oldest INTO lot_trade, lot_quantity, lot_price;
        END IF;
        IF is_over = 0 AND sign(lot_quantity) = -sign(open_quantity) THEN
            SET taken = least(abs(open_quantity), abs(lot_quantity));
            SET after_quantity = lot_quantity + sign(open_quantity) * taken;
            INSERT INTO holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
            VALUES (lot_trade, in_trade, lot_quantity, after_quantity);
            IF after_quantity = 0 THEN
                DELETE FROM holding WHERE h_t_id = lot_trade;
            ELSE
                UPDATE holding SET h_qty = after_quantity WHERE h_t_id = lot_trade;
            END IF;
            SET bought = bought + taken * IF(is_sell = 1, lot_price, in_price);
            SET sold = sold + taken * IF(is_sell = 1, in_price, lot_price);
            SET open_quantity = open_quantity - sign(open_quantity) * taken;
        ELSE
            SET is_over = 1;
        END IF;
    END WHILE;
    IF is_lifo <> 0 THEN CLOSE newest; ELSE CLOSE oldest; END IF;
    IF open_quantity <> 0 THEN
        INSERT INTO holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
        VALUES (in_trade, in_trade, 0, open_quantity);
        INSERT INTO holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty)
        VALUES (in_trade, account_id, symbol, in_time, in_price, open_quantity);
    END IF;
    IF held = 0 THEN
        DELETE FROM holding_summary WHERE hs_ca_id = account_id AND hs_s_symb = symbol;
    END IF;

    SELECT coalesce(sum(tx_rate), 0) INTO tax_rate
    FROM taxrate JOIN customer_taxrate ON cx_tx_id = tx_id WHERE cx_c_id = customer_id;
    SELECT c_tier INTO tier FROM customer WHERE c_id = customer_id;
    SELECT cr_rate INTO rate FROM commission_rate
    WHERE cr_c_tier = tier AND cr_tt_id = kind AND cr_from_qty <= quantity AND cr_to_qty >= quantity
        AND cr_ex_id = (SELECT s_ex_id FROM security WHERE s_symb = symbol);
    IF tax_status <> 0 THEN
        SET tax = truncate(greatest(sold - bought, 0) * tax_rate, 2);
    END IF;
    SET commission = round(quantity * in_price * rate / 100, 2);

    UPDATE trade
    SET t_comm = commission, t_dts = in_time, t_st_id = 'CMPT', t_trade_price = in_price, t_tax = tax
    WHERE t_id = in_trade;
    INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES (in_trade, in_time, 'CMPT');
    SET amount = quantity * in_price;
    IF is_sell = 1 THEN
        SET amount = amount - charge_amount - commission - IF(tax_status = 1, tax, 0);
    ELSE
        SET amount = -(amount + charge_amount + commission);
    END IF;
    INSERT INTO settlement (se_t_id, se_cash_type, se_cash_due_date, se_amt)
    VALUES (in_trade, IF(is_cash <> 0, 'Cash Account', 'Margin'), in_due, amount);
    IF is_cash <> 0 THEN
        UPDATE customer_account SET ca_bal = ca_bal + amount WHERE ca_id = account_id;
        INSERT INTO cash_transaction (ct_t_id, ct_dts, ct_amt, ct_name)
        VALUES (in_trade, in_time, amount, concat(title, ' ', quantity, ' shares of ', symbol));
    END IF;
    -- The broker's row is the most wanted one: it is held shortest.
    UPDATE broker SET b_comm_total = b_comm_total + commission, b_num_trades = b_num_trades + 1 WHERE b_id = broker_id;
    SELECT held;
END

-- name: drop.assay_trades
DROP PROCEDURE IF EXISTS assay_trades

-- name: assay_trades
-- Trades by their keys, a JSON array, else of an account, else of a security; `in_change` changes each a little. Rows are locked in the
-- order of their keys.
CREATE PROCEDURE assay_trades(
    in_trades text CHARACTER SET latin1 COLLATE latin1_bin, in_account bigint, in_symbol varchar(15) CHARACTER SET latin1 COLLATE latin1_bin, in_from datetime(6), in_to datetime(6),
    in_change int)
MODIFIES SQL DATA
BEGIN
    DECLARE found_trades text CHARACTER SET latin1 COLLATE latin1_bin DEFAULT in_trades;
    DECLARE one bigint;
    DECLARE is_over int DEFAULT 0;
    DECLARE read_count int;
    DECLARE each_trade CURSOR FOR
        SELECT DISTINCT id FROM json_table(found_trades, '$[*]' COLUMNS (id bigint PATH '$')) AS listed ORDER BY id;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_over = 1;
    IF in_account <> 0 THEN
        SELECT coalesce(json_arrayagg(t_id), '[]') INTO found_trades
        FROM (SELECT t_id FROM trade WHERE t_ca_id = in_account AND t_dts >= in_from AND t_dts <= in_to AND t_st_id = 'CMPT'
            ORDER BY t_dts, t_id LIMIT 20) AS latest;
    ELSEIF in_symbol <> '' THEN
        SELECT coalesce(json_arrayagg(t_id), '[]') INTO found_trades
        FROM (SELECT t_id FROM trade WHERE t_s_symb = in_symbol AND t_dts >= in_from AND t_dts <= in_to AND t_st_id = 'CMPT'
            ORDER BY t_dts, t_id LIMIT 20) AS latest;
    END IF;
    IF in_change <> 0 THEN
        SET is_over = 0;
        OPEN each_trade;
        FETCH each_trade INTO one;
        WHILE is_over = 0 DO
            IF in_account <> 0 THEN
                UPDATE settlement
                SET se_cash_type = CASE se_cash_type
                    WHEN 'Cash Account' THEN 'Cash'
                    WHEN 'Cash' THEN 'Cash Account'
                    WHEN 'Margin' THEN 'Margin Account'
                    ELSE 'Margin' END
                WHERE se_t_id = one;
            ELSEIF in_symbol <> '' THEN
                UPDATE cash_transaction
                SET ct_name = CASE WHEN ct_name LIKE '% shares of %' THEN replace(ct_name, ' shares of ', ' Shares of ')
                    ELSE replace(ct_name, ' Shares of ', ' shares of ') END
                WHERE ct_t_id = one;
            ELSE
                UPDATE trade
                SET t_exec_name = CASE WHEN t_exec_name LIKE '% X %' THEN replace(t_exec_name, ' X ', ' ')
                    ELSE replace(t_exec_name, ' ', ' X ') END
                WHERE t_id = one;
            END IF;
            FETCH each_trade INTO one;
        END WHILE;
        CLOSE each_trade;
    END IF;
    SELECT count(t_exec_name) INTO read_count
    FROM json_table(found_trades, '$[*]' COLUMNS (id bigint PATH '$')) AS listed
    JOIN trade ON t_id = id JOIN trade_type ON tt_id = t_tt_id;
    SELECT count(se_amt) INTO read_count
    FROM json_table(found_trades, '$[*]' COLUMNS (id bigint PATH '$')) AS listed JOIN settlement ON se_t_id = id;
    SELECT count(ct_name) INTO read_count
    FROM json_table(found_trades, '$[*]' COLUMNS (id bigint PATH '$')) AS listed JOIN cash_transaction ON ct_t_id = id;
    SELECT count(th_st_id) INTO read_count
    FROM json_table(found_trades, '$[*]' COLUMNS (id bigint PATH '$')) AS listed JOIN trade_history ON th_t_id = id;
    SELECT json_length(found_trades);
END

-- name: drop.assay_trade_holdings
DROP PROCEDURE IF EXISTS assay_trade_holdings

-- name: assay_trade_holdings
CREATE PROCEDURE assay_trade_holdings(in_account bigint, in_from datetime(6))
READS SQL DATA
BEGIN
    DECLARE first_trade bigint;
    DECLARE read_count int;
    SELECT t_id INTO first_trade FROM trade WHERE t_ca_id = in_account AND t_dts >= in_from ORDER BY t_dts, t_id LIMIT 1;
    SELECT count(*) INTO read_count
    FROM (
        SELECT hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty
        FROM holding_history
        WHERE hh_h_t_id IN (SELECT hh_h_t_id FROM holding_history WHERE hh_t_id = first_trade)
        ORDER BY hh_h_t_id, hh_t_id
        LIMIT 20
    ) AS changes;
    SELECT coalesce(first_trade, 0);
END

-- name: drop.assay_market_feed
DROP PROCEDURE IF EXISTS assay_market_feed

-- name: assay_market_feed
-- One security: its price, and the limit orders that this lets through, which are told before they are changed.
CREATE PROCEDURE assay_market_feed(in_symbol varchar(15) CHARACTER SET latin1 COLLATE latin1_bin, in_price decimal(8, 2), in_volume bigint, in_time datetime(6))
MODIFIES SQL DATA
BEGIN
    DECLARE one bigint;
    DECLARE is_over int DEFAULT 0;
    DECLARE requests CURSOR FOR
        SELECT tr_t_id FROM trade_request
        WHERE tr_s_symb = in_symbol
            AND ((tr_tt_id = 'TSL' AND tr_bid_price >= in_price) OR (tr_tt_id = 'TLS' AND tr_bid_price <= in_price)
                OR (tr_tt_id = 'TLB' AND tr_bid_price >= in_price))
        ORDER BY tr_t_id
        LIMIT 16
        FOR UPDATE;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET is_over = 1;
    UPDATE last_trade SET lt_price = in_price, lt_vol = lt_vol + in_volume, lt_dts = in_time WHERE lt_s_symb = in_symbol;
    SELECT tr_t_id, tr_qty, tr_b_id FROM trade_request
    WHERE tr_s_symb = in_symbol
        AND ((tr_tt_id = 'TSL' AND tr_bid_price >= in_price) OR (tr_tt_id = 'TLS' AND tr_bid_price <= in_price)
            OR (tr_tt_id = 'TLB' AND tr_bid_price >= in_price))
    ORDER BY tr_t_id
    LIMIT 16
    FOR UPDATE;
    SET is_over = 0;
    OPEN requests;
    FETCH requests INTO one;
    WHILE is_over = 0 DO
        UPDATE trade SET t_dts = in_time, t_st_id = 'SBMT' WHERE t_id = one;
        DELETE FROM trade_request WHERE tr_t_id = one;
        INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES (one, in_time, 'SBMT');
        FETCH requests INTO one;
    END WHILE;
    CLOSE requests;
END
