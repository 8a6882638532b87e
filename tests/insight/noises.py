"""Series of figures that never change their level, with the noise that real histories have."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Random = np.random.Generator

DAYS = 365


def _correlated(noise: Numbers, correlation: float) -> Numbers:
    """Noise of which each value keeps a share of the one before it (a first-order process)."""
    made = np.empty_like(noise)
    made[:, 0] = noise[:, 0]
    for day in range(1, noise.shape[1]):
        made[:, day] = correlation * made[:, day - 1] + math.sqrt(1 - correlation**2) * noise[:, day]
    return made


def _with_outliers(noise: Numbers, random: Random, size: float) -> Numbers:
    """Noise with one value in twenty far off, to one side as a disturbed run is."""
    return noise - size * (random.random(noise.shape) < 0.05)


def _normal(random: Random, rows: int, days: int) -> Numbers:
    return random.standard_normal((rows, days))


NOISES: dict[str, Callable[[Random, int, int], Numbers]] = {
    "normal": _normal,
    "neighbours correlate by 0.3": lambda random, rows, days: _correlated(_normal(random, rows, days), 0.3),
    "neighbours correlate by 0.5": lambda random, rows, days: _correlated(_normal(random, rows, days), 0.5),
    "neighbours correlate by 0.7": lambda random, rows, days: _correlated(_normal(random, rows, days), 0.7),
    "5 % outliers of 8 deviations": lambda random, rows, days: _with_outliers(_normal(random, rows, days), random, 8.0),
    "outliers, neighbours correlate by 0.5": lambda random, rows, days: _with_outliers(
        _correlated(_normal(random, rows, days), 0.5), random, 8.0
    ),
    "heavy tails (Student's t of 3)": lambda random, rows, days: random.standard_t(3, (rows, days)),
    "skewed (logarithmic normal)": lambda random, rows, days: np.exp(_normal(random, rows, days)),
    "few different values": lambda random, rows, days: np.round(_normal(random, rows, days)),
    "weekends 3 deviations off": lambda random, rows, days: (
        _normal(random, rows, days) + np.where(np.arange(days) % 7 >= 5, 3.0, 0.0)
    ),
}
