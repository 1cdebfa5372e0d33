"""Possible islands: numbers of GPUs on HB domains, and many of their networks at once, as
arrays.

The wirings are those of docs/network.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple, Self

import numpy as np

from coopt.columns.feasible import SHORT
from coopt.columns.flows import NicLayout
from coopt.columns.grid import degrees_up_to, divisors
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.network import Discipline
from coopt.instance.schema import Network, SwitchedKind
from coopt.instance.workload import Workload
from coopt.network.family import Wiring, common_links
from coopt.network.filling import EndPoints, wirings
from coopt.network.space import Ports, one_by_one
from coopt.perf.kernels import device_of
from coopt.perf.layer import layer_s
from coopt.perf.mapping import RECOMPUTE, Bools, Floats, Ints, Mappings


class Box(NamedTuple):
    """Ports of switches that networks of so many tiers are wired on: those of each tier, and how
    many of a leaf and of an aggregation switch face one way together. `of_core` links into a core
    have one module. Where spines fill modules of more than two links, each number of uplinks is
    `alone`.
    """

    tiers: int
    ports: Ports
    of_core: int
    alone: bool


Wirings = Callable[[EndPoints, Box], tuple[tuple[int, ...], ...]]
"""A function that lists the wirings of end points on switches with given ports, as tuples of
numbers.
"""

COLUMNS = (
    "form",
    "wiring",
    "site",
    "fabric",
    "nics_per_gpu",
    "box",
    "radix",
    "spine_radix",
    "step",
    "tiers",
    "leaves",
    "chassis",
    "core_ports",
    "together",
    "planes",
    "down",
    "min_uplinks",
    "max_uplinks",
    "bundle",
    "leaf_span",
    "pods",
    "pod_down",
    "pod_up",
    "core_group",
    "pod_span",
)


@dataclass(frozen=True)
class RowArrays:
    """Arrays of one length, a row of which is a site, a shape or an island."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self, rows: Ints | Bools) -> Self:
        """Select rows."""
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@dataclass(frozen=True, kw_only=True)
class Shapes(RowArrays):
    """Networks of sites without their numbers of uplinks; arrays of shape (n,).

    `site` is an index into the sites, `fabric` into the fabrics of the instance. Each network is
    wiring number `wiring` of its site, with `active` GPUs in each of `domains` domains, whose NICs
    are counted by `rails`; `clos` and `optimized` (rail-optimized) tell the fabric. `down` is 0
    with at most one tier. `leaf_span` and `pod_span` count domains: all of them where nothing
    leaves a leaf or a pod. `bundle` is that of `coopt.network.family.Family`. Below three tiers
    `pods` and `core_group` are 0, and `pod_down` and `pod_up` are 1. `core_links` lead into a core
    shared by all islands, `core_ports` from each leaf. `box` is an index into the ports that
    switches may have, `step` how many uplinks share a cage, and `together` how many planes a switch
    of a single tier holds. Shapes are sorted by `form`, which encodes fabric and box, then by
    wiring and site.
    """

    site: Ints
    form: Ints
    wiring: Ints
    fabric: Ints
    nics_per_gpu: Ints
    box: Ints
    radix: Ints
    spine_radix: Ints
    step: Ints
    tiers: Ints
    together: Ints
    planes: Ints
    leaves: Ints
    chassis: Ints
    down: Ints
    min_uplinks: Ints
    max_uplinks: Ints
    bundle: Ints
    leaf_span: Ints
    pod_span: Ints
    pods: Ints
    pod_down: Ints
    pod_up: Ints
    core_group: Ints
    core_links: Ints
    core_ports: Ints
    domains: Ints
    active: Ints
    rails: Ints
    clos: Bools
    optimized: Bools

    def layouts(self, discipline: Discipline) -> NicLayout:
        """Return the distribution of NICs over leaves and pods, as in
        `coopt.columns.grid.layout_of`.
        """
        podded = (self.pods > 0) & (self.leaf_span < self.domains)
        zero = np.zeros_like(self.domains)
        if discipline.charge == "ratio":
            return NicLayout(
                domains=self.domains,
                span=self.leaf_span,
                down=self.down,
                ratio=np.where(podded, self.pod_down / self.pod_up, 1.0),
                pods=self.pods * podded,
                pod_span=np.where(podded, self.pod_span, self.domains),
                **dict.fromkeys(("nics", "ends", "pod_up"), zero + 1),
                **dict.fromkeys(("leaves", "planes", "pod_leaves"), zero),
                **dict.fromkeys(("joined_leaves", "spine_ports", "most_up"), zero),
                room=zero - 1,
            )
        of_a_rail = -(-self.domains // np.maximum(self.down, 1))
        whole_rails = self.optimized & (self.pod_down % of_a_rail == 0)
        parts = self.optimized & (of_a_rail % self.pod_down > 0) & ~whole_rails
        pod_domains = np.where(
            whole_rails, self.domains, np.minimum(self.pod_down * self.leaf_span, self.domains)
        )
        pod_span = np.where(parts, 0, pod_domains) * podded
        podded &= pod_span < self.domains
        mixed, random = podded & (pod_span == 0), discipline.routing == "ecmp"
        dealt = (self.tiers == 2) & (self.bundle == 0) & (self.leaf_span < self.domains)
        in_common = common_links(self.pod_up, np.maximum(self.core_group, 1), at_random=random)
        return NicLayout(
            domains=self.domains,
            span=self.leaf_span,
            nics=np.where(
                (self.clos & (self.tiers > 1)) | mixed, self.active * self.nics_per_gpu, 1
            ),
            ends=np.where(self.clos & (self.tiers > 1), self.rails, 1),
            down=np.where(mixed | (self.leaf_span == 0), self.down, 0),
            ratio=zero + 1.0,
            leaves=np.where(mixed | random, self.leaves, 0),
            planes=self.planes * random,
            pods=self.pods * podded,
            pod_span=pod_span * podded,
            pod_leaves=self.pod_down * mixed,
            pod_up=np.where(podded, in_common, 1.0),
            room=zero - 1,
            joined_leaves=self.leaves * dealt,
            spine_ports=self.spine_radix * dealt,
            most_up=(self.radix - self.down) * dealt,
        )


@lru_cache(maxsize=4)
def wirings_of(network: Network) -> Wirings:
    """Return a cached function that lists the wirings of end points, one for each of the last few
    networks.
    """

    @cache
    def listed(ends: EndPoints, box: Box) -> tuple[tuple[int, ...], ...]:
        return tuple(
            _numbers(wiring, ends.planes, box) for wiring in wirings_on(ends, box, network)
        )

    return listed


def wirings_on(ends: EndPoints, box: Box, network: Network) -> Iterator[Wiring]:
    """Yield the wirings of end points on switches with given ports, of their tiers."""
    cages, (radix, *above) = box.ports
    for wiring in wirings(ends, radix, network, cages, (above[0], above[1]), box.tiers):
        if wiring.tiers == box.tiers:
            yield from one_by_one(wiring) if box.alone else (wiring,)


def shapes_of(
    sites: Sites,
    sizes: Ints,
    network: Network,
    nics_per_gpu: int,
    links: Ints,
    boxes: Mapping[int, tuple[Box, Ints]],
    listed: Wirings,
) -> Shapes:
    """Return every wiring of sites on switches with some ports.

    Parameters
    ----------
    sizes
        GPUs in the HB domains of each site (n,).
    links
        Minimum number of links of each site into a core (n,).
    boxes
        By number, the ports that switches may have, with the indices of the sites on these.
    listed
        A function from `wirings_of`.
    """
    rows = list(_rows(sites, sizes, network, nics_per_gpu, links, boxes, listed))
    table = np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS))
    column = dict(zip(COLUMNS, table.T, strict=True))
    core_ports, tiers, pods, domains = (
        column["core_ports"],
        column["tiers"],
        column["pods"],
        sites.domains,
    )
    column["down"] = np.where(tiers > 1, column["down"], 0)
    site_domains = domains[column["site"]]
    column["leaf_span"] = np.minimum(
        np.where(tiers > 1, column["leaf_span"], site_domains), site_domains
    )
    column["pod_span"] = np.minimum(
        np.where(pods > 0, column["pod_span"], site_domains), site_domains
    )
    kinds = np.array(network.switched)[column["fabric"]]
    return Shapes(
        **column,
        domains=site_domains,
        active=sites.active[column["site"]],
        rails=sizes[column["site"]] * nics_per_gpu,
        clos=kinds == "clos",
        optimized=kinds == "rail-optimized",
        core_links=np.where(tiers > 0, column["chassis"] * core_ports, links[column["site"]]),
    )


