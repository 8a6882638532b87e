"""Facts of machines: every source is read from trees with the layouts that the kernel documents."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.insight.rules.facts import interfaces as interfaces_source
from assay.insight.rules.facts.devices import device_subjects, is_flash, md_subjects, raid_of
from assay.insight.rules.facts.host import host_subject
from assay.insight.rules.facts.initiators import fc_subjects, iscsi_subjects, multipath_subjects, path_policy
from assay.insight.rules.facts.interfaces import interface_subjects, know_storage_links, links_of
from assay.insight.rules.facts.mounts import mount_point, mount_subjects, mounts_of_data
from assay.insight.rules.registry import RULES
from assay.insight.rules.rule import Subject, check
from assay.targets.drives.beneath import disks_of
from assay.targets.kernel import Kernel, device_number
from insight.rules.machine import Machine, healthy

Answers = dict[tuple[str, int], tuple[int, ...]]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """What drivers answer to ethtool's ioctl, by interface and command; empty: none answers."""
    answers: Answers = {}
    monkeypatch.setattr(interfaces_source, "_asked", lambda name, command, _: answers.get((name, command)))
    return answers


def values(subject: Subject) -> dict[str, Any]:
    return {name: fact.value for name, fact in subject.facts.items()}


def only(subjects: list[Subject]) -> Subject:
    (one,) = subjects
    return one


def found(*subjects: Subject) -> set[str]:
    return {one.rule.id for one in check(subjects, RULES).findings}


def full(share: float) -> Any:
    """An answer of statvfs(3) with a share of its blocks free."""
    return lambda _: cast(
        os.statvfs_result, SimpleNamespace(f_blocks=1000, f_bfree=1000 * share, f_bavail=1000 * share)
    )


# Hosts


def test_a_host_is_read_whole(tmp_path: Path) -> None:
    told = values(host_subject(healthy(tmp_path).kernel))

    assert told["vm.swappiness"] == 1
    assert told["swap_bytes"] == 0
    assert told["memory_bytes"] == 64 << 30
    assert told["transparent_hugepage"] == "madvise"
    assert told["numa_nodes"] == 2
    assert told["cpu_governor"] == "performance"
    assert told["clock_source"] == "tsc"
    assert told["interrupt_share_busiest"] == 0.25
    assert told["tcp_segments"] == 10**8
    assert told["tcp_retransmit_share"] == 1e-6
    assert told["tcp_rmem_max"] == 6291456
    assert told["steal_share"] == 0.0
    assert told["uptime_s"] == 900000.0
    assert told["has_aio_database"] is True
    assert told["guest_agent"] is False
    assert told["is_guest"] is False


def test_a_kernel_that_shows_nothing_passes_no_rule_of_hosts(machine: Machine) -> None:
    told = check([host_subject(machine.kernel)], [rule for rule in RULES if rule.id.startswith("host-")])

    read_elsewhere = {"host-clock-synchronised", "host-open-files"}
    assert {rule.id for rule, _ in told.passed} <= read_elsewhere
    assert {one.rule.id for one in told.findings} <= read_elsewhere


def test_a_guest_with_steal_and_swap_is_found(tmp_path: Path) -> None:
    machine = healthy(tmp_path)
    machine.proc(
        {
            "cpuinfo": "processor : 0\nflags : fpu hypervisor\n",
            "stat": "cpu  100 0 50 800 1 0 0 100 0 0\n",
            "meminfo": "MemTotal: 1000000 kB\nSwapTotal: 1000000 kB\nSwapFree: 500000 kB\n",
            "sys/vm/swappiness": "60\n",
            "net/snmp": "Tcp: RtoAlgorithm InSegs OutSegs RetransSegs\nTcp: 1 100000000 100000000 2000000\n",
        }
    )
    machine.sys({"class/dmi/id/sys_vendor": "VMware, Inc.\n"})

    assert {"guest-steal", "guest-agent", "host-swappiness", "host-swap-used", "network-retransmits"} <= found(
        host_subject(machine.kernel)
    )


@pytest.mark.parametrize(
    ("driver_name", "preference", "expected"),
    [
        ("acpi-cpufreq", None, {"host-governor"}),
        ("intel_pstate", "balance_performance", set()),
        ("intel_pstate", "power", {"host-energy-preference"}),
    ],
)
def test_what_powersave_means_depends_on_the_driver(
    tmp_path: Path, driver_name: str, preference: str | None, expected: set[str]
) -> None:
    base = "devices/system/cpu/cpu0/cpufreq"
    machine = healthy(tmp_path).sys({f"{base}/scaling_governor": "powersave\n", f"{base}/scaling_driver": driver_name})
    if preference is None:
        (machine.kernel.sys / base / "energy_performance_preference").unlink()
    else:
        machine.sys({f"{base}/energy_performance_preference": f"{preference}\n"})

    told = found(host_subject(machine.kernel))

    assert told & {"host-governor", "host-energy-preference"} == expected


