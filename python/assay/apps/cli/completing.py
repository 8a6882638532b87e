"""What a shell completes, answered from `completion.tsv` and the names of folders: nothing of Assay is imported for it.

A shell runs `assay __complete SHELL` and gives the words on standard input, so that no password among them gets into
the list of processes. The first line of the answer says whether names of files complete the word as well; each other
one is a word, and after a tab what it means.
"""

from __future__ import annotations

import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Word = tuple[str, str]
    """A word, and what it means."""

TABLE = os.path.join(os.path.dirname(__file__), "completion.tsv")
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
MODELS = os.path.join(PACKAGE, "targets", "arrays", "model", "catalogue")
STUDIES = os.path.join(PACKAGE, "insight", "studies", "presets")
RUNS = "assay-results"
RUNS_MAX = 50
"""Run folders that are offered, the newest."""
RUN_NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""Names that mean themselves in every shell: a folder of others may hold a name that a shell would execute."""

COMMAND, FLAG, DEFAULT = "command", "flag", "default"
"""Kinds of rows that are no value: a command, an option without a value, the command that may be left out."""

FILES, RUN, STUDY, MODEL, STORAGE, DATABASE = "files", "run", "study", "model", "storage", "database"
"""Kinds of values; after `=` stand words that are accepted as well, parted by commas."""

SCHEMES = {
    STORAGE: ("model:", "null:", "faulty:"),
    DATABASE: ("embedded:", "duckdb:", "postgresql://", "mariadb://", "mssql://"),
}


def answer(shell: str, breaks: str = "") -> None:
    """Print what completes the command line on standard input.

    Parameters
    ----------
    shell
        `bash` gives the line up to the cursor, others give each word on a line.
    breaks
        Letters at which bash begins a new word: a completion replaces only what follows the last of them.
    """
    text = os.fsdecode(sys.stdin.buffer.read())
    words = words_of(text) if shell == "bash" else text.removesuffix("\n").split("\n")
    current = words[-1] = words[-1].lstrip("\"'")  # fish gives the word as it stands, with the quote that is open
    files, found = completed(words[1:])
    kept = 0
    if shell == "bash" and not text.endswith(("'" + current, '"' + current)):
        kept = max((current.rfind(letter) + 1 for letter in ":=" if letter in breaks), default=0)
    lines = [FILES if files else ""] + [f"{word[kept:]}\t{meaning}" for word, meaning in found]
    shown = [line.partition("\t")[0] if shell == "bash" else line for line in lines]
    sys.stdout.buffer.write(os.fsencode("\n".join(shown) + "\n"))


def words_of(line: str) -> list[str]:
    """Words of a line of bash, the last one unfinished or empty.

    Examples
    --------
    >>> words_of("assay profile 'model:p"), words_of("assay report ")
    (['assay', 'profile', 'model:p'], ['assay', 'report', ''])
    """
    import shlex

    for closing in ("", "'", '"'):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        return words if not line[-1:].isspace() or closing else [*words, ""]
    return [*line.split(), ""]


def completed(words: Sequence[str]) -> tuple[bool, list[Word]]:
    """Whether names of files complete the last word, and the words that do.

    Parameters
    ----------
    words
        Those after `assay`.
    """
    *before, current = words or [""]
    rows = _Rows("")
    place, value_of = 0, ""
    for word in before:
        kind = "" if value_of else rows.kind(word)
        if value_of or (word == "help" and not rows.verb):
            value_of = ""
        elif kind == COMMAND:
            rows, place = _Rows(f"{rows.verb} {word}".lstrip()), 0
        elif word.startswith("-"):
            value_of = word if kind not in ("", FLAG) and "=" not in word else ""
        else:
            rows = rows.default()
            place += 1
    option, is_joined, given = current.partition("=")
    if value_of:
        return _values(rows.kind(value_of), current)
    if is_joined and option.startswith("--"):
        files, found = _values(rows.kind(option), given)
        return files, [(f"{option}={word}", meaning) for word, meaning in found]
    if current.startswith("-"):
        return False, [one for one in rows.default().options() if one[0].startswith(current)]
    commands = [one for one in rows.commands() if not place and one[0].startswith(current)]
    files, found = _values(rows.default().argument(place), current)
    return files, [*commands, *found]


def verb_names() -> list[str]:
    """Names of all verbs that lists show."""
    return [name for name, _ in _Rows("").commands()]


class _Rows:
    """The rows of a verb or command in the table."""

    def __init__(self, verb: str) -> None:
        self.verb = verb
        with open(TABLE, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file if line.startswith(f"{verb}\t")]
        self.rows = {name: (kind, meaning) for _, name, kind, meaning in rows}

    def kind(self, name: str) -> str:
        """Of a command, an option or an argument; empty where there is none."""
        return self.rows.get(name, ("", ""))[0]

    def default(self) -> _Rows:
        """The command that is meant where none is named."""
        named = [name for name, (kind, _) in self.rows.items() if kind == DEFAULT]
        return _Rows(f"{self.verb} {named[0].lstrip('*')}") if named else self

    def options(self) -> list[Word]:
        """Names of options."""
        return [(name, meaning) for name, (_, meaning) in self.rows.items() if name.startswith("-")]

    def commands(self) -> list[Word]:
        """Names of commands."""
        return [(name, meaning) for name, (kind, meaning) in self.rows.items() if kind == COMMAND]

    def argument(self, place: int) -> str:
        """Kind of an argument by its place; the last one of a command may be repeated, which `+` says."""
        arguments = [(name, kind) for name, (kind, _) in self.rows.items() if name.lstrip("+").isdigit()]
        if place >= len(arguments) and not (arguments and arguments[-1][0].startswith("+")):
            return ""
        return arguments[min(place, len(arguments) - 1)][1]


def _values(kind: str, begun: str) -> tuple[bool, list[Word]]:
    """Whether files complete a value, and the words that do."""
    kind, _, listed = kind.partition("=")
    words = [*SCHEMES.get(kind, ()), *filter(None, listed.split(","))]
    if kind in (STUDY, MODEL):
        words += _names(STUDIES if kind == STUDY else MODELS)
    elif kind == STORAGE and begun.startswith("model:"):
        words = [f"model:{name}" for name in _names(MODELS)]
    elif kind == RUN:
        words += _runs(begun)
    is_path = kind in (FILES, RUN, *SCHEMES) and "://" not in begun and not begun.startswith("model:")
    return is_path, [(word, "") for word in words if word.startswith(begun)]


def _names(folder: str) -> list[str]:
    """Names of what comes with Assay as TOML files; `NAME.KIND.toml` is a variant of `NAME`."""
    return sorted({name.partition(".")[0] for name in os.listdir(folder) if name.endswith(".toml")})


def _runs(begun: str) -> list[str]:
    """Run folders in the usual place, the newest first."""
    try:
        names = sorted(os.listdir(RUNS), reverse=True)
    except OSError:
        return []
    paths = [os.path.join(RUNS, name) for name in names if RUN_NAME.fullmatch(name)]
    found = [path for path in paths if path.startswith(begun)][:RUNS_MAX]
    return [path for path in found if os.path.exists(os.path.join(path, "run.json"))]
