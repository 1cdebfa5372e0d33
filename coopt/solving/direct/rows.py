"""Mappings on direct links: where they may run, the grid of domains that each makes, and how fast its phases must be.

A place is an HB domain with its NICs and panels, and says what a link between such domains costs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from coopt.columns.context import DomainSet
from coopt.columns.dominance import undominated
from coopt.columns.pools import Fitting, Pool, promising, timed
from coopt.instance.hardware import HbDomain, Nic, Optic, Panel
from coopt.instance.schema import Instance
from coopt.network.optics import optic_choices
from coopt.network.parts import domain_lines, included_lines, keeps_limits, total, weigh
from coopt.network.space import active_choices
from coopt.perf.affine import NO_NETWORK, Reciprocals
from coopt.perf.mapping import Bools, Floats, Ints, expert_ranks
from coopt.plan.parts import line
from coopt.plan.schema import Cost
from coopt.solving.direct.grid import Demands, DomainGrid

PHASES = ("pp", "dp")


@dataclass(frozen=True, kw_only=True)
class DirectPlace:
    """HB domains of one kind holding N GPUs, `active` in each, and what joins them."""

    instance: Instance
    gpus: int
    hb: HbDomain
    active: int
    nic: Nic
    nics_per_gpu: int
    optic: Optic
    panel: Panel | None

    @property
    def domains(self) -> int:
        """D: HB domains bought."""
        return self.gpus // self.active

    @property
    def ports(self) -> int:
        """Links that may end at a domain; idle GPUs lend theirs."""
        return self.hb.size * self.nics_per_gpu

    @property
    def link_byte_s(self) -> float:
        """Rate of a link, each way (byte/s)."""
        return self.nic.gbit_s * 1e9 / 8

    @property
    def racks(self) -> int | None:
        """Racks that the HB domains fill, where the catalog knows."""
        return None if self.hb.racks is None else math.ceil(self.domains * self.hb.racks)

    def cost(self, links: int) -> Cost:
        """The bill with this many links: a NIC, a transceiver and a panel port at each end."""
        nic, optic, panel, ends = self.nic, self.optic, self.panel, 2 * links
        lines = domain_lines(self.instance.cluster.gpu, self.hb, self.gpus, self.domains * self.hb.size)
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

    def most_links(self, below: float = math.inf) -> int:
        """Links that ports and limits leave, at less than a value of the objective; -1 where nothing keeps them.

        By halving: no price and no power falls with more links.
        """
        low, high = -1, self.domains * self.ports // 2
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._keeps(middle, below) else (low, middle - 1)
        return low

    def _keeps(self, links: int, below: float) -> bool:
        cost = self.cost(links)
        return (
            keeps_limits(self.instance.limits, cost, self.racks) and cost.of(self.instance.objective.minimize) < below
        )


def every_place(instance: Instance) -> Iterator[DirectPlace]:
    """Every place of at least two domains, in the order of the instance's lists."""
    network, objective = instance.network, instance.objective
    panel = min(network.panels, key=lambda p: weigh(objective, p.usd_per_port, p.w_per_port), default=None)
    for gpus, hb in product(instance.cluster.gpus, network.hb_domains):
        for active, nic, per_gpu in product(active_choices(gpus, hb), network.nics, network.nics_per_gpu):
            levels = optic_choices(instance, nic)
            for optic in levels[1] if gpus > active and len(levels) > 1 else ():
                yield DirectPlace(
                    instance=instance,
                    gpus=gpus,
                    hb=hb,
                    active=active,
                    nic=nic,
                    nics_per_gpu=per_gpu,
                    optic=optic,
                    panel=panel,
                )


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """A mapping at a place; `phases` are those that cross domains."""

    place: DirectPlace
    pool: Pool
    row: int
    phases: tuple[str, ...]
    demands: Demands

    @property
    def least_value(self) -> float:
        """The objective is no less."""
        return self.place.value(self.demands.least_links())

    def reciprocals(self, paces: Floats) -> Reciprocals:
        """Seconds per byte of a GPU at paces of the phases."""
        seen = dict.fromkeys(PHASES, 0.0)
        for name, pace in zip(self.phases, paces, strict=True):
            seen[name] = self.place.active / (float(pace) * self.place.link_byte_s)
        return Reciprocals.of_grid(replicas=seen["dp"], stages=seen["pp"])


