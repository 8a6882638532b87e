-- What begins and ends a transaction and sets a session's isolation level, in the SQL that MariaDB and MySQL understand.

-- name: begin
START TRANSACTION

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: session.isolation.read-committed
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED

-- name: session.isolation.repeatable-read
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ

-- name: session.isolation.serializable
SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE
