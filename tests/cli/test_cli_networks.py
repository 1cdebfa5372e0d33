"""`coopt reproduce` and `coopt bom`: networks without training on them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

DESIGNS = Path(__file__).parents[2] / "instances" / "designs"
QUESTIONS = DESIGNS.parent / "questions"
PUBLISHED, PRICED = DESIGNS / "published.toml", DESIGNS / "superpod-h100.toml"


@pytest.fixture
def off(tmp_path: Path) -> Path:
    """The priced design with another count published."""
    file = tmp_path / "off.toml"
    file.write_text(PRICED.read_text("utf-8").replace("[32, 16]", "[32, 12]"), "utf-8")
    return file


def test_published_designs_come_out(coopt):
    done = coopt("reproduce", PUBLISHED)
    assert done.exit_code == 0
    assert done.stdout.startswith("87 of 87 published designs come out exactly.")


def test_published_designs_as_json(coopt):
    found = json.loads(coopt("reproduce", PUBLISHED, "--json").stdout)
    assert found["exact"] == found["of"] == len(found["rows"])
    assert {"id", "published", "counted", "ok", "why"} <= set(found["rows"][0])
    assert found["rows"][0]["counted"] == {"switches": [1024, 512], "links": [32768, 32768], "optics": None}


def test_a_design_that_is_off_says_where_and_exits_5(coopt, off):
    done = coopt("reproduce", off)
    assert done.exit_code == 5
    assert done.stdout.startswith("0 of 1 published design comes out exactly.")
    assert "superpod-h100-4su: tier 2 has 16 switches as counted and 12 as published." in done.stdout
    (row,) = json.loads(coopt("reproduce", off, "--json").stdout)["rows"]
    assert not row["ok"]


def test_a_design_that_cannot_be_wired_is_refused_beside_the_others(coopt, off):
    off.write_text(off.read_text("utf-8").replace("domains = 127", "domains = 512"), "utf-8")
    done = coopt("reproduce", off, "--json")
    assert done.exit_code == 1
    assert "off.toml: design 'superpod-h100-4su': tiers[1].ports = 64: a switch of tier 2 would take 128" in done.stderr
    assert json.loads(done.stdout)["rows"][0]["counted"] is None


def test_a_design_is_billed_with_the_products_that_it_names(coopt, tmp_path):
    table = tmp_path / "bill.csv"
    done = coopt("bom", PRICED, "--csv", table)
    assert done.exit_code == 0
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    assert list(rows[0])[:6] == ["part", "description", "quantity", "unit_usd", "usd", "unit_w"]
    quantities = {row["part"]: int(row["quantity"]) for row in rows if row["scope"]}
    assert quantities == {"cx7-400g": 1016, "qm9700": 48, "400g-sr4": 2032, "400g-dr4": 2048}
    found = json.loads(coopt("bom", PRICED, "--json").stdout)
    assert found["usd"] == pytest.approx(sum(float(row["usd"]) for row in rows))
    assert found["w"] == pytest.approx(sum(float(row["w"]) for row in rows))
    assert [row["part"] for row in rows if row["description"] == "not counted"] == found["not_counted"]
    assert "servers and GPUs" in found["not_counted"]


def test_a_design_without_products_has_counts_alone(coopt):
    done = coopt("bom", PUBLISHED, "--design", "dgx-h100-4su")
    assert done.exit_code == 0
    assert "Not priced: NICs; switches of tier 1, 2; optics of tier 1, 2." in done.stdout


def test_a_design_that_is_not_there_is_refused(coopt):
    done = coopt("bom", PRICED, "--design", "other")
    assert done.exit_code == 1
    assert "--design other: there is none of this id, needs one of superpod-h100-4su" in done.stderr


def test_the_bill_of_a_plan_is_the_plans(coopt, planned):
    _, plan = planned
    found, cost = json.loads(coopt("bom", plan, "--json").stdout), json.loads(plan.read_text("utf-8"))["cost"]
    assert (found["usd"], found["w"], found["items"]) == (cost["capex_usd"], cost["power_w"], cost["items"])
    assert found["networks"][0]["items"] == cost["items"]
    assert "Bill" in coopt("bom", plan).stdout


def test_an_instance_of_one_network_is_billed(coopt, written):
    instance = written(('fabrics = ["rail-only", "clos"]', 'fabrics = "rail-only"'))
    found = json.loads(coopt("bom", instance, "--json").stdout)
    (network,) = found["networks"]
    assert [item["count"] for item in network["items"] if item["kind"] == "nic"] == [64]


def test_an_instance_that_leaves_a_choice_is_refused(coopt, written):
    done = coopt("bom", written())
    assert done.exit_code == 1
    assert "network.fabrics leaves a choice (rail-only, clos)" in done.stderr
    assert coopt("bom", written(), "--set", "network.fabrics=clos").exit_code == 0


@pytest.mark.parametrize("command", ["bom", "reproduce"])
def test_a_file_that_is_none_is_refused(coopt, tmp_path, command):
    done = coopt(command, tmp_path / "none.toml")
    assert done.exit_code == 1
    assert "no such file, needs" in done.stderr


def test_a_bill_never_overwrites_what_is_read(coopt, tmp_path):
    assert coopt("bom", PRICED, "--csv", PRICED).exit_code == 1


def test_a_plan_is_billed_with_its_cables_and_lines_that_add_up_to_the_order(coopt, tmp_path):
    question, plan, table = QUESTIONS / "two-sites.toml", tmp_path / "plan.json", tmp_path / "bill.csv"
    assert coopt("solve", question, "-o", plan).exit_code == 0
    done = coopt("bom", question, plan, "--csv", table)
    assert done.exit_code == 0
    assert "Cables" in done.stdout
    assert "servers" not in done.stdout.split("Not counted:")[1]
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    ordered = sum(float(row["usd"]) for row in rows)
    assert ordered == json.loads(plan.read_text("utf-8"))["cost"]["capex_usd"]
    domains = {row["network"]: int(row["quantity"]) for row in rows if row["part"] == "hgx-h100-8"}
    assert domains == {"north": 192, "south": 64}
    assert any(row["part"].startswith("cable ") for row in rows)
    assert "the plan is of another instance" in coopt("bom", QUESTIONS / "two-teams.toml", plan).stderr


def test_values_are_set_in_an_instance_and_in_no_plan(coopt, planned):
    done = coopt("bom", planned[1], "--set", "network.max_tiers=2")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--set: changes values of an instance" in done.stderr
