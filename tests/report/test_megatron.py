"""Megatron-LM takes the arguments that are written, and splits the model as the plan does."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import coopt
from coopt.instance.catalog import find
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.instance.workload import Workload
from coopt.perf import mapping as rows
from coopt.plan.schema import Plan
from coopt.plan.store import read_plan
from coopt.report.csv_files import ranks_csv
from coopt.report.megatron import (
    SWITCHED,
    given,
    launch_script,
    mapping_arguments,
    megatron_script,
    model_arguments,
    refusals,
    remarks,
)
from coopt.traffic.ranks import RankGrid, rank_table
from tests.changes import with_part
from tests.conftest import ONE_NETWORK, ask, example_count, shipped, small_model, switch
from tests.report.megatron_parser import DATA, check_rules, layout_layers, parsed, stage_layers
from tests.traffic.sums import every_split

INSTANCES = Path(__file__).parents[2] / "instances"
MOE = {"experts": 8, "top_k": 2, "ffn": 2048}
WORKLOADS: dict[str, dict[str, Any]] = {
    "dense": {},
    "grouped heads": {"model": small_model(kv_heads=4, gated=True, tied_embeddings=False, head_dim=64)},
    "odd share": {"model": small_model(seq=1030)},
    "22 layers": {"model": small_model(layers=22)},
    "5 layers": {"model": small_model(layers=5, extra_predictions=1)},
    "experts": {"model": small_model(**MOE, shared_ffn=1024, dense_layers=2, dense_ffn=8192)},
    "experts split by TP": {"model": small_model(**MOE), "options": {"expert_tp": True}, "precision": "fp16"},
    "latent": {"model": small_model(**MOE, kv_rank=512, q_rank=256, rope_dim=64, head_dim=192, value_dim=128)},
    "old software": {"options": {"software": "megatron-2021"}, "precision": "fp16"},
    "overlapped": {"options": {"dp_mode": "overlap"}, "precision": "fp8"},
}


@cache
def cases(name: str) -> tuple[tuple[RankGrid, Any], ...]:
    table: dict[str, Any] = {"name": "w", "model": small_model(), "global_batch": 32, "max_iteration_time_s": 1.0}
    model = WORKLOADS[name].get("model", table["model"])
    kinds = [kind for kind in rows.RECOMPUTE if kind != "act" or getattr(model, "experts", 0)]
    limits: dict[str, Any] = {"cp": [1, 2], "micro_batch": [1, 2], "zero": [0, 1, 2, 3], "recompute": kinds}
    limits |= {"offload_percent": [0, 60]}
    workload = Workload.model_validate(table | {"mapping": limits} | WORKLOADS[name])
    return tuple(every_split(workload, 32, 8, every=101 if settings().derandomize else 17))


def words_of(split: RankGrid, one: Any) -> list[str]:
    table = rank_table(split)
    values = model_arguments(split.workload) | mapping_arguments(split, one, pp_last=table.pp_last)
    return [word for part in given(values) for word in part]


@pytest.mark.parametrize("name", WORKLOADS)
@settings(max_examples=example_count(60))
@drawn(data=st.data())
def test_whatever_is_not_refused_keeps_the_rules_of_megatron(name: str, data: st.DataObject) -> None:
    split, chosen = data.draw(st.sampled_from(cases(name)))
    one = chosen.mapping
    if next(refusals(split, one), None):
        return
    args = parsed(words_of(split, one))
    check_rules(args, split.ranks)
    assert (args.tensor_model_parallel_size, args.pipeline_model_parallel_size) == (one.tp, one.pp)
    fullest, fewer = (int(n[0]) for n in rows.stage_layers(split.workload.model, split.mapping))
    expected = [fullest] * one.pp
    if one.pp > 1:
        expected[0] -= one.pp * fullest - split.workload.model.layers - fewer
        expected[-1] -= fewer
    assert stage_layers(args) == expected
    assert args.sequence_parallel == one.sequence_parallel
    assert args.use_distributed_optimizer == (one.zero > 0)
    assert args.use_megatron_fsdp == (one.zero > 1)
    assert (args.activation_offload_fraction or 0.0) == one.offload_percent / 100
    script = launch_script(name, split, one)
    assert ("export NVTE_CPU_OFFLOAD_V1=1" in script) == (one.offload_percent > 0)


@pytest.mark.parametrize("name", WORKLOADS)
def test_each_refusal_is_one_of_megatron(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused breaks a rule when it is written all the same, or has no argument."""
    refused = [(split, chosen) for split, chosen in cases(name) if next(refusals(split, chosen.mapping), None)]
    for split, chosen in refused[:20]:
        args = parsed(words_of(split, chosen.mapping))
        with pytest.raises(AssertionError):
            check_rules(args, split.ranks)
    in_pipelines = {chosen.mapping.zero > 1 and chosen.mapping.pp > 1 for _, chosen in refused}
    apart = name == "odd share" or any(split.workload.model.experts for split, _ in refused)
    assert in_pipelines == ({True, False} if apart else {True})
    if name == "dense":
        split, chosen = next(case for case in cases(name) if case[1].mapping.offload_percent and case not in refused)
        monkeypatch.setattr("coopt.report.megatron.SWITCHED", SWITCHED - {"offload_percent"})
        (refusal,) = refusals(split, chosen.mapping)
        assert refusal.startswith("offload_percent = 60")


