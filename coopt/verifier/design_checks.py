"""Is what the plan buys in the instance, and do its numbers fit together?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from coopt.instance.schema import Instance
from coopt.plan.direct_links import DirectLinks
from coopt.plan.schema import Design
from coopt.verifier.cores import links_needed
from coopt.verifier.ledger import TOLERANCE, Ledger
from coopt.verifier.parts import least_racks
from coopt.verifier.space import Family, Gear, active_counts


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


def check_design(ledger: Ledger, instance: Instance, design: Design) -> Family | None:
    """Check GPUs, HB domains and the parts of the network; None where nothing can be built from them."""
    family = check_domains(ledger, instance, design)
    gear = check_gear(ledger, instance, design)
    if family is None:
        return None
    if family.domains == 1:
        return family
    return family._replace(gear=gear) if gear else None


def _pick(entries: Iterable[T], name: str) -> T | None:
    return next((entry for entry in entries if entry.name == name), None)


def _names(entries: Iterable[_Named]) -> tuple[str, ...]:
    return tuple(entry.name for entry in entries)


def check_domains(ledger: Ledger, instance: Instance, design: Design | DirectLinks) -> Family | None:
    """Check GPUs, HB domains, spares and racks; None where they are not those of the instance."""
    allowed, choice = instance.cluster.gpus, design.hb_domain
    listed = tuple(str(gpus) for gpus in allowed)
    why = f"The plan trains on {design.gpus} GPUs, the instance allows {', '.join(listed)}."
    sound = ledger.holds("gpus", design.gpus in allowed, design.gpus, listed, why)
    domains = instance.network.hb_domains
    hb = _pick(domains, choice.name)
    if hb is None:
        why = f"The instance lists no HB domain {choice.name!r}."
        ledger.holds("hb-domain", False, choice.name, _names(domains), why)
        return None
    if not sound:
        return None
    counts = active_counts(design.gpus, hb.size)
    good = ledger.holds(
        "hb-domain",
        choice.size == hb.size and choice.active in counts,
        f"{choice.name}: {choice.active} of {choice.size} train",
        tuple(f"{hb.name}: {count} of {hb.size} train" for count in counts),
        f"HB domain {hb.name!r} has {hb.size} GPUs, and no allowed number of them that train is {choice.active}"
        f" of {choice.size}.",
    )
    if not good:
        return None
    count = design.gpus // choice.active
    why = f"{design.gpus} GPUs in domains of {choice.active} need {count} domains, the plan buys {choice.count}."
    ledger.same("domain-count", choice.count, count, why)
    family = Family(design.gpus, hb, choice.active, None, links_needed(instance, design.gpus))
    _spares_and_racks(ledger, design, family)
    return family


def check_gear(ledger: Ledger, instance: Instance, design: Design) -> Gear | None:
    """Check fabric, NIC and switch; None where they do not go together.

    They are named as well where one domain buys none; with a core shared by islands the NIC is bought, one for each
    link.
    """
    network, fabric = instance.network, design.fabric
    why = f"The instance does not allow fabric {fabric.kind!r}."
    known = ledger.holds("fabric", fabric.kind in network.fabrics, fabric.kind, network.fabrics, why)
    nic, switch = _pick(network.nics, fabric.nic.name), _pick(network.switches, fabric.switch.name)
    why = f"The instance lists no NIC {fabric.nic.name!r}."
    ledger.holds("nic", nic is not None, fabric.nic.name, _names(network.nics), why)
    allowed, per_gpu = network.nics_per_gpu, fabric.nic.per_gpu
    listed = tuple(str(number) for number in allowed)
    why = f"The plan gives each GPU {per_gpu} NICs, the instance allows {', '.join(listed)}."
    known = ledger.holds("nics-per-gpu", per_gpu in allowed, per_gpu, listed, why) and known
    rate = nic.gbit_s if nic else None
    fits = switch is not None and (rate is None or switch.port_gbit_s == rate or fabric.tiers == 0)
    ledger.holds(
        "switch",
        fits,
        fabric.switch.name,
        tuple(part.name for part in network.switches if rate in (None, part.port_gbit_s)),
        f"The instance lists no switch {fabric.switch.name!r} with ports of the rate of the NIC.",
    )
    if nic is None or switch is None or not (known and fits):
        return None
    return Gear(fabric.kind, nic, per_gpu, switch, network.routing)


def _spares_and_racks(ledger: Ledger, design: Design | DirectLinks, family: Family) -> None:
    hb = family.hb
    idle = family.domains * (hb.size - family.active)
    each = hb.size - family.active
    why = f"{family.domains} domains with {each} idle GPUs each make {idle} spares, the plan says {design.spare_gpus}."
    ledger.same("spares", design.spare_gpus, idle, why)
    if hb.racks is None:
        why = f"HB domain {hb.name!r} does not say how many racks it fills, the plan does."
        ledger.same("racks", design.racks, None, why)
        return
    fewest, most = (least_racks(family.domains, hb.racks, slack) for slack in (TOLERANCE, 0.0))
    ledger.holds(
        "racks",
        design.racks is not None and fewest <= design.racks <= most,
        design.racks,
        most,
        f"{family.domains} domains of {hb.racks:g} racks fill {most}, the plan says {design.racks}.",
        TOLERANCE,
    )
