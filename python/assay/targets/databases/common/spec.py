"""Reading database targets: `embedded:DIR`, `duckdb:PATH`, `postgresql://...`, `mssql://...`, `spark-local:DIR`."""

from __future__ import annotations

import difflib
import getpass
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeGuard
from urllib.parse import unquote

from assay.base.command_line import user_part_end
from assay.base.errors import UsageError
from assay.base.secrets import Secret, is_placeholder, secret_named, typed_password
from assay.targets.arrays.live.spec import ServedSpec, parse_served
from assay.targets.databases.embedded.tuning import PRESETS, SETTINGS, tuning_of

Kind = Literal["embedded", "postgresql", "mariadb", "mssql", "duckdb", "spark"]
TlsMode = Literal["disable", "prefer", "require", "verify-ca", "verify-full"]

TLS_MODES: tuple[TlsMode, ...] = ("disable", "prefer", "require", "verify-ca", "verify-full")
"""How a connection is encrypted, in the words of libpq's `sslmode`, for all servers alike."""

ON_ARRAY = "embedded+array"
"""Scheme of databases on an array that the run serves."""

ARRAY_VOLUME = "8GiB"
"""Size of volumes for databases unless the target says it: files of disks are sparse, and a default load fits."""

_SCHEMES: dict[str, Kind] = {
    "embedded": "embedded",
    ON_ARRAY: "embedded",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mariadb": "mariadb",
    "mysql": "mariadb",
    "mssql": "mssql",
    "duckdb": "duckdb",
    "spark": "spark",
    "spark-local": "spark",
}

SPELT: dict[Kind, str] = {
    "embedded": "embedded:DIR",
    "duckdb": "duckdb:PATH",
    "postgresql": "postgresql://USER@HOST/DATABASE",
    "mariadb": "mariadb:// (mysql:// too)",
    "mssql": "mssql://",
    "spark": "spark-local:DIR or spark://HOST:7077/DIR",
}
"""How a target of each kind is written."""

PORTS = {"postgresql": 5432, "mariadb": 3306, "mssql": 1433, "spark": 7077}
_PASSWORD_VARIABLES = {"postgresql": "PGPASSWORD", "mariadb": "MYSQL_PWD", "mssql": "MSSQL_PASSWORD"}
_DEFAULT_SOCKETS = {"postgresql": "/var/run/postgresql", "mariadb": "/run/mysqld/mysqld.sock"}

_OPTIONS = {
    "sslmode": f"one of {', '.join(TLS_MODES)}",
    "sslrootcert": "file with the certificates that are trusted, in PEM form",
    "password": "the password, where it does not stand before the @",
}
_OPTIONS_BY_KIND = {
    "embedded": {
        "wal": "a folder for the log, such as one on another disk",
        "preset": f"settings for what the database is for: {', '.join(PRESETS)}",
        "read_ahead": "bytes that the system reads ahead on the disks of the data, such as read_ahead=4MiB",
        "set.NAME": "a setting of the server, such as set.shared_buffers=4GB",
    },
    "postgresql": _OPTIONS | {"host": "a host, or the folder of the server's socket", "port": "a port"},
    "mariadb": _OPTIONS | {"socket": "path of the server's socket"},
    "mssql": _OPTIONS,
    "duckdb": {
        "memory_limit": "most memory, such as memory_limit=4GB",
        "threads": "threads of a query, a whole number",
        "temp_directory": "a folder that is there for what does not fit into memory, such as one on another disk",
        "max_temp_directory_size": "most of that, such as max_temp_directory_size=100GB",
        "checkpoint_threshold": "log at which it is written to the file, such as checkpoint_threshold=1GB",
        "preserve_insertion_order": "true or false",
    },
    "spark": {
        "java": "folder of a Java, such as java=/usr/lib/jvm/java-17-openjdk-amd64",
        "spark.NAME": "a setting of Spark, such as spark.driver.memory=4g",
    },
}

