"""Workloads: what the cluster trains, how fast, and which mappings are allowed."""

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from coopt.instance.base import (
    MAX_COUNT,
    Count,
    Day,
    Fraction,
    Name,
    Positive,
    Range,
    Table,
    each_once,
    first_of_list,
    of_range,
    one_or_many,
)
from coopt.instance.catalog import find, named
from coopt.instance.hardware import Precision
from coopt.instance.layouts import Layout, layout_fault, layout_of
from coopt.instance.numerics import EQUAL
from coopt.instance.software import RunSoftware
from coopt.instance.texts import both, refuse, spoken, that_hold
from coopt.instance.transformer import (
    FLOP_PER_PARAMETER,
    NOTHING_ALLOWED,
    SCHEDULES,
    AllowedKnobs,
    Degrees,
    DpMode,
    MappingLimits,
    ScalingLaw,
    Schedule,
    Software,
    Transformer,
    Transport,
)

Tokens = Annotated[float, Field(gt=0, le=1e20)]
EVIDENCE = {
    "tp_sync_fraction": (
        "language models of 130 M to 7 B parameters kept their accuracy at a fraction of 0.5"
        " (arXiv 2506.19645); larger models and lower fractions are untested"
    ),
    "dp_mode": (
        "image models kept their accuracy with gradients one step late (arXiv 1911.02516);"
        " language models are untested"
    ),
    "dispatch_bytes": (
        "one mixture of experts with 671 B parameters was trained this way (arXiv 2412.19437)"
    ),
}
"""What is known of the accuracy of models that were trained with a knob that changes them."""


def _split_of_experts(value: object) -> object:
    """Make one rank false, as it splits nothing; without this 1.0 or "1" would be read as true."""
    return False if value is not True and value in (1, "1") else value