def worthwhile(where: DirectPlace, source: Fitting) -> tuple[list[Row], Counter[str]]:
    """The mappings at a place that may be in time and are not beaten by others on the same grid.

    Returns
    -------
    rows, gated
        The rows left, and how many were dropped by cause.
    """
    pool, gated = _crossing(where, source)
    if not len(pool):
        return [], gated
    left, weights = _weights(where, pool)
    gated["communication"] = len(pool) - int(left.sum())
    pool, weights = _taken(where, pool, left), weights[:, left, :]
    inner, closed = _shape(pool)
    keep = undominated(np.concatenate(list(weights), axis=1), _across(pool), inner, closed.astype(np.int64))
    gated["dominated"] = len(pool) - int(keep.sum())
    return list(_rows(where, pool, weights, keep)), gated


def _rows(where: DirectPlace, pool: Pool, weights: Floats, keep: Bools) -> Iterator[Row]:
    """Each row that is kept, with the demands of its grid."""
    ports = np.full(where.domains, where.ports)
    inner, closed = _shape(pool)
    for row in np.flatnonzero(keep).tolist():
        replicas = int(_across(pool)[row])
        grid = DomainGrid(
            stages=where.domains // replicas, replicas=replicas, inner=int(inner[row]), closed=bool(closed[row])
        )
        sends, weight = grid.sends(), weights[:, row, :]
        used = [k for k in range(len(PHASES)) if weight[:, k].any()]
        demands = Demands(grid=grid, ports=ports, sends=sends[used], weight=weight[:, used])
        yield Row(place=where, pool=pool, row=row, phases=tuple(PHASES[k] for k in used), demands=demands)


def _crossing(where: DirectPlace, source: Fitting) -> tuple[Pool, Counter[str]]:
    """Placements of which only stages, and replicas or contexts, cross domains, and how many were dropped by cause."""
    site = DomainSet(gpus=where.gpus, hb=where.hb.name, active=where.active)
    whole, gated = promising(source, where.instance.cluster.gpu, where.hb, site)
    m, inside = whole.mappings, whole.placements
    _, experts, *_ = expert_ranks(m, inside, expert_tp=source.workload.options.expert_tp)
    fine = (m.tp == inside.tp) & ((m.cp == inside.cp) | (m.dp == inside.dp)) & (experts == 1)
    if source.workload.model.tied_embeddings:
        fine &= m.pp <= 2 * inside.pp  # first and last domain of a pipeline are neighbours
    if source.workload.options.schedule == "dualpipe":  # and so are GPUs with the same stages, which all send at once
        fine &= (m.pp == inside.pp) | (m.pp == 2)
    kept = _taken(where, whole, np.asarray(fine, dtype=np.bool_))
    gated["crossing"] = len(whole) - len(kept)
    return kept, gated


def _taken(where: DirectPlace, pool: Pool, kept: Bools) -> Pool:
    chosen = pool.mappings.take(kept), pool.placements.take(kept)
    return timed(pool.workload, where.instance.cluster.gpu, where.hb, pool.site, *chosen)


def _across(pool: Pool) -> Ints:
    """Domains of a ring of replicas or of contexts: both send alike, and gradients go round both."""
    m, inside = pool.mappings, pool.placements
    return (m.dp // inside.dp) * (m.cp // inside.cp)


def _shape(pool: Pool) -> tuple[Ints, Bools]:
    """Stages in a domain, and whether pipelines go round."""
    return pool.placements.pp, np.asarray(pool.mappings.interleave > 1, dtype=np.bool_)


def _weights(where: DirectPlace, pool: Pool) -> tuple[Bools, Floats]:
    """Rows that may be in time, and the pace each phase of a row needs if the others take no time (pieces, n, 2)."""
    bound_s, count = pool.workload.bound_s, len(pool)
    rates = [Reciprocals.of_grid(stages=float(k == 0), replicas=float(k == 1)) for k in range(len(PHASES))]
    left, weights = np.ones(count, dtype=np.bool_), []
    for piece in pool.pieces:
        fixed_s = np.broadcast_to(piece.at(NO_NETWORK), (count,))
        moved = np.stack([np.broadcast_to(piece.at(r), (count,)) - fixed_s for r in rates], axis=1)
        spare_s = bound_s - fixed_s
        left &= (spare_s > 0) | ((spare_s == 0) & ~moved.any(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            weights.append(np.where(moved > 0, moved * where.active / (where.link_byte_s * spare_s[:, None]), 0.0))
    return left, np.stack(weights)
