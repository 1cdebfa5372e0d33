"""A plan in full, and a design or a plan that was given: the decision in one sentence first, then
the question in a few rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.couplings import LIMITED, Discount, Site
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance, questions_by_gpu
from coopt.instance.texts import both, that_hold
from coopt.instance.workload import LONGEST_S
from coopt.network.parts import standing_units
from coopt.plan.couplings import Part, Ring, one_network
from coopt.plan.parts import Cost, beside_ordinary
from coopt.plan.schema import Plan
from coopt.plan.store import (
    Evaluation,
    LimitCheck,
    MappingRanking,
    PlanEvaluation,
    RankedMappings,
    plan_checks,
)
from coopt.report import words
from coopt.report.building import mating_notes
from coopt.report.comparison import (
    DOES,
    rivals_sentence,
    runners_tables,
    saving_tables,
)
from coopt.report.couplings import (
    KINDS,
    bill_tables,
    coupling_tables,
    doubt_rows,
    phase_rows,
)
from coopt.report.facts import (
    BILL,
    bill_table,
    breakdown_table,
    claim_text,
    degrees,
    label,
    link_tables,
    network_facts,
    plan_facts,
    run_facts,
    standing_table,
    switches_table,
    tco_sentence,
    training_text,
    value_name,
    without_gpus,
)
from coopt.report.notes import (
    first_sentences,
    kept_free,
    margin_note,
    margins_table,
    price_notes,
    reading_notes,
    remarks,
    study_notes,
)
from coopt.report.time_errors import accuracy, certainty
from coopt.report.words import (
    FactTable,
    FigureTable,
    PlanFact,
    compared,
    facts,
    figures,
    listed,
    of_group,
    pieces,
)

if TYPE_CHECKING:
    from coopt.network.plan_networks import Baseline


MINIMISED = {
    "capex": "the purchase",
    "power": "the power",
    "tco": "{owned}",
    "time": "the time of training",
    "usd_per_token": "{owned}, per token",
    "carbon": "the carbon of the electricity for training",
}

TIMED = {
    "time": "the fastest",
    "usd_per_token": "the cheapest per token",
    "carbon": "with the least carbon",
}


STOPPED = ("time limit", "interrupted")
"""Reasons that end a search before it is through."""


def headline(instance: Instance, plan: Plan) -> str:
    """What to build and what is proven about it, or why there is nothing to build."""
    claim, regret = plan.objective, instance.minimizes_regret
    if plan.status == "infeasible":
        lacks = "meets the bounds" if instance.has_limits else "is possible"
        return f"No design {lacks}; proven infeasible."
    searched, decided = f"{plan.timing_s.total:.1f} s of search", decision(instance, plan)
    if decided is None or plan.cost is None:
        proven = "no lower bound is proven"
        if claim.bound:
            less = f"{DOES.get(claim.kind, 'costs')} less than"
            less = "has a regret below" if regret else less
            proven = f"it is proven that no plan {less} {words.amount(claim.kind, claim.bound)}"
        none = f"No design was found ({plan.stop_reason})"
        if plan.stop_reason in STOPPED:
            none = f"Stopped early ({plan.stop_reason}) before any design was found,"
        late = plan.stop_reason == "time limit"
        remedy = " More time (--time-limit) may find one." if late else ""
        return f"{none} after {searched}; {proven}.{remedy}"
    phases = len(plan.couplings.years)
    verb = _standing_verb(instance, plan.cost) or "Build"
    build = f"{f'Grow in {phases} phases to' if phases > 1 else verb} {decided}"
    value, gap = words.amount(claim.kind, claim.value or 0.0), claim.gap
    by_price = plan.at_worst_prices and claim.kind != "power"
    prices = " at the worst prices" if by_price else ""
    if plan.status != "optimal":
        best = f"a regret of {value}" if regret else f"{value}{prices}"
        known = "unknown" if gap is None else words.percent(gap)
        ended = "stopped early" if plan.stop_reason in STOPPED else "not proven optimal"
        return (
            f"{build}; {ended} ({plan.stop_reason}), best so far: {best}, gap {known}, {searched}."
        )
    proven = (
        "proven optimal in coopt's model"
        if gap is None or gap < EQUAL
        else f"proven within {words.percent(gap or 0.0)} of the optimum of coopt's model"
    )
    errors = [run.error for run in plan.runs if run.error is not None]
    error_text = f" (error {words.percent(max(errors))} by measured runs)" if errors else ""
    proof = f"{proven}{error_text}"
    if regret:
        at_list = price(instance, claim.kind, plan.cost, " at list prices")
        cheaper = "draws less" if claim.kind == "power" else "is cheaper"
        bounded = f"no plan {cheaper}{f' by more than {value}' if claim.value else ''}"
        return f"{build}, {at_list}: at all prices that [robust] allows, {bounded}; {proof}."
    cost = price(instance, claim.kind, plan.cost, prices)
    timed = _timed(instance, plan, value) if claim.kind in TIMED else _dated(instance, plan)
    return f"{build}, {cost}{timed}; {proof}."


def _standing_verb(instance: Instance, cost: Cost) -> str | None:
    """How a headline begins where a network stands; None where nothing of its domains stays."""
    if instance.network.given:
        return "Given:"
    stock = standing_units(instance)
    if not any(stock[item.kind, item.name] for item in cost.items if item.kind == "hb"):
        return None
    used = Counter[tuple[str, str]]()
    for item in cost.items:
        used[item.product] += item.count
    retires = any(
        count > used[product]
        for product, count in stock.items()
        if product[0] in instance.objective.include
    )
    if instance.sharing.mode == "partition" or (cost.capex_usd == 0 and retires):
        return f"From existing{' and new' * (cost.capex_usd > 0)} parts build"
    return "Keep" if cost.capex_usd == 0 else "Turn the existing network into"


def _timed(instance: Instance, plan: Plan, value: str) -> str:
    """`, the fastest: 61.4 days for 1.05 trillion tokens`; `, the cheapest per token: $0.7 per
    million tokens`.
    """
    claim, workload = plan.objective, instance.workload[0]
    if claim.kind == "time":
        value = workload.in_own_units(claim.value or 0.0) or value
    is_iteration = claim.kind == "time" and workload.train_tokens is None
    counts_failures = instance.availability is not None and workload.calendar
    disturbed = "" if is_iteration or counts_failures else " if nothing fails"
    return f", {TIMED[claim.kind]}: {value}{disturbed}"


def _dated(instance: Instance, plan: Plan) -> str:
    """`, to train in 61.4 days, by 6 March 2027 if nothing fails`, where each run has so many
    tokens; of several at the same time the day of the last.
    """
    asked, runs = {workload.name: workload for workload in instance.workload}, plan.runs
    in_turn = len(plan.parts) == 1 and len(runs) > 1
    if plan.couplings.growth or in_turn or not all(one.train_tokens for one in asked.values()):
        return ""
    promised_s, workload = max(
        ((run.promised_s, asked[run.name]) for run in runs), key=lambda pair: pair[1].days(pair[0])
    )
    end = workload.end(promised_s)
    ends = [f"in {workload.duration(promised_s)}"] * (len(runs) == 1) + [f"by {end}"] * bool(end)
    disturbed = "" if all(run.uptime for run in runs) else " if nothing fails"
    return f", to train {', '.join(ends)}{disturbed}" if ends else ""


def decision(instance: Instance, plan: Plan) -> str | None:
    """What is built, of whatever kind of problem; None without a plan."""
    last = [part for part in plan.parts if part.phase == plan.parts[-1].phase]
    if not last:
        return None
    if plan.couplings.ring is not None:
        return _sites_text(last, plan.couplings.ring)
    direct, design = last[0].links, last[0].design
    if instance.sharing.mode == "partition":
        return _islands_text(last)
    if direct is not None:
        domains = words.times(direct.hb_domain.count, direct.hb_domain.name)
        panel = f" through {direct.panel} ports" if direct.panel else ""
        return f"{domains} joined by {words.counted(direct.links, 'direct link')}{panel}"
    return words.design_text(design) if design is not None else None


def _sites_text(parts: Sequence[Part], ring: Ring) -> str:
    """`718,848 GPUs at east and 958,464 at west, joined by 69 wide-area channels`."""
    gpus = [words.count(part.design.gpus if part.design else 0) for part in parts]
    sites = words.both(
        f"{number} at {part.site}"
        for number, part in zip([f"{gpus[0]} GPUs", *gpus[1:]], parts, strict=True)
    )
    channels = sum(link.channels for link in ring.wan)
    links = f", joined by {words.counted(channels, 'wide-area channel')}" if channels else ""
    return f"{sites}{links}"


def _islands_text(parts: Sequence[Part]) -> str:
    """`8 clusters with 130,560 GPUs in all`; where they stand, if there are sites."""
    gpus = words.count(sum(part.design.gpus for part in parts if part.design is not None))
    sites = dict.fromkeys(part.site for part in parts if part.site is not None)
    place = f" at {words.both(sites)}" if sites else ""
    total = f"of {gpus} GPUs" if len(parts) == 1 else f"with {gpus} GPUs in all"
    return f"{words.counted(len(parts), 'cluster')} {total}{place}"


def owning(instance: Instance) -> list[str]:
    """What the total cost of ownership holds."""
    terms = instance.objective
    return [
        "purchase",
        *that_hold({"labour": terms.labour_share, "support": terms.support_share * terms.years}),
        "electricity",
    ]


def price(instance: Instance, kind: str, cost: Cost, prices: str = "") -> str:
    """The objective's value as it stands in a sentence; `prices` says at which, where not at those
    of the instance.
    """
    gpus = f" {without_gpus(cost)}".rstrip()
    if kind == "power" or instance.network.given:
        return f"drawing {words.power(cost.power_w)}{gpus}"
    if kind == "tco":
        return f"for {words.money(cost.tco_usd)} in {both(owning(instance))}{prices}{gpus}"
    return f"for {words.money(cost.capex_usd)}{prices}{gpus}"


def question_rows(instance: Instance) -> list[tuple[str, str]]:
    """What is trained and how fast, what may be built, and what is minimised."""
    network, terms = instance.network, instance.objective
    planes, shared, ratios = network.nic_planes, network.gpus_per_nic, network.ratios
    nics = [
        words.alternatives(nic.name for nic in network.nics),
        f"{_counts(network.nics_per_gpu)} per GPU",
        f"{_counts(shared)} GPUs per NIC" if shared != (1,) else "",
        f"{_counts(planes)} planes" if planes != (1,) else "",
    ]
    fabrics = words.alternatives(network.fabrics)
    most_ratio = (
        f"up to {words.ratio(network.largest_ratio)}" if network.largest_ratio > 1 else "none"
    )
    gpus = [one.cluster.gpu.name for one in questions_by_gpu(instance)]
    end_to_end = network.end_to_end_oversubscription
    of_switches = (
        ""
        if end_to_end is None or network.largest_ratio <= 1
        else f" per switch, up to {words.ratio(end_to_end)} end to end"
    )
    rows = {
        **{
            # a phase has bounds of its own
            f"Train {workload.name}": training_text(workload)
            + ("" if instance.phase else f"; {words.required_bound(workload)}")
            for workload in instance.workload
        },
        "GPUs": f"{instance.cluster.counts_text} x {words.alternatives(gpus)}",
        "HB domains": words.alternatives(domain.name for domain in network.hb_domains),
        "Networks": f"{fabrics}, up to {words.counted(network.max_tiers, 'tier')}",
        "Oversubscription": (
            most_ratio if ratios is None else words.alternatives(map(words.ratio, ratios))
        )
        + of_switches,
        "NICs": ", ".join(filter(None, nics)),
        "Switches": words.alternatives(switch.name for switch in network.switches),
        "Optics": words.alternatives(optic.name for optic in network.optics),
        "Minimised": MINIMISED[terms.minimize].format(owned=" plus ".join(owning(instance))),
        "Limits": ", ".join(_limit_row(key, cap) for key, cap in instance.limits.given.items()),
        "Failures": _failures(instance),
        "Kept free": kept_free(instance, instance.kept_margin),
        **{f"Site {site.name}": _site(instance, site) for site in instance.site},
        **dict(phase_rows(instance)),
        **_joint_purchases(instance),
        **dict(doubt_rows(instance)),
    }
    return [(name, text) for name, text in rows.items() if text]


def _counts(numbers: Iterable[int]) -> str:
    return words.alternatives(map(words.count, numbers))


def _site(instance: Instance, site: Site) -> str:
    """What a site feeds, and at which price of electricity."""
    terms = instance.objective
    pue = terms.pue if site.pue is None else site.pue
    usd_per_kwh = terms.usd_per_kwh if site.usd_per_kwh is None else site.usd_per_kwh
    return f"{site.power_mw:g} MW, PUE {pue:g}, electricity at ${usd_per_kwh:g} a kWh"


def _failures(instance: Instance) -> str:
    """What interrupts training; empty where nothing counts."""
    terms = instance.availability
    if terms is None:
        return ""
    end = "" if terms.at == "published" else f", at the {terms.at} ends of their intervals"
    spares = "as few as needed" if terms.spare_domains is None else _counts(terms.spares)
    return (
        f"failure rates of {terms.rates.name}{end}; repairs take {terms.repair_hours:g} h;"
        f" spare domains: {spares}"
    )


def _joint_purchases(instance: Instance) -> dict[str, str]:
    """What islands buy together: volume prices, products of a kind, a core."""
    sharing, core = instance.sharing, instance.sharing.core
    return {
        **{f"Volume price of {discount.item}": _steps(discount) for discount in sharing.discount},
        "Different products": ", ".join(
            f"at most {words.counted(count, 'kind')} of {KINDS.get(kind, kind)}"
            for kind, count in sharing.most_products.given.items()
        ),
        "Core": f"{core.switch}, {core.gbit_s_per_gpu:g} Gbit/s for each GPU that trains"
        if core
        else "",
    }


def _steps(discount: Discount) -> str:
    off, usd = discount.off or (), discount.usd or ()
    prices = [*(f"{words.percent(share)} off" for share in off), *(f"${each:,g}" for each in usd)]
    steps = (
        f"{price} from {begin:,} on" for begin, price in zip(discount.begins, prices, strict=True)
    )
    return f"{', '.join(steps)} ({discount.applies})"


def _limit_row(key: str, cap: float) -> str:
    name, unit = LIMITED[key]
    if key == "train_days_total":
        return f"at most {cap:,.10g} days for all workloads in turn"
    if unit == "USD":
        return f"at most {words.money(cap)} of {name}"
    return f"at most {cap:,.10g} {unit}"


IN_FULL = 4
"""Parts that are told in full, one after the other; more stand side by side."""


def plan_report(
    instance: Instance,
    plan: Plan,
    baseline: Baseline | None = None,
    without_margin: float | None = None,
) -> list[RenderableType]:
    """Everything a plan says; without a design, why there is none."""
    from coopt.report.explanation import search_rows  # which a screen has no room for

    known, told = plan_facts(instance, plan), first_sentences(instance, plan)
    return pieces(
        *plan_opening(instance, plan, told),
        *plan_sections(instance, plan, known, told, baseline, without_margin).values(),
        facts("Search", search_rows(instance, plan)),
        runners_tables(plan),
    )


def plan_opening(instance: Instance, plan: Plan, notes: Sequence[str]) -> list[RenderableType]:
    """The decision, and what stands above all else."""
    return pieces(
        Text(headline(instance, plan), style="bold"),
        notes,
        None if plan.rivals is None else rivals_sentence(plan.rivals),
    )


def plan_sections(
    instance: Instance,
    plan: Plan,
    known: Sequence[PlanFact],
    told: Sequence[str],
    baseline: Baseline | None = None,
    without_margin: float | None = None,
) -> dict[str, list[RenderableType]]:
    """What a plan says, in order: parts with what ties them, the bill, how workloads run, limits,
    what it saves, and how to read it beyond what is told above all; nothing of one that builds
    nothing.
    """
    if plan.cost is None:
        return {}
    many = len(plan.parts) > IN_FULL
    runs = (
        [_side_by_side("Workloads", known, "run", "Split", "Memory", "Goodput")]
        if many
        else [table for pair in run_tables(plan, known).values() for table in pair]
    )
    read = reading_notes(instance, plan.parts, none_inside=plan.tp_across, ordered=True)
    notes = dict.fromkeys([*read, *remarks(instance, plan)])
    # what stands has no price to compare it at
    is_comparable = instance.sharing.mode == "time" and instance.stands is None
    return {
        "parts": pieces(
            parts_table(plan, known) if len(plan.parts) > 1 else None,
            _networks(plan, known, many=many),
            coupling_tables(instance, plan, plan.cost),
        ),
        "bill": pieces(bill_tables(instance, plan, plan.cost), standing_table(instance, plan)),
        "runs": pieces(*runs),
        "limits": [
            margins_table(plan_checks(instance, plan)),
            facts("What the plan rests on", rests_rows(instance, plan, without_margin, known)),
        ],
        "saving": saving_tables(plan, baseline) if is_comparable else [],
        "notes": [note for note in notes if note not in told],
    }


def rests_rows(
    instance: Instance,
    plan: Plan,
    without_margin: float | None,
    known: Sequence[PlanFact],
) -> list[tuple[str, str]]:
    """Assumptions with what each is worth, and what is kept free."""
    margins = margin_note(instance, plan, without_margin)
    kept = [("Kept free", text.removeprefix("Kept free: ")) for text in margins]
    return [*((fact.name, fact.shown) for fact in of_group(known, "rests")), *kept]


def _networks(plan: Plan, known: Sequence[PlanFact], *, many: bool) -> list[RenderableType]:
    """What parts are built of: each in full, many side by side."""
    designs = {part.name: part.design for part in plan.parts if part.design is not None}
    titles = {part.name: "Decision" if len(plan.parts) == 1 else part.name for part in plan.parts}
    return pieces(
        _side_by_side("Networks", known, "network", "Network", "Switch", "Power")
        if many
        else [listed(title, of_group(known, "network", of)) for of, title in titles.items()],
        switches_table(designs) if any(of.fabric.tiers for of in designs.values()) else None,
        *(link_tables(part.links) for part in plan.parts if part.links is not None),
    )


def _side_by_side(title: str, known: Sequence[PlanFact], group: str, *names: str) -> FigureTable:
    return compared(
        title,
        "part",
        [replace(fact, value=fact.shown) for fact in of_group(known, group) if fact.name in names],
    )


def parts_table(plan: Plan, known: Sequence[PlanFact]) -> FigureTable:
    """Every part with its domains, its GPUs, and its workload with the least slack, in order."""
    purchases_usd = plan.couplings.purchases_usd
    sited = len({part.site for part in plan.parts}) > 1
    title = "Networks by site" if sited else "Networks and their workloads"
    rows = of_group(known, "row")
    if len(purchases_usd) == len(plan.parts):  # one network: what a phase buys is bought for it
        rows += [
            PlanFact("row", part.name, "buys $", usd, "USD", words.exact(round(usd)))
            for part, usd in zip(plan.parts, purchases_usd, strict=True)
        ]
    return compared("Networks by year" if purchases_usd else title, "Part", rows)


def run_tables(plan: Plan, known: Sequence[PlanFact]) -> dict[str, tuple[FactTable, FigureTable]]:
    """How each workload runs, and where its time goes, by the names of runs."""
    runs = {label(plan, part, run): run for part in plan.parts for run in part.workloads}
    return {
        name: (listed(f"Workload {name}", of_group(known, "run", name)), breakdown_table(run, name))
        for name, run in runs.items()
    }


def proof_rows(instance: Instance, plan: Plan) -> list[tuple[str, str]]:
    """What is proven, from how much, and how long that took."""
    solver, name = plan.solver, value_name(instance, plan.objective.kind)
    claim = [("Proof", claim_text(plan.objective, name=name, whole=True))]
    kind = "mappings" if solver.families else "options"
    networks = f" on {words.counted(solver.families, 'network')}" if solver.families else ""
    searched = (
        f"{words.count(solver.columns_enumerated)} {kind}{networks} in"
        f" {plan.timing_s.total:.2f} s, {solver.name} {solver.version}"
    )
    return [*(claim if plan.status != "infeasible" else []), ("Searched", searched)]


def evaluation_report(instance: Instance, evaluation: Evaluation) -> list[RenderableType]:
    """Cost, time, memory and bounds of a design that was given, not chosen."""
    design, cost = evaluation.design, evaluation.cost
    given = f"{words.design_text(design)}, {price(instance, instance.objective.minimize, cost)}"
    parts = [one_network(cost, evaluation.workloads, design=design)]
    return pieces(
        Text(f"Given: {given}; {_missed(evaluation.limits)}.", style="bold"),
        study_notes(instance, parts),
        price_notes(instance, parts),
        mating_notes(instance, {evaluation.instance.name: design}),
        listed("Decision", network_facts(instance, "", design)),
        switches_table({"": design}) if design.fabric.tiers else None,
        *(
            (
                listed(f"Workload {run.name}", run_facts(run.name, run, workload)),
                breakdown_table(run, run.name),
            )
            for run, workload in zip(evaluation.workloads, instance.workload, strict=True)
        ),
        bill_table(BILL, cost.items, cost.capex_usd, cost.power_w, instance),
        tco_sentence(instance, cost),
        margins_table(evaluation.limits) if evaluation.limits else None,
        [*accuracy(instance, evaluation.workloads), *certainty(instance, evaluation.workloads)],
        reading_notes(instance, parts),
    )


def ranking_report(ranking: MappingRanking) -> list[RenderableType]:
    """The fastest mappings of every workload on a network that was given."""
    return pieces(
        Text(f"Given: {words.design_text(ranking.design)}.", style="bold"),
        *map(_ranked, ranking.workloads),
    )


def _ranked(workload: RankedMappings) -> list[RenderableType]:
    listed_text = words.counted(workload.listed, "mapping")
    if not workload.listed:
        return [f"Workload {workload.name}: no mapping divides GPUs, layers and batch evenly."]
    if not workload.mappings:
        placed = " and can be placed on this network" if workload.fitting else ""
        return [f"Workload {workload.name}: none of {listed_text} fits into memory{placed}."]
    bounded, best_s = workload.bound_s < LONGEST_S, workload.mappings[0].iteration_time_s
    rows = [
        (
            f"{degrees(run.mapping)}{', SP' if run.mapping.sequence_parallel else ''}",
            " + ".join(
                [run.mapping.recompute, *beside_ordinary(run.mapping.model_dump(), short=True)]
            ),
            *map(words.count, (run.mapping.micro_batch, run.mapping.interleave, run.mapping.zero)),
            words.seconds(run.iteration_time_s),
            f"{run.iteration_time_s / best_s - 1:.2%}",
            *([words.free(run.slack, run.bound_s)] if bounded else []),
            f"{run.memory_gib:.1f}",
            words.percent(run.mfu_causal),
        )
        for run in workload.mappings
    ]
    within = f", at most {words.seconds(workload.bound_s)}" if bounded else ""
    slack = ("slack",) if bounded else ()
    numbers = ("batch", "chunks", "ZeRO", "iteration", "slower", *slack, "GiB", "MFU")
    title = f"Workload {workload.name}{within}: the fastest mappings"
    by_norms = any("norm+" in run.mapping.recompute for run in workload.mappings)
    norms = (
        "; norm+act: recompute norms, activation functions of experts and expanded latents;"
        " norm+ffn: recompute norms and the feed-forward part"
    )
    return [
        figures(title, ("split", "recompute"), numbers, rows),
        f"Mappings that fit into memory: {words.count(workload.fitting)} of"
        f" {words.count(workload.listed)} tried. Each row is a mapping with its fastest"
        " placement. SP: sequence parallelism; batch: sequences in a"
        " micro-batch; chunks: interleaved parts of a stage"
        f"{norms if by_norms else ''}.",
    ]


def given_plan_report(
    instance: Instance, plan: Plan, evaluation: PlanEvaluation
) -> list[RenderableType]:
    """What the decisions of a plan that was given amount to, and which bounds they miss."""
    amount = partial(words.amount, evaluation.kind)
    regret = evaluation.objective if instance.minimizes_regret else None
    cost = (
        f"{amount(evaluation.value)}{'' if regret is None else f', a regret of {amount(regret)}'}"
    )
    given = decision(instance, plan) or "a plan"
    unknown = (
        "The regret of this plan is not known, because the best plans of this instance were"
        " not searched for."
    )
    return pieces(
        Text(f"Given: {given}, {cost}; {_missed(evaluation.limits)}.", style="bold"),
        unknown if instance.minimizes_regret and regret is None else None,
        study_notes(instance, plan.parts),
        price_notes(instance, plan.parts),
        figures(
            "Figures that follow from the plan's decisions",
            ("figure", "of"),
            ("value",),
            [
                (one.name, one.of, words.with_unit(one.value, one.unit))
                for one in evaluation.figures
            ],
        ),
        margins_table(check for check in evaluation.limits if check.limit),
    )


def _missed(limits: Sequence[LimitCheck]) -> str:
    missed = [check.name for check in limits if not check.ok]
    if not missed:
        return "meets every bound"
    return f"misses the bound{'s' * (len(missed) > 1)} on {'; '.join(missed)}"
