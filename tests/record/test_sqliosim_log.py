"""The error log in SQLIOSim's form: well-formed at every moment, whatever it is told."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.workloads.integrity.sqliosim_log import ENTRIES_MAX, LOG_NAME, SqliosimLog, file_summary

AT_NS = 1_793_000_000_000_000_000


def finding(number: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"F{number:04d}", "kind": "torn", "persistent": True, "file": "f", "page": 1, "offset_bytes": 8192,
            "found_utc_ns": AT_NS, "by": "audit", "operation": "read", "explanation": "", "ranges": [],
            **fields}  # fmt: skip


def read(folder: Path) -> ET.Element:
    return ET.parse(folder / LOG_NAME).getroot()


def texts(folder: Path) -> list[str]:
    return [str(entry[0].text) for entry in read(folder)]


def test_an_empty_log_is_one_as_well(tmp_path: Path) -> None:
    SqliosimLog(tmp_path).flush()

    assert (read(tmp_path).tag, len(read(tmp_path))) == ("ERRORLOG", 0)


def test_times_are_utc_in_sqliosims_form(tmp_path: Path) -> None:
    log = SqliosimLog(tmp_path)
    log.say("INFORMATION", "begins", utc_ns=1_793_664_000_000_000_000)
    log.flush()

    (entry,) = read(tmp_path)
    assert (entry.get("DATE"), entry.get("TIME")) == ("11/03/26", "00:00:00")


@given(text=st.text(), by=st.text(min_size=1))
def test_any_text_is_escaped(tmp_path_factory: Any, text: str, by: str) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = SqliosimLog(folder)
    log.say("WARNING", text, utc_ns=AT_NS, user=by)
    log.find(finding(1, explanation=text, file=text, by=by))
    log.flush()

    assert len(read(folder)) == 2


def test_names_that_are_no_unicode_are_escaped(tmp_path: Path) -> None:
    log = SqliosimLog(tmp_path)
    log.find(finding(1, file="a\udcff\x1b<b>&'\"", explanation="]]>"))
    log.flush()

    (text,) = texts(tmp_path)
    assert "\\udcff\\x1b<b>&'\"" in text
    assert text.endswith("]]>")


def test_a_finding_that_changed_has_one_entry(tmp_path: Path) -> None:
    log = SqliosimLog(tmp_path)
    log.find(finding(1))
    log.flush()
    log.find(finding(1, kind="corrupt"))
    log.flush()

    (text,) = texts(tmp_path)
    assert "corrupt (persistent)" in text


def test_it_is_bounded_and_says_what_is_left_out(tmp_path: Path) -> None:
    log = SqliosimLog(tmp_path)
    for number in range(ENTRIES_MAX + 5):
        log.find(finding(number))
    log.summarise([], utc_ns=AT_NS)
    log.flush()

    assert len(read(tmp_path)) == ENTRIES_MAX + 1
    assert texts(tmp_path)[-1].startswith("5 more entries are left out")


def test_an_unchanged_log_is_not_written_again(tmp_path: Path) -> None:
    log = SqliosimLog(tmp_path)
    log.flush()
    (tmp_path / LOG_NAME).unlink()
    log.flush()

    assert not (tmp_path / LOG_NAME).exists()


def test_the_summary_reads_as_sqliosims() -> None:
    file = {"path": "E:\\a.mdx", "target_io_ms": 100.0, "average_io_ms": 17.2, "throttled": 9006, "reads": 75414,
            "scatter_reads": 88286, "writes": 3295, "gather_writes": 54845, "io_time_ms": 44936446.4}  # fmt: skip

    assert file_summary(file).split("\n")[1:] == [
        "Target IO Duration (ms) = 100, Running Average IO Duration (ms) = 17, Number of times IO throttled = 9006",
        "Reads = 75414, Scatter Reads = 88286, Writes = 3295, Gather Writes = 54845, Total IO Time (ms) = 44936446",
    ]
