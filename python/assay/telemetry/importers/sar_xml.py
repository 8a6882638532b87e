"""Archives of sar as `sadf -x` prints them, sample by sample, as those of `sadf -j` are (sysstat, `xml_stats.c`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TextIO
from xml.parsers import expat

from assay.telemetry.importers.importer import NotTaken
from assay.telemetry.importers.sar_json import DEPTH_MAX, ELEMENT_MAX, Sample

_CHUNK = 1 << 16

ELEMENT_LETTERS = 64
"""What an element counts for beside its attributes and text: it takes memory, however short it is."""

_LISTS = frozenset({"cpu-load", "cpu-load-all", "disk"})
"""Sections that are a list of records in JSON."""
_LISTED = frozenset({"net-dev", "net-edev"})
_NAMES = {("cpu", "number"): "cpu", ("disk-device", "dev"): "disk-device"}
"""Attributes that say what a record is of, and their names in JSON."""
_WORDS = frozenset({"per", "unit"})
"""Attributes that say what numbers are of; they are the same in every version."""


@dataclass
class _Node:
    tag: str
    attributes: dict[str, str]
    children: list[_Node] = field(default_factory=list)
    text: str = ""

    def value(self) -> object:
        """What the element holds, as JSON has it."""
        own = {_NAMES.get((self.tag, name), name): text for name, text in self.attributes.items() if name not in _WORDS}
        if self.tag in _LISTS:
            return [one.value() for one in self.children]
        if not own and not self.children:
            return self.text.strip()
        found: dict[str, object] = dict(own)
        for one in self.children:
            others = found.get(one.tag)
            if one.tag in _LISTED or others is not None:
                found[one.tag] = [*(others if isinstance(others, list) else [others] if others else ()), one.value()]
            else:
                found[one.tag] = one.value()
        return found


class _Samples:
    """Handlers of the parser: samples that are whole wait in `found`."""

    def __init__(self) -> None:
        self.found: list[Sample] = []
        self._host, self._run, self._size = "", 0, 0
        self._open: list[_Node] = []
        self._depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise NotTaken(f"has elements more than {DEPTH_MAX} deep, which sadf never writes")
        if tag == "host" and not self._open:
            self._host = attributes.get("nodename", "")
        elif tag == "statistics" and not self._open:
            self._run += 1
        elif tag == "timestamp" or self._open:
            self._open.append(_Node(tag, attributes))
            self._grow(ELEMENT_LETTERS + sum(len(name) + len(text) for name, text in attributes.items()))

    def text(self, text: str) -> None:
        """Some text of the innermost element."""
        if self._open:
            self._grow(len(text))
            self._open[-1].text += text

    def end(self, tag: str) -> None:
        """An element ends; that of a sample makes the sample."""
        del tag
        self._depth -= 1
        if not self._open:
            return
        node = self._open.pop()
        if self._open:
            self._open[-1].children.append(node)
            return
        stamp: dict[str, object] = dict(node.attributes)
        for name in ("interval", "utc"):
            text = node.attributes.get(name, "")
            if text.isdecimal() and len(text) < 12:
                stamp[name] = int(text)
        node.attributes = {}
        values = node.value()
        self._size = 0
        if isinstance(values, dict):
            self.found.append(Sample(self._host, self._run, {"timestamp": stamp, **values}))

    def entity(self, *_: object) -> None:
        """An entity of the document's own, which could grow without end."""
        raise NotTaken("declares entities of its own, which sadf never writes")

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > ELEMENT_MAX:
            raise NotTaken(f"has a sample of more than {ELEMENT_MAX:,} letters, which no host has")


def xml_samples(file: TextIO) -> Iterator[Sample]:
    """Samples of a document of sadf one by one; the document is never held whole.

    Raises
    ------
    NotTaken
        It is no XML.
    """
    parser, samples = expat.ParserCreate("utf-8"), _Samples()
    parser.StartElementHandler, parser.EndElementHandler = samples.start, samples.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = samples.text, samples.entity
    while True:
        chunk = file.read(_CHUNK)
        try:
            # The text was decoded already: what it says of its encoding is no longer so.
            parser.Parse(chunk.encode("utf-8", "replace"), not chunk)
        except expat.ExpatError as error:
            raise NotTaken(
                f"is no whole document of XML: {expat.ErrorString(error.code)}, line {error.lineno}"
            ) from None
        yield from samples.found
        samples.found = []
        if not chunk:
            return
