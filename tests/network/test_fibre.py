"""Fibre between modules: counted by hand in three designs, and lists of it that do not suffice."""

import pytest

import coopt
from coopt.instance.texts import InstanceError
from tests.conftest import accepted, ask, small_model, switch
from tests.network.test_cabling import question

HALL = "hall = { racks_per_domain = 1, racks_per_row = 2, in_rack_m = 2, rise_m = 2.5, rack_pitch_m = 0.6 }"
DESIGN = """\
schema = 1
[[design]]
id = "counted"
gpus_per_domain = 4
"""


def _units(tmp_path, design: str) -> dict[str, tuple[int, float]]:
    """Units of fibre in the bill of a design, and their price."""
    file = tmp_path / "design.toml"
    file.write_text(f"{DESIGN}{HALL}\n{design}", "utf-8")
    return {item.name: (item.count, item.usd) for item in coopt.bom(file).items if item.kind == "fibre"}


def test_links_of_four_lanes_take_a_cable_each(tmp_path) -> None:
    """Two racks side by side: the leaf stands at the first, and cables are 2 m and 5.6 m long, sold as 7 m."""
    design = """
    domains = 2
    fabric = "clos"
    nic = "cx7-400g"
    fibre = ["om4-mtp-8", "os2-mtp-8", { extends = "om4-mtp-8", name = "thin", pairs = 2, usd = 1 }]
    [[design.tiers]]
    ports = 8
    down = 8
    switch = { name = "s", radix = 8, port_gbit_s = 400, usd = 1, w = 1 }
    optic = "800g-sr8"
    optic_below = "400g-sr4"
    """
    assert _units(tmp_path, design) == {"om4-mtp-8": (8, 8 * 78.0), "om4-mtp-8 (m)": (4 * 2 + 4 * 7, 7.0 * 36)}


def test_links_of_one_lane_take_splitters_at_both_ends(tmp_path) -> None:
    """Four NICs with a module each lead to eight switches, each of which has half a module's links."""
    design = """
    domains = 1
    nic_ports = 8
    planes = 8
    fabric = "clos"
    nic = "cx8-800g"
    fibre = ["os2-lc", "os2-mtp-8", "os2-split-4"]
    [[design.tiers]]
    ports = 8
    down = 8
    switch = { name = "s", radix = 8, port_gbit_s = 100, cages = 1, usd = 1, w = 1 }
    optic = "800g-dr8"
    """
    lanes, modules, connectors = 4 * 8, 4 + 8, 2
    assert _units(tmp_path, design) == {
        "os2-lc": (lanes, lanes * 10.0),
        "os2-lc (m)": (lanes * 2, lanes * 2 * 0.75),
        "os2-split-4": (connectors * modules, connectors * modules * 78.0),
    }


def test_links_of_eight_lanes_take_two_cables_of_four(tmp_path) -> None:
    design = """
    domains = 2
    fabric = "clos"
    nic = "cx8-800g"
    fibre = ["os2-lc", "os2-mtp-8"]
    [[design.tiers]]
    ports = 8
    down = 8
    switch = { name = "s", radix = 8, port_gbit_s = 800, usd = 1, w = 1 }
    optic = "800g-dr8"
    """
    assert _units(tmp_path, design) == {"os2-mtp-8": (16, 16 * 102.0), "os2-mtp-8 (m)": (2 * 36, 3.0 * 72)}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cables": "tier"}, r"network\.fibre: is priced by .* 'hall'"),
        ({"optics": ["400g-sr4", "400g-dr4"]}, r"joins .* of 100gbase-sr1.*om4-mtp-8"),
        (
            {"nics": "cx8-800g", "nic_planes": 8, "optics": "800g-dr8"},
            r"splits 4 pairs .* of 100gbase-dr, .*os2-split-4",
        ),
        ({"optics": "400g-fr4"}, r"of 1 pair of .*os2-lc"),
        ({"fibre": {"extends": "os2-mtp-8", "name": "own (m)"}}, r"name = 'own \(m\)'"),
        ({"link_reach_m": [50, 50, 50]}, r"network\.fibre: .* with network\.link_reach_m.*no fibre"),
    ],
)
def test_fibre_that_does_not_suffice_is_refused(changes, why) -> None:
    asked = {
        "fibre": "os2-mtp-8",
        "optics": "400g-dr4",
        "nics": "cx7-400g",
        "nic_planes": 1,
        "switches": "51t",
    } | changes
    with pytest.raises(ValueError, match=why):
        question(0, **asked)


def test_a_bill_that_has_splitters_does_not_leave_them_out() -> None:
    box = {"name": "s", "radix": 64, "cages": 8, "port_gbit_s": 100, "usd": 100.0, "w": 10.0}
    asked = {"optics": "800g-dr8", "nics": "cx8-800g", "nic_planes": 8, "switches": box, "fabrics": "clos"}
    for fibre in ([], ["os2-lc", "os2-mtp-8", "os2-split-4"]):
        bill = coopt.bom(coopt.solve(question(0, **asked, fibre=fibre)))
        assert any("split" in omitted for omitted in bill.not_counted) == (not fibre)


def test_a_plan_of_least_power_is_explained_beside_fibre_that_draws_none() -> None:
    asked = {"fibre": "os2-mtp-8", "optics": "400g-dr4", "nics": "cx7-400g", "nic_planes": 1, "switches": "51t"}
    found = coopt.explain(question(0, **asked))
    assert found.status == "optimal"
    assert {one.unit for one in found.prices} == {"W"}


