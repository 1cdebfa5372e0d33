"""Networks that grow, and what they buy in each phase (docs/phased.md).

A line is a family of the last phase. In an earlier phase it has fewer HB domains, and what joins
these: leaves are filled as they will be in the end, so that no link is ever moved to another leaf.

A unit may be bought in any phase up to the one that needs it and stored until then, so each is
bought where it is cheapest; of equally cheap phases the last.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from coopt.instance.schema import Instance
from coopt.instance.variants import years_of
from coopt.network.family import Family, next_even
from coopt.network.filling import EndPoints, pod_span
from coopt.network.optics import cages_of
from coopt.network.parts import owned_usd, usd_per_w
from coopt.network.space import families
from coopt.plan.couplings import PhaseSpending, Stored
from coopt.plan.parts import Item, line

RETROFIT = "retrofit links"


@dataclass(frozen=True, kw_only=True)
class Retrofit:
    """Over all planes: leaves that stood before, and links up that the first pod gets with the
    cores for each bundle of `bundle` uplinks that its leaves had.
    """

    leaves: int
    trunks: int
    bundle: int = 1

    def links(self, old_uplinks: int, new_uplinks: int) -> int:
        """Links added to switches that stood before, when a leaf goes from one number of uplinks to
        another.
        """
        return self.leaves * (new_uplinks - old_uplinks) + self.trunks * (
            old_uplinks // self.bundle
        )


def retrofit(old: Family | None, new: Family) -> Retrofit:
    """What is added to the switches of a network when it grows; nothing where none stood before."""
    if old is None:
        return Retrofit(leaves=0, trunks=0)
    # The step from two tiers to three: switches of the first pod then get the cables to cores that
    # they had no use for.
    cored = old.tiers == 2 and new.pods is not None and old.pods is None
    return Retrofit(
        leaves=old.all_planes * old.leaves if new.tiers > 1 else 0,
        trunks=old.all_planes * new.pods.w if cored and new.pods else 0,
        bundle=new.pods.each if new.pods else 1,
    )


def lines(instance: Instance) -> Iterator[tuple[Family, ...]]:
    """Every way to grow, phase by phase: HB domains, active GPUs in each, fabric, NIC, switch and
    leaves are chosen once.
    """
    counts = [phase.gpus for phase in instance.phase]
    for goal in families(instance, grow=True):
        if all(gpus % goal.active == 0 for gpus in counts) and grows(goal, counts):
            phases = tuple(grown(goal, gpus, instance.network.largest_ratio) for gpus in counts)
            if all(family.uplink_choices for family in phases):
                yield phases


def grows(goal: Family, counts: Collection[int]) -> bool:
    """Whether leaves stay in their pods: those of a rail lie next to each other, so a
    rail-optimized third tier would have to be wired anew.
    """
    return goal.fabric != "rail-optimized" or goal.pods is None or len(set(counts)) == 1


def grown(goal: Family, gpus: int, ratio: float, links: int = 0) -> Family:
    """The network of a line with some of its GPUs; bundles are no larger than in the end, so that
    none is moved.

    Without any uplinks to choose from where no number of them makes such bundles. Where modules
    break out above leaves, or pods have bundles, leaves have all their uplinks from the start:
    units then rise with GPUs, for whole modules and switches are counted.

    Parameters
    ----------
    ratio
        The largest oversubscription allowed.
    links
        Links into a core that so many GPUs need; they start at NICs where one domain holds
        everything.
    """
    ends = EndPoints(fabric=goal.fabric, domains=gpus // goal.active, rails=goal.nics_of_domain)
    if ends.domains == goal.domains:
        return goal
    if ends.domains == 1:
        single = replace(_single(goal, gpus), lone_links=links)
        # modules in NICs carry one link, and the product at the lower ends of links into a core is
        # chosen once; lengths do not choose cables of NICs that lead where leaves will be
        stays = goal.core_links_of_module == 1 and not goal.core_choices
        return single if stays else replace(single, uplink_choices=())
    leaves, down = _leaves(goal, ends)
    if goal.tiers == 1 or leaves == 1:
        return _one_tier(goal, gpus, ends)
    base = replace(
        goal,
        gpus=gpus,
        domains=ends.domains,
        leaves=leaves,
        chassis=goal.all_planes * leaves,
        down=down,
        uplink_choices=_grown_uplinks(goal, down, ratio),
        leaf_span=down // ends.rails if goal.fabric == "clos" else min(down, ends.domains),
    )
    return _podded(base, ends) if goal.pods else base


def _grown_uplinks(goal: Family, down: int, ratio: float) -> tuple[int, ...]:
    """The uplinks that a leaf may have with so many ports in use, whole cages of them."""
    cage, _ = cages_of(goal.per_module)
    max_uplinks = min(-(-down // cage) * cage, goal.uplink_choices[-1])
    bundled = goal.pods is not None and goal.pods.each > 1
    min_uplinks = math.ceil(down / ratio)
    if bundled or goal.breaks_out:
        return tuple(
            u
            for u in goal.uplink_choices
            if min_uplinks <= u <= max_uplinks and u in _even_uplinks(u, u, cage, goal.bundle)
        )
    return _even_uplinks(min_uplinks, max_uplinks, cage, goal.bundle)


@lru_cache(maxsize=1 << 14)
def _even_uplinks(min_uplinks: int, max_uplinks: int, cage: int, bundle: int) -> tuple[int, ...]:
    """Numbers in a range that are whole cages and make even bundles."""
    return tuple(
        u
        for u in range(min_uplinks, max_uplinks + 1)
        if u % cage == 0 and next_even(u, bundle) == u
    )


def _single(goal: Family, gpus: int) -> Family:
    """The family while one HB domain holds everything: it needs no network yet."""
    return replace(
        goal,
        gpus=gpus,
        domains=1,
        optics=(),
        choices=(),
        tiers=0,
        leaves=0,
        chassis=0,
        down=0,
        uplink_choices=(0,),
        leaf_span=1,
        pods=None,
        pod_span=0,
    )


def _one_tier(goal: Family, gpus: int, ends: EndPoints) -> Family:
    """The family with one leaf for each plane; on a shared chassis ports for later domains are kept
    free.
    """
    return replace(
        goal,
        gpus=gpus,
        domains=ends.domains,
        optics=goal.optics[:1],
        choices=goal.choices[:1],
        tiers=1,
        leaves=1,
        down=ends.of_a_plane,
        uplink_choices=(0,),
        chassis=goal.chassis if goal.tiers == 1 else goal.all_planes,
        leaf_span=ends.domains,
        pods=None,
        pod_span=0,
        planes_together=goal.planes_together,
    )


def _leaves(goal: Family, ends: EndPoints) -> tuple[int, int]:
    """Leaves of a plane with the domains so far, and how many ports of the fullest are in use."""
    if goal.fabric != "rail-optimized" or goal.tiers == 1:
        return -(-ends.of_a_plane // goal.down), min(goal.down, ends.of_a_plane)
    # Leaves are filled as in the end, so that rails and domains that come later find their ports
    # free.
    rails = max(goal.down // goal.domains, 1)
    span = min(goal.down, goal.domains)
    return -(-ends.rails // rails) * -(-ends.domains // span), rails * min(ends.domains, span)


def _podded(base: Family, ends: EndPoints) -> Family:
    """Pods with the leaves so far; the first one needs no cores, its switches keep their ports up
    free.
    """
    assert base.pods is not None
    pods = replace(base.pods, count=-(-base.leaves // base.pods.leaves))
    # Aggregation switches of a single pod are its spines: a leaf keeps its bundle to each of them.
    if pods.count == 1:
        return replace(
            base,
            tiers=2,
            optics=base.optics[:2],
            choices=base.choices[:2],
            pods=None,
            pod_span=0,
            bundle=pods.each,
        )
    return replace(
        base, pods=pods, pod_span=pod_span(ends, base.leaves, pods.leaves, base.leaf_span)
    )


def factor(instance: Instance, phase: int, kind: str) -> float:
    """What a phase pays for a kind of item over the price of the instance, for fibre as for
    optics; 1 where nothing grows.
    """
    kind = "optics" if kind == "fibre" else kind
    return float(getattr(instance.phase[phase].price, kind)) if instance.phase else 1.0


def paid_as(instance: Instance, item: Item) -> str:
    """The kind by whose factor a phase pays for a line: idle GPUs go with HB domains where one
    network grows and nothing else is asked, and otherwise with GPUs.
    """
    return item.kind if grows_alone(instance) else item.product[0]


def grows_alone(instance: Instance) -> bool:
    """Whether one network grows at known prices, and nothing else is asked."""
    return (
        bool(instance.phase)
        and instance.sharing.mode == "time"
        and not (instance.robust or instance.network.many_sided or instance.availability)
    )


def factor_paid(instance: Instance, item: Item) -> float:
    """What is paid for a line of the bill of all phases over the price of the instance; 1 for one
    of no phase.
    """
    if item.year not in instance.years:
        return 1.0
    return factor(instance, instance.years.index(item.year), paid_as(instance, item))


def energy_usd_per_w(instance: Instance, phase: int) -> float:
    """Price of drawing one watt from a phase to the next, or for `objective.years`."""
    objective = instance.objective.model_copy(update={"years": years_of(instance, phase)})
    return usd_per_w(objective) * factor(instance, phase, "energy")


def bought_share(instance: Instance) -> float:
    """What a USD of purchase adds to the total cost of owning: its labour, and its support where
    nothing grows; phases pay support of what stands in them.
    """
    objective = instance.objective
    return 1 + objective.labour_share if instance.phase else objective.owned_share


def support_share(instance: Instance, phase: int) -> float:
    """What the support of a part that stands takes until the next phase, as a share of its price in
    the phase; nothing where nothing grows, since it is then a share of what is bought.
    """
    return instance.objective.support_share * years_of(instance, phase) if instance.phase else 0.0


def work_usd(
    instance: Instance, products_usd: Sequence[float], support_usd: Sequence[float]
) -> list[float]:
    """Labour for what each phase buys, and support of what stands in it; of what is bought at once,
    for all years.
    """
    terms = instance.objective
    if not instance.phase:
        return [owned_usd(terms, usd, 0.0) - usd for usd in products_usd]
    return [
        usd * terms.labour_share + support
        for usd, support in zip(products_usd, support_usd, strict=True)
    ]


def factors_paid(instance: Instance, start: int) -> list[dict[str, float]]:
    """What an island that stands from a phase on pays for each kind of item over the price of the
    instance, in every phase that it pays in; empty where nothing grows.
    """
    # support is paid in all phases
    phases_paid = len(instance.phase) if instance.objective.support_share else start + 1
    return [phase.price.model_dump(exclude={"energy"}) for phase in instance.phase[:phases_paid]]


def link_labour_usd(instance: Instance, phase: int) -> float:
    """Labour for a link that a phase adds to a switch that stood before (USD)."""
    return instance.phase[phase].retrofit_usd_per_link if instance.phase else 0.0


@dataclass(frozen=True, kw_only=True)
class PhaseBill:
    """What is bought in a phase, what waits for a later one, what all that stands draws (W), and
    its electricity.
    """

    purchases: tuple[Item, ...]
    stored: tuple[Stored, ...]
    power_w: float
    energy_usd: float

    @property
    def products_usd(self) -> float:
        """What is paid for products, without labour on links."""
        return math.fsum(item.usd for item in self.purchases if item.kind != "labour")


def spendings(
    instance: Instance, bills: Sequence[PhaseBill], work: Sequence[float]
) -> tuple[PhaseSpending, ...]:
    """What each phase spends, with its labour and support (USD); empty where nothing grows."""
    # lengths differ where the first phases alone are looked at, or nothing grows
    return tuple(
        PhaseSpending(
            year=phase.year,
            years=years_of(instance, t),
            bought=bill_of_phase.purchases,
            stored=bill_of_phase.stored,
            capex_usd=math.fsum(item.usd for item in bill_of_phase.purchases),
            power_w=bill_of_phase.power_w,
            energy_usd=bill_of_phase.energy_usd,
            work_usd=paid_usd,
        )
        for t, (phase, bill_of_phase, paid_usd) in enumerate(
            zip(instance.phase, bills, work, strict=False)
        )
    )


def labour_lines(instance: Instance, phase: int, links: int) -> list[Item]:
    """The line for links that a phase adds to switches that stood before; none where there are none
    or they cost nothing.
    """
    rate = link_labour_usd(instance, phase)
    return [line("labour", RETROFIT, links, rate, 0.0)] if links and rate else []
