"""A core that all islands of a partition share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from coopt.instance.base import Name, Part, Positive

if TYPE_CHECKING:
    from coopt.instance.schema import Instance


class Core(Part):
    """Switches between islands, and what islands must be able to send through them."""

    switch: Annotated[Name, Field(description="name of a listed switch, which the core consists of")]
    gbit_s_per_gpu: Annotated[
        Positive, Field(description="what every GPU that trains can send to other islands (Gbit/s)")
    ]
    optic: Annotated[
        Name | None, Field(description="name of the listed optic at both ends of its links; chosen where left out")
    ] = None


def core_disagreements(instance: Instance) -> Iterator[str]:
    """Sentences about `[sharing.core]` that do not go with the rest of an instance."""
    network, core = instance.network, instance.sharing.core
    if core is None:
        return
    where = f"sharing.core.switch = {core.switch!r}"
    switch = next((one for one in network.switches if one.name == core.switch), None)
    if switch is None:
        yield f"{where}: the instance does not list it, needs one of {', '.join(one.name for one in network.switches)}"
        return
    if len(instance.workload) > switch.radix:
        yield (
            f"{where}: it has {switch.radix} ports for the islands of {len(instance.workload)} workloads, "
            "needs at least one for each, so that any two of them meet on a switch"
        )
    rate = switch.port_gbit_s
    if rate not in {nic.gbit_s for nic in network.nics}:
        yield f"{where}: its ports have {rate:g} Gbit/s, needs a NIC of that rate in network.nics"
        return
    for reach_m, what in zip(network.link_reach_m[::2], ("from NIC to leaf", "to the core"), strict=True):
        if not any(optic.gbit_s == rate and optic.reach_m >= reach_m for optic in network.optics):
            yield (
                f"{where}: no optic of {rate:g} Gbit/s reaches {reach_m:g} m, the length of links {what}, "
                "needs one in network.optics or another network.link_reach_m"
            )
    named = [optic for optic in network.optics if core.optic in (None, optic.name)]
    if not any(optic.gbit_s == rate and optic.reach_m >= network.link_reach_m[-1] for optic in named):
        yield (
            f"sharing.core.optic = {core.optic!r}: needs a listed optic of {rate:g} Gbit/s that reaches "
            f"{network.link_reach_m[-1]:g} m, or to be left out"
        )
    most = rate * min(network.nics_per_gpu)
    if core.gbit_s_per_gpu > most:
        yield (
            f"sharing.core.gbit_s_per_gpu = {core.gbit_s_per_gpu:g}: the NICs of a GPU send {most:g} Gbit/s, "
            "needs no more than that"
        )
