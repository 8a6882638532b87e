"""Kinds of input: what is right as it stands, and one of its many wrong neighbours.

Nothing here may write to a target: every verb that could has `--dry-run` as its first word, where no other option can
take it for a value.
"""

from __future__ import annotations

import contextlib
import json
import random
import tomllib
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import tomlkit

from fuzz import folders, mutation, wire
from fuzz.served import damaged, note
from fuzz.trial import Input, of_command

Make = Callable[[random.Random], Input]

CORPUS = Path(__file__).parent / "corpus"
"""Inputs that once went wrong: the name begins with the verb's kind, `plan-...toml`."""

URLS = (
    "postgresql://me:pw@h:5432/db?sslmode=require", "mariadb://me@h/db?socket=/run/x.sock", "mssql://me:pw@h/db",
    "embedded:d?wal=w&set.fsync=off", "duckdb:d/t.duckdb?set.threads=2", "postgres://[::1]:5432/db", "mysql:///db",
)  # fmt: skip
TARGETS = (
    "f",
    "file:f",
    "null:?latency=1ms&servers=3&stall=1s&stall_at=2s&stall_every=9s",
    "faulty:f.dat?torn=1e-5&seed=7&long_io_delay=2s",
    "model:fas2040?raid=10&members=2&volumes=3&volume_size=10GB",
    "model:black-box",
    "/dev/none",
    ".",
    *URLS,
)
OPTIONS = {
    "profile": "--block 8K --read 70 --random 100 --queue-depth 1,2 --rate 100 --workers 2 --skew zipf:0.9"
    " --region 0-50 --align 4096 --sync none --warmup 1s --duration 2s --min-time 1s --max-time 2s --rest 1s"
    " --limit read.p99<=2ms --search queue-depth --start 1 --end 9 --repeats 1 --seed 1 --backend auto --size 16M"
    " --volume log=g --preset oltp --export csv --io-timeout 9s --cache-size 1G",
    "verify": "--duration 2s --size 16M --seed 1 --long-io 1s --io-timeout 9s --random-users 2 --cycles 1 --pool 16M"
    " --volume log=g --preset default",
    "oltp tpcc": "--warehouses 1 --users 2 --connections 2 --threads 1 --think-scale 0.5 --home all --rate 10"
    " --arrivals poisson --mix new_order=45 --draw deck --items uniform --retries 1 --reconnect 9s --seed 1"
    " --duration 9s --warmup 1s --rest 1s --limit response.p90<2s --search users --start 1 --end 9 --repeats 1"
    " --isolation default --preset strict --load-connections 1",
    "dss tpch": "--scale 0.1 --test both --streams 2 --queries 1,6,9-12 --query-timeout 9s --cache cold"
    " --columnstore lineitem --partition lineitem:l_shipdate:4 --layout /a,/b --seed 1 --limit completion<10m"
    " --load-connections 1 --reconnect 9s --preset tpch",
    "study run": "--levels raid=10,50 --set members=2 --size 16M --repeats 1 --seed 1",
    "assess": "--size 16M --seed 1 --time 2m --database-time 1m --io-timeout 9s",
}  # fmt: skip
SQLIO = "-kR -s1 -frandom -o8 -b8 -LS -BH -t2 -i4 -m4 -S1000 -v1 -dD1,2 -Fparam.txt f.dat"
PARAM = "c:\\data\\f.dat 4 0x0 100\n# a comment\n/srv/g.dat 2 0x3 10\n"


def kinds(runs: dict[str, dict[str, bytes]], store: dict[str, bytes]) -> dict[str, tuple[int, Make]]:
    """All kinds with how often each is tried.

    Parameters
    ----------
    runs
        Files of a run folder of each kind.
    store
        Files of the store of a served array; none where nothing can be served.
    """
    served: dict[str, tuple[int, Make]] = {"store": (1, damaged(store))} if store else {}
    tpcc = [{"name": "mine", "users": 4, "warehouses": 1, "timing": {"duration_s": 9.0}, "limits": ["response.p90<2s"]}]
    tpch = [{"name": "mine", "scale": 0.1, "partition": "orders:o_orderdate:8", "query_timeout_s": 9.0, "streams": 2}]
    studies = list(tables("insight.studies.presets"))
    models = list(tables("targets.arrays.model.catalogue"))
    server = "postgresql://me@h/db"
    return {
        "plan": (6, table([*tables("workloads.io.presets")], "profile", "null:", "--plan")),
        "integrity plan": (4, table([*tables("workloads.integrity.presets")], "verify", "f.dat", "--plan")),
        "plan of transactions": (4, table(tpcc, "oltp tpcc", server, "--plan")),
        "plan of queries": (4, table(tpch, "dss tpch", server, "--plan")),
        "study": (6, study(studies)), "model file": (4, model(models)), "question to a model": (2, question),
        "job": (4, job), "SQLIO": (3, sqlio),
        "sqliosim.cfg": (3, sqliosim), "target": (4, target), "options": (6, options),
        "run folder": (8, folder(runs)), "need": (2, need), "import": (3, foreign), "kept": (1, kept),
        "note": (1, note), **served, "wire to an agent": (2, wire.to_agent), "wire from an agent": (2, wire.from_agent),
        "question to the page": (1, wire.question),
    }  # fmt: skip


