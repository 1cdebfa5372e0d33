"""GPUs as their vendors and measurements state them, in the units of the source.

Sources: DGXC = the system table of github.com/NVIDIA/dgxc-benchmarking (dense peaks, watts, HBM rate);
SMI = nvidia-smi, MiB of memory in public listings; F2 = data sheets as quoted; Calculon = its systems/*.json.
"""

import pytest

from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu

MIB, TB = 2**20, 1e12

PEAKS = {  # TFLOP/s dense in 16, 8 and 4 bits
    "a100-80g": (312, 0, 0),  # Calculon; no 8-bit floats before Hopper
    "a100-40g": (312, 0, 0),
    "h100-sxm": (989, 1979, 0),  # DGXC
    "h100-96g-500w": (884, 1769, 0),  # clocks go with the cube root of power: below
    "h200": (989, 1979, 0),  # F2: the chip of the H100
    "b200": (2250, 4500, 9000),  # DGXC
    "b300": (2250, 4500, 13_500),  # DGXC
    "gb200": (2450, 4900, 9800),  # DGXC
    "gb300": (2450, 4900, 14_700),  # DGXC
    "mi300x": (1307, 2615, 0),  # AMD data sheet, recalled
    "mi325x": (1307, 2615, 0),  # the dies of the MI300X
    "mi350x": (2300, 4600, 9200),  # 2.2 GHz in place of 2.4 (Hot Chips 2025, as quoted by Wccftech)
    "mi355x": (2500, 5000, 10_000),  # 5 PFLOP/s of FP8 (AMD at ISSCC 2026, as quoted), half and twice that
    "vr200": (4000, 1.2e6 / 72, 2.5e6 / 72),  # 1.2 and 2.5 EFLOP/s a rack of 72 (NVIDIA, as quoted)
}
MEMORY = {  # bytes of HBM, bytes/s of it
    "a100-80g": (81_920 * MIB, 2.039 * TB),  # SMI; F2
    "a100-40g": (40_960 * MIB, 1.555 * TB),
    "h100-sxm": (81_559 * MIB, 3.35 * TB),  # SMI; F2
    "h100-96g-500w": (97_871 * MIB, 2.4 * TB),  # SMI; TorchTitan's report of its HBM2e cards
    "h200": (143_771 * MIB, 4.8 * TB),
    "b200": (183_359 * MIB, 7.7 * TB),  # SMI; DGXC
    "b300": (275_040 * MIB, 7.7 * TB),
    "gb200": (189_471 * MIB, 8.0 * TB),
    "gb300": (284_208 * MIB, 8.0 * TB),
    "mi300x": (192e9, 5.3 * TB),  # MLPerf system description
    "mi325x": (256e9, 6.0 * TB),  # AMD data sheet, recalled
    "mi350x": (288e9, 8.0 * TB),
    "mi355x": (288e9, 8.0 * TB),  # Tom's Hardware on AMD's data
    "vr200": (288e9, 22 * TB),  # NVIDIA at CES 2026, as quoted
}
POWER_AND_PRICE = {  # W of a board, USD on the street
    "a100-80g": (400, (12_500 + 15_000) / 2),  # F2; Epoch AI, Hardware prices.csv, list of 2020-22
    "a100-40g": (400, 10_000),  # estimate
    "h100-sxm": (700, 30_000),  # DGXC; aiinframap, mid-2026
    "h100-96g-500w": (500, 30_000),  # TorchTitan caps it at 500 W
    "h200": (700, 35_000),  # F2; aiinframap
    "b200": (1000, 40_000),  # DGXC; aiinframap
    "b300": (1100, 45_000),  # DGXC; estimate
    "gb200": (1200, 3.1e6 / 72 - 9563),  # SemiAnalysis: a rack of 3.1 M USD, of which NVLink is 9,563 a GPU
    "gb300": (1400, 3.5e6 / 72 - 9563),  # DGXC; Sesterce: a rack of 3.5 M USD
    "mi300x": (750, 15_000),  # MLPerf; Hugging Face hardware page
    "mi325x": (1000, 20_000),  # AMD data sheet, recalled; estimate
    "mi350x": (1000, 25_000),  # Tom's Hardware; estimate
    "mi355x": (1400, 25_000),  # Tom's Hardware; estimate
    "vr200": (1800, 55_000),  # low end of 1,800 to 2,300 W; estimate
}
UNITS = {  # SMs (compute units of AMD), GB/s to the host one way
    "a100-80g": (108, 25),  # NVIDIA white papers; PCIe 4.0 x16 has 32 GB/s, copies reach 25
    "a100-40g": (108, 25),
    "h100-sxm": (132, 55),  # nvbandwidth: 55.63 GB/s over PCIe 5.0 x16
    "h100-96g-500w": (132, 55),
    "h200": (132, 55),
    "b200": (148, 55),
    "b300": (148, 55),
    "gb200": (148, 410 / 2),  # STREAM in the memory of one Grace, which two GPUs share
    "gb300": (148, 410 / 2),
    "mi300x": (8 * 38, None),  # 8 dies of 38 compute units
    "mi325x": (8 * 38, None),
    "mi350x": (8 * 32, None),  # ROCm, GPU specifications
    "mi355x": (8 * 32, None),  # AMD at ISSCC 2026: 8 dies of 32
    "vr200": (224, None),
}
JUDGED = {  # what no published run fixes alone, by generation; docs/model.md has the reasons
    # k0; share of NICs in a collective and in a send; seconds of a send
    "ampere": (337, 0.50, 0.80, 1.59e-3),  # rail: 12.9 TB/s of 2104.04473, section 5.9
    "hopper": (96, 0.75, 0.75, 1e-4),  # k0: the uncalibrated 96 that works without a fit
}
INSIDE = {  # collectives in a domain as benchmarks/measured.csv has them, of Ampere by judgement
    # hb, hb_own, hb_short, long_s, latency_s, step_s
    "ampere": (0.70, 0.0, 1.0, 0.0, 8e-6, 1e-6),
    "hopper": (0.77, 0.45, 0.43, 13.5e-6, 4.9e-6, 0.93e-6),
    "blackwell": (0.72, 0.42, 0.43, 15.2e-6, 8.2e-6, 1.4e-6),
}
ATTENTION = {  # share of peak and slowness of softmax; 0.62 and 1 of cuDNN on a H200 for all others
    "a100-80g": (0.73, 1.0),  # FlashAttention-2, abstract of arXiv 2307.08691
    "a100-40g": (0.73, 1.0),
    **dict.fromkeys(("b200", "gb200", "vr200"), (0.71, 2.9)),  # aiconfigurator-core 0.12.0, benchmarks/measured.csv
    **dict.fromkeys(("b300", "gb300"), (0.71, 1.45)),  # the same with exponentials twice as fast
}
FITTED = {  # eg, em and seconds between kernels that `coopt calibrate` reports of FITTED_ON, those of AMD eg alone
    ("ampere", "bf16"): (0.866, 0.70, 0.0), ("hopper", "bf16"): (0.685, 0.604, 5.17e-6),
    ("hopper", "fp8"): (0.626, 0.588, 7.24e-6), ("blackwell", "bf16"): (0.557, 0.556, 5.48e-6),
    ("blackwell", "fp8"): (0.584, 0.639, 8.10e-6), ("blackwell", "fp4"): (0.5608, 0.628, 8.38e-6),
    ("cdna3", "bf16"): (0.557, 0.604, 5.17e-6), ("cdna3", "fp8"): (0.438, 0.604, 5.17e-6),
    ("cdna4", "bf16"): (0.557, 0.604, 5.17e-6), ("cdna4", "fp8"): (0.464, 0.604, 5.17e-6),
}  # fmt: skip
FITTED_ON = {"blackwell": "gb200", "cdna3": "mi325x", "cdna4": "mi355x"}
MEASURED_LIKE = {"cdna3": "hopper", "cdna4": "hopper", "rubin": "blackwell"}  # of links, carried over


