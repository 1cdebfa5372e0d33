"""A design against the any-to-any network for the same HB domains."""

from __future__ import annotations

from coopt.plan.schema import Cost, Design
from coopt.report import words
from coopt.report.tables import Figures, figures

ALONE = "One HB domain holds every GPU, so there is no network to compare."
NO_BASELINE = "The catalog holds no full-bandwidth any-to-any network for this many end points, so no saving is stated."


def saving_sentences(design: Design, cost: Cost, baseline: tuple[Design, Cost] | None) -> str:
    """What the plan saves, or why that is not stated."""
    if design.fabric.tiers == 0:
        return ALONE
    if baseline is None:
        return NO_BASELINE
    return " ".join(filter(None, (saving_sentence(cost, baseline[1]), network_sentence(cost, baseline[1]))))


def saving_table(design: Design, cost: Cost, baseline: tuple[Design, Cost]) -> Figures:
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
    elif _verb(usd) == _verb(w):
        outcome = f"{_verb(usd)} {spent} and {drawn}"
    else:
        outcome = f"{_verb(usd)} {spent} and {_verb(w)} {drawn}"
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
    switches = f"{words.count(fabric.switch_count)} x {fabric.switch.name}"
    return f"{fabric.kind}, {words.counted(fabric.tiers, 'tier')}, {switches}"


def _saved(reference: float, value: float) -> str:
    return f"{words.exact(reference - value)}{_share(reference - value, reference)}"


def _share(difference: float, reference: float) -> str:
    return f" ({words.percent(abs(difference) / reference)})" if reference else ""


def _verb(difference: float) -> str:
    return "saves" if difference >= 0 else "adds"
