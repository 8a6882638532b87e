"""Rules: each can hold and can be broken, what is not known never passes, a host that follows advice has no finding."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from assay.errors import UsageError
from assay.rules.facts.site import TABLES, add_site, read_site, template
from assay.rules.outputs import document, junit, sarif
from assay.rules.pages import page_of, pages
from assay.rules.registry import FAMILIES, RULES, chosen_rules, rule_named
from assay.rules.rule import SEVERITIES, SUBJECTS, Fact, Finding, Rule, Subject, check

VALUES = (
    0,
    1,
    2,
    3,
    8,
    20,
    64,
    300,
    4096,
    9000,
    10**5,
    2 * 10**6,
    10**9,
    10**10,
    4 * 10**12,
    0.0,
    0.03,
    0.5,
    0.9,
    0.99,
    1.1,
    "on",
    "off",
    "ON",
    "OFF",
    "none",
    "always",
    "10",
    "5",
    "0",
    "log",
    "data",
    "healthy",
    "full",
    "half",
    "powersave",
    "performance",
    "hpet",
    "tsc",
    "SIMPLE",
    "FULL",
    "Y",
    "N",
    "None",
    "write back",
    "overlay",
    "ext4",
    "round-robin",
    "first",
    "power",
    "High Performance",
    "cfq",
    "O_DIRECT",
    "fsync",
    "e1000",
    "ata_piix",
    "analysis",
    "transactions",
    "all",
    True,
    False,
    (),
    ("noatime",),
    ("nobarrier", "soft", "discard", "data=writeback"),
    ("/",),
    ("/data",),
    ("sda",),
    ("sdb",),
    (10**9, 10**10),
    (10**9, 10**9),
    {"a": 1},
    {"a": 5000},
    {"a": 2, "b": 0},
    {"a": 2000, "b": 0},
    {"a": 2, "b": 3},
)


NUMBERS = tuple(value for value in VALUES if isinstance(value, (int, float)) and not isinstance(value, bool))
SMALL = tuple(value for value in VALUES if not isinstance(value, int) or value <= 300)
"""Without numbers that a text could be repeated by."""
MIXED = ("5", "50", "10", 4e12, 7200.0, 1e9)


def outcomes(rule: Rule) -> set[bool]:
    """What a rule can say of any values."""
    drawn = random.Random(rule.id)
    found: set[bool] = set()
    for _ in range(60_000):
        pool = drawn.choice((NUMBERS, SMALL, MIXED)) if len(rule.reads) > 1 else VALUES
        values = [drawn.choice(pool) for _ in rule.reads]
        try:
            found.add(bool(rule.good(*values)))
        except (TypeError, ValueError, AttributeError, KeyError, ZeroDivisionError):
            continue
        if len(found) == 2:
            break
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_can_hold_and_can_be_broken(rule: Rule) -> None:
    assert outcomes(rule) == {True, False}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_tells_all_that_a_reader_needs(rule: Rule) -> None:
    assert rule.subject in SUBJECTS
    assert rule.severity in SEVERITIES
    assert all((rule.title, rule.wanted, rule.why, rule.fix, rule.source, rule.reads))
    assert rule.why.endswith(".")
    assert rule.fix.endswith(".")
    assert rule.id in page_of(rule)


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    assert len(RULES) >= 80
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_is_not_known_is_not_checked_and_never_passes(rule: Rule) -> None:
    subject = Subject(rule.subject, "one", engine=rule.engines[0] if rule.engines else "")

    told = check([subject], [rule])

    assert told.passed == []
    assert told.findings == []
    assert len(told.not_checked) + len(told.not_applicable) == 1


def host(**facts: object) -> Subject:
    good = {
        "vm.swappiness": 1,
        "swap_bytes": 0,
        "swap_used_bytes": 0,
        "vm.dirty_ratio": 20,
        "vm.dirty_bytes": 0,
        "vm.dirty_background_ratio": 5,
        "vm.overcommit_memory": 2,
        "vm.zone_reclaim_mode": 0,
        "kernel.numa_balancing": 0,
        "numa_nodes": 2,
        "transparent_hugepage": "madvise",
        "cpu_governor": "performance",
        "energy_preference": "performance",
        "clock_source": "tsc",
        "clock_synchronised": True,
        "fs.aio-max-nr": 1048576,
        "has_aio_database": True,
        "nofile_limit": 65536,
        "hugepages_total": 0,
        "hugepages_free": 0,
        "interrupt_share_busiest": 0.2,
        "cpu_count": 16,
        "memory_bytes": 64 << 30,
        "tcp_segments": 10**8,
        "tcp_retransmit_share": 0.0001,
        "net.ipv4.tcp_sack": 1,
        "tcp_rmem_max": 6291456,
        "is_guest": False,
    }
    return filled("host", "db1", good | facts)


def filled(kind: str, name: str, facts: dict[str, object], engine: str = "") -> Subject:
    return Subject(kind, name, engine=engine, facts={key: Fact(value, "a test") for key, value in facts.items()})


def healthy() -> list[Subject]:
    """A host, its storage, its network and its PostgreSQL, as advice has them."""
    device = {
        "scheduler": "none",
        "nr_requests": 256,
        "rotational": False,
        "write_cache": "write through",
        "max_io_bytes": 1 << 20,
        "max_hw_io_bytes": 1 << 20,
        "read_ahead_bytes": 128 << 10,
        "add_random": 0,
        "wbt_lat_us": 0,
        "transport": "nvme",
        "is_guest": False,
        "driver": "nvme",
        "misaligned_partitions": [],
    }
    mount = {"options": ["rw", "noatime"], "file_system": "xfs", "free_share": 0.4, "is_data": True}
    card = {
        "mtu": 9000,
        "speed_bits_per_s": 10**10,
        "duplex": "full",
        "is_storage": True,
        "is_virtual": False,
        "is_up": True,
        "pause_rx": True,
        "ring_rx": 4096,
        "ring_rx_max": 4096,
        "tso": True,
        "gro_or_lro": True,
        "packets": 10**9,
        "dropped_share": 0.0,
        "error_share": 0.0,
        "is_guest": False,
        "workload": "transactions",
    }
    layout = {
        "data_devices": ["nvme0n1"],
        "log_devices": ["nvme1n1"],
        "tempdb_devices": ["nvme0n1"],
        "data_mounts": ["/data"],
        "backup_devices": ["sdz"],
        "log_raid": "10",
        "data_raid": "10",
        "workload": "transactions",
        "allocation_unit_bytes": 65536,
    }
    server = {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "data_checksums": "on",
        "checksum_failures": 0,
        "checkpoint_completion_target": 0.9,
        "checkpoints": 500,
        "checkpoints_requested_share": 0.02,
        "max_wal_size_bytes": 8 << 30,
        "checkpoint_timeout_s": 900.0,
        "shared_buffers_bytes": 16 << 30,
        "memory_bytes": 64 << 30,
        "huge_pages": "on",
        "random_page_cost": 1.1,
        "measured_random_cost": 1.3,
        "measured_write_bytes_per_s": 2e9,
        "data_is_flash": True,
        "effective_io_concurrency": 200,
        "track_io_timing": "on",
        "track_wal_io_timing": "on",
        "autovacuum": "on",
        "log_statement": "none",
        "wal_compression": "lz4",
        "archive_mode": "on",
        "standbys": 1,
        "temp_bytes_per_h": 0.0,
        "stats_age_s": 10**6,
    }
    maps = {
        "paths_running": 2,
        "paths_failed": 0,
        "policy": "service-time",
        "ios_by_path": {"sda": 10**6, "sdb": 10**6},
    }
    return [
        host(),
        filled("device", "nvme0n1", device),
        filled("mount", "/data", mount),
        filled("interface", "eth1", card),
        filled("layout", "db1", layout),
        filled("database", "db1", server, "postgresql"),
        filled("multipath", "dm-0", maps),
    ]


def test_a_host_that_follows_advice_has_no_finding() -> None:
    told = check(healthy(), RULES)

    assert [(one.rule.id, one.found) for one in told.findings] == []
    assert len(told.passed) > 70


@pytest.mark.parametrize(
    ("pair", "facts"),
    [
        (("host-transparent-huge-pages", "postgresql-huge-pages"), {"transparent_hugepage": "madvise"}),
        (
            ("iscsi-recovery-timeout", "iscsi-recovery-timeout-single"),
            {"recovery_timeout_s": 15, "has_multipath": True},
        ),
        (("device-read-ahead-small", "device-read-ahead-large"), {"read_ahead_bytes": 1 << 20}),
        (
            ("postgresql-shared-buffers-small", "postgresql-shared-buffers-large"),
            {"shared_buffers_bytes": 16 << 30, "memory_bytes": 64 << 30},
        ),
        (("mariadb-io-capacity", "mariadb-io-capacity-above"), {"innodb_io_capacity": 2000, "measured_iops": 20000.0}),
    ],
)
def test_rules_about_one_thing_do_not_contradict_each_other(pair: tuple[str, str], facts: dict[str, object]) -> None:
    rules = [rule_named(name) for name in pair]
    subjects = [filled(rule.subject, "one", facts, rule.engines[0] if rule.engines else "") for rule in rules]

    assert check(subjects, rules).findings == []


def broken() -> list[Finding]:
    subjects = [host(**{"vm.swappiness": 60, "swap_bytes": 1 << 30, "clock_source": "hpet"})]
    return check(subjects, RULES).findings


def test_findings_come_worst_first_with_their_values() -> None:
    found = broken()

    assert [one.rule.id for one in found] == ["host-clock-source", "host-swappiness"]
    assert found[1].found == "vm.swappiness = 60"


def test_sarif_has_every_rule_and_a_place_for_each_result() -> None:
    told = check([host(**{"vm.swappiness": 60, "swap_bytes": 1 << 30})], RULES)
    log = json.loads(sarif(told, RULES))

    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert [rule["id"] for rule in driver["rules"]] == [rule.id for rule in RULES]
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in driver["rules"])
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


def test_junit_counts_what_it_holds() -> None:
    told = check([host(**{"vm.swappiness": 60, "swap_bytes": 1 << 30}), Subject("device", 'a<b>&"')], RULES)
    suites = ElementTree.fromstring(junit(told))

    cases = suites.findall("./testsuite/testcase")
    assert len(cases) == int(suites.attrib["tests"])
    assert len(suites.findall(".//failure")) == len(told.findings) == int(suites.attrib["failures"])
    assert len(suites.findall(".//skipped")) == len(told.not_checked) == int(suites.attrib["skipped"])


def test_the_document_has_all_four_lists() -> None:
    made = document(check([host()], RULES), ["host"], [])

    assert {"findings", "passed", "not_checked", "not_applicable"} <= set(made)
    assert json.loads(json.dumps(made)) == made


def test_the_template_is_read_when_it_is_filled_in(tmp_path: Path) -> None:
    lines = [line for line in template().splitlines() if re.match(r"# (\[|\w+ = )", line)]
    path = tmp_path / "site.toml"
    path.write_text("\n".join(line.removeprefix("# ") for line in lines))

    site = read_site(path)

    assert set(site) == set(TABLES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[netwrok]\nswitches = 2\n", "unknown table [netwrok]; did you mean 'network'?"),
        ("[network]\nswitchs = 2\n", "[network] has no key 'switchs'; did you mean 'switches'?"),
        ("[network]\nswitches = -1\n", "[network] switches = -1: accepted: a whole number"),
        ("[network\n", "is no TOML"),
        ("network = 3\n", "[network] is to be a table"),
        ('[network]\nstorage_interfaces = ["eth9"]\n', "there is no interface 'eth9'"),
        ('[host]\ncpu_governor = "powersave"\n', "cpu_governor = 'powersave' contradicts 'performance'"),
    ],
)
def test_a_site_that_is_wrong_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "site.toml"
    path.write_text(text)

    with pytest.raises(UsageError) as caught:
        add_site(healthy(), read_site(path), path)

    assert message in str(caught.value)


def test_a_site_answers_what_could_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(
        "[network]\njumbo_on_all_hops = false\n\n"
        '[[array]]\nname = "san1"\nraid = "5"\ndisk_bytes = "4TB"\ndisk_rpm = 7200\n'
    )
    subjects = [host()]
    add_site(subjects, read_site(path), path)

    found = {one.rule.id for one in check(subjects, RULES).findings}

    assert found == {"network-jumbo-hops", "array-raid6-large"}


def test_rules_are_chosen_by_name_and_family() -> None:
    assert {rule.id for rule in chosen_rules("layout", "layout-log-apart")} == {
        rule.id for rule in FAMILIES["layout"] if rule.id != "layout-log-apart"
    }
    with pytest.raises(UsageError, match="did you mean layout-log-apart"):
        chosen_rules("layout-log-appart", None)


def test_the_pages_are_those_of_the_rules() -> None:
    folder = Path(__file__).parents[2] / "docs" / "rules"
    made = pages()
    assert {path.name for path in folder.iterdir()} == set(made)
    assert [name for name, text in made.items() if (folder / name).read_text() != text] == [], (
        "the rules changed; write their pages again: python -m assay.rules.pages docs/rules"
    )
