"""A run folder of another's making: it directs no write out of itself, and whatever it holds is one clear line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from assay import _core
from assay.apps.cli.exporting import export_all
from assay.base.errors import AssayError, ExitCode, RunFolderError, UsageError
from assay.insight.compare import compare_runs
from assay.insight.differences import ComparedRun
from assay.record.load import load
from assay.record.points import current_points
from assay.record.run_folder import RunFolder
from assay.report import write_report
from assay.report.assemble import assemble
from assay.report.exports import EXPORTS, save_export
from assay.report.facts import load_facts
from assay.report.files import refuse_foreign, replace_file
from assay_command import command
from series_rows import batches_of

VICTIM = b"a file that nobody named\n"


def direction(count: int = 1000) -> dict[str, Any]:
    histogram = _core.Histogram()
    for number in range(count):
        histogram.record(100_000 + number)
    keys = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99_9": 99.9, "p99_99": 99.99}
    latency = {"mean": histogram.mean, **{key: histogram.percentile(at) for key, at in keys.items()}}
    return {
        "count": count, "iops": 200.0, "bytes_per_s": 200.0 * 8192, "histogram": histogram.to_base64(),
        "latency_ns": {**latency, "max": histogram.max},
    }  # fmt: skip


def point(number: int = 1) -> dict[str, Any]:
    side = direction()
    return {
        "id": f"p{number:04d}", "key": f"{number:064x}", "part": "custom", "repeat": 0, "purpose": "grid",
        "started_utc_ns": 1_795_169_710_000_000_000, "warmup_s": 1.0, "measured_s": 5.0, "ended_by": "steady",
        "workload": {"kind": "io", "name": "8 KiB random", "role": "data", "block_bytes": 8192, "read_share": 1.0,
                     "random_share": 1.0, "io_mode": "direct", "sync": "none", "sync_every": 1},
        "load": {"queue_depth": 8, "workers": 1, "outstanding": 8}, "read": side, "write": None, "total": side,
        "flush": None, "roles": {"data": {"read": side, "write": None, "total": side}},
        "volumes": [{"name": "f", "role": "data", "read": side, "write": None, "total": side}], "activities": [],
        "bursts": None, "service_latency_ns": None, "offered": None,
        "errors": {"count": 0, "kinds": {"EIO": 0}},
        "steady": {"reached": True, "window_s": 4.0, "slope_share": 0.01, "half_width_share": 0.02},
        "generator": {"cpu_share": 0.25, "schedule_lag_p99_ns": None, "clock_ns": 11, "saturated": False},
        "batches": {"seconds": 0.5, "read": {"iops": [200.0] * 9, "latency_mean_ns": [1e5] * 9}},
        "telemetry": {"cpu_share": 0.1}, "engine": {"backend": "threads", "features": [], "degraded": []},
        "limits": [{"limit": "read.mean<=20ms", "scope": "data/f", "value": 1e5, "unit": "ns", "met": True}],
    }  # fmt: skip


def manifest(target: Path) -> dict[str, Any]:
    plan = {"name": "custom", "activity": [{"queue_depth": 8}]}
    return {
        "status": "done", "command": ["profile", str(target)], "plan": plan,
        "parts": [{"name": "custom", "title": "Custom", "planned_s": 5.0, "spent_s": 6.0, "plan": plan}],
        "request": {"paths": [str(target)], "volumes": [], "size": "1M", "cache_size": None, "overwrite": [],
                    "yes_destroy": [], "size_most_bytes": 2**30, "database": False, "crash_journal": None,
                    "after_crash": None},
        "target": {"volumes": [{"name": "f", "path": str(target), "kind": "file", "role": "data",
                                "size_bytes": 2**20, "state": "fresh", "bytes_laid_out": 2**20,
                                "created_by_assay": True, "device": "vda", "device_stack": ["vda"], "queue": None}],
                   "cache_notice": ""},
        "host": {"hostname": "h", "cpu_count": 2, "memory_bytes": 2**30}, "build": {"version": "0.1.0"},
        "engine": {"backend": "threads", "features": [], "degraded": []}, "cache_span": None,
        "answers": [{"workload": point()["workload"], "part": "custom", "axis": "outstanding", "limits": [],
                     "point_ids": ["p0001"], "first_failing": None, "limited_by": "axis end",
                     "max": {"outstanding": 8, "iops": 200.0, "bytes_per_s": 1.6e6, "point_id": "p0001"},
                     "interval_95": [190.0, 210.0], "non_monotone": False}],
        "verdict": [{"question": "8 KiB", "limit": None, "value": 200.0, "unit": "iops", "met": None,
                     "meaning": "holds 200 IOPS", "point_id": "p0001"}],
        "integrity": None, "notices": [],
    }  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with RunFolder.create(tmp_path / "runs", "profile", manifest(tmp_path / "f")) as folder:
        folder.append_point(point(1))
        folder.append_point(point(2) | {"load": {"queue_depth": 16, "workers": 1, "outstanding": 16}})
    return folder.path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_bytes(VICTIM)
    return path


@contextmanager
def untouched(victim: Path) -> Iterator[None]:
    """What stands outside of the run folder is as it was, whatever happens."""
    before = victim.stat()
    yield
    assert victim.read_bytes() == VICTIM
    after = victim.stat()
    assert (after.st_mode, after.st_ino, after.st_mtime_ns) == (before.st_mode, before.st_ino, before.st_mtime_ns)


def said(error: BaseException) -> str:
    assert "\n" not in str(error)
    assert len(str(error)) < 600
    return str(error)


# Writing


@pytest.mark.parametrize("name", [".lock", "points.jsonl"])
@pytest.mark.parametrize("plant", ["link", "hard link", "pipe", "folder"])
def test_what_stands_in_place_of_a_file_that_is_kept_open_is_refused(
    run: Path, victim: Path, name: str, plant: str
) -> None:
    (run / name).unlink()
    planted(plant, run / name, victim)
    with untouched(victim), RunFolder.open(run) as folder:
        with pytest.raises((RunFolderError, AssayError)) as caught:
            folder.append_point(point(3))
        assert name in said(caught.value)


def planted(plant: str, path: Path, victim: Path) -> None:
    if plant == "link":
        path.symlink_to(victim)
    elif plant == "hard link":
        os.link(victim, path)
    elif plant == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()


def test_a_link_to_nothing_makes_no_file_where_it_leads(run: Path, tmp_path: Path) -> None:
    (run / ".lock").unlink()
    (run / ".lock").symlink_to(tmp_path / "new")
    with RunFolder.open(run) as folder, pytest.raises(RunFolderError, match=r"\.lock cannot be written"):
        folder.lock()
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("plant", ["link", "hard link", "pipe"])
def test_files_that_are_replaced_are_made_anew(run: Path, victim: Path, plant: str) -> None:
    """Also the names that earlier versions wrote to on the way."""
    for name in ("run.json.part", "series.parquet.part", "report.html", "points.csv", "fio.json", "openmetrics.txt"):
        planted(plant, run / name, victim)
    with untouched(victim), RunFolder.open(run) as folder:
        folder.update(notices=["again"])
        write_report(run, pdf=False)
        for name in EXPORTS:
            save_export(name, folder.manifest, folder.points(), run)
        writer = folder.series_writer()
        writer.write(batches_of([series_row()]))
        writer.close_segment("p0001")
        writer.compact()
    assert (run / "report.html").read_text().startswith("<!DOCTYPE")
    assert RunFolder.open(run).manifest["notices"] == ["again"]


def series_row() -> dict[str, Any]:
    texts = {"clock": "wall", "tier": "client", "host": "h", "source": "assay", "entity": "f", "role": "data"}
    return texts | {"t_ns": 1, "interval_ns": 1, "metric": "read_ios_count", "kind": "delta", "value": 1.0}


@pytest.mark.parametrize("name", ["series", "data-8k-randread"])
def test_a_folder_that_is_a_link_is_not_written_into(run: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (run / name).symlink_to(outside)
    writes = {
        "series": lambda folder: folder.series_writer().write(batches_of([series_row()])),
        "data-8k-randread": lambda folder: save_export("fio-json", folder.manifest, folder.points(), run),
    }
    with RunFolder.open(run) as folder, pytest.raises(AssayError) as caught:
        writes[name](folder)
    assert name in said(caught.value)
    assert list(outside.iterdir()) == []


def test_a_run_folder_that_is_exchanged_while_it_is_held_is_not_left(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with RunFolder.open(run) as folder:
        folder.lock()
        run.rename(tmp_path / "moved")
        run.symlink_to(other)
        folder.update(notices=["held"])
        folder.append_point(point(3))
    assert list(other.iterdir()) == []
    assert RunFolder.open(tmp_path / "moved").manifest["notices"] == ["held"]


@pytest.mark.parametrize("depth", ["../../../../tmp/x", "8/../..", "", 1e300, -1])
@pytest.mark.parametrize("key", ["queue_depth", "workers", "outstanding"])
def test_no_number_of_a_load_is_a_path(run: Path, key: str, depth: object) -> None:
    edit(run, "points.jsonl", f"load.{key}", depth)
    with RunFolder.open(run) as folder, pytest.raises(RunFolderError, match=rf"points\.jsonl line 1: load\.{key}: "):
        folder.points()


def test_names_of_exports_stay_in_their_folder(tmp_path: Path) -> None:
    asked = point(1)
    asked["workload"] |= {"role": "../../up", "name": "../../../etc/x", "activities": [
        {**asked["workload"], "name": "../../a", "load": asked["load"]}]}  # fmt: skip
    asked["activities"] = [{"name": "../../a", "role": "data", "read": direction(), "write": None,
                            "total": direction()}]  # fmt: skip
    again = asked | {"id": "p0009"}
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    for path in save_export("fio-json", {}, [point(1), asked, again], deep):
        assert path.resolve().is_relative_to(deep)
    assert [found.name for found in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("point_id", ["../p1", "p1/../../x", "p", "", "x" * 300, "p1\n"])
def test_a_point_s_id_is_a_counter(run: Path, point_id: str) -> None:
    edit(run, "points.jsonl", "id", point_id)
    with pytest.raises(RunFolderError, match=r"points\.jsonl line 1: id: "):
        load(run)


# Reading


LIKE_THE_MANIFEST = pytest.mark.slow(reason="opened as run.json is")


@pytest.mark.parametrize(
    "name",
    [
        "run.json",
        pytest.param("points.jsonl", marks=LIKE_THE_MANIFEST),
        pytest.param("series.parquet", marks=LIKE_THE_MANIFEST),
    ],
)
def test_a_pipe_is_not_waited_for(run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    process = subprocess.Popen(command("report", run, "--no-html", "--no-pdf", "--export", "csv"),
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    try:
        _, complaint = process.communicate(timeout=60)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    if name == "series.parquet":
        # Nobody asked for the series.
        assert process.returncode == 0
        with pytest.raises(RunFolderError, match=r"series\.parquet cannot be read: is not a regular file"):
            RunFolder.open(run).series()
    else:
        assert (process.returncode, complaint.count("\n")) == (2, 1)
        assert name in complaint


@pytest.mark.parametrize("name", ["run.json", "points.jsonl"])
def test_a_file_that_is_a_link_is_not_read(run: Path, victim: Path, name: str) -> None:
    (run / name).unlink()
    (run / name).symlink_to(victim)
    with pytest.raises(RunFolderError, match="it is a link"):
        RunFolder.open(run).points()


def test_files_beyond_every_size_are_refused_unread(run: Path) -> None:
    for name, size in (("points.jsonl", 5 * 2**30), ("run.json", 65 * 2**20)):
        before = (run / name).read_bytes()
        os.truncate(run / name, size)
        with pytest.raises(RunFolderError, match="is larger than"):
            RunFolder.open(run).points()
        (run / name).write_bytes(before)
    (run / "points.jsonl").write_bytes(b" " * 17 * 2**20)
    with pytest.raises(RunFolderError, match=r"line 1 is damaged: it is longer than"):
        RunFolder.open(run).points()


@pytest.mark.parametrize(
    "text", ['{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', "[" * 10**6, '{"a": 1' + "0" * 5000 + "}"]
)
def test_json_that_only_python_takes_is_damaged(run: Path, text: str) -> None:
    (run / "run.json").write_text(text)
    with pytest.raises(RunFolderError, match="is damaged") as caught:
        RunFolder.open(run)
    said(caught.value)


WRONG: list[tuple[str, str, object]] = [
    ("run.json", "schema_version", True),
    ("run.json", "schema_version", [1]),
    ("run.json", "run_id", {"a": 1}),
    ("run.json", "status", "ended"),
    ("run.json", "started_utc_ns", "now"),
    ("run.json", "ended_utc_ns", 10**30),
    ("run.json", "command", "profile"),
    ("run.json", "parts", {"name": "custom"}),
    ("run.json", "parts.0.name", None),
    ("run.json", "parts.0.planned_s", [5]),
    ("run.json", "parts.0.spent_s", "6"),
    ("run.json", "request.paths", "/etc/passwd"),
    ("run.json", "request.paths.0", 7),
    ("run.json", "request.overwrite", {"f": True}),
    ("run.json", "target", []),
    ("run.json", "target.volumes", {"f": {}}),
    ("run.json", "target.volumes.0.size_bytes", "1M"),
    ("run.json", "target.volumes.0.size_bytes", -1),
    ("run.json", "target.volumes.0.device_stack", 5),
    ("run.json", "host.memory_bytes", "much"),
    ("run.json", "engine.features", "none"),
    ("run.json", "answers", 5),
    ("run.json", "answers.0.max", [1]),
    ("run.json", "answers.0.max.iops", "200"),
    ("run.json", "answers.0.workload", None),
    ("run.json", "answers.0.interval_95", [1.0]),
    ("run.json", "verdict.0.value", "200"),
    ("run.json", "verdict.0.met", 1),
    ("run.json", "notices", "one"),
    ("run.json", "notices.0", 3),
    ("run.json", "integrity", {"findings": {"torn": "1"}}),
    ("run.json", "oltp", {"conditions": [{"id": 1}]}),
    ("run.json", "study", {"title": "S"}),
    ("run.json", "cache_span", {"steps": [5]}),
    ("points.jsonl", "workload", "8 KiB"),
    ("points.jsonl", "workload.block_bytes", "8192"),
    ("points.jsonl", "workload.block_bytes", {"../x": 1.0}),
    ("points.jsonl", "workload.read_share", 7),
    ("points.jsonl", "workload.activities", {"name": "a"}),
    ("points.jsonl", "load", None),
    ("points.jsonl", "load.rate", "5000"),
    ("points.jsonl", "total", [1]),
    ("points.jsonl", "total.iops", "200"),
    ("points.jsonl", "total.iops", -5),
    ("points.jsonl", "total.latency_ns", 5),
    ("points.jsonl", "total.latency_ns.mean", "5"),
    ("points.jsonl", "read.count", 1.5),
    ("points.jsonl", "read.histogram", 5),
    ("points.jsonl", "volumes", {"f": 1}),
    ("points.jsonl", "limits", [["read.mean<=20ms", True]]),
    ("points.jsonl", "limits.0.met", "yes"),
    ("points.jsonl", "errors", 0),
    ("points.jsonl", "errors.count", "0"),
    ("points.jsonl", "steady", True),
    ("points.jsonl", "generator.saturated", "no"),
    ("points.jsonl", "batches.read.iops", [["1"]]),
    ("points.jsonl", "measured_s", "5"),
    ("points.jsonl", "telemetry", [0.1]),
]


def edit(run: Path, file: str, place: str, value: object) -> None:
    """Put a value into a document of the folder, of `points.jsonl` into the first."""
    first, *rest = (run / file).read_text().splitlines() if file == "points.jsonl" else [(run / file).read_text()]
    document = json.loads(first)
    *keys, last = [int(key) if key.isdecimal() else key for key in place.split(".")]
    found = document
    for key in keys:
        found = found[key]
    if isinstance(found, list) and len(found) <= last:
        found.append(value)
    else:
        found[last] = value
    (run / file).write_text("\n".join([json.dumps(document), *rest]) + "\n")


def reports(run: Path) -> None:
    assemble(load_facts(run))


def compares(run: Path) -> None:
    folder = RunFolder.open(run)
    compared = ComparedRun(folder.manifest, current_points(folder.whole_points()))
    compare_runs([compared, compared]).to_dict()


def exports(run: Path) -> None:
    folder = RunFolder.open(run)
    for export in EXPORTS.values():
        export(folder.manifest, current_points(folder.whole_points()))


def loads(run: Path) -> None:
    found = load(run)
    _ = found.points, found.answers, found.verdict


def goes_on(run: Path) -> None:
    RunFolder.open(run).check_goes_on()


READERS = (reports, compares, exports, loads, goes_on)


def test_a_folder_as_a_run_leaves_it_is_read_by_all(run: Path) -> None:
    for read in READERS:
        read(run)


@pytest.mark.parametrize(("file", "place", "value"), WRONG)
def test_a_wrong_type_is_one_line_of_file_place_and_kind(run: Path, file: str, place: str, value: object) -> None:
    edit(run, file, place, value)
    for read in READERS if file == "run.json" else READERS[1:]:
        with pytest.raises(RunFolderError) as caught:
            read(run)
        assert file in said(caught.value)
        assert caught.value.exit_code == ExitCode.USAGE
    if file == "points.jsonl":
        # A report says of points that cannot be read that it is without them.
        facts = load_facts(run)
        assemble(facts)
        assert "points.jsonl could not be read" in facts.unreadable[0]


MISSING = [
    ("workload", (compares, exports, goes_on)),
    ("load", (compares, exports, goes_on)),
    ("total", (compares, exports, goes_on)),
    ("errors", (goes_on,)),
    ("limits", (goes_on,)),
    ("key", (goes_on,)),
    ("engine", (goes_on,)),
    ("total.count", READERS[1:]),
    ("total.latency_ns", READERS[1:]),
    ("workload.read_share", (compares, exports)),
    ("id", READERS[1:]),
]


@pytest.mark.parametrize(("place", "readers"), MISSING)
def test_a_point_that_lacks_something_is_one_line(
    run: Path, place: str, readers: tuple[Callable[[Path], None], ...]
) -> None:
    first, *rest = (run / "points.jsonl").read_text().splitlines()
    document = json.loads(first)
    *keys, last = place.split(".")
    found = document
    for key in keys:
        found = found[key]
    del found[last]
    (run / "points.jsonl").write_text("\n".join([json.dumps(document), *rest]) + "\n")
    for read in readers:
        with pytest.raises(RunFolderError) as caught:
            read(run)
        assert last in said(caught.value)
    for read in set(READERS) - set(readers):
        # Whatever the others make of it, it is no fault of Assay's own.
        try:
            read(run)
        except AssayError as error:
            said(error)


@pytest.mark.parametrize("place", ["status", "parts", "target", "answers", "verdict", "notices", "parts.0.plan"])
def test_a_run_that_cannot_go_on_says_what_it_lacks(run: Path, place: str) -> None:
    edit(run, "run.json", place, None)
    with pytest.raises(RunFolderError) as caught:
        goes_on(run)
    assert place.split(".")[-1] in said(caught.value)


@pytest.mark.parametrize("histogram", ["", "x", "HISTFAAA", "HISTFAAAABx4nJNpmSzMwMBgyAABjFCaEUozMAAAF4kA5g=="])
def test_a_damaged_histogram_is_one_line(run: Path, histogram: str) -> None:
    edit(run, "points.jsonl", "total.histogram", histogram)
    folder = RunFolder.open(run)
    for name in ("fio-json", "openmetrics"):
        if not histogram:
            EXPORTS[name](folder.manifest, folder.points())
            continue
        edit(run, "points.jsonl", "read.histogram", histogram)
        with pytest.raises(RunFolderError, match="a histogram is damaged") as caught:
            EXPORTS[name](folder.manifest, folder.points())
        said(caught.value)


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_through_the_command_each_is_one_line_and_usage(run: Path) -> None:
    edit(run, "points.jsonl", "total.iops", "many")
    for arguments in (("compare", run, run), ("report", run, "--no-html", "--no-pdf", "--export", "csv"),
                      ("profile", "--resume", run)):  # fmt: skip
        done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert "points.jsonl line 1: total.iops: expected a number, found 'many'" in line


# Pages


def test_a_page_replaces_only_a_page_of_assay(run: Path, victim: Path, tmp_path: Path) -> None:
    page = tmp_path / "comparison.html"
    refuse_foreign(page, what="--html")
    folder = RunFolder.open(run)
    write_report(run, pdf=False)
    replace_file(page, (run / "report.html").read_bytes())
    refuse_foreign(page, what="--html")
    (tmp_path / "link").symlink_to(page)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for other in (victim, tmp_path / "link", tmp_path / "folder", tmp_path / "pipe", tmp_path / "no" / "where"):
        with pytest.raises(UsageError) as caught:
            refuse_foreign(other, what=f"--html {other}")
        assert str(other) in said(caught.value)
    folder.close()


def test_compare_leaves_a_file_of_the_user_alone(run: Path, victim: Path) -> None:
    done = subprocess.run(command("compare", run, run, "--html", victim), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert victim.read_bytes() == VICTIM
    assert "was not written by Assay" in done.stderr


def test_an_export_that_cannot_be_written_is_named_and_costs_no_other(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "fio.json").mkdir()
    (run / "fio.json" / "kept").write_text("")
    with RunFolder.open(run) as folder:
        assert export_all(["fio-json", "csv"], folder, ExitCode.DONE) is ExitCode.TARGET_FAILED
        assert export_all(["fio-json"], folder, ExitCode.INTEGRITY_FAILED) is ExitCode.INTEGRITY_FAILED
    told = capsys.readouterr().err
    assert f"cannot write {run / 'fio.json'}" in told
    assert f"exported {run / 'points.csv'}" in told
    assert not [path for path in run.iterdir() if path.name.endswith(".part")]
