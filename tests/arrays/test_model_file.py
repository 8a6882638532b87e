"""Model files: what they hold, that every figure of the catalogue has a unit and an origin, and what is refused."""

from __future__ import annotations

import re
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.targets.arrays.model.kinds import BYTES, COUNT, RATE, SHARE, TIME, Kind, show_value
from assay.targets.arrays.model.model_file import ModelFile, catalogue_names, load_model, model_from_table, read_model
from assay.targets.arrays.model.parameters import ORIGINS, PARAMETERS, STRUCTURE

ROOT = Path(__file__).parents[2]


def table(name: str = "ps6100xv") -> dict[str, Any]:
    return tomllib.loads(load_model(name).text)


def changed(dotted: str, value: Any, name: str = "ps6100xv") -> dict[str, Any]:
    """The table of an array with one value replaced, or taken away by `...`."""
    data = table(name)
    inner = data
    *sections, key = dotted.split(".")
    for section in sections:
        inner = inner.setdefault(section, {})
    if value is ...:
        del inner[key]
    else:
        inner[key] = value
    return data


def complaint(data: dict[str, Any]) -> str:
    with pytest.raises(UsageError) as error:
        model_from_table(data, origin="mine.toml")
    assert "\n" not in str(error.value)
    assert "mine.toml" in str(error.value)
    return str(error.value)


SOURCED = {"from": "data sheet", "source": "maker"}


