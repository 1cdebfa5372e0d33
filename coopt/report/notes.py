"""What a reader has to know to read a plan rightly: limits, accuracy, what is counted and kept
free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import NormalDist

from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.reserves import KnownError, Margin, is_catalogued, known_error
from coopt.instance.schema import Instance
from coopt.instance.variants import phases_of
from coopt.network.orders import notes_by_part, plan_order_notes
from coopt.network.space import Space
from coopt.plan.couplings import Part
from coopt.plan.evaluation import LimitCheck
from coopt.plan.schema import Design, Plan, WorkloadPlan
from coopt.report import words
from coopt.report.building import building_notes, leaf_notes
from coopt.report.tables import FigureTable, figures, verdict_word

COUNTED = {
    "hb": "HB interconnect with idle GPUs",
    "nic": "NICs",
    "switch": "switches",
    "optics": "optics",
    "gpu": "GPUs that train",
    "host": "servers",
}
LITTLE_MEMORY = 0.02
"""Share of a GPU's memory below which a plan says that so little is left free."""
MANY_IDLE = 0.05
"""Share of the GPUs of HB domains from which a plan says why they stand idle."""
COARSE = 1.25
"""How much more GPUs the next number of a list has, or the number the one before it, where a plan
says so.
"""


def margins_table(checks: Iterable[LimitCheck]) -> FigureTable:
    """Bounds with their slack; the tightest has the smallest percentage."""
    return figures(
        "How far each bound is",
        ("bound",),
        ("plan", "limit", "slack", "slack %", "met"),
        [
            (
                check.name,
                words.with_unit(check.value, check.unit),
                words.with_unit(check.limit, check.unit),
                words.with_unit(check.limit - check.value, check.unit),
                "" if check.slack is None else words.percent(check.slack),
                verdict_word(check.ok),
            )
            for check in checks
        ],
    )


def turns_text(instance: Instance) -> str:
    """That workloads take turns, so that days of several add up; or that they run side by side."""
    if instance.sharing.mode == "partition":
        core = "; only the core is shared" if instance.sharing.core is not None else ""
        return (
            "Workloads run at the same time, each on HB domains, NICs and switches of its"
            f" own{core}."
        )
    several = sum(workload.calendar for workload in instance.workload) > 1
    add_up = " One after the other, their days add up." if several else ""
    return f"Workloads take turns: each meets its bound with the whole cluster to itself.{add_up}"


def remarks(instance: Instance, plan: Plan, without_margin: float | None = None) -> Iterator[str]:
    """What one has to know before one builds: what was not asked for, how far times are off, what a
    loss does, and which modules to order.
    """
    yield from numbers_between(instance, plan)
    yield from idle_note(instance, plan)
    yield from accuracy(instance, plan.runs)
    yield from memory_note(instance, plan.runs)
    yield from tp_across(plan.runs, none_inside=plan.tp_across)
    yield from margin_note(instance, plan, without_margin)
    yield from leaf_notes([part.design for part in plan.parts if part.design is not None])
    yield from plan_order_notes(instance, plan)


def reading_notes(
    instance: Instance, parts: Sequence[Part], *, none_inside: bool = False
) -> Iterator[str]:
    """What is counted and what is not, how bounds are meant, and how far figures carry; of networks
    that grow what they are in the end.
    """
    runs = [run for part in parts for run in part.workloads]
    last = [part for part in parts if part.phase == parts[-1].phase]
    yield counting_sentence(instance)
    for domain in domains_of(instance, parts):
        if domain.usd_per_gpu == 0 and "hb" in instance.objective.include:
            yield (
                f"The interconnect of {domain.name} is part of its servers' price and counts as $0"
                " here."
            )
    for knob in dict.fromkeys(knob for run in runs for knob in run.knobs):
        names = dict.fromkeys(run.name for run in runs if knob in run.knobs)
        yield f"Knob of {', '.join(names)}: {knob}."
    if len(instance.workload) > 1:
        yield turns_text(instance)
    yield from accuracy(instance, runs)
    yield from tp_across(runs, none_inside=none_inside)
    routes = [
        route
        for part in last
        if part.links
        for phase in part.links.phases
        for route in phase.routes
    ]
    if any(len(route.path) > 2 for route in routes):
        yield (
            "Passing on through other domains takes no time in the model beyond the links' own"
            " (docs/direct.md)."
        )
    designs = {part.name: part.design for part in last if part.design is not None}
    question = phases_of(instance)[-1]
    yield from notes_by_part(
        {name: building_notes(question, design) for name, design in designs.items()}
    )


