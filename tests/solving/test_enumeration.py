"""The answer to random small questions of every kind is that of plain enumeration, and the verifier accepts it; costs
move one way as questions change."""

import math
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.instance.variants import with_scaled_bounds
from tests.conftest import ASK_WHY, accepted, ask, example_count, switch, value
from tests.solving import oracle
from tests.solving.fleet_oracle import TooManyError, enumerated
from tests.solving.fleets import (
    CORE_ENDS,
    CORE_HALLS,
    ENDS,
    HALLS,
    JOINED,
    SIDES,
    budgeted,
    clusters,
    fleets,
    growing_in_halls,
    interrupted_fleets,
    partitions,
    small_leaves,
    two,
    wishes,
)
from tests.solving.oracle import instances
from tests.solving.questions import (
    capped,
    in_turn,
    interrupted,
    least_of_batches,
    planar,
    racked,
    tolerant,
    twin_ported,
)
from tests.solving.sites import oracle as sites

ALL: dict[str, Any] = {"cores": True, "doubts": True, "losses": True}
UP_TO_THREE = (1, 2, 2, 3)
SHARE = st.sampled_from([0.0, 0.03, 0.1, 0.5])


def changed(instance: Instance, **tables: Any) -> Instance:
    """The instance with other tables, checked anew."""
    return Instance.model_validate(instance.model_dump(by_alias=True) | tables)


def on_network(instance: Instance, **keys: Any) -> Instance:
    """The instance with other keys in [network]."""
    return instance.model_copy(update={"network": instance.network.model_copy(update=keys)})


def owned(instance: Instance, labour: float, support: float) -> Instance:
    """The question of least total cost, with labour and support as shares of what is bought."""
    terms = {"minimize": "tco", "labour_share": labour, "support_share": support}
    return changed(instance, objective=instance.objective.model_dump(by_alias=True) | terms)


def in_doubt(instance: Instance, wish: Any) -> Instance:
    return instance.model_copy(update={"robust": wish})


TIED = {"time": 0.0, "ties": "nearest"}


class Kind(NamedTuple):
    """Questions of a kind, how many a campaign and a usual run ask, and what knows their least value."""

    questions: st.SearchStrategy[Instance]
    campaign: int
    usual: int | None = None
    least: Callable[[Instance], float] = enumerated
    whole: bool = False
    """Whether prices are whole, so that all but a TCO agree to the last digit."""


