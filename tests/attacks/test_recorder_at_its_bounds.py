"""The flight recorder where a host is not as expected: its clock, its size, its signals, its rights, its terminal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.record.flight import read_recording, spreads, told_of
from assay.telemetry.collectors import volumes
from assay.telemetry.collectors.block import DEVICES_MAX, BlockCollector, busiest
from assay.telemetry.collectors.interfaces import InterfacesCollector
from assay.telemetry.collectors.multipath import PATHS_MAX, first_paths
from assay.telemetry.collectors.processes import PROGRAMS_MAX, ProcessesCollector
from assay.telemetry.collectors.volumes import VolumesCollector
from assay.telemetry.columns import Reading
from assay.telemetry.flight.unit import CAPABILITIES
from assay.telemetry.flight.writer import FlightWriter
from assay.telemetry.recorder import Recorder

SECOND = 10**9
MINUTE = 60 * SECOND
BEGIN_NS = 1_800_000_000 * SECOND // (15 * MINUTE) * (15 * MINUTE)
WAIT_S = 60.0


def until(condition: Callable[[], Any]) -> None:
    """Wait for something that must come about."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def feed(writer: FlightWriter, seconds: int, begin_ns: int, *, first_s: int = 1) -> int:
    """Samples a second apart, of which the first has another interval where the clock was set; when they end."""
    for number in range(1, seconds + 1):
        reading = Reading("sda", "ios_count", "delta", 7.0)
        t_ns = begin_ns + number * SECOND
        writer.add([reading], t_ns=t_ns, interval_ns=SECOND if number > 1 else first_s * SECOND, tier="storage",
                   source="block")  # fmt: skip
        if number % 5 == 0:
            writer.commit()
    writer.commit()
    return begin_ns + seconds * SECOND


