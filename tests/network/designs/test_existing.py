"""Networks that stand: counted as their designs are, timed as they stand, and bought by nobody."""

import copy
import random
from itertools import product

import pytest

import coopt
from coopt.explain.limits import numeric_limits
from coopt.explain.rivals import lists_of_choices
from coopt.instance.designs import read_designs
from coopt.instance.schema import question_on, questions_by_gpu
from coopt.network.designs import chain_of, link_rates
from coopt.network.orders import plan_order_notes
from coopt.network.parts import counted_units, standing_units
from coopt.network.space import Space, families
from coopt.network.standing import standing_family
from coopt.report.facts import asked_of, plan_facts
from coopt.report.plan import plan_sections
from coopt.report.words import design_text
from coopt.solving.evaluate import _fastest_mapping
from coopt.verifier.parts.bills import levels
from coopt.verifier.parts.standing import standing_network
from tests.changes import with_part

TIER = {"ports": 64, "switch": "qm9700", "optic": "400g-sr4"}
GIVEN = {
    "schema": 1, "margin": "none", "name": "given", "cluster": {"gpu": "h100-sxm", "gpus": 64},
    "workload": {
        "name": "training", "model": "gpt-22b", "global_batch": 64,
        "mapping": {"micro_batch": 1, "cp": 1, "recompute": "none"},
    },
    "network": {"given": True},
    "existing": {
        "id": "ours", "hb_domain": "hgx-h100-8", "domains": 8, "gpus_per_domain": 8, "leaf_domains": 2,
        "fabric": "clos", "nic": "cx7-400g",
        "tiers": [{**TIER, "down": 16, "up": 18}, {**TIER, "optic": "400g-dr4"}],
    },
}  # fmt: skip


def _with(changes):
    table = copy.deepcopy(GIVEN)
    for key, value in changes.items():
        *parents, last = key.split(".")
        node = table
        for parent in parents:
            node = node[int(parent) if parent.isdigit() else parent]
        if value is None:
            del node[last]
        else:
            node[last] = value
    return table


def test_a_proof_of_the_least_time_is_refused_as_its_certificate_is():
    instance = coopt.Instance.model_validate(GIVEN)
    plan = coopt.solve(instance)
    for task, asked in {"prove": coopt.prove, "certify": coopt.certify}.items():
        with pytest.raises(coopt.InstanceError, match=f"'time': {task} compares bills"):
            asked(instance, plan)


def test_given_networks_count_to_what_their_designs_count_to():
    refused = []
    for design in read_designs("instances/designs/published.toml"):
        nic_gbit_s = (link_rates(design, design.id)[0] or 400.0) * design.nic_ports
        unpriced = {"usd": 0.0, "w": 1.0}
        row = design.model_dump(exclude_none=True, exclude={"published", "source", "tag"})
        row |= {
            "nic": {"name": "nic", "gbit_s": nic_gbit_s, "ports": design.planes, **unpriced},
            "hb_domain": {"name": "domain", "size": design.gpus_per_domain, "gbyte_s": 450.0}
            | {"usd_per_gpu": 0.0, "w_per_gpu": 0.0},
        }
        instance = coopt.Instance.model_validate(_with({"existing": row, "cluster.gpus": design.gpus}))
        try:
            family = standing_family(instance, design.gpus)
        except coopt.InstanceError as error:
            refused.append(str(error))
            continue
        planned = family.chain(family.uplink_choices[0]).levels
        given = standing_network(instance, design.gpus)
        checked = levels(given.family, given.ports)
        assert [level.switches for level in planned] == [t.switches for t in chain_of(design).levels]
        assert [level[:2] for level in checked] == [(level.switches, level.links) for level in planned]
    assert len(refused) <= 6
    untimed = ("time model", "spread evenly", "of NIC ports", "no tier joins")
    assert all(any(words in text for words in untimed) for text in refused)


