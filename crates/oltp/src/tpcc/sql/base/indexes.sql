-- What is built after the rows are there. A section has the name of its index, so that a load that was cut short can leave out
-- what the catalogue already has. Sections do not depend on each other.

-- name: customer_name
CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)

-- name: orders_customer
CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)
