"""The processor's own unit of time: by it, CPU time of the generator compares between machines."""

from __future__ import annotations

import random
import time
from statistics import median

_WORD_COUNT = 2048
"""Words of a round: their bytes and the state of the generator of numbers stay in the first cache."""
_ROUND_COUNT = 31


def cpu_unit_ns() -> float:
    """CPU time of this thread for 32 random bits of the Mersenne Twister, ns: the median of rounds, about 1 ms in all.

    The calculation is the same on every machine: integers without branches, in C, of CPython's module `random`, whose
    sequence is fixed (M. Matsumoto and T. Nishimura, ACM TOMACS 8, 1998). Nothing of Assay is in it.
    """
    numbers = random.Random(1)
    rounds = []
    for _ in range(_ROUND_COUNT):
        begin_ns = time.thread_time_ns()
        numbers.randbytes(4 * _WORD_COUNT)
        rounds.append((time.thread_time_ns() - begin_ns) / _WORD_COUNT)
    return median(rounds)
