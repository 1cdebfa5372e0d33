"""The facts of a plan in one list, which the terminal, the page of a plan and the planner's page
render.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from coopt.instance.schema import Instance
from coopt.instance.variants import trained_on, workloads_in, years_of
from coopt.instance.workload import Workload
from coopt.network.part_networks import network_of
from coopt.plan.claims import ObjectiveClaim
from coopt.plan.couplings import Part
from coopt.plan.parts import Cost, Design, DirectLinks, WorkloadPlan
from coopt.plan.schema import Plan
from coopt.report import words
from coopt.report.parts import (
    COLLECTIVES,
    degrees,
    nics_in_words,
    routing_words,
    schedule,
    side_by_side,
    split,
    tiers_of,
    trained_text,
    training_text,
    uplinks,
    uptime_text,
    without_gpus,
)
from coopt.report.tables import PlanFact

ON_SCREEN = ("HB domains", "GPUs", "Network", "Split", "Schedule", "Iteration", "Goodput")
"""Facts of the only network and of its only workload that the first screen shows."""


def plan_facts(instance: Instance, plan: Plan) -> list[PlanFact]:
    """Everything that holds of a plan, worked out once; nothing where it builds nothing.

    Totals of all of it ("total"), its parts, or the workloads of the only one, side by side
    ("row"), what each part is built of ("network"), and how each workload runs on it ("run").
    Limits, bills and the claim are typed already (`plan_checks`, `Cost`, `ObjectiveClaim`).
    """
    if plan.cost is None:
        return []
    facts = [fact for part in plan.parts for fact in _of_part(instance, plan, part)]
    return [*_totals(instance, plan, plan.cost), *facts]


def label(plan: Plan, part: Part, run: WorkloadPlan) -> str:
    """What a run is called: by its workload, and by its part where a plan has several."""
    if len(plan.parts) == 1 or part.name.startswith(run.name):
        return run.name if len(plan.parts) == 1 else part.name
    return f"{run.name}, {part.name}"


def _totals(instance: Instance, plan: Plan, cost: Cost) -> list[PlanFact]:
    """What a plan costs, what it promises and how far it is proven, at a glance."""
    claim, fact = plan.objective, partial(PlanFact, "total", "")
    years = sum(years_of(instance, t) for t in range(len(instance.years)))
    owned = f"total cost of {years:g} year{'' if years == 1 else 's'}"
    scope = without_gpus(cost) or "GPUs included"
    networks, phases = len({(part.site, part.slot) for part in plan.parts}), len(plan.parts)
    last = network_of(plan.parts[-1])
    domains = words.times(last.hb_domain.count, last.hb_domain.name)
    grows = f"; {words.counted(phases, 'phase')} of one network" if phases > 1 else ""
    is_best = plan.status == "optimal" and not claim.gap
    proven = "no better plan exists" if is_best else "to the proven lower bound"
    return [
        fact("Purchase", cost.capex_usd, "USD", words.money(cost.capex_usd), scope),
        fact("Power", cost.power_w, "W", words.power(cost.power_w), "of what is bought"),
        fact("With electricity", cost.tco_usd, "USD", words.money(cost.tco_usd), owned),
        *(_tightest(plan) if plan.runs else []),
        fact("Networks", networks, "networks", words.count(networks), "each with its own design")
        if networks > 1
        else fact(
            "GPUs that train", last.gpus, "GPUs", words.count(last.gpus), f"in {domains}{grows}"
        ),
        fact("Gap", "unknown", "share", note="nothing is proven")
        if claim.gap is None
        else fact("Gap", claim.gap, "share", words.percent(claim.gap), proven),
    ]


def _tightest(plan: Plan) -> list[PlanFact]:
    """The iteration that is nearest to its bound."""
    run = min(plan.runs, key=lambda run: run.slack)
    name = f"Iteration of {run.name}" if len(plan.runs) > 1 else "Iteration"
    bound = f"{words.percent(run.slack)} under the bound of {words.seconds(run.bound_s)}"
    used = f"MFU {words.percent(run.mfu)}; {degrees(run.mapping)}"
    note = f"{bound if run.bounded else 'no bound'}; {used}"
    took = words.seconds(run.iteration_time_s)
    return [PlanFact("total", "", name, run.iteration_time_s, "s", took, note)]


def _of_part(instance: Instance, plan: Plan, part: Part) -> Iterator[PlanFact]:
    """How a part stands beside others, what it is built of, and how each workload runs on it."""
    network, several = network_of(part), len(plan.parts) > 1
    names = [run.name for run in part.workloads]
    trained = trained_on(instance, part.phase, names, network.gpus)
    asked = {workload.name: workload for workload in trained}
    # A plan that is wrong may name others.
    runs = [(run, asked.get(run.name, instance.workload[0])) for run in part.workloads]
    if several:
        fact, fabric = partial(PlanFact, "row", part.name), part.design and part.design.fabric
        yield fact("HB domains", words.domains_built(network))
        yield fact("fabric", "direct" if not fabric else fabric.kind if fabric.tiers else "-")
        yield fact("GPUs", network.gpus, "GPUs", words.count(network.gpus))
    dated = any(
        workload.calendar for each in plan.parts for workload in workloads_in(instance, each.phase)
    )
    # Of several workloads of a part the tightest is shown: if that one is in time, so are others.
    by_slack = sorted(runs, key=lambda pair: pair[0].slack)
    for run, workload in by_slack[:1] if several else by_slack:
        fact = partial(PlanFact, "row", part.name if several else run.name)
        if not several:
            yield fact("split", degrees(run.mapping))
        bound = f"of {words.seconds(run.bound_s)}" if run.bounded else "s"
        took = f"{words.digits(run.iteration_time_s, 4)} {bound}"
        yield fact("iteration", run.iteration_time_s, "s", took)
        if dated:
            yield fact("days", run.promised_s, "s", words.days_of(run, workload))
        if run.uptime is not None:
            yield fact("goodput", run.uptime.goodput, "share", words.percent(run.uptime.goodput))
        yield fact("slack", run.slack, "share", words.free(run.slack, run.bound_s))
    yield from network_facts(instance, part.name, network)
    yield PlanFact("network", part.name, "Power", part.power_w, "W", words.power(part.power_w))
    yield from chain(*(run_facts(label(plan, part, run), run, asked_of) for run, asked_of in runs))


def network_facts(
    instance: Instance, name: str, network: Design | DirectLinks
) -> Iterator[PlanFact]:
    """What a part is built of: its domains, GPUs, and what joins them."""
    fact, domain = partial(PlanFact, "network", name), network.hb_domain
    racks = "" if network.racks is None else f", {words.counted(network.racks, 'rack')}"
    spares = network.spare_domains if isinstance(network, Design) else 0
    idle = f", {words.count(network.spare_gpus)} idle spares" if network.spare_gpus else ""
    standing_by = f" ({words.counted(spares, 'domain')} standing by)" if spares else ""
    train = f"{words.times(network.gpus, instance.cluster.gpu.name)} train{idle}{standing_by}"
    each = f"{words.times(domain.count, domain.name)} of {words.counted(domain.size, 'GPU')}{racks}"
    yield fact("HB domains", domain.count, "domains", each)
    yield fact("GPUs", network.gpus, "GPUs", train)
    if network.gpus < domain.count * domain.size:
        mean = network.gpus / domain.count
        yield fact("In each domain", mean, "GPUs", f"{mean:.4g} of {domain.size} GPUs train")
    yield from (
        _direct(fact, network)
        if isinstance(network, DirectLinks)
        else _switched(fact, instance, network)
    )


def _switched(fact: Callable[..., PlanFact], instance: Instance, design: Design) -> list[PlanFact]:
    fabric = design.fabric
    if not fabric.tiers:
        return [fact("Network", "none, one HB domain holds every GPU")]
    alike = side_by_side(fabric.kind, fabric.planes, fabric.nic.planes)
    ratio, ports = fabric.oversubscription, fabric.nic.planes
    bandwidth = "full bandwidth" if ratio <= 1 else f"{words.ratio(ratio)} oversubscribed"
    gbit_s = next((nic.gbit_s for nic in instance.network.nics if nic.name == fabric.nic.name), 0.0)
    ports_text = f", {ports} ports of {gbit_s / ports:g} Gbit/s to planes of their own"
    nics = f"{nics_in_words(fabric.nic)}{ports_text if ports > 1 else ''}"
    switches = words.times(fabric.switch_count, fabric.switch_text)
    transceivers = words.count(fabric.transceiver_count)
    routed = fabric.tiers > 1 and fabric.routing != 1
    return [
        fact("Network", ratio, ":1", f"{tiers_of(fabric)}{alike}, {bandwidth}"),
        fact("NIC", fabric.nic.per_gpu / fabric.nic.shared_by, "per GPU", nics),
        fact("Switch", fabric.switch_count, "switches", switches),
        fact("Transceivers", fabric.transceiver_count, "transceivers", transceivers),
        fact("Uplinks", uplinks(design)),
        *([fact("Routing", routing_words(fabric.routing))] if routed else []),
    ]


def _direct(fact: Callable[..., PlanFact], direct: DirectLinks) -> list[PlanFact]:
    ports: Counter[int] = Counter()
    for bundle in direct.bundles:
        ports.update(dict.fromkeys(bundle.between, bundle.links))
    used = f"{min(ports.values(), default=0)} to {max(ports.values(), default=0)}"
    links = f"{words.counted(direct.links, 'direct link')} of {direct.nic.name}"
    blocks = f"{words.counted(direct.stages, 'block')} of stages"
    return [
        fact("Network", direct.links, "links", links),
        fact("Fewest links", direct.links_bound, "links", words.count(direct.links_bound)),
        fact("Grid", f"{blocks}, of {words.counted(direct.replicas, 'domain')} each"),
        fact("Ports", f"{used} used of {direct.ports} in each domain"),
        fact("Optic", direct.optic),
        fact("Panel", direct.panel or "none, links are plugged directly"),
    ]


def run_facts(name: str, run: WorkloadPlan, workload: Workload) -> list[PlanFact]:
    """How a workload runs: time, split, schedule, memory and utilisation."""
    fact, memory = partial(PlanFact, "run", name), run.memory_gib / run.memory_limit_gib
    trained, uptime = trained_text(run, workload), run.uptime
    took = words.allowed(run.iteration_time_s, run.bound_s)
    iteration = f"{took}{f' ({trained})' if trained else ''}, MFU {words.percent(run.mfu)}"
    held = f"{run.memory_gib:.1f} of {run.memory_limit_gib:.1f} GiB per GPU"
    rate = f"{run.tokens_per_s:,.0f} tokens/s on {words.counted(run.gpus, 'GPU')}"
    ways = ", ".join(f"{COLLECTIVES[kind]}: {way}" for kind, way in run.collectives.items())
    slowest = max(run.routes.values(), default=0.0)
    routes = f"slowed by up to {slowest:.3g}" if slowest > 1 else "none slowed"
    goodput = (
        [] if uptime is None else [fact("Goodput", uptime.goodput, "share", uptime_text(uptime))]
    )
    return [
        fact("Model", training_text(workload)),
        fact("Split", split(run)),
        fact("Schedule", schedule(run.mapping, workload.options.schedule)),
        fact("Iteration", run.iteration_time_s, "s", iteration),
        fact("Asked", workload.required_s, "s", words.required_bound(workload)),
        *goodput,
        fact("Throughput", run.tokens_per_s, "tokens/s", rate),
        fact("Memory", run.memory_gib, "GiB", f"{held} ({words.percent(memory)})"),
        fact("HFU", run.hfu, "share", words.percent(run.hfu)),
        *(fact("Evidence", evidence) for evidence in workload.options.evidence),
        *([fact("Collectives", ways)] if ways else []),
        *([fact("Routes", slowest, "times", f"found, {routes}")] if run.routes else []),
    ]


def value_name(instance: Instance, kind: str) -> str:
    """What the value of an objective measures: `capex`, or `regret of capex`."""
    return f"regret of {kind}" if instance.minimizes_regret else kind


VALUE_UNITS = {"capex": "USD", "power": "W", "tco": "USD"}


def claim_text(claim: ObjectiveClaim, *, name: str | None = None, whole: bool = False) -> str:
    """Value, bound and gap of the objective, by its kind or another name.

    `whole` rounds dollars and watts, of which nobody reads parts.
    """
    claims = [
        f"{word} {_with_unit(claim.kind, value, whole)}"
        for word, value in (("value", claim.value), ("lower bound", claim.bound))
        if value is not None
    ]
    if claim.gap is not None:
        claims.append(f"gap {words.percent(claim.gap)}")
    return f"{name or claim.kind}: {', '.join(claims) if claims else 'nothing known'}"


def _with_unit(kind: str, value: float, is_rounded: bool) -> str:
    if kind not in VALUE_UNITS:
        return words.amount(kind, value)
    return words.with_unit(round(value) if is_rounded else value, VALUE_UNITS[kind])
