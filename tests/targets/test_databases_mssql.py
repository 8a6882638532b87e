"""SQL Server without one: statements in their order and answers to errors, on a driver that plays a script.

What the server makes of the statements is the matter of `test_databases.py`, where ASSAY_TEST_MSSQL names one.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from assay.base.errors import AssayError, IoFailed, NotSupported, OpenFailed, OutOfSpace, RefusedTarget, UsageError
from assay.targets.databases import ConnectionLost, open_database, parse_database
from assay.targets.databases.mssql import session as session_mssql
from assay.workloads.tpcc.tables import TABLES
from servers.mssql import MssqlServer

URL = "mssql://sa:s3kr1t@db.example/tpcc"
SAVED = 'saved by Assay: {"warehouses": 5, "seed": 7, "state": "loaded", "saved_utc": "2026-01-01T00:00:00+00:00"}'
SAVED = SAVED.replace("}", ', "others": "4f53cda18c2baa0c"}')
"""With the digest of nothing."""

Answer = Callable[[str], list[tuple[Any, ...]]]


class ScriptedDriver(ModuleType):
    """Stands for pymssql: answers by what a statement holds, and keeps all statements."""

    class Error(Exception):
        """As of DB-API."""

    class OperationalError(Error):
        """As of DB-API."""

    def __init__(self) -> None:
        super().__init__("pymssql")
        self.answers: dict[str, Any] = {
            "WHERE is_ms_shipped": [],
            "HEADERONLY": [("new", "0A-1")],
            "extended_properties": [("assay_schema",)],
            "o.is_ms_shipped": [],
            "sys.columns AS c": [],
            "is_user_defined": [],
            "state = 0": [(1,)],
            "ProductVersion": [("16.0.4085.2",)],
            "@@max_connections": [(32767,)],
            "dm_exec_sessions": [(12,)],
            "sys.objects": [("assay_schema",)],
            "@@SPID": [(51,)],
            "SELECT k, v": [("state", "loaded"), ("warehouses", "5"), ("seed", "7")],
        }
        self.statements: list[str] = []
        self.parameters: list[Any] = []
        self.refuses: Exception | None = None
        self.closed = 0
        self.arguments: dict[str, Any] = {}

    def connect(self, **arguments: Any) -> ScriptedConnection:
        self.arguments = arguments
        if self.refuses is not None:
            raise self.refuses
        return ScriptedConnection(self)


class ScriptedConnection:
    def __init__(self, driver: ScriptedDriver) -> None:
        self.driver = driver
        self.rows: list[tuple[Any, ...]] = []
        self.description: list[tuple[str]] = []

    def cursor(self) -> ScriptedConnection:
        return self

    def __enter__(self) -> ScriptedConnection:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, sql: str, params: Any = None) -> None:
        self.driver.statements.append(sql)
        self.driver.parameters.append(params)
        found = next((answer for part, answer in self.driver.answers.items() if part in sql), [])
        if isinstance(found, Exception):
            raise found
        if callable(found):
            found()
            found = []
        self.rows = found
        self.description = [(name,) for name in ("BackupName", "BackupSetGUID")]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.rows

    def fetchmany(self, count: int) -> list[tuple[Any, ...]]:
        rows, self.rows = self.rows[:count], self.rows[count:]
        return rows

    def nextset(self) -> bool:
        return False

    def close(self) -> None:
        self.driver.closed += 1


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> ScriptedDriver:
    made = ScriptedDriver()
    monkeypatch.setitem(sys.modules, "pymssql", made)
    return made


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymssql", None)
    with pytest.raises(NotSupported, match=r"pip install 'assay-storage\[mssql\]'"):
        open_database(parse_database(URL), TABLES).open()


def test_how_it_connects(driver: ScriptedDriver) -> None:
    open_database(parse_database(f"{URL}?sslmode=require"), TABLES).open()
    expected = {"server": "db.example", "port": "1433", "user": "sa", "password": "s3kr1t", "database": "tpcc",
                "encryption": "require", "autocommit": True}  # fmt: skip
    assert driver.arguments.items() >= expected.items()
    with pytest.raises(NotSupported, match="sslmode=verify-full is not to be had"):
        open_database(parse_database(f"{URL}?sslmode=verify-full"), TABLES).open()


def test_an_old_server_and_too_many_connections_are_refused(driver: ScriptedDriver) -> None:
    with pytest.raises(UsageError, match="40000 connections are needed, the server allows 32767, of which 32755"):
        open_database(parse_database(URL), TABLES).open(connections=40000)
    driver.answers["ProductVersion"] = [("14.0.3456.2",)]
    with pytest.raises(NotSupported, match=r"is SQL Server 14\.0\.3456\.2; 15 \(2019\) is the oldest"):
        open_database(parse_database(URL), TABLES).open()


@pytest.mark.parametrize(
    ("code", "text", "kind", "message"),
    [
        (
            18456,
            b"Login failed.DB-Lib error message 20018",
            UsageError,
            "the password of user 'sa' is wrong",
        ),
        (4060, b'Cannot open database "tpcc"', UsageError, "there is no database 'tpcc' on the server"),
        (20009, b"DB-Lib error message 20009, severity 9", OpenFailed, "no server answers at db.example:1433"),
        # The number is the one of an earlier connection that failed.
        (18456, b"DB-Lib error message 20009, severity 9:\nUnable", OpenFailed, "no server answers at db.example:1433"),
        (20002, b"Adaptive Server connection failed", OpenFailed, r"or not as asked \(sslmode=prefer\)"),
        (1, b"odd: s3kr1t\nsecond line", OpenFailed, r"cannot be connected to: odd: \*\*\*; check"),
    ],
)
def test_why_it_does_not_connect_is_said(
    driver: ScriptedDriver, code: int, text: bytes, kind: type[AssayError], message: str
) -> None:
    driver.refuses = driver.OperationalError((code, text))
    with pytest.raises(kind, match=message) as error:
        open_database(parse_database(URL), TABLES).open()
    assert "s3kr1t" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (1105, OutOfSpace, "no space is left under the server"),
        (9002, OutOfSpace, "no space is left under the server"),
        (229, RefusedTarget, "user 'sa' may not do this"),
        (20047, ConnectionLost, "the connection was lost"),
        (20017, ConnectionLost, "the connection was lost"),
    ],
)
def test_why_a_statement_fails_is_said(driver: ScriptedDriver, code: int, kind: type[AssayError], message: str) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    driver.answers = {"UPDATE": driver.OperationalError(code, b"because")}
    with pytest.raises(kind, match=message):
        database.execute("UPDATE x SET y = 1")


@pytest.mark.parametrize("may_kill", [True, False])
def test_a_statement_is_cancelled_from_another_session_and_closed_by_none(
    driver: ScriptedDriver, may_kill: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FreeTDS aborts the process where a connection is closed while a statement runs in it."""
    monkeypatch.setattr(session_mssql, "CLOSE_S", 0.01)
    database = open_database(parse_database(URL), TABLES)
    session = database.new_session()
    session.cancel()
    assert not any(sql.startswith("KILL") for sql in driver.statements)
    if not may_kill:
        driver.answers["KILL"] = driver.OperationalError(6102, b"User does not have permission to use KILL")
    begun, go_on = threading.Event(), threading.Event()
    driver.answers["BACKUP"] = lambda: (begun.set(), go_on.wait())
    worker = threading.Thread(target=session.execute, args=("BACKUP DATABASE tpcc",))
    worker.start()
    begun.wait()
    session.cancel()
    closed = driver.closed
    session.close()
    assert driver.statements[-1] == "KILL 51"
    assert driver.closed == closed
    go_on.set()
    worker.join()
    session.close()
    assert driver.closed == closed + 1


