"""`assay array`: a modelled array that answers on the wall clock with real bytes, and commands to it."""

from __future__ import annotations

import inspect
import json as json_module
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import App, usual
from assay.apps.cli.console import say
from assay.base.errors import IoFailed, UsageError
from assay.base.paths import create_anew, printable
from assay.base.units import format_bytes, format_duration, format_latency, parse_bytes, parse_duration

if TYPE_CHECKING:
    from assay.targets.arrays.live.iscsi import IscsiRequest
    from assay.targets.arrays.live.nbd import NbdRequest
    from assay.targets.arrays.live.request import ServeRequest
    from assay.targets.arrays.live.service import Service
    from assay.targets.arrays.live.status import (
        ArrayStatus,
        GateStatus,
        HostReads,
        MemberStatus,
        PoolStatus,
        RebalanceStatus,
    )

EXAMPLES = """
Examples:

`assay array serve "ps6100xv?raid=10&members=2&volumes=data:4,log:1" --at /tmp/group --size 20G`

`assay array pull member0/disk3 --at /tmp/group`

`assay array status --at /tmp/group`
"""

app = App(
    name="array",
    help="A modelled array that answers on the wall clock with real bytes: serve it, pull its disks, cut its power.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)

LOOK_S = 0.2
"""How often the server is looked after."""
PICTURE_S = 5.0
"""How old the picture is at most that is kept for a server that ends by itself."""

At = Annotated[Path, typer.Option("--at", metavar="DIR", help="Folder in which the volumes appear.")]
Where = Annotated[
    Path | None,
    typer.Option("--at", metavar="DIR", help="Folder in which the volumes appear (the array that runs)."),
]
Disk = Annotated[
    str, typer.Argument(metavar="DISK", help="Such as member0/disk3; node0/disk3 of an array with flash in its hosts.")
]


@app.command(
    name="serve", epilog='Examples:\n\n`assay array serve "ps6100xv?raid=50&volumes=2" --at /tmp/array --size 4G`'
)
@usual("--at", "--size", "--store", "--cache", "--owner", "--events", "--duration", "--log", "--iscsi", "--nbd")
def serve(
    model: Annotated[str, typer.Argument(metavar="NAME[?OPTIONS]", help="As in the target model:NAME[?OPTIONS].")],
    at: At,
    size: Annotated[str | None, typer.Option("--size", help="Size of all volumes together (1 GiB each).")] = None,
    store: Annotated[Path | None, typer.Option("--store", help="Folder of the disks' files (DIR.store).")] = None,
    room: Annotated[str | None, typer.Option("--room", help="Largest size of the store.")] = None,
    cache: Annotated[
        str, typer.Option("--cache", help="What survives a power cut: battery, volatile, or lying about flushes.")
    ] = "battery",
    sums: Annotated[
        bool | None, typer.Option("--sums/--no-sums", help="Keep checksums of blocks (if the layout writes anywhere).")
    ] = None,
    realtime: Annotated[bool, typer.Option("--realtime", help="Run under SCHED_FIFO, if that is allowed.")] = False,
    mkfs: Annotated[
        str | None, typer.Option("--mkfs", help="ext4: put file systems on the volumes and mount them in DIR.mnt.")
    ] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Owner of the file systems.")] = None,
    events: Annotated[Path | None, typer.Option("--events", help="Faults at given times: a file in TOML.")] = None,
    duration: Annotated[str | None, typer.Option("--duration", help="End after this time (at Ctrl-C).")] = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="Write events and each second's service to this file, as JSON.")
    ] = None,
    iscsi: Annotated[
        str | None, typer.Option("--iscsi", metavar="ADDRESS", help="Serve the volumes as disks of iSCSI here, too.")
    ] = None,
    nbd: Annotated[
        str | None, typer.Option("--nbd", metavar="ADDRESS", help="Serve the volumes as exports of NBD here, too.")
    ] = None,
    portals: Annotated[
        str | None, typer.Option("--portals", metavar="ADDRESSES", help="Paths of iSCSI; --iscsi sends logins there.")
    ] = None,
    chap: Annotated[
        str | None, typer.Option("--chap", metavar="NAME", help="Initiators prove ASSAY_CHAP_SECRET by CHAP.")
    ] = None,
    initiators: Annotated[
        str | None, typer.Option("--initiators", metavar="NAMES", help="Only these initiators may log in.")
    ] = None,
    no_authentication: Annotated[
        bool, typer.Option("--no-authentication", help="Let in every host that reaches an address beyond loopback.")
    ] = False,
    debug: opt.Debug = False,
) -> None:
    """Serve a modelled array: each volume is a file in DIR that answers when the array would. Ctrl-C undoes it all."""
    del debug
    from assay.targets.arrays.live import service
    from assay.targets.arrays.live.events import read_events
    from assay.targets.arrays.live.request import DURABILITIES, ServeRequest

    found = [known for known in DURABILITIES if known == cache]
    if not found:
        raise UsageError(f"--cache: {cache!r} is unknown; accepted: {', '.join(DURABILITIES)}")
    if mkfs not in (None, "ext4"):
        raise UsageError(f"--mkfs: {mkfs!r} is unknown; accepted: ext4")
    if owner is not None and mkfs is None:
        raise UsageError("--owner: is of file systems; give --mkfs ext4 too")
    if log is not None and log.exists():
        raise UsageError(f"--log: {log}: is there already; name a new file, or remove it")
    folder = at.absolute()
    request = ServeRequest(
        target=model,
        folder=folder,
        store=store or folder.parent / f"{folder.name}.store",
        size_bytes=parse_bytes(size, what="--size") if size else None,
        durability=found[0],
        sums=sums,
        realtime=realtime,
        room_bytes=parse_bytes(room, what="--room") if room else None,
        events=read_events(events) if events else (),
        iscsi=_iscsi(iscsi, portals, chap, initiators, no_authentication),
        nbd=_nbd(nbd, iscsi, no_authentication),
    )
    ends_at = time.monotonic() + parse_duration(duration, what="--duration") / 1e9 if duration else None
    with service.serve(request, mkfs=mkfs is not None, owner=owner) as served:
        _watch(served, request, ends_at, log)


