"""How far a plan is from its bounds, and what a reader has to know to read it rightly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import NormalDist

from coopt.instance.catalog import entries
from coopt.instance.errors import spoken
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.reserves import KnownError, Margin, is_catalogued, known_error
from coopt.instance.schema import Instance
from coopt.instance.transformer import FLOP_PER_PARAMETER
from coopt.network.space import Space
from coopt.plan.evaluation import LimitCheck
from coopt.plan.parts import DirectLinks
from coopt.plan.schema import Design, Plan, WorkloadPlan
from coopt.report import words
from coopt.report.building import building_notes, mating_notes
from coopt.report.catalog import FAR, far_figures
from coopt.report.direct_links import relay_remarks
from coopt.report.tables import FigureTable, figures, verdict_word

COUNTED = {
    "hb": "HB interconnect with idle GPUs",
    "nic": "NICs",
    "switch": "switches",
    "optics": "optics",
    "gpu": "GPUs that train",
    "host": "servers",
}

TURNS = "Workloads take turns: each meets its bound with the whole cluster to itself."


def turns_text(instance: Instance) -> str:
    """That workloads take turns, so that days of several add up."""
    add_up = (
        " One after the other, their days add up."
        if sum(workload.calendar for workload in instance.workload) > 1
        else ""
    )
    return f"{TURNS}{add_up}"


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


def notes(
    instance: Instance,
    designs: Sequence[Design | DirectLinks],
    workloads: Sequence[WorkloadPlan],
    *,
    none_inside: bool = False,
    beside: Sequence[str] = (),
) -> Iterator[str]:
    """What is counted and what is not, how bounds are meant, and how far figures carry.

    Parameters
    ----------
    beside
        What the bill holds further than `include` says.
    """
    yield counting_sentence(instance, beside)
    for domain in _domains(instance, designs):
        if domain.usd_per_gpu == 0 and "hb" in instance.objective.include:
            yield (
                f"The interconnect of {domain.name} is part of its servers' price and counts as $0"
                " here."
            )
    if len(instance.workload) > 1:
        yield turns_text(instance)
    yield from accuracy(instance, workloads)
    yield from tp_across(workloads, none_inside=none_inside)
    for network in designs:
        if isinstance(network, DirectLinks):
            yield from relay_remarks(network)
        else:
            yield from building_notes(instance, network)


def study_notes(instance: Instance, designs: Iterable[Design | DirectLinks]) -> Iterator[str]:
    """Which HB domains nobody sells as they are planned, so that the answer is a study and no
    order, and which have a price that was never published.
    """
    gpu = instance.cluster.gpu.name
    for domain in _domains(instance, designs):
        if note := domain.study_note(gpu):
            yield note
        elif "hb" in instance.objective.include and (usd := _scaled_usd(domain)):
            yield (
                f"No price of {domain.name} was found: ${words.exact(usd)} a GPU is scaled from"
                " another system's."
            )


def _scaled_usd(domain: HbDomain) -> float:
    """The price for each GPU that the catalog works out of others' (USD), without servers; 0 where
    it has another.
    """
    entry = entries("hb_domain").get(domain.name)
    # A price of one's own has no such source: only prices that the catalog derived are called
    # scaled.
    derived = any("usd_per_gpu" in source.fields and source.tag == "D" for source in domain.sources)
    return entry.usd_per_gpu if isinstance(entry, HbDomain) and derived else 0.0


def _power_left_out(instance: Instance, plan: Plan) -> Iterator[str]:
    """That GPUs and servers which the objective leaves out take more than the limit on power, where
    they do; that a limit is so far above what is drawn that its unit may be another one.
    """
    limit_mw, gpu, include = (
        instance.limits.power_mw,
        instance.cluster.gpu,
        instance.objective.include,
    )
    left_out = [
        text for kind, text in (("gpu", "GPUs"), ("host", "servers")) if kind not in include
    ]
    if plan.cost is None:
        return
    domains = {domain.name: domain for domain in instance.network.hb_domains}
    drawn_w: dict[float | None, float] = {}
    for part in plan.parts:
        if (network := part.design or part.links) is not None:
            domain = domains[network.hb_domain.name]
            gpus_w = network.gpus * gpu.w if "gpu" not in include else 0.0
            host_w = domain.host_w_per_gpu or 0.0 if "host" not in include else 0.0
            own_w = gpus_w + network.hb_domain.count * domain.size * host_w
            drawn_w[part.phase] = drawn_w.get(part.phase, 0.0) + own_w
    # Phases stand one after the other, so that the largest of them counts, and parts of a phase
    # together.
    together_mw = (plan.cost.power_w + max(drawn_w.values(), default=0.0)) / 1e6
    if limit_mw is not None and left_out and together_mw > limit_mw:
        kinds = words.both(f'"{kind}"' for kind in ("gpu", "host") if kind not in include)
        yield (
            f"With its {words.both(left_out)} this plan draws {words.with_unit(together_mw, 'MW')},"
            f" more than limits.power_mw = {limit_mw:g}, which holds for what objective.include"
            f" lists: add {kinds} there."
        )
    for key, cap_mw in instance.power_caps_mw.items():
        if cap_mw > FAR * together_mw:
            yield (
                f"{key} = {cap_mw:,g} is more than {FAR:g} times the"
                f" {words.with_unit(together_mw, 'MW')} that this plan draws with its GPUs: check"
                " its unit, which is MW."
            )


def _long_runs(instance: Instance, plan: Plan) -> Iterator[str]:
    """Which workloads train for more than a year, of those whose tokens are given."""
    for workload in instance.workload:
        runs = [run for run in plan.runs if run.name == workload.name]
        if runs and workload.train_tokens is not None:
            slowest = max(runs, key=lambda run: run.iteration_time_s)
            goodput = slowest.uptime.goodput if slowest.uptime else 1.0
            years = workload.iterations * slowest.elapsed_s(goodput) / (365 * 86400)
            if 1 < years < math.inf:
                yield (
                    f"Training {workload.name} takes {years:.3g} years for"
                    f" {spoken(workload.needed_tokens)} tokens."
                )


LITTLE = 0.8
"""A share of the time that trains, below which a plan says so first."""


def _standing_still(instance: Instance, plan: Plan) -> Iterator[str]:
    """Which workloads train for little of the time, where no bound on days counts that."""
    for name in (workload.name for workload in instance.workload if not workload.calendar):
        min_goodput = min(
            (run.uptime.goodput for run in plan.runs if run.name == name and run.uptime),
            default=1.0,
        )
        if min_goodput < LITTLE:
            yield (
                f"With its interruptions, {name} trains for {words.percent(min_goodput)} of the"
                " time: train_days with train_tokens finds the spares and the network that"
                " training in time takes."
            )


def _by_law(instance: Instance) -> Iterator[str]:
    """What a scaling law says of workloads whose tokens follow from it, and which size is best for
    their compute.
    """
    for workload in instance.workload:
        if workload.loss is None and workload.compute_flop is None:
            continue
        law, size, tokens = (
            workload.law,
            float(workload.model.parameters),
            workload.train_tokens or 0.0,
        )
        flop = FLOP_PER_PARAMETER * size * tokens
        best_size, its_tokens = law.best_for_compute(flop)
        yield (
            f"By the scaling law {law.name}, {spoken(tokens)} tokens take the {spoken(size)}"
            f" parameters of {workload.model.name} to a loss of {law.loss(size, tokens):.4g}; the"
            f" same {flop:.3g} FLOP take the best size, {spoken(best_size)} with"
            f" {spoken(its_tokens)} tokens, to {law.loss(best_size, its_tokens):.4g}."
        )


def networks_of(plan: Plan) -> list[Design | DirectLinks]:
    """The networks of all parts of a plan; a plan that somebody wrote may have parts without
    one.
    """
    return [network for part in plan.parts if (network := part.design or part.links) is not None]


def first_sentences(instance: Instance, plan: Plan) -> Iterator[str]:
    """What stands above all else of a plan: what was replaced in its file, that nobody can order
    it, why it is so.
    """
    if plan.overrides.values:
        yield f"In place of what the file says: {plan.overrides.replaced}."
    yield from study_notes(instance, networks_of(plan))
    yield from mating_notes(
        instance, {part.name: part.design for part in plan.parts if part.design is not None}
    )
    yield from far_figures(instance)
    yield from _power_left_out(instance, plan)
    yield from _long_runs(instance, plan)
    yield from _standing_still(instance, plan)
    yield from _by_law(instance)
    for evidence in dict.fromkeys(
        evidence for workload in instance.workload for evidence in workload.options.evidence
    ):
        names = [
            workload.name for workload in instance.workload if evidence in workload.options.evidence
        ]
        trained = (
            f"Workload {names[0]} is" if len(names) == 1 else f"Workloads {words.both(names)} are"
        )
        yield f"{trained} trained with a declared risk: {evidence}."
    yield from map(words.sentence, plan.explanation)


def _domains(instance: Instance, designs: Iterable[Design | DirectLinks]) -> Iterator[HbDomain]:
    """The HB domains of designs, in the order of the instance."""
    names = {design.hb_domain.name for design in designs}
    yield from (domain for domain in instance.network.hb_domains if domain.name in names)


def accuracy(instance: Instance, workloads: Sequence[WorkloadPlan]) -> Iterator[str]:
    """How far the model is off where that is known, and which times exceed their bounds if they are
    off by as much.
    """
    gpu, runs = instance.cluster.gpu, {run.name: run for run in workloads}
    rooms: dict[KnownError, list[tuple[str, float]]] = {}
    for workload, run in (
        (candidate, runs[candidate.name])
        for candidate in instance.workload
        if candidate.name in runs
    ):
        error_known = known_error(gpu, workload)
        if error_known is not None:
            allowed_s = run.bound_s * (
                1.0 + workload.time_margin
            )  # what the margin keeps free is there for the error
            growth = (
                allowed_s / run.iteration_time_s - 1.0 if run.iteration_time_s > 0.0 else math.inf
            )
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


LITTLE_MEMORY = 0.02
"""Share of a GPU's memory below which a plan says that so little is left free."""
MANY_IDLE = 0.05
"""Share of the GPUs of HB domains from which a plan says why they stand idle."""
COARSE = 1.25
"""How much more GPUs the next number of a list has, or the number the one before it, where a plan
says so.
"""


