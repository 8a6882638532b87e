"""How soon blocks come again: hit curve of a cache, overwrites, reads of what was written, and the footprint.

References to blocks of 4 KiB are sampled by a hash of the block, as SHARDS does (C. Waldspurger and others, "Efficient
MRC Construction with SHARDS", FAST 2015): of a sampled block all references are kept, and distances among them are
those of the whole over the rate. The size is fixed: the rate is halved whenever the sample is full, and what is kept
is filtered by the new rate, so that in the end all of it has one rate. Fewer or more references than expected are
corrected in the first bucket (SHARDS-adj). Hashes are of extents of 1 MiB and of a block's place within (`_rank`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assay.record.rows import Flags, Integers, Numbers
from assay.traces.character.places import DEVICE_BITS, HASH_END, Hashes, hashed
from assay.traces.ios import IoFlag, Ios

BLOCK_BITS = 12
BLOCK = 2**BLOCK_BITS
REFERENCES_MAX = 2**19
"""References that are kept: about 20 MB, and a second to work out."""
AT_ONCE = 2**22
EXTENT_BITS = 8
EXTENT_BLOCKS = 2**EXTENT_BITS
_REVERSED = np.array([int(f"{place:0{EXTENT_BITS}b}"[::-1], 2) for place in range(EXTENT_BLOCKS)], np.uint64)
HOUR_NS = 36 * 10**11
PERCENTILES = (10, 50, 90)


@dataclass(frozen=True)
class UsedAgain:
    """Blocks that come again: the share of the references that do, and after how long (`PERCENTILES`), ns."""

    share: float
    after_ns: tuple[float, ...]


@dataclass(frozen=True)
class Reuse:
    """How the trace uses blocks again.

    Attributes
    ----------
    rate
        The share of blocks that was sampled.
    read_bytes, written_bytes, touched_bytes
        Distinct bytes that were read, written, and either.
    hits
        Sizes of a cache that keeps what was used last (LRU), reads and writes, with the share of reads that it serves.
    first_reads
        The share of read blocks that were never touched before in the trace: these miss in every cache.
    overwritten, read_back
        Writes of blocks whose last use was a write, and reads of such.
    by_hour
        Distinct bytes read and written in each hour that has any, with its number from the trace's start.
    """

    rate: float
    read_bytes: float
    written_bytes: float
    touched_bytes: float
    hits: tuple[tuple[float, float], ...]
    first_reads: float | None
    overwritten: UsedAgain | None
    read_back: UsedAgain | None
    by_hour: tuple[tuple[int, float, float], ...]


class SampledBlocks:
    """Keeps references to blocks that are chosen by a hash."""

    def __init__(self, references_max: int = REFERENCES_MAX) -> None:
        self._max = references_max
        self._below = HASH_END
        self._parts: list[tuple[Hashes, Integers, Flags]] = []
        self._kept = 0
        self.reads = self.writes = 0

    @property
    def rate(self) -> float:
        """The share of blocks that is sampled."""
        return self._below / HASH_END

    def add(self, device: Integers, ios: Ios) -> None:
        """Take reads and writes; `device` are numbers that stay the same over the trace."""
        moved = ((ios.flags & np.uint16(IoFlag.READ | IoFlag.WRITE)) != 0) & (ios.size_bytes > 0)
        first = ios.place_bytes[moved] >> BLOCK_BITS
        blocks = ((ios.place_bytes[moved] + ios.size_bytes[moved] - 1) >> BLOCK_BITS) - first + 1
        write, t_ns, device = ios.has(IoFlag.WRITE)[moved], ios.t_ns[moved], device[moved]
        self.writes += int(blocks[write].sum())
        self.reads += int(blocks[~write].sum())
        device_keys = device.astype(np.uint64) << np.uint64(DEVICE_BITS + 8)
        begin = 0
        while begin < len(blocks):
            cost = np.cumsum(np.minimum(blocks[begin:], _cost_by_extents(blocks[begin:], self._halvings)))
            end = begin + max(int(np.searchsorted(cost, AT_ONCE, "right")), 1)
            chosen = slice(begin, end)
            self._take(device_keys[chosen], first[chosen], blocks[chosen], t_ns[chosen], write[chosen])
            begin = end

    @property
    def _halvings(self) -> int:
        return (HASH_END // self._below).bit_length() - 1

    def _take(self, device: Hashes, first: Integers, blocks: Integers, t_ns: Integers, write: Flags) -> None:
        is_long = _cost_by_extents(blocks, self._halvings) < blocks
        row, keys = _all_blocks(device, first, blocks, np.flatnonzero(~is_long))
        kept = _rank(keys) < self._below
        row, keys = row[kept], keys[kept]
        if is_long.any():
            more, more_keys = _sampled_blocks(device, first, blocks, np.flatnonzero(is_long), self._halvings)
            row, keys = np.concatenate([row, more]), np.concatenate([keys, more_keys])
            order = np.argsort(row, kind="stable")
            row, keys = row[order], keys[order]
        self._parts.append((keys, t_ns[row], write[row]))
        self._kept += len(row)
        while self._kept > self._max:
            self._below //= 2
            keys, t_kept, write_kept = self.references()
            chosen = _rank(keys) < self._below
            self._parts = [(keys[chosen], t_kept[chosen], write_kept[chosen])]
            self._kept = int(chosen.sum())

    def references(self) -> tuple[Hashes, Integers, Flags]:
        """Give block, time and whether it is a write, of each reference that is kept, in order."""
        if not self._parts:
            return np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.bool_)
        keys, times, writes = zip(*self._parts, strict=True)
        return np.concatenate(keys), np.concatenate(times), np.concatenate(writes)

    def found(self) -> Reuse | None:
        """Give what the sample says; None where nothing was read or written."""
        keys, t_ns, write = self.references()
        if not len(keys):
            return None
        before = previous(keys)
        again = before >= 0
        distances = reuse_distances(before)
        scale = BLOCK / self.rate
        was_write = np.zeros(len(keys), np.bool_)
        was_write[again] = write[before[again]]
        read = ~write
        distinct = [_distinct(keys[one]) * scale for one in (read, write, slice(None))]
        return Reuse(
            rate=self.rate, read_bytes=distinct[0], written_bytes=distinct[1], touched_bytes=distinct[2],
            hits=self._hits(distances[read & again], int(read.sum()), distinct[2]),
            first_reads=float((read & ~again).sum() / read.sum()) if read.any() else None,
            overwritten=_again(write & again & was_write, write, t_ns, before),
            read_back=_again(read & again & was_write, read, t_ns, before),
            by_hour=_by_hour(keys, t_ns // HOUR_NS, write, scale),
        )  # fmt: skip

    def _hits(self, distances: Integers, sampled: int, touched_bytes: float) -> tuple[tuple[float, float], ...]:
        if not self.reads or not sampled:
            return ()
        expected = self.reads * self.rate
        steps = [2.0**power * factor for power in range(20, 64) for factor in (1, 1.5)]
        sizes = np.array([*(one for one in steps if one < touched_bytes), touched_bytes])
        # A block is still there if fewer distinct ones were used since than the cache holds.
        needed = (np.sort(distances) + 1) * BLOCK / self.rate
        hits = np.searchsorted(needed, sizes * (1 + 1e-9), "right") + (expected - sampled)
        shares = np.clip(hits / expected, 0.0, 1.0)
        return tuple(zip(sizes.tolist(), shares.tolist(), strict=True))


def _rank(keys: Hashes) -> Hashes:
    """The hash that decides on a block: its extent's, with the block's place within the extent in the highest bits.

    With the bits of the place reversed, a sample at a rate of 2**-n, n up to 8, has every 2**n-th block of each extent,
    from a first one that the extent's hash decides. So the blocks of a long I/O need not be looked at one by one.
    """
    places = _REVERSED[(keys & np.uint64(EXTENT_BLOCKS - 1)).astype(np.intp)]
    return hashed(keys >> np.uint64(EXTENT_BITS)) ^ (places << np.uint64(32 - EXTENT_BITS))


def _stride(halvings: int) -> int:
    return 1 << min(halvings, EXTENT_BITS)


def _cost_by_extents(blocks: Integers, halvings: int) -> Integers:
    """Blocks and extents that are looked at, at most, where I/Os of so many blocks are gone through by extents."""
    cost: Integers = ((blocks >> EXTENT_BITS) + 2) * (EXTENT_BLOCKS // _stride(halvings))
    return cost


def _runs(counts: Integers) -> tuple[Integers, Integers]:
    """The number of its run and the place within it, for each member of runs of so many members."""
    run = np.repeat(np.arange(len(counts)), counts)
    return run, np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)


def _all_blocks(device: Hashes, first: Integers, blocks: Integers, own: Integers) -> tuple[Integers, Hashes]:
    """The row and the key of every block of the I/Os of these rows."""
    run, within = _runs(blocks[own])
    row = own[run]
    return row, device[row] ^ (first[row] + within).astype(np.uint64)


def _sampled_blocks(
    device: Hashes, first: Integers, blocks: Integers, own: Integers, halvings: int
) -> tuple[Integers, Hashes]:
    """The row and the key of the blocks that a sample at 2**-`halvings` has of the I/Os of these rows."""
    last = first[own] + blocks[own] - 1
    run, within = _runs((last >> EXTENT_BITS) - (first[own] >> EXTENT_BITS) + 1)
    extent = (first[own] >> EXTENT_BITS)[run] + within
    mixed = hashed((device[own][run] >> np.uint64(EXTENT_BITS)) ^ extent.astype(np.uint64))
    if halvings > EXTENT_BITS:
        kept = mixed & np.uint64(2 ** (32 - EXTENT_BITS) - 1) < np.uint64(HASH_END >> halvings)
        run, extent, mixed = run[kept], extent[kept], mixed[kept]
    stride = _stride(halvings)
    phase = _REVERSED[(mixed >> np.uint64(32 - EXTENT_BITS)).astype(np.intp)].astype(np.int64) & (stride - 1)
    of_extent, step = _runs(np.full(len(extent), EXTENT_BLOCKS // stride))
    block = (extent[of_extent] << EXTENT_BITS) + phase[of_extent] + step * stride
    run = run[of_extent]
    inside = (block >= first[own][run]) & (block <= last[run])
    row = own[run[inside]]
    return row, device[row] ^ block[inside].astype(np.uint64)


def previous(keys: Hashes) -> Integers:
    """The place of the last reference to the same block before each reference; -1 where there is none.

    Examples
    --------
    >>> previous(np.array([7, 8, 7, 7], np.uint64)).tolist()
    [-1, -1, 0, 2]
    """
    order = np.argsort(keys, kind="stable")
    found = np.full(len(keys), -1, np.int64)
    same = keys[order[1:]] == keys[order[:-1]]
    found[order[1:][same]] = order[:-1][same]
    return found


def reuse_distances(before: Integers) -> Integers:
    """How many distinct blocks were referred to since the last reference to the same block (-1 where there is none).

    Of the references since, those whose own predecessor lies there as well are no further block; they are the larger
    values of `before` among the earlier references.

    Examples
    --------
    >>> reuse_distances(np.array([-1, -1, 0, 2, 1])).tolist()
    [-1, -1, 1, 0, 1]
    """
    distances = np.arange(len(before)) - before - 1 - larger_before(before + 1)
    return np.where(before < 0, -1, distances)


def larger_before(values: Integers) -> Integers:
    """How many of the values before each one are larger; bit by bit, so that nothing is a loop over values.

    Examples
    --------
    >>> larger_before(np.array([3, 1, 2, 0, 2])).tolist()
    [0, 1, 1, 3, 1]
    """
    found = np.zeros(len(values), np.int64)
    if not len(values):
        return found
    for bit in range(int(values.max()).bit_length()):
        order = np.argsort(values >> (bit + 1), kind="stable")
        ordered = values[order]
        ones = (ordered >> bit) & 1
        before = np.cumsum(ones) - ones
        group = ordered >> (bit + 1)
        first = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
        base = np.repeat(before[first], np.diff(np.append(first, len(group))))
        found[order] += np.where(ones == 0, before - base, 0)
    return found


def _distinct(keys: npt.NDArray[np.uint64]) -> int:
    return len(np.unique(keys))


def _by_hour(keys: Hashes, hours: Integers, write: Flags, scale: float) -> tuple[tuple[int, float, float], ...]:
    used = np.unique(hours)
    counts = np.zeros((2, len(used)), np.int64)
    for way, own in enumerate((~write, write)):
        order = np.lexsort((keys[own], hours[own]))
        hour, key = hours[own][order], keys[own][order]
        first = np.ones(len(hour), np.bool_)
        first[1:] = (hour[1:] != hour[:-1]) | (key[1:] != key[:-1])
        np.add.at(counts[way], np.searchsorted(used, hour[first]), 1)
    read_bytes, written_bytes = (counts * scale).tolist()
    return tuple(zip(used.tolist(), read_bytes, written_bytes, strict=True))


def _again(chosen: Flags, of: Flags, t_ns: Integers, before: Integers) -> UsedAgain | None:
    if not of.any():
        return None
    waited: Numbers = (t_ns[chosen] - t_ns[before[chosen]]).astype(np.float64)
    after = tuple(np.percentile(waited, PERCENTILES).tolist()) if len(waited) else ()
    return UsedAgain(float(chosen.sum() / of.sum()), after)
