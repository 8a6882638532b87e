"""Telemetry of other tools, read into the rows that Assay records itself: a file for each format, and a line."""
