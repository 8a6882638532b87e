"""The load that is needed of a storage: from a text, a need in TOML, or what was recorded or run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from assay.base.errors import UsageError
from assay.base.units import count_of, parse_bytes
from assay.insight.sizing.demand import LOG, PeakStream, demand_of
from assay.insight.sizing.measured import is_scanned, measure
from assay.insight.sizing.need import Limits, NeedAsWritten, read_need
from assay.insight.sizing.quantities import Block
from assay.record.limits import parse_limits
from assay.record.shapes.need import AskedNeed, NeededStream

EXAMPLE = "5000 iops 8k 70/30 read.p99<2ms"
ACCEPTED = f"accepted: RATE iops (or SIZE/s), SIZE, READS/WRITES in percent, sequential, LIMIT ..., as in {EXAMPLE!r}"
RATE_MAX = 1e9
"""I/Os a second beyond which nothing is asked."""
PART = "need"
"""Name of the part of a run that measures the need."""
PERCENTILE, BUSIEST = 0.95, 10
"""Of a recording: the percentile within its busiest hours, as `assay size` takes them."""

_RATE = re.compile(r"([0-9][0-9,]*(?:\.[0-9]+)?)(k?)\s*iops", re.IGNORECASE)
_MIX = re.compile(r"([0-9]{1,3})/([0-9]{1,3})")
_BLOCK: TypeAdapter[int] = TypeAdapter(Block)


def load_of_text(text: str, what: str = "--need") -> AskedNeed:
    """What a text asks for.

    Raises
    ------
    UsageError
        A word is not understood, something is missing or said twice, or two words contradict each other.

    Examples
    --------
    >>> load_of_text("5000 iops 8k 70/30 read.p99<2ms")["streams"]
    [{'role': 'data', 'rate': 5000.0, 'block_bytes': 8192, 'read_share': 0.7, 'random_share': 1.0}]
    """
    found: dict[str, float] = {}
    limits: list[str] = []

    def wrong(why: str) -> UsageError:
        return UsageError(f"{what} {text!r}: {why}; {ACCEPTED}")

    for word in re.sub(r"(?i)(\S)\s+iops\b", r"\1iops", text).split():
        if "<" in word or ">" in word:
            limits.append(word)
            continue
        read = _word(word)
        if read is None:
            raise wrong(f"{word!r} is not understood")
        if read[0] in found:
            raise wrong(f"says the {read[0]} twice")
        found.update((read,))
    if "throughput" in found and "block" in found and "rate" not in found:
        found["rate"] = found.pop("throughput") / found["block"]
    missing = next((name for name in ("rate", "block", "mix") if name not in found), None)
    if missing or "throughput" in found:
        raise wrong(f"says no {missing}" if missing else "says both a rate and a throughput")
    if not 0 < found["rate"] <= RATE_MAX:
        raise wrong(f"a rate of {found['rate']:,g} a second cannot be asked for")
    for limit in parse_limits(limits):
        absent = {"read": found["mix"] == 0, "write": found["mix"] == 1}.get(limit.direction or "", False)
        if absent or limit.role not in (None, "data"):
            raise wrong(f"{limit.text} bounds I/O that the need does not ask for")
    stream = NeededStream(
        role="data", rate=found["rate"], block_bytes=int(found["block"]), read_share=found["mix"],
        random_share=found.get("order", 1.0),
    )  # fmt: skip
    source = what if limits else f"{what}, with the method's limits of 2013"
    return AskedNeed(source=source, streams=[stream], limits=limits or _limits([stream], Limits()), part=PART)


def _word(word: str) -> tuple[str, float] | None:
    """What a word says: its name and value; None where it is not understood."""
    if match := _RATE.fullmatch(word):
        return "rate", float(match[1].replace(",", "")) * (1000 if match[2] else 1)
    if match := _MIX.fullmatch(word):
        return ("mix", int(match[1]) / 100) if int(match[1]) + int(match[2]) == 100 else None
    if word.lower() in ("random", "sequential"):
        return "order", float(word.lower() == "random")
    try:
        if word.lower().endswith("/s"):
            return "throughput", float(parse_bytes(word[:-2]))
        return "block", float(_BLOCK.validate_python(word))
    except (UsageError, ValidationError):
        return None


def load_of_path(path: Path, what: str = "--need-from") -> AskedNeed:
    """What a need in TOML asks for now, or what a recording or a run says of the load.

    Raises
    ------
    UsageError
        It is none of these, says nothing of a load, or is a run that went as fast as its target let it.
    """
    if not path.exists():
        raise UsageError(f"{what} {path}: there is no such file or folder")
    if path.suffix == ".toml":
        return _of_need(read_need(path))
    if path.is_file():
        raise UsageError(
            f"{what} {path}: is no need in TOML; accepted: the folder of a recording or a run, or a need as"
            " `assay size --template` prints it. Needs are not taken from traces"
        )
    measured = measure(path, percentile=PERCENTILE, busiest=BUSIEST, short=True, what=what)
    streams = [
        NeededStream(
            role=role, rate=one.iops, block_bytes=one.block_bytes, read_share=one.read_share,
            random_share=0.0 if role == LOG or is_scanned(one) else 1.0,
        )
        for role, one in sorted(measured.roles.items())
    ]  # fmt: skip
    covered = f", {measured.coverage['text']}" if measured.coverage is not None else ""
    return AskedNeed(
        source=f"{what} {measured.source}{covered}", streams=streams, limits=_limits(streams, Limits()), part=PART
    )


def _of_need(written: NeedAsWritten) -> AskedNeed:
    """The busiest peak of a need as it is now, in terms of the raw profile: databases are derated."""
    phases = demand_of(written.need, 0).phases
    busiest = max(phases, key=lambda phase: sum(one.rate for one in phase))
    streams = [_stream(one) for one in sorted(busiest, key=lambda one: one.role == LOG)]
    peaks = f", the busiest of {count_of(len(phases), 'peak')}" if len(phases) > 1 else ""
    return AskedNeed(
        source=f"{written.source} as of now{peaks}, databases derated", streams=streams,
        limits=_limits(streams, written.need.limits), part=PART,
    )  # fmt: skip


def _stream(one: PeakStream) -> NeededStream:
    return NeededStream(
        role=one.role, rate=one.rate, block_bytes=one.block_bytes, read_share=one.read_share,
        random_share=one.random_share,
    )  # fmt: skip


def _limits(streams: Iterable[NeededStream], limits: Limits) -> list[str]:
    """Mean latencies that a need asks of each role and direction it has."""
    data = [one for one in streams if one["role"] != LOG]
    asked = [
        ("data.read", limits.read, any(one["read_share"] > 0 for one in data)),
        ("data.write", limits.write, any(one["read_share"] < 1 for one in data)),
        ("log.write", limits.log, any(one["role"] == LOG for one in streams)),
    ]
    return [f"{name}.mean<={bound_s * 1e3:g}ms" for name, bound_s, is_there in asked if is_there]
