from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coopt.instance.workload import Workload
from coopt.plan.parts import MappingChoice
from coopt.verifier.parts.uptime import saved_bytes
from coopt.verifier.training.mappings import ScalarMapping, fills, mapping_fault, splits
from tests.conftest import example_count
from tests.verifier.cases import EXPERTS, split, workload

EVERY: dict[str, tuple[Any, ...]] = {
    "tp": (1, 2, 3, 4, 8, 16), "pp": (1, 2, 3, 4, 6, 7, 8, 12), "dp": (1, 2, 3, 4, 6, 8, 12, 16, 24, 48),
    "cp": (1, 2, 3, 4, 8, 16), "ep": (1, 3, 4, 16), "micro_batch": (1, 2, 3), "interleave": (1, 2, 4),
    "recompute": ("none", "selective", "norm+act", "norm+ffn", "full", "act"), "sequence_parallel": (False, True),
    "zero": (0, 1, 2, 3),
}  # fmt: skip
OPEN = {"micro_batch": [1, 2], "interleave": [1, 2, 4], "ep": [1, 4, 16]}
"""Lists that all cases have but where they say other, none longer than what is gone through here."""
CASES: dict[str, dict[str, Any]] = {
    "uneven": {"model": {"layers": 7}, "mapping": {"zero": [0, 3], "micro_batch": [1, 3]}, "away": (0, 100)},
    "experts": {
        "model": EXPERTS,
        "mapping": {"cp": [1, 2, 3], "zero": 2, "pp": [1, 2, 3], "recompute": ["none", "act"]},
        "gpus": 12,
    },
    "split experts": {"model": EXPERTS, "mapping": {"cp": [2, 4]}, "options": {"expert_tp": True}, "gpus": 12},
    "on the host": {
        "model": {"kv_heads": 4},
        "mapping": {"cp": 1, "recompute": ["none", "full"], "zero": [0, 1], "offload_percent": [0, 100]},
        "away": (0, 100),
    },
    "narrow": {
        "mapping": {"tp": [2, 4], "dp": [1, 2, 3, 6], "sequence_parallel": True, "recompute": ["none", "full"]},
        "gpus": 12,
    },
    "by module": {"options": {"tp_sync_fraction": 0.5}, "software": {"recompute_modules": True}},
}


def judged(here: Workload, gpus: int, away: tuple[int, ...] = (0,)) -> set[ScalarMapping]:
    """All mappings without a fault, out of every combination, with such shares on the host; objects with the fields of
    a plan's mapping are made faster than that."""
    every = EVERY | {"offload_percent": away}
    numbers, words = list(every.values())[:7], list(every.values())[7:]
    default = {name: field.default for name, field in MappingChoice.model_fields.items() if name not in every}
    found = set()
    for degrees in product(*numbers):
        if degrees[0] * degrees[1] * degrees[2] * degrees[3] == gpus:
            for rest in product(*words):
                choice = dict(zip(every, (*degrees, *rest), strict=True))
                if not mapping_fault(here, gpus, cast(MappingChoice, SimpleNamespace(**choice, **default))):
                    found.add(ScalarMapping(**choice))
    return found


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_mappings_listed_and_mappings_judged_are_the_same(case: dict[str, Any]) -> None:
    away, gpus = case.get("away", (0,)), example_count(48, usual=case.get("gpus", 6))
    asked = {key: value for key, value in case.items() if key not in ("away", "gpus")}
    here = workload(**asked | {"mapping": OPEN | case.get("mapping", {}), "global_batch": 48})
    listed = list(splits(here, gpus))
    assert len(set(listed)) == len(listed) > 50
    assert set(listed) == judged(here, gpus, away)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dp": 0}, "1 or more"),
        ({"dp": 4}, "48 GPUs train"),
        ({"tp": 3, "dp": 16}, "tp = 3"),
        ({"cp": 3, "dp": 16}, "cp = 3"),
        ({"ep": 32}, "ep = 32"),
        ({"ep": 3}, "ep = 3"),
        ({"pp": 6, "dp": 8, "ep": 8, "interleave": 2}, "interleave = 2"),
        ({"pp": 3, "dp": 16, "interleave": 4}, "pp = 3 with interleave = 4"),
        ({"pp": 1, "interleave": 2}, "needs a pipeline, but pp = 1"),
        ({"micro_batch": 2}, "micro_batch = 2"),
        ({"sequence_parallel": True}, "Sequence parallelism"),
        ({"zero": 4}, "ZeRO stage 4"),
        ({"zero": 3}, "zero = 3"),
        ({"cp": 2, "dp": 24}, "cp = 2"),
        ({"recompute": "selective"}, "selective"),
    ],
)
def test_a_mapping_with_a_fault_is_told_what_it_is(changes: dict[str, Any], words: str) -> None:
    here = workload(model=EXPERTS, global_batch=48, mapping={"cp": 1, "zero": [0, 1]})
    good = split(dp=48, ep=16)._asdict()
    assert mapping_fault(here, 48, MappingChoice.model_validate(good)) == ""
    assert words in mapping_fault(here, 48, MappingChoice.model_validate(good | changes))


