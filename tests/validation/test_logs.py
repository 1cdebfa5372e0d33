"""Logs of each software say what was run; what contradicts itself is no run."""

import json
import random
import re
from dataclasses import replace

import pytest

from coopt.instance.texts import InstanceError
from coopt.validation.own_runs import measurements_of, table_of
from coopt.validation.published import COLUMNS, read_measurements
from coopt.validation.runs import run_of
from tests.validation.own import megatron

STEP = " iteration {i}/ 50 | consumed samples: {n} | elapsed time per iteration (ms): {ms} | global batch size: {b} |"
LATENT = {
    "multi_latent_attention": True, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_head_dim": 128,
    "qk_pos_emb_head_dim": 64, "v_head_dim": 128, "num_attention_heads": 128, "num_layers": 61, "hidden_size": 7168,
    "ffn_hidden_size": 18432, "num_experts": 256, "moe_router_topk": 8, "moe_ffn_hidden_size": 2048,
    "moe_layer_freq": "([0]*3+[1]*58)", "moe_shared_expert_intermediate_size": 2048, "mtp_num_layers": 1,
    "moe_router_num_groups": 8, "moe_router_group_topk": 4, "pipeline_model_parallel_layout": "Et*4|(t*4|)*14tmL",
    "pipeline_model_parallel_size": 4, "virtual_pipeline_model_parallel_size": 4, "padded_vocab_size": 129280,
}  # fmt: skip
HYBRID = {
    "hybrid_layer_pattern": "ME*-" * 3, "num_layers": 12, "num_experts": 8, "moe_router_topk": 2,
    "moe_ffn_hidden_size": 2688, "mamba_num_heads": 128, "mamba_head_dim": 64, "mamba_num_groups": 8,
    "mamba_state_dim": 128, "swiglu": False, "pipeline_model_parallel_size": 1,
    "virtual_pipeline_model_parallel_size": None,
}  # fmt: skip


def lines(*parts, prefix=""):
    return "".join(f"{prefix}{line}\n" for part in parts for line in part.splitlines())


def steps(ms=(90000.0, 52000.0, 51000.0, 51000.0), b=1536, form=STEP):
    return "\n".join(form.format(i=i, n=i * b, b=b, ms=one) for i, one in enumerate(ms, 1))


