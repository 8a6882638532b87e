"""An agent, or whoever answers in its place, is foreign input to the coordinator: one line names the right host."""

from __future__ import annotations

import json
import os
import queue
import random
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from agent_threads import Assay, ThreadLink, runner
from assay.base.errors import AssayError, ExitCode, error_named
from assay.fleet import choosing, links, member
from assay.fleet.from_agent import HostShare, Meets
from assay.fleet.links import ProcessLink
from assay.fleet.meeting import Meeting
from assay.fleet.member import ClockOffset
from assay.fleet.rows import from_stream
from assay.fleet.target import HostsTarget
from assay.fleet.team import HostLost, Team
from assay.fleet.wire import FROM_AGENT_BYTES_MAX, GREETING, NotAMessage, Receiver, packed
from assay.record.run_folder import RunFolder
from changed_json import mutated
from series_rows import SCHEMA


def framed(text: bytes, behind: bytes = b"") -> bytes:
    """Bytes as a message, whatever they are."""
    return struct.pack(">II", len(text), len(behind)) + text + behind


class Told:
    """A pipe at whose other end a test answers commands."""

    def __init__(self, answer: Callable[[dict[str, Any]], bytes]) -> None:
        self._answer, self._out = answer, queue.SimpleQueue[bytes]()
        self._out.put(GREETING)
        self.is_ended = False

    def write(self, data: bytes) -> None:
        pieces = [data, b""]
        received = Receiver(lambda _: pieces.pop(0)).receive()
        assert received is not None
        if "do" in received[0]:
            self._out.put(self._answer(received[0]))
        elif "ping" in received[0]:
            self._out.put(packed({"pong": received[0]["ping"], "utc_ns": time.time_ns()}))

    def read(self, size: int) -> bytes:
        del size
        return self._out.get()

    def why_ended(self) -> str:
        return "is cut off"

    def end(self, *, kill: bool = False) -> None:
        del kill
        self.is_ended = True
        self._out.put(b"")


def reply(message: dict[str, Any], value: object = None) -> bytes:
    return packed({"re": message["number"], "is": value})


HELLO = {"version": "1", "hostname": "h", "machine": None, "host": {}}


def honest(message: dict[str, Any]) -> bytes:
    return reply(message, HELLO if message["do"] == "hello" else None)


def asked(bad: Callable[[dict[str, Any]], bytes], do: str = "hello") -> str:
    """What is said of a team with one bad agent between two honest ones."""
    links = [Told(honest), Told(bad), Told(honest)]
    team = Team([(name, link) for name, link in zip(("first", "bad", "last"), links, strict=True)])
    try:
        with pytest.raises(HostLost) as lost:
            team.ask(do)
        assert [member.name for member in team.members if member.lost is not None] == ["bad"]
    finally:
        team.end()
    assert all(link.is_ended for link in links)
    assert lost.value.exit_code == ExitCode.TARGET_FAILED
    text = str(lost.value)
    assert text.startswith("host bad: its agent sends ")
    assert "first" not in text
    assert "last" not in text
    assert text.isprintable()
    assert len(text) < 600
    return text


