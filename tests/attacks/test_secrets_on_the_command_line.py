"""A password on the command line is gone from the process list before anything is imported, and from every message."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.base.command_line import redacted
from assay_command import Bench, Outcome, command

PASSWORD = "hunter2"
URL = f"postgresql://me:{PASSWORD}@127.0.0.1:1/db"


def imported_before_the_password_was_gone(*arguments: str) -> list[str]:
    """Modules that the process with the password in its command line imported before it started anew without it."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "assay", *arguments], capture_output=True, text=True, check=False
    )
    headers = [number for number, line in enumerate(done.stderr.splitlines()) if "imported package" in line]
    first, second = headers
    lines = done.stderr.splitlines()[first + 1 : second]
    return [line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")]


def test_nothing_that_takes_time_is_imported_before() -> None:
    imported = imported_before_the_password_was_gone("oltp", "tpcc", URL, "--dry-run")
    of_assay = {name for name in imported if name.startswith("assay")}
    assert of_assay <= {"assay", "assay.apps", "assay.apps.cli", "assay.base", "assay.base.command_line"}
    slow = {"typer", "typing", "dataclasses", "inspect", "pydantic", "hashlib", "json", "pathlib", "subprocess"}
    assert not slow & set(imported)


def said_about(bench: Bench, *arguments: str) -> Outcome:
    """What the command says after it has started anew without the passwords."""
    shown, secrets = redacted(arguments)
    with pytest.MonkeyPatch.context() as patched:
        for name, secret in secrets.items():
            patched.setenv(name, secret)
        outcome = bench.assay(*shown, "--debug")
    assert outcome.code in (2, 3), outcome.stderr
    for text in (outcome.stdout, outcome.stderr):
        assert PASSWORD not in text
    return outcome


MISTAKES = [
    URL,
    f"postgrsql://me:{PASSWORD}@h/db",
    f"postgresql:/me:{PASSWORD}@h/db",
    f"postgresql//me:{PASSWORD}@h/db",
    f"mssql:me:{PASSWORD}@h/db",
    f"POSTGRES://me:{PASSWORD}@h/db?password={PASSWORD}",
    f"no-such-folder/f?password={PASSWORD}",
    f"faulty:no-such-folder/f?password={PASSWORD}",
    f"null:?password={PASSWORD}",
    f"model:none?password={PASSWORD}",
    f"embedded:d?password={PASSWORD}",
    f"f?password={PASSWORD}",
    f"oracle://me:{PASSWORD}@h/db",
    f"postgresql://me:#{PASSWORD}@h/db",
    f"postgresql://me:/{PASSWORD}@h/db",
    f"postgresql://h/db?sslpassword={PASSWORD}",
    f"mariadb://h/db?pass={PASSWORD}",
    f"mssql://h/db;user=sa;password={PASSWORD}",
    f"host=h user=me password={PASSWORD}",
    f"Server=h;Uid=sa;Pwd = {PASSWORD};",
    f"--password={PASSWORD}",
]


@pytest.mark.parametrize("target", MISTAKES)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_no_message_repeats_it_whatever_the_target_is_mistaken_for(bench: Bench, target: str) -> None:
    said_about(bench, "profile", target)
    assert bench.made() == []


@pytest.mark.parametrize("verb", [("verify",), ("assess",), ("oltp", "tpcc"), ("study", "run", "raid")])
@pytest.mark.parametrize("target", [URL, f"f?password={PASSWORD}"])
def test_nor_does_any_other_verb(bench: Bench, verb: tuple[str, ...], target: str) -> None:
    said_about(bench, *verb, target)
    assert bench.made() == []


@pytest.mark.parametrize("target", MISTAKES)
def test_none_of_these_stays_in_the_process_list(target: str) -> None:
    shown, secrets = redacted(["oltp", "tpcc", target])
    assert PASSWORD not in " ".join(shown)
    assert PASSWORD in " ".join(secrets.values())


@pytest.mark.parametrize("option", ["--plan", "--size", "--volume", "--limit"])
def test_nor_where_it_stands_in_an_option(bench: Bench, option: str) -> None:
    value = f"log={URL}" if option == "--volume" else URL
    said_about(bench, "profile", "f.dat", "--block", "0", option, value)


def test_a_password_of_standard_input_is_used_where_the_target_has_none() -> None:
    script = (
        "import sys; from assay.base.secrets import password_from_stdin;"
        "from assay.targets.databases import parse_databases;"
        "password_from_stdin();"
        "found = parse_databases(['postgresql://a@h/one', 'mariadb://b:own@h/two', 'postgresql://c:ASSAY_SECRET_9@h/d'],"
        " {'PGPASSWORD': 'of the environment'});"
        "print([spec.password.reveal() for spec in found])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=f"{PASSWORD}\nmore\n", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str([PASSWORD, "own", PASSWORD])


@pytest.mark.parametrize("sent", ["", "\n", "x" * 5000 + "\n", "a\0b\n"])
def test_what_is_no_password_on_standard_input_is_refused(bench: Bench, sent: str) -> None:
    done = subprocess.run(
        command("oltp", "tpcc", "postgresql://me@127.0.0.1:1/db", "--password-stdin"),
        input=sent,
        capture_output=True,
        text=True,
        cwd=bench.folder,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["assay: --password-stdin: the first line of standard input is no password"]


def test_one_that_is_no_text_is_refused(bench: Bench) -> None:
    asked = command("oltp", "tpcc", "postgresql://me@127.0.0.1:1/db", "--password-stdin")
    done = subprocess.run(asked, input=b"\xff\xfe\n", capture_output=True, cwd=bench.folder, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        b"assay: target postgresql://...: its password is no text in UTF-8; give it in that encoding"
    ]


@pytest.mark.parametrize(("typed", "code", "says"), [(f"{PASSWORD}\n", 3, b"127.0.0.1"), ("\x04", 2, b"no password")])
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_one_that_a_terminal_asks_for_is_not_shown(bench: Bench, typed: str, code: int, says: bytes) -> None:
    """On a terminal the line is asked for, and read without echo; Ctrl-D gives none."""
    controller, terminal = os.openpty()
    asked = command("oltp", "tpcc", "postgresql://me@127.0.0.1:1/db", "--password-stdin", "--quiet")
    process = subprocess.Popen(
        asked, cwd=bench.folder, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    )
    os.close(terminal)
    shown = b""
    while b"password: " not in shown:
        shown += os.read(controller, 1024)
    os.write(controller, typed.encode())
    try:
        while chunk := os.read(controller, 1024):
            shown += chunk
    except OSError:  # the terminal's other end is closed
        pass
    assert process.wait(60) == code
    os.close(controller)
    assert PASSWORD.encode() not in shown
    assert says in shown


def test_the_run_folder_and_the_process_list_hold_none(bench: Bench) -> None:
    outcome = bench.assay("oltp", "tpcc", URL, "--dry-run", "--json")
    assert outcome.code == 0, outcome.stderr
    assert PASSWORD not in outcome.stdout + outcome.stderr
    for path in Path(bench.folder).rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()


CRASH = """
import os, resource, sys
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
from assay.targets.databases import parse_databases
parse_databases([sys.argv[1]])
print(hard, resource.getrlimit(resource.RLIMIT_CORE)[0], flush=True)
os.abort()
"""


def test_a_process_that_holds_one_leaves_no_core_dump(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASH, f"postgresql://u:{PASSWORD}@h/db"], cwd=tmp_path, capture_output=True, text=True
    )
    hard, left = map(int, done.stdout.split())
    if hard == 0:
        pytest.skip("no process leaves one here")
    assert (done.returncode, left, list(tmp_path.iterdir())) == (-6, 0, [])
