"""One network of a plan: what is built, what it costs, and how each workload runs on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType

from coopt.instance.errors import spoken
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.plan.parts import DirectLinks, NicChoice, Uptime, beside_ordinary
from coopt.plan.schema import Cost, Design, Fabric, Item, MappingChoice, WorkloadPlan
from coopt.report import words
from coopt.report.direct_links import link_tables
from coopt.report.tables import FigureTable, facts, figures

BILL = "Bill of materials"
COMPONENTS = {
    "compute": "layers, compute",
    "logits": "logits, compute",
    "tp": "tensor-parallel traffic",
    "pp": "pipeline traffic",
    "cp": "context-parallel traffic",
    "ep": "all-to-all of experts",
    "dp": "data-parallel traffic",
    "wan": "gradients between sites",
    "embedding": "embedding gradients",
    "bubble": "pipeline bubble",
    "optimizer": "optimizer step",
    "straggler": "stragglers and overhead",
}


ROUTING = {
    "spray": "flows are sprayed over all paths",
    "pinned": "each flow is pinned to one path",
    "ecmp": "each flow takes a path at random (ECMP)",
}


def routing_words(routing: str | float) -> str:
    """How flows share the links above leaves."""
    return (
        ROUTING[routing]
        if isinstance(routing, str)
        else f"busiest links carry {routing:g} times the mean"
    )


def bill_table(title: str, lines: Iterable[Item], usd: float, w: float) -> FigureTable:
    """The lines with their totals."""
    return figures(
        title,
        ("item", "kind"),
        ("count", "unit $", "$", "unit W", "W"),
        [
            (
                line.item,
                words.kind(line.kind),
                words.count(line.count),
                *(words.exact(value) for value in (line.unit_usd, line.usd, line.unit_w, line.w)),
            )
            for line in lines
        ],
        total=("total", "", "", "", words.exact(usd), "", words.exact(w)),
    )


def part_tables(
    instance: Instance,
    network: Design | DirectLinks,
    runs: Iterable[tuple[WorkloadPlan, Workload]],
    cost: Cost | None = None,
    *,
    title: str = "",
    bill: str = BILL,
    where: str = "",
) -> Iterator[RenderableType]:
    """One network: what is built, its bill where it has one of its own, and how each workload runs
    on it.

    Parameters
    ----------
    title, bill
        Titles of the table of what is built and of the bill.
    where
        Stands behind the name of a workload, where a plan has several networks: " at east".
    """
    if isinstance(network, DirectLinks):
        yield from link_tables(network, title or "Direct links")
    else:
        yield from design_tables(instance, network, title or "Decision")
    if cost is not None:
        yield ""
        yield from bill_tables(instance, cost, bill)
    for run, workload in runs:
        yield ""
        yield from workload_tables(run, workload, where)


def design_tables(
    instance: Instance, design: Design, title: str = "Decision"
) -> Iterator[RenderableType]:
    """The decision, and the switches of each level."""
    yield facts(title, decision_rows(instance, design))
    if design.fabric.tier:
        yield ""
        yield switches_table(design)


def switches_table(design: Design) -> FigureTable:
    """The switches of each level, the ports of one of them in use, and the links below the
    level.
    """
    products = len(design.fabric.switch_names) > 1
    return figures(
        "Switches of the whole network",
        ("level", *(("switch",) if products else ()), "optic"),
        ("switches", "down ports", "uplinks", "links"),
        [
            (
                str(tier.level),
                *((tier.switch or design.fabric.switch.name,) if products else ()),
                " / ".join(tier.optics),
                words.count(tier.switches),
                words.count(tier.down_ports),
                words.count(tier.uplinks_per_switch),
                words.count(tier.links),
            )
            for tier in design.fabric.tier
        ],
    )


def side_by_side(kind: str, networks: int, ports: int) -> str:
    """`, 8 rails`, `, 2 planes` or `, 8 rails on each of 2 planes`: equal networks that no cable
    joins; empty for one.

    Parameters
    ----------
    networks, ports
        All of them, and how many of each NIC's ports lead to some of its own, which are planes.
    """
    rails, planes = words.counted(networks // ports, "rail"), words.counted(ports, "plane")
    if kind == "rail-only" and networks > ports:
        return f", {rails} on each of {planes}" if ports > 1 else f", {rails}"
    return f", {planes}" if ports > 1 else ""


def _nics_of_gpus(nic: NicChoice) -> str:
    return f"1 for {nic.shared_by} GPUs" if nic.shared_by > 1 else f"{nic.per_gpu} per GPU"


def nics_in_words(nic: NicChoice) -> str:
    """The NICs of a GPU, or the GPUs of a NIC, with the product."""
    ratio_text = f"for {nic.shared_by} GPUs" if nic.shared_by > 1 else "per GPU"
    return f"{nic.per_gpu} x {nic.name} {ratio_text}"


def _ports_of_nic(instance: Instance, fabric: Fabric) -> str:
    """The ports of a NIC that lead to planes of their own, if there are several."""
    gbit_s = next((nic.gbit_s for nic in instance.network.nics if nic.name == fabric.nic.name), 0.0)
    planes = fabric.nic.planes
    return (
        f", {planes} ports of {gbit_s / planes:g} Gbit/s to planes of their own"
        if planes > 1
        else ""
    )


def decision_rows(instance: Instance, design: Design) -> Iterator[tuple[str, str]]:
    """The decision line by line; nothing about a network where one domain needs none."""
    domain, fabric = design.hb_domain, design.fabric
    active_text = (
        "all of them train" if domain.active == domain.size else f"{domain.active} of them train"
    )
    # Where domains are not filled alike, what fills the fullest would be too many for all.
    if domain.active * domain.count > design.gpus:
        active_text = f"{design.gpus / domain.count:.4g} of them train on average"
    yield (
        "HB domain",
        (
            f"{words.times(domain.count, domain.name)}, {words.counted(domain.size, 'GPU')} each,"
            f" {active_text}"
        ),
    )
    yield "GPUs", f"{words.times(design.gpus, instance.cluster.gpu.name)} train"
    standing_by = (
        f", {words.counted(design.spare_domains, 'domain')} standing by"
        if design.spare_domains
        else ""
    )
    idle = f"{words.counted(design.spare_gpus, 'GPU')} idle, paid for{standing_by}"
    yield "Spares", idle if design.spare_gpus else "none"
    if fabric.tiers:
        yield (
            "Fabric",
            f"{tiers_of(fabric)}{side_by_side(fabric.kind, fabric.planes, fabric.nic.planes)}",
        )
        yield (
            "NIC",
            f"{fabric.nic.name}, {_nics_of_gpus(fabric.nic)}{_ports_of_nic(instance, fabric)}",
        )
        yield "Switch", words.times(fabric.switch_count, fabric.switch_text)
        yield "Transceivers", words.count(fabric.transceiver_count)
        yield "Uplinks", uplinks(design)
        is_full = fabric.oversubscription <= 1
        yield (
            "Oversubscription",
            f"{words.ratio(fabric.oversubscription)}{' (full bandwidth)' if is_full else ''}",
        )
        if fabric.tiers > 1 and fabric.routing != 1:
            yield "Routing", routing_words(fabric.routing)
    else:
        yield "Fabric", "none, one HB domain holds every GPU"
    yield (
        "Racks",
        (
            "not known for this HB domain"
            if design.racks is None
            else f"{words.count(design.racks)} for HB domains"
        ),
    )


def tiers_of(fabric: Fabric) -> str:
    """`rail-only, 2 tiers`."""
    return f"{fabric.kind}, {words.counted(fabric.tiers, 'tier')}"


def uplinks(design: Design) -> str:
    """Uplinks of each level that has some, against the ports below it."""
    parts = [
        f"{tier.uplinks_per_switch} up, {tier.down_ports} down at level {tier.level}"
        for tier in design.fabric.tier
        if tier.uplinks_per_switch
    ]
    if design.fabric.pod_bundle > 1:
        parts[0] += f", in bundles of {design.fabric.pod_bundle}"
    return "; ".join(parts) if parts else "none, one tier"


def bill_tables(instance: Instance, cost: Cost, title: str = BILL) -> Iterator[RenderableType]:
    """The bill of materials with its totals, and the total cost of ownership."""
    yield bill_table(title, cost.items, cost.capex_usd, cost.power_w)
    yield tco_sentence(instance, cost)


def tco_sentence(instance: Instance, cost: Cost) -> str:
    """Purchase and power as one sum, with what it assumes."""
    terms = instance.objective
    rates = f" at ${terms.usd_per_kwh:g} per kWh and a PUE of {terms.pue:g}"
    if instance.site:
        rates = ", each site at its own price of electricity and PUE"
    total, works = words.money(cost.tco_usd), []
    if terms.labour_share:
        works.append(f"{words.percent(terms.labour_share)} of it for labour")
    if terms.support_share:
        works.append(f"{words.percent(terms.support_share)} of it a year for support")
    purchase_text = f"purchase, {', '.join(works)}, and" if works else "purchase plus"
    return (
        f"Total cost of ownership {total}: {purchase_text} {terms.years:g} years of power{rates}."
    )


def workload_tables(
    run: WorkloadPlan, workload: Workload, place: str = ""
) -> Iterator[RenderableType]:
    """A workload's facts and where its time goes."""
    yield facts(
        f"{run.name}{place}" if place else f"Workload {run.name}", workload_rows(run, workload)
    )
    yield ""
    yield breakdown_table(run)


