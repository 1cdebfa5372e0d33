"""`coopt traffic`: figures, the matrix and the heat map of a plan."""

from __future__ import annotations

import csv
import json

import pytest

from coopt.report import pictures

SECOND = """
[[workload]]
name = "second"
model = "gpt-22b"
global_batch = 64
max_iteration_time_s = 2.0
mapping.micro_batch = 1

[network]"""


@pytest.fixture
def two(coopt, written, tmp_path):
    """The plan of two workloads."""
    instance, plan = written(("\n[network]", SECOND)), tmp_path / "plan.json"
    assert coopt("solve", instance, "-o", plan).exit_code == 0
    return instance, plan


def test_json_holds_classes_places_and_gpus(coopt, planned):
    done = coopt("traffic", *planned, "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["schema"] == "coopt-traffic/1"
    (one,) = found["workloads"]
    assert (one["name"], one["gpus"], one["all_reduce"]) == ("training", 64, "ring")
    assert 0.5 < one["silent_share"] < 1
    whole = sum(part[f"{place}_bytes"] for part in one["classes"] for place in ("domain", "leaf", "above"))
    assert one["whole_bytes"] == pytest.approx(whole)
    assert [part["place"] for part in one["per_gpu"]] == ["domain", "leaf", "above"]


def test_the_report_says_who_never_talks_and_what_stays_inside(coopt, planned):
    said = coopt("traffic", *planned).stdout
    flat = " ".join(said.split())
    assert "4,032 ordered pairs" in flat
    assert "an HB domain." in flat
    for words in ("tensor parallel", "data parallel", "in the domain", "on the leaf", "above", "By one GPU ("):
        assert words in said


def test_the_matrix_holds_every_pair_and_all_bytes(coopt, planned, tmp_path):
    file = tmp_path / "matrix.csv"
    done = coopt("traffic", *planned, "--matrix", file, "--json")
    one = json.loads(done.stdout)["workloads"][0]
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert done.stderr == f"coopt: bytes of {len(rows):,} pairs written to {file}\n"
    assert len(rows) == one["talking_pairs"]
    assert sum(float(row["bytes"]) for row in rows) == pytest.approx(one["whole_bytes"])
    assert {int(row[end]) for row in rows for end in ("src_gpu", "dst_gpu")} == set(range(64))


@pytest.mark.parametrize("name", ["map.png", "map.svg"])
def test_a_heat_map_is_drawn_the_same_each_time(coopt, planned, tmp_path, name):
    pytest.importorskip("matplotlib")
    file = tmp_path / name
    done = coopt("traffic", *planned, "--heat-map", file)
    assert done.exit_code == 0
    assert f"picture written to {file}" in done.stderr
    first = file.read_bytes()
    assert len(first) > 5000
    coopt("traffic", *planned, "--heat-map", file)
    assert file.read_bytes() == first


def test_a_heat_map_names_units_classes_and_ends(coopt, planned, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    kept, draw = [], pictures.picture
    monkeypatch.setattr(pictures, "picture", lambda figure, *more: kept.append(figure) or draw(figure, *more))
    assert coopt("traffic", *planned, "--heat-map", tmp_path / "map.png").exit_code == 0
    left, right, bar = kept[0].axes
    assert (left.get_ylabel(), right.get_xlabel()) == ("from GPU", "to GPU")
    assert bar.get_ylabel().endswith("row to column")
    named = [text.get_text() for text in right.get_legend().get_texts()]
    assert named[0].startswith("tensor parallel, ")
    assert named[-1] == "never talk"


def test_trees_take_the_place_of_rings_under_zero_0(coopt, written, tmp_path):
    instance, plan = written(("mapping.micro_batch = 1", "mapping = { tp = 8, pp = 2, zero = 0 }")), tmp_path / "p.json"
    assert coopt("solve", instance, "-o", plan).exit_code == 0
    ring, tree = (
        json.loads(coopt("traffic", instance, plan, "--collective", c, "--json").stdout)["workloads"][0]
        for c in ("ring", "tree")
    )
    assert (ring["all_reduce"], tree["all_reduce"]) == ("ring", "tree")
    assert tree["whole_bytes"] == pytest.approx(ring["whole_bytes"])
    assert "two binary trees" in coopt("traffic", instance, plan, "--collective", "tree").stdout


def test_a_file_holds_one_workload_of_several(coopt, two, tmp_path):
    file = tmp_path / "matrix.csv"
    done = coopt("traffic", *two, "--matrix", file)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "needs --workload training" in done.stderr
    assert coopt("traffic", *two, "--matrix", file, "--workload", "second").exit_code == 0
    assert len(json.loads(coopt("traffic", *two, "--json").stdout)["workloads"]) == 2
    assert "training or second" in coopt("traffic", *two, "--workload", "x").stderr
