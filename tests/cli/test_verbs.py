"""The list of verbs: each line is what the verb says of itself, though the verb is imported only when it is called."""

from __future__ import annotations

import pytest

from assay.apps.cli.declared import Verb
from assay.apps.cli.verbs import Later, declared, verbs

FORMER = ["serve"]
"""Names that verbs had before, which still work."""


def command_of(verb: Verb) -> Later:
    command = verbs()[verb.name if verb.group is None else verb.group.name]
    if verb.group is not None:
        command = command.commands[verb.name]
    assert isinstance(command, Later)
    return command


@pytest.mark.parametrize("verb", declared(), ids=lambda verb: verb.name)
def test_its_line_is_the_first_of_its_own_help(verb: Verb) -> None:
    command = command_of(verb)
    if command.name in FORMER:
        assert command.hidden
        return
    assert command.help == verb.help
    assert (command.loaded.name, command.loaded.help.splitlines()[0]) == (verb.name, verb.help)


def test_only_what_assay_starts_itself_is_left_out_of_the_list() -> None:
    assert [name for name, command in verbs().items() if command.hidden] == [*FORMER, "agent"]


def test_verbs_of_several_kinds_are_commands_of_one() -> None:
    groups = {verb.group.name for verb in declared() if verb.group is not None}
    commands = {name: [*verbs()[name].commands] for name in groups}
    assert commands == {"oltp": ["tpcc", "brokerage", "sql", "replay"], "dss": ["tpch"]}
