"""Back-test of `assay size`: random demands that the search does not see as they are.

    python benches/sizing.py [--needs 200] [--seed 1] [--anew] [--workers 2]

Needs whose seeds stand in the results are not sized again, unless `--anew`: what was cut short goes on. The results are
written after every need.

Each demand is hidden: the need that is sized states its rate with an error of 3 % (one standard deviation), as a
measured percentile has, and a head-room of 5 %. No derating is asked for, because a model has no database on it. One
array of the catalogue under one RAID policy is then sized. The chosen size and the next smaller one are asked in
virtual time: other seeds, windows of 40,000 I/Os, healthy, degraded and rebuilding. Two things are asked of them: the
hidden demand itself, and the hidden demand with the margins of the need, which is what the search promises.

Needs of today's classes are cloud volumes, and drives of flash in software RAID; their bars are 95 and 90 %.

The bars: the chosen size holds it in at least 90 % of the needs, the next smaller one does not
in at least 80 %. A need whose smallest size is chosen has no next smaller one and is left out of the second share.
The same needs are sized again with the head-room and derating that are shipped. How often the next smaller size then
holds the bare demand is what these margins cost. What arithmetic refused for its disks is simulated, too: how often it
was wrong says what the bound is worth.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from assay.insight.sizing.candidates import ladders
from assay.insight.sizing.demand import PeakDemand, demand_of
from assay.insight.sizing.group_ladder import disk_share
from assay.insight.sizing.judge import Judge
from assay.insight.sizing.ladder import Ladder, LadderStep
from assay.insight.sizing.need import Need, need_of
from assay.insight.sizing.search import least

RESULTS = Path(__file__).parent / "results" / "sizing.json"
ARRAYS = (("ps6100xv", ("10", "50", "6")), ("ps6110x", ("10", "50", "6")), ("ps3800xv", ("10", "50")))
ERROR_SHARE = 0.03
HEAD_ROOM = "5%"
MEMBERS_MOST = 10
SEED_OF_TEST = 4711
HOLDS_BAR, FAILS_BAR = 0.90, 0.80
HOLDS_BAR_TODAY, FAILS_BAR_TODAY = 0.95, 0.90
CLOUDS = (
    "aws-gp2", "aws-gp3", "aws-io1", "aws-io2", "azure-premium", "azure-premium-v2", "azure-ultra",
    "gcp-hyperdisk-balanced", "gcp-hyperdisk-extreme", "gcp-pd-balanced", "gcp-pd-ssd",
)  # fmt: skip
DRIVES = ("wd-dc-960", "pe8110-960", "pm9a3-960", "micron-7450-pro-960", "micron-7450-max-800", "d7-p5520-1920")
FLASH_LIMITS = {"read": "1ms", "write": "1ms", "log": "1ms"}
TABLES = ("needs", "needs_with_shipped_margins", "needs_of_clouds", "needs_of_drives")
"""Tables of the results; those of today's classes have half as many needs each."""
SHIPPED = "needs_with_shipped_margins"
HALVES = ("needs_of_clouds", "needs_of_drives")
SUMMARIES = {"needs": "summary", SHIPPED: "with_shipped_margins", "needs_of_clouds": "clouds",
             "needs_of_drives": "drives"}  # fmt: skip
SIMULATED = ("IOPS", "throughput", "credits", "port rate")
"""Kinds of reasons of arithmetic that the test simulates instead."""


