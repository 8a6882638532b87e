"""As whom the embedded server runs when the command is root's: as a user of its own, seen by the kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from database_folders import need_root, opened

from assay.targets.databases.embedded import launcher
from assay_command import Bench

SHARED = (0, 65534)
"""The kernel's root, and the number that many services share."""


def servers_of(data: Path) -> list[psutil.Process]:
    """Processes that work in a data directory: the server's, all of them."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.path.samestat(os.stat(f"/proc/{process.pid}/cwd"), data.stat()):
                found.append(process)
        except (OSError, psutil.Error):
            continue
    return found


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder that only its owner may enter, as a home is."""
    with tempfile.TemporaryDirectory(prefix="assay-closed-") as folder:
        yield Path(folder)


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_run_of_roots_has_a_server_without_rights(bench: Bench, closed_folder: Path) -> None:
    need_root()
    before = {uid for process in psutil.process_iter(["uids"]) for uid in process.info["uids"]}
    data = closed_folder / "db/data-1"
    target = f"embedded:{closed_folder}/db?wal={closed_folder}/log"
    arguments = ("oltp", "tpcc", target, "load", "--warehouses", "1")
    seen: dict[str, tuple[set[int], set[int], str]] = {}

    def look() -> bool:
        for process in servers_of(data) if data.is_dir() else ():
            try:
                title = " ".join(process.cmdline())
                status = Path(f"/proc/{process.pid}/status").read_text()
                seen[title] = {*process.uids()}, {*process.gids()}, status.split("CapEff:")[1].split()[0]
            except (OSError, psutil.Error):
                continue
        return sum("assay assay [local]" in title for title in seen) >= 1 and len(seen) > 5

    with bench.started(*arguments, "--no-report", "-o", bench.results) as running:
        running.wait_until(look, seconds=120)
        running.process.send_signal(signal.SIGINT)
        assert running.end(200).code == 130

    (uid,) = {uid for uids, _, _ in seen.values() for uid in uids}
    assert uid not in (*SHARED, *before)
    assert {gid for _, gids, _ in seen.values() for gid in gids} == {uid}
    assert {rights for _, _, rights in seen.values()} == {f"{0:016x}"}
    assert data.stat().st_uid == uid
    assert closed_folder.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def as_ordinary_user(as_nobody: list[str]) -> list[str]:
    """Like `as_nobody`, where the user may start this Python again: its parents may be closed, as a home is."""
    closed = launcher.closed_ancestor(sys.base_prefix)
    if not as_nobody or closed is None:
        return as_nobody
    installed = Path(closed) / Path(sys.base_prefix).relative_to(closed).parts[0]
    script = f"""
exec 9< {installed}
mount -t tmpfs -o mode=0755 none {closed} && mkdir {installed} &&
mount --no-canonicalize --bind /proc/self/fd/9 {installed} && exec "$@"
"""
    prefix = ["unshare", "--mount", "sh", "-c", script, "sh", *as_nobody]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("an unprivileged user may not run this environment's Python")
    return prefix


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_an_ordinary_users_server_is_the_users_own(public_bench: Bench, as_ordinary_user: list[str]) -> None:
    # Like /tmp: every user may make entries, and none may exchange another's.
    public_bench.folder.chmod(0o1777)
    target = f"embedded:{public_bench.folder}/db"
    arguments = ("oltp", "tpcc", target, "load", "--warehouses", "100000", "--no-report", "-o", public_bench.results)

    outcome = public_bench.assay(*arguments, prefix=as_ordinary_user)

    # The server was started, and no disk holds so much.
    assert (outcome.code, "need about" in outcome.stderr) == (3, True), outcome.stderr
    owner = (public_bench.folder / "db").stat().st_uid
    assert owner != 0
    assert {path.lstat().st_uid for path in (public_bench.folder / "db").rglob("*")} == {owner}


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_server_ends_with_its_launcher(tmp_path: Path) -> None:
    with opened(tmp_path / "db") as database:
        number = database.server_pid()
        assert number is not None
        server = psutil.Process(number)
        launched = server.parent()
        assert launched is not None
        launched.kill()
        # Nothing else tells the server to stop.
        psutil.wait_procs([server], timeout=60)
        assert not server.is_running()
        assert database.revive()
        assert database.query("SELECT 1") == [(1,)]


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_what_libpq_asks_of_other_servers_does_not_refuse_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PGSERVICE": "none", "PGSERVICEFILE": str(tmp_path / "none"), "PGREQUIREPEER": "postgres",
        "PGREQUIREAUTH": "scram-sha-256", "PGCHANNELBINDING": "require", "PGSSLNEGOTIATION": "direct",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    with opened(tmp_path / "db") as database:
        assert database.query("SELECT 1") == [(1,)]
