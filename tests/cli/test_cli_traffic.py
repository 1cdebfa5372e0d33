"""`coopt traffic`: figures, the matrix and the heat map of a plan."""

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


def test_the_matrix_holds_every_pair_and_json_classes_places_and_gpus(coopt, planned, tmp_path):
    file = tmp_path / "matrix.csv"
    done = coopt("traffic", *planned, "--matrix", file, "--json")
    found = json.loads(done.stdout)
    assert found["schema"] == "coopt-traffic/1"
    (one,) = found["workloads"]
    assert (one["name"], one["gpus"], one["all_reduce"]) == ("training", 64, "ring")
    assert 0.5 < one["silent_share"] < 1
    whole = sum(part[f"{place}_bytes"] for part in one["classes"] for place in ("domain", "leaf", "above"))
    assert one["whole_bytes"] == pytest.approx(whole)
    assert [part["place"] for part in one["per_gpu"]] == ["domain", "leaf", "above"]
    rows = list(csv.DictReader(file.read_text("utf-8").splitlines()))
    assert done.stderr == f"coopt: bytes sent between {len(rows):,} pairs of GPUs written to {file}\n"
    assert len(rows) == one["talking_pairs"]
    assert sum(float(row["bytes"]) for row in rows) == pytest.approx(one["whole_bytes"])
    assert {int(row[end]) for row in rows for end in ("src_gpu", "dst_gpu")} == set(range(64))
    said = " ".join(coopt("traffic", *planned).stdout.split())
    for words in ("4,032 ordered pairs", "an HB domain.", "tensor parallel", "in the domain", "above", "By one GPU ("):
        assert words in said


def test_a_heat_map_is_drawn_the_same_each_time_and_names_units_classes_and_ends(coopt, planned, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    kept, draw = [], pictures.picture
    monkeypatch.setattr(pictures, "picture", lambda figure, *more: kept.append(figure) or draw(figure, *more))
    files = [tmp_path / name for name in ("map.png", "again.png")]
    for file in files:
        assert f"picture written to {file}" in coopt("traffic", *planned, "--heat-map", file).stderr
    assert len(files[0].read_bytes()) > 5000
    assert files[0].read_bytes() == files[1].read_bytes()
    left, right, bar = kept[0].axes
    assert (left.get_ylabel(), right.get_xlabel()) == ("from GPU", "to GPU")
    assert bar.get_ylabel().endswith("row to column")
    named = [text.get_text() for text in right.get_legend().get_texts()]
    assert (named[0].startswith("tensor parallel, "), named[-1]) == (True, "never communicate")


def test_trees_take_the_place_of_rings_under_zero_0(coopt, solved):
    planned = solved(("mapping.micro_batch = 1", "mapping = { tp = 8, pp = 2, zero = 0 }"))
    ring, tree = (
        json.loads(coopt("traffic", *planned, "--collective", name, "--json").stdout)["workloads"][0]
        for name in ("ring", "tree")
    )
    assert (ring["all_reduce"], tree["all_reduce"]) == ("ring", "tree")
    assert tree["whole_bytes"] == pytest.approx(ring["whole_bytes"])
    assert "two binary trees" in coopt("traffic", *planned, "--collective", "tree").stdout


def test_a_file_holds_one_workload_of_several(coopt, solved, tmp_path):
    file, two = tmp_path / "matrix.csv", solved(("\n[network]", SECOND))
    done = coopt("traffic", *two, "--matrix", file)
    assert (done.exit_code, done.stdout, "needs --workload training" in done.stderr) == (1, "", True)
    assert coopt("traffic", *two, "--matrix", file, "--workload", "second").exit_code == 0
    assert len(json.loads(coopt("traffic", *two, "--json").stdout)["workloads"]) == 2
    assert "training or second" in coopt("traffic", *two, "--workload", "x").stderr
