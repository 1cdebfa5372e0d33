"""What phases cost: prices of a phase, units in place, electricity, labour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coopt.instance.phases import years_of
from coopt.instance.schema import Instance
from coopt.verifier.parts import Line, bill
from coopt.verifier.phased.stages import Path, Stage

RETROFIT = "retrofit links"
Key = tuple[str, str]


class Unit(NamedTuple):
    """Price and power of one unit of an item, at the prices of the instance."""

    usd: float
    w: float


def in_place(instance: Instance, stage: Stage, uplinks: int) -> dict[Key, int]:
    """Units of every item that stand in a phase."""
    found: dict[Key, int] = {}
    for line in _lines(instance, stage, uplinks):
        key = (line.kind, line.item)
        found[key] = found.get(key, 0) + line.amount
    return found


def units_of(instance: Instance, path: Path, uplinks: Sequence[int]) -> dict[Key, Unit]:
    """What a unit of every item costs and draws."""
    lines = [line for stage, up in zip(path, uplinks, strict=True) for line in _lines(instance, stage, up)]
    return {(line.kind, line.item): Unit(line.unit_usd, line.unit_w) for line in lines}


def _lines(instance: Instance, stage: Stage, uplinks: int) -> list[Line]:
    return bill(instance, stage.family, stage.levels(uplinks), stage.optics)


def price_factor(instance: Instance, phase: int, kind: str) -> float:
    """What a phase pays for a kind over the price of the instance."""
    return float(getattr(instance.phase[phase].price, kind))


def electricity_usd(instance: Instance, phase: int, power_w: float) -> float:
    """Price of running `power_w` until the next phase."""
    terms = instance.objective
    usd_per_kwh = terms.usd_per_kwh * instance.phase[phase].price.energy
    return years_of(instance, phase) * 8760 * power_w / 1000 * terms.pue * usd_per_kwh


def links_per_uplink(before: Stage, now: Stage) -> tuple[int, int]:
    """Links added to switches of an earlier phase: for each new uplink on its leaves, and for each uplink they had."""
    if now.ports.tiers < 2 or before.ports.tiers < 1:
        return 0, 0
    planes = now.family.planes
    cores_come = before.one_pod and now.ports.tiers == 3
    return planes * before.leaves, planes * now.ports.pod_up if cores_come else 0


def links_added(before: Stage, now: Stage, was: int, uplinks: int) -> int:
    """Links up that are added to switches of an earlier phase: on its leaves, and on its aggregation switches."""
    new, old = links_per_uplink(before, now)
    return new * (uplinks - was) + old * was