COLLECTIVES = {"tp": "TP", "cp": "CP", "dp": "DP", "ep": "EP", "edp": "gradients of experts"}


def workload_rows(run: WorkloadPlan, workload: Workload) -> Iterator[tuple[str, str]]:
    """Model, time, split, schedule, memory and utilisation, line by line."""
    yield "Model", training_text(workload)
    within = f", at most {words.seconds(run.bound_s)} allowed" if workload.bounded else ", no bound"
    yield "Iteration", f"{words.seconds(run.iteration_time_s)}{within}"
    if workload.bounded and (training_time := trained_text(run, workload)):
        yield "Bound", f"{workload.in_own_units(workload.asked_s)}; this plan {training_time}"
    if run.uptime is not None:
        yield "Goodput", uptime_text(run.uptime)
    yield "Throughput", f"{run.tokens_per_s:,.0f} tokens/s on {words.counted(run.gpus, 'GPU')}"
    yield "Split", split(run)
    yield "Schedule", schedule(run.mapping, workload.options.schedule)
    share = words.percent(run.memory_gib / run.memory_limit_gib)
    yield "Memory", f"{run.memory_gib:.1f} of {run.memory_limit_gib:.1f} GiB per GPU ({share})"
    for knob in run.knobs:
        yield "Knob", knob
    for evidence in workload.options.evidence:
        yield "Evidence", evidence
    if run.collectives:
        algorithms = (f"{COLLECTIVES[kind]}: {name}" for kind, name in run.collectives.items())
        yield "Collectives", ", ".join(algorithms)
    if run.routes:
        max_routes = max(run.routes.values())
        slowed = f"slowed by up to {max_routes:.3g}" if max_routes > 1 else "none slowed"
        yield "Routes", f"found for all flows, {slowed}"
    yield "Utilisation", f"MFU {words.percent(run.mfu)}, HFU {words.percent(run.hfu)}"


