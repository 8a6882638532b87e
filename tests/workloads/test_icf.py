"""Configurations of Iometer as plans: each round of access specifications, and each depth of the queue, is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.base.errors import UsageError
from assay.workloads.io.foreign import asked_elsewhere
from assay.workloads.io.foreign.asked import AskedElsewhere
from assay_command import Bench

SAMPLES = Path(__file__).parent / "iometer"
NEW = (SAMPLES / "oltp-1.1.0.icf").read_text()
OLD = (SAMPLES / "depths-2006.07.27.icf").read_text()


def asked(text: str, *, has_target: bool = True) -> AskedElsewhere:
    found = asked_elsewhere(text, "--plan t.icf", has_target=has_target)
    assert found is not None
    return found


def test_each_round_of_specifications_is_a_plan() -> None:
    first, second = asked(NEW).plans
    assert (first.name, second.name) == ("8K-70-Read-100-random", "Mixed-of-two-lines-Log")
    (both,) = first.workloads()[0].activities
    # Two workers on two disks, sixteen outstanding for each worker on each disk.
    assert (both.workers, both.queue_depth) == (2, 16)
    assert (both.block_bytes, both.read_share, both.random_share, both.align_bytes) == (8192, 0.7, 1.0, 8192)
    assert (both.io_mode, both.sync, both.compressible_share) == ("direct", "none", 1.0)
    assert (first.timing.duration_s, first.timing.warmup_s) == (330.0, 45.0)
    assert first.size == str(4194304 * 512)
    mixed, log = second.workloads()[0].activities
    assert (mixed.name, mixed.workers, mixed.blocks) == ("Worker 1", 1, {4096: 60.0, 65536: 40.0})
    assert (mixed.read_share, log.read_share, log.block_bytes) == (0.6, 0.0, 65536)


def test_what_no_plan_can_ask_is_named() -> None:
    assert asked(NEW).lines == [
        "worker Worker 3: left out, it is of type NETWORK",
        'targets: left out, a target is named: 1: "ACME DISK", D: "data"',
        "access specification Mixed, of two lines: delay 5: left out, no key of a plan has it",
        "access specification Mixed, of two lines: lines 4096 60 100 100; 65536 40 0 0: its lines are one mix with"
        " their mean shares",
        "starting sector: left out, say --region",
        "disk maximum size: is that of new files; what exists is used whole, say --region",
        "workers have access specifications of their own: each round of them is measured together",
        "Idle: left out, it asks for nothing",
    ]


def test_depths_that_the_test_goes_through_are_plans() -> None:
    found = asked(OLD)
    assert [plan.activity[0]["queue_depth"] for plan in found.plans] == [1, 2, 4, 8, 16, 32]
    assert found.plans[-1].name == "4K-random-read-32"
    assert found.plans[0].timing.duration_s is None
    assert "run time: is endless; a point is measured until it is steady" in found.lines
    linear = OLD.replace("1          32         2          EXPONENTIAL", "2          9         3          LINEAR")
    assert [plan.activity[0]["queue_depth"] for plan in asked(linear).plans] == [2, 5, 8]


def test_without_workers_each_specification_runs_by_itself() -> None:
    text = "Version 2008.06.18 \n" + NEW[NEW.index("'ACCESS SPEC") : NEW.index("'MANAGER LIST")]
    assert "run time: is not in the file; a point is measured until it is steady" in asked(text).lines
    assert [plan.name for plan in asked(text).plans] == ["8K-70-Read-100-random", "Mixed-of-two-lines", "Log"]
    assert [plan.activity[0]["queue_depth"] for plan in asked(text).plans] == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NEW.replace("\tLog\n'End", "\tGone\n'End"), "has no access specification 'Gone', which Worker 2 is to run"),
        (NEW.replace("0          5          30", "0          x          30"), "line 7: .* is no value of 'run time'"),
        (NEW.replace("4194304,2048,0", "4194304"), "is no value of 'disk maximum size'"),
        (NEW.replace("\t8K; 70% Read; 100% random\n", "\tIdle\n").replace("\tMixed, of two lines\n", "")
         .replace("\tLog\n", ""), "no worker has an access specification that asks for I/Os"),
        (OLD.replace("\t4096,100,100,100,0,1,0,0", "\t4096,100"), "line .*'4096,100' is no value of 'size'"),
        (OLD.replace("\t4096,100,100,100", "\t0,100,100,100"), "has no line with a size and a share"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused_in_a_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        asked(text)
    assert "\n" not in str(error.value)


def test_profile_asks_for_the_target(bench: Bench) -> None:
    refused = bench.profile("--plan", SAMPLES / "oltp-1.1.0.icf", "--dry-run")
    assert refused.code == 2
    assert 'names disks of Iometer\'s hosts (1: "ACME DISK", D: "data"); give the target: PATH' in refused.complaint
    document = bench.profile(
        "null:", "--plan", SAMPLES / "depths-2006.07.27.icf", "--duration", "50ms", "--json"
    ).document
    assert [point["load"]["queue_depth"] for point in document["points"]] == [1, 2, 4, 8, 16, 32]
