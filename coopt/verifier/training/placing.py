"""How a mapping lies on HB domains: the part of each dimension inside a domain and the part across."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from coopt.instance.workload import Workload
from coopt.plan.schema import WorkloadPlan
from coopt.verifier.training.mappings import ScalarMapping, divisors


class Placement(NamedTuple):
    """Parts of each dimension inside an HB domain and across domains.

    `copies` are the GPUs that hold the same experts, y_xh and y_xl of docs/model.md; 1 for a dense model. TP blocks of
    a stage follow each other, or, where replicas are `outermost`, those of a pipeline.
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
    dp_fewest: int = 0
    """replicas of a stage in the domain that holds fewest, where domains are not filled alike; 0 where they are"""
    outermost: Literal["pp", "dp"] = "pp"

    @property
    def filled(self) -> int:
        """GPUs that train in the fullest domain."""
        return self.tp_in * self.cp_in * self.pp_in * self.dp_in

    def fewest(self, inside: int) -> int:
        """Ranks in the domain that holds fewest, of DP ranks or copies of experts of which the fullest has `inside`."""
        return inside * (self.dp_fewest or self.dp_in) // self.dp_in

    @property
    def step(self) -> int:
        """TP blocks from one of a stage to its next one."""
        return self.pp_across if self.outermost == "dp" else 1

    @property
    def hop(self) -> int:
        """Domains from a stage to the next one."""
        return self.tp_across if self.outermost == "dp" else self.stage_across

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


class Rooms(NamedTuple):
    """Domains that are not filled alike, with room for `size` GPUs each."""

    domains: int
    size: int


def placements(
    workload: Workload, split: ScalarMapping, active: int, rooms: Rooms | None = None, *, turned: bool = False
) -> tuple[Placement, ...]:
    """All ways to put `active` GPUs of a mapping into one domain, or any number of them that keeps groups whole.

    `turned` ones have replicas outermost.
    """
    degrees = _degrees(workload, split)
    found = _placements(degrees, active) if rooms is None else tuple(_uneven(degrees, rooms))
    if not workload.allow_tp_across:
        found = tuple(place for place in found if place.tp_across == 1)
    allowed, alike = workload.mapping.outermost, rooms is None
    may = (place for place in found if turned and alike and "dp" in allowed and may_turn(workload, place))
    others = (place._replace(outermost="dp") for place in may)
    return (*(found if "pp" in allowed else ()), *others)


def may_turn(workload: Workload, place: Placement) -> bool:
    """Whether replicas may lie outermost: where they and stages lie across, one stage to a domain, and groups of
    experts do not run over TP ranks in several domains.
    """
    whole = place.tp_across == 1 or not workload.model.experts or workload.options.expert_tp
    return place.pp_in == 1 < place.pp_across and place.stage_across > place.tp_across and whole


def placement_of(workload: Workload, plan: WorkloadPlan, active: int, rooms: Rooms | None = None) -> Placement | None:
    """The placement of a plan whose mapping is sound; None where it does not multiply out."""
    pairs, mapping = plan.placement, plan.mapping
    if set(pairs) != {"tp", "pp", "dp", "cp", "ep"} or min(min(pair) for pair in pairs.values()) < 1:
        return None
    if rooms is not None:
        degrees = _Degrees(mapping.tp, mapping.pp, mapping.dp, mapping.cp, *_expert_degrees(workload, mapping.ep))
        if mapping.outermost == "dp":
            return None
        claimed = tuple(number for key in ("tp", "pp", "dp", "cp", "ep") for number in pairs[key])
        return next((place for place in _uneven(degrees, rooms) if place[: len(claimed)] == claimed), None)
    if any(inside * across != getattr(mapping, key) for key, (inside, across) in pairs.items()):
        return None
    if pairs["tp"][1] > 1 and not workload.allow_tp_across:
        return None
    inside = [pairs[key][0] for key in ("tp", "pp", "dp", "cp")]
    if math.prod(inside) != active:
        return None
    degrees = _Degrees(mapping.tp, mapping.pp, mapping.dp, mapping.cp, *_expert_degrees(workload, mapping.ep))
    place = _placed(degrees, *inside)._replace(outermost=mapping.outermost)
    if mapping.outermost == "dp" and not may_turn(workload, place):
        return None
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


def _uneven(degrees: _Degrees, rooms: Rooms) -> Iterator[Placement]:
    """TP, context and expert groups whole in every domain; replicas of a stage as even as they go."""
    ranks = degrees.tp * degrees.cp
    for stages in divisors(degrees.pp):
        across = degrees.pp // stages
        count, odd = divmod(rooms.domains, across)
        if odd or not 0 < count <= degrees.dp:
            continue
        fewest, more = divmod(degrees.dp, count)
        most = fewest + (more > 0)
        if ranks * stages * most > rooms.size:
            continue
        parts = (degrees.tp, 1, stages, across, most, count, degrees.cp, 1)
        if not degrees.ep:
            yield Placement(*parts, dp_fewest=fewest)
            continue
        holders = degrees.cp * (1 if degrees.expert_tp else degrees.tp)
        if holders * fewest % degrees.ep == 0 and holders * most % degrees.ep == 0:
            yield Placement(*parts, degrees.ep, 1, holders * most // degrees.ep, count, fewest)


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
