"""Integrity in the report: the verdict in plain words, every finding with its place, and rates left undisturbed."""

from __future__ import annotations

from typing import Any

import pytest
from sample import Sample, small
from sample_integrity import (
    LOG,
    NAMES,
    add_phases,
    assess,
    counts,
    every_kind,
    failed_fields,
    failed_run,
    finding,
    integrity,
    plan,
    unit,
    verify,
)
from shown import facts_of, items, notices, pages, section, table, texts
from test_report_pages import HOSTILE, Page

from assay.document.elements import Document, FigureElement, Paragraph, Table
from assay.record.source import RunFacts
from assay.report.assemble import assemble
from assay.report.render import render_figures
from assay.workloads.integrity.report import faults
from assay.workloads.integrity.report.findings import gravest
from assay.workloads.integrity.report.section import phase_spans
from assay.workloads.integrity.report.told import integrity_of
from assay.workloads.integrity.verdict import integrity_line

RIGHT = (
    "All 262,144 pages and 81,920 log blocks came back right in 902,144 reads; caches may have answered, and power"
    " was not cut."
)


def counted(document: Document) -> dict[str, list[str]]:
    """Numbers of each row of the table of faults, by its name."""
    return {row[0].text: [cell.text for cell in row[1:-1]] for row in table(document, "faults").rows}


def found(**fields: Any) -> dict[str, Any]:
    """Shaped `integrity` of a run with these fields."""
    return dict(integrity_of(RunFacts({"integrity": integrity(add_phases(Sample(1)), **fields)})) or {})


def test_a_passed_run_says_what_was_verified_and_what_that_does_not_prove(passed: Document) -> None:
    assert passed.title == "assay.data in /srv/db and 1 more on db07: verify"
    assert [part.name for part in passed.sections] == ["summary", "integrity", "method", "points"]
    assert RIGHT in texts(section(passed, "summary"))
    said = " ".join(texts(section(passed, "integrity")))
    # What the summary on the same page says is not said again.
    assert said.startswith("902,144 reads (6.883 GiB) were verified")
    assert "in 1 min 44 s: each of the 344,064 pages and log blocks was read 2.62 times on average" in said
    assert "Users at work: random, 2 audit, 2 read-ahead, 1 grow/shrink and checkpoint." in said
    assert "At the end every page was read once more and was right." in said
    assert "Caches between host and disk may have answered" in said
    assert "Power was not cut" not in said
    assert not any(isinstance(block, FigureElement) for block in section(passed, "integrity").blocks)
    assert items(passed, "understood")["CacheHitRatio=1000"] == "10 % of reads are answered by the pool"


def test_a_run_of_verify_has_no_word_of_limits_or_searches(passed: Document) -> None:
    summary = section(passed, "summary")
    assert texts(summary)[0] == RIGHT
    assert not any(isinstance(block, Table) for block in summary.blocks)
    assert "limit was met" not in " ".join(texts(summary))
    assert "knee" not in items(passed, "glossary")
    method = " ".join(texts(section(passed, "method")))
    assert "prepare 21 s, stress 1 min, checkpoint 4 s and audit 19 s" in method
    assert "steady state" not in method
    assert "Integrity (whether" not in method


def test_a_failed_run_names_the_gravest_first() -> None:
    failed = assemble(facts_of(verify(**failed_fields(every_kind()))))
    first = section(failed, "summary").blocks[0]
    assert isinstance(first, Paragraph)
    assert first.tone == "bad"
    assert first.text == (
        "Data came back wrong: 1 misdirected write, 2 lost writes, 1 break in the log, 2 torn writes, 2 corrupt pages, "
        "1 misdirected read and 1 short read; besides 1 I/O error and 1 long I/O."
    )
    assert "Of 10 wrong pages 6 stayed wrong" in " ".join(texts(section(failed, "summary")))


def test_counts_stand_by_name_with_what_was_injected(failed: Document) -> None:
    assert counted(failed)["Torn write"] == ["2", "2", "0", "4", "2", "2"]
    assert counted(failed)["Lost write"] == ["2", "1", "1", "2", "2", "0"]
    assert [row[0].text for row in table(failed, "faults").rows][:2] == ["Misdirected write", "Lost write"]
    assert len(counted(failed)) == len(NAMES)