BRIDGE = """\
[model] Non-default values (vs Mcore TransformerConfig):
  bf16: True  (Mcore default: False)
  context_parallel_size: 2  (Mcore default: 1)
  ffn_hidden_size: 53248  (Mcore default: None)
  fp8: 'e4m3'  (Mcore default: None)
  fp8_recipe: 'mxfp8'  (Mcore default: 'delayed')
  gated_linear_unit: True  (Mcore default: False)
  hidden_size: 16384  (Mcore default: 0)
  num_attention_heads: 128  (Mcore default: 0)
  num_layers: 126  (Mcore default: 0)
  num_query_groups: 8  (Mcore default: None)
  pipeline_model_parallel_size: 8  (Mcore default: 1)
  recompute_granularity: 'selective'  (Mcore default: None)
  recompute_modules: ['core_attn']  (Mcore default: None)
  sequence_parallel: True  (Mcore default: False)
  tensor_model_parallel_size: 2  (Mcore default: 1)
  virtual_pipeline_model_parallel_size: 4  (Mcore default: None)
  vocab_size: 128256  (Mcore default: None)
[ddp] Non-default values (vs Mcore DistributedDataParallelConfig):
  use_distributed_optimizer: True  (Mcore default: False)
[train]:
  global_batch_size: 1536
  micro_batch_size: 1
[dataset]:
  seq_length: 8192
"""
BRIDGE_YAML = """\
model:
  _target_: megatron.bridge.models.mla_provider.MLAModelProvider
  expert_model_parallel_size: 64
  ffn_hidden_size: 18432
  fp8: null
  gated_linear_unit: true
  hidden_size: 7168
  kv_lora_rank: 512
  moe_ffn_hidden_size: 2048
  moe_layer_freq:
  - 0
  - 1
  moe_router_topk: 8
  multi_latent_attention: true
  num_attention_heads: 128
  num_layers: 2
  num_moe_experts: 256
  q_lora_rank: 1536
  recompute_granularity: selective
  recompute_modules:
  - moe_act
  - mla_up_proj
  seq_length: 4096
train:
  global_batch_size: 1536
  micro_batch_size: 1
"""
TITAN = """\
[titan] - root - INFO - Building device mesh with parallelism: pp=2, dp_replicate=2, dp_shard=8, cp=1, tp=4, ep=1{etp}
[titan] - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory
[titan] - root - INFO - Model llama3 70B size: 70,553,706,496 total parameters
[titan] - root - INFO - Applied {kind} activation checkpointing to the model
[titan] - root - INFO - Using pipeline schedule Interleaved1F1B with 8 microbatches and 8 stages.
[titan] - root - INFO - Swapped to Float8Linear layers
[titan] - root - INFO - Trainer is initialized with {batch}, total steps 100 (warmup 20)
"""
TITAN_STEP = "[titan] - INFO - step: {i}  loss:  7.6  grad_norm: 2.6  memory: 66.9GiB(84.6%)  tps: {ms}  mfu: N/A"
OLD_BATCH = "local batch size 8, global batch size 128, gradient accumulation steps 1, sequence length 8192"
NEW_BATCH = (
    "65536 tokens per DP rank, 1048576 tokens per train step, gradient accumulation steps 1,"
    " maximum context length 8192"
)
AUTOMODEL = """\
INFO:root:Recipe: BenchmarkingRecipeForNextTokenPrediction
INFO:root:World size: 256
step_scheduler:
  global_batch_size: 512
  local_batch_size: 4
distributed:
  strategy: fsdp2
  tp_size: 1
  pp_size: 4
  ep_size: 64
  activation_checkpointing: true
  pipeline:
    pp_microbatch_size: 1
    layers_per_stage: 8
model:
    pretrained_model_name_or_path: deepseek-ai/DeepSeek-V3
dataset:
  seq_len: 4096
"""
AUTOMODEL_STEP = "INFO:root:step {i} | epoch 0 | loss 1.2 | mem 60.1 GiB | tps {ms}(1.00/gpu) | num_label_tokens 9"
SPEED = """\
[2026-08-22 15:01:11,001] [INFO] [config.py:1013:print]   train_batch_size ............. 256
[2026-08-22 15:01:11,001] [INFO] [config.py:1013:print]   train_micro_batch_size_per_gpu  4
[2026-08-22 15:01:11,001] [INFO] [config.py:1013:print]   train_micro_batch_size_per_gpu .. 4
[2026-08-22 15:01:11,001] [INFO] [config.py:1013:print]   bfloat16_config .............. enabled=True check=True
[2026-08-22 15:01:11,001] [INFO] [config.py:1013:print]   world_size ................... 64
[2026-08-22 15:01:11,001] [INFO] [config.py:1013:print]   zero_optimization_stage ...... 3
"""
SPEED_STEP = (
    "[INFO] epoch=0/micro_step={i}/global_step={i}, RunningAvgSamplesPerSec=9.0, CurrSamplesPerSec={ms}, Mem=1GB"
)
MAXTEXT = """\
Config param base_emb_dim: 8192
Config param base_mlp_dim: 28672
Config param base_num_decoder_layers: 80
Config param base_num_kv_heads: 8
Config param base_num_query_heads: 64
Config param dcn_tensor_parallelism: 1
Config param dtype: bfloat16
Config param head_dim: 128
Config param ici_fsdp_parallelism: -1
Config param ici_tensor_parallelism: 4
Config param kv_lora_rank: 512
Config param max_target_length: 8192
Config param mlp_activations: ['silu', 'linear']
Config param model_name: llama3.1-70b
Config param num_experts: 1
Config param per_device_batch_size: 2.0
Config param quantization: fp8
Config param remat_policy: full
Config param vocab_size: 128256
Num_devices: 64, shape OrderedDict()
"""
MAXTEXT_STEP = (
    "completed step: {i}, seconds: {ms}, TFLOP/s/device: 446.0, Tokens/s/device: 1.0, total_weights: 1, loss: 1.0"
)


