"""What does not go together is refused before any search, with its key, its value and what is needed."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic import ValidationError

from coopt.instance.catalog import sentences
from coopt.instance.schema import Instance, load
from coopt.instance.texts import InstanceError
from coopt.solving.answer import solve
from tests.conftest import ask, question
from tests.solving.direct.test_direct_links import TWO, linked
from tests.solving.sites.test_sites import LINK, apart
from tests.solving.test_phased_questions import FIRST, LAST

PHASES: dict[str, tuple[dict[str, Any], str]] = {
    "one phase": ({"phase": [LAST]}, "needs at least two"),
    "years that fall": ({"phase": [FIRST, LAST | {"year": 2026}]}, "previous phase, 2026"),
    "GPUs that fall": ({"phase": [FIRST | {"gpus": 128}, LAST]}, "previous phase, 128"),
    "an unknown workload": ({"phase": [FIRST | {"workloads": "x"}, LAST]}, "is named 'x', needs one of w"),
    "a workload twice": ({"phase": [FIRST | {"workloads": ["w", "w"]}, LAST]}, "'w' appears more than once"),
    "two bounds": ({"phase": [FIRST | {"workloads": {"name": "w", "train_days": 3.0}}, LAST]}, "needs train_tokens"),
    "other GPUs at the top": ({"phase": [FIRST, LAST], "cluster__gpus": 32}, "cluster.gpus = 32: "),
    "a list of ratios": ({"phase": [FIRST, LAST], "network__oversubscription": [1.0, 2.0]}, "the largest ratio"),
    "a budget": ({"phase": [FIRST, LAST], "limits": {"capex_usd": 1e6}}, "limits.capex_usd: "),
    "power": ({"phase": [FIRST, LAST], "objective": {"minimize": "power"}}, "needs 'capex' or 'tco'"),
}

REFUSED: dict[str, tuple[Callable[..., dict[str, Any]], list[tuple[dict[str, Any], str]]]] = {
    "direct": (
        linked,
        [
            ({"network__fabrics": ["direct"]}, "network.fabrics: 'direct' .* needs a switched fabric in the list too"),
            ({"network__fabrics": ["clos"]}, "network.panels: .* needs 'direct'"),
            ({"solver": {"top": 2}}, "solver.top = 2: .* 'direct' in network.fabrics, needs 1"),
            (
                {"network__link_reach_m": [50, 5000, 6000]},
                "network.optics: no optic of a NIC's rate reaches the 5000 m of a direct link",
            ),
            ({"workload__0__options": {"collectives": "fastest"}}, "needs \"levels\" or fabrics without 'direct'"),
            ({"network__panels": ["ocs", "ocs"]}, "network.panels: name 'ocs' appears more than once"),
            ({"workload": TWO}, "network.fabrics: 'direct' .* there are 2"),
            (
                {"phase": [FIRST, LAST], "site": [{"name": "a", "power_mw": 1.0}], "sharing": {"mode": "partition"}},
                "a single site and a cluster that never grows, needs fabrics without 'direct', or sharing.mode",
            ),
        ],
    ),
    "sites": (
        apart,
        [
            ({"site": []}, "wan: applies to several sites, but there are none"),
            ({"cluster__shares": 3}, "cluster.shares = 3: does not divide cluster.gpus = 64"),
            ({"cluster": {"gpu": "h100-sxm", "gpus": 64}}, "cluster.shares: is missing"),
            (
                {"cluster__gpus": [64, 128]},
                "cluster.gpus = 64, 128: the sites divide a fixed number of GPUs, needs one",
            ),
            ({"wan__0__between": ["east", "north"]}, r"wan\[0\].between: no site is named 'north'"),
            ({"wan__0__between": ["east", "east"]}, "joins 'east' with itself"),
            ({"wan__0__between": ["east"]}, "wan.0.between.1"),
            ({"site__1__name": "east"}, "site: name 'east' appears more than once"),
            ({"wan": [LINK, LINK | {"between": ["west", "east"]}]}, r"wan\[1\].between: west - east"),
            ({"objective": {}}, "objective.include: .* needs 'gpu'"),
            ({"robust": {"prices": {"nic": [1.0, 2.0]}}}, r"not supported with robust\.prices, .* or no \[robust\]"),
            (
                {"robust": {"survive": ["channel", "nic"], "prices": {"nic": [1.0, 2.0]}}},
                r"each workload at one site\), or no robust\.prices and robust\.survive = 'channel'",
            ),
            ({"solver": {"top": 2}}, "solver.top = 2: .* \\[\\[site\\]\\], needs 1"),
            (
                {"site": [{"name": f"s{n}", "power_mw": 1} for n in range(7)], "wan": []},
                "site: there are 7 sites, needs at most 6",
            ),
        ],
    ),
    "robust": (
        lambda **wish: question(robust=wish),
        [
            ({"slower": 1.5}, "robust.slower = 1.5: allows slower iterations after a loss, needs robust.survive"),
            ({"aim": "regret"}, "robust.aim = 'regret': nothing is uncertain"),
            ({"efficiency": [1.0, 0.9]}, r"robust.efficiency = \[1, 0.9\]: needs the smaller factor first"),
            (
                {"efficiency": [1.0, 1.6]},
                r"\[1, 1.6\]: the larger factor exceeds the peak rate of h100-sxm, needs at most 1.459",
            ),
            ({"prices": {"nic": [2.0, 1.0]}}, r"nic = \[2, 1\]: needs the smaller factor first"),
            ({"survive": ["pod"]}, "needs one of 'nic', 'leaf', 'plane', 'domain' or 'channel'"),
            ({"survive": ["nic"], "slower": 0.5}, "robust.slower = 0.5: needs a factor from 1 to 1000, or a table"),
            (
                {"survive": ["nic"], "slower": "twice"},
                "robust.slower = 'twice': needs a factor from 1 to 1000, or a table",
            ),
            ({"survive": ["nic"], "slower": {"nic": 0.5}}, "robust.slower.nic = 0.5: needs at least 1"),
            ({"survive": ["nic"], "slower": {"gpu": 2.0}}, "robust.slower.gpu: unknown key"),
            (
                {"survive": ["nic"], "slower": {"domain": 2.0}},
                "robust.slower.domain = 2: applies only after the loss of a domain, needs 'domain' in robust.survive",
            ),
            ({"survive": ["nic", "nic"]}, "robust.survive: 'nic' appears more than once"),
            ({"prices": {"nic": [1.0, 2.0, 3.0]}}, "nic"),
        ],
    ),
    "domains filled in any way": (
        partial(question, network__domain_fill="any"),
        [
            ({"site": [{"name": "a", "power_mw": 1.0}], "cluster__shares": 4}, "site"),
            (
                {"phase": [{"gpus": 32, "year": 0, "workloads": ["w"]}, {"gpus": 64, "year": 1, "workloads": ["w"]}]},
                "phase",
            ),
            ({"robust": {"survive": "nic", "slower": 3.0}}, "robust.survive"),
            ({"network__gpus_per_nic": 2}, "gpus_per_nic"),
            ({"network__charge": "loads", "network__routing": "pinned"}, "pinned"),
            ({"workload__0__options": {"collectives": "fastest"}}, "collectives"),
        ],
    ),
    "days": (
        question,
        [
            (
                {"cluster__start": "2027-01-01", "workload__0__by": "2028-01-01", "workload__0__train_tokens": 1e12},
                "max_iteration_time_s and by = 2028-01-01 are given, needs exactly one",
            ),
            ({"availability": {"rates": "nothing"}}, "no failure rates of this name"),
            ({"availability": {"rates": "llama-3", "spare_domains": -1}}, "spare_domains"),
            ({"availability": {"rates": "llama-3", "checkpoint_s": 0}}, "checkpoint_s"),
            (
                {"availability": {"rates": {"extends": "llama-3", "gpu": {"per_year": 9.0}}}},
                "needs low <= per_year <= high",
            ),
            ({"availability": {"rates": "llama-3"}, "robust": {"survive": "nic"}}, r"availability: .* robust\.survive"),
            (
                {
                    "availability": {"rates": {"extends": "llama-3", "gpus_per_host": 6}},
                    "network__gpus_per_nic": [1, 4],
                    "network__hb_domains": "hgx-h100-8",
                },
                r"gpus_per_nic = 1, 4: GPUs that share a NIC .*= 6",
            ),
        ],
    ),
    "objectives": (
        question,
        [
            ({"objective": {"minimize": "carbon"}}, "needs objective.kg_co2_per_kwh"),
            ({"objective": {"minimize": "carbon", "kg_co2_per_kwh": 0.4}}, "needs train_tokens"),
            (
                {"workload": [{**w, "max_iteration_time_s": None} for w in TWO]},
                r"no bound is given, needs exactly one of \w+, \w+, train_days \(with train_tokens\)$",
            ),
            ({"objective": {"minimize": "usd_per_token", "years": 0}}, "needs years above 0"),
            ({"objective": {"minimize": "time"}, "solver": {"top": 2}}, "runners-up"),
            (
                {"objective": {"minimize": "time"}, "sharing": {"mode": "partition"}},
                "is not supported with sharing.mode = 'partition', needs one workload on one network of switches",
            ),
        ],
    ),
    "margins": (
        lambda **margin: question(margin=margin),
        [
            ({"time": -0.1}, "margin.time"),
            ({"memory": 1.0}, "margin.memory"),
            ({"ports": -0.1}, "margin.ports"),
            ({"time": "often"}, "margin.time"),
            ({"confidence": 1.0}, "margin.confidence"),
        ],
    ),
    "phases": (question, [(changes, re.escape(says)) for changes, says in PHASES.values()]),
}
CASES = [(build, *row) for build, rows in REFUSED.values() for row in rows]
IDS = [f"{name} {n}" for name, (_, rows) in REFUSED.items() for n in range(len(rows))]


@pytest.mark.parametrize(("build", "changes", "words"), CASES, ids=IDS)
def test_what_does_not_go_together_is_refused(
    build: Callable[..., dict[str, Any]], changes: dict[str, Any], words: str
) -> None:
    with pytest.raises((InstanceError, ValidationError)) as refused:
        Instance.model_validate(build(**changes))
    told = sentences(refused.value, Instance) if isinstance(refused.value, ValidationError) else ()
    assert re.search(words, "\n".join([str(refused.value), *told]), re.DOTALL)


@pytest.mark.parametrize("sharing", [{}, {"sharing": {"mode": "partition"}}])
def test_a_rate_that_is_told_is_one_that_may_be_typed(sharing: dict[str, Any]) -> None:
    (one,) = question()["workload"]
    del one["max_iteration_time_s"]
    for margin in ("none", {"time": 0.2287}):
        asked = {"workload": [one | {"min_tokens_per_s": 1e10}], "margin": margin, **sharing}
        told = " ".join(solve(Instance.model_validate(question(**asked))).explanation)
        (rate,) = re.findall(r"that is ([\d,]+) tokens/s", told)
        slower = one | {"min_tokens_per_s": float(rate.replace(",", ""))}
        assert solve(Instance.model_validate(question(**asked | {"workload": [slower]}))).status == "optimal"


def test_bounds_of_workloads_in_turn_are_told_to_be_each_its_own() -> None:
    (one,) = question()["workload"]
    late = [one | {"name": name, "max_iteration_time_s": 1e-3} for name in ("v", "w")]
    for workloads in (late[:1], late):
        told = solve(Instance.model_validate(question(workload=workloads))).explanation
        assert sum("needs a bound" in text for text in told) == len(workloads)
        assert any("each need above is that of its workload alone" in text for text in told) == (len(workloads) > 1)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"workload__0__mapping": {"tp": [16]}, "workload__0__allow_tp_across": False}, "allow_tp_across"),
        (
            {"cluster__gpus": 16, "workload__0__mapping": {"tp": [1], "pp": [4]}, "network__gpus_per_nic": 8},
            "gpus_per_nic",
        ),
    ],
)
def test_what_keeps_degrees_from_filling_domains_is_named(changes: dict[str, Any], key: str) -> None:
    asked = question(network__hb_domains="hgx-h100-8", network__fabrics="clos", **changes)
    assert any(key in text for text in solve(Instance.model_validate(asked)).explanation)


def test_no_more_gpus_are_asked_for_where_the_network_is_given() -> None:
    whole = {f"workload[0].mapping.{key}": [value] for key, value in {"tp": 1, "pp": 1, "zero": 0}.items()}
    (said,) = solve(load("instances/questions/given.toml", whole)).explanation
    assert "GiB" in said
    assert "more GPUs" not in said


@pytest.mark.parametrize(("zero", "shares"), [(0, False), (1, True)])
def test_replicas_that_share_no_states_need_no_more_of_them(zero: int, shares: bool) -> None:
    mapping = dict.fromkeys(("tp", "pp", "cp", "ep", "micro_batch"), 1) | {"zero": zero, "recompute": "full"}
    (said,) = solve(ask(workload__0__model="gpt-1t", workload__0__mapping=mapping)).explanation
    assert "of a GPU" in said
    assert ("more GPUs" in said) == shares