@pytest.mark.parametrize("model", ["gpt-22b", "llama3-405b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-120b"])
def test_models_of_the_catalog_are_said_in_full(model: str) -> None:
    table = {"name": "w", "model": model, "global_batch": 32, "max_iteration_time_s": 1.0}
    workload = Workload.model_validate(table)
    shape = find("model", model)
    args = parsed([word for part in given(model_arguments(workload)) for word in part])
    assert (args.num_layers, args.hidden_size, args.num_attention_heads) == (shape.layers, shape.hidden, shape.heads)  # type: ignore[attr-defined]
    if args.multi_latent_attention:
        assert args.qk_head_dim + args.qk_pos_emb_head_dim == shape.head_dim  # type: ignore[attr-defined]
        assert args.attention_backend == "fused"
        groups = args.moe_router_num_groups, args.moe_router_group_topk
        assert groups == (shape.expert_groups, shape.top_groups)  # type: ignore[attr-defined]
    else:
        assert (args.kv_channels or args.hidden_size // args.num_attention_heads) == shape.head_dim  # type: ignore[attr-defined]
        assert args.attention_backend == "flash"
    assert args.moe_grouped_gemm == (args.num_experts is not None)
    if shape.dense_layers:  # type: ignore[attr-defined]
        assert args.moe_layer_freq.count(0) == shape.dense_layers  # type: ignore[attr-defined]
        assert (args.ffn_hidden_size, args.moe_ffn_hidden_size) == (shape.dense_ffn, shape.ffn)  # type: ignore[attr-defined]


def run(script: str, folder: Path, *words: str, **environment: str) -> tuple[list[str], dict[str, str]]:
    """What the script starts, and with which environment: the launchers only tell what they are called with."""
    for name in ("torchrun", "python"):
        (folder / name).write_text('#!/bin/sh\nprintf "%s\\n" "$0" "$@"\nenv >&2\n', "utf-8")
        (folder / name).chmod(0o755)
    (folder / "run.sh").write_text(script, "utf-8")
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "run.sh", *words], cwd=folder, env=path | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines(), dict(line.split("=", 1) for line in done.stderr.splitlines() if "=" in line)


def solved(**changes: Any) -> tuple[Instance, Plan]:
    instance = ask(**changes)
    return instance, coopt.solve(instance)


ONE_WORKLOAD = [file for file in ONE_NETWORK if len(coopt.load(file).workload) == 1]