def mllog(key, value=None, **more):
    return f":::MLLOG {json.dumps({'key': key, 'value': value, 'metadata': {}} | more)}"


MLPERF = "\n".join(
    mllog(key, value)
    for key, value in {
        "submission_benchmark": "llama31_405b", "submission_platform": "DGX NVIDIA GB200", "global_batch_size": 1152,
        "micro_batch_size": 1, "gradient_accumulation_steps": 144, "max_sequence_length": 8192, "tensor_parallelism": 4,
        "pipeline_parallelism": 8, "context_parallelism": 2, "lowest_numerical_precision_in_linear": "NVFP4",
    }.items()
)  # fmt: skip
BLOCKS = "\n".join(
    mllog(f"block_{end}", time_ms=1000 * (n * 100 + 50 * (end == "stop")), metadata={"samples_count": n * 1152 * 10})
    for n in (1, 2, 3)
    for end in ("start", "stop")
)

EXPECTED = {
    "latent": (
        lines(megatron(**LATENT)),
        {
            "head_dim": 192, "kv_heads": 128, "value_dim": 128, "kv_rank": 512, "ffn": 2048, "dense_layers": 3,
            "dense_ffn": 18432, "shared_ffn": 2048, "extra_predictions": 1, "top_groups": 4, "interleave": 4,
            "pipeline_layout": "Et*4|(t*4|)*14tmL", "gated": 1,
        },
    ),
    "hybrid": (
        megatron(**HYBRID),
        {
            "layers": 12, "mamba_layers": 3, "attention_layers": 3, "ffn_layers": 6, "dense_layers": 3,
            "mamba_state": 128, "gated": 0,
        },
    ),
    "bridge": (
        lines(BRIDGE, steps(), "Step Time : 51.00s GPU utilization: 900.0MODEL_TFLOP/s/GPU", prefix="0: "),
        {
            "layers": 126, "ffn": 53248, "kv_heads": 8, "vocab": 128256, "tp": 2, "pp": 8, "cp": 2, "interleave": 4,
            "zero": 1, "global_batch": 1536, "precision": "mxfp8", "recompute": "selective", "sequence_parallel": 1,
            "iter_time_s": 51.0,
        },
    ),
    "bridge-yaml": (
        lines(BRIDGE_YAML, steps(), prefix="[pod/train-0/main] 2026-08-22T15:01:11.123Z "),
        {
            "head_dim": 192, "kv_rank": 512, "dense_layers": 1, "ep": 64, "recompute": "moe_act+mla_up_proj", "zero": 0,
            "tp": 1,
        },
    ),
    "titan": (
        lines(
            TITAN.format(etp=", etp=1", kind="full", batch=OLD_BATCH),
            steps((1, 700, 829), form=TITAN_STEP),
            prefix="[rank0]:",
        )
        + lines(steps((1, 700, 829), form=TITAN_STEP), prefix="[rank1]:"),
        {
            "gpus": 128, "gpu": "H100", "tp": 4, "pp": 2, "micro_batch": 1, "interleave": 4, "global_batch": 128,
            "zero": 3, "precision": "fp8", "recompute": "full", "tokens_per_s_per_gpu": 829, "model": "llama3-70B",
        },
    ),
    "titan-tokens": (
        lines(TITAN.format(etp="", kind="SelectiveAC", batch=NEW_BATCH), steps((1, 700, 829), form=TITAN_STEP)),
        {"gpus": 128, "micro_batch": 1, "global_batch": 128, "seq": 8192, "recompute": "selective"},
    ),
    "automodel": (
        lines(AUTOMODEL, steps((1e5, 2e5, 262144.0), form=AUTOMODEL_STEP)),
        {
            "gpus": 256, "model": "DeepSeek-V3", "pp": 4, "ep": 64, "micro_batch": 1, "interleave": 2,
            "recompute": "full", "zero": 3, "precision": "bf16", "iter_time_s": 8.0,
        },
    ),
    "deepspeed": (
        lines(SPEED, steps((1.0, 30.0, 32.0), form=SPEED_STEP)),
        {"global_batch": 256, "micro_batch": 4, "zero": 3, "gpus": 64, "precision": "bf16", "iter_time_s": 8.0},
    ),
    "maxtext": (
        lines(
            MAXTEXT, steps((60.0, 25.0, 20.0), form=MAXTEXT_STEP), prefix="I0822 15:01:11.123 1234 max_logging.py:30] "
        ),
        {
            "layers": 80, "ffn": 28672, "experts": None, "kv_rank": None, "gpus": 64, "tp": 4, "zero": 3,
            "global_batch": 128, "micro_batch": 8, "precision": "fp8", "recompute": "full", "gated": 1,
            "iter_time_s": 20.0,
        },
    ),
    "mlperf": (
        lines(MLPERF, BLOCKS, prefix="0: "),
        {
            "model": "llama3-405b", "gpu": "GB200", "gpus": 512, "tp": 4, "pp": 8, "cp": 2, "precision": "nvfp4",
            "iter_time_s": 5.0,
        },
    ),
    "primus-titan": (
        lines(
            TITAN.format(etp="", kind="FullAC", batch=NEW_BATCH),
            "Float8 training active with recipe rowwise",
            steps((1, 700, 829), form=TITAN_STEP),
            prefix="[20260822 15:01:11][rank-127/128][INFO ] : ",
        ),
        {"gpus": 128, "tp": 4, "pp": 2, "recompute": "full", "precision": "fp8-cs", "zero": 3},
    ),
    "primus": (
        lines(
            megatron().replace(".0 | throughput", ".0/19999.9 | hip mem usage: 1GiB | compute"),
            prefix="[20260822 15:01:11][rank-0/64][INFO ] : ",
        ),
        {"gpus": 64, "tp": 4, "iter_time_s": 20.0},
    ),
}  # fmt: skip


