"""What a diagnosis is made of: run folders, recordings, files of other tools, standard input.

What is not said of them is guessed, and each guess is one line: format, hosts, zone, tiers.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.insight.diagnosis.measures import tier_of_host
from assay.insight.diagnosis.observed import SECOND_NS, Observations, ObservedSource
from assay.record.flight import read_recording
from assay.record.flight_segments import has_recording
from assay.record.flight_window import span
from assay.record.load import Run, load
from assay.record.points import current_points
from assay.record.source import clean, records
from assay.run.imports import import_files, refuse_without_telemetry
from assay.telemetry.importers.importer import UNNAMED, Options

if TYPE_CHECKING:
    from assay.record.rows import Rows

STANDARD_INPUT = Path("-")
READ_BYTES = 1 << 20

STREAM_BYTES_MAX = 1 << 30
"""Bytes that are taken from standard input: what comes from a command that never ends must not fill the disk."""

RECORDINGS = (Path("assay-recording"), Path("/var/lib/assay/recording"))
"""Where the recorder records if nothing else is said (`assay record`, `assay record install`)."""


class DiagnosisInputs(NamedTuple):
    """What a diagnosis is asked of: its sources, what a reader must know of them, and what was assumed."""

    sources: list[ObservedSource]
    notices: list[str]
    assumed: list[str]


def sources_of(
    paths: Sequence[Path], options: Options, tell: Callable[[str], None] = lambda _: None, since_s: float | None = None
) -> DiagnosisInputs:
    """Read what a diagnosis is asked of; `-` is standard input.

    Parameters
    ----------
    since_s
        How much of it, back from its end.

    Raises
    ------
    UsageError
        A path is neither a run folder nor a file that can be imported, is given twice, or holds nothing.
    """
    real = [path.resolve() for path in paths]
    twice = next((path for place, path in enumerate(paths) if real[place] in real[:place]), None)
    if twice is not None:
        raise UsageError(f"{printable(twice)}: is given twice; give it once")
    found = DiagnosisInputs([source_of(path, since_s) for path in paths if path.is_dir()], [], [])
    files = [path for path in paths if not path.is_dir()]
    if files:
        with tempfile.TemporaryDirectory(prefix="assay-import-") as folder:
            _add_files(found, files, Path(folder), options, tell, since_s)
    if all(source.series is None or not len(source.series) for source in found.sources):
        names = ", ".join(printable(path) for path in paths)
        raise UsageError(f"{names}: nothing is recorded there; a diagnosis needs a run or a recording with a series")
    return found


def _add_files(
    found: DiagnosisInputs,
    files: Sequence[Path],
    folder: Path,
    options: Options,
    tell: Callable[[str], None],
    since_s: float | None,
) -> None:
    """Import files into a folder, and say what was assumed of them."""
    stream = folder / "input"

    def named(text: str) -> str:
        return text.replace(str(stream), "standard input")

    if STANDARD_INPUT in files:
        _keep_standard_input(stream)
    read = [stream if path == STANDARD_INPUT else path for path in files]
    try:
        made = import_files(
            read, into=folder / "runs", options=options, command=[], tell=lambda line: tell(named(line))
        )
        refuse_without_telemetry(made, read)
    except UsageError as error:
        raise UsageError(named(str(error))) from None
    name = ", ".join(printable(path) if path != STANDARD_INPUT else "standard input" for path in files)
    found.sources.append(_read(made.path, name, since_s))
    found.notices.extend(named(text) for text in made.notices)
    for one in (made.recording or {}).get("files", []):
        hosts = ", ".join(one["hosts"])
        whose = "it names no host (--host says one)" if hosts == UNNAMED else f"of {hosts}"
        found.assumed.append(named(f"{one['path']}: is {one['format']}, {whose}"))


def _keep_standard_input(path: Path) -> None:
    """Keep what standard input gives, until it ends.

    Raises
    ------
    UsageError
        It gives nothing, or more than is kept.
    """
    size = 0
    with path.open("wb") as file:
        while block := sys.stdin.buffer.read(READ_BYTES):
            size += len(block)
            if size > STREAM_BYTES_MAX:
                raise UsageError(f"standard input: gives more than {STREAM_BYTES_MAX >> 30} GiB; give a part of it")
            file.write(block)
    if not size:
        raise UsageError("standard input: is empty; pipe the output of iostat, sar or another tool into -")


def default_recording() -> Path:
    """The recording of this machine's recorder.

    Raises
    ------
    UsageError
        There is none where it usually is.
    """
    for path in RECORDINGS:
        if path.is_dir() and has_recording(path):
            return path
    places = " or ".join(str(path) for path in RECORDINGS)
    raise UsageError(f"no input is given, and no recording is in {places}; give files, or --live 60s to record now")


def assumed_tiers(observed: Observations) -> list[str]:
    """Tiers of hosts that the user did not give, in a line each; an application's own figures say what they are of."""
    said = {"hypervisor": "guests were recorded", "database": "a database server was recorded"}
    return [
        f"{'the host' if host == UNNAMED else host}: is of tier {tier_of_host(observed, host)}, since"
        f" {said.get(tier_of_host(observed, host), 'no database server of it was recorded')} (--tier says otherwise)"
        for host in observed.hosts
        if host not in observed.tiers
        and any(track.host == host and track.tier != "application" for track in observed.tracks)
    ]


def source_of(path: Path, since_s: float | None = None) -> ObservedSource:
    """Read a run folder or a recording, or the last time of it.

    Raises
    ------
    RunFolderError
        It is none, or is damaged.
    """
    return _read(path, path.name or printable(path), since_s)


def _read(path: Path, name: str, since_s: float | None) -> ObservedSource:
    run = load(path)
    points = [clean(point) for point in records(current_points(run.points_raw))]
    manifest = dict(run.manifest)
    if run.unread:
        told = manifest.get("recording") or {}
        manifest["recording"] = {**told, "notices": [*(told.get("notices") or ()), *run.unread]}
    return ObservedSource(name=clean(name), manifest=clean(manifest), points=points, series=_series(run, path, since_s))


def _series(run: Run, path: Path, since_s: float | None) -> Rows:
    """The series of a run, or the last time of it; of a recording older time is not read at all."""
    if since_s is None:
        return run.rows
    length_ns = round(since_s * SECOND_NS)
    if has_recording(path):
        return read_recording(path, since_ns=span(path)[1] - length_ns)
    return run.rows.where(run.rows.t_ns > run.rows.t_ns.max(initial=0) - length_ns)


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
