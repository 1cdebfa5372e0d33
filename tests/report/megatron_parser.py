"""Megatron-LM's arguments as its parser takes them, and the rules it checks them by, from tests/data."""

import argparse
import json
import re
from pathlib import Path
from typing import Any, NoReturn

DATA = Path(__file__).parents[1] / "data" / "megatron_arguments.json"


class _Strict(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise AssertionError(message)


def tuple_of_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.strip("()").split(","))


def frequency(text: str) -> list[int]:
    """A number, or a sum of `[0]*3` and `[1]*5` in brackets."""
    parts = re.fullmatch(r"\((\[[01]\]\*\d+(?:\+\[[01]\]\*\d+)*)\)", text)
    assert parts, text
    return [int(bit) for bit, n in re.findall(r"\[([01])\]\*(\d+)", parts[1]) for _ in range(int(n))]


TYPES = {"int": int, "float": float, "str": str, "tuple": tuple_of_numbers, "frequency": frequency}


def parsed(words: list[str]) -> argparse.Namespace:
    """The arguments; unknown names and values of another type fail."""
    parser = _Strict(allow_abbrev=False)
    for name, declared in json.loads(DATA.read_text("utf-8"))["arguments"].items():
        keywords: dict[str, Any] = dict(declared)
        if "type" in keywords:
            keywords["type"] = TYPES[keywords["type"]]
        parser.add_argument(name, **keywords)
    return parser.parse_args(words)


def layout_layers(layout: str) -> list[int]:
    """Decoder layers of every chunk of `--pipeline-model-parallel-layout`."""
    unrolled = re.sub(r"\(([^)]*)\)\*(\d+)", lambda part: part[1] * int(part[2]), layout)
    chunks = unrolled.split("|")
    assert unrolled.count("E") == unrolled.count("L") == 1
    assert (chunks[0][0], chunks[-1][-1]) == ("E", "L")
    assert set(unrolled) <= set("EtmL|")
    assert "m" not in "".join(chunks[:-1])
    return [chunk.count("t") for chunk in chunks]


def chunks_of(args: argparse.Namespace) -> int:
    """Chunks that a layout names; 0 without one."""
    return len(layout_layers(args.pipeline_model_parallel_layout)) if args.pipeline_model_parallel_layout else 0


def stage_layers(args: argparse.Namespace) -> list[int]:
    """Layers of every pipeline stage; fails where Megatron-LM finds no split."""
    p, layers = args.pipeline_model_parallel_size or 1, args.num_layers
    first, last = args.decoder_first_pipeline_num_layers, args.decoder_last_pipeline_num_layers
    per_chunk = args.num_layers_per_virtual_pipeline_stage
    if args.pipeline_model_parallel_layout:
        assert first is last is per_chunk is None
        chunks = layout_layers(args.pipeline_model_parallel_layout)
        assert len(chunks) % p == 0
        assert args.pipeline_model_parallel_layout.count("m") == (args.mtp_num_layers or 0)
        return [sum(chunks[stage::p]) for stage in range(p)]
    if first is last is None:
        assert layers % p == 0
        assert per_chunk is None or layers // p % per_chunk == 0
        return [layers // p] * p
    assert per_chunk is None
    ends = [one for one in (first, last) if one is not None]
    assert all(one > 0 for one in ends)
    middle = p - len(ends)
    assert (layers - sum(ends)) % middle == 0
    each = [(layers - sum(ends)) // middle] * middle
    return [*([] if first is None else [first]), *each, *([] if last is None else [last])]


def check_rules(args: argparse.Namespace, world: int) -> None:
    """What Megatron-LM asserts before it trains, as far as these arguments go."""
    t, p, c = args.tensor_model_parallel_size, args.pipeline_model_parallel_size, args.context_parallel_size
    assert world % (t * p * c) == 0
    d = world // (t * p * c)
    assert args.global_batch_size % (args.micro_batch_size * d) == 0
    assert sum(stage_layers(args)) == args.num_layers
    assert args.num_attention_heads % t == 0
    kv_heads = args.num_query_groups if args.group_query_attention else args.num_attention_heads
    assert kv_heads % t == 0 or t % kv_heads == 0
    assert c == 1 or args.seq_length % (2 * c) == 0
    assert args.max_position_embeddings >= args.seq_length
    if args.num_layers_per_virtual_pipeline_stage or chunks_of(args) > p:
        assert p > (1 if args.no_overlap_p2p_communication else 2)
        assert args.global_batch_size // (args.micro_batch_size * d) % p == 0
    _check_experts(args, world)
    assert not args.overlap_param_gather or (args.overlap_grad_reduce and args.use_distributed_optimizer)
    assert not args.use_megatron_fsdp or (args.ckpt_format == "fsdp_dtensor" and p == 1)  # its mesh has all ranks
    assert args.bf16 != args.fp16
    assert not (args.fp8_format and args.fp4_format)
    assert (args.recompute_granularity == "full") == bool(args.recompute_method and args.recompute_num_layers)
    recomputed = {*(args.recompute_modules or ())}
    assert not (args.fp8_format and recomputed & {"moe_act", "layernorm"}) or args.fp8_recipe not in (None, "delayed")
    assert "moe_act" not in recomputed or args.moe_grouped_gemm
    assert not args.offload_modules or args.fine_grained_activation_offloading
    assert "attn_proj" not in (args.offload_modules or ()) or "core_attn" in args.offload_modules
    assert args.num_experts or not {"expert_fc1", "moe_act"} & {*(args.offload_modules or ())}
    assert not (args.grad_reduce_in_bf16 and args.accumulate_allreduce_grads_in_fp32)
    assert not args.mtp_num_layers or args.position_embedding_type == "rope"


def _check_experts(args: argparse.Namespace, world: int) -> None:
    if not args.num_experts:
        assert args.expert_model_parallel_size is None
        return
    x, t, p = args.expert_model_parallel_size, args.expert_tensor_parallel_size, args.pipeline_model_parallel_size
    assert args.num_experts % x == 0
    assert args.tensor_model_parallel_size == 1 or args.sequence_parallel  # MoELayer.forward in training
    assert world % (x * t * p) == 0
    assert t == 1 or not args.disable_bias_linear  # store_false: False where it is given
    assert args.moe_router_topk > 1 or args.moe_router_pre_softmax
    assert args.moe_layer_freq is None or len(args.moe_layer_freq) == args.num_layers
    if args.use_tp_pp_dp_mapping and p > 1:
        assert world // (x * t * p) == world // (args.tensor_model_parallel_size * p * args.context_parallel_size)
