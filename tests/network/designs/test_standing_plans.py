"""Plans as networks that stand."""

import json
import random

import pytest

import coopt
from coopt.network.cabling import cables
from coopt.network.plan_networks import design_of
from coopt.network.space import Space, families
from coopt.report.cabling import WRITERS
from tests.network.designs.test_existing import GIVEN
from tests.network.test_cabling import _question


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


def test_a_plan_stands_as_it_was_built(tmp_path):
    stood, refused = set(), []
    for seed in range(60):
        instance, draw = _question(seed), random.Random(seed)
        listed = [family for family in families(instance) if family.tiers and family.alike]
        if not listed:
            continue
        family = draw.choice(listed)
        design = design_of(family, draw.choice(family.uplink_choices))
        try:
            given = Space(instance=_load(tmp_path, design, instance.network, family.gpus)).standing(family.gpus)
        except coopt.InstanceError as error:
            refused.append(str(error))
            continue
        again = design_of(given, given.uplink_choices[0])
        # a plan does not say how planes share the switches of a single tier
        assert again.fabric.tier == design.fabric.tier, seed
        assert family.tiers == 1 or again == design, seed
        stood |= {family.tiers, family.fabric, f"{family.nic_planes} planes"}
    assert stood >= {1, 2, 3, "clos", "rail-only", "rail-optimized", "2 planes"}
    assert len(refused) <= 3
    assert all("no design says" in text or "needs one that counts" in text for text in refused)


def test_a_list_of_cables_stands_as_it_lists(tmp_path):
    stood, refused, files = set(), [], {name: tmp_path / f"{name}.csv" for name in ("csv", "devices", "cables")}
    for seed in range(45):
        instance, draw = _question(seed), random.Random(seed)
        listed = [family for family in families(instance) if family.tiers and family.alike]
        if not listed:
            continue
        family = draw.choice(listed)
        uplinks = draw.choice(family.uplink_choices)
        rows = [*cables(family, uplinks)]
        draw.shuffle(rows)
        for name, file in files.items():
            file.write_text(WRITERS[name if name == "csv" else f"netbox-{name}"](rows), "utf-8")
        netbox = {"devices": str(files["devices"])} if seed % 2 else {}
        try:
            found = _given(files["cables" if netbox else "csv"], instance.network, family.gpus, **netbox)
            given = Space(instance=found).standing(family.gpus)
        except coopt.InstanceError as error:
            refused.append(str(error))
            continue
        again, chain = given.chain(given.uplink_choices[0]), family.chain(uplinks)
        counts = [[(tier.switches, tier.links) for tier in one.levels] for one in (again, chain)]
        assert counts[0] == counts[1], seed
        # a leaf of a single port may be of any fabric
        assert given.fabric == family.fabric or family.tiers == 1 or family.down == 1, seed
        stood |= {family.tiers, family.fabric, f"{family.nic_planes} planes"}
    assert stood >= {1, 2, 3, "clos", "rail-only", "rail-optimized", "2 planes"}
    assert len(refused) <= 3


CABLES = ["a_device,a_model,a_port,b_device,b_model,b_port"] + [
    f"s{server},dgx,nic{number},leaf,qm9700,{8 * server + number}" for server in (0, 1) for number in range(8)
]
NAMES = {"dgx": "hgx-h100-8", "console": ""}


def _listed(folder, lines, **keys):
    (folder / "ours.csv").write_text("\n".join(lines), "utf-8")
    question = {**GIVEN, "cluster": {"gpu": "h100-sxm", "gpus": 16}}
    row = {"cables": str(folder / "ours.csv"), "nic": "cx7-400g", "names": NAMES}
    return coopt.load({**question, "workload": {**GIVEN["workload"], "global_batch": 16}, "existing": {**row, **keys}})


def test_a_list_of_other_names_is_planned_on(tmp_path):
    instance = _listed(tmp_path, [*CABLES, "c,console,1,leaf,qm9700,mgmt"])
    plan = coopt.solve(instance)
    (leaf,) = plan.design.fabric.tier
    assert (leaf.switches, leaf.down_ports, plan.design.hb_domain.name) == (1, 16, "hgx-h100-8")
    assert coopt.verify(instance, plan).accepted


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([*CABLES, "s0,dgx,nic8,leaf,qm9700,3"], "line 18: port '3' of 'leaf' has the cable of line 5"),
        ([*CABLES, "leaf,qm9700,60,leaf,qm9700,60"], "line 18: port '60' of 'leaf'"),
        ([*CABLES, "s0,dgx,nic8,s1,dgx,nic8"], "line 18: joins 's0' and 's1'"),
        ([*CABLES, "s0,dgx,nic8,leaf,qm9700,"], "line 18: b_port is missing"),
        ([*CABLES, "x,other,1,y,other,1"], "line 18: joins 'x' and 'y'"),
        (CABLES[:-1], "'s1' has 7 cables and 's0' 8"),
        (CABLES[:1] + CABLES[2:9:2], "'s0' has 4 cables, needs a multiple of the 8 GPUs"),
        ([CABLES[0], "leaf,qm9700,1,spine,qm9700,1"], "has no HB domain among 'qm9700', needs"),
        (CABLES[:1], "lists no cables, needs the columns a_device, a_port, b_device, b_port; side_a_device"),
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
        ('{"parts": [{"name": "a"}, {"name": "b"}]}', "the plan has 2 parts, needs existing[0].part"),
        ('{"parts": [{"name": "a", "design": null}]}', "holds no network of switches"),
    ],
)
def test_a_file_that_holds_no_network(tmp_path, text, sentence):
    file = tmp_path / "built.json"
    if text is not None:
        file.write_text(text, "utf-8")
    with pytest.raises(coopt.InstanceError) as refused:
        coopt.load({**GIVEN, "existing": {"plan": str(file)}})
    assert sentence in str(refused.value)
