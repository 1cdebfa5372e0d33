"""`coopt verify`: accepted exits 0, rejected exits 5 and says which claim fails."""

from __future__ import annotations

import json


def test_a_plan_of_the_instance_is_accepted(coopt, planned):
    done = coopt("verify", *planned)
    assert done.exit_code == 0
    assert done.stdout.startswith("Accepted: ")
    assert done.stderr == ""


def test_a_plan_of_another_instance_is_rejected(coopt, planned, written):
    other = written(("gpus = 64", "gpus = 128"), name="other.toml")
    done = coopt("verify", other, planned[1])
    assert done.exit_code == 5
    assert done.stdout.startswith("Rejected: ")
    assert "instance" in done.stdout.splitlines()[0]


def test_a_false_claim_is_rejected_by_name(coopt, planned):
    instance, file = planned
    plan = json.loads(file.read_text("utf-8"))
    plan["cost"]["capex_usd"] -= 1000
    file.write_text(json.dumps(plan), "utf-8")
    done = coopt("verify", instance, file)
    assert done.exit_code == 5
    assert "capex" in done.stdout.splitlines()[0]


def test_a_part_is_one_of_routes(coopt, planned):
    done = coopt("verify", *planned, "--part", "nobody's")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--part: needs --routes." in done.stderr


def test_json_is_one_document_with_every_check(coopt, planned):
    verdict = json.loads(coopt("verify", *planned, "--json").stdout)
    assert verdict["accepted"] is True
    assert set(verdict["checks"][0]) == {"name", "claimed", "recomputed", "tolerance", "ok", "why", "subject", "part"}


def test_a_plan_of_every_shipped_instance_is_accepted(coopt, quick, shipped_plan):
    verified = coopt("verify", quick, shipped_plan(quick))
    assert verified.exit_code == 0, verified.stdout
