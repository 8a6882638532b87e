"""`assay ui` as a command: what it prints, what it refuses in one line, how it ends, and what is seen of it."""

from __future__ import annotations

import shutil
import signal
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from assay.apps.cli import ui
from assay.apps.cli.app import app
from assay.base.errors import UsageError

if TYPE_CHECKING:
    from assay_command import Bench


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run the command up to where it would become the server, and return why it does not."""

    def become(*_: object) -> None:
        pytest.fail("the page would be served")

    monkeypatch.setattr(ui, "_become", become)

    def run(*arguments: object) -> str:
        done = CliRunner().invoke(app, ["ui", *map(str, arguments)])
        assert isinstance(done.exception, UsageError), done.output
        text = str(done.exception)
        assert "\n" not in text
        return text

    return run


def test_the_former_name_is_taken_and_not_listed() -> None:
    listed = [line[2:10].rstrip() for line in CliRunner().invoke(app, ["--help"]).output.splitlines()]
    former = CliRunner().invoke(app, ["serve", "--port", "0", "/nonexistent"])

    assert "ui" in listed
    assert "serve" not in listed
    assert str(former.exception).startswith("/nonexistent: does not exist")
    assert "serve" not in former.output


def test_a_folder_without_runs_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    served: list[dict[str, object]] = []
    monkeypatch.setattr(ui, "_become", lambda settings, socket: (socket.close(), served.append(settings)))
    monkeypatch.chdir(tmp_path)
    for arguments in ([str(tmp_path)], []):
        assert CliRunner().invoke(app, ["ui", *arguments, "--port", "0"]).exit_code == 0
    assert [one["roots"] for one in served] == [[str(tmp_path)], [str(tmp_path / "assay-results")]]


def test_a_folder_that_is_not_there_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "none")
    (tmp_path / "file").write_text("x")
    assert "is not a folder" in refused(tmp_path / "file")


def test_a_port_in_use_is_refused(refused: Callable[..., str], results: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert refused(results, "--port", port) == (
            f"--port {port}: is in use on 127.0.0.1; give another, or 0 for any free one"
        )


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_beyond_this_host_there_is_no_page_without_tls(
    refused: Callable[..., str], results: Path, address: str
) -> None:
    told = refused(results, "--listen", address)
    assert told.startswith(f"--listen {address}: others reach this address, so it needs --tls-cert and --tls-key")
    assert "ssh -L" in told


def test_an_address_that_is_none_is_refused(refused: Callable[..., str], results: Path) -> None:
    assert "--listen no.such.host.invalid: is no address" in refused(results, "--listen", "no.such.host.invalid")


def test_a_certificate_that_is_none_is_refused(refused: Callable[..., str], results: Path, tmp_path: Path) -> None:
    other = tmp_path / "page.crt"
    assert "--tls-cert" in refused(results, "--listen", "0.0.0.0", "--tls-cert", other)
    other.write_text("no certificate")
    assert "are no certificate and its key" in refused(results, "--listen", "0.0.0.0", "--tls-cert", other)
    assert "give --tls-cert as well" in refused(results, "--tls-key", other)


def test_runs_are_started_from_this_host_alone_and_in_folders_that_are_there(
    refused: Callable[..., str], results: Path, tmp_path: Path
) -> None:
    assert "give --allow-runs, too" in refused(results, "--run-on", tmp_path)
    assert "is not a folder" in refused(results, "--allow-runs", "--run-on", tmp_path / "none")
    (tmp_path / "file").write_text("x")
    assert "is not a folder" in refused(results, "--allow-runs", "--run-on", tmp_path / "file")


def test_a_token_of_metrics_is_long_and_read_by_few(refused: Callable[..., str], results: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    assert "cannot be read" in refused(results, "--metrics-token", token)
    token.touch(0o600)
    for text in ("", "short", "x" * 201, "a b" * 20, "\u00e9" * 40, "x" * 40 + "\0"):
        token.write_text(text)
        assert "holds no token" in refused(results, "--metrics-token", token)
    token.write_text("x" * 40)
    token.chmod(0o644)
    assert "all users may read it" in refused(results, "--metrics-token", token)


def test_names_are_those_of_the_address_alone() -> None:
    assert ui._hosts("127.0.0.1", 8471) == {"127.0.0.1:8471", "localhost:8471", "[::1]:8471"}
    assert "localhost:8471" in ui._hosts("0.0.0.0", 8471)
    assert f"{socket.gethostname()}:8471" in ui._hosts("0.0.0.0", 8471)


def test_it_prints_its_address_and_ends_at_a_signal(bench: Bench, results: Path) -> None:
    with bench.started("ui", results, "--port", "0") as running:
        running.wait_until(lambda: "token=" in running.stdout)
        address = running.stdout.strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as answer:
            cookie = answer.headers["Set-Cookie"].split(";")[0]
        base, token = address.split("/?token=")
        with urllib.request.urlopen(urllib.request.Request(f"{base}/", headers={"Cookie": cookie})) as answer:
            assert b"Assay" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(base)
        arguments = Path(f"/proc/{running.process.pid}/cmdline").read_bytes()
        surroundings = Path(f"/proc/{running.process.pid}/environ").read_bytes()
        assert token.encode() not in arguments + surroundings
        # What the command was is gone: the server's process holds none of its libraries.
        mapped = Path(f"/proc/{running.process.pid}/maps").read_text()
        assert not any(name in mapped for name in ("polars", "arro3", "scipy", "numpy", "_core.abi3"))
        # A stream of events that is open does not hold it up.
        events = urllib.request.urlopen(urllib.request.Request(f"{base}/api/events", headers={"Cookie": cookie}))
        assert events.readline() == b": here\n"
        running.process.send_signal(signal.SIGTERM)
        outcome = running.end(20)
        events.close()
    assert (outcome.code, outcome.stderr) == (0, "assay: stop with Ctrl-C\n")


@pytest.mark.slow(reason="the process is the same without TLS")
def test_beyond_this_host_it_is_served_by_tls_with_a_warning(
    bench: Bench, results: Path, tmp_path: Path, run_tool: Callable[..., str]
) -> None:
    cert, key = tmp_path / "page.crt", tmp_path / "page.key"
    run_tool("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")  # fmt: skip
    with bench.started("ui", results, "--port", "0", "--listen", "0.0.0.0", "--tls-cert", cert, "--tls-key", key) as (
        running
    ):
        running.wait_until(lambda: "token=" in running.stdout)
        assert "warning: others reach 0.0.0.0" in running.stderr
        address = running.stdout.strip()
        port, token = int(address.split(":")[2].split("/")[0]), address.split("=")[1]
        assert address.startswith("https://")
        trusted = ssl.create_default_context(cafile=str(cert))
        with urllib.request.urlopen(f"https://localhost:{port}/?token={token}", context=trusted) as answer:
            assert "; Secure" in answer.headers["Set-Cookie"]
        running.process.send_signal(signal.SIGINT)
        assert running.end(20).code == 130


def test_a_run_that_is_moved_meanwhile_leaves_the_list(results: Path, tmp_path: Path) -> None:
    from assay.apps.ui.runs import Runs

    runs = Runs([results])
    assert len(runs.rows()) == 3
    shutil.move(results / "oltp", tmp_path / "oltp")
    assert {row["name"] for row in runs.rows()} == {"profile", "verify"}