def gpu(name: str) -> Gpu:
    entry = entries("gpu")[name]
    assert isinstance(entry, Gpu)
    return entry


def test_every_gpu_is_anchored() -> None:
    assert set(PEAKS) == set(MEMORY) == set(POWER_AND_PRICE) == set(UNITS) == set(entries("gpu"))


@pytest.mark.parametrize("name", PEAKS)
def test_peaks_are_those_of_the_data_sheet_in_flop_a_second(name: str) -> None:
    peaks = tuple(gpu(name).peak_flop_s(precision) for precision in ("bf16", "fp8", "fp4"))
    assert peaks == pytest.approx([1e12 * tera for tera in PEAKS[name]], rel=1e-3)
    assert gpu(name).peak_flop_s("fp16") == gpu(name).peak_flop_s("bf16")


def test_clocks_of_the_capped_h100_go_with_the_cube_root_of_its_watts() -> None:
    """The H100 of TorchTitan's runs has 500 of 700 W."""
    factor = (500 / 700) ** (1 / 3)
    for precision in ("bf16", "fp8"):
        assert gpu("h100-96g-500w").peak_flop_s(precision) == pytest.approx(
            factor * gpu("h100-sxm").peak_flop_s(precision), rel=1e-3
        )


@pytest.mark.parametrize("name", MEMORY)
def test_memory_is_what_the_driver_shows(name: str) -> None:
    size, rate = MEMORY[name]
    assert gpu(name).usable_bytes == pytest.approx(size, rel=1e-4)
    assert gpu(name).hbm_gbyte_s * 1e9 == pytest.approx(rate, rel=1e-4)


