"""Published designs counted again, and beside each the cheapest network of the same end points and
bandwidth.

Which networks those are stands in docs/designs.md. All of them are gone through, so that the
cheapest is proven.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product, zip_longest
from operator import le
from pathlib import Path
from typing import NamedTuple

from coopt.instance import texts
from coopt.instance.catalog import find
from coopt.instance.designs import PublishedDesign, read_designs
from coopt.instance.hardware import HbDomain, Nic, Optic, Switch
from coopt.instance.schema import Network, SwitchedKind
from coopt.instance.texts import InstanceError
from coopt.network.design_bills import design_bill
from coopt.network.designs import chain_of, tier_ports
from coopt.network.family import Family, LinkEnds, TierChain
from coopt.network.space import Parts
from coopt.plan.networks import CheapestNetwork, Counts, ReproducedRow, Reproduction


def reproduce(path: str | Path, *, cheapest: bool = False) -> Reproduction:
    """Count published designs again, by the rules of docs/designs.md.

    A design that cannot be wired is a row like the others, with the refusal as its `why`.

    Parameters
    ----------
    path
        A TOML file of designs with what their sources count.
    cheapest
        Whether to find, for each design that comes out, the cheapest network with its end points
        and its bandwidth.

    Raises
    ------
    InstanceError
        With every complaint about the form of the file: file, design, key, value given, what is
        needed.

    Examples
    --------
    >>> import coopt
    >>> found = coopt.reproduce("instances/designs/published.toml")
    >>> found.exact == found.of
    True
    >>> found.rows[0].counted.switches
    (1024, 512)
    """
    designs, file = read_designs(path), Path(path).name
    uncounted = [design.id for design in designs if design.published is None]
    if uncounted:
        raise InstanceError(
            f"{file}: design {name!r}: published is missing, needs the counts of its source"
            for name in uncounted
        )
    rows = tuple(_row(design, file) for design in designs)
    if cheapest:
        rows = tuple(map(_compared, rows, designs))
    return Reproduction(rows=rows, exact=sum(row.ok for row in rows), of=len(rows))


def _compared(row: ReproducedRow, design: PublishedDesign) -> ReproducedRow:
    if row.counted is None:
        return row
    reason = _not_compared(design)
    if reason:
        return row.model_copy(update={"cheapest": CheapestNetwork(why=reason)})
    usd = _usd(row.counted, [tier.ports for tier in design.tiers])
    rival_network = min(_rivals(design), key=lambda rival: rival.usd, default=None)
    answer = CheapestNetwork(published_usd=usd, usd=usd, why="")
    if rival_network is not None and rival_network.usd < usd:
        counts = _counts(rival_network.family.chain(rival_network.uplinks))
        reason = (
            f"the cheapest network is {_words(rival_network.family, rival_network.uplinks)}, with"
            f" {_saved(row.counted, counts)}{_fixed_keys(design)}"
        )
        answer = CheapestNetwork(
            published_usd=usd, usd=rival_network.usd, counted=counts, why=reason
        )
    return row.model_copy(update={"cheapest": answer})


def _words(family: Family, uplinks: int) -> str:
    """A network in words."""
    if family.tiers < 2:
        rails = "separate rails on " if family.fabric == "rail-only" else ""
        return f"{rails}one tier of {family.switch.radix}-port switches"
    boxes = (
        f", switches with {', then '.join(str(box.radix) for box in family.switches)} ports"
        if family.upper
        else ""
    )
    return f"{family.fabric}, {family.down} end points and {uplinks} uplinks a leaf{boxes}"


def _saved(source_counts: Counts, ours: Counts) -> str:
    """What a network has less than another, in words; both have links."""
    assert source_counts.links is not None
    assert ours.links is not None
    savings = {
        "tier": len(source_counts.switches) - len(ours.switches),
        "switch": sum(source_counts.switches) - sum(ours.switches),
        "cable": sum(source_counts.links) - sum(ours.links),
    }
    plural = {"tier": "tiers", "switch": "switches", "cable": "cables"}
    words = [
        f"{abs(count):,} {'fewer' if count > 0 else 'more'}"
        f" {noun if abs(count) == 1 else plural[noun]}"
        for noun, count in savings.items()
        if count
    ]
    return ", ".join(words) or "switches with fewer ports"


def _fixed_keys(design: PublishedDesign) -> str:
    """What the design fixes beside its products and its fabric, which the cheapest network need not
    keep.
    """
    keys = [
        key
        for key in ("rails", "unit_domains", "leaf_domains", "pod")
        if getattr(design, key) is not None
    ]
    keys += [
        f"tiers[{n}].{key}"
        for n, tier in enumerate(design.tiers)
        for key in ("down", "up")
        if getattr(tier, key)
    ]
    return f"; it need not keep the published {', '.join(keys)}" if keys else ""


def _not_compared(design: PublishedDesign) -> str:
    """Why a design has no rival here; empty where it has."""
    tiers = tier_ports(design, design.id)
    if any(tier.down_split > 1 or tier.up_split > 1 or tier.ratio != 1 for tier in tiers):
        return (
            "not compared: its switch ports are split, or its cables have several rates, and"
            " coopt compares networks whose cables all run at the rate of a port"
        )
    return (
        "not compared: its last tier reserves uplinks for a further tier"
        if design.tiers[-1].up
        else ""
    )


class PricedNetwork(NamedTuple):
    """A network with its uplinks and price (USD)."""

    usd: float
    family: Family
    uplinks: int


def _rivals(design: PublishedDesign) -> Iterator[PricedNetwork]:
    """Every network of the space that joins the same end points with no less bandwidth, whatever
    its fabric.

    Where rails are apart, so they may be here; end points of one rail are joined in any case, and
    all others as well where the design joins them. What makes a rail may be a GPU of a domain, or
    what the design says.
    """
    needs, gpus = chain_of(design).bandwidth(), design.gpus_per_domain
    rails = gpus if design.fabric == "clos" else min(design.leaf_rails, gpus)
    fabrics: list[tuple[SwitchedKind, int]] = (
        [("rail-only", rails)] if design.fabric == "rail-only" else []
    )
    fabrics += product(("rail-optimized", "clos"), dict.fromkeys((rails, gpus)))
    stacks = product(dict.fromkeys(tier.ports for tier in design.tiers), repeat=3)
    for (fabric, size), stack in product(fabrics, stacks):
        if size == design.gpus:
            continue  # one domain needs no network
        if size == 1 and fabric == "rail-optimized":
            continue  # one rail: the clos
        parts = _parts(design, fabric, size, stack)
        network = _network(design, parts, max(needs))
        for wiring in parts.wirings(network):
            ends = tuple(LinkEnds(optic, optic) for optic in network.optics)
            family = parts.family(network, wiring, ends * wiring.tiers)
            for u in wiring.uplink_choices:
                chain = family.chain(u)
                if all(map(le, chain.bandwidth(), needs)):
                    radices = [box.radix for box in family.switches]
                    yield PricedNetwork(_usd(_counts(chain), radices), family, u)


def _parts(
    design: PublishedDesign, fabric: SwitchedKind, size: int, stack: tuple[int, ...]
) -> Parts:
    """Domains of so many GPUs, NICs with a port on each plane, and switches with so many ports on
    each tier.
    """
    leaf, *upper_switches = (
        Switch(name=f"{ports} ports", radix=ports, port_gbit_s=NIC_PORT_GBIT_S, usd=0.0, w=0.0)
        for ports in stack
    )
    return Parts(
        gpus=design.gpus,
        hb=HbDomain(name="domain", size=size, gbyte_s=1.0, usd_per_gpu=0.0, w_per_gpu=0.0),
        domains=-(-design.gpus // size),
        fabric=fabric,
        nic=Nic(
            name="nic",
            gbit_s=NIC_PORT_GBIT_S * design.planes,
            ports=(design.planes,),
            cages=design.planes,
            usd=0.0,
            w=0.0,
        ),
        nics_per_gpu=design.nic_ports // design.planes,
        nic_planes=design.planes,
        switch=leaf,
        upper=tuple(upper_switches),
    )


NIC_PORT_GBIT_S = 400.0
"""All cables have one rate, whatever it is."""


def _network(design: PublishedDesign, parts: Parts, ratio: Fraction) -> Network:
    """The space of networks of these parts up to a ratio."""
    return Network(
        hb_domains=(parts.hb,),
        fabrics=(parts.fabric,),
        nics=(parts.nic,),
        nic_planes=(parts.nic_planes,),
        switches=tuple(dict.fromkeys(parts.switches)),
        buildable=False,
        tier_switches="any",
        optics=(Optic(name="optic", gbit_s=NIC_PORT_GBIT_S, reach_m=1e6, usd=0.0, w=0.0),),
        # the space compares ratios as floats, chains as fractions: a hair more loses none
        # that is as wide
        oversubscription=math.nextafter(float(ratio), math.inf) if ratio > 1 else 1.0,
        bundles=design.bundles,
        leaf_fill="any",
    )


def _counts(chain: TierChain) -> Counts:
    tiers = chain.levels
    return Counts(
        switches=tuple(tier.switches for tier in tiers), links=tuple(tier.links for tier in tiers)
    )


def _usd(counts: Counts, ports: Iterable[int]) -> float:
    """Switches by their ports and two ends for each cable, at the prices of the Rail-only study
    (USD).
    """
    switch, end = find("switch", "64x400g"), find("optic", "400g-199")
    assert isinstance(switch, Switch)
    assert isinstance(end, Optic)
    assert counts.links is not None
    total_ports = sum(
        switches * radix for switches, radix in zip(counts.switches, ports, strict=True)
    )
    return total_ports * switch.usd / switch.radix + 2 * sum(counts.links) * end.usd


def _row(design: PublishedDesign, file: str) -> ReproducedRow:
    assert design.published is not None, "refused above"
    published = Counts(**design.published.model_dump())
    try:
        ours, bill = _counts(chain_of(design, file)), design_bill(design, file)
    except InstanceError as error:
        return ReproducedRow(
            id=design.id,
            source=design.source,
            published=published,
            counted=None,
            ok=False,
            why=str(error),
        )
    differences = [*_differences("switch", ours.switches, published.switches)]
    if published.links is not None:
        differences += _differences("link", ours.links or (), published.links)
    if published.optics is not None:
        counts = {
            item.name: item.count for item in bill.items if item.kind == "optics" and not item.spare
        }
        ours = ours.model_copy(
            update={"optics": {name: counts.get(name, 0) for name in published.optics | counts}}
        )
        differences += _other_optics(counts, published.optics)
    return ReproducedRow(
        id=design.id,
        source=design.source,
        published=published,
        counted=ours,
        ok=not differences,
        why=f"{'; '.join(differences)}." if differences else "",
    )


def _other_optics(ours: dict[str, int], source_counts: dict[str, int]) -> Iterator[str]:
    """Products of which others are counted, in words."""
    for name in dict.fromkeys((*source_counts, *ours)):
        count, published = ours.get(name, 0), source_counts.get(name, 0)
        if count != published:
            yield (
                f"{texts.counted(count, 'module')} of {name} as counted and {published:,} as"
                " published"
            )


def _differences(noun: str, ours: tuple[int, ...], source_counts: tuple[int, ...]) -> Iterator[str]:
    """Tiers that are off, in words; a tier that one of both lacks has none."""
    for tier, (count, rival_count) in enumerate(
        zip_longest(ours, source_counts, fillvalue=0), start=1
    ):
        if count != rival_count:
            count_text = texts.counted(count, noun) if count else f"no {noun}"
            published = f"{rival_count:,}" if rival_count else "none"
            yield f"tier {tier} has {count_text} as counted, but {published} as published"
