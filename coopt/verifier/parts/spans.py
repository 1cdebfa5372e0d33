"""Which bandwidth a group of GPUs sees."""

from __future__ import annotations

import math
from typing import NamedTuple

from coopt.verifier.parts.layouts import Ports, leaf_count
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.training.communication import Speeds
from coopt.verifier.training.placing import Placement


class Reach(NamedTuple):
    """Consecutive domains a leaf and a pod hold, the slowdown in a leaf's pod and beyond it, and what routing adds.

    `spare` is set after the loss of a domain: how many domains a job has left over, the lost one among them.
    """

    domains: int
    leaf_span: int
    pod_span: int
    in_pod: float
    beyond: float
    routing: float = 1.0
    spare: int | None = None

    def slowdown(self, block: int, whole: int | None = None) -> float:
        """What groups within `block` consecutive domains see: 1 at the full rate of the NIC.

        After a loss blocks of `whole` domains are what has to be kept together.
        """
        if self.inside(self.leaf_span, block, whole):
            return 1.0
        return self.routing * (self.in_pod if self.inside(self.pod_span, block, whole) else self.beyond)

    def inside(self, span: int, block: int, whole: int | None = None) -> bool:
        """Whether every block of that many domains stays within a span."""
        divides = span > 0 and span % block == 0
        if self.spare is None:
            return span >= self.domains or divides
        return span > self.domains or (divides and (whole or block) <= self.spare)


class Blocks(NamedTuple):
    """Consecutive domains that the groups of each rate occupy; CP groups, and copies of experts, have that of DP."""

    tp: int
    pp: int
    dp: int
    ep: int


def reach_of(family: DesignFamily, ports: Ports) -> Reach:
    """How far traffic of a design reaches without slowdown, and how much slower it is beyond."""
    domains = family.domains
    if ports.tiers <= 1:
        return Reach(domains, domains, domains, 1.0, 1.0)
    assert family.gear is not None
    leaf_domains, routing = leaf_span(family, ports.down), family.gear.routing
    in_pod = ports.down / ports.up
    if ports.tiers == 2:
        return Reach(domains, leaf_domains, domains, in_pod, in_pod, routing)
    return Reach(
        domains, leaf_domains, pod_span(family, ports), in_pod, in_pod * (ports.pod_down / ports.pod_up), routing
    )


def leaf_span(family: DesignFamily, down: int) -> int:
    """Consecutive domains on a leaf."""
    assert family.gear is not None
    if family.gear.kind == "clos":
        return down // family.rails
    return min(down, family.domains)


def pod_span(family: DesignFamily, ports: Ports) -> int:
    """Consecutive domains in a pod of three tiers."""
    assert family.gear is not None
    leaves = leaf_count(family, ports.down)
    if family.gear.kind == "rail-optimized":
        leaves = -(-family.domains // ports.down)
    leaf = leaf_span(family, ports.down)
    if leaves >= ports.pod_down and leaves % ports.pod_down == 0:
        return ports.pod_down * leaf
    return family.domains if ports.pod_down % leaves == 0 else leaf


def blocks_of(place: Placement, domains: int) -> Blocks:
    """S_tp, S_pp, S_dp, S_ep."""
    stage = place.stage_across
    return Blocks(tp=place.tp_across, pp=domains, dp=stage, ep=stage // place.copies_across)


def speeds_of(family: DesignFamily, reach: Reach, place: Placement) -> Speeds:
    """The rates a placement sees on a design."""
    inside = family.hb.gbyte_s * 1e9
    if family.gear is None:
        return Speeds(inside, 0.0, 0.0, 0.0, 0.0)
    blocks, rate = blocks_of(place, family.domains), family.nic_byte_s
    wholes = blocks._replace(ep=math.lcm(blocks.tp, blocks.ep))
    return Speeds(inside, *(reach.slowdown(block, whole) / rate for block, whole in zip(blocks, wholes, strict=True)))
