"""What databases say of themselves, for the manifest and beside their saved states."""

from __future__ import annotations

from typing import TypedDict

from assay.record.shapes.manifest import Database as DatabaseShape

SavedFacts = dict[str, int | str | None]
"""What is written beside a saved state: `seed`, `state`, `saved_utc`, and the scale under the name that its tables
give it."""


class DatabaseFacts(DatabaseShape, total=False):
    """A database in the manifest: what it is, its limits, and its settings.

    `settings_given` are those that the target's text names; `runs_as` is the identity of a server that Assay runs.
    """

    version_text: str
    max_connections: int | None
    connections_free: int | None
    is_local: bool
    accelerator: str | None
    settings_given: dict[str, str]
    runs_as: str


class DatabaseShown(TypedDict):
    """A database as `--dry-run --json` shows it, before it is opened."""

    name: str
    target: str
    kind: str


class LibpqMore(TypedDict, total=False):
    """Parameters of libpq beside those that every connection has."""

    requirepeer: str
    channel_binding: str
    require_auth: str
    sslnegotiation: str


class CoreConnection(TypedDict):
    """A connection as the core takes it, the password in the clear."""

    kind: str
    host: str | None
    port: int | None
    socket: str | None
    user: str | None
    password: str | None
    database: str
    tls: str
    tls_ca: str | None
