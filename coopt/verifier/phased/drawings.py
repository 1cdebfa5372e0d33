"""A stage written out as a plan writes designs, and the graph it stands for."""

from __future__ import annotations

from coopt.instance.schema import Instance
from coopt.plan.schema import Design, Fabric, HbDomainChoice, NicChoice, SwitchChoice, Tier
from coopt.verifier.layouts import up
from coopt.verifier.ledger import near
from coopt.verifier.parts import least_racks
from coopt.verifier.phased.stages import Stage
from coopt.verifier.wiring import Wiring, wire


def drawn(instance: Instance, stage: Stage, uplinks: int, claimed: Design) -> Design:
    """What a plan has to say of a stage; names that buy nothing where there is no network are those of the plan."""
    family, hb = stage.family, stage.family.hb
    choice = HbDomainChoice(name=hb.name, size=hb.size, count=family.domains, active=family.active)
    return Design(
        gpus=family.gpus,
        spare_gpus=family.domains * (hb.size - family.active),
        hb_domain=choice,
        fabric=claimed.fabric.model_copy(update=_NO_NETWORK) if family.gear is None else _fabric(stage, uplinks),
        racks=None if hb.racks is None else least_racks(family.domains, hb.racks),
    )


_NO_NETWORK = {
    "tiers": 0, "planes": 0, "oversubscription": 1.0, "routing": 1.0, "switch_count": 0, "transceiver_count": 0,
    "tier": (),
}  # fmt: skip


def same_design(claimed: Design, found: Design) -> bool:
    """Whether two designs are one, up to rounding of the oversubscription."""
    ratios = claimed.fabric.oversubscription, found.fabric.oversubscription
    alike = claimed.fabric.model_copy(update={"oversubscription": ratios[1]})
    return near(*ratios) and claimed.model_copy(update={"fabric": alike}) == found


def _fabric(stage: Stage, uplinks: int) -> Fabric:
    gear, levels = stage.family.gear, stage.levels(uplinks)
    assert gear is not None
    return Fabric(
        kind=gear.kind,
        tiers=stage.ports.tiers,
        planes=stage.family.planes,
        oversubscription=stage.reach(uplinks).beyond,
        routing=gear.routing if stage.ports.tiers > 1 else 1.0,
        nic=NicChoice(name=gear.nic.name, per_gpu=gear.per_gpu),
        switch=SwitchChoice(name=gear.switch.name),
        switch_count=sum(level.switches for level in levels),
        transceiver_count=2 * sum(level.links for level in levels),
        tier=tuple(
            Tier(
                level=number,
                switches=level.switches,
                down_ports=ports[0],
                uplinks_per_switch=ports[1],
                links=level.links,
                optic=optic.name,
            )
            for number, (level, ports, optic) in enumerate(
                zip(levels, _ports_in_use(stage, uplinks), stage.optics, strict=True), start=1
            )
        ),
    )


def _ports_in_use(stage: Stage, uplinks: int) -> list[tuple[int, int]]:
    """Down-ports and uplinks of the fullest switch of each level."""
    ports, gear, leaves = stage.ports, stage.family.gear, stage.leaves
    assert gear is not None
    if ports.tiers == 1:
        return [(ports.down, 0)]
    radix, leaf = gear.switch.radix, (ports.down, uplinks)
    if stage.one_pod:
        return [leaf, (leaves, 0)]
    if ports.tiers == 2:
        return [leaf, (up(leaves * uplinks, up(leaves * uplinks, radix)), 0)]
    trunks = up(leaves, ports.pod_down) * ports.pod_up
    return [leaf, (ports.pod_down, ports.pod_up), (up(trunks, up(trunks, radix)), 0)]


def wired(stage: Stage, uplinks: int) -> Wiring:
    """The graph of a stage of two or more tiers; a single pod is drawn without its cores."""
    ports = stage.with_up(uplinks)
    if not stage.one_pod:
        return wire(stage.family, ports)
    whole = wire(stage.family, ports._replace(tiers=3))
    cores = [node for node in whole.graph if node[0] == 3]
    whole.graph.remove_nodes_from(cores)
    return whole
