"""Progress of a point on all hosts together, and what the hosts do meanwhile."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from assay.base.progress import Gauge, HostLoad, Moment
from assay.fleet.from_agent import Shows, from_agent
from assay.fleet.moments import moment_of_all
from assay.fleet.wire import NotAMessage


def moment(iops: float, p99: float | None, host: str) -> Moment:
    return Moment(
        part="oltp", what="8 KiB", phase="measuring", left_s=1.0,
        gauges=(Gauge(name="iops", title="IOPS", value=iops, unit="iops"),),
        percentiles=(Gauge(name="read_p99_ns", title="read p99", value=p99, unit="ns"),),
        hosts=(HostLoad(name=host, cpu_share=0.5, devices=(("sda", 0.25),)),),
    )  # fmt: skip


def test_rates_add_up_and_the_highest_percentile_is_shown() -> None:
    found = moment_of_all([moment(100.0, 5e6, "a"), moment(50.0, None, "b"), moment(25.0, 7e6, "c")])
    assert found is not None
    assert [gauge.value for gauge in found.all_gauges] == [175.0, 7e6]
    assert [host.name for host in found.hosts] == ["a", "b", "c"]
    assert moment_of_all([]) is None


def told(**host: object) -> dict[str, object]:
    shown = {key: value for key, value in asdict(moment(1.0, 2.0, "")).items() if key != "hosts"}
    return json.loads(json.dumps({"shows": "progress", "text": "line", "moment": shown, "host": host or None}))  # type: ignore[no-any-return]


def test_an_agent_says_what_its_host_does() -> None:
    shows = from_agent(told(cpu_share=0.75, devices=[["sdb", 1.0]]), b"")
    assert isinstance(shows, Shows)
    assert shows.host is not None
    assert shows.moment is not None
    load = shows.host.load("db1")
    assert (load.name, load.cpu_share, load.devices[0][0]) == ("db1", 0.75, "sdb")
    assert shows.moment.moment([load]).hosts == [load]


@pytest.mark.parametrize("host", [{"cpu_share": "much", "devices": []}, {"cpu_share": 0.5, "devices": [["sda"]]}])
def test_what_no_host_says_is_refused(host: dict[str, object]) -> None:
    with pytest.raises(NotAMessage):
        from_agent(told(**host), b"")
