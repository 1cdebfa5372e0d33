"""The one design that an instance leaves, with the HB domains that stand by as in a plan of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from coopt.columns.grid import DomainSet, counts_on, mappings, site_of
from coopt.instance.reserves import Availability
from coopt.instance.rules.couplings import only_ratio
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, choice_left
from coopt.instance.variants import inside_first
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.parts import cost_of, within_limits
from coopt.network.plan_networks import families_of_design
from coopt.network.space import families
from coopt.plan.parts import Cost, Design, WorkloadPlan
from coopt.solving.days import demand, family_domain_lost, fewest_spares
from coopt.solving.explain import no_family

Fastest = Callable[[Instance, Workload, Family, int], WorkloadPlan | None]
"""How a workload runs on a network with so many uplinks; None where no mapping of it fits."""


def open_design(instance: Instance) -> Iterator[str]:
    """Sentences about lists of parts that leave a choice."""
    network = instance.network
    for key, entries in instance.lists.items():
        if len(entries) > 1 and key != "network.optics":  # of which the cheapest are taken
            yield choice_left(key, tuple(getattr(entry, "name", entry) for entry in entries))
    ratio = network.oversubscription
    if (isinstance(ratio, tuple) and len(ratio) > 1) or (isinstance(ratio, float) and ratio > 1):
        values = (
            ", ".join(f"{r:g}" for r in ratio)
            if isinstance(ratio, tuple)
            else f"every ratio up to {ratio:g}"
        )
        remedy = f"--set network.oversubscription={only_ratio(instance)}"
        yield f"network.oversubscription allows {values}, needs one value to evaluate ({remedy})"


def cheapest_design(
    instance: Instance, design: Design | None, fastest: Fastest | None = None
) -> tuple[Family, int, Cost]:
    """The cheapest wiring and optics of the one design there is, within the limits if any are, in
    HB domains that the mappings fill if they fill any.

    Without a design as few HB domains stand by as put every workload in time; the fewest to choose
    from where nothing does, or nothing is said to run.
    """
    networks = (
        _networks(instance, fastest) if design is None else families_of_design(instance, design)
    )
    offers = [(family, uplinks, cost_of(instance, family, uplinks)) for family, uplinks in networks]
    if not offers and design is None:
        raise InstanceError(f"{instance.place}: {text}" for text in no_family(instance))
    if not offers:
        raise InstanceError(
            f"{instance.place}: [network] does not allow this design: needs lists with its HB"
            " domain, NICs, fabric, switches and optics, its oversubscription and as many tiers"
        )

    sites = {site_of(family) for family, *_ in offers}
    filled = {site for site in sites if len(sites) == 1 or _fills(instance, site)}

    def rank(entry: tuple[Family, int, Cost]) -> tuple[bool, bool, float]:
        family, _, cost = entry
        is_within = within_limits(instance, family, cost)
        return site_of(family) not in filled, not is_within, cost.of(instance.objective.billed)

    return min(offers, key=rank)


def _fills(instance: Instance, site: DomainSet) -> bool:
    """Whether some mapping of each workload fills the HB domains of a site."""
    return all(
        counts_on(workload, mappings(workload, site.gpus)[0], site).any()
        for workload in instance.workload
    )


def _networks(instance: Instance, fastest: Fastest | None) -> Iterator[tuple[Family, int]]:
    """Every network of an instance, with the HB domains that stand by."""
    availability = instance.availability
    for family in families(instance):
        for uplinks in family.uplink_choices:
            spares = family.spare_domains
            if availability is not None:
                choices = availability.spares_with(spares)
                spares = (
                    choices[0]
                    if fastest is None or len(choices) == 1
                    else _spares(instance, availability, family, uplinks, fastest)
                )
            yield replace(family, spare_domains=spares), uplinks


def _spares(
    instance: Instance,
    availability: Availability,
    family: Family,
    uplinks: int,
    fastest: Fastest,
) -> int:
    """As few spares as put all workloads in time, with TP inside HB domains if that ever is."""
    loss = family_domain_lost(availability, family)

    def enough(variant: Instance) -> int | None:
        timed = []
        for workload in variant.workload:
            run = fastest(variant, workload, family, uplinks)
            if run is None:
                return None
            pace = run.uptime.pace if run.uptime else 1.0
            timed.append((workload, np.array([run.iteration_time_s * pace])))
        target = demand(instance, family, (uplinks,), timed)
        return fewest_spares(availability, loss, family, target, 0)

    spares, _ = inside_first(instance, enough, lambda spares: spares is not None)
    return availability.spares_with(family.spare_domains)[0] if spares is None else spares
