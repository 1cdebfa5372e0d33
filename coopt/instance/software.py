"""Properties of a training framework, and the allowed mappings and knobs of a workload."""

from typing import Annotated, Literal, Self

from pydantic import Field

from coopt.instance.base import Count, Entry, Fraction, NonNegative, Table, Whole, one_or_many

Recompute = Literal["none", "selective", "full", "norm+act", "norm+ffn"]
Outermost = Literal["pp", "dp"]
DpMode = Literal["sync", "overlap", "stale-1"]
Transport = Literal["rdma", "ipoib", "tcp"]
Schedule = Literal["1f1b", "zb-h1", "dualpipe"]
Bits = Literal[4, 8, 16]
Degrees = Annotated[tuple[Count, ...], one_or_many, Field(min_length=1)]


class Software(Entry):
    """A training framework, as far as time and memory depend on it; symbols as in docs/model.md."""

    gradient_bytes: Annotated[
        Whole, Field(ge=2, le=4, description="bytes of a gradient as it is kept and reduced")
    ] = 4
    state_bytes: Annotated[
        Whole,
        Field(
            ge=2,
            le=12,
            description="bytes of a parameter's master copy and two moments; 8 with 16-bit moments",
        ),
    ] = 12
    narrow_inputs: Annotated[
        bool,
        Field(
            description="inputs of products in 8 or 4 bits are kept for the backward pass in 8 bits"
        ),
    ] = True
    wide_layers: Annotated[
        Whole,
        Field(
            ge=0,
            le=10**6,
            description="layers whose products stay in 16 bits, whatever the precision",
        ),
    ] = 0
    attention_bits: Annotated[
        Bits,
        Field(
            description="bits that products around attention have at least, whatever the precision"
        ),
    ] = 4
    latent_bits: Annotated[
        Bits,
        Field(
            description=(
                "bits that products have at least which narrow tokens for their experts and widen"
                " them"
            )
        ),
    ] = 4
    mamba_output_bits: Annotated[
        Bits, Field(description="bits that the output projection of a Mamba-2 mixer has at least")
    ] = 4
    prediction_bits: Annotated[
        Bits,
        Field(description="bits that products of layers that predict further tokens have at least"),
    ] = 4
    batch_first: Annotated[
        bool,
        Field(
            description=(
                "activations are batch by tokens, as scans have them, which copies nothing around"
                " them"
            )
        ),
    ] = False
    dropout: Annotated[
        bool, Field(description="masks of dropout are kept for the backward pass")
    ] = False
    reserve_gib: Annotated[
        float,
        Field(
            ge=0,
            le=100,
            description="memory that the driver's context and communication buffers take (GiB)",
        ),
    ] = 1.5
    fused_accumulation: Annotated[
        bool, Field(description="weight gradients are added up inside the product")
    ] = True
    norm_forward_bytes: Annotated[
        float,
        Field(
            ge=0,
            le=1000,
            description="bytes norms, residual and dropout move for each element, forward",
        ),
    ] = 18.0
    norm_backward_bytes: Annotated[
        float,
        Field(
            ge=0,
            le=1000,
            description="bytes norms, residual and dropout move for each element, backward",
        ),
    ] = 26.0
    loss_bytes: Annotated[
        float, Field(ge=0, le=1000, description="bytes softmax and loss move for each logit")
    ] = 24.0
    kernel_traffic: Annotated[
        float,
        Field(
            ge=1, le=10, description="bytes of the memory-bound kernels over those of fused ones"
        ),
    ] = 1.0
    grouped_experts: Annotated[
        bool,
        Field(
            description=(
                "one kernel works on all experts of a GPU; otherwise each expert has its own"
            )
        ),
    ] = False
    graphs: Annotated[
        bool,
        Field(
            description=(
                "the whole iteration is one CUDA graph, so that kernels do not wait for the host"
            )
        ),
    ] = False
    host_s: Annotated[
        float,
        Field(
            ge=0,
            le=1e-3,
            description=(
                "time the host takes to start a kernel of a layer with experts, where it waits in"
                " every layer for the number of rows each expert gets (s)"
            ),
        ),
    ] = 0.0
    kernel_s: Annotated[
        float | None,
        Field(
            ge=0,
            le=1e-3,
            description=(
                "time between two kernels; the GPU's (`efficiency.kernel_s`) if left out (s)"
            ),
        ),
    ] = None
    attention: Annotated[
        Fraction | None,
        Field(description="share of peak a fused attention kernel reaches; the GPU's if left out"),
    ] = None
    recompute_modules: Annotated[
        bool,
        Field(
            description=(
                "it has a switch for each module to recompute, so that `norm+act` and `norm+ffn`"
                " exist"
            )
        ),
    ] = False
    tp_overlap: Annotated[
        bool, Field(description="backward TP collectives run behind matrix products")
    ] = True
    tp_forward_overlap: Annotated[
        bool,
        Field(
            description=(
                "forward TP collectives too, and those that gather inputs again (user buffers)"
            )
        ),
    ] = False
    pp_overlap: Annotated[
        bool, Field(description="sends of an interleaved pipeline run behind compute")
    ] = True
    shards_in_rounds: Annotated[
        bool,
        Field(
            description=(
                "ZeRO 2 and 3 in an interleaved pipeline reduce and gather once for the"
                " micro-batches that a chunk works through in turn, not for each"
            )
        ),
    ] = False
    overhead: Annotated[
        float,
        Field(
            ge=1,
            le=10,
            description="time of an iteration over what its kernels and transfers add up to",
        ),
    ] = 1.0


