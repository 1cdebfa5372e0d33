"""NICs that several GPUs of a domain share."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.flows import NicLayout
from coopt.columns.grid import context_of
from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import Instance
from coopt.network.family import levels
from coopt.network.graphs import whole_graph
from coopt.network.space import families
from coopt.solving.route_files import routes_csv
from tests.conftest import ASK_WHY, accepted, ask, example_count, switch, value, value_of
from tests.solving.questions import planar


def sharing(instance: Instance, *numbers: int, **changes: Any) -> Instance:
    """The instance where so many GPUs may share a NIC."""
    changes |= {"gpus_per_nic": numbers, "nics_per_gpu": (1,)}
    return instance.model_copy(update={"network": instance.network.model_copy(update=changes)})


def test_four_gpus_of_a_nic_take_a_quarter_of_the_network() -> None:
    parts = {"network__hb_domains": "hgx-h100-8", "network__fabrics": "clos", "network__switches": switch(16, 1)}
    alone, shared = (next(families(ask(network__gpus_per_nic=gpus, **parts))) for gpus in (1, 4))
    assert (alone.nic_count, shared.nic_count) == (64, 16)
    assert shared.byte_s == alone.byte_s / 4
    assert [level.links for level in levels(shared, shared.uplink_choices[-1])] == [16]
    graph = whole_graph(shared, 0)
    nics = [node for node, kind in graph.nodes(data="kind") if kind == "nic"]
    assert len(nics) == 16
    assert {sum(near.startswith("gpu") for near in graph[nic]) for nic in nics} == {4}
    owned = sorted(near for nic in nics for near in graph[nic] if near.startswith("gpu"))
    assert len(owned) == len(set(owned)) == 64


def test_loads_are_those_of_one_gpu_of_a_nic() -> None:
    """64 domains of 8 GPUs with 2 NICs lie on leaves as 64 domains of 2 GPUs do."""
    parts = {"network__switches": switch(16, 1), "network__fabrics": "clos", "network__charge": "loads"}
    parts |= {"network__oversubscription": 1.0, "network__nics_per_gpu": 1}
    hb = {"name": "hb", "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}
    many = ask(network__hb_domains={**hb, "size": 8}, network__gpus_per_nic=4, cluster__gpus=512, **parts)
    few = ask(network__hb_domains={**hb, "size": 2}, cluster__gpus=128, **parts)
    layouts = [
        {context_of(family).layout for family in families(one) if family.active == family.hb.size}
        for one in (many, few)
    ]
    assert layouts[0] == layouts[1]
    assert all(isinstance(layout, NicLayout) and layout.nics == 2 for layout in layouts[0])


@settings(max_examples=example_count(30))
@given(planar(), st.sampled_from([(1, 2), (1, 2, 4), (2,)]), st.sampled_from(["spray", "pinned", "ecmp"]))
def test_the_optimum_is_confirmed_and_no_dearer_than_with_a_nic_for_each(instance, numbers, routing) -> None:
    asked = sharing(instance, *numbers, charge="loads", routing=routing)
    if list(disagreements(asked)):
        return
    plan = accepted(asked, reasons=ASK_WHY)
    if plan.design is not None and plan.design.fabric.tiers and routing == "pinned":
        verdict = coopt.verify(asked, plan, routes=routes_csv(asked, plan))
        assert verdict.accepted, verdict.failures
    if 1 in numbers:
        assert value_of(plan) <= value(sharing(asked, 1)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network__gpus_per_nic": 3}, "network.gpus_per_nic = 3: .*network.nics_per_gpu"),
        ({"network__gpus_per_nic": 2, "network__nics_per_gpu": 2}, "network.gpus_per_nic = 2: "),
        ({"network__gpus_per_nic": 2, "robust": {"survive": "domain"}}, "robust.survive = 'domain'"),
    ],
)
def test_what_cannot_be_shared_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ask(**changes)
