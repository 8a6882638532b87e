-- The transactions that take several round trips as statements. A function runs within the transaction of its caller, who has set the
-- isolation level, and reads and writes what statements.sql does, with the same locks. What is only read is not sent back.

-- name: assay_customer_position
-- By tax number unless it is empty.
CREATE OR REPLACE FUNCTION assay_customer_position(in_customer bigint, in_tax_id text, in_history int) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    customer_id bigint := in_customer;
    first_account bigint;
BEGIN
    IF in_tax_id <> '' THEN
        SELECT c_id INTO STRICT customer_id FROM customer WHERE c_tax_id = in_tax_id;
    END IF;
    PERFORM c_st_id, c_l_name, c_f_name, c_m_name, c_gndr, c_tier, c_dob, c_ad_id, c_email_1, c_email_2
    FROM customer WHERE c_id = customer_id;
    SELECT ca_id INTO first_account
    FROM customer_account
    LEFT JOIN holding_summary ON hs_ca_id = ca_id
    LEFT JOIN last_trade ON lt_s_symb = hs_s_symb
    WHERE ca_c_id = customer_id
    GROUP BY ca_id, ca_bal
    ORDER BY coalesce(sum(hs_qty * lt_price), 0), ca_id
    LIMIT 1;
    IF in_history <> 0 THEN
        PERFORM t_id, t_s_symb, t_qty, st_name, th_dts
        FROM (SELECT t_id AS id FROM trade WHERE t_ca_id = first_account ORDER BY t_dts DESC, t_id DESC LIMIT 10) AS latest
        JOIN trade ON t_id = id
        JOIN trade_history ON th_t_id = t_id
        JOIN status_type ON st_id = th_st_id
        ORDER BY th_dts DESC, t_id DESC
        LIMIT 30;
    END IF;
    RETURN first_account;
END
$$

-- name: assay_trade_order
CREATE OR REPLACE FUNCTION assay_trade_order(
    in_trade bigint, in_account bigint, in_is_owner int, in_tax_id text, in_last text, in_first text, in_symbol text,
    in_by_name int, in_company text, in_issue text, in_exchange text, in_type text, in_quantity int, in_bid numeric,
    in_is_margin int, in_lifo int, in_time timestamp
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    broker_id bigint;
    customer_id bigint;
    tax_status int;
    tier int;
    is_market int;
    rate numeric;
    charge numeric;
    status text;
BEGIN
    SELECT ca_b_id, ca_c_id, ca_tax_st, c_tier INTO STRICT broker_id, customer_id, tax_status, tier
    FROM customer_account
    JOIN customer ON c_id = ca_c_id
    JOIN broker ON b_id = ca_b_id
    WHERE ca_id = in_account;
    IF in_is_owner = 0 THEN
        PERFORM ap_acl FROM account_permission
        WHERE ap_ca_id = in_account AND ap_tax_id = in_tax_id AND ap_l_name = in_last AND ap_f_name = in_first;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'account % may not be traded for by %', in_account, in_tax_id USING ERRCODE = 'P0002';
        END IF;
    END IF;
    IF in_by_name <> 0 THEN
        PERFORM s_co_id, s_ex_id, s_name, s_symb, co_name
        FROM company JOIN security ON s_co_id = co_id WHERE co_name = in_company AND s_issue = in_issue;
    ELSE
        PERFORM s_co_id, s_ex_id, s_name, s_symb, co_name
        FROM security JOIN company ON co_id = s_co_id WHERE s_symb = in_symbol;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no security %', in_symbol USING ERRCODE = 'P0002';
    END IF;
    PERFORM lt_price FROM last_trade WHERE lt_s_symb = in_symbol;
    SELECT tt_is_mrkt INTO STRICT is_market FROM trade_type WHERE tt_id = in_type;
    PERFORM hs_qty FROM holding_summary WHERE hs_ca_id = in_account AND hs_s_symb = in_symbol;
    PERFORM h_qty, h_price FROM holding WHERE h_ca_id = in_account AND h_s_symb = in_symbol ORDER BY h_dts, h_t_id;
    IF tax_status <> 0 THEN
        PERFORM coalesce(sum(tx_rate), 0) FROM taxrate JOIN customer_taxrate ON cx_tx_id = tx_id WHERE cx_c_id = customer_id;
    END IF;
    SELECT cr_rate INTO STRICT rate FROM commission_rate
    WHERE cr_c_tier = tier AND cr_tt_id = in_type AND cr_ex_id = in_exchange AND cr_from_qty <= in_quantity
        AND cr_to_qty >= in_quantity;
    SELECT ch_chrg INTO STRICT charge FROM charge WHERE ch_c_tier = tier AND ch_tt_id = in_type;
    IF in_is_margin <> 0 THEN
        PERFORM ca_bal, coalesce(sum(hs_qty * lt_price), 0)
        FROM customer_account
        LEFT JOIN holding_summary ON hs_ca_id = ca_id
        LEFT JOIN last_trade ON lt_s_symb = hs_s_symb
        WHERE ca_id = in_account
        GROUP BY ca_bal;
    END IF;
    status := CASE WHEN is_market = 1 THEN 'SBMT' ELSE 'PNDG' END;
    INSERT INTO trade
        (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name, t_trade_price, t_chrg,
        t_comm, t_tax, t_lifo)
    VALUES (in_trade, in_time, status, in_type, 1 - in_is_margin, in_symbol, in_quantity, in_bid, in_account,
        in_first || ' ' || in_last, NULL, charge, round(in_quantity * in_bid * rate / 100, 2), 0, in_lifo);
    INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES (in_trade, in_time, status);
    IF is_market = 0 THEN
        INSERT INTO trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id)
        VALUES (in_trade, in_type, in_symbol, in_quantity, in_bid, broker_id);
    END IF;
    RETURN broker_id;
