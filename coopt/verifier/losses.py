"""What the loss of a part takes from a design, and whether the design stands it."""

from __future__ import annotations

import math

from coopt.instance.robust import Lost, Robust, after_a_loss
from coopt.instance.schema import Instance
from coopt.plan.robust import Survived
from coopt.verifier.enumeration import Stands
from coopt.verifier.layouts import Ports
from coopt.verifier.ledger import TOLERANCE, Ledger, near
from coopt.verifier.lost_domain import Restart, check_restart
from coopt.verifier.space import Family
from coopt.verifier.spans import reach_of
from coopt.verifier.trainer import Trainer


def nics_lost(family: Family, ports: Ports, part: Lost) -> int:
    """The most NICs of one domain on a part (docs/faults.md)."""
    assert family.gear is not None
    kind, rails = family.gear.kind, family.rails
    if part == "nic":
        return 1
    if part == "domain":
        return rails
    if part == "plane":
        return rails // family.planes
    if kind == "rail-only":
        return min(family.planes, family.gear.switch.radix // family.ends) if ports.tiers == 1 else 1
    if ports.tiers == 1:
        return rails
    if kind == "rail-optimized":
        return ports.down // family.domains if family.domains <= ports.down else 1
    return min(rails, ports.down)


def slowdown(family: Family, ports: Ports, part: Lost) -> float:
    """How much longer traffic of a domain takes; infinite where it has no NIC left."""
    assert family.gear is not None
    lost, per_gpu = nics_lost(family, ports, part), family.gear.per_gpu
    left = family.rails - lost
    hop = family.nic_byte_s / (family.hb.gbyte_s * 1e9)
    shared = max(1.0, family.active * per_gpu / left) + hop if left > 0 else math.inf
    own = per_gpu / (per_gpu - 1) if lost == 1 and per_gpu > 1 else math.inf
    return min(shared, own)


def survivor(question: Instance, robust: Robust) -> Stands:
    """Whether a design meets the longer bounds of a question without intervals after every loss."""
    factors = robust.slower.of_part
    parts = [part for part in robust.survive if part != "domain"]
    trainers = {factor: Trainer(after_a_loss(question, factor)) for factor in {factors[part] for part in parts}}
    restart = Restart(after_a_loss(question, factors["domain"]))

    def stands(family: Family, ports: Ports) -> bool:
        whole = all(_trains_without(trainers[factors[part]], family, ports, part) for part in parts)
        return whole and ("domain" not in robust.survive or restart.stands(family, ports))

    return stands


def _trains_without(trainer: Trainer, family: Family, ports: Ports, part: Lost) -> bool:
    """Whether a design whose NICs are as slow as the loss makes them trains in time; one domain has nothing to lose."""
    if family.gear is None:
        return True
    slower = slowdown(family, ports, part)
    if math.isinf(slower):
        return False
    nic = family.gear.nic.model_copy(update={"gbit_s": family.gear.nic.gbit_s / slower})
    return trainer.trains(family._replace(gear=family.gear._replace(nic=nic)), reach_of(family, ports))


def check_losses(
    ledger: Ledger, question: Instance, robust: Robust, claims: tuple[Survived, ...], family: Family, ports: Ports
) -> None:
    """Check what each loss takes, and that the design stands it; how workloads run without a domain is in the plan."""
    factors = robust.slower.of_part
    parts = robust.survive if family.gear else ()
    given = tuple(f"{one.part}: {one.nics_lost} NICs, bounds times {one.slower:.12g}" for one in claims)
    found = tuple(f"{part}: {nics_lost(family, ports, part)} NICs, bounds times {factors[part]:.12g}" for part in parts)
    fine = given == found and all(_slowed_alike(one, family, ports) for one in claims)
    ledger.holds("losses", fine, given, found, "The losses of the design are other ones.", TOLERANCE)
    here = robust.model_copy(update={"survive": tuple(part for part in robust.survive if part != "domain")})
    stands = survivor(question, here)(family, ports) and (family.gear is not None or here == robust)
    why = "After a loss the design does not meet its longer bounds."
    ledger.holds("survives", stands, True, stands, why)
    for one in claims:
        if one.part == "domain":
            check_restart(ledger, after_a_loss(question, factors["domain"]), family, ports, one.workloads)


def _slowed_alike(claim: Survived, family: Family, ports: Ports) -> bool:
    """Whether a claim says how much longer traffic takes, and of a lost domain only how the rest trains."""
    if claim.part == "domain":
        return claim.slowdown is None
    slow = slowdown(family, ports, claim.part)
    return claim.slowdown is not None and near(claim.slowdown, slow) and not claim.workloads
