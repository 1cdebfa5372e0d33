"""Random questions that the model on arrays and the scalar one must answer alike."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.perf.mapping import OUTERMOST, RECOMPUTE, Mappings, Placements
from coopt.verifier.training.mappings import ScalarMapping, Style, shapes, styled
from coopt.verifier.training.placing import Placement, placements
from tests.verifier.cases import EFFICIENCY, GPU, ask, switch, workload

CHARGES: list[dict[str, Any]] = [
    {}, {"network__spray_efficiency": 0.6}, {"network__routing": "pinned"}, {"network__routing": "ecmp"},
    {"network__routing": 1.5}, {"network__charge": "ratio", "network__routing": 1.2}, {"network__bundles": "any"},
    {"network__bundles": "any", "network__routing": "ecmp"},
]  # fmt: skip
GPUS = {16: (8, 16), 24: (6, 12), 32: (8, 16), 48: (6, 12, 16), 64: (8, 16), 96: (8, 12)}
"""GPUs that train, and how many of them an HB domain may hold."""


BITS = ("attention_bits", "latent_bits", "mamba_output_bits", "prediction_bits")


@dataclass(frozen=True)
class Question:
    """A workload, a cluster to look for networks in, and mappings with a placement each."""

    workload: Workload
    instance: Instance
    gpu: Gpu
    gpus: int
    active: int
    rows: tuple[tuple[ScalarMapping, Placement], ...]

    def arrays(self) -> tuple[Mappings, Placements]:
        """The rows as columns."""
        table = [list(column) for column in zip(*(split for split, _ in self.rows), strict=True)]
        columns = dict(zip(ScalarMapping._fields, table, strict=True))
        recompute = np.array([RECOMPUTE.index(kind) for kind in columns.pop("recompute")])
        sequence = np.array(columns.pop("sequence_parallel"), dtype=np.bool_)
        whole = {name: np.array(column, dtype=np.int64) for name, column in columns.items()}
        inside = {
            name: np.array([getattr(place, f"{name}_in") for _, place in self.rows])
            for name in ("tp", "cp", "pp", "dp")
        }
        whole["outermost"] = np.array([OUTERMOST.index(place.outermost) for _, place in self.rows])
        return Mappings(recompute=recompute, sequence_parallel=sequence, **whole), Placements(**inside)


def question(seed: int, most: int = 120, *, hybrid: bool = False) -> Question:
    """A question with up to that many rows, about a model of several kinds of mixers if asked to."""
    draw = Random(seed)
    asked = _workload(draw, _hybrid(Random(seed)) if hybrid else {}, _bits(Random(seed)))
    asked = _made_of(Random(seed), asked)
    gpus = draw.choice(list(GPUS))
    active = draw.choice(GPUS[gpus])
    some = _mappings(draw, list(shapes(asked, gpus)), 3 * most)
    instance = _instance(draw, gpus, active)
    turned = instance.network.discipline.charge == "loads"
    found = [(split, placements(asked, split, active, turned=turned)) for split in some]
    rows = [(split, draw.choice(places)) for split, places in found if places][:most]
    return Question(asked, instance, _gpu(draw), gpus, active, tuple(rows))


def _mappings(draw: Random, listed: list[tuple[ScalarMapping, list[Style]]], most: int) -> list[ScalarMapping]:
    """Up to that many of all mappings, of which only these are put together."""
    ends = list(accumulate((len(styles) for _, styles in listed), initial=0))
    drawn = []
    for number in draw.sample(range(ends[-1]), min(most, ends[-1])):
        at = bisect_right(ends, number) - 1
        shape, styles = listed[at]
        drawn.append(styled(shape, styles[number - ends[at]]))
    return drawn


def _workload(draw: Random, hybrid: dict[str, Any], bits: dict[str, Any]) -> Workload:
    mixed, fraction = draw.random() < 0.6, draw.choice([1.0, 1.0, 0.5])
    shape = _attention(draw) | (_experts(draw) if mixed else {}) | {"extra_predictions": draw.choice([0, 0, 1, 3])}
    latent = {"expert_latent": 96} if hybrid and mixed and draw.random() < 0.5 else {}
    return workload(
        model=shape | hybrid | latent,
        options={
            "attention": draw.choice(["flash", "unfused"]), "dp_mode": draw.choice(["sync", "overlap", "stale-1"]),
            "tp_sync_fraction": fraction, "tp_sync_backward": draw.choice([1.0, 2.0]),
            "transport": draw.choice(["rdma", "ipoib", "tcp"]),
            "expert_tp": (False, True, 2 if mixed else True)[int(3 * draw.random())],
            "collectives": draw.choice(["levels", "fastest", "in-network"]),
            "ep_overlap": draw.random() < 0.5,
            "schedule": draw.choice(["1f1b", "1f1b", "zb-h1", "dualpipe"]),
            "dispatch": draw.choice(["once", "once", "each"]), "dispatch_bytes": draw.choice([1, 2]),
            "slowdown": draw.choice([1.0, 1.07]),
        },
        software={
            "gradient_bytes": draw.choice([2, 4]),
            "fused_accumulation": draw.random() < 0.5,
            "kernel_traffic": draw.choice([1.0, 1.5]), "attention": draw.choice([None, 0.35]),
            "tp_overlap": draw.random() < 0.5,
            "tp_forward_overlap": draw.random() < 0.5,
            "grouped_experts": draw.random() < 0.5,
            "graphs": draw.random() < 0.5,
            "host_s": draw.choice([0.0, 37e-6, 1e-3]), "kernel_s": draw.choice([None, 0.0, 37e-6]),
            "pp_overlap": draw.random() < 0.5,
            "shards_in_rounds": draw.random() < 0.5,
            "overhead": draw.choice([1.0, 1.16]), "state_bytes": draw.choice([8, 12]),
            "narrow_inputs": draw.random() < 0.5,
            "dropout": draw.random() < 0.5,
            "batch_first": bits.get("wide_layers") == 2,
            "reserve_gib": draw.choice([0.0, 1.5]),
        }
        | bits,
        global_batch=draw.choice([48, 96, 192]),
        precision=draw.choice(["bf16", "fp16", "fp8", "fp4"]),
        mapping={
            "cp": [1, 2, 4], "micro_batch": [1, 2, 3], "zero": [0, 1, 2, 3],
            "recompute": RECOMPUTE[:5],
            "offload_percent": [0, 30, 100],
        },
    )  # fmt: skip


def _made_of(draw: Random, asked: Workload) -> Workload:
    """Graphs of some modules, parameters and logits in 8 bits, and multiprocessors that copy tokens."""
    modules = tuple(draw.sample(["attn", "mamba", "mlp", "moe_router", "moe_preprocess", "moe"], 2))
    scoped = {"graphs": "scoped", "graph_modules": modules} if draw.random() < 0.5 else {}
    narrow = {"parameter_bytes": draw.choice([1, 2]), "fp8_head": asked.precision in ("fp8", "fp4")}
    software = asked.options.software.model_copy(update=scoped | narrow)
    copying = {"software": software, "dispatch_multiprocessors": draw.choice([None, 1, 4, 24])}
    balance = draw.choice(["forced", "trained", 1.3])
    options = asked.options.model_copy(update=copying | {"dp_replicate": draw.choice([1, 1, 2])})
    kinds = draw.choice([RECOMPUTE[:5], ("none", "selective", "full", "act", "norm+ffn")])
    limits = asked.mapping.model_copy(update={"recompute": kinds})
    whole = options.software.model_copy(update={"whole_gradients": draw.random() < 0.5})
    options = options.model_copy(update={"software": whole})
    return asked.model_copy(update={"options": options, "balance": balance, "mapping": limits})


def _bits(draw: Random) -> dict[str, Any]:
    """Products and layers that keep more bits than others."""
    some: dict[str, Any] = {}
    if draw.random() >= 0.5:
        some = {name: draw.choice([4, 8, 16]) for name in BITS} | {"wide_layers": draw.choice([0, 2, 20])}
    return some | {"logit_bytes": draw.choice([4.0, 14.0])}


def _attention(draw: Random) -> dict[str, Any]:
    heads = draw.choice([8, 16, 24])
    shape = {
        "layers": draw.choice([8, 11, 13, 16]),
        "heads": heads,
        "kv_heads": draw.choice([n for n in (1, 2, 4, 8, 16) if heads % n == 0]),
        "head_dim": draw.choice([64, 96, 128]),
        "value_dim": draw.choice([0, 80]),
        "ffn": draw.choice([1536, 6144]),
        "gated": draw.random() < 0.5,
        "vocab": draw.choice([50257, 51200]),
        "seq": draw.choice([1536, 3072, 6144]),
        "tied_embeddings": draw.random() < 0.5,
        "causal": draw.random() < 0.7,
    }
    if draw.random() < 0.4:
        shape |= {"kv_rank": 256, "rope_dim": draw.choice([0, 32]), "q_rank": draw.choice([0, 512])}
    if draw.random() < 0.5:
        shape |= {"window": draw.choice([128, 1400]), "window_layers": draw.choice([2, 5])}
    return shape


def _experts(draw: Random) -> dict[str, Any]:
    shape = {
        "experts": draw.choice([16, 24]),
        "top_k": draw.choice([1, 2, 4]),
        "shared_ffn": draw.choice([0, 1536]),
        "capacity": draw.choice([1.0, 1.25]),
    }
    shape |= draw.choice([{}, {"expert_groups": 8, "top_groups": 4}, {"expert_groups": 2, "top_groups": 1}])
    return shape | ({"dense_layers": draw.choice([1, 3]), "dense_ffn": 6144} if draw.random() < 0.5 else {})


def _hybrid(draw: Random) -> dict[str, Any]:
    """What differs in a hybrid, whose layers have both parts, or attention, a linear mixer or a feed-forward part
    alone; half of them have mixers of every kind.
    """
    layers, mamba = draw.choice([8, 11, 16]), draw.choice([2, 3])
    sizes = {"mamba_heads": 16, "mamba_head_dim": draw.choice([32, 64]), "mamba_groups": draw.choice([4, 8])}
    apart = {"attention_layers": layers - mamba - 4, "ffn_layers": 4} if draw.random() < 0.5 else {}
    windows = {"window": 0, "window_layers": 0}
    hybrid = {"layers": layers, "mamba_layers": mamba, "mamba_state": draw.choice([16, 128])} | sizes | apart | windows
    return hybrid | (_kinds(draw, layers) if draw.random() < 0.6 else {})


def _kinds(draw: Random, layers: int) -> dict[str, Any]:
    """Mixers of every kind in place of Mamba-2, residual streams, and an encoder."""
    scan = {"layers": 1, "heads": 16, "head_dim": draw.choice([32, 64]), "groups": draw.choice([4, 8, 16])}
    scan |= {"state": draw.choice([16, 64])}
    kinds: list[dict[str, Any]] = [scan | {"kind": "gated-deltanet"}, scan | {"kind": "lightning"}]
    kinds += [scan | {"kind": "kda", "gate_rank": draw.choice([0, 32]), "decay_rank": draw.choice([0, 64])}]
    attention = {"kind": "attention", "layers": 1, "heads": 16, "head_dim": 64, "causal": draw.random() < 0.7}
    index = {"index_heads": 8, "index_dim": 32, "index_tokens": draw.choice([256, 4096])}
    latent = {"kv_heads": 16, "kv_rank": 256, "rope_dim": 32, "q_rank": draw.choice([0, 512])}
    pooled = {"kv_heads": 1, "shared_kv": True, "q_rank": 256, "output_rank": 64, "output_groups": 8, "window": 128}
    kinds += [attention | latent | index, attention | pooled | index | {"compression": 4}]
    kinds += [attention | pooled | {"compression": 128}, attention | {"kv_heads": 2, "output_gate": True}]
    mixers = draw.sample(kinds, 4)
    encoder = {"layers": 3, "hidden": 256, "heads": 8, "head_dim": 32, "ffn": 768, "tokens": 512, "merge": 4}
    encoder |= {
        "inputs": draw.choice([1, 4]),
        "projector": draw.choice([0, 512]),
        "projectors": 2,
        "gated": draw.random() < 0.5,
    }
    mamba = dict.fromkeys(("mamba_layers", "mamba_heads", "mamba_head_dim", "mamba_groups", "mamba_state"), 0)
    own = {"mixers": mixers, "streams": draw.choice([1, 4]), "encoders": draw.choice([[], [encoder]])}
    own |= {"attention_layers": None, "ffn_layers": draw.choice([None, layers - 4])}
    return mamba | own | {"output_gate": draw.random() < 0.3}


def _gpu(draw: Random) -> Gpu:
    own: dict[str, Any] = {"kernel_s": draw.choice([0.0, 4e-6]), "send_s": draw.choice([0.0, 1e-4])}
    own |= {"step_s": draw.choice([0.0, 1e-6, 2e-5]), "hb_reduce": draw.choice([None, 0.5, 0.97])}
    if draw.random() < 0.6:
        own["fp8"] = {"gemm": 0.6, "hbm": 0.4, "kernel_s": 6e-6}
    if draw.random() < 0.4:
        own["fp4"] = {"gemm": 0.5, "hbm": 0.5, "kernel_s": 7e-6}
    peaks = {"fp8_tflop_s": 600, "fp4_tflop_s": 1200, "host_gbyte_s": draw.choice([1, 20, 400])}
    own |= {"hb_own": draw.choice([0.0, 0.4]), "hb_short": draw.choice([1.0, 0.4]), "long_s": draw.choice([0.0, 1e-4])}
    return Gpu.model_validate(GPU | peaks | {"efficiency": EFFICIENCY | own})


def _instance(draw: Random, gpus: int, active: int) -> Instance:
    """Networks of one to three tiers, fast ones and slow ones."""
    rate = draw.choice([25, 100, 400, 3200])
    domain = {"name": "hb", "size": active, "gbyte_s": draw.choice([100, 450]), "usd_per_gpu": 1, "w_per_gpu": 1}
    return ask(
        cluster__gpus=gpus,
        network__hb_domains=[domain],
        network__nics=[{"name": "nic", "gbit_s": rate, "usd": 1, "w": 1}],
        network__switches=[switch(draw.choice([4, 8, 64]), rate)],
        network__optics=[{"name": "optic", "gbit_s": rate, "reach_m": 2000, "usd": 1, "w": 1}],
        **draw.choice(CHARGES),
    )
