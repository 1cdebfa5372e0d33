"""`coopt verify`: accepted exits 0, rejected exits 5 and says which claim fails."""

import json
from operator import attrgetter

import pytest

from coopt.verifier.checks.names import CHECKS
from tests.cli.conftest import LONGER
from tests.conftest import SHIPPED, shipped_words

stem = attrgetter("stem")


def test_a_plan_is_accepted_for_its_instance_alone(coopt, planned, written):
    done = coopt("verify", *planned)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("Accepted: ")
    verdict = json.loads(coopt("verify", *planned, "--json").stdout)
    assert verdict["accepted"] is True
    assert set(verdict["checks"][0]) == {"name", "claimed", "recomputed", "tolerance", "ok", "why", "subject", "part"}
    other = coopt("verify", written(("gpus = 64", "gpus = 128"), name="other.toml"), planned[1])
    assert other.exit_code == 5
    assert other.stdout.startswith("Rejected: ")
    assert "instance" in other.stdout.splitlines()[0]
    plan = json.loads(planned[1].read_text("utf-8"))
    plan["cost"]["capex_usd"] -= 1000
    planned[1].write_text(json.dumps(plan), "utf-8")
    done = coopt("verify", *planned)
    assert (done.exit_code, "capex" in done.stdout.splitlines()[0]) == (5, True)


GROWTH_OF_A_CORE = "fleet-core-growth"
"""Takes longest to verify; tests/solving/test_enumeration.py has random fleets whose cores grow."""


@pytest.mark.parametrize("file", [file for file in SHIPPED if file.stem not in (*LONGER, GROWTH_OF_A_CORE)], ids=stem)
def test_a_plan_of_every_shipped_instance_is_accepted(coopt, file, shipped_plan):
    verified = coopt("verify", *shipped_words(file), shipped_plan(file))
    assert verified.exit_code == 0, verified.stdout


def test_every_check_is_listed_without_an_instance(coopt):
    listed = coopt("verify", "--checks").stdout.split()
    assert {name for name, _ in CHECKS} <= set(listed)
