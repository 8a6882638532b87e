"""Paths of multipath devices: how many are there, and what each one does (device mapper's folders in /sys)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from assay.base.errors import NotSupported
from assay.targets.kernel import read_text
from assay.telemetry.collectors.block import BlockCollector, DeviceCounters
from assay.telemetry.columns import Reading


def multipath_maps(folder: str | Path = "/sys/block") -> dict[str, list[str]]:
    """Names of the paths of each multipath device: of those whose identity begins so, as multipathd gives it."""
    found = {}
    try:
        maps = sorted(Path(folder).glob("dm-*"))
    except OSError:
        return {}
    for one in maps:
        if (read_text(one / "dm/uuid") or "").startswith("mpath-"):
            found[one.name] = sorted(path.name for path in (one / "slaves").iterdir())
    return found


PATHS_MAX = 256
"""Paths that are recorded."""


def first_paths(maps: Mapping[str, Sequence[str]], notice: Callable[[str], None]) -> Mapping[str, Sequence[str]]:
    """Multipath devices whose paths are recorded: all, or of very many the first."""
    chosen: dict[str, Sequence[str]] = {}
    for name, paths in maps.items():
        if sum(map(len, chosen.values())) + len(paths) > PATHS_MAX:
            notice(f"of {len(maps):,} multipath devices the paths of the first {len(chosen):,} are recorded")
            break
        chosen[name] = paths
    return chosen


class MultipathCollector:
    """Paths of each multipath device that run and that do not, and whether each path has failed.

    Parameters
    ----------
    folder
        The folder of block devices, for tests.
    """

    name = "multipath"
    tier = "storage"
    source = "multipath"

    def __init__(self, folder: str | Path = "/sys/block") -> None:
        self._folder = Path(folder)

    def sample(self) -> dict[str, dict[str, bool]]:
        """Return whether each path runs, by multipath device.

        Raises
        ------
        NotSupported
            There is no multipath device.
        """
        maps = multipath_maps(self._folder)
        if not maps:
            raise NotSupported("there is no multipath device")
        return {name: {path: self._runs(path) for path in paths} for name, paths in maps.items()}

    def _runs(self, path: str) -> bool:
        return (read_text(self._folder / path / "device/state") or "running") in ("running", "live")

    def readings(
        self, before: Mapping[str, Mapping[str, bool]], after: Mapping[str, Mapping[str, bool]], interval_ns: int
    ) -> Iterator[Reading]:
        """Counts at the end of the interval, and each path; one that is gone since the beginning has failed."""
        del interval_ns
        for name, paths in after.items():
            runs = dict.fromkeys(before.get(name, {}), False) | dict(paths)
            yield Reading(name, "paths_running_count", "gauge", float(sum(runs.values())))
            yield Reading(name, "paths_failed_count", "gauge", float(len(runs) - sum(runs.values())))
            for path, is_running in runs.items():
                yield Reading(f"{name}/{path}", "failed_share", "gauge", 0.0 if is_running else 1.0)

    def close(self) -> None:
        """Nothing is held."""


class PathsCollector(BlockCollector):
    """What each path of multipath devices does, as `dm-0/sdb`.

    Parameters
    ----------
    maps
        Paths by device, of `multipath_maps`.
    path
        The file, for tests.
    """

    name = "paths"
    source = "path"

    def __init__(self, maps: Mapping[str, Sequence[str]], *, path: str | Path = "/proc/diskstats") -> None:
        super().__init__([one for paths in maps.values() for one in paths], path=path)
        self._maps = {one: name for name, paths in maps.items() for one in paths}

    def readings(
        self, before: dict[str, DeviceCounters], after: dict[str, DeviceCounters], interval_ns: int
    ) -> Iterator[Reading]:
        """Values of each path, named by its device."""
        for one in super().readings(before, after, interval_ns):
            yield one._replace(entity=f"{self._maps[one.entity]}/{one.entity}")
