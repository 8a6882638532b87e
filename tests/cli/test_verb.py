"""A workload that is registered has a command: its options are those its plan's fields declare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field
from typer.testing import CliRunner

from assay.apps.cli import verb
from assay.apps.cli.app import app
from assay.apps.cli.running import OutputOptions
from assay.apps.cli.workloads import VERBS
from assay.base.errors import UsageError
from assay.base.fields import Bytes, FieldError, FieldValueError, Seconds, Strict, percent
from assay.run.request import TargetRequest
from assay.workloads import registry
from assay.workloads.options import LOAD, TIME, Option
from assay.workloads.plan import AnyPlan, Part
from assay.workloads.workload import Workload


class FlightTiming(Strict):
    duration_s: Annotated[Seconds, Field(gt=0), Option("--duration", "How long a flight is.", TIME)] = 5.0
    rest_s: Annotated[Seconds, Option("--rest", "Pause between flights.", TIME)] = 1.0


class FlightSearch(Strict):
    axis: Literal["none", "pigeons"] = "none"
    start: float = 1.0
    end: float = 64.0
    repeats: Annotated[int, Field(ge=0)] = 1


class Loft(Strict):
    birds: Annotated[int, Field(ge=0), Option("--birds", "Birds by loft", LOAD, is_keyed=True)] = 0


class FlightPlan(AnyPlan):
    kind: Literal["pigeons"] = "pigeons"
    title: str = "Pigeons"
    payload_bytes: Annotated[Bytes, Option("--payload", "What each carries.", LOAD)] = 4096
    lost_share: Annotated[float, Field(ge=0), Option("--lost", "Percent that are lost.", LOAD, parse=percent)] = 0.0
    height: Annotated[
        Literal["low", "middle", "high"],
        Option("--height", "How high they fly."),
        Option("--soar", "The same as --height high.", values=("high",)),
    ] = "middle"
    returns: Annotated[bool, Option("--return/--no-return", "Back again.", values=(True, False))] = True
    size: str | None = None
    routes: Annotated[tuple[str, ...], Option("--route", "A way to fly.")] = ()
    old_loft: Loft = Loft()
    new_loft: Loft = Loft()
    timing: FlightTiming = FlightTiming()
    search: FlightSearch = FlightSearch()

    def model_post_init(self, _context: Any) -> None:
        if self.height == "high" and self.payload_bytes > 1 << 20:
            raise FieldValueError("payload_bytes", "is too heavy to fly high")


class Pigeons(Workload[FlightPlan]):
    """Carry messages by pigeon."""

    kind = "pigeons"
    plan_type = FlightPlan

    def estimate_s(self, plan: FlightPlan) -> tuple[float, float]:
        return plan.timing.duration_s, plan.timing.duration_s


class Started:
    """What the command would have run."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, TargetRequest, list[Part[Any]], OutputOptions]] = []
        self.resumed: list[tuple[str, Path]] = []

    def start(self, name: str, request: TargetRequest, parts: list[Part[Any]], shown: OutputOptions) -> None:
        self.calls.append((name, request, parts, shown))

    def resume(self, name: str, path: Path, *_: object) -> None:
        self.resumed.append((name, path))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    kinds = dict(registry._KINDS)
    monkeypatch.setattr(registry, "_KINDS", kinds)
    registry.register(Pigeons())
    record = Started()
    monkeypatch.setattr(verb, "start", record.start)
    monkeypatch.setattr(verb, "resume", record.resume)
    monkeypatch.chdir(tmp_path)
    return record


