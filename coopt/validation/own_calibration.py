r"""What runs of one's own say, and which mapping to run next: the one whose time, once known, is expected to save most.

The logarithms of the times of mappings are taken for jointly normal with middle :math:`\mu` and covariance
:math:`C = A \Sigma A^T + \sigma^2 I`: common by the parameters, and each of its own. Once that of mapping j is known,

.. math:: \mu_k(n) = \mu_k + \frac{C_{kj}}{\sqrt{C_{jj}}} n, \qquad n \sim N(0, 1)

and the fastest mapping by then is chosen (Frazier, Powell, Dayanik: The Knowledge-Gradient Policy for Correlated Normal
Beliefs, INFORMS Journal on Computing 21, 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Annotated

import numpy as np
from pydantic import Field

from coopt.columns.grid import mappings
from coopt.instance.base import Table
from coopt.instance.errors import InstanceError
from coopt.perf.affine import Reciprocals
from coopt.perf.mapping import Floats, Mappings, Placements
from coopt.perf.memory import memory_bytes
from coopt.validation.batches import Batch, unchanged_s
from coopt.validation.facts import FitSet
from coopt.validation.fitting import Told, runs_used, set_name
from coopt.validation.posterior import NINETY, Belief, Posterior, posterior_of
from coopt.validation.published import Measurement
from coopt.validation.runs import MeasuredRun, SkippedRow, outcome_of
from coopt.validation.splits import mappings_of, ranks_inside

FASTEST = 64  # mappings that may be chosen; slower ones by the catalog are out of the question
DRAWS = np.array([NormalDist().inv_cdf((i + 0.5) / 400) for i in range(400)])  # equally likely values of n
SHOWN = 5


class Proposal(Table):
    """A mapping to run, and what its time is expected to be worth."""

    mapping: dict[str, int | bool | str]
    predicted_s: float
    low_s: Annotated[float, Field(description="nine of ten times lie between low and high")]
    high_s: float
    changes: Annotated[float, Field(description="probability that its time changes which mapping is chosen")]
    saves: Annotated[float, Field(description="share of the time of an iteration it is expected to save")]


class NextRun(Table):
    """The question which mapping is fastest for one model, batch and number of GPUs, and what would settle it."""

    like: Annotated[str, Field(description="the run that trains it")]
    gpus: int
    mappings: Annotated[int, Field(description="that fit into memory")]
    chosen: dict[str, int | bool | str]
    chosen_s: float
    proposals: Annotated[tuple[Proposal, ...], Field(description="what saves most first; empty: nothing would")]


class OwnCalibration(Table):
    """What runs of one's own say: parameters with intervals, and what to run next, one for each posterior."""

    posteriors: tuple[Posterior, ...]
    next_runs: tuple[NextRun, ...]
    skipped: Annotated[dict[str, str], Field(description="rows that cannot be predicted, and why")]


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """Times of the mappings in question: middles (k,) and covariance (k, k) of their logarithms."""

    middle: Floats
    covariance: Floats

    @property
    def expected_s(self) -> Floats:
        """Expected times; shape (k,)."""
        return np.asarray(np.exp(self.middle + np.diag(self.covariance) / 2.0))


def own_calibration_of(
    rows: Sequence[Measurement], sets: Sequence[FitSet], told: Told = lambda text: None
) -> OwnCalibration:
    """The posterior of every set that has rows, and what to run next for the largest run of each.

    Raises
    ------
    InstanceError
        When no row can be predicted that a set is about, with the reasons.
    """
    outcomes = [outcome_of(row) for row in rows]
    skipped = {one.id: one.why for one in outcomes if isinstance(one, SkippedRow)}
    runs = [one for one in outcomes if isinstance(one, MeasuredRun)]
    members = [(asked, used) for asked in sets if not asked.software and (used := runs_used(asked, runs))]
    if not members:
        others = [f"{run.id} ran on {run.generation} in {run.precision}" for run in runs]
        reasons = "; ".join([*(f"{name}: {why}" for name, why in skipped.items()), *others])
        raise InstanceError(f"no run to fit anything to ({reasons}), needs one; --set adds what a log leaves out")
    posteriors, following = [], []
    for asked, used in members:
        told(f"fitting {set_name(asked)} to {len(used)} row{'s' if len(used) > 1 else ''}")
        posterior, belief = posterior_of(used, asked)
        posteriors.append(posterior)
        largest = max(used, key=lambda run: (run.gpus, run.measured_s))
        told(f"looking for the mapping to run next of {largest.id}")
        following.append(next_run(largest, used, belief))
    return OwnCalibration(posteriors=tuple(posteriors), next_runs=tuple(following), skipped=skipped)