@pytest.mark.parametrize("name", POWER_AND_PRICE)
def test_watts_and_prices_are_those_of_the_source(name: str) -> None:
    assert (gpu(name).w, gpu(name).usd) == pytest.approx(POWER_AND_PRICE[name], rel=1e-4)


@pytest.mark.parametrize("name", UNITS)
def test_processors_and_host_links_are_those_of_the_source(name: str) -> None:
    assert (gpu(name).sm_count, gpu(name).host_gbyte_s) == UNITS[name]


@pytest.mark.parametrize("name", PEAKS)
def test_shares_reached_are_those_of_the_generation(name: str) -> None:
    efficiency, generation = gpu(name).efficiency, gpu(name).generation
    generation = MEASURED_LIKE.get(generation, generation)
    judged = JUDGED.get(generation, JUDGED["hopper"])
    assert (efficiency.gemm_k0, efficiency.rail, efficiency.send, efficiency.send_s) == pytest.approx(judged)
    names = ("hb", "hb_own", "hb_short", "long_s", "latency_s", "step_s")
    assert tuple(getattr(efficiency, name) for name in names) == INSIDE[generation]
    assert (efficiency.attention, efficiency.softmax) == ATTENTION.get(name, (0.62, 1.0))


@pytest.mark.parametrize("name", PEAKS)
def test_products_and_kernels_reach_what_the_calibration_found(name: str) -> None:
    """Products rise with watts for a FLOP, to the power of 2/3, from those of the GPU that was fitted."""
    product = gpu(name)
    generation = "blackwell" if product.generation == "rubin" else product.generation
    tables = {"bf16": product.efficiency, "fp8": product.efficiency.fp8, "fp4": product.efficiency.fp4}
    for precision in ("bf16", "fp8", "fp4"):
        table, fitted = tables[precision], FITTED.get((generation, precision))
        if table is None or fitted is None:
            continue
        gemm, hbm, kernel_s = fitted
        if product.generation in FITTED_ON:
            known = gpu(FITTED_ON[product.generation])
            flop_per_w = known.peak_flop_s(precision) / product.peak_flop_s(precision)
            gemm *= (product.w / known.w * flop_per_w) ** (2 / 3)
        assert table.gemm == pytest.approx(gemm, abs=6e-4)
        assert (table.hbm, table.kernel_s) == (hbm, kernel_s)


def test_own_figures_of_narrow_precisions_are_where_runs_were_published() -> None:
    eight = {name for name in PEAKS if gpu(name).efficiency.fp8}
    four = {name for name in PEAKS if gpu(name).efficiency.fp4}
    assert four == {"b200", "b300", "gb200", "gb300"}
    assert eight == four | {"h100-sxm", "h100-96g-500w", "h200", "mi300x", "mi325x", "mi350x", "mi355x"}


@pytest.mark.parametrize("name", PEAKS)
def test_reductions_in_nvlink_switches_gain_what_nccl_measures(name: str) -> None:
    expected = {"hopper": 0.88, "blackwell": 0.81}.get(gpu(name).generation)
    assert gpu(name).efficiency.hb_reduce == expected
