"""Ten million mutated bytes of each format of `assay import` and `assay trace import`: never a traceback.

    python tests/fuzz/formats.py [FORMAT...]

`ASSAY_FUZZ_BYTES` are the bytes of each format (10,000,000), `ASSAY_SEED` is the first seed. Every input that goes
wrong names its seed and sample; the same seed gives the same input. All are read in this process, by what reads files
of users.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

from assay.base.errors import UsageError  # noqa: E402
from assay.record.shapes.drive import Drive, DriveHealth  # noqa: E402
from assay.run.imports import read_results  # noqa: E402
from assay.targets.drives import nvme_cli, smartctl  # noqa: E402
from assay.targets.drives.numbers import document_of  # noqa: E402
from assay.telemetry.importers.importer import Options  # noqa: E402
from assay.telemetry.importers.opening import opened  # noqa: E402
from assay.telemetry.importers.perfmon import Perfmon  # noqa: E402
from assay.telemetry.importers.reading import import_file  # noqa: E402
from assay.telemetry.importers.registry import IMPORTERS, importer_of  # noqa: E402
from assay.workloads.capabilities import Importing  # noqa: E402
from assay.workloads.imported import RunImporter  # noqa: E402
from assay.workloads.registry import workloads  # noqa: E402
from binary_logs import Declared, Values, binary_log  # noqa: E402
from fuzz import mutation  # noqa: E402
from fuzz.traces import trace_samples, trace_titles  # noqa: E402

BYTES = int(os.environ.get("ASSAY_FUZZ_BYTES", "10_000_000"))
LIMIT_S = 20.0
"""Processor time after which an input hangs."""
FAILURES_MAX = 5

DRIVE, HEALTH = TypeAdapter(Drive), TypeAdapter(DriveHealth)

OPTIONS = Options(zone_s=0, interval_ns=10 * 10**9)


class Tried(NamedTuple):
    """What came of a format."""

    inputs: int
    bytes: int
    read: int
    failures: list[str]


def main() -> int:
    warnings.simplefilter("error")
    wanted, first = sys.argv[1:], int(os.environ.get("ASSAY_SEED", "1"))
    known = samples_of_formats()
    if unknown := set(wanted) - set(known):
        print(f"unknown: {', '.join(sorted(unknown))}; accepted: {', '.join(known)}", file=sys.stderr)
        return 2
    formats = {name: samples for name, samples in known.items() if not wanted or name in wanted}
    print(f"{'format':44} {'inputs':>8} {'bytes':>12} {'read':>8} failures")
    failed = False
    for name, samples in formats.items():
        found = tried(samples, first)
        print(f"{name:44} {found.inputs:8,} {found.bytes:12,} {found.read:8,} {len(found.failures)}", flush=True)
        for text in found.failures:
            print(text, flush=True)
        failed |= bool(found.failures)
    without = sorted(({one.title for one in (*IMPORTERS, *run_formats())} | trace_titles()) - known.keys())
    if without:
        print(f"no sample: {', '.join(without)}")
    return 1 if failed or without else 0


def run_formats() -> list[RunImporter]:
    """Formats of results."""
    return [one for workload in workloads() if isinstance(workload, Importing) for one in workload.importers()]


class Sample(NamedTuple):
    """A file of a format, and what reads it and says whether anything was taken."""

    name: str
    content: bytes
    read: Callable[[Path], bool]


def samples_of_formats() -> dict[str, list[Sample]]:
    """Samples of each format by its title."""
    found: dict[str, list[Sample]] = {Perfmon.title: [Sample("log.blg", small_log(), telemetry)]}
    for path in sorted((TESTS / "telemetry" / "imported").iterdir()):
        importer = importer_of(path.read_text(errors="replace")[:65536])
        assert importer is not None, path
        found.setdefault(importer.title, []).append(Sample(path.name, path.read_bytes(), telemetry))
    drives = sorted((TESTS / "targets" / "drives").glob("*.json"))
    found["health of drives"] = [Sample(path.name, path.read_bytes(), health_of_drives) for path in drives]
    for path in sorted((TESTS / "workloads" / "imported").glob("*.*")):
        chosen = next(one for one in run_formats() if one.recognises(path.read_text()[:65536]))
        found.setdefault(chosen.title, []).append(Sample(path.name, path.read_bytes(), results))
    with tempfile.TemporaryDirectory(prefix="assay-fuzz-") as folder:
        for title, samples in trace_samples(Path(folder)).items():
            found[title] = [Sample(*sample) for sample in samples]
    return found


def telemetry(path: Path) -> bool:
    """Import a file of telemetry; whether rows came of it."""
    return import_file(path, OPTIONS, check).rows > 0


def results(path: Path) -> bool:
    """Read a file of results; whether points came of it."""
    with opened(path) as (file, head):
        chosen = next((one for one in run_formats() if one.recognises(head)), None)
        return chosen is not None and bool(read_results(file.read(), chosen, OPTIONS).points)


def health_of_drives(path: Path) -> bool:
    """Read what a program printed of a drive; whether anything came of it. It is within what a run folder holds."""
    told = document_of(path.read_bytes())
    if told is None:
        return False
    found = [nvme_cli.health(told), nvme_cli.ocp_health(told), smartctl.health(told)]
    for one in found:
        HEALTH.validate_python(one or {}, strict=True)
    for drive in (nvme_cli.identity(told), smartctl.identity(told)):
        DRIVE.validate_python(drive or {"name": ""}, strict=True)
    named = [nvme_cli.formats(told), nvme_cli.errors(told), smartctl.errors(told), smartctl.reason(told)]
    nvme_cli.power_fail_bytes(told, told)
    return any(found) or any(named)


def check(batches: Sequence[Any]) -> None:
    """Rows are within what a recording holds."""
    for batch in batches:
        assert all(abs(value) <= 1e24 for value in batch.value.tolist()), "a value is out of bounds"
        for name in ("t_ns", "interval_ns"):
            assert all(0 <= value < 2**63 for value in getattr(batch, name).tolist()), f"{name} is out of bounds"


def small_log() -> bytes:
    """A binary log of Perfmon in two buffers."""
    counters = [
        Declared("PhysicalDisk", "0 C:", "Avg. Disk sec/Read", 0x30020400, 2_725_536),
        Declared("Processor", "*", "% Processor Time", 0x21510500),
    ]
    samples: list[tuple[int, Values]] = []
    for at in range(12):
        now = 130057734178440000 + at * 10_000_000
        samples.append((now, [(at * 40_000, at * 7), {"0": (at * 9_000_000, now), "_Total": (at * 8_000_000, now)}]))
    return binary_log(counters, samples, buffer_bytes=0x1000)


def tried(samples: Sequence[Sample], first: int) -> Tried:
    """Mutate samples of a format until so many bytes were read."""
    inputs = count = taken = 0
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="assay-fuzz-") as folder:
        while count < BYTES and len(failures) < FAILURES_MAX:
            seed = first + inputs
            dice = random.Random(seed)
            name, content, read = dice.choice(samples)
            content = mutation.foreign(dice, content)
            # Some formats are known by the names of their files, too.
            file = Path(folder, name)
            file.write_bytes(content)
            inputs, count = inputs + 1, count + len(content)
            try:
                with limited():
                    taken += read(file)
            except UsageError as error:
                if "\n" in str(error):
                    failures.append(f"  ASSAY_SEED={seed} {name}: more than a line: {error}")
            except BaseException:
                last = "".join(traceback.format_exc().splitlines(keepends=True)[-6:])
                failures.append(f"  ASSAY_SEED={seed} {name}:\n{last}")
    return Tried(inputs, count, taken, failures)


@contextmanager
def limited() -> Iterator[None]:
    """Interrupt what takes too much processor time."""
    began = time.process_time()

    def stop(*_: object) -> None:
        raise TimeoutError(f"hangs: {time.process_time() - began:.0f} s of processor time")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    sys.exit(main())