def domains_of(instance: Instance, parts: Iterable[Part]) -> Iterator[HbDomain]:
    """The HB domains of parts, in the order of the instance; a plan that somebody wrote may have
    parts without any.
    """
    networks = [network for part in parts if (network := part.design or part.links) is not None]
    names = {network.hb_domain.name for network in networks}
    yield from (domain for domain in instance.network.hb_domains if domain.name in names)


def accuracy(instance: Instance, workloads: Sequence[WorkloadPlan]) -> Iterator[str]:
    """How far the model is off where that is known, and which times exceed their bounds if they are
    off by as much.
    """
    gpu = instance.cluster.gpu
    # Of several runs of a workload the one with the least slack counts.
    runs = {run.name: run for run in sorted(workloads, key=lambda run: -run.slack)}
    rooms: dict[KnownError, list[tuple[str, float]]] = {}
    for workload in instance.workload:
        error_known, run = known_error(gpu, workload), runs.get(workload.name)
        if error_known is not None and run is not None:
            # What the margin keeps free is there for the error.
            allowed_s, time_s = run.bound_s * (1.0 + workload.time_margin), run.iteration_time_s
            growth = allowed_s / time_s - 1.0 if time_s > 0.0 else math.inf
            rooms.setdefault(error_known, []).append((run.name, growth))
    for error_known, growths in rooms.items():
        # A bound that is exceeded already is told elsewhere; here only those count that the error
        # would exceed.
        narrow = [(name, growth) for name, growth in growths if 0.0 <= growth < error_known.error]
        yield (
            f"Times are estimates: on {error_known.runs} they are off by"
            f" {words.percent(error_known.error)} on"
            f" average{_narrow_text(narrow, alone=len(runs) == 1)}."
        )
    if not rooms:
        yield from _origin(gpu)


def numbers_between(instance: Instance, plan: Plan) -> Iterator[str]:
    """That numbers of GPUs between those listed were not asked for, where one of them may do
    better.
    """
    counts, design = sorted(instance.cluster.gpus), plan.design
    if design is None or design.gpus not in counts:
        return
    # More GPUs are faster; for any other aim fewer may do.
    place = counts.index(design.gpus) - (instance.objective.minimize != "time")
    start, end = counts[max(place, 0)], counts[min(place + 1, len(counts) - 1)]
    if place >= 0 and end >= COARSE * start:
        yield (
            f"Numbers between {words.count(start)} and {words.count(end)} GPUs were not asked for:"
            f" cluster.gpus = {{ least = {start}, most = {end}, step = {design.hb_domain.active} }}"
            " asks for them too."
        )


def memory_note(instance: Instance, workloads: Sequence[WorkloadPlan]) -> Iterator[str]:
    """Which workloads leave next to nothing of a GPU's memory free, where no share of it was asked
    to stay so.
    """
    is_asked = instance.margin is not None and instance.margin.memory > 0
    rooms = {run.name: 1.0 - run.memory_gib / run.memory_limit_gib for run in workloads}
    narrow = [
        f"{words.percent(room)} ({name})" for name, room in rooms.items() if room < LITTLE_MEMORY
    ]
    if narrow and not is_asked:
        yield (
            f"Of a GPU's memory {words.both(narrow)} would stay free, which fragments may take:"
            " with margin.memory = 0.05 a plan keeps a twentieth."
        )


