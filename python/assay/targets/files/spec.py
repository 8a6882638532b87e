"""Reading targets: `PATH`, `/dev/...`, `null:?...`, `faulty:PATH?...`, `model:NAME?...`, `--volume log=PATH`."""

from __future__ import annotations

import difflib
import math
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.secrets import holds_placeholder
from assay.base.units import parse_bytes, parse_duration
from assay.targets.answering import ANSWER_TIMEOUT_S, answer_within

if TYPE_CHECKING:
    from assay.targets.arrays.model.configuration import Configuration

ROLES = ("data", "log", "tempdb")
"""What a volume can be for."""

_PLACE = re.compile(r"(data|db|log)([1-9][0-9]{0,3})")
"""A role with a number, where volumes of a role are told apart."""

NULL_OPTIONS = {
    "latency": "time each I/O takes, such as 200us",
    "stall_at": "when the first stall begins, such as 3s",
    "stall": "how long a stall lasts, such as 1s",
    "stall_every": "time from one stall's begin to the next, such as 10s",
    "servers": "how many I/Os are served at once, such as 8",
}
"""Options of `null:` and what they mean."""

FAULTS = (
    "torn",
    "lost",
    "misdirected_write",
    "misdirected_read",
    "corrupt",
    "short_read",
    "log_break",
    "io_error",
    "long_io",
)
"""What can be wrong: the names of the decision table in docs/integrity.md."""

FAULTY_OPTIONS = {
    **dict.fromkeys(FAULTS, "chance per I/O, such as 1e-5"),
    "seed": "seed of the faults, a whole number",
    "long_io_delay": "how long a long I/O takes, such as 16s",
}
"""Options of `faulty:` and what they mean."""

_DATABASES = (
    "embedded",
    "embedded+array",
    "duckdb",
    "spark",
    "spark-local",
    "postgresql",
    "postgres",
    "mariadb",
    "mysql",
    "mssql",
)
"""Kinds of target that are no storage: transactions run on them."""

