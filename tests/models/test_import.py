"""Models read from the files of other tools: parameters as published, and one error for what is not known."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from coopt.instance.catalog import entries
from coopt.instance.models.documents import imported
from coopt.instance.models.megatron import leaves
from coopt.instance.texts import InstanceError
from coopt.perf.mapping import components, further_parameters, model_parameters
from coopt.report.catalog import entries_toml
from tests.conftest import accepted, ask, question
from tests.models.configs import MODELS, nemotron, plain

DATA = Path(__file__).parents[1] / "data"


def read(folder: Path, said: Any, name: str = "config.json", **options: Any) -> Any:
    file = folder / name
    file.write_text(said if isinstance(said, str) else json.dumps(said), "utf-8")
    return imported(file, **options)


def near(counts: list[float], published: str, share: float) -> bool:
    """Whether one of the counts is within that share of what was published, or of its last digit."""
    _, _, decimals = published.partition(".")
    room = max(share * float(published), 0.5 * 10.0 ** -len(decimals))
    return any(abs(count / 1e9 - float(published)) <= room for count in counts)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_published(tmp_path: Path, name: str) -> None:
    (published, config) = MODELS[name]
    model = read(tmp_path, config).model
    whole, met = model_parameters(model)
    table, tables = model.vocab * model.hidden, model.vocab * model.hidden * (2 - model.tied_embeddings)
    further = further_parameters(model) if model.extra_predictions else 0.0
    total, active = published.split()
    assert near([whole, whole + further], total, 0.005), (whole, further)
    assert near([met, met - table, met - tables], active, 0.02), (met, table)


@pytest.mark.parametrize("line", (DATA / "transformers.jsonl").read_text("utf-8").splitlines())
def test_what_transformers_5_writes_has_the_parameters_that_it_builds(tmp_path: Path, line: str) -> None:
    """Its names for layers with Mamba-2, KDA, indexers and compressed keys; counts without norms and biases."""
    said = json.loads(line)
    total, _ = model_parameters(read(tmp_path, said["config"]).model)
    assert total == pytest.approx(said["parameters"], rel=0.002)


TOWER = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 0}
NO_PATCH = {"num_attention_heads": 4, "patch_size": 0}
LLAMA = plain("llama", 4, 512, (8, 2), 2048, 32000)
HYBRID = nemotron("M-M*E", 512, (8, 2, 64), 1024, 16, n_routed_experts=8, num_experts_per_tok=2)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (json.dumps(LLAMA)[:200], "needs valid JSON"),
        ({"model_type": "qwen9", **{k: v for k, v in LLAMA.items() if k != "model_type"}}, "model_type = 'qwen9'"),
        (LLAMA | {"model_type": "jamba"}, "model_type = 'jamba': needs Mamba-2"),
        (LLAMA | {"layer_types": ["full_attention"] * 3 + ["wkv7"]}, "has 'wkv7'"),
        (LLAMA | {"layer_types": ["full_attention"] * 3}, "needs one entry for each of 4 layers"),
        (LLAMA | {"num_attention_heads": 7, "num_key_value_heads": 7}, "needs a divisor of hidden_size = 512"),
        (LLAMA | {"num_key_value_heads": 3}, "num_key_value_heads = 3: needs a divisor of num_attention_heads = 8"),
        (LLAMA | {"num_hidden_layers": None}, "num_hidden_layers is missing, needs a number above 0"),
        (LLAMA | {"intermediate_size": None}, "intermediate_size is missing, needs a width of at least 1"),
        (LLAMA | {"vision_config": TOWER}, "vision_config: num_attention_heads = 0: needs a number of at least 1"),
        (LLAMA | {"vision_config": TOWER | NO_PATCH}, "vision_config: patch_size = 0: needs a number of at least 1"),
        ("model:\n  num_layers: 4\n  started: 2027-13-45\n", "not YAML (month must be in 1..12), needs"),
        (LLAMA | {"hidden_size": "512"}, "hidden_size = '512': needs a whole number"),
        (LLAMA | {"vocab_size": None}, "vocab_size is missing"),
        (LLAMA | {"ngram_memory_size": 4096}, "ngram_memory_size = 4096: needs"),
        (LLAMA | {"num_local_experts": 4, "moe_topk": 8}, "moe_topk = 8: needs 1 to num_local_experts = 4"),
        (
            "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 9 --num-moe-experts 4"
            " --moe-router-topk 8",
            "moe_router_topk = 8: needs 1 to num_moe_experts = 4",
        ),
        (HYBRID | {"hybrid_override_pattern": "M-M*X"}, "hybrid_override_pattern = 'M-M*X': needs one of M, *, -"),
        (LLAMA | {"use_cla": True, "cla_share_factor": 2}, "use_cla = true: needs false"),
        (HYBRID | {"num_hidden_layers": 9}, "for each of 9 layers"),
        ({"zero_optimization": {"stage": 3}}, "a DeepSpeed configuration does not describe a model"),
        ([1, 2], "does not describe a model"),
        ("--num-layers $LAYERS --hidden-size 512 --num-attention-heads 8 --vocab-size 9", "num_layers = '$LAYERS'"),
        ("--num-layers 4 --hidden-size 512 --num-attention-heads 8", "vocab_size is missing"),
        (
            "--num-layers 1000000000 --hidden-size 512 --num-attention-heads 8 --vocab-size 9 --window-size 5,0",
            "num_layers = 1000000000: needs a whole number from 0 to 10,000,000",
        ),
        (
            "model:\n  num_layers: 4\n  hidden_size: [1, 2]\n  num_attention_heads: 8\n  vocab_size: 9\n",
            "hidden_size = [1, 2]: needs a whole number",
        ),
        ("model:\n  num_layers: [1\n", "not YAML"),
        ("--num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 9 --window-size a,0", "window_size = "),
        ('{"hidden_size":' * 100_000, "nested too deeply"),
        ('{"hidden_size": ' + "1" * 6000 + "}", "a number of 6,000 digits"),
        ('[model]\nname = "llama3"\nflavor = "9B"\n', "model.flavor = '9B'"),
    ],
)
def test_what_is_not_known_is_one_error(tmp_path: Path, said: Any, words: str) -> None:
    with pytest.raises(InstanceError) as error:
        read(tmp_path, said)
    assert words in str(error.value)
    assert len(error.value.complaints) == 1


MIXED = """#!/bin/bash
ARGS=(
    --num-layers 6 --hidden-size 1024 --ffn-hidden-size 4096   # shape
    --num-attention-heads 16 --group-query-attention --num-query-groups 4 --kv-channels 128 \\
    --seq-length 2048 --vocab-size 50000 --swiglu --untie-embeddings-and-output-weights
    --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 512 --moe-layer-freq "([0]*2+[1]*4)"
    --moe-shared-expert-intermediate-size 512 --mtp-num-layers 1
)
"""
BRIDGE = """
model:
  _target_: megatron.bridge.models.gpt_provider.GPTModelProvider
  num_layers: 6
  hidden_size: 1024
  ffn_hidden_size: 4096
  num_attention_heads: 16
  num_query_groups: 4
  kv_channels: 128
  seq_length: 2048
  vocab_size: 50000
  gated_linear_unit: true
  share_embeddings_and_output_weights: false
  num_moe_experts: 8
  moe_router_topk: 2
  moe_ffn_hidden_size: 512
  moe_layer_freq: [0, 0, 1, 1, 1, 1]
  moe_shared_expert_intermediate_size: 512
  mtp_num_layers: 1
