"""The error log of an integrity run in SQLIOSim's XML form, for the tools and eyes that know it.

The form is that of KB 231619 and of published logs: entries of type INFORMATION, WARNING and ERROR with an extended
description. The file is replaced as a whole, so that it is well-formed at every moment.
"""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from assay.base.paths import plain
from assay.record.folder import replace_file
from assay.workloads.integrity.evidence import headline
from assay.workloads.integrity.shapes import Finding, VerifiedFile

LOG_NAME = "errors.xml"
ENTRIES_MAX = 1000
"""Entries kept; more of the same help no reader, and the last one says how many there were."""

EntryType = Literal["INFORMATION", "WARNING", "ERROR"]

ERROR_VALIDATION = (0x80070467, "While accessing the hard disk, a disk operation failed even after retries.")
"""HRESULT and text that SQLIOSim gives a page that came back wrong."""

ERROR_IO = (0x8007045D, "The request could not be performed because of an I/O device error.")
ERROR_READ_PAST = (0x80070026, "Reached the end of the file.")
NONE = (0, "")

RESULTS = {"io_error": ERROR_IO, "short_read": ERROR_READ_PAST, "long_io": NONE}
"""HRESULT by finding; all others are pages that came back wrong."""


class SqliosimLog:
    """The log of one run.

    Parameters
    ----------
    run_path
        The run folder.
    """

    def __init__(self, run_path: Path) -> None:
        self._path = run_path / LOG_NAME
        self._entries: dict[str, ET.Element] = {}
        self._left_out = 0
        self._changed = True

    def say(self, kind: EntryType, text: str, *, utc_ns: int, user: str = "Simulator") -> None:
        """Add an entry without a finding."""
        self._add(f"entry {len(self._entries)}", kind, text, utc_ns, user, "", NONE)

    def find(self, finding: Finding) -> None:
        """Add a finding, or replace what the log says of it."""
        kind: EntryType = "WARNING" if finding["kind"] == "long_io" else "ERROR"
        result = RESULTS.get(finding["kind"] or "", ERROR_VALIDATION)
        self._add(
            f"finding {finding['id']}",
            kind,
            finding_text(finding),
            finding["found_utc_ns"] or 0,
            str(finding.get("by") or "Simulator"),
            str(finding.get("operation") or ""),
            result,
        )

    def summarise(self, files: Sequence[VerifiedFile], *, utc_ns: int) -> None:
        """Add the final summary of each file (docs/integrity.md, `files`)."""
        if self._left_out:
            text = f"{self._left_out} more entries are left out; run.json counts all findings"
            self._put("left out", _entry("INFORMATION", text, utc_ns, "Simulator", "", NONE))
        for file in files:
            entry = _entry("INFORMATION", file_summary(file), utc_ns, "Simulator", "", NONE)
            self._put(f"summary {file['name']}", entry)

    def flush(self) -> None:
        """Write the log, if anything was added since the last time.

        Raises
        ------
        OutOfSpace, IoFailed
            Writing failed; the log on disk is the one before.
        """
        if not self._changed:
            return
        root = ET.Element("ERRORLOG")
        root.extend(self._entries.values())
        ET.indent(root)
        replace_file(self._path, ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")
        self._changed = False

    def _add(
        self, key: str, kind: EntryType, text: str, utc_ns: int, user: str, operation: str, result: tuple[int, str]
    ) -> None:
        if key not in self._entries and len(self._entries) >= ENTRIES_MAX:
            self._left_out += 1
            return
        self._put(key, _entry(kind, text, utc_ns, user, operation, result))

    def _put(self, key: str, entry: ET.Element) -> None:
        self._entries[key] = entry
        self._changed = True


def finding_text(finding: Finding) -> str:
    """A finding as the log describes it."""
    if finding["kind"] in ("io_error", "long_io"):
        return f"{headline(finding)}. {finding.get('explanation') or ''}".strip()
    text = f"Buffer validation failed on {finding.get('file')} Page: {finding.get('page')}"
    ranges = finding.get("ranges") or []
    text += f", offset 0x{ranges[0][0]:x}" if ranges else ""
    return f"{text}. {headline(finding)}. {finding.get('explanation') or ''}".strip()


def file_summary(file: VerifiedFile) -> str:
    """The final summary of a file, in SQLIOSim's words."""
    return "\n".join(
        (
            f"********** Final Summary for file {plain(str(file['path']))} **********",
            f"Target IO Duration (ms) = {file['target_io_ms']:.0f},"
            f" Running Average IO Duration (ms) = {file['average_io_ms']:.0f},"
            f" Number of times IO throttled = {file['throttled']}",
            f"Reads = {file['reads']}, Scatter Reads = {file['scatter_reads']}, Writes = {file['writes']},"
            f" Gather Writes = {file['gather_writes']}, Total IO Time (ms) = {file['io_time_ms']:.0f}",
        )
    )


def _entry(kind: EntryType, text: str, utc_ns: int, user: str, operation: str, result: tuple[int, str]) -> ET.Element:
    at = datetime.fromtimestamp(utc_ns / 1e9, UTC)
    code, meaning = result
    attributes = {
        "TYPE": kind,
        "TIME": at.strftime("%H:%M:%S"),
        "DATE": at.strftime("%m/%d/%y"),
        "TID": str(threading.get_native_id()),
        "User": plain(user),
        "File": "",
        "Line": "0",
        "Func": plain(operation),
        "HRESULT": f"0x{code:08X}" if code else "",
        "SYSTEXT": meaning,
    }
    entry = ET.Element("ENTRY", attributes)
    description = ET.SubElement(entry, "EXTENDED_DESCRIPTION")
    description.text = "\n".join(plain(line) for line in text.split("\n"))
    return entry
