"""A content that was seen after a crash is judged as the enumeration of states would have it, in both directions."""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay import _core
from assay.insight.crash.membership import BASE, CrashJudge, Membership, SeenVolume, durable_requests
from assay.insight.crash.promises import LIAR, Promises
from assay.insight.crash.write_log import SECTOR_BYTES, WriteLog, read_write_log
from cut_drive import DISCARD, DRIVES, FLUSH, WRITE, CutDrive, LogWriter
from mounting import needs_own_fuse

VOLUME_BYTES = 16 << 10
MOST_PIECES = 6
"""Each subset of them is a state, so they are few."""

SECTORS = VOLUME_BYTES // SECTOR_BYTES
PROMISES = (
    Promises(),
    Promises(atomic_bytes=4096),
    Promises(atomic_bytes=None),
    Promises(order="submitted"),
    Promises(order="submitted", atomic_bytes=4096),
    Promises(volatile_cache=False),
    Promises(fua=False),
    Promises(deterministic_discard=False),
    LIAR,
)


@dataclass(frozen=True)
class Step:
    """A request: `held` ones complete one step later."""

    kind: int
    sector: int = 0
    sectors: int = 0
    byte: int = 0
    fua: bool = False
    held: bool = False


def requests(most: int) -> st.SearchStrategy[list[Step]]:
    """Requests near the boundaries of parts of 4 KiB, with few bytes, so that contents repeat."""
    place = {"sector": st.integers(4, 20), "sectors": st.integers(1, 10)}
    fua = st.sampled_from([False] * 4 + [True])
    write = st.builds(Step, st.just(WRITE), **place, byte=st.integers(0, 3), fua=fua, held=st.booleans())
    discard = st.builds(Step, st.just(DISCARD), **place, held=st.booleans())
    flush = st.builds(Step, st.just(FLUSH), held=st.booleans())
    return st.lists(st.one_of(write, write, write, flush, discard), min_size=1, max_size=most)


def logged(path: Path, steps: list[Step]) -> None:
    """Log requests; one that is held completes after the next one was submitted, the last one never."""
    log = LogWriter(path, VOLUME_BYTES)
    held: list[int] = []
    for step in steps:
        size = step.sectors * SECTOR_BYTES
        data = bytes([step.byte]) * size if step.kind == WRITE else b""
        number = log.submit(step.kind, step.sector * SECTOR_BYTES, data, length=size, fua=step.fua)
        for before in held:
            log.complete(before)
        held = [number] if step.held else []
        if not step.held:
            log.complete(number)
    log.close()


