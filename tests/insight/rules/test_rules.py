"""Rules: each finds what breaks it and passes what is mended, and nothing that is not known passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.base.errors import UsageError
from assay.insight.rules.pages import page_of, pages
from assay.insight.rules.registry import FAMILIES, RULES, chosen_rules, rule_named
from assay.insight.rules.rule import SEVERITIES, SUBJECTS, Fact, Findings, PracticeRule, Subject, check
from insight.rules.cases import CASES


def filled(kind: str, name: str, facts: dict[str, object], engine: str = "") -> Subject:
    return Subject(kind, name, engine=engine, facts={key: Fact(value, "a test") for key, value in facts.items()})


def judged(rule: PracticeRule, facts: dict[str, object]) -> Findings:
    return check([filled(rule.subject, "one", facts, rule.engines[0] if rule.engines else "")], [rule])


def test_every_rule_has_its_case() -> None:
    assert set(CASES) == {rule.id for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_finds_what_breaks_it_and_says_what_it_found(rule: PracticeRule) -> None:
    told = judged(rule, CASES[rule.id].broken)

    (finding,) = told.findings
    assert finding.found
    assert finding.origin == "a test"
    assert not told.passed


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_passes_what_is_mended(rule: PracticeRule) -> None:
    broken, mended = CASES[rule.id]

    told = judged(rule, broken | mended)

    assert [one.found for one in told.findings] == []
    assert [one.reason for one in told.not_checked] == []
    assert len(told.passed) == 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_without_any_fact_that_it_needs_a_rule_is_not_checked_and_says_why(rule: PracticeRule) -> None:
    broken, mended = CASES[rule.id]
    needed = {*rule.reads, *(one.fact for one in rule.applies if one.unknown is None)}
    for name in needed:
        facts = {key: value for key, value in (broken | mended).items() if key != name}
        told = judged(rule, facts)

        assert told.passed == []
        assert told.findings == []
        (gap,) = told.not_checked
        assert name in gap.reason


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_value_of_another_form_is_no_finding_and_does_not_pass(rule: PracticeRule) -> None:
    class Odd:
        """Cannot be compared, called, walked or read as a number."""

        def __eq__(self, other: object) -> bool:
            raise TypeError

        def __hash__(self) -> int:
            raise TypeError

        def __bool__(self) -> bool:
            raise TypeError

    decided = {one.fact for one in rule.applies}
    odd = [name for name in rule.reads if name not in decided]
    if not odd:
        return
    told = judged(rule, CASES[rule.id].broken | {odd[0]: Odd()})

    assert told.passed == []
    assert told.findings == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_tells_all_that_a_reader_needs(rule: PracticeRule) -> None:
    assert rule.subject in SUBJECTS
    assert rule.severity in SEVERITIES
    assert all((rule.title, rule.wanted, rule.why, rule.fix, rule.source, rule.reads))
    assert rule.why.endswith(".")
    assert rule.fix.endswith(".")
    assert rule.id in page_of(rule)
    assert all(one.words in page_of(rule) for one in rule.applies)


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    assert len(RULES) >= 80
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(
    ("pair", "facts"),
    [
        (("host-transparent-huge-pages", "postgresql-huge-pages"), {"transparent_hugepage": "madvise"}),
        (
            ("iscsi-recovery-timeout", "iscsi-recovery-timeout-single"),
            {"recovery_timeout_s": 15, "has_multipath": True},
        ),
        (("device-read-ahead-small", "device-read-ahead-large"), {"read_ahead_bytes": 1 << 20}),
        (
            ("postgresql-shared-buffers-small", "postgresql-shared-buffers-large"),
            {"shared_buffers_bytes": 16 << 30, "memory_bytes": 64 << 30},
        ),
        (
            ("postgresql-random-page-cost", "postgresql-random-page-cost-flash"),
            {"random_page_cost": 4.0, "measured_random_cost": 4.0, "data_is_flash": True},
        ),
        (("mariadb-io-capacity", "mariadb-io-capacity-above"), {"innodb_io_capacity": 2000, "measured_iops": 20000.0}),
        (
            ("mssql-growth-small", "mssql-tempdb-growth"),
            {"small_growth_files": [], "tempdb_growths": [("tempdev", 100 << 30, 256 << 20)]},
        ),
    ],
)
def test_rules_about_one_thing_do_not_contradict_each_other(pair: tuple[str, str], facts: dict[str, object]) -> None:
    rules = [rule_named(name) for name in pair]
    subjects = [filled(rule.subject, "one", facts, rule.engines[0] if rule.engines else "") for rule in rules]

    assert check(subjects, rules).findings == []


def test_findings_come_worst_first_with_their_values() -> None:
    facts: dict[str, object] = {"vm.swappiness": 60, "swap_bytes": 1 << 30, "balloon": True, "is_guest": True}
    layout: dict[str, object] = {"data_devices": ["sda"], "backup_devices": ["sda"]}

    found = check([filled("host", "db1", facts), filled("layout", "db1", layout)], RULES).findings

    assert [one.rule.id for one in found] == ["layout-backup-apart", "host-swappiness", "guest-memory-balloon"]
    assert found[1].found == "vm.swappiness = 60"


def test_what_is_not_there_at_all_is_not_checked_where_a_site_could_say_it() -> None:
    told = check([], RULES)

    assert told.passed == []
    assert {"network-jumbo-hops", "array-fill", "hypervisor-thin-disks", "layout-raid-log"} <= {
        one.rule.id for one in told.not_checked
    }
    assert all(one.rule.asks in one.reason for one in told.not_checked)


def test_reasons_that_are_the_same_are_said_once() -> None:
    subject = Subject("host", "db1", otherwise="the run did not keep it")

    assert subject.gap(["a", "b"]) == "the run did not keep it"


def test_rules_are_chosen_by_name_and_family() -> None:
    assert {rule.id for rule in chosen_rules("layout", "layout-log-apart")} == {
        rule.id for rule in FAMILIES["layout"] if rule.id != "layout-log-apart"
    }
    with pytest.raises(UsageError, match="did you mean layout-log-apart"):
        chosen_rules("layout-log-appart", None)
    with pytest.raises(UsageError, match="leave no rule"):
        chosen_rules("layout", "layout")


def test_the_pages_are_those_of_the_rules() -> None:
    folder = Path(__file__).parents[3] / "docs" / "rules"
    made = pages()
    assert {path.name for path in folder.iterdir()} == set(made)
    assert [name for name, text in made.items() if (folder / name).read_text() != text] == [], (
        "the rules changed; write their pages again: python -m assay.insight.rules.pages docs/rules"
    )
