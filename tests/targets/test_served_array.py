"""Targets on served arrays as they are read, what this machine must have, and what is recorded each second."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import NotAnswering, NotSupported, UsageError
from assay.targets.arrays.live import folder
from assay.targets.arrays.live.events import command_of, events_in, events_of
from assay.targets.arrays.live.place import ArrayNote, ArrayPlace
from assay.targets.arrays.live.spec import parse_served
from assay.targets.databases import parse_databases
from assay.telemetry.collectors import ServedArrayCollector


def test_the_same_array_has_the_same_folder_and_another_array_another() -> None:
    folders = {
        parse_served(f"array:{text}").folder
        for text in ("ps6100xv?raid=10", "ps6100xv?raid=50", "ps6100xv?raid=10&size=2G", "fas2040")
    }

    assert len(folders) == 4
    assert parse_served("array:ps6100xv?raid=10").folder in folders
    # What survives a power cut is no other array.
    assert parse_served("array:ps6100xv?raid=10&durability=lying").folder in folders


def test_a_database_lies_on_volumes_by_role_and_several_share_them_out() -> None:
    (one,) = parse_databases(["embedded+array:ps6100xv?volumes=data:4,log:1&at=/srv/group&set.work_mem=8MB"], {})
    two = parse_databases(["embedded+array:ps6100xv?volumes=data:4,log:2&at=/srv/group&databases=2"], {})

    assert (one.directory, one.wal_directory) == (
        Path("/srv/group.mnt/data01/pg"),
        Path("/srv/group.mnt/log01/wal"),
    )
    assert (one.settings, one.data_volumes) == ({"work_mem": "8MB"}, ("data01", "data02", "data03", "data04"))
    assert [spec.data_volumes for spec in two] == [("data01", "data03"), ("data02", "data04")]
    assert [spec.wal_directory for spec in two] == [Path(f"/srv/group.mnt/log0{number}/wal") for number in (1, 2)]
    assert [spec.name for spec in parse_databases([one.recorded], {})] == ["ps6100xv"]
    assert (one.temp_volume, [spec.temp_volume for spec in two]) == (None, [None, None])
    both = parse_databases(["embedded+array:ps6100xv?volumes=data:2,log:2,temp:2&databases=2"], {})
    assert [spec.temp_volume for spec in both] == ["tempdb01", "tempdb02"]


def test_events_come_in_order_whatever_the_file_says(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[event]]\nat = "2min"\ndo = "restore"\n[[event]]\nat = "90s"\ndo = "cut-power"\n')

    written = events_in([str(plan)])

    assert [(event.at_ns, event.command["command"]) for event in events_of(written)] == [
        (90 * 10**9, "cut-power"),
        (120 * 10**9, "restore"),
    ]


@pytest.mark.parametrize(("words", "percent"), [("fill", 90), ("fill 75%", 75), ("fill 60", 60)])
def test_a_pool_is_filled_to_nine_tenths_or_to_the_share_that_is_written(words: str, percent: int) -> None:
    assert command_of(words) == {"command": "fill", "percent": percent}


@pytest.mark.parametrize("words", ["fill much", "fill 0.5", "fill 50% 60%"])
def test_a_share_that_is_none_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match="write fill"):
        command_of(words)


def test_a_machine_that_cannot_mount_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "FUSE", tmp_path / "fuse")
    with pytest.raises(NotSupported, match="there is no /dev/fuse here"):
        folder.refuse_fuse()
    (tmp_path / "fuse").touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(NotSupported, match="/dev/fuse cannot be opened; run as root, or install fuse3"):
        folder.refuse_fuse()
    monkeypatch.setattr(os, "access", lambda *_: True)
    folder.refuse_fuse()


def test_a_folder_that_cannot_show_an_array_is_refused(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").touch()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "full")
    for name, complaint in (("full", "is not empty"), ("link", "is a link"), ("file", "is no folder")):
        with ArrayPlace.open(tmp_path / name) as place, pytest.raises(UsageError, match=complaint):
            place.make_folder()
    for path in (Path("/"), tmp_path / ".."):
        with pytest.raises(UsageError, match="has no name of its own"):
            ArrayPlace.open(path)


def counters(**changes: Any) -> dict[str, Any]:
    served = {"reads": 10, "read_bytes": 81920, "read_ns": 20_000_000, "writes": 0, "write_bytes": 0, "write_ns": 0}
    disk = {
        "name": "member0/disk0",
        "state": "present",
        "rebuilt_share": None,
        "reads": 5,
        "writes": 1,
        "busy_ns": 10**8,
    }
    member = {
        "name": "member0", "reads": 10, "read_hits": 4, "written_bytes": 0, "destaged_bytes": 0, "rebuilt_bytes": 0,
        "dirty_bytes": 4096, "lost_chunks": 0, "disks": [disk],
    }  # fmt: skip
    return {
        "power": True,
        "volatile_bytes": 0,
        "volumes": [{"name": "data01", "served": served | {"flushes": 1, "errors": 0} | changes}],
        "members": [member],
        "lateness": {
            "count": changes.get("reads", 10),
            "late_ns": 100_000 * changes.get("reads", 10),
            "overdriven_s": 0,
        },
    }


def test_each_second_has_rates_and_latencies_of_volumes_and_the_lateness() -> None:
    collector = ServedArrayCollector(lambda _command: counters(), {"data01": "data"})
    after = counters(reads=30, read_bytes=245_760, read_ns=80_000_000)

    found = {(one.entity, one.metric): one for one in collector.readings(collector.sample(), after, 10**9)}

    assert found["volume/data01", "read_ios_count"].value == 20
    assert found["volume/data01", "read_latency_mean_ns"].value == 3_000_000
    assert found["volume/data01", "read_latency_mean_ns"].role == "data"
    assert ("volume/data01", "write_latency_mean_ns") not in found
    assert found["array", "lateness_mean_ns"].value == 100_000
    assert found["member0", "dirty_bytes"].value == 4096


def test_arrays_of_one_run_tell_their_names_apart() -> None:
    collector = ServedArrayCollector(lambda _command: counters(), {"data01": "data"}, prefix="log/")

    found = {one.entity: one.role for one in collector.readings(collector.sample(), counters(reads=30), 10**9)}

    assert found["log/volume/data01"] == "data"
    assert {"log/member0", "log/array"} <= found.keys()
    assert all(entity.startswith("log/") for entity in found)


def test_hosts_with_flash_tell_where_reads_were_found_and_their_pool_what_is_lost_or_missing() -> None:
    def pooled(**changes: int) -> dict[str, Any]:
        host = {"name": "host0", "reads": 10, "memory_hits": 2, "flash_hits": 3, "remote_hits": 1} | changes
        whole = counters() | {"hosts": [host], "pool": {"lost_blocks": 7, "missing_pieces": 9}}
        del whole["members"][0]["lost_chunks"]
        return whole

    collector = ServedArrayCollector(lambda _command: pooled(), {"data01": "data"})
    after = pooled(reads=30, memory_hits=8, flash_hits=12)

    found = {(one.entity, one.metric): one.value for one in collector.readings(collector.sample(), after, 10**9)}

    assert found["host0", "read_ios_count"] == 20
    assert found["host0", "read_hit_share"] == 0.75
    assert found["array", "lost_chunks_count"] == 7
    assert found["array", "missing_pieces_count"] == 9
    assert ("member0", "lost_chunks_count") not in found


def test_a_server_that_stands_still_is_waited_for_in_full_but_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, store = tmp_path / "at", tmp_path / "store"
    at.mkdir()
    store.mkdir()
    with ArrayPlace.open(at) as place:
        place.write_note(ArrayNote(store=str(store), pid=os.getpid()))
    monkeypatch.setattr(folder, "ANSWER_S", 0.03)
    monkeypatch.setattr(folder, "AGAIN_S", 0.02)
    monkeypatch.chdir(store)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("control.sock")
        server.listen()
        for patience_s in (folder.ANSWER_S, folder.AGAIN_S, folder.AGAIN_S):
            assert folder.patience_s(at) == patience_s
            with pytest.raises(NotAnswering, match="does not answer"):
                folder.ask(at, {"command": "status"})
        # It goes on: what waits is answered, and so is the next.
        monkeypatch.setattr(folder, "AGAIN_S", 30.0)
        thread = threading.Thread(target=_answer_all, args=(server, 4))
        thread.start()
        assert folder.ask(at, {"command": "status"}) == {}
        thread.join()
    assert folder.patience_s(at) == folder.ANSWER_S


def _answer_all(server: socket.socket, count: int) -> None:
    for _ in range(count):
        connection, _ = server.accept()
        # The clients that gave up have closed their end.
        with connection, contextlib.suppress(ConnectionError):
            # An answer before the question was read would be a connection reset.
            connection.recv(4096)
            connection.sendall(b'{"done": {}}\n')
