"""The user's own SQL: scripts in the language of pgbench, on databases of any kind (docs/sql.md)."""
