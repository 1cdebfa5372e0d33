"""The networks that may be the cheapest one, listed site by site until no other can be.

A network costs at least what its GPUs, HB domains and NICs do. Sites are gone through by that
floor. Once a network is known that serves all workloads within the limits, sites whose floor is
above what it is worth hold no cheaper one: with `network.domain_fill = "any"` these are nearly all,
as GPUs that stay idle are paid for. Nor does a site on which some workload has no mapping in time
at the full rate of the NICs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coopt.columns.context import Context, DomainSet, context_of, domains_filled
from coopt.columns.layouts import NicLayout
from coopt.columns.table import Columns, columns, feasible_by_size, pools_of
from coopt.instance.base import Entry
from coopt.instance.hardware import HbDomain
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.family import Family, NicOption
from coopt.network.parts import (
    Affine,
    cost_of,
    domain_lines,
    included_lines,
    price,
    total,
    within_limits,
)
from coopt.network.space import Space
from coopt.plan.parts import line
from coopt.solving.runs import Run


class Cheapest:
    """What the cheapest network found so far is worth, in the unit of the objective: a ceiling of
    columns.
    """

    def __init__(self, instance: Instance, families: Iterable[Family] = ()) -> None:
        self._instance, self._worth = instance, math.inf
        self._of: dict[Context, list[tuple[Family, Affine]]] = {}
        self.add(families)

    def add(self, families: Iterable[Family]) -> None:
        """Hear of more networks that there may be."""
        for family in families:
            self._of.setdefault(context_of(family), []).append((family, self._price(family)))

    def _price(self, family: Family) -> Affine:
        return price(self._instance, family, self._instance.objective.minimize)

    def floor(self, context: Context) -> float:
        """What the cheapest network of a context is worth with as few uplinks as it may have."""
        return min(
            float(worth.at(family, family.uplink_choices[0])) for family, worth in self._of[context]
        )

    def is_below(self, floor: float) -> bool:
        """Whether a network is known that is worth less, by more than sums in another order may
        differ.
        """
        return floor > self._worth + EQUAL * abs(self._worth)

    def lower(self, context: Context, uplinks: int) -> None:
        """Hear that so many uplinks serve all workloads in a context; networks beyond a limit do
        not count.
        """
        for family, worth in self._of[context]:
            enough = next((u for u in family.uplink_choices if u >= uplinks), None)
            # the affine price tells at once which networks cannot lower the ceiling; only others
            # need their bill
            if enough is not None and worth.at(family, enough) < self._worth:
                cost = cost_of(self._instance, family, enough)
                if within_limits(self._instance, family, cost):
                    self._worth = min(self._worth, cost.of(self._instance.objective.minimize))


def up_to_cheapest(
    run: Run, instance: Instance, measures: tuple[ObjectiveKind, ...]
) -> tuple[tuple[Family, ...], Columns]:
    """The networks of sites that may hold the cheapest one, in the order of the instance's lists,
    and the mappings on them; where none serves all workloads within the limits, all that are in
    time and that no other beats.
    """
    space, ceiling = Space(instance=instance, measures=measures), Cheapest(instance)
    sites = list(space.all_sites())
    floors = [_floor(instance, space.nic_options, *site) for site in sites]
    site_families: dict[int, tuple[Family, ...]] = {}
    tables: list[Columns] = []
    for n in sorted(range(len(sites)), key=floors.__getitem__):
        if ceiling.is_below(floors[n]):
            break
        run.check_clock()
        if not _is_quick(instance, space.nic_options, *sites[n]):
            continue
        started_s = run.elapsed_s()
        site_families[n] = tuple(run.in_time(space.families(*sites[n], space.nic_options)))
        if instance.network.tier_switches == "any":
            site_families[n] = tuple(unbeaten(instance, site_families[n], measures))
        ceiling.add(site_families[n])
        run.log.model_s += run.elapsed_s() - started_s
        tables.append(columns_of(run, instance, site_families[n], ceiling))
    return tuple(
        family for n in sorted(site_families) for family in site_families[n]
    ), _joint_table(tables)


def _floor(
    instance: Instance, nic_options: Sequence[NicOption], gpus: int, hb: HbDomain, domains: int
) -> float:
    """What GPUs, HB domains and the cheapest NICs of a site are worth; several domains have all
    their NICs.
    """
    kind = instance.objective.minimize
    domain_bill = domain_lines(instance.cluster.gpu, hb, gpus, domains * hb.size)
    suitable = (
        [nic_option for nic_option in nic_options if nic_option.fits(hb.size, gpus, domains)]
        if domains > 1
        else []
    )
    # idle GPUs of a domain have their NICs as well: a box is bought with all of them
    nics = (
        (nic_option.nic, domains * (hb.size * nic_option.nics_per_gpu // nic_option.gpus_per_nic))
        for nic_option in suitable
    )
    with_nics = [
        [*domain_bill, line("nic", nic.name, count, nic.usd, nic.w)] for nic, count in nics
    ] or [domain_bill]
    return min(
        total(instance.objective, included_lines(instance, lines)).of(kind) for lines in with_nics
    )


def _is_quick(
    instance: Instance, nic_options: Sequence[NicOption], gpus: int, hb: HbDomain, domains: int
) -> bool:
    """Whether every workload has a mapping that is in time where each GPU has all that NICs can
    give it.
    """
    suitable = [nic_option for nic_option in nic_options if nic_option.fits(hb.size, gpus, domains)]
    for gpus_per_nic in sorted(
        {nic_option.gpus_per_nic for nic_option in suitable} if domains > 1 else {1}
    ):
        site = domains_filled(gpus, hb, domains, gpus_per_nic)
        byte_s = max(
            (
                nic_option.byte_s
                for nic_option in suitable
                if domains == 1 or nic_option.gpus_per_nic == gpus_per_nic
            ),
            default=0.0,
        )
        flat = NicLayout(domains=site.domains, span=site.domains)
        context = Context(
            site=site, byte_s=byte_s, layout=flat, discipline=instance.network.discipline
        )
        if byte_s and all(
            len(pool)
            for pool, _ in pools_of(instance, [context], feasible_by_size(instance, (context,)))
        ):
            return True
    return False


def columns_of(
    run: Run, instance: Instance, families: tuple[Family, ...], ceiling: Cheapest | None
) -> Columns:
    """The mappings on some networks, none on more of them than can hold the cheapest."""
    started_s = run.elapsed_s()

    def on_site(site: DomainSet) -> None:
        run.tell("columns", str(site))

    table = columns(instance, families, on_site, run.check_clock, ceiling)
    run.log.columns_s += run.elapsed_s() - started_s
    return table


def _joint_table(tables: Sequence[Columns]) -> Columns:
    """The mappings on the networks of several sites."""
    offsets = [0]
    for table in tables:
        offsets.append(offsets[-1] + len(table.contexts))
    return Columns(
        contexts=tuple(context for table in tables for context in table.contexts),
        columns=tuple(
            replace(column, context=column.context + start)
            for start, table in zip(offsets, tables, strict=False)
            for column in table.columns
        ),
        pools={site: pool for table in tables for site, pool in table.pools.items()},
        feasible={size: source for table in tables for size, source in table.feasible.items()},
        enumerated=sum(table.enumerated for table in tables),
        kept=sum(table.kept for table in tables),
        gated=dict(sum((Counter(table.gated) for table in tables), Counter[str]())),
    )


def unbeaten(
    instance: Instance, families: Iterable[Family], measures: tuple[ObjectiveKind, ...]
) -> list[Family]:
    """The families than which no other is as good, whatever the mappings: of equal ones the first.

    One beats another that differs in switches above the leaves alone where, for each number of
    uplinks of that, it has some number that is no less at a price and a power that are no higher.
    Time never rises with uplinks, so that it can take the place of the other in every design.

    Parameters
    ----------
    measures
        What bills are compared by, as `coopt.network.optics.measures_of` has it.
    """
    groups: dict[tuple[object, ...], list[tuple[Family, _Menu]]] = {}
    for family in families:
        rivals, menu = (
            groups.setdefault(_below_upper(family), []),
            _Menu.of(instance, family, measures),
        )
        if not any(rival.beats(menu) for _, rival in rivals):
            rivals[:] = [
                (rival_family, rival) for rival_family, rival in rivals if not menu.beats(rival)
            ]
            rivals.append((family, menu))
    return [family for rivals in groups.values() for family, _ in rivals]


def _below_upper(family: Family) -> tuple[object, ...]:
    """What families have in common that differ in switches above the leaves alone, on which uneven
    bundles depend.
    """
    traits = {
        name: value
        for name, value in vars(family).items()
        if name not in ("upper", "bundle", "uplink_choices")
    }
    traits["dealt"] = family.tiers == 2 and not family.bundle and family.spine_ports
    traits["cores"] = family.pods is not None and not family.pods.bundle and family.core_group
    traits["pods"] = family.pods and replace(family.pods, bundle=0)
    traits["optics"] = tuple((ends.below.name, ends.above.name) for ends in family.optics)
    return tuple(value.name if isinstance(value, Entry) else value for value in traits.values())


@dataclass(frozen=True, kw_only=True)
class _Menu:
    """Numbers of uplinks (n,), ascending, and what each comes to in every measure (measures, n)."""

    uplinks: NDArray[np.int64]
    sums: NDArray[np.float64]

    @classmethod
    def of(cls, instance: Instance, family: Family, measures: tuple[ObjectiveKind, ...]) -> _Menu:
        uplinks = np.array(family.uplink_choices)
        sums = [price(instance, family, kind).at(family, uplinks) for kind in measures]
        return cls(
            uplinks=uplinks, sums=np.array(sums, dtype=np.float64).reshape(len(measures), -1)
        )

    def beats(self, rival: _Menu) -> bool:
        """Whether, for each number of the other, the least of its own that is no less is no
        dearer.
        """
        # both lists ascend, so that a last number without a match is the only one that need be
        # asked for
        at = np.searchsorted(self.uplinks, rival.uplinks)
        return bool(at[-1] < len(self.uplinks) and (self.sums[:, at] <= rival.sums).all())
