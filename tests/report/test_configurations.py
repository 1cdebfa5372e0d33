"""Configurations of Megatron Bridge, NeMo AutoModel and TorchTitan say what Megatron-LM's arguments and a plan say.

These packages read and validate them in tests/judges.
"""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from coopt.instance.catalog import find
from coopt.instance.models.documents import NO_SHAPE, imported
from coopt.instance.texts import InstanceError
from coopt.instance.workload import Workload
from coopt.report import bridge, megatron, nemo, torchtitan
from coopt.traffic.ranks import RankGrid, rank_table
from tests.conftest import small_model
from tests.report.test_megatron import MOE, WORKLOADS, cases, solved
from tests.traffic.sums import every_split

GATED = small_model(gated=True, tied_embeddings=False)
LATENT = {"kv_rank": 512, "q_rank": 256, "rope_dim": 64, "head_dim": 192, "value_dim": 128}
FSDP: dict[str, Any] = {"options": {"software": "fsdp", "dispatch": "each"}, "model": GATED}


def plans(every: int = 13, gpus: int = 32, **changes: Any) -> Iterator[tuple[RankGrid, Any]]:
    table: dict[str, Any] = {"name": "w", "global_batch": 32, "max_iteration_time_s": 1.0}
    limits = {"cp": [1, 2], "micro_batch": [1, 2], "zero": [2, 3], "recompute": ["none"]}
    workload = Workload.model_validate(table | {"mapping": limits} | changes)
    return ((split, chosen.mapping) for split, chosen in every_split(workload, gpus, 8, every=every))


def titan_facts(split: RankGrid, mapping: Any) -> dict[str, Any]:
    """Literals of a module, which has a function `plan`."""
    tree = ast.parse(torchtitan.torchtitan_text("t", split, mapping))
    assert "plan" in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    found: dict[str, Any] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() | ast.Constant() as value) if name.isupper():
                try:
                    found[name] = ast.literal_eval(value)
                except ValueError:
                    continue  # of the builders
    return found


@pytest.mark.parametrize("name", WORKLOADS)
def test_bridge_gets_every_argument_of_megatron(name: str) -> None:
    split, one = next((split, chosen.mapping) for split, chosen in cases(name) if chosen.mapping.pp > 1)
    text = bridge.bridge_text(name, split, one)
    config = yaml.safe_load(text)
    said = megatron.model_arguments(split.workload)
    said |= megatron.mapping_arguments(split, one, pp_last=rank_table(split).pp_last)
    for argument, value in said.items():
        key = argument.removeprefix("--")
        for place in bridge.PLACES.get(key, (f"model.{key.replace('-', '_')}",)):
            section, field = place.split(".")
            if key not in (*bridge.IMPLIED, *bridge.OPPOSITES, "moe-layer-freq") and value is not None:
                assert config[section][field] in (value, int(value) if str(value).isdigit() else value), key
    model = config["model"]
    assert model["add_bias_linear"] == (not said["--disable-bias-linear"])
    assert model.get("virtual_pipeline_model_parallel_size", 1) == one.interleave
    assert model["overlap_p2p_comm"] != model["batch_p2p_comm"]
    assert config["dataset"]["seq_length"] == split.workload.model.seq
    assert "--" not in re.sub(r"--format ranks", "", text)


@pytest.mark.parametrize(
    "model",
    [
        *("llama3-405b", "mixtral-8x7b", "deepseek-v3.2", "gpt-oss-120b", "qwen3-next-80b-a3b", "nemotron-3-nano"),
        *("moonlight-16b-a3b", "qwen3.5-397b-a17b", "mimo-v2-flash"),
    ],
)
def test_what_is_exported_is_imported_as_the_same_model(model: str, tmp_path: Path) -> None:
    limits = {"tp": [1], "cp": [1], "micro_batch": [1], "zero": [1], "recompute": ["none"]}
    split, one = next(plans(model=model, gpus=8, every=1, mapping=limits))
    shape = find("model", model)
    for name, text in (
        ("it.yaml", bridge.bridge_text("t", split, one)),
        ("it.sh", megatron.launch_script("t", split, one)),
    ):
        if name == "it.sh" and next(megatron.refusals(split, one), None):
            continue
        (tmp_path / name).write_text(text, "utf-8")
        read = imported(tmp_path / name).model
        different = {key for key, value in shape if key not in NO_SHAPE and getattr(read, key) != value}
        assert (different, read.seq) == (set(), shape.seq)  # type: ignore[attr-defined]