FIBRED = {"fibre": "os2-mtp-8", "optics": "400g-dr4", "link_ends": "any"}


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_links_into_a_core_have_fibre_as_long_as_in_the_hall(factor) -> None:
    """Two servers, each with one link of 400 Gbit/s for its GPUs, 19 racks aside and one: 19.4 m and 8.6 m. Fibre is as
    dear as optics turn out."""
    names = ("one", "other")
    job = {"model": small_model(), "global_batch": 64, "max_iteration_time_s": 10.0, "gpus": 8}
    instance = ask(
        cluster__gpus=16,
        workload=[{"name": name, **job} for name in names],
        network__hb_domains="hgx-h100-8",
        sharing={"mode": "partition", "core": {"switch": "16-port", "gbit_s_per_gpu": 50}},
        robust={"prices": {"optics": [1.0, factor]}} if factor > 1 else {},
        **{f"network__{key}": value for key, value in FIBRED.items()},
    )
    bought = {item.name: (item.count, item.usd) for item in accepted(instance).cost.items if item.kind == "fibre"}
    assert bought == {"os2-mtp-8": (2, 2 * 102 * factor), "os2-mtp-8 (m)": (30, 30 * 3 * factor)}


@pytest.mark.parametrize("gpus", [16, 32])
def test_what_stands_has_its_fibre_and_what_is_new_buys_its_own(gpus) -> None:
    box = switch(16, 11_000)
    tier = {"ports": 16, "switch": box | {"name": "no longer listed"}, "optic": "400g-dr4"}
    stands = {"id": "ours", "hb_domain": "hgx-h100-8", "domains": 2, "gpus_per_domain": 8, "fabric": "clos"}
    instance = ask(
        cluster__gpus=gpus,
        workload__0__max_iteration_time_s=100.0,
        network__hb_domains="hgx-h100-8",
        network__switches=box,
        network__fabrics="rail-only",
        existing={**stands, "nic": "cx7-400g", "tiers": [tier]},
        **{f"network__{key}": value for key, value in FIBRED.items()},
    )
    plan = accepted(instance)
    cables = sum(item.count for item in plan.cost.items if item.name == "os2-mtp-8")
    assert cables == (0 if gpus == 16 else sum(tier.links for tier in plan.design.fabric.tier))


def test_regret_of_fibre_is_certified() -> None:
    """Fibre is as dear as optics turn out, in exact fractions too."""
    instance = ask(
        cluster__gpus=16,
        workload__0__max_iteration_time_s=100.0,
        network__hb_domains="hgx-h100-8",
        network__fabrics="rail-only",
        robust={"prices": {"optics": [0.5, 2.0]}, "aim": "regret"},
        **{f"network__{key}": value for key, value in FIBRED.items()},
    )
    assert coopt.certify(instance, accepted(instance)).ok


def test_fibre_may_have_the_name_of_an_optic() -> None:
    """Two modules of A with a cable cost more than two of B with theirs."""
    job = {"model": small_model(), "global_batch": 64, "max_iteration_time_s": 10.0, "gpus": 16}
    module = {"gbit_s": 400, "reach_m": 500, "w": 5}
    cables = {"pairs": 1, "usd": 10}
    instance = ask(
        cluster__gpus=16,
        workload=[{"name": "w", **job}],
        network__hb_domains="hgx-h100-8",
        network__optics=[
            {**module, "name": "A", "usd": 900, "fibre": "a"},
            {**module, "name": "B", "usd": 700, "fibre": "b"},
        ],
        network__fibre=[{**cables, "name": "A", "carries": "a"}, {**cables, "name": "other", "carries": "b"}],
        network__link_ends="any",
        sharing={"mode": "partition"},
    )
    assert {item.name for item in accepted(instance).cost.items if item.kind in ("optics", "fibre")} == {"B", "other"}


def test_fibre_of_a_design_needs_a_hall(tmp_path) -> None:
    file = tmp_path / "design.toml"
    file.write_text(f'{DESIGN}domains = 2\nfabric = "clos"\nfibre = "os2-mtp-8"\ntiers = [{{ ports = 8 }}]\n', "utf-8")
    with pytest.raises(InstanceError, match=r"design 'counted': fibre: .* needs `hall` or no fibre"):
        coopt.bom(file)


def test_a_design_says_where_a_nic_has_no_ethernet_port_of_its_rate(tmp_path) -> None:
    told = {}
    for ports in (1, 2):
        switch = f'{{ name = "s", radix = 8, port_gbit_s = {800 // ports}, usd = 1, w = 1, protocol = "ethernet" }}'
        tier = f"tiers = [{{ ports = 8, down = 8, switch = {switch} }}]"
        file = tmp_path / f"{ports}.toml"
        text = f'domains = 1\nfabric = "clos"\nnic = "cx8-800g"\nnic_ports = {ports}\nplanes = {ports}\n{tier}'
        file.write_text(f"{DESIGN}{text}", "utf-8")
        told[ports] = " ".join(coopt.bom(file).notes)
    assert "of 400 Gbit/s" in told[1]
    assert "nic_ports = 2" in told[1]
    assert "Ethernet" not in told[2]
