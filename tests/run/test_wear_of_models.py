"""What runs on modelled drives of flash say of wear and heat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.run.notices import notices_of
from assay.targets.arrays.model.configuration import configure
from assay.workloads.modelled import summarise_model
from assay_command import Bench
from series_rows import batches_of

HOT = "model:980-pro-1tb?volumes=1&state=fresh&disk.heat=2GB&disk.cooling_rate=100MB/s&disk.throttled=0.5"
ROW = {
    "t_ns": 150,
    "interval_ns": 100,
    "clock": "virtual",
    "tier": "storage",
    "host": "",
    "source": "model",
    "role": "",
}


def test_a_run_says_how_much_drives_were_sent_and_programmed_and_when_heat_slowed_them(bench: Bench) -> None:
    load = ("--block", "128K", "--read", "0", "--random", "0", "--queue-depth", "8", "--duration", "1s")

    ran = bench.assay("profile", HOT, *load, "--warmup", "1s", "--no-report", "-o", bench.results)

    assert ran.code == 0, ran.stderr
    (folder,) = Path(bench.results).iterdir()
    (point,) = [json.loads(line) for line in (folder / "points.jsonl").read_text().splitlines()]
    array = point["array"]
    assert array["drive_written_bytes"] == pytest.approx(point["write"]["bytes_per_s"] * point["measured_s"], rel=0.02)
    assert array["programmed_bytes"] / array["drive_written_bytes"] == pytest.approx(1.035, rel=0.01)
    # Two gigabytes are warm-up; afterwards the interface has half of its rate.
    assert array["throttled_share"] > 0.9
    assert "drive writes) and programmed" in ran.stdout
    assert "write amplification 1.0" in ran.stdout
    assert "the modelled drives throttled to cool down in p0001, for up to 100 % of the time" in ran.stdout


def test_disks_that_program_nothing_say_nothing_of_flash() -> None:
    rows = [ROW | {"entity": "member0/disk0", "metric": "write_bytes", "kind": "delta", "value": 5.0}]
    found = summarise_model(batches_of(rows), 100, 200, configure("ps6100xv"))
    assert (found["drive_written_bytes"], found["programmed_bytes"], found["throttled_share"]) == (None, None, None)
    assert notices_of([{"id": "p0001", "array": found}], {}) == []
