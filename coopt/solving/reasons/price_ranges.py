r"""The range of each price within which a plan stays optimal, all other prices kept.

A design buys :math:`n_j` of what the price :math:`p` is for, so its objective is a straight line in
it, and so is what it takes of a budget. Design j takes over at prices where it is cheaper than the
plan, a half line, and keeps every limit, another half line: an interval on one side of today's
price. The range ends where the nearest one begins, or where the plan itself breaks a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from coopt.instance.couplings import OF_SUM
from coopt.instance.numerics import REORDERED
from coopt.instance.schema import Instance
from coopt.network.parts import HOURS_PER_YEAR
from coopt.perf.mapping import Bools, Floats, Ints
from coopt.plan.explanation import PriceRange
from coopt.plan.schema import Design, Item
from coopt.solving.reasons.designs import Designs, Line, joint_designs, with_bills
from coopt.solving.reasons.other_optics import Floors, with_other_optics, would_do

HAIR = 1e-9  # of what the plan costs: far above what sums lose by rounding
HIGHEST, HIGHEST_USD_PER_KWH = 1e9, 1e3
"""The largest prices an instance may hold."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """A price and how many of its units every design buys, labour and support of each included;
    `limit` is what a purchase takes of, where that is capped.

    `scale` turns what is bought at a unit of the price into the unit of the limit, `of_optic` has
    the units that a module of each optic takes, where it takes any, and `highest` is the largest
    price one may ask about.
    """

    item: str
    unit: str
    now: float
    bought: Floats
    limit: str
    scale: float
    of_optic: Mapping[str, float]
    highest: float = HIGHEST


def ranges_of(
    designs: Designs, plan_row: int, choices: Iterable[Designs] = ()
) -> tuple[PriceRange, ...]:
    """One for each price in the bill of some design, and for electricity where it counts.

    Parameters
    ----------
    choices
        The designs of the other choices of a question that leaves GPUs, batches or knobs open.
    """
    ranges = list(ranges_among(with_near_optics(designs, plan_row), plan_row))
    for choice in choices:
        if in_time(choice).any():
            row = len(choice)
            beside = joint_designs(choice, _as_of(choice, designs, plan_row))
            ranges += ranges_among(with_near_optics(beside, row, is_guest=True), row)
    range_of = dict[tuple[str, str], PriceRange]()
    for price_range in ranges:
        key = price_range.item, price_range.unit
        range_of[key] = _narrower(range_of[key], price_range) if key in range_of else price_range
    return tuple(range_of.values())


def _as_of(hosts: Designs, designs: Designs, index: int) -> Designs:
    """The chosen design among those of another choice, with as much room within its limits as it
    has of its own.
    """
    products = dict[Line, tuple[Item, int]]()
    for item, count in zip(designs.lines.values(), designs.counts[index].tolist(), strict=True):
        sold = item.product
        products[sold] = (
            designs.lines.get(sold, item),
            count + (products[sold][1] if sold in products else 0),
        )
    family, row = int(designs.family[index]), slice(index, index + 1)
    return Designs(
        instance=hosts.instance,
        families=(designs.families[family],),
        family=np.zeros(1, dtype=np.int64),
        uplinks=designs.uplinks[row],
        lines={line: item for line, (item, count) in products.items() if count},
        counts=np.array([[count for _, count in products.values() if count]], dtype=np.int64),
        w=designs.w[row],
        billed=designs.billed[row],
        value=designs.value[row],
        uses={
            key: use[row] / designs.caps[key] * hosts.caps[key] for key, use in designs.uses.items()
        },
        caps=hosts.caps,
    )


def _narrower(left: PriceRange, right: PriceRange) -> PriceRange:
    """The prices that two ranges share; a design that takes over at an end goes before a limit that
    is missed there.
    """
    lower = max(
        (left, right), key=lambda price_range: (price_range.low, price_range.below is not None)
    )
    upper = min(
        (left, right),
        key=lambda price_range: (
            np.inf if price_range.high is None else price_range.high,
            price_range.above is None,
        ),
    )
    return left.model_copy(
        update={"low": lower.low, "below": lower.below, "high": upper.high, "above": upper.above}
    )


def ranges_among(designs: Designs, row: int) -> Iterator[PriceRange]:
    """The same where designs with all other optics that may matter are listed."""
    for price in _prices(designs):
        if price.bought[designs.met()].any():
            yield _range(designs, row, price)


def with_near_optics(designs: Designs, row: int, *, is_guest: bool = False) -> Designs:
    """All designs, then those in time that other prices of optics or electricity would bring about.

    Of these the ones are left out that cost more than the plan at either end of every range,
    whatever optics they have. What a design costs at least is the least of sums that are each
    straight in a price, and so concave in it, while the plan's cost is straight: what costs more at
    both ends costs more in between, and ends no range. A plan that is a guest among the designs of
    another choice has its other optics where those of its own choice are.
    """
    family = int(designs.family[row])
    serving = np.unique(designs.family[in_time(designs)]).tolist()
    serving = [number for number in serving if not (is_guest and number == family)]
    key_of = {number: replace(designs.families[number], optics=()) for number in serving}
    key = key_of.get(family)
    wide = with_optics_of(designs, [number for number in serving if key_of[number] == key])
    promising = {key_of[number] for number in _near_families(wide, row, np.array(serving))}
    wide = with_optics_of(
        designs,
        [number for number in serving if key_of[number] == key or key_of[number] in promising],
    )
    # only what some design buys has a range: where these few leave out an optic, all designs are
    # listed
    return wide if not _lacks_optic(wide) else with_optics_of(designs, serving)


def in_time(designs: Designs) -> Bools:
    """The rows that keep every bound on time."""
    return designs.met(*(key for key in designs.uses if not key.startswith("workload")))


def with_optics_of(designs: Designs, numbers: list[int]) -> Designs:
    """All designs, then those of some families with other optics."""
    variants = with_other_optics(
        designs.instance, tuple(designs.families[number] for number in numbers)
    )
    pairs = tuple((numbers[place], family) for place, family in variants)
    if not pairs:
        return designs
    sizes = [len(family.uplink_choices) for _, family in pairs]
    starts = np.searchsorted(designs.family, np.arange(len(designs.families)))
    rows = np.concatenate(
        [starts[f] + np.arange(size) for (f, _), size in zip(pairs, sizes, strict=True)]
    )
    times = {key: use[rows] for key, use in designs.uses.items() if key.startswith("workload")}
    family, uplinks = np.repeat(np.arange(len(pairs)), sizes), designs.uplinks[rows]
    return joint_designs(
        designs,
        with_bills(designs.instance, tuple(family for _, family in pairs), family, uplinks, times),
    )


def _near_families(designs: Designs, row: int, serving: Ints) -> list[int]:
    """The families of which some design in time may cost no more than the plan at an end of the
    range of a price.
    """
    floors = Floors.of(designs, np.flatnonzero(in_time(designs) & np.isin(designs.family, serving)))
    is_near, value = np.zeros(len(floors.rows), dtype=np.bool_), float(designs.value[row])
    for price in (*_prices(designs), *_not_bought(designs)):
        price_range = _range(designs, row, price)
        for end in (
            price_range.low,
            price.highest if price_range.high is None else price_range.high,
        ):
            plan_value = value + (end - price.now) * price.bought[row]
            floor = floors.at(price.bought, price.of_optic, end - price.now)
            is_near |= floor <= plan_value + (abs(plan_value) + abs(value)) * HAIR
    return [int(number) for number in np.unique(designs.family[floors.rows[is_near]])]


def _not_bought(designs: Designs) -> Iterator[Price]:
    """The prices of optics that are in no bill."""
    watts, nothing = designs.instance.objective.minimize == "power", np.zeros(len(designs))
    usd = _usd_of_price(designs.instance)
    for optic in (
        designs.instance.network.optics if "optics" in designs.instance.objective.include else ()
    ):
        if ("optics", optic.name) not in designs.lines:
            unit, amount = ("W", optic.w) if watts else ("USD", optic.usd)
            yield Price(
                item=optic.name,
                unit=unit,
                now=amount,
                bought=nothing,
                limit="",
                scale=0.0,
                of_optic={optic.name: usd},
            )


def _lacks_optic(designs: Designs) -> bool:
    """Whether some optic that would do for links is bought by no design that keeps the limits."""
    is_bought = np.asarray(designs.counts[designs.met()].any(axis=0)).tolist()
    names = {
        name
        for (kind, name), is_in_use in zip(designs.lines, is_bought, strict=True)
        if is_in_use and kind == "optics"
    }
    serving = np.unique(designs.family[in_time(designs)]).tolist()
    return not would_do(designs.instance, [designs.families[number] for number in serving]) <= names


def _prices(designs: Designs) -> Iterator[Price]:
    instance = designs.instance
    watts, usd = instance.objective.minimize == "power", _usd_of_price(instance)
    key, per_limit = OF_SUM["power" if watts else "capex"]
    columns: dict[Line, list[int]] = {}
    for column, line in enumerate(designs.lines.values()):
        columns.setdefault(line.product, []).append(column)
    for (kind, item), indices in columns.items():
        unit = list(designs.lines.values())[indices[0]]
        units = designs.counts[:, indices].sum(axis=1) * usd
        optic = {item: usd} if kind == "optics" else {}
        sold_in, amount = ("W", unit.unit_w) if watts else ("USD", unit.unit_usd)
        limit, scale = f"limits.{key}", 1 / (usd * per_limit)
        yield Price(
            item=item,
            unit=sold_in,
            now=amount,
            bought=units,
            limit=limit,
            scale=scale,
            of_optic=optic,
        )
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


def _range(designs: Designs, row: int, price: Price) -> PriceRange:
    """Where the nearest interval of another design begins on either side."""
    met, ceilings = designs.met(price.limit), _dearest_within_limit(designs, price)
    units, extra = price.bought - price.bought[row], designs.value - designs.value[row]
    extra = np.where(np.abs(extra) <= abs(designs.value[row]) * REORDERED, 0.0, extra)
    with np.errstate(divide="ignore", invalid="ignore"):
        even = price.now - extra / units  # where the two straight lines cross
    # what buys more of it takes over below the crossing, what is cheaper today and over its budget
    # once that suffices
    cheaper_below = met & (units > 0)
    cheaper_within_budget = met & (extra < 0) & ((units == 0) | ((units < 0) & (even < ceilings)))
    lows = np.where(
        cheaper_below,
        np.minimum(even, ceilings),
        np.where(cheaper_within_budget, ceilings, -np.inf),
    )
    highs = np.where(met & (units < 0) & (extra >= 0) & (even < ceilings), even, np.inf)
    start, end, ceiling = float(lows.max()), float(highs.min()), float(ceilings[row])
    return PriceRange(
        item=price.item,
        unit=price.unit,
        now=price.now,
        low=start if start > price.now * REORDERED else 0.0,
        high=min(end, ceiling) if min(end, ceiling) < price.highest else None,
        below=_cheapest_design(designs, lows == start) if start > price.now * REORDERED else None,
        above=(
            _cheapest_design(designs, highs == end) if end < min(ceiling, price.highest) else None
        ),
    )


def _dearest_within_limit(designs: Designs, price: Price) -> Floats:
    """The price at which each design exhausts the limit on what it takes; infinite where none ever
    does.
    """
    if price.limit not in designs.caps:
        return np.full(len(designs), np.inf)
    room = designs.caps[price.limit] - designs.uses[price.limit]
    with np.errstate(divide="ignore", invalid="ignore"):
        bears = price.now + room / (price.bought * price.scale)
    return np.where(price.bought > 0, bears, np.where(room >= 0, np.inf, -np.inf))


def _cheapest_design(designs: Designs, among: Bools) -> Design:
    row = designs.cheapest(among)
    assert row is not None, "an end of a range is somebody's"
    return designs.design(row)
