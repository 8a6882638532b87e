"""Spark SQL on Parquet files."""