def _rows(
    sites: Sites,
    sizes: Ints,
    network: Network,
    nics_per_gpu: int,
    links: Ints,
    boxes: Mapping[int, tuple[Box, Ints]],
    list_wirings: Wirings,
) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of every shape, in the order of `COLUMNS`."""
    fabrics: dict[SwitchedKind, int] = {}
    for place, kind in enumerate(network.switched):
        # a kind that is listed twice counts once, at its first place
        fabrics.setdefault(kind, place)
    needs = list(zip(sites.domains.tolist(), sizes.tolist(), links.tolist(), strict=True))
    for form, (fabric, (number, (box, of_box))) in enumerate(product(fabrics, boxes.items())):
        numbers = of_box.tolist()
        wirings_of_sites = [
            list_wirings(
                EndPoints(
                    fabric=fabric,
                    domains=domains,
                    rails=size * nics_per_gpu,
                    links=least_links,
                    of_module=box.of_core,
                ),
                box,
            )
            for domains, size, least_links in (needs[site] for site in numbers)
        ]
        (step, _), (leaf_radix, spine_radix, _) = box.ports
        of_form = fabrics[fabric], nics_per_gpu, number, leaf_radix, spine_radix, step
        for wiring in range(max(map(len, wirings_of_sites), default=0)):
            for site, site_wirings in zip(numbers, wirings_of_sites, strict=True):
                if len(site_wirings) > wiring:
                    yield form, wiring, site, *of_form, *site_wirings[wiring]


def _numbers(wiring: Wiring, planes: int, box: Box) -> tuple[int, ...]:
    """Return the fields of a wiring as numbers, in the order of the last of `COLUMNS`."""
    top_radix = box.ports[1][2]
    return (
        wiring.tiers,
        wiring.leaves,
        wiring.chassis,
        wiring.core_ports,
        wiring.planes_together,
        planes,
        wiring.down,
        wiring.uplink_choices[0],
        wiring.uplink_choices[-1],
        wiring.bundle,
        wiring.leaf_span,
        *(
            (pods.count, pods.l, pods.w, pods.cores(top_radix))
            if (pods := wiring.pods)
            else (0, 1, 1, 0)
        ),
        wiring.pod_span,
    )


@dataclass(frozen=True, kw_only=True)
class Sites(RowArrays):
    """Sites for an island (n,): number of GPUs, index of the HB domain, and number of domains."""

    gpus: Ints
    hb: Ints
    domains: Ints

    @property
    def active(self) -> Ints:
        """Active GPUs per domain; the mean, rounded up, where domains differ."""
        return -(-self.gpus // self.domains)


def quick_degrees(workload: Workload, gpu: Gpu, gpus: int) -> Ints:
    r"""Return the (t, c, p, d) up to that many GPUs that can meet the bound by the compute of their
    layers alone; (n, 4).

    The fullest stage alone takes at least

    .. math:: T \ge \frac{B}{d b} \cdot \frac{L}{p} \cdot \tau(t, c, x, b, \ldots) \cdot f

    with :math:`\tau` the seconds of a layer and f the factor of the software and of stragglers: a
    stage has at least L/p layers, and everything else adds time. So p·d has a minimum for each (t,
    c).
    """
    table = degrees_up_to(workload, gpus)
    if workload.gpus is not None:
        table = table[np.isin(table.prod(axis=1), workload.gpus)]
    if not len(table):
        return table
    return np.asarray(table[least_compute_s(workload, gpu, table) <= workload.bound_s])


def least_compute_s(workload: Workload, gpu: Gpu, table: Ints) -> Floats:
    """Lower bound on the iteration time (s) for every (t, c, p, d), as in `quick_degrees`."""
    pairs, position = np.unique(table[:, :2], axis=0, return_inverse=True)
    sequence_s = _sequences_s(workload, gpu, pairs)[position.ravel()]
    factor = workload.options.slowdown * workload.options.software.overhead
    stage_s = (
        workload.global_batch
        * workload.model.layers
        / (table[:, 2] * table[:, 3])
        * sequence_s
        * factor
    )
    return np.asarray(stage_s * (1 - SHORT))


def _sequences_s(workload: Workload, gpu: Gpu, pairs: Ints) -> Floats:
    """Minimum compute time (s) of a layer per sequence at each (t, c), over all other choices;
    shape (n,).
    """
    experts = divisors(workload.model.experts) if workload.model.experts else (1,)
    micro_batches = np.array(workload.mapping.micro_batch)
    grid = np.meshgrid(
        range(len(pairs)), experts, micro_batches, range(len(RECOMPUTE)), (0, 1), indexing="ij"
    )
    pair, x, b, recompute, sequence_parallel = (choice.ravel().astype(np.int64) for choice in grid)
    tp, cp = pairs[pair].T
    rows = Mappings.of(
        tp=tp, cp=cp, ep=x, micro_batch=b, recompute=recompute, sequence_parallel=sequence_parallel
    )
    sequences_s = layer_s(workload, device_of(workload, gpu), rows) / b
    return np.asarray(sequences_s.reshape(grid[0].shape).min(axis=(1, 2, 3, 4)))


def sites_of(gpus: Ints, hb_domains: tuple[HbDomain, ...]) -> Sites:
    """Return every HB domain with every number of active GPUs that docs/network.md allows for the
    given numbers of GPUs.
    """
    parts = []
    for h, hb in enumerate(hb_domains):
        # docs/network.md, HB domains: size/2 < K <= size, and fewer only in a domain alone
        small = gpus[gpus <= hb.size // 2]
        active_choices = np.arange(hb.size // 2 + 1, hb.size + 1)
        choice, even = np.nonzero(gpus % active_choices[:, None] == 0)
        counts = np.concatenate([np.ones_like(small), gpus[even] // active_choices[choice]])
        parts.append((np.concatenate([small, gpus[even]]), np.full(len(counts), h), counts))
    numbers, kinds, domains = (np.concatenate(column) for column in zip(*parts, strict=True))
    sites = Sites(gpus=numbers, hb=kinds, domains=domains)
    return sites.take(np.argsort(sites.gpus, kind="stable"))
