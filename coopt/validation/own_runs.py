"""Measurements from files of own runs: tables, logs, Kineto traces, and summaries of Nsight
Systems.

docs/measurements.md lists what each of them provides (Runs of your own).
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from statistics import median
from typing import Any, TypeGuard

from coopt.instance.texts import InstanceError, read_text
from coopt.validation.published import COLUMNS, Measurement, measurement_of, read_measurements

Cells = dict[str, str]

STEP = re.compile(r"ProfilerStep#(\d{1,9})$")
GPU_NAME = re.compile(r"\b(GB300|GB200|B300|B200|H200|H100|H800|A100|MI300X)\b")
SUMMARY = ("Med (ns)", "Range")  # columns of `nsys stats --report nvtx_sum --format csv`
LATEST = 1e18  # microseconds or nanoseconds; larger values are not times
KIND = "a text file: a table, a log, a trace or a summary"
REMEDY = "a CSV file of measurements (benchmarks/published.csv is one), a log or a trace of a run"

MEGATRON = re.compile(
    r"iteration +\d+/ *\d+ \|.*elapsed time per iteration \(ms\): *(\d+(?:\.\d+)?)"
)
NEMO = re.compile(r"train_step_timing in s[:=] ?(\d+(?:\.\d+)?)")
BATCH = re.compile(r"global.batch.size: *(\d+)")
DOTTED = re.compile(r"(\w+) \.{2,} (.*?)\s*$")  # the block of arguments that Megatron-LM prints
LISTED = re.compile(
    r"^(?:\[?\w+\]?:)?\s*(\w+): ([^\s#]+)\s*$"
)  # the configuration that NeMo prints, as YAML
PADDED = re.compile(r"padded vocab \(size: \d+\).*\(new size: (\d+)\)")
SHARE = re.compile(r"\d(?:\.\d+)?")
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
    "group_query_attention",
    "moe_ffn_hidden_size",
    "fp4",
    "fp8",
    "bf16",
    "fp16",
    "precision",
    "recompute_granularity",
    "activations_checkpoint_granularity",
    "recompute_modules",
    "sequence_parallel",
    "fine_grained_activation_offloading",
    "activation_offload_fraction",
    "use_distributed_optimizer",
    "use_torch_fsdp2",
    "use_megatron_fsdp",
    "use_custom_fsdp",
    "data_parallel_sharding_strategy",
    "overlap_moe_expert_parallel_comm",
    "expert_tensor_parallel_size",
    "devices",
    "num_nodes",
    "swiglu",
)
KNOWN = frozenset((*COUNTS, *OTHERS))
NOTHING = ("None", "null", "False", "false", "~", "")
SHARDED = {"no_shard": "0", "optim": "1", "optim_grads": "2", "optim_grads_params": "3"}
BESIDE_NORMS = {
    "norm+act": frozenset({"moe_act", "mla_up_proj"}),
    "norm+ffn": frozenset({"moe", "mlp"}),
}
"""Modules that are recomputed beside norms, by kind; which of them a model has differs."""


def measurements_of(
    paths: Sequence[str], stated: Mapping[str, str], nvtx_range: str | None = None
) -> tuple[list[Measurement], list[Measurement]]:
    """Return all rows of the files, and those among them read from logs and traces.

    Parameters
    ----------
    stated
        Columns that logs do not contain, such as the GPU; values in a log take precedence.
    nvtx_range
        Pattern of the range that is an iteration in a summary of Nsight Systems.

    Raises
    ------
    InstanceError
        With the errors of each file, or for columns that do not exist.
    """
    columns = [name for name in COLUMNS if name != "id"]
    if unknown := [name for name in stated if name not in columns]:
        raise InstanceError(
            f"--set: {', '.join(unknown)}: no such column, needs some of {', '.join(columns)}"
        )
    table_rows: list[Measurement] = []
    log_rows: list[Measurement] = []
    for path in paths:
        file = Path(path)
        cells = _cells(_text(file), file.name, nvtx_range)
        if cells is None:
            table_rows += read_measurements(path)
            continue
        complaints: list[str] = []
        row = {"id": file.name.split(".")[0], **stated, **cells}
        log_rows.append(measurement_of(row, 1, complaints))
        if complaints:
            raise InstanceError(f"{file.name}: {complaint}" for complaint in complaints)
    if stated and not log_rows:
        raise InstanceError(
            "--set: says what logs leave out, needs a log or a trace among the files"
        )
    return table_rows + log_rows, log_rows


def _cells(text: str, name: str, nvtx_range: str | None) -> Cells | None:
    """Return the columns of a file that is not a table, or None."""
    lines = text.splitlines()
    if text.lstrip()[:1] == "{":
        return _cells_of_trace(text, name)
    if any(all(column in line for column in SUMMARY) for line in lines[:200]):
        return _cells_of_summary(lines, name, nvtx_range)
    # iteration lines of a training framework
    is_log = any(MEGATRON.search(line) or NEMO.search(line) for line in lines)
    return _cells_of_log(text, name) if is_log else None


def table_of(rows: Sequence[Measurement]) -> str:
    """Return the rows as a CSV table for `coopt validate` and `coopt calibrate`, without empty
    columns.
    """
    names = [name for name in COLUMNS if any(getattr(row, name) not in (None, "") for row in rows)]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(
        [["" if (value := getattr(row, name)) is None else value for name in names] for row in rows]
    )
    return stream.getvalue()


def _text(file: Path) -> str:
    if file.suffix != ".gz":
        return read_text(file, KIND, REMEDY)
    try:
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            return stream.read()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InstanceError(
            f"{file}: cannot be read ({error}), needs a trace compressed by gzip"
        ) from None


def _cells_of_trace(text: str, name: str) -> Cells:
    """Read step time, GPU and number of GPUs from a trace of PyTorch's profiler (Kineto)."""
    try:
        trace = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InstanceError(
            f"{name}: not JSON ({error}), needs a trace of PyTorch's profiler"
        ) from None
    events = trace.get("traceEvents")
    steps = _steps(events if isinstance(events, list) else [])
    if not steps:
        raise InstanceError(
            f"{name}: no step of the profiler, needs events named ProfilerStep#N: call prof.step()"
            " at each iteration"
        )
    # between starts, which includes gaps; the length of a single step
    between = [steps[b][0] - steps[a][0] for a, b in pairwise(sorted(steps)) if b == a + 1]
    step_us = median(between or [length for _, length in steps.values()])
    gpu = GPU_NAME.search(_word(trace, "deviceProperties", "name"))
    world = _word(trace, "distributedInfo", "world_size")
    cells = {"iter_time_s": f"{step_us * 1e-6:.6g}", "notes": "read from a trace"}
    return cells | ({"gpu": gpu[1]} if gpu else {}) | ({"gpus": world} if world.isdecimal() else {})