def test_given_network_asks_for_its_mapping_alone():
    instance = coopt.Instance.model_validate(GIVEN)
    plan = coopt.solve(instance)
    leaf, spine = plan.design.fabric.tier
    assert (leaf.switches, leaf.down_ports, leaf.uplinks_per_switch, spine.switches) == (4, 16, 18, 2)
    assert plan.cost.capex_usd == 0
    # 64 NICs, 6 switches, 64 cables below the leaves and 72 above
    assert plan.cost.power_w == 64 * 22.5 + 6 * 747 + 2 * 64 * 8 + 2 * 72 * 10
    assert coopt.verify(instance, plan).accepted
    assert coopt.mappings(instance, plan).workloads[0].mappings[0].iteration_time_s == pytest.approx(
        plan.objective.value
    )
    assert coopt.load(instance.model_dump(by_alias=True)).sha256 == instance.sha256
    # what stands has no price, so that no other network is said to be missing beside it
    assert not plan_sections(instance, plan, plan_facts(instance, plan), ())["saving"]
    why = coopt.explain(instance, plan)
    assert not why.prices
    assert "price" not in " ".join(why.sentences)


def test_leaves_that_take_turns_in_the_rails_of_a_rack():
    rack = {"hb_domain": "gb200-nvl72", "domains": 4, "gpus_per_domain": 72, "rails": 4, "leaf_domains": 2}
    tiers = [{"ports": 144, "up": 18, "gbit_s": 400}, {"ports": 144, "gbit_s": 400}]
    instance = coopt.Instance.model_validate(
        _with(
            {
                "cluster": {"gpu": "gb200", "gpus": 256},
                "workload.global_batch": 256,
                "existing": {**GIVEN["existing"], **rack, "fabric": "rail-optimized", "tiers": tiers},
            }
        )
    )
    plan = coopt.solve(instance)
    assert [tier.switches for tier in plan.design.fabric.tier] == [8, 1]
    assert coopt.verify(instance, plan).accepted
    assert all(run.met for run in coopt.simulate(instance, plan).workloads)


def test_network_of_fewer_uplinks_is_refused_as_the_one_that_stands():
    instance = coopt.Instance.model_validate(GIVEN)
    plan = coopt.solve(instance)
    other = coopt.solve(coopt.Instance.model_validate(_with({"existing.tiers.0.up": 16})))
    verdict = coopt.verify(instance, with_part(plan, design=other.design))
    assert "leaf-ports" in [check.name for check in verdict.failures]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"network.given": False}, "existing: "),
        ({"existing": []}, "needs exactly one [[existing]]"),
        ({"network.fabrics": ["direct"]}, "network.fabrics = ['direct']: the network that network.given = true"),
        ({"existing.nic": None}, "existing[0].nic: is missing"),
        ({"existing.hb_domain": None}, "existing[0].hb_domain: is missing"),
        ({"existing.hb_domain": "gb200-nvl72"}, "gpus_per_domain = 8: 'gb200-nvl72' has 72"),
        ({"cluster.gpus": 128}, "cluster.gpus = 128: existing[0] 'ours' has 8 HB domains"),
        ({"existing.domains": 1}, "domains = 1"),
        ({"existing.domains": {}}, "existing[0].domains.per_hb_domain: is missing"),
        ({"existing.rails": 3}, "rails = 3: in a clos these are the leaves"),
        (
            {"existing.rails": 2, "existing.nic_ports": 2, "existing.tiers": [TIER]},
            "rails = 2: no second tier joins the leaves that the ports of a GPU lead to, needs",
        ),
        ({"existing.rails": 3, "existing.fabric": "rail-optimized"}, "rails = 3: needs a divisor"),
        (
            {"sharing": {"mode": "partition"}},
            "sharing.mode = 'partition' beside network.given = true, needs a question",
        ),
        (
            {"robust": {"prices": {"nic": [0.5, 2.0]}}, "site": [{"name": "a", "power_mw": 1}]},
            "with [[site]] and robust.prices or robust.efficiency beside network.given = true, needs",
        ),
        ({"existing.gpus_per_cage": 2}, "gpus_per_cage = 2"),
    ],
)
def test_existing_that_cannot_be(changes, sentence):
    with pytest.raises(coopt.InstanceError) as refused:
        coopt.load(_with(changes))
    assert sentence in str(refused.value)
    assert "ByHbDomain" not in str(refused.value)


LISTS = {"hb_domains": "hgx-h100-8", "nics": "cx7-400g", "switches": "qm9700", "fabrics": "clos"}