@pytest.mark.parametrize("code", [229, 208, 40515, 33557097])
def test_what_is_saved_is_asked_without_the_right_to_read_the_history(driver: ScriptedDriver, code: int) -> None:
    """Or on a server that keeps none; any other error is one."""
    database = open_database(parse_database(URL), TABLES)
    database.open()
    driver.answers["backupset"] = driver.OperationalError(code, b"no 'backupset' for you")
    assert database.saved() is None
    database.drop_saved()
    assert "nothing counts as saved" in database.notices[0]
    with pytest.raises((IoFailed, RefusedTarget), match="no 'backupset' for you"):
        database.restore()
    driver.answers["backupset"] = driver.OperationalError(1205, b"chosen as the victim")
    for work in (database.saved, database.drop_saved):
        with pytest.raises(IoFailed, match="chosen as the victim"):
            work()


def test_statistics_that_cannot_be_updated_do_not_end_a_load(driver: ScriptedDriver) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    driver.answers = {"sys.objects": [("stock",)], "UPDATE STAT": driver.OperationalError(33557097, b"not supported")}
    database.vacuum_analyze()
    assert "not supported; statistics are as the server keeps them" in database.notices[0]
    driver.answers["UPDATE STAT"] = driver.OperationalError(1205, b"chosen as the victim")
    with pytest.raises(IoFailed, match="chosen as the victim"):
        database.vacuum_analyze()


