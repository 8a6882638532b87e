"""Samples of every form of traces that is imported, and of the trace's own file, with what reads them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "traces"))

from test_trace_importers import CASES, cpus, vscsi_records

from assay.traces.character.whole import characterise
from assay.traces.file import read_trace
from assay.traces.importers.importing import import_traces
from assay.traces.importers.registry import TRACE_FORMS, form_named, form_of
from made_traces import poisson_trace

OWN = "trace of Assay"
TIMES = (100, 1000)
"""A sample is so many of the small cases, one behind the other: an input of tens or hundreds of KiB."""


def trace_titles() -> set[str]:
    """What each form is called, and the own file."""
    return {f"trace: {one.title}" for one in TRACE_FORMS} | {OWN}


def trace_samples(folder: Path) -> Mapping[str, list[tuple[str, bytes, Callable[[Path], bool]]]]:
    """Name, content and reader of each sample, by its title; traces are made in a folder."""
    found: dict[str, list[tuple[str, bytes, Callable[[Path], bool]]]] = {}
    for name, (text, _) in CASES.items():
        form = form_named(name.split()[0])
        assert form is not None, name
        lines = text.splitlines(keepends=True)
        for times in TIMES:
            content = "".join([*lines[:1], *(lines[1:] * times)]).encode()
            assert form_of(content) is form, name
            found.setdefault(f"trace: {form.title}", []).append((name.replace(" ", "-"), content, imported))
    binary = form_named("blktrace"), form_named("vscsi")
    assert all(binary)
    for order, times in product("<>", TIMES):
        parts = [(binary[0], b"".join(cpus(order)) * times), (binary[1], vscsi_records(order, 9 * times))]
        for form, content in parts:
            assert form is not None
            found.setdefault(f"trace: {form.title}", []).append((form.name, content, imported))
    own = poisson_trace(folder / "own.trace", iops=300, seconds=1, devices=("sda", "sdb"))
    found[OWN] = [("own.trace", own.read_bytes(), read)]
    return found


def imported(path: Path) -> bool:
    """Import a file, and read what it became."""
    output = path.with_suffix(".imported")
    output.unlink(missing_ok=True)
    try:
        return import_traces([path], output).ios > 0 and read(output)
    finally:
        output.unlink(missing_ok=True)


def read(path: Path) -> bool:
    """Read a trace through as its page does; times of a trace never go back."""
    trace = read_trace(path)
    last_ns = 0
    for ios in trace.batches():
        if len(ios):
            assert int(ios.t_ns[0]) >= last_ns
            assert (np.diff(ios.t_ns) >= 0).all()
            last_ns = int(ios.t_ns[-1])
    return characterise(trace).ios > 0
