"""The kinds of mixers on one GPU, one mapping at a time: their products and other kernels, what
they keep, and what they send.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from coopt.instance.mixers import Attention, Mixer, ScanLayers
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.verifier.training.kernels import (
    FUSED_BACKWARD,
    FUSED_BLOCK,
    FUSED_FORWARD,
    Engine,
    FusedWork,
    Machine,
    MatrixProduct,
    Pass,
    fused_s,
    graphed,
    moved_s,
    product_s,
    products,
    scaled,
    total,
    weight_gradients_s,
)

SCORES_FORWARD, SCORES_BACKWARD = 9, 11
UNFUSED_SCORES_FORWARD, UNFUSED_SCORES_BACKWARD = 41, 45
QUERY_FORWARD, QUERY_BACKWARD = 4, 30
WEIGHED_FORWARD, WEIGHED_BACKWARD = 6, 10
SCAN_FORWARD, SCAN_BACKWARD, SCAN_STRETCH = 4, 8, 1.5
CONVOLUTION_FORWARD, CONVOLUTION_BACKWARD, STATES_FORWARD, STATES_BACKWARD = 4, 10, 8, 24
GATE_FORWARD, GATE_BACKWARD, TRANSPOSED = 6, 18, 4
DELTA_ROWS = 64  # of a chunk under a delta rule
DELTA_RULES = ("gated-deltanet", "kda")
STEPS = {"mamba-2": 1, "gated-deltanet": 2, "kda": 1, "lightning": 0}
"""Numbers that a head needs for each token beside its keys and values."""
SCANNED = {"mamba-2": 3.5, "gated-deltanet": 4.0, "kda": 4.0, "lightning": 2.0}
"""Multiplications and additions of a token for each element of a state."""


class Cut(NamedTuple):
    """One GPU's part of a mixer: tokens, ranks that share its heads and its sequences, and the
    layer it stands in.
    """

    rows: float
    tp: int
    cp: int
    sequences: float
    hidden: int
    seq: int


def cut_of(model: Transformer, tp: int, cp: int = 1, sequences: float = 1) -> Cut:
    """The part of one of `tp` times `cp` GPUs of so many sequences."""
    return Cut(sequences * model.seq / cp, tp, cp, sequences, model.hidden, model.seq)


def mixer_shares(model: Transformer) -> Iterator[tuple[float, Mixer]]:
    """The mixers of the mean layer."""
    for layers, mixer in model.kinds:
        yield layers / model.layers, mixer


def key_columns(attention: Attention, tp: int) -> float:
    """n_kv: columns of keys and values; a KV head stands on every rank that needs it."""
    tensors = attention.head_dim + (0 if attention.shared_kv else attention.value_size)
    return max(attention.kv_heads // tp, 1) * tensors


def unfolded_columns(attention: Attention, tp: int) -> int:
    """Columns that latent attention unfolds keys and values to: a·(e - e_r + e_v)/t."""
    without_position = attention.head_dim - attention.rope_dim
    return attention.heads * (without_position + attention.value_size) // tp


def meets_latents(attention: Attention) -> bool:
    """Whether queries meet latents, of which each head would have to unfold the keys it chose."""
    return bool(attention.kv_rank and attention.index_heads)


def core_sizes(attention: Attention) -> tuple[int, int]:
    """A head's columns of a key and of a value as the core meets them."""
    if meets_latents(attention):
        return attention.kv_rank + attention.rope_dim, attention.kv_rank
    return attention.head_dim, attention.value_size


def pooled_columns(attention: Attention) -> int:
    """Columns that a token adds to compressed keys of the core and of the indexer, with the weights
    these are pooled by; where they are chosen among, windows overlap.
    """
    if attention.compression == 1:
        return 0
    windows = 2 if attention.index_heads else 1
    return 2 * windows * (attention.head_dim + attention.index_dim)


