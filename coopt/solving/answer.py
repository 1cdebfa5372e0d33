"""Answer an instance; where it leaves generations of GPUs, batches or knobs open, each choice is
searched.

A choice is a question of its own, so that nothing new is searched. The best plan is the cheapest of
all choices, and the lowest of their bounds is one on all plans. An iteration's time is compared by
that of the training, as larger batches take fewer iterations.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from coopt.instance.numerics import SOLVED
from coopt.instance.reserves import DEFAULT_MARGIN, NO_MARGIN
from coopt.instance.schema import (
    Chosen,
    Instance,
    ObjectiveKind,
    Solver,
    at_choice,
    choices_of,
    instance_of,
    questions_by_gpu,
    seconds_weight,
)
from coopt.instance.texts import InstanceError, alternatives, both, counted
from coopt.instance.variants import inside_first, keeping, leaves_tp_open, with_tp
from coopt.plan.parts import Cost
from coopt.plan.schema import NextBest, OnProgress, Plan, Witness
from coopt.solving.driver import (
    OWN_GAP,
    bound_of,
    claim_of,
    identity,
    infeasible,
    unknown,
    within_gap,
)
from coopt.solving.highs import interrupts_heard
from coopt.solving.runs import (
    Method,
    Run,
    StoppedError,
    backend_of,
    found_here,
    overridden,
    overrides_of,
)
from coopt.solving.ties import nearest_of_ties
from coopt.solving.turns import Turn

if TYPE_CHECKING:
    from coopt.columns.islands.options import ListedIslands

WITNESSES = {"scip": ("scip_direct", "pip install 'coopt[witness]'")}
"""Pyomo's interface to each, and what installs it."""


TOLD = 5
"""Choices whose reasons are told where no choice has a plan."""


def solve(
    instance: Instance | str | Path,
    *,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    objective: ObjectiveKind | None = None,
    solver: str | None = None,
    seed: int | None = None,
    top: int | None = None,
    witness: str | None = None,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
    listed: ListedIslands | None = None,
    reasons: bool = True,
) -> Plan:
    """The design and mappings of least cost that meet every bound, with a proof.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    time_limit_s
        Replaces `solver.time_limit_s`.
    gap
        Replaces `solver.gap`.
    threads
        Replaces `solver.threads`.
    seed
        Replaces `solver.seed`.
    top
        Replaces `solver.top`; above 1 it asks for runners-up.
    witness
        "scip": a second solver searches again, within the same limits; `plan.solver.witness` says
        whether it agrees.
    solver
        Replaces `solver.name`: "built-in", or a mixed-integer solver that Pyomo knows and finds
        here.
    objective
        Replaces `objective.minimize`.
    on_progress
        Called with each step, in the caller's thread; while HiGHS searches at most twice a second,
        with nodes, best and bound.
    cancel
        Ends the run once another thread sets it. Solvers other than the built-in one notice between
        two searches.
    listed
        Islands that earlier runs listed (`coopt.columns.islands.options.ListedIslands`): partitions
        that differ in some workloads alone list those alone.
    reasons
        Whether it is worked out why a workload has no island, where that is so.

    Returns
    -------
    Plan
        With status "optimal", "feasible", "infeasible" or "unknown". Ctrl-C and `cancel` end with
        the best plan so far, and stop_reason "interrupted". Threads take turns with HiGHS, and
        waiting counts against the time limit.

    Raises
    ------
    InstanceError
        When a given value is out of range, or the solver or the witness is unknown or not
        installed.

    Examples
    --------
    >>> import coopt
    >>> plan = coopt.solve(coopt.load("instances/tiny-64.toml"), time_limit_s=60)
    >>> plan.status, plan.design.hb_domain.name, plan.objective.value
    ('optimal', 'hgx-h100-8', 181888.0)
    """
    instance = instance_of(instance)
    settings: dict[str, float | str | None] = {
        "time_limit_s": time_limit_s,
        "gap": gap,
        "threads": threads,
        "name": solver,
        "seed": seed,
        "top": top,
    }
    question = overridden("solve", instance, settings, objective)
    cancel = cancel or threading.Event()
    witness_question = None if witness is None else asking_witness(question, witness)
    run = Run(
        instance=question,
        backend=backend_of(question.solver, cancel),
        on_progress=on_progress,
        listed=listed,
        reasons=reasons,
    )
    with interrupts_heard(cancel):
        plan = question_plan(run)
        # whoever interrupted the first search waits for no second one
        if (
            witness is not None
            and witness_question is not None
            and plan.stop_reason != "interrupted"
        ):
            second = Run(
                instance=witness_question,
                backend=backend_of(witness_question.solver, cancel),
                on_progress=on_progress,
            )
            plan = with_witness(plan, witness, lambda: question_plan(second))
        if reasons and plan.status == "infeasible" and question.margin is None:
            plan = plan.model_copy(
                update={"explanation": (*_blamed_margin(question, plan), *plan.explanation)}
            )
        plan = nearest_of_ties(question, plan)
    return plan.model_copy(update={"overrides": overrides_of(instance, question)})


