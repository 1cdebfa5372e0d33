"""The folder of a run: a single writer, and one file per answer, which is validated when read.

The outcome of a case is one row of a table.

DIR/suite.json        the suite and the published figures it names
DIR/cases/ID.json     the outcome of a case, with its plan
DIR/journal.jsonl     a line for every case that was run
DIR/results.parquet   one row per case
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from coopt._version import __version__
from coopt.instance.texts import InstanceError, read_text, unwritten, write_text
from coopt.plan.contents import flat_design, flat_plan
from coopt.plan.parts import Cost, Record, WorkloadPlan
from coopt.plan.schema import Plan
from coopt.plan.store import Evaluation
from coopt.suite.form import Action, Case, Study
from coopt.suite.table import COLUMNS, Row, check_parquet, read_rows

LOCK, SUITE, RESULTS, JOURNAL = ".lock", "suite.json", "results.parquet", "journal.jsonl"

Status = Literal["optimal", "feasible", "infeasible", "unknown", "fastest", "refused", "failed"]


@contextmanager
def run_folder(place: str | Path, study: Study, *, resume: bool) -> Iterator[RunFolder]:
    """Open the folder of a run for this process alone.

    Raises
    ------
    InstanceError
        If another run uses the folder, if it is not empty without `resume`, or if it belongs to
        another suite.
    """
    folder = RunFolder(Path(place))
    folder.check(study, resume=resume)
    try:
        folder.cases.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder.root / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise unwritten(place, error, "a writable folder") from None
    try:
        _lock(lock, place)
        folder.sweep()
        write_text(folder.root / SUITE, study.model_dump_json(by_alias=True, indent=2) + "\n")
        yield folder
    finally:
        os.close(lock)


def _lock(handle: int, place: str | Path) -> None:
    """Lock the folder until this process ends, however it ends."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InstanceError(
            f"{place}: another run is using this folder, needs that run to end, or another folder"
        ) from None


def read_kept_study(place: str | Path) -> Study:
    """Return the suite whose results a folder holds."""
    file = Path(place) / SUITE
    text = read_text(file, "the suite of a run", "a folder that `coopt suite run` wrote")
    try:
        return Study.model_validate_json(text)
    except ValidationError:
        raise InstanceError(
            f"{file}: not what this version of coopt writes, needs another folder"
        ) from None


def read_results(place: str | Path) -> tuple[Study, list[Row]]:
    """Return the suite of a folder and the rows of its (possibly incomplete) results."""
    check_parquet()
    return read_kept_study(place), read_rows(Path(place) / RESULTS)


