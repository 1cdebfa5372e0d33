"""The architecture of a transformer, and the properties of the framework that trains it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from coopt.instance.base import (
    MAX_COUNT,
    UNPRINTED,
    Count,
    Entry,
    Fraction,
    NonNegative,
    Positive,
    Table,
    Whole,
    one_or_many,
)
from coopt.instance.layouts import layout_of
from coopt.instance.mixers import Attention, Encoder, Mixer, MixerLayers, OrNone, ScanLayers
from coopt.instance.texts import broken, spoken

MAMBA_SIZES = ("mamba_heads", "mamba_head_dim", "mamba_groups", "mamba_state")
FLOP_PER_PARAMETER = 6.0  # of a token, forward and backward, as the laws count compute


class Transformer(Attention, Entry):
    """A decoder-only language model; symbols as in docs/model.md.

    Its own keys of attention describe all layers that `mamba_layers` and `mixers` leave.
    """

    layers: Annotated[Count, Field(description="L: layers")]
    hidden: Annotated[Count, Field(description="h: width of a layer")]
    ffn: Annotated[Count, Field(description="f: width of the feed-forward layer (of one expert)")]
    gated: Annotated[
        bool, Field(description="gated feed-forward layer (SwiGLU): three matrices instead of two")
    ] = False
    vocab: Annotated[Count, Field(description="V: tokens in the vocabulary")]
    seq: Annotated[Count, Field(description="s: sequence length (tokens)")]
    tied_embeddings: Annotated[
        bool, Field(description="input and output embedding are one matrix")
    ] = True
    experts: Annotated[OrNone, Field(description="experts of a layer; 0 for a dense model")] = 0
    top_k: Annotated[OrNone, Field(description="experts a token visits; 0 for a dense model")] = 0
    expert_groups: Annotated[
        OrNone,
        Field(description="groups that experts are routed by; 0 where a token may visit any"),
    ] = 0
    top_groups: Annotated[OrNone, Field(description="groups whose experts a token may visit")] = 0
    shared_ffn: Annotated[
        OrNone, Field(description="width of the experts every token visits, together")
    ] = 0
    capacity: Annotated[
        float,
        Field(
            gt=0, le=100, description="rows an expert works on over its even share of the tokens"
        ),
    ] = 1.0
    dense_layers: Annotated[
        OrNone,
        Field(description="layers of a mixture of experts that have a plain feed-forward layer"),
    ] = 0
    dense_ffn: Annotated[OrNone, Field(description="feed-forward width of those layers")] = 0
    window_layers: Annotated[OrNone, Field(description="layers with a sliding window")] = 0
    extra_predictions: Annotated[
        Whole,
        Field(
            ge=0, le=16, description="modules that predict further tokens, each a layer and a loss"
        ),
    ] = 0
    expert_latent: Annotated[
        OrNone,
        Field(
            description="width that tokens are projected to for their experts; 0 where it is hidden"
        ),
    ] = 0
    mamba_layers: Annotated[
        OrNone,
        Field(description="layers of a hybrid with a Mamba-2 mixer, which have no attention"),
    ] = 0
    attention_layers: Annotated[
        OrNone | None,
        Field(
            description="layers of a hybrid with attention; all but those with another mixer if"
            " left out"
        ),
    ] = None
    ffn_layers: Annotated[
        Whole | None,
        Field(
            ge=1,
            le=MAX_COUNT,
            description="layers of a hybrid with a feed-forward part; all if left out",
        ),
    ] = None
    mamba_heads: Annotated[OrNone, Field(description="heads of a Mamba-2 mixer")] = 0
    mamba_head_dim: Annotated[OrNone, Field(description="size of such a head")] = 0
    mamba_groups: Annotated[OrNone, Field(description="groups of its heads that share B and C")] = 0
    mamba_state: Annotated[OrNone, Field(description="size of its state")] = 0
    mixers: Annotated[
        tuple[MixerLayers, ...],
        one_or_many,
        Field(description="layers with a linear mixer or with an attention of their own"),
    ] = ()
    streams: Annotated[
        Count, Field(le=64, description="residual streams (hyper-connections); 1 for plain ones")
    ] = 1
    published_total: Annotated[
        float | None,
        Field(gt=0, le=1e6, description="parameters as published (10^9), to compare with"),
    ] = None
    published_active: Annotated[
        float | None,
        Field(gt=0, le=1e6, description="those that a token meets, as published (10^9)"),
    ] = None
    encoders: Annotated[
        tuple[Encoder, ...],
        one_or_many,
        Field(description="encoders in front, such as vision towers"),
    ] = ()

    def _complaints(self) -> Iterator[str]:
        yield from super()._complaints()
        is_mixed = self.experts > 0
        of_experts = {
            key: value
            for key in ("shared_ffn", "dense_layers", "dense_ffn", "capacity")
            if (value := getattr(self, key)) != type(self).model_fields[key].default
        }
        yield from broken(
            (
                is_mixed != (self.top_k > 0) or self.top_k > self.experts,
                f"experts = {self.experts}, top_k = {self.top_k}: needs 1 <= top_k <= experts, or 0"
                " for both",
            ),
            (
                of_experts and not is_mixed,
                f"{', '.join(f'{key} = {value:g}' for key, value in of_experts.items())}: only for"
                " a mixture of experts, needs experts > 0",
            ),
        )
        if self.expert_groups or self.top_groups:
            yield from self._group_complaints()
        yield from broken(
            (
                (self.dense_layers > 0) != (self.dense_ffn > 0)
                or self.dense_layers >= self.with_ffn + (not is_mixed),
                f"dense_layers = {self.dense_layers}, dense_ffn = {self.dense_ffn}: needs both or"
                " neither, and at least one feed-forward layer with experts",
            ),
            (
                self.window_layers > self.with_attention
                or (self.window > 0) != (self.window_layers > 0),
                f"window = {self.window}, window_layers = {self.window_layers}: needs both or"
                " neither, and no more windowed layers than layers with attention",
            ),
            (
                self.expert_latent and not is_mixed,
                f"expert_latent = {self.expert_latent}: applies only to a mixture of experts,"
                " needs experts > 0",
            ),
        )
        yield from self._hybrid_complaints()

    def _hybrid_complaints(self) -> Iterator[str]:
        """Yield complaints about layers with different parts."""
        counts = ("attention_layers", "ffn_layers")
        missing_names = [name for name in MAMBA_SIZES if not getattr(self, name)]
        of_mamba = [name for name in MAMBA_SIZES if name not in missing_names]
        of_hybrids = [name for name in counts if getattr(self, name) is not None]
        has_mamba, is_hybrid = self.mamba_layers > 0, bool(self.mamba_layers or self.mixers)
        mixers = self.mamba_layers + sum(mixer.layers for mixer in self.mixers)
        mixers += max(self.with_attention, 0)
        return broken(
            (
                of_mamba and not has_mamba,
                f"{', '.join(of_mamba)}: for models with Mamba-2 layers, needs mamba_layers > 0",
            ),
            (
                of_hybrids and not is_hybrid,
                f"{', '.join(of_hybrids)}: for hybrids, needs mamba_layers > 0 or mixers",
            ),
            (
                has_mamba and missing_names,
                f"mamba_layers = {self.mamba_layers}: needs {', '.join(missing_names)} as well",
            ),
            (
                has_mamba and not missing_names and self.mamba_heads % self.mamba_groups,
                f"mamba_groups = {self.mamba_groups}: needs a divisor of mamba_heads ="
                f" {self.mamba_heads}",
            ),
            (
                is_hybrid
                and not max(mixers, self.with_ffn) <= self.layers <= mixers + self.with_ffn,
                f"layers = {self.layers}: needs at least {mixers}, the sum of mamba_layers,"
                " attention_layers and layers of mixers"
                if self.ffn_layers is None
                else f"layers = {self.layers}: needs {max(mixers, self.with_ffn)} to"
                f" {mixers + self.with_ffn}: at least the larger of {mixers} layers with mixers and"
                f" ffn_layers = {self.with_ffn}, at most their sum",
            ),
        )

    def _group_complaints(self) -> Iterator[str]:
        """Yield complaints about groups of experts."""
        groups, top_groups = self.expert_groups, self.top_groups
        are_groups = 1 <= top_groups <= groups and self.experts % groups == 0
        most = self.experts // max(groups, 1) * top_groups
        return broken(
            (
                not are_groups,
                f"expert_groups = {groups}, top_groups = {top_groups}: needs groups that divide"
                f" experts = {self.experts}, and 1 <= top_groups <= expert_groups",
            ),
            (
                are_groups and self.top_k > most,
                f"top_k = {self.top_k}: needs at most {most}, the experts in top_groups groups",
            ),
        )

    @property
    def has_scaling_law(self) -> bool:
        """Whether scaling laws, which were fitted to dense models, hold: one kind of ordinary
        attention in all layers, and a dense feed-forward part.
        """
        special = self.experts or self.kv_rank or self.mamba_layers or self.mixers or self.encoders
        return not (special or self.q_rank or self.output_gate or self.shared_kv)

    @property
    def parameters(self) -> int:
        """Parameters of a dense model with standard attention, without norms and biases."""
        assert self.has_scaling_law, "asked for of plain transformers"
        attention = self.heads * self.head_dim + (self.kv_heads + self.heads) * self.value_size
        attention += self.kv_heads * self.head_dim
        layer = self.hidden * (attention + (3 if self.gated else 2) * self.ffn)
        return self.layers * layer + self.vocab * self.hidden * (1 if self.tied_embeddings else 2)

    @property
    def kinds(self) -> tuple[tuple[int, Mixer], ...]:
        """Mixers, each with the number of layers that have it."""
        return _kinds_of(self)

    @property
    def has_act(self) -> bool:
        """Whether there are experts or latents, which recomputation of `act` is about."""
        return self.experts > 0 or any(getattr(mixer, "kv_rank", 0) for _, mixer in self.kinds)

    @property
    def scans(self) -> tuple[ScanLayers, ...]:
        """The linear mixers."""
        return tuple(mixer for _, mixer in self.kinds if isinstance(mixer, ScanLayers))

    @property
    def towers(self) -> tuple[tuple[Encoder, Transformer], ...]:
        """Encoders in front, each as a model of one of its inputs."""
        return tuple((encoder, _tower_of(encoder)) for encoder in self.encoders)

    @property
    def prediction(self) -> Self:
        """The model of a layer that predicts a further token.

        It is a mean layer; in a model with several kinds of mixers it has the model's own attention
        and a feed-forward part, with experts if the model has any.
        """
        if not self.mamba_layers and not self.mixers and not self.encoders:
            return self
        neither = {
            "mamba_layers": 0,
            "attention_layers": None,
            "ffn_layers": None,
            "dense_layers": 0,
            "mixers": (),
            "encoders": (),
        }
        return self.model_copy(update=neither | {"layers": 1, "window": 0, "window_layers": 0})

    @property
    def with_attention(self) -> int:
        """Number of layers with the attention of the model's own keys."""
        if self.attention_layers is not None:
            return self.attention_layers
        return self.layers - self.mamba_layers - sum(mixer.layers for mixer in self.mixers)

    @property
    def with_ffn(self) -> int:
        """Number of layers with a feed-forward part."""
        return self.layers if self.ffn_layers is None else self.ffn_layers


