"""How long a rebuild takes, against what disks can do at best."""

from __future__ import annotations

import pytest
from small_array import small

from assay.base.errors import UsageError
from assay.insight.calibration.rebuild import rebuild_hours


def hours(**options: str) -> float:
    return rebuild_hours(small(**{"disk.capacity": "600GB", "volumes": "1", **options}))


@pytest.mark.parametrize("raid", ["10", "6"])
def test_no_sooner_than_a_disk_can_be_written_and_not_for_days(raid: str) -> None:
    mean_bytes_per_s = (160e6 + 121.6e6) / 2
    at_best = 600e9 / mean_bytes_per_s / 3600

    found = hours(raid=raid)

    assert at_best <= found < 20 * at_best


def test_twice_the_disk_takes_twice_as_long() -> None:
    assert hours(**{"disk.capacity": "1200GB"}) == pytest.approx(2 * hours(), rel=0.1)


def test_fewer_chunks_under_way_take_longer() -> None:
    assert hours(**{"rebuild.depth": "1"}) > 1.2 * hours(**{"rebuild.depth": "8"})


def test_slow_inner_tracks_count() -> None:
    slow = hours(**{"disk.rate_inner": "40MB/s"})

    # The rate of the outermost rows is scaled by the mean over the platter.
    assert slow / hours() == pytest.approx((1 + 121.6 / 160) / (1 + 40 / 160), rel=0.1)


def test_hours_do_not_depend_on_the_volumes() -> None:
    assert hours(volumes="4") == pytest.approx(hours(volumes="1"), rel=0.1)


def test_a_policy_without_redundancy_is_never_rebuilt() -> None:
    from assay.targets.arrays.model.configuration import configure

    with pytest.raises(UsageError, match="RAID 0 does not outlive"):
        rebuild_hours(configure("sata-jbod", {"raid": "0", "volumes": "1"}))
