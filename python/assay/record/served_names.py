"""What tells the served arrays of a run apart: members, disks and volumes have the same names in each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.record.shapes.point import Point, ServedPoint


def prefixes(folders: Iterable[str]) -> dict[str, str]:
    """What stands before the names of each array, by the folder that shows it; nothing where a run has one array.

    Examples
    --------
    >>> prefixes(["/srv/group"])
    {'/srv/group': ''}
    >>> prefixes(["/srv/data", "/srv/log"])
    {'/srv/data': 'data/', '/srv/log': 'log/'}
    >>> prefixes(["/a/group", "/b/group"])
    {'/a/group': '/a/group/', '/b/group': '/b/group/'}
    """
    distinct = list(dict.fromkeys(folders))
    if len(distinct) < 2:
        return dict.fromkeys(distinct, "")
    names = [PurePath(folder).name for folder in distinct]
    told = names if len(set(names)) == len(names) else distinct
    return {folder: f"{name}/" for folder, name in zip(distinct, told, strict=True)}


def named_arrays(point: Point) -> list[tuple[str, ServedPoint]]:
    """The arrays that a point was served by, each with what stands before its names.

    Names are those of the point: a study may serve another array, in another folder, for each of its points.
    """
    arrays = {str(served.get("folder")): served for served in point.get("served") or ()}
    return [(prefix, arrays[folder]) for folder, prefix in prefixes(arrays).items()]