def under_bound(run: WorkloadPlan) -> str:
    """`1.5% under the bound of 12.00 s`."""
    if not run.bounded:
        return "no bound"
    return f"{words.percent(run.slack)} under the bound of {words.seconds(run.bound_s)}"


def trained_text(run: WorkloadPlan, workload: Workload) -> str:
    """The pace of a workload in the terms of its bound, days with all interruptions; empty where
    these are seconds.

    Of days that are kept with a probability those that are, and the mean; that no failure is
    counted is said of others.
    """
    if run.uptime is None or not workload.calendar:
        time_text = workload.in_own_units(run.iteration_time_s)
        if run.uptime is not None and workload.min_tokens_per_s is None and time_text:
            return (
                f"{time_text} if nothing fails,"
                f" {workload.duration(run.elapsed_s(run.uptime.goodput))} on average"
            )
        return f"{time_text} if nothing fails" if workload.calendar else time_text
    mean_s = run.elapsed_s(run.uptime.goodput)
    # Without a confidence the mean is what was promised, and is told once.
    if run.uptime.promised >= run.uptime.goodput:
        return workload.in_own_units(mean_s)
    promised_text = workload.in_own_units(run.elapsed_s(run.uptime.promised))
    return f"{promised_text} with the confidence asked for, {workload.duration(mean_s)} on average"