def test_layers_fill_chunks_and_only_the_ends_of_a_pipeline_are_shorter() -> None:
    here = workload(model={"layers": 22}, mapping={"tp": 1, "micro_batch": 1}, global_batch=48)
    stages = {(cut.pp, cut.interleave) for cut in splits(here, 48) if cut.missing_layers(22)}
    # 24 stages would leave two missing as well, but there are only 22 layers; of 16 the ends would be empty. 24 chunks
    # on fewer stages leave one to the embedding and one to the loss.
    assert {(p, v) for p, v in stages if v == 1} == {(3, 1), (4, 1), (6, 1), (8, 1), (12, 1)}
    assert {p for p, v in stages if p * v == 24} == {2, 3, 4, 6, 8, 12}
    assert all(-22 % (p * v) <= 2 and p * v <= 24 for p, v in stages)
    assert [p for p in range(1, 79) if fills(78, p, 1) and -78 % p > 3] == [7, 11, 12, 14, 17, 21]
    assert not fills(78, 11, 2)


def test_an_expert_group_needs_ranks_of_its_stage() -> None:
    for expert_tp, degrees in ((False, {1, 2, 4, 8}), (1.0, {1, 2, 4, 8}), (True, {1, 2, 4})):
        options = {"expert_tp": expert_tp}
        here = workload(model=EXPERTS, options=options, mapping={"tp": 2, "cp": 1, "dp": 4}, global_batch=48)
        assert {cut.ep for cut in splits(here, 16)} == degrees
        assert saved_bytes(here) == saved_bytes(workload(model=EXPERTS, options={"expert_tp": 2}))  # a whole model


MAMBA = {"mamba_state": 16, "mamba_heads": 16, "mamba_head_dim": 32, "mamba_groups": 4, "window": 0, "window_layers": 0}


@pytest.mark.parametrize(
    ("asked", "changes", "words"),
    [
        ({"model": {"mamba_layers": 2, **MAMBA | {"mamba_heads": 12}}}, {"cp": 8}, "linear mixers"),
        ({"options": {"dp_replicate": 2}}, {"zero": 0}, "with options.dp_replicate = 2, needs stage 1, 2 or 3"),
        ({"mapping": {"zero": [1, 2, 3]}}, {"tp": 8, "dp": 1, "zero": 0}, "the lowest that is allowed, 1"),
        ({"options": {"schedule": "dualpipe"}}, {"zero": 3}, "'dualpipe', needs stage 0 or 1"),
        ({"options": {"schedule": "zb-h1"}}, {"pp": 2, "interleave": 2}, "no interleaved chunks"),
        ({"model": EXPERTS, "options": {"expert_tp": 4}}, {"tp": 2, "dp": 4}, "no multiple"),
        ({}, {"ep": 2}, "ep = 2 needs a model with experts"),
        ({"mapping": {"pipeline_layout": "Ett|tL"}, "model": {"layers": 3}}, {"interleave": 2}, "but pp = 1"),
    ],
)
def test_sequences_and_schedules_that_do_not_split_are_told(asked, changes, words):
    here, degrees = workload(**asked), {"dp": 8 // (changes.get("cp", 1) * changes.get("pp", 1))}
    choice = MappingChoice.model_validate(split()._asdict() | degrees | changes)
    assert words in mapping_fault(here, 8, choice)
