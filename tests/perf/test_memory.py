"""Memory against the published figures of arXiv 2205.05198, Fig. 1."""

from __future__ import annotations

import numpy as np
import pytest

from coopt.instance.catalog import find
from coopt.instance.transformer import Transformer
from coopt.perf.mapping import NONE, SELECTIVE, Mappings
from coopt.perf.memory import GIB, chunks_in_flight, layer_activation_bytes
from coopt.perf.parameters import layer_parameters

FIG_1 = [  # model, t, p, v, B, parameters and optimizer, activations without and with SP and selective recomputation
    ("gpt-22b", 8, 1, 1, 4, 4, 45.5625, 59.25, 9.5625),
    ("gpt-175b", 8, 8, 3, 1, 64, 45.5625, 66.84375, 12.3515625),
    ("gpt-530b", 8, 35, 3, 1, 280, 31.640625, 114.0234375, 23.076171875),
    ("gpt-1t", 8, 64, 1, 1, 512, 32.958984375, 131.25, 26.5625),
]


def one(t: int, p: int, v: int, b: int, recompute: int, sp: bool) -> Mappings:
    def ints(value: int) -> np.ndarray:
        return np.array([value])

    return Mappings(
        tp=ints(t),
        pp=ints(p),
        dp=ints(1),
        micro_batch=ints(b),
        interleave=ints(v),
        recompute=ints(recompute),
        sequence_parallel=np.array([sp]),
        zero=ints(0),
    )


@pytest.mark.parametrize(("name", "t", "p", "v", "b", "batch", "states", "plain", "small"), FIG_1)
def test_figure_1(
    name: str, t: int, p: int, v: int, b: int, batch: int, states: float, plain: float, small: float
) -> None:
    model = find("model", name)
    assert isinstance(model, Transformer)
    assert 18 * model.layers / p * layer_parameters(model, t) / GIB == states
    for recompute, sp, published in ((NONE, False, plain), (SELECTIVE, True, small)):
        rows = one(t, p, v, b, recompute, sp)
        chunk = layer_activation_bytes(model, rows, flash=False) * model.layers / (p * v)
        first, _ = chunks_in_flight(rows, batch)
        assert float((chunk * first)[0]) / GIB == published