@pytest.mark.parametrize("file", ONE_WORKLOAD, ids=lambda file: file.stem)
def test_the_scripts_of_shipped_instances_run(file: Path, shipped_plan: Callable[[Path], Path], tmp_path: Path) -> None:
    instance, plan = shipped(file), read_plan(shipped_plan(file))
    if plan.design is None:
        with pytest.raises(InstanceError, match="has no design"):
            megatron_script(instance, plan)
        return
    script = megatron_script(instance, plan)
    if "ranks.csv" in script:  # ranks out of place, each started by itself
        (tmp_path / "ranks.csv").write_text(ranks_csv(instance, plan), "utf-8")
        called, _ = run(script, tmp_path, SLURM_PROCID="0")
        check_rules(parsed(called[called.index("pretrain_gpt.py") + 1 :]), plan.workloads[0].gpus)
        return
    called, environment = run(script, tmp_path, "--mock-data", "--train-iters", "20")
    assert Path(called[0]).name == "torchrun"
    launch, words = called[1 : called.index("pretrain_gpt.py")], called[called.index("pretrain_gpt.py") + 1 :]
    options = dict(zip(launch[::2], launch[1::2], strict=True))
    assert int(options["--nnodes"]) * int(options["--nproc-per-node"]) == plan.workloads[0].gpus
    args = parsed(words)
    check_rules(args, plan.workloads[0].gpus)
    assert (args.mock_data, args.train_iters) == (True, 20)
    assert environment["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"


def test_a_domain_may_be_several_hosts(shipped_plan: Callable[[Path], Path], tmp_path: Path) -> None:
    file = INSTANCES / "rail-only-gpt-1t.toml"
    script = megatron_script(coopt.load(file), read_plan(shipped_plan(file)))
    called, _ = run(script, tmp_path, GPUS_PER_HOST="4")
    assert called[1:5] == ["--nnodes", "8192", "--nproc-per-node", "4"]


def test_ranks_out_of_place_are_started_one_by_one_from_the_rank_file(tmp_path: Path) -> None:
    instance, plan = solved(
        network__hb_domains="h100-hb16",
        cluster__gpus=64,
        workload__0__mapping={"tp": 2, "pp": 4, "dp": 8, "interleave": 1},
    )
    inside = {"tp": (2, 1), "pp": (2, 2), "dp": (4, 2), "cp": (1, 1), "ep": (1, 1)}
    moved = plan.workloads[0].model_copy(update={"placement": inside})
    plan = with_part(plan, workloads=(moved,))
    (tmp_path / "ranks.csv").write_text(ranks_csv(instance, plan), "utf-8")
    lines = [line.split(",") for line in ranks_csv(instance, plan).splitlines()[1:]]
    assert any(int(line[0]) % 16 != int(line[7]) for line in lines)
    for rank in (0, 9, 37, 63):
        called, environment = run(megatron_script(instance, plan), tmp_path, SLURM_PROCID=str(rank))
        assert Path(called[0]).name == "python"
        check_rules(parsed(called[called.index("pretrain_gpt.py") + 1 :]), 64)
        assert (environment["RANK"], environment["WORLD_SIZE"], environment["LOCAL_RANK"]) == (str(rank), "64", "0")
        assert environment["CUDA_VISIBLE_DEVICES"] == lines[rank][7]


@pytest.mark.parametrize(
    ("interleave", "layout", "sizes"), [(4, "Et|(tt|)*62tL", [1, *[2] * 62, 1]), (8, "E|(t|)*126L", [0, *[1] * 126, 0])]
)
def test_a_layout_leaves_out_the_layers_that_are_missing(interleave: int, layout: str, sizes: list[int]) -> None:
    """126 layers on 16 stages: the first and the last chunk have one less, or are embedding and loss as in Llama 3."""
    workload = {"name": "w", "model": small_model(layers=126), "global_batch": 32, "max_iteration_time_s": 1.0}
    mapping = {"tp": 2, "pp": 16, "interleave": interleave, "zero": 0, "micro_batch": 1, "recompute": "none"}
    split, chosen = next(every_split(Workload.model_validate(workload | {"mapping": mapping}), 32, 8))
    args = parsed(words_of(split, chosen.mapping))
    assert args.pipeline_model_parallel_layout == layout
    assert layout_layers(args.pipeline_model_parallel_layout) == sizes
    check_rules(args, 32)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dp_mode": "stale-1"}, "dp_mode = stale-1"),
        ({"tp_sync_fraction": 0.5}, "tp_sync_fraction = 0.5"),
        ({"slowdown": 1.1}, "stragglers"),
        ({"schedule": "zb-h1"}, "runs 1F1B"),
        ({"software": "fsdp"}, "for software fsdp"),
    ],
)
def test_what_megatron_has_no_argument_for_is_said(options: dict[str, Any], says: str) -> None:
    instance, plan = solved(workload__0__options=options, workload__0__mapping={"pp": [2]})
    notes = [line for line in megatron_script(instance, plan).splitlines() if line.startswith("# Note: ")]
    assert any(says in note for note in notes)
    plain, usual = solved()
    assert "Note: " not in megatron_script(plain, usual)


