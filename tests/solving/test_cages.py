"""Where cages are kept, switches take no more modules than they have cages, in plans and in the verifier's eyes."""

from __future__ import annotations

from typing import Any

import pytest

import coopt
from coopt.instance.catalog import find, ports_of_modules
from coopt.instance.hardware import Switch
from coopt.instance.schema import Instance
from coopt.network.orders import order_notes_of_parts
from coopt.plan.schema import InstanceId
from coopt.verifier.parts import design_checks
from coopt.verifier.parts.space import cage_count
from tests.conftest import accepted, ask, switch
from tests.solving.test_partition_cores import two

QM9700: dict[str, Any] = {
    "network__nics": "cx7-400g",
    "network__switches": "qm9700",
    "network__hb_domains": "hgx-h100-8",
    "network__fabrics": "clos",
    "network__oversubscription": 1.0,
    "network__link_reach_m": [40, 40, 40],
    "workload__0__max_iteration_time_s": 9.0,
}


def kept(instance: Instance, cages: str = "kept") -> Instance:
    """The instance with cages that are kept, or told."""
    return instance.model_copy(update={"network": instance.network.model_copy(update={"switch_cages": cages})})


def counts(instance: Instance) -> tuple[int, set[str]]:
    """Switches of the cheapest plan, which the verifier accepts, and its optics."""
    plan = accepted(instance)
    return plan.design.fabric.switch_count, {name for tier in plan.design.fabric.tier for name in tier.ends}


def test_single_modules_halve_a_switch_of_twin_cages_and_twin_ones_fill_it() -> None:
    """64 end points fill 64 ports of one switch; with 32 cages four leaves have 16 down and 16 up, to two spines."""
    single = ask(**QM9700, network__optics="400g-sr4")
    assert counts(single) == (1, {"400g-sr4"})
    assert counts(kept(single)) == (6, {"400g-sr4"})
    twin = ask(**QM9700, network__optics=["400g-sr4", "800g-sr8"])
    assert counts(kept(twin)) == (1, {"400g-sr4", "800g-sr8"})


def test_a_plan_with_more_modules_than_cages_is_rejected_where_they_are_kept_and_told_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Modules are counted on the graph as well, whatever ports the switches are said to have."""
    single = ask(**QM9700, network__optics="400g-sr4")
    plan, other = coopt.solve(single), coopt.solve(kept(single))
    named = InstanceId(name=single.name, sha256=kept(single).sha256)
    claim = plan.model_copy(update={"instance": named})
    assert "tiers" in {check.name for check in coopt.verify(kept(single), claim).failures}
    monkeypatch.setattr(design_checks, "in_cages", lambda network, family, carried: family)
    assert "cages" in {check.name for check in coopt.verify(kept(single), claim).failures}
    assert plan.design is not None
    assert other.design is not None
    notes = " ".join(order_notes_of_parts(single, {"network": plan.design}))
    assert "which has room for 32" in notes
    assert "network.switch_cages = 'kept'" in notes
    assert "which has room for" not in " ".join(order_notes_of_parts(kept(single), {"network": other.design}))


@pytest.mark.parametrize(
    ("name", "cages", "single", "double"),
    [("qm9700", 32, 32, 64), ("51t", 64, 64, 64), ("128x400g", 64, 64, 128), ("64x400g", 64, 64, 64)],
)
def test_cages_are_those_of_the_box(name: str, cages: int, single: int, double: int) -> None:
    box = find("switch", name)
    assert isinstance(box, Switch)
    assert [ports_of_modules(box, links) for links in (1, 2)] == [single, double]
    for way in box.in_each_mode:
        assert cage_count(way) == cages


def test_a_core_has_a_port_for_each_of_its_cages() -> None:
    """Two islands of 36 GPUs at 100 Gbit/s have nine links each: three switches of eight ports, five of four cages."""
    core = {"gbit_s_per_gpu": 100.0}
    boxes = [switch(8, 5000) | {"cages": 4}, switch(16, 11000)]
    asked = two((36, 36), core, network__switches=boxes)
    for cages, switches in (("told", 3), ("kept", 5)):
        plan = accepted(kept(asked, cages))
        assert plan.couplings.cores
        assert (plan.couplings.cores[0].core.switches, plan.couplings.cores[0].core.ports) == (switches, 18)