def test_a_table_of_another_form_is_a_gap(tmp_path: Path) -> None:
    machine = healthy(tmp_path).proc({"net/snmp": "Tcp: x\n", "sys/net/ipv4/tcp_rmem": "a b c\n", "stat": "cpu x\n"})

    host = host_subject(machine.kernel)

    assert not {"tcp_segments", "tcp_rmem_max", "steal_share"} & set(host.facts)


# Block devices


def test_a_disk_is_read_whole(machine: Machine) -> None:
    machine.disk(
        "sda",
        driver="mpt3sas",
        queue={"rotational": "1\n", "scheduler": "none [bfq]\n", "max_sectors_kb": "64\n"},
        device={"queue_depth": "1\n", "timeout": "5\n"},
        partitions={"sda1": 63, "sda2": 2048, "sda3": 128},
    )

    disk = only(device_subjects(["sda"], machine.kernel, is_guest=False))
    told = values(disk)

    assert (told["scheduler"], told["rotational"], told["queue_depth"], told["timeout_s"]) == ("bfq", True, 1, 5)
    assert (told["transport"], told["driver"], told["is_flash"]) == ("scsi", "mpt3sas", False)
    # Sector 63 is where old partitions begin; 128 is a boundary of 64 KiB.
    assert told["misaligned_partitions"] == ["sda1 begins at 32,256 bytes"]
    assert found(disk) == {
        "device-scheduler", "device-queue-depth", "device-timeout", "device-alignment", "device-max-io",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "driver", "transport"),
    [
        ("vda", "virtio_blk", "virtual"), ("nvme0n1", "nvme", "nvme"), ("sda", "ahci", "sata"),
        ("sda", "iscsi_tcp", "iscsi"), ("sda", "qla2xxx", "fc"), ("sda", "vmw_pvscsi", "virtual"),
        ("sda", "megaraid_sas", "scsi"),
    ],
)  # fmt: skip
def test_a_driver_says_how_a_disk_is_reached(machine: Machine, name: str, driver: str, transport: str) -> None:
    machine.disk(name, driver=driver)

    assert only(device_subjects([name], machine.kernel, is_guest=False)).get("transport") == transport


def test_what_a_virtual_disk_says_of_flash_is_not_believed(machine: Machine) -> None:
    machine.disk("vda", driver="virtio_blk", queue={"rotational": "0\n"})

    disk = only(device_subjects(["vda"], machine.kernel, is_guest=True))

    assert "is_flash" not in disk.facts
    assert disk.missing["is_flash"] == "a virtual device does not say whether it is flash"
    assert is_flash(["vda"], machine.kernel) is None


def test_a_logical_volume_brings_its_disks(machine: Machine) -> None:
    machine.disk("sda", driver="ahci").disk("dm-0", slaves=("sda",)).disk("dm-1", slaves=("sda",))

    assert {one.name for one in device_subjects(["dm-0"], machine.kernel, is_guest=False)} == {"dm-0", "sda"}
    assert disks_of(["dm-0"], machine.kernel) == disks_of(["dm-1"], machine.kernel) == ["sda"]
    assert is_flash(["dm-0"], machine.kernel) is True


def test_without_names_all_disks_that_hold_data_are_read(machine: Machine) -> None:
    machine.disk("nvme0n1", driver="nvme").disk("loop0").disk("sr0").disk("sdz", size=0)

    told = device_subjects(None, machine.kernel, is_guest=False)

    assert [one.name for one in told] == ["nvme0n1"]
    assert "is_data" not in told[0].facts


