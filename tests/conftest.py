"""Servers that tests anywhere may use: each starts once, when the first test asks for it."""

from __future__ import annotations

from servers.fixtures import mariadb, postgresql15, postgresql18

__all__ = ["mariadb", "postgresql15", "postgresql18"]
