"""Foreign files as tests import them: what was taken, and the values by host, entity and metric."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from assay.insight.diagnosis.diagnose import diagnose
from assay.insight.diagnosis.inputs import sources_of
from assay.telemetry.importers.importer import Into, NotTaken, Options
from assay.telemetry.importers.reading import import_file
from assay.telemetry.importers.registry import importer_of
from assay.telemetry.importers.taken import TakenFile

Rows = dict[tuple[str, str, str], list[tuple[int, float]]]


def taken(path: Path, **options: Any) -> tuple[TakenFile, Rows]:
    """What was taken of a file, and its values by host, entity and metric."""
    rows: Rows = {}

    def write(batches: Sequence[Any]) -> None:
        for batch in batches:
            for row in batch.records():
                rows.setdefault((row["host"], row["entity"], row["metric"]), []).append((row["t_ns"], row["value"]))

    return import_file(path, Options(**options), write), rows


def written(folder: Path, text: str, name: str = "log.csv", encoding: str = "utf-8") -> Path:
    """A file with a text."""
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def values(rows: Rows, *key: str) -> list[float]:
    """Values of a metric of an entity of a host, without their times."""
    return [value for _, value in rows[key[0], key[1], key[2]]]


def accounted(text: str, **options: Any) -> int | None:
    """How many values an importer says that a text has; None where it refuses the text."""
    chosen = importer_of(text)
    assert chosen is not None
    into = Into(chosen.name, Options(zone_s=0, **options), lambda _: None)
    with suppress(NotTaken):
        chosen.read(io.StringIO(text, newline=""), into)
        into.flush()
        found = into.taken
        assert not found.values_unread or found.unread
        assert not found.values_left_out or found.ignored
        return found.values_taken + found.values_left_out + found.values_unread
    return None


def said_of(path: Path, **options: Any) -> tuple[str, list[str], str]:
    """Verdict, causes and the words of a diagnosis of a file."""
    found = diagnose(sources_of([path], Options(zone_s=0, host="db1", **options)).sources)
    verdict = found.verdict
    return verdict["state"], [cause.cause for cause in found.causes], verdict["what"]
