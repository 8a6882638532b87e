"""Situations that are made on purpose, and what `assay diagnose` calls them: hits, misses and false alarms.

    python benches/diagnosis.py --folder /data [--only lock-wait,...] [--models]

Each situation has one cause that is known, because it was made: on models in virtual time, on this machine with a real
PostgreSQL and real I/O, in network namespaces, and in files as other tools write them where the cause cannot be made
here. Healthy ones have none: an hour in which nothing is wrong counts as quiet. A hit is a cause among the first two.
The table goes to benches/results/diagnosis.json. Those on this machine need root (control
groups, network namespaces) and PostgreSQL's pgbench and pg_basebackup; one that cannot be made here is said and left
out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from situations import files, machine, signs  # noqa: E402
from situations.making import OLTP, SHORT, CannotBeMade, Situation, model  # noqa: E402

from assay.insight.diagnosis.diagnose import diagnose  # noqa: E402
from assay.insight.diagnosis.inputs import sources_of  # noqa: E402
from assay.telemetry.importers.importer import Options  # noqa: E402

RESULTS = ROOT / "benches" / "results" / "diagnosis.json"


HOSTILE = (
    Situation(
        "initiator sends one command at a time",
        "model",
        "throttled-queue",
        model("ps6100xv?volumes=4&initiator_limit=1", *OLTP, "--queue-depth", "8", *SHORT),
    ),
    Situation(
        "initiator sends two commands at a time, 10 GbE",
        "model",
        "throttled-queue",
        model("ps6110x?volumes=4&initiator_limit=2", *OLTP, "--queue-depth", "16", *SHORT),
    ),
    Situation(
        "one path at a twentieth of its rate",
        "model",
        "slow-path",
        model("ps6100xv?volumes=4&slow_path=0.05", *OLTP, "--queue-depth", "8", *SHORT),
    ),
    Situation(
        "one of two paths at a twentieth of its rate",
        "model",
        "slow-path",
        model("ps3800xv?volumes=4&paths=2&slow_path=0.05", *OLTP, "--queue-depth", "8", *SHORT),
    ),
    Situation(
        "one packet in a hundred lost on a path",
        "model",
        "network-loss",
        model("ps6100xv?volumes=4&packet_loss=0.01", *OLTP, "--queue-depth", "8", *SHORT),
    ),
    Situation(
        "cache of 8 MB before RAID 6",
        "model",
        "full-cache",
        model("ps6100xv?volumes=4&cache=8MB&raid=6", "--block", "8K", "--read", "30", "--queue-depth", "8", *SHORT),
    ),
    Situation(
        "RAID 10 without one disk",
        "model",
        "degraded-raid",
        model("ps6100xv?raid=10&volumes=4&state=degraded", *OLTP, "--queue-depth", "8", *SHORT),
    ),
    Situation(
        "RAID 50 that rebuilds",
        "model",
        "degraded-raid",
        model("ps6100xv?raid=50&volumes=4&state=rebuilding", *OLTP, "--queue-depth", "8", *SHORT),
    ),
    Situation(
        "too many readers for SATA disks",
        "model",
        "slow-disk",
        model("sata-jbod?volumes=4", "--block", "8K", "--read", "100", "--queue-depth", "32", *SHORT),
    ),
    Situation(
        "too many readers for RAID 50",
        "model",
        "slow-disk",
        model("ps6100xv?raid=50&volumes=12", "--block", "8K", "--read", "100", "--queue-depth", "16", *SHORT),
    ),
    Situation(
        "log on the data disk",
        "model",
        "log-flush",
        model("sata-jbod?volumes=data:2,log:1", "--preset", "database", *SHORT),
    ),
    Situation(
        "log without a write cache",
        "model",
        "log-flush",
        model("ps6100xv?raid=10&volumes=data:4,log:1&write_back=no", "--preset", "database", *SHORT),
    ),
    Situation(
        "256 KiB reads in pieces of 16 KiB",
        "model",
        "split-io",
        model("ps6110x?volumes=4&max_transfer=16K", "--block", "256K", "--read", "100", "--queue-depth", "4", *SHORT),
    ),
    Situation(
        "checkpoints in bursts without a write cache",
        "model",
        "checkpoint-storm",
        model(
            "ps6100xv?raid=10&volumes=4&write_back=no",
            "--preset",
            "database",
            "--burst-interval",
            "20s",
            "--burst-bytes",
            "64MB",
            "--burst-spread",
            "20",
            "--duration",
            "80s",
        ),
    ),
    Situation("programs that compute beside a database", "machine", "host-cpu", machine.cpu_hog),
    Situation("lock on one row", "machine", "lock-wait", machine.one_row),
    Situation("buffer cache of 8 MB", "machine", "cache-too-small", machine.tiny_cache),
    Situation("checkpoints every few seconds", "machine", "checkpoint-storm", machine.storm),
    Situation("backup while queries run", "machine", "backup-or-vacuum", machine.backup),
    Situation("many sessions append to one table", "machine", "file-growth", machine.growing_file),
    Situation("log on a volume of 100 writes a second", "machine", "log-flush", machine.slow_log),
    Situation("program larger than its memory", "machine", "memory-pressure", machine.memory_short),
    Situation("another program on the device", "machine", "noisy-neighbour", machine.neighbour),
    Situation("limit that sets in halfway", "machine", "burst-decline", machine.credits_gone),
    Situation("1 MiB reads on a device that takes 64 KiB", "machine", "split-io", machine.small_pieces),
    Situation("one read at a time", "machine", "throttled-queue", machine.one_at_a_time),
    Situation("generator on a target without time", "machine", "generator-saturated", machine.null_target),
    Situation("one segment in a hundred lost", "network namespace", "network-loss", machine.lost_segments),
    Situation("SQL Server waits for latches", "file", "latch-wait", files.latches),
    Situation("SQL Server's log grows in small steps", "file", "file-growth", files.log_grows),
    Situation("SQL Server is short of memory", "file", "memory-pressure", files.short_memory_windows),
    Situation("guest that gets no processors", "file", "guest-cpu", files.starved_guest),
    Situation("queue of a hypervisor's adapter is full", "file", "throttled-queue", files.full_adapter),
    Situation("virtual disk that is late above devices that are well", "file", "slow-disk", files.late_guest_disk),
    Situation("NFS mount that answers late", "file", "slow-disk", files.late_mount),
    *signs.BAD,
)

HEALTHY = (
    Situation(
        "RAID 10 at a third of its load",
        "model",
        "none",
        model("ps6100xv?raid=10&volumes=4", *OLTP, "--rate", "1000", *SHORT),
    ),
    Situation(
        "sequential reads",
        "model",
        "none",
        model("ps6110x?raid=50&volumes=4", "--block", "64K", "--read", "100", "--random", "0", "--rate", "500", *SHORT),
    ),
    Situation("mirror of flash", "model", "none", model("nvme-mirror?volumes=2", *OLTP, "--queue-depth", "8", *SHORT)),
    Situation(
        "write-anywhere layout, low rate", "model", "none", model("fas2040?volumes=2", *OLTP, "--rate", "200", *SHORT)
    ),
    Situation(
        "small array, low rate",
        "model",
        "none",
        model("ps3800xv?volumes=4", "--block", "8K", "--read", "50", "--rate", "500", *SHORT),
    ),
    Situation(
        "data and log apart, low rate",
        "model",
        "none",
        model("ps6100xv?raid=10&volumes=data:4,log:1", "--preset", "oltp", "--rate", "500", *SHORT),
    ),
    Situation("host with nothing to do", "machine", "none", machine.quiet_host),
    Situation("database at 60 transactions a second", "machine", "none", machine.calm_database),
    Situation("reads from the cache at 400 a second", "machine", "none", machine.calm_reads),
    Situation("storage at 100 I/Os a second", "machine", "none", machine.calm_storage),
    Situation("SQL Server that is well", "file", "none", files.healthy_windows),
    Situation("hypervisor that is well", "file", "none", files.healthy_hypervisor),
    Situation("virtual disks that are well", "file", "none", files.guest_disks),
    Situation("NFS mount that is well", "file", "none", files.mount),
    *signs.QUIET,
)


def judged(situation: Situation, parent: Path) -> dict[str, Any]:
    """Make a situation and diagnose it."""
    with tempfile.TemporaryDirectory(prefix="assay-situation-", dir=parent) as place:
        began = time.monotonic()
        row: dict[str, Any] = {"situation": situation.name, "where": situation.where, "expected": situation.expected}
        try:
            made = situation.make(Path(place))
        except CannotBeMade as error:
            return row | {"found": None, "hit": None, "why": str(error)}
        read = sources_of([Path(one) for one in made], Options(zone_s=0))
        told = diagnose(read.sources).record()
        causes = [(cause["cause"], cause["confidence"]) for cause in told["causes"]]
        first, state = causes[0][0], told["verdict"]["state"]
        evidence = [one["text"] for one in told["causes"][0]["evidence"]]
        is_quiet = situation.expected == "none"
        return row | {
            "found": first,
            "verdict": state,
            # What is not judged is no alarm, and of two causes the reader looks at both.
            "hit": state in ("judged fine", "not judged")
            if is_quiet
            else situation.expected in [name for name, _ in causes[:2]],
            "causes": causes,
            "evidence": evidence,
            "seconds": round(time.monotonic() - began, 1),
        }


def main() -> int:
    """Make the situations and write the table; 1 if one was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the storage to use")
    parser.add_argument("--only", help="situations with this in their name, or of this cause")
    parser.add_argument(
        "--models", action="store_true", help="only those on models and in files; others stay as they are"
    )
    parser.add_argument("--where", help="only those made there: model, file, machine")
    given = parser.parse_args()
    # Servers and images lie in temporary folders.
    tempfile.tempdir = str(given.folder)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rows = []
    for situation in (*HOSTILE, *HEALTHY):
        if given.only and given.only not in situation.name and given.only != situation.expected:
            continue
        if given.models and situation.where not in ("model", "file"):
            continue
        if given.where and given.where != situation.where:
            continue
        try:
            row = judged(situation, given.folder)
        except Exception as error:
            row = {
                "situation": situation.name,
                "where": situation.where,
                "expected": situation.expected,
                "found": None,
                "hit": False,
                "why": str(error)[-300:],
            }
        rows.append(row)
        mark = {True: "hit ", False: "MISS", None: "-   "}[row["hit"]]
        causes = ", ".join(f"{name} {confidence:.2f}" for name, confidence in row.get("causes", ())) or row.get(
            "why", ""
        )
        print(f"{mark} {row['expected']:20} {row['where']:18} {row['situation']:48} {causes}", flush=True)
    missed = any(row["hit"] is False for row in rows)
    if RESULTS.exists():
        # What was not made this time stays as it was.
        made = {row["situation"] for row in rows}
        names = {one.name for one in (*HOSTILE, *HEALTHY)}
        before = json.loads(RESULTS.read_text())["rows"]
        rows += [row for row in before if row["situation"] not in made and row["situation"] in names]
    known = [row for row in rows if row["hit"] is not None]
    hostile = [row for row in known if row["expected"] != "none"]
    healthy = [row for row in known if row["expected"] == "none"]
    summary = {
        "hits": sum(row["hit"] for row in hostile),
        "made": len(hostile),
        "called_fine": sum(row.get("verdict") == "judged fine" for row in hostile),
        "false_alarms": sum(not row["hit"] for row in healthy),
        "healthy": len(healthy),
        "not_made": len(rows) - len(known),
    }
    print(json.dumps(summary))
    if not given.only:
        RESULTS.write_text(
            json.dumps(
                {"machine": f"{platform.machine()}, {os.cpu_count()} processors", **summary, "rows": rows}, indent=1
            )
            + "\n"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
