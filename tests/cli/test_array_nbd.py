"""Exports of NBD of a served array, by the clients of others: QEMU, libnbd and fio."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from serving import VOLUME_BYTES, direct, pattern, read, serving
from test_array_iscsi import free_ports
from test_array_runs import wait_until

from mounting import needs_fuse

if TYPE_CHECKING:
    from assay_command import Bench

pytestmark = needs_fuse


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)}: not installed")


def said(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def qemu_io(url: str, *commands: str) -> str:
    words = [word for command in commands for word in ("-c", command)]
    return said("qemu-io", "-f", "raw", *words, url)


@needs("nbdinfo")
def test_libnbd_lists_the_volumes_with_their_sizes_and_what_they_can_do(bench: Bench) -> None:
    (port,) = free_ports(1)
    with serving(bench, "--nbd", f"127.0.0.1:{port}") as served:
        assert f"NBD nbd://127.0.0.1:{port}/log01" in served.running.stderr
        listed: dict[str, Any] = json.loads(said("nbdinfo", "--list", "--json", f"nbd://127.0.0.1:{port}"))
        assert (listed["protocol"], listed["structured"]) == ("newstyle-fixed", True)
        found = {export["export-name"]: export for export in listed["exports"]}
        assert {name: export["export-size"] for name, export in found.items()} == {
            "data01": VOLUME_BYTES, "log01": VOLUME_BYTES,
        }  # fmt: skip
        can = ("can_flush", "can_fua", "can_trim", "can_zero", "can_multi_conn", "can_df")
        assert [found["data01"][name] for name in can] == [True] * len(can)
        assert [found["data01"][name] for name in ("is_read_only", "can_cache")] == [False, False]
        sizes = [found["data01"][f"block_size_{name}"] for name in ("minimum", "preferred", "maximum")]
        assert sizes == [1, 4096, 32 << 20]
        # The empty name is no volume's where there are several.
        refused = subprocess.run(
            ["nbdinfo", f"nbd://127.0.0.1:{port}"], capture_output=True, text=True, timeout=60, check=False
        )
        assert "for the default export" in refused.stderr


@needs("qemu-io")
def test_qemu_finds_its_bytes_through_a_pulled_disk_and_the_file_has_them(bench: Bench) -> None:
    (port,) = free_ports(1)
    url = f"nbd://127.0.0.1:{port}/data01"
    with serving(bench, "--nbd", f"127.0.0.1:{port}") as served:
        qemu_io(url, "write -P 7 12k 3M", "write -f -P 8 1M 64k", "flush", "write -z 2M 64k", "discard 13M 512k")
        assert served.command("pull", "member0/disk3", "--no-spare").code == 0
        qemu_io(url, "read -P 7 12k 1012k", "read -P 8 1M 64k", "read -P 0 2M 64k", "read -P 7 2112k 64k")
        with direct(served.data) as file:
            assert read(file, 4096, 1 << 20) == bytes([8]) * 4096
        assert served.status()["in_use"] == []
        beyond = subprocess.run(
            ["qemu-io", "-f", "raw", "-c", f"read {VOLUME_BYTES} 512", url],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert beyond.returncode != 0


@needs("nbdcopy", "nbdinfo")
def test_a_disk_is_copied_into_a_volume_that_has_grown_and_out_again(bench: Bench) -> None:
    (port,) = free_ports(1)
    url, larger = f"nbd://127.0.0.1:{port}/data01", VOLUME_BYTES + (1 << 20)
    with serving(bench, "--nbd", f"127.0.0.1:{port}") as served:
        assert served.command("grow", "data01", str(larger)).stdout.endswith("grew from 16 MiB to 17 MiB\n")
        assert said("nbdinfo", "--size", url) == f"{larger}\n"
        disk, back = bench.folder / "disk", bench.folder / "back"
        disk.write_bytes(pattern(1 << 20) + bytes(larger - (2 << 20)) + pattern(1 << 20, seed=9))
        said("nbdcopy", "--flush", disk, url)
        said("nbdcopy", url, back)
        assert back.read_bytes() == disk.read_bytes()


@needs("qemu-io")
def test_an_io_waits_for_power_and_a_server_that_ends_says_so(bench: Bench) -> None:
    (port,) = free_ports(1)
    url = f"nbd://127.0.0.1:{port}/data01"
    with serving(bench, "--nbd", f"127.0.0.1:{port}") as served:
        qemu_io(url, "write -f -P 5 0 64k")
        assert served.command("cut-power").code == 0
        words = ["qemu-io", "-f", "raw", "-c", "read -P 5 0 64k", url]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as waits:
            wait_until(lambda: served.status()["in_use"] == ["data01"])
            refused = served.command("revert", "none")
            assert (refused.code, "data01 in use" in refused.stderr) == (2, True)
            assert served.command("restore").code == 0
            told, _ = waits.communicate(timeout=60)
            assert (waits.returncode, "read 65536/65536 bytes" in told) == (0, True)
        assert served.command("cut-power").code == 0
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as cut:
            wait_until(lambda: served.status()["in_use"] == ["data01"])
            served.running.process.send_signal(signal.SIGINT)
            assert served.running.end().code == 130
            told, _ = cut.communicate(timeout=60)
            assert (cut.returncode == 0, "read 65536/65536 bytes" in told) == (False, False)


@needs("fio")
def test_fio_verifies_what_it_wrote_over_several_requests_at_once(bench: Bench) -> None:
    engines = subprocess.run(["fio", "--enghelp"], capture_output=True, text=True, timeout=60, check=True).stdout
    if "nbd" not in engines.split():
        pytest.skip("this fio has no engine for NBD")
    (port,) = free_ports(1)
    with serving(bench, "--nbd", f"127.0.0.1:{port}"):
        words = ("--ioengine=nbd", f"--uri=nbd://127.0.0.1:{port}/data01", "--rw=randwrite", "--bs=8k", "--iodepth=16")
        sizes = ("--size=8m", "--verify=crc32c", "--do_verify=1", "--output-format=json")
        printed = said("fio", "--name=nbd", "--verify_state_save=0", *words, *sizes)
        # The engine says first that it has connected.
        told = json.loads(printed[printed.index("{") :])
        assert (told["jobs"][0]["error"], told["jobs"][0]["read"]["total_ios"]) == (0, 1024)


def test_a_word_for_other_hosts_needs_a_network(bench: Bench) -> None:
    refused = bench.assay("array", "serve", "ps6100xv", "--at", bench.folder / "array", "--no-authentication")
    assert (refused.code, "is for volumes over a network; give --iscsi or --nbd ADDRESS too" in refused.stderr) == (
        2, True,
    )  # fmt: skip
    beyond = bench.assay("array", "serve", "ps6100xv", "--at", bench.folder / "array", "--nbd", "0.0.0.0")
    assert (beyond.code, "NBD knows no secrets" in beyond.stderr) == (2, True)


@contextmanager
def shown_as_file(folder: Path, port: int, volume: str) -> Iterator[Path]:
    """A volume as a file that nbdfuse shows, and that takes neither truncation nor allocation."""
    file = folder / f"{volume}.nbd"
    file.touch()
    shown = subprocess.Popen(["nbdfuse", str(file), f"nbd://127.0.0.1:{port}/{volume}"])
    try:
        wait_until(lambda: file.stat().st_size > 0)
        yield file
    finally:
        subprocess.run(["umount", "-l", str(file)], check=False)
        shown.kill()
        shown.wait()


FAULTS = (
    ("1s", "pull member0/disk3"),
    ("2s", "fail-path"),
    ("3s", "mend-paths"),
    ("4s", "cut-power"),
    ("5s", "restore"),
    ("6s", "fail-controller"),
    ("8s", "grow data01 48M"),
)
"""Events of the array, while the data are written and checked."""


@needs("nbdfuse")
@pytest.mark.slow(reason="half a minute of faults; the tests above prove each by itself")
def test_every_byte_is_found_through_pulls_lost_paths_and_power_cuts(bench: Bench) -> None:
    (port,) = free_ports(1)
    events = bench.folder / "events.toml"
    events.write_text("".join(f'[[event]]\nat = "{at}"\ndo = "{what}"\n' for at, what in FAULTS))
    array = "ps6100xv?raid=50&members=2&volumes=data:1,log:1"
    options = ("--nbd", f"127.0.0.1:{port}", "--events", str(events))
    with serving(bench, *options, array=array, size="64M") as served, ExitStack() as shown:
        data, log = (shown.enter_context(shown_as_file(bench.folder, port, name)) for name in ("data01", "log01"))
        words = ("--volume", f"data={data},log={log}", "--overwrite", f"{data}", "--overwrite", f"{log}")
        verified = bench.assay("verify", *words, "--duration", "12s", "--json", prefix=("env",), timeout_s=300)
        assert verified.code == 0, verified.stderr
        what = [event["what"] for event in served.status()["events"]]
        assert not [line for line in what if "refused" in line]
        happened = ("power cut", "power restored", "paths are back", "grew from")
        assert [words for words in happened if not any(words in line for line in what)] == []
