"""What a text that is of no known format comes nearest to, what it lacks, and the command that records it right."""

from __future__ import annotations

import re
from typing import NamedTuple


class _Near(NamedTuple):
    """A program whose output a text looks like."""

    like: re.Pattern[str]
    program: str
    lacks: str
    command: str


def _near(like: str, program: str, lacks: str, command: str) -> _Near:
    return _Near(re.compile(like, re.MULTILINE | re.IGNORECASE), program, lacks, command)


_IOSTAT = "S_TIME_FORMAT=ISO iostat -xt 10 > iostat.txt"
_NO_LATENCY = "it has no latency of devices"
_NOT_LINUX = "Assay knows that of Linux"
_ELSEWHERE = "assay record on a host of Linux"

_NEAR = (
    _near(r"^total-cpu-usage|^----total|\bdsk/total\b", "dstat", _NO_LATENCY, _IOSTAT),
    _near(r"^Total DISK READ|\bDISK READ\s+DISK WRITE\b", "iotop", _NO_LATENCY, _IOSTAT),
    _near(r"^top - \d|^%?Cpu\(s\):", "top", "it says nothing of devices", _IOSTAT),
    _near(r"extended device statistics|\b[aw]svc_t\b", "iostat of Solaris", _NOT_LINUX, _ELSEWHERE),
    _near(r"^System configuration: lcpu|%tm_act\b", "iostat of AIX", _NOT_LINUX, _ELSEWHERE),
    _near(r"KB/t\s+tps\s+MB/s", "iostat of FreeBSD or macOS", _NO_LATENCY, _ELSEWHERE),
    _near(r"\b(rkB|wkB|rsec|wsec|rrqm|wrqm)/s\b|\bavgqu-sz\b", "iostat -x", "its tables have no title lines", _IOSTAT),
    _near(
        r"hammerdb|^Vuser \d+:", "HammerDB", "it holds no result, no counter and no time profile",
        "vuset logtotemp 1; vuset timestamps 1 (the log is /tmp/hammerdb.log)",
    ),
    _near(
        r"^\s*\[global\]|^\s*stonewall\s*$", "a job file of fio", "it holds no results",
        "fio --output-format=json+ --output=fio.json job.fio; or run it here: assay profile --plan job.fio",
    ),
    _near(
        r"^'TEST SETUP ", "a configuration of Iometer", "it holds no results",
        "iometer /c test.icf /r results.csv; or run it here: assay profile PATH --plan test.icf",
    ),
    _near(
        r"^fio-\d|\biodepth=\d+|\bioengine=", "fio", "it holds no results",
        "fio --output-format=json+ --output=fio.json job.fio",
    ),
    _near(
        r"^tps = |^scaling factor:|^transaction type:", "pgbench", "it holds no figures over time",
        "pgbench -P 1 --progress-timestamp ... 2> pgbench.txt",
    ),
    _near(
        r"\bdiskspd\b|^Command Line:.*-[bdo]\d", "DiskSpd", "it holds no table of results",
        "diskspd -Rxml -L ... > diskspd.xml",
    ),
    _near(
        r"\bPhysicalDisk\b", "Perfmon", "its first line is not the header of a log, (PDH-CSV 4.0)",
        "relog in.blg -f csv -o out.csv -y",
    ),
    _near(
        r"\bVolume(Read|Write)(Ops|Bytes)\b|\bVolumeQueueLength\b|\bBurstBalance\b|\b(Read|Write)IOPS\b", "CloudWatch",
        "it is no answer in JSON", "aws cloudwatch get-metric-data --metric-data-queries file://queries.json > cw.json",
    ),
    _near(
        r"\bConsumed Percentage\b|\b(OS|Data) Disk (Queue Depth|Latency|Read|Write)", "Azure Monitor",
        "it is no answer in JSON",
        "az monitor metrics list --resource ID --metrics NAME... --aggregation Average Total --interval PT1M > az.json",
    ),
    _near(
        r"^# (HELP|TYPE) (node|windows|pg|mysql)_|^(node_disk|windows_logical_disk)_\w+\{", "Prometheus",
        "it is of one moment",
        "curl -G http://SERVER:9090/api/v1/query_range --data-urlencode 'query={__name__=~\"node_(disk|cpu)_.+\"}'"
        " -d start=... -d end=... -d step=15 > prometheus.json",
    ),
    _near(
        r"^esxtop|\bDAVG/cmd\b|\bKAVG\b", "esxtop on its screen", "it is no batch file",
        "esxtop -b -a -d 10 -n 360 > esx1.csv",
    ),
)  # fmt: skip


def nearest(head: str) -> str | None:
    """What to say of a text that no importer recognises; None where it looks like nothing that is known.

    Examples
    --------
    >>> nearest("top - 10:00:00 up 3 days")
    'looks like top, but it says nothing of devices; record it with: S_TIME_FORMAT=ISO iostat -xt 10 > iostat.txt'
    """
    found = next((one for one in _NEAR if one.like.search(head)), None)
    if found is None:
        return None
    return f"looks like {found.program}, but {found.lacks}; record it with: {found.command}"
