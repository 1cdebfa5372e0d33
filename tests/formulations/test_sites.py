"""Equations of a cluster at several sites: each reads as written, binds, and the optimum is that of enumeration."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import strategies as st

from formulations import ring
from tests.formulations import read


def two_sites(**changes: Any) -> ring.RingData:
    """Two sites, each with one share, two shares, or none of its options cheap; one link."""
    values: dict[str, Any] = {
        "sites": 2, "shares": 3, "site": np.array([0, 0, 1, 1]), "share": np.array([1, 2, 1, 2]),
        "cost": np.array([10.0, 25.0, 12.0, 20.0]), "need": np.array([[4], [2], [3], [1]]), "channel": np.array([2.0]),
        "max_channels": np.array([5]),
        "limits": (ring.SiteLimit(name="power", use=np.array([1.0, 2.0, 1.0, 2.0]), channel=np.array([0.5]), cap=4.6),),
    }  # fmt: skip
    return ring.RingData(**(values | changes))


def bordered(**changes: Any) -> ring.RingData:
    """The two sites, each with a border of switches with four ports."""
    values: dict[str, Any] = {
        "radix": 4, "cost": np.array([3.0, 1.0]), "ports": np.array([2, 4, 2, 6]), "links": np.array([2, 4, 3, 6]),
        "channel_ports": np.array([2]), "modules": np.array([1]), "ends": np.array([[True], [True]]),
    }  # fmt: skip
    use = {"use": np.array([1.0, 2.0, 1.0, 2.0]), "channel": np.array([0.5]), "switch": np.array([0.25, 0.0])}
    borders, limits = ring.Borders(**(values | changes)), (ring.SiteLimit(name="power", cap=9.0, **use),)
    return two_sites(borders=borders, limits=limits)


def enumerated(data: ring.RingData) -> float:
    """The least cost over all choices, channels and switches as few as each choice needs."""
    least = math.inf
    for chosen in product(*(np.flatnonzero(data.site == s).tolist() for s in range(data.sites))):
        rows = list(chosen)
        channels = data.need[rows].max(axis=0)
        switches, joined, prices = np.zeros(data.sites), True, np.zeros(data.sites)
        if data.borders is not None:
            taken = data.borders.ports[rows] + data.borders.ends @ (data.borders.channel_ports * channels)
            switches, prices = -(-taken // data.borders.radix), data.borders.cost
            joined = (data.borders.ends @ (data.borders.modules * channels) <= data.borders.links[rows]).all()
        uses = [(a.use[rows].sum() + (a.channel * channels).sum(), a.switch, a.cap) for a in data.limits]
        kept = all(use + (0.0 if each is None else (each * switches).sum()) <= cap + 1e-9 for use, each, cap in uses)
        if data.share[rows].sum() == data.shares and (channels <= data.max_channels).all() and kept and joined:
            spent = data.cost[rows].sum() + (data.channel * channels).sum() + (prices * switches).sum()
            least = min(least, float(spent))
    return least


READS = {
    ring.add_cost: {"cost": "10.0*z[0] + 25.0*z[1] + 12.0*z[2] + 20.0*z[3] + 2.0*c[0]"},
    ring.add_one_option: {"one_option[0]": "z[0] + z[1]  ==  1"},
    ring.add_whole_cluster: {"whole_cluster": "z[0] + 2*z[1] + z[2] + 2*z[3]  ==  3"},
    ring.add_channels: {"channels[0,0]": "4*z[0] + 2*z[1]  <=  c[0]"},
    ring.add_limits: {"limited[power]": "z[0] + 2.0*z[1] + z[2] + 2.0*z[3] + 0.5*c[0]  <=  4.6"},
}
READS_WITH_BORDERS = {
    ring.add_cost: {"cost": "10.0*z[0] + 25.0*z[1] + 12.0*z[2] + 20.0*z[3] + 3.0*b[0] + b[1] + 2.0*c[0]"},
    ring.add_border_switches: {"border_switches[1]": "2*z[2] + 6*z[3] + 2*c[0]  <=  4*b[1]"},
    ring.add_border_links: {"border_links[0]": "c[0]  <=  2*z[0] + 4*z[1]"},
}


CHEAP = two_sites(cost=np.array([10.0, 25.0, 3.0, 4.0]), limits=())
BINDS = {
    ring.add_one_option: CHEAP,
    ring.add_whole_cluster: CHEAP,
    ring.add_channels: CHEAP,
    ring.add_limits: two_sites(),
    ring.add_border_switches: bordered(),
    ring.add_border_links: bordered(),
}


def test_options_and_channels_which_are_whole_cost_what_they_should() -> None:
    model = ring.build(two_sites(), ring.RING)
    assert all(model.c[e].domain is pyo.NonNegativeIntegers for e in model.E)
    assert read.optimum(ring.build(CHEAP, ring.RING)) == pytest.approx(10 + 4 + 4 * 2)
    assert read.optimum(ring.build(two_sites(), ring.RING)) == pytest.approx(25 + 12 + 3 * 2)


def test_a_cut_takes_one_choice_out() -> None:
    model = ring.build(two_sites(), ring.RING)
    ring.add_choice_cut(model, [1, 2])
    assert read.optimum(model) == math.inf
    assert str(model.cuts[1].expr) == "z[1] + z[2]  <=  1"


@st.composite
def problems(draw: st.DrawFn) -> ring.RingData:
    """Up to three sites with up to four options each and three links; whole numbers."""
    sites = draw(st.integers(1, 3))
    counts = [draw(st.integers(1, 4)) for _ in range(sites)]
    links = {1: 0, 2: 1, 3: 3}[sites]
    n = sum(counts)
    numbers = lambda low, high, k: np.array([draw(st.integers(low, high)) for _ in range(k)], dtype=np.int64)  # noqa: E731
    data = ring.RingData(
        sites=sites, shares=draw(st.integers(1, 6)), site=np.repeat(np.arange(sites), counts), share=numbers(1, 4, n),
        cost=numbers(0, 50, n).astype(float), need=numbers(1, 8, n * links).reshape(n, links),
        channel=numbers(0, 9, links).astype(float), max_channels=numbers(2, 9, links),
        limits=(
            ring.SiteLimit(
                name="power", use=numbers(0, 9, n).astype(float), channel=numbers(0, 3, links).astype(float),
                cap=float(draw(st.integers(5, 60))),
            ),
        ),
    )  # fmt: skip
    if draw(st.booleans()):
        return data
    (limit,), around = data.limits, [[0, links - 1], [0, 1], [1, 2]][: sites if links else 0]
    borders = ring.Borders(
        radix=draw(st.integers(2, 9)), cost=numbers(0, 9, sites).astype(float), ports=numbers(1, 9, n),
        links=numbers(2, 20, n), channel_ports=numbers(1, 3, links), modules=numbers(1, 2, links),
        ends=np.array([[e in ends for e in range(links)] for ends in around or [[]] * sites], dtype=bool),
    )  # fmt: skip
    return replace(data, borders=borders, limits=(replace(limit, switch=numbers(0, 4, sites).astype(float)),))
