"""A plan beside others: the any-to-any network for the same domains, the runners-up, another plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.plan.difference import Difference, Value, ValueChange
from coopt.plan.schema import Cost, Design, ObjectiveClaim, Plan, Rivals
from coopt.report import words
from coopt.report.parts import tiers_of
from coopt.report.tables import Cell, FigureTable, figures

ALONE = "One HB domain holds every GPU, so there is no network to compare."
NO_BASELINE = "The catalog holds no full-bandwidth any-to-any network for this many end points, so no saving is stated."
NONE = "There is no runner-up."
STOPS = {
    "all found": "",
    "no other design": " No other design meets the bounds.",
    "time limit": " The time limit ended the search for more.",
    "interrupted": " The search for more was interrupted.",
    "not proven": " For more the solver gave no proof.",
}


def saving_tables(design: Design, cost: Cost, baseline: tuple[Design, Cost] | None) -> Iterator[RenderableType]:
    """What the plan saves in a sentence, and in a table where there is something to compare."""
    yield saving_sentences(design, cost, baseline)
    if design.fabric.tiers and baseline is not None:
        yield ""
        yield saving_table(design, cost, baseline)


def saving_sentences(design: Design, cost: Cost, baseline: tuple[Design, Cost] | None) -> str:
    """What the plan saves, or why that is not stated."""
    if design.fabric.tiers == 0:
        return ALONE
    if baseline is None:
        return NO_BASELINE
    return " ".join(filter(None, (saving_sentence(cost, baseline[1]), network_sentence(cost, baseline[1]))))


def saving_table(design: Design, cost: Cost, baseline: tuple[Design, Cost]) -> FigureTable:
    """Purchase and power of both, and their difference."""
    other, other_cost = baseline
    rows = [
        ("any-to-any", _network(other), words.exact(other_cost.capex_usd), words.exact(other_cost.power_w)),
        ("this plan", _network(design), words.exact(cost.capex_usd), words.exact(cost.power_w)),
    ]
    saved = ("saved", "", _saved(other_cost.capex_usd, cost.capex_usd), _saved(other_cost.power_w, cost.power_w))
    return figures(
        "Against full bandwidth between any two GPUs", ("network", "built from"), ("$", "W"), rows, total=saved
    )


def saving_sentence(cost: Cost, baseline_cost: Cost) -> str:
    """`Saves $58.5 M (38.3%) and 1.20 MW (41.0%) against ...`."""
    usd = baseline_cost.capex_usd - cost.capex_usd
    w = baseline_cost.power_w - cost.power_w
    spent = f"{words.money(abs(usd))}{_share(usd, baseline_cost.capex_usd)}"
    drawn = f"{words.power(abs(w))}{_share(w, baseline_cost.power_w)}"
    if usd == w == 0:
        outcome = "costs and draws the same"
    elif _saves(usd) == _saves(w):
        outcome = f"{_saves(usd)} {spent} and {drawn}"
    else:
        outcome = f"{_saves(usd)} {spent} and {_saves(w)} {drawn}"
    return f"Against the cheapest any-to-any network of full bandwidth, this plan {outcome}."


def network_sentence(cost: Cost, baseline_cost: Cost) -> str:
    """Switches and optics alone, as studies of rail-only networks quote them; empty where there is no difference."""
    ours, theirs = (
        sum(item.usd for item in c.items if item.kind in ("switch", "optics")) for c in (cost, baseline_cost)
    )
    if not theirs or ours == theirs:
        return ""
    change = "less" if ours <= theirs else "more"
    share = words.percent(abs(theirs - ours) / theirs)
    return f"Switches and optics alone cost {words.money(ours)} against {words.money(theirs)}, {share} {change}."


def _network(design: Design) -> str:
    fabric = design.fabric
    if not fabric.tiers:
        return "no network"
    switches = words.times(fabric.switch_count, fabric.switch.name)
    return f"{tiers_of(fabric)}, {switches}"


def _saved(reference: float, value: float) -> str:
    return f"{words.exact(reference - value)}{_share(reference - value, reference)}"


def _share(difference: float, reference: float) -> str:
    return f" ({words.percent(abs(difference) / reference)})" if reference else ""


def _saves(difference: float) -> str:
    return "saves" if difference >= 0 else "adds"


def runners_tables(plan: Plan) -> Iterator[RenderableType]:
    """What each runner-up changes and how much more it takes; what is proven about them."""
    if plan.alternatives:
        yield runners_table(plan)
    yield runners_sentence(plan)


def runners_sentence(plan: Plan) -> str:
    """What is proven about the runners-up, and why there are no more."""
    known = "Each is proven to be the best of the designs not listed before it." if plan.alternatives else NONE
    return known + STOPS.get(plan.alternatives_stop or "", "")


def runners_table(plan: Plan) -> FigureTable:
    """The next best designs by what they change, and how much more they take."""
    best, value = plan.design, plan.objective.value
    assert best is not None
    assert value is not None
    rows = []
    for rank, one in enumerate(plan.alternatives, start=2):
        more = one.cost.of(plan.objective.kind) - value
        share = words.percent(more / value) if value else "-"
        slack = min(1 - w.iteration_time_s / w.bound_s for w in one.workloads)
        rows.append((str(rank), differences(best, one.design), words.exact(more), share, words.percent(slack)))
    unit = "W" if plan.objective.kind == "power" else "$"
    return figures("Runners-up", ("rank", "in place of the plan's"), (f"more {unit}", "more", "slack"), rows)


def differences(best: Design, other: Design) -> str:
    """`128x400g switches; 2 tiers`: what the other design has that the best has not."""
    ours, theirs = _parts(best), _parts(other)
    changed = [text for key, text in theirs.items() if text != ours.get(key)]
    gone = ["no network"] if best.fabric.tiers and not other.fabric.tiers else []
    return "; ".join(changed + gone) or "other counts"


def _parts(design: Design) -> dict[str, str]:
    """A design in words, by what can differ."""
    domain, fabric = design.hb_domain, design.fabric
    idle = "" if domain.active == domain.size else f" with {words.count(domain.active)} active"
    parts = {"gpus": words.counted(design.gpus, "GPU"), "domain": f"{words.times(domain.count, domain.name)}{idle}"}
    if not fabric.tiers:
        return parts
    parts |= {
        "fabric": f"{tiers_of(fabric)}",
        "nic": f"{fabric.nic.per_gpu} x {fabric.nic.name} per GPU",
        "switch": f"switches {fabric.switch.name}",
    }
    if fabric.tiers > 1:
        leaf = fabric.tier[0]
        ports = f"{words.count(leaf.down_ports)} down, {words.counted(leaf.uplinks_per_switch, 'uplink')} a leaf"
        parts["ports"] = f"{ports} ({words.ratio(fabric.oversubscription)})"
    return parts


def rivals_sentence(rivals: Rivals) -> str:
    """What the cheapest of either kind costs."""
    return f"Direct links: {_standing(rivals.direct)}. Switches: {_standing(rivals.switched)}."


def _standing(claim: ObjectiveClaim) -> str:
    if claim.value is not None:
        gap = "nothing proven" if claim.gap is None else f"gap {words.percent(claim.gap)}"
        return f"{words.amount(claim.kind, claim.value)}, {gap}"
    if claim.bound is not None:
        return f"none cheaper found, none below {words.amount(claim.kind, claim.bound)}"
    return "none found"


def difference_report(found: Difference) -> Iterator[RenderableType]:
    """A sentence, then every value and every line of the bill that changes."""
    yield Text(difference_headline(found), style="bold")
    if found.before.sha256 != found.after.sha256:
        before, after = found.before.name, found.after.name
        named = f", both named {before}" if before == after else f": {before} and {after}"
        yield f"The plans answer different questions{named}."
    if any(one.key == "robust.aim" and "worst-case" in (one.before, one.after) for one in found.changes):
        yield "The bill of a plan that aims at the worst case is at the worst prices, another at those of its instance."
    if _one_builds_nothing(found):
        return
    if found.changes:
        yield ""
        yield figures("What changes", ("value",), ("before", "after", "change"), map(_row, found.changes))
    if found.bill:
        yield ""
        lines = [
            (one.item, one.kind, words.count(one.before), words.count(one.after), _signed(one.usd), _signed(one.w))
            for one in found.bill
        ]
        totals = (_signed(sum(one.usd for one in found.bill)), _signed(sum(one.w for one in found.bill)))
        numbers = ("before", "after", "change $", "change W")
        yield figures("Bill of materials", ("item", "kind"), numbers, lines, total=("total", "", "", "", *totals))


def difference_headline(found: Difference) -> str:
    """`The second plan costs $66.8 M less and draws 1.20 MW less.`"""
    if not found.changes and not found.bill:
        return "The plans do not differ."
    changed = {one.key: one for one in found.changes}
    parts = [
        text
        for key, verb, shown in (("cost.capex_usd", "costs", words.money), ("cost.power_w", "draws", words.power))
        if (one := changed.get(key)) and (text := _moved(one, verb, shown))
    ]
    if parts:
        return f"The second plan {' and '.join(parts)}."
    if "status" in changed:
        nothing = "; one of them builds nothing" if _one_builds_nothing(found) else ""
        return f"The first plan is {changed['status'].before}, the second {changed['status'].after}{nothing}."
    return "The plans cost the same and differ otherwise."


def _one_builds_nothing(found: Difference) -> bool:
    return any(one.key == "cost.capex_usd" and None in (one.before, one.after) for one in found.changes)


def _moved(one: ValueChange, verb: str, shown: Callable[[float], str]) -> str:
    if not isinstance(one.before, float) or not isinstance(one.after, float):
        return ""
    more = one.after - one.before
    return f"{verb} {shown(abs(more))} {'more' if more > 0 else 'less'}"


def _row(one: ValueChange) -> tuple[Cell, ...]:
    return one.key, _shown(one.before), _shown(one.after), _change(one.before, one.after)


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return words.yes_no(value)
    if isinstance(value, int):
        return words.count(value)
    return f"{value:,.6g}" if isinstance(value, float) and abs(value) < 1e6 else _long(value)


def _long(value: float | str) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else value


def _change(before: Value, after: Value) -> str:
    """`+4` for counts, `-17.8%` for what is measured."""
    if isinstance(before, bool | str | None) or isinstance(after, bool | str | None):
        return ""
    if isinstance(before, int) and isinstance(after, int):
        return f"{after - before:+,}"
    return f"{after / before - 1:+.1%}" if before else ""


def _signed(value: float) -> str:
    return f"{value:+,.0f}" if value else "0"
