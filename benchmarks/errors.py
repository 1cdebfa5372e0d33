"""Write coopt/instance/measured.json: published runs, and the law of how far predicted times are
off, fitted to predictions that have not seen the source of what they predict.

Prints how many measured times lie in their intervals of 90%, those of each source by a law that was
fitted and scaled without it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize
from scipy.stats import binom

from coopt.instance.evidence import NORMAL, PLACE, ErrorLaw, MeasuredPractice, Practice
from coopt.instance.hardware import Gpu
from coopt.instance.reserves import HYBRID, practice_of
from coopt.instance.texts import write_text
from coopt.instance.transformer import Software
from coopt.perf.mapping import tp_of_experts
from coopt.validation.batches import batches_of, predicted_s
from coopt.validation.published import read_measurements
from coopt.validation.runs import MeasuredRun, runs_among
from docs.calibration_record import later_errors, later_runs, of_generation_before

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "benchmarks" / "published.csv"
COVERAGE = ROOT / "benchmarks" / "errors.csv"
UNSEEN = ROOT / "benchmarks" / "left_out.csv"
LEVEL, RANGE = 0.9, 0.99
IN_LEVEL = NormalDist().inv_cdf((1.0 + LEVEL) / 2.0) * NORMAL
"""Half an interval, in mean sizes of normally distributed errors."""
BUCKETS = ("architecture", "generation", "precision", "experts_across", "graphs", "software")
HARDER = ("mixture of experts", HYBRID, "blackwell", "blackwell 16-bit")
"""What may be harder to predict than dense models on other GPUs."""
STEP = math.log(1.25)
"""How much larger errors are taken to be for each property of model, hardware and software that no
run has: judgement, as 11 sources do not tell them apart. Also what `HARDER` are expected to make,
give or take.
"""
OF_MAPPING = {name: math.log(1.1) for name in ("experts_across", "micro_batch", "gpus")}
"""The same of what does not raise errors in the rows that there are."""


def published_runs() -> list[MeasuredRun]:
    """Return all published runs, the later ones last."""
    return [*runs_among(read_measurements(ROWS)), *later_runs()[0]]


def practice_of_run(run: MeasuredRun) -> Practice:
    """Return the properties of a measured run that its error depends on."""
    tp, cp, dp, _ = run.split.inside
    ranks_inside = cp * dp * (tp // tp_of_experts(tp, run.split.expert_tp))
    return practice_of(
        run.gpu,
        run.workload,
        experts_across=math.gcd(run.split.ep, ranks_inside) < run.split.ep,
        micro_batch=run.split.micro_batch,
        gpus=run.gpus,
    )


def _as_it_is(software: Software) -> Software:
    return software


def log_errors(runs: Sequence[MeasuredRun], gpu: Callable[[Gpu], Gpu]) -> Any:
    """Return log(measured / predicted) of runs on other hardware."""
    measured = np.array([run.measured_s for run in runs])
    return np.log(measured / predicted_s(batches_of(runs), gpu, _as_it_is))


def left_out_errors(runs: Sequence[MeasuredRun]) -> dict[str, float]:
    """Return log errors of runs by fits that have not seen their source; of hybrids, which no fit
    uses, the present ones, and of runs that came after the fits those without them.
    """
    with UNSEEN.open(encoding="utf-8", newline="") as stream:
        known = {row["id"]: float(row["error"]) for row in csv.DictReader(stream)}
    known |= later_errors(*later_runs())
    hybrids = [run for run in runs if practice_of_run(run).architecture == HYBRID]
    errors = log_errors(hybrids, lambda gpu: gpu)
    return {run.id: -math.log1p(known[run.id]) for run in runs if run.id in known} | {
        run.id: float(error) for run, error in zip(hybrids, errors, strict=True)
    }


def generation_step(runs: Sequence[MeasuredRun], left_out: dict[str, float]) -> float:
    """Return how much larger errors are with the efficiencies of another generation."""
    _, fitted = later_runs()  # whose errors are with another generation's already
    both = [
        run
        for run in runs
        if run.id in left_out
        and run.gpu.efficiency.fp8 is not None
        and run.generation not in fitted
    ]
    sizes = np.abs([left_out[run.id] for run in both])
    return math.log(np.abs(log_errors(both, of_generation_before)).mean() / sizes.mean())


class Bucket(NamedTuple):
    """Rows of one property inside their intervals, and the range that 90% explain."""

    shared: str
    value: str
    covered: int
    n: int
    least: int
    most: int

    @property
    def holds(self) -> bool:
        """Whether as many lie inside as intervals of 90% explain."""
        return self.least <= self.covered <= self.most


@dataclass(frozen=True, eq=False)
class Rows:
    """Published runs, and the sizes of the errors of those that were predicted without their
    source.
    """

    listed: tuple[MeasuredPractice, ...]
    practices: tuple[Practice, ...]
    sources: Any
    errors: Any
    weights: dict[str, float]
    blind: frozenset[str] = frozenset()
    """Generations whose errors are without any run of them."""

    @classmethod
    def of(cls, runs: Sequence[MeasuredRun]) -> Rows:
        """Return the rows of published runs, of those listed one of each source and practice."""
        left_out = left_out_errors(runs)
        listed: dict[object, MeasuredPractice] = {}
        for run in runs:
            one = MeasuredPractice(run.id, run.group, practice_of_run(run))
            listed.setdefault(one[1:], one)
        judged = [run for run in runs if run.id in left_out]
        weights = dict.fromkeys(Practice._fields, STEP) | OF_MAPPING
        weights["generation"] = generation_step(runs, left_out)
        return cls(
            tuple(listed.values()),
            tuple(map(practice_of_run, judged)),
            np.array([run.group for run in judged]),
            np.array([left_out[run.id] for run in judged]),
            {name: round(weight, 3) for name, weight in weights.items()},
            frozenset(later_runs()[1]),
        )

    @property
    def groups(self) -> list[str]:
        """The sources of rows."""
        return list(dict.fromkeys(self.sources.tolist()))

    @cached_property
    def away(self) -> dict[str, Any]:
        """How far each row is from the nearest run of each source."""
        law = ErrorLaw(1.0, {}, self.weights)
        nearest: dict[str, Any] = {}
        for source in dict.fromkeys(run.source for run in self.listed):
            of_source = [run.practice for run in self.listed if run.source == source]
            away = [
                min(
                    (law.away(own, run) for run in of_source if self._is_evidence(own, run)),
                    default=np.inf,
                )
                for own in self.practices
            ]
            # a run is no evidence of its own source
            nearest[source] = np.where(self.sources == source, np.inf, away)
        return nearest

    def _is_evidence(self, own: Practice, run: Practice) -> bool:
        """Whether a run counts as near: of generations predicted without any run, none does."""
        return not {own.generation, run.generation} <= self.blind

    @cached_property
    def harder(self) -> Any:
        """Which of `HARDER` each row is."""
        kinds = [[float(kind in own.kinds) for kind in HARDER] for own in self.practices]
        return np.array(kinds)

    def law_without(self, left_out: Collection[str]) -> ErrorLaw:
        """Return the most likely law of rows of other sources, whose sizes are exponentially
        distributed; scaled so that its intervals hold what they claim if one more is left out.
        """
        kept = [group for group in self.groups if group not in left_out]
        scores = np.concatenate([self._scores(group, [*left_out, group]) for group in kept])
        # the quantile of split conformal prediction: the next row is one more
        level = LEVEL * (1 + 1 / len(scores))
        scale = np.quantile(scores, level, method="higher") / IN_LEVEL
        base, *harder = self._fitted(left_out)
        return ErrorLaw(
            float(f"{scale * math.exp(base):.3g}"),
            {name: round(float(h), 3) for name, h in zip(HARDER, harder, strict=True)},
            self.weights,
        )

    def sizes(self, law: ErrorLaw, group: str) -> Any:
        """Return the mean sizes that a law claims of the rows of a source."""
        point = np.array([math.log(law.base), *law.harder.values()])
        return np.exp(self._log_sizes(point, {group}))[self.sources == group]

    def _scores(self, group: str, left_out: Collection[str]) -> Any:
        """Sizes of errors of a source over those of an unscaled law that has not seen it."""
        log_sizes = self._log_sizes(self._fitted(left_out), left_out)
        return (np.abs(self.errors) / np.exp(log_sizes))[self.sources == group]

    def _log_sizes(self, point: Any, left_out: Collection[str]) -> Any:
        seen = [away for source, away in self.away.items() if source not in left_out]
        return point[0] + self.harder @ point[1:] + np.min(seen, axis=0)

    def _fitted(self, left_out: Collection[str]) -> Any:
        used = ~np.isin(self.sources, list(left_out))
        rows = np.c_[np.ones(used.sum()), self.harder[used]]
        start = np.zeros(len(HARDER) + 1)
        away = self._log_sizes(start, left_out)[used]
        sizes = np.abs(self.errors[used])

        def loss(point: Any) -> tuple[float, Any]:
            log_sizes = rows @ point + away
            over, apart = sizes * np.exp(-log_sizes), np.r_[0.0, point[1:]] / STEP**2
            value = (log_sizes + over).sum() + 0.5 * (apart @ point)
            return float(value), rows.T @ (1.0 - over) + apart

        start[0] = math.log(sizes.mean())
        return optimize.minimize(loss, start, jac=True, method="BFGS").x

    def left_out_sizes(self) -> Any:
        """Return the mean sizes that are claimed of each row by a law without its source."""
        sizes = np.empty(len(self.errors))
        for group in self.groups:
            sizes[self.sources == group] = self.sizes(self.law_without([group]), group)
        return sizes

    def coverage(self) -> Iterator[Bucket]:
        """Yield how many rows lie in the intervals of laws without their source: of all, and by one
        property at a time.
        """
        inside = np.abs(self.errors) <= IN_LEVEL * self.left_out_sizes()
        members = {("all", ""): inside}
        for name in BUCKETS:
            values = [str(getattr(own, name)) for own in self.practices]
            members |= {(name, v): inside[np.array(values) == v] for v in dict.fromkeys(values)}
        for (name, value), rows in members.items():
            least, most = binom.interval(RANGE, len(rows), LEVEL)
            yield Bucket(name, value, int(rows.sum()), len(rows), int(least), int(most))


def page(rows: Rows) -> str:
    """Return the whole file, a run a line."""
    lines = ",\n".join(json.dumps([one.id, one.source, *one.practice]) for one in rows.listed)
    head = json.dumps(rows.law_without([])._asdict(), indent=1)[:-2]
    return f'{head},\n "runs": [\n{lines}\n]\n}}\n'


def coverage(rows: Rows) -> str:
    """Return rows inside intervals by bucket, and the range that 90% explains, as CSV."""
    lines = ["shared,value,inside,rows,least,most"]
    lines += [
        f"{one.shared},{one.value},{one.covered},{one.n},{one.least},{one.most}"
        for one in rows.coverage()
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the law, and how many rows lie in intervals of 90%."""
    rows = Rows.of(published_runs())
    write_text(PLACE, page(rows))
    write_text(COVERAGE, coverage(rows))
    sizes = rows.left_out_sizes() * NORMAL
    for chance in (0.8, 0.95):
        in_time = (rows.errors <= NormalDist().inv_cdf(chance) * sizes).mean()
        print(f"{in_time:.1%} take no longer than with the margin of {chance:.0%}")


if __name__ == "__main__":
    main()