@pytest.mark.parametrize(
    ("mode", "named"),
    [
        ("partition", "tiers[0].optic_below = '400g-dr4'"),
        ("time", "tiers[0].optic_below.w = 7: network.optics has '400g-dr4' with 9 W"),
    ],
)
def test_the_lower_ends_of_cables_go_by_their_own_key(mode, named):
    optics = ["400g-sr4"] if mode == "partition" else ["400g-sr4", {"extends": "400g-dr4", "w": 9}]
    below = {"extends": "400g-dr4", "w": 7}
    network = {"network": LISTS | {"optics": optics}, "existing.tiers.1.optic": "400g-sr4", "sharing": {"mode": mode}}
    with pytest.raises(coopt.InstanceError) as refused:
        coopt.load(_with(network | {"existing.tiers.0.optic_below": below}))
    assert named in str(refused.value)


TWIN_PORTS = {"existing.nics_per_gpu": 2, "existing.nic_ports": 2, "existing.leaf_domains": 1}
UNITS_OF_FIVE = {
    "cluster.gpus": 80,
    "existing.domains": 10,
    "existing.unit_domains": 5,
    "existing.leaf_domains": 3,
    "existing.tiers.0.down": 24,
}
"""Leaves of three domains, of which the second of each unit has two."""


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"existing.tiers.0.ports": 32}, "'ours': tiers[0].ports = 32: a switch of tier 1 would need"),
        ({"existing.tiers.1.optic": "800g-dr8", "existing.tiers.1.gbit_s": 200.0}, "tiers[1]"),
        ({"existing.fabric": "rail-only", "existing.rails": 4}, "plane (rails = 8), or two tiers that join rails."),
        ({"existing.fabric": "rail-only", **TWIN_PORTS}, "in a plane (rails = 16)."),
        (
            TWIN_PORTS | {"existing.rails": 2, "existing.leaf_domains": 2, "existing.domains": 2, "cluster.gpus": 16},
            "(8 ports each), but fewer than all 2, needs leaf_domains of at most 1, and two tiers.",
        ),
        (UNITS_OF_FIVE, "units of 5 HB domains leave some leaves partly empty, which the time model"),
    ],
)
def test_existing_that_cannot_be_wired(changes, sentence):
    with pytest.raises(coopt.InstanceError) as refused:
        coopt.solve(coopt.load(_with(changes)))
    assert sentence in f"{refused.value}."


SWITCHES = [
    {"name": f"s{ports}", "radix": ports, "port_gbit_s": 400.0, "usd": usd, "w": w}
    for ports, usd, w in ((16, 900.0, 100.0), (32, 2600.0, 220.0), (64, 7000.0, 500.0))
]
OPTICS = [
    {"name": name, "gbit_s": gbit_s, "breakout": split, "reach_m": 500.0, "usd": usd, "w": w, "fibre": "x"}
    for name, gbit_s, split, usd, w in (
        ("single", 400.0, [], 100.0, 8.0),
        ("frugal", 400.0, [], 180.0, 6.0),
        ("twin", 800.0, [2], 230.0, 14.0),
    )
]


def _grown(seed):
    """A question of what to buy beside a network that stands, or in its place."""
    draw = random.Random(seed)
    domains = draw.choice([2, 4, 8])
    tiers = [
        {"ports": switch["radix"], "switch": switch, "optic": draw.choice(OPTICS[:2])}
        for switch in draw.choices(SWITCHES, k=draw.choice([1, 2, 2]))
    ]
    gpus = 8 * domains * draw.choice([1, 2])
    return _with(
        {
            "cluster.gpus": gpus, "workload.global_batch": gpus,
            "workload.max_iteration_time_s": draw.choice([3.0, 1.5, 1.0]),
            "network": {
                "hb_domains": "hgx-h100-8", "fabrics": ["rail-only", "clos", "rail-optimized"], "nics": "cx7-400g",
                "switches": draw.sample(SWITCHES, 2), "optics": draw.sample(OPTICS, 2),
                "oversubscription": draw.choice([1.0, 2.0]), "tier_switches": draw.choice(["same", "any"]),
            },
            "existing": {
                "id": "ours", "domains": domains, "gpus_per_domain": 8,
                "fabric": draw.choice(["clos", "rail-only", "rail-optimized"]), "nic": "cx7-400g",
                "bundles": draw.choice(["even", "any"]), "tiers": tiers,
            },
            "objective": {
                "minimize": draw.choice(["capex", "tco"]), "include": ["gpu", "hb", "nic", "switch", "optics"],
            },
        }
    )  # fmt: skip


