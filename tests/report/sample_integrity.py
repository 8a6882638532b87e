"""Sample integrity runs in the form of docs/integrity.md: one that passed, one with a finding of every kind."""

from __future__ import annotations

from typing import Any

from sample import START_NS, Sample, small, volume

PAGE, SECTOR = 8192, 512
NAMES = ("torn", "lost", "misdirected_write", "misdirected_read", "corrupt", "short_read", "log_break", "io_error",
         "long_io")  # fmt: skip
DATA, LOG = "assay.data", "assay.base.log"
PHASES = (("prepare", 21.0, 0, 262_144), ("stress", 60.0, 640_000, 410_000), ("checkpoint", 4.0, 0, 21_500),
          ("audit", 19.0, 262_144, 0))  # fmt: skip
UNDERSTOOD = ["sqliosim.cfg: 41 keys read", "CacheHitRatio=1000: 10 % of reads are answered by the pool",
              "ErrorFile: errors.xml in the run's folder"]  # fmt: skip


def counts(**found: int) -> dict[str, int]:
    return {name: found.get(name, 0) for name in NAMES}


def plan() -> dict[str, Any]:
    numbers = {"random": -1, "audit": 2, "read_ahead": 2, "bulk_update": 0, "shrink": 1}
    return {"kind": "integrity", "name": "default", **{name: {"users": number} for name, number in numbers.items()}}


def add_phases(sample: Sample) -> list[dict[str, Any]]:
    """Points of one cycle, and the phases that name them."""
    phases = []
    for name, seconds, verified, written in PHASES:
        sample.seconds = seconds
        read = sample.direction(verified / seconds / 4, PAGE * 4, 2.1e6)
        write = sample.direction(written / seconds / 4, PAGE * 4, 3.4e6)
        workload = {"kind": "integrity", "name": name}
        steady = {"reached": False, "window_s": seconds, "slope_share": None, "half_width_share": None}
        point = sample.point("integrity", workload, {"kind": "integrity"}, read, write, warmup_s=0.0, steady=steady,
                             purpose="grid", ended_by="time")  # fmt: skip
        phases.append({"name": name, "cycle": 1, "seconds": seconds, "point_id": point["id"],
                       "pages_verified": verified, "pages_written": written})  # fmt: skip
    return phases


