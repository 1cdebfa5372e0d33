"""Commands that answer a question: `coopt solve`, `pareto`, `explain`, `evaluate`; `diff` compares
two answers.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coopt.cli.arguments import (
    GAP,
    INFEASIBLE,
    PACE,
    POINTS,
    SEED,
    STOPPED,
    THREADS,
    TIME_LIMIT,
    TOP,
    Settings,
    a_file,
    answer,
    check_folder,
    check_places,
    instance_argument,
    note,
    with_settings,
    write_file,
)

if TYPE_CHECKING:
    from coopt.plan.front import Front

EXIT_CODES = {"optimal": 0, "infeasible": 3, "feasible": 4, "unknown": 4}

NO_TOKENS = {
    "workload.0.loss": None,
    "workload.0.compute_flop": None,
    "workload.0.train_tokens": 1e18,
}
EXPLAINED = {"optimal": 0, "feasible": 0, "infeasible": 0, "unknown": 4}


@click.command()
@instance_argument
@click.option("-o", "--output", metavar="PLAN.json", help="Write the plan to this file.")
@click.option(
    "--objective",
    type=click.Choice(["capex", "power", "tco", "time", "usd_per_token", "carbon"]),
    help="Quantity to minimise.",
)
@click.option(
    "--time-limit",
    "time_limit_s",
    metavar="S",
    type=TIME_LIMIT,
    help="Stop the search after S seconds.",
)
@click.option(
    "--gap",
    metavar="G",
    type=GAP,
    help="Relative gap at which a plan counts as optimal (0.01 is 1%).",
)
@click.option("--threads", metavar="N", type=THREADS, help="Threads of the solver.")
@click.option(
    "--top", metavar="K", type=TOP, help="Find the K best designs: the plan, and K - 1 runners-up."
)
@click.option("--seed", metavar="N", type=SEED, help="Seed of the solver's random choices.")
@click.option(
    "--solver", metavar="NAME", help="Solver that Pyomo knows, in place of the built-in HiGHS."
)
@click.option(
    "--witness",
    type=click.Choice(["scip"]),
    help="Second solver that solves again, to confirm the answer.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Print everything: bill, times by component, every bound, the search.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as one JSON document.")
@click.pass_context
def solve(
    ctx: click.Context,
    /,
    instance: str,
    settings: Settings,
    output: str | None,
    full: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the best design for INSTANCE and prove it.

    INSTANCE is a TOML file (`coopt new` writes one to start from). The answer fits on one screen;
    --full prints all of it. Options such as --gap replace values of [solver] and [objective], --set
    any value of INSTANCE; the plan records what was replaced. Ctrl-C ends the search with
    the best plan so far; a better plan in PLAN.json is not overwritten. --top works for one
    switched network and capex, power or tco, not with sharing.mode = 'partition', sites, phases,
    [robust] or direct links.

    Exit codes: 0 proven optimal within the gap, 3 proven infeasible, 4 not proven (the search
    stopped early, for example), or contradicted by the second solver of --witness.
    """
    from coopt.instance.schema import load
    from coopt.network.plan_networks import baseline_of
    from coopt.plan.store import decided, holds_better, plan_json, with_replaced
    from coopt.report.plan import plan_report
    from coopt.report.screen import plan_screen
    from coopt.report.words import columns_of, progress_shown, rendered
    from coopt.solving.answer import solve, value_without_margin
    from coopt.solving.assumptions import assess

    values = dict(settings)
    question = load(instance, values)
    check_places([output], instance)
    with progress_shown(note) as on_progress:
        found = solve(question, on_progress=on_progress, **options)
        plan = with_replaced(assess(question, found), values)
    decided_question, decided_plan = (
        (question, plan) if plan.cost is None else decided(question, plan)
    )
    try:
        what = "plan" if plan.parts else "answer (no plan was found)"
        if output is not None and holds_better(output, plan):
            note(f"{output} was not overwritten: this search did not find a better plan")
        else:
            write_file(output, lambda: plan_json(plan) + "\n", what)
    finally:
        # printed even where the file cannot be written: hours of search are not lost to a full disk
        chosen, columns = f"Chosen: {plan.chosen.text}." * bool(plan.chosen.text), columns_of()
        screen = partial(plan_screen, columns=columns, taken=-(-len(chosen) // columns))
        show = plan_report if full else screen
        text = (
            plan_json(plan)
            if as_json
            else rendered(
                show(
                    decided_question,
                    decided_plan,
                    baseline_of(decided_question, decided_plan),
                    value_without_margin(question, plan),
                )
            )
        )
        if chosen and not as_json:
            answer(chosen)
        answer(text)
    if plan.cost is not None and not full and not as_json:
        note(
            "--full adds the whole bill, the breakdown of each iteration time and every bound;"
            " coopt explain says what would change the plan"
        )
    if plan.status == "infeasible":
        note(
            "to see which changes would allow a plan:"
            f" {with_settings(['coopt', 'explain', instance], settings)}"
        )
    second = plan.solver.witness
    if second is not None:
        outcome = f"{second.status}, value {second.value}, bound {second.bound}"
        note(
            f"witness {second.name} {second.version} {'agrees' if second.agrees else 'disagrees'}:"
            f" {outcome}"
        )
    ctx.exit(EXIT_CODES[plan.status if second is None or second.agrees else "feasible"])


def _keeps_front(folder: str, front: Front) -> bool:
    """Whether a folder holds files of a front that an interrupted one must not replace.

    That is any front if this one has no point, and one of the same question that is complete or has
    more points.
    """
    from coopt.plan.front import Front

    file = Path(folder) / "front.json"
    if front.complete or front.stop_reason == "infeasible" or not file.is_file():
        return False
    try:
        kept = Front.model_validate_json(file.read_bytes())
    except (OSError, ValueError):  # perhaps of another version
        return not front.points
    is_same = (kept.instance.sha256, kept.kind, kept.over) == (
        front.instance.sha256,
        front.kind,
        front.over,
    )
    is_more = kept.complete or len(kept.points) > len(front.points)
    return not front.points or (is_same and is_more)


@click.command()
@instance_argument
@click.option(
    "--points",
    metavar="N",
    type=POINTS,
    default=20,
    show_default=True,
    help="Maximum number of points.",
)
@click.option(
    "--slowest",
    metavar="X",
    type=PACE,
    help=(
        "Slowest iteration, as a multiple of the bounds.  [no limit; with [availability] 10 times"
        " the fastest, or the bounds if slower]"
    ),
)
@click.option(
    "--over",
    metavar="WORKLOAD|days|budget",
    multiple=True,
    help=(
        "Scale the bound of this workload only; repeatable. `days` shows the least cost at"
        " evenly spaced dates, `budget` the fastest design at evenly spaced budgets.  [all"
        " workloads]"
    ),
)
@click.option(
    "--objective", type=click.Choice(["capex", "power", "tco"]), help="Quantity to minimise."
)
@click.option(
    "--time-limit", "time_limit_s", metavar="S", type=TIME_LIMIT, help="Stop after S seconds."
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    help="Write front.json, .csv, .png, .svg and .html into this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the front as one JSON document.")
@click.pass_context
def pareto(
    ctx: click.Context,
    /,
    instance: str,
    settings: Settings,
    output: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the least cost, or power, for every iteration time.

    Points run from the fastest design of INSTANCE to the cheapest, or to --slowest; each is proven,
    and knees are marked. All time bounds, or those of --over, are scaled by the same factor; the
    limits of INSTANCE hold at every point. With [availability], days include interruptions. Ctrl-C
    keeps the points proven so far.

    Exit codes: 0 all points proven, 3 proven that there is none, 4 stopped before all points were
    proven.
    """
    from coopt.instance.schema import load
    from coopt.report.fronts.files import check_packages, front_json, write_front
    from coopt.report.fronts.text import front_report
    from coopt.report.words import progress_shown, rendered
    from coopt.solving.fronts.sweep import pareto

    question = load(instance, dict(settings))
    if output is not None:
        check_packages("-o")
        check_folder(output)
    with progress_shown(note) as on_progress:
        front = pareto(question, on_progress=on_progress, **options)
    try:
        if output is not None and _keeps_front(output, front):
            note(f"{output} was not overwritten: the search stopped early without a better front")
        elif output is not None:
            write_front(front, question, output)
            note(f"Pareto front written to {output}")
    finally:
        answer(front_json(front) if as_json else rendered(front_report(front, question)))
    ctx.exit(INFEASIBLE if front.stop_reason == "infeasible" else 0 if front.complete else STOPPED)


@click.command()
@instance_argument
@click.argument("plan", metavar="[PLAN.json]", required=False, shell_complete=a_file)
@click.option(
    "--time-limit",
    "time_limit_s",
    metavar="S",
    type=TIME_LIMIT,
    help="Stop solving after S seconds.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as one JSON document.")
@click.pass_context
def explain(
    ctx: click.Context,
    instance: str,
    settings: Settings,
    plan: str | None,
    time_limit_s: float | None,
    as_json: bool,
) -> None:
    """Explain which bounds decide a plan, or rule out every plan.

    For a plan (PLAN.json, or the best one): the slack of each bound and what a tighter or looser
    one costs, the best plan with each other HB domain, fabric, NIC and switch, the range of each
    price within which the plan stays optimal, and the runner-up. If no plan meets the bounds: the
    limits that conflict, and the smallest changes that allow a plan, each confirmed by solving
    again (of many possible numbers of GPUs only multiples of a step, which is printed). A time
    limit (--time-limit or solver.time_limit_s) covers all of this; without one, questions about a
    plan end after 150 s, and the search for changes after 60 s. What was not examined is listed.

    Exit codes: 0 explained, 4 stopped before everything was examined.
    """
    from coopt.explain.answer import explain
    from coopt.explain.gpus import settings_to_compare
    from coopt.instance.schema import load
    from coopt.plan.store import read_plan
    from coopt.report.explanation import explanation_report
    from coopt.report.words import progress_shown, rendered

    question, given_plan = load(instance, dict(settings)), None if plan is None else read_plan(plan)
    with progress_shown(note) as on_progress:
        explanation = explain(
            question, given_plan, time_limit_s=time_limit_s, on_progress=on_progress
        )
    left_out = (
        settings_to_compare(question) if explanation.status in ("optimal", "feasible") else ()
    )
    answer(
        explanation.model_dump_json(by_alias=True, indent=2)
        if as_json
        else rendered(explanation_report(explanation))
    )
    for name, values in left_out:
        note(
            f"to compare {name}:"
            f" {with_settings(['coopt', 'explain', instance], (*settings, *values.items()))}"
        )
    ctx.exit(EXIT_CODES["unknown"] if explanation.untried else EXPLAINED[explanation.status])


@click.command()
@instance_argument
@click.option(
    "--plan",
    "plan",
    metavar="PLAN.json",
    shell_complete=a_file,
    help="Evaluate the decisions of this plan.",
)
@click.option(
    "--mappings",
    "count",
    metavar="N",
    type=TOP,
    help="Rank mappings on this network; show the N fastest.",
)
@click.option("--part", metavar="NAME", help="With --mappings: the part of the plan to use.")
@click.option("--json", "as_json", is_flag=True, help="Print the evaluation as one JSON document.")
def evaluate(
    instance: str,
    settings: Settings,
    plan: str | None,
    count: int | None,
    part: str | None,
    as_json: bool,
) -> None:
    """Evaluate one given design, without a search.

    Prints cost, time and memory of the one design and mapping that INSTANCE allows; --set fixes
    what it leaves open. With --plan the decisions are those of PLAN.json, under the values that
    --set changes. With --mappings only the network is given, and the mappings that INSTANCE allows
    are ranked on it.
    """
    from coopt.instance.schema import load
    from coopt.plan.store import decided, read_plan
    from coopt.report.plan import evaluation_report, given_plan_report, ranking_report
    from coopt.report.words import rendered
    from coopt.solving.evaluate import evaluate_instance, mappings
    from coopt.solving.resolves import only_plan
    from coopt.verifier.audit import evaluate_plan

    question = load(instance, dict(settings))
    if count is not None:
        ranking = mappings(
            question, None if plan is None else read_plan(plan), most=count, part=part
        )
        answer(
            ranking.model_dump_json(by_alias=True, indent=2)
            if as_json
            else rendered(ranking_report(ranking))
        )
        return
    if part is not None:
        raise click.UsageError("--part: needs --mappings.")
    if plan is not None or question.beyond_one_network:
        given_plan = only_plan(question) if plan is None else read_plan(plan)
        question, given_plan = decided(question, given_plan, same=False)
        evaluated = evaluate_plan(question, given_plan)
        report = given_plan_report(question, given_plan, evaluated)
        answer(evaluated.model_dump_json(by_alias=True, indent=2) if as_json else rendered(report))
        return
    evaluation = evaluate_instance(question)
    answer(
        evaluation.model_dump_json(by_alias=True, indent=2)
        if as_json
        else rendered(evaluation_report(question, evaluation))
    )


@click.command("best-model")
@instance_argument
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the models as one JSON document.")
@click.pass_context
def best_model(
    ctx: click.Context,
    /,
    instance: str,
    settings: Settings,
    models: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare the losses that models reach in training by a date.

    Each MODEL, or every dense one of the catalog with ordinary attention alone, is trained on its
    fastest cluster within the [limits] of INSTANCE until `train_days` or `by`; a scaling law gives
    its loss. [cluster] and [network] say what may be built.

    Exit codes: 0 the best model is known, 3 no model can be trained, 4 stopped before proof.
    """
    from coopt.explain.models import best_model, dense_models
    from coopt.instance.schema import load
    from coopt.report.comparison import models_report
    from coopt.report.words import rendered

    question = load(instance, dict(settings))
    by_name = [dict(settings) | {"workload.0.model": name} for name in models]
    own = [load(instance, changed | NO_TOKENS).workload[0].model for changed in by_name]
    sized = best_model(question, own or dense_models())
    answer(
        json.dumps([each.model_dump() for each in sized], indent=2)
        if as_json
        else rendered(models_report(question, sized))
    )
    if any(each.status not in ("optimal", "infeasible") for each in sized):
        ctx.exit(STOPPED)
    ctx.exit(0 if sized[0].loss is not None else INFEASIBLE)


@click.command()
@click.argument("before", metavar="PLAN.json", shell_complete=a_file)
@click.argument("after", metavar="PLAN.json", shell_complete=a_file)
@click.option("--json", "as_json", is_flag=True, help="Print the difference as one JSON document.")
def diff(before: str, after: str, as_json: bool) -> None:
    """Show what differs between two plans.

    Compares design, lines of the bill, mappings, times and cost of two PLAN.json. The plans may
    answer different instances.
    """
    from coopt.plan.difference import difference_of
    from coopt.plan.store import read_plan
    from coopt.report.comparison import difference_report
    from coopt.report.words import rendered

    difference = difference_of(read_plan(before), read_plan(after))
    answer(
        difference.model_dump_json(by_alias=True, indent=2)
        if as_json
        else rendered(difference_report(difference))
    )
