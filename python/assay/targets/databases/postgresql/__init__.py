"""PostgreSQL, 14 or newer."""
