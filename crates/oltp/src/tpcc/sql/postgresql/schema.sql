-- Tables without keys: rows arrive by COPY, and the keys of indexes.sql are built afterwards, several at a time.
-- Names compare by bytes (collate "C"), so that the middle customer of a name is the same one in every database.

-- name: assay_schema
CREATE TABLE assay_schema (
    k varchar(32) PRIMARY KEY,
    v varchar(255) NOT NULL
)

-- name: assay_chunk
CREATE TABLE assay_chunk (
    kind varchar(16) NOT NULL,
    w_id int NOT NULL,
    part int NOT NULL,
    row_count bigint NOT NULL,
    PRIMARY KEY (kind, w_id, part)
)

-- name: warehouse
-- Every payment updates its row. At 10 % filled a page holds eight rows or so and has room for some seventy versions of them,
-- which the next update prunes: updates stay on the page (HOT), and few warehouses share a page's latch.
-- Sums of payments are wider than the specification asks: 12 digits overflow within a day on a fast server.
CREATE TABLE warehouse (
    w_id int NOT NULL,
    w_name varchar(10) NOT NULL,
    w_street_1 varchar(20) NOT NULL,
    w_street_2 varchar(20) NOT NULL,
    w_city varchar(20) NOT NULL,
    w_state char(2) NOT NULL,
    w_zip char(9) NOT NULL,
    w_tax numeric(4, 4) NOT NULL,
    w_ytd numeric(14, 2) NOT NULL
) WITH (fillfactor = 10)

-- name: district
-- Every new order and every payment updates its row: as warehouse.
CREATE TABLE district (
    d_id int NOT NULL,
    d_w_id int NOT NULL,
    d_name varchar(10) NOT NULL,
    d_street_1 varchar(20) NOT NULL,
    d_street_2 varchar(20) NOT NULL,
    d_city varchar(20) NOT NULL,
    d_state char(2) NOT NULL,
    d_zip char(9) NOT NULL,
    d_tax numeric(4, 4) NOT NULL,
    d_ytd numeric(14, 2) NOT NULL,
    d_next_o_id int NOT NULL
) WITH (fillfactor = 10)

-- name: customer
-- Payments and deliveries update rows of some 600 bytes at random: a tenth of a page is room for one new version,
-- which is enough because updates of one page are far apart and the old version is pruned in between.
CREATE TABLE customer (
    c_id int NOT NULL,
    c_d_id int NOT NULL,
    c_w_id int NOT NULL,
    c_first varchar(16) COLLATE "C" NOT NULL,
    c_middle char(2) NOT NULL,
    c_last varchar(16) COLLATE "C" NOT NULL,
    c_street_1 varchar(20) NOT NULL,
    c_street_2 varchar(20) NOT NULL,
    c_city varchar(20) NOT NULL,
    c_state char(2) NOT NULL,
    c_zip char(9) NOT NULL,
    c_phone char(16) NOT NULL,
    c_since timestamp NOT NULL,
    c_credit char(2) NOT NULL,
    c_credit_lim numeric(12, 2) NOT NULL,
    c_discount numeric(4, 4) NOT NULL,
    c_balance numeric(12, 2) NOT NULL,
    c_ytd_payment numeric(12, 2) NOT NULL,
    c_payment_cnt int NOT NULL,
    c_delivery_cnt int NOT NULL,
    c_data varchar(500) NOT NULL
) WITH (fillfactor = 90)

-- name: history
CREATE TABLE history (
    h_c_id int NOT NULL,
    h_c_d_id int NOT NULL,
    h_c_w_id int NOT NULL,
    h_d_id int NOT NULL,
    h_w_id int NOT NULL,
    h_date timestamp NOT NULL,
    h_amount numeric(12, 2) NOT NULL,
    h_data varchar(24) NOT NULL
)

-- name: orders
-- A delivery sets the carrier once: orders of one page are delivered about the same time, one after another, so that a little
-- room is used again and again.
CREATE TABLE orders (
    o_id int NOT NULL,
    o_d_id int NOT NULL,
    o_w_id int NOT NULL,
    o_c_id int NOT NULL,
    o_entry_d timestamp NOT NULL,
    o_carrier_id int,
    o_ol_cnt int NOT NULL,
    o_all_local int NOT NULL
) WITH (fillfactor = 90)

-- name: new_order
CREATE TABLE new_order (
    no_o_id int NOT NULL,
    no_d_id int NOT NULL,
    no_w_id int NOT NULL
)

-- name: order_line
-- A delivery sets the date of five to fifteen lines that lie together: as orders.
CREATE TABLE order_line (
    ol_o_id int NOT NULL,
    ol_d_id int NOT NULL,
    ol_w_id int NOT NULL,
    ol_number int NOT NULL,
    ol_i_id int NOT NULL,
    ol_supply_w_id int NOT NULL,
    ol_delivery_d timestamp,
    ol_quantity int NOT NULL,
    ol_amount numeric(12, 2) NOT NULL,
    ol_dist_info char(24) NOT NULL
) WITH (fillfactor = 90)

-- name: stock
-- New orders update rows of some 310 bytes at random, ten per order: room for two new versions on a page.
CREATE TABLE stock (
    s_i_id int NOT NULL,
    s_w_id int NOT NULL,
    s_quantity int NOT NULL,
    s_dist_01 char(24) NOT NULL,
    s_dist_02 char(24) NOT NULL,
    s_dist_03 char(24) NOT NULL,
    s_dist_04 char(24) NOT NULL,
    s_dist_05 char(24) NOT NULL,
    s_dist_06 char(24) NOT NULL,
    s_dist_07 char(24) NOT NULL,
    s_dist_08 char(24) NOT NULL,
    s_dist_09 char(24) NOT NULL,
    s_dist_10 char(24) NOT NULL,
    s_ytd int NOT NULL,
    s_order_cnt int NOT NULL,
    s_remote_cnt int NOT NULL,
    s_data varchar(50) NOT NULL
) WITH (fillfactor = 90)

-- name: item
CREATE TABLE item (
    i_id int NOT NULL,
    i_im_id int NOT NULL,
    i_name varchar(24) NOT NULL,
    i_price numeric(12, 2) NOT NULL,
    i_data varchar(50) NOT NULL
)
