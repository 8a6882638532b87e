"""A run over several hosts gives the answers of one process; what fails ends it with a name; nothing is left behind."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_threads import Assay, ThreadLink
from assay._core import Histogram
from assay.fleet import agent, choosing, links, team
from assay.fleet.job import FleetJob
from assay.fleet.member import ClockOffset, Member
from assay.fleet.team import HostLost, Team
from assay.fleet.wire import GREETING
from assay.record.run_folder import RunFolder
from assay.record.shapes.drive import Drive, DriveHealth
from assay.report import facts
from assay.report.sections import series as sections
from assay.run import drives
from assay.telemetry.collectors import drives as collecting
from assay.workloads import registry
from assay.workloads.capabilities import OverHosts
from test_a_workload_of_its_own import Desk, DeskPlan

from .conftest import is_running, until

MODEL = ("model:sata-jbod", "--block", "8K", "--read", "70", "--warmup", "1s", "--duration", "4s")
AS_GIVEN = ("--search", "none")
THREE = ("--hosts", "local,local,local")


def point_of(document: dict[str, Any]) -> dict[str, Any]:
    (point,) = document["points"]
    return dict(point)


@pytest.mark.usefixtures("in_threads")
def test_three_agents_give_the_answer_of_one_process_for_the_same_load(assay: Assay) -> None:
    by_one = assay("profile", *MODEL, *AS_GIVEN, "--outstanding", "12")
    by_three = assay("profile", *MODEL, *AS_GIVEN, "--outstanding", "36", *THREE)
    alone, over = point_of(by_one), point_of(by_three)

    assert over["load"]["outstanding"] == 3 * alone["load"]["outstanding"]
    for side in ("read", "write", "total"):
        assert over[side]["iops"] == pytest.approx(3 * alone[side]["iops"])
        assert over[side]["latency_ns"] == pytest.approx(alone[side]["latency_ns"])
        bins = Histogram.from_base64(alone[side]["histogram"]).bins()
        thrice = [(middle, 3 * count) for middle, count in bins]
        assert Histogram.from_base64(over[side]["histogram"]).bins() == thrice
    assert [host["name"] for host in over["hosts"]] == ["local-1", "local-2", "local-3"]
    assert over["hosts"][1]["point"]["read"] == alone["read"]
    assert (over["together"]["count"], over["together"]["skewed"]) == (3, False)
    assert len({host["machine"] for host in by_three["hosts"]}) == 1
    ios = load_over_time(by_one)
    assert ios
    assert load_over_time(by_three) == pytest.approx([3 * value for value in ios], rel=1e-4)


def load_over_time(document: dict[str, Any]) -> list[float]:
    """Reads a second in the report's figure of the run over time."""
    series = facts.load_facts(Path(document["run_folder"])).series
    assert series is not None
    series = series.of(clock="virtual")
    rows = sections.timeline_rows(series, sections._clock(series), [])
    return [row["value"] for row in rows if (row["panel"], row["series"]) == (sections.LOAD_PANEL, "read")]


class DeskOverHosts(Desk, OverHosts[DeskPlan]):
    """A workload of one file: all that it says of several hosts is how its figures come together."""

    adds = frozenset({"clients", "served_per_s"})

    def merged(self, points: Any) -> dict[str, Any]:
        found = super().merged(points)
        return found | {"desk": found["desk"] | {"wait_ns": max(point["desk"]["wait_ns"] for point in points)}}


