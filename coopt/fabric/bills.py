"""The counts and the bill of a design, with the products it names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from coopt.fabric.chain import TierLevel, levels, worst_pair_share
from coopt.fabric.designs import chain_of
from coopt.instance.designs import PublishedDesign
from coopt.instance.hardware import Optic, Switch
from coopt.plan.networks import BilledNetwork, BilledTier, NetworksBill
from coopt.plan.parts import Item, ItemKind, line


def design_bill(design: PublishedDesign, file: str = "design") -> BilledNetwork:
    """What a design counts to and, of the products it names, what they cost and draw.

    Raises
    ------
    InstanceError
        Where the design cannot be wired.
    """
    chain, uplinks = chain_of(design, file)
    tiers = levels(chain, uplinks)
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
            )
            for number, (tier, form) in enumerate(zip(tiers, design.tiers, strict=True), start=1)
        ),
        pair_share=worst_pair_share(chain, uplinks),
        items=items,
        unpriced=tuple(_unpriced(design)),
        usd=math.fsum(item.usd for item in items),
        w=math.fsum(item.w for item in items),
    )


def _items(design: PublishedDesign, tiers: tuple[TierLevel, ...]) -> Iterator[Item]:
    """One NIC for each GPU, switches, and two optics for each cable; products of several tiers on one line."""
    if design.nic is not None:
        yield line("nic", design.nic.name, design.gpus, design.nic.usd, design.nic.w)
    pairs = list(zip(tiers, design.tiers, strict=True))
    switches, optics = Counter[Switch](), Counter[Optic]()
    for tier, form in pairs:
        if form.switch is not None:
            switches[form.switch] += tier.switches
        if form.optic is not None:
            optics[form.optic] += 2 * tier.links
    yield from (line("switch", each.name, count, each.usd, each.w) for each, count in switches.items())
    yield from (line("optics", each.name, count, each.usd, each.w) for each, count in optics.items())


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
        usd=math.fsum(network.usd for network in networks),
        w=math.fsum(network.w for network in networks),
    )
