"""Questions that leave the generation of GPUs or a global batch open: each choice is a question of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError

from coopt.instance.base import Count, Name, Table
from coopt.instance.hardware import HbDomain
from coopt.instance.question import Question

Q = TypeVar("Q", bound=Question)
MOST_CHOICES = 1000


class Chosen(Table):
    """What a plan takes of the lists that its question leaves open; nothing where there is none."""

    gpu: Annotated[Name | None, Field(description="the kind of GPU, where the question lists several")] = None
    global_batch: Annotated[
        dict[str, Count], Field(description="sequences in an iteration, by workload, where the question lists several")
    ] = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """`gb200, 4,096 sequences of training`."""
        batches = (f"{batch:,} sequences of {name}" for name, batch in self.global_batch.items())
        return ", ".join([*([self.gpu] if self.gpu else []), *batches])


def choices_of(instance: Question) -> Iterator[Chosen]:
    """Every choice of a question, generations in turn and then batches."""
    listed = {one.name: one.batches for one in instance.workload if one.batches}
    for gpu in _gpus(instance):
        for batches in product(*listed.values()):
            yield Chosen(gpu=gpu, global_batch=dict(zip(listed, batches, strict=True)))


def _gpus(instance: Question) -> tuple[str | None, ...]:
    return tuple(one.name for one in instance.cluster.generations) or (None,)


def at_choice(instance: Q, chosen: Chosen) -> Q:
    """The question of one choice, with the HB domains that are sold with its GPU.

    Raises
    ------
    ValidationError
        When that is no question: no domain is sold with the GPU, say.
    """
    table = instance.model_dump(by_alias=True)
    for workload in table["workload"]:
        workload["global_batch"] = chosen.global_batch.get(workload["name"], workload["global_batch"])
        workload["batches"] = ()
    if chosen.gpu is not None:
        found = next(one for one in instance.cluster.generations if one.name == chosen.gpu)
        domains = [one.model_dump() for one in domains_of(instance, found.name)]
        table["cluster"] |= {"gpu": found.model_dump(), "generations": ()}
        table["network"]["hb_domains"] = domains
    return type(instance).model_validate(table)


def domains_of(instance: Question, gpu: str) -> tuple[HbDomain, ...]:
    """The HB domains that are sold with a GPU, or with any."""
    return tuple(one for one in instance.network.hb_domains if not one.gpus or gpu in one.gpus)


def choice_complaints(instance: Question) -> Iterator[str]:
    """What is wrong with lists that a question leaves open."""
    names = [one.name for one in instance.cluster.generations]
    if len(set(names)) < len(names):
        yield "cluster.gpu: two of the list have one name, needs names of their own"
        return
    count = len(names) or 1
    for workload in instance.workload:
        count *= len(workload.batches) or 1
    if count > MOST_CHOICES:
        yield f"cluster.gpu and workload.global_batch leave {count:,} choices open, needs at most {MOST_CHOICES:,}"
        return
    first = {one.name: one.batches[0] for one in instance.workload if one.batches}
    for name in _gpus(instance):
        if name is not None and not domains_of(instance, name):
            yield f"cluster.gpu: no HB domain of network.hb_domains is sold with {name!r}, needs one"
            continue
        try:
            at_choice(instance, Chosen(gpu=name, global_batch=first))
        except ValidationError as error:
            from coopt.instance.complaints import sentences

            yield from (f"with {name or 'the first batch'}: {one}" for one in sentences(error, type(instance)))
