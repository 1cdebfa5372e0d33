"""Plans as networks that stand."""

import json
import random

import pytest

import coopt
from coopt.network.plan_networks import design_of
from coopt.network.space import Space, families
from tests.network.designs.test_existing import GIVEN
from tests.network.test_cabling import _question


def _load(folder, design, network, gpus):
    part = {"name": "network", "design": design.model_dump(mode="json")}
    (folder / "built.json").write_text(json.dumps({"parts": [part]}), "utf-8")
    listed = {key: getattr(network, key) for key in ("hb_domains", "nics", "switches", "optics")}
    tables = {key: [entry.model_dump(mode="json") for entry in entries] for key, entries in listed.items()}
    workload = {**GIVEN["workload"], "global_batch": gpus}
    question = {**GIVEN, "workload": workload, "cluster": {"gpu": "h100-sxm", "gpus": gpus}}
    return coopt.load(
        {**question, "network": {"given": True, **tables}, "existing": {"plan": str(folder / "built.json")}}
    )


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
