"""Defaults from files and the environment: their order, limits of a foreign folder, and refusals."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.apps.cli.app import app
from assay.apps.cli.completing import TABLE
from assay.apps.cli.settings import NAME, SETTINGS, blamed, chosen, settings, variable_of
from assay.base.errors import UsageError
from own_settings import hide_settings

Writes = Callable[[str], Path]


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder below another one, and a user without a file."""
    folder = tmp_path / "project" / "below"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in SETTINGS:
        monkeypatch.delenv(variable_of(name), raising=False)
    return tmp_path


@pytest.fixture
def in_folder(nothing_set: Path) -> Writes:
    def write(text: str) -> Path:
        path = nothing_set / "project" / NAME
        path.write_text(text)
        return path

    return write


@pytest.fixture
def of_user(nothing_set: Path) -> Writes:
    def write(text: str) -> Path:
        path = nothing_set / "config" / "assay" / "config.toml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return path

    return write


def value(name: str, verb: str = "profile") -> object:
    held = chosen(settings()[0], verb).get(name)
    return None if held is None else held.value


def refused() -> str:
    with pytest.raises(UsageError) as error:
        settings()
    assert "\n" not in str(error.value)
    return str(error.value)


def planned(*arguments: str) -> tuple[list[str], str]:
    """The limits of a plan, and what was said beside it."""
    done = CliRunner().invoke(app, ["profile", "null:", "--dry-run", "--json", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return json.loads(done.stdout)["plan"]["limits"], done.stderr


def test_the_folder_gives_way_to_the_user_the_environment_and_what_is_typed(
    in_folder: Writes, of_user: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = in_folder('export = ["csv"]\n[profile]\nlimit = ["read.p99<=1ms"]')
    assert planned() == (["read.p99<=1ms"], f"note: {path} sets --export, --limit\n")
    assert planned("--limit", "read.p99<=4ms", "--export", "csv") == (["read.p99<=4ms"], "")
    of_user('export = ["fio-json"]\n[profile]\nlimit = ["read.p99<=2ms"]')
    assert planned() == (["read.p99<=2ms"], "")
    assert value("export") == ["fio-json"]
    monkeypatch.setenv("ASSAY_EXPORT", "openmetrics, csv")
    assert value("export") == ["openmetrics", "csv"]
    assert planned("--limit", "read.p99<=4ms")[0] == ["read.p99<=4ms"]


def test_isolated_reads_no_file_wherever_it_stands(in_folder: Writes, of_user: Writes) -> None:
    in_folder("nonsense = 1")
    of_user("= broken")
    assert planned("--isolated")[1] == ""
    assert CliRunner().invoke(app, ["--isolated", "config", "show"]).exit_code == 0
    assert CliRunner().invoke(app, ["profile", "--help"]).exit_code == 0
    assert isinstance(CliRunner().invoke(app, ["profile", "null:", "--dry-run"]).exception, UsageError)


def test_a_plan_that_is_named_wins_over_all_that_is_not_typed(in_folder: Writes, tmp_path: Path) -> None:
    in_folder('[profile]\nlimit = ["read.p99<=1ms"]')
    plan = tmp_path / "plan.toml"
    plan.write_text('limits = ["read.p99<=9ms"]\n[[activity]]\nblock_bytes = 8192\n')
    assert planned("--plan", str(plan)) == (["read.p99<=9ms"], "")


@pytest.mark.parametrize("typed", [["--duration", "3s"], ["--quick"], ["--duration=3s", "--rest", "1s"]])
def test_a_default_gives_way_to_all_that_says_something_else_of_the_same(of_user: Writes, typed: list[str]) -> None:
    of_user('[profile]\nmin-time = "10s"\nmax-time = "11s"\n')
    words = ["profile", "null:", "--block", "8K", "--queue-depth", "1", "--dry-run", "--json"]
    plans = [
        json.loads(CliRunner().invoke(app, [*before, *words, *typed], catch_exceptions=False).stdout)["plan"]
        for before in ([], ["--isolated"])
    ]
    assert plans[0] == plans[1]


def test_the_table_of_a_verb_is_for_that_verb(of_user: Writes) -> None:
    of_user('[profile]\nduration = "1s"\nreport = false\n[verify]\nduration = "2s"\n')
    assert (value("duration"), value("duration", "verify"), value("duration", "oltp")) == ("1s", "2s", None)
    assert (value("report"), value("report", "verify")) == (False, None)


def test_a_value_is_for_options_of_its_kind(of_user: Writes) -> None:
    """`--output` of `support` is an archive, of verbs that measure the parent of run folders."""
    of_user('output = "elsewhere"')
    with pytest.MonkeyPatch.context() as patch:
        packed: list[Path] = []
        patch.setattr("assay.report.support.pack_support", lambda _run, archive, **_: packed.append(archive))
        CliRunner().invoke(app, ["support", "nowhere"])
    assert [path.name for path in packed] == ["nowhere-support.tar.gz"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("report = true\nlimits = []", "line 2: unknown key 'limits'; did you mean 'limit'?"),
        ('password = "hunter2"', "line 1: unknown key 'password'; known: export, limit, no-color, report, smallest"),
        ("\nreport = 1", "line 2: report is true or false"),
        ('profile.limit = "cpu<80%"', 'limit is a list, such as ["csv"]'),
        ('limit = ["cpu<80%"]', "line 1: limit differs by verb; put it into a table, such as [profile]"),
        ('export = ["csv", "xml"]', "line 1: --export: unknown format 'xml'; accepted: csv, fio-json, openmetrics"),
        ("[profil]\nreport = true", "line 1: unknown table 'profil'; a table has the name of a verb"),
        ("[[profile]]\nreport = true", "line 1: unknown key 'profile'"),
        ("report = ", "(at end of document)"),
        ("export = [" + "['x']," * 3 + "]", "line 1: export is a list"),
        ("[profile]\nlimit = [" + '"cpu<80%",' * 60 + "]", "line 2: limit is too long"),
        ('smallest = "a\\u001b[31m"', "line 1: smallest is too long, or holds letters that are not printable"),
        ("x = " + "[" * 5000, "--isolated goes on without it"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(in_folder: Writes, text: str, said: str) -> None:
    path = in_folder(text)
    message = refused()
    assert message.startswith(str(path))
    assert said in message
    assert "hunter2" not in message


def test_a_value_that_a_verb_refuses_is_said_with_its_place(in_folder: Writes, of_user: Writes) -> None:
    path = in_folder('[profile]\nlimit = ["read.p98<=1ms"]')
    error = CliRunner().invoke(app, ["profile", "null:", "--dry-run"]).exception
    assert isinstance(error, UsageError)
    assert blamed(str(error)).startswith(f"{path}, line 2: ")
    of_user("[verify]\nrepeat = true")
    assert "line 2: repeat is a whole number" in refused()


def test_a_folder_sets_nothing_but_what_is_harmless(in_folder: Writes) -> None:
    """Somebody else may have written the file of a folder, and its user has not read it."""
    options = {row.split("\t")[1].lstrip("-") for row in Path(TABLE).read_text().splitlines() if "\t-" in row}
    harmless = {"export", "limit", "no-color", "report", "smallest"}
    assert {name for name, setting in SETTINGS.items() if setting.is_harmless} == harmless
    assert {"overwrite", "yes-destroy", "hosts", "plan", "output", "create", "volume", "database", "metrics"} < options
    for name in sorted(options - harmless):
        for table in ("", "[profile]\n"):
            in_folder(f'{table}{name} = "x"')
            assert re.search("unknown key|is for your own file", refused()), name


def test_a_user_can_set_no_target_and_no_permission(of_user: Writes) -> None:
    path = of_user("")
    for name in ("overwrite", "yes-destroy", "hosts", "cluster", "volume", "create", "database", "plan", "resume"):
        path.write_text(f"[profile]\n{name} = true")
        assert f"line 2: unknown key '{name}'" in refused()


class TestForeignFile:
    def test_a_link_is_not_followed(self, in_folder: Writes) -> None:
        path = in_folder("report = false")
        path.rename(path.with_name("other"))
        path.symlink_to("other")
        assert "cannot be read" in refused()

    def test_a_pipe_is_not_waited_for(self, in_folder: Writes) -> None:
        path = in_folder("")
        path.unlink()
        os.mkfifo(path)
        assert "cannot be read: is not a regular file" in refused()

    def test_a_large_one_is_not_read_to_its_end(self, in_folder: Writes) -> None:
        path = in_folder("")
        os.truncate(path, 1 << 40)
        assert "is larger than 64 KiB" in refused()

    def test_bytes_that_are_no_text(self, in_folder: Writes) -> None:
        in_folder("").write_bytes(b"report = '\xff'")
        assert "is no UTF-8 text" in refused()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    def test_that_of_another_user_is_not_read(self, in_folder: Writes) -> None:
        path = in_folder("nonsense = 1")
        os.chown(path, 4242, 4242)
        assert settings() == ([], [f"{path} is not read: it belongs to another user"])


def test_show_says_where_each_value_comes_from(
    in_folder: Writes, of_user: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = in_folder("\nreport = false")
    own = of_user('[profile]\nduration = "1s"')
    monkeypatch.setenv("ASSAY_QUIET", "yes")
    shown = json.loads(CliRunner().invoke(app, ["config", "show", "--json"]).stdout)
    assert shown["settings"] == [
        {"verb": None, "option": "report", "value": False, "from": f"{path}, line 2"},
        {"verb": None, "option": "quiet", "value": True, "from": "ASSAY_QUIET"},
        {"verb": "profile", "option": "duration", "value": "1s", "from": f"{own}, line 2"},
    ]
    text = CliRunner().invoke(app, ["config", "show"], env={"COLUMNS": "200"}).stdout
    assert text.startswith("3 defaults are set.\n")
    assert f"{path}, line 2" in text


def test_the_page_lists_what_may_be_set() -> None:
    text = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| ([a-z ]*) \| ([a-z ]*) \|", text, flags=re.MULTILINE)
    assert {name: (who, where) for name, who, where in rows} == {
        name: ("folder" if one.is_harmless else "user", "table of a verb" if one.of_verb else "anywhere")
        for name, one in SETTINGS.items()
    }


def test_other_tests_see_no_settings_of_who_runs_them(tmp_path: Path) -> None:
    file = tmp_path / ".config" / "assay" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("quiet = true\n")
    environ = {"HOME": str(tmp_path), "ASSAY_QUIET": "yes", "ASSAY_SEED": "7", "AI_AGENT": "1"}
    assert [one.name for one in settings(environ=environ)[0]] == ["quiet", "quiet"]
    hide_settings(environ)
    assert settings(environ=environ)[0] == []
    assert environ == {"HOME": str(tmp_path), "ASSAY_SEED": "7", "XDG_CONFIG_HOME": os.devnull}