def test_what_is_left_open_of_a_model_is_said() -> None:
    """As layers and products in more bits are, and expert groups of other GPUs."""
    base: dict[str, Any] = {"name": "w", "global_batch": 32, "max_iteration_time_s": 1.0}
    base["mapping"] = {"cp": 1, "micro_batch": 1, "zero": 1, "recompute": "none"}

    def said(**changes: Any) -> list[str]:
        asked = Workload.model_validate(base | {"model": small_model()} | changes)
        split, chosen = next(every_split(asked, 32, 8))
        return list(remarks(split, chosen.mapping, rank_table(split)))

    for change, words in (
        ({"window": 128, "window_layers": 4}, "of each kind evenly"),
        ({"causal": False}, "assumes full attention"),
        (MOE | {"capacity": 1.25}, "1.25 times"),
    ):
        assert any(words in remark for remark in said(model=small_model(**change)))
    software = {"name": "s", "wide_layers": 2, "attention_bits": 16}
    for precision, keys, wide in (("fp4", software, True), ("bf16", software, False), ("fp8", {"name": "s"}, False)):
        lines = [line for line in said(precision=precision, options={"software": keys}) if "in more bits" in line]
        assert [line.startswith("wide_layers = 2, attention_bits = 16: ") for line in lines] == [True] * wide
    groups = {
        any("expert groups" in remark for remark in remarks(split, chosen.mapping, rank_table(split)))
        for split, chosen in cases("experts")
    }
    assert groups == {True, False}


def test_sockets_turn_infiniband_verbs_off(tmp_path: Path) -> None:
    instance, plan = solved(workload__0__options={"transport": "ipoib"}, workload__0__max_iteration_time_s=50.0)
    _, environment = run(megatron_script(instance, plan), tmp_path)
    assert environment["NCCL_IB_DISABLE"] == "1"


def test_gradients_that_switches_add_up_are_asked_for() -> None:
    summing = {"network__switches": [switch(16, 11000) | {"reduces": True}]}
    for how, asks in (("fastest", False), ("in-network", True)):
        script = megatron_script(*solved(workload__0__options={"collectives": how}, **summing))
        assert ("export NCCL_COLLNET_ENABLE=1" in script) == asks


def test_one_of_several_workloads_is_named() -> None:
    workloads = [
        {"name": name, "model": small_model(), "global_batch": 64 * size, "max_iteration_time_s": 2.0}
        for size, name in ((1, "a"), (2, "b 'two'; rm -rf"))
    ]
    instance, plan = solved(workload=workloads)
    with pytest.raises(InstanceError, match="there are 2"):
        megatron_script(instance, plan)
    script = megatron_script(instance, plan, workload="b 'two'; rm -rf")
    body = re.search(r"^arguments=\($(.*?)^\)$", script, re.DOTALL | re.MULTILINE)
    assert body
    assert parsed(shlex.split(body[1])).global_batch_size == 128


def test_the_page_names_arguments_that_there_are() -> None:
    page = (INSTANCES.parent / "docs" / "exports.md").read_text("utf-8")
    section = page[page.index("## megatron") : page.index("## bridge")]
    known = json.loads(DATA.read_text("utf-8"))["arguments"]
    named = set(re.findall(r"--[a-z][a-z0-9-]+", section)) - {"--workload"}
    assert len(named) > 10
    assert named <= set(known)
