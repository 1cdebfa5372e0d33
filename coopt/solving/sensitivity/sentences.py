"""What was found out about a plan of any question, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.schema import ObjectiveKind
from coopt.plan.explanation import Bound, PriceRange, Relaxation, Rival
from coopt.solving.reasons.labels import (
    SAYINGS,
    changes_of,
    costs,
    costs_more,
    dearer_by,
    limit_name,
    number,
    sentence,
    uses,
    with_unit,
)

NO_BOUND = 1e4  # times as loose is as good as gone
COUNTED = ("GPUs", "channels", "products")  # units of which a step is one


def of_bound(kind: ObjectiveKind, value: float, one: Bound) -> Iterator[str]:
    """Whether it binds, and what more or less of it costs."""
    saying, best = SAYINGS[kind], f"the {SAYINGS[kind].best} plan {SAYINGS[kind].does}"
    name, taken = sentence(limit_name(one.limit)), "" if one.used is None else f": the plan {_takes(one)}"
    if one.without is None:
        yield f"{name} does not bind{taken}, and no plan {saying.better}{_even(one)} {_gone(one)}."
    else:
        gone = dearer_by(kind, one.without.extra, value)
        step = ""
        if one.looser is not None:
            price = _price(kind, value, one.looser.extra)
            step = f", and with {with_unit(one.looser.bound, one.unit)} it {saying.does} {price}"
        yield f"{name} binds{taken}; {_gone(one)} {best} {gone}{step}."
    if one.step is not None and one.tighter is None and _was_tightened(one):
        yield f"With {one.limit} {_step(one)}, no plan keeps the other limits."
    elif one.tighter is not None:
        least = with_unit(one.tighter.bound, one.unit)
        yield f"With {one.limit} = {least} {best} {_price(kind, value, one.tighter.extra)}."


def _step(one: Bound) -> str:
    """How much tighter it was made than what the plan takes."""
    assert one.step is not None
    if one.used is not None and one.unit in COUNTED:
        fewer = max(1, round(one.step * one.used))
        return f"= {with_unit(one.used - fewer, one.unit)}, {fewer:,} fewer than the plan uses"
    return f"{one.step:.0%} tighter than what the plan {'makes' if one.unit == 'tokens/s' else uses(one.unit)}"


def _was_tightened(one: Bound) -> bool:
    """Whether there was less to ask for than the plan takes: less than none, or than one of what counts, is nothing."""
    return one.used is None or one.used > (1 if one.unit in COUNTED else 0)


def _gone(one: Bound) -> str:
    """How loose the bound was made at most; a core stays, however slow."""
    assert one.loosest is not None
    if one.unit == "Gbit/s":
        return "at a rate near 0"
    wide = max(one.loosest, one.bound) / min(one.loosest, one.bound)
    return "without it" if wide >= NO_BOUND else f"with {with_unit(one.loosest, one.unit)}"


def _even(one: Bound) -> str:
    return " even" if _gone(one).startswith("with ") else ""


def _takes(one: Bound) -> str:
    assert one.used is not None
    if one.unit == "tokens/s":
        return f"makes {number(one.used)} {one.unit} and has to make {number(one.bound)} {one.unit}"
    used = number(one.used) if one.unit in COUNTED else with_unit(one.used, one.unit)
    return f"{uses(one.unit)} {used} of {with_unit(one.bound, one.unit)}"


def _price(kind: ObjectiveKind, value: float, extra: float) -> str:
    return "the same" if abs(extra) <= abs(value) * 1e-8 else dearer_by(kind, extra, value)


def of_rival(kind: ObjectiveKind, value: float, one: Rival) -> str:
    """`network.nics without cx7-400g: $1,200 more (+3%): 8 more NICs ($1,200).`"""
    choice = f"{one.part} without {one.choice}" if one.excluded else f"{one.part} = {one.choice} alone"
    if one.extra is None:
        return f"{choice}: no plan keeps every limit; {one.why}."
    if _price(kind, value, one.extra) == "the same":
        return f"{choice}: the {SAYINGS[kind].best} plan {SAYINGS[kind].same}."
    return f"{choice}: the {SAYINGS[kind].best} plan {costs_more(kind, one.extra, value)}: {one.why}."


def of_prices(ranges: tuple[PriceRange, ...]) -> str:
    """The price that has to move least to change the plan."""
    ends = [(one, end) for one in ranges for end in _ends(one)]
    if not ends:
        items = ", ".join(one.item for one in ranges)
        return f"The plan stays the best at all prices that were tried, one at a time, of {items}."
    one, end = min(ends, key=lambda pair: abs(pair[1] / pair[0].now - 1))
    way = "above" if end >= one.now else "below"
    return (
        f"The nearest price that changes the plan is that of {one.item}: {way} {end:,.6g} {one.unit} "
        f"(now {one.now:,.6g}, {end / one.now - 1:+.1%}) another plan is cheaper."
    )


def _ends(one: PriceRange) -> Iterator[float]:
    """The ends of a range at which another plan takes over."""
    assert one.tried is not None
    if one.low > one.tried[0]:
        yield one.low
    if one.high is not None:
        yield one.high


def of_relaxation(kind: ObjectiveKind, one: Relaxation) -> str:
    """`It is enough to set x = 3 (now 2, +50.00%): the cheapest plan then costs $12,345.`"""
    return f"It is enough to set {changes_of(one)}: the {SAYINGS[kind].best} plan then {costs(kind, one.value)}."
