"""Templates and words of a paper: what is the user's, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.base.errors import UsageError
from assay.document.elements import Bullets, Heading, Paragraph, Table
from assay.report.paper.texts import Texts, shipped, write_templates
from assay.report.paper.words import Words, paragraphs, read_words, unknown_remarks, write_words

TABLE = Table("t", "T", [], [])


def texts(folder: Path, **templates: str) -> Texts:
    for name, text in templates.items():
        (folder / f"{name}.txt").write_text(text)
    return Texts(folder)


def test_a_template_has_paragraphs_headings_lists_and_blocks(tmp_path: Path) -> None:
    own = texts(tmp_path, terms='# Head\n\nOne\nline.\n\n! Strong {{ x }}\n- a\n- b\n\n{{ show("t") }}\nLast.')
    assert own.blocks("terms", {"x": "5"}, {"t": [TABLE]}) == [
        Heading("Head"), Paragraph("One line."), Paragraph("Strong 5", strong=True), Bullets(["a", "b"]), TABLE,
        Paragraph("Last."),
    ]  # fmt: skip


def test_what_a_field_gives_is_text_and_nothing_else(tmp_path: Path) -> None:
    own = texts(tmp_path, terms="{{ a }}\n\n{{ b }}\n\n{{ c }}")
    fields = {"a": "# no heading", "b": "- no list", "c": '{{ show("t") }}'}
    assert own.blocks("terms", fields, {"t": [TABLE]}) == [
        Paragraph("# no heading"), Paragraph("- no list"), Paragraph('{{ show("t") }}'),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("One.\n{{ titel }}", r"terms\.txt line 2: unknown field 'titel'; did you mean 'title'\?"),
        ("{{ title.nothing }}", r"terms\.txt line 1: unknown field 'nothing'"),
        ("{% for x in %}", r"terms\.txt line 1: "),
        ("{{ show('nothing') }}", r"terms\.txt: there is nothing to show of the name 'nothing'; known: t"),
        ("{{ title / 2 }}", r"terms\.txt line 1: unsupported operand"),
        ("{{ ''.__class__.__mro__ }}", r"terms\.txt line 1: "),
        ("{% include '/etc/passwd' %}", r"terms\.txt line 1: "),
    ],
)
def test_a_wrong_template_is_one_line_that_names_its_file_and_line(tmp_path: Path, template: str, said: str) -> None:
    own = texts(tmp_path, terms=template)
    with pytest.raises(UsageError, match=said) as caught:
        own.blocks("terms", {"title": "x"}, {"t": [TABLE]})
    assert str(caught.value).startswith(f"--template {tmp_path}: terms.txt")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_template_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sumary.txt").write_text("x")
    with pytest.raises(UsageError, match=r"sumary\.txt is no template; did you mean summary\.txt\?"):
        Texts(tmp_path)
    with pytest.raises(UsageError, match="is no folder"):
        Texts(tmp_path / "nothing")


def test_templates_to_begin_with_are_those_that_come_with_assay(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert [path.name for path in write_templates(folder)] == list(shipped())
    assert Texts(folder).style == shipped()["paper.css"]
    with pytest.raises(UsageError, match=r"has absent\.txt already"):
        write_templates(folder)


def test_words_are_written_once_and_read_back(tmp_path: Path) -> None:
    assert read_words(tmp_path) is None
    write_words(tmp_path, [("summary", "Executive summary"), ("fill", "Fill\nx = 1")], "assay report 'a\nb'")
    assert read_words(tmp_path) == Words()


def test_words_of_the_user_are_plain_text(tmp_path: Path) -> None:
    (tmp_path / "paper.toml").write_text('title = "a\\u202eb"\nobjectives = "One\\u0000.\\n\\nTwo."\n')
    words = read_words(tmp_path)
    assert words is not None
    assert words.title == "a\\u202eb"
    assert paragraphs(words.objectives) == ["One\\x00.", "Two."]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('titel = "x"', "unknown key 'titel'; did you mean 'title'"),
        ('units = "furlongs"', "units: "),
        ("authors = 5", "authors: a list is expected|authors"),
        ("title = [", "paper.toml"),
    ],
)
def test_wrong_words_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "paper.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        read_words(tmp_path)


def test_remarks_on_a_section_that_is_not_there_are_told() -> None:
    (line,) = unknown_remarks(Words(remarks={"fil": "x", "summary": "y"}), ["summary", "fill"])
    assert line == "paper.toml: remarks.fil: this paper has no such section; did you mean 'fill'?"
