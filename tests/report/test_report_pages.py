"""The report's pages: self-contained, honest about what is missing, and safe with any text of a run."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from golden import check_golden, stable_html
from sample import Sample, io, small, write_run
from shown import facts_of, notices, pages, section, texts

from assay.base.errors import RunFolderError
from assay.document.elements import Document, Paragraph, Table
from assay.report import facts as reading
from assay.report import write_report
from assay.report.assemble import assemble
from assay.report.facts import load_facts
from assay.report.html import html_report
from assay.report.pdf import pdf_report
from assay.report.sections.method import timing_text

HOSTILE = [
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>]]></svg><!-- &amp; %0a",
    '#eval("x") $x$ *b* _i_ `c` @ref <label> // /* \\ #{1+1} [x]',
    f"{'n' * 400} {'/a' * 200}",
    "nul\x00 esc\x1b[31m reversed\u202egnp.exe byte\udcff 数据库/größe/Ж/\U0001f4be",
    "",
]


class Page(HTMLParser):
    """What a browser would load or run, and which ids and links a page has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.outside: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            if name.startswith("on"):
                self.outside.append(f"{tag} {name}")
            if name in ("src", "href", "xlink:href", "data", "action", "srcset") and not (value or "").startswith("#"):
                self.outside.append(f"{tag} {name}={value}")
            if name == "id":
                self.ids.append(value or "")
            if name == "href":
                self.links.append(value or "")


def test_a_run_gets_both_files(tmp_path: Path, one_point: Sample) -> None:
    run_path = write_run(tmp_path, one_point)
    written = write_report(run_path)
    assert written == [run_path / "report.html", run_path / "report.pdf"]
    assert written[1].read_bytes().startswith(b"%PDF")
    assert not list(run_path.glob(".report*"))


def test_only_what_was_asked_for_is_written(tmp_path: Path, one_point: Sample) -> None:
    run = write_run(tmp_path, one_point, series=False)
    assert write_report(run, pdf=False) == [run / "report.html"]
    assert write_report(run, html=False, pdf=False) == []
    assert not (run / "report.pdf").exists()


def test_a_folder_that_is_no_run_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        write_report(tmp_path)


def test_the_page_is_as_it_was_looked_at(one_point: Sample) -> None:
    """Blocks of every kind; what other runs say is in `test_report_documents`."""
    document = assemble(facts_of((one_point, {"parts": [], "verdict": [], "notices": ["a <notice>"]})))
    kinds = {block.kind for section in document.sections for block in section.blocks}
    assert kinds == {"paragraph", "heading", "facts", "notices", "table", "figure"}
    check_golden("report.html", stable_html(pages(document)[0]))


def test_the_page_needs_nothing_from_outside(document: Document, drawings: dict[str, str]) -> None:
    text = html_report(document, drawings)
    page = Page(text)
    assert page.outside == []
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert "default-src 'none'" in text


def test_every_link_leads_somewhere_and_no_id_occurs_twice(document: Document, drawings: dict[str, str]) -> None:
    page = Page(html_report(document, drawings))
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert any(link.startswith("#point-") for link in page.links)


def test_sections_come_in_the_order_a_reader_decides_by(document: Document) -> None:
    assert [section.name for section in document.sections] == [
        "summary", "verdict", "method", "iops", "curves", "percentiles", "parts", "diagnosis", "series", "points",
    ]  # fmt: skip


def test_every_point_stands_in_the_table_with_reads_and_writes_apart(document: Document) -> None:
    table = next(b for s in document.sections for b in s.blocks if isinstance(b, Table) and b.name == "points-table")
    sample = small()
    assert document.anchors == {point["id"] for point in sample.points}
    assert len(table.rows) == sum(bool(point["read"]) + bool(point["write"]) for point in sample.points)
    assert len(table.placed()[0]) == len(table.columns)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_of_a_run_is_ever_code(name: str) -> None:
    sample = Sample(5)
    workload = io(8192, 0.7, name)
    sample.search("oltp", workload)
    sample.search("oltp", io(8192, 0.7, name + "2"))
    sample.log()
    sample.database()
    for activity in sample.points[-1]["activities"]:
        activity["name"] = name
    for point in sample.points[-9:]:
        point["workload"]["sync"] = name
    manifest = sample.manifest(error=name, notices=[name])
    manifest["host"] = {key: value if isinstance(value, int) else name for key, value in manifest["host"].items()}
    manifest["engine"] = {"backend": name, "features": [name], "degraded": [name]}
    manifest["command"] = [name]
    for key in ("name", "path", "file_system", "mount_options", "device", "model", "state", "role"):
        manifest["target"]["volumes"][0][key] = name
    text, pdf = pages(assemble(reading.facts_of(manifest, sample.points)))
    page = Page(text)
    assert page.outside == []
    assert not {"script", "img", "iframe", "object"} & page.tags
    assert pdf.startswith(b"%PDF")
    assert "\x00" not in text
    assert "\u202e" not in text
    text.encode()


