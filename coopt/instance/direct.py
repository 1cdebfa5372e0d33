"""What an instance that allows direct links between HB domains must agree on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coopt.instance.schema import Instance


def direct_disagreements(instance: Instance) -> Iterator[str]:
    """Sentences about direct links that do not go with the rest."""
    network = instance.network
    if "direct" not in network.fabrics:
        if network.panels:
            yield "network.panels: patch direct links, and network.fabrics allows none, needs 'direct' in it"
        return
    if not network.switched:
        yield "network.fabrics: 'direct' is compared with switches, needs another fabric beside it"
    if instance.site:
        yield "network.fabrics: 'direct' is for one site, needs no [[site]] tables or other fabrics"
    if len(instance.workload) > 1:
        yield (
            f"network.fabrics: 'direct' links are for the traffic of one workload, and there are "
            f"{len(instance.workload)}, needs one [[workload]] or other fabrics"
        )
    if instance.solver.top > 1:
        yield f"solver.top = {instance.solver.top}: runners-up are not searched beside direct links, needs 1"
    rates = {nic.gbit_s for nic in network.nics}
    reach_m = network.link_reach_m[1]
    if not rates & {optic.gbit_s for optic in network.optics if optic.reach_m >= reach_m}:
        yield (
            f"network.optics: none of a NIC's rate reaches {reach_m:g} m, the second of network.link_reach_m, which a "
            "direct link needs, needs one that does"
        )