@pytest.fixture
def read(tmp_path):
    """The only row of a log with this text."""

    def of(text, **stated):
        file = tmp_path / "mine.log"
        file.write_text(text, "utf-8")
        return measurements_of([str(file)], stated).log_rows[0]

    return of


@pytest.mark.parametrize("name", EXPECTED)
def test_each_software_tells_what_was_run(read, name):
    text, expected = EXPECTED[name]
    row = read(text)
    assert {column: row.cell(column) for column in expected} == expected


def test_linear_and_sparse_attention_have_columns(read, tmp_path):
    linear = {
        **{"linear_num_value_heads": 32, "linear_value_head_dim": 128},
        **{"linear_num_key_heads": 16, "linear_key_head_dim": 128},
    }
    row = read(
        megatron(experimental_attention_variant="gdn", linear_attention_freq=4, attention_output_gate=True, **linear)
    )
    sizes = {"kind": "gated-deltanet", "layers": 60, "heads": 32, "head_dim": 128, "groups": 16, "state": 128}
    assert (row.shape["mixers"], row.shape["output_gate"]) == ((sizes,), True)
    assert run_of(measured(tmp_path, row)).workload.model.with_attention == 20
    pattern = read(megatron(**HYBRID | linear | {"hybrid_layer_pattern": "MG*E" * 3})).shape
    assert (pattern["mixers"][0]["layers"], pattern["mamba_layers"], pattern["attention_layers"]) == (3, 3, 3)
    indexer = {"dsa_indexer_n_heads": 64, "dsa_indexer_head_dim": 128, "dsa_indexer_topk": 2048}
    sparse = read(megatron(**LATENT, **indexer, experimental_attention_variant="dsa")).shape
    assert (sparse["index_heads"], sparse["index_dim"], sparse["index_tokens"]) == (64, 128, 2048)