@pytest.mark.usefixtures("in_threads")
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_search_is_one_search_over_all_hosts_for_any_workload(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", registry._KINDS.copy())
    registry.register(DeskOverHosts())
    words = ("desk", "null:", "--search", "clients", "--limit", "wait<=150ms")
    (alone,) = assay(*words)["answers"]
    found = assay(*words, "--hosts", "local,local")
    (over,) = found["answers"]
    assert (alone["max"]["clients"], over["max"]["clients"]) == (15, 30)
    assert over["max"]["served_per_s"] == pytest.approx(2 * alone["max"]["served_per_s"], rel=0.01)
    assert len(found["answers"]) == 1
    for point in found["points"]:
        assert sum(host["point"]["load"]["clients"] for host in point["hosts"]) == point["load"]["clients"]

    manifest = Path(found["run_folder"]) / "run.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"status": "interrupted"}))
    again = assay("desk", "--resume", found["run_folder"])
    assert (again["points"], again["answers"]) == (found["points"], found["answers"])


def apart(monkeypatch: pytest.MonkeyPatch, *, until: int) -> None:
    """Hosts measure loads of ten clients and more too far apart, each so many times."""
    monkeypatch.setattr(registry, "_KINDS", registry._KINDS.copy())
    registry.register(DeskOverHosts())
    skew, seen = FleetJob._skew, Counter[float]()

    def skewed(self: FleetJob, hosts: Any, meeting: Any, figures: Any) -> Any:
        load = sum(host["point"]["load"]["clients"] for host in hosts)
        seen[load] += 1
        return skew(self, hosts, meeting, figures) | {"skewed": load >= 10 and seen[load] <= until}

    monkeypatch.setattr(FleetJob, "_skew", skewed)


DESK = ("desk", "null:", "--search", "clients", "--limit", "wait<=150ms", "--hosts", "local,local")


@pytest.mark.usefixtures("in_threads")
def test_a_point_that_hosts_measured_apart_is_no_answer(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    apart(monkeypatch, until=99)
    found = assay(*DESK)
    (answer,) = found["answers"]
    assert (answer["max"]["clients"], answer["limited_by"]) == (9, "hosts apart")
    marked = [point for point in found["points"] if point["together"]["skewed"]]
    assert {point["generator"]["reason"] for point in marked} == {"hosts apart"}
    assert not any(limit["met"] for point in marked for limit in point["limits"])
    assert any("hosts began or ended too far apart in" in notice for notice in found["notices"])


@pytest.mark.usefixtures("in_threads")
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_one_that_was_apart_once_is_measured_again(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    apart(monkeypatch, until=1)
    (answer,) = assay(*DESK)["answers"]
    assert (answer["max"]["clients"], answer["limited_by"]) == (30, "wait<=150ms")


@pytest.mark.usefixtures("in_threads")
def test_only_the_window_in_which_all_ran_counts_and_telemetry_names_its_host(assay: Assay) -> None:
    found = assay(
        "profile",
        "null:",
        "--block",
        "8K",
        "--read",
        "70",
        *AS_GIVEN,
        "--rate",
        "3000",
        "--warmup",
        "0.2s",
        "--duration",
        "1s",
        *THREE,
    )
    point = point_of(found)
    begins = [host["point"]["measured_from_utc_ns"] for host in point["hosts"]]
    ends = [host["point"]["measured_to_utc_ns"] for host in point["hosts"]]
    together = point["together"]
    tick_ns = 50_000_000
    assert max(begins) - min(begins) <= together["start_skew_ns"] + tick_ns
    assert max(ends) - min(ends) <= together["last_done_utc_ns"] - together["first_done_utc_ns"] + tick_ns
    assert point["total"]["count"] == sum(host["point"]["total"]["count"] for host in point["hosts"])
    assert point["offered"]["rate"] == 3000
    from assay.record.series import read_series

    rows = read_series(Path(found["run_folder"]))
    assert rows.distinct("host") == ["local-1", "local-2", "local-3"]
    assert "client" in rows.distinct("tier")


@pytest.mark.usefixtures("in_threads")
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_files_of_hosts_are_their_own_and_resume_measures_nothing_again(assay: Assay, tmp_path: Path) -> None:
    words = (*AS_GIVEN, "--block", "8K", "--queue-depth", "1,2", "--warmup", "0s", "--duration", "0.3s", "--size", "4M")
    found = assay("profile", tmp_path / "f-{host}.dat", *words, "--hosts", "local,local")
    assert found["exit_code"] == 0
    assert [volume["name"] for volume in found["target"]["volumes"]] == [
        "local-1:f-local-1.dat",
        "local-2:f-local-2.dat",
    ]
    assert sorted(path.name for path in tmp_path.glob("f-*")) == ["f-local-1.dat", "f-local-2.dat"]

    manifest = Path(found["run_folder"]) / "run.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"status": "interrupted"}))
    points = Path(found["run_folder"]) / "points.jsonl"
    points.write_text(points.read_text().splitlines()[0] + "\n")
    again = assay("profile", "--resume", found["run_folder"])
    assert again["exit_code"] == 0
    assert again["points"][0] == found["points"][0]
    assert [point["load"] for point in again["points"]] == [point["load"] for point in found["points"]]

    os.unlink(tmp_path / "f-local-2.dat")
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"status": "interrupted"}))
    refused = assay("profile", "--resume", found["run_folder"])
    assert refused["exit_code"] == 2
    assert "host local-2: " in refused["complaint"]
    assert "would be made anew" in refused["complaint"]


