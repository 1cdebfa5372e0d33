"""Cables that the hall chooses: planner, verifier and list of cables count them each in its own way."""

import math
import random
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import coopt
from coopt.columns.grid import context_of
from coopt.columns.table import columns, needs
from coopt.instance.couplings import Core
from coopt.instance.reserves import NO_MARGIN, Availability
from coopt.instance.schema import at_choice, choices_of
from coopt.instance.texts import InstanceError
from coopt.instance.variants import as_built
from coopt.network.cable_runs import length_runs
from coopt.network.cabling import Spots, cables
from coopt.network.halls import network_hall
from coopt.network.laying import laid, laid_each
from coopt.network.optics import measures_of
from coopt.network.parts import cost_of, end_modules, within_limits
from coopt.network.placing import placing_of
from coopt.network.plan_cabling import cables_of_plan
from coopt.network.plan_networks import design_of, part_network
from coopt.network.space import Space, families
from coopt.solving.families import _networks_of, counted_networks, every_family, repriced
from coopt.solving.fastest import fastest_design
from coopt.solving.feasibility import feasible
from coopt.verifier.parts.enumeration import design_chains
from tests.network.test_cabling import check_list, question
from tests.solving.fleet_oracle import enumerated


def _hall_question(seed):
    """Optics of several reaches, prices and fibres, and halls of short and long rows."""
    draw = random.Random(1000 + seed)
    rate = 400.0 / question(seed).network.nic_planes[0]
    reaches = [draw.choice([6.0, 8.0, 10.0]), draw.choice([15.0, 20.0]), 500.0]
    optics = [
        {"name": f"{kind}{reach:g}", "gbit_s": rate * links, "breakout": breakout, "fibre": f"100f{reach:g}"}
        | {"usd": draw.randint(1, 90) + reach, "w": draw.randint(1, 20), "reach_m": reach}
        for kind, links, breakout in (("single", 1, []), ("twin", 2, [2]))
        for reach in reaches
    ]
    hall = {
        "racks_per_row": draw.choice([1, 2, 3, 5, 20]),
        "row_pitch_m": draw.choice([1.0, 3.0, 9.0]),
        "switch_rack_units": draw.choice([1, 3, 42]),
        "switch_rack_kw": draw.choice([None, 1.0]),
    }
    kept = {"name", "radix", "port_gbit_s", "cages", "usd", "w"}
    height = draw.choice([{}, {"rack_units": 1}])
    switches = [box.model_dump(include=kept, exclude_none=True) | height for box in question(seed).network.switches]
    hall = {key: value for key, value in hall.items() if value is not None}
    fibre = [
        {"name": f"{name}{reach:g}", "carries": f"100f{reach:g}", "pairs": pairs, "links": links}
        | {"usd": draw.randint(1, 40), "usd_per_m": draw.choice([0.0, 0.5, 3.0])}
        for reach in reaches
        for name, pairs, links in (("thin", draw.choice([1, 2]), 1), ("thick", 4, 1), ("split", 8, 2))
    ]
    fibre = fibre if draw.random() < 0.7 else []
    for module in optics:
        module["connectors"] = draw.choice([1, 1, 2])
    return question(seed, cables="hall", optics=optics, hall=hall, switches=switches, fibre=fibre)


