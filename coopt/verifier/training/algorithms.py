"""What the collectives of a run go by, in the words of a plan."""

from __future__ import annotations

from coopt.verifier.training.communication import LinkShares, Speeds, exchange_s, sent_shares
from coopt.verifier.training.gathers import (
    GatherWay,
    Group,
    Repeated,
    Summed,
    collective_steps,
    gather_ways,
    summed_by_replicas,
    summed_by_tp,
)
from coopt.verifier.training.iteration import exchanges, replica_groups, tp_group
from coopt.verifier.training.placing import Placement
from coopt.verifier.training.work import Work

NEAR = 1e-9
"""Algorithms whose times differ by no more than this share may be named either way."""


def algorithm_names(work: Work, place: Placement, speed: Speeds) -> dict[str, list[str]]:
    """The names that each kind of traffic may have whose groups are of several ranks; none where there is no choice."""
    if not work.links.overlap:
        return {}
    data, byte_s = summed_by_replicas(work.split), speed.inside_byte_s
    s_byte = {"dp": speed.dp_s_byte, "edp": speed.edp_s_byte}
    replicas = replica_groups(work, place, byte_s, s_byte, speed.other_ways)
    over_tp = tp_group(work, place, byte_s, speed.tp_s_byte, speed.other_ways)
    over_cp = Group(place.cp_in, place.cp_across, byte_s, speed.cp_s_byte)
    kinds: dict[str, tuple[Group, list[Repeated], Summed]] = {
        "tp": (over_tp, [Repeated(1, work.traffic.gathered_bytes)], summed_by_tp(work.split)),
        "cp": (over_cp, [Repeated(1, work.traffic.ring_bytes)], "nothing"),
        "dp": (replicas["dp"], exchanges(work, work.held.common), data),
    }
    if work.held.experts:
        kinds["edp"] = (replicas["edp"], exchanges(work, work.held.experts), data)
    found = {
        kind: _gather_names(*one, work.links, sized=kind != "cp" and not (kind == "tp" and work.traffic.row_gathers))
        for kind, one in kinds.items()
        if one[0].inside * one[0].across > 1
    }
    if work.held.experts and place.ep_in * place.ep_across > 1:
        found["ep"] = _exchange_names(work, place, speed)
    return found


def _gather_names(
    group: Group, several: list[Repeated], summed: Summed, links: LinkShares, *, sized: bool
) -> list[str]:
    """The ways that take least, which may be several."""
    tables = [gather_ways(one.size_bytes, group, links, summed) for one in several]
    choices = list(zip(*tables, strict=True))
    seconds = [sum(one.times * way.seconds(links) for one, way in zip(several, ways, strict=True)) for ways in choices]
    near = [ways[0] for ways, one_s in zip(choices, seconds, strict=True) if one_s <= min(seconds) * (1 + NEAR)]
    return [_gather_name(way, group, links, summed, sized=sized) for way in near]


def _gather_name(way: GatherWay, group: Group, links: LinkShares, summed: Summed, *, sized: bool) -> str:
    inside, across = group.inside, group.across
    if way.name != "rings":
        return way.name
    if summed != "nothing" and across == 1 and links.hb_sum > links.hb:
        return "switches of the HB domain"
    if summed == "gradients" and across > 1 and links.rail_sums:
        return "switches of the network"
    if sized:
        return "rings" if across > 1 or inside == 2 else "halving and doubling"
    return "trees" if collective_steps(inside, across) < inside - 1 + across - 1 else "rings"


def _exchange_names(work: Work, place: Placement, speed: Speeds) -> list[str]:
    """An exchange runs on both levels at once where it has both and this takes less."""
    ends, links = (place.ep_in, place.ep_across), work.links
    if not (links.overlap and work.traffic.once and min(ends) > 1):
        return ["exchange"]
    where = (*ends, sent_shares(work.traffic, *ends), speed.inside_byte_s, speed.ep_s_byte)
    at_once, by_levels = (exchange_s(1e9, *where, links._replace(overlap=both)) for both in (True, False))
    return ["exchange on both levels at once"] if at_once < by_levels else ["exchange"]
