"""Run folders of every kind that no server is needed for, as the verbs write them, and small changes of them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

from assay_command import ANSWERED
from fuzz import mutation

NEED = """
years = 2
currency = "EUR"
[server]
cpu_per_transaction = "5ms"
cores = 4
hit_curve = [["8GiB", "90%"], ["32GiB", "95%"]]
hit = "95%"
[[database]]
name = "orders"
size = "100GB"
growth = "30%"
iops = 500
[[mail]]
mailboxes = 100
size = "100MB"
iops_per_mailbox = 0.1
[[candidate]]
array = "nvme-mirror"
cost = 30000
"""
IMPORTED = Path(__file__).parents[1] / "workloads" / "imported" / "fio-json-plus.json"
RECORDED = Path(__file__).parents[1] / "telemetry" / "imported" / "iostat.json"
SHORT = "--warmup 0s --duration 0.3s"
VERBS = {
    "profile": f"profile null:?latency=1ms --queue-depth 1,2 {SHORT}",
    "model": "profile model:nvme-mirror --queue-depth 1,2 --warmup 0s --duration 1s",
    "size": "size need.toml",
    "mailbox": "mailbox model:nvme-mirror --mailboxes 10 --duration 5s",
    "verify": "verify f.dat --size 8M --duration 0.5s",
    "dss": "dss tpch duckdb:d.duckdb --scale 0.01 --queries 1,6",
    "study": "study run raid-policy --levels raid=50,10",
    "reliability": "model reliability ps6100xv --mtbf 1e6h --trials 1000",
    "import": f"import {IMPORTED}",
    "recording": f"import {RECORDED}",
}
"""Kinds of folders and the command lines that make them."""

READERS = (
    "report run --no-pdf", "report run --no-html --no-pdf --export csv --export fio-json --export openmetrics",
    "report --paper run --no-html --no-pdf --short --anonymise", "compare run run", "compare run run --json",
    "diagnose run", "check run", "size --from run --rate 500 --short --no-report -o out", "record show run",
    "profile --dry-run --resume run", "verify --dry-run --resume run", "study run --dry-run --resume run",
    "dss tpch --dry-run --resume run", "mailbox --dry-run --resume run",
)  # fmt: skip
"""Command lines that read a run folder."""


def made(kind: str, scratch: Path) -> dict[str, bytes]:
    """Files of a run folder of a kind, made in a folder of its own."""
    scratch.mkdir(parents=True)
    (scratch / "need.toml").write_text(NEED)
    words = VERBS[kind].split()
    report = [] if words[0] == "import" else ["--no-report"]
    asked = [sys.executable, "-m", "assay", *words, *report, "-o", "results"]
    done = subprocess.run(asked, cwd=scratch, capture_output=True, text=True, check=False)
    assert done.returncode in ANSWERED, done.stderr
    (folder,) = (scratch / "results").iterdir()
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def changed(dice: random.Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """The files with one of them changed: mostly a few values of its JSON, sometimes its bytes."""
    names = [name for name in sorted(files) if name.endswith((".json", ".jsonl"))]
    name = dice.choice(names if dice.random() < 0.9 else sorted(files))
    content = files[name]
    if name.endswith(".json") and dice.random() < 0.9:
        content = json.dumps(mutation.tree(dice, json.loads(content))).encode()
    elif name.endswith(".jsonl") and dice.random() < 0.9:
        lines = [json.loads(line) for line in content.splitlines()]
        content = b"".join(json.dumps(mutation.tree(dice, line)).encode() + b"\n" for line in lines)
    else:
        content = mutation.data(dice, content)
    return {**files, name: content}
