"""The counts and the bill of a design, with the products it names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from coopt.fabric.chain import TierLevel, levels, worst_pair_share
from coopt.fabric.designs import chain_of
from coopt.fabric.halls import Lengths, cable_lengths
from coopt.instance.designs import PublishedDesign
from coopt.instance.errors import InstanceError
from coopt.instance.hardware import SPARE, Nic, Optic, Switch
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
        Where the design cannot be wired, or an optic does not reach where its hall takes it.
    """
    chain, uplinks = chain_of(design, file)
    tiers = levels(chain, uplinks)
    lengths = cable_lengths(design, file)
    _check_reach(design, lengths, file)
    items = tuple(_items(design, tiers))
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
                optic=form.optic.name if form.optic else "",
                cables=tuple(CableLength(length_m=m, count=count) for m, count in sorted(cables.items())),
            )
            for number, (tier, form, cables) in enumerate(
                zip(tiers, design.tiers, lengths or [Lengths()] * len(tiers), strict=True), start=1
            )
        ),
        pair_share=worst_pair_share(chain, uplinks),
        items=items,
        unpriced=tuple(_unpriced(design)),
        usd=math.fsum(item.usd for item in items),
        w=math.fsum(item.w for item in items),
    )


def _check_reach(design: PublishedDesign, lengths: tuple[Lengths, ...], file: str) -> None:
    for number, (form, cables) in enumerate(zip(design.tiers, lengths, strict=False)):
        longest = max(cables)
        if form.optic is not None and form.optic.reach_m < longest:
            raise InstanceError(
                f"{file}: design {design.id!r}: tiers[{number}].optic = {form.optic.name!r}: reaches "
                f"{form.optic.reach_m:g} m and the hall has cables of {longest:,} m below tier {number + 1}, needs an "
                "optic that reaches them or racks nearer each other"
            )


def _items(design: PublishedDesign, tiers: tuple[TierLevel, ...]) -> Iterator[Item]:
    """One NIC for each GPU, switches, two optics for each cable; products of several tiers on one line, then spares."""
    counts = Counter[tuple[ItemKind, Nic | Switch | Optic]]()
    if design.nic is not None:
        counts["nic", design.nic] = design.gpus
    for tier, form in zip(tiers, design.tiers, strict=True):
        if form.switch is not None:
            counts["switch", form.switch] += tier.switches
        if form.optic is not None:
            counts["optics", form.optic] += 2 * tier.links
    order = sorted(counts.items(), key=lambda bought: KINDS.index(bought[0][0]))
    shares = {"nic": design.spares.nic, "switch": design.spares.switch, "optics": design.spares.optics}
    yield from (line(kind, each.name, count, each.usd, each.w) for (kind, each), count in order)
    for (kind, each), count in order:
        spare = math.ceil(count * shares[kind] - 1e-9)  # 2% of 50 is 1, whatever the last bit says
        if spare:
            yield line(kind, f"{each.name}{SPARE}", spare, each.usd, 0.0)


def _unpriced(design: PublishedDesign) -> Iterator[str]:
    """What has no product and so no price."""
    if design.nic is None:
        yield "NICs"
    for noun, products in (
        ("switches", [tier.switch for tier in design.tiers]),
        ("optics", [tier.optic for tier in design.tiers]),
    ):
        without = [str(number) for number, product in enumerate(products, start=1) if product is None]
        if without:
            yield f"{noun} of tier {', '.join(without)}"


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
