"""The memory of queries: what bounds it on each kind of server."""

from __future__ import annotations

from dataclasses import dataclass

NO_QUERY_MEMORY = "no statement of this server bounds the memory of queries; use PostgreSQL, MariaDB or duckdb:PATH"


@dataclass(frozen=True, kw_only=True)
class QueryMemory:
    """What bounds the memory of queries.

    Attributes
    ----------
    statement
        Sets it, with `{kib}` or `{bytes}` in it.
    words
        What is set.
    most_share
        The share of the host's memory at which a search begins.
    least_bytes
        The least that the server takes.
    for_all
        The setting that stays in force for all sessions; empty where the session ends with its limit.
    """

    statement: str
    words: str
    most_share: float
    least_bytes: int
    for_all: str = ""

    def steps(self, host_bytes: int) -> tuple[int, ...]:
        """Powers of two from the most down to the least."""
        most = max(int(host_bytes * self.most_share), self.least_bytes)
        powers = (1 << power for power in range(most.bit_length() - 1, -1, -1))
        return tuple(count for count in powers if self.least_bytes <= count <= most)

    def limit(self, count: int) -> str:
        """The statement that gives a session's queries so many bytes."""
        return self.statement.format(bytes=count, kib=count // 1024)

    def undone(self, asked: str | None) -> str:
        """The statement that ends a limit for all sessions; `asked` is the setting that the target names."""
        if not self.for_all:
            return ""
        return f"SET GLOBAL {self.for_all} = '{asked}'" if asked else f"RESET GLOBAL {self.for_all}"
