"""Best known values and bounds of shipped questions, and what proves them: `benchmarks/library.py OUT [NAME ...]`.

Each question is solved, its plan verified, its bound certified without the solver, with a proof where it is one of
islands. Plan and proof go to OUT, the row to benchmarks/library.csv in place of an earlier one of the question.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path

from rows import commit, csv_text

import coopt
from coopt.instance.schema import Instance
from coopt.plan.proof import Proof
from coopt.plan.store import plan_json, proof_json

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "benchmarks" / "library.csv"
NAMES = (
    *("tiny-64", "rail-only-gpt-1t", "llama3-405b-16k", "megatron-530b", "infeasible-deadline", "phased-128"),
    *("fleet-3-phases-2-sites", "fleet-core-growth", "nextgen-100b"),
    *("fleet-131k-w8", "fleet-131k-w8-core", "fleet-131k-w16", "fleet-131k-w64"),
)
"""Questions that are solved and certified in minutes."""

GAPS = {"fleet-131k-w64": 1e-4}
"""By which share proofs of a few cases may be below the bound, where a whole one takes hours."""


def row_of(name: str, out: Path) -> dict[str, object]:
    """What is known of a question, with seconds of one core; its plan and proof are written to a directory."""
    instance = coopt.load(ROOT / "instances" / f"{name}.toml")
    began = time.process_time()
    plan = coopt.solve(instance)
    solved = time.process_time()
    proof = _proof(instance, plan)
    proven = time.process_time()
    found = coopt.certify(instance, plan, proof)
    certified = time.process_time()
    (out / f"{name}.plan.json").write_text(plan_json(plan), "utf-8")
    if proof is not None:
        (out / f"{name}.proof.json").write_text(proof_json(proof), "utf-8")
    return {
        "instance": name,
        "status": plan.status,
        "objective": plan.objective.kind,
        "value": "" if plan.objective.value is None else repr(plan.objective.value),
        "bound": "" if plan.objective.bound is None else repr(plan.objective.bound),
        "certified": "" if found.bound_proven is None else repr(found.bound_proven),
        "by": _by(found),
        "verified": coopt.verify(instance, plan).accepted,
        "solve_s": f"{solved - began:.1f}",
        "prove_s": f"{proven - solved:.1f}",
        "certify_s": f"{certified - proven:.1f}",
        "commit": commit(),
    }


def _proof(instance: Instance, plan: coopt.Plan) -> Proof | None:
    return (
        coopt.prove(instance, plan, gap=GAPS.get(instance.name, 0.0))
        if instance.problem in ("partition", "fleet")
        else None
    )


def _by(found: coopt.Certificate) -> str:
    """What proves the bound that is certified; the solver alone where none is."""
    if found.bound_proven is None and not found.ok:
        return "the solver"
    cases, claimed = found.reasons.get("cases"), found.bound_claimed
    by = "every design priced" if cases is None else f"a proof of {cases} cases"
    by = "every ring, rate and division" if "rings" in found.reasons else by
    if found.ok or claimed is None or found.bound_proven is None:
        return by
    return f"{by}, {1 - found.bound_proven / claimed:.1g} below the solver's"


def on_page(row: dict[str, str]) -> str:
    """A row as docs/library.md shows it."""
    value, bound = (
        f"{float(text):,.2f}" if text else "none" for text in (row["value"], row["certified"] or row["bound"])
    )
    seconds = f"{row['solve_s']} | {row['prove_s']} | {row['certify_s']}"
    return f"| {row['instance']} | {row['status']} | {row['objective']} | {value} | {bound} | {row['by']} | {seconds} |"


def rows_on_file() -> list[dict[str, str]]:
    """The rows of the table, none before there is one."""
    return list(csv.DictReader(TABLE.read_text("utf-8").splitlines())) if TABLE.exists() else []


def main() -> None:
    """Measure questions again, rewrite the table, and print it as the page shows it."""
    out, *names = sys.argv[1:]
    Path(out).mkdir(parents=True, exist_ok=True)
    for name in names or NAMES:
        others: list[dict[str, object]] = [{**one} for one in rows_on_file() if one["instance"] != name]
        rows = sorted([*others, row_of(name, Path(out))], key=lambda one: str(one["instance"]))
        TABLE.write_text(csv_text(rows), "utf-8")
    print("\n".join(map(on_page, rows_on_file())))


if __name__ == "__main__":
    main()
