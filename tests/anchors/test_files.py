"""Lists of cables and layouts of pipelines, which other tools write, read as what they count to by hand."""

from pathlib import Path
from typing import Any

import pytest

from coopt.instance.layouts import chunks_of_stage, layout_fault, layout_of, layout_of_ends, stages_of
from coopt.instance.standing_plans import with_plans
from coopt.instance.texts import InstanceError

MODELS = {"n": "hgx-h100-8", "l": "64x400g", "s": "64x400g", "c": "64x400g"}
"""Servers, leaves, spines and cores, by the first letter of their names."""
PRODUCTS = {"n": "400g-sr4", "l": "800g-sr8", "s": "800g-dr8", "c": "400g-dr4"}
Wires = list[tuple[str, str, int]]
RAILS: Wires = [(f"n{n}", f"l{rail}", 1) for n in (1, 2) for rail in range(8)]
NEXT: Wires = [("n1", "l0", 6), ("n1", "l1", 2), ("n2", "l1", 4), ("n2", "l2", 4), ("n3", "l2", 2), ("n3", "l3", 6)]
PODS: Wires = [("n1", "l1", 4), ("n1", "l2", 4), ("l1", "s1", 2), ("l1", "s2", 2), ("l2", "s1", 2), ("l2", "s2", 2)]
LISTS: dict[str, tuple[Wires, dict[str, Any], list[tuple[int, int, int]], int]] = {
    # what the design is; ports, those down and up of each tier; ports of a GPU
    "a leaf for each GPU of two servers": (
        [*RAILS, *((f"l{rail}", "s", 2) for rail in range(8))],
        {"fabric": "rail-optimized", "planes": 1, "leaf_domains": 2, "domains": 2},
        [(4, 2, 2), (16, 16, 0)], 1,
    ),
    "three uplinks are uneven on two spines": (
        [*RAILS, *((f"l{rail}", spine, links) for rail in range(8) for spine, links in (("s1", 2), ("s2", 1)))],
        {"fabric": "rail-optimized", "planes": 1, "leaf_domains": 2, "bundles": "any"},
        [(5, 2, 3), (16, 16, 0)], 1,
    ),
    "leaves that reach some spines": (
        [("n1", "l1", 4), ("n1", "l2", 4), ("l1", "s1", 1), ("l1", "s2", 1), ("l2", "s2", 1), ("l2", "s3", 1)],
        {"planes": 1, "domains": 1},
        [(6, 4, 2), (2, 2, 0)], 1,
    ),
    "one switch": ([("n1", "l", 8), ("n2", "l", 8)], {"fabric": "clos", "planes": 1}, [(16, 16, 0)], 1),
    "leaves of parts of servers": (
        [*NEXT, *((f"l{leaf}", "s", 6) for leaf in range(4))],
        {"planes": 1, "domains": 3},
        [(12, 6, 6), (24, 24, 0)], 1,
    ),
    "a plane for each port of a NIC": (
        [(f"n{n}", f"l{plane}", 1) for n in (1, 2) for _ in range(8) for plane in (1, 2)],
        {"planes": 2, "domains": 2},
        [(16, 16, 0)], 2,
    ),
    "pods below cores": (
        [*PODS, ("s1", "c1", 2), ("s1", "c2", 2), ("s2", "c1", 2), ("s2", "c2", 2)],
        {"planes": 1, "domains": 1},
        [(8, 4, 4), (8, 4, 4), (4, 4, 0)], 1,
    ),
}  # fmt: skip
SKEWED: dict[str, Wires] = {
    "a spine without a cable of a leaf": [
        *(("n1", "l1", 4), ("n1", "l2", 4), ("l1", "s1", 2), ("l2", "s1", 1), ("l2", "s2", 1))
    ],
    "a core with two cables more of a pod": [
        *(("n1", leaf, 4) for leaf in ("l1", "l2")),
        *((leaf, f"s{spine}", 1) for leaf in ("l1", "l2") for spine in (1, 2, 3)),
        *((f"s{spine}", core, 1) for spine in (1, 2, 3) for core in ("c0", f"c{spine}")),
    ],
}  # fmt: skip


def read(wires: Wires, folder: Path) -> dict[str, Any]:
    """The design of a list, which has each cable of some wires on a line of its own."""
    lines = ["a_device,a_port,a_model,a_product,b_device,b_port,b_model,b_product"]
    for number, (low, high, count) in enumerate(wires):
        for link in range(count):
            ends = (f"{one},{number:03}-{link},{MODELS[one[0]]},{PRODUCTS[one[0]]}" for one in (low, high))
            lines.append(",".join(ends))
    (folder / "ours.csv").write_text("\n".join(lines), "utf-8")
    (row,) = with_plans({"existing": {"cables": "ours.csv", "nic": "cx7-400g"}}, folder)["existing"]
    return dict(row)


@pytest.mark.parametrize("case", LISTS)
def test_cables_count_to_the_design_that_they_join(case: str, tmp_path: Path) -> None:
    wires, expected, tiers, ports = LISTS[case]
    row = read(wires, tmp_path)
    assert {key: row.get(key) for key in expected} == expected
    assert ("leaf_domains" in row, "bundles" in row) == ("leaf_domains" in expected, "bundles" in expected)
    assert [(tier["ports"], tier["down"], tier.get("up", 0)) for tier in row["tiers"]] == tiers
    assert row["nic_ports"] == ports
    assert {tier["gbit_s"] for tier in row["tiers"]} == {400 / ports}
    lows, highs = ([PRODUCTS[one] for one in places[: len(tiers)]] for places in ("nls", "lsc"))
    assert [(tier["optic_below"], tier["optic"]) for tier in row["tiers"]] == list(zip(lows, highs, strict=True))


@pytest.mark.parametrize("case", SKEWED)
def test_cables_that_go_round_unevenly_are_no_design(case: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="needs"):
        read(SKEWED[case], tmp_path)


def test_layouts_of_pipelines_are_those_of_megatron() -> None:
    """Its recipe of DeepSeek-V3 has 16 stages of 2 chunks; Llama 3 takes a layer from the first and the last of 16
    stages (arXiv 2407.21783, section 3.3.2).
    """
    deepseek = layout_of("Et*3|(tt|)*29m|L")
    assert [chunks_of_stage(deepseek, p, None, None) for p in (1, 8, 16, 32, 5)] == [0, 4, 2, 1, 0]
    assert [stage.all_layers for stage in stages_of(deepseek, 16)] == [5, *[4] * 13, 3, 2]
    assert layout_fault("Et*3|(tt|)*29m|L", 61, 1, (16,), (2,)) == ""
    llama = layout_of(layout_of_ends(126, 16, 7, 7, 0))
    assert [chunk.layers for chunk in llama] == [7, *[8] * 14, 7]
    assert [chunk.layers for chunk in layout_of(layout_of_ends(10, 2, 4, 0, 0))] == [4, 6]
    faults = {"EttL": "", "E|t|t|L": "", "E||t|t|L": "needs at most 4", "Et|t|L": "needs as many"}
    for text, fault in faults.items():
        pp = {"EttL": (1,), "Et|t|L": (2,)}.get(text)
        assert fault in layout_fault(text, 2, 0, pp, None)
        assert bool(fault) == bool(layout_fault(text, 2, 0, pp, None))