def _watch(served: Service, request: ServeRequest, ends_at: float | None, log: Path | None) -> None:
    """Say what happens until the end."""
    status: ArrayStatus = served.ask({"command": "status"})
    shown, drawn_at = 0, time.monotonic()
    _print_started(status, served.mounted, request.folder)
    _print_disks(request)
    say("served until Ctrl-C")
    try:
        while ends_at is None or time.monotonic() < ends_at:
            if not served.is_running():
                raise IoFailed(f"{request.folder}: the array stopped")
            time.sleep(LOOK_S)
            # Not the whole picture: the thread that draws it is the one that answers I/Os.
            news = served.ask({"command": "events", "from": shown})
            for event in news:
                say(f"{event['at_ns'] / 1e9:8.1f} s  {event['what']}")
            shown += len(news)
            if time.monotonic() >= drawn_at + PICTURE_S:
                status, drawn_at = served.ask({"command": "status"}), time.monotonic()
    finally:
        if served.is_running():
            status = served.ask({"command": "status"})
        say(_lateness_line(status))
        if log is not None:
            _write_log(log, status)


def _iscsi(
    address: str | None, portals: str | None, chap: str | None, initiators: str | None, open_to_all: bool
) -> IscsiRequest | None:
    from assay.targets.arrays.live.iscsi import iscsi_request

    if address is None:
        given = {"--portals": portals, "--chap": chap, "--initiators": initiators}
        for option, value in given.items():
            if value:
                raise UsageError(f"{option}: is for disks of iSCSI; give --iscsi ADDRESS too")
        return None
    return iscsi_request(
        address, _listed(portals), chap=chap, initiators=_listed(initiators), open_to_all=open_to_all,
        environ=os.environ,
    )  # fmt: skip


