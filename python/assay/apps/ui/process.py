"""The process of the page: nothing is loaded in it but the server, SQLite and what checks a manifest.

`assay ui` checks what is asked for, opens the socket, and becomes this process (`python -m assay.apps.ui.process`).
Its settings come on a descriptor, so that the token stands in no list of processes.
"""

from __future__ import annotations

import contextlib
import gc
import json
import signal
import socket
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import NotRequired, TypedDict

import uvicorn

from assay.apps.ui import connections
from assay.apps.ui.app import pages
from assay.apps.ui.guard import Guard
from assay.apps.ui.start_form import StartSettings
from assay.base.errors import ExitCode


class PageServer(connections.ConnectionServer):
    """A server that ends at a signal, and says by which."""

    ended_by = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End at the next moment; what is being answered is broken off."""
        del frame
        self.ended_by = sig
        self.should_exit = True
        # The page's events never end by themselves.
        self.force_exit = True


class ServerSettings(TypedDict):
    """Folders of runs, `descriptor` of the listening socket, the token and hosts, and both files of TLS or neither.

    `starts` is what the page may start, and nothing unless it was allowed; `metrics_token` opens the metrics alone.
    """

    roots: list[str]
    descriptor: int
    token: str
    hosts: list[str]
    tls_cert: NotRequired[str | None]
    tls_key: NotRequired[str | None]
    starts: NotRequired[StartSettings | None]
    metrics_token: NotRequired[str | None]


def serve(settings: ServerSettings) -> int:
    """Serve until stopped; the exit code.

    Parameters
    ----------
    settings
        What to serve, and where.
    """
    listening = socket.socket(fileno=settings["descriptor"])
    roots = [Path(root) for root in settings["roots"]]
    app, runs, starts = pages(roots, lambda: server.should_exit, settings.get("starts"))
    guard = Guard(
        app,
        token=settings["token"],
        hosts=settings["hosts"],
        port=listening.getsockname()[1],
        secure=bool(settings.get("tls_cert")),
        start_token=starts.token if starts is not None else None,
        metrics_token=settings.get("metrics_token"),
    )
    config = uvicorn.Config(
        guard,
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        lifespan="off",
        http="h11",
        ws="none",
        loop="asyncio",
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=1,
        ssl_certfile=settings.get("tls_cert"),
        ssl_keyfile=settings.get("tls_key"),
    )
    server = PageServer(config)
    # The first list is read while the browser starts.
    threading.Thread(target=runs.rows, name="assay-list", daemon=True).start()
    gc.freeze()
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    return int(ExitCode.INTERRUPTED) if server.ended_by == signal.SIGINT else int(ExitCode.DONE)


def main() -> int:
    """Serve with the settings of the descriptor that is named in the command line."""
    with open(int(sys.argv[1]), encoding="utf-8") as file:
        settings: ServerSettings = json.load(file)
    return serve(settings)


if __name__ == "__main__":
    sys.exit(main())
