"""What to order otherwise than a bill lists it: modules for which there is no room, and ends that
do not reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from typing import NamedTuple

from coopt.instance.couplings import BillKind
from coopt.instance.hardware import Switch
from coopt.instance.network import Network
from coopt.instance.schema import Instance
from coopt.instance.texts import both, counted, grouped
from coopt.network.cores import core_notes
from coopt.network.family import Family, LinkEnds
from coopt.network.halls import (
    NetworkHall,
    PlacedParts,
    core_halls,
    core_reach_notes,
    network_hall,
    placed_parts,
)
from coopt.network.laying import laid
from coopt.network.optics import EndsByLevel, own_ends
from coopt.network.parts import cage_note, cost_of, counted_units, port_notes, splitting_notes
from coopt.network.plan_networks import (
    design_of,
    families_of_design,
    last_of_slot,
    part_network,
    standing_as,
)
from coopt.network.space import Space
from coopt.plan.couplings import Part
from coopt.plan.parts import Cost, Design, Fabric, Tier
from coopt.plan.schema import Plan

MOST_NAMED = 3  # parts that a note names, where it goes for some of them


class PlacedOptics(NamedTuple):
    """The hall of a network, its optics by level, and how many there are of each by name."""

    hall: NetworkHall
    optics: tuple[LinkEnds, ...]
    modules: dict[str, int]

    @classmethod
    def of(cls, hall: NetworkHall, family: Family, uplinks: int) -> PlacedOptics:
        """Those of a family."""
        units = counted_units(family, uplinks)
        modules = {name: count for (kind, name), count in units.items() if kind == "optics"}
        return cls(hall, family.optics, modules)


def plan_order_notes(
    instance: Instance, plan: Plan, parts: PlacedParts | None = None
) -> Iterator[str]:
    """What to order otherwise of all parts of a plan, and of the cores that they share; `parts`
    where they are known to stand.
    """
    if parts is None:
        parts = placed_parts(instance, plan) if instance.beyond_one_network else {}
    designs = {part.name: part.design for part in plan.parts if part.design is not None}
    yield from order_notes_of_parts(instance, designs, plan, parts)
    yield from notes_by_part(
        {
            name: core_notes(instance, coupling.core)
            for name, coupling in plan.couplings.shared_cores.items()
        }
    )
    yield from core_reach_notes(core_halls(instance, plan, parts))


def order_notes_of_parts(
    instance: Instance,
    designs: Mapping[str, Design],
    plan: Plan | None = None,
    parts: PlacedParts | None = None,
) -> Iterator[str]:
    """Which parts are to be ordered otherwise than they are listed, by the names of networks.

    Parameters
    ----------
    plan, parts
        The plan that has them and where they stand, where there is one.
    """
    joints = {} if plan is None else {part.name: plan.couplings.joint(part) for part in plan.parts}
    core_ends = {
        name: (joint.links.per_leaf, joint.below)
        for name, joint in joints.items()
        if joint is not None and joint.links.per_leaf
    }
    halls = {
        name: [PlacedOptics.of(part.hall, part.network.family, part.network.uplinks)]
        for name, part in (parts or {}).items()
        if part
    }
    halls = {
        name: halls.get(name) or [*placed_optics(instance, design)]
        for name, design in designs.items()
    }
    yield from notes_by_part(
        {
            name: order_notes(instance, design, halls[name], core_ends.get(name))
            for name, design in designs.items()
        }
    )


def notes_by_part(notes: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Notes of parts by their names: once what goes for all of them, else with those it goes
    for.
    """
    names_of = grouped(
        (note, name) for name, of_part in notes.items() for note in dict.fromkeys(of_part)
    )
    for note, names in names_of.items():
        several = f"{len(names)} of {len(notes)} parts" if len(names) > MOST_NAMED else both(names)
        yield note if len(names) == len(notes) else f"{several}: {note}"


