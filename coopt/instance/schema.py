"""The instance: a question about a cluster and its workloads, and the choices that it leaves
open.

Where it leaves the GPU generation, a global batch or knobs open, each choice is a question of its
own. An instance is read here from a file or a table, with overrides; changed in one value; and
refused by tasks that do not support its features.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from coopt.instance.base import Count, Entry, Name, Table
from coopt.instance.catalog import refusing, sentences
from coopt.instance.couplings import LIMITED
from coopt.instance.couplings import BillKind as BillKind
from coopt.instance.couplings import Limits as Limits
from coopt.instance.hardware import HbDomain
from coopt.instance.network import FabricKind as FabricKind
from coopt.instance.network import Network as Network
from coopt.instance.network import SwitchedKind as SwitchedKind
from coopt.instance.question import BILLED, Question
from coopt.instance.question import Cluster as Cluster
from coopt.instance.question import CostKind as CostKind
from coopt.instance.question import Objective as Objective
from coopt.instance.question import ObjectiveKind as ObjectiveKind
from coopt.instance.question import ProductKind as ProductKind
from coopt.instance.question import Solver as Solver
from coopt.instance.quotes import CatalogFiles, book_of, places_of, validated, with_places
from coopt.instance.reserves import NO_MARGIN
from coopt.instance.rules.agreement import OPEN_RULES, RULES, disagreements
from coopt.instance.texts import (
    InstanceError,
    alternatives,
    both,
    check_numbers,
    cut,
    file_of,
    html,
    in_dots,
    names_in,
    read_toml,
    shortened,
    with_names,
)
from coopt.instance.variants import list_prices
from coopt.instance.workload import Workload

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
        open_lists = bool(self.open_keys) or self.mixes_gpus
        complaints = list(disagreements(self, OPEN_RULES if open_lists else RULES))
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
        workload.name: workload.open_batches for workload in instance.workload if workload.batches
    }
    for gpu in (None,) if instance.mixes_gpus else _gpus(instance):
        for batches in product(*batches_by_name.values()):
            for knobs in _knobs(instance):
                yield Chosen(
                    gpu=gpu,
                    global_batch=dict(zip(batches_by_name, batches, strict=True)),
                    options=knobs,
                )


def _knobs(instance: Question) -> Iterator[dict[str, dict[str, float | str]]]:
    """Yield every combination of knobs, by workload."""
    choices = {
        workload.name: [
            dict(zip(knobs, values, strict=True)) for values in product(*knobs.values())
        ]
        for workload in instance.workload
        if (knobs := workload.options.allowed.listed)
    }
    return (dict(zip(choices, some, strict=True)) for some in product(*choices.values()))


def _gpus(instance: Question) -> tuple[str | None, ...]:
    return tuple(gpu.name for gpu in instance.cluster.generations) or (None,)


def at_choice(instance: Q, choice: Chosen) -> Q:
    """Return the question of one choice, with the HB domains that are sold with its GPU.

    Raises
    ------
    InstanceError
        If that question is invalid, for example if no domain is sold with the GPU.
    """
    table = instance.model_dump(by_alias=True)
    network = instance.network
    for key in type(network).model_fields.keys() - network.model_fields_set:
        if table["network"][key] == type(network).model_fields[key].default:
            del table["network"][key]  # as in the question, where rules ask what is given
    for asked, workload in zip(instance.workload, table["workload"], strict=True):
        for key in type(asked.mapping).model_fields.keys() - asked.mapping.model_fields_set:
            del workload["mapping"][key]
        workload["global_batch"] = choice.global_batch.get(
            workload["name"], workload["global_batch"]
        )
        workload |= {"batches": (), "batch_tolerance": 0.0}
        workload["options"] |= {"allowed": {}} | choice.options.get(workload["name"], {})
    if choice.gpu is not None:
        gpu = next(entry for entry in instance.cluster.generations if entry.name == choice.gpu)
        domains = [domain.model_dump() for domain in domains_of(instance, gpu.name)]
        table["cluster"] |= {"gpu": gpu.model_dump(), "generations": ()}
        table["network"]["hb_domains"] = domains
        table["sharing"]["mixed_gpus"] = False
        prices = list_prices(instance)
        sold = {"gpu": [gpu.name], "hb": [domain["name"] for domain in domains]}
        table["sharing"]["discount"] = tuple(
            row
            for row in table["sharing"]["discount"]
            if row["item"] in sold.get(row["kind"], [row["item"]])
            or row["item"] not in prices[row["kind"]]  # which is refused
        )
        if instance.stands is not None:  # which may be of another kind
            hb = instance.stands.domain_in(instance.network)
            table["existing"][0]["hb_domain"] = None if hb is None else hb.model_dump()
    with refusing(f"with {choice.text}", type(instance)):
        answered = type(instance).model_validate(table)
    # a table does not say which share of a domain is that of its servers
    servers = {domain.name: domain.servers for domain in network.hb_domains}
    held = tuple(one.with_servers(*servers[one.name]) for one in answered.network.hb_domains)
    return answered.having(network={"hb_domains": held}).read_from(instance.place)


def questions_by_gpu(instance: Q) -> tuple[Q, ...]:
    """Return the question for each kind of GPU that its islands may have; itself for a single
    kind.
    """
    if not instance.mixes_gpus:
        return (instance,)
    try:
        known: tuple[Q, ...] = object.__getattribute__(instance, "_by_gpu")
    except AttributeError:
        # by name, so that of equal optima the order of the list decides nothing
        gpus = sorted(gpu.name for gpu in instance.cluster.generations)
        names = [name for name in gpus if domains_of(instance, name)]
        known = tuple(at_choice(instance, Chosen(gpu=name)) for name in names)
        object.__setattr__(instance, "_by_gpu", known)
    return known


def question_on(instance: Q, hb_domain: str) -> Q:
    """Return the question for the GPUs that an HB domain is sold with; the first for one that is
    not listed.
    """
    by_gpu = questions_by_gpu(instance)
    listing = (one for one in by_gpu if hb_domain in {hb.name for hb in one.network.hb_domains})
    return next(listing, by_gpu[0])


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
        yield "cluster.gpu: two entries have the same name, needs different names"
        return
    count = len(names) or 1
    for workload in instance.workload:
        count *= len(workload.open_batches) or 1
        count *= math.prod(len(values) for values in workload.options.allowed.listed.values())
    if count > MOST_CHOICES:
        yield (
            "cluster.gpu, workload.global_batch, workload.batch_tolerance and workload.options"
            f" together leave {count:,} combinations to choose from, needs at most"
            f" {MOST_CHOICES:,}"
        )
        return
    if homeless_gpus := [name for name in names if not domains_of(instance, name)]:
        yield from (
            (
                f"cluster.gpu: no HB domain in network.hb_domains is sold with {gpu!r}, needs one"
                " that is"
            )
            for gpu in homeless_gpus
        )
        return
    found: dict[str, list[str]] = {}
    choices = list(_each_value(instance))
    for choice in choices:
        try:
            at_choice(instance, choice)
        except InstanceError as error:
            for complaint in error.complaints:
                bare = complaint.removeprefix(f"with {choice.text}: ")
                found.setdefault(bare, []).append(complaint)
    for bare, complaints in found.items():  # what is wrong with every choice is said once
        yield from [bare] if len(complaints) == len(choices) else complaints


def _each_value(instance: Question) -> Iterator[Chosen]:
    """Yield choices that cover all generations with all knobs, and every batch of each workload."""
    first_batches = {
        workload.name: workload.open_batches[0]
        for workload in instance.workload
        if workload.batches
    }
    for gpu in _gpus(instance):
        for knobs in _knobs(instance):
            yield Chosen(gpu=gpu, global_batch=first_batches, options=knobs)
    gpu, knobs = _gpus(instance)[0], next(_knobs(instance))
    for workload in instance.workload:
        batches = workload.open_batches
        # what lies between the ends of a tolerance is refused where they are
        ends = {min(batches), max(batches)} if batches else set()
        for batch in sorted(ends) if workload.batch_tolerance else batches[1:]:
            yield Chosen(
                gpu=gpu, global_batch=first_batches | {workload.name: batch}, options=knobs
            )


LONGEST_INDEX, LONGEST_KEY = 9, 80  # digits of an index, characters shown of a key


def load(
    source: str | Path | Mapping[str, Any], overrides: Mapping[str, Any] | None = None
) -> Instance:
    """Read and check an instance.

    Parameters
    ----------
    source
        A TOML file in the format of `coopt schema`, or its content as a table (for example parsed
        JSON).
    overrides
        Values that replace those of the file, by dotted key (`"network.max_tiers"`,
        `"workload.0.mapping.tp"`); rows of tables can also be written as in reports
        (`"workload[0].mapping.tp"`, `"workload['chat'].gpus"`).

    Returns
    -------
    Instance
        The checked instance, with catalog names resolved.

    Raises
    ------
    InstanceError
        With all complaints: file, key, given value, requirement.

    Examples
    --------
    >>> import coopt
    >>> coopt.load("instances/tiny-64.toml", {"cluster.gpus": 128}).cluster.gpus
    (128,)
    """
    if isinstance(source, Mapping):
        content, origin, folder = source, "instance", Path()
    else:
        file = file_of("instance", source, "an instance, as its file or as a table")
        content, origin, folder = read_toml(file), file.name, file.parent
    table = overridden(content, overrides or {}, origin)
    origin = f"{origin} with overrides" if overrides else origin
    table = with_standing(table, folder, origin)
    try:
        found = validated(Instance, table, folder)
        return found if isinstance(source, Mapping) else found.read_from(Path(source).name)
    except ValidationError as error:
        names, places = names_in(table), _places(table, folder)
        complaints = (
            with_places(with_names(complaint, names), places)
            for complaint in sentences(error, Instance)
        )
        raise InstanceError(f"{origin}: {complaint}" for complaint in complaints) from None


def with_standing(table: Mapping[str, Any], folder: Path, origin: str) -> dict[str, Any]:
    """Return a raw table with the designs of the files that [[existing]] names.

    Raises
    ------
    InstanceError
        If one of them cannot be used; `origin` is what complaints begin with.
    """
    if "existing" not in table:
        return dict(table)
    from coopt.instance.standing_plans import with_plans  # most networks are built from nothing

    own = book_of(table, folder)
    try:
        return dict(with_plans(table, folder, own))
    except InstanceError as error:
        raise InstanceError(
            f"{origin}: {shortened(complaint)}" for complaint in error.complaints
        ) from None


def instance_of(question: Instance | str | Path) -> Instance:
    """Return an instance, loading it if a file is given."""
    return question if isinstance(question, Instance) else load(question)


def _places(table: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Return the places of the entries in the catalog files that a table names."""
    try:
        return places_of(CatalogFiles.model_validate(table.get("catalog", {})), folder)
    except ValidationError:
        return {}  # which is among the complaints