_OTHER_DATABASES = ("cassandra", "db2", "jdbc", "mongodb", "odbc", "oracle", "redis", "sqlite", "sqlserver")
"""Kinds of database that Assay does not know, or by another name."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")

SizeRule = Literal["2x-cache"]
Kind = Literal["file", "device", "null", "faulty", "model"]

HOLDS_NO_BYTES = "target model:... holds no bytes to verify; `assay profile` and `assay study` work on it"


@dataclass(frozen=True, kw_only=True)
class VolumeSpec:
    """One file or device of a target, as asked; nothing has been opened yet.

    Attributes
    ----------
    name
        Unique within the target and short: the file's name, with its folder or role where that is not enough.
    path
        Absolute, symbolic links kept; None for `null:` and `model:`.
    size_bytes
        Size asked for; None if the file's own size or the verb's choice applies.
    place
        What of several of its role is to lie on it, as `--volume db1=PATH` says; empty where that is left open.
    size_rule
        `2x-cache`: twice the cache stated or detected.
    options
        Options of the kind, as written.
    array
        The modelled array that the volume is on.
    """

    name: str
    kind: Kind
    path: Path | None
    role: str = "data"
    place: str = ""
    size_bytes: int | None = None
    size_rule: SizeRule | None = None
    options: dict[str, str] = field(default_factory=dict)
    array: Configuration | None = None


def parse_targets(
    paths: Sequence[str],
    *,
    volumes: Sequence[str] = (),
    sizes: str | None = None,
    with_log: bool = False,
    numbered: bool = False,
) -> list[VolumeSpec]:
    """Volumes of one target, in the order they were named.

    Parameters
    ----------
    paths
        `PATH`, `file:PATH`, `/dev/...`, `null:...` or `faulty:PATH?...`; role data. An existing folder stands for
        `assay.dat` in it. `model:NAME?...` stands for all volumes of a modelled array, and for a whole target.
    volumes
        Values of `--volume`: `data=PATH,log=PATH,tempdb=PATH`. A role given again is one more volume; one path may
        serve several roles.
    sizes
        Value of `--size`, for each volume: `10G`, `2x-cache`, or by role `data=10G,log=2G`.
    with_log
        The first folder among `paths` stands for a log as well, `assay-log.dat` in it, unless `volumes` has one.
    numbered
        Roles of `volumes` may have numbers, which become places: `db1=PATH,log1=PATH`.

    Raises
    ------
    UsageError
        A target, role, option or size is not understood, a path is named twice, or nothing is named.
    NotAnswering
        The file system of a path does not answer.

    Examples
    --------
    >>> [(volume.name, volume.role, volume.size_bytes) for volume in parse_targets(["/srv/none/f"], sizes="1G")]
    [('f', 'data', 1073741824)]
    """
    pairs = split_volumes(volumes, numbered=numbered)
    asked = [("data", text) for text in paths] + pairs
    if any(is_model(text) for _, text in asked):
        return _parse_model(asked, sizes)
    specs = [_parse_one(text, "data") for text in paths]
    specs += [_parse_placed(text, role) for role, text in pairs]
    if with_log and not any(spec.role == "log" for spec in specs):
        logs = [_parse_one(text, "log") for text in paths]
        specs += [log for log, data in zip(logs, specs, strict=False) if log.path != data.path][:1]
    if not specs:
        raise UsageError("no target: give a file, folder or device, or --volume data=PATH,log=PATH")
    _refuse_repeats(specs)
    by_role = _parse_sizes(sizes, {spec.role for spec in specs})
    return named([replace(spec, size_bytes=by_role[spec.role][0], size_rule=by_role[spec.role][1]) for spec in specs])


def _parse_placed(text: str, role: str) -> VolumeSpec:
    """A volume by its role, which may have a number."""
    match = _PLACE.fullmatch(role)
    if match is None:
        return _parse_one(text, role)
    kind = "log" if match[1] == "log" else "data"
    return replace(_parse_one(text, kind), place=f"{kind}{match[2]}")


def parse_file(path: str, role: str) -> VolumeSpec:
    """One file or device by its path, whatever the path looks like; the name is not yet made unique.

    Raises
    ------
    UsageError
        It is no path.
    NotAnswering
        The file system does not answer.
    """
    return _parse_path(path, role, path)


def absolute_target(text: str) -> str:
    """The target as it means the same from every folder.

    Examples
    --------
    >>> absolute_target("/srv/f"), absolute_target("null:?latency=1ms"), absolute_target("faulty:/srv/f?torn=0.1")
    ('/srv/f', 'null:?latency=1ms', 'faulty:/srv/f?torn=0.1')
    """
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    if scheme not in ("", "file", "faulty"):
        return text
    rest = text[match.end() :] if match else text
    path, mark, options = rest.rpartition("?") if scheme == "faulty" and "?" in rest else (rest, "", "")
    return f"{scheme}:{absolute_path(path)}{mark}{options}" if scheme == "faulty" else absolute_path(path)


def absolute_path(text: str) -> str:
    """A path as it means the same from every folder and for every user."""
    return str(Path(text).expanduser().absolute())


def is_model(text: str) -> bool:
    """Whether a target is a modelled array."""
    return text.lower().startswith("model:")


def named(specs: Sequence[VolumeSpec]) -> list[VolumeSpec]:
    """The volumes with names that are unique in their target."""
    return [replace(spec, name=name) for spec, name in zip(specs, _unique_names(specs), strict=True)]


def _parse_one(text: str, role: str) -> VolumeSpec:
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    rest = text[match.end() :] if match else text
    if scheme == "null":
        return VolumeSpec(name="null", kind="null", path=None, role=role, options=_null_options(rest))
    if scheme == "file":
        return _parse_path(rest, role, text)
    if scheme == "faulty":
        return _parse_faulty(rest, role, text)
    # What follows an unknown scheme may hold a password, so no message repeats it.
    if scheme in _DATABASES:
        raise UsageError(
            f"target {scheme}:... is a database, not storage; `assay --help` lists the verbs that take one; give a "
            "file, a folder, a device or null:"
        )
    if scheme in _OTHER_DATABASES:
        raise UsageError(
            f"target {scheme}:... is a database of a kind that Assay does not know by this name; known, to the verbs of"
            " `assay --help` that take one: postgresql://, mariadb://, mysql://, mssql://, duckdb:PATH, embedded:DIR"
        )
    if scheme == "array":
        raise UsageError("target array:... is a whole target; give it alone, to a verb that measures or verifies")
    if scheme:
        nearest = difflib.get_close_matches(scheme, ("null", "file", "faulty", "model", "array"), n=1)
        hint = f"did you mean {nearest[0]}:? " if nearest else ""
        raise UsageError(
            f"target {scheme}:... is of an unknown kind; {hint}accepted: PATH, file:PATH, /dev/..., null:, faulty:PATH,"
            f" model:NAME, array:NAME; a path that begins like this is written file:{scheme}:..."
        )
    return _parse_path(text, role, text)


def _parse_model(asked: Sequence[tuple[str, str]], sizes: str | None) -> list[VolumeSpec]:
    """The volumes of the one array that is the whole target, each with its own role or the one the target has."""
    from assay.targets.arrays.model.configuration import configure
    from assay.targets.arrays.model.options import parse_model_target

    if len(asked) > 1:
        raise UsageError("target model:... is a whole target; give it alone, its volumes by volumes=N in it")
    if sizes is not None:
        raise UsageError("--size: volumes of a model have theirs in the target: model:NAME?volume_size=100GB")
    role, text = asked[0]
    array = configure(*parse_model_target(text))
    if role != "data" and any(array.roles):
        raise UsageError(
            f"--volume {role}=model:...: the target says the roles of its volumes; give it without --volume"
        )
    return [
        VolumeSpec(
            name=name,
            kind="model",
            path=None,
            role=own or role,
            size_bytes=size_bytes,
            options=dict(array.options),
            array=array,
        )
        for (name, size_bytes), own in zip(array.volumes, array.roles, strict=True)
    ]


def _parse_path(text: str, role: str, written: str) -> VolumeSpec:
    if holds_placeholder(text):
        raise UsageError("target: holds a password, which no file, folder or device takes; leave it out")
    if not text.strip() or "\0" in text:
        raise UsageError(f"target {written!r}: not a path; give a file, a folder or a device")
    try:
        path = Path(text).expanduser().absolute()
    except RuntimeError:
        raise UsageError(f"target {written!r}: there is no such user's folder; give the path in full") from None
    mode = answer_within(ANSWER_TIMEOUT_S, lambda: _mode(path), what=str(path))
    if mode is not None and stat.S_ISDIR(mode):
        path /= "assay.dat" if role == "data" else f"assay-{role}.dat"
        mode = answer_within(ANSWER_TIMEOUT_S, lambda: _mode(path), what=str(path))
    elif text.endswith("/"):
        raise UsageError(f"target {written!r}: no such folder; create it, or give the file without the last /")
    # A name below /dev that is missing is a device mistyped, never a file to make there; /dev/shm is a file system.
    is_below_dev = path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm")
    is_device = stat.S_ISBLK(mode) if mode is not None else is_below_dev
    return VolumeSpec(name=printable(path.name), kind="device" if is_device else "file", path=path, role=role)


def _mode(path: Path) -> int | None:
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return None


def _parse_faulty(rest: str, role: str, written: str) -> VolumeSpec:
    path, mark, text = rest.rpartition("?")
    spec = _parse_path(path if mark else rest, role, written)
    if spec.kind == "device":
        raise UsageError(f"target {written!r}: faulty: stores in a file, and {spec.path} is a device; give a file")
    options = _options("faulty", text if mark else "", FAULTY_OPTIONS)
    _check_faulty_options(options)
    return replace(spec, kind="faulty", options=options)


def _check_faulty_options(options: dict[str, str]) -> None:
    chances = {key: _chance(key, value) for key, value in options.items() if key in FAULTS}
    if sum(chances.values()) > 1:
        together = " + ".join(options[key] for key in chances)
        raise UsageError(f"faulty: {together} is above 1; an I/O has one fault at most, so give smaller chances")
    if "seed" in options and not (options["seed"].isascii() and options["seed"].isdecimal() and _fits(options["seed"])):
        raise UsageError(f"faulty: option 'seed': {options['seed']!r} is not a whole number from 0 to 2^63 - 1")
    if "long_io_delay" in options:
        parse_duration(options["long_io_delay"], what="faulty: option 'long_io_delay'")


def _fits(seed: str) -> bool:
    return len(seed) <= 19 and int(seed) < 1 << 63


def _chance(key: str, text: str) -> float:
    try:
        chance = float(text)
    except ValueError:
        chance = math.nan
    if not 0 <= chance <= 1:
        raise UsageError(f"faulty: option {key!r}: {text!r} is not a chance from 0 to 1, such as 1e-5")
    return chance


def _null_options(rest: str) -> dict[str, str]:
    if rest and not rest.startswith("?"):
        raise UsageError(f"target 'null:{rest}': only options may follow, such as null:?latency=200us")
    options = _options("null", rest[1:], NULL_OPTIONS)
    _check_null_options(options)
    return options


def _options(scheme: str, text: str, known: dict[str, str]) -> dict[str, str]:
    """Options of a target as written: `key=value&key=value`, each known and given once."""
    options: dict[str, str] = {}
    for item in filter(None, text.split("&")):
        key, separator, value = item.partition("=")
        if key not in known:
            nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {nearest[0]!r}? " if nearest else ""
            raise UsageError(f"{scheme}: has no option {key!r}; {hint}accepted: {', '.join(known)}")
        if not separator or not value:
            raise UsageError(f"{scheme}: option {key!r} needs a value: {known[key]}")
        if key in options:
            raise UsageError(f"{scheme}: option {key!r} is given twice; give it once")
        options[key] = value
    return options


def _check_null_options(options: dict[str, str]) -> None:
    for key, value in options.items():
        if key != "servers":
            parse_duration(value, what=f"null: option {key!r}")
        elif not re.fullmatch(r"[1-9][0-9]*", value):
            raise UsageError(f"null: option 'servers': {value!r} is not a whole number from 1")
    for key in ("stall_at", "stall_every"):
        if key in options and "stall" not in options:
            raise UsageError(f"null: option {key!r} needs 'stall', how long a stall lasts, such as stall=1s")


def split_volumes(volumes: Sequence[str], *, numbered: bool = False) -> list[tuple[str, str]]:
    """Role and path of each volume in values of `--volume`; roles may be `numbered`.

    Raises
    ------
    UsageError
        A role is missing or unknown, or has no path.
    """
    pairs = []
    for value in volumes:
        for item in value.split(","):
            role, separator, text = item.partition("=")
            role = role.strip()
            if not separator:
                raise UsageError(f"--volume {value!r}: {item!r} has no role; write ROLE=PATH,ROLE=PATH")
            if not (numbered and _PLACE.fullmatch(role)):
                _check_role(role, f"--volume {value!r}")
            if not text:
                raise UsageError(f"--volume {value!r}: {role} has no path; write {role}=PATH")
            pairs.append((role, text))
    return pairs


def _check_role(role: str, where: str) -> None:
    if role not in ROLES:
        nearest = difflib.get_close_matches(role, ROLES, n=1, cutoff=0.5)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        raise UsageError(f"{where}: unknown role {role!r}; {hint}accepted: {', '.join(ROLES)}")


def _refuse_repeats(specs: Sequence[VolumeSpec]) -> None:
    """One path may serve two roles, but not the same role twice: the I/O would be counted as two volumes'."""
    seen: dict[tuple[str, str, str], Path] = {}
    for spec in specs:
        if spec.path is None:
            continue
        path = spec.path
        resolved = answer_within(ANSWER_TIMEOUT_S, partial(os.path.realpath, path), what=str(path))
        key = str(resolved), spec.role, spec.place
        if key in seen:
            same = f"{path} is given twice" if path == seen[key] else f"{path} and {seen[key]} are the same"
            raise UsageError(f"target: {same} for role {spec.role}; give each path once")
        seen[key] = path


