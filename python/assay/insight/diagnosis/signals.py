"""Signals: what crosses a threshold, where it does so, and whose threshold it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assay.base.units import format_bytes, format_latency
from assay.document.text import joined
from assay.insight.diagnosis.observed import SAMPLES_MIN, Flags, Numbers, Observations, Track
from assay.insight.diagnosis.recurrence import recurrence_of

WINDOW_S = 600.0
"""Signals are judged over the worst window of this length: ten bad minutes of a day are enough for a cause."""

HOLD_SHARE = 0.5
"""Share of the worst window in which signals must hold together."""

WARM_SHARE = 0.1
"""Share of the worst window from which a cell is warm, and a strong signal is told: single steps are no finding."""

ALONE = 0.25
"""Confidence in a cause of which one strong signal alone is seen: half of that in two that agree."""


MOST_LIKELY = "Most likely"

ALIKE_NAMED = 2
"""Signals of one kind that a text names beside the one that holds longest."""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A bound and whose it is; `below` where values under it are bad."""

    value: float
    unit: str
    source: str
    below: bool = False

    @property
    def text(self) -> str:
        """The bound, for people."""
        return f"{'below' if self.below else 'from'} {value_text(self.value, self.unit)}"

    def holds(self, track: Track) -> Flags:
        """Steps in which a track crosses it."""
        return track.below(self.value) if self.below else track.above(self.value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Signal:
    """One thing that was seen.

    Attributes
    ----------
    of
        What it is a sign of: two signals are independent where this differs.
    text
        What was seen, without its value.
    value
        Mean over the steps in which it holds.
    holds
        Steps in which it does.
    entity
        Of which device, path, table or server.
    values
        What was compared with the threshold, step by step.
    is_strong
        Whether it says by itself what is wrong: it is a cause without a second signal.
    alike
        Texts of the other signals of its kind.
    """

    of: str
    text: str
    value: float | None
    threshold: Threshold | None
    holds: Flags
    entity: str = ""
    host: str = ""
    values: Numbers | None = None
    is_strong: bool = False
    alike: Sequence[str] = ()

    @property
    def words(self) -> str:
        """What was seen, with its value and its bound, and what else is seen with it."""
        said = self.text
        if self.value is not None and self.threshold is not None:
            said += f": {value_text(self.value, self.threshold.unit)} (bad {self.threshold.text})"
        more = len(self.alike) - ALIKE_NAMED
        named = [*self.alike[:ALIKE_NAMED], *([f"{more} more"] if more > 0 else [])]
        return f"{said}; also {joined(named)}" if named else said


@dataclass(frozen=True, kw_only=True, eq=False)
class Suspicion:
    """A cause that signals agree on.

    Attributes
    ----------
    together
        Steps in which at least two independent signals, and all that are required, hold; of a strong signal alone its
        own.
    coverage
        Share of the worst window in which they do.
    explains
        Causes that are its consequence.
    confirm
        What would confirm a cause of which one signal alone was seen; empty where two agree.
    is_certain
        Whether the provider or the device itself says it.
    """

    cause: str
    signals: Sequence[Signal]
    against: Sequence[str]
    advice: str
    together: Flags
    coverage: float
    resource: str
    explains: Sequence[str] = ()
    notes: Sequence[str] = ()
    confirm: str = ""
    is_certain: bool = False

    @property
    def confidence(self) -> float:
        """Share of the worst window in which the signals hold together, times 1 - 0.5^(independent signals - 1).

        A cause that a provider or device itself tells has 1.
        """
        if self.is_certain:
            return 1.0
        kinds = len({signal.of for signal in self.signals})
        return round(self.coverage * (1.0 - 0.5 ** (kinds - 1) if kinds > 1 else ALONE), 3)

    @property
    def likelihood(self) -> str:
        """How sure it is, in a word: one signal alone makes a cause likely, two that agree for long most likely."""
        if self.is_certain:
            return "Certain"
        return "Likely" if self.confirm else MOST_LIKELY if self.coverage >= HOLD_SHARE else "Possible"


@dataclass
class CauseSignals:
    """Signals of one possible cause as they are gathered."""

    observed: Observations
    found: list[Signal] = field(default_factory=list)
    needed: set[str] = field(default_factory=set)
    """Kinds of signals without which there is no such cause."""

    def add(
        self,
        of: str,
        text: str,
        values: Numbers | Track | None,
        threshold: Threshold,
        *,
        entity: str = "",
        host: str = "",
        required: bool = False,
        strong: bool = False,
        where: Flags | None = None,
    ) -> bool:
        """Add what crosses a threshold; whether it does anywhere.

        Parameters
        ----------
        where
            Steps to which it is restricted.
        """
        if required:
            self.needed.add(of)
        if values is None:
            return False
        if isinstance(values, Track):
            entity, host, values = entity or values.entity, host or values.host, values.values
        holds = values < threshold.value if threshold.below else values >= threshold.value
        if where is not None:
            holds = holds & where
        return self.add_where(
            of, text, holds, values=values, threshold=threshold, entity=entity, host=host, required=required,
            strong=strong,
        )  # fmt: skip

    def add_where(
        self,
        of: str,
        text: str,
        holds: Flags,
        *,
        values: Numbers | None = None,
        value: float | None = None,
        threshold: Threshold | None = None,
        entity: str = "",
        host: str = "",
        required: bool = False,
        strong: bool = False,
    ) -> bool:
        """Add what holds in some steps; whether it does in any."""
        if required:
            self.needed.add(of)
        # A drive of Windows ends in a colon itself.
        text, holds = text.replace(":: ", ": "), np.asarray(holds & self.observed.counted)
        if not holds.any():
            return False
        if value is None and values is not None:
            value = float(np.nanmean(values[holds]))
        self.found.append(
            Signal(of=of, text=text, value=value, threshold=threshold, holds=holds, entity=entity, host=host,
                   values=values, is_strong=strong)
        )  # fmt: skip
        return True

    def agree(
        self,
        cause: str,
        *,
        resource: str,
        advice: str,
        against: Sequence[str],
        needs: Sequence[str] = (),
        explains: Sequence[str] = (),
        notes: Sequence[str] = (),
        confirm: str = "",
        within_s: float = WINDOW_S,
        always: bool = False,
        certain: bool = False,
    ) -> Suspicion | None:
        """The cause, where two independent signals hold together for long enough, or one strong signal does.

        Parameters
        ----------
        needs
            Kinds of signals (`of`) without which there is no such cause.
        confirm
            What would confirm the cause where a strong signal is alone.
        within_s
            They must hold for half of the worst window of this length: a short one for what is known and not judged.
        always
            Any step counts, whatever its share of the window: what is seen is no matter of degree.
        certain
            Whether the provider or the device itself says it.
        """
        kinds: dict[str, Flags] = {}
        for signal in self.found:
            kinds[signal.of] = kinds.get(signal.of, np.zeros_like(signal.holds)) | signal.holds
        needed = {*needs, *self.needed}
        if not kinds or not needed <= set(kinds):
            return None
        strong = {signal.of for signal in self.found if signal.is_strong}
        agreed = np.sum(list(kinds.values()), axis=0) >= 2
        alone = np.any([kinds[kind] for kind in strong], axis=0) if strong else np.zeros_like(agreed)
        for together in (agreed, alone):
            for kind in needed:
                together = together & kinds[kind]
            coverage = self._coverage(together, within_s, is_strong=bool((together & alone).any()))
            if not together.any() or (coverage is None and not always):
                continue
            # What happened at other times is no evidence.
            kept = [signal for signal in self.found if (signal.holds & together).sum() >= max(together.sum() / 4, 1)]
            count = len({signal.of for signal in kept})
            if not count or (count < 2 and not any(signal.is_strong for signal in kept)):
                continue
            kept = [signal for of in kinds for signal in _strongest([one for one in kept if one.of == of])]
            return Suspicion(
                cause=cause, signals=kept, against=against, advice=advice, together=together,
                coverage=1.0 if always or coverage is None else coverage, resource=resource, explains=explains,
                notes=notes, confirm=confirm if count < 2 else "", is_certain=certain,
            )  # fmt: skip
        return None

    def _coverage(self, together: Flags, within_s: float, *, is_strong: bool) -> float | None:
        """Share of the worst window in which the signals hold; None below the required share."""
        if int(together.sum()) < SAMPLES_MIN:
            return None
        share, coverage = worst_share(self.observed, together, within_s), worst_share(self.observed, together)
        if share >= HOLD_SHARE or (is_strong and share >= WARM_SHARE):
            return coverage
        told = recurrence_of(self.observed, together) if is_strong else None
        return max(coverage, WARM_SHARE) if told is not None and told.is_periodic else None


def _strongest(alike: Sequence[Signal]) -> list[Signal]:
    """Of signals of one kind the one that holds longest, with the texts of the others."""
    if len(alike) < 2:
        return list(alike)
    first = max(alike, key=lambda one: int(one.holds.sum()))
    return [replace(first, alike=tuple(one.text for one in alike if one is not first))]


def worst_share(observed: Observations, holds: Flags, window_s: float = WINDOW_S) -> float:
    """Share of the counted steps in which something holds, in the window where it holds most."""
    counted = observed.counted
    if not counted.any():
        return 0.0
    own = holds[counted].astype(np.float64)
    length = min(max(round(window_s / observed.step_s), SAMPLES_MIN), own.size)
    sums = np.convolve(own, np.ones(length), mode="valid")
    return float(sums.max() / length)


def value_text(value: float, unit: str) -> str:
    """A value in words: shares in percent, times and bytes with their unit.

    Examples
    --------
    >>> value_text(0.825, "share"), value_text(2e7, "ns"), value_text(300, "1/s"), value_text(2.0, "ratio")
    ('82 %', '20.0 ms', '300/s', '2 x')
    """
    if unit == "share":
        return f"{value * 100:.2g} %" if value < 0.01 else f"{value * 100:.0f} %"
    if unit == "ns":
        return format_latency(value)
    if unit == "bytes":
        return format_bytes(int(value))
    if unit == "bytes/s":
        return f"{format_bytes(int(value))}/s"
    if unit == "1/s":
        return f"{value:,.3g}/s" if value < 1000 else f"{value:,.0f}/s"
    if unit == "ratio":
        return f"{value:.3g} x"
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
