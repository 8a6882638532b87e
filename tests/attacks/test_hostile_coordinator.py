"""A coordinator is foreign input to an agent: it gets what its user gets of `assay` there, in order and in bounds."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.fleet import cluster
from assay.fleet.agent import COMMANDS_MAX, Agent
from assay.fleet.from_coordinator import HostWindow, from_coordinator
from assay.fleet.links import host_and_program, named_hosts, ssh_command
from assay.fleet.stand_ins import ANSWERS_MAX
from assay.fleet.wire import FROM_COORDINATOR_BYTES_MAX, GREETING, NotAMessage, Receiver, Sender, packed
from assay.run.part import part_report
from assay.run.request import TargetRequest
from assay.workloads.plan import Part
from assay.workloads.registry import workload_named
from changed_json import mutated

Message = dict[str, Any]


class Heard:
    """What an agent answered, and why it ended."""

    def __init__(self, sent: bytes) -> None:
        self.fault, answers = "", bytearray()
        try:
            Agent(Receiver(io.BytesIO(sent).read), Sender(answers.extend)).run()
        except NotAMessage as error:
            self.fault = str(error)
        pieces = [bytes(answers), b""]
        receiver = Receiver(lambda _: pieces.pop(0))
        self.answers: list[Message] = []
        while (received := receiver.receive()) is not None:
            self.answers.append(received[0])

    @property
    def error(self) -> list[str]:
        """The last answer's."""
        return list(self.answers[-1]["error"])


def commands(*messages: Message) -> Heard:
    """Give an agent commands, numbered where they are not."""
    numbered = [{"number": number, **message} for number, message in enumerate(messages, 1)]
    return Heard(b"".join(map(packed, numbered)))


def part(**changes: Any) -> Message:
    plan = workload_named("io").load_plan({}, source="test")
    return {**part_report(Part(name="io", title="", plan=plan, planned_s=1.0)), **changes}


def choose(*paths: str | Path, **changes: Any) -> Message:
    request = TargetRequest(paths=[str(path) for path in paths or ("null:",)], size="4M")
    kept = request.to_dict() | {"hosts": [], "cluster": None, "shared": False, "dry_run": False}
    asked = {"do": "choose", "request": kept, "overwrite": [], "yes_destroy": [], "parts": [part()],
             "share": {"place": 0, "hosts": 1, "shared": False}, "sizes": {}}  # fmt: skip
    return {**asked, **changes, "request": kept | changes.get("request", {})}


FIRST_SEED = int(os.environ.get("ASSAY_SEED", "1"))
HELLO: Message = {"do": "hello"}
END: Message = {"do": "end"}


def test_an_honest_one_is_served() -> None:
    heard = commands(HELLO, {"do": "secrets", "words": {"ASSAY_SECRET_901": "x"}, "typed": None}, choose(), END)
    assert heard.fault == ""
    assert [answer["re"] for answer in heard.answers] == [1, 2, 3, 4]
    assert not any("error" in answer for answer in heard.answers)


