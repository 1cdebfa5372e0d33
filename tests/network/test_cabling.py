"""Lists of cables: port by port what graph, counts, hall and bill say."""

import csv
import io
import random
from collections import Counter

import pytest
import tomlkit
from click.testing import CliRunner

import coopt
from coopt.cli.main import main
from coopt.network.cabling import cables
from coopt.network.graphs import whole_graph
from coopt.network.halls import network_hall
from coopt.network.parts import counted_units
from coopt.network.space import families
from tests.conftest import FEW_MAPPINGS
from tests.network.designs.test_existing import GIVEN

OPTIC = {"reach_m": 500.0, "usd": 100.0, "w": 8.0, "fibre": "x"}
SEEDS = (*range(12), 31, 50)
"""Random questions: 31 has rails on one tier, and 50 steps between pods that are not even."""


def question(seed, **network):
    """Networks of up to three tiers, on planes, with modules that break out and several products."""
    draw = random.Random(seed)
    planes = draw.choice([1, 2])
    switches = [
        {"name": f"s{ports}", "radix": ports, "port_gbit_s": 400.0 / planes, "cages": ports // 2}
        | {"usd": 9.0 * ports, "w": 50.0}
        for ports in draw.sample([4, 8, 16, 32], 2)
    ]
    return coopt.Instance.model_validate(
        {
            "schema": 1, "name": "cables", "cluster": {"gpu": "h100-sxm", "gpus": 8 * draw.choice([2, 3, 4, 8])},
            "workload": {"name": "w", "model": "gpt-22b", "global_batch": 192, "max_iteration_time_s": 100.0}
            | {"mapping": FEW_MAPPINGS, "allow_tp_across": False},
            "network": {
                "hb_domains": "hgx-h100-8", "fabrics": ["rail-only", "clos", "rail-optimized"],
                "nics": {"name": "nic", "gbit_s": 400.0, "ports": [1, 2], "usd": 900.0, "w": 20.0},
                "nic_planes": planes, "switches": switches,
                "optics": [
                    {"name": "single", "gbit_s": 400.0 / planes, **OPTIC},
                    {"name": "twin", "gbit_s": 800.0 / planes, "breakout": [2], **OPTIC},
                ],
                "oversubscription": 2.0, "bundles": draw.choice(["even", "any"]),
                "tier_switches": draw.choice(["same", "any"]),
                **network,
            },
            "objective": {"minimize": "power"},
        }
    )  # fmt: skip


def check_list(family, uplinks, rows):
    ends = [end for cable in rows for end in (cable.lower, cable.upper)]
    assert len({(end.device, end.port) for end in ends}) == len(ends) == 2 * len({cable.label for cable in rows})
    assert Counter(cable.level for cable in rows) == {
        number: level.links for number, level in enumerate(family.chain(uplinks).levels, start=1)
    }
    modules = Counter(product for _, _, product in {(end.device, end.module, end.product) for end in ends})
    units = counted_units(family, uplinks)
    assert modules == {name: count for (kind, name), count in units.items() if kind == "optics"}
    switches = Counter(model for device, model in {(end.device, end.model) for end in ends} if device[:2] != "hb")
    assert switches == {name: count for (kind, name), count in units.items() if kind == "switch"}
    bundles = Counter(frozenset((cable.lower.device, cable.upper.device)) for cable in rows if cable.level > 1)
    graph = whole_graph(family, uplinks)
    assert bundles == {
        frozenset((low, high)): edge["links"] for low, high, edge in graph.edges(data=True) if edge["level"] > 1
    }


def test_cables_graph_counts_and_bill_agree():
    seen = set()
    for seed in SEEDS:
        instance, draw = question(seed), random.Random(seed)
        listed = [family for family in families(instance) if family.tiers]
        if listed:
            family = draw.choice(listed)
            uplinks = draw.choice(family.uplink_choices)
            check_list(family, uplinks, list(cables(family, uplinks)))
            seen |= {family.tiers, family.fabric, f"breaks out: {family.breaks_out}", f"{family.nic_planes} planes"}
    kinds = {"clos", "rail-only", "rail-optimized", "breaks out: True", "breaks out: False", "2 planes"}
    assert seen >= {1, 2, 3, *kinds}


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cabling")
    instance = coopt.Instance.model_validate(GIVEN)
    (folder / "plan.json").write_text(coopt.solve(instance).model_dump_json(by_alias=True), "utf-8")
    (folder / "given.toml").write_text(tomlkit.dumps(GIVEN), "utf-8")
    return instance, [str(folder / "given.toml"), str(folder / "plan.json")]


def test_cabling_of_a_plan_in_every_form(planned):
    instance, files = planned
    texts = {
        form: CliRunner().invoke(main, ["cabling", *files, "--format", form]).stdout
        for form in ("csv", "netbox-devices", "netbox-interfaces", "netbox-cables", "dot", "slurm")
    }
    rows = {form: list(csv.DictReader(io.StringIO(text))) for form, text in texts.items()}
    family = next(families(instance))
    lengths = sum(network_hall(instance, family, 18).cables, Counter())
    assert Counter(int(row["length_m"]) for row in rows["csv"]) == lengths
    assert len(rows["netbox-devices"]) == 8 + 4 + 2
    ports = {(row["device"], row["name"]) for row in rows["netbox-interfaces"]}
    assert len(ports) == len(rows["netbox-interfaces"]) == 2 * (64 + 72)
    assert {(row["side_a_device"], row["side_a_name"]) for row in rows["netbox-cables"]} < ports
    assert texts["dot"].count(" -- ") == 64 + 72
    assert "nodes: hb[6-7]" in texts["slurm"]
    assert "children: leaf[0-3]" in texts["slurm"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [(["-o", "cables.txt"], "is no file name for format csv"), (["--part", "other"], "needs one of 'network'")],
)
def test_cabling_that_is_refused(planned, options, sentence):
    refused = CliRunner().invoke(main, ["cabling", *planned[1], *options])
    assert refused.exit_code == 1
    assert sentence in refused.stderr
