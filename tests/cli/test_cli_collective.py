"""`coopt collective`: the answer in JSON and as a table, files it writes, and what it refuses."""

import json
import re

import pytest

from coopt.network.direct_shapes import fabric
from coopt.network.schedules.schedule_form import Hop, Schedule, replay

KEYS = {"graph", "nodes", "links", "algorithm", "steps", "lower_bound_steps", "time_s", "ring_time_s", "verified"}


def test_json_holds_steps_bound_and_times(coopt):
    done = coopt("collective", "torus:4x4", "--bytes", "1e9", "--gbit-s", "400", "--latency-s", "1e-6", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert set(found) >= KEYS
    assert (found["nodes"], found["links"], found["steps"], found["lower_bound_steps"]) == (16, 32, 4, 4)
    assert found["time_s"] == pytest.approx(2 * 4 * (1e9 / 16 / 50e9 + 1e-6))
    assert found["ring_time_s"] == pytest.approx(2 * 15 * (1e9 / 16 / 50e9 + 1e-6))
    assert found["speedup_over_ring"] == pytest.approx(3.75)
    assert found["verified"] is True


@pytest.mark.parametrize("algorithm", ["multitree", "ring", "ring2d", "double-tree", "halving-doubling"])
def test_every_algorithm_reports_itself_beside_the_ring_and_the_bound(coopt, algorithm):
    done = coopt("collective", "mesh:4x4", "--algorithm", algorithm)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{algorithm} ")
    assert "1 GB over 16" in done.stdout
    assert re.search(r"^  ring +15 +15\.00 ", done.stdout, re.MULTILINE)
    # data that is cut finer may take fewer steps than whole chunks
    steps = {"double-tree": 6, "ring2d": "-"}.get(algorithm, 8)
    assert re.search(rf"^  lower bound +{steps} +", done.stdout, re.MULTILINE)
    assert "Replay" in done.stdout


def test_links_of_several_rates_are_said(coopt, tmp_path):
    file = tmp_path / "fabric.graphml"
    coopt("collective", "ring:4", "--export", file)
    file.write_text(file.read_text("utf-8").replace(">400.0<", ">100.0<", 1), "utf-8")
    assert "100 to 400 Gbit/s" in coopt("collective", file).stdout
    assert "of 800 Gbit/s" in coopt("collective", file, "--gbit-s", "800").stdout


def test_a_price_comes_with_the_parts_that_are_named(coopt):
    words = ("collective", "torus:4x4", "--nic", "cx7-400g", "--optic", "400g-199", "--panel", "patch-panel")
    found = json.loads(coopt(*words, "--json").stdout)["fabric"]
    assert found["usd"] == 64 * (1750 + 199 + 100)
    assert [item["count"] for item in found["items"]] == [64, 64, 64]
    assert "131,136" in coopt(*words).stdout
    assert "fabric" not in json.loads(coopt("collective", "torus:4x4", "--json").stdout)


def test_the_schedule_that_is_written_replays(coopt, tmp_path):
    file = tmp_path / "schedule.json"
    done = coopt("collective", "clos:3x2", "--schedule", file)
    assert done.stderr == f"coopt: schedule written to {file}\n"
    read = json.loads(file.read_text("utf-8"))
    graph = fabric("clos:3x2")
    names = [*read["domains"], *sorted(set(graph) - set(read["domains"]))]
    number = {name: vertex for vertex, name in enumerate(names)}
    phases = {
        phase: tuple(Hop(step, chunk, tuple(number[name] for name in path)) for step, chunk, path in read[phase])
        for phase in ("reduce", "gather")
    }
    schedule = Schedule(
        algorithm=read["algorithm"],
        found_by=read["found_by"],
        names=tuple(names),
        domains=len(read["domains"]),
        roots=tuple(number[name] for name in read["roots"]),
        hops=phases["gather"],
        rounds=tuple(read["rounds"]),
    )
    assert replay(graph, schedule) == ()
    assert sorted(schedule.reduction()) == sorted(phases["reduce"])


def test_a_graph_that_is_exported_gives_the_same_answer(coopt, tmp_path):
    file, dot = tmp_path / "fabric.graphml", tmp_path / "fabric.dot"
    done = coopt("collective", "mesh:4x4", "--export", file, "--json")
    assert done.stderr == f"coopt: graph written to {file}\n"
    assert coopt("collective", file, "--json").stdout == done.stdout
    assert coopt("collective", "mesh:4x4", "--export", file, "--json").exit_code == 0  # written over
    assert coopt("collective", "ring:3", "--export", dot).exit_code == 0
    assert dot.read_text("utf-8").startswith('graph "ring:3" {\n  "d0" [kind="domain"];\n')


def test_free_roots_are_faster_on_a_mesh_and_keep_a_bound_of_their_own(coopt):
    even, free = (
        json.loads(coopt("collective", "mesh:8x8", "--roots", roots, "--json").stdout) for roots in ("even", "free")
    )
    assert free["time_s"] < even["time_s"]
    assert free["lower_bound_steps"] <= free["steps"] < even["lower_bound_steps"]