def overridden(table: Mapping[str, Any], overrides: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return a copy of a table with the values of dotted keys replaced; InstanceError for a key
    that does not exist.
    """
    try:
        check_numbers(table, file)
        result = copy.deepcopy(dict(table))
        if result.get("margin") == "none" and any(key.startswith("margin.") for key in overrides):
            result["margin"] = NO_MARGIN.model_dump()
        for key, value in overrides.items():
            check_numbers(value, f"{file}: override {key}")
            # names are read again each time, as the override before may have changed one
            _put(result, in_dots(key, names_in(result)), copy.deepcopy(value), file)
    except RecursionError:
        raise InstanceError(f"{file}: nested too deeply, needs flat tables") from None
    return result


def _put(table: dict[str, Any], key: str, value: Any, file: str) -> None:
    """Set `a.0.b` in nested tables and lists; a single table can be addressed with or without the
    index 0.
    """
    *parents, final_key = key.split(".")
    node: Any = table
    for part in parents:
        if part != "0" or node is table or not isinstance(node, dict):
            holder, place = _place(node, part, key, file)
            node = holder.setdefault(place, {}) if isinstance(holder, dict) else holder[place]
    holder, place = _place(node, final_key, key, file)
    holder[place] = value


def _place(node: Any, part: str, key: str, file: str) -> tuple[Any, Any]:
    """Return the table or list that a part of a key leads into, and its place there."""
    if isinstance(node, list) and not _is_index(part):
        node = _only(node, part, key, file)
    if isinstance(node, list):
        _check_index(node, part, key, file)
        return node, int(part)
    if not isinstance(node, dict):
        raise InstanceError(
            f"{file}: override {key}: {part!r} lies below {cut(repr(node))}, which is no table,"
            " needs a table there (of a catalog entry: { extends = 'NAME', ... })"
        )
    return node, part


def _is_index(text: str) -> bool:
    """Whether a text is an integer index; negative ones are refused later."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def _only(rows: Sequence[Any], part: str, key: str, file: str) -> Any:
    if len(rows) != 1:
        above = re.split(rf"\.{re.escape(part)}(?=\.|$)", key)[0]
        names = names_in({above: rows}).get(above, ())
        need = alternatives([f"{above}.0", *(f"{above}[{name!r}]" for name in names[:1])])
        raise InstanceError(
            f"{file}: override {key}: the list has {len(rows) or 'no'} entries, needs"
            f" {f'one of them, such as {need}' if rows else 'a list with entries'}"
        )
    return rows[0]


def _check_index(rows: Sequence[Any], part: str, key: str, file: str) -> None:
    if not _is_index(part) or len(part) > LONGEST_INDEX or part[0] == "-" or int(part) >= len(rows):
        key, part = (
            text if len(text) <= LONGEST_KEY else f"{text[:LONGEST_KEY]}..." for text in (key, part)
        )
        most = len(rows) - 1
        need = f"0 to {most}" if most > 0 else "0" if rows else "a list with entries"
        raise InstanceError(f"{file}: override {key}: there is no index {part}, needs {need}")


UNITS = {
    "max_iteration_time_s": "s",
    "min_tokens_per_s": "tokens/s",
    "train_days": "days",
    **{key: unit for key, (_, unit) in LIMITED.items()},
}
DIGITS = 5
NO_LIMIT = 1e15  # the largest number that an instance may set
AMPLE = 1e6  # seconds of an iteration, or times its bound


def with_part(instance: Instance, part: str, update: dict[str, Any]) -> Instance:
    """The instance with values of one of its tables replaced."""
    return instance.having(**{part: update})


def with_entry(tables: tuple[Any, ...], place: int, update: dict[str, Any]) -> tuple[Any, ...]:
    """Tables of which one has values replaced."""
    return (*tables[:place], tables[place].model_copy(update=update), *tables[place + 1 :])


def with_workload(instance: Instance, w: int, update: dict[str, Any]) -> Instance:
    """The instance with values of one workload replaced."""
    return instance.model_copy(update={"workload": with_entry(instance.workload, w, update)})


def own_time(workload: Workload, time_s: Any) -> Any:
    """A predicted iteration time, with its margin, in the unit of the workload's bound: seconds,
    tokens/s or days.
    """
    time_s *= 1.0 + workload.time_margin
    if workload.min_tokens_per_s is not None:
        return workload.tokens_per_iteration / time_s
    if workload.train_days is not None:  # tokens alone are no bound
        return workload.days(time_s)
    return time_s


def days_in_turn(instance: Instance, times_s: Iterable[Any]) -> Any:
    """Days in which all workloads train one after the other with these iteration times (s),
    interruptions included, with the margin; numbers or arrays.
    """
    pairs = zip(instance.workload, times_s, strict=True)
    return sum(own_time(workload, time_s) for workload, time_s in pairs)


def ample_s(workload: Workload) -> float:
    """An iteration time that rules out no plan; no longer, since searches for direct links fail at
    far longer ones.
    """
    return min(AMPLE * max(workload.bound_s, 1.0), NO_LIMIT)


def typed(value: float, *, up: bool = True) -> float:
    """The nearest number of five digits that is not below `value`; not above it where `up` is
    false.

    Whole numbers, such as most sums of prices, stay as they are.
    """
    if value >= 10**DIGITS and value.is_integer():
        return value
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    return float(Context(prec=DIGITS, rounding=rounding).create_decimal_from_float(value))


def text_of(value: Any) -> str:
    """A value as one types it in TOML."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float | int) else f'"{name_of(value)}"'


def name_of(entry: Any) -> Any:
    """What an entry of a list goes by: its name where it has one."""
    return entry.name if isinstance(entry, Entry) else entry


def require_no_failures(instance: Instance, task: str) -> None:
    """Refuse a question with failures, for a task that does not model them.

    Raises
    ------
    InstanceError
        If the instance has failures; `task` is the task in words.
    """
    if instance.availability is not None:
        raise InstanceError(
            f"{instance.place}: {task} does not count failures, needs an instance without"
            " [availability]"
        )


def require_decided(instance: Instance, task: str) -> None:
    """Refuse a question that leaves GPUs, batches or knobs open.

    Raises
    ------
    InstanceError
        If the instance does; `task` is the task in words.
    """
    if instance.open_keys:
        raise InstanceError(
            f"{instance.place}: lists in {both(instance.open_keys)}: {task} needs one value in"
            " place of each (the key `chosen` of a plan has its values)"
        )


def require_billed(instance: Instance, task: str, of_plan: ObjectiveKind | None = None) -> None:
    """Refuse an objective that is not a sum of a bill.

    Raises
    ------
    InstanceError
        If the instance, or its plan, has such an objective; `task` is the task in words.
    """
    for place, kind in {
        "objective.minimize": instance.objective.minimize,
        "the objective of the plan": of_plan,
    }.items():
        if kind is not None and kind != BILLED[kind]:
            raise InstanceError(
                f"{instance.place}: {place} = {kind!r}: {task} compares bills, needs"
                " 'capex', 'power' or 'tco', with a time as the bound of its workload"
            )


def require_one_network(instance: Instance, task: str, remedy: str = "") -> None:
    """Refuse a question that needs more than one network used by all workloads in turn.

    Parameters
    ----------
    task
        The task in words.
    remedy
        What supports such questions.

    Raises
    ------
    InstanceError
        If the instance needs more than one network.
    """
    if instance.beyond_one_network:
        raise InstanceError(
            f"{instance.place}: {task} is for"
            f" {'one network' if instance.several_networks else 'one value of each key'}, needs an"
            f" instance without {both(instance.beyond_one_network)}{remedy}"
        )
