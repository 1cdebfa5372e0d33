"""The counts and the bill of a design, with the products it names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from coopt.instance.designs import PublishedDesign
from coopt.instance.fibre_lists import missing_fibre
from coopt.instance.hardware import Nic, Optic, Switch
from coopt.instance.network import SpareRates, WorkRates, not_counted
from coopt.instance.numerics import EQUAL
from coopt.instance.texts import InstanceError, alternatives, both, broken, counted
from coopt.network.design_halls import CableEnds, cable_ends, design_hall
from coopt.network.designs import chain_of
from coopt.network.family import TierChain, TierLevel
from coopt.network.fibres import FibreUnits, fibre_cables, splitters_of
from coopt.network.optics import unmated_joint
from coopt.network.parts import cage_note, nic_note, port_notes, splitting_notes
from coopt.network.placing import Lengths
from coopt.plan.networks import (
    BilledNetwork,
    BilledTier,
    CableLength,
    ComparedNetwork,
    DesignComparison,
    NetworksBill,
    item_counts,
)
from coopt.plan.parts import Item, ItemKind, line

KINDS: dict[ItemKind, str] = {"nic": "NICs", "switch": "switches", "optics": "optics"}
SWITCH_RACK = "rack of switches"
BESIDE = "storage, in-band and out-of-band networks"


def design_bill(design: PublishedDesign, file: str = "design") -> BilledNetwork:
    """What a design counts to and, of the products it names, what they cost and draw.

    Raises
    ------
    InstanceError
        Where the design cannot be wired, products of a link do not mate, or an optic does not reach
        where its hall takes it.
    """
    chain = chain_of(design, file)
    tiers = chain.levels
    origin = f"{file}: design {design.id!r}"
    _check_mates(design, origin)
    ends = tuple(cable_ends(design, chain, origin))
    hall = design_hall(design, chain, ends, origin)
    lengths = () if hall is None else hall.cables
    for end in ends if lengths else ():
        _check_reach(end, max(lengths[end.tier]), origin)
    uses = [(end.optic, end.optic.gbit_s / end.in_module) for end in ends if end.optic is not None]
    for text in missing_fibre(design.fibre, uses):
        raise InstanceError(f"{origin}: {text}")
    items = tuple(_items(design, tiers, ends, lengths))
    racks = None if hall is None else hall.switch_racks
    if racks and design.hall is not None and design.hall.usd_per_switch_rack is not None:
        items += (line("rack", SWITCH_RACK, racks, design.hall.usd_per_switch_rack, 0.0),)
    # shares of all that stands above them
    items += work_lines(design.work, math.fsum(item.usd for item in items))
    return BilledNetwork(
        name=design.id,
        fabric=design.fabric,
        gpus=design.gpus,
        tier=tuple(_billed_tiers(design, chain, ends, lengths or [Lengths()] * len(tiers))),
        oversubscription=float(chain.bandwidth().beyond),
        pair_share=chain.worst_pair_share(),
        switch_racks=racks,
        items=items,
        unpriced=tuple(_unpriced(design, ends)),
        notes=tuple(_notes(design, ends)),
        usd=math.fsum(item.usd for item in items),
        w=math.fsum(item.w for item in items),
    )


def _billed_tiers(
    design: PublishedDesign,
    chain: TierChain,
    ends: tuple[CableEnds, ...],
    lengths: Sequence[Lengths],
) -> Iterator[BilledTier]:
    tiers = zip(chain.levels, chain.bundles, design.tiers, lengths, strict=True)
    for number, (tier, bundle, form, cables) in enumerate(tiers, start=1):
        yield BilledTier(
            level=number,
            switches=tier.switches,
            down_ports=tier.down_ports * chain.networks_together,
            uplinks_per_switch=tier.uplinks,
            links=tier.links,
            bundle=bundle,
            switch=form.switch.name if form.switch else "",
            optic=" / ".join(_optics(ends, number - 1)),
            cables=tuple(
                CableLength(length_m=m, count=count) for m, count in sorted(cables.items())
            ),
        )


def _optics(ends: tuple[CableEnds, ...], tier: int) -> dict[str, None]:
    """The names of the modules below a tier, that of the upper end first."""
    return {
        end.optic.name: None
        for end in ends
        if end.tier == tier and end.optic is not None and not end.inside
    }


def _check_mates(design: PublishedDesign, origin: str) -> None:
    """Refuse a tier whose optics have no lanes or protocol in common with the switch or NIC that
    they are in, or these with each other.
    """
    lower: Nic | Switch | None = design.nic
    for tier, form in enumerate(design.tiers):
        below = form.optic_below or form.optic
        parts = [*unmated_joint(lower, below, form.optic, form.switch)]
        if not _meet(form.optic, below):
            parts = [part for part in (below, form.optic) if part is not None]
        if parts:
            names = ", ".join(dict.fromkeys(part.name for part in parts))
            raise InstanceError(
                f"{origin}: tiers[{tier}]: {names} do not mate, as {_differences(parts)}; needs"
                " products with the same protocol, lane_gbit_s and fibre, or a tier that names no"
                " products"
            )
        lower = form.switch


def _differences(parts: list[Nic | Optic | Switch]) -> str:
    """What parts say that differs, in words: `lane_gbit_s is 100 (cx7-400g) and 200 (144x800g)`."""
    differing = []
    for key in ("protocol", "lane_gbit_s", "fibre"):
        # what says nothing of a key mates with anything
        values = {part.name: getattr(part, key, None) for part in parts}
        known_values = {
            name: value if isinstance(value, tuple) else (value,)
            for name, value in values.items()
            if value
        }
        if known_values and not set.intersection(*map(set, known_values.values())):
            by_value = groupby(
                sorted(known_values, key=known_values.__getitem__), key=known_values.__getitem__
            )
            phrases = (
                f"{alternatives(v if isinstance(v, str) else f'{v:g}' for v in value)}"
                f" ({', '.join(names)})"
                for value, names in by_value
            )
            differing.append(f"{key} is {both(phrases)}")
    return ", ".join(differing)


def _meet(upper_optic: Optic | None, lower_optic: Optic | None) -> bool:
    """Whether the optics of a cable are for the same fibres, as far as they say."""
    fibres = {
        optic.fibre
        for optic in (upper_optic, lower_optic)
        if optic is not None and optic.fibre is not None
    }
    return len(fibres) < 2


def _check_reach(end: CableEnds, longest_m: int, origin: str) -> None:
    optic = end.optic
    if optic is not None and not end.inside and optic.reach_m < longest_m:
        raise InstanceError(
            f"{origin}: tiers[{end.tier}].{end.key} = {optic.name!r}: reaches {optic.reach_m:g} m,"
            f" but the hall has cables of {longest_m:,} m below tier {end.tier + 1}, needs an optic"
            " of that reach or racks closer together"
        )


def _items(
    design: PublishedDesign,
    tiers: tuple[TierLevel, ...],
    ends: tuple[CableEnds, ...],
    lengths: Sequence[Lengths],
) -> Iterator[Item]:
    """One NIC for each GPU, switches, modules of cables and fibre; products of several tiers on one
    line, then spares.
    """
    counts = Counter[tuple[ItemKind, Nic | Switch | Optic]]()
    if design.nic is not None:
        counts["nic", design.nic] = design.gpus * design.nics_per_gpu
    for tier, form in zip(tiers, design.tiers, strict=True):
        if form.switch is not None:
            counts["switch", form.switch] += tier.switches
    for end in ends:
        if end.optic is not None and end.modules:
            counts["optics", end.optic] += end.modules
    order = sorted(counts.items(), key=lambda pair: list(KINDS).index(pair[0][0]))
    lines = [
        line(kind, product.name, count, product.usd, product.w) for (kind, product), count in order
    ]
    fibre = [one.line for one in _fibre(design, ends, lengths)]
    lines += [item for item in lines_by_product(fibre) if item.count]
    yield from lines
    yield from spare_lines(design.spares, lines, cables_of(design))


def _fibre(
    design: PublishedDesign, ends: tuple[CableEnds, ...], lengths: Sequence[Lengths]
) -> Iterator[FibreUnits]:
    """Fibre of the cables below each tier, and what splits the connectors of their modules."""
    for end in ends if design.fibre else ():
        if end.optic is None:
            continue
        rate = end.optic.gbit_s / end.in_module
        yield from splitters_of(design.fibre, end.optic, rate, end.modules)
        if not end.is_upper:
            for length_m, links in sorted(lengths[end.tier].items()):
                yield from fibre_cables(design.fibre, end.optic, rate, links, length_m)


def cables_of(design: PublishedDesign) -> list[str]:
    """The optics of a design that come as cables with both of their ends."""
    return [optic.name for optic in design.optics if optic.whole_cable]


def spare_lines(
    rates: SpareRates, items: Iterable[Item], cables: Collection[str]
) -> Iterator[Item]:
    """What is bought beside the lines of what is in use, and draws nothing; whole cables, of which
    lines count ends.
    """
    for item in items:
        ends_each = 2 if item.kind == "optics" and item.name in cables else 1
        # 2% of 50 is 1, to the last bit
        spare = ends_each * math.ceil(item.count * rates.of(item.kind) / ends_each - 1e-9)
        if spare:
            spare_item = line(
                item.kind, item.name, spare, item.unit_usd, 0.0, idle=item.idle, spare=True
            )
            yield spare_item if item.year is None else spare_item.bought_in(item.year)


def work_lines(rates: WorkRates, capex_usd: float) -> tuple[Item, ...]:
    """Labour and support of a purchase."""
    return tuple(line("labour", name, 1, usd, 0.0) for name, usd in rates.due(capex_usd))


def _unpriced(design: PublishedDesign, ends: tuple[CableEnds, ...]) -> Iterator[str]:
    """What has no product and so no price."""
    bare: dict[ItemKind, list[int]] = {
        "switch": [number for number, tier in enumerate(design.tiers, 1) if tier.switch is None],
        "optics": sorted({end.tier + 1 for end in ends if end.optic is None and not end.inside}),
    }
    return broken(
        (design.nic is None, KINDS["nic"]),
        *(
            (tiers, f"{KINDS[kind]} of tier{'s' * (len(tiers) > 1)} {both(map(str, tiers))}")
            for kind, tiers in bare.items()
        ),
    )


def _notes(design: PublishedDesign, ends: tuple[CableEnds, ...]) -> Iterator[str]:
    """Which modules to order otherwise, as switches have no cages for those of the bill, and what
    splits fibres.
    """
    for number, form in enumerate(design.tiers):
        tier_ends = [end for end in ends if end.at == number]
        ports = [
            (end.most_ends, end.optic)
            for end in tier_ends
            if end.optic is not None and not end.inside
        ]
        rates = {end.optic.gbit_s / end.in_module for end in tier_ends if end.optic is not None}
        # nothing can be said where an end has no product, or links of several rates meet in a
        # switch
        if form.switch is None or len(ports) < len(tier_ends) or len(rates) != 1:
            continue
        note = cage_note(form.switch, number + 1, rates.pop(), ports, f"tiers[{number}].down")
        if note is not None:
            yield note
    for end in ends:
        if end.at < 0 and end.optic is not None and not end.inside and design.nic is not None:
            note = nic_note(design.nic.name, end.most_ends, end.optic, end.in_module)
            if note is not None:
                yield note
    nic, leaf, rate = design.nic, design.tiers[0].switch, design.nic_gbit_s
    if nic is not None and leaf is not None and rate is not None:
        yield from port_notes(nic, leaf, rate, ("nic_ports", design.nic_ports))
    modules = Counter[tuple[Optic, int]]()
    for end in ends:
        if end.optic is not None:
            modules[end.optic, end.in_module] += end.modules
    if not design.fibre:
        keys = "fibre" if design.hall else "fibre and hall"
        yield from splitting_notes(((*module, count) for module, count in modules.items()), keys)


def designs_bill(name: str, designs: Iterable[PublishedDesign], file: str) -> NetworksBill:
    """The bills of several designs, and all of them together."""
    designs = tuple(designs)
    networks = tuple(design_bill(design, file) for design in designs)
    has_several = len(designs) > 1
    items = lines_by_product(item for network in networks for item in network.items)
    racked = [any(item.kind == "rack" for item in network.items) for network in networks]
    racks = "racks" if not all(racked) else "racks of servers"
    if any(racked) and not all(racked):
        racks = "racks that have no line in these bills"
    return NetworksBill(
        name=name,
        networks=networks,
        items=items,
        not_counted=(
            "servers and GPUs",
            f"{racks}, power distribution and cooling",
            not_counted((design.work for design in designs), (design.spares for design in designs)),
            f"{BESIDE} that the file does not describe",
        ),
        whole_cables=tuple(
            dict.fromkeys(cable for design in designs for cable in cables_of(design))
        ),
        notes=tuple(
            f"{billed.name}: {note}" if has_several else note
            for billed in networks
            for note in billed.notes
        ),
        usd=math.fsum(network.usd for network in networks),
        w=math.fsum(network.w for network in networks),
    )


def compared(network: BilledNetwork, design: BilledNetwork) -> DesignComparison:
    """A design beside a network of a plan, at the prices of what both bills have in full."""
    priced_kinds = {kind for kind in KINDS if any(item.kind == kind for item in network.items)}
    named_kinds = {
        kind
        for kind, noun in KINDS.items()
        if not any(text.startswith(noun) for text in design.unpriced)
    }
    kinds = tuple(kind for kind in KINDS if kind in priced_kinds & named_kinds)
    network_side, design_side = _side(network, kinds), _side(design, kinds)
    return DesignComparison(
        network=network_side,
        design=design_side,
        kinds=kinds,
        more_usd=(
            None
            if network_side.usd is None or design_side.usd is None
            else design_side.usd - network_side.usd
        ),
        more=_excess_share(network_side.usd, design_side.usd),
        more_per_end_point=_excess_share(
            network_side.usd_per_end_point, design_side.usd_per_end_point
        ),
        notes=(
            *_other_ends(network_side, design_side),
            *_left_out(design, priced_kinds, named_kinds),
            *design.notes,
        ),
    )


def _side(network: BilledNetwork, kinds: tuple[ItemKind, ...]) -> ComparedNetwork:
    lines = [item for item in network.items if item.kind in kinds and not item.spare]
    usd = math.fsum(item.usd for item in lines) if kinds else None
    return ComparedNetwork(
        name=network.name,
        fabric=network.fabric,
        gpus=network.gpus,
        end_points=network.end_points,
        switches=tuple(tier.switches for tier in network.tier),
        links=sum(tier.links for tier in network.tier),
        oversubscription=network.oversubscription,
        pair_share=network.pair_share,
        usd=usd,
        w=math.fsum(item.w for item in lines) if kinds else None,
        usd_per_end_point=None if usd is None else usd / network.end_points,
    )


def _excess_share(own_usd: float | None, other_usd: float | None) -> float | None:
    """What one costs more than the other, as a share of that."""
    return None if not own_usd or other_usd is None else other_usd / own_usd - 1


def _other_ends(network: ComparedNetwork, design: ComparedNetwork) -> Iterator[str]:
    """That two networks join different numbers of end points, and what each of them costs."""
    if network.end_points == design.end_points:
        return
    joins = (
        f"the design joins {counted(design.end_points, 'end point')} and the plan's network"
        f" {network.end_points:,}"
    )
    design_usd, network_usd = design.usd_per_end_point, network.usd_per_end_point
    share = _excess_share(network_usd, design_usd)
    if share is None:
        yield f"{joins}."
    else:
        change = (
            f"the design costs {100 * abs(share):.3g}% {'more' if share > 0 else 'less'}"
            if abs(share) >= EQUAL
            else "the same"
        )
        yield (
            f"{joins}; per end point the design costs ${design_usd:,.2f} and the plan's network"
            f" ${network_usd:,.2f}: {change}."
        )


def _left_out(
    design: BilledNetwork, priced_kinds: Collection[ItemKind], named_kinds: Collection[ItemKind]
) -> Iterator[str]:
    """Which kinds of lines no sum has, as one of the bills lacks them."""
    if not any(item.kind in KINDS for item in design.items):
        yield "the design names no products, so its network has no price."
        return
    if design.unpriced:
        kinds = both(noun for kind, noun in KINDS.items() if kind not in named_kinds)
        yield f"{both(design.unpriced)} have no price; both sums leave out {kinds}."
    absent = [
        noun for kind, noun in KINDS.items() if kind in named_kinds and kind not in priced_kinds
    ]
    if absent:
        yield f"the bill of the plan leaves out {both(absent)}, so both sums do as well."


def lines_by_product(items: Iterable[Item]) -> tuple[Item, ...]:
    """Lines of one product at one price as one line; labour and support are paid once for each
    network.
    """
    return tuple(unit.of(count) for unit, count in item_counts(items).items())
