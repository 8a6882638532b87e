"""Forms of what the page may start: made of the commands' options, and nothing but these reaches a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.apps.cli.forms import start_settings
from assay.apps.ui.start_form import StartForms, StartSettings, WrongForm

VERBS = ["assess", "profile", "replay", "study-run", "verify"]


@pytest.fixture(scope="module")
def settings() -> StartSettings:
    return start_settings([Path("/data")])


@pytest.fixture
def forms(settings: StartSettings, tmp_path: Path) -> StartForms:
    return StartForms(settings, [tmp_path / "results", tmp_path / "others"])


def test_every_plan_has_a_form_made_of_its_own_options(settings: StartSettings) -> None:
    by_name = {form["name"]: form for form in settings["forms"]}
    assert sorted(by_name) == VERBS
    block = next(one for one in by_name["profile"]["fields"] if one["flag"] == "--block")
    assert block["help"].startswith("Block sizes")
    assert block["is_usual"]
    search = next(one for one in by_name["profile"]["fields"] if one["flag"] == "--search")
    assert [one["value"] for one in search["choices"]] == ["none", "queue-depth", "rate"]
    presets = next(one for one in by_name["verify"]["fields"] if one["flag"] == "--preset")
    assert "nothrottle" in [one["value"] for one in presets["choices"]]


def test_no_form_offers_a_path_a_host_or_what_allows_to_write_over(settings: StartSettings) -> None:
    flags = {field["flag"] for form in settings["forms"] for field in form["fields"]}
    assert not flags & {
        "--overwrite", "--yes-destroy", "--yes-format", "--yes-writes", "--purge", "--create", "--volume", "--hosts",
        "--cluster", "--shared", "--plan", "--events", "--need-from", "--config", "--map-path", "--trace", "--with",
        "--output", "--export", "--resume", "--crash-journal", "--after-crash", "--password-stdin", "--debug",
    }  # fmt: skip


def test_studies_are_those_on_models(settings: StartSettings) -> None:
    study = next(form for form in settings["forms"] if form["name"] == "study-run")
    names = [one["value"] for one in study["fields"][0]["choices"]]
    assert "raid-policy" in names
    assert "steady-state" not in names or "model" in str(study)
    assert study["fields"][1]["takes"] == ["model"]


def test_a_filled_form_makes_the_command(forms: StartForms, tmp_path: Path) -> None:
    values = {"path": "place:0", "block": " 8K ", "quick": True, "limit": ["read.p99<=2ms", "cpu<80%"], "title": ""}
    assert forms.command({"form": "profile", "values": values, "output": "1"}) == [
        "profile", "--quick", "--block=8K", "--limit=read.p99<=2ms", "--limit=cpu<80%", f"--output={tmp_path}/others",
        "--", "/data",
    ]  # fmt: skip
    values = {"name": "raid-policy", "target": "model:ps6100xv", "target_options": "raid=10&volumes=12"}
    assert forms.command({"form": "study-run", "values": values}) == [
        "study", "run", f"--output={tmp_path}/results", "--", "raid-policy", "model:ps6100xv?raid=10&volumes=12",
    ]  # fmt: skip


def test_traces_are_those_that_lie_in_the_folders(forms: StartForms, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.trace").write_bytes(b"")
    (tmp_path / "results" / "link.trace").symlink_to("/etc/passwd")
    replay = next(form for form in forms.shown() if form["name"] == "replay")
    (trace,) = replay["fields"][0]["choices"]
    assert trace["text"].endswith("/a.trace")
    command = forms.command({"form": "replay", "values": {"trace": trace["value"], "path": "null:"}})
    assert command[-2:] == [f"{tmp_path}/results/a.trace", "null:"]


@pytest.mark.parametrize(
    "filled",
    [
        None, [], "profile", {}, {"form": "profile"}, {"form": "profile", "values": []}, {"form": 1, "values": {}},
        {"form": "profile", "values": {"path": "null:"}, "output": "2"},
        {"form": "profile", "values": {"path": "null:"}, "output": "-1"},
        {"form": "profile", "values": {"path": "null:"}, "output": "/etc"},
        {"form": "profile", "values": {"path": "null:"}, "output": "\N{SUPERSCRIPT TWO}"},
        {"form": "profile", "values": {"path": "null:"}, "command": "sh"},
        {"form": "array", "values": {}}, {"form": "profile", "values": {}}, {"form": "__class__", "values": {}},
        {"form": "profile", "values": {"path": "/etc"}}, {"form": "profile", "values": {"path": "place:1"}},
        {"form": "profile", "values": {"path": "place:-1"}}, {"form": "profile", "values": {"path": "--debug"}},
        {"form": "profile", "values": {"path": ["null:", "/etc"]}}, {"form": "profile", "values": {"path": True}},
        {"form": "profile", "values": {"path": "null:", "overwrite": "/dev/sda"}},
        {"form": "profile", "values": {"path": "null:", "output": "/etc"}},
        {"form": "profile", "values": {"path": "null:", "plan": "/etc/passwd"}},
        {"form": "profile", "values": {"path": "null:", "block": "8K\n--overwrite=/dev/sda"}},
        {"form": "profile", "values": {"path": "null:", "block": "8K\0"}},
        {"form": "profile", "values": {"path": "null:", "block": "8" * 301}},
        {"form": "profile", "values": {"path": "null:", "block": ["8K"]}},
        {"form": "profile", "values": {"path": "null:", "block": {"a": 1}}},
        {"form": "profile", "values": {"path": "null:", "quick": "yes"}},
        {"form": "profile", "values": {"path": "null:", "limit": ["cpu<80%"] * 21}},
        {"form": "profile", "values": {"path": "null:", "limit": [["cpu<80%"]]}},
        {"form": "profile", "values": {"path": "null:", "search": "--debug"}},
        {"form": "profile", "values": {"path": "null:", "path_options": "raid=10"}},
        {"form": "profile", "values": {"path": "model:../x.toml"}},
        {"form": "profile", "values": {"path": "model:ps6100xv", "path_options": "drive=../x.toml"}},
        {"form": "profile", "values": {"path": "model:ps6100xv", "path_options": "drive=x.TOML"}},
        {"form": "profile", "values": {"path": "model:ps6100xv", "path_options": "raid=10 --debug"}},
        {"form": "profile", "values": {"path": "model:ps6100xv", "path_options": ["raid=10"]}},
        {"form": "study-run", "values": {"name": "./mine.toml"}},
        {"form": "study-run", "values": {"name": "raid-policy", "set_options": ["drive=/tmp/x.toml"]}},
        {"form": "study-run", "values": {"name": "raid-policy", "levels": ["drive=x.toml"]}},
        {"form": "study-run", "values": {"name": "raid-policy", "target": "/data"}},
        {"form": "replay", "values": {"trace": "/etc/passwd", "path": "null:"}},
    ],
)  # fmt: skip
def test_anything_else_makes_no_command(forms: StartForms, filled: object) -> None:
    with pytest.raises(WrongForm) as refused:
        forms.command(filled)
    assert "\n" not in str(refused.value)


def test_no_value_is_an_option_of_the_command(forms: StartForms) -> None:
    values = {"path": "null:", "block": "--overwrite=/dev/sda", "title": "--", "limit": ["--debug", "--"]}
    command = forms.command({"form": "profile", "values": values})
    options = command[1 : command.index("--")]
    assert [one.partition("=")[0] for one in options] == ["--block", "--limit", "--limit", "--title", "--output"]
    assert command[command.index("--") + 1 :] == ["null:"]
