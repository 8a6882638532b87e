"""What a file of another load generator asks for, in the words of plans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assay.targets.files.spec import named, parse_file
from assay.workloads.io.plan import IoPlan


@dataclass(kw_only=True)
class AskedElsewhere:
    """A file of another load generator, understood.

    Attributes
    ----------
    plans
        What runs one after the other.
    paths
        Files and devices that it names and that are used; none where a target is named beside it.
    lines
        What was taken, and what was not, a line each.
    """

    plans: list[IoPlan]
    paths: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def names_of(paths: Sequence[str]) -> dict[str, str]:
    """The name that each path has as a volume of one target."""
    return {
        path: one.name for path, one in zip(paths, named([parse_file(path, "data") for path in paths]), strict=True)
    }


def is_of_windows(path: str) -> bool:
    r"""Whether a path is one of Windows, which names nothing here.

    Examples
    --------
    >>> is_of_windows(r"E:\data\f.dat"), is_of_windows(r"\\.\PhysicalDrive1"), is_of_windows("/dev/sdb")
    (True, True, False)
    """
    return path.startswith("\\\\") or re.match(r"[A-Za-z]:([\\/]|$)", path) is not None


def part_names(wanted: Iterable[str]) -> list[str]:
    """Names of parts: each is another, and made of letters that names of parts have.

    Examples
    --------
    >>> part_names(["seq read", "seq read", ""])
    ['seq-read', 'seq-read-2', 'part']
    """
    found: list[str] = []
    for name in wanted:
        plain = re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.")[:40] or "part"
        found.append(plain if plain not in found else next(
            one for one in (f"{plain}-{number}" for number in range(2, len(found) + 3)) if one not in found
        ))  # fmt: skip
    return found


def left_out(where: str, options: Mapping[str, str], why: str) -> list[str]:
    """A line for each option that is left out."""
    return [f"{where}: {name}={value}"[:200].removesuffix("=") + f": {why}" for name, value in sorted(options.items())]


def together(lines: Iterable[str]) -> list[str]:
    """The lines with what is said of several jobs said once.

    Examples
    --------
    >>> together(["job a: loops=2: left out", "job a: read", "job b: loops=2: left out"])
    ['jobs a, b: loops=2: left out', 'job a: read']
    """
    found: dict[str, list[str]] = {}
    for line in lines:
        where, mark, text = line.partition(": ")
        job = where.removeprefix("job ") if mark and where.startswith("job ") else ""
        found.setdefault(text if job else line, []).append(job)
    return [
        text if not jobs[0] else f"job{'s' if len(jobs) > 1 else ''} {', '.join(jobs[:20])}: {text}"
        for text, jobs in found.items()
    ]
