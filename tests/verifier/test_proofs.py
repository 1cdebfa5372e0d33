"""Proofs of bounds of islands are found by a solver, checked without one, and prove nothing that is not so."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.instance.couplings import corners
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.instance.variants import at_prices
from coopt.plan.schema import Leaf, Proof
from coopt.plan.store import plan_json, proof_json, read_proof
from coopt.report.explanation import certificate_report
from coopt.report.words import rendered
from coopt.solving.answer import solve
from coopt.solving.proofs.search import prove
from coopt.verifier.certificates import certify
from coopt.verifier.couplings.fleet import Fleet
from coopt.verifier.proofs.cases import QuestionIslands
from coopt.verifier.proofs.leaves import SLACK, LeafPrices, NothingProvenError, Terms
from coopt.verifier.proofs.rivals import LABOUR
from tests.conftest import ASK_WHY, example_count
from tests.conftest import ask as asked
from tests.kinds import PHASES
from tests.solving.fleets import CORE_ENDS, fleets
from tests.verifier.cases import ask
from tests.verifier.fleets import CORE, FLEETS, ISLANDS, SITES
from tests.verifier.forgeries import answered, claiming, forged
from tests.verifier.kinds import solved

PLAIN = """
import json, sys
from coopt.instance.schema import Instance
from coopt.verifier.certificates import certify
found = certify(Instance.model_validate_json(open(sys.argv[1]).read()), *sys.argv[2:])
loaded = {name.split(".")[0] for name in sys.modules}
print(json.dumps([found.ok, sorted({"numpy", "scipy", "highspy", "pyomo"} & loaded)]))
"""
MUTANTS = example_count(60, 8)


@pytest.mark.parametrize("name", ["partition", *FLEETS])
def test_a_bound_of_islands_is_proven_and_a_higher_one_is_not(name: str) -> None:
    instance, plan, proof = answered(name)
    value = plan.objective.value
    found = certify(instance, plan, proof)
    assert (found.ok, found.bound_proven) == (True, plan.objective.bound)
    for more in (1 + value * 1e-9, 1 + 100 * value):
        higher = certify(instance, claiming(plan, value + more), proof)
        assert not higher.ok
        assert higher.bound_proven is None or higher.bound_proven <= value * (1 + 1e-12)


def test_a_proof_with_a_gap_names_the_lower_bound_that_it_proves() -> None:
    instance, plan, whole = answered("sites")
    claimed = plan.objective.bound
    proof = prove(instance, plan, gap=0.05)
    found = certify(instance, plan, proof)
    assert (found.ok, found.bound_proven) == (False, pytest.approx(0.95 * claimed))
    assert (found.by.split(" show ")[0], found.missing) == ("the proof's multipliers", "")
    assert len(proof_json(proof)) <= len(proof_json(whole))
    raised = proof.model_copy(update={"bound": str(2 * claimed)})
    higher = certify(instance, plan, raised).bound_proven
    assert higher is None or higher <= claimed
    refuted = certify(instance, claiming(plan, 2 * claimed), raised)
    assert (refuted.ok, refuted.by, refuted.missing.split(" has ")[0]) == (False, "", "case 1: some choice")
    told = rendered(certificate_report(refuted))
    assert told.startswith(f"The proven bound is 50.0% below the claimed one: {refuted.missing}.")


def owned(instance: Instance) -> Instance:
    """The fleet with labour and support."""
    work = {"minimize": "tco", "labour_share": 0.5, "support_share": 0.1}
    return instance.model_copy(update={"objective": instance.objective.model_copy(update=work)})


RANDOM = fleets(phases=(1, 2), sites=(0, 2), cores=True, doubts=True)
OWNED = fleets(phases=(1, 2, 2), sites=(0, 2), cores=True, doubts=True).map(owned)
TWIN_PORTED = fleets(phases=(1, 1, 2), cores=True, many_sided=CORE_ENDS)


@settings(max_examples=example_count(22, usual=3))
@given(st.one_of(RANDOM, OWNED, TWIN_PORTED))
def test_random_fleets_are_proven(instance: Instance) -> None:
    """A higher bound is refused with the same proof."""
    plan = solve(instance, reasons=ASK_WHY)
    bound = plan.objective.bound
    if bound is not None:
        proof = prove(instance, plan)
        found = certify(instance, plan, proof)
        assert found.ok, found
        assert not certify(instance, claiming(plan, bound * 1.01 + 1.0), proof).ok


def test_the_clock_of_a_proof_is_its_own_and_runs_while_islands_are_listed() -> None:
    instance, plan = solved("partition")
    hurried = instance.model_copy(update={"solver": instance.solver.model_copy(update={"time_limit_s": 1e-9})})
    assert prove(hurried, plan, time_limit_s=60.0).cases
    with pytest.raises(InstanceError, match="1e-09 s passed"):
        prove(instance, plan, time_limit_s=1e-9)


FREE_OPTICS = ISLANDS["objective"] | {"include": ["hb", "nic", "switch", "gpu"]}
DEAR_POWER = ISLANDS["objective"] | {"include": ["optics"], "usd_per_kwh": 5.0}
FEW_OPTICS = {"mode": "partition", "core": CORE, "most_products": {"optics": 1}}
BEATEN: list[dict[str, Any]] = [
    {"objective": FREE_OPTICS, "sharing": FEW_OPTICS, "site": SITES},
    {"objective": DEAR_POWER, "sharing": {"mode": "partition", "core": CORE}, "limits": {"power_mw": 1.0}},
]
"""Questions in which an optic of the core is worse for a plan, but neither in price nor in power alone."""


@pytest.mark.parametrize("changes", BEATEN)
def test_a_core_whose_optic_another_one_beats_has_cases_as_well(changes: dict[str, Any]) -> None:
    optics = [
        {"name": "near", "gbit_s": 400, "reach_m": 500, "usd": 90, "w": 30},
        {"name": "far", "gbit_s": 400, "reach_m": 600, "usd": 100, "w": 5},
    ]
    instance = ask(**ISLANDS | {"network__optics": optics} | changes)
    plan = solve(instance)
    assert certify(instance, plan, prove(instance, plan)).ok


@pytest.mark.parametrize(("name", "whose"), [("partition", "one"), ("worst-case", "one"), ("everything", "all")])
def test_that_a_workload_has_no_island_is_proven_with_a_proof_and_without(name: str, whose: str) -> None:
    instance = hurried(solved("partition")[0] if name == "partition" else FLEETS[name](), whose)
    plan = solve(instance, reasons=False)
    assert plan.status == "infeasible"
    assert certify(instance, plan, prove(instance, plan)).ok
    found = certify(instance, plan)
    assert (found.ok, found.by.split(":")[0]) == (True, "all networks were enumerated")


def hurried(instance: Instance, whose: str) -> Instance:
    """The question with a bound that nothing meets, of the first workload or of all."""
    late = {"max_iteration_time_s": 1e-6}
    first, *others = instance.workload
    workloads = [first, *others] if whose == "all" else [first]
    names = {workload.name for workload in workloads}
    asked = tuple(one.model_copy(update=late) if one.name in names else one for one in instance.workload)
    phases = tuple(
        phase.model_copy(
            update={
                "workloads": tuple(one.model_copy(update=late) if one.name in names else one for one in phase.workloads)
            }
        )
        for phase in instance.phase
    )
    return instance.model_copy(update={"workload": asked, "phase": phases})


@pytest.mark.parametrize("name", ["partition", "everything"])
def test_that_every_workload_has_islands_is_no_answer_that_nothing_is_feasible(name: str) -> None:
    instance, plan, proof = answered(name)
    none = plan.model_copy(
        update={"status": "infeasible", "objective": plan.objective.model_copy(update={"bound": None})}
    )
    late = hurried(instance, "all")
    for one in (None, proof, prove(late, solve(late, reasons=False)).model_copy(update={"instance": proof.instance})):
        assert not certify(instance, none, one).ok
    told = certify(instance, plan).missing
    assert told.startswith("no proof is given, and a plan of islands")
    assert "`coopt prove INSTANCE PLAN.json -o PROOF.json`" in told


def test_a_missing_proof_of_one_network_is_not_said_to_be_one_of_islands() -> None:
    instance = asked(**PHASES, robust={"prices": {"switch": [0.5, 2.0]}})
    plan = solve(instance)
    assert plan.status == "optimal"
    missing, found = certify(instance, plan), certify(instance, plan, prove(instance, plan))
    told = "no proof is given, and a plan of one network with [[phase]] and [robust]"
    assert missing.missing.startswith(told)
    assert rendered(certificate_report(missing)).startswith("Not proven: no proof is given")
    assert found.ok
    assert "no choice of networks" in found.by


@pytest.mark.parametrize(("name", "limit"), [("everything", {"racks": 1}), ("sites", {"capex_usd": 4e5})])
def test_that_limits_leave_nothing_is_proven(name: str, limit: dict[str, float]) -> None:
    """Of everything the regret is minimised."""
    instance = FLEETS[name]()
    hopeless = instance.model_copy(update={"limits": instance.limits.model_copy(update=limit)})
    plan = solve(hopeless, reasons=False)
    assert plan.status == "infeasible"
    assert not certify(hopeless, plan).ok
    found = certify(hopeless, plan, prove(hopeless, plan))
    assert (found.ok, found.bound_claimed, found.bound_proven) == (True, None, None)


@pytest.mark.parametrize("name", ["partition", "sites"])
def test_a_forged_proof_proves_no_more_than_is_so(name: str) -> None:
    """Of multipliers any will do: what they prove may get less, but is never more than the optimum."""
    instance, plan, proof = answered(name)
    value, chance, document = plan.objective.value, random.Random(7), json.loads(proof_json(proof))
    asked = QuestionIslands(instance, plan.objective.kind)
    for _ in range(MUTANTS):
        try:
            proof = Proof.model_validate(forged(document, chance))
        except (ValueError, IndexError):
            continue
        for claimed in (value * 1.001, value * 2):
            assert asked.proven([], claimed, proof.cases).least <= value * (1 + 1e-12)


CUTS: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("capex", lambda doc: doc.update(objective="capex"), "is of the objective 'capex'"),
    ("other", lambda doc: doc["instance"].update(sha256="0"), "is of another instance, 'case'"),
]


@pytest.mark.parametrize(("name", "change", "why"), CUTS)
def test_a_proof_of_something_else_is_refused(name: str, change: Callable[[dict[str, Any]], None], why: str) -> None:
    instance, plan, proof = answered("sites")
    document = json.loads(proof_json(proof))
    change(document)
    with pytest.raises(InstanceError, match=why):
        certify(instance, plan, Proof.model_validate(document))


def test_a_proof_beside_one_network_is_read_all_the_same(tmp_path) -> None:
    """Nothing that is given to a command is passed over."""
    instance = ask()
    plan = solve(instance)
    with pytest.raises(InstanceError, match="another instance"):
        certify(instance, plan, answered("sites")[2])
    with pytest.raises(InstanceError, match="needs"):
        certify(instance, plan, tmp_path)


@pytest.mark.parametrize("amount", ["-1", "1e400", "nan", "0x10", "1/0"])
def test_an_amount_that_is_no_plain_number_is_refused(tmp_path, amount: str) -> None:
    document = json.loads(proof_json(answered("sites")[2]))
    leaf = {"budget": amount}
    document["cases"][0]["tree"] = leaf
    (tmp_path / "proof.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(InstanceError, match=r"proof\.json: .*number from"):
        read_proof(tmp_path / "proof.json")


def test_a_deep_proof_is_read_at_once() -> None:
    document = json.loads(proof_json(answered("sites")[2]))
    tree: dict[str, Any] = {}
    for _ in range(60):
        tree = {"bought": "nic nic400", "phase": 0, "most": 1, "up_to": tree, "beyond": {}}
    document["cases"][0]["tree"] = tree
    assert json.loads(proof_json(Proof.model_validate(document)))["cases"][0]["tree"] == tree


@pytest.mark.parametrize("most", [0, 3])
def test_both_sides_of_a_cut_through_islands_hold_every_island(most: int) -> None:
    """Also one that has none of the product: with the same multipliers on both sides nothing more is proven."""
    instance, plan, proof = answered("sites")
    value, document = plan.objective.value, json.loads(proof_json(proof))
    for name, taken in (("first", "switch 4x400"), ("second", "nic nic400"), ("second", "switch 8x400")):
        for cases in document["cases"]:
            cut = {"island": name, "product": taken, "phase": 0, "most": most}
            cases["tree"] = cut | {"up_to": cases["tree"], "beyond": cases["tree"]}
        asked = Proof.model_validate(document)
        assert certify(instance, plan, asked).ok
        assert not certify(instance, claiming(plan, value * 1.01), asked).ok


def test_multipliers_charge_labour_as_capex_and_limits_as_they_are_and_outlooks_weigh_one_at_most() -> None:
    asked = FLEETS["worst-case"]()
    instance = asked.model_copy(update={"limits": asked.limits.model_copy(update={"capex_usd": 1e6})})
    labour_usd = Fraction(str(instance.phase[1].retrofit_usd_per_link))
    for kind, costs in (("tco", 1), ("power", 0)):
        for budget in ("0", "0.5"):
            prices = LeafPrices(Terms(Fleet(instance, kind), []), Leaf(budget=budget), {})  # type: ignore[arg-type]
            charged = Fraction(prices.by_site[0].get((1, LABOUR), 0), prices.scale)
            assert charged == labour_usd * (costs + Fraction(budget))
    terms = Terms(Fleet(instance, "tco"), [])
    for leaf, caps in (
        (Leaf(costs=False, budget="0.5"), 500_000 * (1 + SLACK)),
        (Leaf(costs=False, limits={"gpus": ("3", "0.5")}), 3 * 16 + 12),
    ):
        prices = LeafPrices(terms, leaf, {})
        assert Fraction(prices.fixed, prices.scale) == -caps
    outlooks = [(Fleet(at_prices(instance, one), "tco"), 0.0) for one in corners(instance.robust.prices)]
    terms = Terms(Fleet(instance, "tco"), outlooks)
    LeafPrices(terms, Leaf(outlooks=("0.5", "0.5")), {})
    for leaf in (Leaf(outlooks=("0.5", "0.51")), Leaf(costs=False, outlooks=("0.5", "0"))):
        with pytest.raises(NothingProvenError, match=r"more than 1|leaves out costs"):
            LeafPrices(terms, leaf, {})


def test_only_islands_take_a_proof() -> None:
    instance, plan = solved("shared")
    with pytest.raises(InstanceError, match="needs `coopt certify`"):
        prove(instance, plan)
    with pytest.raises(InstanceError, match="another instance"):
        prove(ask(cluster__gpus=32), plan)


def test_a_proof_is_checked_without_a_solver_and_numpy(tmp_path) -> None:
    instance, plan, proof = answered("partition")
    paths = [tmp_path / name for name in ("instance.json", "plan.json", "proof.json")]
    texts = [instance.model_dump_json(by_alias=True), plan_json(plan), proof_json(proof)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, "utf-8")
    words = [sys.executable, "-c", PLAIN, *map(str, paths)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [True, []]
