"""Every shard of a replica, every rack and every second of an iteration is drawn where the plan has it."""

import math
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.network.halls import site_halls
from coopt.plan.schema import Plan
from coopt.report.plan_drawing import held_by, plan_svg
from coopt.report.timeline import LEFT, WIDTH, stage_spans, timeline_svg
from coopt.traffic.of_plan import workload_splits

INSTANCES = Path(__file__).parents[2] / "instances"
SVG = "{http://www.w3.org/2000/svg}"
NAMES = ["tiny-64", "direct-32", "phased-128"]


@pytest.fixture(scope="module", params=NAMES)
def solved(request: pytest.FixtureRequest, shipped_plan) -> tuple[Instance, Plan]:
    file = INSTANCES / f"{request.param}.toml"
    return coopt.load(file), coopt.Plan.model_validate_json(shipped_plan(file).read_text("utf-8"))


def test_each_stage_has_a_column_and_each_rack_a_place(solved: tuple[Instance, Plan]) -> None:
    instance, plan = solved
    image = ElementTree.fromstring(plan_svg(instance, plan, "a <plan>"))
    texts = [text.text or "" for text in image.iter(f"{SVG}text")]
    last = {part.slot: part for part in plan.parts}.values()
    for part in last:
        _, splits = workload_splits(instance, plan, part=part.name)
        for split, run in splits:
            mapping, held = run.mapping, held_by(split, run)
            places = zip(held.stage.tolist(), held.shard.tolist(), held.replica.tolist(), strict=True)
            assert Counter(places).most_common(1)[0][1] == 1
            assert len(held.gpu) == mapping.pp * held.shards * mapping.dp
            assert ("the only replica" if mapping.dp == 1 else f"one of {mapping.dp} replicas") in texts
            for stage in range(mapping.pp):
                domains = held.gpu[(held.stage == stage) & (held.replica == 0)] // held.active
                title = f"stage {stage} of {mapping.pp}: HB {domains.min()}"
                assert any(one.text.startswith(title) for one in image.iter(f"{SVG}title")), title
    racks = sum(block.racks for hall in site_halls(instance, plan) for block in hall.blocks)
    assert sum(int(found) for text in texts for found in re.findall(r"^(\d+) racks? in", text)) == racks


def test_a_large_cluster_is_a_small_drawing(shipped_plan) -> None:
    file = INSTANCES / "planes-131k.toml"
    plan = coopt.Plan.model_validate_json(shipped_plan(file).read_text("utf-8"))
    drawn = plan_svg(coopt.load(file), plan, "")
    assert len(drawn) < 200_000
    assert all(text in drawn for text in ("16,384 HB domains", "one of 1,024 replicas", "1,048,576 links"))


def test_a_stage_is_busy_or_waits_for_the_whole_iteration(solved: tuple[Instance, Plan]) -> None:
    _, plan = solved
    for run in plan.runs:
        for stage in range(run.mapping.pp):
            now_s, spent = 0.0, Counter[str]()
            for kind, start_s, end_s in stage_spans(run, stage, 3):
                assert start_s == pytest.approx(now_s)
                spent[kind] += end_s - start_s
                now_s = end_s
            assert now_s == pytest.approx(run.iteration_time_s)
            for kind, spent_s in run.breakdown_s.items():
                assert spent[kind] == pytest.approx(spent_s, abs=1e-9)
        image = ElementTree.fromstring(timeline_svg(run, 3, "one", "says"))
        wide = sum(float(x) for path in image.iter(f"{SVG}path") for x in re.findall(r"h([\d.]+)v", path.get("d", "")))
        rows = len(image.findall(f"{SVG}text")) - 3
        assert math.isclose(wide, rows * (WIDTH - LEFT - 10), rel_tol=0.01)