class MappingLimits(Table):
    """Allowed values of each part of a mapping; unlimited if omitted (docs/network.md,
    Mappings).
    """

    tp: Annotated[Degrees | None, Field(description="tensor parallel degrees allowed")] = None
    pp: Annotated[Degrees | None, Field(description="pipeline parallel degrees allowed")] = None
    dp: Annotated[Degrees | None, Field(description="data parallel degrees allowed")] = None
    cp: Annotated[Degrees, Field(description="context parallel degrees allowed")] = (1, 2, 4, 8, 16)
    ep: Annotated[
        Degrees | None, Field(description="expert parallel degrees allowed; 1 for a dense model")
    ] = None
    micro_batch: Annotated[Degrees, Field(description="sequences in a micro-batch")] = (
        1,
        2,
        4,
        8,
        16,
    )
    interleave: Annotated[Degrees | None, Field(description="model chunks of a GPU")] = None
    recompute: Annotated[
        Annotated[tuple[Recompute, ...], one_or_many, Field(min_length=1)] | None,
        Field(description="activations computed again in the backward pass"),
    ] = None
    sequence_parallel: Annotated[
        tuple[bool, ...], one_or_many, Field(description="norms split over TP ranks", min_length=1)
    ] = (True, False)
    zero: Annotated[
        tuple[Literal[0, 1, 2, 3], ...], one_or_many, Field(description="ZeRO stages", min_length=1)
    ] = (
        0,
        1,
        2,
        3,
    )
    offload_percent: Annotated[
        Annotated[
            tuple[Annotated[Whole, Field(ge=0, le=100)], ...], one_or_many, Field(min_length=1)
        ],
        Field(
            description=(
                "share of the activations kept for the backward pass that the host's memory"
                " keeps (%)"
            )
        ),
    ] = (0,)
    outermost: Annotated[
        tuple[Outermost, ...],
        one_or_many,
        Field(
            description="dimension that lies farthest apart across domains: stages, or replicas",
            min_length=1,
        ),
    ] = ("pp", "dp")


class AllowedKnobs(Table):
    """Knobs with open values, as the lists in `options` are stored; the first value of each is the
    default.
    """

    tp_sync_fraction: Annotated[
        tuple[Fraction, ...], one_or_many, Field(description="shares allowed")
    ] = ()
    dp_mode: Annotated[
        tuple[DpMode, ...], one_or_many, Field(description="ways to reduce gradients allowed")
    ] = ()
    transport: Annotated[
        tuple[Transport, ...], one_or_many, Field(description="transports allowed")
    ] = ()

    @property
    def listed(self) -> dict[str, tuple[float | str, ...]]:
        """The values of every knob that has several."""
        values_by_knob = {
            "tp_sync_fraction": self.tp_sync_fraction,
            "dp_mode": self.dp_mode,
            "transport": self.transport,
        }
        return {name: values for name, values in values_by_knob.items() if values}


