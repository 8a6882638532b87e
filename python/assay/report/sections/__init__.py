"""Sections of the report, one file each: every one takes the facts and returns its section, or None without matter."""
