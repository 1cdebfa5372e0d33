"""The ports of a design: which fillings and uplinks docs/network.md allows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import NamedTuple

from coopt.instance.network import Network
from coopt.verifier.parts.space import DesignFamily


def ceil_ratio(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


class Ports(NamedTuple):
    """Ports in use: `down` and `up` of a leaf, `pod_down` and `pod_up` of an aggregation switch (0
    without one).

    `shared` planes are on a switch of a single tier whose ports are kept for domains to come; 0
    where all that fit are. `bundle` is the most parallel links there may be from a leaf to a spine,
    on three tiers from an aggregation switch to a core, where all these bundles are equal; 0 where
    they need not be. `pod_each` links lead from a leaf to each aggregation switch of its pod.
    """

    tiers: int
    down: int
    up: int = 0
    pod_down: int = 0
    pod_up: int = 0
    shared: int = 0
    bundle: int = 0
    pod_each: int = 1

    @property
    def pod_leaves(self) -> int:
        """Leaves of a pod; 0 without one."""
        return self.pod_down // self.pod_each

    @property
    def slices(self) -> int:
        """Aggregation switches of a pod, each of which starts a network of its own."""
        return self.up // self.pod_each


class Chain(NamedTuple):
    """Designs of a family that differ in the uplinks of a leaf only; `uplinks` ascends."""

    ports: Ports
    uplinks: tuple[int, ...]

    def with_up(self, up: int) -> Ports:
        """The ports of the design with that many uplinks of a leaf."""
        return self.ports._replace(up=up)


NO_NETWORK = Ports(tiers=0, down=0)


def split_ports(radix: int, over: int, cage: int = 1) -> int:
    """Ports towards the leaves' side when `over` times as many go down as up, rounded so that none
    is left.

    Ports come in cages of so many, which face one way.
    """
    cages = radix // cage
    return cage * (cages - ceil_ratio(cages, over + 1))


def whole_ratios(radix: int, network: Network) -> range:
    """Whole ratios up to the largest allowed; beyond the radix they make no difference."""
    return range(1, min(int(network.largest_ratio), radix) + 1)


def leaf_fillings(family: DesignFamily, network: Network, cage: int = 1) -> list[int]:
    """All values of `down` of a network with more than one tier, descending.

    Where links lead into a core, a leaf is split as without them, or after as few ports are set
    aside as hold them.
    """
    radix, fillings = family.network.switch.radix, set()
    if radix // cage < 2:
        return []  # all ports would face one way
    for over in whole_ratios(radix, network):
        fillings.add(_whole_blocks(family, split_ports(radix, over, cage)))
        for reserved in range(radix - 2 * cage + 1):  # two cages are left, as one faces one way
            down = _whole_blocks(family, split_ports(radix - reserved, over, cage))
            # links in whole modules
            core_links = reserved // family.core_module * family.core_module
            if (
                core_links * leaf_count(family, down) * family.planes * family.copies
                >= family.to_core
            ):
                fillings.add(down)
                break
    if network.leaf_fill == "any":
        fillings |= _even_fillings(family, network, cage)
    return sorted(fillings, reverse=True)


def _even_fillings(family: DesignFamily, network: Network, cage: int) -> set[int]:
    """The least filling of each number of leaves, of no more leaves than a split in half takes.

    A filling is within the largest ratio where its cages leave room for those of the uplinks that
    it needs at least.
    """
    radix, ratio = family.network.switch.radix, network.largest_ratio
    half = leaf_count(family, _whole_blocks(family, split_ports(radix, 1, cage)))
    down_by_leaves: dict[int, int] = {}
    for ports in range(radix - 1, 0, -1):
        if ceil_ratio(ports, cage) + ceil_ratio(math.ceil(ports / ratio), cage) <= radix // cage:
            down = _whole_blocks(family, ports)
            # ports descend, so that the least filling of each number of leaves stays
            down_by_leaves[leaf_count(family, down)] = down
    return {down for leaves, down in down_by_leaves.items() if leaves <= half}


def _whole_blocks(family: DesignFamily, nominal: int) -> int:
    """Ports of a leaf in use towards NICs, when it has `nominal` for them."""
    if family.network.kind == "rail-only":
        return min(nominal, family.ends)
    block = family.domains if family.network.kind == "rail-optimized" else family.rails
    return block * (nominal // block) if block <= nominal else nominal


def planes_on_switch(family: DesignFamily) -> int:
    """Planes that share a switch when one tier is enough; 0 where it is not, with the links into a
    core beside.
    """
    radix = family.network.switch.radix
    # as few ports are set aside as hold the links into the core
    for core_links in range(radix - family.ends + 1):
        planes, held_links = (
            (radix - core_links) // family.ends,
            core_links // family.core_module * family.core_module,
        )
        if held_links * ceil_ratio(family.planes, planes) * family.copies >= family.to_core:
            return planes
    return 0


def chassis_count(family: DesignFamily) -> int:
    """Switches of a single tier, of all planes."""
    return ceil_ratio(family.planes, planes_on_switch(family)) * family.copies


def core_ports(family: DesignFamily, ports: Ports) -> int:
    """Links into a core that start at each leaf, the same number at all, in whichever plane they
    are.
    """
    if family.attachment is None:
        return 0
    if ports.tiers == 1:
        return ceil_ratio(family.to_core, chassis_count(family))
    return ceil_ratio(
        family.to_core, leaf_count(family, ports.down) * family.planes * family.copies
    )


def held_for_core(family: DesignFamily, ports: Ports) -> int:
    """Ports of a leaf that hold links into a core: those of whole modules."""
    return ceil_ratio(core_ports(family, ports), family.core_module) * family.core_module


def free_ports(family: DesignFamily, down: int) -> int:
    """Ports of a leaf below others, without those that hold links into a core."""
    return family.network.switch.radix - held_for_core(family, Ports(2, down))


def leaf_uplinks(down: int, radix: int, network: Network, cage: int = 1) -> tuple[int, ...]:
    """All numbers of uplinks of a leaf with `down` of `radix` ports in use, ascending; whole cages
    of ports.
    """
    down_cages = ceil_ratio(down, cage)
    # more uplinks than end points below would never be full
    limit = min(down_cages, radix // cage - down_cages)
    if network.ratios is not None:
        cages = {ceil_ratio(math.ceil(down / ratio), cage) for ratio in network.ratios}
    else:
        cages = set(range(ceil_ratio(math.ceil(down / network.largest_ratio), cage), limit + 1))
    return tuple(cage * count for count in sorted(cages) if count <= limit)


def even_uplinks(
    uplinks: tuple[int, ...], leaves: int, radix: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The numbers of uplinks that spines may take in equal bundles, with the largest bundle.

    Of numbers in a row those stay that the fewest spines with ports enough divide; the last one
    stays in any case, if need be with smaller bundles.
    """
    largest_bundle = radix // leaves
    # the fewest spines that have the ports take equal bundles of these; others need more spines
    # than the next number
    even_counts = tuple(up for up in uplinks if up % ceil_ratio(up, largest_bundle) == 0)
    if even_counts:
        yield largest_bundle, even_counts
    # after the last there is no next number that would take its place
    if uplinks and uplinks[-1] not in even_counts:
        yield uplinks[-1] // switches_above(uplinks[-1], largest_bundle), uplinks[-1:]


