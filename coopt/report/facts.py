"""The facts of a plan in one list, which the terminal, the page of a plan and the planner's page
render.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from coopt.instance.schema import Instance
from coopt.instance.variants import trained_on, workloads_in, years_of
from coopt.instance.workload import Workload
from coopt.network.part_networks import network_of
from coopt.plan.couplings import Part
from coopt.plan.parts import DirectLinks, WorkloadPlan
from coopt.plan.schema import Design, Plan
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
    return [*_totals(instance, plan), *facts]


def label(plan: Plan, part: Part, run: WorkloadPlan) -> str:
    """What a run is called: by its workload, and by its part where a plan has several."""
    if len(plan.parts) == 1 or part.name.startswith(run.name):
        return run.name if len(plan.parts) == 1 else part.name
    return f"{run.name}, {part.name}"


def _totals(instance: Instance, plan: Plan) -> Iterator[PlanFact]:
    """What a plan costs, what it promises and how far it is proven, at a glance."""
    cost, claim, fact = plan.cost, plan.objective, partial(PlanFact, "total", "")
    assert cost is not None
    years = sum(years_of(instance, t) for t in range(len(instance.years)))
    owned = f"total cost of {years:g} year{'' if years == 1 else 's'}"
    scope = without_gpus(cost) or "GPUs included"
    yield fact("Purchase", cost.capex_usd, "USD", words.money(cost.capex_usd), scope)
    yield fact("Power", cost.power_w, "W", words.power(cost.power_w), "of what is bought")
    yield fact("With electricity", cost.tco_usd, "USD", words.money(cost.tco_usd), owned)
    for run in sorted(plan.runs, key=lambda run: run.slack)[:1]:
        bound = f"{words.percent(run.slack)} under the bound of {words.seconds(run.bound_s)}"
        yield fact(
            f"Iteration of {run.name}" if len(plan.runs) > 1 else "Iteration",
            run.iteration_time_s,
            "s",
            words.seconds(run.iteration_time_s),
            f"{bound if run.bounded else 'no bound'}; MFU {words.percent(run.mfu)};"
            f" {degrees(run.mapping)}",
        )
    networks, phases = len({(part.site, part.slot) for part in plan.parts}), len(plan.parts)
    last = network_of(plan.parts[-1])
    domains = words.times(last.hb_domain.count, last.hb_domain.name)
    grows = f"; {words.counted(phases, 'phase')} of one network" if phases > 1 else ""
    yield (
        fact("Networks", networks, "networks", words.count(networks), "each with its own design")
        if networks > 1
        else fact(
            "GPUs that train", last.gpus, "GPUs", words.count(last.gpus), f"in {domains}{grows}"
        )
    )
    is_best = plan.status == "optimal" and not claim.gap
    yield (
        fact("Gap", "unknown", "share", note="nothing is proven")
        if claim.gap is None
        else fact(
            "Gap",
            claim.gap,
            "share",
            words.percent(claim.gap),
            "no better plan exists" if is_best else "to the proven lower bound",
        )
    )


def _of_part(instance: Instance, plan: Plan, part: Part) -> Iterator[PlanFact]:
    """How a part stands beside others, what it is built of, and how each workload runs on it."""
    network, several = network_of(part), len(plan.parts) > 1
    names = [run.name for run in part.workloads]
    trained = trained_on(instance, part.phase, names, network.gpus)
    asked = {workload.name: workload for workload in trained}
    # A plan that is wrong may name others.
    workloads = [asked.get(name, instance.workload[0]) for name in names]
    if several:
        fact, switched = (
            partial(PlanFact, "row", part.name),
            network.fabric if isinstance(network, Design) else None,
        )
        fabric = "direct" if switched is None else switched.kind if switched.tiers else "-"
        yield fact("HB domains", words.domains_built(network))
        yield fact("fabric", fabric)
        yield fact("GPUs", network.gpus, "GPUs", words.count(network.gpus))
    dated = any(
        workload.calendar for each in plan.parts for workload in workloads_in(instance, each.phase)
    )
    # Of several workloads of a part the tightest is shown: if that one is in time, so are others.
    runs = list(zip(part.workloads, workloads, strict=True))
    by_slack = sorted(runs, key=lambda pair: pair[0].slack)
    for run, workload in by_slack[:1] if several else by_slack:
        fact = partial(PlanFact, "row", part.name if several else run.name)
        if not several:
            yield fact("split", degrees(run.mapping))
        time = words.digits(run.iteration_time_s, 4)
        bound = f"of {words.seconds(run.bound_s)}" if run.bounded else "s"
        yield fact("iteration", run.iteration_time_s, "s", f"{time} {bound}")
        if dated:
            yield fact("days", run.promised_s, "s", words.days_of(run, workload))
        if run.uptime is not None:
            yield fact("goodput", run.uptime.goodput, "share", words.percent(run.uptime.goodput))
        yield fact("slack", run.slack, "share", words.free(run.slack, run.bound_s))
    yield from network_facts(instance, part.name, network)
    for run, workload in runs:
        yield from run_facts(label(plan, part, run), run, workload)


def network_facts(
    instance: Instance, name: str, network: Design | DirectLinks
) -> Iterator[PlanFact]:
    """What a part is built of: its domains, GPUs, and what joins them."""
    fact, domain = partial(PlanFact, "network", name), network.hb_domain
    racks = "" if network.racks is None else f", {words.counted(network.racks, 'rack')}"
    spares = network.spare_domains if isinstance(network, Design) else 0
    idle = f", {words.count(network.spare_gpus)} idle spares" if network.spare_gpus else ""
    idle += f" ({words.counted(spares, 'domain')} standing by)" if spares else ""
    gpus = f"{words.times(network.gpus, instance.cluster.gpu.name)} train{idle}"
    each = f"{words.times(domain.count, domain.name)} of {words.counted(domain.size, 'GPU')}{racks}"
    yield fact("HB domains", domain.count, "domains", each)
    yield fact("GPUs", network.gpus, "GPUs", gpus)
    if network.gpus < domain.count * domain.size:
        mean = network.gpus / domain.count
        yield fact("In each domain", mean, "GPUs", f"{mean:.4g} of {domain.size} GPUs train")
    if isinstance(network, DirectLinks):
        yield from _direct(fact, network)
    elif network.fabric.tiers:
        yield from _switched(fact, instance, network)
    else:
        yield fact("Network", "none, one HB domain holds every GPU")


def _switched(
    fact: Callable[..., PlanFact], instance: Instance, design: Design
) -> Iterator[PlanFact]:
    fabric = design.fabric
    alike = side_by_side(fabric.kind, fabric.planes, fabric.nic.planes)
    ratio = fabric.oversubscription
    ratio_text = "full bandwidth" if ratio <= 1 else f"{words.ratio(ratio)} oversubscribed"
    yield fact("Network", ratio, ":1", f"{tiers_of(fabric)}{alike}, {ratio_text}")
    gbit_s = next((nic.gbit_s for nic in instance.network.nics if nic.name == fabric.nic.name), 0.0)
    ports = fabric.nic.planes
    ports_text = f", {ports} ports of {gbit_s / ports:g} Gbit/s to planes of their own"
    nics = f"{nics_in_words(fabric.nic)}{ports_text if ports > 1 else ''}"
    switches = words.times(fabric.switch_count, fabric.switch_text)
    yield fact("NIC", fabric.nic.per_gpu / fabric.nic.shared_by, "per GPU", nics)
    yield fact("Switch", fabric.switch_count, "switches", switches)
    transceivers = words.count(fabric.transceiver_count)
    yield fact("Transceivers", fabric.transceiver_count, "transceivers", transceivers)
    yield fact("Uplinks", uplinks(design))
    if fabric.tiers > 1 and fabric.routing != 1:
        yield fact("Routing", routing_words(fabric.routing))


def _direct(fact: Callable[..., PlanFact], direct: DirectLinks) -> Iterator[PlanFact]:
    ports: Counter[int] = Counter()
    for bundle in direct.bundles:
        ports.update(dict.fromkeys(bundle.between, bundle.links))
    used = f"{min(ports.values(), default=0)} to {max(ports.values(), default=0)}"
    links = f"{words.counted(direct.links, 'direct link')} of {direct.nic.name}"
    blocks = f"{words.counted(direct.stages, 'block')} of stages"
    yield fact("Network", direct.links, "links", links)
    yield fact("Fewest links", direct.links_bound, "links", words.count(direct.links_bound))
    yield fact("Grid", f"{blocks}, of {words.counted(direct.replicas, 'domain')} each")
    yield fact("Ports", f"{used} used of {direct.ports} in each domain")
    yield fact("Optic", direct.optic)
    yield fact("Panel", direct.panel or "none, links are plugged directly")


def run_facts(name: str, run: WorkloadPlan, workload: Workload) -> Iterator[PlanFact]:
    """How a workload runs: time, split, schedule, memory and utilisation."""
    fact, memory = partial(PlanFact, "run", name), run.memory_gib / run.memory_limit_gib
    trained = trained_text(run, workload)
    took = words.allowed(run.iteration_time_s, run.bound_s)
    iteration = f"{took}{f' ({trained})' if trained else ''}, MFU {words.percent(run.mfu)}"
    held = f"{run.memory_gib:.1f} of {run.memory_limit_gib:.1f} GiB per GPU"
    rate = f"{run.tokens_per_s:,.0f} tokens/s on {words.counted(run.gpus, 'GPU')}"
    yield fact("Model", training_text(workload))
    yield fact("Split", split(run))
    yield fact("Schedule", schedule(run.mapping, workload.options.schedule))
    yield fact("Iteration", run.iteration_time_s, "s", iteration)
    yield fact("Asked", workload.asked_s, "s", words.asked_bound(workload))
    if run.uptime is not None:
        yield fact("Goodput", run.uptime.goodput, "share", uptime_text(run.uptime))
    yield fact("Throughput", run.tokens_per_s, "tokens/s", rate)
    yield fact("Memory", run.memory_gib, "GiB", f"{held} ({words.percent(memory)})")
    yield fact("HFU", run.hfu, "share", words.percent(run.hfu))
    yield from (fact("Evidence", evidence) for evidence in workload.options.evidence)
    if run.collectives:
        ways = (f"{COLLECTIVES[kind]}: {way}" for kind, way in run.collectives.items())
        yield fact("Collectives", ", ".join(ways))
    if run.routes:
        slowest = max(run.routes.values())
        slowed = f"slowed by up to {slowest:.3g}" if slowest > 1 else "none slowed"
        yield fact("Routes", slowest, "times", f"found for all flows, {slowed}")
