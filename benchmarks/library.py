"""Best known values and bounds of shipped questions, and what proves them: `benchmarks/library.py
[NAME ...]`.

Each question is solved, its plan verified, its bound certified without the solver, with a proof
where it is one of islands or direct links. Plan, proof and mixed-integer program go to
benchmarks/library/, where they are small, and the row to benchmarks/library.csv in place of an
earlier one of the question. `benchmarks/library.py --check` certifies what is on file, without a
solver.
"""

from __future__ import annotations

import csv
import math
import sys
import time
from pathlib import Path

from rows import commit, csv_text

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.plan.schema import Proof
from coopt.plan.store import plan_json, proof_json, read_plan, read_proof
from coopt.solving.driver import identity
from coopt.solving.export_files import model_mps

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "benchmarks" / "library.csv"
KEPT = ROOT / "benchmarks" / "library"
NAMES = sorted(path.stem for path in (ROOT / "instances").glob("*.toml"))
"""The shipped questions: all of them take about a quarter of an hour."""

LARGEST = 200_000
"""Bytes of the largest file that is kept."""


def row_of(name: str) -> dict[str, object]:
    """What is known of a question, with seconds of one core; its plan, proof and program are
    kept.
    """
    instance = coopt.load(ROOT / "instances" / f"{name}.toml")
    began = time.process_time()
    plan = coopt.solve(instance)
    solved = time.process_time()
    proof = _proof(instance, plan)
    proven = time.process_time()
    found = coopt.certify(instance, plan, proof)
    certified = time.process_time()
    text = "" if proof is None else proof_json(proof)
    _keep(f"{name}.plan.json", plan_json(plan))
    _keep(f"{name}.proof.json", text)
    _keep(f"{name}.mps", _program(instance, plan))
    return {
        "instance": name,
        "status": plan.status,
        "objective": plan.objective.kind,
        "value": "" if plan.objective.value is None else repr(plan.objective.value),
        "bound": "" if plan.objective.bound is None else repr(plan.objective.bound),
        "certified": "" if found.bound_proven is None else repr(found.bound_proven),
        "by": _by(found),
        "share": _share(found),
        "proof_bytes": len(text) or "",
        "verified": coopt.verify(instance, plan).accepted,
        "solve_s": f"{solved - began:.1f}",
        "prove_s": f"{proven - solved:.1f}",
        "certify_s": f"{certified - proven:.1f}",
        "commit": commit(),
    }


def _keep(name: str, text: str) -> None:
    """Write a small file; an earlier one goes where there is none."""
    KEPT.mkdir(exist_ok=True)
    if 0 < len(text) < LARGEST:
        (KEPT / name).write_text(text, "utf-8")
    else:
        (KEPT / name).unlink(missing_ok=True)


def _program(instance: Instance, plan: coopt.Plan) -> str:
    try:
        return model_mps(instance, plan)
    except InstanceError as error:  # nothing is feasible, or there are several programs
        print(f"no program: {error}", file=sys.stderr)
        return ""


def kept(name: str) -> tuple[Instance, coopt.Plan, Proof | None]:
    """A shipped question with its plan and proof on file.

    Both are taken as answers to the question as it is now: keys that are added to instances change
    its hash, which what is proven does not depend on.
    """
    instance = coopt.load(ROOT / "instances" / f"{name}.toml")
    now, file = {"instance": identity(instance)}, KEPT / f"{name}.proof.json"
    proof = read_proof(file).model_copy(update=now) if file.exists() else None
    return instance, read_plan(KEPT / f"{name}.plan.json").model_copy(update=now), proof


def check() -> int:
    """Certify the plans on file again; how many are not proven as the table says."""
    wrong = 0
    for row in rows_on_file():
        if (KEPT / f"{row['instance']}.plan.json").exists() and int(
            row["proof_bytes"] or 0
        ) < LARGEST:
            found = coopt.certify(*kept(row["instance"]))
            right = (
                found.ok
                and ("" if found.bound_proven is None else repr(found.bound_proven))
                == row["certified"]
            )
            wrong += not right
            print(f"{row['instance']}: {'proven' if right else 'not proven, to be measured again'}")
    return wrong


def _proof(instance: Instance, plan: coopt.Plan) -> Proof | None:
    return (
        coopt.prove(instance, plan)
        if instance.sharing.mode == "partition" or any(part.links for part in plan.parts)
        else None
    )


def _by(found: coopt.Certificate) -> str:
    """What proves the bound that is certified; the solver alone where none is."""
    if not found.ok and not found.bound_proven:
        return "the solver"
    cases = found.reasons.get("cases")
    by = "every design priced" if cases is None else f"a proof of {cases} cases"
    by = "a proof of lengths" if "ranges of communication speeds" in found.reasons else by
    return "every ring, rate and division" if "rings" in found.reasons else by


def _share(found: coopt.Certificate) -> str:
    """Which share of the claimed bound is proven, in percent, rounded down."""
    if found.ok:
        return "100"
    proven, claimed = found.bound_proven or 0.0, found.bound_claimed or math.inf
    return f"{math.floor(1e5 * max(proven, 0.0) / claimed) / 1e3:g}"


def on_page(row: dict[str, str]) -> str:
    """A row as benchmarks/library.md shows it."""
    value, bound = (
        f"{float(text):,.2f}" if text else "none"
        for text in (row["value"], row["certified"] or row["bound"])
    )
    known = f"{row['instance']} | {row['status']} | {row['objective']} | {value} | {bound}"
    return f"| {known} | {row['by']} | {row['share']} |"


def rows_on_file() -> list[dict[str, str]]:
    """The rows of the table, none before there is one."""
    return list(csv.DictReader(TABLE.read_text("utf-8").splitlines())) if TABLE.exists() else []


def main() -> None:
    """Measure questions again, rewrite the table, and print it as the page shows it; or check what
    is on file.
    """
    names = sys.argv[1:]
    if names == ["--check"]:
        sys.exit(check())
    for name in names or NAMES:
        row = row_of(name)
        others: list[dict[str, object]] = [
            {**one} for one in rows_on_file() if one["instance"] != name
        ]
        rows = sorted([*others, row], key=lambda one: str(one["instance"]))
        TABLE.write_text(csv_text(rows), "utf-8")
    print("\n".join(map(on_page, rows_on_file())))


if __name__ == "__main__":
    main()
