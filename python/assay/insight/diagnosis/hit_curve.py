"""What more memory would save: the misses at several sizes of the cache where these were recorded, else bounds."""

from __future__ import annotations

import math

import numpy as np

from assay.base.units import format_bytes
from assay.insight.diagnosis.observed import SAMPLES_MIN, Observations, Track


def cache_words(observed: Observations, requests: Track) -> list[str]:
    """What twice the memory would save, in a sentence; nothing where reads are not recorded.

    Misses fall with a power of the cache's size where accesses are skewed (the power law of cache misses: Chow 1974,
    "On optimization of storage hierarchies", IBM J. Res. Dev. 18; Hartstein and others 2006, "Cache miss behavior:"
    " is it
    sqrt(2)?"). With two or more recorded sizes the power is fitted; it is never assumed.
    """
    reads = observed.of(requests, "page_reads_count")
    if reads is None:
        return []
    rate = float(np.nanmean(reads.values))
    sizes = observed.find("cache_bytes", source=requests.source, host=requests.host)
    size = float(np.nanmedian(sizes[0].values)) if sizes else None
    data = observed.find("size_bytes", source=requests.source, host=requests.host)
    total = float(np.nanmax(observed.sum_of(data))) if data else None  # type: ignore[arg-type]
    power = _power(observed, requests, reads)
    if size is not None and power is not None:
        saved = 1.0 - 2.0**-power
        return [
            f"with twice the cache ({format_bytes(int(2 * size))}) the hit curve over the recorded sizes saves"
            f" {saved * 100:.0f} % of {rate:,.0f} page reads/s."
        ]
    if size is not None and total is not None and total <= 2 * size:
        return [f"twice the cache ({format_bytes(int(2 * size))}) holds all {format_bytes(int(total))} of data, so"
                f" that all of {rate:,.0f} page reads/s would be saved once it is warm."]  # fmt: skip
    words = f"twice the cache saves at most {rate:,.0f} page reads/s"
    if size is not None and total is not None:
        words += (
            f"; it would hold {min(2 * size / total, 1) * 100:.0f} % of {format_bytes(int(total))}, and if all pages"
            f" were asked for alike it would save {_uniform(size, total) * 100:.0f} %"
        )
    return [words + ". Record at another size of the cache for the hit curve."]


def _uniform(size: float, total: float) -> float:
    """Share of the misses that twice the cache saves where all pages are asked for alike.

    Examples
    --------
    >>> round(_uniform(20, 100), 3), _uniform(60, 100)
    (0.25, 1.0)
    """
    before, after = 1.0 - size / total, max(1.0 - 2.0 * size / total, 0.0)
    return 1.0 - after / before if before > 0 else 0.0


def _power(observed: Observations, requests: Track, reads: Track) -> float | None:
    """Power of the fall of the miss ratio with the cache's size; None where one size alone was recorded."""
    sizes = observed.find("cache_bytes", source=requests.source, host=requests.host)
    if not sizes:
        return None
    points = []
    values = sizes[0].values
    for size in np.unique(values[np.isfinite(values)]):
        at_size = (values == size) & np.isfinite(reads.values) & (requests.values > 0)
        if at_size.sum() >= SAMPLES_MIN:
            misses = float(np.sum(reads.values[at_size]) / np.sum(requests.values[at_size]))
            if misses > 0:
                points.append((math.log(float(size)), math.log(misses)))
    if len(points) < 2 or points[-1][0] - points[0][0] < math.log(1.2):
        return None
    slope = float(np.polyfit([x for x, _ in points], [y for _, y in points], 1)[0])
    return -slope if slope < 0 else None
