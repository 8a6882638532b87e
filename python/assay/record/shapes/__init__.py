"""What a run folder must look like to be read: a folder may come from anywhere, and may have been edited.

Types are those of docs/results.md. Keys that this Assay does not know are allowed, those it knows have the type that
its readers count on; few are asked of all points and manifests, so that folders of older versions stay readable.
A fault is one line: the file, the place in it, what was expected there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from assay.base.errors import RunFolderError
from assay.base.paths import plain
from assay.record.shapes.kinds import Shapes, all_shapes, shapes_of

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

SHOWN_LETTERS = 40
_EXPECTED = {
    "missing": "it is missing",
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "dict_type": "an object",
    "list_type": "a list",
    "string_pattern_mismatch": "a text of the form {pattern}",
}


def check_manifest(manifest: Mapping[str, Any], where: str) -> None:
    """Check what `run.json` holds.

    Parameters
    ----------
    where
        The file, for the message.

    Raises
    ------
    RunFolderError
        Something in it has a type that no run has.
    """
    for adapter in _adapters("manifest", manifest):
        _check(adapter, manifest, where)
    study = manifest.get("study")
    if study is not None:
        _check_study(study, manifest.get("parts") or [], where)
    if "reliability" in manifest:
        _check_reliability(manifest["reliability"], where)
    if "sizing" in manifest:
        _check_sizing(manifest["sizing"], where)


def check_point(point: Mapping[str, Any], where: str) -> None:
    """Check a point, as `check_manifest` does a manifest; `where` is the file and the line."""
    for adapter in _adapters("point", point):
        _check(adapter, point, where)


def check_whole(points: Iterable[Mapping[str, Any]], where: str) -> None:
    """Check that points have what comparing, exporting and going on with a run count on.

    Raises
    ------
    RunFolderError
        A point lacks a key.
    """
    from assay.record.shapes.point import MAY_BE_NULL, WHOLE

    for point in points:
        for key in WHOLE:
            if key not in point or (point[key] is None and key not in MAY_BE_NULL):
                raise RunFolderError(f"{where}: point {point['id']} lacks {key!r}, which every point has")
        lacking = shapes_of(point["workload"].get("kind")).lacks(point)
        if lacking is not None:
            raise RunFolderError(f"{where}: point {point['id']} lacks {lacking}")


def check_goes_on(manifest: Mapping[str, Any], where: str) -> None:
    """Check that a manifest has what going on with its run counts on.

    Raises
    ------
    RunFolderError
        It lacks a key.
    """
    from assay.record.shapes.manifest import GOES_ON

    for key in GOES_ON:
        if manifest.get(key) is None:
            raise RunFolderError(f"{where} lacks {key!r}, without which the run cannot go on")
    if not manifest["parts"]:
        raise RunFolderError(f"{where}: parts: it is empty, so the run cannot go on")
    for number, part in enumerate(manifest["parts"]):
        for key, may_be_null in (("title", False), ("plan", False), ("planned_s", True), ("spent_s", True)):
            if key not in part or (part[key] is None and not may_be_null):
                raise RunFolderError(f"{where}: parts[{number}].{key}: it is missing")
    for number, volume in enumerate(manifest["target"].get("volumes") or []):
        for key in ("name", "size_bytes", "kind"):
            if volume.get(key) is None:
                raise RunFolderError(f"{where}: target.volumes[{number}].{key}: it is missing")


def _check_study(study: Mapping[str, Any], parts: Iterable[Mapping[str, Any]], where: str) -> None:
    """Names in a study lead to what they name."""
    names = [part["name"] for part in parts]
    if sorted(study["order"]) != sorted(names):
        raise RunFolderError(f"{where}: study.order: expected the name of each part once")
    factors = {factor["name"]: factor for factor in study["factors"]}
    by = (study["comparison"] or {}).get("by")
    if by is not None and by not in factors:
        raise RunFolderError(f"{where}: study.comparison.by: no factor is named {_shown(by)}")
    for part, levels in study["levels"].items():
        for factor, key in levels.items():
            if factor in factors and key not in {level["key"] for level in factors[factor]["levels"]}:
                raise RunFolderError(
                    f"{where}: study.levels.{_shown(part)}: {_shown(factor)} has no level {_shown(key)}"
                )


def _check_reliability(answer: Mapping[str, Any], where: str) -> None:
    """Names of inputs lead to inputs, and what a run with ageing disks needs is there."""
    known = {one["key"] for one in answer["inputs"]}
    of_ratios = [one["input"] for ratio in answer["ratios"] for one in ratio["by_input"]]
    for name in [*of_ratios, *(one["input"] for one in answer["curves"])]:
        if name not in known:
            raise RunFolderError(f"{where}: reliability: no input is named {_shown(name)}")
    if answer["failure_shape"] is not None and any(one["aged"] is None for one in answer["policies"]):
        raise RunFolderError(f"{where}: reliability.policies: 'aged' is missing, though disks age")


def _check_sizing(answer: Mapping[str, Any], where: str) -> None:
    """What is chosen has a purchase; a candidate with a size has all that is said of sizes, and what holds has one."""
    if answer["chosen"] and answer["chosen"].keys().isdisjoint(("cheapest", "fewest_disks")):
        raise RunFolderError(f"{where}: sizing.chosen.cheapest: it is missing")
    for number, candidate in enumerate(answer["candidates"]):
        if "disks" not in candidate and not candidate["holds"]:
            continue
        for key in ("disks", "cost", "fill", "latency_ns"):
            if key not in candidate:
                raise RunFolderError(f"{where}: sizing.candidates[{number}].{key}: it is missing")


def _adapters(of: Literal["manifest", "point"], document: Mapping[str, object]) -> list[TypeAdapter[Any]]:
    """What checks a manifest or a point: its common keys, of its kind, and of other kinds whose keys it has."""
    workload = document.get("workload")
    kind = workload.get("kind") if isinstance(workload, Mapping) else None
    mine = shapes_of(kind).point if kind is None or isinstance(kind, str) else None
    return [
        _adapter(shape)
        for shape, needed, keys in _shapes(of, tuple(all_shapes()))
        if needed or shape is mine or not keys.isdisjoint(document)
    ]


@cache
def _shapes(of: Literal["manifest", "point"], kinds: tuple[Shapes, ...]) -> list[tuple[type, bool, frozenset[str]]]:
    """Shapes of a manifest or a point, whether one is checked always, and the keys of its own.

    In a point, keys that all kinds have mean what its own kind says.
    """
    from assay.record.shapes.manifest import Manifest
    from assay.record.shapes.point import Point

    own = [shapes.manifest if of == "manifest" else shapes.point for shapes in kinds]
    common: Any = Manifest if of == "manifest" else Point
    shared = common.__required_keys__ | common.__optional_keys__ if of == "point" else frozenset()
    typed: list[Any] = [common, *(shape for shape in own if shape is not None)]
    return [
        (
            shape, shape is common or bool(shape.__required_keys__),
            (shape.__required_keys__ | shape.__optional_keys__) - shared,
        )
        for shape in typed
    ]  # fmt: skip


@cache
def _adapter(shape: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(shape)


def _check(adapter: TypeAdapter[Any], value: Mapping[str, Any], where: str) -> None:
    from pydantic import ValidationError

    try:
        # What comes of it is thrown away: readers get the document as it is, with numbers as they were written.
        adapter.validate_python(value)
    except ValidationError as error:
        raise RunFolderError(f"{where}: {_told(error)}; the folder was changed, or is damaged") from None


def _told(error: ValidationError) -> str:
    """The first fault: where, and what was expected."""
    found = error.errors(include_url=False, include_context=True)
    # Several kinds may be allowed in one place; each has its fault there, and the deepest is that of the kind meant.
    first = found[0]
    if first["loc"] and isinstance(first["loc"][-1], str) and _is_kind(first["loc"][-1]):
        here = first["loc"][:-1]
        first = max(
            (fault for fault in found if fault["loc"][: len(here)] == here), key=lambda fault: len(fault["loc"])
        )
    keys = [key for key in first["loc"] if isinstance(key, int) or not _is_kind(key)]
    place = "".join(f"[{key}]" if isinstance(key, int) else f".{_cut(key)}" for key in keys).removeprefix(".")
    if first["type"] == "missing":
        return f"{place}: it is missing"
    words = _EXPECTED.get(first["type"]) or first["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    pattern = str(first.get("ctx", {}).get("pattern")).removeprefix(r"\A").removesuffix(r"\z")
    expected = words.replace("{pattern}", pattern)
    return f"{place or 'the document'}: expected {expected}, found {_shown(first['input'])}"


def _is_kind(key: str) -> bool:
    """Whether a step of a place is pydantic's name for one of several kinds rather than a key."""
    return (
        key in ("int", "str", "bool", "float")
        or key == "[key]"
        or key.startswith(("dict[", "constrained-", "nullable[", "list["))
    )


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(_cut(value)) if isinstance(value, str) else _cut(repr(value))


def _cut(text: str) -> str:
    return plain(text if len(text) <= SHOWN_LETTERS else text[:SHOWN_LETTERS] + "…")
