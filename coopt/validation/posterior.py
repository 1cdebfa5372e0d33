r"""Bayesian calibration of hardware parameters by a few own runs, with the values of the catalog as
a prior.

Logarithms of times and of parameters are assumed to be normal. With :math:`\theta` the logarithms
of the parameters, :math:`f_i(\theta)` that of the predicted time of run i and :math:`y_i` that of
the measured one,

.. math::
    \theta \sim N(\theta_0, P), \qquad y_i \sim N(f_i(\theta), \sigma^2), \qquad
    \Sigma = (P^{-1} + J^T J / \sigma^2)^{-1}

where :math:`J` is the Jacobian of f at the most probable :math:`\theta` (Bishop, Pattern
Recognition and Machine Learning, 2006, section 4.4: Laplace's approximation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from coopt.instance.base import Table
from coopt.instance.catalog import ModelError, entries
from coopt.instance.reserves import error_names
from coopt.instance.texts import InstanceError
from coopt.perf.mapping import Floats
from coopt.validation.batches import Batch, batches_of, predicted_s
from coopt.validation.comparison import Score, score_of
from coopt.validation.facts import FitSet
from coopt.validation.fitting import set_name
from coopt.validation.runs import MeasuredRun
from coopt.validation.settings import RANGES, Settings

# share of the variance of errors on published runs that lies between groups of equal source,
# model, hardware and precision in benchmarks/published.csv
COMMON = 0.48
NINETY = 1.645  # standard errors on either side of a 90% interval
SLOPE = 0.01  # step of finite differences in the logarithm of a parameter
ROUNDS = 50
STILL = 1e-7  # step length that ends the search


class Interval(Table):
    """A parameter before and after the runs; low and high are the ends of its 90% interval."""

    name: str
    before: Annotated[float, Field(description="the catalog's value, the middle of the prior")]
    before_low: float
    before_high: float
    after: Annotated[float, Field(description="the most probable value given the runs")]
    low: float
    high: float


class Posterior(Table):
    """The parameters of one generation and precision given own runs."""

    name: str
    generation: str
    precision: str
    parameters: tuple[Interval, ...]
    rows: tuple[str, ...]
    before: Annotated[Score, Field(description="errors on these runs with the catalog's values")]
    fitted: Annotated[
        Score, Field(description="errors on these runs with the most probable values")
    ]
    common_error: Annotated[
        float, Field(description="standard error of times that parameters explain, a share")
    ]
    own_error: Annotated[
        float, Field(description="standard error of each mapping that they do not explain, a share")
    ]
    unphysical: Annotated[
        tuple[str, ...],
        Field(
            description=(
                "parameters that the runs push to the end of what is physical; such values are not"
                " offered"
            )
        ),
    ] = ()
    surprising: Annotated[
        bool,
        Field(description="the catalog is further off on these runs than on nine of ten published"),
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Belief:
    """Normal distribution of the logarithms of parameters: mode (p,) and covariance (p, p).

    `own_error` is the standard error of the logarithm of each time beyond the parameters.
    """

    fit_set: FitSet
    mean: Floats
    covariance: Floats
    own_error: float

    def log_times(self, batches: Sequence[Batch], theta: Floats) -> Floats:
        """Return the logarithms of the predicted times of the rows of `batches`, given logarithms
        of the parameters.
        """
        values = {
            name: float(x) for name, x in zip(self.fit_set.parameters, np.exp(theta), strict=True)
        }
        settings = Settings().replaced(self.fit_set, values)
        return np.asarray(np.log(predicted_s(batches, settings.gpu, settings.framework)))

    def slopes(self, batches: Sequence[Batch], theta: Floats) -> Floats:
        """Return the Jacobian of `log_times`; shape (rows, p)."""
        steps = np.eye(len(theta)) * SLOPE
        return np.stack(
            [
                (self.log_times(batches, theta + step) - self.log_times(batches, theta - step))
                / (2 * SLOPE)
                for step in steps
            ],
            axis=1,
        )


def posterior_of(runs: Sequence[MeasuredRun], fit_set: FitSet) -> tuple[Posterior, Belief]:
    """Return the parameters of one set given its runs.

    Raises
    ------
    InstanceError
        If a parameter has no logarithm in the catalog, or none affects the runs.
    """
    prior = _prior(runs, fit_set)
    batches, measured = batches_of(runs), np.log([run.measured_s for run in runs])
    belief = _updated(prior, batches, measured)
    before, after = (b.log_times(batches, b.mean) - measured for b in (prior, belief))
    scores = [score for off in (before, after) if (score := score_of(np.expm1(off))) is not None]
    slopes = prior.slopes(batches, prior.mean)
    # whether the mean error (in logarithms) lies outside its 90% interval
    spread = slopes @ prior.covariance @ slopes.T + prior.own_error**2 * np.eye(len(before))
    surprising = abs(np.mean(before)) > NINETY * np.sqrt(np.mean(spread))
    posterior = Posterior(
        name=set_name(fit_set),
        generation=fit_set.generation,
        precision=fit_set.precision,
        parameters=tuple(_intervals(prior, belief)),
        rows=tuple(run.id for run in runs),
        before=scores[0],
        fitted=scores[1],
        common_error=math.sqrt(float(np.mean(_variances(slopes, prior.covariance)))),
        own_error=belief.own_error,
        unphysical=_at_an_end(prior, belief),
        surprising=bool(surprising),
    )
    return posterior, belief


def _prior(runs: Sequence[MeasuredRun], fit_set: FitSet) -> Belief:
    """Return the prior: the values of the catalog, with a variance that explains errors on sources
    left out of the fit.

    The standard deviations of the parameters are proportional to their first steps in a fit. They
    are scaled to explain the share of the variance of times that runs of one source have in common,
    up to one step.
    """
    values = Settings().values_of(fit_set, runs[0])
    without = [name for name, value in values.items() if not value > 0.0]
    if without:
        raise InstanceError(
            f"--parameters: the catalog has 0 for {', '.join(without)} of {set_name(fit_set)},"
            " which cannot be fitted in logarithms, needs others, such as gemm,hbm"
        )
    # the catalog has the mean size of the errors of similar runs whose source was left out of the
    # fit, over which a normal law has a standard error sqrt(pi / 2) times as large
    known = entries("model_error")
    names = {name for run in runs for name in error_names(run.gpu, run.workload)}
    errors = [known.get(name, known["all"]) for name in names]
    mean_size = max(entry.left_out for entry in errors if isinstance(entry, ModelError))
    error = mean_size * math.sqrt(math.pi / 2)
    mean = np.log(list(values.values()))
    widths = np.diag([(RANGES[name].step / value) ** 2 for name, value in values.items()])
    own_error = error * math.sqrt(1.0 - COMMON)
    step_wide = Belief(fit_set=fit_set, mean=mean, covariance=widths, own_error=own_error)
    slopes = step_wide.slopes(batches_of(runs), mean)
    explained_variance = float(np.mean(_variances(slopes, widths)))
    if explained_variance <= 1e-12:
        raise InstanceError(
            f"--parameters: changing {', '.join(fit_set.parameters)} has no effect on"
            f" {', '.join(dict.fromkeys(run.id for run in runs))}, needs parameters that have one,"
            " such as gemm,hbm"
        )
    # what runs of one source have in common is what parameters explain; the rest is each mapping's
    # own
    scale = min(1.0, COMMON * error**2 / explained_variance)
    return replace(step_wide, covariance=widths * scale)


def _updated(prior: Belief, batches: Sequence[Batch], measured: Floats) -> Belief:
    """Return the posterior by Gauss-Newton steps, each halved until it increases the
    probability.
    """
    weight, own_variance = np.linalg.inv(prior.covariance), prior.own_error**2
    lowest, highest = _ends(prior)

    def doubt(theta: Floats) -> float:
        off, residuals = theta - prior.mean, measured - prior.log_times(batches, theta)
        return float(off @ weight @ off + residuals @ residuals / own_variance)

    theta: Floats = prior.mean
    covariance, value = prior.covariance, doubt(theta)
    for _ in range(ROUNDS):
        slopes = prior.slopes(batches, theta)
        covariance = np.asarray(
            np.linalg.inv(weight + slopes.T @ slopes / own_variance), dtype=np.float64
        )
        residuals = measured - prior.log_times(batches, theta)
        step = covariance @ (slopes.T @ residuals / own_variance - weight @ (theta - prior.mean))
        candidates = [np.clip(theta + step * 0.5**n, lowest, highest) for n in range(8)]
        better = next(((point, x) for point in candidates if (x := doubt(point)) < value), None)
        if better is None or np.max(np.abs(better[0] - theta)) < STILL:
            break
        theta, value = np.asarray(better[0]), better[1]
    return replace(prior, mean=theta, covariance=covariance)


def _ends(prior: Belief) -> tuple[Floats, Floats]:
    """Return the logarithms of the ends of the physical range of every parameter."""
    ranges = [RANGES[name] for name in prior.fit_set.parameters]
    low, high = ([getattr(one, end) for one in ranges] for end in ("low", "high"))
    lowest = np.minimum(prior.mean, np.log(np.maximum(low, 1e-12)))
    return lowest, np.maximum(prior.mean, np.log(high))


def _at_an_end(prior: Belief, belief: Belief) -> tuple[str, ...]:
    """Return the parameters that a fit moved to an end of their range."""
    ends = [np.isclose(belief.mean, end) & ~np.isclose(prior.mean, end) for end in _ends(prior)]
    names = prior.fit_set.parameters
    return tuple(name for name, is_there in zip(names, ends[0] | ends[1], strict=True) if is_there)


def _variances(slopes: Floats, covariance: Floats) -> Floats:
    """Return the variance of every row due to a covariance of the parameters; shape (rows,)."""
    return np.asarray(np.einsum("ij,jk,ik->i", slopes, covariance, slopes))


def _intervals(prior: Belief, belief: Belief) -> list[Interval]:
    columns = []
    for state in (prior, belief):
        spread = NINETY * np.sqrt(np.diag(state.covariance))
        columns += [np.exp(state.mean), np.exp(state.mean - spread), np.exp(state.mean + spread)]
    names = ("before", "before_low", "before_high", "after", "low", "high")
    return [
        Interval.model_validate({"name": name, **dict(zip(names, map(float, row), strict=True))})
        for name, row in zip(prior.fit_set.parameters, np.stack(columns, axis=1), strict=True)
    ]