WITHOUT = {
    "margin = { confidence = 0.8 }": {"memory": 0.0},
    "margin = { time = 0, memory = 'software' }": {"time": 0.0},
    "margin = 'none'": {"memory": 0.0, "time": 0.0},
}
"""What turns off parts of the default margin, as typed and as what it changes."""


def _blamed_margin(question: Instance, plan: Plan) -> tuple[str, ...]:
    """Which part of what is kept free by default leaves no plan, where a search that took no longer
    finds one without it.
    """
    for typed_key, shares in WITHOUT.items() if plan.timing_s.total <= QUICK_S else ():
        eased = keeping(question, DEFAULT_MARGIN.model_copy(update=shares))
        if solve(eased, time_limit_s=QUICK_S, reasons=False).parts:
            chosen = (at_choice(question, choice) for choice in choices_of(question))
            by_gpu = [
                of_gpu
                for one in (chosen if question.open_keys else (question,))
                for of_gpu in questions_by_gpu(one)
            ]
            memories = [f"{one.cluster.gpu.memory_margin:.1%}" for one in by_gpu]
            times = [f"{run.time_margin:.1%}" for one in by_gpu for run in one.workload]
            kept = {
                "memory": f"{alternatives(dict.fromkeys(memories))} of GPU memory",
                "time": f"{alternatives(dict.fromkeys(times))} on top of iteration times",
            }
            return (
                f"No plan keeps the default margin free ({both(kept[key] for key in shares)}); a"
                f" plan exists with {typed_key}.",
            )
    return ()


def solve_measured(
    instance: Instance,
    least_costs: tuple[float, ...] | None,
    *,
    listed: ListedIslands,
    reasons: bool,
) -> Plan:
    """As `solve` as the instance says, with regrets measured from such costs, one for each of its
    scenarios.

    No plan may cost less in any scenario, as a search knows no regret below 0. Without them they
    are the least costs.
    """
    assert least_costs is None or len(least_costs) == len(instance.price_scenarios), (
        "regrets are measured in every scenario"
    )
    backend = backend_of(instance.solver, threading.Event())
    run = Run(
        instance=instance,
        backend=backend,
        on_progress=None,
        listed=listed,
        reasons=reasons,
        least_costs=least_costs,
    )
    with interrupts_heard(backend.cancel):
        return question_plan(run)


QUICK_S = 5.0
"""A question that took no longer is asked again without its margin."""


def value_without_margin(instance: Instance, plan: Plan) -> float | None:
    """What the best plan is worth (USD or W) with nothing kept free; None without a margin, or
    where it takes long.

    None for a regret as well, which is no cost: the best plans that it is measured from keep as
    much free.
    """
    if instance.kept_margin.keeps_nothing or instance.minimizes_regret:
        return None
    if plan.status != "optimal" or plan.timing_s.total > QUICK_S:
        return None
    left_s = float(plan.solver.options["time_limit_s"]) - plan.timing_s.total
    optimum = solve(
        keeping(instance, NO_MARGIN),
        time_limit_s=min(4 * QUICK_S, max(left_s, 1e-9)),
        objective=plan.objective.kind,
    )
    return optimum.objective.value if optimum.status == "optimal" else None


