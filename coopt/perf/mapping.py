"""Mappings and placements as arrays of columns, tools to evaluate equal rows once, and what a
mapping leaves of a transformer on one GPU: widths, parameters, FLOPs per token, and utilisation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopt.instance.hardware import Gpu
from coopt.instance.layouts import Layout, stages_of
from coopt.instance.mixers import Encoder, Mixer, ScanLayers
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.perf.kernels import with_bits
from coopt.perf.mixers import laws_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RECOMPUTE = ("none", "selective", "full", "norm+act", "norm+ffn", "act")
NONE, SELECTIVE, FULL, NORM_ACT, NORM_FFN, ACT = range(6)
OUTERMOST = ("pp", "dp")
STAGES_APART, STAGES_TOGETHER = range(2)
"""The dimension that is outermost across domains: pipeline stages lie far apart, or the stages of a
pipeline lie next to each other.
"""
NAMED = {"recompute": RECOMPUTE, "outermost": OUTERMOST}
FEW_ROWS = 1 << 11
"""Number of rows up to which sorting them is cheaper than numbering their columns one by one."""
FEW_TO_TIME = 64
"""Number of rows up to which every row is timed: finding equal rows takes as long as timing about
80.
"""
SMALL_TABLE, TABLE_PER_ROW = 1 << 15, 1 << 7
"""Table sizes, in total and per row, up to which filling a table is cheaper than sorting the rows.
"""
UNSPLIT = {
    "recompute": NONE,
    "sequence_parallel": 0,
    "zero": 0,
    "offload_percent": 0,
    "outermost": STAGES_APART,
}
"""Values of fields where nothing is split or saved; all other fields are degrees and counts, with
value 1.
"""


@dataclass(frozen=True, kw_only=True)
class Mappings:
    """Parallel mappings of a workload, one per row.

    All arrays have shape (n,). `recompute` holds indices into `RECOMPUTE`, `outermost` into
    `OUTERMOST`.
    """

    tp: Ints
    cp: Ints
    pp: Ints
    dp: Ints
    ep: Ints
    micro_batch: Ints
    interleave: Ints
    recompute: Ints
    sequence_parallel: Bools
    zero: Ints
    offload_percent: Ints
    outermost: Ints

    @classmethod
    def of(cls, **columns: Any) -> Mappings:
        """Build rows from columns by name, of shape (n,); degrees that are left out are 1."""
        size = len(next(iter(columns.values())))
        return cls.of_table(
            np.array(
                [
                    np.asarray(columns.get(f.name, np.full(size, UNSPLIT.get(f.name, 1))))
                    for f in fields(cls)
                ]
            )
        )

    @classmethod
    def of_table(cls, table: Ints) -> Mappings:
        """Build rows from integers of shape (fields, n), in the order of the fields."""
        columns = dict(zip((f.name for f in fields(cls)), table, strict=True))
        return cls(**columns | {"sequence_parallel": columns["sequence_parallel"].astype(np.bool_)})

    @classmethod
    def of_choice(cls, values: Mapping[str, int | bool | str]) -> Mappings:
        """Build one row from the values of a plan, which name the recomputation and the outermost
        dimension.
        """
        names = {
            name: entries.index(str(values[name]))
            for name, entries in NAMED.items()
            if name in values
        }
        numbers = {**values, **names}
        numbers.pop("pipeline_layout", None)  # that of the workload
        return cls.of(**{name: [int(value)] for name, value in numbers.items()})

    def choice(self, row: int) -> dict[str, int | bool | str]:
        """Return the values of a row as plans store them."""
        numbers = {f.name: getattr(self, f.name)[row].item() for f in fields(self)}
        return numbers | {name: entries[numbers[name]] for name, entries in NAMED.items()}

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, rows: Ints | Bools | slice) -> Mappings:
        """Select rows."""
        # a mask would be scanned once per column
        at = rows if isinstance(rows, slice) or rows.dtype != np.bool_ else np.flatnonzero(rows)
        return Mappings(**{name: column[at] for name, column in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Placements:
    """The part of each parallel degree that lies inside an HB domain; arrays of shape (n,), row by
    row with `Mappings`.

    `expert_ranks` derives the expert groups from these. Where domains hold different numbers of
    GPUs, `dp` is the number of replicas in the fullest domains, `dp_min` that in the emptiest
    ones, and `dp_domains` the number of domains that hold the replicas of a stage.
    """

    tp: Ints
    cp: Ints
    pp: Ints
    dp: Ints
    dp_domains: Ints | None = None
    dp_min: Ints | None = None

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, rows: Ints | Bools | slice) -> Placements:
        """Select rows."""
        return Placements(
            **{name: column[rows] for name, column in vars(self).items() if column is not None}
        )

    def dp_across(self, mappings: Mappings) -> Ints:
        """Return d_l, the number of domains that hold the replicas of a stage; shape (n,)."""
        return mappings.dp // self.dp if self.dp_domains is None else self.dp_domains

    @property
    def dp_at_least(self) -> Ints:
        """Minimum number of replicas of a stage in a domain that holds any; shape (n,)."""
        return self.dp if self.dp_min is None else self.dp_min

    @property
    def filled(self) -> Ints:
        """GPUs in use in the fullest domain; shape (n,)."""
        return self.tp * self.cp * self.pp * self.dp


def micro_batches(mappings: Mappings, global_batch: int) -> Ints:
    """m: micro-batches per pipeline and iteration."""
    return global_batch // (mappings.dp * mappings.micro_batch)


def part_of_tp(expert_tp: int) -> int:
    """Number of TP ranks that split an expert, where these are neither one nor all; else 1."""
    return 1 if expert_tp is True else max(expert_tp, 1)


def tp_of_experts(t: Any, expert_tp: int) -> Any:
    """t_x: TP ranks of t that split an expert, where all (true), some or none (false) do."""
    return t if expert_tp is True else np.gcd(t, part_of_tp(expert_tp))


def replicas_together(mappings: Mappings, *, expert_tp: int) -> Ints:
    """Minimum number of replicas of a stage that fill whole expert groups, with TP and context
    ranks in one domain; shape (n,).
    """
    holders = mappings.cp * (mappings.tp // tp_of_experts(mappings.tp, expert_tp))
    return np.asarray(mappings.ep // np.gcd(mappings.ep, holders))


def uneven_replicas(dp: int, joint_replicas: int, domains: int) -> tuple[int, int]:
    """Replicas of a stage in the fullest and in the emptiest domains, where each group of
    `joint_replicas` stays in one domain.
    """
    groups = dp // joint_replicas
    return joint_replicas * -(-groups // domains), joint_replicas * (groups // domains)


def expert_ranks(
    mappings: Mappings, placements: Placements, *, expert_tp: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Extent of expert groups, and of the groups of GPUs that hold the same experts; arrays of
    shape (n,).

    Returns
    -------
    inside, across, copies_inside, copies_across
        x_h, x_l: ranks of an expert group in one HB domain, and domains it spans; the same for the
        copies of an expert.
    """
    split = tp_of_experts(mappings.tp, expert_tp)
    split_inside = np.gcd(split, placements.tp)
    ranks_inside = placements.cp * placements.dp * (placements.tp // split_inside)
    tp_domains = mappings.tp // placements.tp // (split // split_inside)
    domains = mappings.cp // placements.cp * placements.dp_across(mappings) * tp_domains
    # an expert group takes the ranks of its domain first (docs/model.md, Which ranks)
    inside = np.gcd(mappings.ep, ranks_inside)
    across = mappings.ep // inside
    return inside, across, ranks_inside // inside, domains // across


def split_copies(inside: Any, across: Any, copies: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Extents inside a domain and across of the ranks that share out a copy of what they hold, and
    of those that hold the same shard; copies are numbered last.
    """
    ranks = np.maximum(inside * across // copies, 1)
    within = np.gcd(ranks, inside)
    return (within, ranks // within), (inside // within, across // (ranks // within))


def chunk_layers(layers: int, mappings: Mappings) -> Ints:
    """Layers of the largest model chunk: ceil(L / (p·v)); shape (n,)."""
    return -(-layers // (mappings.pp * mappings.interleave))


def stage_layers(model: Transformer, mappings: Mappings) -> tuple[Ints, Ints]:
    r"""Layers of the fullest stage, :math:`\ell`, and how many fewer the last stage has; shape (n,)
    each.

    If the layers do not fill all chunks, the missing ones are taken from the first and the last
    stage, which hold the embedding and the logits. They are taken from the last stage alone if it
    also has further predictions and its last chunk has enough layers, as in the recipes of
    DeepSeek-V3.
    """
    chunk = chunk_layers(model.layers, mappings)
    fullest = chunk * mappings.interleave
    missing_layers = mappings.pp * fullest - model.layers
    all_on_last = (missing_layers <= chunk) & (model.extra_predictions > 0)
    return fullest, np.where(all_on_last, missing_layers, missing_layers - missing_layers // 2)


def distinct_rows(*columns: Ints) -> tuple[tuple[Ints, ...], Ints]:
    """Return the distinct rows of columns of small integers, without sorting where that is cheaper.

    Where many rows have too many combinations for a table (powers of two up to a hundred thousand,
    for example), each column is numbered first. That keeps the order of its values, so the result
    is the same as with sorting.

    Returns
    -------
    rows, position
        `rows[j][position]` is column j again; rows are in rising order.
    """
    count = len(columns[0])
    if not count:
        return tuple(column[:0] for column in columns), np.zeros(0, dtype=np.int64)
    sizes = [int(column.max()) + 1 for column in columns]
    combinations = math.prod(sizes)
    if combinations <= np.iinfo(np.int64).max and (
        count <= FEW_ROWS or _may_fill(combinations, count)
    ):
        return _looked_up(columns, sizes)
    values, numbers = zip(
        *(_numbered(column, size) for column, size in zip(columns, sizes, strict=True)), strict=True
    )
    sizes = [len(present) for present in values]
    if math.prod(sizes) > np.iinfo(np.int64).max:
        table, position = np.unique(np.stack(columns), axis=1, return_inverse=True)
        return tuple(table), position.ravel()
    rows, position = _looked_up(numbers, sizes)
    return tuple(present[row] for present, row in zip(values, rows, strict=True)), position


def _looked_up(columns: Sequence[Ints], sizes: Sequence[int]) -> tuple[tuple[Ints, ...], Ints]:
    """Implement `distinct_rows` for columns below the given sizes, by the index of each row among
    all combinations.
    """
    keys, position = _numbered(np.ravel_multi_index(tuple(columns), sizes), math.prod(sizes))
    return np.unravel_index(keys, sizes), position


def _numbered(column: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct values of a column below `size` in rising order, and the index of each
    entry among them.
    """
    if not _may_fill(size, len(column)):
        values, position = np.unique(column, return_inverse=True)
        return values, position.ravel()
    present = np.zeros(size, dtype=np.bool_)
    present[column] = True
    values = np.flatnonzero(present)
    number = np.empty(size, dtype=np.int64)
    number[values] = np.arange(len(values))
    return values, number[column]


def _may_fill(size: int, count: int) -> bool:
    """Whether filling a table of that size is cheaper than sorting that many rows."""
    return size <= max(SMALL_TABLE, TABLE_PER_ROW * count)


def representatives(*columns: Ints) -> tuple[Ints, Ints]:
    """Select one row for each distinct combination of columns.

    Returns
    -------
    rows, position
        Indexing the results for `rows` by `position` gives the results of all rows.
    """
    combinations, position = distinct_rows(*columns)
    rows = np.empty(len(combinations[0]), dtype=np.int64)
    rows[position] = np.arange(len(position))
    return rows, position


def rows_to_time(*columns: Ints) -> tuple[Ints, Ints]:
    """`representatives`, or every row where there are so few that timing each is faster than
    finding equal ones.
    """
    count = len(columns[0])
    if count > FEW_TO_TIME:
        return representatives(*columns)
    return np.arange(count), np.arange(count)


def vocab_share(model: Transformer, t: Any) -> Any:
    """ceil(V/t): rows of the embedding on one TP rank."""
    return -(-model.vocab // t)


def ffn_matrices(model: Transformer) -> int:
    """Number of matrices in a feed-forward layer."""
    return 3 if model.gated else 2


def expert_layers(model: Transformer) -> float:
    """Share of the layers that are mixtures of experts."""
    return (model.with_ffn - model.dense_layers) / model.layers if model.experts else 0.0


def ffn_share(model: Transformer) -> float:
    """Share of the layers that have a feed-forward part."""
    return model.with_ffn / model.layers


def wide_share(workload: Workload) -> float:
    """Share of the layers that stay in 16 bits when the others use 8 or 4."""
    if workload.precision not in ("fp8", "fp4"):
        return 0.0
    return min(workload.options.software.wide_layers / workload.model.layers, 1.0)


def prediction_of(workload: Workload) -> Workload:
    """Return the workload whose mean layer is one that predicts a further token.

    In a hybrid model none of these layers counts among `wide_layers`.
    """
    model, options, software = (
        workload.model.prediction,
        workload.options,
        workload.options.software,
    )
    changes: dict[str, Any] = {}
    precision = with_bits(workload.precision, software.prediction_bits)
    if precision != workload.precision:
        changes["precision"] = precision
    if model is not workload.model:
        software = software.model_copy(update={"wide_layers": 0})
        changes |= {"model": model, "options": options.model_copy(update={"software": software})}
    return workload.model_copy(update=changes) if changes else workload


def further_exchanges(model: Transformer) -> float:
    """Number of mean layers with as much expert traffic as all further predictions together."""
    share = expert_layers(model)
    return model.extra_predictions * expert_layers(model.prediction) / share if share else 0.0


def block_share(model: Transformer) -> float:
    """Mixers and feed-forward parts of the mean layer, each with a norm, relative to the two of a
    plain layer.
    """
    return (mixer_share(model) + ffn_share(model)) / 2


def expert_width(model: Transformer) -> int:
    """h_x: width of the rows that experts work on."""
    return model.expert_latent or model.hidden


def attended_share(model: Transformer) -> float:
    r"""Mean share of the sequence that a token attends to under flash attention, over all layers:
    :math:`\rho`.
    """
    full_share = 0.5 if model.causal else 1.0
    window_share = min(full_share, model.window / model.seq)
    layers = model.with_attention
    return (
        ((layers - model.window_layers) * full_share + model.window_layers * window_share) / layers
        if layers
        else 1.0
    )


def expert_rows(model: Transformer, rows: Any, t: Any, expert_split: Any) -> Any:
    """n_E: rows that all experts of a GPU process together, for `rows` tokens on a GPU."""
    return model.capacity * (rows * expert_split / t) * model.top_k


# power-law routing slows experts 1.33 to 1.49 times where 8 GPUs hold them, 1.43 to 1.69 times
# where 32 do, in the median over GPUs (aiconfigurator-core 0.12.0): 1.41 and 1.56 times
UNEVEN, UNEVEN_POWER = 0.21, 0.61


def unevenness(workload: Workload, ep: Any) -> Any:
    """Time of the experts of the busiest of `ep` GPUs over that of the mean."""
    if workload.balance == "forced" or not workload.model.experts:
        return 1.0
    if workload.balance == "trained":
        return 1.0 + UNEVEN * np.log2(np.maximum(ep, 1)) ** UNEVEN_POWER
    return np.where(ep > 1, workload.balance, 1.0)


def mixer_share(model: Transformer) -> float:
    """Share of the layers that have a mixer: attention, or a linear one."""
    return sum(layers for layers, _ in model.kinds) / model.layers


def mixer_parameters(model: Transformer, t: Any) -> Any:
    """Parameters of the mixers of a layer on one TP rank, averaged over all layers."""
    return sum(share * law.parameters(t) for share, law in laws_of(model))


def encoder_parameters(model: Transformer, t: Any) -> Any:
    """Parameters of encoders with their projectors on one TP rank, spread over all layers."""
    whole: Any = 0.0
    for encoder, tower in model.towers:
        projector = sum(n * k for n, k in projector_widths(encoder, model.hidden, t))
        whole = whole + tower.layers * layer_parameters(tower, t) + projector
    return whole / model.layers


def projector_widths(encoder: Encoder, hidden: int, t: Any) -> tuple[tuple[Any, Any], ...]:
    """Columns and depth of the products between an encoder and the model behind it."""
    merged = encoder.merge * encoder.hidden
    one: tuple[tuple[Any, Any], ...] = ((hidden, merged / t),)
    if encoder.projector:
        one = (encoder.projector / t, merged), (hidden, encoder.projector / t)
    return one * encoder.projectors


def residual_width(model: Transformer) -> float:
    """Columns between two layers, those of encoders spread over all layers."""
    return model.hidden * (model.streams + encoded_rows(model))


def encoded_rows(model: Transformer) -> float:
    """Elements between two layers of all encoders over those of the model's own layers."""
    own = model.layers * model.seq * model.hidden
    return sum(e.layers * e.tokens * e.inputs * e.hidden for e in model.encoders) / own


def layer_parameters(model: Transformer, t: Any) -> Any:
    """Parameters of a layer on one TP rank, without experts and norms, averaged over all layers."""
    per_column = model.hidden * ffn_matrices(model) / t
    mixers = mixer_parameters(model, t) + encoder_parameters(model, t)
    if not model.experts:
        return mixers + ffn_share(model) * (per_column * model.ffn)
    share = expert_layers(model)
    mixture = share * (
        per_column * model.shared_ffn + model.hidden * (model.experts + 2 * model.expert_latent)
    )
    return mixers + mixture + (ffn_share(model) - share) * per_column * model.dense_ffn


def layer_expert_parameters(model: Transformer, t: Any, ep: Any, *, expert_tp: int) -> Any:
    """Expert parameters of a layer on one GPU, averaged over all layers."""
    if not model.experts:
        return np.zeros(np.shape(t))
    split = tp_of_experts(t, expert_tp)
    return (
        expert_layers(model)
        * ffn_matrices(model)
        * expert_width(model)
        * model.ffn
        * (model.experts / ep)
        / split
    )


def of_layout(workload: Workload, mappings: Mappings, count: Callable[[Layout], int]) -> Ints:
    """A count of the stages of a given layout, for the number of stages of each mapping; shape
    (n,).
    """
    counts = {p: count(stages_of(workload.layout, p)) for p in set(mappings.pp.tolist())}
    return np.array([counts[p] for p in mappings.pp.tolist()], dtype=np.int64)


def most_layers(workload: Workload, mappings: Mappings) -> Ints:
    """Layers of the fullest stage of a given layout, without those that predict further tokens;
    shape (n,).
    """
    return of_layout(workload, mappings, lambda stages: max(s.layers for s in stages))


def further_layers(model: Transformer, mappings: Mappings) -> Ints:
    """Layers of the last stage beyond those of a full stage; shape (n,).

    These are further predictions that do not take the place of missing layers.
    """
    _, fewer = stage_layers(model, mappings)
    return np.maximum(model.extra_predictions - fewer, 0)


def held_parameters(workload: Workload, mappings: Mappings) -> Floats:
    """P: parameters on the fullest GPU, including an embedding, without experts; shape (n,)."""
    model = workload.model
    rows, position = rows_to_time(mappings.tp, mappings.pp, mappings.interleave)
    distinct_mappings = mappings.take(rows)
    holds_both_tables = (distinct_mappings.pp == 1) & (not model.tied_embeddings)
    embedding = (
        vocab_share(model, distinct_mappings.tp) * model.hidden * np.where(holds_both_tables, 2, 1)
    )
    fullest = _held_layers(workload, distinct_mappings)
    return np.asarray(
        (fullest * layer_parameters(model, distinct_mappings.tp) + embedding)[position],
        dtype=np.float64,
    )


def held_expert_parameters(workload: Workload, mappings: Mappings) -> Floats:
    """P_x: expert parameters on the fullest GPU; shape (n,)."""
    model, expert_tp = workload.model, workload.options.expert_tp
    if not model.experts:
        return np.zeros(len(mappings))
    fullest = _held_layers(workload, mappings)
    of_layer = layer_expert_parameters(model, mappings.tp, mappings.ep, expert_tp=expert_tp)
    return np.asarray(fullest * of_layer, dtype=np.float64)


def _held_layers(workload: Workload, mappings: Mappings) -> Ints:
    """Layers on the fullest GPU; shape (n,)."""
    model = workload.model
    if workload.layout:
        return of_layout(workload, mappings, lambda stages: max(s.all_layers for s in stages))
    fullest, _ = stage_layers(model, mappings)
    return fullest + further_layers(model, mappings) if model.extra_predictions else fullest


def model_flop_per_token(model: Transformer) -> float:
    """M: forward and backward FLOPs per token, with attention counted in full."""
    j, prediction = model.extra_predictions, model.prediction
    products = model.layers * _active_parameters(model) + j * _active_parameters(prediction)
    products += (1 + j) * model.vocab * model.hidden
    return 6.0 * products + 3.0 * (
        model.layers * _mixing_flop(model) + j * _mixing_flop(prediction)
    )


def causal_flop_per_token(model: Transformer) -> float:
    """FLOPs per token as `model_flop_per_token`, with half of the attention where tokens look back
    only, as Megatron-LM, Megatron Bridge and MLPerf count.
    """
    if not model.causal:
        return model_flop_per_token(model)
    forward = sum(
        layers * sum(share * law.attention_flop() for share, law in laws_of(one))
        for layers, one in (
            (model.layers, model),
            (model.extra_predictions, model.prediction),
        )
    )
    return model_flop_per_token(model) - 1.5 * forward


def hardware_flop_per_token(model: Transformer, recompute: Any, *, flash: bool) -> Floats:
    """R: FLOPs per token including recomputation, in the convention of arXiv 2205.05198; shape of
    `recompute`.
    """
    full_flop = model.layers * (2.0 * _active_parameters(model) + _mixing_flop(model))
    selective_flop = 0.0 if flash else 3.0 * model.layers * _layer_attention_flop(model)
    feed_forward_flop = (
        2.0 * model.layers * (_active_parameters(model) - mixer_parameters(model, 1))
    )
    extra = np.select(
        [recompute == FULL, recompute == NORM_FFN, recompute == SELECTIVE],
        [full_flop, feed_forward_flop, selective_flop],
    )
    return np.asarray(model_flop_per_token(model) + extra, dtype=np.float64)


def _active_parameters(model: Transformer) -> float:
    """A: parameters of a layer per token, averaged over all layers."""
    active = float(layer_parameters(model, 1) - encoder_parameters(model, 1))
    if model.experts:
        active += (
            expert_layers(model)
            * ffn_matrices(model)
            * expert_width(model)
            * model.top_k
            * model.ffn
        )
    for encoder, tower in model.towers:  # which have tokens of their own
        projector = sum(n * k for n, k in projector_widths(encoder, model.hidden, 1))
        work = tower.layers * _active_parameters(tower) + projector / encoder.merge
        active += work * encoder.tokens * encoder.inputs / model.seq / model.layers
    return active


def _layer_attention_flop(model: Transformer) -> float:
    """Forward FLOPs per token of attention scores and context in the mean layer."""
    flop = sum(share * law.attention_flop() for share, law in laws_of(model))
    for encoder, tower in model.towers:
        tokens = encoder.tokens * encoder.inputs / model.seq
        flop += tower.layers / model.layers * tokens * _layer_attention_flop(tower)
    return flop


def _mixing_flop(model: Transformer) -> float:
    """Forward FLOPs per token in the mean layer that combine tokens: of attention and of scans.

    The latter are counted as in Megatron Bridge (src/megatron/bridge/training/utils/flop_utils.py).
    """
    scan_flop = sum(share * law.scan_flop() for share, law in laws_of(model))
    return _layer_attention_flop(model) + scan_flop


class Component(NamedTuple):
    """A part of a model: its parameters, and those that a token meets."""

    name: str
    total: float
    active: float


def components(model: Transformer) -> list[Component]:
    """Parameters of a whole model by component, without norms, biases, convolutions and layers that
    predict further tokens.

    Of a mixture of experts those count as active that a token of text meets.
    """
    own = [Component("embeddings", *[float(_tables(model))] * 2)]
    mixers = Counter[str]()
    for (_, mixer), (share, law) in zip(model.kinds, laws_of(model), strict=True):
        mixers[mixer_name(mixer)] += share * model.layers * law.parameters(1)
    own += [Component(name, float(size), float(size)) for name, size in mixers.items()]
    matrix, mixed = ffn_matrices(model) * model.hidden, expert_layers(model) * model.layers
    dense = (model.with_ffn - mixed) * matrix * (model.dense_ffn if model.experts else model.ffn)
    experts = mixed * ffn_matrices(model) * expert_width(model) * model.ffn
    around = mixed * model.hidden * (model.experts + 2 * model.expert_latent)
    encoders = float(encoder_parameters(model, 1)) * model.layers
    sizes = {
        "dense feed-forward": (dense, dense),
        "experts": (experts * model.experts, experts * model.top_k),
        "shared experts": (mixed * matrix * model.shared_ffn,) * 2,
        f"routers{' and latent projections' * bool(model.expert_latent)}": (around, around),
        "encoders": (encoders, 0.0 if model.experts else encoders),
    }
    return own + [Component(name, *size) for name, size in sizes.items() if size[0]]


def mixer_name(mixer: Mixer) -> str:
    """Return what a kind of mixer is called."""
    if isinstance(mixer, ScanLayers):
        return mixer.kind
    kinds = {
        "compressed ": mixer.compression > 1,
        "sparse ": mixer.index_heads > 0,
        "latent ": mixer.kv_rank > 0,
        "windowed ": mixer.window > 0 and mixer.compression == 1,
    }
    return "".join(name for name, holds in kinds.items() if holds) + "attention"


def _tables(model: Transformer) -> int:
    return model.vocab * model.hidden * (1 if model.tied_embeddings else 2)


def further_parameters(model: Transformer) -> float:
    """Parameters of all layers that predict further tokens."""
    one = components(model.prediction)[1:]
    return model.extra_predictions / model.prediction.layers * sum(part.total for part in one)


def model_parameters(model: Transformer) -> tuple[float, float]:
    """Total and active parameters of a whole model, without norms and further predictions."""
    parts = components(model)
    return sum(part.total for part in parts), sum(part.active for part in parts)


def utilisation(
    workload: Workload, gpu: Gpu, gpus: int, recompute: Any, time_s: Any
) -> tuple[Floats, Floats, Floats]:
    """MFU, HFU and MFU with causal attention of an iteration of `time_s` seconds on `gpus` GPUs, as
    shares of the peak of the workload's precision.
    """
    tokens_per_peak = workload.tokens_per_iteration / (
        time_s * gpus * gpu.peak_flop_s(workload.precision)
    )
    flash = workload.options.attention == "flash"
    model = workload.model
    return (
        model_flop_per_token(model) * tokens_per_peak,
        hardware_flop_per_token(model, recompute, flash=flash) * tokens_per_peak,
        causal_flop_per_token(model) * tokens_per_peak,
    )
