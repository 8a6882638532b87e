"""The verbs of `assay`: what lists say of each, and where it stands. A verb is imported when it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from assay.apps.cli.commands import App, ScreenGroup
from assay.apps.cli.declared import (
    ASK,
    DRAWING,
    DRIVES,
    EMBEDDED,
    MEASURE,
    RESULTS,
    SECTIONS,
    SERVERS,
    SERVING,
    SET_UP,
    TRACING,
    WATCH,
    Verb,
)
from assay.apps.cli.workloads import VERBS
from assay.workloads.declaration import imported
from assay.workloads.registry import workloads_of_others

_FIRST = (
    Verb(
        name="assess",
        uses=(*DRAWING, *DRIVES, *EMBEDDED, "duckdb", "nanoarrow", "sqlglot"),
        place="assay.apps.cli.assess:assess",
        question="How good is this storage?",
        answer="assay assess DIR",
        help="Examine the storage under a folder: I/O of all kinds, integrity, a real database; and write the report.",
        typed=("bench", "benchmark", "examine", "start", "test"),
    ),
)

_OTHERS = (
    Verb(
        name="run",
        short="Run a plan, once or by a timer of systemd.",
        place="assay.apps.cli.run:run",
        help="Run a plan of any kind, or write a systemd timer that runs it again and again; nothing is started then.",
        typed=("cron", "schedule", "repeat"),
    ),
    Verb(
        name="compare",
        short="Say what changed between runs, with confidence intervals.",
        section=RESULTS,
        place="assay.apps.cli.compare:compare",
        help="Match the points of runs and say what changed, with confidence intervals.",
        typed=("diff", "vs"),
    ),
    Verb(
        name="history",
        short="Show each load over time, and where its level changed.",
        section=RESULTS,
        place="assay.apps.cli.history:history",
        help="Show each load on each target over time: level, interval, changes, and what changed with them.",
        typed=("trend", "trends"),
    ),
    Verb(
        name="rank",
        short="Say where a run stands among storage of its class.",
        section=RESULTS,
        place="assay.apps.cli.rank:rank",
        help="Say where a run stands among drives, cloud volumes and arrays of each class, and your own runs.",
    ),
    Verb(
        name="report",
        uses=DRAWING,
        section=RESULTS,
        place="assay.apps.cli.report:report",
        help="Write report.html and report.pdf of a run, finished or not; or a paper of one or several runs.",
    ),
    Verb(
        name="ui",
        section=RESULTS,
        place="assay.apps.cli.ui:ui",
        help="Show runs and recordings in the browser, also while they go on; it starts runs only with --allow-runs.",
        typed=("list", "ls", "runs", "show"),
    ),
    Verb(
        name="serve",
        place="assay.apps.cli.ui:ui",
        help="The former name of `assay ui`.",
        hidden=True,
    ),
    Verb(
        name="import",
        section=WATCH,
        place="assay.apps.cli.importing:import_",
        help="Read telemetry and results of other tools into a run folder; name values taken and left out, and why.",
    ),
    Verb(
        name="check",
        short="Compare settings with best practice.",
        uses=("dmsetup", *DRIVES, *SERVERS),
        section=WATCH,
        place="assay.apps.cli.check:check",
        help="Compare settings with best practice, and say what to change and why; an unknown setting never passes.",
    ),
    Verb(
        name="diagnose",
        short="Name the bottleneck, its cause, and signs against it.",
        section=WATCH,
        place="assay.apps.cli.diagnose:diagnose",
        question="Why is it slow now?",
        answer="assay record rec --for 10m; assay diagnose rec",
        help="Say which tier and resource is the bottleneck, what causes it, and what would disprove that.",
    ),
    Verb(
        name="size",
        section=ASK,
        place="assay.apps.cli.size:size",
        question="What should I buy?",
        answer="assay size need.toml, made with assay size --template",
        help="Say what to buy for a need: what costs least, is smallest or is fastest, and why others do not hold it.",
    ),
    Verb(
        name="support",
        short="Pack a run into one archive for a colleague or a vendor.",
        section=RESULTS,
        place="assay.apps.cli.support:support",
        help="Pack manifest, log and points of a run into one archive for a colleague or a vendor, names replaced.",
    ),
    Verb(
        name="doctor",
        short="List missing programs, packages and rights, and their remedy.",
        section=SET_UP,
        place="assay.apps.cli.doctor:doctor",
        help="List programs, packages and rights that Assay can use on this host, and how to get missing ones.",
    ),
    Verb(
        name="schema",
        short="Print the JSON Schema of results and plans.",
        section=RESULTS,
        place="assay.apps.cli.schema:schema",
        help="Print the JSON Schema of the JSON document, of a file in a run folder, or of a plan.",
    ),
    Verb(
        name="mcp",
        short="Serve runs and recordings to a language model, read only.",
        uses=("mcp",),
        section=RESULTS,
        place="assay.apps.cli.mcp:mcp",
        help="Serve runs and recordings to a language model over standard input and output, read only (MCP).",
    ),
    Verb(
        name="config",
        short="Show defaults that files and the environment set.",
        section=SET_UP,
        place="assay.apps.cli.config:app",
        help="Show defaults of options that files and the environment set, each with its source.",
    ),
    Verb(
        name="completion",
        short="Print the completion of a shell.",
        section=SET_UP,
        place="assay.apps.cli.completion:completion",
        help="Print what makes a shell complete verbs, options, targets, studies and run folders.",
    ),
    Verb(
        name="agent",
        place="assay.apps.cli.agent:agent",
        help="Do one host's share of a run, on command of the process at the other end of the pipe.",
        hidden=True,
    ),
)

_WITH_COMMANDS = (
    Verb(
        name="baseline",
        section=RESULTS,
        place="assay.apps.cli.baseline:app",
        help="Keep runs as a baseline, which later runs are compared with.",
    ),
    Verb(
        name="record",
        short="Record host, storage and databases within a budget of disk.",
        uses=(*DRIVES, *SERVERS, *TRACING),
        section=WATCH,
        place="assay.apps.cli.record:app",
        help="Record host, storage and databases for as long as needed, within a fixed budget of disk.",
        typed=("monitor", "watch"),
    ),
    Verb(
        name="trace",
        short="Capture, import and understand the I/O of your own load.",
        uses=(*DRAWING, *TRACING),
        section=WATCH,
        place="assay.apps.cli.trace:app",
        help="The I/O of your own load: capture it, or import it from other programs, and see what it asks for.",
        typed=("blktrace", "blkparse", "capture"),
    ),
    Verb(
        name="contract",
        short="Judge what was bought or promised, clause by clause.",
        uses=(*DRAWING, "cryptography"),
        section=WATCH,
        place="assay.apps.cli.contract:app",
        help="Contracts of storage: test them on a target, judge them over months of a recording; seal it.",
        typed=("sla",),
    ),
    Verb(
        name="crash",
        short="Try the states that a crash may leave on a real program.",
        uses=("fusermount3", "mkfs.ext4", "mkfs.xfs", "debugfs", "mariadbd", "mounting FUSE", *EMBEDDED),
        place="assay.apps.cli.crash:app",
        help="The states that storage may be in after a crash, tried on a real program: which promises it needs.",
        typed=("crashmonkey", "lazyfs", "power-cut"),
    ),
    Verb(
        name="study",
        uses=(*SERVING, *DRAWING, *EMBEDDED),
        section=ASK,
        place="assay.apps.cli.study:app",
        help="Vary RAID policy, fill, members, paths and more, and compare.",
        typed=("hcibench",),
    ),
    Verb(
        name="paper",
        uses=(*DRAWING, *EMBEDDED),
        section=ASK,
        place="assay.apps.cli.paper:app",
        short="Make a published study again, and write the paper.",
        help="Make published studies again, and write the paper of each.",
    ),
    Verb(
        name="model",
        short="Show modelled arrays, fit them, work out their reliability.",
        uses=("scipy",),
        section=ASK,
        place="assay.apps.cli.model:app",
        help="Modelled arrays: the catalogue, and files of your own.",
    ),
    Verb(
        name="array",
        short="Serve a modelled array on the wall clock, and break it.",
        uses=SERVING,
        section=ASK,
        place="assay.apps.cli.array:app",
        help="A modelled array that answers on the wall clock with real bytes: serve it, pull its disks, cut its"
        " power.",
    ),
)


_OF_WORKLOADS = tuple(verb for verbs in VERBS.values() for verb in verbs)


class Later(TyperCommand):
    """A verb that is imported when it is called; until then it is its line in lists."""

    def __init__(
        self,
        name: str,
        *,
        load: Callable[[], Any],
        help: str,
        hidden: bool = False,
        short: str = "",
        section: str = MEASURE,
    ) -> None:
        super().__init__(name, help=help, hidden=hidden, short_help=short or None, rich_help_panel=section)
        self._load = load

    @cached_property
    def loaded(self) -> Any:
        """The command itself."""
        return self._load()

    def make_context(self, *given: Any, **settings: Any) -> Any:
        """The context in which the command itself is called."""
        return self.loaded.make_context(*given, **settings)


def declared() -> list[Verb]:
    """All verbs and commands of verbs that are declared."""
    return [*_FIRST, *_OF_WORKLOADS, *_OTHERS, *_WITH_COMMANDS]


def first_words() -> str:
    """What `assay` alone says: questions, and what answers each."""
    asked = [verb for verb in declared() if verb.question]
    width = max(len(verb.question) for verb in asked)
    lines = [f"{verb.question:{width}}  {verb.answer}" for verb in asked]
    return "\n".join([*lines, "", "All verbs: assay --help. One verb: assay VERB --help.", ""])


def verbs() -> dict[str, Any]:
    """All verbs by name, in the order of the list; kinds of workload that have none of their own end their section."""
    found: list[Any] = [_later(verb) for verb in (*_FIRST, *_alone(), *_OTHERS)]
    found += [*_groups(), *(_later(verb) for verb in _WITH_COMMANDS), *_of_kinds()]
    return {command.name: command for command in sorted(found, key=lambda one: SECTIONS.index(one.rich_help_panel))}


def commands_typed() -> dict[str, str]:
    """Commands by the words that people type in their place."""
    return {word: verb.command for verb in declared() for word in verb.typed} | {"version": "assay --version"}


def _alone() -> list[Verb]:
    return [verb for verb in _OF_WORKLOADS if verb.group is None]


def _groups() -> Iterator[ScreenGroup]:
    """The verbs that are made of commands which several kinds of workload may declare."""
    for group in dict.fromkeys(verb.group for verb in _OF_WORKLOADS if verb.group is not None):
        commands: dict[str, Any] = {verb.name: _later(verb) for verb in _OF_WORKLOADS if verb.group == group}
        yield ScreenGroup(
            name=group.name, help=group.help, commands=commands, no_args_is_help=True, rich_help_panel=MEASURE
        )


def _of_kinds() -> Iterator[Later]:
    """A verb for each kind of workload that declares none."""
    for workload in workloads_of_others(VERBS):

        def load(workload: Any = workload) -> Any:
            from assay.apps.cli.verb import verb_of

            return _command(workload.kind, verb_of(workload))

        yield Later(workload.kind, load=load, help=str(type(workload).__doc__ or "").partition("\n")[0])


def _later(verb: Verb) -> Later:
    def load() -> Any:
        found = imported(verb.place)
        if isinstance(found, typer.Typer):
            return typer.main.get_command(found)
        examples = getattr(import_module(verb.place.partition(":")[0]), "EXAMPLES", None)
        return _command(verb.name, found, epilog=examples)

    return Later(verb.name, load=load, help=verb.help, hidden=verb.hidden, short=verb.short, section=verb.section)


def _command(name: str, function: Callable[..., None], *, epilog: str | None = None) -> Any:
    """The command of a function."""
    alone = App()
    alone.command(name=name, epilog=epilog)(function)
    return typer.main.get_command(alone)
