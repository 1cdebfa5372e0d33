"""The counts and the bill of a design, with the products it names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from coopt.fabric.chain import TierLevel, levels, worst_pair_share
from coopt.fabric.designs import chain_of
from coopt.fabric.halls import Lengths, cable_lengths
from coopt.fabric.modules import CableEnds, cable_ends
from coopt.instance.designs import PublishedDesign
from coopt.instance.errors import InstanceError
from coopt.instance.hardware import SPARE, Nic, Optic, Switch, mate
from coopt.plan.networks import BilledNetwork, BilledTier, CableLength, NetworksBill
from coopt.plan.parts import Item, ItemKind, line

KINDS: tuple[ItemKind, ...] = ("nic", "switch", "optics")
NOT_COUNTED = (
    "servers and GPUs",
    "racks, power distribution and cooling",
    "installation, support and freight",
    "storage, in-band and out-of-band networks that are no design of the file",
)


def design_bill(design: PublishedDesign, file: str = "design") -> BilledNetwork:
    """What a design counts to and, of the products it names, what they cost and draw.

    Raises
    ------
    InstanceError
        Where the design cannot be wired, products of a link do not mate, or an optic does not reach where its hall
        takes it.
    """
    chain, uplinks = chain_of(design, file)
    tiers = levels(chain, uplinks)
    where = f"{file}: design {design.id!r}"
    _check_mates(design, where)
    lengths, ends = cable_lengths(design, file), tuple(cable_ends(design, tiers, where))
    for end in ends if lengths else ():
        _check_reach(end, max(lengths[end.tier]), where)
    items = tuple(_items(design, tiers, ends))
    return BilledNetwork(
        name=design.id,
        fabric=design.fabric,
        gpus=design.gpus,
        tier=tuple(
            BilledTier(
                level=number,
                switches=tier.switches,
                down_ports=tier.down_ports,
                uplinks_per_switch=tier.uplinks,
                links=tier.links,
                bundle=tier.bundle,
                switch=form.switch.name if form.switch else "",
                optic=" / ".join(_optics(ends, number - 1)),
                cables=tuple(CableLength(length_m=m, count=count) for m, count in sorted(cables.items())),
            )
            for number, (tier, form, cables) in enumerate(
                zip(tiers, design.tiers, lengths or [Lengths()] * len(tiers), strict=True), start=1
            )
        ),
        pair_share=worst_pair_share(chain, uplinks),
        items=items,
        unpriced=tuple(_unpriced(design, ends)),
        usd=math.fsum(item.usd for item in items),
        w=math.fsum(item.w for item in items),
    )


def _optics(ends: tuple[CableEnds, ...], tier: int) -> dict[str, None]:
    """The names of the modules below a tier, that of the upper end first."""
    return {end.optic.name: None for end in ends if end.tier == tier and end.optic is not None and not end.inside}


def _check_mates(design: PublishedDesign, where: str) -> None:
    """Refuse a tier whose switches, what is below them and the optics between have no lanes or protocol in common."""
    below: Nic | Switch | None = design.nic
    for tier, form in enumerate(design.tiers):
        named = (below, form.optic_below, form.optic, form.switch)
        parts = [part for part in named if part is not None]
        ends = form.optic, form.optic_below
        if not mate(*parts) or not _meet(*ends):
            names = ", ".join(dict.fromkeys(part.name for part in parts))
            raise InstanceError(
                f"{where}: tiers[{tier}]: {names} do not mate, needs products of one protocol, one lane_gbit_s and one "
                "fibre, or none named"
            )
        below = form.switch


def _meet(above: Optic | None, below: Optic | None) -> bool:
    """Whether the optics of a cable are for the same fibres, as far as they say."""
    said = {optic.fibre for optic in (above, below) if optic is not None and optic.fibre is not None}
    return len(said) < 2


def _check_reach(end: CableEnds, longest_m: int, where: str) -> None:
    optic = end.optic
    if optic is not None and not end.inside and optic.reach_m < longest_m:
        raise InstanceError(
            f"{where}: tiers[{end.tier}].{end.key} = {optic.name!r}: reaches {optic.reach_m:g} m and the hall has "
            f"cables of {longest_m:,} m below tier {end.tier + 1}, needs an optic that reaches them or racks nearer "
            "each other"
        )


def _items(design: PublishedDesign, tiers: tuple[TierLevel, ...], ends: tuple[CableEnds, ...]) -> Iterator[Item]:
    """One NIC for each GPU, switches, modules of cables; products of several tiers on one line, then spares."""
    counts = Counter[tuple[ItemKind, Nic | Switch | Optic]]()
    if design.nic is not None:
        counts["nic", design.nic] = design.gpus
    for tier, form in zip(tiers, design.tiers, strict=True):
        if form.switch is not None:
            counts["switch", form.switch] += tier.switches
    for end in ends:
        if end.optic is not None and end.modules:
            counts["optics", end.optic] += end.modules
    order = sorted(counts.items(), key=lambda bought: KINDS.index(bought[0][0]))
    shares = {"nic": design.spares.nic, "switch": design.spares.switch, "optics": design.spares.optics}
    yield from (line(kind, each.name, count, each.usd, each.w) for (kind, each), count in order)
    for (kind, each), count in order:
        spare = math.ceil(count * shares[kind] - 1e-9)  # 2% of 50 is 1, whatever the last bit says
        if spare:
            yield line(kind, f"{each.name}{SPARE}", spare, each.usd, 0.0)


def _unpriced(design: PublishedDesign, ends: tuple[CableEnds, ...]) -> Iterator[str]:
    """What has no product and so no price."""
    if design.nic is None:
        yield "NICs"
    bare = {end.tier + 1 for end in ends if end.optic is None and not end.inside}
    for noun, without in (
        ("switches", [number for number, tier in enumerate(design.tiers, start=1) if tier.switch is None]),
        ("optics", sorted(bare)),
    ):
        if without:
            yield f"{noun} of tier {', '.join(map(str, without))}"


def designs_bill(name: str, designs: Iterable[PublishedDesign], file: str) -> NetworksBill:
    """The bills of several designs, and all of them together."""
    networks = tuple(design_bill(design, file) for design in designs)
    together = Counter[tuple[ItemKind, str, float, float]]()
    for item in (item for network in networks for item in network.items):
        together[item.kind, item.item, item.unit_usd, item.unit_w] += item.count
    items = tuple(line(kind, product, count, usd, w) for (kind, product, usd, w), count in together.items())
    return NetworksBill(
        name=name,
        networks=networks,
        items=items,
        not_counted=NOT_COUNTED,
        usd=math.fsum(network.usd for network in networks),
        w=math.fsum(network.w for network in networks),
    )
