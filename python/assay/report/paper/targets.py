"""Whether the runs of a paper are of one target: what one says of storage need not hold for another."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.base.errors import UsageError
from assay.base.paths import plain
from assay.base.tables import Record
from assay.record.source import records

ANY = "*"
"""Stands for all devices of a host."""

Target = tuple[str, str]
"""A host and a device of it, or `model` and an array."""


def targets_of(manifest: Record) -> list[Target]:
    """What a run was of; nothing for what has no target, such as a sizing."""
    if "recording" in manifest and manifest.get("imported") is None:
        return [(str(host), ANY) for host in manifest["recording"].get("hosts") or []]
    asked = [part.get("target") for part in records(manifest.get("parts"))]
    asked += (manifest.get("request") or {}).get("paths") or []
    target = manifest.get("target") or {}
    found = [("model", match[1]) for text in asked if (match := re.match(r"model:([^?]+)", str(text or "")))]
    if target.get("array"):
        found.append(("model", str(target["array"].get("name"))))
    host = str((manifest.get("host") or {}).get("hostname") or "unknown host")
    for volume in records(target.get("volumes")):
        if volume.get("kind") != "model":
            devices = volume.get("device_stack") or [volume.get("device") or ANY]
            found.append((host, str(devices[-1])))
    return list(dict.fromkeys(found))


def _is_same(one: Target, other: Target) -> bool:
    return one[0] == other[0] and (ANY in (one[1], other[1]) or one[1] == other[1])


def refuse_different(runs: Sequence[tuple[str, Record]]) -> None:
    """Refuse runs of which one shares no target with the others.

    Parameters
    ----------
    runs
        Numbers of the runs, and their manifests.

    Raises
    ------
    UsageError
        They are of several targets; the message names them.
    """
    groups: list[tuple[list[str], list[Target]]] = []
    for number, manifest in runs:
        numbers, own = [number], targets_of(manifest)
        if not own:
            continue
        apart = []
        for group in groups:
            if any(_is_same(one, other) for one in own for other in group[1]):
                numbers, own = [*group[0], *numbers], [*group[1], *own]
            else:
                apart.append(group)
        groups = [*apart, (numbers, own)]
    if len(groups) > 1:
        told = "; ".join(f"{', '.join(numbers)} of {_named(own[0])}" for numbers, own in groups)
        raise UsageError(
            f"--paper: the runs are of different targets: {told}; give --several-targets to keep them apart in one"
            " paper, or leave some out"
        )


def _named(target: Target) -> str:
    place, what = target
    return plain(f"model:{what}" if place == "model" else f"host {place}" + ("" if what == ANY else f", device {what}"))