class Options(Table):
    """Options of the training software, and permitted simplifications."""

    @model_validator(mode="before")
    @classmethod
    def _one_of_each(cls, table: Any) -> Any:
        if not isinstance(table, Mapping):
            return table
        lists = {
            name: each_once(table[name])
            for name in AllowedKnobs.model_fields
            if isinstance(table.get(name), list | tuple) and table[name]
        }
        several = {name: values for name, values in lists.items() if len(values) > 1}
        first_values = {name: values[0] for name, values in lists.items()}
        allowed = table.get("allowed", {})
        if not several or not isinstance(allowed, Mapping):
            return {**table, **first_values}
        return {**table, **first_values, "allowed": {**allowed, **several}}

    allowed: Annotated[
        AllowedKnobs, Field(description="knobs left open, as lists in them are kept")
    ] = NOTHING_ALLOWED

    software: Annotated[
        Software,
        named("software"),
        Field(
            default_factory=lambda: _default_software(),
            description="the framework; megatron-core if left out",
        ),
    ]
    attention: Annotated[
        Literal["flash", "unfused"],
        Field(description="fused attention kernel, or scores written to memory"),
    ] = "flash"
    dp_mode: Annotated[
        DpMode,
        BeforeValidator(lambda value: value, json_schema_input_type=DpMode | tuple[DpMode, ...]),
        Field(
            description=(
                "gradients reduced after the last micro-batch, behind its backward pass, or one"
                " step late; a list to choose from"
            )
        ),
    ] = "sync"
    tp_sync_fraction: Annotated[
        Fraction,
        BeforeValidator(
            lambda value: value, json_schema_input_type=Fraction | tuple[Fraction, ...]
        ),
        Field(
            description=(
                "share of the activations that TP ranks keep equal (CAAT-Net); below 1 changes the"
                " model; a list to choose from"
            )
        ),
    ] = 1.0
    tp_sync_backward: Annotated[
        float,
        Field(
            ge=1,
            le=2,
            description="backward volume of a partial synchronisation: 1 in 16 bits, 2 in fp32",
        ),
    ] = 1.0
    transport: Annotated[
        Transport,
        BeforeValidator(
            lambda value: value, json_schema_input_type=Transport | tuple[Transport, ...]
        ),
        Field(
            description=(
                "network transport; the last two have shares of their own; a list to choose from"
            )
        ),
    ] = "rdma"
    collectives: Annotated[
        Literal["levels", "fastest", "in-network"],
        Field(
            description=(
                "how collectives run: level by level, inside domains and between them; the fastest"
                " of rings, halving and doubling, trees and switches of HB domains, by the size of"
                " messages; the same with gradients added up in the network's switches"
            )
        ),
    ] = "levels"
    schedule: Annotated[
        Schedule,
        Field(
            description=(
                "order of passes in a pipeline: one forward one backward, interleaved or not; zero"
                " bubble (ZB-H1), which puts off gradients of weights; or two pipelines in opposite"
                " directions (DualPipe)"
            )
        ),
    ] = "1f1b"
    expert_tp: Annotated[
        bool | Count,
        BeforeValidator(_split_of_experts, json_schema_input_type=bool | Count),
        Field(
            description=(
                "TP splits the experts too: over all of its ranks (true), or over so many, which"
                " divide TP; false holds whole experts"
            )
        ),
    ] = False
    dp_replicate: Annotated[
        Count,
        Field(
            description=(
                "copies of what ZeRO shards (HSDP): each is shared out inside an HB domain, and"
                " gradients are added up between copies"
            )
        ),
    ] = 1
    ep_overlap: Annotated[
        bool,
        Field(
            description=(
                "all-to-alls of experts run behind the compute of another micro-batch (DualPipe and"
                " its like)"
            )
        ),
    ] = False
    dispatch: Annotated[
        Literal["once", "each"],
        Field(
            description=(
                "tokens are sent once to each domain and GPU they visit (DeepEP, HybridEP), or to"
                " each expert"
            )
        ),
    ] = "once"
    dispatch_bytes: Annotated[
        Literal[1, 2],
        Field(description="bytes of a number on its way to experts; results come back in 2"),
    ] = 2
    dispatch_multiprocessors: Annotated[
        Count | None,
        Field(
            description=(
                "multiprocessors of a GPU that copy tokens inside domains; the links are the bound"
                " if left out"
            )
        ),
    ] = None
    slowdown: Annotated[
        float,
        Field(
            ge=1,
            le=10,
            description="time of the slowest GPU over that of a typical one (stragglers)",
        ),
    ] = 1.0

    @model_validator(mode="after")
    def _begin_with_knobs(self) -> Self:
        for key, values in self.allowed.listed.items():
            if values[0] != getattr(self, key):
                raise ValueError(first_of_list(f"allowed.{key}", key))
        return self

    @property
    def knobs(self) -> tuple[str, ...]:
        """Deviations from ordinary synchronous training over RDMA, in words; empty if there are
        none.
        """
        partial = self.tp_sync_fraction < 1.0
        texts = {
            f"tp_sync_fraction = {self.tp_sync_fraction:g}: TP ranks synchronise only part of"
            " their activations, which changes the model": (partial),
            f"tp_sync_backward = {self.tp_sync_backward:g}": (
                partial and self.tp_sync_backward > 1.0
            ),
            "dp_mode = stale-1: gradients arrive one step late, which changes training": (
                self.dp_mode == "stale-1"
            ),
            "dp_mode = overlap: gradients are reduced during the backward pass": (
                self.dp_mode == "overlap"
            ),
            f"transport = {self.transport}": self.transport != "rdma",
            f"schedule = {self.schedule}: {SCHEDULES.get(self.schedule)}": self.schedule != "1f1b",
            "ep_overlap: all-to-alls run while another micro-batch computes": self.ep_overlap,
            (
                "dispatch_bytes = 1: tokens are sent to experts as 8-bit numbers, which changes"
                " training"
            ): (self.dispatch_bytes == 1),
            f"slowdown = {self.slowdown:g}: stragglers": self.slowdown > 1.0,
        }
        return tuple(that_hold(texts))

    @property
    def evidence(self) -> tuple[str, ...]:
        """Published evidence on the accuracy of models trained with knobs that affect it."""
        knobs = {
            "tp_sync_fraction": self.tp_sync_fraction < 1.0,
            "dp_mode": self.dp_mode == "stale-1",
            "dispatch_bytes": self.dispatch_bytes == 1,
        }
        return tuple(f"{name}: {EVIDENCE[name]}" for name, is_on in knobs.items() if is_on)