@pytest.mark.parametrize(
    ("jump_s", "words"),
    [(-3600, "went back by 3,600 s"), (86_400, "went forward, or the host slept, by 86,400 s"), (-7, "back by 7 s")],
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_clock_that_is_set_is_told_and_costs_no_sample(tmp_path: Path, jump_s: int, words: str) -> None:
    """Samples of both passes of an hour were folded into one another, and the second had no minutes for an hour."""
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        end_ns = feed(writer, 3600, BEGIN_NS)
        feed(writer, 3600, end_ns + jump_s * SECOND)
        assert [text for text in writer.notices if words in text]

    values = read_recording(tmp_path).value.tolist()
    assert len(values) == 7200
    assert sum(values) == 7200 * 7.0
    found = spreads(tmp_path, ["ios_count"])["db1", "block", "sda", "ios_count"]
    assert sum(found.histogram.values()) == 7200
    assert found.most == 7.0
    told = told_of(tmp_path)
    assert any(words in text for text in told["notices"])
    if jump_s > 0:
        assert [end_ns, end_ns + jump_s * SECOND] in told["gaps_utc_ns"]


def test_a_clock_that_is_slewed_is_no_news(tmp_path: Path) -> None:
    """NTP slows a clock down by half a thousandth: no jump is told, and no gap."""
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        for number in range(1, 1000):
            t_ns = BEGIN_NS + number * SECOND * 9995 // 10_000
            reading = Reading("sda", "ios_count", "delta", 7.0)
            writer.add([reading], t_ns=t_ns, interval_ns=SECOND, tier="storage", source="block")
        writer.commit()
        assert writer.notices == []
    assert len(read_recording(tmp_path)) == 999


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_clock_that_never_stands_still_fills_neither_memory_nor_file(tmp_path: Path) -> None:
    """A clock that jumps at each sample: notices are bounded."""
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        for number in range(1, 1000):
            reading = Reading("sda", "ios_count", "delta", 7.0)
            t_ns = BEGIN_NS + (number * 7919 % 1000) * 100 * SECOND
            writer.add([reading], t_ns=t_ns, interval_ns=SECOND, tier="storage", source="block")
        writer.commit()
        assert len(writer.notices) <= 200
    assert len(read_recording(tmp_path)) == 999
    assert len(told_of(tmp_path)["notices"]) <= 201


def many_disks(path: Path, count: int, ios: Callable[[int], int]) -> list[str]:
    names = [f"sd{number}" for number in range(count)]
    path.write_text(
        "".join(
            f"   8 {number} {name} {ios(number)} 0 {number * 8} 5 7 0 800 6 0 10 20 0 0 0 0 1 2\n"
            for number, name in enumerate(names)
        )
    )
    return names


def test_of_very_many_devices_the_busiest_are_recorded_and_that_is_told(tmp_path: Path) -> None:
    """5,000 block devices: 65,000 series a second, of which the first 4,000 were kept whatever they did."""
    names = many_disks(tmp_path / "diskstats", 5000, lambda number: number)
    told: list[str] = []

    chosen = busiest(names, ["sd3"], told.append, tmp_path / "diskstats")

    assert len(chosen) == DEVICES_MAX
    assert {"sd3", "sd4999", "sd4800"} <= set(chosen)
    assert "sd4" not in chosen
    assert "5,000 block devices" in told[0]
    collector = BlockCollector(chosen, path=tmp_path / "diskstats", totals=True)
    before = collector.sample()
    many_disks(tmp_path / "diskstats", 5000, lambda number: number + 9)
    found = list(collector.readings(before, collector.sample(), SECOND))
    collector.close()
    assert {one.entity for one in found} == set(chosen)
    assert len({(one.entity, one.metric) for one in found}) < 4000


def test_of_very_many_paths_the_first_are_recorded_and_that_is_told() -> None:
    told: list[str] = []
    chosen = first_paths({f"dm-{one}": [f"sd{one}a", f"sd{one}b"] for one in range(1000)}, told.append)
    assert sum(map(len, chosen.values())) == PATHS_MAX
    assert "1,000 multipath devices" in told[0]


@pytest.mark.slow(reason="starts ten thousand names")
def test_ten_thousand_processes_are_twenty_programs(tmp_path: Path) -> None:
    """10,000 processes of 10,000 names, in a look."""
    for pid in range(1, 10_001):
        own = tmp_path / str(pid)
        own.mkdir()
        (own / "stat").write_text(f"{pid} (program{pid % 5000}) S 1 {'0 ' * 9}{pid} 5 0 0 0 0 0 0 {pid}\n")
        (own / "io").write_text(f"rchar: 1\nread_bytes: {pid}\nwrite_bytes: 0\n")
    collector = ProcessesCollector(tmp_path, every_s=0.0)
    first = collector.sample()
    for pid in range(1, 10_001):
        (tmp_path / str(pid) / "io").write_text(f"rchar: 1\nread_bytes: {pid * 3}\nwrite_bytes: 0\n")
    found = list(collector.readings(first, collector.sample(), SECOND))
    assert len({one.entity for one in found}) == PROGRAMS_MAX
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_two_thousand_file_systems_of_which_many_hang_keep_nothing_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one that hangs cost two seconds, one after the other, in which nothing else was recorded."""
    now_s = [1000.0]
    asked: list[str] = []

    def hang(seconds: float, function: Callable[[], Any], *, what: str) -> Any:
        asked.append(what)
        if int(what.rpartition("/")[2]) % 2:
            now_s[0] += seconds
            raise volumes.NotAnswering(what)
        return function()

    monkeypatch.setattr(volumes, "mount_points", lambda: {f"nas:/{one}": f"/mnt/{one}" for one in range(2000)})
    monkeypatch.setattr(volumes, "answer_within", hang)
    monkeypatch.setattr(volumes.os, "statvfs", lambda _: os.statvfs_result((4096, 4096, 10, 5, 5, 1, 1, 1, 0, 255)))
    monkeypatch.setattr(volumes.time, "monotonic", lambda: now_s[0])
    collector = VolumesCollector()

    collector.sample()

    assert now_s[0] - 1000.0 <= 8.0
    assert any("does not answer" in text for text in collector.missing)
    now_s[0] += 60
    before = len(asked)
    collector.sample()
    assert "/mnt/1" not in asked[before:]
    # Every one gets its turn, however many there are.
    for _ in range(1000):
        now_s[0] += 60
        collector.sample()
    assert "/mnt/1998" in asked


class Costly:
    """A collector whose looks take time of the processor."""

    name, tier, source = "costly", "storage", "block"

    def __init__(self) -> None:
        self.looks_ns: list[int] = []

    def sample(self) -> int:
        self.looks_ns.append(time.monotonic_ns())
        until_ns = time.thread_time_ns() + 40_000_000
        while time.thread_time_ns() < until_ns:
            pass
        return len(self.looks_ns)

    def readings(self, before: int, after: int, _: int) -> list[Reading]:
        return [Reading("sda", "ios_count", "delta", float(after - before))]

    def close(self) -> None:
        """Nothing is held."""


def test_what_costs_much_is_looked_at_less_often_and_that_is_told() -> None:
    """Thousands of devices took a fifth of a core, each second."""
    costly = Costly()
    recorder = Recorder([costly], interval_s=0.01, cost_share=0.01)
    for _ in range(50):
        recorder.sample()
        time.sleep(0.002)

    # Forty milliseconds are four seconds of a hundredth of a core.
    assert len(costly.looks_ns) == 1
    assert any("costs more processor time" in text for text in recorder.notices)


def test_ten_thousand_interfaces_are_bounded_in_the_file(tmp_path: Path) -> None:
    head = "Inter-|\n face |\n"
    lines = "".join(f"  veth{one}: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n" for one in range(10_000))
    (tmp_path / "dev").write_text(head + lines)
    folder = tmp_path / "rec"
    folder.mkdir()
    collector = InterfacesCollector(tmp_path / "dev", tmp_path / "none")
    before, after = collector.sample(), collector.sample()
    with FlightWriter(folder, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        for number in range(1, 4):
            writer.add(collector.readings(before, after, SECOND), t_ns=BEGIN_NS + number * SECOND, interval_ns=SECOND,
                       tier="client", source="net")  # fmt: skip
        writer.commit()
        assert writer.notices == ["net: more than 4,000 series; new ones are left out"]
    collector.close()
    assert len(read_recording(folder)) == 3 * 4000


def test_series_that_come_and_go_are_recorded_for_months(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that change each day used up the series of a collector: after weeks new ones were left out for ever."""
    from assay.telemetry.flight import level

    monkeypatch.setattr(level, "SPANS_NS", (MINUTE, 10**18, 10**18))
    with FlightWriter(tmp_path, keep_bytes=64 << 20, host="db1") as writer:
        writer.begin({"host": "db1"})
        for number in range(12):
            for step in range(1, 7):
                found = [Reading(f"pod{number}-{one}", "in_bytes", "delta", 1.0) for one in range(900)]
                t_ns = BEGIN_NS + number * MINUTE + step * 10 * SECOND
                writer.add(found, t_ns=t_ns, interval_ns=10 * SECOND, tier="client", source="net")
            writer.commit()
        assert writer.notices == []
    rows = read_recording(tmp_path)
    assert len(rows.distinct("entity")) == 12 * 900


ALONE = """
import json, os, sys
from assay.telemetry.flight import process
process.COMMIT_S = 0.2
flight = process.Flight(json.loads(sys.argv[1]), process._say)
process.end_at_signals(flight)
sys.exit(flight.run())
"""


def settings_of(folder: Path) -> str:
    return json.dumps(
        {"folder": str(folder), "keep_bytes": 64 << 20, "interval_s": 0.2, "for_s": None, "roles": {}, "databases": [],
         "metrics": None, "processes": False, "told": {}}
    )  # fmt: skip


def started(folder: Path, *, before: str = "", **options: Any) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen([sys.executable, "-c", before + ALONE, settings_of(folder)], **options)


def is_recording(folder: Path) -> bool:
    try:
        return len(read_recording(folder)) > 0
    except Exception:
        return False


def test_a_terminal_that_hangs_up_ends_a_recorder_cleanly(tmp_path: Path) -> None:
    """SIGHUP killed it: what was in memory was lost, and the exit code was that of a signal."""
    folder = tmp_path / "rec"
    # Whoever runs the tests may ignore the signal, which processes inherit.
    alone = started(folder, before="import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n")
    try:
        until(lambda: is_recording(folder))
        alone.send_signal(signal.SIGHUP)
        assert alone.wait(WAIT_S) == 0
    finally:
        alone.kill()
        alone.wait()
    assert not list(folder.glob("*-wal"))


@pytest.mark.parametrize("why", ["nohup", "service"])
def test_a_hangup_that_is_ignored_or_meant_for_a_service_ends_nothing(tmp_path: Path, why: str) -> None:
    folder = tmp_path / "rec"
    before = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        if why == "nohup"
        else "import os; os.environ['SYSTEMD_EXEC_PID'] = str(os.getpid())\n"
    )
    alone = started(folder, before=before)
    try:
        until(lambda: is_recording(folder))
        alone.send_signal(signal.SIGHUP)
        rows = len(read_recording(folder))
        until(lambda: len(read_recording(folder)) > rows + 20)
        assert alone.poll() is None
        alone.terminate()
        assert alone.wait(WAIT_S) == 0
    finally:
        alone.kill()
        alone.wait()