_DUCKDB_SIZE = r"[0-9]+(\.[0-9]+)? ?([KMGT]i?)?B"
_DUCKDB_VALUES = {
    "memory_limit": _DUCKDB_SIZE,
    "threads": r"[1-9][0-9]{0,3}",
    "max_temp_directory_size": _DUCKDB_SIZE,
    "checkpoint_threshold": _DUCKDB_SIZE,
    "preserve_insertion_order": "true|false",
}
"""What the value of an option looks like, in any case of letters."""


@dataclass(frozen=True, kw_only=True)
class DatabaseSpec:
    """One database as named by the user; nothing has been connected to yet.

    Attributes
    ----------
    kind
        `mariadb` stands for MySQL as well: the server says which it is.
    name
        The database, or the last part of the folder of `embedded:` or of the file of `duckdb:`. `parse_databases` makes
        it unique.
    display
        What the user wrote, without the password.
    kept
        Of `embedded:` and `duckdb:`, the same with its paths in full.
    socket
        Full path of the server's socket, in place of `host` and `port`.
    directory, wal_directory
        Of `embedded:`; absolute.
    file
        Of `duckdb:`; absolute.
    settings, preset, read_ahead_bytes
        Settings of `embedded:` and `duckdb:`, by name; a preset of more; what the system reads ahead of the data.
    array
        The array that the run serves for it.
    data_volumes
        Volumes of that array for its data: the first holds its folder, all hold its tablespaces.
    temp_volume
        Volume of that array for its temporary files; beside the data without one.
    """

    kind: Kind
    name: str
    display: str
    host: str | None = None
    port: int = 0
    socket: str | None = None
    user: str = ""
    password: Secret | None = None
    database: str = ""
    tls: TlsMode = "prefer"
    tls_ca: str | None = None
    directory: Path | None = None
    wal_directory: Path | None = None
    file: Path | None = None
    settings: dict[str, str] = field(default_factory=dict)
    preset: str = ""
    read_ahead_bytes: int | None = None
    kept: str = ""
    array: ServedSpec | None = None
    data_volumes: tuple[str, ...] = ()
    temp_volume: str | None = None

    @property
    def recorded(self) -> str:
        """The target as a run folder keeps it: it means the same from every folder, and holds no password."""
        return self.kept or self.display


def is_database(text: str) -> bool:
    """Whether a target names a database rather than storage.

    Examples
    --------
    >>> is_database("embedded:/srv/db"), is_database("mariadb://root@db/tpcc"), is_database("/srv/db")
    (True, True, False)
    """
    scheme, colon, _ = text.partition(":")
    return bool(colon) and scheme.lower() in _SCHEMES


def parse_databases(texts: Sequence[str], environ: Mapping[str, str] = os.environ) -> list[DatabaseSpec]:
    """Read the databases of one system; their names are made unique.

    Raises
    ------
    UsageError
        A target is no database or not understood, or one is named twice.
    """
    specs: list[DatabaseSpec] = []
    for spec in (spec for text in texts for spec in _parse_several(text, environ)):
        if any(_place(spec) == _place(other) for other in specs):
            raise UsageError(f"target {spec.display} is given twice; give each database once")
        names = [other.name for other in specs]
        numbered = (f"{spec.name}-{number}" for number in range(2, len(texts) + 2))
        name = next(name for name in (spec.name, *numbered) if name not in names)
        specs.append(replace(spec, name=name))
    return specs


def _parse_several(text: str, environ: Mapping[str, str]) -> list[DatabaseSpec]:
    """The databases of one target: an array may carry several."""
    if text.lower().startswith(f"{ON_ARRAY}:"):
        return _parse_on_array(text)
    return [parse_database(text, environ)]


def _place(spec: DatabaseSpec) -> tuple[object, ...]:
    if (place := spec.directory or spec.file) is not None:
        return (os.path.realpath(place),)
    return spec.kind, spec.host, spec.port, spec.socket, spec.database