def integrity(phases: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    verified, written = (sum(phase[key] for phase in phases) for key in ("pages_verified", "pages_written"))
    return {
        "passed": True, "audited": True, "findings": counts(), "transient": counts(), "persistent": counts(),
        "injected": None, "observable": None, "masked": None, "seed": 7, "run_identity": "9f3c51d0a7e24b88",
        "cycles": 1, "pages": 262_144, "pages_verified": verified, "bytes_verified": verified * PAGE,
        "pages_written": written, "bytes_written": written * PAGE, "expected_state_bytes": 262_144 * 24,
        "log_blocks": 81_920, "resizes": 3, "stopped_on_error": False, "phases": phases,
        "files": [file(DATA, 2 * 2**30, average=38.0), file(LOG, 2**28, log=True, average=131.0)],
        "understood": [], "details": [], "details_left_out": 0, "evidence": "evidence", "error_log": "errors.xml",
        **fields,
    }  # fmt: skip


def file(name: str, size: int, *, average: float, log: bool = False) -> dict[str, Any]:
    return {"name": name, "path": f"/srv/db/{name}", "log": log, "size_bytes": size, "target_io_ms": 100,
            "average_io_ms": average, "throttled": 31 if average > 100 else 0, "reads": 0 if log else 181_000,
            "scatter_reads": 0 if log else 44_000, "writes": 92_000, "gather_writes": 0 if log else 12_700,
            "io_time_ms": 5_412_000.0, "slowest_io_ms": 1604.2}  # fmt: skip


def unit(first: int, last: int, state: str, generation: int | None = None, **place: Any) -> dict[str, Any]:
    return {"first": first, "last": last, "state": state, "file": None, "page": None, "generation": generation, **place}


def finding(number: int, kind: str, page: int, units: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    log = fields.get("file") == LOG
    length = SECTOR if log else PAGE
    wrong = [[one["first"] * 512, (one["last"] + 1) * 512] for one in units if one["state"] != "expected"]
    return {
        "id": f"F{number:04d}", "kind": kind, "also": [], "persistent": True, "file": DATA, "page": page,
        "offset_bytes": page * length, "length_bytes": length, "phase": "stress", "cycle": 1,
        "found_utc_ns": START_NS + (24 + 4 * number) * 10**9, "by": f"audit {number % 2 + 1}", "rereads": 15,
        "explanation": "", "units": units, "ranges": wrong, "differing_bytes": sum(b - a for a, b in wrong),
        "expected": {"file": DATA, "page": page, "generation": 7, "written_utc_ns": START_NS + 23_250_000_000,
                     "writer": 12, "lsn": 88_213, "checksum": 0x1A2B3C4D},
        "elsewhere": None, "operation": None, "errno": None, "evidence": f"evidence/F{number:04d}", **fields,
    }  # fmt: skip


def every_kind() -> list[dict[str, Any]]:
    """Twelve findings: every name, persistent and transient."""
    older = [unit(0, 15, "older", 6)]
    return [
        finding(1, "torn", 4711, [unit(0, 7, "expected"), unit(8, 15, "older", 6)],
                explanation="The first 8 of 16 units are of generation 7, the others of generation 6."),
        finding(2, "lost", 90, older, also=["misdirected_write"],
                explanation="Every unit is of generation 6; generation 7 was acknowledged."),
        finding(3, "lost", 91, older, persistent=False, rereads=2, explanation="A stale read: the next was right."),
        finding(4, "misdirected_write", 12_000, [unit(0, 15, "foreign", 3, file=DATA, page=12_008)],
                elsewhere={"file": DATA, "page": 12_008},
                explanation="The page holds what was written for page 12,008, whose own place is one write behind."),
        finding(5, "misdirected_read", 77, [unit(0, 15, "foreign", 2, file=DATA, page=79)], persistent=False,
                rereads=1, explanation="One read returned page 79."),
        finding(6, "corrupt", 3, [unit(0, 4, "expected"), unit(5, 5, "corrupt"), unit(6, 15, "expected")],
                ranges=[[2604, 2605], [2611, 2612]], differing_bytes=2, explanation="Two bits of unit 5 differ."),
        finding(7, "corrupt", 5, [unit(0, 1, "expected"), unit(2, 3, "corrupt"), unit(4, 15, "expected")],
                ranges=[[1024 + 40 * n, 1030 + 40 * n] for n in range(9)], differing_bytes=54, persistent=False,
                rereads=1),
        finding(8, "short_read", 640, [unit(0, 11, "expected"), unit(12, 15, "not read")], persistent=False,
                rereads=1, explanation="The last 4 units still hold the pattern of the buffer."),
        finding(9, "log_break", 1999, [unit(0, 0, "older", 0)], file=LOG, also=["misdirected_write"], by="audit 1",
                explanation="The block holds bytes from before the run, while later blocks are stored."),
        finding(10, "io_error", 8, [], operation="read", errno=5, length_bytes=262_144, persistent=False, rereads=1,
                differing_bytes=0, expected=None, evidence=None),
        finding(11, "long_io", 9, [], operation="write", persistent=False, rereads=0, differing_bytes=0, file=LOG,
                expected=None, evidence=None, explanation="Outstanding for 16.2 s."),
        finding(12, "torn", 4800, [unit(0, 0, "older", 6), unit(1, 3, "expected"), unit(4, 4, "foreign", 1),
                unit(5, 9, "expected"), unit(10, 10, "corrupt"), unit(11, 15, "not read")], phase="audit"),
    ]  # fmt: skip


def assess(details: list[dict[str, Any]] | None = None) -> tuple[Sample, dict[str, Any]]:
    """A whole examination with an integrity part, and the fields of its manifest; findings count from that part."""
    sample = small()
    began_ns = sample.now_ns - START_NS
    phases = add_phases(sample)
    late = [{**one, "found_utc_ns": one["found_utc_ns"] + began_ns} for one in details or []]
    parts = [*sample.manifest()["parts"], {"name": "integrity", "title": "Integrity", "planned_s": 120.0,
                                           "spent_s": 104.0, "plan": plan()}]  # fmt: skip
    return sample, {"integrity": integrity(phases, **(failed_fields(late) if late else {})), "parts": parts}


def failed_fields(details: list[dict[str, Any]]) -> dict[str, Any]:
    """Fields of `integrity` that follow from the findings."""

    def count(chosen: list[dict[str, Any]]) -> dict[str, int]:
        return counts(**{name: sum(detail["kind"] == name for detail in chosen) for name in NAMES})

    return {"passed": False, "audited": False, "details": details, "findings": count(details),
            "persistent": count([detail for detail in details if detail["persistent"]]),
            "transient": count([detail for detail in details if not detail["persistent"]])}  # fmt: skip


def verify(**fields: Any) -> tuple[Sample, dict[str, Any]]:
    """A run of `assay verify`: its sample and the fields of its manifest."""
    sample = Sample(11)
    found = integrity(add_phases(sample), **fields)
    volumes = [volume(DATA, f"/srv/db/{DATA}"), volume(LOG, f"/srv/db/{LOG}") | {"role": "log"}]
    target = {"volumes": volumes, "cache_notice": "caches between host and disk are not excluded"}
    command = ["verify", "/srv/db", "--config", "sqliosim.cfg"]
    manifest = {"verb": "verify", "command": command, "plan": plan(), "parts": [], "target": target,
                "cache_span": None, "integrity": found}  # fmt: skip
    return sample, manifest


def passed_run() -> tuple[Sample, dict[str, Any]]:
    return verify(understood=UNDERSTOOD)


def failed_run() -> tuple[Sample, dict[str, Any]]:
    """A run on a faulty target with a finding of every kind, and one masked fault."""
    fields = failed_fields(every_kind())
    masked = counts(corrupt=1, torn=2)
    injected = {name: fields["findings"][name] + masked[name] for name in NAMES}
    return verify(**fields, injected=injected, observable=fields["findings"], masked=masked)
