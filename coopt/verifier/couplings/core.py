"""Where islands meet a core they share: links, their optics, and the NICs of islands that have no
switch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from coopt.instance.couplings import Core as CoreQuestion
from coopt.instance.hardware import Nic, Optic, Switch
from coopt.instance.network import Network
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.texts import alternatives, counted, exact
from coopt.plan.couplings import CorePlan
from coopt.plan.parts import Design, TierCables
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import Ledger, UnsoundError
from coopt.verifier.parts.bills import CountedItem
from coopt.verifier.parts.cable_lengths import bay_of
from coopt.verifier.parts.fibres import Bought, fibre_between
from coopt.verifier.parts.halls import CoreEnds, named_core_cables, stages_before
from coopt.verifier.parts.layouts import ceil_ratio
from coopt.verifier.parts.optics import (
    interface,
    optics_of,
    single_modules,
)
from coopt.verifier.parts.part_checks import CountedPart
from coopt.verifier.parts.space import (
    DesignFamily,
    OpticPair,
    core_links_carried,
    core_switch,
    linkable,
    links_carried,
)
from coopt.verifier.parts.stages import GrowthStage, LaidCables


class Joint(NamedTuple):
    """The links of an island into a core: `per_leaf` from each leaf of every plane, or from NICs of
    product `nic` where there is no leaf. Modules carry so many of them at their lower and upper
    ends, each those of one switch, with `fibre` in between. Where lengths choose cables, `kinds`
    has those of each, and the ends are those of the longest.
    """

    links: int
    per_leaf: int
    ends: OpticPair
    nic: Nic | None
    carried: tuple[int, int]
    fibre: tuple[Bought, ...] = ()
    kinds: tuple[LaidCables, ...] = ()

    @property
    def modules(self) -> list[tuple[Optic, int]]:
        """Modules at their lower ends, whole for each leaf, and at their upper ends, whole for the
        island.
        """
        if self.kinds:
            below = [(of.ends.below, of.below) for of in self.kinds]
            return below + [(of.ends.above, of.above) for of in self.kinds]
        lower_links, upper_links = self.carried
        lower_modules = self.links
        # Each leaf fills modules of its own: those of two leaves never share one.
        if self.per_leaf:
            lower_modules = self.links // self.per_leaf * ceil_ratio(self.per_leaf, lower_links)
        return [
            (self.ends.below, lower_modules),
            (self.ends.above, ceil_ratio(self.links, upper_links)),
        ]

    @property
    def core_ports(self) -> int:
        """Ports of the core that whole modules take."""
        return ceil_ratio(self.links, self.carried[1]) * self.carried[1]

    @property
    def nics(self) -> int:
        """NICs that they start at: each has as many of them as it takes modules, as one carries one
        link.
        """
        return 0 if self.nic is None else ceil_ratio(self.links, self.nic.cages)

    def lines(self) -> list[CountedItem]:
        """What they add to the bill of an island."""
        nic = self.nic
        nics = [] if nic is None else [CountedItem("nic", nic.name, self.nics, nic.usd, nic.w)]
        return [
            *nics,
            *(
                CountedItem("optics", optic.name, count, optic.usd, optic.w)
                for optic, count in self.modules
            ),
            *(CountedItem("fibre", *bought, 0.0) for bought in self.fibre),
        ]


def joint_of(question: Instance, kind: ObjectiveKind, stage: GrowthStage, nic: Nic) -> Joint | None:
    """The links of a network into the core of its site; None where there are no cores."""
    switch, network = core_switch(question), question.network
    if switch is None:
        return None
    links_of_leaf, nic_of_links = (
        (0, nic) if stage.family.attachment is None else (stage.to_core, None)
    )
    optic, carried = core_optic(question, kind), core_links_carried(question)
    ends = OpticPair(stage.core_end or optic, optic)
    of_modules = stage.family.core_module, carried
    joint = Joint(stage.core_links, links_of_leaf, ends, nic_of_links, of_modules)
    if stage.into_core:
        fibre = tuple(bought for of in stage.into_core for bought in of.fibre)
        longest = stage.into_core[-1].ends
        return joint._replace(ends=longest, fibre=fibre, kinds=stage.into_core)
    (_, below), (_, above) = joint.modules
    fibre = fibre_between(
        network.fibre,
        Fraction(switch.port_gbit_s),
        ends,
        of_modules,
        (below, above),
        joint.links,
        math.ceil(network.link_reach_m[-1]),
    )
    return joint._replace(fibre=fibre)


JointsByPlace = Mapping[tuple[float | None, str | None], Mapping[str, Joint]]
"""How islands join a core, by their names, for the year and the site of each; None where there is
one of all.
"""


def core_optic(instance: Instance, kind: ObjectiveKind) -> Optic:
    """The optic of links into the core, at their upper ends: the one it names, else the one that
    adds least to the objective.
    """
    core_names = _core_of(instance).optics
    named_optics = [optic for optic in instance.network.optics if optic.name in core_names]
    return (named_optics or _core_modules(instance, kind, all_allowed=False))[0]


def questions_by_core_optic(instance: Instance, kind: ObjectiveKind) -> Iterator[Instance]:
    """The instance once with each optic that links into its core may have; the instance itself
    without a core.
    """
    if core_switch(instance) is not None and instance.network.cables == "hall":
        yield from _questions_by_links(instance)
    elif core_switch(instance) is None or _core_of(instance).optic is not None:
        yield instance
    else:
        for optic in _core_modules(instance, kind, all_allowed=False):
            yield with_core_optic(instance, optic.name)


def _questions_by_links(instance: Instance) -> Iterator[Instance]:
    """The instance once for each number of links that modules of its core may carry, with all that
    carry so many: lengths choose among them.
    """
    names = _core_of(instance).optics
    listed = [one for one in instance.network.optics if not names or one.name in names]
    fitting = [one for one in listed if _fits_core(instance, one)]
    for count in sorted({_carried_in_core(instance, one) for one in fitting}):
        alike = (one.name for one in fitting if _carried_in_core(instance, one) == count)
        yield with_core_optic(instance, tuple(alike))


def _carried_in_core(instance: Instance, optic: Optic) -> int:
    """Links that a module carries in the core."""
    return core_links_carried(with_core_optic(instance, optic.name))


def _fits_core(instance: Instance, optic: Optic) -> bool:
    """Whether a module fits the core's switch, which has a place for one at least of each
    island.
    """
    box, carried = (
        core_switch(with_core_optic(instance, optic.name)),
        _carried_in_core(instance, optic),
    )
    if box is None or not carried or (instance.network.mates and not linkable(optic, box)):
        return False
    listed = next(one for one in instance.network.switches if one.name == box.name)
    # A module of one link goes into any port; others need cages that whole modules fill.
    in_cage = carried == 1 or (listed.radix % carried == 0 and optic.gbit_s <= listed.cage_gbit_s)
    return in_cage and box.radix // carried >= len(instance.workload)


def with_core_optic(instance: Instance, name: str | tuple[str, ...]) -> Instance:
    """The instance whose core names that optic, or several."""
    core = _core_of(instance).model_copy(update={"optic": name})
    return instance.model_copy(
        update={"sharing": instance.sharing.model_copy(update={"core": core})}
    )


def question_as_built(instance: Instance, kind: ObjectiveKind, plan: Plan) -> Instance:
    """The instance whose core has the optic of the plan, where it may have that."""
    cores = [shared_core.core for shared_core in plan.couplings.cores]
    if cores and core_switch(instance) is not None and instance.network.cables == "hall":
        every = _questions_by_links(instance)
        return next((one for one in every if cores[0].optic in _core_of(one).optics), instance)
    # All cores have one optic, which is why the first tells it; `check_cores` refuses one that is
    # not allowed.
    if (
        not cores
        or core_switch(instance) is None
        or cores[0].optic not in optics_of_core(instance, kind)
    ):
        return instance
    return with_core_optic(instance, cores[0].optic)


def optics_of_core(instance: Instance, kind: ObjectiveKind) -> tuple[str, ...]:
    """Names of the optics that links into the core may have."""
    if names := _core_of(instance).optics:
        return names
    return tuple(optic.name for optic in _core_modules(instance, kind, all_allowed=True))


def _core_modules(instance: Instance, kind: ObjectiveKind, *, all_allowed: bool) -> list[Optic]:
    """What may be at the upper ends of links into the core, or what to go through.

    Where ends have their own, modules that a switch of the core has places for, one at least for
    each island.
    """
    if instance.network.link_ends == "same":
        box = core_switch(instance)
        assert box is not None
        # what links into the core start at: ports of one rate
        end = core_nics(instance)[0].model_copy(update={"gbit_s": box.port_gbit_s})
        farthest = len(instance.network.link_reach_m)
        optics = optics_of(instance, kind, end, farthest, all_allowed=all_allowed)
        return [optic for optic in optics if not instance.network.mates or linkable(optic, box)]

    def purpose(optic: Optic) -> tuple[object, ...]:
        # Modules that carry as many links over the same fibre serve one another's place.
        return _carried_in_core(instance, optic), interface(optic)

    reach_m = instance.network.needed_reach_m[-1]
    reaching = [optic for optic in instance.network.optics if optic.reach_m >= reach_m]
    fitting = [optic for optic in reaching if _fits_core(instance, optic)]
    return single_modules(instance, kind, fitting, purpose, all_allowed=all_allowed)


def families_joined(
    instance: Instance, kind: ObjectiveKind, family: DesignFamily, *, all_allowed: bool = False
) -> Iterator[tuple[Optic | None, DesignFamily]]:
    """A family with each module that may be at the lower ends of its links into a core, or that is
    to be gone through; None where both ends have one product.
    """
    network, core = instance.network, core_switch(instance)
    if core is None or network.link_ends == "same":
        yield None, family
        return
    by_length = network.cables == "hall"
    upper_optics = [one for one in network.optics if one.name in _core_of(instance).optics]
    upper_optics = upper_optics if by_length else [core_optic(instance, kind)]
    leaf = family.attachment.switch if family.attachment else None

    def carried(optic: Optic) -> int:
        return links_carried(optic.gbit_s, optic.breakout, core.port_gbit_s)

    def fits(optic: Optic) -> bool:
        if (
            not carried(optic)
            or optic.reach_m < network.needed_reach_m[-1]
            or not any(interface(optic) == interface(upper) for upper in upper_optics)
            or (network.mates and leaf is not None and not linkable(optic, leaf))
        ):
            return False
        in_cage = (
            leaf is not None
            and leaf.radix % carried(optic) == 0
            and optic.gbit_s <= leaf.cage_gbit_s
        )
        return carried(optic) == 1 or in_cage

    fitting = [optic for optic in network.optics if fits(optic)]
    if by_length:
        for optic in fitting:
            if all_allowed or not any(
                carried(other) == carried(optic) for other in fitting[: fitting.index(optic)]
            ):
                yield optic, family._replace(core_module=carried(optic))
        return
    for end in single_modules(instance, kind, fitting, carried, all_allowed=all_allowed):
        yield end, family._replace(core_module=carried(end))


def core_pairs(instance: Instance, family: DesignFamily, end: Optic) -> list[OpticPair]:
    """The ends that links into the core may have where lengths choose them, as many links to a
    module as with the one below.
    """
    core = core_switch(instance)
    assert core is not None, "what leads into a core has one"
    rate, names = core.port_gbit_s, _core_of(instance).optics
    upper = [one for one in instance.network.optics if one.name in names]
    lower = [
        one
        for one, _ in families_joined(instance, "capex", family, all_allowed=True)
        if one is not None
        and links_carried(one.gbit_s, one.breakout, rate)
        == links_carried(end.gbit_s, end.breakout, rate)
    ]
    return [
        OpticPair(below, above)
        for below, above in product(lower, upper)
        if interface(below) == interface(above)
    ]


def core_ends(
    instance: Instance, family: DesignFamily, end: Optic | None, workload: str
) -> CoreEnds | None:
    """What links into the core may have at their ends where lengths choose them; None where they
    do not, or there is no core.
    """
    if end is None or instance.network.cables != "hall":
        return None
    return CoreEnds(end, core_pairs(instance, family, end), bay_of(instance, workload))


def check_core_end(
    ledger: Ledger, instance: Instance, kind: ObjectiveKind, family: DesignFamily, name: str | None
) -> tuple[Optic | None, DesignFamily]:
    """Check what a plan has at the lower ends of an island's links into a core; it and the family
    with it.
    """
    offered = list(families_joined(instance, kind, family, all_allowed=True))
    if [end for end, _ in offered] == [None]:
        return offered[0]
    names = tuple(end.name for end, _ in offered if end is not None)
    ledger.require(
        "core-optic",
        name in names,
        name or "none",
        names,
        f"Links into the core may have {alternatives(names) or 'no listed optic'} at their lower"
        f" ends, but the plan has {name or 'none'}.",
    )
    return next((end, cored) for end, cored in offered if end is not None and end.name == name)


class ClaimedEnd(NamedTuple):
    """What a plan has at the lower ends of links into a core, and the kinds of cables by length."""

    name: str | None
    cables: tuple[TierCables, ...]


def core_end_of(plan: Plan, island: str) -> ClaimedEnd:
    """What the plan has at the ends of links of an island into a core, from the last phase on."""
    cores = [shared_core.core for shared_core in plan.couplings.cores]
    ends = [
        ClaimedEnd(core.below(claim), claim.cables)
        for core in cores
        for claim in core.islands
        if claim.workload == island
    ]
    return ends[-1] if ends else ClaimedEnd(None, ())


def joined_part(
    ledger: Ledger,
    part: CountedPart,
    joins: CoreEnds | None,
    question: Instance,
    kind: ObjectiveKind,
    claim: ClaimedEnd,
    earlier: Sequence[int] = (),
) -> CountedPart:
    """A part with its cables into the core, where lengths choose them, in each stage."""
    if joins is None:
        return part
    stage = part.stage((part.ports.up,), joins.end).by_tier
    line = [*stages_before(question, stage, earlier), stage]
    laid = named_core_cables(question, line, joins.bay, joins.pairs, claim.cables)
    ledger.require(
        "core-links",
        laid is not None,
        "no cables",
        "cables that reach",
        "No optics of the instance reach as far as the links into the core in the hall.",
    )
    assert laid is not None
    by_gpus = {one.family.gpus: of for one, of in zip(line, laid, strict=True)}
    return part._replace(into_core=by_gpus)


def _core_of(instance: Instance) -> CoreQuestion:
    assert instance.sharing.core is not None
    return instance.sharing.core


def core_nics(instance: Instance) -> tuple[Nic, ...]:
    """NICs with which an island without a network can join the core: a port has the rate of those
    of the core.
    """
    switch, network = core_switch(instance), instance.network
    return tuple(nic for nic in network.nics if switch and _planes_of(network, nic, switch))


def _planes_of(network: Network, nic: Nic, switch: Switch) -> list[int]:
    """Numbers of planes on which the ports of a NIC have the rate of those of the core."""
    plane_counts, rate = (
        [planes for planes in network.nic_planes if planes in nic.ports],
        Fraction(switch.port_gbit_s),
    )
    return [planes for planes in plane_counts if planes * rate == Fraction(nic.gbit_s)]


def check_cores(
    ledger: Ledger,
    instance: Instance,
    plan: Plan,
    joints_by_place: JointsByPlace,
    channel_ports: Mapping[str, int] | None = None,
) -> None:
    """Check that a core of the switch asked for stands wherever islands do, with a port for each of
    their links.

    Parameters
    ----------
    joints_by_place
        How islands join the core of each place where some stand.
    channel_ports
        Ports that channels to other sites take, by site.
    """
    switch, kind, cores = core_switch(instance), plan.objective.kind, plan.couplings.cores
    places, claimed_places = (
        tuple(joints_by_place),
        tuple((core.phase, core.site) for core in cores),
    )
    # years that differ may read alike, so that places are compared and not what they are called
    claimed_text, places_text = (
        ", ".join(f"one {_place(*place)}" for place in listed) or "none"
        for listed in (claimed_places, places)
    )
    if (
        not ledger.holds(
            "core",
            claimed_places == places,
            claimed_text,
            places_text,
            f"Cores of the plan: {claimed_text}. Cores that its networks need: {places_text}.",
        )
        or switch is None
    ):
        return
    for place, shared_core, joints in zip(places, cores, joints_by_place.values(), strict=True):
        ledger.turn_to(f"Core {_place(*place)}")
        core = shared_core.core
        ledger.same(
            "core",
            core.switch.name,
            switch.name,
            f"The core has switch {core.switch.name}, but the instance asks for {switch.name}.",
        )
        _check_links(ledger, core, joints)
        links = sum(joint.links for joint in joints.values())
        # Any switch serves any island, so that only the sum of ports counts
        outward = (channel_ports or {}).get(shared_core.site or "", 0)
        ports = sum(joint.core_ports for joint in joints.values()) + outward
        count = ceil_ratio(ports, switch.radix)
        claimed_ports, expected_ports = (
            f"{counted(inward, 'port')} for links and {further} for channels, on"
            f" {counted(switches, 'switch')}"
            for inward, further, switches in (
                (core.ports, core.channel_ports, core.switches),
                (links, outward, count),
            )
        )
        ledger.same(
            "core-switches",
            claimed_ports,
            expected_ports,
            f"The core needs {expected_ports}; the plan has {claimed_ports}.",
        )
        names = optics_of_core(instance, kind)
        expected_optic = core_optic(instance, kind).name
        kinds = [of for joint in joints.values() for of in joint.kinds]
        if kinds:  # the upper end of the longest, of the first island that has one
            expected_optic = max(kinds, key=lambda of: of.longest_m).ends.above.name
        fits = core.optic in names and core.optic == expected_optic
        ledger.holds(
            "core-optic",
            fits,
            core.optic,
            names,
            "Links into this core have to use"
            f" {expected_optic if core.optic in names else alternatives(names)} at their upper"
            f" ends, but the plan has {core.optic}.",
        )
        is_billed = "switch" in instance.objective.include
        power_w = count * switch.w if is_billed else 0.0
        ledger.close(
            "core-power",
            core.power_w,
            power_w,
            f"The core draws {exact(power_w)} W, but the plan says {exact(core.power_w)} W."
            if is_billed
            else "objective.include leaves out switches, so that the power of the core has to be"
            f" stated as 0 W, but the plan says {exact(core.power_w)} W.",
        )
    ledger.turn_to()


def _check_links(ledger: Ledger, core: CorePlan, joints: Mapping[str, Joint]) -> None:
    """Check the links of every island that stands there."""
    needed_links = [
        (
            name,
            joint.links,
            joint.per_leaf,
            joint.ends.below.name,
            [(of.links, of.ends.names, of.longest_m) for of in joint.kinds],
        )
        for name, joint in joints.items()
    ]
    claimed_links = [
        (
            claim.workload,
            claim.links,
            claim.per_leaf,
            core.below(claim),
            [(of.links, of.ends, of.longest_m) for of in claim.cables],
        )
        for claim in core.islands
    ]
    expected_texts, claimed_texts = (
        tuple(
            f"{name}: {counted(links, 'link')},"
            f" {f'{per_leaf} from each leaf' if per_leaf else 'from NICs'}, by {optic_below}"
            + "".join(
                f", {count:,} of {' below '.join(dict.fromkeys(names))} up to {longest_m} m"
                for count, names, longest_m in kinds
            )
            for name, links, per_leaf, optic_below, kinds in rows
        )
        for rows in (needed_links, claimed_links)
    )
    ledger.same(
        "core-links",
        claimed_texts,
        expected_texts,
        f"Links needed into the core: {'; '.join(expected_texts) or 'none'}. Those of the plan:"
        f" {'; '.join(claimed_texts) or 'none'}.",
    )


def _place(year: float | None, site: str | None) -> str:
    texts = (site and f"at {site}", "" if year is None else f"in {year:.10g}")
    return " ".join(words for words in texts if words) or "for all networks"


def joining_nic(ledger: Ledger, instance: Instance, design: Design) -> Nic:
    """Check that the NIC of an island has the rate of the core; the NIC.

    Raises
    ------
    UnsoundError
        Where it has not, or is not listed.
    """
    nics = [nic for nic in instance.network.nics if nic.name == design.fabric.nic.name]
    if not nics:
        raise UnsoundError
    nic, core = nics[0], core_switch(instance)
    if core is not None:
        plane_counts, planes = _planes_of(instance.network, nic, core), design.fabric.nic.planes
        ledger.require(
            "core-rate",
            planes in plane_counts if design.fabric.tiers else bool(plane_counts),
            nic.name,
            core.name,
            f"NIC {nic.name!r} has {nic.gbit_s:g} Gbit/s in all on {counted(planes, 'plane')}, but"
            f" each of its ports has to run at the {core.port_gbit_s:g} Gbit/s of the core's"
            " ports.",
        )
    return nic