def tables(folder: str) -> Iterator[dict[str, Any]]:
    """All TOML files of a folder of the package."""
    for entry in sorted(resources.files("assay").joinpath(*folder.split(".")).iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            yield tomllib.loads(entry.read_text(encoding="utf-8"))


def written(dice: random.Random, changed: Any) -> tuple[str, bytes]:
    """A tree as JSON or as TOML, where TOML can hold it; sometimes with bytes changed."""
    name, content = "x.json", json.dumps(changed).encode()
    if dice.random() < 0.5:
        with contextlib.suppress(Exception):  # TOML has no null, and not every number: then it is JSON
            name, content = "x.toml", tomlkit.dumps(changed).encode()
    return (name, mutation.data(dice, content)) if dice.random() < 0.2 else (name, content)


def table(seeds: list[dict[str, Any]], verb: str, target: str, option: str) -> Make:
    """A file of a plan, given to a verb."""

    def make(dice: random.Random) -> Input:
        name, content = written(dice, mutation.tree(dice, dice.choice(seeds)))
        json_too = ["--json"] if dice.random() < 0.5 else []
        return of_command(option, [*verb.split(), "--dry-run", target, option, name, *json_too], {name: content})

    return make


JOBS = (
    "; of fio\n[global]\nioengine=libaio\ndirect=1\nruntime=2s\ntime_based\nbs=8k\nsize=16m\n\n[data]\nrw=randrw\n"
    "rwmixread=70\niodepth=16\nnumjobs=2\nfilename=f.dat:g.dat\nrandom_distribution=zipf:1.1\nrate_iops=100\n\n[log]\n"
    "stonewall\nrw=write\nbssplit=4k/60:8k/\nfdatasync=1\nfilename=f.dat\nramp_time=1\n[scan]\nwait_for=log\nrw=read\n"
    "bsrange=4k-64k\nfilename=g.dat\n",
    (Path(__file__).parents[1] / "workloads" / "iometer" / "oltp-1.1.0.icf").read_text(),
)
"""Files of other load generators that are plans."""


def job(dice: random.Random) -> Input:
    """A file of another load generator, as a plan: on a target, or on the files that it names."""
    content = mutation.text(dice, dice.choice(JOBS)).encode("utf-8", "surrogatepass")
    target = dice.choice((["null:"], []))
    json_too = ["--json"] if dice.random() < 0.5 else []
    return of_command("job", ["profile", "--dry-run", *target, "--plan", "./x.fio", *json_too], {"x.fio": content})


def study(seeds: list[dict[str, Any]]) -> Make:
    """A file of a study, shown or planned."""

    def make(dice: random.Random) -> Input:
        name, content = written(dice, mutation.tree(dice, dice.choice(seeds)))
        verb = dice.choice((["study", "show"], ["study", "run", "--dry-run"]))
        return of_command("study", [*verb, f"./{name}", *(["--json"] if dice.random() < 0.5 else [])], {name: content})

    return make


def model(seeds: list[dict[str, Any]]) -> Make:
    """A model file, checked, shown or asked."""

    def make(dice: random.Random) -> Input:
        content = tomlkit.dumps(dice.choice(seeds)).encode()
        try:
            content = tomlkit.dumps(mutation.tree(dice, dice.choice(seeds))).encode()
        except Exception:  # not every tree is TOML
            content = mutation.data(dice, content)
        verb = dice.choice(("model check ./m.toml", "model show ./m.toml", "profile --dry-run model:./m.toml"))
        return of_command("model", [*verb.split(), *(["--json"] if dice.random() < 0.5 else [])], {"m.toml": content})

    return make


def question(dice: random.Random) -> Input:
    """A question of reliability or of a model."""
    asked = "--mtbf 1e6h --ber 1e-15 --rebuild 9h --scrub 168h --years 5 --policy 10,dp --trials 100"
    argv = _without(mutation.words(dice, asked.split()), "--output", "--report")
    return of_command("reliability", ["model", "reliability", "fas2040", *argv])


def sqlio(dice: random.Random) -> Input:
    """A classic command line with its parameter file, read only: running it would write."""
    words = mutation.words(dice, SQLIO.split())
    param = mutation.text(dice, PARAM).encode("utf-8", "surrogatepass")

    def call() -> object:
        from assay.workloads.io.sqlio import read_sqlio

        return read_sqlio(words).to_plan_facts()

    return Input(kind="sqlio", argv=tuple(words), files={"param.txt": param}, call=call)


def sqliosim(dice: random.Random) -> Input:
    """A configuration of SQLIOSim."""
    seeds = sorted((Path(__file__).parents[1] / "workloads" / "sqliosim").rglob("*.cfg"))
    content = mutation.data(dice, dice.choice(seeds).read_bytes())
    return of_command("sqliosim", ["verify", "--dry-run", "--config", "s.cfg"], {"s.cfg": content})


def target(dice: random.Random) -> Input:
    """A target as it is mistyped."""
    changed = mutation.as_argument(mutation.text(dice, dice.choice(TARGETS)))
    verb = dice.choice((["profile"], ["verify"], ["assess"], ["oltp", "tpcc"], ["dss", "tpch"], ["study", "run"]))
    study_name = ["raid"] if verb[0] == "study" else []
    return of_command("target", [*verb, "--dry-run", *study_name, changed])


def options(dice: random.Random) -> Input:
    """Options with values of others, of none, or of too much."""
    verb = dice.choice(tuple(OPTIONS))
    words = OPTIONS[verb].split()
    pairs = [words[at : at + 2] for at in range(0, len(words), 2)]
    chosen = [word for pair in dice.sample(pairs, dice.randrange(1, 4)) for word in pair]
    first = {"study run": "raid", "oltp tpcc": URLS[0], "dss tpch": URLS[0], "profile": "null:", "assess": "."}.get(
        verb, "f"
    )
    given = _without(mutation.words(dice, chosen), "--output")
    return of_command("options", [*verb.split(), "--dry-run", first, *given])


def folder(runs: dict[str, dict[str, bytes]]) -> Make:
    """A run folder of any kind that was changed: read by every verb that reads one."""

    def make(dice: random.Random) -> Input:
        files = folders.changed(dice, runs[dice.choice(sorted(runs))])
        verb = dice.choice(folders.READERS).split()
        return of_command("run folder", verb, {f"run/{name}": content for name, content in files.items()})

    return make


def need(dice: random.Random) -> Input:
    """A need that was changed, without what would change the purchase: many are small."""
    name, content = written(dice, mutation.tree(dice, tomllib.loads(folders.NEED)))
    json_too = ["--json"] if dice.random() < 0.5 else []
    words = ["size", f"./{name}", "--no-report", "--no-sensitivity", "-o", "out", *json_too]
    return of_command("need", words, {name: content})


def foreign(dice: random.Random) -> Input:
    """A file of another tool, imported or diagnosed: its bytes changed, or one of its numbers."""
    tests = Path(__file__).parents[1]
    samples = [*(tests / "telemetry" / "imported").iterdir(), *(tests / "workloads" / "imported").glob("*.*")]
    sample = dice.choice(sorted(samples))
    content = mutation.foreign(dice, sample.read_bytes())
    verb = dice.choice((["import", "-o", "out"], ["diagnose"]))
    return of_command(
        "import", [*verb, sample.name, *(["--json"] if dice.random() < 0.5 else [])], {sample.name: content}
    )


def kept(dice: random.Random) -> Input:
    """An input that went wrong once, as it was."""
    kept = sorted(CORPUS.iterdir())
    if not kept:
        return of_command("kept", ["profile", "--dry-run", "null:"])
    file = dice.choice(kept)
    verb = {
        "plan": "profile --dry-run null: --plan",
        "queries": "dss tpch --dry-run postgresql://me@h/db --plan",
        "study": "study run --dry-run",
        "model": "model check",
    }
    words = verb[file.name.partition("-")[0]].split()
    return of_command("kept", [*words, f"./{file.name}"], {file.name: file.read_bytes()})


def _without(words: list[str], *refused: str) -> list[str]:
    """Words without those that begin like options which name places to write to."""
    return [word for word in words if not word.startswith(("-o", *refused))]
