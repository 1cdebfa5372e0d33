"""The network of a plan, written out."""

from __future__ import annotations

from coopt.network.family import Family, levels
from coopt.network.parts import racks
from coopt.plan.schema import Design, Fabric, HbDomainChoice, NicChoice, SwitchChoice, Tier


def design(family: Family, uplinks: int) -> Design:
    """The design of a family at u uplinks."""
    tiers = levels(family, uplinks)
    fabric = Fabric(
        kind=family.fabric,
        tiers=family.tiers,
        planes=family.planes if family.tiers else 0,
        oversubscription=family.slowdown(uplinks) * family.pod_ratio,
        routing=family.routing if family.tiers > 1 else 1.0,
        nic=NicChoice(name=family.nic.name, per_gpu=family.nics_per_gpu),
        switch=SwitchChoice(name=family.switch.name),
        switch_count=sum(level.switches for level in tiers),
        transceiver_count=2 * sum(level.links for level in tiers),
        tier=tuple(
            Tier(
                level=number,
                switches=level.switches,
                down_ports=level.down_ports,
                uplinks_per_switch=level.uplinks,
                links=level.links,
                optic=optic.name,
            )
            for number, (level, optic) in enumerate(zip(tiers, family.optics, strict=True), start=1)
        ),
    )
    hb = HbDomainChoice(name=family.hb.name, size=family.hb.size, count=family.domains, active=family.active)
    return Design(
        gpus=family.gpus,
        spare_gpus=family.installed_gpus - family.gpus,
        hb_domain=hb,
        fabric=fabric,
        racks=racks(family),
    )
