"""What a diagnosis is made of: run folders, recordings, and files of other tools, which are imported for the while."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.insight.diagnosis.observed import ObservedSource
from assay.record.load import load
from assay.record.points import current_points
from assay.record.source import clean, records
from assay.run.imports import import_files, refuse_without_telemetry
from assay.telemetry.importers.importer import Options


def sources_of(
    paths: Sequence[Path], options: Options, tell: Callable[[str], None] = lambda _: None
) -> tuple[list[ObservedSource], list[str]]:
    """Read what a diagnosis is asked of, and what is to be said of it.

    Raises
    ------
    UsageError
        A path is neither a run folder nor a file that can be imported, is given twice, or holds nothing.
    """
    real = [path.resolve() for path in paths]
    twice = next((path for place, path in enumerate(paths) if real[place] in real[:place]), None)
    if twice is not None:
        raise UsageError(f"{printable(twice)}: is given twice; give it once")
    sources, notices = [], []
    files = [path for path in paths if not path.is_dir()]
    for path in paths:
        if path.is_dir():
            sources.append(source_of(path))
    if files:
        with tempfile.TemporaryDirectory(prefix="assay-import-") as folder:
            made = import_files(files, into=folder, options=options, command=[], tell=tell)
            refuse_without_telemetry(made, files)
            name = ", ".join(printable(path) for path in files)
            sources.append(_read(made.path, name))
            notices += made.notices
    if all(source.series is None or source.series.is_empty() for source in sources):
        names = ", ".join(printable(path) for path in paths)
        raise UsageError(f"{names}: nothing is recorded there; a diagnosis needs a run or a recording with a series")
    return sources, notices


def source_of(path: Path) -> ObservedSource:
    """Read a run folder or a recording.

    Raises
    ------
    RunFolderError
        It is none, or is damaged.
    """
    return _read(path, path.name or printable(path))


def _read(path: Path, name: str) -> ObservedSource:
    run = load(path)
    points = [clean(point) for point in records(current_points(run.points_raw))]
    manifest = dict(run.manifest)
    if run.unread:
        told = manifest.get("recording") or {}
        manifest["recording"] = {**told, "notices": [*(told.get("notices") or ()), *run.unread]}
    return ObservedSource(name=clean(name), manifest=clean(manifest), points=points, series=run.series)


def parse_tiers(texts: Sequence[str]) -> dict[str, str]:
    """Tiers by host, of `web=host1,host2`.

    Raises
    ------
    UsageError
        It has another form, or a host is in two tiers.

    Examples
    --------
    >>> parse_tiers(["web=web1,web2", "database=sql1"])
    {'web1': 'web', 'web2': 'web', 'sql1': 'database'}
    """
    tiers: dict[str, str] = {}
    for text in texts:
        tier, mark, hosts = text.partition("=")
        names = [name.strip() for name in hosts.split(",") if name.strip()]
        if not mark or not tier.strip() or not names:
            raise UsageError(f"--tier {text!r}: accepted: TIER=HOST,..., such as web=web1,web2")
        for name in names:
            if name in tiers:
                raise UsageError(f"--tier {text!r}: {name} is in tier {tiers[name]} already")
            tiers[name] = tier.strip()
    return tiers