def measured(tmp_path, row):
    """The row as a table has it, of some GPU."""
    file = tmp_path / "rows.csv"
    file.write_text(table_of([replace(row, gpu="H100")]), "utf-8")
    (again,) = read_measurements(file)
    return again


def test_what_a_run_is_made_of_is_read(read):
    switches = {
        "cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn", "moe_router"],
        "moe_token_dispatcher_type": "flex", "moe_flex_dispatcher_backend": "ncclep", "moe_hybridep_num_sms": 32,
        "fp8": "e4m3", "fp8_output_proj": True, "use_transformer_engine_op_fuser": True,
        "use_precision_aware_optimizer": True, "main_params_dtype": "torch.float32", "exp_avg_dtype": "torch.bfloat16",
        "exp_avg_sq_dtype": "torch.bfloat16", "accumulate_allreduce_grads_in_fp32": False,
    }  # fmt: skip
    assert read(megatron(**LATENT, **switches)).software == {
        "framework": "megatron-core", "graphs": "scoped", "graph_modules": ("attn", "moe_router"),
        "dispatcher": "hybridep", "dispatcher_multiprocessors": 32, "state_bytes": 8, "gradient_bytes": 2,
        "fp8_head": True, "grouped_experts": True,
    }  # fmt: skip
    full = read(megatron(cuda_graph_impl="full_iteration", moe_token_dispatcher_type="alltoall"))
    assert full.software == {"framework": "megatron-core", "graphs": "full"}
    older = {"external_cuda_graph": True, "moe_token_dispatcher_type": "flex", "moe_enable_deepep": True}
    made_of = read(megatron(**LATENT, **older)).software
    assert (made_of["dispatcher"], made_of["graphs"]) == ("deepep", "scoped")
    for scope, modules, is_noted in (
        ("full", ("attn", "mlp", "moe"), False),
        ("[]", ("attn", "mlp", "moe"), True),
        ("full_iteration_inference", None, False),
    ):
        layers = read(megatron(**LATENT, cuda_graph_impl="local", cuda_graph_scope=scope))
        graphs = (layers.software["graphs"], layers.software.get("graph_modules"))
        assert graphs == ("scoped" if modules else "none", modules)
        assert ("not named: the modules" in layers.notes) == is_noted
    for scope, graphs in (("layer", "scoped"), ("block", "none")):
        newer = {"cuda_graph_modules": "[]", "inference_cuda_graph_scope": f"InferenceCudaGraphScope.{scope}"}
        assert read(megatron(**LATENT, cuda_graph_impl="local", **newer)).software["graphs"] == graphs
    assert read(megatron(cuda_graph_impl="none")).software["graphs"] == "none"
    unsaid = read(megatron(**LATENT, cuda_graph_impl="local", moe_token_dispatcher_type="alltoall"))
    assert (unsaid.software["dispatcher"], "of CUDA graphs" in unsaid.notes) == ("all-to-all", True)


