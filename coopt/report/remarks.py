"""What stands above all else of a plan: what was replaced, what nobody sells, and figures that may
be mistaken.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from coopt.instance.base import Entry
from coopt.instance.catalog import entries
from coopt.instance.errors import spoken
from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Instance
from coopt.instance.transformer import FLOP_PER_PARAMETER
from coopt.plan.couplings import Part
from coopt.plan.schema import Plan
from coopt.report import words
from coopt.report.building import mating_notes
from coopt.report.notes import domains_of

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