def _steps(events: list[Any]) -> dict[int, tuple[float, float]]:
    """Return start and length (us) of every step on the host, by its number."""
    steps: dict[int, tuple[float, float]] = {}
    for event in events:
        if not isinstance(event, dict) or event.get("cat") == "gpu_user_annotation":
            continue
        step = STEP.match(str(event.get("name", "")))
        start, length = event.get("ts"), event.get("dur")
        if step and _is_time(start) and _is_time(length):
            steps[int(step[1])] = (float(start), float(length))
    return steps


def _is_time(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and abs(value) <= LATEST


def _word(trace: Mapping[str, Any], table: str, key: str) -> str:
    """Return a value of a table at the head of a trace, or of the first table of a list; empty if
    missing.
    """
    value = trace.get(table)
    entry = value[0] if isinstance(value, list) and value else value
    return str(entry.get(key, "")) if isinstance(entry, dict) else ""


def _cells_of_summary(lines: Sequence[str], name: str, nvtx_range: str | None) -> Cells:
    """Read the iteration time from `nsys stats --report nvtx_sum --format csv`."""
    head = next(i for i, line in enumerate(lines) if all(column in line for column in SUMMARY))
    rows = [row for row in csv.DictReader(lines[head:]) if row.get("Range")]
    names = [row["Range"].lstrip(":") for row in rows]
    some = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    if nvtx_range is None:
        raise InstanceError(
            f"{name}: needs --range with the range that is an iteration, one of {some}"
        )
    medians = sorted(
        (_number(row["Med (ns)"], name), _number(row.get("Instances") or "1", name))
        for row, label in zip(rows, names, strict=True)
        if fnmatchcase(label, nvtx_range)
    )
    if not medians:
        raise InstanceError(
            f"{name}: --range = {nvtx_range!r}: no range is like that, needs one of {some}"
        )
    # of each range a summary has the median and the count: their median, each as often as it ran
    upto = list(accumulate(count for _, count in medians))
    median_ns, _ = medians[bisect_left(upto, upto[-1] / 2)]
    return {"iter_time_s": f"{median_ns * 1e-9:.6g}", "notes": "read from a summary of NVTX ranges"}


def _number(cell: str | None, name: str) -> float:
    try:
        number = float((cell or "").replace(",", ""))
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= LATEST:
        raise InstanceError(f"{name}: {cell!r} in a column of times, needs a number")
    return number


def _cells_of_log(text: str, name: str) -> Cells:
    """Read the columns available in a log of Megatron-LM, Megatron Bridge or NeMo.

    The time is the median over the iterations with the last batch size, without the first ones
    (warm-up).

    Parameters
    ----------
    name
        Name of the file, for complaints.

    Raises
    ------
    InstanceError
        If the log contains what a table cannot express.
    """
    lines = text.splitlines()
    arguments = _arguments(lines)
    # what Megatron-LM prints in sentences before the first iteration
    printed = {"vocab": PADDED.search(text), "gpus": WORLD.search(text)}
    cells = {column: match[1] for column, match in printed.items() if match} | {
        **_shape_cells(arguments),
        **_split_cells(arguments),
        **_precision_cells(arguments),
        **_recompute_cells(arguments),
    }
    seconds, batch = _iterations(lines)
    if batch:
        cells["global_batch"] = batch
    _check_gating(arguments, cells, name)
    notes = ["read from a log"]
    if "experts" in cells and "expert_tensor_parallel_size" in arguments:
        notes.append(f"ETP={arguments['expert_tensor_parallel_size']}")
    return cells | {"iter_time_s": f"{seconds:.6g}", "notes": "; ".join(notes)}


def _iterations(lines: list[str]) -> tuple[float, str]:
    """Return the iteration time (s), and the batch if it is logged."""
    iterations = []
    for line in lines:
        milliseconds, seconds, batch = MEGATRON.search(line), NEMO.search(line), BATCH.search(line)
        if match := milliseconds or seconds:
            scale = 1000.0 if milliseconds else 1.0
            iterations.append((float(match[1]) / scale, batch[1] if batch else ""))
    last_batch = iterations[-1][1]
    last_first = takewhile(lambda iteration: iteration[1] == last_batch, reversed(iterations))
    steady = [seconds for seconds, _ in last_first][::-1]
    # where the batch grew before, those that warm up came with a smaller one
    warm_up = 0 if len(steady) < len(iterations) else min(WARM_UP, len(steady) - 1)
    return median(steady[warm_up:]), last_batch


def _arguments(lines: list[str]) -> dict[str, str]:
    """Return the first value of every argument that columns depend on, without disabled options."""
    arguments: dict[str, str] = {}
    for line in lines:
        match = DOTTED.search(line) or LISTED.match(line)
        if match and match[1] in KNOWN:
            arguments.setdefault(match[1], match[2].strip("'\""))
    return {
        key: value
        for key, value in arguments.items()
        if value not in NOTHING or key == "group_query_attention"
    }


def _shape_cells(arguments: Mapping[str, str]) -> Cells:
    """Return the columns of shape and batch."""
    cells = {column: arguments[key] for key, column in COUNTS.items() if key in arguments}
    if (
        arguments.get("group_query_attention") in NOTHING
    ):  # then num_query_groups is a default that nothing reads
        cells.pop("kv_heads", None)
    if "experts" not in cells:
        cells.pop("topk", None)
    elif "moe_ffn_hidden_size" in arguments:
        cells["ffn"] = arguments["moe_ffn_hidden_size"]
    return cells


def _split_cells(arguments: Mapping[str, str]) -> Cells:
    """Return the columns of parallelism and sharding."""
    cells: Cells = {}
    devices, nodes = arguments.get("devices", ""), arguments.get("num_nodes", "")
    if devices.isdecimal() and nodes.isdecimal():
        cells |= {"gpus": str(int(devices) * int(nodes)), "gpus_per_node": devices}
    if "use_torch_fsdp2" in arguments:
        cells["zero"] = "3"
    elif {"use_megatron_fsdp", "use_custom_fsdp"} & arguments.keys():
        cells["zero"] = SHARDED.get(
            arguments.get("data_parallel_sharding_strategy", "no_shard"), ""
        )
    elif (
        "world_size" in arguments
    ):  # the block of Megatron-LM lists every switch, so that silence means off
        cells["zero"] = "1" if "use_distributed_optimizer" in arguments else "0"
    if "overlap_moe_expert_parallel_comm" in arguments:
        cells["ep_overlap"] = "1"
    if "world_size" in arguments:
        offloads = "fine_grained_activation_offloading" in arguments
        share = arguments.get("activation_offload_fraction", "1") if offloads else "0"
        cells["sequence_parallel"] = "1" if "sequence_parallel" in arguments else "0"
        cells["offload_percent"] = f"{100.0 * float(share):g}" if SHARE.fullmatch(share) else share
    return cells


def _precision_cells(arguments: Mapping[str, str]) -> Cells:
    """Return the column of the format of matrix products."""
    word = arguments.get("precision", "")
    named = "bf16" if word.startswith("bf16") else "fp16" if "16" in word else ""
    precision = next((name for name in ("fp4", "fp8", "bf16", "fp16") if name in arguments), named)
    return {"precision": precision} if precision else {}


def _recompute_cells(arguments: Mapping[str, str]) -> Cells:
    """Return the column of recomputation; an unknown list of modules is kept, and its row refused
    later.
    """
    word = arguments.get("recompute_granularity") or arguments.get(
        "activations_checkpoint_granularity"
    )
    if word != "selective":
        return {"recompute": word or "none"}
    names = re.findall(r"\w+", arguments.get("recompute_modules", "core_attn"))
    if names == ["core_attn"]:
        return {"recompute": "selective"}
    others = {*names} - {"layernorm"}
    kinds = [kind for kind, modules in BESIDE_NORMS.items() if others <= modules]
    return {"recompute": kinds[0] if kinds and "layernorm" in names else "+".join(names)}


def _check_gating(arguments: Mapping[str, str], cells: Cells, name: str) -> None:
    """Refuse a log whose gating contradicts the width, by which tables tell gated from plain
    layers.
    """
    ffn, hidden = cells.get("ffn", ""), cells.get("hidden", "")
    if (
        "world_size" not in arguments
        or "experts" in cells
        or not (ffn.isdecimal() and hidden.isdecimal())
    ):
        return
    gated = "swiglu" in arguments
    if gated != (int(ffn) != 4 * int(hidden)):
        raise InstanceError(
            f"{name}: swiglu = {gated} with ffn_hidden_size = {ffn} and hidden_size = {hidden}: a"
            " table takes layers for gated where ffn is not 4 x hidden, needs a run of such a"
            " shape"
        )
