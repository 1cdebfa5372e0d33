"""Other GPUs as a way out: another number of them, or another kind from the catalog; and how to ask for either."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError

from coopt.instance.catalog import entries
from coopt.instance.errors import alternatives
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.schema import Instance
from coopt.plan.explanation import Change
from coopt.solving.reasons.limits import with_part
from coopt.solving.reasons.lists import FABRICS, Changed, text_of

MOST_GPUS = 2**18
PARTS, FEW_PARTS = 32, 8  # of the largest number of GPUs asked for, each a step; few where a try takes long
DOUBLINGS, QUARTERS = 4, 4  # of it, each in as many steps
MOST_KINDS = 4  # kinds of GPU that are tried
Tried = tuple[Changed | None, str]
"""What is enough, or what was tried in vain."""
IsEnough = Callable[[Instance], bool]


def with_gpus(instance: Instance, gpus: int) -> Instance:
    """The instance with one number of GPUs."""
    return with_part(instance, "cluster", {"gpus": (gpus,)})


def more_or_fewer(instance: Instance, is_enough: IsEnough, *, parts: int = PARTS) -> Tried:
    """The least number of GPUs that is enough, of those in steps, up to 16 times as many as are asked for."""
    steps = tuple(_steps(instance, parts))
    for gpus, step in steps:
        if is_enough(with_gpus(instance, gpus)):
            return _number(instance, gpus, step, is_least=True), ""
    return None, _in_vain(steps)


def fewer(instance: Instance, is_enough: IsEnough, *, parts: int = PARTS) -> Tried:
    """The largest number of GPUs that is enough, of those in steps and below what is asked for."""
    steps = tuple(one for one in _steps(instance, parts) if one[0] < max(instance.cluster.gpus))
    for gpus, step in reversed(steps):
        if is_enough(with_gpus(instance, gpus)):
            return _number(instance, gpus, step, is_least=False), ""
    return None, _in_vain(steps)


def _steps(instance: Instance, parts: int) -> Iterator[tuple[int, int]]:
    """Numbers of GPUs besides those asked for, as they rise, with the step that each is a multiple of.

    All multiples of a step that are less were there before it. A step below the largest number asked for is one of
    `parts` of it, and whole domains, or the share of one that it is; beyond, steps grow with the numbers.
    """
    asked = instance.cluster.gpus
    top, unit = max(asked), math.gcd(min(domain.size for domain in instance.network.hb_domains), *asked)
    step = unit * math.ceil(top / (parts * unit))
    yield from ((gpus, step) for gpus in range(step, top, step) if gpus not in asked)
    for times in (2**n for n in range(DOUBLINGS)):
        while 2 * step * QUARTERS <= top * times:
            step *= 2
        first = top * times // step * step + step
        yield from ((gpus, step) for gpus in range(first, min(2 * top * times, MOST_GPUS) + 1, step))


def _in_vain(steps: tuple[tuple[int, int], ...]) -> str:
    if not steps:
        return ""
    (first, narrow), (last, wide) = steps[0], steps[-1]
    width = f"{narrow:,}" if narrow == wide else f"{narrow:,} to {wide:,}"
    return f"another number of GPUs from {first:,} to {last:,}, in steps of {width}"


def _number(instance: Instance, gpus: int, step: int, *, is_least: bool) -> Changed:
    asked = instance.cluster.gpus
    now, share = (asked, None) if len(asked) > 1 else (asked[0], gpus / asked[0] - 1)
    least = gpus if is_least else None
    change = Change(limit="cluster.gpus", now=text_of(now), to=text_of(gpus), least=least, share=share, step=step)
    return (change,), with_gpus(instance, gpus)


def another_gpu(instance: Instance, is_enough: IsEnough) -> Tried:
    """The first faster GPU of the catalog that is enough, in the HB domains that are sold with it."""
    tried = list[str]()
    for gpu, domains in faster_gpus(instance):
        changed = _with_gpu(instance, gpu, domains)
        if changed is None:
            continue
        if is_enough(changed):
            return (_kinds(instance, gpu, domains), changed), ""
        tried.append(gpu.name)
        if len(tried) == MOST_KINDS:
            break
    return None, f"{alternatives(tried)} in place of {instance.cluster.gpu.name}" if tried else ""


def faster_gpus(instance: Instance) -> Iterator[tuple[Gpu, tuple[HbDomain, ...]]]:
    """GPUs of the catalog with more FLOP/s, each with the HB domains that are sold with it.

    Those of the same maker, by the first word of what the catalog says of them, come first; then the slowest.
    """
    own, every = instance.cluster.gpu, [one for one in entries("hb_domain").values() if isinstance(one, HbDomain)]
    gpus = [one for one in entries("gpu").values() if isinstance(one, Gpu) and one.bf16_tflop_s > own.bf16_tflop_s]
    for gpu in sorted(gpus, key=lambda one: (_maker(one) != _maker(own), one.bf16_tflop_s)):
        domains = tuple(one for one in every if gpu.name in one.gpus)
        if domains:
            yield gpu, domains


def _maker(gpu: Gpu) -> str:
    return gpu.description.partition(" ")[0]


def _kinds(instance: Instance, gpu: Gpu, domains: tuple[HbDomain, ...]) -> tuple[Change, ...]:
    before: dict[str, Any] = {"cluster.gpu": instance.cluster.gpu, "network.hb_domains": instance.network.hb_domains}
    after: dict[str, Any] = {"cluster.gpu": gpu, "network.hb_domains": domains}
    return tuple(
        Change(limit=key, now=text_of(now), to=text_of(after[key]), least=None, share=None)
        for key, now in before.items()
    )


def _with_gpu(instance: Instance, gpu: Gpu, domains: tuple[HbDomain, ...]) -> Instance | None:
    """The question with another GPU in its own HB domains; None where the rest does not agree with it."""
    table = instance.model_dump(by_alias=True)
    table["cluster"] |= {"gpu": gpu.model_dump(), "generations": ()}
    table["network"]["hb_domains"] = [one.model_dump() for one in domains]
    try:
        return Instance.model_validate(table)
    except ValidationError:
        return None


def settings_to_compare(instance: Instance) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a question of one network left out about its fabric and its GPUs, with values that would compare it."""
    gpus, cluster = instance.cluster.gpus, instance.cluster
    if instance.problem != "shared":
        return
    if others := [one for one in FABRICS if one not in instance.network.fabrics]:
        yield f"{alternatives(others)} networks", {"network.fabrics": [*instance.network.fabrics, *others]}
    if len(gpus) == 1:
        yield "another number of GPUs", {"cluster.gpus": [gpus[0], 2 * gpus[0]]}
    for gpu, domains in faster_gpus(instance):
        if _with_gpu(instance, gpu, domains) is not None and cluster.gpu.name in entries("gpu"):
            names = [one.name for one in (*instance.network.hb_domains, *domains)]
            if set(names) <= set(entries("hb_domain")):
                yield (
                    f"a faster GPU such as {gpu.name}",
                    {"cluster.gpu": [cluster.gpu.name, gpu.name], "network.hb_domains": names},
                )
            return
