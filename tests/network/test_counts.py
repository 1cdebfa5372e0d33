"""Switches and transceivers as published (arXiv 2307.12169; counting rule of docs/network.md)."""

from __future__ import annotations

import pytest

from coopt.instance.schema import Instance
from coopt.network.family import Family, levels
from coopt.network.parts import bill, total
from coopt.network.space import families
from tests.conftest import ask


def paper(gpus: int, hb_size: int, radix: int, fabric: str) -> tuple[Instance, Family]:
    """The paper's setting: non-blocking, 694 USD a port, 199 USD a transceiver; switches and optics counted."""
    domain = {"name": "hb", "size": hb_size, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}
    instance = ask(
        cluster__gpus=gpus,
        network__hb_domains=[domain],
        network__fabrics=fabric,
        network__switches=f"{radix}x400g",
        network__oversubscription=1.0,
        objective={"include": ["switch", "optics"]},
    )
    (family,) = families(instance)
    return instance, family


def counted(gpus: int, hb_size: int, radix: int, fabric: str) -> tuple[int, int, float]:
    instance, family = paper(gpus, hb_size, radix, fabric)
    uplinks = family.uplink_choices[-1]
    tiers = levels(family, uplinks)
    cost = total(instance.objective, bill(instance, family, uplinks))
    return sum(t.switches for t in tiers), 2 * sum(t.links for t in tiers), cost.capex_usd


@pytest.mark.parametrize(
    ("gpus", "radix", "fabric", "switches", "transceivers", "usd"),
    [
        (32_768, 64, "clos", 2560, 196_608, 152_829_952),
        (32_768, 64, "rail-only", 1536, 131_072, 94_306_304),
        (32_768, 128, "clos", 1280, 196_608, 152_829_952),
        (32_768, 128, "rail-only", 256, 65_536, 35_782_656),
        (32_768, 256, "clos", 384, 131_072, 384 * 256 * 694 + 131_072 * 199),
        (32_768, 256, "rail-only", 128, 65_536, 128 * 256 * 694 + 65_536 * 199),
        (65_536, 64, "clos", 5120, 393_216, None),
        (65_536, 64, "rail-only", 3072, 262_144, None),
        (65_536, 128, "clos", 2560, 393_216, None),
        (65_536, 128, "rail-only", 1536, 262_144, None),
        (65_536, 256, "clos", 1280, 393_216, None),
        (65_536, 256, "rail-only", 256, 131_072, None),
    ],
)
def test_published_counts(gpus, radix, fabric, switches, transceivers, usd) -> None:
    found = counted(gpus, 256, radix, fabric)
    assert found == (switches, transceivers, found[2] if usd is None else usd)


@pytest.mark.parametrize(
    ("hb_size", "savings"), [(8, (0.0, 38.3, 0.0)), (64, (38.3, 38.3, 0.0)), (256, (38.3, 76.6, 62.1))]
)
def test_saving_is_a_step_function_of_the_domain_size(hb_size: int, savings: tuple[float, ...]) -> None:
    """Published to a tenth of a percent for domains of 256 below switches of 64 and 128 ports, to a percent else."""
    for radix, percent in zip((64, 128, 256), savings, strict=True):
        any_to_any, rail_only = (counted(32768, hb_size, radix, fabric)[2] for fabric in ("clos", "rail-only"))
        assert round(100 * (1 - rail_only / any_to_any), 1) == percent


@pytest.mark.parametrize(
    ("gpus", "fabric", "switches"),
    [
        (512, "rail-only", 8),
        (1024, "rail-optimized", 48),
        (1024, "clos", 48),
        (8192, "rail-only", 384),
        (32768, "rail-optimized", 2560),
        (32768, "clos", 2560),
    ],
)
def test_switches_of_a_published_h100_sheet(gpus: int, fabric: str, switches: int) -> None:
    """HGX clusters on 64-port switches; 512 and 8,192 GPUs are built there as separate rails."""
    assert counted(gpus, 8, 64, fabric)[0] == switches