def _nbd(address: str | None, iscsi: str | None, open_to_all: bool) -> NbdRequest | None:
    from assay.targets.arrays.live.nbd import nbd_request

    if address is None and iscsi is None and open_to_all:
        raise UsageError("--no-authentication: is for volumes over a network; give --iscsi or --nbd ADDRESS too")
    return None if address is None else nbd_request(address, open_to_all=open_to_all)


def _listed(text: str | None) -> list[str]:
    return [part for part in (text or "").split(",") if part]


def _write_log(log: Path, status: ArrayStatus) -> None:
    try:
        with os.fdopen(create_anew(log), "w") as file:
            json_module.dump(status, file, indent=1)
    except OSError as error:
        raise IoFailed(f"--log: {printable(log)}: {error.strerror}") from error


def _print_started(status: ArrayStatus, mounted: Any, folder: Path) -> None:
    for volume in status["volumes"]:
        where = f", mounted at {mounted[volume['name']]}" if volume["name"] in mounted else ""
        say(f"{folder / volume['name']}: {format_bytes(volume['bytes'])}{where}")
    most = status["most_iops_one_at_a_time"]
    way = f"the way to the array and back takes {format_latency(status['floor_ns'])}, and is taken off"
    say(f"{way}; at most {most:,.0f} IOPS one at a time; scheduling: {status['scheduling']}")


def _print_disks(request: ServeRequest) -> None:
    if request.nbd is not None:
        for name, _ in request.configuration().volumes:
            say(f"NBD nbd://{request.nbd.address}/{name}")
    plan = request.plan()["iscsi"]
    if plan is None or request.iscsi is None:
        return
    for name, _ in request.configuration().volumes:
        say(f"iSCSI {plan['prefix']}{name} at {request.iscsi.address}")
    if request.iscsi.portals:
        say(f"paths: {', '.join(plan['portals'])}")


def _lateness_line(status: ArrayStatus) -> str:
    late = status["lateness"]
    if not late["count"]:
        return "no I/O was served"
    text = (
        f"{late['count']:,} I/Os; answers were late by {format_latency(late['mean_ns'])} in the mean,"
        f" p99 {format_latency(late['p99_ns'])}, most {format_latency(late['max_ns'])}"
    )
    if late["overdriven"]:
        text += f"; OVERDRIVEN in {late['overdriven_s']} s: this host cannot serve such load in time"
    return text


def _ask(at: Path | None, words: str, json: bool) -> None:
    from assay.targets.arrays.live.events import command_of
    from assay.targets.arrays.live.folder import ask, folder_of

    answer = ask(folder_of(at), command_of(words))
    print(json_module.dumps({"done": answer}) if json else answer)


@app.command(name="clean", epilog="Examples:\n\n`assay array clean --at /tmp/group`")
def clean(at: At, json: opt.Json = False, debug: opt.Debug = False) -> None:
    """Undo what a killed server left: mounts, loop devices, its note. The store stays."""
    del debug
    from assay.targets.arrays.live.folder import clean as clean_folder

    undone = clean_folder(at)
    if json:
        print(json_module.dumps({"undone": undone}))
    else:
        print("\n".join(f"{what}: taken away" for what in undone) or f"{at}: nothing was left but the note")


@app.command(name="status", epilog="Examples:\n\n`assay array status --at /tmp/group --json`")
def status(at: Where = None, json: opt.Json = False, debug: opt.Debug = False) -> None:
    """Show the state of the array: members, disks, rebuilds, cache, events, lateness of answers."""
    del debug
    from assay.targets.arrays.live.folder import ask, folder_of

    found = ask(folder_of(at), {"command": "status"})
    if json:
        print(json_module.dumps(found))
        return
    print(
        f"power {'on' if found['power'] else 'CUT'}; cache {found['cache']}; store {format_bytes(found['store_bytes'])}"
    )
    for host in found.get("hosts", ()):
        print(_host_line(host))
    for member in found["members"]:
        _print_member(member)
    for gate in found.get("gates", ()):
        print(_gate_line(gate))
    if "pool" in found:
        _print_pool(found["pool"])
    for slow in found["slowed"]:
        print(f"{slow['name']}: {slow['times']} times slower")
    if found["rebalance"]:
        print(_rebalance_line(found["rebalance"]))
    if found["lost_path"]:
        print(f"lost: {found['lost_path']}")
    for snapshot in found["snapshots"]:
        print(f"snapshot {snapshot['name']}: keeps {format_bytes(snapshot['bytes'])}")
    for second in found["seconds"][-1:]:
        print(
            f"last second: {second['reads']} reads of {format_latency(second['read_mean_ns'])},"
            f" {second['writes']} writes of {format_latency(second['write_mean_ns'])}"
        )
    print(_lateness_line(found))
    for event in found["events"]:
        print(f"{format_duration(event['at_ns'] / 1e9):>10}  {event['what']}")


