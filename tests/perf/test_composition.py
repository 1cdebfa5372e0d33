"""What a run is made of, as `[workload.software]` says it: each key against what it costs by hand."""

from typing import Any

import pytest
from pydantic import ValidationError

from coopt.columns.grid import allowed_recompute
from coopt.instance.catalog import find
from coopt.instance.workload import Workload
from coopt.perf.exchanges import visits_of
from coopt.perf.layer import started_s
from coopt.perf.mapping import Mappings
from coopt.perf.memory import state_bytes
from coopt.verifier.training.mappings import recomputes

TABLE: dict[str, Any] = {"name": "w", "model": "deepseek-v3", "global_batch": 16}


def made(**software: Any) -> Workload:
    return Workload.model_validate(TABLE | {"precision": "fp8", "software": software})


def test_keys_become_options_and_what_is_left_out_is_the_framework_of_the_catalog() -> None:
    stated = made(framework="fsdp", compile=False, dispatcher="all-to-all", gradient_bytes=4, release="2.9")
    eager = find("software", "fsdp-eager").model_copy(update={"gradient_bytes": 4, "release": "2.9", "sources": ()})
    assert stated.options.software.model_copy(update={"sources": ()}) == eager
    assert stated.options.dispatch == "each"
    assert made(dispatcher="deepep").options.dispatch == "once"
    assert Workload.model_validate(stated.model_dump()) == stated


@pytest.mark.parametrize(
    ("software", "says"),
    [
        ({"framework": "nemo"}, "software.framework = 'nemo'.*one of: megatron-core, "),
        ({"dispatcher": "nccl"}, "'all-to-all', 'deepep', 'hybridep' or 'nvlink'"),
        ({"graphs": "some"}, "'none', 'scoped' or 'full'"),
        ({"graphs": "scoped"}, "graph_modules"),
        ({"graphs": "scoped", "graph_modules": ["head"]}, "'attn', 'mamba', 'mlp'"),
        ({"compile": True}, "megatron-core, needs the framework fsdp or fsdp-eager"),
        ({"graph": "full"}, r"software\.graph\b"),
    ],
)
def test_what_is_unknown_is_refused_with_what_is_known(software: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=f"(?s){says}"):
        made(**software)


def test_what_says_the_same_thing_twice_and_8_bits_beside_16_are_refused() -> None:
    for table, says in (
        ({"options": {"dispatch": "once"}, "software": {"dispatcher": "deepep"}}, "options.dispatch"),
        ({"software": {"fp8_head": True}}, "precision = 'bf16'"),
    ):
        with pytest.raises(ValidationError, match=says):
            Workload.model_validate(TABLE | table)


def test_act_is_refused_where_a_model_has_neither_experts_nor_latents() -> None:
    listed = {"mapping": {"recompute": ["none", "act"]}}
    with pytest.raises(ValidationError, match="llama3-70b has neither, needs kinds without act"):
        Workload.model_validate(TABLE | listed | {"model": "llama3-70b"})
    latents = {"heads": 4, "kv_heads": 4, "head_dim": 24, "kv_rank": 16, "rope_dim": 8}
    sizes = {"name": "latent", "layers": 2, "hidden": 64, "ffn": 256, "vocab": 512, "seq": 64}
    for model in ("deepseek-v3", sizes | latents):
        assert Workload.model_validate(TABLE | listed | {"model": model}).mapping.recompute == ("none", "act")


def test_what_old_software_lacks_is_tried_as_listed_only() -> None:
    """Selective recomputation and sequence parallelism came with arXiv 2205.05198, CP later."""
    for software, kinds, on, chunks, stages in (
        ("megatron-2022", ("none", "selective", "full"), (True, False), None, (0, 1, 2, 3)),
        ("megatron-2021", ("none", "full"), (False,), None, (0,)),
        ("megatron-deepspeed", ("none", "full"), (False,), (1,), (0, 1, 2, 3)),
    ):
        table = {"model": "gpt-175b", "options": {"software": software, "attention": "unfused"}}
        old = Workload.model_validate(TABLE | table)
        assert allowed_recompute(old) == kinds == recomputes(old)
        assert (old.mapping.sequence_parallel, old.mapping.interleave) == (on, chunks)
        assert (old.mapping.cp, old.mapping.zero, old.mapping.tp) == ((1,), stages, None)
        listed = {"sequence_parallel": [True], "recompute": ["selective"], "interleave": [2], "cp": [2]}
        asked = Workload.model_validate(TABLE | table | {"mapping": listed})
        assert allowed_recompute(asked) == ("selective",) == recomputes(asked)
        assert (asked.mapping.sequence_parallel, asked.mapping.interleave) == ((True,), (2,))
        assert asked.mapping.cp == (2,)
    alone = {"options": {"software": {"name": "s", "lacks": ["tp", "pp", "cp"]}}}
    mapping = Workload.model_validate(TABLE | alone | {"model": "llama3-70b"}).mapping
    assert (mapping.tp, mapping.pp, mapping.cp) == ((1,), (1,), (1,))


def test_graphs_spare_the_host_the_kernels_that_they_hold() -> None:
    """Of 103 kernels of a layer and 6 of each of 4 experts attention has 75; a graph costs 2 starts."""
    one = Mappings.of(ep=[64])
    host_s, layers = 37e-6, 58 / 61
    for software, kernels in (
        ({}, 103 + 6 * 4),
        ({"graph_modules": ["attn"]}, 103 - 75 + 2 + 6 * 4),
        ({"graph_modules": ["attn", "moe_router", "moe_preprocess"]}, 103 - 93 + 6 + 6 * 4),
        ({"graph_modules": ["moe"]}, 75 + 2),
    ):
        scoped = software | ({"graphs": "scoped"} if software else {})
        assert started_s(made(**scoped), one) == pytest.approx(layers * host_s * kernels)
    assert started_s(made(graphs="full"), one) == 0.0


def test_parameters_of_a_byte_and_multiprocessors_count() -> None:
    sharded = Mappings.of(dp=[8], ep=[8], zero=[3])
    two, one = (state_bytes(made(parameter_bytes=n), sharded) for n in (2, 1))
    assert two[2] == pytest.approx(2 * one[2])
    assert visits_of(made(dispatcher="deepep", dispatcher_multiprocessors=20)).copied_byte_s == 20 * 22e9


@pytest.mark.parametrize(("precision", "times"), [("bf16", 1.0), ("fp8", 1.5)])
def test_pairs_of_micro_batches_start_weights_again_where_these_are_quantised(precision: str, times: float) -> None:
    one, table = Mappings.of(ep=[8]), TABLE | {"model": "qwen3-30b-a3b", "precision": precision}
    alone, paired = (
        started_s(Workload.model_validate(table | {"options": {"ep_overlap": overlap}}), one)
        for overlap in (False, True)
    )
    assert paired == pytest.approx(times * alone)
