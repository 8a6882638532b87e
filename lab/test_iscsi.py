"""Disks of a served array in Debian's kernel: open-iscsi and multipathd over three portals, and faults beneath them."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.record.series import read_series
from lab.databases import LOST, Loaded, Server, transactions
from lab.disks import Disk
from lab.fabric import JOINING, PORTALS, SECRET, Array, Initiator
from lab.machine import RECORDS, SHARE, Machine, Running

MODEL = "ps6100xv?raid=10&members=2&volumes=data:1,log:1"
VOLUMES = ("data01", "log01")
SIZE = "1536M"
OUTPUT = ("--no-report", "--quiet", "--json", "-o", SHARE / "runs")
VERIFY = ("--size", "16M", "--memory", "2M")
LOAD = (
    "--block", "8K", "--read", "100", "--random", "100", "--queue-depth", "8", "--warmup", "0s", "--duration", "10s",
)  # fmt: skip
SEQUENTIAL = (
    "--block", "64K", "--read", "100", "--random", "0", "--queue-depth", "8", "--warmup", "0s", "--duration", "5s",
)  # fmt: skip
LOGIN_REFUSED = 24
"""iscsiadm(8): login failed because of authorization."""
FAULTS = ("path", "controller", "power", "server", "disk", "delay")
SCRIPTS = int(os.environ.get("LAB_SCRIPTS", "3"))
"""How many scripts of faults are tried, with seeds from LAB_SEED (1) on."""
CUT_AFTER_WRITES = 300
"""By how many writes a database's volume has been written when its path is cut."""


@pytest.fixture
def attached(initiator: Initiator) -> Initiator:
    """Three paths to each volume, by the group's address."""
    if not initiator.paths():
        initiator.discover(len(PORTALS))
        initiator.log_in().checked()
    for volume in VOLUMES:
        initiator.device(volume, len(PORTALS))
    return initiator


@pytest.mark.lab(
    line="iSCSI: discovery, CHAP, logins sent to the portals",
    proves="the group's address tells both volumes; a wrong secret logs in to nothing; each path of a volume has a"
    " portal of its own",
    cannot="other initiators than Linux's",
)
def test_an_initiator_with_the_secret_is_sent_to_the_portals(
    array: Array, initiator: Initiator, observed: Callable[[str], None]
) -> None:
    told = initiator.discover(len(PORTALS))
    assert {line.split()[1] for line in told.splitlines()} == {array.target(volume) for volume in VOLUMES}

    secret = "iscsiadm --mode node --op=update --name node.session.auth.password --value"
    initiator.lab.shell(f"{secret} not-the-right-one")
    refused = initiator.log_in()
    assert refused.code == LOGIN_REFUSED
    assert initiator.paths() == []

    initiator.lab.shell(f"{secret} {SECRET}")
    initiator.log_in().checked()
    for volume in VOLUMES:
        initiator.device(volume, len(PORTALS))
    portals = {volume: [path.portal for path in initiator.paths(volume)] for volume in VOLUMES}
    observed(f"a wrong secret: iscsiadm ends with {refused.code}")
    observed("; ".join(f"{volume} at {', '.join(sorted(at))}" for volume, at in portals.items()))
    assert all(sorted(at) == sorted(PORTALS) for at in portals.values())


@pytest.mark.lab(
    line="iSCSI: three paths, {selector}",
    proves="multipathd puts the paths of a volume together by its serial number, and each carries a part of the load",
    cannot="rates of real links",
)
@pytest.mark.parametrize("selector", ["round-robin 0", "queue-length 0"])
def test_each_path_carries_a_part(attached: Initiator, selector: str, observed: Callable[[str], None]) -> None:
    attached.choose(selector)
    attached.lab.shell("multipathd reconfigure; udevadm settle --timeout=1800")
    device = attached.device("data01", len(PORTALS))
    attached.lab.wait_until(lambda: selector in attached.lab.shell(f"multipath -ll {device}"), every_s=1.0)
    before = attached.reads("data01")
    done = attached.lab.assay("profile", device, *LOAD, *OUTPUT)
    assert done.code in (0, 1, 5), done.stderr
    (point,) = done.document["points"]
    reads = [after - before[disk] for disk, after in attached.reads("data01").items()]
    shares = [one / sum(reads) for one in reads]
    observed(f"{point['read']['count']:,} reads, of which the paths had {', '.join(f'{one:.0%}' for one in shares)}")
    assert point["errors"]["count"] == 0
    assert min(shares) > 0.1


