"""Every failure has one exit code, and every error the compiled core raises is one of Assay's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay import _core
from assay.base import errors
from assay.base.errors import AssayError, ExitCode, UsageError


def every_error() -> list[type[AssayError]]:
    found, waiting = [], [AssayError]
    while waiting:
        found.append(waiting.pop())
        waiting += found[-1].__subclasses__()
    return found


def test_exit_codes_are_those_documented() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "DONE": 0, "LIMIT_MISSED": 1, "USAGE": 2, "TARGET_FAILED": 3, "INTEGRITY_FAILED": 4, "LIMIT_UNKNOWN": 5,
        "WORSE": 6, "INTERRUPTED": 130,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("UsageError", 2),
        ("RefusedTarget", 2),
        ("RunFolderError", 2),
        ("OpenFailed", 3),
        ("OutOfSpace", 3),
        ("IoFailed", 3),
        ("NotAnswering", 3),
        ("NotSupported", 3),
        ("Interrupted", 130),
    ],
)
def test_every_error_has_its_exit_code(name: str, code: int) -> None:
    assert getattr(errors, name).exit_code == code


def test_no_error_claims_success() -> None:
    assert len(every_error()) >= 10
    assert all(error.exit_code not in (ExitCode.DONE, ExitCode.LIMIT_MISSED) for error in every_error())


def test_the_core_raises_errors_of_assay(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="session plan"):
        _core.Session("{}")
    with pytest.raises(UsageError):
        _core.Histogram.from_base64("no histogram")
    (tmp_path / "f").touch()
    with (tmp_path / "f").open("rb") as file, pytest.raises(errors.IoFailed, match="only read"):
        _core.allocate(file.fileno(), tmp_path / "only read", 4096)
    with pytest.raises(errors.OpenFailed, match="missing"):
        _core.Session(json.dumps(session_plan(tmp_path / "missing")))


def test_the_core_names_what_it_refuses(tmp_path: Path) -> None:
    plan = session_plan(tmp_path / "f")
    plan["activities"][0]["access"]["read_share"] = 1.3

    with pytest.raises(UsageError, match=r"read_share: 1\.3 is outside 0 to 1"):
        _core.Session(json.dumps(plan))


def session_plan(path: Path) -> dict:  # type: ignore[type-arg]
    access = {
        "blocks": [{"bytes": 4096, "weight": 1.0}], "read_share": 1.0, "random_share": 1.0,
        "skew": {"kind": "uniform"}, "region": {"start_bytes": 0, "end_bytes": 65536}, "align_bytes": 4096,
        "streams": 1, "stride_bytes": None, "duplicate_share": 0.0,
    }  # fmt: skip
    activity = {
        "name": "io", "role": "data", "volumes": [0], "workers": 1, "direct": False, "sync": "none", "sync_every": 1,
        "compressible_share": 0.0, "limit_bytes": None, "load": {"kind": "closed", "queue_depth": 1}, "access": access,
    }  # fmt: skip
    volume = {"name": "f", "volume": {"kind": "file", "path": str(path)}, "sector_bytes": 512}
    return {"volumes": [volume], "activities": [activity], "backend": "threads", "seed": 1,
            "interval_ns": 100_000_000, "io_timeout_ns": 10**10}  # fmt: skip
