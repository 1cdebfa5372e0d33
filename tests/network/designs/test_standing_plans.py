"""Plans as networks that stand."""

import json
import random
import tomllib
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest

import coopt
from coopt.network.cabling import cables
from coopt.network.plan_networks import design_of
from coopt.network.space import Space, families
from coopt.plan.parts import TierCables
from coopt.report.cabling import WRITERS
from tests.network import test_cabling
from tests.network.designs.test_existing import GIVEN


def _load(folder, design, network, gpus):
    part = {"name": "network", "design": design.model_dump(mode="json")}
    (folder / "built.json").write_text(json.dumps({"parts": [part]}), "utf-8")
    return _given(folder / "built.json", network, gpus)


def _given(file, network, gpus, **keys):
    listed = {key: getattr(network, key) for key in ("hb_domains", "nics", "switches", "optics")}
    tables = {key: [entry.model_dump(mode="json") for entry in entries] for key, entries in listed.items()}
    workload = {**GIVEN["workload"], "global_batch": gpus}
    question = {**GIVEN, "workload": workload, "cluster": {"gpu": "h100-sxm", "gpus": gpus}}
    existing = {"plan" if file.suffix == ".json" else "cables": str(file), **keys}
    return coopt.load({**question, "network": {"given": True, **tables}, "existing": existing})


@cache
def _drawn():
    """A network of each random question that lists any with tiers, and as many uplinks of its leaves as it may have."""
    found = {}
    for seed in test_cabling.SEEDS:
        instance, draw = test_cabling.question(seed), random.Random(seed)
        if listed := [family for family in families(instance) if family.tiers and family.alike]:
            family = draw.choice(listed)
            found[seed] = instance.network, family, draw.choice(family.uplink_choices)
    return found


STEPS = {4: "come to 13, 10 and 3 switches", 50: "come to 32, 14 and 8 switches"}
"""Of spines that a whole step would not need."""


def _assert_refusals(refused, expected):
    """Networks that no design describes: uneven steps, and rails that no leaf shares evenly."""
    assert refused.keys() == expected.keys(), refused
    assert all(expected[seed] in refused[seed] for seed in expected), refused


def test_a_plan_stands_as_it_was_built(tmp_path):
    stood, refused = set(), {}
    for seed, (network, family, uplinks) in _drawn().items():
        design = design_of(family, uplinks)
        try:
            given = Space(instance=_load(tmp_path, design, network, family.gpus)).standing(family.gpus)
        except coopt.InstanceError as error:
            refused[seed] = str(error)
            continue
        again = design_of(given, given.uplink_choices[0])
        assert again == design, seed
        stood |= {family.tiers, family.fabric, f"{family.nic_planes} planes"}
    assert stood >= {1, 2, 3, "clos", "rail-only", "rail-optimized", "2 planes"}
    _assert_refusals(refused, STEPS | {9: "a leaf has 3 of the 8 ports of an HB domain"})


def test_a_plan_with_a_nic_of_our_own_catalog_stands(tmp_path):
    (tmp_path / "own.toml").write_text('nic = [{ name = "ours", extends = "cx7-400g" }]', "utf-8")
    table = tomllib.loads(Path("instances/tiny-64.toml").read_text("utf-8"))
    table |= {"catalog": {"files": str(tmp_path / "own.toml")}, "network": table["network"] | {"nics": "ours"}}
    (tmp_path / "built.json").write_text(coopt.solve(coopt.load(table)).model_dump_json(by_alias=True), "utf-8")
    (stands,) = coopt.load({**table, "existing": {"plan": str(tmp_path / "built.json")}}).existing
    assert stands.nic.name == "ours"


