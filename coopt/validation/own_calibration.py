r"""Calibration by own runs, and the choice of the next run: the mapping whose measured time is
expected to save most.

The logarithms of the times of mappings are assumed to be jointly normal with mean :math:`\mu` and
covariance :math:`C = A \Sigma A^T + \sigma^2 I`: a common part through the parameters, and an
independent one for each mapping. Once the time of mapping j is known,

.. math:: \mu_k(n) = \mu_k + \frac{C_{kj}}{\sqrt{C_{jj}}} n, \qquad n \sim N(0, 1)

and the mapping that is then the fastest is chosen (Frazier, Powell, Dayanik: The Knowledge-Gradient
Policy for Correlated Normal Beliefs, INFORMS Journal on Computing 21, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated

import numpy as np
from pydantic import Field

from coopt.columns.grid import mappings
from coopt.instance.base import Table
from coopt.instance.texts import InstanceError
from coopt.perf.mapping import Floats, Mappings
from coopt.perf.memory import memory_bytes
from coopt.validation.batches import Batch, unchanged_s
from coopt.validation.comparison import RowResult, comparison_of
from coopt.validation.facts import FitSet
from coopt.validation.fitting import Report, runs_used, set_name
from coopt.validation.link_tests import LinkFit
from coopt.validation.posterior import NINETY, Belief, Posterior, posterior_of
from coopt.validation.published import COLUMNS, MEASURED, Measurement, printed_cell
from coopt.validation.runs import MeasuredRun, SkippedRow, outcome_of
from coopt.validation.splits import mappings_of, ranks_inside

FASTEST = 64  # number of candidate mappings, the fastest ones by the catalog
DRAWS = np.array(
    [NormalDist().inv_cdf((i + 0.5) / 400) for i in range(400)]
)  # equally likely values of n
SHOWN = 5


class Proposal(Table):
    """A mapping to run, and the expected value of measuring its time."""

    mapping: dict[str, int | bool | str]
    predicted_s: float
    low_s: Annotated[float, Field(description="nine of ten times lie between low and high")]
    high_s: float
    changes: Annotated[
        float, Field(description="probability that its time changes which mapping is chosen")
    ]
    saves: Annotated[
        float, Field(description="share of the time of an iteration it is expected to save")
    ]


class NextRun(Table):
    """The question of the fastest mapping for one model, batch and number of GPUs, and the runs
    that would help to answer it.
    """

    like: Annotated[str, Field(description="the run that trains it")]
    gpus: int
    mappings: Annotated[int, Field(description="that fit into memory")]
    chosen: dict[str, int | bool | str]
    chosen_s: float
    proposals: Annotated[
        tuple[Proposal, ...], Field(description="what saves most first; empty: nothing would")
    ]


class OwnCalibration(Table):
    """Result of own runs: parameters with intervals, and what to run next for each posterior."""

    rows: Annotated[
        tuple[RowResult, ...],
        Field(description="the runs with the catalog's values, as `coopt validate` has them"),
    ]
    read: Annotated[dict[str, str], Field(description="columns of each run, as they were read")]
    posteriors: tuple[Posterior, ...]
    next_runs: tuple[NextRun, ...]
    skipped: Annotated[dict[str, str], Field(description="rows that cannot be predicted, and why")]
    links: Annotated[
        tuple[LinkFit, ...], Field(description="shares of links that nccl-tests reached")
    ] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """Predicted times of the candidate mappings: means (k,) and covariance (k, k) of their
    logarithms.
    """

    mean: Floats
    covariance: Floats

    @property
    def expected_s(self) -> Floats:
        """Expected times (s); shape (k,)."""
        # mean of a log-normal distribution
        return np.asarray(np.exp(self.mean + np.diag(self.covariance) / 2.0))


def own_calibration_of(
    rows: Sequence[Measurement],
    sets: Sequence[FitSet],
    report: Report = lambda text: None,
    links: Sequence[LinkFit] = (),
    *,
    has_logs: bool = False,
) -> OwnCalibration:
    """Return the posterior of every set that has rows, and what to run next for the largest run of
    each; `has_logs` where some rows come from logs, to which columns may be added.

    Raises
    ------
    InstanceError
        If no row of any set can be predicted, with the reasons.
    """
    outcomes = [outcome_of(row) for row in rows]
    results = comparison_of(rows).rows
    skipped = {outcome.id: outcome.why for outcome in outcomes if isinstance(outcome, SkippedRow)}
    runs = []
    for outcome, result in zip(outcomes, results, strict=True):
        if isinstance(outcome, MeasuredRun):
            # a run that was made has to be predicted to fit
            if (result.memory_gib or 0.0) <= (result.memory_limit_gib or math.inf):
                runs.append(outcome)
            else:
                skipped[outcome.id] = (
                    "the run did not run out of memory, but is predicted to need"
                    f" {result.memory_gib:,.1f} of {result.memory_limit_gib:,.1f} GiB, so no"
                    " value is fitted to it"
                )
    members = [
        (fit_set, set_runs)
        for fit_set in sets
        if not fit_set.software and (set_runs := runs_used(fit_set, runs))
    ]
    if rows and not members and not any(result.status == "evaluated" for result in results):
        notes = [f"{row.id}: {row.notes}" for row in rows if row.notes and row.gpus is None]
        whys = (f"{name}: {reason}" for name, reason in skipped.items())
        reasons = "; ".join([*whys, *notes])
        remedy = "; --set adds what a log leaves out" if has_logs else ""
        raise InstanceError(
            f"no run can be used for a fit ({reasons}), needs at least one that can{remedy}"
        )
    posteriors, following = [], []
    for fit_set, set_runs in members:
        report(
            f"fitting {set_name(fit_set)} to {len(set_runs)} row{'s' if len(set_runs) > 1 else ''}"
        )
        posterior, belief = posterior_of(set_runs, fit_set)
        posteriors.append(posterior)
        if posterior.unphysical:
            continue
        largest_run = max(set_runs, key=lambda run: (run.gpus, run.measured_s))
        report(f"looking for the mapping to measure next, for {largest_run.id}")
        following.append(next_run(largest_run, set_runs, belief))
    return OwnCalibration(
        rows=results,
        read={row.id: _columns_read(row) for row in rows},
        posteriors=tuple(posteriors),
        next_runs=tuple(following),
        skipped=skipped,
        links=tuple(links),
    )


def _columns_read(row: Measurement) -> str:
    """Return the columns of a row but its name, its address and what was measured."""
    names = [name for name in COLUMNS if name not in ("id", "source_url", *MEASURED)]
    stated = {name: value for name in names if (value := row.cell(name)) not in (None, "")}
    notes = stated.pop("notes", "")
    columns = ", ".join(f"{name} {printed_cell(value)}" for name, value in stated.items())
    return "; ".join(filter(None, (columns, notes)))


def next_run(run: MeasuredRun, measured: Sequence[MeasuredRun], belief: Belief) -> NextRun:
    """Return which mapping to run next for the question of `run`: its model, batch, GPUs and
    network with any mapping.

    Parameters
    ----------
    measured
        Runs with known times; mappings of the same question among them are certain.
    """
    all_mappings, _ = mappings(run.workload, run.gpus)
    fits = all_mappings.take(memory_bytes(run.workload, all_mappings) <= run.gpu.hbm_gb * 1e9)
    asked = (run.question, run.gpus, run.hb_size, run.nic_gbit_s)
    known_runs = [
        known
        for known in measured
        if (known.question, known.gpus, known.hb_size, known.nic_gbit_s) == asked
    ]
    candidates = _fastest_mappings(
        run, fits, mappings_of([known_run.split for known_run in known_runs])
    )
    rows = _batch(run, candidates)
    slopes = belief.slopes([rows], belief.mean)
    covariance = slopes @ belief.covariance @ slopes.T + belief.own_error**2 * np.eye(
        len(candidates)
    )
    prediction = Prediction(mean=belief.log_times([rows], belief.mean), covariance=covariance)
    for place, known_run in enumerate(known_runs):
        prediction = conditioned(prediction, place, float(np.log(known_run.measured_s)))
    best_place = int(np.argmin(prediction.expected_s))
    return NextRun(
        like=run.id,
        gpus=run.gpus,
        mappings=len(fits),
        chosen=candidates.choice(best_place),
        chosen_s=float(prediction.expected_s[best_place]),
        proposals=tuple(_proposals(prediction, candidates, len(known_runs))),
    )


def conditioned(prediction: Prediction, place: int, log_s: float) -> Prediction:
    """Condition the prediction on the measured time of one mapping."""
    column = prediction.covariance[:, place]
    variance = float(column[place])
    if variance <= 0.0:
        return prediction
    mean = prediction.mean + column / variance * (log_s - prediction.mean[place])
    covariance = prediction.covariance - np.outer(column, column) / variance
    covariance[place, :] = covariance[:, place] = 0.0
    return Prediction(mean=mean, covariance=covariance)


def worth(prediction: Prediction, place: int) -> tuple[float, float]:
    """Return the seconds that measuring a mapping is expected to save, and the probability that it
    changes the choice.
    """
    variance = float(prediction.covariance[place, place])
    if variance <= 0.0:
        return 0.0, 0.0
    after = conditioned(prediction, place, float(prediction.mean[place]))
    shift = prediction.covariance[:, place] / np.sqrt(variance)
    times = np.exp(after.mean + np.outer(DRAWS, shift) + np.diag(after.covariance) / 2.0)
    expected_s = prediction.expected_s
    saved = float(expected_s.min() - np.mean(times.min(axis=1)))
    return max(0.0, saved), float(np.mean(times.argmin(axis=1) != expected_s.argmin()))


def _proposals(prediction: Prediction, candidates: Mappings, known_count: int) -> list[Proposal]:
    """Return mappings not yet run, ordered by what they save."""
    expected_s = prediction.expected_s
    spread = NINETY * np.sqrt(np.maximum(np.diag(prediction.covariance), 0.0))
    low_s, high_s = np.exp(prediction.mean - spread), np.exp(prediction.mean + spread)
    values = {place: worth(prediction, place) for place in range(known_count, len(candidates))}
    proposals = [
        Proposal(
            mapping=candidates.choice(place),
            predicted_s=float(expected_s[place]),
            low_s=float(low_s[place]),
            high_s=float(high_s[place]),
            changes=changes,
            saves=saved / float(expected_s.min()),
        )
        for place, (saved, changes) in values.items()
        if saved > 0.0
    ]
    return sorted(proposals, key=lambda proposal: -proposal.saves)[:SHOWN]


def _fastest_mappings(run: MeasuredRun, fits: Mappings, known_mappings: Mappings) -> Mappings:
    """Return mappings that were run, and the fastest ones by the catalog of those that were not."""
    table, known = (
        np.array([column.astype(np.int64) for column in vars(mappings).values()])
        for mappings in (fits, known_mappings)
    )
    ran = set(map(tuple, known.T.tolist()))
    unmeasured = [i for i, row in enumerate(table.T.tolist()) if tuple(row) not in ran]
    if unmeasured:
        order = np.argsort(unchanged_s([_batch(run, fits.take(np.array(unmeasured)))]))[:FASTEST]
        unmeasured = np.array(unmeasured)[order].tolist()
    return Mappings.of_table(np.concatenate([known, table[:, unmeasured]], axis=1))


def _batch(run: MeasuredRun, rows: Mappings) -> Batch:
    """Return a batch of mappings on the machine of a run."""
    degrees = zip(
        rows.tp.tolist(), rows.cp.tolist(), rows.dp.tolist(), rows.pp.tolist(), strict=True
    )
    inside = [ranks_inside(ranks, run.hb_size) for ranks in degrees]
    return Batch.of(run, rows, inside, [run.nic_gbit_s] * len(rows), range(len(rows)))
