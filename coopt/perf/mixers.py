"""The kinds of mixers: what each takes of a GPU's parameters, time, memory and network.

A kind is a class here, one in `verifier/training/mixers.py`, its keys in `instance/mixers.py`, and
a paragraph of docs/model.md, Mixers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coopt.instance.mixers import Attention, Mixer, ScanLayers
from coopt.instance.transformer import Transformer
from coopt.perf.kernels import (
    BLOCK,
    Blocks,
    Device,
    Passes,
    fused_attention,
    pointwise,
    product,
    products,
)

SCORES_K0 = 200  # k0 of products as shallow as a head
SCORES_FORWARD, SCORES_BACKWARD = 9, 11  # bytes moved for each score by mask, softmax and dropout
# additional bytes where batches times heads of a GPU are not a multiple of four, as the fused
# softmax requires: PyTorch then casts to fp32, scales, masks, computes the softmax and casts back
# in separate kernels
FUSED_HEADS, APART_FORWARD, APART_BACKWARD = 4, 32, 34
QUERY_FORWARD, QUERY_BACKWARD = 4, 30  # bytes moved for each element of the queries
# gates and compressors, which are as pointwise as the nonlinearity of a feed-forward layer
GATE_FORWARD, GATE_BACKWARD = 6, 10
RING_PASSES, SWITCH_PASSES = 3, 2
# scans with the kernels of mamba_ssm (ops/triton/ssd_combined.py) and flash-linear-attention:
# tokens per chunk, kernels besides products; bytes moved per element by the convolution, by the
# scan (per element of a chunk's states), by gate and norm, and by the transposition of sequences
# and batch before and after the scan
INDEX_BYTES = 8  # of the place of a key that is chosen, as top-k of PyTorch gives it
CHUNK, DELTA_CHUNK, SCAN_KERNELS_FORWARD, SCAN_KERNELS_BACKWARD = 128, 64, 4, 8
SCAN_SHARE = (
    2 / 3
)  # that its kernels in Triton reach of what libraries' products and moved bytes would (judgement)
CONVOLVED_FORWARD, CONVOLVED_BACKWARD, STATE_FORWARD, STATE_BACKWARD = 4, 10, 8, 24
MIXED_FORWARD, MIXED_BACKWARD, TURNED = 6, 18, 4


class Projection(NamedTuple):
    """Columns and depth of a matrix product on all rows, `groups` of them side by side."""

    columns: Any
    depth: Any
    groups: Any = 1


@dataclass(frozen=True)
class Division:
    """How a layer is divided: columns of mappings, of shape (n,) or numbers.

    `rows` are the tokens of a GPU, `batch` the sequences of a micro-batch, `turned_over` whether
    sequences have to be transposed for a scan.
    """

    t: Any
    c: Any
    batch: Any
    rows: Any
    turned_over: Any
    flash: bool


@dataclass(frozen=True)
class MixerLaw(ABC):
    """What a mixer needs in one layer of a model of that hidden size and sequence length."""

    mixer: Any
    hidden: int
    seq: int
    module: ClassVar[str] = "attn"
    """what it is called among the modules of scoped CUDA graphs"""

    @abstractmethod
    def inputs(self, t: Any) -> tuple[Projection, ...]:
        """Products in front of what mixes tokens, on one of t ranks."""

    @abstractmethod
    def outputs(self, t: Any) -> tuple[Projection, ...]:
        """Products behind it."""

    def parameters(self, t: Any) -> Any:
        """Parameters on one TP rank, without norms and convolutions."""
        return sum(p.columns * p.depth * p.groups for p in (*self.inputs(t), *self.outputs(t)))

    @abstractmethod
    def around_s(self, device: Device, split: Division) -> Passes:
        """Time of all kernels but the core and norms."""

    def core_s(self, device: Device, split: Division) -> Passes:
        """Time of the attention core, behind which keys and values go round; none for a scan."""
        return Passes()

    def expanded_s(self, device: Device, split: Division) -> Any:
        """Forward time of products that expand latents, which `act` and `norm+act` repeat."""
        return 0.0

    @abstractmethod
    def kept_columns(self, t: Any, width: float) -> Any:
        """Bytes that a token keeps for the backward pass, an input of a product in `width`."""

    def saved_columns(self, t: Any) -> Any:
        """Columns that are not kept where latents are expanded again."""
        return 0

    def scores(self, t: Any) -> Any:
        """Heads whose scores are kept where attention is unfused."""
        return 0

    def ring_columns(self, t: Any) -> Any:
        """Columns of keys and values that go round the context ranks."""
        return 0

    def switched_columns(self, t: Any, c: Any) -> Any:
        """Columns that context ranks exchange to have whole sequences of fewer heads."""
        return 0

    def scan_flop(self) -> float:
        """Forward FLOPs of a token in a scan."""
        return 0.0

    def attention_flop(self) -> float:
        """Forward FLOPs of a token in scores and context."""
        return 0.0

    @abstractmethod
    def divides(self, t: int) -> bool:
        """Whether t ranks can share it evenly."""

    def splits_sequences(self, t: Any, c: Any) -> Any:
        """Whether c ranks can share a sequence where t share the heads."""
        return True


class AttentionLaw(MixerLaw):
    """Attention: full, grouped, latent, windowed, sparse with an indexer, or compressed."""

    mixer: Attention

    def inputs(self, t: Any) -> tuple[Projection, ...]:
        m, h = self.mixer, self.hidden
        query, keys = m.heads * m.head_dim / t, self._kv_width(t)
        gate = m.heads * m.value_size / t if m.output_gate else 0
        if not m.q_rank and not m.kv_rank:
            widths = [Projection(query + keys + gate, h)]
        else:
            widths = [Projection(m.q_rank, h)] if m.q_rank else []
            widths += [Projection(query, m.q_rank or h)]
            if m.kv_rank:
                widths += [Projection(m.kv_rank + m.rope_dim, h)]
                widths += [Projection(self._latent_width / t, m.kv_rank)]
            else:
                widths += [Projection(keys, h)]
            widths += [Projection(gate, h)] if m.output_gate else []
        if m.compression > 1:
            widths += [Projection(self._sums * m.head_dim, h)]
        if m.index_heads:
            widths += [Projection(m.index_heads * m.index_dim, m.q_rank or h)]
            widths += [Projection(self._sums * m.index_dim, h), Projection(m.index_heads, h)]
        return tuple(widths)

    def outputs(self, t: Any) -> tuple[Projection, ...]:
        m, h = self.mixer, self.hidden
        value = m.heads * m.value_size
        if not m.output_rank:
            return (Projection(h, value / t),)
        narrowed = Projection(m.output_rank, value // m.output_groups, m.output_groups / t)
        return narrowed, Projection(h, m.output_groups * m.output_rank / t)

    def _kv_width(self, t: Any) -> Any:
        """n_kv: key and value columns of one TP rank; heads are replicated where t exceeds the KV
        heads.
        """
        m = self.mixer
        pair = m.head_dim + (0 if m.shared_kv else m.value_size)
        return np.maximum(m.kv_heads / t, 1) * pair

    @property
    def _latent_width(self) -> int:
        """Columns that latent keys and values expand to, over all heads."""
        m = self.mixer
        return m.heads * (m.head_dim - m.rope_dim + m.value_size)

    @property
    def _sums(self) -> int:
        """Columns of an entry, and of the weights it is summed with, over two windows where an
        indexer chooses among entries; 1 without compression.
        """
        if self.mixer.compression == 1:
            return 1
        return 4 if self.mixer.index_heads else 2

    @property
    def _absorbs(self) -> bool:
        """Whether queries meet latents themselves, as keys that are chosen one by one are not
        expanded.
        """
        return self.mixer.kv_rank > 0 and self.mixer.index_heads > 0

    @property
    def _sizes(self) -> tuple[int, int]:
        """Sizes of a head of queries and keys, and of values, in the core."""
        m = self.mixer
        return (m.kv_rank + m.rope_dim, m.kv_rank) if self._absorbs else (m.head_dim, m.value_size)

    def around_s(self, device: Device, split: Division) -> Passes:
        m, t, rows = self.mixer, split.t, split.rows
        widths = [(p.columns, p.depth) for p in self.inputs(t)]
        narrowed, output = self.outputs(t)[:-1], self.outputs(t)[-1]
        rate = device.rate_of(device.software.attention_bits)
        around = products(device, rows, (*widths, (output.columns, output.depth)), 1, rate)
        for p in narrowed:
            around = around + product(device, rows, p.columns, p.depth, p.groups, rate)
        query = rows * m.heads * self._sizes[0] / t
        around = around + pointwise(device, QUERY_FORWARD * query, QUERY_BACKWARD * query)
        if m.output_gate or m.compression > 1:
            gate = m.heads * m.value_size / t if m.output_gate else 0
            summed = self._sums * (m.head_dim + m.index_dim) if m.compression > 1 else 0
            moved = rows * (gate + summed)
            around = around + pointwise(device, GATE_FORWARD * moved, GATE_BACKWARD * moved)
        return around

    def core_s(self, device: Device, split: Division) -> Passes:
        s, heads = float(self.seq), split.batch * self.mixer.heads / split.t
        if split.flash:
            return self._fused_core_s(device, split)
        pairs = heads * s * (s / split.c)
        rate = replace(device.bf16_rate, k0=SCORES_K0)
        size, value_size = self._sizes
        scores = product(device, s / split.c, s, size, heads, rate)
        context = product(device, s / split.c, value_size, s, heads, rate)
        is_unfused = heads % FUSED_HEADS != 0
        forward, backward = (
            SCORES_FORWARD + APART_FORWARD * is_unfused,
            SCORES_BACKWARD + APART_BACKWARD * is_unfused,
        )
        stream = Passes(device.stream_s(forward * pairs), device.stream_s(backward * pairs))
        return replace(scores + context + stream, weights=0.0)  # neither has parameters

    def _fused_core_s(self, device: Device, split: Division) -> Passes:
        """Time of fused attention; the keys and values of the c ranks are processed one after the
        other.
        """
        c = split.c
        core = Passes()
        for heads, sizes, keys, longest in self._fused_kernels(split):
            blocks = Blocks(heads, self.seq / c, keys, longest, c)
            pauses = Passes(c * device.pause_s, 2 * c * device.pause_s)
            core = core + fused_attention(device, sizes, blocks) + pauses
        return core

    def _fused_kernels(
        self, split: Division
    ) -> Iterator[tuple[Any, tuple[int, int], float, float]]:
        """Heads, their sizes, and the mean and maximum number of keys of a block of queries, of the
        indexer and of the core.
        """
        m, s = self.mixer, self.seq
        mean = (s + BLOCK) / 2 if m.causal else s
        far, farthest = mean / m.compression, s / m.compression
        if m.index_heads:
            yield split.batch * m.index_heads, (m.index_dim, 0), far, farthest
            far, farthest = min(far, m.index_tokens), min(farthest, m.index_tokens)
        elif m.window and m.compression == 1:
            far, farthest = 0, 0
        if m.window:
            far += min(mean, m.window + BLOCK)
            farthest += min(s, m.window + BLOCK)
        yield split.batch * m.heads / split.t, self._sizes, far, farthest

    def expanded_s(self, device: Device, split: Division) -> Any:
        m, rate = self.mixer, device.rate_of(device.software.attention_bits)
        seconds: Any = 0.0
        if m.kv_rank and not self._absorbs:
            columns = self._latent_width / split.t
            seconds = device.product_s(split.rows, columns, m.kv_rank, 1, rate)
        if m.q_rank and m.kv_rank:
            columns = m.heads * m.head_dim / split.t
            seconds = seconds + device.product_s(split.rows, columns, m.q_rank, 1, rate)
        return seconds

    def kept_columns(self, t: Any, width: float) -> Any:
        m, (size, value_size) = self.mixer, self._sizes
        narrow = 2 - width  # the output projection has its input in 8 bits beside that of the core
        kept = 2 * (m.heads * size / t + self.ring_columns(t))
        kept = kept + (2 + narrow) * m.heads * value_size / t
        if m.output_gate:
            kept = kept + 2 * m.heads * value_size / t
        if m.index_heads:  # for the indexer's loss, on every rank (dsa.py of Megatron-Core)
            kept = kept + 2 * m.index_heads * m.index_dim + INDEX_BYTES * m.index_tokens
        return kept + (width * m.output_rank * m.output_groups / t if m.output_rank else 0)

    def saved_columns(self, t: Any) -> Any:
        m = self.mixer
        if not m.kv_rank or self._absorbs:
            return 0
        # latents are kept in place of what they expand to
        queries = m.heads * m.head_dim / t - m.q_rank if m.q_rank else 0
        return np.maximum(queries + self._kv_width(t) - m.kv_rank - m.rope_dim, 0)

    def scores(self, t: Any) -> Any:
        return self.mixer.heads / t

    def ring_columns(self, t: Any) -> Any:
        m = self.mixer
        keys = m.kv_rank + m.rope_dim if self._absorbs else self._kv_width(t)
        entries = 1 if m.compression == 1 or m.window else 1 / m.compression
        return keys * entries + m.index_dim / m.compression

    def attention_flop(self) -> float:
        m, (size, value_size) = self.mixer, self._sizes
        keys, index = float(self.seq), 0.0
        if m.index_heads or m.compression > 1:  # what is met, where that is not a part of all keys
            index = 2.0 * m.index_heads * m.index_dim * keys / m.compression
            keys = min(keys / m.compression, m.index_tokens or keys) + m.window
        return 2.0 * m.heads * (size + value_size) * keys + index

    def divides(self, t: int) -> bool:
        m = self.mixer
        shares_kv = m.kv_heads % t == 0 or t % m.kv_heads == 0
        return m.heads % t == 0 and shares_kv and m.output_groups % t == 0


class ScanLaw(MixerLaw):
    """A linear mixer: a state of each head, carried along the sequence in chunks."""

    mixer: ScanLayers
    module = "mamba"
    chunk = CHUNK
    steps = 1
    """columns of each head that say how far its state decays, and how much it takes up"""
    convolves = True
    flop = 7.0
    """forward FLOPs of a token for each element of the width and of the state"""

    @property
    def _values(self) -> int:
        return self.mixer.heads * self.mixer.head_dim

    @property
    def _keys(self) -> int:
        """Columns of keys and queries."""
        return 2 * self.mixer.groups * self.mixer.state

    def inputs(self, t: Any) -> tuple[Projection, ...]:
        m, h, rank = self.mixer, self.hidden, self.mixer.gate_rank
        gates = 1 if rank else 2
        columns = gates * self._values + self._keys + self.steps * m.heads
        low_rank = (Projection(rank, h), Projection(self._values / t, rank)) if rank else ()
        return Projection(columns / t, h), *low_rank

    def outputs(self, t: Any) -> tuple[Projection, ...]:
        return (Projection(self.hidden, self._values / t),)

    def _scanned(self, device: Device, split: Division) -> tuple[Passes, Passes]:
        """Products of chunks, and those of them that are repeated backward.

        Kernels keep neither scores nor states, and so compute these again in the backward pass.
        """
        m, q = self.mixer, self.chunk
        rate, chunks = replace(device.bf16_rate, k0=SCORES_K0), split.rows / q
        heads, p, n = chunks * m.heads / split.t, m.head_dim, m.state
        # context ranks that have fewer heads than groups have copies of these
        groups = chunks * np.maximum(m.groups / split.t, split.c)
        scores = product(device, q, q, n, groups, rate)
        states = product(device, p, n, q, heads, rate)
        seen = product(device, q, p, q, heads, rate) + product(device, q, p, n, heads, rate)
        steps_s = device.product_s(q, q, p, heads, rate)
        return scores + states + seen, Passes(0.0, scores.forward + states.forward + steps_s)

    def around_s(self, device: Device, split: Division) -> Passes:
        m, t, rows = self.mixer, split.t, split.rows
        bits = device.software.mamba_output_bits
        output = products(device, rows, [p[:2] for p in self.outputs(t)], 1, device.rate_of(bits))
        projections = products(device, rows, [p[:2] for p in self.inputs(t)]) + output
        width = self._values / t
        state_elements = rows / self.chunk * width * m.state
        states_stream = Passes(
            device.stream_s(STATE_FORWARD * state_elements),
            device.stream_s(STATE_BACKWARD * state_elements),
        )
        once, repeats = self._scanned(device, split)
        scan = replace(once + repeats + states_stream, weights=0.0)  # without parameters
        # elements that the convolution, the gate with its norm, and the turning over work on
        convolved, gated, projected = (
            rows * self._convolved / t,
            rows * width,
            rows * self._projected(t),
        )
        turn_bytes = TURNED * split.turned_over
        stream = Passes(
            device.stream_s(
                CONVOLVED_FORWARD * convolved
                + MIXED_FORWARD * gated
                + turn_bytes * (projected + gated)
            ),
            device.stream_s(
                CONVOLVED_BACKWARD * convolved + MIXED_BACKWARD * gated + turn_bytes * projected
            ),
        )
        pauses = Passes(
            SCAN_KERNELS_FORWARD * device.pause_s, SCAN_KERNELS_BACKWARD * device.pause_s
        )
        return projections + scan * (1 / SCAN_SHARE) + stream + pauses

    @property
    def _convolved(self) -> int:
        return self._values + self._keys if self.convolves else 0

    def _projected(self, t: Any) -> Any:
        """Columns that the input projections give on one rank, without narrowed ones."""
        return sum(p.columns for p in self.inputs(t)) - self._narrowed

    @property
    def _narrowed(self) -> int:
        return self.mixer.gate_rank

    def kept_columns(self, t: Any, width: float) -> Any:
        return 2 * self._projected(t) + (2 + width) * self._values / t

    def switched_columns(self, t: Any, c: Any) -> Any:
        # in front of the scan and behind it; keys of a group go to all ranks that have its heads
        copies = np.maximum(self.mixer.groups / t, c) * 2 * self.mixer.state
        return 2 * self._values / t + copies + self.steps * self.mixer.heads / t

    def scan_flop(self) -> float:
        return self.flop * self._values * self.mixer.state

    def divides(self, t: int) -> bool:
        return self.mixer.groups % t == 0

    def splits_sequences(self, t: Any, c: Any) -> Any:
        heads, groups = self.mixer.heads // t, self.mixer.groups // t
        return (heads % c == 0) & ((groups % c == 0) | (c % groups == 0))


class DeltaLaw(ScanLaw):
    """Gated DeltaNet: a state that is corrected by what it already gives for a key.

    Of a chunk the corrections are a triangular system, solved as flash-linear-attention does.
    """

    chunk = DELTA_CHUNK
    steps = 2
    flop = 8.0

    def kept_columns(self, t: Any, width: float) -> Any:
        return super().kept_columns(t, width) + 2 * self._kept_of_kernels / t

    @property
    def _kept_of_kernels(self) -> int:
        """Columns that kernels apart from each other keep, where that of Mamba-2 is a single one.

        Keys and queries as normed and as copied to all heads, values, the triangles of chunks, and
        what the norm behind gives to its gate: gated_delta_net of Megatron-Core, whose
        chunk_gated_delta_rule is that of flash-linear-attention.
        """
        m = self.mixer
        return self._keys + m.heads * (2 * m.state + self.chunk) + 2 * self._values

    def _scanned(self, device: Device, split: Division) -> tuple[Passes, Passes]:
        m, q = self.mixer, self.chunk
        rate, heads = replace(device.bf16_rate, k0=SCORES_K0), split.rows / q * m.heads / split.t
        p, n = m.head_dim, m.state
        corrections = ((q, n), (q, q), (n, q), (p, q))  # K·K, its inverse, and both times it
        solved = products(device, q, corrections, heads, rate)
        states = products(device, q, ((p, n),), heads, rate) + product(device, n, p, q, heads, rate)
        seen = products(device, q, ((q, n), (p, q), (p, n)), heads, rate)
        return solved + states + seen, Passes(0.0, solved.forward + states.forward)


class KdaLaw(DeltaLaw):
    """Kimi Delta Attention: as Gated DeltaNet, with a decay of each column of a key."""

    steps = 1

    def inputs(self, t: Any) -> tuple[Projection, ...]:
        rank, columns = self.mixer.decay_rank, self._keys / 2 / t
        narrowed = (Projection(rank, self.hidden),) if rank else ()
        return *super().inputs(t), *narrowed, Projection(columns, rank or self.hidden)

    @property
    def _narrowed(self) -> int:
        return self.mixer.gate_rank + self.mixer.decay_rank

    @property
    def _kept_of_kernels(self) -> int:
        # chunk_kda has as many keys as heads, and two triangles; the norm has its gate inside
        return self._keys + 2 * self.mixer.heads * self.chunk + self._values


class LightningLaw(ScanLaw):
    """Lightning attention: linear attention with a fixed decay of each head, no convolution."""

    steps = 0
    convolves = False
    flop = 4.0


LAWS: dict[str, type[MixerLaw]] = {
    "attention": AttentionLaw,
    "mamba-2": ScanLaw,
    "gated-deltanet": DeltaLaw,
    "kda": KdaLaw,
    "lightning": LightningLaw,
}


@lru_cache(maxsize=1 << 10)
def laws_of(model: Transformer) -> tuple[tuple[float, MixerLaw], ...]:
    """Return the laws of a model's mixers, each with the share of layers that have it."""
    return tuple(
        (layers / model.layers, _law_of(mixer, model.hidden, model.seq))
        for layers, mixer in model.kinds
    )


def _law_of(mixer: Mixer, hidden: int, seq: int) -> MixerLaw:
    kind = mixer.kind if isinstance(mixer, ScanLayers) else "attention"
    return LAWS[kind](mixer, hidden, seq)