def numbers_between(instance: Instance, plan: Plan) -> Iterator[str]:
    """That numbers of GPUs between those listed were not asked for, where one of them may do
    better.
    """
    counts, design = sorted(instance.cluster.gpus), plan.design
    if design is None or design.gpus not in counts:
        return
    gpus = design.gpus
    wants_more = (
        instance.objective.minimize == "time"
    )  # more GPUs are faster; for any other aim fewer may do
    beside = [count for count in counts if (count > gpus if wants_more else count < gpus)]
    if beside and max(gpus, nearest := min(beside) if wants_more else max(beside)) >= COARSE * min(
        gpus, nearest
    ):
        start, end = sorted((gpus, nearest))
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
    design = plan.design
    if design is None or not design.hb_domain.count:
        return
    domain = design.hb_domain
    gpus_bought, min_domains = domain.count * domain.size, -(-design.gpus // domain.size)
    idle = gpus_bought - design.gpus
    # A remainder in the last domain is no choice: only whole domains more than needed are worth a
    # note.
    if min_domains == domain.count or idle < MANY_IDLE * gpus_bought:
        return
    reason = "every domain trains as many of its GPUs (network.domain_fill)"
    if instance.network.domain_fill != "even":
        reason = (
            "on the fewer domains that were tried no mapping is in time, or nothing costs less"
            " (docs/network.md)"
        )
    if instance.network.domain_fill == "fewest" and _skips_numbers(instance, design):
        reason += "; network.domain_fill = 'any' tries more numbers of them"
    yield (
        f"{words.percent(idle / gpus_bought)} of the GPUs of HB domains stand idle:"
        f" {words.count(min_domains)} of the {words.count(domain.count)} domains would hold those"
        f" that train, but {reason}. Another number of GPUs or another batch may divide better."
    )


def _skips_numbers(instance: Instance, design: Design) -> bool:
    """Whether fewer domains than those of the plan may hold its GPUs and are not tried by
    default.
    """
    (hb,) = (
        domain for domain in instance.network.hb_domains if domain.name == design.hb_domain.name
    )
    space = Space(instance=instance)
    further_counts = {*space.domain_counts(design.gpus, hb, "any")}.difference(
        space.domain_counts(design.gpus, hb)
    )
    return min(further_counts, default=design.hb_domain.count) < design.hb_domain.count


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


def margin_note(instance: Instance, plan: Plan, without: float | None = None) -> Iterator[str]:
    """What is kept free for errors, and what that costs where the best plan without it is known.

    Parameters
    ----------
    without
        The objective (USD or W) of the best plan that keeps nothing free.
    """
    margin, kind, value = instance.margin, plan.objective.kind, plan.objective.value
    if margin is not None:
        cost = ""
        if without is not None and value is not None:
            share = f" ({words.percent((value - without) / without)})" if without else ""
            dear = f"; that costs {words.amount(kind, value - without)}{share}"
            cost = dear if value > without else "; that costs nothing"
        yield f"Kept free: {kept_free(instance, margin)}{_free_ports(instance, plan)}{cost}."


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
    growths = [(name, words.percent(max(growth, 0.001))) for name, growth in narrow]
    if not growths:
        return ""
    if alone:
        return f"; an iteration more than {growths[0][1]} longer exceeds its bound"
    texts = words.both(f"{growth} ({name})" for name, growth in growths)
    return f"; iterations more than {texts} longer exceed their bounds"


def _origin(gpu: Gpu) -> Iterator[str]:
    """Where efficiencies without a known error come from."""
    shares = [
        source for source in gpu.sources if any(f.startswith("efficiency") for f in source.fields)
    ]
    if is_catalogued(gpu) and any("fitted" in source.source for source in shares):
        yield (
            f"Times are estimates: the efficiencies of {gpu.name} were fitted to published runs of"
            " its generation."
        )
    elif not is_catalogued(gpu):
        yield f"Times are estimates: no published runs tell how far they are off on {gpu.name}."
    elif any(source.tag in ("D", "M") for source in shares):
        yield (
            f"Times are estimates: the efficiencies of {gpu.name} are not fitted to its own"
            " measurements."
        )


def counting_sentence(instance: Instance, beside: Sequence[str] = ()) -> str:
    """What the bill holds, with what it has `beside` the kinds of `include`, and what it leaves
    out.
    """
    included = [text for kind, text in COUNTED.items() if kind in instance.objective.include] + [
        *beside
    ]
    excluded = [text for kind, text in COUNTED.items() if kind not in instance.objective.include]
    not_counted = [
        *excluded,
        "racks",
        "cooling",
        "spare parts",
        "networks for storage and management",
    ]
    return f"Counted: {', '.join(included)}. Not counted: {', '.join(not_counted)}."


def kept_free(instance: Instance, margin: Margin) -> str:
    """`12.3% on top of iteration times (one standard error of the model), 5.0% of the memory`."""
    error = ""
    if margin.time == "model":
        chance = NormalDist().cdf(margin.standard_errors)
        count = (
            "one standard error"
            if margin.confidence is None
            else f"{margin.standard_errors:.3g} standard errors"
        )
        error = f" ({count} of the model: in time with {words.percent(chance)})"
    times = dict.fromkeys(words.percent(workload.time_margin) for workload in instance.workload)
    memory = f", {words.percent(margin.memory)} of the memory" if margin.memory else ""
    ports = f", {words.percent(margin.ports)} of the ports of each switch" if margin.ports else ""
    return f"{words.both(times)} on top of iteration times{error}{memory}{ports}"
