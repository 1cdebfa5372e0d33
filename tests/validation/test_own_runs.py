"""Logs and traces become rows of a table of measurements."""

import gzip

import pytest

from coopt.instance.texts import InstanceError
from coopt.validation.own_runs import measurements_of, table_of
from coopt.validation.published import read_measurements
from coopt.validation.runs import run_of
from tests.validation.own import NEMO_STEP, SUMMARY, megatron, nemo, trace


@pytest.fixture
def read(tmp_path):
    """The only row of a file with this text."""

    def of(text, name="mine-64.log", nvtx_range=None, **stated):
        file = tmp_path / name
        file.write_text(text, "utf-8")
        (row,) = measurements_of([str(file)], stated, nvtx_range).log_rows
        return row

    return of


def test_a_log_of_megatron_tells_everything_but_the_gpu(read, tmp_path):
    row, file = read(megatron(), gpu="H100"), tmp_path / "rows.csv"
    assert (row.id, row.gpu, row.gpus, row.precision, row.recompute, row.zero) == (
        "mine-64", "H100", 64, "bf16", "none", 1,
    )  # fmt: skip
    assert (row.layers, row.hidden, row.ffn, row.heads, row.kv_heads, row.head_dim) == (80, 8192, 28672, 64, 8, 128)
    assert (row.vocab, row.seq, row.experts, row.topk) == (128256, 8192, None, None)
    assert (row.tp, row.pp, row.cp, row.interleave, row.micro_batch, row.global_batch) == (4, 4, 1, 5, 1, 128)
    assert row.iter_time_s == run_of(row).measured_s == 20.0  # the first two warm up
    file.write_text(table_of([row]), "utf-8")
    assert read_measurements(file) == [row]


def test_whatever_a_log_begins_with_its_iterations_count(read):
    """A rank before every line, a batch that grows, few iterations, a vocabulary that a sentence tells."""
    assert read(megatron(rank="[default63]:")) == read(megatron())
    row = read(megatron(seconds=(9.0, 9.0, 20.0, 20.2, 20.4), batches=(64, 64, 128, 128, 128)))
    assert (row.global_batch, row.iter_time_s) == (128, 20.2)
    assert [read(megatron(seconds=seconds)).iter_time_s for seconds in ((60.0, 20.0), (60.0,))] == [20.0, 60.0]
    row = read(megatron(padded_vocab_size=None))
    assert (row.vocab, row.gpus) == (128256, 64)


def test_switches_of_megatron_become_columns(read):
    selective = {"recompute_granularity": "selective"}
    offloading = {"fine_grained_activation_offloading": True}
    for switches, column, value in (
        ({"group_query_attention": False, "num_query_groups": 1}, "kv_heads", None),
        ({"use_distributed_optimizer": False}, "zero", 0),
        ({"use_torch_fsdp2": True}, "zero", 3),
        ({"use_megatron_fsdp": True, "data_parallel_sharding_strategy": "optim_grads"}, "zero", 2),
        ({"fp8": "hybrid"}, "precision", "fp8-ds"),
        ({"bf16": False, "fp16": True}, "precision", "fp16"),
        ({"recompute_granularity": "full"}, "recompute", "full"),
        (selective, "recompute", "selective"),
        (selective | {"recompute_modules": ["layernorm", "moe_act"]}, "recompute", "norm+act"),
        (selective | {"recompute_modules": ["layernorm"]}, "recompute", "norm+act"),
        (selective | {"recompute_modules": ["layernorm", "moe_act", "mla_up_proj"]}, "recompute", "norm+act"),
        (selective | {"recompute_modules": ["layernorm", "moe", "mlp"]}, "recompute", "norm+ffn"),
        (selective | {"recompute_modules": ["mla_up_proj", "mlp"]}, "recompute", "mla_up_proj+mlp"),
        ({"sequence_parallel": True}, "sequence_parallel", 1),
        ({"sequence_parallel": False}, "sequence_parallel", 0),
        ({"activation_offload_fraction": 0.4}, "offload_percent", 0),
        (offloading, "offload_percent", 100),
        (offloading | {"activation_offload_fraction": 0.4}, "offload_percent", 40),
    ):
        assert getattr(read(megatron(**switches)), column) == value
    switches = {"expert_tensor_parallel_size": 1, "overlap_moe_expert_parallel_comm": True}
    experts = read(megatron(num_experts=8, moe_ffn_hidden_size=14336, **switches))
    assert (experts.experts, experts.topk, experts.ffn, experts.ep_overlap) == (8, 2, 14336, 1)
    assert "ETP=1" in experts.notes
    halved = megatron(num_experts=8, moe_ffn_hidden_size=14336, **switches | {"expert_tensor_parallel_size": 2})
    assert run_of(read(halved, gpu="H100")).split.expert_tp == 2