def parse_database(text: str, environ: Mapping[str, str] = os.environ) -> DatabaseSpec:
    """Read one database target.

    Parameters
    ----------
    text
        As on the command line. A password may stand in it, or a word that `assay.base.secrets` put in its place.
    environ
        Where passwords are looked for: `PGPASSWORD`, `MYSQL_PWD`, `MSSQL_PASSWORD`.

    Raises
    ------
    UsageError
        It is not understood. No message holds what may be a password.

    Examples
    --------
    >>> spec = parse_database("postgresql://tester:secret@db.example/tpcc?sslmode=require", {})
    >>> spec.display, spec.port, spec.tls, spec.password
    ('postgresql://tester@db.example/tpcc?sslmode=require', 5432, 'require', Secret(***))
    """
    scheme, colon, rest = text.partition(":")
    kind = _SCHEMES.get(scheme.lower()) if colon else None
    if kind is None:
        # What follows an unknown scheme may hold a password, so no message repeats it.
        named = f"target {scheme}:..." if colon else f"target {text!r}"
        nearest = difflib.get_close_matches(scheme.lower(), _SCHEMES, n=1)
        hint = f"did you mean {nearest[0]}:? " if nearest else ""
        raise UsageError(
            f"{named} is no database; {hint}accepted: embedded:DIR, embedded+array:NAME, duckdb:PATH, "
            "postgresql://USER@HOST/DATABASE, mariadb://, mysql://, mssql://, spark-local:DIR, spark://HOST:7077/DIR"
        )
    if scheme.lower() == ON_ARRAY:
        return _parse_on_array(text)[0]
    if kind == "embedded":
        return _parse_embedded(rest)
    if kind == "duckdb":
        return _parse_duckdb(rest)
    if kind == "spark":
        return _parse_spark(scheme.lower(), rest)
    return _UrlReader(scheme.lower(), kind, environ).read(rest)


def _parse_embedded(rest: str) -> DatabaseSpec:
    path, mark, options_text = rest.partition("?")
    what = "embedded:"
    if not path.strip() or "\0" in rest:
        raise UsageError("embedded: needs a folder for the database, such as embedded:/srv/assay-db")
    options = _options(what, "embedded", options_text if mark else "")
    wal_directory = _absolute(options["wal"], "embedded: option 'wal'") if "wal" in options else None
    directory = _absolute(path, "embedded:")
    if wal_directory is not None and (wal_directory == directory or wal_directory.is_relative_to(directory)):
        raise UsageError(f"embedded: option 'wal': {wal_directory} lies within {directory}; give a folder outside it")
    return DatabaseSpec(
        kind="embedded",
        name=directory.name or "embedded",
        display=f"embedded:{rest}",
        kept=_kept_embedded(directory, wal_directory, options_text),
        user="assay",
        database="assay",
        tls="disable",
        directory=directory,
        wal_directory=wal_directory,
        **tuning_of(what, options),
    )


def _parse_on_array(text: str) -> list[DatabaseSpec]:
    """The databases on an array, each on volumes of its own: data, log and temporary files, dealt out in turn."""
    name, _, query = text.partition(":")[2].partition("?")
    items = [item for item in query.split("&") if item]
    own = [item for item in items if item.startswith(("set.", "preset=", "read_ahead=", "databases="))]
    given = "&".join(item for item in own if not item.startswith("databases="))
    tuning = tuning_of("embedded+array:", _options("embedded+array:", "embedded", given))
    counts = [item.partition("=")[2] for item in own if item.startswith("databases=")]
    if len(counts) > 1 or any(not re.fullmatch(r"[1-9][0-9]{0,2}", count) for count in counts):
        raise UsageError(f"embedded+array: option 'databases' is one whole number from 1 on; not {', '.join(counts)!r}")
    count = int(counts[0]) if counts else 1
    rest = "&".join(item for item in items if item not in own)
    array = parse_served(f"{ON_ARRAY}:{name}" + (f"?{rest}" if rest else ""), scheme=ON_ARRAY, volume_size=ARRAY_VOLUME)
    volumes = array.volumes()
    data = [name for name, role, _ in volumes if role == "data"]
    logs = [name for name, role, _ in volumes if role == "log"]
    temps = [name for name, role, _ in volumes if role == "tempdb"]
    if len(data) < count or any(own and len(own) < count for own in (logs, temps)):
        raise UsageError(
            f"embedded+array: {count} databases need as many volumes of each role, such as"
            f" volumes=data:{count},log:{count}; there are {len(data)} for data, {len(logs)} for the log and"
            f" {len(temps)} for temporary files"
        )
    kept = f"{ON_ARRAY}:{array.text}" + "".join(f"&{item}" for item in own)
    found = []
    for number in range(count):
        mine = tuple(data[number::count])
        found.append(
            DatabaseSpec(
                kind="embedded",
                name=f"{Path(array.name).stem}-{number + 1}" if count > 1 else Path(array.name).stem,
                display=text,
                kept=kept,
                user="assay",
                database="assay",
                tls="disable",
                directory=array.mounts / mine[0] / "pg",
                wal_directory=array.mounts / logs[number] / "wal" if logs else None,
                **tuning,
                array=array,
                data_volumes=mine,
                temp_volume=temps[number] if temps else None,
            )
        )
    return found


