"""From a design as it is written to its chain of tiers: rates, ports, how leaves are filled, and by
whom, pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from coopt.fabric.chain import (
    NotWirableError,
    PodSplit,
    TierChain,
    TierLevel,
    TierPorts,
    blocks,
    levels,
)
from coopt.instance.designs import PublishedDesign, TierForm, contradictions
from coopt.instance.errors import InstanceError

MOST_PARTS = 64  # lanes of the widest port sold have 16; more is a slip in a rate
End = tuple[str, int, int, int]  # "end", domain, GPU, port


def design_tiers(design: PublishedDesign, file: str = "design") -> tuple[TierLevel, ...]:
    """The tiers of a design from the leaves up.

    Parameters
    ----------
    file
        Where it stands, for refusals.

    Raises
    ------
    InstanceError
        Where it cannot be wired: file, design, key, the ports a switch would take and those it has.
    """
    return levels(*chain_of(design, file))


def chain_of(design: PublishedDesign, file: str = "design") -> tuple[TierChain, int]:
    """The chain of a design and the uplinks of a leaf, which together can be wired.

    Raises
    ------
    InstanceError
        As `design_tiers` does.
    """
    origin = f"{file}: design {design.id!r}"
    against = [f"{origin}: {line}" for line in contradictions(design)]
    if against:
        raise InstanceError(against)
    try:
        wired = _chain(design, tier_ports(design, origin), origin)
        if len(design.tiers) > 1:
            blocks(*wired)
        levels(*wired)
    except NotWirableError as error:
        key = f"tiers[{error.tier - 1}].ports = {design.tiers[error.tier - 1].ports}"
        raise InstanceError(
            f"{origin}: {key}: {error}, needs switches of more ports, fewer cables or a further"
            " tier"
        ) from None
    return wired


def link_rates(design: PublishedDesign, origin: str) -> list[float | None]:
    """The rate of a cable below each tier (Gbit/s); None where nothing says it.

    Raises
    ------
    InstanceError
        Where two ends do not mate.
    """
    nic = None if design.nic is None else design.nic.gbit_s / design.nic_ports
    rates_below: tuple[float | None, float | None] = (nic, nic)  # fixed, and at most
    rates: list[float | None] = []
    for number, tier in enumerate(design.tiers):
        fixed_gbit_s, most_gbit_s = rates_below
        port_gbit_s = _port_rate(tier)
        if fixed_gbit_s and tier.down_gbit_s and fixed_gbit_s != tier.down_gbit_s:
            lower = "ports of switches" if number else "NIC ports"
            raise InstanceError(
                f"{origin}: tiers[{number}].down_gbit_s = {tier.down_gbit_s:g}: {lower} below run"
                f" at {fixed_gbit_s:g} Gbit/s, needs the same rate at both ends of a cable"
            )
        limits = [rate for rate in (most_gbit_s, port_gbit_s) if rate is not None]
        rate = tier.down_gbit_s or fixed_gbit_s or min(limits, default=None)
        for key, optic in {"optic": tier.optic, "optic_below": tier.optic_below}.items():
            if rate is not None and optic is not None and not optic.links_of(rate):
                raise InstanceError(
                    f"{origin}: tiers[{number}].{key} = {optic.name!r}: has {optic.gbit_s:g} Gbit/s"
                    f" and the cables below tier {number + 1} {rate:g}, needs an optic of their"
                    " rate or one that breaks out to it"
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
        port_gbit_s = _port_rate(tier)
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


def _port_rate(tier: TierForm) -> float | None:
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


def _chain(
    design: PublishedDesign, tiers: tuple[TierPorts, ...], origin: str
) -> tuple[TierChain, int]:
    rails = design.rails or design.gpus_per_domain
    ports = design.nic_ports // design.planes
    is_rail_only = design.fabric == "rail-only"
    of_domain = design.gpus_per_domain * ports  # end points of a domain in a plane
    block = (
        of_domain if design.fabric == "clos" else of_domain // rails
    )  # that one leaf takes together
    unit = design.unit_domains or design.installed
    units = -(-design.installed // unit)
    networks = design.planes * (rails if is_rail_only else 1)
    ends = design.gpus * design.nic_ports
    if len(tiers) == 1:
        return (
            _single_tier(
                design, tiers, units * unit * (block if is_rail_only else of_domain), networks, ends
            ),
            0,
        )
    fill, leaves = _filled(design, tiers[0], block, unit, origin)
    of_rail = units * leaves
    in_network = of_rail * (rails if design.fabric == "rail-optimized" else 1)
    uplinks = tiers[0].up or tiers[0].full_uplinks(fill)
    pod_leaves = {"unit": leaves, "rail": of_rail}.get(
        design.pod or "", tiers[1].down if len(tiers) == 3 else in_network
    )
    full_pods, rest_leaves = divmod(in_network, pod_leaves)
    pods = [PodSplit(count=full_pods, leaves=pod_leaves)] if full_pods else []
    pods += [PodSplit(count=1, leaves=rest_leaves)] if rest_leaves else []
    chain = TierChain(
        ends=ends,
        planes=design.planes,
        networks=networks,
        leaves=in_network,
        fill=fill,
        tiers=tiers,
        pods=tuple(pods),
        bundles=design.bundles,
    )
    return chain, uplinks


def _single_tier(
    design: PublishedDesign, tiers: tuple[TierPorts, ...], fill: int, networks: int, ends: int
) -> TierChain:
    """Networks of one switch each, or several rails of a plane on one switch where they are
    small.
    """
    (ports,) = tiers
    if fill > ports.down:
        raise NotWirableError(
            1, fill, ports.down, "one for each end point, as no tier joins leaves"
        )
    served_domains = design.leaf_domains or design.unit_domains or design.installed
    if served_domains < design.installed:
        ports_needed = -(-fill * design.installed // served_domains)
        raise NotWirableError(
            1, ports_needed, ports.down, "for all domains, as no tier joins leaves"
        )
    return TierChain(
        ends=ends,
        planes=design.planes,
        networks=networks,
        leaves=1,
        fill=fill,
        tiers=tiers,
        networks_per_switch=ports.down // fill,
        bundles=design.bundles,
    )


def _filled(
    design: PublishedDesign, leaf: TierPorts, block: int, unit: int, origin: str
) -> tuple[int, int]:
    """End points that a leaf is sized for, and leaves of a unit (of each rail, where leaves serve
    one).
    """
    if design.leaf_domains is not None:
        fill = design.leaf_domains * block
        if fill > leaf.down and design.tiers[0].down is not None:
            raise NotWirableError(1, fill, leaf.down, f"for {design.leaf_domains:,} domains")
        return fill, -(-unit // design.leaf_domains)
    if design.fabric == "clos":
        fill = min(leaf.down, unit * block)
        return fill, -(-unit * block // fill)
    served_domains = min(leaf.down // block, unit)
    if served_domains == 0:
        raise NotWirableError(1, block, leaf.down, "for one rail of a domain")
    if design.unit_domains is not None and unit % served_domains:
        raise InstanceError(
            f"{origin}: unit_domains = {unit}: a leaf has ports for one rail of {served_domains}"
            f" domains, which do not divide a unit, needs a multiple of {served_domains}, or"
            " leaf_domains that says how leaves are filled"
        )
    return served_domains * block, -(-unit // served_domains)


def ends_by_leaf(
    design: PublishedDesign, chain: TierChain, network: int
) -> Iterator[tuple[End, int]]:
    """The end points of one network, each with the number of its leaf.

    GPU g of a domain is on rail g mod rails. Leaves are numbered by rail where they serve one, then
    by unit, then by domain.
    """
    rails = design.rails or design.gpus_per_domain
    ports = design.nic_ports // design.planes
    plane, rail = divmod(network, rails) if design.fabric == "rail-only" else (network, None)
    unit = design.unit_domains or design.installed
    clos, of_domain = design.fabric == "clos", design.gpus_per_domain * ports
    block = of_domain if clos else of_domain // rails
    of_unit = -(-unit * block // chain.fill)
    units = -(-design.installed // unit)
    for domain in range(design.installed):
        unit_number, place = divmod(domain, unit)
        for gpu in (
            range(design.gpus_per_domain)
            if rail is None
            else range(rail, design.gpus_per_domain, rails)
        ):
            for port in range(ports):
                units_before = 0 if clos or rail is not None else gpu % rails * units
                number = (gpu if clos else gpu // rails) * ports + port
                leaf = (units_before + unit_number) * of_unit + (
                    place * block + number
                ) // chain.fill
                yield ("end", domain, gpu, plane * ports + port), leaf