def test_what_real_logs_hold_besides_is_read(read):
    types = "  exp_avg_dtype:\n    _call_: false\n    _target_: torch.bfloat16\n"
    yaml = BRIDGE_YAML + "  use_precision_aware_optimizer: true\n" + types + types.replace("_avg_", "_avg_sq_")
    assert read(lines(yaml, steps())).software["state_bytes"] == 8
    assert run_of(read(megatron(num_distributed_optimizer_instances=2), gpu="H100")).split.dp_replicate == 2
    assert read(megatron(ep_x="bf16", context_x="fp8")) == read(megatron())  # values that begin as keys do
    group = "0: Rank 0 has combined group of data parallel and context parallel : [0, 2, 4, 6]\n"
    row = read(group + MLPERF.replace(" 144}", " 144.0}").replace('"context_', '"c_') + "\n" + group + BLOCKS)
    assert (row.gpus, row.cp) == (256, None)
    assert read(MLPERF.replace('"tensor_', '"t_') + "\n" + BLOCKS).gpus is None
    tile = lines(
        AUTOMODEL, "    te_fp8:", "      recipe: mxfp8", "    dispatcher: hybridep", "Max iter time: 8.0 seconds"
    )
    assert (read(tile).precision, read(tile).software["dispatcher"]) == ("mxfp8", "hybridep")
    assert read(tile).notes == "read from a log of NeMo AutoModel; not printed: cp 1"
    enums = {"NONE": "bf16", "TE_MXFP8": "mxfp8", "FP8_GPU": "fp8"}
    for member, precision in enums.items():
        text = MAXTEXT.replace("quantization: fp8", f"quantization: QuantizationType.{member}")
        assert read(lines(text, steps((20, 20), form=MAXTEXT_STEP))).precision == precision
    with pytest.raises(InstanceError, match="seq_length = 4096, but line 1 has sequence_length = 1024"):
        read(lines("  sequence_length: 1024", BRIDGE_YAML, steps()))
    with pytest.raises(InstanceError, match="lack hybrid_layer_pattern"):
        read(lines(BRIDGE.replace("  bf16: True", "  is_hybrid_model: True"), steps()))


def test_a_count_that_is_not_printed_is_told_by_the_rate(read):
    row = read(
        lines(BRIDGE, steps().replace(" global batch", " throughput per GPU (TFLOP/s/GPU): 2403.0 | global batch"))
    )
    assert (row.gpus, "imply about 2" in row.notes) == (None, True)
    ends = read(megatron(decoder_first_pipeline_num_layers=18, virtual_pipeline_model_parallel_size=None))
    assert "18 layers (first)" in ends.notes
    whole = read(megatron(decoder_first_pipeline_num_layers=17, virtual_pipeline_model_parallel_size=None))
    assert whole.pipeline_layout == f"E{'t' * 17}|({'t' * 21}|)*2{'t' * 21}L"


def test_any_launcher_may_stand_before_lines(read):
    wanted = read(EXPECTED["bridge"][0])
    for prefix in (
        "",
        "[rank0]:",
        "[1,0]<stdout>:",
        "node-0  | ",
        "worker-0: ",
        "2026-08-22 15:01:11,123 - INFO - ",
        "\x1b[32m",
    ):
        assert read(lines(BRIDGE, steps(), prefix=prefix)) == wanted


