"""Models with Mamba-2 layers: their sizes as published, what they refuse, how they are split, solved and exported."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

import coopt
from coopt.columns.grid import mappings
from coopt.instance.catalog import find
from coopt.instance.texts import InstanceError
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import model_flop_per_token, model_parameters
from coopt.report.megatron import megatron_script
from tests.conftest import accepted, ask, question, small_model
from tests.perf.training import training

SIZES = {"mamba_heads": 64, "mamba_head_dim": 64, "mamba_groups": 8, "mamba_state": 128}
HYBRID = SIZES | {"layers": 8, "mamba_layers": 3, "attention_layers": 1, "ffn_layers": 4}


def model(name: str) -> Transformer:
    found = find("model", name)
    assert isinstance(found, Transformer)
    return found


def test_parameters_are_those_published() -> None:
    """Model cards and reports: 56 billion; 31.6 and 3.6 with embeddings; 120.6 and 12.7; 550 and 60 by name."""
    for name, total, met in (("h-56b", 56e9, 56e9), ("3-nano", 31.6e9, 3.6e9), ("3-super", 120.6e9, 12.7e9)):
        assert model_parameters(model(f"nemotron-{name}")) == pytest.approx((total, met), rel=0.01)
    total, met = model_parameters(model("nemotron-3-ultra"))
    assert (round(total, -10), round(met, -10)) == (550e9, 60e9)


def test_flops_are_those_that_megatron_bridge_counts() -> None:
    """Its formula for a hybrid (training/utils/flop_utils.py), with attention in full, where it counts half of it."""
    nano, s, h = model("nemotron-3-nano"), 8192, 2688
    mamba = 2 * h * (2 * 4096 + 2 * 8 * 128 + 64) + 7 * 4096 * 128 + 2 * 4096 * h
    attention = 4 * h * (4096 / h) * (h + h * 2 / 32 + s)
    experts = 4 * h * 1856 * 6 + 4 * h * 3712
    router = 2 * h * 128
    forward = 23 * mamba + 6 * attention + 23 * (experts + router) + 2 * h * 131072
    assert model_flop_per_token(nano) == pytest.approx(3 * forward, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"mamba_heads": 8}, "mamba_heads: for models with Mamba-2 layers, needs mamba_layers > 0"),
        ({"ffn_layers": 4}, "ffn_layers: for hybrids, needs mamba_layers > 0 or mixers"),
        ({"mamba_layers": 2}, "needs mamba_heads, mamba_head_dim, mamba_groups, mamba_state"),
        (HYBRID | {"mamba_groups": 7}, "mamba_groups = 7: "),
        (HYBRID | {"attention_layers": 6}, "needs 9 to 13"),
        (HYBRID | {"attention_layers": 0}, "layers = 8: needs 4 to 7"),
        (HYBRID | {"window": 512, "window_layers": 2}, "more windowed layers"),
        ({"expert_latent": 64}, "expert_latent = 64: "),
        ({"shared_ffn": 512, "capacity": 1.5}, "shared_ffn = 512, capacity = 1.5: "),
        (HYBRID, "no scaling law"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], complaint: str) -> None:
    table = {"name": "w", "model": small_model(**changes), "global_batch": 64, "max_iteration_time_s": 1.0}
    with pytest.raises(ValidationError) as error:
        Workload.model_validate(table | ({"compute_flop": 1e20} if changes == HYBRID else {}))
    assert complaint in str(error.value)


def test_tensors_are_split_by_groups_and_sequences_by_heads() -> None:
    """As Megatron-LM's context parallelism for Mamba-2: whole groups of heads, or one group on several ranks."""
    here = training(small_model(**HYBRID | {"mamba_groups": 2, "mamba_heads": 6}))
    rows, _ = mappings(here, 16)
    assert set(zip(rows.tp.tolist(), rows.cp.tolist(), strict=True)) == {(1, 1), (1, 2), (2, 1)}


def test_what_splits_no_hybrid_is_said() -> None:
    (asked,) = question()["workload"]
    limits = asked["mapping"] | {"tp": [16]}
    plan = coopt.solve(ask(workload=[asked | {"model": small_model(**HYBRID), "mapping": limits}]))
    assert plan.status == "infeasible"
    (said,) = plan.explanation
    assert all(words in said for words in ("32 heads", "8 groups of mamba-2", "8 layers", "tp = [16]")), said


def test_a_hybrid_is_solved_verified_and_exported_to_megatron() -> None:
    (asked,) = question()["workload"]
    here = ask(workload=[asked | {"model": small_model(**HYBRID), "max_iteration_time_s": 5.0}])
    plan = accepted(here)
    script = megatron_script(here, plan)
    assert "pretrain_hybrid.py" in script
    (pattern,) = re.findall(r"--hybrid-layer-pattern=(\S+)", script)
    chunks = pattern.strip("'").split("|")
    mapping = plan.workloads[0].mapping
    assert len(chunks) == mapping.pp * mapping.interleave
    assert sorted("".join(chunks)) == sorted("MMM*----")
    assert "of each kind evenly" in script


def test_layers_of_two_parts_are_not_exported_to_megatron() -> None:
    (asked,) = question()["workload"]
    model = small_model(**HYBRID | {"ffn_layers": 8})
    here = ask(workload=[asked | {"model": model, "max_iteration_time_s": 5.0}])
    with pytest.raises(InstanceError, match=r"layers = 8: Megatron-LM counts the 12 mixers .* needs layers = 12"):
        megatron_script(here, accepted(here))