def _default_software() -> Software:
    entry = find("software", "megatron-core")
    assert isinstance(entry, Software)
    return entry


YEARS_FROM = 730.0  # longer durations are shown in years
TOKENS_OF_A_CP_RANK = 1024
"""Tokens of a sequence that a GPU has at least where the degrees of CP are not given."""
LATEST_DAYS = 36525.0  # what ends after a century has no date
ROUND_UP = 1.0 + 2.0**-50
BOUNDS = ("max_iteration_time_s", "min_tokens_per_s", "train_days")
ONE_BOUND = "exactly one of max_iteration_time_s, min_tokens_per_s, train_days (with train_tokens)"
LONGEST_S = 1e15
"""The longest iteration that a bound may allow (s), and what counts where there is no bound."""


MOST_TOLERANCE, NEAR_BATCH = 0.2, 0.02
"""The largest share by which a batch may differ from the one that was given, and one by which it is
still near.
"""


def batches_within(batch: Any, tolerance: Any) -> tuple[int, ...]:
    """Return the batches within a tolerance, the given one first, then the nearest; nothing where
    there is one alone, or where either is refused elsewhere.
    """
    if not isinstance(batch, int | float) or not isinstance(tolerance, int | float):
        return ()
    if not (1 <= batch <= MAX_COUNT and 0 < tolerance <= MOST_TOLERANCE and batch == int(batch)):
        return ()
    # in the decimals that the tolerance is written in
    room = int(int(batch) * Decimal(str(tolerance)))
    nearby = (int(batch) + sign * step for step in range(1, room + 1) for sign in (1, -1))
    return (int(batch), *nearby) if room else ()


def _divides_none(
    option: str, divisor: int, key: str, numbers: Sequence[int], shown: str = ""
) -> tuple[bool, str]:
    """Return the rule that an option divides one of the numbers of a key, if there are some."""
    return (
        bool(numbers) and all(number % divisor for number in numbers),
        f"options.{option} = {divisor}: divides none of {key} = {shown or list(numbers)}, needs"
        " a divisor",
    )


