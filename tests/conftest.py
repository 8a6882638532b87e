"""Servers that tests anywhere may use: each starts once, when the first test asks for it."""

from __future__ import annotations

from servers.fixtures import mariadb, mssql, postgresql15, postgresql18

__all__ = ["mariadb", "mssql", "postgresql15", "postgresql18"]