@pytest.mark.lab(
    line="iSCSI: verify through a lost path, a lost controller, a power cut, and a server that is killed and back",
    proves="every page is what was written, and no I/O of the program fails",
    cannot="a fabric whose packets are lost in between",
)
def test_verify_finds_every_byte_through_faults(
    array: Array, attached: Initiator, observed: Callable[[str], None]
) -> None:
    device = attached.device("data01", len(PORTALS))
    running = begin_verify(attached, device, "60s")
    done = []
    for fault in ("path", "controller", "power", "server"):
        progress(attached, device, running)
        strike(array, fault)
        progress(attached, device, running)
        mend(array, fault)
        done.append(fault)
    result = running.end()
    observed(f"exit code {result.code}; {', '.join(done)}")
    assert result.code == 0, result.stderr
    observed(f"{result.document['integrity']['pages_verified']:,} pages verified")
    attached.device("data01", len(PORTALS))


def begin_verify(initiator: Initiator, device: str, duration: str) -> Running:
    running = initiator.lab.start(
        "assay", "verify", device, "--overwrite", device, "--yes-destroy", device, *VERIFY, "--duration", duration,
        *OUTPUT,
    )  # fmt: skip
    initiator.lab.wait_for_run(running)
    return running


def progress(initiator: Initiator, device: str, running: Running, ios: int = 100) -> None:
    """Wait until a device has done more I/Os, or the load has ended."""
    lab = initiator.lab
    enough = lab.ios(device) + ios
    lab.wait_until(lambda: running.ended or lab.ios(device) > enough, every_s=1.0)


def strike(array: Array, fault: str) -> None:
    """Begin a fault."""
    match fault:
        case "path":
            array.command("fail-path")
        case "controller":
            array.command("fail-controller")
        case "power":
            array.command("cut-power")
            array.command("restore")
        case "server":
            array.end()
            array.serve()
        case "disk":
            array.command("pull", "member0/disk3", "--no-spare")
        case "delay":
            array.command("delay-path", "0", "20ms")


def mend(array: Array, fault: str) -> None:
    """End it."""
    match fault:
        case "path" | "controller":
            array.command("mend-paths")
        case "disk":
            array.command("insert", "member0/disk3")
        case "delay":
            array.command("delay-path", "0", "0ms")
        case _:
            pass


@pytest.mark.lab(
    line="iSCSI: ext4 and xfs, and a reboot of the initiator (power cut)",
    proves="file systems keep the files that were synchronised when the machine loses its power and logs in anew",
    cannot="other file systems",
)
def test_files_survive_a_reboot_of_the_initiator(attached: Initiator, observed: Callable[[str], None]) -> None:
    lab = attached.lab
    volumes = {"data01": "ext4", "log01": "xfs"}
    sums = {}
    for volume, kind in volumes.items():
        device = attached.device(volume, len(PORTALS))
        lab.shell(
            f"wipefs -qa {device}; mkfs.{kind} {'-f' if kind == 'xfs' else '-F'} -q {device}; mkdir -p /run/{kind};"
            f" mount -t {kind} {device} /run/{kind};"
            f" for n in 1 2 3 4; do dd if=/dev/urandom of=/run/{kind}/$n bs=64k count=16 status=none; done;"
            f" sync -f /run/{kind}"
        )
        sums[kind] = lab.shell(f"cd /run/{kind}; sha256sum 1 2 3 4")
    lab.cut()
    lab.boot()
    attached.start()
    attached.discover(len(PORTALS))
    attached.log_in().checked()
    for volume, kind in volumes.items():
        device = attached.device(volume, len(PORTALS))
        lab.shell(f"mkdir -p /run/{kind}; mount -t {kind} {device} /run/{kind}")
        assert lab.shell(f"cd /run/{kind}; sha256sum 1 2 3 4") == sums[kind]
        lab.shell(f"umount /run/{kind}; wipefs -qa {device}")
        observed(f"{kind}: {len(sums[kind].splitlines())} files are what they were")


@pytest.mark.lab(
    line="iSCSI: {scripts} scripts of faults, chosen by seeds, each under verify",
    proves="whatever faults come one after the other, every page is what was written: exit code 0",
    cannot="faults of a fabric",
)
@pytest.mark.parametrize("scripts", [SCRIPTS])
def test_scripts_of_faults_leave_every_byte(
    array: Array, attached: Initiator, scripts: int, observed: Callable[[str], None]
) -> None:
    first, codes, pages = int(os.environ.get("LAB_SEED", "1")), [], 0
    try:
        for seed in range(first, first + scripts):
            script = random.Random(seed)
            device = attached.device("data01", len(PORTALS))
            running = begin_verify(attached, device, "5s")
            for fault in script.sample(FAULTS, k=script.randint(1, 3)):
                progress(attached, device, running, script.randint(5, 100))
                strike(array, fault)
                progress(attached, device, running, script.randint(5, 100))
                mend(array, fault)
            done = running.end()
            codes.append(done.code)
            assert done.code == 0, f"seed {seed}: {done.stderr}"
            pages += done.document["integrity"]["pages_verified"]
    finally:
        observed(
            f"{len(codes)} scripts from seed {first} on, exit codes {sorted(set(codes))}; {pages:,} pages verified"
        )


