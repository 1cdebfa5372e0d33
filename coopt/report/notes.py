"""What a reader has to know to read a plan rightly: limits, accuracy, what is counted and kept
free.

First come what was replaced, what nobody sells, and figures that may be mistaken; what somebody
who builds a network has to know stands in `building`.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from coopt.instance.base import MAX_OF_RANGE, Entry
from coopt.instance.catalog import entries
from coopt.instance.hardware import HbDomain
from coopt.instance.reserves import Margin
from coopt.instance.schema import Instance, question_on, questions_by_gpu
from coopt.instance.texts import grouped, spoken, that_hold
from coopt.instance.transformer import FLOP_PER_PARAMETER
from coopt.instance.variants import phases_of
from coopt.network.orders import (
    networks_of_plan,
    notes_by_part,
    plan_order_notes,
)
from coopt.network.space import Space
from coopt.plan.couplings import Part
from coopt.plan.parts import Design, WorkloadPlan
from coopt.plan.schema import Plan
from coopt.plan.store import LimitCheck
from coopt.report import words
from coopt.report.building import (
    building_notes,
    leaf_notes,
    length_notes,
    mating_notes,
    reach_notes,
    sold_notes,
    standing_notes,
)
from coopt.report.suggestions import other_numbers
from coopt.report.words import FigureTable, figures, verdict_word

COUNTED = {
    "hb": "HB interconnect and idle GPUs",
    "nic": "NICs",
    "switch": "switches",
    "optics": "optics",
    "gpu": "GPUs that train",
    "host": "servers",
}
NEVER_COUNTED = [
    "racks",
    "cooling equipment",
    "spare NICs, switches and optics for repairs",
    "networks for storage and management",
]
LITTLE_MEMORY = 0.02
"""Share of a GPU's memory below which a plan says that so little is left free."""
MANY_IDLE = 0.05
"""Share of the GPUs of HB domains from which a plan says why they stand idle."""
COARSE = 1.25
"""How much more GPUs the next number of a list has, or the number the one before it, where a plan
says so.
"""


ESTIMATED = ("s", "days", "GiB")
"""Units of what the model estimates, where a close call may turn out wrong."""


def margins_table(checks: Iterable[LimitCheck]) -> FigureTable:
    """Bounds with their slack; the tightest has the smallest percentage."""
    return figures(
        "How far the plan is from each bound",
        ("bound",),
        ("plan", "limit", "slack", "slack %", "met"),
        [
            (
                check.name,
                words.with_unit(check.value, check.unit),
                words.with_unit(check.limit, check.unit),
                words.with_unit(check.limit - check.value, check.unit),
                "" if check.slack is None else words.percent(check.slack),
                verdict_word(
                    check.ok, close=check.unit in ESTIMATED and (check.slack or 1.0) < words.CLOSE
                ),
            )
            for check in checks
        ],
    )


def turns_text(instance: Instance, runs: Sequence[WorkloadPlan] = ()) -> str:
    """That workloads take turns, and how many days they take one after the other; or that they run
    side by side.
    """
    if instance.sharing.mode == "partition":
        core = "; only the core is shared" if instance.sharing.core is not None else ""
        return (
            f"Workloads run at the same time, each on its own HB domains, NICs and switches{core}."
        )
    trained = [workload for workload in instance.workload if workload.train_tokens is not None]
    promised_s = {run.name: run.promised_s for run in runs}
    days = sum(w.days(promised_s[w.name]) for w in trained if w.name in promised_s)
    add_up = f" One after the other they take {words.in_days(days)}." if 0 < days < math.inf else ""
    whole = add_up if len(trained) == len(instance.workload) else ""
    return f"Workloads take turns: each is timed with the whole cluster to itself.{whole}"


