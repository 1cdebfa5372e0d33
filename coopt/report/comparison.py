"""A plan beside others: the any-to-any network for the same domains, the runners-up, another
plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.question import BILLED
from coopt.plan.parts import Cost, Design
from coopt.plan.schema import ObjectiveClaim, Plan, Rivals
from coopt.report import words
from coopt.report.facts import nics_in_words, tiers_of
from coopt.report.words import FigureTable, figures

if TYPE_CHECKING:
    from coopt.network.plan_networks import Baseline
    from coopt.plan.difference import Difference, Value, ValueChange

ALONE = "One HB domain holds every GPU, so there is no network to compare."
NO_BASELINE = (
    "No any-to-any network of full bandwidth joins so many end points with the domains, NICs and"
    " switches of this plan, so no saving is stated."
)
NONE = "There is no runner-up."
AIM = "outlooks.aim"
"""The key of the aim in the difference of plans."""
STOPS = {
    "all found": "",
    "no other design": " No other design meets the bounds.",
    "time limit": " The time limit ended the search for more.",
    "interrupted": " The search for more was interrupted.",
    "not proven": " The solver gave no proof for further ones.",
}


def saving_tables(plan: Plan, baseline: Baseline | None) -> Iterator[RenderableType]:
    """What the only network saves in a sentence, and in a table where there is something to
    compare; what parts buy together has no one list of prices to compare it at.
    """
    design, cost = plan.design, plan.cost
    if design is None or cost is None or plan.couplings.growth or plan.couplings.sites:
        return
    yield saving_sentences(design, cost, baseline)
    if design.fabric.tiers and baseline is not None:
        yield saving_table(design, cost, baseline)


def saving_sentences(design: Design, cost: Cost, baseline: Baseline | None) -> str:
    """What the plan saves, or why that is not stated."""
    if design.fabric.tiers == 0:
        return ALONE
    if baseline is None:
        return NO_BASELINE
    sentences = (
        saving_sentence(cost, baseline.cost),
        alike_sentence(cost, baseline),
        network_sentence(cost, baseline.cost),
    )
    return " ".join(filter(None, sentences))


def saving_table(design: Design, cost: Cost, baseline: Baseline) -> FigureTable:
    """Purchase and power of both, and their difference."""
    reference, reference_cost = baseline.design, baseline.cost
    rows = [
        (
            "any-to-any",
            _network(reference),
            words.exact(reference_cost.capex_usd),
            words.exact(reference_cost.power_w),
        ),
        ("this plan", _network(design), words.exact(cost.capex_usd), words.exact(cost.power_w)),
    ]
    saved = (
        "saved",
        "",
        _saved(reference_cost.capex_usd, cost.capex_usd),
        _saved(reference_cost.power_w, cost.power_w),
    )
    return figures(
        "Against full bandwidth between any two GPUs",
        ("network", "built from"),
        ("$", "W"),
        rows,
        total=saved,
    )


def saving_sentence(cost: Cost, baseline_cost: Cost) -> str:
    """`Saves $58.5 M (38.3%) and 1.20 MW (41.0%) against ...`."""
    usd = baseline_cost.capex_usd - cost.capex_usd
    w = baseline_cost.power_w - cost.power_w
    money_text = f"{words.money(abs(usd))}{_share(usd, baseline_cost.capex_usd)}"
    power_text = f"{words.power(abs(w))}{_share(w, baseline_cost.power_w)}"
    if usd == w == 0:
        outcome = "costs and draws the same"
    elif _saves(usd) == _saves(w):
        outcome = f"{_saves(usd)} {money_text} and {power_text}"
    else:
        outcome = f"{_saves(usd)} {money_text} and {_saves(w)} {power_text}"
    return f"Against the cheapest any-to-any network of full bandwidth, this plan {outcome}."


def alike_sentence(cost: Cost, baseline: Baseline) -> str:
    """What joining rails would take at the plan's oversubscription; empty where the plan joins
    them, or has none.
    """
    if baseline.same_ratio is None:
        return ""
    usd = baseline.same_ratio.capex_usd - cost.capex_usd
    if usd == 0:
        return "An any-to-any network of the same oversubscription costs the same."
    change = "more" if usd > 0 else "less"
    costs = f"{words.money(abs(usd))}{_share(usd, cost.capex_usd)} {change}"
    return f"An any-to-any network of the same oversubscription costs {costs}."


def network_sentence(cost: Cost, baseline_cost: Cost) -> str:
    """Switches and optics alone, as studies of rail-only networks quote them; empty where there is
    no difference.
    """
    plan_usd, baseline_usd = (
        sum(item.usd for item in c.items if item.kind in ("switch", "optics"))
        for c in (cost, baseline_cost)
    )
    if not baseline_usd or plan_usd == baseline_usd:
        return ""
    change = "less" if plan_usd <= baseline_usd else "more"
    share = words.percent(abs(baseline_usd - plan_usd) / baseline_usd)
    return (
        f"Switches and optics alone cost {words.money(plan_usd)} against"
        f" {words.money(baseline_usd)}, {share} {change}."
    )


def _network(design: Design) -> str:
    fabric = design.fabric
    if not fabric.tiers:
        return "no network"
    switches = words.times(fabric.switch_count, fabric.switch_text)
    return f"{tiers_of(fabric)}, {switches}"


def _saved(reference: float, value: float) -> str:
    return f"{words.exact(reference - value)}{_share(reference - value, reference)}"


def _share(difference: float, reference: float) -> str:
    return f" ({words.percent(abs(difference) / reference)})" if reference else ""


def _saves(difference: float) -> str:
    return "saves" if difference >= 0 else "adds"


def runners_tables(plan: Plan) -> Iterator[RenderableType]:
    """What each runner-up changes and how much more it takes; what is proven about them, and why
    there are no more; nothing where none was asked for.
    """
    if plan.alternatives_stop is None:
        return
    if plan.alternatives:
        yield runners_table(plan)
    proof = "Each is proven to be the best of the designs not listed before it."
    yield (proof if plan.alternatives else NONE) + STOPS[plan.alternatives_stop]


def runners_table(plan: Plan) -> FigureTable:
    """The next best designs by what they change, and how much more they take."""
    design, value = plan.design, plan.objective.value
    assert design is not None
    assert value is not None
    rows = []
    for rank, runner in enumerate(plan.alternatives, start=2):
        excess = runner.cost.of(plan.objective.kind) - value
        share = words.percent(excess / value) if value else "-"
        slack = min(run.slack for run in runner.workloads)
        rows.append(
            (
                str(rank),
                differences(design, runner.design),
                words.exact(excess),
                share,
                words.percent(slack),
            )
        )
    unit = "W" if plan.objective.kind == "power" else "$"
    return figures(
        "Runners-up", ("rank", "in place of the plan's"), (f"more {unit}", "more", "slack"), rows
    )


def differences(best_design: Design, other_design: Design) -> str:
    """`128x400g switches; 2 tiers`: what the other design has that the best has not."""
    best_parts, other_parts = _parts(best_design), _parts(other_design)
    changes = [text for key, text in other_parts.items() if text != best_parts.get(key)]
    gone = ["no network"] if best_design.fabric.tiers and not other_design.fabric.tiers else []
    return "; ".join(changes + gone) or "other counts"


def _parts(design: Design) -> dict[str, str]:
    """A design in words, by what can differ."""
    domain, fabric = design.hb_domain, design.fabric
    idle = "" if domain.active == domain.size else f" with {words.count(domain.active)} active"
    parts = {
        "gpus": words.counted(design.gpus, "GPU"),
        "domain": f"{words.times(domain.count, domain.name)}{idle}",
    }
    if not fabric.tiers:
        return parts
    parts |= {
        "fabric": f"{tiers_of(fabric)}",
        "nic": nics_in_words(fabric.nic),
        "switch": f"switches {fabric.switch_text}",
    }
    if fabric.tiers > 1:
        leaf = fabric.tier[0]
        ports = (
            f"{words.count(leaf.down_ports)} down,"
            f" {words.counted(leaf.uplinks_per_switch, 'uplink')} a leaf"
        )
        bundles = f" in bundles of {fabric.pod_bundle}" if fabric.pod_bundle > 1 else ""
        parts["ports"] = f"{ports}{bundles} ({words.ratio(fabric.oversubscription)})"
    return parts


def rivals_sentence(rivals: Rivals) -> str:
    """What the cheapest cluster with direct links costs, and the cheapest with switches."""
    return (
        f"With direct links {_claim_text(rivals.direct)}. With switches"
        f" {_claim_text(rivals.switched)}."
    )


def _claim_text(claim: ObjectiveClaim) -> str:
    if claim.value is not None:
        gap = "nothing is proven" if claim.gap is None else f"gap {words.percent(claim.gap)}"
        verb = "draws" if claim.kind == "power" else "costs"
        return f"the best cluster found {verb} {words.amount(claim.kind, claim.value)} ({gap})"
    if claim.bound is not None:
        return (
            "no better cluster was found, and none is below"
            f" {words.amount(claim.kind, claim.bound)}"
        )
    return "no cluster was found"


def difference_report(difference: Difference) -> Iterator[RenderableType]:
    """A sentence, then every value and every line of the bill that changes."""
    before, after = difference.before, difference.after
    yield Text(difference_headline(difference), style="bold")
    if before.sha256 != after.sha256:
        both = f", both named {before.name}"
        names = both if before.name == after.name else f": {before.name} and {after.name}"
        yield f"The plans answer different questions{names}."
    yield from _counted_once(difference)
    aims = [(one.before, one.after) for one in difference.changes if one.key == AIM]
    if any("worst-case" in pair for pair in aims):
        yield (
            "The bill of a plan that aims at the worst case is at the worst prices, another at"
            " those of its instance."
        )
    # Against nothing every value differs, and a table of all of them says no more than the
    # sentence.
    if _one_builds_nothing(difference):
        return
    if difference.changes:
        rows = [
            (
                one.key,
                _value_text(one.before),
                _value_text(one.after),
                _change(one.before, one.after),
            )
            for one in difference.changes
        ]
        yield figures("What changes", ("value",), ("before", "after", "change"), rows)
    if difference.bill:
        lines = [
            (
                line.item,
                words.kind(line.kind),
                *map(words.count, (line.before, line.after)),
                *map(_signed_number, (line.usd, line.w)),
            )
            for line in difference.bill
        ]
        sums = (sum(getattr(line, name) for line in difference.bill) for name in ("usd", "w"))
        total = ("total", "", "", "", *map(_signed_number, sums))
        numbers = ("before", "after", "change $", "change W")
        yield figures("Bill of materials", ("item", "kind"), numbers, lines, total=total)


def _counted_once(difference: Difference) -> Iterator[str]:
    """That one bill lists GPUs and the other none, so that their totals are of different things."""
    lines = [line for line in difference.bill if line.kind == "gpu"]
    gpus_before, gpus_after = sum(line.before for line in lines), sum(line.after for line in lines)
    if bool(gpus_before) != bool(gpus_after):
        counting = "first" if gpus_before else "second"
        yield (
            f"Only the {counting} bill lists GPUs: totals count the same where both list them in"
            " objective.include."
        )


def difference_headline(difference: Difference) -> str:
    """`The second plan costs $66.8 M less and draws 1.20 MW less.`"""
    if not difference.changes and not difference.bill:
        return "The plans do not differ."
    changes = {change.key: change for change in difference.changes}
    parts = [
        text
        for key, words_around, number in _told_first(difference)
        if (change := changes.get(key)) and (text := _movement(change, words_around, number))
    ]
    if parts:
        return f"The second plan {words.both(parts)}."
    if "status" in changes:
        nothing = "; one of them builds nothing" if _one_builds_nothing(difference) else ""
        return (
            f"The first plan is {changes['status'].before}, the second"
            f" {changes['status'].after}{nothing}."
        )
    return "The plans cost the same and differ otherwise."


def _one_builds_nothing(difference: Difference) -> bool:
    return any(
        change.key == "cost.capex_usd" and None in (change.before, change.after)
        for change in difference.changes
    )


def _told_first(difference: Difference) -> Iterator[tuple[str, str, Callable[[float], str]]]:
    """What the sentence tells: what the plans minimise, and what it is made of."""
    billed = BILLED.get(difference.minimize) if difference.minimize else None
    # `difference_of` compares the values of objectives of plans of least regret alone
    yield "objective.value", "has {} regret", words.power if billed == "power" else words.money
    if billed == "tco":
        yield "cost.tco_usd", "costs {} in total", words.money
        yield "cost.capex_usd", "takes {} to buy", words.money
    else:
        yield "cost.capex_usd", "costs {}", words.money
    yield "cost.power_w", "draws {}", words.power


def _movement(change: ValueChange, words_around: str, number: Callable[[float], str]) -> str:
    if not isinstance(change.before, float) or not isinstance(change.after, float):
        return ""
    increase = change.after - change.before
    return words_around.format(f"{number(abs(increase))} {'more' if increase > 0 else 'less'}")


def _value_text(value: Value) -> str:
    if value is None or isinstance(value, bool | str):
        return {None: "-", True: "yes", False: "no"}.get(value, str(value))  # type: ignore[arg-type]
    if isinstance(value, int) or abs(value) >= 1e6:
        return f"{value:,.0f}"
    return f"{value:,.6g}"


def _change(old: Value, new: Value) -> str:
    """`+4` for counts, `-17.8%` for what is measured."""
    if isinstance(old, bool | str | None) or isinstance(new, bool | str | None):
        return ""
    if isinstance(old, int) and isinstance(new, int):
        return f"{new - old:+,}"
    return f"{new / old - 1:+.1%}" if old else ""


def _signed_number(value: float) -> str:
    return f"{value:+,.0f}" if value else "0"