def _rebalance_line(rebalance: RebalanceStatus) -> str:
    waits = f"; {rebalance['waits']}" if rebalance["waits"] else ""
    return f"{rebalance['member']}: chunks move onto it, {rebalance['moved_share']:.0%} done{waits}"


def _print_member(member: MemberStatus) -> None:
    marks = {"present": "#", "absent": ".", "rebuilding": "+"}
    disks = "".join(marks[disk["state"]] for disk in member["disks"])
    dirty = format_bytes(member["dirty_bytes"])
    if "raid" in member:
        lost = f"; {member['lost_chunks']} chunks LOST" if member["lost_chunks"] else ""
        healed = f"; {member['healed_blocks']} blocks healed" if member["healed_blocks"] else ""
        spares = f"spares {member['spares']}, dirty {dirty}"
        print(f"{member['name']}: RAID {member['raid']} [{disks}] {spares}{lost}{healed}")
    else:
        print(f"{member['name']}: [{disks}] in memory {dirty}")
    for disk in member["disks"]:
        if disk["state"] == "rebuilding":
            print(f"  {disk['name']}: rebuilding, {disk['rebuilt_share']:.0%} done")
        elif disk["state"] == "absent":
            print(f"  {disk['name']}: pulled")


def _gate_line(gate: GateStatus) -> str:
    """Limits of a cloud's volume or machine: what is left of their credits, and how long they held I/Os back."""
    words = []
    for name, limit in (("IOPS", gate["iops"]), ("throughput", gate["bandwidth"])):
        credits = "" if limit["balance_share"] is None else f", {limit['balance_share']:.1%} of its credits left"
        words.append(f"{name} held back for {format_duration(limit['exceeded_ns'] / 1e9)}{credits}")
    return f"{gate['name']}: {'; '.join(words)}"


def _host_line(host: HostReads) -> str:
    reads = host["reads"]
    levels = {"memory": host["memory_hits"], "flash": host["flash_hits"], "other hosts": host["remote_hits"]}
    levels["data nodes"] = reads - sum(levels.values())
    found = ", ".join(f"{name} {count / reads:.0%}" for name, count in levels.items()) if reads else ""
    return f"{host['name']}: {reads:,} reads" + (f" from {found}" if found else "")


def _print_pool(pool: PoolStatus) -> None:
    print(
        f"pool: {pool['containers']:,} of {pool['containers_most']:,} containers, {pool['live_share']:.0%} live;"
        f" {format_bytes(pool['used_bytes'])} of blocks in {format_bytes(pool['stored_bytes'])}:"
        f" deduplication {pool['deduplication']:.2f}, compression {pool['compression']:.2f}"
    )
    if pool["reclaimed_containers"]:
        moved = format_bytes(pool["moved_bytes"])
        print(f"  reclaimed {pool['reclaimed_containers']:,} containers, of which {moved} were moved")
    if pool["missing_pieces"]:
        lost = f"; {pool['lost_blocks']:,} blocks LOST" if pool["lost_blocks"] else ""
        print(f"  {pool['missing_pieces']:,} pieces missing, {pool['restored_pieces']:,} restored{lost}")
    if pool["healed_blocks"]:
        print(f"  {pool['healed_blocks']:,} blocks healed")