@pytest.mark.usefixtures("in_threads")
def test_pages_are_verified_on_every_host(assay: Assay, tmp_path: Path) -> None:
    found = assay(
        "verify", tmp_path / "v-{number}.dat", "--size", "24M", "--duration", "0.3s", "--hosts", "local,local"
    )
    assert found["exit_code"] == 0
    told = found["integrity"]
    assert told["passed"] is True
    own = [host["told"]["integrity"] for host in found["hosts"]]
    assert told["pages"] == sum(one["pages"] for one in own)
    assert told["pages_verified"] == sum(one["pages_verified"] for one in own)


@pytest.mark.usefixtures("in_threads")
def test_a_file_that_exists_is_read_by_all_with_shared(assay: Assay, tmp_path: Path) -> None:
    path = tmp_path / "shared"
    path.write_bytes(os.urandom(1 << 22))
    words = (
        *AS_GIVEN,
        "--block",
        "8K",
        "--read",
        "100",
        "--warmup",
        "0s",
        "--duration",
        "0.3s",
        "--hosts",
        "local,local",
    )
    refused = assay("profile", path, *words)
    assert refused["exit_code"] == 2
    assert "are the same; give each host its own" in refused["complaint"]
    found = assay("profile", path, *words, "--shared")
    assert found["exit_code"] == 0
    assert len(point_of(found)["volumes"]) == 1


# Failure


class Killed(Team):
    """A team whose second agent is lost in a phase."""

    phase = ""

    def ask(self, do: str, *arguments: Any, **named: Any) -> Any:
        if do == self.phase:
            member = self.members[1]
            delay_s = 0.4 if do == "measure" else 0.0
            threading.Timer(delay_s, _cut, [member.link]).start() if delay_s else _cut(member.link)
        return super().ask(do, *arguments, **named)


def _cut(link: Any) -> None:
    if isinstance(link, ThreadLink):
        link.is_cut = True
        os.close(link._to_write)
    else:
        link.process.kill()


PHASES = ("secrets", "choose", "begin_run", "examine", "prepare", "open", "step", "measure", "kept", "close", "settle")