def test_a_software_raid_is_an_array(machine: Machine) -> None:
    machine.disk("sda", driver="ahci", queue={"rotational": "1\n"}).disk("sdb", driver="ahci")
    machine.disk("md0", slaves=("sda", "sdb"))
    machine.sys(
        {
            "block/md0/md/level": "raid5\n",
            "block/md0/md/degraded": "1\n",
            "block/md0/md/sync_action": "idle\n",
            "block/md0/md/component_size": "3906886464\n",
            "block/md0/md/mismatch_cnt": "256\n",
            "block/md0/md/bitmap/location": "none\n",
            "block/md0/md/dev-sda/state": "in_sync\n",
            "block/md0/md/dev-sdb/state": "spare\n",
        }
    )
    machine.link("block/md0/md/dev-sda/block", "block/sda").link("block/md0/md/dev-sdb/block", "block/sdb")

    array = only(md_subjects(machine.kernel))
    told = values(array)

    assert (array.name, told["raid"], told["state"], told["spares"]) == ("md0", "5", "degraded", 1)
    assert told["disk_bytes"] == 3906886464 * 1024
    assert "disk_rpm" not in told
    assert raid_of(["md0"], machine.kernel) == "5"
    assert raid_of(["sda"], machine.kernel) is None
    assert found(array) == {"array-state", "md-mismatch", "md-bitmap"}


def test_a_rebuild_and_a_container_are_told_apart(machine: Machine) -> None:
    machine.sys(
        {
            "block/md1/md/level": "raid1\n", "block/md1/md/degraded": "1\n", "block/md1/md/sync_action": "recover\n",
            "block/md127/md/level": "container\n",
        }
    )  # fmt: skip

    assert only(md_subjects(machine.kernel)).get("state") == "rebuilding"


# Multipath and initiators

TWO_PATHS = "mpatha: 0 2097152 multipath 1 queue_if_no_path 0 1 1 service-time 0 2 2 8:16 1 1 8:32 1 1\n"
FAILOVER = "mpatha: 0 2097152 multipath 0 1 alua 2 1 service-time 0 1 1 8:16 1 service-time 0 1 1 8:32 1\n"


def multipath(machine: Machine, *, states: tuple[str, str] = ("running", "running"), ios: int = 5000) -> Machine:
    for name, state in zip(("sdb", "sdc"), states, strict=True):
        machine.disk(name, driver="qla2xxx", device={"state": f"{state}\n"})
    machine.disk("dm-0", slaves=("sdb", "sdc"))
    machine.sys({"block/dm-0/dm/uuid": "mpath-3600a\n", "block/dm-0/dm/name": "mpatha\n"})
    machine.proc(
        {"diskstats": f" 8 16 sdb 6000 0 8 1 0 0 0 0 0 1 1\n 8 32 sdc {ios} 0 8 1 0 0 0 0 0 1 1\n"}
    )  # fmt: skip
    return machine


def test_a_multipath_device_is_read_with_its_table(machine: Machine) -> None:
    told = values(only(multipath_subjects(multipath(machine).kernel, tables_of=lambda: TWO_PATHS)))

    assert told == {
        "paths_running": 2,
        "paths_failed": 0,
        "ios_by_path": {"sdb": 6000, "sdc": 5000},
        "policy": "service-time",
    }


def test_what_is_wrong_with_paths_is_found(machine: Machine) -> None:
    multipath(machine, states=("running", "offline"), ios=0)

    one = only(multipath_subjects(machine.kernel, tables_of=lambda: FAILOVER))

    assert found(one) == {"multipath-paths", "multipath-failed", "multipath-policy", "multipath-used"}


def test_a_table_that_may_not_be_read_is_a_gap_with_its_reason(machine: Machine) -> None:
    one = only(multipath_subjects(multipath(machine).kernel, tables_of=lambda: None))

    assert "policy" not in one.facts
    assert "dmsetup" in one.missing["policy"]


@pytest.mark.parametrize(
    "table", ["", "0 1 linear 8:16 0", "0 1 multipath", "0 1 multipath 1", "0 1 multipath 0 0 x 1"]
)
def test_another_table_gives_no_policy(table: str) -> None:
    assert path_policy(table) is None


def test_nvme_over_a_network_has_paths(machine: Machine) -> None:
    base = "class/nvme-subsystem/nvme-subsys0"
    machine.sys(
        {
            f"{base}/iopolicy": "numa\n",
            f"{base}/nvme0/state": "live\n", f"{base}/nvme0/transport": "tcp\n",
            f"{base}/nvme1/state": "connecting\n", f"{base}/nvme1/transport": "tcp\n",
            "class/nvme-subsystem/nvme-subsys1/nvme2/state": "live\n",
            "class/nvme-subsystem/nvme-subsys1/nvme2/transport": "pcie\n",
        }
    )  # fmt: skip

    one = only(multipath_subjects(machine.kernel))

    assert one.name == "nvme-subsys0"
    assert found(one) == {"multipath-paths", "multipath-failed", "multipath-policy"}


