"""Documents of sysstat in JSON, as `sadf -j` and `iostat -o JSON` print them, sample by sample."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TextIO

from assay.base.tables import Record
from assay.telemetry.importers.importer import NotTaken

ELEMENT_MAX = 16 * 2**20
"""Characters of a sample: one of a host with thousands of disks has a few million."""

DEPTH_MAX = 20
"""How deep values of a sample are nested; sysstat has six levels."""


class Sample(NamedTuple):
    """One sample.

    Attributes
    ----------
    run
        Number of the array that it stands in: each is of a run of its own.
    """

    host: str
    run: int
    values: Record

    @staticmethod
    def leaves(value: object, depth: int = DEPTH_MAX) -> int:
        """How many values there are in a part of a sample."""
        if isinstance(value, Mapping) and depth:
            return sum(Sample.leaves(one, depth - 1) for one in value.values())
        if isinstance(value, list) and depth:
            return sum(Sample.leaves(one, depth - 1) for one in value)
        return 1


def samples(file: TextIO, *, array: str = '"statistics"', named: str = '"nodename"') -> Iterator[Sample]:
    """Samples of documents of sysstat one by one, each with the name of its host and the number of its array.

    Those of other programs differ in the names of the array and of the host.

    The document is never held whole: what stands before an array of samples is searched for the host's name, and the
    array is decoded element by element.

    Raises
    ------
    NotTaken
        It is no JSON where a sample should be.
    """
    decoder = json.JSONDecoder()
    buffer, host, inside, run = "", "", False, 0
    while True:
        chunk = file.read(1 << 16)
        buffer += chunk
        while True:
            if not inside:
                start = buffer.find(array)
                opening = buffer.find("[", start) if start >= 0 else -1
                if opening < 0:
                    # The name may stand in what is kept.
                    host = _host(buffer, named) or host
                    buffer = buffer[-1024:] if start < 0 else buffer[start:]
                    break
                host = _host(buffer[:start], named) or host
                buffer, inside, run = buffer[opening + 1 :], True, run + 1
            text = buffer.lstrip(" \t\r\n,")
            if text.startswith("]"):
                buffer, inside = text[1:], False
                continue
            if not text:
                buffer = text
                break
            try:
                sample, end = decoder.raw_decode(text)
            except (ValueError, RecursionError) as error:
                # A number of thousands of digits, or a nesting as deep, is no sample that only lacks its end.
                is_open = isinstance(error, json.JSONDecodeError)
                if not is_open or not chunk or len(text) > ELEMENT_MAX:
                    raise NotTaken(f"is damaged or cut off: {str(error).partition(':')[0].lower()}") from None
                buffer = text
                break
            buffer = text[end:]
            if isinstance(sample, Mapping):
                yield Sample(host, run, sample)
        if not chunk:
            if inside:
                raise NotTaken("is cut off: its array of samples does not end")
            return


def _host(text: str, named: str) -> str:
    """The last host that is named in a piece of a document."""
    start = text.rfind(named)
    if start < 0:
        return ""
    _, _, rest = text[start:].partition(":")
    try:
        name, _ = json.JSONDecoder().raw_decode(rest.lstrip())
    except (ValueError, RecursionError):
        return ""
    return name if isinstance(name, str) else ""
