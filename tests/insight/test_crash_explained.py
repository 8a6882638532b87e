"""What `assay crash explain` says of a disk after a power cut, from logs of each kind."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assay.apps.cli.app import app
from assay.base.errors import AssayError, ExitCode, UsageError
from assay.insight.crash.explanation import explain
from assay.insight.crash.promises import Promises
from cut_drive import DISCARD, FLUSH, WRITE, LogWriter

PAGE = 4096
VOLUME_BYTES = 16 * PAGE
DM_MAGIC = 0x6A736677736872
DM_FLUSH, DM_FUA, DM_DISCARD, DM_MARK = 1, 2, 4, 8


def pages(*bytes_: int) -> bytes:
    return b"".join(bytes([byte]) * PAGE for byte in bytes_)


def disk(**pages_: int) -> bytes:
    """A disk of zeroes but for some pages: `disk(p3=7)`."""
    found = bytearray(VOLUME_BYTES)
    for name, byte in pages_.items():
        at = int(name[1:]) * PAGE
        found[at : at + PAGE] = bytes([byte]) * PAGE
    return bytes(found)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A flushed 1 in page 1, then a 2 there; a 3 in pages 4 and 5; page 9 discarded; a forced 4 in page 6."""
    writer = LogWriter(tmp_path / "log", VOLUME_BYTES)
    writer.complete(writer.submit(WRITE, PAGE, pages(1)))
    writer.complete(writer.submit(FLUSH))
    writer.complete(writer.submit(WRITE, PAGE, pages(2)))
    writer.complete(writer.submit(WRITE, 4 * PAGE, pages(3, 3)))
    writer.complete(writer.submit(DISCARD, 9 * PAGE, length=PAGE))
    writer.complete(writer.submit(WRITE, 6 * PAGE, pages(4), fua=True))
    writer.close()
    return tmp_path / "log"


@pytest.fixture
def dm_log(tmp_path: Path) -> Path:
    """The same in the format of dm-log-writes, with a mark; the count is out of date."""
    entries = [
        (PAGE, PAGE, 0, pages(1)),
        (0, 0, DM_FLUSH, b""),
        (0, 0, DM_MARK, b""),
        (PAGE, PAGE, 0, pages(2)),
        (4 * PAGE, 2 * PAGE, 0, pages(3, 3)),
        (9 * PAGE, PAGE, DM_DISCARD, b""),
        (6 * PAGE, PAGE, DM_FUA, pages(4)),
    ]
    text = struct.pack("<QQQI", DM_MAGIC, 1, 2, 512).ljust(512, b"\0")
    for offset, length, flags, data in entries:
        text += struct.pack("<QQQQ", offset // 512, length // 512, flags, 0).ljust(512, b"\0") + data
    (tmp_path / "dm").write_bytes(text + bytes(4096))
    return tmp_path / "dm"


def explained(log: Path, content: bytes, *options: str) -> Result:
    image = log.with_name("image")
    image.write_bytes(content)
    return CliRunner().invoke(app, ["crash", "explain", str(image), "--log", str(log), *options])


@pytest.mark.parametrize("which", ["log", "dm_log"])
@pytest.mark.parametrize(
    ("content", "options", "code", "words"),
    [
        (disk(p1=1, p6=4), [], 0, "3 requests outstanding at the crash: 1 there, 0 in part, 2 not there"),
        (disk(p1=2, p4=3, p6=4), [], 0, "2 there, 1 in part, 0 not there"),
        (disk(p6=4), [], 4, "write 0 (4 KiB at 4096"),
        (disk(p6=4), [], 4, "4 KiB of it are not there, from 4096 on"),
        (disk(p6=4), [], 4, "was durable by flush 1"),
        (disk(p6=4), [], 4, "the storage broke a promise: flush honoured. Without"),
        (disk(p6=4), ["--withdraw", "flush"], 0, "flush ignored"),
        (disk(p1=1), [], 4, "was durable by itself; 4 KiB of it are not there, from 24576 on"),
        (disk(p1=1), [], 4, "the storage broke a promise: FUA honoured. Without"),
        (disk(), [], 4, "the storage broke a promise: flush honoured, FUA honoured. Without"),
        (disk(p1=1, p6=4), ["--no-cache"], 4, "the storage broke a promise: no volatile cache. Without"),
        (disk(p1=1, p4=3, p6=4), ["--atomic", "8K"], 4, "is there in part: 4 KiB of what survives whole or not at all"),
        (disk(p1=1, p4=3, p6=4), ["--atomic", "8K"], 4, "the storage broke a promise: atomic writes (8 KiB). Without"),
        (disk(p1=1, p4=3, p6=4), ["--atomic", "write"], 4, "atomic writes (whole)"),
        (disk(p1=1, p4=3, p5=3, p6=4), ["--in-order"], 4, "the storage broke a promise: order. Without"),
        (disk(p1=2, p4=3, p6=4), ["--in-order"], 0, "is a state that these promises allow"),
        (disk(p1=1, p6=4, p8=9), [], 4, "4 KiB from 32768 on hold bytes that no write of the log put there"),
        (disk(p1=1, p6=4, p8=9), [], 4, "no promises allow it: something else wrote to the disk"),
        (disk(p1=9, p6=4), [], 4, "4 KiB from 4096 on hold bytes that no write of the log put there"),
    ],
)
def test_the_answer_names_what_is_wrong_and_the_promise_that_was_broken(
    request: pytest.FixtureRequest, which: str, content: bytes, options: list[str], code: int, words: str
) -> None:
    found = explained(request.getfixturevalue(which), content, *options)
    assert found.exit_code == code, found.output
    assert words in found.output


def test_a_later_write_that_is_there_without_an_earlier_one_is_named(log: Path) -> None:
    found = explained(log, disk(p1=1, p4=3, p5=3, p6=4), "--in-order")
    assert "write 3 is there, and write 2 before it is not, or not all of it" in found.output


def test_what_was_there_before_the_log_is_the_base(log: Path) -> None:
    base = log.with_name("base")
    base.write_bytes(disk(p8=9))
    assert explained(log, disk(p1=1, p6=4, p8=9), "--base", str(base)).exit_code == ExitCode.DONE
    assert explained(log, disk(p1=1, p6=4), "--base", str(base)).exit_code == ExitCode.INTEGRITY_FAILED


def test_the_document_has_all_writes_that_are_wrong(log: Path) -> None:
    found = json.loads(explained(log, disk(), "--json").stdout)
    assert found["verb"] == "crash"
    told = found["explanation"]
    assert [(one["kind"], one["request"], one["durable_by"]) for one in told["broken"]] == [
        ("lost", 5, 5),
        ("lost", 0, 1),
    ]
    assert (told["is_allowed"], told["withdrawn"]) == (False, ["flush honoured", "FUA honoured"])
    assert told["membership"]["wrong_sectors"] == 16


def test_a_log_that_was_cut_short_ends_with_its_last_whole_event(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-1])
    # Its last write was submitted, and did not complete.
    assert explained(log, disk(p1=1)).exit_code == ExitCode.DONE
    log.write_bytes(log.read_bytes()[: -PAGE - 40])
    assert explained(log, disk(p1=1)).exit_code == ExitCode.DONE
    assert explained(log, disk(p1=1, p6=4)).exit_code == ExitCode.INTEGRITY_FAILED


