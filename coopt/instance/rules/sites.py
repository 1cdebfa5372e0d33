"""What sites and the channels between them must agree on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from coopt.instance.question import Question
from coopt.instance.sites import MOST_SITES


def site_disagreements(instance: Question) -> Iterator[str]:
    """Sentences about sites that do not go with each other or with the rest."""
    if not instance.site:
        if instance.wan or instance.cluster.shares is not None:
            what = "wan" if instance.wan else "cluster.shares"
            yield f"{what}: joins or divides among sites, and there are none, needs [[site]] tables"
        return
    if instance.sharing.mode == "partition":
        if instance.wan or instance.cluster.shares is not None:
            what = "wan" if instance.wan else "cluster.shares"
            yield f"{what}: every island stands at one site, needs to be left out with sharing.mode = 'partition'"
    else:
        yield from _shares(instance)
    yield from _links(instance)
    if len(instance.site) > MOST_SITES:
        yield f"site: {len(instance.site)} sites, needs at most {MOST_SITES}"
    if "gpu" not in instance.objective.include:
        yield "objective.include: lacks 'gpu', whose power the sites have to feed, needs 'gpu' in it"
    if instance.solver.top > 1:
        yield f"solver.top = {instance.solver.top}: runners-up are not searched for several sites, needs 1"


def _shares(instance: Question) -> Iterator[str]:
    shares = instance.cluster.shares
    if shares is None:
        yield "cluster.shares: is missing, needs the number of equal shares of GPUs and batch that sites take"
        return
    if len(instance.cluster.gpus) > 1:
        counts = ", ".join(map(str, instance.cluster.gpus))
        yield f"cluster.gpus = {counts}: sites share one number of GPUs, needs one"
    parts = [("cluster.gpus", gpus) for gpus in instance.cluster.gpus]
    parts += [(f"workload {w.name!r}: global_batch", w.global_batch) for w in instance.workload]
    for key, value in parts:
        if value % shares:
            yield f"cluster.shares = {shares}: does not divide {key} = {value}, needs a divisor"


def _links(instance: Question) -> Iterator[str]:
    names = [site.name for site in instance.site]
    seen: set[frozenset[str]] = set()
    for w, wan in enumerate(instance.wan):
        ends = frozenset(wan.between)
        for name in wan.between:
            if name not in names:
                yield f"wan[{w}].between: no site is named {name!r}, needs two of {', '.join(names)}"
        if len(ends) < 2:
            yield f"wan[{w}].between: joins {wan.between[0]!r} with itself, needs two different sites"
        if ends in seen:
            yield f"wan[{w}].between: {wan.name} is there already, needs one table for two sites"
        seen.add(ends)
    for one, other in pairwise(sorted(names)):
        if one == other:
            yield f"site: name {one!r} appears twice, needs different names"
