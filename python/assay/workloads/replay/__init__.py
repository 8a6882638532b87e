"""Replay: the I/Os of traces, asked for again elsewhere, at their own times or faster."""
