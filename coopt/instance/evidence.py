"""How far predicted iteration times are off, by how far a run is from published ones
(docs/days.md).

`measured.json` has the published runs and the law of the error, as `benchmarks/errors.py` writes
them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

PLACE = Path(__file__).parent / "measured.json"
TWICE = 2.0
"""Factor up to which micro-batches, and numbers of GPUs above, are those of a measured run."""
NORMAL = math.sqrt(math.pi / 2)
"""Standard errors in a mean size of errors that are normally distributed."""
JOINTLY = 2
"""Properties of a run that are looked for together in one published run."""
NAMED = 2
"""Nearest runs that a plan names."""
PHRASES = {
    "architecture": "of {}",
    "generation": "on {} GPUs",
    "precision": "in {}",
    "gpu": "on {}",
    "software": "by {}",
    "graphs": "with CUDA graphs: {}",
    "experts_across": "{} EP across HB domains",
    "micro_batch": "with micro-batches of {}",
    "gpus": "on {:,} GPUs",
}
PLURALS = {
    "dense": "dense models",
    "mixture of experts": "mixtures of experts",
    "hybrid": "hybrids with Mamba-2 or linear attention",
}
"""Kinds of models, and several of each."""


class Practice(NamedTuple):
    """The properties of a run that the error of its predicted time depends on."""

    architecture: str
    generation: str
    precision: str
    gpu: str
    software: str
    graphs: str
    experts_across: bool
    micro_batch: int
    gpus: int

    @property
    def kinds(self) -> tuple[str, str, str]:
        """What may be harder to predict: kind of model, generation, and precision on it."""
        return self.architecture, self.generation, f"{self.generation} {self.precision}"

    def gaps_to(self, run: Practice) -> dict[str, float]:
        """Return the properties in which a published run differs, and by how much: 1, or, of more
        GPUs, the doublings beyond the first.
        """
        smaller, larger = sorted((self.micro_batch, run.micro_batch))
        doublings = math.log2(self.gpus / (run.gpus * TWICE))
        pairs = zip(self._fields[:7], self, run, strict=False)
        gaps = {name: 1.0 for name, own, other in pairs if own != other}
        if larger > TWICE * smaller:
            gaps["micro_batch"] = 1.0
        if doublings > 0.0:
            gaps["gpus"] = doublings
        return gaps

    def phrase(self, *names: str) -> str:
        """Return properties in words: `on b300 with EP across HB domains`."""
        return " ".join(in_words(name, getattr(self, name)) for name in names)


def in_words(name: str, value: Any) -> str:
    """Return a property of a run in words: `with EP across HB domains`."""
    if name == "architecture":
        value = PLURALS[value]
    elif name == "experts_across":
        value = "with" if value else "without"
    return PHRASES[name].format(value)


class MeasuredPractice(NamedTuple):
    """A published run: its id, its source, and its properties."""

    id: str
    source: str
    practice: Practice


class ErrorLaw(NamedTuple):
    r"""The mean size of the log error of a predicted time.

    .. math:: b = b_0 \exp\left(\sum_k h_k + \min_r \sum_k w_k \, \delta_k(r)\right)

    `harder` has :math:`h` by kind, `weights` :math:`w` by property.
    """

    base: float
    harder: Mapping[str, float]
    weights: Mapping[str, float]

    def away(self, practice: Practice, run: Practice) -> float:
        """Return the weighted distance of a published run."""
        return sum(self.weights[name] * gap for name, gap in practice.gaps_to(run).items())

    def error(self, practice: Practice, away: float) -> float:
        """Return the mean size of the log error at a distance from the nearest run."""
        return self.base * math.exp(sum(self.harder.get(k, 0.0) for k in practice.kinds) + away)


class Evidence(NamedTuple):
    """Published runs, of those with equal properties and source one each, and the law."""

    runs: tuple[MeasuredPractice, ...]
    law: ErrorLaw


@cache
def measured() -> Evidence:
    """Return what `measured.json` has."""
    table = json.loads(PLACE.read_text("utf-8"))
    runs = (
        MeasuredPractice(name, source, Practice(*properties))
        for name, source, *properties in table["runs"]
    )
    return Evidence(tuple(runs), ErrorLaw(table["base"], table["harder"], table["weights"]))


@cache
def error_of(practice: Practice) -> float:
    """Return the mean size of the log error of a run's predicted time."""
    known = measured()
    away = min(known.law.away(practice, run.practice) for run in known.runs)
    return known.law.error(practice, away)


@cache
def is_measured(gpu: str) -> bool:
    """Whether some published run is on a GPU of the catalog."""
    return any(run.practice.gpu == gpu for run in measured().runs)


def longer(error: float, chance: float) -> float:
    """Return the share by which a time is longer with a probability, for a mean size of log errors.

    Log errors are taken for normal, whose mean size is sqrt(2 / pi) standard errors.
    """
    return math.expm1(NormalDist().inv_cdf(chance) * NORMAL * error)


@cache
def nearest_runs(practice: Practice) -> tuple[MeasuredPractice, ...]:
    """Return the published runs nearest to one, by the law; of equal ones those of its size."""
    known = measured()

    def order(run: MeasuredPractice) -> tuple[float, float]:
        away = round(known.law.away(practice, run.practice), 9)
        return away, abs(math.log2(practice.gpus / run.practice.gpus))

    return tuple(sorted(known.runs, key=order)[:NAMED])


def differences(practice: Practice, run: Practice) -> tuple[str, ...]:
    """Return how a published run differs, in its own words."""
    return tuple(run.phrase(name) for name in practice.gaps_to(run))


@cache
def outside(practice: Practice) -> tuple[str, ...]:
    """Return the properties, one or two together, that no published run has, in words."""
    gaps = [practice.gaps_to(run.practice).keys() for run in measured().runs]
    missing: list[tuple[str, ...]] = []
    for count in range(1, JOINTLY + 1):
        for names in combinations(_distinct(practice), count):
            is_new = not any(set(known) <= set(names) for known in missing)
            if is_new and all(not gap.isdisjoint(names) for gap in gaps):
                missing.append(names)
    return tuple(practice.phrase(*names) for names in missing)


def _distinct(practice: Practice) -> Iterator[str]:
    """Yield the properties to look for; a GPU stands for its generation where some run has it."""
    has_runs = is_measured(practice.gpu)
    yield from (name for name in practice._fields if not (has_runs and name == "generation"))
