"""Hosts count where they are asked for, with the HB domains that they carry, in bill, limits and verification alike."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import coopt
from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu, HbDomain, Nic

TINY = Path(__file__).parents[2] / "instances" / "tiny-64.toml"
WHOLE = ("gpu", "host", "hb", "nic", "switch", "optics")


def asked(*include: str, **limits: float) -> coopt.Instance:
    table: dict[str, Any] = coopt.load(TINY).model_dump(by_alias=True)
    return coopt.Instance.model_validate({**table, "objective": {"include": include}, "limits": limits})


def test_hosts_stand_on_the_line_of_their_domain() -> None:
    instance = asked(*WHOLE)
    plan, without = coopt.solve(instance), coopt.solve(asked(*(kind for kind in WHOLE if kind != "host")))
    (domain,) = (item for item in plan.cost.items if item.kind == "hb")
    assert (domain.unit_usd, domain.unit_w) == (7000, 552.5)
    assert plan.cost.capex_usd - without.cost.capex_usd == pytest.approx(64 * 7000)
    assert plan.cost.power_w - without.cost.power_w == pytest.approx(64 * 552.5)
    assert coopt.verify(instance, plan).accepted
    assert not coopt.verify(instance, without).accepted


def test_a_cap_on_power_holds_for_hosts_too() -> None:
    watts = coopt.solve(asked(*WHOLE)).cost.power_w
    assert coopt.solve(asked(*WHOLE, power_mw=1.01 * watts / 1e6)).status == "optimal"
    assert coopt.solve(asked(*WHOLE, power_mw=0.99 * watts / 1e6)).status == "infeasible"


def test_an_instance_with_hosts_is_read_back_as_it_was() -> None:
    instance = asked(*WHOLE)
    assert coopt.Instance.model_validate(instance.model_dump(by_alias=True)) == instance


@pytest.mark.parametrize(
    ("include", "figures", "why"),
    [
        (("host", "nic"), {}, "hosts stand with HB domains, needs 'hb' beside 'host'"),
        (WHOLE, {"host_w_per_gpu": None}, "HB domain 'hgx-h100-8' has no host to count, needs `host_w_per_gpu`"),
    ],
)
def test_hosts_that_cannot_count_are_refused(include: tuple[str, ...], figures: dict[str, Any], why: str) -> None:
    table = asked("hb").model_dump(by_alias=True) | {"objective": {"include": include}}
    table["network"]["hb_domains"] = [{**domain, **figures} for domain in table["network"]["hb_domains"]]
    with pytest.raises(ValueError, match=re.escape(why)):
        coopt.Instance.model_validate(table)


@pytest.mark.parametrize(
    ("gpu", "domain", "nic", "kw"),
    [
        ("a100-80g", "hgx-a100-8", "cx6-200g", 6.5),
        ("h100-sxm", "hgx-h100-8", "cx7-400g", 10.2),
        ("b200", "hgx-b200-8", "cx7-400g", 14.3),
        ("b300", "hgx-b300-8", "cx8-800g", 14.0),
        ("gb200", "gb200-nvl72", "cx7-400g", 132.0),
        ("gb300", "gb300-nvl72", "cx8-800g", 142.0),
    ],
)
def test_a_server_or_rack_of_the_catalog_draws_what_it_is_said_to_draw(
    gpu: str, domain: str, nic: str, kw: float
) -> None:
    one, whole, card = entries("gpu")[gpu], entries("hb_domain")[domain], entries("nic")[nic]
    assert isinstance(one, Gpu)
    assert isinstance(whole, HbDomain)
    assert isinstance(card, Nic)
    watts = whole.size * (one.w + whole.w_per_gpu + (whole.host_w_per_gpu or 0.0) + card.w)
    assert watts / 1000 == pytest.approx(kw, rel=0.001)
