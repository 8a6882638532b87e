"""Targets of studies: their kinds, and the options in their text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from assay.targets.arrays.model.model_file import load_model
from assay.targets.arrays.model.options import parse_model_target
from assay.targets.databases import is_database
from assay.targets.databases.common.spec import ON_ARRAY
from assay.targets.files.spec import is_model

Kind = Literal["model", "file", "database", "array", "flash"]


def target_kind(text: str) -> Kind:
    """Whether a target is a model or a database; files, devices and null: are measured in real time.

    Examples
    --------
    >>> target_kind("model:ps6100xv?raid=10"), target_kind("/data"), target_kind("embedded:/data/pg")
    ('model', 'file', 'database')
    """
    if is_database(text):
        return "database"
    return "model" if is_model(text) else "file"


def is_on_array(text: str) -> bool:
    """Whether a target is on an array that the run serves."""
    return text.lower().startswith(("array:", f"{ON_ARRAY}:"))


def is_on_flash(text: str) -> bool:
    """Whether a target is a model of several drives of flash that protect each other.

    Examples
    --------
    >>> is_on_flash("model:nvme-raid"), is_on_flash("model:ps6100xv"), is_on_flash("/data")
    (True, False, False)
    """
    if not is_model(text):
        return False
    model = load_model(parse_model_target(text)[0])
    return model.disk_kind == "solid-state" and bool({*model.policies} - {"0"})


def has_options(text: str) -> bool:
    """Whether a target takes options: models, null:, array:, embedded: and duckdb: do."""
    return text.lower().startswith(("model:", "null:", "array:", "embedded:", "embedded+array:", "duckdb:"))


def with_options(text: str, options: Mapping[str, str]) -> str:
    """A target with options set; those it had stay unless set.

    Examples
    --------
    >>> with_options("model:ps6100xv?raid=10&volumes=12", {"raid": "50"})
    'model:ps6100xv?raid=50&volumes=12'
    """
    name, _, given = text.partition("?")
    merged = {item.partition("=")[0]: item.partition("=")[2] for item in given.split("&") if item} | dict(options)
    return name + ("?" + "&".join(f"{key}={value}" for key, value in merged.items()) if merged else "")
