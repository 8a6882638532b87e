"""Statements that a server logged, run again on another (docs/statement-logs.md)."""
