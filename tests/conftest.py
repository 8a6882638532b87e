"""What tests anywhere may use: the command on its bench, mounts and devices, servers that start once when asked for."""

from __future__ import annotations

import ctypes
import os

import pytest
from hypothesis import settings

from bench_fixtures import as_nobody, bench, loop_device, mounted, public_bench, run_tool
from servers.fixtures import connect, mariadb, mortal, mssql, postgresql, postgresql15, postgresql18, server

# Tests start the command hundreds of times; without kept bytecode each start compiles what it imports again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("full", max_examples=150, deadline=None)
settings.load_profile("quick")


_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x00020000, 16384, 1 << 18
"""Linux: unshare(2), mount(2)."""


def pytest_configure() -> None:
    """Give the tests mounts of their own: what one of them mounts or unmounts, this machine does not see."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0 and libc.unshare(_CLONE_NEWNS) == 0:
        libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)


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
