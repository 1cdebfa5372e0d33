"""What a plan says right below its headline: numbers that divide better, what little money buys,
and what little time saves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coopt.instance.question import BILLED
from coopt.instance.schema import Instance
from coopt.instance.workload import NEAR_BATCH
from coopt.plan.couplings import NETWORK, Part
from coopt.plan.parts import Design, Fabric
from coopt.plan.schema import BetterNumber, Cliff, NextBest, Plan
from coopt.report import words

MOST_TOLD = 2  # networks whose changes are told
SAME_PRODUCTS = "the same NICs and switches connected differently"
EVEN = "Micro-batches cannot be uneven: frameworks train all DP ranks on equally many sequences."


def other_numbers(instance: Instance, plan: Plan) -> Iterator[str]:
    """What would train clearly faster, with both numbers and the key that lets the search take
    it; then designs nearby that clearly save time or money.
    """
    yield from _better_numbers(plan)
    yield from (_cliff(instance, plan, cliff) for cliff in plan.cliffs)


def _better_numbers(plan: Plan) -> Iterator[str]:
    now_s = {run.name: run.iteration_time_s for run in plan.workloads}
    for better in plan.better_numbers:
        of = f" of {better.workload}" if len(plan.workloads) > 1 else ""
        yield (
            f"With {_number(better)}, an iteration{of} would take"
            f" {words.seconds(better.iteration_time_s)} in place of"
            f" {words.seconds(now_s[better.workload])}: {words.percent(better.saved)} less time for"
            f" the same training ({_key(better)})."
        )
    if any(better.key.endswith(("batch_tolerance", "idle_gpus")) for better in plan.better_numbers):
        yield EVEN


def _number(better: BetterNumber) -> str:
    """The other number in place of that of the plan."""
    value, now = words.count(better.value), words.count(better.now)
    if better.key == "cluster.idle_gpus":
        idle = words.count(better.now - better.value)
        return f"{value} of the {now} GPUs training and the other {idle} idle"
    what = f"{better.key.rpartition('.')[2]} =" if ".mapping." in better.key else "a batch of"
    return f"{what} {value} in place of {now}"


def _key(better: BetterNumber) -> str:
    """The key that lets the search choose the other number."""
    if better.key == "cluster.idle_gpus":
        return f"{better.key} = true lets the search leave GPUs idle"
    if ".mapping." in better.key:
        return f"a list in {better.key} lets the search choose it"
    return f"{better.key} = {NEAR_BATCH:g} lets the search choose the batch"


def _cliff(instance: Instance, plan: Plan, cliff: Cliff) -> str:
    """`For 3.3% more money ($9.26 M), training takes 56.2 days in place of 65.1, with 1 spare
    domain more.`
    """
    assert plan.cost is not None
    kind = BILLED[plan.objective.kind]
    before, after = (words.amount(kind, value) for value in (plan.cost.of(kind), cliff.value))
    share = words.percent(abs(cliff.value / plan.cost.of(kind) - 1.0))
    took = _took(instance, plan, cliff)
    more = "more" if cliff.buys == "time" else "less"
    spent = "power" if kind == "power" else "money"
    changed = changes(plan, cliff)
    return f"For {share} {more} {spent} ({after} in place of {before}), {took}, with {changed}."


def _took(instance: Instance, plan: Plan, cliff: Cliff) -> str:
    """How long training takes, or an iteration, and how long it took."""
    if len(plan.workloads) > 1:
        change = f"{words.percent(abs(cliff.pace - 1.0))} {'less' if cliff.pace < 1 else 'more'}"
        return f"the workload with the least slack takes {change} of its bound"
    (workload,), (now,), (then,) = instance.workload, plan.workloads, cliff.workloads
    if workload.iterations:
        after, before = (words.in_days(workload.days(run.promised_s)) for run in (then, now))
        return f"training takes {after} in place of {before.removesuffix(' days')}"
    return (
        f"an iteration takes {words.seconds(then.iteration_time_s)} in place of"
        f" {words.seconds(now.iteration_time_s)}"
    )


def changes(plan: Plan, other: Cliff | NextBest) -> str:
    """What another design builds otherwise."""
    if isinstance(other, NextBest) and other.parts:
        return _of_parts(plan.parts, other.parts)
    assert plan.design is not None
    assert other.design is not None
    return "; ".join(_changes(plan.design, other.design)) or SAME_PRODUCTS


def _of_parts(now: Sequence[Part], then: Sequence[Part]) -> str:
    """What some networks are otherwise, each in its first phase with a difference."""
    found: dict[str, str] = {}
    for own, other in zip(now, then, strict=True):
        if own.design is not None and other.design is not None and own.slot not in found:
            if texts := "; ".join(_changes(own.design, other.design)):
                found[own.slot] = texts
            elif own.site != other.site:
                found[own.slot] = f"at {other.site}"
    told = [texts if slot == NETWORK else f"{slot}: {texts}" for slot, texts in found.items()]
    further = ["other networks change, too"] if len(told) > MOST_TOLD else []
    return "; ".join([*told[:MOST_TOLD], *further])


def _changes(now: Design, then: Design) -> Iterator[str]:
    if (then.gpus, then.hb_domain) != (now.gpus, now.hb_domain):
        yield f"{words.counted(then.gpus, 'GPU')} in {words.domains_built(then)}"
    elif then.spare_domains != now.spare_domains:
        more = then.spare_domains - now.spare_domains
        many = words.counted(abs(more), "spare domain")
        yield f"{many} {'more' if more > 0 else 'fewer'}"
    nets = [
        f"{of.fabric.tiers}-tier {of.fabric.title} at {words.ratio(of.fabric.oversubscription)}"
        if of.fabric.tiers
        else "no network"
        for of in (then, now)
    ]
    if nets[0] != nets[1]:
        yield f"{nets[0]} in place of {nets[1]}"
    for texts in (
        _products(then.fabric, now.fabric) if then.fabric.tiers and now.fabric.tiers else ()
    ):
        if texts[0] != texts[1]:
            yield f"{texts[0]} in place of {texts[1]}"


def _products(then: Fabric, now: Fabric) -> Iterator[tuple[str, str]]:
    """The NICs and the switches of two networks, with how many NICs a GPU has where that alone
    differs.
    """
    is_same = then.nic.name == now.nic.name
    then_nics, now_nics = (of.nic.text if is_same else of.nic.name for of in (then, now))
    yield then_nics, now_nics
    yield then.switch_text, now.switch_text
