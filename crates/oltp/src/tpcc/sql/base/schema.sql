-- The tables as MariaDB and MySQL have them. Columns are in the order of the specification: the bulk loader relies on it.
-- The bookkeeping comes first: whatever a creation that was cut short leaves behind is known as Assay's own.
--
-- InnoDB keeps rows in the order of the primary key, and the loader sends them in that order: the keys are here and not in
-- indexes.sql. There are no foreign keys: a load goes on chunk by chunk in any order, and the peers (HammerDB, pgbench) have
-- none. Texts are one byte per character and compare by bytes: all of them are ASCII, a char(24) then has a fixed width, an
-- update stays in place, and the middle customer of a name is the same one in every database. Sums of payments are wider
-- than the specification asks: 12 digits overflow within a day on a fast server.

-- name: assay_schema
CREATE TABLE assay_schema (
    k varchar(32) NOT NULL,
    v varchar(255) NOT NULL,
    PRIMARY KEY (k)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin

-- name: assay_chunk
CREATE TABLE assay_chunk (
    kind varchar(16) NOT NULL,
    w_id int NOT NULL,
    part int NOT NULL,
    row_count bigint NOT NULL,
    PRIMARY KEY (kind, w_id, part)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin

-- name: warehouse
CREATE TABLE warehouse (
    w_id int NOT NULL,
    w_name varchar(10) NOT NULL,
    w_street_1 varchar(20) NOT NULL,
    w_street_2 varchar(20) NOT NULL,
    w_city varchar(20) NOT NULL,
    w_state char(2) NOT NULL,
    w_zip char(9) NOT NULL,
    w_tax decimal(4, 4) NOT NULL,
    w_ytd decimal(14, 2) NOT NULL,
    PRIMARY KEY (w_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin

-- name: district
CREATE TABLE district (
    d_id int NOT NULL,
    d_w_id int NOT NULL,
    d_name varchar(10) NOT NULL,
    d_street_1 varchar(20) NOT NULL,
    d_street_2 varchar(20) NOT NULL,
    d_city varchar(20) NOT NULL,
    d_state char(2) NOT NULL,
    d_zip char(9) NOT NULL,
    d_tax decimal(4, 4) NOT NULL,
    d_ytd decimal(14, 2) NOT NULL,
    d_next_o_id int NOT NULL,
    PRIMARY KEY (d_w_id, d_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin

-- name: customer
CREATE TABLE customer (
    c_id int NOT NULL,
    c_d_id int NOT NULL,
    c_w_id int NOT NULL,
    c_first varchar(16) NOT NULL,
    c_middle char(2) NOT NULL,
    c_last varchar(16) NOT NULL,
    c_street_1 varchar(20) NOT NULL,
    c_street_2 varchar(20) NOT NULL,
    c_city varchar(20) NOT NULL,
    c_state char(2) NOT NULL,
    c_zip char(9) NOT NULL,
    c_phone char(16) NOT NULL,
    c_since datetime NOT NULL,
    c_credit char(2) NOT NULL,
    c_credit_lim decimal(12, 2) NOT NULL,
    c_discount decimal(4, 4) NOT NULL,
    c_balance decimal(12, 2) NOT NULL,
    c_ytd_payment decimal(12, 2) NOT NULL,
    c_payment_cnt int NOT NULL,
    c_delivery_cnt int NOT NULL,
    c_data varchar(500) NOT NULL,
    PRIMARY KEY (c_w_id, c_d_id, c_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin

-- name: history
-- A cluster that replicates rows needs a key in every table; the specification gives this one none.
CREATE TABLE history (
    h_c_id int NOT NULL,
    h_c_d_id int NOT NULL,
    h_c_w_id int NOT NULL,
    h_d_id int NOT NULL,
    h_w_id int NOT NULL,
    h_date datetime NOT NULL,
    h_amount decimal(12, 2) NOT NULL,
    h_data varchar(24) NOT NULL,
    h_id bigint NOT NULL AUTO_INCREMENT,
    PRIMARY KEY (h_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin

-- name: orders
CREATE TABLE orders (
    o_id int NOT NULL,
    o_d_id int NOT NULL,
    o_w_id int NOT NULL,
    o_c_id int NOT NULL,
    o_entry_d datetime NOT NULL,
    o_carrier_id int,
    o_ol_cnt int NOT NULL,
    o_all_local int NOT NULL,
    PRIMARY KEY (o_w_id, o_d_id, o_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin

-- name: new_order
CREATE TABLE new_order (
    no_o_id int NOT NULL,
    no_d_id int NOT NULL,
    no_w_id int NOT NULL,
    PRIMARY KEY (no_w_id, no_d_id, no_o_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin

-- name: order_line
CREATE TABLE order_line (
    ol_o_id int NOT NULL,
    ol_d_id int NOT NULL,
    ol_w_id int NOT NULL,
    ol_number int NOT NULL,
    ol_i_id int NOT NULL,
    ol_supply_w_id int NOT NULL,
    ol_delivery_d datetime,
    ol_quantity int NOT NULL,
    ol_amount decimal(12, 2) NOT NULL,
    ol_dist_info char(24) NOT NULL,
    PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin

-- name: stock
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
    s_data varchar(50) NOT NULL,
    PRIMARY KEY (s_w_id, s_i_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin

-- name: item
CREATE TABLE item (
    i_id int NOT NULL,
    i_im_id int NOT NULL,
    i_name varchar(24) NOT NULL,
    i_price decimal(12, 2) NOT NULL,
    i_data varchar(50) NOT NULL,
    PRIMARY KEY (i_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin
