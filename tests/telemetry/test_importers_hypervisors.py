"""What hypervisors record of their guests: histograms of vscsiStats, virtual disks and processors of esxtop."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.insight.diagnosis.diagnose import diagnose
from assay.insight.diagnosis.inputs import sources_of
from assay.telemetry.importers.importer import NotTaken, Options
from foreign_files import said_of, taken, values, written

SAMPLES = Path(__file__).parent / "imported"
FOREIGN = Path(__file__).parents[1] / "fixtures" / "foreign"


def at(text: str) -> int:
    """UTC nanoseconds."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


# vscsiStats


def test_histograms_of_vscsistats_are_since_the_snapshot_before(tmp_path: Path) -> None:
    found, rows = taken(SAMPLES / "vscsistats.csv", host="esx1", interval_ns=10**10)
    disk = "2099979:scsi0:0"
    # The collection goes on: 600, 1,200 and 1,800 reads are 600 in each interval.
    assert rows["esx1", disk, "read_ios_count"] == [(n * 10**10, 600.0) for n in (1, 2, 3)]
    assert values(rows, "esx1", disk, "read_latency_mean_ns") == [45e6] * 3
    assert values(rows, "esx1", disk, "read_latency_p99_most_ns") == [50e6] * 3
    # What is above the last limit has no bound.
    assert values(rows, "esx1", disk, "write_latency_mean_ns") == [150e6] * 3
    assert ("esx1", disk, "write_latency_p99_most_ns") not in rows
    assert values(rows, "esx1", disk, "write_size_mean_bytes") == [8192.0] * 3
    assert values(rows, "esx1", disk, "queue_at_issue_mean_count") == [31.0] * 3
    assert values(rows, "esx1", "2099979:scsi0:1", "latency_mean_ns") == [400e3] * 3
    assert found.ignored["distance (in LBNs) between successive commands"] == "no use is made of it"
    with pytest.raises(NotTaken, match="--interval 10s"):
        taken(SAMPLES / "vscsistats.csv")
    # Set back after each snapshot, and with a line of the time before each.
    text = (SAMPLES / "vscsistats.csv").read_text()
    _, one, two, _ = re.split(r"(?=Histogram: IO lengths of commands,[^\n]*scsi0:0)", text)
    timed = "".join(f"{1614679200 + 10 * n}\n{own}" for n, own in enumerate((two, one, two)))
    _, rows = taken(written(tmp_path, timed), host="esx1")
    assert rows["esx1", disk, "read_ios_count"] == [
        (at("2021-03-02 10:00:10"), 600.0),
        (at("2021-03-02 10:00:20"), 1200.0),
    ]


def test_a_diagnosis_of_vscsistats_names_the_slow_virtual_disk(tmp_path: Path) -> None:
    blocks = re.split(r"(?=Histogram: IO lengths of commands,[^\n]*scsi0:0)", (SAMPLES / "vscsistats.csv").read_text())
    path = written(tmp_path, (blocks[1] + blocks[2]) * 10)
    state, causes, what = said_of(path, interval_ns=10**10)
    assert (state, causes[0]) == ("cause found", "slow-disk"), what
    assert "scsi0:0" in what


# Guests of a hypervisor


def test_a_virtual_disk_that_is_late_is_slow_storage_and_its_neighbour_is_not() -> None:
    state, causes, what = said_of(FOREIGN / "esxtop-two-disks.csv")
    assert (state, causes[0]) == ("cause found", "slow-disk"), what
    assert "db01:scsi0:1: reads take: 60.0 ms" in what


def test_a_guest_is_judged_by_the_mean_of_its_processors(tmp_path: Path) -> None:
    """One full virtual processor of two is no guest that has used all that it has."""
    columns = {"Group Cpu(7:db01)\\% Used": 102, "Group Cpu(7:db01)\\% Ready": 4}
    columns |= {f"Vcpu(7:db01:{n}:vmx-vcpu-{n})\\% Used": used for n, used in ((0, 100), (1, 2))}
    head = ",".join(f'"\\\\esx1\\{name}"' for name in columns)
    lines = [f'"(PDH-CSV 4.0) (UTC)(0)",{head}']
    for n in range(30):
        cells = ",".join(f'"{value}"' for value in columns.values())
        lines.append(f'"03/02/2021 10:{n // 6:02d}:{n % 6}0",{cells}')
    path = written(tmp_path, "\n".join(lines))
    state, causes, _ = said_of(path)
    assert (state, causes) == ("not judged", [])
    found = diagnose(sources_of([path], Options()).sources)
    cell = next(one for one in found.cells if (one.tier, one.resource) == ("hypervisor", "cpu"))
    assert {one.measure.text for one in cell.judged} == {
        "db01 uses its processors", "db01 is ready and gets no processor",
    }  # fmt: skip


@pytest.mark.parametrize(("used", "is_bad"), [(90, False), (99.5, True)])
def test_a_guest_that_uses_all_it_has_now_and_then_is_well(tmp_path: Path, used: float, is_bad: bool) -> None:
    """Its use jumps by a tenth: at 90 % it is beyond the threshold in each fifth step."""
    dice = random.Random(15)
    lines = [
        '"(PDH-CSV 4.0) (UTC)(0)","\\\\esx1\\Group Cpu(7:db01)\\% Used","\\\\esx1\\Vcpu(7:db01:1:vmx-vcpu-0)\\% Ready"'
    ]
    for n in range(60):
        share = min(used * dice.uniform(0.9, 1.1) if not is_bad else used, 100)
        lines.append(f'"03/02/2021 10:{n // 6:02d}:{n % 6}0","{share:.2f}","1"')
    found = diagnose(sources_of([written(tmp_path, "\n".join(lines))], Options()).sources)
    cell = next(one for one in found.cells if (one.tier, one.resource) == ("hypervisor", "cpu"))
    assert cell.is_bad == is_bad