TOWER = {"layers": 6, "hidden": 512, "heads": 8, "head_dim": 64, "ffn": 1024}
TOWER |= {"tokens": 96, "merge": 4, "projector": 2048}
DELTA = {"kind": "gated-deltanet", "layers": 6, "heads": 16, "head_dim": 64, "groups": 8, "state": 64}
SEEING = GATED | {"encoders": [TOWER], "mixers": [DELTA]}
OWN = {"kind": "attention", "layers": 5, "heads": 32, "head_dim": 64, "value_dim": 32, "kv_heads": 8, "window": 128}
WINDOWED = GATED | {"head_dim": 64, "value_dim": 32, "kv_heads": 4, "mixers": [OWN]}
DEEP = GATED | {"encoders": [TOWER | {"projectors": 3}]}


@pytest.mark.parametrize(
    ("model", "provider", "said"),
    [
        (SEEING, "Qwen35VLModelProvider", {"depth": 6, "spatial_merge_size": 2, "out_hidden_size": 4096}),
        (DEEP | MOE, "Qwen3VLMoEModelProvider", {"deepstack_visual_indexes": [2, 4], "num_heads": 8}),
        (WINDOWED, "MiMoV2FlashModelProvider", {"swa_num_query_groups": 8, "window_size": 128, "v_head_dim": 32}),
    ],
)
def test_bridge_has_providers_of_its_own(model: Any, provider: str, said: dict[str, Any], tmp_path: Path) -> None:
    limits = {"zero": [0, 1], "cp": [1], "tp": [1], "interleave": [1]}
    split, one = next(plans(model=model, mapping=limits))
    assert list(megatron.refusals(split, one))
    assert not list(bridge.refusals(split, one))
    (tmp_path / "it.yaml").write_text(bridge.bridge_text("t", split, one), "utf-8")
    assert imported(tmp_path / "it.yaml").model.mixers == split.workload.model.mixers
    config = yaml.safe_load((tmp_path / "it.yaml").read_text("utf-8"))
    assert config["model"]["_target_"].endswith(f".{provider}")
    read = config["model"] | config["model"].get("vision_config", {})
    assert {key: read[key] for key in said} == said
    assert config["dataset"].get("image_size") == ([128, 192] if "encoders" in model else None)
    assert sum(read.get("hybrid_attention_pattern", [0] * 5)) == (5 if model is WINDOWED else 0)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (SEEING | {"encoders": [TOWER | {"projector": 1024}]}, "encoders of small: Megatron Bridge builds"),
        (SEEING | {"encoders": [TOWER | {"tokens": 94}]}, "encoders of small: "),
        (DEEP | {"extra_predictions": 1}, "extra_predictions = 1: Megatron Bridge"),
        (DEEP | MOE, "sequence_parallel = false"),
        (WINDOWED, "cp = 2: Megatron Bridge cannot split the sequences"),
        (WINDOWED, "tp = 8: Megatron Bridge cannot give one KV head"),
        (WINDOWED | {"extra_predictions": 1}, "extra_predictions = 1: "),
        (GATED, "zero = 3 with pp = 2: Megatron-FSDP has no pipeline"),
    ],
)
def test_what_bridge_has_no_provider_for_is_refused_by_name(model: Any, says: str) -> None:
    refused = {reason for split, one in plans(model=model, every=3) for reason in bridge.refusals(split, one)}
    found = [reason for reason in refused if reason.startswith(says)]
    assert found
    assert all("need" in reason for reason in found)


@pytest.mark.parametrize("model", [GATED, GATED | MOE, GATED | MOE | LATENT])
def test_torchtitan_gets_degrees_batches_and_chunks(model: Any) -> None:
    interleaved = set()
    for split, one in plans(**FSDP | {"model": model}, every=29):
        if next(torchtitan.refusals(split, one), None):
            continue
        facts = titan_facts(split, one)
        degrees, training = facts["PARALLELISM"], facts["TRAINING"]
        replicas = degrees["data_parallel_shard_degree"]
        assert replicas * one.tp * one.cp * one.pp == split.ranks
        assert degrees["fsdp_reshard_after_forward"] == {2: "never", 3: "always"}[one.zero]
        micro = degrees["pipeline_parallel_microbatch_size"] if one.pp > 1 else training["local_batch_size"]
        assert (micro, training["global_batch_size"]) == (one.micro_batch, 32)
        chunks = degrees["module_fqns_per_model_part"] or [[]]
        assert len(chunks) == one.pp * one.interleave
        assert sum(len(chunk) for chunk in chunks) == (split.workload.model.layers + 3 if one.pp > 1 else 0)
        assert (degrees["pipeline_parallel_schedule"] == "1F1B") == (one.interleave == 1)
        interleaved.add(one.interleave > 1)
        assert (facts.get("LATENT") is not None) == ("kv_rank" in model)
    assert True in interleaved


