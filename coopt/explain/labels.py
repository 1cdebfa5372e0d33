"""Designs, amounts and differences in words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import date

from coopt.instance.couplings import LIMITED
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance, Objective, ObjectiveKind
from coopt.instance.texts import both, change_text, counted
from coopt.network.parts import weigh
from coopt.plan.explanation import Change, Relaxation
from coopt.plan.parts import Cost, Design


@dataclass(frozen=True, kw_only=True)
class Saying:
    """How sentences speak of an objective: what a plan does, the best of plans, that one is better,
    or as good.
    """

    does: str
    best: str
    better: str
    same: str


IN_DOLLARS = Saying(does="costs", best="cheapest", better="is cheaper", same="costs the same")
SAYINGS: dict[ObjectiveKind, Saying] = {
    **dict.fromkeys(("capex", "tco", "usd_per_token"), IN_DOLLARS),
    "power": Saying(
        does="draws", best="lowest-power", better="draws less", same="draws the same power"
    ),
    "time": Saying(does="takes", best="fastest", better="is faster", same="takes the same time"),
    "carbon": Saying(
        does="emits", best="lowest-carbon", better="emits less", same="emits the same carbon"
    ),
}
BILLS: dict[ObjectiveKind, str] = {
    "capex": "its purchase cost",
    "tco": "its TCO",
    "power": "its power",
}
LEAST_TOLD = 1e-4
"""Share of a time below which a difference is told as less than this."""
ORDINALS = {1: "first", 2: "second", 3: "third"}
MORE: dict[str, str] = {
    "hb": "HB domain GPUs",
    "nic": "NICs",
    "switch": "switches",
    "optics": "transceivers",
    "fibre": "fibre",
    "panel": "panel ports",
    "gpu": "GPUs",
    "wan": "wide-area channels",
    "labour": "links added to existing switches",
}
DEARER: dict[str, str] = {**MORE, "hb": "HB domains"}
ELECTRICITY, RUNNING = "electricity", "electricity, labour and support"
"""What is paid for over the years, apart from what is bought."""
SINGULAR = ("fibre", ELECTRICITY)
LIMITS = {
    "max_iteration_time_s": "the bound on iteration time",
    "min_tokens_per_s": "the bound on throughput",
    "train_days": "the bound on training time",
    "by": "the day by which training ends",
    "hbm_gb": "the memory of each GPU",
    **{key: f"the limit on {name}" for key, (name, _) in LIMITED.items()},
    "link_reach_m": "the length of links",
    "gpus": "the number of GPUs",
    "confidence": "the probability of finishing in time",
    "most": "the number of wide-area channels",
}
"""What limits are called, by the last part of their keys."""


def limit_name(key: str, *, with_key: bool = True) -> str:
    """`the limit on power (limits.power_mw)`: a limit by its name, then its key; the key alone
    where it has no name.
    """
    name = LIMITS.get(key.rpartition(".")[2])
    return (f"{name} ({key})" if with_key else name) if name else key


def sentence(text: str) -> str:
    """The text with a capital at its beginning, unless it begins with a key of the instance."""
    word, _, _ = text.partition(" ")
    return text if "." in word or "_" in word else text[0].upper() + text[1:]


def amount(kind: ObjectiveKind, value: float, word: str = "") -> str:
    """`$12,345,678`, `7,235 W` or `0.658867 s an iteration`, with a `word` such as more behind the
    unit.
    """
    suffix = word and f" {word}"
    if kind == "time":
        return f"{number(value)} s{suffix} an iteration"
    if kind == "usd_per_token":
        return f"${number(1e6 * value)} per million tokens{suffix}"
    if kind == "carbon":
        return f"{number(value / 1000)} t of CO2{suffix}"
    return f"{value:,.0f} W{suffix}" if kind == "power" else f"${value:,.0f}{suffix}"


SMALLEST, SMALL = 1e-12, 1e-4
"""Between them digits would be counted in powers of ten, such as the MW of a few GPUs."""


def number(value: float) -> str:
    """`6.81777`, `1,880,989` or `0.000084`: six digits, or as many as a whole number has."""
    if SMALLEST <= value < SMALL:
        return f"{value:.12f}".rstrip("0")
    return f"{value:,.0f}" if value >= 99_999.5 else f"{value:,.6g}"


def with_unit(value: float, unit: str) -> str:
    """`1 channel`, `6.81777 s`: six digits and the unit."""
    is_single = value == 1 and unit in ("GPUs", "channels", "products", "tiers", "racks", "days")
    return f"{number(value)} {unit[:-1] if is_single else unit}"


def uses(unit: str) -> str:
    """What a plan does of a limit in that unit: it takes time, and uses anything else."""
    return "takes" if unit in ("s", "days") else "uses"


def costs(kind: ObjectiveKind, value: float) -> str:
    """`costs $12,345,678` or `takes 0.658867 s an iteration`."""
    return f"{SAYINGS[kind].does} {amount(kind, value)}"


def costs_more(kind: ObjectiveKind, extra: float, share_of: float | None) -> str:
    """`costs $12,345,678 more (+3.1%)`."""
    return f"{SAYINGS[kind].does} {dearer_by(kind, extra, share_of)}"


def dearer_by(kind: ObjectiveKind, extra: float, share_of: float | None) -> str:
    """`$12,345,678 more (+3.1%)`; without the share where there is nothing to take it of."""
    if kind == "time" and 0 < abs(extra) < LEAST_TOLD * abs(share_of or 0.0):
        return f"less than {LEAST_TOLD:.2%} {'more' if extra > 0 else 'less'}"
    share = f" ({change_text(extra / share_of)})" if share_of else ""
    return f"{amount(kind, abs(extra), 'more' if extra >= 0 else 'less')}{share}"


def changes_and_cost(relaxation: Relaxation) -> tuple[int, float]:
    """The order in which ways out are told: those that change less first, and then what costs
    less.
    """
    return len(relaxation.changes), relaxation.value


def changes_of(relaxation: Relaxation) -> str:
    """`x = 3 (now 2, +50.00%) and y = 5 (now 4, the smallest possible in steps of 2)`."""
    return both(
        f"{change.limit} = {change.to} (now {change.now}{_how_far(change)})"
        for change in relaxation.changes
    )


def _how_far(change: Change) -> str:
    if change.limit.endswith(".by"):
        later = date.fromisoformat(change.to) - date.fromisoformat(change.now)
        return f", {counted(later.days, 'day')} later"
    share = "" if change.share is None else f", {change_text(change.share)}"
    end = "largest" if change.least is None else "smallest"
    steps = f" in steps of {change.step:,}" if change.step and change.step > 1 else ""
    return share if change.step is None else f"{share}, the {end} possible{steps}"


def label(design: Design) -> str:
    """`128 x gh200-256, rail-only, 1 tier of 128x400g`; `8 x hgx-h100-8 + 1 spare, ...`."""
    spares = f" + {counted(design.spare_domains, 'spare')}" if design.spare_domains else ""
    domains = f"{design.hb_domain.count:,} x {design.hb_domain.name}{spares}"
    fabric = design.fabric
    if fabric.tiers == 0:
        return f"{domains} without a network"
    tiers = "1 tier" if fabric.tiers == 1 else f"{fabric.tiers} tiers"
    ratio = f" at {fabric.oversubscription:.3g}:1" if fabric.oversubscription > 1 else ""
    return f"{domains}, {fabric.title}, {tiers} of {fabric.switch_text}{ratio}"


def without_optics(design: Design) -> Design:
    """The design without its optics; of a single domain nothing but this."""
    fabric = design.fabric
    tiers = tuple(
        tier.model_copy(update={"optic": "", "optic_below": None}) for tier in fabric.tier
    )
    bare = fabric.model_copy(update={"tier": tiers, "transceiver_count": 0})
    if fabric.tiers < 2:  # fabrics of as many planes are one and the same
        bare = bare.model_copy(update={"kind": "clos"})
    if not fabric.tiers:  # nothing but its name is built of either
        bare = bare.model_copy(update={"nic": None, "switch": None})
    return design.model_copy(update={"fabric": bare})


def why_dearer(objective: Objective, ours: tuple[Design, Cost], rival: tuple[Design, Cost]) -> str:
    """What makes a design cost more than ours: tiers first, then what is bought, dearest first.

    Of one that costs less it is told what makes ours, the plan, cost more.
    """
    if objective.minimize != objective.billed:
        return why_worse(objective, ours[1], rival[1])
    cheaper, dearer = (rival, ours) if costs_less(objective, ours[1], rival[1]) else (ours, rival)
    needs = [
        f"a {ORDINALS[tier]} tier" if tier > 1 or cheaper[0].fabric.tiers else "a network"
        for tier in range(cheaper[0].fabric.tiers + 1, dearer[0].fabric.tiers + 1)
    ]
    subject = "the plan" if dearer is ours else "it"
    surplus = why_billed_more(objective, ours[1], rival[1])
    return "; ".join(filter(None, (f"{subject} needs {both(needs)}" if needs else "", surplus)))


def costs_less(objective: Objective, ours: Cost, rival: Cost) -> bool:
    """Whether another bill is less than ours, in what the objective counts."""
    return rival.of(objective.billed) < ours.of(objective.billed)


def why_billed_more(objective: Objective, ours: Cost, rival: Cost) -> str:
    """What another bill has more of than ours, dearest first; what ours has more of, the plan's,
    where that is less.
    """
    subject, owner = "it", "its"
    if costs_less(objective, ours, rival):
        ours, rival, subject, owner = rival, ours, "the plan", "the plan's"
    apart = not all(_has_one_rate(objective, cost) for cost in (ours, rival))
    theirs, own = (_shares(objective, cost, apart=apart) for cost in (rival, ours))
    weight = {kind: theirs[kind] - own[kind] for kind in {**theirs, **own}}
    count = _count_by_kind(rival)
    count.subtract(_count_by_kind(ours))
    kinds = sorted((kind for kind in weight if weight[kind] > 0), key=lambda kind: -weight[kind])
    sums = {kind: amount(objective.minimize, weight[kind]) for kind in kinds}
    additions = [
        f"{_more_of(count[kind], kind)} ({sums[kind]})" for kind in kinds if count[kind] > 0
    ]
    verb = "draw" if objective.minimize == "power" else "cost"
    dearer = [
        f"{owner} {DEARER.get(kind, kind)} {verb}{'s' * (kind in SINGULAR)} {sums[kind]} more"
        for kind in kinds
        if count[kind] <= 0
    ]
    surplus = ", and ".join(
        [*([f"{subject} takes {both(additions)}"] if additions else []), *dearer]
    )
    # without it the figures would not add up to the difference
    saved = -sum(usd for usd in weight.values() if usd < 0)
    if not (surplus and saved):
        return surplus
    return f"{surplus}, while other parts {verb} {amount(objective.minimize, saved, 'less')}"


def why_worse(objective: Objective, ours: Cost, rival: Cost) -> str:
    """What sets another plan apart: its bill where time decides, else what it has more of, dearest
    first.
    """
    billed = objective.billed
    if objective.minimize == billed:
        return why_billed_more(objective, ours, rival)
    extra = rival.of(billed) - ours.of(billed)
    if not extra:
        return f"{BILLS[billed]} is the same"
    return f"{BILLS[billed]} is {amount(billed, abs(extra))} {'more' if extra > 0 else 'less'}"


def panels_apart(instance: Instance, cost: Cost) -> Cost:
    """A bill whose panel ports, which count as switches, have a kind of their own."""
    names = {panel.name for panel in instance.network.panels}
    items = tuple(
        item.model_copy(update={"kind": "panel"}) if item.name in names else item
        for item in cost.items
    )
    return cost.model_copy(update={"items": items})


def _more_of(number: int, kind: str) -> str:
    """`1 more switch`, `8 more NICs`."""
    noun = MORE[kind]
    if number == 1:
        noun = {
            "switches": "switch",
            "links added to existing switches": "link added to an existing switch",
        }.get(noun, noun[:-1])
    return f"{number:,} more {noun}"


def _shares(objective: Objective, cost: Cost, *, apart: bool) -> defaultdict[str, float]:
    """What adds up to a bill: each kind with its electricity, or apart from what is paid for over
    the years.
    """
    total = defaultdict[str, float](float)
    for item in cost.items:
        total[item.kind] += item.usd if apart else weigh(objective, item.usd, item.w)
    if apart:
        works = objective.labour_share or objective.support_share
        total[RUNNING if works else ELECTRICITY] += cost.tco_usd - cost.capex_usd
    return total


def _has_one_rate(objective: Objective, cost: Cost) -> bool:
    """Whether all watts of a bill are paid for at one rate: not where sites have prices of their
    own, or phases build one after the other.
    """
    total = math.fsum(weigh(objective, item.usd, item.w) for item in cost.items)
    return math.isclose(total, cost.of(objective.billed), rel_tol=EQUAL)


def _count_by_kind(cost: Cost) -> Counter[str]:
    total = Counter[str]()
    for item in cost.items:
        # of cables, their metres and splitters together no number says anything
        total[item.kind] += item.count if item.kind != "fibre" else 0
    return total
