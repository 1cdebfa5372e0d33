"""A row says what is built, what it costs and how it runs, whatever kind of question a case asks."""

import pytest

from coopt._version import __version__
from coopt.plan.contents import flat_plan
from coopt.suite.folder import Outcome, row_of
from coopt.suite.form import Case
from coopt.suite.table import COLUMNS, Row
from coopt.suite.work import outcome_json
from tests.changes import with_part
from tests.kinds import QUESTIONS, solved
from tests.solving import test_partitions as cores


def row(kind: str) -> tuple[Row, Outcome]:
    instance, _ = solved(kind)
    question = instance.model_dump_json(by_alias=True)
    outcome = Outcome.model_validate_json(outcome_json(__version__, kind, "solve", question))
    case = Case(case_id=kind, grid="g", instance=kind, action="solve", axes={}, overrides={}, question=question)
    return row_of("suite", case, outcome), outcome


@pytest.mark.parametrize("kind", QUESTIONS)
def test_cost_and_workloads_are_those_of_the_plan(kind: str) -> None:
    found, outcome = row(kind)
    plan = outcome.plan
    assert (found["capex_usd"], found["power_w"], found["tco_usd"]) == (
        plan.cost.capex_usd,
        plan.cost.power_w,
        plan.cost.tco_usd,
    )
    assert found["value"] == (plan.objective.value if kind == "regret" else plan.cost.of(plan.objective.kind))
    runs = plan.parts[-1].workloads if kind == "phased" else plan.runs
    if kind == "fleet":  # each as it runs in the end
        runs = tuple({run.name: run for run in runs}.values())
    assert [one["iteration_time_s"] for one in found["workloads"]] == [run.iteration_time_s for run in runs]
    assert found["iteration_time_s"] == runs[0].iteration_time_s
    assert found.keys() - COLUMNS.keys() == {"workloads", "overrides"}
    assert (found["saving"] is None) == (kind in ("phased", "partition", "fleet", "sites", "direct"))
    if kind == "worst-case":
        assert found["saving"] > 0  # the plan and what it is compared with are at the same prices


@pytest.mark.parametrize(
    ("kind", "built"),
    [
        ("shared", {"gpus": 64, "hb_name": "hgx-h100-8", "hb_count": 8, "fabric": "rail-only", "switches": 8}),
        ("phased", {"gpus": 64, "hb_count": 8, "fabric": "clos"}),
        ("partition", {"gpus": 32, "hb_name": "hgx-h100-8", "hb_count": 4, "switches": 4, "transceivers": 64}),
        ("fleet", {"gpus": 48, "hb_count": 6, "tiers": 1, "switch": None, "switches": 7, "transceivers": 108}),
        ("sites", {"gpus": 64, "hb_count": 8, "switches": 5, "transceivers": 128, "tiers": 1, "racks": 3}),
        ("direct", {"gpus": 16, "hb_name": "four", "fabric": "direct", "switches": None, "transceivers": 14}),
        ("switched", {"gpus": 16, "hb_name": "four", "fabric": "rail-only", "switches": 2, "transceivers": 32}),
    ],
)
def test_what_is_built_has_its_columns(kind: str, built: Row) -> None:
    found, _ = row(kind)
    assert {name: found[name] for name in built} == built


def test_what_differs_between_sites_is_left_out() -> None:
    found, outcome = row("sites")
    _, west = outcome.plan.parts
    assert [one["workload"] for one in found["workloads"]] == ["w at east", "w at west"]
    larger = west.design.model_copy(update={"hb_domain": west.design.hb_domain.model_copy(update={"name": "other"})})
    plan = with_part(outcome.plan, 1, design=larger.model_copy(update={"racks": None}))
    case = Case(case_id="", grid="", instance="", action="solve", axes={}, overrides={}, question="")
    other = row_of("suite", case, outcome.model_copy(update={"plan": plan}))
    assert (other["hb_name"], other["hb_size"], other["racks"]) == (None, 8, None)


def test_the_core_that_islands_share_counts_as_switches_and_transceivers() -> None:
    plan, core, _ = cores.solved(cores.small_domains({"gbit_s_per_gpu": 50.0}))
    fabrics = [part.design.fabric for part in plan.parts]
    found = flat_plan(plan)
    assert found["switches"] == sum(fabric.switch_count for fabric in fabrics) + core.switches
    assert found["transceivers"] == sum(fabric.transceiver_count for fabric in fabrics) + 2 * core.ports
