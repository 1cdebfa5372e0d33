"""What has to give where sites feed too few GPUs: their power, shares of the GPUs, or the GPUs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import coopt
from coopt.instance.base import with_names
from coopt.instance.numerics import SEARCHED
from coopt.instance.schema import Instance, load
from tests.conftest import question
from tests.kinds import FEW, QUESTIONS
from tests.solving.fleets import growing_at
from tests.solving.sites.test_sites import apart


def test_powers_of_sites_grow_by_one_share_after_those_of_each_alone() -> None:
    table: Any = copy.deepcopy(QUESTIONS["sites"])
    for site in table["site"]:
        site["power_mw"] *= 0.1
    instance = Instance.model_validate(table)
    assert coopt.solve(instance).status == "infeasible"
    *alone, first = coopt.explain(instance).relaxations
    assert {len(one.changes) for one in alone} == {1}
    assert [change.limit for change in first.changes] == [f"site[{i}].power_mw" for i in range(len(table["site"]))]
    shares = [change.share for change in first.changes if change.share is not None]
    assert shares == pytest.approx([shares[0]] * len(table["site"]), rel=1e-4)
    for factor, status in ((1.0, "optimal"), (1 - 2 * SEARCHED, "infeasible")):
        for site, change in zip(table["site"], first.changes, strict=True):
            site["power_mw"] = float(change.to) * factor
        assert coopt.solve(Instance.model_validate(table)).status == status


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


def test_each_site_that_alone_is_to_blame_is_told_however_much_it_takes() -> None:
    """Other limits need less than four times what they are; one site needs 190 times its power."""
    powers = {"east_mw": 1e-4, "west_mw": 0.008}
    found = coopt.explain(growing_at(**powers))
    ways = {one.changes[0].limit: one for one in found.relaxations if len(one.changes) == 1}
    assert {"site[0].power_mw", "site[1].power_mw"} <= set(ways)
    for site, key in (("east_mw", "site[0].power_mw"), ("west_mw", "site[1].power_mw")):
        (change,) = ways[key].changes
        plan = coopt.solve(growing_at(**powers | {site: float(change.to)}))
        assert (plan.status, plan.objective.value) == ("optimal", ways[key].value)
        less = float(change.to) * (1 - 2 * SEARCHED)
        assert coopt.solve(growing_at(**powers | {site: less})).status == "infeasible"


def test_more_shares_and_fewer_gpus_are_ways_out_of_sites_that_feed_too_few() -> None:
    """The sentence why there is no plan names both, so that both are tried, and not what cannot help."""
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
    assert {with_names(key, found.rows) for key in ways} <= {*messages}
    assert "cluster.gpu.hbm_gb" not in messages  # in no conflict, so that it cannot be enough
