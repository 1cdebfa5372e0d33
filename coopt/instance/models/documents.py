"""A model read from a file of whichever tool: what it is, what it says, and what it leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from coopt.instance.catalog import entries, refusing
from coopt.instance.models.huggingface import Values, model_of
from coopt.instance.models.megatron import arguments_of, leaves, megatron_model
from coopt.instance.texts import InstanceError, alternatives, check_digits, read_text, toml_of
from coopt.instance.transformer import Transformer

FORMATS = (
    "a config.json of Hugging Face, arguments of Megatron-LM, YAML of Megatron Bridge or NeMo, or"
    " TOML of TorchTitan"
)
FLAVORS = {
    "llama3 8B": "llama3-8b",
    "llama3 70B": "llama3-70b",
    "llama3 405B": "llama3-405b",
    "llama4 17bx16e": "llama4-scout",
    "llama4 17bx128e": "llama4-maverick",
    "deepseek_v3 671B": "deepseek-v3",
    "qwen3 30B-A3B": "qwen3-30b-a3b",
    "qwen3 235B-A22B": "qwen3-235b-a22b",
    "gpt_oss 20b": "gpt-oss-20b",
    "gpt_oss 120b": "gpt-oss-120b",
}
"""Models and flavors of TorchTitan, and their names in the catalog."""
ARGUMENTS = re.compile(
    r"(^|\s)--(num-layers|hybrid-(layer|override)-pattern)[\s=]|num_layers \.{3,}"
)
NO_SHAPE = ("name", "description", "sources", "seq", "published_total", "published_active")


class Imported(NamedTuple):
    """A model, notes on what its file leaves out, and the catalog entry of the same shape."""

    model: Transformer
    notes: tuple[str, ...]
    same: Transformer | None


def imported(path: Path, name: str | None = None, seq: int | None = None) -> Imported:
    """Read the model that a file describes.

    Parameters
    ----------
    name
        Its name in a catalog; that of the file's folder, or of the file, if left out.
    seq
        Tokens of a sequence in training, in place of those of the file.

    Raises
    ------
    InstanceError
        If the file cannot be read, or says something that is not known.
    """
    text = read_text(path, "a text file", FORMATS)
    check_digits(text, path.name)
    try:
        values, notes = _values(text, path)
    except RecursionError:
        raise InstanceError(f"{path.name}: nested too deeply, needs {FORMATS}") from None
    stem = path.parent.name if path.stem in ("config", "params") else path.stem
    values |= {"name": name or _tidy(stem) or "model"} | ({"seq": seq} if seq else {})
    kept = [note for note in notes if not (seq and note.startswith("seq ="))]
    with refusing(path.name, Transformer):
        model = Transformer.model_validate(values)
    return Imported(model, tuple(kept), _same_in_catalog(model))


def _tidy(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def _same_in_catalog(model: Transformer) -> Transformer | None:
    """Return the catalog entry of the same shape, whatever its sequences."""
    shape = {key: value for key, value in model if key not in NO_SHAPE}
    for entry in entries("model").values():
        if isinstance(entry, Transformer) and all(
            getattr(entry, key) == value for key, value in shape.items()
        ):
            return entry
    return None


def _values(text: str, path: Path) -> tuple[Values, list[str]]:
    """Return the keys of the model of a text, by the form that it has."""
    place = path.name
    if text.lstrip().startswith("{"):
        return _of_json(text, place)
    if ARGUMENTS.search(text):
        return megatron_model(arguments_of(text), place)
    if path.suffix == ".toml" or re.search(r"^\[\w+\]\s*$", text, re.MULTILINE):
        return _of_toml(text, place)
    return _of_yaml(text, place)


def _of_json(text: str, place: str) -> tuple[Values, list[str]]:
    try:
        table = json.loads(text)
    except json.JSONDecodeError as error:
        raise InstanceError(
            f"{place}: {error.msg}: line {error.lineno}, column {error.colno}; needs valid JSON"
        ) from None
    if "zero_optimization" in table or "train_micro_batch_size_per_gpu" in table:
        raise InstanceError(
            f"{place}: a DeepSpeed configuration does not describe a model, needs the config.json"
            " of the model that it trains"
        )
    if "model_type" not in table:
        flat = dict(leaves(table))
        if "num_layers" in flat and "num_attention_heads" in flat:
            return megatron_model(flat, place)
    return model_of(table, place)


def _of_yaml(text: str, place: str) -> tuple[Values, list[str]]:
    import yaml  # type: ignore[import-untyped]

    try:
        table = yaml.safe_load(re.sub(r"!!?python/\S+|!\S+", "", text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InstanceError(f"{place}: {line}not YAML ({problem}), needs {FORMATS}") from None
    except ValueError as error:  # what looks like a date and is none
        raise InstanceError(f"{place}: not YAML ({error}), needs {FORMATS}") from None
    if not isinstance(table, Mapping):
        raise InstanceError(f"{place}: does not describe a model, needs {FORMATS}")
    flat = dict(leaves(table))
    if (elsewhere := flat.get("pretrained_model_name_or_path")) and "num_layers" not in flat:
        raise InstanceError(
            f"{place}: pretrained_model_name_or_path = {elsewhere!r}: only names the model, needs"
            " its config.json"
        )
    return megatron_model(flat, place)


def _of_toml(text: str, place: str) -> tuple[Values, list[str]]:
    """Return the model of a TorchTitan configuration, whose flavors stand in its code."""
    table = toml_of(text, place)
    model: Any = table.get("model")
    if not isinstance(model, dict) or not {"name", "flavor"} <= model.keys():
        raise InstanceError(f"{place}: model.name or model.flavor is missing, needs {FORMATS}")
    key = f"{model['name']} {model['flavor']}"
    if key not in FLAVORS:
        raise InstanceError(
            f"{place}: model.flavor = {model['flavor']!r} of model.name = {model['name']!r}: needs"
            f" one of {alternatives(FLAVORS)}"
        )
    entry = entries("model")[FLAVORS[key]]
    values = entry.model_dump(exclude={"name", "description", "sources"}, exclude_defaults=True)
    seq = (table.get("training") or {}).get("seq_len")
    return values | ({"seq": seq} if isinstance(seq, int) else {}), []
