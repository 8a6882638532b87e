"""DuckDB, a column store in one file, within this process."""
