"""What kinds of workloads add to the shapes of points and manifests; the registry of workloads joins them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """A kind's own keys.

    Attributes
    ----------
    point, manifest
        TypedDicts of what the kind adds to points and manifests, at any depth; None for nothing.
    lacks
        What a point of the kind lacks that comparing, exporting and going on count on; None where it is whole.
    """

    point: type | None = None
    manifest: type | None = None
    lacks: Callable[[Mapping[str, Any]], str | None] = lambda _point: None


_KINDS: dict[str | None, Callable[[], Shapes]] = {}


def join_shapes(kind: str | None, shapes: Callable[[], Shapes]) -> None:
    """Check points and manifests for what a kind adds, from now on; None stands for points that name no kind.

    The kind is asked for its shapes when they are needed, so that it need not be imported before.
    """
    _KINDS[kind] = shapes
    all_shapes.cache_clear()


@cache
def all_shapes() -> list[Shapes]:
    """What the kinds add."""
    return list(dict.fromkeys(shapes() for shapes in _KINDS.values()))


def shapes_of(kind: str | None) -> Shapes:
    """What a kind adds; nothing that is known of an unknown one."""
    return _KINDS.get(kind, Shapes)()