@lru_cache(maxsize=1 << 10)
def _tower_of(encoder: Encoder) -> Transformer:
    """Return an encoder as a model without embeddings that sees all tokens of an input."""
    return Transformer(
        name="encoder",
        kv_heads=encoder.heads,
        ffn=encoder.ffn,
        gated=encoder.gated,
        vocab=1,
        seq=encoder.tokens,
        causal=False,
        **{name: getattr(encoder, name) for name in ("layers", "hidden", "heads", "head_dim")},
    )


@lru_cache(maxsize=1 << 10)
def _kinds_of(model: Transformer) -> tuple[tuple[int, Mixer], ...]:
    """Expand the keys of a model to a list of mixers."""
    own_layers = model.with_attention - model.window_layers
    kinds: list[tuple[int, Mixer]] = []
    if own_layers:
        plain = model.model_copy(update={"window": 0}) if model.window else model
        kinds.append((own_layers, plain))
    if model.window_layers:
        kinds.append((model.window_layers, model))
    if model.mamba_layers:
        sizes = zip(("heads", "head_dim", "groups", "state"), MAMBA_SIZES, strict=True)
        of_mamba = {size: getattr(model, name) for size, name in sizes}
        scan = ScanLayers(kind="mamba-2", layers=model.mamba_layers, **of_mamba)
        kinds.append((scan.layers, scan))
    return (*kinds, *((mixer.layers, mixer) for mixer in model.mixers))


