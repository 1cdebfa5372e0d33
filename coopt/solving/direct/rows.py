"""Mappings on direct links: where they may run, the grid of domains that each makes, and how fast
its phases must be.

A place is an HB domain with its NICs and panels, and says what a link between such domains costs.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from coopt.columns.feasible import FeasibleMappings
from coopt.columns.grid import DomainSet, groups_of
from coopt.columns.pools import Pool, promising, timed, undominated
from coopt.instance.hardware import HbDomain, Nic, Optic, Panel
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.optics import optic_choices
from coopt.network.parts import domain_lines, included_lines, keeps_limits, total, weigh
from coopt.network.space import Space
from coopt.perf.collectives import Reciprocals
from coopt.perf.mapping import Bools, Floats, Ints, Mappings, Placements, distinct_rows
from coopt.plan.parts import Cost, line
from coopt.solving.direct.grid import KINDS, Demands, DomainGrid


@dataclass(frozen=True, kw_only=True)
class DirectPlace:
    """HB domains of one kind that hold N GPUs, as many in each, and what joins them."""

    instance: Instance
    gpus: int
    hb: HbDomain
    domains: int
    nic: Nic
    nics_per_gpu: int
    optic: Optic
    panel: Panel | None

    @property
    def active_gpus(self) -> int:
        """K: GPUs of a domain that train."""
        return self.gpus // self.domains

    @property
    def ports(self) -> int:
        """Links that may end at a domain; idle GPUs lend theirs."""
        return self.hb.size * self.nics_per_gpu

    @property
    def link_byte_s(self) -> float:
        """Rate of a link, each way (byte/s); what GPUs reach of their NICs is shared by these."""
        return min(self.nic.gbit_s / 8, self.hb.to_nics_gbyte_s / self.nics_per_gpu) * 1e9

    @property
    def racks(self) -> int | None:
        """Racks that the HB domains fill, where the catalog knows."""
        return None if self.hb.racks is None else math.ceil(self.domains * self.hb.racks)

    def cost(self, links: int) -> Cost:
        """The bill with this many links: a NIC, a transceiver and a panel port at each end."""
        nic, optic, panel, ends = self.nic, self.optic, self.panel, 2 * links
        lines = domain_lines(
            self.instance.cluster.gpu, self.hb, self.gpus, self.domains * self.hb.size
        )
        lines += [
            line("nic", nic.name, ends, nic.usd, nic.w),
            line("optics", optic.name, ends, optic.usd, optic.w),
        ]
        if panel is not None:
            lines.append(line("switch", panel.name, ends, panel.usd_per_port, panel.w_per_port))
        return total(self.instance.objective, included_lines(self.instance, lines))

    def value(self, links: float) -> float:
        """The objective with this many links; inf without an end of them."""
        kind = self.instance.objective.minimize
        return math.inf if links == math.inf else self.cost(int(links)).of(kind)

    def most_links(self, ceiling: float = math.inf) -> int:
        """Links that ports and limits leave, at less than a value of the objective; -1 where
        nothing keeps them.

        By halving: no price and no power falls with more links.
        """

        def is_beyond(links: int) -> bool:
            cost = self.cost(links)
            return cost.of(self.instance.objective.minimize) >= ceiling or not keeps_limits(
                self.instance.limits, cost, self.racks
            )

        return bisect_left(range(self.domains * self.ports // 2 + 1), True, key=is_beyond) - 1


def every_place(instance: Instance) -> Iterator[DirectPlace]:
    """Every place of at least two domains, in the order of the instance's lists."""
    network, objective = instance.network, instance.objective
    panel = min(
        network.panels, key=lambda p: weigh(objective, p.usd_per_port, p.w_per_port), default=None
    )
    sites = Space(instance=instance).all_sites()
    for (gpus, hb, domains), nic, per_gpu in product(sites, network.nics, network.nics_per_gpu):
        # Direct links are as long as those between switches of the first two tiers.
        levels = optic_choices(instance, nic)
        for optic in levels[1] if domains > 1 and len(levels) > 1 else ():
            yield DirectPlace(
                instance=instance,
                gpus=gpus,
                hb=hb,
                domains=domains,
                nic=nic,
                nics_per_gpu=per_gpu,
                optic=optic,
                panel=panel,
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """A mapping at a place, with what its domains send to each other."""

    place: DirectPlace
    pool: Pool
    row: int
    demands: Demands

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases of an iteration in which something crosses domains."""
        return self.demands.phases

    @property
    def least_value(self) -> float:
        """The objective is no less."""
        return self.place.value(self.demands.least_links())

    def reciprocals(self, paces: Floats) -> Reciprocals:
        """Seconds per byte of a GPU at paces of the phases."""
        s_byte = self.place.active_gpus / (paces * self.place.link_byte_s)
        return self.demands.grid.reciprocals(dict(zip(self.phases, s_byte.tolist(), strict=True)))


def worthwhile(place: DirectPlace, source: FeasibleMappings) -> tuple[list[Row], Counter[str]]:
    """The mappings at a place that may be in time and are not beaten by others on the same grid.

    Returns
    -------
    rows, gated
        The rows left, and how many were dropped by cause.
    """
    site = DomainSet(gpus=place.gpus, hb=place.hb.name, domains=place.domains)
    # links are as slow as what GPUs reach of their NICs, which is no further limit
    hb = place.hb.with_nics_at(math.inf)
    pool, gated = promising(source, place.instance.cluster.gpu, hb, site)
    # Cheap filters first: what is left has its grid made and is compared with the others on it.
    neighbours = _have_neighbours(pool)
    gated["crossing"] = len(pool) - int(neighbours.sum())
    pool = _sub_pool(place, pool, neighbours)
    is_left, paces_needed = _weights(place, pool)
    gated["communication"] = len(pool) - int(is_left.sum())
    if not is_left.any():
        return [], gated
    pool = _sub_pool(place, pool, is_left)
    grids, position = grids_of(pool.workload, pool.mappings, pool.placements)
    weights = _by_phase(paces_needed[:, is_left], grids, position)
    keep = undominated(np.concatenate(list(weights), axis=1), position)
    gated["dominated"] += len(pool) - int(keep.sum())
    ports = np.full(place.domains, place.ports)
    rows = []
    for row in np.flatnonzero(keep).tolist():
        kinds_used = [k for k in range(len(KINDS)) if weights[:, row, k].any()]
        phases, weight = tuple(KINDS[k] for k in kinds_used), weights[:, row, kinds_used]
        demands = Demands(grid=grids[position[row]], ports=ports, phases=phases, weight=weight)
        rows.append(Row(place=place, pool=pool, row=row, demands=demands))
    return rows, gated


def _have_neighbours(pool: Pool) -> Bools:
    """Whether stages that hold the same parameters are in one domain or in neighbours: the ends of
    a pipeline with one embedding, and all that are as far from its ends in two directions, of one
    stage a domain.
    """
    m, inside, workload = pool.mappings, pool.placements, pool.workload
    if workload.options.schedule == "dualpipe":
        return np.asarray((m.pp == inside.pp) | ((m.pp == 2) & (inside.pp == 1)))
    return np.asarray((m.pp <= 2 * inside.pp) | (not workload.model.tied_embeddings))


def _sub_pool(place: DirectPlace, pool: Pool, selection: Bools) -> Pool:
    tables = pool.mappings.take(selection), pool.placements.take(selection)
    hb = place.hb.with_nics_at(math.inf)
    return timed(pool.workload, place.instance.cluster.gpu, hb, pool.site, *tables)


def grids_of(
    workload: Workload, mappings: Mappings, placements: Placements
) -> tuple[list[DomainGrid], Ints]:
    """The grids that the domains of some mappings make, and which of them each has."""
    groups = groups_of(workload, mappings, placements)
    columns = {
        "stages": groups.stages,
        "replicas": groups.stage,
        "inner": placements.pp,
        "closed": (mappings.interleave > 1).astype(np.int64),
        "tensor": groups.tp,
        "contexts": np.where(placements.dp_across(mappings) > 1, groups.cp, 1),
        "experts": groups.experts,
        "apart": groups.apart,
    }
    distinct, position = distinct_rows(*columns.values())
    rows = (
        dict(zip(columns, values, strict=True))
        for values in zip(*(column.tolist() for column in distinct), strict=True)
    )
    return [DomainGrid(**row | {"closed": row["closed"] > 0}) for row in rows], position


def _by_phase(paces_needed: Floats, grids: list[DomainGrid], position: Ints) -> Floats:
    """What each phase of a row needs, from what kinds of traffic need (pieces, n, kinds)."""
    phase_paces = np.zeros_like(paces_needed)
    for kind, kind_paces in zip(KINDS, np.moveaxis(paces_needed, -1, 0), strict=True):
        column = np.array([KINDS.index(grid.phase_of.get(kind, kind)) for grid in grids])[position]
        phase_paces[:, np.arange(len(position)), column] += kind_paces
    return phase_paces


def _weights(place: DirectPlace, pool: Pool) -> tuple[Bools, Floats]:
    """Rows that may be in time, and the pace that each kind of traffic needs if the others take no
    time (pieces, n, kinds).
    """
    bound_s, count = pool.workload.bound_s, len(pool)
    may_be_in_time, weights = np.ones(count, dtype=np.bool_), []
    for fixed_s, *bytes_of in pool.pieces.coefficients:
        moved = np.zeros((count, len(KINDS)))
        for kind, kind_bytes in zip(pool.pieces.kinds, bytes_of, strict=True):
            moved[:, KINDS.index(kind)] = kind_bytes
        spare_s = bound_s - fixed_s
        # A mapping without any time to spare is in time if nothing of it crosses domains.
        may_be_in_time &= (spare_s > 0) | ((spare_s == 0) & ~moved.any(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            weights.append(
                np.where(
                    moved > 0,
                    moved * place.active_gpus / (place.link_byte_s * spare_s[:, None]),
                    0.0,
                )
            )
    return may_be_in_time, np.stack(weights)
