"""Loads counted on intervals of domains are those of flows that are routed one by one over the whole graph."""

import math
from collections import Counter
from itertools import product
from random import Random
from typing import Literal

import numpy as np
import pytest

from coopt.columns.grid import context_of, groups_of
from coopt.columns.loads import busiest_link, crossings
from coopt.instance.network import Discipline, FabricKind
from coopt.network.plan_networks import design_of
from coopt.network.schedules.textbook import two_trees
from coopt.network.space import families as plan_families
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.parts.design_checks import check_design, check_ports
from coopt.verifier.parts.layouts import Ports, ceil_ratio, leaf_count
from coopt.verifier.parts.link_loads import DomainFlow, RoutedNetwork, busiest_links, domain_flows, is_even
from coopt.verifier.parts.loads import LeafLayout, Pattern, Senders, most_flows_anywhere, outgoing
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import link_load, mean_loads, on_random_paths, other_ways, reach_of
from coopt.verifier.parts.wiring import WiredGraph, wire
from coopt.verifier.training.mappings import divisors
from coopt.verifier.training.placing import Placement
from tests.conftest import example_count
from tests.verifier.agreement import question
from tests.verifier.test_layouts import family

NETWORKS = example_count(500, usual=40)
QUESTIONS = example_count(200, usual=12)
KINDS_OF_TRAFFIC = ("tp", "cp", "dp", "ep", "edp", "pp", "tied")
WAYS: tuple[Literal["tp", "dp", "edp"], ...] = ("tp", "dp", "edp")
KINDS: tuple[FabricKind, ...] = ("rail-only", "rail-optimized", "clos")


