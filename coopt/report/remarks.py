"""What was asked, how far a plan is from its bounds, and what a reader has to know to read it rightly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import NormalDist

from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.reserves import KnownError, Margin, is_catalogued, known_error
from coopt.instance.schema import Instance, Limits
from coopt.instance.transformer import FLOP_PER_PARAMETER
from coopt.instance.variants import of_phase
from coopt.instance.workload import Workload, spoken
from coopt.plan.evaluation import LimitCheck
from coopt.plan.parts import DirectLinks
from coopt.plan.schema import Design, Plan, WorkloadPlan
from coopt.report import words
from coopt.report.building import building_notes, mating_notes
from coopt.report.direct_links import relay_remarks
from coopt.report.parts import training_text
from coopt.report.sentence import owning
from coopt.report.tables import FigureTable, figures, verdict_word

MINIMISED = {
    "capex": "the purchase",
    "power": "the power",
    "tco": "{owned}",
    "time": "the time of training",
    "usd_per_token": "{owned} for each token",
    "carbon": "the carbon of the electricity that training takes",
}
COUNTED = {
    "hb": "HB interconnect with idle GPUs",
    "nic": "NICs",
    "switch": "switches",
    "optics": "optics",
    "gpu": "GPUs that train",
    "host": "servers",
}

TURNS = "Workloads take turns: each meets its bound with the whole cluster to itself."


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


def question_rows(instance: Instance) -> Iterator[tuple[str, str]]:
    """What is trained and how fast, what may be built, and what is minimised."""
    network = instance.network
    for workload in instance.workload:
        yield f"Train {workload.name}", f"{training_text(workload)}; {_bound(workload)}"
    yield "GPUs", f"{words.alternatives(map(words.count, instance.cluster.gpus))} x {instance.cluster.gpu.name}"
    yield "HB domains", words.alternatives(domain.name for domain in network.hb_domains)
    yield "Networks", f"{words.alternatives(network.fabrics)}, up to {words.counted(network.max_tiers, 'tier')}"
    yield "Oversubscription", _ratios(instance)
    per_gpu = words.alternatives(map(words.count, network.nics_per_gpu))
    several = (
        f", {words.alternatives(map(words.count, network.nic_planes))} planes" if network.nic_planes != (1,) else ""
    )
    if network.gpus_per_nic != (1,):
        several = f", {words.alternatives(map(words.count, network.gpus_per_nic))} GPUs to one{several}"
    yield "NICs", f"{words.alternatives(nic.name for nic in network.nics)}, {per_gpu} per GPU{several}"
    yield "Switches", words.alternatives(switch.name for switch in network.switches)
    yield "Optics", words.alternatives(optic.name for optic in network.optics)
    yield "Minimised", MINIMISED[instance.objective.minimize].format(owned=" plus ".join(owning(instance)))
    if limits := list(_limits(instance.limits)):
        yield "Limits", ", ".join(limits)
    yield from _failures(instance)
    if instance.margin is not None:
        yield "Kept free", _kept(instance, instance.margin)
    yield from _places_and_times(instance)
    yield from _joint_purchases(instance)
    yield from _doubts(instance)


def _places_and_times(instance: Instance) -> Iterator[tuple[str, str]]:
    """Sites with what they feed, phases with what they train and pay."""
    for site in instance.site:
        pue = instance.objective.pue if site.pue is None else site.pue
        usd_per_kwh = instance.objective.usd_per_kwh if site.usd_per_kwh is None else site.usd_per_kwh
        yield f"Site {site.name}", f"feeds {site.power_mw:g} MW at a PUE of {pue:g}, ${usd_per_kwh:g} a kWh"
    for number, phase in enumerate(instance.phase):
        trained = ", ".join(f"{one.name} ({_bound(one)})" for one in of_phase(instance, number).workload)
        changed = [f"{kind} x {factor:g}" for kind, factor in phase.price.model_dump().items() if factor != 1]
        prices = f"; prices: {', '.join(changed)}" if changed else ""
        labour = f"; ${phase.retrofit_usd_per_link:,g} for a link added later" if phase.retrofit_usd_per_link else ""
        yield f"From {phase.year:g} on", f"{phase.gpus:,} GPUs for {trained}{prices}{labour}"


def _failures(instance: Instance) -> Iterator[tuple[str, str]]:
    """What interrupts training."""
    asked = instance.availability
    if asked is not None:
        end = "" if asked.at == "published" else f", the {asked.at} ends of their intervals"
        few = (
            "as few as it takes"
            if asked.spare_domains is None
            else f"{words.alternatives(map(words.count, asked.spares))}"
        )
        yield (
            "Failures",
            f"rates of {asked.rates.name}{end}; repairs take {asked.repair_hours:g} h; {few} spare domains",
        )


def _joint_purchases(instance: Instance) -> Iterator[tuple[str, str]]:
    """What islands buy together: volume prices, products of a kind, a core."""
    sharing = instance.sharing
    for one in sharing.discount:
        given = [f"{words.percent(off)} off" for off in one.off or ()] or [f"${usd:,g}" for usd in one.usd or ()]
        steps = ", ".join(f"{price} from {begin:,} on" for begin, price in zip(one.begins, given, strict=True))
        yield f"Volume price of {one.item}", f"{steps} ({one.applies})"
    if few := [f"{kind} {most}" for kind, most in sharing.most_products.model_dump().items() if most is not None]:
        yield "Most products", ", ".join(few)
    if (core := sharing.core) is not None:
        yield "Core", f"{core.switch}, {core.gbit_s_per_gpu:g} Gbit/s for each GPU that trains"


def _doubts(instance: Instance) -> Iterator[tuple[str, str]]:
    """What a robust plan has to stand."""
    robust = instance.robust
    if robust is None:
        return
    slower = robust.slower.of_part
    if lost := [f"one {part} (bounds {slower[part]:g} times as long)" for part in robust.survive]:
        yield "Losses", ", ".join(lost)
    if spans := {kind: ends for kind, ends in robust.prices.intervals.items() if ends != (1.0, 1.0)}:
        yield "Prices", ", ".join(f"{kind} x {low:g} to {high:g}" for kind, (low, high) in spans.items())
    if robust.efficiency != (1.0, 1.0):
        yield "Efficiency", "x {:g} to {:g}".format(*robust.efficiency)
    yield "Aim", "least cost at the worst prices" if robust.aim == "worst-case" else "least regret at any prices"


def _bound(workload: Workload) -> str:
    if not workload.bounded:
        return "no bound on its time"
    bound = f"at most {words.seconds(workload.asked_s)} an iteration"
    rate = workload.in_own_units(workload.asked_s)
    return f"{bound} ({rate})" if rate else bound


def _ratios(instance: Instance) -> str:
    ratios = instance.network.ratios
    if ratios is not None:
        return words.alternatives(map(words.ratio, ratios))
    largest = instance.network.largest_ratio
    return "none" if largest <= 1 else f"up to {words.ratio(largest)}"


def _limits(limits: Limits) -> Iterator[str]:
    if limits.power_mw is not None:
        yield f"at most {limits.power_mw:g} MW"
    if limits.capex_usd is not None:
        yield f"at most {words.money(limits.capex_usd)} of purchase"
    if limits.racks is not None:
        yield f"at most {limits.racks:g} racks"


def notes(
    instance: Instance,
    designs: Sequence[Design | DirectLinks],
    workloads: Sequence[WorkloadPlan],
    *,
    none_inside: bool = False,
) -> Iterator[str]:
    """What is counted and what is not, how bounds are meant, and how far figures carry."""
    yield counting_sentence(instance)
    for domain in _domains(instance, designs):
        if domain.usd_per_gpu == 0 and "hb" in instance.objective.include:
            yield f"The interconnect of {domain.name} is part of its servers' price and counts as $0 here."
    if len(instance.workload) > 1:
        yield TURNS
    yield from accuracy(instance, workloads)
    yield from tp_across(workloads, none_inside=none_inside)
    for network in designs:
        if isinstance(network, DirectLinks):
            yield from relay_remarks(network)
        else:
            yield from building_notes(instance, network)


def study_notes(instance: Instance, designs: Iterable[Design | DirectLinks]) -> Iterator[str]:
    """Which HB domains nobody sells as they are planned, so that the answer is a study and no order, and which have a
    price that was never published."""
    gpu = instance.cluster.gpu.name
    for domain in _domains(instance, designs):
        if note := domain.study_note(gpu):
            yield note
        elif "hb" in instance.objective.include and (usd := _scaled_usd(domain)):
            yield f"No price of {domain.name} was found: ${words.exact(usd)} a GPU is scaled from another system's."


def _scaled_usd(domain: HbDomain) -> float:
    """The price for each GPU that the catalog works out of others' (USD), without servers; 0 where it has another."""
    listed = entries("hb_domain").get(domain.name)
    derived = any("usd_per_gpu" in source.fields and source.tag == "D" for source in domain.sources)
    return listed.usd_per_gpu if isinstance(listed, HbDomain) and derived else 0.0