def test_a_pipe_that_is_gone_ends_no_recording(tmp_path: Path) -> None:
    """What it says went into a pipe whose reader ended: it died of its own note."""
    folder = tmp_path / "rec"
    reading, writing = os.pipe()
    os.close(reading)
    alone = started(folder, stderr=writing)
    os.close(writing)
    try:
        until(lambda: is_recording(folder))
        (folder / "recording-000001.sqlite").unlink()
        # It has to tell that, and goes on.
        until(lambda: (folder / "recording-000002.sqlite").exists() and is_recording(folder))
        alone.terminate()
        assert alone.wait(WAIT_S) == 0
    finally:
        alone.kill()
        alone.wait()


def test_a_recording_that_is_damaged_under_a_recorder_is_one_line_of_it(tmp_path: Path) -> None:
    """It ended in twenty lines of traceback, with the exit code of a limit that is missed."""
    folder, told = tmp_path / "rec", tmp_path / "told"
    with told.open("w") as file:
        alone = started(folder, stderr=file)
    try:
        until(lambda: is_recording(folder))
        (folder / "recording-000001.sqlite").unlink()
        (folder / "recording-000001.sqlite").write_bytes(b"\0" * 50_000)
        until(lambda: "is damaged" in told.read_text())
        until(lambda: is_recording(folder))
        alone.terminate()
        assert alone.wait(WAIT_S) == 0
    finally:
        alone.kill()
        alone.wait()
    assert "Traceback" not in told.read_text()
    assert sum("is damaged" in line for line in told.read_text().splitlines()) == 1


