-- Not verified on SQL Server. What begins or ends a transaction has no parameters.

-- name: begin
BEGIN TRANSACTION

-- name: rollback
-- An error may have undone the transaction already.
IF @@TRANCOUNT > 0 ROLLBACK

-- name: session.isolation.read-committed
SET TRANSACTION ISOLATION LEVEL READ COMMITTED

-- name: session.isolation.repeatable-read
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ

-- name: session.isolation.serializable
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
