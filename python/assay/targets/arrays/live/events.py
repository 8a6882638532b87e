"""What happens to a served array by itself, from a file in TOML.

Each `[[event]]` has a time since the volumes are shown (`at = "30s"`), and a command as `assay array` has it, in words:
`do = "pull member0/disk3"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Required, Self, TypedDict

from pydantic import Field, model_validator

from assay.base.errors import UsageError
from assay.base.fields import Strict
from assay.base.reading import nearest, read_table, refuse_unknown, validated
from assay.base.units import parse_bytes, parse_duration
from assay.targets.arrays.live.addresses import portal_address

USES: Mapping[str, str] = {
    "pull": "pull DISK [keep-spare]",
    "insert": "insert [DISK]",
    "fail-controller": "fail-controller",
    "fail-path": "fail-path",
    "delay-path": "delay-path PORTAL TIME",
    "retire-path": "retire-path PORTAL",
    "mend-paths": "mend-paths",
    "slow": "slow DISK|PATH xTIMES",
    "corrupt": "corrupt DISK BYTES",
    "add-member": "add-member [ADDRESS]",
    "grow": "grow VOLUME SIZE",
    "cut-power": "cut-power",
    "restore": "restore",
    "snapshot": "snapshot NAME",
    "revert": "revert NAME",
    "fill": "fill [SHARE%]",
}
"""Commands and how each is written."""

FILL_PERCENT = 90
"""Share of a pool that is used after `fill` without one."""


ArrayCommand = TypedDict(
    "ArrayCommand",
    {
        "command": Required[str], "disk": str, "spare": bool, "what": str, "times": int, "bytes": int, "name": str,
        "volume": str, "portal": int, "address": str, "delay_ns": int, "percent": int, "from": int,
        "events": "list[TimedCommand]",
    },
    total=False,
)  # fmt: skip
"""A command as the compiled server reads it.

`disk` and `what` name parts as `member0/disk3` and `path0` do; `percent` is of the pool, `from` counts events.
"""


class TimedCommand(TypedDict):
    """A command and when it is carried out, nanoseconds after the volumes are shown."""

    at_ns: int
    command: ArrayCommand


@dataclass(frozen=True)
class Event:
    """A command at a time."""

    at_ns: int
    command: ArrayCommand

    def for_server(self) -> TimedCommand:
        """As the compiled server reads it."""
        return {"at_ns": self.at_ns, "command": self.command.copy()}


def command_of(words: str) -> ArrayCommand:
    """A command for the compiled server from its words.

    Raises
    ------
    UsageError
        It is no command, or is written otherwise.

    Examples
    --------
    >>> command_of("slow member0/disk3 x20")
    {'command': 'slow', 'what': 'member0/disk3', 'times': 20}
    """
    name, *arguments = words.split() or [""]
    if name not in USES:
        close = nearest(name, USES)
        hint = f"did you mean {close!r}?" if close else f"accepted: {', '.join(USES)}"
        raise UsageError(f"{name!r}: no command to an array; {hint}")
    match name, arguments:
        case "pull", [disk]:
            return {"command": name, "disk": disk}
        case "pull", [disk, "keep-spare"]:
            return {"command": name, "disk": disk, "spare": False}
        case "insert", []:
            return {"command": name}
        case "insert", [disk]:
            return {"command": name, "disk": disk}
        case "slow", [what, times] if re.fullmatch(r"x[0-9]{1,6}", times):
            return {"command": name, "what": what, "times": int(times[1:])}
        case "delay-path", [portal, delay] if re.fullmatch(r"[0-9]{1,4}", portal):
            return {"command": name, "portal": int(portal), "delay_ns": parse_duration(delay, what="delay-path: TIME")}
        case "retire-path", [portal] if re.fullmatch(r"[0-9]{1,4}", portal):
            return {"command": name, "portal": int(portal)}
        case "add-member", [address]:
            return {"command": name, "address": portal_address(address, "add-member: ADDRESS")}
        case "grow", [volume, size]:
            return {"command": name, "volume": volume, "bytes": parse_bytes(size, what="grow: SIZE")}
        case "corrupt", [disk, count]:
            return {"command": name, "disk": disk, "bytes": parse_bytes(count, what="corrupt: BYTES")}
        case (("snapshot" | "revert"), [snapshot]):
            return {"command": name, "name": snapshot}
        case "fill", []:
            return {"command": name, "percent": FILL_PERCENT}
        case "fill", [share] if re.fullmatch(r"[0-9]{1,3}%?", share):
            return {"command": name, "percent": int(share.rstrip("%"))}
        case (("fail-controller" | "fail-path" | "mend-paths" | "add-member" | "cut-power" | "restore"), []):
            return {"command": name}
    raise UsageError(f"{words!r}: write {USES[name]}")


class PlannedEvent(Strict):
    """The text of an event, as plans have it.

    Attributes
    ----------
    at
        When it happens, such as 30s.
    do
        The command in words.
    """

    at: str
    do: str

    @model_validator(mode="after")
    def _is_understood(self) -> Self:
        try:
            self.event()
        except UsageError as error:
            raise ValueError(str(error)) from None
        return self

    def event(self) -> Event:
        """The command at its time.

        Raises
        ------
        UsageError
            The time or the command is wrong.
        """
        return Event(parse_duration(self.at, what="at"), command_of(self.do))


class _Plan(Strict):
    event: Annotated[tuple[PlannedEvent, ...], Field(min_length=1)]


def read_planned(path: Path) -> tuple[PlannedEvent, ...]:
    """The events of a file as they are written.

    Raises
    ------
    UsageError
        A key, a time or a command is wrong.
    """
    source, table = f"--events {path}", read_table(path, option="--events")
    for number, entry in enumerate(table.get("event") or [], start=1):
        if isinstance(entry, Mapping):
            # A key that is misspelt is said to be so, not the other one to be missing.
            refuse_unknown(entry, PlannedEvent, source, at=("event", number))
    return validated(_Plan, table, source).event


def read_events(path: Path) -> tuple[Event, ...]:
    """The events of a file, in order of time.

    Raises
    ------
    UsageError
        A key, a time or a command is wrong.
    """
    return events_of(read_planned(path))


def events_of(planned: Iterable[PlannedEvent]) -> tuple[Event, ...]:
    """Events in order of time."""
    return tuple(sorted((one.event() for one in planned), key=lambda event: event.at_ns))


def events_in(value: Any) -> Any:
    """What `--events` reads from a file, as a plan has it; what a plan has is left as it is."""
    if isinstance(value, list) and value and all(isinstance(path, str) for path in value):
        return [event for path in value for event in read_planned(Path(path))]
    return value