def test_two_recorders_of_which_one_is_killed(tmp_path: Path) -> None:
    """The second is refused while the first lives, and goes on after it."""
    folder = tmp_path / "rec"
    first = started(folder)
    try:
        until(lambda: is_recording(folder))
        second = started(folder, stderr=subprocess.DEVNULL)
        assert second.wait(WAIT_S) != 0
        first.kill()
        first.wait()
        rows = len(read_recording(folder))
        third = started(folder)
        try:
            until(lambda: len(read_recording(folder)) > rows)
            third.terminate()
            assert third.wait(WAIT_S) == 0
        finally:
            third.kill()
            third.wait()
    finally:
        first.kill()
        first.wait()
    assert not list(folder.glob("*.damaged"))


SOURCES = """
import json, sys
from assay.telemetry.flight.process import collectors_of
found = {}
for one in collectors_of({"processes": True}, lambda text: None):
    try:
        first = one.sample()
        found[one.name] = True
    except Exception as error:
        found[one.name] = False
print(json.dumps(found))
"""


def sources_with(capabilities: str) -> dict[str, bool]:
    """Which collectors work for a user who has these rights alone."""
    names = [f"+{name.removeprefix('CAP_').lower()}" for name in capabilities.split()]
    kept = ",".join(["-all", *names])
    rights = [f"--{which}={kept}" for which in ("inh-caps", "ambient-caps", "bounding-set")]
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *rights, "--no-new-privs"]
    command += [sys.executable, "-c", SOURCES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no such process can be made here: {done.stderr[-200:]}")
    found: dict[str, bool] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="dropping rights takes root and setpriv"
)
def test_the_rights_of_the_unit_are_those_of_the_programs_and_of_nothing_else() -> None:
    """The unit kept CAP_DAC_READ_SEARCH: with each right left out, what is recorded and what is not."""
    both = sources_with(CAPABILITIES)
    without = {left_out: sources_with(" ".join(one for one in CAPABILITIES.split() if one != left_out))
               for left_out in CAPABILITIES.split()}  # fmt: skip
    none = sources_with("")

    assert both["processes"]
    for found in (*without.values(), none):
        # Each right without the other is of no use, and nothing else takes one.
        assert found == both | {"processes": False}


@pytest.mark.slow(reason="the budget is held in tests/telemetry/test_flight.py")
def test_a_recorder_stays_small(tmp_path: Path) -> None:
    """Of a large host: memory of the process that records, with samples, minutes and quarter hours of 4,000 series."""
    script = f"""
from pathlib import Path
from assay.telemetry.columns import Reading
from assay.telemetry.flight.writer import FlightWriter
S = 10**9
with FlightWriter(Path({str(tmp_path)!r}), keep_bytes=64 << 20, host="h") as writer:
    writer.begin({{"host": "h"}})
    for number in range(1, 300):
        found = [Reading(f"e{{one}}", "m_count", "delta", float(number * one % 97)) for one in range(4000)]
        writer.add(found, t_ns=1_800_000_000 * S + number * 10 * S, interval_ns=10 * S, tier="storage", source="block")
        writer.commit()
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 50 * 1024
