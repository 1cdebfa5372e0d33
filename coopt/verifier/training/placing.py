"""How a mapping lies on HB domains: the part of each dimension inside a domain and the part across."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from coopt.instance.workload import Workload
from coopt.plan.schema import WorkloadPlan
from coopt.verifier.training.mappings import ScalarMapping, divisors


class Placement(NamedTuple):
    """Parts of each dimension inside an HB domain and across domains.

    `copies` are the GPUs that hold the same experts, y_xh and y_xl of docs/model.md; 1 for a dense model.
    """

    tp_in: int
    tp_across: int
    pp_in: int
    pp_across: int
    dp_in: int
    dp_across: int
    cp_in: int = 1
    cp_across: int = 1
    ep_in: int = 1
    ep_across: int = 1
    copies_in: int = 1
    copies_across: int = 1

    @property
    def stage_across(self) -> int:
        """t_l·c_l·d_l: domains that hold one stage's ranks of all groups."""
        return self.tp_across * self.cp_across * self.dp_across


class _Degrees(NamedTuple):
    """All of a workload and its mapping that placements depend on; `ep` is 0 for a dense model."""

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    expert_tp: bool


def placements(workload: Workload, split: ScalarMapping, active: int) -> tuple[Placement, ...]:
    """All ways to put `active` GPUs of a mapping into one domain."""
    return _placements(_degrees(workload, split), active)


def placement_of(workload: Workload, plan: WorkloadPlan, active: int) -> Placement | None:
    """The placement of a plan whose mapping is sound; None where it does not multiply out."""
    pairs, mapping = plan.placement, plan.mapping
    if set(pairs) != {"tp", "pp", "dp", "cp", "ep"} or min(min(pair) for pair in pairs.values()) < 1:
        return None
    if any(inside * across != getattr(mapping, key) for key, (inside, across) in pairs.items()):
        return None
    inside = [pairs[key][0] for key in ("tp", "pp", "dp", "cp")]
    if math.prod(inside) != active:
        return None
    degrees = _Degrees(mapping.tp, mapping.pp, mapping.dp, mapping.cp, *_expert_degrees(workload, mapping.ep))
    place = _placed(degrees, *inside)
    return place if (place.ep_in, place.ep_across) == tuple(pairs["ep"]) else None


def _degrees(workload: Workload, split: ScalarMapping) -> _Degrees:
    return _Degrees(split.tp, split.pp, split.dp, split.cp, *_expert_degrees(workload, split.ep))


def _expert_degrees(workload: Workload, ep: int) -> tuple[int, bool]:
    return (ep if workload.model.experts else 0), workload.options.expert_tp


@lru_cache(maxsize=200_000)
def _placements(degrees: _Degrees, active: int) -> tuple[Placement, ...]:
    return tuple(_every(degrees, active))


def _every(degrees: _Degrees, active: int) -> Iterator[Placement]:
    for t in divisors(math.gcd(degrees.tp, active)):
        for c in divisors(math.gcd(degrees.cp, active // t)):
            for p in divisors(math.gcd(degrees.pp, active // (t * c))):
                d = active // (t * c * p)
                if degrees.dp % d == 0:
                    yield _placed(degrees, t, p, d, c)


def _placed(degrees: _Degrees, t: int, p: int, d: int, c: int) -> Placement:
    """The placement with t, p, d, c ranks inside a domain.

    An expert group takes ranks of t (unless TP splits the experts), c and d inside the domain before others across.
    """
    parts = (t, degrees.tp // t, p, degrees.pp // p, d, degrees.dp // d, c, degrees.cp // c)
    if not degrees.ep:
        return Placement(*parts)
    inside, across = c * d, parts[5] * parts[7]
    if not degrees.expert_tp:
        inside, across = inside * t, across * parts[1]
    x_in = math.gcd(degrees.ep, inside)
    x_across = degrees.ep // x_in
    return Placement(*parts, x_in, x_across, inside // x_in, across // x_across)