def _worth(instance, family, uplinks, stock):
    """What a network is worth with units that stand at no price, counted without the planner's bill."""
    network, gpu, terms = instance.network, instance.cluster.gpu, instance.objective
    parts = {("nic", family.nic.name): family.nic}
    parts |= {("switch", switch.name): switch for switch in family.switches}
    parts |= {("optics", optic.name): optic for ends in family.optics for optic in ends}
    parts |= {("nic", nic.name): nic for nic in network.nics}
    prices = {product: (part.usd, part.w) for product, part in parts.items()}
    prices |= {("hb", hb.name): (hb.usd_per_gpu, hb.w_per_gpu) for hb in network.hb_domains}
    units = counted_units(family, uplinks) | {("gpu", gpu.name): family.installed_gpus}
    prices["gpu", gpu.name] = (gpu.usd, gpu.w)
    capex = sum(max(count - stock[product], 0) * prices[product][0] for product, count in units.items())
    watts = sum(count * prices[product][1] for product, count in units.items())
    years_usd = terms.years * 8.76 * watts * terms.pue * terms.usd_per_kwh
    return capex + years_usd * (terms.minimize == "tco")


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 7, 9])
def test_growth_of_what_stands_is_the_best_of_all_networks(seed):
    instance = coopt.Instance.model_validate(_grown(seed))
    plan = coopt.solve(instance)
    new = coopt.Instance.model_validate({**_grown(seed), "existing": ()})
    stock = standing_units(instance)
    worths = [
        (_worth(instance, family, uplinks, stock), family, uplinks)
        for family in (*families(instance), *families(new, grow=True))
        for uplinks in family.uplink_choices
    ]
    (workload,) = instance.workload
    least = next(
        worth
        for worth, family, uplinks in sorted(worths, key=lambda entry: entry[0])
        if _fastest_mapping(instance, workload, family, uplinks).iteration_time_s <= workload.bound_s
    )
    assert plan.objective.value == pytest.approx(least, rel=1e-9)
    assert coopt.verify(instance, plan).accepted
    assert plan.objective.value <= coopt.solve(new).objective.value


ISLANDS = {
    **GIVEN,
    "cluster": {"gpu": ["h100-sxm", "b300"], "gpus": 192},
    "workload": [
        {**GIVEN["workload"], "name": "old", "max_iteration_time_s": 0.8},
        {**GIVEN["workload"], "name": "new", "max_iteration_time_s": 0.45},
    ],
    "sharing": {"mode": "partition", "mixed_gpus": True},
    "network": {
        "hb_domains": ["hgx-h100-8", "hgx-b300-8"],
        "fabrics": ["rail-only", "clos"],
        "nics": "cx7-400g",
        "switches": "qm9700",
        "optics": ["400g-sr4", "400g-dr4"],
    },
    "objective": {"include": ["gpu", "hb", "nic", "switch", "optics"]},
    "existing": {**GIVEN["existing"], "gpu": "h100-sxm"},
}


def test_islands_keep_the_gpus_that_stand_and_buy_others_beside_them():
    instance = coopt.Instance.model_validate(ISLANDS)
    plan = coopt.solve(instance)
    domains = {part.name: part.design.hb_domain.name for part in plan.parts}
    assert domains == {"old": "hgx-h100-8", "new": "hgx-b300-8"}
    bought = {item.item: item.count for item in plan.cost.items if item.unit_usd}
    assert bought["b300"] == 64
    assert "h100-sxm" not in bought
    alone = [coopt.solve(one).solver.columns_kept for one in questions_by_gpu(instance)]
    assert plan.solver.columns_kept == sum(alone) > max(alone)
    assert sum(part.cost.capex_usd for part in plan.parts) == plan.cost.capex_usd
    assert coopt.verify(instance, plan).accepted
    assert coopt.certify(instance, plan, coopt.prove(instance, plan)).ok


def test_gpus_whose_nics_are_on_their_board_have_no_others():
    """64 B300 have 64 ConnectX-8 and 128 ends of links to one box, though the NICs that stand are cheaper."""
    network = {
        **ISLANDS["network"],
        "nics": ["cx7-400g", "cx8-800g"],
        "switches": ["qm9700", "144x800g"],
        "optics": ["400g-sr4", "400g-dr4", "800g-dr4"],
    }
    instance = coopt.Instance.model_validate({**ISLANDS, "network": network})
    plan = coopt.solve(instance)
    built = {part.name: (part.design.fabric.nic.name, part.design.fabric.switch.name) for part in plan.parts}
    assert built == {"old": ("cx7-400g", "qm9700"), "new": ("cx8-800g", "144x800g")}
    bought = {item.item: item.count for item in plan.cost.items if item.unit_usd}
    assert {name: bought.get(name, 0) for name in ("cx7-400g", "cx8-800g", "144x800g", "800g-dr4")} == {
        "cx7-400g": 0,
        "cx8-800g": 64,
        "144x800g": 1,
        "800g-dr4": 128,
    }
    assert coopt.verify(instance, plan).accepted
    assert coopt.certify(instance, plan, coopt.prove(instance, plan)).ok


