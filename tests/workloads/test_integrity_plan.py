"""Plans and presets of `assay verify`: what they hold, what is refused; a plan printed is the plan understood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.base.reading import read_table
from assay.workloads.integrity.plan import (
    AuditUser,
    BulkUpdateUser,
    DatabaseFile,
    IntegrityPlan,
    IntegrityTiming,
    RandomUser,
    ReadAheadUser,
    ShrinkUser,
)
from assay.workloads.registry import workload_named

INTEGRITY_KIND = workload_named("integrity")

shares = st.integers(0, 10_000).map(lambda hundredth: hundredth / 10_000)
sizes = st.sampled_from(["8K", "100M", "1.5G", 8192, 1 << 30])
durations = st.sampled_from([0, 1, 0.25, "20ms", "2s", "5m", "48h"])
users = st.integers(-1, 10_000)
pages = st.integers(1, 1 << 20)
pairs = st.tuples(pages, pages).map(sorted)


def table(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=optional)


files = st.lists(
    st.fixed_dictionaries(
        {"path": st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1), "size_bytes": sizes},
        optional={"sparse": st.booleans()},
    ),
    min_size=2,
    max_size=4,
    unique_by=lambda file: file["path"],
).map(lambda made: [made[0] | {"log": True}, *made[1:]])
chains = pairs.map(lambda pair: {"chain_min": pair[0], "chain_max": pair[1]})
scans = pairs.map(lambda pair: {"pages_min": pair[0], "pages_max": pair[1]})
plans = table(
    name=st.text(max_size=10),
    seed=st.integers(0, 2**63 - 1),
    backend=st.sampled_from(["auto", "io-uring", "threads"]),
    timing=table(stress_s=durations, long_io_s=st.sampled_from([1, "15s"]), io_timeout_s=st.sampled_from(["15s", 300])),
    cycles=st.integers(0, 1 << 20),
    memory_bytes=st.none() | sizes,
    cache_hit_share=shares | shares.map(lambda share: f"{share * 100:g}%"),
    max_outstanding=st.integers(0, 140_000),
    target_io_s=st.sampled_from([0.1, "20ms", 1000]),
    stop_on_error=st.booleans(),
    shrinkable=st.booleans(),
    random=chains,
    audit=table(users=users, pages=pages, delay_s=durations),
    read_ahead=scans,
    bulk_update=scans,
    shrink=table(users=st.integers(0, 1)),
    files=st.just([]) | files,
    limits=st.sampled_from([[], ["read.mean<=20ms", "cpu<80%"]]),
)


@given(data=plans)
def test_a_plan_printed_is_the_plan_understood(data: dict[str, Any]) -> None:
    plan = INTEGRITY_KIND.load_plan(data, source="plan")
    printed = json.loads(json.dumps(plan.model_dump(mode="json"), allow_nan=False))

    assert INTEGRITY_KIND.load_plan(printed, source="plan") == plan


def test_units_are_those_of_all_plans() -> None:
    plan = INTEGRITY_KIND.load_plan(
        {"memory_bytes": "32M", "cache_hit_share": "10%", "timing": {"stress_s": "48h"}, "target_io_s": "20ms"},
        source="plan",
    )

    assert (plan.memory_bytes, plan.cache_hit_share, plan.timing.stress_s, plan.target_io_s) == (
        32 << 20,
        0.1,
        172_800.0,
        0.02,
    )


def test_a_plan_is_read_from_toml_and_from_what_a_dry_run_printed(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("cycles = 3\n[random]\nusers = 7\n")
    plan = INTEGRITY_KIND.load_plan(read_table(tmp_path / "a.toml", option="--plan"), source="--plan")
    (tmp_path / "b.json").write_text(json.dumps({"plan": plan.model_dump(mode="json"), "estimate": {}}))

    assert (plan.cycles, plan.random.users) == (3, 7)
    assert INTEGRITY_KIND.load_plan(read_table(tmp_path / "b.json", option="--plan"), source="--plan") == plan


TABLES = {
    "timing": IntegrityTiming, "random": RandomUser, "audit": AuditUser, "read_ahead": ReadAheadUser,
    "bulk_update": BulkUpdateUser, "shrink": ShrinkUser,
}  # fmt: skip


@pytest.mark.parametrize("key", [*IntegrityPlan.model_fields])
def test_a_misspelt_key_names_the_key_that_was_meant(key: str) -> None:
    with pytest.raises(UsageError, match=f"^plan: unknown key '{key}x'; did you mean '{key}'"):
        INTEGRITY_KIND.load_plan({f"{key}x": 1}, source="plan")


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, model in TABLES.items() for key in model.model_fields])
def test_a_misspelt_key_of_a_table_too(name: str, key: str) -> None:
    with pytest.raises(UsageError, match=f"^plan: {name}: unknown key '{key}x'; did you mean '{key}'"):
        INTEGRITY_KIND.load_plan({name: {f"{key}x": 1}}, source="plan")


def test_a_misspelt_key_of_a_file_names_the_file() -> None:
    files = [{"path": "a", "size_bytes": "1G"}, {"path": "b", "size_bytes": "1G", "shrinkabel": True}]
    with pytest.raises(UsageError, match=r"^plan: files 2: unknown key 'shrinkabel'; did you mean 'shrinkable'"):
        INTEGRITY_KIND.load_plan({"files": files}, source="plan")


def file(**keys: Any) -> dict[str, Any]:
    return {"path": "a", "size_bytes": "1G", **keys}


LOG = file(path="log", log=True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"kind": "profile"}, "kind"),
        ({"cycles": -1}, "cycles"),
        ({"cache_hit_share": 1.5}, "outside 0 to 1"),
        ({"max_outstanding": 140_001}, "max_outstanding"),
        ({"target_io_s": 0}, "target_io_s"),
        ({"limits": ["speed<3"]}, "limit"),
        ({"timing": {"long_io_s": 200}}, "long_io_s 200 is above io_timeout_s 120"),
        ({"timing": 5}, "timing: a table is expected"),
        ({"random": {"chain_min": 101}}, "chain_min 101 is above chain_max 100"),
        ({"random": {"log_bytes_max": 64_001}}, "log_bytes_max"),
        ({"read_ahead": {"pages_min": 65}}, "pages_min 65 is above pages_max 64"),
        ({"shrink": {"users": 2}}, "users"),
        ({"files": {"path": "a"}}, r"files: a list is expected; in TOML, several tables are written \[\["),
        ({"files": [file()]}, "at least one log file"),
        ({"files": [LOG]}, "at least one data file"),
        ({"files": [LOG, file(path="x/../y"), file(path="y")]}, "y is named twice"),
        ({"files": [LOG, file(path="")]}, "files 2.path"),
        ({"files": [LOG, file(size_bytes=8193)]}, "size_bytes 8193 is not a multiple of 8192"),
        ({"files": [LOG, file(size_bytes=0)]}, "files 2.size_bytes"),
        ({"files": [LOG, file(max_bytes="512M")]}, "size_bytes 1073741824 is above max_bytes 536870912"),
        ({"files": [LOG, file(increment_bytes="2G")]}, "increment_bytes 2147483648 is more than"),
        ({"files": [LOG, file(shrinkable=True)]}, "shrinkable needs increment_bytes"),
        ({"files": [LOG, file(max_bytes="33T")]}, "at most 32 TiB"),
        ({"files": [file(), file(path="log", log=True, size_bytes="3T")]}, "at most 2 TiB"),
    ],
)
def test_what_contradicts_itself_is_refused(data: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        INTEGRITY_KIND.load_plan(data, source="plan x")

    assert str(error.value).startswith("plan x: ")
    assert "\n" not in str(error.value)


def test_files_at_the_limit_are_accepted() -> None:
    data = DatabaseFile(path="a", size_bytes=32 << 40)
    log = DatabaseFile(path="l", size_bytes=1 << 40, max_bytes=2 << 40, log=True)

    assert IntegrityPlan(files=(data, log)).files[1].most_bytes == 2 << 40


class TestPresets:
    def test_they_are_the_variants_sqliosim_is_shipped_with(self) -> None:
        assert INTEGRITY_KIND.presets() == ["default", "hwcache", "nothrottle", "seqwrites", "sparse"]
        assert [INTEGRITY_KIND.preset(name).name for name in INTEGRITY_KIND.presets()] == INTEGRITY_KIND.presets()

    def test_default_is_what_a_plan_is_without_a_key(self) -> None:
        plan = INTEGRITY_KIND.preset("default")

        assert plan == IntegrityPlan()
        assert (plan.shrinkable, plan.shrink.users) == (True, 1)

    def test_hwcache_reads_next_to_nothing_from_small_files(self) -> None:
        plan = INTEGRITY_KIND.preset("hwcache")

        assert (plan.cache_hit_share, plan.audit.users, plan.read_ahead.users) == (1.0, 0, 0)
        assert (plan.random.users, plan.bulk_update.users, plan.size, plan.shrinkable) == (-1, -1, "100M", False)

    def test_nothrottle_waits_for_nothing(self) -> None:
        plan = INTEGRITY_KIND.preset("nothrottle")

        assert (plan.target_io_s, plan.audit.delay_s, plan.read_ahead.delay_s) == (1000.0, 0.01, 0.01)

    def test_seqwrites_is_bulk_updates_alone(self) -> None:
        plan = INTEGRITY_KIND.preset("seqwrites")
        bulk = plan.bulk_update

        assert (plan.random.users, plan.audit.users, plan.read_ahead.users, bulk.users) == (0, 0, 0, -1)
        assert (bulk.pages_min, bulk.pages_max, bulk.delay_s) == (600, 1000, 0.001)
        assert (plan.force_read_ahead, plan.shrinkable) == (False, False)

    def test_sparse_has_little_memory_and_an_io_for_each_page(self) -> None:
        plan = INTEGRITY_KIND.preset("sparse")

        assert (plan.memory_bytes, plan.cycles, plan.timing.stress_s, plan.target_io_s) == (32 << 20, 3, 600.0, 10.0)
        assert (plan.scatter_gather, plan.sparse, plan.shrinkable, plan.size) == (False, True, False, "1000M")

    def test_an_unknown_one_names_the_nearest_and_all(self) -> None:
        with pytest.raises(
            UsageError, match=r"unknown preset 'hwcach', did you mean 'hwcache'\?; known: default, .*sparse"
        ):
            INTEGRITY_KIND.preset("hwcach")
