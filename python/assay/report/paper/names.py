"""Names that a paper can leave out: hosts, paths, users and databases get others, the same ones everywhere.

Facts are renamed before anything is made of them, so that names which tables shorten are renamed whole; the finished
document is renamed once more, for what the user wrote in `paper.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.results.source import Record, RunFacts

if TYPE_CHECKING:
    import polars

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+]*)://(?:(?P<user>[^\s/@:]+)(?::[^\s/@]*)?@)?(?P<host>\[[^\]\s]+\]|[^\s/:?@]*)"
                  r"(?P<port>:\d+)?(?:/(?P<database>[^\s?/]+))?")  # fmt: skip
_PATH = re.compile(r"(?<![\w/.:<])/(?:[^\s/'\",;:()\[\]{}<>|=?&]+/)*[^\s/'\",;:()\[\]{}<>|=?&]+/?")
_TARGET = re.compile(r"\b(?P<scheme>embedded|duckdb|file|faulty):(?P<path>[^\s?,;'\"()]+)")

PUBLIC = ("dev", "proc", "sys", "etc", "run", "boot")
"""Folders at the root whose names every Linux has."""
WEB = ("http", "https")

PATH_OPTIONS = frozenset(
    {"-o", "--output", "--overwrite", "--yes-destroy", "--plan", "--resume", "--volume", "--from", "--derating",
     "--template", "--config", "--site"}
)  # fmt: skip
"""Options of commands whose values are paths."""

COMMON = frozenset(
    {"data", "log", "tempdb", "temp", "read", "write", "host", "storage", "database", "all", "disk", "array", "model",
     "embedded", "localhost", "test", "client", "application", "null", "total", "server", "user"}
)  # fmt: skip
"""Words that texts are full of: as names they tell nothing, and replacing them would spoil sentences."""


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
        self._tokens: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def alias(self, kind: str, name: str) -> str:
        """What stands for a name, the same whenever it is asked for."""
        key = (kind, name)
        if key not in self._aliases:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._aliases[key] = f"{kind}-{self._counts[kind]}"
        return self._aliases[key]

    def learn(self, manifests: Iterable[Record]) -> None:
        """Take in every name that the manifests of runs give as a host's, a user's, a database's or a volume's."""
        for manifest in manifests if self.hidden else ():
            self._learn_hosts(manifest)
            self._learn_urls(manifest)
            self._learn_target(manifest.get("target") or {})
            self._learn_target_words(manifest)

    def _learn_hosts(self, manifest: Record) -> None:
        found = [(manifest.get("host") or {}).get("hostname")]
        recording = manifest.get("recording") or {}
        found += [*(recording.get("hosts") or [])]
        for file in recording.get("files") or []:
            found += [*(file.get("hosts") or [])]
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
            self._token(name, self.alias("database", name))
        for volume in target.get("volumes") or []:
            name, path = str(volume.get("name") or ""), str(volume.get("path") or "")
            owner = next((one for one in databases if one and name.startswith(f"{one}-")), None)
            if owner is not None:
                self._token(name, self.alias("database", owner) + name[len(owner) :])
            elif name and path and not path.startswith("/dev/"):
                self._token(name, self.alias("volume", name))

    def _learn_target_words(self, manifest: Record) -> None:
        """Relative paths of commands, which do not look like paths."""
        words = [str(word) for word in manifest.get("command") or []]
        for before, word in zip(["", *words], words, strict=False):
            if (before in PATH_OPTIONS and "=" not in word and word not in COMMON) or (
                "/" in word and not word.startswith("/") and ":" not in word and "=" not in word
            ):
                self._token(word, self._path(word))
        for path in (manifest.get("request") or {}).get("paths") or []:
            last = str(path).rstrip("/").rpartition("/")[2]
            if "/" in str(path) and last in words and last not in COMMON and ":" not in str(path):
                self._token(last, self.alias("path", last))

    def _token(self, name: str, stands: str) -> None:
        if len(name) > 1 and name.lower() not in COMMON and name not in self._tokens:
            self._tokens[name] = stands
            self._pattern = None

    def text(self, text: str) -> str:
        """A text without the names."""
        if not self.hidden or not text:
            return text
        text = _URL.sub(self._url, text)
        text = _TARGET.sub(lambda match: f"{match['scheme']}:{self._path(match['path'])}", text)
        text = _PATH.sub(lambda match: self._path(match[0]), text)
        if self._pattern is None and self._tokens:
            longest = sorted(self._tokens, key=len, reverse=True)
            names = "|".join(re.escape(name) for name in longest)
            self._pattern = re.compile(rf"(?<![\w/.])(?:{names})(?!\w|[.]\w)")
        return self._pattern.sub(lambda match: self._tokens[match[0]], text) if self._pattern else text

    def _url(self, match: re.Match[str]) -> str:
        if match["scheme"] in WEB:
            return match[0]
        user = f"{self.alias('user', match['user'])}@" if match["user"] else ""
        host = self.alias("host", match["host"].partition(".")[0] or match["host"]) if match["host"] else ""
        database = f"/{self.alias('database', match['database'])}" if match["database"] else ""
        return f"{match['scheme']}://{user}{host}{match['port'] or ''}{database}"

    def _path(self, path: str) -> str:
        """A path whose folders have other names, as many as it has."""
        names = path.split("/")
        if path.startswith("/") and len(names) > 1 and names[1] in PUBLIC:
            return path
        shown = [
            name if name in ("", ".", "..") or re.fullmatch(r"path-\d+", name) else self.alias("path", name)
            for name in names
        ]
        return "/".join(shown)

    def value(self, value: Any, key: str = "") -> Any:
        """A value of JSON without the names, its keys included."""
        if isinstance(value, str):
            return self._whole(value, key)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.value(item, str(name)) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, key) for item in value]
        return value

    def _whole(self, text: str, key: str) -> str:
        """A text that may be a name as a whole: then also where it is a common word."""
        kind = {"hostname": "host", "hosts": "host"}.get(key)
        if key == "histogram":
            return text
        return (
            self.alias(kind, text.partition(".")[0])
            if kind and (kind, text.partition(".")[0]) in self._aliases
            else self.text(text)
        )

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

    def _series(self, series: polars.DataFrame | None) -> polars.DataFrame | None:
        if series is None:
            return None
        import polars as pl

        def renamed(name: str, words: Callable[[str], str]) -> Any:
            known = {text: words(text) for text in series[name].cast(pl.String).unique().drop_nulls()}
            return pl.col(name).cast(pl.String).replace(known)

        own = [renamed("host", self._host_alias)] if "host" in series.columns else []
        own += [renamed("entity", self.text)] if "entity" in series.columns else []
        return series.with_columns(own)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)