def iscsi(machine: Machine, *, state: str, wait: int, burst: int, digest: int) -> Machine:
    for number in (1, 2):
        base = f"class/iscsi_session/session{number}"
        machine.sys(
            {
                f"{base}/targetname": "iqn.2001-05.com.example:vol\n",
                f"{base}/state": f"{state if number == 2 else 'LOGGED_IN'}\n",
                f"{base}/recovery_tmo": f"{wait if number == 2 else 15}\n",
                f"{base}/max_burst_len": f"{burst if number == 2 else 16776192}\n",
                f"class/iscsi_connection/connection{number}:0/data_digest": f"{digest}\n",
                f"class/iscsi_host/host{number}/ipaddress": "10.0.0.1\n",
                f"class/scsi_host/host{number}/can_queue": f"{8 if digest else 128}\n",
            }
        )
    return machine


def test_of_sessions_the_worst_counts(machine: Machine) -> None:
    iscsi(machine, state="FAILED", wait=120, burst=65536, digest=1)

    one = only(iscsi_subjects(machine.kernel, has_multipath=True))

    assert one.get("sessions_per_target") == {"iqn.2001-05.com.example:vol": 2}
    assert found(one) == {
        "iscsi-session-state", "iscsi-recovery-timeout", "iscsi-transfer", "iscsi-digests", "iscsi-queue-depth",
    }  # fmt: skip


def test_healthy_sessions_give_nothing(machine: Machine) -> None:
    iscsi(machine, state="LOGGED_IN", wait=15, burst=16776192, digest=0)

    assert found(only(iscsi_subjects(machine.kernel, has_multipath=True))) == set()
    assert found(only(iscsi_subjects(machine.kernel, has_multipath=False))) == {"iscsi-recovery-timeout-single"}


def test_without_sessions_there_is_no_initiator(machine: Machine) -> None:
    assert iscsi_subjects(machine.kernel, has_multipath=False) == []


def test_ports_of_fibre_channel_are_read(machine: Machine) -> None:
    machine.sys(
        {
            "class/fc_host/host1/port_state": "Linkdown\n",
            "class/fc_host/host1/statistics/invalid_crc_count": "0x7d0\n",
            "class/fc_host/host1/statistics/rx_frames": "0x5f5e100\n",
            "class/fc_host/host2/port_state": "Online\n",
            "class/fc_host/host2/statistics/invalid_crc_count": "0xffffffffffffffff\n",
            "class/fc_host/host2/statistics/rx_frames": "0xffffffffffffffff\n",
        }
    )
    bad, other = fc_subjects(machine.kernel)

    assert values(bad) == {"port_state": "Linkdown", "invalid_crc_count": 2000, "rx_frames": 10**8}
    assert found(bad) == {"fc-port-state", "fc-crc-errors"}
    assert values(other) == {"port_state": "Online"}


# Interfaces


def test_a_card_is_read_with_what_its_driver_says(machine: Machine, driver: Answers) -> None:
    machine.card("eth1", mtu="1500\n", speed="100\n", duplex="half\n")
    machine.proc({"net/dev": "a\nb\n  eth1: 1 900000 900 90000 0 0 0 0 1 100000 0 0 0 0 0 0\n"})
    driver |= {
        ("eth1", 0x10): (4096, 0, 0, 4096, 256, 0, 0, 256),
        ("eth1", 0x12): (1, 0, 0),
        ("eth1", 0x1E): (0,),
        ("eth1", 0x2B): (1,),
    }
    card = only(interface_subjects(machine.kernel, is_guest=False))
    card.know("is_storage", True, "a test")
    told = values(card)

    assert (told["ring_rx"], told["ring_rx_max"], told["pause_rx"], told["tso"]) == (256, 4096, False, False)
    assert (told["packets"], told["dropped_share"], told["error_share"]) == (10**6, 0.09, 0.0009)
    assert found(card) == {
        "network-jumbo", "network-flow-control", "network-ring-buffers", "network-drops", "network-errors",
        "network-speed", "network-duplex", "network-offloads",
    }  # fmt: skip


@pytest.mark.usefixtures("driver")
def test_a_driver_that_says_nothing_leaves_gaps(machine: Machine) -> None:
    machine.card("eth1", speed="-1\n", duplex="unknown\n")

    card = only(interface_subjects(machine.kernel, is_guest=False))

    assert {"ring_rx", "pause_rx", "tso", "gro_or_lro", "speed_bits_per_s", "duplex"} <= set(card.missing)


