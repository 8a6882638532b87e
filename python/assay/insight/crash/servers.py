"""The servers that Assay runs itself on a volume, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from assay.insight.crash.controls import Control
from assay.insight.crash.mariadb import OwnMariadb
from assay.insight.crash.own_server import OwnServer
from assay.insight.crash.postgresql import OwnPostgres
from assay.insight.crash.promises import Promises
from assay.insight.crash.requests import SubjectKind, SubjectRequest

SERVERS: Mapping[str, type[OwnPostgres] | type[OwnMariadb]] = {"postgresql": OwnPostgres, "mariadb": OwnMariadb}


def own_server(request: SubjectRequest, work: Path) -> OwnServer:
    """The server of a request, not started yet.

    Raises
    ------
    NotSupported
        Its programs are missing, or no user can run them.
    UsageError
        The user who is to run it cannot be had.
    """
    return SERVERS[request.kind](request.settings, request.user, patience_s=request.patience_s, work=work)


def control_of(kind: SubjectKind, settings: Sequence[str], promises: Promises) -> Control | None:
    """Why a program must fail with these settings under these promises; None: it may pass."""
    known = SERVERS[kind].controls if kind in SERVERS else {}
    for setting in settings:
        control = known.get(setting)
        if control is not None and control.must_fail(promises):
            return control
    return None


def control_settings(kind: SubjectKind) -> tuple[str, ...]:
    """Settings under which a program must fail, each in a row of its own."""
    return tuple(SERVERS[kind].controls) if kind in SERVERS else ()


def page_control(settings: Sequence[str]) -> Control | None:
    """The setting among these that lets pages be torn, of whatever server."""
    known = {name: control for kind in SERVERS.values() for name, control in kind.controls.items()}
    return next((known[one] for one in settings if one in known and known[one].page_bytes), None)
