"""Couplings that no plan combines: `docs/fleets.md` has the table of what goes together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coopt.instance.couplings import Prices
from coopt.instance.errors import both
from coopt.instance.question import Question

CERTAIN = {
    "robust.prices": "planned at known prices",
    "robust.efficiency": "planned at one efficiency of the GPU",
    "robust.survive": "planned without losses",
    "[robust]": "planned without doubts",
}
"""What excludes each key of `[robust]`."""
UNINTERRUPTED = "planned without failures"


def exclusions(instance: Question) -> Iterator[str]:
    """Sentences about couplings that are asked for together, one for each that excludes others."""
    yield from _beside_direct_links(instance)
    yield from _beside_a_ring(instance)
    yield from _beside_failures(instance)


def _beside_direct_links(instance: Question) -> Iterator[str]:
    if "direct" not in instance.network.fabrics:
        return
    reasons = {"sharing.mode = 'partition'": "those of one network"} if instance.sharing.mode == "partition" else {}
    reasons |= {"[[site]]": "laid at one place"} if instance.site else {}
    reasons |= _beside_one_network_built_at_once(instance)
    if reasons:
        yield (
            f"network.fabrics: 'direct' does not go with {both(reasons)}: direct links are {both(reasons.values())}, "
            f"needs fabrics without 'direct', or {_without(reasons)}"
        )


def _beside_a_ring(instance: Question) -> Iterator[str]:
    reasons = _beside_one_network_built_at_once(instance)
    if instance.asks("ring") and reasons:
        yield (
            f"site: one model that trains at several sites (sharing.mode = 'time') does not go with {both(reasons)}: "
            f"it is {both(reasons.values())}, needs sharing.mode = 'partition', where each workload has an island at "
            f"one site, or {_without(reasons)}"
        )


def _beside_one_network_built_at_once(instance: Question) -> dict[str, str]:
    """What is asked for of growth, doubts and failures, each with the words that exclude it."""
    reasons = {"[[phase]]": "built at once"} if instance.phase else {}
    reasons |= {key: CERTAIN[key] for key in _doubts(instance)}
    return reasons | ({"[availability]": UNINTERRUPTED} if instance.availability is not None else {})


def _without(names: Iterable[str]) -> str:
    """What a question asks for in place of these; of `[robust]` nothing may be left."""
    tables = ("[robust]" if name.startswith("robust.") else name for name in names)
    return both(dict.fromkeys("sharing.mode = 'time'" if "mode" in table else f"no {table}" for table in tables))


def _doubts(instance: Question) -> list[str]:
    """The keys of `[robust]` that put something in doubt; the table where none does."""
    robust = instance.robust
    if robust is None:
        return []
    contents = {
        "robust.prices": robust.prices != Prices(),
        "robust.efficiency": robust.efficiency != (1.0, 1.0),
        "robust.survive": robust.survive,
    }
    return [key for key, content in contents.items() if content] or ["[robust]"]


def _beside_failures(instance: Question) -> Iterator[str]:
    if instance.availability is not None and instance.losses:
        yield (
            "availability: does not go with robust.survive: runs stop at a failure and restart, while after a loss "
            "they go on with what is left, needs no [availability], or no robust.survive"
        )


def unsearched_runners_up(instance: Question) -> Iterator[str]:
    """That runners-up are asked for of anything but one network of switches, by a sum of its bill, at known prices."""
    objective, kind = instance.objective, instance.objective.minimize
    contents = {
        "sharing.mode = 'partition'": instance.sharing.mode == "partition",
        "[[site]]": instance.site,
        "[[phase]]": instance.phase,
        "[robust]": instance.robust is not None,
        "'direct' in network.fabrics": "direct" in instance.network.fabrics,
        f"objective.minimize = {kind!r}": kind != objective.billed,
    }
    names = [name for name, content in contents.items() if content]
    if instance.solver.top > 1 and names:
        yield f"solver.top = {instance.solver.top}: runners-up are not searched beside {both(names)}, needs 1"