def idle_note(instance: Instance, plan: Plan) -> Iterator[str]:
    """How many GPUs of HB domains stand idle where fewer domains would hold those that train."""
    design, fill = plan.design, instance.network.domain_fill
    if design is None or not design.hb_domain.count:
        return
    domain = design.hb_domain
    bought, fewest = domain.count * domain.size, -(-design.gpus // domain.size)
    share = (bought - design.gpus) / bought
    # A remainder in the last domain is no choice: only whole domains more than needed are worth a
    # note.
    if fewest == domain.count or share < MANY_IDLE:
        return
    tries = "; network.domain_fill = 'any' tries more numbers of them"
    reason = (
        "every domain trains as many of its GPUs (network.domain_fill)"
        if fill == "even"
        else "on the fewer domains that were tried no mapping is in time, or nothing costs less"
        " (docs/network.md)"
    )
    skipped = tries if fill == "fewest" and _skips_numbers(instance, design) else ""
    yield (
        f"{words.percent(share)} of the GPUs of HB domains stand idle: {words.count(fewest)} of the"
        f" {words.count(domain.count)} domains would hold those that train, but {reason}{skipped}."
        " Another number of GPUs or another batch may divide better."
    )


def _skips_numbers(instance: Instance, design: Design) -> bool:
    """Whether fewer domains than those of the plan may hold its GPUs and are not tried by
    default.
    """
    space, listed = Space(instance=instance), instance.network.hb_domains
    hb = next(domain for domain in listed if domain.name == design.hb_domain.name)
    tried = {*space.domain_counts(design.gpus, hb)}
    further = {*space.domain_counts(design.gpus, hb, "any")} - tried
    return any(count < design.hb_domain.count for count in further)


def tp_across(workloads: Sequence[WorkloadPlan], *, none_inside: bool) -> Iterator[str]:
    """Which TP groups leave their HB domain, and the key that keeps them inside, or that nothing
    inside will do.
    """
    names = dict.fromkeys(run.name for run in workloads if run.placement["tp"][1] > 1)
    if names:
        of = f" of {', '.join(names)}" if len({run.name for run in workloads}) > 1 else ""
        reason = "; workload.allow_tp_across = false keeps them inside one."
        if none_inside:
            bounds = "the bound" if len(workloads) == 1 else "the bounds"
            reason = f" because no mapping that keeps them inside one meets {bounds}."
        yield f"TP groups{of} extend over several HB domains{reason}"


def margin_note(instance: Instance, plan: Plan, without: float | None = None) -> list[str]:
    """What is kept free for errors, and what that costs where the best plan without it is known.

    Parameters
    ----------
    without
        The objective (USD or W) of the best plan that keeps nothing free.
    """
    margin, kind, value = instance.margin, plan.objective.kind, plan.objective.value
    if margin is None:
        return []
    cost = ""
    if without is not None and value is not None:
        share = f" ({words.percent((value - without) / without)})" if without else ""
        dear = f"{words.amount(kind, value - without)}{share}"
        cost = f"; that costs {dear if value > without else 'nothing'}"
    return [f"Kept free: {kept_free(instance, margin)}{_free_ports(instance, plan)}{cost}."]


def _free_ports(instance: Instance, plan: Plan) -> str:
    """` (8 of 64 on qm9700)`: the ports for growth of the switches that are built."""
    names = {name for part in plan.parts if part.design for name in part.design.fabric.switch_names}
    switches = [
        switch for switch in instance.network.switches if switch.free_ports and switch.name in names
    ]
    counts = [
        f"{switch.free_ports} of {switch.free_ports + switch.radix} on {switch.name}"
        for switch in switches
    ]
    return f" ({', '.join(counts)})" if counts else ""


def _narrow_text(narrow: Sequence[tuple[str, float]], *, alone: bool) -> str:
    """`; an iteration more than 2.9% longer exceeds its bound`, and 0.1% where it is less."""
    growths = {name: words.percent(max(growth, 0.001)) for name, growth in narrow}
    if alone and growths:
        (growth,) = growths.values()
        return f"; an iteration more than {growth} longer exceeds its bound"
    texts = words.both(f"{growth} ({name})" for name, growth in growths.items())
    return f"; iterations more than {texts} longer exceed their bounds" if growths else ""


def _origin(gpu: Gpu) -> Iterator[str]:
    """Where efficiencies without a known error come from."""
    shares = [
        source for source in gpu.sources if any(f.startswith("efficiency") for f in source.fields)
    ]
    if not is_catalogued(gpu):
        origin = f"no published runs tell how far they are off on {gpu.name}"
    elif any("fitted" in source.source for source in shares):
        origin = f"the efficiencies of {gpu.name} were fitted to published runs of its generation"
    else:
        origin = f"the efficiencies of {gpu.name} are not fitted to its own measurements"
    unsourced = is_catalogued(gpu) and not any(source.tag in ("D", "M") for source in shares)
    if not unsourced or "fitted to published" in origin:
        yield f"Times are estimates: {origin}."


def counting_sentence(instance: Instance) -> str:
    """What the bill holds, and what it leaves out."""
    include = instance.objective.include
    included = [text for kind, text in COUNTED.items() if kind in include]
    included += ["wide-area channels"] if instance.wan else []
    excluded = [text for kind, text in COUNTED.items() if kind not in include]
    further = ["racks", "cooling", "spare parts", "networks for storage and management"]
    return f"Counted: {', '.join(included)}. Not counted: {', '.join([*excluded, *further])}."


def kept_free(instance: Instance, margin: Margin) -> str:
    """`12.3% on top of iteration times (one standard error of the model), 5.0% of the memory`."""
    chance = words.percent(NormalDist().cdf(margin.standard_errors))
    errors = (
        f"{margin.standard_errors:.3g} standard errors"
        if margin.confidence
        else "one standard error"
    )
    error = f" ({errors} of the model: in time with {chance})" if margin.time == "model" else ""
    times = dict.fromkeys(words.percent(workload.time_margin) for workload in instance.workload)
    memory = f", {words.percent(margin.memory)} of the memory" if margin.memory else ""
    ports = f", {words.percent(margin.ports)} of the ports of each switch" if margin.ports else ""
    return f"{words.both(times)} on top of iteration times{error}{memory}{ports}"
