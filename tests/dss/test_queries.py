"""Texts, parameters, orderings, scores and answers of the TPC-H-like queries; plans of `assay dss tpch`."""

from __future__ import annotations

import re
from decimal import Decimal
from threading import Event
from typing import Any

import pytest
import sqlglot

from assay import _core
from assay.base.errors import UsageError
from assay.workloads.registry import load_plan_of_any_kind
from assay.workloads.tpch.answers import compare_answers, compare_published
from assay.workloads.tpch.parameters import COLOURS, NATIONS, VALIDATION, parameters
from assay.workloads.tpch.plan import QUERIES, TpchPlan
from assay.workloads.tpch.queries import DIALECTS, query_text
from assay.workloads.tpch.running import Deadline
from assay.workloads.tpch.scores import composite_score, power_score, throughput_score
from assay.workloads.tpch.streams import ORDERINGS, ordering
from assay.workloads.tpch.tables import TABLES, statements

SEEDS = range(1, 41)
DEADLINE_S = 60


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("number", QUERIES)
def test_a_query_is_one_statement_of_each_dialect_with_its_parameters(number: int, dialect: str) -> None:
    for seed in range(7, 17):
        text = query_text(number, parameters(number, seed=seed, scale=0.1), dialect, stream=3)

        assert text.startswith(f"-- query {number} of stream 3\n")
        (tree,) = sqlglot.parse(text, dialect=DIALECTS[dialect])
        assert tree is not None
        assert list(tree.find_all(sqlglot.exp.Placeholder)) == []
        names = {str(table.name) for table in tree.find_all(sqlglot.exp.Table)}
        assert names <= {*TABLES.names, "revenue"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("number", QUERIES)
@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_rows_are_ordered_by_plain_columns(number: int, dialect: str) -> None:
    """Nulls sort as the engine has them: an order of them written out keeps engines from using an index."""
    text = query_text(number, VALIDATION[number], dialect)
    order = text[text.find("ORDER BY") :] if "ORDER BY" in text else ""
    assert "NULLS" not in order
    assert "CASE" not in order


def test_parameters_are_quoted_whatever_they_hold() -> None:
    text = query_text(21, {"nation": "it's; DROP TABLE nation"}, "postgresql")
    assert "'it''s; DROP TABLE nation'" in text


def test_parameters_keep_to_their_ranges_and_follow_from_the_seed() -> None:
    for number in QUERIES:
        drawn = [parameters(number, seed=seed, scale=1) for seed in SEEDS]
        assert drawn == [parameters(number, seed=seed, scale=1) for seed in SEEDS]
        assert all(set(one) == set(VALIDATION[number]) for one in drawn)
        assert len({str(one) for one in drawn}) > 1
    days = [str(parameters(1, seed=seed, scale=1)["last_day"]) for seed in SEEDS]
    assert "1998-08-03" <= min(days) <= max(days) <= "1998-10-02"
    for seed in SEEDS:
        seven = parameters(7, seed=seed, scale=1)
        assert seven["nation"] != seven["other"]
        eight = parameters(8, seed=seed, scale=1)
        assert len(str(eight["type"]).split()) == 3
        sizes = [parameters(16, seed=seed, scale=1)[f"size_{place}"] for place in range(1, 9)]
        assert len({*sizes}) == 8
        months = parameters(4, seed=seed, scale=1)
        assert "1993-01-01" <= str(months["first_day"]) <= "1997-10-01"
        codes = [str(parameters(22, seed=seed, scale=1)[f"code_{place}"]) for place in range(1, 8)]
        assert len({*codes}) == 7
        assert all(10 <= int(code) <= 34 for code in codes)
    assert parameters(11, seed=1, scale=0.01)["fraction"] == Decimal("0.01")
    assert (len(NATIONS), len(COLOURS)) == (25, 92)


def test_every_ordering_has_every_query_once() -> None:
    assert len(ORDERINGS) == 41
    assert all(sorted(order) == list(QUERIES) for order in ORDERINGS)
    assert len({*ORDERINGS}) == 41
    assert ordering(1)[:4] == (21, 3, 18, 5)
    assert ordering(42) == ordering(1)


def test_scores_are_those_computed_by_hand() -> None:
    ones = dict.fromkeys(QUERIES, 1.0)
    # The geometric mean of ones is one.
    assert power_score(ones, 1.0, 1.0, scale=1) == pytest.approx(3600)
    assert power_score(ones, 1.0, 1.0, scale=10) == pytest.approx(36_000)
    # One query of 2,000 s: the 21 other queries of 1 s count for 2,000 / 1,000 = 2 s, refresh functions for their 1 s.
    slow = ones | {9: 2000.0}
    assert power_score(slow, 1.0, 1.0, scale=1) == pytest.approx(3600 / (2000 * 2**21) ** (1 / 24))
    # Intervals are rounded to tenths of a second, and are one tenth at least.
    quick = dict.fromkeys(QUERIES, 0.01)
    assert power_score(quick, 0.14, 0.06, scale=1) == pytest.approx(36_000)
    assert power_score({1: 1.0}, 1.0, 1.0, scale=1) is None
    assert throughput_score(2, 100.04, scale=1) == pytest.approx(2 * 22 * 3600 / 100)
    assert composite_score(900, 400) == pytest.approx(600)


# Time-outs


class Cancelled:
    """A session that counts how often it was cancelled."""

    def __init__(self) -> None:
        self.cancelled = Event()
        self.times = 0

    def cancel(self) -> None:
        self.times += 1
        self.cancelled.set()


def test_a_query_is_cancelled_when_its_time_is_over_and_the_next_one_is_not() -> None:
    session = Cancelled()
    with (deadline := Deadline(session, 0.001)):  # type: ignore[arg-type]
        assert session.cancelled.wait(DEADLINE_S)
    assert (deadline.cancelled, deadline.missed, session.times) == (True, True, 1)
    with (late := Deadline(session, None)):  # type: ignore[arg-type]
        pass
    assert (late.cancelled, late.missed) == (False, False)
    with (ended := Deadline(session, 3600)):  # type: ignore[arg-type]
        pass
    # A timer that fires as the query ends finds it over.
    ended._cancel()
    assert (ended.cancelled, session.times) == (False, 1)


def test_a_query_that_took_too_long_has_missed_its_time_though_nothing_cancelled_it() -> None:
    deadline = Deadline(Cancelled(), 5)  # type: ignore[arg-type]
    deadline.seconds = 5.1
    assert (deadline.cancelled, deadline.missed) == (False, True)


# Answers

ANSWER = "c_count|custdist\n 0 | 50005\n 9 | 6641 \n"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(0, 50005), (9, 6641)], None),
        ([(0, 50005), (9, 6642)], "6642, not 6641"),
        ([(9, 6641), (0, 50005)], "row 1"),
        ([(0, 50005)], "1 rows, not 2"),
        ([(0, 50005, 1), (9, 6641, 1)], "3 columns, not 2"),
    ],
)
def test_counts_must_match(rows: list[tuple[Any, ...]], said: str | None) -> None:
    found = compare_published(13, rows, ANSWER)
    assert (found is None) if said is None else (found is not None and said in found)