class Judged:
    """Contents judged at the end of a log over a volume of zeroes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log, self.base, self.image = folder / "log", folder / "base", folder / "image"
        self.base.write_bytes(bytes(VOLUME_BYTES))

    def membership(self, content: bytes, promises: Promises) -> Membership:
        self.image.write_bytes(content)
        with (
            SeenVolume(self.base, "base") as base,
            SeenVolume(self.image, "image") as image,
            read_write_log(self.log, VOLUME_BYTES) as log,
        ):
            return CrashJudge(log, base, image).membership(promises)


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    return Judged(tmp_path)


@pytest.fixture
def served(judged: Judged) -> Iterator[_core.CrashVolume]:
    place = judged.folder / "served"
    place.mkdir()
    volume = _core.CrashVolume(place, judged.base, volume_bytes=VOLUME_BYTES)
    yield volume
    volume.close()


def enumerated(volume: _core.CrashVolume, judged: Judged, promises: Promises) -> set[bytes]:
    """All contents that the core enumerates at the end of the log."""
    states = _core.CrashStates(judged.log, judged.base, promises.to_json())
    last = states.counts()["points"] - 1
    pieces = len(states.missing(f"1:{last}:none"))
    if promises.order == "submitted":
        masks = [f"<{count}" for count in range(pieces + 1)]
    else:
        lacking = itertools.chain.from_iterable(
            itertools.combinations(range(pieces), count) for count in range(pieces + 1)
        )
        masks = ["-" + ",".join(map(str, one)) for one in lacking]
    found = set()
    for mask in masks:
        volume.show(states, f"1:{last}:{mask}")
        found.add(Path(volume.path).read_bytes())
    return found


def pieces(judged: Judged, promises: Promises) -> int:
    states = _core.CrashStates(judged.log, judged.base, promises.to_json())
    return len(states.missing(f"1:{states.counts()['points'] - 1}:none"))


def neighbours(content: bytes, random_: random.Random) -> bytes:
    """A content that differs in one sector, or in a few."""
    changed = bytearray(content)
    for _ in range(random_.choice((1, 1, 2, 5))):
        sector = random_.randrange(3, 31)
        changed[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES] = bytes([random_.randrange(4)]) * SECTOR_BYTES
    return bytes(changed)


@needs_own_fuse
@pytest.mark.parametrize("promises", PROMISES, ids=lambda one: one.words)
def test_a_content_is_allowed_exactly_if_it_is_enumerated(
    judged: Judged, served: _core.CrashVolume, promises: Promises
) -> None:
    @given(steps=requests(6), seed=st.integers(0, 1 << 30))
    def tried(steps: list[Step], seed: int) -> None:
        logged(judged.log, steps)
        if promises.order == "any" and pieces(judged, promises) > MOST_PIECES:
            return
        states = enumerated(served, judged, promises)
        draw = random.Random(seed)
        for content in states:
            assert judged.membership(content, promises).is_allowed
        for content in sorted(states)[:8]:
            other = neighbours(content, draw)
            assert judged.membership(other, promises).is_allowed == (other in states)

    tried()


@needs_own_fuse
@given(seed=st.integers(0, 1 << 30))
def test_planned_states_of_a_longer_log_are_all_allowed_at_their_crash_point(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    judged = Judged(tmp_path_factory.mktemp("planned"))
    draw = random.Random(seed)
    log = LogWriter(judged.log, VOLUME_BYTES)
    for _ in range(40):
        data = draw.randbytes(SECTOR_BYTES) * draw.randint(1, 8)
        log.complete(log.submit(WRITE, draw.randrange(0, 24) * SECTOR_BYTES, data, fua=draw.random() < 0.1))
        if draw.random() < 0.2:
            log.complete(log.submit(FLUSH))
    log.close()
    place = judged.folder / "served"
    place.mkdir()
    volume = _core.CrashVolume(place, judged.base, volume_bytes=VOLUME_BYTES)
    try:
        states = _core.CrashStates(judged.log, judged.base, Promises().to_json())
        last = states.counts()["points"] - 1
        for name, _, _ in states.plan(seed, 60)[0]:
            if int(name.split(":")[1]) == last:
                volume.show(states, name)
                assert judged.membership(Path(volume.path).read_bytes(), Promises()).is_allowed
    finally:
        volume.close()
        shutil.rmtree(judged.folder)


@given(steps=requests(12))
def test_a_content_without_one_durable_write_is_not_allowed_and_the_write_is_named(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    judged = Judged(tmp_path_factory.mktemp("lost"))
    unique = [replace(step, byte=number + 1) for number, step in enumerate(steps)]
    logged(judged.log, unique)
    with read_write_log(judged.log, VOLUME_BYTES) as log:
        without_one_durable_write(judged, log)
    shutil.rmtree(judged.folder)


def without_one_durable_write(judged: Judged, log: WriteLog) -> None:
    durable = durable_requests(log, Promises())
    content, source = bytearray(VOLUME_BYTES), [BASE] * SECTORS
    for number, request in enumerate(log.requests):
        if request.changes:
            place = request.sectors
            content[place.start * SECTOR_BYTES : place.stop * SECTOR_BYTES] = log.contents(number).tobytes()
            source[place] = [number] * (place.stop - place.start)
    assert judged.membership(bytes(content), Promises()).is_allowed
    for sector, number in enumerate(source):
        if number in durable and log.requests[number].kind == "write":
            content[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES] = bytes(SECTOR_BYTES)
            found = judged.membership(bytes(content), Promises())
            assert (found.wrong.tolist(), found.expected.tolist()) == ([sector], [number])
            assert judged.membership(bytes(content), LIAR).is_allowed
            return


KEPT = {
    "write-through": Promises(volatile_cache=False),
    "torn at 512 B": Promises(),
    "torn at 4 KiB": Promises(atomic_bytes=4096),
    "atomic 16 KiB": Promises(atomic_bytes=16384),
    "in order": Promises(order="submitted"),
    "lying": LIAR,
}
"""The promises that each kind of drive keeps."""


def cut(name: str, judged: Judged, seed: int) -> bytes:
    """Work on a drive until its power is cut at a moment that the seed says; what it has then."""
    medium = judged.folder / "medium"
    medium.write_bytes(bytes(VOLUME_BYTES))
    draw = random.Random(seed)
    drive = CutDrive(DRIVES[name], medium, judged.log, seed)
    for _ in range(draw.randrange(10, 120)):
        choice = draw.random()
        if choice < 0.4:
            sectors = draw.choice((1, 2, 8, 8, 9, 16))
            place = draw.randrange(0, VOLUME_BYTES // SECTOR_BYTES - sectors + 1) * SECTOR_BYTES
            drive.write(place, draw.randbytes(sectors * SECTOR_BYTES), lambda: None, fua=draw.random() < 0.1)
        elif choice < 0.5:
            drive.flush(lambda: None)
        elif choice < 0.6:
            drive.idle()
        else:
            drive.step()
    drive.close()
    return medium.read_bytes()


@pytest.mark.parametrize("name", KEPT)
def test_what_a_drive_has_after_a_cut_is_allowed_by_the_promises_that_it_keeps(judged: Judged, name: str) -> None:
    for seed in range(20):
        assert judged.membership(cut(name, judged, seed), KEPT[name]).is_allowed, seed


@pytest.mark.parametrize(
    ("name", "promises"),
    [
        ("lying", Promises()),
        ("torn at 512 B", Promises(volatile_cache=False)),
        ("torn at 512 B", Promises(atomic_bytes=4096)),
        ("torn at 4 KiB", Promises(atomic_bytes=16384)),
        ("torn at 512 B", Promises(order="submitted")),
    ],
)
def test_what_a_drive_has_after_a_cut_breaks_promises_that_it_does_not_keep(
    judged: Judged, name: str, promises: Promises
) -> None:
    allowed = sum(judged.membership(cut(name, judged, seed), promises).is_allowed for seed in range(12))
    assert allowed < 6


SERVER = Path(__file__).parents[2] / "lab" / "cut_disk.py"


@pytest.mark.skipif(shutil.which("qemu-io") is None, reason="needs qemu-io")
@pytest.mark.parametrize("name", KEPT)
def test_a_served_drive_that_loses_its_power_by_itself_has_an_allowed_content(judged: Judged, name: str) -> None:
    place, medium = judged.folder / "socket", judged.folder / "medium"
    medium.write_bytes(bytes(VOLUME_BYTES))
    draw = random.Random(name)
    commands = []
    for _ in range(80):
        sectors = draw.choice((1, 2, 8, 9, 16))
        offset = draw.randrange(0, SECTORS - sectors + 1) * SECTOR_BYTES
        commands += ["-c", f"aio_write -P {draw.randrange(1, 250)} {offset} {sectors * SECTOR_BYTES}"]
        if draw.random() < 0.1:
            commands += ["-c", "aio_flush"]
    server = subprocess.Popen([sys.executable, "-S", SERVER, place, medium, judged.log, name, "1", "20", "60"])
    try:
        while not place.exists():
            assert server.poll() is None
        address = f"nbd+unix:///?socket={place}"
        asked = ["qemu-io", "-t", "writeback", "-f", "raw", address, *commands]
        subprocess.run(asked, capture_output=True, check=False)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.wait()
    assert judged.membership(medium.read_bytes(), KEPT[name]).is_allowed
    with read_write_log(judged.log, VOLUME_BYTES) as log:
        assert len(log.requests) >= 20