def test_a_plan_with_parallel_links_in_pods_stands_as_it_was_built(tmp_path):
    stood, refused, asked = set(), set(), None
    for seed in test_cabling.SEEDS:
        instance = test_cabling.question(seed, pod_bundles=[2, 4])
        for family in (one for one in families(instance) if one.pods and one.alike):
            design = design_of(family, family.uplink_choices[-1])
            bundle, leaves = family.pods.each, family.pods.l // family.pods.each
            try:
                loaded = _load(tmp_path, design, instance.network, family.gpus)
                given = Space(instance=loaded).standing(family.gpus)
            except coopt.InstanceError as error:
                text, of_pod = str(error), leaves * family.down
                whole = of_pod % 8 == 0 and 8 * family.domains % of_pod == 0
                assert not whole or family.fabric != "clos" or "divide the" not in text, (seed, text)
                refused.add(text.partition("[[existing]]")[2])
                continue
            assert design_of(given, given.uplink_choices[0]) == design, seed
            stood |= {bundle, family.fabric}
            asked = loaded if bundle > 1 else asked
    assert stood >= {2, "clos", "rail-optimized"}
    assert any("all pods have" in text for text in refused)
    assert coopt.verify(asked, coopt.solve(asked)).accepted


def test_a_plan_whose_tiers_mix_cables_does_not_stand(tmp_path):
    network, family, uplinks = next(iter(_drawn().values()))
    design = design_of(family, uplinks)
    tier, *above = design.fabric.tier
    kinds = [TierCables(optic=tier.optic, longest_m=length, links=8) for length in (7.0, 50.0)]
    for mix, stands in ((kinds[:1], True), (kinds, False)):
        mixed = tier.model_copy(update={"cables": tuple(mix)})
        fabric = design.fabric.model_copy(update={"tier": (mixed, *above)})
        with nullcontext() if stands else pytest.raises(coopt.InstanceError, match="several kinds"):
            _load(tmp_path, design.model_copy(update={"fabric": fabric}), network, family.gpus)


def test_a_list_of_cables_stands_as_it_lists(tmp_path):
    stood, refused, files = set(), {}, {name: tmp_path / f"{name}.csv" for name in ("csv", "devices", "cables")}
    for seed, (network, family, uplinks) in _drawn().items():
        rows = [*cables(family, uplinks)]
        random.Random(seed).shuffle(rows)
        for name, file in files.items():
            file.write_text(WRITERS[name if name == "csv" else f"netbox-{name}"](rows), "utf-8")
        netbox = {"devices": str(files["devices"])} if seed % 2 else {}
        try:
            found = _given(files["cables" if netbox else "csv"], network, family.gpus, **netbox)
            given = Space(instance=found).standing(family.gpus)
        except coopt.InstanceError as error:
            refused[seed] = str(error)
            continue
        again, chain = given.chain(given.uplink_choices[0]), family.chain(uplinks)
        counts = [[(tier.switches, tier.links) for tier in one.levels] for one in (again, chain)]
        assert counts[0] == counts[1], seed
        # a leaf of a single port has no rail, and one leaf has all of them
        assert given.fabric == ("clos" if family.down == 1 or chain.levels[0].switches == 1 else family.fabric), seed
        stood |= {family.tiers, family.fabric, f"{family.nic_planes} planes"}
    assert stood >= {1, 2, 3, "clos", "rail-only", "rail-optimized", "2 planes"}
    _assert_refusals(refused, STEPS | {9: "rails = 3: needs a divisor of gpus_per_domain = 8"})


CABLES = ["a_device,a_model,a_port,b_device,b_model,b_port"] + [
    f"s{server},dgx,nic{number},leaf,qm9700,{8 * server + number}" for server in (0, 1) for number in range(8)
]
NAMES = {"dgx": "hgx-h100-8", "console": ""}


def _listed(folder, lines, tables=None, **keys):
    (folder / "ours.csv").write_text("\n".join(lines), "utf-8")
    question = {**GIVEN, **(tables or {}), "cluster": {"gpu": "h100-sxm", "gpus": 16}}
    row = {"cables": str(folder / "ours.csv"), "nic": "cx7-400g", "names": NAMES}
    return coopt.load({**question, "workload": {**GIVEN["workload"], "global_batch": 16}, "existing": {**row, **keys}})


