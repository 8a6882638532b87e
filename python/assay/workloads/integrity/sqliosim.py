"""SQLIOSim's configuration file, `sqliosim.cfg`, as a plan of `assay verify`.

Keys, units and defaults are those of KB 231619 and of the files shipped with SQLIOSim. What SQLIOSim takes for 0 or
ignores because it cannot read it, is refused. Nothing here looks at a file.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import normpath
from typing import Any, NoReturn, NotRequired, TypedDict, cast

from assay.base.errors import UsageError
from assay.base.reading import nearest, validated
from assay.base.units import format_bytes
from assay.base.windows_paths import PathMap, is_windows, local_path, parse_maps
from assay.workloads.integrity.plan import LOG_MAX_BYTES, PAGE_BYTES, IntegrityPlan
from assay.workloads.integrity.sqliosim_columns import lines_of
from assay.workloads.integrity.sqliosim_keys import ALIASES, FILE, MB, ORDERED, SECTIONS, Setting, SettingValue

CONFIG_MAX_BYTES = 1 << 20
"""Largest configuration that is read; the shipped ones have 2 KB."""

SECTOR_BYTES = 512

Texts = Mapping[str, str]
"""Text of each key given in a section, keys as SQLIOSim spells them."""


@dataclass(frozen=True)
class Understood:
    """A configuration, understood.

    Parameters
    ----------
    plan
        What `assay verify` runs. `plan.files` is empty where the configuration has no `[File1]`: then the target's
        volumes are used. Otherwise it has at least one data file and one log file; several of each are accepted.
    lines
        A line for each setting with its value in plain units, for what has no effect here, and for what SQLIOSim itself
        would object to.
    """

    plan: IntegrityPlan
    lines: list[str]


def parse_sqliosim(text: str | bytes, *, source: str, maps: Sequence[str] = ()) -> Understood:
    r"""Read a configuration of SQLIOSim.

    Parameters
    ----------
    text
        The file's content: UTF-8, UTF-16 or Windows-1252, 1 MiB at most. Sections, keys and truth values may be in any
        case; a line that begins with `;` is a comment, and so is what follows ` ;` after a number or truth value.
    source
        What errors call it.
    maps
        Values of `--map`, `WINDOWS-PATH=PATH`: where Windows paths are on this system.

    Raises
    ------
    UsageError
        Something is unknown, is not accepted or contradicts itself; the message names file, section, key and value.

    Examples
    --------
    >>> text = "[CONFIG]\nTestCycleDuration=60\n[File1]\nFileName=E:\\a.mdx\nInitialSize=100\n"
    >>> text += "[File2]\nFileName=E:\\a.ldx\nInitialSize=50\nLogFile=TRUE\n"
    >>> plan = parse_sqliosim(text, source="sqliosim.cfg", maps=["E:=/mnt/e"]).plan
    >>> plan.timing.stress_s, [(file.path, file.size_bytes >> 20) for file in plan.files]
    (60.0, [('/mnt/e/a.mdx', 100), ('/mnt/e/a.ldx', 50)])
    """
    return _Reader(source, parse_maps(maps)).read(text)


class FileValues(TypedDict):
    """What a section says of a file, sizes in bytes."""

    InitialSize: int
    MaxSize: NotRequired[int]
    Increment: int
    LogFile: bool
    Shrinkable: bool
    Sparse: bool


@dataclass
class _Reader:
    """One configuration being read."""

    source: str
    maps: list[PathMap]
    lines: list[str] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    """Section of each file, by path."""
    maps_used: list[PathMap] = field(default_factory=list)

    def read(self, content: str | bytes) -> Understood:
        text, printed = lines_of(_decoded(content, self.source), {name.lower() for name in SECTIONS})
        if printed:
            self.lines.append(f"{self.source}: read as {printed}, as papers print it")
        given = self._sections(text)
        values = {name: self._values(name, keys, given.get(name, {})) for name, keys in SECTIONS.items()}
        for section, least, most in ORDERED:
            if float(values[section][least]) > float(values[section][most]):
                texts = {key: SECTIONS[section][key].default for key in (least, most)} | dict(given.get(section, {}))
                self._refuse(section, least, texts[least], f"at most {most}={texts[most]}")
        config = values["CONFIG"]
        if config["UseScatterGather"] and not config["NoBuffering"]:
            config["NoBuffering"] = True
            self._say("CONFIG", "NoBuffering", "FALSE", "no effect; scatter/gather I/O passes by the file cache")
        data: dict[str, Any] = {"name": "sqliosim", "files": self._files(given)}
        for section, keys in SECTIONS.items():
            for key, value in values[section].items():
                *table, name = keys[key].field.split(".")
                if name:
                    (data.setdefault(table[0], {}) if table else data)[name] = value
        plan = validated(IntegrityPlan, data, self.source)
        self.lines += _objections(plan, values)
        unused = [path_map for path_map in self.maps if path_map not in self.maps_used]
        self.lines += [f"--map {path_map.text}: no effect; no FileName is below it" for path_map in unused]
        return Understood(plan, self.lines)

    def _sections(self, text: str) -> dict[str, dict[str, str]]:
        """Texts by section, both as SQLIOSim spells them."""
        sections: dict[str, dict[str, str]] = {}
        section = ""
        for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
            content = line.strip()
            header = re.fullmatch(r"\[([^\]]*)\]\s*(?:;.*)?", content)
            if header is not None:
                section = self._section_name(header[1].strip())
                sections.setdefault(section, {})
            elif content and not content.startswith(";"):
                key, separator, value = content.partition("=")
                if not section or not separator:
                    accepted = (
                        "[CONFIG], [File1], ... with lines KEY=VALUE, or rows of section, key and value with a tab"
                        " between; comments begin with ;"
                    )
                    raise UsageError(f"{self.source}: line {number}: {_short(content)}: accepted: {accepted}")
                self._take(sections[section], section, key.strip(), value)
        if not sections:
            raise UsageError(f"{self.source}: is empty; accepted: sections such as [CONFIG] and [File1]")
        return sections

    def _section_name(self, name: str) -> str:
        number = re.fullmatch(r"file0*([1-9][0-9]{0,4})", name.lower(), re.ASCII)
        if number is not None:
            return f"File{number[1]}"
        by_lower = {known.lower(): known for known in SECTIONS}
        if name.lower() not in by_lower:
            meant = nearest(name, [*SECTIONS, "File1"])
            hint = f"did you mean [{meant}]?" if meant else f"known: {', '.join(SECTIONS)}, File1, File2, ..."
            raise UsageError(f"{self.source}: unknown section [{_short(name)}]; {hint}")
        return by_lower[name.lower()]

    def _take(self, texts: dict[str, str], section: str, name: str, value: str) -> None:
        known = [*SECTIONS[section]] if section in SECTIONS else ["FileName", *FILE]
        key = {one.lower(): one for one in known}.get(ALIASES.get(name.lower(), name).lower())
        if key is None:
            meant = nearest(name, known)
            hint = f"did you mean {meant}?" if meant else f"known: {', '.join(known)}"
            raise UsageError(f"{self.source}: [{section}] unknown key {_short(name)}; {hint}")
        # A name may hold a semicolon; in numbers and truth values it begins a comment.
        text = value.strip() if key in ("FileName", "ErrorFile") else re.split(r"(?:^|\s);", value)[0].strip()
        quoted = re.fullmatch(r"\"(.*)\"|'(.*)'", text)
        if quoted is not None:
            text = (quoted[1] or quoted[2] or "").strip()
        if texts.setdefault(key, text).lower() != text.lower():
            self._refuse(section, key, text, f"one value; it was {_short(texts[key])} before")

    def _values(self, section: str, settings: Mapping[str, Setting], texts: Texts) -> dict[str, SettingValue]:
        """Values of a section, with a line for each key given and one for the defaults of all others."""
        values: dict[str, SettingValue] = {}
        others = []
        for key, setting in settings.items():
            text = texts.get(key, setting.default)
            if text is None:
                if setting.if_missing:
                    self.lines.append(f"[{section}] {key} not given: {setting.if_missing}")
                continue
            try:
                values[key] = setting.kind.read(text)
            except ValueError as error:
                self._refuse(section, key, text, str(error))
            if key not in texts:
                others.append(f"{key} {setting.kind.show(values[key])}")
            elif setting.without_effect:
                self._say(section, key, text, f"no effect; {setting.without_effect}")
            else:
                self._say(section, key, text, setting.kind.show(values[key]))
        if others:
            self.lines.append(f"[{section}] not given, so SQLIOSim's defaults: {', '.join(others)}")
        return values

    def _files(self, given: Mapping[str, Texts]) -> list[dict[str, SettingValue]]:
        files: list[dict[str, SettingValue]] = []
        for section in sorted(given.keys() - SECTIONS.keys(), key=lambda name: int(name.removeprefix("File"))):
            texts = given[section]
            if texts.keys() <= {"FileName"} and not texts.get("FileName"):
                self.lines.append(f"[{section}] no effect; it names no file")
            else:
                files.append(self._file(section, texts))
        if not files:
            self.lines.append("[File1] not given: the target's volumes are used")
        elif len({file["log"] for file in files}) == 1:
            kind, flag = ("data", "FALSE") if files[0]["log"] else ("log", "TRUE")
            raise UsageError(f"{self.source}: no {kind} file; at least one [FileN] with LogFile={flag} is needed")
        return files

    def _file(self, section: str, texts: Texts) -> dict[str, SettingValue]:
        path = self._path(section, texts.get("FileName", ""))
        if "InitialSize" not in texts:
            self._refuse(section, "InitialSize", None, "the file's first size in MB")
        found = self._values(section, FILE, texts)
        values = cast("FileValues", found)
        most_bytes = values.get("MaxSize", values["InitialSize"])
        if values["LogFile"] and max(values["InitialSize"], most_bytes) > LOG_MAX_BYTES:
            key = "InitialSize" if values["InitialSize"] > LOG_MAX_BYTES else "MaxSize"
            accepted = f"at most {LOG_MAX_BYTES // MB} for a log, whose block numbers have 32 bits"
            self._refuse(section, key, texts[key], accepted)
        if most_bytes < values["InitialSize"]:
            self._refuse(section, "MaxSize", texts["MaxSize"], f"at least InitialSize={texts['InitialSize']}")
        if values["Increment"] > most_bytes:
            self._refuse(section, "Increment", texts["Increment"], f"at most the file's {most_bytes // MB} MB")
        if values["Shrinkable"] and not values["Increment"]:
            values["Shrinkable"] = False
            self._say(section, "Shrinkable", texts["Shrinkable"], "no effect; with Increment=0 the file keeps its size")
        if most_bytes > values["InitialSize"] and (values["LogFile"] or not values["Shrinkable"]):
            why = (
                "a log is written in the round" if values["LogFile"] else "a file that is not Shrinkable keeps its size"
            )
            self._say(section, "MaxSize", texts["MaxSize"], f"no effect; {why}")
        return {"path": path} | {FILE[key].field: value for key, value in found.items()}

    def _path(self, section: str, name: str) -> str:
        if not name:
            self._refuse(section, "FileName", None, "the path of a file")
        if re.search(r"\s;", name):
            self._refuse(section, "FileName", name, "a path alone; a comment stands on a line of its own")
        try:
            path, path_map = local_path(name, self.maps)
        except UsageError as error:
            raise UsageError(f"{self.source}: [{section}] FileName={_short(name)}: {error}") from None
        if len(path) > 4096:
            self._refuse(section, "FileName", name, "at most 4096 characters")
        if path_map is not None:
            self.maps_used.append(path_map)
        # Windows tells no case apart: there, two such names are one file.
        same = [normpath(path)] + ([f"windows:{normpath(path).lower()}"] if is_windows(name) else [])
        for spelling in same:
            other = self.paths.setdefault(spelling, section)
            if other != section:
                self._refuse(section, "FileName", name, f"a file of its own; [{other}] has this one")
        self._say(section, "FileName", name, _short(path))
        return path

    def _say(self, section: str, key: str, text: str, meaning: str) -> None:
        self.lines.append(f"[{section}] {key}={_short(text)}: {meaning}")

    def _refuse(self, section: str, key: str, text: str | None, accepted: str) -> NoReturn:
        given = f"{key} is missing" if text is None else f"{key}={_short(text)} is not accepted"
        raise UsageError(f"{self.source}: [{section}] {given}; accepted: {accepted}")


def _objections(plan: IntegrityPlan, values: Mapping[str, Mapping[str, SettingValue]]) -> Iterator[str]:
    """What SQLIOSim would object to or change, and `assay verify` does as asked."""
    config, random = values["CONFIG"], plan.random
    data_files = [file for file in plan.files if not file.log]
    if isinstance(cpus := config.get("CPUCount"), int):
        users_most = max(cpus * 1023 - 100, 0)
        users = sum(max(kind.users, 0) for kind in (random, plan.audit, plan.read_ahead, plan.bulk_update))
        if users > users_most:
            yield f"UserCount: {users} users in all; SQLIOSim has at most {users_most} with CPUCount={cpus}"
    if random.log_bytes_min % SECTOR_BYTES and SECTOR_BYTES % random.log_bytes_min:
        yield f"[RandomUser] MinLogPerBuffer: SQLIOSim wants a multiple or a fraction of a sector, {SECTOR_BYTES} bytes"
    if random.log_bytes_max % SECTOR_BYTES:
        yield f"[RandomUser] MaxLogPerBuffer: SQLIOSim wants a multiple of a sector, {SECTOR_BYTES} bytes"
    if any(file.sparse for file in plan.files) and not plan.no_buffering:
        yield "[CONFIG] NoBuffering: SQLIOSim itself may report errors of sparse files with NoBuffering=FALSE"
    if plan.memory_bytes is not None and data_files:
        most_bytes = plan.memory_bytes // len(data_files)
        largest = max((file.increment_bytes for file in data_files if file.shrinkable), default=0)
        if largest * plan.shrink.extents_max >= most_bytes:
            yield (
                f"[ShrinkUser] MaxExtends: SQLIOSim lowers Increment until MaxExtends times Increment is below"
                f" {format_bytes(most_bytes)}, the pool by data files"
            )
    if data_files:
        smallest = min(file.size_bytes for file in data_files) // PAGE_BYTES
        pages = {
            "[RandomUser] MaxIOChainLength": random.chain_max,
            "[AuditUser] BuffersValidated": plan.audit.pages,
            "[ReadAheadUser] BuffersRAMax": plan.read_ahead.pages_max,
            "[BulkUpdateUser] BuffersBUMax": plan.bulk_update.pages_max,
        }
        for key, count in pages.items():
            if count > smallest:
                yield f"{key}: more than the {smallest} pages of the smallest data file"


def _decoded(content: str | bytes, source: str) -> str:
    if len(content) > CONFIG_MAX_BYTES:
        raise UsageError(f"{source}: has more than {format_bytes(CONFIG_MAX_BYTES)}; this is no sqliosim.cfg")
    text = content if isinstance(content, str) else _text_of(content)
    # Control characters, surrogates and the like: such a file may be anything.
    if text is None or re.search("[^\t\n\r\x20-\x7e\x80-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text):
        raise UsageError(f"{source}: is not text; accepted: a sqliosim.cfg in UTF-8, UTF-16 or Windows-1252")
    return text.removeprefix("\ufeff")


def _text_of(content: bytes) -> str | None:
    encodings = ["utf-8", "cp1252"]
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encodings = ["utf-16"]
    elif content[1:2] == b"\0":
        encodings = ["utf-16-le"]
    for encoding in encodings:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def _short(text: str) -> str:
    """Text of a file as a message shows it: one line, not too long."""
    shown = text if text.isprintable() else repr(text)[1:-1]
    return shown if len(shown) <= 200 else f"{shown[:197]}..."
