"""A healthy machine gives no finding: its /proc, its /sys, its network, its servers and its array, as advice has them.

What passes is written down beside this file, so that a rule that silently ends to be checked is seen.
"""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterable
from pathlib import Path

import pytest

from assay.insight.rules.facts import host as host_source
from assay.insight.rules.facts import interfaces as interfaces_source
from assay.insight.rules.facts.arrays import array_subjects
from assay.insight.rules.facts.devices import device_subjects
from assay.insight.rules.facts.host import host_subject
from assay.insight.rules.facts.interfaces import interface_subjects, know_storage_links
from assay.insight.rules.facts.site import add_site, read_site
from assay.insight.rules.registry import RULES
from assay.insight.rules.rule import Fact, Subject, check
from insight.rules.cases import CASES
from insight.rules.machine import healthy

GOLDEN = Path(__file__).parent / "golden" / "healthy.txt"

SITE = """
[network]
jumbo_on_all_hops = true
flow_control = true
spanning_tree_on_storage_ports = false
storage_network_apart = true
switches = 2
inter_switch_gbit = 40
array_ports_gbit = 20
storage_interfaces = ["eth1", "eth2"]

[layout]
workload = "transactions"
data_raid = "10"
log_raid = "10"
log_disk_rpm = 0
other_workload = "none"
data_devices = ["nvme0n1"]
log_devices = ["nvme1n1"]
backup_devices = ["sdz"]
allocation_unit_bytes = "64KiB"

[[hypervisor]]
name = "esx1"
thin_disks = false
kernel_latency_ms = 0.1
device_latency_ms = 3.0
adapters_per_guest = 4
power_policy = "High Performance"
"""


@pytest.fixture
def subjects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Subject]:
    """The machine, as `assay check` gathers it."""
    monkeypatch.setattr(socket, "gethostname", lambda: "db1")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (65536, 65536))
    monkeypatch.setattr(host_source, "_is_synchronised", lambda: True)
    answers = {0x10: (4096, 0, 0, 4096, 4096), 0x12: (1, 1, 1), 0x1E: (1,), 0x2B: (1,)}
    monkeypatch.setattr(interfaces_source, "_asked", lambda _, command, __: answers[command])
    kernel = healthy(tmp_path / "machine").kernel
    found = [
        host_subject(kernel),
        *device_subjects(["nvme0n1", "nvme1n1"], kernel, is_guest=False),
        *interface_subjects(kernel, is_guest=False),
        *array_subjects("model:ps6100xv?raid=10&fill=0.6"),
        *(server(engine) for engine in ("postgresql", "mariadb", "mssql")),
        *(of_cases(kind, kind) for kind in ("mount", "multipath", "fc")),
    ]
    (mount,) = (one for one in found if one.kind == "mount")
    for name, value in {"options": ["rw", "noatime", "hard"], "file_system": "nfs4", "free_share": 0.3}.items():
        mount.know(name, value, "a test")
    monkeypatch.chdir(tmp_path)
    site = Path("site.toml")
    site.write_text(SITE)
    assert add_site(found, read_site(site), site) == []
    know_storage_links(found)
    return found


def of_cases(kind: str, name: str, engine: str = "") -> Subject:
    """A thing in which everything is mended that a rule of its kind could find."""
    facts: dict[str, object] = {}
    for rule in RULES:
        if rule.subject == kind and (not rule.engines or engine in rule.engines):
            broken, mended = CASES[rule.id]
            facts = {**broken, **facts, **mended}
    return Subject(kind, name, engine=engine, facts={key: Fact(value, "a test") for key, value in facts.items()})


def server(engine: str) -> Subject:
    """A healthy server; where rules name one setting from two sides, the value suits both."""
    one = of_cases("database", engine, engine)
    both: dict[str, dict[str, object]] = {
        "postgresql": {
            "shared_buffers_bytes": 25 << 30, "random_page_cost": 1.1, "max_wal_size_bytes": 8 << 30,
            "checkpoint_timeout_s": 900.0, "measured_write_bytes_per_s": 2e9,
        },
        "mariadb": {
            "innodb_buffer_pool_size": 70 << 30, "innodb_io_capacity": 2000, "measured_iops": 50_000.0,
            "redo_bytes": 8 << 30,
        },
        "mssql": {"max_server_memory_bytes": 80 << 30},
    }  # fmt: skip
    for name, value in both[engine].items():
        one.know(name, value, "a test")
    one.facts.pop("workload", None)
    return one


def lines(told: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{rule} {subject}\n" for rule, subject in sorted(told))


def test_a_healthy_machine_gives_no_finding(subjects: list[Subject]) -> None:
    told = check(subjects, RULES)

    assert [(one.rule.id, one.subject.name, one.found) for one in told.findings] == []


def test_what_passes_on_a_healthy_machine_is_known(subjects: list[Subject]) -> None:
    passed = lines((rule.id, subject.name) for rule, subject in check(subjects, RULES).passed)

    if os.environ.get("ASSAY_UPDATE_GOLDEN"):
        GOLDEN.write_text(passed)
    again = "ASSAY_UPDATE_GOLDEN=1 pytest tests/insight/rules/test_healthy.py"
    assert passed == GOLDEN.read_text(), f"write it again: {again}"


def test_only_what_nothing_can_tell_is_left_unchecked(subjects: list[Subject]) -> None:
    gaps = {one.rule.id for one in check(subjects, RULES).not_checked}

    # No folder of tempdb and none of data was named.
    assert gaps == {"layout-tempdb-apart", "layout-not-system-disk"}
