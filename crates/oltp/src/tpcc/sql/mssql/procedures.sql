-- Not verified on SQL Server.
--
-- A procedure is one transaction; any error undoes it and goes on to the client. Locks are as in statements.sql.
-- Each is dropped first: not all servers that speak T-SQL have CREATE OR ALTER.

-- name: drop.assay_new_order
DROP PROCEDURE IF EXISTS assay_new_order

-- name: assay_new_order
-- Lines are JSON, [[item, supplying warehouse, quantity], ...], in the order of (warehouse, item) in which stock rows are locked.
-- An item that does not exist is reported after all other work has been done, which is then undone.
CREATE PROCEDURE assay_new_order @w_id int, @d_id int, @c_id int, @lines nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @line_count int, @line_number int = 0, @unknown_count int = 0, @all_local int, @order_id int;
    DECLARE @i_id int, @supply_w_id int, @quantity int, @dist_info char(24), @item_name varchar(24), @item_data varchar(50);
    DECLARE @price decimal(12, 2), @line_amount decimal(12, 2), @amount decimal(14, 2) = 0, @stock_data varchar(50);
    DECLARE @warehouse_tax decimal(4, 4), @district_tax decimal(4, 4), @discount decimal(4, 4);
    DECLARE @customer_last varchar(16), @customer_credit char(2);
    DECLARE @line TABLE (number int NOT NULL PRIMARY KEY, i_id int NOT NULL, w_id int NOT NULL, quantity int NOT NULL);
    BEGIN TRY
        INSERT INTO @line (number, i_id, w_id, quantity)
        SELECT CAST([key] AS int) + 1, CAST(json_value([value], '$[0]') AS int), CAST(json_value([value], '$[1]') AS int),
            CAST(json_value([value], '$[2]') AS int)
        FROM openjson(@lines);
        SELECT @line_count = count(*), @all_local = min(CASE WHEN w_id = @w_id THEN 1 ELSE 0 END) FROM @line;

        BEGIN TRANSACTION;
        SELECT @warehouse_tax = w_tax FROM warehouse WHERE w_id = @w_id;
        SELECT @discount = c_discount, @customer_last = c_last, @customer_credit = c_credit
        FROM customer WHERE c_w_id = @w_id AND c_d_id = @d_id AND c_id = @c_id;
        UPDATE district SET @order_id = d_next_o_id, @district_tax = d_tax, d_next_o_id = d_next_o_id + 1
        WHERE d_w_id = @w_id AND d_id = @d_id;
        IF @order_id IS NULL OR @discount IS NULL
            THROW 50002, 'the customer of the order does not exist', 1;

        INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
        VALUES (@order_id, @d_id, @w_id, @c_id, sysutcdatetime(), NULL, @line_count, @all_local);
        INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (@order_id, @d_id, @w_id);

        WHILE @line_number < @line_count
        BEGIN
            SET @line_number += 1;
            SELECT @i_id = i_id, @supply_w_id = w_id, @quantity = quantity FROM @line WHERE number = @line_number;
            SET @price = NULL; -- a SELECT without a row leaves its variables as they are
            SELECT @price = i_price, @item_name = i_name, @item_data = i_data FROM item WHERE i_id = @i_id;
            IF @price IS NULL
                SET @unknown_count += 1;
            ELSE
            BEGIN
                UPDATE stock
                SET s_quantity = s_quantity - @quantity + CASE WHEN s_quantity >= @quantity + 10 THEN 0 ELSE 91 END,
                    s_ytd = s_ytd + @quantity,
                    s_order_cnt = s_order_cnt + 1,
                    s_remote_cnt = s_remote_cnt + CASE WHEN @supply_w_id = @w_id THEN 0 ELSE 1 END,
                    @stock_data = s_data,
                    @dist_info = CASE @d_id
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
                    END
                WHERE s_i_id = @i_id AND s_w_id = @supply_w_id;
                SET @line_amount = @quantity * @price;
                SET @amount += @line_amount;
                INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d,
                    ol_quantity, ol_amount, ol_dist_info)
                VALUES (@order_id, @d_id, @w_id, @line_number, @i_id, @supply_w_id, NULL, @quantity, @line_amount, @dist_info);
            END;
        END;

        IF @unknown_count > 0
            THROW 50001, 'an item of the order does not exist', 1;
        COMMIT;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK;
        THROW;
    END CATCH;
    SELECT @order_id AS order_id,
        CAST(round(@amount * (1 - @discount) * (1 + @warehouse_tax + @district_tax) * 100, 0) AS bigint) AS total_cents;
END

-- name: drop.assay_payment
DROP PROCEDURE IF EXISTS assay_payment