@pytest.mark.parametrize(
    ("text", "stated", "complaint"),
    [
        (megatron(num_layers="9" * 5000), {}, "layers = .*needs a whole number"),
        (megatron(pipeline_model_parallel_layout="E(t*999)*999999999L"), {}, r"layout = \S*: it has .* letters"),
        (megatron(pipeline_model_parallel_layout="Et*4|" * 9999), {}, r"layout = .{117}\.\.\.: "),
        (megatron(pipeline_model_parallel_layout="[]"), {}, r"line \d+: .*_layout = \[\], needs None or a layout"),
        (megatron(decoder_last_pipeline_num_layers=-1), {}, "last_.* = -1, needs None or "),
        (
            megatron(decoder_first_pipeline_num_layers=3, pipeline_model_parallel_layout="Et*20|(t*20|)*2t*20L"),
            {},
            "first_pipeline_num_layers = 3, but the log has pipeline_model_parallel_layout too",
        ),
        (MLPERF + "\n" + mllog("block_stop", time_ms="soon", metadata=[]), {}, "no line with the time of an iteration"),
        ("hello\nworld\n", {}, "not a known form, needs a log of .*Megatron Bridge.*MaxText"),
        (lines(BRIDGE), {}, "no line with the time of an iteration"),
        (megatron() + megatron(), {}, r"line \d+: iteration 1 after 5: more than one run"),
        (megatron() + megatron(tensor_model_parallel_size=8), {}, r"parallel_size = [28], but line \d+ has .* = 4"),
        (megatron().replace("using world size: 64", "using world size: 32"), {}, "gpus = 32|world_size = 64"),
        (megatron().replace("data-parallel size: 4", "data-parallel size: 2"), {}, "data_parallel_size = 4|dp = 2"),
        (
            re.sub(r"([^_]tensor_model_parallel_size \.+) 4", r"\1 8", megatron()),
            {},
            "data-parallel size 4 x TP 8 x PP 4",
        ),
        (megatron().replace("  swiglu", "  swig"), {}, "lack swiglu, needs them all"),
        (megatron().replace("-- end of arguments --", ""), {}, "its settings lack their end, needs them all"),
        (megatron(fp8="e4m2"), {}, r"line \d+: fp8 = 'e4m2', needs e4m3, hybrid"),
        (megatron(exp_avg_dtype="torch.float31"), {}, "exp_avg_dtype = 'torch.float31', needs float32"),
        (megatron(num_distributed_optimizer_instances=3), {}, "optimizer_instances = 3 does not divide DP 4 x CP 1"),
        (megatron(num_layers=40), {}, "the log reports 400 TFLOP/s for each GPU, .* imply 2"),
        (megatron(num_layers="8O"), {}, "num_layers = '8O', needs a whole number|layers = '8O'"),
        (megatron(), {"model": "llama3-405b"}, "layers = 80, but model = llama3-405b has layers = 126"),
        (megatron(**HYBRID | {"num_layers": 88}), {}, "pattern has 12 layers, but num_layers = 88"),
        (
            megatron(**HYBRID | {"hybrid_layer_pattern": "MD*E" * 3}),
            {},
            r"has D \(sparse attention with an indexer\): tables have no columns",
        ),
        (megatron(**LATENT | {"num_layers": 60}), {}, "layout = .* has 61 layers t .* needs the 60|entries"),
        (megatron(experimental_attention_variant="gdn2"), {}, "experimental_attention_variant = gdn2: .*such layers"),
        (megatron(experimental_attention_variant="gdn"), {}, "linear_attention_freq = '': needs a number"),
        (
            EXPECTED["titan"][0].replace("llama3 70B", "llama3 8B"),
            {},
            "70,553,706,496 parameters, but llama3-8b has 8,0",
        ),
        (EXPECTED["mlperf"][0].replace('"value": 144', '"value": '), {}, r"line 5: no JSON behind :::MLLOG"),
    ],
)
def test_what_contradicts_itself_is_refused_with_both(read, text, stated, complaint):
    with pytest.raises(InstanceError, match=complaint):
        read(text, **stated)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("gated_linear_unit", "gated_lineax_unit", "line 6: .*gated_lineax_unit.* and gated_linear_unit is missing"),
        ("gated_linear_unit", "gated_li ear_unit", "and gated_linear_unit is missing"),
        ("gated_linear_unit:", "gated_linear_unit~", "and gated_linear_unit is missing"),
        (
            "granularity: selective",
            "granularity: No",
            "line 19: recompute_granularity = 'No', needs selective, full or",
        ),
        ("- moe_act", "- moe_ax", "recompute_modules = 'moe_ax, mla_up_proj', needs core_attn, moe_act"),
        ("- mla_up_proj", "#mla_up_proj", "line 22: '#mla_up_proj' .* recompute_modules, needs whole lists"),
        ("  - mla_up_proj\n", "\n", "line 22: .* needs whole lists"),
        ("  - moe_act\n", "  - moe_act@", "line 21: '- moe_act@  - mla_up_proj', needs one item"),
        ("  moe_layer_freq:\n", "\n", "line 10: .* needs whole lists"),
        ("  moe_layer_freq:\n", "", "line 10: '- 0' .* moe_ffn_hidden_size, needs whole lists"),
        ("  - 1\n", "", "line 10: moe_layer_freq = 0: no layer has experts"),
        ("  - 1\n", "  - x1\n", "moe_layer_freq has 'x'"),
        ("  num_moe_experts: 256\n", "", "lack num_moe_experts"),
        ("  multi_latent_attention: true\n", "", "lack multi_latent_attention"),
        ("18432", "18#32", "ffn_hidden_size|dense_ffn = '18#32'"),
        ("18432", "184", "line 4: ffn_hidden_size = 184, but hidden_size = 7168: needs the width of a dense layer"),
        ("18432", "1843", "line 4: ffn_hidden_size = 1843, needs a multiple of 8"),
        ("size: 64", "size: 6", "num_moe_experts = 256, but line 3 has expert_model_parallel_size = 6, needs one that"),
        ("size: 64", "size:  4", "line 3: .* has a blank beside its number"),
        ("kv_lora_rank: 512", "kv_lora_rank:#512", "'kv_lora_rank:#512' ends early"),
        ("  fp8: null", "  fp", "line 5: 'fp' ends early"),
    ],
)
def test_a_slip_of_one_line_of_yaml_is_refused(read, old, new, complaint):
    assert old in BRIDGE_YAML
    with pytest.raises(InstanceError, match=complaint):
        read(lines(BRIDGE_YAML.replace(old, new, 1), steps()))


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ("  gated_linear_unit: true\n", "gated 0"),
        ("  moe_layer_freq:\n  - 0\n  - 1\n", "dense_layers"),
        ("  recompute_modules:\n  - moe_act\n  - mla_up_proj\n", "which modules are recomputed"),
        ("  moe_ffn_hidden_size: 2048\n", "FFN width of experts"),
        ("  expert_model_parallel_size: 64\n", "ep,"),
    ],
)
def test_settings_that_are_lost_are_told(read, lost, told):
    row = read(lines(BRIDGE_YAML.replace(lost, "", 1), steps()))
    assert told in row.notes.partition("not printed: ")[2]
    assert told not in read(lines(BRIDGE_YAML, steps())).notes


