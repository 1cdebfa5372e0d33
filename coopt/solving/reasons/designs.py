"""Every design of an instance at once: what it is made of, what it costs, and how fast each
workload runs on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from coopt.columns.context import Context
from coopt.columns.feasible import FeasibleMappings, feasible_mappings
from coopt.columns.times import fastest_rows, least_times_s, of_family, of_sites, uplinks_by_context
from coopt.instance.numerics import REORDERED
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.parts import bill, owned_usd, racks
from coopt.network.plan_networks import design_of
from coopt.network.space import families
from coopt.perf.mapping import Bools, Floats, Ints
from coopt.plan.parts import ItemKind
from coopt.plan.schema import Design, Item
from coopt.solving.fronts.designs import TIES, weight_of
from coopt.solving.reasons.limits import limits_of, without_bound
from coopt.solving.shared import identity

Line = tuple[ItemKind, str]


@dataclass(frozen=True, kw_only=True)
class Designs:
    """Rows are designs: family `families[family[i]]` with `uplinks[i]`.

    `counts` has a column for each of `lines` of the bill, `w` is its power, `billed` the sum that
    the objective counts and `value` the objective, which is another where time weighs the bill.
    `uses` holds what designs take of each limit, by key, and `caps` what they may take; time is
    infinite where nothing fits.
    """

    instance: Instance
    families: tuple[Family, ...]
    family: Ints
    uplinks: Ints
    lines: dict[Line, Item]
    counts: Ints
    w: Floats
    billed: Floats
    value: Floats
    uses: dict[str, Floats]
    caps: dict[str, float]

    def __len__(self) -> int:
        return len(self.family)

    def met(self, *but: str) -> Bools:
        """Rows that keep all limits but those in `but`."""
        is_met = np.ones(len(self), dtype=np.bool_)
        for key in self.uses.keys() - set(but):
            is_met &= self.uses[key] <= self.caps[key]
        return is_met

    def cheapest(self, among: Bools) -> int | None:
        """The row of least value, of equals that of least bill, then that with most room within its
        time bounds.

        None among none.
        """
        rows = np.flatnonzero(among)
        if not len(rows):
            return None
        floor = self.value[rows].min()
        rows = rows[self.value[rows] <= (floor * (1.0 + TIES) if self.is_timed else floor)]
        shares = [
            use[rows] / self.caps[key]
            for key, use in self.uses.items()
            if key.startswith("workload")
        ]
        return int(rows[np.lexsort((np.maximum.reduce(shares), self.billed[rows]))[0]])

    @property
    def is_timed(self) -> bool:
        """Whether the objective weighs the bill by time, so that values are equal within rounding
        only.
        """
        return self.instance.objective.minimize != self.instance.objective.billed

    def cheaper(self, than: int) -> Bools:
        """Rows of less value than a row, by more than rounding."""
        value = float(self.value[than])
        return np.asarray(
            self.value < value - abs(value) * (TIES if self.is_timed else REORDERED), dtype=np.bool_
        )

    def extra(self, row: int, beside: int) -> float:
        """What a row is worth more than another."""
        value, base = float(self.value[row]), float(self.value[beside])
        return 0.0 if self.is_timed and abs(value - base) <= abs(base) * TIES else value - base

    def of(self, row: int) -> tuple[Family, int]:
        """Family and uplinks of a row."""
        return self.families[self.family[row]], int(self.uplinks[row])

    def design(self, row: int) -> Design:
        """The design of a row, written out."""
        return design_of(*self.of(row))

    def row_of(self, family: Family, uplinks: int) -> int | None:
        """The row of a design; modules of several links may have parted its family's uplinks into
        several families.

        There is none of a design whose optics are not worth having.
        """
        key = replace(family, uplink_choices=())
        rows = np.flatnonzero(self.uplinks == uplinks).tolist()
        matches = (
            row
            for row in rows
            if replace(self.families[self.family[row]], uplink_choices=()) == key
        )
        return next(matches, None)

    def same_as(self, row: int) -> Bools:
        """Rows that build what a row builds, under whatever name."""
        reference, uplinks = self.of(row)
        is_same = np.array(
            [identity(family) == identity(reference) for family in self.families], dtype=np.bool_
        )
        return np.asarray(is_same[self.family] & (self.uplinks == uplinks), dtype=np.bool_)


def designs_of(instance: Instance) -> Designs:
    """Every design that the instance ranges over, whether it meets the limits or not."""
    return _of_families(instance, tuple(families(instance)))


def with_design(designs: Designs, family: Family, uplinks: int) -> tuple[Designs, int]:
    """The designs, with one more where it is not among them, and the row of that one."""
    row = designs.row_of(family, uplinks)
    if row is not None:
        return designs, row
    addition = _of_families(designs.instance, (replace(family, uplink_choices=(uplinks,)),))
    return joint_designs(designs, addition), len(designs)


def _of_families(instance: Instance, families: tuple[Family, ...]) -> Designs:
    """Families with each of their uplinks, in their fastest times."""
    sizes = [len(family.uplink_choices) for family in families]
    family = np.repeat(np.arange(len(families)), sizes)
    uplinks = np.fromiter(
        (u for member in families for u in member.uplink_choices), dtype=np.int64, count=sum(sizes)
    )
    keys = [
        limit.key for limit in limits_of(instance)
    ]  # time bounds come first, one of each workload
    return with_bills(
        instance,
        families,
        family,
        uplinks,
        dict(zip(keys, _seconds(instance, families), strict=False)),
    )


def with_bills(
    instance: Instance,
    families: tuple[Family, ...],
    family: Ints,
    uplinks: Ints,
    times: dict[str, Floats],
) -> Designs:
    """Designs of known iteration times with their bills."""
    lines, counts = _line_counts(instance, families)
    usd = _sums(counts, [entry.unit_usd for entry in lines.values()])
    w = _sums(counts, [entry.unit_w for entry in lines.values()])
    caps = {limit.key: limit.cap for limit in limits_of(instance)}
    billed = {"capex": usd, "power": w, "tco": owned_usd(instance.objective, usd, w)}[
        instance.objective.billed
    ]
    racked = np.array([racks(entry) or 0 for entry in families], dtype=np.float64)[family]
    usage = instance.limits.against(usd=usd, w=w, racks=racked)
    uses = times | {f"limits.{key}": amount for key, (amount, _) in usage.items()}
    return Designs(
        instance=instance,
        families=families,
        family=family,
        uplinks=uplinks,
        lines=lines,
        counts=counts,
        billed=billed,
        value=_worth(instance, billed, next(iter(times.values()))),
        w=w,
        uses={key: uses[key] for key in caps},
        caps=caps,
    )


def joint_designs(designs: Designs, additions: Designs) -> Designs:
    """The designs of one instance, and then more of them."""
    lines = {
        **designs.lines,
        **{line: item for line, item in additions.lines.items() if line not in designs.lines},
    }
    place = {line: n for n, line in enumerate(lines)}
    counts = np.zeros((len(designs) + len(additions), len(lines)), dtype=np.int64)
    counts[: len(designs), : len(designs.lines)] = designs.counts
    counts[len(designs) :, [place[line] for line in additions.lines]] = additions.counts
    return Designs(
        instance=designs.instance,
        families=(*designs.families, *additions.families),
        family=np.concatenate([designs.family, len(designs.families) + additions.family]),
        uplinks=np.concatenate([designs.uplinks, additions.uplinks]),
        lines=lines,
        counts=counts,
        w=np.concatenate([designs.w, additions.w]),
        billed=np.concatenate([designs.billed, additions.billed]),
        value=np.concatenate([designs.value, additions.value]),
        uses={key: np.concatenate([use, additions.uses[key]]) for key, use in designs.uses.items()},
        caps=designs.caps,
    )


def _worth(instance: Instance, billed: Floats, seconds: Floats) -> Floats:
    """The objective of designs from the sums of their bills and the least iteration time of the
    first workload.
    """
    kind = instance.objective.minimize
    if kind == instance.objective.billed:
        return billed
    return np.asarray(
        weight_of(instance) * seconds * (1.0 if kind == "time" else billed), dtype=np.float64
    )


def _line_counts(instance: Instance, families: tuple[Family, ...]) -> tuple[dict[Line, Item], Ints]:
    """The lines of all bills, and how many of each every design buys; shape (designs, lines)."""
    lines: dict[Line, Item] = {}
    columns: dict[Line, list[tuple[int, Ints]]] = {}
    start = 0
    for family in families:
        u = np.array(family.uplink_choices)
        smallest_bill, largest_bill = (
            bill(instance, family, int(u[0])),
            bill(instance, family, int(u[-1])),
        )
        for at_fewest, at_most in zip(smallest_bill, largest_bill, strict=True):
            key = at_fewest.kind, at_fewest.item
            lines.setdefault(key, at_fewest)
            columns.setdefault(key, []).append((start, _of_line(family, u, at_fewest, at_most)))
        start += len(u)
    table = np.zeros((start, len(lines)), dtype=np.int64)
    for column, key in enumerate(lines):
        for begin, counts in columns[key]:
            table[begin : begin + len(counts), column] = counts
    return lines, table


def _of_line(family: Family, u: Ints, at_fewest: Item, at_most: Item) -> Ints:
    """A line of the bill at every number of uplinks: affine in them, on two tiers switches in the
    spines.
    """
    if family.tiers == 2 and at_fewest.kind == "switch":
        spines = family.spines(u)
        return np.asarray(
            at_fewest.count + family.all_planes * (spines - spines[0]), dtype=np.int64
        )
    added = (at_most.count - at_fewest.count) * (
        u - u[0]
    )  # a module may serve several of the uplinks that are offered
    return np.asarray(at_fewest.count + added // max(int(u[-1] - u[0]), 1), dtype=np.int64)


def _sums(counts: Ints, units: list[float]) -> Floats:
    """The sum of every bill, exactly as a bill is summed; shape (designs,)."""
    return np.array(
        [math.fsum(row) for row in (counts * np.array(units, dtype=np.float64)).tolist()],
        dtype=np.float64,
    )


def _seconds(instance: Instance, families: tuple[Family, ...]) -> list[Floats]:
    """The least iteration time of each workload on every design; infinite where no mapping fits."""
    choices = uplinks_by_context(families)
    domains = {family.hb.name: family.hb for family in families}
    seconds = []
    for w in range(len(instance.workload)):
        workload, gpu = without_bound(instance, w).workload[w], instance.cluster.gpu
        sources: dict[int, FeasibleMappings] = {
            n: feasible_mappings(workload, gpu, n) for n in dict.fromkeys(f.gpus for f in families)
        }
        times: dict[Context, Floats] = {}
        for site, site_choices in of_sites(choices).items():
            pool, _ = fastest_rows(sources[site.gpus], gpu, domains[site.hb], site_choices)
            times |= least_times_s(pool, site_choices)
        rows = (of_family(family, choices, times) for family in families)
        seconds.append(np.concatenate([np.empty(0), *rows]))
    return seconds