def _cables(instance, gbit_s, optic, length_m):
    """How many of which cables a link takes that begins at a module; None where fibre is free."""
    pairs = math.ceil(gbit_s / 100)
    of_plug = math.ceil(pairs / max(1, optic.connectors // round(optic.gbit_s / gbit_s)))
    offers = [
        (math.ceil(pairs / one.pairs), one)
        for one in instance.network.fibre
        if one.links == 1 and optic.fibre in one.carries and one.pairs >= of_plug
    ]
    return min(offers, key=lambda offer: offer[0] * (offer[1].usd + offer[1].usd_per_m * length_m), default=None)


def _splitters(instance, gbit_s, optic):
    """How many of which splitters a module takes; None where it has a connector for each link, or fibre is free."""
    legs = math.ceil(round(optic.gbit_s / gbit_s) / optic.connectors)
    fitting = [one for one in instance.network.fibre if one.links == legs > 1 and optic.fibre in one.carries]
    return (optic.connectors, min(fitting, key=lambda one: one.usd)) if fitting else None


def _usd(bought, length_m=0):
    count, one = bought or (0, None)
    return count * (one.usd + one.usd_per_m * length_m) if one else 0.0


def _lines(bought, length_m=0):
    """The same as lines of a bill."""
    count, one = bought or (0, None)
    units = {one.name: count} | ({f"{one.name} (m)": count * length_m} if one.usd_per_m else {}) if one else {}
    return Counter(units)


def _fibre(instance, rate, rows):
    """The fibre of listed cables."""
    optic_of = {optic.name: optic for optic in instance.network.optics}
    ends = {(end.device, end.module, end.product) for row in rows for end in (row.lower, row.upper)}
    units = sum((_lines(_splitters(instance, rate, optic_of[name])) for *_, name in ends), Counter())
    for row in rows:
        units += _lines(_cables(instance, rate, optic_of[row.lower.product], row.length_m), row.length_m)
    return units


@pytest.mark.parametrize("seed", [*range(8), 47])
def test_list_of_cables_is_the_bill_of_the_hall(seed):
    check_chains(seed)


def check_chains(seed, most=3):
    """Some networks of a question cable by cable; how many of these have fibre."""
    instance, draw, found = _hall_question(seed), random.Random(seed), 0
    listed = [family for family in families(instance, unlaid=True) if family.tiers]
    for unlaid in draw.sample(listed, min(most, len(listed))):
        uplinks = draw.choice(unlaid.uplink_choices)
        family = laid(instance, unlaid, uplinks)
        if family is None:
            assert max(sum(network_hall(instance, unlaid, uplinks).cables, Counter())) > 500
            continue
        rows = list(cables(family, uplinks, Spots.in_hall(placing_of(instance, family, uplinks))))
        check_list(family, uplinks, rows)
        lengths = sum(network_hall(instance, family, uplinks).cables, Counter())
        assert Counter(row.length_m for row in rows) == lengths
        units = _fibre(instance, family.link_gbit_s, rows)
        items = cost_of(instance.having(objective={"include": ("optics",)}), family, uplinks).items
        assert units == {item.name: item.count for item in items if item.kind == "fibre"}
        assert all(row.length_m <= row.reach_m for row in rows)
        products = [(row.level, (row.lower.product, row.upper.product)) for row in rows]
        kinds = [(tier.level, kind) for tier in design_of(family, uplinks).fabric.tier for kind in tier.cables]
        assert all(products.count((level, kind.ends)) == kind.links for level, kind in kinds)
        modules = {}
        for row, product in zip(rows, products, strict=True):
            modules.setdefault((row.level, row.upper.device, row.upper.module), set()).add(product)
        assert all(len(of) == 1 for of in modules.values())
        found += bool(units)
    return found


def _least_laid(instance):
    """The least bill of all networks that serve, each with its cables; None where none does."""
    every = tuple(families(instance))
    table = columns(instance, every, lambda _: None, lambda: None)
    need = needs(table.columns, len(instance.workload))
    costs = [
        cost_of(instance, family, uplinks)
        for family in every
        for uplinks in family.uplink_choices
        if uplinks >= need.get(table.numbers[context_of(family)], math.inf) and within(instance, family, uplinks)
    ]
    return min((cost.of(instance.objective.minimize) for cost in costs), default=None)


def _all_bills(instance):
    """Price and power of every design that serves, with any ends that reach for each length."""
    every = tuple(families(instance, unlaid=True))
    table = columns(instance, every, lambda _: None, lambda: None)
    need = needs(table.columns, len(instance.workload))
    for family in every:
        fewest = need.get(table.numbers[context_of(family)], math.inf)
        for uplinks in (u for u in family.uplink_choices if u >= fewest):
            bare = replace(family, uplink_choices=(uplinks,), choices=())
            runs = length_runs(placing_of(instance, bare, uplinks), bare.per_module)[-1]
            least = cost_of(instance, bare, uplinks)
            sums = {(least.capex_usd - _ends(bare, uplinks, "usd"), least.power_w - _ends(bare, uplinks, "w"))}
            for level, pairs in zip(runs, family.choices, strict=True):
                for length_m, run in level.items():
                    reaching = [pair for pair in pairs if pair.reach_m >= length_m]
                    rate = family.link_gbit_s
                    added = {
                        (
                            _of_run(run, pair, "usd")
                            + run["links"] * _usd(_cables(instance, rate, pair.below, length_m), length_m)
                            + run["below"] * _usd(_splitters(instance, rate, pair.below))
                            + run["above"] * _usd(_splitters(instance, rate, pair.above)),
                            _of_run(run, pair, "w"),
                        )
                        for pair in reaching
                    }
                    sums = {(usd + more_usd, w + more_w) for usd, w in sums for more_usd, more_w in added}
            yield from sums


def _of_run(run, pair, key):
    return run["below"] * getattr(pair.below, key) + run["above"] * getattr(pair.above, key)


def _ends(family, uplinks, key):
    modules = end_modules(family, family.chain(uplinks))
    return sum(
        n * getattr(optic, key)
        for of, ends in zip(modules, family.optics, strict=True)
        for n, optic in zip(of, ends, strict=True)
    )


def other_limit(seed):
    """A limit on price where power is minimised, or the other way round, between what the cheapest
    takes and what any takes at least; all bills.
    """
    instance, draw = _hall_question(seed), random.Random(9000 + seed)
    kind = draw.choice(["capex", "power"])
    asked = instance.having(objective={"minimize": kind, "include": ("nic", "switch", "optics")})
    bills = [bill if kind == "capex" else bill[::-1] for bill in _all_bills(asked)]
    unlimited, least = min(bills)[1], min(bill[1] for bill in bills)
    most = draw.uniform(least, unlimited) if draw.random() < 0.8 else 0.999 * least
    limits = {"power_mw": most / 1e6} if kind == "capex" else {"capex_usd": most}
    return asked.having(limits=limits), [value for value, other in bills if other <= most]


@pytest.mark.parametrize("seed", [3, 4, 7])
def test_other_cables_keep_a_limit_that_the_cheapest_ones_break(seed):
    instance, values = other_limit(seed)
    plan = coopt.solve(instance, reasons=False)
    assert (plan.objective and plan.objective.value) == (min(values) if values else None)
    assert coopt.verify(instance, plan).accepted


@pytest.mark.parametrize("seed", [3, 5])
def test_why_no_cables_keep_a_limit_says_what_is_needed(seed):
    instance = other_limit(seed)[0].having(margin=NO_MARGIN)
    ((name, _),) = instance.limits.given.items()
    infeasible = instance.having(limits={name: 1e-9})
    (sentence,) = coopt.solve(infeasible).explanation
    need = float(re.search(r"needs at least ([\d,.e-]+)", sentence)[1].replace(",", ""))
    assert coopt.solve(instance.having(limits={name: need}), reasons=False).status == "optimal"
    assert coopt.solve(instance.having(limits={name: need * 0.999}), reasons=False).status == "infeasible"


@pytest.fixture
def laying_all(monkeypatch):
    """Networks that are listed with their cables, whoever asks."""
    listed = Space._by_length

    @contextmanager
    def laying():
        with monkeypatch.context() as patch:
            by_length = lambda space, *parts: listed(replace(space, unlaid=False), *parts)  # noqa: E731
            patch.setattr(Space, "_by_length", by_length)
            _networks_of.cache_clear()
            yield
        _networks_of.cache_clear()

    return laying


def _in_days(seed, *, limited):
    """That in days, with parts that fail and spares, and a limit on the other sum now and then."""
    asked_for, (workload,) = other_limit(seed)[0] if limited else asked(seed), asked(seed).workload
    draw, tokens = random.Random(seed), 1e6 * workload.global_batch * workload.model.seq
    bound_s = asked_for.workload[0].bound_s * draw.choice([1.05, 1.3, 3.0])
    days = {"train_days": bound_s * 1e6 / 86400, "train_tokens": tokens, "max_iteration_time_s": None}
    parts = {part: {"per_year": draw.choice([1.0, 20.0])} for part in ("gpu", "host", "optic", "switch")}
    others = {part: {"per_year": 1.0} for part in ("nic", "domain", "software")}
    rates = {"name": "drawn", "gpus_per_host": 1, **parts, **others}
    failures = {"rates": rates, "restart_s": 300.0, "repair_hours": 24.0, "spare_domains": [0, 1, 3]}
    return asked_for.having(workload=(workload.having(**days),), availability=Availability.model_validate(failures))


@pytest.mark.parametrize(("seed", "limited"), [(5, False), (7, False), (6, True)])
def test_networks_in_days_are_those_of_all_with_their_cables(seed, limited, laying_all):
    instance = _in_days(seed, limited=limited)
    plan = coopt.solve(instance, reasons=False)
    with laying_all():
        listed = coopt.solve(instance, reasons=False)
    assert (plan.objective, plan.design, plan.cost) == (listed.objective, listed.design, listed.cost)
    assert coopt.verify(instance, plan).accepted


def test_cables_that_keep_a_limit_with_spares_serve():
    """Spares have NICs, with which other cables keep the limit than without."""
    instance = _in_days(7, limited=False).having(network={"fibre": ()})
    (workload,) = instance.workload
    objective = {"minimize": "power", "include": ("nic", "switch", "optics")}
    days = workload.having(train_days=1.1 * workload.train_days)
    limited = instance.having(workload=(days,), objective=objective, limits={"capex_usd": 24224.0})
    plan = coopt.solve(limited, reasons=False)
    assert plan.design.spare_domains == 1
    assert feasible(limited)


def within(instance, family, uplinks):
    return within_limits(instance, family, cost_of(instance, family, uplinks))


GPU_S = [104.0, 105.0, 108.0, 120.0, 200.0]


def asked(seed):
    """Tight and loose bounds, each objective, a limit now and then."""
    draw, instance = random.Random(5000 + seed), _hall_question(seed)
    (gpus,) = instance.cluster.gpus
    kind = draw.choice(["capex", "power", "tco"])
    include = draw.choice([("nic", "switch", "optics"), ("hb", "switch", "optics")])
    instance = instance.having(objective={"minimize": kind, "include": include})
    workload = instance.workload[0].model_copy(update={"max_iteration_time_s": draw.choice(GPU_S) / gpus})
    instance = instance.model_copy(update={"workload": (workload,)})
    least = _least_laid(instance) if kind != "tco" and draw.random() < 0.3 else None
    if least is None:
        return instance
    limit = {"capex": {"capex_usd": least}, "power": {"power_mw": least / 1e6}}[kind]
    key, most = next(iter(limit.items()))
    return instance.having(limits={key: most * draw.choice([0.999, 1.0 + 1e-9, 1.01])})


@pytest.mark.parametrize("seed", [2, 4, 5])
def test_networks_are_laid_only_where_they_may_be_the_cheapest(seed):
    instance = asked(seed)
    plan = coopt.solve(instance, reasons=False)
    assert plan.status in ("optimal", "infeasible")
    assert (plan.objective and plan.objective.value) == _least_laid(instance)


def _beside(instance):
    """The answer with what is said beside it: `next_best` and `cliffs` are near designs."""
    plan = coopt.assess(instance, coopt.solve(instance))
    return plan.objective, plan.cost, plan.next_best, plan.cliffs, plan.explanation


def _next_designs(instance):
    """The answer and the next best designs."""
    plan = coopt.solve(instance, top=4)
    return plan.objective, plan.design, plan.alternatives, plan.alternatives_stop, plan.explanation


def _front(instance):
    """The points of least cost for each time."""
    front = coopt.pareto(instance, points=50)
    return front.stop_reason, front.explanation, front.points


def _explanation(instance):
    return coopt.explain(instance, time_limit_s=100)


def _fastest(instance):
    """The design that a suite calls the fastest."""
    outcome = fastest_design(instance)
    return outcome if isinstance(outcome, tuple) else (outcome.design, outcome.cost, outcome.workloads)


ASKED = [(_beside, 0), (_next_designs, 1), (_front, 4), (_explanation, 5), (_fastest, 2)]


@pytest.mark.parametrize(("ask", "seed"), ASKED)
def test_answers_are_those_of_all_networks_with_their_cables(ask, seed, laying_all):
    instance = asked(seed)
    lazy = ask(instance)
    with laying_all():
        assert ask(instance) == lazy


@pytest.mark.parametrize(("kind", "seed"), [("time", 0), ("usd_per_token", 1)])
def test_objectives_that_count_time_are_those_of_all_networks_with_their_cables(kind, seed, laying_all):
    instance = _hall_question(seed).having(objective={"minimize": kind, "include": ("nic", "switch", "optics")})
    plan = coopt.solve(instance)
    with laying_all():
        listed = coopt.solve(instance)
    assert (plan.objective, plan.cost) == (listed.objective, listed.cost)


def _units(kinds):
    units = Counter()
    for ends, below, above in kinds:
        units[ends.below.name] += below
        units[ends.above.name] += above
    return tuple(sorted((+units).items()))


def _summed(bought):
    units = Counter()
    for name, count, usd in bought:
        units[name, usd] += count
    return tuple(sorted(units.items()))


@pytest.mark.parametrize("seed", [0, 2, 3, 5])
def test_verifier_lists_the_networks_and_cables_of_the_planner(seed):
    instance = _hall_question(seed)
    planned = {
        (
            *(family.fabric, family.tiers, family.down, family.uplink_choices),
            _units((run.ends, run.below, run.above) for runs in family.cables for run in runs),
            _summed(one[:3] for one in family.fibre(family.uplink_choices[0])),
        )
        for family in families(instance)
    }
    recounted = set()
    for row in design_chains(instance, "power"):
        network, levels = row.family.network, row.levels(row.uplinks[0])
        counts = [(ends, *level.modules(network.carried(ends))) for level, ends in zip(levels, row.optics, strict=True)]
        fibre = _summed(bought for level in levels for bought in level.fibre)
        recounted.add((network.kind, row.ports.tiers, row.ports.down, tuple(row.uplinks), _units(counts), fibre))
    assert planned == recounted


SHORT = {"gbit_s": 400.0, "fibre": "short", "reach_m": 8.0, "usd": 10.0, "w": 1.0, "name": "short"}
LONG = {"gbit_s": 400.0, "fibre": "long", "reach_m": 500.0, "usd": 90.0, "w": 9.0, "name": "long"}


def mixed(**other):
    box = {"name": "box", "radix": 8, "port_gbit_s": 400.0, "usd": 9.0, "w": 50.0}
    hall = {"racks_per_row": 1, "row_pitch_m": 3.0}
    return question(
        4,
        cables="hall",
        optics=[SHORT, LONG | other],
        switches=box,
        hall=hall,
        nic_planes=1,
        fabrics=["clos"],
        bundles="even",
    )


@pytest.fixture(scope="module")
def answered():
    """That question and its plan."""
    return mixed(), coopt.solve(mixed())


def test_one_tier_has_several_kinds_and_never_costs_more_than_one(answered):
    instance, plan = answered
    assert coopt.verify(instance, plan).accepted
    tiers = [tier for tier in plan.design.fabric.tier if tier.cables]
    assert tiers
    assert all([kind.optic for kind in tier.cables] == ["short", "long"] for tier in tiers)
    by_tier = coopt.solve(instance.having(network={"cables": "tier", "optics": instance.network.optics[1:]}))
    assert plan.cost.power_w < by_tier.cost.power_w


@pytest.mark.parametrize("other", [{"gbit_s": 800.0}, {"gbit_s": 800.0, "breakout": [2]}])
def test_optics_that_fit_no_cable_are_not_said_to_reach_less(other):
    said = coopt.solve(mixed(**other)).explanation
    assert {"short", "long"} & {*" ".join(said).split()} == {"short"}


def test_lengths_of_many_networks_stop_at_the_time_limit():
    shipped = Path(__file__).parents[2] / "instances" / "llama3-405b-16k.toml"
    plan = coopt.solve(coopt.load(shipped, {"network.cables": "hall"}), time_limit_s=0.2)
    assert (plan.status, plan.stop_reason) == ("unknown", "time limit")
    assert plan.timing_s.total < 20.0


def test_modules_that_are_not_full_count_where_ends_are_compared():
    """Three links of a leaf fill two modules of two: one at $80 is dearer than what a NIC's end saves."""
    ends = [("cheap", "x", 10.0, 80.0), ("dear", "y", 49.0, 4.0)]
    optics = [
        {
            "name": f"{name}-{side}",
            "gbit_s": rate, "breakout": breakout, "fibre": fibre, "usd": usd, "w": 1.0, "reach_m": 99.0,
        }
        for name, fibre, below, above in ends
        for side, rate, breakout, usd in (("nic", 400.0, [], below), ("leaf", 800.0, [2], above))
    ]  # fmt: skip
    boxes = {"name": "box", "radix": 64, "port_gbit_s": 400.0, "cages": 32, "usd": 9.0, "w": 50.0}
    domain = {"name": "own", "size": 1, "gbyte_s": 450.0, "usd_per_gpu": 9.0, "w_per_gpu": 1.0, "racks": 0.25}
    asked = {"nic_planes": 1, "fabrics": ["clos"], "switches": boxes, "optics": optics, "hb_domains": domain}
    instance = question(4, cables="hall", **asked).having(cluster={"gpus": (3,)}, objective={"minimize": "capex"})
    (family,) = (one for one in families(instance) if one.per_module == ((1, 2),))
    (run,) = family.cables[0]
    assert (run.links, run.below, run.above, run.ends.above.name) == (3, 3, 2, "dear-leaf")


def test_a_plan_of_another_hall_is_one_of_another_question(answered):
    instance, plan = answered
    halls = [
        instance.network.hall.model_copy(update=one) for one in ({"row_pitch_m": 1.0}, {"usd_per_switch_rack": 9.0})
    ]
    moved, priced = (instance.having(network={"hall": hall}) for hall in halls)
    boxes = [box.model_copy(update={"rack_units": 1}) for box in instance.network.switches]
    assert moved.sha256 != instance.sha256 == priced.sha256
    assert instance.having(network={"switches": tuple(boxes)}).sha256 != instance.sha256
    with pytest.raises(InstanceError, match=f"{moved.name}: .* another instance"):
        coopt.bom(moved, plan)


def test_cables_are_billed_at_the_prices_of_the_question():
    instance = mixed()
    dearer = [optic.model_copy(update={"usd": 2 * optic.usd}) for optic in instance.network.optics]
    asked = instance.having(network={"optics": tuple(dearer)})
    family = next(family for family in families(instance) if family.tiers == 3)
    listed = next(one for one in families(asked) if design_of(one, 2) == design_of(family, 2))
    assert cost_of(asked, *repriced(asked, [family]), 2) == cost_of(asked, listed, 2)


@pytest.mark.parametrize("change", ["links", "longest_m", "optic", "tier", "unasked"])
def test_other_cables_than_the_hall_has_are_rejected(answered, change):
    instance, plan = answered
    tiers = list(plan.design.fabric.tier)
    number = next(n for n, tier in enumerate(tiers) if tier.cables)
    kind, *rest = tiers[number].cables
    if change == "unasked":
        instance = instance.having(network={"cables": "tier"})
        plan = coopt.solve(instance)
        tiers = list(plan.design.fabric.tier)
    elif change == "tier":
        tiers[number - 1] = tiers[number - 1].model_copy(update={"cables": (kind,)})
        kind, *rest = rest
    else:
        other = {"links": kind.links - 1, "longest_m": kind.longest_m + 5, "optic": "long"}[change]
        kind = kind.model_copy(update={change: other})
    tiers[number] = tiers[number].model_copy(update={"cables": (kind, *rest)})
    fabric = plan.design.fabric.model_copy(update={"tier": tuple(tiers)})
    design = plan.design.model_copy(update={"fabric": fabric})
    parts = (plan.parts[0].model_copy(update={"design": design}), *plan.parts[1:])
    verdict = coopt.verify(instance, plan.model_copy(update={"design": design, "parts": parts}))
    assert "cables" in {check.name for check in verdict.checks if not check.ok}


@pytest.mark.parametrize("change", [{}, {"links": 15}, {"longest_m": 10}, {"optic": "long"}])
def test_islands_with_other_cables_than_their_halls_have_are_rejected(change):
    instance = mixed()
    (workload,), (gpus,) = instance.workload, instance.cluster.gpus
    both = tuple(workload.model_copy(update={"name": name, "gpus": (gpus,)}) for name in "ab")
    asked = instance.having(workload=both, sharing={"mode": "partition"}, cluster={"gpus": (2 * gpus,)})
    plan = coopt.solve(asked, reasons=False)
    assert plan.objective.value == 2 * coopt.solve(instance, reasons=False).objective.value
    *tiers, last = plan.parts[1].design.fabric.tier
    first, *rest = last.cables
    last = last.model_copy(update={"cables": (first.model_copy(update=change), *rest)})
    fabric = plan.parts[1].design.fabric.model_copy(update={"tier": (*tiers, last)})
    part = plan.parts[1].model_copy(update={"design": plan.parts[1].design.model_copy(update={"fabric": fabric})})
    verdict = coopt.verify(asked, plan.model_copy(update={"parts": (plan.parts[0], part)}))
    assert ("cables" in {check.name for check in verdict.checks if not check.ok}) == bool(change)


def growing(*, twins=True, bound_s=9.0):
    """A network that grows in its hall, from some domains to all, with fibre, and its plan."""
    table = mixed().model_dump(by_alias=True, exclude_unset=True)
    phases = [{"year": 2026, "gpus": 16}, {"year": 2027, "gpus": 40}]
    tight = [{"name": "w", "max_iteration_time_s": bound_s}]
    phases.append({"year": 2028, "gpus": 64, "price": {"optics": 0.5}, "workloads": tight})
    fibre = [
        {"name": f"{name} {kind}", "carries": f"100{kind}", "pairs": 4 * links, "links": links, "usd": usd}
        | {"usd_per_m": usd_per_m}
        for kind in ("short", "long")
        for name, links, usd, usd_per_m in (("cable", 1, 2, 0.25), ("trunk", 1, 4, 0.0), ("split", 2, 3, 0.0))
    ]
    optics = [one | {"fibre": f"100{one['name']}"} for one in (SHORT, LONG)]
    of_two = [one | {"name": f"{one['name']} twin", "gbit_s": 800.0, "breakout": [2], "usd": 12.0} for one in optics]
    (box,) = table["network"]["switches"]
    changed = {"optics": optics + twins * of_two, "fibre": fibre, "switches": box | {"cages": 4 if twins else 8}}
    tables = {"phase": phases, "objective": table["objective"] | {"minimize": "capex"}}
    asked = coopt.Instance.model_validate(table | tables | {"network": table["network"] | changed})
    return asked, coopt.solve(asked, reasons=False)


@pytest.fixture(scope="module")
def both_grown():
    """Two islands that grow as one network does when it has their bounds, their plan and that of the network."""
    table = growing()[0].model_dump(by_alias=True, exclude_unset=True)
    (workload,), phases = table["workload"], table["phase"]

    def bounded(names):
        """As many GPUs for each of some workloads, whose bounds leave no other numbers."""
        each = [[{"name": one, "max_iteration_time_s": bound_s} for one in names] for bound_s in (99.0, 3.5, 2.0)]
        rows = zip(phases, each, strict=True)
        return [one | {"gpus": len(names) * one["gpus"], "workloads": bounds} for one, bounds in rows]

    both = [workload | {"name": name, "gpus": [one["gpus"] for one in phases]} for name in "ab"]
    shared = {"workload": both, "sharing": {"mode": "partition"}, "cluster": table["cluster"] | {"gpus": 128}}
    islands, alone = (
        coopt.Instance.model_validate(table | {"phase": bounded(names)} | more)
        for names, more in (("ab", shared), ("w", {}))
    )
    return islands, coopt.solve(islands, reasons=False), coopt.solve(alone, reasons=False)


def test_islands_grow_in_their_halls_as_networks_do(both_grown):
    asked, plan, alone = both_grown
    assert plan.objective.value == 2 * alone.objective.value
    assert {part.design for part in plan.parts} == {part.design for part in alone.parts}
    assert coopt.verify(asked, plan).accepted
    for part in plan.parts:
        network, rows = part_network(asked, plan, "cabling", part.name), list(cables_of_plan(asked, plan, part.name))
        check_list(network.family, network.uplinks, rows)


@pytest.fixture(scope="module")
def grown():
    """Such a network whose modules have splitters."""
    return growing()


@pytest.mark.parametrize(("twins", "bound_s", "uplinks"), [(True, 9.0, [2, 2, 2]), (False, 2.0, [2, 2, 3])])
def test_cables_stay_as_a_network_grows(twins, bound_s, uplinks):
    """Lists of cables are the bills of all phases, and what is listed in one is so in the next, with its fibre."""
    asked, plan = growing(twins=twins, bound_s=bound_s)
    assert coopt.verify(asked, plan).accepted
    assert any(tier.cables for tier in plan.parts[1].design.fabric.tier)
    before, bought, up = Counter(), Counter(), []
    for part in plan.parts:
        network = part_network(asked, plan, "cabling", part.name)
        rows = list(cables_of_plan(asked, plan, part.name))
        check_list(network.family, network.uplinks, rows)
        now = Counter((row.level, row.length_m, row.lower.product, row.upper.product) for row in rows)
        assert before <= now
        before = now
        of_phase = [item for item in plan.cost.items if (item.kind, item.year) == ("fibre", part.phase)]
        bought += Counter({item.name: item.count for item in of_phase})
        assert bought == _fibre(asked, network.family.link_gbit_s, rows)
        up.append(network.uplinks)
    assert up == uplinks
    assert {name.split()[0] for name in bought} == {"cable", "trunk", *(["split"] if twins else [])}


def test_cables_are_cheapest_with_the_uplinks_of_each_phase():
    """Power is free at first, when half of the uplinks serve: cables that beat others with all of them cost more."""
    table = mixed().model_dump(by_alias=True, exclude_unset=True)
    few, all_of_them = ([{"name": "w", "max_iteration_time_s": bound_s}] for bound_s in (2.5, 1.97))
    phases = [
        {"year": 2026, "gpus": 64, "price": {"energy": 0.0}, "workloads": few},
        {"year": 2028, "gpus": 64, "price": {"optics": 0.5}, "workloads": all_of_them},
    ]
    listed = [
        ("hot", 8.0, 100.0, 20.0),
        ("cool", 8.0, 111.0, 10.0),
        ("far", 99.0, 300.0, 20.0),
        ("best", 99.0, 313.0, 10.0),
    ]
    optics = [
        {"name": name, "gbit_s": 400.0, "fibre": "pair", "reach_m": m, "usd": usd, "w": w} for name, m, usd, w in listed
    ]
    (box,) = table["network"]["switches"]
    boxes, hall = box | {"radix": 16, "usd": 5000.0}, {"racks_per_row": 1, "row_pitch_m": 5.0}
    network = table["network"] | {"optics": optics, "switches": boxes, "max_tiers": 2, "hall": hall}
    terms = table["objective"] | {"minimize": "tco", "years": 4.0, "pue": 1.0, "usd_per_kwh": 1 / 35.04}
    asked = coopt.Instance.model_validate(table | {"phase": phases, "network": network, "objective": terms})
    plan = coopt.solve(asked, reasons=False)
    assert [part.design.fabric.tier[0].uplinks_per_switch for part in plan.parts] == [4, 8]
    assert plan.objective.value == pytest.approx(enumerated(asked), rel=1e-12)
    assert coopt.verify(asked, plan).accepted


@pytest.mark.parametrize(("of", "number"), [("grown", 1), ("grown", 2), ("both_grown", 1), ("both_grown", 5)])
@pytest.mark.parametrize("change", ["links", "longest_m", "optic"])
def test_other_cables_of_a_phase_are_rejected(request, of, number, change):
    asked, plan, *_ = request.getfixturevalue(of)
    part = plan.parts[number]
    tiers = list(part.design.fabric.tier)
    at = next(n for n, tier in enumerate(tiers) if tier.cables)
    first, *rest = tiers[at].cables
    other = {"links": first.links - 1, "longest_m": first.longest_m + 5, "optic": "long"}[change]
    tiers[at] = tiers[at].model_copy(update={"cables": (first.model_copy(update={change: other}), *rest)})
    fabric = part.design.fabric.model_copy(update={"tier": tuple(tiers)})
    part = part.model_copy(update={"design": part.design.model_copy(update={"fabric": fabric})})
    parts = (*plan.parts[:number], part, *plan.parts[number + 1 :])
    verdict = coopt.verify(asked, plan.model_copy(update={"parts": parts}))
    assert {check.name for check in verdict.checks if not check.ok} & {"cables", "growth"}


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        ({"link_ends": "same"}, r"cables = 'hall': .* network\.link_ends = 'same'"),
        ({"link_reach_m": [50, 100, 400]}, r"cables = 'hall': .* network\.link_reach_m"),
        (
            {"hb_domains": {"name": "own", "size": 8, "gbyte_s": 450.0, "usd_per_gpu": 9.0, "w_per_gpu": 1.0}},
            r"cables = 'hall': .* own are not stated, .*`racks`",
        ),
    ],
)
def test_what_the_hall_does_not_go_with_is_refused(network, sentence):
    with pytest.raises(ValueError, match=sentence):
        question(4, cables="hall", **network)


