"""Spark SQL on Parquet files: `spark-local:DIR` within this process, `spark://HOST:7077/DIR` on a cluster.

The driver runs here, and needs Java. Tables are Parquet files that Assay writes itself; Spark reads them. There are no
transactions, nothing is changed in place, and so nothing is saved or restored.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.base.errors import AssayError, IoFailed, NotSupported, OpenFailed
from assay.base.paths import others_shut_out, printable
from assay.base.programs import PROGRAMS, find_program, install_command
from assay.targets.databases.common.connection import ConnectionLost, ConnectionPlan, Dialect, Progress, Row
from assay.targets.databases.common.database import OWN_TABLES, Database
from assay.targets.databases.common.facts import DatabaseFacts
from assay.targets.databases.common.refusals import refuse_foreign
from assay.targets.databases.common.spec import DatabaseSpec
from assay.targets.databases.common.table_set import TableSet
from assay.targets.databases.spark.folder import ChunkWriter, SparkFolder

JAVA_OLDEST = 17
SETTINGS_SHOWN = (
    "spark.master",
    "spark.driver.memory",
    "spark.executor.memory",
    "spark.executor.instances",
    "spark.executor.cores",
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.enabled",
    "spark.plugins",
    "spark.sql.extensions",
)
ACCELERATORS = {
    "comet": ("comet",),
    "gluten": ("gluten", "velox"),
    "rapids": ("rapids", "sqlplugin"),
    "photon": ("photon",),
}
"""What runs queries outside of Java, by words in the settings that load it."""
_OWN = re.compile(rf"\b({'|'.join(OWN_TABLES)})\b")
_MADE = re.compile(r"CREATE TABLE (\w+)", re.IGNORECASE)
_DROPPED = re.compile(r"DROP TABLE IF EXISTS (\w+)", re.IGNORECASE)
_running = threading.Lock()
"""One driver a process: PySpark knows no more."""


class SparkSession:
    """A session of Spark's own, with its own views of the tables; errors come as those of `assay.base.errors`."""

    def __init__(self, spec: DatabaseSpec, folder: SparkFolder, spark: Any, tables: Sequence[str]) -> None:
        self._spec, self._folder, self._spark, self._tables = spec, folder, spark, tables
        self._lock = threading.RLock()
        self._group = uuid.uuid4().hex
        self._views: set[str] = set()
        self._writer: ChunkWriter | None = None
        self._is_cancelled = False

    def query(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a statement."""
        if _OWN.search(sql):
            return self._folder.book(sql, params)
        with self._lock, self._errors():
            self._is_cancelled = False
            self._look_at_tables()
            context = self._spark.sparkContext
            context.setJobGroup(self._group, sql.partition("\n")[0][:100], interruptOnCancel=True)
            return [tuple(row) for row in self._spark.sql(sql).collect()]

    def execute(self, sql: str, params: Sequence[object] = ()) -> None:
        """Run a statement that gives no rows: those that load, make and drop tables."""
        with self._lock:
            if sql == "BEGIN":
                self._writer = ChunkWriter(self._folder)
            elif sql == "COMMIT" and self._writer is not None:
                self._writer.commit()
                self._writer = None
            elif self._writer is not None and _OWN.search(sql):
                self._writer.entries.append(sql)
            elif _OWN.search(sql):
                self._folder.book(sql, params)
            elif made := _MADE.match(sql):
                self._folder.make(made[1])
            elif dropped := _DROPPED.match(sql):
                self._folder.drop(dropped[1])
            else:
                self.query(sql, params)

    def append(self, table: str, rows: Any) -> None:
        """Add rows to a table, an Arrow batch whose columns have the table's order."""
        with self._lock:
            assert self._writer is not None, "rows are added in a transaction"
            self._writer.append(table, rows)

    def _look_at_tables(self) -> None:
        """Give Spark the files of each table that it does not know yet."""
        for table in self._tables:
            if table not in self._views and (files := self._folder.files(table)):
                found = self._spark.read.parquet(str(files[0].parent))
                found.createOrReplaceTempView(table)
                self._views.add(table)

    def cancel(self) -> None:
        """End the statement that runs in this session."""
        self._is_cancelled = True
        with contextlib.suppress(Exception):
            self._spark.sparkContext.cancelJobGroup(self._group)

    def abort(self) -> None:
        """End what runs in this session."""
        self.cancel()

    def close(self) -> None:
        """End the session, and what it did not commit."""
        self.cancel()
        with self._lock:
            if self._writer is not None:
                self._writer.roll_back()
                self._writer = None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except AssayError:
            raise
        except Exception as error:
            line = _line(error)
            if "Py4JNetworkError" in type(error).__name__ or isinstance(error, ConnectionError):
                raise ConnectionLost(
                    f"{self._spec.display}: Spark's driver has ended ({line}); open it again"
                ) from error
            raise IoFailed(f"{self._spec.display}: Spark refused a statement: {line}") from error


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


class Spark(Database):
    """Spark SQL with tables of Assay's own."""

    dialect: Dialect = "spark"
    marking = "{statement}"
    is_own = True
    in_process = True
    takes_changes = False

    def __init__(self, spec: DatabaseSpec, table_set: TableSet) -> None:
        super().__init__(spec, table_set)
        assert spec.directory is not None
        self._folder = SparkFolder(spec.directory, spec.display, shared=spec.host is not None)
        self._spark: Any = None
        self._life = threading.RLock()
        self._is_new = False
        self._private = contextlib.ExitStack()

    # Life

    def refuse_host(self) -> None:
        """Look for Java."""
        find_java(self.spec)

    def open(self, *, connections: int = 0) -> None:
        """Take the folder, find Java, and start the driver."""
        with self._life:
            if self._spark is not None:
                return
            java = find_java(self.spec)
            self._is_new = not self._folder.path.exists()
            self._private.enter_context(others_shut_out())
            is_taken = False
            try:
                self._folder.take()
                is_taken = True
                self._spark = self._started(java)
            except BaseException:
                # A folder that another run has is none to clear away.
                self._folder.release(remove_empty=self._is_new and is_taken)
                self._private.close()
                raise

    def _started(self, java: Path) -> Any:
        from pyspark.sql import SparkSession as Driver

        if not _running.acquire(blocking=False):
            raise NotSupported(f"{self.spec.display}: one Spark a run; give the other target a run of its own")
        os.environ["JAVA_HOME"] = str(java.parent.parent)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1" if self.spec.host is None else "")
        if not os.environ["SPARK_LOCAL_IP"]:
            del os.environ["SPARK_LOCAL_IP"]
        master = "local[*]" if self.spec.host is None else f"spark://{self.spec.host}:{self.spec.port}"
        builder = Driver.builder.master(master).appName("assay")
        pinned = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.log.level": "ERROR",
        }
        given = {key: value for key, value in self.spec.settings.items() if key != "java"}
        for key, value in {**pinned, **given}.items():
            builder = builder.config(key, value)
        try:
            return builder.getOrCreate()
        except Exception as error:
            _running.release()
            raise OpenFailed(
                f"{self.spec.display}: Spark does not start ({_line(error)}); check the master and the settings"
            ) from error

    def close(self) -> None:
        """End the driver, and let others use the folder."""
        super().close()
        with self._life:
            spark, self._spark = self._spark, None
            if spark is None:
                return
            is_left_over = self._is_new and not self._folder.tables(self.table_set.names)
            try:
                gateway = spark.sparkContext._gateway
                spark.stop()
                _end_driver(gateway)
            finally:
                _running.release()
                self._folder.release(remove_empty=is_left_over)
                self._private.close()

    def new_session(self) -> SparkSession:
        """Begin another session of the driver."""
        with self._life:
            if self._spark is None:
                raise ConnectionLost(f"{self.spec.display}: is closed; open it first")
            return SparkSession(self.spec, self._folder, self._spark.newSession(), self.table_set.names)

    @property
    def server(self) -> tuple[object, ...]:
        """The master, and the folder."""
        return self.spec.kind, self.spec.host, str(self._folder.path)

    def connection(self) -> ConnectionPlan:
        """There is none.

        Raises
        ------
        NotSupported
            Always: the driver runs in this process.
        """
        raise NotSupported(f"{self.spec.display}: runs within Assay and takes no connections")

    def check_rights(self) -> None:
        """Nothing: the folder was made or taken when it was opened."""

    # What is in it

    def tables(self) -> list[str]:
        """Names of all tables."""
        return self._folder.tables(self.table_set.names)

    def marked_tables(self) -> set[str]:
        """All: the folder is Assay's as a whole."""
        return set(self.tables())

    def others_on_tables(self) -> list[str]:
        """Files in the folders of tables that are not Assay's."""
        return self._folder.strangers(self.table_set.names)

    def refuse_drop(self) -> None:
        """Refuse to drop tables in whose folders others' files lie."""
        there = self.schema()
        if there.kind == "foreign":
            refuse_foreign(self.spec.display, there.tables)
        super().refuse_drop()

    def bytes_used(self) -> int:
        """Bytes of all files."""
        return self._folder.bytes

    # What is known of it

    def facts(self) -> DatabaseFacts:
        """Name, kind, version, settings, and what runs the queries."""
        conf = self._spark.sparkContext.getConf()
        settings = {name: str(value) for name in SETTINGS_SHOWN if (value := conf.get(name)) is not None}
        java = self._spark.sparkContext._jvm.System.getProperty("java.version")
        return {
            "name": self.name,
            "kind": self.dialect,
            "version": str(self._spark.version),
            "version_text": f"Spark {self._spark.version} on Java {java}",
            "max_connections": None,
            "connections_free": None,
            "is_local": self.spec.host is None,
            "accelerator": accelerator_of(settings),
            "settings": {**settings, "accelerator": accelerator_of(settings)},
            "settings_given": dict(self.spec.settings),
        }

    def _transactions_count(self) -> None:
        return None

    def can_store_columns(self) -> bool:
        """Parquet is by columns."""
        return True

    def storage_paths(self) -> dict[str, str]:
        """The folder, where it is on this host."""
        return {"data": str(self._folder.path)} if self._folder.path.is_dir() else {}

    # Work

    def checkpoint(self) -> None:
        """Nothing: files are on storage once they have their names."""

    def vacuum_analyze(self, progress: Progress | None = None) -> None:
        """Nothing: Parquet files hold their own statistics."""

    def save(self) -> None:
        """Nothing changes, so nothing is saved.

        Raises
        ------
        NotSupported
            Always.
        """
        raise NotSupported(f"{self.spec.display}: Parquet files are never changed, so there is nothing to save")

    def restore(self) -> None:
        """See `save`.

        Raises
        ------
        NotSupported
            Always.
        """
        raise NotSupported(f"{self.spec.display}: Parquet files are never changed, so there is nothing to restore")

    def saved(self) -> None:
        """Nothing is."""
        return

    def drop_saved(self) -> None:
        """Nothing is saved."""


