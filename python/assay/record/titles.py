"""What a run is called: its title where it was given one, else target, host and load in words.

A title is made anew from the manifest whenever it is shown, so that runs of before have one as well. All of it is
foreign input: what is not printable is escaped, and it has a bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from assay.base.errors import UsageError
from assay.base.paths import printable

CUSTOM = "Custom profile"
"""Title of a part that is no preset."""

TITLE_MAX = 120
"""Letters of a title: a line of a list, or the head of a page."""
FOLDER_MAX = 48
WHOLE_MAX = 4096
"""Letters of a title that says whole paths."""

_OWN = re.compile(r"(?:embedded|duckdb|spark-local):(?P<path>[^?]+)")
_MODEL = re.compile(r"model:(?P<name>[^?]+)(?:\?(?P<options>.*))?")

_VERBS = {"assess": "whole examination", "check": "check of best practice", "contract": "acceptance test"}

Manifest = Mapping[str, Any]


def parse_title(text: str) -> str:
    """A title from the command line.

    Raises
    ------
    UsageError
        It is empty, too long, or has letters that no terminal shows.
    """
    if not 0 < len(text) <= TITLE_MAX or not text.isprintable() or not text.strip():
        raise UsageError(f"--title: accepted: one line of 1 to {TITLE_MAX} printable letters")
    return text


def run_title(manifest: Manifest) -> str:
    """The title of a run.

    Examples
    --------
    >>> volume = {"name": "assay.dat", "path": "/srv/data/assay.dat", "kind": "file"}
    >>> verdict = [{"question": "8 KiB random 70/30, queue depth 4", "point_id": "p0001"}]
    >>> run_title({"target": {"volumes": [volume]}, "host": {"hostname": "db1"}, "verdict": verdict})
    'assay.dat in /srv/data on db1: 8 KiB random 70/30, queue depth 4'
    """
    given = manifest.get("title")
    return _bounded(str(given)) if given else _made(manifest, FOLDER_MAX)


def whole_title(manifest: Manifest) -> str:
    """The title of a run with every file and its whole path, also where a title was given."""
    given, made = manifest.get("title"), _made(manifest, None)
    return _bounded(f"{given}, {made}" if given else made, WHOLE_MAX)


def run_titles(manifests: Sequence[Manifest]) -> list[str]:
    """Titles of runs that stand beside each other: none of two targets, or of two moments, is like another."""
    found = told_apart([run_title(one) for one in manifests], [whole_title(one) for one in manifests])
    for tell in (_moment, _id):
        found = told_apart(found, [title + tell(one) for title, one in zip(found, manifests, strict=True)])
    return found


def told_apart(titles: Sequence[str], longer: Sequence[str]) -> list[str]:
    """Titles; of those that are alike the longer ones, where these differ.

    Examples
    --------
    >>> told_apart(["f", "f", "g", "g"], ["f in a", "f in b", "g in a", "g in a"])
    ['f in a', 'f in b', 'g', 'g']
    """
    alike: dict[str, set[str]] = {}
    for title, text in zip(titles, longer, strict=True):
        alike.setdefault(title, set()).add(text)
    return [text if len(alike[title]) > 1 else title for title, text in zip(titles, longer, strict=True)]


def target_title(manifest: Manifest, folder_max: int | None = FOLDER_MAX) -> str:
    """What a run is of: files with their folder, devices by their path, databases and models by their names."""
    target = manifest.get("target") or {}
    asked = [match["path"] for path in (manifest.get("request") or {}).get("paths") or []
             if (match := _OWN.match(str(path)))]  # fmt: skip
    volumes = [one for one in target.get("volumes") or [] if one.get("kind") != "database"]
    names = [_volume(one, folder_max) for one in volumes] or [_file(path, folder_max) for path in asked]
    names = names or [str(one.get("name") or "") for one in target.get("databases") or []]
    names = names or [str(one) for one in (manifest.get("recording") or {}).get("hosts") or []]
    names = [_asked_model(manifest)] if _asked_model(manifest) else list(dict.fromkeys(name for name in names if name))
    if folder_max is None:
        return " and ".join(names)
    return " and ".join([*names[:1], *([f"{len(names) - 1} more"] if len(names) > 1 else [])])


def target_on_host(manifest: Manifest, folder_max: int | None = FOLDER_MAX) -> str:
    """What a run is of, and on which host; a model, which gives the same figures on every host, without one."""
    volumes = (manifest.get("target") or {}).get("volumes") or []
    is_model = bool(_asked_model(manifest)) or any(one.get("kind") == "model" for one in volumes)
    host = "" if is_model else str((manifest.get("host") or {}).get("hostname") or "").partition(".")[0]
    target = target_title(manifest, folder_max)
    return f"{target} on {host}" if target and host and target != host else target or host


def _asked_model(manifest: Manifest) -> str:
    """The array of a study, of which its levels make others, in words; empty where it is of something else."""
    match = _MODEL.fullmatch(str((manifest.get("study") or {}).get("target") or ""))
    if match is None:
        return ""
    name, options = match["name"], (match["options"] or "").split("&")
    told = ", ".join(option.replace("=", " ") for option in options if option)
    return f"model of {PurePosixPath(name).stem if name.endswith('.toml') else name}{f' ({told})' if told else ''}"


def _volume(volume: Mapping[str, Any], folder_max: int | None) -> str:
    path = str(volume.get("path") or "")
    if not path or volume.get("kind") == "model":
        return str(volume.get("model") or volume.get("name") or "")
    return path if path.startswith("/dev/") else _file(path, folder_max)


def _file(path: str, folder_max: int | None) -> str:
    """A file with its folder, of which a long one keeps its last parts."""
    folder, name = str(PurePosixPath(path).parent), PurePosixPath(path).name
    if folder_max is not None and len(folder) > folder_max:
        folder = f".../{folder[-folder_max:].partition('/')[2] or folder[-folder_max:]}"
    return name if folder == "." else f"{name} in {folder}"


def _made(manifest: Manifest, folder_max: int | None) -> str:
    if sizing := manifest.get("sizing"):
        return _bounded(f"Sizing: {sizing.get('title')}")
    if reliability := manifest.get("reliability"):
        return _bounded(f"Reliability of {(reliability.get('array') or {}).get('title')}")
    where, load = target_on_host(manifest, folder_max), load_title(manifest)
    most = WHOLE_MAX if folder_max is None else TITLE_MAX
    if where and load:
        # Of a target with many options the load stays whole: it says what was asked.
        where = _bounded(where, max(most - len(load) - 2, most // 2))
    made = f"{where}: {load}" if where and load else where or load
    return _bounded(made, most) or str(manifest.get("run_id") or "a run")


def load_title(manifest: Manifest) -> str:
    """What was asked: of one question its words, of several their parts."""
    if title := (manifest.get("study") or {}).get("title"):
        return str(title)
    if manifest.get("recording") is not None and manifest.get("imported") is None:
        return "recording"
    if any(volume.get("kind") == "faulty" for volume in (manifest.get("target") or {}).get("volumes") or []):
        return "a test of Assay itself, with injected faults"
    if words := _VERBS.get(str(manifest.get("verb"))):
        return words
    lines = [line for line in manifest.get("verdict") or [] if line.get("point_id") or line.get("limit")]
    asked = list(dict.fromkeys(str(line.get("question") or "") for line in lines))
    parts = [str(part.get("title") or part.get("name") or "") for part in manifest.get("parts") or []]
    if len(asked) > 1 and set(parts) == {CUSTOM}:
        # What the user put together has no name: its workloads say what it is, without their loads.
        names = list(dict.fromkeys(one.partition(", ")[0] for one in asked))
        more = len(names) - len(names[:2])
        return " and ".join([*names[:2], *([f"{more} more"] if more else [])])
    return asked[0] if len(asked) == 1 else ", ".join(dict.fromkeys(parts[:3])) or str(manifest.get("verb") or "")


def _moment(manifest: Manifest) -> str:
    started = manifest.get("started_utc_ns") or 0
    moment = datetime.fromtimestamp(started / 1e9, UTC) if 0 < started < 1 << 62 else None
    return f", {moment:%Y-%m-%d %H:%M:%S}" if moment is not None else ""


def _id(manifest: Manifest) -> str:
    return f", {printable(str(manifest.get('run_id') or ''))}"


def _bounded(text: str, most: int = TITLE_MAX) -> str:
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."
