"""What an agent answers, as it is sent; `from_agent.py` has the same as it is checked where it is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Required, TypedDict


class PartAnswer(TypedDict):
    """A part in words, and as `--dry-run --json` has it."""

    lines: list[str]
    document: Mapping[str, object]


class ShareAnswer(TypedDict):
    """The share of a host of the target; sizes in bytes."""

    facts: Mapping[str, object]
    identities: dict[str, list[str]]
    lines: list[str]
    document: Mapping[str, object]
    is_virtual: bool
    layout_bytes: int | None
    sizes: dict[str, int]
    notices: list[str]
    is_databases: bool
    parts: dict[str, PartAnswer]


class LoadAnswer(TypedDict):
    """A load as a point will have it."""

    workload: Mapping[str, object]
    load: Mapping[str, object]


class AskAnswer(TypedDict):
    """What a host measures at its part of a load: the number of the load, and what decides its figures."""

    ask: int
    key: Mapping[str, object]
    asked: LoadAnswer


class StepAnswer(TypedDict, total=False):
    """The next step of a part, after the rest in seconds; the other keys are those of its kind."""

    rest_s: Required[float]
    kind: Required[Literal["done", "search", "keep", "measure"]]
    axis: Mapping[str, object]
    workload: Mapping[str, object]
    repeats: int
    ask: int
    key: Mapping[str, object]
    asked: LoadAnswer
    repeat: int
    judged: bool
    held: bool


class FiguresAnswer(TypedDict):
    """Figures that a host measured, the error that ended it (name and text), and its virtual nanoseconds so far."""

    figures: Mapping[str, object]
    error: list[str] | None
    virtual_ns: int


class ClosedAnswer(TypedDict):
    """What there is to say of a part at its end."""

    told: Mapping[str, object] | None
    notices: list[str]
    facts: Mapping[str, object] | None
    virtual_ns: int


class FactsAnswer(TypedDict):
    """What is known of the target."""

    facts: Mapping[str, object]
