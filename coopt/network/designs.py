"""From a design as it is written to its chain of tiers: rates, ports, how leaves are filled, and by
whom, pods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from coopt.instance.designs import MOST_TIERS, PublishedDesign, TierForm, contradictions
from coopt.instance.texts import InstanceError, alternatives, counted
from coopt.network.family import PodSet, TierChain

MOST_PARTS = 64  # lanes of the widest port sold have 16; more is a slip in a rate


class NotWirableError(ValueError):
    """A chain that cannot be wired: the tier (1 for leaves), and the ports a switch would take."""

    def __init__(self, tier: int, text: str) -> None:
        self.tier = tier
        super().__init__(f"a switch of tier {tier} would need {text}")


class NoRoomBelowError(NotWirableError):
    """A switch with too few cables to the tier below for the reason that is given."""

    def __init__(self, tier: int, takes: int, has: int, reason: str) -> None:
        super().__init__(
            tier,
            f"{counted(takes, 'cable')} down ({reason}) but has room for {has:,}",
        )


@dataclass(frozen=True, kw_only=True)
class TierPorts:
    """The ports of a switch: `down` is the most cables down that it may have, `up` its cables up
    where they are fixed.

    A port breaks out into `down_split` cables down or `up_split` cables up. One cable down has the
    bandwidth of `ratio` cables up.
    """

    ports: int
    down: int
    up: int | None = None
    down_split: int = 1
    up_split: int = 1
    ratio: Fraction = Fraction(1)

    def uplinks(self, down: int) -> int:
        """Cables up of a switch with so many down: of at least their bandwidth where none are
        fixed.
        """
        return math.ceil(down * self.ratio) if self.up is None else self.up

    def check(self, tier: int, down: int, up: int) -> None:
        """Refuse more cables than there are ports.

        Raises
        ------
        NotWirableError
            With the ports that the cables would take.
        """
        takes = -(-down // self.down_split) - (-up // self.up_split)
        if takes > self.ports:
            raise NotWirableError(
                tier,
                f"{takes:,} ports (for {counted(down, 'cable')} down and {up:,} up) but has"
                f" {self.ports:,}",
            )


def chain_of(design: PublishedDesign, file: str = "design") -> TierChain:
    """The chain of tiers of a design.

    Parameters
    ----------
    file
        Where it stands, for refusals.

    Raises
    ------
    InstanceError
        Where it cannot be wired: file, design, key, the ports a switch would take and those it has.
    """
    origin = f"{file}: design {design.id!r}"
    against = [f"{origin}: {line}" for line in contradictions(design)]
    if against:
        raise InstanceError(against)
    try:
        return _chain(design, tier_ports(design, origin), origin)
    except NotWirableError as error:
        form = design.tiers[error.tier - 1]
        lacks_room, is_top = isinstance(error, NoRoomBelowError), error.tier == len(design.tiers)
        has_cap = lacks_room and form.down is not None
        key = f"down = {form.down}" if has_cap else f"ports = {form.ports}"
        needs = ["a larger down"] if has_cap else ["switches of more ports"]
        if lacks_room and not has_cap and not is_top:
            needs.append("a larger down (half of the ports if left out)")
        needs.append("fewer cables")
        # only what the last tier has to join can be joined by one more
        if lacks_room and is_top and design.pod is None and error.tier < MOST_TIERS:
            needs.append("a further tier")
        raise InstanceError(
            f"{origin}: tiers[{error.tier - 1}].{key}: {error}, needs {alternatives(needs)}"
        ) from None


def link_rates(design: PublishedDesign, origin: str) -> list[float | None]:
    """The rate of a cable below each tier (Gbit/s); None where nothing says it.

    Raises
    ------
    InstanceError
        Where two ends do not mate.
    """
    nic = design.nic_gbit_s
    rates_below: tuple[float | None, float | None] = (nic, nic)  # fixed, and at most
    rates: list[float | None] = []
    for number, tier in enumerate(design.tiers):
        fixed_gbit_s, most_gbit_s = rates_below
        port_gbit_s = port_rate(tier)
        if fixed_gbit_s and tier.down_gbit_s and fixed_gbit_s != tier.down_gbit_s:
            lower = "switch ports" if number else "NIC ports"
            raise InstanceError(
                f"{origin}: tiers[{number}].down_gbit_s = {tier.down_gbit_s:g}: {lower} below run"
                f" at {fixed_gbit_s:g} Gbit/s, needs the same rate at both ends of a cable"
            )
        limits = [rate for rate in (most_gbit_s, port_gbit_s) if rate is not None]
        rate = tier.down_gbit_s or fixed_gbit_s or min(limits, default=None)
        for key, optic in {"optic": tier.optic, "optic_below": tier.optic_below}.items():
            if rate is not None and optic is not None and not optic.links_of(rate):
                raise InstanceError(
                    f"{origin}: tiers[{number}].{key} = {optic.name!r}: has {optic.gbit_s:g}"
                    f" Gbit/s, but the cables below tier {number + 1} run at {rate:g} Gbit/s, needs"
                    " an optic of their rate or one that breaks out to it"
                )
        rates.append(rate)
        rates_below = tier.up_gbit_s, tier.up_gbit_s or port_gbit_s
    return rates


def tier_ports(design: PublishedDesign, origin: str) -> tuple[TierPorts, ...]:
    """The ports of each tier's switches in cables, broken out where a cable is slower than its
    port.

    Raises
    ------
    InstanceError
        Where rates do not mate or a tier is told to have more cables than ports.
    """
    rates = [*link_rates(design, origin), design.tiers[-1].up_gbit_s]
    tiers = []
    for number, tier in enumerate(design.tiers):
        port_gbit_s = port_rate(tier)
        down_gbit_s, up_gbit_s = rates[number], rates[number + 1]
        down_split, up_split = (
            _split(port_gbit_s, rate, f"{origin}: tiers[{number}]")
            for rate in (down_gbit_s, up_gbit_s)
        )
        free_ports = tier.ports - -(-(tier.up or 0) // up_split)
        # below the top no more than half of the ports go down, and no more than uplinks leave
        ports_down = (
            free_ports if number == len(design.tiers) - 1 else min(free_ports, tier.ports // 2)
        )
        down = ports_down * down_split if tier.down is None else tier.down
        ports = TierPorts(
            ports=tier.ports,
            down=down,
            up=tier.up,
            down_split=down_split,
            up_split=up_split,
            ratio=(
                Fraction(down_gbit_s) / Fraction(up_gbit_s)
                if down_gbit_s and up_gbit_s
                else Fraction(1)
            ),
        )
        ports.check(number + 1, tier.down or 1, tier.up or 0)
        tiers.append(ports)
    return tuple(tiers)


def port_rate(tier: TierForm) -> float | None:
    """The rate of a port that is not broken out: as given, that of the product, or that of the
    faster cables.
    """
    if tier.gbit_s:
        return tier.gbit_s
    if tier.switch:
        return tier.switch.port_gbit_s
    return max(tier.down_gbit_s, tier.up_gbit_s) if tier.down_gbit_s and tier.up_gbit_s else None


def _split(port: float | None, cable: float | None, origin: str) -> int:
    """How many cables a port breaks out into."""
    if port is None or cable is None:
        return 1
    parts = port / cable
    if not 1 <= parts <= MOST_PARTS or not parts.is_integer():
        raise InstanceError(
            f"{origin}: ports of {port:g} Gbit/s do not mate with cables of {cable:g} Gbit/s, needs"
            f" the same rate or one that a port breaks out to (at most {MOST_PARTS} cables)"
        )
    return int(parts)


def _chain(design: PublishedDesign, tiers: tuple[TierPorts, ...], origin: str) -> TierChain:
    rails, block, unit = design.leaf_rails, design.block, design.unit
    is_rail_only = design.fabric == "rail-only"
    units = -(-design.installed // unit)
    networks = design.planes * (rails if is_rail_only else 1)
    ends = design.gpus * design.nic_ports
    if len(tiers) == 1:
        fill = units * unit * (block if is_rail_only else design.domain_ends)
        _check_single_tier(design, tiers[0], fill, origin)
        return TierChain(
            ends=ends,
            planes=design.planes,
            networks=networks,
            leaves=1,
            fill=fill,
            networks_per_switch=tiers[0].down // fill,
        )
    fill, of_unit = _filled(design, tiers[0], origin)
    of_rail = units * of_unit
    leaves = of_rail * (1 if is_rail_only else rails)
    uplinks = tiers[0].uplinks(fill)
    tiers[0].check(1, fill, uplinks)
    in_unit = of_unit * (rails if design.fabric == "clos" else 1)
    pod_leaves = {"unit": in_unit, "rail": of_rail}.get(
        design.pod or "", tiers[1].down if len(tiers) == 3 else leaves
    )
    full_pods, rest = divmod(leaves, pod_leaves)
    pods = tuple(
        _pod_set(design, tiers, count, size, uplinks)
        for count, size in ((full_pods, pod_leaves), (1, rest))
        if count and size
    )
    cores, step = _cores(design, tiers[2], pods) if len(tiers) == 3 else (0, 1)
    return TierChain(
        ends=ends,
        planes=design.planes,
        networks=networks,
        leaves=leaves,
        fill=fill,
        uplinks=uplinks,
        pods=pods,
        cores=cores,
        core_step=step,
        ratios=(tiers[0].ratio, tiers[1].ratio),
    )


def _check_single_tier(design: PublishedDesign, ports: TierPorts, fill: int, origin: str) -> None:
    """Refuse leaves that would have to be joined."""
    if fill > ports.down:
        raise NoRoomBelowError(
            1, fill, ports.down, "one for each end point, as no second tier joins the leaves"
        )
    key = "leaf_domains" if design.leaf_domains else "unit_domains"
    served_domains = design.leaf_domains or design.unit_domains or design.installed
    if served_domains < design.installed:
        raise InstanceError(
            f"{origin}: {key} = {served_domains}: a leaf serves {served_domains:,} of"
            f" {design.installed:,} HB domains, and no second tier joins the leaves, needs {key} ="
            f" {design.installed} or a second tier"
        )


def _pod_set(
    design: PublishedDesign, tiers: tuple[TierPorts, ...], count: int, leaves: int, uplinks: int
) -> PodSet:
    """So many pods with their spines: the fewest whose ports are enough and, where bundles are
    even, whose number divides the uplinks of a leaf.

    Raises
    ------
    NotWirableError
        Where a spine has no port for every leaf of its pod, or too few for its uplinks.
    """
    spine = tiers[1]
    if leaves > spine.down:
        raise NoRoomBelowError(2, leaves, spine.down, "one for each leaf")
    spines = -(-leaves * uplinks // spine.down)
    if design.bundles == "even":
        spines = next(k for k in range(spines, uplinks + 1) if uplinks % k == 0)
    down = -(-leaves * uplinks // spines)
    up = spine.uplinks(down) if len(tiers) == 3 else 0
    spine.check(2, down, up)
    return PodSet(number=count, leaves=leaves, spines=spines, down=down, up=up)


def _cores(design: PublishedDesign, core: TierPorts, pods: tuple[PodSet, ...]) -> tuple[int, int]:
    """The fewest cores of one network, and how many cables always go together from a spine to a
    core.

    Where bundles are even, that is all a spine has for each core that it reaches. A core has a port
    for every full pod, and the bundles of a pod go round the cores, so that no core has two more of
    them than another.

    Raises
    ------
    NotWirableError
        Where no core has a port for every pod.
    """
    even = design.bundles == "even"
    links = sum(pod.number * pod.spines * pod.up for pod in pods)
    common = math.gcd(*(pod.up for pod in pods)) if even else 1
    options = []
    for step in range(1, min(common, core.down) + 1):
        if common % step:
            continue
        # all cables of a spine to a core are one bundle, so that it needs as many cores as it has
        # bundles
        least_cores = max(pod.up for pod in pods) // step if even else 1
        count = max(-(-links // step // (core.down // step)), least_cores)
        # a full pod reaches every core, so that there are no more cores than it has bundles
        if count * step <= max(pod.spines * pod.up for pod in pods):
            options.append((count, step))
    if not options:
        raise NoRoomBelowError(3, sum(pod.number for pod in pods), core.down, "one for each pod")
    return min(options)


def _filled(design: PublishedDesign, leaf: TierPorts, origin: str) -> tuple[int, int]:
    """End points that a leaf is sized for, and leaves of a unit (of each rail, where leaves serve
    one).
    """
    block, unit = design.block, design.unit
    if design.leaf_domains is not None:
        fill = design.leaf_domains * block
        if fill > leaf.down and design.tiers[0].down is not None:
            raise NoRoomBelowError(
                1, fill, leaf.down, f"for {counted(design.leaf_domains, 'HB domain')}"
            )
        return fill, -(-unit // design.leaf_domains)
    if design.fabric == "clos":
        fill = min(leaf.down, unit * block)
        return fill, -(-unit * block // fill)
    served_domains = min(leaf.down // block, unit)
    if served_domains == 0:
        raise NoRoomBelowError(1, block, leaf.down, "for one rail of an HB domain")
    if design.unit_domains is not None and unit % served_domains:
        raise InstanceError(
            f"{origin}: unit_domains = {unit}: a leaf has ports for one rail of {served_domains}"
            f" domains, which does not divide a unit, needs a multiple of {served_domains}, or"
            " leaf_domains to say how leaves are filled"
        )
    return served_domains * block, -(-unit // served_domains)


def leaf_numbers(design: PublishedDesign, chain: TierChain) -> NDArray[np.int64]:
    """The leaf of every end point of one network; shape (end points of a domain, domains).

    GPU g of a domain is on rail g mod rails. Leaves are numbered by rail where they serve one, then
    by unit, then by domain; in a clos port p of a GPU is on rail p mod rails, and leaves are
    numbered by unit, by domain, then by rail.
    """
    rails, block, unit = design.leaf_rails, design.block, design.unit
    rows = block if design.fabric == "rail-only" else design.domain_ends
    if not chain.pods:
        return np.zeros((rows, design.installed), dtype=np.int64)
    row, domain = np.indices((rows, design.installed))
    of_unit = -(-unit * block // chain.fill)
    unit_number, place = divmod(domain, unit)
    if design.fabric == "clos":
        row, rail = divmod(row, rails)
    elif design.fabric == "rail-optimized":
        ports = 1 if rails > design.gpus_per_domain else design.ports_in_plane
        gpu, port = divmod(row, ports)
        row, rail = gpu // rails * ports + port, gpu % rails
        unit_number = rail * -(-design.installed // unit) + unit_number
    leaf = unit_number * of_unit + (place * block + row) // chain.fill
    if design.fabric == "clos":
        leaf = leaf * rails + rail
    return np.asarray(leaf, dtype=np.int64)
