"""What `assay verify` refuses: one line that names it, its exit code, and nothing made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from assay_command import Bench, Outcome

BAD_OPTIONS: dict[str, tuple[list[str], list[str]]] = {
    "duration": (["--duration", "5parsecs"], ["--duration", "'parsecs'"]),
    "long I/O of 0": (["--long-io", "0s"], ["--long-io", "0"]),
    "time-out of 0": (["--io-timeout", "0s"], ["--io-timeout", "0"]),
    "cycles": (["--cycles", "-1"], ["--cycles", "-1"]),
    "seed": (["--seed", "-1"], ["--seed", "-1"]),
    "backend": (["--backend", "aio"], ["--backend", "aio", "io-uring"]),
    "memory": (["--memory", "lots"], ["--memory", "'lots'"]),
    "memory of 0": (["--memory", "0"], ["--memory", "0"]),
    "kind of users": (["--users", "randm=3"], ["'randm=3'", "did you mean 'random'?", "bulk-update"]),
    "number of users": (["--users", "random=many"], ["--users random=N", "whole number", "'many'"]),
    "users without a number": (["--users", "random"], ["--users 'random'", "KIND=N"]),
    "too many users": (["--users", "random=99999"], ["--users random=N", "99999"]),
    "two shrinkers": (["--users", "shrink=2"], ["--users shrink=N", "2"]),
    "users twice": (["--users", "audit=1,audit=2"], ["audit is given twice"]),
    "preset": (["--preset", "defalt"], ["'defalt'", "did you mean 'default'?", "sparse"]),
    "preset and plan": (["--preset", "default", "--plan", "x.toml"], ["--preset and --plan exclude"]),
    "plan that is missing": (["--plan", "none.toml"], ["none.toml", "No such file"]),
    "configuration that is missing": (["--config", "none.cfg"], ["--config none.cfg", "No such file"]),
    "map without configuration": (["--map", "E:\\=/mnt"], ["--map", "--config"]),
    "size too small": (["--size", "1M"], ["1 MiB", "give a larger --size"]),
    "size of nothing": (["--size", "0"], ["--size", "'0'"]),
    "size by an unknown role": (["--size", "dat=1G"], ["dat", "did you mean 'data'?"]),
    "journal in no folder": (["--crash-journal", "none/j"], ["--crash-journal none/j", "there is no folder"]),
    "two ways of a journal": (["--crash-journal", "a", "--after-crash", "b"], ["exclude each other"]),
    "journal that is missing": (["--after-crash", "none"], ["--after-crash none", "is no file"]),
    "unknown option": (["--duratoin", "1s"], ["--duratoin", "--duration"]),
    "export": (["--export", "xls"], ["--export", "'xls'", "openmetrics"]),
}


def assert_refused(bench: Bench, outcome: Outcome, words: list[str]) -> None:
    """It said so in one line with these words, and made nothing."""
    assert (outcome.code, outcome.stdout, bench.made()) == (2, "", [])
    assert not [word for word in words if word not in outcome.complaint], outcome.complaint


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_a_bad_option_is_refused_before_anything_is_made(bench: Bench, name: str) -> None:
    options, named = BAD_OPTIONS[name]
    assert_refused(bench, bench.verify(bench.target, "--size", "16M", *options), named)


BAD_TARGETS: dict[str, tuple[list[str], list[str]]] = {
    "none": ([], ["no target"]),
    "null": (["null:"], ["null:", "nothing that could be verified"]),
    "a log alone": (["--volume", "log=target/l.dat"], ["no data volume"]),
    "unknown fault": (["faulty:target/f.dat?trn=0.1"], ["'trn'", "did you mean 'torn'?"]),
    "chance above 1": (["faulty:target/f.dat?torn=2"], ["'torn'", "from 0 to 1"]),
    "chances above 1": (["faulty:target/f.dat?torn=0.6&lost=0.6"], ["above 1"]),
    "half of the volumes faulty": (
        ["--volume", "data=faulty:target/f.dat?torn=0.1,log=target/l.dat"], ["all volumes", "same options"]
    ),
    "faulty device": (["faulty:/dev/no-such-disk?torn=0.1"], ["faulty:", "is a device"]),
    "a folder that is missing": (["no-such-folder/f"], ["no-such-folder", "does not exist"]),
    "somebody's file": (["/etc/hostname"], ["/etc/hostname", "that Assay did not write"]),
    "the kernel's file": (["/proc/cpuinfo"], ["/proc/cpuinfo", "no storage"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_a_bad_target_is_refused_before_anything_is_made(bench: Bench, name: str) -> None:
    arguments, named = BAD_TARGETS[name]
    assert_refused(bench, bench.verify(*arguments, "--size", "16M", "--duration", "1s"), named)


GOOD = "[CONFIG]\nTestCycleDuration=1\n{config}\n[File1]\nFileName={path}\nInitialSize={size}\n{file}\n{log}"
LOG = "[File2]\nFileName=target/l\nInitialSize=8\nLogFile=TRUE\n"

BAD_CONFIGS: dict[str, tuple[dict[str, str], list[str]]] = {
    "unknown key": ({"config": "CacheHitRation=100"}, ["[CONFIG]", "CacheHitRation", "did you mean CacheHitRatio?"]),
    "unknown section": ({"config": "[Confg]"}, ["[Confg]", "did you mean [CONFIG]?"]),
    "size that is no number": ({"size": "large"}, ["[File1]", "InitialSize=large"]),
    "size of nothing": ({"size": "0"}, ["[File1]", "InitialSize=0"]),
    "size beyond all disks": ({"size": "99999999999"}, ["[File1]", "InitialSize=99999999999"]),
    "largest below first size": ({"file": "MaxSize=8"}, ["[File1]", "MaxSize=8"]),
    "no log file": ({"log": ""}, ["no log file", "LogFile=TRUE"]),
    "path of Windows": ({"path": "E:\\a.mdx"}, ["E:\\a.mdx", "--map"]),
    "path that leaves its folder": ({"path": "..\\..\\etc\\passwd"}, ["[File1]", "leaves the folder"]),
    "path of the system": ({"path": "/etc/hostname"}, ["/etc/hostname", "that Assay did not write"]),
    "path of the kernel": ({"path": "/sys/kernel/profiling"}, ["/sys/kernel/profiling"]),
    "device": ({"path": "/dev/no-such-disk"}, ["/dev/no-such-disk", "no such device"]),
    "folder that is missing": ({"path": "/no-such-folder/f"}, ["/no-such-folder", "does not exist"]),
    "one file twice": ({"path": "target/l"}, ["target/l"]),
}


@pytest.mark.parametrize("name", BAD_CONFIGS)
def test_a_bad_configuration_is_refused_before_anything_is_made(bench: Bench, tmp_path: Path, name: str) -> None:
    changes, named = BAD_CONFIGS[name]
    text = GOOD.format(**{"config": "", "path": "target/f.dat", "size": "16", "file": "", "log": LOG, **changes})
    (tmp_path / "sqliosim.cfg").write_text(text)
    assert_refused(bench, bench.verify("--config", "sqliosim.cfg", "--quiet"), named)


def test_a_configuration_that_is_no_text_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "sqliosim.cfg").write_bytes(bytes(range(256)))
    assert_refused(bench, bench.verify("--config", "sqliosim.cfg"), ["is not text"])


def test_files_larger_than_the_file_system_are_refused(bench: Bench) -> None:
    outcome = bench.verify(bench.target, "--size", "20T")

    assert outcome.code == 3
    assert "give a smaller --size" in outcome.complaint
    assert bench.made() == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("durtion = 3", ["'durtion'"]),
        ("[timing]\nstres_s = 3", ["timing", "did you mean 'stress_s'?"]),
        ("[random]\nusers = -2", ["random.users", "-2"]),
        ("[random]\nchain_min = 9\nchain_max = 3", ["chain_min 9", "chain_max 3"]),
        ('[[files]]\npath = "target/f.dat"\nsize_bytes = "8M"', ["log file is needed"]),
    ],
)
def test_a_bad_plan_is_refused_with_its_name_and_key(bench: Bench, tmp_path: Path, text: str, named: list[str]) -> None:
    (tmp_path / "plan.toml").write_text(text)
    outcome = bench.verify(bench.target, "--size", "16M", "--plan", "plan.toml")
    assert_refused(bench, outcome, ["--plan plan.toml", *named])


def test_a_journal_that_exists_is_not_overwritten(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "j").write_text("a journal")

    outcome = bench.verify(bench.target, "--size", "16M", "--crash-journal", "j")
    assert_refused(bench, outcome, ["--after-crash"])
    assert (tmp_path / "j").read_text() == "a journal"
