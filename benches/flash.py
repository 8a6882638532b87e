"""Published figures of drives of flash beside the models' of the catalogue; kept as benches/results/flash.md.

Each figure was fitted to (the drive's file says how) or is predicted. Loads are those of the source: 4 KiB at random
over the whole drive, after random writes without end, unless the row says otherwise.

    python benches/flash.py [--only pe8110-960]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from assay.record.shapes.point import Point
from assay.run.simulate import simulate_load
from assay.targets.arrays.model.configuration import Configuration, configure

RESULT = Path(__file__).resolve().parent / "results" / "flash.md"
SHEET, IQ, REVIEW = "data sheet", "SSD-iq", "review"
READS_PER_S = 5_500
"""Reads of the latency thread of SSD-iq beside the writes: 5,000 to 6,000 a second."""
IQ_HOST = {"links.latency": "3us"}
"""SSD-iq looks for completions without sleeping; other hosts take an interrupt, as the catalogue has it."""
FITTED = True
PERCENTILES = ("p50", "p99", "p99_9")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A published figure, and the load that it is of."""

    drive: str
    kind: str
    what: str
    published: float
    source: str
    fitted: bool = False
    published_most: float = 0.0
    """The upper end, where a range was published."""
    side: str = "total"
    figure: str = "iops"
    load: dict[str, object] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    seconds: float = 3.0


def most(
    drive: str, read_share: float, published: float, *, fitted: bool, source: str = SHEET, **more: object
) -> Figure:
    """I/Os a second with 512 outstanding."""
    load = {"block_bytes": "4K", "read_share": read_share, "queue_depth": 512, **more}
    kind = {0.0: "random write", 1.0: "random read, high queue depth"}.get(read_share, "70/30")
    what = f"{'reads' if read_share == 1 else 'writes' if read_share == 0 else '70/30'}, 512 outstanding"
    return Figure(
        drive=drive, kind=kind, what=what, published=published, source=source, fitted=fitted, load=load, seconds=1.0
    )


def alone(drive: str, read_share: float, published_us: float, *, fitted: bool = False) -> Figure:
    """Mean latency of one I/O after the other, of the data sheet."""
    load = {"block_bytes": "4K", "read_share": read_share, "queue_depth": 1}
    side = "read" if read_share else "write"
    return Figure(
        drive=drive, kind=f"{side}, queue depth 1", what=f"one {side} after the other, us", published=published_us,
        source=SHEET, fitted=fitted, side=side, figure="mean", load=load,
    )  # fmt: skip


def beside(
    drive: str, writes_k: int, read_us: tuple[float, ...], fitted: tuple[bool, ...] = (False,) * 3
) -> Iterator[Figure]:
    """Latencies of reads beside writes at a rate, in microseconds: median, p99, p99.9."""
    rate = writes_k * 1000 + READS_PER_S
    load = {"block_bytes": "4K", "read_share": READS_PER_S / rate, "rate": rate, "arrivals": "poisson"}
    for name, published, is_fitted in zip(PERCENTILES, read_us, fitted, strict=True):
        yield Figure(
            drive=drive, kind=f"read {name.replace('_', '.')} beside writes",
            what=f"read {name.replace('_', '.')} beside {writes_k} K writes/s, us", published=published, source=IQ,
            fitted=is_fitted, side="read", figure=name, load=load, options=IQ_HOST,
        )  # fmt: skip


def namespaces() -> Iterator[Figure]:
    """Compare the 7450 MAX at six sizes of its namespace; the rest of the drive is trimmed."""
    sizes = [(372.6, 306.6, True), (447.1, 281.3, False), (521.6, 254.5, True), (596.2, 221.3, False),
             (670.7, 193.0, False), (745.2, 159.6, True)]  # fmt: skip
    for gib, writes_k, fitted in sizes:
        rest = {"disk.trimmed": f"{1 - gib / 745.2:.4f}", "volume_size": f"{int(gib * 1024)}MiB"}
        yield Figure(
            drive="micron-7450-max-800", kind="random write", what=f"writes to {gib} GiB, 512 outstanding",
            published=writes_k * 1e3, source=IQ, fitted=fitted,
            load={"block_bytes": "4K", "read_share": 0.0, "queue_depth": 512},
            options=rest if gib < 745.2 else {},
        )  # fmt: skip


