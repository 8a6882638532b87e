"""Passwords are in no process list, no message, no manifest and no child's environment."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.command_line import password_places, redacted
from assay.base.secrets import Secret, secret_named, take_secrets
from assay.targets.databases import parse_database

SCHEMES = ("postgresql", "postgres", "mariadb", "mysql", "mssql")
PASSWORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=3, max_size=20)


def hidden(argument: str) -> list[str]:
    return [argument[begin:end] for begin, end in password_places(argument)]


def test_a_secret_shows_itself_only_when_asked() -> None:
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == "hunter2"
    assert secret == Secret("hunter2")
    assert secret != Secret("other")
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        json.dumps(secret)


@pytest.mark.parametrize(
    ("argument", "passwords"),
    [
        ("postgresql://me:pw@host/db", ["pw"]),
        ("POSTGRESQL://me:pw@host/db", ["pw"]),
        ("--target=mariadb://me:pw@host/db", ["pw"]),
        ("mysql://me:p:w@host/db", ["p:w"]),
        ("mssql://me:p@w@host/db", ["p@w"]),
        ("mssql://me:p/w@host/db", ["p/w"]),
        ("mssql://me:p?w@host/db", ["p?w"]),
        ("mssql://me:p#w@host/db", ["p#w"]),
        ("postgresql://:pw@host/db", ["pw"]),
        ("postgresql://me@host/db?password=pw&sslmode=require", ["pw"]),
        ("postgresql://me:one@host/db?password=two", ["one", "two"]),
        ("postgresql://a:x1@h/d,mariadb://b:y2@h/d", ["x1", "y2"]),
        ("postgresql://me@host/db", []),
        ("postgresql://host:5432/db", []),
        ("postgresql://host:5432/db?options=a@b", []),
        ("postgresql://[::1]:5432/db", []),
        ("mariadb://me@/db?socket=/run/me@host.sock", []),
        ("postgresql://me:@host/db", []),
        ("/srv/data:x@y", []),
        # Misspelt, unknown, of something else: whatever it is, a password in it is one.
        ("notpostgresql://me:pw@host/db", ["pw"]),
        ("postgrsql://me:pw@host/db", ["pw"]),
        ("postgresql:/me:pw@host/db", ["pw"]),
        ("postgresql//me:pw@host/db", ["pw"]),
        ("postgresql:me:pw@host/db", ["pw"]),
        ("/srv/data?password=pw", ["pw"]),
        ("faulty:/srv/data?torn=0.1&password=pw&seed=1", ["pw"]),
        ("embedded:/srv/db?PASSWORD=pw", ["pw"]),
        ("data=/srv/f?pwd=pw", ["pw"]),
        ("password=pw", ["pw"]),
        ("file://srv/a:b@c", []),
        ("-o=/srv/pwd=1", []),
    ],
)
def test_passwords_are_found_wherever_they_stand(argument: str, passwords: list[str]) -> None:
    assert hidden(argument) == passwords


@given(scheme=st.sampled_from(SCHEMES), password=PASSWORDS)
def test_what_is_found_leaves_no_password_behind(scheme: str, password: str) -> None:
    # A number and a slash read as a port; a URL needs that encoded, as it needs a % encoded.
    if password[0].isdigit() or password[0] in "/?#" or "%" in password or "password=" in password:
        return
    shown, secrets = redacted([f"{scheme}://me:{password}@host.example/db"])
    assert shown == [f"{scheme}://me:ASSAY_SECRET_1@host.example/db"]
    assert secrets["ASSAY_SECRET_1"] == password
    assert redacted(shown) == (shown, {})


@given(scheme=st.sampled_from(SCHEMES), password=PASSWORDS)
def test_the_moved_password_is_the_one_that_connects(scheme: str, password: str) -> None:
    url = f"{scheme}://me:{quote(password, safe='')}@host.example/db"
    (shown,), environ = redacted([url])
    assert parse_database(shown, environ).password == parse_database(url, {}).password == Secret(password)


def test_secrets_leave_the_environment_and_stay_in_the_process() -> None:
    environ = {"ASSAY_SECRET_7": "hunter2", "PATH": "/bin", "ASSAY_SECRET_X": "kept"}
    take_secrets(environ)
    assert environ == {"PATH": "/bin", "ASSAY_SECRET_X": "kept"}
    assert secret_named("ASSAY_SECRET_7", {}) == Secret("hunter2")


SHOW_ITSELF = """
import json, os, subprocess, sys
from assay.targets.databases import parse_database
from assay.base.command_line import hide_passwords
from assay.base.secrets import take_secrets
argv = hide_passwords(sys.argv)
take_secrets(os.environ)
print(json.dumps({
    "argv": argv,
    "process_list": open("/proc/self/cmdline").read(),
    "child": subprocess.run(["env"], capture_output=True, text=True).stdout,
    "password": parse_database(argv[1]).password.reveal(),
    "flags": sys.flags.isolated,
}))
"""


def test_the_process_list_does_not_show_the_password() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", SHOW_ITSELF, "mariadb://me:hunter2@host/db", "load"],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = json.loads(done.stdout)
    assert shown["argv"][1:] == ["mariadb://me:ASSAY_SECRET_1@host/db", "load"]
    assert "hunter2" not in shown["process_list"]
    assert "hunter2" not in shown["child"]
    assert shown["password"] == "hunter2"
    assert shown["flags"] == 1
