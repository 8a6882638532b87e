-- Primary keys, built in bulk. The warehouse comes first in each, so that a warehouse is contiguous.

-- name: order_line_pkey
ALTER TABLE order_line ADD CONSTRAINT order_line_pkey PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)

-- name: stock_pkey
ALTER TABLE stock ADD CONSTRAINT stock_pkey PRIMARY KEY (s_w_id, s_i_id)

-- name: customer_pkey
ALTER TABLE customer ADD CONSTRAINT customer_pkey PRIMARY KEY (c_w_id, c_d_id, c_id)

-- name: orders_pkey
ALTER TABLE orders ADD CONSTRAINT orders_pkey PRIMARY KEY (o_w_id, o_d_id, o_id)

-- name: new_order_pkey
ALTER TABLE new_order ADD CONSTRAINT new_order_pkey PRIMARY KEY (no_w_id, no_d_id, no_o_id)

-- name: item_pkey
ALTER TABLE item ADD CONSTRAINT item_pkey PRIMARY KEY (i_id)

-- name: district_pkey
ALTER TABLE district ADD CONSTRAINT district_pkey PRIMARY KEY (d_w_id, d_id)

-- name: warehouse_pkey
ALTER TABLE warehouse ADD CONSTRAINT warehouse_pkey PRIMARY KEY (w_id)