def _parse_duckdb(rest: str) -> DatabaseSpec:
    path, _, options_text = rest.partition("?")
    if not path.strip() or path.endswith("/") or "\0" in rest:
        raise UsageError("duckdb: needs a file for the database, such as duckdb:/srv/assay.duckdb")
    settings = _options("duckdb:", "duckdb", options_text)
    for key, value in settings.items():
        if key in _DUCKDB_VALUES and not re.fullmatch(_DUCKDB_VALUES[key], value, re.IGNORECASE):
            raise UsageError(f"duckdb: option {key!r} is {_OPTIONS_BY_KIND['duckdb'][key]}; not {value!r}")
    if "temp_directory" in settings:
        settings["temp_directory"] = str(_absolute(settings["temp_directory"], "duckdb: option 'temp_directory'"))
    file = _absolute(path, "duckdb:")
    kept = "&".join(f"{key}={value}" for key, value in settings.items())
    return DatabaseSpec(
        kind="duckdb",
        name=file.stem or "duckdb",
        display=f"duckdb:{rest}",
        kept=f"duckdb:{file}" + (f"?{kept}" if kept else ""),
        database=file.stem,
        tls="disable",
        file=file,
        settings=settings,
    )


def _parse_spark(scheme: str, rest: str) -> DatabaseSpec:
    place, _, options_text = rest.partition("?")
    host, port = None, 0
    if scheme == "spark":
        match = re.fullmatch(r"//([A-Za-z0-9_.-]+)(?::([0-9]{1,5}))?(/.+)", place)
        if match is None:
            raise UsageError("spark: is written spark://HOST:7077/DIR, DIR as this host and all executors see it")
        host, port, place = match[1], int(match[2] or PORTS["spark"]), match[3]
    if not place.strip() or "\0" in rest:
        raise UsageError("spark-local: needs a folder for the tables, such as spark-local:/srv/assay-spark")
    settings = _options(f"{scheme}:", "spark", options_text)
    directory = _absolute(place, f"{scheme}:")
    kept = "&".join(f"{key}={value}" for key, value in settings.items())
    shown = f"spark-local:{directory}" if host is None else f"spark://{host}:{port}{directory}"
    return DatabaseSpec(
        kind="spark",
        name=directory.name or "spark",
        display=f"{scheme}:{rest}",
        kept=shown + (f"?{kept}" if kept else ""),
        host=host,
        port=port,
        database=directory.name,
        tls="disable",
        directory=directory,
        settings=settings,
    )


def _kept_embedded(directory: Path, wal_directory: Path | None, options_text: str) -> str:
    """The target with its paths in full, as a run folder keeps it."""
    options = [
        f"wal={wal_directory}" if option.startswith("wal=") else option for option in options_text.split("&") if option
    ]
    return f"embedded:{directory}" + (f"?{'&'.join(options)}" if options else "")


