"""Instances derived from an instance: of a phase or site, at other prices, after a loss, or with
other bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from coopt.instance.couplings import BOUND_KEYS, Discount, Limits, Phase, PhaseWorkload, part_of
from coopt.instance.hardware import Gpu, Nic, Optic, Switch
from coopt.instance.question import CostKind, Question
from coopt.instance.reserves import Margin
from coopt.instance.texts import names_in
from coopt.instance.workload import BOUNDS, LONGEST_S, Workload

Q = TypeVar("Q", bound=Question)
Answer = TypeVar("Answer")


def of_phase(instance: Q, number: int) -> Q:
    """Return the question of one phase, at the prices of the instance, with its GPUs, workloads and
    bounds.
    """
    phase = instance.phase[number]
    return instance.having(
        cluster={"gpus": (phase.gpus,)}, workload=workloads_of(instance, phase), phase=()
    )


def phases_of(instance: Q) -> tuple[Q, ...]:
    """Return the question of each phase; the question itself without growth."""
    return tuple(of_phase(instance, number) for number in range(len(instance.phase))) or (instance,)


def workloads_of(instance: Q, phase: Phase) -> tuple[Workload, ...]:
    """Return the workloads of a phase, in its order, with their bounds there."""
    if not phase.workloads:
        return instance.workload
    by_name = {workload.name: workload for workload in instance.workload}
    return tuple(bounded(by_name[row.name], row.bound) for row in phase.workloads)


def workloads_in(instance: Q, year: float | None) -> tuple[Workload, ...]:
    """Return the workloads with their bounds in the phase that begins in a year; those of the
    instance without growth.
    """
    return next(
        (workloads_of(instance, phase) for phase in instance.phase if phase.year == year),
        instance.workload,
    )


def trained_on(
    instance: Q, year: float | None, names: Collection[str], gpus: int
) -> tuple[Workload, ...]:
    """Return the workloads of a part with that many GPUs, with their bounds in the phase of that
    year.

    An island has the workloads of its `names`; where sites share GPUs and batches, a part trains
    its share of each batch.
    """
    workloads, all_shares = workloads_in(instance, year), instance.cluster.shares
    if instance.sharing.mode == "partition":
        workloads = tuple(workload for workload in workloads if workload.name in names)
    if all_shares is None:
        return workloads
    return tuple(
        part_of(workload, instance.cluster.shares_of(gpus), all_shares) for workload in workloads
    )


def bounded(workload: Workload, bound: dict[str, float]) -> Workload:
    """Return a workload with another bound, validated again."""
    if not bound:
        return workload
    # checked, since a bound on days may contradict the tokens; a table that is made anew has no
    # margin
    moved = type(workload).model_validate(
        dict(workload) | dict.fromkeys((*BOUND_KEYS, "by")) | bound
    )
    return moved.with_margin(workload.time_margin).starting(workload.start)


@dataclass(frozen=True, kw_only=True)
class RequiredBound:
    """A bound given in an instance: its number, by key, its workload, and the phases in which it
    holds.
    """

    key: str
    number: float
    workload: Workload
    phases: frozenset[int]


def required_bounds(instance: Question) -> Iterator[RequiredBound]:
    """Yield the bounds of workloads that hold in some phase, then those that phases give
    instead.
    """
    for w, workload in enumerate(instance.workload):
        phases = frozenset(
            t for t, phase in enumerate(instance.phase) if _keeps_own_bound(phase, workload)
        )
        if workload.bounded and (phases or not instance.phase):
            yield _required_bound(f"workload[{w}]", workload, workload, phases or frozenset({0}))
    for t, phase in enumerate(instance.phase):
        pairs = zip(phase.workloads, workloads_of(instance, phase), strict=bool(phase.workloads))
        for place, (row, workload) in enumerate(pairs):
            if row.bound:
                yield _required_bound(
                    f"phase[{t}].workloads[{place}]", row, workload, frozenset({t})
                )


def _keeps_own_bound(phase: Phase, workload: Workload) -> bool:
    """Whether a workload trains in a phase with the bound of its own table."""
    rows = [row for row in phase.workloads if row.name == workload.name]
    return not phase.workloads or any(not row.bound for row in rows)


def _required_bound(
    row: str, table: Workload | PhaseWorkload, workload: Workload, phases: frozenset[int]
) -> RequiredBound:
    key = next(key for key in BOUNDS if getattr(table, key) is not None)
    return RequiredBound(
        key=f"{row}.{key}", number=getattr(table, key), workload=workload, phases=phases
    )


def with_value(instance: Q, key: str, value: Any) -> Q:
    """Return the instance with another value at a key such as
    `phase[1].workloads[0].train_days`.
    """
    path = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", key)]
    result: Q = _replaced(instance, path, value)
    return result


def with_gpu_value(name: str, key: str, instance: Q, value: float) -> Q:
    """Return the instance with another value of a kind of GPUs."""

    def changed(gpu: Gpu) -> Gpu:
        return gpu.model_copy(update={key: value}) if gpu.name == name else gpu

    cluster = instance.cluster
    generations = tuple(map(changed, cluster.generations))
    return instance.having(cluster={"gpu": changed(cluster.gpu), "generations": generations})


def with_days_in_turn(instance: Q, days: float) -> Q:
    """Return the instance with another limit on the days of workloads in turn, for those without a
    bound of their own as well.
    """
    return instance.having(
        limits={"train_days_total": days},
        workload=tuple(
            workload.in_turn_within(days) if workload.takes_turns else workload
            for workload in instance.workload
        ),
    )


def _replaced(table: Any, path: list[int | str], value: Any) -> Any:
    """Return a table, or a list of tables, with another value at a path below it."""
    if not path:
        return value
    key, *keys_below = path
    if isinstance(key, int):
        return (*table[:key], _replaced(table[key], keys_below, value), *table[key + 1 :])
    return table.model_copy(update={key: _replaced(getattr(table, key), keys_below, value)})


def with_gpu_cap(instance: Q, number: int, gpus: int) -> Q:
    """Return the instance with another number of GPUs in a phase, adjusting earlier and later
    phases to keep it non-decreasing.
    """
    caps = list(instance.gpu_caps.values())
    counts = [
        gpus if n == number else min(cap, gpus) if n < number else max(cap, gpus)
        for n, cap in enumerate(caps)
    ]
    phases = zip(instance.phase, counts, strict=bool(instance.phase))
    grown = tuple(phase.having(gpus=count) for phase, count in phases)
    return instance.having(cluster={"gpus": (counts[-1],)}, phase=grown)


def local_question(instance: Q, shares: int) -> Q:
    """Return the question of a site that takes some of the shares; the time bound is that of the
    whole.
    """
    cluster, all_shares = instance.cluster, instance.cluster.shares
    assert all_shares is not None, "only what trains at several sites is divided into shares"
    return instance.having(
        site=(),
        wan=(),
        cluster={
            "gpus": tuple(gpus * shares // all_shares for gpus in cluster.gpus),
            "shares": None,
        },
        workload=tuple(part_of(workload, shares, all_shares) for workload in instance.workload),
        limits=Limits(),  # they hold for all sites together, as what interrupts them does
        availability=None,
    )


def years_of(instance: Q, number: int) -> float:
    """Return how long the network of a phase runs: until the next phase, or for `objective.years`
    in the last or only one.
    """
    if number + 1 >= len(instance.phase):
        return instance.objective.years
    return instance.phase[number + 1].year - instance.phase[number].year


def at_prices(instance: Q, factors: dict[str, float]) -> Q:
    """Return the instance with all prices, including volume prices, multiplied by the factor of
    their kind, and without price intervals.
    """
    network, gpu = instance.network, instance.cluster.gpu

    def priced(kind: str, products: Iterable[Nic | Switch | Optic]) -> tuple[Any, ...]:
        return tuple(product.having(usd=product.usd * factors[kind]) for product in products)

    return instance.having(
        network={
            "hb_domains": tuple(
                hb.having(usd_per_gpu=hb.usd_per_gpu * factors["hb"]) for hb in network.hb_domains
            ),
            "nics": priced("nic", network.nics),
            "switches": priced("switch", network.switches),
            "optics": priced("optics", network.optics),
            "fibre": tuple(one.times(factors["optics"]) for one in network.fibre),
        },
        cluster={"gpu": gpu.having(usd=gpu.usd * factors["gpu"])},
        sharing={"discount": tuple(_discounts_at(instance, factors))},
        robust=None,
    )


def _discounts_at(instance: Q, factors: dict[str, float]) -> Iterator[Discount]:
    """Yield the volume prices in USD, multiplied by the factor of their kind."""
    usd_by_item = list_prices(instance)
    for discount in instance.sharing.discount:
        usd = (
            usd * factors[discount.kind]
            for usd in discount.prices(usd_by_item[discount.kind][discount.item])
        )
        yield discount.model_copy(update={"usd": tuple(usd), "off": None})


def as_billed(instance: Q) -> Q:
    """Return the instance at the prices of a plan's bill: the worst prices if the plan is optimised
    for these.
    """
    return at_prices(instance, instance.worst_prices) if instance.worst_prices else instance


def as_built(instance: Q) -> Q:
    """Return the instance that a plan is built for: at the prices of its bill and the minimum
    efficiency.
    """
    return at_efficiency(
        as_billed(instance), instance.efficiencies[0]
    )  # which what is billed no longer tells


def rows_by_name(instance: Question) -> dict[str, tuple[str, ...]]:
    """Return the names of the rows of numbered tables: sites, workloads, and channels (by their
    ends).
    """
    return names_in(instance.model_dump(include={"workload", "site", "wan", "phase"}))


def at_efficiency(instance: Q, factor: float) -> Q:
    """Return a single-network instance whose GPU efficiencies are multiplied by this factor."""
    gpu = instance.cluster.gpu
    faster = gpu.having(efficiency=gpu.efficiency.times(factor))
    return instance.having(cluster={"gpu": faster}, robust=None)


def at_min_efficiency(instance: Q) -> Q:
    """Return a single-network instance at the minimum efficiency, which a plan must work with."""
    return at_efficiency(instance, instance.efficiencies[0])


def at_max_efficiency(instance: Q) -> Q:
    """Return a single-network instance at the maximum efficiency, which regret is measured from."""
    return at_efficiency(instance, instance.efficiencies[1])


def after_a_loss(instance: Q, slower: float) -> Q:
    """Return a single-network instance whose bounds are multiplied by this factor.

    Workloads then train on any number of GPUs: their sizes are those of islands, and fewer GPUs
    remain without a domain.
    """
    longer = (within(workload, workload.bound_s * slower) for workload in instance.workload)
    return instance.having(
        workload=tuple(workload.having(gpus=None) for workload in longer), robust=None
    )


def within(workload: Workload, bound_s: float) -> Workload:
    """Return the workload with another bound and without reserves."""
    other_bounds = dict.fromkeys(("min_tokens_per_s", "train_days", "train_tokens"))
    return workload.model_copy(update={"max_iteration_time_s": bound_s} | other_bounds).with_margin(
        0.0
    )


def leaves_tp_open(instance: Question) -> bool:
    """Whether some workload extends TP groups over several HB domains only if none inside a domain
    suffices.
    """
    return any(workload.allow_tp_across is None for workload in instance.workload)


def with_tp(instance: Q, *, across: bool) -> Q:
    """Return the instance with a decision on TP groups over several HB domains, for workloads that
    leave it open.
    """
    if not leaves_tp_open(instance):
        return instance
    return instance.having(
        workload=tuple(
            workload.having(
                allow_tp_across=across
                if workload.allow_tp_across is None
                else workload.allow_tp_across
            )
            for workload in instance.workload
        )
    )


def inside_first(
    instance: Q, answer: Callable[[Q], Answer], enough: Callable[[Answer], bool]
) -> tuple[Answer, bool]:
    """Answer with TP groups inside HB domains where that is left open, and across domains only if
    that is insufficient.

    Returns
    -------
    found, across
        The answer, and whether groups may extend over several domains in it because inside was
        insufficient.
    """
    found = answer(with_tp(instance, across=False))
    if not leaves_tp_open(instance) or enough(found):
        return found, False
    return answer(with_tp(instance, across=True)), True


def keeping(instance: Q, margin: Margin) -> Q:
    """Return the instance with another margin."""
    gpu, workloads, switches = instance.cluster.gpu, instance.workload, instance.network.switches
    gpus = instance.cluster.most_gpus
    return instance.having(
        margin=margin,
        cluster={"gpu": gpu.with_memory_margin(margin.memory_share(workloads))},
        workload=tuple(run.with_margin(margin.time_share(gpu, run, gpus)) for run in workloads),
        network={"switches": tuple(switch.with_port_margin(margin.ports) for switch in switches)},
    )


def list_prices(instance: Question) -> dict[CostKind, dict[str, float]]:
    """Return the unit price of every product that an instance lists (USD), by kind and name."""
    network = instance.network
    return {
        "hb": {hb.name: hb.usd_per_gpu for hb in network.hb_domains},
        "nic": {nic.name: nic.usd for nic in network.nics},
        "switch": {switch.name: switch.usd for switch in network.switches},
        "optics": {optic.name: optic.usd for optic in network.optics},
        "gpu": {gpu.name: gpu.usd for gpu in instance.cluster.kinds},
    }


def with_scaled_bounds(instance: Q, pace: float, over: Collection[str] | None = None) -> Q:
    """Return the instance with every bound multiplied by `pace`, as seconds per iteration and at
    most `LONGEST_S`.

    Bounds in days stay in days where training is interrupted, since interruptions count only
    towards them, and where the days of all add up, whose limit moves with all bounds. Where
    batches are open, bounds in days and tokens per second keep their form, since the seconds per
    iteration depend on the batch.

    Parameters
    ----------
    over
        Names of the workloads whose bounds are multiplied, also in phases; None for all.
    """

    total = instance.limits.train_days_total
    keeps_days = instance.availability is not None or instance.open_keys or total is not None
    limits = {}
    if total is not None and over is None:
        limits = {"train_days_total": min(total * pace, LONGEST_S / 86400.0)}

    def moved_workload(workload: Workload) -> Workload:
        if limits and workload.takes_turns:
            return workload.in_turn_within(limits["train_days_total"])
        changed: Workload = moved(workload, workload.required_s)
        return workload if changed is workload else changed.having(by=None)

    def moved(row: Any, bound_s: float) -> Any:
        if over is not None and row.name not in over:
            return row
        factor = min(pace, LONGEST_S / bound_s)
        if keeps_days and row.train_days is not None:
            return row.having(train_days=row.train_days * factor)
        if instance.open_keys and row.min_tokens_per_s is not None:
            return row.having(min_tokens_per_s=row.min_tokens_per_s / factor)
        return row.having(
            **dict.fromkeys(BOUND_KEYS) | {"max_iteration_time_s": min(bound_s * pace, LONGEST_S)}
        )

    def of_phase(phase: Phase) -> Phase:
        asked = zip(phase.workloads, workloads_of(instance, phase), strict=bool(phase.workloads))
        return phase.having(
            workloads=tuple(
                moved(row, workload.required_s) if row.bound else row for row, workload in asked
            )
        )

    return instance.having(
        limits=limits,
        workload=tuple(map(moved_workload, instance.workload)),
        phase=tuple(map(of_phase, instance.phase)),
    )
