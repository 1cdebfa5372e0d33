"""Other GPUs as a way out: more of them, or another kind from the catalog; and how to ask for either."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError

from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.listings import alternatives
from coopt.instance.schema import Instance
from coopt.plan.explanation import Change
from coopt.solving.reasons.limits import with_part
from coopt.solving.reasons.lists import FABRICS, text_of

MOST_GPUS = 2**18
DOUBLED, QUARTERS = (2, 4, 8, 16), (5, 6, 7)
MOST_KINDS = 4  # kinds of GPU that are tried
Changed = tuple[tuple[Change, ...], Instance]
Tried = tuple[Changed | None, str]
"""What is enough, or what was tried in vain."""
IsEnough = Callable[[Instance], bool]


def with_gpus(instance: Instance, gpus: int) -> Instance:
    """The instance with one number of GPUs."""
    return with_part(instance, "cluster", {"gpus": (gpus,)})


def more_gpus(instance: Instance, is_enough: IsEnough) -> Tried:
    """A number of GPUs that is enough: the first when they are doubled, or one of three between that and its half.

    It may not be the least, as what divides layers, heads and the batch does not grow with the number.
    """
    now, tried = max(instance.cluster.gpus), list[int]()
    for most in (now * times for times in DOUBLED if now * times <= MOST_GPUS):
        if is_enough(with_gpus(instance, most)):
            fewer = (most * quarter // 8 for quarter in QUARTERS)
            gpus = next((one for one in fewer if is_enough(with_gpus(instance, one))), most)
            return ((_number(instance, gpus),), with_gpus(instance, gpus)), ""
        tried.append(most)
    return None, f"{alternatives(f'{gpus:,}' for gpus in tried)} GPUs" if tried else ""


def _number(instance: Instance, gpus: int) -> Change:
    several, now = instance.cluster.gpus, max(instance.cluster.gpus)
    text = text_of(several if len(several) > 1 else now)
    return Change(limit="cluster.gpus", now=text, to=text_of(gpus), least=None, share=gpus / now - 1)


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