def planned(started: Started, *arguments: str) -> FlightPlan:
    shown = CliRunner().invoke(app, ["pigeons", "target", *arguments], catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    plan = started.calls[-1][2][0].plan
    assert isinstance(plan, FlightPlan)
    return plan


def refused(*arguments: str) -> UsageError:
    error = CliRunner().invoke(app, ["pigeons", "target", *arguments]).exception
    assert isinstance(error, UsageError)
    return error


@pytest.mark.usefixtures("started")
def test_its_command_is_listed_with_the_options_of_its_plan() -> None:
    wide = {"COLUMNS": "200"}
    assert "Carry messages by pigeon." in CliRunner().invoke(app, ["--help"], env=wide).output
    text = CliRunner().invoke(app, ["pigeons", "--help"], env=wide).output
    common = {"--search", "--start", "--end", "--repeats", "--seed", "--limit", "--plan", "--volume", "--overwrite"}
    output = {"--output", "-o", "--json", "--dry-run", "--no-report", "--export", "--resume", "--quiet", "--debug"}
    own = {"--duration", "--rest", "--payload", "--lost", "--height", "--soar", "--no-return", "--route", "--birds"}
    assert {flag for flag in common | output | own if f"{flag} " not in text} == set()
    assert "Find the most within the limits: none or pigeons (none)." in text
    assert "Birds by loft: old-loft=N, new-loft=N." in text
    assert "--preset" not in text


@pytest.mark.usefixtures("started")
def test_a_kind_with_a_verb_of_its_own_gets_no_second() -> None:
    assert [workload.kind for workload in registry.workloads_of_others(VERBS)] == ["pigeons"]


def test_without_options_it_is_the_plan_as_declared(started: Started) -> None:
    assert planned(started) == FlightPlan()


def test_every_option_sets_its_field(started: Started) -> None:
    plan = planned(
        started, "--payload", "8K", "--lost", "5", "--soar", "--no-return", "--route", "a", "--route", "b",
        "--birds", "old-loft=3,new-loft=4", "--duration", "1m", "--rest", "2s", "--seed", "7",
        "--limit", "read.p99<=2ms", "--search", "pigeons", "--start", "2", "--end", "8", "--repeats", "0",
    )  # fmt: skip
    assert plan == FlightPlan(
        payload_bytes=8192, lost_share=0.05, height="high", returns=False, routes=("a", "b"),
        old_loft=Loft(birds=3), new_loft=Loft(birds=4), timing=FlightTiming(duration_s=60, rest_s=2), seed=7,
        limits=("read.p99<=2ms",), user_limits=True,
        search=FlightSearch(axis="pigeons", start=2, end=8, repeats=0),
    )  # fmt: skip


def test_what_is_asked_of_target_and_output_reaches_the_run(started: Started) -> None:
    plan = planned(started, "other", "--size", "1G", "--overwrite", "other", "--json", "--quiet", "-o", "there")
    name, request, (part,), shown = started.calls[-1]
    assert (name, part.name, part.title) == ("pigeons", "pigeons", "Pigeons")
    assert plan.size == "1G"
    assert (request.paths, request.size, request.overwrite) == (["target", "other"], "1G", ["other"])
    assert (shown.output, shown.json, shown.quiet, shown.report) == (Path("there"), True, True, True)


def test_options_win_over_the_plan_in_a_file(started: Started) -> None:
    Path("plan.toml").write_text('payload_bytes = "64K"\n[timing]\nduration_s = 9\nrest_s = 3\n')
    plan = planned(started, "--plan", "plan.toml", "--duration", "4s")
    assert (plan.payload_bytes, plan.timing.duration_s, plan.timing.rest_s) == (65536, 4.0, 3.0)


def test_a_run_goes_on(started: Started) -> None:
    CliRunner().invoke(app, ["pigeons", "--resume", "run"], catch_exceptions=False)
    assert (started.resumed, started.calls) == ([("pigeons", Path("run"))], [])


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        (["--duration", "5parsecs"], ("timing", "duration_s"), "--duration: unknown unit 'parsecs'"),
        (["--duration", "0"], ("timing", "duration_s"), "--duration: "),
        (["--rest", "x"], ("timing", "rest_s"), "--rest: 'x' is not a quantity"),
        (["--payload", "8X"], ("payload_bytes",), "--payload: unknown unit 'X'"),
        (["--lost", "130"], ("lost_share",), "--lost: 130 is outside 0 to 100 %"),
        (["--height", "deep"], ("height",), "--height: "),
        (["--repeats", "many"], ("search", "repeats"), "--repeats: a whole number is expected (given 'many')"),
        (["--birds", "old-loft=-1"], ("old_loft", "birds"), "--birds old-loft=N: "),
        (["--soar", "--payload", "2M"], ("payload_bytes",), "--payload: is too heavy to fly high"),
    ],
)
def test_an_error_carries_the_field_and_names_the_option(
    started: Started, arguments: list[str], field: tuple[str, ...], message: str
) -> None:
    error = refused(*arguments)
    assert isinstance(error, FieldError)
    assert error.field == field
    assert str(error).startswith(message)
    assert started.calls == []


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize(
    ("text", "arguments", "field", "message"),
    [
        ("[timing]\nduration_s = 0\n", [], ("timing", "duration_s"), "--plan plan.toml: timing.duration_s: "),
        ("[timing]\ndurtion_s = 1\n", [], ("timing",), "--plan plan.toml: timing: unknown key 'durtion_s'"),
        ('payload_bytes = "2M"\n', ["--soar"], ("payload_bytes",), "--plan plan.toml: payload_bytes: is too heavy"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_file_and_key(
    text: str, arguments: list[str], field: tuple[str, ...], message: str
) -> None:
    Path("plan.toml").write_text(text)
    error = refused("--plan", "plan.toml", *arguments)
    assert isinstance(error, FieldError)
    assert (error.field, str(error).startswith(message)) == (field, True), error


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--soar", "--height", "low"], "--soar and --height low exclude each other"),
        (["--birds", "oldloft=1"], "did you mean 'old-loft'? accepted: old-loft, new-loft"),
        (["--birds", "old-loft"], "--birds 'old-loft': accepted: KIND=N, as in old-loft=8"),
        (["--birds", "old-loft=1", "--birds", "old-loft=2"], "--birds: old-loft is given twice"),
        (["--end", "5"], "--end: says how to search; give --search pigeons, too"),
    ],
)
def test_what_contradicts_itself_is_refused(arguments: list[str], words: str) -> None:
    assert words in str(refused(*arguments))


def test_the_same_twice_is_no_contradiction(started: Started) -> None:
    assert planned(started, "--soar", "--height", "high").height == "high"
