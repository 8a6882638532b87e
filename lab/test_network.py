"""Storage over a network: the kernel's iSCSI initiator on two paths, one of which delays and loses packets."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from assay.record.flight import read_recording
from lab.disks import Disk
from lab.machine import RECORDS, SHARE, Machine

MAP = "/dev/mapper/mp"
OUTPUT = ("--no-report", "--quiet", "--json", "-o", SHARE / "runs")
LOAD = (
    "--block", "8K", "--read", "100", "--random", "100", "--queue-depth", "32", "--warmup", "0s", "--duration", "60s",
)  # fmt: skip
"""Enough I/Os on the slow path: of fewer than 20 in a second `diagnose` takes no mean latency.

TCP keeps some 1.2/sqrt(loss) segments on the wire: with a loss of 1 % and 20 ms there and back, these are 50 reads of
8 KiB a second.
"""

# The target has a network of its own, so that its packets take the wires rather than the loopback.
WIRES = """
modprobe -a veth sch_netem iscsi_tcp dm_multipath dm_round_robin
ip netns add target
for wire in 0 1; do
    ip link add near$wire type veth peer name far$wire
    ip link set far$wire netns target
    ip address add 10.0.$wire.1/24 dev near$wire
    ip netns exec target ip address add 10.0.$wire.2/24 dev far$wire
    ip link set near$wire up
    ip netns exec target ip link set far$wire up
done
ip netns exec target ip link set lo up
tc qdisc add dev near1 root netem delay 10ms loss 1%
ip netns exec target tc qdisc add dev far1 root netem delay 10ms loss 1%
mkdir -p /run/tgtd /run/lock/iscsi /etc/iscsi
echo InitiatorName=iqn.2026-11.lab:initiator >/etc/iscsi/initiatorname.iscsi
"""

TARGET = """
until tgtadm --lld iscsi --op show --mode target >/dev/null 2>&1; do sleep 0.2; done
tgtadm --lld iscsi --op new --mode target --tid 1 --targetname iqn.2026-11.lab:disk
tgtadm --lld iscsi --op new --mode logicalunit --tid 1 --lun 1 --backing-store /dev/vda --bsoflags direct
tgtadm --lld iscsi --op bind --mode target --tid 1 --initiator-address ALL
"""

SESSIONS = """
for wire in 0 1; do
    until iscsiadm --mode discovery --type sendtargets --portal 10.0.$wire.2 >&2; do sleep 0.5; done
done
iscsiadm --mode node --login >&2
until [ -b /dev/sda ] && [ -b /dev/sdb ]; do sleep 0.2; done
for disk in sda sdb; do
    session=$(readlink -f /sys/block/$disk/device | grep -o 'session[0-9]*' | head -1)
    echo $disk $(cat /sys/class/iscsi_connection/connection${session#session}:0/address)
done
blocks=$(cat /sys/block/sda/size); first=$(cat /sys/block/sda/dev); second=$(cat /sys/block/sdb/dev)
dmsetup create mp -u mpath-lab --table \\
    "0 $blocks multipath 1 queue_if_no_path 0 1 1 round-robin 0 2 1 $first 1 $second 1"
"""


@pytest.fixture(scope="module")
def lab(machine: Callable[..., Machine]) -> Machine:
    return machine(Disk(name="TARGET")).boot()


@pytest.mark.lab(
    line="Paths: kernel iSCSI on two wires, one with delay and loss (netem)",
    proves="retransmits are counted on the wire that loses, and diagnose names the slow path",
    cannot="delays and losses of real switches; how a hardware initiator counts",
)
def test_the_slow_path_is_named(lab: Machine, observed: Callable[[str], None]) -> None:
    lab.shell(WIRES)
    lab.start("ip", "netns", "exec", "target", "tgtd", "--foreground")
    lab.shell(TARGET)
    lab.start("iscsid", "--foreground")
    addresses = dict(line.split() for line in lab.shell(SESSIONS).splitlines())
    (slow,) = (disk for disk, address in addresses.items() if address == "10.0.1.2")

    recording = lab.start("assay", "record", "start", "/tmp/recording", "--no-processes")
    lab.wait_until(lambda: lab.run(*RECORDS).code == 0, recording)
    done = lab.assay("profile", MAP, *LOAD, *OUTPUT)
    assert done.code in (0, 1, 5), done.stderr
    assert done.document["points"][0]["errors"]["count"] == 0
    # A cause must hold for half of the time: nothing is recorded after the load.
    assert lab.kill(recording, signal.SIGTERM).code == 0
    lab.shell("cp -r /tmp/recording /run/lab/recording")
    diagnosis = lab.assay("diagnose", "/tmp/recording", "--json").checked().document

    again = retransmitted(read_recording(lab.share / "recording").records())
    observed(f"segments sent again: {again['near0']:.0f} on the good wire, {again['near1']:.0f} on the bad one")
    named = [cause for cause in diagnosis["causes"] if cause["cause"] == "slow-path"]
    said = ", ".join(f"{cause['cause']} ({cause['confidence']})" for cause in diagnosis["causes"]) or "no cause"
    observed(f"diagnose: {said}")
    assert again["near1"] > again["near0"]
    assert any(f"/{slow}" in json.dumps(cause) for cause in named), json.dumps(diagnosis["causes"])


def retransmitted(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return how many segments to storage each interface sent again."""
    found = {"near0": 0.0, "near1": 0.0}
    for row in rows:
        if row["metric"] == "storage_segments_retransmitted_count" and row["entity"] in found:
            found[row["entity"]] += row["value"] or 0.0
    return found
