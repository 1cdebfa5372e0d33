"""The words for what a plan is made of, and the tables of its bill, switches and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from coopt.instance.errors import spoken
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.plan.parts import (
    Cost,
    Design,
    DirectLinks,
    Fabric,
    Item,
    MappingChoice,
    NicChoice,
    Uptime,
    WorkloadPlan,
    beside_ordinary,
)
from coopt.report import words
from coopt.report.tables import FigureTable, figures

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


SENT = {
    "pp": "sends to the next stage",
    "dp": "exchanges of replicas or contexts",
    "tp": "TP collectives",
    "cp": "keys and values of contexts",
    "ep": "tokens to experts",
    "edp": "gradients of experts",
}
"""What domains send over direct links in each phase."""

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


def switches_table(designs: Mapping[str, Design]) -> FigureTable:
    """The switches of each level of networks by their names, the ports of one of them in use, and
    the links below the level.
    """
    several = len(designs) > 1
    products = any(len(design.fabric.switch_names) > 1 for design in designs.values())
    return figures(
        "Switches",
        (*(("part",) if several else ()), "level", *(("switch",) if products else ()), "optic"),
        ("switches", "down ports", "uplinks", "links"),
        [
            (
                *((name,) if several else ()),
                str(tier.level),
                *((tier.switch or design.fabric.switch.name,) if products else ()),
                " / ".join(tier.optics),
                *map(
                    words.count,
                    (tier.switches, tier.down_ports, tier.uplinks_per_switch, tier.links),
                ),
            )
            for name, design in designs.items()
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


def nics_in_words(nic: NicChoice) -> str:
    """The NICs of a GPU, or the GPUs of a NIC, with the product."""
    ratio_text = f"for {nic.shared_by} GPUs" if nic.shared_by > 1 else "per GPU"
    return f"{nic.per_gpu} x {nic.name} {ratio_text}"


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


COLLECTIVES = {"tp": "TP", "cp": "CP", "dp": "DP", "ep": "EP", "edp": "gradients of experts"}


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


def link_tables(direct: DirectLinks) -> Iterator[FigureTable]:
    """Bundles by where their ends lie in the grid of stages and replicas, and the traffic of each
    phase.
    """
    counts: Counter[tuple[int, ...]] = Counter()
    for bundle in direct.bundles:
        (s, d), (t, e) = (divmod(domain, direct.replicas) for domain in bundle.between)
        around = min((d - e) % direct.replicas, (e - d) % direct.replicas)
        counts[abs(t - s), around, bundle.links] += 1
    bundles = [tuple(map(words.count, (*key, count))) for key, count in sorted(counts.items())]
    places = ("blocks apart", "apart in the ring", "links", "bundles")
    yield figures("Bundles of links", (), places, bundles)
    phases = [
        (
            SENT[phase.name],
            f"{phase.pace_links:.4g}",
            words.percent(
                sum(route.share for route in phase.routes if len(route.path) > 2)
                / sum(route.share for route in phase.routes)
            ),
            words.count(max(len(route.path) for route in phase.routes) - 1),
        )
        for phase in direct.phases
    ]
    numbers = ("as fast as links", "passed on by others", "most hops")
    yield figures("Traffic between domains", ("phase",), numbers, phases)


def breakdown_table(run: WorkloadPlan, name: str) -> FigureTable:
    """Where the time of one iteration goes; parts that take none are left out."""
    iteration_s = run.iteration_time_s
    return figures(
        f"One iteration of {name}",
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


def without_gpus(cost: Cost) -> str:
    """Which GPUs are no part of the cost; empty where all are."""
    if any(item.kind == "gpu" for item in cost.items):
        return ""
    idle = any(item.idle and item.usd > 0 for item in cost.items)
    return "without the GPUs that train" if idle else "without the GPUs"
