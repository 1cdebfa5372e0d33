from __future__ import annotations

import pytest

from coopt.instance.workload import Workload
from coopt.verifier.memory import GIB, chunks_in_flight, kept_bytes, memory_bytes, states_bytes
from coopt.verifier.split import Split, layer_parameters, parameters
from tests.verifier.cases import MODEL

# arXiv 2205.05198, Fig. 1: layers, hidden, heads, pipeline, interleave, micro-batch, batch, then GiB on a GPU (t = 8)
# of parameters with states, of activations, and of activations with sequence parallelism and selective recomputation.
FIGURE_1 = {
    "22B": (48, 6144, 64, 1, 1, 4, 4, 45.5625, 59.25, 9.5625),
    "175B": (96, 12288, 96, 8, 3, 1, 64, 45.5625, 66.84375, 12.3515625),
    "530B": (105, 20480, 128, 35, 3, 1, 280, 31.640625, 114.0234375, 23.076171875),
    "1T": (128, 25600, 160, 64, 1, 1, 512, 32.958984375, 131.25, 26.5625),
}


def gpt(layers: int, hidden: int, heads: int, batch: int, **options: object) -> Workload:
    shape = {"layers": layers, "hidden": hidden, "heads": heads, "kv_heads": heads, "head_dim": hidden // heads}
    model = MODEL | shape | {"ffn": 4 * hidden, "seq": 2048}
    table = {"name": "gpt", "model": model, "global_batch": batch, "max_iteration_time_s": 1.0, "options": options}
    return Workload.model_validate(table)


def split(**changes: object) -> Split:
    plain: dict[str, object] = {
        "tp": 8,
        "pp": 1,
        "dp": 1,
        "micro_batch": 1,
        "interleave": 1,
        "recompute": "none",
        "sequence_parallel": False,
        "zero": 0,
    }
    return Split(**(plain | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("row", FIGURE_1.values(), ids=FIGURE_1)
def test_memory_of_the_published_figure(row: tuple[float, ...]) -> None:
    layers, hidden, heads, p, v, b, batch = map(int, row[:7])
    states, plain, small = row[7:]
    workload = gpt(layers, hidden, heads, batch, attention="unfused")
    first = split(pp=p, interleave=v, micro_batch=b)
    chunks = chunks_in_flight(first, first.micro_batches(batch))[0]
    each = layers / (p * v)
    assert states_bytes(layers / p * layer_parameters(workload.model, 8), first) / GIB == states
    assert kept_bytes(workload, first) * each * chunks / GIB == pytest.approx(plain, rel=1e-14)
    selective = first._replace(recompute="selective", sequence_parallel=True)
    assert kept_bytes(workload, selective) * each * chunks / GIB == pytest.approx(small, rel=1e-14)


@pytest.mark.parametrize(
    ("p", "v", "m", "chunks"),
    [
        (1, 1, 5, (1, 1)),
        (4, 1, 16, (4, 1)),
        (4, 1, 2, (2, 1)),
        (4, 3, 16, (15, 9)),
        (4, 3, 4, (12, 9)),
        (2, 4, 2, (8, 7)),
    ],
)
def test_chunks_in_flight(p: int, v: int, m: int, chunks: tuple[int, int]) -> None:
    assert chunks_in_flight(split(pp=p, interleave=v), m) == chunks


def test_the_first_or_the_last_stage_is_the_fullest() -> None:
    deep, flat = gpt(32, 1024, 8, 64), gpt(2, 1024, 8, 64)
    for workload, first_is_fullest in ((deep, True), (flat, False)):
        here = split(tp=1, pp=2)
        fixed = states_bytes(parameters(workload.model, here), here)
        chunk = kept_bytes(workload, here) * workload.model.layers / 2
        logits = 4 * 2048 * workload.model.vocab
        assert (2 * chunk > chunk + logits) == first_is_fullest
        assert memory_bytes(workload, here) == pytest.approx(fixed + max(2 * chunk, chunk + logits), rel=1e-14)


def test_full_recomputation_keeps_the_input_and_works_on_one_layer() -> None:
    workload = gpt(4, 1024, 8, 8, attention="unfused")
    here = split(tp=4, recompute="full", sequence_parallel=True)
    rows = 2048
    kept = 2 * rows * 1024 / 4
    layer = 34 * rows * 1024 / 4 + 5 * 8 * 2048**2 / 4
    logits = 4 * rows * -(-workload.model.vocab // 4)
    expected = 18 * parameters(workload.model, here) + 4 * kept + layer + logits
    assert memory_bytes(workload, here) == pytest.approx(expected, rel=1e-14)


def test_zero_shares_the_optimizer_states() -> None:
    assert states_bytes(1e9, split(dp=4, zero=1)) == 9e9
    assert states_bytes(1e9, split(dp=4)) == 18e9


def test_a_single_stage_holds_both_embeddings_unless_they_are_tied() -> None:
    workload = gpt(2, 1024, 8, 8)
    untied = workload.model.model_copy(update={"tied_embeddings": False})
    embedding = -(-untied.vocab // 8) * 1024
    assert parameters(untied, split()) - parameters(workload.model, split()) == embedding
    assert parameters(untied, split(pp=2)) == parameters(workload.model, split(pp=2))