def test_why_lengths_choose_no_direct_links_is_told():
    with pytest.raises(InstanceError, match=r"network\.cables = 'hall': .*cost the same"):
        coopt.load(Path(__file__).parents[2] / "instances" / "direct-32.toml", {"network.cables": "hall"})


def test_ends_that_are_alike_by_default_are_told():
    shipped = Path(__file__).parents[2] / "instances" / "fleet-131k-w16.toml"
    with pytest.raises(InstanceError, match=r"link_ends other than 'any' \(buildable = false makes it 'own'"):
        coopt.load(shipped, {"network.cables": "hall", "network.buildable": False})


def test_the_hall_goes_with_lists_to_choose_from():
    """Each choice is a question in which what was not given stays so."""
    table = {"cluster.gpu": ["h100-sxm", "b200"], "workload.global_batch": [64, 128]}
    network = {"cables": "hall", "hb_domains": ["hgx-h100-8", "hgx-b200-8"], "optics": ["400g-sr4", "400g-dr4"]}
    instance = coopt.load("instances/tiny-64.toml", table | {f"network.{key}": value for key, value in network.items()})
    choices = [at_choice(instance, choice) for choice in choices_of(instance)]
    assert [choice.network.cables for choice in choices] == ["hall"] * 4
    assert coopt.load(instance.model_dump(by_alias=True)) == instance


