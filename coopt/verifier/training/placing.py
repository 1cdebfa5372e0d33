"""How a mapping lies on HB domains: the part of each dimension inside a domain and the part across.

One GPU is left with some rows, columns and experts of a layer, and with some of the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from coopt.instance.layouts import Layout
from coopt.instance.mixers import Encoder
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.plan.parts import MappingChoice, WorkloadPlan
from coopt.verifier.training.chunks import layers_on
from coopt.verifier.training.kernels import MatrixProduct
from coopt.verifier.training.mappings import ScalarMapping, divisors, ranks_of_expert
from coopt.verifier.training.mixers import mean_mixer_parameters


class Placement(NamedTuple):
    """Parts of each dimension inside an HB domain and across domains.

    `copies` are the GPUs that hold the same experts, y_xh and y_xl of docs/model.md; 1 for a dense
    model. TP blocks of a stage follow each other, or, where replicas are `outermost`, those of a
    pipeline.
    """

    tp_in: int
    tp_across: int
    pp_in: int
    pp_across: int
    dp_in: int
    dp_across: int
    cp_in: int = 1
    cp_across: int = 1
    ep_in: int = 1
    ep_across: int = 1
    copies_in: int = 1
    copies_across: int = 1
    dp_fewest: int = 0
    """replicas of a stage in the domain that holds fewest, where domains are not filled alike; 0
    where they are
    """
    outermost: Literal["pp", "dp"] = "pp"
    two_way: bool = False
    """stages as far from either end of a pipeline hold the same"""

    @property
    def filled(self) -> int:
        """GPUs that train in the fullest domain."""
        return self.tp_in * self.cp_in * self.pp_in * self.dp_in

    def fewest(self, inside: int) -> int:
        """Ranks in the domain that holds fewest, of DP ranks or copies of experts of which the
        fullest has `inside`.
        """
        return inside * (self.dp_fewest or self.dp_in) // self.dp_in

    @property
    def step(self) -> int:
        """TP blocks from one of a stage to its next one."""
        return self.pp_across if self.outermost == "dp" else 1

    @property
    def hop(self) -> int:
        """Domains from a stage to the next one."""
        return self.tp_across if self.outermost == "dp" else self.stage_across

    @property
    def stage_across(self) -> int:
        """t_l·c_l·d_l: domains that hold one stage's ranks of all groups."""
        return self.tp_across * self.cp_across * self.dp_across


class _Degrees(NamedTuple):
    """All of a workload and its mapping that placements depend on; `ep` is 0 for a dense model."""

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    of_expert: int
    two_way: bool


class Rooms(NamedTuple):
    """Domains that are not filled alike, with room for `size` GPUs each."""

    domains: int
    size: int


def placements(
    workload: Workload,
    split: ScalarMapping | MappingChoice,
    active_gpus: int,
    rooms: Rooms | None = None,
    *,
    turned: bool = False,
) -> tuple[Placement, ...]:
    """All ways to put `active_gpus` GPUs of a mapping into one domain, or any number of them that
    keeps groups whole.

    `turned` ones have replicas outermost.
    """
    degrees = _degrees(workload, split)
    places = (
        _placements(degrees, active_gpus)
        if rooms is None
        else tuple(_uneven_placements(degrees, rooms))
    )
    if workload.tp_inside:
        places = tuple(place for place in places if place.tp_across == 1)
    places = tuple(place for place in places if _keeps_part(workload, place))
    outermost, is_even = workload.mapping.outermost, rooms is None
    may = (
        place
        for place in places
        if turned and is_even and "dp" in outermost and may_turn(workload, place)
    )
    turned_places = (place._replace(outermost="dp") for place in may)
    return (*(places if "pp" in outermost else ()), *turned_places)


