"""`assay ui`: a local web page over runs and recordings."""

from __future__ import annotations

import ipaddress
import json as json_module
import os
import secrets
import socket
import ssl
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.console import say
from assay.base.errors import UsageError
from assay.base.paths import printable

if TYPE_CHECKING:
    from assay.apps.ui.start_form import StartSettings

EXAMPLES = """
Examples:

`assay ui --open`

`assay ui assay-results /var/lib/assay/recording`

`assay ui --listen 10.0.0.5 --tls-cert page.crt --tls-key page.key`

`assay ui --allow-runs --run-on /data`
"""

PORT = 8471

LOOPBACK = "127.0.0.1"

TOKEN_MIN, TOKEN_MAX = 32, 200
"""Letters of a token in a file."""


def ui(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR]...", help="Folders of runs, or a run; assay-results.", show_default=False),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any free one.")] = PORT,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; beyond this host it needs --tls-cert.")
    ] = LOOPBACK,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", help="Certificate chain, PEM.")] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", help="Private key, if the chain's file has none.")
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the browser.")] = False,
    allow_runs: Annotated[
        bool, typer.Option("--allow-runs", help="Let the page start runs, on models and on folders of --run-on.")
    ] = False,
    run_on: Annotated[
        list[Path] | None,
        typer.Option("--run-on", metavar="DIR", help="With --allow-runs: a folder that runs may write to."),
    ] = None,
    metrics_token: Annotated[
        Path | None, typer.Option("--metrics-token", metavar="FILE", help="Token that opens /metrics at every start.")
    ] = None,
    debug: opt.Debug = False,
) -> None:
    """Show runs and recordings in the browser, also while they go on; it starts runs only with --allow-runs."""
    del debug
    # The usual folder may not be there yet: the page waits for its first run.
    roots = [_checked(path) for path in directories] if directories else [opt.OUTPUT_DEFAULT]
    is_local = _is_loopback(listen)
    _check_certificate(tls_cert, tls_key, listen=None if is_local else listen, port=port)
    metrics = _metrics_token(metrics_token)
    starts = _start_settings(run_on or [], is_allowed=allow_runs, is_local=is_local)
    listening = _listening(listen, port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    address = _address(listen, port, token, is_secure=tls_cert is not None)
    if not is_local:
        say(f"assay: warning: others reach {listen}; whoever has the address with its token sees every run here")
    print(address, flush=True)
    say("assay: stop with Ctrl-C")
    if open_browser:
        _open(address)
    _become(
        {
            "roots": [os.path.abspath(root) for root in roots],
            "descriptor": listening.fileno(),
            "token": token,
            "hosts": sorted(_hosts(listen, port)),
            "tls_cert": os.path.abspath(tls_cert) if tls_cert else None,
            "tls_key": os.path.abspath(tls_key) if tls_key else None,
            "starts": starts,
            "metrics_token": metrics,
        },
        listening,
    )


def _address(listen: str, port: int, token: str, *, is_secure: bool) -> str:
    """What a browser opens."""
    shown = listen if not _is_any(listen) else socket.gethostname()
    return f"http{'s' if is_secure else ''}://{f'[{shown}]' if ':' in shown else shown}:{port}/?token={token}"


def _checked(path: Path) -> Path:
    """A folder, whether or not a run lies in it already.

    Raises
    ------
    UsageError
        It is none.
    """
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise UsageError(f"{printable(path)}: {what}; measure with: assay assess DIR, or name a folder of runs")
    return path


def _start_settings(run_on: Sequence[Path], *, is_allowed: bool, is_local: bool) -> StartSettings | None:
    """What the page may start; the verbs are imported for it.

    Raises
    ------
    UsageError
        Runs are not allowed from there, or a folder is none.
    """
    if not is_allowed:
        if run_on:
            raise UsageError("--run-on: says where runs may write; give --allow-runs, too")
        return None
    if not is_local:
        raise UsageError(
            "--allow-runs and --listen exclude each other: runs are started from this host, or over ssh -L"
        )
    for path in run_on:
        if not path.is_dir():
            raise UsageError(f"--run-on {printable(path)}: is not a folder; make it, or name another")
    from assay.apps.cli.forms import start_settings

    return start_settings([Path(os.path.abspath(path)) for path in run_on])


def _metrics_token(path: Path | None) -> str | None:
    """The token that a file holds, which only its owner and group may read.

    Raises
    ------
    UsageError
        It holds none, or others may read it.
    """
    if path is None:
        return None
    option = f"--metrics-token {printable(path)}"
    try:
        with path.open("rb") as file:
            mode, content = os.fstat(file.fileno()).st_mode, file.read(TOKEN_MAX + 2)
    except OSError as error:
        raise UsageError(f"{option}: cannot be read: {error.strerror}") from None
    token = content.decode("latin-1").strip()
    if not TOKEN_MIN <= len(token) <= TOKEN_MAX or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"{option}: holds no token; accepted: {TOKEN_MIN} to {TOKEN_MAX} letters without spaces, as"
            " `openssl rand -hex 32` makes them"
        )
    if mode & 0o007:
        raise UsageError(f"{option}: all users may read it; take that from them with: chmod o= FILE")
    return token