@pytest.mark.parametrize(
    ("changes", "nics"),
    [
        ({}, ["cx8-800g"]),
        ({"buildable": False}, ["cx7-400g", "cx8-800g"]),
        ({"optics": ["400g-sr4", "800g-dr8"]}, ["cx7-400g", "cx8-800g"]),  # of lanes that the box does not have
        ({"nics": "cx7-400g"}, ["cx7-400g"]),
    ],
)
def test_nics_on_boards_are_chosen_where_listed_parts_join_them(changes, nics):
    network = {
        **ISLANDS["network"],
        "hb_domains": "hgx-b300-8",
        "nics": ["cx7-400g", "cx8-800g"],
        "switches": ["qm9700", "144x800g"],
        "optics": ["400g-sr4", "800g-dr4"],
    }
    table = {**ISLANDS, "cluster": {"gpu": "b300", "gpus": 64}, "network": {**network, **changes}}
    instance = coopt.Instance.model_validate(
        {key: table[key] for key in ("schema", "name", "cluster", "network", "objective") if key in table}
        | {"workload": table["workload"][1]}
    )
    assert [nic.name for nic in instance.network.nics] == nics


def test_hosts_with_faster_nics_are_islands_beside_those_that_stand():
    slow = {"name": "slow", "gbit_s": 200, "ports": [1], "usd": 800.0, "w": 15.0}
    box = {"name": "box", "radix": 64, "port_gbit_s": 200, "usd": 15_000.0, "w": 400.0}
    module = {"name": "module", "gbit_s": 200, "reach_m": 100, "usd": 100.0, "w": 4.0}
    listed = {
        key: [entry, *names]
        for key, entry, names in (
            ("nics", slow, ["cx7-400g"]),
            ("switches", box, ["qm9700"]),
            ("optics", module, ["400g-sr4", "400g-dr4"]),
        )
    }
    tier = {"ports": 64, "switch": box, "optic": module}
    stands = {**ISLANDS["existing"], "nic": slow, "tiers": [{**tier, "down": 16, "up": 18}, tier]}
    instance = _islands_with(network={**ISLANDS["network"], **listed}, existing=stands)
    plan = coopt.solve(instance)
    rates = {part.name: part.design.fabric.nic.name for part in plan.parts}
    assert rates == {"old": "slow", "new": "cx7-400g"}
    assert not {"slow", "box", "module"} & {item.item for item in plan.cost.items if item.unit_usd}
    assert coopt.verify(instance, plan).accepted


def test_each_kind_of_gpus_is_a_question_where_memory_is_kept_free():
    instance = coopt.Instance.model_validate({**ISLANDS, "margin": {"memory": 0.1}})
    kinds = next(entries for entries in lists_of_choices(instance) if entries[0].part == "cluster.gpu")
    assert [one.as_only(instance).cluster.gpu.name for one in kinds] == ["h100-sxm", "b300"]
    assert [one.excluded(instance).cluster.gpu.name for one in kinds] == ["b300", "h100-sxm"]


def test_what_islands_take_of_a_bound_has_the_margin_of_their_gpus():
    instance = coopt.Instance.model_validate({key: value for key, value in ISLANDS.items() if key != "margin"})
    plan = coopt.solve(instance)
    for limit in (limit for limit in numeric_limits(instance) if limit.key.endswith("max_iteration_time_s")):
        used = limit.used(plan)
        took = [
            run.iteration_time_s * (1.0 + workload.time_margin)
            for part in plan.parts
            for workload in question_on(instance, part.design.hb_domain.name).workload
            for run in part.workloads
            if run.name == workload.name == instance.workload[int(limit.key.split("[")[1][0])].name
        ]
        assert used == pytest.approx(max(took), rel=1e-12)
    for part in plan.parts:
        of_gpus = {of.name: of for of in question_on(instance, part.design.hb_domain.name).workload}
        told = [(workload.time_margin, of_gpus[run.name].time_margin) for run, workload in asked_of(instance, part)]
        assert all(shown == own for shown, own in told)


