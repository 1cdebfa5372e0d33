"""Routes of pinned flows: those that are exported hold, and whatever is changed in them is found."""

import csv
import io
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.plan.schema import Plan
from coopt.solving.route_files import routes_csv
from tests.conftest import ask, small_model, switch

QUESTIONS: dict[str, dict[str, Any]] = {
    "one tier": {"network__fabrics": "rail-only", "network__switches": "64x400g"},
    "rails of two tiers": {
        "cluster__gpus": 128, "network__fabrics": "rail-only", "network__switches": [switch(12, 5000)],
        "network__oversubscription": 5.0,
    },
    "clos of two tiers": {"network__fabrics": "clos", "network__switches": [switch(16, 5000)], "network__max_tiers": 2},
    "clos of three tiers": {"network__fabrics": "clos", "network__switches": [switch(8, 5000)]},
    "planes of ports": {
        "network__fabrics": "clos", "network__nic_planes": 2,
        "network__nics": {"name": "n", "gbit_s": 400, "ports": [1, 2], "usd": 1, "w": 1},
        "network__switches": {
            "name": "b", "radix": 16, "port_gbit_s": 400, "usd": 1, "w": 1, "modes": {"radix": 16, "port_gbit_s": 200},
        },
        "network__optics": {"name": "o", "gbit_s": 400, "breakout": [2], "reach_m": 500, "usd": 1, "w": 1},
        "network__oversubscription": 1.0,
    },
    "embeddings of their own": {
        "network__fabrics": "clos", "network__switches": [switch(16, 5000)],
        "workload__0__model": small_model(tied_embeddings=False),
        "workload__0__mapping": {"tp": 4, "pp": 4, "interleave": 2},
    },
    "experts over pods": {
        "network__fabrics": "clos", "network__switches": [switch(8, 5000)],
        "workload__0__model": small_model(experts=8, top_k=2, ffn=2048),
        "workload__0__mapping": {"ep": 8, "tp": 4, "pp": 2},
    },
}  # fmt: skip
Row = dict[str, str]


def pinned(**changes: Any) -> Instance:
    return ask(
        **{"network__charge": "loads", "network__routing": "pinned", "network__hb_domains": "hgx-h100-8", **changes}
    )


@cache
def solved(name: str) -> tuple[Instance, Plan, str]:
    instance = pinned(**QUESTIONS[name])
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    return instance, plan, routes_csv(instance, plan)


@pytest.mark.parametrize("name", QUESTIONS)
def test_routes_that_are_exported_hold(name: str) -> None:
    instance, plan, table = solved(name)
    verdict = coopt.verify(instance, plan, routes=table)
    assert verdict.failures == ()
    assert {"route-paths", "route-flows", "route-loads"} <= {check.name for check in verdict.checks}


def changed(table: str, change: Callable[[list[Row]], None]) -> str:
    rows = list(csv.DictReader(table.splitlines()))
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    change(rows)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def one_spine(rows: list[Row]) -> None:
    for row in rows:
        if row["top"]:
            row["top"] = row["top"].rsplit("/", 1)[0] + "/0"


CHANGES: dict[str, tuple[Callable[[list[Row]], None], str]] = {
    "a flow left out": (lambda rows: rows.pop() and None, "route-flows"),
    "a flow that nobody sends": (
        lambda rows: rows[-1].update(destination_gpu="gpu/3/0", destination_nic="nic/3/0/0"),
        "route-paths",
    ),
    "a spine that is not there": (lambda rows: rows[-1].update(top="spine/0/99"), "route-paths"),
    "a name of no switch": (lambda rows: rows[-1].update(top="spine/0/-1"), "route-paths"),
    "another leaf": (lambda rows: rows[-1].update(source_leaf="leaf/0/99"), "route-paths"),
    "another NIC": (lambda rows: rows[-1].update(source_nic="nic/0/0/7"), "route-paths"),
    "all over one spine": (one_spine, "route-loads"),
    "a workload that is not there": (lambda rows: rows.append(rows[-1] | {"workload": "other"}), "route-flows"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_in_routes_is_found(change: str) -> None:
    instance, plan, table = solved("clos of two tiers")
    spoil, name = CHANGES[change]
    verdict = coopt.verify(instance, plan, routes=changed(table, spoil))
    assert name in [check.name for check in verdict.failures]


def test_sprayed_flows_have_no_routes_to_check() -> None:
    instance, plan, table = solved("clos of two tiers")
    sprayed = instance.model_copy(update={"network": instance.network.model_copy(update={"routing": "spray"})})
    with pytest.raises(InstanceError, match=r"routing = 'spray'.*pinned"):
        coopt.verify(sprayed, coopt.solve(sprayed), routes=table)
    with pytest.raises(InstanceError, match="routes: no column collective, destination_aggregation"):
        coopt.verify(instance, plan, routes="workload,bytes\n")