@pytest.mark.parametrize(("listing", "seed"), [(question, 0), (_hall_question, 3)])
def test_networks_listed_at_other_prices_are_those_of_a_new_list(listing, seed):
    """What another question of the process left behind changes neither networks nor their bills."""
    draw = random.Random(seed)
    first = listing(seed)
    dearer = {
        kind: tuple(
            one.model_copy(update={"usd": draw.randint(1, 99), "w": draw.randint(1, most_w)})
            for one in getattr(first.network, kind)
        )
        for kind, most_w in (("optics", 20), ("switches", 900))
    }
    other = first.having(network=dearer, objective={"minimize": draw.choice(["capex", "power"])})
    space = Space(instance=other)
    sites = list(space.all_sites())
    list(every_family(Space(instance=first), sites, lambda: None))
    found = list(every_family(space, sites, lambda: None))
    assert list(repriced(other, (one.family for one in found))) == list(families(other))
    for _, family, worth in found:
        for uplinks in family.uplink_choices:
            (current,) = repriced(other, [family])
            cost = cost_of(other, current, uplinks).of(other.objective.minimize)
            assert worth.at(family, uplinks) == pytest.approx(cost)


def test_networks_of_many_prices_are_not_all_kept(monkeypatch):
    """Each price of electricity weighs optics anew; lists of earlier ones make room."""
    monkeypatch.setattr("coopt.solving.families.MOST_COUNTED", 50)
    asked = question(2, link_ends="any").having(objective={"minimize": "tco"})
    held, networks = [], counted_networks(Space(instance=asked))
    for n in range(6):
        other = asked.having(objective={"usd_per_kwh": 0.1 + n})
        space = Space(instance=other)
        assert counted_networks(space) is networks
        found = [one.family for one in every_family(space, space.all_sites(), lambda: None)]
        assert list(repriced(other, found)) == list(families(other))
        held.append(sum(map(len, networks._counted.values())))
    assert len(found) > 1
    assert max(held) <= 50 + len(found)