def test_a_list_of_layers_that_is_cut_is_told(read):
    row = read(lines(BRIDGE_YAML.replace("num_layers: 2", "num_layers: 5"), steps()))
    assert (row.shape["dense_layers"], "moe_layer_freq of the last 3 layers" in row.notes) == (1, True)
    with pytest.raises(InstanceError, match="moe_layer_freq has 60 entries, but num_layers = 61"):
        read(megatron(**LATENT | {"moe_layer_freq": [0] * 2 + [1] * 58}))


def columns(row):
    return {name: row.cell(name) for name in COLUMNS}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_damaged_log_is_refused_or_read_as_it_was(read, name):
    """Cut, with lines left out, or with a byte changed outside numbers: never other columns in silence."""
    text, draw = EXPECTED[name][0], random.Random(name)
    wanted, whole = columns(read(text)), text.splitlines(keepends=True)
    for i in range(27):
        damaged = list(whole)
        place = draw.randrange(len(whole))
        if i % 3 == 0:
            damaged = damaged[:place]
        elif i % 3 == 1:
            damaged[place] = damaged[place][: draw.randrange(1, len(damaged[place]))] + "\n"
        else:
            at = draw.choice([n for n, letter in enumerate(whole[place]) if not letter.isdigit()])
            damaged[place] = whole[place][:at] + "\x00" + whole[place][at + 1 :]
        try:
            row = columns(read("".join(damaged)))
        except InstanceError as refused:
            assert "mine" in str(refused)  # noqa: PT017
        else:
            said = ("notes", "iter_time_s", "tokens_per_s_per_gpu", *row["notes"].partition("not printed: ")[2].split())
            others = {k for k in row if row[k] not in (None, "") and k not in said and row[k] != wanted[k]}
            assert not others, (i, place, damaged[place : place + 1], others)
