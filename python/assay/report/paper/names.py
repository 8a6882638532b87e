"""Names that a paper can leave out: hosts, paths, users and databases get others, the same ones everywhere.

Facts are renamed before anything is made of them, so that names which tables shorten are renamed whole; the finished
document is renamed once more, for what the user wrote in `paper.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from assay.base.tables import Record
from assay.document.remarks import WORDS
from assay.insight.rules.registry import RULES
from assay.insight.studies.files import read_study, study_names
from assay.record.source import RunFacts
from assay.report.paper.texts import shipped
from assay.workloads.registry import workloads

if TYPE_CHECKING:
    from assay.record.rows import Rows

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+]*)://(?:(?P<user>[^\s/@:]+)(?::[^\s/@]*)?@)?(?P<host>\[[^\]\s]+\]|[^\s/:?@]*)"
                  r"(?P<port>:\d+)?(?:/(?P<database>[^\s?/]+))?")  # fmt: skip
_PATH = re.compile(r"(?<![\w/.:<])\.{0,2}/(?:[^\s/'\",;:()\[\]{}<>|=?&]+/)*[^\s/'\",;:()\[\]{}<>|=?&]+/?")
_TARGET = re.compile(r"\b(?P<scheme>embedded|duckdb|file|faulty|model(?=:[^\s?]*/)):(?P<path>[^\s?,;'\"()]+)")
"""A model is a path where it is no name of the catalogue."""
_EXPORT = re.compile(r"(?<![\w/.:])(?P<host>[A-Za-z0-9][\w.-]*):(?P<path>/(?!/)[^\s'\",;()\[\]{}<>|=?&]+)")
"""A folder of another host, as NFS names it."""
_WINDOWS = re.compile(
    r"(?P<begins>(?<![\w\\])[A-Za-z]:\\|(?<!\\)\\\\(?P<host>[\w.-]+)\\)(?P<path>[^\s'\",;()\[\]{}<>|=?&]*)"
)
SCHEMES = ("embedded", "duckdb", "file", "faulty", "model", "null", "array")
"""Kinds of targets, which look like hosts before a path."""

PUBLIC = ("dev", "proc", "sys", "etc", "run", "boot")
"""Folders at the root whose names every Linux has."""
WEB = ("http", "https")
GENERIC = ("database", "mail", "measured")
"""Names that a need gives where its writer gives none."""

PATH_OPTIONS = frozenset(
    {"-o", "--output", "--overwrite", "--yes-destroy", "--yes-format", "--plan", "--resume", "--volume", "--from",
     "--derating", "--hit-curve", "--template", "--config", "--site", "--check", "--profile"}
)  # fmt: skip
"""Options of commands whose values are paths."""

_VALUE = re.compile(r"(?<=[=,])[^=,?&]+")
_STANDS = re.compile(r"(?:run|host|user|database|volume|path)-\d+")
_WORDS = re.compile(r"[a-z0-9]+")


@cache
def vocabulary() -> frozenset[str]:
    """Words that papers are full of: as names they tell nothing, and replacing them would spoil sentences."""
    texts = [*shipped().values(), *(text for pair in WORDS for text in pair)]
    texts += [text for workload in workloads() for one in workload.figures for text in (one.title, one.full, one.noun)]
    texts += [text for rule in RULES for text in (rule.title, rule.wanted, rule.why, rule.fix, rule.source)]
    texts += [text for name in study_names() for study in [read_study(name)] for text in (study.title, study.question)]
    found = {word for text in texts for word in _WORDS.findall(text.lower())}
    return frozenset(found | {"localhost", "client", "application", "total", "null", "embedded"})


class Names:
    """Names and what stands for them.

    Parameters
    ----------
    hidden
        Whether names are replaced at all; without it every text stays as it is.
    """

    def __init__(self, *, hidden: bool) -> None:
        self.hidden = hidden
        self._aliases: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._issued: set[str] = set()
        self._real: set[str] = set()
        self._tokens: dict[str, str] = {}
        self._folders: set[str] = set()
        self._things: dict[str, str] = {}
        self._sized: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def alias(self, kind: str, name: str) -> str:
        """What stands for a name, the same whenever it is asked for."""
        key = (kind, name)
        if name in self._issued:
            # The finished document is renamed once more.
            return name
        while key not in self._aliases:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            stands = f"{kind}-{self._counts[kind]}"
            # What a run itself calls so keeps its name apart.
            if stands not in self._real:
                self._aliases[key] = stands
                self._issued.add(stands)
        return self._aliases[key]

    def learn(self, manifests: Iterable[Record]) -> None:
        """Take in every name that the manifests of runs give as a host's, a user's, a database's or a volume's."""
        known = list(manifests) if self.hidden else []
        self._real |= {name for text in _texts(known) for name in _STANDS.findall(text)}
        for manifest in known:
            if title := manifest.get("title"):
                self._thing(str(title), self.alias("run", str(title)))
            self._learn_hosts(manifest)
            self._learn_urls(manifest)
            self._learn_target(manifest.get("target") or {})
            self._learn_checked(manifest.get("check") or {})
            self._learn_folders(manifest)
            for name in (manifest.get("sizing") or {}).get("named") or []:
                if str(name) not in GENERIC:
                    self._sized[str(name)] = self.alias("database", str(name))
                    self._token(str(name), self._sized[str(name)])

    def _learn_hosts(self, manifest: Record) -> None:
        found = [(manifest.get("host") or {}).get("hostname")]
        recording = manifest.get("recording") or {}
        found += [*(recording.get("hosts") or [])]
        for file in recording.get("files") or []:
            found += [*(file.get("hosts") or [])]
        for one in manifest.get("hosts") or []:
            if isinstance(one, Mapping):
                found += [one.get("name"), (one.get("host") or {}).get("hostname")]
        for host in found:
            self._host(str(host or ""))

    def _host(self, name: str) -> None:
        short, _, domain = name.partition(".")
        if not short or re.fullmatch(r"[0-9.:\[\]]*", name):
            if name:
                self._token(name, self.alias("host", name))
            return
        self._token(short, self.alias("host", short))
        if domain:
            self._token(name, self.alias("host", short))

    def _learn_urls(self, value: Any) -> None:
        for text in _texts(value):
            for match in _URL.finditer(text):
                if match["scheme"] in WEB:
                    continue
                for kind in ("user", "database"):
                    if match[kind]:
                        self._token(match[kind], self.alias(kind, match[kind]))
                if match["host"]:
                    self._host(match["host"])

    def _learn_target(self, target: Record) -> None:
        databases = [str(one.get("name") or "") for one in target.get("databases") or []]
        for name in filter(None, databases):
            self._thing(name, self.alias("database", name))
        for volume in target.get("volumes") or []:
            name, path = str(volume.get("name") or ""), str(volume.get("path") or "")
            owner = max((one for one in databases if one and name.startswith(f"{one}-")), key=len, default=None)
            if owner is not None:
                self._thing(name, self.alias("database", owner) + name[len(owner) :])
            elif name and path and not path.startswith("/dev/"):
                self._thing(name, self.alias("volume", name))

    def _learn_checked(self, check: Record) -> None:
        """Hosts and databases that best practice was asked of."""
        kinds = {rule.id: rule.subject for rule in RULES}
        for one in (one for key in ("findings", "passed", "not_checked") for one in check.get(key) or []):
            kind, name = kinds.get(str(one.get("rule"))), str(one.get("subject") or "")
            if kind == "host":
                self._host(name)
            elif kind == "database" and name:
                self._thing(name, self.alias("database", name))

    def command(self, words: Sequence[str]) -> list[str]:
        """Words of a command without the names: also paths that look like any word, by where they stand."""
        if not self.hidden:
            return list(words)
        shown = []
        for before, word in zip(["", *words], words, strict=False):
            is_path = before in PATH_OPTIONS and "=" not in word
            is_path = is_path or ("/" in word and ":" not in word and "=" not in word) or word in self._folders
            shown.append(self._path(word) if is_path else self.text(_VALUE.sub(self._value, word)))
        return shown

    def _value(self, match: re.Match[str]) -> str:
        """A value of `data=PATH,log=PATH`."""
        return self._path(match[0]) if "/" in match[0] and ":" not in match[0] else match[0]

    def _learn_folders(self, manifest: Record) -> None:
        """Folders that a command may name by their last part alone."""
        for path in (manifest.get("request") or {}).get("paths") or []:
            if "/" in str(path) and ":" not in str(path):
                self._folders.add(str(path).rstrip("/").rpartition("/")[2])

    def _thing(self, name: str, stands: str) -> None:
        self._things[name] = stands
        self._token(name, stands)

    def _token(self, name: str, stands: str) -> None:
        if len(name) > 1 and name.lower() not in vocabulary() and name not in self._tokens:
            self._tokens[name] = stands
            self._pattern = None

    def text(self, text: str) -> str:
        """A text without the names."""
        if not self.hidden or not text:
            return text
        text = _URL.sub(self._url, text)
        text = _TARGET.sub(lambda match: f"{match['scheme']}:{self._path(match['path'])}", text)
        text = _EXPORT.sub(self._export, text)
        text = _WINDOWS.sub(self._windows, text)
        text = _PATH.sub(lambda match: self._path(match[0]), text)
        if self._pattern is None and self._tokens:
            longest = sorted(self._tokens, key=len, reverse=True)
            names = "|".join(re.escape(name) for name in longest)
            self._pattern = re.compile(rf"(?<![\w.])(?:{names})(?!\w|[.]\w)")
        return self._pattern.sub(lambda match: self._tokens[match[0]], text) if self._pattern else text

    def _url(self, match: re.Match[str]) -> str:
        if match["scheme"] in WEB:
            return match[0]
        user = f"{self.alias('user', match['user'])}@" if match["user"] else ""
        host = self.alias("host", match["host"].partition(".")[0] or match["host"]) if match["host"] else ""
        database = f"/{self.alias('database', match['database'])}" if match["database"] else ""
        return f"{match['scheme']}://{user}{host}{match['port'] or ''}{database}"

    def _export(self, match: re.Match[str]) -> str:
        host = match["host"]
        if host in SCHEMES or host in self._issued:
            return match[0] if host in SCHEMES else f"{host}:{self._path(match['path'])}"
        return f"{self._host_known(host)}:{self._path(match['path'])}"

    def _windows(self, match: re.Match[str]) -> str:
        begins = f"\\\\{self._host_known(match['host'])}\\" if match["host"] else match["begins"]
        names = match["path"].split("\\")
        return begins + "\\".join(self.alias("path", name) if name else "" for name in names)

    def _host_known(self, host: str) -> str:
        return self.alias("host", host.partition(".")[0])

    def _path(self, path: str) -> str:
        """A path whose folders have other names, as many as it has."""
        names = path.split("/")
        if path.startswith("/") and len(names) > 1 and names[1] in PUBLIC:
            return path
        shown = [name if name in ("", ".", "..") else self.alias("path", name) for name in names]
        return "/".join(shown)

    def value(self, value: Any, key: str = "") -> Any:
        """A value of JSON without the names, its keys included."""
        if isinstance(value, str):
            return (
                value
                if key == "histogram"
                else self._host_alias(value)
                if key in ("hostname", "hosts", "subject")
                else self.text(value)
            )
        if isinstance(value, Mapping):
            held = self._without_sized(value) if key == "sizing" and self._sized else value
            return {self.text(str(name)): self.value(item, str(name)) for name, item in held.items()}
        if isinstance(value, list | tuple):
            if key == "command":
                return self.command([str(word) for word in value])
            if key == "hosts":
                return [self._of_host(item) for item in value]
            if key in ("databases", "volumes"):
                return [self._named(item) for item in value]
            return [self.value(item, key) for item in value]
        return value

    def _without_sized(self, value: Any) -> Any:
        """Replace the sizing's database and mailbox names by aliases, in every text."""
        if isinstance(value, str):
            names = "|".join(re.escape(name) for name in sorted(self._sized, key=len, reverse=True))
            return re.sub(rf"(?<![\w.])(?:{names})(?!\w|[.]\w)", lambda match: self._sized[match[0]], value)
        if isinstance(value, Mapping):
            return {name: self._without_sized(item) for name, item in value.items()}
        return [self._without_sized(item) for item in value] if isinstance(value, list | tuple) else value

    def _of_host(self, value: Any) -> Any:
        """A host, or its name."""
        if not isinstance(value, Mapping):
            return self._host_alias(str(value))
        made: Mapping[str, object] = self.value(value)
        return {**made, "name": self._host_alias(str(value["name"]))} if "name" in value else made

    def _named(self, value: Any) -> Any:
        """A database or a volume: its name stands for itself, whatever word it is."""
        if not isinstance(value, Mapping):
            return self.value(value)
        made: Mapping[str, object] = self.value(value)
        name = str(value.get("name") or "")
        return {**made, "name": self._things[name]} if name in self._things else made

    def facts(self, facts: RunFacts) -> RunFacts:
        """Facts of a run without the names."""
        if not self.hidden:
            return facts
        return replace(
            facts,
            manifest=self.value(facts.manifest),
            points=self.value(facts.points),
            series=self._series(facts.series),
            unreadable=[self.text(text) for text in facts.unreadable],
            spreads={
                (self._host_alias(host), source, self.text(entity), metric): spread
                for (host, source, entity, metric), spread in facts.spreads.items()
            },
        )

    def _host_alias(self, host: str) -> str:
        short = host.partition(".")[0]
        return self._aliases.get(("host", short), self.text(host))

    def _series(self, series: Rows | None) -> Rows | None:
        return None if series is None else series.renamed("host", self._host_alias).renamed("entity", self.text)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)