@pytest.fixture(scope="module")
def cored():
    """Two islands of a rack of domains in each of two rows, each domain on a leaf with a link into their core."""
    instance = mixed()
    (workload,), (short, long) = instance.workload, instance.network.optics
    named = {"gpus": (64,), "max_iteration_time_s": 1e4}
    asked = instance.having(
        workload=tuple(workload.model_copy(update={"name": name, **named}) for name in "ab"),
        network={"optics": (short.having(reach_m=10.0), long)},
        sharing={"mode": "partition", "core": Core(switch="box", gbit_s_per_gpu=50.0)},
        cluster={"gpus": (128,)},
    )
    return asked, coopt.solve(asked, reasons=False)


def test_cables_into_a_core_are_those_of_the_hall(cored):
    """Up, across a row or two, at most a rack aside and down: 8 or 8.6 m and 11 or 11.6 m."""
    asked, plan = cored
    kinds = [
        [(kind.ends, kind.longest_m, kind.links) for kind in of.cables] for of in plan.couplings.cores[0].core.islands
    ]
    assert kinds == 2 * [[(("short", "short"), 10, 8), (("long", "long"), 15, 8)]]
    (tier,) = coopt.bom(asked, plan).networks[-1].tier
    assert {one.length_m: one.count for one in tier.cables} == {10: 16, 15: 16}
    within = sum(tier.links for part in plan.parts for tier in part.design.fabric.tier)
    bought = {item.name: item.count for item in plan.cost.items if item.kind == "optics"}
    assert bought == {"short": 2 * (within + 16), "long": 2 * 16}
    assert coopt.verify(asked, plan).accepted
    rows = list(cables_of_plan(asked, plan))
    into_core = [row for row in rows if row.level == 4]
    assert Counter((row.length_m, row.lower.product) for row in into_core) == {(10, "short"): 16, (15, "long"): 16}
    ends = [end for row in rows for end in (row.lower, row.upper)]
    assert len({(end.device, end.port) for end in ends}) == len(ends) == 2 * len({row.label for row in rows})
    assert Counter(product for *_, product in {(end.device, end.module, end.product) for end in ends}) == bought
    met = Counter((row.lower.device[0], row.upper.device) for row in into_core)
    assert set(met.values()) == {16 / plan.couplings.cores[0].core.switches}
    assert [row for row in rows if row.label.startswith("a:")] == [
        row._replace(label=f"a:{row.label}", lower=_of("a:", row.lower), upper=_of("a:", row.upper))
        for row in cables_of_plan(asked, plan, "a")
    ]