def hidden(rng: random.Random) -> tuple[Need, str, str]:
    """A demand, and the array and policy that are sized for it."""
    array, policies = rng.choice(ARRAYS)
    raid = rng.choice(policies)
    database: dict[str, Any] = {
        "block": rng.choice(("8KiB", "8KiB", "16KiB", "32KiB", "64KiB")),
        "read": f"{rng.uniform(50, 95):.0f}%",
        "log": rng.choice(("0%", "5%", "10%", "20%")),
        "size": "100GB",
        "iops": 1000.0,
    }
    if rng.random() < 0.25:
        database["scan"] = f"{rng.uniform(20, 150):.0f}MB/s"
    need = _need(database, array, raid)
    # So much that some members are needed: by the load, by the bytes, or by both.
    ladder = ladders(need)[0][0]
    demand = demand_of(need, 0)
    share = max(disk_share(pool, phase, demand) for pool in ladder.pools(LadderStep(1, 0), demand)
                for phase in demand.phases)  # fmt: skip
    members = rng.uniform(1.2, 4.2)
    by_bytes = rng.random()
    usable = sum(pool.usable_bytes for pool in ladder.pools(LadderStep(1, 0), demand))
    load_members = members if by_bytes < 0.7 else members * rng.uniform(0.2, 0.9)
    byte_members = members if by_bytes > 0.5 else members * rng.uniform(0.1, 0.9)
    database["iops"] = 1000.0 * load_members * 0.5 / share
    database["size"] = f"{int(usable * 0.6 * byte_members)}B"
    return _need(database, array, raid), array, raid


def hidden_cloud(rng: random.Random) -> tuple[Need, str, str]:
    """A demand, and the cloud volume that is sized for it."""
    array = rng.choice(CLOUDS)
    iops = math.exp(rng.uniform(math.log(500), math.log(20_000)))
    database = _database(rng) | {"iops": iops, "size": f"{int(math.exp(rng.uniform(math.log(50), math.log(4000))))}GB"}
    return _needed(database, {"array": array}), array, ""


def hidden_drives(rng: random.Random) -> tuple[Need, str, str]:
    """A demand, and the drive and policy of software RAID that are sized for it: some drives by load, bytes or both."""
    drive, raid = rng.choice(DRIVES), rng.choice(("10", "5", "6"))
    shell = "nvme-md" if raid == "10" else "nvme-md-parity"
    database = _database(rng) | {"block": "32KiB", "size": "100GB", "iops": 1000.0}
    need = _needed(database, {"array": shell, "drive": drive, "raid": [raid]}, limits=FLASH_LIMITS)
    ladder, demand = ladders(need)[0][0], demand_of(need, 0)
    step = rng.choice([one for one in ladder.steps if 3 <= one.disks <= 8])
    (pool,) = ladder.pools(step, demand)
    by_bytes = rng.random() < 0.4
    # Flash does some fifth of its sequential rate at random.
    database["iops"] = 1000.0 * rng.uniform(0.03, 0.12) / ladder.busy_share(step, demand)
    room = pool.usable_bytes * need.rules.fill
    database["size"] = f"{int(room * (rng.uniform(0.8, 1.0) if by_bytes else rng.uniform(0.1, 0.6)))}B"
    return _needed(database, {"array": shell, "drive": drive, "raid": [raid]}, limits=FLASH_LIMITS), drive, raid


def _database(rng: random.Random) -> dict[str, Any]:
    return {
        "block": rng.choice(("8KiB", "8KiB", "16KiB", "32KiB", "64KiB")),
        "read": f"{rng.uniform(50, 95):.0f}%",
        "log": rng.choice(("0%", "5%", "10%", "20%")),
    }


def _needed(database: dict[str, Any], offer: dict[str, Any], **others: Any) -> Need:
    table: dict[str, Any] = {
        "years": 0,
        "head_room": HEAD_ROOM,
        "rules": {"derating_transactions": "0%", "derating_scans": "0%"},
        "database": [dict(database)],
        "candidate": [offer],
    }
    limits = {"rebuild": "1000h", **others.pop("limits", {})}
    return need_of({**table, "limits": limits, **others}, "bench")


def _need(database: dict[str, Any], array: str, raid: str) -> Need:
    return need_of(
        {
            "years": 0,
            "head_room": HEAD_ROOM,
            "limits": {"rebuild": "1000h"},
            "rules": {"derating_transactions": "0%", "derating_scans": "0%", "raid_by_role": False},
            "database": [dict(database)],
            "candidate": [{"array": array, "raid": [raid], "members": [1, MEMBERS_MOST]}],
        },
        "bench",
    )


