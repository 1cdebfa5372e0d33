"""Bounds of direct links are proven by lengths and cuts, in whole numbers, and no lengths prove more than is so."""

import random
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

import coopt
from coopt.instance.texts import InstanceError
from coopt.plan.parts import LinkCut, LinkLengths
from coopt.plan.schema import Plan, Proof
from coopt.plan.store import proof_json
from coopt.verifier.bounds.links import LinksBound, link_places
from coopt.verifier.checks.verdict import LENIENT, Verdict
from coopt.verifier.parts.direct_links import LinkedRun
from coopt.verifier.parts.link_demands import StageGrid, priced_links, sends_on
from coopt.verifier.parts.timings import timings_of
from tests.conftest import example_count
from tests.solving.direct.oracle import fewest_links
from tests.verifier.forgeries import answered_links as answered
from tests.verifier.forgeries import asked_links as asked
from tests.verifier.forgeries import claiming

MUTANTS = example_count(60, 6)
USD_PER_LINK = 2 * (300 + 40 + 100)
RING = StageGrid(stages=1, replicas=4, inner=1, closed=False)


def with_lengths(plan: Plan, *lengths: LinkLengths) -> Plan:
    """The plan with other lengths, or with none."""
    return plan.model_copy(update={"rivals": plan.rivals.model_copy(update={"lengths": lengths})})


def source_of(verdict: Verdict) -> str:
    """What the bound of an accepted plan rests on."""
    assert verdict.accepted
    (found,) = (str(check.recomputed) for check in verdict.checks if check.name == "bound-source")
    return found


def test_a_plan_brings_the_lengths_that_confirm_its_bound() -> None:
    instance, plan, _ = answered()
    assert source_of(coopt.verify(instance, plan)).endswith("on direct links")
    weak = source_of(coopt.verify(instance, with_lengths(plan)))
    assert "the solver's word (`coopt prove`" in weak


def test_lengths_that_fit_no_grid_are_rejected_with_the_plan() -> None:
    instance, plan, proof = answered()
    short = [one.model_copy(update={"lengths": dict.fromkeys(one.lengths, ("1",))}) for one in proof.links]
    verdict = coopt.verify(instance, with_lengths(plan, *short))
    assert {check.name for check in verdict.failures} == {"link-lengths"}


def test_lengths_prove_what_whole_links_of_domains_do_not() -> None:
    instance, plan, proof = answered()
    assert plan.rivals.lengths == proof.links
    weak, found = coopt.certify(instance, with_lengths(plan)), coopt.certify(instance, plan)
    assert found.ok
    assert coopt.certify(instance, plan, proof) == found
    assert found.bound_proven == plan.objective.bound == 8 * USD_PER_LINK
    assert not weak.ok
    assert 0 < weak.bound_proven < found.bound_proven


@pytest.mark.parametrize(("bound_s", "pp"), [(1.5, [2]), (3.0, [1, 2, 4]), (4.0, [1])])
def test_no_more_is_proven_than_enumeration_finds(bound_s: float, pp: list[int]) -> None:
    instance = asked(bound_s, pp)
    plan, fewest = coopt.solve(instance), fewest_links(instance, 4)
    proof = coopt.prove(instance, plan)
    bold = claiming(plan, plan.objective.value * 1.5 if plan.objective.value else 0.0)
    found = coopt.certify(instance, bold, proof)
    assert not found.ok
    assert found.bound_proven <= (plan.objective.value if fewest is None else fewest * USD_PER_LINK)


def test_no_mutant_proves_a_link_more() -> None:
    instance, plan, proof = answered()
    bold, random_ = claiming(plan, plan.objective.value + 1.0), random.Random(5)
    table, weaker = proof.model_dump(mode="json", by_alias=True), 0
    for _ in range(MUTANTS):
        mutant = _mutated(table, random_)
        assert not coopt.certify(instance, bold, mutant).ok
        weaker += not coopt.certify(instance, plan, mutant).ok
    assert weaker > MUTANTS // 10


def _mutated(table: dict[str, Any], random_: random.Random) -> Proof:
    """A proof with one amount changed, or a domain of a cut."""
    changed = Proof.model_validate(table).model_dump(mode="json", by_alias=True)
    one = random_.choice(changed["links"])
    row = random_.choice([*one["lengths"].values(), *([one["ports"]] if one["ports"] else [])])
    if one["cuts"] and random_.random() < 0.3:
        random_.choice(one["cuts"])["price"] = random_.choice(["0", "0.3", "7", "1000"])
    else:
        row[random_.randrange(len(row))] = random_.choice(["0", "0.001", "0.7", "3", "1000"])
    return Proof.model_validate(changed)