def question_plan(run: Run) -> Plan:
    """The answer to a question, which may ask others on the way, or that the run was stopped before
    there was one.
    """
    try:
        if leaves_tp_open(run.instance):
            return _inside_first(run)
        if run.instance.open_keys:
            return best_choice(run)
        if run.instance.network.discipline.routing == "pinned" and not run.is_routed:
            from coopt.solving.plan_routes import with_routes

            return with_routes(replace(run, is_routed=True), question_plan)
        return method_of(run.instance).plan(run)
    except KeyboardInterrupt:
        run.on_progress = None  # the callback may be what was interrupted
        return unknown(run, "interrupted")
    except StoppedError as stopped:
        return unknown(run, str(stopped))


def method_of(instance: Instance) -> Method:
    """How a question is answered, by what it has; what answers others is not loaded."""
    if instance.objective.minimize != instance.objective.billed:
        from coopt.solving.fronts.designs import TIMED as METHOD
    elif instance.asks("ring"):
        from coopt.solving.sites.answer import RING as METHOD
    elif instance.sharing.mode == "partition" or instance.phase or instance.robust:
        from coopt.solving.fleet.answer import CHOICE as METHOD
    elif instance.asks("direct"):
        from coopt.solving.direct.answer import LINKS as METHOD
    else:
        from coopt.solving.shared import IN_TURN as METHOD
    return METHOD


def _inside_first(run: Run) -> Plan:
    """The answer with TP groups inside HB domains, across where there is none."""

    def answer_to(question: Instance) -> Plan:
        inside = question == within
        if not inside:
            run.tell(
                "tp",
                "no plan keeps TP inside HB domains; trying TP across them",
            )
        return question_plan(replace(run, instance=question, reasons=run.reasons and not inside))

    within = with_tp(run.instance, across=False)
    plan, across = inside_first(
        run.instance, answer_to, lambda candidate: candidate.status != "infeasible"
    )
    return plan.model_copy(update={"instance": identity(run.instance), "tp_across": across})


def asking_witness(instance: Instance, name: str) -> Instance:
    """The same question to the second solver.

    Raises
    ------
    InstanceError
        When no witness has that name, or it is not installed.
    """
    if name not in WITNESSES:
        raise InstanceError(
            f"witness = {name!r}: no such witness, needs {alternatives(map(repr, WITNESSES))}"
        )
    interface, remedy = WITNESSES[name]
    try:
        found_here(Solver(name=interface))
    except InstanceError:
        raise InstanceError(
            f"witness = {name!r}: this solver is not installed here, needs {remedy}"
        ) from None
    return instance.model_copy(
        update={"solver": instance.solver.model_copy(update={"name": interface})}
    )


def with_witness(plan: Plan, name: str, search: Callable[[], Plan]) -> Plan:
    """The plan, with what a second search found."""
    second = search()
    witness = Witness(
        name=name,
        version=second.solver.version,
        status=second.status,
        value=second.objective.value,
        bound=second.objective.bound,
        agrees=agree(plan, second),
    )
    return plan.model_copy(update={"solver": plan.solver.model_copy(update={"witness": witness})})


def agree(plan: Plan, second: Plan) -> bool:
    """Whether neither answer refutes the other, and the second one proves something."""
    if "infeasible" in (plan.status, second.status):
        return plan.status == second.status
    refuted = any(
        claim.value is not None
        and rival.bound is not None
        and claim.value < rival.bound * (1 - SOLVED)
        for claim, rival in ((plan.objective, second.objective), (second.objective, plan.objective))
    )
    return second.objective.bound is not None and not refuted


class AnswerOfChoice(NamedTuple):
    """A choice with its plan, and what an objective of it is times before choices are compared."""

    choice: Chosen
    plan: Plan
    weight: float


