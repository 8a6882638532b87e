-- The transactions that take several round trips as statements. Tried on Babelfish, a TDS server; not verified on SQL Server.
--
-- A procedure runs within the transaction of its caller, who has set the isolation level, and reads and writes what statements.sql does,
-- with the same locks. Any error undoes the transaction. What is only read is not sent back. Each is dropped first: not all servers that
-- speak T-SQL have CREATE OR ALTER.

-- name: drop.assay_customer_position
DROP PROCEDURE IF EXISTS assay_customer_position

-- name: assay_customer_position
-- By tax number unless it is empty.
CREATE PROCEDURE assay_customer_position @customer bigint, @tax_id varchar(20), @history int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @first_account bigint, @read_text varchar(255), @read_count int;
    IF @tax_id <> ''
    BEGIN
        SET @customer = NULL; -- a SELECT without a row leaves its variables as they are
        SELECT @customer = c_id FROM customer WHERE c_tax_id = @tax_id;
    END;
    SELECT @read_text = concat(c_l_name, c_f_name, c_email_1, c_email_2) FROM customer WHERE c_id = @customer;
    SELECT TOP (1) @first_account = ca_id
    FROM customer_account
    LEFT JOIN holding_summary ON hs_ca_id = ca_id
    LEFT JOIN last_trade ON lt_s_symb = hs_s_symb
    WHERE ca_c_id = @customer
    GROUP BY ca_id, ca_bal
    ORDER BY coalesce(sum(hs_qty * lt_price), 0), ca_id;
    IF @history <> 0
        SELECT @read_count = count(*)
        FROM (SELECT TOP (10) t_id AS id FROM trade WHERE t_ca_id = @first_account ORDER BY t_dts DESC, t_id DESC) AS latest
        JOIN trade ON t_id = id
        JOIN trade_history ON th_t_id = t_id
        JOIN status_type ON st_id = th_st_id;
    SELECT @first_account AS first_account;
END

-- name: drop.assay_trade_order
DROP PROCEDURE IF EXISTS assay_trade_order

-- name: assay_trade_order
CREATE PROCEDURE assay_trade_order
    @trade bigint, @account bigint, @is_owner int, @tax_id varchar(20), @last varchar(25), @first varchar(20), @symbol varchar(15),
    @by_name int, @company varchar(60), @issue varchar(6), @exchange varchar(6), @type char(3), @quantity int, @bid decimal(8, 2),
    @is_margin int, @lifo int, @time datetime2
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @broker_id bigint, @customer_id bigint, @tax_status int, @tier int, @is_market int, @rate decimal(5, 2);
    DECLARE @charge decimal(10, 2), @status char(4), @found_count int, @read_number decimal(24, 4);
    SELECT @broker_id = ca_b_id, @customer_id = ca_c_id, @tax_status = ca_tax_st, @tier = c_tier
    FROM customer_account
    JOIN customer ON c_id = ca_c_id
    JOIN broker ON b_id = ca_b_id
    WHERE ca_id = @account;
    IF @broker_id IS NULL
        THROW 50002, 'the account of the order does not exist', 1;
    IF @is_owner = 0
    BEGIN
        SELECT @found_count = count(*) FROM account_permission
        WHERE ap_ca_id = @account AND ap_tax_id = @tax_id AND ap_l_name = @last AND ap_f_name = @first;
        IF @found_count = 0
            THROW 50002, 'the account may not be traded for by who gives the order', 1;
    END;
    IF @by_name <> 0
        SELECT @found_count = count(*) FROM company JOIN security ON s_co_id = co_id WHERE co_name = @company AND s_issue = @issue;
    ELSE
        SELECT @found_count = count(*) FROM security JOIN company ON co_id = s_co_id WHERE s_symb = @symbol;
    IF @found_count = 0
        THROW 50002, 'the security of the order does not exist', 1;
    SELECT @read_number = lt_price FROM last_trade WHERE lt_s_symb = @symbol;
    SELECT @is_market = tt_is_mrkt FROM trade_type WHERE tt_id = @type;
    SELECT @read_number = sum(hs_qty) FROM holding_summary WHERE hs_ca_id = @account AND hs_s_symb = @symbol;
    SELECT @read_number = sum(h_qty * h_price) FROM holding WHERE h_ca_id = @account AND h_s_symb = @symbol;
    IF @tax_status <> 0
        SELECT @read_number = coalesce(sum(tx_rate), 0)
        FROM taxrate JOIN customer_taxrate ON cx_tx_id = tx_id WHERE cx_c_id = @customer_id;
    SELECT @rate = cr_rate FROM commission_rate
    WHERE cr_c_tier = @tier AND cr_tt_id = @type AND cr_ex_id = @exchange AND cr_from_qty <= @quantity AND cr_to_qty >= @quantity;
    SELECT @charge = ch_chrg FROM charge WHERE ch_c_tier = @tier AND ch_tt_id = @type;
    IF @is_margin <> 0
        SELECT @read_number = coalesce(sum(hs_qty * lt_price), 0)
        FROM customer_account
        LEFT JOIN holding_summary ON hs_ca_id = ca_id
        LEFT JOIN last_trade ON lt_s_symb = hs_s_symb
        WHERE ca_id = @account;
    SET @status = CASE WHEN @is_market = 1 THEN 'SBMT' ELSE 'PNDG' END;
    INSERT INTO trade
        (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name, t_trade_price, t_chrg,
        t_comm, t_tax, t_lifo)
    VALUES (@trade, @time, @status, @type, 1 - @is_margin, @symbol, @quantity, @bid, @account, concat(@first, ' ', @last), NULL,
        @charge, round(@quantity * @bid * @rate / 100, 2), 0, @lifo);
    INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES (@trade, @time, @status);
    IF @is_market = 0
        INSERT INTO trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id)
        VALUES (@trade, @type, @symbol, @quantity, @bid, @broker_id);
    SELECT @broker_id AS broker_id;