def test_a_list_of_other_names_is_planned_on(tmp_path):
    # ends of lines in quotes, and what only str.splitlines takes for one
    instance = _listed(tmp_path, [*CABLES, '"c\nd",console,1,leaf,qm9700,"mg\u2028mt"'])
    plan = coopt.solve(instance)
    (leaf,) = plan.design.fabric.tier
    assert (leaf.switches, leaf.down_ports, plan.design.hb_domain.name) == (1, 16, "hgx-h100-8")
    assert coopt.verify(instance, plan).accepted


@pytest.mark.parametrize(
    "lines",
    [
        # docs/designs.md: models stand in the list, or in one of devices
        ["side_a_device,a_model,side_a_name,side_b_device,b_model,side_b_name", *CABLES[1:]],
        # as coopt cabling writes ends that are not named
        [CABLES[0] + ",a_product,b_product", *(f"{line},not named,not named" for line in CABLES[1:])],
        [line.replace("nic", "nic" + "9" * 5000) for line in CABLES],
    ],
)
def test_lists_that_say_the_same(tmp_path, lines):
    assert _listed(tmp_path, lines).existing == _listed(tmp_path, CABLES).existing


DOMAIN = {"extends": "hgx-h100-8", "w_per_gpu": 600}


def test_a_model_is_an_hb_domain_of_ones_own(tmp_path):
    (row,) = _listed(tmp_path, CABLES, names={}, hb_domain=DOMAIN | {"name": "dgx"}).existing
    assert (row.hb_domain.name, row.gpus_per_domain, row.hb_domain.w_per_gpu) == ("dgx", 8, 600)
    file = tmp_path / "own.toml"
    file.write_text('[[hb_domain]]\nextends = "hgx-h100-8"\nname = "dgx"\n')
    own = {"catalog": {"files": str(file)}}
    (row,) = _listed(tmp_path, CABLES, own, names={}, hb_domain="dgx").existing
    assert (row.hb_domain.name, row.gpus_per_domain) == ("dgx", 8)


SPARE = "name,device_type\ns0,dgx\ns1,dgx\nspare,dgx\nleaf,qm9700"


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            {"devices": SPARE},
            "'spare' has no cable to a device that stays (1 of 3 HB domains without one), needs",
        ),
        ({"names": {"dgx": "hgx-h100-8", "qm9700": ""}}, "names leaves out a device at an end of every cable"),
        ({"hb_domain": {"size": 8}}, "existing[0].hb_domain.name: is missing, needs the model"),
        ({"hb_domain": {"name": "dgx", "size": 0}}, "HB domain 'dgx', size = 0: needs a whole number"),
        ({"nic": {"name": "n", "gbit_s": "fast"}}, "the NIC's gbit_s = 'fast': needs a number above 0"),
        ({"devices": '"' + "x" * 200_000}, "is not a CSV file (field larger"),
        ({"devices": ""}, "lists no devices, needs lines under the columns name and type"),
        ({"devices": "Name;Type\ns0;dgx"}, "has semicolons between columns, needs commas"),
        ({"devices": f"{SPARE}\ns1,qm9700"}, "line 6: 's1' is of model 'qm9700', and of 'dgx' on line 3, needs one"),
        ({"cables": "nope.csv"}, "instance: existing[0].cables = 'nope.csv': no such file, needs a list"),
        ({"cables": ""}, "existing[0].cables = '': cannot be read (Is a directory), needs a CSV file"),
        ({"names": NAMES | {"typo": "qm9700"}}, "existing[0].names.typo = 'qm9700': no device is of model 'typo'"),
        ({"names": {}}, "no model of its devices ('dgx' and 'qm9700') is an HB domain, needs"),
        ({"names": {"dgx": 8}}, "existing[0].names.dgx = 8: needs a catalog name"),
        ({"plan": "built.json"}, "existing[0]: has plan, cables and names, needs either plan or the keys"),
    ],
)
def test_lists_that_leave_no_network(tmp_path, keys, sentence):
    if "devices" in keys:  # the text of the file
        (tmp_path / "devices.csv").write_text(keys["devices"], "utf-8")
        keys = {"devices": str(tmp_path / "devices.csv")}
    with pytest.raises(coopt.InstanceError) as refused:
        _listed(tmp_path, CABLES, **keys)
    assert sentence in str(refused.value)


