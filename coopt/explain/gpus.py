"""Other GPUs as a way out: another number of them, or another kind from the catalog; and how to ask
for either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from coopt.columns.grid import degrees_up_to
from coopt.columns.islands.shapes import quick_degrees
from coopt.explain.lists import FABRICS
from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.schema import Instance, text_of, with_part
from coopt.instance.texts import alternatives
from coopt.network.space import Space, domain_counts
from coopt.plan.explanation import Change
from coopt.solving.resolves import UnprovenError

MOST_GPUS, MOST_TIMES = 2**18, 16
"""Numbers of GPUs, and times those asked for, up to which more are tried."""
TRIES, FEW_TRIES = 32, 8  # numbers tried before a step gets finer; few where a try takes long
MOST_KINDS = 4  # kinds of GPU that are tried
WayOut = tuple[tuple[Change, ...], Instance]
Attempt = tuple[WayOut | None, str]
"""What is enough, or what was tried in vain."""
IsEnough = Callable[[Instance], bool]


def other_number(
    instance: Instance, is_enough: IsEnough, *, fewer: bool, tries: int = TRIES
) -> Attempt:
    """The least number of GPUs that is enough, up to 16 times as many as are asked for; or the most
    below that.

    Multiples of a step are tried, few at a time, which gets finer as long as a better number is
    found: until every number counts, or none of a step is better.
    """
    counts, unit = possible_counts(instance)
    counts = [n for n in counts if n < instance.cluster.most_gpus] if fewer else counts
    candidates, answer, step = _quick(instance, counts), None, unit
    while candidates:
        finer = _step(candidates, unit, tries)
        tried = sorted((n for n in candidates if n % finer == 0), reverse=fewer)
        try:
            better = next((n for n in tried if is_enough(with_gpus(instance, n))), None)
        except UnprovenError:
            if answer is None:
                raise
            break  # a number that is enough is known, though not that a finer step has no better
        step = finer
        if better is None:
            break
        answer = better
        candidates = [n for n in candidates if n % step and (n > better if fewer else n < better)]
    if answer is not None:
        return _number(instance, answer, step if candidates else unit, is_least=not fewer), ""
    if not counts:
        return None, ""
    steps = "" if step == unit == 1 else f" that is a multiple of {step:,}"
    return None, f"any other number of GPUs from {counts[0]:,} to {counts[-1]:,}{steps}"


def with_gpus(instance: Instance, gpus: int) -> Instance:
    """The instance with one number of GPUs."""
    return with_part(instance, "cluster", {"gpus": (gpus,)})


def _step(counts: list[int], unit: int, tries: int) -> int:
    """The least multiple of the unit, by a power of two, of which few of some numbers, yet one, are
    multiples.
    """
    step = unit
    while sum(n % step == 0 for n in counts) > tries and any(n % (2 * step) == 0 for n in counts):
        step *= 2
    return step


def _quick(instance: Instance, counts: list[int]) -> list[int]:
    """The numbers on which the compute of some mapping of each workload alone is in time."""
    if instance.asks("ring") or not counts:
        return counts
    tables = (quick_degrees(one, instance.cluster.gpu, counts[-1]) for one in instance.workload)
    quick = set.intersection(*(set(table.prod(axis=1).tolist()) for table in tables))
    return [gpus for gpus in counts if gpus in quick]


def nearby(instance: Instance) -> Iterator[WayOut]:
    """Numbers of GPUs that fill whole HB domains in place of those asked for, nearest first, where
    those do not.
    """
    space = Space(instance=instance)
    if next(space.all_sites(), None) is None:
        counts = instance.cluster.gpus
        for gpus in space.nearby_counts():
            change = Change(
                limit="cluster.gpus",
                now=text_of(counts),
                to=text_of((gpus,)),
                least=gpus,
                share=gpus / counts[0] - 1,
            )
            yield (change,), with_gpus(instance, gpus)


def possible_counts(instance: Instance) -> tuple[list[int], int]:
    """Numbers of GPUs besides those asked for, rising, that domains hold and that some mapping of
    each workload takes.

    No other multiple of the unit, which follows, has a plan. It is 1 but for several sites: shares
    of these have mappings of their own, so that multiples of what fills whole domains, or divides
    them, are listed.
    """
    network, requests = instance.network, instance.cluster.gpus
    ceiling, unit = min(MOST_TIMES * max(requests), MOST_GPUS), 1
    if instance.asks("ring"):
        unit = math.gcd(min(domain.size for domain in network.hb_domains), *requests)
        counts = set(range(unit, ceiling + 1, unit))
    else:
        tables = (degrees_up_to(workload, ceiling) for workload in instance.workload)
        counts = set.intersection(*(set(table.prod(axis=1).tolist()) for table in tables))
    return [
        gpus
        for gpus in sorted(counts - {*requests})
        if any(domain_counts(gpus, domain, network.domain_fill) for domain in network.hb_domains)
    ], unit


def _number(instance: Instance, gpus: int, step: int, *, is_least: bool) -> WayOut:
    requests = instance.cluster.gpus
    several = instance.cluster.has_several_counts
    change = Change(
        limit="cluster.gpus",
        now=text_of(requests if several else requests[0]),
        to=text_of(gpus),
        least=gpus if is_least else None,
        share=None if several else gpus / requests[0] - 1,
        step=step,
    )
    return (change,), with_gpus(instance, gpus)


def left_out_of_sums(instance: Instance, keys: Iterable[str]) -> Iterator[str]:
    """That sums of plans with other GPUs, or another number of them, leave these out, where they
    do.
    """
    if {"cluster.gpus", "cluster.gpu"} & set(keys) and "gpu" not in instance.objective.include:
        yield (
            'No bill here counts the GPUs that train; add "gpu" to objective.include to count them.'
        )


def another_gpu(instance: Instance, is_enough: IsEnough) -> Attempt:
    """The first faster GPU of the catalog that is enough, in the HB domains that are sold with
    it.
    """
    names = list[str]()
    for gpu, domains in faster_gpus(instance):
        question = _with_gpu(instance, gpu, domains)
        if question is None:
            continue
        if is_enough(question):
            return (_kinds(instance, gpu, domains), question), ""
        names.append(gpu.name)
        if len(names) == MOST_KINDS:
            break
    return None, f"{alternatives(names)} in place of {instance.cluster.gpu.name}" if names else ""


def faster_gpus(instance: Instance) -> Iterator[tuple[Gpu, tuple[HbDomain, ...]]]:
    """GPUs of the catalog with more FLOP/s, each with the HB domains that are sold with it.

    Those of the same maker, by the first word of what the catalog says of them, come first; then
    the slowest.
    """
    ours = instance.cluster.gpu
    hb_domains = [entry for entry in entries("hb_domain").values() if isinstance(entry, HbDomain)]
    gpus = [entry for entry in entries("gpu").values() if isinstance(entry, Gpu)]
    for gpu in sorted(gpus, key=lambda entry: (_maker(entry) != _maker(ours), entry.bf16_tflop_s)):
        domains = tuple(entry for entry in hb_domains if gpu.name in entry.gpus)
        if domains and gpu.bf16_tflop_s > ours.bf16_tflop_s:
            yield gpu, domains


def _maker(gpu: Gpu) -> str:
    return gpu.description.partition(" ")[0]


def _kinds(instance: Instance, gpu: Gpu, domains: tuple[HbDomain, ...]) -> tuple[Change, ...]:
    moves: dict[str, tuple[Any, Any]] = {
        "cluster.gpu": (instance.cluster.gpu, gpu),
        "network.hb_domains": (instance.network.hb_domains, domains),
    }
    return tuple(
        Change(limit=key, now=text_of(now), to=text_of(to), least=None, share=None)
        for key, (now, to) in moves.items()
    )


def _with_gpu(instance: Instance, gpu: Gpu, domains: tuple[HbDomain, ...]) -> Instance | None:
    """The question with another GPU in its own HB domains; None where the rest does not agree with
    it.
    """
    table = instance.model_dump(by_alias=True)
    table["cluster"] |= {"gpu": gpu.model_dump(), "generations": ()}
    table["network"]["hb_domains"] = [domain.model_dump() for domain in domains]
    try:
        return Instance.model_validate(table)
    except ValidationError:
        return None


def has_one_number(instance: Instance) -> bool:
    """Whether all workloads have the same GPUs throughout, so that these are a number to move."""
    return not instance.phase and instance.sharing.mode == "time"


def settings_to_compare(instance: Instance) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a question of one network left out about its fabric and its GPUs, with values that would
    compare it.
    """
    gpus, cluster = instance.cluster.gpus, instance.cluster
    if instance.beyond_one_network or instance.availability or instance.network.given:
        return
    if kinds := [entry for entry in FABRICS if entry not in instance.network.fabrics]:
        yield (
            f"{alternatives(kinds)} networks",
            {"network.fabrics": [*instance.network.fabrics, *kinds]},
        )
    if not cluster.has_several_counts:
        yield "another number of GPUs", {"cluster.gpus": [gpus[0], 2 * gpus[0]]}
    for gpu, domains in faster_gpus(instance):
        if _with_gpu(instance, gpu, domains) is not None and cluster.gpu.name in entries("gpu"):
            names = [entry.name for entry in (*instance.network.hb_domains, *domains)]
            if set(names) <= set(entries("hb_domain")):
                yield (
                    f"a faster GPU such as {gpu.name}",
                    {"cluster.gpu": [cluster.gpu.name, gpu.name], "network.hb_domains": names},
                )
            return