def remarks(instance: Instance, plan: Plan) -> list[str]:
    """What one has to know before one builds, what may cost most first: what stands, GPUs that
    reach little of their NICs or stand idle, memory, losses, what was not tried.
    """
    designs = [part.design for part in plan.parts if part.design is not None]
    return [
        *standing_notes(instance, plan.parts),
        *dict.fromkeys(note for design in designs for note in reach_notes(instance, design)),
        *length_notes(instance, networks_of_plan(instance, plan)),
        *idle_note(instance, plan),
        *memory_note(instance, plan.runs),
        *numbers_between(instance, plan),
        *leaf_notes(designs),
        *tp_across(instance, plan.runs, none_inside=plan.tp_across),
    ]


def reading_notes(
    instance: Instance, parts: Sequence[Part], *, none_inside: bool = False, ordered: bool = False
) -> list[str]:
    """What is counted and what is not, how bounds are meant, and how far figures carry; of networks
    that grow what they are in the end. What to order otherwise may be told of the whole plan.
    """
    runs = [run for part in parts for run in part.workloads]
    last = [part for part in parts if part.phase == parts[-1].phase]
    included = [
        f"The interconnect of {domain.name} counts as $0; set its usd_per_gpu if the price of"
        " the servers does not include it."
        for domain in domains_of(instance, parts)
        if domain.usd_per_gpu == 0
        and "hb" in instance.objective.include
        and not instance.network.given
    ]
    knobs: dict[str, dict[str, None]] = {}
    for run in runs:
        for knob in run.knobs:
            knobs.setdefault(knob, {})[run.name] = None
    phases = [phase for part in last if part.links for phase in part.links.phases]
    passed_on = any(len(route.path) > 2 for phase in phases for route in phase.routes)
    links = (
        "Traffic forwarded through other domains takes no time in the model beyond that on the"
        " links (docs/direct.md)."
    )
    question = phases_of(instance)[-1]
    return [
        counting_sentence(instance),
        *included,
        *(f"Training option of {', '.join(of)}: {knob}." for knob, of in knobs.items()),
        *(
            [turns_text(instance, runs if len(parts) == 1 else ())]
            if len(instance.workload) > 1
            else []
        ),
        *tp_across(instance, runs, none_inside=none_inside),
        *([links] if passed_on else []),
        *standing_notes(question, parts),
        *notes_by_part(
            {
                part.name: building_notes(question, part.design, ordered=ordered)
                for part in last
                if part.design
            }
        ),
    ]


def domains_of(instance: Instance, parts: Iterable[Part]) -> Iterator[HbDomain]:
    """The HB domains of parts, in the order of the instance; a plan that somebody wrote may have
    parts without any.
    """
    networks = [network for part in parts if (network := part.design or part.links) is not None]
    names = {network.hb_domain.name for network in networks}
    yield from (domain for domain in instance.network.hb_domains if domain.name in names)