def order_notes(
    instance: Instance,
    design: Design,
    halls: Sequence[PlacedOptics],
    to_core: tuple[int, str] | None = None,
) -> Iterator[str]:
    """What to order otherwise of one network; `to_core` are the links of a leaf into a core, and
    their module there.
    """
    if instance.network.given or standing_as(instance, design) is not None:  # nothing is ordered
        return
    yield from _reach_notes(halls)
    yield from _port_notes(instance, design)
    yield from _module_notes(instance, design, to_core)
    rate = link_gbit_s(instance, design)
    names = {name for tier in design.fabric.tier for name in tier.optics}
    modules = {name: count for hall in halls for name, count in hall.modules.items()}
    may_list = not instance.several_networks and not instance.existing
    yield from splitting_notes(
        (
            (optic, optic.links_of(rate), modules.get(optic.name))
            for optic in instance.network.optics
            if rate and optic.name in names and not instance.network.fibre
        ),
        "network.fibre" if may_list else "",
    )


def _module_notes(
    instance: Instance, design: Design, to_core: tuple[int, str] | None
) -> Iterator[str]:
    """Which switches have fewer cages than modules in the bill, and whether modules that fill a
    cage would fit.
    """
    fabric, rate = design.fabric, link_gbit_s(instance, design)
    optic_of, notes = {optic.name: optic for optic in instance.network.optics}, list[str]()
    for tier, next_tier in zip_longest(fabric.tier, fabric.tier[1:]):
        way = switch_of(instance, fabric, tier, rate)
        optics = [
            optic_of.get(name) for name in (tier.optic, *(next_tier.ends[:1] if next_tier else ()))
        ]
        # A part that the instance does not list may be anything, so nothing is said of it.
        if way is None or any(optic is None or not optic.links_of(rate) for optic in optics):
            continue
        ports_used = [
            # those of a single tier may serve several planes
            tier.down_ports if fabric.tiers > 1 else -(-tier.links // tier.switches),
            tier.uplinks_per_switch,
        ]
        ports = [
            (number, optic) for number, optic in zip(ports_used, optics, strict=False) if optic
        ]
        if to_core is not None and tier.level == 1 and to_core[1] in optic_of:
            ports.append((to_core[0], optic_of[to_core[1]]))
        note = cage_note(way, tier.level, rate, ports)
        notes += [note] if note else []
    if notes:
        yield (
            f"{' '.join(notes)} Set network.switch_cages = 'kept' to plan no more modules than"
            " cages."
        )


def _port_notes(instance: Instance, design: Design) -> Iterator[str]:
    """Which NICs have no Ethernet port as fast as the links of a network of Ethernet switches."""
    fabric, rate = design.fabric, link_gbit_s(instance, design)
    leaf = next((box for box in instance.network.switches if box.name == fabric.switch.name), None)
    nic = next((nic for nic in instance.network.nics if nic.name == fabric.nic.name), None)
    if nic is not None and leaf is not None and fabric.tiers:
        yield from port_notes(nic, leaf, rate, ("network.nic_planes", fabric.nic.planes))


def link_gbit_s(instance: Instance, design: Design) -> float:
    """The rate of a link (Gbit/s); 0 where the instance does not list the NIC."""
    name, ports = (
        design.fabric.nic.name,
        design.fabric.nic.planes * design.fabric.nic.ports_in_plane,
    )
    return next((nic.gbit_s / ports for nic in instance.network.nics if nic.name == name), 0.0)


def switch_of(instance: Instance, fabric: Fabric, tier: Tier, rate: float) -> Switch | None:
    """The switch of a tier, run with ports of the rate of links; None where the instance lists
    none.
    """
    mode = tier.switch or fabric.switch.name, rate
    return next(
        (way for way in instance.network.switch_modes if (way.name, way.port_gbit_s) == mode), None
    )


def _reach_notes(halls: Sequence[PlacedOptics]) -> Iterator[str]:
    """Which optics do not reach as far as the hall takes their cables."""
    for hall, levels, _ in halls:
        for level, (cables, ends) in enumerate(zip(hall.cables, levels, strict=True), start=1):
            optic = min(ends.products, key=lambda product: product.reach_m)
            count = sum(number for length_m, number in cables.items() if length_m > optic.reach_m)
            if count:
                yield (
                    f"The reach of {optic.name} ({optic.reach_m:g} m) is too short for"
                    f" {counted(count, 'cable')} below tier {level}. Buy optics that reach"
                    f" {max(cables):,} m there, or move racks closer together (network.hall)."
                )


def placed_optics(instance: Instance, design: Design) -> Iterator[PlacedOptics]:
    """The hall of a network that is the only one, and its optics by level."""
    if not instance.beyond_one_network:
        for family, uplinks in islice(families_of_design(instance, design), 1):
            hall = network_hall(instance, family, uplinks)
            if hall is not None:
                yield PlacedOptics.of(hall, family, uplinks)


class CostsByLength(NamedTuple):
    """What networks cost, and what they would with cables that are as long as in their halls;
    `change` is the key that plans them so.
    """

    now: tuple[Cost, ...]
    then: tuple[Cost, ...]
    change: str

    def saved(self, kind: BillKind) -> float:
        """What they would cost, or draw, less."""
        return sum(
            now.of(kind) - then.of(kind) for now, then in zip(self.now, self.then, strict=True)
        )


Networks = Iterable[tuple[Instance, Family, int]]
"""Networks with the questions that they answer, and the uplinks of a leaf."""


def networks_of_plan(instance: Instance, plan: Plan) -> Networks:
    """The networks of a plan that have switches, of those that grow what they are in the end."""
    if instance.several_networks:
        for part in plan.parts:
            if part.design is not None and last_of_slot(plan, part) is part:
                network = part_network(instance, plan, "bom", part.name)
                yield network.question, network.family, network.uplinks
    elif plan.design is not None and not instance.open_keys:
        yield from networks_of_design(instance, plan.design)


def networks_of_design(instance: Instance, design: Design) -> Networks:
    """The network of a design, where it is the only one."""
    if not instance.beyond_one_network:
        families = islice(families_of_design(instance, design), 1)
        yield from ((instance, family, uplinks) for family, uplinks in families)


def costs_by_length(instance: Instance, networks: Networks) -> CostsByLength | None:
    """What networks would cost with the cheapest cables for each length in their halls; None where
    lengths choose them already, or may not.
    """
    network = instance.network
    if (
        network.cables == "hall"
        or not (network.buildable and network.has_own_ends)
        or network.given
        or instance.asks("direct")
        or "optics" not in instance.objective.include
        or any(discount.kind == "optics" for discount in instance.sharing.discount)
    ):
        return None
    costs_now, costs_then = list[Cost](), list[Cost]()
    for question, family, uplinks in networks:
        built = _by_length(question, family, uplinks) if family.tiers else family
        if built is None:
            return None
        costs_now.append(cost_of(question, family, uplinks))
        costs_then.append(cost_of(question, built, uplinks))
    told = "link_reach_m" in network.model_fields_set
    change = f"cables = 'hall'{' in place of link_reach_m' * told}"
    return CostsByLength(tuple(costs_now), tuple(costs_then), change)


def _ends_alike(network: Network, family: Family) -> EndsByLevel:
    """The ends that the links of each level may have, with as many to a module."""
    pairs = own_ends(network, family.nic, family.nic_planes, family.switches, lambda _: ())
    return tuple(
        tuple(
            ends
            for ends in level
            if tuple(end.links_of(family.link_gbit_s) for end in ends) == of_module
        )
        for level, of_module in zip(pairs, family.per_module, strict=False)
    )


def _by_length(question: Instance, family: Family, uplinks: int) -> Family | None:
    """A network with the cheapest cables for each length in its hall; None where nobody knows the
    lengths, or one is longer than any reach.
    """
    if family.hb.racks is None:
        return None
    by_length = question.having(network={"cables": "hall"})
    choices = _ends_alike(by_length.network, family)
    if len(choices) < family.tiers:
        return None
    return laid(by_length, replace(family, choices=choices), uplinks)


def is_rewired(instance: Instance, parts: Iterable[Part]) -> bool:
    """Whether no network of a plan is the one that stands, where one does and others may be
    built.
    """
    if not instance.existing or instance.network.given:
        return False
    for part in parts:
        design = part.design
        if design is not None and design.fabric.tiers:
            stands = Space(instance=instance).standing(design.gpus)
            if stands is not None and design_of(stands, stands.uplink_choices[0]) == design:
                return False
    return True