def test_rights_are_found_out_in_a_transaction(driver: ScriptedDriver) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    database.check_rights()
    assert driver.statements[-1] == "BEGIN TRANSACTION; CREATE TABLE assay_rights (k int); ROLLBACK TRANSACTION"
    driver.answers |= {"CREATE TABLE": driver.OperationalError(262, b"CREATE TABLE permission denied")}
    with pytest.raises(RefusedTarget, match="ALTER ROLE db_owner ADD MEMBER sa"):
        database.check_rights()


def test_counters_are_the_servers(driver: ScriptedDriver) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    driver.answers = {"Batch Requests/sec": [(1234,)], "sys.objects": [("district",)], "d_next_o_id": [(30010,)]}
    assert database.counters() == {"transactions_count": 1234.0, "new_order_count": 30010.0}
    driver.answers = {"Batch Requests/sec": driver.OperationalError(300, b"VIEW SERVER STATE permission was denied")}
    assert database.counters() == {}
    assert "GRANT VIEW SERVER STATE" in database.notices[0]


def test_saving_makes_a_new_file_before_it_deletes_the_old(driver: ScriptedDriver) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    driver.answers["backupset"] = [
        ("new.bak", SAVED, "0a-1"),
        ("old.bak", SAVED, "0a-1"),
        ("foreign.bak", "by hand", "0b-1"),
    ]
    del driver.statements[:], driver.parameters[:]
    database.save()
    work = [
        (sql.split(" TO ")[0], params)
        for sql, params in zip(driver.statements, driver.parameters, strict=True)
        if not sql.lstrip().startswith("SELECT")
    ]
    assert [(sql.partition(" FROM")[0], params[0]) for sql, params in work[1:]] == [
        ("RESTORE HEADERONLY", "old.bak"),
        ("EXECUTE master.sys.xp_delete_files %s", "old.bak"),
    ]
    assert work[0][0] == "BACKUP DATABASE [tpcc]"
    assert re.fullmatch(r"tpcc_assay_saved_[0-9a-f]{32}\.bak", work[0][1][0])
    assert work[0][1][1].startswith('saved by Assay: {"warehouses": 5, "seed": 7')
    assert work[0][1][1].endswith('"others": "4f53cda18c2baa0c"}')
    assert database.saved() == {"warehouses": 5, "seed": 7, "state": "loaded", "saved_utc": "2026-01-01T00:00:00+00:00"}


def test_only_the_files_of_the_saved_state_are_deleted(driver: ScriptedDriver) -> None:
    """The server's history of backups is also that of the user's own."""
    database = open_database(parse_database(URL), TABLES)
    database.open()
    driver.answers["backupset"] = [("new.bak", SAVED, "0a-1"), ("foreign.bak", "by hand", "0b-1")]
    del driver.statements[:], driver.parameters[:]
    database.drop_saved()
    assert "sys.dm_os_file_exists(f.physical_device_name)" in driver.statements[0]
    assert "e.file_exists = 1" in driver.statements[0]
    assert driver.statements[-2:] == ["RESTORE HEADERONLY FROM DISK = %s", "EXECUTE master.sys.xp_delete_files %s"]
    assert driver.parameters[-2:] == [("new.bak",), ("new.bak",)]
    assert sum("xp_delete_files" in sql for sql in driver.statements) == 1


@pytest.mark.parametrize("header", [[("by hand", "0b-1")], [("new", "0A-1"), ("appended by hand", "0b-1")]])
def test_a_file_that_holds_other_backups_by_now_is_neither_restored_nor_deleted(
    driver: ScriptedDriver, header: list[tuple[str, str]]
) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    driver.answers["backupset"] = [("new.bak", SAVED, "0a-1")]
    driver.answers["HEADERONLY"] = header
    with pytest.raises(RefusedTarget, match=r"new\.bak holds other backups than the one Assay made there"):
        database.restore()
    database.drop_saved()
    assert "new.bak holds other backups" in database.notices[0]
    assert not any("xp_delete_files" in sql or sql.startswith("RESTORE DATABASE") for sql in driver.statements)


def test_a_database_with_other_tables_is_neither_saved_nor_restored(driver: ScriptedDriver) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    driver.answers["backupset"] = [("new.bak", SAVED, "0a-1")]
    driver.answers["WHERE is_ms_shipped"] = [("Stock",), ("assay_chunk",), ("invoices",), ("shop.orders",)]
    for work in (database.save, database.restore):
        with pytest.raises(NotSupported, match=r"not Assay's \(invoices, shop\.orders\), which saving and restoring"):
            work()
    assert not any(sql.startswith(("BACKUP", "RESTORE DATABASE", "IF")) for sql in driver.statements)
    # One whose restore was cut short is offline, and cannot be asked.
    driver.answers["state = 0"] = []
    del driver.answers["WHERE is_ms_shipped"]
    database.restore()
    assert driver.statements[-1].startswith("RESTORE DATABASE [tpcc]")


