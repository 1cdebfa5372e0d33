"""Models from arguments of Megatron-LM, and from configurations of Megatron Bridge and NeMo."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from coopt.instance.models.huggingface import Values, model_of
from coopt.instance.models.keys import Keys
from coopt.instance.texts import InstanceError

SHAPE_NAMES = {
    "num_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "num_attention_heads": "num_attention_heads",
    "num_query_groups": "num_key_value_heads",
    "kv_channels": "head_dim",
    "ffn_hidden_size": "intermediate_size",
    "vocab_size": "vocab_size",
    "padded_vocab_size": "vocab_size",
    "seq_length": "seq_length",
    "encoder_seq_length": "seq_length",
    "max_position_embeddings": "max_position_embeddings",
    "num_experts": "num_experts",
    "num_moe_experts": "num_experts",
    "moe_router_topk": "num_experts_per_tok",
    "moe_router_num_groups": "n_group",
    "moe_router_group_topk": "topk_group",
    "moe_ffn_hidden_size": "moe_intermediate_size",
    "moe_shared_expert_intermediate_size": "shared_expert_intermediate_size",
    "moe_latent_size": "moe_latent_size",
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_head_dim": "qk_nope_head_dim",
    "qk_pos_emb_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
    "mtp_num_layers": "num_nextn_predict_layers",
    "attention_output_gate": "attn_output_gate",
    "dsa_indexer_n_heads": "index_n_heads",
    "dsa_indexer_head_dim": "index_head_dim",
    "dsa_indexer_topk": "index_topk",
    "linear_num_key_heads": "linear_num_key_heads",
    "linear_num_value_heads": "linear_num_value_heads",
    "linear_key_head_dim": "linear_key_head_dim",
    "linear_value_head_dim": "linear_value_head_dim",
    "hybrid_override_pattern": "hybrid_override_pattern",
    "hybrid_layer_pattern": "hybrid_override_pattern",
    "mamba_num_heads": "mamba_num_heads",
    "mamba_head_dim": "mamba_head_dim",
    "mamba_num_groups": "n_groups",
    "mamba_state_dim": "ssm_state_size",
    "hybrid_attention_pattern": "hybrid_layer_pattern",
    "full_attn_num_query_groups": "num_key_value_heads",
    "swa_num_query_groups": "swa_num_key_value_heads",
}
"""Names of Megatron-LM, and what Hugging Face calls the same."""
LATENT = ("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim")
LATENT_DEFAULTS = {"kv_lora_rank": 32, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64}
LATENT_DEFAULTS |= {"v_head_dim": 128}
MAMBA_DEFAULTS = {"n_groups": 8, "ssm_state_size": 128, "mamba_head_dim": 64}
FREQUENCY = re.compile(r"[\[\]()\d*+, ]+")
PRINTED = re.compile(r"^\s*(?:\d+:)?\s*(\w+) \.{3,} *(\S.*?)\s*$", re.MULTILINE)
SWITCHES = {"True": True, "False": False}
TOWER = "vision_config"
"""A table of its own in a model, with the names of Hugging Face."""
VARIANTS = {None: "llama", "gated_delta_net": "qwen3_next", "dsa": "deepseek_v32"}
"""The `model_type` of each variant of attention."""


def arguments_of(text: str) -> dict[str, Any]:
    """Return what arguments `--like-these` say, in a script, a log line or a file of their own."""
    # a script continues lines, comments some, and writes variables
    lines = (line.split(" #")[0].rstrip().removesuffix("\\") for line in text.splitlines())
    kept = [line for line in lines if not line.lstrip().startswith("#")]
    try:
        words = shlex.split(" ".join(kept).replace("(", " ").replace(")", " "), comments=False)
    except ValueError:
        words = " ".join(kept).split()
    found: dict[str, Any] = {  # those that a log prints, and flags that are off by default
        "group_query_attention": False,
        "multi_latent_attention": False,
    } | {
        match[1]: SWITCHES.get(match[2], _number(match[2]))
        for match in PRINTED.finditer(text)
        if match[2] != "None"  # which a log prints of what is not given
    }
    name = ""
    for word in words:
        if re.fullmatch(r"--[a-z][\w-]*(=.*)?", word, re.DOTALL):
            name, _, value = word[2:].partition("=")
            name = name.replace("-", "_")
            found[name] = _number(value) if value else True
        elif name and found[name] is True:
            found[name] = _number(word)
    return found


def _number(word: str) -> Any:
    word = word.strip("'\"")
    return int(word) if re.fullmatch(r"-?\d+", word) else word


def leaves(table: Mapping[str, Any], seen: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Yield keys and values of nested tables; those of `model` come last, to count, and that of a
    vision tower whole. A table that several aliases of YAML name is gone through once.
    """
    seen = set() if seen is None else seen
    inner = sorted(table.items(), key=lambda item: item[0] in ("model", "config"))
    for key, value in inner:
        if isinstance(value, Mapping) and key != TOWER:
            if id(value) not in seen:
                seen.add(id(value))
                yield from leaves(value, seen)
        else:  # Megatron-LM's own tests write arguments as keys
            yield re.sub(r"^--", "", str(key)).replace("-", "_"), value


