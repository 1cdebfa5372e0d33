"""Logs and traces in the forms that frameworks write, for tests to change one thing of."""

import json
import math

ARGUMENTS = {
    "bf16": True, "context_parallel_size": 1, "expert_model_parallel_size": 1, "ffn_hidden_size": 28672, "fp16":
    False, "fp8": None, "fp8_recipe": "delayed", "global_batch_size": 128, "group_query_attention": True,
    "hidden_size": 8192, "kv_channels": 128, "micro_batch_size": 1, "moe_router_topk": 2, "num_attention_heads": 64,
    "num_experts": None, "num_layers": 80, "num_query_groups": 8, "padded_vocab_size": 128256,
    "pipeline_model_parallel_size": 4, "recompute_granularity": None, "seq_length": 8192, "sequence_parallel":
    False, "swiglu": True, "tensor_model_parallel_size": 4, "use_distributed_optimizer": True,
    "virtual_pipeline_model_parallel_size": 5, "world_size": 64,
}  # fmt: skip
DEGREES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")


def megatron(seconds=(60.0, 25.0, 20.0, 20.2, 19.8), batches=None, rank="", **changes):
    """A log as Megatron-LM prints it; `rank` stands before every line, as torchrun does it."""
    arguments = ARGUMENTS | changes
    rate = 0.0 if "hybrid_layer_pattern" in changes else 62.5  # Megatron-LM counts none of hybrids
    batches = batches or [arguments["global_batch_size"]] * len(seconds)
    arguments["data_parallel_size"] = 64 // math.prod(map(arguments.get, DEGREES))
    lines = [f"using world size: 64, data-parallel size: {arguments['data_parallel_size']}, context-parallel size: 1"]
    lines += ["------------------------ arguments ------------------------"]
    lines += [f"  {name} {'.' * (48 - len(name))} {value}" for name, value in sorted(arguments.items())]
    lines += ["-------------------- end of arguments ---------------------"]
    padded = arguments["padded_vocab_size"] or 128256
    lines += [f" > padded vocab (size: {padded - 256}) with 256 dummy tokens (new size: {padded})"]
    lines += [
        f" [2026-01-05 03:00:{i:02d}] iteration {i:8d}/{100:8d} | consumed samples: {i * size:12d} | "
        f"elapsed time per iteration (ms): {1000 * s:.1f} | throughput per GPU (TFLOP/s/GPU): {rate * size / s:.1f} | "
        f"learning rate: 1.500000E-06 | global batch size: {size:5d} | lm loss: 9.763827E+00 | loss scale: 1.0 |"
        for i, (s, size) in enumerate(zip(seconds, batches, strict=True), 1)
    ]
    return "\n".join(rank + line for line in lines) + "\n"


NEMO = """\
[NeMo I 2026-01-05 03:00:01 megatron_gpt_pretraining:37]
    name: megatron_gpt
    trainer:
      devices: 8
      num_nodes: 8
      precision: bf16
    model:
      micro_batch_size: 1
      global_batch_size: 128
      tensor_model_parallel_size: 4
      pipeline_model_parallel_size: 4
      virtual_pipeline_model_parallel_size: 5
      encoder_seq_length: 8192
      num_layers: 80
      hidden_size: 8192
      ffn_hidden_size: 28672
      num_attention_heads: 64
      num_query_groups: 8
      activations_checkpoint_granularity: null
      fp8: false
"""
NEMO_STEP = (
    "Training epoch 0, iteration {i}/99 | lr: 1.9e-06 | global_batch_size: 128 | global_step: {i} | "
    "reduced_train_loss: 11.03 | train_step_timing in s: {s}"
)


def nemo(seconds=(60.0, 25.0, 20.0, 20.2, 19.8)):
    """A log as NeMo prints it."""
    return NEMO + "\n".join(NEMO_STEP.format(i=i, s=s) for i, s in enumerate(seconds)) + "\n"


def trace(starts_us=(0, 20e6, 40.2e6), name="NVIDIA H100 80GB HBM3", **changes):
    """A trace as PyTorch's profiler writes it."""
    steps = [
        {"ph": "X", "cat": cat, "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": start + late, "dur": 19e6}
        for i, start in enumerate(starts_us, 5)
        for cat, late in (("user_annotation", 0), ("gpu_user_annotation", 9e5))
    ]
    kernel = {"ph": "X", "cat": "kernel", "name": "sm90_xmma_gemm_bf16", "pid": 0, "tid": 7, "ts": 1e6, "dur": 500}
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": name, "totalGlobalMem": 85899345920, "numSms": 132}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 64},
    }
    return json.dumps({**head, "traceEvents": [*steps, kernel, {"ph": "i", "name": "[memory]"}], **changes})


SUMMARY = """\
Processing [run.sqlite] with [nvtx_sum.py]...
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Style,Range
60.0,80400000000,4,20100000000.0,20050000000.0,19900000000,20400000000,1000.0,PushPop,:iteration
40.0,10000000000,4,2500000000.0,2500000000.0,2400000000,2600000000,1000.0,PushPop,:optimizer
"""
