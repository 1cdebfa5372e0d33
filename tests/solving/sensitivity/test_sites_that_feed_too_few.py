"""What has to give where sites feed too few GPUs: their power, shares of the GPUs, or the GPUs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import coopt
from coopt.instance.errors import with_names
from coopt.instance.files import load
from coopt.instance.schema import Instance
from coopt.solving.sensitivity.relaxations import TOLERANCE
from tests.conftest import question
from tests.kinds import FEW, QUESTIONS
from tests.solving.sites.test_sites import apart


def test_powers_of_sites_grow_by_one_share_where_all_are_to_blame() -> None:
    table: Any = copy.deepcopy(QUESTIONS["sites"])
    for site in table["site"]:
        site["power_mw"] *= 0.1
    instance = Instance.model_validate(table)
    assert coopt.solve(instance).status == "infeasible"
    first = coopt.explain(instance).relaxations[0]
    assert [change.limit for change in first.changes] == [f"site[{i}].power_mw" for i in range(len(table["site"]))]
    shares = [change.share for change in first.changes if change.share is not None]
    assert shares == pytest.approx([shares[0]] * len(table["site"]), rel=1e-4)
    for factor, status in ((1.0, "optimal"), (1 - 2 * TOLERANCE, "infeasible")):
        for site, change in zip(table["site"], first.changes, strict=True):
            site["power_mw"] = float(change.to) * factor
        assert coopt.solve(Instance.model_validate(table)).status == status


# a site alone is tried with four times its power, which is enough for the first
@pytest.mark.parametrize("power_mw", [0.004, 0.001])
def test_islands_at_sites_that_feed_too_few_need_power_and_no_shares(power_mw: float) -> None:
    include = ["hb", "nic", "switch", "optics", "gpu"]
    sites = [{"name": name, "power_mw": power_mw} for name in ("oslo", "berlin")]
    table = question(sharing={"mode": "partition"}, objective={"include": include}, site=sites, **FEW)
    found = coopt.explain(Instance.model_validate(table))
    assert found.status == "infeasible"
    first = found.relaxations[0]
    for change in first.changes:
        table["site"][int(change.limit[5])]["power_mw"] = float(change.to)
    plan = coopt.solve(Instance.model_validate(table))
    assert (plan.status, plan.objective.value) == ("optimal", first.value)


def test_more_shares_and_fewer_gpus_are_ways_out_of_sites_that_feed_too_few() -> None:
    """The sentence why there is no plan names both, so that both are tried, and before what takes long."""
    table = apart(cluster={"gpu": "h100-sxm", "gpus": 64, "shares": 1})
    messages: list[str] = []
    found = coopt.explain(Instance.model_validate(table), on_progress=lambda told: messages.append(told.message))
    ways = {one.changes[0].limit: one for one in found.relaxations if len(one.changes) == 1}
    for key, to in (("cluster.shares", "4"), ("cluster.gpus", "48")):
        (change,) = ways[key].changes
        assert change.to == to
        plan = coopt.solve(load(table, {key: int(to)}))
        assert (plan.status, plan.objective.value) == ("optimal", ways[key].value)
    assert coopt.solve(load(table, {"cluster.shares": 2})).status == "infeasible"
    assert coopt.solve(load(table, {"cluster.gpus": 56})).status == "infeasible"
    assert max(messages.index(with_names(key, found.rows)) for key in ways) < messages.index("cluster.gpu.hbm_gb")
