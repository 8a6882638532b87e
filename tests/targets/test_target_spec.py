"""What users may write for a target, and what it is understood as."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import AssayError, UsageError
from assay.targets.files.spec import NULL_OPTIONS, parse_targets


def names(*paths: str, volumes: list[str] | None = None) -> list[str]:
    return [spec.name for spec in parse_targets(paths, volumes=volumes or [])]


def test_a_path_is_a_data_file_named_by_its_file_name(tmp_path: Path) -> None:
    (spec,) = parse_targets([str(tmp_path / "db.dat")])

    assert (spec.name, spec.kind, spec.role, spec.path) == ("db.dat", "file", "data", tmp_path / "db.dat")
    assert (spec.size_bytes, spec.size_rule, spec.options) == (None, None, {})


def test_the_scheme_file_says_the_same_and_allows_any_name(tmp_path: Path) -> None:
    assert parse_targets([f"file:{tmp_path}/f"]) == parse_targets([f"{tmp_path}/f"])
    assert parse_targets([f"file:{tmp_path}/model:x"])[0].name == "model:x"


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert parse_targets(["f"])[0].path == tmp_path / "f"


@pytest.mark.parametrize(
    ("role", "file_name"), [("data", "assay.dat"), ("log", "assay-log.dat"), ("tempdb", "assay-tempdb.dat")]
)
def test_a_folder_stands_for_a_file_in_it(tmp_path: Path, role: str, file_name: str) -> None:
    (spec,) = parse_targets([], volumes=[f"{role}={tmp_path}"])

    assert (spec.path, spec.role) == (tmp_path / file_name, role)


def test_a_trailing_slash_means_a_folder_that_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder; create it"):
        parse_targets([f"{tmp_path}/missing/"])


def test_a_name_below_dev_is_a_device_even_if_missing_but_shared_memory_is_not() -> None:
    assert [spec.kind for spec in parse_targets(["/dev/no-such-disk", "/dev/shm/assay-none"])] == ["device", "file"]


def test_names_are_unique_and_short(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()

    assert names(f"{tmp_path}/a", f"{tmp_path}/b") == ["a-assay.dat", "b-assay.dat"]
    assert names("/srv/x/f", "/mnt/x/f") == ["x-f", "x-f-2"]
    assert names("null:", "null:") == ["null", "null-2"]
    assert names("/srv/f", volumes=["log=/srv/f"]) == ["f", "f-log"]


def test_volumes_carry_roles_and_a_repeated_role_is_one_more_volume() -> None:
    specs = parse_targets([], volumes=["data=/a/d1,log=/b/l", "data=/a/d2,tempdb=/c/t"])

    assert [(spec.role, spec.name) for spec in specs] == [
        ("data", "d1"), ("log", "l"), ("data", "d2"), ("tempdb", "t")
    ]  # fmt: skip


def test_roles_may_share_one_path() -> None:
    specs = parse_targets([], volumes=["data=/a/f,log=/a/f"])

    assert {spec.path for spec in specs} == {Path("/a/f")}


def test_the_same_path_twice_is_an_error_however_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "f")

    with pytest.raises(UsageError, match="is given twice"):
        parse_targets([f"{tmp_path}/f", f"{tmp_path}/f"])
    with pytest.raises(UsageError, match=r"are the same.*give each path once"):
        parse_targets([f"{tmp_path}/f", f"{tmp_path}/link"])
    with pytest.raises(UsageError, match="for role log"):
        parse_targets([], volumes=["log=/a/f", "log=/a/f"])


def test_null_keeps_its_options_as_written() -> None:
    (spec,) = parse_targets(["null:?latency=200us&stall_at=3s&stall=1s&stall_every=10s&servers=8"])

    assert (spec.kind, spec.path) == ("null", None)
    assert spec.options == {
        "latency": "200us", "stall_at": "3s", "stall": "1s", "stall_every": "10s", "servers": "8"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("null:?latncy=1ms", r"no option 'latncy'; did you mean 'latency'\? accepted: latency, stall_at"),
        ("null:?zzz=1", r"no option 'zzz'; accepted: latency"),
        ("null:?latency", "'latency' needs a value"),
        ("null:?latency=", "'latency' needs a value"),
        ("null:?latency=1ms&latency=2ms", "given twice"),
        ("null:?latency=1parsec", "unknown unit 'parsec'"),
        ("null:?servers=0", "not a whole number from 1"),
        ("null:?stall_at=1s", "'stall_at' needs 'stall'"),
        ("null:latency=1ms", "only options may follow"),
        ("nul:", r"unknown kind; did you mean null:\?"),
        ("nonsense:x", "unknown kind; accepted: PATH, file:PATH"),
        ("file:", "not a path"),
        ("", "not a path"),
    ],
)
def test_what_is_not_understood_is_named_with_what_is_accepted(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_targets([text])


class TestFaulty:
    def test_it_is_a_file_with_faults(self, tmp_path: Path) -> None:
        (spec,) = parse_targets([f"faulty:{tmp_path}/f?torn=1e-5&seed=7&long_io_delay=20s"])

        assert (spec.name, spec.kind, spec.path) == ("f", "faulty", tmp_path / "f")
        assert spec.options == {"torn": "1e-5", "seed": "7", "long_io_delay": "20s"}

    def test_without_options_it_injects_nothing(self, tmp_path: Path) -> None:
        assert parse_targets([f"faulty:{tmp_path}/f"])[0].options == {}

    def test_a_folder_stands_for_a_file_in_it_as_elsewhere(self, tmp_path: Path) -> None:
        specs = parse_targets([f"faulty:{tmp_path}?lost=0.1"], with_log=True)

        assert [(spec.path, spec.role, spec.options) for spec in specs] == [
            (tmp_path / "assay.dat", "data", {"lost": "0.1"}),
            (tmp_path / "assay-log.dat", "log", {"lost": "0.1"}),
        ]

    def test_options_belong_to_the_last_question_mark(self, tmp_path: Path) -> None:
        assert parse_targets([f"faulty:{tmp_path}/what?no?torn=0.5"])[0].path == tmp_path / "what?no"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ("trn=1e-5", r"faulty: has no option 'trn'; did you mean 'torn'\? accepted: torn, lost"),
            ("zzz=1", "faulty: has no option 'zzz'; accepted: torn"),
            ("torn", "'torn' needs a value: chance per I/O, such as 1e-5"),
            ("torn=0.1&torn=0.2", "given twice"),
            ("torn=often", "'torn': 'often' is not a chance from 0 to 1"),
            ("torn=1.5", "'torn': '1.5' is not a chance from 0 to 1"),
            ("torn=-0.1", "'torn': '-0.1' is not a chance from 0 to 1"),
            ("torn=nan", "'torn': 'nan' is not a chance from 0 to 1"),
            ("torn=0.7&lost=0.4", r"0.7 \+ 0.4 is above 1; an I/O has one fault at most"),
            ("seed=x", "'seed': 'x' is not a whole number from 0"),
            ("seed=-1", "'seed': '-1' is not a whole number from 0"),
            ("seed=9223372036854775808", "is not a whole number from 0"),
            ("long_io_delay=3parsecs", "'long_io_delay': unknown unit 'parsecs'"),
        ],
    )
    def test_what_is_not_understood_is_named_with_what_is_accepted(
        self, tmp_path: Path, options: str, message: str
    ) -> None:
        with pytest.raises(UsageError, match=message):
            parse_targets([f"faulty:{tmp_path}/f?{options}"])

    def test_a_device_is_refused(self) -> None:
        with pytest.raises(UsageError, match="stores in a file, and /dev/no-such-disk is a device"):
            parse_targets(["faulty:/dev/no-such-disk?torn=0.1"])

    def test_chances_up_to_1_together_are_accepted(self, tmp_path: Path) -> None:
        assert parse_targets([f"faulty:{tmp_path}/f?torn=0.5&lost=0.5"])[0].options == {"torn": "0.5", "lost": "0.5"}


class TestFolderWithALog:
    def test_the_first_folder_has_a_log_as_well(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()

        specs = parse_targets([f"{tmp_path}/a", f"{tmp_path}/b"], with_log=True)

        assert [(str(spec.path.relative_to(tmp_path)), spec.role) for spec in specs if spec.path] == [
            ("a/assay.dat", "data"), ("b/assay.dat", "data"), ("a/assay-log.dat", "log")
        ]  # fmt: skip

    def test_a_file_has_none(self, tmp_path: Path) -> None:
        assert [spec.role for spec in parse_targets([f"{tmp_path}/f"], with_log=True)] == ["data"]

    def test_a_log_that_was_named_is_the_only_one(self, tmp_path: Path) -> None:
        specs = parse_targets([str(tmp_path)], volumes=[f"log={tmp_path}/l"], with_log=True)

        assert [(spec.name, spec.role) for spec in specs] == [("assay.dat", "data"), ("l", "log")]


def test_the_folder_of_a_user_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="no such user's folder"):
        parse_targets(["~no-such-user-here/f"])


@pytest.mark.parametrize("scheme", ["embedded", "postgresql", "mariadb", "mysql", "mssql", "duckdb", "spark"])
def test_databases_are_no_storage_and_passwords_are_not_repeated(scheme: str) -> None:
    with pytest.raises(UsageError, match=f"{scheme}:... is a database, not storage; `assay --help` lists") as error:
        parse_targets([f"{scheme}://user:hunter2@host/db?password=hunter2"])
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ("logs=/a", r"unknown role 'logs'; did you mean 'log'\? accepted: data, log, tempdb"),
        ("data=/a,/b", "'/b' has no role"),
        ("data=", "data has no path"),
    ],
)
def test_a_wrong_volume_says_what_is_accepted(volume: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_targets([], volumes=[volume])


def test_nothing_named_is_an_error() -> None:
    with pytest.raises(UsageError, match="no target: give a file"):
        parse_targets([])


def test_one_size_is_for_each_volume_and_sizes_by_role_for_theirs() -> None:
    volumes = ["data=/a/d,log=/a/l,tempdb=/a/t"]

    assert [spec.size_bytes for spec in parse_targets([], volumes=volumes, sizes="1G")] == [2**30] * 3
    by_role = parse_targets([], volumes=volumes, sizes="data=2x-cache,log=64M")
    assert [(spec.size_bytes, spec.size_rule) for spec in by_role] == [(None, "2x-cache"), (2**26, None), (None, None)]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("0", "at least one block"),
        ("3x-cache", "unknown rule; accepted: a size such as 10G, or 2x-cache"),
        ("log=1G", "log is not the role of any volume"),
        ("data=1G,data=2G", "data is given twice"),
        ("dta=1G", "did you mean 'data'"),
        ("data=", "data has no size"),
    ],
)
def test_a_wrong_size_says_so(sizes: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_targets(["/a/f"], sizes=sizes)


@given(st.text(max_size=60), st.sampled_from(["", "null:?", "file:", "data="]), st.sampled_from(sorted(NULL_OPTIONS)))
def test_any_text_is_understood_or_refused(text: str, start: str, option: str) -> None:
    for attempt in (f"{start}{text}", f"null:?{option}={text}"):
        for paths, volumes in (([attempt], []), ([], [attempt])):
            with suppress(AssayError):
                assert parse_targets(paths, volumes=volumes)