def test_lengths_add_up_as_by_hand() -> None:
    lengths = LinkLengths(stages=1, replicas=4, inner=1, closed=False, lengths={"dp": ("0", "0.5", "0.5", "0.5")})
    priced = priced_links(RING, lengths)
    assert priced.least_links({"dp": 2.0}, 4) == 2 * 4 * 2 * Fraction(1, 2) * Fraction(1, 2)


def test_a_cut_counts_whole_links() -> None:
    cut = LinkCut(domains=(0, 1), price="1")
    lengths = LinkLengths(stages=1, replicas=4, inner=1, closed=False, lengths={"dp": ("0",) * 4}, cuts=(cut,))
    priced = priced_links(RING, lengths)
    turned = [{0, 1}, {1, 2}, {2, 3}, {3, 0}]
    crossed = max(sum((i in one) != (j in one) for one in turned) for i, j in combinations(range(4), 2))
    assert priced.least_links({"dp": 2.1}, 4) == Fraction(4 * 3, crossed)


def test_prices_of_ports_take_off_what_ports_there_are() -> None:
    lengths = LinkLengths(
        stages=1, replicas=4, inner=1, closed=False, lengths={"dp": ("0", "1", "1", "1")}, ports=("0.5",)
    )
    priced = priced_links(RING, lengths)
    assert priced.least_links({"dp": 6.0}, 4) == 4 * 6 - Fraction(1, 2) * 4 * 4


def test_lengths_of_another_grid_are_refused() -> None:
    instance, plan, proof = answered()
    short = [one.model_copy(update={"lengths": dict.fromkeys(one.lengths, ("1",))}) for one in proof.links]
    with pytest.raises(InstanceError, match="1 number, needs 8"):
        coopt.certify(instance, plan, proof.model_copy(update={"links": tuple(short)}))


STRANGE = {"stages": [3, 0, -2, 10**9], "replicas": [1, -2, 5, 10**9], "inner": [2, 0, 7], "closed": [True]}


def test_lengths_of_a_grid_that_no_mapping_has_are_refused() -> None:
    instance = asked(1.8, [2], [1])
    plan = coopt.solve(instance)
    proof = coopt.prove(instance, plan)
    assert coopt.certify(instance, plan, proof).ok
    for key, value in ((key, value) for key, values in STRANGE.items() for value in values):
        strange = proof.links[0].model_copy(update={key: value})
        given = proof.model_copy(update={"links": (*proof.links, strange)})
        with pytest.raises(InstanceError, match=r"link lengths: .* -?\d+ x .* needs link lengths"):
            coopt.certify(instance, plan, given)
        (refused,) = coopt.verify(instance, with_lengths(plan, *given.links)).failures
        assert (refused.name, "no mapping of" in refused.why) == ("link-lengths", True), (key, value)


def test_every_grid_of_a_mapping_may_have_lengths() -> None:
    instance = asked(3.0, [1, 2, 4])
    for place in link_places(instance, "capex"):
        near = timings_of(instance.workload, instance.cluster.gpu).near_works(place.family, 0, LENIENT)
        runs = [LinkedRun(work, where, place.family, 1.0, 3.0) for _, (work, where) in near]
        grids = {run.grid for run in runs}
        assert grids
        for grid in grids:
            lengths = dict.fromkeys(sends_on(grid), ("1",) * (len(grid.firsts) * grid.domains))
            given = LinkLengths(**grid.model_dump(), lengths=lengths)
            LinksBound(instance, "capex", 1.0, [given])


def test_lengths_of_a_phase_in_which_nothing_is_sent_are_refused() -> None:
    lengths = LinkLengths(stages=1, replicas=4, inner=1, closed=False, lengths={"dp": ("1",) * 4, "pp": ("1",) * 4})
    with pytest.raises(InstanceError, match="phase 'pp', needs dp"):
        priced_links(RING, lengths)


def test_a_proof_of_links_is_read_as_it_was_written() -> None:
    _, _, proof = answered()
    assert Proof.model_validate_json(proof_json(proof)) == proof