END

-- name: drop.assay_trade_result
DROP PROCEDURE IF EXISTS assay_trade_result

-- name: assay_trade_result
CREATE PROCEDURE assay_trade_result @trade bigint, @price decimal(8, 2), @time datetime2, @due date
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @account bigint, @type char(3), @symbol varchar(15), @quantity int, @charge decimal(10, 2), @is_lifo int, @is_cash int;
    DECLARE @status char(4), @broker_id bigint, @customer_id bigint, @tax_status int, @tier int, @is_sell int, @title varchar(12);
    DECLARE @held int, @open int, @lot_count int, @lot int = 0, @lot_trade bigint, @lot_quantity int, @lot_price decimal(8, 2);
    DECLARE @taken int, @after int, @bought decimal(20, 2) = 0, @sold decimal(20, 2) = 0, @tax_rate decimal(10, 5);
    DECLARE @rate decimal(5, 2), @tax decimal(10, 2) = 0, @commission decimal(10, 2), @amount decimal(14, 2);
    DECLARE @lots TABLE (number int NOT NULL PRIMARY KEY, id bigint NOT NULL, quantity int NOT NULL, price decimal(8, 2) NOT NULL);
    SELECT @account = t_ca_id, @type = t_tt_id, @symbol = t_s_symb, @quantity = t_qty, @charge = t_chrg, @is_lifo = t_lifo,
        @is_cash = t_is_cash, @status = t_st_id
    FROM trade WITH (UPDLOCK) WHERE t_id = @trade;
    IF @status IS NULL OR @status <> 'SBMT'
        THROW 50002, 'the trade is not at the market', 1;
    SELECT @is_sell = tt_is_sell, @title = tt_name FROM trade_type WHERE tt_id = @type;
    SELECT @broker_id = ca_b_id, @customer_id = ca_c_id, @tax_status = ca_tax_st
    FROM customer_account WITH (UPDLOCK) WHERE ca_id = @account;
    SELECT @held = hs_qty FROM holding_summary WHERE hs_ca_id = @account AND hs_s_symb = @symbol;
    SET @open = CASE WHEN @is_sell = 1 THEN -@quantity ELSE @quantity END;
    -- Lots refer to the summary: it comes before the first of them and goes after the last.
    IF @held IS NULL
    BEGIN
        SET @held = @open;
        INSERT INTO holding_summary (hs_ca_id, hs_s_symb, hs_qty) VALUES (@account, @symbol, @held);
    END
    ELSE
    BEGIN
        SET @held = @held + @open;
        IF @held <> 0
            UPDATE holding_summary SET hs_qty = @held WHERE hs_ca_id = @account AND hs_s_symb = @symbol;
    END;

    IF @is_lifo <> 0
        INSERT INTO @lots (number, id, quantity, price)
        SELECT row_number() OVER (ORDER BY h_dts DESC, h_t_id DESC), h_t_id, h_qty, h_price
        FROM holding WITH (UPDLOCK) WHERE h_ca_id = @account AND h_s_symb = @symbol;
    ELSE
        INSERT INTO @lots (number, id, quantity, price)
        SELECT row_number() OVER (ORDER BY h_dts, h_t_id), h_t_id, h_qty, h_price
        FROM holding WITH (UPDLOCK) WHERE h_ca_id = @account AND h_s_symb = @symbol;
    SELECT @lot_count = count(*) FROM @lots;
    WHILE @open <> 0 AND @lot < @lot_count
    BEGIN
        SET @lot = @lot + 1;
        SELECT @lot_trade = id, @lot_quantity = quantity, @lot_price = price FROM @lots WHERE number = @lot;
        IF sign(@lot_quantity) <> -sign(@open)
            BREAK;
        SET @taken = CASE WHEN abs(@open) < abs(@lot_quantity) THEN abs(@open) ELSE abs(@lot_quantity) END;
        SET @after = @lot_quantity + sign(@open) * @taken;
        INSERT INTO holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty) VALUES (@lot_trade, @trade, @lot_quantity, @after);
        IF @after = 0
            DELETE FROM holding WHERE h_t_id = @lot_trade;
        ELSE
            UPDATE holding SET h_qty = @after WHERE h_t_id = @lot_trade;
        SET @bought = @bought + @taken * CASE WHEN @is_sell = 1 THEN @lot_price ELSE @price END;
        SET @sold = @sold + @taken * CASE WHEN @is_sell = 1 THEN @price ELSE @lot_price END;
        SET @open = @open - sign(@open) * @taken;
    END;
    IF @open <> 0
    BEGIN
        INSERT INTO holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty) VALUES (@trade, @trade, 0, @open);
        INSERT INTO holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty)
        VALUES (@trade, @account, @symbol, @time, @price, @open);
    END;
    IF @held = 0
        DELETE FROM holding_summary WHERE hs_ca_id = @account AND hs_s_symb = @symbol;

    SELECT @tax_rate = coalesce(sum(tx_rate), 0)
    FROM taxrate JOIN customer_taxrate ON cx_tx_id = tx_id WHERE cx_c_id = @customer_id;
    SELECT @tier = c_tier FROM customer WHERE c_id = @customer_id;
    SELECT @rate = cr_rate FROM commission_rate
    WHERE cr_c_tier = @tier AND cr_tt_id = @type AND cr_from_qty <= @quantity AND cr_to_qty >= @quantity
        AND cr_ex_id = (SELECT s_ex_id FROM security WHERE s_symb = @symbol);
    IF @tax_status <> 0 AND @sold > @bought
        SET @tax = round((@sold - @bought) * @tax_rate, 2, 1);
    SET @commission = round(@quantity * @price * @rate / 100, 2);

    UPDATE trade
    SET t_comm = @commission, t_dts = @time, t_st_id = 'CMPT', t_trade_price = @price, t_tax = @tax
    WHERE t_id = @trade;
    INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES (@trade, @time, 'CMPT');
    SET @amount = @quantity * @price;
    IF @is_sell = 1
        SET @amount = @amount - @charge - @commission - CASE WHEN @tax_status = 1 THEN @tax ELSE 0 END;
    ELSE
        SET @amount = -(@amount + @charge + @commission);
    INSERT INTO settlement (se_t_id, se_cash_type, se_cash_due_date, se_amt)
    VALUES (@trade, CASE WHEN @is_cash <> 0 THEN 'Cash Account' ELSE 'Margin' END, @due, @amount);
    IF @is_cash <> 0
    BEGIN
        UPDATE customer_account SET ca_bal = ca_bal + @amount WHERE ca_id = @account;
        INSERT INTO cash_transaction (ct_t_id, ct_dts, ct_amt, ct_name)
        VALUES (@trade, @time, @amount, concat(@title, ' ', @quantity, ' shares of ', @symbol));
    END;
    -- The broker's row is the most wanted one: it is held shortest.
    UPDATE broker SET b_comm_total = b_comm_total + @commission, b_num_trades = b_num_trades + 1 WHERE b_id = @broker_id;
    SELECT @held AS held;
