"""What a reader has to know to read a plan rightly: limits, accuracy, what is counted and kept
free.

What somebody who builds a network has to know: what does not mate, which modules to order, what
else it needs.

What stands above all else of a plan: what was replaced, what nobody sells, and figures that may
be mistaken.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist

from coopt.instance.base import Entry, spoken
from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu, HbDomain, Nic, Optic, Switch
from coopt.instance.reserves import KnownError, Margin, is_catalogued, known_error
from coopt.instance.schema import Instance
from coopt.instance.transformer import FLOP_PER_PARAMETER
from coopt.instance.variants import phases_of
from coopt.network.halls import NetworkHall
from coopt.network.optics import first_unmated
from coopt.network.orders import (
    link_gbit_s,
    notes_by_part,
    order_notes,
    placed_optics,
    plan_order_notes,
    switch_of,
)
from coopt.network.space import Space
from coopt.plan.couplings import Part
from coopt.plan.parts import Design, WorkloadPlan
from coopt.plan.schema import Plan
from coopt.plan.store import LimitCheck
from coopt.report import words
from coopt.report.words import FigureTable, figures, verdict_word


def building_notes(instance: Instance, design: Design) -> Iterator[str]:
    """What to order otherwise, and what else a design implies."""
    halls = [*placed_optics(instance, design)]
    yield from order_notes(instance, design, halls)
    for hall, _ in halls:
        yield from hall_sentences(instance, hall)
    yield from _other_notes(instance, design)


def mating_notes(instance: Instance, designs: Mapping[str, Design]) -> Iterator[str]:
    """Which links of parts, by their names, nobody can build of what is listed, as their ends do
    not mate.
    """
    yield from notes_by_part(
        {name: _lane_notes(instance, design) for name, design in designs.items()}
    )


def hall_sentences(instance: Instance, hall: NetworkHall) -> Iterator[str]:
    """How racks stand and what they draw, and the longest cables of each tier."""
    along, across = hall.sides_m
    pue, racks = instance.objective.pue, words.counted(hall.racks, "rack")
    of_switches = f" and {words.count(hall.switch_racks)} of switches" if hall.switch_racks else ""
    of_first = " of the former" if of_switches else ""
    fullest_kw, cap_kw = hall.switch_rack_w / 1e3, instance.network.hall.switch_rack_kw
    capped = "" if cap_kw is not None else " (network.hall.switch_rack_kw caps that)"
    of_fullest = (
        f" and {fullest_kw:,.3g} kW in the fullest of the latter{capped}" if of_switches else ""
    )
    elsewhere = ", in racks that are not among these" if hall.switch_racks is None else ""
    beside = "servers" if hall.with_hosts else "interconnect"
    yield (
        f"The hall: {racks}{of_switches} in {words.counted(hall.rows, 'row')}, {along:,.0f} m by"
        f" {across:,.0f} m, with {hall.rack_w / 1e3:,.3g} kW of GPUs, {beside} and NICs in"
        f" each{of_first}{of_fullest}; everything together draws {words.power(hall.w)},"
        f" {words.power(hall.w * pue)} at a PUE of {pue:g}. Switches and optics draw"
        f" {words.power(hall.w - hall.rack_w * hall.racks)} of it{elsewhere}."
    )
    longest = [
        f"{max(cables):,} m below tier {level}" for level, cables in enumerate(hall.cables, start=1)
    ]
    yield f"Cables take up to {', '.join(longest)}."


def _lane_notes(instance: Instance, design: Design) -> Iterator[str]:
    """What does not mate on the first tier where that is so: the optic and what its links join."""
    mismatch = first_unmated(instance.network, design.fabric)
    if mismatch is not None:
        level, ends = mismatch
        ends_text = words.both(f"{end.name} ({_lanes(end)})" for end in ends)
        yield (
            f"Links below tier {level} do not mate as they are listed: {ends_text}. Order parts of"
            " one rate of lanes and one protocol; network.tier_switches = 'any' plans with such"
            " alone."
        )


def _lanes(end: Nic | Optic | Switch) -> str:
    """`ethernet, lanes of 100 Gbit/s`."""
    protocol, rate = getattr(end, "protocol", None) or (), end.lane_gbit_s or ()
    speaks = words.alternatives((protocol,) if isinstance(protocol, str) else protocol)
    listed = (rate,) if isinstance(rate, float | int) else rate
    rates = words.alternatives(f"{lane_rate:g}" for lane_rate in listed)
    texts = filter(None, (speaks, f"lanes of {rates} Gbit/s" if rates else ""))
    return ", ".join(texts) or "not known"


def _other_notes(instance: Instance, design: Design) -> Iterator[str]:
    """What else somebody who builds a design has to know."""
    domain, fabric = design.hb_domain, design.fabric
    fewest = -(-design.gpus // domain.size)
    if instance.network.domain_fill == "even" and fewest < domain.count:
        fewer = f"{words.count(fewest)} to {words.count(domain.count)} of them"
        needed = (
            f", as {words.both(instance.even_for)} need them so; filled unevenly, {fewer} might do."
        )
        free = f"; with network.domain_fill = 'any' {fewer} may do."
        yield f"As many GPUs train in every {domain.name}{needed if instance.even_for else free}"
    yield from _empty_ports(instance, design)
    yield from _adapter_notes(instance, design)
    if design.spare_domains and fabric.tiers:
        yield (
            "Domains that stand by have no switch ports: each takes the links of the domain that it"
            " stands in for, by a patch panel or by hand, and availability.restart_s has to hold"
            " that time."
        )
    if fabric.kind == "rail-only" and fabric.tiers:
        yield (
            "No switch joins two rails: traffic between ranks of a domain passes through that"
            " domain, and storage needs a network of its own."
        )


def _empty_ports(instance: Instance, design: Design) -> Iterator[str]:
    """Which switches above the leaves use less than half of their ports, so that links to all of
    them are alike.
    """
    fabric, rate = design.fabric, link_gbit_s(instance, design)
    for tier in fabric.tier[1:] if instance.network.bundles == "even" else ():
        way, in_use = (
            switch_of(instance, fabric, tier, rate),
            tier.down_ports + tier.uplinks_per_switch,
        )
        # One switch for each plane is the fewest there can be, however few of its ports are used.
        if way is not None and 2 * in_use < way.radix and tier.switches > fabric.planes:
            yield (
                f"The {words.counted(tier.switches, 'switch')} of tier {tier.level} use {in_use} of"
                f" {way.radix} ports each, so that every switch below has as many links to each;"
                " with network.bundles = 'any' fewer may do."
            )


def _adapter_notes(instance: Instance, design: Design) -> Iterator[str]:
    """Which NICs are not those that servers come with."""
    nic = design.fabric.nic.name
    for domain in instance.network.hb_domains if design.fabric.tiers else ():
        if domain.name == design.hb_domain.name and domain.nics and nic not in domain.nics:
            yield (
                f"{domain.name} comes with {words.alternatives(domain.nics)}, not with {nic}: ask"
                " for such servers first."
            )


def leaf_notes(designs: Sequence[Design]) -> list[str]:
    """What the loss of a leaf means for training, in one line of 80 columns."""
    notes = list(dict.fromkeys(_leaf_note(design) for design in designs if design.fabric.tiers))
    differ = ["coopt faults says what each network does without a leaf."]
    return notes if len(notes) < 2 else differ


def _leaf_note(design: Design) -> str:
    """What becomes of training without a leaf; a switch of a single tier may serve several
    rails.
    """
    fabric = design.fabric
    ports, rails = fabric.nic.planes, fabric.planes // fabric.nic.planes
    rails_taken = -(-rails // (fabric.tier[0].switches // ports)) if fabric.tiers == 1 else 1
    others = rails - rails_taken
    nics = design.hb_domain.active * fabric.nic.per_gpu // fabric.nic.shared_by
    # Where all NICs of a domain hang on one leaf, its loss cuts the whole domain off.
    on_one_leaf = fabric.kind == "clos" and fabric.tier[0].down_ports >= nics
    if ports > 1:
        lost = "If a leaf is lost, NICs keep their other ports: no restart"
    elif fabric.kind != "rail-only" and (on_one_leaf or 1 in (nics, fabric.tier[0].switches)):
        lost = "If a leaf is lost, training stops: it joins whole HB domains"
    elif fabric.kind != "rail-only":
        lost = "If a leaf is lost, training restarts over the other NICs"
    elif rails == 1:
        lost = "There is a single rail: if a leaf is lost, training stops"
    elif not others:
        lost = f"All {words.count(rails)} rails share one switch: if it is lost, training stops"
    elif rails_taken > 1:
        lost = f"If a leaf is lost, training restarts on the other {others} rails"
    else:
        lost = f"If a rail is lost, training restarts on the other {words.count(others)}"
    return f"{lost} (coopt faults)."


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
            met = any(run.bounded for run in workloads)
            does = f"meets {bounds}" if met else "divides GPUs and batch and fits into memory"
            reason = f" because no mapping that {does} keeps them inside one."
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


FAR = 100.0
"""How many times beyond the range of the catalog a figure is taken for a mistake of its unit."""

LITTLE = 0.8
"""A share of the time that trains, below which a plan says so first."""


def first_sentences(instance: Instance, plan: Plan) -> Iterator[str]:
    """What stands above all else of a plan: what was replaced in its file, that nobody can order
    it, why it is so.
    """
    if plan.overrides.values:
        yield f"In place of what the file says: {plan.overrides.replaced}."
    yield from study_notes(instance, plan.parts)
    yield from mating_notes(
        instance, {part.name: part.design for part in plan.parts if part.design is not None}
    )
    yield from far_figures(instance)
    yield from _power_left_out(instance, plan)
    yield from _long_runs(instance, plan)
    yield from _standing_still(instance, plan)
    yield from _by_law(instance)
    risks: dict[str, list[str]] = {}
    for workload in instance.workload:
        for evidence in workload.options.evidence:
            risks.setdefault(evidence, []).append(workload.name)
    for evidence, names in risks.items():
        trained = "Workload {} is" if len(names) == 1 else "Workloads {} are"
        yield f"{trained.format(words.both(names))} trained with a declared risk: {evidence}."
    yield from map(words.sentence, plan.explanation)


def study_notes(instance: Instance, parts: Iterable[Part]) -> Iterator[str]:
    """Which HB domains nobody sells as they are planned, so that the answer is a study and no
    order, and which have a price that was never published.
    """
    gpu = instance.cluster.gpu.name
    for domain in domains_of(instance, parts):
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
    if plan.cost is None:
        return
    include, limit_mw = instance.objective.include, instance.limits.power_mw
    kinds = {"gpu": "GPUs", "host": "servers"}
    left_out = {kind: text for kind, text in kinds.items() if kind not in include}
    drawn_w: defaultdict[float | None, float] = defaultdict(float)
    for part in plan.parts:
        drawn_w[part.phase] += _drawn_beside_w(instance, part, left_out)
    # Phases stand one after the other, so that the largest of them counts, and parts of a phase
    # together.
    together_mw = (plan.cost.power_w + max(drawn_w.values(), default=0.0)) / 1e6
    drawn = words.with_unit(together_mw, "MW")
    if limit_mw is not None and left_out and together_mw > limit_mw:
        names = words.both(f'"{kind}"' for kind in left_out)
        yield (
            f"With its {words.both(left_out.values())} this plan draws {drawn}, more than"
            f" limits.power_mw = {limit_mw:g}, which holds for what objective.include lists: add"
            f" {names} there."
        )
    for key, cap_mw in instance.power_caps_mw.items():
        if cap_mw > FAR * together_mw:
            yield (
                f"{key} = {cap_mw:,g} is more than {FAR:g} times the {drawn} that this plan draws"
                " with its GPUs: check its unit, which is MW."
            )


def _drawn_beside_w(instance: Instance, part: Part, left_out: Collection[str]) -> float:
    """What the GPUs and servers of a part draw, of those that no bill lists (W)."""
    domains = {domain.name: domain for domain in instance.network.hb_domains}
    network = part.design or part.links
    if network is None:
        return 0.0
    domain = domains[network.hb_domain.name]
    gpus_w = network.gpus * instance.cluster.gpu.w if "gpu" in left_out else 0.0
    host_w = domain.host_w_per_gpu or 0.0 if "host" in left_out else 0.0
    return gpus_w + network.hb_domain.count * domain.size * host_w


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
        law, size = workload.law, float(workload.model.parameters)
        tokens = workload.train_tokens or 0.0
        flop = FLOP_PER_PARAMETER * size * tokens
        best_size, its_tokens = law.best_for_compute(flop)
        yield (
            f"By the scaling law {law.name}, {spoken(tokens)} tokens take the {spoken(size)}"
            f" parameters of {workload.model.name} to a loss of {law.loss(size, tokens):.4g}; the"
            f" same {flop:.3g} FLOP take the best size, {spoken(best_size)} with"
            f" {spoken(its_tokens)} tokens, to {law.loss(best_size, its_tokens):.4g}."
        )


def far_figures(instance: Instance) -> Iterator[str]:
    """Which figures of one's own parts lie so far from all of the catalog that their unit may be
    another one.
    """
    cluster, network = instance.cluster, instance.network
    lists: dict[str, tuple[str, Sequence[Entry]]] = {
        "cluster.gpu": ("gpu", cluster.generations or (cluster.gpu,)),
        "network.hb_domains": ("hb_domain", network.hb_domains),
        "network.nics": ("nic", network.nics),
        "network.switches": ("switch", network.switches),
        "network.optics": ("optic", network.optics),
        "network.panels": ("panel", network.panels),
    }
    for place, (kind, parts) in lists.items():
        catalogued = list(entries(kind).values())
        for part in parts:
            for key, field in type(part).model_fields.items():
                low_figure, high_figure = _range(
                    [getattr(catalog_entry, key) for catalog_entry in catalogued]
                )
                if (
                    value := _figure(getattr(part, key))
                ) and not low_figure / FAR <= value <= high_figure * FAR:
                    unit = re.search(r"\(([^(,;]+)[^(]*\)", field.description or "")
                    ends = (
                        f"{_number(low_figure)} to"
                        f" {_number(high_figure)}{f' ({unit[1]})' if unit else ''}"
                    )
                    yield (
                        f"{place}: {key} = {_number(value)} of {part.name} is far from all of the"
                        f" catalog, which has {ends}: check its unit."
                    )


def _range(values: Iterable[object]) -> tuple[float, float]:
    """The least and the largest of those that are figures; everything where none is."""
    figures_known = [figure for value in values if (figure := _figure(value))]
    return (min(figures_known), max(figures_known)) if figures_known else (0.0, math.inf)


def _figure(value: object) -> float:
    """A number; 0 for anything else, as a price of 0 says that it is counted elsewhere."""
    return float(value) if isinstance(value, int | float) else 0.0


def _number(value: float) -> str:
    return words.exact(value) if value >= 1 else f"{value:g}"
