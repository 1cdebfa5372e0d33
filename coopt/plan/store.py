"""Plans as files, checks that a plan answers a question, and evaluations of a given design and
mapping without a claim of optimality.

Each bound and limit of an instance is compared with what a design does.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from coopt.instance.catalog import sentences
from coopt.instance.couplings import LIMITED
from coopt.instance.question import CostKind, ObjectiveKind
from coopt.instance.schema import Chosen, Instance, at_choice, choices_of, require_decided
from coopt.instance.texts import InstanceError, both, check_digits, file_of, read_text
from coopt.instance.variants import phases_of, with_tp
from coopt.instance.workload import Workload
from coopt.plan.contents import promised_days_in_turn
from coopt.plan.couplings import Part, SitePower
from coopt.plan.overrides import may_differ_as_set
from coopt.plan.parts import Cost, Design, DirectLinks, Record, WorkloadPlan
from coopt.plan.schema import InstanceId, Plan, Proof


def check_same_question(instance: Instance, plan: Plan) -> None:
    """Refuse the plan of another instance.

    Raises
    ------
    InstanceError
        If the plan was made for another question, or for one that leaves GPUs, batches or knobs
        open, or it has other phases.
    """
    check_same_sha(instance, plan)
    require_decided(instance, "a check of its plan")
    if plan.parts and plan.couplings.years != instance.years:
        raise InstanceError(
            f"{instance.place}: couplings.growth of the plan lacks a phase of the instance or has"
            " another, needs a plan that `coopt verify` accepts"
        )


def check_same_sha(instance: Instance, plan: Plan) -> None:
    """Refuse the plan of another instance, whatever it leaves open.

    Raises
    ------
    InstanceError
        If the plan was made for another question.
    """
    if plan.instance.sha256 != instance.sha256:
        as_set = (
            "; it was solved with --set values, which have to be the same here:"
            f" {plan.overrides.replaced}"
        )
        raise InstanceError(
            f"{instance.place}: the plan is of another instance, needs one of this"
            f" instance{as_set if may_differ_as_set(instance, plan) else ''}"
        )


def decided(instance: Instance, plan: Plan, *, same: bool = True) -> tuple[Instance, Plan]:
    """Return the question that a plan chose among those that its instance leaves open, with the
    plan as its answer.

    Parameters
    ----------
    same
        Whether the plan must be the answer to this very question.

    Raises
    ------
    InstanceError
        If the plan is of another question, or its choice is not one of the instance.
    """
    if not instance.open_keys:
        return instance, plan
    if same:
        check_same_sha(instance, plan)
    lists = f"lists in {both(instance.open_keys)}"
    if plan.cost is None:
        raise InstanceError(
            f"{instance.place}: {lists}: no plan was found that chose from them, needs an answer"
            " with a plan"
        )
    if plan.chosen not in choices_of(instance):
        chose = plan.chosen.text
        raise InstanceError(
            f"{instance.place}: {lists}: the plan chose {repr(chose) if chose else 'nothing'},"
            " which is not among them, needs a plan of this instance"
        )
    question = at_choice(instance, plan.chosen)
    # The next best choice may be one that this question no longer has.
    return question, _answering(question, plan).model_copy(update={"next_best": None})


def claims_of(instance: Instance, plan: Plan) -> Iterator[tuple[Instance, Plan]]:
    """Yield each question that an instance leaves open, with the plan as an answer, since its bound
    applies to all of them.

    Raises
    ------
    InstanceError
        If the plan is of another question.
    """
    check_same_sha(instance, plan)
    for choice in choices_of(instance):
        question = at_choice(instance, choice)
        yield question, _answering(question, plan)


def placed_as(instance: Instance, plan: Plan) -> tuple[Instance, Plan]:
    """Return the question with the plan's decision on TP groups across HB domains, and the plan as
    its answer.
    """
    question = with_tp(instance, across=plan.tp_across)
    if question is instance or plan.instance.sha256 != instance.sha256:
        return question, plan  # nothing to say, or the plan of another question, which it stays
    return question, _answering(question, plan, plan.chosen)


def _answering(question: Instance, plan: Plan, choice: Chosen | None = None) -> Plan:
    identity = InstanceId(name=question.name, sha256=question.sha256)
    return plan.model_copy(update={"instance": identity, "chosen": choice or Chosen()})


def with_replaced(plan: Plan, values: Mapping[str, Any]) -> Plan:
    """Return the plan with a record of the values that replaced those of the instance's file."""
    return plan.model_copy(
        update={"overrides": plan.overrides.model_copy(update={"values": dict(values)})}
    )


def plan_json(plan: Plan) -> str:
    """Return the plan as a JSON document."""
    return plan.model_dump_json(by_alias=True, indent=2)


