"""The instance: a question about a cluster and its workloads, and the choices that it leaves
open.

Where it leaves the GPU generation, a global batch or knobs open, each choice is a question of its
own.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from coopt.instance.base import Count, Name, Table
from coopt.instance.couplings import BillKind as BillKind
from coopt.instance.couplings import Limits as Limits
from coopt.instance.errors import InstanceError
from coopt.instance.hardware import HbDomain
from coopt.instance.network import FabricKind as FabricKind
from coopt.instance.network import Network as Network
from coopt.instance.network import SwitchedKind as SwitchedKind
from coopt.instance.question import Cluster as Cluster
from coopt.instance.question import CostKind as CostKind
from coopt.instance.question import Objective as Objective
from coopt.instance.question import ObjectiveKind as ObjectiveKind
from coopt.instance.question import Question
from coopt.instance.question import Solver as Solver
from coopt.instance.rules.agreement import disagreements, open_disagreements
from coopt.instance.tables import html

Q = TypeVar("Q", bound=Question)
MOST_CHOICES = 1000


class Instance(Question):
    """A question that coopt can answer; docs/network.md defines the search space of designs."""

    def __repr__(self) -> str:
        names = ", ".join(workload.name for workload in self.workload)
        return (
            f"Instance({self.name!r}, {self.cluster.counts_text} x {self.cluster.gpu.name} for"
            f" {names})"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        keys = ("name", "model", "global_batch", "precision", "bound_s")
        bounds = [workload.bound_s if workload.bounded else "none" for workload in self.workload]
        rows = [
            dict(
                zip(
                    keys,
                    (run.name, run.model.name, run.global_batch, run.precision, bound_s),
                    strict=True,
                )
            )
            for run, bound_s in zip(self.workload, bounds, strict=True)
        ]
        return html(repr(self), [self.description] if self.description else [], [rows])

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        open_lists = bool(self.open_keys)
        complaints = list(open_disagreements(self) if open_lists else disagreements(self))
        if open_lists and not complaints:
            complaints = list(choice_complaints(self))
        if complaints:
            raise ValueError("\n".join(complaints))
        return self

    @model_validator(mode="after")
    def _hosts_stand_with_domains(self) -> Self:
        """Include hosts that count in the price and power of HB domains."""
        if "host" in self.objective.include:
            domains = tuple(domain.with_hosts() for domain in self.network.hb_domains)
            self.__dict__["network"] = self.network.model_copy(update={"hb_domains": domains})
        return self


class Chosen(Table):
    """A plan's choice from the lists that its question leaves open; empty if there are none."""

    gpu: Annotated[
        Name | None, Field(description="the kind of GPU, where the question lists several")
    ] = None
    global_batch: Annotated[
        dict[str, Count],
        Field(
            description="sequences in an iteration, by workload, where the question lists several"
        ),
    ] = Field(default_factory=dict)

    options: Annotated[
        dict[str, dict[str, float | str]],
        Field(description="knobs by workload, where the question lists several values"),
    ] = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """The choice in words: `gb200, 4,096 sequences of training`."""
        batches = (f"{batch:,} sequences of {name}" for name, batch in self.global_batch.items())
        knobs = (
            f"{key} = {value} of {name}"
            for name, values in self.options.items()
            for key, value in values.items()
        )
        return ", ".join([*([self.gpu] if self.gpu else []), *batches, *knobs])


def choices_of(instance: Question) -> Iterator[Chosen]:
    """Yield every choice of a question: by GPU generation, then by batch, then by knobs."""
    batches_by_name = {
        workload.name: workload.batches for workload in instance.workload if workload.batches
    }
    for gpu in _gpus(instance):
        for batches in product(*batches_by_name.values()):
            for knobs in _knobs(instance):
                yield Chosen(
                    gpu=gpu,
                    global_batch=dict(zip(batches_by_name, batches, strict=True)),
                    options=knobs,
                )


