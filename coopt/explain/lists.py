"""Every list of an instance that could hold more: how wide it can be, and what a plan uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from coopt.instance.base import Entry
from coopt.instance.catalog import entries
from coopt.instance.hardware import HbDomain, Switch, mate
from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import Instance, name_of, with_part, with_workload
from coopt.instance.transformer import MappingLimits
from coopt.network.optics import first_unmated
from coopt.plan.contents import built, mappings_used, parts_used, sizes_used
from coopt.plan.parts import Design
from coopt.plan.schema import Plan

FREE: dict[str, tuple[Any, ...] | None] = MappingLimits().model_dump()
"""Every list of a mapping by default, which is its widest; None leaves it free."""
OFFLOADED = (0, 50, 100)
"""Shares of the activations (%) to try where the host can have them, which none go to by default.
"""
CATALOGS = {"hb_domains": "hb_domain", "nics": "nic", "switches": "switch", "optics": "optic"}
FABRICS = ("rail-only", "rail-optimized", "clos")


@dataclass(frozen=True, kw_only=True)
class ListLimit:
    """A list by its key: what it holds now, an instance with more in it, and what of it a plan
    uses.
    """

    key: str
    now: tuple[Any, ...]
    widest: tuple[Any, ...] | None
    with_list: Callable[[Instance, tuple[Any, ...] | None], Instance]
    used: Callable[[Plan], Sequence[str | int | bool]]

    def dropped(self, instance: Instance) -> Instance:
        """The instance with the widest list."""
        return self.with_list(instance, self.widest)

    def with_used(self, instance: Instance, plan: Plan) -> tuple[Instance, tuple[Any, ...]]:
        """The instance with no more in the list than is there now and what the plan uses; and the
        list.
        """
        have = {name_of(entry) for entry in self.now}
        entry_of: dict[Any, Any] = {name_of(entry): entry for entry in self.widest or ()}
        additions = tuple(
            entry_of.get(name, name) for name in dict.fromkeys(self.used(plan)) if name not in have
        )
        return self.with_list(instance, (*self.now, *additions)), (*self.now, *additions)


def lists_of(instance: Instance) -> tuple[ListLimit, ...]:
    """Lists that could hold more: parts first, then sizes of islands, then the mappings of each
    workload.
    """
    lists = [*_parts(instance), *_sizes(instance), *_spares(instance)]
    for w in range(len(instance.workload)):
        lists += _mappings(instance, w)
    return tuple(lists)


def adds_unmated(instance: Instance, wider: Instance, plan: Plan) -> bool:
    """Whether a plan of wider lists has links that do not mate, and of which an instance does not
    list every part.
    """
    network = instance.network
    names = {part.name for part in (*network.nics, *network.switches, *network.optics)}
    fabrics = (design.fabric for design in built(plan) if isinstance(design, Design))
    misfits = (first_unmated(wider.network, fabric) for fabric in fabrics)
    return any(
        misfit is not None and not {part.name for part in misfit[1]} <= names for misfit in misfits
    )


def widened(instance: Instance, lists: Sequence[ListLimit]) -> Instance:
    """The instance with the widest of some lists."""
    for entry in lists:
        instance = entry.dropped(instance)
    return instance


def mating_lists(instance: Instance, lists: Sequence[ListLimit]) -> Iterator[Instance]:
    """The instance with the widest of some lists, less what does not mate with switches of a
    protocol and a rate of lanes, for each of these: every network whose links mate and whose tiers
    have one product is of one of them.
    """
    # optics mate with both of their ends, so that one protocol and one rate go through all tiers of
    # such a network
    kinds = {f"network.{key}": CATALOGS[key] for key in ("nics", "switches", "optics")}
    part_lists = [entry for entry in lists if entry.key in kinds and entry.widest is not None]
    wide = widened(instance, lists)
    speaking = (
        {(switch.protocol, switch.lane_gbit_s): switch for switch in wide.network.switches}
        if part_lists
        else {}
    )
    for switch in speaking.values():
        narrowed = wide
        for entry in part_lists:
            narrowed = entry.with_list(
                narrowed, tuple(part for part in entry.widest or () if mate(part, switch))
            )
        if all(
            entry.widest is None or getattr(narrowed.network, entry.key.split(".")[1])
            for entry in part_lists
        ):
            yield narrowed


def _parts(instance: Instance) -> Iterator[ListLimit]:
    network = instance.network
    widest: dict[str, tuple[Any, ...]] = {
        "fabrics": FABRICS,
        "nics_per_gpu": tuple(
            dict.fromkeys((*network.nics_per_gpu, 2 * max(network.nics_per_gpu)))
        ),
        "nic_planes": _planes(instance),
        **{
            key: _from_catalog(instance, key)
            for key in ("nics", "switches", "optics", "hb_domains")
        },
    }
    for key, wide in widest.items():
        listing = getattr(network, key)
        if len(wide) > len(listing):
            yield ListLimit(
                key=f"network.{key}",
                now=listing,
                widest=wide,
                with_list=lambda question, entries, key=key: with_part(
                    question, "network", {key: entries}
                ),  # type: ignore[misc]
                used=partial(parts_used, name=key),
            )


def _planes(instance: Instance) -> tuple[int, ...]:
    """The numbers of planes, with those for which some NIC has ports and the rest of the instance
    agrees with.
    """
    planes = instance.network.nic_planes
    additions = sorted(
        {ports for nic in instance.network.nics for ports in nic.ports} - set(planes)
    )
    with_more = (
        (with_part(instance, "network", {"nic_planes": (*planes, *additions)}),)
        if additions
        else ()
    )
    return (*planes, *additions) if with_more and not list(disagreements(with_more[0])) else planes


def _from_catalog(instance: Instance, key: str) -> tuple[Entry, ...]:
    """A list with what the catalog has besides and the rest of the instance agrees with."""
    listing: tuple[Entry, ...] = getattr(instance.network, key)
    names = {entry.name for entry in listing}
    additions = [
        entry
        for entry in map(partial(_as_in, instance), entries(CATALOGS[key]).values())
        if entry.name not in names
        and (not isinstance(entry, HbDomain) or _may_hold(instance, entry))
        and not list(disagreements(with_part(instance, "network", {key: (*listing, entry)})))
    ]
    return (*listing, *additions)


def _may_hold(instance: Instance, domain: HbDomain) -> bool:
    """Whether a domain is sold with some GPU, or is of a size for study that asks for no faster
    links than it has.

    Those are the links of the domains that are sold with it, or that the instance lists.
    """
    gpus = {gpu.name for gpu in instance.cluster.kinds}
    if domain.gpus:
        return not gpus.isdisjoint(domain.gpus)
    sold = [
        candidate
        for candidate in entries("hb_domain").values()
        if isinstance(candidate, HbDomain) and not gpus.isdisjoint(candidate.gpus)
    ]
    return domain.gbyte_s <= max(
        candidate.gbyte_s for candidate in (*sold, *instance.network.hb_domains)
    )


def _as_in(instance: Instance, entry: Entry) -> Entry:
    """An entry of the catalog as it would stand in the instance: a switch with its ports that stay
    free, an HB domain with its servers where these count.
    """
    if isinstance(entry, Switch):
        return entry.with_port_margin(instance.kept_margin.ports)
    if isinstance(entry, HbDomain):
        kinds = instance.cluster.kinds
        domain = entry.with_gpu(next((gpu for gpu in kinds if gpu.name in entry.gpus), kinds[0]))
        unknown = None in (entry.host_usd_per_gpu, entry.host_w_per_gpu)
        counted = "host" in instance.objective.include and not unknown
        return domain.with_hosts() if counted else domain
    return entry


def _sizes(instance: Instance) -> Iterator[ListLimit]:
    """The sizes of islands: doubled and halved, and powers of two up to all the GPUs there are."""
    gpus = instance.cluster.most_gpus
    for w, workload in enumerate(instance.workload):
        if workload.gpus is not None:
            sizes = {size * 2**k for size in (1, *workload.gpus) for k in range(gpus.bit_length())}
            sizes |= {
                size // 2**k
                for size in workload.gpus
                for k in range(size.bit_length())
                if size % 2**k == 0
            }
            additions = sorted(size for size in sizes if size <= gpus and size not in workload.gpus)
            yield ListLimit(
                key=f"workload[{w}].gpus",
                now=workload.gpus,
                widest=(*workload.gpus, *additions),
                with_list=lambda question, values, w=w: with_workload(  # type: ignore[misc]
                    question, w, {"gpus": values}
                ),
                used=partial(sizes_used, workload=workload.name),
            )


def _spares(instance: Instance) -> Iterator[ListLimit]:
    """The numbers of domains that may stand by."""
    if instance.availability is not None and instance.availability.spare_domains is not None:
        yield ListLimit(
            key="availability.spare_domains",
            now=instance.availability.spare_domains,
            widest=None,
            with_list=lambda question, counts: with_part(
                question, "availability", {"spare_domains": counts}
            ),
            used=lambda plan: [
                design.spare_domains for design in built(plan) if isinstance(design, Design)
            ],
        )


def _mappings(instance: Instance, w: int) -> Iterator[ListLimit]:
    kinds = instance.cluster.kinds
    shares = {"offload_percent": OFFLOADED} if any(gpu.host_gbyte_s for gpu in kinds) else {}
    for key, widest in (FREE | shares).items():
        values = getattr(instance.workload[w].mapping, key)
        if values is None or (widest is not None and not set(widest) - set(values)):
            continue
        yield ListLimit(
            key=f"workload[{w}].mapping.{key}",
            now=values,
            widest=None if widest is None else tuple(dict.fromkeys((*values, *widest))),
            with_list=partial(_with_mapping, w, key),
            used=partial(mappings_used, workload=instance.workload[w].name, name=key),
        )


def _with_mapping(w: int, key: str, instance: Instance, values: tuple[Any, ...] | None) -> Instance:
    mapping = instance.workload[w].mapping.model_copy(update={key: values})
    return with_workload(instance, w, {"mapping": mapping})
