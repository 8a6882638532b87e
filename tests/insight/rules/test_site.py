"""The site's file: what it may say, what it may not, and what becomes of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.insight.rules.facts.interfaces import know_storage_links
from assay.insight.rules.facts.site import TABLES, add_site, checked, read_site, template
from assay.insight.rules.gather import subjects_of
from assay.insight.rules.registry import RULES
from assay.insight.rules.rule import Fact, Subject, check


def host() -> Subject:
    return Subject("host", "db1", facts={"cpu_governor": Fact("performance", "/sys")})


def card(name: str, *, is_storage: bool = False) -> Subject:
    return Subject("interface", name, facts={"is_storage": Fact(is_storage, "TCP"), "mtu": Fact(1500, "/sys")})


def machine() -> list[Subject]:
    layout = Subject("layout", "db1", facts={"data_devices": Fact(["sda", "sdb"], "its folders")})
    return [host(), card("eth0"), card("eth1"), Subject("multipath", "dm-0"), layout]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "site.toml"


def told_by(path: Path, text: str, subjects: list[Subject]) -> list[str]:
    path.write_text(text)
    return add_site(subjects, read_site(path), path)


def test_the_template_is_read_when_it_is_filled_in(path: Path) -> None:
    lines = [line for line in template().splitlines() if re.match(r"# (\[|\w+ = )", line)]
    path.write_text("\n".join(line.removeprefix("# ") for line in lines))

    site = read_site(path)

    assert set(site) == set(TABLES)
    assert all(set(site[name][0]) == {key.name for key in keys} for name, (_, _, keys) in TABLES.items())


def test_as_it_comes_the_template_says_nothing(path: Path) -> None:
    path.write_text(template())

    assert read_site(path) == {}


def test_every_key_is_read_by_a_rule_or_chooses_something() -> None:
    read = {(rule.subject, name) for rule in RULES for name in (*rule.reads, *(one.fact for one in rule.applies))}
    chooses = {"name", "storage_interfaces", "workload"}

    unread = [
        (table, key.name)
        for table, (kind, _, keys) in TABLES.items()
        for key in keys
        if key.name not in chooses and (kind, key.name) not in read
    ]

    assert unread == []


def test_what_a_rule_asks_for_is_a_key() -> None:
    for rule in (rule for rule in RULES if rule.asks):
        tables = re.findall(r"\[+(\w+)\]+", rule.asks)
        names = re.findall(r"\b[a-z]+(?:_[a-z]+)*\b", re.sub(r"\[+\w+\]+", "", rule.asks).replace(" and ", " "))
        assert tables
        assert names
        for name in names:
            assert any(name == key.name for table in tables for key in TABLES[table][2]), (rule.id, name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[netwrok]\nswitches = 2\n", "unknown table [netwrok]; did you mean 'network'?"),
        ("[zzz]\n", "unknown table [zzz]; known: network, layout"),
        ("[network]\nswitchs = 2\n", "[network] has no key 'switchs'; did you mean 'switches'?"),
        ("[network]\nswitches = -1\n", "[network] switches = -1: accepted: a whole number"),
        ("[network]\nswitches = true\n", "[network] switches = True: accepted: a whole number"),
        ('[network]\nswitches = "2"\n', "[network] switches = '2': accepted: a whole number"),
        ("[network]\nflow_control = 1\n", "[network] flow_control = 1: accepted: true or false"),
        ("[network]\nstorage_interfaces = 3\n", "storage_interfaces = 3: accepted: a list of names"),
        ("[network]\nstorage_interfaces = [3]\n", "storage_interfaces = [3]: accepted: a list of names"),
        ('[layout]\nworkload = "oltp"\n', "workload = 'oltp': accepted: transactions, analysis"),
        ('[layout]\ndata_raid = "RAID 10"\n', "data_raid = 'RAID 10': accepted: 0, 1, 5, 6, 10, 50, 60, dp, none"),
        ("[layout]\ndata_raid = [1]\n", "data_raid = [1]: accepted: 0, 1, 5"),
        ('[layout]\nallocation_unit_bytes = "64 furlongs"\n', "allocation_unit_bytes"),
        ("[iscsi]\ncpu_share = 25\n", "cpu_share = 25: accepted: a share from 0 to 1"),
        ('[iscsi]\ndata_digest = "md5"\n', "data_digest = 'md5': accepted: None, CRC32C"),
        ("[[hypervisor]]\nkernel_latency_ms = -1\n", "kernel_latency_ms = -1: accepted: a number"),
        ('[[array]]\nname = ""\n', "name = '': accepted: a text"),
        ('[[array]]\ninitiator_limit = "many"\n', "initiator_limit = 'many': accepted: a whole number, or \"none\""),
        ("[network\n", "is no TOML"),
        ("network = 3\n", "[network] is to be a table"),
        ("network = [3]\n", "[network] is to be a table"),
        ("[[network]]\nswitches = 1\n[[network]]\nswitches = 2\n", "there are 2 tables [network]; one is accepted"),
        ('[[array]]\nraid = "5"\n[[array]]\nraid = "6"\n', "each of several tables [[array]] needs a name of its own"),
        ('[[array]]\nname = "a"\n[[array]]\nname = "a"\n', "each of several tables [[array]] needs a name of its own"),
        ('[network]\nstorage_interfaces = ["eth9"]\n', "there is no interface 'eth9'; there is eth0, eth1"),
        (
            '[host]\ncpu_governor = "powersave"\n',
            "cpu_governor = 'powersave' contradicts 'performance', which was read",
        ),
        ('[layout]\ndata_devices = ["sdc"]\n', "data_devices = ['sdc'] contradicts ['sda', 'sdb'], which was read"),
        ('[[multipath]]\nname = "dm-9"\npolicy = "numa"\n', "[[multipath]] name = 'dm-9': this host has dm-0"),
    ],
)
def test_a_site_that_is_wrong_is_one_line(path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        told_by(path, text, machine())

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_or_far_too_long_is_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is no TOML"):
        read_site(path)
    path.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        read_site(path)
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_site(path.parent)


def test_a_card_with_connections_to_storage_may_not_be_left_out(path: Path) -> None:
    with pytest.raises(UsageError, match="storage_interfaces lacks 'eth1', which has connections to storage"):
        told_by(
            path, '[network]\nstorage_interfaces = ["eth0"]\n', [host(), card("eth0"), card("eth1", is_storage=True)]
        )


def test_what_agrees_is_kept_as_it_was_read(path: Path) -> None:
    subjects = machine()

    assert told_by(path, '[layout]\ndata_devices = ["sdb", "sda"]\n', subjects) == []
    (layout,) = (one for one in subjects if one.kind == "layout")
    assert layout.facts["data_devices"].origin == "its folders"


def test_a_site_answers_what_could_not_be_read(path: Path) -> None:
    subjects = [host()]
    told_by(
        path,
        "[network]\njumbo_on_all_hops = false\n\n"
        '[[array]]\nname = "san1"\nraid = "5"\ndisk_bytes = "4TB"\ndisk_rpm = 7200\n\n'
        '[[array]]\nname = "san2"\nraid = "6"\ninitiator_limit = 8\n',
        subjects,
    )

    found = {(one.rule.id, one.subject.name) for one in check(subjects, RULES).findings}

    assert found == {
        ("network-jumbo-hops", str(path)), ("array-raid6-large", "san1"), ("array-queue-depth", "san2"),
    }  # fmt: skip


def test_a_site_names_the_cards_of_storage(path: Path) -> None:
    subjects = machine()
    told_by(path, '[network]\nstorage_interfaces = ["eth1"]\n', subjects)
    know_storage_links(subjects)

    found = {(one.rule.id, one.subject.name) for one in check(subjects, RULES).findings}

    assert {("network-jumbo", "eth1"), ("network-host-paths", "db1")} <= found
    assert ("network-jumbo", "eth0") not in found


def test_a_workload_reaches_the_rules_of_servers(path: Path) -> None:
    facts = {"tempdb_bytes": Fact(1, "x"), "user_bytes": Fact(1000, "x")}
    subjects = [Subject("database", "sql", engine="mssql", facts=facts)]
    told_by(path, '[layout]\nworkload = "analysis"\n', subjects)

    assert "mssql-tempdb-size" in {one.rule.id for one in check(subjects, RULES).findings}


def test_what_is_said_of_a_host_that_is_not_checked_is_told(path: Path) -> None:
    notices = told_by(path, '[host]\nballoon = false\n\n[network]\nstorage_interfaces = ["eth0"]\n', [])

    assert len(notices) == 2
    assert all("add the target host" in one for one in notices)


# Any value of TOML

VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates() | st.times()
    | st.sampled_from(["10", "none", "4TB", "64KiB", "transactions", "healthy", "1e999", "²"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip

KEYS = [(table, key) for table, (_, _, keys) in TABLES.items() for key in keys]


@given(chosen=st.lists(st.tuples(st.sampled_from(KEYS), VALUES), max_size=6))
def test_any_value_is_read_or_refused_in_one_line_and_then_judged(chosen: list[tuple[Any, Any]]) -> None:
    subjects = machine()
    made: dict[str, list[dict[str, Any]]] = {}
    try:
        for (table, key), value in chosen:
            made.setdefault(table, [{}])[0] |= checked("site.toml", table, {key.name: value})
        add_site(subjects, made, Path("site.toml"))
    except UsageError as error:
        told = str(error)
    else:
        told = ""
        check(subjects, RULES)
    assert "\n" not in told


def test_the_topology_of_a_model_is_what_a_site_says_of_its_own(path: Path) -> None:
    target = "model:ps6100xv?raid=data:10,log:50&volumes=data:4,log:1"
    subjects, _ = subjects_of([target])
    told = check(subjects, RULES)

    assert {one.rule.id for one in told.findings} == {"layout-raid-log", "array-raid-role"}
    passed = {rule.id for rule, _ in told.passed}
    assert {"layout-log-apart", "layout-raid-none", "layout-log-drives", "network-apart"} <= passed
    assert not [one for one in told.not_checked if one.rule.subject == "hypervisor"]
    path.write_text('[layout]\nlog_raid = "10"\n')
    with pytest.raises(UsageError, match="log_raid = '10' contradicts '50', which was read from model:"):
        subjects_of([target], site=path)


def test_of_a_write_anywhere_array_the_options_for_scans_are_checked_where_scans_run(path: Path) -> None:
    path.write_text('[layout]\nworkload = "analysis"\nother_workload = "transactions"\n')
    subjects, _ = subjects_of(["model:fas3070"], site=path)

    found = {one.rule.id for one in check(subjects, RULES).findings}

    assert {"array-read-realloc", "array-write-allocation", "layout-mixed-store"} <= found
    without, _ = subjects_of(["model:fas3070"])
    assert "array-read-realloc" not in {one.rule.id for one in check(without, RULES).findings}