class RunFolder:
    """Paths and files of a run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cases = root / "cases"
        self.results = root / RESULTS

    def check(self, study: Study, *, resume: bool) -> None:
        """Refuse a folder with other content."""
        if self.root.exists() and not self.root.is_dir():
            raise InstanceError(f"{self.root}: is a file, needs the name of a folder")
        if not self.root.is_dir() or not self._holds_something():
            return
        if not resume:
            raise InstanceError(
                f"{self.root}: is not empty, needs --resume if this suite wrote it, or another"
                " folder"
            )
        name = read_kept_study(self.root).suite.name
        if name != study.suite.name:
            raise InstanceError(
                f"{self.root}: holds suite {name!r}, needs the folder of suite {study.suite.name!r}"
            )

    def _holds_something(self) -> bool:
        """Whether there is more than a run leaves that ended before its first answer."""
        names = {path.name for path in self.root.iterdir() if not path.name.startswith(".")}
        answered = self.cases.is_dir() and any(self.cases.glob("[!.]*"))
        more = answered or bool(names - {SUITE, self.cases.name})
        if SUITE in names and not more:
            read_kept_study(self.root)
        return more

    def sweep(self) -> None:
        """Remove incomplete files of a run that was killed while writing."""
        for place in (self.root, self.cases):
            for leftover in place.glob(".*.tmp"):
                leftover.unlink()

    def outcome_of(self, case_id: str) -> Outcome | None:
        """Return the stored outcome of a case; None if missing or invalid."""
        try:
            outcome = Outcome.model_validate_json((self.cases / f"{case_id}.json").read_bytes())
        except (OSError, ValidationError):
            return None
        return outcome if outcome.case_id == case_id else None

    def has(self, case_id: str) -> bool:
        """Whether there is a file for that case, valid or not."""
        return (self.cases / f"{case_id}.json").exists()

    def keep(self, outcome: Outcome) -> None:
        """Write the outcome of a case, then record it in the journal."""
        write_text(
            self.cases / f"{outcome.case_id}.json",
            outcome.model_dump_json(by_alias=True, indent=1) + "\n",
        )
        line = {"case_id": outcome.case_id, "status": outcome.status, "cpu_s": outcome.cpu_s}
        try:
            with open(self.root / JOURNAL, "a", encoding="utf-8") as journal:
                journal.write(json.dumps(line) + "\n")
        except OSError as error:
            raise unwritten(self.root / JOURNAL, error, "a writable file") from None


class AnyToAny(Record):
    """Switches and optics of the cheapest full-bandwidth any-to-any network for the same
    domains.
    """

    network_usd: float
    network_w: float


class Outcome(Record):
    """Outcome of a case: a plan, an evaluation of the fastest design, or sentences that explain why
    there is none.

    `cpu_s` and `wall_s` are times of the process that ran the case.
    """

    schema_: Annotated[Literal["coopt-case/1"], Field(alias="schema")] = "coopt-case/1"
    case_id: str
    action: Action
    status: Status
    why: tuple[str, ...] = ()
    plan: Plan | None = None
    fastest: Evaluation | None = None
    any_to_any: AnyToAny | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    coopt: str = __version__

    @property
    def answered(self) -> bool:
        """Whether this is a final answer; a failed case may succeed in another run."""
        return self.status != "failed"


def network_of(cost: Cost) -> dict[str, float]:
    """Return purchase cost (USD) and power (W) of switches and optics."""
    items = [item for item in cost.items if item.kind in ("switch", "optics", "fibre")]
    return {
        "network_usd": sum(item.usd for item in items),
        "network_w": sum(item.w for item in items),
    }


def row_of(suite: str, case: Case, outcome: Outcome) -> Row:
    """Return the row of a case: its axes, then `COLUMNS`, with None for unknown values, over all
    workloads.
    """
    answer = outcome.plan or outcome.fastest
    row: Row = dict(case.axes) | dict.fromkeys(COLUMNS)
    row |= {
        "suite": suite,
        "grid": case.grid,
        "case_id": case.case_id,
        "instance": case.instance,
        "action": case.action,
        "status": outcome.status,
        "why": "\n".join(outcome.why) or None,
        "cpu_s": outcome.cpu_s,
        "wall_s": outcome.wall_s,
        "coopt": outcome.coopt,
        "overrides": json.dumps(dict(case.overrides), default=str),
        "workloads": [],
    }
    if outcome.plan is not None:
        claim, solver = outcome.plan.objective, outcome.plan.solver
        row |= {
            "stop_reason": outcome.plan.stop_reason,
            "objective": claim.kind,
            "value": claim.value,
            "bound": claim.bound,
            "gap": claim.gap,
            "families": solver.families,
            "mappings": solver.columns_enumerated,
            "nodes": solver.nodes,
        }
    if answer is not None and answer.cost is not None:
        row |= flat_plan(answer) if isinstance(answer, Plan) else flat_design(answer.design)
        row |= _cost_row(answer.cost, outcome)
        row["workloads"] = [_workload_row(workload) for workload in _runs(answer)]
        row |= row["workloads"][0]
    return row


def _runs(answer: Plan | Evaluation) -> Iterator[WorkloadPlan]:
    """Yield the final results of every workload; one that sites train together has results at each
    of them.
    """
    if isinstance(answer, Plan) and answer.couplings.ring is not None:
        for part in answer.parts:
            for run in part.workloads:
                yield run.model_copy(update={"name": f"{run.name} at {part.site}"})
    else:
        runs = answer.runs if isinstance(answer, Plan) else answer.workloads
        yield from {run.name: run for run in runs}.values()


def _cost_row(cost: Cost, outcome: Outcome) -> Row:
    """Return the cost of a plan, and the savings of its switches and optics over any-to-any."""
    network, baseline = network_of(cost), outcome.any_to_any
    row: Row = {
        "capex_usd": cost.capex_usd,
        "power_w": cost.power_w,
        "tco_usd": cost.tco_usd,
        **network,
    }
    if baseline is None:
        return row

    def saved(key: str, reference: float) -> float | None:
        return 1.0 - network[key] / reference if reference else None

    return row | {
        "any_to_any_usd": baseline.network_usd,
        "any_to_any_w": baseline.network_w,
        "saving": saved("network_usd", baseline.network_usd),
        "power_saving": saved("network_w", baseline.network_w),
    }


def _workload_row(workload: WorkloadPlan) -> Row:
    return {
        "workload": workload.name,
        "iteration_time_s": workload.iteration_time_s,
        "bound_s": workload.bound_s,
        **workload.mapping.model_dump(exclude={"sequence_parallel"}),
        "memory_gib": workload.memory_gib,
        "mfu": workload.mfu,
        "hfu": workload.hfu,
        "mfu_causal": workload.mfu_causal,
        "tokens_per_s": workload.tokens_per_s,
    }
