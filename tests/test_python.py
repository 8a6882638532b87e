"""Assay from Python: a function for each verb does what the command does, prints nothing and leaves signals alone."""

from __future__ import annotations

import inspect
import json
import signal
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.apps.api.calling import _command
from assay.base.errors import AssayError
from assay_command import Bench
from made_traces import poisson_trace

VERBS: dict[str, list[str]] = {
    "assess": ["assess"],
    "check": ["check"],
    "compare": ["compare"],
    "contract_judge": ["contract", "judge"],
    "contract_test": ["contract", "test"],
    "diagnose": ["diagnose"],
    "dss": ["dss", "tpch"],
    "history": ["history"],
    "import_": ["import"],
    "mailbox": ["mailbox"],
    "oltp": ["oltp", "tpcc"],
    "replay": ["replay"],
    "size": ["size"],
    "study": ["study", "run"],
    "verify": ["verify"],
}
OWN = {"actions", "workload", "options"}
PLAN = {"activity": [{"queue_depth": [1, 2]}], "timing": {"warmup_s": 0.1, "duration_s": 0.3}}


def test_only_what_is_for_users_is_listed() -> None:
    assert dir(assay) == sorted([*VERBS, "VerbAnswer", "Run", "load", "profile"])


@pytest.mark.parametrize("name", VERBS)
def test_its_keywords_are_options_of_the_command(name: str) -> None:
    command = _command(VERBS[name])
    flags = {flag for param in command.params for flag in param.opts}
    signature = inspect.signature(getattr(assay, name), eval_str=True)
    keywords = [one.name for one in signature.parameters.values() if one.kind is one.KEYWORD_ONLY]
    assert {f"--{word.rstrip('_').replace('_', '-')}" for word in keywords if word not in OWN} <= flags
    assert inspect.getdoc(getattr(assay, name))


def test_a_contract_from_python_has_its_clauses(tmp_path: Path) -> None:
    contract = tmp_path / "contract.toml"
    contract.write_text('[[latency]]\nname = "reads"\nstatistic = "mean"\nmost = "500ms"\niops = 100\n')
    target, timed = "model:ps6100xv?raid=50&volumes=1", {"warmup": "0.2s", "duration": "2s"}

    run = assay.contract_test(contract, target, output=tmp_path / "own", **timed)

    (reads,) = run.manifest["contract"]["clauses"]
    assert (reads["name"], reads["met"]) == ("reads", True)
    told = assay.history(tmp_path / "own")
    assert (told.verb, told.document["verb"]) == ("history", "history")


def test_a_study_from_python_is_that_of_the_command(
    bench: Bench, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = signal.getsignal(signal.SIGINT)

    run = assay.study("queue-depth", levels=["depth=1,2"], output=tmp_path / "own")

    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr() == ("", "")
    typed = bench.assay("study", "run", "queue-depth", "--levels", "depth=1,2", "--json", "--no-report")
    assert run.manifest["study"]["results"] == typed.document["study"]["results"]
    assert run.manifest["command"][:2] == ["study", "run"]
    assert repr(run).startswith(f"<Run {run.path.name}: done")
    assert "depth 2" in str(run._repr_html_())


def test_an_answer_from_python_is_that_of_the_command(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    target = "model:ps6100xv?raid=50&fill=0.9"

    reply = assay.check(target)

    assert capfd.readouterr() == ("", "")
    assert (
        json.loads(json.dumps(reply.document)) == bench.assay("check", target, "--json", "--fail-on", "never").document
    )
    assert repr(reply).startswith("<assay check: 1 warning;")
    assert "<p" in reply._repr_html_()


def test_two_runs_are_compared(tmp_path: Path) -> None:
    runs = [assay.profile(f"model:ps6100xv?raid={raid}", plan=PLAN, output=tmp_path) for raid in (10, 50)]
    assert runs[0].points["queue_depth"].to_list() == [1, 2]
    reply = assay.compare(*(run.path for run in runs))
    assert "A = " in reply._repr_html_()
    # Nothing was searched for.
    assert "Most within limits" not in reply._repr_html_()


@pytest.mark.parametrize(
    ("verb", "given", "options", "told"),
    [
        ("assess", ["nowhere"], {}, "nowhere: is not a folder"),
        ("study", ["raid-policy"], {"frob": 1}, "there is no option 'frob'"),
        ("mailbox", ["model:fas2040"], {"mailbxes": 3}, "did you mean mailboxes?"),
        ("oltp", ["bench"], {}, "postgresql://USER@HOST/bench"),
    ],
)
def test_a_mistake_is_an_error_that_says_what_the_command_says(
    verb: str, given: list[str], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(AssayError) as caught:
        getattr(assay, verb)(*given, **options)
    assert told in str(caught.value)


@pytest.mark.slow(reason="runs the notebook of the documents, four searches on models")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads((Path(__file__).parents[1] / "docs/evaluation.ipynb").read_text())["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            # A cell's source is one string or a list of lines: the format of notebooks allows both.
            exec("".join(cell["source"]), names)
    assert isinstance(names["run"], assay.Run)


ENDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "assess": ("{folder}", {"only": ["log"], "size": "64M", "budget": "20s"}, "8 KiB sequential write"),
    "verify": ("{folder}/f.dat", {"size": "16M", "duration": "1s"}, "pages"),
    "oltp": (
        "embedded:{folder}/pg",
        {"actions": ["load", "run"], "warehouses": 1, "users": [1], "warmup": "0s", "duration": "2s"},
        "NOPM",
    ),
    "dss": ("duckdb:{folder}/t.duckdb", {"actions": ["load", "run"], "scale": "0.01", "test": "power"}, "22 queries"),
    "mailbox": ("model:fas2040?fill=0.5", {"mailboxes": 200, "duration": "10m"}, "achieved"),
}
"""Each verb with a target, options that make it short, and a word of its verdict."""


def test_a_trace_is_replayed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace = poisson_trace(tmp_path / "orders.trace")
    options = {"speed": 2, "with_": [f"{trace}@1s"], "output": tmp_path / "runs"}
    run = assay.replay(trace, "model:ps6100xv?volume_size=1GB", **options)
    assert capfd.readouterr() == ("", "")
    assert run.points.height == 1
    assert run.manifest["command"][0] == "replay"


@pytest.mark.slow(reason="runs a verb to its end, one of them with a server")
@pytest.mark.parametrize("verb", ENDS)
def test_a_verb_runs_to_its_end(verb: str, bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    target, options, word = ENDS[verb]

    run = getattr(assay, verb)(target.format(folder=bench.target.parent), output=bench.results, **options)

    assert capfd.readouterr() == ("", "")
    assert run.manifest["status"] == "done"
    assert run.path.parent == bench.results
    assert run.points.height >= 1
    assert any(word in f"{line['question']} {line['limit']} {line['meaning']}" for line in run.manifest["verdict"])
    assert repr(run).startswith(f"<Run {run.path.name}: done")
    page = run._repr_html_()
    assert "<script" not in page
    assert word in page
