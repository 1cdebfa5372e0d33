"""The switches of one plane as two layers, or as two layers within two layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.network.family import Family, Pods
from coopt.network.routing.layers import TwoLayer, fail_cores, wired


@dataclass(frozen=True, kw_only=True)
class Plane:
    """The wiring of docs/network.md in numbers.

    Parameters
    ----------
    leaves, uplinks
        Leaves of the plane, and links of a leaf upwards.
    radix
        Ports of a switch.
    pods
        The middle tier of three; None on fewer.
    """

    leaves: int
    uplinks: int
    radix: int
    pods: Pods | None = None

    def __post_init__(self) -> None:
        found = []
        if not 0 <= self.uplinks < self.radix or (self.leaves > 1 and not self.uplinks):
            found.append(f"uplinks: {self.uplinks}, needs 1 to {self.radix - 1}, fewer than the ports of a switch")
        if self.pods is None and not 1 <= self.leaves <= self.radix:
            found.append(f"leaves: {self.leaves}, needs 1 to {self.radix} (the radix) without pods")
        if self.pods is not None:
            pods = self.pods
            if not 1 <= pods.count <= self.radix or pods.count * pods.l < self.leaves:
                found.append(
                    f"pods: {pods.count} of {pods.l} leaves, needs at most {self.radix} that hold {self.leaves}"
                )
            if not 1 <= pods.w <= self.radix - pods.l:
                found.append(f"pods.w: {pods.w}, needs 1 to {self.radix - pods.l}, the ports that l leaves over")
        if found:
            raise InstanceError(found)

    @cached_property
    def layers(self) -> tuple[TwoLayer, ...]:
        """From the leaves up: leaves and spines; on three tiers leaves and slices, then aggregation switches and cores.

        A slice is aggregation switch j of every pod. Row j·pods + P of the second layer is switch j of pod P. Switches
        of different slices share no core, so that a column stands for a core of every slice; as a flow stays in its
        slice, one routing of these rows is a routing of each slice.
        """
        if self.pods is None:
            return (wired(self.leaves, self.uplinks, -(-self.leaves * self.uplinks // self.radix)),)
        slice_ = wired(self.pods.count, self.pods.w, -(-self.pods.count * self.pods.w // self.radix))
        stacked = TwoLayer(links=np.tile(slice_.links, (self.uplinks, 1)))
        return wired(self.leaves, self.uplinks, self.uplinks), stacked

    @property
    def top_switches(self) -> int:
        """Spines, or core switches of all groups."""
        top = self.layers[-1]
        return top.cores * (self.uplinks if self.pods else 1)

    def without_cores(self, n: int, seed: int) -> tuple[TwoLayer, ...]:
        """The layers after n of the spines or core switches failed, drawn at random.

        On three tiers a slice whose cores no longer join all pods is left out.
        """
        if not 0 <= n <= self.top_switches:
            raise InstanceError(
                f"failed cores: {n}, needs 0 to {self.top_switches}, the switches at the top of a plane"
            )
        if n and n == self.top_switches:
            raise InstanceError(f"failed cores: {n}, leaves no top switch, needs fewer of them")
        if self.pods is None:
            return (fail_cores(self.layers[0], n, seed),)
        first, second = self.layers
        links = second.links.reshape(self.uplinks, self.pods.count, second.cores).copy()
        slices, cores = np.divmod(np.random.default_rng(seed).permutation(self.top_switches)[:n], second.cores)
        links[slices, :, cores] = 0
        joined = (links > 0).astype(np.int64)
        whole = ((joined @ joined.transpose(0, 2, 1)) > 0).all(axis=(1, 2))
        if not whole.any():
            raise InstanceError(f"failed cores: {n}, leaves no slice that joins all pods, needs fewer of them")
        return TwoLayer(links=first.links * whole), TwoLayer(links=links.reshape(-1, second.cores))


def plane_of(family: Family, uplinks: int) -> Plane:
    """One plane of a family at u uplinks."""
    return Plane(
        leaves=family.leaves,
        uplinks=uplinks if family.tiers > 1 else 0,
        radix=family.switch.radix,
        pods=family.pods,
    )