def test_only_a_target_that_injects_has_columns_for_it(passed: Document) -> None:
    assert [column.title for column in table(passed, "faults").columns] == [
        "Name", "Found", "Persistent", "Transient", "Meaning",
    ]  # fmt: skip


def test_a_target_that_injects_faults_is_a_test_of_assay_and_accuses_no_product() -> None:
    missed = found(observable=counts(torn=3), injected=counts(torn=3), masked=counts(), findings=counts(torn=2))
    text, tone = faults.headline(missed)
    assert (text, tone) == (
        "A test of Assay itself: the target injected 3 faults, and what was found is not what was observable: torn"
        " write (2 found, 3 observable).",
        "bad",
    )
    assert integrity_line(missed)["met"] is False
    some = found(observable=counts(torn=2), injected=counts(torn=5), masked=counts(torn=3), findings=counts(torn=2))
    assert faults.headline(some) == (
        "A test of Assay itself: the target injected 5 faults, 3 of them masked, their bytes never read; all 2 others"
        " were found and named rightly.",
        "good",
    )
    line = integrity_line(some)
    assert line["met"] is True
    assert line["meaning"].startswith("a test of Assay itself: the target injected 5 faults")
    assert faults.self_test(found()) is None


def test_the_report_of_injected_faults_has_a_title_and_a_summary_that_say_so() -> None:
    torn = counts(torn=2)
    fields = {"findings": torn, "persistent": torn, "injected": torn, "observable": torn, "masked": counts()}
    sample, manifest = verify(**fields, passed=False)
    for one in manifest["target"]["volumes"]:
        one["kind"] = "faulty"
    document = assemble(facts_of((sample, manifest)))
    assert document.title.endswith(": a test of Assay itself, with injected faults")
    assert "the target injected 2 faults; all 2 were found" in " ".join(texts(section(document, "summary")))
    said = " ".join(texts(section(document, "integrity")))
    assert "At the end every page was read once more: what was wrong is among the findings." in said
    assert "and was right" not in said


@pytest.mark.parametrize(
    ("fields", "said", "tone"),
    [
        ({}, "All 262,144 pages and 81,920 log blocks came back right in 902,144 reads.", "good"),
        ({"audited": False}, "Every page that was read came back right, but not every page", "warn"),
        ({"findings": counts(long_io=2)}, " came back right in 902,144 reads, but there were 2 long I/Os.", "warn"),
        (
            {"passed": False, "findings": counts(io_error=1)},
            "No page came back wrong, but the check failed: 1 I/O",
            "bad",
        ),
        ({"passed": False, "audited": False}, "but the check failed: not every page was read at the end.", "bad"),
        ({"passed": None, "audited": None}, "No page came back wrong so far; the run has no verdict yet.", "warn"),
        ({"pages_verified": 0}, "No page was read back: this run says nothing about the data.", "warn"),
        ({"passed": None, "findings": counts(lost=1)}, "Data came back wrong: 1 lost write.", "bad"),
    ],
)
def test_the_verdict_is_one_sentence(fields: dict[str, Any], said: str, tone: str) -> None:
    text, found_tone = faults.headline(found(**fields))
    assert said in text
    assert found_tone == tone


def test_a_run_after_a_crash_does_not_say_that_power_was_not_cut() -> None:
    sample, fields = verify()
    fields["command"] = ["verify", "/srv/db", "--after-crash=journal"]
    assert "Power was not cut" not in " ".join(notices(assemble(facts_of((sample, fields)))))


def test_users_come_from_the_plan_of_the_part() -> None:
    assert faults.users(faults.integrity_plan(facts_of(assess()))) == faults.users(plan())
    assert faults.users({}) == []