def uplink_menus(
    family: DesignFamily, down: int, network: Network, cage: int = 1
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """All numbers of uplinks of a leaf with `down` ports in use, in groups that have the largest
    bundle in common.
    """
    uplinks = leaf_uplinks(down, free_ports(family, down), network, cage)
    if network.bundles == "any" or fewest_tiers(family, down) > 2:
        yield 0, uplinks
        return
    runs = [uplinks] if network.ratios is None else [(up,) for up in uplinks]
    for run in runs:
        yield from even_uplinks(run, leaf_count(family, down), family.network.at(2).radix)


def switches_above(links: int, largest_bundle: int) -> int:
    """The fewest switches that share the links of one switch below evenly, with at most
    `largest_bundle` to each.
    """
    return next(
        count for count in range(ceil_ratio(links, largest_bundle), links + 1) if links % count == 0
    )


def pod_bundle(pods: int, up_ports: int, radix: int, network: Network) -> int:
    """Links of an aggregation switch with `up_ports` up-ports to each of its cores, 0 where they
    may differ.
    """
    return 0 if network.bundles == "any" else up_ports // switches_above(up_ports, radix // pods)


def spine_count(leaves: int, ports: Ports, radix: int) -> int:
    """Spines of one plane of two tiers."""
    return (
        switches_above(ports.up, ports.bundle)
        if ports.bundle
        else ceil_ratio(leaves * ports.up, radix)
    )


def core_count(leaves: int, ports: Ports, radix: int) -> int:
    """Cores of one group of three tiers."""
    links = ceil_ratio(leaves, ports.pod_leaves) * ports.pod_up
    return ports.pod_up // ports.bundle if ports.bundle else ceil_ratio(links, radix)


def pod_splits(radix: int, network: Network, cage: int = 1) -> list[tuple[int, int]]:
    """All (down, up) ports of an aggregation switch, in whole cages: no more up than down, and no
    fewer than its own whole ratio of down to up asks for, or where `pod_uplinks` is any the largest
    ratio.
    """
    ratios: Iterable[int] = whole_ratios(radix, network)
    if network.ratios is not None:
        # of a list the whole ratios, and an even split in any case
        ratios = {1} | {int(ratio) for ratio in network.ratios if ratio == int(ratio)}
    splits: set[tuple[int, int]] = set()
    for over in ratios:
        down = split_ports(radix, over, cage)
        largest_ratio = network.largest_ratio if network.pod_uplinks == "any" else over
        ups = range(cage, min(down, radix - down) + 1, cage) if down else ()
        splits |= {(down, up) for up in ups if up >= math.ceil(down / largest_ratio)}
    return sorted(splits, reverse=True)


def pod_shapes(
    radix: int, network: Network, leaves: int, cage: int = 1, core: int | None = None
) -> list[tuple[int, int, int]]:
    """All (down, up) ports of an aggregation switch with the links that each leaf has to it, on
    pods that cores join.

    Cores have `core` ports, as many as aggregation switches where left out. Several links divide
    both, and leave a pod of several leaves.
    """
    pod_ports = []
    for (down, up), leaf_links in product(
        pod_splits(radix, network, cage), sorted(set(network.pod_bundles))
    ):
        divides = leaf_links == 1 or (
            down % leaf_links == 0 and up % leaf_links == 0 and down > leaf_links
        )
        # every core has a port for each pod
        if divides and ceil_ratio(leaves, down // leaf_links) <= (core or radix):
            pod_ports.append((down, up, leaf_links))
    return pod_ports


def leaf_count(family: DesignFamily, down: int) -> int:
    """Leaves of one plane when a leaf holds `down` end points."""
    if family.network.kind == "rail-optimized":
        rails, domains = family.leaf_block(down)
        return ceil_ratio(family.rails, rails) * ceil_ratio(family.domains, domains)
    return ceil_ratio(family.ends, down)


def fewest_tiers(family: DesignFamily, down: int) -> int:
    """Tiers it takes to reach all end points, with `down` of them on a leaf if there is more than
    one.
    """
    if family.attachment is None:
        return 0
    if planes_on_switch(family):
        return 1
    return 2 if leaf_count(family, down) <= family.attachment.at(2).radix else 3


def cages(per_module: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Ports of a leaf and of an aggregation switch that face one way together, where modules at the
    lower and at the upper ends of each level carry so many links: a leaf has upper ends of the
    first level and lower ones of the second.
    """
    of_switch = [math.lcm(down[1], up[0]) for down, up in pairwise(per_module)]
    return (*of_switch, 1, 1)[0], (*of_switch, 1, 1)[1]


def chains(
    family: DesignFamily,
    network: Network,
    ports_together: tuple[int, int] = (1, 1),
    *,
    apart: bool = False,
) -> Iterator[Chain]:
    """All designs of a family.

    Parameters
    ----------
    ports_together
        Ports of a leaf, and of an aggregation switch, that face one way together.
    apart
        Whether each number of uplinks is a chain of its own, as where whole modules are bought
        above the leaves, so that the price need not rise with every uplink.
    """
    if family.attachment is None:
        yield Chain(NO_NETWORK, (0,))
        return
    if planes_on_switch(family):
        yield Chain(Ports(1, family.ends), (0,))
        return
    leaf_cage, pod_cage = ports_together
    for down in leaf_fillings(family, network, leaf_cage):
        tiers = fewest_tiers(family, down)
        for bundle, menu in uplink_menus(family, down, network, leaf_cage):
            if tiers > network.max_tiers or not menu:
                continue
            for uplinks in [(up,) for up in menu] if apart else [menu]:
                for ports in _above_leaves(family, down, tiers, bundle, network, pod_cage):
                    if divided_uplinks := tuple(
                        up
                        for up in uplinks
                        if up % ports.pod_each == 0 and keeps_end_to_end(network, ports, up)
                    ):
                        yield Chain(ports, divided_uplinks)


def keeps_end_to_end(network: Network, ports: Ports, uplinks: int) -> bool:
    """Whether leaf and pod together stay within the bound on their product."""
    bound = network.end_to_end_oversubscription
    if bound is None or ports.tiers < 2:
        return True
    pod_ratio = Fraction(ports.pod_down, ports.pod_up) if ports.tiers == 3 else Fraction(1)
    return Fraction(ports.down, uplinks) * pod_ratio <= Fraction(bound)


def _above_leaves(
    family: DesignFamily, down: int, tiers: int, bundle: int, network: Network, cage: int
) -> Iterator[Ports]:
    """What stands above leaves with `down` ports in use, the uplinks left open."""
    if tiers == 2:
        yield Ports(2, down, bundle=bundle)
        return
    radix, core, leaves = (
        family.network.at(2).radix,
        family.network.at(3).radix,
        leaf_count(family, down),
    )
    for pod_down, pod_up, leaf_links in pod_shapes(radix, network, leaves, cage, core):
        core_bundle = pod_bundle(ceil_ratio(leaves, pod_down // leaf_links), pod_up, core, network)
        yield Ports(3, down, 0, pod_down, pod_up, bundle=core_bundle, pod_each=leaf_links)
