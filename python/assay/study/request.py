"""What the user asked of the target."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.analysis.cache_span import PART as CACHE_SPAN
from assay.study.execute import Part
from assay.study.layout import SIZE_MOST_DEFAULT_BYTES, Target, choose_target
from assay.study.plan import Plan
from assay.study.session import Volume, check_workload
from assay.targets.spec import parse_targets
from assay.units import parse_bytes


def check_plan(plan: Plan, volumes: Sequence[Volume]) -> None:
    """Refuse a plan that does not fit the volumes, before anything is written to them.

    Raises
    ------
    UsageError
        A block does not fit the sector, the region or the memory.
    """
    sector_bytes = max(volume.sector_bytes for volume in volumes)
    for workload in plan.workloads():
        fitted = workload.fitted(sector_bytes) if plan.fits_sector else workload
        if fitted is not None:
            check_workload(fitted, volumes)


@dataclass(kw_only=True)
class Request:
    """What the user asked of the target, as far as a resumed run needs it again. Holds no secrets."""

    paths: list[str]
    volumes: list[str] = field(default_factory=list)
    size: str | None = None
    cache_size: str | None = None
    overwrite: list[str] = field(default_factory=list)
    yes_destroy: list[str] = field(default_factory=list)
    size_most_bytes: int = SIZE_MOST_DEFAULT_BYTES

    def choose(
        self, parts: Sequence[Part], sizes: dict[str, int] | None = None, by_path: dict[str, int] | None = None
    ) -> Target:
        """Examine the target. `sizes`, by volume, are those a resumed run had; `by_path` are those of single files."""
        specs = parse_targets(self.paths, volumes=self.volumes, sizes=self.size)
        paths = {os.path.abspath(path): size for path, size in (by_path or {}).items()}
        specs = [replace(spec, size_bytes=paths.get(str(spec.path), spec.size_bytes)) for spec in specs]
        target = choose_target(
            specs,
            overwrite=self.overwrite,
            yes_destroy=self.yes_destroy,
            writes=any(workload.writes for part in parts for workload in part.plan.workloads()),
            cache_bytes=parse_bytes(self.cache_size, what="--cache-size") if self.cache_size else None,
            size_most_bytes=self.size_most_bytes,
        )
        target.sizes |= {name: size for name, size in (sizes or {}).items() if name in target.sizes}
        for part in parts:
            # The spans of the cache-span part are chosen by the size of the target, later.
            if part.name != CACHE_SPAN:
                check_plan(part.plan, target.volumes)
        return target

    def to_dict(self) -> dict[str, Any]:
        """The request as the manifest keeps it."""
        return dict(vars(self))