def test_a_finding_says_where_what_was_expected_and_what_came(failed: Document) -> None:
    torn = next(name for name in range(1, 11) if items(failed, f"finding-{name}-facts")["Finding"] == "F0001")
    said = items(failed, f"finding-{torn}-facts")
    assert said["Place"] == "assay.data, 8,192 bytes at byte 38,592,512 of the file"
    assert said["Expected"].startswith("generation 7, written by user 12, at 2026-11-21 10:00:23 UTC (23.250 s after")
    assert said["Received"] == "units 0-7 expected and units 8-15 older (generation 6)"
    assert said["Differs"] == "4,096 bytes of the page: 4,096 to 8,191"
    assert said["Read again"] == "15 times, wrong every time"
    assert said["Evidence"].startswith("evidence/F0001 in the run's folder")
    assert "The first 8 of 16 units are of generation 7" in " ".join(texts(section(failed, "integrity")))


def test_errors_and_long_ios_have_lines_of_their_own(failed: Document) -> None:
    said = items(failed, "integrity-facts")
    assert said["I/O errors"] == "1 (1 succeeded when repeated): read EIO (assay.data)"
    assert said["Long I/Os"] == f"1: write ({LOG})"


def test_every_kind_of_finding_gets_a_block_however_many_there_are_of_one() -> None:
    many = [finding(number, "torn", number, []) for number in range(150)]
    details = [*many, finding(150, "lost", 1, [], persistent=False), finding(151, "short_read", 1, [])]
    chosen, rest = gravest((integrity_of(RunFacts({"integrity": {"details": details}})) or {})["details"])
    assert [one["kind"] for one in chosen[:3]] == ["torn", "short_read", "lost"]
    assert len(chosen) == 10
    assert [one["id"] for one in rest] == [f"F{number:04d}" for number in range(8, 150)]


def test_findings_that_are_not_described_are_counted() -> None:
    document = assemble(facts_of(verify(**failed_fields(every_kind()), details_left_out=4000)))
    assert any("4,000 more were counted, but not described." in text for text in texts(section(document, "integrity")))
    assert len(table(document, "other-findings").rows) == 2


def test_a_strip_has_a_letter_for_every_state_and_the_caption_tells_them(failed: Document) -> None:
    states = {"E": "expected", "O": "older", "F": "foreign", "N": "not read", "C": "corrupt"}
    mixed = finding(1, "torn", 9, [unit(0, 2, "expected"), unit(3, 3, "older", 1), unit(4, 4, "foreign", 1),
                                   unit(5, 6, "not_read"), unit(7, 7, "corrupt")], length_bytes=4096)  # fmt: skip
    document = assemble(facts_of(verify(**failed_fields([mixed]))))
    strip = next(figure for figure in document.figures if figure.name == "finding-1-units")
    drawing = render_figures(document)["finding-1-units"]
    for letter, state in states.items():
        assert f">{letter}</text>" in drawing
        assert f"{letter}  {state}" in drawing
    assert "3 expected, 1 older, 1 foreign, 2 not read and 1 corrupt" in strip.alternative
    assert all(figure.alternative for figure in failed.figures)


def test_files_are_listed_as_sqliosim_does(passed: Document) -> None:
    rows = [[cell.text for cell in row] for row in table(passed, "files").rows]
    assert rows[0] == [
        "assay.data", "2 GiB", "100", "38", "0", "181,000", "44,000", "92,000", "12,700", "5,412.0", "1,604",
    ]  # fmt: skip
    assert rows[1][0] == "assay.base.log (log)"
    assert table(passed, "files").rows[1][3].tone == "warn"  # slower than the target


