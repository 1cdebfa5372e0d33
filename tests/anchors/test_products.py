"""HB domains, NICs, optics, switches and panels as vendors, papers and bills of materials state them.

Sources: DGXC = the system table of github.com/NVIDIA/dgxc-benchmarking; IHBD = InfiniteHBD (arXiv 2502.03885);
TO = TopoOpt (arXiv 2202.00433), 200 Gbit/s row; RO = Rail-only (arXiv 2307.12169), 694 USD a 400G port and 199 USD a
transceiver; BOM = the H100 sheet of Aug 2024; NV = docs.nvidia.com/networking/display/<part>; LUX = luxoptx, 2025/26.
"""

from typing import Any

import pytest

from coopt.instance.catalog import entries
from coopt.instance.doubts import price_bases

RO_PORT = 694.0
NVLINK = (10.63, 75.95 / 900)  # USD and W for a GB/s in NVL72 (IHBD)
OPTICAL_TIER = (648 * 850 / 72 / 900, 648 * 30 / 72 / 900)  # 648 modules of 1.6T for 72 GPUs (SemiAnalysis)
HOST_USD = 310_000 / 8 - 30_000 - 1750  # a server of 8 H100 with its NICs (BOM), less GPU and NIC
HOST_W = 575 - 22.5  # beyond the 700 W of the GPU (SemiAnalysis on 100k H100s), less the NIC


def products(kind: str) -> dict[str, Any]:
    return dict(entries(kind))


