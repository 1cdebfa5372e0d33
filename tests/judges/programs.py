"""Solvers that read MPS and LP files: the optimum is that of the plan, whoever reads."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import highspy
import numpy as np

from coopt.solving.export_files import formulations_of, model_lp, model_mps, programs_of
from coopt.solving.highs import QuietHighs
from tests.judges.judge import Bench, Judge, agree
from tests.judges.plans import Case, cases

SAME = 1e-9
OWN_FIGURE = 1e-6
PLANS = 53
PROGRAMS = 60  # of these plans at least
MOST = 8  # programs of a plan
NO_LIMIT = 10**9
WRITERS = {"mps": model_mps, "lp": model_lp}


@dataclass(frozen=True, kw_only=True, eq=False)
class Written:
    """A program in a file: its optimum, its size, and whether all programs of its plan are written."""

    case: Case
    path: Path
    optimum: float
    size: int
    whole: bool


def loaded(path: Path) -> highspy.Highs:
    """An MPS file in coopt's own solver, with a gap of 0 and integers that are whole."""
    highs = QuietHighs()
    for option, value in (("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0), ("mip_feasibility_tolerance", 1e-9)):
        highs.setOptionValue(option, value)
    highs.readModel(str(path))
    return highs


def optimum_of(highs: highspy.Highs) -> float:
    """Least objective; infinite where nothing is feasible."""
    highs.run()
    solved = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value) if solved else math.inf


def worth(path: Path, values: dict[str, float]) -> float:
    """Least objective with the integers of a solution, rounded."""
    highs = loaded(path)
    for i in np.flatnonzero([kind == highspy.HighsVarType.kInteger for kind in highs.getLp().integrality_]):
        whole = float(round(values.get(highs.getColName(int(i))[1], 0.0)))  # some leave out what is 0
        highs.changeColBounds(int(i), whole, whole)
    return optimum_of(highs)


def _programs(case: Case) -> Iterator[tuple[bool, dict[str, str]]]:
    """Whether these are all programs of a plan, of which the answer is the best, and each in both formats.

    One network with failures has none: its days are counted before the search.
    """
    if case.instance.availability is not None and not case.instance.beyond_one_network:
        return
    forms = formulations_of(case.instance)
    count = len(list(programs_of(case.instance)(forms[0]))) if case.instance.beyond_one_network else 1
    for number in range(1, count + 1, -(-count // MOST)):
        place = number if count > 1 else None
        yield count <= MOST, {ending: write(case.instance, case.plan, place) for ending, write in WRITERS.items()}


@cache
def written() -> tuple[Written, ...]:
    """The programs of plans, in both formats, but for those that nothing meets."""
    folder, found = Path(mkdtemp(prefix="coopt-judges-")), []
    for case in cases(least=PLANS):
        for number, (whole, texts) in enumerate(_programs(case)):
            paths = {ending: folder / f"{case.name}-{number}.{ending}" for ending in texts}
            for ending, path in paths.items():
                path.write_text(texts[ending], "utf-8")
            highs = loaded(paths["mps"])
            size, optimum = max(highs.getNumCol(), highs.getNumRow()), optimum_of(highs)
            if math.isfinite(optimum):
                about = {"case": case, "optimum": optimum, "size": size, "whole": whole}
                found += [Written(path=path, **about) for path in paths.values()]
    assert len(found) >= PROGRAMS * len(WRITERS), f"{len(found)} files are too few"
    return tuple(found)


def _faults(taken: list[Written], answers: list[dict[str, Any]]) -> Iterator[str]:
    """What is wrong with the answers of a solver."""
    best: defaultdict[tuple[str, str], float] = defaultdict(lambda: math.inf)
    for one, said in zip(taken, answers, strict=True):
        name = one.path.name
        if "complaint" in said:
            yield f"{name}: {said['complaint']}"
            continue
        again = worth(one.path.with_suffix(".mps"), said["values"])
        if not math.isclose(again, one.optimum, rel_tol=SAME, abs_tol=SAME):
            yield f"{name}: its integers are worth {again!r}, the optimum is {one.optimum!r}"
        if not math.isclose(said["objective"], one.optimum, rel_tol=OWN_FIGURE, abs_tol=OWN_FIGURE):
            yield f"{name}: it says {said['objective']!r}, the optimum is {one.optimum!r}"
        if one.whole:
            best[one.case.name, one.path.suffix] = min(best[one.case.name, one.path.suffix], again)
    values = {case.name: case.plan.objective.value for case in cases(least=PLANS)}
    for (name, suffix), value in best.items():
        complete = all(one in taken for one in written() if (one.case.name, one.path.suffix) == (name, suffix))
        if complete and not math.isclose(value, values[name] or 0.0, rel_tol=SAME, abs_tol=SAME):
            yield f"{name}{suffix}: {value!r} for a plan of {values[name]!r}"


def _read(bench: Bench, solver: str, endings: tuple[str, ...], limit: int) -> str:
    """Whether a solver finds every optimum, within the columns and rows that its free licence takes."""
    taken = [one for one in written() if one.size <= limit and one.path.suffix in endings]
    answers = bench.answers("programs", solver, question=[str(one.path) for one in taken])
    left_out = sum(one.size > limit for one in written())
    beyond = f"; {left_out} are larger than its free licence takes" if left_out else ""
    return agree(list(_faults(taken, answers)), len(taken), "programs") + beyond


def _solver(
    program: str,
    solver: str,
    package: str,
    *,
    endings: tuple[str, ...] = (".mps", ".lp"),
    limit: int = NO_LIMIT,
    may_be_skipped: bool = True,
) -> Judge:
    return Judge(
        program=program,
        judged=" and ".join(ending[1:].upper() for ending in endings),
        packages=(package,),
        read=partial(_read, solver=solver, endings=endings, limit=limit),
        may_be_skipped=may_be_skipped,
    )


JUDGES = (
    _solver("HiGHS", "highs", "highspy==1.15.1", may_be_skipped=False),
    _solver("SCIP", "scip", "pyscipopt==6.3.0", may_be_skipped=False),
    _solver("CBC (in PuLP)", "cbc", "pulp==3.3.0", may_be_skipped=False),
    _solver("GLPK", "glpk", "swiglpk==5.0.13", may_be_skipped=False),
    # What it reads as LP is the format of lp_solve.
    _solver("SCIP (in OR-tools)", "ortools", "ortools==9.15.6755", endings=(".mps",)),
    _solver("Gurobi", "gurobi", "gurobipy==13.0.3", limit=2000),
    _solver("COPT", "copt", "coptpy==8.0.7", limit=2000),
)