def test_what_a_log_states_of_a_mapping_is_predicted(read):
    switches = {"fine_grained_activation_offloading": True, "activation_offload_fraction": 0.4}
    row = read(megatron(sequence_parallel=False, recompute_granularity=None, **switches), gpu="H100")
    split = run_of(row).split
    assert (split.sequence_parallel, split.offload_percent) == (False, 40)
    assert run_of(read(megatron(sequence_parallel=True), gpu="H100")).split.sequence_parallel


def test_a_share_that_is_none_is_refused(read):
    switches = {"fine_grained_activation_offloading": True, "activation_offload_fraction": "most"}
    with pytest.raises(InstanceError, match="offload_percent = 'most'"):
        read(megatron(**switches))


def test_a_log_of_nemo_tells_the_same(read):
    row, other = read(nemo()), read(megatron())
    for name in ("layers", "hidden", "ffn", "heads", "kv_heads", "seq", "tp", "pp", "interleave", "micro_batch"):
        assert getattr(row, name) == getattr(other, name), name
    assert (row.gpus, row.gpus_per_node, row.global_batch, row.precision) == (64, 8, 128, "bf16")
    assert row.iter_time_s == 20.0
    bar = "Epoch 0: : 4%|4| 4/100 [01:00<00:00, global_step=3.00, train_step_timing in s=20.00]"
    assert read(nemo().split(NEMO_STEP[:20])[0] + bar).iter_time_s == 20.0


def test_a_trace_tells_time_gpu_and_count(read):
    row = read(trace(), name="mine.json", model="llama3-70b", tp="4", pp="4", global_batch="128", precision="bf16")
    assert (row.iter_time_s, row.gpu, row.gpus) == (pytest.approx(20.1), "H100", 64)
    assert run_of(row).gpu.name == "h100-sxm"
    assert read(trace(starts_us=(0,)), name="mine.json").iter_time_s == 19.0
    assert read(trace(starts_us=(0, 20e6, 40e6), name="NVIDIA GB200"), name="mine.json").gpu == "GB200"


def test_a_compressed_trace_is_read(tmp_path):
    file = tmp_path / "mine.pt.trace.json.gz"
    file.write_bytes(gzip.compress(trace().encode()))
    (row,) = measurements_of([str(file)], {}).log_rows
    assert (row.id, row.gpus) == ("mine", 64)
    file.write_bytes(b"no gzip")
    with pytest.raises(InstanceError, match="gzip"):
        measurements_of([str(file)], {})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("{", "mine.json: not JSON"), ("{}", "ProfilerStep#N"), (trace(traceEvents=3), "ProfilerStep#N")],
)
def test_a_trace_without_steps_is_refused(read, text, complaint):
    with pytest.raises(InstanceError, match=complaint):
        read(text, name="mine.json")


def test_a_summary_of_nsight_tells_the_time_of_a_range(read):
    row = read(SUMMARY, name="mine_nvtx_sum.csv", nvtx_range="iter*", gpu="H100")
    assert row.iter_time_s == pytest.approx(20.05)
    with pytest.raises(InstanceError, match=r"--range .*'iteration', 'optimizer'"):
        read(SUMMARY)
    with pytest.raises(InstanceError, match="--range = 'step'"):
        read(SUMMARY, nvtx_range="step")
    with pytest.raises(InstanceError, match="lists no range"):
        read(SUMMARY.partition("60.0")[0], name="mine.csv")
    with pytest.raises(InstanceError, match=r"'many' .* needs a number"):
        read(SUMMARY.replace("20050000000.0", "many"), nvtx_range="iteration")


@pytest.mark.parametrize(
    "text",
    [
        "iteration 1/ 9 | elapsed time per iteration (ms): 1.2.3 | global batch size: 8 |",
        "iteration 1/ 9 | elapsed time per iteration (ms): 0.0 |",
        "train_step_timing in s: 99999999999999999999999999",
        trace().replace("20000000.0", "1" + "0" * 400),
        trace(starts_us=(float("nan"), float("inf"))),
        trace(distributedInfo={"world_size": "²"}, deviceProperties="H100"),
        SUMMARY.replace(",4,", ",1e300,"),
        SUMMARY.replace("20050000000.0", "-1").replace("2500000000.0", "inf"),
    ],
)
def test_wild_files_are_refused_in_a_sentence_or_read(read, text):
    try:
        row = read(text, nvtx_range="*")
    except InstanceError as refused:
        assert str(refused).startswith("mine-64.log: ")  # noqa: PT017
    else:
        assert row.iter_time_s > 0


def test_statements_are_checked_and_a_log_goes_before_them(read, table, dense):
    assert read(megatron(), tp="8", gpu="H100").tp == 4
    assert [read(megatron(swiglu=gated)).shape["gated"] for gated in (False, True)] == [False, True]
    with pytest.raises(InstanceError, match="--set: gpu_name: no such column"):
        read(megatron(), gpu_name="H100")
    with pytest.raises(InstanceError, match=r"mine-64.log: row mine-64: gpus_per_node = 'many': needs a number"):
        read(megatron(), gpus_per_node="many")
    with pytest.raises(InstanceError, match="needs a log"):
        measurements_of([str(table(dense))], {"gpu": "H100"})