def before_core(mixer: Mixer, cut: Cut) -> list[MatrixProduct]:
    """The products in front of what mixes tokens."""
    if isinstance(mixer, ScanLayers):
        return _before_scan(mixer, cut)
    n, h, tp = cut.rows, cut.hidden, cut.tp
    widths: list[float] = [mixer.heads * mixer.head_dim // tp]
    gate = mixer.heads * mixer.value_size // tp if mixer.output_gate else 0
    shapes = []
    if mixer.q_rank:
        shapes.append(MatrixProduct(n, mixer.q_rank, h))
    if mixer.kv_rank:
        shapes.append(MatrixProduct(n, mixer.kv_rank + mixer.rope_dim, h))
        shapes.append(MatrixProduct(n, unfolded_columns(mixer, tp), mixer.kv_rank))
    elif mixer.q_rank:
        shapes.append(MatrixProduct(n, key_columns(mixer, tp), h))
    if gate and shapes:
        shapes.append(MatrixProduct(n, gate, h))
    if not shapes:  # one matrix has all
        widths += [key_columns(mixer, tp), gate]
    shapes.append(MatrixProduct(n, sum(widths), mixer.q_rank or h))
    pools = pooled_columns(mixer)
    if mixer.index_heads:
        shapes.append(MatrixProduct(n, mixer.index_heads * mixer.index_dim, mixer.q_rank or h))
        shapes.append(MatrixProduct(n, mixer.index_heads, h))
        shapes.append(MatrixProduct(n, (4 if pools else 1) * mixer.index_dim, h))
        pools -= 4 * mixer.index_dim if pools else 0
    return [*shapes, MatrixProduct(n, pools, h)] if pools else shapes


def _before_scan(scan: ScanLayers, cut: Cut) -> list[MatrixProduct]:
    n, h, tp = cut.rows, cut.hidden, cut.tp
    values, pairs = scan.heads * scan.head_dim // tp, 2 * scan.groups * scan.state // tp
    once = values + pairs + STEPS[scan.kind] * scan.heads // tp
    shapes = [MatrixProduct(n, once + (0 if scan.gate_rank else values), h)]
    if scan.gate_rank:
        shapes += [MatrixProduct(n, scan.gate_rank, h), MatrixProduct(n, values, scan.gate_rank)]
    if scan.kind == "kda":
        shapes.append(MatrixProduct(n, pairs / 2, scan.decay_rank or h))
        shapes += [MatrixProduct(n, scan.decay_rank, h)] if scan.decay_rank else []
    return shapes


def behind_core(mixer: Mixer, cut: Cut) -> list[MatrixProduct]:
    """The products behind it."""
    n, h, tp = cut.rows, cut.hidden, cut.tp
    if isinstance(mixer, ScanLayers):
        return [MatrixProduct(n, h, mixer.heads * mixer.head_dim // tp)]
    values = mixer.heads * mixer.value_size
    if not mixer.output_rank:
        return [MatrixProduct(n, h, values // tp)]
    groups = mixer.output_groups
    narrowed = MatrixProduct(n, mixer.output_rank, values // groups, groups // tp)
    return [narrowed, MatrixProduct(n, h, groups * mixer.output_rank // tp)]


def mixer_parameters(mixer: Mixer, cut: Cut) -> float:
    """Parameters of a mixer on one GPU."""
    shapes = [*before_core(mixer, cut), *behind_core(mixer, cut)]
    return sum(shape.n * shape.k * shape.batch for shape in shapes)


def mean_mixer_parameters(model: Transformer, tp: int) -> float:
    """Parameters of the mixers of the mean layer on one of `tp` GPUs."""
    cut = cut_of(model, tp)
    return sum(share * mixer_parameters(mixer, cut) for share, mixer in mixer_shares(model))


def around_core(workload: Workload, machine: Machine, mixer: Mixer, cut: Cut) -> Pass:
    """All kernels of a mixer but the attention core."""
    machine = _in_graph(workload, machine, mixer)
    passes = [products(*part) for part in _products(workload, machine, mixer, cut)]
    if isinstance(mixer, ScanLayers):
        return total([*passes, _scanned(workload, machine, mixer, cut)])
    queries = cut.rows * mixer.heads * core_sizes(mixer)[0] / cut.tp
    gated = mixer.heads * mixer.value_size / cut.tp if mixer.output_gate else 0
    weighed = cut.rows * (gated + pooled_columns(mixer))
    forward = QUERY_FORWARD * queries + WEIGHED_FORWARD * weighed
    backward = QUERY_BACKWARD * queries + WEIGHED_BACKWARD * weighed
    traffic = workload.options.software.kernel_traffic
    moved = (moved_s(machine.layers, traffic * way) for way in (forward, backward))
    return total([*passes, Pass(*moved)])


def _in_graph(workload: Workload, machine: Machine, mixer: Mixer) -> Machine:
    """The GPU for the kernels of a mixer, which a scoped CUDA graph may hold."""
    return graphed(workload, machine, graph_module(mixer))


def graph_module(mixer: Mixer) -> str:
    """Name a mixer as the modules of CUDA graphs do."""
    return "mamba" if isinstance(mixer, ScanLayers) else "attn"


def weight_passes_s(workload: Workload, machine: Machine, mixer: Mixer, cut: Cut) -> float:
    """Seconds of the gradients of a mixer's weights."""
    machine = _in_graph(workload, machine, mixer)
    parts = _products(workload, machine, mixer, cut)
    return sum(weight_gradients_s(engine, shapes) for engine, shapes in parts)


def _products(
    workload: Workload, machine: Machine, mixer: Mixer, cut: Cut
) -> list[tuple[Engine, list[MatrixProduct]]]:
    """The products around what mixes tokens, with what runs them."""
    software, shapes = workload.options.software, [before_core(mixer, cut), behind_core(mixer, cut)]
    if isinstance(mixer, ScanLayers):
        engines = machine.layers, machine.engine(software.mamba_output_bits)
        return list(zip(engines, shapes, strict=True))
    return [(machine.engine(software.attention_bits), [*shapes[0], *shapes[1]])]


def _scanned(workload: Workload, machine: Machine, scan: ScanLayers, cut: Cut) -> Pass:
    """A scan by chunks of tokens, its convolution, its gate, and copies of micro-batches of several
    sequences.
    """
    engine, kind = machine.layers, scan.kind
    values, pairs = scan.heads * scan.head_dim / cut.tp, 2 * scan.groups * scan.state / cut.tp
    q, n = DELTA_ROWS if kind in DELTA_RULES else 128, scan.state
    chunks = cut.rows / q
    once, repeated = _chunk_products(scan, cut, chunks, q)
    scan_pass = products(machine.scores, once)
    # kernels keep neither scores nor states: both are taken once more backward
    again_s = sum(product_s(machine.scores, shape) for shape in repeated)
    states = chunks * values * n
    carried = Pass(
        moved_s(engine, STATES_FORWARD * states),
        again_s + moved_s(engine, STATES_BACKWARD * states),
    )
    convolved = 0 if kind == "lightning" else cut.rows * (values + pairs)
    gated = cut.rows * values
    # the framework has tokens by batch, the scan batch by tokens: of one sequence both are the same
    several = cut.sequences > 1 and not workload.options.software.batch_first
    copied = TRANSPOSED if several else 0
    input_copy = copied * cut.rows * scan_columns(scan, cut.tp)
    forward = CONVOLUTION_FORWARD * convolved + GATE_FORWARD * gated + input_copy + copied * gated
    backward = CONVOLUTION_BACKWARD * convolved + GATE_BACKWARD * gated + input_copy
    around = Pass(
        moved_s(engine, forward) + SCAN_FORWARD * engine.kernel_s,
        moved_s(engine, backward) + SCAN_BACKWARD * engine.kernel_s,
    )
    return total([scaled(total([scan_pass, carried]), SCAN_STRETCH), around])


def _chunk_products(
    scan: ScanLayers, cut: Cut, chunks: float, q: int
) -> tuple[list[MatrixProduct], list[MatrixProduct]]:
    """Products of all chunks, and those that run once more backward."""
    p, n, of_heads = scan.head_dim, scan.state, chunks * scan.heads / cut.tp
    outputs = [MatrixProduct(q, p, q, of_heads), MatrixProduct(q, p, n, of_heads)]
    if scan.kind not in DELTA_RULES:
        # ranks of one group of heads have its keys all
        of_groups = chunks * max(scan.groups / cut.tp, cut.cp)
        again = [MatrixProduct(q, q, n, of_groups), MatrixProduct(p, n, q, of_heads)]
        return [*again, *outputs], [*again, MatrixProduct(q, q, p, of_heads)]
    # keys among each other, the inverse of what a chunk corrects, and it times keys and values;
    # what the state before gives for the keys, and what they add to it
    corrected = [(q, q, n), (q, q, q), (q, n, q), (q, p, q), (q, p, n), (n, p, q)]
    again = [MatrixProduct(*sizes, of_heads) for sizes in corrected]
    return [*again, MatrixProduct(q, q, n, of_heads), *outputs], again


def scan_columns(scan: ScanLayers, tp: int) -> float:
    """Columns that the projections in front of a scan give."""
    columns = 2 * scan.heads * scan.head_dim + 2 * scan.groups * scan.state
    decays = scan.groups * scan.state if scan.kind == "kda" else 0
    return (columns + STEPS[scan.kind] * scan.heads + decays) / tp


def core_pass(workload: Workload, machine: Machine, mixer: Mixer, cut: Cut) -> Pass:
    """Scores, softmax and context of attention; nothing of a scan."""
    if isinstance(mixer, ScanLayers):
        return Pass(0.0, 0.0)
    machine = graphed(workload, machine, "attn")
    if workload.options.attention == "flash":
        return total(_fused_kernels(machine, mixer, cut))
    batch, queries = cut.sequences * mixer.heads / cut.tp, cut.seq / cut.cp
    size, value_size = core_sizes(mixer)
    scores = MatrixProduct(queries, cut.seq, size, batch)
    context = MatrixProduct(queries, value_size, cut.seq, batch)
    w = batch * cut.seq * queries
    # the fused softmax works on batches and heads by four; others are cast, masked and scaled by
    # kernels of their own
    fused = batch % 4 == 0
    forward = SCORES_FORWARD if fused else UNFUSED_SCORES_FORWARD
    backward = SCORES_BACKWARD if fused else UNFUSED_SCORES_BACKWARD
    moved = Pass(moved_s(machine.scores, forward * w), moved_s(machine.scores, backward * w))
    return total([products(machine.scores, [scores, context]), moved])


def _fused_kernels(machine: Machine, attention: Attention, cut: Cut) -> Iterator[Pass]:
    """A kernel for the keys of every context rank in turn, of the indexer and of the core."""
    whole = (cut.seq + FUSED_BLOCK) / 2 if attention.causal else cut.seq
    mean, most = whole / attention.compression, cut.seq / attention.compression
    if attention.index_heads:
        heads = cut.sequences * attention.index_heads
        yield _in_turn(machine, cut, heads, (attention.index_dim, 0), (mean, most))
        mean, most = min(mean, attention.index_tokens), min(most, attention.index_tokens)
    if attention.window:
        reach = attention.window + FUSED_BLOCK
        is_local = attention.compression == 1 and not attention.index_heads
        mean = min(whole, reach) + (0 if is_local else mean)
        most = min(cut.seq, reach) + (0 if is_local else most)
    heads = cut.sequences * attention.heads / cut.tp
    yield _in_turn(machine, cut, heads, core_sizes(attention), (mean, most))


def _in_turn(
    machine: Machine, cut: Cut, heads: float, sizes: tuple[int, int], keys: tuple[float, float]
) -> Pass:
    # a kernel has the keys of one context rank; all of them together go through the mean and the
    # most of them
    mean, most = keys
    work = FusedWork(heads, cut.seq / cut.cp, mean / cut.cp, most / cut.cp)
    forward_s, backward_s = (
        fused_s(machine, kernel, sizes, work) for kernel in (FUSED_FORWARD, FUSED_BACKWARD)
    )
    gap_s = machine.layers.kernel_s
    return scaled(Pass(forward_s + gap_s, backward_s + 2 * gap_s), cut.cp)


def unfolding_s(workload: Workload, machine: Machine, mixer: Mixer, cut: Cut) -> float:
    """Seconds to expand latents once more."""
    if isinstance(mixer, ScanLayers) or not mixer.kv_rank:
        return 0.0
    machine = graphed(workload, machine, "attn")
    engine, shapes = machine.engine(workload.options.software.attention_bits), []
    if not meets_latents(mixer):
        shapes.append(MatrixProduct(cut.rows, unfolded_columns(mixer, cut.tp), mixer.kv_rank))
    if mixer.q_rank:
        queries = mixer.heads * mixer.head_dim // cut.tp
        shapes.append(MatrixProduct(cut.rows, queries, mixer.q_rank))
    return sum(product_s(engine, shape) for shape in shapes)


def kept_of_row(mixer: Mixer, tp: int, w: float) -> float:
    """Bytes that a token keeps for the backward pass, of an input of a product `w` an element."""
    if isinstance(mixer, ScanLayers):
        values, keys = mixer.heads * mixer.head_dim / tp, mixer.groups * mixer.state / tp
        kept = 2 * scan_columns(mixer, tp) + 2 * values + w * values
        # normed keys and queries, values, and the triangles that chunks solve
        triangle = 2 * DELTA_ROWS * mixer.heads / tp
        if mixer.kind == "gated-deltanet":  # copies for all heads, and the norm apart from its gate
            kept += 4 * keys + 4 * mixer.heads * mixer.state / tp + 4 * values + triangle
        elif mixer.kind == "kda":
            kept += 4 * keys + 2 * values + 2 * triangle
        return kept
    size, value_size = core_sizes(mixer)
    # queries, keys, values and what the core hands on in 16 bits, and the input of the output
    # projection
    kept = 2 * (mixer.heads * size / tp + sent_keys(mixer, tp))
    kept += (4 - w + (2 if mixer.output_gate else 0)) * mixer.heads * value_size / tp
    if mixer.index_heads:  # queries of the indexer, and chosen places in 64 bits
        kept += 2 * mixer.index_heads * mixer.index_dim + 8 * mixer.index_tokens
    return kept + w * mixer.output_groups * mixer.output_rank / tp


def dropped_of_row(mixer: Mixer, tp: int) -> float:
    """Columns that a token does not keep where latents are expanded once more."""
    if isinstance(mixer, ScanLayers) or not mixer.kv_rank or meets_latents(mixer):
        return 0.0
    saved = key_columns(mixer, tp) - mixer.kv_rank - mixer.rope_dim
    saved += mixer.heads * mixer.head_dim // tp - mixer.q_rank if mixer.q_rank else 0
    return max(saved, 0)


def score_heads(model: Transformer, tp: int) -> float:
    """Heads of attention in the mean layer on one of `tp` GPUs."""
    return sum(
        share * mixer.heads / tp
        for share, mixer in mixer_shares(model)
        if not isinstance(mixer, ScanLayers)
    )


def sent_keys(mixer: Mixer, tp: int) -> float:
    """Columns of keys and values that go round the context ranks."""
    if isinstance(mixer, ScanLayers):
        return 0.0
    keys = mixer.kv_rank + mixer.rope_dim if meets_latents(mixer) else key_columns(mixer, tp)
    if mixer.compression > 1 and not mixer.window:
        keys /= mixer.compression
    return keys + mixer.index_dim / mixer.compression


def switched_columns(mixer: Mixer, tp: int, cp: int) -> float:
    """Columns that context ranks exchange in front of a scan and behind it, so that each has some
    heads of whole sequences, and the keys of their groups.
    """
    if not isinstance(mixer, ScanLayers):
        return 0.0
    pairs = 2 * mixer.state * max(mixer.groups / tp, cp)
    return (2 * mixer.head_dim + STEPS[mixer.kind]) * mixer.heads / tp + pairs


def met_in_core(mixer: Mixer, seq: int) -> float:
    """What a token does in the core or the scan, over 2 FLOPs."""
    if isinstance(mixer, ScanLayers):
        return SCANNED[mixer.kind] * mixer.heads * mixer.head_dim * mixer.state
    if not mixer.index_heads and mixer.compression == 1:
        return mixer.heads * (mixer.head_dim + mixer.value_size) * seq
    ranked = seq / mixer.compression
    met = min(ranked, mixer.index_tokens) if mixer.index_heads else ranked
    index = mixer.index_heads * mixer.index_dim * ranked
    return mixer.heads * sum(core_sizes(mixer)) * (met + mixer.window) + index


def heads_divide(mixer: Mixer, tp: int) -> bool:
    """Whether TP ranks share the heads of a mixer evenly; each needs whole groups."""
    if isinstance(mixer, ScanLayers):
        return mixer.groups % tp == 0
    # ranks divide the KV heads among them, or several hold each
    odd = mixer.kv_heads % tp and tp % mixer.kv_heads
    return not (mixer.heads % tp or odd or mixer.output_groups % tp)


def sequences_divide(workload: Workload, tp: int, cp: int) -> bool:
    """Whether context ranks share sequences evenly, and in layers with a scan its heads."""
    for scan in workload.model.scans:
        heads, groups = scan.heads // tp, scan.groups // tp
        if heads % cp or (groups % cp and cp % groups):
            return False
    return workload.model.seq % cp == 0
