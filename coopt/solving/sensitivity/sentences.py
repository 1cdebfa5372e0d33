"""What was found by solving changed questions, in sentences."""

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

NO_BOUND = 1e4  # a bound so many times as loose is taken for none
REGRETS = (
    "Costs below are regrets: what a plan costs more than the best one, whatever prices come. Each"
    " is measured from the best plans of the question as asked; where a bound is looser a plan may"
    " cost less than they do."
)
REGRETS_OF_WAYS_OUT = (
    "These costs are regrets, each measured from the best plans with the same change, so that they"
    " do not compare."
)
COUNTED = ("GPUs", "channels", "products")  # units of which a step is one


def of_bound(
    kind: ObjectiveKind, share_of: float | None, bound: Bound, *, optimal: bool = True
) -> Iterator[str]:
    """Whether it binds, and what more or less of it costs, also as a share of such a value where
    there is one.
    """
    saying, subject = SAYINGS[kind], f"the {SAYINGS[kind].best} plan {SAYINGS[kind].does}"
    name, use_text = (
        sentence(limit_name(bound.limit)),
        "" if bound.used is None else f": the plan {_takes(bound)}",
    )
    if bound.without is None:
        than = "" if optimal else f" than the {saying.best} within all bounds"
        yield (
            f"{name} does not bind{use_text}, and no plan {saying.better}{than}{_even(bound)}"
            f" {_gone(bound)}."
        )
    else:
        price_text = dearer_by(kind, bound.without.extra, share_of)
        step = ""
        if bound.looser is not None and bound.looser.bound != bound.without.bound:
            price = _price(kind, share_of, bound.looser.extra)
            step = (
                f", and with {with_unit(bound.looser.bound, bound.unit)} it {saying.does} {price}"
            )
        yield f"{name} binds{use_text}; {_gone(bound)} {subject} {price_text}{step}."
    if bound.step is not None and bound.tighter is None and _was_tightened(bound):
        yield f"With {bound.limit} {_step(bound)}, no plan keeps the other limits."
    elif bound.tighter is not None:
        number_text = with_unit(bound.tighter.bound, bound.unit)
        yield (
            f"With {bound.limit} = {number_text} {subject}"
            f" {_price(kind, share_of, bound.tighter.extra)}."
        )


def _step(bound: Bound) -> str:
    """How much tighter it was made than what the plan takes."""
    assert bound.step is not None
    if bound.used is not None and bound.unit in COUNTED:
        fewer = max(1, round(bound.step * bound.used))
        return f"= {with_unit(bound.used - fewer, bound.unit)}, {fewer:,} fewer than the plan uses"
    return (
        f"{bound.step:.0%} tighter than what the plan"
        f" {'makes' if bound.unit == 'tokens/s' else uses(bound.unit)}"
    )


def _was_tightened(bound: Bound) -> bool:
    """Whether there was less to ask for than the plan takes: less than none, or than one of what
    counts, is nothing.
    """
    return bound.used is None or bound.used > (1 if bound.unit in COUNTED else 0)


def _gone(bound: Bound) -> str:
    """How loose the bound was made at most; a core stays, however slow."""
    assert bound.loosest is not None
    if bound.unit == "Gbit/s":
        return "at a rate near 0"
    wide = max(bound.loosest, bound.bound) / min(bound.loosest, bound.bound)
    return "without it" if wide >= NO_BOUND else f"with {with_unit(bound.loosest, bound.unit)}"


def _even(bound: Bound) -> str:
    return " even" if _gone(bound).startswith("with ") else ""


def _takes(bound: Bound) -> str:
    assert bound.used is not None
    if bound.unit == "tokens/s":
        return (
            f"makes {number(bound.used)} {bound.unit} and has to make {number(bound.bound)}"
            f" {bound.unit}"
        )
    use_text = number(bound.used) if bound.unit in COUNTED else with_unit(bound.used, bound.unit)
    return f"{uses(bound.unit)} {use_text} of {with_unit(bound.bound, bound.unit)}"


def _price(kind: ObjectiveKind, share_of: float | None, extra: float) -> str:
    return (
        "the same"
        if abs(extra) <= abs(share_of or 0.0) * 1e-8
        else dearer_by(kind, extra, share_of)
    )


def of_rival(kind: ObjectiveKind, share_of: float | None, rival: Rival) -> str:
    """`network.nics without cx7-400g: $1,200 more (+3%): 8 more NICs ($1,200).`"""
    choice = (
        f"{rival.part} without {rival.choice}"
        if rival.excluded
        else f"{rival.part} = {rival.choice} alone"
    )
    if rival.extra is None:
        return f"{choice}: no plan keeps every limit; {rival.why}."
    if _price(kind, share_of, rival.extra) == "the same":
        return f"{choice}: the {SAYINGS[kind].best} plan {SAYINGS[kind].same}."
    return (
        f"{choice}: the {SAYINGS[kind].best} plan {costs_more(kind, rival.extra, share_of)}:"
        f" {rival.why}."
    )


def of_prices(ranges: tuple[PriceRange, ...], *, is_all: bool = True) -> str:
    """The price that has to move least to change the plan, of those answered where these are not
    all.
    """
    ends = [(price_range, end) for price_range in ranges for end in _ends(price_range)]
    if not ends:
        items = ", ".join(price_range.item for price_range in ranges)
        return f"The plan stays the best at all prices that were tried, one at a time, of {items}."
    price_range, end = min(ends, key=lambda pair: abs(pair[1] / pair[0].now - 1))
    way = "above" if end >= price_range.now else "below"
    nearest = (
        "The nearest price that" if is_all else "Of the prices that were tried, the nearest that"
    )
    return (
        f"{nearest} changes the plan is that of {price_range.item}: {way} {end:,.6g}"
        f" {price_range.unit} (now {price_range.now:,.6g}, {end / price_range.now - 1:+.1%})"
        " another plan is cheaper."
    )


def _ends(price_range: PriceRange) -> Iterator[float]:
    """The ends of a range at which another plan takes over."""
    assert price_range.tried is not None
    if price_range.low > price_range.tried[0]:
        yield price_range.low
    if price_range.high is not None:
        yield price_range.high


def of_relaxation(kind: ObjectiveKind, relaxation: Relaxation) -> str:
    """`It is enough to set x = 3 (now 2, +50.00%): the cheapest plan then costs $12,345.`"""
    outcome = f"the {SAYINGS[kind].best} plan then {costs(kind, relaxation.value)}."
    return " ".join([f"It is enough to set {changes_of(relaxation)}: {outcome}", *relaxation.notes])
