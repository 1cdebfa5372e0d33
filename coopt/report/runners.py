"""The next best designs beside the best."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from coopt.plan.schema import Design, Plan
from coopt.report import words
from coopt.report.sentence import ratio_of
from coopt.report.tables import Figures, figures

NONE = "There is no runner-up."
STOPS = {
    "all found": "",
    "no other design": " No other design meets the bounds.",
    "time limit": " The time limit ended the search for more.",
    "interrupted": " The search for more was interrupted.",
    "not proven": " For more the solver gave no proof.",
}


def runners_tables(plan: Plan) -> Iterator[RenderableType]:
    """What each runner-up changes and how much more it takes; what is proven about them."""
    if plan.alternatives:
        yield runners_table(plan)
    yield runners_sentence(plan)


def runners_sentence(plan: Plan) -> str:
    """What is proven about the runners-up, and why there are no more."""
    known = "Each is proven to be the best of the designs not listed before it." if plan.alternatives else NONE
    return known + STOPS.get(plan.alternatives_stop or "", "")


def runners_table(plan: Plan) -> Figures:
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
    parts = {"gpus": words.counted(design.gpus, "GPU"), "domain": f"{words.count(domain.count)} x {domain.name}{idle}"}
    if not fabric.tiers:
        return parts
    parts |= {
        "fabric": f"{fabric.kind}, {words.counted(fabric.tiers, 'tier')}",
        "nic": f"{fabric.nic.per_gpu} x {fabric.nic.name} per GPU",
        "switch": f"switches {fabric.switch.name}",
    }
    if fabric.tiers > 1:
        leaf = fabric.tier[0]
        ports = f"{words.count(leaf.down_ports)} down, {words.counted(leaf.uplinks_per_switch, 'uplink')} a leaf"
        parts["ports"] = f"{ports} ({ratio_of(fabric.oversubscription)})"
    return parts