DOUBTED = st.builds(in_doubt, instances(), wishes())
ANY_ENDS = twin_ported().map(lambda one: on_network(one, link_ends="any"))
FEWEST = racked().map(lambda one: on_network(one, domain_fill="fewest"))
KINDS = {
    "one network": Kind(instances(), 100, 3, least=oracle.enumerated, whole=True),
    "a cap on another measure": Kind(capped(), 12, least=oracle.enumerated),
    "planes of NICs": Kind(planar(), 40),
    "ends of their own": Kind(twin_ported(), 200, 3),
    "planes with ends of their own": Kind(twin_ported((1, 2, 4)), 40),
    "labour and support": Kind(st.builds(owned, twin_ported(), SHARE, SHARE), 60, 2),
    "domains filled in any way": Kind(racked(), 25, least=oracle.enumerated),
    "domains filled where fewer do": Kind(FEWEST, 25, least=oracle.enumerated),
    "interruptions": Kind(interrupted(), 200, 2),
    "ties": Kind(instances(32).map(lambda one: changed(one, margin=TIED)), 200, 2, oracle.enumerated),
    "margins, tolerances and idle GPUs": Kind(tolerant(), 300, 2, least_of_batches),
    "days in turn": Kind(in_turn(), 300, 2, lambda one: (enumerated if one.availability else oracle.enumerated)(one)),
    "growth": Kind(clusters(), 100, 2, whole=True),
    "growth in its hall": Kind(clusters(halls=True), 60, 4),
    "growth in doubt": Kind(st.builds(in_doubt, clusters(), wishes()), 30),
    "doubts and losses": Kind(DOUBTED, 25),
    "products by tier in doubt": Kind(small_leaves(), 15),
    "ends of their own in doubt": Kind(st.builds(in_doubt, ANY_ENDS, wishes()), 20, 2),
    "islands": Kind(partitions(), 20, 2),
    "islands that share a core": Kind(partitions(core=True), 40, 2),
    "regret under a budget": Kind(budgeted(), 1000, 2),
    "fleets with interruptions": Kind(interrupted_fleets(), 25),
    "fleets with everything": Kind(fleets(phases=UP_TO_THREE, sites=(0, 1, 2), **ALL), 75, 2),
    "fleets of any fabric": Kind(fleets(many_sided=SIDES), 10),
    "fleets of any fabric that grow": Kind(fleets((2, 2, 3), (0, 1, 2), doubts=True, many_sided=SIDES), 25),
    "fleets of planes that join a core": Kind(fleets((1, 1, 2), (0, 0, 2), cores=True, many_sided=JOINED), 25),
    "fleets with ends of their own": Kind(fleets((1, 2), (0, 0, 2), many_sided=ENDS, **ALL), 20, 1),
    "fleets with own ends into a core": Kind(fleets((1, 1, 2), (0, 0, 2), cores=True, many_sided=CORE_ENDS), 40, 1),
    "fleets in their halls": Kind(fleets((1,), (0, 0, 2), doubts=True, many_sided=HALLS), 40, 1),
    "fleets in one hall with their core": Kind(fleets((1,), (0, 0, 2), cores=True, many_sided=CORE_HALLS), 40, 1),
    "fleets that grow in their halls": Kind(growing_in_halls(), 60, 2),
    "fleets that grow in one hall with their core": Kind(growing_in_halls(cores=True), 40, 1),
    "rings of sites": Kind(sites.instances(), 60, 2, least=sites.enumerated),
    "rings of sites with labour": Kind(st.builds(owned, sites.instances(), SHARE, SHARE), 30, 2, sites.enumerated),
    "rings of sites with ends of their own": Kind(sites.instances(own_ends=True), 30, 2, sites.enumerated),
    "rings of sites with halls": Kind(sites.instances(halls=True), 30, 1, sites.enumerated),
    "rings of sites with borders in halls": Kind(sites.instances(halls=True, borders=True), 30, 1, sites.enumerated),
    "rings of sites with borders": Kind(sites.instances(borders=True), 60, 2, sites.enumerated),
    "rings of sites that lose a channel": Kind(sites.instances(losses=True), 60, 2, sites.enumerated),
}


def agrees_with_enumeration(instance: Instance, kind: Kind) -> None:
    """Enumerate, solve, compare and verify."""
    try:
        least = kind.least(instance)
    except TooManyError:
        assume(False)
    plan = accepted(instance, reasons=ASK_WHY)
    if math.isinf(least):
        assert (plan.status, plan.objective.value) == ("infeasible", None)
        assert plan.explanation or not ASK_WHY
        return
    assert plan.status == "optimal"
    if kind.whole and instance.objective.minimize != "tco":
        assert plan.objective.value == least
    regret = instance.robust is not None and instance.robust.aim == "regret"
    rounding = 1e-9 * max(1.0, plan.cost.of(instance.objective.minimize)) if regret else 1e-6
    assert plan.objective.value == pytest.approx(least, rel=1e-12, abs=rounding)
    assert plan.objective.bound == pytest.approx(plan.objective.value, rel=1e-9, abs=1e-3)
    assert all(run.iteration_time_s <= run.bound_s for run in plan.runs)
    if (myopic := plan.couplings.myopic) is not None:
        assert (myopic.value is None) == (myopic.dead_end is not None)
        assert myopic.saving is None or myopic.saving >= -1e-9 * least


@pytest.mark.parametrize("name", KINDS)
def test_the_optimum_is_that_of_plain_enumeration(name: str) -> None:
    kind = KINDS[name]

    @settings(max_examples=example_count(kind.campaign, kind.usual))
    @given(kind.questions)
    def compare(instance: Instance) -> None:
        agrees_with_enumeration(instance, kind)

    compare()


