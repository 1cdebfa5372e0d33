"""Other GPUs as a way out: another number of them, or another kind from the catalog; and how to ask
for either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from coopt.columns.grid import degrees_up_to
from coopt.instance.catalog import entries
from coopt.instance.errors import alternatives
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.schema import Instance, Network
from coopt.instance.workload import Workload
from coopt.network.space import Space, domain_counts
from coopt.plan.explanation import Change
from coopt.solving.reasons.again import UnprovenError
from coopt.solving.reasons.limits import FABRICS, text_of, with_part

MOST_GPUS, MOST_TIMES = (
    2**18,
    16,
)  # numbers of GPUs, and times those asked for, up to which more are tried
TRIES, FEW_TRIES = 32, 8  # numbers tried before a step gets finer; few where a try takes long
MOST_KINDS = 4  # kinds of GPU that are tried
WayOut = tuple[tuple[Change, ...], Instance]
Attempt = tuple[WayOut | None, str]
"""What is enough, or what was tried in vain."""
IsEnough = Callable[[Instance], bool]


class Steps(NamedTuple):
    """The unit of numbers that may be tried, and how many tries are few."""

    unit: int
    tries: int

    def of(self, counts: Sequence[int]) -> int:
        """The least multiple of the unit, by a power of two, of which few of some numbers, yet one,
        are multiples.
        """
        step = self.unit
        while sum(count % step == 0 for count in counts) > self.tries and any(
            n % (2 * step) == 0 for n in counts
        ):
            step *= 2
        return step


def with_gpus(instance: Instance, gpus: int) -> Instance:
    """The instance with one number of GPUs."""
    return with_part(instance, "cluster", {"gpus": (gpus,)})


def more_or_fewer(instance: Instance, is_enough: IsEnough, *, tries: int = TRIES) -> Attempt:
    """The least number of GPUs that is enough, up to 16 times as many as are asked for."""
    counts, unit = possible_counts(instance)
    return _sought(instance, is_enough, counts, Steps(unit, tries), is_least=True)


def fewer(instance: Instance, is_enough: IsEnough, *, tries: int = TRIES) -> Attempt:
    """The largest number of GPUs that is enough and below what is asked for."""
    counts, unit = possible_counts(instance)
    smaller_counts = [count for count in counts if count < instance.cluster.most_gpus]
    return _sought(instance, is_enough, smaller_counts, Steps(unit, tries), is_least=False)


def nearby(instance: Instance) -> Iterator[WayOut]:
    """Numbers of GPUs that fill whole HB domains in place of those asked for, nearest first."""
    counts = instance.cluster.gpus
    for gpus in Space(instance=instance).nearby_counts():
        share = gpus / counts[0] - 1
        change = Change(
            limit="cluster.gpus", now=text_of(counts), to=text_of((gpus,)), least=gpus, share=share
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
        counts = set.intersection(*(_divided(workload, ceiling) for workload in instance.workload))
    return sorted(count for count in counts - {*requests} if _is_held(network, count)), unit


def _divided(workload: Workload, ceiling: int) -> set[int]:
    return set(degrees_up_to(workload, ceiling).prod(axis=1).tolist())


def _is_held(network: Network, gpus: int) -> bool:
    return any(domain_counts(gpus, domain, network.domain_fill) for domain in network.hb_domains)


def _sought(
    instance: Instance, is_enough: IsEnough, counts: list[int], steps: Steps, *, is_least: bool
) -> Attempt:
    """The least of some numbers that is enough, or else the largest, of the multiples of a step;
    and the step.

    Once a number is known to do, fewer are left that would be better, so that the next step is
    finer; until every number counts, or none of a step is better.
    """
    answer, candidates, step = None, counts, steps.unit
    while candidates:
        finer = steps.of(candidates)
        multiples = [count for count in candidates if count % finer == 0]
        in_turn = multiples if is_least else reversed(multiples)
        try:
            enough = next(
                (count for count in in_turn if is_enough(with_gpus(instance, count))), None
            )
        except UnprovenError:
            if answer is None:
                raise
            # a number that is enough is known, though not that it is the best in a finer step
            break
        step = finer
        if enough is None:
            break
        answer = enough
        candidates = [
            count
            for count in candidates
            if count % step and (count < answer if is_least else count > answer)
        ]
    if answer is not None:
        return _number(instance, answer, step if candidates else steps.unit, is_least=is_least), ""
    return None, _in_vain(multiples, step, steps.unit) if counts else ""


def _in_vain(counts: Sequence[int], step: int, unit: int) -> str:
    range_text = f"any other number of GPUs from {counts[0]:,} to {counts[-1]:,}"
    return range_text if step == unit == 1 else f"{range_text} in steps of {step:,}"


def _number(instance: Instance, gpus: int, step: int, *, is_least: bool) -> WayOut:
    requests = instance.cluster.gpus
    request, share = (
        (requests, None)
        if instance.cluster.has_several_counts
        else (requests[0], gpus / requests[0] - 1)
    )
    minimum = gpus if is_least else None
    change = Change(
        limit="cluster.gpus",
        now=text_of(request),
        to=text_of(gpus),
        least=minimum,
        share=share,
        step=step,
    )
    return (change,), with_gpus(instance, gpus)


def left_out_of_sums(instance: Instance, keys: Iterable[str]) -> Iterator[str]:
    """That sums of plans with other GPUs, or another number of them, leave these out, where they
    do.
    """
    if {"cluster.gpus", "cluster.gpu"} & set(keys) and "gpu" not in instance.objective.include:
        yield (
            'The price of GPUs is left out of these sums: objective.include = ["gpu", ...]'
            " counts it."
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
    reference = instance.cluster.gpu
    hb_domains = [entry for entry in entries("hb_domain").values() if isinstance(entry, HbDomain)]
    gpus = [
        entry
        for entry in entries("gpu").values()
        if isinstance(entry, Gpu) and entry.bf16_tflop_s > reference.bf16_tflop_s
    ]
    for gpu in sorted(
        gpus, key=lambda entry: (_maker(entry) != _maker(reference), entry.bf16_tflop_s)
    ):
        domains = tuple(entry for entry in hb_domains if gpu.name in entry.gpus)
        if domains:
            yield gpu, domains


def _maker(gpu: Gpu) -> str:
    return gpu.description.partition(" ")[0]


def _kinds(instance: Instance, gpu: Gpu, domains: tuple[HbDomain, ...]) -> tuple[Change, ...]:
    values: dict[str, Any] = {
        "cluster.gpu": instance.cluster.gpu,
        "network.hb_domains": instance.network.hb_domains,
    }
    after: dict[str, Any] = {"cluster.gpu": gpu, "network.hb_domains": domains}
    return tuple(
        Change(limit=key, now=text_of(value), to=text_of(after[key]), least=None, share=None)
        for key, value in values.items()
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


def settings_to_compare(instance: Instance) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a question of one network left out about its fabric and its GPUs, with values that would
    compare it.
    """
    gpus, cluster = instance.cluster.gpus, instance.cluster
    if instance.beyond_one_network:
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
