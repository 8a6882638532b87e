"""Words that a reader may not know are explained where a document uses them first, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.document.elements import (
    Block,
    Bullets,
    Cell,
    Column,
    FactList,
    Heading,
    Notice,
    Notices,
    Paragraph,
    Section,
    Table,
)
from assay.document.first_use import TERMS, FirstUses, explained, terms_of
from assay.document.terminal import unfolded
from assay.workloads.registry import workload_named

ROOT = Path(__file__).parents[2]
KNEE = "the smallest load with 95 % of the most"


def text_of(*blocks: Block) -> list[str]:
    return [block.text if isinstance(block, Paragraph) else repr(block) for block in FirstUses().explained(blocks)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Run it at the knee.", f"Run it at the knee ({KNEE})."),
        ("It holds most at the knee (8 users).", f"It holds most at the knee ({KNEE}; 8 users)."),
        ("Rings mark more (the knee, too).", f"Rings mark more (the knee [{KNEE}], too)."),
        ("The load generator was busy.", "The load generator (the part of Assay that makes the load) was busy."),
        ("Buy 1 member: it holds.", "Buy 1 member (one array of a group): it holds."),
        # The text has the meaning already.
        ("The smallest load with 95 % of it (knee).", "The smallest load with 95 % of it (knee)."),
        # Names, paths and options are no use of a word.
        ("/mnt/edge/f.dat, member0/disk3, members=2", "/mnt/edge/f.dat, member0/disk3, members=2"),
        ("2 members hold more.", "2 members (member: one array of a group) hold more."),
    ],
)
def test_a_word_is_explained_where_a_text_uses_it_first(text: str, shown: str) -> None:
    assert text_of(Paragraph(text), Paragraph(text)) == [shown, text]


def test_several_new_words_of_one_text_have_their_own_meanings() -> None:
    (shown,) = text_of(Paragraph("the knee and the edge"))
    assert shown == f"the knee ({KNEE}) and the edge (the largest load within the limits)"


def test_words_of_headings_and_cells_are_explained_in_the_caption() -> None:
    made = Table("t", "Loads", [Column("Knee")], [[Cell("2 members")]])
    (block,) = FirstUses().explained([made])
    assert isinstance(block, Table)
    assert block.caption == f"Loads. Knee: {KNEE}; member: one array of a group."
    assert block.rows == made.rows


def test_every_kind_of_text_counts_as_a_use() -> None:
    words = FactList("glossary", [("edge", "as the workload says it")])
    notice, fact = Notices([Notice("its generator")]), FactList("f", [("Members", "2")])
    shown = FirstUses().explained([Heading("The knee"), Bullets(["the edge"]), notice, fact, words])
    heading, bullets, notices, facts, glossary = shown
    assert heading == Heading("The knee")
    assert bullets == Bullets(["the edge (the largest load within the limits)"])
    assert notices == Notices([Notice("its generator (the part of Assay that makes the load)")])
    assert facts == FactList("f", [("Members", "2 (member: one array of a group)")])
    assert isinstance(glossary, FactList)
    assert [word for word, _ in glossary.items] == ["edge", "generator", "member"]


def test_sections_are_read_one_after_the_other() -> None:
    first, second = explained([Section(name, "", [Paragraph("at the edge")]) for name in ("a", "b")])
    assert first.blocks != second.blocks == [Paragraph("at the edge")]


def test_answers_on_a_terminal_explain_words_too() -> None:
    shown = [*unfolded([Paragraph("1 member")], details=False)]
    assert shown == [Paragraph("1 member (one array of a group)")]
    # What explained a word already says nothing twice.
    assert [*unfolded(shown, details=False)] == shown


def test_abbreviations_of_figures_are_explained_by_their_own_words() -> None:
    terms = terms_of(workload_named("tpcc").figures)
    assert {term.word: term.meaning for term in terms} == {
        "NOPM": "new orders per minute", "TPM": "transactions per minute",
    }  # fmt: skip
    (shown,) = FirstUses(terms).explained([Paragraph("9,277 NOPM (21,674 TPM).")])
    meanings = "9,277 NOPM (new orders per minute; 21,674 TPM [transactions per minute])."
    assert shown == Paragraph(meanings)
    (known,) = FirstUses(terms).explained([Paragraph("9,277 new orders a minute (NOPM)")])
    assert known == Paragraph("9,277 new orders a minute (NOPM)")


def test_the_glossary_has_the_words() -> None:
    words = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/glossary.md").read_text(), flags=re.MULTILINE)
    assert {term.word for term in TERMS} <= set(words)