class ScalingLaw(Entry):
    r"""The loss of N parameters trained on D tokens (Hoffmann et al. 2022, arXiv 2203.15556).

    .. math:: L = e + \frac{a}{N^\alpha} + \frac{b}{D^\beta}
    """

    e: Annotated[Positive, Field(description="loss that no training goes below (nats a token)")]
    a: Annotated[Positive, Field(description="what a small model adds: a / N^alpha")]
    b: Annotated[Positive, Field(description="what few tokens add: b / D^beta")]
    alpha: Annotated[Positive, Field(description="power of the parameters")]
    beta: Annotated[Positive, Field(description="power of the tokens")]

    def loss(self, parameters: float, tokens: float) -> float:
        """Return the loss after training (nats per token)."""
        return float(self.e + self.a / parameters**self.alpha + self.b / tokens**self.beta)

    def tokens(self, parameters: float, loss: float) -> float:
        """Return the number of tokens after which a model reaches a loss.

        Raises
        ------
        ValueError
            If no number of tokens suffices.
        """
        data_loss = loss - self.e - self.a / parameters**self.alpha
        if data_loss <= 0:
            raise ValueError(
                f"loss = {loss:g}: by the scaling law {self.name}, {spoken(parameters)} parameters"
                f" never reach a loss below {self.e + self.a / parameters**self.alpha:.4g},"
                " needs a higher loss or a larger model"
            )
        return float((self.b / data_loss) ** (1.0 / self.beta))

    def best_for_compute(self, flop: float) -> tuple[float, float]:
        r"""Return the parameters and tokens with minimum loss for a compute of 6 N D.

        .. math:: N
            = \left(\frac{\alpha a}{\beta b}\right)^{1/(\alpha+\beta)}
            \left(C/6\right)^{\beta/(\alpha+\beta)}
        """
        exponents, pairs = self.alpha + self.beta, flop / FLOP_PER_PARAMETER
        ratio = self.alpha * self.a / (self.beta * self.b)
        parameters = ratio ** (1.0 / exponents) * pairs ** (self.beta / exponents)
        return parameters, pairs / parameters


