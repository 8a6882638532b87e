"""Elements of documents on the terminal: sentences wrap there and nowhere else, and one file draws tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.base.audience import Audience
from assay.document import terminal
from assay.document.elements import Bullets, Cell, Column, Notice, Notices, Paragraph, Table
from assay.document.terminal import PIPED_WIDTH, show, table

PACKAGE = Path(terminal.__file__).parents[1]

SENTENCE = "a sentence of words that is longer than a terminal is wide, " * 3


def test_one_file_draws_tables_and_knows_the_width() -> None:
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}

    assert [name for name, text in texts.items() if "rich.table" in text] == ["document/terminal.py"]
    assert [name for name, text in texts.items() if re.search(r"rich\.console|width=None", text)] == [
        "document/terminal.py"
    ]


def test_a_pipe_gets_each_sentence_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    show([Paragraph(SENTENCE, strong=True, tone="bad"), Bullets(["one", "two"]), Notices([Notice("beware")])])

    assert capsys.readouterr().out.splitlines() == [SENTENCE, "  one", "  two", "note: beware"]


def test_a_terminal_gets_lines_of_its_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    show([Paragraph(SENTENCE), table("", ("level", "reason"), [["RAID 10", SENTENCE]])])

    first, second, *others = capsys.readouterr().out.splitlines()
    assert max(map(len, (first, second, *others))) <= 80
    assert (first[0], second[:2]) == ("a", "  ")


def test_a_table_keeps_to_the_width_of_a_pipe_and_numbers_stand_right(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [Column("level"), Column("IOPS", number=True), Column("why")]
    rows = [[Cell("RAID 10"), Cell("4,194"), Cell(SENTENCE)], [Cell("RAID 6"), Cell("81"), Cell("-")]]
    show([Table("t", "Levels", columns, rows), table("empty", ("a",), [])])

    title, heads, _, *body = capsys.readouterr().out.splitlines()
    assert (title.strip(), heads.split()) == ("Levels", ["level", "IOPS", "why"])
    assert body[0].startswith("RAID 10")
    assert max(map(len, body)) <= PIPED_WIDTH
    assert any("   81 " in line for line in body)


def test_names_move_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    show([Paragraph("a\nb\x1b[31mred"), table("", ("name",), [["c\rd"]])])

    text = capsys.readouterr().out
    assert "a\\nb\\x1b[31mred" in text
    assert "c\\rd" in text


def test_a_program_gets_markdown_in_which_no_cell_breaks_its_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Audience, "is_program", True)
    columns = [Column("name"), Column("IOPS", number=True)]
    rows = [[Cell("a|b\nc", rowspan=2), Cell("1")], [Cell("2")]]
    show(
        [
            Paragraph(SENTENCE, strong=True),
            Bullets(["one", "two"]),
            Table("t", "Levels", columns, rows),
            table("", ("a",), []),
        ]
    )
    show([])

    assert capsys.readouterr().out == (
        f"**{SENTENCE}**\n\n- one\n- two\n\n**Levels**\n\n| name | IOPS |\n|---|--:|\n| a\\|b\\nc | 1 |\n|  | 2 |\n\n"
    )