def _absolute(text: str, what: str) -> Path:
    try:
        # Folders may not exist yet; `..` is resolved by text, as nothing is asked of the file system here.
        return Path(os.path.normpath(Path(text).expanduser().absolute()))
    except RuntimeError:
        raise UsageError(f"{what} {text!r}: there is no such user's folder; give the path in full") from None


def _options(what: str, kind: Kind, text: str) -> dict[str, str]:
    """Options as written, `key=value&key=value`, each known and given once; values are not repeated in messages."""
    known = _OPTIONS_BY_KIND[kind]
    options: dict[str, str] = {}
    for item in filter(None, text.split("&")):
        key, _, value = item.partition("=")
        if key.startswith("set.") and kind == "embedded":
            _check_setting(key.removeprefix("set."))
        elif key.startswith("spark.") and kind == "spark":
            pass
        elif key not in known:
            nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {nearest[0]!r}? " if nearest else ""
            # A password with a bare ? may end up here.
            shown = repr(key) if nearest or kind in ("embedded", "duckdb", "spark") else "of that name"
            raise UsageError(f"{what} has no option {shown}; {hint}accepted: {', '.join(known)}")
        if not value:
            raise UsageError(
                f"{what} option {key!r} needs a value: {known.get(key, 'a setting as in postgresql.conf')}"
            )
        if key in options:
            raise UsageError(f"{what} option {key!r} is given twice; give it once")
        options[key] = value
    return options


def _check_setting(name: str) -> None:
    if name not in SETTINGS:
        nearest = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.5)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        raise UsageError(f"embedded: {name!r} is no setting that can be given; {hint}accepted: {', '.join(SETTINGS)}")


def _is_text(password: Secret) -> bool:
    try:
        password.reveal().encode()
    except UnicodeEncodeError:
        return False
    return True


