"""What the collectives of a run go by, in the words of a plan."""

from __future__ import annotations

from coopt.verifier.training.communication import (
    GatherWay,
    LinkShares,
    Speeds,
    Summed,
    exchange_s,
    gather_ways,
    sent_shares,
    summed_by_replicas,
    summed_by_tp,
)
from coopt.verifier.training.placing import Placement
from coopt.verifier.training.work import Work

NEAR = 1e-9
"""Algorithms whose times differ by no more than this share may be named either way."""


def algorithm_names(work: Work, place: Placement, speed: Speeds) -> dict[str, list[str]]:
    """The names that each kind of traffic may have whose groups are of several ranks; none where there is no choice."""
    if not work.links.overlap:
        return {}
    data = summed_by_replicas(work.split)
    groups: dict[str, tuple[int, int, float, Summed]] = {
        "tp": (place.tp_in, place.tp_across, speed.tp_s_byte, summed_by_tp(work.split)),
        "cp": (place.cp_in, place.cp_across, speed.cp_s_byte, "nothing"),
        "dp": (place.dp_in * place.cp_in, place.dp_across * place.cp_across, speed.dp_s_byte, data),
    }
    if work.held.experts:
        groups["edp"] = (place.copies_in, place.copies_across, speed.edp_s_byte, data)
    found = {}
    for kind, (inside, across, s_byte, summed) in groups.items():
        if inside * across > 1:
            ways = gather_ways(1.0, inside, across, speed.inside_byte_s, work.links, summed=summed)
            seconds = [way.seconds(s_byte, work.links) for way in ways]
            near = [way for way, one_s in zip(ways, seconds, strict=True) if one_s <= min(seconds) * (1 + NEAR)]
            found[kind] = [_gather_name(way, inside, across, work.links, summed) for way in near]
    if work.held.experts and place.ep_in * place.ep_across > 1:
        found["ep"] = _exchange_names(work, place, speed)
    return found


def _gather_name(way: GatherWay, inside: int, across: int, links: LinkShares, summed: Summed) -> str:
    if way.at_once:
        return "ring through all ranks"
    if summed != "nothing" and across == 1 and links.hb_sum > links.hb:
        return "switches of the HB domain"
    if summed == "gradients" and across > 1 and links.rail_sums:
        return "switches of the network"
    levels = [ranks for ranks in (inside, across) if ranks > 1]
    tree_steps = sum(2 * (ranks - 1).bit_length() for ranks in levels)
    return "trees" if tree_steps < sum(ranks - 1 for ranks in levels) else "rings"


def _exchange_names(work: Work, place: Placement, speed: Speeds) -> list[str]:
    """An exchange runs on both levels at once where it has both and this takes less."""
    ends, links = (place.ep_in, place.ep_across), work.links
    if not (links.overlap and work.traffic.once and min(ends) > 1):
        return ["exchange"]
    where = (*ends, sent_shares(work.traffic, *ends), speed.inside_byte_s, speed.ep_s_byte)
    at_once, by_levels = (exchange_s(1e9, *where, links._replace(overlap=both)) for both in (True, False))
    return ["exchange on both levels at once"] if at_once < by_levels else ["exchange"]
