"""What tests anywhere may use: the command on its bench, mounts and devices, servers that start once when asked for."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from bench_fixtures import as_nobody, bench, loop_device, mounted, public_bench, run_tool
from own_mounts import own_mounts
from own_settings import hide_settings
from servers.fixtures import connect, mariadb, mortal, mssql, postgresql, postgresql15, postgresql18, server

# Tests start the command hundreds of times; without kept bytecode each start compiles what it imports again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
hide_settings(os.environ)

settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("full", max_examples=150, deadline=None)
settings.load_profile("quick")


def pytest_configure() -> None:
    """Mount and unmount where this machine does not see it."""
    own_mounts()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the older PostgreSQL to `make test-all`, where the same test runs on a newer one."""
    for item in items:
        if "postgresql15" in item.name:
            item.add_marker(pytest.mark.slow(reason="the same on a newer server"))


__all__ = [
    "as_nobody", "bench", "connect", "loop_device", "mariadb", "mortal", "mounted", "mssql", "postgresql",
    "postgresql15", "postgresql18", "public_bench", "run_tool", "server",
]  # fmt: skip
