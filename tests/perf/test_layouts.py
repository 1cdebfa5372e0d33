"""Pipelines whose chunks have what a layout says, beside simulated schedules, plans and other programs' forms."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.flows import NicLayout
from coopt.columns.grid import Context, DomainSet, mappings
from coopt.columns.pools import place
from coopt.instance.layouts import layout_of, layout_of_ends, letters_of
from coopt.instance.network import Discipline
from coopt.instance.workload import Workload
from coopt.perf import layouts
from coopt.perf.layouts import LayoutParts, LayoutRows, layout_chains, layout_s
from coopt.perf.mapping import held_parameters
from coopt.perf.memory import memory_bytes, stages
from coopt.report.megatron import megatron_script
from coopt.report.own_runs import mapping_words
from coopt.validation.fits import fits_of
from tests.changes import with_part
from tests.conftest import ROOT, example_count, small_model
from tests.perf.pipeline_simulation import Pipeline
from tests.perf.training import mapped

TINY: dict[str, Any] = tomllib.loads((ROOT / "instances" / "tiny-64.toml").read_text("utf-8"))


def question(layout: str, layers: int = 6, predictions: int = 0, **mapping: Any) -> coopt.Instance:
    """GPT 22B with other layers on 64 GPUs, as fast as it can be."""
    model = {"extends": "gpt-22b", "layers": layers, "extra_predictions": predictions}
    (workload,) = TINY["workload"]
    workload = {key: value for key, value in workload.items() if key != "max_iteration_time_s"}
    workload |= {"model": model, "mapping": {"pipeline_layout": layout, "micro_batch": 1} | mapping}
    return coopt.Instance.model_validate(TINY | {"workload": workload, "objective": {"minimize": "time"}})


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[LayoutRows, int, LayoutParts]:
    """Chunks of equal size but for some, or of any size; logits up to three layers, hops up to 1% of a pass."""
    p, v = draw(st.sampled_from([2, 3, 4, 5, 6, 8, 12])), draw(st.sampled_from([1, 1, 2, 3, 4]))
    m = draw(st.integers(1, 6)) * (p if v > 1 else 1)
    size = draw(st.integers(1, 5))
    sizes = draw(st.lists(st.integers(0, 4), min_size=p * v, max_size=p * v) | st.just([size] * (p * v)))
    for number in draw(st.lists(st.integers(0, p * v - 1), max_size=3)):
        sizes[number] += 1
    chunks = ["t" * count for count in sizes]
    if draw(st.booleans()):
        chunks[-1 if sizes[-1] else -2] += "m"
    forward, hop = draw(st.floats(0.5, 2.0)), draw(st.floats(0.0, 0.01))
    backward = forward * draw(st.floats(1.0, 2.2))
    layer, loss = forward + backward, draw(st.sampled_from([0.05, 0.3, 1.0, 3.0]))
    rows = LayoutRows("E" + "|".join(chunks) + "L", np.array([p]), np.array([v]))
    seconds = (forward, backward, layer * draw(st.floats(0.8, 1.5)), layer * loss, forward * hop)
    return rows, m, LayoutParts(*(np.array([number]) for number in seconds))


@settings(max_examples=example_count(1000, 30))
@given(pipelines())
def test_layouts_are_met_by_the_schedules_within_a_thousandth(pipeline: tuple[LayoutRows, int, LayoutParts]) -> None:
    rows, m, parts = pipeline
    forward, backward, predictions, loss, hop = (float(part[0]) for part in parts)
    ends = [predictions * (chunk.predictions > 0) + loss * chunk.loss for chunk in layout_of(rows.text)]
    chunks = tuple(
        (chunk.layers * forward + end / 3, chunk.layers * backward + end * 2 / 3)
        for chunk, end in zip(layout_of(rows.text), ends, strict=True)
    )
    p, v = int(rows.p[0]), int(rows.v[0])
    run = Pipeline(p=p, v=v, m=m, forward=1, backward=1, logits=0, hop=hop, chunks=chunks).run()
    (time_s,) = layout_s(rows, np.array([m]), parts)
    assert time_s == pytest.approx(run, rel=1e-12 if v == 1 else 1e-3)


@settings(max_examples=example_count(300, 20))
@given(pipelines(), st.integers(0, 2**32 - 1))
def test_chains_are_as_long_as_the_pipeline_wherever_its_parts_add_up_from_terms(pipeline, seed):
    """Terms such as those of two mappings, and of traffic: within a third of each other, and hops alone."""
    (text, p, v), m, parts = pipeline
    random, count = np.random.default_rng(seed), 200
    terms = np.stack(parts) * random.uniform(0.8, 1.2, (5, 3))
    terms[:, 2] = [0, 0, 0, 0, 1]
    seconds = terms @ 10 ** random.uniform(-4, 2, (3, count))
    chains = layout_chains(LayoutRows(text, p, v), np.array([m]), terms[:, :, None])
    longest_s = (np.stack(chains)[:, :, 0] @ seconds).max(axis=0)
    rows = LayoutRows(text, p.repeat(count), v.repeat(count))
    exact_s = layout_s(rows, np.full(count, m), LayoutParts(*seconds))
    np.testing.assert_allclose(longest_s, exact_s, rtol=1e-9)


@pytest.mark.parametrize("routing", ["spray", "ecmp"])
def test_the_search_has_the_times_of_layouts_to_the_last_digit(routing: str) -> None:
    """For all mappings and numbers of uplinks of a leaf, those too whose tensors or keys cross domains."""
    instance = question("Et*3|t|t|t*3|m|L", 8, 1, tp=[1, 2], cp=[1, 2, 16], pp=[2, 3, 6])
    (workload,), (hb, *_) = instance.workload, instance.network.hb_domains
    site, layout = DomainSet(gpus=48, hb=hb.name, domains=6), NicLayout(domains=6, span=2, leaves=3, planes=1)
    context = Context(site=site, byte_s=50e9, layout=layout, discipline=Discipline("loads", routing, 0.98))
    pool = place(workload, instance.cluster.gpu, hb, site, mappings(workload, 48)[0])
    assert len(pool) > 20
    for uplinks in range(1, 9):
        exact_s = pool.iteration.time_s(pool.reciprocals(context, uplinks))
        np.testing.assert_allclose(pool.time_s(context, uplinks), exact_s, rtol=1e-9)


@pytest.mark.parametrize(
    ("p", "layout", "hop"),
    [
        (4, "Ett|t|ttt|ttL", 0.02),
        (3, "Et*5|t|t|t|tt|t*3L", 0.02),  # stages are late by as much only after some periods
        (4, "Et*5|t*4|t*5|t|tt|t*4|t*4|ttL", 0.0),
    ],
)
def test_periods_that_repeat_end_when_each_of_them_does(p, layout, hop, monkeypatch):
    m, rows = np.array([60 * p]), LayoutRows(layout, np.array([p]), np.array([len(layout_of(layout)) // p]))
    parts = LayoutParts(*(np.array([number]) for number in (1.0, 2.0, 0.0, 0.7, hop)))
    walked: list[int] = []

    class Walked(tuple[Any, ...]):
        def __getitem__(self, number: Any) -> Any:
            walked.append(number)
            return super().__getitem__(number)

    listed = layouts._slots
    monkeypatch.setattr(layouts, "_slots", lambda *shape: Walked(listed(*shape)))
    time_s, few = layout_s(rows, m, parts), len(walked)
    monkeypatch.setattr(layouts, "SAME", -1.0)
    assert time_s == pytest.approx(layout_s(rows, m, parts), rel=1e-12)
    assert few < (len(walked) - few) / 2


@pytest.mark.parametrize(
    ("layout", "changes", "says"),
    [
        ("E(tt|)*2,ttL", {}, None),
        ("Ettx|L", {}, "'x' has no meaning"),
        ("E((t|)*2t)*2L", {}, "has no meaning"),
        ("t|E|L", {}, "needs one E first"),
        ("Et*5|L", {}, "has 5 layers t and 0 layers m, needs 6 and 0"),
        ("Et*6m|L", {}, "1 layer m, needs 6 and 0"),
        ("", {}, "needs one E first"),
        ("Et*3|\nt*3L", {}, r"'\\n' has no meaning"),
        ("Et*٦L", {}, "'٦' has no meaning"),
        ("Et*6m|mL", {"predictions": 2}, "in several chunks"),
        ("Et*6L|", {}, "needs E in the first chunk"),
        (f"Et*6{'|' * 8}L", {}, "it has 9 chunks, needs at most 8"),
        ("Et*3|t*3|L", {"pp": 2}, r"has 3 chunks, needs .* .pp = \[2\]"),
        ("E(t*9999999)*99L", {}, "error, it has 990,000,794 letters, needs at most"),
    ],
)
def test_layouts_that_do_not_add_up_are_refused(layout: str, changes: dict[str, Any], says: str | None) -> None:
    if says is None:
        assert [chunk.layers for chunk in question(layout).workload[0].layout] == [2, 2, 2]
        return
    with pytest.raises(ValueError, match=rf"(?s)pipeline_layout.*{says}"):
        question(layout, **changes)


def training(layout: str | None, schedule: str = "1f1b", **model: Any) -> Workload:
    table = {"name": "w", "model": small_model(**model), "global_batch": 48, "max_iteration_time_s": 1.0}
    chosen = {"mapping": {"pipeline_layout": layout}, "options": {"schedule": schedule}}
    return Workload.model_validate(table | chosen)


def test_lists_of_names_and_short_ends_are_layouts_too() -> None:
    names = "[['embedding', 'decoder'], ['decoder', 'decoder', 'mtp'], ['loss']]"
    assert letters_of(names) == "Et|ttm|L"
    assert layout_of_ends(7, 3, 1, 0, 1) == "Et|ttt|tttmL"
    assert (layout_of_ends(7, 3, 2, 0, 0), layout_of_ends(7, 2, 3, 3, 0), layout_of_ends(7, 1, 7, 0, 0)) == ("",) * 3
    with pytest.raises(ValueError, match="'encoder' is no part of a model"):
        letters_of("[['encoder']]")


def test_other_schedules_have_no_layout() -> None:
    with pytest.raises(ValueError, match=r"pipeline_layout = 'Ettt\|tttL': options.schedule = 'zb-h1'"):
        training("Ettt|tttL", "zb-h1", layers=6)


def test_every_stage_holds_its_own_layers_and_tables() -> None:
    """Three stages of two chunks: layers that predict need a table; passes ahead are 4, 2 and 0, and 3 in the ring."""
    uneven = training("Et*3|t|t|t*3|m|L", layers=8, extra_predictions=1, tied_embeddings=False)
    loads = [tuple(int(np.ravel(n)[0]) for n in load) for load in stages(uneven, mapped(pp=3, interleave=2, dp=2))]
    assert loads == [(6, 1, 3 * 8, 0), (2, 1, 6, 0), (1, 1, 4, 0)]


@pytest.mark.parametrize("dp", [1, 4])
def test_the_default_split_as_a_layout_needs_the_same_memory(dp: int) -> None:
    layers = {"layers": 8, "extra_predictions": 1}
    drawn, plain = training("Et*4|t*4mL", **layers), training(None, **layers)
    for held in (memory_bytes, held_parameters):
        assert held(drawn, mapped(pp=2, dp=dp)) == held(plain, mapped(pp=2, dp=dp))


def test_memory_is_listed_for_all_stages_that_a_layout_goes_with(tmp_path: Path) -> None:
    file, text = tmp_path / "mine.toml", (ROOT / "instances" / "tiny-64.toml").read_text("utf-8")
    layout = '[workload.mapping]\npipeline_layout = "Et*11|t*13|t*12|t*12L"'
    file.write_text(text.replace("[workload.mapping]", layout), "utf-8")
    (found,) = fits_of(str(file), {}, {}, {})
    assert {(one.mapping["pp"], one.mapping["interleave"]) for one in found.listed} == {(2, 2), (4, 1)}
    assert mapping_words(found.listed[0].mapping)


@pytest.mark.parametrize(
    ("layout", "changes"),
    [("Ett|t|t|ttL", {"pp": 4}), ("Et|t|t|t|t|tL", {"pp": 2}), ("Et*3|t|t|t|m|L", {"pp": 2, "predictions": 1})],
)
def test_a_plan_states_its_layout_and_another_is_rejected(layout: str, changes: dict[str, Any]) -> None:
    instance = question(layout, **changes)
    plan = coopt.solve(instance)
    assert coopt.verify(instance, plan).accepted
    (run,) = plan.workloads
    assert run.mapping.pipeline_layout == layout
    assert run.mapping.pp * run.mapping.interleave == len(layout_of(layout))
    assert sum(run.breakdown_s.values()) == pytest.approx(run.iteration_time_s)
    assert f"--pipeline-model-parallel-layout '{layout}'" in megatron_script(instance, plan)
    for changed in ("", layout.replace("t", "tt", 1)):
        mapping = run.mapping.model_copy(update={"pipeline_layout": changed})
        forged = with_part(plan, workloads=(run.model_copy(update={"mapping": mapping}),))
        assert not coopt.verify(instance, forged).accepted
    for key, name in (("iteration_time_s", "iteration-time"), ("memory_gib", "memory")):
        forged = with_part(plan, workloads=(run.model_copy(update={key: getattr(run, key) * 1.001}),))
        assert name in [check.name for check in coopt.verify(instance, forged).checks if not check.ok]
