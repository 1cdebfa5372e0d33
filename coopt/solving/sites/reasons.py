"""Why no sites answer an instance: sentences that name what must give, each tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from coopt.columns.table import columns
from coopt.instance.schema import Instance
from coopt.network.space import families
from coopt.solving import explain
from coopt.solving.runs import Run, StoppedError
from coopt.solving.sites.arrays import may_feed, ring_problems
from coopt.solving.sites.options import Option, local_question
from coopt.solving.sites.search import search_rings

PLENTY = 10**7  # of MW and channels, more than anyone has


def no_option(instance: Instance, most: int) -> tuple[str, ...]:
    """No site trains any shares in time, even without a wait: why `most`, all that any site can feed, are not."""
    whole = instance.cluster.shares
    assert whole is not None
    if most == 0:
        (gpus,) = local_question(instance, 1).cluster.gpus
        share_mw = gpus * instance.cluster.gpu.w / 1e6
        return (
            f"site: no site can feed the GPUs of one of {whole} shares, which take {share_mw:.6g} MW times its PUE: "
            "needs more power, more shares of less power each, or fewer GPUs",
        )
    local = local_question(instance, most)
    every = tuple(families(local))
    if every:
        why = explain.no_design(local, every, columns(local, every, lambda _: None, lambda: None))
    else:
        why = explain.no_family(local)
    return (
        why if most == whole else tuple(f"{most} of {whole} shares, all that any site can feed: {one}" for one in why)
    )


UNTRIED = "no sites keep all limits at once, and there was no time to find out which of them must give"


def no_ring(run: Run, options: Sequence[Option], unfed: Callable[[], Sequence[Option]]) -> tuple[str, ...]:
    """Every ring breaks a limit: each one without which there is a plan, as far as there is time to try.

    `unfed` lists options that no site can feed, which one with more power could.
    """
    instance = run.instance
    short = tuple(_power(instance, options))
    if short:
        return short
    try:
        every = [*options, *unfed()]
    except StoppedError:
        return (UNTRIED,)
    tried = [
        (text, search_rings(eased, ring_problems(eased, every), run.backend, deadline=run.deadline))
        for text, eased in _eased(instance)
    ]
    enough = [text for text, result in tried if result.found is not None]
    if enough:
        return tuple(f"no sites keep all limits at once; {text} there is a plan" for text in enough)
    if all(result.outcome == "infeasible" for _, result in tried):
        return ("no sites keep all limits at once, nor without any one of them: needs several of them looser",)
    return (UNTRIED,)


def _power(instance: Instance, options: Sequence[Option]) -> Iterator[str]:
    """All sites together cannot feed the GPUs."""
    assert instance.cluster.shares is not None
    most = []
    for site in instance.site:
        fed = [option.shares for option in options if may_feed(instance.objective, site, option.w)]
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
