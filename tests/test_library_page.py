"""The page of the library shows its table, and whoever certifies a small question finds the same."""

import csv
import importlib
import sys
from pathlib import Path
from typing import Any

import highspy
import pytest

import coopt
from tests.cli.conftest import LONGER

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "benchmarks" / "library.md").read_text("utf-8")
sys.path.insert(0, str(ROOT / "benchmarks"))
LIBRARY = importlib.import_module("library")
ROWS = list(csv.DictReader((ROOT / "benchmarks" / "library.csv").read_text("utf-8").splitlines()))


def test_every_shipped_question_has_a_row() -> None:
    assert [row["instance"] for row in ROWS] == sorted(path.stem for path in (ROOT / "instances").glob("*.toml"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["instance"])
def test_every_row_stands_on_the_page(row: dict[str, str]) -> None:
    assert LIBRARY.on_page(row) in PAGE.splitlines()
    assert (ROOT / "instances" / f"{row['instance']}.toml").exists()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["instance"])
def test_a_row_is_verified_and_its_bound_is_no_more_than_its_value(row: dict[str, str]) -> None:
    assert row["verified"] == "True"
    if row["value"]:
        assert 0 <= float(row["certified"] or row["bound"]) <= float(row["value"])
    proven = float(row["certified"] or 0) / float(row["bound"] or 1)
    assert row["certified"] == row["bound"] if row["share"] == "100" else 0 <= proven - float(row["share"]) / 100 < 1e-5
    assert bool(row["proof_bytes"]) == row["by"].startswith("a proof")


AGAIN = "what is on file is of another version: python benchmarks/library.py {} writes it again"
QUICK = [
    row for row in ROWS if float(row["certify_s"]) < 4 and (LIBRARY.KEPT / f"{row['instance']}.plan.json").exists()
]
PROGRAMS = [row for row in QUICK if (LIBRARY.KEPT / f"{row['instance']}.mps").exists() and not row["proof_bytes"]]


@pytest.mark.parametrize("file", sorted(LIBRARY.KEPT.glob("*.plan.json")), ids=lambda file: file.name.split(".")[0])
def test_plans_on_file_are_of_the_questions_that_ship(file: Path) -> None:
    name = file.name.removesuffix(".plan.json")
    plan = coopt.Plan.model_validate_json(file.read_text("utf-8"))
    assert plan.instance.sha256 == coopt.load(ROOT / "instances" / f"{name}.toml").sha256, AGAIN.format(name)


ONLY_ON_FILE = [row for row in QUICK if row["instance"] in LONGER]


@pytest.mark.parametrize("row", ONLY_ON_FILE, ids=lambda row: row["instance"])
def test_plans_on_file_are_accepted(row: dict[str, str]) -> None:
    """Those of the others, or of less of the same, are solved and verified by tests/cli/test_cli_verify.py."""
    instance, plan, _ = LIBRARY.kept(row["instance"])
    assert coopt.verify(instance, plan).accepted, AGAIN.format(row["instance"])


@pytest.mark.parametrize(
    "row",
    [row for row in QUICK if row["proof_bytes"] or float(row["certify_s"]) < 1.5],
    ids=lambda row: row["instance"],
)
def test_plans_and_proofs_on_file_prove_what_the_table_says(row: dict[str, str]) -> None:
    instance, plan, proof = LIBRARY.kept(row["instance"])
    found = coopt.certify(instance, plan, proof)
    proven = "" if found.bound_proven is None else repr(found.bound_proven)
    assert (found.ok, proven) == (True, row["certified"]), AGAIN.format(row["instance"])


@pytest.mark.parametrize("row", PROGRAMS, ids=lambda row: row["instance"])
def test_programs_on_file_have_the_optimum_of_the_table(row: dict[str, str]) -> None:
    solver: Any = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)  # of all searches of a process; HiGHS refuses another number than the first
    solver.readModel(str(LIBRARY.KEPT / f"{row['instance']}.mps"))
    solver.run()
    assert solver.getInfo().objective_function_value == pytest.approx(float(row["value"]), rel=1e-9), AGAIN.format(
        row["instance"]
    )


def test_a_proof_on_file_proves_nothing_above_the_best_plan() -> None:
    instance, plan, proof = LIBRARY.kept("direct-32")
    higher = plan.objective.model_copy(update={"bound": plan.objective.value * 1.001})
    found = coopt.certify(instance, plan.model_copy(update={"objective": higher}), proof)
    assert not found.ok
    assert (found.bound_proven or 0.0) <= plan.objective.value