class TestCatalogue:
    def test_holds_the_arrays_of_the_studies_and_what_can_be_bought_by_class(self) -> None:
        def of(model_class: str) -> list[str]:
            return [name for name in catalogue_names() if load_model(name).model_class == model_class]

        assert of("study") == ["datrium-dvx", "fas2040", "fas3070", "ps3800xv", "ps6100xv", "ps6110x", "sata-jbod"]
        assert of("array") == ["afa-active", "afa-standby", "black-box"]
        centres = "cm7-r-3840 d5-p5336-61440 d7-p5520-1920 micron-7450-max-800 micron-7450-pro-960 micron-9550-max-6400"
        others = "pe8110-960 pm9a3-960 wd-dc-960 980-pro-1tb p41-plus-1tb sn850x-2tb nvme-mirror"
        assert of("drive") == sorted(f"{centres} {others} nvme-md nvme-md-parity nvme-raid".split())
        assert {name.partition("-")[0] for name in of("cloud")} == {"aws", "azure", "gcp"}

    @pytest.mark.parametrize("name", catalogue_names())
    def test_every_file_is_named_as_it_says_and_every_value_has_an_origin(self, name: str) -> None:
        model = load_model(name)

        assert model.name == name
        assert model.structure != "group" or model.default_raid in model.policies
        for dotted, parameter in model.parameters.items():
            assert parameter.from_ in ORIGINS, dotted
            assert len(parameter.source) > 3, dotted

    def test_values_are_in_base_units(self) -> None:
        parameters = load_model("ps6100xv").parameters

        assert parameters["disk.revolution"].value == 4_000_000
        assert parameters["disk.capacity"].value == 146_000_000_000
        assert parameters["disk.rate_outer"].value == 160e6
        assert parameters["links.port_rate"].value == 125e6
        assert parameters["group.free_share"].value == pytest.approx(0.05)
        assert parameters["raid.policy.50.set_disks"].value == 11
        assert (parameters["disk.revolution"].written, parameters["disk.revolution"].unit) == (4, "ms")

    def test_plus_minus_follows_from_the_origin_unless_stated(self) -> None:
        parameters = load_model("ps6100xv").parameters

        assert parameters["disk.seek_average"].plus_minus == ORIGINS["data sheet"]
        assert parameters["cache.destage_depth"].plus_minus == ORIGINS["assumed"]
        assert parameters["disk.reorder_weight"].plus_minus == 0.10
        assert parameters["cache.write_back"].plus_minus is None
        assert all(parameters[dotted].plus_minus == 0 for dotted in STRUCTURE if dotted in parameters)

    def test_an_unknown_array_names_the_nearest_and_all(self) -> None:
        with pytest.raises(
            UsageError, match=r"unknown array 'ps6100x'; did you mean 'ps6100xv'\? known: 980-pro-1tb, afa-active, "
        ):
            load_model("ps6100x")

    def test_a_path_is_what_has_a_slash_or_ends_in_toml(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.toml"
        path.write_text(load_model("fas3070").text)

        assert load_model(str(path)).parameters == load_model("fas3070").parameters
        assert load_model(str(path)).origin == str(path)
        for missing in (tmp_path / "none.toml", tmp_path, f"{tmp_path}/\0.toml", "~nobody-here/x.toml"):
            with pytest.raises(UsageError, match="model "):
                load_model(str(missing))


class TestRefusals:
    def test_unknown_section_and_parameter_with_the_nearest(self) -> None:
        assert "unknown section or key 'disc'; did you mean 'disk'?" in complaint(table() | {"disc": {}})
        message = complaint(changed("disk.seek_avg", {"value": 3, "unit": "ms", **SOURCED}))
        assert "unknown parameter 'disk.seek_avg'; did you mean 'seek_average'?" in message
        assert "did you mean 'value'?" in complaint(changed("disk.revolution.valu", 4))
        assert "did you mean 'set_disks'?" in complaint(changed("raid.policy.50.set_disk", {"value": 11, **SOURCED}))
        assert "raid.policy.51" in complaint(changed("raid.policy.51", {}))
        assert "links.under.icsi" in complaint(changed("links.under.icsi", {}))

    @pytest.mark.parametrize(
        ("dotted", "unit", "kind"),
        [
            ("disk.revolution", "MB", TIME),
            ("disk.capacity", "ms", BYTES),
            ("disk.rate_outer", "MB", RATE),
            ("raid.set_disks", "ms", COUNT),
            ("cache.dirty_low", "count", SHARE),
            ("links.port_rate", "Gbit", RATE),
        ],
    )
    def test_a_wrong_unit_names_the_kind_and_what_is_accepted(self, dotted: str, unit: str, kind: Kind) -> None:
        message = complaint(changed(dotted, {"value": 1, "unit": unit, **SOURCED}))

        assert f"{dotted} is a {kind.name}, and {unit!r} is no unit of it; accepted: {kind.accepted}" in message

    def test_a_missing_unit_and_one_too_many(self) -> None:
        assert "disk.revolution has no unit; it is a time" in complaint(
            changed("disk.revolution", {"value": 4, **SOURCED})
        )
        flag = {"value": True, "unit": "ms", **SOURCED}
        assert "cache.write_back is a truth value and has no unit" in complaint(changed("cache.write_back", flag))

    @pytest.mark.parametrize("key", ["from", "source"])
    def test_missing_provenance(self, key: str) -> None:
        assert f"disk.revolution has no provenance: give `{key}`" in complaint(changed(f"disk.revolution.{key}", ...))

    @pytest.mark.parametrize("origin", ["guessed", 3, ["fitted"]])
    def test_an_origin_that_is_none(self, origin: Any) -> None:
        assert "accepted: data sheet, published, fitted, assumed" in complaint(changed("disk.revolution.from", origin))

    @pytest.mark.parametrize("source", ["", "  ", 7, "two\nlines"])
    def test_a_source_that_says_nothing(self, source: Any) -> None:
        assert "disk.revolution.source says nothing" in complaint(changed("disk.revolution.source", source))

    @pytest.mark.parametrize(
        ("dotted", "value", "words"),
        [
            ("disk.revolution", {"value": 0, "unit": "ms"}, "outside 1 ms to"),
            ("disk.revolution", {"value": -4, "unit": "ms"}, "out of range"),
            ("disk.revolution", {"value": float("nan"), "unit": "ms"}, "out of range"),
            ("disk.revolution", {"value": "4", "unit": "ms"}, "'4' is no number"),
            ("disk.revolution", {"value": True, "unit": "ms"}, "True is no number"),
            ("disks.count", {"value": 2.5, "unit": "count"}, "not a whole number"),
            ("disk.usable", {"value": 1.2, "unit": "share"}, "outside 0.01 to 1"),
            ("disk.usable", {"value": 120, "unit": "%"}, "outside 0.01 to 1"),
            ("cache.size", {"value": 0, "unit": "B"}, "outside 1 MiB to 4 TiB"),
            ("cache.write_back", {"value": "yes"}, "accepted: true, false"),
            ("raid.partial_write", {"value": "write-hole"}, "accepted: read-modify, reconstruct, cheapest"),
        ],
    )
    def test_a_value_out_of_range(self, dotted: str, value: dict[str, Any], words: str) -> None:
        message = complaint(changed(dotted, value | SOURCED))

        assert dotted in message
        assert words in message

    @pytest.mark.parametrize("stated", [-0.1, 11, "much", True, float("nan")])
    def test_a_plus_minus_that_is_none(self, stated: Any) -> None:
        assert "disk.revolution.plus_minus" in complaint(changed("disk.revolution.plus_minus", stated))

    def test_what_is_left_out(self) -> None:
        assert "disk.seek_full is missing: seek from the first cylinder to the last" in complaint(
            changed("disk.seek_full", ...)
        )
        assert "[group] is missing" in complaint(changed("group", ...))
        assert "disk.revolution has no value" in complaint(changed("disk.revolution.value", ...))
        overhead = {"value": 1, "unit": "B", **SOURCED}
        assert "links.under.fcoe.payload is missing" in complaint(changed("links.under.fcoe", {"overhead": overhead}))

    def test_parameters_of_other_disks_and_layouts(self) -> None:
        assert "layout.block is for write-anywhere only, and layout.kind is in-place" in complaint(
            changed("layout.block", {"value": 4, "unit": "KiB", **SOURCED})
        )
        assert "disk.dies is for solid-state only" in complaint(
            changed("disk.dies", {"value": 4, "unit": "count", **SOURCED})
        )
        assert "disk.channels is for solid-state or station only" in complaint(
            changed("disk.channels", {"value": 4, "unit": "count", **SOURCED})
        )
        assert "disk.kind is 'tape'; accepted: mechanical, solid-state, station" in complaint(
            changed("disk.kind", "tape")
        )

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("name", "Mine!"), ("name", 3), ("title", ""), ("title", "a\nb"), ("policies", []), ("policies", ["7"]),
            ("policies", "10"), ("policies", [10]), ("default_raid", "60"), ("disk", 5), ("raid", []),
            ("calibration", 1), ("calibration", {"when": tomllib.loads("t = 2026-01-01")["t"]}),
            ("calibration", {"error": float("nan")}),
        ],
    )  # fmt: skip
    def test_plain_keys(self, key: str, value: Any) -> None:
        assert key in complaint(table() | {key: value})

    @pytest.mark.parametrize(
        "data", [b"\xff\xfe", b"not toml", b"a = " + b"[" * 5000, b"x = " + b"9" * 5000, b"#" * (2 << 20)]
    )
    def test_files_that_are_no_model(self, data: bytes) -> None:
        with pytest.raises(UsageError, match=r"model f\.toml: ") as error:
            read_model(data, origin="f.toml")
        assert "\n" not in str(error.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
TABLE = table()
PLACES = [dotted for dotted in PARAMETERS if dotted in load_model("ps6100xv").parameters]


def model_or_refusal(data: dict[str, Any]) -> ModelFile | None:
    try:
        return model_from_table(data, origin="f")
    except UsageError:
        return None


@given(data=st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_are_a_model_or_refused(data: bytes) -> None:
    with pytest.raises(UsageError):
        read_model(data, origin="f")


@given(
    place=st.sampled_from([*PLACES, "name", "policies", "raid.policy.50", "links.under.fcoe", "disk", "calibration"]),
    key=st.sampled_from(["", ".value", ".unit", ".from", ".source", ".plus_minus", ".other"]),
    value=VALUES,
)
def test_any_value_in_any_place_is_a_model_or_refused(place: str, key: str, value: Any) -> None:
    data = deepcopy(TABLE)
    inner: Any = data
    *sections, last = (place + key).split(".")
    for section in sections:
        inner = inner.setdefault(section, {}) if isinstance(inner, dict) else {}
    if isinstance(inner, dict):
        inner[last] = value
    model = model_or_refusal(data)
    if model is not None:
        for dotted, parameter in model.parameters.items():
            known = PARAMETERS.get(dotted)
            if known is not None:
                known.check(parameter.value)


@given(value=st.integers(0, 10**15), kind=st.sampled_from([TIME, BYTES, COUNT]))
def test_shown_values_read_back_as_nearly_the_same(value: int, kind: Kind) -> None:
    again, _, _ = kind.from_text(show_value(kind, value)) if kind is not COUNT else (float(f"{value:.6g}"), 0, "")

    assert again == pytest.approx(value, rel=1e-5, abs=1)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (TIME, "0.5ms", 500_000), (TIME, "3us", 3_000), (TIME, "1 s", 10**9), (BYTES, "64KiB", 65536),
        (BYTES, "2G", 2 << 30), (BYTES, "100GB", 10**11), (RATE, "1Gbit/s", 125e6), (RATE, "160MB/s", 160e6),
        (SHARE, "95%", 0.95), (SHARE, "0.4", 0.4), (COUNT, "16", 16),
    ],
)  # fmt: skip
def test_options_carry_their_unit(kind: Kind, text: str, value: float) -> None:
    assert kind.from_text(text)[0] == pytest.approx(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [(TIME, "4"), (TIME, "4MB"), (BYTES, "64"), (RATE, "1Gbit"), (COUNT, "two"), (SHARE, "-1"), (TIME, "1e400s")],
)  # fmt: skip
def test_options_of_another_kind_are_refused(kind: Kind, text: str) -> None:
    with pytest.raises(ValueError, match=r"accepted|out of range"):
        kind.from_text(text)


def test_the_documentation_lists_every_parameter_and_no_other() -> None:
    text = "".join(
        (ROOT / "docs" / name).read_text()
        for name in (
            "models.md",
            "models-flash.md",
            "models-host-flash.md",
            "model-files.md",
            "models-cloud.md",
            "calibration.md",
        )
    )
    tables = text[text.index("| parameter | unit of | meaning |") :]
    named = set(re.findall(r"`([a-z]+\.[a-z_]+)`", "\n".join(line for line in tables.splitlines() if line[:1] == "|")))

    # Kinds of disk and layout are plain text, and the rest of the tables speaks of calibration.
    assert set(PARAMETERS) <= named
    assert {
        name for name in named if name.partition(".")[0] in ("disks", "disk", "raid", "cache", "links", "group")
    } <= {
        *PARAMETERS,
        "disk.kind",
    }
