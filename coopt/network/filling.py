"""How leaves and pods of a network can be filled: every wiring of one fabric on its end points
(docs/network.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from coopt.instance.schema import Network, SwitchedKind
from coopt.network.family import Pods, Wiring, most_even, next_even


@dataclass(frozen=True, kw_only=True)
class EndPoints:
    """What a fabric joins: `domains` HB domains with `rails` NICs each (GPUs of a domain times NICs
    of a GPU).

    From its leaves start `links` or a few more into a core shared with others, equally many from
    each, in modules of `of_module` links: of NICs that lead to several equal networks
    (`nic_planes`) the links of one of these. Any number up to `most_links` may be the fewest.
    """

    fabric: SwitchedKind
    domains: int
    rails: int
    links: int = 0
    most_links: int = 0
    of_module: int = 1
    nic_planes: int = 1

    @property
    def planes(self) -> int:
        """Separate networks of equal shape."""
        return self.rails if self.fabric == "rail-only" else 1

    @property
    def of_a_plane(self) -> int:
        """n: end points of one plane."""
        return self.domains if self.fabric == "rail-only" else self.domains * self.rails


class WiringRules(NamedTuple):
    """All that wirings of a network depend on beside its end points and switches."""

    max_tiers: int
    max_networks: int | None
    leaf_fill: str
    ratios: tuple[float, ...] | None
    largest_ratio: float
    end_to_end_oversubscription: float | None
    bundles: str
    pod_uplinks: str
    pod_bundles: tuple[int, ...]


def wirings(
    ends: EndPoints,
    radix: int,
    network: Network,
    cages: tuple[int, int] = (1, 1),
    above: tuple[int, int] | None = None,
    max_tiers: int = 3,
) -> Iterator[Wiring]:
    """Every wiring of an HB-domain count on switches of given radices, fewest tiers first; none
    beyond `max_tiers` or `max_networks`.

    Parameters
    ----------
    radix
        Ports of a leaf, or of the only switch.
    cages
        Ports of a leaf, and of an aggregation switch, that face one way together; they divide the
        radix.
    above
        Ports of switches of the second tier and of the third; those of a leaf where left out.
    """
    rules = WiringRules(*(getattr(network, name) for name in WiringRules._fields))
    rules = rules._replace(max_tiers=min(max_tiers, rules.max_tiers))
    return iter(_listed(ends, (radix, *(above or (radix, radix))), rules, cages))


@lru_cache(maxsize=1 << 13)
def _listed(
    ends: EndPoints, radices: tuple[int, int, int], rules: WiringRules, cages: tuple[int, int]
) -> tuple[Wiring, ...]:
    """The wirings of `wirings`, kept for NIC options and questions that differ in products, rates
    or prices alone.
    """
    every = (
        _wirings(replace(ends, links=links, most_links=0), radices, rules, cages)
        for links in _link_counts(ends, radices[0])
    )
    listed = tuple(dict.fromkeys(chain.from_iterable(every)))
    bound = rules.end_to_end_oversubscription
    return listed if bound is None else tuple(_within(listed, bound))


def _link_counts(ends: EndPoints, radix: int) -> list[int]:
    """The fewest links into a core with which wirings differ: one more than as many leaf switches
    as there may be hold with the same number each.
    """
    if ends.most_links <= ends.links:
        return [ends.links]
    downs = {_filled(ends, nominal) for nominal in range(1, radix)}
    switches = {ends.planes * _leaves(ends, down) for down in downs}
    switches |= {_chassis(ends, n) for n in range(1, radix // ends.of_a_plane + 1)}
    more = (range(-(-ends.links // n) * n + 1, ends.most_links + 1, n) for n in switches)
    return sorted({ends.links}.union(*more))


def _within(wirings: Iterable[Wiring], bound: float) -> Iterator[Wiring]:
    """Wirings with the uplinks that keep (down / u) (l / w) within a bound."""
    for wiring in wirings:
        down, up = (wiring.pods.l, wiring.pods.w) if wiring.pods else (1, 1)
        choices = tuple(
            u
            for u in wiring.uplink_choices
            if wiring.tiers < 2 or wiring.down * down <= bound * u * up
        )
        if choices:
            yield replace(wiring, uplink_choices=choices)


def _wirings(
    ends: EndPoints, radices: tuple[int, int, int], rules: WiringRules, cages: tuple[int, int]
) -> Iterator[Wiring]:
    radix, leaf = radices[0], cages[0]
    if ends.domains == 1:
        yield Wiring(tiers=0, leaves=0, chassis=0, down=0, uplink_choices=(0,), leaf_span=1)
    elif rules.max_networks is not None and ends.planes * ends.nic_planes > rules.max_networks:
        return
    elif planes_per_switch := _planes_together(ends, radix):
        chassis = _chassis(ends, planes_per_switch)
        yield Wiring(
            tiers=1,
            leaves=1,
            chassis=chassis,
            down=ends.of_a_plane,
            uplink_choices=(0,),
            leaf_span=ends.domains,
            core_ports=-(-ends.links // chassis),
            planes_together=planes_per_switch,
        )
    elif rules.max_tiers >= 2 and radix >= 2 * leaf:  # a single cage faces one way
        ratios = _integer_ratios(radix, rules)
        full_downs = (_filled(ends, _taper(radix, o, leaf)) for o in ratios)
        reduced_downs = (_down(ends, radix, o, leaf) for o in ratios)
        spread_downs = _evenly_filled(ends, radix, rules, leaf) if rules.leaf_fill == "any" else ()
        for down in dict.fromkeys((*full_downs, *reduced_downs, *spread_downs)):
            if down:
                yield from _tiered(ends, radices, down, rules, cages)


def _planes_together(ends: EndPoints, radix: int) -> int:
    """Planes that a switch of one tier holds with the fewest ports kept that hold the links to a
    core; 0 where one tier is too small.
    """
    # Fewer ports kept for a core leave room for more planes, so the first number that holds its
    # links is taken.
    for core_ports in range(0, radix - ends.of_a_plane + 1, ends.of_module):
        planes_per_switch = (radix - core_ports) // ends.of_a_plane
        if ends.links <= core_ports * _chassis(ends, planes_per_switch):
            return planes_per_switch
    return 0


def _chassis(ends: EndPoints, planes_per_switch: int) -> int:
    """Switches of one tier that hold so many planes each."""
    return -(-ends.planes // planes_per_switch)


def _down(ends: EndPoints, radix: int, ratio: int, cage_ports: int) -> int:
    """Down-ports of a leaf once the fewest ports are kept that hold the links to a core; 0 where
    none are left.
    """
    for core_ports in range(0, radix - 1, cage_ports):
        down = _filled(ends, _taper(radix - core_ports, ratio, cage_ports))
        if (
            down
            and ends.links
            <= core_ports // ends.of_module * ends.of_module * ends.planes * _leaves(ends, down)
        ):
            return down
    return 0


def _evenly_filled(ends: EndPoints, radix: int, rules: WiringRules, cage_ports: int) -> list[int]:
    """The fewest down-ports of a leaf with which so many leaves are enough, for every number of
    leaves from that of switches split in half down to that of the largest ratio.
    """
    fewest: dict[int, int] = {}
    for nominal in range(1, radix):
        uplinks = _multiple(math.ceil(nominal / rules.largest_ratio), cage_ports)
        down = _filled(ends, nominal) if _multiple(nominal, cage_ports) + uplinks <= radix else 0
        if down:
            # Down-ports rise, so that the first for a number of leaves are the fewest, which leave
            # most to uplinks.
            fewest.setdefault(_leaves(ends, down), down)
    max_leaves = _leaves(ends, _filled(ends, _taper(radix, 1, cage_ports)))
    return [down for leaves, down in fewest.items() if leaves <= max_leaves]


def _integer_ratios(radix: int, rules: WiringRules) -> range:
    """The menu of down-to-up splits of a switch: integers up to the largest ratio; beyond the radix
    none differs.
    """
    return range(1, min(math.floor(rules.largest_ratio), radix) + 1)


def _pod_splits(radix: int, rules: WiringRules, cage_ports: int) -> dict[tuple[int, int], None]:
    """Down-ports and up-ports that an aggregation switch may have, in cages of `cage_ports`: all
    numbers of up-ports within the ratio of a split, as fewer of them may go round fewer cores
    evenly.
    """
    ratios: Iterable[int] = _integer_ratios(radix, rules)
    if rules.ratios is not None:
        ratios = sorted({1} | {int(ratio) for ratio in rules.ratios if ratio.is_integer()})
    splits = []
    for ratio in ratios:
        down = _taper(radix, ratio, cage_ports)
        if not down:
            continue  # a single cage
        max_up, within = (
            min(down, radix - down),
            rules.largest_ratio if rules.pod_uplinks == "any" else ratio,
        )
        splits += [
            (down, up)
            for up in range(max_up, math.ceil(down / within) - 1, -1)
            if up % cage_ports == 0
        ]
    return dict.fromkeys(splits)


def _taper(radix: int, ratio: int, cage_ports: int = 1) -> int:
    """Ports that face down when `ratio` of them share one that faces up, in cages of
    `cage_ports`.
    """
    cages = radix // cage_ports
    return cage_ports * (cages - -(-cages // (ratio + 1)))


def _filled(ends: EndPoints, nominal: int) -> int:
    """Down-ports of a leaf that are used so that blocks stay whole."""
    if ends.fabric == "rail-only":
        return min(nominal, ends.domains)
    block = ends.domains if ends.fabric == "rail-optimized" else ends.rails
    return nominal // block * block if block <= nominal else nominal


def _leaves(ends: EndPoints, down: int) -> int:
    """Leaves of one plane."""
    if ends.fabric == "rail-optimized":
        d = ends.domains
        return -(-ends.rails // (down // d)) if d <= down else ends.rails * -(-d // down)
    return -(-ends.of_a_plane // down)


def _uplink_choices(
    radix: int, down: int, rules: WiringRules, cage_ports: int
) -> Iterator[tuple[int, ...]]:
    """Runs of uplinks a leaf may have: one run up to a largest ratio, single numbers for a list of
    ratios.
    """
    filled = _multiple(down, cage_ports)
    max_uplinks = min(filled, radix - filled)
    if rules.ratios is None:
        min_uplinks = _multiple(math.ceil(down / rules.largest_ratio), cage_ports)
        runs = {tuple(range(min_uplinks, max_uplinks + 1, cage_ports))}
    else:
        counts = (_multiple(math.ceil(down / ratio), cage_ports) for ratio in rules.ratios)
        runs = {(u,) for u in counts if u <= max_uplinks}
    yield from sorted(run for run in runs if run)


def _multiple(number: int, of: int) -> int:
    """The least multiple that is no less."""
    return -(-number // of) * of


def _even_choices(run: tuple[int, ...], max_bundle: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Those uplinks of a run that as few spines share evenly as have the ports, and the most of a
    run in any case, each with the largest bundle it takes.
    """
    uplinks = np.array(run)
    menu: tuple[int, ...] = tuple(uplinks[next_even(uplinks, max_bundle) == uplinks].tolist())
    if menu:
        yield menu, max_bundle
    # The most uplinks stay on the menu even if no even sharing ends there: nothing else is as fast.
    if run[-1:] != menu[-1:]:
        yield run[-1:], most_even(run[-1], max_bundle)