def told(need: Need, rng: random.Random, *, shipped: bool) -> Need:
    """The need as a measurement would state it; with the head-room and derating that are shipped, or without."""
    error = math.exp(rng.gauss(0, ERROR_SHARE))
    database = need.database[0]
    changed = {"iops": database.ios * error}
    if database.scan is not None:
        changed["scan"] = database.scan * error
    stated = need.model_copy(update={"database": (database.model_copy(update=changed),)})
    return with_margins(stated) if shipped else stated


def with_margins(need: Need) -> Need:
    """A need with the head-room and derating that are shipped."""
    derated = need.rules.model_copy(update={"derating_transactions": 0.22, "derating_scans": 0.14})
    return need.model_copy(update={"head_room": 0.2, "rules": derated})


def holds(need: Need, ladder: Ladder, step: LadderStep, judge: Judge, *, head_room: float) -> list[str]:
    """Why a size does not hold a demand, with so much head-room while it is healthy; nothing where it does."""
    demand = demand_of(need, 0)
    loaded = demand.times(1 + head_room)
    static = [one for one in ladder.static_reasons(need, step, demand, loaded) if one.kind not in SIMULATED]
    if static:
        return [f"{reason.kind}: {reason.text}" for reason in static]
    for state in ladder.states:
        asked = loaded if state == "healthy" else demand
        found = judge.state_reasons(need, ladder, step, asked, state, seed=SEED_OF_TEST)
        if found:
            return [f"{reason.kind}: {reason.text}" for reason in found]
    return []


def one(seed: int, *, table: str = "needs") -> dict[str, Any]:
    """Size one need, and try what was chosen."""
    rng, shipped = random.Random(seed), table == SHIPPED
    draw = {"needs_of_clouds": hidden_cloud, "needs_of_drives": hidden_drives}.get(table, hidden)
    need, array, raid = draw(rng)
    seen = told(need, rng, shipped=shipped)
    began = time.thread_time()
    judge = Judge()
    ladder = next((one for one in ladders(seen)[0] if not getattr(one, "log_raid", None)), None)
    if ladder is None:  # the provider has no volume so large
        return {"seed": seed, "array": array, "raid": raid, "members": None}
    found = least(seen, ladder, demand_of(seen, 0), judge)
    spent_s = time.thread_time() - began
    demand = demand_of(need, 0)
    record: dict[str, Any] = {
        "seed": seed, "array": array, "raid": raid, "iops": round(demand.iops), "bytes": demand.total_bytes,
        "stated_iops": round(demand_of(seen, 0).iops), "members": found.step.members if found.step else None,
        "disks": found.step.disks if found.step else None,
        "simulations": judge.simulations, "cpu_s": round(spent_s, 2),
    }  # fmt: skip
    if found.step is None:
        return record
    after = Judge(window_ios=40_000)
    promised = with_margins(need) if shipped else need
    place = ladder.steps.index(found.step)
    sizes = {"": found.step} | ({"smaller_": ladder.steps[place - 1]} if place else {})
    for of, step in sizes.items():
        record[f"{of}fails"] = holds(need, ladder, step, after, head_room=0)
        record[f"{of}fails_with_margins"] = holds(promised, ladder, step, after, head_room=promised.head_room)
    record["bound"] = bound(need, ladder, demand, after)
    return record


def bound(need: Need, ladder: Ladder, demand: PeakDemand, judge: Judge) -> str:
    """Whether arithmetic refused for its disks what a simulation holds: asked of the largest size that it refuses.

    The demand is raised where it refuses none.
    """
    for times in (1.0, 2.0, 4.0):
        raised = demand.times(times)
        for step in reversed(ladder.steps[:MEMBERS_MOST]):
            kinds = {reason.kind for reason in ladder.static_reasons(need, step, raised, raised)}
            if kinds == {"IOPS"}:
                held = not judge.state_reasons(need, ladder, step, raised, seed=SEED_OF_TEST)
                return "wrong" if held else "right"
    return "not asked"


