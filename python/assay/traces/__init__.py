"""Traces: I/Os that somebody's system made, with their times; captured, imported, shown, and replayed elsewhere."""
