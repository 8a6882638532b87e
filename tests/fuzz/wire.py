"""Messages between a coordinator and its agents, and questions to the page, with something wrong in them."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Any

from fuzz import mutation
from fuzz.trial import Input

Message = dict[str, Any]

QUESTION: Message = {
    "from_s": 1.8e9,
    "to_s": 1.8e9 + 600,
    "steps": 600,
    "queries": [{"host": "h", "source": "block", "metric": "read_ios_count", "under": "vda"}],
}
COMMANDS: list[Message] = [
    {"do": "hello"},
    {"do": "secrets", "words": {"ASSAY_SECRET_901": "x"}, "typed": None},
    {"do": "ask", "load": 8},
    {"do": "measure", "repeat": 0, "point_id": "p0001"},
    {"do": "step", "point": None},
    {"ping": 1},
    {"do": "end"},
]
ANSWERS: list[Message] = [
    {"re": 1, "is": {"version": "0.1.0", "host": {}, "clock_ns": 1}},
    {"pong": 1, "utc_ns": 1_800_000_000_000_000_000},
    {"shows": "tell", "text": "x", "moment": None},
    {"re": 2, "is": {"kind": "done"}},
    {"re": 3, "is": {"figures": {}, "error": None}},
    {"re": 4, "error": ["IoFailed", "x"]},
]


def to_agent(dice: random.Random) -> Input:
    """What a coordinator says to an agent."""
    sent = _sent(dice, COMMANDS)

    def call() -> object:
        from assay.fleet.agent import Agent
        from assay.fleet.wire import Receiver, Sender

        return Agent(Receiver(io.BytesIO(sent).read), Sender(bytearray().extend)).run()

    return _input("wire to an agent", sent, call)


def from_agent(dice: random.Random) -> Input:
    """What an agent says to its coordinator, by itself and in answer to each command."""
    sent = _sent(dice, ANSWERS)

    def call() -> object:
        from assay.fleet import from_agent as said
        from assay.fleet.wire import Receiver

        receiver = Receiver(io.BytesIO(sent).read)
        while (received := receiver.receive()) is not None:
            message, behind = received
            heard = said.from_agent(message, behind)
            if isinstance(heard, said.Replies):
                for command in ("hello", "choose", "step", "measure", "leave"):
                    said.answer_to(command, message.get("is"))
        return None

    return _input("wire from an agent", sent, call)


def question(dice: random.Random) -> Input:
    """A question to the page, as it is checked before a process is made for it."""
    text = json.dumps(mutation.tree(dice, QUESTION)).encode()
    asked = mutation.data(dice, text) if dice.random() < 0.3 else text

    def call() -> object:
        from assay.apps.ui.lines import FiguresQuestion, parse_question

        return parse_question(FiguresQuestion, asked)

    return _input("question to the page", asked, call)


def _sent(dice: random.Random, messages: list[Message]) -> bytes:
    """Some messages in some order, most of them changed; sometimes bytes of the stream, too."""
    from assay.fleet.wire import packed

    chosen = [dice.choice(messages) for _ in range(dice.randrange(1, 6))]
    changed = [mutation.tree(dice, one) if dice.random() < 0.7 else one for one in chosen]
    numbered = [
        {"number": place, **one} if "do" in one else one
        for place, one in enumerate(changed, 1)
        if isinstance(one, dict)
    ]
    stream = b"".join(_packed(one, packed) for one in numbered)
    return mutation.data(dice, stream) if dice.random() < 0.3 else stream


def _packed(message: Message, packed: Callable[[Message], bytes]) -> bytes:
    try:
        return packed(message)
    except (ValueError, UnicodeError, OverflowError):
        return packed({})


def _input(kind: str, sent: bytes, call: Callable[[], object]) -> Input:
    return Input(kind=kind, argv=(kind,), files={"sent": sent}, call=call)
