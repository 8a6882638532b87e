"""What the client spends on a transaction of a brokerage, beside one of tpcc: same server, users and thread, in turn.

    python benches/brokerage.py --folder /data --pairs 3

CPU is that of the load thread over the transactions that ended. A core drives users until it is full, so users for each
core are the users over the share of a core that they took; without pauses they follow from how fast the server answers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

KINDS = {
    "tpcc": ("--warehouses", "4", "--all-warehouses"),
    "brokerage": ("--customers", "500", "--days", "5", "--news-bytes", "10000"),
}
MODES = ("procedures", "statements")


def run(folder: Path, kind: str, *arguments: str) -> dict[str, Any]:
    """One command on the kind's own database."""
    command = [sys.executable, "-m", "assay", "oltp", kind, f"embedded:{folder / kind}?set.synchronous_commit=off"]
    options = ["--no-report", "--json", "--quiet", "-o", str(folder / "runs")]
    done = subprocess.run([*command, *arguments, *options], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured(folder: Path, kind: str, mode: str, users: int, seconds: int) -> dict[str, float]:
    """Figures of one point."""
    given = ("--users", str(users), "--threads", "1", f"--{mode}", "--warmup", "2s", "--duration", f"{seconds}s")
    (point,) = run(folder, kind, "run", *given)["points"]
    told, share = point["oltp"], point["generator"]["fullest_worker_share"]
    return {
        "per_s": told["tpm_client"] / 60,
        "cpu_us": told["client_cpu_ns_per_transaction"] / 1e3,
        "users_per_core": users / share,
    }


def main() -> None:
    """Run all and keep what they gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=None, help="where the databases go (a temporary folder)")
    parser.add_argument("--users", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    lines = [
        "| transactions | per second | client CPU us | ratio to tpcc, pair by pair | users for each core |",
        "|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        for kind, size in KINDS.items():
            run(folder, kind, "load", *size[: 6 if kind == "brokerage" else 2])
        for mode in MODES:
            found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
            for _ in range(given.pairs):
                for kind in KINDS:
                    found[kind].append(measured(folder, kind, mode, given.users, given.seconds))
            pairs = zip(found["brokerage"], found["tpcc"], strict=True)
            ratios = [one["cpu_us"] / other["cpu_us"] for one, other in pairs]
            for kind, runs in found.items():
                per_s, cpu_us, users = (
                    statistics.median(one[key] for one in runs) for key in ("per_s", "cpu_us", "users_per_core")
                )
                beside = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
                shown = beside if kind == "brokerage" else "1"
                lines.append(f"| {kind}, {mode} | {per_s:,.0f} | {cpu_us:.1f} | {shown} | {users:,.0f} |")
                print(lines[-1], flush=True)
    head = f"# Client of the brokerage beside tpcc\n\n{os.cpu_count()} CPUs, {given.users} users on one thread;"
    head += " commits do not wait for the disk\n\n"
    (Path(__file__).parent / "results/brokerage.md").write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
