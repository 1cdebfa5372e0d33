"""The core that islands of a partition share: what it must be, from the instance alone."""

from __future__ import annotations

from decimal import Decimal

from coopt.instance.hardware import Switch
from coopt.instance.schema import Instance


def core_switch(instance: Instance) -> Switch | None:
    """The switch the core is asked to consist of; None where no core is asked for."""
    asked = instance.sharing.core
    named = {switch.name: switch for switch in instance.network.switches}
    return named[asked.switch] if asked else None


def links_needed(instance: Instance, gpus: int) -> int:
    """Links that carry what that many GPUs must send to other islands, in the decimals the instance is written in."""
    asked, switch = instance.sharing.core, core_switch(instance)
    if asked is None or switch is None:
        return 0
    full, rest = divmod(gpus * Decimal(str(asked.gbit_s_per_gpu)), Decimal(str(switch.port_gbit_s)))
    return int(full) + (rest > 0)
