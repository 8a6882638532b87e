"""Files of settings are read as what they are, and never taken for a place of storage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.base.errors import UsageError
from assay.insight.rules.facts.files import file_subjects
from assay.insight.rules.gather import subjects_of
from assay.insight.rules.registry import chosen_rules
from assay.insight.rules.rule import Subject, check


def read(folder: Path, text: str, name: str = "settings.txt") -> list[Subject]:
    path = folder / name
    path.write_text(text)
    found = file_subjects(str(path))
    assert found is not None
    return found


def broken(subjects: list[Subject]) -> set[str]:
    return {one.rule.id for one in check(subjects, chosen_rules(None, None)).at_least("note")}


def test_settings_of_postgresql_are_checked_as_those_of_a_server(tmp_path: Path) -> None:
    conf = tmp_path / "postgresql.conf"
    conf.write_text(
        "# safe?\nfsync = off\nshared_buffers 256MB   # of memory\nfull_page_writes = no\nfsync = off # again\n"
    )
    subjects, notices = subjects_of([str(conf)])
    assert [(one.kind, one.engine) for one in subjects] == [("database", "postgresql")]
    assert subjects[0].get("shared_buffers_bytes") == 256 * 2**20
    assert subjects[0].get("full_page_writes") == "off"
    assert "postgresql-fsync" in broken(subjects)
    assert "its settings are checked, and nothing of this host" in notices[0]
    # The last of a name counts, as in the server.
    (server,) = read(tmp_path, "fsync = off\nfsync = on\n")
    assert "postgresql-fsync" not in broken([server])


def test_sections_of_servers_in_my_cnf_are_read(tmp_path: Path) -> None:
    text = "[client]\nport=3306\n[mysqld]\ninnodb-flush-log-at-trx-commit = 2\ninnodb_log_file_size=1G\nskip-dns\n"
    (server,) = read(tmp_path, text)
    assert (server.engine, server.get("innodb_log_file_size")) == ("mysql", 2**30)
    assert "mariadb-flush-log" in broken([server])


def test_texts_of_tools_become_what_they_tell_of(tmp_path: Path) -> None:
    (host,) = read(tmp_path, "kernel.numa_balancing = 1\nvm.swappiness = 60\nnet.ipv4.tcp_rmem = 4096 131072 6291456\n")
    assert (host.kind, host.get("vm.swappiness"), host.get("tcp_rmem_max")) == ("host", 60, 6291456)
    mounts = read(
        tmp_path,
        "proc on /proc type proc (rw)\n/dev/sda1 on / type ext4 (rw)\nnas:/db on /db type nfs (rw,rsize=8192)\n",
    )
    assert [(one.name, one.get("file_system")) for one in mounts] == [("/", "ext4"), ("/db", "nfs")]
    assert mounts[1].get("nfs_rsize") == 8192
    (mount,) = read(tmp_path, "# <fs> <mount>\nUUID=1-2 /data xfs noatime,nobarrier 0 2\nUUID=3 none swap sw 0 0\n")
    assert (mount.name, mount.get("options")) == ("/data", ["noatime", "nobarrier"])
    listed = {
        "blockdevices": [{"name": "sda", "rota": True, "sched": "bfq", "rq-size": "64", "ra": 4096, "type": "disk"}]
    }
    (device,) = read(tmp_path, json.dumps(listed))
    assert (device.get("scheduler"), device.get("nr_requests"), device.get("is_flash")) == ("bfq", 64, False)
    assert device.get("read_ahead_bytes") == 4 * 2**20
    (nvme,) = read(tmp_path, json.dumps({"Devices": [{"DevicePath": "/dev/nvme0n1", "ModelNumber": "X"}]}))
    assert (nvme.name, nvme.get("is_flash")) == ("nvme0n1", True)
    (card,) = read(tmp_path, "Settings for eth0:\n\tSpeed: 1000Mb/s\n\tDuplex: Half\n")
    assert (card.name, card.get("speed_bits_per_s"), card.get("duplex")) == ("eth0", 10**9, "half")
    (paths,) = read(tmp_path, 'defaults {\n  path_selector "round-robin 0"\n}\n')
    assert paths.get("policy") == "round-robin"
    (server,) = read(
        tmp_path,
        "name                       minimum  maximum     config_value run_value\n"
        "-------------------------- -------- ----------- ------------ -----------\n"
        "max server memory (MB)     128      2147483647  8192         8192\n",
    )
    assert (server.engine, server.get("max_server_memory_bytes")) == ("mssql", 8 * 2**30)


def test_a_text_of_another_kind_is_refused_and_a_file_of_data_is_a_place(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("the disks are slow since Tuesday\n")
    with pytest.raises(
        UsageError, match=r"is a text, and no place of storage; as settings are read: .*postgresql\.conf"
    ):
        subjects_of([str(notes)])
    data = tmp_path / "data.dat"
    data.write_bytes(b"\0" * 4096)
    assert file_subjects(str(data)) is None
