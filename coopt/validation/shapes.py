"""The model of a row: from its columns, and from known models of its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from coopt.instance.catalog import known, sentences
from coopt.instance.transformer import Transformer
from coopt.perf.mapping import model_parameters
from coopt.validation.facts import found, published_facts
from coopt.validation.published import SHAPE, Measurement, UnusableError, framework_of

ALIKE = {
    name: name for name in ("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "experts")
} | {"topk": "top_k"}
COPIED = (
    "head_dim",
    "value_dim",
    "q_rank",
    "kv_rank",
    "rope_dim",
    "shared_ffn",
    "dense_layers",
    "dense_ffn",
    "window",
    "expert_groups",
    "top_groups",
)
NO_TRANSFORMER = re.compile(r"hybrid(?!EP)|mamba", re.IGNORECASE)
USUAL_VOCAB = {"gated": 128_256, "plain": 51_200}  # Llama 3; GPT, rounded up for tensor parallelism
BY_NAME = {
    "kv_rank": "latent attention",
    "shared_ffn": "shared experts",
    "dense_layers": "dense layers",
    "window": "sliding windows",
    "expert_groups": "routing by groups",
    "extra_predictions": "multi-token prediction",
}
SIZE = re.compile(r"(?<![a-zA-Z\d.])(\d+(?:\.\d+)?)b(?![a-z])", re.IGNORECASE)  # 30B, but not A3B
SIZE_OFF = 0.15  # names round, and count tables or not
OF_EXPERTS = ("shared_ffn", "dense_layers", "dense_ffn", "expert_groups", "top_groups")
LATENT = re.compile(r"\bMLA\b|latent attention")


def unpublished_columns(row: Measurement) -> list[str]:
    """Return the shape columns that the row leaves empty."""
    return [name for name in SHAPE if getattr(row, name) is None]


def shape_by_name(row: Measurement, assumptions: list[str]) -> Transformer | None:
    """Return the catalog model of the row's name, with the row's vocabulary and sequence length.

    None if the row is complete, if no model has its name, or if its columns contradict that model.

    Parameters
    ----------
    assumptions
        Receives a sentence about what came from the catalog.
    """
    unpublished, model = unpublished_columns(row), catalog_model(row.model)
    if not unpublished or not isinstance(model, Transformer):
        return None
    if any(
        getattr(row, column) not in (None, getattr(model, name)) for column, name in ALIKE.items()
    ):
        return None
    if of_other_size := _other_size(row.model, model):
        raise UnusableError(of_other_size)
    assumptions.append(f"taken from the catalog: {', '.join(unpublished)} of {model.name}")
    return model.model_copy(update={"vocab": row.vocab or model.vocab, "seq": row.seq or model.seq})


def catalog_model(name: str) -> Transformer | None:
    """Return the catalog model of a name, ignoring case, hyphens and brackets.

    Llama 3.1 and 3.3 have the shapes of Llama 3; names of Nemotron 3 can include its size.
    """
    models = (model for model in known("model").values() if isinstance(model, Transformer))
    return next((model for model in models if _letters(model.name) == _letters(name)), None)


def _other_size(name: str, model: Transformer) -> str:
    """Return that a name states another size than the catalog's model of that name has; empty if
    it does not.
    """
    size = SIZE.search(name)
    parameters = model_parameters(model)[0] / 1e9
    if size is None or abs(float(size[1]) / parameters - 1.0) <= SIZE_OFF:
        return ""
    return (
        f"model {name} has {size[1]} B parameters, but {model.name} of the catalog has"
        f" {parameters:.3g} B: needs the columns of the model's shape"
    )


@lru_cache(maxsize=4096)
def _letters(name: str) -> str:
    letters = re.sub(r"\(.*?\)|[^a-z0-9]", "", name.lower())
    letters = re.sub(r"^nemotronv?3(nano|super|ultra)(?:\d+b)?(?:a\d+b)?$", r"nemotron3\1", letters)
    return re.sub(
        r"^(?:meta)?llama3[13](?=8b|70b|405b)", "llama3", re.sub(r"^gpt3(?=175b)", "gpt", letters)
    )


def transformer_of(row: Measurement, assumptions: list[str]) -> Transformer:
    """Return the model of a row.

    Parameters
    ----------
    assumptions
        Receives a sentence for each figure that was not published.

    Raises
    ------
    UnusableError
        If the row is insufficient.
    """
    model = shape_by_name(row, assumptions)
    if model is not None:
        return model
    of_hybrids = row.shape.keys() & {"mamba_layers", "mixers"}
    if not of_hybrids and NO_TRANSFORMER.search(f"{row.notes} | {row.model}"):
        raise UnusableError(
            "the model or its notes name a hybrid, but mamba_layers and mixers are empty"
        )
    if absent := [name for name in unpublished_columns(row) if name != "vocab"]:
        catalog = (
            "the catalog's model of this name contradicts the row"
            if catalog_model(row.model)
            else "the catalog has no model of this name"
            if row.model
            else "no model is named"
        )
        raise UnusableError(
            f"the model's shape is not published ({', '.join(absent)}), and {catalog}"
        )
    special = {**({} if "gated" in row.shape else _special(row)), **row.shape}
    # properties that no column states and only the name of the model implies
    by_name = [name for name in special if name not in row.shape]
    if phrases := [words for name, words in BY_NAME.items() if name in by_name]:
        assumptions.append(f"{', '.join(phrases)}: known of models named {row.model}")
    if LATENT.search(row.notes) and not special.get("kv_rank"):
        raise UnusableError("the ranks of the model's latent attention are not published")
    assert row.hidden is not None
    table: dict[str, Any] = {
        "name": row.model or row.id,
        "head_dim": _head_dim(row, special, assumptions),
        "kv_heads": row.kv_heads or row.heads,
        "gated": bool(row.experts) or row.ffn != 4 * row.hidden,
        **{name: getattr(row, name) for name in ("layers", "hidden", "heads", "ffn", "seq")},
        "experts": row.experts or 0,
        "top_k": row.topk or 0,
        **special,
    }
    table |= {name: bool(table[name]) for name in ("gated", "tied_embeddings") if name in table}
    table.setdefault("tied_embeddings", not table["gated"])
    table["vocab"] = row.vocab or USUAL_VOCAB["gated" if table["gated"] else "plain"]
    if row.vocab is None:  # that of the most common family of such models
        assumptions.append(f"a vocabulary of {table['vocab']:,} is assumed")
    if row.kv_heads is None:
        assumptions.append("as many key and value heads as query heads are assumed")
    try:
        return Transformer.model_validate(table)
    except ValidationError as error:
        raise UnusableError(
            "the figures of the model's shape contradict each other:"
            f" {sentences(error, Transformer)[0]}"
        ) from None


def _head_dim(row: Measurement, special: Mapping[str, Any], assumptions: list[str]) -> int:
    """Return the published head size, else an even share of the hidden size."""
    if row.head_dim is not None or "head_dim" in special:
        return int(row.head_dim or special["head_dim"])
    assert row.hidden is not None
    assert row.heads is not None
    if row.hidden % row.heads:
        assumptions.append(
            f"head size {row.hidden / row.heads:.1f} is rounded: {row.heads} heads do not divide"
            f" {row.hidden}"
        )
    return max(1, round(row.hidden / row.heads))


def _special(row: Measurement) -> dict[str, Any]:
    """Return known properties of this model beyond its columns, with numbers of layers for this
    row's depth.
    """
    assert row.layers is not None
    facts: dict[str, Any] = {}
    for shape in published_facts().shape:
        of_framework = shape.framework in ("", framework_of(row).name)
        if not (of_framework and found(shape.model, row.model)):
            continue
        facts |= {name: value for name in COPIED if (value := getattr(shape, name))}
        facts |= {
            name: value
            for name in ("gated", "tied_embeddings")
            if (value := getattr(shape, name)) is not None
        }
        if shape.extra_predictions:
            facts["extra_predictions"] = shape.extra_predictions
        if shape.dense_every:
            facts["dense_layers"] = row.layers // shape.dense_every
        if shape.window_every:
            facts["window_layers"] = row.layers // shape.window_every
    if not row.experts:
        facts = {k: v for k, v in facts.items() if k not in OF_EXPERTS}
    # shortened models keep a layer with experts
    if facts.get("dense_layers", 0) >= row.layers:
        facts["dense_layers"] = row.layers - 1
    return facts