def client(drive: str, what: str, published: float, seconds: float, fitted: bool, warmup_s: float = 0.0) -> Figure:
    """Sequential writes of 128 KiB to a fresh client drive, bytes a second."""
    load = {"block_bytes": "128K", "read_share": 0.0, "random_share": 0.0, "queue_depth": 32, "warmup_s": warmup_s}
    return Figure(
        drive=drive, kind="client drive, sequential write", what=f"{what}, GB/s", published=published, source=REVIEW,
        fitted=fitted, figure="bytes_per_s", load=load, options={"state": "fresh"}, seconds=seconds,
    )  # fmt: skip


def flushed(drive: str, published_us: float, most_us: float = 0.0) -> Figure:
    """A write of 16 KiB with a flush, one after the other."""
    load = {"block_bytes": "16K", "read_share": 0.0, "queue_depth": 1, "sync": "fsync"}
    return Figure(
        drive=drive, kind="flush", what=f"16 KiB write with a flush{f', to {most_us:g}' if most_us else ''}, us",
        published=published_us, published_most=most_us, source=REVIEW,
        side="write", figure="mean", load=load,
    )  # fmt: skip


FIGURES = (
    *namespaces(),
    most("micron-7450-pro-960", 0, 94e3, fitted=False, source=IQ),
    most("micron-7450-pro-960", 0, 85e3, fitted=False),
    *beside("micron-7450-max-800", 10, (65, 161, 388)),
    *beside("micron-7450-pro-960", 10, (65, 232, 427)),
    *beside("micron-7450-pro-960", 30, (75, 384, 663)),
    alone("micron-7450-pro-960", 1, 80), alone("micron-7450-pro-960", 0, 15, fitted=FITTED),
    most("pe8110-960", 1, 900e3, fitted=FITTED), most("pe8110-960", 0, 70e3, fitted=FITTED),
    most("pe8110-960", 0, 84e3, fitted=False, source=IQ),
    *beside("pe8110-960", 10, (56, 315, 457), (FITTED,) * 3),
    *beside("pe8110-960", 50, (146, 419, 548), (FITTED,) * 3),
    alone("pe8110-960", 1, 75),
    Figure(drive="pe8110-960", kind="writes beside reads", what="writes beside 5.5 K reads/s, share of those alone",
           published=79 / 84, source=IQ, fitted=FITTED, side="write", figure="share_of_alone",
           load={"block_bytes": "4K", "read_share": 0.0651, "queue_depth": 384}),
    most("pm9a3-960", 1, 580e3, fitted=FITTED), most("pm9a3-960", 0, 70e3, fitted=FITTED),
    most("pm9a3-960", 0, 71e3, fitted=False, source=IQ),
    *beside("pm9a3-960", 10, (64, 237, 393), (FITTED,) * 3),
    *beside("pm9a3-960", 50, (104, 372, 529)),
    most("d7-p5520-1920", 1, 700e3, fitted=FITTED), most("d7-p5520-1920", 0, 114e3, fitted=FITTED),
    most("d7-p5520-1920", 0, 130e3, fitted=False, source=IQ),
    *beside("d7-p5520-1920", 10, (70, 255, 410), (FITTED, False, False)),
    *beside("d7-p5520-1920", 50, (118, 424, 543)),
    *beside("d7-p5520-1920", 100, (140, 465, 613)),
    alone("d7-p5520-1920", 1, 75), alone("d7-p5520-1920", 0, 15),
    most("cm7-r-3840", 1, 2700e3, fitted=FITTED), most("cm7-r-3840", 0, 310e3, fitted=FITTED),
    most("cm7-r-3840", 0, 329e3, fitted=False, source=IQ),
    *beside("cm7-r-3840", 50, (73, 500, 740)),
    *beside("cm7-r-3840", 100, (74, 560, 1106)),
    most("wd-dc-960", 0, 47e3, fitted=FITTED, source=IQ),
    *beside("wd-dc-960", 10, (84, 362, 565), (FITTED, False, False)),
    *beside("wd-dc-960", 40, (192, 559, 786)),
    most("micron-9550-max-6400", 1, 3300e3, fitted=FITTED), most("micron-9550-max-6400", 0, 640e3, fitted=FITTED),
    most("micron-9550-max-6400", 0.7, 720e3, fitted=False),
    alone("micron-9550-max-6400", 1, 60, fitted=FITTED), alone("micron-9550-max-6400", 0, 15),
    most("d5-p5336-61440", 1, 1005e3, fitted=FITTED),
    most("d5-p5336-61440", 0, 38e3, fitted=FITTED, block_bytes="16K"),
    client("980-pro-1tb", "first 20 s of a fill", 4.0, 20, FITTED),
    client("980-pro-1tb", "after the fast phase", 1.5, 10, FITTED, warmup_s=60),
    client("980-pro-1tb", "mean of a whole fill", 1.9, 620, False),
    client("sn850x-2tb", "first 20 s of a fill", 5.3, 20, FITTED),
    client("p41-plus-1tb", "first 20 s of a fill", 3.0, 20, FITTED),
    client("p41-plus-1tb", "after the fast phase", 0.26, 10, FITTED, warmup_s=60),
    flushed("980-pro-1tb", 891), flushed("pm9a3-960", 12, 58), flushed("d7-p5520-1920", 12, 58),
)  # fmt: skip