def test_sums_may_be_off_by_a_hundred_and_ratios_by_one_percent() -> None:
    assert compare_published(6, [(Decimal("1000100.00"),)], "revenue\n1000000.00") is None
    assert compare_published(6, [(Decimal("1000100.01"),)], "revenue\n1000000.00") is not None
    # They are rounded to two digits first: 16.5449 is 16.54, one percent above 16.38.
    assert compare_published(14, [(Decimal("16.5449"),)], "promo\n16.38") is None
    assert compare_published(14, [(Decimal("16.5451"),)], "promo\n16.38") is not None
    # The quantities of query 1 are whole numbers of pieces: they must match.
    summed = ["A", "F", 37734107, *(Decimal("1.00"),) * 6, 5]
    published = "a|b|c|d|e|f|g|h|i|j\nA|F|{}|1.00|1.00|1.00|1.00|1.00|1.00|5"
    assert compare_published(1, [tuple(summed)], published.format("37734107.00")) is None
    assert compare_published(1, [tuple(summed)], published.format("37734108.00")) is not None
    # Two engines agree to the cent.
    assert compare_answers(6, [(Decimal("10.004"),)], [(Decimal("10.00"),)]) is None
    assert compare_answers(6, [(Decimal("10.02"),)], [(Decimal("10.00"),)]) is not None


def test_rows_that_the_order_leaves_open_may_come_in_any() -> None:
    rows = [("a", 1, 7, "1995-01-01", Decimal(9), 300), ("b", 2, 8, "1995-01-01", Decimal(9), 301)]
    assert compare_answers(18, rows, rows[::-1]) is None
    assert "301" in (compare_answers(18, rows, [rows[0], (*rows[1][:5], 302)]) or "")


def test_published_answers_are_there_for_all_queries() -> None:
    for number in QUERIES:
        header, *rows = _core.tpch_answer(number).strip().splitlines()
        assert rows
        assert all(row.count("|") == header.count("|") for row in rows)


# Plans


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"scale": 0}, "scale"),
        ({"scale": -1}, "scale"),
        ({"scale": 0.0005}, "scale"),
        ({"scale": 1.0005}, "three decimals"),
        ({"queries": "23"}, "22"),
        ({"queries": "1,1"}, "twice"),
        ({"queries": "one"}, "numbers of queries"),
        ({"partition": "customer:c_custkey:4"}, "no date to partition by"),
        ({"partition": "lineitem:l_quantity:4"}, "accepted: l_shipdate"),
        ({"partition": "lineitem:l_shipdate:9"}, "8"),
        ({"partition": "lineitem"}, "TABLE:COLUMN:WAYS"),
        ({"columnstore": "line"}, "columnstore"),
        ({"directories": "data"}, "no full path"),
        ({"streams": 0}, "streams"),
        ({"limits": ["nopm>5"]}, "nopm"),
    ],
)
def test_what_a_plan_cannot_ask_is_refused_in_one_line(data: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as caught:
        load_plan_of_any_kind({"kind": "tpch", **data}, source="plan")
    assert "\n" not in str(caught.value)


def test_a_plan_is_read_back_from_its_json() -> None:
    plan = TpchPlan.model_validate({"scale": 0.1, "partition": "lineitem:l_shipdate:8", "columnstore": "orders"})
    assert load_plan_of_any_kind(plan.model_dump(mode="json"), source="plan") == plan


# Tables


def test_partitions_are_whole_years() -> None:
    first = [f"{year}-01-01" for year in range(1993, 2000)]
    assert TABLES.first_keys("lineitem", 8, 1000) == first
    assert TABLES.first_keys("lineitem", 4, 1000) == ["1994-01-01", "1996-01-01", "1998-01-01"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statements_are_of_their_dialect(dialect: str) -> None:
    for file in ("schema", "indexes", "drop"):
        for name, text in statements(dialect, file):
            assert sqlglot.parse_one(text, dialect=DIALECTS[dialect]) is not None, name
    made = [name for name, _ in statements(dialect, "schema")]
    assert made == ["assay_schema", "assay_chunk", *TABLES.names]