class _UrlReader:
    """One URL of a server on its way to a `DatabaseSpec`."""

    def __init__(self, scheme: str, kind: Kind, environ: Mapping[str, str]) -> None:
        self.scheme = scheme
        self.kind = kind
        self.environ = environ
        self.what = f"target {scheme}://...:"

    def read(self, rest: str) -> DatabaseSpec:
        if not rest.startswith("//"):
            raise UsageError(f"target {self.scheme}:... is written {self.scheme}://USER@HOST:PORT/DATABASE")
        url = rest[2:]
        if any(ord(character) < 32 or character == "\x7f" for character in url):
            raise UsageError(f"{self.what} holds a control character; percent-encode it")
        at = user_part_end(url)
        user_part, address = url[: max(at, 0)], url[at + 1 :]
        user, password = self._user(user_part)
        place, _, options_text = address.partition("?")
        options = _options(self.what, self.kind, options_text)
        option_password = options.pop("password", None)
        if option_password is not None:
            password = self._password(option_password)
        password = password or typed_password() or self._password_of_environment()
        if password is not None and not _is_text(password):
            raise UsageError(f"{self.what} its password is no text in UTF-8; give it in that encoding")
        host_part, _, database = place.partition("/")
        host, port, socket = self._server(host_part, options)
        return DatabaseSpec(
            kind=self.kind,
            name=self._database(database),
            display=self._display(user_part.partition(":")[0], place, options),
            host=host,
            port=port,
            socket=socket,
            user=user,
            password=password,
            database=self._database(database),
            tls=self._tls(options, is_socket=socket is not None),
            tls_ca=self._trusted(options),
        )

    def _user(self, user_part: str) -> tuple[str, Secret | None]:
        user, colon, password = user_part.partition(":")
        if any(character in user for character in "/?#@"):
            raise UsageError(f"{self.what} the user's name holds / ? # or @; percent-encode it (%2F %3F %23 %40)")
        name = unquote(user)
        if not name:
            if self.kind == "mssql":
                raise UsageError(f"{self.what} names no user; write mssql://USER@HOST/DATABASE")
            name = _user_of_system()
        return name, self._password(password) if colon and password else None

    def _password(self, word: str) -> Secret:
        kept = secret_named(word, self.environ)
        if kept is None and is_placeholder(word) and (typed := typed_password()) is not None:
            return typed
        if kept is None and is_placeholder(word):
            variable = _PASSWORD_VARIABLES[self.kind]
            raise UsageError(f"{self.what} {word} stands for a password that is not kept; give it in {variable}")
        return Secret(unquote(kept.reveal() if kept is not None else word))

    def _password_of_environment(self) -> Secret | None:
        text = self.environ.get(_PASSWORD_VARIABLES[self.kind], "")
        return Secret(text) if text else None

    def _server(self, host_part: str, options: Mapping[str, str]) -> tuple[str | None, int, str | None]:
        match = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[^:\[\]@]*)(?::(.*))?", host_part)
        if match is None:
            raise UsageError(f"{self.what} its host is not understood; write HOST, HOST:PORT or [IPV6]:PORT")
        port = self._port(options.get("port") or match[2])
        host = unquote(match[1].strip("[]"))
        if "host" in options:
            if host:
                raise UsageError(f"{self.what} names two hosts; give it before the / or as option 'host', not both")
            host = unquote(options["host"])
        if "socket" in options:
            return None, port, self._socket(unquote(options["socket"]))
        if not host and self.kind == "mssql":
            raise UsageError(f"{self.what} names no host; write mssql://USER@HOST/DATABASE")
        if not host:
            host = _DEFAULT_SOCKETS[self.kind]
        if not host.startswith("/"):
            return host, port, None
        return None, port, f"{host.rstrip('/')}/.s.PGSQL.{port}" if self.kind == "postgresql" else host

    def _socket(self, path: str) -> str:
        if not path.startswith("/"):
            raise UsageError(f"{self.what} option 'socket' is the full path of the server's socket")
        return path

    def _port(self, text: str | None) -> int:
        if not text:
            return PORTS[self.kind]
        # Digits only: anything else here may be a password whose @ is missing, and is not repeated.
        if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
            raise UsageError(f"{self.what} its port is not a number from 1 to 65535")
        return int(text)

    def _database(self, text: str) -> str:
        if not text:
            raise UsageError(f"{self.what} names no database; write {self.scheme}://USER@HOST/DATABASE")
        if "@" in text or "/" in text:
            raise UsageError(
                f"{self.what} @ and / in a password or in the database's name must be percent-encoded (%40 and %2F)"
            )
        return unquote(text)

    def _tls(self, options: Mapping[str, str], *, is_socket: bool) -> TlsMode:
        mode = options.get("sslmode", "disable" if is_socket else "prefer")
        if not _is_tls_mode(mode):
            raise UsageError(f"{self.what} option 'sslmode' is {_OPTIONS['sslmode']}")
        if mode in ("prefer", "disable") and "sslrootcert" in options:
            raise UsageError(f"{self.what} option 'sslrootcert' needs sslmode=verify-ca or verify-full")
        if is_socket and mode not in ("prefer", "disable"):
            raise UsageError(f"{self.what} a socket on this machine has no TLS; leave sslmode={mode} out")
        return mode

    def _trusted(self, options: Mapping[str, str]) -> str | None:
        if "sslrootcert" not in options:
            return None
        path = _absolute(unquote(options["sslrootcert"]), f"{self.what} option 'sslrootcert'")
        if not path.is_file():
            raise UsageError(f"{self.what} option 'sslrootcert': {path} is no file; give the certificates' PEM file")
        return str(path)

    def _display(self, user: str, place: str, options: Mapping[str, str]) -> str:
        shown = "&".join(f"{key}={value}" for key, value in options.items())
        return f"{self.scheme}://{user}{'@' if user else ''}{place}{'?' if shown else ''}{shown}"


def _is_tls_mode(text: str) -> TypeGuard[TlsMode]:
    return text in TLS_MODES


def _user_of_system() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "root" if os.geteuid() == 0 else "postgres"
