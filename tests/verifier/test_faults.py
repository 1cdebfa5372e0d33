"""What a check says of a fault is so in the state that it is said in."""

import pytest

from coopt.instance.schema import Instance
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from coopt.verifier.checks.verdict import Ledger, Verdict
from coopt.verifier.couplings.losses import check_losses
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.space import domain_sets
from tests.changes import with_couplings, with_part
from tests.network.designs.test_existing import GIVEN
from tests.verifier.cases import ask
from tests.verifier.fleets import CORE, ISLANDS
from tests.verifier.kinds import solved
from tests.verifier.test_phased_claims import growing


def faults(verdict: Verdict, name: str) -> list[str]:
    return [check.why for check in verdict.failures if check.name == name]


@pytest.mark.parametrize(
    ("include", "said"),
    [
        (["hb", "nic", "optics", "switch", "gpu"], "The core draws "),
        (["hb", "nic", "optics", "gpu"], "leaves out switches"),
    ],
)
def test_a_core_that_is_not_billed_is_not_said_to_draw_nothing(include: list[str], said: str) -> None:
    objective = {**ISLANDS["objective"], "include": include}
    instance = ask(**ISLANDS | {"objective": objective}, sharing={"mode": "partition", "core": CORE})
    plan = solve(instance)
    (shared,) = plan.couplings.cores
    core = shared.core.model_copy(update={"power_w": shared.core.power_w + 7.0})
    wrong = with_couplings(plan, cores=(shared.model_copy(update={"core": core}),))
    (fault,) = faults(verify(instance, wrong), "core-power")
    assert said in fault


def test_a_step_of_the_myopic_planner_is_compared_by_what_is_minimised() -> None:
    instance = growing(network__fabrics="clos", objective__minimize="tco", objective__usd_per_kwh=0.2)
    checks = [check for check in verify(instance, solve(instance)).checks if check.name == "myopic-step"]
    assert len(checks) == 3
    for check in checks:
        assert check.claimed == pytest.approx(check.recomputed)


def test_a_part_is_named_once_with_its_phase() -> None:
    instance = growing(network__fabrics="clos")
    plan = solve(instance)
    (fault,) = faults(verify(instance, with_part(plan, name="other")), "parts")
    assert "network, 2026 (phase 2026); network, 2027 (phase 2027)" in fault
    assert fault.endswith("but has other (phase 2026); network, 2027 (phase 2027); network, 2029.5 (phase 2029.5).")


def test_a_gap_is_misstated_where_the_bound_is_above_the_value_by_rounding_alone() -> None:
    instance = ask()
    plan = solve(instance)
    value = plan.objective.value
    for bound, said in ((value * (1 + 1e-12), "give a gap of"), (value * 1.01, "is above the value of")):
        objective = plan.objective.model_copy(update={"bound": bound, "gap": 0.5})
        (fault,) = faults(verify(instance, plan.model_copy(update={"objective": objective})), "gap")
        assert said in fault


@pytest.mark.parametrize(("survive", "said"), [("domain", ["only HB domain"]), ("nic", [])])
def test_one_domain_that_may_be_lost_leaves_nothing_to_train_on(survive: str, said: list[str]) -> None:
    instance, ledger = ask(cluster__gpus=8, robust={"survive": [survive], "slower": 2.0}), Ledger()
    (family,) = (one for one in domain_sets(instance) if one.domains == 1 and one.hb.size == 8)
    check_losses(ledger, instance, (), family, Ports(0, 0))
    faults = [check.why for check in ledger.checks if not check.ok]
    assert [words in fault for words, fault in zip(said, faults, strict=True)] == [True] * len(said)


def test_what_stands_is_told_in_words() -> None:
    instance = Instance.model_validate(GIVEN)
    plan = solve(instance)
    fabric = plan.parts[0].design.fabric
    leaf = fabric.tier[0].model_copy(update={"down_ports": 8})
    for changes, said in (
        ({"tier": (leaf, *fabric.tier[1:])}, "has the ports of a leaf (down / up): 16 / 18, not 8 / 18."),
        ({"kind": "rail-only"}, "has the fabric clos, not rail-only."),
    ):
        design = plan.parts[0].design.model_copy(update={"fabric": fabric.model_copy(update=changes)})
        assert any(said in check.why for check in verify(instance, with_part(plan, design=design)).failures)


def test_lines_of_a_bill_are_told_with_those_that_they_stand_for() -> None:
    instance = ask()
    plan = solve(instance)
    first, *others = plan.cost.items
    dearer = first.model_copy(update={"unit_usd": first.unit_usd * 2, "usd": first.usd * 2})
    cost = plan.cost.model_copy(update={"items": (dearer, *others)})
    (fault,) = faults(verify(instance, with_part(plan, cost=cost)), "bill-lines")
    told = f"{first.count} x {first.item} at"
    assert f"{told} {first.unit_usd:g} USD" in fault.partition("in place of")[0]
    assert f"{told} {dearer.unit_usd:g} USD" in fault.partition("in place of")[2]
    assert others[0].item not in fault


@pytest.mark.parametrize("first", [True, False])
def test_a_route_of_no_domain_is_refused_wherever_it_stands(first: bool) -> None:
    instance, plan = solved("direct")
    links = plan.parts[0].links
    none = links.phases[0].routes[0].model_copy(update={"path": (), "share": 0.5})
    routes = (none, *links.phases[0].routes) if first else (*links.phases[0].routes, none)
    phases = (links.phases[0].model_copy(update={"routes": routes}), *links.phases[1:])
    wrong = with_part(plan, links=links.model_copy(update={"phases": phases}))
    (fault,) = faults(verify(instance, wrong), "link-routes")
    assert "of no domain" in fault
