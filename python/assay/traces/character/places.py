"""Where I/Os go: extents and their skew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assay.record.rows import Integers, Numbers
from assay.traces.ios import Ios

EXTENT_BITS = 20
EXTENTS_MAX = 2**21
"""Extents that are counted; of more, a share that is chosen by hash."""
HOT_SHARES = (0.01, 0.05, 0.1)
DEVICE_BITS = 44
"""A device's number stands above the number of a place."""
_EXACT = 1000
_THETAS = np.arange(0, 2.01, 0.01)
HASH_END = 2**32
Hashes = npt.NDArray[np.uint64]


def hashed(keys: Hashes) -> Hashes:
    """32 mixed bits of each key (the finaliser of SplitMix64, G. Steele and others, 2014)."""
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)


@dataclass(frozen=True)
class ExtentSkew:
    """How unevenly I/Os go to the extents of 1 MiB that were touched.

    Attributes
    ----------
    extents
        How many were touched.
    hot
        The share of the I/Os that goes to the hottest `HOT_SHARES` of them.
    zipf, zipf_error
        The exponent of the Zipf distribution that is nearest, and the largest difference of the two cumulated shares.
    curve
        Shares of extents, the hottest first, with the cumulated shares of I/Os.
    """

    extents: int
    hot: tuple[float, ...]
    zipf: float
    zipf_error: float
    curve: tuple[tuple[float, float], ...]


class Extents:
    """Counts the I/Os that begin in each extent of 1 MiB."""

    def __init__(self) -> None:
        self._keys: list[Hashes] = []
        self._counts: list[Integers] = []
        self._waiting = 0
        self._below = HASH_END

    def add(self, device: Integers, ios: Ios) -> None:
        """Count I/Os; `device` are numbers that stay the same over the trace."""
        moved = ios.size_bytes > 0
        keys = (device[moved].astype(np.uint64) << np.uint64(DEVICE_BITS)) | (
            ios.place_bytes[moved].astype(np.uint64) >> np.uint64(EXTENT_BITS)
        )
        self._put(*np.unique(keys, return_counts=True))
        if self._waiting > 2 * EXTENTS_MAX:
            self._gather()

    def _put(self, keys: Hashes, counts: Integers) -> None:
        if self._below < HASH_END:
            kept = hashed(keys) < self._below
            keys, counts = keys[kept], counts[kept]
        self._keys.append(keys)
        self._counts.append(counts)
        self._waiting += len(keys)

    def _gather(self) -> None:
        keys, places = np.unique(np.concatenate(self._keys), return_inverse=True)
        counts = np.bincount(places, np.concatenate(self._counts)).astype(np.int64)
        while len(keys) > EXTENTS_MAX:
            self._below //= 2
            kept = hashed(keys) < self._below
            keys, counts = keys[kept], counts[kept]
        self._keys, self._counts, self._waiting = [keys], [counts], len(keys)

    def found(self) -> ExtentSkew | None:
        """Give the skew; None where nothing was moved."""
        if not self._keys:
            return None
        self._gather()
        counts = np.sort(self._counts[0])[::-1]
        if not len(counts):
            return None
        cumulated = np.cumsum(counts) / counts.sum()
        ranks = np.unique(np.round(np.geomspace(1, len(counts), 200)).astype(np.int64))
        hot = tuple(float(np.interp(share * len(counts), np.arange(len(counts) + 1), [0.0, *cumulated]))
                    for share in HOT_SHARES)  # fmt: skip
        errors = [np.abs(zipf_shares(ranks, len(counts), theta) - cumulated[ranks - 1]).max() for theta in _THETAS]
        best = int(np.argmin(errors))
        shown = np.append(ranks[: -1 : max(len(ranks) // 60, 1)], len(counts))
        curve = tuple((float(rank / len(counts)), float(cumulated[rank - 1])) for rank in shown)
        extents = round(len(counts) * HASH_END / self._below)
        return ExtentSkew(extents, hot, float(_THETAS[best]), float(errors[best]), curve)


def zipf_shares(ranks: Integers, count: int, theta: float) -> Numbers:
    """The share of the first ranks of `count` in a Zipf distribution; ranks beyond a thousand by the midpoint rule."""
    exact = np.cumsum(np.arange(1, min(_EXACT, count) + 1, dtype=np.float64) ** -theta)

    def until(rank: Numbers) -> Numbers:
        inside = exact[np.minimum(rank, len(exact)).astype(np.int64) - 1]
        low, high = len(exact) + 0.5, np.maximum(rank, len(exact)) + 0.5
        if abs(theta - 1) < 1e-9:
            return np.asarray(inside + np.log(high / low))
        return np.asarray(inside + (high ** (1 - theta) - low ** (1 - theta)) / (1 - theta))

    return until(ranks.astype(np.float64)) / until(np.array([float(count)]))