TEXTS = {
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "a text": b'"hello"',
    "nothing": b"{}",
    "no JSON": b"\xff\xfe\x00" * 9,
    "a word of a shell": b"Permission denied, please try again.",
    "deep lists": b"[" * 200_000,
    "deep objects": b'{"a":' * 200_000,
    "deep and closed": b'{"re":1,"is":' + b"[" * 500 + b"]" * 500 + b"}",
    "many values": b'{"re":1,"is":[' + b"[]," * (FROM_AGENT_BYTES_MAX // 8) + b"[]]}",
    "no number": b'{"re":1,"is":NaN}',
    "no end of a number": b'{"re":1,"is":1e999}',
    "a long number": b'{"re":1,"is":' + b"9" * 4000 + b"}",
    "too long a number": b'{"re":1,"is":' + b"9" * 5000 + b"}",
    "an unknown kind": b'{"hello":1}',
    "two kinds at once": b'{"re":1,"is":null,"pong":null,"utc_ns":1}',
    "another key": b'{"re":1,"is":null,"do":"more"}',
    "a number as text": b'{"re":"1","is":null}',
    "a number as flag": b'{"re":true,"is":null}',
    "half a number": b'{"re":1.5,"is":null}',
    "a negative number": b'{"re":-1,"is":null}',
    "a later number": b'{"re":2,"is":null}',
    "an earlier number": b'{"re":0,"is":null}',
    "an error that is none": b'{"re":1,"error":"IoFailed"}',
    "an error of one word": b'{"re":1,"error":["IoFailed"]}',
    "a time that is none": b'{"pong":[1,2],"utc_ns":"now"}',
    "a time before all": b'{"pong":[1,2],"utc_ns":-1}',
    "a probe of another form": b'{"pong":{"a":1},"utc_ns":1}',
    "words that are none": b'{"shows":"progress","text":7,"moment":null}',
    "another way to show": b'{"shows":"exec","text":"x","moment":null}',
    "a moment of other keys": b'{"shows":"progress","text":"x","moment":{"__class__":"x"}}',
    "a manifest that is none": b'{"manifest":[]}',
    "a beginning, asked for nothing": b'{"at":"begin"}',
    "a window of one": b'{"at":"window","window":[1]}',
    "a beginning with a window": b'{"at":"begin","window":[1,2]}',
    "a place that is none": b'{"at":"end"}',
    "a file above": b'{"file":"../../run.json"}',
    "a file of the system": b'{"file":"/etc/passwd"}',
    "a file between": b'{"file":"evidence/../../x"}',
    "a hidden file": b'{"file":".bashrc"}',
    "a file without a name": b'{"file":"a//b"}',
    "a file with a line": b'{"file":"a\\nb"}',
    "a file too deep": b'{"file":"a/b/c/d/e/f/g"}',
    "a long file": b'{"file":"' + b"a" * 300 + b'"}',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_what_no_agent_says_is_told_at_once_with_its_host(text: bytes) -> None:
    """A message `[]` was a fault of Assay itself; deep JSON ended the thread that listens, and hung its host."""
    asked(lambda _: framed(text))


@pytest.mark.parametrize("value", [None, [], {}, HELLO | {"version": None}, HELLO | {"version": ["x"]},
                                   HELLO | {"machine": "../../etc"}, HELLO | {"host": {"cpu_count": "many"}},
                                   HELLO | {"more": 1}, {"version": "1"}])  # fmt: skip
def test_an_answer_to_hello_that_is_none(value: object) -> None:
    asked(lambda message: reply(message, value))


@pytest.mark.parametrize("do", ["choose", "examine", "prepare", "step", "ask", "measure", "keep", "close", "leave",
                                "permissions", "settle", "open", "begin_run"])  # fmt: skip
@pytest.mark.parametrize("value", [7, [1], {"kind": "search"}, {"facts": {"volumes": 3}}])
def test_an_answer_to_another_question(do: str, value: object) -> None:
    def answered(message: dict[str, Any]) -> bytes:
        return reply(message, value)

    links = [Told(answered)]
    team = Team([("bad", links[0])])
    with pytest.raises(HostLost, match=r"\Ahost bad: its agent sends what none of Assay does: "):
        team.ask(do)
    team.end()


@pytest.mark.parametrize("word", [b"\nassay-agent-1\n", b"\nassay-agent-99\n", b"Welcome\n\nassay-agent-0\n"])
def test_another_protocol_is_known_by_its_first_word(word: bytes) -> None:
    class Older(Told):
        def __init__(self) -> None:
            super().__init__(honest)
            self._out.get()
            self._out.put(word)

    team = Team([("old", Older())])
    with pytest.raises(HostLost, match="host old: its agent sends what none of Assay does: the first word of another"):
        team.ask("hello")
    team.end()


@pytest.mark.parametrize("text_bytes", [FROM_AGENT_BYTES_MAX + 1, 2**32 - 1])
@pytest.mark.parametrize("behind", [0, 2**30 + 1])
def test_a_length_that_no_message_has_is_not_waited_for(text_bytes: int, behind: int) -> None:
    header = struct.pack(">II", text_bytes if not behind else 2, behind)
    assert "a message of " in asked(lambda _: header)


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no header claims gigabytes by its first letters."""
    del monkeypatch
    assert "bytes" in asked(lambda _: b"A" * 1_000_000)


def test_bytes_behind_a_message_that_has_none() -> None:
    asked(lambda _: framed(b'{"shows":"tell","text":"x","moment":null}', b"rows"))


def test_the_same_answer_twice() -> None:
    team = Team([("bad", Told(lambda message: 2 * reply(message, HELLO))), ("good", Told(honest))])

    def ask_twice() -> None:
        # The second answer may come when all have answered.
        team.ask("hello")
        team.ask("hello")

    with pytest.raises(HostLost, match="host bad: its agent sends what none of Assay does: an answer that nobody"):
        ask_twice()
    team.end()


def test_an_answer_before_anything_was_asked() -> None:
    class Early(Told):
        def __init__(self) -> None:
            super().__init__(honest)
            self._out.put(framed(b'{"re":1,"is":null}'))

    team = Team([("bad", Early())])
    while team._inbox.qsize() < 2:
        time.sleep(0.001)
    with pytest.raises(HostLost, match="host bad: its agent sends what none of Assay does: an answer that nobody"):
        team.ask("hello")
    team.end()


@pytest.mark.parametrize("text", [b"[]", b'{"re":1,"is":null}', b'{"shows":"tell","text":"x","moment":null}'])
def test_what_comes_at_the_end_hinders_no_end(text: bytes) -> None:
    links = [Told(lambda message: honest(message) + framed(text) * (message["do"] == "end")), Told(honest)]
    team = Team([(str(number), link) for number, link in enumerate(links)])
    team.ask("hello")
    team.ask("begin_run")
    team.end()
    team.end()
    assert team.alive == []
    assert all(link.is_ended for link in links)


def test_one_that_answered_and_died_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was left out of all that came later, and its absence was a fault of Assay itself."""
    is_lost = threading.Event()
    lose = Team.lose
    monkeypatch.setattr(Team, "lose", lambda self, *of: (lose(self, *of), is_lost.set()))

    class Dies(Told):
        def write(self, data: bytes) -> None:
            super().write(data)
            self._out.put(b"")

    class Waits(Told):
        def read(self, size: int) -> bytes:
            data = super().read(size)
            assert data in (GREETING, b"") or is_lost.wait(20)
            return data

    team = Team([("alive", Waits(honest)), ("dead", Dies(honest))])
    with pytest.raises(HostLost, match="host dead: its agent ended"):
        team.ask("hello")
    team.end()


def test_memory_is_bounded_however_much_is_said() -> None:
    """A flood of what may be said waits where it comes from, and the other agents go on."""

    class Floods(Told):
        sent = 0

        def read(self, size: int) -> bytes:
            if not self._out.empty():
                return super().read(size)
            if self.is_ended:
                return b""
            self.sent += 1
            return framed(b'{"manifest":{}}')

    flood = Floods(honest)
    team = Team([("loud", flood), ("quiet", Told(honest))])
    while team.members[0].room.acquire(blocking=False):
        team.members[0].room.release()
        time.sleep(0.001)
    sent = flood.sent
    assert team._inbox.qsize() < 100
    assert sum(reply.value.hostname == "h" for reply in team.ask("hello").values()) == 2
    assert flood.sent > sent
    team.end()


def test_a_flood_of_words_is_no_ones_to_read() -> None:
    flood = 2000 * framed(b'{"shows":"tell","text":"x","moment":null}')
    assert "more to be shown than could be read" in asked(lambda message: flood + reply(message, HELLO))


def test_questions_about_clocks_are_answered_once() -> None:
    class Pongs(Told):
        def write(self, data: bytes) -> None:
            for _ in range(3):
                super().write(data)
            self._out.put(packed({"pong": [99, 99], "utc_ns": 1}))

    team = Team([("many", Pongs(honest))])
    clocks = team.measure_clocks()
    assert abs(clocks["many"].offset_ns) < 10**9
    assert team.members[0].pongs.empty()
    team.end()


@pytest.mark.parametrize(
    "name", ["ExitCode", "IntEnum", "annotations", "__builtins__", "object", "", "Exception", "x" * 99]
)
def test_an_error_is_one_of_assays(name: str) -> None:
    """Any name of the module was called with the agent's words."""
    assert issubclass(error_named(name), AssayError)
    team = Team(
        [("bad", Told(lambda message: packed({"re": message["number"], "error": [name, "a\x1b[2Jb\nc" * 500]})))]
    )
    with pytest.raises(AssayError) as told:
        team.ask("hello")
    assert str(told.value).startswith("host bad: a\\x1b[2Jb\\nc")
    assert len(str(told.value)) < 3000
    team.end()


def test_what_is_shown_is_printable_and_cut() -> None:
    shown: list[str] = []

    class Display:
        def tell(self, text: str) -> None:
            shown.append(text)

        def point(self, progress: Any) -> None:
            shown.append(progress.line)

    def says(message: dict[str, Any]) -> bytes:
        words = [
            packed({"shows": how, "text": "\x1b]0;x\x07\u202e" * 1000, "moment": None}) for how in ("tell", "progress")
        ]
        return b"".join(words) + reply(message, HELLO)

    team = Team([("loud", Told(says))])
    team.ask("hello", display=Display())  # type: ignore[arg-type]
    team.end()
    assert len(shown) == 2
    assert all(text.isprintable() and len(text) < 10_000 for text in shown)


SAYS = """
import os, sys
sys.stdin.buffer.readline()
for _ in range(200):
    os.write(2, b"x" * 65536)
os.write(2, {last!r})
sys.exit(7)
"""


@pytest.mark.parametrize(
    ("last", "words"), [(b"\n\x1b[2J\x1b]0;x\x07why\n", r"\x1b[2J\x1b]0;x\x07why"), (b"", "x" * 300)]
)
def test_what_a_process_says_at_its_end_is_printable_and_cut(last: bytes, words: str) -> None:
    """A line without end filled the memory, and what a host said wrote to the terminal."""
    link = ProcessLink([sys.executable, "-c", SAYS.format(last=last)])
    link.write(b"\n")
    assert link.read(1) == b""
    assert link.why_ended() == f"exit code 7: {words}"
    link.end()


def test_one_that_takes_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message larger than a pipe holds was waited for by all that the coordinator does, for ever."""
    monkeypatch.setattr(links, "TAKES_S", 0.0)
    link = ProcessLink([sys.executable, "-c", "import time; time.sleep(600)"])
    with pytest.raises(OSError, match="it takes nothing"):
        link.write(b"x" * 10_000_000)
    assert link.read(1) == b""
    assert link.why_ended() == "it took nothing for 0 s"
    link.end()


# Rows


def rows(schema: pa.Schema = SCHEMA, *, changed: Callable[[bytes], bytes] = bytes) -> bytes:
    values = {name: [1] if pa.types.is_integer(schema.field(name).type) else ["wall"] for name in schema.names}
    values["value"] = [1.0]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pydict(values, schema=schema))
    return changed(sink.getvalue().to_pybytes())


def test_rows_of_a_series_are_taken() -> None:
    (batch,) = from_stream(rows())
    assert len(batch) == 1
    assert from_stream(b"") == []


@pytest.mark.parametrize(
    "data",
    [b"x", b"\xff\xff\xff\xff", rows()[:-40], rows()[:100], rows(SCHEMA.remove(0)),
     rows(changed=lambda data: data.replace(b"wall", b"\xff\xfe\xfd\xfc")),
     rows(changed=lambda data: data[:-200] + b"\xff" * 200)],
)  # fmt: skip
def test_rows_that_are_none_are_no_fault_of_ours(data: bytes) -> None:
    with pytest.raises(NotAMessage, match="no rows of a series"):
        from_stream(data)


# In a run


class Bent(ThreadLink):
    """An agent of which one answer is bent on its way."""

    def __init__(self, do: str, bend: Callable[[dict[str, Any], bytes], bytes]) -> None:
        self._do, self._bend, self._numbers = do, bend, dict[int, str]()
        self._bent = bytearray()
        super().__init__()
        self._receiver = Receiver(super().read)
        self._greets = True

    def write(self, data: bytes) -> None:
        pieces = [data, b""]
        received = Receiver(lambda _: pieces.pop(0)).receive()
        if received is not None and "do" in received[0]:
            self._numbers[received[0]["number"]] = received[0]["do"]
        super().write(data)

    def read(self, size: int) -> bytes:
        del size
        if self._greets:
            self._greets = False
            return GREETING if self._receiver.greeting() else b""
        received = self._receiver.receive()
        if received is None:
            return b""
        message, behind = received
        if self._numbers.get(message.get("re", -1)) == self._do and "is" in message:
            return self._bend(message, behind)
        return packed(message, behind)


@pytest.fixture
def assay(tmp_path: Path) -> Assay:
    return runner(tmp_path)


WORDS = ("--search", "none", "--block", "8K", "--warmup", "0s", "--duration", "0.3s", "--rate", "1000")


@pytest.fixture
def bent(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, Any]]]:
    """Run over three hosts of which the second is bent."""
    started: list[ThreadLink] = []

    def run(do: str, bend: Callable[[dict[str, Any], bytes], bytes], *words: str | Path) -> dict[str, Any]:
        def links(_request: object) -> list[tuple[str, ThreadLink]]:
            started.extend([ThreadLink(), Bent(do, bend), ThreadLink()])
            return list(zip(("first", "bad", "last"), started, strict=True))

        monkeypatch.setattr(choosing, "_links", links)
        return assay(*(words or ("profile", "null:", *WORDS)), "--hosts", "first,bad,last")

    yield run
    for link in started:
        assert not link.thread.is_alive(), "an agent outlives its run"


def changed(**values: Any) -> Callable[[dict[str, Any], bytes], bytes]:
    """Puts other values into an answer, by the path to them."""

    def bend(message: dict[str, Any], behind: bytes) -> bytes:
        for path, value in values.items():
            *ways, last = path.split("__")
            place = message["is"]
            for way in ways:
                place = place[way]
            place[last] = value
        return packed(message, behind)

    return bend


FIGURES = {
    "a figure that is text": changed(figures__total="much"),
    "a count below none": changed(figures__total__count=-1),
    "no histogram": changed(figures__total__histogram="!!!!"),
    "another histogram": changed(figures__read__histogram={"a": 1}),
    "a time as text": changed(figures__measured_from_utc_ns="then"),
    "a list of volumes that is none": changed(figures__volumes={"a": 1}),
    "latencies that are none": changed(figures__total__latency_ns=[1, 2]),
    "other rows": lambda message, _: packed(message, b"no rows"),
    "torn rows": lambda message, behind: packed(message, behind[: len(behind) // 2]),
    "an error that is none": changed(error={"a": 1}),
    "virtual time before all": changed(virtual_ns=-5),
}


@pytest.mark.parametrize("bend", FIGURES.values(), ids=FIGURES.keys())
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_figures_that_are_none_end_the_point_with_the_right_host(bent: Any, bend: Any) -> None:
    found = bent("measure", bend)
    told = str(found.get("complaint") or found["error"])
    assert found["exit_code"] == 3, found
    assert "fault of Assay" not in told
    assert "host bad: " in told or "(first, bad, last: " in told, told
    assert "host first" not in told
    assert "host last" not in told


PHASES = ("choose", "examine", "prepare", "step", "measure", "close", "measure")


FIRST_SEED = int(os.environ.get("ASSAY_SEED", "1"))


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + int(os.environ.get("ASSAY_SEEDS", "12"))))
def test_any_change_of_an_answer_is_borne(bent: Any, seed: int) -> None:
    """Whatever a host answers, no fault of Assay itself comes of it, and no other host is named."""
    chance = random.Random(seed)
    kinds = (("profile", "null:", *WORDS), ("profile", "model:sata-jbod", "--search", "none", "--block", "8K",
             "--warmup", "0s", "--duration", "1s"))  # fmt: skip

    def bend(message: dict[str, Any], behind: bytes) -> bytes:
        return packed({**message, "is": mutated(message["is"], chance)}, behind)

    found = bent(chance.choice(PHASES), bend, *chance.choice(kinds))
    told = " ".join([str(found.get("complaint")), str(found.get("error")), *(found.get("notices") or [])])
    assert found["exit_code"] in (0, 2, 3), found
    assert "fault of Assay" not in told
    assert "host first" not in told
    assert "host last" not in told
    if "run_folder" in found:
        # What was written of it can be read.
        with RunFolder.open(Path(found["run_folder"])) as folder:
            assert len(folder.points()) == len(found["points"])


def another_answer(message: dict[str, Any], _behind: bytes) -> bytes:
    return packed({"re": message["re"], "is": 7})


STAGES = {
    "choose": changed(facts__volumes="none"),
    "examine": changed(facts=None),
    "step": changed(kind="run"),
    "begin_run": another_answer,
}


@pytest.mark.parametrize("do", STAGES)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_every_answer_is_typed(bent: Any, do: str) -> None:
    found = bent(do, STAGES[do])
    told = str(found.get("complaint") or found["error"])
    assert (found["exit_code"], "host bad: its agent sends what none of Assay does: " in told) == (3, True), found


@pytest.mark.parametrize(("path", "value"), [("axis__start", 0), ("axis__end", -1), ("axis__name", ""), ("repeats", 0),
                                             ("rest_s", 1e9), ("workload", [])])  # fmt: skip
def test_a_search_is_one_that_ends(bent: Any, path: str, value: object) -> None:
    words = ("profile", "model:sata-jbod", "--block", "8K", "--warmup", "0s", "--duration", "1s")
    found = bent("step", changed(**{path: value}), *words)
    told = str(found.get("complaint") or found["error"])
    assert (found["exit_code"], "host bad: " in told) == (3, True), found


@pytest.mark.parametrize(
    "said",
    [[("begin", None), ("begin", None)], [("window", (0, 0))], [("begin", None), ("others", None), ("window", (9, 9))],
     [("begin", None), ("others", None), ("window", (-1, -2))],
     [("begin", None), ("others", None), ("window", (-1, 0)), ("window", (-1, 0))]],
)  # fmt: skip
def test_hosts_meet_once_and_in_their_order(said: list[tuple[str, tuple[int, int] | None]]) -> None:
    """A second beginning was answered to all: the others took it for their window, and were the ones at fault."""
    sent: list[tuple[str, dict[str, Any]]] = []
    members: list[Any] = [
        SimpleNamespace(name=name, clock=ClockOffset(offset_ns=0, error_ns=0)) for name in ("bad", "good")
    ]
    meeting = Meeting(members=members, send=lambda member, message: sent.append((member.name, message)))
    now = time.time_ns()
    *before, (last, at) = said
    for how, window in before:
        told_at = members[1] if how == "others" else members[0]
        meeting.hear(told_at, meets(how if how != "others" else "begin", window, now))
    count = len(sent)
    with pytest.raises(NotAMessage):
        meeting.hear(members[0], meets(last, at, now))
    assert len(sent) == count


def meets(how: str, window: tuple[int, int] | None, now: int) -> Meets:
    hours = 3_600_000_000_000
    span = None if window is None else [now + at * hours // 10_000 for at in window]
    if window is not None and 9 in window:
        span = [now + 9 * hours, now + 10 * hours]
    return Meets(at="window" if how == "window" else "begin", window=span)


def test_permissions_are_those_of_the_command_line(tmp_path: Path) -> None:
    """What a host asks to be permitted stands in the command that the user is told to go on with."""
    chosen = {name: HostShare.model_validate({
        "facts": {}, "identities": {}, "lines": [], "document": {}, "is_virtual": False, "layout_bytes": None,
        "sizes": {}, "notices": [], "is_databases": False, "parts": {}}) for name in ("bad",)}  # fmt: skip
    answers = ["--overwrite", f"{tmp_path}/f", "--overwrite", "/dev/sda", "--yes-destroy", f"{tmp_path}/../../dev/sda",
               "--plan", f"{tmp_path}/f", "; rm -rf ~", f"{tmp_path}/f", "--overwrite", f"{tmp_path}/f/data",
               "--overwrite"]  # fmt: skip
    team = Team([("bad", Told(lambda message: reply(message, HELLO if message["do"] == "hello" else answers)))])
    target = HostsTarget(
        team=team, shared=False, chosen=chosen, facts_of={}, clocks={}, named={"bad": [f"{tmp_path}/f"]}
    )
    assert target.permissions_again([]) == ["--overwrite", f"{tmp_path}/f", "--overwrite", f"{tmp_path}/f/data"]
    team.end()


def test_files_of_a_host_lie_in_its_folder_for_their_owner_alone(bent: Any) -> None:
    def bend(message: dict[str, Any], behind: bytes) -> bytes:
        files = [("a", b"1"), ("a/b", b"2"), ("evidence/F1/x.bin", b"3"), ("a", b"4")]
        return b"".join(packed({"file": name}, content) for name, content in files) + packed(message, behind)

    found = bent("close", bend)
    assert found["exit_code"] == 0
    folder = Path(found["run_folder"]) / "hosts" / "bad"
    assert {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == {
        "a": b"4", "evidence/F1/x.bin": b"3"}  # fmt: skip
    assert {path.stat().st_mode & 0o077 for path in [folder, *folder.rglob("*")]} == {0}
    assert "host bad: its file a/b is left out: " in " ".join(found["notices"])


def test_more_files_than_a_part_has(bent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "FILES_MAX", 20)
    flood = b"".join(packed({"file": f"f{number}"}, b"") for number in range(21))
    found = bent("close", lambda message, behind: flood + packed(message, behind))
    assert "host bad: its agent sends what none of Assay does: more files than a part has" in " ".join(found["notices"])


def test_json_of_a_message_is_bounded_before_it_is_made() -> None:
    text = json.dumps({"re": 1, "is": [[[[[[[[[[1]]]]]]]]]]}).encode()
    pieces = [framed(text), b""]
    assert Receiver(lambda _: pieces.pop(0)).receive() == (json.loads(text), b"")