@pytest.mark.parametrize("model", [GATED, GATED | MOE, GATED | MOE | LATENT])
def test_nemo_gets_degrees_batches_chunks_and_the_model(model: Any, tmp_path: Path) -> None:
    seen = set()
    for split, one in plans(model=model, options={"software": "fsdp"}, every=29):
        if next(nemo.refusals(split, one), None):
            continue
        config = yaml.safe_load(nemo.nemo_text("t", split, one))
        degrees, steps = config["distributed"], config["step_scheduler"]
        assert degrees["dp_size"] * degrees["tp_size"] * degrees["cp_size"] * degrees["pp_size"] == split.ranks
        assert degrees["reshard_after_forward"] == (one.zero == 3)
        chunks = degrees.get("pipeline", {}).get("module_fqns_per_model_part", [])
        layers = [name for chunk in chunks for name in chunk if name.startswith("model.layers.")]
        assert len(layers) == (split.workload.model.layers if one.pp > 1 else 0)
        assert steps["local_batch_size"] == (32 // one.dp if one.pp > 1 else one.micro_batch)
        (tmp_path / "config.json").write_text(json.dumps(hugging_face(config["model"]["config"])), "utf-8")
        read = imported(tmp_path / "config.json").model
        shape = split.workload.model
        assert not {key for key, value in shape if key not in NO_SHAPE and getattr(read, key) != value}
        seen.add((one.pp > 1, one.ep > 1))
    assert (True, "experts" in model) in seen


def hugging_face(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration as its file has it."""
    kinds = {"Llama": "llama", "Qwen3Moe": "qwen3_moe", "Glm4Moe": "glm4_moe", "DeepseekV3": "deepseek_v3"}
    kind = config["_target_"].removeprefix("transformers.").removesuffix("Config")
    return {"model_type": kinds[kind], **{key: value for key, value in config.items() if key != "_target_"}}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": GATED | MOE, "mapping": {"tp": [2], "zero": [2]}}, "tp = 2 with experts"),
        ({"model": GATED | MOE, "options": {"software": "fsdp", "dispatch": "each"}}, "dispatch = each"),
        ({"model": GATED | MOE, "mapping": {"ep": [1], "zero": [3]}}, "experts = 8 in 16 shards with ep = 1"),
        ({"model": GATED | LATENT}, "kv_rank without experts"),
        ({"precision": "fp16"}, "precision = fp16"),
        ({"mapping": {"dp": 8}, "options": {"software": "fsdp", "dp_replicate": 8}}, "dp_replicate = 8"),
        ({"mapping": {"zero": [0], "cp": [2]}}, "zero = 0 with dp"),
        ({"model": small_model()}, "gated = false"),
    ],
)
def test_what_nemo_has_no_key_for_is_refused_by_name(changes: dict[str, Any], says: str) -> None:
    refused = [reason for split, one in plans(**FSDP | changes, every=29) for reason in nemo.refusals(split, one)]
    assert any(reason.startswith(says) for reason in refused)
    assert all("need" in reason for reason in refused)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": small_model()}, "gated = false"),
        ({"model": GATED | {"window": 128, "window_layers": 4}}, "window of "),
        ({"model": GATED | {"tied_embeddings": True}}, "tied_embeddings with pp"),
        ({"model": GATED | {"extra_predictions": 1}}, "extra_predictions = 1"),
        ({"precision": "fp16"}, "precision = fp16"),
        ({"options": {"software": "fsdp-eager"}}, "gradient_bytes = 2"),
        ({"options": {"software": "fsdp", "attention": "unfused"}}, "attention = unfused"),
        ({"options": {"software": "fsdp", "schedule": "zb-h1"}}, "schedule = zb-h1"),
        ({"mapping": {"zero": [1]}}, "zero = 1"),
        ({"mapping": {"zero": [0], "cp": [2]}}, "zero = 0 with cp = 2"),
        (
            {"mapping": {"recompute": ["selective"]}, "options": {"software": "fsdp", "attention": "unfused"}},
            "recompute",
        ),
        ({"mapping": {"offload_percent": [40]}}, "offload_percent = 40"),
    ],
)
def test_what_torchtitan_has_no_key_for_is_refused_by_name(changes: dict[str, Any], says: str) -> None:
    refused = [reason for split, one in plans(**FSDP | changes) for reason in torchtitan.refusals(split, one)]
    found = [reason for reason in refused if reason.startswith(says)]
    assert found
    assert all("need" in reason for reason in found)
    assert not any(reason.startswith(says) for reason in refused_of_fsdp())


@cache
def refused_of_fsdp() -> list[str]:
    """What TorchTitan has no key for without any of these changes."""
    return [reason for split, one in plans(**FSDP) for reason in torchtitan.refusals(split, one)]


def test_a_plan_that_torchtitan_cannot_train_is_refused_in_a_sentence_each() -> None:
    with pytest.raises(InstanceError, match=r"workload 'w': gated = false.* \(torchtitan\)"):
        megatron.launch_file("torchtitan", torchtitan.refusals, torchtitan.torchtitan_text, *solved())
