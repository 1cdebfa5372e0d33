"""Random small questions whose links may have another module at each end, and their networks with every two modules."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from coopt.instance.schema import Instance
from tests.conftest import question
from tests.solving.oracle import disciplined
from tests.solving.plane_questions import domains_and_fabrics, one_workload

RATE = 400


@st.composite
def twin_ported(draw: st.DrawFn, planes: tuple[int, ...] = (1,)) -> Instance:
    """Clusters of up to 96 GPUs with single modules for NICs and switches and such as serve several ports of a switch,
    over two kinds of fibre, beside a cable that comes with both ends."""
    gpus = draw(st.sampled_from([16, 32, 48, 64, 96]))
    money, watts = st.integers(0, 3000), st.integers(0, 30)
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=2, unique=True))
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12]), min_size=1, max_size=2, unique=True))
    table = question(
        cluster__gpus=gpus,
        workload=[one_workload(draw, gpus)],
        network={
            **domains_and_fabrics(draw, sizes, money),
            "nics": {"name": "nic", "gbit_s": RATE, "ports": list(planes), "usd": draw(money), "w": 20},
            "nics_per_gpu": draw(st.sampled_from([1, 1, 2])),
            "nic_planes": list(planes),
            "switches": [switch_of_cages(draw, radix, money, planes) for radix in radices],
            "optics": modules(draw, money, watts),
            "link_reach_m": draw(st.sampled_from([[50, 100, 500], [40, 40, 40], [50, 100, 100]])),
            "oversubscription": draw(st.sampled_from([1.0, 2.0, 3.5, [1.0, 2.0], [1.5, 3.0]])),
            **disciplined(draw),
        },
        objective={
            "minimize": draw(st.sampled_from(["capex", "power", "tco"])),
            "include": draw(st.sampled_from([["hb", "nic", "switch", "optics"]] * 3 + [["hb", "switch"]])),
        },
        limits=draw(st.sampled_from([{}, {}, {"power_mw": gpus / 5000}, {"capex_usd": 9000.0 * gpus}])),
    )
    return Instance.model_validate(table)


def switch_of_cages(
    draw: st.DrawFn, radix: int, money: st.SearchStrategy[int], planes: tuple[int, ...]
) -> dict[str, Any]:
    """A switch whose cages hold one port, or two or four at the rate of the NIC."""
    box: dict[str, Any] = {"name": f"{radix}-port", "radix": radix, "port_gbit_s": RATE, "usd": draw(money), "w": 90}
    if len(planes) > 1:
        return box | {"modes": [{"radix": radix * n, "port_gbit_s": RATE / n} for n in planes if n > 1]}
    shared = draw(st.sampled_from([n for n in (1, 2, 2, 4) if radix % n == 0]))
    return box | {"cages": radix // shared}


def modules(draw: st.DrawFn, money: st.SearchStrategy[int], watts: st.SearchStrategy[int]) -> list[dict[str, Any]]:
    """A cable that reaches everywhere, then modules of one, two and four ports over either fibre."""
    cable = {"name": "cable", "gbit_s": RATE, "breakout": [2, 4], "reach_m": 500, "usd": draw(money), "w": draw(watts)}
    modules = [
        {
            "name": f"{fibre}-{ports}",
            "gbit_s": RATE * ports,
            "breakout": [2, 4],
            "fibre": fibre,
            "reach_m": draw(st.sampled_from([60, 500])),
            "usd": draw(money),
            "w": draw(watts),
        }
        for fibre in ("multi", "single")
        for ports in (1, 2, 4)
        if draw(st.integers(0, 3))
    ]
    return [cable, *modules]
