"""Sample studies: the presets' own parts, with points of the simulated storage instead of measured ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sample import Sample, write_run
from sample_oltp import add_point, storage

from assay.insight.studies.files import read_study
from assay.insight.studies.findings import study_findings
from assay.insight.studies.parts import study_parts
from assay.run.part import part_report
from assay.workloads.databases.storage import roles_of
from assay.workloads.io.plan import IoPlan
from assay.workloads.mailbox.plan import MailboxPlan
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of
from assay.workloads.tpch.plan import TpchPlan
from assay.workloads.transactions.plan import TransactionsPlan

WOBBLE = (0.99, 1.01, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0, 1.0)
BANDS = {"band_90": 0.12, "band_basis": "one fitted parameter"}


def study_run(folder: Path, name: str, *, bands: bool = False, **options: Any) -> Path:
    """Run folder of a study whose levels hold less and less: 20 % from each to the next."""
    study = read_study(name)
    parts, facts = study_parts(study, target=study.target or "embedded:/srv/pg", **options)
    sample = Sample(5)
    for place, part in enumerate(parts):
        measure(sample, part, 0.8**place, bands=bands)
    reports = [part_report(part) for part in parts]
    found = study_findings(facts, reports, sample.points, sample.answers)
    return write_run(
        folder, sample, verb="study", series=False, cache_span=None, parts=reports, study=facts | found, verdict=[]
    )


def measure(sample: Sample, part: Part, speed: float, *, bands: bool) -> None:
    """An answer for each workload of a part that searches, a point for each of another."""
    if isinstance(part.plan, TransactionsPlan):
        transactions(sample, part, speed)
        return
    if isinstance(part.plan, TpchPlan):
        for test in part.plan.tests:
            queries(sample, part, test, speed)
        return
    if isinstance(part.plan, MailboxPlan):
        mailboxes(sample, part, speed)
        return
    assert isinstance(part.plan, IoPlan)
    for workload in part.plan.workloads():
        facts = workload.facts()
        if part.plan.search.axis == "none":
            depth = workload.activities[0].depth
            at = len(sample.points)
            point(sample, part.name, facts, depth, speed)
            assert len(sample.points) == at + 1
            continue
        held = [point(sample, part.name, facts, depth, speed) for depth in (4, 8, 16)]
        best = held[-1]["total"]
        end = {"outstanding": 16, "iops": best["iops"], "bytes_per_s": best["bytes_per_s"], "point_id": held[-1]["id"]}
        answer: dict[str, Any] = {
            "workload": facts, "part": part.name, "limits": list(part.plan.limits), "axis": "outstanding",
            "point_ids": [one["id"] for one in held], "max": end, "first_failing": None,
            "limited_by": "read.mean<=20ms", "interval_95": [best["iops"] * 0.97, best["iops"] * 1.04],
            "non_monotone": False,
        }  # fmt: skip
        if bands:
            answer |= {"band_90": [best["iops"] * 0.88, best["iops"] * 1.12], "band_basis": BANDS["band_basis"]}
        sample.answers.append(answer)


def mailboxes(sample: Sample, part: Part, speed: float) -> None:
    """A search over rates of one database: what is held fulfils its target."""
    facts = {"kind": "mailbox", "name": part.plan.title, "test": part.plan.test}
    for rate in (100.0, 200.0, 400.0):
        read, write = (sample.direction(rate * speed / 2, 32 << 10, rate * 2e4 / speed) for _ in range(2))
        load = {"kind": "mailbox", "rate": rate, "arrivals": "poisson"}
        batches = {"seconds": 1.0, "total": {"iops": [rate * speed * by for by in WOBBLE], "latency_mean_ns": []}}
        done = {"per_s": rate * speed / 2, "latency_mean_ns": rate * 2e4 / speed}
        last = sample.point(part.name, facts, load, read, write, batches=batches) | {
            "mailbox": {
                "target_iops": rate, "achieved_iops": rate * speed, "mailboxes_held": rate * speed * 10,
                "databases": [{"name": "db1", "database_read": done, "database_write": done, "log_write": done}],
            },
        }  # fmt: skip
        sample.points[-1] = last
    end = {"rate": rate, "achieved_iops": rate * speed, "mailboxes": rate * speed * 10, "point_id": last["id"]}
    sample.answers.append(
        {
            "workload": facts, "part": part.name, "limits": list(part.plan.limits), "axis": "rate",
            "point_ids": [one["id"] for one in sample.points[-3:]], "max": end, "first_failing": None,
            "limited_by": "log.write.mean<=10ms", "interval_95": [rate * speed * 0.97, rate * speed * 1.04],
            "non_monotone": False,
        }
    )  # fmt: skip


def transactions(sample: Sample, part: Part, speed: float) -> None:
    """A point of transactions whose storage has a device for the data and its own for the log."""
    found = add_point(sample, 8, slow=1 / speed)
    told = found["oltp"]
    told["storage"] = storage(8, told["nopm"], is_shared=False)
    rate = next(figure for figure in workload_of(part.plan).figures if figure.in_answers).name
    wobble = [told["nopm"] * by for by in WOBBLE]
    if part.plan.kind != "tpcc":
        # The same figures, as those of another kind.
        first = workload_of(part.plan).application.first
        told |= {rate: told.pop("nopm"), "by_transaction": {first: told["by_transaction"]["new_order"]}}
        found["workload"] = part.plan.facts(1000)
    found |= {"part": part.name, "roles": roles_of(told["storage"])}
    found["batches"] = {"seconds": 3.0, "total": {rate: wobble}}


def queries(sample: Sample, part: Part, test: str, speed: float) -> None:
    """A test of three queries with its storage."""
    facts = part.plan.facts(1000) | {"test": test}
    read = sample.direction(800 * speed, 256 << 10, 2e6)
    found = sample.point(part.name, facts, {"streams": part.plan.streams or 2}, read, None)
    asked = [
        {"database": "pg", "stream": 0, "query": number, "started_utc_ns": number * 10**9, "seconds": number / speed,
         "rows": 1, "bytes_read": 1 << 20, "temp_bytes": 0, "ended_by": "done", "error": None}
        for number in (1, 6, 9)
    ]  # fmt: skip
    found["roles"] = {"data": {"read": read, "write": None, "total": read}}
    found["dss"] = {
        "scale": 1.0, "test": test, "streams": part.plan.streams or 2, "complete": False, "completion_s": 16 / speed,
        "power": None, "throughput": None, "composite": None, "queries": asked, "refresh": [], "tables": [],
        "storage": storage(8, 1.0, is_shared=False),
    }  # fmt: skip


def point(sample: Sample, part: str, facts: Mapping[str, Any], depth: int, speed: float) -> dict[str, Any]:
    """One point; the more is outstanding the more is held, and the longer it takes."""
    block, share = int(facts["block_bytes"]), float(facts["read_share"])
    iops = speed * 6000 * depth / (depth + 20) * 8192 / (4096 + block / 2)
    sides = {
        "read": sample.direction(iops * share, block, depth / iops * 1e9),
        "write": sample.direction(iops * (1 - share), block, depth / iops * 0.4e9),
    }
    batches: dict[str, Any] = {"seconds": 0.5, "total": {"iops": [iops * by for by in WOBBLE], "latency_mean_ns": []}}
    for name, side in sides.items():
        means = [side["latency_ns"]["mean"] * by for by in WOBBLE] if side else []
        batches[name] = {"iops": [], "latency_mean_ns": means}
    load = {"queue_depth": depth, "workers": 1, "outstanding": depth}
    return sample.point(part, dict(facts), load, sides["read"], sides["write"], batches=batches)
