r"""Windows paths on this system: `--map 'E:\sql=/mnt/e'`. Nothing here looks at a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.base.errors import UsageError

_LONG = re.compile(r"\\\\\?\\(?:UNC(\\)|(?=[A-Za-z]:))", re.IGNORECASE)
r"""`\\?\E:\...` and `\\?\UNC\server\...`: prefixes that only lift the limit on a path's length."""

_STREAM_TYPE = re.compile(r":?:\$DATA$", re.IGNORECASE)

Parts = tuple[str, ...]


@dataclass(frozen=True)
class PathMap:
    """One `--map`: what lies below a Windows path lies below a path of this system.

    Parameters
    ----------
    text
        The option's value, as given.
    parts
        Parts of the Windows path.
    target
        Path of this system.
    """

    text: str
    parts: Parts
    target: str

    def rest(self, parts: Parts) -> Parts | None:
        """What is left of a path below this one, or None if it lies elsewhere; in any case of letters."""
        length = len(self.parts)
        same = [part.lower() for part in parts[:length]] == [part.lower() for part in self.parts]
        return parts[length:] if same else None


def parse_maps(texts: Sequence[str]) -> list[PathMap]:
    r"""Read values of `--map`.

    Raises
    ------
    UsageError
        One is not of the form `WINDOWS-PATH=PATH`, or two map the same path.

    Examples
    --------
    >>> [(one.parts, one.target) for one in parse_maps([r"E:\sql=/mnt/e"])]
    [(('E:', 'sql'), '/mnt/e')]
    """
    maps: list[PathMap] = []
    for text in texts:
        source, _, target = text.partition("=")
        parts = _parts(source)
        if not parts or not target or not text.isprintable() or ".." in parts:
            raise UsageError(rf"--map {text!r}: accepted: WINDOWS-PATH=PATH, as in --map 'E:\sql=/mnt/e'")
        for other in maps:
            if other.rest(parts) == () and other.target != target:
                raise UsageError(f"--map {text!r}: {source} is mapped to {other.target} already")
        maps.append(PathMap(text, parts, target))
    return maps


def is_windows(path: str) -> bool:
    r"""Whether a path can only be meant for Windows: a drive letter, or backslashes and no slash in front.

    Examples
    --------
    >>> [is_windows(path) for path in (r"E:\sql\a.mdx", r"\\server\share\a", "/mnt/e/a.mdx", "sqliosim.mdx")]
    [True, True, False, False]
    """
    return re.match(r"[A-Za-z]:", path) is not None or ("\\" in path and path[0] != "/")


def local_path(path: str, maps: Sequence[PathMap]) -> tuple[str, PathMap | None]:
    r"""A path of this system for a name in a configuration made for Windows, and the map that applied.

    The map of the longest prefix wins. A stream, `file:stream`, becomes a file of its own, `file.stream`. Paths that
    begin with a slash, and plain names, are taken as they are.

    Raises
    ------
    UsageError
        No map says where the path is; the path leaves its mapped folder, or names a folder.

    Examples
    --------
    >>> local_path(r"e:\SQL\data\a.mdx:copy", parse_maps([r"E:\sql=/mnt/e"]))[0]
    '/mnt/e/data/a.mdx.copy'
    """
    if re.split(r"[\\/]", path)[-1] in ("", ".", ".."):
        raise UsageError("this is a folder; a file is needed")
    if not is_windows(path):
        return (path if path.startswith("/") else _plain(path)), None
    parts = _parts(path)
    if parts is None:
        if path[1:2] == ":":
            raise UsageError(rf"this path depends on a current folder; write it as {path[:2]}\{path[2:]}")
        return "/".join(_resolved(path.split("\\"), "the folder it is relative to")), None
    fitting = [(path_map, rest) for path_map in maps if (rest := path_map.rest(parts)) is not None]
    if not fitting:
        folder = "\\".join((parts[0].rstrip("\\"), *parts[1:-1])) + ("\\" if len(parts) < 3 else "")
        raise UsageError(f"this is a Windows path without a --map; say where it is here: --map '{folder}=/FOLDER'")
    path_map, rest = max(fitting, key=lambda fit: len(fit[0].parts))
    if not rest:
        return path_map.target, path_map
    below = "/".join(_resolved(rest, f"{path_map.text.partition('=')[0]}, which --map stands for"))
    return f"{path_map.target.rstrip('/')}/{below}", path_map


def _parts(path: str) -> Parts | None:
    r"""The root (`E:`, `\\server` or, of a path without a drive, a backslash) and what follows; None if relative."""
    path = _LONG.sub(lambda match: "\\\\" if match[1] else "", path, count=1)
    match = re.match(r"[A-Za-z]:(?=[\\/]|\Z)|\\\\[^\\/]+|\\", path)
    if match is None:
        return None
    rest = re.split(r"[\\/]", path[match.end() :])
    return (match[0], *(part for part in rest if part not in ("", ".")))


def _resolved(parts: Sequence[str], top: str) -> list[str]:
    """Parts without `.` and `..`, as names of plain files."""
    found: list[str] = []
    # Streams first: what is left of `.:` must not lead upwards either.
    for part in map(_plain, parts):
        if part == ".." and not found:
            raise UsageError(f"the path leaves {top}")
        if part == "..":
            found.pop()
        elif part not in ("", "."):
            found.append(part)
    if not found:
        raise UsageError("this is a folder; a file is needed")
    return found


def _plain(name: str) -> str:
    return _STREAM_TYPE.sub("", name).replace(":", ".")