def _knobs(instance: Question) -> Iterator[dict[str, dict[str, float | str]]]:
    """Yield every combination of knobs, by workload."""
    keys = [
        (workload.name, key)
        for workload in instance.workload
        for key in workload.options.allowed.listed
    ]
    lists = [
        values
        for workload in instance.workload
        for values in workload.options.allowed.listed.values()
    ]
    for values in product(*lists):
        choice: dict[str, dict[str, float | str]] = {}
        for (name, key), value in zip(keys, values, strict=True):
            choice.setdefault(name, {})[key] = value
        yield choice


def _gpus(instance: Question) -> tuple[str | None, ...]:
    return tuple(gpu.name for gpu in instance.cluster.generations) or (None,)


def at_choice(instance: Q, choice: Chosen) -> Q:
    """Return the question of one choice, with the HB domains that are sold with its GPU.

    Raises
    ------
    InstanceError
        If that question is invalid, for example if no domain is sold with the GPU.
    """
    from coopt.instance.complaints import sentences

    table = instance.model_dump(by_alias=True)
    for workload in table["workload"]:
        workload["global_batch"] = choice.global_batch.get(
            workload["name"], workload["global_batch"]
        )
        workload["batches"] = ()
        workload["options"] |= {"allowed": {}} | choice.options.get(workload["name"], {})
    if choice.gpu is not None:
        gpu = next(entry for entry in instance.cluster.generations if entry.name == choice.gpu)
        domains = [domain.model_dump() for domain in domains_of(instance, gpu.name)]
        table["cluster"] |= {"gpu": gpu.model_dump(), "generations": ()}
        table["network"]["hb_domains"] = domains
    try:
        return type(instance).model_validate(table)
    except ValidationError as error:
        raise InstanceError(
            f"with {choice.text}: {sentence}" for sentence in sentences(error, type(instance))
        ) from None


def seconds_weight(instance: Question, kind: ObjectiveKind) -> float:
    """Return the factor that makes objectives comparable between choices with different batches.

    A time per iteration is multiplied by the iterations of the whole training if its tokens are
    given, else by the iterations needed per token of small-batch training. The factor is 1 for
    other objectives.
    """
    workload = instance.workload[0]
    iterations_for_one = workload.tokens_for_one / workload.tokens_per_iteration
    return (workload.iterations or iterations_for_one) if kind == "time" else 1.0


def domains_of(instance: Question, gpu: str) -> tuple[HbDomain, ...]:
    """Return the HB domains that can be bought with a GPU: those sold for it, and those sold for
    any GPU.
    """
    return tuple(
        domain for domain in instance.network.hb_domains if not domain.gpus or gpu in domain.gpus
    )


def choice_complaints(instance: Question) -> Iterator[str]:
    """Yield complaints about lists that a question leaves open."""
    names = [gpu.name for gpu in instance.cluster.generations]
    if len(set(names)) < len(names):
        yield "cluster.gpu: two of the list have one name, needs names of their own"
        return
    count = len(names) or 1
    for workload in instance.workload:
        count *= len(workload.batches) or 1
        count *= math.prod(len(values) for values in workload.options.allowed.listed.values())
    if count > MOST_CHOICES:
        yield (
            f"cluster.gpu, workload.global_batch and workload.options leave {count:,} choices open,"
            f" needs at most {MOST_CHOICES:,}"
        )
        return
    if homeless_gpus := [name for name in names if not domains_of(instance, name)]:
        yield from (
            f"cluster.gpu: no HB domain of network.hb_domains is sold with {gpu!r}, needs one"
            for gpu in homeless_gpus
        )
        return
    for choice in _each_value(instance):
        try:
            at_choice(instance, choice)
        except InstanceError as error:
            yield from error.complaints


def _each_value(instance: Question) -> Iterator[Chosen]:
    """Yield choices that cover all generations with all knobs, and every batch of each workload."""
    first_batches = {
        workload.name: workload.batches[0] for workload in instance.workload if workload.batches
    }
    for gpu in _gpus(instance):
        for knobs in _knobs(instance):
            yield Chosen(gpu=gpu, global_batch=first_batches, options=knobs)
    gpu, knobs = _gpus(instance)[0], next(_knobs(instance))
    for workload in instance.workload:
        for batch in workload.batches[1:]:
            yield Chosen(
                gpu=gpu, global_batch=first_batches | {workload.name: batch}, options=knobs
            )
