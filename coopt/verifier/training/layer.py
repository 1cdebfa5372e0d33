"""Seconds of one layer and of the logits for one micro-batch, and of the matrix products and other
kernels in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from coopt.instance.mixers import Encoder
from coopt.instance.workload import Workload
from coopt.verifier.training.caching import kept
from coopt.verifier.training.kernels import (
    Engine,
    Machine,
    MatrixProduct,
    Pass,
    feed_forward_shapes,
    graphed,
    latent_shapes,
    layers_in_16_bits,
    moved_s,
    products,
    router_shape,
    scaled,
    total,
    weight_gradients_s,
)
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.memory import kept_bytes
from coopt.verifier.training.mixers import (
    Cut,
    around_core,
    core_pass,
    cut_of,
    mixer_shares,
    unfolding_s,
    weight_passes_s,
)
from coopt.verifier.training.placing import (
    Shard,
    encoder_split,
    expert_share,
    layer_shares,
    projector_shapes,
    routed_width,
    shard,
)

KERNELS_FORWARD, KERNELS_BACKWARD = 6, 12
GATED_FORWARD, GATED_BACKWARD = 6, 10
PLAIN_FORWARD, PLAIN_BACKWARD = 4, 6
PERMUTE_FORWARD, PERMUTE_BACKWARD = 16, 24
EXPERT_KERNELS_FORWARD, EXPERT_KERNELS_BACKWARD = 10, 15
STREAM_BYTES = 12
STARTED_KERNELS, STARTED_FOR_EXPERT, STARTED_IN_PAIRS = 103, 2 + 4, 1.5
STARTED_AROUND_EXPERTS, STARTED_IN_MODULES = 28, {"moe_router": 3 + 8, "moe_preprocess": 7}


def busiest_shard(workload: Workload, split: ScalarMapping) -> Shard:
    """What the GPU works on whose experts have most rows: under trained routers 1.41 times the mean
    of 8 GPUs, 1.56 times that of 32, as 1 + 0.21·(log2 x)^0.61 has it.
    """
    part, x = shard(workload, split), split.ep
    if x == 1 or workload.balance == "forced":
        return part
    factor = 1 + 0.21 * math.log2(x) ** 0.61 if workload.balance == "trained" else workload.balance
    return part._replace(expert_rows=part.expert_rows * factor)


class LayerTimes:
    """The mean layer and micro-batch of one workload on one GPU; nothing is computed twice."""

    def __init__(self, workload: Workload, machine: Machine) -> None:
        self._workload, self._host_byte_s = workload, machine.host_byte_s
        self._kernels = LayerKernels(workload, machine)
        self._wide_kernels = (
            LayerKernels(workload, machine.in_16_bits) if machine.in_16_bits else None
        )

    @kept(lambda self, split: split.of_layer)
    def of(self, split: ScalarMapping) -> tuple[Pass, Pass]:
        """The mean layer and micro-batch, and that part of it in which the GPU waits for the host;
        both passes are stretched alike.
        """
        busy = self._busy(split)
        stretch = max(0.0, _launches_s(self._workload, split) / sum(busy) - 1)
        waits = scaled(busy, stretch)
        return total([busy, waits]), waits

    def weights_s(self, split: ScalarMapping) -> float:
        """Seconds of the backward pass of the mean layer that give gradients of weights, as far as
        kernels take longer than the host needs to start them.
        """
        own_s = self._kernels.weights_s(split)
        if self._wide_kernels:
            own_s += layers_in_16_bits(self._workload) * (
                self._wide_kernels.weights_s(split) - own_s
            )
        # put off, they wait for no host: only what kernels take beyond its starts can move
        return min(own_s, max(0.0, sum(self._busy(split)) - _launches_s(self._workload, split)))

    def core_pass(self, split: ScalarMapping) -> Pass:
        """The attention core of a layer and micro-batch; where it is repeated with the whole layer,
        that runs backward.
        """
        core = self._kernels.core(split)
        return Pass(
            core.forward_s, core.backward_s + (core.forward_s if split.recompute == "full" else 0.0)
        )

    def _busy(self, split: ScalarMapping) -> Pass:
        """The kernels of the mean layer and micro-batch. Each pass is as long at least as
        activations take to the host's memory or from there.
        """
        mean, workload = self._kernels.of(split), self._workload
        if self._wide_kernels:
            wide = layers_in_16_bits(workload)
            mean = total([scaled(mean, 1 - wide), scaled(self._wide_kernels.of(split), wide)])
        if not split.offload_percent:
            return mean
        away_s = (
            split.offload_percent
            / 100
            * kept_bytes(workload, split, shard(workload, split))
            / self._host_byte_s
        )
        return Pass(max(mean.forward_s, away_s), max(mean.backward_s, away_s))


class OncePasses(NamedTuple):
    """The kernels of the mean layer where nothing is recomputed, and those of them that follow
    attention.
    """

    layer: Pass
    feed_forward: Pass


class LayerKernels:
    """The kernels of the mean layer and micro-batch in one precision; those that do not depend on
    what is recomputed are timed once.
    """

    def __init__(self, workload: Workload, machine: Machine) -> None:
        self._workload, self._machine = workload, machine
        self._attending = graphed(workload, machine, "attn")
        towers = (tower for _, tower in workload.model.towers)
        self._towers = [
            LayerKernels(workload.model_copy(update={"model": tower}), machine) for tower in towers
        ]

    def of(self, split: ScalarMapping) -> Pass:
        """All of them; what is recomputed runs backward."""
        workload, machine = self._workload, self._machine
        layer, feed_forward = self._without_repeats(split)
        again_s = 0.0
        if split.recompute == "full":
            again_s = layer.forward_s
        elif split.recompute == "norm+ffn":
            again_s = (
                _norms_again_s(workload, self._attending, shard(workload, split))
                + feed_forward.forward_s
            )
        elif split.recompute in ("act", "norm+act"):
            part = busiest_shard(workload, split)
            again_s = _cheap_again_s(workload, machine, split, part)
            if split.recompute == "norm+act":
                again_s += _norms_again_s(workload, self._attending, part)
        elif split.recompute == "selective" and workload.options.attention == "unfused":
            again_s = self.core(split).forward_s
        own = Pass(layer.forward_s, layer.backward_s + again_s)
        return total([own, *self._encoder_passes(split)])

    def _encoder_passes(self, split: ScalarMapping) -> Iterator[Pass]:
        """Encoders with their projectors, for each layer of the model."""
        layers = self._workload.model.layers
        for (encoder, _), kernels in zip(self._workload.model.towers, self._towers, strict=True):
            yield scaled(kernels.of(encoder_split(encoder, split)), encoder.layers / layers)
            yield scaled(
                products(self._machine.layers, self._projector(encoder, split)), 1 / layers
            )

    def _projector(self, encoder: Encoder, split: ScalarMapping) -> list[MatrixProduct]:
        rows = split.micro_batch * encoder.inputs * encoder.tokens / encoder.merge / split.cp
        return projector_shapes(self._workload.model, encoder, split.tp, rows)

    @kept(lambda self, split: (split.tp, split.cp, split.micro_batch))
    def core(self, split: ScalarMapping) -> Pass:
        """The attention cores of the mean layer."""
        workload, cut = self._workload, _cut(self._workload, split)
        return total(
            scaled(core_pass(workload, self._machine, mixer, cut), share)
            for share, mixer in mixer_shares(workload.model)
        )

    @kept(lambda self, split: _shape_of(split))
    def weights_s(self, split: ScalarMapping) -> float:
        """Those that give gradients of weights."""
        own_s, layers = _own_weights_s(self._workload, self._machine, split), 0.0
        for (encoder, _), kernels in zip(self._workload.model.towers, self._towers, strict=True):
            layers += encoder.layers * kernels.weights_s(encoder_split(encoder, split))
            layers += weight_gradients_s(self._machine.layers, self._projector(encoder, split))
        return own_s + layers / self._workload.model.layers

    @kept(lambda self, split: _shape_of(split))
    def _without_repeats(self, split: ScalarMapping) -> OncePasses:
        workload, machine = self._workload, self._machine
        part, cut = busiest_shard(workload, split), _cut(workload, split)
        passes = [self.core(split), _norms(workload, self._attending, part)]
        passes += [
            scaled(around_core(workload, machine, mixer, cut), share)
            for share, mixer in mixer_shares(workload.model)
        ]
        feed_forward = _mean_feed_forward(workload, machine, split, part)
        return OncePasses(total([*passes, feed_forward]), feed_forward)


def _cut(workload: Workload, split: ScalarMapping) -> Cut:
    return cut_of(workload.model, split.tp, split.cp, split.micro_batch)


def _shape_of(split: ScalarMapping) -> tuple[int, ...]:
    """What kernels depend on that are not recomputed."""
    return split.tp, split.cp, split.ep, split.micro_batch, split.sequence_parallel


def _own_weights_s(workload: Workload, machine: Machine, split: ScalarMapping) -> float:
    """Seconds that gradients of weights take, of the mean layer of one precision."""
    part, cut = busiest_shard(workload, split), _cut(workload, split)
    own_s = sum(
        share * weight_passes_s(workload, machine, mixer, cut)
        for share, mixer in mixer_shares(workload.model)
    )
    behind = (*_feed_forward(workload, machine, split, part), *_routing(workload, machine, part))
    return own_s + sum(
        share * weight_gradients_s(engine, shapes) for share, engine, shapes in behind
    )


SharedProducts = tuple[float, Engine, list[MatrixProduct]]
"""Products in a share of the layers, and what runs them."""


def _feed_forward(
    workload: Workload, machine: Machine, split: ScalarMapping, part: Shard
) -> Iterator[SharedProducts]:
    """The products up and down of dense layers and of experts, in the mean layer."""
    model, share = workload.model, layer_shares(workload.model)
    plain, mixing = (graphed(workload, machine, module).layers for module in ("mlp", "moe"))
    if model.dense_layers or not model.experts:
        width = (model.dense_ffn if model.experts else model.ffn) // split.tp
        yield share.plain, plain, feed_forward_shapes(model, model.hidden, part.rows, width)
    if model.experts:
        rows, width = part.expert_rows, model.ffn // part.expert_cut
        shapes = feed_forward_shapes(model, routed_width(model), rows, width, part.experts)
        yield share.experts, mixing, shapes
    if model.experts and model.shared_ffn:
        width = model.shared_ffn // split.tp
        yield share.experts, mixing, feed_forward_shapes(model, model.hidden, part.rows, width)


def _routing(workload: Workload, machine: Machine, part: Shard) -> list[SharedProducts]:
    """The products that say where each token goes, and that narrow it for its experts."""
    model, rows = workload.model, part.rows / part.norm_parts
    routing, mixing = (
        graphed(workload, machine, *modules) for modules in (("moe", "moe_router"), ("moe",))
    )
    latents = mixing.engine(workload.options.software.latent_bits)
    return [
        (expert_share(model), engine, shapes)
        for engine, shapes in (
            (routing.wide, [router_shape(model, rows)]),
            (latents, latent_shapes(model, rows)),
        )
        if model.experts
    ]


def _launches_s(workload: Workload, split: ScalarMapping) -> float:
    """What the mean layer takes at least: the host waits for the number of rows of each expert, and
    so cannot start kernels of the next layer ahead.
    """
    software = workload.options.software
    if software.graphs == "full" or workload.model.experts == 0:
        return 0.0
    of_experts = STARTED_FOR_EXPERT * (
        1 if software.grouped_experts else workload.model.experts // split.ep
    )
    of_layer, modules = STARTED_KERNELS, {*software.graph_modules}
    if "attn" in modules:
        of_layer -= STARTED_KERNELS - STARTED_AROUND_EXPERTS
    if "moe" in modules:
        of_layer, of_experts = of_layer - STARTED_AROUND_EXPERTS, 0
    else:
        of_layer -= sum(n for name, n in STARTED_IN_MODULES.items() if name in modules)
    of_layer += 2 * len(modules)
    narrow = workload.precision not in ("bf16", "fp16")
    in_pairs = STARTED_IN_PAIRS if workload.options.ep_overlap and narrow else 1
    return expert_share(workload.model) * (of_layer + of_experts) * in_pairs * software.host_s


def _norms_again_s(workload: Workload, machine: Machine, part: Shard) -> float:
    """The two norms once more: read and write the residual stream."""
    moved = 2 * 4 * part.rows * workload.model.hidden / part.norm_parts
    both_s = (
        moved_s(machine.layers, workload.options.software.kernel_traffic * moved)
        + 2 * machine.layers.kernel_s
    )
    return layer_shares(workload.model).blocks * both_s


def _cheap_again_s(
    workload: Workload, machine: Machine, split: ScalarMapping, part: Shard
) -> float:
    """Nonlinearities of experts, and latents expanded, once more."""
    model, cut = workload.model, _cut(workload, split)
    total = sum(
        share * unfolding_s(workload, machine, mixer, cut) for share, mixer in mixer_shares(model)
    )
    if model.experts:
        activating = graphed(workload, machine, "moe").layers
        forward, _ = _activation_bytes(workload, part.routed_rows * model.ffn / part.expert_cut)
        total += expert_share(model) * (moved_s(activating, forward) + activating.kernel_s)
    return total


def logits_pass(workload: Workload, machine: Machine, split: ScalarMapping) -> Pass:
    """The logits of one micro-batch; the softmax counts forward."""
    part = shard(workload, split)
    shape = MatrixProduct(part.rows, part.vocab, workload.model.hidden)
    loss = workload.options.software.loss_bytes * part.rows * part.vocab
    narrow = workload.options.software.fp8_head
    product = products(machine.engine(8) if narrow else machine.wide, [shape])
    return Pass(product.forward_s + moved_s(machine.wide, loss), product.backward_s)


def _norms(workload: Workload, machine: Machine, part: Shard) -> Pass:
    """The memory-bound kernels of norms in the mean layer."""
    software, engine, share = (
        workload.options.software,
        machine.layers,
        layer_shares(workload.model),
    )
    wide = share.blocks * part.rows * workload.model.hidden / part.norm_parts
    mixed = STREAM_BYTES * (workload.model.streams - 1)
    forward = software.kernel_traffic * (software.norm_forward_bytes + mixed) * wide
    backward = software.kernel_traffic * (software.norm_backward_bytes + 2 * mixed) * wide
    return Pass(
        moved_s(engine, forward) + share.blocks * KERNELS_FORWARD * engine.kernel_s,
        moved_s(engine, backward) + share.blocks * KERNELS_BACKWARD * engine.kernel_s,
    )


def _mean_feed_forward(
    workload: Workload, machine: Machine, split: ScalarMapping, part: Shard
) -> Pass:
    """What follows attention, mean over dense layers and layers with experts."""
    layers = list(_feed_forward(workload, machine, split, part))
    passes = [
        scaled(products(engine, shapes), share)
        for share, engine, shapes in (*layers, *_routing(workload, machine, part))
    ]
    for share, engine, (_, down) in layers:
        forward, backward = _activation_bytes(workload, down.batch * down.m * down.k)
        passes.append(scaled(Pass(moved_s(engine, forward), moved_s(engine, backward)), share))
    if workload.model.experts:
        around = _around_experts(workload, graphed(workload, machine, "moe"), part)
        passes.append(scaled(around, expert_share(workload.model)))
    return total(passes)


def _activation_bytes(workload: Workload, elements: float) -> tuple[float, float]:
    """Bytes the activation function moves, forward and backward."""
    element_bytes = (
        (GATED_FORWARD, GATED_BACKWARD) if workload.model.gated else (PLAIN_FORWARD, PLAIN_BACKWARD)
    )
    traffic = workload.options.software.kernel_traffic * elements
    return traffic * element_bytes[0], traffic * element_bytes[1]


def _around_experts(workload: Workload, machine: Machine, part: Shard) -> Pass:
    """Routing, permuting and padding for the experts of a GPU."""
    engine, moved = machine.layers, part.routed_rows * routed_width(workload.model)
    forward, backward = expert_kernels(workload, machine, part)
    return Pass(
        moved_s(engine, PERMUTE_FORWARD * moved) + forward * engine.kernel_s,
        moved_s(engine, PERMUTE_BACKWARD * moved) + backward * engine.kernel_s,
    )


def expert_kernels(workload: Workload, machine: Machine, part: Shard) -> tuple[float, float]:
    """Kernels of the experts of a GPU, forward and backward, beyond one product of each kind."""
    forward, backward = EXPERT_KERNELS_FORWARD, EXPERT_KERNELS_BACKWARD
    if workload.options.software.grouped_experts:
        return forward, backward
    further_experts = part.experts - 1
    quantised = part.experts if machine.layers.input_bytes == 1 else 0
    return (
        forward + 2 * further_experts + 2 * quantised,
        backward + 4 * further_experts + 2 * quantised,
    )