def placement(draw: Random, active: int, domains: int, *, expert_tp: bool) -> Placement:
    """A placement that fills `active` GPUs of each of so many domains."""
    inside, across = (_factors(draw, number) for number in (active, domains))
    (t, c, d, p), (tl, cl, dl, pl) = inside, across
    held_inside, held_across = c * d * (1 if expert_tp else t), cl * dl * (1 if expert_tp else tl)
    x = draw.choice(divisors(held_inside * held_across))
    x_in = math.gcd(x, held_inside)
    x_across = math.gcd(x // x_in, held_across)
    return Placement(t, tl, p, pl, d, dl, c, cl, x_in, x_across, held_inside // x_in, held_across // x_across)


def _factors(draw: Random, number: int) -> list[int]:
    """Four numbers of that product, in any order."""
    found = []
    for _ in range(3):
        found.append(draw.choice(divisors(number)))
        number //= found[-1]
    found.append(number)
    draw.shuffle(found)
    return found


def network(draw: Random) -> tuple[DesignFamily, Ports]:
    """A small network of two or three tiers whose bundles are even; uneven leaves and pods, idle GPUs among them."""
    kind, size, per_gpu = draw.choice(KINDS), draw.choice([2, 3, 4, 6, 8]), draw.choice([1, 1, 2])
    active = draw.randint(size // 2 + 1, size)
    domains = draw.choice([4, 6, 8, 9, 12, 16, 18, 24, 30, 36])
    any_radix = family(kind, domains * active, size, 64, active, per_gpu)
    rails, nominal = size * per_gpu, draw.randint(2, 12)
    block = {"rail-only": 1, "rail-optimized": domains, "clos": rails}[kind]
    down = block * (nominal // block) if block <= nominal else nominal
    down = min(down, any_radix.ends - 1)
    leaves, up = leaf_count(any_radix, down), draw.randint(1, 6)
    if draw.random() < 0.4 or leaves < 3:
        spines = draw.choice(divisors(up))
        radix, ports = leaves * up // spines, Ports(2, down, up)
    else:
        below, above = draw.randint(2, max(2, leaves - 1)), draw.randint(1, 4)
        cores = draw.choice(divisors(above))
        radix, ports = ceil_ratio(leaves, below) * above // cores, Ports(3, down, up, below, above)
    return family(kind, domains * active, size, radix, active, per_gpu), ports


def test_gpus_with_the_same_stages_send_more_out_of_a_leaf_than_hops_do() -> None:
    """Eight stages of a domain each, four to a leaf: all four send to their twin, one to a stage outside."""
    rails = family("rail-only", 8 * 4, 4, 64, 4, 1)
    place = Placement(4, 1, 1, 8, 1, 1, two_way=True)
    flows = [mean_loads(reach_of(rails, Ports(2, down, 2)), 4, place, looped=False) for down in (4, 3, 8)]
    assert [(one.pp, one.tied) for one in flows] == [(0.5, 2.0), (1.0, 1.5), (0.0, 0.0)]
    assert domain_flows(place, looped=False, expert_tp=False)["tied"] == [DomainFlow(i, 7 - i) for i in range(8)]


def turns(place: Placement, expert_tp: bool) -> bool:
    """Whether replicas can lie outermost; without experts TP parts none."""
    whole = place.tp_across == 1 or expert_tp or place.ep_across * place.copies_across == 1
    return place.pp_in == 1 < place.pp_across and place.stage_across > place.tp_across and whole


def compare(seed: int) -> Counter[str]:
    """Compare all kinds of traffic on one network; which situations it showed."""
    draw = Random(seed)
    here, ports = network(draw)
    expert_tp, looped = draw.random() < 0.5, draw.random() < 0.5
    place = placement(draw, here.active, here.domains, expert_tp=expert_tp)
    place = place._replace(outermost="dp" if turns(place, expert_tp) and draw.random() < 0.8 else "pp")
    place = place._replace(two_way=not looped and draw.random() < 0.5)
    wiring, reach = wire(here, ports), reach_of(here, ports)
    assert is_even(wiring)
    counted = mean_loads(reach, here.active, place, looped=looped)._asdict()
    routed = busiest_links(wiring, here, place, looped=looped, expert_tp=expert_tp)
    for kind, load in routed.items():
        assert counted[kind] == pytest.approx(load, rel=1e-9), (seed, kind, here, ports, place, looped)
    seen = Counter(kind for kind, load in routed.items() if load)
    seen += compare_ways(wiring, here, ports, place, expert_tp=expert_tp)
    kind, leaves = here.attachment.kind, leaf_count(here, ports.down)
    seen.update([kind, f"{ports.tiers} tiers"])
    seen["replicas outermost"] = place.outermost == "dp"
    seen["pipelines of TP blocks"] = place.outermost == "dp" and place.tp_across > 1
    seen["stages with twins"] = place.two_way and place.pp_across > 1
    seen["idle"] = here.active < here.hb.size
    seen["two NICs"] = here.attachment.per_gpu == 2
    seen["stages inside and across"] = place.pp_in > 1 and place.pp_across > 1
    seen["uneven last leaf"] = here.ends % ports.down > 0
    seen["uneven last pod"] = ports.tiers == 3 and leaves % ports.pod_down > 0
    seen["pods of several rails"] = (
        kind == "rail-optimized" and ports.tiers == 3 and ceil_ratio(here.domains, ports.down) < ports.pod_down
    )
    seen["domains larger than a leaf"] = kind == "clos" and here.rails > ports.down
    return seen


def rings(flows: list[DomainFlow]) -> list[list[int]]:
    """The members of every ring in the order in which they send."""
    after, found = {one.sender: one.receiver for one in flows}, []
    while after:
        first = min(after)
        members = [first]
        while (following := after.pop(members[-1])) != first:
            members.append(following)
        found.append(members)
    return found


def compare_ways(
    wiring: WiredGraph, here: DesignFamily, ports: Ports, place: Placement, *, expert_tp: bool
) -> Counter[str]:
    """Halving and doubling, round by round, and two trees, in place of the rings of a kind."""
    seen, network = Counter[str](), RoutedNetwork(wiring, here, place)
    flows = domain_flows(place, looped=False, expert_tp=expert_tp)
    layers = reach_of(here, ports)
    slow = layers._replace(discipline=Discipline("loads", "spray", 0.25))  # so slow that any load counts
    for kind in WAYS:
        groups = rings(flows[kind])
        if not groups or len(groups[0]) < 3:
            continue
        counted, y = other_ways(slow, here.active, place, kind), len(groups[0])
        rounds = zip(halving_shares(y), halving_loads(network, groups), strict=True)
        charged = sum(share * max(1.0, load / 0.25) for share, load in rounds)
        assert counted.halving.sure == pytest.approx(charged, rel=1e-9), (kind, here, ports, place)
        seen[f"halving of {kind}"] += charged > 1
        charged = max(1.0, trees_load(network, groups) / 0.25)
        assert counted.trees.sure == pytest.approx(charged, rel=1e-9), (kind, here, ports, place)
        seen[f"trees of {kind}"] += charged > 1
        seen["trees on parts of domains"] += layers.leaf_span == 0
    return seen


def halving_shares(y: int) -> list[float]:
    """Shares of the bytes in the rounds of halving and doubling among some members."""
    return [len([n for n in range(1, y) if n & -n == 2**j]) / (y - 1) for j in range((y - 1).bit_length())]


def halving_loads(network: RoutedNetwork, groups: list[list[int]]) -> list[float]:
    """The load of the busiest link in each round of halving and doubling."""
    y, loads = len(groups[0]), []
    for j in range((y - 1).bit_length()):
        far = [i ^ 2**j if y & (y - 1) == 0 else (i + 2**j) % y for i in range(y)]
        loads.append(network.busiest([DomainFlow(one[i], one[far[i]]) for one in groups for i in range(y)]))
    return loads


def trees_load(network: RoutedNetwork, groups: list[list[int]]) -> float:
    """The load of the busiest link under two trees, each edge a quarter of a NIC's rate each way."""
    edges = [(a, b) for tree in two_trees(len(groups[0])) for a, below in tree.items() for b in below]
    sent = [DomainFlow(one[i], one[j]) for one in groups for a, b in edges for i, j in ((a, b), (b, a))]
    return network.busiest(sent) / 4


def compare_planner(seed: int) -> Counter[str]:
    """Compare what the planner charges on one network of a random question, for some of its mappings and all ways."""
    asked = question(seed, most=8)
    draw = Random(seed)
    offered = [one for one in plan_families(asked.instance) if one.active == asked.active and one.tiers > 1]
    if not offered or not asked.rows or asked.instance.network.charge == "ratio":
        return Counter()
    chosen = draw.choice(offered)
    uplinks, ledger = draw.choice(chosen.uplink_choices), Ledger()
    built = design_of(chosen, uplinks)
    here = check_design(ledger, asked.instance, built)
    ports = check_ports(ledger, asked.instance, here, built.fabric, "capex")
    wiring, expert_tp = wire(here, ports), asked.workload.options.expert_tp is True
    if not is_even(wiring):
        return Counter()
    groups = groups_of(asked.workload, *asked.arrays())
    even = Discipline("loads", "spray", 1.0)
    ways = tuple((kind, flows) for kind in WAYS for flows in ("halving", "trees"))
    charged = crossings(context_of(chosen).layout, even, groups, algorithms=ways)  # type: ignore[arg-type]
    loads, rounds, seen = charged.carried(uplinks), charged.carried_by_algorithms(uplinks), Counter[str]()
    absent = () if asked.workload.model.experts else ("ep", "edp")
    for row, (split, place) in enumerate(asked.rows):
        found = busiest_links(wiring, here, place, looped=split.interleave > 1, expert_tp=expert_tp)
        for kind, load in zip(KINDS_OF_TRAFFIC, loads[:, row], strict=True):
            assert load == pytest.approx(found[kind], rel=1e-9) or kind in absent, (seed, kind, place)
            seen[kind] += load > 0
        network, flows = RoutedNetwork(wiring, here, place), domain_flows(place, looped=False, expert_tp=expert_tp)
        for kind in WAYS:
            of_ring = [] if kind in absent else rings(flows[kind])
            for way in ("halving", "trees") if of_ring and len(of_ring[0]) > 3 else ():
                there = [one == (kind, way) for one in charged.algorithms.algorithms] & (
                    charged.algorithms.shares[:, row] > 0
                )
                again = halving_loads(network, of_ring) if way == "halving" else [trees_load(network, of_ring)]
                assert list(rounds[there, row]) == pytest.approx(again, rel=1e-9), (seed, kind, place)
                seen[way] += 1
                seen[f"{way} on parts of domains"] += charged.layout.span == 0
        seen["rows"] += 1
    return seen


def test_the_planner_charges_what_flows_put_on_the_graph() -> None:
    seen = Counter[str]()
    for seed in range(QUESTIONS):
        seen += compare_planner(seed)
    assert seen["rows"] > 500 * QUESTIONS / 160, seen
    assert min(seen.values()) > 20 * QUESTIONS / 160, seen


def test_loads_of_intervals_are_those_of_flows_on_the_graph() -> None:
    seen = Counter[str]()
    for seed in range(NETWORKS):
        seen += compare(seed)
    assert min(seen.values()) > 10 * NETWORKS / 500, seen
    assert sum(seen[kind] for kind in ("tp", "cp", "dp", "ep", "edp", "pp", "tied")) > NETWORKS, seen
    assert sum(seen[f"{way} of {kind}"] for way in ("halving", "trees") for kind in WAYS) > NETWORKS, seen


def most_anywhere(pattern: Pattern, senders: Senders, layout: LeafLayout, window: int, *, repeated: bool) -> int:
    """The most flows out of so many consecutive domains, wherever they begin, counted one by one.

    Pipelines fill all domains of a job, or are `repeated` as other groups are.
    """
    alike = pattern.shape in ("ring", "exchange", "trees")
    repeats = repeated or alike
    nics = senders.gpus * layout.per_gpu
    most = 0
    for first in range(pattern.block if repeats else pattern.block - window + 1):
        sent = outgoing(pattern, first, first + window)
        if senders.stages == 1 or alike:
            ways = [sent.any_rail * (nics if layout.kind == "clos" else 1)]
        else:
            some = nics // senders.stages
            pairs = ((sent.opening, sent.closing), (sent.into_opening, sent.into_closing))
            ways = [some * sum(pair) if layout.kind == "clos" else max(pair) for pair in pairs]
        most = max(most, *ways)
    return most


@pytest.mark.parametrize("shape", ["ring", "exchange", "hops", "pair", "trees", "far ring"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_window_sends_more_than_is_charged_after_a_loss(shape: str, kind: FabricKind) -> None:
    reached, (*far, shape) = 0, shape.split()
    cases = product((2, 3, 4, 5, 6), (1, 2, 3), (1, 2), (False, True), (False, True))
    for members, stride, inner, looped, repeated in cases:
        if repeated and inner > 1:  # a domain then holds one stage
            continue
        pattern = Pattern(shape, members, stride, looped, members // 2 if far else 1)  # type: ignore[arg-type]
        senders, layout = Senders(4, inner), LeafLayout(kind, 100, 4, 1, 8)  # type: ignore[arg-type]
        for window in range(1, pattern.block + 1):
            counted = most_anywhere(pattern, senders, layout, window, repeated=repeated)
            charged = most_flows_anywhere(pattern, senders, layout, window, repeated=repeated)
            assert counted <= charged, (pattern, senders, window)
            reached += counted == charged
    assert reached > 100


def test_disciplines_share_links_each_in_its_way() -> None:
    # 10 flows on 4 links: 2.5 each when sprayed evenly, 3 on the fullest when whole.
    spray, pinned = Discipline("loads", "spray", 0.8), Discipline("loads", "pinned", 1.0)
    assert link_load(spray, 1.0, 10, 4) == pytest.approx(2.5 / 0.8)
    assert link_load(Discipline("loads", 1.2, 1.0), 0.5, 10, 4) == pytest.approx(0.5 * 2.5 * 1.2)
    assert link_load(pinned, 1.0, 10, 4) == 3
    assert link_load(pinned, 0.25, 10, 4) == 0.75
    assert link_load(pinned, 1.0, 0, 4) == 0


def test_random_paths_are_charged_as_drawn() -> None:
    """Busiest links of 2,000 draws, up and down: their mean, and the least number that few exceed."""
    draw = np.random.default_rng(1)
    for flows, links, switches in ((2, 2, 1), (8, 4, 2), (16, 8, 8), (32, 32, 4), (48, 20, 26), (7, 1, 3)):
        paths = draw.integers(0, links, (2000, 2 * switches, flows))
        most = np.max([(paths == link).sum(axis=2) for link in range(links)], axis=(0, 2))
        sure, mean = on_random_paths(1.0, (flows, links, switches))
        assert mean == pytest.approx(most.mean(), rel=0.05)
        assert (most <= sure).mean() > 0.93
        assert sure == 1 or (most < sure).mean() < 0.97
        assert busiest_link(1.0, flows, links, switches) == pytest.approx((sure, mean), rel=1e-12)


def test_random_paths_are_charged_less_with_more_links() -> None:
    for flows, switches in ((3, 1), (16, 2), (500, 64)):
        charged = [on_random_paths(0.5, (flows, links, switches)) for links in (*range(1, 65), 2000)]
        assert [slow.sure for slow in charged] == sorted((slow.sure for slow in charged), reverse=True)
        assert [slow.mean for slow in charged] == sorted((slow.mean for slow in charged), reverse=True)
        assert charged[0] == (flows / 2, flows / 2)


def test_a_network_with_fewer_links_than_are_charged_is_noticed() -> None:
    here, ports = family("rail-only", 96, 4, 32), Ports(2, 6, 4)
    place = Placement(4, 1, 1, 1, 1, 24)
    reach = reach_of(here, ports)
    charged = mean_loads(reach, here.active, place, looped=False)
    assert charged.dp == 1 / 4  # a ring leaves each leaf once
    narrow = busiest_links(wire(here, ports._replace(up=2)), here, place, looped=False, expert_tp=False)
    assert narrow["dp"] == pytest.approx(1 / 2)


def test_pipelines_of_several_stages_in_a_domain_keep_to_rails() -> None:
    # Two stages in each of six domains: hops after even ones are on the rails of the last stage, then of the first.
    here, ports = family("rail-only", 24, 4, 64), Ports(2, 2, 1)
    place = Placement(1, 1, 2, 6, 2, 1)
    load = {looped: mean_loads(reach_of(here, ports), 4, place, looped=looped).pp for looped in (False, True)}
    assert load == {False: 2, True: 2}  # leaves of domains 2 and 3: both send on the rails of the first stage
    pair = mean_loads(reach_of(here, Ports(2, 3, 1)), 4, place, looped=False)
    assert pair.pp == 1
    assert pair.tied == 1