def test_a_phase_begins_with_its_point_or_after_the_phase_before_it() -> None:
    facts = facts_of(verify())
    phases = [*facts.manifest["integrity"]["phases"], {"name": "stress", "cycle": 2, "seconds": 8.0, "point_id": None}]
    rows, start_ns = phase_spans(facts, phases)
    assert start_ns == facts.points[0]["started_utc_ns"]
    assert rows[-1]["start_s"] == pytest.approx(rows[-2]["end_s"])
    assert [row["label"] for row in rows[:2]] == ["prepare 1", "stress 1"]


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_phases_do_not_disturb_what_the_examination_measured() -> None:
    alone = assemble(facts_of((small(), {})))
    both = assemble(facts_of(assess(every_kind()[:3])))
    assert [part.name for part in both.sections] == [
        "summary", "verdict", "method", "iops", "curves", "percentiles", "parts", "integrity", "points",
    ]  # fmt: skip
    for name in ("iops", "curves", "percentiles", "parts"):
        for one, other in zip(section(alone, name).blocks, section(both, name).blocks, strict=True):
            assert one == other or (
                isinstance(one, FigureElement) and one.alternative == getattr(other, "alternative", None)
            )
    assert texts(section(both, "summary"))[0] == "Data came back wrong: 2 lost writes and 1 torn write."
    assert texts(section(both, "summary"))[1:] == texts(section(alone, "summary"))
    assert len(table(both, "points-table").rows) == len(table(alone, "points-table").rows) + 5
    assert "integrity: stress" in {row[1].text for row in table(both, "points-table").rows}
    assert "72 of 72 points reached a steady state" in " ".join(texts(section(both, "method")))
    assert both.title == alone.title


def test_an_examination_whose_data_came_back_right_says_so_last() -> None:
    document = assemble(facts_of(assess()))
    headlines = [b.text for b in section(document, "summary").blocks if isinstance(b, Paragraph) and b.strong]
    assert headlines[-1] == RIGHT
    assert headlines[0].startswith("5 of 7 limits met; missed: log writes with fsync")


def test_what_a_phase_moved_is_no_answer() -> None:
    sample, fields = assess()
    phase = sample.points[-1]["id"]
    sample.verdict.append({"question": "audit", "limit": None, "value": 3000.0, "unit": "iops", "met": None,
                           "meaning": "3,000 IOPS", "point_id": phase})  # fmt: skip
    document = assemble(facts_of((sample, fields)))
    assert "audit" not in {row[0].text for row in table(document, "verdict-table").rows}


def test_a_run_of_verify_without_a_result_says_so() -> None:
    sample, fields = verify()
    document = assemble(facts_of((sample, {**fields, "integrity": None})))
    assert "integrity" not in [part.name for part in document.sections]
    assert any("no result of its checks" in text for text in texts(section(document, "summary")))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_no_text_of_a_finding_is_ever_code(name: str) -> None:
    sample, fields = failed_run()
    result = fields["integrity"]
    for detail in result["details"]:
        for key in ("id", "file", "phase", "by", "explanation", "evidence", "operation", "errno"):
            detail[key] = name
        detail["also"] = [name]
        detail["elsewhere"] = {"file": name, "page": 1}
        detail["expected"] = {"file": name, "writer": name, "checksum": name, "generation": 1}
        detail["units"] = [*detail["units"], unit(3, 3, name, file=name, page=4)]
    result["details"][-1]["kind"] = name
    result["findings"][name] = 1
    for entry in (*result["files"], *result["phases"]):
        entry["name"] = name
    result |= {"understood": [name, f"{name}: {name}"], "error_log": name, "evidence": name, "run_identity": name}
    text, pdf = pages(assemble(facts_of((sample, fields))))
    page = Page(text)
    assert page.outside == []
    assert not {"script", "img", "iframe", "object"} & page.tags
    assert len(page.ids) == len(set(page.ids))
    assert pdf.startswith(b"%PDF")
    assert "\x00" not in text
    assert "\u202e" not in text


@pytest.mark.usefixtures("unchecked_charts")
@pytest.mark.slow(reason="test_report_pages.py leaves out fields of points and manifests")
def test_a_result_that_lacks_a_field_is_still_a_report() -> None:
    sample, fields = verify(**failed_fields([every_kind()[at] for at in (3, 9)]))
    whole = fields["integrity"]
    cut = [{**whole, missing: None} for missing in whole]
    for name in ("details", "phases", "files"):
        cut += [{**whole, name: [{**entry, missing: None} for entry in whole[name]]} for missing in whole[name][0]]
    for found in cut:
        assemble(facts_of((sample, {**fields, "integrity": found})))
    assert all(page for page in pages(assemble(facts_of((sample, {**fields, "integrity": {}})))))
