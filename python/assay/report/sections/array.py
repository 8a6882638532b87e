"""The modelled array under load: what was asked of the model, and every parameter with where it comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.base.units import format_bytes
from assay.document.elements import Block, Cell, Column, FactList, Paragraph, Section, Table
from assay.document.text import DASH, joined, percent, shorten
from assay.record.shapes.manifest import Calibration, ModelledArray, Parameter, ShownArray, Target

SURVIVES = {
    "battery": "all acknowledged writes are there",
    "volatile": "what was flushed is there, and what the model had destaged",
    "lying": "what the model had destaged is there: flushes are acknowledged and not obeyed",
}
"""What each kind of cache keeps."""


def array_blocks(target: Target) -> list[Block]:
    """Facts of the manifest's `target.array`."""
    array = target.get("array") or {}
    volumes = target.get("volumes") or []
    sizes = {format_bytes(volume.get("size_bytes") or 0) for volume in volumes}
    facts = [("Array", str(array.get("title") or DASH)), ("Asked as", str(array.get("target") or DASH))]
    counted = ("Volumes", f"{len(volumes)} of {', '.join(sorted(sizes))}")
    if array.get("limits"):
        return [FactList("array", [*facts, counted, *_cloud_facts(array)])]
    facts += [
        ("RAID policy", str(array.get("raid") or DASH).upper()),
        (_parts(array), str(array.get("members") or DASH)),
        counted,
        ("Raw", format_bytes(array.get("raw_bytes") or 0)),
        ("Usable", f"{format_bytes(array.get('usable_bytes') or 0)}, {percent(array.get('fill') or 0.0)} of it used"),
        ("Calibrated", _calibrated(array.get("calibration"))),
    ]
    return [FactList("array", facts)]


def model_words(title: str, target: str) -> str:
    """A model by product and configuration, as far as its target states it.

    Examples
    --------
    >>> model_words("PS6100XV, 24 disks", "model:ps6100xv?raid=10&volumes=data:12,log:2&volume_size=log:1073741824B")
    'PS6100XV, RAID 10, 12 data and 2 log volumes, volume size 1 GiB log'
    """
    words = [title.partition(",")[0]]
    for key, _, value in (option.partition("=") for option in target.partition("?")[2].split("&") if option):
        parts = [part.rpartition(":") for part in value.split(",")]
        amounts = [format_bytes(int(one[:-1])) if re.fullmatch(r"\d+B", one) else one for _, _, one in parts]
        shown = joined([f"{amount} {role}".strip() for amount, (role, _, _) in zip(amounts, parts, strict=True)])
        if key == "raid":
            words.append(f"RAID {shown.upper()}")
        elif key in ("volumes", "members"):
            words.append(f"{shown} {key.removesuffix('s') if value == '1' else key}")
        else:
            words.append(f"{key.replace('_', ' ')} {shown}")
    return ", ".join(words)


def parameters_section(target: Target) -> Section | None:
    """Every parameter of the model under load; None without one."""
    array = target.get("array")
    return (
        Section("model", "The model's parameters", [parameter_table(array.get("parameters") or {})]) if array else None
    )


def served_blocks(array: ShownArray) -> list[Block]:
    """Facts of one of the manifest's `target.served`: an array that answered on the wall clock with real bytes."""
    served = array.get("served") or {}
    facts = [
        ("Served array", str(array.get("title") or DASH)),
        ("Asked as", shorten(str(array.get("target") or DASH), 200)),
    ]
    shown = [
        ("Shown at", shorten(str(served.get("folder") or DASH), 120)),
        ("After a power cut", SURVIVES.get(str(served.get("durability")), DASH)),
    ]
    if array.get("limits"):
        return [FactList("served-array", [*facts, *shown, *_cloud_facts(array)])]
    facts += [
        ("RAID policy", str(array.get("raid") or DASH).upper()),
        (_parts(array), str(array.get("members") or DASH)),
        *shown,
        ("Raw", format_bytes(array.get("raw_bytes") or 0)),
        ("Usable", f"{format_bytes(array.get('usable_bytes') or 0)}, {percent(array.get('fill') or 0.0)} of it used"),
        ("Calibrated", _calibrated(array.get("calibration"))),
    ]
    return [FactList("served-array", facts)]


def _cloud_facts(array: ModelledArray) -> list[tuple[str, str]]:
    """What a provider offers a volume as, and the limits of volumes and machine."""

    def rate(what: str, per_s: float) -> str:
        return f"{per_s:,.0f}" if what == "IOPS" else f"{format_bytes(per_s)}/s"

    facts = [("Offered", f"{shorten(str(array.get('region') or DASH), 200)}, as of {array.get('as_of') or DASH}")]
    for limit in array.get("limits") or []:
        what, per_s, burst = str(limit.get("what")), limit.get("per_s") or 0, limit.get("burst_per_s") or 0
        text = rate(what, per_s)
        if burst > per_s:
            text += f"; {rate(what, burst)} for {limit.get('burst_s') or 0:,.0f} s with the credits at the beginning"
        facts.append((f"{what} of {limit.get('of')}", text))
    return facts


def _parts(array: ModelledArray) -> str:
    """What the array has several of."""
    return "Data nodes" if "node.cores" in (array.get("parameters") or {}) else "Members"


def _calibrated(calibration: Calibration | None) -> str:
    if not calibration:
        return "no: data sheets and assumptions"
    share = percent(calibration.get("error_share") or 0.0)
    free = ", ".join(str(name) for name in calibration.get("free") or [])
    return (
        f"to {calibration.get('points')} points of {calibration.get('from')}; fitted {free}; error of prediction"
        f" {share} (leave one out)"
    )


def parameter_table(parameters: Mapping[str, Parameter]) -> Block:
    """Every parameter with where it comes from."""
    if not parameters:
        return Paragraph("The run does not hold the model's parameters.")
    columns = [
        Column("Parameter", weight=1.6), Column("Value", number=True, weight=0.9), Column("Unit", weight=0.6),
        Column("+-", number=True, weight=0.5), Column("From", weight=0.8), Column("Source", weight=3.0),
    ]  # fmt: skip
    rows = []
    for name, parameter in parameters.items():
        within = parameter.get("plus_minus")
        rows.append(
            [
                Cell(str(name)),
                Cell(_value(parameter.get("value"))),
                Cell(str(parameter.get("unit") or "")),
                Cell(percent(within) if within else ""),
                Cell(str(parameter.get("from") or DASH)),
                Cell(shorten(str(parameter.get("source") or DASH), 160)),
            ]
        )
    return Table("parameters", "Every parameter of the model, and where it comes from.", columns, rows)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.6g}" if isinstance(value, (int, float)) else str(value)
