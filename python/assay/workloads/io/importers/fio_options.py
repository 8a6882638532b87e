"""Options of a fio job as its JSON repeats them: texts, without those that have no value (fio, HOWTO)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.workloads.io.importers.asked import AskedAccess, words

Options = Mapping[str, str]

Record = Mapping[str, object]
"""A part of fio's document: foreign JSON, in which anything may stand anywhere."""


ALIASES = {"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange", "timeout": "runtime", "blockalign": "ba"}
"""Names that fio knows an option by, beside its own."""

HARMLESS = words(
    "name description filename directory size filesize io_size runtime time_based startdelay ramp_time ioengine thread"
    " group_reporting new_group stonewall wait_for exitall output output-format lat_percentiles clat_percentiles"
    " slat_percentiles percentile_list disable_lat disable_clat disable_slat disable_bw_measurement gtod_reduce"
    " gtod_cpu clocksource unified_rw_reporting log_avg_msec log_hist_msec log_max_value write_bw_log write_lat_log"
    " write_iops_log write_hist_log per_job_logs log_offset log_prio log_compression bwavgtime iopsavgtime eta"
    " randseed randrepeat allrandrepeat rand_seed use_os_rand create_on_open create_serialize fallocate overwrite"
    " pre_read invalidate unlink unlink_each_loop file_service_type openfiles filename_format cpus_allowed"
    " cpus_allowed_policy numa_cpu_nodes numa_mem_policy prio prioclass nice mem iomem mem_align hipri registerfiles"
    " fixedbufs sqthread_poll sqthread_poll_cpu force_async nonvectored uncached userspace_reap steadystate ss"
    " steadystate_duration ss_dur steadystate_ramp_time ss_ramp norandommap random_generator softrandommap"
    " group_isolation job_start_clock_id fill_device refill_buffers scramble_buffers loops"
)
"""Options that do not change which I/Os are asked for, or how hard."""

_UNDERSTOOD = words(
    "bs blocksize bssplit rw readwrite rwmixread rwmixwrite percentage_random iodepth numjobs direct buffered sync"
    " fsync fdatasync random_distribution ba blockalign dedupe_percentage buffer_compress_percentage zero_buffers"
)

SYNCHRONOUS = words("sync psync vsync pvsync pvsync2 mmap splice")
"""Engines that have one I/O outstanding whatever `iodepth` says."""


_ZIPF = re.compile(r"zipf:(?!0+(\.0*)?$)\d{1,2}(\.\d{1,6})?", re.ASCII)


def flag(options: Options, name: str) -> bool:
    """An option that is on or off; without a value it is on.

    Examples
    --------
    >>> flag({"direct": "1"}, "direct"), flag({"direct": "0"}, "direct"), flag({"thread": ""}, "thread"), flag({}, "x")
    (True, False, True, False)
    """
    return name in options and options[name].strip().lower() not in ("0", "false", "no", "none")


def size_bytes(text: str, options: Options) -> int | None:
    """A size; None where it is no plain one. `k` and `ki` are 1,024 and 1,000 unless `kb_base` is 1000.

    Examples
    --------
    >>> size_bytes("8k", {}), size_bytes("1Gi", {"kb_base": "1000"}), size_bytes("50%", {}), size_bytes("4096", {})
    (8192, 1073741824, None, 4096)
    """
    match = re.fullmatch(r"(\d{1,19})\s*(?:([kmgtp])(i?)b?|b)?", text.strip().lower(), re.ASCII)
    if match is None:
        return None
    number, letter, is_ki = int(match[1]), match[2], bool(match[3])
    if letter is None:
        return number
    base = 1000 if is_ki != (options.get("kb_base") == "1000") else 1024
    return int(number * base ** (1 + "kmgtp".index(letter)))


def number(options: Options, *names: str) -> float | None:
    """A number by the first of its names that is given."""
    for name in names:
        match = re.fullmatch(r"\d{1,12}(\.\d{1,12})?", options.get(name, "").strip(), re.ASCII)
        if match is not None:
            return float(match[0])
    return None


_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "msec": 1e-3, "usec": 1e-6,
            "sec": 1.0, "min": 60.0, "": 1.0}  # fmt: skip


def seconds(options: Options, name: str) -> float:
    """A time span; 0 where none is given. A bare number is seconds (fio, HOWTO, "time").

    Examples
    --------
    >>> seconds({"ramp_time": "120s"}, "ramp_time"), seconds({"ramp_time": "2m"}, "ramp_time"), seconds({}, "x")
    (120.0, 120.0, 0.0)
    """
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)\s*([a-z]{0,4})", options.get(name, "").strip().lower(), re.ASCII)
    return float(match[1]) * _SECONDS.get(match[2], 0.0) if match is not None else 0.0


def pattern(options: Options) -> str:
    """Reads, writes or both, random or not: `randrw`."""
    return (options.get("rw") or options.get("readwrite") or "read").partition(":")[0].strip().lower()


def read_share(options: Options) -> float:
    """Share of reads; `rwmixread` and `rwmixwrite` are percentages, and the later one counts."""
    kind = pattern(options).removeprefix("rand")
    if kind in ("read", "write"):
        return 1.0 if kind == "read" else 0.0
    given = number(options, "rwmixread")
    written = number(options, "rwmixwrite")
    percent = 100 - written if written is not None else 50.0 if given is None else given
    return min(max(percent, 0.0), 100.0) / 100