train: {global_batch_size: 64}
"""


def test_arguments_a_log_and_a_recipe_say_the_same_model(tmp_path: Path) -> None:
    script = read(tmp_path, MIXED, "train.sh").model
    recipe = read(tmp_path, BRIDGE, "train.yaml").model
    assert script == recipe
    assert (script.kv_heads, script.dense_layers, script.shared_ffn, script.seq) == (4, 2, 512, 2048)
    printed = (
        "  num_layers ........ 2\n  hidden_size ........ 256\n  num_attention_heads .... 4\n  vocab_size ... 100\n"
    )
    logged = read(tmp_path, printed + "  swiglu ..... True\n  num_query_groups ..... 1\n", "run.log").model
    assert (logged.kv_heads, logged.ffn, logged.gated) == (4, 640, True)
    unset = "".join(
        f"  {name} ..... {value}\n"
        for name, value in (("attention_output_gate", False), ("window_size", None), ("kv_lora_rank", 32))
    )
    unset += "  experimental_attention_variant ..... None\n"
    again = read(tmp_path, f"{printed}{unset}  swiglu ..... True\n", "unset.log").model
    assert again.model_copy(update={"name": logged.name}) == logged


def test_arguments_may_be_keys_and_a_tower_a_table(tmp_path: Path) -> None:
    said = {"--num-layers": 2, "--hidden-size": 256, "--num-attention-heads": 4, "--vocab-size": 100, "--swiglu": True}
    plain = read(tmp_path, yaml.safe_dump({"MODEL_ARGS": said}), "args.yaml").model
    tower = {"depth": 2, "hidden_size": 64, "num_heads": 2, "intermediate_size": 128, "spatial_merge_size": 2}
    tower |= {"deepstack_visual_indexes": [1], "_target_": "transformers.models.qwen3_vl.it.Qwen3VLVisionConfig"}
    whole = {"model": said | {"vision_config": tower}, "dataset": {"image_size": [128, 128]}}
    seeing = read(tmp_path, yaml.safe_dump(whole), "args.yaml").model
    (found,) = seeing.encoders
    assert (found.layers, found.tokens, found.projector, found.projectors) == (2, 64, 256, 2)
    assert plain == seeing.model_copy(update={"encoders": ()})
    for change, says in (
        ({"vision_config": tower | {"_target_": "clip.Tower"}}, "vision_config._target_ = 'clip.Tower': needs a tower"),
        (
            {"pretrained_model_name_or_path": "a/b", "--num-layers": None},
            "= 'a/b': only names the model, needs its config.json",
        ),
    ):
        with pytest.raises(InstanceError, match=re.escape(says)):
            read(tmp_path, yaml.safe_dump({"model": {k: v for k, v in (said | change).items() if v}}), "bad.yaml")


def test_tables_that_aliases_name_again_and_again_are_gone_through_once() -> None:
    table: dict[str, Any] = {"num_layers": 6}
    for _ in range(60):
        table = {"a": table, "b": table}
    assert list(leaves(table)) == [("num_layers", 6)]


def test_latent_projections_are_named_where_there_are_some() -> None:
    model = entries("model")["mixtral-8x7b"]
    latent = model.model_copy(update={"expert_latent": 1024})
    named = [{part.name for part in components(one)} for one in (model, latent)]
    assert ["routers" in named[0], "latent projections" in str(named[1])] == [True, True]


def test_a_device_is_no_model() -> None:
    with pytest.raises(InstanceError, match="is a device"):
        imported(Path("/dev/zero"))


def test_a_hybrid_s_arguments_say_its_layers_in_letters(tmp_path: Path) -> None:
    said = "--hybrid-layer-pattern M-M*|M-M*/*-  --hidden-size 1024 --num-attention-heads 8 --vocab-size 100"
    model = read(tmp_path, said + " --ffn-hidden-size 2048 --mamba-num-heads 32", "args.txt").model
    assert (model.mamba_layers, model.with_attention, model.with_ffn, model.extra_predictions) == (4, 2, 2, 1)


def test_a_flavor_of_torchtitan_is_a_model_of_the_catalog(tmp_path: Path) -> None:
    text = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 2048\n'
    found = read(tmp_path, text, "train.toml")
    assert (found.same.name, found.model.seq) == ("llama3-8b", 2048)


@pytest.mark.parametrize("name", ["Qwen3-Next-80B-A3B", "DeepSeek-V4-Flash", "Qwen3-VL-8B"])
def test_an_entry_is_a_model_that_solve_takes(tmp_path: Path, name: str) -> None:
    """Of two layers of each kind and small widths, so that 64 small GPUs hold it."""
    model = read(tmp_path, MODELS[name][1], seq=4096).model
    (tmp_path / "ours.toml").write_text(entries_toml({"model": model}), "utf-8")
    (asked,) = question()["workload"]
    table = model.model_dump(exclude_defaults=True) | {"experts": 16, "top_k": 2} if model.experts else {}
    limits = {"tp": [4], "cp": [1, 2], "pp": [1, 2], "recompute": ["full"], "micro_batch": [1], "zero": [3]}
    workload = asked | {"model": table or model.model_dump(exclude_defaults=True), "mapping": limits}
    accepted(ask(workload=[workload | {"max_iteration_time_s": 900.0}]))