def test_typst_shows_markup_as_it_is_written(tmp_path: Path, one_point: Sample) -> None:
    if not _has_pdftotext():
        pytest.skip("needs pdftotext (poppler-utils)")
    document = assemble(facts_of((one_point, {"notices": ['#eval("1+1") *bold* $x$']})))
    (tmp_path / "report.pdf").write_bytes(pages(document)[1])
    shown = subprocess.run(["pdftotext", "-layout", tmp_path / "report.pdf", "-"], capture_output=True, check=True)
    assert '#eval("1+1") *bold* $x$' in shown.stdout.decode()


def _has_pdftotext() -> bool:
    import shutil

    return shutil.which("pdftotext") is not None


def test_the_pdf_embeds_only_fonts_typst_carries(document: Document, drawings: dict[str, str]) -> None:
    pdf = pdf_report(document, drawings)
    fonts = {name.decode() for name in re.findall(rb"/BaseFont\s*/([\w+-]+)", pdf)}
    assert all(re.search("Libertinus|DejaVu|NewCM", font) for font in fonts)


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_the_same_run_gives_the_same_page(tmp_path: Path, one_point: Sample) -> None:
    run = write_run(tmp_path, one_point)
    first, second = (pages(assemble(load_facts(run)))[0] for _ in "ab")
    assert first == second


@pytest.mark.parametrize(
    ("status", "said"),
    [("running", "still going on"), ("interrupted", "was interrupted"), ("failed", "The run failed")],
)
def test_a_run_that_did_not_end_says_so(one_point: Sample, status: str, said: str) -> None:
    document = assemble(facts_of((one_point, {"status": status, "ended_utc_ns": None})))
    assert any(said in text for text in notices(document))
    assert all(page for page in pages(document))


def test_what_was_measured_with_a_saturated_load_is_said_to_be_the_least() -> None:
    sample = Sample(2)
    sample.search("oltp", io(8192, 1.0, "reads"))
    scan = io(262144, 1.0, "256 KiB sequential read") | {"random_share": 0.0}
    side = sample.direction(3500.0, 262144, 36e6)
    sample.point("dss", scan, {"queue_depth": 128, "workers": 1, "outstanding": 128}, side, None)
    for point in (sample.points[1], sample.points[-1]):
        point["generator"]["saturated"] = True
    document = assemble(facts_of((sample, {})))
    said = "\n".join(notices(document))
    assert "bottleneck in p0002: no search rests on them." in said
    assert "bottleneck in p0009: the load had too little processor time, so that the storage may do more" in said
    (scans,) = [text for text in texts(section(document, "summary")) if text.startswith("Sequential scans")]
    assert scans.startswith("Sequential scans read at least 875 MiB/s")
    assert scans.endswith("so the storage may do more [p0009].")


def test_notice_and_timing_count_the_same_points_as_steady_or_not() -> None:
    sample = Sample(2)
    sample.search("oltp", io(8192, 1.0, "reads"))
    for point, slope_share in ((sample.points[2], 0.4), (sample.points[5], None)):
        point["steady"] = {"reached": False, "window_s": 5.0, "slope_share": slope_share, "half_width_share": 0.1}
        point["ended_by"] = "time"
    facts = facts_of((sample, {}))
    assert "1 of 7 points reached no steady state before" in "\n".join(notices(assemble(facts)))
    said = timing_text(facts, [])
    assert "6 of 7 points reached a steady state" in said
    assert "; 1 other could not be judged; what ended them" in said


