"""Communication of a stage: per micro-batch, of the send to the next stage, and of its replicas
once per iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.collectives import (
    AffineSeconds,
    LinkRates,
    RingKind,
    gather,
    gather_rates,
    send,
)
from coopt.perf.exchanges import all_to_all, visits_of
from coopt.perf.kernels import BYTES, Device
from coopt.perf.mapping import (
    FULL,
    NORM_FFN,
    Bools,
    Floats,
    Ints,
    Mappings,
    Placements,
    block_share,
    encoded_rows,
    expert_layers,
    expert_ranks,
    expert_width,
    ffn_share,
    held_expert_parameters,
    held_parameters,
    split_copies,
    tp_of_experts,
    vocab_share,
    wide_share,
)
from coopt.perf.memory import expert_copies, shard_rounds, stage_copies
from coopt.perf.mixers import RING_PASSES, SWITCH_PASSES, MixerLaw, laws_of

# share of a hidden transfer that still costs time: memory bandwidth, processors (judgement)
OVERLAP_COST = 0.33
# of the bytes of a number in 16 bits; in 4 bits 16 numbers share a scale of 8 bits
GATHERED = {"fp8": 0.5, "fp4": 4.5 / 16}
FULL_REPEATS, FFN_REPEATS, EXCHANGES = 4, 2, 4
# HBM traffic per updated parameter: 30 bytes by Adam, as much by norm, clipping and copies
# (judgement)
OPTIMIZER_BYTES = 60


@dataclass(frozen=True, kw_only=True)
class TpCounts:
    """TP collectives of the mean layer by pass, each counted as the share of an all-gather in 16
    bits that its bytes are; repeated ones with those that gather inputs for weight gradients.
    """

    forward: Floats
    repeated: Floats
    backward: Floats


@dataclass(frozen=True, kw_only=True)
class StageTraffic:
    """Communication times of placed mappings; shape (n,), per layer unless stated otherwise."""

    workload: Workload
    links: LinkRates
    mappings: Mappings
    placements: Placements

    @property
    def rows(self) -> Floats:
        """n: tokens per GPU and micro-batch."""
        return self.mappings.micro_batch * float(self.workload.model.seq) / self.mappings.cp

    @cached_property
    def activation(self) -> Floats:
        """D_a: bytes passed between two layers."""
        return BYTES * self.rows * self.workload.model.hidden

    @cached_property
    def tp_gather(self) -> AffineSeconds:
        """An all-gather of the activations over the TP group."""
        return self._tp_gather()

    def _tp_gather(self, *, summed: Any = False) -> AffineSeconds:
        inside, sized = self.placements.tp, self.tp_is_sized
        across = self.mappings.tp // inside
        data_bytes = self.activation
        return gather(self.links, data_bytes, inside, across, "tp", summed=summed, sized=sized)

    @cached_property
    def tp_sum(self) -> AffineSeconds:
        """Half of an all-reduce of the activations over the TP group; with sequence parallelism an
        all-gather or reduce-scatter.
        """
        return self._tp_gather(summed=~self.mappings.sequence_parallel)

    @property
    def tp_is_sized(self) -> bool:
        """Whether TP groups choose their algorithm by message size: all their messages have the
        same size, unless TP splits experts.
        """
        options = self.workload.options
        return options.collectives != "levels" and not (
            options.expert_tp and self.workload.model.experts
        )

    @cached_property
    def repeats_forward(self) -> Any:
        """Whether each mapping recomputes the forward pass (full recomputation)."""
        return self.mappings.recompute == FULL

    @cached_property
    def repeats_experts(self) -> Any:
        """Whether each mapping recomputes the forward pass of its experts."""
        return self.repeats_forward | (self.mappings.recompute == NORM_FFN)

    @cached_property
    def tp_counts(self) -> TpCounts:
        """TP collectives of a layer."""
        options, model, narrow = self.workload.options, self.workload.model, self._narrow_shares
        blocks, sync = block_share(model), options.tp_sync_fraction
        inputs, gradients = (np.where(self.mappings.sequence_parallel, of, 1.0) for of in narrow)
        feed_forward = FFN_REPEATS * ffn_share(model) * (self.mappings.recompute == NORM_FFN)
        again = FULL_REPEATS * blocks * self.repeats_forward + feed_forward
        each = sync * (1 + inputs) / 2  # every second one gathers, the others scatter in 16 bits
        partial = options.tp_sync_backward if sync < 1.0 else 1.0
        return TpCounts(
            forward=4 * blocks * each,
            repeated=again * each + 2.0 * blocks * inputs * self.mappings.sequence_parallel,
            backward=4 * blocks * sync * partial * (1 + gradients) / 2,
        )

    @property
    def _narrow_shares(self) -> tuple[float, float]:
        """Bytes of the inputs and of the gradients that TP gathers in the format of products,
        relative to 16 bits; gradients in two layouts, along rows and columns.
        """
        share = GATHERED.get(self.workload.precision, 1.0)
        if not self.workload.options.software.narrow_inputs:
            return 1.0, 1.0
        wide = wide_share(self.workload)
        return wide + (1 - wide) * share, wide + (1 - wide) * min(1.0, 2 * share)

    @cached_property
    def tp(self) -> AffineSeconds:
        """Time of all TP collectives of a layer, forward and backward, those of encoders too."""
        return self.tp_sum * (self._tp_passes * (1 + encoded_rows(self.workload.model)))

    @cached_property
    def _tp_passes(self) -> Floats:
        """Number of TP collectives per layer, weighted by the share of each that is not hidden."""
        # n_AG of docs/model.md, Traffic of a mapping
        counts = self.tp_counts
        cost = OVERLAP_COST if self.workload.options.software.tp_overlap else 1.0
        return (counts.forward + counts.repeated) * self._forward_cost + counts.backward * cost

    @property
    def _forward_cost(self) -> Floats:
        """Share of a forward TP collective that is not hidden."""
        pipelined = (
            self.mappings.sequence_parallel & self.workload.options.software.tp_forward_overlap
        )
        return np.where(pipelined, OVERLAP_COST, 1.0)

    @property
    def forward_shares(self) -> tuple[Floats, Floats, Floats]:
        """Shares of the TP, CP and EP traffic of a layer in its forward pass; shape (n,) each."""
        ahead = self.tp_counts.forward * self._forward_cost / self._tp_passes
        return (
            ahead,
            1.0 / (RING_PASSES + self.repeats_forward),
            2.0 / (EXCHANGES + 2.0 * self.repeats_experts),
        )

    @property
    def ring(self) -> AffineSeconds:
        """Exchange of keys and values round the ring of context ranks, in every pass of the
        attention core.
        """
        keys = BYTES * self.mappings.micro_batch * float(self.workload.model.seq)
        return self._over_cp(keys, lambda law: law.ring_columns(self.mappings.tp), RING_PASSES)

    @property
    def switch(self) -> AffineSeconds:
        """All-to-alls between context ranks that give each some heads of whole sequences, in front
        of scans and behind them.
        """
        t, c = self.mappings.tp, self.mappings.cp
        return self._over_cp(
            BYTES * self.rows, lambda law: law.switched_columns(t, c), SWITCH_PASSES
        )

    def _over_cp(
        self, of_column: Any, columns: Callable[[MixerLaw], Any], passes: int
    ) -> AffineSeconds:
        """Collectives over the context ranks in the mean layer, as gathers of as many bytes."""
        c, inside, total = self.mappings.cp, self.placements.cp, AffineSeconds()
        if not (c > 1).any():
            return total
        times: Floats = (passes + self.repeats_forward) * (c > 1)
        for share, law in laws_of(self.workload.model):
            of_law = columns(law)
            if np.any(of_law):
                over_cp = gather(self.links, of_column * of_law, inside, c // inside, "cp")
                total = total + over_cp * (times * share)
        return total

    @property
    def exchange(self) -> AffineSeconds:
        """All-to-alls that send tokens to their experts and back, averaged over all layers."""
        model = self.workload.model
        if not model.experts:
            return AffineSeconds()
        inside, across, *_ = expert_ranks(
            self.mappings, self.placements, expert_tp=self.workload.options.expert_tp
        )
        sent_bytes = (
            self.routed_bytes * (self.workload.options.dispatch_bytes + BYTES) / (2 * BYTES)
        )  # there, and back
        one_exchange = all_to_all(
            self.links, sent_bytes / self.mappings.tp, inside, across, visits_of(self.workload)
        )
        return one_exchange * ((self.mappings.ep > 1) * self._exchanges)

    @property
    def expert_gather(self) -> AffineSeconds:
        """All-gathers of expert inputs where TP splits the experts, averaged over all layers."""
        if not self.workload.model.experts or not self.workload.options.expert_tp:
            return AffineSeconds()
        t, data_bytes = self.mappings.tp, self.routed_bytes
        split = tp_of_experts(t, self.workload.options.expert_tp)
        inside = np.gcd(split, self.placements.tp)
        over = gather(self.links, data_bytes * (split / t), inside, split // inside, "tp")
        return over * self._exchanges

    @property
    def routed_bytes(self) -> Floats:
        """Bytes of the rows that a TP group sends to experts."""
        model = self.workload.model
        return np.asarray(
            BYTES * model.capacity * self.rows * model.top_k * expert_width(model), dtype=np.float64
        )

    @property
    def _exchanges(self) -> Floats:
        return np.asarray(
            (EXCHANGES + 2 * self.repeats_experts) * expert_layers(self.workload.model),
            dtype=np.float64,
        )

    def hidden_exchanges(self, behind_s: Floats, m: Ints) -> tuple[AffineSeconds, AffineSeconds]:
        """Expert traffic of a layer if its all-to-alls are hidden behind another micro-batch, and
        if that is too short.

        The second is zero where nothing is hidden. In a pipeline with one micro-batch there is no
        other one.
        """
        exchange, rows_gather = self.exchange, self.expert_gather
        if exchange.is_zero or not self.workload.options.ep_overlap:
            return exchange + rows_gather, AffineSeconds()
        has_others = m > 1
        beyond = exchange - AffineSeconds(behind_s * has_others)
        return (
            exchange * np.where(has_others, OVERLAP_COST, 1.0) + rows_gather,
            beyond + rows_gather,
        )

    @property
    def hop(self) -> AffineSeconds:
        """A send to the next stage."""
        m, software = self.mappings, self.workload.options.software
        size_bytes = self.activation / m.tp * self.workload.model.streams
        message = send(self.links, size_bytes, m.pp > self.placements.pp)
        # each TP rank sends its share; without sequence parallelism receivers gather the others
        total = message + self.tp_gather * ((~m.sequence_parallel) & (m.tp > 1))
        in_pairs = self.workload.options.schedule == "dualpipe"
        hidden = ((m.interleave > 1) | in_pairs) & software.pp_overlap
        return total * (np.where(hidden, OVERLAP_COST, 1.0) * (m.pp > 1))


class _Step(NamedTuple):
    """A collective of replicas: bytes, times an iteration, ranks in a domain, domains, and whether
    it is half of an all-reduce.
    """

    size_bytes: Floats
    times: Ints
    inside: Ints
    across: Ints
    summed: Bools


@dataclass(frozen=True)
class ReplicaExchange:
    """Collectives of the GPUs that hold the same parameters."""

    scatter: AffineSeconds
    gather: AffineSeconds
    between_copies: AffineSeconds | None = None
    """All-reduces of the shards between several copies; None if there is one."""

    @property
    def steps(self) -> tuple[AffineSeconds, ...]:
        """The collectives in turn."""
        crossing = () if self.between_copies is None else (self.between_copies,)
        return self.scatter, self.gather, *crossing

    @property
    def crossing(self) -> AffineSeconds:
        """What goes between domains: all, or what is between copies, each inside a domain."""
        return self.scatter + self.gather if self.between_copies is None else self.between_copies


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """Placed mappings with the parameters on their fullest GPUs; arrays of shape (n,)."""

    workload: Workload
    links: LinkRates
    mappings: Mappings
    placements: Placements
    parameters: Floats
    expert_parameters: Floats

    def data_parallel(self) -> AffineSeconds:
        """T_dp: reduce-scatter of gradients, then all-gather of gradients (ZeRO 0) or of 16-bit
        parameters.
        """
        exchanges = (*self.shared_exchange().steps, *self.expert_exchange().steps)
        return sum(exchanges, AffineSeconds()) + self._twins()

    def _twins(self) -> AffineSeconds:
        """Exchange between the two GPUs of a DualPipe pipeline that hold the same two stages.

        Each sends its gradients of one stage before replicas reduce them, and receives the
        resulting gradients or parameters of the other stage. All of them send at the same time, in
        place of the exchange of a tied embedding in other schedules.
        """
        if self.workload.options.schedule != "dualpipe":
            return AffineSeconds()
        m, crosses = self.mappings, self.mappings.pp > self.placements.pp
        sent_bytes, returned_bytes = self._sent_bytes(self.parameters + self.expert_parameters)
        sends = send(self.links, sent_bytes, crosses) + send(self.links, returned_bytes, crosses)
        sends = sends * (m.pp > 1)
        # under this schedule no embedding is tied between GPUs, so that the kind `tied` is free
        return AffineSeconds(sends.fixed, tied=sends.pp)

    def inside_s(self) -> Floats:
        """Upper bound on the time that data-parallel traffic occupies the links inside a domain.

        With `collectives = "levels"` each rank already has its own share; otherwise all data count
        once.
        """
        m, place = self.mappings, self.placements
        groups = [(self.parameters, *self._ends)]
        if self.workload.model.experts:
            expert_tp = self.workload.options.expert_tp
            groups.append(
                (self.expert_parameters, *expert_ranks(m, place, expert_tp=expert_tp)[2:])
            )
        by_level, busy = self.workload.options.collectives == "levels", np.zeros(len(m))
        for parameters, inside, across in groups:
            for step in self._steps(parameters, inside, across):
                share = (step.inside - 1) / step.inside if by_level else step.inside > 1
                busy = busy + share * step.size_bytes * step.times
        return np.asarray(busy / self.links.hb_byte_s, dtype=np.float64)

    @property
    def _ends(self) -> tuple[Ints, Ints]:
        """Replicas of a stage with their context ranks in a domain, and domains that hold some."""
        m, place = self.mappings, self.placements
        return place.dp * place.cp, place.dp_across(m) * (m.cp // place.cp)

    def shared_exchange(self) -> ReplicaExchange:
        """Reduce-scatter and all-gather of all parameters but the experts."""
        return self._exchange(self.parameters, *self._ends, "dp")

    def expert_exchange(self) -> ReplicaExchange:
        """Reduce-scatter and all-gather among the GPUs that hold the same experts."""
        if not self.workload.model.experts:
            return ReplicaExchange(AffineSeconds(), AffineSeconds())
        *_, inside, across = expert_ranks(
            self.mappings, self.placements, expert_tp=self.workload.options.expert_tp
        )
        return self._exchange(self.expert_parameters, inside, across, "edp")

    def _exchange(
        self, parameters: Floats, inside: Ints, across: Ints, kind: RingKind
    ) -> ReplicaExchange:
        places = self.placements
        is_even = (
            places.dp_domains is None
        )  # every domain that holds some of the ranks holds as many
        fewest = None if is_even else inside * places.dp_at_least // places.dp
        sized = self.workload.options.collectives != "levels"

        def time_of(step: _Step) -> AffineSeconds:
            rates = gather_rates(
                self.links, step.inside, step.across, kind, fewest, summed=step.summed, sized=sized
            )
            return rates.of(step.size_bytes) * step.times

        return ReplicaExchange(*map(time_of, self._steps(parameters, inside, across)))

    def _steps(self, parameters: Floats, inside: Ints, across: Ints) -> list[_Step]:
        """A reduce-scatter and an all-gather; with several copies of the shards also two halves of
        an all-reduce of each shard between them.
        """
        copies, (scatters, returns) = self.workload.options.dp_replicate, self._times
        scattered_bytes, returned_bytes = self._sent_bytes(parameters)
        shards, between = split_copies(inside, across, copies)
        summed = self.mappings.zero == 0
        steps = [
            _Step(scattered_bytes, scatters, *shards, summed),
            _Step(returned_bytes, returns, *shards, summed),
        ]
        if copies > 1:
            size_bytes = scattered_bytes / (shards[0] * shards[1])
            steps.append(_Step(size_bytes, 2 * scatters, *between, np.ones_like(summed)))
        return steps

    def _sent_bytes(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Bytes of one reduce-scatter of gradients, and of the all-gather of gradients (ZeRO 0) or
        parameters.
        """
        software = self.workload.options.software
        gradient, kept = software.gradient_bytes, software.parameter_bytes
        return (
            gradient * parameters,
            np.where(self.mappings.zero >= 1, kept, gradient) * parameters,
        )

    @property
    def _times(self) -> tuple[Ints, Ints]:
        """Number of reduce-scatters and of all-gathers per iteration."""
        zero, times = self.mappings.zero, shard_rounds(self.workload, self.mappings)
        return np.where(zero >= 2, times, 1), np.where(zero == 3, 2 * times, 1)

    @property
    def exchanges(self) -> Ints:
        """Total number of collectives between domains per iteration."""
        scatters, returns = self._times
        return scatters + returns if self.workload.options.dp_replicate == 1 else 2 * scatters

    def embedding(self) -> AffineSeconds:
        """Sum of the gradients of a tied embedding between the first and the last stage."""
        model = self.workload.model
        if (
            not model.tied_embeddings or self.workload.options.schedule == "dualpipe"
        ):  # there one GPU has both ends
            return AffineSeconds()
        size = (
            self.workload.options.software.gradient_bytes
            * vocab_share(model, self.mappings.tp)
            * model.hidden
        )
        crosses = self.mappings.pp > self.placements.pp
        # two ranks: in two domains, or in the same one
        across, inside = (gather(self.links, size, x, 2 // x, "tied", summed=True) for x in (1, 2))
        times = 2 * (self.mappings.pp > 1)
        return AffineSeconds(
            np.where(crosses, across.fixed, inside.fixed) * times,
            tied=across.tied * crosses * times,
        )

    def optimizer(self, device: Device) -> AffineSeconds:
        """Optimizer step over the parameters that a GPU updates."""
        m = self.mappings
        copies = self.workload.options.dp_replicate
        own_shard, all_parameters = self.parameters * copies / (m.dp * m.cp), self.parameters
        if self.workload.model.experts:
            holders = expert_copies(m, expert_tp=self.workload.options.expert_tp)
            own_shard, all_parameters = (
                own_shard + self.expert_parameters * copies / holders,
                all_parameters + self.expert_parameters,
            )
        if self.workload.options.schedule == "dualpipe":
            all_parameters = all_parameters * stage_copies(m)
        updated_parameters = np.where(m.zero >= 1, own_shard, all_parameters)
        return AffineSeconds(device.stream_s(OPTIMIZER_BYTES * updated_parameters))


def replicas_of(
    workload: Workload, links: LinkRates, mappings: Mappings, placements: Placements
) -> Replicas:
    """Return the replicas of every mapping."""
    return Replicas(
        workload=workload,
        links=links,
        mappings=mappings,
        placements=placements,
        parameters=held_parameters(workload, mappings),
        expert_parameters=held_expert_parameters(workload, mappings),
    )


def window_of(
    behind: Floats, layer_s: Any, free_share: Floats, traffic: Iterable[AffineSeconds]
) -> AffineSeconds:
    """Time that data-parallel traffic can overlap with.

    This is the compute of `behind` layers, without the attention core that overlaps with a context
    ring, plus the free share of their communication where it stays inside domains and leaves NICs
    idle.

    Communication is not free where gradients use the same links, nor is that of forward passes in
    whose place logits or the accumulation of gradients run: forward passes have up to half of the
    communication in a fourth of the compute or more. Schedules that split the backward pass end
    with passes without communication.
    """
    inside_s = np.zeros(len(behind))
    for part in traffic:
        crosses = sum(map(np.abs, part.parts[1:]), 0.0) > 0
        inside_s = inside_s + np.where(crosses, 0.0, part.fixed)
    return AffineSeconds(behind * (layer_s + inside_s * free_share))


def share_left(taken_s: Any, whole_s: Any) -> Floats:
    """Share of `whole_s` that remains after `taken_s`; 0 where `whole_s` is 0."""
    duration_s = np.asarray(whole_s, dtype=np.float64)
    share: Floats = np.maximum(0.0, 1.0 - taken_s / np.where(duration_s > 0, duration_s, 1.0))
    return share * (duration_s > 0)