def proof_json(proof: Proof) -> str:
    """Return the proof as a JSON document, without default values."""
    return proof.model_dump_json(by_alias=True, exclude_defaults=True)


def plan_of(plan: Plan | str | Path) -> Plan:
    """Return a plan, reading it if a file is given.

    Raises
    ------
    InstanceError
        If it is neither.
    """
    if isinstance(plan, Plan):
        return plan
    need = "a plan, such as `coopt.solve` returns, or the file of one"
    return read_plan(file_of("plan", plan, need))


def read_plan(path: str | Path) -> Plan:
    """Read a plan file; InstanceError names every invalid key."""
    return _document(path, Plan, "a plan", "`coopt solve INSTANCE -o {}` writes one")


def holds_better(path: str | Path, answer: Plan) -> bool:
    """Whether a file holds a plan that the answer of an interrupted search must not replace.

    That is any plan if the answer has none, and a plan of the same question that is cheaper or has
    a smaller gap.
    """
    if answer.status in ("optimal", "infeasible") or not Path(path).is_file():
        return False
    try:
        kept = read_plan(path)
    except InstanceError:
        # an unreadable file may be a plan of another version
        return not answer.parts and Path(path).stat().st_size > 0
    if not kept.parts or not answer.parts:
        return bool(kept.parts)
    is_same = (kept.instance.sha256, kept.objective.kind) == (
        answer.instance.sha256,
        answer.objective.kind,
    )
    return is_same and _rank(kept) < _rank(answer)


def _rank(plan: Plan) -> tuple[float, float]:
    """Return the value of a plan and its gap to the bound; smaller is better."""
    value, bound = plan.objective.value, plan.objective.bound
    return math.inf if value is None else value, -math.inf if bound is None else -bound


def read_proof(path: str | Path) -> Proof:
    """Read a proof file; InstanceError names every invalid key."""
    return _document(path, Proof, "a proof", "`coopt prove INSTANCE PLAN.json -o {}` writes one")


Document = TypeVar("Document", Plan, Proof)


def _document(path: str | Path, form: type[Document], document: str, remedy: str) -> Document:
    file = Path(path)
    text = read_text(file, "a JSON text file", f"{document} ({remedy.format(file.name)})")
    try:
        return form.model_validate(json.loads(text))
    except ValidationError as error:
        raise InstanceError(
            f"{file.name}: {sentence}" for sentence in sentences(error, form)
        ) from None
    except RecursionError:
        raise InstanceError(f"{file.name}: nested too deeply, needs {document}") from None
    except ValueError as error:
        check_digits(text, file.name)
        wrong = (
            f"is TOML, the format of instances, needs {document} in JSON"
            if _is_toml(text)
            else f"not JSON ({error}), needs {document}"
        )
        raise InstanceError(f"{file.name}: {wrong}") from None


def _is_toml(text: str) -> bool:
    try:
        return bool(tomllib.loads(text))
    except (ValueError, RecursionError):
        return False


def plan_checks(instance: Instance, plan: Plan) -> Iterator[LimitCheck]:
    """Yield the bounds of a plan as shown in its report, phase by phase; none without a design.

    These are bounds on time and memory of workloads, on GPUs, on the power of sites, and the limits
    given.
    """
    if plan.cost is None:
        return
    questions, caps = phases_of(instance), [*instance.gpu_caps.values()]
    islands = instance.sharing.mode == "partition"
    for t, (year, power_w) in enumerate(plan.couplings.drawn_w(plan.cost).items()):
        parts = [part for part in plan.parts if part.phase == year]
        networks = [network for part in parts if (network := part.design or part.links) is not None]
        checks = [
            check
            for part in parts
            for check in _of_workloads(
                part.workloads, "" if islands else _site_text(part), questions[t].workload
            )
        ]
        if islands:
            gpus = float(sum(network.gpus for network in networks))
            checks += [_check("GPUs", gpus, float(caps[t]), "GPUs")]
        checks += [_of_site(site) for site in plan.couplings.sites if site.phase == year]
        checks += _of_limits(
            questions[t], plan.cost.model_copy(update={"power_w": power_w}), networks
        )
        checks += _of_turns(questions[t], plan.workloads)
        prefix = "" if year is None else f"{year:g} "
        yield from (check.model_copy(update={"name": f"{prefix}{check.name}"}) for check in checks)


def limit_checks(
    instance: Instance, design: Design | DirectLinks, cost: Cost, workloads: Sequence[WorkloadPlan]
) -> Iterator[LimitCheck]:
    """Yield checks of time and memory of every workload, then of the limits given; comparisons are
    exact.
    """
    yield from _of_workloads(workloads)
    yield from _of_limits(instance, cost, [design])
    yield from _of_turns(instance, workloads)