def test_errors_saturation_and_unsteady_points_are_named_with_their_points() -> None:
    sample = Sample(2)
    sample.search("oltp", io(8192, 1.0, "reads"))
    sample.points[0]["errors"] = {"count": 3, "kinds": {"EIO": 2, "short": 1, "ENOSPC": 0}}
    sample.points[1]["generator"]["saturated"] = True
    sample.points[2]["steady"] = {"reached": False, "window_s": 5.0, "slope_share": 0.4, "half_width_share": 0.1}
    sample.points[2]["ended_by"] = "time"
    sample.points[3]["offered"] = {"rate": 1.0, "unfinished": 9, "oldest_unfinished_ns": 1, "sustained": False}
    sample.points[4]["ended_by"] = "not-answering"
    said = "\n".join(notices(assemble(facts_of((sample, {})))))
    assert "I/O errors in p0001: EIO 2, short 1." in said
    assert "bottleneck in p0002: no search rests on them." in said
    why = "drift +40 % (max. 10 %), mean ±10 % (max. 5 %)"
    assert f"1 of 8 points reached no steady state before their time was up: p0003; {why}." in said
    assert "not sustained in p0004" in said
    assert "stopped answering in p0005" in said
    assert "caches between host and disk are not excluded" in said.lower()
    assert "64 GiB" in said


def test_a_value_without_a_limit_is_not_counted_as_unmeasured(document: Document) -> None:
    first = document.sections[0].blocks[0]
    assert isinstance(first, Paragraph)
    assert first.text == (
        "5 of 7 limits met; missed: log writes with fsync (log write p99 3.45 ms, limit"
        " \N{LESS-THAN OR EQUAL TO}\N{NO-BREAK SPACE}2ms); unknown: tcp retransmits."
    )


@pytest.mark.parametrize("points", [0, 1, 2])
def test_a_run_of_few_points_is_a_short_report(points: int) -> None:
    sample = Sample(4)
    for outstanding in range(1, points + 1):
        sample.random_point("custom", io(8192, 0.7, "mix"), outstanding, 20)
    document = assemble(facts_of((sample, {"cache_span": None})))
    assert [section.name for section in document.sections] == ["summary", "method"] + ["percentiles"] * bool(points) + [
        "points"
    ]
    assert all(page for page in pages(document))


def test_a_manifest_with_nothing_in_it_is_a_report() -> None:
    assert all(page for page in pages(assemble(reading.facts_of({"schema_version": 1}))))


def test_a_search_that_found_no_load_says_so() -> None:
    sample = Sample(4)
    sample.search("oltp", io(8192, 1.0, "slow"), limit_ms=0.001)
    document = assemble(facts_of((sample, {})))
    assert any("no load that was tried met" in getattr(block, "text", "") for block in document.sections[0].blocks)
    assert "iops-1" not in [figure.name for figure in document.figures]


@pytest.mark.usefixtures("unchecked_charts")
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_point_or_manifest_that_lacks_a_field_is_still_a_report() -> None:
    sample = Sample(6)
    sample.search("oltp", io(8192, 0.7, "mix"))
    sample.database()
    searched, mixed = sample.points[:2], sample.points[-1:]
    manifest = sample.manifest()
    for missing in manifest:
        assemble(reading.facts_of({**manifest, missing: None}, searched))
    for first, *others in (searched, mixed):
        for missing in first:
            assemble(reading.facts_of({**manifest, "cache_span": None}, [{**first, missing: None}, *others]))


def test_a_damaged_series_is_left_out_and_said(tmp_path: Path, one_point: Sample) -> None:
    run = write_run(tmp_path, one_point, series=False)
    (run / "series.parquet").write_bytes(b"PAR1 cut off")
    document = assemble(load_facts(run))
    assert any("series could not be read" in text for text in notices(document))
    assert "series" not in [section.name for section in document.sections]


def test_a_percentile_finer_than_the_count_of_ios_is_not_drawn(one_point: Sample) -> None:
    from assay.workloads.io.report.curves import percentile_rows

    one_point.points[0]["read"]["count"] = 500
    drawn = [row["percentile"] for row in percentile_rows(one_point.points[0], "x") if row["direction"] == "read"]
    assert drawn == ["p50", "p90", "p95", "p99", "max"]
