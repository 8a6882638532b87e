"""Reference figures: what storage of a class does at a load, each with its source and state.

The files of `references/` hold them. A file of somebody else's figures (`assay report --share`) has the same form and
passes the same validator, `read_references`.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from assay.base.errors import UsageError
from assay.base.fields import Strict
from assay.base.paths import printable
from assay.base.reading import read_text

Short = Annotated[str, Field(min_length=1, max_length=120, pattern=r"\A[^\x00-\x1f\x7f-\x9f]*\z")]
Share = Annotated[float, Field(ge=0, le=1)]
Basis = Literal["data sheet", "measured", "model", "shared"]
"""What a figure is: a vendor's, measured by somebody, predicted by a model of Assay, or shared by a user."""
Metric = Literal["iops", "read_latency_p99_ns", "write_latency_p99_ns", "read_latency_mean_ns", "write_latency_mean_ns"]

FIGURES_MAX = 2_000
FILE_BYTES_MAX = 2**20


class ReferenceFigure(Strict):
    """One figure at one load."""

    metric: Metric
    value: Annotated[float, Field(gt=0, le=1e15)]
    block_bytes: Annotated[int, Field(ge=512, le=2**30)]
    read_share: Share
    random_share: Share
    outstanding: Annotated[int, Field(ge=1, le=10**6)]


class ReferenceStorage(Strict):
    """Storage whose figures are known.

    Attributes
    ----------
    of
        What it is, by its name.
    storage_class, title
        The class it is of, and the class in words, as after "a".
    kind
        What one of the class is called.
    state
        In which it was measured: steady, purged, unknown.
    """

    of: Short
    storage_class: Annotated[str, Field(pattern=r"\A[a-z0-9]+(-[a-z0-9]+)*\z", max_length=40)]
    title: Short
    kind: Literal["drive", "volume", "array"] = "drive"
    basis: Basis
    source: Short
    state: Literal["steady", "purged", "filled", "unsteady", "unknown"]
    figure: Annotated[tuple[ReferenceFigure, ...], Field(min_length=1, max_length=FIGURES_MAX)]


class ReferenceFile(Strict):
    """A file of reference figures."""

    schema_version: Literal[1]
    as_of: Annotated[str, Field(pattern=r"\A20\d\d-(0[1-9]|1[0-2])\z")]
    storage: Annotated[tuple[ReferenceStorage, ...], Field(min_length=1, max_length=200)]


def parse_references(text: str, where: str) -> ReferenceFile:
    """Reference figures from their TOML form.

    Raises
    ------
    UsageError
        They are none; the message names the first fault.
    """
    try:
        return ReferenceFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{printable(where)}: is no TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{printable(where)}: {printable(place)}: {first['msg']}; expected a figure as in --share"
        ) from None


def read_references(path: Path) -> ReferenceFile:
    """Reference figures of a file.

    Raises
    ------
    UsageError
        It cannot be read, or holds something else.
    """
    return parse_references(read_text(path, source=printable(path)), printable(path))


def known_references() -> list[ReferenceStorage]:
    """All storage of the files that come with Assay."""
    folder = resources.files(__package__) / "references"
    files = sorted((one for one in folder.iterdir() if one.name.endswith(".toml")), key=lambda one: one.name)
    return [storage for one in files for storage in parse_references(one.read_text("utf-8"), one.name).storage]
