from __future__ import annotations

import pytest

from coopt.instance.workload import Workload
from coopt.verifier.training.memory import (
    GIB,
    chunks_in_flight,
    gathered_bytes,
    kept_bytes,
    memory_bytes,
    stage_loads,
    states_bytes,
)
from coopt.verifier.training.placing import HeldParameters, held_parameters, shard
from tests.verifier.cases import MODEL, split, workload

# arXiv 2205.05198, Fig. 1: layers, hidden, heads, pipeline, interleave, micro-batch, batch, then GiB on a GPU (t = 8)
# of parameters with states, of activations, and of activations with sequence parallelism and selective recomputation.
FIGURE_1 = {
    "22B": (48, 6144, 64, 1, 1, 4, 4, 45.5625, 59.25, 9.5625),
    "175B": (96, 12288, 96, 8, 3, 1, 64, 45.5625, 66.84375, 12.3515625),
    "530B": (105, 20480, 128, 35, 3, 1, 280, 31.640625, 114.0234375, 23.076171875),
    "1T": (128, 25600, 160, 64, 1, 1, 512, 32.958984375, 131.25, 26.5625),
}


SOFTWARE = {"name": "with dropout", "dropout": True, "reserve_gib": 0.0}


def gpt(layers: int, hidden: int, heads: int, batch: int, **options: object) -> Workload:
    """A model of the paper, trained with dropout; nothing is reserved."""
    shape = {"layers": layers, "hidden": hidden, "heads": heads, "kv_heads": heads, "head_dim": hidden // heads}
    model = MODEL | shape | {"ffn": 4 * hidden, "seq": 2048}
    table = {"name": "gpt", "model": model, "global_batch": batch, "max_iteration_time_s": 1.0}
    table["options"] = {"software": SOFTWARE} | options
    return Workload.model_validate(table)


@pytest.mark.parametrize("row", FIGURE_1.values(), ids=FIGURE_1)
def test_memory_of_the_published_figure(row: tuple[float, ...]) -> None:
    layers, hidden, heads, p, v, b, batch = map(int, row[:7])
    states, plain, small = row[7:]
    here = gpt(layers, hidden, heads, batch, attention="unfused")
    first = split(tp=8, pp=p, interleave=v, micro_batch=b)
    chunks = chunks_in_flight(first, first.micro_batches(batch), 0)
    each = first.chunk_layers(layers)
    held = held_parameters(here, first)
    without_tables = held._replace(common=layers / p * held.layer)
    assert states_bytes(here, without_tables, first) / GIB == states
    assert kept_bytes(here, first, shard(here, first)) * each * chunks / GIB == pytest.approx(plain, rel=1e-14)
    selective = first._replace(recompute="selective", sequence_parallel=True)
    kept = kept_bytes(here, selective, shard(here, selective))
    assert kept * each * chunks / GIB == pytest.approx(small, rel=1e-14)


@pytest.mark.parametrize(
    ("p", "v", "m", "chunks"),
    [
        (4, 1, 16, (4, 3, 1)),
        (4, 1, 2, (2, 2, 1)),
        (4, 3, 16, (15, 13, 9)),
        (4, 3, 4, (12, 12, 9)),
        (3, 4, 3, (12, 12, 10)),
    ],
)
def test_chunks_in_flight(p: int, v: int, m: int, chunks: tuple[int, int, int]) -> None:
    assert tuple(chunks_in_flight(split(pp=p, interleave=v), m, stage) for stage in (0, 1, p - 1)) == chunks


def test_the_first_or_the_last_stage_is_the_fullest() -> None:
    deep, flat = gpt(32, 1024, 8, 64), gpt(2, 1024, 8, 64)
    for here, first_is_fullest in ((deep, True), (flat, False)):
        cut = split(pp=2)
        chunk = kept_bytes(here, cut, shard(here, cut)) * here.model.layers / 2
        logits = 4 * 2048 * here.model.vocab
        assert (2 * chunk > chunk + logits) == first_is_fullest
        expected = 18 * held_parameters(here, cut).common + max(2 * chunk, chunk + logits)
        assert memory_bytes(here, cut) == pytest.approx(expected, rel=1e-14)


def test_full_recomputation_keeps_the_input_and_works_on_one_layer() -> None:
    here = gpt(4, 1024, 8, 8, attention="unfused")
    cut = split(tp=4, recompute="full", sequence_parallel=True)
    rows = 2048
    kept = 2 * rows * 1024 / 4
    layer = 34 * rows * 1024 / 4 + 5 * 8 * 2048**2 / 4
    logits = 4 * rows * -(-here.model.vocab // 4)
    expected = 18 * held_parameters(here, cut).common + 4 * kept + layer + logits
    assert memory_bytes(here, cut) == pytest.approx(expected, rel=1e-14)


def test_context_parallelism_shortens_what_is_kept() -> None:
    here = gpt(4, 1024, 8, 8, attention="unfused")
    whole, part = split(tp=4), split(tp=4, cp=2)
    states = 18 * held_parameters(here, whole).common
    activations = memory_bytes(here, whole) - states
    assert memory_bytes(here, part) - states == pytest.approx(activations / 2, rel=1e-12)


def test_zero_shares_over_data_and_context_parallel_ranks() -> None:
    here, held = workload(), HeldParameters(0, 0, 1e9, 0)
    assert states_bytes(here, held, split(dp=4, zero=1)) == 9e9
    assert states_bytes(here, held, split(dp=2, cp=2, zero=1)) == 9e9
    assert states_bytes(here, held, split(dp=4)) == 18e9


def test_zero_3_gathers_two_layers() -> None:
    here, cut = workload(), split(dp=4, zero=3)
    held = held_parameters(here, cut)
    layer = 4096 * (3 * 4096 + 4096) + 2 * 4096 * 16384
    assert held.layer == layer
    assert gathered_bytes(here, held, cut) == 4 * layer
    assert states_bytes(here, held, cut) == pytest.approx(18 * held.common / 4)
    assert states_bytes(here, held, split(dp=4, pp=2, zero=2)) == pytest.approx((2 + 16 / 4) * held.common)


@pytest.mark.parametrize(("zero", "v", "layers"), [(1, 2, 0), (2, 1, 0), (3, 1, 4), (2, 2, 4 * 2), (3, 2, (4 + 4) * 2)])
def test_a_chunk_whose_shards_move_in_rounds_is_whole_meanwhile(zero: int, v: int, layers: int) -> None:
    """8 layers on two stages: two in each of two chunks; gradients take 4 bytes, as do parameters of two chunks."""
    here, cut = workload(software={"shards_in_rounds": True}), split(dp=4, pp=2, zero=zero, interleave=v)
    held = held_parameters(here, cut)
    assert gathered_bytes(here, held, cut) == layers * held.layer


def test_uneven_stages_are_as_full_as_the_fullest() -> None:
    here = workload(model={"layers": 11})
    cut = split(pp=3, micro_batch=1)
    assert (cut.chunk_layers(11), cut.stage_layers(11), cut.missing_layers(11)) == (4, 4, 1)
    assert held_parameters(here, cut).common == 4 * held_parameters(here, cut).layer + 51200 * 4096
    looped = split(pp=2, interleave=3)
    assert (looped.chunk_layers(11), looped.stage_layers(11), looped.missing_layers(11)) == (2, 6, 1)
    first, last = stage_loads(here, looped)
    # Seven chunks of two layers in flight on the first stage, five on the last, whose last chunk lacks the layer.
    assert first == (6, 1, 14, False, 0)
    assert last == (5, 1, 9, True, 0)


@pytest.mark.parametrize(("layers", "predictions", "extra"), [(12, 2, 2), (11, 2, 1), (10, 1, -1), (9, 2, -1)])
def test_further_predictions_fill_the_last_stage(layers: int, predictions: int, extra: int) -> None:
    """All layers that are missing are missing there."""
    plain, further = (workload(model={"layers": layers, "extra_predictions": j}) for j in (0, predictions))
    cut = split(pp=4, dp=64)
    held = held_parameters(plain, cut)
    assert held_parameters(further, cut).common == held.common + max(extra, 0) * held.layer
    kept = kept_bytes(further, cut, shard(further, cut))
    last = (3 + extra) * kept + (1 + predictions) * 4 * 2048 * 51200
    needed = max(18 * (held.common + extra * held.layer) + last, 18 * held.common + 3 * kept)
    assert memory_bytes(further, cut) - 1.5 * GIB == pytest.approx(needed)


def test_a_single_stage_holds_both_embeddings_unless_they_are_tied() -> None:
    tied, apart = gpt(2, 1024, 8, 8), workload(model=gpt(2, 1024, 8, 8).model.model_dump() | {"tied_embeddings": False})
    embedding = -(-tied.model.vocab // 8) * 1024
    assert held_parameters(apart, split(tp=8)).common - held_parameters(tied, split(tp=8)).common == embedding
    assert held_parameters(apart, split(tp=8, pp=2)) == held_parameters(tied, split(tp=8, pp=2))