NOTHING_ALLOWED = AllowedKnobs()
SCHEDULES = {
    "zb-h1": "gradients of weights put off to fill the pipeline's bubble",
    "dualpipe": "two pipelines in opposite directions, and two copies of every stage",
}
"""What schedules of a pipeline do that are not 1F1B."""


class Reached(Table):
    """Efficiencies of a precision below 16 bits."""

    gemm: Annotated[Fraction, Field(description="eg: share of the peak of this precision")]
    hbm: Annotated[
        Fraction, Field(description="em: share of HBM bandwidth, casts and scales charged to it")
    ]
    kernel_s: Annotated[NonNegative, Field(description="time between two kernels (s)")]
    error: Annotated[
        Fraction | None,
        Field(description="mean size of the error on published runs of this precision"),
    ] = None

    def times(self, factor: float) -> Self:
        """Multiply the shares of peak and bandwidth by a factor."""
        return self.model_copy(update={"gemm": self.gemm * factor, "hbm": self.hbm * factor})


class Efficiency(Table):
    """Shares of data-sheet figures that a training run reaches; symbols as in docs/model.md."""

    gemm: Annotated[
        Fraction, Field(description="eg: share of peak FLOP/s of a large matrix product")
    ]
    gemm_k0: Annotated[
        float, Field(ge=0, le=1e6, description="k0: depth of a matrix product lost to start-up")
    ]
    hbm: Annotated[Fraction, Field(description="em: share of HBM bandwidth of a streaming kernel")]
    attention: Annotated[
        Fraction,
        Field(
            description=(
                "ea: share of 16-bit peak of a fused attention kernel, forward, heads of 128, long"
                " sequences"
            )
        ),
    ]
    kernel_s: Annotated[NonNegative, Field(description="time between two kernels (s)")] = 0.0
    hb: Annotated[Fraction, Field(description="env: share of HB bandwidth of a collective")]
    hb_reduce: Annotated[
        float | None,
        Field(
            gt=0,
            le=2,
            description=(
                "env of all-reduces that the domain's switches add up (NVLink SHARP), where they"
                " can: bus bandwidth over HB bandwidth"
            ),
        ),
    ] = None
    rail: Annotated[Fraction, Field(description="eib: share of NIC bandwidth of a collective")]
    send: Annotated[Fraction, Field(description="es: share of NIC bandwidth of a pipeline send")]
    latency_s: Annotated[NonNegative, Field(description="start-up time of one collective (s)")]
    step_s: Annotated[NonNegative, Field(description="time of one step of a ring or tree (s)")] = (
        0.0
    )
    send_s: Annotated[NonNegative, Field(description="start-up time of one pipeline send (s)")] = (
        0.0
    )
    error: Annotated[
        Fraction | None,
        Field(description="mean size of the error on published runs of this generation in 16 bits"),
    ] = None
    fp8: Annotated[
        Reached | None, Field(description="8-bit products; as in 16 bits if left out")
    ] = None
    fp4: Annotated[
        Reached | None, Field(description="4-bit products; as in 8 bits if left out")
    ] = None

    @property
    def largest_share(self) -> float:
        """The maximum of all shares of a peak or of the memory bandwidth."""
        reached_shares = (
            part for shares in (self.fp8, self.fp4) if shares for part in (shares.gemm, shares.hbm)
        )
        return max(self.gemm, self.hbm, self.attention, *reached_shares)

    def times(self, factor: float) -> Self:
        """Multiply the shares of peaks and of memory bandwidth by a factor; overheads of kernels
        and links are unchanged.
        """
        wide = {name: getattr(self, name) * factor for name in ("gemm", "hbm", "attention")}
        lower = {
            "fp8": self.fp8 and self.fp8.times(factor),
            "fp4": self.fp4 and self.fp4.times(factor),
        }
        return self.model_copy(update=wide | lower)