@pytest.mark.lab(
    line="iSCSI: a member joins the group with a portal of its own under a profile, and the portal retires",
    proves="sessions move onto the new portal and away from it by a logout, and no I/O of the initiator fails",
    cannot="",
)
def test_a_member_joins_and_its_portal_retires_without_an_error(
    array: Array, attached: Initiator, observed: Callable[[str], None]
) -> None:
    device = attached.device("log01", len(PORTALS))
    running = attached.lab.start("assay", "profile", device, *LOAD[:-1], "60s", *OUTPUT)
    attached.lab.wait_for_run(running)
    progress(attached, device, running)
    members = len(array.status["members"])
    array.command("add-member", JOINING)
    attached.lab.wait_until(lambda: JOINING in ready_at(attached), every_s=1.0)
    moved = ready_at(attached).count(JOINING)
    array.command("retire-path", str(len(PORTALS)))
    attached.lab.wait_until(lambda: JOINING not in ready_at(attached), every_s=1.0)
    done = running.end()
    (point,) = done.document["points"]
    observed(f"{point['read']['count']:,} reads, {point['errors']['count']} errors")
    observed(f"{moved} of {len(VOLUMES) * len(PORTALS)} sessions moved to {JOINING}, and away when it retired")
    assert len(array.status["members"]) == members + 1
    assert point["errors"]["count"] == 0
    for volume in VOLUMES:
        attached.device(volume, len(PORTALS))


def ready_at(initiator: Initiator) -> list[str]:
    """Portals of all paths that are ready, one for each path."""
    return [path.portal for path in initiator.paths() if path.is_ready]


@pytest.mark.lab(
    line="iSCSI: sequential reads over one, two and three paths",
    proves="the study of the published kind runs on the kernel's initiator: the load uses as many paths as there are",
    cannot="what a path adds to the rate",
)
def test_sequential_reads_use_each_path(initiator: Initiator, observed: Callable[[str], None]) -> None:
    for count in range(1, len(PORTALS) + 1):
        if initiator.paths():
            initiator.log_out()
        initiator.discover(count)
        initiator.log_in().checked()
        device = initiator.device("data01", count)
        portals = {path.portal for path in initiator.paths("data01")}
        before = initiator.reads("data01")
        done = initiator.lab.assay("profile", device, *SEQUENTIAL, *OUTPUT)
        (point,) = done.document["points"]
        used = [after - before[disk] for disk, after in initiator.reads("data01").items()]
        observed(f"{count}: {point['read']['bytes_per_s'] / 2**20:.1f} MiB/s")
        assert point["errors"]["count"] == 0
        assert len(portals) == len(used) == count
        assert min(used) > 0.5 * sum(used) / count


