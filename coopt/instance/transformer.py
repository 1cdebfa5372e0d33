"""The architecture of a transformer (dense, mixture of experts, or hybrid with Mamba-2), and
scaling laws.
"""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, model_validator

from coopt.instance.base import MAX_COUNT, Count, Entry, Positive, Whole

MAMBA_SIZES = ("mamba_heads", "mamba_head_dim", "mamba_groups", "mamba_state")
FLOP_PER_PARAMETER = 6.0  # of a token, forward and backward, as the laws count compute


class Transformer(Entry):
    """A decoder-only language model; symbols as in docs/model.md."""

    layers: Annotated[Count, Field(description="L: layers")]
    hidden: Annotated[Count, Field(description="h: width of a layer")]
    heads: Annotated[Count, Field(description="a: attention heads")]
    kv_heads: Annotated[Count, Field(description="q: key and value heads")]
    head_dim: Annotated[Count, Field(description="e: size of a head")]
    ffn: Annotated[Count, Field(description="f: width of the feed-forward layer (of one expert)")]
    gated: Annotated[
        bool, Field(description="gated feed-forward layer (SwiGLU): three matrices instead of two")
    ] = False
    vocab: Annotated[Count, Field(description="V: tokens in the vocabulary")]
    seq: Annotated[Count, Field(description="s: sequence length (tokens)")]
    tied_embeddings: Annotated[
        bool, Field(description="input and output embedding are one matrix")
    ] = True
    causal: Annotated[bool, Field(description="a token attends to earlier ones only")] = True
    experts: Annotated[
        Whole, Field(ge=0, le=MAX_COUNT, description="experts of a layer; 0 for a dense model")
    ] = 0
    top_k: Annotated[
        Whole, Field(ge=0, le=MAX_COUNT, description="experts a token visits; 0 for a dense model")
    ] = 0
    expert_groups: Annotated[
        Whole,
        Field(
            ge=0,
            le=MAX_COUNT,
            description="groups that experts are routed by; 0 where a token may visit any",
        ),
    ] = 0
    top_groups: Annotated[
        Whole, Field(ge=0, le=MAX_COUNT, description="groups whose experts a token may visit")
    ] = 0
    shared_ffn: Annotated[
        Whole,
        Field(ge=0, le=MAX_COUNT, description="width of the experts every token visits, together"),
    ] = 0
    capacity: Annotated[
        float,
        Field(
            gt=0, le=100, description="rows an expert works on over its even share of the tokens"
        ),
    ] = 1.0
    dense_layers: Annotated[
        Whole,
        Field(
            ge=0,
            le=MAX_COUNT,
            description="layers of a mixture of experts that have a plain feed-forward layer",
        ),
    ] = 0
    dense_ffn: Annotated[
        Whole, Field(ge=0, le=MAX_COUNT, description="feed-forward width of those layers")
    ] = 0
    q_rank: Annotated[
        Whole,
        Field(ge=0, le=MAX_COUNT, description="latent attention: rank of the queries; 0 for full"),
    ] = 0
    kv_rank: Annotated[
        Whole,
        Field(
            ge=0,
            le=MAX_COUNT,
            description="latent attention: rank of keys and values; 0 for ordinary attention",
        ),
    ] = 0
    rope_dim: Annotated[
        Whole,
        Field(
            ge=0,
            le=MAX_COUNT,
            description="latent attention: part of head_dim that carries positions",
        ),
    ] = 0
    value_dim: Annotated[
        Whole, Field(ge=0, le=MAX_COUNT, description="size of a value head; 0 where it is head_dim")
    ] = 0
    window: Annotated[
        Whole, Field(ge=0, le=MAX_COUNT, description="tokens a sliding-window layer looks back")
    ] = 0
    window_layers: Annotated[
        Whole, Field(ge=0, le=MAX_COUNT, description="layers with a sliding window")
    ] = 0
    extra_predictions: Annotated[
        Whole,
        Field(
            ge=0, le=16, description="modules that predict further tokens, each a layer and a loss"
        ),
    ] = 0
    expert_latent: Annotated[
        Whole,
        Field(
            ge=0,
            le=MAX_COUNT,
            description=(
                "width that tokens are projected to for their experts; 0 where it is hidden"
            ),
        ),
    ] = 0
    mamba_layers: Annotated[
        Whole,
        Field(
            ge=0,
            le=MAX_COUNT,
            description="layers of a hybrid with a Mamba-2 mixer, which have no attention",
        ),
    ] = 0
    attention_layers: Annotated[
        Whole | None,
        Field(
            ge=0,
            le=MAX_COUNT,
            description="layers of a hybrid with attention; all but those with Mamba-2 if left out",
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
    mamba_heads: Annotated[
        Whole, Field(ge=0, le=MAX_COUNT, description="heads of a Mamba-2 mixer")
    ] = 0
    mamba_head_dim: Annotated[
        Whole, Field(ge=0, le=MAX_COUNT, description="size of such a head")
    ] = 0
    mamba_groups: Annotated[
        Whole, Field(ge=0, le=MAX_COUNT, description="groups of its heads that share B and C")
    ] = 0
    mamba_state: Annotated[Whole, Field(ge=0, le=MAX_COUNT, description="size of its state")] = 0

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        complaints = list(self._complaints())
        if complaints:
            raise ValueError("; ".join(complaints))
        return self

    def _complaints(self) -> Iterator[str]:
        if self.heads % self.kv_heads:
            yield (
                f"kv_heads = {self.kv_heads} does not divide heads = {self.heads}, needs a divisor"
            )
        if (self.experts > 0) != (self.top_k > 0) or self.top_k > self.experts:
            yield (
                f"experts = {self.experts}, top_k = {self.top_k}: needs 1 <= top_k <= experts, or 0"
                " for both"
            )
        if not self.experts and (
            self.shared_ffn or self.dense_layers or self.dense_ffn or self.capacity != 1.0
        ):
            yield (
                "shared_ffn, dense_layers, dense_ffn and capacity describe a mixture of experts,"
                " needs experts > 0"
            )
        if self.expert_groups or self.top_groups:
            yield from self._group_complaints()
        if (self.dense_layers > 0) != (self.dense_ffn > 0) or self.dense_layers >= self.with_ffn + (
            not self.experts
        ):
            yield (
                f"dense_layers = {self.dense_layers}, dense_ffn = {self.dense_ffn}: "
                "needs both or neither, and fewer dense layers than layers with a feed-forward part"
            )
        if self.kv_rank == 0 and (self.q_rank or self.rope_dim):
            yield "q_rank and rope_dim describe latent attention, needs kv_rank > 0"
        if self.kv_rank and self.rope_dim >= self.head_dim:
            yield f"rope_dim = {self.rope_dim}: needs less than head_dim = {self.head_dim}"
        if self.window_layers > self.with_attention or (self.window > 0) != (
            self.window_layers > 0
        ):
            yield (
                f"window = {self.window}, window_layers = {self.window_layers}: "
                "needs both or neither, and no more windowed layers than layers with attention"
            )
        if self.expert_latent and not self.experts:
            yield (
                f"expert_latent = {self.expert_latent}: describes a mixture of experts, needs"
                " experts > 0"
            )
        yield from self._hybrid_complaints()

    def _hybrid_complaints(self) -> Iterator[str]:
        """Yield complaints about layers with different parts."""
        sizes = {name: getattr(self, name) for name in MAMBA_SIZES}
        if not self.mamba_layers:
            names = [name for name, size in sizes.items() if size]
            names += [
                name
                for name in ("attention_layers", "ffn_layers")
                if getattr(self, name) is not None
            ]
            if names:
                yield f"{', '.join(names)}: describe a hybrid, needs mamba_layers > 0"
            return
        missing_names = [name for name, size in sizes.items() if not size]
        if missing_names:
            yield f"mamba_layers = {self.mamba_layers}: needs {', '.join(missing_names)} as well"
        elif self.mamba_heads % self.mamba_groups:
            yield (
                f"mamba_groups = {self.mamba_groups}: needs a divisor of mamba_heads ="
                f" {self.mamba_heads}"
            )
        mixers = self.mamba_layers + self.with_attention
        if max(mixers, self.with_ffn) > self.layers or mixers + self.with_ffn < self.layers:
            yield (
                f"layers = {self.layers}: needs at least mamba_layers + attention_layers = {mixers}"
                f" and at least ffn_layers = {self.with_ffn}, and no more than all three together"
            )

    def _group_complaints(self) -> Iterator[str]:
        """Yield complaints about groups of experts."""
        groups, top_groups = self.expert_groups, self.top_groups
        if not 1 <= top_groups <= groups or self.experts % groups:
            yield (
                f"expert_groups = {groups}, top_groups = {top_groups}: needs groups that divide"
                f" experts = {self.experts}, and 1 <= top_groups <= expert_groups"
            )
        elif self.top_k > self.experts // groups * top_groups:
            yield (
                f"top_k = {self.top_k}: needs at most the {self.experts // groups * top_groups}"
                " experts of top_groups"
            )

    @property
    def parameters(self) -> int:
        """Parameters of a dense model with standard attention, without norms and biases."""
        assert not self.experts, "asked for of dense models"
        assert not self.kv_rank, "asked for of ordinary attention"
        assert not self.mamba_layers, "asked for of plain transformers"
        attention = self.heads * self.head_dim + (self.kv_heads + self.heads) * self.value_size
        attention += self.kv_heads * self.head_dim
        layer = self.hidden * (attention + (3 if self.gated else 2) * self.ffn)
        return self.layers * layer + self.vocab * self.hidden * (1 if self.tied_embeddings else 2)

    @property
    def prediction(self) -> Self:
        """The model of a layer that predicts a further token.

        It is a mean layer; in a hybrid model it has attention and a feed-forward part, with experts
        if the model has any.
        """
        if not self.mamba_layers:
            return self
        neither = {
            "mamba_layers": 0,
            "attention_layers": None,
            "ffn_layers": None,
            "dense_layers": 0,
        }
        return self.model_copy(update=neither | {"layers": 1, "window": 0, "window_layers": 0})

    @property
    def value_size(self) -> int:
        """Size of a value head."""
        return self.value_dim or self.head_dim

    @property
    def with_attention(self) -> int:
        """Number of layers with attention."""
        return (
            self.layers - self.mamba_layers
            if self.attention_layers is None
            else self.attention_layers
        )

    @property
    def with_ffn(self) -> int:
        """Number of layers with a feed-forward part."""
        return self.layers if self.ffn_layers is None else self.ffn_layers


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
                f"loss = {loss:g}: by {self.name} {parameters:.4g} parameters never go below"
                f" {self.e + self.a / parameters**self.alpha:.4g}, needs a higher loss or a larger"
                " model"
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