def _addresses(listen: str) -> list[str]:
    try:
        return [str(one[4][0]) for one in socket.getaddrinfo(listen, None, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--listen {listen}: is no address of this host ({error}); such as 127.0.0.1") from None


def _is_loopback(listen: str) -> bool:
    return all(ipaddress.ip_address(one).is_loopback for one in _addresses(listen))


def _is_any(listen: str) -> bool:
    return any(ipaddress.ip_address(one).is_unspecified for one in _addresses(listen))


def _listening(listen: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises
    ------
    UsageError
        The port or the address cannot be had.
    """
    address = _addresses(listen)[0]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((address, port))
        found.listen(100)
    except OSError as error:
        found.close()
        why = "is in use" if error.errno == 98 else f"cannot be had: {error.strerror}"
        raise UsageError(f"--port {port}: {why} on {listen}; give another, or 0 for any free one") from None
    return found


def _check_certificate(cert: Path | None, key: Path | None, *, listen: str | None, port: int) -> None:
    """See that certificate and key are what they should be, before a page is promised.

    Parameters
    ----------
    listen
        The address beyond this host, which needs them.

    Raises
    ------
    UsageError
        They are not, or are missing.
    """
    if cert is None and listen is not None:
        raise UsageError(
            f"--listen {listen}: others reach this address, so it needs --tls-cert and --tls-key; or leave it out, and"
            f" reach it with: ssh -L {port}:{LOOPBACK}:{port} {socket.gethostname()}"
        )
    if cert is None:
        if key is not None:
            raise UsageError("--tls-key: is the key of a certificate; give --tls-cert as well")
        return
    for option, path in (("--tls-cert", cert), ("--tls-key", key)):
        if path is not None and not path.is_file():
            raise UsageError(f"{option} {printable(path)}: is no file")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        where = printable(cert) + (f" and {printable(key)}" if key else "")
        raise UsageError(f"--tls-cert: {where} are no certificate and its key ({reason}); PEM is accepted") from None


def _hosts(listen: str, port: int) -> set[str]:
    """Names by which the page may be called; any other is one that was bound to this address for an attack."""
    names = {listen, *_addresses(listen)}
    if _is_loopback(listen):
        names |= {"localhost", LOOPBACK, "::1"}
    else:
        names |= {socket.gethostname(), socket.getfqdn()}
    if _is_any(listen):
        import psutil

        found = [one.address.split("%")[0] for own in psutil.net_if_addrs().values() for one in own
                 if one.family in (socket.AF_INET, socket.AF_INET6)]  # fmt: skip
        names |= {*found, "localhost"}
    shown = {f"[{name}]" if ":" in name else name for name in names}
    standard = {80, 443}
    return {f"{name}:{port}" for name in shown} | (shown if port in standard else set())


def _open(address: str) -> None:
    """Start the browser beside; where there is none, the address was printed."""
    import webbrowser

    thread = threading.Thread(target=lambda: webbrowser.open(address), daemon=True)
    thread.start()
    thread.join(5)


def _become(settings: dict[str, object], listening: socket.socket) -> None:
    """Go on as the page's own process, which holds nothing of this one."""
    settings_file = os.memfd_create("assay-ui", 0)
    os.write(settings_file, json_module.dumps(settings).encode())
    os.lseek(settings_file, 0, os.SEEK_SET)
    for descriptor in (settings_file, listening.fileno()):
        os.set_inheritable(descriptor, True)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(
        sys.executable, [sys.executable, "-P", "-m", "assay.apps.ui.process", str(settings_file)], dict(os.environ)
    )
