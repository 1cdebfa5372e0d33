"""Models from `config.json` of Hugging Face transformers, by their `model_type`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from coopt.instance.models.keys import Keys
from coopt.instance.texts import InstanceError, alternatives, both

Values = dict[str, Any]
NESTED = ("text_config", "llm_config", "language_config")


class ModelFamily(NamedTuple):
    """What configurations of a `model_type` leave to its code."""

    tied: bool = False
    gated: bool = True
    gates_output: bool = False
    linear: str = "gated-deltanet"
    """mixer of layers that are called linear"""
    shares_expert: bool = False
    """each layer with experts has one more that every token visits"""
    defaults: Mapping[str, Any] = {}
    why_not: str = ""
    """what cannot be imported"""


PLAIN = """
    llama mistral ministral ministral3 mixtral qwen2 qwen3 qwen3_moe qwen2_moe qwen2_vl
    qwen2_vl_text qwen2_5_vl qwen2_5_vl_text phi3 qwen3_vl qwen3_vl_text qwen3_vl_moe
    qwen3_vl_moe_text phimoe olmo2 olmo3 olmoe internlm3 internlm2 gpt_oss deepseek deepseek_v2
    deepseek_v3 deepseek_v32 deepseek_v4 kimi_k2 kimi_linear kimi_k3 glm glm4 glm4_moe
    glm4_moe_lite glm_moe_dsa glm4v_text glm4v_moe_text minimax_m2 minimax_m3 minimax_m3_text
    bailing_moe bailing_moe_v2 exaone4 exaone_moe dots1 seed_oss step3_text step3p5 mimo
    mimo_v2_flash granite granitemoe granitemoeshared hunyuan_v1_dense hunyuan_v1_moe hunyuan
    apertus1p5_text aria_text axk1 cohere2_moe cwm exaone flex_olmo granite_swa granitemoe_swa
    helium hy_v3 hyperclovax iquestcoder jais2 lara_mini mellum minicpm3 minimax_m3_vl_text
    nanochat olmo olmo_hybrid sarvam_mla sarvam_moe solar_open stablelm youtu