END
$$

-- name: assay_trade_result
CREATE OR REPLACE FUNCTION assay_trade_result(in_trade bigint, in_price numeric, in_time timestamp, in_due date) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    executed trade%ROWTYPE;
    lots refcursor;
    lot record;
    broker_id bigint;
    customer_id bigint;
    tax_status int;
    tier int;
    is_sell int;
    title text;
    held int;
    open_quantity int;
    taken int;
    after_quantity int;
    bought numeric := 0;
    sold numeric := 0;
    tax_rate numeric;
    rate numeric;
    tax numeric := 0;
    commission numeric;
    amount numeric;
BEGIN
    SELECT * INTO STRICT executed FROM trade WHERE t_id = in_trade FOR UPDATE;
    IF executed.t_st_id <> 'SBMT' THEN
        RAISE EXCEPTION 'trade % is not at the market', in_trade USING ERRCODE = 'P0002';
    END IF;
    SELECT tt_is_sell, tt_name INTO STRICT is_sell, title FROM trade_type WHERE tt_id = executed.t_tt_id;
    SELECT ca_b_id, ca_c_id, ca_tax_st INTO STRICT broker_id, customer_id, tax_status
    FROM customer_account WHERE ca_id = executed.t_ca_id FOR UPDATE;
    SELECT hs_qty INTO held FROM holding_summary WHERE hs_ca_id = executed.t_ca_id AND hs_s_symb = executed.t_s_symb;
    open_quantity := CASE WHEN is_sell = 1 THEN -executed.t_qty ELSE executed.t_qty END;
    -- Lots refer to the summary: it comes before the first of them and goes after the last.
    IF held IS NULL THEN
        held := open_quantity;
        INSERT INTO holding_summary (hs_ca_id, hs_s_symb, hs_qty) VALUES (executed.t_ca_id, executed.t_s_symb, held);
    ELSE
        held := held + open_quantity;
        IF held <> 0 THEN
            UPDATE holding_summary SET hs_qty = held WHERE hs_ca_id = executed.t_ca_id AND hs_s_symb = executed.t_s_symb;
        END IF;
    END IF;

    IF executed.t_lifo <> 0 THEN
        OPEN lots FOR SELECT h_t_id, h_qty, h_price FROM holding
            WHERE h_ca_id = executed.t_ca_id AND h_s_symb = executed.t_s_symb ORDER BY h_dts DESC, h_t_id DESC FOR UPDATE;
    ELSE
        OPEN lots FOR SELECT h_t_id, h_qty, h_price FROM holding
            WHERE h_ca_id = executed.t_ca_id AND h_s_symb = executed.t_s_symb ORDER BY h_dts, h_t_id FOR UPDATE;
    END IF;
    WHILE open_quantity <> 0 LOOP
        FETCH lots INTO lot;
        EXIT WHEN NOT FOUND OR sign(lot.h_qty) <> -sign(open_quantity);
        taken := least(abs(open_quantity), abs(lot.h_qty));
        after_quantity := lot.h_qty + sign(open_quantity)::int * taken;
        INSERT INTO holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
        VALUES (lot.h_t_id, in_trade, lot.h_qty, after_quantity);
        IF after_quantity = 0 THEN
            DELETE FROM holding WHERE h_t_id = lot.h_t_id;
        ELSE
            UPDATE holding SET h_qty = after_quantity WHERE h_t_id = lot.h_t_id;
        END IF;
        bought := bought + taken * CASE WHEN is_sell = 1 THEN lot.h_price ELSE in_price END;
        sold := sold + taken * CASE WHEN is_sell = 1 THEN in_price ELSE lot.h_price END;
        open_quantity := open_quantity - sign(open_quantity)::int * taken;
    END LOOP;
    CLOSE lots;
    IF open_quantity <> 0 THEN
        INSERT INTO holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
        VALUES (in_trade, in_trade, 0, open_quantity);
        INSERT INTO holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty)
        VALUES (in_trade, executed.t_ca_id, executed.t_s_symb, in_time, in_price, open_quantity);
    END IF;
    IF held = 0 THEN
        DELETE FROM holding_summary WHERE hs_ca_id = executed.t_ca_id AND hs_s_symb = executed.t_s_symb;
    END IF;

    SELECT coalesce(sum(tx_rate), 0) INTO tax_rate
    FROM taxrate JOIN customer_taxrate ON cx_tx_id = tx_id WHERE cx_c_id = customer_id;
    SELECT c_tier INTO STRICT tier FROM customer WHERE c_id = customer_id;
    SELECT cr_rate INTO STRICT rate FROM commission_rate
    WHERE cr_c_tier = tier AND cr_tt_id = executed.t_tt_id AND cr_from_qty <= executed.t_qty AND cr_to_qty >= executed.t_qty
        AND cr_ex_id = (SELECT s_ex_id FROM security WHERE s_symb = executed.t_s_symb);
    IF tax_status <> 0 THEN
        tax := trunc(greatest(sold - bought, 0) * tax_rate, 2);
    END IF;
    commission := round(executed.t_qty * in_price * rate / 100, 2);

    UPDATE trade
    SET t_comm = commission, t_dts = in_time, t_st_id = 'CMPT', t_trade_price = in_price, t_tax = tax
    WHERE t_id = in_trade;
    INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES (in_trade, in_time, 'CMPT');
    amount := executed.t_qty * in_price;
    IF is_sell = 1 THEN
        amount := amount - executed.t_chrg - commission - CASE WHEN tax_status = 1 THEN tax ELSE 0 END;
    ELSE
        amount := -(amount + executed.t_chrg + commission);
    END IF;
    INSERT INTO settlement (se_t_id, se_cash_type, se_cash_due_date, se_amt)
    VALUES (in_trade, CASE WHEN executed.t_is_cash <> 0 THEN 'Cash Account' ELSE 'Margin' END, in_due, amount);
    IF executed.t_is_cash <> 0 THEN
        UPDATE customer_account SET ca_bal = ca_bal + amount WHERE ca_id = executed.t_ca_id;
        INSERT INTO cash_transaction (ct_t_id, ct_dts, ct_amt, ct_name)
        VALUES (in_trade, in_time, amount, title || ' ' || executed.t_qty || ' shares of ' || executed.t_s_symb);
    END IF;
    -- The broker's row is the most wanted one: it is held shortest.
    UPDATE broker SET b_comm_total = b_comm_total + commission, b_num_trades = b_num_trades + 1 WHERE b_id = broker_id;
    RETURN held;
