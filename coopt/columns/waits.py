"""How long mappings can wait for gradients from elsewhere and still meet their bound.

Gradients that are added up with other sites take a time w beside the data-parallel traffic of the site itself, and hide
as far as that does. Every affine piece of the iteration time then grows by a·w with a >= 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from coopt.columns.context import Context, DomainSet
from coopt.columns.dominance import undominated
from coopt.columns.pools import Fitting, Pool, in_orders, in_time
from coopt.instance.hardware import Gpu, HbDomain
from coopt.perf.affine import AffineSeconds
from coopt.perf.iterations import Iteration
from coopt.perf.mapping import Floats, Ints
from coopt.perf.traffic import OVERLAP_COST


def waiting(pool: Pool, wait_s: float) -> Pool:
    """The same mappings when gradients take this much longer."""
    return replace(pool, iteration=delayed(pool.iteration, wait_s))


def delayed(iteration: Iteration, wait_s: float) -> Iteration:
    """The same iterations when gradients take this much longer."""
    return replace(iteration, dp=iteration.dp + AffineSeconds(wait_s)) if wait_s else iteration


def patient_pool(source: Fitting, gpu: Gpu, hb: HbDomain, site: DomainSet, best: Context) -> tuple[Pool, Counter[str]]:
    """Place the fitting mappings on one kind of HB domain and keep those that may be in time, however long they wait.

    A row goes when another of its class is nowhere slower without a wait and with the longest anyone could bear; the
    pieces are affine in the wait, so it is nowhere slower in between. No wait is longer than the bound over the least
    share of it that shows.

    Parameters
    ----------
    best
        A network at least as fast as any other for this site.

    Returns
    -------
    pool, gated
        The rows left, and how many were dropped by cause.
    """
    quick, gated = in_time(source, gpu, hb, site, best)
    ends = [waiting(quick, wait_s).coefficients() for wait_s in (0.0, source.workload.bound_s / OVERLAP_COST)]
    left = quick.take(np.flatnonzero(undominated(np.hstack(ends), *quick.groups)))
    gated["dominated"] = len(quick) - len(left)
    return in_orders(left, best.discipline), gated


@dataclass(frozen=True, kw_only=True, eq=False)
class Patience:
    """Mappings without a wait and with one of a second, from which every other wait follows."""

    now: Pool
    later: Pool

    def longest_s(self, context: Context, uplinks: Ints) -> Floats:
        """The longest wait with which some row meets its bound on a network with u uplinks, for k of them; shape (k,).

        It is -inf where none does even without one.
        """
        r, bound_s = self.now.charged(self.now.reciprocals(context, uplinks[:, None])), self.now.workload.bound_s
        longest = np.full((len(uplinks), len(self.now)), np.inf)
        for now, later in zip(self.now.pieces, self.later.pieces, strict=True):
            at_once, slope = now.at(r), later.fixed - now.fixed  # a second longer, whatever the network
            with np.errstate(divide="ignore", invalid="ignore"):
                bears = np.where(slope > 0, (bound_s - at_once) / slope, np.inf)
            longest = np.minimum(longest, np.where(at_once <= bound_s, bears, -np.inf))
        return np.asarray(longest.max(axis=1, initial=-np.inf))


def patience(pool: Pool) -> Patience:
    """How long the mappings of a pool can wait."""
    return Patience(now=pool, later=waiting(pool, 1.0))