def test_what_came_since_the_backup_stands_against_restoring_it(driver: ScriptedDriver) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    driver.answers["backupset"] = [("new.bak", SAVED, "0a-1")]
    driver.answers["extended_properties"] = [("assay_schema",), ("stock",)]
    driver.answers["o.is_ms_shipped"] = [
        ("user table", "stock", "", "2026-01-02T00:00:00", 1),
        ("primary key constraint", "stock_pkey", "stock", "2026-01-02T00:00:00", 1),
        ("sql stored procedure", "assay_payment", "", "2026-01-02T00:00:00", 1),
        ("sql trigger", "audit", "stock", "2026-01-02T00:00:00", 1),
        ("sql scalar function", "taxed", "", "2026-01-03T00:00:00", 1),
    ]
    driver.answers["sys.columns AS c"] = [
        ("column", "s_quantity", "stock", ""),
        ("column", "colour", "stock", ""),
        ("index", "stock_pkey", "stock", ""),
        ("foreign key", "stock_of", "stock", "refers"),
    ]
    driver.answers["is_user_defined"] = [("schema", "shop", ""), ("partition function", "assay_part_ranges", "")]
    with pytest.raises(NotSupported, match=r"since the state was saved \(sql scalar function taxed, .*… 5 in all\)"):
        database.restore()
    with pytest.raises(
        RefusedTarget,
        match=r"its tables \(sql trigger audit on stock, column colour on stock, foreign key stock_of on stock\)",
    ):
        database.refuse_drop()
    database.save()
    saved = next(
        params for sql, params in zip(driver.statements, driver.parameters, strict=True) if "BACKUP DAT" in sql
    )
    driver.answers["backupset"] = [("new.bak", saved[1], "0a-1")]
    database.restore()
    assert driver.statements[-1].startswith("RESTORE DATABASE [tpcc]")


def test_a_table_gets_its_mark_in_the_transaction_that_makes_it(driver: ScriptedDriver) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    database.create_table("stock", "CREATE TABLE stock (s_i_id int)")
    made = driver.statements[-1]
    assert made.startswith("BEGIN TRANSACTION; CREATE TABLE stock (s_i_id int); ")
    assert "@name = N'assay', @value = N'made by Assay'" in made
    assert made.endswith("@level1name = N'stock'; COMMIT TRANSACTION")


def test_another_run_is_refused_with_the_holders_name(driver: ScriptedDriver) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    del driver.answers["dm_exec_sessions"]
    driver.answers |= {"sp_getapplock": [(-1,)], "dm_tran_locks": [("assay, process 7, on elsewhere",)]}
    with pytest.raises(RefusedTarget, match=r"another run is at work on it \(assay, process 7, on elsewhere\)"):
        database.hold()
    assert driver.arguments["database"] == "master"
    assert driver.arguments["appname"].startswith("assay, process ")
    driver.answers["sp_getapplock"] = [(0,)]
    database.hold()


def test_restoring_ends_sessions_first(driver: ScriptedDriver) -> None:
    database = open_database(parse_database(URL), TABLES)
    database.open()
    with pytest.raises(UsageError, match="nothing is saved"):
        database.restore()
    driver.answers["backupset"] = [("new.bak", SAVED, "0a-1")]
    del driver.statements[:]
    database.restore()
    assert [
        sql.partition(" ALTER")[2] or sql for sql in driver.statements if not sql.lstrip().startswith("SELECT")
    ] == [
        "RESTORE HEADERONLY FROM DISK = %s",
        " DATABASE [tpcc] SET OFFLINE WITH ROLLBACK IMMEDIATE",
        "RESTORE DATABASE [tpcc] FROM DISK = %s WITH REPLACE, RECOVERY, CHECKSUM",
    ]


def test_the_real_driver_says_that_nobody_answers() -> None:
    pytest.importorskip("pymssql")
    with pytest.raises(OpenFailed, match=r"no server answers at 127\.0\.0\.1:1"):
        open_database(parse_database("mssql://sa:s3kr1t@127.0.0.1:1/tpcc"), TABLES).open()


def test_a_statement_under_way_on_a_server_is_ended_from_another_thread(mssql: MssqlServer) -> None:
    database = open_database(parse_database(mssql.fresh_database()), TABLES)
    session = database.new_session()
    ends: list[AssayError] = []

    def work() -> None:
        try:
            session.query("SELECT count_big(*) FROM " + ", ".join(f"sys.all_columns AS c{n}" for n in range(4)))
        except AssayError as error:
            ends.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        session.cancel()
        worker.join(0.1)
    session.close()
    assert [type(error) for error in ends] == [ConnectionLost]
