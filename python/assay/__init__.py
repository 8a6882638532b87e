"""Assay examines storage the way a database will use it."""
