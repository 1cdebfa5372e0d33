"""A plan as a planner reads it, the decision first; and a design that was given."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.schema import Instance
from coopt.instance.workload import LONGEST_S
from coopt.network.part_networks import network_of
from coopt.network.plan_networks import Baseline
from coopt.plan.evaluation import Evaluation, MappingRanking, PlanEvaluation, limit_checks
from coopt.plan.parts import DirectLinks, beside_ordinary
from coopt.plan.schema import Cost, Design, Plan
from coopt.report import words
from coopt.report.building import mating_notes
from coopt.report.comparison import rivals_sentence, runners_tables, saving_tables
from coopt.report.couplings import phases_report, sites_report
from coopt.report.explanation import search_table
from coopt.report.islands import islands_report
from coopt.report.parts import BILL, degrees, part_tables
from coopt.report.remarks import first_sentences, margin_note, margins_table, notes, study_notes
from coopt.report.robust import regret_words, robust_tables, unknown_regret
from coopt.report.sentence import decision, headline, price
from coopt.report.tables import figures


def plan_report(
    instance: Instance,
    plan: Plan,
    baseline: Baseline | None = None,
    without_margin: float | None = None,
) -> Iterator[RenderableType]:
    """Everything a plan says; without a design, why there is none."""
    yield Text(headline(instance, plan), style="bold")
    yield from first_sentences(instance, plan)
    if plan.cost is not None:
        yield from plan_sections(instance, plan, plan.cost, baseline)
        yield from margin_note(instance, plan, without_margin)
    yield ""
    yield search_table(instance, plan)


def plan_sections(
    instance: Instance, plan: Plan, cost: Cost, baseline: Baseline | None = None
) -> Iterator[RenderableType]:
    """What is built: several networks with what ties them, or one."""
    if plan.rivals is not None:
        yield ""
        yield rivals_sentence(plan.rivals)
    yield ""
    if plan.together is not None:
        yield from sites_report(instance, plan, cost, plan.together)
    elif instance.sharing.mode == "partition":
        yield from islands_report(instance, plan, cost)
    elif plan.phases:
        yield from phases_report(instance, plan)
    elif (network := plan.design or plan.direct) is not None:
        yield from _one_network(instance, plan, network, cost, baseline)


def _one_network(
    instance: Instance,
    plan: Plan,
    network: Design | DirectLinks,
    cost: Cost,
    baseline: Baseline | None,
) -> Iterator[RenderableType]:
    """The network that workloads use in turn, their runs, what it saves, what it stands, and what
    comes next.
    """
    bill = f"{BILL}, at the worst prices" if instance.worst_prices else BILL
    yield from part_tables(
        instance, network, zip(plan.workloads, instance.workload, strict=True), cost, bill=bill
    )
    yield ""
    yield margins_table(limit_checks(instance, network, cost, plan.workloads))
    yield ""
    if isinstance(network, Design):
        yield from saving_tables(network, cost, baseline)
        yield ""
    yield from notes(instance, [network], plan.workloads, none_inside=plan.tp_across)
    yield from robust_tables(instance, plan)
    if plan.alternatives_stop is not None:
        yield ""
        yield from runners_tables(plan)


def evaluation_report(instance: Instance, evaluation: Evaluation) -> Iterator[RenderableType]:
    """Cost, time, memory and bounds of a design that was given, not chosen."""
    yield Text(evaluation_headline(instance, evaluation), style="bold")
    yield from study_notes(instance, [evaluation.design])
    yield from mating_notes(instance, {evaluation.instance.name: evaluation.design})
    yield ""
    runs = zip(evaluation.workloads, instance.workload, strict=True)
    yield from part_tables(instance, evaluation.design, runs, evaluation.cost)
    if evaluation.limits:
        yield ""
        yield margins_table(evaluation.limits)
    yield ""
    yield from notes(instance, [evaluation.design], evaluation.workloads)


def ranking_report(ranking: MappingRanking) -> Iterator[RenderableType]:
    """The fastest mappings of every workload on a network that was given."""
    yield Text(f"Given: {words.design_text(ranking.design)}.", style="bold")
    for workload in ranking.workloads:
        yield ""
        if not workload.mappings:
            yield (
                f"Workload {workload.name}: none of {words.counted(workload.listed, 'mapping')}"
                " fits into memory."
            )
            continue
        bounded, best_s = workload.bound_s < LONGEST_S, workload.mappings[0].iteration_time_s
        rows = [
            (
                f"{degrees(run.mapping)}{', SP' if run.mapping.sequence_parallel else ''}",
                " + ".join(
                    [run.mapping.recompute, *beside_ordinary(run.mapping.model_dump(), short=True)]
                ),
                *map(
                    words.count, (run.mapping.micro_batch, run.mapping.interleave, run.mapping.zero)
                ),
                words.seconds(run.iteration_time_s),
                f"{run.iteration_time_s / best_s - 1:.2%}",
                *([words.free(run.slack, run.bound_s)] if bounded else []),
                f"{run.memory_gib:.1f}",
                words.percent(run.mfu),
            )
            for run in workload.mappings
        ]
        within = f", at most {words.seconds(workload.bound_s)}" if bounded else ""
        title = f"Workload {workload.name}{within}: the fastest mappings"
        numbers = (
            "batch",
            "chunks",
            "ZeRO",
            "iteration",
            "slower",
            *(["slack"] if bounded else []),
            "GiB",
            "MFU",
        )
        yield figures(title, ("split", "recompute"), numbers, rows)
        fitting = f"{words.count(workload.fitting)} of {words.counted(workload.listed, 'mapping')}"
        words_used = (
            "SP: sequence parallelism; batch: sequences in a micro-batch; chunks: interleaved parts"
            " of a stage"
        )
        if any("norm+" in run.mapping.recompute for run in workload.mappings):
            words_used += (
                "; norm+act, norm+ffn: norms are recomputed, and activations or the feed-forward"
                " part with them"
            )
        yield (
            f"{fitting} that divide evenly fit into memory; each is shown with its fastest"
            f" placement. {words_used}."
        )


def given_plan_report(
    instance: Instance, plan: Plan, evaluation: PlanEvaluation
) -> Iterator[RenderableType]:
    """What the decisions of a plan that was given amount to, and which bounds they miss."""
    missed = [check.name for check in evaluation.limits if not check.ok]
    outcome = f"misses {'; '.join(missed)}" if missed else "meets every bound"
    cost = words.amount(evaluation.kind, evaluation.value) + regret_words(instance, evaluation)
    yield Text(f"Given: {decision(instance, plan) or 'a plan'}, {cost}; {outcome}.", style="bold")
    yield from unknown_regret(instance, evaluation)
    yield from study_notes(instance, map(network_of, plan.parts))
    yield ""
    rows = [
        (figure.name, figure.of, words.with_unit(figure.value, figure.unit))
        for figure in evaluation.figures
    ]
    yield figures("What follows from its decisions", ("figure", "of"), ("value",), rows)
    yield ""
    yield margins_table(figure for figure in evaluation.limits if figure.limit)


def evaluation_headline(instance: Instance, evaluation: Evaluation) -> str:
    """The given design, its price, and which bounds it misses."""
    offer = (
        f"{words.design_text(evaluation.design)},"
        f" {price(instance, instance.objective.minimize, evaluation.cost)}"
    )
    missed = [check.name for check in evaluation.limits if not check.ok]
    outcome = f"misses {'; '.join(missed)}" if missed else "meets every bound"
    return f"Given: {offer}; {outcome}."