def _of(prefix, end):
    """The same end, of a device and a rack of one of several islands."""
    if end.device.startswith("core:"):
        return end
    return end._replace(device=prefix + end.device, rack=end.rack and prefix + end.rack)


@pytest.mark.parametrize("change", [{"links": 7}, {"longest_m": 15}, {"optic": "long"}])
def test_other_cables_into_a_core_are_rejected(cored, change):
    asked, plan = cored
    (shared,) = plan.couplings.cores
    joined, *others = shared.core.islands
    first, *rest = joined.cables
    joined = joined.model_copy(update={"cables": (first.model_copy(update=change), *rest)})
    core = shared.core.model_copy(update={"islands": (joined, *others)})
    couplings = plan.couplings.model_copy(update={"cores": (shared.model_copy(update={"core": core}),)})
    verdict = coopt.verify(asked, plan.model_copy(update={"couplings": couplings}))
    assert "core-links" in {check.name for check in verdict.checks if not check.ok}


def test_a_core_lists_optics_for_lengths_alone(cored):
    asked, plan = cored
    both = Core(switch="box", gbit_s_per_gpu=50.0, optic=["short", "long"])
    assert coopt.solve(asked.having(sharing={"core": both}), reasons=False).cost == plan.cost
    only = coopt.solve(asked.having(sharing={"core": both.having(optic="long")}), reasons=False)
    assert only.cost.capex_usd == plan.cost.capex_usd + 2 * 16 * (LONG["usd"] - SHORT["usd"])
    table = asked.model_dump(by_alias=True, exclude_unset=True)
    table["network"] |= {"cables": "tier"}
    table["sharing"]["core"]["optic"] = ["short", "long"]
    with pytest.raises(ValueError, match=r"core\.optic: lists 'short' and 'long', .* needs network\.cables = 'hall'"):
        coopt.Instance.model_validate(table)


@pytest.mark.parametrize(("item", "is_one"), [("400g-sr4", True), ("400g-dr4", False)])
def test_volume_prices_choose_cables_that_are_never_dearer(item, is_one):
    path = Path(__file__).parents[2] / "instances/fleet-core-growth.toml"
    asked = coopt.load(path).having(network={"cables": "hall"})
    discounts = tuple(one.having(item=item) if one.kind == "optics" else one for one in asked.sharing.discount)
    instance = as_built(asked.having(sharing={"discount": discounts}))
    space = Space(instance=instance, measures=measures_of(asked), unlaid=True)
    hb = instance.network.hb_domains[0]
    family = next(one for one in space.families(512, hb, 64, space.nic_options) if one.tiers == 2)
    laid = list(laid_each(instance, family, family.uplink_choices[0], space.optic_values))
    assert (len(laid) == 1) is is_one