@pytest.mark.lab(
    line="iSCSI: a path is cut under oltp tpcc on PostgreSQL",
    proves="the server goes on over the other paths and has all that it acknowledged; diagnose names the path",
    cannot="how long a real link takes to be given up",
)
def test_a_cut_path_costs_no_transaction(
    array: Array, initiator: Initiator, database: Loaded, observed: Callable[[str], None]
) -> None:
    lab = initiator.lab
    initiator.log_out()
    database.put_on(array.volume("data01"), within=array.within)
    for volume in VOLUMES:
        initiator.name_portals(array.target(volume))
    initiator.log_in().checked()
    device = initiator.device("data01", len(PORTALS))
    disks = {path.portal: path.disk for path in initiator.paths("data01")}
    server = Server(lab, Disk(name="OVERISCSI"), database, 5520, device=device)
    assert server.start(), server.process
    recording = lab.start("assay", "record", "start", "/tmp/recording", "--no-processes")
    lab.wait_until(lambda: lab.run(*RECORDS).code == 0, recording)
    running = lab.start(
        "assay", "oltp", "tpcc", server.url, "run", "--users", "4", "--warmup", "1s", "--duration", "150s",
        "--reconnect", "600s", *OUTPUT,
    )  # fmt: skip
    lab.wait_for_run(running)
    enough = lab.writes(device) + CUT_AFTER_WRITES
    lab.wait_until(lambda: lab.writes(device) > enough, running, every_s=1.0)
    cut = array.command("fail-path").split()[1].removesuffix(":3260")
    cut_ns = int(lab.shell("date +%s%N"))
    others = [f"/dev/{disk}" for portal, disk in disks.items() if portal != cut]
    before = [lab.ios(disk) for disk in others]
    done = running.end()
    after = [lab.ios(disk) for disk in others]
    lab.kill(recording, signal.SIGTERM)

    diagnosis = lab.assay("diagnose", "/tmp/recording", "--json").checked().document
    array.command("mend-paths")
    check = lab.assay("oltp", "tpcc", server.url, "check", *OUTPUT)
    server.stop()
    initiator.log_out()

    rates = committed(lab.share / Path(done.document["run_folder"]).relative_to(SHARE))
    until = [rate for t_ns, rate in rates if t_ns <= cut_ns]
    since = [rate for t_ns, rate in rates if t_ns > cut_ns]
    observed(f"{transactions(done):,} transactions; {dip(until, since)}")
    observed(f"{sum(after) - sum(before):,} I/Os over the other paths")
    observed("diagnose: " + ", ".join(f"{one['cause']} ({one['confidence']})" for one in diagnosis["causes"]))
    assert done.code in (0, 1, 5), done.stderr
    assert not [notice for notice in done.document["notices"] if LOST in notice]
    assert check.code == 0, check.stderr
    assert sum(since) > 0
    assert all(late > early for early, late in zip(before, after, strict=True))
    assert any(cause["cause"] == "lost-path" and f"/{disks[cut]}" in json.dumps(cause) for cause in diagnosis["causes"])


def committed(run: Path) -> list[tuple[int, float]]:
    """Moments of a run in UTC, and the transactions committed in each second up to them."""
    rates: dict[int, float] = {}
    for row in read_series(run).records():
        if (row["source"], row["metric"]) == ("tpcc", "committed_count"):
            rates[int(row["t_ns"])] = rates.get(int(row["t_ns"]), 0.0) + float(row["value"])
    return sorted(rates.items())


def dip(until: list[float], since: list[float]) -> str:
    """Say how fast transactions went until a path was cut, and for how long they then stood still or were slow."""
    mean = sum(until) / max(len(until), 1)
    low = longest = still = stillest = 0
    for rate in since:
        low = low + 1 if rate < mean / 2 else 0
        still = still + 1 if not rate else 0
        longest, stillest = max(longest, low), max(stillest, still)
    return (
        f"{mean:.1f} a second until the cut; in the {len(since)} s after it none for {stillest} s (the failover),"
        f" below half for {longest} s, {sum(since) / max(len(since), 1):.1f} a second in all"
    )


@pytest.mark.lab(
    line="iSCSI: a volume grows under verify, and ext4 on it",
    proves="a rescan shows the new size over every path, the file system grows under load, and every page is what was"
    " written",
    cannot="other file systems",
)
def test_a_volume_grows_under_load(array: Array, attached: Initiator, observed: Callable[[str], None]) -> None:
    lab, place = attached.lab, "/run/grown"
    device = attached.device("log01", len(PORTALS))
    lab.shell(f"wipefs -qa {device}; mkfs.ext4 -qF {device}; mkdir -p {place}; mount -t ext4 {device} {place}")
    small = sizes(lab, device, place)
    running = lab.start("assay", "verify", place, *VERIFY, "--duration", "60s", *OUTPUT)
    lab.wait_for_run(running)
    progress(attached, device, running)
    array.command("grow", "log01", "1G")
    lab.shell(f"iscsiadm --mode session --rescan; multipathd resize map {Path(device).name}; resize2fs {device}")
    large = sizes(lab, device, place)
    progress(attached, device, running)
    done = running.end()
    lab.shell(f"umount {place}; wipefs -qa {device}")
    observed(f"{small[0] >> 20} to {large[0] >> 20} MiB, the file system {small[1] >> 20} to {large[1] >> 20} MiB")
    observed(f"exit code {done.code}; {done.document['integrity']['pages_verified']:,} pages verified")
    assert large[0] == 1 << 30
    assert large[1] > small[0]
    assert done.code == 0, done.stderr


def sizes(lab: Machine, device: str, place: str) -> tuple[int, int]:
    """Bytes of a device and of the file system on it."""
    device_bytes, file_system_bytes = lab.shell(
        f"blockdev --getsize64 {device}; stat -fc '%b %S' {place} | awk '{{ printf \"%d\", $1 * $2 }}'"
    ).split()
    return int(device_bytes), int(file_system_bytes)
