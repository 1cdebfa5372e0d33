"""Links that nothing listed joins are named as the reason, and ways out mate."""

from __future__ import annotations

from typing import Any

import pytest

from coopt.explain.answer import explain
from coopt.instance.catalog import find
from coopt.instance.schema import Instance, text_of
from coopt.solving.answer import solve
from tests.conftest import ask, small_model
from tests.explain.test_infeasible import single


def test_optics_that_do_not_reach_are_named() -> None:
    reach_m = (50.0, 700.0, 700.0)
    instance = ask(cluster__gpus=128, network__link_reach_m=reach_m, network__fabrics="clos")
    (said,) = solve(instance).explanation
    longest = max(optic.reach_m for optic in instance.network.optics)
    assert "reaches the 700 m from leaf to the next tier (network.link_reach_m)" in said
    assert f"reaches {longest:g} m" in said
    found = explain(instance)
    assert {"network.link_reach_m", "network.optics"} <= set(found.conflict)
    (closer,) = single(found)["network.link_reach_m"].changes
    assert closer.to == text_of((50.0, longest, longest))


TWIN = {"name": "twin", "gbit_s": 800, "breakout": [2], "reach_m": 500, "fibre": "x", "usd": 900, "w": 15}


SHORT = {"name": "short", "gbit_s": 400, "reach_m": 50, "fibre": "x", "usd": 500, "w": 8}


WIDE = {"name": "wide", "radix": 32, "port_gbit_s": 400, "cages": 16, "usd": 9000, "w": 300}


TWO = [{"name": name, "model": small_model(), "global_batch": 128, "max_iteration_time_s": 30} for name in "ab"]


OPTICS_SHORT: dict[str, dict[str, Any]] = {
    "one network": {"network__link_ends": "same"},
    "partition": {"sharing": {"mode": "partition"}},
    "phases": {"phase": [{"year": 2027, "gpus": 128}, {"year": 2028, "gpus": 128}]},
    "fleet": {
        "sharing": {"mode": "partition"},
        "phase": [{"year": 2027, "gpus": 256}, {"year": 2028, "gpus": 256}],
    },
    "fleet of one network": {
        "phase": [{"year": 2027, "gpus": 128}, {"year": 2028, "gpus": 128}],
        "robust": {"survive": "nic", "slower": 1000.0},
    },
}


def lacking(kind: str, **changes: Any) -> Instance:
    """A question that needs two tiers, with modules above leaves that hold two links each."""
    own = OPTICS_SHORT[kind]
    sizes = {"gpus": [128]} if "sharing" in own else {}
    return ask(
        **{
            "cluster__gpus": 256 if sizes else 128,
            "workload": [workload | sizes for workload in TWO],
            "network__fabrics": "clos",
            "network__hb_domains": "hgx-h100-8",
            "network__nics": "cx7-400g",
            "network__switches": [WIDE],
            "network__optics": [SHORT, TWIN],
            "network__oversubscription": 4.0,
            **own,
            **changes,
        }
    )


@pytest.mark.parametrize("kind", OPTICS_SHORT)
def test_links_that_no_optic_joins_are_the_reason_in_every_kind_of_question(kind: str) -> None:
    plan = solve(lacking(kind))
    assert plan.status == "infeasible"
    said = " ".join(plan.explanation)
    assert (
        "no optic of network.optics joins the links of 100 m from leaf to the next tier (network.link_reach_m)" in said
    )
    assert "twin reaches as far, but holds several links at once, and both ends of a link have one product" in said
    assert "needs an optic of 400 Gbit/s that reaches 100 m (such as 400g-dr4)" in said
    assert "longer bound" not in said
    enough = lacking(kind, network__optics=[SHORT, TWIN, "400g-dr4"])
    assert solve(enough).status == "optimal"
    assert ("network.link_ends = 'own'" in said) == (kind == "one network")
    assert solve(lacking(kind, network__link_ends="own"), reasons=False).status == (
        "optimal" if kind == "one network" else "infeasible"
    )


@pytest.mark.parametrize("kind", ["partition", "fleet"])
def test_a_bound_that_no_optic_would_meet_is_not_put_down_to_optics(kind: str) -> None:
    late = [workload | {"gpus": [128], "max_iteration_time_s": 1e-3} for workload in TWO]
    said = " ".join(solve(lacking(kind, workload=late)).explanation)
    assert said
    assert "optic" not in said


def of_200g(capex_usd: float | None = None, **parts: Any) -> Instance:
    """A question that NICs of 200 Gbit/s answer; the cheapest switch for them is one with which they do not mate."""
    listed = {"nics": "cx6-200g", "switches": ["40x200g"], "optics": ["200g-aoc"]} | parts
    return ask(
        cluster__gpus=256,
        workload__0__global_batch=256,
        workload__0__max_iteration_time_s=30,
        network__hb_domains="hgx-h100-8",
        network__fabrics=["rail-only"],
        limits={"capex_usd": capex_usd},
        **{f"network__{key}": value for key, value in listed.items()},
    )


def test_no_switch_is_a_way_out_with_which_nothing_listed_mates() -> None:
    unmated = solve(of_200g(switches=["51t"]))
    nic, optic, box = find("nic", "cx6-200g"), find("optic", "200g-aoc"), find("switch", "51t")
    assert nic.lane_gbit_s == (optic.lane_gbit_s,) != (box.lane_gbit_s,)
    cap = (unmated.objective.value or 0.0) * 1.01
    assert solve(of_200g(cap, switches=["40x200g", "51t"])).status == "optimal"
    found = explain(of_200g(cap))
    assert {change.limit for one in found.relaxations for change in one.changes} == {"limits.capex_usd", "cluster.gpus"}
    listed = explain(of_200g(cap / 1.1, switches=["51t"]))  # links that the user's own lists join so
    assert unmated.design in [one.design for one in listed.relaxations if one.changes[0].limit == "limits.capex_usd"]


def test_parts_that_are_enough_together_mate() -> None:
    asked = {"nics": "cx7-400g", "switches": ["qm9700"], "optics": ["400g-sr4", "400g-dr4"]}
    best, cheapest = solve(of_200g()), solve(of_200g(switches=["51t"]))
    found = explain(of_200g(600_000, **asked))
    (parts,) = (one for one in found.relaxations if len(one.changes) == 3)
    assert parts.design == best.design
    assert parts.value == best.objective.value > cheapest.objective.value
