"""Papers as pages: whole, linked, typeset; and safe with any text of a run or of the user, in all three forms."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from sample import Sample, io, write_run
from sample_paper import both_runs, made

from assay.document.elements import Document
from assay.report.files import refuse_foreign
from assay.report.html import html_report
from assay.report.markdown import markdown_report
from assay.report.paper.words import Words
from assay.report.pdf import pdf_report
from assay.report.render import render_figures

pytestmark = pytest.mark.usefixtures("unchecked_charts")

HOSTILE = [
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>]]></svg>--> &amp; <meta http-equiv=refresh>",
    '#eval("x") $x$ *b* _i_ `c` @ref <label> // #{1+1} [a](javascript:x) ![i](http://x.example/i.png) |a|b|',
    "1. [x]: http://x.example www.x.example a@x.example {{ 7*7 }} {% for %} \\ue000 end",
]


class Page(HTMLParser):
    """Tags, ids and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            self.ids += [value or ""] if name == "id" else []
            self.links += [value or ""] if name in ("href", "xlink:href", "src") else []
            self.handlers += [name] if name.startswith("on") else []


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return made(both_runs(tmp_path_factory.mktemp("paper")))


@pytest.fixture(scope="module")
def drawings(document: Document) -> dict[str, str]:
    return render_figures(document)


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_every_link_of_the_page_leads_somewhere(document: Document, drawings: dict[str, str]) -> None:
    page = Page(html_report(document, drawings))
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert {"#point-R1.p0003", "#point-R2.p0007", "#points", "#raid-policy"} <= set(page.links)


def test_every_link_of_the_markdown_leads_somewhere(document: Document) -> None:
    text = markdown_report(document, "figures")
    ids = set(re.findall(r'<a id="([^"]+)"></a>', text))
    links = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert links
    assert links <= ids
    assert re.findall(r"!\[[^\n]*\]\(([^)]+)\)", text) == [f"figures/{figure.name}.svg" for figure in document.figures]


def test_the_style_of_the_user_cannot_end_its_element(document: Document, drawings: dict[str, str]) -> None:
    page = Page(html_report(document, drawings, style="p { } </style><script>alert(1)</script>"))
    assert "script" not in page.tags


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_is_ever_code(tmp_path: Path, name: str) -> None:
    sample = Sample(5)
    sample.random_point("oltp", io(8192, 0.7, name), 8, 20)
    volume = {"name": name, "path": f"/srv/{name}", "kind": "file", "role": name, "size_bytes": 1, "model": name,
              "device": name, "device_stack": [name], "file_system": name}  # fmt: skip
    study = {"name": name, "title": name, "question": name, "order": [name], "seed": 1, "factors": [], "levels": {},
             "comparison": None, "target": name}  # fmt: skip
    run = write_run(
        tmp_path, sample, series=False, cache_span=None, target={"volumes": [volume], "databases": []}, notices=[name],
        command=[name], study=study, host={"hostname": name, "kernel": name},
        parts=[{"name": name, "title": name, "plan": {"limits": [name], name: name}, "target": name}],
    )  # fmt: skip
    words = Words(title=name, subtitle=name, authors=[name], customer=name, audience=name, objectives=name,
                  remarks={"limitations": name})  # fmt: skip
    made_of = made([run], words=words)
    drawings = render_figures(made_of)
    page = Page(html_report(made_of, drawings))
    assert not {"script", "img", "iframe", "object", "b"} & page.tags
    assert page.handlers == []
    assert all(link.startswith("#") for link in page.links)
    assert pdf_report(made_of, drawings).startswith(b"%PDF")
    text = markdown_report(made_of, "figures")
    assert not re.search(r"<(?!a id=\"|/a>|!-- <meta|meta name=\"generator\")", text)
    assert not re.search(r"(?<!\\)\]\((?!#|figures/)", text)
    rendered = Page(MarkdownIt("commonmark").enable("table").render(text))
    assert not {"script", "iframe", "object", "code", "b", "i", "em"} & rendered.tags
    assert rendered.handlers == []
    assert all(link.startswith(("#", "figures/")) for link in rendered.links)
    assert "http://" not in text
    assert "www." not in text
    assert not re.search(r"(?<!\\)[`$@]", text)


def test_the_pdf_is_typeset_as_papers_are(tmp_path: Path, document: Document, drawings: dict[str, str]) -> None:
    if shutil.which("pdftotext") is None:
        pytest.skip("needs pdftotext (poppler-utils)")
    path = tmp_path / "paper.pdf"
    path.write_bytes(pdf_report(document, drawings))
    # It may be written over, as what it says of itself is Assay's.
    refuse_foreign(path, what="paper.pdf")
    done = subprocess.run(["pdftotext", "-layout", tmp_path / "paper.pdf", "-"], capture_output=True, check=True)
    title, contents, *others = done.stdout.decode().split("\f")
    assert "Storage examined" in title
    lines = [line for line in contents.splitlines() if " . . " in line or "....." in line]
    assert [line.split(" .")[0].strip() for line in lines if re.match(r"\d+\.|Appendix", line.strip())] == [
        *(f"{number}. {section.title}" for number, section in enumerate(document.sections[:-4], 1)),
        *(f"Appendix {letter}. {one.title}" for letter, one in zip("ABCD", document.sections[-4:], strict=True)),
    ]  # fmt: skip
    whole = "\n".join(others)
    assert "Figure 1. " in whole
    assert "Table 1. " in whole
    # Running heads: the title at the left, the section at the right, on every page but the first.
    assert all("Storage examined" in page for page in (contents, *others) if page.strip())
    # No page ends with a heading.
    headings = {section.title for section in document.sections}
    last = [[line.strip() for line in page.splitlines() if line.strip()][-2] for page in others if page.strip()]
    assert [line for line in last if line.partition(". ")[2] in headings] == []
