"""Types that shapes share hold classes, no names of classes: Python 3.14 looks these up where the type is used."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Annotated, Any, ForwardRef, Literal, get_args, get_origin

import assay.record.shapes


def names(value: Any) -> Iterator[str]:
    if isinstance(value, ForwardRef | str):
        yield str(value)
    if (origin := get_origin(value)) is not Literal:
        # What Annotated says beside the type is no type.
        for part in get_args(value)[: 1 if origin is Annotated else None]:
            yield from names(part)


def test_no_shared_type_names_a_class_in_quotes() -> None:
    found = {
        f"{module.name}.{key}": quoted
        for module in pkgutil.iter_modules(assay.record.shapes.__path__, "assay.record.shapes.")
        for key, value in vars(importlib.import_module(module.name)).items()
        if get_args(value) and (quoted := [*names(value)])
    }
    assert found == {}
