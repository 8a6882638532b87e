"""Sections of the report on integrity."""