END

-- name: drop.assay_trades
DROP PROCEDURE IF EXISTS assay_trades

-- name: assay_trades
-- Trades by their keys, a JSON array, else of an account, else of a security; `@change` changes each a little. Rows are locked in the
-- order of their keys.
CREATE PROCEDURE assay_trades @trades nvarchar(max), @account bigint, @symbol varchar(15), @from datetime2, @to datetime2, @change int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @one bigint, @read_count int, @found_count int;
    DECLARE @found TABLE (id bigint NOT NULL PRIMARY KEY);
    IF @account <> 0
        INSERT INTO @found (id)
        SELECT TOP (20) t_id FROM trade
        WHERE t_ca_id = @account AND t_dts >= @from AND t_dts <= @to AND t_st_id = 'CMPT' ORDER BY t_dts, t_id;
    ELSE IF @symbol <> ''
        INSERT INTO @found (id)
        SELECT TOP (20) t_id FROM trade
        WHERE t_s_symb = @symbol AND t_dts >= @from AND t_dts <= @to AND t_st_id = 'CMPT' ORDER BY t_dts, t_id;
    ELSE
        INSERT INTO @found (id) SELECT DISTINCT CAST([value] AS bigint) FROM openjson(@trades);
    IF @change <> 0
    BEGIN
        SELECT @one = min(id) FROM @found;
        WHILE @one IS NOT NULL
        BEGIN
            IF @account <> 0
                UPDATE settlement
                SET se_cash_type = CASE se_cash_type
                    WHEN 'Cash Account' THEN 'Cash'
                    WHEN 'Cash' THEN 'Cash Account'
                    WHEN 'Margin' THEN 'Margin Account'
                    ELSE 'Margin' END
                WHERE se_t_id = @one;
            ELSE IF @symbol <> ''
                UPDATE cash_transaction
                SET ct_name = CASE WHEN ct_name LIKE '% shares of %' THEN replace(ct_name, ' shares of ', ' Shares of ')
                    ELSE replace(ct_name, ' Shares of ', ' shares of ') END
                WHERE ct_t_id = @one;
            ELSE
                UPDATE trade
                SET t_exec_name = CASE WHEN t_exec_name LIKE '% X %' THEN replace(t_exec_name, ' X ', ' ')
                    ELSE replace(t_exec_name, ' ', ' X ') END
                WHERE t_id = @one;
            SELECT @one = min(id) FROM @found WHERE id > @one;
        END;
    END;
    SELECT @read_count = count(t_exec_name) FROM @found JOIN trade ON t_id = id JOIN trade_type ON tt_id = t_tt_id;
    SELECT @read_count = count(se_amt) FROM @found JOIN settlement ON se_t_id = id;
    SELECT @read_count = count(ct_name) FROM @found JOIN cash_transaction ON ct_t_id = id;
    SELECT @read_count = count(th_st_id) FROM @found JOIN trade_history ON th_t_id = id;
    SELECT @found_count = count(*) FROM @found;
    SELECT @found_count AS found_count;