Recompute = Literal["none", "selective", "full", "norm+act", "norm+ffn", "act"]
Outermost = Literal["pp", "dp"]
DpMode = Literal["sync", "overlap", "stale-1"]
Transport = Literal["rdma", "ipoib", "tcp"]
Schedule = Literal["1f1b", "zb-h1", "dualpipe"]
Bits = Literal[4, 8, 16]
GraphModule = Literal["attn", "mamba", "mlp", "moe_router", "moe_preprocess", "moe"]


def _graphs(value: Any) -> Any:
    """Accept whether there is a graph of the whole iteration."""
    return {True: "full", False: "none"}[value] if isinstance(value, bool) else value


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
    parameter_bytes: Annotated[
        Whole,
        Field(ge=1, le=2, description="bytes of a parameter as it is kept and gathered; 1 in fp8"),
    ] = 2
    fp8_head: Annotated[
        bool, Field(description="products of the logits run in 8 bits, like those of layers")
    ] = False
    release: Annotated[
        str,
        Field(pattern=rf"^[^{UNPRINTED}]*$", description="its release, as its makers count them"),
    ] = ""
    narrow_inputs: Annotated[
        bool,
        Field(
            description=(
                "inputs of products in 8 or 4 bits are kept for the backward pass in 8 bits, and TP"
                " gathers them as they are multiplied"
            )
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
    lacks: Annotated[
        tuple[
            Literal["selective", "sequence_parallel", "interleave", "tp", "pp", "cp", "zero"], ...
        ],
        one_or_many,
        Field(
            description=(
                "what it does not have: tried only if listed in `mapping`; interleave: several"
                " chunks a stage"
            )
        ),
    ] = ()
    reserve_gib: Annotated[
        float,
        Field(
            ge=0,
            le=100,
            description="memory that the driver, its context and its modules take (GiB)",
        ),
    ] = 1.5
    memory_margin: Annotated[
        float,
        Field(
            ge=0,
            le=0.9,
            description=(
                "share of a GPU's memory that stays free by default: for fragments and buffers of"
                " its allocator, and what peaks exceed predictions by"
            ),
        ),
    ] = 0.1
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
    logit_bytes: Annotated[
        float,
        Field(
            ge=0,
            le=100,
            description="bytes kept of a logit: 4 in fp32, 6 with 16 bits, 14 with gradients",
        ),
    ] = 4.0
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
        Literal["none", "scoped", "full"],
        BeforeValidator(_graphs, json_schema_input_type=Literal["none", "scoped", "full"] | bool),
        Field(
            description=(
                "CUDA graphs, whose kernels do not wait for the host: none, some modules of a"
                " layer (scoped), or the whole iteration (full)"
            )
        ),
    ] = "none"
    graph_modules: Annotated[
        tuple[GraphModule, ...],
        one_or_many,
        Field(description="modules inside scoped graphs, as Megatron-Core calls them"),
    ] = ()
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
                "it has a switch for each module to recompute, so that `act`, `norm+act` and"
                " `norm+ffn` exist"
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
    whole_gradients: Annotated[
        bool,
        Field(
            description=(
                "pipelines hold gradients and parameters whole with any ZeRO, without"
                " `shards_in_rounds`"
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

    @model_validator(mode="after")
    def _scoped_graphs_hold_modules(self) -> Self:
        if (self.graphs == "scoped") != bool(self.graph_modules):
            raise ValueError(
                f"graphs = {self.graphs!r}, graph_modules = {list(self.graph_modules)}: needs"
                " graph_modules if graphs = 'scoped', and none otherwise"
            )
        return self

    def in_graph(self, module: str) -> bool:
        """Whether kernels of a module of a layer belong to a CUDA graph."""
        modules = self.graph_modules
        of_experts = module.startswith("moe_") and "moe" in modules
        return self.graphs == "full" or module in modules or of_experts


def _readable_layout(text: str) -> str:
    layout_of(text)
    return text


class MappingLimits(Table):
    """Allowed values of each part of a mapping; unlimited if omitted (docs/network.md,
    Mappings).
    """

    tp: Annotated[Degrees | None, Field(description="tensor parallel degrees allowed")] = None
    pp: Annotated[Degrees | None, Field(description="pipeline parallel degrees allowed")] = None
    dp: Annotated[Degrees | None, Field(description="data parallel degrees allowed")] = None
    cp: Annotated[
        Degrees,
        Field(
            description=(
                "context parallel degrees allowed; left out, of long sequences up to one for each"
                " 1,024 tokens"
            )
        ),
    ] = (1, 2, 4, 8, 16)
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
    pipeline_layout: Annotated[
        Annotated[str, AfterValidator(_readable_layout)] | None,
        Field(
            description=(
                "chunks of the pipeline as Megatron-LM writes them, such as `Et*3|(tt|)*29m|L`"
            )
        ),
    ] = None


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
    "zb-h1": "weight gradients delayed to fill the pipeline bubble",
    "dualpipe": "two pipelines in opposite directions, with two copies of every stage",
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
                " sequences, a softmax as on Hopper"
            )
        ),
    ]
    softmax: Annotated[
        float,
        Field(
            gt=0,
            le=10,
            description=(
                "time of the softmax in fused attention, over that of the matrix products, relative"
                " to Hopper"
            ),
        ),
    ] = 1.0
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
    hb_own: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="c: share of its own data that a rank copies as well, in one HB domain",
        ),
    ] = 0.0
    hb_short: Annotated[
        Fraction,
        Field(description="share of `hb` that collectives in one HB domain reach without `long_s`"),
    ] = 1.0
    long_s: Annotated[
        NonNegative, Field(description="what messages start later that reach all of `hb` (s)")
    ] = 0.0
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