def _tiered(
    ends: EndPoints,
    radices: tuple[int, int, int],
    down: int,
    rules: WiringRules,
    cage_ports: tuple[int, int],
) -> Iterator[Wiring]:
    """Wirings of two tiers or three; modules carry so many links together in a leaf, and in an
    aggregation switch.
    """
    (radix, middle_radix, top_radix), (in_leaf, in_pod) = radices, cage_ports
    leaves = _leaves(ends, down)
    span = down // ends.rails if ends.fabric == "clos" else min(down, ends.domains)
    chassis = ends.planes * leaves
    to_core = -(-ends.links // chassis)
    even = rules.bundles == "even"
    wiring = partial(
        Wiring, leaves=leaves, chassis=chassis, down=down, leaf_span=span, core_ports=to_core
    )
    for run in _uplink_choices(radix - _multiple(to_core, ends.of_module), down, rules, in_leaf):
        if leaves <= middle_radix:
            for choices, bundle in (
                _even_choices(run, middle_radix // leaves) if even else [(run, 0)]
            ):
                yield wiring(tiers=2, uplink_choices=choices, bundle=bundle)
        elif rules.max_tiers >= 3:
            choices_of = {n: tuple(u for u in run if u % n == 0) for n in rules.pod_bundles}
            for l, w in _pod_splits(middle_radix, rules, in_pod):  # noqa: E741
                for bundle_links, choices in choices_of.items():
                    count = -(-leaves * bundle_links // l)
                    if choices and count <= top_radix and _bundles(l, w, bundle_links):
                        even_bundle = most_even(w, top_radix // count) if even else 0
                        pods = Pods(l=l, w=w, count=count, bundle=even_bundle, each=bundle_links)
                        within = pod_span(ends, leaves, pods.leaves, span)
                        yield wiring(tiers=3, pods=pods, pod_span=within, uplink_choices=choices)


def _bundles(l: int, w: int, bundle_links: int) -> bool:  # noqa: E741
    """Whether leaves may have so many links to each switch of a pod: they divide its ports, for
    several leaves.
    """
    return bundle_links == 1 or (
        l % bundle_links == w % bundle_links == 0 and l // bundle_links > 1
    )


def pod_span(ends: EndPoints, leaves: int, l: int, leaf_span: int) -> int:  # noqa: E741
    """Domains whose traffic on one rail stays inside a pod of l leaves."""
    if leaf_span >= ends.domains:
        return ends.domains
    of_a_rail = leaves // ends.rails if ends.fabric == "rail-optimized" else leaves
    # Only rails and pods that divide each other lie the same way in every pod; else a leaf is all
    # that is sure.
    if of_a_rail % l == 0:
        return l * leaf_span
    return ends.domains if l % of_a_rail == 0 else leaf_span