TWO_SWITCHES = {"rails": 16, "nics_per_gpu": 2, "nic_ports": 2, "leaf_domains": 4, "fabric": "rail-optimized"}


def _rack_tops(**keys):
    """Two NICs a GPU, each on a leaf of its own, or one NIC with a port in each of two planes."""
    tiers = [{**TIER, "down": 4, "up": 1}, {**TIER, "optic": "400g-dr4"}]
    return coopt.Instance.model_validate(
        _with(
            {
                "existing": {**GIVEN["existing"], **TWO_SWITCHES, "tiers": tiers, **keys},
                "workload.mapping": {**GIVEN["workload"]["mapping"], "tp": 8, "pp": 1},
                "workload.options": {"dp_mode": "sync"},
            }
        )
    )


def test_a_clos_of_two_switches_atop_each_rack_is_called_one():
    tiers = [{**TIER, "down": 32, "up": 8}, {**TIER, "optic": "400g-dr4"}]
    plan = coopt.solve(_rack_tops(fabric="clos", rails=2, tiers=tiers), reasons=False)
    assert "joined by a 2-tier clos network" in design_text(plan.design)


def test_two_switches_atop_each_rack_are_as_fast_as_two_planes():
    instance = _rack_tops()
    plan = coopt.solve(instance)
    leaf, spine = plan.design.fabric.tier
    assert (leaf.switches, leaf.down_ports, spine.switches) == (32, 4, 1)
    assert {item.item: item.count for item in plan.cost.items}["cx7-400g"] == 128
    assert coopt.verify(instance, plan).accepted
    assert all(run.met for run in coopt.simulate(instance, plan).workloads)
    nic = {"name": "two-port", "gbit_s": 800, "ports": [2], "usd": 0, "w": 45}
    other = _rack_tops(rails=8, nics_per_gpu=1, planes=2, nic=nic)
    planes = coopt.solve(other)
    assert planes.runs[0].iteration_time_s == plan.runs[0].iteration_time_s
    assert plan.runs[0].breakdown_s["dp"] > 0.3
    lost_leaf_s = [
        next(fault.workloads[0].iteration_time_s for fault in lost.faults if fault.part == "leaf switch")
        for lost in (coopt.faults(instance, plan), coopt.faults(other, planes))
    ]
    assert lost_leaf_s[0] == lost_leaf_s[1]


def test_a_plan_of_two_nics_a_gpu_stands_as_it_was_built(tmp_path):
    nic = {"name": "n", "gbit_s": 400, "usd": 1000, "w": 20}
    for fabric, radix in product(("clos", "rail-only", "rail-optimized"), (128, 16)):
        box = {"name": "box", "radix": radix, "port_gbit_s": 400, "usd": 1000, "w": 100}
        lists = {"hb_domains": "hgx-h100-8", "nics": nic, "switches": box, "optics": "400g-199"}
        workload = {**GIVEN["workload"], "max_iteration_time_s": 100}
        bought = {"network": {**lists, "fabrics": fabric, "nics_per_gpu": 2}, "existing": (), "workload": workload}
        plan = coopt.solve(coopt.Instance.model_validate({**GIVEN, **bought}))
        (tmp_path / "built.json").write_text(plan.model_dump_json(by_alias=True), "utf-8")
        given = {"network": {"given": True, **lists}, "existing": {"plan": str(tmp_path / "built.json")}}
        instance = coopt.load({**GIVEN, **given})
        again = coopt.solve(instance)
        assert again.design.fabric == plan.design.fabric.model_copy(update={"routing": again.design.fabric.routing})
        assert again.cost.power_w == plan.cost.power_w
        assert coopt.verify(instance, again).accepted


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"rails": 12}, r"rails = 12: needs a divisor of gpus_per_domain = 8, or 16, a rail for each port in a plane"),
        (
            {"nic": {"extends": "cx7-400g", "name": "ours", "ports": [2, 4]}},
            r"nic_ports = 2: ours runs with 2 or 4 ports, needs nic_ports = 4 or 8 with nics_per_gpu = 2",
        ),
        (
            {"nics_per_gpu": 3},
            r"3: the NICs of a GPU cannot share 2 ports in 1 plane equally, .* multiple of 3 in nic_ports",
        ),
    ],
)
def test_ports_that_nics_and_leaves_do_not_divide(keys, sentence):
    with pytest.raises(ValueError, match=sentence):
        _rack_tops(**keys)