NAMED: dict[str, Callable[[], Instance]] = {
    "eight GPUs in three domains of three": lambda: ask(
        sharing={"mode": "partition"},
        workload__0__gpus=[8],
        workload__0__max_iteration_time_s=100.0,
        network__hb_domains=[{"name": "three", "size": 3, "gbyte_s": 450, "usd_per_gpu": 700, "w_per_gpu": 30}],
        network__domain_fill="any",
    ),
    "a single domain that has no network to lose": lambda: ask(
        cluster__gpus=8,
        workload__0__global_batch=16,
        workload__0__max_iteration_time_s=9.0,
        network__hb_domains="hgx-h100-8",
        robust={"survive": ["nic", "plane"]},
    ),
    "sizes that bind no job after a loss": lambda: two(robust={"survive": ["domain"], "slower": 8.0}),
    "prices that are known, and regret": lambda: two(robust={"prices": {"nic": [2.0, 2.0]}, "aim": "regret"}),
    "volume prices that only a budget sees, and regret": lambda: two(
        objective={"minimize": "power", "include": ["hb", "nic", "switch", "optics", "gpu"]},
        sharing={"mode": "partition", "discount": [{"kind": "gpu", "item": "h100-sxm", "from": [8], "off": [0.1]}]},
        robust={"prices": {"gpu": [0.5, 1.5]}, "aim": "regret"},
        limits={"capex_usd": 900_000.0},
    ),
    "uplinks that lead to one spine, charged as if a few more led to two": lambda: ask(
        cluster__gpus=18,
        workload__0__global_batch=36,
        network__hb_domains=[{"name": "two", "size": 2, "gbyte_s": 450, "usd_per_gpu": 700, "w_per_gpu": 30}],
        network__fabrics="rail-only",
        network__switches=[switch(6, 5000)],
        network__oversubscription=[2.0],
        **{"network__charge": "loads", "network__routing": "ecmp", "network__bundles": "any"},
    ),
    "modules in a hall that only their number makes cheap, and regret": lambda: two(
        network__cables="hall",
        network__link_ends="any",
        network__optics=[
            {"name": name, "gbit_s": 400, "reach_m": 500, "usd": usd, "w": 5}
            for name, usd in (("few", 60), ("many", 100))
        ],
        sharing={
            "mode": "partition",
            "discount": [{"kind": "optics", "item": "many", "from": [8], "off": [0.9], "applies": "all-units"}],
        },
        robust={"prices": {"switch": [1.0, 3.0]}, "aim": "regret"},
    ),
    "limits that are hopeless": lambda: two(robust={"survive": ["plane"]}, limits={"racks": 1.0}),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_questions_are_answered_as_enumeration_does(name: str) -> None:
    agrees_with_enumeration(NAMED[name](), Kind(st.nothing(), 1))


def renamed(instance: Instance, _: Random) -> Instance:
    """Other names of parts, workloads and sites, and the last two in another order."""
    table = instance.model_dump(by_alias=True) | {"name": "other"}
    listed = [table["network"][key] for key in ("hb_domains", "nics", "switches", "optics")]
    of_phases = [phase["workloads"] for phase in table["phase"]]
    core = table["sharing"]["core"]
    for one in (
        one
        for some in (table["workload"], table["site"], *of_phases, *(listed if core is None else ()))
        for one in some
    ):
        one["name"] = f"other {one['name']}"
    for discount in table["sharing"]["discount"]:
        if core is None and discount["kind"] != "gpu":
            discount["item"] = f"other {discount['item']}"
    for key in ("workload", "site"):
        table[key] = table[key][::-1]
    return Instance.model_validate(table)


def failing_more(instance: Instance, rng: Random) -> Instance:
    """Parts of one kind fail up to five times as often."""
    table, factor = instance.model_dump(by_alias=True), rng.uniform(1.0, 5.0)
    assume(table["robust"] is None or table["robust"]["aim"] == "worst-case")  # regret is measured from what costs more
    rate = table["availability"]["rates"][rng.choice(["optic", "switch", "gpu", "host", "flap"])]
    rate |= {key: rate[key] * factor for key in ("per_year", "low", "high") if rate.get(key) is not None}
    return Instance.model_validate(table)


def losing_more(instance: Instance, rng: Random) -> Instance:
    robust = instance.robust.model_copy(update={"aim": "worst-case"})
    survive = tuple(dict.fromkeys((*robust.survive, rng.choice(["nic", "leaf", "plane", "domain"]))))
    return in_doubt(instance, robust.model_copy(update={"survive": survive}))


def longer_after_losses(instance: Instance, rng: Random) -> Instance:
    slower, factor = instance.robust.slower, rng.choice([1.1, 1.5, 3.0])
    longer = slower.model_copy(update={part: time * factor for part, time in slower.of_part.items()})
    return in_doubt(instance, instance.robust.model_copy(update={"slower": longer}))


def at_the_worst(instance: Instance, survive: tuple[str, ...] | None = None) -> Instance:
    robust = instance.robust.model_copy(update={"aim": "worst-case"} | ({"survive": survive} if survive else {}))
    return in_doubt(instance, robust)


def slower(low: float, high: float) -> Callable[[Instance, Random], Instance]:
    return lambda one, rng: with_scaled_bounds(one, rng.uniform(low, high))


LESS, MORE, SAME = "no less", "no more", "the same"
ENDED = fleets(many_sided=ENDS, cores=True)
GROWING_AT_SITES = fleets(phases=(2, 3), sites=(1, 2), cores=True)
AT_TWO_SITES = fleets(phases=(1, 2), sites=(2,), cores=True, doubts=True)
RESTARTED = DOUBTED.map(lambda one: at_the_worst(one, ("domain", "nic")))
PLAIN = fleets(phases=UP_TO_THREE, cores=True).map(lambda one: changed(one, robust={}))
EVERY_FABRIC = ("rail-only", "rail-optimized", "clos")
HERE = [{"name": "here", "power_mw": 1.0}]
Change = Callable[[Instance, Random], Instance]
CHANGES: dict[str, tuple[st.SearchStrategy[Instance], Change, str, int]] = {
    "shorter bounds": (instances(), slower(0.5, 1.0), LESS, 20),
    "shorter bounds of fleets": (GROWING_AT_SITES, slower(0.7, 1.0), LESS, 12),
    "shorter bounds with interruptions": (interrupted(), slower(0.7, 1.0), LESS, 10),
    "a margin": (
        instances(),
        lambda one, rng: changed(one, margin={"time": rng.random(), "memory": 0.3 * rng.random()}),
        LESS,
        15,
    ),
    "a margin with interruptions": (
        interrupted(),
        lambda one, rng: changed(one, margin={"time": rng.random() / 2}),
        LESS,
        10,
    ),
    "parts that fail more often": (interrupted(), failing_more, LESS, 10),
    "parts of fleets that fail more often": (interrupted_fleets(), failing_more, LESS, 10),
    "one more loss": (DOUBTED.map(at_the_worst), losing_more, LESS, 8),
    "more time after losses": (RESTARTED, longer_after_losses, MORE, 8),
    "other names": (instances(), renamed, SAME, 20),
    "other names of fleets": (AT_TWO_SITES, renamed, SAME, 12),
    "more fabrics": (instances(), lambda one, _: on_network(one, fabrics=EVERY_FABRIC), MORE, 20),
    "one optic alone": (twin_ported(), lambda one, _: on_network(one, optics=one.network.optics[:1]), LESS, 60),
    "one product at both ends": (twin_ported(), lambda one, _: on_network(one, link_ends="same"), LESS, 60),
    "one product at both ends of fleets": (ENDED, lambda one, _: on_network(one, link_ends="same"), LESS, 20),
    "leaves filled in any way": (
        st.one_of(planar(), instances()).map(lambda one: on_network(one, leaf_fill="ratio")),
        lambda one, _: on_network(one, leaf_fill="any"),
        MORE,
        25,
    ),
    "domains filled alike": (
        racked(),
        lambda one, rng: on_network(one, domain_fill=rng.choice(["fewest", "even"])),
        LESS,
        25,
    ),
    "no doubt": (partitions(), lambda one, _: changed(one, robust={}), SAME, 12),
    "a site of power enough": (PLAIN, lambda one, _: changed(one, site=HERE), SAME, 12),
}


@pytest.mark.parametrize("name", CHANGES)
def test_costs_move_one_way_as_questions_change(name: str) -> None:
    questions, change, way, campaign = CHANGES[name]

    @settings(max_examples=example_count(campaign, usual=2))
    @given(questions, st.randoms(use_true_random=False))
    def compare(instance: Instance, rng: Random) -> None:
        before, after = value(instance), value(change(instance, rng))
        assert way == LESS or after <= before * (1 + 1e-12) + 1e-6
        assert way == MORE or after >= before * (1 - 1e-12) - 1e-6

    compare()