def _keeps_part(workload: Workload, place: Placement) -> bool:
    """Whether TP ranks that split an expert, if they are not all, share a domain, and so do all
    that share out one of several copies.
    """
    copies = workload.options.dp_replicate
    if place.tp_in % ranks_of_expert(workload, place.tp_in):
        return False
    if copies == 1:
        return True
    holders = [(place.cp_in * place.dp_in, place.dp_across)]
    if workload.model.experts:
        holders.append((place.copies_in, place.copies_across))
    # a domain holds whole copies, as many as all copies over the domains
    whole = all(
        copies % across == 0 and inside % (copies // across) == 0 for inside, across in holders
    )
    return whole and place.cp_across == 1 and not place.dp_fewest


def may_turn(workload: Workload, place: Placement) -> bool:
    """Whether replicas may lie outermost: where they and stages lie across, one stage to a domain,
    and groups of experts do not run over TP ranks in several domains.
    """
    keeps_experts = place.tp_across == 1 or not workload.model.experts
    keeps_experts = keeps_experts or workload.options.expert_tp is True
    return (
        place.pp_in == 1 < place.pp_across
        and place.stage_across > place.tp_across
        and keeps_experts
    )


def placement_of(
    workload: Workload, plan: WorkloadPlan, active_gpus: int, rooms: Rooms | None = None
) -> Placement | None:
    """The placement of a plan whose mapping is sound; None where there is no such placement."""
    groups, outermost = ("tp", "pp", "dp", "cp", "ep"), plan.mapping.outermost
    if set(plan.placement) != set(groups):
        return None
    claim = tuple(number for group in groups for number in plan.placement[group])
    for place in placements(workload, plan.mapping, active_gpus, rooms, turned=True):
        if place.outermost == outermost and place[: len(claim)] == claim:
            return place
    return None


def _degrees(workload: Workload, mapping: ScalarMapping | MappingChoice) -> _Degrees:
    return _Degrees(
        tp=mapping.tp,
        pp=mapping.pp,
        dp=mapping.dp,
        cp=mapping.cp,
        ep=mapping.ep if workload.model.experts else 0,
        of_expert=ranks_of_expert(workload, mapping.tp),
        two_way=workload.options.schedule == "dualpipe",
    )


@lru_cache(maxsize=200_000)
def _placements(degrees: _Degrees, active_gpus: int) -> tuple[Placement, ...]:
    return tuple(
        _placement(degrees, t, p, d, c)
        for t in divisors(math.gcd(degrees.tp, active_gpus))
        for c in divisors(math.gcd(degrees.cp, active_gpus // t))
        for p in divisors(math.gcd(degrees.pp, active_gpus // (t * c)))
        if degrees.dp % (d := active_gpus // (t * c * p)) == 0
    )


def _uneven_placements(degrees: _Degrees, rooms: Rooms) -> Iterator[Placement]:
    """TP, context and expert groups whole in every domain; groups of replicas of a stage as even as
    they go.
    """
    ranks = degrees.tp * degrees.cp
    holders = ranks // degrees.of_expert
    # the fewest replicas of a stage that hold whole expert groups among them
    block = degrees.ep // math.gcd(degrees.ep, holders) if degrees.ep else 1
    for stages in divisors(degrees.pp):
        across = degrees.pp // stages
        count, odd = divmod(rooms.domains, across)
        if odd or not 0 < count <= degrees.dp // block:
            continue
        # replicas go to domains in such blocks, as evenly as these can be dealt out
        fewest, larger = divmod(degrees.dp // block, count)
        fewest, largest = block * fewest, block * (fewest + (larger > 0))
        if ranks * stages * largest > rooms.size:
            continue
        parts = (degrees.tp, 1, stages, across, largest, count, degrees.cp, 1)
        place = Placement(*parts, dp_fewest=fewest, two_way=degrees.two_way)
        if degrees.ep:
            place = place._replace(
                ep_in=degrees.ep, copies_in=holders * largest // degrees.ep, copies_across=count
            )
        yield place


def _placement(degrees: _Degrees, t: int, p: int, d: int, c: int) -> Placement:
    """The placement with t, p, d, c ranks inside a domain.

    An expert group takes ranks of t (one of those that split each of its experts), c and d inside
    the domain before others across.
    """
    parts = (t, degrees.tp // t, p, degrees.pp // p, d, degrees.dp // d, c, degrees.cp // c)
    if not degrees.ep:
        return Placement(*parts, two_way=degrees.two_way)
    split_in = math.gcd(degrees.of_expert, t)
    inside, across = c * d * t // split_in, parts[5] * parts[7] * parts[1]
    across = across * split_in // degrees.of_expert
    x_in = math.gcd(degrees.ep, inside)
    x_across = degrees.ep // x_in
    place = Placement(*parts, x_in, x_across, inside // x_in, across // x_across)
    return place._replace(two_way=degrees.two_way)


class Shard(NamedTuple):
    """One GPU's part of a layer and micro-batch; `expert_*` are 0 (and `expert_cut` 1) for a dense
    model.
    """

    rows: float
    """n"""
    vocab: int
    """ceil(V/t)"""
    norm_parts: int
    """z"""
    expert_cut: int
    """t_x"""
    experts: int
    """E_x"""
    expert_rows: float
    """n_x"""

    @property
    def routed_rows(self) -> float:
        """n_E: rows of all experts of a GPU."""
        return self.experts * self.expert_rows


def shard(workload: Workload, split: ScalarMapping) -> Shard:
    """What one GPU works on."""
    model, tp = workload.model, split.tp
    rows = split.micro_batch * model.seq / split.cp
    cut = ranks_of_expert(workload, tp) if model.experts else 1
    experts = model.experts // split.ep
    return Shard(
        rows=rows,
        vocab=-(-model.vocab // tp),
        norm_parts=tp if split.sequence_parallel else 1,
        expert_cut=cut,
        experts=experts,
        expert_rows=model.capacity * (rows * cut / tp) * model.top_k / experts if experts else 0.0,
    )


def expert_copies(workload: Workload, split: ScalarMapping) -> int:
    """y_x: GPUs that hold the same experts."""
    ranks = split.tp * split.cp * split.dp
    return ranks // (split.ep * ranks_of_expert(workload, split.tp))


class LayerShares(NamedTuple):
    """Parts of the layers of a model that have a mixer, experts and a plain feed-forward part."""

    mixers: float
    experts: float
    plain: float

    @property
    def blocks(self) -> float:
        """u: mixers and feed-forward parts of the mean layer, over the two of a layer that has
        both.
        """
        return sum(self) / 2


@lru_cache(maxsize=1 << 10)
def layer_shares(model: Transformer) -> LayerShares:
    """What parts of the layers of a model have; all have both but for those of a hybrid."""
    mixed = model.with_ffn - model.dense_layers if model.experts else 0
    mixing = sum(layers for layers, _ in model.kinds)
    counts = (mixing, mixed, model.with_ffn - mixed)
    return LayerShares(*(number / model.layers for number in counts))


def expert_share(model: Transformer) -> float:
    """Part of the layers that have experts: (L_f - L_d)/L, 0 for a dense model."""
    return layer_shares(model).experts


def routed_width(model: Transformer) -> int:
    """h_x: width of a row that goes to experts."""
    return model.expert_latent if model.expert_latent else model.hidden


def chunks_are_whole(workload: Workload, split: ScalarMapping) -> bool:
    """Whether a chunk's shards are gathered, and its gradients scattered, once for the p
    micro-batches it works on.
    """
    return workload.options.software.shards_in_rounds and split.interleave > 1


class HeldParameters(NamedTuple):
    """Parameters of the fullest GPU, norms and biases left out."""

    layer: float
    """P_layer: of a layer without its experts"""
    expert_layer: float
    """P_xlayer: of the experts of a layer"""
    common: float
    """P: of a stage, without experts"""
    experts: float
    """P_x: of the experts of a stage"""


def matrices(model: Transformer) -> int:
    """Matrices of a feed-forward layer."""
    return 3 if model.gated else 2


def held_layers(model: Transformer, split: ScalarMapping, layout: Layout) -> int:
    """Layers of the fullest GPU: a full stage, or the last one with its further predictions."""
    if layout:
        return max(layers_on(layout, split.pp, stage) for stage in range(split.pp))
    full_layers, further = split.stage_layers(model.layers), model.extra_predictions
    return max(full_layers, full_layers - split.last_lacks(model.layers, further) + further)


def held_parameters(workload: Workload, split: ScalarMapping) -> HeldParameters:
    """What the fullest GPU holds."""
    model, tp = workload.model, split.tp
    layers, matrix_size, share = (
        held_layers(model, split, workload.layout),
        matrices(model) * model.hidden,
        layer_shares(model),
    )
    common = mean_mixer_parameters(model, tp) + encoder_parameters(workload, tp)
    experts = 0.0
    if model.experts:
        around = model.hidden * model.experts + 2 * model.hidden * model.expert_latent
        common += share.experts * (matrix_size * model.shared_ffn / tp + around)
        common += share.plain * matrix_size * model.dense_ffn / tp
        cut, of_expert = (
            ranks_of_expert(workload, tp),
            matrices(model) * routed_width(model) * model.ffn,
        )
        experts = share.experts * of_expert * (model.experts // split.ep) / cut
    else:
        common += share.plain * matrix_size * model.ffn / tp
    tables = 2 if split.pp == 1 and not model.tied_embeddings else 1
    embedding = -(-model.vocab // tp) * model.hidden * tables
    return HeldParameters(common, experts, layers * common + embedding, layers * experts)


def encoder_parameters(workload: Workload, tp: int) -> float:
    """Parameters of encoders and their projectors on one of `tp` GPUs, for each layer of the
    model.
    """
    size = 0.0
    for encoder, tower in workload.model.towers:
        matrix_size = mean_mixer_parameters(tower, tp)
        matrix_size += matrices(tower) * tower.hidden * tower.ffn / tp
        size += encoder.layers * matrix_size
        size += sum(shape.n * shape.k for shape in projector_shapes(workload.model, encoder, tp))
    return size / workload.model.layers


def projector_shapes(
    model: Transformer, encoder: Encoder, tp: int, rows: float = 1.0
) -> list[MatrixProduct]:
    """The products that lead from an encoder into the model."""
    merged, inner = encoder.hidden * encoder.merge, encoder.projector // tp
    one = [MatrixProduct(rows, model.hidden, inner or merged // tp)]
    one += [MatrixProduct(rows, inner, merged)] if inner else []
    return one * encoder.projectors


def encoder_split(encoder: Encoder, split: ScalarMapping) -> ScalarMapping:
    """The mapping of an encoder: context ranks share its inputs, each of which stays whole."""
    inputs = split.micro_batch * encoder.inputs / split.cp  # a rank may have a part of one
    return split._replace(cp=1, ep=1, micro_batch=inputs)  # type: ignore[arg-type]


def passed_columns(model: Transformer) -> float:
    """Columns of a token between two layers; those of encoders, whose tokens are others, beside
    them.
    """
    of_encoders = sum(e.layers * e.inputs * e.tokens * e.hidden for e in model.encoders)
    return model.streams * model.hidden + of_encoders / (model.layers * model.seq)


def stage_copies(workload: Workload, split: ScalarMapping) -> int:
    """GPUs of a pipeline that hold the same stage."""
    return 2 if workload.options.schedule == "dualpipe" and split.pp > 1 else 1


def sharded_parameters(
    workload: Workload, parameters: HeldParameters, split: ScalarMapping
) -> float:
    """Q: parameters of a GPU when the ranks that hold the same ones share out each copy of them."""
    shared = parameters.common / (split.dp * split.cp)
    shared += parameters.experts / expert_copies(workload, split)
    return shared * workload.options.dp_replicate
