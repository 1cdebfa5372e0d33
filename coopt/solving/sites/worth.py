"""What chosen options of a ring amount to, recomputed from the decisions alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from coopt.instance.schema import Instance
from coopt.network.parts import cost_of, electricity_of, total, usd_per_w
from coopt.plan.schema import Cost, Item
from coopt.solving.sites.arrays import RingProblem, facility_w
from coopt.solving.sites.options import Option, local_question


@dataclass(frozen=True, kw_only=True, eq=False)
class Built:
    """Options by position on the ring, channels of its links, the bill of each site and of everything.

    `over` names the limits that are exceeded.
    """

    problem: RingProblem
    chosen: tuple[int, ...]
    channels: tuple[int, ...]
    costs: tuple[Cost, ...]
    fed_w: tuple[float, ...]
    whole: Cost
    over: tuple[str, ...]

    @property
    def options(self) -> tuple[Option, ...]:
        """The option of each site of the ring."""
        return tuple(self.problem.options[o] for o in self.chosen)

    def exchange_s(self, gradient_bytes: float) -> float:
        """Seconds that adding up these gradients takes."""
        rates = [c * link.gbit_s for c, link in zip(self.channels, self.problem.ring.links, strict=True)]
        return self.problem.ring.exchange_s(gradient_bytes, min(rates, default=1.0))


def built(instance: Instance, problem: RingProblem, chosen: tuple[int, ...]) -> Built:
    """Bills, power and limits of one option for each site of a ring, with the fewest channels that do."""
    ring, objective = problem.ring, instance.objective
    options = [problem.options[o] for o in chosen]
    channels = tuple(int(problem.data.need[list(chosen), e].max()) for e in range(len(ring.links)))
    sites = [instance.site[i] for i in ring.sites]
    costs = []
    for site, option in zip(sites, options, strict=True):
        local = local_question(instance, option.shares)
        items = cost_of(local, option.family, option.uplinks).items
        costs.append(total(electricity_of(objective, site), items))
    lit = [
        Item(item=a.name, kind="wan", count=c, unit_usd=a.usd, usd=c * a.usd, unit_w=a.w, w=c * a.w)
        for a, c in zip(ring.links, channels, strict=True)
    ]
    half_w = {
        s.name: sum(c * a.w / 2 for a, c in zip(ring.links, channels, strict=True) if s.name in a.between)
        for s in sites
    }
    fed = tuple(
        facility_w(objective, site, cost.power_w + half_w[site.name]) for site, cost in zip(sites, costs, strict=True)
    )
    energy = sum(
        usd_per_w(electricity_of(objective, site)) * (cost.power_w + half_w[site.name])
        for site, cost in zip(sites, costs, strict=True)
    )
    bill = total(objective, (*_merged(costs), *lit))
    whole = bill.model_copy(update={"tco_usd": bill.capex_usd + energy})
    racks = sum(option.racks for option in options)
    over = tuple(_over(instance, sites, fed, whole, racks))
    return Built(
        problem=problem, chosen=chosen, channels=channels, costs=tuple(costs), fed_w=fed, whole=whole, over=over
    )


def _merged(costs: list[Cost]) -> tuple[Item, ...]:
    """The lines of all sites, those of one thing together."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for cost in costs:
        for item in cost.items:
            counts[item.kind, item.item, item.unit_usd, item.unit_w] += item.count
    return tuple(
        Item(item=name, kind=kind, count=n, unit_usd=usd, usd=n * usd, unit_w=w, w=n * w)
        for (kind, name, usd, w), n in counts.items()
    )


def _over(instance: Instance, sites: list[Any], fed: tuple[float, ...], whole: Cost, racks: int) -> list[str]:
    limits = instance.limits
    over = [f"power of {site.name}" for site, w in zip(sites, fed, strict=True) if w > site.power_mw * 1e6]
    for name, value, cap in (
        ("power_mw", whole.power_w / 1e6, limits.power_mw),
        ("capex_usd", whole.capex_usd, limits.capex_usd),
        ("racks", float(racks), limits.racks),
    ):
        if cap is not None and value > cap:
            over.append(f"limits.{name}")
    return over