def accelerator_of(settings: dict[str, str]) -> str:
    """What runs queries in place of Spark's own engine, by its settings.

    Examples
    --------
    >>> accelerator_of({"spark.plugins": "org.apache.spark.CometPlugin"}), accelerator_of({})
    ('comet', 'none')
    """
    loaded = " ".join(settings.get(name, "") for name in ("spark.plugins", "spark.sql.extensions")).lower()
    return next((name for name, words in ACCELERATORS.items() if any(word in loaded for word in words)), "none")


def _end_driver(gateway: Any) -> None:
    """End Java, which PySpark leaves running until this process ends."""
    from pyspark import SparkContext

    process = getattr(gateway, "proc", None)
    with contextlib.suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    if process is not None:
        with contextlib.suppress(Exception):
            process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def find_java(spec: DatabaseSpec) -> Path:
    """The program java: that of the option `java`, of JAVA_HOME, or of the path.

    Raises
    ------
    NotSupported
        There is none, or it is too old.
    """
    named, home = spec.settings.get("java"), os.environ.get("JAVA_HOME")
    candidates = [named and f"{named}/bin/java", home and f"{home}/bin/java", find_program("java")]
    found = next((Path(one) for one in candidates if one and Path(one).is_file()), None)
    if found is None or (named and not Path(f"{named}/bin/java").is_file()):
        where = f"in {printable(Path(named))}" if named else "in JAVA_HOME or the path"
        raise NotSupported(
            f"{spec.display}: there is no Java {where}; {install_command([PROGRAMS['java']])}, which brings Java"
            f" {JAVA_OLDEST} or newer; or name it: spark-local:DIR?java=/usr/lib/jvm/java-{JAVA_OLDEST}-openjdk-amd64"
        )
    java = Path(os.path.realpath(found))
    told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    version = re.search(r'version "(\d+)', told.stderr)
    if version is None or int(version[1]) < JAVA_OLDEST:
        shown = version[1] if version is not None else "of no known version"
        raise NotSupported(
            f"{spec.display}: {printable(java)} is Java {shown}, and Spark needs {JAVA_OLDEST} or newer; name another:"
            f" ?java=/usr/lib/jvm/java-{JAVA_OLDEST}-openjdk-amd64"
        )
    return java