def megatron_model(said: Mapping[str, Any], place: str) -> tuple[Values, list[str]]:
    """Return the keys of a model from Megatron-LM's names for shapes, and notes.

    Raises
    ------
    InstanceError
        If something is not known, missing or contradictory.
    """
    variant = said.get("experimental_attention_variant")
    if variant not in [*VARIANTS]:  # which may be a list
        known = ", ".join(str(name) for name in VARIANTS if name)
        raise InstanceError(
            f"{place}: experimental_attention_variant = {variant!r}: needs one of {known}"
        )
    config = {
        theirs: _shape(place, name, said[name])
        for name, theirs in SHAPE_NAMES.items()
        if said.get(name) not in (None, "None", "")
    }
    if "num_hidden_layers" not in config and isinstance(config.get("hybrid_override_pattern"), str):
        config["num_hidden_layers"] = len(_letters(config["hybrid_override_pattern"]))
    for theirs in ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"):
        called = [name for name, other in SHAPE_NAMES.items() if other == theirs]
        if theirs not in config:
            raise InstanceError(f"{place}: {called[0]} is missing, needs a value")
        name = next((name for name in called if name in said), called[0])
        config[theirs] = Keys({name: config[theirs]}, place).number(name)
    gated = _is_on(said, "swiglu", "gated_linear_unit", "geglu", "quick_geglu")
    untied = _is_on(said, "untie_embeddings_and_output_weights")
    tied = said.get("share_embeddings_and_output_weights")
    config["tie_word_embeddings"] = bool(tied) if isinstance(tied, bool) else not untied
    config["hidden_act"] = "silu" if gated else "relu2"
    hidden = config["hidden_size"]
    narrow = int(4 * hidden * 2 / 3 / 64) * 64
    config.setdefault("intermediate_size", narrow if gated else 4 * hidden)
    windowed = isinstance(said.get("hybrid_attention_pattern"), list)
    if not _is_on(said, "multi_latent_attention"):
        for name in LATENT[:-1] if windowed else LATENT:
            config.pop(SHAPE_NAMES[name], None)
    else:
        for name, default in LATENT_DEFAULTS.items():
            config.setdefault(SHAPE_NAMES[name], default)
    if said.get("group_query_attention") in (False, "False"):
        config.pop("num_key_value_heads", None)
    config |= _layers(said, config, place, variant)
    if config.get("num_experts") and "num_experts_per_tok" not in config:
        config["num_experts_per_tok"] = 2
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        main, *further = pattern.split("/")
        config["hybrid_override_pattern"] = _letters(main)
        config["num_nextn_predict_layers"] = len(further) or config.get(
            "num_nextn_predict_layers", 0
        )
        config = MAMBA_DEFAULTS | config
        config.setdefault("mamba_num_heads", 2 * hidden // config["mamba_head_dim"])
    kind = "nemotron_h" if isinstance(pattern, str) else VARIANTS[variant]
    kind = "mimo_v2_flash" if windowed else kind
    config |= {"attn_output_gate": _is_on(said, "attention_output_gate"), "model_type": kind}
    config |= _tower(said, place)
    try:
        return model_of(config, place)
    except InstanceError as error:
        ours = {theirs: name for name, theirs in reversed(SHAPE_NAMES.items())}
        # of several names of one key, that which the file has
        ours |= {theirs: name for name, theirs in SHAPE_NAMES.items() if name in said}
        names = re.compile(rf"\b({'|'.join(ours)})\b")
        raise InstanceError(
            names.sub(lambda match: ours[match[1]], text) for text in error.complaints
        ) from None


def _tower(said: Mapping[str, Any], place: str) -> Values:
    """Return the vision tower in front of a model, and what both are called together."""
    if not isinstance(tower := said.get(TOWER), Mapping):
        return {}
    whole = re.match(r"transformers\.models\.(qwen3_\w+)\.", str(tower.get("_target_", "")))
    if not whole:
        target = tower.get("_target_")
        given = " is missing," if target is None else f" = {target!r}:"
        raise InstanceError(
            f"{place}: {TOWER}._target_{given} needs a tower of Qwen3-VL or"
            " Qwen3.5 in transformers.models, or the config.json of the model"
        )
    image = said.get("image_size")
    sides = image if isinstance(image, list) else [] if image is None else [image]
    if any(not isinstance(side, int) for side in sides):
        raise InstanceError(f"{place}: image_size = {image!r}: needs whole numbers")
    size = {"image_size": sides[0]} if isinstance(image, list) and len({*sides}) == 1 else {}
    return {TOWER: {"patch_size": 16, **tower, **size}, "model_type": whole[1]}


def _letters(pattern: str) -> str:
    return pattern.split("/")[0].replace("|", "")


def _is_on(said: Mapping[str, Any], *names: str) -> bool:
    return any(said.get(name) in (True, "True", "true") for name in names)


def _shape(place: str, name: str, value: Any) -> Any:
    if isinstance(value, str) and "pattern" not in name:
        raise InstanceError(
            f"{place}: {name} = {value!r}: needs a number (variables are not replaced)"
        )
    return value


def _layers(
    said: Mapping[str, Any], config: Mapping[str, Any], place: str, variant: str | None
) -> Values:
    """Return what lists of layers say: which have experts, a window, a linear mixer."""
    count, found = config["num_hidden_layers"], Values()
    every = _frequency(said, "moe_layer_freq", place)
    if every and config.get("num_experts"):
        listed = isinstance(every, list)
        found["moe_layer_freq"] = every if listed else [int(i % every == 0) for i in range(count)]
    window = said.get("window_size")
    reach = re.fullmatch(r"[\[(]?(\d+)(, *\d+)*[\])]?", str(window or 0).strip())
    if not reach:
        raise InstanceError(
            f"{place}: window_size = {window!r}: needs whole numbers from 0, such as 4095,0"
        )
    if window and said.get("hybrid_attention_pattern"):
        found["sliding_window"] = int(reach[1])
    elif window:
        every = _frequency(said, "window_attn_skip_freq", place)
        kinds = (
            every
            if isinstance(every, list)
            else [(i + 1) % (every or count + 1) for i in range(count)]
        )
        names = ["sliding_attention" if local else "full_attention" for local in kinds]
        found |= {"sliding_window": int(reach[1]), "layer_types": names}
    if variant == "gated_delta_net":
        every = _frequency(said, "linear_attention_freq", place)
        kinds = every if isinstance(every, list) else [(i + 1) % (every or 4) for i in range(count)]
        names = ["linear_attention" if linear else "full_attention" for linear in kinds]
        found["layer_types"] = names
    return found


def _frequency(said: Mapping[str, Any], name: str, place: str) -> Any:
    """Return a number, or a list such as `([0]*3+[1]*58)` says."""
    value = said.get(name)
    if not isinstance(value, str):
        return value
    if not FREQUENCY.fullmatch(value):
        raise InstanceError(f"{place}: {name} = {value!r}: needs a number or a list of 0 and 1")
    if value.strip().isdigit():
        return int(value)
    layers: list[int] = []
    for part in re.findall(r"\[([^\]]*)\](?:\s*\*\s*(\d+))?", value):
        layers += [int(number) for number in re.findall(r"\d+", part[0])] * int(part[1] or 1)
    return layers
