"""`assay run`: a plan of any kind, once or again and again by a timer of systemd."""

from __future__ import annotations

import contextlib
import io
import os
import pwd
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.units import OnlyPrint, Overwrite, write_units
from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.secrets import holds_placeholder
from assay.base.systemd import parse_calendar, program_words, service_head

EXAMPLES = """
Examples:

`assay run nightly.toml /data/f.dat`

`assay run nightly.toml /data/f.dat --repeat daily -- --size 10G -o /srv/results`

`assay run nightly.toml /data/f.dat --repeat "Sun 02:00" --print`
"""

SYSTEM = Path("/etc/systemd/system")
ENVIRONMENT = Path("/etc/assay/run.env")

_SERVICE = """\
WorkingDirectory={folder}
TimeoutStartSec=infinity
KillSignal=SIGINT
TimeoutStopSec=120
UMask=0077
{rights}"""
_RIGHTS = """\
User={user}
ProtectSystem=full
ProtectClock=yes
ProtectHostname=yes
ProtectKernelTunables=yes
ProtectKernelLogs=yes
LockPersonality=yes
RestrictRealtime=yes
"""
_TIMER = """\
# Written by assay run --repeat.
[Unit]
Description=Assay: {name}, {calendar}
Documentation=man:systemd.timer(5)

[Timer]
OnCalendar={calendar}
Persistent=yes
AccuracySec=1min

[Install]
WantedBy=timers.target
"""


@usual("--repeat", "--unit", "--user", "--print", "--overwrite")
def run(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan in TOML, or the JSON of --dry-run --json.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TARGET]... [-- OPTIONS]", help="As the verb of the plan takes them.", show_default=False
        ),
    ] = None,
    repeat: Annotated[
        str | None, typer.Option("--repeat", help="Write a timer instead: daily, weekly, or such as 'Sun 02:00'.")
    ] = None,
    unit: Annotated[
        Path | None,
        typer.Option("--unit", help="Path of the timer; its service lies beside it.", show_default="assay-PLAN.timer"),
    ] = None,
    user: Annotated[bool, typer.Option("--user", help="A timer of your own user, in ~/.config/systemd/user.")] = False,
    only_print: OnlyPrint = False,
    overwrite: Overwrite = False,
    debug: opt.Debug = False,
) -> None:
    """Run a plan of any kind, or write a systemd timer that runs it again and again; nothing is started then."""
    del debug
    asked = [*verb_words(plan), "--plan", os.path.abspath(plan), *(words or [])]
    if repeat is None:
        if given := next((flag for flag, value in (("--unit", unit), ("--user", user), ("--print", only_print))
                          if value), None):  # fmt: skip
            raise UsageError(f"{given}: says where a timer is written; give --repeat daily, too")
        if code := _carried_out(asked):
            raise typer.Exit(code)
        return
    calendar = parse_calendar(repeat, "--repeat")
    if any(holds_placeholder(word) or "\n" in word for word in asked):
        raise UsageError("--repeat: units are readable by all users; leave the password out and see --print")
    with contextlib.redirect_stdout(io.StringIO()):
        # What the verb would refuse every night is refused here.
        _carried_out([*asked, "--dry-run"])
    timer = unit or (_own_units() if user else SYSTEM) / f"assay-{_name_of(plan)}.timer"
    if timer.suffix != ".timer":
        raise UsageError(f"--unit {printable(timer)}: is no timer; give a name that ends in .timer")
    texts = {
        timer: timer_text(timer.stem, calendar),
        timer.with_suffix(".service"): service_text(timer.stem, asked, user=user),
    }
    control = "systemctl --user" if user else "systemctl"
    if not only_print:
        print("\n".join(texts.values()))
    write_units(
        texts, f"{control} daemon-reload && {control} enable --now {timer.name}",
        only_print=only_print, overwrite=overwrite,
    )  # fmt: skip


def verb_words(plan: Path) -> list[str]:
    """The words of the verb that runs a plan: `profile`, `oltp tpcc`.

    Raises
    ------
    UsageError
        The file is no plan, or is of no kind that is known.
    """
    from assay.apps.cli.workloads import VERBS
    from assay.base.reading import read_table
    from assay.workloads.registry import DEFAULT_KIND, workload_named

    kind = read_table(plan, option="run").get("kind", DEFAULT_KIND)
    workload = workload_named(str(kind), source=f"run {printable(plan)}: kind")
    verb = next(iter(VERBS.get(workload.kind, ())), None)
    if verb is None:
        return [workload.kind]
    return [*([verb.group.name] if verb.group is not None else []), verb.name]


def _carried_out(asked: Sequence[str]) -> int:
    from assay.apps.cli.app import app

    command: Any = typer.main.get_command(app)
    try:
        code = command.main(args=[*asked], prog_name="assay", standalone_mode=False)
    except SystemExit as ended:
        code = ended.code
    return code if isinstance(code, int) else 0


def service_text(name: str, asked: Sequence[str], *, user: bool) -> str:
    """The service that runs a plan, in the current folder and as the current user."""
    head = service_head(
        [*program_words(), *asked], author="assay run --repeat", description=f"Assay: {name}", kind="oneshot",
        environment=str(Path.home() / ".config/assay/run.env" if user else ENVIRONMENT), reader="its owner",
    )  # fmt: skip
    rights = "" if user else _RIGHTS.format(user=pwd.getpwuid(os.geteuid()).pw_name)
    folder = os.getcwd().replace("%", "%%")
    return head + _SERVICE.format(folder=folder, rights=rights)


def timer_text(name: str, calendar: str) -> str:
    """The timer that starts it; one that was missed while the host was off is made up for."""
    return _TIMER.format(name=name, calendar=calendar)


def _name_of(plan: Path) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", plan.stem.lower()).strip("-")[:60]
    return name or "plan"


def _own_units() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd/user"
