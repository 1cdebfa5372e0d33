"""What is built: HB domains, and the network that joins them."""

from __future__ import annotations

from typing import Literal

from coopt.plan.record import Record


class HbDomainChoice(Record):
    """HB domains bought: `count` domains of `size` GPUs, `active` of which train."""

    name: str
    size: int
    count: int
    active: int


class NicChoice(Record):
    """NIC model and how many each GPU has."""

    name: str
    per_gpu: int


class SwitchChoice(Record):
    """Switch model."""

    name: str


class Tier(Record):
    """One level of switches over all planes.

    `down_ports` and `uplinks_per_switch` are ports of one switch in use; `links` join this level to the one below.
    """

    level: int
    switches: int
    down_ports: int
    uplinks_per_switch: int
    links: int
    optic: str


class Fabric(Record):
    """The network between domains.

    `oversubscription` is the slowdown beyond leaf and pod (1 is non-blocking); above leaves `routing` multiplies it.
    """

    kind: Literal["rail-only", "rail-optimized", "clos"]
    tiers: int
    planes: int
    oversubscription: float
    routing: float = 1.0
    nic: NicChoice
    switch: SwitchChoice
    switch_count: int
    transceiver_count: int
    tier: tuple[Tier, ...]


class Design(Record):
    """What is built."""

    gpus: int
    spare_gpus: int
    hb_domain: HbDomainChoice
    fabric: Fabric
    racks: int | None
