"""The program that is kept from pace to pace bounds as one made anew, and as the whole-number problem."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.solving.arrays import SharedProblem
from coopt.solving.fronts.designs import Certifier
from formulations.network import FRONT, NetworkData
from tests.conftest import example_count
from tests.formulations.small import best, problems


def problem(data: NetworkData) -> SharedProblem:
    return SharedProblem(families=(), prices=(), columns=(), data=data, scale=2.0)


def least_cost(data: NetworkData, fewest: np.ndarray) -> float:
    """By trying every family at its fewest uplinks, where more never cost less."""
    costs = []
    for f, uplinks in enumerate(fewest.tolist()):
        if uplinks <= data.max_uplinks[f]:
            spines = math.ceil(int(data.leaves[f]) * uplinks / int(data.radix[f]))
            costs.append(float(data.fixed[f] + data.uplink[f] * uplinks + data.spine[f] * spines))
    return min(costs)


@settings(max_examples=example_count(80))
@given(problems(), st.data())
def test_fractions_cost_what_whole_numbers_do_at_every_pace_in_any_order(
    data: NetworkData, draw: st.DataObject
) -> None:
    certifier = Certifier(problem(data))
    for turn in range(3):
        fewest = np.array(
            [
                draw.draw(st.integers(int(a), int(b) + 1))
                for a, b in zip(data.min_uplinks, data.max_uplinks, strict=True)
            ]
        )
        if (fewest > data.max_uplinks).all():
            fewest[0] = data.min_uplinks[0]
        expected = least_cost(data, fewest)
        assert certifier.bound(fewest) == pytest.approx(2 * expected, rel=1e-9, abs=1e-9)
        possible = replace(data, min_uplinks=np.minimum(fewest, data.max_uplinks))
        if (fewest <= data.max_uplinks).all():
            assert best(possible, FRONT) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert certifier.solves == turn + 1