def model_of(figure: Figure) -> float:
    """The model's figure, in the unit of the published one."""
    options = {"volumes": "1", **({} if "volume_size" in figure.options else {"fill": "1"}), **figure.options}
    array: Configuration = configure(figure.drive, options)
    activity = {"random_share": 1.0, **figure.load}
    warmup_s = float(str(activity.pop("warmup_s", 1.0)))
    point: Point = simulate_load(array, [activity], warmup_s=warmup_s, duration_s=figure.seconds)
    side = point[figure.side]
    if figure.figure == "iops":
        return float(side["iops"])
    if figure.figure == "share_of_alone":
        writes = {**activity, "read_share": 0.0}
        bare: Point = simulate_load(array, [writes], warmup_s=warmup_s, duration_s=figure.seconds)
        return float(side["iops"]) / float(bare["write"]["iops"])
    if figure.figure == "bytes_per_s":
        return float(side["bytes_per_s"]) / 1e9
    return float(side["latency_ns"][figure.figure]) / 1e3


def main() -> None:
    """Ask the models and keep the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", help="one drive; nothing is kept")
    only = arguments.parse_args().only
    rows, errors = [], {}
    for one in FIGURES:
        if only not in (None, one.drive):
            continue
        found = model_of(one)
        # A published range counts by the end that is nearer.
        nearest = min(max(found, one.published), one.published_most or one.published)
        error = found / nearest - 1
        rows.append(
            f"| {one.drive} | {one.what} | {one.source} | {one.published:,.6g} | {found:,.4g} | {error:+.0%} |"
            f" {'fitted' if one.fitted else 'predicted'} |"
        )
        print(rows[-1], flush=True)
        errors.setdefault((one.kind, one.fitted), []).append(abs(error))
    lines = ["# Published figures of drives of flash beside the models'", "", "`python benches/flash.py`", ""]
    lines += ["| figures | fitted or predicted | number | mean error | worst error |", "|---|---|---|---|---|"]
    for (kind, fitted), found in sorted(errors.items(), key=lambda item: (item[0][1], item[0][0])):
        word = "fitted" if fitted else "predicted"
        lines.append(f"| {kind} | {word} | {len(found)} | {sum(found) / len(found):.0%} | {max(found):.0%} |")
    lines += ["", "| drive | figure | source | published | model | error | |", "|---|---|---|---|---|---|---|", *rows]
    print("\n".join(lines))
    if only is None:
        RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
