"""A plan beside others: the any-to-any network for the same domains, the runners-up, another
plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.numerics import EQUAL
from coopt.instance.question import BILLED, ObjectiveKind
from coopt.instance.texts import spoken
from coopt.instance.workload import LONGEST_S
from coopt.plan.parts import Cost, Design
from coopt.plan.schema import ObjectiveClaim, Plan, Rivals
from coopt.report import words
from coopt.report.facts import tiers_of
from coopt.report.words import FigureTable, figures, pieces

if TYPE_CHECKING:
    from coopt.instance.schema import Instance
    from coopt.network.plan_networks import Baseline
    from coopt.plan.difference import Difference, Value
    from coopt.plan.explanation import SizedModel

ALONE = "One HB domain holds every GPU that trains, so there is no network to compare."
NO_BASELINE = (
    "No full-bandwidth Clos network of up to three tiers connects the HB domains and NICs of this"
    " plan with the listed switches and optics, so no saving is stated."
)
NONE = "No runner-up was found."
OTHERWISE = "other optics or counts"
"""How a design differs whose products, but for optics, and ports are those of another."""
DOES = {"power": "draws", "time": "takes", "carbon": "emits"}
"""What a cluster does with an amount of an objective, where it does not cost it."""
AIM = "outlooks.aim"
"""The key of the aim in the difference of plans."""
STOPS = {
    "all found": "",
    "no other design": " No other design meets the bounds and limits.",
    "time limit": " The time limit ended the search for more runners-up.",
    "interrupted": " The search for more runners-up was interrupted.",
    "not proven": " The solver did not prove any further runner-up.",
}


def saving_tables(plan: Plan, baseline: Baseline | None) -> list[RenderableType]:
    """What the only network saves in a sentence, and in a table where there is something to
    compare; what parts buy together has no one list of prices to compare it at.
    """
    design, cost = plan.design, plan.cost
    if design is None or cost is None or plan.couplings.growth or plan.couplings.sites:
        return []
    if not design.fabric.tiers or baseline is None:
        return [NO_BASELINE if design.fabric.tiers else ALONE]
    saving = saving_text(cost, baseline.cost, baseline.same_ratio)
    return [
        f"{saving} {network_sentence(cost, baseline.cost)}".strip(),
        saving_table(design, cost, baseline),
    ]


def saving_table(design: Design, cost: Cost, baseline: Baseline) -> FigureTable:
    """Purchase and power of both, and their difference."""
    networks = {
        "full-bandwidth Clos": (baseline.design, baseline.cost),
        "this plan": (design, cost),
    }
    rows = [
        (
            name,
            f"{tiers_of(of.fabric)}, {words.times(of.fabric.switch_count, of.fabric.switch_text)}"
            if of.fabric.tiers
            else "no network",
            words.exact(its_cost.capex_usd),
            words.exact(its_cost.power_w),
        )
        for name, (of, its_cost) in networks.items()
    ]
    pairs = (
        (baseline.cost.capex_usd, cost.capex_usd),
        (baseline.cost.power_w, cost.power_w),
    )
    return figures(
        "Compared with full bandwidth between any two GPUs",
        ("network", "built from"),
        ("$", "W"),
        rows,
        total=("saved", "", *(f"{words.exact(a - b)}{_share(a - b, a)}" for a, b in pairs)),
    )


def saving_text(cost: Cost, reference: Cost, joined: Cost | None = None) -> str:
    """`Against ..., this plan saves $58.5 M (38.3%) and 1.20 MW (41.0%).`, and what joining rails
    would take at the plan's oversubscription, where the plan has some and does not join them.
    """
    usd, w = reference.capex_usd - cost.capex_usd, reference.power_w - cost.power_w
    money_text = f"{words.money(abs(usd))}{_share(usd, reference.capex_usd)}"
    power_text = f"{words.power(abs(w))}{_share(w, reference.power_w)}"
    verbs = ["saves" if difference >= 0 else "adds" for difference in (usd, w)]
    outcome = "has the same cost and power"
    if usd and w:
        repeated = "" if verbs[0] == verbs[1] else f"{verbs[1]} "
        outcome = f"{verbs[0]} {money_text} and {repeated}{power_text}"
    elif usd or w:
        outcome = (
            f"{verbs[0]} {money_text} at the same power"
            if usd
            else f"{verbs[1]} {power_text} at the same cost"
        )
    text = f"Against a full-bandwidth Clos network, this plan {outcome}."
    if joined is None:
        return text
    more = joined.capex_usd - cost.capex_usd
    change = (
        f"{words.money(abs(more))}{_share(more, cost.capex_usd)} {'more' if more > 0 else 'less'}"
    )
    costs = change if more else "the same"
    return f"{text} Joining all rails at the same oversubscription costs {costs}."


def network_sentence(cost: Cost, baseline_cost: Cost) -> str:
    """Switches and optics alone, as studies of rail-only networks quote them; empty where there is
    no difference.
    """
    has_fibre = any(item.kind == "fibre" for item in cost.items)
    products = "switches, optics and fibre" if has_fibre else "switches and optics"
    plan_usd, baseline_usd = (
        sum(item.usd for item in c.items if item.kind in ("switch", "optics", "fibre"))
        for c in (cost, baseline_cost)
    )
    if not baseline_usd or plan_usd == baseline_usd:
        return ""
    change = "less" if plan_usd <= baseline_usd else "more"
    share = words.percent(abs(baseline_usd - plan_usd) / baseline_usd)
    return (
        f"The plan's {products} alone cost {words.money(plan_usd)}, {share} {change} than"
        f" the {words.money(baseline_usd)} of the full-bandwidth network."
    )


def _share(difference: float, reference: float) -> str:
    return f" ({words.percent(abs(difference) / reference)})" if reference else ""


def runners_tables(plan: Plan) -> list[RenderableType]:
    """What each runner-up changes and how much more it takes; what is proven about them, and why
    there are no more; nothing where none was asked for.
    """
    if plan.alternatives_stop is None:
        return []
    gap = max((runner.objective.gap or 0.0 for runner in plan.alternatives), default=0.0)
    within = f" within {words.percent(gap)}" if gap > EQUAL else ""
    proof = (
        f"Each runner-up is proven{within} to be the best design after the plan and the runners-up"
        " before it."
    )
    ending = (proof if plan.alternatives else NONE) + STOPS[plan.alternatives_stop]
    return [*([runners_table(plan)] if plan.alternatives else []), ending]


def runners_table(plan: Plan) -> FigureTable:
    """The next best designs by what they change, and how much more they take."""
    design, value, kind = plan.design, plan.objective.value, plan.objective.kind
    assert design is not None
    assert value is not None
    rows = [
        (
            str(rank),
            differences(design, runner.design),
            words.exact(runner.cost.of(kind) - value),
            words.percent((runner.cost.of(kind) - value) / value) if value else "-",
            words.percent(min(run.slack for run in runner.workloads)),
        )
        for rank, runner in enumerate(plan.alternatives, start=2)
    ]
    return figures(
        "Runners-up",
        ("rank", "what differs from the plan"),
        (f"more {'W' if kind == 'power' else '$'}", "more", "slack"),
        rows,
    )


def differences(best_design: Design, other_design: Design) -> str:
    """`128x400g switches; 2 tiers`: what the other design has that the best has not."""
    best_parts = _parts(best_design)
    changes = [text for key, text in _parts(other_design).items() if text != best_parts.get(key)]
    gone = ["no network"] if best_design.fabric.tiers and not other_design.fabric.tiers else []
    return "; ".join(changes + gone) or OTHERWISE


def _parts(design: Design) -> dict[str, str]:
    """A design in words, by what can differ."""
    domain, fabric = design.hb_domain, design.fabric
    idle = "" if domain.active == domain.size else f" with {words.count(domain.active)} active"
    parts = {
        "gpus": words.counted(design.gpus, "GPU"),
        "domain": f"{words.domains_built(design)}{idle}",
    }
    if not fabric.tiers:
        return parts
    parts |= {
        "fabric": f"{tiers_of(fabric)}",
        "nic": fabric.nic.text,
        "switch": f"switches {fabric.switch_text}",
    }
    if fabric.tiers > 1:
        leaf = fabric.tier[0]
        ports = (
            f"{words.counted(leaf.down_ports, 'port')} down,"
            f" {words.counted(leaf.uplinks_per_switch, 'uplink')} a leaf"
        )
        bundles = f" in bundles of {fabric.pod_bundle} links" if fabric.pod_bundle > 1 else ""
        parts["ports"] = f"{ports}{bundles} ({words.ratio(fabric.oversubscription)})"
    return parts


def rivals_sentence(rivals: Rivals) -> str:
    """What the cheapest cluster with direct links costs, and the cheapest with switches."""
    return (
        f"With direct links, {_claim_text(rivals.direct)}. With switches,"
        f" {_claim_text(rivals.switched)}."
    )


def _claim_text(claim: ObjectiveClaim) -> str:
    if claim.value is not None:
        gap = "no lower bound is proven" if claim.gap is None else f"gap {words.percent(claim.gap)}"
        verb = DOES.get(claim.kind, "costs")
        return f"the best cluster found {verb} {words.amount(claim.kind, claim.value)} ({gap})"
    if claim.bound is not None:
        return (
            f"no better cluster was found, and none {DOES.get(claim.kind, 'costs')}"
            f" less than {words.amount(claim.kind, claim.bound)} (proven)"
        )
    return "no cluster was found"


def difference_report(difference: Difference) -> list[RenderableType]:
    """A sentence, then every value and every line of the bill that changes."""
    before, after = difference.before, difference.after
    both = f", both named {before.name}"
    names = both if before.name == after.name else f": {before.name} and {after.name}"
    aims = [(one.before, one.after) for one in difference.changes if one.key == AIM]
    worst = "The bill of a worst-case plan is at the worst prices, that of any other plan is not."
    once = (
        f"Only the {difference.only_with_gpus} bill includes GPUs. For comparable totals, include"
        " them in both (objective.include)."
    )
    # Against nothing every value differs, and a table of all of them says no more than the
    # sentence.
    shown = not _one_builds_nothing(difference)
    return pieces(
        Text(difference_headline(difference), style="bold"),
        f"The plans answer different questions{names}." if before.sha256 != after.sha256 else None,
        once if difference.only_with_gpus else None,
        worst if any("worst-case" in pair for pair in aims) else None,
        _changes_table(difference) if shown and difference.changes else None,
        _bills_table(difference) if shown and difference.bill else None,
    )


def _changes_table(difference: Difference) -> FigureTable:
    return figures(
        "What changes",
        ("value",),
        ("before", "after", "change"),
        [
            (
                one.key,
                *map(_value_text, values),
                _change(*values),
            )
            for one in difference.changes
            for values in [[_bound(one.key, value) for value in (one.before, one.after)]]
        ],
    )


def _bills_table(difference: Difference) -> FigureTable:
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
    return figures(
        "Bill of materials",
        ("item", "kind"),
        ("before", "after", "change $", "change W"),
        lines,
        total=total,
    )


def difference_headline(difference: Difference) -> str:
    """`The second plan costs $66.8 M less and draws 1.20 MW less.`"""
    if not difference.changes and not difference.bill:
        return "The plans do not differ."
    changes = {change.key: change for change in difference.changes}
    parts = [
        around.format(f"{number(abs(b - a))} {'more' if b > a else 'less'}")
        for key, (around, number) in _first_reported(difference.minimize).items()
        if key in changes
        and isinstance(a := changes[key].before, float)
        and isinstance(b := changes[key].after, float)
    ]
    if parts:
        return f"The second plan {words.both(parts)}."
    if "status" not in changes:
        return "Cost and power do not differ, but other figures do."
    status = changes["status"]
    nothing = "; one of the plans has no design" if _one_builds_nothing(difference) else ""
    return (
        f"The status of the first plan is {status.before}, that of the second"
        f" {status.after}{nothing}."
    )


def _first_reported(
    minimize: ObjectiveKind | None,
) -> dict[str, tuple[str, Callable[[float], str]]]:
    """What the sentence reports: what the plans minimise, and what it is made of."""
    billed = BILLED.get(minimize) if minimize else None
    purchase = "costs {} to buy" if billed == "tco" else "costs {}"
    total = {"cost.tco_usd": ("costs {} in total", words.money)} if billed == "tco" else {}
    return {
        # `difference_of` compares the values of objectives of plans of least regret alone
        "objective.value": ("has {} regret", words.power if billed == "power" else words.money),
        **total,
        "cost.capex_usd": (purchase, words.money),
        "cost.power_w": ("draws {}", words.power),
    }


def _one_builds_nothing(difference: Difference) -> bool:
    return any(
        change.key == "cost.capex_usd" and None in (change.before, change.after)
        for change in difference.changes
    )


def _bound(key: str, value: Value) -> Value:
    """A value, or that it is no bound."""
    is_none = key.endswith(".bound_s") and isinstance(value, float) and value >= LONGEST_S
    return words.NO_BOUND if is_none else value


def _value_text(value: Value) -> str:
    if value is None or isinstance(value, bool | str):
        return {None: "-", True: "yes", False: "no"}.get(value, str(value))  # type: ignore[arg-type]
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1e6 else f"{value:,.6g}"


def _change(old: Value, new: Value) -> str:
    """`+4` for counts, `-17.8%` for what is measured."""
    if isinstance(old, bool | str | None) or isinstance(new, bool | str | None):
        return ""
    counts = isinstance(old, int) and isinstance(new, int)
    return f"{new - old:+,}" if counts else f"{new / old - 1:+.1%}" if old else ""


def _signed_number(value: float) -> str:
    return f"{value:+,.0f}" if value else "0"


def models_report(instance: Instance, sized: Sequence[SizedModel]) -> list[RenderableType]:
    """The best model in a sentence, and what each of them reaches by the date."""
    best, (workload,) = sized[0], instance.workload
    if best.loss is None:
        first = "No cluster was found that trains any of these models within the limits."
    else:
        end = f"After {workload.train_days or 0.0:g} days"
        if workload.by is not None:
            end = f"By {workload.by.day} {workload.by:%B %Y}"
        proven = all(each.status in ("optimal", "infeasible") for each in sized)
        so_far = "" if proven else " found before the search stopped"
        first = (
            f"{end} {best.model} has the lowest loss{so_far}, {best.loss:.4g}:"
            f" {best.gpus:,} {best.gpu} train it on {spoken(best.tokens or 0.0)} tokens."
        )
    columns = ("parameters", "tokens", "loss", "GPUs", "purchase", "power")
    return pieces(first, figures("Models", ("model",), columns, map(_model_row, sized)))


def _model_row(each: SizedModel) -> tuple[str, ...]:
    size = spoken(each.parameters)
    if each.loss is None or each.tokens is None:
        return each.model, size, "-", each.status, "-", "-", "-"
    gpus, purchase = f"{each.gpus:,} {each.gpu}", words.money(each.capex_usd or 0.0)
    power = words.power(each.power_w or 0.0)
    return each.model, size, spoken(each.tokens), f"{each.loss:.4g}", gpus, purchase, power
