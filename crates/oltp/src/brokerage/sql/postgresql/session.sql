-- Every statement finds its rows by a key. A table of a few pages would be read whole even so, and a serializable transaction that has
-- read a whole table fails with every other one that writes to it.

-- name: by_key
SET enable_seqscan = off
