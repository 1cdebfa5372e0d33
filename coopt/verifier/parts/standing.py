"""A network that stands: what its design counts to, by the rules of
docs/designs.md alone, in cables of the rate of a NIC's port.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from typing import NamedTuple

from coopt.instance.existing import Existing
from coopt.instance.hardware import HbDomain, Optic, Switch
from coopt.instance.network import Discipline
from coopt.instance.schema import Instance
from coopt.plan.parts import Design, Fabric
from coopt.verifier.checks.verdict import Ledger, UnsoundError
from coopt.verifier.parts.layouts import Ports, ceil_ratio, leaf_count, spine_count, switches_above
from coopt.verifier.parts.space import DesignFamily, NicAttachment, OpticPair


class StandingNetwork(NamedTuple):
    """The one network that there is, with its uplinks and optics."""

    family: DesignFamily
    ports: Ports
    optics: tuple[OpticPair, ...]


class _Tier(NamedTuple):
    """The ports of a switch of one tier in cables of a NIC's rate, the most cables down and the
    number up, where it is fixed, with the rates of both over that of a NIC's port.
    """

    ports: int
    most_down: int
    up: int | None
    down_rate: Fraction
    up_rate: Fraction

    def uplinks(self, down: int) -> int:
        """Cables up of a switch with so many down: of their bandwidth at least."""
        return math.ceil(down * self.down_rate / self.up_rate) if self.up is None else self.up


def standing_network(instance: Instance, gpus: int) -> StandingNetwork | None:
    """The network that stands, with so many GPUs that train; None where all is new, or where these
    do not fill it.

    Raises
    ------
    UnsoundError
        Where its design is of no network that plans have.
    """
    stands = instance.stands
    if stands is None or stands.gpu not in (None, instance.cluster.gpu.name):
        return None
    hb = stands.domain_in(instance.network)
    if hb is None or not stands.gpus < 2 * gpus <= 2 * stands.gpus:
        return None
    return counted_network(stands, gpus, hb, instance.network.discipline)


@lru_cache(maxsize=64)
def counted_network(
    stands: Existing, gpus: int, hb: HbDomain, discipline: Discipline
) -> StandingNetwork:
    """The network of a design."""
    nic = stands.nic
    if nic is None:
        raise UnsoundError
    rate = Fraction(stands.link_gbit_s)
    tiers = _tiers(stands, rate)
    ports, spine_ports = _ports(stands, tiers)
    per_gpu = stands.nic_ports // stands.planes
    switches = [
        _run_at(switch, tier.ports, rate)
        for switch, tier in zip(stands.switches, tiers, strict=True)
    ]
    if ports.tiers == 1:  # a switch holds as many networks as its ports down do
        switches[0] = _run_at(switches[0], tiers[0].most_down, rate)
    if spine_ports:
        switches[1] = _run_at(switches[1], spine_ports, rate)
    # leaves that the ports of a GPU take turns in hold some ports of whole domains, as some rails
    rails = _rails_of(stands)
    kind = "rail-optimized" if stands.fabric == "clos" and rails > 1 else stands.fabric
    attachment = NicAttachment(
        "rail-only" if stands.pod == "rail" and ports.tiers == 2 else kind,
        nic.model_copy(
            update={
                "gbit_s": nic.gbit_s / per_gpu * stands.nics_per_gpu,
                "usd": 0.0,
                "cages": math.gcd(nic.cages, stands.nic_ports // stands.nics_per_gpu),
            }
        ),
        per_gpu,
        switches[0],
        discipline,
        stands.planes,
        above=tuple(switches[1:]),
        ports_in_plane=per_gpu // stands.nics_per_gpu,
        ports_on_leaf=_ports_on_leaf(stands, tiers[0], ports),
    )
    optics = tuple(OpticPair(*(_laid(end, rate) for end in ends)) for ends in stands.ends)
    of_leaf = stands.gpus_per_domain * per_gpu // rails
    by_rails = ports.tiers > 1 and kind != "clos"
    family = DesignFamily(
        gpus,
        hb,
        stands.installed,
        attachment,
        stands=True,
        leaf_domains=ports.down // of_leaf if by_rails else 0,
    )
    return StandingNetwork(family, ports, optics)


def _run_at(switch: Switch, radix: int, rate: Fraction) -> Switch:
    return switch.model_copy(
        update={
            "radix": radix,
            "port_gbit_s": float(rate),
            "modes": (),
            "cages": None,
            "optics_inside": False,
            "usd": 0.0,
        }
    )


def _laid(optic: Optic, rate: Fraction) -> Optic:
    links = int(Fraction(optic.gbit_s) / rate)
    return optic.model_copy(update={"breakout": (links,), "usd": 0.0})


def _tiers(stands: Existing, rate: Fraction) -> list[_Tier]:
    """The ports of the switches of each tier in cables."""
    told = [
        tier.gbit_s
        or (tier.switch and tier.switch.port_gbit_s)
        or (tier.down_gbit_s and tier.up_gbit_s and max(tier.down_gbit_s, tier.up_gbit_s))
        for tier in stands.tiers
    ]
    # below the leaves, and between each tier and the next: as said at either end, else the slower
    cables = [rate]
    for (lower, upper), ports in zip(pairwise(stands.tiers), pairwise(told), strict=True):
        said = lower.up_gbit_s or upper.down_gbit_s
        known = [port for port in ports if port]
        cables.append(Fraction(said or min(known, default=float(rate))))
    tiers = []
    for n, tier in enumerate(stands.tiers):
        down_rate, up_rate = cables[n], (*cables, cables[n])[n + 1]
        port = Fraction(told[n] or down_rate)
        split_down, split_up = port / down_rate, port / up_rate
        free = tier.ports - math.ceil((tier.up or 0) / split_up)
        if n < len(stands.tiers) - 1:
            free = min(free, tier.ports // 2)
        most_down = tier.down or int(free * split_down)
        wide = down_rate / rate, up_rate / rate
        if wide[0].denominator > 1 or wide[1].denominator > 1:
            raise UnsoundError
        tiers.append(_Tier(int(tier.ports * port / rate), most_down, tier.up, *wide))
    return tiers


def _rails_of(stands: Existing) -> int:
    """Leaves that the end points of a domain in a plane lead to, if whole domains fill them."""
    return stands.rails or (1 if stands.fabric == "clos" else stands.gpus_per_domain)


def _ports_on_leaf(stands: Existing, leaf: _Tier, ports: Ports) -> int:
    """The most ports of a NIC in one plane that one leaf switch has, each port looked up."""
    per_gpu, gpus, rails = (
        stands.nic_ports // stands.planes,
        stands.gpus_per_domain,
        _rails_of(stands),
    )
    of_nic = per_gpu // stands.nics_per_gpu
    if of_nic == 1:
        return 1
    together = leaf.most_down // ports.down if ports.tiers == 1 else 1

    def leaf_of(domain: int, gpu: int, port: int) -> tuple[int, int]:
        end = gpu * per_gpu + port
        if stands.fabric == "clos" and ports.tiers > 1:
            return (domain * gpus * per_gpu + end) // rails // ports.down, port % rails
        if ports.tiers == 1:
            return (end // together if stands.fabric == "rail-only" else 0), 0
        return (end if rails > gpus else gpu % rails), 0

    nics = product(range(stands.installed), range(gpus), range(0, per_gpu, of_nic))
    return max(
        max(Counter(leaf_of(domain, gpu, first + port) for port in range(of_nic)).values())
        for domain, gpu, first in nics
    )


def _ports(stands: Existing, tiers: list[_Tier]) -> tuple[Ports, int]:
    """The ports in use, and those of spines that take cables as they come (0 where bundles are
    equal).
    """
    domains, unit = stands.installed, stands.unit_domains or stands.installed
    of_domain = stands.gpus_per_domain * stands.nic_ports // stands.planes
    rails, whole = _rails_of(stands), stands.fabric == "clos" and stands.rails in (None, 1)
    of_leaf = of_domain // rails
    if len(tiers) == 1:
        return Ports(1, domains * (of_leaf if stands.fabric == "rail-only" else of_domain)), 0
    if stands.leaf_domains:
        fill = stands.leaf_domains * of_leaf
    elif stands.fabric == "clos":
        fill = min(tiers[0].most_down, unit * of_leaf)
    else:
        fill = min(tiers[0].most_down // of_leaf, unit) * of_leaf
    of_rail = ceil_ratio(domains, unit) * ceil_ratio(unit * of_leaf, fill)
    up = tiers[0].uplinks(fill)
    down = fill if whole else min(fill // of_leaf, domains) * of_leaf
    all_leaves = of_rail * (1 if stands.fabric == "rail-only" else rails)
    wide = int(tiers[0].up_rate)  # cables of a NIC's rate in one up
    of_unit = (all_leaves if stands.fabric == "clos" else of_rail) // ceil_ratio(domains, unit)
    pod_leaves = {"rail": of_rail, "unit": of_unit}.get(
        stands.pod or "", tiers[1].most_down if len(tiers) == 3 else all_leaves
    )
    pod_leaves = min(pod_leaves, all_leaves)
    fewest = ceil_ratio(pod_leaves * up, tiers[1].most_down)
    is_even = stands.bundles == "even"
    spines = next(k for k in range(fewest, up + 1) if up % k == 0) if is_even else fewest
    if len(tiers) == 2:
        if up % spines == 0:
            return Ports(2, down, up * wide, bundle=up * wide // spines), 0
        return Ports(2, down, up * wide), ceil_ratio(pod_leaves * up, spines) * wide
    if up % spines:
        raise UnsoundError
    each, pods = up // spines, ceil_ratio(all_leaves, pod_leaves)
    pod_up = tiers[1].uplinks(pod_leaves * each)
    # the largest bundle that leaves a core a port for every pod and goes into the cables of a spine
    bundle = pod_up // switches_above(pod_up, max(tiers[2].most_down // pods, 1))
    top = int(tiers[1].up_rate)
    return (
        Ports(
            3,
            down,
            up * wide,
            pod_leaves * each * wide,
            pod_up * top,
            bundle=bundle * top,
            pod_each=each * wide,
        ),
        0,
    )


CLAIMED = {
    "fabric": "the fabric",
    "nic": "the NIC",
    "nics-per-gpu": "NICs of a GPU:",
    "ports-in-plane": "ports of a NIC in each plane:",
    "gpus-per-nic": "GPUs per NIC:",
    "nic-planes": "planes per NIC:",
    "tiers": "tiers:",
    "switch": "the switches, from the leaves up:",
    "optics": "the optics, from the leaves up (lower / upper end):",
    "leaf-domains": "HB domains below leaves that take turns in their rails:",
    "leaf-ports": "the ports of a leaf (down / up):",
    "pod-ports": "the ports of an aggregation switch (down / up / to each leaf):",
    "switch-count": "spines:",
}
"""What a fault calls the claims on a fabric."""


def check_standing(ledger: Ledger, standing: StandingNetwork, fabric: Fabric) -> None:
    """Check that the fabric of a plan is the one that stands."""
    for name, (claim, stands) in _claims(standing, fabric).items():
        claim_text, stands_text = _told(claim), _told(stands)
        fault = f"The existing network has {CLAIMED[name]} {stands_text}, not {claim_text}."
        ledger.require(name, claim == stands, claim_text, stands_text, fault)


def _told(value: object) -> str:
    """A claim in words: products or numbers, those of one level apart from each other."""
    if not isinstance(value, list | tuple):
        return str(value)
    return (
        ", ".join(
            " / ".join(map(str, part)) if isinstance(part, tuple) else str(part) for part in value
        )
        or "none"
    )


def is_standing(standing: StandingNetwork, design: Design) -> bool:
    """Whether a plan claims that it builds the network that stands."""
    family, choice = standing.family, design.hb_domain
    same_domains = (choice.name, choice.count) == (family.hb.name, family.domains)
    pairs = _claims(standing, design.fabric).values()
    return same_domains and all(claim == stands for claim, stands in pairs)


def _claims(standing: StandingNetwork, fabric: Fabric) -> dict[str, tuple[object, object]]:
    """What a plan claims of a fabric, beside what stands."""
    network, ports, tiers = standing.family.network, standing.ports, fabric.tier
    pods = [(ports.pod_down, ports.pod_up, ports.pod_each)] if ports.tiers == 3 else []
    return {
        "fabric": (fabric.kind, network.kind),
        "nic": (fabric.nic.name, network.nic.name),
        "nics-per-gpu": (fabric.nic.per_gpu, network.per_gpu // network.ports_in_plane),
        "ports-in-plane": (fabric.nic.ports_in_plane, network.ports_in_plane),
        "gpus-per-nic": (fabric.nic.shared_by, 1),
        "nic-planes": (fabric.nic.planes, network.nic_planes),
        "tiers": (fabric.tiers, ports.tiers),
        "switch": (
            tuple(tier.switch or fabric.switch.name for tier in tiers),
            tuple(network.at(n + 1).name for n in range(ports.tiers)),
        ),
        "optics": (
            tuple(tier.ends for tier in tiers),
            tuple(ends.names for ends in standing.optics),
        ),
        "leaf-domains": (
            fabric.leaf_domains,
            standing.family.leaf_domains if standing.family.takes_turns(ports.down) else 0,
        ),
        "leaf-ports": (
            [(tier.down_ports, tier.uplinks_per_switch) for tier in tiers[:1]],
            [(ports.down, ports.up)],
        ),
        "pod-ports": (
            [(tier.down_ports, tier.uplinks_per_switch, fabric.pod_bundle) for tier in tiers[1:-1]],
            pods,
        ),
        "switch-count": (
            [tier.switches for tier in tiers[1:2] if ports.tiers == 2],
            [
                spine_count(leaf_count(standing.family, ports.down), ports, network.at(2).radix)
                * standing.family.planes
                * standing.family.copies
            ]
            if ports.tiers == 2
            else [],
        ),
    }