NONE = {
    "a list": b"[]",
    "a number": b"5",
    "nothing": b"{}",
    "null": b"null",
    "deep lists": b"[" * 200_000,
    "deep and closed": b'{"do":"hello","number":1,"x":' + b"[" * 300 + b"]" * 300 + b"}",
    "no JSON": b"\x00\xff" * 30,
    "no number": b'{"do":"hello","number":NaN}',
    "a long number": b'{"do":"hello","number":' + b"1" * 4000 + b"}",
    "a text for a number": b'{"do":"hello","number":"1"}',
    "a command without number": b'{"do":"hello"}',
    "an unknown command": b'{"do":"exec","number":1}',
    "a name of Python": b'{"do":"__init__","number":1}',
    "a method": b'{"do":"end_run","number":1}',
    "a command that is none": b'{"do":["hello"],"number":1}',
    "two kinds at once": b'{"do":"hello","number":1,"ping":null}',
    "a key too many": b'{"do":"hello","number":1,"as":"root"}',
    "no interrupt": b'{"interrupt":"yes"}',
    "together with nothing": b'{"together":{}}',
    "together with all": b'{"together":{"begin_utc_ns":1,"stop":true}}',
    "a window of one": b'{"together":{"window":[1]}}',
    "a window as text": b'{"together":{"window":"12"}}',
    "a probe of texts": b'{"ping":["a","b"]}',
    "a word of the environment": b'{"do":"secrets","number":1,"words":{"PATH":"x"},"typed":null}',
    "a password that is none": b'{"do":"secrets","number":1,"words":{"ASSAY_SECRET_1":7},"typed":null}',
    "a run above": b'{"do":"begin_run","number":1,"run":"../../x"}',
    "a run of a line": b'{"do":"begin_run","number":1,"run":"a\\nb"}',
    "a point above": b'{"do":"measure","number":1,"ask":0,"repeat":0,"point_id":"../../p1"}',
    "a load below none": b'{"do":"ask","number":1,"load":-1}',
    "no load": b'{"do":"ask","number":1,"load":0}',
    "a point of another form": b'{"do":"kept","number":1,"point":{"id":"p1","key":"k","total":5}}',
    "a point without key": b'{"do":"kept","number":1,"point":{"id":"p1"}}',
    "a manifest of another form": b'{"do":"examine","number":1,"part":"io","manifest":{"integrity":[]}}',
    "volumes of another form": b'{"do":"again","number":1,"run":"r","volumes":[{"path":7}]}',
    "a null byte": b'{"do":"prepare","number":1,"part":"a\\u0000b"}',
    "a nameless part": b'{"do":"prepare","number":1,"part":""}',
}


@pytest.mark.parametrize("text", NONE.values(), ids=NONE.keys())
def test_what_no_coordinator_says_ends_the_agent(text: bytes) -> None:
    heard = Heard(struct.pack(">II", len(text), 0) + text)
    assert heard.fault.startswith("the coordinator sends what no Assay does: ")
    assert heard.fault.isprintable()
    assert len(heard.fault) < 500
    assert heard.answers == []


@pytest.mark.parametrize("header", [struct.pack(">II", FROM_COORDINATOR_BYTES_MAX + 1, 0), b"GET / HT", b"\xff" * 8])
def test_a_length_that_no_message_has_is_not_waited_for(header: bytes) -> None:
    assert "a message of " in Heard(header).fault


def test_bytes_behind_a_command() -> None:
    assert "bytes behind" in Heard(packed(HELLO | {"number": 1}, b"rows")).fault


ORDERS = {
    "a part before a target": [{"do": "prepare", "part": "io"}],
    "a step before a part": [choose(), {"do": "step", "outcome": None, "points": []}],
    "a load before a step": [choose(), {"do": "ask", "load": 1}],
    "a point before a part": [choose(), {"do": "measure", "ask": 0, "repeat": 0, "point_id": "p1"}],
    "a kept point before a part": [choose(), {"do": "keep", "point_id": "p1"}],
    "another part": [choose(), {"do": "examine", "part": "other", "manifest": {}}],
    "a target twice": [choose(), choose()],
    "a number twice": [HELLO | {"number": 7}, HELLO | {"number": 7}],
    "a number before": [HELLO | {"number": 7}, HELLO | {"number": 6}],
}


@pytest.mark.parametrize("messages", ORDERS.values(), ids=ORDERS.keys())
def test_commands_out_of_their_order_end_the_agent(messages: list[Message]) -> None:
    assert commands(*messages).fault.startswith("the coordinator sends what no Assay does: ")


def test_a_load_that_was_not_asked_for_is_not_measured() -> None:
    opened = {"do": "open", "part": "io", "manifest": {}, "finished": [], "keeps_series": False, "for_study": False,
              "epoch_ns": 0}  # fmt: skip
    before = [
        choose("model:sata-jbod", request={"size": None}),
        {"do": "examine", "part": "io", "manifest": {}},
        opened,
    ]
    assert "a load that was not asked for" in commands(
        *before, {"do": "measure", "ask": 5, "repeat": 0, "point_id": "p1"}).fault  # fmt: skip


