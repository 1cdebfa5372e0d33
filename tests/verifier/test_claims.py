"""What an answer of every kind may hold, and what it claims where it holds no plan."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from coopt.instance.schema import Instance, load
from coopt.instance.texts import InstanceError
from coopt.plan.schema import InstanceId, Plan
from coopt.plan.store import check_same_sha
from coopt.report.explanation import verdict_headline
from coopt.report.page.contents import Origin, PageCase, page_html
from coopt.serve.contents import verdict_contents
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from coopt.verifier.checks.verdict import SOLVERS_WORD, Verdict
from tests.changes import NOTHING_BUILT, with_part
from tests.conftest import ask, question
from tests.solving.direct.test_direct_links import linked
from tests.verifier.kinds import KINDS, NO_PLAN, SECTIONS, solved, without_plan, written

ORIGIN = Origin(
    command="coopt report", instance_file="i.toml", plan_file="p.json", written=datetime(2026, 1, 1, tzinfo=UTC)
)


def others(kind: str) -> list[str]:
    """Three kinds, so that a plan of direct links meets one of switches; in a campaign all."""
    names = [*KINDS]
    turned = names[names.index(kind) :] + names
    return names if not settings().derandomize else [turned[by] for by in (1, 4, 9)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_without_a_plan_holds_no_part_of_one(kind: str) -> None:
    instance, _ = solved(kind)
    for status in ("unknown", "infeasible"):
        empty, tried = without_plan(kind, status), 0
        for name in SECTIONS:
            for part in (written(other)[name] for other in others(kind)):
                if part and part != NO_PLAN[name]:
                    tried += 1
                    verdict = verify(instance, Plan.model_validate(empty | {name: part}))
                    assert "status" in {check.name for check in verdict.failures}, (status, name)
        assert tried >= len(SECTIONS)


@pytest.mark.parametrize("kind", ["shared", "partition", "phased", "direct", "regret"])
def test_a_word_on_runners_up_needs_them_to_be_searched_for(kind: str) -> None:
    instance, plan = solved(kind)
    for stop in ("all found", "no other design", "time limit"):
        said = plan.model_copy(update={"alternatives": (), "alternatives_stop": stop})
        true = not instance.beyond_one_network and stop == "time limit"
        assert verify(instance, said).accepted == true


def test_a_plan_of_least_cost_has_no_ways_prices_turn_out() -> None:
    instance, _ = solved("robust")
    table = written("robust")
    table["couplings"]["outlooks"]["turns"] = [{"factors": {"nic": 1.0}, "value": 5.0, "best": 3.0}]
    verdict = verify(instance, Plan.model_validate(table))
    assert [check.name for check in verdict.failures] == ["turns"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_without_a_plan_claims_what_is_so(kind: str) -> None:
    """No bound or one that plans keep, and neither one that none keeps nor that nothing is feasible; bounds of small
    questions are confirmed."""
    instance, plan = solved(kind)
    verdict = verify(instance, plan)
    assert (verdict.accepted, verdict.on_trust) == (True, "")
    for status, bound, failures in (
        ("unknown", None, set()),
        ("unknown", plan.objective.value / 2, set()),
        ("unknown", 1e12, {"bound", "rival-bound"}),
        ("infeasible", None, {"infeasible", "rival-none"}),
    ):
        verdict = verify(instance, Plan.model_validate(without_plan(kind, status, bound)))
        assert {check.name for check in verdict.failures} <= failures
        assert verdict.accepted == (not failures)


def test_that_no_direct_links_are_feasible_is_taken_on_trust_and_said_to_be() -> None:
    _, plan = solved("direct")
    short = Instance.model_validate(linked(limits={"capex_usd": 9000}))
    table = without_plan("direct", "infeasible") | {"instance": {"name": short.name, "sha256": short.sha256}}
    verdict = verify(short, Plan.model_validate(table))
    assert plan.objective.value == 7040  # so that the claim is wrong, and nobody here can tell
    assert verdict.accepted
    assert verdict.on_trust == "that nothing is feasible"
    checks = {check.name: str(check.recomputed) for check in verdict.checks}
    assert SOLVERS_WORD not in checks["rival-none"]
    assert SOLVERS_WORD in checks["bound-source"]


def test_a_bound_of_sites_with_too_many_networks_is_taken_on_trust_and_said_to_be(monkeypatch):
    instance, plan = solved("sites")
    monkeypatch.setattr("coopt.verifier.bounds.sites.MOST_NETWORKS", 3)
    verdict = verify(instance, plan)
    assert verdict.accepted
    assert verdict.on_trust == "the bound"
    assert verdict_contents(verdict)["trusted"]
    page = page_html(PageCase(instance=instance, plan=plan, verdict=verdict, origin=ORIGIN))
    assert "Verified; the bound rests on the solver" in page
    assert verdict_headline(verdict).endswith("; the bound rests on the solver's word.")
    assert Verdict.model_validate_json(verdict.model_dump_json()).on_trust == verdict.on_trust


def test_limits_of_all_sites_may_keep_out_what_is_cheaper_and_are_left_to_the_solver() -> None:
    instance, _ = solved("sites")
    limited = Instance.model_validate(instance.model_dump(mode="json", by_alias=True) | {"limits": {"racks": 1e6}})
    verdict = verify(limited, solve(limited))
    assert (verdict.accepted, verdict.on_trust) == (True, "")
    claim = Plan.model_validate(without_plan("sites", "unknown", 1e12))
    said = claim.model_copy(update={"instance": InstanceId(name=limited.name, sha256=limited.sha256)})
    verdict = verify(limited, said)
    assert (verdict.accepted, verdict.on_trust) == (True, "the bound")


def test_dearer_direct_links_are_accepted_on_the_solvers_word_alone() -> None:
    (_, dearer), relaxed = solved("direct"), Instance.model_validate(linked(workload__0__max_iteration_time_s=3.0))
    best = solve(relaxed)
    assert best.parts[0].links is not None
    assert (best.objective.value, dearer.objective.value) == (5280, 7040)
    rivals = dearer.rivals.model_copy(update={"switched": best.rivals.switched})
    runs = tuple(run.model_copy(update={"bound_s": 3.0}) for run in dearer.workloads)
    claim = with_part(dearer, workloads=runs).model_copy(update={"instance": best.instance, "rivals": rivals})
    verdict = verify(relaxed, claim)
    assert verdict.accepted
    assert verdict.on_trust == "the bound"


@pytest.mark.parametrize("kind", KINDS)
def test_no_section_of_another_plan_stands_in_this_one(kind: str) -> None:
    (instance, plan), table, tried = solved(kind), written(kind), 0
    for name in SECTIONS:
        for part in (written(other)[name] for other in others(kind)):
            changed = Plan.model_validate(table | {name: part})
            if changed != plan:
                tried += 1
                assert not verify(instance, changed).accepted, (name, part)
    assert tried >= len(SECTIONS)


@pytest.mark.parametrize(
    ("power_mw", "hb_w", "nic_w", "switch_w", "optic_w"),
    [(0.0062391999999999994, 27.0, 25.7, 254.3, (12.4, 5.7, 6.5)), (0.005608, 22.6, 17.6, 209.8, (15.1, 10.6, 11.6))],
)
def test_a_limit_at_what_a_plan_takes_lets_no_infeasibility_pass(power_mw, hb_w, nic_w, switch_w, optic_w):
    names = zip(("cheap", "cool", "mid"), (100, 300, 180), optic_w, strict=True)
    work = {"name": "a", "model": "gpt-22b", "global_batch": 64, "mapping": {"micro_batch": [1]}}
    domain = {"name": "hb8", "size": 8, "gbyte_s": 450, "usd_per_gpu": 100, "w_per_gpu": hb_w, "racks": 1}
    instance = ask(
        workload=[work | {"max_iteration_time_s": 1.0}],
        network__hb_domains=[domain],
        network__fabrics=["rail-only", "clos"],
        network__oversubscription=2.0,
        network__nics=[{"name": "n", "gbit_s": 400, "usd": 1750, "w": nic_w}],
        network__switches=[{"name": "s8", "radix": 8, "port_gbit_s": 400, "usd": 5000, "w": switch_w}],
        network__optics=[{"name": n, "gbit_s": 400, "reach_m": 100, "usd": usd, "w": w} for n, usd, w in names],
        limits={"power_mw": power_mw},
    )
    plan = solve(instance)
    assert plan.cost.power_w / 1e6 == power_mw
    assert verify(instance, plan).accepted
    nothing = plan.objective.model_copy(update={"value": None, "bound": None, "gap": None})
    empty = NOTHING_BUILT | {"status": "infeasible", "objective": nothing, "tp_across": True}
    assert {check.name for check in verify(instance, plan.model_copy(update=empty)).failures} == {"infeasible"}


def test_collectives_that_run_otherwise_are_refused() -> None:
    instance = ask(
        workload__0__mapping={"tp": 1, "pp": 1, "dp": 64, "zero": 1},
        workload__0__options={"collectives": "fastest"},
        workload__0__max_iteration_time_s=5.0,
    )
    plan = solve(instance)
    assert plan.workloads[0].collectives == {"dp": "ring through all ranks"}
    assert verify(instance, plan).accepted
    for lie in ({}, {"dp": "rings"}, {"dp": "ring through all ranks", "tp": "rings"}):
        runs = tuple(run.model_copy(update={"collectives": lie}) for run in plan.workloads)
        verdict = verify(instance, with_part(plan, workloads=runs))
        assert "collectives" in {check.name for check in verdict.failures}


HOSTED = {"objective.include": ["hb", "host", "nic", "switch", "optics"]}
KNOBS = {"dp_mode": ["sync", "overlap"], "transport": ["rdma", "ipoib"]}
TRULY_SET: list[dict[str, Any]] = [
    {"network.domain_fill": "fewest", "sharing.mode": "partition"},
    {"network.link_ends": "own", "sharing.mode": "partition"},
    {"network.hb_domains": [{"extends": "hgx-h100-8", "usd_per_gpu": 5}], **HOSTED},
    {"network.hb_domains.0": {"extends": "hgx-h100-8"}, "network.hb_domains.0.usd_per_gpu": 5, **HOSTED},
    {"network.hb_domains": "hgx-h100-8", "network.nics": ["cx7-400g"], "cluster.gpus": 32},
    {"cluster.gpus": {"least": 16, "most": 64, "step": 16}, "cluster.gpus.most": 48},
    {"workload.0.global_batch": [64, 128], "workload.0.options": KNOBS},
    {"workload.options": {}, "workload.options.dp_mode": ["sync", "overlap"], "workload.0.options.transport": "rdma"},
    {"margin": {"time": 0.1}, "margin.memory": 0.2, "robust": {"survive": "nic", "slower": 2.0}},
    {"network.switches.0.usd": 4000, "network.oversubscription": [1.0, 2.0], "limits.power_mw": 1},
]
NEVER_SET: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"cluster.gpus": 32}, {"cluster.gpus": 64}),
    ({"cluster.gpus": [32, 64]}, {"cluster.gpus": [16, 64]}),
    ({"network.nics": "cx7-400g"}, {"network.nics": "cx8-800g"}),
    ({"network.hb_domains": ["hgx-h100-8"]}, {"network.hb_domains": ["h100-hb16"]}),
    ({"network.hb_domains": "hgx-h100-8"}, {"network.hb_domains": {"extends": "hgx-h100-8", "usd_per_gpu": 5}}),
    ({"workload.0.options": KNOBS}, {"workload.0.options": KNOBS | {"dp_mode": ["sync", "stale-1"]}}),
    ({"network.domain_fill": "fewest"}, {"network.domain_fill": "any"}),
    ({"cluster.gpus": 32}, {"cluster.gpus": -5}),
    ({"limits.power_mw": 1}, {"limits.power_mw": 2, "cluster.gpus": 64}),
]


def _told(held: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """What is wrong with a plan that says of `--set` what its instance holds, or another thing."""
    instance = load(question(), held)
    claim = {"instance": {"name": instance.name, "sha256": instance.sha256}, "overrides": {"values": said}}
    plan = Plan.model_validate(without_plan("shared", "unknown") | claim)
    return [check.name for check in verify(instance, plan).failures]


@pytest.mark.parametrize("values", TRULY_SET)
def test_values_that_were_set_are_those_of_the_instance_however_it_keeps_them(values: dict[str, Any]) -> None:
    assert _told(values, values) == []


@pytest.mark.parametrize(("held", "said"), NEVER_SET)
def test_values_that_were_not_set_are_told_by_the_values_that_the_instance_has(held, said):
    assert _told(held, said) == ["replaced"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, True),
        ({"cluster.gpus": 128}, True),
        ({"cluster.gpus": 32, "objective.years": 3}, False),
        ({"name": "other"}, False),
    ],
)
def test_set_values_are_asked_for_where_they_may_be_what_differs(given: dict[str, Any], told: bool) -> None:
    solved, here = load(question(), {"cluster.gpus": 32}), load(question(), given)
    claim = {"instance": {"name": solved.name, "sha256": solved.sha256}}
    claim |= {"overrides": {"values": {"cluster.gpus": 32}}}
    plan = Plan.model_validate(without_plan("shared", "unknown") | claim)
    (check,) = verify(here, plan).failures
    with pytest.raises(InstanceError) as refused:
        check_same_sha(here, plan)
    assert ("--set" in check.why, "--set" in str(refused.value)) == (told, told)


def test_names_of_ones_own_catalog_cannot_be_looked_up_again(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text('[[nic]]\nextends = "cx7-400g"\nname = "ours"\n', "utf-8")
    values = {"catalog.files": [str(tmp_path / "ours.toml")], "network.nics": "ours"}
    assert _told(values, values) == []
    assert _told(values, values | {"cluster.gpus": 32}) == ["replaced"]