def numbers_between(instance: Instance, plan: Plan) -> Iterator[str]:
    """That numbers of GPUs between those listed were not asked for, where one of them may do
    better.
    """
    counts, design = sorted(instance.cluster.gpus), plan.design
    # With idle GPUs, numbers in between were tried.
    if (
        design is not None
        and design.gpus in counts
        and design.hb_domain.active
        and not instance.cluster.idle_gpus
    ):
        # More GPUs are faster; for any other aim fewer may do.
        place = counts.index(design.gpus) - (instance.objective.minimize != "time")
        start, end = counts[max(place, 0)], counts[min(place + 1, len(counts) - 1)]
        domain = design.hb_domain.active
        step = domain * ((end - start) // (domain * MAX_OF_RANGE) + 1)
        if place >= 0 and end >= max(COARSE * start, start + 2 * step):
            yield (
                f"No number of GPUs between {words.count(start)} and {words.count(end)} was tried;"
                f" cluster.gpus = {{ least = {start}, most = {end}, step = {step} }} tries numbers"
                " in between."
            )


def memory_note(instance: Instance, workloads: Sequence[WorkloadPlan]) -> Iterator[str]:
    """Which workloads leave next to nothing of a GPU's memory free, where no share of it was asked
    to stay so.
    """
    rooms = {run.name: 1.0 - run.memory_gib / run.memory_limit_gib for run in workloads}
    narrow = [
        f"{words.percent(room)}{f' ({name})' if len(rooms) > 1 else ''}"
        for name, room in rooms.items()
        if room < LITTLE_MEMORY
    ]
    if narrow and not instance.cluster.gpu.memory_margin:
        yield (
            f"Only {words.both(narrow)} of GPU memory is free; fragmentation may exhaust it"
            " (margin.memory = 0.05 keeps 5% free)."
        )


def idle_note(instance: Instance, plan: Plan) -> Iterator[str]:
    """How many GPUs of HB domains stand idle where fewer domains would hold those that train."""
    design, fill = plan.design, instance.network.domain_fill
    if design is None or instance.network.given:
        return
    domain = design.hb_domain
    if not domain.count * domain.size:
        return
    bought, fewest = domain.count * domain.size, -(-design.gpus // domain.size)
    share = (bought - design.gpus) / bought
    # A remainder in the last domain is no choice: only whole domains more than needed are worth a
    # note.
    if fewest < domain.count and share >= MANY_IDLE:
        forced = words.both(instance.even_for) or "network.domain_fill"
        reason = (
            f"the same number of GPUs has to train in every domain ({forced})"
            if fill == "even" and design.gpus % max(1, fewest)
            else "no better plan on fewer domains was found"
        )
        if fill == "fewest" and _skips_numbers(instance, design):
            reason += "; network.domain_fill = 'any' tries more numbers of domains"
        yield (
            f"{words.percent(share)} of the GPUs in HB domains stand idle. {words.count(fewest)} of"
            f" the {words.count(domain.count)} domains could hold all GPUs that train, but"
            f" {reason}. Another number of GPUs or another batch may divide better."
        )


def _skips_numbers(instance: Instance, design: Design) -> bool:
    """Whether fewer domains than those of the plan may hold its GPUs and are not tried by
    default.
    """
    space, listed = Space(instance=instance), instance.network.hb_domains
    hb = next(domain for domain in listed if domain.name == design.hb_domain.name)
    further = {*space.domain_counts(design.gpus, hb, "any")} - {
        *space.domain_counts(design.gpus, hb)
    }
    return min(further, default=math.inf) < design.hb_domain.count


def tp_across(
    instance: Instance, workloads: Sequence[WorkloadPlan], *, none_inside: bool
) -> Iterator[str]:
    """Which TP groups leave their HB domain, and the key that keeps them inside, or that nothing
    inside will do.
    """
    spanning = dict.fromkeys(run.name for run in workloads if run.placement["tp"][1] > 1)
    left_open = {one.name for one in instance.workload if one.allow_tp_across is None}
    several = "s" * (len(workloads) > 1)
    kept = [f"meets the bound{several}"] * any(run.bounded for run in workloads)
    kept += ["stays within the limits"] * bool(instance.limits.given or instance.power_caps_mw)
    does = words.both(kept) or "divides GPUs and batch and fits into memory"
    for forced, ending in {
        True: f", because no plan that keeps them inside one {does}.",
        False: "; workload.allow_tp_across = false allows only plans that keep them inside one.",
    }.items():
        names = [name for name in spanning if (none_inside and name in left_open) == forced]
        of = f" of {', '.join(names)}" if len({run.name for run in workloads}) > 1 else ""
        if names:
            yield f"TP groups{of} span several HB domains{ending}"


def margin_note(instance: Instance, plan: Plan, without: float | None = None) -> list[str]:
    """What is kept free for errors, and what that costs where the best plan without it is known.

    Parameters
    ----------
    without
        The objective (USD or W) of the best plan that keeps nothing free.
    """
    margin, kind, value = instance.kept_margin, plan.objective.kind, plan.objective.value
    if margin.keeps_nothing or not plan.parts:
        return []
    cost = ""
    if without is not None and value is not None:
        share = f" ({words.percent((value - without) / without)})" if without else ""
        dear = f"{words.amount(kind, value - without)}{share}"
        cost = f"; that costs {dear if value > without else 'nothing'}"
    kept = kept_free(instance, margin)
    if not kept:  # only times have a margin, and none has a bound
        return []
    built = {name for part in plan.parts if part.design for name in part.design.fabric.switch_names}
    ports = ", ".join(
        f"{switch.free_ports} of {switch.free_ports + switch.radix} on {switch.name}"
        for switch in instance.network.switches
        if switch.free_ports and switch.name in built
    )
    of_switches = f" ({ports})" if ports else ""
    by_default = (
        "" if instance.margin else " This is the default; margin = 'none' keeps nothing free."
    )
    return [f"Kept free: {kept}{of_switches}{cost}.{by_default}"]


def counting_sentence(instance: Instance) -> str:
    """What the bill holds, and what it leaves out."""
    include = instance.objective.include
    included = [text for kind, text in COUNTED.items() if kind in include]
    included += that_hold(
        {
            "panel ports": instance.network.panels and "switch" in include,
            "fibre": instance.network.fibre and "optics" in include,
            "labour for retrofits": any(phase.retrofit_usd_per_link for phase in instance.phase),
            "wide-area channels": instance.wan,
        }
    )
    excluded = [text for kind, text in COUNTED.items() if kind not in include]
    is_joined = any(optic.pairs_of(optic.gbit_s) for optic in instance.network.optics)
    excluded += ["fibre between modules"] * (is_joined and not instance.network.fibre)
    excluded += NEVER_COUNTED
    standing = " What stands counts with its power, not its price." if instance.stands else ""
    return (
        f"The bill counts {', '.join(included)}. It does not count {', '.join(excluded)}.{standing}"
    )


def kept_free(instance: Instance, margin: Margin) -> str:
    """`12.3% on top of iteration times (80.0% likely to be in time)`."""
    chance = words.percent(margin.chance)
    error = f" ({chance} likely to be in time)" if margin.time == "model" else ""
    times = dict.fromkeys(
        words.percent(workload.time_margin)
        for question in questions_by_gpu(instance)
        for workload in question.workload
        if workload.bounded
    )
    return words.both(
        that_hold(
            {
                f"{words.both(times)} on top of iteration times{error}": margin.time and times,
                f"{words.percent(instance.cluster.gpu.memory_margin)} of GPU memory": margin.memory,
                f"{words.percent(margin.ports)} of the ports of each switch": margin.ports,
            }
        )
    )


FAR = 100.0
"""How many times beyond the range of the catalog a figure is taken for a mistake of its unit."""

LITTLE = 0.8
"""A share of the time that trains, below which a plan says so first."""


def first_sentences(instance: Instance, plan: Plan) -> list[str]:
    """What stands above all else of a plan: what was replaced in its file, what of it nobody can
    order or join, what may be a mistake, why it is so; last what is worth knowing beside it.
    """
    replaced = f"Values that --set changed from the instance file: {plan.overrides.replaced}."
    designs = {part.name: part.design for part in plan.parts if part.design is not None}
    return [
        *([replaced] if plan.overrides.values else []),
        *mating_notes(instance, designs),
        *plan_order_notes(instance, plan),
        *dict.fromkeys(
            note for design in designs.values() for note in sold_notes(instance, design)
        ),
        *study_notes(instance, plan.parts),
        *other_numbers(instance, plan),
        *_power_left_out(instance, plan),
        *price_notes(instance, plan.parts),
        *far_figures(instance),
        *_far_bounds(instance, plan),
        *_open_channels(plan),
        *_standing_still(instance, plan),
        *_declared_risks(instance),
        *map(words.sentence, plan.explanation),
        *_long_runs(instance, plan),
        *_by_law(instance),
    ]


def _far_bounds(instance: Instance, plan: Plan) -> Iterator[str]:
    """Which bounds are so loose that they may be meant in another unit."""
    for w, workload in enumerate(instance.workload):
        time_s = max(
            (run.iteration_time_s for run in plan.runs if run.name == workload.name), default=0
        )
        bound_s = workload.max_iteration_time_s
        if bound_s is not None and time_s and bound_s >= FAR * time_s:
            yield (
                f"workload[{w}].max_iteration_time_s = {bound_s:g} is {bound_s / time_s:,.0f}"
                f" times what an iteration of the plan takes ({words.seconds(time_s)}). The key is"
                f" in seconds; if the value is meant in milliseconds, write {bound_s / 1000:g}."
            )


def _open_channels(plan: Plan) -> Iterator[str]:
    """That channels between sites end in ports which no bill has but in their price."""
    lit = plan.couplings.ring.wan if plan.couplings.ring else ()
    if any(link.channels and link.optic is None for link in lit):
        yield "Ports and optics of channels are billed only with [sharing.core] and wan.km."


def _declared_risks(instance: Instance) -> Iterator[str]:
    """What was declared of options that nobody has shown to be safe, with who trains so."""
    names = grouped((workload.options.evidence, workload.name) for workload in instance.workload)
    for risks, of in names.items():
        of_whom = f" of {words.both(of)}" if len(of) < len(instance.workload) else ""
        if risks:
            yield f"Declared risk{'s' * (len(risks) > 1)}{of_whom}: {'; '.join(risks)}."


def study_notes(instance: Instance, parts: Iterable[Part]) -> Iterator[str]:
    """Which HB domains nobody sells as they are planned, so that the answer is a study and no
    order.
    """
    yield from (
        note for domain in domains_of(instance, parts) if (note := _study(instance, domain))
    )


def price_notes(instance: Instance, parts: Iterable[Part]) -> Iterator[str]:
    """Which HB domains that are sold have a price that was never published."""
    for domain in domains_of(instance, parts) if "hb" in instance.objective.include else ():
        if not _study(instance, domain) and (usd := _scaled_usd(domain)):
            yield (
                f"No price of {domain.name} is published; ${words.exact(usd)} a GPU is scaled from"
                " another system's price."
            )


def _study(instance: Instance, domain: HbDomain) -> str | None:
    return domain.study_note(question_on(instance, domain.name).cluster.gpu.name)


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
    # Servers count only beside HB domains, where all that are listed state theirs.
    may_count = "hb" in include and all(
        None not in (domain.host_usd_per_gpu, domain.host_w_per_gpu)
        for domain in instance.network.hb_domains
    )
    kinds = {"gpu": "GPUs"} | ({"host": "servers"} if may_count else {})
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
            f" limits.power_mw = {limit_mw:g}. The limit covers only what objective.include lists:"
            f" add {names} there."
        )
    if left_out:
        yield from _sites_left_short(instance, plan, left_out)
    yield from (
        f"{key} = {cap_mw:,g} is more than {FAR:g} times the {drawn} that this plan draws in all:"
        " check its unit (MW)."
        for key, cap_mw in instance.power_caps_mw.items()
        if cap_mw > FAR * together_mw
    )


def _sites_left_short(instance: Instance, plan: Plan, left_out: Mapping[str, str]) -> Iterator[str]:
    """Sites that cannot feed what the objective leaves out, in the phase that draws most."""
    pues = {site.name: site.pue or instance.objective.pue for site in instance.site}
    most_w, fed_w = defaultdict[str, float](float), dict[str, float]()
    for site in plan.couplings.sites:
        here = [part for part in plan.parts if (part.site, part.phase) == (site.site, site.phase)]
        beside_w = sum(_drawn_beside_w(instance, part, left_out) for part in here)
        drawn_w = site.facility_w + pues[site.site] * beside_w
        most_w[site.site] = max(most_w[site.site], drawn_w)
        fed_w[site.site] = site.facility_limit_w
    short = [
        f"{name} draws {words.power(drawn_w)} of {words.power(fed_w[name])}"
        for name, drawn_w in most_w.items()
        if drawn_w > fed_w[name]
    ]
    if short:
        names = words.both(f'"{kind}"' for kind in left_out)
        yield (
            f"With {words.both(left_out.values())} and cooling, {words.both(short)}."
            f" site.power_mw covers only what objective.include lists: add {names} there."
        )


def _drawn_beside_w(instance: Instance, part: Part, left_out: Collection[str]) -> float:
    """What the GPUs and servers of a part draw, of those that no bill lists (W)."""
    domains = {domain.name: domain for domain in instance.network.hb_domains}
    network = part.design or part.links
    if network is None:
        return 0.0
    domain = domains[network.hb_domain.name]
    gpu = question_on(instance, domain.name).cluster.gpu
    gpus_w = network.gpus * gpu.w if "gpu" in left_out else 0.0
    host_w = domain.host_w_per_gpu or 0.0 if "host" in left_out else 0.0
    return gpus_w + network.hb_domain.count * domain.size * host_w


def _long_runs(instance: Instance, plan: Plan) -> Iterator[str]:
    """Which workloads train for more than a year, of those whose tokens are given."""
    for workload in instance.workload:
        runs = [run for run in plan.runs if run.name == workload.name]
        if runs and workload.train_tokens is not None:
            slowest = max(runs, key=lambda run: run.iteration_time_s)
            goodput = slowest.uptime.goodput if slowest.uptime else 1.0
            years = workload.days(slowest.elapsed_s(goodput)) / 365
            if 1 < years < math.inf:
                undisturbed = "" if slowest.uptime else " if nothing fails"
                yield (
                    f"Training {workload.name} on {spoken(workload.needed_tokens)} tokens takes"
                    f" {years:.3g} years{undisturbed}."
                )


def _standing_still(instance: Instance, plan: Plan) -> Iterator[str]:
    """Which workloads train for little of the time, where no bound on days counts that."""
    cure = (
        " With a bound in days (train_days with train_tokens), the search chooses spares and a"
        " network that finish in time."
    )
    for name in (workload.name for workload in instance.workload if not workload.calendar):
        goodputs = [run.uptime.goodput for run in plan.runs if run.name == name and run.uptime]
        if min(goodputs, default=1.0) < LITTLE:
            yield (
                f"Interruptions leave {name} only {words.percent(min(goodputs))} of the time to"
                f" train.{'' if instance.network.given else cure}"
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
        reached, lowest = (
            f"{law.loss(*of):.4g}" for of in ((size, tokens), (best_size, its_tokens))
        )
        yield (
            f"By the scaling law {law.name}, {workload.model.name} ({spoken(size)} parameters)"
            f" reaches a loss of {reached} with {spoken(tokens)} tokens. With the same {flop:.3g}"
            f" FLOP the lowest loss is {lowest if lowest != reached else 'hardly less'}, at"
            f" {spoken(best_size)} parameters and {spoken(its_tokens)} tokens."
        )


def far_figures(instance: Instance) -> Iterator[str]:
    """Which figures of one's own parts lie so far from all of the catalog that their unit may be
    another one.
    """
    cluster, network = instance.cluster, instance.network
    lists: dict[str, tuple[str, Sequence[Entry]]] = {
        "cluster.gpu": ("gpu", cluster.kinds),
        "network.hb_domains": ("hb_domain", network.hb_domains),
        "network.nics": ("nic", network.nics),
        "network.switches": ("switch", network.switches),
        "network.optics": ("optic", network.optics),
        "network.fibre": ("fibre", network.fibre),
        "network.panels": ("panel", network.panels),
    }
    for place, (kind, parts) in lists.items():
        catalogued = list(entries(kind).values())
        for part in parts:
            for key, field in type(part).model_fields.items():
                value = _figure(getattr(part, key))
                known = [x for entry in catalogued if (x := _figure(getattr(entry, key)))]
                if value and known and not min(known) / FAR <= value <= max(known) * FAR:
                    unit = re.search(r"\(([^(,;]+)[^(]*\)", field.description or "")
                    ends = f"{_number(min(known))} to {_number(max(known))}"
                    yield (
                        f"{place}: {key} = {_number(value)} of {part.name} is far outside the"
                        f" catalog's range of {ends}"
                        f"{f' ({unit[1]}): check its unit.' if unit else ': check the number.'}"
                    )


def _figure(value: object) -> float:
    """A number; 0 for anything else, as a price of 0 says that it is counted elsewhere."""
    return float(value) if isinstance(value, int | float) else 0.0


def _number(value: float) -> str:
    return words.exact(value) if value >= 1 else f"{value:g}"