def _parse_sizes(sizes: str | None, roles: set[str]) -> dict[str, tuple[int | None, SizeRule | None]]:
    if sizes is None:
        return dict.fromkeys(roles, (None, None))
    if "=" not in sizes:
        return dict.fromkeys(roles, _parse_size(sizes))
    found: dict[str, tuple[int | None, SizeRule | None]] = dict.fromkeys(roles, (None, None))
    given = set()
    for item in sizes.split(","):
        role, separator, text = item.partition("=")
        _check_role(role, f"--size {sizes!r}")
        if not separator or not text:
            raise UsageError(f"--size {sizes!r}: {role} has no size; write {role}=10G")
        if role not in roles or role in given:
            problem = "is given twice" if role in given else "is not the role of any volume"
            raise UsageError(f"--size {sizes!r}: {role} {problem}; roles of this target: {', '.join(sorted(roles))}")
        given.add(role)
        found[role] = _parse_size(text)
    return found


def _parse_size(text: str) -> tuple[int | None, SizeRule | None]:
    if text.strip().lower() == "2x-cache":
        return None, "2x-cache"
    if "cache" in text.lower():
        raise UsageError(f"--size {text!r}: unknown rule; accepted: a size such as 10G, or 2x-cache")
    size_bytes = parse_bytes(text, what="--size")
    if size_bytes <= 0:
        raise UsageError(f"--size {text!r}: a volume needs at least one block; give a size such as 10G, or 2x-cache")
    return size_bytes, None


def _unique_names(specs: Sequence[VolumeSpec]) -> list[str]:
    """File names; where several files share one, the folder before it; then the role, or a number, after it."""
    plain = [spec.name for spec in specs]
    paths_by_name = {name: {spec.path for spec in specs if spec.name == name} for name in plain}
    names: list[str] = []
    for spec in specs:
        is_ambiguous = len(paths_by_name[spec.name]) > 1
        base = f"{printable(spec.path.parent.name)}-{spec.name}" if is_ambiguous and spec.path else spec.name
        by_role = [] if spec.role == "data" else [f"{base}-{spec.role}"]
        candidates = [base, *by_role, *(f"{base}-{number}" for number in range(2, len(specs) + 2))]
        names.append(next(candidate for candidate in candidates if candidate not in names))
    return names