def queue_depth(options: Options, single_share: float | None) -> int:
    """I/Os outstanding of one job; `single_share` of its I/Os found none beside them."""
    engine = options.get("ioengine", "").partition(":")[0]
    is_alone = engine in SYNCHRONOUS or (not engine and single_share is not None and single_share >= 0.999)
    return 1 if is_alone else max(int(number(options, "iodepth") or 1), 1)


def block_bytes(options: Options) -> int | dict[str, float] | None:
    """The block, or a mix of blocks; None where sizes vary otherwise.

    Examples
    --------
    >>> block_bytes({"bs": "8k"}), block_bytes({"bssplit": "4k/60:8k/40"}), block_bytes({"bsrange": "4k-64k"})
    (8192, {'4096': 60.0, '8192': 40.0}, None)
    >>> block_bytes({"bs": "4k,16k", "rw": "randrw", "rwmixread": "75"})
    {'4096': 0.75, '16384': 0.25}
    """
    if "bssplit" in options:
        return _split(options["bssplit"], options)
    if "bsrange" in options or "blocksize_range" in options:
        return None
    sizes = [size_bytes(one, options) for one in (options.get("bs") or options.get("blocksize") or "4k").split(",")]
    reads = read_share(options)
    read, write = sizes[0], sizes[1] if len(sizes) > 1 and sizes[1] is not None else sizes[0]
    if read is None or write is None:
        return None
    if read == write or reads in (0.0, 1.0):
        return write if reads == 0.0 else read
    return {str(read): reads, str(write): 1 - reads}


def _split(text: str, options: Options) -> dict[str, float] | None:
    """Sizes with their shares; those of writes may stand after a comma. Sizes without a share have alike what is left.

    Examples
    --------
    >>> _split("2k/50:4k/:8k/", {}), _split("4k/100,8k/50:64k/50", {"rw": "randrw", "rwmixread": "50"})
    ({'2048': 50.0, '4096': 25.0, '8192': 25.0}, {'4096': 50.0, '8192': 25.0, '65536': 25.0})
    """
    sides = [_shares(one, options) for one in text.split(",")[:2]]
    reads, writes = sides[0], sides[-1]
    if reads is None or writes is None:
        return None
    share = read_share(options)
    if reads == writes or share in (0.0, 1.0):
        return writes if share == 0.0 else reads
    found: dict[str, float] = {}
    for weights, part in ((reads, share), (writes, 1 - share)):
        for size, weight in weights.items():
            found[size] = found.get(size, 0.0) + weight * part
    return found


def _shares(text: str, options: Options) -> dict[str, float] | None:
    pairs = [piece.partition("/")[::2] for piece in text.split(":")]
    sizes = [size_bytes(size, options) for size, _ in pairs]
    given = [float(share) if re.fullmatch(r"\d{1,3}", share.strip(), re.ASCII) else None for _, share in pairs]
    if None in sizes or any(one is None and share.strip() for one, (_, share) in zip(given, pairs, strict=True)):
        return None
    left = max(100.0 - sum(one or 0.0 for one in given), 0.0) / max(given.count(None), 1)
    found: dict[str, float] = {}
    for size, share in zip(sizes, given, strict=True):
        weight = left if share is None else share
        if weight:
            found[str(size)] = found.get(str(size), 0.0) + weight
    return found or None


def access(options: Options) -> AskedAccess:
    """What is asked for, as keys of `Activity`; block and role are not among them."""
    reads = read_share(options)
    found: AskedAccess = {
        "read_share": reads,
        "random_share": 0.0,
        "io_mode": "direct" if flag(options, "direct") or options.get("buffered") == "0" else "buffered",
    }
    if pattern(options).startswith("rand"):
        percent = number(options, "percentage_random")
        found["random_share"] = 1.0 if percent is None else min(percent, 100.0) / 100
    if _ZIPF.fullmatch(options.get("random_distribution", "")):
        found["skew"] = options["random_distribution"]
    aligned = size_bytes(options.get("ba") or options.get("blockalign") or "", options)
    if aligned:
        found["align_bytes"] = aligned
    return found | (_written(options) if reads < 1 else {})


def _written(options: Options) -> AskedAccess:
    """What writes add: when they are durable, and what they write."""
    found: AskedAccess = {}
    for name in ("fsync", "fdatasync"):
        every = number(options, name)
        if every:
            found |= {"sync": name, "sync_every": int(every)}
    if "sync" not in found and flag(options, "sync"):
        found["sync"] = "dsync"
    if flag(options, "zero_buffers"):
        return found | {"compressible_share": 1.0, "duplicate_share": 1.0}
    compressible, duplicate = number(options, "buffer_compress_percentage"), number(options, "dedupe_percentage")
    if compressible is not None:
        found["compressible_share"] = min(compressible, 100.0) / 100
    if duplicate is not None:
        found["duplicate_share"] = min(duplicate, 100.0) / 100
    return found


def others(options: Options) -> dict[str, str]:
    """Options that change the load in a way that no key of a point has."""
    known = HARMLESS | _UNDERSTOOD
    found = {name: value for name, value in options.items() if name not in known}
    if ":" in (options.get("rw") or options.get("readwrite") or ""):
        found["rw"] = options.get("rw") or options["readwrite"]
    distribution = options.get("random_distribution", "random")
    if distribution != "random" and not _ZIPF.fullmatch(distribution):
        found["random_distribution"] = options["random_distribution"]
    if flag(options, "sync") and options["sync"].strip().lower() != "dsync":
        # O_SYNC brings times of the file along, O_DSYNC does not.
        found["sync"] = options["sync"]
    if "," in (options.get("bs") or options.get("blocksize") or ""):
        found["bs"] = options.get("bs") or options["blocksize"]
    return found