def uptime_text(uptime: Uptime) -> str:
    """`97.2% of the time trains: a failure every 829 h, ...`."""
    failures = (
        "no failures"
        if uptime.failure_s is None
        else f"a failure every {words.time(uptime.failure_s)}"
    )
    often = "" if uptime.interval_s is None else f" every {words.time(uptime.interval_s)}"
    working = words.percent(uptime.running)
    pace = (
        f", so that {words.percent(uptime.pace)} of the pace is left" if uptime.pace < 1.0 else ""
    )
    ports = (
        f"; {words.percent(uptime.port_out)} of the time a port of some NIC is out"
        if uptime.port_out
        else ""
    )
    return (
        f"{words.percent(uptime.goodput)} of the time trains: {failures}, checkpoints of"
        f" {words.time(uptime.checkpoint_s)}{often}, restarts of {words.time(uptime.restart_s)};"
        f" enough domains work {working} of the time{ports}{pace}"
    )


def training_text(workload: Workload) -> str:
    """`gpt-22b (22.06 billion parameters) in bf16, 64 sequences of 2,048 tokens an iteration,
    software megatron-core`.

    Of a mixture of experts the parameters that a token meets are told as well.
    """
    from coopt.perf.parameters import (
        model_parameters,
    )  # needs numpy, which a verdict is shown without

    parameters, active_parameters = model_parameters(workload.model)
    size = f"{spoken(parameters)} parameters" + (
        f", {spoken(active_parameters)} active" if active_parameters < parameters else ""
    )
    batch = (
        f"{words.counted(workload.global_batch, 'sequence')} of {words.count(workload.model.seq)}"
        " tokens an iteration"
    )
    return (
        f"{workload.model.name} ({size}) in {workload.precision}, {batch}, software"
        f" {workload.options.software.name}"
    )


def split(run: WorkloadPlan) -> str:
    """`TP 8 (8 in the domain x 1 across), PP 16 (1 x 16), DP 32 (1 x 32)`."""
    parts: list[str] = []
    for name in ("tp", "pp", "dp", "cp", "ep"):
        degree = getattr(run.mapping, name)
        if name in ("cp", "ep") and degree == 1:
            continue
        inside, across = run.placement.get(name, (1, 1))
        text = f"{inside} x {across}" if parts else f"{inside} in the domain x {across} across"
        if inside * across > degree:
            text = f"at most {inside} in a domain x {across}"
        parts.append(f"{name.upper()} {degree} ({text})")
    turned = ", stages of a pipeline side by side" if run.mapping.outermost == "dp" else ""
    return ", ".join(parts) + turned


def degrees(mapping: MappingChoice) -> str:
    """`TP 8, PP 16, DP 32`; CP and EP only where there is some."""
    pairs = [(name, getattr(mapping, name)) for name in ("tp", "pp", "dp", "cp", "ep")]
    return ", ".join(
        f"{name.upper()} {degree}"
        for name, degree in pairs
        if degree > 1 or name not in ("cp", "ep")
    )


ORDERS = {"zb-h1": "ZB-H1, ", "dualpipe": "DualPipe, "}


def schedule(mapping: MappingChoice, order: str) -> str:
    """The order of passes where it is not 1F1B, micro-batches, recomputation and sharding in
    words.
    """
    name = ORDERS.get(order, "") if mapping.pp > 1 else ""
    interleave = f", {mapping.interleave} interleaved chunks" if mapping.interleave > 1 else ""
    ordinary = (
        f"{name}micro-batch {mapping.micro_batch}{interleave}, recompute {mapping.recompute}, "
        f"sequence parallelism {'on' if mapping.sequence_parallel else 'off'}, ZeRO {mapping.zero}"
    )
    return ", ".join([ordinary, *beside_ordinary(mapping.model_dump())])


def knob_sentences(workloads: Sequence[WorkloadPlan]) -> Iterator[str]:
    """What departs from ordinary training, and in which workloads, where these stand in one
    table.
    """
    for knob in dict.fromkeys(knob for workload in workloads for knob in workload.knobs):
        names = dict.fromkeys(workload.name for workload in workloads if knob in workload.knobs)
        yield f"Knob of {', '.join(names)}: {knob}."


def breakdown_table(run: WorkloadPlan) -> FigureTable:
    """Where the time of one iteration goes; parts that take none are left out."""
    iteration_s = run.iteration_time_s
    return figures(
        f"One iteration of {run.name}",
        ("component",),
        ("time", "share"),
        [
            (
                COMPONENTS.get(name, name),
                words.seconds(spent_s),
                words.percent(spent_s / iteration_s),
            )
            for name, spent_s in run.breakdown_s.items()
            if spent_s
        ],
        total=("iteration", words.seconds(iteration_s), words.percent(1.0)),
    )