def test_what_stands_has_the_power_of_its_product_on_the_list():
    stands = {**ISLANDS["existing"], "nic": {"extends": "cx7-400g", "name": "cx7-400g", "w": 500}}
    with pytest.raises(ValueError, match=r"nic\.w = 500: network\.nics has 'cx7-400g' with 22\.5 W, needs the same"):
        _islands_with(existing=stands)


def test_nothing_is_ordered_of_a_network_that_stands():
    """Its leaves have a module in each of 64 ports, and 32 cages."""
    lists = {**LISTS, "optics": ["400g-sr4", "400g-dr4"]}
    tiers = [{**TIER, "down": 32, "up": 32}, {**TIER, "optic": "400g-dr4"}]
    changes = {"network": lists, "existing.tiers": tiers, "existing.leaf_domains": 4}
    instance = coopt.Instance.model_validate(_with({**changes, "workload.max_iteration_time_s": 30.0}))
    plan = coopt.solve(instance)
    assert plan.cost.capex_usd == 0
    assert not list(plan_order_notes(instance, plan))


def test_no_proof_passes_over_the_network_that_stands(monkeypatch):
    """Its ratio of 4:1 is wider than what may be bought, so that nothing else costs as little."""
    box = {"name": "20-port", "radix": 20, "port_gbit_s": 400, "usd": 30000, "w": 700}
    tiers = [
        {"ports": 20, "switch": box, "optic": "400g-sr4", "down": 16, "up": 4},
        {"ports": 20, "switch": box, "optic": "400g-dr4"},
    ]
    sizes = zip(ISLANDS["workload"], (3.0, 30.0), (64, 16), strict=True)
    instance = _islands_with(
        cluster={"gpu": "h100-sxm", "gpus": 192},
        workload=[{**one, "max_iteration_time_s": bound_s, "gpus": gpus} for one, bound_s, gpus in sizes],
        sharing={"mode": "partition"},
        network={**ISLANDS["network"], "hb_domains": "hgx-h100-8", "fabrics": "clos", "switches": box},
        existing={**ISLANDS["existing"], "tiers": tiers},
    )
    plan = coopt.solve(instance)
    assert coopt.certify(instance, plan, coopt.prove(instance, plan)).ok
    monkeypatch.setattr(Space, "standing", lambda *_: None)
    worse = coopt.solve(instance)
    assert worse.objective.value > plan.objective.value
    assert not coopt.certify(instance, worse, coopt.prove(instance, worse)).ok


def _islands_with(**changes):
    return coopt.Instance.model_validate({**copy.deepcopy(ISLANDS), **changes})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"sharing": {"mode": "time", "mixed_gpus": True}},
            r"mixed_gpus = true: sharing\.mode = 'time', needs 'partition'",
        ),
        ({"cluster": {"gpu": "h100-sxm", "gpus": 64}}, r"mixed_gpus = true: cluster\.gpu = 'h100-sxm', needs"),
        ({"availability": {"rates": "llama-3"}, "existing": []}, r"mixed_gpus = true: .* \[availability\], needs"),
        (
            {"network": {**ISLANDS["network"], "hb_domains": ["hgx-h100-8", "gb200-nvl72"]}},
            r"mixed_gpus = true: .*'gb200-nvl72' .* none of cluster\.gpu",
        ),
        (
            {"network": {**ISLANDS["network"], "optics": "400g-sr4"}},
            r"existing\[0\] 'ours': tiers\[1\]\.optic = '400g-dr4': .* network\.optics",
        ),
        (
            {"sharing": {**ISLANDS["sharing"], "most_products": {"nic": 1}}, "existing": []},
            r"mixed_gpus = true: .* sharing\.most_products, needs",
        ),
        ({"sharing": {"mode": "partition", "most_products": {"nic": 1}}}, r"existing: .* sharing\.most_products"),
        (
            {"existing": {**ISLANDS["existing"], "gpu": "h100-sxn"}},
            r"existing\[0\]\.gpu = 'h100-sxn': .*'hgx-h100-8' .*, needs 'h100-sxm'",
        ),
    ],
)
def test_islands_that_cannot_share_what_stands(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        _islands_with(**changes)
