"""Logs of training frameworks as rows of a table of measurements (docs/measurements.md, Runs of your own)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from statistics import median

from coopt.instance.errors import InstanceError

Cells = dict[str, str]

MEGATRON = re.compile(r"iteration +\d+/ *\d+ \|.*elapsed time per iteration \(ms\): *(\d+(?:\.\d+)?)")
NEMO = re.compile(r"train_step_timing in s[:=] ?(\d+(?:\.\d+)?)")
BATCH = re.compile(r"global.batch.size: *(\d+)")
DOTTED = re.compile(r"(\w+) \.{2,} (.*?)\s*$")  # the block of arguments that Megatron-LM prints
LISTED = re.compile(r"^(?:\[?\w+\]?:)?\s*(\w+): ([^\s#]+)\s*$")  # the configuration that NeMo prints, as YAML
PADDED = re.compile(r"padded vocab \(size: \d+\).*\(new size: (\d+)\)")
WORLD = re.compile(r"using world size: (\d+)")

WARM_UP = 2  # iterations that load, compile and fill caches; judgement

COUNTS = {
    "num_layers": "layers",
    "hidden_size": "hidden",
    "ffn_hidden_size": "ffn",
    "num_attention_heads": "heads",
    "num_query_groups": "kv_heads",
    "kv_channels": "head_dim",
    "padded_vocab_size": "vocab",
    "seq_length": "seq",
    "encoder_seq_length": "seq",
    "num_experts": "experts",
    "num_moe_experts": "experts",
    "moe_router_topk": "topk",
    "world_size": "gpus",
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "virtual_pipeline_model_parallel_size": "interleave",
    "micro_batch_size": "micro_batch",
    "global_batch_size": "global_batch",
}
"""Arguments whose value a column takes as it is."""

OTHERS = (
    "group_query_attention", "moe_ffn_hidden_size", "fp4", "fp8", "bf16", "fp16", "precision", "recompute_granularity",
    "activations_checkpoint_granularity", "recompute_modules", "use_distributed_optimizer", "use_torch_fsdp2",
    "use_megatron_fsdp", "use_custom_fsdp", "data_parallel_sharding_strategy", "overlap_moe_expert_parallel_comm",
    "expert_tensor_parallel_size", "devices", "num_nodes", "swiglu",
)  # fmt: skip
KNOWN = frozenset((*COUNTS, *OTHERS))
NOTHING = ("None", "null", "False", "false", "~", "")
SHARDED = {"no_shard": "0", "optim": "1", "optim_grads": "2", "optim_grads_params": "3"}
RECOMPUTED = {"core_attn": "selective", "layernorm,moe_act": "norm+act", "layernorm,moe": "norm+ffn"}


def is_log(text: str) -> bool:
    """Whether a text holds lines that a training framework prints at iterations."""
    return any(MEGATRON.search(line) or NEMO.search(line) for line in text.splitlines())


def cells_of_log(text: str, name: str) -> Cells:
    """The columns that a log of Megatron-LM, Megatron Bridge or NeMo fills.

    The time is the median over the iterations of the last batch size, without the first ones, which warm up.

    Parameters
    ----------
    name
        Of the file, for complaints.

    Raises
    ------
    InstanceError
        When the log contradicts what a table can say.
    """
    lines = text.splitlines()
    arguments = _arguments(lines)
    cells = _counted(arguments) | _parallel(arguments) | _precision(arguments) | _saved(arguments)
    cells |= {key: found for key, found in _printed(text).items() if key not in cells}
    seconds, batch = _iterations(lines)
    if batch:
        cells["global_batch"] = batch
    _check_gating(arguments, cells, name)
    return cells | {"iter_time_s": f"{seconds:.6g}", "notes": _notes(arguments, cells)}


def _iterations(lines: list[str]) -> tuple[float, str]:
    """Seconds of an iteration, and the batch where the lines tell it."""
    found = list(_timed(lines))
    last = found[-1][1]
    steady = [seconds for seconds, _ in takewhile(lambda one: one[1] == last, reversed(found))][::-1]
    first = 0 if len(steady) < len(found) else min(WARM_UP, len(steady) - 1)
    return median(steady[first:]), last


def _timed(lines: list[str]) -> Iterator[tuple[float, str]]:
    """Seconds and batch of every line about an iteration."""
    for line in lines:
        milliseconds, seconds, batch = MEGATRON.search(line), NEMO.search(line), BATCH.search(line)
        size = batch[1] if batch else ""
        if milliseconds:
            yield float(milliseconds[1]) / 1000.0, size
        elif seconds:
            yield float(seconds[1]), size


def _arguments(lines: list[str]) -> dict[str, str]:
    """The first value of every argument a column depends on; what is switched off is left out."""
    found: dict[str, str] = {}
    for line in lines:
        match = DOTTED.search(line) or LISTED.match(line)
        if match and match[1] in KNOWN:
            found.setdefault(match[1], match[2].strip("'\""))
    return {key: value for key, value in found.items() if value not in NOTHING or key == "group_query_attention"}


def _counted(arguments: Mapping[str, str]) -> Cells:
    """Shape and batch."""
    cells = {column: arguments[key] for key, column in COUNTS.items() if key in arguments}
    if arguments.get("group_query_attention") in NOTHING:  # then num_query_groups is a default that nothing reads
        cells.pop("kv_heads", None)
    if "experts" not in cells:
        cells.pop("topk", None)
    elif "moe_ffn_hidden_size" in arguments:
        cells["ffn"] = arguments["moe_ffn_hidden_size"]
    return cells


def _parallel(arguments: Mapping[str, str]) -> Cells:
    """How work and states are spread."""
    cells: Cells = {}
    devices, nodes = arguments.get("devices", ""), arguments.get("num_nodes", "")
    if devices.isdecimal() and nodes.isdecimal():
        cells |= {"gpus": str(int(devices) * int(nodes)), "gpus_per_node": devices}
    if "use_torch_fsdp2" in arguments:
        cells["zero"] = "3"
    elif {"use_megatron_fsdp", "use_custom_fsdp"} & arguments.keys():
        cells["zero"] = SHARDED.get(arguments.get("data_parallel_sharding_strategy", "no_shard"), "")
    elif "world_size" in arguments:  # the block of Megatron-LM lists every switch, so that silence means off
        cells["zero"] = "1" if "use_distributed_optimizer" in arguments else "0"
    if "overlap_moe_expert_parallel_comm" in arguments:
        cells["ep_overlap"] = "1"
    return cells


def _precision(arguments: Mapping[str, str]) -> Cells:
    """The format of matrix products."""
    for name in ("fp4", "fp8", "bf16", "fp16"):
        if name in arguments:
            return {"precision": name}
    word = arguments.get("precision", "")
    return {"precision": "bf16" if word.startswith("bf16") else "fp16"} if "16" in word else {}


def _saved(arguments: Mapping[str, str]) -> Cells:
    """What is recomputed; a list of modules without a name here stays as it is, and its row is refused by that name."""
    word = arguments.get("recompute_granularity") or arguments.get("activations_checkpoint_granularity")
    if word != "selective":
        return {"recompute": word or "none"}
    modules = ",".join(re.findall(r"\w+", arguments.get("recompute_modules", "core_attn")))
    return {"recompute": RECOMPUTED.get(modules, modules)}


def _printed(text: str) -> Cells:
    """What Megatron-LM says in sentences before the first iteration."""
    found = {"vocab": PADDED.search(text), "gpus": WORLD.search(text)}
    return {column: match[1] for column, match in found.items() if match}


def _check_gating(arguments: Mapping[str, str], cells: Cells, name: str) -> None:
    """A table tells gated layers from plain ones by their width alone."""
    ffn, hidden = cells.get("ffn", ""), cells.get("hidden", "")
    if "world_size" not in arguments or "experts" in cells or not (ffn.isdecimal() and hidden.isdecimal()):
        return
    gated = "swiglu" in arguments
    if gated != (int(ffn) != 4 * int(hidden)):
        raise InstanceError(
            f"{name}: swiglu = {gated} with ffn_hidden_size = {ffn} and hidden_size = {hidden}: "
            "a table takes layers for gated where ffn is not 4 x hidden, needs a run of such a shape"
        )


def _notes(arguments: Mapping[str, str], cells: Cells) -> str:
    words = ["read from a log"]
    if "experts" in cells and "expert_tensor_parallel_size" in arguments:
        words.append(f"ETP={arguments['expert_tensor_parallel_size']}")
    return "; ".join(words)