@pytest.mark.usefixtures("driver")
def test_what_has_no_cable_is_no_interface_to_judge(machine: Machine) -> None:
    machine.card("eth1").card("eth2", operstate="down\n")
    machine.sys(
        {
            "class/net/lo/operstate": "unknown\n", "class/net/docker0/operstate": "up\n",
            "class/net/docker0/bridge/bridge_id": "8000\n", "class/net/veth1/operstate": "up\n",
        }
    )  # fmt: skip

    assert [one.name for one in interface_subjects(machine.kernel, is_guest=False)] == ["eth1"]


@pytest.mark.usefixtures("driver")
def test_a_bond_of_two_cards_is_two_links(machine: Machine) -> None:
    machine.card("eth1").card("eth2")
    machine.sys({"class/net/bond0/operstate": "up\n", "class/net/bond0/bonding/slaves": "eth1 eth2\n"})
    machine.sys({"class/net/bond0.7/operstate": "up\n"}).link("class/net/bond0.7/lower_bond0", "class/net/bond0")
    cards = interface_subjects(machine.kernel, is_guest=False)
    for card in cards:
        card.know("is_storage", card.name == "bond0.7", "a test")
    host = Subject("host", "db1")

    know_storage_links([host, *cards])

    assert links_of("bond0.7", machine.kernel) == ["eth1", "eth2"]
    assert host.get("storage_links") == ["eth1", "eth2"]
    assert "network-host-paths" not in found(host)


def test_the_loopback_alone_answers_the_ioctl_of_this_machine() -> None:
    assert interfaces_source._asked("lo", 0x1E, 1) in ((0,), (1,), None)
    assert interfaces_source._asked("no-such-card", 0x1E, 1) is None


# File systems


def mounted(machine: Machine, path: Path, kind: str, options: str, *, source: str = "/dev/sda1") -> Kernel:
    major, minor = device_number(os.stat(path).st_dev)
    line = f"36 1 {major}:{minor} / {mount_point(str(path))} rw,{options} - {kind} {source} {options}\n"
    return machine.proc({"self/mountinfo": line}).kernel


@pytest.mark.parametrize(
    ("kind", "options", "free", "expected"),
    [
        ("ext4", "noatime", 0.5, set()),
        ("ext4", "strictatime,nobarrier,data=writeback,discard", 0.02,
         {"mount-atime", "mount-barrier", "mount-data-writeback", "mount-online-discard", "mount-free", "mount-full"}),
        ("nfs4", "soft,rsize=4096,wsize=4096", 0.5, {"mount-nfs-hard", "mount-nfs-size"}),
        ("nfs4", "hard,rsize=1048576,wsize=1048576", 0.5, set()),
        ("tmpfs", "size=1g", 0.5, {"mount-layered"}),
    ],
)  # fmt: skip
def test_a_file_system_is_judged_by_type_and_options(
    tmp_path: Path, kind: str, options: str, free: float, expected: set[str]
) -> None:
    machine = Machine(tmp_path / "machine")
    kernel = mounted(machine, tmp_path, kind, options)

    one = only(mount_subjects([str(tmp_path)], kernel, is_data=True, space=full(free)))

    assert found(one) == expected


def test_a_file_system_that_does_not_answer_is_a_gap_and_ends_nothing(tmp_path: Path) -> None:
    def refuse(_: str) -> Any:
        raise OSError(116, "Stale file handle")

    one = only(mount_subjects([str(tmp_path)], is_data=True, space=refuse))
    told = check([one], [rule for rule in RULES if rule.id == "mount-free"])

    assert "Stale file handle" in told.not_checked[0].reason


def test_mounts_of_data_leave_out_images_and_second_names(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.sys({"dev/block/8:1/dev": "8:1\n", "dev/block/7:0/dev": "7:0\n"})
    machine.proc(
        {
            "self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
            "2 1 8:1 /srv /srv/again rw - ext4 /dev/sda1 rw\n"
            "3 1 7:0 / /snap/x ro - squashfs /dev/loop0 ro\n"
            "4 1 0:5 / /proc rw - proc proc rw\n"
            "5 1 0:40 / /mnt/nfs rw - nfs4 server:/x rw\n"
        }
    )

    assert mounts_of_data(machine.kernel) == ["/", "/mnt/nfs"]


# This machine


def test_this_machine_is_read_without_a_fault() -> None:
    host = host_subject()
    names = os.listdir("/sys/block")

    assert host.get("memory_bytes") > 0
    assert {one.name for one in device_subjects(names, is_guest=None)} <= set(names)
    assert mount_point("/proc/self") == "/proc"
    assert [one.name for one in mount_subjects(["/"], is_data=None)] == ["/"]