class Workload(Table):
    """One model to train, within a bound unless the fastest plan is required."""

    name: Annotated[Name, Field(description="how the answer calls it")]
    model: Annotated[Transformer, named("model"), Field(description="the language model")]
    global_batch: Annotated[
        Count,
        BeforeValidator(of_range, json_schema_input_type=Count | tuple[Count, ...] | Range),
        Field(
            description=(
                "sequences in one iteration; a list or a range to choose from (docs/days.md)"
            )
        ),
    ]
    batches: Annotated[
        tuple[Count, ...],
        one_or_many,
        Field(
            description=(
                "batches to choose from, as a list in `global_batch` is kept; the first is"
                " `global_batch`"
            )
        ),
    ] = ()
    batch_tolerance: Annotated[
        float,
        Field(
            ge=0,
            le=MOST_TOLERANCE,
            description=(
                "share by which the batch may differ from `global_batch`, which the search then"
                " chooses; 0.02 is two percent"
            ),
        ),
    ] = 0.0
    critical_batch_tokens: Annotated[
        Tokens | None,
        Field(
            description=(
                "batch (tokens) at which training takes twice `train_tokens`; these then are the"
                " least"
            )
        ),
    ] = None
    precision: Annotated[
        Precision, Field(description="format of the matrix products of the layers")
    ] = "bf16"
    max_iteration_time_s: Annotated[
        Positive | None, Field(description="bound: time of one iteration (s)")
    ] = None
    min_tokens_per_s: Annotated[
        Positive | None, Field(description="bound: pace of the training (tokens/s)")
    ] = None
    train_days: Annotated[
        Positive | None, Field(description="bound: time to train `train_tokens` (days)")
    ] = None
    by: Annotated[
        Day | None,
        Field(
            description="day by which it is trained, in place of `train_days`; needs cluster.start"
        ),
    ] = None
    train_tokens: Annotated[
        Tokens | None,
        Field(
            description="tokens of the whole training run; with another bound, plans tell its days"
        ),
    ] = None
    loss: Annotated[
        Positive | None,
        Field(description="loss to train to (nats a token): gives `train_tokens` by `scaling_law`"),
    ] = None
    compute_flop: Annotated[
        Annotated[float, Field(gt=0, le=1e40)] | None,
        Field(
            description=(
                "compute to train with, 6 FLOP a parameter and token (FLOP): gives `train_tokens`"
            )
        ),
    ] = None
    scaling_law: Annotated[
        ScalingLaw | None,
        named("scaling_law", optional=True),
        Field(description="loss of parameters and tokens, of dense models; chinchilla if left out"),
    ] = None
    gpus: Annotated[
        Degrees | None, Field(description="partition: sizes its island may have; any if left out")
    ] = None
    mapping: Annotated[MappingLimits, Field(description="which splits are allowed")] = (
        MappingLimits()
    )
    allow_tp_across: Annotated[
        bool | None,
        Field(
            description=(
                "a TP group may extend over several HB domains; false keeps each inside one; left"
                " out, groups extend where nothing inside meets all bounds and limits"
            )
        ),
    ] = None
    options: Annotated[
        Options,
        Field(
            default_factory=lambda: Options.model_validate({}), description="how the software works"
        ),
    ]

    balance: Annotated[
        Literal["forced", "trained"] | Annotated[float, Field(ge=1, le=100)],
        Field(
            description=(
                "how evenly routers send tokens to experts: all alike, as benchmarks force it; as"
                " trained routers do; or time of the busiest GPU's experts over that of the mean"
            )
        ),
    ] = "trained"
    software: Annotated[
        RunSoftware | None,
        Field(description="what the run is made of; becomes options.software and options.dispatch"),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _software_of_options(cls, table: Any, info: ValidationInfo) -> Any:
        if not isinstance(table, Mapping) or table.get("software") is None:
            return table
        options = table.get("options", {})
        try:
            stated = RunSoftware.model_validate(table["software"])
        except ValidationError:
            return table  # complaints are those of the field, with its place
        if not isinstance(options, Mapping):
            raise ValueError(
                "software: workload.options is no table but a finished object, needs software"
                " inside that object"
            )
        return {**table, "software": None, "options": stated.options(options, info.context)}

    @model_validator(mode="before")
    @classmethod
    def _one_batch(cls, table: Any) -> Any:
        if not isinstance(table, Mapping):
            return table
        try:
            batches = of_range(table.get("global_batch"))
        except ValidationError:
            return table  # complaints are those of the field, with its place
        tolerance = table.get("batch_tolerance", 0.0)
        if not isinstance(batches, list | tuple):
            nearby = batches_within(batches, tolerance)
            return {**table, "batches": nearby} if nearby else table
        if not batches:
            return table
        if tolerance:
            raise ValueError(
                f"batch_tolerance = {tolerance}: applies to a single batch, but global_batch is a"
                " list or a range, needs one number there"
            )
        batches = each_once(batches)
        return {**table, "global_batch": batches[0], "batches": batches if len(batches) > 1 else ()}

    @model_validator(mode="after")
    def _begins_with_global_batch(self) -> Self:
        if self.batches and self.batches[0] != self.global_batch:
            raise ValueError(first_of_list("batches", "global_batch"))
        return self

    @model_validator(mode="after")
    def _long_sequences(self) -> Self:
        """Allow CP degrees that follow the sequence, where none are given and it is long."""
        longest = self.model.seq // TOKENS_OF_A_CP_RANK
        if "cp" not in self.mapping.model_fields_set and longest > max(self.mapping.cp):
            degrees = tuple(2**power for power in range(longest.bit_length()))
            mapping = self.mapping.model_copy()
            mapping.__dict__["cp"] = degrees  # still a default
            self.__dict__["mapping"] = mapping
        return self

    @model_validator(mode="after")
    def _of_old_software(self) -> Self:
        """Leave out what the framework lacks, where it is not given."""
        lacks = set(self.options.software.lacks) - self.mapping.model_fields_set
        least: dict[str, tuple[int, ...]] = {"sequence_parallel": (False,), "zero": (0,)}
        least |= dict.fromkeys(("tp", "pp", "cp", "interleave"), (1,))
        if lacks & set(least):
            mapping = self.mapping.model_copy()
            mapping.__dict__ |= {key: least[key] for key in lacks & set(least)}  # still defaults
            self.__dict__["mapping"] = mapping
        return self

    @model_validator(mode="after")
    def _tokens_by_law(self) -> Self:
        """Set the tokens required for a given loss or compute."""
        if self.loss is None and self.compute_flop is None:
            return self
        if self.loss is not None and self.compute_flop is not None:
            raise ValueError("loss and compute_flop are both given, needs only one of them")
        key = "compute_flop" if self.loss is None else "loss"
        if not self.model.has_scaling_law:
            raise ValueError(
                f"{key}: no scaling law is known for {self.model.name}, needs a dense model of"
                f" ordinary attention without encoders, or train_tokens in place of {key}"
            )
        size, law = float(self.model.parameters), self.law
        if self.compute_flop is not None:
            tokens = self.compute_flop / FLOP_PER_PARAMETER / size
        else:
            assert self.loss is not None, "one of them is given"
            tokens = law.tokens(size, self.loss)
        if self.train_tokens is not None and not math.isclose(
            self.train_tokens, tokens, rel_tol=EQUAL
        ):
            raise ValueError(
                f"train_tokens = {self.train_tokens:g}: {key} already implies {tokens:.6g} tokens,"
                " needs only one of these keys"
            )
        if not tokens <= 1e20:
            raise ValueError(f"{key} implies {tokens:.3g} tokens, needs at most 1e20")
        self.__dict__["train_tokens"] = tokens
        return self

    @property
    def law(self) -> ScalingLaw:
        """The scaling law that determines tokens."""
        law = self.scaling_law or find("scaling_law", "chinchilla")
        assert isinstance(law, ScalingLaw)
        return law

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        days = "train_days" if self.by is None else f"by = {self.by}"
        names = {"train_days": days}
        keys = [names.get(key, key) for key in BOUNDS if getattr(self, key) is not None]
        refuse(
            (len(keys) > 1, f"{both(keys)} are given, needs {ONE_BOUND}"),
            (
                self.calendar and self.train_tokens is None,
                f"{days}: the number of tokens is missing, needs train_tokens",
            ),
            (
                self.calendar and not self.is_whole_run,
                f"train_tokens = {self.train_tokens or 0:g}: one iteration alone has"
                f" {self.tokens_per_iteration:,} tokens, needs the tokens of the whole run",
            ),
        )
        share = self.options.tp_sync_fraction
        refuse(
            (
                not 1e-9 <= self.required_s <= LONGEST_S,
                f"{both(keys)} amounts to {self.required_s:.3g} s an iteration, needs 1e-9 to"
                " 1e15 s",
            ),
            (
                share < 1.0 and False not in self.mapping.sequence_parallel,
                f"options.tp_sync_fraction = {share:g}: rules out sequence parallelism, needs"
                " false in mapping.sequence_parallel",
            ),
        )
        return self

    @model_validator(mode="after")
    def _shards_fit(self) -> Self:
        over, copies, mapping = self.options.expert_tp, self.options.dp_replicate, self.mapping
        batches = self.batches or (self.global_batch,)
        nearby = self.batch_tolerance and len(batches) > 1
        ends = f"{min(batches)} to {max(batches)}" if nearby else ""
        refuse(
            (
                over > 1 and not self.model.experts,
                f"options.expert_tp = {over}: {self.model.name} has no experts, needs true or"
                " false",
            ),
            _divides_none("expert_tp", max(over, 1), "mapping.tp", mapping.tp or ()),
            (
                copies > 1 and not any(mapping.zero),
                f"options.dp_replicate = {copies}: ZeRO 0 shards nothing, needs 1, 2 or 3 in"
                " mapping.zero",
            ),
            _divides_none("dp_replicate", copies, "mapping.dp", mapping.dp or ()),
            _divides_none("dp_replicate", copies, "global_batch", batches, ends),
        )
        return self

    @model_validator(mode="after")
    def _schedule_fits(self) -> Self:
        options, mapping, model = self.options, self.mapping, self.model
        schedule, layout, chunks = options.schedule, mapping.pipeline_layout, mapping.interleave
        limits = model.layers, model.extra_predictions, mapping.pp, chunks
        fault = layout_fault(layout, *limits) if layout and schedule == "1f1b" else ""
        refuse(
            (
                options.software.fp8_head and self.precision not in ("fp8", "fp4"),
                f"options.software.fp8_head = true: with precision = {self.precision!r} the layers"
                " are in 16 bits; needs precision = 'fp8' or 'fp4', else false",
            ),
            (
                "act" in (mapping.recompute or ()) and not model.has_act,
                f"mapping.recompute = {list(mapping.recompute or ())}: act recomputes activation"
                f" functions of experts and latents, {model.name} has neither, needs kinds"
                " without act",
            ),
            (
                layout and schedule != "1f1b",
                f"mapping.pipeline_layout = {layout!r}: options.schedule = {schedule!r} has equal"
                " stages, needs the schedule '1f1b'",
            ),
            (fault, f"mapping.pipeline_layout = {layout!r}: {fault}"),
            (
                schedule != "1f1b" and chunks not in (None, (1,)),
                f"mapping.interleave = {list(chunks or ())}: options.schedule = {schedule!r} does"
                " not interleave, needs [1], or options.schedule = '1f1b'",
            ),
        )
        return self

    @property
    def open_batches(self) -> tuple[int, ...]:
        """The batches to choose from that the copies of shards divide; none where it is given."""
        return tuple(batch for batch in self.batches if batch % self.options.dp_replicate == 0)

    @property
    def layout(self) -> Layout:
        """Chunks of the pipeline that are given; none where layers are split evenly."""
        text = self.mapping.pipeline_layout
        return layout_of(text) if text else ()

    _time_margin: float = PrivateAttr(default=0.0)
    _start: date | None = PrivateAttr(default=None)
    _turn_days: float | None = PrivateAttr(default=None)

    @property
    def start(self) -> date | None:
        """Day on which training starts, if one is given."""
        return self._start

    def starting(self, start: date | None) -> Self:
        """Return the workload with the day on which its training starts."""
        return self.with_private(_start=start)

    def with_margin(self, share: float) -> Self:
        """Return the workload with that share added to its iteration times before comparison with
        its bound.
        """
        return self.with_private(_time_margin=share)

    def in_turn_within(self, days: float | None) -> Self:
        """Return the workload with the days of all workloads in turn, for want of a bound of its
        own; None for no bound at all.
        """
        return self.having(train_days=days).with_private(_turn_days=days)

    @property
    def takes_turns(self) -> bool:
        """Whether its days are those of all workloads in turn, and no bound of its own."""
        # a copy with other days keeps those in turn, and the other ones are its own bound
        return self._turn_days is not None and self.train_days == self._turn_days

    @model_serializer(mode="wrap")
    def _with_own_bound(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out days that are no bound of its own."""
        table: dict[str, Any] = written(self)
        if self.takes_turns:
            table.pop("train_days", None)
        return table

    @property
    def time_margin(self) -> float:
        """Share added to iteration times before comparison with the bound."""
        return self._time_margin

    @property
    def bounded(self) -> bool:
        """Whether the workload has a bound; questions of minimum time need none."""
        return any(getattr(self, key) is not None for key in BOUNDS)

    @property
    def tp_inside(self) -> bool:
        """Whether each TP group lies inside one HB domain."""
        return self.allow_tp_across is False

    @property
    def calendar(self) -> bool:
        """Whether the bound is in days, which include interruptions."""
        return self.train_days is not None

    @property
    def is_whole_run(self) -> bool:
        """Whether tokens are given, of one iteration or more."""
        return (self.train_tokens or 0.0) >= self.tokens_per_iteration

    @property
    def tokens_per_iteration(self) -> int:
        """Tokens in one global batch."""
        return self.global_batch * self.model.seq

    @property
    def iterations(self) -> float:
        """Number of iterations of the whole training run; 0 if its tokens are not given."""
        return self.needed_tokens / self.tokens_per_iteration

    @property
    def needed_tokens(self) -> float:
        """Tokens of the whole training run; 0 if not given.

        With a critical batch C, a batch of B tokens needs 1 + B / C times the minimum number of
        tokens (McCandlish et al., An Empirical Model of Large-Batch Training, arXiv 1812.06162).
        """
        return (self.train_tokens or 0.0) * self.tokens_for_one

    @property
    def tokens_for_one(self) -> float:
        """Tokens needed per token of small-batch training; 1 without a critical batch."""
        critical = self.critical_batch_tokens
        return 1.0 if critical is None else 1.0 + self.tokens_per_iteration / critical

    def in_own_units(self, time_s: float, bound: str = "") -> str:
        """Express an iteration time in the unit of the bound, which may stand behind days; empty if
        that is seconds.
        """
        if self.min_tokens_per_s is not None:
            return f"{self.tokens_per_iteration / time_s:,.0f} tokens/s"
        if self.train_tokens is not None:
            tokens = f"{self.duration(time_s)}{bound} for {spoken(self.needed_tokens)} tokens"
            return f"{tokens}{self.by_end(time_s)}"
        return ""

    def days(self, time_s: float) -> float:
        """Days that all iterations take at this time each."""
        return self.days_for(self.needed_tokens, time_s)

    def days_for(self, tokens: float, time_s: float) -> float:
        """Days that so many tokens take at this time an iteration."""
        return tokens / self.tokens_per_iteration * time_s / 86400.0

    def end(self, time_s: float) -> str:
        """Day by which training ends at this time an iteration: `4 March 2027`; empty without a
        start, or where it lies a century ahead or is no date.
        """
        days = self.days(time_s) - EQUAL
        if self.start is None or not days <= min(LATEST_DAYS, (date.max - self.start).days):
            return ""
        last = self.start + timedelta(days=math.ceil(days))
        return f"{last.day} {last:%B %Y}"

    def by_end(self, time_s: float) -> str:
        """Return `, by 4 March 2027`; empty where `end` is."""
        return f", by {end}" if (end := self.end(time_s)) else ""

    def duration(self, time_s: float) -> str:
        """Duration of all iterations at this time each: `54.2 days`."""
        return lasting(self.days(time_s))

    @property
    def bound_s(self) -> float:
        """Upper bound on the predicted iteration time (s): the required bound minus the margin;
        `LONGEST_S` without a bound.
        """
        return self.required_s / (1.0 + self._time_margin) if self.bounded else LONGEST_S

    @property
    def required_s(self) -> float:
        """The required bound in seconds per iteration, whichever way it was given; `LONGEST_S`
        without a bound.

        Conversions round up by a few units in the last place, so that a plan that attains a rate
        meets that rate as a bound.
        """
        if self.max_iteration_time_s is not None:
            return self.max_iteration_time_s
        if self.min_tokens_per_s is not None:
            return self.tokens_per_iteration / self.min_tokens_per_s * ROUND_UP
        if self.train_days is None:
            return LONGEST_S
        return self.train_days * 86400.0 * self.tokens_per_iteration / self.needed_tokens * ROUND_UP


def lasting(days: float) -> str:
    """`54.2 days`, or years where these are many."""
    if math.isinf(days):
        return "infinitely long"
    if days >= YEARS_FROM:
        return f"{days / 365:.3g} years"
    return f"{days:.4g} day{'' if f'{days:.4g}' == '1' else 's'}"
