"""The state of Linux's software RAID: missing disks and rebuilds.

Source: kernel documentation, admin-guide/md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from assay.base.errors import NotSupported
from assay.targets.kernel import read_number, read_text
from assay.telemetry.columns import Reading

_SECTOR_BYTES = 512


class RaidCollector:
    """Disks that each array lacks, and bytes that its rebuild has done.

    Parameters
    ----------
    folder
        The folder of block devices, for tests.
    """

    name = "md"
    tier = "storage"
    source = "raid"

    def __init__(self, folder: str | Path = "/sys/block") -> None:
        self._folder = Path(folder)

    def sample(self) -> dict[str, tuple[int, int | None]]:
        """Missing disks, and sectors rebuilt so far, of each array.

        Raises
        ------
        NotSupported
            There is no array.
        """
        found: dict[str, tuple[int, int | None]] = {}
        for one in sorted(self._folder.glob("md*")):
            missing = read_number(one / "md/degraded")
            if missing is not None:
                done = (read_text(one / "md/sync_completed") or "").split("/")[0].strip()
                found[one.name] = (missing, int(done) if done.isdecimal() else None)
        if not found:
            raise NotSupported("there is no array of md with redundancy")
        return found

    def readings(
        self,
        before: Mapping[str, tuple[int, int | None]],
        after: Mapping[str, tuple[int, int | None]],
        interval_ns: int,
    ) -> Iterator[Reading]:
        """The state at the end of the interval, and what was rebuilt in it."""
        del interval_ns
        for name, (missing, done) in after.items():
            yield Reading(name, "degraded_count", "gauge", float(missing))
            old = before.get(name, (0, None))[1]
            if done is not None and old is not None and done >= old:
                yield Reading(name, "rebuilt_bytes", "delta", float((done - old) * _SECTOR_BYTES))

    def close(self) -> None:
        """Nothing is held."""
