"""The facts of a plan in one list, which the terminal, the page of a plan and the planner's page
render.

The tables of its bill, switches and times are here too, and the words for what it is made of.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from coopt.instance.schema import Instance, question_on
from coopt.instance.texts import spoken
from coopt.instance.variants import trained_on, workloads_in, years_of
from coopt.instance.workload import Workload, lasting
from coopt.plan.couplings import Part, network_of
from coopt.plan.parts import (
    Cost,
    Design,
    DirectLinks,
    Fabric,
    Item,
    MappingChoice,
    Uptime,
    WorkloadPlan,
    beside_ordinary,
)
from coopt.plan.schema import ObjectiveClaim, Plan
from coopt.report import words
from coopt.report.assumptions import balance_texts, rests_on, routing_words
from coopt.report.time_errors import likely
from coopt.report.words import FigureTable, PlanFact, figures

BILL = "Bill of materials"
PACE_TOKENS = 1e12
"""Tokens for which days are told where those of a run are not given."""
MOST_PACES = 3
"""Workloads of which one sentence tells such days."""
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
    "dp": "exchanges between DP or CP ranks",
    "tp": "TP collectives",
    "cp": "keys and values between CP ranks",
    "ep": "tokens to experts",
    "edp": "gradients of experts",
}
"""What domains send over direct links in each phase."""


def bill_table(
    title: str, lines: Iterable[Item], usd: float, w: float, instance: Instance | None = None
) -> FigureTable:
    """The lines with their totals; servers stand apart from the interconnect of their domain where
    the instance counts both.
    """
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
            for line in servers_apart(lines, instance)
        ],
        total=("total", "", "", "", words.exact(usd), "", words.exact(w)),
    )


def servers_apart(lines: Iterable[Item], instance: Instance | None) -> Iterator[Item]:
    """Lines of the bill, those of HB domains with servers as two: interconnect and servers, each
    where it costs or draws something; both have the line's factor on prices.
    """
    domains = {hb.name: hb for hb in instance.network.hb_domains} if instance else {}
    for line in lines:
        domain = domains.get(line.name) if line.kind == "hb" else None
        if domain is None or not any(domain.servers):
            yield line
            continue
        usd, w = (
            part / whole if whole else 0.0
            for part, whole in zip(
                domain.servers, (domain.usd_per_gpu, domain.w_per_gpu), strict=True
            )
        )
        for text, usd_share, w_share in (("interconnect", 1.0 - usd, 1.0 - w), ("servers", usd, w)):
            figures_of_part = {
                "unit_usd": line.unit_usd * usd_share,
                "usd": line.usd * usd_share,
                "unit_w": line.unit_w * w_share,
                "w": line.w * w_share,
            }
            if figures_of_part["usd"] or figures_of_part["w"]:
                yield line.model_copy(update={"item": f"{line.item}, {text}", **figures_of_part})


def standing_table(instance: Instance, plan: Plan, *, compact: bool = False) -> FigureTable | None:
    """What of the units that stand stays, what is bought beside them, and what is retired; None
    where all is new or nothing is bought.
    """
    if plan.cost is None or instance.stands is None or instance.network.given:
        return None
    from coopt.network.parts import standing_units  # loads arrays

    used = Counter[tuple[str, str]]()
    for item in plan.cost.items:
        used[item.product] += item.count
    stock, include = standing_units(instance), instance.objective.include
    products = [product for product in dict.fromkeys((*stock, *used)) if product[0] in include]
    title = "Existing parts"
    return figures(
        "" if compact else title,
        (title if compact else "item", "kind"),
        ("existing", "kept", "bought", "retired"),
        [
            (
                name,
                words.kind(kind),
                *map(
                    words.count,
                    (stands, min(stands, needed), max(needed - stands, 0), max(stands - needed, 0)),
                ),
            )
            for kind, name in products
            for stands, needed in [(stock[kind, name], used[kind, name])]
        ],
        compact=compact,
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


def tiers_of(fabric: Fabric) -> str:
    """`rail-only, 2 tiers`."""
    return f"{fabric.title}, {words.counted(fabric.tiers, 'tier')}"


def uplinks(design: Design) -> str:
    """Uplinks of each level that has some, against the ports below it; those to a core aside."""
    parts = [
        f"{tier.uplinks_per_switch} up, {tier.down_ports} down at level {tier.level}"
        for tier in design.fabric.tier
        if tier.uplinks_per_switch
    ]
    if design.fabric.pod_bundle > 1:
        parts[0] += f", in bundles of {design.fabric.pod_bundle} links"
    return "; ".join(parts)


def tco_sentence(instance: Instance, cost: Cost, *, rates: bool = True) -> str:
    """Purchase and power as one sum, with what it assumes; or without the rates of electricity."""
    from coopt.network.parts import electricity_of  # loads numpy

    terms = instance.objective
    paid = {
        (at.usd_per_kwh, at.pue)
        for at in (electricity_of(terms, site) for site in instance.site or (None,))
    }
    at = " at site prices"
    if len(paid) == 1:
        at = " at ${:g} per kWh and a PUE of {:g}".format(*paid.pop())
    shares = {"for labour": terms.labour_share, "a year for support": terms.support_share}
    works = [f"{words.percent(share)} of it {text}" for text, share in shares.items() if share]
    purchase_text = f"purchase, {', '.join(works)}, and" if works else "purchase plus"
    return (
        f"Total cost of ownership {words.money(cost.tco_usd)}: {purchase_text} {terms.years:g}"
        f" year{'' if terms.years == 1 else 's'} of power{at if rates else ''}."
    )


COLLECTIVES = {"tp": "TP", "cp": "CP", "dp": "DP", "ep": "EP", "edp": "gradients of experts"}
EXCHANGES = {
    "exchange": "all-to-all",
    "exchange on both levels at once": "all-to-all, inside HB domains while between them",
    "switches of the network": "reduction in network switches",
    "switches of the HB domain": "reduction in HB-domain switches",
}
"""What readers call the algorithms of a plan that its own names do not explain."""


def trained_text(run: WorkloadPlan, workload: Workload) -> str:
    """The pace of a workload in the terms of its bound, days with all interruptions beside those
    that it may take; empty where these are seconds.

    Of days that are kept with a probability those that are, and the mean; that no failure is
    counted is said of others.
    """
    bound = ""
    if workload.train_days is not None:
        margin = workload.time_margin
        less = f" ({words.in_days(workload.train_days)} less the margin)" if margin else ""
        bound = f" of at most {words.in_days(workload.train_days / (1.0 + margin))}{less}"
    if run.uptime is None or not workload.calendar:
        time_text = workload.in_own_units(run.iteration_time_s, bound)
        if workload.min_tokens_per_s is not None or not time_text:
            return time_text
        mean_text = (
            ""
            if run.uptime is None
            else f", {workload.duration(run.elapsed_s(run.uptime.goodput))} on average"
        )
        return f"{time_text} if nothing fails{mean_text}"
    mean_s = run.elapsed_s(run.uptime.goodput)
    # Without a confidence the mean is what was promised, and is told once.
    if run.uptime.promised >= run.uptime.goodput:
        return workload.in_own_units(mean_s, bound)
    promised_text = workload.in_own_units(run.elapsed_s(run.uptime.promised), bound)
    return f"{promised_text} with the required confidence, {workload.duration(mean_s)} on average"


def whole_batches(
    instance: Instance, pairs: Iterable[tuple[WorkloadPlan, Workload]]
) -> list[tuple[WorkloadPlan, Workload]]:
    """Runs with what all sites that train one model do together, where each has a part of it."""
    whole = {workload.name: workload for workload in instance.workload if instance.cluster.shares}
    return [(run, whole.get(run.name, workload)) for run, workload in pairs]


def pace_text(
    instance: Instance,
    pairs: Iterable[tuple[WorkloadPlan, Workload]],
    most: int = MOST_PACES,
    *,
    in_turn: bool = False,
) -> str:
    """`1 trillion tokens in 17.6 days (language) and 3.1 days (code) if nothing fails`, of the
    slowest run of each workload; nothing of those that have tokens of their own, of which days are
    told, or that make no progress. Of many workloads the slowest are named, the others counted.
    """
    days: dict[str, float] = {}
    runs = whole_batches(instance, pairs)
    for run, workload in runs:
        elapsed_s = run.elapsed_s(run.uptime.goodput if run.uptime else 1.0)
        pace = workload.days_for(PACE_TOKENS, elapsed_s)
        if workload.train_tokens is None and math.isfinite(pace):
            days[run.name] = max(days.get(run.name, 0.0), pace)
    whole = in_turn and len(days) == len({run.name for run, _ in runs})
    shown = _slowest(days, words.in_days, most, several=len({run.name for run, _ in runs}) > 1)
    undisturbed = "" if instance.availability else " if nothing fails"
    undisturbed += ", all sites together" * bool(instance.cluster.shares)
    together = f"; of each, one after the other, in {words.in_days(sum(days.values()))}"
    of_all = together if whole and len(days) > 1 else ""
    return f"{spoken(PACE_TOKENS)} tokens in {shown}{undisturbed}{of_all}" if shown else ""


def days_text(
    instance: Instance,
    pairs: Iterable[tuple[WorkloadPlan, Workload]],
    most: int = MOST_PACES,
    *,
    in_turn: bool = False,
) -> str:
    """`training takes 18.6 years (large) and 5.03 years (small) if nothing fails`, of several
    workloads whose tokens are given, and whose days nothing else tells.
    """
    runs = [pair for pair in whole_batches(instance, pairs) if pair[1].train_tokens is not None]
    named = {run.name: workload for run, workload in runs if not workload.calendar}
    if len(named) < 2:
        return ""
    times_s = {name: max(run.promised_s for run, _ in runs if run.name == name) for name in named}
    days = {name: workload.days(times_s[name]) for name, workload in named.items()}
    shown = _slowest(days, lasting, most, several=True)
    undisturbed = "" if all(run.uptime for run, _ in runs) else " if nothing fails"
    together = f"; one after the other, {lasting(sum(days.values()))}" if in_turn else ""
    return f"training takes {shown}{undisturbed}{together}"


def _slowest(
    days: Mapping[str, float], text: Callable[[float], str], most: int, *, several: bool
) -> str:
    """Days of workloads, the longest first; of many the others are counted."""
    slowest = max(days, key=days.__getitem__, default="")
    if most == 1 and len(days) > 2:
        return f"at most {text(days[slowest])} ({slowest})"
    told = most + (len(days) == most + 1)
    shown = [
        f"{text(pace)}{f' ({name})' if several else ''}"
        for name, pace in sorted(days.items(), key=lambda item: -item[1])[:told]
    ]
    if len(days) > told:
        limit = text(sorted(days.values())[-most])
        shown.append(f"at most {limit} ({words.counted(len(days) - most, 'other')})")
    return words.both(shown)


def uptime_text(uptime: Uptime) -> str:
    """`trains 97.2% of the time: a failure every 829 h, ...`."""
    failures = (
        "no failures"
        if uptime.failure_s is None
        else f"a failure every {words.time(uptime.failure_s)}"
    )
    often = "" if uptime.interval_s is None else f" every {words.time(uptime.interval_s)}"
    working = words.percent(uptime.running)
    pace = (
        f", so that training runs at {words.percent(uptime.pace)} of full speed on average"
        if uptime.pace < 1.0
        else ""
    )
    ports = (
        "; some link of a NIC or between sites is down"
        f" {words.percent(uptime.port_out)} of the time"
        if uptime.port_out
        else ""
    )
    return (
        f"trains {words.percent(uptime.goodput)} of the time: {failures}, checkpoints of"
        f" {words.time(uptime.checkpoint_s)}{often}, restarts of {words.time(uptime.restart_s)};"
        f" enough HB domains work {working} of the time{ports}{pace}"
    )


def training_text(workload: Workload) -> str:
    """`gpt-22b (22.06 billion parameters) in bf16, 64 sequences of 2,048 tokens an iteration,
    software megatron-core`.

    Of a mixture of experts the parameters that a token meets are told as well.
    """
    from coopt.perf.mapping import (
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
    for name, degree in split_degrees(run.mapping).items():
        inside, across = run.placement.get(name, (1, 1))
        text = f"{inside} x {across}" if parts else f"{inside} in the domain x {across} across"
        if inside * across > degree:
            text = f"at most {inside} in a domain x {across} across"
        parts.append(f"{name.upper()} {degree} ({text})")
    return ", ".join(parts) + (
        ", with the stages of a pipeline in neighbouring domains"
        if run.mapping.outermost == "dp"
        else ""
    )


def degrees(mapping: MappingChoice) -> str:
    """`TP 8, PP 16, DP 32`; CP and EP only where there is some."""
    return ", ".join(f"{name.upper()} {n}" for name, n in split_degrees(mapping).items())


def split_degrees(mapping: MappingChoice) -> dict[str, int]:
    """Into how many parts each dimension is split; CP and EP only where they are."""
    pairs = {name: getattr(mapping, name) for name in ("tp", "pp", "dp", "cp", "ep")}
    return {name: n for name, n in pairs.items() if n > 1 or name not in ("cp", "ep")}


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
    yield figures(
        "Bundles of links",
        (),
        ("blocks apart", "distance in the ring of replicas", "links", "bundles"),
        bundles,
    )
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
    yield figures(
        "Traffic between domains",
        ("phase",),
        ("rate (multiple of one link)", "share forwarded by other domains", "most hops"),
        phases,
    )


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


MOST_RUNS = 12
"""Workloads with a figure of their own at a glance."""

ON_SCREEN = (
    "HB domains",
    "GPUs",
    "Network",
    "Split",
    "Schedule",
    "Iteration",
    "Goodput",
    "Training",
)
"""Facts of the only network and of its only workload that the first screen shows."""


def plan_facts(instance: Instance, plan: Plan) -> list[PlanFact]:
    """Everything that holds of a plan, worked out once; nothing where it builds nothing.

    Totals of all of it ("total"), what it rests on ("rests"), its parts, or the workloads of the
    only one, side by side ("row"), what each part is built of ("network"), and how each workload
    runs on it ("run").
    Limits, bills and the claim are typed already (`plan_checks`, `Cost`, `ObjectiveClaim`).
    """
    if plan.cost is None or not plan.parts:
        return []
    return [
        *_totals(instance, plan, plan.cost),
        *rests_on(instance, plan),
        *_ties(plan),
        *(fact for part in plan.parts for fact in _of_part(instance, plan, part)),
    ]


def _ties(plan: Plan) -> Iterator[PlanFact]:
    """Mappings that the model cannot tell from those of the plan, and which of them is taken."""
    runs = {run.name: run for run in plan.runs}
    for other in plan.ties:
        if other.name not in runs:
            continue  # a plan that is wrong may name others
        run, of = runs[other.name], f" of {other.name}" if len(runs) > 1 else ""
        told, others = (
            f"({words.seconds(one.iteration_time_s)}, error {words.percent(one.error or 0.0)})"
            for one in (run, other)
        )
        where = (
            "nearer to published runs, but predicted to be slower"
            if (other.error or 0.0) < (run.error or 0.0)
            else 'further from published runs (margin.ties = "fastest" selects it)'
        )
        text = (
            f"Within the error of the model, the plan's mapping{of} {told} is as fast as"
            f" {split(other)}, micro-batch {other.mapping.micro_batch} {others}. The second mapping"
            f" is {where}."
        )
        yield PlanFact("rests", "", "Ties", text)


def label(plan: Plan, part: Part, run: WorkloadPlan) -> str:
    """What a run is called: by its workload, and by its part where a plan has several."""
    if len(plan.parts) == 1 or part.slot == run.name:
        return run.name if len(plan.parts) == 1 else part.name
    return f"{run.name}, {part.name}"


def _totals(instance: Instance, plan: Plan, cost: Cost) -> list[PlanFact]:
    """What a plan costs, what it promises and how far it is proven, at a glance."""
    claim, fact = plan.objective, partial(PlanFact, "total", "")
    years = sum(years_of(instance, t) for t in range(len(instance.years)))
    owned = f"total cost over {years:g} year{'' if years == 1 else 's'}"
    scope = without_gpus(cost) or "GPUs included"
    networks, phases = len({(part.site, part.slot) for part in plan.parts}), len(plan.parts)
    last = network_of(plan.parts[-1])
    domains = words.times(last.hb_domain.count, last.hb_domain.name)
    grows = f" in the last of {words.counted(phases, 'phase')}" if phases > 1 else ""
    is_best = plan.status == "optimal" and not claim.gap
    proven = "no better plan exists in the model" if is_best else "above the proven lower bound"
    return [
        fact("Purchase", cost.capex_usd, "USD", words.money(cost.capex_usd), scope),
        fact(
            "Power",
            cost.power_w,
            "W",
            words.power(cost.power_w),
            "drawn by what is on the bill, before cooling",
        ),
        fact("With electricity", cost.tco_usd, "USD", words.money(cost.tco_usd), owned),
        *_runs_at_a_glance(instance, plan),
        fact("Clusters", networks, "clusters", words.count(networks), "each with its own design")
        if networks > 1
        else fact(
            "GPUs that train", last.gpus, "GPUs", words.count(last.gpus), f"in {domains}{grows}"
        ),
        fact("Gap", "unknown", "share", note="no lower bound is proven")
        if claim.gap is None
        else fact("Gap", claim.gap, "share", words.percent(claim.gap), proven),
    ]


def _runs_at_a_glance(instance: Instance, plan: Plan) -> Iterator[PlanFact]:
    """The time of each run in the unit of its bound, the tightest first."""
    pairs = [
        (label(plan, part, run), run, workload)
        for part in plan.parts
        for run, workload in whole_batches(instance, asked_of(instance, part))
    ]
    ranked = sorted(pairs, key=lambda pair: pair[1].slack)
    for name, run, workload in ranked[:MOST_RUNS]:
        of = f" of {name}" if len(pairs) > 1 else ""
        took = words.seconds(run.iteration_time_s)
        bound = words.seconds(run.bound_s * (1.0 + workload.time_margin))
        unit, value = "s", run.iteration_time_s
        paced = _pacing(instance, plan, run, workload)
        pace = pace_text(instance, paced) or trained_text(run, workload)
        if workload.train_days is not None:
            unit, value = "days", workload.days(run.promised_s)
            pace = f"{took} an iteration"
            took, bound = words.in_days(value), words.in_days(workload.train_days)
        sure = "".join(f"; {text}" for text in likely(run, workload)[:1])
        close = "close: " if 0.0 <= run.slack < words.CLOSE else ""
        kept = "with the margin, " if workload.time_margin else ""
        side = "over" if run.slack < 0 else "under"
        under = f"{close}{kept}{words.percent(abs(run.slack))} {side} the bound of {bound}"
        note = (
            f"{under if run.bounded else 'no bound'}{sure}; {f'{pace}; ' if pace else ''}"
            f"{words.model_utilisation(run)}; {degrees(run.mapping)}"
        )
        title = "Training" if unit == "days" else "Iteration"
        yield PlanFact("total", run.name, f"{title}{of}", value, unit, took, note)
    if (more := len(ranked) - MOST_RUNS) > 0:
        text, note = words.counted(more, "run"), "none of them has less slack"
        yield PlanFact("total", "", "And", more, "runs", text, note)


def _pacing(
    instance: Instance, plan: Plan, run: WorkloadPlan, workload: Workload
) -> list[tuple[WorkloadPlan, Workload]]:
    """The runs on which the pace of one depends: of sites that train one model those of all."""
    if not instance.cluster.shares:
        return [(run, workload)]
    pairs = (pair for part in plan.parts for pair in asked_of(instance, part))
    return [pair for pair in pairs if pair[0].name == run.name]


def asked_of(instance: Instance, part: Part) -> list[tuple[WorkloadPlan, Workload]]:
    """The runs of a part with what was asked of each."""
    names = [run.name for run in part.workloads]
    network = network_of(part)
    question = question_on(instance, network.hb_domain.name)  # with the margin of its GPUs
    trained = trained_on(question, part.phase, names, network.gpus)
    asked = {workload.name: workload for workload in trained}
    # A plan that is wrong may name others.
    return [(run, asked.get(run.name, instance.workload[0])) for run in part.workloads]


def _of_part(instance: Instance, plan: Plan, part: Part) -> Iterator[PlanFact]:
    """How a part stands beside others, what it is built of, and how each workload runs on it."""
    network, several = network_of(part), len(plan.parts) > 1
    runs = asked_of(instance, part)
    if several:
        fact, fabric = partial(PlanFact, "row", part.name), part.design and part.design.fabric
        yield from (
            *([fact("site", part.site)] if part.site not in (None, part.name) else []),
            fact("HB domains", words.domains_built(network)),
            fact("fabric", "direct" if not fabric else fabric.title if fabric.tiers else "-"),
            fact("GPUs", network.gpus, "GPUs", words.count(network.gpus)),
        )
    dated = any(
        workload.calendar for each in plan.parts for workload in workloads_in(instance, each.phase)
    )
    # Of several workloads of a part the tightest is shown: if that one is in time, so are others.
    by_slack = sorted(runs, key=lambda pair: pair[0].slack)
    for run, workload in whole_batches(instance, by_slack[:1] if several else by_slack):
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
    for (run, workload), (_, whole) in zip(runs, whole_batches(instance, runs), strict=True):
        name = label(plan, part, run)
        yield from run_facts(name, run, workload, whole)
        if pace := pace_text(instance, _pacing(instance, plan, run, workload)):
            yield PlanFact("run", name, "Training", pace)


def network_facts(
    instance: Instance, name: str, network: Design | DirectLinks
) -> Iterator[PlanFact]:
    """What a part is built of: its domains, GPUs, and what joins them."""
    fact, domain = partial(PlanFact, "network", name), network.hb_domain
    racks = "" if network.racks is None else f", {words.counted(network.racks, 'rack')}"
    spares = network.spare_domains if isinstance(network, Design) else 0
    idle = f", {words.count(network.spare_gpus)} idle spares" if network.spare_gpus else ""
    standing_by = f" ({words.counted(spares, 'domain')} standing by)" if spares else ""
    gpu = question_on(instance, domain.name).cluster.gpu.name
    train = f"{words.times(network.gpus, gpu)} train{idle}{standing_by}"
    each = f"{words.times(domain.count, domain.name)} of {words.counted(domain.size, 'GPU')}{racks}"
    yield fact("HB domains", domain.count, "domains", each)
    yield fact("GPUs", network.gpus, "GPUs", train)
    if network.gpus < domain.count * domain.size:
        mean = network.gpus / domain.count
        on_average = "" if mean == int(mean) else " on average"
        yield fact(
            "In each HB domain", mean, "GPUs", f"{mean:.4g} of {domain.size} GPUs train{on_average}"
        )
    yield from (
        _direct(fact, network)
        if isinstance(network, DirectLinks)
        else _switched(fact, instance, network)
    )


def _switched(fact: Callable[..., PlanFact], instance: Instance, design: Design) -> list[PlanFact]:
    fabric = design.fabric
    if not fabric.tiers:
        return [fact("Network", "none, one HB domain holds every GPU that trains")]
    alike = side_by_side(fabric.kind, fabric.planes, fabric.nic.planes)
    ratio, ports = fabric.oversubscription, fabric.nic.planes
    bandwidth = "full bandwidth" if ratio <= 1 else _oversubscribed(fabric)
    gbit_s = next((nic.gbit_s for nic in instance.network.nics if nic.name == fabric.nic.name), 0.0)
    of_nic = ports * fabric.nic.ports_in_plane
    ports_text = f", {of_nic} ports of {gbit_s / of_nic:g} Gbit/s"
    if ports > 1:
        in_plane = fabric.nic.ports_in_plane
        ports_text += ", each to its own plane" if in_plane == 1 else f", {in_plane} to each plane"
    nics = f"{fabric.nic.text}{ports_text if of_nic > 1 else ''}"
    switches = words.times(fabric.switch_count, fabric.switch_text)
    transceivers = words.count(fabric.transceiver_count)
    routed = fabric.tiers > 1 and fabric.routing != 1
    return [
        fact("Network", ratio, ":1", f"{tiers_of(fabric)}{alike}, {bandwidth}"),
        fact("NIC", fabric.nic.per_gpu / fabric.nic.shared_by, "per GPU", nics),
        fact("Switch", fabric.switch_count, "switches", switches),
        fact("Transceivers", fabric.transceiver_count, "transceivers", transceivers),
        *([fact("Uplinks", text)] if (text := uplinks(design)) else []),
        *([fact("Routing", routing_words(fabric.routing))] if routed else []),
    ]


def _oversubscribed(fabric: Fabric) -> str:
    """The ratio end to end, with its factors where leaf and pod have one each."""
    total = f"{words.ratio(fabric.oversubscription)} oversubscribed"
    if fabric.tiers < 3:
        return total
    leaf, pod = (words.ratio(tier.down_ports / tier.uplinks_per_switch) for tier in fabric.tier[:2])
    return f"{total} end to end (leaf {leaf} x pod {pod})"


def _direct(fact: Callable[..., PlanFact], direct: DirectLinks) -> list[PlanFact]:
    ports: Counter[int] = Counter()
    for bundle in direct.bundles:
        ports.update(dict.fromkeys(bundle.between, bundle.links))
    ends = dict.fromkeys((min(ports.values(), default=0), max(ports.values(), default=0)))
    used = " to ".join(map(str, ends))
    links = f"{words.counted(direct.links, 'direct link')} of {direct.nic.name}"
    blocks = f"{words.counted(direct.stages, 'block')} of stages"
    return [
        fact("Network", direct.links, "links", links),
        fact("Links needed", direct.links_bound, "links", f"at least {direct.links_bound:,}"),
        fact("Grid", f"{blocks}, of {words.counted(direct.replicas, 'domain')} each"),
        fact("Ports", f"{used} used of {direct.ports} in each domain"),
        fact("Optic", direct.optic),
        fact("Panel", direct.panel or "none, links are cabled directly"),
    ]


def run_facts(
    name: str, run: WorkloadPlan, workload: Workload, whole: Workload | None = None
) -> list[PlanFact]:
    """How a workload runs: time, split, schedule, memory and utilisation; `whole` is what several
    sites train together, where the workload is a part of it.
    """
    fact, memory = partial(PlanFact, "run", name), run.memory_gib / run.memory_limit_gib
    together, uptime = whole or workload, run.uptime
    trained = trained_text(run, together)
    took = words.allowed(run.iteration_time_s, run.bound_s, workload.time_margin)
    took += f" ({trained})" if trained else ""
    dated = []
    if together.calendar:
        took = words.seconds(run.iteration_time_s)
        dated = [fact("Training", together.days(run.promised_s), "days", trained)]
    iteration = f"{took}, {words.model_utilisation(run)}"
    held = f"{run.memory_gib:.1f} of {run.memory_limit_gib:.1f} usable GiB per GPU"
    rate = f"{run.tokens_per_s:,.0f} tokens/s on {words.counted(run.gpus, 'GPU')}"
    ways = ", ".join(
        f"{COLLECTIVES[kind]}: {EXCHANGES.get(way, way)}" for kind, way in run.collectives.items()
    )
    slowest = max(run.routes.values(), default=0.0)
    routes = (
        f"on the paths found, traffic takes up to {slowest:.3g} times as long as without shared"
        " links"
        if slowest > 1
        else "on the paths found, shared links slow no traffic"
    )
    goodput = (
        [] if uptime is None else [fact("Goodput", uptime.goodput, "share", uptime_text(uptime))]
    )
    return [
        fact("Model", training_text(workload)),
        fact("Split", split(run)),
        fact("Schedule", schedule(run.mapping, workload.options.schedule)),
        *(fact("Experts", text) for text in balance_texts(workload, run.mapping.ep)),
        *dated,
        fact("Iteration", run.iteration_time_s, "s", iteration),
        fact("Required", workload.required_s, "s", words.required_bound(together)),
        *goodput,
        fact("Throughput", run.tokens_per_s, "tokens/s", rate),
        fact("Memory", run.memory_gib, "GiB", f"{held} ({words.percent(memory)})"),
        fact("HFU", run.hfu, "share", words.percent(run.hfu)),
        *(fact("Nearest run", words.nearest_run(nearest)) for nearest in run.nearest),
        *(fact("Evidence", evidence) for evidence in workload.options.evidence),
        *([fact("Collectives", ways)] if ways else []),
        *([fact("Routes", slowest, "times", routes)] if run.routes else []),
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