def _power_left_out(instance: Instance, plan: Plan) -> Iterator[str]:
    """That GPUs and servers which the objective leaves out take more than the limit on power, where they do."""
    limit_mw, gpu, include = instance.limits.power_mw, instance.cluster.gpu, instance.objective.include
    left_out = [text for kind, text in (("gpu", "GPUs"), ("host", "servers")) if kind not in include]
    if limit_mw is None or plan.cost is None or not left_out:
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
    together_mw = (plan.cost.power_w + max(drawn_w.values(), default=0.0)) / 1e6
    if together_mw > limit_mw:
        kinds = words.both(f'"{kind}"' for kind in ("gpu", "host") if kind not in include)
        yield (
            f"With its {words.both(left_out)} this plan draws {words.with_unit(together_mw, 'MW')}, more than "
            f"limits.power_mw = {limit_mw:g}, which holds for what objective.include lists: add {kinds} there."
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
                yield f"Training {workload.name} takes {years:.3g} years for {spoken(workload.needed_tokens)} tokens."


LITTLE = 0.8
"""A share of the time that trains, below which a plan says so first."""


def _standing_still(instance: Instance, plan: Plan) -> Iterator[str]:
    """Which workloads train for little of the time, where no bound on days counts that."""
    for name in (workload.name for workload in instance.workload if not workload.calendar):
        least = min((run.uptime.goodput for run in plan.runs if run.name == name and run.uptime), default=1.0)
        if least < LITTLE:
            yield (
                f"With its interruptions, {name} trains for {words.percent(least)} of the time: train_days with "
                "train_tokens finds the spares and the network that training in time takes."
            )


def _by_law(instance: Instance) -> Iterator[str]:
    """What a scaling law says of workloads whose tokens follow from it, and which size is best for their compute."""
    for workload in instance.workload:
        if workload.loss is None and workload.compute_flop is None:
            continue
        law, size, tokens = workload.law, float(workload.model.parameters), workload.train_tokens or 0.0
        flop = FLOP_PER_PARAMETER * size * tokens
        best, its_tokens = law.best_for_compute(flop)
        yield (
            f"By the scaling law {law.name}, {spoken(tokens)} tokens take the {spoken(size)} parameters of "
            f"{workload.model.name} to a loss of {law.loss(size, tokens):.4g}; the same {flop:.3g} FLOP take the best "
            f"size, {spoken(best)} with {spoken(its_tokens)} tokens, to {law.loss(best, its_tokens):.4g}."
        )


def networks_of(plan: Plan) -> list[Design | DirectLinks]:
    """The networks of all parts of a plan; a plan that somebody wrote may have parts without one."""
    return [network for part in plan.parts if (network := part.design or part.links) is not None]


def first_sentences(instance: Instance, plan: Plan) -> Iterator[str]:
    """What stands above all else of a plan: what was replaced in its file, that nobody can order it, why it is so."""
    if plan.overrides.values:
        yield f"In place of what the file says: {plan.overrides.replaced}."
    yield from study_notes(instance, networks_of(plan))
    yield from mating_notes(instance, {part.name: part.design for part in plan.parts if part.design is not None})
    yield from _power_left_out(instance, plan)
    yield from _long_runs(instance, plan)
    yield from _standing_still(instance, plan)
    yield from _by_law(instance)
    for known in dict.fromkeys(known for workload in instance.workload for known in workload.options.evidence):
        names = [workload.name for workload in instance.workload if known in workload.options.evidence]
        trained = f"Workload {names[0]} is" if len(names) == 1 else f"Workloads {words.both(names)} are"
        yield f"{trained} trained with a declared risk: {known}."
    yield from map(words.sentence, plan.explanation)


def _domains(instance: Instance, designs: Iterable[Design | DirectLinks]) -> Iterator[HbDomain]:
    """The HB domains of designs, in the order of the instance."""
    named = {design.hb_domain.name for design in designs}
    yield from (domain for domain in instance.network.hb_domains if domain.name in named)


def accuracy(instance: Instance, workloads: Sequence[WorkloadPlan]) -> Iterator[str]:
    """How far the model is off where that is known, and which times exceed their bounds if they are off by as much."""
    gpu, runs = instance.cluster.gpu, {run.name: run for run in workloads}
    rooms: dict[KnownError, list[tuple[str, float]]] = {}
    for workload, run in ((one, runs[one.name]) for one in instance.workload if one.name in runs):
        known = known_error(gpu, workload)
        if known is not None:
            allowed_s = run.bound_s * (1.0 + workload.time_margin)  # what the margin keeps free is there for the error
            growth = allowed_s / run.iteration_time_s - 1.0 if run.iteration_time_s > 0.0 else math.inf
            rooms.setdefault(known, []).append((run.name, growth))
    for known, growths in rooms.items():
        narrow = [(name, growth) for name, growth in growths if 0.0 <= growth < known.error]
        yield (
            f"Times are estimates: on {known.runs} they are off by {words.percent(known.error)} on average"
            f"{_narrow_text(narrow, alone=len(runs) == 1)}."
        )
    if not rooms:
        yield from _origin(gpu)


COARSE = 1.25
"""How much more GPUs the next number of a list has, or the number the one before it, where a plan says so."""


def numbers_between(instance: Instance, plan: Plan) -> Iterator[str]:
    """That numbers of GPUs between those listed were not asked for, where one of them may do better."""
    listed, design = sorted(instance.cluster.gpus), plan.design
    if design is None or design.gpus not in listed:
        return
    built = design.gpus
    more = instance.objective.minimize == "time"  # more GPUs are faster; for any other aim fewer may do
    beside = [count for count in listed if (count > built if more else count < built)]
    if beside and max(built, near := min(beside) if more else max(beside)) >= COARSE * min(built, near):
        low, high = sorted((built, near))
        yield (
            f"Numbers between {words.count(low)} and {words.count(high)} GPUs were not asked for: cluster.gpus = "
            f"{{ least = {low}, most = {high}, step = {design.hb_domain.active} }} asks for them too."
        )


def tp_across(workloads: Sequence[WorkloadPlan], *, none_inside: bool) -> Iterator[str]:
    """Which TP groups leave their HB domain, and the key that keeps them inside, or that nothing inside will do."""
    named = dict.fromkeys(run.name for run in workloads if run.placement["tp"][1] > 1)
    if named:
        of = f" of {', '.join(named)}" if len({run.name for run in workloads}) > 1 else ""
        why = "; workload.allow_tp_across = false keeps them inside one."
        if none_inside:
            bounds = "the bound" if len(workloads) == 1 else "the bounds"
            why = f" because no mapping that keeps them inside one meets {bounds}."
        yield f"TP groups{of} extend over several HB domains{why}"


def margin_note(instance: Instance, plan: Plan, without: float | None = None) -> Iterator[str]:
    """What is kept free for errors, and what that costs where the best plan without it is known.

    Parameters
    ----------
    without
        The objective (USD or W) of the best plan that keeps nothing free.
    """
    kept, kind, value = instance.margin, plan.objective.kind, plan.objective.value
    if kept is not None:
        cost = ""
        if without is not None and value is not None:
            share = f" ({words.percent((value - without) / without)})" if without else ""
            dear = f"; that costs {words.amount(kind, value - without)}{share}"
            cost = dear if value > without else "; that costs nothing"
        yield f"Kept free: {_kept(instance, kept)}{_free_ports(instance, plan)}{cost}."


def _free_ports(instance: Instance, plan: Plan) -> str:
    """` (8 of 64 on qm9700)`: the ports for growth of the switches that are built."""
    named = {name for part in plan.parts if part.design for name in part.design.fabric.switch_names}
    built = [one for one in instance.network.switches if one.free_ports and one.name in named]
    counts = [f"{one.free_ports} of {one.free_ports + one.radix} on {one.name}" for one in built]
    return f" ({', '.join(counts)})" if counts else ""


def _kept(instance: Instance, kept: Margin) -> str:
    """`12.3% on top of iteration times (one standard error of the model), 5.0% of the memory`."""
    error = ""
    if kept.time == "model":
        chance = NormalDist().cdf(kept.standard_errors)
        count = "one standard error" if kept.confidence is None else f"{kept.standard_errors:.3g} standard errors"
        error = f" ({count} of the model: in time with {words.percent(chance)})"
    times = dict.fromkeys(words.percent(workload.time_margin) for workload in instance.workload)
    memory = f", {words.percent(kept.memory)} of the memory" if kept.memory else ""
    ports = f", {words.percent(kept.ports)} of the ports of each switch" if kept.ports else ""
    return f"{words.both(times)} on top of iteration times{error}{memory}{ports}"


def _narrow_text(narrow: Sequence[tuple[str, float]], *, alone: bool) -> str:
    """`; an iteration more than 2.9% longer exceeds its bound`."""
    if not narrow:
        return ""
    if alone:
        return f"; an iteration more than {words.percent(narrow[0][1])} longer exceeds its bound"
    named = words.both(f"{words.percent(growth)} ({name})" for name, growth in narrow)
    return f"; iterations more than {named} longer exceed their bounds"


def _origin(gpu: Gpu) -> Iterator[str]:
    """Where efficiencies without a known error come from."""
    shares = [source for source in gpu.sources if any(f.startswith("efficiency") for f in source.fields)]
    if is_catalogued(gpu) and any("fitted" in source.source for source in shares):
        yield f"Times are estimates: the efficiencies of {gpu.name} were fitted to published runs of its generation."
    elif not is_catalogued(gpu):
        yield f"Times are estimates: no published runs tell how far they are off on {gpu.name}."
    elif any(source.tag in ("D", "M") for source in shares):
        yield f"Times are estimates: the efficiencies of {gpu.name} are not fitted to its own measurements."


def counting_sentence(instance: Instance) -> str:
    """What the bill holds and what it leaves out."""
    included = [text for kind, text in COUNTED.items() if kind in instance.objective.include]
    included += ["wide-area channels"] if instance.wan else []
    excluded = [text for kind, text in COUNTED.items() if kind not in instance.objective.include]
    not_counted = [*excluded, "racks", "cooling", "spare parts", "networks for storage and management"]
    return f"Counted: {', '.join(included)}. Not counted: {', '.join(not_counted)}."