def next_run(run: MeasuredRun, measured: Sequence[MeasuredRun], belief: Belief) -> NextRun:
    """What to run next for the question of `run`: its model, batch, GPUs and network with any mapping.

    Parameters
    ----------
    measured
        Runs whose times are known; those of the same question are no longer in doubt.
    """
    every, _ = mappings(run.workload, run.gpus)
    fits = every.take(memory_bytes(run.workload, every) <= run.gpu.hbm_gb * 1e9)
    known = [one for one in measured if _question(one) == _question(run)]
    few = _fastest(run, fits, mappings_of([one.split for one in known]))
    rows = _batch(run, few)
    slopes = belief.slopes([rows], belief.middle)
    covariance = slopes @ belief.covariance @ slopes.T + belief.own_error**2 * np.eye(len(few))
    prediction = Prediction(middle=belief.log_times([rows], belief.middle), covariance=covariance)
    for place, one in enumerate(known):
        prediction = given(prediction, place, float(np.log(one.measured_s)))
    best = int(np.argmin(prediction.expected_s))
    return NextRun(
        like=run.id,
        gpus=run.gpus,
        mappings=len(fits),
        chosen=few.choice(best),
        chosen_s=float(prediction.expected_s[best]),
        proposals=tuple(_proposals(prediction, few, len(known))),
    )


def given(prediction: Prediction, place: int, log_s: float) -> Prediction:
    """The prediction once the time of one mapping is known."""
    column = prediction.covariance[:, place]
    variance = float(column[place])
    if variance <= 0.0:
        return prediction
    middle = prediction.middle + column / variance * (log_s - prediction.middle[place])
    covariance = prediction.covariance - np.outer(column, column) / variance
    covariance[place, :] = covariance[:, place] = 0.0
    return Prediction(middle=middle, covariance=covariance)


def worth(prediction: Prediction, place: int) -> tuple[float, float]:
    """Seconds that the time of a mapping is expected to save, and the probability that it changes the choice."""
    variance = float(prediction.covariance[place, place])
    if variance <= 0.0:
        return 0.0, 0.0
    after = given(prediction, place, float(prediction.middle[place]))
    shift = prediction.covariance[:, place] / np.sqrt(variance)
    times = np.exp(after.middle + np.outer(DRAWS, shift) + np.diag(after.covariance) / 2.0)
    now = prediction.expected_s
    saved = float(now.min() - np.mean(times.min(axis=1)))
    return max(0.0, saved), float(np.mean(times.argmin(axis=1) != now.argmin()))


def _proposals(prediction: Prediction, few: Mappings, known: int) -> list[Proposal]:
    """Mappings that were not run, by what they save."""
    now, spread = prediction.expected_s, NINETY * np.sqrt(np.maximum(np.diag(prediction.covariance), 0.0))
    found = []
    for place in range(known, len(few)):
        saved, changes = worth(prediction, place)
        if saved > 0.0:
            proposal = Proposal(
                mapping=few.choice(place),
                predicted_s=float(now[place]),
                low_s=float(np.exp(prediction.middle[place] - spread[place])),
                high_s=float(np.exp(prediction.middle[place] + spread[place])),
                changes=changes,
                saves=saved / float(now.min()),
            )
            found.append(proposal)
    return sorted(found, key=lambda one: -one.saves)[:SHOWN]


def _fastest(run: MeasuredRun, fits: Mappings, known: Mappings) -> Mappings:
    """Mappings that were run, and the fastest by the catalog of those that were not."""
    ran = {_row(known, i) for i in range(len(known))}
    left = fits.take(np.array([i for i in range(len(fits)) if _row(fits, i) not in ran], dtype=np.int64))
    order = np.argsort(unchanged_s([_batch(run, left)]))[:FASTEST] if len(left) else np.zeros(0, dtype=np.int64)
    few = left.take(order)
    table = {f.name: np.concatenate([getattr(known, f.name), getattr(few, f.name)]) for f in fields(Mappings)}
    return Mappings(**table)


def _row(rows: Mappings, i: int) -> tuple[int, ...]:
    return tuple(int(getattr(rows, f.name)[i]) for f in fields(Mappings))


def _question(run: MeasuredRun) -> object:
    """What runs share whose mappings compete."""
    workload, model = run.workload, run.workload.model.model_copy(update={"name": "", "description": "", "sources": ()})
    place = (run.gpu.name, run.gpus, run.hb_size, run.hb_gbyte_s, run.nic_gbit_s)
    return model, workload.global_batch, workload.precision, workload.options, place


def _batch(run: MeasuredRun, rows: Mappings) -> Batch:
    """Mappings on the machine of a run."""
    degrees = zip(rows.tp, rows.cp, rows.dp, rows.pp, strict=True)
    inside = np.array(
        [ranks_inside((int(t), int(c), int(d), int(p)), run.hb_size) for t, c, d, p in degrees], dtype=np.int64
    ).reshape(-1, 4)
    return Batch(
        workload=run.workload,
        gpu=run.gpu,
        hb_gbyte_s=run.hb_gbyte_s,
        mappings=rows,
        placements=Placements(tp=inside[:, 0], cp=inside[:, 1], dp=inside[:, 2], pp=inside[:, 3]),
        reciprocals=Reciprocals.everywhere(np.full(len(rows), 8e-9 / run.nic_gbit_s)),
        position=np.arange(len(rows)),
    )