def test_commands_wait_in_no_great_number(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(Receiver(lambda _: b""), Sender(lambda _: None))
    for number in range(COMMANDS_MAX):
        agent._hear((HELLO | {"number": number}, b""))
    with pytest.raises(NotAMessage, match="commands before others are answered"):
        agent._hear((HELLO | {"number": COMMANDS_MAX}, b""))
    for _ in range(ANSWERS_MAX):
        agent.together.take(HostWindow(window=[1, 2]))
    with pytest.raises(NotAMessage, match="answers that nobody asked for"):
        agent.together.take(HostWindow(window=[1, 2]))
    monkeypatch.setattr(agent, "_is_over", agent.interrupt)


def test_a_beginning_in_a_year_is_not_waited_for() -> None:
    agent = Agent(Receiver(lambda _: b""), Sender(lambda _: None))
    agent._hear(({"together": {"begin_utc_ns": 2**62}}, b""))
    with pytest.raises(NotAMessage, match="too far ahead"):
        agent.together.begin()
    agent._hear(({"together": {"window": [1, 2]}}, b""))
    with pytest.raises(NotAMessage, match="another question"):
        agent.together.begin()


# What it gets of an agent

REQUESTS: dict[str, Message] = {
    "further hosts": {"request": {"hosts": ["-oProxyCommand=touch x"]}},
    "a cluster": {"request": {"cluster": "ray://attacker:1"}},
    "a target of all hosts": {"request": {"shared": True}},
    "a journal": {"request": {"crash_journal": "/etc/cron.d/x"}},
    "a journal to read": {"request": {"after_crash": "/etc/shadow"}},
    "a key of Python": {"request": {"__class__": "x"}},
    "a path of a number": {"request": {"paths": [7]}},
    "a path with a null byte": {"request": {"paths": ["/tmp/a\0b"]}},
    "a long path": {"request": {"paths": ["/" + "a" * 5000]}},
    "a size below none": {"sizes": {"data": -1}},
    "no parts": {"parts": []},
    "a part with a target": {"parts": [part(target="/etc/passwd")]},
    "a part with more targets": {"parts": [part(more_targets=["/etc/passwd"])]},
    "a part beside": {"parts": [part(beside=part(target="/etc"))]},
    "a part that follows": {"parts": [part(follows="x")]},
    "a part that goes on": {"parts": [part(continues=True)]},
    "a place outside": {"share": {"place": 3, "hosts": 2, "shared": False}},
    "many hosts": {"share": {"place": 0, "hosts": 10**9, "shared": False}},
}


@pytest.mark.parametrize("changes", REQUESTS.values(), ids=REQUESTS.keys())
def test_what_a_request_may_not_ask_is_no_message(changes: Message) -> None:
    heard = commands(choose(**changes))
    assert heard.fault.startswith("the coordinator sends what no Assay does: ")
    assert heard.answers == []


def test_a_plan_is_read_as_any_plan() -> None:
    heard = commands(choose(parts=[part(plan={"kind": "io", "activity": [{"engine": "/bin/sh"}]})]), END)
    assert heard.answers[0]["error"][0] in ("FieldError", "UsageError")


def test_a_targets_own_rules_hold_as_for_a_local_run(tmp_path: Path) -> None:
    """What is not Assay's is not written to without the permission that names it, whoever asks."""
    path = tmp_path / "user.mdf"
    path.write_bytes(b"data" * 2**18)
    for changes in ({}, {"overwrite": [str(tmp_path / "other")]}, {"yes_destroy": [str(path)]}):
        heard = commands(choose(path, **changes), END)
        assert heard.answers[0]["error"][0] == "RefusedTarget"
    (tmp_path / "link").symlink_to(path)
    assert commands(choose(tmp_path / "link"), END).answers[0]["error"][0] == "RefusedTarget"
    assert path.read_bytes() == b"data" * 2**18


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + int(os.environ.get("ASSAY_SEEDS", "60"))))
def test_any_change_of_a_choice_is_borne(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Nothing is written, and no fault of Assay itself comes of it."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    asked = mutated(choose(chance.choice(("null:", tmp_path / "f", "model:sata-jbod?cache=1G"))), chance)
    heard = commands(asked if isinstance(asked, dict) else {"is": asked})
    assert heard.fault.isprintable()
    assert "fault of Assay" not in str(heard.answers)
    assert heard.fault or heard.answers
    assert list(tmp_path.iterdir()) == []


def test_the_process_ends_at_once_in_one_line() -> None:
    done = subprocess.run([sys.executable, "-m", "assay", "agent"], input=struct.pack(">II", 2, 0) + b"[]",
                          capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.decode().splitlines() == ["assay: the coordinator sends what no Assay does: JSON of a list"]
    assert done.stdout == GREETING


# Names of hosts

BAD_NAMES = [
    "-oProxyCommand=touch x", "-o", "--", "-", "", "user@-x", "-u@host", "@host", "user@", "a@b@c", "a b", "a\tb",
    "a\nb", "a\x1b[2J", "a\0b", "a;id", "a|id", "a`id`", "$(id)", "a$b", "a&b", "a'b", 'a"b', "a\\b", "a/b", "..",
    ".", ".ssh", "../../x", "%h", "a%b", "a*b", "h:bin/assay", "h:/a b", "h:/a\nb", "h:", "::1", "[::1]",
    "user@[::1]:/x", "fe80::1%eth0", "ssh://h", "h" * 254, "u" * 65 + "@h", "h:/" + "a" * 2000, "\u202ehost",
    "ho\u0000st", "h\u00f6st", "host-", "{host}",
]  # fmt: skip


@pytest.mark.parametrize("host", BAD_NAMES)
def test_a_name_that_is_none_reaches_no_ssh(host: str) -> None:
    for given in (host, f"local,{host}", f"{host},db2"):
        if "," in host:
            continue
        with pytest.raises(UsageError, match="is no host; accepted: NAME") as refused:
            named_hosts([given])
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 800


@pytest.mark.parametrize(
    "host", ["db1", "me@db1.example.org", "10.0.0.1", "a_b", "local", "h:/opt/assay/bin/assay", "local,db-2"]
)
def test_names_of_hosts(host: str) -> None:
    assert named_hosts([host])


def test_what_a_shell_there_would_take_apart_is_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/usr/bin/ssh")
    named_hosts(["db1:/opt/a;touch${IFS}x"])
    command = ssh_command("db1:/opt/a;touch${IFS}x")
    assert command[command.index("--") :] == ["--", "db1", "'/opt/a;touch${IFS}x'", "agent"]
    assert host_and_program("db1") == ("db1", "assay")


def test_many_hosts_and_two_of_one_name() -> None:
    """Two agents of one name were one in all that was asked, and the other was waited for."""
    with pytest.raises(UsageError, match="two hosts would be called local-1"):
        named_hosts(["local,local,local-1"])
    with pytest.raises(UsageError, match="at most 1,000 hosts"):
        named_hosts(["local," * 50_000 + "local"])
    names = [name for name, _ in named_hosts(["local," * 999 + "local"])]
    assert len(set(names)) == 1000


@pytest.mark.parametrize("count", ["9" * 5000, "1001", "0", "-1", "x\x1b[2J", "\u00b2", "1e3"])
def test_a_number_of_hosts_of_a_cluster(count: str) -> None:
    """Five thousand digits were no number to Python either."""
    with pytest.raises(UsageError, match="with --cluster it says how many") as refused:
        cluster._count([count])
    assert str(refused.value).isprintable()


def test_any_command_in_its_form_is_one() -> None:
    def made(message: Message) -> object:
        return from_coordinator(json.loads(json.dumps(message)), b"")

    assert made(HELLO | {"number": 1})
    assert made(choose() | {"number": 1})
    assert made({"do": "kept", "number": 1, "point": {"id": "p1", "key": "k"}})