def main() -> None:
    """Run all needs, print the shares and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--needs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--anew", action="store_true", help="size every need again")
    parser.add_argument("--table", action="append", choices=TABLES, help="only this table; may be repeated")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    asked = parser.parse_args()
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() and not asked.anew else {}
    rows = {name: list(kept.get(name, ())) for name in TABLES}
    for name in asked.table or TABLES:
        count = asked.needs // 2 if name in HALVES else asked.needs
        for row in sized_needs(rows[name], asked.seed, count, table=name, workers=asked.workers):
            rows[name].append(row)
            print(json.dumps(row), flush=True)
            keep(rows)
    table = keep(rows)
    print(json.dumps({name: table[name] for name in SUMMARIES.values()}, indent=1))


def keep(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Write the tables with their shares; a cut leaves the results of before."""
    ordered = {name: sorted(own, key=lambda row: row["seed"]) for name, own in rows.items()}
    table: dict[str, Any] = {SUMMARIES[name]: summary(own) for name, own in ordered.items() if own}
    table |= ordered
    written = RESULTS.with_suffix(".part")
    written.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    written.replace(RESULTS)
    return table


def sized_needs(
    known: Sequence[Mapping[str, Any]], seed: int, count: int, *, table: str, workers: int
) -> Iterator[dict[str, Any]]:
    """Rows that are missing until so many needs are held by some size; one that none holds says nothing of a choice."""
    rows: list[Mapping[str, Any]] = list(known)
    with ThreadPoolExecutor(workers) as pool:
        while (missing := count - sum(row["members"] is not None for row in rows)) > 0:
            sized = {row["seed"] for row in rows}
            seeds = itertools.islice((one for one in itertools.count(seed) if one not in sized), missing)
            for row in pool.map(partial(one, table=table), seeds):
                rows.append(row)
                yield row


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Shares of the needs, beside the bars."""
    sized = [row for row in rows if row["members"] is not None]
    tried = [row for row in sized if "smaller_fails" in row]
    checked = [row for row in sized if row["bound"] != "not asked"]
    bars = {"holds_share": HOLDS_BAR, "smaller_fails_share": FAILS_BAR}
    if any(row["array"] in (*CLOUDS, *DRIVES) for row in rows):
        bars = {"holds_share": HOLDS_BAR_TODAY, "smaller_fails_share": FAILS_BAR_TODAY}
    return {
        "needs": len(sized),
        "too_large_for_any_size": len(rows) - len(sized),
        "with_a_smaller_size": len(tried),
        "demand_itself": _shares(sized, tried, "fails"),
        "demand_with_margins": _shares(sized, tried, "fails_with_margins"),
        "bars": bars,
        "bound_checked": len(checked),
        "bound_wrong": sum(row["bound"] == "wrong" for row in checked),
        "simulations_mean": sum(row["simulations"] for row in sized) / max(len(sized), 1),
        "cpu_s_mean": sum(row["cpu_s"] for row in sized) / max(len(sized), 1),
    }


def _shares(sized: Sequence[Mapping[str, Any]], tried: Sequence[Mapping[str, Any]], key: str) -> dict[str, Any] | None:
    """How many chosen sizes hold what is asked of them, and how many of the next smaller ones do not.

    None where that was not asked of all.
    """
    if not all(key in row for row in sized) or not sized:
        return None
    return {
        "holds_share": sum(not row[key] for row in sized) / len(sized),
        "smaller_fails_share": sum(bool(row[f"smaller_{key}"]) for row in tried) / len(tried) if tried else None,
    }


if __name__ == "__main__":
    main()