@pytest.mark.usefixtures("log", "dm_log")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["image"], "give --log FILE, or --at DIR"),
        (["image", "--log", "log", "--at", "x"], "give --log FILE, or --at DIR"),
        (["image", "--at", "x", "--base", "log"], "give --log FILE, or --at DIR"),
        (["image", "--at", "x"], "is no row of an examination"),
        (["nothing", "--log", "log"], "IMAGE: nothing: cannot be read: No such file"),
        (["image", "--log", "nothing"], "nothing: cannot be read: No such file"),
        (["image", "--log", "log", "--base", "nothing"], "--base: nothing: cannot be read"),
        (["image", "--log", "image"], "is no log of writes"),
        (["short", "--log", "log"], "has 4096 bytes, the volume of the log 65536; give an image of the whole volume"),
        (["short", "--log", "dm"], "has writes beyond 4096 bytes; give an image of the whole volume"),
        (["image", "--log", "newer"], "is no log of writes that this version of Assay reads"),
        (["image", "--log", "log", "--atomic", "3K"], "accepted: 512 B, 4 KiB"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("image").write_bytes(disk())
    Path("short").write_bytes(bytes(PAGE))
    Path("newer").write_bytes(struct.pack("<QQQI", DM_MAGIC, 2, 0, 512).ljust(512, b"\0"))
    found = CliRunner().invoke(app, ["crash", "explain", *arguments])
    assert isinstance(found.exception, AssayError), found.output
    assert found.exception.exit_code == ExitCode.USAGE
    assert words in str(found.exception)


@pytest.mark.parametrize("which", ["log", "dm_log"])
def test_a_damaged_log_is_read_in_part_or_refused(request: pytest.FixtureRequest, which: str, tmp_path: Path) -> None:
    log: Path = request.getfixturevalue(which)
    image = tmp_path / "image"
    image.write_bytes(disk(p1=1, p6=4))
    whole = log.read_bytes()
    for place in (*range(0, 64, 3), *range(512, 560), 4640, 4650, 5660, len(whole) - 20):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        log.write_bytes(damaged)
        try:
            assert explain(log, image, Promises(), base=None).requests <= 7
        except UsageError:
            continue
