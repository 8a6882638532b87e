"""What options of fio, DiskSpd and pgbench are called here, for those who type them by habit."""

from __future__ import annotations

from collections.abc import Collection, Mapping

FIO: Mapping[str, str] = {
    "--rw": "--read and --random, in percent: randrw is --read 50 --random 100",
    "--readwrite": "--read and --random, in percent: randrw is --read 50 --random 100",
    "--rwmixread": "--read",
    "--rwmixwrite": "--read, 100 less the share of writes",
    "--bs": "--block",
    "--blocksize": "--block",
    "--bssplit": "--block with shares: --block 8K:80+64K:20",
    "--iodepth": "--queue-depth",
    "--numjobs": "--workers",
    "--filename": "the target itself: assay profile FILE",
    "--directory": "the target itself: assay profile FOLDER",
    "--runtime": "--duration",
    "--time_based": "--duration alone",
    "--ramp_time": "--warmup",
    "--ioengine": "--backend",
    "--direct": "the default, O_DIRECT; --buffered is the other",
    "--rate_iops": "--rate",
    "--fsync": "--sync fsync with --sync-every",
    "--fdatasync": "--sync fdatasync with --sync-every",
    "--random_distribution": "--skew",
    "--norandommap": "the default",
    "--group_reporting": "the default",
    "--output-format": "--json or --export fio-json",
    "--minimal": "--json or --export csv",
    "--buffer_compress_percentage": "--compressible",
    "--dedupe_percentage": "--duplicate",
    "--lat_percentiles": "the default",
    "--write_lat_log": "the default: series.parquet of the run folder",
    "--name": "--title",
}
"""Options of fio (HOWTO)."""

DISKSPD: Mapping[str, str] = {
    "-b": "--block",
    "-w": "--read, 100 less the share of writes",
    "-o": "--queue-depth",
    "-t": "--workers",
    "-F": "--workers",
    "-r": "--random 100",
    "-s": "--random 0",
    "-d": "--duration",
    "-W": "--warmup",
    "-c": "--size",
    "-S": "the default, O_DIRECT; --buffered is the other",
    "-L": "the default",
    "-g": "--rate, I/Os per second",
    "-Z": "the default; --compressible and --duplicate say how much",
    "-R": "--json or --export csv",
}
"""Options of DiskSpd (its wiki, "Command line and parameters"): letters with a value right behind them."""

PGBENCH: Mapping[str, str] = {
    "-c": "--users",
    "--client": "--users",
    "-j": "--threads",
    "--jobs": "--threads",
    "-T": "--duration",
    "--time": "--duration",
    "-s": "how much the action load loads: see --help",
    "--scale": "how much the action load loads: see --help",
    "-i": "the action load",
    "--initialize": "the action load",
    "-R": "--rate",
    "-S": "--mix",
    "-M": "--procedures",
    "-C": "--reconnect",
    "-p": "a URL: postgresql://USER@HOST:PORT/DATABASE",
    "-U": "a URL: postgresql://USER@HOST:PORT/DATABASE",
    "-d": "a URL: postgresql://USER@HOST:PORT/DATABASE",
}
"""Options of pgbench (PostgreSQL documentation, "pgbench")."""

HAMMERDB: Mapping[str, str] = {
    "vuset": "--users",
    "diset": "an option each, such as --users, --warmup and --duration",
    "dbset": "the target's URL: postgresql://USER@HOST/DATABASE",
    "buildschema": "the action load",
    "vurun": "the action run",
}
"""Commands of HammerDB's shell (its documentation, "CLI Functionality")."""


TOOLS = (("fio", FIO, "--block"), ("DiskSpd", DISKSPD, "--block"), ("pgbench", PGBENCH, "--users"))
"""Tools, their words, and the option by which a verb does what they do."""


def called_here(option: str, options: Collection[str]) -> str:
    """Name our word for an option of another tool, as a clause; empty where no known tool has the option.

    Parameters
    ----------
    option
        As it was typed.
    options
        Those of the verb.

    Examples
    --------
    >>> called_here("--iodepth", {"--block"}), called_here("-o8", {"--block"})
    ("fio's --iodepth is --queue-depth here", "DiskSpd's -o is --queue-depth here")
    >>> called_here("-c", {"--users"}), called_here("--frob", {"--block"})
    ("pgbench's -c is --users here", '')
    """
    name = option.partition("=")[0]
    letter = name[:2] if name[:1] == "-" and name[1:2] != "-" else name
    for tool, words, sign in TOOLS:
        known = name if name in words else letter
        if sign in options and known in words:
            return f"{tool}'s {known} is {words[known]} here"
    return ""


def verb_of(command: str) -> str:
    """What a command of another tool's shell is here, as a clause; empty where none is known.

    Examples
    --------
    >>> verb_of("vuset"), verb_of("frob")
    ("HammerDB's vuset is --users here", '')
    """
    return f"HammerDB's {command} is {HAMMERDB[command]} here" if command in HAMMERDB else ""
