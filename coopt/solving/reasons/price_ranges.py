r"""The range of each price within which a plan stays optimal, all other prices kept.

A design buys :math:`n_j` of what the price :math:`p` is for, so its objective is a straight line in it, and so is what
it takes of a budget. Design j takes over at prices where it is cheaper than the plan, a half line, and keeps every
limit, another half line: an interval on one side of today's price. The range ends where the nearest one begins, or
where the plan itself breaks a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from coopt.instance.couplings import OF_SUM
from coopt.instance.schema import Instance
from coopt.network.parts import HOURS_PER_YEAR
from coopt.perf.mapping import Bools, Floats, Ints
from coopt.plan.explanation import PriceRange
from coopt.plan.schema import Design, Item
from coopt.solving.reasons.designs import ROUNDING, Designs, Line, joined, priced
from coopt.solving.reasons.other_optics import Floors, with_other_optics, would_do

HAIR = 1e-9  # of what the plan costs: far above what sums lose by rounding
HIGHEST, HIGHEST_USD_PER_KWH = 1e9, 1e3
"""The largest prices an instance may hold."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """A price and how many of its units every design buys, labour and support of each included; `limit` is what a
    purchase takes of, where that is capped.

    `scale` turns what is bought at a unit of the price into the unit of the limit, `of_optic` has the units that a
    module of each optic takes, where it takes any, and `highest` is the largest price one may ask about.
    """

    item: str
    unit: str
    now: float
    bought: Floats
    limit: str
    scale: float
    of_optic: Mapping[str, float]
    highest: float = HIGHEST


def ranges_of(designs: Designs, chosen: int, others: Iterable[Designs] = ()) -> tuple[PriceRange, ...]:
    """One for each price in the bill of some design, and for electricity where it counts.

    Parameters
    ----------
    others
        The designs of the other choices of a question that leaves GPUs, batches or knobs open.
    """
    ranges = list(ranges_among(with_near_optics(designs, chosen), chosen))
    for other in others:
        if in_time(other).any():
            row = len(other)
            beside = joined(other, _as_of(other, designs, chosen))
            ranges += ranges_among(with_near_optics(beside, row, is_guest=True), row)
    found = dict[tuple[str, str], PriceRange]()
    for one in ranges:
        key = one.item, one.unit
        found[key] = _narrower(found[key], one) if key in found else one
    return tuple(found.values())


def _as_of(other: Designs, designs: Designs, chosen: int) -> Designs:
    """The chosen design among those of another choice, with as much room within its limits as it has of its own."""
    bought = dict[Line, tuple[Item, int]]()
    for item, count in zip(designs.lines.values(), designs.counts[chosen].tolist(), strict=True):
        sold = item.product
        bought[sold] = designs.lines.get(sold, item), count + (bought[sold][1] if sold in bought else 0)
    family, row = int(designs.family[chosen]), slice(chosen, chosen + 1)
    return Designs(
        instance=other.instance,
        families=(designs.families[family],),
        family=np.zeros(1, dtype=np.int64),
        uplinks=designs.uplinks[row],
        lines={line: item for line, (item, count) in bought.items() if count},
        counts=np.array([[count for _, count in bought.values() if count]], dtype=np.int64),
        w=designs.w[row],
        billed=designs.billed[row],
        value=designs.value[row],
        uses={key: use[row] / designs.caps[key] * other.caps[key] for key, use in designs.uses.items()},
        caps=other.caps,
    )


def _narrower(one: PriceRange, other: PriceRange) -> PriceRange:
    """The prices that two ranges share; a design that takes over at an end goes before a limit that is missed there."""
    low = max((one, other), key=lambda found: (found.low, found.below is not None))
    high = min((one, other), key=lambda found: (np.inf if found.high is None else found.high, found.above is None))
    return one.model_copy(update={"low": low.low, "below": low.below, "high": high.high, "above": high.above})


def ranges_among(designs: Designs, chosen: int) -> Iterator[PriceRange]:
    """The same where designs with all other optics that may matter are listed."""
    for price in _prices(designs):
        if price.bought[designs.met()].any():
            yield _range(designs, chosen, price)


def with_near_optics(designs: Designs, chosen: int, *, is_guest: bool = False) -> Designs:
    """All designs, then those in time that other prices of optics or electricity would bring about.

    Of these the ones are left out that cost more than the plan at either end of every range, whatever optics they have.
    What a design costs at least is the least of sums that are each straight in a price, and so concave in it, while the
    plan's cost is straight: what costs more at both ends costs more in between, and ends no range. A plan that is a
    guest among the designs of another choice has its other optics where those of its own choice are.
    """
    family = int(designs.family[chosen])
    serving = np.unique(designs.family[in_time(designs)]).tolist()
    serving = [number for number in serving if not (is_guest and number == family)]
    bare = {number: replace(designs.families[number], optics=()) for number in serving}
    own = bare.get(family)
    wide = with_optics_of(designs, [number for number in serving if bare[number] == own])
    near = {bare[number] for number in _near(wide, chosen, np.array(serving))}
    wide = with_optics_of(designs, [number for number in serving if bare[number] == own or bare[number] in near])
    return wide if not _missing(wide) else with_optics_of(designs, serving)


def in_time(designs: Designs) -> Bools:
    """The rows that keep every bound on time."""
    return designs.met(*(key for key in designs.uses if not key.startswith("workload")))


def with_optics_of(designs: Designs, numbers: list[int]) -> Designs:
    """All designs, then those of some families with other optics."""
    listed = with_other_optics(designs.instance, tuple(designs.families[number] for number in numbers))
    others = tuple((numbers[place], family) for place, family in listed)
    if not others:
        return designs
    sizes = [len(family.uplink_choices) for _, family in others]
    starts = np.searchsorted(designs.family, np.arange(len(designs.families)))
    rows = np.concatenate([starts[f] + np.arange(size) for (f, _), size in zip(others, sizes, strict=True)])
    times = {key: use[rows] for key, use in designs.uses.items() if key.startswith("workload")}
    family, uplinks = np.repeat(np.arange(len(others)), sizes), designs.uplinks[rows]
    return joined(designs, priced(designs.instance, tuple(family for _, family in others), family, uplinks, times))


def _near(designs: Designs, chosen: int, serving: Ints) -> list[int]:
    """The families of which some design in time may cost no more than the plan at an end of the range of a price."""
    floors = Floors.of(designs, np.flatnonzero(in_time(designs) & np.isin(designs.family, serving)))
    near, value = np.zeros(len(floors.rows), dtype=np.bool_), float(designs.value[chosen])
    for price in (*_prices(designs), *_not_bought(designs)):
        found = _range(designs, chosen, price)
        for end in (found.low, price.highest if found.high is None else found.high):
            own = value + (end - price.now) * price.bought[chosen]
            least = floors.at(price.bought, price.of_optic, end - price.now)
            near |= least <= own + (abs(own) + abs(value)) * HAIR
    return [int(number) for number in np.unique(designs.family[floors.rows[near]])]


def _not_bought(designs: Designs) -> Iterator[Price]:
    """The prices of optics that are in no bill."""
    watts, nothing = designs.instance.objective.minimize == "power", np.zeros(len(designs))
    each = _usd_of_price(designs.instance)
    for optic in designs.instance.network.optics if "optics" in designs.instance.objective.include else ():
        if ("optics", optic.name) not in designs.lines:
            unit, now = ("W", optic.w) if watts else ("USD", optic.usd)
            yield Price(
                item=optic.name, unit=unit, now=now, bought=nothing, limit="", scale=0.0, of_optic={optic.name: each}
            )


def _missing(designs: Designs) -> bool:
    """Whether some optic that would do for links is bought by no design that keeps the limits."""
    bought = np.asarray(designs.counts[designs.met()].any(axis=0)).tolist()
    known = {name for (kind, name), some in zip(designs.lines, bought, strict=True) if some and kind == "optics"}
    serving = np.unique(designs.family[in_time(designs)]).tolist()
    return not would_do(designs.instance, [designs.families[number] for number in serving]) <= known


def _prices(designs: Designs) -> Iterator[Price]:
    instance = designs.instance
    watts, each = instance.objective.minimize == "power", _usd_of_price(instance)
    key, per_limit = OF_SUM["power" if watts else "capex"]
    columns: dict[Line, list[int]] = {}
    for column, line in enumerate(designs.lines.values()):
        columns.setdefault(line.product, []).append(column)
    for (kind, item), which in columns.items():
        unit = list(designs.lines.values())[which[0]]
        bought = designs.counts[:, which].sum(axis=1) * each
        optic = {item: each} if kind == "optics" else {}
        sold_in, now = ("W", unit.unit_w) if watts else ("USD", unit.unit_usd)
        limit, scale = f"limits.{key}", 1 / (each * per_limit)
        yield Price(item=item, unit=sold_in, now=now, bought=bought, limit=limit, scale=scale, of_optic=optic)
    if instance.objective.minimize == "tco":
        objective = instance.objective
        kwh_per_w = objective.years * HOURS_PER_YEAR / 1000 * objective.pue
        yield Price(
            item="electricity",
            unit="USD/kWh",
            now=objective.usd_per_kwh,
            bought=designs.w * kwh_per_w,
            limit="",
            scale=0.0,
            of_optic={optic.name: optic.w * kwh_per_w for optic in instance.network.optics},
            highest=HIGHEST_USD_PER_KWH,
        )


def _usd_of_price(instance: Instance) -> float:
    """What the objective takes of each USD of a price, or of each watt."""
    return instance.objective.owned_share if instance.objective.minimize == "tco" else 1.0


def _range(designs: Designs, chosen: int, price: Price) -> PriceRange:
    """Where the nearest interval of another design begins on either side."""
    met, most = designs.met(price.limit), _dearest_within_limit(designs, price)
    more, extra = price.bought - price.bought[chosen], designs.value - designs.value[chosen]
    extra = np.where(np.abs(extra) <= abs(designs.value[chosen]) * ROUNDING, 0.0, extra)
    with np.errstate(divide="ignore", invalid="ignore"):
        even = price.now - extra / more
    cheaper_below = met & (more > 0)
    cheaper_within_budget = met & (extra < 0) & ((more == 0) | ((more < 0) & (even < most)))
    lows = np.where(cheaper_below, np.minimum(even, most), np.where(cheaper_within_budget, most, -np.inf))
    highs = np.where(met & (more < 0) & (extra >= 0) & (even < most), even, np.inf)
    low, high, own = float(lows.max()), float(highs.min()), float(most[chosen])
    return PriceRange(
        item=price.item,
        unit=price.unit,
        now=price.now,
        low=low if low > price.now * ROUNDING else 0.0,
        high=min(high, own) if min(high, own) < price.highest else None,
        below=_first(designs, lows == low) if low > price.now * ROUNDING else None,
        above=_first(designs, highs == high) if high < min(own, price.highest) else None,
    )


def _dearest_within_limit(designs: Designs, price: Price) -> Floats:
    """The price at which each design exhausts the limit on what it takes; infinite where none ever does."""
    if price.limit not in designs.caps:
        return np.full(len(designs), np.inf)
    left = designs.caps[price.limit] - designs.uses[price.limit]
    with np.errstate(divide="ignore", invalid="ignore"):
        bears = price.now + left / (price.bought * price.scale)
    return np.where(price.bought > 0, bears, np.where(left >= 0, np.inf, -np.inf))


def _first(designs: Designs, among: Bools) -> Design:
    row = designs.cheapest(among)
    assert row is not None, "an end of a range is somebody's"
    return designs.design(row)