def best_choice(run: Run) -> Plan:
    """The best plan of all choices, with a bound below them all."""
    choices = list(choices_of(run.instance))
    answers, stopped = _answered(run, choices)
    values = [
        math.inf if plan.objective.value is None else plan.objective.value for _, plan, _ in answers
    ]
    # an iteration of a larger batch is worth more of the training: seconds are compared by what
    # they come to in all; of equal ones the name of the GPU decides, and not the order of the list
    winner = min(
        range(len(answers)),
        key=lambda k: (values[k] * answers[k].weight, answers[k].choice.gpu or ""),
        default=0,
    )
    choice, best_plan, own_weight = answers[winner] if answers else (Chosen(), None, 1.0)
    # a choice that was not searched may hold any plan, so that nothing is proven of all of them
    lowest = -math.inf
    if len(answers) == len(choices):
        lowest = min(bound_of(plan) * (weight / own_weight) for _, plan, weight in answers)
    if best_plan is None or best_plan.objective.value is None:
        if stopped:
            return unknown(run, stopped, lowest)
        reasons = [
            f"{choice.text}: {sentence}"
            for choice, plan, _ in answers[:TOLD]
            for sentence in plan.explanation
        ]
        remainder = (
            [f"{counted(len(answers) - TOLD, 'more choice')}: also infeasible"]
            if len(answers) > TOLD
            else []
        )
        return infeasible(run, lambda: (*reasons, *remainder))
    claim = claim_of(best_plan.objective.kind, best_plan.objective.value, lowest)
    proven = not stopped and within_gap(run, claim)
    return best_plan.model_copy(
        update={
            "instance": identity(run.instance),
            "chosen": choice,
            "next_best": best_plan.cost
            and _next_best(run.instance, answers, choice, best_plan.cost),
            "objective": claim,
            "status": "optimal" if proven else "feasible",
            "stop_reason": "optimal" if proven else stopped or _unproven(answers),
            "timing_s": best_plan.timing_s.model_copy(update={"total": run.elapsed_s()}),
        }
    )


def _unproven(answers: Sequence[AnswerOfChoice]) -> str:
    """Why the search of some choice ended without a proof."""
    reasons = (plan.stop_reason for _, plan, _ in answers)
    return next((one for one in reasons if one not in ("optimal", "infeasible")), OWN_GAP)


def _next_best(
    instance: Instance, answers: Sequence[AnswerOfChoice], chosen: Chosen, cost: Cost
) -> NextBest | None:
    """Of the plans with another GPU than the chosen one the one that prices turn soonest, where
    money is minimised and one network answers: of several no other choice of products is known.
    """
    if instance.several_networks:
        return None
    nearest: tuple[float, NextBest] | None = None
    for choice, plan, _ in answers:
        claim = plan.objective
        if choice.gpu == chosen.gpu or claim.kind not in ("capex", "tco"):
            continue
        if plan.design is not None and plan.cost is not None and claim.value is not None:
            turn = Turn.of(instance, claim.kind, cost, plan.cost)
            if nearest is None or turn.nearness > nearest[0]:
                found = NextBest(
                    chosen=choice,
                    value=claim.value,
                    design=plan.design,
                    cost=plan.cost,
                    workloads=plan.workloads,
                    **turn.figures,
                )
                nearest = turn.nearness, found
    return nearest[1] if nearest else None


def _answered(run: Run, choices: Sequence[Chosen]) -> tuple[list[AnswerOfChoice], str]:
    """The plans of choices in turn, and why the search ended before all of them had one; nothing
    where they have.
    """
    answers, kind = list[AnswerOfChoice](), run.instance.objective.minimize
    for done, choice in enumerate(choices):
        run.tell(
            "choice",
            f"{done} of {len(choices)} choices searched, now {choice.text}",
            done=(done, len(choices)),
        )
        # why there is no plan is told of the first choices, and only where none has one
        is_told = len(answers) < TOLD and all(
            plan.objective.value is None for _, plan, _ in answers
        )
        question = at_choice(run.instance, choice)
        plan = question_plan(replace(run, instance=question, reasons=run.reasons and is_told))
        answers.append(AnswerOfChoice(choice, plan, seconds_weight(question, kind)))
        if plan.stop_reason in ("time limit", "interrupted"):
            return answers, plan.stop_reason
    return answers, ""