HB = {  # GPUs, GB/s both ways of all links of a GPU, USD and W of the interconnect a GPU, racks
    "hgx-a100-8": (8, 12 * 50, 0, 0, 1 / 4),  # 12 NVLinks of 50 GB/s both ways
    "hgx-h100-8": (8, 18 * 50, 0, 0, 1 / 4),  # DGXC: 18 NVLinks
    "hgx-h200-8": (8, 18 * 50, 0, 0, 1 / 4),
    "hgx-b200-8": (8, 1800, 0, 0, 1 / 4),  # DGXC: NVLink 5
    "hgx-b300-8": (8, 1800, 0, 0, 1 / 4),
    "hgx-mi300x-8": (8, 2 * 7 * 64, 0, 0, 1 / 4),  # 7 links of 64 GB/s each way
    "hgx-mi355x-8": (8, 2 * 7 * 76.8, 0, 0, 8 / 64),  # racks of 64 (AMD, as quoted)
    "gb200-nvl72": (72, 1800, 9563, 75.95, 1),  # DGXC; IHBD, row NVL-72
    "gb300-nvl72": (72, 1800, 9563, 75.95, 1),
    "vr200-nvl72": (72, 3600, 19_134, 151.9, 1),  # NVIDIA at CES 2026; twice the GB/s of NVL72
    "nvl576": (576, 1800, 30_418, 413, 8),  # IHBD, row NVL-576
}
STUDIES = {  # GPUs of the H100 class, optical tiers above the electrical one
    **{"h100-hb16": (16, 0), "h100-hb32": (32, 0), "h100-hb64": (64, 0)},
    **{"h100-hb128": (128, 1), "gh200-256": (256, 1), "h100-hb512": (512, 2)},
}
HOSTS = {  # USD and W of the rest of a server or rack for each GPU, where it is not that of the H100 server
    "hgx-a100-8": (20_900 - 13_750 - 815, 6500 / 8 - 400 - 20),  # an A100 in a DGX (Epoch AI, 2022); DGX A100 6.5 kW
    "hgx-b200-8": (HOST_USD, 14_300 / 8 - 1000 - 22.5),  # DGX B200 14.3 kW
    "hgx-b300-8": (HOST_USD, 56_000 / 32 - 1100 - 30),  # DGX B300: about 56 kW for four
    "gb200-nvl72": (0, 132_000 / 72 - 1200 - 75.95 - 22.5),  # 132 kW a rack; its price is in that of the GPU
    "gb300-nvl72": (0, 142_000 / 72 - 1400 - 75.95 - 30),  # up to 142 kW a rack
    "vr200-nvl72": (HOST_USD, 190_000 / 72 - 1800 - 151.9 - 60),  # 190 kW a rack, reported
}
KG = 0.45359237  # of a pound
POUNDS = {  # data sheet of the DGX A100, user guides of DGX H100, H200 and B200; ServeTheHome on NVL72, as quoted
    **{"hgx-a100-8": 271.5, "hgx-h100-8": 287.6, "hgx-h200-8": 287.6, "hgx-b200-8": 313.9},
    **{"gb200-nvl72": 3000, "gb300-nvl72": 3000},
}
TO_NICS = {  # GB/s of a GPU to its NICs: nvbandwidth has 55.63 GB/s over PCIe 5.0 x16, and PCIe 6.0 twice that
    **dict.fromkeys(("hgx-mi300x-8", "hgx-mi355x-8", "gb200-nvl72"), 55),
    **dict.fromkeys(("hgx-b300-8", "gb300-nvl72"), 2 * 55),
}
NICS = {  # GB/s one way, lanes of Gbit/s, ports it can be run with, USD, W
    "cx6-200g": (25, (50,), (1,), 815, 20),  # Calculon: 25 GB/s; TO; recalled
    "cx7-400g": (50, (100,), (1,), (1500 + 2000) / 2, (20 + 25) / 2),  # DGXC: 8x400G for 8 GPUs; recalled
    "cx8-800g": (100, (100, 200), (1, 2, 4, 8), 2500, 30),  # DGXC; Hot Chips 2025: up to 8 ports; estimates
    "cx9-800g": (100, (), (1,), 3000, 40),  # data sheet, as quoted; estimates
}
OPTICS = {  # Gbit/s, lanes of, links it may be split into, metres, USD, W
    "400g-199": (400, None, (), 500, 199, 9),  # RO; NV MMS4X00-NS400
    "400g-dac": (400, 100, (), 3, 272 / 2, 0),  # NV MCP7Y00; a 5 m cable of HammingMesh (arXiv 2209.01346), half
    "400g-sr4": (400, 100, (), 50, 600, 8),  # NV MMA4Z00-NS400; LUX, low end
    "400g-dr4": (400, 100, (), 500, 1270 / 2, 10),  # AscentOptics; BOM, half a link
    "400g-fr4": (400, None, (), 2000, 800, 12),  # AscentOptics; LUX, high end
    "800g-sr8": (800, 100, (2,), 50, (700 + 900) / 2, 15),  # NV MMA4Z00-NS; LUX
    "800g-dr8": (800, 100, (2, 4, 8), 500, (1250 + 1150) / 2, 17),  # NV MMS4X00-NM; LUX, two midpoints
    "800g-fr4": (800, 100, (2,), 2000, (1500 + 1900) / 2, 17),  # NV MMS4X50-NM; LUX
    "200g-aoc": (200, 50, (), 100, 198, 6),  # NV HDR cables: at most 6 W; TO
    "800g-dac": (800, 100, (), 2, 150, 0),  # NV MCP4Y10; estimate
    "800g-aec": (800, None, (), 7, 300, 15 / 2),  # a bank's note of 2026: 5 to 7 m, half the watts of an optic
    "1.6t-dr8": (1600, 200, (2, 4, 8), 500, 850, 30),  # SemiAnalysis, as quoted
    "800g-dr4": (800, 200, (2, 4), 500, 850, 30 / 2),  # half a 1.6T DR8
    "400g-zr": (400, None, (), 120_000, 4000, 19),  # OIF 400ZR; recalled
    "400g-zr-plus": (400, None, (), 800_000, 6000, 21),  # OpenZR+; recalled
    "800g-zr": (800, None, (), 120_000, 9000, 30),  # OIF 800ZR; recalled
}
TWIN = {"800g-sr8", "800g-dr8", "800g-fr4"}  # NV: two MPO-12/APC; of 2xFR4 two pairs
SWITCHES = {  # ports, Gbit/s of a port, lanes of, Tbit/s of the box, USD, W, rack units
    "64x400g": (64, 400, None, 25.6, 64 * RO_PORT, 747, 1),  # RO; QM9700 data sheet, typical
    "256x400g": (256, 400, 100, 102.4, 256 * RO_PORT, 2 * 940, 4),  # Tomahawk 6: twice an SN5600
    "qm9700": (64, 400, 100, 25.6, 36_000, 747, 1),  # NV; BOM: FS price
    "51t": (64, 800, 100, 51.2, 128 * RO_PORT, 940, 2),  # SN5600, typical
    "64x800g": (64, 800, 100, 51.2, 128 * RO_PORT, 940, 2),
    "128x400g": (128, 400, 100, 51.2, 128 * RO_PORT, 940, 2),
    "144x800g": (144, 800, 200, 115.2, (120_000 + 250_000) / 2, 2900, 4),  # Q3400-RA
    "40x200g": (40, 200, 50, 8.0, 40 * 374, 253, 1),  # QM8700: 16 Tbit/s both ways; TO: 374 USD a port
    "102t": (64, 1600, 200, 102.4, 256 * RO_PORT, 2 * 940, 4),  # Arista 7060XE7-64PE
    "128x800g-cpo": (128, 800, None, 102.4, 256 * RO_PORT + 128 * 1200, 1960, 2),  # SN6810
    "144x800g-cpo": (144, 800, 200, 115.2, 185_000 + 144 * 1200, 3950, 4),  # Q3450-LD; Lambda: 3.95 kW
    "36x800g": (36, 800, 200, 28.8, 185_000 / 4, 862 / 2, 1),  # half a Q3200-RA
}
RANGES = {  # the lowest and highest USD at which somebody saw a product; N = NADDOD; AI = aiinframap
    "256x400g": (2 * 55_000, None),  # twice the least of 51t
    "qm9700": (32_000, 50_000),  # an integrator at volume; BOM: official price
    "51t": (55_000, 150_000),  # an integrator at volume; LUX
    "144x800g": (110_600, 250_000),  # SemiAnalysis' model of a rack
    "36x800g": (110_600 / 4, None),
    "128x800g-cpo": (232_000, None),
    "144x800g-cpo": (247_000, None),
    "cx6-200g": (None, 1065),  # N
    "cx7-400g": (1500, 2188),  # estimate; FS
    "cx8-800g": (1779, 3000),  # N; estimate
    "cx9-800g": (1980, None),
    "400g-199": (None, 450),  # a generic 400G DR4
    "400g-dac": (300 / 4, None),  # FS: a quarter of an 800G to 2 x 400G cable
    "400g-sr4": (300, 800),  # LUX
    "400g-dr4": (450, 1320 / 2),  # QSFPTEK; BOM, half a link
    "400g-fr4": (565, None),
    "800g-sr8": (500, 900),  # LUX
    "800g-dr8": (545, 1749),  # makers, Oct 2025; FS
    "800g-fr4": (1060, 1900),  # LUX
    "800g-dac": (186 / 2, None),  # FS, half a cable
    "800g-aec": (450 / 2, None),  # half a Credo cable at volume
    "1.6t-dr8": (None, 2000),
    "800g-dr4": (None, 950),  # SemiAnalysis' model of a rack
    "patch-panel": (15, None),
    "a100-80g": (12_500, 15_000),  # Epoch AI
    **{name: (0.6 * usd, 1.4 * usd) for name, usd in (("h100-sxm", 30_000), ("h200", 35_000), ("b200", 40_000))},  # AI
    "400g-zr": (3000, 6000),
    "os2-mtp-8": (102 / 2, 2 * 102),  # half and twice
    "om4-mtp-8": (45, 2 * 78),
}
FIBRE = {  # pairs of a connector, links that share it, USD, USD a metre
    "os2-mtp-8": (8 / 2, 1, 102, 3),  # eight fibres; a reseller's list, as for all
    "os2-mtp-8-panels": (8 / 2, 1, 350, 3),
    "os2-lc": (2 / 2, 1, 10, 0.75),
    "om4-mtp-8": (8 / 2, 1, 78, 7),
    "os2-split-2": (8 / 2, 2, 150, 0),
    "os2-split-4": (8 / 2, 4, 78, 0),
    "os2-split-2-of-16": (16 / 2, 2, 249, 0),
    "os2-split-4-of-16": (16 / 2, 4, 249, 0),
    "os2-split-8-of-16": (16 / 2, 8, 156, 0),
    "om4-split-2": (8 / 2, 2, 122, 0),
}
MODES = {  # Tbit/s over lanes of a rate, and how many lanes a port may take
    "51t": {(64, 800), (128, 400), (256, 200), (512, 100)},  # ipinfusion: 64 cages that break out in 2, 4 and 8
    "102t": {(64, 1600), (128, 800), (256, 400), (512, 200)},  # 512 lanes of 200 Gbit/s
}
CAGES = {"qm9700": 64 // 2, "144x800g": 144 // 2}  # twin-port OSFP cages


@pytest.mark.parametrize(
    ("kind", "anchored"), [("hb_domain", HB | STUDIES), ("nic", NICS), ("optic", OPTICS), ("switch", SWITCHES)]
)
def test_every_product_is_anchored(kind: str, anchored: dict[str, Any]) -> None:
    assert set(anchored) == set(entries(kind))


@pytest.mark.parametrize("name", HB)
def test_domains_are_those_of_vendors_and_of_infinite_hbd(name: str) -> None:
    domain, (size, both_ways, usd, w, racks) = products("hb_domain")[name], HB[name]
    assert (domain.size, domain.gbyte_s, domain.racks) == (size, pytest.approx(both_ways / 2), racks)
    assert (domain.usd_per_gpu, domain.w_per_gpu) == (usd, w)
    assert domain.nic_gbyte_s == TO_NICS.get(name)
    assert (domain.kg or 0) == pytest.approx(KG * POUNDS.get(name, 0), rel=1e-3)


@pytest.mark.parametrize("name", STUDIES)
def test_study_domains_are_priced_by_their_tiers_at_the_rate_of_nvlink_4(name: str) -> None:
    domain, (size, tiers) = products("hb_domain")[name], STUDIES[name]
    assert (domain.size, domain.gbyte_s, domain.racks) == (size, 450, max(1 / 4, size / 64))
    usd, w = (450 * (one + tiers * more) for one, more in zip(NVLINK, OPTICAL_TIER, strict=True))
    assert (domain.usd_per_gpu, domain.w_per_gpu) == pytest.approx((usd, w))


@pytest.mark.parametrize("name", HB | STUDIES)
def test_hosts_take_what_servers_and_racks_have_beside_gpus_and_nics(name: str) -> None:
    domain = products("hb_domain")[name]
    expected = HOSTS.get(name, (HOST_USD, HOST_W))
    assert (domain.host_usd_per_gpu, domain.host_w_per_gpu) == pytest.approx(expected, abs=0.01)
    whole = domain.with_hosts()
    assert whole.usd_per_gpu == pytest.approx(domain.usd_per_gpu + expected[0], abs=0.01)
    assert whole.w_per_gpu == pytest.approx(domain.w_per_gpu + expected[1], abs=0.01)
    assert (whole.host_usd_per_gpu, whole.host_w_per_gpu) == (0.0, 0.0)  # counted once


@pytest.mark.parametrize("name", NICS)
def test_nics_are_those_of_vendors(name: str) -> None:
    nic, (gbyte_s, lanes, ports, usd, w) = products("nic")[name], NICS[name]
    assert nic.gbit_s == 8 * gbyte_s
    assert (nic.lane_gbit_s, nic.ports, nic.cages, nic.usd, nic.w) == (lanes, ports, 1, usd, w)
    # NVIDIA's notes on firmware 40.44: no port of 800GbE
    assert nic.ethernet_port_gbit_s == {"cx8-800g": 400}.get(name)


@pytest.mark.parametrize("name", OPTICS)
def test_optics_are_those_of_vendors(name: str) -> None:
    optic = products("optic")[name]
    figures = (optic.gbit_s, optic.lane_gbit_s, optic.breakout, optic.reach_m, optic.usd, optic.w)
    assert figures == OPTICS[name]
    assert optic.connectors == (2 if name in TWIN else 1)
    assert [optic.links_of(optic.gbit_s / count) for count in (1, *optic.breakout)] == [1, *optic.breakout]
    assert optic.links_of(optic.gbit_s / 3) == 0


@pytest.mark.parametrize("name", SWITCHES)
def test_switches_are_those_of_vendors_and_papers(name: str) -> None:
    switch = products("switch")[name]
    radix, rate, lanes, tbit_s, usd, w, units = SWITCHES[name]
    assert (switch.radix, switch.port_gbit_s, switch.lane_gbit_s) == (radix, rate, lanes)
    assert switch.radix * switch.port_gbit_s == pytest.approx(1000 * tbit_s)
    assert (switch.usd, switch.w, switch.rack_units) == pytest.approx((usd, w, units))
    assert {(way.radix, way.port_gbit_s) for way in switch.in_each_mode} == MODES.get(name, {(radix, rate)})
    assert switch.cages == CAGES.get(name)


@pytest.mark.parametrize(("name", "usd", "w"), [("patch-panel", 100, 0), ("ocs", 520, 108 / 136)])
def test_panel_ports_cost_what_topoopt_says(name: str, usd: float, w: float) -> None:
    """A Palomar switch of TPU v4 draws 108 W for 136 ports (arXiv 2304.01433, as quoted)."""
    panel = products("panel")[name]
    assert (panel.usd_per_port, panel.w_per_port) == pytest.approx((usd, w), abs=5e-4)


def test_prices_range_as_far_as_somebody_has_seen() -> None:
    seen = {name: (basis.least, basis.most) for (_, name), basis in price_bases().items() if basis.least or basis.most}
    alike = {"102t": "256x400g", "64x800g": "51t", "128x400g": "51t"}
    for name, (least, most) in seen.items():
        expected = RANGES[alike.get(name, name)]
        assert (least, most) == tuple(end and pytest.approx(end, abs=1) for end in expected), name
    assert {alike.get(name, name) for name in seen} == set(RANGES)


def test_fibre_has_the_pairs_of_its_connectors_and_the_prices_of_resellers() -> None:
    for name, fibre in products("fibre").items():
        assert (fibre.pairs, fibre.links, fibre.usd, fibre.usd_per_m) == FIBRE[name], name
