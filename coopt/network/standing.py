"""A network that stands as a family with its uplinks: from the chain of its design to what time,
traffic and bill are computed from.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from coopt.instance.existing import Existing
from coopt.instance.hardware import HbDomain, Optic
from coopt.instance.network import Discipline
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, both, counted
from coopt.network.designs import chain_of, leaf_numbers, link_rates, port_rate
from coopt.network.family import Family, LinkEnds, Pods, PodSet, TierChain


def standing_family(instance: Instance, gpus: int) -> Family:
    """The network that stands, with its uplinks as the only choice, on which so many GPUs train.

    Cables of a faster rate than that of a NIC's port count as so many of that rate.

    Raises
    ------
    InstanceError
        Where its design cannot be wired, or is wired so that no time is known for it.
    """
    stands = instance.existing[0]
    hb = stands.domain_in(instance.network)
    assert hb is not None, "checked as soon as the instance is read"
    return family_of(stands, gpus, hb, instance.network.discipline, f"{instance.place}: existing")


class _Above(NamedTuple):
    """What stands above the leaves, in cables of the rate of a NIC's port."""

    uplinks: int = 0
    bundle: int = 0
    spine_ports: int = 0
    pods: Pods | None = None


@lru_cache(maxsize=64)
def family_of(
    stands: Existing, gpus: int, hb: HbDomain, discipline: Discipline, file: str
) -> Family:
    """The family of a design that stands, by its parts; `file` is where refusals say it is."""
    nic = stands.nic
    assert nic is not None, "checked as soon as the instance is read"
    origin = f"{file}: design {stands.id!r}"
    chain = chain_of(stands, file)
    for name, unit in {"switches": "switch", "links": "link"}.items() if stands.published else ():
        counts = tuple(getattr(tier, name) for tier in chain.levels)
        if getattr(stands.published, name) not in (None, counts):
            what = unit if counts == (1,) else name
            raise InstanceError(
                f"{origin}: published.{name} = {list(getattr(stands.published, name))} (as counted"
                " in the plan or list of cables if left out): the tiers of the design come to"
                f" {both(map(str, counts))} {what}, needs tiers with the published counts, or"
                f" published = {{ switches = {[tier.switches for tier in chain.levels]} }}"
            )
    above = _above(stands, chain, origin)
    _check_leaves(stands, chain, gpus, origin)
    rate = stands.link_gbit_s
    leaf, *upper = (
        switch.model_copy(
            update={
                "radix": round(tier.ports * (port_rate(tier) or below or rate) / rate),
                "port_gbit_s": rate,
                "modes": (),
                "cages": None,
                "optics_inside": False,
                "usd": 0.0,
            }
        )
        for switch, tier, below in zip(
            stands.switches, stands.tiers, link_rates(stands, origin), strict=True
        )
    )
    if above.spine_ports:
        upper = [upper[0].model_copy(update={"radix": above.spine_ports})]
    ports, apart = stands.ports_in_plane, stands.joined_as == "rail-only"
    rails = stands.gpus_per_domain * ports
    networks = rails if apart else 1
    leaves = chain.leaves * chain.networks // stands.planes // networks
    span = chain.fill // stands.block if chain.pods else stands.installed
    down = chain.fill
    if not chain.pods:
        down = stands.installed * (stands.block if apart else stands.domain_ends)
    elif stands.joined_as != "clos":
        span = min(span, stands.installed)
        down = span * stands.block
    return Family(
        gpus=gpus,
        domains=stands.installed,
        hb=hb,
        fabric=stands.joined_as,
        nic=nic.model_copy(
            update={
                "gbit_s": nic.gbit_s * stands.nics_per_gpu / ports,
                "usd": 0.0,
                "cages": math.gcd(nic.cages, stands.planes * ports // stands.nics_per_gpu),
            }
        ),
        nics_per_gpu=ports,
        ports_in_plane=ports // stands.nics_per_gpu,
        ports_on_leaf=_ports_on_leaf(stands, chain),
        nic_planes=stands.planes,
        switch=leaf,
        upper=() if all(switch == leaf for switch in upper) else tuple(upper),
        tiers=len(stands.tiers),
        leaves=leaves,
        chassis=chain.leaf_switches,
        down=down,
        uplink_choices=(above.uplinks,),
        leaf_span=span,
        pods=above.pods,
        bundle=above.bundle,
        planes_together=chain.networks_per_switch,
        optics=tuple(LinkEnds(*(_as_laid(optic, rate) for optic in pair)) for pair in stands.ends),
        planes=networks,
        discipline=discipline,
    )


def _ports_on_leaf(stands: Existing, chain: TierChain) -> int:
    """The most ports of a NIC in one plane that lead to the same leaf switch."""
    apart = np.arange(stands.domain_ends)[:, None] // chain.networks_per_switch
    switches = apart if stands.joined_as == "rail-only" else leaf_numbers(stands, chain)
    of_nic = switches.reshape(-1, stands.ports_in_plane // stands.nics_per_gpu, switches.shape[1])
    return int((of_nic[:, :, None] == of_nic[:, None]).sum(axis=1).max())


def _as_laid(optic: Optic, rate: float) -> Optic:
    """A module with as many links as it has of the rate of a NIC's port."""
    return optic.model_copy(update={"breakout": (round(optic.gbit_s / rate),), "usd": 0.0})


def _check_leaves(stands: Existing, chain: TierChain, gpus: int, origin: str) -> None:
    """Refuse leaves that are filled as no network of ours is."""
    span = chain.fill // stands.block if chain.pods else stands.installed
    by_port = stands.fabric == "clos" and stands.leaf_rails > 1
    holds_all = stands.block > 1 and span >= stands.installed
    if by_port and (holds_all or chain.fill % stands.block or chain.cores):
        raise InstanceError(
            f"{origin}: rails = {stands.leaf_rails}: where the ports of a GPU lead to different"
            " leaves, the time model covers two tiers only, with leaves that each serve whole HB"
            f" domains ({stands.block} ports each), but fewer than all {stands.installed}, needs"
            f" leaf_domains of at most {stands.installed - 1}, and two tiers"
        )
    in_turn = stands.block > 1 and stands.joined_as == "rail-optimized" and span < stands.installed
    if (stands.block > 1 and stands.fabric == "rail-only") or (
        in_turn and (chain.cores or (stands.ports_in_plane > 1 and not by_port))
    ):
        raise InstanceError(
            f"{origin}: rails = {stands.leaf_rails}: the time model does not cover leaves with"
            f" {stands.block} ports for each HB domain, needs a leaf for each port of a domain in a"
            f" plane (rails = {stands.domain_ends})"
            + ", or two tiers that join rails"
            * (stands.ports_in_plane == 1)
        )
    if in_turn and not by_port and gpus % (stands.installed * stands.leaf_rails):
        raise InstanceError(
            f"{origin}: rails = {stands.leaf_rails}: {gpus:,} GPUs do not spread evenly over the"
            f" rails of {counted(stands.installed, 'HB domain')}, needs a multiple of"
            f" {stands.installed * stands.leaf_rails:,} in cluster.gpus"
        )
    of_unit = stands.unit * stands.block
    sized = -(-stands.installed // stands.unit) * -(-of_unit // chain.fill)
    filled = -(-stands.installed * stands.block // chain.fill)
    has_rests = of_unit % chain.fill > 0 and stands.unit < stands.installed
    if chain.pods and (sized != filled or has_rests):
        raise InstanceError(
            f"{origin}: unit_domains = {stands.unit}: units of"
            f" {counted(stands.unit, 'HB domain')} leave some leaves partly empty"
            + f" ({sized:,} leaves, {filled:,} if full)" * (sized != filled)
            + ", which the time model does not cover, needs whole units that fill their leaves"
        )


def _above(stands: Existing, chain: TierChain, origin: str) -> _Above:
    """What stands above the leaves.

    Raises
    ------
    InstanceError
        Where cables are slower than a NIC's port, pods differ or are not joined, or cores serve
        spines of several groups.
    """
    rates = link_rates(stands, origin)
    parts = [(rate or rates[0] or 1.0) / stands.link_gbit_s for rate in rates]
    for number, part in enumerate(parts):
        if not part.is_integer():
            raise InstanceError(
                f"{origin}: tiers[{number}]: the cables below this tier run at"
                f" {part * stands.link_gbit_s:g} Gbit/s, needs a multiple of the"
                f" {stands.link_gbit_s:g} Gbit/s of NIC ports"
            )
    if not chain.pods:
        return _Above()
    pod, splits = chain.pods[0], [round(part) for part in parts]
    uplinks = chain.uplinks * splits[1]
    if not chain.cores:
        count = sum(pods.number for pods in chain.pods)
        if count > (stands.gpus_per_domain if stands.joined_as != stands.fabric else 1):
            other = "no pod" if stands.fabric == "clos" else "a pod for each rail"
            raise InstanceError(
                f"{origin}: pod = {stands.pod!r}: no tier joins the {count} pods, needs a third"
                f" tier, or {other}"
            )
        if chain.uplinks % pod.spines == 0:
            return _Above(uplinks, bundle=uplinks // pod.spines)
        return _Above(uplinks, spine_ports=pod.down * splits[1])
    return _Above(uplinks, pods=_pods(chain, pod, splits, origin))


def _pods(chain: TierChain, pod: PodSet, splits: list[int], origin: str) -> Pods:
    """The pods of three tiers with a group of cores for each spine of a pod."""
    alike = all((pods.spines, pods.up) == (pod.spines, pod.up) for pods in chain.pods)
    group, rest = divmod(chain.cores, pod.spines)
    if not alike or chain.uplinks % pod.spines or rest or pod.up % max(group, 1):
        kinds = (f"{counted(pods.spines, 'spine')} with {pods.up:,} up each" for pods in chain.pods)
        raise InstanceError(
            f"{origin}: tiers[2]: the time model does not cover {counted(chain.cores, 'core')}"
            f" above pods of {both(dict.fromkeys(kinds))}, needs equal pods, as many cables from a"
            " leaf to each spine of its pod, and a group of cores for each spine"
        )
    each = chain.uplinks // pod.spines * splits[1]
    return Pods(
        l=each * pod.leaves,
        w=pod.up * splits[2],
        count=sum(pods.number for pods in chain.pods),
        bundle=pod.up // group * splits[2],
        each=each,
    )
