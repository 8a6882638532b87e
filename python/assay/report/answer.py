"""The answer of a run for the terminal: sentences, and the table that compares a study's levels."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import cast

from assay.base.tables import Record
from assay.base.units import format_bytes
from assay.document.elements import Block, Bullets, Column, Paragraph, Table, Tone
from assay.document.first_use import FirstUses, terms_of
from assay.document.limits import limited_text
from assay.document.terminal import table
from assay.document.text import joined, sentence
from assay.insight.studies.follows import follows_of
from assay.insight.studies.grid import grids_of, has_only_loads
from assay.insight.studies.words import (
    PUBLISHED_COLUMNS,
    comparison_rows,
    figure_text,
    published_by_study,
    published_texts,
)
from assay.record.answers import is_vague, least_words, load_words, names_of, repeats_words
from assay.record.figures import Figure
from assay.record.judgement import UNDECIDED, counts_words, standing_counts, standing_word, unknown_words, verdict_of
from assay.record.points import MEMORY_AXIS
from assay.record.shapes.manifest import Manifest
from assay.record.shapes.point import Point, VerdictLine
from assay.record.shapes.study import Study
from assay.record.standstill import bounded_words, generator_words
from assay.record.steady import unsteady_words
from assay.run.needed import need_tone
from assay.workloads.capabilities import Verifying
from assay.workloads.registry import figures_of, workload_recorded

LEVELS_SHOWN = 40
"""A study of more levels has its table in the report; of a run of more loads those are told that miss a limit."""

NOTHING = "Nothing was measured to its end."


def answer_of(manifest: Record, points: Sequence[Record]) -> list[Block]:
    """What a run found, its abbreviations explained; everything else is in its report."""
    figures = dict.fromkeys(figure for point in points for figure in figures_of(point))
    return [*FirstUses(terms_of(figures)).explained(_found(manifest, points))]


def _found(manifest: Record, points: Sequence[Record]) -> list[Block]:
    if manifest.get("contract"):
        # Only runs of contracts pay for what judges them.
        from assay.report.sections.acceptance import acceptance_of, verdict_blocks

        if (test := acceptance_of(manifest)) is not None:
            return verdict_blocks(test)
    study, verdict, need = manifest.get("study"), verdict_of(cast("Manifest", manifest)), manifest.get("need")
    if study and "sentences" in study:
        told = [line for line in verdict if _is_failure(line) or (line.get("asked") and line["met"] is None)]
        return [*_study(study), *map(_conclusion, told)]
    of_need = need["part"] if need else None
    answers = [
        one for one in manifest.get("answers") or [] if _first_figure(one) is not None and one["part"] != of_need
    ]
    # The need has a sentence of its own.
    verdict = [line for line in verdict if need is None or line["meaning"] != need.get("sentence")]
    named = [names_of(one, manifest.get("parts") or []) for one in answers]
    searched = {(name, (one.get("max") or {}).get("point_id")) for one, own in zip(answers, named, strict=True)
                for name in own}  # fmt: skip
    asked = {line["question"] for line in verdict}
    lines = [line for line in verdict if (line["question"], line.get("point_id")) not in searched]
    concluded = [line for line in lines if not (line.get("limit") or line.get("point_id"))]
    measured = [line for line in lines if line not in concluded]
    found: list[Block] = _matrix(answers) or [
        _search(one, own[-1] if own[-1] in asked else own[0]) for one, own in zip(answers, named, strict=True)
    ]
    if len(points) == 1 and measured:
        found += _point(points[0], measured)
    else:
        # Two tests may have one name.
        of_point = itertools.groupby(measured, key=lambda line: (line["question"], line.get("point_id")))
        found += _loads([list(group) for _, group in of_point])
    told = [line for line in concluded if standing_word(line) != "no limit" or line.get("asked")]
    found += map(_conclusion, told if len(concluded) < len(verdict) else concluded)
    counts = standing_counts(verdict)
    if len(found) > 2 and len(points) > 1 and counts:
        found.insert(0, _counted(counts))
    if need is not None and need.get("sentence"):
        step = need.get("next_step")
        words = f"{need['sentence']} To know: {step}." if step else need["sentence"]
        found.insert(0, Paragraph(words, strong=True, tone=need_tone(need)))
    return found or [Paragraph(NOTHING)]


def _is_failure(line: Record) -> bool:
    return line.get("met") is False and not line.get("limit") and line.get("value") is not None


def _counted(counts: Mapping[tuple[str, str], int]) -> Paragraph:
    # The first words tell of each kind that has nothing decided.
    decided = {kind for kind, one in counts if one != "unknown"}
    others = {
        word: sum(count for (kind, one), count in counts.items() if one == word and kind in decided)
        for word in ("missed", "unknown")
    }
    text = counts_words(counts) + "".join(f", {count:,} {word}" for word, count in others.items() if count)
    return Paragraph(f"{text}.", strong=True, tone=_tone([word for word, count in others.items() if count]))


def _tone(words: Collection[str]) -> Tone:
    return "bad" if "missed" in words else "warn" if "unknown" in words else "plain"


def _conclusion(line: Record) -> Paragraph:
    return Paragraph(sentence(f"{line['question']}: {line['meaning']}"), tone=_tone([standing_word(line)]))


# Searches


def _first_figure(answer: Record) -> Figure | None:
    return next((figure for figure in figures_of(answer) if figure.in_answers), None)


def _search(answer: Record, title: str) -> Paragraph:
    """A line: the largest load within the limits, its interval, and what limited it."""
    first, best = cast(Figure, _first_figure(answer)), answer.get("max")
    within = f" within {', '.join(answer['limits'])}" if answer.get("limits") else ""
    if answer["axis"] == MEMORY_AXIS:
        return Paragraph(f"{title}: {least_words(answer, figures_of(answer))}.", tone="plain" if best else "bad")
    stopped = _stopped(answer, by="limited by ")
    if best is None and answer.get("limited_by") in UNDECIDED:
        unknown = unknown_words(answer["limited_by"], limited_text(answer))
        return Paragraph(f"{title}: what it holds{within} is {unknown}.", tone="warn")
    if best is None:
        return Paragraph(f"{title}: no load that was tried is{within or ' an answer'}; {stopped}.", tone="bad")
    ends = [
        f"{name} {figure_text(low, first.unit)} to {figure_text(high, first.unit)}"
        for name, key in (("95 % interval", "interval_95"), ("the model's 90 % band", "band_90"))
        for low, high in [answer.get(key) or (None, None)]
        if low is not None
    ]
    sure = f" ({'; '.join(ends)})" if ends else ""
    load, value = load_words(best[answer["axis"]], answer["axis"]), best[first.name]
    vague = is_vague(value, answer.get("interval_95"))
    unknown = "how much it holds is not known, " if vague else ""
    # It imports what draws, which no help text needs.
    from assay.document.figure_sections import counted_words

    # What is counted besides, such as mailboxes, is the answer that was asked for.
    held = ", ".join([first.words(value), *counted_words(best, figures_of(answer))])
    told = "; ".join([f"{title}: {unknown}{held}{sure} {load}{within}", *repeats_words(answer), stopped])
    return Paragraph(f"{told}.", tone="warn" if vague else "plain")


def _stopped(answer: Record, *, by: str) -> str:
    """What ended a search; limits as plans write them."""
    named = answer.get("limited_by")
    return f"{by}{named}" if named in (answer.get("limits") or ()) else limited_text(answer, by=by)


def _matrix(answers: Sequence[Record]) -> list[Block]:
    """Answers of one search at every block size and read share, as a matrix; nothing where they are no such grid."""
    found = {(one["workload"].get("block_bytes"), one["workload"].get("read_share")): one for one in answers}
    blocks, shares = (list(dict.fromkeys(key[at] for key in found)) for at in (0, 1))
    if None in (*blocks, *shares) or min(len(blocks), len(shares)) < 2:
        return []
    if not len(found) == len(answers) == len(blocks) * len(shares):
        return []
    first = cast(Figure, _first_figure(answers[0]))
    held = {key: figure_text((one.get("max") or {}).get(first.name), first.unit) for key, one in found.items()}
    columns = ["block", *(f"{share * 100:.0f} % reads" for share in shares)]
    rows = [[format_bytes(block), *(held[block, share] for share in shares)] for block in blocks]
    limits = dict.fromkeys(", ".join(one.get("limits") or ()) for one in answers)
    within = f" within {'; '.join(limits)}" if any(limits) else ""
    stopped = [_stopped(one, by="limited by ") for one in answers]
    most = max(stopped, key=stopped.count)
    title = f"{first.title}{within}; {most} in {stopped.count(most)} of {len(stopped)}"
    return [Paragraph(f"{title}."), _numbers("", columns, rows)]


# Points at a given load


def _point(point: Record, lines: Sequence[Record]) -> list[Block]:
    """A run of one point in two lines: what was measured, and how it stands."""
    asked = _judged(lines)
    # What a kind judges of the whole run has a limit and the point as well; the point's own line has none.
    question = next((line for line in lines if not line.get("limit")), lines[0])["question"]
    workload = workload_recorded(point) if point.get("total") else None
    words = " ".join(workload.point_words(cast(Point, point))).strip(" ;") if workload is not None else ""
    told = words or "; ".join(line["meaning"] for line in lines if not line.get("limit"))
    judged, tone = _limits(asked) if asked else ("No limit was set", "plain")
    unsteady = "" if isinstance(workload, Verifying) else unsteady_words(point)
    bounded = bounded_words(point, told) if told else ""
    doubted = "" if bounded != told else generator_words(point)
    told = bounded
    doubts = [f"; {text}" for text in (doubted, unsteady) if text and text not in judged]
    return [
        Paragraph(f"{question}: {told}." if told else question),
        Paragraph(f"{judged}{''.join(doubts)}.", tone=tone),
    ]


def _loads(groups: Sequence[Sequence[Record]]) -> list[Block]:
    """A line for each load; of very many for those alone that miss a limit."""
    if len(groups) <= LEVELS_SHOWN:
        return [_measured(lines) for lines in groups]
    missed = [lines for lines in groups if any(line.get("met") is False for line in lines)]
    shown: list[Block] = [_measured(lines) for lines in missed[:LEVELS_SHOWN]]
    left = len(groups) - len(shown)
    miss = f", {len(missed) - len(shown)} of which miss a limit" if len(missed) > len(shown) else ""
    return [*shown, Paragraph(f"{left:,} {'more ' if shown else ''}loads were measured{miss}: the report has each.")]


def _measured(lines: Sequence[Record]) -> Paragraph:
    """What was measured at a load, and its limits, in one line."""
    told = [line["meaning"] for line in lines if not line.get("limit")]
    asked = _judged(lines)
    judged, tone = _limits(asked) if asked else ("", "plain")
    text = "; ".join([*told, *([judged] if judged else [])])
    return Paragraph(f"{lines[0]['question']}: {text}.", tone=tone)


def _judged(lines: Sequence[Record]) -> list[Record]:
    """Lines of limits and of what is decided; what a point has no figure of is told with the point."""
    held = (line for line in lines if standing_word(line) != "no limit")
    return [line for line in held if line.get("limit") or line.get("met") is not None]


def _limits(lines: Sequence[Record]) -> tuple[str, Tone]:
    """How limits of a point stand, and the tone of that."""
    missed, unknown = ([line for line in lines if line.get("met") is met] for met in (False, None))
    counts = standing_counts(cast("Sequence[VerdictLine]", lines))
    if not missed and not unknown:
        how = f": {lines[0]['meaning']}" if len(lines) == 1 else " by every role and volume"
        asked = counts.total()
        every = "both" if asked == 2 else f"all {asked}"
        return f"the limit {lines[0]['limit']} is met{how}" if asked == 1 else f"{every} limits are met", "plain"
    told = [counts_words(counts)] if missed or len(unknown) < len(lines) else []
    if missed:
        told.append("missed: " + joined(_missed(missed, limit) for limit in dict.fromkeys(map(_limit_of, missed))))
    for meaning in dict.fromkeys(line["meaning"] for line in unknown):
        names = dict.fromkeys(line["limit"] for line in unknown if line["meaning"] == meaning)
        told.append(f"{joined(names)} {'is' if len(names) == 1 else 'are'} {meaning}")
    return "; ".join(told), _tone([standing_word(line) for line in lines])


def _limit_of(line: Record) -> str:
    return str(line["limit"])


def _missed(lines: Sequence[Record], limit: str) -> str:
    """A missed limit once, however many volumes or databases miss it: the worst of them, and their number."""
    own = sorted((line for line in lines if _limit_of(line) == limit), key=lambda line: line.get("value") or 0.0)
    worst = own[-1 if "<" in limit else 0]
    others = f", the worst of {len(own)} that miss it" if len(own) > 1 else ""
    return f"{limit} ({worst['meaning']}{others})"


# Studies


def _study(study: Study) -> list[Block]:
    blocks: list[Block] = [
        Paragraph(f"{study['title']}: {study['question']}", strong=True),
        Bullets([*(study["sentences"] or []), *follows_of(study)]),
    ]
    if study["published"]:
        heads = [Column(head, number=head in ("published", "model")) for head in PUBLISHED_COLUMNS]
        grouped = published_by_study(study["published"])
        return [*blocks, *(table(name, heads, map(published_texts, rows)) for name, rows in grouped.items())]
    grids = grids_of(study)
    if len(study["factors"]) > 2 or has_only_loads(study["factors"]):
        blocks += [_numbers(grid.caption, grid.columns, grid.rows) for grid in grids]
    if len(blocks) > 2 or len(study["results"] or []) > LEVELS_SHOWN:
        return blocks
    return [*blocks, table("", *comparison_rows(study))]


def _numbers(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return table(caption, [columns[0], *(Column(one, number=True) for one in columns[1:])], rows)