@app.command(name="pull", epilog="Examples:\n\n`assay array pull member0/disk3 --at /tmp/group`")
def pull(
    disk: Disk,
    at: Where = None,
    spare: Annotated[
        bool,
        typer.Option("--spare/--no-spare", help="A spare, or free space of other disks, replaces a lost disk."),
    ] = True,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Pull a disk out: its bytes are gone. Names the data that the RAID policy cannot compute any more."""
    del debug
    _ask(at, f"pull {disk}" if spare else f"pull {disk} keep-spare", json)


def _word(metavar: str, help_text: str | None = None) -> Any:
    return Annotated[str, typer.Argument(metavar=metavar, help=help_text)]


def _plain(name: str, help_text: str, example: str = "", /, **words: Any) -> None:
    """Make the command of a request that is its name and `words`, each an argument or one with its default."""

    def command(at: Path | None, json: bool, debug: bool, **given: str) -> None:
        del debug
        _ask(at, " ".join([name, *given.values()]), json)

    of_all: Any = {"at": (Where, None), "json": (opt.Json, False), "debug": (opt.Debug, False)}
    own = {word: one if isinstance(one, tuple) else (one, inspect.Parameter.empty) for word, one in words.items()}
    parameters = [
        inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for word, (annotation, default) in (own | of_all).items()
    ]
    command.__doc__ = help_text
    vars(command).update(__signature__=inspect.Signature(parameters))
    shown = f"assay array {name} {example}".rstrip()
    app.command(name=name, epilog=f"Examples:\n\n`{shown} --at /tmp/group`")(command)


_plain(
    "insert",
    "Put a new disk into an empty slot; it is rebuilt at the modelled rate.",
    disk=(_word("[DISK]", "Slot of the disk (the first empty one)."), ""),
)
_plain(
    "slow",
    "Make a disk, or a port of the host, slower by a factor.",
    "member0/disk3 x20",
    what=_word("DISK|PATH", "Such as member0/disk3 or path0."),
    times=_word("xTIMES", "Factor, such as x20; x1: as planned."),
)
_plain(
    "corrupt",
    "Change bytes of a disk behind the array's back.",
    "member0/disk3 4K",
    disk=Disk,
    count=_word("BYTES", "Number of bytes, from the first written one on."),
)
_plain("snapshot", "Keep the present state of all volumes.", "before", name=_word("NAME"))
_plain(
    "revert",
    "Make all volumes what they were at a snapshot; refused while one is in use.",
    "before",
    name=_word("NAME"),
)
_plain(
    "fill",
    "Fill a write-anywhere pool, or the room of a store: writes find free places here and there, or none.",
    "90%",
    share=(_word("SHARE%", "Share of the pool to fill."), "90%"),
)
_plain("fail-controller", "Lose the first controller of the first member; another takes its ports after a while.")
_plain("fail-path", "Lose a portal of iSCSI with its sessions, or the first port of a modelled host.")
_plain(
    "delay-path",
    "Make answers through a portal of iSCSI come later.",
    "0 5ms",
    portal=_word("PORTAL", "Number of the portal, from 0 on."),
    delay=_word("TIME", "Such as 5ms; 0ms takes it back."),
)
_plain(
    "retire-path",
    "Have the sessions of a portal of iSCSI log in at the others, without an error to them.",
    "0",
    portal=_word("PORTAL", "Number of the portal, from 0 on."),
)
_plain("mend-paths", "Bring lost paths and controllers back.")
_plain(
    "add-member",
    "Let a member like the others join the group; chunks of the volumes move onto it meanwhile.",
    address=(_word("[ADDRESS]", "Portal of iSCSI that the member brings; sessions move to it."), ""),
)
_plain(
    "grow",
    "Make a volume larger; its bytes stay, and those who use it are told of its new size.",
    "data 8G",
    volume=_word("VOLUME"),
    size=_word("SIZE", "Size from now on, such as 8G."),
)
_plain("cut-power", "Cut the power: the array answers nothing, and a volatile cache loses its content.")
_plain("restore", "Bring the power back: I/Os without an answer are sent again.")
