"""Random networks that stand, of any ports, planes, rails and NICs: bills, lists of cables and verdict agree.

`python -m tests.network.designs.nic_ports 300`
"""

import json
import random
import sys
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp

import coopt
from coopt.instance.designs import PublishedDesign
from coopt.network.cabling import cables
from coopt.network.design_bills import design_bill
from coopt.network.plan_networks import design_of
from coopt.network.space import Space
from coopt.network.standing import standing_family
from tests.conftest import FEW_MAPPINGS
from tests.network.designs.test_existing import GIVEN
from tests.network.test_cabling import check_list


def drawn(seed):
    """A network that stands, of any ports, planes, rails and NICs; it may be one that cannot be wired."""
    draw = random.Random(seed)
    per_gpu, planes, each = draw.choice([1, 1, 2]), draw.choice([1, 1, 2, 4]), draw.choice([1, 2, 2, 4])
    gpus_per_domain, domains = draw.choice([2, 4, 8]), draw.choice([2, 4, 6, 8])
    in_plane = per_gpu * each
    cages = draw.choice([n for n in (1, 2, 4) if planes * each % n == 0])
    port, product = 400.0, {"usd": 10.0, "w": 7.0}
    twin = {"name": "twin", "gbit_s": 800.0, "breakout": [2], "reach_m": 500.0, "fibre": "x", "usd": 5.0, "w": 9.0}
    single = {"name": "single", "gbit_s": 400.0, "reach_m": 500.0, "fibre": "x", "usd": 3.0, "w": 5.0}
    tiers = [
        {"ports": ports, "gbit_s": port, "optic": draw.choice([single, twin])}
        | {"switch": {"name": f"s{ports}", "radix": ports, "port_gbit_s": port, "usd": 90.0, "w": 50.0}}
        for ports in draw.choices([16, 32, 64, 128, 256], k=draw.choice([1, 2, 2, 3]))
    ]
    tiers[0]["optic_below"] = draw.choice([single, twin])
    fabric = draw.choice(["clos", "rail-optimized", "rail-only"])
    row = {
        "id": "drawn",
        "hb_domain": {"name": "domain", "size": gpus_per_domain, "gbyte_s": 450.0, "usd_per_gpu": 0.0}
        | {"w_per_gpu": 0.0, "racks": 0.25},
        "gpus_per_domain": gpus_per_domain, "domains": domains, "nics_per_gpu": per_gpu, "nic_ports": in_plane * planes,
        "planes": planes, "fabric": fabric, "bundles": draw.choice(["even", "any"]),
        "nic": {"name": "nic", "gbit_s": port * each * planes, "ports": [planes * each], "cages": cages, **product},
        "tiers": tiers,
    }  # fmt: skip
    if draw.random() < 0.5:
        row["rails"] = gpus_per_domain * in_plane
        if fabric == "clos":  # ports take turns in leaves
            row["rails"] = draw.choice([n for n in (1, 2, 4, 8) if in_plane % n == 0])
    if draw.random() < 0.5:
        row["leaf_domains"] = draw.choice([1, 2, domains])
    failures = {"rates": {"extends": "llama-3", "name": "ours", "flap": {"per_year": 40.0}}}
    days = {"train_tokens": 1e11, "train_days": 3650}
    return {
        **GIVEN,
        "cluster": {"gpu": "h100-sxm", "gpus": gpus_per_domain * domains},
        "workload": {**GIVEN["workload"], "model": "gpt-22b", "global_batch": 192, "mapping": FEW_MAPPINGS}
        | (days if seed % 2 else {}),
        "existing": row,
    } | ({"availability": failures} if seed % 2 else {})


def outcome(seed, folder):
    """Why a network is refused, or what it has, once bills, cables and verdict agree."""
    table = drawn(seed)
    row = {key: value for key, value in table["existing"].items() if key != "hb_domain"}
    try:
        bill = design_bill(PublishedDesign.model_validate(row))
        instance = coopt.load(table)
        family = standing_family(instance, instance.cluster.gpus[0])
    except coopt.InstanceError as error:
        return str(error)
    uplinks = family.uplink_choices[0]
    check_list(family, uplinks, [*cables(family, uplinks)])
    plan = coopt.solve(instance)
    if plan.cost is None:
        return "no mapping"
    sold = {"nic", "switch", "optics"}
    counts = [
        {(item.kind, item.item): (item.count, item.w) for item in items if item.kind in sold}
        for items in (bill.items, plan.cost.items)
    ]
    assert counts[0] == counts[1], seed
    assert coopt.verify(instance, plan).accepted, seed
    coopt.faults(instance, plan)
    _check_as_plan(plan, family, table, folder)
    nic = plan.design.fabric.nic
    return nic.per_gpu, nic.planes, nic.ports_in_plane, plan.design.fabric.kind, plan.design.fabric.tiers


def _check_as_plan(plan, family, table, folder):
    """The plan as what stands is the same network again."""
    file = folder / "built.json"
    file.write_text(json.dumps({"parts": [{"name": "n", "design": plan.design.model_dump(mode="json")}]}), "utf-8")
    stands = table["existing"]
    products = {"switches": [tier["switch"] for tier in stands["tiers"]], "nics": stands["nic"]}
    ends = [tier.get("optic_below", tier["optic"]) for tier in stands["tiers"]] + [t["optic"] for t in stands["tiers"]]
    optics = {optic["name"]: optic for optic in ends}
    listed = {"given": True, "hb_domains": stands["hb_domain"], "optics": [*optics.values()], **products}
    if plan.design.fabric.pod_bundle > 1:  # some of which are refused
        return
    again = coopt.load({**table, "network": listed, "existing": {"plan": str(file)}})
    same = Space(instance=again).standing(family.gpus)
    assert design_of(same, same.uplink_choices[0]) == plan.design


def campaign(count, folder):
    """What becomes of so many networks: built, without a mapping, refused, or wrong."""
    found = Counter()
    for seed in range(count):
        try:
            one = outcome(seed, folder)
        except (AssertionError, coopt.InstanceError) as error:
            found["wrong"] += 1
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
        else:
            found["built" if isinstance(one, tuple) else "refused or without a mapping"] += 1
    return found


if __name__ == "__main__":
    sys.stdout.write(f"{dict(campaign(int(sys.argv[1]), Path(mkdtemp())))}\n")
