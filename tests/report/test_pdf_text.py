"""What one can copy from a PDF: paths and commands as they are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from sample import Sample, io
from shown import facts_of, pages

from assay.document.text import BREAK
from assay.report.assemble import assemble

LONG_PATH = "/srv/databases/production/warehouse_two/tablespaces/orders_2026/segment_0001.dat"

MARGIN_PT = 30
MOUNTED = "rw,relatime,discard,resv_strict,resuid=65534,resgid=65534,stripe=128,data=ordered"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report whose command and volumes have paths that break."""
    if shutil.which("pdftotext") is None or shutil.which("pdfinfo") is None:
        pytest.skip("needs pdftotext and pdfinfo (poppler-utils)")
    sample = Sample(3)
    sample.random_point("custom", io(8192, 0.7, "8 KiB random 70/30"), 8, 20)
    manifest = sample.manifest()
    manifest["target"]["volumes"][0] |= {"path": LONG_PATH, "file_system": "ext4", "mount_options": MOUNTED}
    facts = facts_of((sample, {"command": ["assay", "profile", LONG_PATH], "target": manifest["target"]}))
    path = tmp_path_factory.mktemp("pdf") / "report.pdf"
    path.write_bytes(pages(assemble(facts))[1])
    return path


def text_of(path: Path, *options: str) -> str:
    done = subprocess.run(["pdftotext", *options, path, "-"], capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.decode()


def test_a_copied_path_is_the_path(made: Path) -> None:
    text = text_of(made, "-raw")
    assert LONG_PATH in text.replace("\n", "")
    assert not {letter for letter in text if letter in (BREAK, "\u00ad", "\u2060", "\ufeff")}


def test_no_word_reaches_into_the_margin(made: Path) -> None:
    words = text_of(made, "-bbox")
    pages = [(float(page[1]), page[2]) for page in re.finditer(r'<page width="([\d.]+)"(.*?)</page>', words, re.S)]
    assert pages
    for width, shown in pages:
        ends = [(float(end), word) for end, word in re.findall(r'xMax="([\d.]+)"[^>]*>([^<]*)</word>', shown)]
        assert [word for end, word in ends if end > width - MARGIN_PT] == []
    assert "MiB/s" in words, "a unit is one word"


def test_poppler_finds_nothing_wrong(made: Path) -> None:
    done = subprocess.run(["pdfinfo", made], capture_output=True, check=True)
    assert done.stderr == b""
    assert BREAK not in done.stdout.decode()
