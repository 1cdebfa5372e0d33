"""Why no sites answer an instance: sentences that name what must give, each tried."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from coopt.columns.table import columns
from coopt.instance.schema import Instance
from coopt.network.space import families
from coopt.solving import explain
from coopt.solving.backend import Backend
from coopt.solving.sites.arrays import facility_w, ring_problems
from coopt.solving.sites.local import local_question
from coopt.solving.sites.options import Option, offers
from coopt.solving.sites.search import search_rings

PLENTY = 10**7  # of MW and channels, more than anyone has


def no_sites(instance: Instance, options: Sequence[Option], backend: Backend) -> tuple[str, ...]:
    """Why nothing meets the bounds; `options` are those of as many shares as some site can feed."""
    assert instance.cluster.shares is not None
    tried = max((option.shares for option in options), default=0)
    more = range(tried + 1, instance.cluster.shares + 1)
    unfed = [option for n in more for option in offers(local_question(instance, n), n, lambda: None).options]
    if options or unfed:
        return _no_ring(instance, [*options, *unfed], backend)
    return _no_option(instance)


def _no_option(instance: Instance) -> tuple[str, ...]:
    """No site trains any shares in time, even without a wait: why the whole cluster at one site does not."""
    assert instance.cluster.shares is not None
    whole = local_question(instance, instance.cluster.shares)
    every = tuple(families(whole))
    if not every:
        return explain.no_family(whole)
    return explain.no_design(whole, every, columns(whole, every, lambda _: None, lambda: None))


def _no_ring(instance: Instance, options: Sequence[Option], backend: Backend) -> tuple[str, ...]:
    """Every ring breaks a limit: each one without which there is a plan."""
    short = tuple(_power(instance, options))
    if short:
        return short
    enough = [text for text, eased in _eased(instance) if _solvable(eased, options, backend)]
    if enough:
        return tuple(f"no sites keep all limits at once; {text} there is a plan" for text in enough)
    return ("no sites keep all limits at once, nor without any one of them: needs two of them looser",)


def _power(instance: Instance, options: Sequence[Option]) -> Iterator[str]:
    """All sites together cannot feed the GPUs."""
    assert instance.cluster.shares is not None
    most = []
    for site in instance.site:
        fed = [o.shares for o in options if facility_w(instance.objective, site, o.w) <= site.power_mw * 1e6]
        most.append(max(fed, default=0))
    if sum(most) < instance.cluster.shares:
        listed = ", ".join(f"{site.name} {count}" for site, count in zip(instance.site, most, strict=True))
        yield (
            f"site: power_mw of all sites feeds {sum(most)} of {instance.cluster.shares} shares within the time bounds "
            f"({listed}): needs more power, another site, looser bounds, more shares of less power each, or fewer GPUs"
        )


def _eased(instance: Instance) -> Iterator[tuple[str, Instance]]:
    """The instance without one limit, with a word on which."""
    for s, site in enumerate(instance.site):
        sites = list(instance.site)
        sites[s] = site.model_copy(update={"power_mw": PLENTY})
        yield f"with more power at {site.name}", instance.model_copy(update={"site": tuple(sites)})
    wide = tuple(wan.model_copy(update={"most": PLENTY}) for wan in instance.wan)
    if wide:
        yield "with more channels (wan.most)", instance.model_copy(update={"wan": wide})
    for name in ("power_mw", "capex_usd", "racks"):
        if getattr(instance.limits, name) is not None:
            limits = instance.limits.model_copy(update={name: None})
            yield f"without limits.{name}", instance.model_copy(update={"limits": limits})


def _solvable(instance: Instance, options: Sequence[Option], backend: Backend) -> bool:
    deadline = time.perf_counter() + instance.solver.time_limit_s
    return search_rings(instance, ring_problems(instance, options), backend, deadline=deadline).found is not None
