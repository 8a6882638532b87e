"""Whatever is wrong with the input or the environment, it is said in one line, and not called a fault of Assay."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assay_command import Bench, Outcome, command

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
SHORT = ("--size", "8M", "--block", "8K", "--queue-depth", "1", "--warmup", "0s", "--duration", "0.3s", "--no-report")


def said(outcome: Outcome, code: int) -> str:
    """The one line of a refusal."""
    assert outcome.code == code, outcome.stderr
    assert "fault of Assay" not in outcome.stderr
    assert len(outcome.complaint) <= 1020
    return outcome.complaint


@pytest.mark.parametrize("verb", ["profile", "verify", "assess"])
@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
@pytest.mark.parametrize("target", ["postgresql://u@h/db", "embedded:d"])
def test_a_database_where_storage_is_examined(bench: Bench, verb: str, dry_run: tuple[str, ...], target: str) -> None:
    line = said(bench.assay(verb, *dry_run, target), 2)
    assert "storage" in line
    assert bench.made() == []


@pytest.mark.parametrize("file", sorted(CORPUS.iterdir()), ids=lambda file: file.name)
def test_files_that_once_ended_in_a_fault(bench: Bench, file: Path) -> None:
    asked = {
        "plan": ["profile", "null:", "--plan"],
        "queries": ["dss", "tpch", "--dry-run", "postgresql://me@h/db", "--plan"],
        "study": ["study", "run"],
        "model": ["model", "check"],
    }
    line = said(bench.assay(*asked[file.name.partition("-")[0]], file), 2)
    assert file.name in line or "/corpus/" in line


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("timing.min_s", "1e308"),
        ("timing.min_s", "-1e308"),
        ("timing.warmup_s", "nan"),
        ("timing.rest_s", "inf"),
        ("timing.duration_s", '"1e400"'),
        ("timing.duration_s", '"999999999999999999999d"'),
        ("timing.io_timeout_s", "0"),
        ("seed", "-1"),
        ("seed", "9223372036854775808"),
        ("search.start", "1e300"),
        ("search.repeats", "1000000"),
        ("size", "1e308"),
    ],
)
def test_numbers_without_bound(bench: Bench, key: str, value: str) -> None:
    table, _, name = key.rpartition(".")
    plan = bench.folder / "plan.toml"
    plan.write_text((f"[{table}]\n" if table else "") + f"{name} = {value}\n")
    line = said(bench.assay("profile", "f.dat", "--plan", plan, *SHORT[:2]), 2)
    assert name in line
    assert bench.made() == []


def test_a_message_as_long_as_its_cause_is_cut(bench: Bench) -> None:
    line = said(bench.assay("profile", "null:", "--preset", "x" * 50_000), 2)
    assert "letters left out" in line


def test_a_name_cannot_write_to_the_terminal(bench: Bench) -> None:
    line = said(bench.assay("profile", "none\x1b[2J\nassay: all is well/f", *SHORT), 2)
    assert "\x1b" not in line
    assert "\\x1b[2J\\nassay" in line


@pytest.mark.parametrize("asked", [["profile", "none/f"], ["profile", "null:", "--block", "0"], ["report", "none"]])
def test_debug_adds_the_traceback_and_keeps_the_code(bench: Bench, asked: list[str]) -> None:
    plain, debug = bench.assay(*asked), bench.assay(*asked, "--debug")
    assert debug.code == plain.code == 2
    assert "Traceback" in debug.stderr
    assert debug.stderr.splitlines()[-1] == plain.complaint


OTHER_LOCALES = [pytest.param(name, marks=pytest.mark.slow(reason="C is the hardest")) for name in ("C.UTF-8", "POSIX")]


@pytest.mark.parametrize("locale", ["C", *OTHER_LOCALES])
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_paths_of_any_bytes_work_and_are_shown_escaped(bench: Bench, locale: str) -> None:
    os.mkdir(os.fsencode(bench.folder) + b"/caf\xe9")
    plan = os.fsencode(bench.folder) + b"/plan\xff.toml"
    shown = bench.assay("profile", "null:", *SHORT[2:], "--dry-run", "--json").document["plan"]
    Path(os.fsdecode(plan)).write_text(json.dumps(shown))
    target, results = b"caf\xe9/f\xfe.dat", b"res\xfdults"
    asked = [
        *map(os.fsencode, command("profile")),
        target, b"--plan", plan, b"--size", b"8M", b"-o", results, b"--json",
    ]  # fmt: skip
    done = subprocess.run(
        asked, cwd=bench.folder, capture_output=True, env=os.environ | {"LC_ALL": locale}, check=False
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout.decode())
    assert os.path.getsize(os.fsencode(bench.folder) + b"/" + target) == 8 << 20
    (point,) = document["points"]
    assert point["volumes"][0]["name"] == "f\\xfe.dat"
    (run,) = (Path(os.fsdecode(os.fsencode(bench.folder) + b"/" + results))).iterdir()
    # Every file is text where it is to be text, and is read again.
    for name in ("run.json", "points.jsonl", "report.html"):
        (run / name).read_bytes().decode("utf-8")
    for verb in (["report", str(run)], ["compare", str(run), str(run)], ["profile", "--resume", str(run)]):
        again = bench.assay(*verb)
        assert again.code == 0, again.stderr
        assert "\udcfd" not in again.stdout + again.stderr


WITHOUT_PROC = 'mount -t tmpfs none /proc && exec "$@"'


ON_A_FILE = pytest.mark.slow(reason="a profile of a file needs more of it")


@pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="needs root and unshare")
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(["profile", "null:", *SHORT[2:], "--json"], marks=ON_A_FILE),
        ["profile", "f.dat", *SHORT],
        pytest.param(["verify", "f.dat", "--size", "8M", "--duration", "1s", "--no-report"], marks=ON_A_FILE),
        ["oltp", "tpcc", "embedded:d", "--warehouses", "1"],
    ],
    ids=lambda asked: " ".join(asked[:2]),
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_without_proc_it_works_or_says_so(bench: Bench, asked: list[str]) -> None:
    prefix = ["unshare", "--mount", "sh", "-c", WITHOUT_PROC, "sh"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace may be made here")
    outcome = bench.assay(*asked, prefix=prefix)
    if outcome.code != 0:
        assert outcome.code == 3, outcome.stderr
        (line,) = [line for line in outcome.stderr.splitlines() if line.startswith("assay: ")]
        assert "/proc" in line
        assert "fault of Assay" not in line


ONE = pytest.mark.slow(reason="all three at once are tried")


@pytest.mark.parametrize("closed", [*(pytest.param(one, marks=ONE) for one in ("<&-", ">&-", "2>&-")), "<&- >&- 2>&-"])
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_closed_streams_are_no_fault(bench: Bench, closed: str) -> None:
    profile = ("profile", bench.target, *SHORT, "--read", "0", "-o", bench.results)
    outcome = bench.assay(*profile, prefix=("sh", "-c", f'exec "$@" {closed}', "sh"))

    assert outcome.code == 0, outcome.stderr
    assert len(bench.point_lines()) == 1


@pytest.mark.parametrize("closed", ["<&-", "2>&-"])
def test_no_file_takes_the_place_of_a_closed_stream(closed: str) -> None:
    script = (
        "import os; from assay.base.command_line import open_closed_streams as f; f(); print(os.open('/dev/full', 0))"
    )
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", script]

    done = subprocess.run(shell, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 2