def killed_in(phase: str, assay: Assay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(choosing, "Team", Killed)
    monkeypatch.setattr(Killed, "phase", phase)
    words = (*AS_GIVEN, "--block", "8K", "--warmup", "0s", "--duration", "1s", "--size", "4M", "--read", "50")
    found = assay("profile", tmp_path / "f-{host}.dat", *words, *THREE)

    if phase in ("close", "settle"):
        # All was measured by then.
        assert found["exit_code"] == 0
        assert point_of(found)["total"]["count"] > 0
    else:
        assert found["exit_code"] == 3
        complaint = found.get("complaint") or found["error"]
        assert "local-2: " in complaint
        assert "its agent " in complaint or "no agent of Assay begins" in complaint
        for point in found.get("points", ()):
            if phase == "measure":
                assert (point["ended_by"], point["total"]) == ("failed", None)
                assert [host["name"] for host in point["hosts"] if host["lost"]] == ["local-2"]
    monkeypatch.setattr(Killed, "phase", "")
    if "run_folder" in found and found["exit_code"]:
        again = assay("profile", "--resume", found["run_folder"])
        if again["exit_code"] == 2:
            # As on one host: a file that was not made by then is made only where the command says so.
            assert phase in ("begin_run", "prepare")
            assert "would be made anew; give --overwrite" in again["complaint"]
            return
        assert again["exit_code"] == 0, again
        assert again["points"][-1]["total"]["count"] > 0


@pytest.mark.usefixtures("in_threads")
@pytest.mark.parametrize("phase", ["choose", "measure", "close"])
def test_an_agent_that_is_lost_ends_the_run_with_its_name_and_it_goes_on(
    phase: str, assay: Assay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    killed_in(phase, assay, monkeypatch, tmp_path)


@pytest.mark.slow(reason="three of the phases run by default, with agents as threads")
@pytest.mark.parametrize("phase", PHASES)
def test_a_process_that_is_killed_in_any_phase(
    phase: str, assay: Assay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    killed_in(phase, assay, monkeypatch, tmp_path)


def test_an_agent_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, in_threads: list[ThreadLink]) -> None:
    del in_threads
    monkeypatch.setattr(team, "HANG_S", 0.3)
    found = Team([("far", _Silent())])
    with pytest.raises(HostLost, match="host far: its agent has not answered for 0 s"):
        found.ask("hello")
    found.end()


class _Silent:
    """A pipe at whose other end an agent greets, and says nothing more."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._greeting = GREETING

    def write(self, data: bytes) -> None:
        del data

    def read(self, size: int) -> bytes:
        del size
        if greeting := self._greeting:
            self._greeting = b""
            return greeting
        self._over.wait(20)
        return b""

    def why_ended(self) -> str:
        return "is cut off"

    def end(self, *, kill: bool = False) -> None:
        del kill
        self._over.set()


# Bad input


def refused(assay: Assay, *words: str | Path) -> str:
    found = assay("profile", *words)
    assert found["exit_code"] == 2, found
    return str(found["complaint"])


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_names_of_hosts_are_checked(assay: Assay) -> None:
    for hosts in ("a,,b", "-oProxyCommand=x", "a b", "db1:bin/assay"):
        assert "is no host; accepted: NAME" in refused(assay, "null:", "--hosts", hosts)
    assert "--shared: says what hosts have in common" in refused(assay, "null:", "--shared")


@pytest.mark.usefixtures("in_threads")
def test_clocks_hours_apart_are_refused(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    def clock(_self: Team, member: Member) -> ClockOffset:
        return ClockOffset(offset_ns=0 if member.place else -7_200_000_000_000, error_ns=1)

    monkeypatch.setattr(Team, "_clock", clock)
    assert "host local-1: its clock is 2 h 0 min behind this host's; set it" in refused(assay, "null:", *THREE)


@pytest.mark.usefixtures("in_threads")
def test_another_version_of_assay_there_is_refused(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay import _core

    built = _core.build_info()
    versions = iter(["0.0.1", "0.0.1", "0.0.1"])
    monkeypatch.setattr(_core, "build_info", lambda: built | {"version": next(versions, built["version"])})
    assert "and this is" in refused(assay, "null:", *THREE)


@pytest.mark.usefixtures("in_threads")
def test_no_rights_there_names_the_host(assay: Assay, tmp_path: Path) -> None:
    folder = tmp_path / "none"
    found = assay("profile", folder / "x" / "f-{host}.dat", "--size", "4M", "--hosts", "local")
    assert found["exit_code"] in (2, 3)
    assert "host local: " in found["complaint"]


@pytest.mark.usefixtures("in_threads")
def test_less_than_one_for_each_host_is_refused(assay: Assay) -> None:
    complaint = refused(assay, "null:", *AS_GIVEN, "--outstanding", "2", *THREE)
    assert "--outstanding 2: is less than one for each of 3 hosts" in complaint


@pytest.mark.usefixtures("in_threads")
def test_the_same_device_given_twice_by_two_names_is_refused(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    for name in ("local-1", "local-2"):
        (tmp_path / name).symlink_to(tmp_path / "real")
    complaint = refused(assay, tmp_path / "{host}" / "f.dat", "--size", "4M", "--hosts", "local,local")
    assert "f.dat of host local-1 and f.dat of host local-2 are the same" in complaint
    assert not (tmp_path / "real" / "f.dat").exists(), "nothing is written before all hosts are checked"


@pytest.mark.usefixtures("in_threads")
def test_one_disk_by_two_names_on_two_machines_is_refused(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk is known by its WWN and by where on it a partition begins, not by a host's own name for it."""
    names = iter(["sdb1", "nvme1n1p1", "sdb1", "nvme1n1p2"])
    starts = iter(["2048", "2048", "2048", "4096"])

    def identities(_target: object) -> dict[str, list[str]]:
        return {next(names): ["device", "0x5000c500a1b2c3d4", "", next(starts)]}

    monkeypatch.setattr(agent, "identities", identities)
    complaint = refused(assay, "null:", *AS_GIVEN, "--hosts", "local,local")
    assert "of host local-1 and " in complaint
    assert complaint.endswith(" are the same; give each host its own, as by {host} in the name, or --shared")
    others = ("--warmup", "0s", "--duration", "0.3s", "--rate", "1000", "--hosts", "local,local")
    assert assay("profile", "null:", *AS_GIVEN, *others)["exit_code"] == 0


FAKE_SSH = """#!{python}
import os, sys
host, program = sys.argv[sys.argv.index("--") + 1 :][:2]
if host == "away":
    sys.stderr.write("ssh: connect to host away port 22: No route to host\\n"); sys.exit(255)
if host == "bare":
    sys.stderr.write("bash: assay: command not found\\n"); sys.exit(127)
if host == "older":
    sys.stderr.write("No such command 'agent'; see assay --help\\n"); sys.exit(2)
sys.stdout.write("Welcome to " + host + "\\n"); sys.stdout.flush()
os.execv({python!r}, [{python!r}, "-m", "assay", "agent"])
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ssh in the path that starts the agent here."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(FAKE_SSH.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("ssh")
@pytest.mark.parametrize(
    ("host", "code", "words"),
    [
        (
            "away",
            3,
            "host away: cannot be reached (exit code 255: ssh: connect to host away port 22: No route to host)",
        ),
        ("bare", 2, "host bare: has no Assay (exit code 127: bash: assay: command not found); install it there"),
        ("older", 3, "host older: no agent of Assay begins there (exit code 2: No such command 'agent'"),
    ],
)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_host_that_is_no_use_is_told(assay: Assay, host: str, code: int, words: str) -> None:
    found = assay("profile", "null:", "--hosts", host)
    assert found["exit_code"] == code
    assert words in found["complaint"]


@pytest.mark.usefixtures("ssh")
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_ssh_starts_the_same_agent_whatever_the_shell_prints_before(assay: Assay) -> None:
    found = assay("profile", *MODEL, *AS_GIVEN, "--hosts", "me@db1,local")
    assert found["exit_code"] == 0
    assert [host["name"] for host in point_of(found)["hosts"]] == ["db1", "local"]


def test_passwords_go_over_the_pipe_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither arguments nor the environment of an agent's process hold them."""
    from assay.base import secrets

    monkeypatch.setattr(secrets, "_kept", {"ASSAY_SECRET_1": secrets.Secret("tell-nobody")})
    monkeypatch.setattr(secrets, "_typed", [secrets.Secret("typed-by-hand")])
    monkeypatch.setenv("ASSAY_SECRET_1", "tell-nobody")
    link = links.ProcessLink(links.agent_command())
    found = Team([("local", link)])
    try:
        team.greet(found)
        words, typed = secrets.secrets_for_wire()
        found.ask("secrets", {"words": words, "typed": typed})
        process = Path("/proc") / str(link.process.pid)
        seen = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
    finally:
        found.end()
    assert (words, typed) == ({"ASSAY_SECRET_1": "tell-nobody"}, "typed-by-hand")
    assert b"tell-nobody" not in seen
    assert b"typed-by-hand" not in seen
    assert not any(b"tell-nobody" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_an_agent_ends_when_its_coordinator_is_killed(tmp_path: Path) -> None:
    """Also where the coordinator had no time to say so."""
    command = [sys.executable, "-m", "assay", "profile", str(tmp_path / "f-{host}.dat"), "--size", "4M",
               "--duration", "60s", "--hosts", "local", "--no-report", "-o", str(tmp_path / "results")]  # fmt: skip
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    for line in run.stderr:
        if "measuring" in line or "warm-up" in line:
            break
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stderr.close()
    assert children
    until(lambda: not any(is_running(int(child)) for child in children), seconds=30)


@pytest.mark.usefixtures("in_threads")
def test_the_report_tells_of_hosts_and_how_far_apart_they_measured(assay: Assay) -> None:
    from assay.document.elements import Table
    from assay.record.run_folder import RunFolder
    from assay.report.sections.hosts import hosts_blocks

    words = ("--search", "none", "--block", "8K", "--rate", "2000", "--warmup", "0s", "--duration", "0.3s")
    folder = RunFolder.open(Path(assay("profile", "null:", *words, "--hosts", "local,local")["run_folder"]))
    tables = {block.name: block for block in hosts_blocks(folder.manifest, folder.points()) if isinstance(block, Table)}
    assert [row[0].text for row in tables["hosts"].rows] == ["local-1", "local-2"]
    assert [row[1].text for row in tables["hosts-skew"].rows] == ["2"]
    assert hosts_blocks({"hosts": None}, []) == []


@pytest.mark.usefixtures("in_threads")
def test_drives_of_hosts_are_told_with_the_points_in_which_they_throttled(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = itertools.count()

    def look(*_: object, **__: object) -> DriveHealth:
        return DriveHealth(utc_ns=time.time_ns(), temperature_celsius=81.0, throttles=next(looks))

    def examined(name: str, **_: object) -> Drive:
        return Drive(name=name, model="M", told_by="nvme-cli", before=look())

    machines = iter(("a" * 16, "b" * 16))
    monkeypatch.setattr(agent, "machine", lambda: next(machines))
    monkeypatch.setattr(drives, "drives_beneath", lambda *_: ["nvme0n1"])
    monkeypatch.setattr(collecting, "examine", examined)
    monkeypatch.setattr(collecting, "look", look)
    ran = assay(
        "profile", tmp_path / "{host}.dat", "--size", "1M", "--block", "4K", "--read", "100", "--queue-depth", "1,2",
        "--warmup", "0s", "--duration", "0.2s", "--hosts", "local,local",
    )  # fmt: skip

    with RunFolder.open(Path(ran["run_folder"])) as folder:
        found = folder.manifest["target"]["drives"]
        notices = folder.manifest["notices"]
    points = [point["id"] for point in ran["points"]]
    assert [one["name"] for one in found] == ["local-1:nvme0n1", "local-2:nvme0n1"]
    assert [one["points_throttled"] for one in found] == [points, points]
    assert any(
        text.startswith("local-2:nvme0n1 (M) was at up to 81 degrees and throttled in 2 of 2 points")
        for text in notices
    )
