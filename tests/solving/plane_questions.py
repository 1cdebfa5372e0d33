"""Random small questions about NICs with ports on several planes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from coopt.instance.schema import Instance
from tests.conftest import question, small_model
from tests.solving.oracle import disciplined

RATE = 400


@st.composite
def planar(draw: st.DrawFn) -> Instance:
    """Clusters of up to 96 GPUs whose NICs have one port, two or four, with switches of several modes."""
    gpus = draw(st.sampled_from([16, 32, 64, 96]))
    money = st.integers(0, 3000)
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=2, unique=True))
    table = question(
        cluster__gpus=gpus,
        workload=[one_workload(draw, gpus)],
        network={
            **domains_and_fabrics(draw, sizes, money),
            "nics": _nics(draw, money),
            "nics_per_gpu": draw(st.sampled_from([1, 1, 2])),
            "nic_planes": draw(st.sampled_from([[1, 2, 4], [1, 2], [1, 4]])),
            "switches": [_switch(draw, radix, money) for radix in draw(_radices())],
            "optics": _optics(draw, money),
            "oversubscription": draw(st.sampled_from([1.0, 2.0, 3.5, [1.0, 2.0], [1.5, 3.0]])),
            **disciplined(draw),
        },
        objective={"minimize": draw(st.sampled_from(["capex", "power", "tco"]))},
        limits=draw(st.sampled_from([{}, {}, {"power_mw": gpus / 5000}, {"capex_usd": 9000.0 * gpus}])),
    )
    return Instance.model_validate(table)


def _radices() -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from([4, 6, 8, 12]), min_size=1, max_size=2, unique=True)


def _nics(draw: st.DrawFn, money: st.SearchStrategy[int]) -> list[dict[str, Any]]:
    """A NIC with one module, and at times one with two beside it."""
    one = {"name": "one", "gbit_s": RATE, "ports": [1, 2, 4], "usd": draw(money), "w": 20}
    twin = {"name": "twin", "gbit_s": RATE, "ports": [2, 4], "cages": 2, "usd": draw(money), "w": 25}
    return draw(st.sampled_from([[one], [one], [one, twin]]))


def _switch(draw: st.DrawFn, radix: int, money: st.SearchStrategy[int]) -> dict[str, Any]:
    modes = [{"radix": radix * n, "port_gbit_s": RATE / n} for n in draw(st.sampled_from([(2, 4), (2,), (4,)]))]
    return {"name": f"{radix}-port", "radix": radix, "port_gbit_s": RATE, "modes": modes, "usd": draw(money), "w": 90}


def _optics(draw: st.DrawFn, money: st.SearchStrategy[int]) -> list[dict[str, Any]]:
    """Optics that break out and optics that do not; the first reaches everywhere."""
    breakouts = draw(st.sampled_from([[2, 4], [2], [4]]))
    wide = {"name": "wide", "gbit_s": RATE, "breakout": breakouts, "reach_m": 500, "usd": draw(money), "w": 17}
    others = [
        {
            "name": f"plain-{rate:g}",
            "gbit_s": rate,
            "reach_m": draw(st.sampled_from([60, 500])),
            "usd": draw(money),
            "w": 9,
        }
        for rate in (RATE, RATE / 2, RATE / 4)
    ]
    half = {"name": "half", "gbit_s": RATE / 2, "breakout": [2], "reach_m": 500, "usd": draw(money), "w": 12}
    return [wide, *(other for other in [*others, half] if draw(st.booleans()))]


def domains_and_fabrics(draw: st.DrawFn, sizes: list[int], money: st.SearchStrategy[int]) -> dict[str, Any]:
    """HB domains of some sizes at any price, and the fabrics that may join them."""
    return {
        "hb_domains": [
            {"name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": draw(money), "w_per_gpu": 10} for n in sizes
        ],
        "fabrics": draw(st.lists(st.sampled_from(["rail-only", "rail-optimized", "clos"]), min_size=1, unique=True)),
    }


def one_workload(draw: st.DrawFn, gpus: int) -> dict[str, Any]:
    return {
        "name": "w",
        "model": small_model(),
        "global_batch": gpus,
        "allow_tp_across": True,
        "max_iteration_time_s": draw(st.sampled_from([0.06, 0.09, 0.15, 0.3])) * draw(st.floats(1.0, 1.5)),
        "mapping": {"micro_batch": [1, 4], "sequence_parallel": True},
    }
