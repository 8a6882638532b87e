"""What a report says of best practice: findings with what to do, what is not checked and why, and the first page."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sample import Sample, io
from shown import cells, facts_of, names, section, texts

from assay.insight.rules.outputs import document
from assay.insight.rules.registry import RULES
from assay.insight.rules.rule import Fact, Subject, check
from assay.record.source import RunFacts
from assay.report.assemble import assemble


@pytest.fixture
def facts() -> RunFacts:
    """A run that was checked: a host with an error, two warnings and a note, and much that is not known."""
    host = Subject("host", "db1", otherwise="this kernel does not show it")
    told = {"vm.swappiness": 60, "swap_bytes": 1, "clock_source": "hpet", "is_guest": True, "balloon": True}
    host.facts = {name: Fact(value, "/proc") for name, value in told.items()}
    layout = Subject("layout", "db1", facts={name: Fact(["sda"], "x") for name in ("data_devices", "backup_devices")})
    sample = Sample(4)
    sample.search("oltp", io(8192, 0.7, "8 KiB random 70/30"))
    made: dict[str, Any] = {"check": json.loads(json.dumps(document(check([host, layout], RULES), ["host"], [])))}
    found = facts_of((sample, {}))
    return RunFacts(manifest={**found.manifest, **made}, points=found.points)


def test_findings_stand_worst_first_with_what_to_do(facts: RunFacts) -> None:
    rows = cells(assemble(facts), "findings")

    assert [row[0] for row in rows] == ["error", "warning", "warning", "note"]
    assert rows[0][1] == "layout-backup-apart: Backups lie beside the data"
    assert rows[0][3] == "sda holds both"
    assert "Write backups to other storage." in rows[0][5]


def test_what_is_not_checked_stands_with_its_reason_once(facts: RunFacts) -> None:
    rows = cells(assemble(facts), "not-checked")
    reasons = dict(rows)

    assert len(reasons) == len(rows)
    assert "host-zone-reclaim" in reasons["this kernel does not show it"]
    assert "network-jumbo-hops" in reasons["Nothing on the host shows it; the owner of the site can state it"]


def test_the_first_page_says_what_to_do_about_the_worst(facts: RunFacts) -> None:
    told = " ".join(texts(section(assemble(facts), "summary")))

    assert "Backups lie beside the data (db1): Write backups to other storage." in told
    assert "The hypervisor may take" not in told


def test_a_run_that_was_not_checked_has_no_such_section(facts: RunFacts) -> None:
    without = RunFacts(
        manifest={key: value for key, value in facts.manifest.items() if key != "check"}, points=facts.points
    )

    assert "best-practice" not in names(assemble(without))
