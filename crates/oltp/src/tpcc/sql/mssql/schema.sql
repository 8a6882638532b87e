-- Not verified on SQL Server.
--
-- Clustered primary keys: rows arrive in their order. Names compare by bytes, so that the middle customer of a name is the
-- same one in every database.

-- name: assay_schema
CREATE TABLE assay_schema (
    k varchar(32) NOT NULL,
    v varchar(255) NOT NULL,
    CONSTRAINT assay_schema_pkey PRIMARY KEY CLUSTERED (k)
)

-- name: assay_chunk
CREATE TABLE assay_chunk (
    kind varchar(16) NOT NULL,
    w_id int NOT NULL,
    part int NOT NULL,
    row_count bigint NOT NULL,
    CONSTRAINT assay_chunk_pkey PRIMARY KEY CLUSTERED (kind, w_id, part)
)

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
    CONSTRAINT warehouse_pkey PRIMARY KEY CLUSTERED (w_id)
)

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
    CONSTRAINT district_pkey PRIMARY KEY CLUSTERED (d_w_id, d_id)
)

-- name: customer
CREATE TABLE customer (
    c_id int NOT NULL,
    c_d_id int NOT NULL,
    c_w_id int NOT NULL,
    c_first varchar(16) COLLATE Latin1_General_BIN2 NOT NULL,
    c_middle char(2) NOT NULL,
    c_last varchar(16) COLLATE Latin1_General_BIN2 NOT NULL,
    c_street_1 varchar(20) NOT NULL,
    c_street_2 varchar(20) NOT NULL,
    c_city varchar(20) NOT NULL,
    c_state char(2) NOT NULL,
    c_zip char(9) NOT NULL,
    c_phone char(16) NOT NULL,
    c_since datetime2(3) NOT NULL,
    c_credit char(2) NOT NULL,
    c_credit_lim decimal(12, 2) NOT NULL,
    c_discount decimal(4, 4) NOT NULL,
    c_balance decimal(12, 2) NOT NULL,
    c_ytd_payment decimal(12, 2) NOT NULL,
    c_payment_cnt int NOT NULL,
    c_delivery_cnt int NOT NULL,
    c_data varchar(500) NOT NULL,
    CONSTRAINT customer_pkey PRIMARY KEY CLUSTERED (c_w_id, c_d_id, c_id)
)

-- name: history
-- A heap: the specification gives this table no key, and rows are only added.
CREATE TABLE history (
    h_c_id int NOT NULL,
    h_c_d_id int NOT NULL,
    h_c_w_id int NOT NULL,
    h_d_id int NOT NULL,
    h_w_id int NOT NULL,
    h_date datetime2(3) NOT NULL,
    h_amount decimal(12, 2) NOT NULL,
    h_data varchar(24) NOT NULL
)

-- name: orders
CREATE TABLE orders (
    o_id int NOT NULL,
    o_d_id int NOT NULL,
    o_w_id int NOT NULL,
    o_c_id int NOT NULL,
    o_entry_d datetime2(3) NOT NULL,
    o_carrier_id int,
    o_ol_cnt int NOT NULL,
    o_all_local int NOT NULL,
    CONSTRAINT orders_pkey PRIMARY KEY CLUSTERED (o_w_id, o_d_id, o_id)
)

-- name: new_order
CREATE TABLE new_order (
    no_o_id int NOT NULL,
    no_d_id int NOT NULL,
    no_w_id int NOT NULL,
    CONSTRAINT new_order_pkey PRIMARY KEY CLUSTERED (no_w_id, no_d_id, no_o_id)
)

-- name: order_line
CREATE TABLE order_line (
    ol_o_id int NOT NULL,
    ol_d_id int NOT NULL,
    ol_w_id int NOT NULL,
    ol_number int NOT NULL,
    ol_i_id int NOT NULL,
    ol_supply_w_id int NOT NULL,
    ol_delivery_d datetime2(3),
    ol_quantity int NOT NULL,
    ol_amount decimal(12, 2) NOT NULL,
    ol_dist_info char(24) NOT NULL,
    CONSTRAINT order_line_pkey PRIMARY KEY CLUSTERED (ol_w_id, ol_d_id, ol_o_id, ol_number)
)

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
    CONSTRAINT stock_pkey PRIMARY KEY CLUSTERED (s_w_id, s_i_id)
)

-- name: item
CREATE TABLE item (
    i_id int NOT NULL,
    i_im_id int NOT NULL,
    i_name varchar(24) NOT NULL,
    i_price decimal(12, 2) NOT NULL,
    i_data varchar(50) NOT NULL,
    CONSTRAINT item_pkey PRIMARY KEY CLUSTERED (i_id)
)
