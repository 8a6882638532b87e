"""Fitting few parameters of a model to measured or published points, and what the fit leaves open.

Parameters are fitted as factors of their starting values to the logarithms of the figures, so that an error of 10 %
counts the same in IOPS and in latency. Around the optimum the model is taken as linear in the logarithms: that gives
the covariance of what was fitted, the errors of leave-one-out cross-validation, and how far the fit would move if a
parameter that was not fitted had another value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.base.errors import UsageError
from assay.insight.calibration.observations import Observation
from assay.targets.arrays.model.configuration import Configuration
from assay.targets.arrays.model.parameters import ORIGINS, PARAMETERS

Array = NDArray[np.float64]

POINTS_PER_PARAMETER = 2
"""Fewer points for each free parameter are no check of the fit."""
FREE_MAX = 3
"""A fourth parameter improved the fit and worsened predictions in the method's prototype."""
FACTOR_MAX = 8.0
"""How far a fitted value may be from where it began."""
STEP = 0.2
"""Change of a parameter for its derivative, as a share: large against the noise of a simulation."""
MODEL_SHARE = 0.03
"""What a model of this kind leaves open even where it fits (least error of published models of arrays: 4 to 5 %)."""
EXPLAINS_SHARE = 0.35
"""A fit that is off by more on average explains nothing."""
GAIN_MIN = 0.10
"""A further parameter must take away this share of what is unexplained."""
NOT_OF_POINTS = ("disks.", "group.", "rebuild.", "disk.usable")
"""Parameters that no point of a healthy array says anything about."""
IMPOSSIBLE = 30.0
"""Residual of parameters that no array can have together, in standard deviations."""
MATTERS_SHARE = 0.003
"""A parameter that moves no figure by more than this within its uncertainty is left out."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What a calibration found.

    Attributes
    ----------
    free
        Names of the fitted parameters; `values` are theirs, in base units.
    covariance
        That of the logarithms of the fitted values.
    shifts
        How far the logarithm of each fitted value moves if a parameter that was not fitted is higher by one standard
        deviation, by the name of that parameter.
    errors, left_out
        Error of the model at each observation as a share, of throughput or, where that was given, of latency: after the
        fit, and predicted from the others.
    """

    free: tuple[str, ...]
    values: dict[str, float]
    covariance: list[list[float]]
    shifts: dict[str, list[float]]
    labels: tuple[str, ...]
    errors: tuple[float, ...]
    left_out: tuple[float, ...]

    @property
    def error_share(self) -> float:
        """Root mean square of the errors of prediction, never below that of the fit itself."""
        return max(math.sqrt(sum(error**2 for error in each) / len(each)) for each in (self.errors, self.left_out))