-- name: assay_payment
-- Rows are locked from the least to the most wanted: the warehouse is held shortest.
CREATE PROCEDURE assay_payment @w_id int, @d_id int, @c_w_id int, @c_d_id int, @c_id int, @last varchar(16),
    @amount decimal(12, 2)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @namesake_count int, @balance decimal(12, 2), @warehouse_name varchar(10), @district_name varchar(10);
    BEGIN TRY
        BEGIN TRANSACTION;
        IF @c_id = 0
        BEGIN
            SELECT @namesake_count = count(*) FROM customer WHERE c_w_id = @c_w_id AND c_d_id = @c_d_id AND c_last = @last;
            IF @namesake_count > 0
                SELECT @c_id = c_id FROM customer WHERE c_w_id = @c_w_id AND c_d_id = @c_d_id AND c_last = @last
                ORDER BY c_first OFFSET (@namesake_count + 1) / 2 - 1 ROWS FETCH NEXT 1 ROWS ONLY;
        END;

        UPDATE customer
        SET @balance = c_balance = c_balance - @amount,
            c_ytd_payment = c_ytd_payment + @amount,
            c_payment_cnt = c_payment_cnt + 1,
            c_data = CASE
                WHEN c_credit = 'BC'
                THEN left(concat(c_id, ' ', c_d_id, ' ', c_w_id, ' ', @d_id, ' ', @w_id, ' ', @amount, ' ', c_data), 500)
                ELSE c_data
            END
        WHERE c_w_id = @c_w_id AND c_d_id = @c_d_id AND c_id = @c_id;
        IF @balance IS NULL
            THROW 50002, 'the customer of the payment does not exist', 1;
        UPDATE district SET @district_name = d_name, d_ytd = d_ytd + @amount WHERE d_w_id = @w_id AND d_id = @d_id;
        UPDATE warehouse SET @warehouse_name = w_name, w_ytd = w_ytd + @amount WHERE w_id = @w_id;
        INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        VALUES (@c_id, @c_d_id, @c_w_id, @d_id, @w_id, sysutcdatetime(), @amount,
            concat(@warehouse_name, '    ', @district_name));
        COMMIT;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK;
        THROW;
    END CATCH;
    SELECT @c_id AS customer_id, @balance AS balance;
END

-- name: drop.assay_order_status
DROP PROCEDURE IF EXISTS assay_order_status

-- name: assay_order_status
CREATE PROCEDURE assay_order_status @w_id int, @d_id int, @c_id int, @last varchar(16)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @namesake_count int, @balance decimal(12, 2), @order_id int, @entered datetime2(3), @carrier_id int;
    DECLARE @line_count int, @amount decimal(38, 2), @delivered datetime2(3);
    BEGIN TRY
        BEGIN TRANSACTION;
        IF @c_id = 0
        BEGIN
            SELECT @namesake_count = count(*) FROM customer WHERE c_w_id = @w_id AND c_d_id = @d_id AND c_last = @last;
            IF @namesake_count > 0
                SELECT @c_id = c_id FROM customer WHERE c_w_id = @w_id AND c_d_id = @d_id AND c_last = @last
                ORDER BY c_first OFFSET (@namesake_count + 1) / 2 - 1 ROWS FETCH NEXT 1 ROWS ONLY;
        END;
        SELECT @balance = c_balance FROM customer WHERE c_w_id = @w_id AND c_d_id = @d_id AND c_id = @c_id;
        SELECT TOP (1) @order_id = o_id, @entered = o_entry_d, @carrier_id = o_carrier_id
        FROM orders WHERE o_w_id = @w_id AND o_d_id = @d_id AND o_c_id = @c_id ORDER BY o_id DESC;
        SELECT @line_count = count(*), @amount = sum(ol_quantity * ol_amount), @delivered = max(ol_delivery_d)
        FROM order_line WHERE ol_w_id = @w_id AND ol_d_id = @d_id AND ol_o_id = @order_id;
        COMMIT;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK;
        THROW;
    END CATCH;
    SELECT @c_id AS customer_id, @order_id AS order_id, @line_count AS line_count;
END

-- name: drop.assay_delivery
DROP PROCEDURE IF EXISTS assay_delivery

-- name: assay_delivery
CREATE PROCEDURE assay_delivery @w_id int, @carrier_id int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @d_id int = 1, @order_id int, @customer_id int, @amount decimal(14, 2), @delivered_count int = 0;
    BEGIN TRY
        BEGIN TRANSACTION;
        WHILE @d_id <= 10
        BEGIN
            SET @order_id = NULL; -- a SELECT without a row leaves its variables as they are
            SELECT TOP (1) @order_id = no_o_id
            FROM new_order WITH (UPDLOCK, ROWLOCK) WHERE no_w_id = @w_id AND no_d_id = @d_id ORDER BY no_o_id;
            IF @order_id IS NOT NULL
            BEGIN
                DELETE FROM new_order WHERE no_w_id = @w_id AND no_d_id = @d_id AND no_o_id = @order_id;
                UPDATE orders SET @customer_id = o_c_id, o_carrier_id = @carrier_id
                WHERE o_w_id = @w_id AND o_d_id = @d_id AND o_id = @order_id;
                UPDATE order_line SET ol_delivery_d = sysutcdatetime()
                WHERE ol_w_id = @w_id AND ol_d_id = @d_id AND ol_o_id = @order_id;
                SELECT @amount = sum(ol_amount)
                FROM order_line WHERE ol_w_id = @w_id AND ol_d_id = @d_id AND ol_o_id = @order_id;
                UPDATE customer SET c_balance = c_balance + @amount, c_delivery_cnt = c_delivery_cnt + 1
                WHERE c_w_id = @w_id AND c_d_id = @d_id AND c_id = @customer_id;
                SET @delivered_count += 1;
            END;
            SET @d_id += 1;
        END;
        COMMIT;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK;
        THROW;
    END CATCH;
    SELECT @delivered_count AS delivered_count;
END

-- name: drop.assay_stock_level
DROP PROCEDURE IF EXISTS assay_stock_level

-- name: assay_stock_level
CREATE PROCEDURE assay_stock_level @w_id int, @d_id int, @threshold int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    DECLARE @next_order_id int;
    SELECT @next_order_id = d_next_o_id FROM district WHERE d_w_id = @w_id AND d_id = @d_id;
    SELECT count(DISTINCT s_i_id) AS item_count
    FROM order_line
    JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
    WHERE ol_w_id = @w_id AND ol_d_id = @d_id AND ol_o_id < @next_order_id AND ol_o_id >= @next_order_id - 20
        AND s_quantity < @threshold;
END