def _wired(*pairs):
    """Servers on two leaves, and cables between pairs of switches."""
    servers = [*CABLES, *(line.replace("s", "t").replace("leaf", "leaf2") for line in CABLES[1:])]
    ends = [pair.split() for pair in pairs]
    return servers + [f"{low},qm9700,u{n},{high},qm9700,d{n}" for n, (low, high) in enumerate(ends)]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            [
                *CABLES,
                *(f"s2,dgx,nic{n},leaf2,qm9700,{n}" for n in range(8)),
                *(f"leaf{'2' * (n == 2)},qm9700,6{n},spine,qm9700,{n}" for n in range(3)),
            ],
            "'leaf2' has 1 cable up and 'leaf' 2, needs the same number for every switch of tier 1",
        ),
        (_wired("leaf a", "leaf a", "leaf2 a", "leaf2 b"), "'leaf' has 2 cables to 'a' and 0 to 'b', needs an even"),
        (
            _wired("leaf a", "leaf b", "leaf2 c", "leaf2 d", "a e", "b e", "c e", "d f"),
            "the pod of 'a' has 2 cables to 'e' and 0 to 'f', needs an even spread",
        ),
        (
            [line.replace("s1,dgx", "s1,hgx-h200-8") for line in CABLES],
            "HB domains are 'hgx-h100-8' and 'hgx-h200-8', needs one product",
        ),
        ([line.replace("s0,dgx,nic1", "s0,other,nic1") for line in CABLES], "line 3: 's0' is of model 'other', and"),
        (["a_device,a_port,b_device,b_port", "s0,nic0,leaf,0"], "line 2: the model of 's0' is not listed, needs"),
        ([line.replace(",", ";") for line in CABLES], "has semicolons between columns, needs commas"),
        ([*CABLES, "s0,dgx,nic8,leaf,qm9700,3"], "line 18: port '3' of 'leaf' already has the cable of line 5"),
        ([*CABLES, "leaf,qm9700,60,leaf,qm9700,60"], "line 18: port '60' of 'leaf'"),
        ([*CABLES, "s0,dgx,nic8,s1,dgx,nic8"], "line 18: joins 's0' and 's1'"),
        ([*CABLES, "s0,dgx,nic8,leaf,qm9700,"], "line 18: b_port is missing"),
        ([*CABLES, "x,other,1,y,other,1"], "line 18: joins 'x' and 'y', which no cables join to an HB domain"),
        (CABLES[:-1], "'s1' has 7 cables and 's0' 8"),
        (CABLES[:1] + CABLES[2:9:2], "'s0' has 4 cables, needs a multiple of the 8 GPUs"),
        (CABLES[:1], "lists no cables, needs lines under the columns a_device, a_port, b_device, b_port; or"),
        ([line.replace("qm9700", "qm97") for line in CABLES], "the catalog has no switch of this name"),
    ],
)
def test_a_list_that_is_no_network(tmp_path, lines, sentence):
    with pytest.raises(coopt.InstanceError) as refused:
        _listed(tmp_path, lines)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "no such file"),
        ("{}", "holds no plan"),
        ("no json", "holds no plan"),
        ("[" * 200_000, "holds no plan"),
        ('{"parts": []}', "needs a plan that has one"),
        ('{"parts": [{"name": "a"}, {"name": "b"}]}', "the plan has 2 parts, needs existing[1].part"),
        ('{"parts": [{"name": "a", "design": null}]}', "the plan has no switched network"),
    ],
)
def test_a_file_that_holds_no_network(tmp_path, text, sentence):
    file = tmp_path / "built.json"
    if text is not None:
        file.write_text(text, "utf-8")
    with pytest.raises(coopt.InstanceError) as refused:
        coopt.load({**GIVEN, "existing": [{}, {"plan": str(file)}]})
    assert sentence in str(refused.value)