END

-- name: drop.assay_trade_holdings
DROP PROCEDURE IF EXISTS assay_trade_holdings

-- name: assay_trade_holdings
CREATE PROCEDURE assay_trade_holdings @account bigint, @from datetime2
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @first_trade bigint = 0, @read_count int;
    SELECT TOP (1) @first_trade = t_id FROM trade WHERE t_ca_id = @account AND t_dts >= @from ORDER BY t_dts, t_id;
    SELECT @read_count = count(*)
    FROM (
        SELECT TOP (20) hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty
        FROM holding_history
        WHERE hh_h_t_id IN (SELECT hh_h_t_id FROM holding_history WHERE hh_t_id = @first_trade)
        ORDER BY hh_h_t_id, hh_t_id
    ) AS changes;
    SELECT @first_trade AS first_trade;
END

-- name: drop.assay_market_feed
DROP PROCEDURE IF EXISTS assay_market_feed

-- name: assay_market_feed
-- One security: its price, and the limit orders that this lets through.
CREATE PROCEDURE assay_market_feed @symbol varchar(15), @price decimal(8, 2), @volume bigint, @time datetime2
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @one bigint;
    DECLARE @requests TABLE (id bigint NOT NULL PRIMARY KEY, quantity int NOT NULL, broker_id bigint NOT NULL);
    UPDATE last_trade SET lt_price = @price, lt_vol = lt_vol + @volume, lt_dts = @time WHERE lt_s_symb = @symbol;
    INSERT INTO @requests (id, quantity, broker_id)
    SELECT TOP (16) tr_t_id, tr_qty, tr_b_id
    FROM trade_request WITH (UPDLOCK)
    WHERE tr_s_symb = @symbol
        AND ((tr_tt_id = 'TSL' AND tr_bid_price >= @price) OR (tr_tt_id = 'TLS' AND tr_bid_price <= @price)
            OR (tr_tt_id = 'TLB' AND tr_bid_price >= @price))
    ORDER BY tr_t_id;
    SELECT @one = min(id) FROM @requests;
    WHILE @one IS NOT NULL
    BEGIN
        UPDATE trade SET t_dts = @time, t_st_id = 'SBMT' WHERE t_id = @one;
        DELETE FROM trade_request WHERE tr_t_id = @one;
        INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES (@one, @time, 'SBMT');
        SELECT @one = min(id) FROM @requests WHERE id > @one;
    END;
    SELECT id, quantity, broker_id FROM @requests ORDER BY id;
END
