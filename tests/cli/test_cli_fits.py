"""`coopt fits` says what takes the memory of a mapping, and which mappings fit."""

import json

import numpy as np
import pytest

from coopt.cli import studies
from coopt.columns.grid import mappings
from coopt.instance.workload import Workload
from coopt.perf import mapping
from coopt.perf.memory import GIB, memory_bytes, memory_parts
from coopt.validation.fits import _why_none

SPLIT = ("--tp", "4", "--pp", "2", "--zero", "0")
COPIES = ("fits", "instances/tiny-64.toml", *SPLIT, "--set", "workload.0.options.dp_replicate=4")
LLAMA = ("fits", "llama3-405b", "--gpu", "H100", "--gpus", "1024")


def asked(coopt, *words, code=0):
    done = coopt(*words, "--json")
    assert done.exit_code == code, done.stderr
    return json.loads(done.stdout)["workloads"]


def test_the_components_of_one_mapping_add_up_to_what_the_planner_needs(coopt):
    one = (*LLAMA, "--tp", "8", "--pp", "16", "--recompute", "norm+ffn")
    (fits,) = asked(coopt, *one)
    (memory,) = fits["listed"]
    assert (fits["mappings"], fits["fitting"], memory["fits"]) == (1, 1, True)
    assert sum(memory["parts_gib"].values()) == pytest.approx(memory["memory_gib"])
    assert {"parameters", "gradients", "optimizer states", "activations", "reserve"} <= memory["parts_gib"].keys()
    # 406 billion parameters on 128 GPUs, two bytes each; embeddings at the ends
    assert memory["parts_gib"]["parameters"] == pytest.approx(2 * 406e9 / 128 / GIB, rel=0.1)
    assert "fullest GPU" in coopt(*one).stdout


def test_a_mapping_that_does_not_fit_comes_with_single_changes_that_do(coopt):
    (fits,) = asked(coopt, *LLAMA, "--tp", "8", "--pp", "8", code=3)
    assert not fits["listed"][0]["fits"]
    assert {one["mapping"]["recompute"] for one in fits["instead"]} == {"none", "norm+ffn"}
    assert all(one["fits"] and one["memory_gib"] < fits["memory_limit_gib"] for one in fits["instead"])


def test_what_is_listed_fits_and_a_degree_that_is_given_holds(coopt):
    (fits,) = asked(coopt, *LLAMA, "--tp", "8", "--zero", "1", "--top", "5")
    assert len(fits["listed"]) == 5
    for memory in fits["listed"]:
        assert memory["memory_gib"] <= fits["memory_limit_gib"]
        assert (memory["mapping"]["tp"], memory["mapping"]["zero"]) == (8, 1)


def test_an_instance_is_a_question_too(coopt):
    (fits,) = asked(coopt, "fits", "instances/megatron-530b.toml")
    assert (fits["model"], fits["gpus"], fits["listed"][0]["mapping"]["pp"]) == ("gpt-530b", 280, 35)
    both = ("fits", "instances/questions/best-model.toml")
    h100, gb200 = asked(coopt, *both)
    assert (h100["gpu"], gb200["gpu"]) == ("h100-sxm", "gb200")
    assert h100["memory_limit_gib"] < gb200["memory_limit_gib"]
    assert asked(coopt, *both, "--gpu", "gb200") == [gb200]


def test_what_a_framework_lacks_is_not_proposed(coopt):
    """GPT-3 on 80 GB: Megatron-LM of 2021 has no sequence parallelism and recomputes whole layers alone."""
    one = ("fits", "gpt-175b", "--gpu", "A100", "--gpus", "256", "--tp", "8", "--pp", "2", "--software")
    (old,), (new,) = asked(coopt, *one, "megatron-2021", code=3), asked(coopt, *one, "megatron-core", code=3)
    assert [fits["listed"][0]["mapping"]["sequence_parallel"] for fits in (old, new)] == [False, True]
    assert {one["mapping"]["recompute"] for one in old["instead"]} == {"none", "full"}
    assert not any(one["mapping"]["sequence_parallel"] for one in old["instead"])
    (asked_for,) = asked(coopt, *one, "megatron-2021", "--sequence-parallel")
    assert asked_for["listed"][0]["mapping"]["sequence_parallel"]


@pytest.mark.parametrize("model", ["llama3-8b", "deepseek-v3", "nemotron-3-nano"])
def test_parts_add_up_for_every_mapping(model):
    table = {"name": "x", "model": model, "global_batch": 64, "precision": "bf16", "max_iteration_time_s": 1.0}
    for options in ({}, {"schedule": "zb-h1"}, {"software": "fsdp"}):
        workload = Workload.model_validate(table | {"options": options})
        rows, _ = mappings(workload, 64)
        rows = rows.take(np.arange(0, len(rows), max(1, len(rows) // 400)))
        total = sum(memory_parts(workload, rows).values())
        np.testing.assert_allclose(total, memory_bytes(workload, rows), rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("fits", "llama3-405", "--gpu", "h100", "--gpus", "8"), "closest: llama3-405b"),
        (("fits", "llama3-405b", "--gpu", "h1000", "--gpus", "8"), "--gpu = 'h1000'"),
        (("fits", "llama3-405b", "--gpus", "8"), "needs --gpu"),
        ((*LLAMA, "--precision", "int8"), "precision = 'int8'"),
        ((*LLAMA, "--recompute", "act"), "experts and latents, but llama3-405b has neither"),
        ((*LLAMA[:3], "A100", "--gpus", "8", "--precision", "fp8"), "a100-80g does not have it"),
        ((*LLAMA, "--tp", "8", "--pp", "3"), "TP 8 x PP 3 x CP 1 = 24 does not divide 1024 GPUs"),
        ((*LLAMA, "--tp", "8", "--pp", "8", "--batch", "24"), "needs a multiple of DP 16 x micro-batch 1"),
        (("fits", "nemotron-3-nano", "--gpu", "h100", "--gpus", "64", "--tp", "16"), "--tp = 16: does not divide all"),
        ((*LLAMA, "--tp", "8", "--pp", "128"), "--pp = 128: llama3-405b has 126 layers"),
        ((*LLAMA, "--tp", "8", "--pp", "16", "--interleave", "16"), "--pp = 16 with 16 chunks in each stage"),
        ((*LLAMA, "--set", "a=1"), "needs an instance file"),
        (COPIES, "options.dp_replicate = 4: rules out every mapping"),
        (("fits", "none.toml"), "none.toml: no such file"),
        (("fits", "instances/tiny-64.toml", "--software", "fsdp"), "--software: applies to a MODEL, needs --set"),
    ],
)
def test_what_cannot_be_asked_is_said(coopt, words, says):
    done = coopt(*words)
    assert (done.exit_code, says in done.stderr) == (1, True), done.stderr


def test_a_stopped_search_for_the_best_model_is_no_proof(coopt):
    done = coopt("best-model", "instances/questions/best-model.toml", "llama3-8b", "--set", "solver.time_limit_s=1e-9")
    assert (done.exit_code, "No cluster was found" in done.stdout) == (4, True), done.stdout


def test_every_way_to_recompute_may_be_asked_for() -> None:
    assert studies.RECOMPUTE == mapping.RECOMPUTE


def test_a_tp_that_does_not_hold_whole_expert_groups_is_told():
    table = {"name": "x", "model": "mixtral-8x7b", "global_batch": 96, "precision": "bf16", "max_iteration_time_s": 9.0}
    workload = Workload.model_validate(table | {"options": {"expert_tp": 8}})
    assert "expert_tp = 8" in _why_none(workload, 96, {"tp": 4, "pp": 1, "cp": 3})