END
$$

-- name: assay_trades
-- Trades by their keys, else of an account, else of a security; `in_change` changes each a little. Rows are locked in the order of
-- their keys.
CREATE OR REPLACE FUNCTION assay_trades(
    in_trades bigint[], in_account bigint, in_symbol text, in_from timestamp, in_to timestamp, in_change int
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found_trades bigint[] := in_trades;
    one bigint;
BEGIN
    IF in_account <> 0 THEN
        found_trades := ARRAY(
            SELECT t_id FROM trade WHERE t_ca_id = in_account AND t_dts >= in_from AND t_dts <= in_to AND t_st_id = 'CMPT'
            ORDER BY t_dts, t_id LIMIT 20);
    ELSIF in_symbol <> '' THEN
        found_trades := ARRAY(
            SELECT t_id FROM trade WHERE t_s_symb = in_symbol AND t_dts >= in_from AND t_dts <= in_to AND t_st_id = 'CMPT'
            ORDER BY t_dts, t_id LIMIT 20);
    END IF;
    IF in_change <> 0 THEN
        FOR one IN SELECT DISTINCT id FROM unnest(found_trades) AS id ORDER BY id LOOP
            IF in_account <> 0 THEN
                UPDATE settlement
                SET se_cash_type = CASE se_cash_type
                    WHEN 'Cash Account' THEN 'Cash'
                    WHEN 'Cash' THEN 'Cash Account'
                    WHEN 'Margin' THEN 'Margin Account'
                    ELSE 'Margin' END
                WHERE se_t_id = one;
            ELSIF in_symbol <> '' THEN
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
        END LOOP;
    END IF;
    PERFORM t_id, t_bid_price, t_exec_name, t_is_cash, tt_is_mrkt, t_trade_price, tt_name, t_s_symb, t_qty, t_dts, t_tt_id
    FROM trade JOIN trade_type ON tt_id = t_tt_id WHERE t_id = ANY (found_trades);
    PERFORM se_t_id, se_amt, se_cash_due_date, se_cash_type FROM settlement WHERE se_t_id = ANY (found_trades);
    PERFORM ct_t_id, ct_amt, ct_dts, ct_name FROM cash_transaction WHERE ct_t_id = ANY (found_trades);
    PERFORM th_t_id, th_dts, th_st_id FROM trade_history WHERE th_t_id = ANY (found_trades);
    RETURN cardinality(found_trades);
END
$$

-- name: assay_trade_holdings
CREATE OR REPLACE FUNCTION assay_trade_holdings(in_account bigint, in_from timestamp) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    first_trade bigint;
BEGIN
    SELECT t_id INTO first_trade FROM trade WHERE t_ca_id = in_account AND t_dts >= in_from ORDER BY t_dts, t_id LIMIT 1;
    PERFORM hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty
    FROM holding_history
    WHERE hh_h_t_id IN (SELECT hh_h_t_id FROM holding_history WHERE hh_t_id = first_trade)
    ORDER BY hh_h_t_id, hh_t_id
    LIMIT 20;
    RETURN coalesce(first_trade, 0);
END
$$

-- name: assay_market_feed
-- One security: its price, and the limit orders that this lets through.
CREATE OR REPLACE FUNCTION assay_market_feed(in_symbol text, in_price numeric, in_volume bigint, in_time timestamp)
RETURNS TABLE (trade_id bigint, quantity int, broker_id bigint) LANGUAGE plpgsql AS $$
DECLARE
    request record;
BEGIN
    UPDATE last_trade SET lt_price = in_price, lt_vol = lt_vol + in_volume, lt_dts = in_time WHERE lt_s_symb = in_symbol;
    FOR request IN
        SELECT tr_t_id, tr_qty, tr_b_id
        FROM trade_request
        WHERE tr_s_symb = in_symbol
            AND ((tr_tt_id = 'TSL' AND tr_bid_price >= in_price) OR (tr_tt_id = 'TLS' AND tr_bid_price <= in_price)
                OR (tr_tt_id = 'TLB' AND tr_bid_price >= in_price))
        ORDER BY tr_t_id
        LIMIT 16
        FOR UPDATE
    LOOP
        UPDATE trade SET t_dts = in_time, t_st_id = 'SBMT' WHERE t_id = request.tr_t_id;
        DELETE FROM trade_request WHERE tr_t_id = request.tr_t_id;
        INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES (request.tr_t_id, in_time, 'SBMT');
        trade_id := request.tr_t_id;
        quantity := request.tr_qty;
        broker_id := request.tr_b_id;
        RETURN NEXT;
    END LOOP;
END
$$
