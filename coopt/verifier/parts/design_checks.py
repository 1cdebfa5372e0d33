"""Check GPUs, HB domains, NIC and switch of a design, and that docs/network.md allows its tiers,
ports and uplinks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from coopt.instance.hardware import HbDomain, Nic, Optic, Switch
from coopt.instance.network import Network
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.texts import alternatives, both, counted
from coopt.plan.parts import Design, DirectLinks, Fabric, NicChoice, Tier
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, UnsoundError
from coopt.verifier.parts.bills import least_racks
from coopt.verifier.parts.layouts import (
    NO_NETWORK,
    Ports,
    cages,
    ceil_ratio,
    fewest_tiers,
    keeps_end_to_end,
    leaf_count,
    leaf_fillings,
    pod_bundle,
    pod_shapes,
    uplink_menus,
)
from coopt.verifier.parts.optics import ends_of, fitting_ends, optics_named
from coopt.verifier.parts.space import (
    DesignFamily,
    NicAttachment,
    domain_counts,
    domain_counts_of,
    idle_domains,
    in_cages,
    linkable,
    links_needed,
    run_for,
    spare_choices,
)
from coopt.verifier.parts.spans import reach_of
from coopt.verifier.parts.standing import check_standing, is_standing, standing_network

T = TypeVar("T", HbDomain, Nic, Optic, Switch)


def check_design(ledger: Ledger, instance: Instance, design: Design) -> DesignFamily:
    """Check GPUs, HB domains and the parts of the network.

    Raises
    ------
    UnsoundError
        Where nothing can be built from them.
    """
    family = check_domains(ledger, instance, design)
    joined = attached(ledger, instance, design, family)
    if family.domains == 1:
        return family
    if joined is None:
        raise UnsoundError
    return joined


def attached(
    ledger: Ledger, instance: Instance, design: Design, family: DesignFamily
) -> DesignFamily | None:
    """The domains with what joins them, which is listed or stands; None where parts do not go
    together.
    """
    standing = standing_network(instance, design.gpus)
    if standing is not None and (instance.network.given or is_standing(standing, design)):
        check_standing(ledger, standing, design.fabric)
        own = standing.family
        return family._replace(
            attachment=own.attachment, stands=True, leaf_domains=own.leaf_domains
        )
    attachment = check_attachment(ledger, instance, design)
    return None if attachment is None else family._replace(attachment=attachment)


def _pick(entries: Iterable[T], name: str) -> T | None:
    return next((entry for entry in entries if entry.name == name), None)


def _names(entries: Iterable[HbDomain | Nic]) -> tuple[str, ...]:
    return tuple(entry.name for entry in entries)


def check_domains(ledger: Ledger, instance: Instance, design: Design | DirectLinks) -> DesignFamily:
    """Check GPUs, HB domains, spares and racks, which have to be those of the instance."""
    sizes, choice = instance.cluster.gpus, design.hb_domain
    idles = instance.cluster.idle_gpus is not False and 0 < design.gpus < max(sizes)
    size_allowed = idles or ledger.among(
        "gpus",
        design.gpus,
        sizes,
        f"The plan trains on {counted(design.gpus, 'GPU')}, but the instance allows"
        f" {', '.join(map(str, sizes))}.",
    )
    hb = _pick(instance.network.hb_domains, choice.name)
    if hb is None:
        ledger.among(
            "hb-domain",
            choice.name,
            _names(instance.network.hb_domains),
            f"The instance lists no HB domain {choice.name!r}.",
        )
    if hb is None or not size_allowed:
        raise UnsoundError
    counts_of_filling: dict[int, list[int]] = {}
    may_hold = domain_counts_of(instance, design.gpus, hb.size)
    if design.gpus not in sizes:
        may_hold = [
            count
            for count in domain_counts(design.gpus, hb.size)
            if idle_domains(instance, design.gpus, hb.size, count) is not None
        ]
    for count in may_hold:
        counts_of_filling.setdefault(ceil_ratio(design.gpus, count), []).append(count)
    ledger.require(
        "hb-domain",
        choice.size == hb.size and choice.active in counts_of_filling,
        f"{choice.name}: {choice.active} of {choice.size} train",
        tuple(
            f"{hb.name}: {active_gpus} of {hb.size} train"
            for active_gpus in sorted(counts_of_filling)
        ),
        f"HB domain {hb.name!r} has {counted(hb.size, 'GPU')}; the instance does not allow"
        f" {choice.active} active ones of {choice.size}, as in the plan.",
    )
    counts = tuple(counts_of_filling[choice.active])
    texts = tuple(map(str, counts))
    fault = (
        f"Training on {counted(design.gpus, 'GPU')}, with up to"
        f" {counted(choice.active, 'active GPU')} in an HB domain, takes {alternatives(texts)}"
        f" HB domain{'s' * (counts != (1,))}, but the plan says {choice.count}."
    )
    expected = counts[0] if len(counts) == 1 else texts
    is_bought = ledger.holds("domain-count", choice.count in counts, choice.count, expected, fault)
    # goes on with a count that is allowed, so that what else is wrong is told as well
    count = choice.count if is_bought else counts[0]
    idle = idle_domains(instance, design.gpus, hb.size, count) or 0
    spares = check_spare_domains(ledger, instance, design, idle)
    family = DesignFamily(design.gpus, hb, count, None, links_needed(instance, design.gpus), spares)
    _spares_and_racks(ledger, design, family)
    return family


def check_attachment(ledger: Ledger, instance: Instance, design: Design) -> NicAttachment | None:
    """Check fabric, NIC and switch; None where they do not go together.

    They are named as well where one domain buys none; with a core shared by islands the NIC is
    bought, one for each link.
    """
    network, fabric = instance.network, design.fabric
    sound = ledger.among(
        "fabric",
        fabric.kind,
        network.fabrics,
        f"The instance does not allow fabric {fabric.kind!r}.",
    )
    # a single domain has no network: nothing is shared or led to planes there
    sizes = design.hb_domain.size, design.hb_domain.active
    sharers = [
        number
        for number in (network.gpus_per_nic if fabric.tiers else (1,))
        if number == 1 or (fabric.nic.per_gpu == 1 and not any(size % number for size in sizes))
    ]
    ledger.holds(
        "leaf-domains",
        fabric.leaf_domains == 0,
        fabric.leaf_domains,
        0,
        "Only leaves of an existing network take turns in the rails of some HB domains, but"
        f" fabric.leaf_domains is {fabric.leaf_domains}.",
    )
    planes = fabric.nic.planes
    nic, fits_domain = check_nics(
        ledger, network, fabric.nic, sharers, network.nic_planes if fabric.tiers else (1,)
    )
    switch = _pick(network.switches, fabric.switch.name)
    way = run_for(switch, nic, planes) if switch and nic and planes > 0 else None
    fits = switch is not None and (nic is None or way is not None or fabric.tiers == 0)
    ledger.holds(
        "switch",
        fits,
        fabric.switch.name,
        tuple(
            part.name
            for part in network.switches
            if nic is None or run_for(part, nic, max(planes, 1))
        ),
        f"The instance lists no switch {fabric.switch.name!r} whose ports match the rate of a NIC"
        " port.",
    )
    if nic is None or switch is None or not (sound and fits_domain and fits):
        return None
    per_gpu, sharing = fabric.nic.per_gpu, fabric.nic.shared_by
    attachment = NicAttachment(
        fabric.kind, nic, per_gpu, way or switch, network.discipline, planes, sharing
    )
    return _with_upper(ledger, network, fabric, attachment)


def check_nics(
    ledger: Ledger,
    network: Network,
    choice: NicChoice,
    sharers: Sequence[int],
    planes: Sequence[int],
) -> tuple[Nic | None, bool]:
    """Check the NICs of a plan, so many GPUs of which may share one and whose ports may lead to so
    many planes; the one that is named, and whether there may be as many as the plan says.
    """
    nic = _pick(network.nics, choice.name)
    ledger.among(
        "nic", choice.name, _names(network.nics), f"The instance lists no NIC {choice.name!r}."
    )
    numbers: tuple[tuple[str, str, int, Sequence[int]], ...] = (
        ("nics-per-gpu", "NICs of a GPU", choice.per_gpu, network.nics_per_gpu),
        (
            "gpus-per-nic",
            "GPUs per NIC (which must divide an HB domain)",
            choice.shared_by,
            sharers,
        ),
        ("nic-planes", "planes per NIC", choice.planes, planes),
    )
    if choice.ports_in_plane != 1:  # only of NICs that stand
        numbers += (
            ("ports-in-plane", "ports of a NIC on each plane", choice.ports_in_plane, (1,)),
        )
    sound = [
        ledger.among(
            name,
            number,
            allowed,
            f"The number of {words} is {number}, but "
            + (
                f"has to be {alternatives(map(str, allowed))}."
                if allowed
                else "no number listed fits this HB domain."
            ),
        )
        for name, words, number, allowed in numbers
    ]
    return nic, all(sound)


def _with_upper(
    ledger: Ledger, network: Network, fabric: Fabric, attachment: NicAttachment
) -> NicAttachment | None:
    """The NIC attachment with the switches named above the leaves; None where these do not go
    together.
    """
    # plans name the switch of a tier only where it is not that of the leaves
    names = tuple(
        tier.switch or fabric.switch.name
        for tier in sorted(fabric.tier, key=lambda tier: tier.level)
    )
    stands = not network.mates or not names or linkable(attachment.nic, attachment.switch)
    if stands and (not names or set(names) == {attachment.switch.name}):
        return attachment
    switches = [_pick(network.switches, name) for name in names[1:]]
    ways = [
        run_for(switch, attachment.nic, attachment.nic_planes)
        for switch in switches
        if switch is not None
    ]
    upper_switches = tuple(way for way in ways if way is not None)
    stacked = (attachment.switch, *upper_switches)
    mated = (
        stands and len(stacked) == len(names) and all(linkable(*pair) for pair in pairwise(stacked))
    )
    may_differ = network.tier_switches == "any" and names[0] == attachment.switch.name
    if not ledger.holds(
        "tier-products",
        mated and may_differ,
        names,
        network.tier_switches,
        f"The instance does not allow NIC {attachment.nic.name} with these switches, from the"
        f" leaves up: {', '.join(names)}.",
    ):
        return None
    return attachment._replace(above=upper_switches)


def check_spare_domains(
    ledger: Ledger, instance: Instance, design: Design | DirectLinks, idle: int = 0
) -> int:
    """How many domains stand by: those that failures take, and those that are idle in any case."""
    spares = 0 if isinstance(design, DirectLinks) else design.spare_domains
    availability = instance.availability
    if availability is None and not spares and not idle:
        return 0
    allowed_spares = spare_choices(availability, idle)
    spares_text = (
        ", ".join(map(str, allowed_spares))
        if availability is None or availability.spare_domains
        else f"{allowed_spares[0]} to {allowed_spares[-1]}"
    )
    return (
        spares
        if ledger.holds(
            "spare-domains",
            spares in allowed_spares,
            spares,
            str(spares_text),
            f"The plan has {counted(spares, 'spare domain')}, but the instance allows"
            f" {spares_text}.",
        )
        else idle
    )


def _spares_and_racks(ledger: Ledger, design: Design | DirectLinks, family: DesignFamily) -> None:
    hb = family.hb
    idle = family.bought * hb.size - family.gpus
    count_text = (
        f"Of {counted(family.bought * hb.size, 'GPU')} in HB domains, {family.gpus} train, so the"
        f" spare GPUs are {idle}"
    )
    ledger.same(
        "spares", design.spare_gpus, idle, f"{count_text}, but the plan says {design.spare_gpus}."
    )
    if hb.racks is None:
        ledger.same(
            "racks",
            design.racks,
            None,
            f"The instance does not say how many racks HB domain {hb.name!r} fills, but the plan"
            f" states {design.racks}.",
        )
        return
    # a fraction of a rack times domains may come out above a whole number by rounding
    racks_at_least, racks_at_most = (
        least_racks(family.bought, hb.racks, slack) for slack in (TOLERANCE, 0.0)
    )
    ledger.holds(
        "racks",
        design.racks is not None and racks_at_least <= design.racks <= racks_at_most,
        design.racks,
        racks_at_most,
        f"The HB domains fill {counted(racks_at_most, 'rack')}, but the plan states"
        f" {'none' if design.racks is None else design.racks}.",
        TOLERANCE,
    )


def check_ports(
    ledger: Ledger, instance: Instance, family: DesignFamily, fabric: Fabric, kind: ObjectiveKind
) -> Ports:
    """Check the ports of a design, from nothing but the claims; they have to build a network."""
    planes = family.planes * family.copies if family.attachment else 0
    ledger.same(
        "planes",
        fabric.planes,
        planes,
        f"This fabric has {counted(planes, 'plane')}, but the plan says {fabric.planes}.",
    )
    tiers = tuple(fabric.tier)
    numbers = [tier.level for tier in tiers]
    ledger.require(
        "levels",
        numbers == list(range(1, fabric.tiers + 1)) if 0 <= fabric.tiers <= 3 else False,
        tuple(str(number) for number in numbers),
        fabric.tiers,
        f"The plan has {counted(fabric.tiers, 'tier')} and describes the levels"
        f" {', '.join(map(str, numbers)) or 'none'}; it may have 0 to 3 tiers, with each level from"
        " 1 up described once.",
    )
    standing = standing_network(instance, family.gpus) if family.stands else None
    caged_family = family
    if standing is None:
        carried = _carried(instance.network, family, tiers)
        caged_family = in_cages(instance.network, family, carried)
        ports = _ports(ledger, instance.network, caged_family, tiers, carried, fabric.pod_bundle)
        _optics(ledger, instance, family, fabric, kind)
    else:
        ports = standing.ports
    slowdown = reach_of(caged_family, ports).beyond
    ledger.close(
        "oversubscription",
        fabric.oversubscription,
        slowdown,
        f"The ports in use give an oversubscription of {slowdown:.9g}, but the plan says"
        f" {fabric.oversubscription:.9g}.",
    )
    most = instance.network.max_networks
    if most is not None and tiers:
        ledger.require(
            "networks",
            fabric.planes <= most,
            fabric.planes,
            most,
            f"The plan has {counted(fabric.planes, 'separate network')}, but network.max_networks"
            f" is {most}.",
        )
    bound = instance.network.end_to_end_oversubscription
    if bound is not None and standing is None:
        ledger.require(
            "end-to-end",
            keeps_end_to_end(instance.network, ports, ports.up),
            slowdown,
            bound,
            f"From leaf to core the oversubscription is {slowdown:.6g}:1, but only {bound:g}:1 is"
            " allowed (network.end_to_end_oversubscription).",
        )
    routing = instance.network.discipline.routing if fabric.tiers > 1 else 1.0
    ledger.same(
        "routing",
        fabric.routing,
        routing,
        f"The routing of this network is {routing}, but the plan says {fabric.routing}."
        if fabric.tiers > 1
        else f"A plan of {counted(fabric.tiers, 'tier')} has routing 1.0, as no flow goes above its"
        f" leaves, but this plan says {fabric.routing}.",
    )
    return ports


def held_in_cages(network: Network, family: DesignFamily, fabric: Fabric) -> DesignFamily:
    """The family on switches that have cages for the modules that a plan names."""
    return in_cages(network, family, _carried(network, family, tuple(fabric.tier)))


def _carried(
    network: Network, family: DesignFamily, tiers: tuple[Tier, ...]
) -> tuple[tuple[int, int], ...]:
    """Links that a module carries at the ends of each level, by the optics that the plan names; 1
    where these do not fit.
    """

    def links(name: str) -> int:
        optic = _pick(network.optics, name)
        return (family.attachment.links_of(optic) or 1) if family.attachment and optic else 1

    return tuple((links(below), links(above)) for below, above in (tier.ends for tier in tiers))


def _ports(
    ledger: Ledger,
    network: Network,
    family: DesignFamily,
    tiers: tuple[Tier, ...],
    carried: tuple[tuple[int, int], ...],
    leaf_links: int,
) -> Ports:
    """The ports the plan claims, which have to be allowed; `leaf_links` lead from a leaf to each
    switch of its pod.
    """
    cage = cages(carried)[0]
    # first of all, as ports of leaves and pods mean something on their number of tiers alone
    _tiers(ledger, network, family, tiers, cage)
    if len(tiers) < 3 and leaf_links != 1:
        ledger.require(
            "pod-ports",
            False,
            leaf_links,
            1,
            f"There are no pods, so that fabric.pod_bundle has to be 1, but it is {leaf_links}.",
        )
    if not tiers:
        return NO_NETWORK
    leaf = tiers[0]
    fillings = [family.ends] if len(tiers) == 1 else leaf_fillings(family, network, cage)
    ledger.require(
        "leaf-ports",
        leaf.down_ports in fillings,
        leaf.down_ports,
        tuple(map(str, fillings)),
        f"A leaf may not have {counted(leaf.down_ports, 'port')} towards NICs; allowed numbers:"
        f" {', '.join(map(str, fillings)) or 'none'}.",
    )
    menus = (
        [(0, (0,))]
        if len(tiers) == 1
        else list(uplink_menus(family, leaf.down_ports, network, cage))
    )
    uplinks = tuple(sorted(up for _, menu in menus for up in menu))
    choices = _range(uplinks)
    uplink_text = counted(leaf.uplinks_per_switch, "uplink")
    ledger.require(
        "uplinks",
        leaf.uplinks_per_switch in uplinks,
        leaf.uplinks_per_switch,
        choices,
        f"A leaf with {counted(leaf.down_ports, 'port')} towards NICs has {uplink_text} in the"
        f" plan; allowed numbers: {choices}.",
    )
    if len(tiers) < 3:
        bundle = next(bundle for bundle, menu in menus if leaf.uplinks_per_switch in menu)
        return Ports(len(tiers), leaf.down_ports, leaf.uplinks_per_switch, bundle=bundle)
    return _pods(ledger, network, family, tiers, cages(carried)[1], leaf_links)


def _pods(
    ledger: Ledger,
    network: Network,
    family: DesignFamily,
    tiers: tuple[Tier, ...],
    cage: int,
    leaf_links: int,
) -> Ports:
    radix, core, (leaf, pod, _) = family.network.at(2).radix, family.network.at(3).radix, tiers
    leaves = leaf_count(family, leaf.down_ports)
    options = pod_shapes(radix, network, leaves, cage, core)
    pod_ports = (pod.down_ports, pod.uplinks_per_switch, leaf_links)
    ledger.require(
        "pod-ports",
        pod_ports in options and leaf.uplinks_per_switch % leaf_links == 0,
        "{} down, {} up, {} to each leaf".format(*pod_ports),
        tuple("{} down, {} up, {} to each leaf".format(*option) for option in options),
        "An aggregation switch may not have {} ports down, {} up and {} to each leaf".format(
            *pod_ports
        )
        + f", where a leaf has {counted(leaf.uplinks_per_switch, 'uplink')}.",
    )
    bundle = pod_bundle(
        ceil_ratio(leaves, pod.down_ports // leaf_links), pod.uplinks_per_switch, core, network
    )
    return Ports(
        3,
        leaf.down_ports,
        leaf.uplinks_per_switch,
        *pod_ports[:2],
        bundle=bundle,
        pod_each=leaf_links,
    )


def _tiers(
    ledger: Ledger, network: Network, family: DesignFamily, tiers: tuple[Tier, ...], cage: int
) -> None:
    """Check that there are the fewest tiers for the leaf the plan claims; one that is not allowed
    is complained about later.
    """
    tiers_needed = 0
    if family.attachment is not None:
        fillings = leaf_fillings(family, network, cage)
        down = tiers[0].down_ports if tiers else 0
        tiers_needed = (
            fewest_tiers(family, down if down in fillings else fillings[0]) if fillings else 1
        )
    ledger.require(
        "tiers",
        len(tiers) == tiers_needed <= network.max_tiers,
        len(tiers),
        tiers_needed,
        f"The plan builds {counted(len(tiers), 'tier')}; a network of"
        f" {counted(family.domains, 'HB domain')} needs {tiers_needed}, and network.max_tiers is"
        f" {network.max_tiers}.",
    )


def _optics(
    ledger: Ledger, instance: Instance, family: DesignFamily, fabric: Fabric, kind: ObjectiveKind
) -> None:
    """Check that the ends of each level fit, meet and are the cheapest, or are any that do where
    optics are a choice or free.
    """
    names, attachment = [tier.ends for tier in fabric.tier], family.attachment
    levels = (
        []
        if attachment is None
        else [ends_of(instance, kind, attachment, level) for level in range(1, len(names) + 1)]
    )
    expected = tuple(
        alternatives(_pair_text(*ends.names) for ends in pairs) or "none" for pairs in levels
    )
    holds = optics_named(instance, kind, family, names) is not None
    claimed_texts = tuple(_pair_text(*pair) for pair in names)
    fault = (
        f"From the leaves up, the optics have to be {'; '.join(expected) or 'none'}, but the plan"
        f" has {'; '.join(claimed_texts) or 'none'}."
    )
    bad_levels = (
        []
        if attachment is None
        else [
            n
            for n, pair in enumerate(names, 1)
            if pair not in [ends.names for ends in fitting_ends(instance, attachment, n)]
        ]
    )
    if bad_levels:
        levels_text = both(f"level {number}" for number in bad_levels)
        fault += (
            f" The optics of {levels_text} are not listed, do not fit the NIC or switch, do not"
            " reach far enough or do not mate with the other end."
        )
    ledger.holds("optics", holds, claimed_texts, expected, fault)


def _pair_text(lower: str, upper: str) -> str:
    """The products at the ends of a level, as a fault has them."""
    return upper if lower == upper else f"{lower} below {upper}"


def _range(numbers: tuple[int, ...]) -> str:
    """Numbers in words, as a range where they are one."""
    if not numbers:
        return "none"
    if len(numbers) == numbers[-1] - numbers[0] + 1 and len(numbers) > 2:
        return f"{numbers[0]} to {numbers[-1]}"
    return alternatives(str(number) for number in numbers)
