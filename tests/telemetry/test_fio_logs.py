"""fio's logs become series of its jobs: windows as they are, single I/Os by the second."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.telemetry.importers.importer import NotTaken
from foreign_files import taken, values, written

SAMPLES = Path(__file__).parent / "imported"
START_NS = 1795460400 * 10**9


def single(*rows: tuple[int, int, int], block: int = 8192, more: str = ", 0") -> str:
    """Rows of single I/Os: time, value, direction."""
    return "".join(f"{at}, {value}, {direction}, {block}{more}\n" for at, value, direction in rows)


def test_windows_are_intervals_with_their_mean_and_their_longest() -> None:
    found, rows = taken(SAMPLES / "oltp_lat.1.log", start_ns=START_NS)
    assert (found.format, found.notes) == ("fio_log", [])
    assert rows["imported", "oltp.1", "read_latency_mean_ns"][0] == (START_NS + 10**9, 251_000.0)
    assert values(rows, "imported", "oltp.1", "write_latency_max_ns")[-1] == 90_012_000.0
    assert found.values_taken == 48
    assert found.ignored == {"offset, priority, issue time": "series have no such figures"}


def test_rates_of_windows_are_what_they_had() -> None:
    found, rows = taken(SAMPLES / "oltp_bw.1.log")
    read = rows["imported", "oltp.1", "read_bytes"]
    # 28,001 KiB/s for half a second; the fifth window is a millisecond longer.
    assert read[0] == (500 * 10**6, 28001 * 1024 * 0.5)
    assert read[4] == (2501 * 10**6, 28005 * 1024 * 0.501)
    assert found.notes == ["says times since its start alone, and so do its values (--start says when it was)"]


def test_single_ios_become_seconds(tmp_path: Path) -> None:
    ios = [(0, 100, 0), (400, 300, 0), (999, 500, 1), (1000, 900, 0)]
    _, rows = taken(written(tmp_path, single(*((at, 1000 * value, way) for at, value, way in ios)), "j_lat.3.log"))
    assert rows["imported", "j.3", "read_latency_mean_ns"] == [(10**9, 200e3), (2 * 10**9, 900e3)]
    assert rows["imported", "j.3", "read_latency_max_ns"] == [(10**9, 300e3), (2 * 10**9, 900e3)]
    assert rows["imported", "j.3", "write_latency_mean_ns"] == [(10**9, 500e3)]
    # Of single I/Os the rate of each says nothing; their blocks say what was moved, their number how many there were.
    _, rows = taken(written(tmp_path, single(*ios), "j_bw.3.log"))
    assert values(rows, "imported", "j.3", "read_bytes") == [16384.0, 8192.0]
    _, rows = taken(written(tmp_path, single(*((at, 1, way) for at, _, way in ios)), "j_iops.3.log"))
    assert values(rows, "imported", "j.3", "read_ios_count") == [2.0, 1.0]


def test_the_name_says_of_what_a_log_is(tmp_path: Path) -> None:
    text = single((500, 7000, 0), (1000, 9000, 0), block=0)
    for name, metric in (
        ("a_b_clat.1.log", "read_completion_latency_mean_ns"), ("a_b_slat.1.log", "read_submission_latency_mean_ns"),
        ("a_b_iops.log", "read_ios_count"),
    ):  # fmt: skip
        _, rows = taken(written(tmp_path, text, name))
        ((_, entity, found),) = rows
        assert (entity, found) == ("a_b" + (".1" if ".1" in name else ""), metric)
    with pytest.raises(NotTaken, match=r"its name does not say of what: NAME_bw\.1\.log"):
        taken(written(tmp_path, text, "log.txt"))


@pytest.mark.parametrize(
    ("value", "more", "mean_ns"),
    [(250, "", 250e3), (3_000_000, "", 3e6), (250, ", 0", 250.0), (50_000, ", 0", 50e3)],
)
def test_the_unit_of_a_latency_is_that_of_its_version(tmp_path: Path, value: int, more: str, mean_ns: float) -> None:
    """fio 2 wrote microseconds and four columns, fio 3 writes nanoseconds."""
    text = single((500, value, 0), (1000, value, 0), block=0, more=more)
    _, rows = taken(written(tmp_path, text, "j_lat.1.log"))
    assert values(rows, "imported", "j.1", "read_latency_mean_ns") == [mean_ns, mean_ns]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (single((500, 50_000, 0), block=0, more=""), "microseconds .fio 2. or nanoseconds .fio 3., as 50,000"),
        (single((500, 10, 0), (9000, 10, 0), (500, 10, 0)), "goes back in time: it holds several runs, or jobs"),
        (single((500, 10, 0), (500, 12, 0), block=0), "two values of reads at 500 ms: it holds several jobs"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_apart_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NotTaken, match=message):
        taken(written(tmp_path, text, "j_lat.1.log"))


@pytest.mark.parametrize("name", ["oltp_lat.1.log", "oltp_bw.1.log", "scan_clat.2.log"])
def test_every_value_is_taken_left_out_or_not_understood(tmp_path: Path, name: str) -> None:
    """A time, a direction and a block say of what the values of a row are."""
    lines = (SAMPLES / name).read_text().splitlines()
    found, _ = taken(SAMPLES / name)
    expected = sum(len(line.split(", ")) - 3 for line in lines)
    assert found.values_taken + found.values_left_out + found.values_unread == expected
    # A trim, a direction that there is not, a negative value, and what is no row at all.
    fields = lines[-1].split(", ")
    place = 3 if name.startswith("oltp_lat") else 2
    broken = ["x y z"]
    for change, at in (("2", place), ("7", place), ("-5", 1)):
        broken.append(", ".join(change if number == at else one for number, one in enumerate(fields)))
    found, _ = taken(written(tmp_path, "\n".join([*lines, *broken]) + "\n", name))
    expected += 1 + 3 * (len(fields) - 3)
    assert found.values_taken + found.values_left_out + found.values_unread == expected
    assert found.ignored["trims"] == "series have no trims"
    assert set(found.unread) == {"rows"}