"""
"""Those that leave nothing to their code but what every other has."""
GEMMA3 = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256}
GEMMA3 |= {"vocab_size": 262208, "sliding_window": 4096, "sliding_window_pattern": 6}
NO_MAMBA_1 = "Mamba-2 (Mamba-1 is not supported)"
NO_PARALLEL = "a model with one mixer in each layer (attention beside Mamba is not supported)"
FAMILIES: dict[str, ModelFamily] = {
    **dict.fromkeys(PLAIN.split(), ModelFamily()),
    **dict.fromkeys(
        ("ernie4_5", "ernie4_5_moe", "smollm3", "cohere", "cohere2", "vaultgemma"),
        ModelFamily(tied=True),
    ),
    **dict.fromkeys(
        (
            *("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"),
            *("afmoe", "hy_v4"),
        ),
        ModelFamily(gates_output=True),
    ),
    "gemma": ModelFamily(tied=True, defaults={"head_dim": 256}),
    "gemma2": ModelFamily(tied=True, defaults={"head_dim": 256, "sliding_window_pattern": 2}),
    **dict.fromkeys(("gemma3", "gemma3_text"), ModelFamily(tied=True, defaults=GEMMA3)),
    **dict.fromkeys(("llama4", "llama4_text"), ModelFamily(shares_expert=True)),
    **dict.fromkeys(
        ("minimax", "minimax_m1", "minimax_text_01", "bailing_moe_linear", "bailing_hybrid"),
        ModelFamily(linear="lightning"),
    ),
    **dict.fromkeys(("granitemoehybrid", "bamba"), ModelFamily(tied=True, linear="mamba-2")),
    **dict.fromkeys(
        ("nemotron", "arcee", "apertus", "starcoder2", "phi", "gpt_neox"), ModelFamily(gated=False)
    ),
    "nemotron_h": ModelFamily(gated=False, linear="mamba-2"),
    "jamba": ModelFamily(why_not=NO_MAMBA_1),
    "mamba": ModelFamily(why_not=NO_MAMBA_1),
    "falcon_mamba": ModelFamily(why_not=NO_MAMBA_1),
    "falcon_h1": ModelFamily(why_not=NO_PARALLEL),
    "hymba": ModelFamily(why_not=NO_PARALLEL),
    "longcat_flash": ModelFamily(
        why_not="a model with one mixer in each layer and without zero-computation experts"
    ),
    **dict.fromkeys(
        ("ernie4_5_vl_moe", "ernie4_5_moe_vl"),
        ModelFamily(why_not="a model whose experts in a layer are all of the same size"),
    ),
    **dict.fromkeys(
        ("gemma3n", "gemma3n_text"),
        ModelFamily(
            why_not="a model with one embedding per token and its own keys and values in each layer"
        ),
    ),
    "lfm2": ModelFamily(
        why_not="a model of attention or known linear mixers (convolutions are not supported)"
    ),
    "nemotron-nas": ModelFamily(why_not="a model with the same width in all layers"),
}
SEQ = 4096
"""Tokens of a sequence where a file says none."""
COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
WIDTHS = ("hidden_size", "n_embd", "d_model", "dim")
HEADS = ("num_attention_heads", "n_head", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_attention_groups", "n_kv_heads", "multi_query_group_num")
OUTPUT_GATES = ("attn_output_gate", "attention_output_gate", "mla_use_output_gate")
EXPERTS = (
    *("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
    "num_moe_experts",
)
CHOSEN_EXPERTS = (
    *("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk"),
    *("moe_top_k", "moe_k", "top_k_experts"),
)
FIRST_MIXED = (
    *("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers"),
    "moe_layer_num_skipped",
)
TOWER_HEADS = ("num_attention_heads", "num_heads", "heads", "vt_num_attention_heads")
TOWER_FFN = ("intermediate_size", "vt_intermediate_size", "mlp_hidden_size")
MERGE_SIZES = ("spatial_merge_size", "merge_size")
ATTENTION, SPARSE, WINDOWED = "attention", "sparse", "windowed"
LINEAR, MAMBA, NONE = "linear", "mamba-2", "none"
LAYER_TYPES = {
    **dict.fromkeys(
        ("full_attention", "attention", "global", "full", "hybrid_attention"), ATTENTION
    ),
    **dict.fromkeys(("sliding_attention", "chunked_attention", "local"), WINDOWED),
    **dict.fromkeys(
        (
            *("deepseek_sparse_attention", "sparse_attention", "indexed_attention"),
            "minimax_m3_sparse",
        ),
        SPARSE,
    ),
    "linear_attention": LINEAR,
    "mamba": MAMBA,
    "mamba2": MAMBA,
}
PATTERN = {"M": (MAMBA, ""), "*": (ATTENTION, ""), "-": (NONE, "dense"), "E": (NONE, "experts")}
BLOCKS = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}
BLOCKS |= {"linear_attention": "M", "full_attention": "*"}


def model_of(config: Mapping[str, Any], place: str) -> tuple[Values, list[str]]:
    """Return the keys of a model, and notes on what they leave out.

    Raises
    ------
    InstanceError
        If something is not known, missing or contradictory.
    """
    outer = Keys(config, place)
    text = outer.table(*NESTED) or outer
    family = _family(outer, text)
    return Reader(outer, text.over(family.defaults), family).values()


def _family(outer: Keys, text: Keys) -> ModelFamily:
    """Return the family of the language model inside."""
    own, whole = text.value("model_type", default=None), outer.value("model_type", default=None)
    if not isinstance(whole or own, str):
        raise InstanceError(f"{outer.place}: model_type is missing, needs a supported model type")
    known = [name for name in (own, whole) if isinstance(name, str) and name in FAMILIES]
    family = FAMILIES[known[0]] if known else None
    if family is None:
        place = text if own else outer
        near = sorted(FAMILIES, key=lambda known: -_alike(known, str(own or whole)))[:3]
        raise place.refuse("model_type", f"a supported model type, such as {alternatives(near)}")
    if family.why_not:
        raise outer.refuse("model_type", family.why_not)
    return family


def _alike(a: str, b: str) -> int:
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


class Reader:
    """A configuration on its way to the keys of a model."""

    def __init__(self, outer: Keys, text: Keys, family: ModelFamily) -> None:
        self._outer, self._text, self._family = outer, text, family
        self._kind = str(text.value("model_type", default=""))
        blocks = text.value("layers_block_type", default=[])
        self._layers = text.number(*COUNTS, default=len(blocks))
        self._hidden = text.number(*WIDTHS)
        self._notes = list[str]()
        self._own_ffn: list[str] | None = None
        """what a pattern says that layers have, each a mixer or a feed-forward part"""

    def values(self) -> tuple[Values, list[str]]:
        """Return the keys of the model, and notes."""
        text = self._text
        for value, names in ((self._layers, COUNTS), (self._hidden, WIDTHS)):
            if not value:
                raise text.refuse(text.has(*names) or names[0], "a number above 0")
        values: Values = {"layers": self._layers, "hidden": self._hidden}
        values |= self._mixers()
        values |= self._feed_forward() | {
            "vocab": text.number("vocab_size", "padded_vocab_size"),
            "seq": text.number("seq_length", "train_seq_len", default=0) or self._default_seq(),
            "tied_embeddings": self._tied(),
            "streams": text.number("hc_mult", default=1),
            "extra_predictions": self._predictions(),
            "encoders": self._encoders(),
        }
        has_residual_attention = text.value("attn_res_block_size", default=None) is not None
        for name in MAMBA_KEYS if not values.get("mamba_layers") else ():
            text.value(name, default=None)
        unknown = list(text.left())
        if unknown:
            kind = self._kind or self._outer.value("model_type", default="")
            raise text.refuse(
                unknown[0],
                f"to be a key that coopt knows for model_type = {kind!r}, because an unknown key"
                " may change the shape of the model",
            )
        if has_residual_attention:
            self._notes.append(
                "predicted times leave out the attention to residuals of earlier layers"
            )
        return {key: value for key, value in values.items() if value not in (None, [])}, self._notes

    def _default_seq(self) -> int:
        names = ("max_position_embeddings", "max_seq_len", "max_sequence_length")
        seq = min(self._text.number(*names, default=SEQ), SEQ)
        self._notes.append(
            f"seq = {seq:,} is assumed, as the file gives no sequence length in training (--seq"
            " sets it)"
        )
        return seq

    def _tied(self) -> bool:
        inner = self._text.value("tie_word_embeddings", default=None)
        outer = self._outer.value("tie_word_embeddings", default=None)
        said = [value for value in (inner, outer) if isinstance(value, bool)]
        return said[0] if said else self._family.tied

    def _predictions(self) -> int:
        text = self._text
        modules = text.number("num_mtp_modules", default=0)
        used = modules if text.flag("use_mtp", default=modules > 0) else 0
        names = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers")
        return text.number(*names, default=used)

    def _attention(self, text: Keys) -> Values:
        """Return the keys of attention that a table holds."""
        heads = text.number(*HEADS, least=1)
        latent = text.number("kv_lora_rank", default=0)
        rope, nope = (
            text.number("qk_rope_head_dim", default=0),
            text.number("qk_nope_head_dim", default=0),
        )
        size = text.number(
            "head_dim", "attention_head_dim", "kv_channels", "qk_head_dim", default=0
        )
        kv_heads = text.number(*KV_HEADS, default=heads)
        values: Values = {"heads": heads, "kv_heads": kv_heads}
        if not latent and (not kv_heads or heads % kv_heads):
            divisor = f"a divisor of {text.has(*HEADS)} = {heads}"
            raise text.refuse(text.has(*KV_HEADS) or KV_HEADS[0], divisor)
        if latent:
            values |= {
                "kv_heads": heads,
                "head_dim": nope + rope,
                "kv_rank": latent,
                "rope_dim": rope,
            }
        else:
            if not size and self._hidden % heads:
                divisor = f"a divisor of {self._text.has(*WIDTHS)} = {self._hidden}"
                raise text.refuse(text.has(*HEADS) or HEADS[0], divisor)
            values["head_dim"] = size or self._hidden // heads
        value_dim = text.number("v_head_dim", default=0)
        return values | {
            "value_dim": 0 if value_dim == values["head_dim"] else value_dim,
            "q_rank": text.number("q_lora_rank", "share_q_dim", default=0),
            "output_gate": text.flag(*OUTPUT_GATES, default=self._family.gates_output),
        }

    def _mixers(self) -> Values:
        """Return the keys of mixers, by the layers that have each."""
        if self._kind == "deepseek_v4":
            return self._compressed()
        own = self._attention(self._text)
        if self._text.flag("use_cla"):
            raise self._text.refuse("use_cla", "false (every layer needs its own keys and values)")
        layers = Counter(self._layer_kinds())
        mixers, values = list[Values](), dict(own)
        full, windowed = layers[ATTENTION] + layers[SPARSE], layers[WINDOWED]
        if windowed:
            window = self._window()
            other = self._windowed_attention(own)
            if other == own:
                values |= {"window": window, "window_layers": windowed}
            else:
                mixers.append(
                    {"kind": "attention", "layers": windowed} | other | {"window": window}
                )
        chosen, sparse = self._sparse(layers[SPARSE] or full)
        if chosen and sparse:
            if sparse < full:
                mixers.append({"kind": "attention", "layers": full - sparse} | own)
            values |= chosen
        if layers[LINEAR]:
            mixers.append({"layers": layers[LINEAR]} | self._scan())
        values |= {"mixers": [_filled_table(mixer) for mixer in mixers]}
        if layers[MAMBA]:
            values |= {"mamba_layers": layers[MAMBA]} | self._mamba()
        if layers[NONE]:
            values |= {"attention_layers": full + windowed}
        return values

    def _layer_kinds(self) -> list[str]:
        """Return the kind of mixer of every layer."""
        text, count = self._text, self._layers
        if pattern := self._pattern():
            return pattern
        blocks = text.entries("layers_block_type", count) or text.entries("layer_types", count)
        if blocks:
            unknown = next((kind for kind in blocks if kind not in LAYER_TYPES), None)
            if unknown is not None:
                name = text.has("layers_block_type", "layer_types") or ""
                raise InstanceError(
                    f"{text.place}: {name} has {unknown!r}, needs"
                    f" {alternatives(map(repr, LAYER_TYPES))}"
                )
            kinds = [LAYER_TYPES[kind] for kind in blocks]
            for name in RULES:  # which a list of layers makes needless
                text.value(name, default=None)
            if self._family.linear == MAMBA:  # so named since transformers 5
                kinds = [MAMBA if kind == LINEAR else kind for kind in kinds]
        else:
            kinds = self._kinds_by_rule()
        if WINDOWED in kinds and not self._window():
            return [ATTENTION if kind == WINDOWED else kind for kind in kinds]
        return kinds

    def _pattern(self) -> list[str] | None:
        """Return the mixers of a pattern of letters, as Nemotron-H has it."""
        text = self._text
        blocks = (
            text.value("layers_block_type", default=None) if self._kind == "nemotron_h" else None
        )
        raw = text.value("hybrid_override_pattern", "hybrid_layer_pattern", default=blocks)
        if not isinstance(raw, str) and raw is not blocks:
            return None
        if raw is None:
            return None
        letters = [BLOCKS.get(block, block) for block in raw if block != "|"]
        unknown = next((letter for letter in letters if letter not in PATTERN), None)
        if unknown is not None or len(letters) != self._layers:
            name = text.has("hybrid_override_pattern", "hybrid_layer_pattern", "layers_block_type")
            known = both(PATTERN if isinstance(raw, str) else BLOCKS)
            raise text.refuse(str(name), f"one of {known} for each of {self._layers} layers")
        self._own_ffn = [PATTERN[letter][1] for letter in letters if PATTERN[letter][1]]
        return [PATTERN[letter][0] for letter in letters]

    def _kinds_by_rule(self) -> list[str]:
        """Return the kinds that intervals, lists of layers and switches say."""
        text, layers = self._text, range(self._layers)
        if listed := text.entries("attn_type_list", self._layers):
            return [ATTENTION if kind else LINEAR for kind in listed]
        if listed := text.entries("hybrid_layer_pattern", self._layers):
            return [WINDOWED if kind else ATTENTION for kind in listed]
        if linear := text.table("linear_attn_config"):
            full = linear.numbers("full_attn_layers")
            if len(full) + len(linear.numbers("kda_layers")) != self._layers:
                raise linear.refuse(
                    "full_attn_layers",
                    f"all {self._layers} layers in either full_attn_layers or kda_layers",
                )
            return [ATTENTION if layer + 1 in full else LINEAR for layer in layers]
        if every := text.number("full_attention_interval", default=0):
            return [LINEAR if (layer + 1) % every else ATTENTION for layer in layers]
        every = text.number("layer_group_size", default=0)
        if every > 1:
            whole = self._layers // every * every
            is_full = [(layer + 1) % every == 0 or layer >= whole for layer in layers]
            return [ATTENTION if full else LINEAR for full in is_full]
        some = text.numbers("attn_layer_indices")
        if some or self._kind == "bamba":
            return [ATTENTION if layer in some else MAMBA for layer in layers]
        return self._windowed_by_rule()

    def _windowed_by_rule(self) -> list[str]:
        text, layers = self._text, range(self._layers)
        names = ("sliding_window_pattern", "_sliding_window_pattern", "layer_switch")
        pattern = text.value(*names, default=None)
        rope = text.value("no_rope_layers", default=None)
        every = text.number("global_attn_every_n_layers", "no_rope_layer_interval", default=4)
        if text.has("attention_chunk_size") and self._kind.startswith("llama4"):
            is_local = (
                rope if isinstance(rope, list) and rope else [(i + 1) % every for i in layers]
            )
            return [WINDOWED if local else ATTENTION for local in is_local[: self._layers]]
        if isinstance(pattern, str) and pattern:
            return [WINDOWED if pattern[i % len(pattern)] == "L" else ATTENTION for i in layers]
        if isinstance(pattern, int) and pattern > 1:
            return [WINDOWED if (i + 1) % pattern else ATTENTION for i in layers]
        if self._window() and self._kind in ("mistral", "mixtral", "phi3", "qwen2", "starcoder2"):
            return [WINDOWED] * self._layers
        return [ATTENTION] * self._layers

    def _window(self) -> int:
        """Return the tokens of a window; 0 where it is as long as sequences."""
        text = self._text
        names = ["sliding_window", "sliding_window_size"]
        if self._kind.startswith("llama4"):
            names.insert(0, "attention_chunk_size")
        window = text.number(*names, default=0)
        if not text.flag("use_sliding_window", default=True):
            return 0
        whole = text.number("max_position_embeddings", default=window + 1)
        return window if window < whole else 0

    def _windowed_attention(self, own: Values) -> Values:
        """Return the attention of layers with a window, which may have a shape of its own."""
        text = self._text
        if other := text.table("attention_other_setting"):
            return own | {key: value for key, value in self._attention(other).items() if value}
        swa = {
            "heads": "swa_num_attention_heads",
            "kv_heads": "swa_num_key_value_heads",
            "head_dim": "swa_head_dim",
            "value_dim": "swa_v_head_dim",
        }
        values = own | {ours: text.number(name, default=own[ours]) for ours, name in swa.items()}
        return (
            values | {"value_dim": own["value_dim"]}
            if values["value_dim"] == values["head_dim"]
            else values
        )

    def _sparse(self, layers: int) -> tuple[Values, int]:
        """Return the indexer of attention that chooses keys or blocks of them, and how many layers
        have it: `layers`, if no list says.
        """
        text, sparse = self._text, self._text.table("sparse_attention_config")
        text.value("indexer_types", "index_topk_freq", "index_topk_pattern", default=None)
        if sparse and sparse.flag("use_sparse_attention", default=True):
            listed = sparse.entries("sparse_attention_freq", self._layers)
            tokens = sparse.number("sparse_topk_blocks") * sparse.number("sparse_block_size")
            heads, size = sparse.number("sparse_num_index_heads"), sparse.number("sparse_index_dim")
            layers = layers if listed is None else sum(listed)
        elif text.has("index_topk", "index_topk_blocks"):
            blocks = text.number("index_topk_blocks", default=0)
            tokens = blocks * text.number("index_block_size", default=0)
            tokens = tokens or text.number("index_topk")
            heads, size = text.number("index_n_heads"), text.number("index_head_dim")
        else:
            return {}, 0
        return {"index_heads": heads, "index_dim": size, "index_tokens": tokens}, layers

    def _scan(self) -> Values:
        """Return the linear mixer of a family."""
        text = self._text
        if config := text.table("linear_attn_config"):  # Kimi
            heads, size = config.number("num_heads"), config.number("head_dim")
            full = config.flag("use_full_rank_gate")
            values = {"kind": "kda", "heads": heads, "head_dim": size, "groups": heads}
            return values | {"state": size, "gate_rank": 0 if full else size, "decay_rank": size}
        if text.has("linear_head_dim"):  # Kimi since transformers 5
            heads, size = text.number("linear_num_heads"), text.number("linear_head_dim")
            rank = 0 if self._kind == "bailing_hybrid" else size
            values = {"kind": "kda", "heads": heads, "head_dim": size, "groups": heads}
            return values | {"state": size, "gate_rank": rank, "decay_rank": rank}
        text.value("block_size", default=None)  # of the kernel
        if text.has("linear_num_value_heads"):
            return {
                "kind": self._family.linear,
                "heads": text.number("linear_num_value_heads"),
                "head_dim": text.number("linear_value_head_dim"),
                "groups": text.number("linear_num_key_heads"),
                "state": text.number("linear_key_head_dim"),
            }
        heads = text.number("num_attention_heads")
        size = text.number("head_dim", default=self._hidden // heads)
        values = {"heads": heads, "head_dim": size, "groups": heads, "state": size}
        if "V3" in str(self._outer.value("architectures", default="")):
            rank = 0 if text.flag("no_kda_lora") else size
            return values | {"kind": "kda", "gate_rank": rank, "decay_rank": rank}
        return values | {"kind": self._family.linear}

    def _mamba(self) -> Values:
        text = self._text
        heads = text.number("mamba_num_heads", "mamba_n_heads")
        size = text.number("mamba_head_dim", "mamba_d_head", default=0)
        size = size or text.number("mamba_expand", "expand", default=2) * self._hidden // heads
        text.value("expand", "mamba_expand", default=None)
        return {
            "mamba_heads": heads,
            "mamba_head_dim": size,
            "mamba_groups": text.number("n_groups", "mamba_n_groups"),
            "mamba_state": text.number("ssm_state_size", "mamba_d_state"),
        }

    def _compressed(self) -> Values:
        """Return the attention of DeepSeek-V4: windows alone, or with compressed keys."""
        text, count = self._text, self._layers
        ratios = text.entries("compress_ratios", count)
        if ratios is None:
            rates = text.value("compress_rates")
            kinds = text.entries("layer_types", count) or []
            unknown = next((k for k in kinds if k != "sliding_attention" and k not in rates), None)
            if unknown is not None or not kinds:
                rate = f"a rate in compress_rates for {unknown}"
                raise text.refuse("layer_types", rate if kinds else "an entry for each layer")
            ratios = [rates.get(kind, 0) for kind in kinds]
        own = self._attention(text) | {
            "shared_kv": True,
            "window": text.number("sliding_window"),
            "output_rank": text.number("o_lora_rank"),
            "output_groups": text.number("o_groups"),
        }
        index = {
            "index_heads": text.number("index_n_heads"),
            "index_dim": text.number("index_head_dim"),
            "index_tokens": text.number("index_topk"),
        }
        text.value("num_hash_layers", default=None)
        mixers = [
            {"kind": "attention", "layers": layers, "compression": max(ratio, 1)}
            | _filled_table(own)
            | (index if 1 < ratio < 16 else {})
            for ratio, layers in Counter(ratios).items()
        ]
        # the layers of the first kind are those that the model's own keys describe
        first = mixers.pop(0)
        layers, _ = first.pop("layers"), first.pop("kind")
        return first | {"window_layers": layers, "mixers": mixers}

    def _feed_forward(self) -> Values:
        """Return the keys of feed-forward parts."""
        text = self._text
        experts = text.number(*EXPERTS, default=0)
        dense = text.number("dense_intermediate_size", "intermediate_size_mlp", default=0)
        wide_names = ("intermediate_size", "ffn_hidden_size", "n_inner", "hidden_dim")
        wide = text.number(*wide_names, default=0)
        values: Values = {
            "gated": self._gated(),
            **({} if self._own_ffn is None else {"ffn_layers": len(self._own_ffn)}),
        }
        shared = text.number("shared_intermediate_size", default=0)
        if not experts:
            is_shared = self._kind == "granitemoehybrid"
            width = shared if is_shared else dense or wide
            if not width:
                names = ("shared_intermediate_size",) if is_shared else wide_names
                raise text.refuse(text.has(*names) or names[0], "a width of at least 1")
            return values | {"ffn": width}
        ffn = text.number("moe_intermediate_size", "moe_ffn_hidden_size", default=wide)
        plain = self._plain_layers()
        values |= {
            "ffn": ffn,
            "experts": experts,
            "top_k": self._chosen(experts),
            "shared_ffn": self._shared(ffn, shared),
            "expert_latent": text.number("routed_expert_hidden_size", "moe_latent_size", default=0),
        }
        groups, chosen = (
            text.number("n_group", "num_expert_group", default=0),
            text.number("topk_group", default=0),
        )
        if groups > 1:
            values |= {"expert_groups": groups, "top_groups": chosen}
        if plain:
            values |= {"dense_layers": plain, "dense_ffn": dense or wide}
        return values

    def _chosen(self, experts: int) -> int:
        """Return how many experts a token visits."""
        text = self._text
        chosen = text.number(*CHOSEN_EXPERTS)
        if not 1 <= chosen <= experts:
            most = f"{text.has(*EXPERTS)} = {experts}"
            raise text.refuse(text.has(*CHOSEN_EXPERTS) or CHOSEN_EXPERTS[0], f"1 to {most}")
        return chosen

    def _gated(self) -> bool:
        act = self._text.value("mlp_hidden_act", "hidden_act", "hidden_activation", default="silu")
        return self._family.gated and act not in ("relu2", "xielu")

    def _shared(self, ffn: int, shared: int) -> int:
        """Return the width of all experts together that every token visits."""
        text = self._text
        count_names = ("n_shared_experts", "num_shared_experts", "num_shared_expert")
        count = text.number(*count_names, "moe_num_shared_experts", default=0)
        each_name = "moe_shared_expert_intermediate_size"
        each = text.number(each_name, default=ffn)
        whole = text.number("shared_expert_intermediate_size", "share_expert_dim", default=0)
        if whole:
            return whole
        if shared:
            return shared * max(count, 1)
        if text.has(each_name) and not text.has(*count_names):
            count = 1
        if self._family.shares_expert or text.flag("use_mixed_mlp_moe"):
            count = max(count, 1)
        return count * each

    def _plain_layers(self) -> int:
        """Return how many layers of a mixture of experts have a plain feed-forward part."""
        text, count = self._text, self._layers
        if self._own_ffn is not None:
            return self._own_ffn.count("dense")
        if listed := text.entries("is_moe_layer", count):
            return sum(not is_mixed for is_mixed in listed)
        if kinds := text.entries("mlp_layer_types", count):
            return sum(kind == "dense" for kind in kinds)
        frequency = text.value("moe_layer_freq", default=1) or 1
        if isinstance(frequency, list):
            return sum(not is_mixed for is_mixed in (text.entries("moe_layer_freq", count) or []))
        listed = text.numbers("moe_layers", "moe_layers_enum")
        step = text.number("interleave_moe_layer_step", default=0)
        if listed:
            return count - sum(layer < count for layer in listed)
        if step:
            return count - count // step
        skipped = text.numbers("mlp_only_layers")
        first = text.number(*FIRST_MIXED, default=0)
        last = text.number("moe_layer_end_index", default=count - 1) + 1
        every = text.number("decoder_sparse_step", "moe_layer_interval", default=frequency)
        mixed = [
            layer
            for layer in range(first, min(last, count))
            if layer not in skipped and (layer + 1) % max(every, 1) == 0
        ]
        return count - len(mixed)

    def _encoders(self) -> list[Values]:
        """Return the vision tower, if there is one."""
        vision = self._outer.table("vision_config")
        for name in ("audio_config", "thinker_config", "audio_encoder_config"):
            if self._outer.has(name):
                raise self._outer.refuse(
                    name, "a model of text and images (audio is not supported)"
                )
        if vision is None or not vision.has(*LAYERS):
            return []
        layers = vision.number(*LAYERS)
        hidden = vision.number("hidden_size", "embed_dim", "width", "vt_hidden_size")
        if vision.has("embed_dim") and vision.has("hidden_size"):  # Qwen2-VL
            hidden = vision.number("embed_dim")
        heads = vision.number(*TOWER_HEADS, least=1)
        if hidden % heads:
            key = vision.has("embed_dim", "hidden_size", "width", "vt_hidden_size")
            raise vision.refuse(str(key), f"a multiple of its number of heads, {heads}")
        ratio = vision.value("mlp_ratio", default=4)
        outer_merge = self._outer.number(*MERGE_SIZES, default=0)
        merge = vision.number(*MERGE_SIZES, default=outer_merge) ** 2
        patch = vision.number("patch_size", "vt_patch_size", default=14, least=1)
        side = vision.value("image_size", "init_pos_emb_height", default=0)
        if isinstance(side, list) and side and side.count(side[0]) == len(side):
            side = side[0]
        side = side if isinstance(side, int) else 0
        tokens = (side // patch) ** 2 if side > patch else 1024
        if side <= patch:
            self._notes.append(
                f"{vision.place} gives no size of square images of several patches: 1,024 patches"
                " per image and one image per sequence are assumed"
            )
        merge = merge or (4 if self._kind.startswith(MERGING) else 1)
        is_pixtral = vision.value("model_type", default="") == "pixtral"
        gated = is_pixtral or vision.value("hidden_act", default="") == "silu"
        wide = int(ratio * hidden) if isinstance(ratio, int | float) else 4 * hidden
        return [
            {
                "layers": layers,
                "hidden": hidden,
                "heads": heads,
                "head_dim": hidden // heads,
                "ffn": vision.number(*TOWER_FFN, default=wide),
                "gated": gated,
                "tokens": max(tokens // merge * merge, merge),
                "merge": merge,
                "projector": self._projector(hidden * merge),
                "projectors": 1 + len(vision.numbers("deepstack_visual_indexes")),
            }
        ]

    def _projector(self, merged: int) -> int:
        """Return the width inside the projector of a tower; 0 where it is one matrix."""
        if self._kind.startswith("gemma"):  # which pools patches behind it
            return 0
        return merged if self._kind.startswith(("qwen", "kimi")) else self._hidden


RULES = (
    *("sliding_window_pattern", "_sliding_window_pattern", "layer_switch", "layer_group_size"),
    *("global_attn_every_n_layers", "no_rope_layer_interval", "full_attention_interval"),
    *("no_rope_layers", "attention_chunk_size", "attn_layer_indices", "sliding_window"),
)
"""Keys that say which layers have which attention."""
MAMBA_KEYS = (
    *("mamba_num_heads", "mamba_n_heads", "mamba_head_dim", "mamba_d_head", "mamba_expand"),
    *("n_groups", "mamba_n_groups", "ssm_state_size", "mamba_d_state", "expand"),
)
"""What files say of Mamba-2 though no layer has it."""
MERGING = ("llama4", "kimi", "minimax", "step3")
"""Those that make one token of four patches and do not say so."""
LAYERS = ("num_hidden_layers", "depth", "layers", "vt_num_hidden_layers", "num_layers")


def _filled_table(values: Values) -> Values:
    """Return a table without what is as if left out."""
    return {key: value for key, value in values.items() if value not in (0, False, None)}