class SilentParameters(UsageError):
    """Fitted parameters that no point depends on."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"--free: the points say nothing about {', '.join(names)}; free another, or measure more")
        self.names = tuple(names)


def uncertain(configuration: Configuration) -> dict[str, float]:
    """Numeric parameters in force that may be off, and by how much: one standard deviation of the logarithm."""
    found = {}
    for dotted, parameter in configuration.parameters.items():
        is_free = _is_number(parameter) and parameter.value > 0 and not dotted.startswith(NOT_OF_POINTS)
        if is_free and parameter.plus_minus:
            found[dotted] = parameter.plus_minus
    return found


def calibrate(
    observations: Sequence[Observation],
    *,
    free: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda _text: None,
) -> Fit:
    """Fit parameters to observations of one array.

    Parameters
    ----------
    free
        Names of the parameters to fit; None chooses those that explain most.

    Raises
    ------
    UsageError
        A parameter is unknown or cannot be fitted, there are too few points for so many, or nothing explains them.
    """
    configuration = observations[0].configuration
    # What was fitted to another array is an assumption for this one.
    known = {
        name: max(sd, ORIGINS["assumed"]) if configuration.parameters[name].from_ == "fitted" else sd
        for name, sd in uncertain(configuration).items()
    }
    most = min(FREE_MAX, len(observations) // POINTS_PER_PARAMETER)
    if most < 1:
        raise UsageError(
            f"calibration: {len(observations)} point is too few; one parameter needs at least {POINTS_PER_PARAMETER}"
        )
    if free is not None:
        _check_free(free, configuration, len(observations))
    problem = _Problem(observations, configuration, progress)
    sensitivities, asked = None, free is not None
    if free is None:
        start = problem.residuals({})
        sensitivities = problem.derivatives({}, {name: max(sd, STEP) for name, sd in known.items()}, start)
        free = _choose(start, sensitivities, known, most)
    chosen = tuple(free)
    while True:
        values, residuals = problem.fit(chosen)
        explained = math.sqrt(float(np.mean((residuals * problem.sd) ** 2)))
        if explained > EXPLAINS_SHARE:
            worst = problem.labels[int(np.argmax(np.abs(residuals * problem.sd)))]
            raise UsageError(
                f"calibration: no value of {', '.join(chosen)} explains the points (off by {explained:.0%} on average,"
                f" most at {worst!r}); they contradict each other, or the structure is not the array's"
            )
        try:
            return problem.conclude(chosen, values, residuals, uncertain(configuration) | known, sensitivities)
        except SilentParameters as silent:
            # What mattered at the start may not where the fit ends; only what was asked for is insisted on.
            left = tuple(name for name in chosen if name not in silent.names)
            if asked or not left:
                raise
            chosen = left


def _check_free(free: Sequence[str], configuration: Configuration, points: int) -> None:
    for name in free:
        parameter = configuration.parameters.get(name)
        if parameter is None:
            from assay.base.reading import nearest

            close = nearest(name, configuration.parameters)
            listed = f"`assay model show {configuration.model.origin}` lists them"
            hint = f"did you mean {close!r}?" if close else listed
            raise UsageError(f"--free: unknown parameter {name!r}; {hint}")
        if isinstance(parameter.value, (bool, str)) or not parameter.value:
            raise UsageError(f"--free: {name} is no number above 0, so it cannot be fitted")
    if len(set(free)) != len(free):
        raise UsageError("--free: a parameter is named twice")
    if len(free) * POINTS_PER_PARAMETER > points:
        raise UsageError(
            f"--free: {len(free)} parameters need at least {len(free) * POINTS_PER_PARAMETER} points, and there are"
            f" {points}; measure more, or free fewer"
        )


def _choose(start: Array, sensitivities: Mapping[str, Array], known: Mapping[str, float], most: int) -> tuple[str, ...]:
    """Greedy choice: the parameter that explains most of what is left, until the next one brings little.

    Each is allowed to move as far as it is uncertain, so that well-known figures, such as the speed of a spindle, stay.
    """
    if not sensitivities:
        raise UsageError("calibration: the points say nothing about any uncertain parameter; name others with --free")
    chosen: list[str] = []
    left = float(start @ start)
    while len(chosen) < most:
        best, best_left = None, left
        for name in sensitivities:
            if name not in chosen:
                jacobian = np.column_stack([sensitivities[other] for other in (*chosen, name)])
                spread = np.array([known[other] for other in (*chosen, name)])
                solution = _ridge(jacobian, start, spread)
                rest = start + jacobian @ solution
                remaining = float(rest @ rest + np.sum((solution / spread) ** 2))
                if remaining < best_left:
                    best, best_left = name, remaining
        if best is None or (chosen and best_left > (1 - GAIN_MIN) * left):
            break
        chosen.append(best)
        left = best_left
    if not chosen:
        # The start explains the points already; the parameter they say most about is still to be pinned down.
        chosen = [max(sensitivities, key=lambda name: float(np.sum((sensitivities[name] * known[name]) ** 2)))]
    return tuple(chosen)


def _ridge(jacobian: Array, residuals: Array, spread: Array) -> Array:
    """Steps of the logarithms that make `residuals` smallest, kept near 0 by their spread."""
    normal = jacobian.T @ jacobian + np.diag(1 / spread**2)
    return np.asarray(-np.linalg.solve(normal, jacobian.T @ residuals))


class _Problem:
    """Observations with the model's answers to them; residuals are in standard deviations of the logarithm."""

    def __init__(
        self, observations: Sequence[Observation], configuration: Configuration, progress: Callable[[str], None]
    ) -> None:
        self.observations = observations
        self.start = {name: float(value.value) for name, value in configuration.parameters.items() if _is_number(value)}
        self.progress = progress
        self.runs = 0
        self.names = [(place, name) for place, each in enumerate(observations) for name in sorted(each.figures)]
        self.labels = [observations[place].label for place, _ in self.names]
        self.sd = np.array([math.hypot(observations[place].noise_share, MODEL_SHARE) for place, _ in self.names])

    def residuals(self, factors: Mapping[str, float]) -> Array:
        """Logarithm of predicted over measured, in standard deviations, with parameters at factors of their start."""
        values = {name: self._value(name, factor) for name, factor in factors.items()}
        found = []
        for place, observation in enumerate(self.observations):
            predicted = observation.predicted(values)
            for name in sorted(observation.figures):
                ratio = predicted[name] / observation.figures[name]
                # A mean that the model does not give says nothing; a load that it never meets is far off.
                found.append(0.0 if math.isnan(ratio) else math.log(ratio) if ratio > 0 else math.log(0.1))
            self.progress(f"simulation {self.runs + 1}, {place + 1} of {len(self.observations)} points")
        self.runs += 1
        return np.asarray(np.array(found) / self.sd)

    def _value(self, name: str, factor: float) -> float:
        known = PARAMETERS[name]
        value = min(max(self.start[name] * factor, known.low), known.high)
        return value if known.kind.name in ("share", "rate") else float(round(value))

    def derivatives(self, factors: Mapping[str, float], steps: Mapping[str, float], at: Array) -> dict[str, Array]:
        """Derivatives of the residuals by the logarithm of each parameter."""
        found = {}
        for name, step in steps.items():
            change = self._derivative(name, factors, step, at)
            if change is not None and float(np.max(np.abs(change * self.sd))) * step > MATTERS_SHARE:
                found[name] = change
        return found

    def _derivative(self, name: str, factors: Mapping[str, float], step: float, at: Array) -> Array | None:
        """One derivative; None where the parameter can be moved neither up nor down."""
        factor = factors.get(name, 1.0)
        before = self._value(name, factor)
        for moved in (factor * math.exp(step), factor * math.exp(-step)):
            after = self._value(name, moved)
            if after > 0 and after != before:
                try:
                    return np.asarray((self.residuals({**factors, name: moved}) - at) / math.log(after / before))
                except UsageError:
                    # It would contradict another parameter.
                    continue
        return None

    def fit(self, free: Sequence[str]) -> tuple[dict[str, float], Array]:
        """Factors of the free parameters, and the residuals there."""
        from scipy.optimize import least_squares

        prior = math.log(FACTOR_MAX)

        def objective(factors: Array) -> Array:
            try:
                residuals = self.residuals(dict(zip(free, factors.tolist(), strict=True)))
            except UsageError:
                # Values that contradict each other are no array.
                residuals = np.full(len(self.names), IMPOSSIBLE)
            return np.concatenate([residuals, np.log(factors) / prior])

        best = least_squares(
            objective,
            np.ones(len(free)),
            bounds=(np.full(len(free), 1 / FACTOR_MAX), np.full(len(free), FACTOR_MAX)),
            diff_step=[STEP] * len(free),
            xtol=0.01,
            ftol=0.01,
            max_nfev=8,
        )
        factors = dict(zip(free, (float(factor) for factor in best.x), strict=True))
        return factors, np.asarray(best.fun[: len(self.names)])

    def conclude(
        self,
        free: tuple[str, ...],
        factors: dict[str, float],
        residuals: Array,
        known: Mapping[str, float],
        sensitivities: Mapping[str, Array] | None,
    ) -> Fit:
        """Covariance, shifts and cross-validation around the optimum.

        Derivatives of logarithms change little, so that those at the start serve where they are known.
        """
        by_name = self.derivatives(factors, dict.fromkeys(free, STEP), residuals)
        silent = [name for name in free if name not in by_name]
        if silent:
            raise SilentParameters(silent)
        jacobian = np.column_stack([by_name[name] for name in free])
        spread = np.full(len(free), math.log(FACTOR_MAX))
        scale = max(float(residuals @ residuals) / max(len(residuals) - len(free), 1), 1.0)
        covariance = np.linalg.inv(jacobian.T @ jacobian + np.diag(1 / spread**2)) * scale
        if sensitivities is None:
            others = {name: max(sd, STEP) for name, sd in known.items() if name not in free}
            sensitivities = self.derivatives(factors, others, residuals)
        shifts = {
            name: (_ridge(jacobian, change, spread) * known[name]).tolist()
            for name, change in sensitivities.items()
            if name not in free
        }
        return Fit(
            free=free,
            values={name: self._value(name, factor) for name, factor in factors.items()},
            covariance=covariance.tolist(),
            shifts=shifts,
            labels=tuple(each.label for each in self.observations),
            errors=self._fit_errors(residuals),
            left_out=self._left_out(jacobian, residuals, spread),
        )

    def _fit_errors(self, residuals: Array) -> tuple[float, ...]:
        errors = []
        for place, observation in enumerate(self.observations):
            row = self.names.index((place, observation.judged))
            errors.append(math.expm1(float(residuals[row] * self.sd[row])))
        return tuple(errors)

    def _left_out(self, jacobian: Array, residuals: Array, spread: Array) -> tuple[float, ...]:
        """Error at each observation of the fit to all others, by the linear model."""
        step = _ridge(jacobian, residuals, spread)
        errors = []
        for place, observation in enumerate(self.observations):
            kept = np.array([other != place for other, _ in self.names])
            # Starts where the fit ended; at a bound the linear model would go further.
            moved = residuals + jacobian @ (_ridge(jacobian[kept], residuals[kept], spread) - step)
            row = self.names.index((place, observation.judged))
            errors.append(math.expm1(float(moved[row] * self.sd[row])))
        return tuple(errors)


def _is_number(parameter: object) -> bool:
    value = getattr(parameter, "value", None)
    return isinstance(value, (int, float)) and not isinstance(value, bool)
