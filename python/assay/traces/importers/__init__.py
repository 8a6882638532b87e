"""Traces of other programs: a form a file, found by content, read once and in bounded memory."""