def _site_text(part: Part) -> str:
    """Return the site of a workload that runs at several."""
    return "" if part.site is None else f" at {part.site}"


def _of_workloads(
    workloads: Sequence[WorkloadPlan], place: str = "", asked: Sequence[Workload] = ()
) -> Iterator[LimitCheck]:
    """Yield checks of times and memory; of time in days for workloads that are `asked` in days."""
    days = {workload.name: workload for workload in asked if workload.train_days is not None}
    for run in workloads:
        workload = days.get(run.name)
        if run.bounded and workload is not None and workload.train_days is not None:
            kept = " with margin" if workload.time_margin else ""
            taken = (1.0 - run.slack) * workload.train_days
            yield _check(f"days{kept}, {run.name}{place}", taken, workload.train_days, "days")
        elif run.bounded:
            yield _check(f"time, {run.name}{place}", run.iteration_time_s, run.bound_s, "s")
        yield _check(f"memory, {run.name}{place}", run.memory_gib, run.memory_limit_gib, "GiB")


def _of_site(site: SitePower) -> LimitCheck:
    return _check(
        f"facility power, {site.site}", site.facility_w / 1e6, site.facility_limit_w / 1e6, "MW"
    )


def _of_limits(
    instance: Instance, cost: Cost, designs: Sequence[Design | DirectLinks]
) -> Iterator[LimitCheck]:
    """Yield checks of limits on a bill, which apply to what the objective includes; the text says
    if that is not all.
    """
    missing = {*get_args(CostKind)} - {*instance.objective.include}
    scope = " of what objective.include names" if missing else ""
    scope = " without the GPUs" if missing == {"gpu"} else scope
    rack_counts = [design.racks for design in designs]
    # a limit on racks is refused where a domain does not say how many it fills, so that None meets
    # no limit
    racks = None if None in rack_counts else float(sum(count or 0 for count in rack_counts))
    for key, (amount, cap) in instance.limits.against(
        usd=cost.capex_usd, w=cost.power_w, racks=racks
    ).items():
        name, unit = LIMITED[key]
        yield _check(name if key == "racks" else f"{name}{scope}", amount, cap, unit)


def _of_turns(instance: Instance, runs: Sequence[WorkloadPlan]) -> Iterator[LimitCheck]:
    """Yield the check of the days of all workloads in turn, where they have a limit."""
    if (most := instance.limits.train_days_total) is not None:
        name, unit = LIMITED["train_days_total"]
        yield _check(name, promised_days_in_turn(instance, runs), most, unit)


def _check(name: str, value: float, limit: float, unit: str) -> LimitCheck:
    return LimitCheck(name=name, value=value, limit=limit, unit=unit, ok=value <= limit)


class LimitCheck(Record):
    """A limit of the instance and the value of the design; `value <= limit` if `ok`."""

    name: str
    value: float
    limit: float
    unit: str
    ok: bool

    @property
    def slack(self) -> float | None:
        """Distance of the value to the limit, as a share of the limit; None for a limit of 0."""
        return (self.limit - self.value) / self.limit if self.limit else None


class Evaluation(Record):
    """Answer of `coopt evaluate`."""

    instance: InstanceId
    design: Design
    cost: Cost
    workloads: tuple[WorkloadPlan, ...]
    limits: tuple[LimitCheck, ...]


class RankedMappings(Record):
    """The fastest mappings of a workload on a network, each with its fastest placement.

    `listed` mappings divide evenly, and `fitting` of them fit into memory.
    """

    name: str
    bound_s: float
    listed: int
    fitting: int
    mappings: tuple[WorkloadPlan, ...]


class MappingRanking(Record):
    """Answer of `coopt evaluate --mappings`: the fastest mappings on a design."""

    instance: InstanceId
    design: Design
    workloads: tuple[RankedMappings, ...]


class PlanFigure(Record):
    """A figure derived from the decisions of a plan; `of` names the workload or site, empty for the
    whole plan.
    """

    name: str
    of: str
    value: float
    unit: str


class PlanEvaluation(Record):
    """Recomputed value of the decisions of a plan, in the unit of `kind` (USD or W).

    `objective` is what the instance minimises: equal to `value`, or for a regret objective the
    maximum excess over the best plan of the instance over all prices. In the latter case it is None
    for the plan of another instance, whose best plans are unknown; `value` is then the cost at the
    prices of the instance.
    """

    instance: InstanceId
    kind: ObjectiveKind
    value: float
    objective: float | None
    figures: tuple[PlanFigure, ...]
    limits: tuple[LimitCheck, ...]
